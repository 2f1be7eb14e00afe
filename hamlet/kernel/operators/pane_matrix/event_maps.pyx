"""Maps of events: what some events of a pane make of all windows that are open, found in registers and done at once.

Events are taken as many at a time as leave numbers within a word. What these make of a window's cells S is one linear
map, S' = F + sum over the slots j of S_j B_j (see ``panes``): F is what begins with them, B_j what becomes of
one trend in slot j. F and the B_j are *live lanes* (``active_queries.h``): every query once, and once more from each of
its cells on that events read or empty; the other B_j change nothing. So no program is read, and no event touches what a
window holds; however large its numbers are, and however many windows overlap, a window is read and written once for
some forty events. Products of limbs and words are in ``limbs.h``, those of scaled doubles in ``panes``.

Contract
--------
**Which events.** The queries of the kernel are all in bands of the same windows; bursts are short, for others one step
per burst is cheaper; and exact numbers leave 64 bits, for else ``simd`` adds words.
**Numbers** of a map are plain: integers below 2^LIMB_MAP_BITS, or doubles below 2^LANES_PLAIN_BITS without exponents.
The bound is that of ``blocks``. A value that does not fit ends what is taken.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport bit_length
from hamlet.kernel.core cimport EVENT_MAPS, PANE_MATRIX, RANDOM, Core, LiveLanes, Maps, take_own, take_own_spare
from hamlet.kernel.operators.complete_window.active_queries cimport choose, free_chosen
from hamlet.kernel.operators.complete_window.window cimport load_window
from hamlet.kernel.operators.pane_matrix.panes cimport end_map, leave_plain, list_cohorts
from hamlet.kernel.operators.simd.blocks cimport in_lanes, measure, reach
from hamlet.kernel.operators.simd.lanes cimport (
    LANES_PLAIN_BITS,
    LANES_WIDEST as WIDEST,
    LIMB_MAP_BITS,
    LIMB_MAPS,
    LIVE_EVENT,
    LIVE_LARGE,
    LIVE_PLANES,
    LIVE_SLOTS,
    LONG_BURST,
    Band,
    Block,
    Word,
    aligned,
    lanes_bits,
    lanes_fold_words,
    note_turn,
    plane_form,
    plane_ordinal,
)
from hamlet.kernel.operators.simd.limbs cimport fold_limbs, reserve_sums
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport tied

cdef enum:
    MOST_EVENTS = 256  # that are mapped at once


# ------------------------------------------------------------------------------------------------ tables

cdef void prepare_maps(Core* k) noexcept nogil:
    """Find out whether events can be mapped, when all classes of a batch are registered.

    Where there is no memory for it, they cannot.
    """
    cdef Maps* m = &k.maps
    cdef int number, kind, slots = 0
    if m.classes == k.classes:
        return
    forget_maps(k)
    m.classes = k.classes
    if not suits(k):
        return
    m.within, m.slide = k.band[0].within, k.band[0].slide
    m.every.kinds = ~(<uint64_t> 0)
    m.starting = <uint64_t*> calloc(k.bands, sizeof(uint64_t))
    m.block = <Block**> calloc(k.bands, sizeof(Block*))
    m.map = <Word**> calloc(k.bands, sizeof(Word*))
    m.fits = m.starting != NULL and m.block != NULL and m.map != NULL and choose(k, &m.every, True)
    if not m.fits:
        give_up(k)
        return
    for number in range(m.every.chunks):
        slots = max(slots, m.every.chunk[number].live.slots)
    m.input = reserved(k, MOST_EVENTS * m.every.loads)
    m.trends = reserved(k, MOST_EVENTS * slots * WIDEST)
    m.cells = reserved(k, LIVE_PLANES * (1 + LIVE_SLOTS) * WIDEST)
    m.fits = m.input != NULL and m.trends != NULL and m.cells != NULL
    m.fits = m.fits and begin_maps(k)
    for number in range(k.bands):
        for kind in range(k.classes):
            if k.band[number].every[kind].starts or k.band[number].starts:
                m.starting[number] |= <uint64_t> 1 << kind
    for number in range(m.every.chunks):
        m.fits = m.fits and list_moves(k, &m.every.chunk[number])
    if not m.fits:
        give_up(k)


cdef void give_up(Core* k) noexcept nogil:
    """Leave all events to steps."""
    cdef int classes = k.maps.classes
    forget_maps(k)
    k.maps.classes = classes


cdef void forget_maps(Core* k) noexcept nogil:
    """Free all that is known of maps."""
    cdef Maps* m = &k.maps
    cdef bint tries = m.tries
    if m.map != NULL:
        free(m.map[0])
    free_chosen(k, &m.every)
    free(m.starting)
    free(m.block)
    free(m.map)
    free(m.input)
    free(m.trends)
    free(m.cells)
    take_own(k, -m.own)
    memset(m, 0, sizeof(Maps))
    m.tries = tries


cdef Word* reserved(Core* k, Py_ssize_t words) noexcept nogil:
    if not take_own_spare(k, words * sizeof(Word)):
        return NULL
    k.maps.own += words * sizeof(Word)
    return <Word*> aligned((words + 1) * sizeof(Word))


cdef bint suits(const Core* k) noexcept nogil:
    """Whether all queries are in bands of the same windows, and nobody asks what is decided for bursts."""
    cdef const Band* band
    cdef int query, number
    if k.trace.on or k.paper or k.policy == RANDOM or k.classes > 64 or k.bands == 0:
        return False
    for query in range(k.queries):
        if k.band_of[query] < 0:
            return False
    for number in range(k.bands):
        band = &k.band[number]
        if band.within != k.band[0].within or band.slide != k.band[0].slide or band.exact and not band.widens:
            return False
    return True


cdef inline Py_ssize_t map_words(const Band* band) noexcept nogil:
    """Words of the map of a band, so many that the next one is aligned for vectors of any width."""
    cdef Py_ssize_t words = (1 + band.shape.slots) * band.words
    return words + (WIDEST - words % WIDEST) % WIDEST


cdef bint begin_maps(Core* k) noexcept nogil:
    """Maps that change nothing, one behind the other; False without memory."""
    cdef const Band* band
    cdef Word* map
    cdef Word* column
    cdef Py_ssize_t words = 0, copies = LIMB_MAPS if k.band[0].exact else 1, i
    cdef int number, slot, chunk, lane, width
    for number in range(k.bands):
        words += map_words(&k.band[number])
    map = k.maps.map[0] = reserved(k, copies * words)
    if map == NULL:
        return False
    memset(map, 0, words * sizeof(Word))
    k.maps.words = words
    for number in range(k.bands):
        band = &k.band[number]
        k.maps.map[number] = map
        map += map_words(band)
        width = band.shape.width
        for slot in range(band.shape.slots):
            column = k.maps.map[number] + (1 + slot) * band.words
            for chunk in range(band.shape.chunks):
                for lane in range(width):
                    if band.exact:
                        column[(chunk * band.shape.slots + slot) * band.shape.vectors * width + lane].i = 1
                    else:
                        column[(chunk * band.shape.slots + slot) * band.shape.vectors * width + lane].d = 1
    for i in range(1, copies):
        memcpy(k.maps.map[0] + i * words, k.maps.map[0], words * sizeof(Word))
    return True


cdef bint list_moves(Core* k, LiveLanes* chunk) noexcept nogil:
    """Where in the maps the cells of a chunk of live lanes belong; False without memory."""
    cdef const Band* band
    cdef Py_ssize_t size = 2 * LIVE_PLANES * LIVE_SLOTS * WIDEST * sizeof(int), place
    cdef int lane, at, slot, plane, i, number, width = chunk.machine.width
    cdef int* move
    if not take_own_spare(k, size):
        return False
    k.maps.own += size
    chunk.move = move = <int*> malloc(size)
    if move == NULL:
        return False
    for lane in range(chunk.lanes):
        band = &k.band[k.band_of[chunk.query[lane]]]
        at = k.lane_of[chunk.query[lane]]
        for slot in range(chunk.cells[lane]):
            if chunk.at[lane][slot] < 0:
                continue
            place = k.maps.map[k.band_of[chunk.query[lane]]] - k.maps.map[0]
            place += (1 + chunk.column[lane]) * band.words + at % band.shape.width + (
                (at // band.shape.width * band.shape.slots + slot) * band.shape.vectors * band.shape.width
            )
            for i in range(k.query[chunk.query[lane]].components):
                plane = band.place[at * band.places + i]
                number = chunk.before[plane_form(band, plane)] + plane_ordinal(band, plane)
                move[0] = (number * chunk.live.slots + chunk.at[lane][slot]) * width + lane
                move[1] = place + plane * band.shape.width
                move += 2
                chunk.moves += 1
    return True


# ------------------------------------------------------------------------------------------------ events

cdef int take_events(
    Core* k, int64_t key, const Event* event, const int64_t* orders, Py_ssize_t* events
) noexcept nogil:
    """Let events of one key and pane take effect, as many as can be mapped; `events` becomes their number."""
    cdef Py_ssize_t i, n = events[0], runs = 1, count
    cdef uint64_t kinds = <uint64_t> 1 << event.kind
    cdef Py_ssize_t taken = 0
    cdef bint empty = True
    cdef int number, failure = NO_FAILURE, maps = 0
    events[0] = 0
    for i in range(1, n):
        kinds |= <uint64_t> 1 << event[i].kind
        runs += event[i].kind != event[i - 1].kind
    if n >= LONG_BURST * runs:
        return NO_FAILURE
    for number in range(k.bands):
        if not in_lanes(k, &k.band[number], key, event.time, &failure):
            return failure
    if not finds_blocks(k, key, event, n, kinds, &empty, &failure):
        return failure
    for number in range(k.bands):
        note_turn(&k.band[number], runs, n)
    while events[0] < n and failure == NO_FAILURE:
        count = map_events(k, event + events[0], n - events[0], orders, empty, maps)
        if count:
            maps += 1
            events[0] += count
            taken += count
            empty = False
        if maps and (count == 0 or events[0] == n or maps == (LIMB_MAPS if k.band[0].exact else 1)):
            failure = fold_all(k, taken, maps)
            taken = maps = 0
        if count == 0:
            break
    return failure


cdef bint finds_blocks(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, uint64_t kinds, bint* empty, int* failure
) noexcept nogil:
    """Find the blocks that events of some classes change; whether it is worth mapping these.

    `empty` becomes whether none of them has a trend.
    """
    cdef Maps* m = &k.maps
    cdef Band* band
    cdef Block* block
    cdef Py_ssize_t i
    cdef int number
    cdef int64_t bits = 0
    cdef bint worth = False
    for i in range(n):
        bits += bit_length(m.every.most[event[i].kind])
    for number in range(k.bands):
        band = &k.band[number]
        m.block[number] = NULL
        if band.key_slot[key].block == NULL and not kinds & m.starting[number]:
            continue
        failure[0] = reach(k, number, key, event.time, &m.block[number])
        block = m.block[number]
        if failure[0]:
            return False
        if block == NULL:
            continue
        empty[0] = empty[0] and block.bits == 0 and band.starts == 0
        if not band.exact or block.limbs:  # doubles of one window are stepped as fast
            worth = worth or band.exact or band.windows > 1
        elif block.bits + bits > band.most_bits:
            measure(band, block)
            worth = worth or block.bits + bits > band.most_bits
    return worth


cdef Py_ssize_t map_events(
    Core* k, const Event* event, Py_ssize_t n, const int64_t* orders, bint empty, int place
) noexcept nogil:
    """Write the map of a place: of the first of some events, as many as it can hold; returns how many.

    Where windows are `empty` only what begins is written.
    """
    cdef Maps* m = &k.maps
    cdef LiveLanes* chunk
    cdef int32_t kind[MOST_EVENTS]
    cdef int32_t step[MOST_EVENTS]
    cdef int32_t taken[MOST_EVENTS]
    cdef uint8_t ends[MOST_EVENTS]
    cdef uint64_t kinds = 0, before = 0
    cdef Py_ssize_t takes = 0
    cdef int limit = LIMB_MAP_BITS if k.band[0].exact else LANES_PLAIN_BITS, number
    cdef int64_t value_bits
    cdef Py_ssize_t count = min(n, MOST_EVENTS)
    cdef double weight
    cdef bint near, tie = False
    while True:
        count = count_within(k, event, count, n, orders, limit - m.value_bits, kind, step, &kinds)
        if count == 0:
            return 0
        weight = load_window(k, &m.every, event, count, m.input, &near)
        if weight < 0:
            return 0
        weight = max(weight, size_of_doubles(k, count))
        value_bits = lanes_bits(weight)
        if value_bits <= m.value_bits:
            break
        m.value_bits = value_bits
        if limit <= value_bits:
            m.value_bits = 0
            return 0
    m.value_bits = max(value_bits, m.value_bits - 1)
    for number in range(m.every.fronts if empty else m.every.chunks):
        chunk = &m.every.chunk[number]
        if chunk.feature >= 0:
            k.reached[chunk.feature] += 1
        if takes == 0 or chunk.live.kinds & kinds != before:
            before = chunk.live.kinds & kinds
            takes = choose_events(kind, step, count, before, taken, ends, &tie)
        chunk.machine.window(
            &chunk.live, taken, ends if tie else NULL, takes, m.input, m.every.loads, LIVE_LARGE, m.trends,
            m.cells + LIVE_PLANES * LIVE_SLOTS * WIDEST, m.cells,
        )
        write_cells(k, chunk, m.map[0] + place * m.words)
    return count


cdef inline void write_cells(Core* k, const LiveLanes* chunk, Word* map) noexcept nogil:
    """Put the cells of a chunk where they belong in the maps of all bands."""
    cdef const Word* cells = k.maps.cells
    cdef const int* move = chunk.move
    cdef int i
    for i in range(chunk.moves):
        map[move[2 * i + 1]] = cells[move[2 * i]]


cdef inline Py_ssize_t count_within(
    const Core* k, const Event* event, Py_ssize_t most, Py_ssize_t n, const int64_t* orders, int64_t bits,
    int32_t* kind, int32_t* step, uint64_t* kinds
) noexcept nogil:
    """The first of n events that bring counts to so many bits, all those of a time; their classes, and their steps."""
    cdef Py_ssize_t i, count = 0
    cdef int32_t steps = 0
    kinds[0] = 0
    for i in range(most):
        bits -= bit_length(k.maps.every.most[event[i].kind])
        if bits < 0:
            break
        kind[i] = event[i].kind
        step[i] = steps
        if i + 1 == n or not tied(&event[i + 1], orders):
            steps += 1
            count = i + 1
    for i in range(count):
        kinds[0] |= <uint64_t> 1 << kind[i]
    return count


cdef inline Py_ssize_t choose_events(
    const int32_t* kind, const int32_t* step, Py_ssize_t n, uint64_t kinds, int32_t* taken, uint8_t* ends, bint* tie
) noexcept nogil:
    """The events of some classes, as loops take them, and where their steps end; returns how many there are."""
    cdef Py_ssize_t i, takes = 0
    cdef int32_t before = -1
    cdef int ties = 0
    cdef bint takes_it, same
    for i in range(n):  # nearly without a branch
        takes_it = kinds >> kind[i] & 1
        taken[takes] = LIVE_EVENT(kind[i], i)
        ends[takes] = True
        same = takes_it and step[i] == before
        ends[takes - (takes > 0)] = not same
        ties += same
        before = step[i] if takes_it else before
        takes += takes_it
    tie[0] = ties > 0
    return takes


cdef inline double size_of_doubles(const Core* k, Py_ssize_t n) noexcept nogil:
    """The largest sum of magnitudes of an input that is a double, where counts are doubles, too."""
    cdef const Maps* m = &k.maps
    cdef const Word* x
    cdef double size, most = 0
    cdef Py_ssize_t i
    cdef int number
    for number in range(m.every.loads if not k.band[0].exact else 0):
        if m.every.load[number].floating:
            size = 0
            x = m.input + number
            for i in range(n):
                size += fabs(x[i * m.every.loads].d)
            most = max(most, size)
    return most


cdef int fold_all(Core* k, Py_ssize_t events, int maps) noexcept nogil:
    """Do what so many maps, of as many events, say to the windows of each band. Returns a Failure."""
    cdef Maps* m = &k.maps
    cdef Band* band
    cdef Block* block
    cdef int number, failure
    k.step += events
    k.reached[EVENT_MAPS] += 1
    for number in range(k.bands):
        band, block = &k.band[number], m.block[number]
        if block == NULL:
            continue
        k.work[PANE_MATRIX].events += events
        band.alive_in = NULL
        if band.exact:
            failure = fold_limbs(k, band, block, m.map[number], maps, m.words)
        else:
            failure = fold_doubles(k, band, block, m.map[number])
        if failure:
            return failure
    return NO_FAILURE


cdef int fold_doubles(Core* k, Band* band, Block* block, const Word* map) noexcept nogil:
    """Let a plain map be done to all windows. Returns a Failure."""
    if reserve_sums(k, band, lanes_fold_words(&band.shape)):
        return OUT_OF_MEMORY
    end_map(band, block)
    leave_plain(band, block)
    list_cohorts(band, block, block.oldest, block.newest, band.cells)
    band.machine.fold(&band.shape, band.cells, <int> (block.newest + 1 - block.oldest), map, True, band.sums)
    block.bits = 1
    return NO_FAILURE
