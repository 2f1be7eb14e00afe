from hamlet.kernel.operators.simd.lanes cimport Machine

cdef const Machine* machine_of_8() noexcept nogil
