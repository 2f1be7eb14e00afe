from hamlet.kernel.state.core cimport Core

cdef int export_windows(Core* k, int query, int place) noexcept nogil
