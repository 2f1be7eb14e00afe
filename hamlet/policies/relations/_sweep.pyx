"""Sweeps over periods: grouping by valuation, overlap joins and differences.

Contract: the Python side gives contiguous int64 arrays of equal lengths; where an order is asked for, rows are sorted
by (id, first). Nothing is checked again here.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from hamlet.memory.arrays cimport grown, regrown


cdef inline uint64_t _mix(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= <uint64_t>0x9E3779B97F4A7C15
    h ^= h >> 29
    h *= <uint64_t>0xBF58476D1CE4E5B9
    h ^= h >> 32
    return h


def group(list columns, Py_ssize_t rows):
    """Number the distinct rows of some columns.

    Parameters
    ----------
    columns : list of int64 arrays of shape (rows,)
    rows : int

    Returns
    -------
    (int64 array of shape (rows,), int64 array of shape (groups,))
        Each row's group, numbered by first occurrence, and the first row of each group.
    """
    import numpy as np  # brought in by the first columns
    ids_array = np.zeros(rows, np.int64)
    if not columns or rows == 0:
        return ids_array, np.zeros(1 if rows else 0, np.int64)
    cdef int64_t[::1] ids = ids_array
    first_array = np.empty(rows, np.int64)
    cdef int64_t[::1] firsts = first_array
    hash_array = np.zeros(rows, np.uint64)
    cdef uint64_t[::1] hashes = hash_array
    cdef int width = len(columns), c
    cdef Py_ssize_t i, size = 16, groups = 0, place
    cdef int64_t known
    cdef const int64_t[::1] column
    cdef const int64_t** data = <const int64_t**>malloc(width * sizeof(int64_t*))
    if data == NULL:
        raise MemoryError
    keep = []
    for c in range(width):
        column = columns[c]
        keep.append(column)
        data[c] = &column[0]
        for i in range(rows):
            hashes[i] = _mix(hashes[i] ^ <uint64_t>column[i])
    while size < 2 * rows:
        size *= 2
    cdef int64_t* slots = <int64_t*>malloc(size * sizeof(int64_t))
    if slots == NULL:
        free(data)
        raise MemoryError
    cdef uint64_t mask = size - 1
    cdef bint same
    with nogil:
        for place in range(size):
            slots[place] = -1
        for i in range(rows):
            place = hashes[i] & mask
            while True:
                known = slots[place]
                if known < 0:
                    slots[place] = groups
                    firsts[groups] = i
                    ids[i] = groups
                    groups += 1
                    break
                if hashes[firsts[known]] == hashes[i]:
                    same = True
                    for c in range(width):
                        if data[c][firsts[known]] != data[c][i]:
                            same = False
                            break
                    if same:
                        ids[i] = known
                        break
                place = (place + 1) & mask
    free(slots)
    free(data)
    return ids_array, first_array[:groups].copy()


cdef struct Pairs:
    int64_t* left
    int64_t* right
    Py_ssize_t count
    Py_ssize_t room


cdef inline int _push(Pairs* pairs, int64_t left, int64_t right) noexcept nogil:
    """One more pair; -1 where there is no memory for it, and nothing more may be pushed then."""
    if pairs.count == pairs.room and _more(pairs) < 0:
        return -1
    pairs.left[pairs.count] = left
    pairs.right[pairs.count] = right
    pairs.count += 1
    return 0


cdef int _more(Pairs* pairs) noexcept nogil:
    cdef Py_ssize_t room = 2 * pairs.room if pairs.room else 1024
    if not regrown(<void**>&pairs.left, room * sizeof(int64_t)):
        return -1
    if not regrown(<void**>&pairs.right, room * sizeof(int64_t)):
        return -1
    pairs.room = room
    return 0


cdef void _release(Pairs* pairs) noexcept:
    free(pairs.left)
    free(pairs.right)
    pairs.left = pairs.right = NULL


cdef _arrays(Pairs* pairs):
    import numpy as np  # brought in by the first columns
    left = np.empty(pairs.count, np.int64)
    right = np.empty(pairs.count, np.int64)
    cdef int64_t[::1] one, two
    if pairs.count:
        one, two = left, right
        memcpy(&one[0], pairs.left, pairs.count * sizeof(int64_t))
        memcpy(&two[0], pairs.right, pairs.count * sizeof(int64_t))
    return left, right


def overlaps(const int64_t[::1] lid, const int64_t[::1] lf, const int64_t[::1] ll,
             const int64_t[::1] rid, const int64_t[::1] rf, const int64_t[::1] rl, Py_ssize_t most):
    """The pairs of rows of equal id whose periods overlap; both sides are sorted by (id, first).

    Returns
    -------
    (int64 array, int64 array)
        Places in the left and in the right side.

    Raises
    ------
    OverflowError
        Where there are more than `most` pairs.
    """
    cdef Py_ssize_t n = lid.shape[0], m = rid.shape[0], a = 0, b = 0, i1, j1, k
    cdef int64_t key
    cdef int failed = 0
    cdef Pairs pairs = Pairs(NULL, NULL, 0, 0)
    with nogil:
        while a < n and b < m and not failed and pairs.count <= most:
            if lid[a] < rid[b]:
                a += 1
                continue
            if rid[b] < lid[a]:
                b += 1
                continue
            key = lid[a]
            i1 = a
            while i1 < n and lid[i1] == key:
                i1 += 1
            j1 = b
            while j1 < m and rid[j1] == key:
                j1 += 1
            while a < i1 and b < j1:
                if lf[a] <= rf[b]:
                    k = b
                    while k < j1 and rf[k] <= ll[a] and pairs.count <= most:
                        failed = _push(&pairs, a, k)
                        if failed:
                            break
                        k += 1
                    a += 1
                else:
                    k = a
                    while k < i1 and lf[k] <= rl[b] and pairs.count <= most:
                        failed = _push(&pairs, k, b)
                        if failed:
                            break
                        k += 1
                    b += 1
                if failed or pairs.count > most:
                    break
            a = i1
            b = j1
    try:
        if failed:
            raise MemoryError
        if pairs.count > most:
            raise OverflowError(most)
        return _arrays(&pairs)
    finally:
        _release(&pairs)


def difference(const int64_t[::1] lid, const int64_t[::1] lf, const int64_t[::1] ll,
               const int64_t[::1] rid, const int64_t[::1] rf, const int64_t[::1] rl):
    """What is left of the left periods without the right ones of equal id; the right periods of an id are disjoint.

    Returns
    -------
    (int64 array, int64 array, int64 array)
        Places in the left side, first and last of what remains.
    """
    cdef Py_ssize_t n = lid.shape[0], m = rid.shape[0], a, b = 0, k
    cdef int64_t start
    cdef int failed = 0
    cdef Pairs pairs = Pairs(NULL, NULL, 0, 0)
    cdef Pairs ends = Pairs(NULL, NULL, 0, 0)
    with nogil:
        for a in range(n):
            while b < m and (rid[b] < lid[a] or (rid[b] == lid[a] and rl[b] < lf[a])):
                b += 1
            start = lf[a]
            k = b
            while k < m and rid[k] == lid[a] and rf[k] <= ll[a]:
                if rf[k] > start:
                    failed = _push(&pairs, a, start) or _push(&ends, 0, rf[k] - 1)
                    if failed:
                        break
                if rl[k] + 1 > start:
                    start = rl[k] + 1
                k += 1
            if not failed and start <= ll[a]:
                failed = _push(&pairs, a, start) or _push(&ends, 0, ll[a])
            if failed:
                break
    try:
        if failed:
            raise MemoryError
        places, first = _arrays(&pairs)
        _, last = _arrays(&ends)
        return places, first, last
    finally:
        _release(&pairs)
        _release(&ends)


def joined(const int64_t[::1] ids, const int64_t[::1] first, const int64_t[::1] last, Py_ssize_t groups):
    """The periods of each id, those that overlap or touch as one; rows are sorted by their first time-points.

    Returns
    -------
    (int64 array, int64 array)
        The rows with which periods begin, ascending, and where periods end.
    """
    import numpy as np  # brought in by the first columns
    cdef Py_ssize_t n = ids.shape[0], i, made = 0
    cdef int64_t at
    begins_array, ends_array = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] begins = begins_array, ends = ends_array, open = np.full(groups, -1, np.int64)
    with nogil:
        for i in range(n):
            at = open[ids[i]]
            if at >= 0 and first[i] <= ends[at] + 1:
                if last[i] > ends[at]:
                    ends[at] = last[i]
                continue
            open[ids[i]] = made
            begins[made] = i
            ends[made] = last[i]
            made += 1
    return begins_array[:made].copy(), ends_array[:made].copy()


def group_max(const int64_t[::1] ids, const int64_t[::1] values, Py_ssize_t groups):
    """The largest value of each group; every group has a row."""
    import numpy as np  # brought in by the first columns
    result_array = np.full(groups, -2**63, np.int64)
    cdef int64_t[::1] result = result_array
    cdef Py_ssize_t i
    for i in range(ids.shape[0]):
        if values[i] > result[ids[i]]:
            result[ids[i]] = values[i]
    return result_array


cdef class Index:
    """Rows of a table that grows, by the values of some columns.

    Rows are numbered from 0; those of a hash are a chain, the newest first. Dead ones are forgotten when they are met.

    Parameters
    ----------
    room : int
        Rows that are expected.

    Attributes
    ----------
    rows : int
        Rows that are in it.
    steps : int
        Links of chains that were followed so far, and rows that were put in: the work that was done.
    """

    cdef int64_t* heads     # [size] the newest row of a hash, or -1
    cdef int64_t* links     # [room] the next older one
    cdef uint64_t* hashes   # [room]
    cdef Py_ssize_t size
    cdef Py_ssize_t room
    cdef readonly Py_ssize_t rows
    cdef readonly int64_t steps

    def __cinit__(self, Py_ssize_t room):
        self.size, self.room = 64, max(room, 64)
        while self.size < self.room:
            self.size *= 2
        self.heads = <int64_t*>malloc(self.size * sizeof(int64_t))
        self.links = <int64_t*>malloc(self.room * sizeof(int64_t))
        self.hashes = <uint64_t*>malloc(self.room * sizeof(uint64_t))
        if self.heads == NULL or self.links == NULL or self.hashes == NULL:
            raise MemoryError
        memset(self.heads, 0xFF, self.size * sizeof(int64_t))

    def __dealloc__(self):
        free(self.heads)
        free(self.links)
        free(self.hashes)

    @property
    def nbytes(self):
        """Bytes that are held."""
        return self.size * 8 + self.room * 16

    def add(self, list columns, Py_ssize_t end):
        """Put in the rows from `rows` on and before `end` of some columns; all of them, or none where memory ends."""
        import numpy as np  # brought in by the first columns
        cdef Py_ssize_t begin = self.rows, i, place, size = self.size
        cdef uint64_t[::1] hashed
        cdef const int64_t[::1] column
        if end <= begin:
            return
        hashed = np.zeros(end - begin, np.uint64)
        for column in columns:
            for i in range(begin, end):
                hashed[i - begin] = _mix(hashed[i - begin] ^ <uint64_t>column[i])
        if end > self.room:
            self._make_room(end)
        while size < end:
            size *= 4
        if size > self.size:
            self._rehash(size)
        for i in range(begin, end):
            self.hashes[i] = hashed[i - begin]
            place = self.hashes[i] & <uint64_t>(self.size - 1)
            self.links[i] = self.heads[place]
            self.heads[place] = i
        self.rows = end
        self.steps += end - begin

    cdef int _make_room(self, Py_ssize_t rows) except -1:
        cdef Py_ssize_t room = self.room
        while room < rows:
            room *= 2
        self.links = <int64_t*>grown(self.links, room * sizeof(int64_t))
        self.hashes = <uint64_t*>grown(self.hashes, room * sizeof(uint64_t))
        self.room = room
        return 0

    cdef int _rehash(self, Py_ssize_t size) except -1:
        cdef Py_ssize_t i, place
        cdef int64_t* heads = <int64_t*>malloc(size * sizeof(int64_t))
        if heads == NULL:
            raise MemoryError
        free(self.heads)
        self.heads, self.size = heads, size
        for i in range(size):
            heads[i] = -1
        for i in range(self.rows):
            place = self.hashes[i] & <uint64_t>(size - 1)
            self.links[i] = heads[place]
            heads[place] = i
        self.steps += self.rows
        return 0

    def find(self, list keys, list columns, const uint8_t[::1] alive, Py_ssize_t count):
        """The rows that are equal to some keys, and alive.

        Parameters
        ----------
        keys, columns : list of int64 arrays
            Of the keys, `count` each, and of the table.
        alive : uint8 array
            Of the table's rows.

        Returns
        -------
        (int64 array, int64 array)
            Places of keys, ascending, and rows.
        """
        import numpy as np  # brought in by the first columns
        cdef Py_ssize_t i
        cdef int64_t row
        cdef int64_t* link
        cdef int width = len(keys), c
        cdef bint same
        cdef int failed = 0
        cdef Pairs pairs = Pairs(NULL, NULL, 0, 0)
        cdef uint64_t[::1] hashed = np.zeros(count, np.uint64)
        cdef const int64_t[::1] column
        cdef const int64_t** ours = <const int64_t**>malloc((width + 1) * sizeof(int64_t*))
        cdef const int64_t** theirs = <const int64_t**>malloc((width + 1) * sizeof(int64_t*))
        if ours == NULL or theirs == NULL:
            free(ours)
            free(theirs)
            raise MemoryError
        if count and self.rows:
            for c in range(width):
                column = columns[c]
                ours[c] = &column[0]
                column = keys[c]
                theirs[c] = &column[0]
                for i in range(count):
                    hashed[i] = _mix(hashed[i] ^ <uint64_t>column[i])
            for i in range(count):
                link = &self.heads[hashed[i] & <uint64_t>(self.size - 1)]
                while link[0] >= 0:
                    row = link[0]
                    self.steps += 1
                    if not alive[row]:
                        link[0] = self.links[row]
                        continue
                    if self.hashes[row] == hashed[i]:
                        same = True
                        for c in range(width):
                            if ours[c][row] != theirs[c][i]:
                                same = False
                                break
                        if same:
                            failed = _push(&pairs, i, row)
                            if failed:
                                break
                    link = &self.links[row]
                if failed:
                    break
        free(ours)
        free(theirs)
        try:
            if failed:
                raise MemoryError
            return _arrays(&pairs)
        finally:
            _release(&pairs)
