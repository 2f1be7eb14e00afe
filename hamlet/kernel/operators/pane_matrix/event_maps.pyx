"""Maps of events: what some events of a pane make of all windows that are open, found in registers and done at once.

Events are taken as many at a time as leave numbers within a word. What these make of a window's cells S is one linear
map, S' = F + sum over the slots j of S_j B_j (see ``panes``): F is what begins with them, B_j what becomes of
one trend in slot j. F and the B_j are *live lanes* (``active_queries.h``): every query once, and once more from each of
its cells on that events read or empty; the other B_j change nothing. So no program is read, and no event touches what a
window holds; however large its numbers are, and however many windows overlap, a window is read and written once for
some fifty events. Products of limbs and words are in ``limbs.h``, those of scaled doubles in ``panes``.

Where few windows are open and their numbers are plain doubles, no map is needed: the live lanes are all queries then,
begin with what stands in the cells of a window, and leave there what becomes of it.

Exact maps are made chunk by chunk of a band, each of as many events as its own numbers allow: those of queries whose
types are rare grow slowly, and few maps do for them.

Contract
--------
**Which events.** The queries of the kernel are all in bands of the same windows; bursts are short, for others one step
per burst is cheaper.
**Numbers** of a map are plain: doubles below 2^LANES_PLAIN_BITS without exponents, or, where they are exact, doubles
that hold integers below 2^LIMB_MAP_BITS. A value that does not fit ends what is taken.
**Steps.** All events of a step read the same cells, so those of one class are one, of which there are several.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport bit_length
from hamlet.kernel.lanes.lanes cimport (
    LANES_PLAIN_BITS,
    LANES_WIDEST as WIDEST,
    LIMB_MAP_BITS,
    LIMB_MAPS,
    LIVE_END,
    LIVE_EVENT,
    LIVE_LARGE,
    LIVE_PLANES,
    LIVE_SLOTS,
    LONG_BURST,
    Band,
    Block,
    Word,
    aligned,
    bound_raised,
    can_hold,
    lanes_bits,
    lanes_fold_words,
    lanes_power,
    note_turn,
    plane_form,
    plane_ordinal,
)
from hamlet.kernel.operators.complete_window.active_queries cimport OF_CELLS, OF_MAPS, choose, free_chosen
from hamlet.kernel.operators.complete_window.window cimport MANY_TIES, MOST_EVENTS, Steps, load_window, merge_steps
from hamlet.kernel.operators.simd.blocks cimport in_lanes, measure, reach
from hamlet.kernel.operators.simd.limbs cimport fold_limbs, reserve_sums
from hamlet.kernel.operators.simd.panes cimport cells_of, end_map, leave_plain, list_cohorts
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport tied
from hamlet.kernel.state.core cimport (
    EVENT_MAPS,
    PANE_MATRIX,
    PLAIN_DOUBLES,
    RANDOM,
    ActiveQueries,
    ActiveVector,
    Core,
    LaneGroup,
    Maps,
    kind_of,
    take_own,
    take_own_spare,
)

cdef enum:
    FEW_COHORTS = 3    # that cost less than a map, if each of them takes the events
    SAMPLE = 1 << 12   # events of a batch that say which classes are frequent
    FEWEST = 4         # events for which cells are brought into registers

cdef struct Taken:       # those of some classes, as loops take them
    uint64_t kinds
    Py_ssize_t events
    bint tie             # whether a step has several
    bint merged          # whether many have, or several events are one
    int32_t event[MOST_EVENTS]
    uint8_t end[MOST_EVENTS]  # LIVE_END where a step ends, or 0


# ------------------------------------------------------------------------------------------------ tables

cdef void prepare_maps(Core* k, const int32_t* rows, Py_ssize_t n) noexcept nogil:
    """Find out whether events can be mapped, when all classes of a batch of n rows are registered.

    Where there is no memory for it, they cannot.
    """
    cdef Maps* m = &k.maps
    cdef int number, kind, slots = 0
    cdef Py_ssize_t i
    if m.classes == k.classes:
        return
    forget_maps(k)
    m.classes = k.classes
    if not suits(k):
        return
    for i in range(min(n, SAMPLE)):
        m.often[kind_of(k, i if rows == NULL else rows[i])] += 1
    m.within, m.slide = k.band[0].within, k.band[0].slide
    m.every.kinds = m.alone.kinds = ~(<uint64_t> 0)
    m.starting = <uint64_t*> calloc(k.bands, sizeof(uint64_t))
    m.block = <Block**> calloc(k.bands, sizeof(Block*))
    m.map = <Word**> calloc(k.bands, sizeof(Word*))
    m.cohort = <Word**> calloc(k.bands, sizeof(Word*))
    m.fits = m.starting != NULL and m.block != NULL and m.map != NULL and m.cohort != NULL
    m.fits = m.fits and choose(k, &m.every, OF_MAPS) and (k.band[0].exact or choose(k, &m.alone, OF_CELLS))
    if not m.fits:
        give_up(k)
        return
    for number in range(m.every.chunks):
        slots = max(slots, m.every.chunk[number].live.slots)
    for number in range(m.alone.chunks):
        slots = max(slots, m.alone.chunk[number].live.slots)
    m.input = reserved(k, MOST_EVENTS * max(m.every.loads, m.alone.loads))
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
    for number in range(m.alone.chunks):
        m.fits = m.fits and list_moves(k, &m.alone.chunk[number])
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
    free_chosen(k, &m.alone)
    free(m.cohort)
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


cdef bint list_moves(Core* k, ActiveVector* chunk) noexcept nogil:
    """Where in a map, or a cohort, the cells of a chunk of live lanes belong; False without memory."""
    cdef const Band* band
    cdef Py_ssize_t size = 2 * LIVE_PLANES * LIVE_SLOTS * WIDEST * sizeof(int), place
    cdef int lane, at, slot, plane, i, number, moves = 0, width = chunk.machine.width
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
        chunk.band[lane] = k.band_of[chunk.query[lane]]
        for slot in range(chunk.cells[lane]):
            if chunk.at[lane][slot] < 0:
                continue
            place = max(0, 1 + chunk.column[lane]) * band.words + at % band.shape.width + (
                (at // band.shape.width * band.shape.slots + slot) * band.shape.vectors * band.shape.width
            )
            for i in range(k.query[chunk.query[lane]].components):
                plane = band.place[at * band.places + i]
                number = chunk.before[plane_form(band, plane)] + plane_ordinal(band, plane)
                move[0] = (number * chunk.live.slots + chunk.at[lane][slot]) * width + lane
                move[1] = place + plane * band.shape.width
                move += 2
                moves += 1
        chunk.moved[lane] = moves
    return True


# ------------------------------------------------------------------------------------------------ events

cdef int take_events(
    Core* k, int64_t key, const Event* event, const int64_t* orders, Py_ssize_t* events
) noexcept nogil:
    """Let events of one key and pane take effect, as many as can be mapped; `events` becomes their number."""
    cdef Py_ssize_t i, n = events[0], runs = 1, count = 1
    cdef uint64_t kinds = <uint64_t> 1 << event.kind
    cdef bint empty = True, maps
    cdef int number, failure = NO_FAILURE
    events[0] = 0
    for i in range(1, n):
        kinds |= <uint64_t> 1 << event[i].kind
        runs += event[i].kind != event[i - 1].kind
    if n >= LONG_BURST * runs:
        return NO_FAILURE
    for number in range(k.bands):
        if not in_lanes(k, &k.band[number], key, event.time, &failure):
            return failure
    if not finds_blocks(k, key, event, kinds, &empty, &failure):
        return failure
    while count and few_cohorts(k) and n - events[0] >= FEWEST:
        count = go_on(k, event + events[0], n - events[0], orders)
        events[0] += count
        empty = empty and count == 0
    maps = events[0] < n and is_worth_maps(k, event + events[0], n - events[0])
    for number in range(k.bands if maps or events[0] else 0):
        note_turn(&k.band[number], runs, n)
    while maps and events[0] < n and failure == NO_FAILURE:
        count = map_events(k, event + events[0], n - events[0], orders, empty, &failure)
        if count == 0:
            break
        events[0] += count
        empty = False
    return failure


cdef bint finds_blocks(
    Core* k, int64_t key, const Event* event, uint64_t kinds, bint* empty, int* failure
) noexcept nogil:
    """Find the blocks that events of some classes change; False where there are none.

    `empty` becomes whether none of them has a trend.
    """
    cdef Maps* m = &k.maps
    cdef Band* band
    cdef Block* block
    cdef int number
    cdef bint some = False
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
        some = True
        empty[0] = empty[0] and block.bits == 0 and band.starts == 0
    return some


cdef bint is_worth_maps(Core* k, const Event* event, Py_ssize_t n) noexcept nogil:
    """Whether it is worth mapping events: exact numbers leave words, or several windows have the same doubles to do."""
    cdef Band* band
    cdef Block* block
    cdef Py_ssize_t i
    cdef int number
    cdef int64_t bits = 0
    for i in range(n):
        bits += bit_length(k.maps.every.most[event[i].kind])
    for number in range(k.bands):
        band, block = &k.band[number], k.maps.block[number]
        if block == NULL:
            continue
        if not band.exact:
            if band.windows > 1:
                return True
        elif block.limbs:
            return True
        elif block.bits + bits > band.most_bits:
            measure(band, block)
            if block.bits + bits > band.most_bits:
                return True
    return False


# ------------------------------------------------------------------------------------------------ cells that go on


cdef bint few_cohorts(const Core* k) noexcept nogil:
    """Whether numbers are plain doubles, and so few windows are open that each may take events by itself."""
    cdef const Block* block
    cdef int number
    if k.band[0].exact:
        return False
    for number in range(k.bands):
        block = k.maps.block[number]
        if block != NULL and (block.newest - block.oldest >= FEW_COHORTS or block.mapped or not block.plain):
            return False
    return True


cdef Py_ssize_t go_on(Core* k, const Event* event, Py_ssize_t n, const int64_t* orders) noexcept nogil:
    """Let the first of n events take effect in all windows, as many as leave their doubles plain; returns how many."""
    cdef Maps* m = &k.maps
    cdef Steps steps
    cdef Block* block
    cdef Py_ssize_t count = count_for_all(k, event, n, orders, &steps)
    cdef int number
    cdef int64_t most = 0, cohort
    if count == 0:
        return 0
    for number in range(k.bands):
        block = m.block[number]
        if block != NULL:
            most = max(most, block.newest + 1 - block.oldest)
            k.work[PANE_MATRIX].events += count
            k.reached[PLAIN_DOUBLES] += 1
            k.band[number].alive_in = NULL
    k.step += count
    k.reached[EVENT_MAPS] += 1
    for cohort in range(most):
        for number in range(k.bands):
            block = m.block[number]
            m.cohort[number] = NULL
            if block != NULL and block.oldest + cohort <= block.newest:
                m.cohort[number] = cells_of(&k.band[number], block, block.oldest + cohort)
        run_cells(k, &steps)
    return count


cdef Py_ssize_t count_for_all(
    Core* k, const Event* event, Py_ssize_t n, const int64_t* orders, Steps* steps
) noexcept nogil:
    """Raise the bounds of all blocks by the first of n events, as many as fit, and load these; returns how many."""
    cdef ActiveQueries* chosen = &k.maps.alone
    cdef Py_ssize_t count = load_steps(k, chosen, event, min(n, MOST_EVENTS), n, orders, steps)
    cdef int number
    if count < FEWEST:
        return 0
    if not holds_all(k, bits_of(chosen, steps), weight_of(steps)):
        for number in range(k.bands):
            if k.maps.block[number] != NULL:
                measure(&k.band[number], k.maps.block[number])
    while not holds_all(k, bits_of(chosen, steps), weight_of(steps)):
        count = load_steps(k, chosen, event, count // 2, n, orders, steps)
        if count < FEWEST:
            return 0
    for number in range(k.bands):
        if k.maps.block[number] != NULL:
            bound_raised(&k.band[number], k.maps.block[number], bits_of(chosen, steps), True, weight_of(steps))
    return count


cdef inline int64_t bits_of(const ActiveQueries* chosen, const Steps* steps) noexcept nogil:
    """How many bits events add to counts."""
    cdef Py_ssize_t i
    cdef int64_t bits = 0
    for i in range(steps.count):
        bits += bit_length(chosen.most[steps.kind[i]] * <int64_t> steps.times[i].d)
    return bits


cdef inline double weight_of(const Steps* steps) noexcept nogil:
    """What they add to a sum at most, for each trend."""
    cdef Py_ssize_t i
    cdef double weight = 0
    for i in range(steps.count):
        weight += steps.weight[i]
    return weight


cdef inline bint holds_all(const Core* k, int64_t bits, double weight) noexcept nogil:
    """Whether all blocks can hold what events add to them."""
    cdef const Block* block
    cdef int number
    for number in range(k.bands):
        block = k.maps.block[number]
        if block != NULL and not can_hold(&k.band[number], block.bits + bits, block.weight + weight):
            return False
    return True


cdef void run_cells(Core* k, const Steps* steps) noexcept nogil:
    """Let events take effect in one cohort of each band."""
    cdef Maps* m = &k.maps
    cdef const ActiveVector* chunk
    cdef Taken taken
    cdef int number, lane, i, begun
    cdef Word* to
    taken.kinds = taken.events = 0
    taken.tie = False
    for number in range(m.alone.chunks):
        chunk = &m.alone.chunk[number]
        if not chunk.live.kinds & steps.kinds:
            continue
        memset(m.cells, 0, chunk.live.planes * chunk.live.slots * chunk.machine.width * sizeof(Word))
        begun = 0
        for lane in range(chunk.lanes):
            to = m.cohort[chunk.band[lane]]
            for i in range(begun, chunk.moved[lane] if to != NULL else 0):
                m.cells[chunk.move[2 * i]] = to[chunk.move[2 * i + 1]]
            begun = chunk.moved[lane]
        run_chunk(k, &m.alone, chunk, &taken, steps, 0, steps.count, True)
        write_cells(k, chunk, m.cohort, 0)


cdef inline void run_chunk(
    Core* k, const ActiveQueries* chosen, const ActiveVector* chunk, Taken* taken, const Steps* steps,
    Py_ssize_t begun, Py_ssize_t end, bint goes_on
) noexcept nogil:
    """Let the lanes of a chunk take some events, in cells that are empty or in those as they are."""
    cdef Maps* m = &k.maps
    if chunk.feature >= 0:
        k.reached[chunk.feature] += 1
    if chunk.live.kinds & steps.kinds != taken.kinds:
        taken.kinds = chunk.live.kinds & steps.kinds
        choose_events(steps, begun, end, taken)
    chunk.machine.window(
        &chunk.live, taken.event, taken.end if taken.tie or taken.merged else NULL,
        steps.times if taken.merged else NULL, taken.events, m.input, chosen.loads, LIVE_LARGE, m.trends,
        m.cells + LIVE_PLANES * LIVE_SLOTS * WIDEST, m.cells, goes_on,
    )


# ------------------------------------------------------------------------------------------------ maps


cdef Py_ssize_t map_events(
    Core* k, const Event* event, Py_ssize_t n, const int64_t* orders, bint empty, int* failure
) noexcept nogil:
    """Let the first of n events take effect by maps; returns how many.

    Where windows are `empty` only what begins is written.
    """
    cdef Maps* m = &k.maps
    cdef Steps steps
    cdef int limit = LIMB_MAP_BITS if k.band[0].exact else LANES_PLAIN_BITS, number
    cdef Py_ssize_t count = load_steps(k, &m.every, event, min(n, MOST_EVENTS), n, orders, &steps)
    count = each_fits(&m.every, &steps, count, limit)
    if count == 0:
        return 0
    k.step += count
    k.reached[EVENT_MAPS] += 1
    for number in range(k.bands):
        k.band[number].alive_in = NULL
        if m.block[number] != NULL:
            k.work[PANE_MATRIX].events += count
            k.reached[PLAIN_DOUBLES] += m.block[number].plain
    for number in range(m.every.groups):
        if m.every.group[number].kinds & steps.kinds:
            failure[0] = map_group(k, &m.every.group[number], &steps, lanes_power(limit), empty)
            if failure[0]:
                return count
    return count


cdef inline Py_ssize_t each_fits(
    const ActiveQueries* chosen, Steps* steps, Py_ssize_t events, int64_t limit
) noexcept nogil:
    """Leave away steps from the first one on that does not fit a map by itself; returns how many events are left."""
    cdef Py_ssize_t i, first = 0, count = 0, before = 0
    cdef int64_t bits = 0
    cdef double weight = 0
    for i in range(steps.count):
        if i and steps.step[i] != steps.step[i - 1]:
            first, before, bits, weight = i, count, 0, 0
        count += <Py_ssize_t> steps.times[i].d
        bits += bit_length(chosen.most[steps.kind[i]] * <int64_t> steps.times[i].d)
        weight += steps.weight[i]
        if bits + lanes_bits(weight) > limit:
            steps.count = first
            return before
    return events


cdef int map_group(Core* k, const LaneGroup* group, const Steps* steps, double most, bint empty) noexcept nogil:
    """Let events take effect in a group of lanes, as many at a time as its counts allow. Returns a Failure."""
    cdef Maps* m = &k.maps
    cdef Py_ssize_t begun = 0, end
    cdef bint exact = k.band[0].exact
    cdef int maps = 0, failure = NO_FAILURE
    if exact and m.block[group.band] == NULL:
        return NO_FAILURE
    while begun < steps.count and failure == NO_FAILURE:
        end = end_of_map(group, steps, begun, most)
        write_map(k, group, steps, begun, end, empty, maps * m.words)
        begun, empty = end, False
        maps += 1
        if exact and (maps == LIMB_MAPS or begun == steps.count):
            failure = fold_limbs(
                k, &k.band[group.band], m.block[group.band], group.chunk, m.map[group.band], maps, m.words
            )
            maps = 0
        elif not exact:
            failure = fold_doubles(k)
            maps = 0
    return failure


cdef inline Py_ssize_t end_of_map(
    const LaneGroup* group, const Steps* steps, Py_ssize_t begun, double most
) noexcept nogil:
    """The end of the steps that leave numbers of a group at most so large."""
    cdef double of_one = 1, of_none = 0, weight = 0, times
    cdef Py_ssize_t i, end = begun
    cdef int kind
    for i in range(begun, steps.count):
        kind, times = steps.kind[i], steps.times[i].d
        of_one *= 1 + times * group.extends[kind]
        of_none += times * (of_none * group.extends[kind] + group.begins[kind])
        weight += steps.weight[i]
        if max(of_one, of_none) * max(weight, 1) > most:
            break
        if i + 1 == steps.count or steps.step[i + 1] != steps.step[i]:
            end = i + 1
    return end


cdef void write_map(
    Core* k, const LaneGroup* group, const Steps* steps, Py_ssize_t begun, Py_ssize_t end, bint empty, Py_ssize_t apart
) noexcept nogil:
    """Write the map of some events so far behind the first one."""
    cdef Maps* m = &k.maps
    cdef const ActiveVector* chunk
    cdef Taken taken
    cdef int number
    taken.kinds = taken.events = 0
    taken.tie = False
    for number in range(group.first, group.fronts if empty else group.end):
        chunk = &m.every.chunk[number]
        run_chunk(k, &m.every, chunk, &taken, steps, begun, end, False)
        if k.band[0].exact:
            make_integers(m.cells, chunk.before[2] * chunk.live.slots * chunk.machine.width)
        write_cells(k, chunk, m.map, apart)


cdef inline void write_cells(Core* k, const ActiveVector* chunk, Word** to, Py_ssize_t apart) noexcept nogil:
    """Put the cells of a chunk where they belong, so far behind what there is of each band."""
    cdef const Word* cells = k.maps.cells
    cdef const int* move = chunk.move
    cdef Word* of_band
    cdef int lane, i, begun = 0
    for lane in range(chunk.lanes):
        if to[chunk.band[lane]] != NULL:
            of_band = to[chunk.band[lane]] + apart
            for i in range(begun, chunk.moved[lane]):
                of_band[move[2 * i + 1]] = cells[move[2 * i]]
        begun = chunk.moved[lane]


cdef inline void make_integers(Word* x, Py_ssize_t n) noexcept nogil:
    """Let doubles, which hold integers, be these."""
    cdef Py_ssize_t i
    for i in range(n):
        x[i].i = <int64_t> x[i].d


cdef Py_ssize_t load_steps(
    Core* k, const ActiveQueries* chosen, const Event* event, Py_ssize_t most, Py_ssize_t n, const int64_t* orders,
    Steps* steps
) noexcept nogil:
    """Load the first of n events, whole steps of them; returns how many, 0 where a value is out of range."""
    cdef Py_ssize_t i, count = 0, ties = 0
    cdef bint near
    steps.kinds = steps.count = 0
    for i in range(most):
        if i + 1 == n or not tied(&event[i + 1], orders):
            count = i + 1
        else:
            ties += 1
    if load_window(k, chosen, event, count, k.maps.input, &near) < 0:
        return 0
    merge_steps(chosen, event, count, orders, MANY_TIES * ties > count, k.maps.input, steps)
    return count


cdef inline void choose_events(const Steps* steps, Py_ssize_t begun, Py_ssize_t end, Taken* taken) noexcept nogil:
    """List what events of some classes bring, as loops take it, and where steps end."""
    cdef Py_ssize_t i, takes = 0
    cdef int32_t before = -1
    cdef int ties = 0
    cdef bint takes_it, same, merged = False
    for i in range(begun, end):  # nearly without a branch
        takes_it = taken.kinds >> steps.kind[i] & 1
        taken.event[takes] = LIVE_EVENT(steps.kind[i], i)
        taken.end[takes] = LIVE_END
        same = takes_it and steps.step[i] == before
        taken.end[takes - (takes > 0)] = 0 if same else LIVE_END
        ties += same
        merged = merged or (takes_it and steps.times[i].d != 1)
        before = steps.step[i] if takes_it else before
        takes += takes_it
    taken.events, taken.tie, taken.merged = takes, ties > 0, merged or MANY_TIES * ties > takes


cdef int fold_doubles(Core* k) noexcept nogil:
    """Do what a plain map says to all windows of each band. Returns a Failure."""
    cdef Maps* m = &k.maps
    cdef Band* band
    cdef Block* block
    cdef int number
    for number in range(k.bands):
        band, block = &k.band[number], m.block[number]
        if block == NULL:
            continue
        if reserve_sums(k, band, lanes_fold_words(&band.shape)):
            return OUT_OF_MEMORY
        end_map(band, block)
        leave_plain(band, block)
        list_cohorts(band, block, block.oldest, block.newest, band.cells)
        band.machine.fold(
            &band.shape, band.cells, <int> (block.newest + 1 - block.oldest), m.map[number], True, band.sums
        )
        block.bits = 1
    return NO_FAILURE
