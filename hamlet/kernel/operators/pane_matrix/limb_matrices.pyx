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
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from hamlet.kernel.cell_products cimport add_product
from hamlet.kernel.cells cimport add_cell, bit_length, floor_divide, limbs_bits, limbs_nonzero, words_of
from hamlet.kernel.operators.pane_matrix.current_pane cimport end_pane, extends, step, take_burst
from hamlet.kernel.operators.pane_matrix.limb_maps cimport (
    BACK,
    FRONT,
    MOST_ROWS,
    NEXT,
    PRODUCT,
    RESULT,
    TRAILER,
    Panes,
    bits_of,
    clear_panes,
    end_entry,
    fit_cell,
    head_words,
    list_rows,
    make_room,
    multiply,
    panes_of,
    pop,
    size_of,
    swap_products,
    top_of,
    words_at,
)
from hamlet.kernel.operators.scalar.bursts cimport list_member
from hamlet.kernel.operators.scalar.step cimport concerning
from hamlet.kernel.operators.scalar.windows cimport append_sum, close_windows, leave_state, lowest, open_state
from hamlet.kernel.plan cimport COUNT, NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.state.checkpoint cimport write_state
from hamlet.kernel.state.core cimport SCALAR, Core, Graphlet, Member
from hamlet.kernel.state.operator cimport Bytes, Operator, Run, Segment, in_block, number_of, operators
from hamlet.kernel.state.query_state cimport State, cell_of, claim, cohort_at, more_windows, release
from hamlet.kernel.state.scratch cimport reserve_words
from hamlet.kernel.state.timer_heap cimport schedule

NAME = "limb_matrix"
WHAT = "one query by itself, exact, many windows at once: a pane computed once as a matrix of numbers of any size"

MOST_CELLS = 16  # of a query

cdef int NUMBER = number_of(NAME)

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


cdef int pack(const Query* q, State* s) noexcept nogil:
    """Let a state hold panes in place of the cells of each window. Returns a Failure."""
    cdef State plain = s[0]
    cdef const uint64_t* cell
    cdef const uint64_t* before = NULL
    cdef int64_t number
    cdef Py_ssize_t size = q.cells * words_of(q, s.width) * sizeof(uint64_t)
    cdef uint64_t* head
    if not claim(q, s, head_words() * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    head = <uint64_t*> calloc(head_words() + 1, sizeof(uint64_t))
    if head == NULL:
        release(q, s, head_words() * sizeof(uint64_t))
        return OUT_OF_MEMORY
    s.cell, s.words = head, head_words()
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
