from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition

cdef bint has_guards(const Core* k, int query, const int* classes, Py_ssize_t n) noexcept nogil
cdef int read_guards(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n,
    int64_t* fresh
) noexcept nogil
cdef int write_guards(
    Core* k, int query, Partition* p, const uint64_t* events, const int* classes, Py_ssize_t n, const int64_t* fresh
) noexcept nogil
