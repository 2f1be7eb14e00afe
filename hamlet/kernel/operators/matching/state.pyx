"""What the matching operator keeps for one query and one key: its lists of nodes, their values, its memory.

Contract
--------
**Head-room.** All counts of a partition, and 1, are together at most 2^bits; before a step adds, `reserve_bits`
measures the bound anew or makes all values wider, so no addition checks for overflow.
**Memory** is counted before it is allocated; a function that returns an int gives a Failure.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset

from hamlet.kernel.cells cimport (
    Scaled,
    add_cell,
    bit_length,
    floor_divide,
    limbs_bits,
    limbs_negate,
    place_in_cell,
    scaled_from_limbs,
    scaled_store,
    words_in_cell,
    words_of,
)
from hamlet.kernel.operators.matching.lineage cimport free_lineage, join_lineage
from hamlet.kernel.operators.matching.marks cimport clear_marks, free_marks
from hamlet.kernel.operators.matching.room cimport claim
from hamlet.kernel.operators.matching.tables cimport (
    FIRST_SET_WORDS,
    HEAD,
    LEAVES,
    REGISTER_WORDS,
    Core,
    Dictionary,
    Nodes,
    Partition,
    Table,
    extra_words,
    is_store,
    mark_of,
    node_at,
    node_words,
    place_on_line,
    step_of,
    value_words,
    vertex_of,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, SUM_DOUBLE, SUM_INT, Component
from hamlet.memory.budget cimport ALLOCATION, take

cdef enum:
    FIRST_NODES = 2      # a list begins with room for so many
    SMALL = 4096         # bytes of a partition that is kept for another key
    MOST_SPARE = 1 << 15
    LONG_LANE = 8        # nodes of one lane are compared with each other from so many on

# --------------------------------------------------------------------------------------------------- life


cdef Partition* new_partition(Core* k, Table* t, int64_t time) noexcept nogil:
    """A partition whose first event has a time; a null pointer without memory."""
    cdef Partition* p = t.spare
    if p == NULL:
        p = allocated(k, t)
        if p == NULL:
            return NULL
    else:
        t.spare = p.next
        t.spares -= 1
    p.last = time
    p.step = p.apart_step = 0
    p.open = 0
    p.due = p.row_due = INT64_MAX
    p.horizon = p.horizon_time = INT64_MIN
    if k.advanced < -(<int64_t> 1 << 61):  # before every time, so that no window has been delivered
        p.next_window = INT64_MIN
    else:
        p.next_window = floor_divide(place_on_line(t, k.advanced - t.delay) - t.within, t.slide) + 1
    k.live += 1
    return p


cdef Partition* allocated(Core* k, const Table* t) noexcept nogil:
    cdef Py_ssize_t bytes = sizeof(Partition) + t.lists * sizeof(Nodes) + t.exact_sets * sizeof(Dictionary)
    cdef Partition* p
    cdef char* at
    bytes += 2 * (t.guard_states + t.guards) * sizeof(int64_t)
    if not take(k.account, bytes + ALLOCATION):
        return NULL
    p = <Partition*> calloc(1, bytes)
    if p == NULL:
        take(k.account, -(bytes + ALLOCATION))
        return NULL
    at = <char*> p + sizeof(Partition)
    p.nodes = <Nodes*> at
    at += t.lists * sizeof(Nodes)
    p.dictionary = <Dictionary*> at
    at += t.exact_sets * sizeof(Dictionary)
    p.latest = <int64_t*> at
    p.killed = p.latest + 2 * t.guard_states
    p.bytes = bytes + ALLOCATION
    p.width = 1
    p.set_words = FIRST_SET_WORDS
    return p


cdef void give_up(Core* k, Table* t, Partition* p) noexcept nogil:
    """Keep a partition for another key, with its memory where that is little and nobody counts it."""
    if p.bytes > SMALL or t.spares >= MOST_SPARE or k.account.limit != INT64_MAX:
        free_partition(k, t, p)
        return
    clear_partition(t, p)
    p.next = t.spare
    t.spare = p
    t.spares += 1
    k.live -= 1


cdef void free_partition(Core* k, const Table* t, Partition* p) noexcept nogil:
    cdef int i
    if p == NULL:
        return
    for i in range(t.lists):
        free(p.nodes[i].word)
    for i in range(t.exact_sets):
        free(p.dictionary[i].value)
        free(p.dictionary[i].slot)
    free_lineage(p)
    free_marks(p)
    take(k.account, -p.bytes)
    k.live -= 1
    free(p)


cdef void clear_partition(const Table* t, Partition* p) noexcept nogil:
    """Forget everything that was seen, and keep the memory."""
    cdef int i
    for i in range(t.lists):
        p.nodes[i].head = p.nodes[i].count = 0
        p.nodes[i].moves = 0
    for i in range(t.exact_sets):
        p.dictionary[i].count = 0
        memset(p.dictionary[i].slot, 0xFF, p.dictionary[i].slots * sizeof(int32_t))
    memset(p.latest, 0, 2 * (t.guard_states + t.guards) * sizeof(int64_t))
    p.bits = p.back_bits = 0
    p.lineage.count = min(p.lineage.count, 1)
    p.lineage.records = 0
    clear_marks(p)


# ---------------------------------------------------------------------------------------------- lists of nodes


cdef void drop_first(Nodes* n, Py_ssize_t nodes, Py_ssize_t stride) noexcept nogil:
    """Forget the first nodes of a list."""
    n.count -= nodes
    n.head = n.head + nodes * stride if n.count else 0


cdef void keep_unmoved(const Table* t, Partition* p, int number, uint64_t mark) noexcept nogil:
    """Forget the nodes that have moved on, as a mark says."""
    cdef Nodes* n = &p.nodes[number]
    cdef Py_ssize_t stride = node_words(t, p, number), i, kept = 0
    cdef uint64_t* first = n.word + n.head
    for i in range(n.count):
        if first[i * stride + 1] & mark:
            continue
        if kept != i:
            memcpy(first + kept * stride, first + i * stride, stride * sizeof(uint64_t))
        kept += 1
    n.count = kept
    if kept == 0:
        n.head = 0
    n.moves = 0


cdef void drop_gone(const Table* t, Partition* p, int number, Py_ssize_t stride) noexcept nogil:
    """Forget nodes that nothing can extend any more, and those of a store that nothing looks back at."""
    cdef Nodes* n = &p.nodes[number]
    cdef int64_t horizon = p.horizon_time if is_store(t, number) else p.horizon
    cdef Py_ssize_t i, kept = 0
    cdef uint64_t* first = n.word + n.head
    for i in range(n.count):
        if <int64_t> first[i * stride] < horizon:
            continue
        if kept != i:
            memcpy(first + kept * stride, first + i * stride, stride * sizeof(uint64_t))
        kept += 1
    n.count = kept


cdef int reserve_node(Core* k, const Table* t, Partition* p, int number, Py_ssize_t stride) noexcept nogil:
    """Room for one more node; forgets those that are of no more use before it asks for memory."""
    cdef Nodes* n = &p.nodes[number]
    cdef Py_ssize_t capacity, live
    cdef uint64_t* word
    if n.head + (n.count + 1) * stride <= n.capacity:
        return NO_FAILURE
    if number < t.states or is_store(t, number):
        drop_gone(t, p, number, stride)
    live = n.count * stride
    if 2 * (live + stride) <= n.capacity:
        memmove(n.word, n.word + n.head, live * sizeof(uint64_t))
    else:
        capacity = max(2 * (live + stride), FIRST_NODES * stride)
        if claim(k, p, (capacity - n.capacity) * sizeof(uint64_t) + (ALLOCATION if n.word == NULL else 0)):
            return OUT_OF_MEMORY
        word = <uint64_t*> malloc(capacity * sizeof(uint64_t))
        if word == NULL:
            return OUT_OF_MEMORY
        if live:
            memcpy(word, n.word + n.head, live * sizeof(uint64_t))
        free(n.word)
        n.word = word
        n.capacity = capacity
    n.head = 0
    return NO_FAILURE


cdef uint64_t* append_node(Core* k, const Table* t, Partition* p, int number) noexcept nogil:
    """A new last node; its words are anything. A null pointer without memory."""
    cdef Nodes* n = &p.nodes[number]
    cdef Py_ssize_t stride = node_words(t, p, number)
    if reserve_node(k, t, p, number, stride):
        return NULL
    n.count += 1
    return node_at(n, n.count - 1, stride)


cdef inline bint is_behind(
    const Table* t, const uint64_t* node, Py_ssize_t words, int64_t lane, uint64_t mark
) noexcept nogil:
    """Whether a node, whose value has so many words, stands behind those of a lane and mark."""
    return <int64_t> node[0] > lane or (
        t.takings and <int64_t> node[0] == lane and mark_of(t, node + HEAD, words) > mark
    )


cdef Py_ssize_t upper_place(
    const Table* t, const Nodes* n, Py_ssize_t words, Py_ssize_t stride, int64_t lane, uint64_t mark
) noexcept nogil:
    """The place behind the last node of a lane and mark, or where it would be."""
    cdef Py_ssize_t low = 0, high = n.count, middle
    if high == 0 or not is_behind(t, node_at(n, high - 1, stride), words, lane, mark):
        return high
    while low < high:
        middle = (low + high) // 2
        if not is_behind(t, node_at(n, middle, stride), words, lane, mark):
            low = middle + 1
        else:
            high = middle
    return low


cdef int add_node(
    Core* k, const Table* t, Partition* p, int number, int64_t lane, int64_t step, const uint64_t* value, uint64_t pane
) noexcept nogil:
    """Add trends to a list that is sorted by lane and step: to the last node of the lane, or as one behind it."""
    cdef Nodes* n = &p.nodes[number]
    cdef Py_ssize_t words = value_words(t, p), stride = node_words(t, p, number), at
    cdef bint ends = t.states <= number < t.states + t.end_count
    cdef int guards = -1
    cdef uint64_t* node
    if number < t.states:
        guards = t.state[number].guards
    elif ends:
        guards = t.end_guards[number - t.states]
    if reserve_node(k, t, p, number, stride):
        return OUT_OF_MEMORY
    at = upper_place(t, n, words, stride, lane, mark_of(t, value, words))
    if at:
        node = node_at(n, at - 1, stride)
        if (
            <int64_t> node[0] == lane and is_marked_as(t, node + HEAD, value, words) and not node[1] & LEAVES
            and (not ends or node[stride - 1] == pane) and not told_apart(t, p, guards, step_of(node), step)
        ):
            node[1] = <uint64_t> step
            return add_value(k, t, p, node + HEAD, value)
    node = node_at(n, at, stride)
    if at < n.count:
        memmove(node + stride, node, (n.count - at) * stride * sizeof(uint64_t))
    n.count += 1
    node[0] = <uint64_t> lane
    node[1] = <uint64_t> step
    memcpy(node + HEAD, value, words * sizeof(uint64_t))
    if ends:
        node[stride - 1] = pane
    if guards >= 0 and at + 1 >= LONG_LANE:
        return thin_lane(k, t, p, n, at, stride, guards, ends)
    return NO_FAILURE


cdef inline bint is_marked_as(
    const Table* t, const uint64_t* one, const uint64_t* other, Py_ssize_t words
) noexcept nogil:
    """Whether two values have one mark."""
    return not t.takings or mark_of(t, one, words) == mark_of(t, other, words)


cdef int thin_lane(
    Core* k, const Table* t, Partition* p, Nodes* n, Py_ssize_t last, Py_ssize_t stride, int guards, bint ends
) noexcept nogil:
    """Make neighbouring nodes of a lane and mark one where no guard tells them apart; `last` is the last of them."""
    cdef Py_ssize_t first = last, i, kept, words = value_words(t, p)
    cdef uint64_t* node = node_at(n, last, stride)
    cdef uint64_t* before
    while first:
        before = node_at(n, first - 1, stride)
        if before[0] != node[0] or not is_marked_as(t, before + HEAD, node + HEAD, words):
            break
        first -= 1
    if last - first < LONG_LANE:
        return NO_FAILURE
    kept = first
    for i in range(first + 1, last + 1):
        node, before = node_at(n, i, stride), node_at(n, kept, stride)
        if (
            ends and node[stride - 1] != before[stride - 1]
            or (node[1] | before[1]) & LEAVES
            or told_apart(t, p, guards, step_of(before), step_of(node))
        ):
            kept += 1
            if kept != i:
                memcpy(node_at(n, kept, stride), node, stride * sizeof(uint64_t))
        else:
            if add_value(k, t, p, before + HEAD, node + HEAD):
                return OUT_OF_MEMORY
            before[1] = node[1]
    if kept < last:
        memmove(
            node_at(n, kept + 1, stride), node_at(n, last + 1, stride),
            (n.count - last - 1) * stride * sizeof(uint64_t),
        )
        n.count -= last - kept
    return NO_FAILURE


cdef bint killed_since(const Table* t, const Partition* p, int guards, int64_t step) noexcept nogil:
    """Whether a match of some guard that began after a step has finished."""
    cdef int i
    if guards >= 0:
        for i in range(t.guard_set[2 * guards], t.guard_set[2 * guards + 1]):
            if p.killed[2 * t.member[i]] > step:
                return True
    return False


cdef bint told_apart(const Table* t, const Partition* p, int guards, int64_t earlier, int64_t later) noexcept nogil:
    """Whether a guard forbids, or may come to forbid, what trends of an earlier step do, and not what later ones do."""
    cdef int i, guard, state
    cdef int64_t killed
    if guards < 0 or earlier == later:
        return False
    if t.looks_back or earlier < p.apart_step <= later:
        return True
    for i in range(t.guard_set[2 * guards], t.guard_set[2 * guards + 1]):
        guard = t.member[i]
        killed = p.killed[2 * guard]
        if killed > later:
            continue
        if killed > earlier:
            return True
        for state in range(t.guard_first[guard], t.guard_first[guard + 1]):
            if earlier < p.latest[2 * state] <= later:
                return True
    return False


# --------------------------------------------------------------------------------------------------- values


cdef int add_value(
    Core* k, const Table* t, Partition* p, uint64_t* target, const uint64_t* source
) noexcept nogil:
    """Add the aggregates of some trends to those of others; the mark of these stays."""
    cdef Py_ssize_t i, words = words_of(&t.cells, p.width), bits = t.exact_sets * <Py_ssize_t> p.set_words
    cdef uint8_t* to
    cdef const uint8_t* held
    cdef Py_ssize_t last = value_words(t, p)
    add_cell(&t.cells, p.width, target, source)
    if t.traces and join_lineage(k, p, vertex_of(t, target, last), vertex_of(t, <uint64_t*> source, last)[0]):
        return OUT_OF_MEMORY
    if t.sets == 0:
        return NO_FAILURE
    for i in range(words, words + bits):
        target[i] |= source[i]
    to = <uint8_t*> (target + words + bits)
    held = <const uint8_t*> (source + words + bits)
    for i in range(t.registers * <Py_ssize_t> REGISTER_WORDS * 8):
        to[i] = max(to[i], held[i])
    return NO_FAILURE


cdef int reserve_bits(Core* k, const Table* t, Partition* p, int64_t additions) noexcept nogil:
    """Head-room for a step that adds so many counts, each no larger than all there are together."""
    cdef int more = <int> bit_length(additions)
    cdef int room = 64 * p.width - SPARE_BITS
    if not t.cells.exact:
        return NO_FAILURE
    if p.bits + more > room:
        p.bits = measured_bits(t, p)
        if p.bits + more > room:
            room = (p.bits + more + SPARE_BITS) // 64 + 1
            if relay(k, t, t, p, room + (room >> 2), p.set_words):
                return OUT_OF_MEMORY
    p.bits += more
    return NO_FAILURE


cdef int measured_bits(const Table* t, const Partition* p) noexcept nogil:
    """A bound of the bits of all counts of a partition together, and 1."""
    cdef int64_t most = 0
    cdef Py_ssize_t stride, i, nodes = 1
    cdef int number
    for number in range(t.states + t.end_count + 1):
        stride = node_words(t, p, number)
        nodes += p.nodes[number].count
        for i in range(p.nodes[number].count):
            most = max(most, limbs_bits(node_at(&p.nodes[number], i, stride) + HEAD, p.width))
    return <int> (max(most, 1) + bit_length(nodes))


cdef int relay(
    Core* k, const Table* t, const Table* old, Partition* p, int width, int set_words
) noexcept nogil:
    """Lay all values out anew: with wider counts, larger sets, or for a query whose attributes have widened.

    Nodes keep the attributes of their events.
    """
    cdef int number, extra
    cdef Py_ssize_t before, after, i, words
    cdef Nodes* n
    cdef uint64_t* word
    cdef Partition wider = p[0]
    wider.width, wider.set_words = width, set_words
    for number in range(t.states + t.end_count + 1):
        n = &p.nodes[number]
        before, after = node_words(old, p, number), node_words(t, &wider, number)
        extra = extra_words(t, number)
        if n.word == NULL:
            continue
        words = max(n.count, 1) * after
        if claim(k, p, (words - n.capacity) * sizeof(uint64_t)):
            return OUT_OF_MEMORY
        word = <uint64_t*> malloc(words * sizeof(uint64_t))
        if word == NULL:
            return OUT_OF_MEMORY
        for i in range(n.count):
            memcpy(word + i * after, node_at(n, i, before), HEAD * sizeof(uint64_t))
            copy_value(t, &wider, word + i * after + HEAD, old, p, node_at(n, i, before) + HEAD)
            memcpy(word + (i + 1) * after - extra, node_at(n, i, before) + before - extra, extra * sizeof(uint64_t))
        free(n.word)
        n.word = word
        n.capacity = words
        n.head = 0
    p.width, p.set_words = width, set_words
    return NO_FAILURE


cdef void copy_value(
    const Table* t, const Partition* p, uint64_t* target, const Table* old, const Partition* before, uint64_t* source
) noexcept nogil:
    """Copy a value into another layout, no smaller."""
    cdef int i, _
    cdef uint64_t* to = target + words_of(&t.cells, p.width)
    cdef const uint64_t* held = source + words_of(&old.cells, before.width)
    for i in range(t.cells.components):
        copy_component(
            &t.cells.component[i], target + place_in_cell(&t.cells.component[i], p.width), p.width,
            &old.cells.component[i], source + place_in_cell(&old.cells.component[i], before.width), before.width,
        )
    for _ in range(t.exact_sets):
        memset(to, 0, p.set_words * sizeof(uint64_t))
        memcpy(to, held, before.set_words * sizeof(uint64_t))
        to += p.set_words
        held += before.set_words
    memcpy(to, held, (t.registers * <size_t> REGISTER_WORDS + (t.traces > 0) + (t.takings > 0)) * sizeof(uint64_t))


cdef void copy_component(
    const Component* c, uint64_t* to, int width, const Component* old, uint64_t* held, int before
) noexcept nogil:
    cdef int words = words_in_cell(old, before)
    cdef bint negative = old.kind == SUM_INT and <int64_t> held[words - 1] < 0
    cdef Scaled total
    if c.kind == old.kind:
        memcpy(to, held, words * sizeof(uint64_t))
        memset(to + words, 0xFF if negative else 0, (words_in_cell(c, width) - words) * sizeof(uint64_t))
    elif c.kind == SUM_DOUBLE:
        if negative:
            limbs_negate(held, words)
        total = scaled_from_limbs(held, words)
        total.m = -total.m if negative else total.m
        scaled_store(to, total)
    else:  # an extremum of integers becomes one of doubles
        to[0] = held[0]
        (<double*> to)[1] = <double> (<int64_t> held[1])
