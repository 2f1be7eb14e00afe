"""One step of the matching operator: all events of one query and key that have one time (and order).

Contract
--------
**Reads before writes.** Every event reads what stood before the step, then the negated patterns advance, then trends
that were extended and must not skip the step are taken out of their states, then all additions are made.
**Moves.** Under skip-till-next-match a node that some event of the step can extend is extended with each such event and
moves on. Under contiguous every node is forgotten that is not of the step before. Trends that are complete have been
counted elsewhere, as totals or, under a last guard, in lists of their own.
**Rows apart.** A row of another query is neither before nor behind the ordered events of its time. It reads what stood
before that time; what it adds, what it moves on and what it forbids shows when the time is over (`take_apart`).

Source: COGRA (SIGMOD'19) §2 (event matching semantics); HAMLET (SIGMOD'21) §3, Eqs. 2-6 (propagation).
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from hamlet.kernel.cells cimport bind_event, floor_divide, has_trends, increment, lowest_window, words_of
from hamlet.kernel.operators.matching.guards cimport read_guards, write_guards
from hamlet.kernel.operators.matching.lineage cimport tidy_lineage, trace_event
from hamlet.kernel.operators.matching.marks cimport DROPPED, NO_MEMORY, begin_marks, next_mark, tidy_marks
from hamlet.kernel.operators.matching.predicates cimport bind_scalars, fits_predicate, keep_columns, value_of
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.spans cimport step_spans
from hamlet.kernel.operators.matching.state cimport (
    add_node,
    add_value,
    append_node,
    keep_unmoved,
    killed_since,
    new_partition,
    reserve_bits,
)
from hamlet.kernel.operators.matching.tables cimport (
    ANY,
    CONTIGUOUS,
    HEAD,
    LEAVES,
    MOVES,
    NEXT,
    REGISTER_WORDS,
    Arrival,
    Core,
    Entry,
    Nodes,
    Partition,
    StateTable,
    Table,
    ValueSet,
    Way,
    entry_of,
    find_pane,
    mark_of,
    may_begin,
    node_at,
    node_words,
    row_of,
    step_of,
    value_words,
    vertex_of,
)
from hamlet.kernel.operators.matching.value_sets cimport find_value, make_room, number_value
from hamlet.kernel.operators.matching.windows cimport expect_row, expire, schedule
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, OVERFLOW, TOO_MANY_GROUPS

cdef extern from "value_hash.h" nogil:
    uint64_t hash_integer(int64_t value)
    uint64_t hash_double(double value)

cdef enum:
    RECORD = 3  # words of a pending addition before its value: state, lane, row


cdef int take_step(
    Core* k, int query, int64_t key, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil:
    """Take the events of a step. Returns a Failure."""
    cdef Table* t = &k.query[query]
    cdef Partition* p = NULL
    cdef int failure = enter(k, query, key, time, classes, n, &p)
    if failure or p == NULL:
        return failure
    failure = advance_step(k, query, p, time, events, classes, n)
    return failure if failure else schedule(k, t, p, key * k.queries + query, time)


cdef inline int enter(
    Core* k, int query, int64_t key, int64_t time, const int* classes, Py_ssize_t n, Partition** found
) noexcept nogil:
    """The partition of some events of one time, brought to that time; a null pointer where they matter to none."""
    cdef Table* t = &k.query[query]
    cdef int64_t slot = key * k.queries + query
    cdef Partition* p = k.partition[slot]
    cdef bint present = False, begins = False, named = False
    cdef const Entry* entry
    cdef Py_ssize_t i
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        present |= entry.present
        begins |= entry.begins
        named |= entry.named
    if not present:
        return NO_FAILURE
    if p == NULL:
        if not begins:
            return NO_FAILURE
        if t.span < 0 and t.gap < 0:
            if lowest_window(max(time, k.advanced), t.within, t.slide) > floor_divide(time, t.slide):
                return NO_FAILURE  # in no window that is open
        p = new_partition(k, t, time)
        if p == NULL:
            return OUT_OF_MEMORY
        k.partition[slot] = p
    if expire(k, query, p, key, time):
        return OUT_OF_MEMORY
    if t.gap >= 0:
        if named:
            if not p.open:
                p.begin = time
                p.open = 1
            p.until = time + t.gap
        elif not p.open:
            return schedule(k, t, p, slot, time)
    found[0] = p
    return NO_FAILURE


cdef inline int advance_step(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil:
    """The reads, moves and writes of a step."""
    cdef const Table* t = &k.query[query]
    cdef int number, failure
    p.step += 1
    p.last = time
    if t.slides:
        return step_spans(k, query, p, time, events, classes, n)
    failure = read_events(k, query, p, time, events, classes, n)
    if failure:
        return failure
    if t.guards:
        failure = read_guards(k, query, p, time, events, classes, n, k.fresh)
        if failure:
            return failure
        if write_guards(k, query, p, events, classes, n, k.fresh):
            return OUT_OF_MEMORY
    if t.semantics != ANY:
        for number in range(1, t.own_states):
            if t.semantics == CONTIGUOUS:
                p.nodes[number].count = p.nodes[number].head = 0
            elif p.nodes[number].moves:
                keep_unmoved(t, p, number, MOVES)
    return write_pending(k, t, p, time) if k.pending_end else NO_FAILURE


cdef int take_apart(
    Core* k, int query, int64_t key, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t rows,
    Py_ssize_t n, const int64_t* orders
) noexcept nogil:
    """Take all events of a time, those of order 0 being rows without an order among the others. Returns a Failure."""
    cdef Table* t = &k.query[query]
    cdef Partition* p = NULL
    cdef Py_ssize_t at = rows, after
    cdef bint ordered = False
    cdef int number, failure = enter(k, query, key, time, classes, n, &p)
    cdef int64_t* fresh = k.fresh + 2 * t.guard_states
    if failure or p == NULL:
        return failure
    p.step += 1
    p.last = time
    k.mark = LEAVES
    failure = read_events(k, query, p, time, events, classes, rows)
    k.mark = MOVES
    if failure:
        return failure
    if put_apart(k, t, p):
        return OUT_OF_MEMORY
    if t.guards:
        failure = read_guards(k, query, p, time, events, classes, rows, fresh)
        if failure:
            return failure
        p.apart_step = p.step
    while at < n:
        after = at
        while after < n and order_of(orders, events[after]) == order_of(orders, events[at]):
            after += 1
        if is_present(k, query, classes + at, after - at):
            ordered = True
            failure = advance_step(k, query, p, time, events + at, classes + at, after - at)
            if failure:
                return failure
        at = after
    if t.guards and write_guards(k, query, p, events, classes, rows, fresh):
        return OUT_OF_MEMORY
    p.apart_step = 0
    if t.semantics != ANY and is_present(k, query, classes, rows):
        for number in range(1, t.own_states):
            if t.semantics == NEXT:
                keep_unmoved(t, p, number, LEAVES)
            elif not ordered:
                p.nodes[number].count = p.nodes[number].head = 0
    if join_apart(k, t, p, time):
        return OUT_OF_MEMORY
    return schedule(k, t, p, key * k.queries + query, time)


cdef bint is_present(const Core* k, int query, const int* classes, Py_ssize_t n) noexcept nogil:
    """Whether the query sees some of the events."""
    cdef Py_ssize_t i
    for i in range(n):
        if entry_of(k, query, classes[i]).present:
            return True
    return False


# --------------------------------------------------------------------------------------------------- reads


cdef int read_events(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil:
    """What the events of a step add, as pending records."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef const Arrival* a
    cdef Py_ssize_t i
    cdef int64_t additions = 0, lanes = 1
    cdef int number, failure
    if t.span < 0 and t.gap < 0:
        lanes = max(0, floor_divide(time, t.slide) - p.horizon + 1)
    k.pending_end = 0
    k.traced_row = -1
    if t.traces and tidy_lineage(k, t, p):
        return OUT_OF_MEMORY
    if t.takings and tidy_marks(k, t, p):
        return OUT_OF_MEMORY
    for number in range(t.exact_sets):
        if make_room(k, t, p, number, n):
            return OUT_OF_MEMORY
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.arrivals, entry.arrivals_end):
            a = &t.arrival[k.class_member[number]]
            additions += (a.ways_end - a.ways) * lanes
            if t.sets and number_values(k, t, p, a, row_of(events[i])):
                return OUT_OF_MEMORY
    if additions == 0:
        return NO_FAILURE
    if reserve_bits(k, t, p, additions * (2 + t.end_count)):
        return OUT_OF_MEMORY
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.arrivals, entry.arrivals_end):
            failure = read_arrival(k, query, p, &t.arrival[k.class_member[number]], time, row_of(events[i]))
            if failure:
                return failure
    return NO_FAILURE


cdef int read_arrival(
    Core* k, int query, Partition* p, const Arrival* a, int64_t time, Py_ssize_t row
) noexcept nogil:
    """What one event, bound to a variable, adds to one state."""
    cdef const Table* t = &k.query[query]
    cdef Py_ssize_t words = value_words(t, p), i, cell
    cdef int number, failure
    cdef uint64_t* found
    cdef uint64_t* record
    k.gathered_count = 0
    if t.takings:
        begin_marks(k)
    for number in range(a.ways, a.ways_end):
        if t.way[number].source == 0:
            failure = begin_trends(k, t, p, a, &t.way[number], time, row)
        else:
            failure = extend_trends(k, query, p, a, &t.way[number], row)
        if failure:
            return failure
    cell = words_of(&t.cells, p.width)
    for i in range(k.gathered_count):
        found = k.gathered + i * (1 + words)
        bind_event(&t.cells, &t.binding[a.variable], p.width, found + 1, k.columns, row)
        if t.sets and has_trends(&t.cells, p.width, found + 1):
            bind_values(k, t, p, a.variable, found + 1 + cell, row)
        if t.traces and trace_event(k, t, p, a.variable, row, vertex_of(t, found + 1, words)):
            return OUT_OF_MEMORY
        if reserve_words(k, &k.pending, &k.pending_words, k.pending_end + RECORD + words):
            return OUT_OF_MEMORY
        record = k.pending + k.pending_end
        k.pending_end += RECORD + words
        record[0], record[1], record[2] = a.state, found[0], row
        memcpy(record + RECORD, found + 1, words * sizeof(uint64_t))
    return NO_FAILURE


cdef inline int compared(
    const Table* t, const uint64_t* found, Py_ssize_t words, int64_t lane, uint64_t mark
) noexcept nogil:
    """Whether what is gathered stands before (-1), at (0) or behind (1) a lane and mark."""
    if <int64_t> found[0] != lane:
        return -1 if <int64_t> found[0] < lane else 1
    if not t.takings or found[words] == mark:
        return 0
    return -1 if found[words] < mark else 1


cdef uint64_t* gathered_at(
    Core* k, const Table* t, Py_ssize_t words, int64_t lane, uint64_t mark, Py_ssize_t* hint
) noexcept nogil:
    """The value that is being gathered for a lane and mark, all zero where it is new; a null pointer without memory.

    `hint` is where it may be, and becomes where the next one may be.
    """
    cdef Py_ssize_t stride = 1 + words, low = 0, high = k.gathered_count, middle
    cdef uint64_t* at
    if hint[0] < high and compared(t, k.gathered + hint[0] * stride, words, lane, mark) == 0:
        low = hint[0]
    elif high and compared(t, k.gathered + (high - 1) * stride, words, lane, mark) < 0:
        low = high
    else:
        while low < high:
            middle = (low + high) // 2
            if compared(t, k.gathered + middle * stride, words, lane, mark) < 0:
                low = middle + 1
            else:
                high = middle
    hint[0] = low + 1
    if low < k.gathered_count and compared(t, k.gathered + low * stride, words, lane, mark) == 0:
        return k.gathered + low * stride + 1
    if reserve_words(k, &k.gathered, &k.gathered_words, (k.gathered_count + 1) * stride):
        return NULL
    at = k.gathered + low * stride
    if low < k.gathered_count:
        memmove(at + stride, at, (k.gathered_count - low) * stride * sizeof(uint64_t))
    k.gathered_count += 1
    at[0] = <uint64_t> lane
    memset(at + 1, 0, words * sizeof(uint64_t))
    if t.takings:
        at[words] = mark
    return at + 1


cdef int begin_trends(
    Core* k, const Table* t, Partition* p, const Arrival* a, const Way* way, int64_t time, Py_ssize_t row
) noexcept nogil:
    """The empty trend, in every lane in which it may begin now."""
    cdef Py_ssize_t words = value_words(t, p), hint = 0
    cdef int64_t lane, last, mark = 0
    cdef uint64_t* value
    if t.takings:
        mark = next_mark(k, t, p, 0, a.variable, row)
        if mark < 0:
            return failure_of(k, t, mark)
    if t.span >= 0:
        lane = last = time
    elif t.gap >= 0:
        lane = last = 0
    else:
        lane, last = p.horizon, floor_divide(time, t.slide)
    while lane <= last:
        if may_begin(t, p, way.guards, lane, time):
            value = gathered_at(k, t, words, lane, <uint64_t> mark, &hint)
            if value == NULL:
                return OUT_OF_MEMORY
            increment(&t.cells, p.width, value)
        lane += 1
    return NO_FAILURE


cdef int failure_of(Core* k, const Table* t, int64_t mark) noexcept nogil:
    """The Failure of a mark that there is not; none where its trends are in no row."""
    if mark == DROPPED:
        return NO_FAILURE
    if mark == NO_MEMORY:
        return OUT_OF_MEMORY
    k.failed_query = <int> (t - k.query)
    return TOO_MANY_GROUPS


cdef int extend_trends(
    Core* k, int query, Partition* p, const Arrival* a, const Way* way, Py_ssize_t row
) noexcept nogil:
    """What stands in a state and the event can extend."""
    cdef const Table* t = &k.query[query]
    cdef Nodes* n = &p.nodes[way.source]
    cdef Py_ssize_t words = value_words(t, p), stride, i, hint = 0
    cdef uint64_t* node
    cdef uint64_t* value
    cdef int64_t mark = 0
    cdef int fits
    if n.count == 0:
        return NO_FAILURE
    stride = node_words(t, p, way.source)
    if way.predicate >= 0:
        bind_scalars(k, t, way.predicate)
    for i in range(n.count):
        node = node_at(n, i, stride)
        if <int64_t> node[0] < p.horizon or killed_since(t, p, way.guards, step_of(node)):
            continue
        if way.predicate >= 0:
            fits = fits_predicate(
                k, query, way.predicate, node + HEAD + words,
                t.state[way.source].columns_end - t.state[way.source].columns, row,
            )
            if fits < 0:
                return OVERFLOW
            if not fits:
                continue
        if t.semantics == NEXT:
            node[1] |= k.mark
            n.moves = 1
        if a.state < 0:
            continue
        if t.takings:
            mark = next_mark(k, t, p, <int64_t> mark_of(t, node + HEAD, words), a.variable, row)
            if mark == DROPPED:
                continue
            if mark < 0:
                return failure_of(k, t, mark)
        value = gathered_at(k, t, words, <int64_t> node[0], <uint64_t> mark, &hint)
        if value == NULL or add_value(k, t, p, value, node + HEAD):
            return OUT_OF_MEMORY
    return NO_FAILURE


# ------------------------------------------------------------------------------------------ sets of values


cdef int number_values(Core* k, const Table* t, Partition* p, const Arrival* a, Py_ssize_t row) noexcept nogil:
    """Give an event's values numbers in the exact sets."""
    cdef int i
    cdef int64_t value = 0
    for i in range(t.exact_sets):
        if t.value_set[i].variable == a.variable and value_of(k, &t.value_set[i], row, &value):
            if number_value(k, t, p, i, value):
                return OUT_OF_MEMORY
    return NO_FAILURE


cdef void bind_values(
    const Core* k, const Table* t, const Partition* p, int variable, uint64_t* sets, Py_ssize_t row
) noexcept nogil:
    """Add an event's values to the sets of the trends that it takes part in."""
    cdef int i
    cdef int64_t value = 0, number
    cdef uint64_t coupon
    cdef uint8_t* register
    cdef const ValueSet* s
    for i in range(t.sets):
        s = &t.value_set[i]
        if s.variable != variable or not value_of(k, s, row, &value):
            pass
        elif not s.approximate:
            number = find_value(p, i, value)
            sets[number >> 6] |= <uint64_t> 1 << (number & 63)
        else:
            if s.text:
                coupon = k.hashes[value]
            else:
                coupon = hash_double((<double*> &value)[0]) if s.floating else hash_integer(value)
            register = <uint8_t*> sets + (coupon & 0xFFF)
            register[0] = max(register[0], <uint8_t> (coupon >> 56))
        sets += REGISTER_WORDS if s.approximate else p.set_words


# -------------------------------------------------------------------------------------------------- writes


cdef int write_pending(Core* k, const Table* t, Partition* p, int64_t time) noexcept nogil:
    """Make the additions of a step."""
    cdef Py_ssize_t words = value_words(t, p), at = 0
    cdef const uint64_t* record
    cdef const StateTable* s
    cdef uint64_t* node
    cdef int64_t lane, pane = 0
    cdef int state
    cdef bint known = False, counts = True
    while at < k.pending_end:
        record = k.pending + at
        at += RECORD + words
        state, lane = <int> record[0], <int64_t> record[1]
        if state < 0:
            continue
        s = &t.state[state]
        if s.final or s.ends < s.ends_end:
            if not known:
                counts = find_pane(t, p, time, &pane)
                known = True
            if counts and end_trends(k, t, p, s, lane, pane, record + RECORD):
                return OUT_OF_MEMORY
        if not s.kept:
            continue
        if not s.single:
            if add_node(k, t, p, state, lane, p.step, record + RECORD, 0):
                return OUT_OF_MEMORY
            continue
        node = append_node(k, t, p, state)
        if node == NULL:
            return OUT_OF_MEMORY
        node[0], node[1] = <uint64_t> lane, <uint64_t> p.step
        memcpy(node + HEAD, record + RECORD, words * sizeof(uint64_t))
        keep_columns(k, t, s.columns, s.columns_end, node + HEAD + words, <Py_ssize_t> record[2])
    return NO_FAILURE


cdef inline int end_trends(
    Core* k, const Table* t, Partition* p, const StateTable* s, int64_t lane, int64_t pane, const uint64_t* value
) noexcept nogil:
    """Count trends that come to a state where they may end."""
    cdef int i
    if s.final:
        if add_node(k, t, p, t.states + t.end_count, pane if t.span >= 0 else lane, 0, value, 0):
            return OUT_OF_MEMORY
        if t.span >= 0 and t.gap < 0:
            expect_row(t, p)
    for i in range(s.ends, s.ends_end):
        if add_node(k, t, p, t.states + t.member[i], lane, p.step, value, <uint64_t> pane):
            return OUT_OF_MEMORY
    return NO_FAILURE


cdef int put_apart(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Keep what the rows of a time add in the second half of the states."""
    cdef Py_ssize_t words = value_words(t, p), at = 0
    cdef const uint64_t* record
    cdef const StateTable* s
    cdef uint64_t* node
    while at < k.pending_end:
        record = k.pending + at
        at += RECORD + words
        if <int> record[0] < 0:
            continue
        s = &t.state[<int> record[0]]
        node = append_node(k, t, p, t.own_states + <int> record[0])
        if node == NULL:
            return OUT_OF_MEMORY
        node[0], node[1] = record[1], <uint64_t> p.step
        memcpy(node + HEAD, record + RECORD, words * sizeof(uint64_t))
        if s.single:
            keep_columns(k, t, s.columns, s.columns_end, node + HEAD + words, <Py_ssize_t> record[2])
    return NO_FAILURE


cdef int join_apart(Core* k, const Table* t, Partition* p, int64_t time) noexcept nogil:
    """What the rows of a time have added shows, now that the time is over."""
    cdef Py_ssize_t stride, i, additions = 0
    cdef const StateTable* s
    cdef uint64_t* held
    cdef uint64_t* node
    cdef int state
    cdef int64_t pane = 0
    cdef bint counts = find_pane(t, p, time, &pane)
    for state in range(t.own_states, t.states):
        additions += p.nodes[state].count
    if additions == 0:
        return NO_FAILURE
    if reserve_bits(k, t, p, additions * (2 + t.end_count)):
        return OUT_OF_MEMORY
    for state in range(1, t.own_states):
        s = &t.state[state]
        stride = node_words(t, p, state)
        for i in range(p.nodes[t.own_states + state].count):
            held = node_at(&p.nodes[t.own_states + state], i, stride)
            if counts and end_trends(k, t, p, s, <int64_t> held[0], pane, held + HEAD):
                return OUT_OF_MEMORY
            if s.kept and not s.single:
                if add_node(k, t, p, state, <int64_t> held[0], p.step, held + HEAD, 0):
                    return OUT_OF_MEMORY
            elif s.kept:
                node = append_node(k, t, p, state)
                if node == NULL:
                    return OUT_OF_MEMORY
                memcpy(node, held, stride * sizeof(uint64_t))
                node[1] = <uint64_t> p.step
        p.nodes[t.own_states + state].count = p.nodes[t.own_states + state].head = 0
    return NO_FAILURE
