"""The state of a query and key as bytes and back.

Contract
--------
**Form.** 64-bit words in the order of the machine: the open windows, bits and width; the progress of the guards; the
cells, window after window; then per store the number of its nodes, their steps, times, values (window after window) and
columns. The bytes that say which values of a column are there are filled up to whole words.
**Left out** is what is derived or without meaning: indexes, numbers of nodes, the border of the pane, and cohorts whose
windows are not open (a cohort is cleared when its window opens).
**Trust.** `read_state` believes nothing. A number that could send the kernel out of an array, into an endless loop or
into a sum without head-room is refused; memory is asked for only once the bytes that fill it are there, but for cohorts
of windows that are not open, which cost address space and no memory. Counts themselves cannot be checked.
"""

from libc.math cimport isfinite
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp

from hamlet.kernel.cells cimport Scaled, limbs_bits, place_in_cell, scaled_load, words_of
from hamlet.kernel.lanes.lanes cimport LANES_STEP
from hamlet.kernel.plan cimport COUNT, COUNT_SCALED, NO_FAILURE, OUT_OF_MEMORY, SUM_DOUBLE, Component, Query, StoreTable
from hamlet.kernel.state.operator cimport Bytes
from hamlet.kernel.state.query_state cimport (
    COLUMN,
    State,
    Store,
    allocate,
    claim,
    free_state,
    cohort_at,
    more_cohorts,
    new_state,
    release,
    room_of,
)

cdef enum:
    MOST_WORDS = 1 << 30     # of a cell

cdef extern from *:
    """
    #define HAMLET_MOST_PLACE ((int64_t)1 << 62)
    #define HAMLET_MOST_ALLOCATION 1e17
    """
    const int64_t MOST_PLACE "HAMLET_MOST_PLACE"             # no event's place on a line of time is beyond it
    const double MOST_ALLOCATION "HAMLET_MOST_ALLOCATION"    # words; more than any machine has, and no overflow


# ------------------------------------------------------------------------------------------------ writing

cdef void put_word(Bytes* to, int64_t word) noexcept nogil:
    put(to, &word, WORD)


cdef void put_run(Bytes* to, int64_t windows, const uint64_t* cohort, Py_ssize_t words) noexcept nogil:
    if windows:
        put_word(to, windows)
        put(to, cohort, words * WORD)


cdef void put_cohorts(
    const State* s, const uint64_t* block, Py_ssize_t blocks, Py_ssize_t words, Bytes* to
) noexcept nogil:
    """The open cohorts of each of some blocks [blocks][cohorts][words], in the order of their windows.

    Most events are in most cohorts, so neighbours are often equal: each run of them is written once.
    """
    cdef Py_ssize_t i
    cdef int cohort
    cdef int64_t _, run
    cdef const uint64_t* held
    cdef const uint64_t* next
    if words == 0:
        return
    for i in range(blocks):
        cohort = cohort_at(s, s.first)
        held = NULL
        run = 0
        for _ in range(s.first, s.last + 1):
            next = block + (i * s.cohorts + cohort) * words
            if run and memcmp(held, next, words * WORD) == 0:
                run += 1
            else:
                put_run(to, run, held, words)
                held = next
                run = 1
            cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
        put_run(to, run, held, words)


cdef void write_store(const Query* q, const State* s, int place, Bytes* to) noexcept nogil:
    cdef const Store* store = &s.store[place]
    cdef const StoreTable* table = &q.store[place]
    cdef Py_ssize_t nodes = store.count - store.head if s.first <= s.last else 0, words = words_of(q, s.width), at
    cdef uint64_t nothing = 0
    cdef int i
    put_word(to, nodes)
    if nodes == 0:
        return
    put(to, store.step + store.head, nodes * WORD)
    put(to, store.time + store.head, nodes * WORD)
    if table.starts:
        put(to, store.value + 2 * store.head, 2 * nodes * WORD)
    else:
        put_cohorts(s, store.value + store.head * s.cohorts * words, nodes, words, to)
    for i in range(table.columns_end - table.columns):
        at = i * store.capacity + store.head
        put(to, store.data + at, nodes * WORD)
        put(to, store.valid + at, nodes)
        put(to, &nothing, (-nodes) & (WORD - 1))


cdef void put_windows(const State* s, Bytes* to) noexcept nogil:
    """The lowest open window, how many cohorts there are, and the last window of each."""
    cdef int64_t number
    put_word(to, s.lowest)
    put_word(to, s.last - s.first + 1)
    for number in range(s.first, s.last + 1):
        put_word(to, s.until[cohort_at(s, number)])


cdef void write_state(const Query* q, const State* s, Bytes* to) noexcept nogil:
    """Append a state; no step is under way."""
    cdef int i
    put_windows(s, to)
    put_word(to, s.bits)
    put_word(to, s.width)
    put(to, s.start_step, 2 * q.guard_states * WORD)  # with start_time, which follows it
    put(to, s.killed, 3 * q.guards * WORD)            # with killed_time and begun
    put_cohorts(s, s.cell, 1, <Py_ssize_t> q.cells * words_of(q, s.width), to)
    for i in range(q.stores):
        write_store(q, s, i, to)


# ------------------------------------------------------------------------------------------------ reading

cdef bint take_word(Cursor* source, int64_t low, int64_t high, int64_t* word) noexcept nogil:
    """The next word; False where there is none, or it is not in low..high."""
    return take(source, word, WORD) and low <= word[0] <= high


cdef bint take_words(
    Cursor* source, int64_t* words, Py_ssize_t count, int64_t low, int64_t high
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        if not take_word(source, low, high, &words[i]):
            return False
    return True


cdef bint is_sane(const Query* q, const State* s, const Bounds* bounds, const uint64_t* cell) noexcept nogil:
    """Whether the numbers of a cell are in their forms: counts within `bits`, exponents that such a run can reach."""
    cdef int i
    cdef const Component* c
    cdef Scaled number
    for i in range(q.components):
        c = &q.component[i]
        if c.kind == COUNT:
            if limbs_bits(cell + place_in_cell(c, s.width), s.width) > s.bits:
                return False
        elif c.kind == SUM_DOUBLE or c.kind >= COUNT_SCALED:
            number = scaled_load(cell + place_in_cell(c, s.width))
            if number.e % LANES_STEP or not -bounds.exponent <= number.e <= bounds.exponent:
                return False
            if c.kind >= COUNT_SCALED and not (isfinite(number.m) and number.m >= 0):
                return False
    return True


cdef int take_cohorts(
    const Query* q, const State* s, const Bounds* bounds, Cursor* source, uint64_t* block, Py_ssize_t blocks,
    Py_ssize_t cells,
) noexcept nogil:
    """What `put_cohorts` wrote, into blocks [blocks][cohorts][cells][words]. Returns a Failure, or DAMAGED."""
    cdef int words = words_of(q, s.width), cohort
    cdef Py_ssize_t size = cells * words, i, j
    cdef int64_t left, run
    cdef uint64_t* first
    if size == 0:
        return NO_FAILURE
    for i in range(blocks):
        cohort = cohort_at(s, s.first)
        left = s.last - s.first + 1
        while left:
            first = block + (i * s.cohorts + cohort) * size
            if not (take_word(source, 1, left, &run) and take(source, first, size * WORD)):
                return DAMAGED
            for j in range(cells):
                if not is_sane(q, s, bounds, first + j * words):
                    return DAMAGED
            left -= run
            while run:
                if block + (i * s.cohorts + cohort) * size != first:
                    memcpy(block + (i * s.cohorts + cohort) * size, first, size * WORD)
                cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
                run -= 1
    return NO_FAILURE


cdef uint64_t* new_cohorts(const Query* q, const State* s, Py_ssize_t cells) noexcept nogil:
    """Zeros for all cohorts of so many cells; memory is taken up only where something is written."""
    return <uint64_t*> calloc(<size_t> s.cohorts * cells * words_of(q, s.width) + 1, sizeof(uint64_t))


cdef int renew_cells(const Query* q, State* s) noexcept nogil:
    """Zeros for the cells of a state whose width has changed. Returns a Failure."""
    free(s.cell)
    release(q, s, s.words * WORD)
    s.cell = NULL
    s.words = 0
    if <double> s.cohorts * q.cells * words_of(q, s.width) > MOST_ALLOCATION:
        return OUT_OF_MEMORY
    if not claim(q, s, <Py_ssize_t> s.cohorts * q.cells * words_of(q, s.width) * WORD):
        return OUT_OF_MEMORY
    s.words = <Py_ssize_t> s.cohorts * q.cells * words_of(q, s.width)
    s.cell = new_cohorts(q, s, q.cells)
    return OUT_OF_MEMORY if s.cell == NULL else NO_FAILURE


cdef int new_nodes(const Query* q, State* s, int place, Py_ssize_t nodes) noexcept nogil:
    """Room for so many nodes in an empty store. Returns a Failure."""
    cdef Store* store = &s.store[place]
    cdef const StoreTable* table = &q.store[place]
    cdef Py_ssize_t columns = table.columns_end - table.columns
    cdef Py_ssize_t words = 2 if table.starts else <Py_ssize_t> s.cohorts * words_of(q, s.width)
    if <double> nodes * words > MOST_ALLOCATION or not claim(q, s, room_of(nodes, words) + columns * nodes * COLUMN):
        return OUT_OF_MEMORY
    store.room = room_of(nodes, words)
    store.capacity = store.count = store.pending = nodes
    store.step = <int64_t*> malloc(nodes * sizeof(int64_t))
    store.time = <int64_t*> malloc(nodes * sizeof(int64_t))
    store.value = <uint64_t*> malloc(2 * nodes * WORD) if table.starts else new_cohorts(q, s, nodes)
    store.data = <int64_t*> allocate((columns * nodes + 1) * sizeof(int64_t))
    store.valid = <uint8_t*> malloc(columns * nodes + 1)
    if store.step == NULL or store.time == NULL or store.value == NULL or store.data == NULL or store.valid == NULL:
        return OUT_OF_MEMORY
    return NO_FAILURE


cdef int take_columns(
    const StoreTable* table, const int* member, const int64_t* limits, Cursor* source, Store* store
) noexcept nogil:
    """The columns of a store. Returns a Failure."""
    cdef Py_ssize_t nodes = store.count, at
    cdef int columns = table.columns_end - table.columns, i
    cdef int64_t limit
    cdef uint8_t padding[WORD]
    for i in range(columns):
        limit = limits[member[table.columns + i]]
        if not (
            take(source, store.data + i * nodes, nodes * WORD)
            and take(source, store.valid + i * nodes, nodes)
            and take(source, padding, (-nodes) & (WORD - 1))
        ):
            return DAMAGED
        for at in range(i * nodes, (i + 1) * nodes):
            if store.valid[at] > 1 or (store.valid[at] and limit >= 0 and not 0 <= store.data[at] < limit):
                return DAMAGED
            if not store.valid[at]:
                store.gaps |= <uint64_t> 1 << i
    return NO_FAILURE


cdef int read_store(const Query* q, State* s, int place, const Bounds* bounds, Cursor* source) noexcept nogil:
    cdef Store* store = &s.store[place]
    cdef const StoreTable* table = &q.store[place]
    cdef int64_t count, per_node, i
    cdef Py_ssize_t nodes
    if not take_word(source, 0, source.left // (2 * WORD), &count):
        return DAMAGED
    if count == 0:
        return NO_FAILURE
    per_node = 2 if table.starts else 1 + words_of(q, s.width)  # at least: all cohorts alike
    if s.last < s.first or count > source.left // ((2 + per_node) * WORD):
        return DAMAGED
    nodes = <Py_ssize_t> count
    if new_nodes(q, s, place, nodes):
        return OUT_OF_MEMORY
    if not (
        take_words(source, store.step, nodes, 1, bounds.step)
        and take_words(source, store.time, nodes, -MOST_PLACE, MOST_PLACE)
    ):
        return DAMAGED
    for i in range(1, nodes):
        if store.step[i] < store.step[i - 1]:
            return DAMAGED
    if table.starts:
        for i in range(nodes):
            if not (
                take_word(source, 1, bounds.step, <int64_t*> &store.value[2 * i])
                and take_word(source, -MOST_PLACE, MOST_PLACE, <int64_t*> &store.value[2 * i + 1])
            ):
                return DAMAGED
    elif take_cohorts(q, s, bounds, source, store.value, nodes, 1):
        return DAMAGED
    return take_columns(table, q.member, bounds.limits, source, store)


cdef int read_windows(const Query* q, Cursor* source, State* s) noexcept nogil:
    """Open windows and their cohorts, bits and width. Returns a Failure."""
    cdef int64_t low = -(MOST_TICKS + min(q.within, MOST_TICKS)) // q.slide - 1, high = MOST_TICKS // q.slide
    cdef int64_t cohorts, number, width
    if not (
        take_word(source, low, high, &s.lowest)
        and take_word(source, 0, min(q.windows, source.left // WORD), &cohorts)
    ):
        return DAMAGED
    if more_cohorts(q, s, cohorts):
        return OUT_OF_MEMORY
    s.first, s.last = 0, cohorts - 1
    low, high = s.lowest, min(high, s.lowest + q.windows - 1)
    for number in range(cohorts):
        if not take_word(source, low, high, &s.until[number]):
            return DAMAGED
        low = s.until[number] + 1
    if not (
        take_word(source, 0, INT64_MAX if q.exact else 0, &s.bits)
        and take_word(source, 1, (MOST_WORDS - q.fixed) // q.wide if q.wide else 1, &width)
        and s.bits <= 64 * width
    ):
        return DAMAGED
    s.width = <int> width
    return NO_FAILURE


cdef int fill_state(const Query* q, Cursor* source, const Bounds* bounds, State* s) noexcept nogil:
    cdef int i, failure
    cdef bint counts = False
    failure = read_windows(q, source, s)
    if failure:
        return failure
    if not (
        take_words(source, s.start_step, q.guard_states, 0, bounds.step)
        and take_words(source, s.start_time, q.guard_states, INT64_MIN, INT64_MAX)
        and take_words(source, s.killed, q.guards, 0, bounds.step)
        and take_words(source, s.killed_time, q.guards, INT64_MIN, INT64_MAX)
        and take_words(source, s.begun, q.guards, 0, bounds.step)
    ):
        return DAMAGED
    if s.last >= s.first and words_of(q, s.width) > source.left // WORD and q.cells:
        return DAMAGED
    if renew_cells(q, s):
        return OUT_OF_MEMORY
    failure = take_cohorts(q, s, bounds, source, s.cell, 1, q.cells)
    for i in range(q.stores):
        if failure:
            return failure
        failure = read_store(q, s, i, bounds, source)
        counts = counts or (s.store[i].count > 0 and not q.store[i].starts)
    if not failure and not counts and (q.cells == 0 or s.last < s.first):
        s.width = 1  # no count is kept, so nothing has shown that the width is true
        s.bits = 0
        return renew_cells(q, s)
    return failure


cdef int read_state(const Query* q, Cursor* source, const Bounds* bounds, State** found) noexcept nogil:
    """Make a state of what `write_state` wrote. Returns a Failure, or DAMAGED."""
    cdef State* s = new_state(q)
    cdef int failure
    if s == NULL:
        return OUT_OF_MEMORY
    failure = fill_state(q, source, bounds, s)
    if failure:
        free_state(q, s)
        return failure
    found[0] = s
    return NO_FAILURE
