"""Whole windows: those of which all events are in one slice, computed at once and event by event.

A tumbling window of few events of one key needs no block and no graphlets, and a decision about sharing would cost more
than the window. What costs time instead are the lanes of queries that cannot have a trend in it. So the classes that
the window has *choose* the lanes: bands are made of only those queries that these classes can bring from the start to a
final state, once for each set of classes that is met often.

Contract
--------
**Which windows.** The queries of the kernel are all in bands, of one tumbling window; nothing is kept of the window
from earlier batches, and no later event belongs to it. Bursts are short: for others one step per burst is cheaper.
**Numbers** are plain: 64-bit integers, and doubles without exponents of their own. Where that might not do (the bound
is that of ``_blocks``) the window is left to blocks and graphlets, and nothing has been done.

Source: DESIGN §2, rung 4 and "lanes over queries"; LIMITS ("only the live queries of a key-window").
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from hamlet._band_step cimport load_input
from hamlet._bands cimport free_band, ints, load_band, write_class
from hamlet._blocks cimport begin_starts, deliver_cells
from hamlet._cells cimport bit_length
from hamlet._kernel cimport DYNAMIC, STATIC, Chosen, Core, Whole, grown, mixed, take_own
from hamlet._lanes cimport (
    LANES_LEAST,
    LANES_SUM,
    Band,
    Input,
    LaneProgram,
    Word,
    aligned,
    can_hold,
    rank_of,
)
from hamlet._order cimport MOST_ARRANGED, Event, tied
from hamlet._tables cimport FROM_CELL, NO_FAILURE, OUT_OF_MEMORY, RAISED, Arrival, Query, Source

cdef enum:
    MOST_EVENTS = 256    # of a window
    MOST_TIED = 8        # of one time
    LONG = 8             # events of a burst for which a step of its own is not too much
    SETS = 1 << 10       # of classes, as many as are told apart
    PROBES = 8
    WORTH = 64           # windows of a set before its lanes are chosen
    MOST_BITS = 700      # of a count that is a double: times the largest value it is one, too
    TRIED = 256          # windows of a batch after which something is known
    PAUSE = 16           # batches without a try, where most windows could not be taken


# ------------------------------------------------------------------------------------------------ choosing lanes


cdef void prepare_whole(Core* k, object bands, list held) except *:
    """Find out whether windows can be taken whole; to be called when all classes of a batch are registered.

    Parameters
    ----------
    bands : sequence of hamlet.compiler.bands.Band
        From which those of fewer lanes are made.
    held : list
        Is to own their tables.
    """
    cdef Whole* w = &k.whole
    cdef Band* band
    cdef Py_ssize_t words = 0, inputs = 0, sums = 0
    cdef int number, kind
    if w.classes == k.classes:
        return
    forget_chosen(k)
    del held[:]
    w.classes = k.classes
    w.fits = suits(k)
    if not w.fits:
        return
    w.within = k.band[0].within
    w.bands, w.held = <void*> bands, <void*> held
    w.chosen = <Chosen*> calloc(SETS, sizeof(Chosen))
    w.starting = <uint64_t*> calloc(k.bands, sizeof(uint64_t))
    if w.chosen == NULL or w.starting == NULL:
        raise MemoryError
    w.every.kinds = ~(<uint64_t> 0)
    choose(k, &w.every)
    for number in range(k.bands):
        band = &w.every.band[number]
        words = max(words, band.words)
        inputs += band.loads
        for kind in range(k.classes):
            if k.band[number].every[kind].starts or band.starts:
                w.starting[number] |= <uint64_t> 1 << kind
            if band.queries:
                sums = max(sums, <Py_ssize_t> band.every[kind].groups * band.shape.vectors * band.shape.width)
    w.cell = <Word*> reserved(k, words)
    w.sums = <Word*> reserved(k, MOST_TIED * sums)
    w.input = <Word*> reserved(k, MOST_EVENTS * inputs)


cdef void* reserved(Core* k, Py_ssize_t words) except NULL:
    cdef void* found = NULL
    if take_own(k, words * sizeof(Word)):
        k.whole.own += words * sizeof(Word)
        found = aligned((words + 1) * sizeof(Word))
    if found == NULL:
        raise MemoryError
    return found


cdef bint suits(const Core* k) noexcept:
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


cdef void choose(Core* k, Chosen* chosen) except *:
    """Make the bands of the lanes in which events of these classes can make trends."""
    cdef Band* found = <Band*> calloc(k.bands, sizeof(Band))
    cdef int number, kind, lane
    if found == NULL:
        raise MemoryError
    chosen.band = found  # from here on `forget_chosen` frees it
    for number in range(k.bands):
        lanes = [lane for lane in range(k.band[number].queries) if completes(k, k.band[number].query[lane], chosen)]
        if not lanes:
            continue
        held = {"masks": {}}
        (<list> k.whole.held).append(held)
        load_band(k, &found[number], (<object> k.whole.bands)[number].chosen(lanes), held)
        found[number].every = <LaneProgram*> grown(NULL, k.classes * sizeof(LaneProgram))
        memset(found[number].every, 0, k.classes * sizeof(LaneProgram))
        inputs = {}
        for kind in range(k.classes):
            if chosen.kinds >> kind & 1:
                write_class(k, &found[number], kind, True, held, inputs)
        found[number].load = <Input*> ints(held, "loads", [each for given in inputs for each in given])
        found[number].loads = len(inputs)


cdef bint completes(const Core* k, int query, const Chosen* chosen) except -1:
    """Whether events of the classes, in some order, can bring a query from the start to a final state."""
    cdef const Query* q = &k.query[query]
    cdef const Arrival* a
    cdef int kind, i, j, source
    cdef set reached = set()
    cdef Py_ssize_t before = -1
    while len(reached) > before:
        before = len(reached)
        for kind in range(k.classes):
            if not chosen.kinds >> kind & 1:
                continue
            for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
                if k.entry[i].query != query:
                    continue
                for j in range(k.entry[i].arrivals, k.entry[i].arrivals_end):
                    a = &q.arrival[k.class_member[j]]
                    for source in range(a.sources, a.sources_end):
                        if stands(&q.source[source], reached):
                            reached.update([q.member[cell] for cell in range(a.cells, a.cells_end)])
    return any([stands(&q.source[source], reached) for source in range(q.finals, q.finals_end)])


cdef inline bint stands(const Source* source, set reached) except -1:
    return source.kind != FROM_CELL or source.place in reached


cdef int chosen_for(Core* k, uint64_t kinds, Band** bands) noexcept nogil:
    """The bands for a window of these classes. Returns a Failure."""
    cdef Whole* w = &k.whole
    cdef uint64_t place = mixed(kinds)
    cdef Chosen* chosen
    cdef int i, failure
    bands[0] = w.every.band
    for i in range(PROBES):
        chosen = &w.chosen[(place + i) % SETS]
        if chosen.kinds == 0:
            chosen.kinds = kinds
        if chosen.kinds == kinds:
            chosen.met += 1
            if chosen.band == NULL and chosen.met >= min(WORTH, k.whole_from):
                failure = choose_now(k, chosen)
                if failure:
                    return failure
            if chosen.band != NULL:
                bands[0] = chosen.band
            return NO_FAILURE
    return NO_FAILURE


cdef int choose_now(Core* k, Chosen* chosen) noexcept with gil:
    """`choose`, from a loop that does not hold the interpreter. Returns a Failure."""
    try:
        choose(k, chosen)
    except BaseException as error:  # an interrupt, too
        (<list> k.whole.held).append(error)
        return RAISED
    return NO_FAILURE


cdef bint tries_whole(Core* k) noexcept nogil:
    """Whether windows of a batch are to be taken whole; what the batch before has shown counts."""
    cdef Whole* w = &k.whole
    if not w.fits:
        return False
    if w.pause == 0 and w.tried > TRIED and 2 * w.taken < w.tried:
        w.pause = PAUSE
    w.tried = w.taken = 0
    if w.pause:
        w.pause -= 1
        return False
    return True


cdef void forget_chosen(Core* k) noexcept:
    """Free all that is known of whole windows."""
    cdef Whole* w = &k.whole
    cdef int i
    if w.chosen != NULL:
        for i in range(SETS):
            free_chosen(k, &w.chosen[i])
    free_chosen(k, &w.every)
    free(w.chosen)
    free(w.starting)
    free(w.cell)
    free(w.sums)
    free(w.input)
    take_own(k, -w.own)
    memset(w, 0, sizeof(Whole))


cdef void free_chosen(const Core* k, Chosen* chosen) noexcept:
    cdef int number
    if chosen.band != NULL:
        for number in range(k.bands):
            free_band(&chosen.band[number])
        free(chosen.band)


# ------------------------------------------------------------------------------------------------ windows


cdef int take_window(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders, int64_t window, bint* done
) noexcept nogil:
    """All events of one key in one window, if they can be taken at once: its rows follow. Returns a Failure."""
    cdef Whole* w = &k.whole
    cdef uint64_t kinds = 0
    cdef Band* bands
    cdef Band* band
    cdef Word* x = w.input
    cdef int32_t kind[MOST_EVENTS]
    cdef Py_ssize_t i, runs = 0, steps = 0, most_tied = 0
    cdef int number, failure
    done[0] = False
    if n > MOST_EVENTS:
        return NO_FAILURE
    for i in range(n):
        kind[i] = event[i].kind
        kinds |= <uint64_t> 1 << kind[i]
        runs += i == 0 or kind[i] != kind[i - 1]
        steps = steps + 1 if i and tied(&event[i], orders) else 1
        most_tied = max(most_tied, steps)
    if n > LONG * runs or most_tied > MOST_TIED:
        return NO_FAILURE
    for number in range(k.bands):
        if not is_free(&k.band[number], key, window):
            return NO_FAILURE
    failure = chosen_for(k, kinds, &bands)
    if failure:
        return failure
    for number in range(k.bands):
        band = &bands[number]
        if band.queries:
            if not has_room(band, kind, n, load_window(k, band, event, n, x)):
                return NO_FAILURE
            x += n * band.loads
    done[0] = True
    w.taken += 1
    k.whole_windows += 1
    x = w.input
    for number in range(k.bands):
        band = &bands[number]
        if kinds & w.starting[number]:
            k.windows += k.band[number].queries
        if band.queries:
            run_window(k, band, event, kind, n, orders, x)
            if deliver_cells(k, band, w.cell, key, window):
                return OUT_OF_MEMORY
            x += n * band.loads
    return NO_FAILURE


cdef inline bint is_free(const Band* band, int64_t key, int64_t window) noexcept nogil:
    """Whether neither a block nor states know of a window."""
    if band.seat[key].until != INT64_MIN and band.seat[key].until > window * band.slide:
        return False
    return band.seat[key].block == NULL or band.seat[key].block.last < window


cdef bint has_room(const Band* band, const int32_t* kind, Py_ssize_t n, double weight) noexcept nogil:
    """Whether no number passes what a plane can hold; `weight` as `load_window` gives it."""
    cdef int64_t bits = bit_length(band.shape.slots) if band.starts else 0
    cdef Py_ssize_t i
    for i in range(n):
        bits += bit_length(band.every[kind[i]].most)
    if not band.exact:
        return weight >= 0 and bits <= MOST_BITS
    return weight >= 0 and can_hold(band, bits, weight)


cdef double load_window(Core* k, const Band* band, const Event* event, Py_ssize_t n, Word* x) noexcept nogil:
    """The inputs of all events, [n][loads]; the sum of their magnitudes, -1 where some is out of range."""
    cdef const Input* input
    cdef Py_ssize_t i
    cdef int number
    cdef double weight = 0, size
    for number in range(band.loads):
        input = &band.load[number]
        if input.of < LANES_SUM and (input.column < 0 or k.columns[input.column].valid == NULL):
            for i in range(n):
                if input.floating:
                    x[i * band.loads + number].d = 1.0
                else:
                    x[i * band.loads + number].i = 1
            weight += n
        elif k.arranged[min(input.column, MOST_ARRANGED - 1)] != NULL and input.column < MOST_ARRANGED:
            weight += load_integers(
                input, k.arranged[input.column] + (event - k.events), n, x + number, band.loads
            )
        else:
            for i in range(n):
                if not load_input(k, input, event[i].row, x + i * band.loads + number, &size):
                    return -1
                weight += size
    return weight


cdef inline double load_integers(
    const Input* input, const int64_t* value, Py_ssize_t n, Word* x, Py_ssize_t stride
) noexcept nogil:
    """An input of all events, from integers one after the other; the sum of magnitudes."""
    cdef double weight = 0
    cdef Py_ssize_t i
    if input.of == LANES_SUM:
        for i in range(n):
            weight += fabs(<double> value[i])
            if input.floating:
                x[i * stride].d = <double> value[i]
            else:
                x[i * stride].i = value[i]
        return weight
    for i in range(n):
        if not rank_of(value[i], False, input.of == LANES_LEAST, x + i * stride):
            return -INFINITY
    return 0


cdef void run_window(
    Core* k, Band* band, const Event* event, const int32_t* kind, Py_ssize_t n, const int64_t* orders, const Word* x
) noexcept nogil:
    """Make of all events the cells of a window."""
    cdef Word* cells = k.whole.cell
    cdef Py_ssize_t i = 0, j = 0, begun = 0
    memset(cells, 0, band.words * sizeof(Word))
    if band.starts:
        begin_starts(band, cells)
    while i < n:
        j = i + 1
        while j < n and tied(&event[j], orders):
            j += 1
        if j > i + 1 or not band.every[kind[i]].direct:
            run_events(band, cells, kind, begun, i, x)
            run_step(k, band, kind + i, j - i, x + i * band.loads)
            begun = j
        i = j
    run_events(band, cells, kind, begun, n, x)


cdef inline void run_events(
    const Band* band, Word* cells, const int32_t* kind, Py_ssize_t begin, Py_ssize_t end, const Word* x
) noexcept nogil:
    """Events that have their time for themselves."""
    band.machine.follow(
        &band.shape, band.every, kind + begin, end - begin, cells, x + begin * band.loads, band.loads
    )


cdef void run_step(Core* k, const Band* band, const int32_t* kind, Py_ssize_t n, const Word* x) noexcept nogil:
    """Events of one time: all reads, then the guards, then all writes."""
    cdef Word* sums = k.whole.sums
    cdef Py_ssize_t i, size = band.shape.vectors * band.shape.width
    cdef const LaneProgram* program
    for i in range(n):
        program = &band.every[kind[i]]
        band.machine.read(&band.shape, program, k.whole.cell, x + i * band.loads, 1, True, sums)
        sums += program.groups * size
    for i in range(n):
        band.machine.kill(&band.shape, &band.every[kind[i]], k.whole.cell)
    sums = k.whole.sums
    for i in range(n):
        program = &band.every[kind[i]]
        band.machine.write(&band.shape, program, k.whole.cell, sums)
        sums += program.groups * size
