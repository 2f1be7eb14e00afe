from libc.stdint cimport int32_t, int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Table
from hamlet.kernel.radix_sort cimport Area, Portion


cdef void sort_by_key(uint64_t* event, uint64_t* spare, Py_ssize_t n, Py_ssize_t limit) noexcept nogil
cdef int take_events(
    Core* k, const uint64_t* event, Py_ssize_t n, const int64_t* times, const int64_t* orders, const int* classes
) noexcept nogil
cdef bint may_be_whole(const Table* t) noexcept nogil
cdef int log_batch(
    Core* k, int query, Area area, const Portion* batch, const int32_t* place_of, const int32_t* key_at,
    const int64_t* orders, int64_t until
) noexcept nogil
