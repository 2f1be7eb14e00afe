from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core

cdef int take_step(
    Core* k, int query, int64_t key, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil
