"""Windows of the matching operator: which trends are over at a time, and rows of windows that have closed.

A calendar (a heap of due times) finds the keys that have gone quiet. An entry counts only while it is the one that its
partition remembers (`Partition.due`).
"""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport first_kept, floor_divide, lowest_window
from hamlet.kernel.operators.matching.marks cimport show_marks
from hamlet.kernel.operators.matching.reach cimport close_windows
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_row
from hamlet.kernel.operators.matching.state cimport (
    add_node,
    add_value,
    clear_partition,
    drop_first,
    give_up,
    killed_since,
)
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    Core,
    Due,
    Nodes,
    Partition,
    Table,
    mark_of,
    node_at,
    node_words,
    step_of,
    time_of_edge,
    value_words,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY

cdef extern from *:
    """
    #define hamlet_prefetch(place) __builtin_prefetch(place)
    """
    void prefetch "hamlet_prefetch"(const void*) noexcept nogil

cdef enum:
    TOGETHER = 32        # entries of the calendar that are taken at once

# ------------------------------------------------------------------------------------------------ what is over


cdef int expire(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil:
    """Deliver what is final when all events before a time have been seen, and note what is over then."""
    cdef const Table* t = &k.query[query]
    if t.log != NULL:
        return close_windows(k, query, p, key, time)
    if t.gap >= 0:
        if p.open and time > p.until:
            if deliver(k, query, p, key, 0, 0, p.begin):
                return OUT_OF_MEMORY
            k.windows += 1
            clear_partition(t, p)
            p.open = 0
        if t.span >= 0 and time != INT64_MAX:
            p.horizon = time - t.span
        return NO_FAILURE
    if t.span >= 0:
        p.horizon = INT64_MAX if time == INT64_MAX else time - t.span
        p.horizon_time = p.horizon
        if t.end_count and settle_ends(k, t, p):
            return OUT_OF_MEMORY
        return deliver_panes(k, query, p, key, time) if time >= p.row_due else NO_FAILURE
    p.horizon = max(p.horizon, first_kept(max(time, k.advanced), t.within, t.slide))
    p.horizon_time = INT64_MAX if p.horizon == INT64_MAX else p.horizon * t.slide
    return deliver_lanes(k, query, p, key)


cdef int deliver_lanes(Core* k, int query, Partition* p, int64_t key) noexcept nogil:
    """Deliver the windows before the horizon, each a lane."""
    cdef const Table* t = &k.query[query]
    cdef int number
    cdef Py_ssize_t stride
    cdef int64_t lane
    cdef Nodes* n
    while True:
        lane = INT64_MAX
        for number in range(t.states, t.states + t.end_count + 1):
            n = &p.nodes[number]
            if n.count:
                lane = min(lane, <int64_t> n.word[n.head])
        if lane >= p.horizon or lane == INT64_MAX:
            return NO_FAILURE
        if deliver(k, query, p, key, lane, lane, lane):
            return OUT_OF_MEMORY
        k.windows += 1
        for number in range(t.states, t.states + t.end_count + 1):
            n = &p.nodes[number]
            stride = node_words(t, p, number)
            while n.count and <int64_t> n.word[n.head] == lane:
                drop_first(n, 1, stride)


cdef int settle_ends(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Add up the trends that no last guard can forbid any more, by the pane of their last event."""
    cdef int number
    cdef Py_ssize_t stride
    cdef Nodes* n
    cdef uint64_t* node
    for number in range(t.states, t.states + t.end_count):
        n = &p.nodes[number]
        stride = node_words(t, p, number)
        while n.count and <int64_t> n.word[n.head] < p.horizon:
            node = n.word + n.head
            if not killed_since(t, p, t.end_guards[number - t.states], step_of(node)):
                if add_node(k, t, p, t.states + t.end_count, <int64_t> node[stride - 1], 0, node + HEAD, 0):
                    return OUT_OF_MEMORY
                expect_row(t, p)
            drop_first(n, 1, stride)
    return NO_FAILURE


cdef int64_t first_window(const Table* t, const Partition* p) noexcept nogil:
    """The first window that has not been delivered and has a trend; there is a total."""
    cdef const Nodes* n = &p.nodes[t.states + t.end_count]
    cdef int64_t pane = <int64_t> n.word[n.head]
    return max(p.next_window, lowest_window(pane * t.pane, t.within, t.slide))


cdef void expect_row(const Table* t, Partition* p) noexcept nogil:
    """Note when the next row is final, now that there are totals; it may be earlier than what was known."""
    p.row_due = min(p.row_due, due_of(t, first_window(t, p)))


cdef int64_t due_of(const Table* t, int64_t window) noexcept nogil:
    return time_of_edge(t, window * t.slide + t.within) + t.delay


cdef int deliver_panes(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil:
    """Deliver the windows that are final at a time; totals are kept by pane."""
    cdef const Table* t = &k.query[query]
    cdef Nodes* n = &p.nodes[t.states + t.end_count]
    cdef Py_ssize_t stride = node_words(t, p, t.states + t.end_count)
    cdef int64_t window, begin
    while n.count:
        window = first_window(t, p)
        begin = <int64_t> n.word[n.head] * t.pane
        if window * t.slide <= begin:  # else the pane is in windows that have been delivered only
            if due_of(t, window) > time:
                p.row_due = due_of(t, window)
                return NO_FAILURE
            if deliver(
                k, query, p, key, floor_divide(window * t.slide, t.pane),
                floor_divide(window * t.slide + t.within - 1, t.pane), window,
            ):
                return OUT_OF_MEMORY
            k.windows += 1
            p.next_window = window + 1
        while n.count and <int64_t> n.word[n.head] * t.pane < p.next_window * t.slide:
            drop_first(n, 1, stride)
    p.row_due = INT64_MAX
    return NO_FAILURE


# ----------------------------------------------------------------------------------------------------- rows


cdef int deliver(
    Core* k, int query, Partition* p, int64_t key, int64_t first, int64_t last, int64_t window
) noexcept nogil:
    """Append the row of a window: the totals of lanes first..last, and what stands in guarded ends of these lanes."""
    cdef const Table* t = &k.query[query]
    cdef Py_ssize_t words = value_words(t, p), stride, i
    cdef int number
    cdef Nodes* n
    cdef uint64_t* node
    if t.takings:
        return deliver_marks(k, query, p, key, first, last, window)
    if reserve_words(k, &k.scratch, &k.scratch_words, words):
        return OUT_OF_MEMORY
    memset(k.scratch, 0, words * sizeof(uint64_t))
    n = &p.nodes[t.states + t.end_count]
    stride = node_words(t, p, t.states + t.end_count)
    for i in range(n.count):
        node = node_at(n, i, stride)
        if <int64_t> node[0] > last:
            break
        if <int64_t> node[0] >= first and add_value(k, t, p, k.scratch, node + HEAD):
            return OUT_OF_MEMORY
    if t.span < 0 or t.gap >= 0:  # else they have become totals
        for number in range(t.states, t.states + t.end_count):
            n = &p.nodes[number]
            stride = node_words(t, p, number)
            for i in range(n.count):
                node = node_at(n, i, stride)
                if t.gap < 0 and <int64_t> node[0] > last:
                    break
                if (t.gap >= 0 or <int64_t> node[0] >= first) and not killed_since(
                    t, p, t.end_guards[number - t.states], step_of(node)
                ):
                    if add_value(k, t, p, k.scratch, node + HEAD):
                        return OUT_OF_MEMORY
    return append_row(k, query, p, key, window, k.scratch)


cdef int deliver_marks(
    Core* k, int query, Partition* p, int64_t key, int64_t first, int64_t last, int64_t window
) noexcept nogil:
    """Append the rows of a window, one for each mark; see `deliver`."""
    cdef const Table* t = &k.query[query]
    cdef Py_ssize_t words = value_words(t, p), marks, stride, i
    cdef int number
    cdef int64_t lane
    cdef const Nodes* n
    cdef uint64_t* node
    cdef uint64_t* total
    if show_marks(k, t, p):
        return OUT_OF_MEMORY
    marks = p.marks.count
    if reserve_words(k, &k.scratch, &k.scratch_words, marks * (1 + words)):
        return OUT_OF_MEMORY
    memset(k.scratch, 0, marks * (1 + words) * sizeof(uint64_t))  # for each mark whether there is one, and its total
    for number in range(t.states + t.end_count, t.states - 1, -1):
        if number < t.states + t.end_count and t.span >= 0 and t.gap < 0:
            break  # they have become totals
        n = &p.nodes[number]
        stride = node_words(t, p, number)
        for i in range(n.count):
            node = node_at(n, i, stride)
            lane = <int64_t> node[0]
            if number == t.states + t.end_count or t.gap < 0:
                if lane > last:
                    break
                if lane < first:
                    continue
            if number < t.states + t.end_count and killed_since(
                t, p, t.end_guards[number - t.states], step_of(node)
            ):
                continue
            total = k.scratch + k.todo[mark_of(t, node + HEAD, words)] * (1 + words)
            total[0] = 1
            if add_value(k, t, p, total + 1, node + HEAD):
                return OUT_OF_MEMORY
    for i in range(marks):
        total = k.scratch + i * (1 + words)
        if total[0]:
            total[words] = <uint64_t> i
            if append_row(k, query, p, key, window, total + 1):
                return OUT_OF_MEMORY
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------- calendar


cdef int64_t next_due(const Table* t, const Partition* p) noexcept nogil:
    """When a partition is to be looked at again, whatever comes."""
    cdef int64_t last = p.last + t.keeps + (t.keeps >> 2), lane = INT64_MAX  # some events may still come until then
    cdef int number
    cdef const Nodes* n
    if t.log != NULL:
        return p.row_due if p.lineage.records else p.last
    if t.gap >= 0:
        return p.until + 1 if p.open else p.last
    if t.span >= 0 and p.row_due != INT64_MAX:
        return p.row_due
    for number in range(t.states, t.states + t.end_count + (t.span < 0)):
        n = &p.nodes[number]
        if n.count:
            lane = min(lane, <int64_t> n.word[n.head])
    if t.span >= 0:
        return lane + t.span + 1 if lane != INT64_MAX else last
    if lane == INT64_MAX:
        lane = floor_divide(p.last, t.slide)
    return lane * t.slide + t.within


cdef bint is_over(const Table* t, const Partition* p, int64_t time) noexcept nogil:
    """Whether nothing that was seen matters any more."""
    cdef int number
    if t.log != NULL:
        return p.lineage.records == 0
    if t.gap >= 0:
        return not p.open
    for number in range(t.states, t.states + t.end_count + 1):
        if p.nodes[number].count:
            return False
    if t.span >= 0:
        return p.last + t.keeps <= time
    return floor_divide(p.last, t.slide) < first_kept(time, t.within, t.slide)


cdef int schedule(Core* k, const Table* t, Partition* p, int64_t slot, int64_t now) noexcept nogil:
    """See that a partition is looked at when it is due."""
    cdef int64_t due = next_due(t, p)
    cdef Py_ssize_t at, above
    if due <= now:
        due = now + 1
    if due >= p.due:
        return NO_FAILURE
    p.due = due
    if reserve_words(k, <uint64_t**> &k.due, &k.dues_capacity, 2 * (k.dues + 1)):
        return OUT_OF_MEMORY
    at = k.dues
    k.dues += 1
    while at:
        above = (at - 1) // 2
        if k.due[above].time <= due:
            break
        k.due[at] = k.due[above]
        at = above
    k.due[at].time = due
    k.due[at].slot = slot
    return NO_FAILURE


cdef Due pop_due(Core* k) noexcept nogil:
    cdef Due first = k.due[0], last
    cdef Py_ssize_t at = 0, below
    k.dues -= 1
    last = k.due[k.dues]
    while True:
        below = 2 * at + 1
        if below >= k.dues:
            break
        if below + 1 < k.dues and k.due[below + 1].time < k.due[below].time:
            below += 1
        if k.due[below].time >= last.time:
            break
        k.due[at] = k.due[below]
        at = below
    k.due[at] = last
    return first


cdef int advance_time(Core* k, int64_t time) noexcept nogil:
    """Deliver all that is final when no event before a time will come."""
    cdef Due due[TOGETHER]
    cdef int i, count, failure
    k.advanced = max(k.advanced, time)
    while k.dues and k.due[0].time <= time:
        count = 0
        while count < TOGETHER and k.dues and k.due[0].time <= time:
            due[count] = pop_due(k)
            prefetch(k.partition[due[count].slot])  # so that the memory is asked for many at a time
            prefetch(<const char*> k.partition[due[count].slot] + 64)
            prefetch(<const char*> k.partition[due[count].slot] + 128)
            count += 1
        for i in range(count):
            failure = settle_due(k, due[i].slot, due[i].time, time)
            if failure:
                return failure
    return NO_FAILURE


cdef int settle_due(Core* k, int64_t slot, int64_t due, int64_t time) noexcept nogil:
    """Deliver what is final of a partition that is due; give it up where nothing is left."""
    cdef Partition* p = k.partition[slot]
    cdef int query = <int> (slot % k.queries), failure
    if p == NULL or p.due != due:
        return NO_FAILURE
    p.due = INT64_MAX
    failure = expire(k, query, p, slot // k.queries, time)
    if failure:
        return failure
    if not is_over(&k.query[query], p, time):
        return schedule(k, &k.query[query], p, slot, time)
    give_up(k, &k.query[query], p)
    k.partition[slot] = NULL
    return NO_FAILURE
