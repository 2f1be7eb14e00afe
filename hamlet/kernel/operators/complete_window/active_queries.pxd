from hamlet.kernel.core cimport Chosen, Core

cdef bint choose(Core* k, Chosen* chosen, bint maps) noexcept nogil
cdef void free_chosen(Core* k, Chosen* chosen) noexcept nogil
