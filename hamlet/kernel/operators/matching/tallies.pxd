from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Log, Member, Partition, Taking


cdef int count_trends(
    Core* k, const Log* log, const Member* m, const Partition* p, int64_t key, int64_t window, Py_ssize_t first,
    Py_ssize_t entries
) noexcept nogil
cdef bint value_of(
    const Log* log, const Member* m, const Taking* taking, const uint64_t* kept, uint64_t* value
) noexcept nogil
