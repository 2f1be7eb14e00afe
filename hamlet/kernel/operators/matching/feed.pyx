"""A batch for the matching operator: its events in the order of their keys, then time, and cut into steps.

For queries that take events one by one an event is a word: its key in the high half, its row in the low one. For logs
it is as `radix_sort` arranges it, by window and key where windows may be whole.
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport floor_divide, limbs_nonzero, lowest_window
from hamlet.kernel.operators.matching.reach cimport close_windows, deliver_reached, log_event
from hamlet.kernel.operators.matching.state cimport allocated, new_partition
from hamlet.kernel.operators.matching.step cimport order_of, take_apart, take_step
from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table
from hamlet.kernel.operators.matching.windows cimport schedule
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport Area, Event, Portion, Slice, end_of_windows

cdef extern from *:
    """
    #define hamlet_prefetch(place) __builtin_prefetch(place)
    """
    void prefetch "hamlet_prefetch"(const void*) noexcept nogil

cdef enum:
    AHEAD = 10           # events whose partitions are asked for before it is their turn
    DIGIT = 11           # bits of a key that one pass of the sort looks at
    PORTION = 1 << 15    # events that are put in order at once


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


cdef int log_batch(
    Core* k, int query, Area area, const Portion* batch, const int32_t* place_of, const int32_t* key_at,
    const int64_t* orders, int64_t until
) noexcept nogil:
    """All events of a batch, for the queries of a log, which one keeps; windows that are whole in it at once.

    Of tumbling windows some at a time are put in order, so that they stay in the cache; `until`, `place_of` and
    `key_at` as `hamlet._core.Kernel.process` has them. Returns a Failure.
    """
    cdef const Table* t = &k.query[query]
    cdef const Event* event = area.event
    cdef const Slice* slice = area.slice
    cdef Portion portion = batch[0]
    cdef Py_ssize_t slices, i, begin
    cdef bint tumbles = may_be_whole(t), in_order = False
    cdef int failure = NO_FAILURE
    if tumbles and t.log.whole == NULL:
        t.log.whole = allocated(k, t)
        if t.log.whole == NULL:
            return OUT_OF_MEMORY
        t.log.whole.row_due = INT64_MIN
    while failure == NO_FAILURE and portion.first < batch.end:
        portion.end = batch.end
        if tumbles:
            portion.end = end_of_windows(&portion, PORTION, t.within)
            slices = area.arrange_windows(&portion, t.within, place_of, key_at, &in_order)
        else:
            slices = area.arrange(&portion)
        if slices < 0:
            return OUT_OF_MEMORY
        begin = i = 0
        while i < slices and failure == NO_FAILURE:
            if i + AHEAD < slices:
                fetch(k.partition[slice[i + AHEAD].key * k.queries + query])
            if tumbles:
                failure = log_windows(
                    k, query, slice[i].key, event + begin, slice[i].end - begin, orders, until, in_order
                )
            else:
                failure = log_events(k, query, slice[i].key, event + begin, slice[i].end - begin, orders)
            begin = slice[i].end
            i += 1
        portion.first = portion.end
    return failure


cdef bint may_be_whole(const Table* t) noexcept nogil:
    """Whether each event is in one window, which may be whole in a batch."""
    return t.span < 0 and t.within == t.slide and t.calendar.zone_changes == 0


cdef int log_windows(
    Core* k, int query, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders, int64_t until,
    bint in_order
) noexcept nogil:
    """Events of one key, for tumbling windows: what is whole is delivered without a partition. Returns a Failure."""
    cdef const Table* t = &k.query[query]
    cdef const Partition* p
    cdef Py_ssize_t i = 0, j
    cdef int64_t window, end
    cdef int failure
    while i < n:
        window = floor_divide(event[i].time, t.within)
        end = (window + 1) * t.within
        j = i + 1
        while j < n and event[j].time < end:
            j += 1
        p = k.partition[key * k.queries + query]
        if k.advanced < end <= until and (p == NULL or p.last < window * t.within):
            k.in_order = in_order
            failure = log_whole(k, query, key, window, event + i, j - i, orders)
            k.in_order = False
        else:
            failure = log_events(k, query, key, event + i, j - i, orders)
        if failure:
            return failure
        i = j
    return NO_FAILURE


cdef int log_whole(
    Core* k, int query, int64_t key, int64_t window, const Event* event, Py_ssize_t n, const int64_t* orders
) noexcept nogil:
    """All events of a key in a window. Returns a Failure."""
    cdef const Table* t = &k.query[query]
    cdef Partition* p = t.log.whole
    cdef const uint64_t* bound
    cdef const Event* before = NULL
    cdef int failure
    cdef Py_ssize_t _
    p.lineage.records = 0
    p.step = 0
    for _ in range(n):
        bound = t.log.bound + event.kind * 2 * t.log.words
        if limbs_nonzero(bound, 2 * t.log.words):
            failure = log_event(k, query, p, event.time, bound, is_fresh(before, event, orders), event.row)
            if failure:
                return failure
            before = event
        event += 1
    if before == NULL:
        return NO_FAILURE
    k.whole_windows += 1
    return deliver_reached(k, query, p, key, window, 0, p.lineage.records)


cdef inline bint is_fresh(const Event* before, const Event* event, const int64_t* orders) noexcept nogil:
    """Whether an event is of another step than the one before it."""
    return before == NULL or before.time != event.time or (orders != NULL and orders[before.row] != orders[event.row])


cdef int log_events(
    Core* k, int query, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders
) noexcept nogil:
    """Events of one key, for windows that are open when they have been taken. Returns a Failure."""
    cdef Table* t = &k.query[query]
    cdef const uint64_t* bound
    cdef const Event* before = NULL
    cdef int64_t slot = key * k.queries + query
    cdef Partition* p = k.partition[slot]
    cdef int failure
    cdef Py_ssize_t _
    for _ in range(n):
        bound = t.log.bound + event.kind * 2 * t.log.words
        if not limbs_nonzero(bound, 2 * t.log.words):
            event += 1
            continue
        if p != NULL and event.time >= p.row_due:
            failure = close_windows(k, query, p, key, event.time)
            if failure:
                return failure
        if t.span < 0 and lowest_window(max(event.time, k.advanced), t.within, t.slide) > floor_divide(
            event.time, t.slide
        ):
            event += 1
            continue  # in no window that is open
        if p == NULL:
            p = new_partition(k, t, event.time)
            if p == NULL:
                return OUT_OF_MEMORY
            k.partition[slot] = p
        failure = log_event(k, query, p, event.time, bound, is_fresh(before, event, orders), event.row)
        if failure:
            return failure
        p.last = event.time
        before = event
        event += 1
    return NO_FAILURE if before == NULL else schedule(k, t, p, slot, before.time)


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
