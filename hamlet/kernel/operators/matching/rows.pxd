from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Rows


cdef int append_row(
    Core* k, int query, Partition* p, int64_t key, int64_t window, uint64_t* value
) noexcept nogil
cdef int append_cell(
    Core* k, int query, int64_t key, int64_t window, uint64_t there, uint64_t what, const uint64_t* cell
) noexcept nogil
cdef void lay_row_columns(Core* k, int query) except *
cdef int unroll(Core* k, int query) noexcept nogil
cdef void free_rows(Rows* r) noexcept
cdef int append_marked(
    Core* k, int query, int64_t key, int64_t window, uint64_t there, uint64_t what, const uint64_t* count, int width,
    uint64_t* cell
) noexcept nogil
cdef int append_numbers(
    Core* k, int query, int64_t key, int64_t window, int rows, uint64_t there, const uint64_t* what,
    const uint64_t* number
) noexcept nogil
cdef int append_sums(
    Core* k, int query, int64_t key, int64_t window, const uint64_t* sums, int width, uint64_t* cell
) noexcept nogil
