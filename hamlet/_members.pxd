from hamlet._kernel cimport Core

cdef void join_graphlet(Core* k, int kind, int type) except *
cdef void free_graphlets(Core* k) noexcept
