from hamlet.kernel.lanes.lanes cimport Machine

cdef const Machine* machine_of_8() noexcept nogil
