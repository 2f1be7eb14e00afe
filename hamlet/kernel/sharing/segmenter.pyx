"""A batch, cut into segments: slices of one key, in them whole windows, bursts, and events of one time.

Who takes a segment is said by the plan (`Core.consumer`, `Core.unit`), and how by the table of operators. What is
chosen here: `process_windows` offers a window to ``complete_window`` where the batch holds all of it; an event joins a
burst where its class does (`join_burst`); all else is one step.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t

from hamlet.kernel.cells cimport floor_divide, lowest_window
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport Area, Event, Portion, Slice, end_of_windows, first_from, tied, time_of
from hamlet.kernel.run_length cimport KeyRun, KeyRuns
from hamlet.kernel.sharing.decision cimport count_event
from hamlet.kernel.sharing.deferred cimport settle_all
from hamlet.kernel.sharing.graphlet cimport end_before, end_bursts, find_pane, join_burst, join_key_run
from hamlet.kernel.state.core cimport COMPLETE_WINDOW, MOST_GRAPHLETS, PANE_MATRIX, Consumer, Core, Graphlet
from hamlet.kernel.state.operator cimport Run, Segment, operators

cdef extern from *:
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil

cdef enum:
    AHEAD = 12        # events
    MOST_FETCHED = 4  # columns
    PORTION = 1 << 15  # events
    FEWEST_MAPPED = 12  # events of a pane


cdef int step_event(Core* k, int64_t key, const Event* event, const KeyRun* key_run) noexcept nogil:
    """One event that has its time for itself; `run` is what it is, where the batch is taken as runs."""
    cdef int failure, kind = event.kind  # what stands in the batch itself is far from here
    k.step += 1
    if k.past != NULL and k.class_graphlet[kind] < 0:
        count_event(k, key, kind)
    if k.active:
        failure = end_before(k, kind, event.time)  # before an event of other queries closes windows of its block
        if failure:
            return failure
    if k.class_graphlet[kind] >= 0:
        if key_run == NULL:
            failure = join_burst(k, &k.graphlet[k.class_graphlet[kind]], kind, key, event, 1)
        else:
            failure = join_key_run(k, &k.graphlet[k.class_graphlet[kind]], key, event.time, key_run)
        if failure:
            return failure
    return feed(k, key, event) if k.consumer_first[kind] < k.consumer_first[kind + 1] else NO_FAILURE


cdef int feed(Core* k, int64_t key, const Event* event) noexcept nogil:
    """One event, to those who take it on its own."""
    cdef const Consumer* consumer
    cdef int64_t row = event.row
    cdef Segment segment
    cdef Run run
    cdef int i, failure, kind = event.kind
    one_step(&segment, &run, key, event.time, kind, &row, 1)
    for i in range(k.consumer_first[kind], k.consumer_first[kind + 1]):
        consumer = &k.consumer[i]
        segment.entry = NULL if consumer.entry < 0 else &k.entry[consumer.entry]
        failure = operators[consumer.operator].consume(k, consumer.unit, &segment)
        if failure:
            return failure
    return NO_FAILURE


cdef inline void one_step(
    Segment* segment, Run* run, int64_t key, int64_t time, int kind, const int64_t* rows, int events
) noexcept nogil:
    """Events of one time as a segment."""
    run.kind, run.role, run.events, run.rows, run.tally = kind, -1, events, rows, NULL
    segment.key, segment.time, segment.runs, segment.run = key, time, 1, run
    segment.entry, segment.graphlet, segment.member, segment.event = NULL, NULL, NULL, NULL


cdef int step_events(Core* k, int64_t key, int64_t time, const int64_t* rows, int events) noexcept nogil:
    """Several events of one time."""
    cdef Segment segment
    cdef Run run
    cdef int i, failure
    k.step += 1
    if k.past != NULL:
        for i in range(events):
            count_event(k, key, k.class_of[rows[i]])
    if k.active:  # they are no burst
        failure = end_bursts(k, k.active)
        if failure:
            return failure
    one_step(&segment, &run, key, time, k.class_of[rows[0]], rows, events)
    for i in range(k.units):
        failure = operators[k.unit[i].operator].consume(k, k.unit[i].number, &segment)
        if failure:
            return failure
    return NO_FAILURE


cdef inline void fetch(const Core* k, const Event* event) noexcept nogil:
    """Bring the values of an event into the cache: those of one key lie anywhere in their columns."""
    cdef int i
    for i in range(min(k.event_columns, MOST_FETCHED)):
        prefetch(&k.columns[i].data[event.row])


cdef int process_steps(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, Py_ssize_t left, const int64_t* orders, int64_t* rows
) noexcept nogil:
    """Cut the n events of one key into steps; those that do nothing but join one burst are taken together.

    `left` events, these among them, are left of the batch.
    """
    cdef Py_ssize_t i = 0, j
    cdef int failure, kind
    while i < n:
        if i + AHEAD < left:
            fetch(k, &event[i + AHEAD])
        kind = event[i].kind
        j = i + 1
        if k.class_plain[kind]:
            while j < n and event[j].kind == kind and event[j].time != event[j - 1].time:
                j += 1
        if j < n and tied(&event[j], orders):
            j -= 1  # the last of them is none of these
        if j == i:
            rows[0] = event[i].row
            j = i + 1
            while j < n and tied(&event[j], orders):
                rows[j - i] = event[j].row
                j += 1
            failure = step_events(k, key, event[i].time, rows, <int> (j - i))
        elif k.class_plain[kind]:
            k.step += j - i
            failure = join_burst(k, &k.graphlet[k.class_graphlet[kind]], kind, key, &event[i], j - i)
        else:
            failure = step_event(k, key, &event[i], NULL)
        if failure:
            return failure
        i = j
    return end_slice(k)


cdef int process_slice(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, Py_ssize_t left, const int64_t* orders, int64_t* rows
) noexcept nogil:
    """Take in the events of one key: what can be mapped, pane by pane, all else by `process_steps`."""
    cdef Py_ssize_t i = 0, j, begun = 0  # from here on nothing has been taken
    cdef int64_t end
    cdef int failure
    cdef Segment segment
    if not (k.maps.tries and k.maps.fits and n >= FEWEST_MAPPED):
        return process_steps(k, key, event, n, left, orders, rows)
    segment.key, segment.orders = key, orders
    while i < n:
        end = next_border(event[i].time, k.maps.within, k.maps.slide)
        j = i + 1
        while j < n and event[j].time < end:
            j += 1
        if j - i >= FEWEST_MAPPED:
            if begun < i:
                failure = process_steps(k, key, event + begun, i - begun, left - begun, orders, rows)
                if failure:
                    return failure
                begun = i
            segment.event, segment.events = event + i, j - i
            failure = operators[PANE_MATRIX].consume(k, 0, &segment)
            if failure:
                return failure
            begun += segment.events
        i = j
    return process_steps(k, key, event + begun, n - begun, left - begun, orders, rows) if begun < n else NO_FAILURE


cdef inline int64_t next_border(int64_t time, int64_t within, int64_t slide) noexcept nogil:
    """When a window opens or closes after a time."""
    return min(
        (floor_divide(time, slide) + 1) * slide, lowest_window(time, within, slide) * slide + within
    )


cdef inline int end_slice(Core* k) noexcept nogil:
    """End all bursts of a key, and take in what waits. Returns a Failure."""
    cdef int failure = end_bursts(k, k.active)
    return failure if failure else settle_all(k)


cdef int process_windows(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, Py_ssize_t left, const int64_t* orders, int64_t* rows,
    int64_t until,
) noexcept nogil:
    """Take in a slice of a key, windows that are complete in it at once, all else by `process_slice`."""
    cdef Py_ssize_t i = 0, j, begun = 0  # from here on nothing has been taken
    cdef int64_t window, end
    cdef int failure
    cdef Segment segment
    segment.key, segment.orders = key, orders
    while i < n:
        window = floor_divide(event[i].time, k.whole.within)
        end = (window + 1) * k.whole.within
        j = i + 1
        while j < n and event[j].time < end:
            if j + AHEAD < left:
                fetch(k, &event[j + AHEAD])
            j += 1
        k.whole.tried += 1
        if k.advanced < end <= until:
            if begun < i:
                failure = process_slice(k, key, event + begun, i - begun, left - begun, orders, rows)
                if failure:
                    return failure
                begun = i
            segment.event, segment.events, segment.window = event + i, j - i, window
            failure = operators[COMPLETE_WINDOW].consume(k, 0, &segment)
            if failure:
                return failure
            if segment.taken:
                begun = j
        i = j
    return process_slice(k, key, event + begun, n - begun, left - begun, orders, rows) if begun < n else NO_FAILURE


cdef inline int leave_blocks(Core* k, int64_t key, int64_t until) noexcept nogil:
    """Close windows of a key that end by `until`, while its blocks are in the cache. Returns a Failure."""
    cdef int number, failure
    for number in range(k.bands):  # the first units
        failure = operators[k.unit[number].operator].close(k, number, key, until)
        if failure:
            return failure
    return NO_FAILURE


cdef int process_slices(
    Core* k, Area area, Py_ssize_t slices, const int64_t* orders, int64_t until, bint whole
) noexcept nogil:
    """Take the events of an area, key by key.

    Parameters
    ----------
    area : Area
        Events by key and time.
    slices : int
        Of the area; -1 where there was no memory to arrange it.
    orders : int64 array by row, or NULL
        Orders rows of equal time.
    until : int64
        No event before this time will follow.
    whole : bool
        Whether windows are to be taken at once that are whole in a slice (`window`).
    """
    cdef const Event* event = area.event
    cdef const Slice* slice = area.slice
    cdef int64_t* rows = area.row
    cdef Py_ssize_t i, begin = 0
    cdef Py_ssize_t n, left
    cdef int failure
    if slices < 0:
        return OUT_OF_MEMORY
    k.events, k.arranged = event, area.value
    for i in range(slices):
        n, left = slice[i].end - begin, slice[slices - 1].end - begin
        if whole:
            failure = process_windows(k, slice[i].key, event + begin, n, left, orders, rows, until)
        else:
            failure = process_slice(k, slice[i].key, event + begin, n, left, orders, rows)
        if failure:
            return failure
        if k.states:
            failure = leave_blocks(k, slice[i].key, until)
            if failure:
                return failure
        begin = slice[i].end
    return NO_FAILURE


cdef int process_portions(
    Core* k, Area area, const Portion* batch, const int32_t* place_of, const int32_t* key_at, const int64_t* orders,
    int64_t until,
) noexcept nogil:
    """Take a batch some windows at a time, those that are whole at once; the rest as in `process_slices`.

    Portions stay in the second cache while they are put in order and taken. `place_of` and `key_at` as in
    `Area.arrange_windows`.
    """
    cdef Portion portion = batch[0]
    cdef Py_ssize_t slices
    cdef int failure = NO_FAILURE
    while failure == NO_FAILURE and portion.first < batch.end:
        portion.end = batch.end
        portion.end = end_of_windows(&portion, PORTION, k.whole.within)
        slices = area.arrange_windows(&portion, k.whole.within, place_of, key_at, &k.whole.ordered)
        failure = process_slices(k, area, slices, orders, until, True)
        if operators[COMPLETE_WINDOW].close(k, 0, -1, until) and failure == NO_FAILURE:
            failure = OUT_OF_MEMORY
        portion.first = portion.end
    return failure


# ------------------------------------------------------------------------------------------------ runs

cdef bint cut_key_runs(Core* k, KeyRuns found, Py_ssize_t n) noexcept nogil:
    """Cut a batch into runs, within which no window of a burst opens or closes; False where that is given up."""
    cdef const int64_t* times = found.job.times
    cdef const int32_t* rows = found.job.rows
    cdef Py_ssize_t begin = 0, end
    cdef int64_t time, border
    cdef Graphlet* g
    cdef int i
    while begin < n:
        time, border = time_of(times, rows, begin), INT64_MAX
        for i in range(MOST_GRAPHLETS):
            g = &k.graphlet[i]
            if g.members:
                if not g.pane <= time < g.pane_end:
                    find_pane(k, g, time)
                border = min(border, g.pane_end)
        end = first_from(times, rows, begin + 1, n, border)
        if not found.take(begin, end):
            return False
        begin = end
    return found.arrange()


cdef int process_key_runs(Core* k, KeyRuns found, int64_t until) noexcept nogil:
    """Take a batch that has been cut into runs, key by key; `until` as in `process_slices`."""
    cdef const KeyRun* key_run
    cdef Event event
    cdef Py_ssize_t i, count = found.job.count
    cdef int failure = NO_FAILURE
    cdef int64_t key = 0
    for i in range(count):
        key_run = &found.job.closed[found.place[i]]
        if i + AHEAD < count:
            prefetch(&found.job.closed[found.place[i + AHEAD]])
        key = key_run.key
        event.time, event.row, event.kind = key_run.time, key_run.row, key_run.kind
        if k.class_plain[event.kind]:
            k.step += key_run.events
            failure = join_key_run(k, &k.graphlet[k.class_graphlet[event.kind]], key, event.time, key_run)
        else:
            failure = step_event(k, key, &event, key_run)
        if failure == NO_FAILURE and (i + 1 == count or found.job.closed[found.place[i + 1]].key != key):
            failure = end_slice(k)
            if failure == NO_FAILURE:
                failure = leave_blocks(k, key, until)
        if failure:
            return failure
    return NO_FAILURE
