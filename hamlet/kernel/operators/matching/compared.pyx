"""Trends whose neighbours are compared, added up over a log: sums over the events that an event may follow.

All keys of a window are known when it closes. So the events that may stand in a gate (`neighbours`) are ordered by key
beforehand, and the trends that end with them, added up, stand in a Fenwick tree in this order: those with a key below
that of a later event are the sum of O(log n) nodes, and one more is added to as many. Where other keys must be equal,
there is a tree for each value of them. A match of a guard empties a tree by its stamp. Of comparisons that have no keys
all pairs of events are looked at. Trends are added up as their number, or, where sums over them are asked for, as a
cell: nothing but what is below a key is ever read, so extrema need no tree of another kind.

Numbers are as wide as they turn out: no sum passes that of all trends so far, begun or ended.

Source: Fenwick, A New Data Structure for Cumulative Frequency Tables, Software: Practice and Experience 24 (1994).
"""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport add_cell, bind_event, increment, limbs_add, limbs_bits
from hamlet.kernel.operators.matching.neighbours cimport FAILED, FITS, Fit, fits_pair, point_at_all
from hamlet.kernel.operators.matching.passes cimport Step, Tally
from hamlet.kernel.operators.matching.tables cimport FOUND, Arrival, Core, Gate, Log, Member, Search
from hamlet.kernel.plan cimport NO_FAILURE, OVERFLOW

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef enum:
    HEAD_ROOM = 16       # bits: an event adds up all trends once for each way, of which a state has fewer than 2^16


cdef Py_ssize_t compared_words(const Log* log, const Tally* y, Py_ssize_t entries, Py_ssize_t steps) noexcept nogil:
    """How much room is needed: the sum of all numbers, those of each event by state, and the nodes of all trees."""
    cdef const Member* m = y.member
    cdef Py_ssize_t words = y.width + steps * y.table.states * y.words
    cdef int number
    for number in range(m.gates, m.gates_end):
        words += (log.gate[number].search_end - log.gate[number].search) * entries * (1 + y.words)
    return words


cdef int follow_compared(
    Core* k, const Tally* y, const Log* log, const uint64_t* record, Py_ssize_t entries, const Step* step,
    Py_ssize_t steps, int widest, uint64_t* room
) noexcept nogil:
    """Add up the trends of some events as the total, in `room` that is all zeros.

    Returns a Failure, or TOO_LONG where numbers need more words; they never need more than `widest`.
    """
    cdef const Member* m = y.member
    cdef Gate* gate
    cdef Py_ssize_t at = 0, begin
    cdef uint64_t emptied, left
    cdef int number
    cdef uint64_t* all_ = room
    cdef uint64_t* numbers = room + y.width
    cdef uint64_t* tree = numbers + steps * y.table.states * y.words
    for number in range(m.gates, m.gates_end):
        gate = &log.gate[number]
        gate.tree, gate.count = tree, 0
        tree += (gate.search_end - gate.search) * entries * (1 + y.words)
    left = m.state_slots[0]
    while left:
        increment(&y.table.cells, y.width, y.standing + ctzll(left) * y.stride)
        left &= left - 1
    while at < steps:
        begin, emptied = at, 0
        while at < steps and step[at].step == step[begin].step:
            if take_event(k, y, log, record, entries, step, at, numbers):
                return OVERFLOW
            emptied |= step[at].emptied
            at += 1
        empty(y, log, emptied)
        while begin < at:
            stand(y, log, entries, step, begin, numbers, all_)
            begin += 1
        if y.width < widest and limbs_bits(all_, y.width) > 64 * y.width - HEAD_ROOM:
            return TOO_LONG
    left = m.finals
    while left:
        add_trends(y, y.total, y.standing + ctzll(left) * y.stride)
        left &= left - 1
    return NO_FAILURE


cdef inline void add_trends(const Tally* y, uint64_t* target, const uint64_t* source) noexcept nogil:
    if y.member.sums:
        add_cell(&y.table.cells, y.width, target, source)
    else:
        limbs_add(target, source, y.width)


cdef int take_event(
    Core* k, const Tally* y, const Log* log, const uint64_t* record, Py_ssize_t entries, const Step* step,
    Py_ssize_t at, uint64_t* numbers
) noexcept nogil:
    """Add up the trends that end with an event, for each state that it is taken in. Returns a Failure."""
    cdef const Member* m = y.member
    cdef const Arrival* a
    cdef uint64_t* own
    cdef uint64_t left = step[at].slots
    cdef int state, way
    if m.sums:
        point_at_all(log, record + step[at].entry * y.table.record_words, k.kept_column)
    while left:
        state = m.slot_state[ctzll(left)]
        left &= ~m.state_slots[state]
        own = number_of(y, numbers, at, state)
        a = &y.table.arrival[m.arrival[state]]
        for way in range(a.ways, a.ways_end):
            if m.way_gate[way] < 0:
                add_trends(y, own, y.standing + m.way_slot[way] * y.stride)
            elif add_fitting(k, y, log, &log.gate[m.way_gate[way]], record, entries, step, at, numbers, own):
                return OVERFLOW
        if m.sums:
            bind_event(&y.table.logged, &y.table.binding[a.variable], y.width, own, k.kept_column, 0)
    return NO_FAILURE


cdef inline uint64_t* number_of(const Tally* y, uint64_t* numbers, Py_ssize_t at, int state) noexcept nogil:
    return numbers + (at * y.table.states + state) * y.words


cdef int add_fitting(
    Core* k, const Tally* y, const Log* log, const Gate* gate, const uint64_t* record, Py_ssize_t entries,
    const Step* step, Py_ssize_t at, uint64_t* numbers, uint64_t* own
) noexcept nogil:
    """Add what stands in a gate and may come before an event. Returns a Failure."""
    cdef const Search* s
    cdef const uint64_t* node
    cdef Py_ssize_t i, entry = step[at].entry
    cdef int number, group, state = y.member.slot_state[ctzll(gate.slot >> y.member.base)]
    cdef Fit fit
    for i in range(gate.count):  # without keys
        fit = fits_pair(k, y.table, gate, record, step[gate.best[i]].entry, entry)
        if fit == FAILED:
            return OVERFLOW
        if fit == FITS:
            add_trends(y, own, number_of(y, numbers, gate.best[i], state))
    for number in range(gate.search, gate.search_end):
        s = &log.search[number]
        group = (<const int32_t*> (s.found + FOUND * entry + 2))[1]
        i = s.below[entry] if group >= 0 else 0
        while i:
            node = node_of(y, gate, number, entries, s.first[group] + i - 1)
            if node[0] == gate.stamp:
                add_trends(y, own, node + 1)
            i &= i - 1
    return NO_FAILURE


cdef inline uint64_t* node_of(
    const Tally* y, const Gate* gate, int search, Py_ssize_t entries, Py_ssize_t place
) noexcept nogil:
    return gate.tree + ((search - gate.search) * entries + place) * (1 + y.words)


cdef void empty(const Tally* y, const Log* log, uint64_t slots) noexcept nogil:
    """Let nothing stand in some slots."""
    cdef const Member* m = y.member
    cdef Gate* gate
    cdef int number
    for number in range(m.gates if slots else m.gates_end, m.gates_end):
        gate = &log.gate[number]
        if gate.slot >> m.base & slots:
            gate.stamp += 1
            gate.count = 0
    while slots:
        memset(y.standing + ctzll(slots) * y.stride, 0, y.stride * sizeof(uint64_t))
        slots &= slots - 1


cdef void stand(
    const Tally* y, const Log* log, Py_ssize_t entries, const Step* step, Py_ssize_t at, uint64_t* numbers,
    uint64_t* all_
) noexcept nogil:
    """Let an event stand in the slots that it is taken in."""
    cdef const Member* m = y.member
    cdef Gate* gate
    cdef const uint64_t* own
    cdef uint64_t left = step[at].slots
    cdef int slot, number
    while left:
        slot = ctzll(left)
        left &= left - 1
        own = number_of(y, numbers, at, m.slot_state[slot])
        add_trends(y, y.standing + slot * y.stride, own)
        if y.table.cells.exact:
            limbs_add(all_, own, y.width)
        for number in range(m.gates, m.gates_end):
            gate = &log.gate[number]
            if gate.slot >> m.base != <uint64_t> 1 << slot:
                continue
            if gate.search == gate.search_end:
                gate.best[gate.count] = <uint64_t> at
                gate.count += 1
            add_to_trees(y, log, gate, entries, step[at].entry, own)


cdef void add_to_trees(
    const Tally* y, const Log* log, const Gate* gate, Py_ssize_t entries, Py_ssize_t entry, const uint64_t* own
) noexcept nogil:
    """Add the trends that end with an event to the trees of a gate."""
    cdef const Search* s
    cdef uint64_t* node
    cdef Py_ssize_t i, size
    cdef int number, group
    for number in range(gate.search, gate.search_end):
        s = &log.search[number]
        group = (<const int32_t*> (s.found + FOUND * entry + 2))[0]
        if group < 0:
            continue
        i, size = s.rank[entry] + 1, s.first[group + 1] - s.first[group]
        while i <= size:
            node = node_of(y, gate, number, entries, s.first[group] + i - 1)
            if node[0] != gate.stamp:
                node[0] = gate.stamp
                memset(node + 1, 0, y.words * sizeof(uint64_t))
            add_trends(y, node + 1, own)
            i += i & -i
