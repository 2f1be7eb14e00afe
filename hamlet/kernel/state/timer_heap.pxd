from libc.stdint cimport int64_t

from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.query_state cimport State

cdef int schedule_slot(Core* k, int64_t slot, int64_t time) noexcept nogil
cdef int schedule(Core* k, State* s, int64_t slot, int64_t time) noexcept nogil
cdef int64_t pop_due(Core* k) noexcept nogil
