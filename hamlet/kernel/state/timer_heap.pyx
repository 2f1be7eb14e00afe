"""The calendar: windows close on time although no event of their key arrives."""

from libc.stdint cimport int64_t

from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.state.core cimport Core, Due, enlarged
from hamlet.kernel.state.query_state cimport State


cdef int schedule(Core* k, State* s, int64_t slot, int64_t time) noexcept nogil:
    """Put a state on the calendar, so that its windows close on time without events of its key."""
    s.scheduled = True
    return schedule_slot(k, slot, time)


cdef int schedule_slot(Core* k, int64_t slot, int64_t time) noexcept nogil:
    """Put what a slot stands for on the calendar."""
    cdef Py_ssize_t capacity, child, parent
    cdef Due* due
    if k.calendar.dues == k.calendar.capacity:
        capacity = 2 * k.calendar.capacity + 64
        due = <Due*> enlarged(k, k.calendar.due, k.calendar.capacity, capacity, sizeof(Due))
        if due == NULL:
            return OUT_OF_MEMORY
        k.calendar.due = due
        k.calendar.capacity = capacity
    child = k.calendar.dues
    k.calendar.dues += 1
    while child > 0:
        parent = (child - 1) // 2
        if k.calendar.due[parent].time <= time:
            break
        k.calendar.due[child] = k.calendar.due[parent]
        child = parent
    k.calendar.due[child].time = time
    k.calendar.due[child].slot = slot
    return NO_FAILURE


cdef int64_t pop_due(Core* k) noexcept nogil:
    cdef int64_t slot = k.calendar.due[0].slot
    cdef Due moved
    cdef Py_ssize_t parent = 0, child
    k.calendar.dues -= 1
    moved = k.calendar.due[k.calendar.dues]
    while True:
        child = 2 * parent + 1
        if child >= k.calendar.dues:
            break
        if child + 1 < k.calendar.dues and k.calendar.due[child + 1].time < k.calendar.due[child].time:
            child += 1
        if k.calendar.due[child].time >= moved.time:
            break
        k.calendar.due[parent] = k.calendar.due[child]
        parent = child
    k.calendar.due[parent] = moved
    return slot
