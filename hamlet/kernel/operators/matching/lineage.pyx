"""Which events are in partial trends: a graph that grows by a vertex per addition, and is read when a window closes.

A vertex stands for a set of events. It is an event and the vertex of the trends that it extends, or two vertices
together; 0 is the empty set. Additions of aggregates make vertices as they make sums, so whatever decides which trends
there are (semantics, guards, predicates, spans) decides about their events too. The events that some trend of a window
takes are those that are reached from the vertex of its totals: an event is in the graph if a beginning reaches it, and
is found if an end is reached from it. A vertex is younger than those it stands on.

Contract
--------
**Records.** An event has one record for each traced variable that it is bound to, however often it is bound.
**Tidying.** Before a step, when there are twice as many vertices as were needed last time, those that no node reaches
any more are given up, and the others are numbered anew in their order.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memmove, memset

from hamlet.kernel.cells cimport add_cell, bind_event, increment, words_of
from hamlet.kernel.operators.matching.predicates cimport keep_columns
from hamlet.kernel.operators.matching.room cimport claim, reserve_words
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    Core,
    EventSet,
    Lineage,
    Partition,
    Rows,
    Table,
    Traced,
    node_at,
    node_words,
    value_words,
    vertex_of,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport ALLOCATION

cdef extern from *:
    """
    #define HAMLET_EVENT ((uint64_t) 1 << 63)
    #define HAMLET_LOW ((uint64_t) 0xFFFFFFFF)
    """
    const uint64_t EVENT "HAMLET_EVENT"  # the high half is the number of a record
    const uint64_t LOW "HAMLET_LOW"

cdef enum:
    FIRST_VERTICES = 8
    TIDY_FROM = 256      # fewer vertices are not looked through
    MOST_VERTICES = 2147483647


cdef int reserve_vertex(Core* k, Partition* p) noexcept nogil:
    """Room for one more vertex."""
    cdef Lineage* graph = &p.lineage
    cdef Py_ssize_t capacity = max(2 * graph.capacity, <Py_ssize_t> FIRST_VERTICES)
    cdef Py_ssize_t more = (capacity - graph.capacity) * sizeof(uint64_t) + (0 if graph.capacity else ALLOCATION)
    if graph.count < graph.capacity:
        return NO_FAILURE
    if capacity > MOST_VERTICES or claim(k, p, more):
        return OUT_OF_MEMORY
    if not regrown(<void**>&graph.vertex, capacity * sizeof(uint64_t)):
        claim(k, p, -more)
        return OUT_OF_MEMORY
    graph.capacity = capacity
    if graph.count == 0:
        graph.vertex[0] = 0
        graph.count = 1
    return NO_FAILURE


cdef int reserve_record(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Room for one more record."""
    cdef Lineage* graph = &p.lineage
    cdef Py_ssize_t capacity = max(2 * graph.record_capacity, <Py_ssize_t> FIRST_VERTICES), words = t.record_words
    cdef Py_ssize_t more = (
        (capacity - graph.record_capacity) * words * sizeof(uint64_t) + (0 if graph.record_capacity else ALLOCATION)
    )
    if graph.records < graph.record_capacity:
        return NO_FAILURE
    if capacity > MOST_VERTICES or claim(k, p, more):
        return OUT_OF_MEMORY
    if not regrown(<void**>&graph.record, capacity * words * sizeof(uint64_t)):
        claim(k, p, -more)
        return OUT_OF_MEMORY
    graph.record_capacity = capacity
    return NO_FAILURE


cdef void free_lineage(Partition* p) noexcept nogil:
    free(p.lineage.vertex)
    free(p.lineage.record)


cdef inline bint stands_on(uint64_t vertex, uint64_t other) noexcept nogil:
    """Whether a vertex has all events of another one, as far as is seen at once."""
    if vertex & LOW == other:
        return True
    return not vertex & EVENT and vertex >> 32 == other


cdef int join_lineage(Core* k, Partition* p, uint64_t* target, uint64_t source) noexcept nogil:
    """Make a vertex that of its own events and those of another one."""
    cdef Lineage* graph = &p.lineage
    cdef uint64_t own = target[0]
    if source == 0 or source == own:
        return NO_FAILURE
    if own == 0 or stands_on(graph.vertex[source], own):
        target[0] = source
        return NO_FAILURE
    if stands_on(graph.vertex[own], source):
        return NO_FAILURE
    if reserve_vertex(k, p):
        return OUT_OF_MEMORY
    graph.vertex[graph.count] = own << 32 | source
    target[0] = <uint64_t> graph.count
    graph.count += 1
    return NO_FAILURE


cdef int trace_event(
    Core* k, const Table* t, Partition* p, int variable, Py_ssize_t row, uint64_t* vertex
) noexcept nogil:
    """Let an event, bound to a variable, be in the trends of a vertex, where its variable is asked for."""
    cdef Lineage* graph = &p.lineage
    cdef int number
    cdef const Traced* traced
    cdef uint64_t* record
    for number in range(t.traces):
        traced = &t.traced[number]
        if traced.variable == variable:
            break
    else:
        return NO_FAILURE
    if k.traced_row != row:
        memset(k.traced_record, 0xFF, t.traces * sizeof(int64_t))
        k.traced_row = row
    if k.traced_record[number] < 0:
        if reserve_record(k, t, p):
            return OUT_OF_MEMORY
        record = graph.record + graph.records * t.record_words
        record[0] = <uint64_t> number
        keep_columns(k, t, traced.columns, traced.columns_end, record + 1, row)
        k.traced_record[number] = graph.records
        graph.records += 1
    if reserve_vertex(k, p):
        return OUT_OF_MEMORY
    graph.vertex[graph.count] = EVENT | <uint64_t> k.traced_record[number] << 32 | vertex[0]
    vertex[0] = <uint64_t> graph.count
    graph.count += 1
    return NO_FAILURE


cdef void widen_records(const Table* t, Partition* p, int number, int place) noexcept nogil:
    """Integers of a traced variable's records become doubles."""
    cdef Py_ssize_t i
    cdef uint64_t* record
    for i in range(p.lineage.records):
        record = p.lineage.record + i * t.record_words
        if <int> record[0] == number:
            (<double*> (record + 1 + place))[0] = <double> (<int64_t*> (record + 1 + place))[0]


cdef bint is_lineage(const Table* t, const Partition* p) noexcept nogil:
    """Whether vertices and records that were read can be: none leads astray."""
    cdef const Lineage* graph = &p.lineage
    cdef Py_ssize_t i
    cdef uint64_t vertex, other
    for i in range(1, graph.count):
        vertex = graph.vertex[i]
        other = (vertex & ~EVENT) >> 32
        if vertex & LOW >= <uint64_t> i or other >= <uint64_t> (graph.records if vertex & EVENT else i):
            return False
    for i in range(graph.records):
        if graph.record[i * t.record_words] >= <uint64_t> t.traces:
            return False
    return True


# ------------------------------------------------------------------------------------------------- looked through


cdef int reserve_seen(Core* k, Py_ssize_t needed) noexcept nogil:
    """Room for stamps, of which new ones are none."""
    cdef Py_ssize_t before = k.seen_words
    if needed <= before:
        return NO_FAILURE
    if reserve_words(k, &k.seen, &k.seen_words, needed):
        return OUT_OF_MEMORY
    memset(k.seen + before, 0, (k.seen_words - before) * sizeof(uint64_t))
    return NO_FAILURE


cdef int tidy_lineage(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Give up what no node needs, where that may be much."""
    cdef Lineage* graph = &p.lineage
    cdef Py_ssize_t i, kept = 0, kept_records = 0, words, stride
    cdef uint64_t* number
    cdef uint64_t* node
    cdef uint64_t vertex, low, high
    cdef int place
    if graph.count < max(graph.tidy_at, <Py_ssize_t> TIDY_FROM):
        return NO_FAILURE
    if reserve_seen(k, graph.count + graph.records):
        return OUT_OF_MEMORY
    number = k.seen  # 1 + the new number of what is needed, then 0 again
    memset(number, 0, (graph.count + graph.records) * sizeof(uint64_t))
    words = value_words(t, p)
    for place in range(t.states + t.end_count + 1):
        stride = node_words(t, p, place)
        for i in range(p.nodes[place].count):
            number[vertex_of(t, node_at(&p.nodes[place], i, stride) + HEAD, words)[0]] = 1
    for i in range(graph.count - 1, 0, -1):
        if number[i]:
            vertex = graph.vertex[i]
            number[vertex & LOW] = 1
            if vertex & EVENT:
                number[graph.count + <Py_ssize_t> ((vertex & ~EVENT) >> 32)] = 1
            else:
                number[vertex >> 32] = 1
    for i in range(graph.records):
        if number[graph.count + i]:
            if kept_records != i:
                memmove(
                    graph.record + kept_records * t.record_words, graph.record + i * t.record_words,
                    t.record_words * sizeof(uint64_t),
                )
            number[graph.count + i] = <uint64_t> kept_records
            kept_records += 1
    number[0] = 0
    kept = 1
    for i in range(1, graph.count):
        if number[i]:
            vertex = graph.vertex[i]
            low, high = number[vertex & LOW], (vertex & ~EVENT) >> 32
            if vertex & EVENT:
                graph.vertex[kept] = EVENT | number[<uint64_t> graph.count + high] << 32 | low
            else:
                graph.vertex[kept] = number[high] << 32 | low
            number[i] = <uint64_t> kept
            kept += 1
    for place in range(t.states + t.end_count + 1):
        stride = node_words(t, p, place)
        for i in range(p.nodes[place].count):
            node = vertex_of(t, node_at(&p.nodes[place], i, stride) + HEAD, words)
            node[0] = number[node[0]]
    memset(number, 0, (graph.count + graph.records) * sizeof(uint64_t))
    graph.count, graph.records = kept, kept_records
    graph.tidy_at = 2 * kept
    return NO_FAILURE


cdef int look_at(Core* k, Py_ssize_t vertex, Py_ssize_t* todo) noexcept nogil:
    """Put a vertex that has not been looked at where those are that will be."""
    if vertex == 0 or k.seen[vertex] == k.stamp:
        return NO_FAILURE
    k.seen[vertex] = k.stamp
    if reserve_words(k, &k.todo, &k.todo_words, todo[0] + 1):
        return OUT_OF_MEMORY
    k.todo[todo[0]] = <uint64_t> vertex
    todo[0] += 1
    return NO_FAILURE


cdef int count_events(Core* k, const Table* t, Partition* p, Rows* r, uint64_t* value) noexcept nogil:
    """Bind the events that the trends of a value take, each once; those of event sets are appended to the rows."""
    cdef Lineage* graph = &p.lineage
    cdef Py_ssize_t words = words_of(&t.cells, p.width), todo = 0, record, found = r.events
    cdef uint64_t vertex
    cdef int i
    if reserve_seen(k, graph.count + graph.records) or reserve_words(k, &k.bound, &k.bound_words, words):
        return OUT_OF_MEMORY
    k.stamp += 1
    if look_at(k, <Py_ssize_t> vertex_of(t, value, value_words(t, p))[0], &todo):
        return OUT_OF_MEMORY
    while todo:
        todo -= 1
        vertex = graph.vertex[k.todo[todo]]
        if vertex & EVENT:
            record = <Py_ssize_t> ((vertex & ~EVENT) >> 32)
            if k.seen[graph.count + record] != k.stamp:
                k.seen[graph.count + record] = k.stamp
                bind_record(k, t, p, graph.record + record * t.record_words, value)
        elif look_at(k, <Py_ssize_t> (vertex >> 32), &todo):
            return OUT_OF_MEMORY
        if look_at(k, <Py_ssize_t> (vertex & LOW), &todo):
            return OUT_OF_MEMORY
    for i in range(t.event_sets):
        for record in range(graph.records):
            if k.seen[graph.count + record] == k.stamp:
                if append_event(k, t, r, &t.event_set[i], graph.record + record * t.record_words):
                    return OUT_OF_MEMORY
        if close_set(k, r, found):
            return OUT_OF_MEMORY
        found = r.events
    return NO_FAILURE


cdef int close_set(Core* k, Rows* r, Py_ssize_t first) noexcept nogil:
    """Note how many events a set of a row has that begins with the number `first` of all. Returns a Failure."""
    if reserve_words(k, &r.event_size, &r.event_sizes_capacity, r.event_sizes + 1):
        return OUT_OF_MEMORY
    r.event_size[r.event_sizes] = <uint64_t> ((r.events - first) // 3)
    r.event_sizes += 1
    return NO_FAILURE


cdef void bind_record(
    Core* k, const Table* t, const Partition* p, const uint64_t* record, uint64_t* value
) noexcept nogil:
    """Add one event to the components over matched events, as if one trend took it."""
    cdef const Traced* traced = &t.traced[record[0]]
    cdef Py_ssize_t words = words_of(&t.cells, p.width)
    cdef int i, columns = traced.columns_end - traced.columns
    cdef const uint8_t* there = <const uint8_t*> (record + 1 + columns)
    if traced.variable < 0:
        return
    for i in range(columns):
        k.kept_column[i].data = <const int64_t*> record + 1 + i
        k.kept_column[i].valid = there + i
    memset(k.bound, 0, words * sizeof(uint64_t))
    increment(&t.cells, p.width, k.bound)
    bind_event(&t.events, &t.binding[traced.variable], p.width, k.bound, k.kept_column, 0)
    memset(k.bound, 0, (p.width if t.cells.exact else 2) * sizeof(uint64_t))  # no trends
    add_cell(&t.cells, p.width, value, k.bound)


cdef int append_event(
    Core* k, const Table* t, Rows* r, const EventSet* s, const uint64_t* record
) noexcept nogil:
    """Append an event to an event set, if it is of its variable."""
    cdef const Traced* traced = &t.traced[record[0]]
    cdef const uint8_t* there = <const uint8_t*> (record + 1 + traced.columns_end - traced.columns)
    if <int> record[0] != s.traced:
        return NO_FAILURE
    if reserve_words(k, &r.event, &r.events_capacity, r.events + 3):
        return OUT_OF_MEMORY
    r.event[r.events] = record[1 + s.id]
    r.event[r.events + 1] = <uint64_t> (there[s.place] if s.place >= 0 else 0)
    r.event[r.events + 2] = record[1 + s.place] if s.place >= 0 else 0
    r.events += 3
    return NO_FAILURE
