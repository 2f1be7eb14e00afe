from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core


cdef void sort_by_key(uint64_t* event, uint64_t* spare, Py_ssize_t n, Py_ssize_t limit) noexcept nogil
cdef int take_events(
    Core* k, const uint64_t* event, Py_ssize_t n, const int64_t* times, const int64_t* orders, const int* classes
) noexcept nogil
