from hamlet.kernel.lanes.lanes cimport Machine

cdef const Machine* machine_of_4() noexcept nogil
cdef const Machine* machine_of_halves() noexcept nogil
