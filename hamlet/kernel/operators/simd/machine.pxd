from hamlet.kernel.lanes.lanes cimport Machine

cdef const Machine* machine_of(int width) noexcept nogil
cdef const Machine* machine_within(int lanes, int widest) noexcept nogil
cdef const Machine* live_machine_within(bint integers, int widest) noexcept nogil
cdef bint takes_halves(const Machine* machine) noexcept nogil
cdef int feature_of(const Machine* machine) noexcept nogil
