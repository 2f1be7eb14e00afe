"""Trends of limited length (SPAN): a sliding product, so that an event costs the same whatever the span holds.

Trends that began at most `span` before an event consist of events of that time only. So their sums are what those
events make of empty states, the product of a map for each step; and a sliding product needs no inverse where it is
kept as two stacks. *Slots* are what an event reads: a state, once for each set of guards on the ways that leave it,
since a match of a guard empties a slot and not the state. The list `BACK` is the product of the steps since the last
turn: row 0 is what has begun since then, row s what becomes of one trend in slot s. `FRONT` is a stack of rows, the
oldest on top: the slots, as of the last turn, of all trends that began at some time or later and before the turn. So
what ends with an event is its row 0, and the top of the front times its other rows. Where the front is used up, a
*turn* goes back over the steps since the last one, which are logged, and multiplies from the left: row 0 is then the
row of those that began there. An event costs (1 + slots) times what it reads, twice.

A log's node is the time, then the step, what happened (an arrival, or behind these a guard), and how often trends
begin with it.

Sources: K. Tangwongsan, M. Hirzel, S. Schneider, Low-Latency Sliding-Window Aggregation in Worst-Case Constant Time
(DEBS 2017), §3 (two stacks); HAMLET (SIGMOD'21) §3 (an event's step is linear).
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cell_products cimport add_product
from hamlet.kernel.cells cimport add_cell, bind_event, bit_length, has_trends, increment, limbs_bits
from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.guards cimport has_guards, read_guards, write_guards
from hamlet.kernel.operators.matching.predicates cimport keep_columns
from hamlet.kernel.operators.matching.room cimport claim, reserve_words
from hamlet.kernel.operators.matching.state cimport SPARE_BITS, add_node, append_node, drop_first, relay
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    Arrival,
    Core,
    Entry,
    Nodes,
    Partition,
    Table,
    entry_of,
    find_pane,
    may_begin,
    node_at,
    node_words,
    row_of,
    value_words,
)
from hamlet.kernel.operators.matching.windows cimport expect_row
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Component
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport ALLOCATION

cdef enum:
    FRONT = 0          # lists in the place of those of the start and of the first state
    BACK = 1
    RECORD = 3         # words of a pending addition before its value: state, row, whether a trend ends
    STEP_AT = 20       # bits of a log's second word below the step
    WHAT_AT = 4        # and below what happened
    MOST_BEGINNINGS = (1 << WHAT_AT) - 1
    MOST_WHAT = 1 << (STEP_AT - WHAT_AT)
    MOST_SLOTS = 32
    AGAIN = -1         # no Failure: numbers have become wider, and the step is to be read again


cdef void lay_slots(Table* t, object table, Interface owner) except *:
    """Number the slots, and say which of them a way reads, an arrival adds to, and a guard empties."""
    cdef int[::1] of_way = np.zeros(len(table.ways) + 1, np.int32), first = np.zeros(t.states + 1, np.int32)
    cdef uint64_t[::1] killed = np.zeros(t.guards + 1, np.uint64)
    cdef uint8_t[::1] copy = np.zeros(max(t.cells.components, 1) * sizeof(Component), np.uint8)
    cdef int state, way, guard, number, beginnings, slots = 0, columns, column
    cdef Component* c
    found = {}
    for state in range(t.states):
        first[state] = 1 + slots
        for way, (source, guards, _) in enumerate(table.ways):
            if state and source == state and any(
                begin <= way < end for _, _, begin, end in table.arrivals
            ):
                if (state, guards) not in found:
                    slots += 1
                    found[state, guards] = slots
                of_way[way] = found[state, guards]
                if guards >= 0:
                    for number in range(*table.guard_sets[guards]):
                        guard = table.members[number]
                        killed[guard] |= <uint64_t> 1 << of_way[way]
    first[t.states] = 1 + slots
    beginnings = max(
        (sum(source == 0 for source, _, _ in table.ways[begin:end]) for _, _, begin, end in table.arrivals), default=0
    )
    t.slides = (
        0 < slots <= MOST_SLOTS and beginnings <= MOST_BEGINNINGS
        and len(table.arrivals) + t.guards < MOST_WHAT
    )
    if not t.slides:
        return
    t.arrivals, t.slots = len(table.arrivals), slots
    if t.cells.components:
        memcpy(&copy[0], t.cells.component, t.cells.components * sizeof(Component))
    t.logged = t.cells
    t.logged.component = <Component*> &copy[0]
    columns, column = table.stores[0]
    places = list(table.members[columns:column])
    for number in range(t.cells.components):
        c = &t.logged.component[number]
        if c.column >= 0:
            c.column = places.index(c.column)
    owner.held += [of_way, first, killed, copy]
    t.way_slot, t.slot_first, t.emptied = &of_way[0], &first[0], &killed[0]


# ------------------------------------------------------------------------------------------------------ lists


cdef inline int log_list(const Table* t) noexcept nogil:
    return t.states + t.end_count + 1


cdef inline uint64_t* slot_at(const Table* t, const Partition* p, int row, int slot) noexcept nogil:
    """The value in a slot of a row of the back."""
    return node_at(&p.nodes[BACK], row * t.slots + slot - 1, node_words(t, p, BACK)) + HEAD


cdef inline int what_of(const uint64_t* entry) noexcept nogil:
    return <int> (entry[1] >> WHAT_AT & (MOST_WHAT - 1))


cdef inline int beginnings_of(const uint64_t* entry) noexcept nogil:
    return <int> (entry[1] & MOST_BEGINNINGS)


cdef inline int slots_of(const Table* t, int state) noexcept nogil:
    return t.slot_first[state + 1] - t.slot_first[state]


cdef int reserve_nodes(Core* k, const Table* t, Partition* p, int number, Py_ssize_t nodes) noexcept nogil:
    """Room for so many nodes of the front or the back."""
    cdef Nodes* n = &p.nodes[number]
    cdef Py_ssize_t needed = nodes * node_words(t, p, number)
    if needed <= n.capacity:
        return NO_FAILURE
    if number == FRONT:
        needed = max(needed, 2 * n.capacity)
    if claim(k, p, (needed - n.capacity) * sizeof(uint64_t) + (ALLOCATION if n.word == NULL else 0)):
        return OUT_OF_MEMORY
    if not regrown(<void**>&n.word, needed * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    n.capacity = needed
    return NO_FAILURE


cdef int begin_back(Core* k, const Table* t, Partition* p, bint whole) noexcept nogil:
    """The product of no steps; without a front its row 0 is enough."""
    cdef Nodes* n = &p.nodes[BACK]
    cdef int slot
    if reserve_nodes(k, t, p, BACK, (1 + t.slots) * t.slots):
        return OUT_OF_MEMORY
    n.head, n.count = 0, (1 + t.slots if whole else 1) * t.slots
    memset(n.word, 0, n.count * node_words(t, p, BACK) * sizeof(uint64_t))
    if whole:
        for slot in range(1, 1 + t.slots):
            increment(&t.cells, p.width, slot_at(t, p, slot, slot))
    p.back_bits = 1
    return NO_FAILURE


# ----------------------------------------------------------------------------------------------------- widths


cdef inline int room_of(const Partition* p) noexcept nogil:
    return 64 * p.width - SPARE_BITS


cdef int measured(const Table* t, const Partition* p, int number) noexcept nogil:
    """A bound of the bits of all counts of a list together, and 1."""
    cdef const Nodes* n = &p.nodes[number]
    cdef Py_ssize_t stride = node_words(t, p, number), i
    cdef int64_t most = 0
    for i in range(n.count):
        most = max(most, limbs_bits(node_at(n, i, stride) + HEAD, p.width))
    return <int> (max(most, 1) + bit_length(n.count + 1))


cdef int widen(Core* k, const Table* t, Partition* p, int64_t bits) noexcept nogil:
    """Let counts have so many bits."""
    cdef int64_t limbs = (bits + SPARE_BITS) // 64 + 1
    return relay(k, t, t, p, <int> (limbs + (limbs >> 2)), p.set_words)


cdef int reserve_back(Core* k, const Table* t, Partition* p, int64_t additions) noexcept nogil:
    """Head-room for so many additions to a row of the back, each no larger than all its counts together, and 1."""
    cdef int more = <int> bit_length(additions)
    if not t.cells.exact:
        return NO_FAILURE
    if p.back_bits + more > room_of(p):
        p.back_bits = measured(t, p, BACK)
        if p.back_bits + more > room_of(p) and widen(k, t, p, p.back_bits + more):
            return OUT_OF_MEMORY
    p.back_bits += more
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------------- turns


cdef int slide(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Forget the trends that began before the horizon."""
    cdef Nodes* front = &p.nodes[FRONT]
    cdef Nodes* log = &p.nodes[log_list(t)]
    cdef Py_ssize_t stride = node_words(t, p, FRONT)
    while front.count and <int64_t> node_at(front, front.count - 1, stride)[0] < p.horizon:
        front.count -= t.slots
    if front.count:
        return NO_FAILURE
    if p.nodes[BACK].count == 0:
        return begin_back(k, t, p, False)
    p.nodes[BACK].count = t.slots
    if log.count and <int64_t> (log.word + log.head)[0] < p.horizon:
        return turn(k, t, p)
    return NO_FAILURE


cdef int turn(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Let the front be of the steps that are logged, from the last one to the first."""
    cdef Nodes* log = &p.nodes[log_list(t)]
    cdef Nodes* front = &p.nodes[FRONT]
    cdef Py_ssize_t stride = node_words(t, p, log_list(t)), gone = 0, first, end
    cdef const uint64_t* entry
    cdef int slot
    cdef bint begins
    while gone < log.count:  # a log begins with the beginning of a trend
        entry = node_at(log, gone, stride)
        if <int64_t> entry[0] >= p.horizon and beginnings_of(entry):
            break
        gone += 1
    drop_first(log, gone, stride)
    if log.count == 0:
        return begin_back(k, t, p, False)
    if begin_back(k, t, p, True):
        return OUT_OF_MEMORY
    end = log.count
    while end:
        first = end - 1
        entry = node_at(log, first, stride)
        begins = beginnings_of(entry) > 0
        while first and node_at(log, first - 1, stride)[1] >> STEP_AT == entry[1] >> STEP_AT:
            first -= 1
            begins = begins or beginnings_of(node_at(log, first, stride)) > 0
        if step_back(k, t, p, first, end):
            return OUT_OF_MEMORY
        if begins:
            if reserve_nodes(k, t, p, FRONT, front.count + t.slots):
                return OUT_OF_MEMORY
            memcpy(
                node_at(front, front.count, node_words(t, p, FRONT)),
                node_at(&p.nodes[BACK], 0, node_words(t, p, BACK)),
                t.slots * node_words(t, p, FRONT) * sizeof(uint64_t),
            )
            for slot in range(t.slots):
                node_at(front, front.count + slot, node_words(t, p, FRONT))[0] = entry[0]
            front.count += t.slots
        end = first
    log.count = log.head = 0
    return begin_back(k, t, p, True)


cdef int step_back(Core* k, const Table* t, Partition* p, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    """Multiply the back with a step from the left; the step is some entries of the log."""
    cdef const Nodes* log = &p.nodes[log_list(t)]
    cdef Py_ssize_t stride = node_words(t, p, log_list(t)), words, i, at = 0
    cdef const uint64_t* entry
    cdef const Arrival* a
    cdef uint64_t* value
    cdef uint64_t killed = 0
    cdef int64_t additions = 0
    cdef int row, slot, way, _
    for i in range(first, end):
        entry = node_at(log, i, stride)
        if what_of(entry) < t.arrivals:
            a = &t.arrival[what_of(entry)]
            additions += (a.ways_end - a.ways) * slots_of(t, a.state)
        else:
            killed |= t.emptied[what_of(entry) - t.arrivals]
    if reserve_back(k, t, p, additions):
        return OUT_OF_MEMORY
    words = value_words(t, p)
    if reserve_words(k, &k.pending, &k.pending_words, (end - first) * t.slots * words):
        return OUT_OF_MEMORY
    for i in range(first, end):
        entry = node_at(log, i, stride)
        if what_of(entry) >= t.arrivals:
            continue
        a = &t.arrival[what_of(entry)]
        for slot in range(1, 1 + t.slots):
            value = k.pending + at
            at += words
            memset(value, 0, words * sizeof(uint64_t))
            for row in range(t.slot_first[a.state], t.slot_first[a.state + 1]):
                add_cell(&t.cells, p.width, value, slot_at(t, p, row, slot))
            bind_entry(k, t, p, entry, a.variable, value)
    for row in range(1, 1 + t.slots):
        if killed >> row & 1:
            memset(slot_at(t, p, row, 1) - HEAD, 0, t.slots * node_words(t, p, BACK) * sizeof(uint64_t))
    at = 0
    for i in range(first, end):
        entry = node_at(log, i, stride)
        if what_of(entry) >= t.arrivals:
            continue
        a = &t.arrival[what_of(entry)]
        for slot in range(1, 1 + t.slots):
            for way in range(a.ways, a.ways_end):
                if t.way_slot[way]:
                    add_cell(&t.cells, p.width, slot_at(t, p, t.way_slot[way], slot), k.pending + at)
            for _ in range(beginnings_of(entry)):
                add_cell(&t.cells, p.width, slot_at(t, p, 0, slot), k.pending + at)
            at += words
    return NO_FAILURE


cdef inline void bind_entry(
    Core* k, const Table* t, const Partition* p, const uint64_t* entry, int variable, uint64_t* value
) noexcept nogil:
    """Let an event that was logged take part in trends."""
    cdef int i, columns = t.store[0].columns_end - t.store[0].columns
    for i in range(columns):
        k.kept_column[i].data = <const int64_t*> entry + HEAD + i
        k.kept_column[i].valid = <const uint8_t*> (entry + HEAD + columns) + i
    bind_event(&t.logged, &t.binding[variable], p.width, value, k.kept_column, 0)


# ------------------------------------------------------------------------------------------------------- steps


cdef int step_spans(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil:
    """The reads and writes of a step. Returns a Failure."""
    cdef const Table* t = &k.query[query]
    cdef int64_t pane = 0
    cdef bint counts = find_pane(t, p, time, &pane)
    cdef int failure = AGAIN
    if slide(k, t, p):
        return OUT_OF_MEMORY
    while failure == AGAIN:
        failure = read_step(k, query, p, time, events, classes, n, counts)
    if failure or log_step(k, query, p, time, events, classes, n):
        return OUT_OF_MEMORY
    if t.guards:
        failure = read_guards(k, query, p, time, events, classes, n, k.fresh)
        if failure:
            return failure
        if write_guards(k, query, p, events, classes, n, k.fresh):
            return OUT_OF_MEMORY
        if has_guards(k, query, classes, n):
            empty_slots(k, query, p, classes, n)
    return write_step(k, t, p, pane)


cdef int read_step(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n,
    bint counts,
) noexcept nogil:
    """What the events of a step add, as pending records; AGAIN where what ends needs wider numbers."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef const Arrival* a
    cdef Py_ssize_t i, words
    cdef uint64_t* record
    cdef uint64_t* value
    cdef int64_t additions = 0, most = 0, ends = 0, bits
    cdef int number, row, way, rows = <int> (p.nodes[BACK].count // t.slots)
    cdef bint final
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.arrivals, entry.arrivals_end):
            a = &t.arrival[k.class_member[number]]
            additions += (a.ways_end - a.ways) * max(1, slots_of(t, a.state))
    k.pending_end = 0
    if additions == 0:
        return NO_FAILURE
    if reserve_back(k, t, p, additions):
        return OUT_OF_MEMORY
    words = value_words(t, p)
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.arrivals, entry.arrivals_end):
            a = &t.arrival[k.class_member[number]]
            final = counts and t.state[a.state].final
            if not final and slots_of(t, a.state) == 0:
                continue
            for row in range(rows):
                if reserve_words(k, &k.pending, &k.pending_words, k.pending_end + RECORD + words):
                    return OUT_OF_MEMORY
                record = k.pending + k.pending_end
                value = record + RECORD
                memset(value, 0, words * sizeof(uint64_t))
                for way in range(a.ways, a.ways_end):
                    if t.way_slot[way]:
                        add_cell(&t.cells, p.width, value, slot_at(t, p, row, t.way_slot[way]))
                    elif row == 0 and may_begin(t, p, t.way[way].guards, time, time):
                        increment(&t.cells, p.width, value)
                if not has_trends(&t.cells, p.width, value):
                    continue
                bind_event(&t.cells, &t.binding[a.variable], p.width, value, k.columns, row_of(events[i]))
                record[0], record[1], record[2] = a.state, row, final
                k.pending_end += RECORD + words
                if final and t.cells.exact:
                    bits = limbs_bits(value, p.width)
                    if row:
                        bits += limbs_bits(front_at(t, p, row), p.width)
                    most = max(most, bits)
                    ends += 1
    if ends == 0:
        return NO_FAILURE
    most += 1 + bit_length(ends)
    if max(p.bits, most) + 1 > room_of(p):
        p.bits = measured(t, p, t.states + t.end_count)
        if max(p.bits, most) + 1 > room_of(p):
            return OUT_OF_MEMORY if widen(k, t, p, max(p.bits, most) + 1) else AGAIN
    p.bits = <int> max(p.bits, most) + 1
    return NO_FAILURE


cdef inline uint64_t* front_at(const Table* t, const Partition* p, int slot) noexcept nogil:
    """The value in a slot of what is on top of the front."""
    cdef const Nodes* n = &p.nodes[FRONT]
    return node_at(n, n.count - t.slots + slot - 1, node_words(t, p, FRONT)) + HEAD


cdef int log_step(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil:
    """Log what happens, from the first beginning of a trend on."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef const Arrival* a
    cdef Py_ssize_t i
    cdef int number, way, begins
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.arrivals, entry.arrivals_end):
            a = &t.arrival[k.class_member[number]]
            begins = 0
            for way in range(a.ways, a.ways_end):
                begins += t.way_slot[way] == 0 and may_begin(t, p, t.way[way].guards, time, time)
            if slots_of(t, a.state) == 0 or (begins == 0 and p.nodes[log_list(t)].count == 0):
                continue
            if log_entry(k, t, p, time, <uint64_t> k.class_member[number], begins, row_of(events[i])):
                return OUT_OF_MEMORY
    if p.nodes[log_list(t)].count == 0:
        return NO_FAILURE
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.guards, entry.guards_end):
            way = t.arrivals + t.guard_arrival[k.class_member[number]].guard
            if log_entry(k, t, p, time, <uint64_t> way, 0, -1):
                return OUT_OF_MEMORY
    return NO_FAILURE


cdef int log_entry(
    Core* k, const Table* t, Partition* p, int64_t time, uint64_t what, int begins, Py_ssize_t row
) noexcept nogil:
    cdef uint64_t* entry = append_node(k, t, p, log_list(t))
    if entry == NULL:
        return OUT_OF_MEMORY
    memset(entry, 0, node_words(t, p, log_list(t)) * sizeof(uint64_t))
    entry[0], entry[1] = <uint64_t> time, <uint64_t> p.step << STEP_AT | what << WHAT_AT | <uint64_t> begins
    if row >= 0:
        keep_columns(k, t, t.store[0].columns, t.store[0].columns_end, entry + HEAD, row)
    return NO_FAILURE


cdef void empty_slots(Core* k, int query, Partition* p, const int* classes, Py_ssize_t n) noexcept nogil:
    """A match of a guard forbids what arrived before this step."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef uint64_t killed = 0
    cdef Py_ssize_t i
    cdef int number, row, slot, rows = <int> (p.nodes[BACK].count // t.slots)
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.guards, entry.guards_end):
            killed |= t.emptied[t.guard_arrival[k.class_member[number]].guard]
    for slot in range(1, 1 + t.slots):
        if killed >> slot & 1:
            for row in range(rows):
                memset(slot_at(t, p, row, slot), 0, value_words(t, p) * sizeof(uint64_t))


cdef int write_step(Core* k, const Table* t, Partition* p, int64_t pane) noexcept nogil:
    """Make the additions of a step, and count the trends that end with it."""
    cdef Py_ssize_t words = value_words(t, p), at = 0
    cdef const uint64_t* record
    cdef int slot
    cdef bint ends = False
    if reserve_words(k, &k.scratch, &k.scratch_words, words):
        return OUT_OF_MEMORY
    while at < k.pending_end:
        record = k.pending + at
        at += RECORD + words
        for slot in range(t.slot_first[record[0]], t.slot_first[record[0] + 1]):
            add_cell(&t.cells, p.width, slot_at(t, p, <int> record[1], slot), record + RECORD)
        if not record[2]:
            continue
        if not ends:
            memset(k.scratch, 0, words * sizeof(uint64_t))
        ends = True
        if record[1] == 0:
            add_cell(&t.cells, p.width, k.scratch, record + RECORD)
        else:
            add_product(
                &t.cells, k.scratch, p.width, front_at(t, p, <int> record[1]), p.width, record + RECORD, p.width
            )
    if ends and has_trends(&t.cells, p.width, k.scratch):
        if add_node(k, t, p, t.states + t.end_count, pane, 0, k.scratch, 0):
            return OUT_OF_MEMORY
        expect_row(t, p)
    return NO_FAILURE


cdef bint are_spans(const Table* t, const Partition* p) noexcept nogil:
    """Whether lists that were read can be: none leads astray."""
    cdef const Nodes* log = &p.nodes[log_list(t)]
    cdef Py_ssize_t stride = node_words(t, p, log_list(t)), i, back = p.nodes[BACK].count
    if p.nodes[FRONT].count % t.slots or (back and back != t.slots and back != (1 + t.slots) * t.slots):
        return False
    if p.nodes[FRONT].count and back == 0:
        return False
    for i in range(log.count):
        if what_of(node_at(log, i, stride)) >= t.arrivals + t.guards:
            return False
    return True
