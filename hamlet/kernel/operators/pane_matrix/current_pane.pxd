from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.plan cimport Arrival, Entry, Query
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport Core, Member
from hamlet.kernel.state.query_state cimport State

cdef int step(
    Core* k, int query, State* s, const Entry* only, const int64_t* rows, int events
) noexcept nogil
cdef int take_burst(
    Core* k, const Query* q, State* s, const Member* member, int64_t events, const Tally* tally
) noexcept nogil
cdef int end_pane(Core* k, const Query* q, State* s) noexcept nogil
cdef bint extends(const Query* q, const Arrival* a, uint64_t live) noexcept nogil
