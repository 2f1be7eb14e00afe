"""The life of a state: made, widened, converted, cleared and freed; and its stores of single events.

Contract
--------
**Guards.** A match of a negated pattern that began at step s kills what arrived before s. Only the latest start can
matter, so a guard's progress is one number per state of its template, the same for all windows.
**Nodes** are in order of arrival. A node's number never changes; its place does when the store closes up.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset

from hamlet.kernel.cells cimport (
    Scaled,
    add_cell,
    limbs_bits,
    limbs_negate,
    place_in_cell,
    scaled_from_limbs,
    scaled_store,
    words_in_cell,
    words_of,
)
from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, SUM_DOUBLE, SUM_INT, Component, Query, StoreTable
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport ALLOCATION, take

cdef void widen_cell(const Query* q, uint64_t* target, int wider, const uint64_t* source, int width) noexcept nogil:
    """Copy a cell into one of more limbs, which may be in its place or behind; sums extend by their sign."""
    cdef int i, words, more
    cdef Component* c
    cdef uint64_t* to
    cdef bint negative
    for i in range(q.components - 1, -1, -1):
        c = &q.component[i]
        words = words_in_cell(c, width)
        more = words_in_cell(c, wider) - words
        to = target + place_in_cell(c, wider)
        memmove(to, source + place_in_cell(c, width), words * sizeof(uint64_t))
        if more > 0:
            negative = c.kind == SUM_INT and <int64_t> to[words - 1] < 0
            memset(to + words, 0xFF if negative else 0, more * sizeof(uint64_t))


cdef uint64_t* new_cells(const Query* q, State* s, Py_ssize_t words) noexcept nogil:
    """Cells, all zero, for a state; a null pointer without memory."""
    if not claim(q, s, words * sizeof(uint64_t)):
        return NULL
    return <uint64_t*> calloc(words + 1, sizeof(uint64_t))


cdef void replace_cells(const Query* q, State* s, uint64_t* cell, Py_ssize_t words) noexcept nogil:
    free(s.cell)
    release(q, s, s.words * sizeof(uint64_t))
    s.cell = cell
    s.words = words


cdef void replace_values(const Query* q, State* s, Store* store, uint64_t* value, Py_ssize_t words) noexcept nogil:
    free(store.value)
    release(q, s, store.room - room_of(store.capacity, 0))
    store.value = value
    store.room = room_of(store.capacity, 0) + words * sizeof(uint64_t)


cdef int widen(const Query* q, State* s, int64_t bits) noexcept nogil:
    """Make every count of a state able to hold `bits` bits. Returns a Failure."""
    cdef int width = s.width, wider = <int> ((bits + 2) // 64 + 1)
    cdef Py_ssize_t i, old = words_of(q, width), new, cells
    cdef uint64_t* cell
    if wider <= width:
        return NO_FAILURE
    wider += wider >> 2  # so that a long burst does not copy at every 64 events
    new = words_of(q, wider)
    cells = <Py_ssize_t> s.cohorts * q.cells
    if cells * new <= s.words:  # windows before this one were as wide
        for i in range(cells - 1, -1, -1):
            widen_cell(q, s.cell + i * new, wider, s.cell + i * old, width)
    else:
        cell = new_cells(q, s, cells * new)
        if cell == NULL:
            return OUT_OF_MEMORY
        for i in range(cells):
            widen_cell(q, cell + i * new, wider, s.cell + i * old, width)
        replace_cells(q, s, cell, cells * new)
    if relay_stores(q, q, s, wider):
        return OUT_OF_MEMORY
    s.width = wider
    reset_indexes(q, s)
    return NO_FAILURE


cdef int more_cohorts(const Query* q, State* s, int64_t cohorts) noexcept nogil:
    """Make room for so many cohorts at least. Returns a Failure."""
    cdef int more = <int> min(q.windows, max(cohorts, 2 * s.cohorts)), place
    cdef Py_ssize_t words = words_of(q, s.width), size = words * q.cells, nodes
    cdef uint64_t* cell
    cdef Store* store
    if cohorts <= s.cohorts:
        return NO_FAILURE
    cell = new_cells(q, s, more * size)
    if cell == NULL:
        return OUT_OF_MEMORY
    move_cohorts(s, cell, more, s.cell, 1, size)
    replace_cells(q, s, cell, more * size)
    for place in range(q.stores):
        store = &s.store[place]
        drop_weights(q, s, store)
        if q.store[place].starts or store.capacity == 0:
            continue
        nodes = store.capacity * more
        cell = new_cells(q, s, nodes * words)
        if cell == NULL:
            return OUT_OF_MEMORY
        move_cohorts(
            s, cell + store.head * more * words, more, store.value + store.head * s.cohorts * words,
            store.pending - store.head, words,
        )
        replace_values(q, s, store, cell, nodes * words)
    reset_indexes(q, s)
    return more_windows(q, s, more)


cdef int more_windows(const Query* q, State* s, int more) noexcept nogil:
    """Make room for the last windows of so many cohorts, whose cells are seen to elsewhere. Returns a Failure."""
    cdef int64_t* until
    cdef int64_t number
    if more <= s.cohorts:
        return NO_FAILURE
    if not claim(q, s, (more - (s.cohorts if s.until != few_cohorts(q, s) else 0)) * sizeof(int64_t)):
        return OUT_OF_MEMORY
    until = <int64_t*> malloc(more * sizeof(int64_t))
    if until == NULL:
        return OUT_OF_MEMORY
    for number in range(s.first, s.last + 1):
        until[number % more] = s.until[cohort_at(s, number)]
    if s.until != few_cohorts(q, s):
        free(s.until)
    s.until = until
    s.cohorts = more
    return NO_FAILURE


cdef void move_cohorts(
    const State* s, uint64_t* to, int cohorts, const uint64_t* source, Py_ssize_t blocks, Py_ssize_t words
) noexcept nogil:
    """Copy the open cohorts of some blocks [blocks][cohorts][words] into blocks with room for more cohorts."""
    cdef Py_ssize_t block
    cdef int64_t number
    for block in range(blocks):
        for number in range(s.first, s.last + 1):
            memcpy(
                to + (block * cohorts + number % cohorts) * words,
                source + (block * s.cohorts + cohort_at(s, number)) * words, words * sizeof(uint64_t),
            )


cdef void convert_cell(
    const Query* q, uint64_t* target, const Query* old, uint64_t* source, int width
) noexcept nogil:
    """Copy a cell into the layout of a query whose attributes have widened from INT to DOUBLE."""
    cdef int i, words
    cdef uint64_t* to
    cdef uint64_t* held
    cdef bint negative
    cdef Scaled total
    for i in range(q.components):
        to = target + place_in_cell(&q.component[i], width)
        held = source + place_in_cell(&old.component[i], width)
        words = words_in_cell(&old.component[i], width)
        if q.component[i].kind == old.component[i].kind:
            memcpy(to, held, words * sizeof(uint64_t))
        elif q.component[i].kind == SUM_DOUBLE:
            negative = <int64_t> held[words - 1] < 0
            if negative:
                limbs_negate(held, words)
            total = scaled_from_limbs(held, words)
            total.m = -total.m if negative else total.m
            scaled_store(to, total)
        else:
            to[0] = held[0]
            (<double*> to)[1] = <double> (<int64_t> held[1])


cdef int convert_state(const Query* q, const Query* old, State* s) noexcept nogil:
    """Lay all cells and nodes of a state out anew. Returns a Failure."""
    cdef Py_ssize_t i, words = words_of(q, s.width), before = words_of(old, s.width)
    cdef Py_ssize_t cells = <Py_ssize_t> s.cohorts * q.cells
    cdef uint64_t* cell = new_cells(q, s, cells * words)
    if cell == NULL:
        return OUT_OF_MEMORY
    for i in range(cells):
        convert_cell(q, cell + i * words, old, s.cell + i * before, s.width)
    replace_cells(q, s, cell, cells * words)
    return relay_stores(q, old, s, s.width)


cdef int relay_stores(const Query* q, const Query* old, State* s, int width) noexcept nogil:
    """Lay the nodes of all stores out anew, with wider numbers or as `convert_cell` does. Returns a Failure."""
    cdef Py_ssize_t i, words = words_of(q, width), before = words_of(old, s.width), nodes
    cdef uint64_t* cell
    cdef Store* store
    cdef int place
    for place in range(q.stores):
        store = &s.store[place]
        if q.store[place].starts or store.capacity == 0:
            continue
        nodes = store.capacity * s.cohorts
        cell = new_cells(q, s, nodes * words)
        if cell == NULL:
            return OUT_OF_MEMORY
        for i in range(store.head * s.cohorts, store.pending * s.cohorts):
            if old == q:
                widen_cell(q, cell + i * words, width, store.value + i * before, s.width)
            else:
                convert_cell(q, cell + i * words, old, store.value + i * before, width)
        replace_values(q, s, store, cell, nodes * words)
        if old != q:
            drop_weights(old, s, store)
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ stores

cdef inline Py_ssize_t node_words(const Query* q, const State* s, int store) noexcept nogil:
    return 2 if q.store[store].starts else <Py_ssize_t> s.cohorts * words_of(q, s.width)


cdef int reserve_node(const Query* q, State* s, int place) noexcept nogil:
    """Make room for one more node behind the pending ones; moves the live nodes to the front first."""
    cdef Store* store = &s.store[place]
    cdef StoreTable* table = &q.store[place]
    cdef int columns = table.columns_end - table.columns, i
    cdef Py_ssize_t words = node_words(q, s, place), live = store.pending - store.head, capacity = store.capacity, room
    cdef int64_t* data
    cdef uint8_t* valid
    if store.pending < capacity:
        return NO_FAILURE
    if live * 2 > capacity or capacity == 0:
        capacity = 8 if capacity == 0 else 2 * capacity
    if not claim(q, s, columns * capacity * COLUMN):
        return OUT_OF_MEMORY
    data = <int64_t*> allocate((columns * capacity + 1) * sizeof(int64_t))
    valid = <uint8_t*> malloc(columns * capacity + 1)
    if data == NULL or valid == NULL:
        free(data)
        free(valid)
        return OUT_OF_MEMORY
    for i in range(columns if live else 0):
        memcpy(data + i * capacity, store.data + i * store.capacity + store.head, live * sizeof(int64_t))
        memcpy(valid + i * capacity, store.valid + i * store.capacity + store.head, live)
    free(store.data)
    free(store.valid)
    release(q, s, columns * store.capacity * COLUMN)
    store.data = data
    store.valid = valid
    if store.head:
        memmove(store.step, store.step + store.head, live * sizeof(int64_t))
        memmove(store.time, store.time + store.head, live * sizeof(int64_t))
        memmove(store.value, store.value + store.head * words, live * words * sizeof(uint64_t))
    store.count -= store.head
    store.base += store.head
    store.pending = live
    if store.head:
        store.weighed = 0
    store.head = 0
    if capacity > store.capacity:
        room = room_of(capacity, words)
        if not claim(q, s, room - store.room):
            return OUT_OF_MEMORY
        store.room = room
        if not regrown(<void**>&store.step, capacity * sizeof(int64_t)):
            return OUT_OF_MEMORY
        if not regrown(<void**>&store.time, capacity * sizeof(int64_t)):
            return OUT_OF_MEMORY
        if not regrown(<void**>&store.value, capacity * words * sizeof(uint64_t)):
            return OUT_OF_MEMORY
        store.capacity = capacity
    return NO_FAILURE


cdef uint64_t* append_node(
    const Query* q, State* s, int place, int64_t step, int64_t time, const Column* columns, Py_ssize_t row
) noexcept nogil:
    """A new pending node with the event's columns; returns its value, all zero, or a null pointer without memory."""
    cdef Store* store
    cdef StoreTable* table = &q.store[place]
    cdef Py_ssize_t words, at
    cdef uint64_t* value
    cdef const Column* column
    cdef int i
    if reserve_node(q, s, place):
        return NULL
    store = &s.store[place]
    words = node_words(q, s, place)
    at = store.pending
    store.pending += 1
    store.step[at] = step
    store.time[at] = time
    for i in range(table.columns_end - table.columns):
        column = &columns[q.member[table.columns + i]]
        store.data[i * store.capacity + at] = column.data[row]
        store.valid[i * store.capacity + at] = column.valid == NULL or column.valid[row]
        if not store.valid[i * store.capacity + at]:
            store.gaps |= <uint64_t> 1 << i
    value = store.value + at * words
    memset(value, 0, words * sizeof(uint64_t))
    return value


cdef void drop_weights(const Query* q, State* s, Store* store) noexcept nogil:
    """Let go of the weights of a store; a scan makes them anew."""
    release(q, s, weight_bytes(q, s, store.weights))
    free(store.weight)
    free(store.scale)
    store.weight = NULL
    store.scale = NULL
    store.weights = store.weighed = 0


cdef void forget_weights(const Query* q, State* s, int cohort) noexcept nogil:
    """Clear the weights of the cohort of a window that opens: what arrived before is not in it."""
    cdef Store* store
    cdef Py_ssize_t blocks, at
    cdef int i
    for i in range(q.stores):
        store = &s.store[i]
        if store.weights == 0:
            continue
        memset(store.weight + cohort * q.scaled * store.weights, 0, q.scaled * store.weights * sizeof(double))
        blocks = q.scaled * blocks_of(store.weights)
        for at in range(cohort * blocks, (cohort + 1) * blocks):
            store.scale[at].exponent = INT64_MIN
            store.scale[at].mixed = 0


cdef void merge_nodes(const Query* q, State* s, int place) noexcept nogil:
    """Make neighbouring nodes one where no guard under way can kill the one without the other."""
    cdef Store* store = &s.store[place]
    cdef Py_ssize_t words = node_words(q, s, place), cell_words = words_of(q, s.width), kept, i
    cdef uint64_t* cell
    cdef int cohort
    store.head = first_alive(store, killed_before(q, s, q.store[place].guards))
    kept = store.head
    if kept == store.count:
        return
    for i in range(store.head + 1, store.count):
        if told_apart(q, s, q.store[place].guards, store.step[kept], store.step[i]):
            kept += 1
            if kept != i:
                memcpy(store.value + kept * words, store.value + i * words, words * sizeof(uint64_t))
        else:
            for cohort in range(s.cohorts):
                cell = store.value + kept * words + cohort * cell_words
                add_cell(q, s.width, cell, store.value + i * words + cohort * cell_words)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell, s.width))
        store.step[kept] = store.step[i]
        store.time[kept] = store.time[i]
    store.count = kept + 1
    store.pending = store.count


cdef bint told_apart(const Query* q, const State* s, int guards, int64_t earlier, int64_t later) noexcept nogil:
    """Whether a match that began after step `earlier`, up to step `later`, has finished or may still finish."""
    cdef int i, guard, state
    for i in range(q.guard_set[2 * guards], q.guard_set[2 * guards + 1]):
        guard = q.member[i]
        if s.killed[guard] > earlier:
            return True
        if q.simple[guard]:
            continue  # its matches kill at once
        if s.begun[guard] > earlier and s.begun[guard] <= later:
            return True
        for state in range(q.guard_first[guard], q.guard_first[guard + 1]):
            if s.start_step[state] > earlier and s.start_step[state] <= later:
                return True
    return False


cdef int64_t killed_before(const Query* q, const State* s, int guards) noexcept nogil:
    """What arrived before this step is dead for a transition with these guards."""
    cdef int64_t step = 0
    cdef int i
    if guards >= 0:
        for i in range(q.guard_set[2 * guards], q.guard_set[2 * guards + 1]):
            step = max(step, s.killed[q.member[i]])
    return step


cdef Py_ssize_t first_alive(const Store* store, int64_t step) noexcept nogil:
    cdef Py_ssize_t low = store.head, high = store.count, middle
    while low < high:
        middle = (low + high) // 2
        if store.step[middle] < step:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint start_alive(const Query* q, const State* s, int guards, int64_t number) noexcept nogil:
    """Whether the empty trend of a cohort is under none of some guards that has matched since its windows began."""
    cdef int i, guard
    if guards >= 0:
        for i in range(q.guard_set[2 * guards], q.guard_set[2 * guards + 1]):
            guard = q.member[i]
            if s.killed[guard] and s.killed_time[guard] >= s.until[cohort_at(s, number)] * q.slide:
                return False
    return True


cdef void reset_index(const Query* q, State* s, Index* index) noexcept nogil:
    """Forget all runs; the next read orders the store's nodes anew."""
    cdef int i
    for i in range(index.runs):
        release(q, s, index.run[i].bytes)
        free(index.run[i].number)
        free(index.run[i].key)
        free(index.run[i].sum)
    index.runs = 0
    index.recent = 0
    index.next = 0


cdef void reset_indexes(const Query* q, State* s) noexcept nogil:
    cdef int i
    for i in range(q.indexes):
        reset_index(q, s, &s.index[i])


cdef void free_index(const Query* q, State* s, Index* index) noexcept nogil:
    reset_index(q, s, index)
    release(q, s, index.room)
    free(index.run)
    free(index.recent_number)
    free(index.recent_key)


cdef int renew_indexes(const Query* q, State* s, int before) noexcept nogil:
    """Empty indexes in place of the `before` ones that the state has. Returns a Failure."""
    cdef int i
    for i in range(before):
        free_index(q, s, &s.index[i])
    free(s.index)
    s.index = NULL
    release(q, s, before * sizeof(Index))
    if claim(q, s, q.indexes * sizeof(Index)):
        s.index = <Index*> calloc(q.indexes + 1, sizeof(Index))
    return OUT_OF_MEMORY if s.index == NULL else NO_FAILURE


cdef void clear_state(const Query* q, State* s) noexcept nogil:
    """Forget everything: no window is open any more."""
    cdef int i
    for i in range(q.stores):
        s.store[i].base += s.store[i].pending
        s.store[i].head = s.store[i].count = s.store[i].pending = s.store[i].weighed = 0
        s.store[i].gaps = 0
    reset_indexes(q, s)
    if q.guards:
        memset(s.start_step, 0, q.guard_states * sizeof(int64_t))
        memset(s.killed, 0, q.guards * sizeof(int64_t))
        memset(s.begun, 0, q.guards * sizeof(int64_t))
    # the next window's counts will hardly be shorter; stores have no room for more limbs
    s.width = 1 if q.stores else min(s.width, <int> (s.bits // 64) + 1)
    s.bits = 0  # who has packed the cells keeps them


cdef void free_state(const Query* q, State* s) noexcept nogil:
    cdef int i
    if s == NULL:
        return
    for i in range(q.stores):
        free(s.store[i].step)
        free(s.store[i].time)
        free(s.store[i].value)
        free(s.store[i].data)
        free(s.store[i].valid)
        free(s.store[i].weight)
        free(s.store[i].scale)
    if s.index != NULL:
        for i in range(q.indexes):
            free_index(q, s, &s.index[i])
    take(q.account, -s.bytes)
    free(s.index)
    free(s.cell)
    if s.until != few_cohorts(q, s):
        free(s.until)
    free(s)


cdef inline int64_t* few_cohorts(const Query* q, const State* s) noexcept nogil:
    """The last windows of cohorts while they are few: behind all else in the block of a state."""
    return s.begun + q.guards + 1


cdef State* new_state(const Query* q) noexcept nogil:
    cdef Py_ssize_t numbers = 4 * q.guard_states + 3 * q.guards + 1
    cdef int cohorts = min(q.windows, FEW_COHORTS)
    cdef Py_ssize_t bytes = sizeof(State) + (q.stores + 1) * sizeof(Store) + (numbers + cohorts) * sizeof(int64_t)
    cdef State* s = <State*> calloc(1, bytes)  # what seldom grows is one block
    if s == NULL:
        return NULL
    s.width = 1
    s.cohorts = cohorts
    s.words = <Py_ssize_t> s.cohorts * q.cells * words_of(q, 1)
    if not claim(
        q, s, bytes + (s.words + 1) * sizeof(uint64_t) + (q.indexes + 1) * sizeof(Index) + 3 * ALLOCATION
    ):
        free(s)
        return NULL
    s.cell = <uint64_t*> malloc((s.words + 1) * sizeof(uint64_t))
    if q.indexes:
        s.index = <Index*> calloc(q.indexes + 1, sizeof(Index))
    if s.cell == NULL or (q.indexes and s.index == NULL):
        take(q.account, -s.bytes)
        free(s.cell)
        free(s.index)
        free(s)
        return NULL
    s.store = <Store*> (s + 1)
    s.start_step = <int64_t*> (s.store + q.stores + 1)
    s.start_time = s.start_step + q.guard_states
    s.fresh_step = s.start_time + q.guard_states
    s.fresh_time = s.fresh_step + q.guard_states
    s.killed = s.fresh_time + q.guard_states
    s.killed_time = s.killed + q.guards
    s.begun = s.killed_time + q.guards
    s.until = few_cohorts(q, s)
    s.first = 0
    s.last = -1
    s.border = INT64_MIN
    return s
