from libc.stdint cimport int64_t, uint64_t

from hamlet._kernel cimport Core, Graphlet

cdef int join_burst(Core* k, Graphlet* g, int kind, int64_t key, int64_t time, int64_t row) noexcept nogil
cdef int end_bursts(Core* k, uint64_t graphlets) noexcept nogil
