from libc.stdint cimport int64_t

from hamlet.kernel.state.core cimport Core, RowColumns

cdef void load_row_columns(Core* k, object queries) except *
cdef void free_row_columns(Core* k) noexcept
cdef int make_room(Core* k, RowColumns* s, Py_ssize_t rows) noexcept nogil
cdef int begin_run(Core* k, RowColumns* s, int64_t window) noexcept nogil
cdef bint comes_last(const Core* k, int query) noexcept nogil
cdef int unroll(Core* k, int query) noexcept nogil
cdef object taken_columns(Core* k, int query)
