from libc.stdint cimport INT64_MAX, int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Log, Member, Partition, Taking


cdef int count_trends(
    Core* k, const Log* log, const Member* m, const Partition* p, int64_t key, int64_t window, Py_ssize_t first,
    Py_ssize_t entries
) noexcept nogil
cdef bint value_of(
    const Log* log, const Member* m, const Taking* taking, const uint64_t* kept, uint64_t* value
) noexcept nogil


cdef inline int64_t rank_of(const Taking* taking, uint64_t value) noexcept nogil:
    """A number in the order of values; of strings their own number, in which only equal ones are equal."""
    cdef int64_t bits = <int64_t> value
    return bits ^ (bits >> 63 & INT64_MAX) if taking.values.floating else bits
