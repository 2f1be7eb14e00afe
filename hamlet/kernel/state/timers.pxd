from libc.stdint cimport int64_t

from hamlet.kernel.state.core cimport Core

cdef int advance_time(Core* k, int64_t time) noexcept nogil
