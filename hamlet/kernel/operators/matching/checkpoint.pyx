"""A partition of the matching operator as words and back.

`read_partition` checks every length before it is believed, and every number of a string that is kept for a predicate or
a set; counts themselves cannot be checked.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

from hamlet.kernel.operators.matching.lineage cimport is_lineage, reserve_record, reserve_vertex
from hamlet.kernel.operators.matching.marks cimport MOST_WORDS, add_mark
from hamlet.kernel.operators.matching.reach cimport is_log
from hamlet.kernel.operators.matching.spans cimport are_spans
from hamlet.kernel.operators.matching.state cimport free_partition, new_partition
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    Core,
    Lineage,
    Nodes,
    Partition,
    Store,
    Table,
    is_store,
    mark_of,
    node_at,
    node_words,
    value_words,
    vertex_of,
)
from hamlet.kernel.operators.matching.value_sets cimport number_value
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport ALLOCATION, take

cdef enum:
    NUMBERS = 12         # words of a partition before its lists
    SPARE_WORDS = 200    # limbs of a count, or words of a set, that there may be besides one for each event
    TIME_BITS = 62       # no place on a line of time is further from 0 than 2^62 ticks


cdef int put(Writer* to, const void* words, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t capacity = 2 * (to.count + count)
    if to.count + count > to.capacity:
        if not regrown(<void**>&to.word, capacity * sizeof(uint64_t)):
            return 1
        to.capacity = capacity
    if count:
        memcpy(to.word + to.count, words, count * sizeof(uint64_t))
    to.count += count
    return 0


cdef int write_partition(Writer* to, const Table* t, const Partition* p, int64_t slot) noexcept nogil:
    """Append a partition; 1 without memory."""
    cdef int64_t numbers[NUMBERS]
    cdef int number
    cdef int64_t count
    cdef const Nodes* n
    numbers[0], numbers[1], numbers[2], numbers[3] = slot, p.step, p.last, p.horizon
    numbers[4], numbers[5], numbers[6], numbers[7] = p.horizon_time, p.next_window, p.begin, p.until
    numbers[8], numbers[9], numbers[10], numbers[11] = p.open, p.width, p.set_words, 64 * p.width
    if put(to, numbers, NUMBERS) or put(to, p.latest, 2 * (t.guard_states + t.guards)):
        return 1
    for number in range(t.exact_sets):
        count = p.dictionary[number].count
        if put(to, &count, 1) or put(to, p.dictionary[number].value, count):
            return 1
    if t.traces or t.log != NULL:
        numbers[0], numbers[1] = max(p.lineage.count - 1, 0), p.lineage.records  # vertex 0 is in every graph
        if put(to, numbers, 2) or put(to, p.lineage.vertex + 1, numbers[0]):
            return 1
        if put(to, p.lineage.record, p.lineage.records * t.record_words):
            return 1
    if t.takings:
        count = p.marks.count
        if put(to, &count, 1) or put(to, p.marks.word, count * 2 * t.takings):
            return 1
    for number in range(t.lists):
        n = &p.nodes[number]
        count = n.count
        if put(to, &count, 1) or put(to, n.word + n.head, count * node_words(t, p, number)):
            return 1
    return 0


cdef bint get(Reader* source, void* words, Py_ssize_t count) noexcept nogil:
    """Read so many words; False where there are fewer."""
    if count < 0 or count > source.left:
        source.left = -1
        return False
    memcpy(words, source.byte, count * sizeof(uint64_t))
    source.byte += count * sizeof(uint64_t)
    source.left -= count
    return True


cdef Partition* read_partition(Core* k, Reader* source, int64_t* slot) noexcept nogil:
    """The next partition and where it belongs; a null pointer where it is damaged, or without memory."""
    cdef int64_t numbers[NUMBERS]
    cdef Table* t
    cdef Partition* p
    if not get(source, numbers, NUMBERS):
        return NULL
    slot[0] = numbers[0]
    t = NULL if numbers[0] < 0 else &k.query[slot[0] % k.queries]
    if t != NULL and t.log != NULL and not t.keeps_log:
        t = NULL  # another query has its events
    if t == NULL or not are_possible(t, numbers, source.most + SPARE_WORDS):
        source.left = -1
        return NULL
    p = new_partition(k, t, numbers[2])
    if p == NULL:
        return NULL
    p.step, p.horizon, p.horizon_time, p.next_window = numbers[1], numbers[3], numbers[4], numbers[5]
    p.begin, p.until, p.open = numbers[6], numbers[7], numbers[8] != 0
    p.width, p.set_words, p.bits = <int> numbers[9], <int> numbers[10], 64 * <int> numbers[9]
    p.back_bits = p.bits
    p.row_due = INT64_MIN  # it is found out when somebody looks
    if not read_parts(k, t, p, source):
        free_partition(k, t, p)
        return NULL
    return p


cdef bint are_possible(const Table* t, const int64_t* numbers, int64_t widest) noexcept nogil:
    """Whether the numbers before the lists of a partition can be: none sends the operator astray."""
    if numbers[1] < 0 or not (1 <= numbers[9] <= widest and 1 <= numbers[10] <= widest):
        return False
    if not (is_time(numbers[2], 1) and is_time(numbers[6], 1) and is_time(numbers[7], 1)):
        return False
    return numbers[5] <= 0 or is_time(numbers[5], t.slide)  # however small, no window before it is asked for


cdef bint is_time(int64_t number, int64_t unit) noexcept nogil:
    """Whether so many units are a time that there can be, or the end of a session or window."""
    cdef int64_t most = (<int64_t> 1 << TIME_BITS) // unit + (<int64_t> 1 << 40)
    return -most <= number <= most


cdef bint read_parts(Core* k, const Table* t, Partition* p, Reader* source) noexcept nogil:
    cdef int number
    cdef int64_t count, value, limit, _
    cdef Py_ssize_t stride
    cdef Nodes* n
    if not get(source, p.latest, 2 * (t.guard_states + t.guards)):
        return False
    for number in range(t.exact_sets):
        if not get(source, &count, 1):
            return False
        limit = -1 if source.limits == NULL else source.limits[t.value_set[number].column]
        for _ in range(count):
            if p.dictionary[number].count >= 64 * <Py_ssize_t> p.set_words or not get(source, &value, 1):
                source.left = -1
                return False
            if limit >= 0 and not 0 <= value < limit:
                source.left = -1
                return False
            if number_value(k, t, p, number, value):
                return False
    if (t.traces or t.log != NULL) and not read_lineage(k, t, p, source):
        return False
    if t.takings and not read_marks(k, t, p, source):
        return False
    for number in range(t.lists):
        n = &p.nodes[number]
        stride = node_words(t, p, number)
        if not get(source, &count, 1):
            return False
        if count < 0 or count > source.left // stride:
            source.left = -1
            return False
        if count == 0:
            continue
        if not take(k.account, count * stride * sizeof(uint64_t) + ALLOCATION):
            return False
        p.bytes += count * stride * <int64_t> sizeof(uint64_t) + ALLOCATION
        n.word = <uint64_t*> malloc(count * stride * sizeof(uint64_t))
        if n.word == NULL:
            return False
        n.count = count
        n.capacity = count * stride
        if not get(source, n.word, count * stride) or not fits_limits(t, p, number, source):
            return False
        if not fits_lanes(t, p, number, source):
            return False
        if not (is_store(t, number) or fits_graph(t, p, number)):
            source.left = -1
            return False
    if t.slides and not are_spans(t, p):
        source.left = -1
        return False
    return True


cdef bint read_lineage(Core* k, const Table* t, Partition* p, Reader* source) noexcept nogil:
    """Vertices and records, of which none leads astray."""
    cdef int64_t numbers[2]
    cdef Lineage* graph = &p.lineage
    if not get(source, numbers, 2):
        return False
    if numbers[0] < 0 or numbers[1] < 0 or numbers[0] > source.left or numbers[1] > source.left // t.record_words:
        source.left = -1
        return False
    while graph.capacity <= numbers[0]:
        graph.count = graph.capacity
        if reserve_vertex(k, p):
            return False
    while graph.record_capacity < numbers[1]:
        graph.records = graph.record_capacity
        if reserve_record(k, t, p):
            return False
    graph.count, graph.records = numbers[0] + 1, numbers[1]
    graph.vertex[0] = 0
    if not get(source, graph.vertex + 1, numbers[0]) or not get(source, graph.record, graph.records * t.record_words):
        return False
    if not (is_log(t, p, source.limits) if t.log != NULL else is_lineage(t, p)):
        source.left = -1
        return False
    return True


cdef bint read_marks(Core* k, const Table* t, Partition* p, Reader* source) noexcept nogil:
    """The marks, in their order; they differ."""
    cdef int64_t count, limit, _
    cdef uint64_t word[MOST_WORDS]
    cdef int place
    if not get(source, &count, 1):
        return False
    for _ in range(count):
        if not get(source, word, 2 * t.takings):
            return False
        for place in range(t.takings):
            limit = -1
            if source.limits != NULL and t.taking[place].values.text:
                limit = source.limits[t.taking[place].values.column]
            if limit >= 0 and word[2 * place] & 2 and not 0 <= <int64_t> word[2 * place + 1] < limit:
                source.left = -1
                return False
        if add_mark(k, t, p, word):
            return False
    return True


cdef bint fits_graph(const Table* t, const Partition* p, int number) noexcept nogil:
    """Whether the vertices and marks of a list's nodes are there."""
    cdef Py_ssize_t stride = node_words(t, p, number), words = value_words(t, p)
    cdef int64_t node
    cdef uint64_t* value
    for node in range(p.nodes[number].count):
        value = node_at(&p.nodes[number], node, stride) + HEAD
        if t.traces and vertex_of(t, value, words)[0] >= <uint64_t> max(p.lineage.count, <Py_ssize_t> 1):
            return False
        if t.takings and mark_of(t, value, words) >= <uint64_t> max(p.marks.count, <Py_ssize_t> 1):
            return False
    return True


cdef bint fits_lanes(const Table* t, const Partition* p, int number, Reader* source) noexcept nogil:
    """Whether the lanes of a list are times, windows or panes that there can be."""
    cdef Py_ssize_t stride = node_words(t, p, number)
    cdef int64_t node, unit = 1
    cdef const uint64_t* word
    cdef bint ends = t.states <= number < t.states + t.end_count
    if t.span < 0 and t.gap < 0 and not is_store(t, number):
        unit = t.slide
    elif number == t.states + t.end_count:
        unit = t.pane
    for node in range(p.nodes[number].count):
        word = node_at(&p.nodes[number], node, stride)
        if not is_time(<int64_t> word[0], unit) or (ends and not is_time(<int64_t> word[stride - 1], t.pane)):
            source.left = -1
            return False
    return True


cdef bint fits_limits(const Table* t, const Partition* p, int number, Reader* source) noexcept nogil:
    """Whether the strings of a list's events are known."""
    cdef int first = 0, end = 0, i
    cdef Py_ssize_t stride = node_words(t, p, number), at
    cdef int64_t node, limit
    cdef const Store* store
    if is_store(t, number):
        store = &t.store[number - t.states - t.end_count - 1]
        first, end = store.columns, store.columns_end
    elif number < t.states and t.state[number].single:
        first, end = t.state[number].columns, t.state[number].columns_end
    for i in range(end - first):
        limit = -1 if source.limits == NULL else source.limits[t.member[first + i]]
        if limit < 0:
            continue
        at = HEAD + (0 if is_store(t, number) else value_words(t, p)) + i
        for node in range(p.nodes[number].count):
            if not 0 <= <int64_t> node_at(&p.nodes[number], node, stride)[at] < max(limit, 1):
                source.left = -1
                return False
    return True
