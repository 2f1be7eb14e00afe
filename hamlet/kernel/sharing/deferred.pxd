from libc.stdint cimport int64_t

from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport Core, Member
from hamlet.kernel.state.query_state cimport State

cdef void begin_pending(Core* k, int query, State* s) noexcept nogil
cdef int put_off(
    Core* k, int64_t key, const Member* member, int64_t events, const Tally* tally, bint* waits
) noexcept nogil
cdef int settle_all(Core* k) noexcept nogil
cdef int settle_pending(Core* k, int query) noexcept nogil
cdef void make_pending(Core* k) except *
cdef void free_pending(Core* k) noexcept


cdef inline int settle(Core* k, int query) noexcept nogil:
    """Let a state take in the bursts that wait for it, before anything else looks at it. Returns a Failure."""
    return settle_pending(k, query) if k.pending[query].state != NULL else 0
