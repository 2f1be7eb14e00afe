from hamlet._kernel cimport Chosen, Core

cdef enum Chose:
    SHORT = -1           # of memory
    UNFIT = 0
    CHOSEN = 1

cdef int choose(Core* k, Chosen* chosen) noexcept nogil
cdef void free_chosen(Core* k, Chosen* chosen) noexcept nogil
