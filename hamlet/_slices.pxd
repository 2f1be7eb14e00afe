from libc.stdint cimport int64_t

from hamlet._kernel cimport Core

cdef int process_slices(
    Core* k, const int64_t* rows, Py_ssize_t n, const int64_t* keys, const int64_t* times, const int64_t* orders
) noexcept nogil
