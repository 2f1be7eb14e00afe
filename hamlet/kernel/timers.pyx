"""Time moves on: windows that are due close, in states of queries and in blocks of bands, whatever events come."""

from libc.stdint cimport INT64_MIN, int64_t

from hamlet.kernel.cells cimport first_kept
from hamlet.kernel.core cimport Core
from hamlet.kernel.operators.scalar.state cimport State, free_state
from hamlet.kernel.operators.simd.blocks cimport advance_block
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.timer_heap cimport pop_due, schedule
from hamlet.kernel.windows cimport close_windows


cdef int advance_time(Core* k, int64_t time) noexcept nogil:
    """Close every window that ends at or before a time. Returns a Failure."""
    cdef int64_t slot, low
    cdef int query
    cdef State* s
    cdef const Query* q
    k.advanced = max(k.advanced, time)
    while k.calendar.dues and k.calendar.due[0].time <= time:
        slot = pop_due(k)
        if slot < 0:
            if advance_block(k, <int> (~slot % k.bands), ~slot // k.bands, time):
                return OUT_OF_MEMORY
            continue
        query = <int> (slot % k.queries)
        q = &k.query[query]
        s = k.state[slot]
        s.scheduled = False
        low = first_kept(time, q.within, q.slide)
        if close_windows(k, query, s, slot // k.queries, low):
            return OUT_OF_MEMORY
        if s.last < s.first:
            free_state(q, s)
            k.state[slot] = NULL
            k.states -= 1
        else:
            s.border = INT64_MIN  # the next event looks at the windows anew
            if schedule(k, s, slot, s.first * q.slide + q.within):
                return OUT_OF_MEMORY
    return NO_FAILURE
