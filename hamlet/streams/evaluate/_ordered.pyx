"""Values in order while they come and go: for percentiles, and for the least and the greatest of instances.

They lie in blocks, so that a change moves a few of them whatever their number. Changes wait until somebody looks; where
they are many by then, all is sorted anew, which costs less.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort
from libc.string cimport memcpy, memmove

from hamlet.memory.arrays cimport grown
from hamlet.streams.evaluate._cells cimport FLOAT, UINT

cdef enum:
    SIZE = 512   # keys of a block
    SHARE = 16   # changes by which a set is brought up to date are at most this part of it
    FEW = 64     # or so many

cdef uint64_t SIGN = <uint64_t>1 << 63


cdef inline uint64_t key_of(Cell value, int family) noexcept nogil:
    """A number in the order of the values."""
    if family == UINT:
        return value.u
    if family == FLOAT and value.u & SIGN:
        return ~value.u
    return value.u ^ SIGN


cdef inline Cell value_of(uint64_t key, int family) noexcept nogil:
    cdef Cell value
    if family == UINT:
        value.u = key
    elif family == FLOAT and not key & SIGN:
        value.u = ~key
    else:
        value.u = key ^ SIGN
    return value


cdef int by_key(const void* left, const void* right) noexcept nogil:
    cdef uint64_t x = (<const uint64_t*>left)[0], y = (<const uint64_t*>right)[0]
    return (x > y) - (x < y)


cdef inline int64_t first_at_least(const uint64_t* keys, int64_t n, uint64_t key) noexcept nogil:
    cdef int64_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


cdef class Ordered:
    """Values of one family, in order; equal ones are kept as often as they came.

    Where `settle` says that too much has changed, `fill` has to be called before anything is read.
    """

    def __cinit__(self, int family):
        self.family = family

    def __dealloc__(self):
        self.free_blocks()
        free(self.blocks)
        free(self.changes)

    cdef int free_blocks(self) noexcept:
        cdef int64_t place
        for place in range(self.count):
            free(self.blocks[place].keys)
        self.nbytes -= self.count * SIZE * 8
        self.count = self.n = 0
        return 0

    cdef int change(self, Cell value, int sign) except -1:
        """A value comes, or one that is there goes."""
        cdef int64_t room
        if self.stale:
            return 0
        if self.changed == self.change_room:
            if self.changed >= FEW and self.changed > self.n // SHARE:
                self.stale, self.changed = True, 0
                return 0
            room = 2 * self.change_room + FEW
            self.changes = <Change*>grown(self.changes, room * sizeof(Change))
            self.nbytes += (room - self.change_room) * <int64_t>sizeof(Change)
            self.change_room = room
        self.changes[self.changed].key, self.changes[self.changed].sign = key_of(value, self.family), sign
        self.changed += 1
        return 0

    cdef int fill(self, const Cell* values, int64_t n) except -1:
        """Begin anew with these values."""
        cdef uint64_t* keys = <uint64_t*>malloc((n + 1) * sizeof(uint64_t))
        cdef int64_t place, part
        if keys is NULL:
            raise MemoryError
        try:
            for place in range(n):
                keys[place] = key_of(values[place], self.family)
            qsort(keys, n, sizeof(uint64_t), by_key)
            self.free_blocks()
            self.stale, self.changed = True, 0  # until all are there
            for place in range(0, n, SIZE // 2):
                self.open_block(self.count)
                part = min(n - place, <int64_t>(SIZE // 2))
                memcpy(self.blocks[self.count - 1].keys, keys + place, part * sizeof(uint64_t))
                self.blocks[self.count - 1].used = part
            self.n, self.stale = n, False
        finally:
            free(keys)
        return 0

    cdef bint settle(self) except -1:
        """Take in what has changed; whether that is all, and nothing has to be filled."""
        cdef int64_t place
        if self.changed > FEW and self.changed > self.n // SHARE or self.n < self.count * SIZE // 8 - SIZE:
            self.stale = True
        if not self.stale:
            self.stale = True  # if something fails in between
            for place in range(self.changed):
                if self.changes[place].sign > 0:
                    self.come(self.changes[place].key)
                else:
                    self.go(self.changes[place].key)
            self.stale = False
        self.changed = 0
        return not self.stale

    cdef Cell at(self, int64_t place) noexcept:
        """The value before which so many are no greater; `place` is below `n`."""
        cdef int64_t block = 0
        while place >= self.blocks[block].used:
            place -= self.blocks[block].used
            block += 1
        return value_of(self.blocks[block].keys[place], self.family)

    cdef int open_block(self, int64_t place) except -1:
        """An empty block at a place."""
        cdef uint64_t* keys
        cdef int64_t room
        if self.count == self.room:
            room = 2 * self.room + 1
            self.blocks = <Block*>grown(self.blocks, room * sizeof(Block))
            self.nbytes += (room - self.room) * <int64_t>sizeof(Block)
            self.room = room
        keys = <uint64_t*>malloc(SIZE * sizeof(uint64_t))
        if keys is NULL:
            raise MemoryError
        memmove(&self.blocks[place + 1], &self.blocks[place], (self.count - place) * sizeof(Block))
        self.blocks[place].keys, self.blocks[place].used = keys, 0
        self.count += 1
        self.nbytes += SIZE * 8
        return 0

    cdef int64_t block_of(self, uint64_t key) noexcept nogil:
        """The first block whose last key is not below; the last block where there is none."""
        cdef int64_t low = 0, high = self.count - 1, middle
        while low < high:
            middle = (low + high) // 2
            if self.blocks[middle].keys[self.blocks[middle].used - 1] < key:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int come(self, uint64_t key) except -1:
        cdef int64_t place
        cdef Block* block
        if self.count == 0:
            self.open_block(0)
        place = self.block_of(key)
        block = &self.blocks[place]
        if block.used == SIZE:
            self.open_block(place + 1)
            block = &self.blocks[place]
            memcpy(self.blocks[place + 1].keys, block.keys + SIZE // 2, SIZE // 2 * sizeof(uint64_t))
            block.used = self.blocks[place + 1].used = SIZE // 2
            if block.keys[block.used - 1] < key:
                block = &self.blocks[place + 1]
        place = first_at_least(block.keys, block.used, key)
        memmove(block.keys + place + 1, block.keys + place, (block.used - place) * sizeof(uint64_t))
        block.keys[place] = key
        block.used += 1
        self.n += 1
        return 0

    cdef int go(self, uint64_t key) except -1:
        cdef int64_t number = self.block_of(key) if self.count else 0, place
        cdef Block* block = &self.blocks[number]
        place = first_at_least(block.keys, block.used, key) if self.count else 0
        if self.count == 0 or place == block.used or block.keys[place] != key:
            raise SystemError("a value goes that is not there")
        block.used -= 1
        self.n -= 1
        memmove(block.keys + place, block.keys + place + 1, (block.used - place) * sizeof(uint64_t))
        if block.used == 0:
            free(block.keys)
            self.count -= 1
            self.nbytes -= SIZE * 8
            memmove(block, block + 1, (self.count - number) * sizeof(Block))
        return 0
