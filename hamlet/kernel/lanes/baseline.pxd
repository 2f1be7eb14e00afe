from hamlet.kernel.lanes.lanes cimport Machine

cdef const Machine* machine_of_2() noexcept nogil
cdef const Machine* machine_of_1() noexcept nogil
