from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Rows


cdef int append_row(
    Core* k, int query, Partition* p, int64_t key, int64_t window, uint64_t* value
) noexcept nogil
cdef void free_rows(Core* k, Rows* r) noexcept
cdef int append_cell(
    Core* k, int query, int64_t key, int64_t window, const uint64_t* cell, const uint64_t* count, int width
) noexcept nogil
