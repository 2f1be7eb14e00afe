from libc.stdint cimport int64_t, uint64_t

from hamlet._kernel cimport Core, Rows

cdef int append_row(
    Core* k, Rows* r, int64_t key, int64_t window, int width, const uint64_t* cell, int words
) noexcept nogil
cdef void free_rows(Rows* r) noexcept
