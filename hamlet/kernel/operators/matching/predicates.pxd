from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Table, ValueSet

cdef void bind_scalars(Core* k, const Table* t, int predicate) noexcept nogil
cdef int fits_predicate(
    Core* k, int query, int predicate, const uint64_t* kept, int columns, Py_ssize_t row
) noexcept nogil
cdef void keep_columns(
    const Core* k, const Table* t, int columns, int end, uint64_t* kept, Py_ssize_t row
) noexcept nogil
cdef bint value_of(const Core* k, const ValueSet* s, Py_ssize_t row, int64_t* value) noexcept nogil
