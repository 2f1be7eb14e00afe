from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._cells cimport Cell

cdef struct Block:
    uint64_t* keys            # that many of SIZE are used, in order
    int64_t used

cdef struct Change:
    uint64_t key
    int sign                  # 1 comes, -1 goes


cdef class Ordered:
    cdef int family
    cdef Block* blocks
    cdef int64_t count        # of blocks
    cdef int64_t room
    cdef int64_t n            # values
    cdef Change* changes      # since the last look
    cdef int64_t changed
    cdef int64_t change_room
    cdef bint stale           # what has changed is not known any more: it is to be filled anew
    cdef readonly int64_t nbytes

    cdef int change(self, Cell value, int sign) except -1
    cdef int fill(self, const Cell* values, int64_t n) except -1
    cdef bint settle(self) except -1
    cdef Cell at(self, int64_t place) noexcept
    cdef int free_blocks(self) noexcept
    cdef int open_block(self, int64_t place) except -1
    cdef int64_t block_of(self, uint64_t key) noexcept nogil
    cdef int come(self, uint64_t key) except -1
    cdef int go(self, uint64_t key) except -1
