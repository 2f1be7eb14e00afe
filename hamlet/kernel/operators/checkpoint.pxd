from libc.stdint cimport int64_t

from hamlet.kernel.state.checkpoint cimport Bounds, Cursor
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.operator cimport Bytes

cdef enum:
    MOST_COUNTERS = 20

cdef int counters_of(Core* k, int64_t** counter) noexcept nogil
cdef void write_states(Core* k, Bytes* to) noexcept nogil
cdef int read_states(Core* k, Cursor* source, Bounds* bounds, int64_t keys) noexcept nogil
