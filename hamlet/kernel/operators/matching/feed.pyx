"""A batch for the matching operator: its events in the order of their keys, then time, and cut into steps.

An event is a word: its key in the high half, its row in the low one.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport floor_divide, limbs_nonzero, lowest_window
from hamlet.kernel.operators.matching.reach cimport close_windows, log_event
from hamlet.kernel.operators.matching.state cimport new_partition
from hamlet.kernel.operators.matching.step cimport order_of, take_apart, take_step
from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table, row_of
from hamlet.kernel.operators.matching.windows cimport schedule
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY

cdef extern from *:
    """
    #define hamlet_prefetch(place) __builtin_prefetch(place)
    """
    void prefetch "hamlet_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 10           # events whose partitions are asked for before it is their turn
    DIGIT = 11           # bits of a key that one pass of the sort looks at


cdef void sort_by_key(uint64_t* event, uint64_t* spare, Py_ssize_t n, Py_ssize_t limit) noexcept nogil:
    """A stable sort by the high half, all of which are below `limit`."""
    cdef Py_ssize_t first[1 << DIGIT]
    cdef Py_ssize_t i, at, count
    cdef uint64_t* source = event
    cdef uint64_t* target = spare
    cdef int shift = 32, digit
    cdef uint64_t held
    if n < 64:
        for i in range(1, n):
            held = event[i]
            at = i
            while at and event[at - 1] >> 32 > held >> 32:
                event[at] = event[at - 1]
                at -= 1
            event[at] = held
        return
    while limit >> (shift - 32):
        memset(first, 0, sizeof(first))
        for i in range(n):
            first[source[i] >> shift & ((1 << DIGIT) - 1)] += 1
        at = 0
        for digit in range(1 << DIGIT):
            count = first[digit]
            first[digit] = at
            at += count
        for i in range(n):
            digit = <int> (source[i] >> shift & ((1 << DIGIT) - 1))
            target[first[digit]] = source[i]
            first[digit] += 1
        source, target = target, source
        shift += DIGIT
    if source != event:
        memcpy(event, source, n * sizeof(uint64_t))


cdef int take_events(
    Core* k, const uint64_t* event, Py_ssize_t n, const int64_t* times, const int64_t* orders, const int* classes
) noexcept nogil:
    """All events of a batch, by key, then time; times and classes in the same order, orders by row. A Failure."""
    cdef Py_ssize_t begin = 0, end, at, after, last
    cdef int query, taker, failure
    while begin < n:
        end = begin + 1
        while end < n and event[end] >> 32 == event[begin] >> 32:
            end += 1
        if begin + AHEAD < n:
            fetch(k.partition[(event[begin + AHEAD] >> 32) * k.queries])
        for taker in range(k.takers):
            query = k.taking_part[taker]
            if k.query[query].log != NULL:
                failure = log_events(k, query, event, times, orders, classes, begin, end)
                if failure:
                    return failure
                continue
            at = begin
            while at < end:
                after = step_end(orders, event, times, at, end)
                last = after
                if k.apart and orders != NULL and order_of(orders, event[at]) == 0:
                    while last < end and times[last] == times[at]:
                        last += 1
                if last == after:
                    failure = take_step(
                        k, query, <int64_t> (event[at] >> 32), times[at], event + at, classes + at, after - at
                    )
                else:
                    failure = take_apart(
                        k, query, <int64_t> (event[at] >> 32), times[at], event + at, classes + at, after - at,
                        last - at, orders,
                    )
                    after = last
                if failure:
                    return failure
                at = after
        begin = end
    return 0


cdef int log_events(
    Core* k, int query, const uint64_t* event, const int64_t* times, const int64_t* orders, const int* classes,
    Py_ssize_t begin, Py_ssize_t end
) noexcept nogil:
    """The events of one key for the queries of a log, which this one keeps."""
    cdef Table* t = &k.query[query]
    cdef const uint64_t* bound
    cdef int64_t slot = <int64_t> (event[begin] >> 32) * k.queries + query
    cdef Partition* p = k.partition[slot]
    cdef Py_ssize_t at, before = -1
    cdef int column, failure
    cdef bint fresh
    for at in range(begin, end):
        bound = t.log.bound + classes[at] * 2 * t.log.words
        if at + AHEAD < end:
            for column in range(t.log.columns):
                prefetch(&k.columns[t.log.column[column]].data[row_of(event[at + AHEAD])])
        if not limbs_nonzero(bound, 2 * t.log.words):
            continue
        if p != NULL and times[at] >= p.row_due:
            failure = close_windows(k, query, p, slot // k.queries, times[at])
            if failure:
                return failure
        if t.span < 0 and lowest_window(max(times[at], k.advanced), t.within, t.slide) > floor_divide(
            times[at], t.slide
        ):
            continue  # in no window that is open
        if p == NULL:
            p = new_partition(k, t, times[at])
            if p == NULL:
                return OUT_OF_MEMORY
            k.partition[slot] = p
        fresh = before < 0 or times[before] != times[at]
        if not fresh and orders != NULL:
            fresh = order_of(orders, event[before]) != order_of(orders, event[at])
        failure = log_event(k, query, p, times[at], bound, fresh, row_of(event[at]))
        if failure:
            return failure
        p.last = times[at]
        before = at
    return NO_FAILURE if before < 0 else schedule(k, t, p, slot, times[before])


cdef inline void fetch(const Partition* p) noexcept nogil:
    """Have a partition read into the cache."""
    prefetch(p)
    prefetch(<const char*> p + 64)
    prefetch(<const char*> p + 128)
    prefetch(<const char*> p + 192)
    prefetch(<const char*> p + 256)


cdef inline Py_ssize_t step_end(
    const int64_t* orders, const uint64_t* event, const int64_t* times, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    """The place behind the events that have the time and the order of the one at a place."""
    cdef Py_ssize_t after = at + 1
    while after < end and times[after] == times[at]:
        if orders != NULL and order_of(orders, event[after]) != order_of(orders, event[at]):
            break
        after += 1
    return after
