"""Scans: what an adjacent predicate that no index answers adds up over all stored events, a block of them at a time.

The predicate gives a mask per event (`expression_machine.h`), and sums are taken over masks. Numbers with an
exponent of their
own cannot be added up so; therefore each block of a store has *weights*, doubles with one exponent for the block, and
only where the sum of a block's weights may vanish beside what they leave out are its numbers added one by one.

Contract
--------
**Weights** are derived from the values of nodes, which never change but where a cohort opens or nodes merge: its cohort
is forgotten (`forget_weights`), and what merges is never weighed. Weights can be dropped at any time; the next scan
makes them anew.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memset

from hamlet.kernel.cells cimport (
    Scale,
    add_cell,
    extend_extremum,
    limbs_add_each,
    limbs_add_selected,
    masks_to_places,
    place_in_cell,
    scaled_add_selected,
    scaled_load,
    scaled_store,
    scaled_weigh,
    words_in_cell,
    words_of,
)
from hamlet.kernel.expression cimport Column, evaluate_block
from hamlet.kernel.plan cimport (
    COUNT_SCALED,
    NO_FAILURE,
    OUT_OF_MEMORY,
    OVERFLOW,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Component,
    Predicate,
    Query,
    Source,
)
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.query_state cimport (
    SCAN_BLOCK,
    State,
    Store,
    allocate,
    blocks_of,
    claim,
    drop_weights,
    first_alive,
    killed_before,
    cohort_at,
    weight_bytes,
)

cdef enum:
    MOST_COLUMNS = 64

cdef struct Pairs:       # a condition on the nodes of a store and one later event
    const Predicate* predicate
    Column vector[MOST_COLUMNS]
    Column scalar[MOST_COLUMNS]

cdef int64_t EVERY[SCAN_BLOCK]  # a mask for each node of a block
memset(EVERY, 0xFF, sizeof(EVERY))


cdef void pair(Core* k, const Query* q, const Source* source, const Store* store, Pairs* pairs) noexcept nogil:
    """Point a condition at its columns."""
    cdef const Predicate* predicate = &q.predicate[source.predicate]
    cdef Py_ssize_t column
    cdef int i
    pairs.predicate = predicate
    for i in range(predicate.vectors):
        column = q.member[predicate.vector + i]
        pairs.vector[i].data = store.data + column * store.capacity
        pairs.vector[i].valid = store.valid + column * store.capacity if store.gaps >> column & 1 else NULL
    for i in range(predicate.scalars):
        pairs.scalar[i] = k.columns[q.member[predicate.scalar + i]]


cdef int select_block(
    Core* k, int query, const Source* source, Pairs* pairs, Py_ssize_t start, Py_ssize_t stop, int64_t row,
    const int64_t** mask,
) noexcept nogil:
    """Masks of the nodes start..stop-1 that satisfy the condition with the event; a null pointer where none does."""
    cdef Py_ssize_t where = 0
    cdef int place = evaluate_block(
        &pairs.predicate.code, pairs.vector, start, stop - start, pairs.scalar, row, k.ranks, k.registers, &where
    )
    if place >= 0:
        k.failed_query = query
        k.failed_predicate = source.predicate
        k.failed_place = place
        k.failed_row = row
        return OVERFLOW
    mask[0] = k.registers[0].value
    if k.registers[0].one:
        mask[0] = EVERY if mask[0][0] else NULL
    return NO_FAILURE


cdef int scan_sums(Core* k, int query, State* s, const Source* source, uint64_t* sum, int64_t row) noexcept nogil:
    """Add all nodes of a source's store that satisfy its condition with the event, by cohort. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef Store* store = &s.store[source.place]
    cdef Py_ssize_t node = first_alive(store, killed_before(q, s, source.guards)), stop
    cdef const int64_t* mask
    cdef Pairs pairs
    cdef int failure
    if source.predicate < 0:
        add_nodes(q, s, store, node, sum)
        return NO_FAILURE
    if node == store.count:
        return NO_FAILURE
    if weigh_nodes(q, s, store):
        return OUT_OF_MEMORY
    pair(k, q, source, store, &pairs)
    while node < store.count:
        stop = min((node // SCAN_BLOCK + 1) * SCAN_BLOCK, store.count)
        failure = select_block(k, query, source, &pairs, node, stop, row, &mask)
        if failure:
            return failure
        if mask != NULL:
            add_selected(q, s, store, node, stop, mask, sum)
        node = stop
    return NO_FAILURE


cdef void add_nodes(const Query* q, const State* s, const Store* store, Py_ssize_t node, uint64_t* sum) noexcept nogil:
    """Add all nodes from one on."""
    cdef int words = words_of(q, s.width), cohort
    cdef int64_t _
    for node in range(node, store.count):
        cohort = cohort_at(s, s.first)
        for _ in range(s.first, s.last + 1):
            add_cell(q, s.width, sum + cohort * words, store.value + (node * s.cohorts + cohort) * words)
            cohort = cohort + 1 if cohort + 1 < s.cohorts else 0


cdef void add_selected(
    const Query* q, const State* s, const Store* store, Py_ssize_t start, Py_ssize_t stop, const int64_t* mask,
    uint64_t* sum,
) noexcept nogil:
    """Add the nodes start..stop-1 of one block that have a mask."""
    cdef int words = words_of(q, s.width), cohort = cohort_at(s, s.first), i, plane
    cdef Py_ssize_t stride = <Py_ssize_t> s.cohorts * words, blocks = blocks_of(store.weights), chosen = -1, at
    cdef int64_t place[SCAN_BLOCK]
    cdef int64_t _
    cdef const Component* c
    cdef const uint64_t* value
    cdef uint64_t* target
    for _ in range(s.first, s.last + 1):
        if store.time[stop - 1] < s.until[cohort] * q.slide:
            return  # neither this cohort nor a later one has any of the block
        plane = cohort * q.scaled
        for i in range(q.components):
            c = &q.component[i]
            target = sum + cohort * words + place_in_cell(c, s.width)
            value = store.value + start * stride + (target - sum)
            if c.kind == SUM_DOUBLE or c.kind >= COUNT_SCALED:
                scaled_store(target, scaled_add_selected(
                    scaled_load(target), value, stride, store.weight + plane * store.weights + start,
                    store.scale[plane * blocks + start // SCAN_BLOCK], mask, stop - start,
                ))
                plane += 1
            elif c.kind <= SUM_INT and words_in_cell(c, s.width) <= 2:
                limbs_add_selected(target, words_in_cell(c, s.width), value, stride, mask, stop - start)
            else:
                if chosen < 0:
                    chosen = masks_to_places(mask, stop - start, place)
                if c.kind <= SUM_INT:
                    limbs_add_each(target, words_in_cell(c, s.width), value, stride, place, chosen)
                    continue
                for at in range(chosen):
                    if c.kind == PRESENT:
                        target[0] |= value[place[at] * stride]
                    elif value[place[at] * stride]:
                        extend_extremum(c.kind, target, value[place[at] * stride + 1])
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0


cdef int weigh_nodes(const Query* q, State* s, Store* store) noexcept nogil:
    """Bring the weights of a store up to date. Returns a Failure."""
    cdef Py_ssize_t words = words_of(q, s.width), stride = s.cohorts * words, blocks, start, stop
    cdef int cohort, i, plane = 0
    cdef const Component* c
    cdef const uint64_t* value
    if q.scaled == 0 or store.weighed == store.count:
        return NO_FAILURE
    if store.weights < store.count:
        drop_weights(q, s, store)
        if not claim(q, s, weight_bytes(q, s, store.capacity)):
            return OUT_OF_MEMORY
        store.weights = store.capacity
        store.weight = <double*> allocate(s.cohorts * q.scaled * store.weights * sizeof(double))
        store.scale = <Scale*> malloc(s.cohorts * q.scaled * blocks_of(store.weights) * sizeof(Scale))
        if store.weight == NULL or store.scale == NULL:
            return OUT_OF_MEMORY
    blocks = blocks_of(store.weights)
    for cohort in range(s.cohorts):
        for i in range(q.components):
            c = &q.component[i]
            if c.kind != SUM_DOUBLE and c.kind < COUNT_SCALED:
                continue
            value = store.value + cohort * words + place_in_cell(c, s.width)
            start = store.weighed
            while start < store.count:
                stop = min((start // SCAN_BLOCK + 1) * SCAN_BLOCK, store.count)
                scaled_weigh(
                    value + start // SCAN_BLOCK * SCAN_BLOCK * stride, stride, start % SCAN_BLOCK,
                    stop - start // SCAN_BLOCK * SCAN_BLOCK,
                    store.weight + plane * store.weights + start // SCAN_BLOCK * SCAN_BLOCK,
                    &store.scale[plane * blocks + start // SCAN_BLOCK],
                )
                start = stop
            plane += 1
    store.weighed = store.count
    return NO_FAILURE


cdef int scan_starts(
    Core* k, int query, const State* s, const Source* source, int64_t row, int64_t* step, int64_t* begin
) noexcept nogil:
    """Raise `step` to the latest start of a stored match that satisfies the condition with the event, `begin` its time.

    Returns a Failure.
    """
    cdef const Query* q = &k.query[query]
    cdef const Store* store = &s.store[source.place]
    cdef Py_ssize_t node = store.head, stop, i
    cdef const int64_t* mask = EVERY
    cdef Pairs pairs
    cdef int failure
    if source.predicate >= 0:
        pair(k, q, source, store, &pairs)
    while node < store.count:
        stop = min(node + SCAN_BLOCK, store.count)
        if source.predicate >= 0:
            failure = select_block(k, query, source, &pairs, node, stop, row, &mask)
            if failure:
                return failure
        if mask != NULL:
            for i in range(node, stop):
                if mask[i - node] and <int64_t> store.value[2 * i] > step[0]:
                    step[0] = <int64_t> store.value[2 * i]
                    begin[0] = <int64_t> store.value[2 * i + 1]
        node = stop
    return NO_FAILURE
