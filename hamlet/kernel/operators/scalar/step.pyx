"""One step of one query: what the events of one time extend, what their guards kill, what is added.

**Reads before writes.** A step first reads what stood there before it, then lets guards kill, then adds.
Source: HAMLET (SIGMOD'21) §3 (Eqs. 2-4), GRETA (VLDB'17) §§4-6; docs/language.md.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport (
    add_arriving,
    add_one,
    bind_event,
    bit_length,
    limbs_bits,
    words_of,
)
from hamlet.kernel.operators.event_store.index cimport read_index
from hamlet.kernel.operators.event_store.scan cimport scan_starts, scan_sums
from hamlet.kernel.operators.scalar.windows cimport open_state, turn_pane
from hamlet.kernel.plan cimport (
    FROM_CELL,
    FROM_START,
    FROM_STORE,
    NO_FAILURE,
    OUT_OF_MEMORY,
    OVERFLOW,
    Arrival,
    Entry,
    GuardArrival,
    Query,
    Source,
)
from hamlet.kernel.sharing.deferred cimport settle
from hamlet.kernel.state.core cimport EVENT_STORE, INDEX, SCALAR, Core
from hamlet.kernel.state.query_state cimport (
    State,
    Store,
    append_node,
    cell_of,
    cohort_at,
    merge_nodes,
    start_alive,
    told_apart,
    widen,
)
from hamlet.kernel.state.scratch cimport reserve_scratch

cdef int step_query(
    Core* k, int query, const Entry* only, int64_t key, int64_t time, const int64_t* rows, int events
) noexcept nogil:
    """One step of one query: all reads, then the guards, then all writes. `only` is the entry of a lone event."""
    cdef const Query* q = &k.query[query]
    cdef State* s = k.state[key * k.queries + query]
    cdef const Entry* entry
    cdef Py_ssize_t nodes = q.most_sources
    cdef int64_t bits
    cdef int i, j, failure
    if s == NULL:
        failure = open_state(k, query, key, time, &s)
        if failure or s == NULL:
            return failure
    if time >= s.border:
        failure = turn_pane(k, query, s, key, time)
        if failure:
            return failure
    if s.last < s.first:
        return NO_FAILURE
    if settle(k, query):
        return OUT_OF_MEMORY
    for i in range(q.stores):
        if not q.store[i].starts:
            nodes += s.store[i].count - s.store[i].head
    bits = max(s.bits, 1) + bit_length(events * nodes)
    if bits > 64 * s.width - 3:
        if widen(q, s, bits):
            return OUT_OF_MEMORY
    if reserve_scratch(k, q, s):
        return OUT_OF_MEMORY
    k.work[EVENT_STORE if q.stores else SCALAR].events += events
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL:
            continue
        for j in range(entry.arrivals, entry.arrivals_end):
            failure = read_event(k, query, s, k.class_member[j], time, rows[i])
            if failure:
                return failure
    if q.guards:
        failure = step_guards(k, query, s, only, time, rows, events)
        if failure:
            return failure
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL:
            continue
        for j in range(entry.arrivals, entry.arrivals_end):
            if k.used[k.class_member[j]]:
                k.used[k.class_member[j]] = 0
                if write_sums(k, q, s, k.class_member[j], time):
                    return OUT_OF_MEMORY
    for i in range(q.stores):
        s.store[i].count = s.store[i].pending
    return NO_FAILURE


cdef const Entry* entry_of(const Core* k, int kind, int query) noexcept nogil:
    cdef int i
    for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
        if k.entry[i].query == query:
            return &k.entry[i]
    return NULL


cdef int64_t concerning(const Core* k, int query, const int64_t* rows, int64_t events) noexcept nogil:
    """How many of the events of one time a query takes."""
    cdef int64_t i, found = 0
    for i in range(events):
        found += entry_of(k, k.class_of[rows[i]], query) != NULL
    return found


cdef int read_event(Core* k, int query, State* s, int arrival, int64_t time, int64_t row) noexcept nogil:
    """Sum what one event extends, into scratch; keep the event where later ones look at it."""
    cdef const Query* q = &k.query[query]
    cdef const Arrival* a = &q.arrival[arrival]
    cdef int words = words_of(q, s.width), cohort, i, failure
    cdef Py_ssize_t block = <Py_ssize_t> s.cohorts * words
    cdef uint64_t* total = k.scratch + arrival * block
    cdef uint64_t* sum = k.scratch + q.arrivals * block if k.used[arrival] else total
    cdef uint64_t* node
    cdef int64_t _
    memset(sum, 0, block * sizeof(uint64_t))
    for i in range(a.sources, a.sources_end):
        failure = read_source(k, query, s, a, &q.source[i], sum, row)
        if failure:
            return failure
    if a.components + 1 < a.components_end:
        cohort = cohort_at(s, s.first)
        for _ in range(s.first, s.last + 1):
            bind_event(q, a, s.width, sum + cohort * words, k.columns, row)
            cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    for i in range(a.stores, a.stores_end):
        if q.store[q.member[i]].merging:
            continue
        node = append_node(q, s, q.member[i], k.step, time, k.columns, row)
        if node == NULL:
            return OUT_OF_MEMORY
        memcpy(node, sum, block * sizeof(uint64_t))
    if k.used[arrival]:
        for cohort in range(s.cohorts):
            add_arriving(q, a, s.width, total + cohort * words, sum + cohort * words)
    k.used[arrival] = 1
    return NO_FAILURE


cdef int read_source(
    Core* k, int query, State* s, const Arrival* a, const Source* source, uint64_t* sum, int64_t row
) noexcept nogil:
    cdef const Query* q = &k.query[query]
    cdef int words = words_of(q, s.width), cohort = cohort_at(s, s.first), failure, place = 0
    cdef int64_t number
    if source.kind == FROM_STORE and source.index >= 0:
        k.reached[INDEX] += 1
        failure = read_index(q, s, source.index, k.columns, row, k.ranks, sum, &place)
        if failure == OVERFLOW:
            k.failed_query = query
            k.failed_predicate = source.predicate
            k.failed_place = -1
            k.failed_row = row
        return failure
    if source.kind == FROM_STORE:
        return scan_sums(k, query, s, source, sum, row)
    for number in range(s.first, s.last + 1):
        if source.kind == FROM_CELL:
            add_arriving(q, a, s.width, sum + cohort * words, cell_of(q, s, cohort, source.place))
        elif start_alive(q, s, source.guards, number):
            add_one(q, s.width, sum + cohort * words, source.place)
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    return NO_FAILURE


cdef int write_sums(Core* k, const Query* q, State* s, int arrival, int64_t time) noexcept nogil:
    """Add the sums of a step to the cells and merging stores of an arrival."""
    cdef const Arrival* a = &q.arrival[arrival]
    cdef int words = words_of(q, s.width), cohort, i, place
    cdef Py_ssize_t block = <Py_ssize_t> s.cohorts * words
    cdef uint64_t* total = k.scratch + arrival * block
    cdef uint64_t* cell
    cdef int64_t _
    cdef Store* store
    cohort = cohort_at(s, s.first)
    for _ in range(s.first, s.last + 1):
        for i in range(a.cells, a.cells_end):
            cell = cell_of(q, s, cohort, q.member[i])
            add_arriving(q, a, s.width, cell, total + cohort * words)
            if q.exact:
                s.bits = max(s.bits, limbs_bits(cell, s.width))
        if q.exact and a.stores < a.stores_end:
            s.bits = max(s.bits, limbs_bits(total + cohort * words, s.width))
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    for i in range(a.stores, a.stores_end):
        place = q.member[i]
        if not q.store[place].merging:
            continue
        store = &s.store[place]
        if store.count == store.head or told_apart(
            q, s, q.store[place].guards, store.step[store.count - 1], k.step
        ):
            if append_node(q, s, place, k.step, time, k.columns, 0) == NULL:
                return OUT_OF_MEMORY
            store.count = store.pending
        cell = store.value + (store.count - 1) * block
        for cohort in range(s.cohorts):
            add_arriving(q, a, s.width, cell + cohort * words, total + cohort * words)
            if q.exact:
                s.bits = max(s.bits, limbs_bits(cell + cohort * words, s.width))
        store.step[store.count - 1] = k.step
        store.time[store.count - 1] = time
        if q.store[place].merging == 1 and store.count - store.head > 8 + q.guard_states:
            merge_nodes(q, s, place)
    return NO_FAILURE


cdef int step_guards(
    Core* k, int query, State* s, const Entry* only, int64_t time, const int64_t* rows, int events
) noexcept nogil:
    """Advance the negated patterns by one step; a match that finishes kills what arrived before it began."""
    cdef const Query* q = &k.query[query]
    cdef const Entry* entry
    cdef const GuardArrival* arrival
    cdef int i, j, guard, state, failure
    cdef bint stepped = False
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL or entry.guards == entry.guards_end:
            continue
        if not stepped:
            memset(s.fresh_step, 0, q.guard_states * sizeof(int64_t))
            stepped = True
        for j in range(entry.guards, entry.guards_end):
            failure = read_guard(k, query, s, &q.guard_arrival[k.class_member[j]], time, rows[i])
            if failure:
                return failure
    if not stepped:
        return NO_FAILURE
    for state in range(q.guard_states):
        if s.fresh_step[state] > s.start_step[state]:
            s.start_step[state] = s.fresh_step[state]
            s.start_time[state] = s.fresh_time[state]
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL:
            continue
        for j in range(entry.guards, entry.guards_end):
            arrival = &q.guard_arrival[k.class_member[j]]
            guard = arrival.guard
            if arrival.final and s.fresh_step[arrival.state] > s.killed[guard]:
                s.killed[guard] = s.fresh_step[arrival.state]
                s.killed_time[guard] = s.fresh_time[arrival.state]
                if q.simple[guard]:
                    kill_cells(q, s, guard)
    return NO_FAILURE


cdef int read_guard(
    Core* k, int query, State* s, const GuardArrival* arrival, int64_t time, int64_t row
) noexcept nogil:
    """The latest start of a partial match that the event extends."""
    cdef const Query* q = &k.query[query]
    cdef const Source* source
    cdef uint64_t* node
    cdef int64_t step = 0, begin = 0
    cdef int number, failure
    for number in range(arrival.sources, arrival.sources_end):
        source = &q.source[number]
        if source.kind == FROM_START:
            s.begun[arrival.guard] = k.step
            step = k.step
            begin = time
        elif source.kind == FROM_CELL:
            if s.start_step[source.place] > step:
                step = s.start_step[source.place]
                begin = s.start_time[source.place]
        else:
            failure = scan_starts(k, query, s, source, row, &step, &begin)
            if failure:
                return failure
    if step == 0:
        return NO_FAILURE
    if step > s.fresh_step[arrival.state]:
        s.fresh_step[arrival.state] = step
        s.fresh_time[arrival.state] = begin
    if arrival.store >= 0:
        node = append_node(q, s, arrival.store, k.step, time, k.columns, row)
        if node == NULL:
            return OUT_OF_MEMORY
        node[0] = <uint64_t> step
        node[1] = <uint64_t> begin
    return NO_FAILURE


cdef void kill_cells(const Query* q, State* s, int guard) noexcept nogil:
    cdef int cell, cohort, i, guards, words = words_of(q, s.width)
    for cell in range(q.cells):
        guards = q.cell_guards[cell]
        if guards < 0:
            continue
        for i in range(q.guard_set[2 * guards], q.guard_set[2 * guards + 1]):
            if q.member[i] == guard:
                for cohort in range(s.cohorts):
                    memset(cell_of(q, s, cohort, cell), 0, words * sizeof(uint64_t))
