from hamlet.kernel.operators.simd.lanes cimport Machine

cdef const Machine* machine_of_2() noexcept nogil
cdef const Machine* machine_of_1() noexcept nogil
