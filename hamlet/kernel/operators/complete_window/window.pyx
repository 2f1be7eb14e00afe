"""Whole windows: those of which all events are in one slice, computed at once and event by event.

A tumbling window of few events of one key needs no block and no graphlets, and a decision about sharing would cost more
than the window. What costs time instead are the lanes of queries that cannot have a trend in it. So the classes that
the window has *choose* the lanes: only those of queries which these classes can bring from the start to a final state,
found out once for each set of classes that is met often (``active_queries``).

Contract
--------
**Which windows.** The queries of the kernel are all in bands, of one tumbling window; nothing is kept of the window
from earlier batches, and no later event belongs to it. Bursts are short: for others one step per burst is cheaper.
**Numbers** are plain: 64-bit integers, and doubles without exponents of their own. Where that might not do (the bound
is that of ``blocks``) the window is left to blocks and graphlets, and nothing has been done.
**Rows** go to the row columns of their query (``row_buffer``) where the batch is in the order in which they are asked
for.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from hamlet.kernel.cells cimport bit_length, words_of
from hamlet.kernel.lanes.lanes cimport (
    LANES_LEAST,
    LANES_NUMBER,
    LANES_SUM,
    LANES_WIDEST as WIDEST,
    LIVE_END,
    LIVE_EVENT,
    LIVE_KIND,
    LIVE_LARGE,
    LIVE_PLANES,
    LIVE_SLOTS,
    LIVE_SMALL,
    LIVE_SMALL_RANKS,
    LIVE_SMALL_VALUE,
    Band,
    Input,
    Word,
    aligned,
    can_hold,
    lanes_power,
    plane_form,
    plane_ordinal,
    rank_of,
)
from hamlet.kernel.operators.complete_window.active_queries cimport OF_WINDOWS, choose, free_chosen
from hamlet.kernel.operators.complete_window.row_buffer cimport free_held, hold, make_held
from hamlet.kernel.operators.simd.blocks cimport cell_of_lane
from hamlet.kernel.operators.simd.step cimport load_input
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport MOST_ARRANGED, Event, tied
from hamlet.kernel.state.core cimport (
    ACTIVE_QUERIES,
    COMPLETE_WINDOW,
    DYNAMIC,
    INT32,
    ROW_COLUMNS,
    STATIC,
    ActiveQueries,
    ActiveVector,
    CompleteWindows,
    Core,
    may_use,
    mixed,
    take_own,
    take_own_spare,
)
from hamlet.kernel.state.rows cimport new_row

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef enum:
    LONG = 8             # events of a burst for which a step of its own is not too much
    SETS = 1 << 10       # of classes, as many as are told apart
    PROBES = 8
    WORTH = 64           # windows of a set before its lanes are chosen
    MOST_BYTES = 1 << 24  # of the tables of all sets
    MOST_BITS = 700      # of a count that is a double: times the largest value it is one, too
    TRIED = 256          # windows of a batch after which something is known
    PAUSE = 16           # batches without a try, where most windows could not be taken


# ------------------------------------------------------------------------------------------------ choosing lanes


cdef void prepare_whole(Core* k) noexcept nogil:
    """Find out whether windows can be taken whole, when all classes of a batch are registered.

    Where there is no memory for it, they cannot.
    """
    cdef CompleteWindows* w = &k.whole
    cdef int number, kind, slots = 0
    cdef bint several = False
    if w.classes == k.classes:
        return
    forget_chosen(k)
    w.classes = k.classes
    if not suits(k):
        return
    w.within = k.band[0].within
    w.chosen = <ActiveQueries*> calloc(SETS, sizeof(ActiveQueries))
    w.starting = <uint64_t*> calloc(k.bands, sizeof(uint64_t))
    w.every.kinds = ~(<uint64_t> 0)
    if w.chosen == NULL or w.starting == NULL or not choose(k, &w.every, OF_WINDOWS):
        give_up(k)
        return
    for number in range(k.bands):
        w.starts = w.starts or k.band[number].starts
        for kind in range(k.classes):
            if k.band[number].every[kind].starts or k.band[number].starts:
                w.starting[number] |= <uint64_t> 1 << kind
    for number in range(w.every.chunks):
        several = several or w.every.chunk[number].live.planes > 1
        slots = max(slots, w.every.chunk[number].live.slots)  # lanes of a set of classes may come in other chunks
    w.input = reserved(k, MOST_EVENTS * w.every.loads)
    w.trends = reserved(k, MOST_EVENTS * slots * WIDEST if several else 0)
    w.plane = reserved(k, 2 * LIVE_PLANES * WIDEST)
    if w.input == NULL or w.trends == NULL or w.plane == NULL or not make_held(k):
        give_up(k)
        return
    memset(w.plane, 0, 2 * LIVE_PLANES * WIDEST * sizeof(Word))
    w.fits = True


cdef void give_up(Core* k) noexcept nogil:
    """Leave all windows to blocks."""
    cdef int classes = k.whole.classes
    forget_chosen(k)
    k.whole.classes = classes


cdef Word* reserved(Core* k, Py_ssize_t words) noexcept nogil:
    if not take_own_spare(k, words * sizeof(Word)):
        return NULL
    k.whole.own += words * sizeof(Word)
    return <Word*> aligned((words + 1) * sizeof(Word))


cdef bint suits(const Core* k) noexcept nogil:
    """Whether all queries are in bands of one tumbling window, and nobody asks what is decided for bursts."""
    cdef int query, number
    if k.trace.on or k.paper or not (k.policy == STATIC or k.policy == DYNAMIC) or k.classes > 64 or k.bands == 0:
        return False
    for query in range(k.queries):
        if k.band_of[query] < 0:
            return False
    for number in range(k.bands):
        if k.band[number].within != k.band[number].slide or k.band[number].within != k.band[0].within:
            return False
    return True


cdef ActiveQueries* chosen_for(Core* k, uint64_t kinds) noexcept nogil:
    """The lanes for a window of these classes, or all."""
    cdef CompleteWindows* w = &k.whole
    cdef uint64_t place = mixed(kinds)
    cdef ActiveQueries* chosen
    cdef int i
    for i in range(PROBES if may_use(k, ACTIVE_QUERIES) else 0):
        chosen = &w.chosen[(place + i) % SETS]
        if chosen.kinds == 0:
            chosen.kinds = kinds
        if chosen.kinds != kinds:
            continue
        chosen.met += 1
        if chosen.chunk == NULL and chosen.met >= min(WORTH, k.whole_from) and w.bytes < MOST_BYTES:
            if not choose(k, chosen, OF_WINDOWS):  # there is no memory: no others either
                free_chosen(k, chosen)
                w.bytes = MOST_BYTES
            w.bytes += chosen.bytes
        return &w.every if chosen.chunk == NULL else chosen
    return &w.every


cdef bint tries_whole(Core* k) noexcept nogil:
    """Whether windows of a batch are to be taken whole; what the batch before has shown counts."""
    cdef CompleteWindows* w = &k.whole
    if not w.fits:
        return False
    if w.pause == 0 and w.tried > TRIED and 2 * w.taken < w.tried:
        w.pause = PAUSE
    w.tried = w.taken = 0
    if w.pause:
        w.pause -= 1
        return False
    return True


cdef void forget_chosen(Core* k) noexcept nogil:
    """Free all that is known of whole windows."""
    cdef CompleteWindows* w = &k.whole
    cdef int i
    if w.chosen != NULL:
        for i in range(SETS):
            free_chosen(k, &w.chosen[i])
    free_chosen(k, &w.every)
    free(w.chosen)
    free(w.starting)
    free(w.input)
    free(w.trends)
    free_held(k)
    free(w.plane)
    take_own(k, -w.own)
    memset(w, 0, sizeof(CompleteWindows))


# ------------------------------------------------------------------------------------------------ windows


cdef int take_window(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders, int64_t window, bint* done
) noexcept nogil:
    """All events of one key in one window, if they can be taken at once: its rows follow. Returns a Failure."""
    cdef CompleteWindows* w = &k.whole
    cdef uint64_t kinds = 0
    cdef ActiveQueries* chosen
    cdef int32_t kind[MOST_EVENTS]
    cdef uint8_t ends[MOST_EVENTS]
    cdef Steps steps
    cdef const Word* times = NULL
    cdef Py_ssize_t i, runs = 1, takes = n
    cdef int number
    cdef int64_t bits
    cdef double weight
    cdef Py_ssize_t ties = 0
    cdef bint near, merges, alike, tie
    done[0] = False
    if n > MOST_EVENTS:
        return NO_FAILURE
    for i in range(n):
        kind[i] = LIVE_EVENT(event[i].kind, i)
        kinds |= <uint64_t> 1 << event[i].kind
        ends[i] = LIVE_END
        if i:
            alike, tie = event[i].kind == event[i - 1].kind, tied(&event[i], orders)
            ends[i - 1] = 0 if tie else LIVE_END
            runs += not alike
            ties += tie
            takes -= tie and alike
    merges = not k.band[0].exact and MANY_TIES * ties > n
    if (takes if merges else n) > LONG * runs or (k.states and not is_closed(k, key, window)):
        return NO_FAILURE
    chosen = chosen_for(k, kinds)
    bits = bits_of_counts(k, chosen, kind, n)
    weight = load_window(k, chosen, event, n, w.input, &near)
    if not has_room(k, bits, weight):
        return NO_FAILURE
    done[0] = True
    w.taken += 1
    k.whole_windows += 1
    k.work[COMPLETE_WINDOW].events += n
    k.reached[ACTIVE_QUERIES] += chosen != &w.every
    k.reached[ROW_COLUMNS] += w.ordered and may_use(k, ROW_COLUMNS)
    for number in range(k.bands):
        if kinds & w.starting[number]:
            k.windows += k.band[number].queries
            k.work[COMPLETE_WINDOW].windows += k.band[number].queries
    if merges:
        merge_steps(chosen, event, n, orders, True, w.input, &steps)
        n, times = steps.count, steps.times
        for i in range(n):
            kind[i] = LIVE_EVENT(steps.kind[i], i)
            ends[i] = LIVE_END if i + 1 == n or steps.step[i + 1] != steps.step[i] else 0
    return compute(
        k, chosen, kind, ends if ties else NULL, times, n, size_of_numbers(k, bits, weight, near), key, window
    )


cdef inline bint is_closed(const Core* k, int64_t key, int64_t window) noexcept nogil:
    """Whether neither blocks nor states know of a window."""
    cdef int number
    for number in range(k.bands):
        if not is_free(&k.band[number], key, window):
            return False
    return True


cdef inline bint is_free(const Band* band, int64_t key, int64_t window) noexcept nogil:
    """Whether neither a block nor states know of a window."""
    if band.key_slot[key].until != INT64_MIN and band.key_slot[key].until > window * band.slide:
        return False
    return band.key_slot[key].block == NULL or band.key_slot[key].block.last < window


cdef inline int64_t bits_of_counts(
    const Core* k, const ActiveQueries* chosen, const int32_t* kind, Py_ssize_t n
) noexcept nogil:
    """Counts of a window are below 2 to the power of it."""
    cdef int64_t bits = LIVE_SLOTS if k.whole.starts else 0
    cdef Py_ssize_t i
    for i in range(n):
        bits += bit_length(chosen.most[LIVE_KIND(kind[i])])
    return bits


cdef inline bint has_room(const Core* k, int64_t bits, double weight) noexcept nogil:
    """Whether no number passes what a plane can hold; `bits` of counts, `weight` as `load_window` gives it."""
    if not k.band[0].exact:
        return weight >= 0 and bits <= MOST_BITS
    return weight >= 0 and can_hold(&k.band[0], bits, weight)


cdef inline int size_of_numbers(const Core* k, int64_t bits, double weight, bint near) noexcept nogil:
    """What holds of the numbers of a window (`active_queries.h`); as `has_room` and `load_window` have it."""
    if not k.band[0].exact or bits > 31 or weight >= lanes_power(31 - bits) or not may_use(k, INT32):
        return LIVE_LARGE
    return LIVE_SMALL_RANKS if near else LIVE_SMALL


cdef double load_window(
    Core* k, const ActiveQueries* chosen, const Event* event, Py_ssize_t n, Word* x, bint* near
) noexcept nogil:
    """The inputs of all events into `x`, [n][loads]; the sum of their magnitudes, -1 where some is out of range.

    `near` is set to whether all extrema are integers near 0.
    """
    cdef const Input* input
    cdef Py_ssize_t i, stride = chosen.loads
    cdef int number
    cdef double weight = 0, size
    near[0] = True
    for number in range(chosen.loads):
        input = &chosen.load[number]
        if input.of < LANES_SUM and (input.column < 0 or k.columns[input.column].valid == NULL):
            for i in range(n):
                if input.floating:
                    x[i * stride].d = 1.0
                else:
                    x[i * stride].i = 1
            weight += n
            near[0] = near[0] and input.of == LANES_NUMBER
        elif input.column < MOST_ARRANGED and k.arranged[input.column] != NULL:
            weight += load_integers(input, k.arranged[input.column] + (event - k.events), n, x, stride, near)
        else:
            near[0] = near[0] and (input.of == LANES_NUMBER or input.of == LANES_SUM)
            for i in range(n):
                if not load_input(k, input, event[i].row, x + i * stride, &size):
                    return -1
                weight += size
        x += 1
    return weight


cdef inline double load_integers(
    const Input* input, const int64_t* value, Py_ssize_t n, Word* x, Py_ssize_t stride, bint* near
) noexcept nogil:
    """An input of all events, from integers one after the other; a bound of the sum of magnitudes.

    `near` is cleared where they are extrema that are not near 0.
    """
    cdef int64_t bits = 0  # set in some value, or in its complement where it is negative
    cdef Py_ssize_t i
    if input.of == LANES_SUM:
        for i in range(n):
            bits |= value[i] ^ value[i] >> 63
            if input.floating:
                x[i * stride].d = <double> value[i]
            else:
                x[i * stride].i = value[i]
        return n * lanes_power(bit_length(bits))
    for i in range(n):
        bits |= value[i] ^ value[i] >> 63
        if not rank_of(value[i], False, input.of == LANES_LEAST, x + i * stride):
            return -INFINITY
    near[0] = near[0] and bits < LIVE_SMALL_VALUE - 1
    return 0


cdef void merge_steps(
    const ActiveQueries* chosen, const Event* event, Py_ssize_t n, const int64_t* orders, bint merges, Word* x,
    Steps* steps
) noexcept nogil:
    """List events: if it `merges`, those of one class and step as one. What they bring to sums are doubles."""
    cdef Py_ssize_t i, j, stride = chosen.loads
    cdef int32_t step = 0
    cdef int32_t latest[64]             # of each class, the step that it last had an event in
    cdef int32_t listed[64]             # and where that stands
    cdef int32_t place[MOST_EVENTS]     # of each event
    cdef int64_t joins[MOST_EVENTS]     # whether another one stands there, a mask: a branch is often wrong
    cdef double size[MOST_EVENTS]
    cdef int number, kind
    cdef bint same
    memset(latest, -1, sizeof(latest))
    steps.kinds = steps.count = 0
    for i in range(n):
        step += i > 0 and not tied(&event[i], orders)
        kind = event[i].kind
        same = merges and latest[kind] == step
        j = listed[kind] if same else steps.count
        latest[kind], listed[kind] = step, <int32_t> j
        place[i], joins[i], size[i] = <int32_t> j, -<int64_t> same, 0
        steps.kind[j], steps.step[j] = kind, step
        steps.kinds |= <uint64_t> 1 << kind
        steps.times[j].d = steps.times[j].d + 1 if same else 1
        steps.count += not same
    for number in range(chosen.loads):
        if chosen.load[number].floating:
            for i in range(n):
                size[i] = max(size[i], fabs(x[number + i * stride].d))
        if steps.count < n:
            join_inputs(&chosen.load[number], n, place, joins, x + number, stride)
    for i in range(n):
        j = place[i]
        steps.weight[j] = steps.weight[j] + size[i] if joins[i] else size[i]


cdef inline void join_inputs(
    const Input* input, Py_ssize_t n, const int32_t* place, const int64_t* joins, Word* x, Py_ssize_t stride
) noexcept nogil:
    """Let an input of n events be that of what these are listed as."""
    cdef Py_ssize_t i
    cdef Word* to
    cdef Word had
    if input.of == LANES_NUMBER or input.of == LANES_SUM:
        for i in range(n):
            to = x + place[i] * stride
            had.i = to.i & joins[i]
            to.d = had.d + x[i * stride].d
    else:  # flags, and ranks without a sign
        for i in range(n):
            to = x + place[i] * stride
            to.i = <int64_t> max(<uint64_t> (to.i & joins[i]), <uint64_t> x[i * stride].i)


cdef int compute(
    Core* k, ActiveQueries* chosen, const int32_t* kind, const uint8_t* ends, const Word* times, Py_ssize_t n,
    int small, int64_t key, int64_t window,
) noexcept nogil:
    """Take the events of a window; its rows are held, or appended where they are in no order. Returns a Failure."""
    cdef CompleteWindows* w = &k.whole
    cdef const ActiveVector* chunk
    cdef Word* result = hold(k, chosen, key, window) if w.ordered else w.held.word
    cdef uint64_t some
    cdef int number, failure
    if result == NULL:
        return OUT_OF_MEMORY
    for number in range(chosen.chunks):
        chunk = &chosen.chunk[number]
        if chunk.feature >= 0:
            k.reached[chunk.feature] += 1
        if chunk.halves:
            k.reached[INT32] += small != LIVE_LARGE and chunk.live.shape >= 0
        some = chunk.machine.window(
            &chunk.live, kind, ends, times, n, w.input, chosen.loads, small, w.trends, result + chunk.place, NULL, False
        )
        if w.ordered:
            some &= chunk.unlisted
        if some:
            failure = append_lanes(k, chunk, some, result + chunk.place, key, window)
            if failure:
                return failure
    return NO_FAILURE


cdef int append_lanes(
    Core* k, const ActiveVector* chunk, uint64_t some, const Word* result, int64_t key, int64_t window
) noexcept nogil:
    """Rows of some lanes of a chunk, in no order. Returns a Failure."""
    cdef int64_t counts = 0  # all of them, bit by bit
    cdef int lane
    while some:
        lane = ctzll(some)
        some &= some - 1
        counts |= result[lane].i
        if append_lane(k, chunk, lane, result, key, window):
            return OUT_OF_MEMORY
    if k.band[0].exact:
        k.most_bits = max(k.most_bits, bit_length(counts))
    return NO_FAILURE


cdef int append_lane(
    Core* k, const ActiveVector* chunk, int lane, const Word* result, int64_t key, int64_t window
) noexcept nogil:
    """A row that is in no order. Returns a Failure."""
    cdef int query = chunk.query[lane], i, plane, number, width
    cdef const Band* band = &k.band[k.band_of[query]]
    cdef uint64_t* row = new_row(k, &k.rows[query], key, window, 1, words_of(&k.query[query], 1))
    if row == NULL:
        return OUT_OF_MEMORY
    width = band.shape.width
    for i in range(k.query[query].components):
        plane = band.place[k.lane_of[query] * band.places + i]
        number = chunk.before[plane_form(band, plane)] + plane_ordinal(band, plane)
        k.whole.plane[plane * width] = result[number * chunk.machine.width + lane]
        # the numbers are plain; where an exponent lies, a band of other planes may have had a number before
        k.whole.plane[(band.shape.planes + plane) * width].i = 0
    cell_of_lane(band, k.lane_of[query], k.whole.plane, row)
    return NO_FAILURE
