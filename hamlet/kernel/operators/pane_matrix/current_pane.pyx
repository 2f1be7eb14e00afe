"""The pane under way: what its events make of the rows of its map, until it is put on the back."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport (
    add_cell,
    bind_event,
    bit_length,
    limbs_bits,
    limbs_increment,
    limbs_nonzero,
    words_of,
)
from hamlet.kernel.operators.pane_matrix.limb_maps cimport (
    BACK,
    FRONT,
    MOST_COLUMNS,
    NEXT,
    PANE,
    PRODUCT,
    TRAILER,
    Panes,
    end_entry,
    fit_cell,
    make_room,
    multiply,
    panes_of,
    size_of,
    swap_products,
    words_at,
)
from hamlet.kernel.operators.scalar.step cimport entry_of
from hamlet.kernel.plan cimport FROM_CELL, NO_FAILURE, OUT_OF_MEMORY, Arrival, Entry, Query, Source
from hamlet.kernel.state.burst cimport Tally, apply_burst, join_tally
from hamlet.kernel.state.core cimport Core, Member
from hamlet.kernel.state.query_state cimport State
from hamlet.kernel.state.scratch cimport reserve_words


cdef bint extends(const Query* q, const Arrival* a, uint64_t live) noexcept nogil:
    """Whether an event would extend a trend, the empty one included."""
    cdef const Source* source
    cdef int i
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        if source.kind != FROM_CELL or live >> source.place & 1:
            return True
    return False


cdef void begin_pane(const Query* q, State* s) noexcept nogil:
    """Let the map of a pane be the identity, in one limb; there is room for that."""
    cdef Panes* p = panes_of(s)
    cdef uint64_t* cell = words_at(s, PANE)
    cdef Py_ssize_t words = words_of(q, 1)
    cdef int i
    p.rows = p.live << 1 | 1
    p.width = 1
    p.bits = 1
    memset(cell, 0, (1 + q.cells) * q.cells * words * sizeof(uint64_t))
    for i in range(q.cells):
        cell[((i + 1) * q.cells + i) * words] = 1


cdef int enter_pane(const Query* q, State* s) noexcept nogil:
    """Count one more step of the pane. Returns a Failure."""
    if panes_of(s).steps == 0:
        if make_room(q, s, PANE, (1 + q.cells) * q.cells * words_of(q, 1)):
            return OUT_OF_MEMORY
        begin_pane(q, s)
    panes_of(s).steps += 1
    return NO_FAILURE


cdef int widen_pane(const Query* q, State* s, int64_t bits) noexcept nogil:
    """Make every count of the pane's map able to hold `bits` bits. Returns a Failure."""
    cdef int width = panes_of(s).width, wider = <int> ((bits + 2) // 64 + 1), i
    cdef uint64_t* cell
    if bits <= 64 * width - 3:
        return NO_FAILURE
    wider += wider >> 2
    if make_room(q, s, PANE, (1 + q.cells) * q.cells * words_of(q, wider)):
        return OUT_OF_MEMORY
    cell = words_at(s, PANE)
    for i in range((1 + q.cells) * q.cells - 1, -1, -1):
        fit_cell(q, cell + i * words_of(q, wider), wider, cell + i * words_of(q, width), width)
    panes_of(s).width = wider
    return NO_FAILURE


cdef int step(
    Core* k, int query, State* s, const Entry* only, const int64_t* rows, int events
) noexcept nogil:
    """Events of one time: all reads, then all writes. `only` is the entry of a lone event. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef const Entry* entry
    cdef uint64_t before = panes_of(s).live
    cdef int i, j
    if settle(k, q, s) or enter_pane(q, s):
        return OUT_OF_MEMORY
    if widen_pane(q, s, panes_of(s).bits + bit_length(<int64_t> events * q.most_sources)):
        return OUT_OF_MEMORY
    if reserve_words(k, (q.arrivals + 1) * (1 + q.cells) * words_of(q, panes_of(s).width)):
        return OUT_OF_MEMORY
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL:
            continue
        for j in range(entry.arrivals, entry.arrivals_end):
            if extends(q, &q.arrival[k.class_member[j]], before):
                read_event(k, q, s, k.class_member[j], rows[i])
    for i in range(events):
        entry = only if only != NULL else entry_of(k, k.class_of[rows[i]], query)
        if entry == NULL:
            continue
        for j in range(entry.arrivals, entry.arrivals_end):
            if k.used[k.class_member[j]]:
                k.used[k.class_member[j]] = 0
                write_sums(k, q, s, k.class_member[j])
    return NO_FAILURE


cdef void read_event(Core* k, const Query* q, State* s, int arrival, int64_t row) noexcept nogil:
    """Add what one event extends to the sums of its arrival, in scratch, for each row of the pane's map."""
    cdef const Panes* p = panes_of(s)
    cdef const Arrival* a = &q.arrival[arrival]
    cdef int words = words_of(q, p.width), number
    cdef uint64_t* total = k.scratch + arrival * (1 + q.cells) * words
    cdef uint64_t* sum
    if not k.used[arrival]:
        memset(total, 0, (1 + q.cells) * words * sizeof(uint64_t))
    for number in range(1 + q.cells):
        if not p.rows >> number & 1:
            continue
        sum = k.scratch + q.arrivals * (1 + q.cells) * words if k.used[arrival] else total + number * words
        if not sum_sources(q, s, a, number, sum):
            continue
        bind_event(q, a, p.width, sum, k.columns, row)
        if k.used[arrival]:
            add_cell(q, p.width, total + number * words, sum)
    k.used[arrival] = 1


cdef bint sum_sources(const Query* q, const State* s, const Arrival* a, int number, uint64_t* sum) noexcept nogil:
    """Write what an arrival extends in a row of the pane's map; False where there is nothing, which may be written."""
    cdef const Panes* p = panes_of(s)
    cdef int words = words_of(q, p.width), i
    cdef const uint64_t* cell = words_at(s, PANE) + number * q.cells * words
    memset(sum, 0, words * sizeof(uint64_t))
    for i in range(a.sources, a.sources_end):
        if q.source[i].kind == FROM_CELL:
            add_cell(q, p.width, sum, cell + q.source[i].place * words)
        elif number == 0:
            limbs_increment(sum, p.width)
    return limbs_nonzero(sum, p.width)


cdef void write_sums(Core* k, const Query* q, State* s, int arrival) noexcept nogil:
    """Add the sums of a step to the cells of an arrival."""
    cdef Panes* p = panes_of(s)
    cdef int words = words_of(q, p.width), number
    for number in range(1 + q.cells):
        if p.rows >> number & 1:
            add_sum(q, s, &q.arrival[arrival], number, k.scratch + (arrival * (1 + q.cells) + number) * words)


cdef void add_sum(const Query* q, State* s, const Arrival* a, int number, const uint64_t* sum) noexcept nogil:
    """Add a sum to the cells of an arrival in a row of the pane's map."""
    cdef Panes* p = panes_of(s)
    cdef int words = words_of(q, p.width), i
    cdef uint64_t* cell
    if not limbs_nonzero(sum, p.width):
        return
    for i in range(a.cells, a.cells_end):
        cell = words_at(s, PANE) + (number * q.cells + q.member[i]) * words
        add_cell(q, p.width, cell, sum)
        p.bits = max(p.bits, limbs_bits(cell, p.width))
        p.live |= <uint64_t> 1 << q.member[i]


cdef int take_burst(
    Core* k, const Query* q, State* s, const Member* member, int64_t events, const Tally* tally
) noexcept nogil:
    """Let a burst wait, together with the one before where that was of the same arrival. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef const Arrival* a = &q.arrival[member.arrival]
    cdef bint joins = p.waiting == member.arrival
    cdef int i
    if not extends(q, a, p.live):
        return NO_FAILURE
    k.applied += 1
    if not joins and settle(k, q, s):
        return OUT_OF_MEMORY
    if enter_pane(q, s):
        return OUT_OF_MEMORY
    p = panes_of(s)
    for i in range(a.cells, a.cells_end):
        p.live |= <uint64_t> 1 << q.member[i]
    if member.columns >> MOST_COLUMNS:
        return apply_to_pane(k, q, s, member.arrival, member.loop, events, tally)
    for i in range(MOST_COLUMNS):
        if member.columns >> i & 1:
            if joins:
                join_tally(&p.tally[i], &tally[i], k.floating[i])
            else:
                p.tally[i] = tally[i]
    p.events = p.events + events if joins else events
    p.waiting = member.arrival
    p.loop = member.loop
    return NO_FAILURE


cdef int settle(Core* k, const Query* q, State* s) noexcept nogil:
    """Let the burst that waits take effect. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef int arrival = p.waiting
    cdef Tally tally[MOST_COLUMNS]
    if arrival < 0:
        return NO_FAILURE
    p.waiting = -1
    memcpy(tally, p.tally, sizeof(tally))  # the state may move
    return apply_to_pane(k, q, s, arrival, p.loop, p.events, tally)


cdef int apply_to_pane(
    Core* k, const Query* q, State* s, int arrival, bint loop, int64_t events, const Tally* tally
) noexcept nogil:
    """Let a burst take effect in the rows of the pane's map. Returns a Failure."""
    cdef const Arrival* a = &q.arrival[arrival]
    cdef Panes* p = panes_of(s)
    cdef int number, words
    if widen_pane(q, s, p.bits + bit_length(q.most_sources) + (events if loop else bit_length(events)) + 1):
        return OUT_OF_MEMORY
    p = panes_of(s)
    words = words_of(q, p.width)
    if reserve_words(k, 3 * words):
        return OUT_OF_MEMORY
    for number in range(1 + q.cells):
        if p.rows >> number & 1 and sum_sources(q, s, a, number, k.scratch):
            apply_burst(
                q, a, p.width, loop, events, tally, k.scratch, k.scratch + words, k.scratch + 2 * words
            )
            add_sum(q, s, a, number, k.scratch + words)
    return NO_FAILURE


cdef int end_pane(Core* k, const Query* q, State* s) noexcept nogil:
    """Put the map of the pane on the back, and multiply the product with it. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef Py_ssize_t words, at
    cdef int width, wider, number, i
    cdef int64_t bits
    cdef uint64_t rows
    cdef uint64_t* to
    if p.steps == 0:
        return NO_FAILURE
    if settle(k, q, s):
        return OUT_OF_MEMORY
    p = panes_of(s)
    rows, width = p.rows, <int> (p.bits // 64) + 1
    words, at = size_of(q, rows, width), p.area[BACK].used
    if make_room(q, s, BACK, at + words + TRAILER):
        return OUT_OF_MEMORY
    p = panes_of(s)
    to = words_at(s, BACK) + at
    for number in range(1 + q.cells):
        if not rows >> number & 1:
            continue
        for i in range(q.cells):
            fit_cell(
                q, to, width, words_at(s, PANE) + (number * q.cells + i) * words_of(q, p.width), p.width
            )
            to += words_of(q, width)
    end_entry(p, BACK, words_at(s, BACK) + at, words, s.until[0], rows, width, p.bits)
    p.steps = 0
    p.result_width = 0
    if p.area[FRONT].used == 0:
        return NO_FAILURE
    if not p.multiplied:
        if make_room(q, s, PRODUCT, words):
            return OUT_OF_MEMORY
        memcpy(words_at(s, PRODUCT), words_at(s, BACK) + at, words * sizeof(uint64_t))
        p = panes_of(s)
        p.multiplied = True
        p.product_rows, p.product_width, p.product_bits = rows, width, p.bits
        return NO_FAILURE
    bits = p.product_bits + p.bits + bit_length(q.cells + 1)
    wider = <int> (bits // 64) + 1
    if make_room(q, s, NEXT, size_of(q, p.product_rows, wider)):
        return OUT_OF_MEMORY
    p = panes_of(s)
    p.product_bits = multiply(
        q, words_at(s, PRODUCT), p.product_rows, p.product_width, p.product_rows, words_at(s, BACK) + at, rows, width,
        words_at(s, NEXT), wider,
    )
    p.product_width = wider
    swap_products(p)
    return NO_FAILURE
