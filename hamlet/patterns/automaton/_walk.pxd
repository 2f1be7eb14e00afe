"""What may be reached from a row and a step, for other ways of matching."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef class Table:
    cdef const int32_t[::1] kinds, first, second, variables
    cdef const uint8_t** masks
    cdef list _kept
    cdef Py_ssize_t steps, block, room
    cdef bint bounded, open_end, begins
    cdef int64_t low, high, loaded      # rows of the partition, and the first row of the block in memory
    cdef int64_t* near                  # bounded: nearest end from (row, step), else unused
    cdef uint8_t* alive
    cdef int64_t* near_marks            # of the first row of each block
    cdef uint8_t* alive_marks
    cdef Py_ssize_t mark_room

    cdef int prepare(self, int64_t low, int64_t high) except -1 nogil
    cdef void load(self, int64_t number) noexcept nogil
    cdef void compute_alive(self, int64_t row, int64_t start) noexcept nogil
    cdef void compute_near(self, int64_t row, int64_t start) noexcept nogil
    cdef bint can(self, int64_t row, int32_t step, int64_t most) noexcept nogil
