"""Pane maps of exact numbers: one query by itself, a pane computed once for all windows that overlap in it.

What a pane's events make of a window's cells S is one linear map, S' = F + sum over the cells j of S_j B_j: F is what
begins within the pane, B_j what becomes of one trend in cell j. F and the B_j are the rows of a matrix of cells, limb
vectors as everywhere. A product of counts is one of limbs; (count, sum) is a dual number, so that a sum becomes
count * sum' + sum * count'; of extrema the better one stays where both counts are not zero.

Windows are two stacks of panes. `BACK` has the maps of the panes since the last turn, `PRODUCT` their product, and
`FRONT` the cells as of that turn of the windows that were open, the oldest on top. A step changes the map of the pane
under way only, the end of a pane multiplies the product with it, and a window that closes is its cells times the
product. When the front is used up, a *turn* goes from the last pane of the back to the first: the row F of the
product from a pane on is what windows have that opened with that pane. So a pane costs a few products however many
windows are plain. Windows between whose openings the key had no event have the same cells, and are kept once.

All of a state is one area of memory, its cells, and all open windows are its one cohort. Only rows of cells with
trends (`live`) are computed and kept. Bursts of one arrival that nothing else interrupts wait and are one burst. Who
else reads the state has it promoted before.

Sources: HAMLET (SIGMOD'21) §3.1 (panes); K. Tangwongsan, M. Hirzel, S. Schneider, Low-Latency Sliding-Window
Aggregation in Worst-Case Constant Time (DEBS 2017), §3 (two stacks).
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memmove, memset

from hamlet.kernel.cell_products cimport add_product
from hamlet.kernel.cells cimport (
    add_cell,
    bind_event,
    bit_length,
    floor_divide,
    limbs_bits,
    limbs_increment,
    limbs_nonzero,
    place_in_cell,
    words_in_cell,
    words_of,
)
from hamlet.kernel.operators.scalar.bursts cimport list_member
from hamlet.kernel.operators.scalar.step cimport concerning, entry_of
from hamlet.kernel.operators.scalar.windows cimport append_sum, close_windows, leave_state, lowest, open_state
from hamlet.kernel.plan cimport (
    COUNT,
    FROM_CELL,
    NO_FAILURE,
    OUT_OF_MEMORY,
    SUM_INT,
    Arrival,
    Component,
    Entry,
    Query,
    Source,
)
from hamlet.kernel.state.burst cimport Tally, apply_burst, join_tally
from hamlet.kernel.state.checkpoint cimport write_state
from hamlet.kernel.state.core cimport SCALAR, Core, Graphlet, Member, ones
from hamlet.kernel.state.operator cimport Bytes, Operator, Run, Segment, in_block, number_of, operators
from hamlet.kernel.state.query_state cimport State, cell_of, claim, cohort_at, more_windows, release, replace_cells
from hamlet.kernel.state.scratch cimport reserve_words
from hamlet.kernel.state.timer_heap cimport schedule

NAME = "limb_matrix"
WHAT = "one query by itself, exact, many windows at once: a pane computed once as a matrix of numbers of any size"

MOST_CELLS = 16  # of a query

cdef int NUMBER = number_of(NAME)

cdef enum:
    MOST_COLUMNS = 8   # event columns of which bursts may wait
    MOST_ROWS = 17     # of a map
    TRAILER = 5        # words behind an entry of a stack: its last window, rows, width, bits of its counts, words

cdef enum:             # areas
    PANE               # [1 + cells][cells] the map of the pane under way
    PRODUCT            # the same: of the panes since the last turn, where windows at the front are open
    NEXT               # where the next product is made
    FRONT              # a stack: the cells of windows as of the last turn; those that close next on top
    BACK               # a stack: maps of panes since then, of the rows that are there
    RESULT             # a cell: what was delivered last
    AREAS

cdef struct Area:
    Py_ssize_t place   # its first word
    Py_ssize_t words
    Py_ssize_t used    # of a stack

cdef struct Panes:     # at the beginning of a state's cells
    uint64_t live      # bits of cells with trends in an open window; of those that have closed since a turn, too
    uint64_t rows      # of the map of the pane under way
    uint64_t product_rows
    int64_t steps      # of the pane under way; without any the other fields of its map mean nothing
    int64_t bits       # no count of its map has more
    int64_t product_bits
    int width
    int product_width
    bint multiplied    # whether there has been a pane since the last turn
    int result_width   # 0: nothing is kept
    int64_t result_last  # the last window of those that `RESULT` is of
    int waiting        # the arrival of the burst that waits, -1 for none
    bint loop
    int64_t events     # of the burst that waits
    Tally tally[MOST_COLUMNS]
    Area area[AREAS]

cdef Py_ssize_t HEAD = (sizeof(Panes) + 7) // 8  # words of that
cdef Py_ssize_t NO_COUNT = -(<Py_ssize_t> 1 << 62)


def serves(tables):
    """Whether a query is exact, of overlapping windows, and its transitions read sums only, with nothing negated.

    Parameters
    ----------
    tables : hamlet.planner.tables.QueryTables

    Returns
    -------
    bool
    """
    cells = len(tables.cell_guards)
    windows = -(-tables.within // tables.slide)
    if (
        not tables.exact or tables.is_merged or tables.outputs or tables.stores or tables.predicates
        or tables.guard_sets
    ):
        return False
    if [kind for kind, *_ in tables.components].count(COUNT) > 1:
        return False  # trends are counted by how they begin
    # A step costs a row for each cell, and one more, in place of one for each window. From there on it pays with many
    # short steps; with a few long bursts in a pane it costs up to 15 % below 15 windows (bench/ablation.md).
    return 0 < cells <= MOST_CELLS and windows > cells + 1


# ------------------------------------------------------------------------------------------------ the interface

cdef int consume(Core* k, int query, Segment* segment) noexcept nogil:
    """A burst for some queries, or events of one time for one."""
    cdef const Member* member
    cdef int i, failure
    if segment.graphlet == NULL:
        return take(k, query, segment, NULL)
    for i in range(segment.members):
        member = &segment.graphlet.member[segment.member[i]]
        failure = take(k, member.query, segment, member)
        if failure:
            return failure
    return NO_FAILURE


cdef int take(Core* k, int query, const Segment* segment, const Member* member) noexcept nogil:
    """A burst, or events of one time, for one query."""
    cdef const Query* q = &k.query[query]
    cdef const Run* run = segment.run
    cdef State* s = k.state[segment.key * k.queries + query]
    cdef int64_t events = run.events
    cdef int failure
    if segment.graphlet == NULL and segment.entry == NULL:
        events = concerning(k, query, run.rows, run.events)
        if events == 0:
            return NO_FAILURE
    failure = reach(k, query, segment.key, segment.time, &s)
    if failure or s == NULL:
        return failure
    k.work[NUMBER].events += events
    if segment.graphlet == NULL:
        return step(k, query, s, segment.entry, run.rows, <int> run.events)
    k.work[NUMBER].bursts += 1
    return take_burst(k, q, s, member, events, run.tally)


cdef int find(Core* k, int _, Graphlet* g, int first, int end) noexcept nogil:
    """Put the members with trends that a burst extends on their list."""
    cdef const Query* q
    cdef const Member* member
    cdef State* s
    cdef int place, failure
    for place in range(first, end):
        member = &g.member[place]
        s = k.state[g.key * k.queries + member.query]
        if k.role_events[member.role] == 0 or in_block(k, g, member) or (s == NULL and not member.starts):
            continue
        failure = reach(k, member.query, g.key, g.time, &s)
        if failure:
            return failure
        q = &k.query[member.query]
        if s != NULL and extends(q, &q.arrival[member.arrival], panes_of(s).live):
            list_member(k, g, place)
    return NO_FAILURE


cdef int deliver(Core* k, int query, State* s, int64_t key, int64_t window) noexcept nogil:
    """The row of a window; none where no event came after it opened."""
    cdef const Query* q = &k.query[query]
    cdef const uint64_t* trailer
    cdef Panes* p
    if find_front(k, q, s, window):
        return OUT_OF_MEMORY
    p = panes_of(s)
    if p.area[FRONT].used == 0:
        return NO_FAILURE
    trailer = top_of(s, FRONT)
    if not (p.result_width and p.result_last == <int64_t> trailer[0]) and sum_result(k, q, s):
        return OUT_OF_MEMORY
    p = panes_of(s)
    return append_sum(k, q, p.result_width, words_at(s, RESULT), query, NULL, key, window)


cdef int promote(Core* k, int query, int64_t key) noexcept nogil:
    """Let a state hold the sums of each cohort again, for ``scalar``. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef State* s = k.state[key * k.queries + query]
    cdef State plain
    cdef int64_t last = s.until[0]
    cdef int number = 0
    if not s.packed:
        return NO_FAILURE
    if end_pane(k, q, s) or more_windows(q, s, <int> min(q.windows, entries(s, FRONT) + entries(s, BACK) + 1)):
        return OUT_OF_MEMORY
    plain = s[0]
    plain.bits = most_bits(q, s)
    plain.width = <int> ((plain.bits + 2) // 64 + 1)
    plain.words = <Py_ssize_t> s.cohorts * q.cells * words_of(q, plain.width)
    if not claim(q, s, plain.words * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    plain.cell = <uint64_t*> calloc(plain.words + 1, sizeof(uint64_t))
    if plain.cell == NULL:
        release(q, s, plain.words * sizeof(uint64_t))
        return OUT_OF_MEMORY
    plain.bits = 0
    number = write_cohorts(q, s, &plain, number, last)
    panes_of(s).area[FRONT].used = 0
    if turn(q, s):
        free(plain.cell)
        release(q, s, plain.words * sizeof(uint64_t))
        clear_panes(panes_of(s))  # the run ends here
        return OUT_OF_MEMORY
    number = write_cohorts(q, s, &plain, number, last)
    if s.first <= s.last and (number == 0 or s.until[number - 1] < last):
        s.until[number] = last  # of windows without an event
        number += 1
    s.first, s.last = 0, number - 1
    free(s.cell)
    release(q, s, s.words * sizeof(uint64_t))
    s.cell, s.words, s.width, s.bits, s.packed = plain.cell, plain.words, plain.width, plain.bits, SCALAR
    return NO_FAILURE


cdef void checkpoint(Core* k, int query, int64_t key, Bytes* to) noexcept nogil:
    """A state as ``scalar`` has it; `to.count` is negative where there is no memory for that."""
    if promote(k, query, key):
        to.count = NO_COUNT
    else:
        write_state(&k.query[query], k.state[key * k.queries + query], to)


cdef Py_ssize_t held(const Core* k, int query, Py_ssize_t key) noexcept nogil:
    cdef const State* s = k.state[key * k.queries + query]
    return 0 if s == NULL else s.bytes


operators[NUMBER] = Operator(
    consume=consume, find=find, close=leave_state, deliver=deliver, promote=promote, checkpoint=checkpoint, bytes=held
)


# ------------------------------------------------------------------------------------------------ windows

cdef int reach(Core* k, int query, int64_t key, int64_t time, State** found) noexcept nogil:
    """The state of a key with the windows of a time open; a null pointer where no window is. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef State* s = k.state[key * k.queries + query]
    found[0] = NULL
    if s == NULL and open_state(k, query, key, time, &s):
        return OUT_OF_MEMORY
    if s == NULL:
        return NO_FAILURE
    if not s.packed and pack(q, s):
        return OUT_OF_MEMORY
    if time >= s.border and turn_windows(k, query, s, key, time):
        return OUT_OF_MEMORY
    if s.first <= s.last:
        found[0] = s
    return NO_FAILURE


cdef int turn_windows(Core* k, int query, State* s, int64_t key, int64_t time) noexcept nogil:
    """Close the windows that end at or before `time` and open those that hold it. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef int64_t low = lowest(k, q, time), high = floor_divide(time, q.slide)
    if end_pane(k, q, s) or close_windows(k, query, s, key, low):
        return OUT_OF_MEMORY
    if s.last < s.first:
        clear_panes(panes_of(s))
        s.bits = 0
        s.first, s.last, s.lowest = 0, -1, low
    if high >= low:
        s.last = 0
        s.until[0] = high
    s.border = min((high + 1) * q.slide, low * q.slide + q.within)
    if s.last >= s.first and not s.scheduled:
        return schedule(k, s, key * k.queries + query, s.lowest * q.slide + q.within)
    return NO_FAILURE


cdef int find_front(Core* k, const Query* q, State* s, int64_t window) noexcept nogil:
    """Let what the oldest window had at the last turn be on top of the front, which else is empty."""
    if end_pane(k, q, s):
        return OUT_OF_MEMORY
    while True:
        while panes_of(s).area[FRONT].used:
            if <int64_t> top_of(s, FRONT)[0] >= window:
                return NO_FAILURE
            pop(s, FRONT)
        if panes_of(s).area[BACK].used == 0:
            return NO_FAILURE
        if turn(q, s):
            return OUT_OF_MEMORY


cdef int sum_result(Core* k, const Query* q, State* s) noexcept nogil:
    """Let `RESULT` be what stands in the finals of the window on top of the front. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef const uint64_t* trailer = top_of(s, FRONT)
    cdef int64_t bits = <int64_t> trailer[3] + bit_length((q.cells + 1) * (q.finals_end - q.finals))
    cdef int width, i
    cdef uint64_t* sum
    cdef uint64_t* part
    if p.multiplied:
        bits += p.product_bits
    width = <int> (bits // 64) + 1
    if make_room(q, s, RESULT, words_of(q, width)) or reserve_words(k, words_of(q, width)):
        return OUT_OF_MEMORY
    p = panes_of(s)
    p.result_width, p.result_last = width, <int64_t> top_of(s, FRONT)[0]
    sum, part = words_at(s, RESULT), k.scratch
    for i in range(q.finals, q.finals_end):
        bring_up(q, s, q.source[i].place, sum if i == q.finals else part, width)
        if i > q.finals:
            add_cell(q, width, sum, part)
    s.bits = max(s.bits, limbs_bits(sum, width))  # a band looks whether the next windows may fit it again
    return NO_FAILURE


cdef void bring_up(const Query* q, const State* s, int cell, uint64_t* to, int width) noexcept nogil:
    """Write one cell of the window on top of the front: what it had at the last turn times what came since."""
    cdef const Panes* p = panes_of(s)
    cdef const uint64_t* trailer = top_of(s, FRONT)
    cdef int before = <int> trailer[2], i
    cdef Py_ssize_t words = words_of(q, before)
    cdef const uint64_t* cells = trailer - q.cells * words
    cdef const uint64_t* row[MOST_ROWS]
    if not p.multiplied:
        fit_cell(q, to, width, cells + cell * words, before)
        return
    list_rows(q, words_at(s, PRODUCT), p.product_rows, p.product_width, row)
    words = words_of(q, p.product_width)
    fit_cell(q, to, width, row[0] + cell * words, p.product_width)
    for i in range(q.cells):
        if row[i + 1] != NULL:
            add_product(
                q, to, width, cells + i * words_of(q, before), before, row[i + 1] + cell * words, p.product_width
            )


cdef int write_cohorts(const Query* q, State* s, State* to, int number, int64_t last) noexcept nogil:
    """Write the cells of the windows at the front into cohorts from `number` on; returns the number behind them."""
    cdef uint64_t* cell
    cdef int64_t until
    cdef int i
    while panes_of(s).area[FRONT].used:
        until = min(<int64_t> top_of(s, FRONT)[0], last)
        if until >= s.lowest and (number == 0 or until > s.until[number - 1]):
            for i in range(q.cells):
                cell = cell_of(q, to, number, i)
                bring_up(q, s, i, cell, to.width)
                to.bits = max(to.bits, limbs_bits(cell, to.width))
            s.until[number] = until
            number += 1
        pop(s, FRONT)
    return number


cdef int64_t entries(const State* s, int area) noexcept nogil:
    """How many entries a stack has."""
    cdef const uint64_t* end = words_at(s, area) + panes_of(s).area[area].used
    cdef int64_t found = 0
    while end > words_at(s, area):
        found += 1
        end -= TRAILER + (end - 1)[0]
    return found


cdef int64_t most_bits(const Query* q, const State* s) noexcept nogil:
    """A bound of the bits that a count of an open window has; no pane is under way."""
    cdef const Panes* p = panes_of(s)
    cdef const uint64_t* end
    cdef int64_t front = 0, back = 0, more = bit_length(q.cells + 1)
    end = words_at(s, FRONT) + p.area[FRONT].used
    while end > words_at(s, FRONT):
        front = max(front, <int64_t> (end - TRAILER)[3])
        end -= TRAILER + (end - 1)[0]
    end = words_at(s, BACK) + p.area[BACK].used
    while end > words_at(s, BACK):
        back += <int64_t> (end - TRAILER)[3] + more
        end -= TRAILER + (end - 1)[0]
    return max(front + (p.product_bits + more if p.multiplied else 0), back)


cdef int turn(const Query* q, State* s) noexcept nogil:
    """Let the front be the windows that opened since the last turn; it is used up. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef const uint64_t* end
    cdef Py_ssize_t at = p.area[BACK].used, words
    cdef int64_t last, before, bits = 0, sized
    cdef uint64_t rows, had = 0
    cdef int width = 0, wider
    p.live = 0
    p.multiplied = False
    p.result_width = 0
    while at:
        end = words_at(s, BACK) + at - TRAILER
        last, rows, words = <int64_t> end[0], end[1], <Py_ssize_t> end[4]
        at -= words + TRAILER
        if last < s.lowest:
            break
        before = max(s.lowest - 1, <int64_t> words_at(s, BACK)[at - TRAILER] if at else s.lowest - 1)
        if before < s.lowest:
            rows = 1  # nobody asks for more of the first one
        if had == 0:
            width, bits = <int> end[2], <int64_t> end[3]
            if make_room(q, s, PRODUCT, words):
                return OUT_OF_MEMORY
            memcpy(words_at(s, PRODUCT), words_at(s, BACK) + at, words * sizeof(uint64_t))
        else:
            sized = bits + <int64_t> end[3] + bit_length(q.cells + 1)
            wider = <int> (sized // 64) + 1
            if make_room(q, s, NEXT, size_of(q, rows, wider)):
                return OUT_OF_MEMORY
            end = words_at(s, BACK) + at + words
            bits = multiply(
                q, words_at(s, BACK) + at, end[1], <int> end[2], rows, words_at(s, PRODUCT), had, width,
                words_at(s, NEXT), wider,
            )
            width = wider
            swap_products(panes_of(s))
        had = rows
        if last > before and push_front(q, s, words_at(s, PRODUCT), PRODUCT, width, last):
            return OUT_OF_MEMORY
    panes_of(s).area[BACK].used = 0
    return NO_FAILURE


cdef int push_front(
    const Query* q, State* s, const uint64_t* cells, int area, int width, int64_t last
) noexcept nogil:
    """Put the cells of windows up to `last` on top of the front, no wider than they are. Returns a Failure.

    They are those of an area (which may move), or lie elsewhere (-1).
    """
    cdef Panes* p
    cdef Py_ssize_t words
    cdef int64_t bits = bits_of(q, cells, 1, width)
    cdef int narrower = <int> (bits // 64) + 1, i
    cdef uint64_t* to
    words = q.cells * words_of(q, narrower)
    if make_room(q, s, FRONT, panes_of(s).area[FRONT].used + words + TRAILER):
        return OUT_OF_MEMORY
    if area >= 0:
        cells = words_at(s, area)
    p = panes_of(s)
    to = words_at(s, FRONT) + p.area[FRONT].used
    for i in range(q.cells):
        fit_cell(q, to + i * words_of(q, narrower), narrower, cells + i * words_of(q, width), width)
        if limbs_nonzero(cells + i * words_of(q, width), width):
            p.live |= <uint64_t> 1 << i
    end_entry(p, FRONT, to, words, last, 1, narrower, bits)
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ the pane under way

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


# ------------------------------------------------------------------------------------------------ products

cdef int64_t multiply(
    const Query* q, const uint64_t* a, uint64_t a_rows, int a_width, uint64_t rows, const uint64_t* b, uint64_t b_rows,
    int b_width, uint64_t* to, int width,
) noexcept nogil:
    """Write some rows of the product of two maps, first `a` and then `b`; returns the most bits of a count in it."""
    cdef const uint64_t* left[MOST_ROWS]
    cdef const uint64_t* right[MOST_ROWS]
    cdef const uint64_t* factor
    cdef uint64_t* cell = to
    cdef Py_ssize_t words = words_of(q, width), a_words = words_of(q, a_width), b_words = words_of(q, b_width)
    cdef int number, i, j
    list_rows(q, a, a_rows, a_width, left)
    list_rows(q, b, b_rows, b_width, right)
    for number in range(1 + q.cells):
        if not rows >> number & 1:
            continue
        for i in range(q.cells):
            if number == 0:
                fit_cell(q, cell + i * words, width, right[0] + i * b_words, b_width)
            else:
                memset(cell + i * words, 0, words * sizeof(uint64_t))
        for j in range(q.cells):
            factor = left[number] + j * a_words
            if right[j + 1] == NULL or not limbs_nonzero(factor, a_width):
                continue
            for i in range(q.cells):
                add_product(q, cell + i * words, width, factor, a_width, right[j + 1] + i * b_words, b_width)
        cell += q.cells * words
    return bits_of(q, to, rows, width)


cdef void fit_cell(const Query* q, uint64_t* to, int width, const uint64_t* source, int before) noexcept nogil:
    """Copy a cell into one of more limbs, which may be in its place or behind, or of fewer, which hold it."""
    cdef const Component* c
    cdef uint64_t* target
    cdef int i, words, more
    for i in range(q.components - 1, -1, -1):
        c = &q.component[i]
        words = words_in_cell(c, min(width, before))
        more = words_in_cell(c, width) - words
        target = to + place_in_cell(c, width)
        memmove(target, source + place_in_cell(c, before), words * sizeof(uint64_t))
        if more > 0:
            memset(
                target + words, 0xFF if c.kind == SUM_INT and <int64_t> target[words - 1] < 0 else 0,
                more * sizeof(uint64_t),
            )


cdef int64_t bits_of(const Query* q, const uint64_t* cell, uint64_t rows, int width) noexcept nogil:
    """The most bits of a count in some rows that lie one after the other."""
    cdef int64_t bits = 0
    cdef int i
    for i in range(ones(rows) * q.cells):
        bits = max(bits, limbs_bits(cell + i * words_of(q, width), width))
    return bits


cdef void list_rows(
    const Query* q, const uint64_t* cell, uint64_t rows, int width, const uint64_t** row
) noexcept nogil:
    """Where each row of a map begins; a null pointer where it has none."""
    cdef int number
    for number in range(1 + q.cells):
        row[number] = NULL
        if rows >> number & 1:
            row[number] = cell
            cell += q.cells * words_of(q, width)


cdef inline Py_ssize_t size_of(const Query* q, uint64_t rows, int width) noexcept nogil:
    """Words of a map."""
    return <Py_ssize_t> ones(rows) * q.cells * words_of(q, width)


# ------------------------------------------------------------------------------------------------ memory

cdef inline Panes* panes_of(const State* s) noexcept nogil:
    return <Panes*> s.cell


cdef inline uint64_t* words_at(const State* s, int area) noexcept nogil:
    return s.cell + panes_of(s).area[area].place


cdef inline uint64_t* top_of(const State* s, int area) noexcept nogil:
    """The words behind the top of a stack, see `TRAILER`."""
    return words_at(s, area) + panes_of(s).area[area].used - TRAILER


cdef inline void pop(State* s, int area) noexcept nogil:
    panes_of(s).area[area].used -= TRAILER + <Py_ssize_t> top_of(s, area)[4]


cdef inline void end_entry(
    Panes* p, int area, uint64_t* entry, Py_ssize_t words, int64_t last, uint64_t rows, int width, int64_t bits
) noexcept nogil:
    """Write the words behind an entry of a stack, which is its top then."""
    entry += words
    entry[0], entry[1], entry[2], entry[3], entry[4] = last, rows, width, bits, words
    p.area[area].used += words + TRAILER


cdef inline void swap_products(Panes* p) noexcept nogil:
    p.area[PRODUCT], p.area[NEXT] = p.area[NEXT], p.area[PRODUCT]


cdef void clear_panes(Panes* p) noexcept nogil:
    """Forget everything: no window is open any more."""
    p.live = 0
    p.steps = 0
    p.multiplied = False
    p.result_width = 0
    p.waiting = -1
    p.area[FRONT].used = p.area[BACK].used = 0


cdef int make_room(const Query* q, State* s, int area, Py_ssize_t words) noexcept nogil:
    """Let an area have so many words; the state's cells may move. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef Py_ssize_t total = HEAD
    cdef uint64_t* cell
    cdef Panes* new
    cdef int i
    if words <= p.area[area].words:
        return NO_FAILURE
    words += words >> 1
    for i in range(AREAS):
        total += words if i == area else p.area[i].words
    if not claim(q, s, total * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    cell = <uint64_t*> malloc((total + 1) * sizeof(uint64_t))
    if cell == NULL:
        release(q, s, total * sizeof(uint64_t))
        return OUT_OF_MEMORY
    new = <Panes*> cell
    new[0] = p[0]
    total = HEAD
    for i in range(AREAS):
        new.area[i].place = total
        if i == area:
            new.area[i].words = words
        memcpy(
            cell + total, s.cell + p.area[i].place,
            (p.area[i].used if i == FRONT or i == BACK else p.area[i].words) * sizeof(uint64_t),
        )
        total += new.area[i].words
    replace_cells(q, s, cell, total)
    return NO_FAILURE


cdef int pack(const Query* q, State* s) noexcept nogil:
    """Let a state hold panes in place of the cells of each window. Returns a Failure."""
    cdef State plain = s[0]
    cdef const uint64_t* cell
    cdef const uint64_t* before = NULL
    cdef int64_t number
    cdef Py_ssize_t size = q.cells * words_of(q, s.width) * sizeof(uint64_t)
    cdef uint64_t* head
    if not claim(q, s, HEAD * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    head = <uint64_t*> calloc(HEAD + 1, sizeof(uint64_t))
    if head == NULL:
        release(q, s, HEAD * sizeof(uint64_t))
        return OUT_OF_MEMORY
    s.cell, s.words = head, HEAD
    clear_panes(panes_of(s))
    for number in range(s.last, s.first - 1, -1):
        cell = cell_of(q, &plain, cohort_at(s, number), 0)
        if before != NULL and memcmp(cell, before, size) == 0:
            continue
        before = cell
        if push_front(q, s, cell, -1, plain.width, s.until[cohort_at(s, number)]):
            free(s.cell)
            release(q, s, s.words * sizeof(uint64_t))
            s.cell, s.words = plain.cell, plain.words
            return OUT_OF_MEMORY
    free(plain.cell)
    release(q, s, plain.words * sizeof(uint64_t))
    if s.first <= s.last:
        s.until[0] = s.until[cohort_at(s, s.last)]
        s.first = s.last = 0
    s.width, s.bits, s.packed = 1, 0, NUMBER
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ what concerns it

cdef bint extends(const Query* q, const Arrival* a, uint64_t live) noexcept nogil:
    """Whether an event would extend a trend, the empty one included."""
    cdef const Source* source
    cdef int i
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        if source.kind != FROM_CELL or live >> source.place & 1:
            return True
    return False
