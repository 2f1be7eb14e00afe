from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Log, Partition


cdef int count_packed(
    Core* k, const Log* log, const Partition* p, int64_t key, int64_t window, Py_ssize_t entries, int listed
) noexcept nogil
