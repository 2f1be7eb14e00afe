from hamlet.kernel.state.core cimport Core

cdef void load_row_columns(Core* k, object queries) except *
cdef void free_row_columns(Core* k) noexcept
cdef int unroll(Core* k, int query) noexcept nogil
