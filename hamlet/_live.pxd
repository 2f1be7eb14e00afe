from hamlet._kernel cimport Chosen, Core

cdef bint choose(Core* k, Chosen* chosen) noexcept nogil
cdef void free_chosen(Core* k, Chosen* chosen) noexcept nogil
