from hamlet.kernel.state.core cimport Core, Graphlet

cdef void join_graphlet(Core* k, int kind, int type) except *
cdef void list_live(const Core* k, Graphlet* g) noexcept nogil
cdef void free_graphlets(Core* k) noexcept
cdef void find_consumers(Core* k) except *
