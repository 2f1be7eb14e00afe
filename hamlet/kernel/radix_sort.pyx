"""Rows in the order of small numbers (keys of a batch; windows and ranks of result rows), stable.

A counting sort where the numbers are about as many as the rows, else a radix sort; nothing at all where the rows stand
in order. What the kernel reads of a batch's events is put in order with them, so that it never looks back at columns
to find its steps.
"""

import cython
import numpy as np

from libc.stdint cimport INT32_MAX, int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from hamlet.kernel.cells cimport floor_divide

cdef extern from "selection_vector.h" nogil:
    const int SIFT_STEP
    long sift(const void* code, int width, long n, const int32_t* table, uint32_t last, int32_t* kind, int32_t* row)
    int ascend(const int64_t* number, long n)
    bint ascend_pairs(const int64_t* number, const int64_t* second, long n)

cdef extern from "direct_address.h" nogil:
    long near_small(
        const void* code, int width, long n, const int32_t* near, int64_t base, uint64_t reach, const int8_t* classes,
        int8_t* found
    )

ctypedef fused Code:
    int8_t
    int16_t
    int32_t

cdef enum:
    FEW = 24               # rows that are put in place one by one
    DIGIT = 11             # bits of a pass of the radix sort
    COUNTERS = 1 << DIGIT
    ROOM = 4096            # counters that are cheap whatever the number of rows
    KEPT = 1 << 18         # rows of an area that is kept for later batches
    PIECE = 1024           # numbers between two looks

cdef list spare = []       # areas that nobody uses; there are as many as kernels that ever ran at one time


cdef Py_ssize_t order_rows(const int64_t* number, Py_ssize_t n, int64_t limit, int64_t* rows) noexcept nogil:
    """The places of numbers in ascending order, equal ones as they come.

    Parameters
    ----------
    number : int64 array of shape (n,)
        From 0 to below `limit`.
    rows : int64 array of shape (n,)
        Is filled.

    Returns
    -------
    int
        n; -1 where memory is short.
    """
    cdef Py_ssize_t i
    for i in range(n):
        rows[i] = i
    if n <= FEW:
        insert_rows(number, n, rows)
        return n
    if limit <= 4 * n + ROOM:
        return count_rows(number, n, limit, rows)
    return radix_rows(number, n, limit, rows)


cdef void insert_rows(const int64_t* number, Py_ssize_t count, int64_t* rows) noexcept nogil:
    cdef Py_ssize_t i, place
    cdef int64_t row
    for i in range(1, count):
        row = rows[i]
        place = i
        while place > 0 and number[rows[place - 1]] > number[row]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row


cdef Py_ssize_t count_rows(const int64_t* number, Py_ssize_t count, int64_t limit, int64_t* rows) noexcept nogil:
    cdef int32_t* place = <int32_t*> calloc(limit + 1, sizeof(int32_t))
    cdef int64_t* given = <int64_t*> malloc(count * sizeof(int64_t))
    cdef Py_ssize_t i
    cdef int64_t one
    if place == NULL or given == NULL:
        free(place)
        free(given)
        return -1
    for i in range(count):
        given[i] = rows[i]
        place[number[rows[i]] + 1] += 1
    for i in range(limit):
        place[i + 1] += place[i]
    for i in range(count):
        one = number[given[i]]
        rows[place[one]] = given[i]
        place[one] += 1
    free(place)
    free(given)
    return count


cdef Py_ssize_t radix_rows(const int64_t* number, Py_ssize_t count, int64_t limit, int64_t* rows) noexcept nogil:
    cdef int64_t* other = <int64_t*> malloc(count * sizeof(int64_t))
    cdef int64_t* source = rows
    cdef int64_t* target = other
    cdef Py_ssize_t place[COUNTERS]
    cdef Py_ssize_t i, total, here
    cdef int shift = 0
    cdef uint64_t digit
    if other == NULL:
        return -1
    while shift < 63 and (limit - 1) >> shift:
        for i in range(COUNTERS):
            place[i] = 0
        for i in range(count):
            place[<uint64_t> number[source[i]] >> shift & (COUNTERS - 1)] += 1
        total = 0
        for i in range(COUNTERS):
            here = place[i]
            place[i] = total
            total += here
        for i in range(count):
            digit = <uint64_t> number[source[i]] >> shift & (COUNTERS - 1)
            target[place[digit]] = source[i]
            place[digit] += 1
        source, target = target, source
        shift += DIGIT
    if source != rows:
        for i in range(count):
            rows[i] = source[i]
    free(other)
    return count


cdef bint descends(const int32_t* number, Py_ssize_t n) noexcept nogil:
    """Whether some number is less than the one before; often the first few tell."""
    cdef Py_ssize_t start = 1, stop, i
    cdef int32_t less = 0
    while start < n and not less:
        stop = min(n, start + PIECE)
        for i in range(start, stop):
            less |= number[i] < number[i - 1]
        start = stop
    return less != 0


cdef inline int32_t key_of(int32_t number, int32_t part, int32_t parts) noexcept nogil:
    """The key of a number, -1 where it is of another part or none."""
    if number < 0:
        return -1
    if parts == 1:
        return number
    return number // parts if number % parts == part else -1


cdef void count_keys(const Portion* p, int32_t* counts, int32_t* others) noexcept nogil:
    """Count how often each key comes, at the place behind it; in two tables, for neighbours may be of one key."""
    cdef Py_ssize_t i
    for i in range(p.first, p.end - 1, 2):
        counts[key_of(p.number[i], p.part, p.parts) + 1] += 1
        others[key_of(p.number[i + 1], p.part, p.parts) + 1] += 1
    if (p.end - p.first) % 2:
        counts[key_of(p.number[p.end - 1], p.part, p.parts) + 1] += 1


cdef void spread(const Portion* p, int32_t* place, Event* events, const int64_t* data, int64_t* values) noexcept nogil:
    """Put events, and the values of a column if one is given, at the next place of their key."""
    cdef int32_t key, row, at
    cdef Py_ssize_t i
    if p.parts == 1 and p.rows == NULL and data != NULL:  # the same with less to look at
        for i in range(p.first, p.end):
            key = p.number[i]
            if key >= 0:
                at = place[key]
                place[key] = at + 1
                events[at].time = p.times[i]
                events[at].row = <int32_t> i
                events[at].kind = p.classes[i]
                values[at] = data[i]
        return
    for i in range(p.first, p.end):
        key = key_of(p.number[i], p.part, p.parts)
        if key >= 0:
            row = <int32_t> i if p.rows == NULL else p.rows[i]
            at = place[key]
            place[key] = at + 1
            events[at].time = p.times[row]
            events[at].row = row
            events[at].kind = p.classes[row]
            if data != NULL:
                values[at] = data[row]


cdef void spread_values(const Portion* p, int32_t* place, const int64_t* data, int64_t* values) noexcept nogil:
    """Put the values of one more column there."""
    cdef int32_t key
    cdef Py_ssize_t i
    for i in range(p.first, p.end):
        key = key_of(p.number[i], p.part, p.parts)
        if key >= 0:
            values[place[key]] = data[i if p.rows == NULL else p.rows[i]]
            place[key] += 1


cdef Py_ssize_t end_of_windows(const Portion* p, Py_ssize_t events, int64_t within) noexcept nogil:
    """Where about so many events of tumbling windows end, which are whole there; or all do."""
    cdef Py_ssize_t end = p.first + events
    cdef int64_t border
    if end + events // 2 >= p.end:
        return p.end
    border = (floor_divide(time_of(p.times, p.rows, end - 1), within) + 1) * within
    end = first_from(p.times, p.rows, end, p.end, border)
    return end if end + events // 2 < p.end else p.end


@cython.final
cdef class Area:
    """Where the events of a batch are put in the order of their keys; used again and again, for pages cost time."""

    def __dealloc__(self):
        cdef int column
        free(self.place)
        free(self.row)
        free(self.event)
        free(self.slice)
        for column in range(MOST_ARRANGED):
            free(self.own[column])

    cdef Py_ssize_t arrange(self, const Portion* p) noexcept nogil:
        """Fill `event`, `slice` and `value`.

        Returns
        -------
        int
            How many slices there are; -1 where memory is short.
        """
        cdef Py_ssize_t count, n = p.end - p.first
        cdef int column
        cdef bint sorted
        for column in range(MOST_ARRANGED):
            self.value[column] = NULL
        if n > FEW and 1 < p.limit <= 4 * (n // p.parts) + ROOM and descends(p.number + p.first, n):
            return self._count(p)
        count = self._choose(p, &sorted)
        if not sorted and not self._sort(count, p.limit):
            return -1
        if sorted and p.rows == NULL and count == n:
            for column in range(MOST_ARRANGED):
                if p.column[column] != NULL:
                    self.value[column] = p.column[column] + p.first
        return self._copy(p, count)

    cdef Py_ssize_t arrange_windows(
        self, const Portion* p, int64_t within, const int32_t* place_of, const int32_t* key_at, bint* ordered
    ) noexcept nogil:
        """Put events in the order of tumbling windows, then keys, where windows are few: slices are of one window.

        Parameters
        ----------
        within : int
            Ticks of a window.
        place_of, key_at : int32 arrays of shape (limit,), or NULL
            In which order the keys of a window come: the place of each, and which has each place.
        ordered : bool
            Whether the slices are in this order.
        """
        cdef Portion by_window = p[0]
        cdef Py_ssize_t i, slices, n = p.end - p.first
        cdef int64_t begin = floor_divide(time_of(p.times, p.rows, p.first), within) * within, end = begin + within, key
        cdef int64_t windows = (time_of(p.times, p.rows, p.end - 1) - begin) // within + 1, before = 0
        ordered[0] = False
        if windows > n or windows * p.limit > 2 * n // p.parts:
            return self.arrange(p)
        if self.place == NULL:
            self.place = <int32_t*> malloc((self.room + 1) * sizeof(int32_t))
        if self.place == NULL:
            return -1
        for i in range(p.first, p.end):
            while time_of(p.times, p.rows, i) >= end:
                end += within
                before += p.limit
            key = key_of(p.number[i], p.part, p.parts)
            if key >= 0 and place_of != NULL:
                key = place_of[key]
            self.place[i] = -1 if key < 0 else <int32_t> (before + key)
        ordered[0] = place_of != NULL
        by_window.number, by_window.part, by_window.parts = self.place, 0, 1
        by_window.limit = windows * p.limit
        slices = self.arrange(&by_window)
        for i in range(slices):
            self.slice[i].key = <int32_t> (self.slice[i].key % p.limit)
            if key_at != NULL:
                self.slice[i].key = key_at[self.slice[i].key]
        return slices

    cdef bint reserve(self, int column) noexcept nogil:
        """Make room for the values of a column; False where memory is short."""
        if self.own[column] == NULL:
            self.own[column] = <int64_t*> malloc((self.room + 1) * sizeof(int64_t))
        return self.own[column] != NULL

    cdef Py_ssize_t _choose(self, const Portion* p, bint* sorted) noexcept nogil:
        """Find the rows, and whether they are in order. Returns how many there are."""
        cdef int64_t* row = self.row
        cdef Py_ssize_t i, count = 0
        cdef int32_t one, last = 0, less = 0
        if p.parts == 1:
            for i in range(p.first, p.end):
                one = p.number[i]
                row[count] = <int64_t> one << 32 | (i if p.rows == NULL else p.rows[i])
                less |= (one >= 0) & (one < last)
                last = max(last, one)
                count += one >= 0
        else:
            for i in range(p.first, p.end):
                one = p.number[i] // p.parts
                row[count] = <int64_t> one << 32 | (i if p.rows == NULL else p.rows[i])
                if p.number[i] >= 0 and p.number[i] - one * p.parts == p.part:
                    less |= one < last
                    last = one
                    count += 1
        sorted[0] = not less
        return count

    cdef Py_ssize_t _count(self, const Portion* p) noexcept nogil:
        """A counting sort."""
        cdef int64_t limit = p.limit
        cdef int32_t* place = <int32_t*> calloc(2 * limit + 2, sizeof(int32_t))
        cdef const int32_t* end
        cdef const int64_t* data = NULL
        cdef int64_t* values = NULL
        cdef Py_ssize_t slices = 0
        cdef int32_t key, last = 0
        cdef int column
        if place == NULL:
            return -1
        count_keys(p, place, place + limit + 1)
        place[0] = 0  # where rows are left out
        for key in range(limit):
            place[key + 1] += place[key] + place[limit + 1 + key + 1]
        for column in range(MOST_ARRANGED):
            if p.column[column] == NULL:
                continue
            if not self.reserve(column):
                free(place)
                return -1
            self.value[column] = self.own[column]
            if data == NULL:
                data, values = p.column[column], self.own[column]
                continue
            memcpy(place + limit + 1, place, limit * sizeof(int32_t))
            spread_values(p, place + limit + 1, p.column[column], self.own[column])
        spread(p, place, self.event, data, values)
        end = place
        for key in range(limit):
            self.slice[slices].key = key
            self.slice[slices].end = end[key]
            slices += end[key] > last
            last = end[key]
        free(place)
        return slices

    cdef bint _sort(self, Py_ssize_t count, int64_t limit) noexcept nogil:
        """Put the chosen rows in order where they are few beside the keys; False where memory is short."""
        cdef int64_t* row = self.row
        cdef int64_t* given
        cdef Py_ssize_t i, place
        cdef int64_t one
        if count <= FEW:
            for i in range(1, count):
                one = row[i]
                place = i
                while place > 0 and row[place - 1] > one:
                    row[place] = row[place - 1]
                    place -= 1
                row[place] = one
            return True
        given = <int64_t*> malloc(3 * count * sizeof(int64_t))
        if given == NULL:
            return False
        for i in range(count):
            given[i] = row[i]
            given[count + i] = row[i] >> 32
            given[2 * count + i] = i
        if radix_rows(given + count, count, limit, given + 2 * count) < 0:
            free(given)
            return False
        for i in range(count):
            row[i] = given[given[2 * count + i]]
        free(given)
        return True

    cdef Py_ssize_t _copy(self, const Portion* p, Py_ssize_t count) noexcept nogil:
        """The events of rows that are in order."""
        cdef Py_ssize_t i, slices = 0
        cdef int32_t one
        for i in range(count):
            one = <int32_t> self.row[i]
            self.event[i].time = p.times[one]
            self.event[i].row = one
            self.event[i].kind = p.classes[one]
            if i == 0 or self.row[i] >> 32 != self.slice[slices - 1].key:
                self.slice[slices].key = <int32_t> (self.row[i] >> 32)
                slices += 1
            self.slice[slices - 1].end = <int32_t> (i + 1)
        return slices


cdef Area area_for(Py_ssize_t rows):
    """An area for a batch of so many rows."""
    cdef Area area = spare.pop() if spare else Area()
    cdef int column
    if rows >= INT32_MAX:
        raise MemoryError
    if rows > area.room:
        free(area.place)
        free(area.row)
        free(area.event)
        free(area.slice)
        for column in range(MOST_ARRANGED):
            free(area.own[column])
            area.own[column] = NULL
        area.room = rows
        area.place = NULL
        area.row = <int64_t*> malloc((rows + 1) * sizeof(int64_t))
        area.event = <Event*> malloc(rows * sizeof(Event))
        area.slice = <Slice*> malloc((rows + 1) * sizeof(Slice))
        if area.row == NULL or area.event == NULL or area.slice == NULL:
            area.room = 0
            raise MemoryError
    return area


cdef int give_back(Area area) except -1:
    """Let later batches use an area."""
    if area.room <= KEPT:
        spare.append(area)
    return 0


def looked_up(const Code[::1] numbers, const int32_t[::1] table):
    """`table[number]` for each number, and the table's last element for numbers that are negative or beyond it.

    Parameters
    ----------
    numbers : int8, int16 or int32 array of shape (n,)
    table : int32 array of shape (m,), m >= 1

    Returns
    -------
    int32 array of shape (n,)
    """
    cdef Py_ssize_t n = len(numbers), i
    cdef uint32_t last = <uint32_t> (len(table) - 1)
    found = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] view = found
    with nogil:
        for i in range(n):
            view[i] = table[min(<uint32_t> <int32_t> numbers[i], last)]
    return found


def sifted(const Code[::1] numbers, const int32_t[::1] table):
    """Look numbers up in a table, and list the rows where what is found is not negative.

    Returns
    -------
    found : int32 array of shape (n,)
    rows : int32 array of shape (m,), m < n, or None
        Ascending; None where no number found is negative.
    """
    cdef Py_ssize_t n = len(numbers), count
    if n >= INT32_MAX - SIFT_STEP:
        raise MemoryError
    found = np.empty(n, dtype=np.int32)
    rows = np.empty(n + SIFT_STEP, dtype=np.int32)
    cdef int32_t[::1] view = found
    cdef int32_t[::1] row_view = rows
    if n == 0:
        return found, None
    with nogil:
        count = sift(
            &numbers[0], sizeof(numbers[0]), n, &table[0], <uint32_t> (len(table) - 1), &view[0], &row_view[0]
        )
    return found, None if count == n else rows[:count]


def in_bytes(const Code[::1] numbers, const int32_t[::1] table):
    """Look numbers up in a table whose entries fit a byte, and count those where what is found is not negative.

    Returns
    -------
    found : int8 array of shape (n,), or None
        None where the table has larger numbers.
    count : int
    """
    cdef Py_ssize_t n = len(numbers), count = 0, i
    for i in range(len(table)):
        if table[i] != <int8_t> table[i]:
            return None, 0
    found = np.empty(n, dtype=np.int8)
    cdef int8_t[::1] view = found
    if n:
        with nogil:
            count = near_small(&numbers[0], sizeof(numbers[0]), n, &table[0], 0, len(table) - 1, NULL, &view[0])
    return found, count


def ascending(const int64_t[::1] numbers, const int64_t[::1] seconds=None):
    """Whether no number is less than the one before; where they are equal, no second number, if these are given."""
    cdef Py_ssize_t n = len(numbers)
    cdef bint found = True
    if seconds is None:
        return ascent(numbers) > 0
    assert len(seconds) == n
    if n == 0:
        return True
    with nogil:
        found = ascend_pairs(&numbers[0], &seconds[0], n)
    return found


def ascent(const int64_t[::1] numbers):
    """2 where each number is greater than the one before, 1 where none is less, else 0."""
    cdef Py_ssize_t n = len(numbers)
    cdef int found = 2
    if n:
        with nogil:
            found = ascend(&numbers[0], n)
    return found
