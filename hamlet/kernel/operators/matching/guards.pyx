"""Negated patterns in the matching operator: the latest start of a match, by state, and what a finished match forbids.

What arrived before a match began, and would go on behind it, is forbidden; so the latest start of a match is enough.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.operators.matching.predicates cimport bind_scalars, fits_predicate, keep_columns
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.state cimport append_node
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    MOVES,
    Core,
    Entry,
    GuardArrival,
    Nodes,
    Partition,
    Table,
    Way,
    entry_of,
    node_at,
    node_words,
    row_of,
    step_of,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, OVERFLOW


cdef bint has_guards(const Core* k, int query, const int* classes, Py_ssize_t n) noexcept nogil:
    """Whether some of the events may be in a match of a negated pattern."""
    cdef Py_ssize_t i
    cdef const Entry* entry
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        if entry.guards < entry.guards_end:
            return True
    return False


cdef int read_guards(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n,
    int64_t* fresh
) noexcept nogil:
    """What the events of a step make of the negated patterns: the latest start of a match, by state."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef const GuardArrival* g
    cdef Py_ssize_t i
    cdef int number, failure
    cdef int64_t latest[2]
    cdef bint apart = fresh != k.fresh
    if apart:
        k.kept_starts = 0
    if not has_guards(k, query, classes, n):
        return NO_FAILURE
    memset(fresh, 0, 2 * t.guard_states * sizeof(int64_t))
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.guards, entry.guards_end):
            g = &t.guard_arrival[k.class_member[number]]
            failure = latest_start(k, query, p, g, time, row_of(events[i]), latest)
            if failure:
                return failure
            if latest[0] > fresh[2 * g.state]:
                memcpy(&fresh[2 * g.state], latest, sizeof(latest))
            if g.store < 0:
                continue
            if apart:
                if reserve_words(k, <uint64_t**> &k.kept_start, &k.kept_start_words, 2 * (k.kept_starts + 1)):
                    return OUT_OF_MEMORY
                memcpy(k.kept_start + 2 * k.kept_starts, latest, sizeof(latest))
                k.kept_starts += 1
            elif latest[0] and keep_start(k, t, p, g.store, latest, row_of(events[i]), MOVES):
                return OUT_OF_MEMORY
    return NO_FAILURE


cdef int write_guards(
    Core* k, int query, Partition* p, const uint64_t* events, const int* classes, Py_ssize_t n, const int64_t* fresh
) noexcept nogil:
    """Advance the negated patterns; where a match finishes, what arrived before it began is killed."""
    cdef const Table* t = &k.query[query]
    cdef const Entry* entry
    cdef const GuardArrival* g
    cdef Py_ssize_t i, stride, start = 0
    cdef int number
    cdef uint64_t* node
    cdef bint apart = fresh != k.fresh
    if not has_guards(k, query, classes, n):
        return NO_FAILURE
    for i in range(n):
        entry = entry_of(k, query, classes[i])
        for number in range(entry.guards, entry.guards_end):
            g = &t.guard_arrival[k.class_member[number]]
            if fresh[2 * g.state] > p.latest[2 * g.state]:
                memcpy(&p.latest[2 * g.state], &fresh[2 * g.state], 2 * sizeof(int64_t))
            if g.final and fresh[2 * g.state] > p.killed[2 * g.guard]:
                memcpy(&p.killed[2 * g.guard], &fresh[2 * g.state], 2 * sizeof(int64_t))
            if apart and g.store >= 0:
                if k.kept_start[2 * start]:
                    if keep_start(k, t, p, g.store, k.kept_start + 2 * start, row_of(events[i]), 0):
                        return OUT_OF_MEMORY
                start += 1
    if apart:
        return NO_FAILURE
    for number in range(t.states + t.end_count + 1, t.lists):
        stride = node_words(t, p, number)
        for i in range(p.nodes[number].count - 1, -1, -1):
            node = node_at(&p.nodes[number], i, stride)
            if not node[1] & MOVES:
                break
            node[1] &= ~MOVES
    return NO_FAILURE


cdef int latest_start(
    Core* k, int query, Partition* p, const GuardArrival* g, int64_t time, Py_ssize_t row, int64_t* latest
) noexcept nogil:
    """The latest start (step, time) of a partial match that an event goes on with; step 0 for none."""
    cdef const Table* t = &k.query[query]
    cdef const Way* way
    cdef Nodes* n
    cdef Py_ssize_t stride, i
    cdef int number, store, fits
    cdef uint64_t* node
    latest[0] = latest[1] = 0
    for number in range(g.ways, g.ways_end):
        way = &t.way[number]
        if way.source < 0:
            latest[0], latest[1] = p.step, time
            return NO_FAILURE
        if way.predicate < 0:
            if p.latest[2 * way.source] > latest[0]:
                memcpy(latest, &p.latest[2 * way.source], 2 * sizeof(int64_t))
            continue
        store = way.guards  # of a negated pattern: which store is looked at
        n = &p.nodes[t.states + t.end_count + 1 + store]
        stride = node_words(t, p, t.states + t.end_count + 1 + store)
        bind_scalars(k, t, way.predicate)
        for i in range(n.count):
            node = node_at(n, i, stride)
            if step_of(node) <= latest[0] or node[1] & MOVES:
                continue  # MOVES: an event of this very step
            fits = fits_predicate(
                k, query, way.predicate, node + HEAD, t.store[store].columns_end - t.store[store].columns, row
            )
            if fits < 0:
                return OVERFLOW
            if fits:
                latest[0], latest[1] = step_of(node), <int64_t> node[0]
    return NO_FAILURE


cdef int keep_start(
    Core* k, const Table* t, Partition* p, int store, const int64_t* latest, Py_ssize_t row, uint64_t mark
) noexcept nogil:
    """Keep an event of a negated pattern with the latest start of what it ends; marked while its step is under way."""
    cdef uint64_t* node = append_node(k, t, p, t.states + t.end_count + 1 + store)
    if node == NULL:
        return OUT_OF_MEMORY
    node[0], node[1] = <uint64_t> latest[1], <uint64_t> latest[0] | mark
    keep_columns(k, t, t.store[store].columns, t.store[store].columns_end, node + HEAD, row)
    return NO_FAILURE
