from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Log, Member, Partition, Taking


cdef int count_trends(
    Core* k, const Log* log, const Member* m, const Partition* p, int64_t key, int64_t window, Py_ssize_t first,
    Py_ssize_t entries
) noexcept nogil


cdef inline int64_t rank_of(const Taking* taking, uint64_t value) noexcept nogil:
    """A number in the order of values; of strings their own number, in which only equal ones are equal."""
    cdef int64_t bits = <int64_t> value
    return bits ^ (bits >> 63 & INT64_MAX) if taking.values.floating else bits


cdef inline bint value_of(
    const Log* log, const Member* m, const Taking* taking, const uint64_t* kept, uint64_t* value
) noexcept nogil:
    """Whether an event, whose attributes are kept, has a value that trends are grouped by; -0.0 is 0.0, NaN is none."""
    cdef double number
    if not (<const uint8_t*> (kept + log.columns))[m.column]:
        return False
    value[0] = kept[m.column]
    if taking.values.floating:
        number = (<double*> value)[0]
        if number != number:
            return False
        (<double*> value)[0] = number + 0.0
    return True
