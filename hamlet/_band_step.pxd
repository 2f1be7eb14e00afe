from libc.stdint cimport int64_t

from hamlet._kernel cimport Core, Graphlet

cdef int step_band(
    Core* k, int number, int64_t key, int64_t time, int kind, const int64_t* rows, int events, bint* done
) noexcept nogil
cdef int find_lanes(Core* k, int number, Graphlet* g) noexcept nogil
cdef int burst_band(Core* k, int number, const Graphlet* g, int role) noexcept nogil
