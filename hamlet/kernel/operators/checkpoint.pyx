"""A kernel as bytes and back: its counters, then one state or block after the other, in the order of the calendar.

A block of a band stands in the calendar like a state.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from hamlet.kernel.operators.simd.checkpoint cimport hand_over_limbs, read_block, read_key_slots, write_key_slots
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.state.checkpoint cimport DAMAGED, Bounds, Cursor, put_word, read_state, take_word
from hamlet.kernel.state.core cimport Core, Due, enlarged
from hamlet.kernel.state.operator cimport Bytes, operators
from hamlet.kernel.state.query_state cimport State

cdef Py_ssize_t NO_COUNT = -(<Py_ssize_t> 1 << 62)


cdef int counters_of(Core* k, int64_t** counter) noexcept nogil:
    """What is saved of the kernel beside its states; how many of them."""
    counter[0] = &k.step
    counter[1] = &k.most_bits
    counter[2] = &k.windows
    counter[3] = &k.bursts
    counter[4] = &k.graphlets
    counter[5] = &k.shared_graphlets
    counter[6] = &k.coefficients
    counter[7] = &k.applied
    counter[8] = &k.snapshots
    counter[9] = &k.decisions
    counter[10] = &k.decided
    counter[11] = &k.decision_ns
    counter[12] = &k.splits
    counter[13] = &k.merges
    counter[14] = &k.beginnings
    counter[15] = &k.mapped
    counter[16] = &k.whole_windows
    return 17


cdef void write_states(Core* k, Bytes* to) noexcept nogil:
    """The counters, then every state in the order of the calendar, which so stays as it is."""
    cdef int64_t* counter[MOST_COUNTERS]
    cdef Py_ssize_t i
    cdef int64_t slot
    cdef int unit
    if to.byte == NULL and hand_over_limbs(k):
        to.count = NO_COUNT
        return
    for i in range(counters_of(k, counter)):
        put_word(to, counter[i][0])
    put_word(to, min(k.advanced, <int64_t> 1 << 62))  # no event is there, and sums of times have head-room
    put_word(to, k.calendar.dues)
    write_key_slots(k, to)
    for i in range(k.calendar.dues):
        slot = k.calendar.due[i].slot
        put_word(to, k.calendar.due[i].time)
        put_word(to, slot)
        if slot < 0:
            unit = <int> (~slot % k.bands)
            operators[k.unit[unit].operator].checkpoint(k, unit, ~slot // k.bands, to)
        else:
            unit = <int> (slot % k.queries)
            operators[k.state[slot].packed].checkpoint(k, unit, slot // k.queries, to)


cdef int read_states(Core* k, Cursor* source, Bounds* bounds, int64_t keys) noexcept nogil:
    cdef int64_t* counter[MOST_COUNTERS]
    cdef const Query* q
    cdef State* s
    cdef Py_ssize_t i
    cdef int64_t dues
    cdef int failure
    cdef Due* due
    for i in range(counters_of(k, counter)):
        if not take_word(source, 0, <int64_t> 1 << 62, counter[i]):
            return DAMAGED
    bounds.step = k.step
    if not (
        take_word(source, INT64_MIN, <int64_t> 1 << 62, &k.advanced)
        and take_word(source, 0, source.left // (2 * sizeof(int64_t)), &dues)
    ):
        return DAMAGED
    due = <Due*> enlarged(k, k.calendar.due, k.calendar.capacity, dues + 1, sizeof(Due))
    if due == NULL:
        return OUT_OF_MEMORY
    k.calendar.due, k.calendar.capacity = due, dues + 1
    if not read_key_slots(k, source, keys):
        return DAMAGED
    for i in range(dues):
        if not (
            take_word(source, k.calendar.due[(i - 1) // 2].time if i else INT64_MIN, INT64_MAX, &k.calendar.due[i].time)
            and take_word(source, -keys * k.bands, keys * k.queries - 1, &k.calendar.due[i].slot)
        ):
            return DAMAGED
        if k.calendar.due[i].slot < 0:
            failure = read_block(k, source, bounds, &k.calendar.due[i])
            if failure:
                return failure
            k.calendar.dues += 1
            continue
        if k.state[k.calendar.due[i].slot] != NULL:
            return DAMAGED
        q = &k.query[k.calendar.due[i].slot % k.queries]
        failure = read_state(q, source, bounds, &k.state[k.calendar.due[i].slot])
        if failure:
            return failure
        k.calendar.dues += 1
        k.states += 1
        s = k.state[k.calendar.due[i].slot]
        s.scheduled = True
        if k.calendar.due[i].time > s.lowest * q.slide + q.within:
            return DAMAGED  # its first window would close too late
    return NO_FAILURE
