"""Queries whose events are logged together: a bit for each slot of each, and what is entered from what by shifts.

A slot is a state, once for each set of guards on the ways and ends that leave it. Trends that have reached a state
stand in all of its slots, until a match of a guard empties some; so whether a slot has trends says whether a way can be
taken, however many queries, states and guards there are. All slots of a query are in one word, by state, so a way is a
shift, and few shifts serve all ways of all queries.

Source: Glushkov automata by bits, as in Navarro and Raffinot, Flexible Pattern Matching in Strings (2002) §5.
"""

import functools
import itertools
import operator

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport place_in_cell, words_of
from hamlet.kernel.expression cimport Program
from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.room cimport claim
from hamlet.kernel.operators.matching.tables cimport (
    LOG_HEAD,
    Change,
    Core,
    Door,
    EventSet,
    Gain,
    Gate,
    Key,
    Lineage,
    Log,
    Member,
    Move,
    Packing,
    Partition,
    Search,
    Slot,
    Sum,
    Table,
    Trace,
    kept_words,
)
from hamlet.kernel.plan cimport (
    GREATEST_INT,
    LEAST_INT,
    NO_FAILURE,
    OCCURRENCES,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_INT,
    Component,
)
from hamlet.memory.arrays cimport grown

BITS = 64  # of a word
SUMMED = (OCCURRENCES, SUM_INT, PRESENT, LEAST_INT, GREATEST_INT)  # what a `Sum` says


cdef dict lay_logs(Core* k, object tables, bint apart, Interface owner):
    """Give the queries that can log their events, and have the same windows, a log in common.

    Returns
    -------
    dict of int to list of list of (int, (str, int, int))
        For the query that keeps a log, for each column the queries that it is kept for, and as what (`columns_of`).
    """
    together, kept = {}, {}
    for number, table in enumerate(tables):
        if table.logs and not apart:
            together.setdefault((table.within, table.slide, table.span, (table.calendar or ())[3:]), []).append(number)
    cdef Log* log
    takers = list(range(k.queries))
    for numbers in together.values():
        log = <Log*> owner.hold(np.zeros(sizeof(Log), np.uint8))
        kept[numbers[0]] = lay_log(k, log, tables, numbers, owner)
        for number in numbers:
            k.query[number].log = log
            k.query[number].keeps_log = number == numbers[0]
            k.query[number].record_words = log.head + kept_words(log.columns)
            takers.remove(number)
    k.takers, k.logs = len(takers), len(kept)
    k.taking_part = <int*> owner.hold(np.array([*takers, 0], np.int32))
    k.keeping = <int*> owner.hold(np.array([*kept, 0], np.int32))
    return kept


def columns_of(table):
    """The event columns that a log keeps for a query.

    Of each traced variable, then of what neighbours are compared by and of what is added up over their trends, then of
    what trends are grouped by.
    """
    found = [(("trace", number, place), column) for number, place, column in table.recorded()]
    found += [(("compared", number, place), column) for number, place, column in table.compared_columns()]
    return found + [(("taking", number, 0), row[3]) for number, row in enumerate(table.takings) if row[3] >= 0]


cdef list lay_log(Core* k, Log* log, object tables, object numbers, Interface owner):
    """Fill a log for some queries, and say what its columns are for."""
    slots = [tables[number].logged_slots() for number in numbers]
    used, places = [], []
    for each, _ in slots:  # the first word with room
        word = next((word for word, taken in enumerate(used) if taken + len(each) <= BITS), len(used))
        if word == len(used):
            used.append(0)
        places.append((word, used[word]))
        used[word] += len(each)
    users = {}
    for number in numbers:
        for user, column in columns_of(tables[number]):
            users.setdefault(column, []).append((number, user))
    columns = list(users)
    log.members, log.words, log.columns = len(numbers), len(used), len(columns)
    log.head = LOG_HEAD + 2 * log.words
    looks_twice = any(state == 0 and guards >= 0 for own, _ in slots for state, guards in own)
    log.looks_back = max(tables[numbers[0]].span, 0) * (2 if looks_twice else 1)  # a guard before the first event
    log.column = <int*> owner.hold(np.array([*columns, 0], np.int32))
    log.member = <Member*> owner.hold(np.zeros(log.members * sizeof(Member), np.uint8))
    log.listed = <int*> owner.hold(np.zeros(log.members, np.int32))
    member_of = np.zeros(BITS * log.words, np.int32)
    starts, finals, highest, lower = ([0] * log.words for _ in range(4))
    moves, traces, gains, sums = [{} for _ in range(log.words)], [], [], []
    summed, trace_of = np.zeros(log.words, np.uint64), np.zeros(BITS * log.words, np.int32)
    doors = [[] for _ in range(log.words)]
    cell, fields = 0, []
    for place, number in enumerate(numbers):
        word, base = places[place]
        own, ends = slots[place]
        bit_of = {slot: bit for bit, slot in enumerate(own)}
        lay_member(&log.member[place], tables[number], bit_of, owner)
        member_of[BITS * word + base:BITS * word + base + len(own)] = place
        log.member[place].query, log.member[place].word, log.member[place].base = number, word, base
        field = sum(1 << bit for bit in bit_of.values()) << base
        log.member[place].field = field
        fields.append(field)
        log.member[place].finals = sum(1 << bit_of[slot] for slot in ends)
        log.member[place].cell, log.member[place].words = cell, words_of(&k.query[number].cells, 1)
        log.tallies |= log.member[place].tallies
        starts[word] |= sum(1 << bit_of[slot] << base for slot in own if slot[0] == 0)
        finals[word] |= sum(1 << bit_of[slot] << base for slot in ends)
        highest[word] |= field & ~(field >> 1)
        lower[word] |= field & field >> 1
        states = {}
        for state, variable, begin, end in tables[number].arrivals:
            targets = [base + bit_of[slot] for slot in own if slot[0] == state]
            states[variable] = states.get(variable, 0) | sum(1 << bit for bit in targets)
            for source, guards, predicate in tables[number].ways[begin:end]:
                if predicate >= 0:
                    entered = sum(1 << each for each in targets)
                    doors[word].append((number, base + bit_of[source, guards], predicate, entered))
                    continue
                for target in targets:
                    shift = target - base - bit_of[source, guards]
                    moves[word][shift] = moves[word].get(shift, 0) | 1 << target
        kept = dict(columns_of(tables[number]))
        log.member[place].column = columns.index(kept["taking", 0, 0]) if ("taking", 0, 0) in kept else -1
        if log.member[place].sums:
            lay_sums(&k.query[number], tables[number], columns, owner)
        log.member[place].traces = len(traces)
        for of, (variable, first, end) in enumerate(tables[number].traced):
            if variable < 0:
                continue
            read = [columns.index(kept["trace", of, each]) for each in range(end - first)]
            more, own = gains_of(&k.query[number], variable, read), {}
            for kind, _, column, _ in more:
                if kind in SUMMED:
                    own.setdefault(column, len(sums) + len(own))
            mask = states.get(variable, 0) if own else 0
            summed[word] |= np.uint64(mask)
            for bit in range(BITS):
                if mask >> bit & 1:
                    trace_of[BITS * word + bit] = len(traces)
            end = len(gains) + len(more), len(sums), len(sums) + len(own)
            traces.append((states.get(variable, 0), len(gains), *end))
            gains += [(*each, own[each[2]] if each[0] in SUMMED else -1) for each in more]
            sums += own
        log.member[place].traces_end = len(traces)
        lay_event_sets(&log.member[place], tables[number], states, kept, columns, owner)
        cell += words_of(&k.query[number].cells, 1)
    log.summed, log.trace_of = <uint64_t*> owner.hold(summed), <int*> owner.hold(trace_of)
    lay_bits(log, moves, traces, gains, sums, owner)
    lay_doors(log, doors, tables, owner)
    log.member_of = <int*> owner.hold(member_of)
    log.starts = <uint64_t*> owner.hold(np.array(starts, np.uint64))
    log.finals = <uint64_t*> owner.hold(np.array(finals, np.uint64))
    log.highest = <uint64_t*> owner.hold(np.array(highest, np.uint64))
    log.lower = <uint64_t*> owner.hold(np.array(lower, np.uint64))
    log.field_of = <uint64_t*> owner.hold(np.array(fields, np.uint64))
    log.room = <uint64_t*> owner.hold(np.zeros(2 * log.words, np.uint64))
    lay_packing(log, tables, owner)
    log.cell = <uint64_t*> owner.hold(np.zeros(cell, np.uint64))
    return list(users.values())


cdef void lay_event_sets(
    Member* m, object table, object states, object kept, object columns, Interface owner
) except *:
    """What a query gives of the events that trends take: of which slots, and where a log keeps it."""
    sets, slots = [], []
    for of, *places in table.event_sets:
        slots.append(states.get(table.traced[of][0], 0))
        sets += [of, *(-1 if each < 0 else columns.index(kept["trace", of, each]) for each in places)]
    m.set_slots = <uint64_t*> owner.hold(np.array([*slots, 0], np.uint64))
    m.event_set = <EventSet*> owner.hold(np.array([*sets, 0, 0, 0], np.int32))


cdef void lay_packing(Log* log, object tables, Interface owner) except *:
    """The tables of numbers that are fields of words."""
    cdef const Member* m
    cdef Slot* slot
    cdef int place, bit, word, state
    log.slot = <Slot*> owner.hold(np.zeros(BITS * log.words * sizeof(Slot), np.uint8))
    rest = []
    for place in range(log.members):
        m = &log.member[place]
        ways = {state: list(range(begin, end)) for state, _, begin, end in tables[m.query].arrivals}
        for bit in range(m.slots):
            slot = &log.slot[BITS * m.word + m.base + bit]
            state = m.slot_state[bit]
            slot.named = m.named >> bit & 1
            slot.plain = <uint64_t> slot.named - 1
            slot.grows = int(m.fan[state]).bit_length()
            sources = [m.base + m.way_slot[way] for way in ways.get(state, ())]
            sources.sort(key=lambda each: each != m.base + bit)  # itself first, before it is changed
            sources += [BITS] * max(2 - len(sources), len(sources) % 2)
            slot.one, slot.two = sources[:2]
            slot.pairs = len(rest) // 2
            rest += sources[2:]
            slot.pairs_end = len(rest) // 2
    log.pair = <int*> owner.hold(np.array([*rest, 0], np.int32))
    log.packing = <Packing*> owner.hold(np.zeros(log.members * sizeof(Packing), np.uint8))
    log.standing = <uint64_t*> owner.hold(np.zeros(BITS + 1, np.uint64))
    before = [[log.starts[word] >> bit & 1 for bit in range(BITS)] for word in range(log.words)]
    log.before = <uint64_t*> owner.hold(np.array(before, np.uint64))
    used = [int(log.highest[word]).bit_length() for word in range(log.words)]
    log.used = <int*> owner.hold(np.array(used, np.int32))
    log.twice = <int*> owner.hold(np.zeros(log.words, np.int32))
    # while numbers fit, a query's events are fewer than a word has bits, and only what has been filled is emptied
    most = max(np.bincount([log.member[place].word for place in range(log.members)])) * BITS
    pairs = 2 + max(log.slot[bit].pairs_end - log.slot[bit].pairs for bit in range(BITS * log.words))
    log.change = <Change*> owner.hold(np.zeros((pairs * most + BITS) * sizeof(Change), np.uint8))


cdef void lay_bits(Log* log, object moves, object traces, object gains, object sums, Interface owner) except *:
    """The tables of what is entered from what, and of what events add."""
    cdef int i
    cdef Sum* sum_
    log.move_first = <int*> owner.hold(np.cumsum([0, *map(len, moves)], dtype=np.int32))
    log.move = <Move*> owner.hold(np.zeros((sum(map(len, moves)) + 1) * sizeof(Move), np.uint8))
    for i, (shift, targets) in enumerate(itertools.chain(*(each.items() for each in moves))):
        log.move[i].shift, log.move[i].targets = shift, targets
    log.trace = <Trace*> owner.hold(np.zeros((len(traces) + 1) * sizeof(Trace), np.uint8))
    for i, (mask, first, end, sums_first, sums_end) in enumerate(traces):
        log.trace[i].mask, log.trace[i].gains, log.trace[i].gains_end = mask, first, end
        log.trace[i].sums, log.trace[i].sums_end = sums_first, sums_end
    log.gain = <Gain*> owner.hold(np.zeros((len(gains) + 1) * sizeof(Gain), np.uint8))
    for i, (kind, at, column, integer, number) in enumerate(gains):
        log.gain[i].kind, log.gain[i].place, log.gain[i].column, log.gain[i].integer = kind, at, column, integer
        log.gain[i].sum = number
    log.sum = <Sum*> owner.hold(np.zeros((len(sums) + 1) * sizeof(Sum), np.uint8))
    for i, column in enumerate(sums):
        sum_ = &log.sum[i]
        sum_.always = column < 0
        sum_.place = -log.head if column < 0 else column
        sum_.there = (-log.head if column < 0 else log.columns) * <int> sizeof(uint64_t) + max(0, column)


cdef void lay_doors(Log* log, object doors, object tables, Interface owner) except *:
    """The tables of ways that compare neighbours."""
    cdef Search* search
    cdef Gate* gate
    places = {log.column[place]: place for place in range(log.columns)}
    gates = [list(dict.fromkeys(each[:3] for each in of_word)) for of_word in doors]  # query, slot, predicate
    answered = {(word, number, predicate): [] for word in range(log.words) for number, _, predicate in gates[word]}
    searches, keys = [], []
    for (word, number, predicate), found in answered.items():
        slots = sum({1 << slot for of, slot, by in gates[word] if (of, by) == (number, predicate)})
        targets = functools.reduce(operator.or_, (each[3] for each in doors[word] if each[::2] == (number, predicate)))
        found += range(len(searches), len(searches) + len(tables[number].compared[predicate].searches))
        for ordered, inclusive, turned, *sides in tables[number].compared[predicate].searches:
            first = len(keys), len(keys) + len(sides[0])
            keys += sides[0] + sides[1]
            searches.append((len(sides[0]), ordered, inclusive, turned, first, word, (slots, targets)))
    log.key = <Key*> owner.hold(np.zeros((len(keys) + 1) * sizeof(Key), np.uint8))
    for place, (program, columns, floating) in enumerate(keys):
        lay_key(&log.key[place], program, [places[each] for each in columns], floating, owner)
    log.searches = len(searches)
    log.search = <Search*> owner.hold(np.zeros((log.searches + 1) * sizeof(Search), np.uint8))
    for place, (count, ordered, inclusive, turned, first, word, taken) in enumerate(searches):
        search = &log.search[place]
        search.keys, search.ordered, search.inclusive, search.reversed = count, ordered, inclusive, turned
        search.key[0], search.key[1] = first
        search.word = word
        search.taken[0], search.taken[1] = taken
    log.gate_first = <int*> owner.hold(np.cumsum([0, *map(len, gates)], dtype=np.int32))
    log.gate = <Gate*> owner.hold(np.zeros((sum(map(len, gates)) + 1) * sizeof(Gate), np.uint8))
    log.door_first = <int*> owner.hold(np.cumsum([0, *map(len, doors)], dtype=np.int32))
    log.door = <Door*> owner.hold(np.zeros((sum(map(len, doors)) + 1) * sizeof(Door), np.uint8))
    for word in range(log.words):
        for place, (number, slot, predicate) in enumerate(gates[word], log.gate_first[word]):
            gate = &log.gate[place]
            gate.slot, gate.query, gate.predicate = <uint64_t> 1 << <int> slot, number, predicate
            found = answered[word, number, predicate]
            gate.search, gate.search_end = (found[0], found[0] + len(found)) if found else (0, 0)
            compared = tables[number].compared[predicate]
            gate.vector = <int*> owner.hold(np.array([places[each] for each in compared.vector] + [0], np.int32))
            gate.scalar = <int*> owner.hold(np.array([places[each] for each in compared.scalar] + [0], np.int32))
        for place, (*door, targets) in enumerate(doors[word], log.door_first[word]):
            log.door[place].gate = log.gate_first[word] + gates[word].index(tuple(door))
            log.door[place].targets = targets
    for place in range(log.members):
        lay_way_gates(log, &log.member[place], gates, tables[log.member[place].query], owner)


cdef void lay_way_gates(Log* log, Member* m, object gates, object table, Interface owner) except *:
    """Which gates are a query's, and which one each of its ways reads."""
    own = [place for place, (number, *_) in enumerate(gates[m.word], log.gate_first[m.word]) if number == m.query]
    m.gates, m.gates_end = (own[0], own[0] + len(own)) if own else (0, 0)
    way_gate = [-1] * (len(table.ways) + 1)
    for _, _, begin, end in table.arrivals:
        for way in range(begin, end):
            if table.ways[way][2] >= 0:
                gate = (m.query, m.base + m.way_slot[way], table.ways[way][2])
                way_gate[way] = log.gate_first[m.word] + gates[m.word].index(gate)
    m.way_gate = <int*> owner.hold(np.array(way_gate, np.int32))
    log.orders |= m.tallies and m.gates < m.gates_end


cdef void lay_key(Key* key, Program program, object columns, bint floating, Interface owner) except *:
    owner.held.append(program)
    key.code, key.count, key.floating = program.code, len(columns), floating
    key.column = <int*> owner.hold(np.array([*columns, 0], np.int32))


cdef void lay_member(Member* m, object table, object bit_of, Interface owner) except *:
    """What trends of one query are counted with."""
    state_slots = [0] * len(table.states)
    for (state, _), bit in bit_of.items():
        state_slots[state] |= 1 << bit
    arrival, fan = np.zeros(len(table.states), np.int32), np.zeros(len(table.states), np.int32)
    for number, (state, _, begin, end) in enumerate(table.arrivals):
        sources = [source for source, _, _ in table.ways[begin:end]]
        arrival[state], fan[state] = number, max(map(sources.count, sources), default=0)
    m.slots = len(bit_of)
    m.state_slots = <uint64_t*> owner.hold(np.array(state_slots, np.uint64))
    m.slot_state = <int*> owner.hold(np.array([state for state, _ in bit_of], np.int32))
    m.arrival, m.fan = <int*> owner.hold(arrival), <int*> owner.hold(fan)
    again = states_again(table)
    m.again, m.once = sum(state_slots[state] for state in again), len(table.states) - 1 - len(again)
    ways = [bit_of.get((source, guards), 0) for source, guards, _ in table.ways]  # those of guards are not read
    m.way_slot = <int*> owner.hold(np.array([*ways, 0], np.int32))
    emptied = [0] * len(table.guard_first)
    for (_, guards), bit in bit_of.items():
        begin, end = table.guard_sets[guards] if guards >= 0 else (0, 0)
        for guard in table.members[begin:end]:
            emptied[guard] |= 1 << bit
    m.emptied = <uint64_t*> owner.hold(np.array(emptied, np.uint64))
    m.tallies = not table.over_events
    m.sums = m.tallies and bool(table.compared) and (
        not table.exact or any(variable >= 0 for _, variable, *_ in table.components)
    )
    grouped = table.takings[0][2] if table.takings else None  # the variable
    m.named = sum(state_slots[state] for state, variable, _, _ in table.arrivals if variable == grouped)


def states_again(table):
    """The states from which ways lead back to them."""
    behind = {state: {way[0] for way in table.ways[begin:end]} for state, _, begin, end in table.arrivals}
    for _ in behind:
        behind = {state: near.union(*(behind.get(each, ()) for each in near)) for state, near in behind.items()}
    return [state for state, near in behind.items() if state in near]


cdef void lay_sums(Table* t, object table, object columns, Interface owner) except *:
    """The components over trends, with the columns of a log."""
    cdef int i
    t.logged = t.cells
    t.logged.component = <Component*> owner.hold(np.array(table.components, np.int32))
    for i in range(t.cells.components):
        if t.cells.component[i].column >= 0:
            t.logged.component[i].column = columns.index(t.cells.component[i].column)


cdef list gains_of(const Table* t, int variable, object read):
    """What an event that is bound to a variable adds: kind, place in a cell, column of the log, whether it is INT."""
    cdef int i
    cdef const Component* c
    found = []
    for i in range(t.events.components):
        c = &t.events.component[i]
        if c.variable == variable:
            found.append((c.kind, place_in_cell(c, 1), read[c.column] if c.column >= 0 else -1, c.integer))
    return found


cdef void log_class(Core* k, object entries) except *:
    """Note what a new class of events may be bound in, and which slots its events empty."""
    cdef int query, of_query, number
    cdef const Table* t
    cdef const Member* m
    cdef Log* log
    cdef uint64_t* bound
    for query in range(k.queries):
        t = &k.query[query]
        if not t.keeps_log:
            continue
        log = t.log
        log.bound = <uint64_t*> grown(log.bound, (k.classes + 1) * 2 * log.words * sizeof(uint64_t))
        bound = log.bound + k.classes * 2 * log.words
        memset(bound, 0, 2 * log.words * sizeof(uint64_t))
        for of_query, arrivals, guards, _ in entries:
            t = &k.query[of_query]
            if t.log != log:
                continue
            m = member_of(log, of_query)
            for number in arrivals:
                bound[m.word] |= m.state_slots[t.arrival[number].state] << m.base
            for number in guards:
                bound[log.words + m.word] |= m.emptied[t.guard_arrival[number].guard] << m.base
        note_twice(log, bound)


cdef void note_twice(Log* log, const uint64_t* bound) noexcept:
    """Note in which words an event of a class may be taken in a slot and in a lower one that a way leads to."""
    cdef const Move* move
    cdef int word, i
    for word in range(log.words):
        for i in range(log.move_first[word], log.move_first[word + 1]):
            move = &log.move[i]
            log.twice[word] |= move.shift < 0 and (bound[word] & move.targets) << -move.shift & bound[word] != 0


cdef const Member* member_of(const Log* log, int query) noexcept nogil:
    """A query as a member of its log."""
    cdef int i
    for i in range(log.members):
        if log.member[i].query == query:
            break
    return &log.member[i]


cdef int relay_log(
    Core* k, const Table* t, Partition* p, const Log* old, const int32_t* source, const uint8_t* widens
) noexcept nogil:
    """Give the entries of a log the columns of another one, some of which turn from INT into DOUBLE."""
    cdef Lineage* graph = &p.lineage
    cdef Py_ssize_t before = old.head + kept_words(old.columns), after = t.record_words, i
    cdef const uint64_t* entry
    cdef const uint8_t* held
    cdef uint64_t* moved
    cdef uint64_t* record
    cdef uint8_t* there
    cdef int column
    if graph.record == NULL:
        return NO_FAILURE
    if claim(k, p, graph.record_capacity * (after - before) * <Py_ssize_t> sizeof(uint64_t)):
        return OUT_OF_MEMORY
    moved = <uint64_t*> calloc(graph.record_capacity * after, sizeof(uint64_t))
    if moved == NULL:
        return OUT_OF_MEMORY
    for i in range(graph.records):
        entry, record = graph.record + i * before, moved + i * after
        held = <const uint8_t*> (entry + old.head + old.columns)
        there = <uint8_t*> (record + t.log.head + t.log.columns)
        memcpy(record, entry, old.head * sizeof(uint64_t))
        for column in range(t.log.columns):
            record[t.log.head + column] = entry[old.head + source[column]]
            there[column] = held[source[column]]
            if widens[column]:
                widen(record + t.log.head + column)
    free(graph.record)
    graph.record = moved
    return NO_FAILURE


cdef inline void widen(uint64_t* word) noexcept nogil:
    (<double*> word)[0] = <double> (<int64_t*> word)[0]
