"""Time moves on: windows that are due close, in states of queries and in blocks of bands, whatever events come."""

from libc.stdint cimport int64_t

from hamlet.kernel.plan cimport NO_FAILURE
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.operator cimport operators
from hamlet.kernel.state.timer_heap cimport pop_due


cdef int advance_time(Core* k, int64_t time) noexcept nogil:
    """Close every window that ends at or before a time. Returns a Failure."""
    cdef int64_t slot, key
    cdef int unit, failure
    k.advanced = max(k.advanced, time)
    while k.calendar.dues and k.calendar.due[0].time <= time:
        slot = pop_due(k)
        if slot < 0:
            unit, key = <int> (~slot % k.bands), ~slot // k.bands
            k.band[unit].key_slot[key].scheduled = False
            failure = operators[k.unit[unit].operator].close(k, unit, key, time)
        else:
            unit, key = <int> (slot % k.queries), slot // k.queries
            k.state[slot].scheduled = False
            failure = operators[k.operator_of[unit]].close(k, unit, key, time)
        if failure:
            return failure
    return NO_FAILURE
