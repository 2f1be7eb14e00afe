from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.state.core cimport Core, Graphlet

cdef bint prepare_decisions(Core* k) noexcept
cdef void free_decisions(Core* k) noexcept
cdef uint64_t decide(Core* k, Graphlet* g) noexcept nogil
cdef void count_event(Core* k, int64_t key, int kind) noexcept nogil
cdef int note_burst(Core* k, Graphlet* g, uint64_t shared) noexcept nogil
cdef void note_single(Core* k, const Graphlet* g) noexcept nogil
