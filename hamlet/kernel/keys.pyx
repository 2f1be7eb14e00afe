"""Numbers for keys: a hash table from tuples of 64-bit codes, NULL a value like others, to small numbers.

Where a key is one code and the codes lie close together, a plain table beside it has the number of each, so that most
rows are numbered without a branch.

The numbers of keys that are forgotten are given to new ones, so that memory and the kernel's arrays follow the keys
that are alive, not those ever seen. What a code stands for is known in Python (`hamlet.engine.keys`).
"""

import cython
import numpy as np

from libc.stdint cimport INT8_MAX, INT32_MAX, INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from hamlet.memory.arrays cimport regrown

cdef extern from "direct_address.h" nogil:
    const int NEAR_TABLE
    bint near_numbers(
        const void* code, int width, long n, const int32_t* near, int64_t base, uint64_t reach, int32_t* found
    )
    long near_small(
        const void* code, int width, long n, const int32_t* near, int64_t base, uint64_t reach, const int8_t* classes,
        int8_t* found
    )


cdef enum:
    LEAST_SLOTS = 64
    EMPTY = -1
    NO_MEMORY = -2
    PIECE = 1024          # rows that are numbered before a look at which are new
    ROOM = 1024           # codes that are few whatever the number of keys
    SPREAD = 4            # times as many codes as keys still lie close together

ctypedef fused Code:
    int32_t
    int64_t


@cython.final
cdef class KeyTable:
    """Keys by number and numbers by key.

    Parameters
    ----------
    columns : int
        Codes of a key.

    Attributes
    ----------
    size : int
        All numbers are below.
    count : int
        Keys that are known.
    created : int
        Numbers given so far; a key that was forgotten counts anew.
    """

    cdef int columns
    cdef int width               # words of a key: its codes, then a bit per NULL
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t count
    cdef readonly int64_t created
    cdef Py_ssize_t capacity
    cdef int64_t* word           # [capacity][width]
    cdef uint8_t* used           # [capacity]
    cdef int32_t* spare          # [capacity] numbers to be given anew, the next one last
    cdef Py_ssize_t spares
    cdef int32_t* slot           # [slots] numbers, or EMPTY
    cdef Py_ssize_t slots        # a power of two, at least twice `count`
    cdef int32_t* near           # [reach + 1] numbers by code - base, EMPTY for others and at its end; NULL: not kept
    cdef int64_t base
    cdef uint64_t reach

    def __cinit__(self, int columns):
        self.columns = columns
        self.width = columns + (columns + 63) // 64
        self.slots = LEAST_SLOTS
        self.slot = <int32_t*> malloc(self.slots * sizeof(int32_t))
        if self.slot == NULL:
            raise MemoryError
        memset(self.slot, 0xFF, self.slots * sizeof(int32_t))
        if not self._draw_near():
            raise MemoryError

    def __dealloc__(self):
        free(self.word)
        free(self.used)
        free(self.spare)
        free(self.slot)
        free(self.near)

    @property
    def nbytes(self):
        """Bytes of the table."""
        cdef Py_ssize_t near = 0 if self.near == NULL else self.reach + 1
        return self.capacity * (self.width * sizeof(int64_t) + 5) + (self.slots + near) * sizeof(int32_t)

    def encode(self, columns, chosen, Py_ssize_t rows):
        """The number of the key of each row, or of each that is chosen; a new one where it is not known.

        Parameters
        ----------
        columns : sequence of (int64 or int32 array of shape (rows,), uint8 array of shape (rows,) or None)
            Codes, and 1 where there is a value.
        chosen : int32 array of shape (m,) or None
            Rows; by default all.
        rows : int

        Returns
        -------
        int32 array of shape (rows,) or (m,)
        """
        cdef Py_ssize_t n = rows if chosen is None else len(chosen)
        found = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] number_view = found
        cdef const int32_t[::1] row_view
        cdef const int64_t[::1] data_view
        cdef const int32_t[::1] short_view
        cdef const uint8_t[::1] valid_view
        cdef const int32_t* row = NULL
        cdef const int64_t** data
        cdef const uint8_t** valid
        cdef Py_ssize_t i
        cdef bint fits
        if n == 0:
            return found
        if chosen is not None:
            row_view = chosen
            row = &row_view[0]
        if self.columns == 1 and columns[0][1] is None and columns[0][0].dtype == np.int32:
            short_view = columns[0][0]
            assert len(short_view) == rows
            with nogil:
                fits = self._encode_column(&short_view[0], row, n, &number_view[0])
            if not fits:
                raise MemoryError
            return found
        data = <const int64_t**> calloc(self.columns + 1, sizeof(void*))
        valid = <const uint8_t**> calloc(self.columns + 1, sizeof(void*))
        if data == NULL or valid == NULL:
            free(data)
            free(valid)
            raise MemoryError
        held = []
        try:
            for i, (codes, present) in enumerate(columns):
                data_view = codes.astype(np.int64, copy=False)
                held.append(data_view)
                assert len(data_view) == rows
                data[i] = &data_view[0]
                if present is not None:
                    valid_view = present
                    assert len(valid_view) == rows
                    valid[i] = &valid_view[0]
            with nogil:
                if self.columns == 1 and valid[0] == NULL:
                    fits = self._encode_column(data[0], row, n, &number_view[0])
                else:
                    fits = self._encode(data, valid, row, n, &number_view[0])
        finally:
            free(data)
            free(valid)
        if not fits:
            raise MemoryError
        return found

    def in_bytes(self, const Code[::1] codes, const int8_t[::1] classes, Py_ssize_t matched):
        """The numbers of keys of one column without NULL in bytes, -1 where the class of a row is negative.

        Parameters
        ----------
        codes : int64 or int32 array of shape (n,)
        classes : int8 array of shape (n,)
        matched : int
            How many of them are not negative.

        Returns
        -------
        int8 array of shape (n,), or None
            None where there are too many keys, or some are not known.
        """
        cdef Py_ssize_t n = len(codes), count
        assert self.columns == 1 and len(classes) == n
        if self.near == NULL or self.size > INT8_MAX or n == 0:
            return None
        found = np.empty(n, dtype=np.int8)
        cdef int8_t[::1] view = found
        with nogil:
            count = near_small(
                &codes[0], sizeof(codes[0]), n, self.near, self.base, self.reach, &classes[0], &view[0]
            )
        return found if count == matched else None

    cdef bint _encode(
        self, const int64_t** data, const uint8_t** valid, const int32_t* chosen, Py_ssize_t n, int32_t* found
    ) noexcept nogil:
        cdef int64_t* key = <int64_t*> calloc(self.width + 1, sizeof(int64_t))
        cdef int64_t last = EMPTY
        cdef Py_ssize_t i, row
        cdef int column
        cdef bint same
        if key == NULL:
            return False
        if self.columns == 0:  # there is one key
            last = self._number(key)
            for i in range(n):
                found[i] = <int32_t> last
            free(key)
            return last != NO_MEMORY
        for i in range(n):
            row = i if chosen == NULL else chosen[i]
            same = last >= 0
            for column in range(self.columns):
                if valid[column] != NULL and not valid[column][row]:
                    if not key[self.columns + (column >> 6)] >> (column & 63) & 1:
                        key[self.columns + (column >> 6)] |= <int64_t> (<uint64_t> 1 << (column & 63))
                        key[column] = 0
                        same = False
                    continue
                if key[self.columns + (column >> 6)] >> (column & 63) & 1:
                    key[self.columns + (column >> 6)] &= ~<int64_t> (<uint64_t> 1 << (column & 63))
                    same = False
                elif key[column] != data[column][row]:
                    same = False
                key[column] = data[column][row]
            if not same:
                last = self._number(key)
                if last == NO_MEMORY:
                    break
            found[i] = <int32_t> last
        free(key)
        return last != NO_MEMORY

    cdef bint _encode_column(
        self, const Code* data, const int32_t* chosen, Py_ssize_t n, int32_t* found
    ) noexcept nogil:
        """Number keys of one column without NULL, new ones included."""
        cdef Py_ssize_t start = 0, stop
        while start < n:
            stop = min(start + PIECE, n)
            if self.near == NULL or not self._encode_near(data, chosen, start, stop, found):
                if not self._encode_piece(data, chosen, start, stop, found):
                    return False
            start = stop
        return True

    cdef bint _encode_near(
        self, const Code* data, const int32_t* chosen, Py_ssize_t start, Py_ssize_t stop, int32_t* found
    ) noexcept nogil:
        """Number rows by the plain table; False where that has not the number of each."""
        cdef const int32_t* near = self.near
        cdef uint64_t base = <uint64_t> self.base, reach = self.reach
        cdef int32_t number, missing = 0
        cdef Py_ssize_t i
        if chosen == NULL:
            return not near_numbers(data + start, sizeof(Code), stop - start, near, self.base, reach, found + start)
        for i in range(start, stop):
            number = near[min(<uint64_t> <int64_t> data[chosen[i]] - base, reach)]
            found[i] = number
            missing |= number
        return missing >= 0

    cdef bint _encode_piece(
        self, const Code* data, const int32_t* chosen, Py_ssize_t start, Py_ssize_t stop, int32_t* found
    ) noexcept nogil:
        """Number rows by the hash table; new keys get a number there."""
        cdef int64_t[2] key
        cdef int64_t last = EMPTY
        cdef uint64_t place
        cdef Py_ssize_t i, row
        key[1] = 0
        for i in range(start, stop):
            row = i if chosen == NULL else chosen[i]
            if last < 0 or key[0] != data[row]:
                key[0] = data[row]
                place = self._hash(key) & <uint64_t> (self.slots - 1)
                last = self.slot[place]
                if last < 0 or self.word[2 * last] != key[0] or self.word[2 * last + 1] != 0:
                    last = self._number(key)
                    if last == NO_MEMORY:
                        return False
            found[i] = <int32_t> last
        return True

    cdef inline uint64_t _hash(self, const int64_t* key) noexcept nogil:
        cdef uint64_t hash = 0x9E3779B97F4A7C15u
        cdef int i
        for i in range(self.width):
            hash ^= <uint64_t> key[i]
            hash *= 0xFF51AFD7ED558CCDu
            hash ^= hash >> 32
        hash *= 0xC4CEB9FE1A85EC53u
        return hash ^ hash >> 29

    cdef int64_t _number(self, const int64_t* key) noexcept nogil:
        """The number of a key; NO_MEMORY where memory is short."""
        cdef uint64_t place = self._hash(key) & <uint64_t> (self.slots - 1)
        cdef int64_t number
        while self.slot[place] >= 0:
            number = self.slot[place]
            if memcmp(self.word + number * self.width, key, self.width * sizeof(int64_t)) == 0:
                return number
            place = (place + 1) & <uint64_t> (self.slots - 1)
        if self.spares == 0 and self.size == self.capacity and not self._grow(self.size + 1):
            return NO_MEMORY
        if self.spares:
            self.spares -= 1
            number = self.spare[self.spares]
        else:
            number = self.size
            self.size += 1
        memcpy(self.word + number * self.width, key, self.width * sizeof(int64_t))
        self.used[number] = 1
        self.count += 1
        self.created += 1
        self.slot[place] = <int32_t> number
        if 2 * self.count > self.slots and not self._rebuild(2 * self.slots):
            return NO_MEMORY
        if self.near != NULL and key[1] == 0:
            if <uint64_t> key[0] - <uint64_t> self.base < self.reach:
                self.near[<uint64_t> key[0] - <uint64_t> self.base] = <int32_t> number
            elif not self._draw_near():
                return NO_MEMORY
        return number

    cdef bint _grow(self, Py_ssize_t least) noexcept nogil:
        cdef Py_ssize_t capacity = max(least, self.capacity + (self.capacity >> 1) + 16)
        if capacity >= INT32_MAX:
            return False
        if not regrown(<void**>&self.word, capacity * self.width * sizeof(int64_t) + 1):
            return False
        if not regrown(<void**>&self.used, capacity):
            return False
        if not regrown(<void**>&self.spare, capacity * sizeof(int32_t)):
            return False
        memset(self.used + self.capacity, 0, capacity - self.capacity)
        self.capacity = capacity
        return True

    cdef bint _rebuild(self, Py_ssize_t slots) noexcept nogil:
        """Put every key into a table of so many slots."""
        cdef int32_t* slot = <int32_t*> malloc(slots * sizeof(int32_t))
        cdef Py_ssize_t number
        cdef uint64_t place
        if slot == NULL:
            return False
        memset(slot, 0xFF, slots * sizeof(int32_t))
        free(self.slot)
        self.slot = slot
        self.slots = slots
        for number in range(self.size):
            if self.used[number]:
                place = self._hash(self.word + number * self.width) & <uint64_t> (slots - 1)
                while slot[place] >= 0:
                    place = (place + 1) & <uint64_t> (slots - 1)
                slot[place] = <int32_t> number
        return self._draw_near()

    cdef bint _draw_near(self) noexcept nogil:
        """Make the plain table anew, with room on the side where codes were new; False where memory is short."""
        cdef int64_t least = INT64_MAX, most = INT64_MIN, code
        cdef uint64_t wide, room
        cdef Py_ssize_t number
        free(self.near)
        self.near = NULL
        if self.columns != 1:
            return True
        for number in range(self.size):
            if self.used[number] and self.word[2 * number + 1] == 0:
                code = self.word[2 * number]
                least, most = min(least, code), max(most, code)
        if least > most:
            least = most = 0
        wide = <uint64_t> most - <uint64_t> least
        if wide >= <uint64_t> (SPREAD * self.count + ROOM):
            return True
        room = wide // 2 + 64  # on both sides, so that this is seldom done again
        if wide + 1 < NEAR_TABLE:
            room = (NEAR_TABLE - 2 - wide) // 2  # no more than two vectors hold
        if <uint64_t> least - <uint64_t> INT64_MIN < room or <uint64_t> INT64_MAX - <uint64_t> most < room:
            room = 0
        self.base = least - <int64_t> room
        self.reach = wide + 2 * room + 1
        self.near = <int32_t*> malloc((self.reach + 1) * sizeof(int32_t))
        if self.near == NULL:
            return False
        memset(self.near, 0xFF, (self.reach + 1) * sizeof(int32_t))
        for number in range(self.size):
            if self.used[number] and self.word[2 * number + 1] == 0:
                self.near[<uint64_t> self.word[2 * number] - <uint64_t> self.base] = <int32_t> number
        return True

    cdef void _tidy(self) except *:
        """Bring hash table and spare numbers up to date with the keys."""
        cdef Py_ssize_t slots = LEAST_SLOTS, number
        while slots < 2 * self.count + 2:
            slots *= 2
        if not self._rebuild(slots):
            raise MemoryError
        self.spares = 0
        for number in range(self.size - 1, -1, -1):
            if not self.used[number]:
                self.spare[self.spares] = <int32_t> number
                self.spares += 1

    def number(self, codes):
        """The number of one key; a new one where it is not known. `codes` has None for NULL."""
        key = [(np.array([code or 0], np.int64), np.array([code is not None], np.uint8)) for code in codes]
        return int(self.encode(key, None, 1)[0])

    def codes(self, int column, const int64_t[::1] numbers):
        """The codes of some keys in a column, and 1 where they are no NULL; int64 and uint8 arrays of shape (n,)."""
        cdef Py_ssize_t n = len(numbers), i
        cdef const int64_t* key
        codes = np.empty(n, dtype=np.int64)
        valid = np.empty(n, dtype=np.uint8)
        cdef int64_t[::1] code_view = codes
        cdef uint8_t[::1] valid_view = valid
        assert 0 <= column < self.columns
        for i in range(n):
            assert 0 <= numbers[i] < self.size
            key = self.word + numbers[i] * self.width
            code_view[i] = key[column]
            valid_view[i] = not key[self.columns + (column >> 6)] >> (column & 63) & 1
        return codes, valid

    def recode(self, int column, const int64_t[::1] numbers, const int64_t[::1] codes):
        """Replace the codes of some keys in a column; all keys stay different."""
        cdef Py_ssize_t i
        assert len(numbers) == len(codes)
        for i in range(len(numbers)):
            self.word[numbers[i] * self.width + column] = codes[i]
        if not self._rebuild(self.slots):
            raise MemoryError

    def numbers(self):
        """The numbers of the keys that are known, ascending; int64 array of shape (count,)."""
        cdef Py_ssize_t number, place = 0
        found = np.empty(self.count, dtype=np.int64)
        cdef int64_t[::1] view = found
        for number in range(self.size):
            if self.used[number]:
                view[place] = number
                place += 1
        return found

    def forget(self, const uint8_t[::1] live):
        """Forget the keys by whose number stands 0; numbers beyond the array are forgotten too."""
        cdef Py_ssize_t number
        for number in range(self.size):
            if self.used[number] and not (number < len(live) and live[number]):
                self.used[number] = 0
                self.count -= 1
        self._tidy()

    def load(self, columns, const uint8_t[::1] used, int64_t created):
        """Take over keys; the table is new.

        Parameters
        ----------
        columns : sequence of (int64 array of shape (keys,), uint8 array of shape (keys,))
            As `codes` gives them for `numbers`.
        used : uint8 array of shape (size,)
            1 where a number has a key.
        created : int
        """
        cdef const int64_t[::1] code_view
        cdef const uint8_t[::1] valid_view
        cdef Py_ssize_t number, place
        cdef int column
        assert self.size == 0
        if len(used) and not self._grow(len(used)):
            raise MemoryError
        self.size = len(used)
        if self.size:
            memset(self.word, 0, self.size * self.width * sizeof(int64_t))
        for number in range(self.size):
            self.used[number] = used[number] != 0
            self.count += self.used[number]
        for column, (codes, valid) in enumerate(columns):
            code_view = codes
            valid_view = valid
            assert len(code_view) == self.count
            place = 0
            for number in range(self.size):
                if not self.used[number]:
                    continue
                if valid_view[place]:
                    self.word[number * self.width + column] = code_view[place]
                else:
                    self.word[number * self.width + self.columns + (column >> 6)] |= (
                        <int64_t> (<uint64_t> 1 << (column & 63))
                    )
                place += 1
        self.created = created
        self._tidy()
