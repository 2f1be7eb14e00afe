"""Live lanes: for a set of classes the queries that events of these classes can complete, and what they do to them.

The tables are those of ``active_queries.h``. What they cannot say makes a kernel unfit for whole windows
(``window``): a query
with too many cells, one that reads a cell twice for one event, or an event that is bound to two variables in one cell.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memset

from hamlet.kernel.cells cimport bit_length
from hamlet.kernel.lanes.lanes cimport (
    LANES_WIDEST as WIDEST,
    LIVE_APART,
    LIVE_COUNTS,
    LIVE_DOUBLES,
    LIVE_EDGE,
    LIVE_INTEGERS,
    LIVE_PLANES,
    LIVE_RANKS,
    LIVE_SLOTS,
    LIVE_SHAPE,
    LIVE_START,
    LIVE_THREE,
    LIVE_TWO,
    Band,
    Input,
    LiveChunk,
    Machine,
    plane_form,
    plane_ordinal,
)
from hamlet.kernel.operators.simd.machine cimport feature_of, live_machine_within, takes_halves
from hamlet.kernel.operators.simd.programs cimport input_of, kills
from hamlet.kernel.plan cimport FROM_CELL, Arrival, Component, Entry, Query, Source
from hamlet.kernel.state.core cimport (
    ActivePlace,
    ActiveQueries,
    ActiveVector,
    Core,
    LaneGroup,
    take_own,
    take_own_spare,
)

cdef enum:
    MOST_BINDS = 4       # of one event to one plane
    MOST_INPUTS = 255    # their numbers are bytes
    WHOLE = -2           # of a lane that takes what a window holds
    FRONT = -1           # of a map: it takes what begins in it

cdef struct Lane:
    int query
    int slots
    int forms[3]         # planes of integers, doubles, ranks
    int number
    int group            # lanes of one stand together
    int column           # WHOLE but in a map, where it is FRONT, or the cell that holds one trend at the beginning
    int live             # slots in which there may be trends
    bint apart           # whether its edges are not those of LIVE_THREE, in a map
    uint64_t kinds       # bits of the classes whose events do something to it, where cells are asked for
    int often            # bits of the number of these in a sample
    int at[LIVE_SLOTS]   # where each of the query's slots stands, the nearer to the start the earlier; -1: nowhere

cdef struct Bind:        # an input, and the bits of the lanes that it goes into, by slot
    int input
    uint8_t lanes[LIVE_SLOTS]

cdef struct Draft:       # what events of a class do to a chunk of lanes
    uint8_t edge[LIVE_SLOTS + 1][LIVE_SLOTS]  # [from, at last the empty trend][to]
    uint8_t kill[LIVE_SLOTS]
    int binds[LIVE_PLANES]
    Bind bind[LIVE_PLANES][MOST_BINDS]

cdef struct Entries:     # of all queries, one query after the other
    int* first           # [queries + 1]
    int* entry           # [entries]
    int* kind            # [entries]


cdef bint choose(Core* k, ActiveQueries* chosen, Purpose purpose) noexcept nogil:
    """Make the tables of the lanes in which events of its classes can make trends.

    False where the tables cannot say it, or memory is short.
    """
    cdef Lane* lane = <Lane*> calloc((k.queries + 1) * (1 + LIVE_SLOTS), sizeof(Lane))
    cdef Draft* draft = <Draft*> malloc(k.classes * sizeof(Draft))
    cdef int* room = <int*> calloc(k.queries + 1 + 2 * k.entries, sizeof(int))
    cdef Entries entries
    cdef int query, i, lanes = 0
    cdef bint fit = False
    chosen.most = <int*> kept(k, chosen, k.classes, sizeof(int))
    chosen.load = <Input*> kept(k, chosen, MOST_INPUTS, sizeof(Input))
    chosen.place = <ActivePlace*> kept(k, chosen, k.queries, sizeof(ActivePlace))
    if lane != NULL and draft != NULL and room != NULL and chosen.most != NULL and chosen.load != NULL and (
        chosen.place != NULL
    ):
        fit = True
        entries.first, entries.entry, entries.kind = room, room + k.queries + 1, room + k.queries + 1 + k.entries
        sort_entries(k, &entries)
        for query in range(k.queries):
            if not describe(k, query, &lane[lanes]):
                fit = False
                break
            if purpose == OF_MAPS:
                lanes = add_columns(k, query, lane, lanes, &entries)
            elif purpose == OF_CELLS or completes(k, query, chosen.kinds, &entries):
                lane[lanes].number = lanes
                if purpose == OF_CELLS:
                    for i in range(entries.first[query], entries.first[query + 1]):
                        lane[lanes].kinds |= <uint64_t> 1 << entries.kind[i]
                lanes += 1
        for i in range(lanes):
            lane[i].often = frequency(k, lane[i].kinds)
        qsort(lane, lanes, sizeof(Lane), precedes)
        fit = fit and fill_all(k, chosen, lane, lanes, &entries, draft, purpose)
    free(lane)
    free(draft)
    free(room)
    return fit


cdef int add_columns(Core* k, int query, Lane* lane, int lanes, const Entries* entries) noexcept nogil:
    """The lanes of a query in a map, the first of which is described; returns how many there are then."""
    cdef const Lane* first = &lane[lanes]
    cdef int column
    for column in range(FRONT, first.slots):
        lane[lanes].query, lane[lanes].slots, lane[lanes].forms = query, first.slots, first.forms
        lane[lanes].number, lane[lanes].column, lane[lanes].group = lanes, column, group_of(k, query)
        follow(k, &lane[lanes], entries)
        if lane[lanes].kinds or column == FRONT:
            lanes += 1
    return lanes


cdef inline int group_of(const Core* k, int query) noexcept nogil:
    """Lanes of one group make maps of one chunk of a band, where these are exact; else there is one group."""
    cdef const Band* band = &k.band[k.band_of[query]]
    return k.band_of[query] << 16 | k.lane_of[query] // band.shape.width if band.exact else 0


cdef void follow(const Core* k, Lane* lane, const Entries* entries) noexcept nogil:
    """Find the slots that trends reach in a lane of a map, and the classes whose events do something there."""
    cdef const Band* band = &k.band[k.band_of[lane.query]]
    cdef const Query* q = &k.query[lane.query]
    cdef const Entry* entry
    cdef const Arrival* a
    cdef int i, j, source, slot, cell
    cdef bint reads
    cdef uint64_t begun = <uint64_t> 1 << (LIVE_START if lane.column == FRONT else lane.column)
    cdef uint64_t reached = begun, before = 0
    while reached != before:
        before = reached
        lane.kinds = 0
        for i in range(entries.first[lane.query], entries.first[lane.query + 1]):
            entry = &k.entry[entries.entry[i]]
            for slot in range(lane.slots):
                if reached >> slot & 1 and kills(
                    k, entry, q.cell_guards[slot] if slot < q.cells else set_of(k, band, lane.query, slot)
                ):
                    lane.kinds |= <uint64_t> 1 << entries.kind[i]
            for j in range(entry.arrivals, entry.arrivals_end):
                a = &q.arrival[k.class_member[j]]
                reads = False
                for source in range(a.sources, a.sources_end):
                    reads = reads or reached >> slot_of(k, band, lane.query, &q.source[source]) & 1
                if reads:
                    lane.kinds |= <uint64_t> 1 << entries.kind[i]
                    for cell in range(a.cells, a.cells_end):
                        reached |= <uint64_t> 1 << q.member[cell]
    place_slots(k, lane, reached)
    lane.apart = False
    for i in range(q.arrivals):
        a = &q.arrival[i]
        for source in range(a.sources, a.sources_end):
            slot = slot_of(k, band, lane.query, &q.source[source])
            for cell in range(a.cells, a.cells_end):
                lane.apart = lane.apart or not leads_on(lane, slot, q.member[cell])


cdef inline bint leads_on(const Lane* lane, int slot, int cell) noexcept nogil:
    """Whether a way from one slot to another is an edge of LIVE_THREE, or none of the lane."""
    if slot != LIVE_START:
        slot = lane.at[slot]
    cell = lane.at[cell]
    return slot < 0 or cell < 0 or LIVE_EDGE(slot, cell) & LIVE_THREE != 0


cdef bint fill_all(
    Core* k, ActiveQueries* chosen, const Lane* lane, int lanes, const Entries* entries, Draft* draft, Purpose purpose
) noexcept nogil:
    """The tables of all lanes, a vector of them after the other; False as in `choose`."""
    cdef ActiveVector* chunk
    cdef LaneGroup* group = NULL
    cdef int done = 0, end
    chosen.chunk = <ActiveVector*> kept(k, chosen, lanes + 1, sizeof(ActiveVector))
    chosen.group = <LaneGroup*> kept(k, chosen, lanes + 1, sizeof(LaneGroup))
    if chosen.chunk == NULL or chosen.group == NULL:
        return False
    while done < lanes:
        if done == 0 or lane[done].group != lane[done - 1].group:
            group = &chosen.group[chosen.groups]
            chosen.groups += 1
            group.first = chosen.chunks
            group.band, group.chunk = lane[done].group >> 16, lane[done].group & 0xFFFF
        end = done
        while end < lanes and stand_together(&lane[end], &lane[done]):
            end += 1
        chunk = &chosen.chunk[chosen.chunks]
        chosen.chunks += 1
        group.end = chosen.chunks
        if lane[done].column < 0:
            group.fronts = group.end
        chunk.machine = live_machine(k, purpose)
        chunk.feature, chunk.halves = feature_of(chunk.machine), takes_halves(chunk.machine)
        chunk.lanes = chunk.live.lanes = min(chunk.machine.width, end - done)
        if not fill(k, chosen, group, chunk, lane + done, entries, draft, purpose):
            return False
        done += chunk.lanes
    if purpose == OF_WINDOWS:
        place_results(k, chosen)
    return True


cdef inline bint stand_together(const Lane* one, const Lane* other) noexcept nogil:
    """Whether lanes may be in one chunk."""
    return one.group == other.group and (one.column < 0) == (other.column < 0)


cdef inline const Machine* live_machine(const Core* k, Purpose purpose) noexcept nogil:
    """The loops of a chunk; where cells are asked for, they have 64 bits."""
    if k.band[0].narrow:
        return k.band[0].machine
    return live_machine_within(purpose == OF_WINDOWS and k.band[0].exact, k.widest)


cdef void place_results(const Core* k, ActiveQueries* chosen) noexcept nogil:
    """Where the results of a window lie, each chunk's from the border of a widest vector on."""
    cdef ActiveVector* chunk
    cdef int number, lane
    chosen.words = WIDEST
    for number in range(chosen.chunks):
        chunk = &chosen.chunk[number]
        chunk.place = chosen.words
        for lane in range(chunk.lanes):
            if k.row_columns[chunk.query[lane]].columns:
                chosen.place[chunk.query[lane]].count = chunk.place + lane
                chosen.place[chunk.query[lane]].chunk = number
            else:
                chunk.unlisted |= <uint64_t> 1 << lane
        chosen.words += (chunk.live.planes * chunk.machine.width + WIDEST - 1) // WIDEST * WIDEST


cdef void sort_entries(const Core* k, Entries* entries) noexcept nogil:
    """Put the entries of all classes in the order of their queries."""
    cdef int kind, i, at, before = 0
    for i in range(k.entries):
        entries.first[k.entry[i].query] += 1
    for i in range(k.queries + 1):
        at = entries.first[i]
        entries.first[i] = before
        before += at
    for kind in range(k.classes):
        for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
            at = entries.first[k.entry[i].query]
            entries.first[k.entry[i].query] += 1
            entries.entry[at], entries.kind[at] = i, kind
    for i in range(k.queries, 0, -1):  # each has moved to where the next one began
        entries.first[i] = entries.first[i - 1]
    entries.first[0] = 0


cdef void* kept(Core* k, ActiveQueries* chosen, Py_ssize_t count, Py_ssize_t size) noexcept nogil:
    """Memory of a set of classes, counted, all zeros; a null pointer where there is none."""
    if not take_own_spare(k, count * size):
        return NULL
    chosen.bytes += count * size
    return calloc(count + 1, size)


cdef void free_chosen(Core* k, ActiveQueries* chosen) noexcept nogil:
    cdef int i
    for i in range(chosen.chunks):
        free(chosen.chunk[i].live.step)
        free(chosen.chunk[i].move)
    free(chosen.chunk)
    free(chosen.group)
    free(chosen.load)
    free(chosen.most)
    free(chosen.place)
    take_own(k, -chosen.bytes)
    memset(chosen, 0, sizeof(ActiveQueries))


# ------------------------------------------------------------------------------------------------ which lanes

cdef bint describe(const Core* k, int query, Lane* lane) noexcept nogil:
    """What a lane needs; False where it is more than there is."""
    cdef const Band* band = &k.band[k.band_of[query]]
    cdef int i, slot, form, plane
    lane.query, lane.slots, lane.column = query, k.query[query].cells, WHOLE
    for i in range(band.sets):
        slot = band.start[k.lane_of[query] * band.sets + i]
        lane.slots = max(lane.slots, slot + 1)
    for form in range(3):
        lane.forms[form] = 0
    for i in range(k.query[query].components):
        plane = band.place[k.lane_of[query] * band.places + i]
        form = plane_form(band, plane)
        lane.forms[form] = max(lane.forms[form], plane_ordinal(band, plane) + 1)
    if lane.slots > LIVE_SLOTS:
        return False
    place_slots(k, lane, ~(<uint64_t> 0))
    return True


cdef void place_slots(const Core* k, Lane* lane, uint64_t reached) noexcept nogil:
    """Number the slots that are reached by how many events lead there, so that alike patterns have the same edges."""
    cdef const Query* q = &k.query[lane.query]
    cdef const Band* band = &k.band[k.band_of[lane.query]]
    cdef const Arrival* a
    cdef int depth[LIVE_SLOTS]
    cdef int slot, i, source, cell, turn, _turn, before, place = 0
    for slot in range(lane.slots):
        depth[slot] = LIVE_SLOTS if slot < q.cells else -1  # a guarded start
    for _turn in range(lane.slots):
        for i in range(q.arrivals):
            a = &q.arrival[i]
            for source in range(a.sources, a.sources_end):
                slot = slot_of(k, band, lane.query, &q.source[source])
                before = -1 if slot == LIVE_START else depth[slot]
                for cell in range(a.cells, a.cells_end):
                    depth[q.member[cell]] = min(depth[q.member[cell]], before + 1)
    for turn in range(-1, LIVE_SLOTS + 1):
        for slot in range(lane.slots):
            if depth[slot] == turn and reached >> slot & 1:
                lane.at[slot] = place
                place += 1
            elif depth[slot] == turn:
                lane.at[slot] = -1
    lane.live = place


cdef inline int slot_of(const Core* k, const Band* band, int query, const Source* source) noexcept nogil:
    """The slot that a source reads; LIVE_START for the empty trend where nothing can kill it."""
    if source.kind == FROM_CELL:
        return source.place
    return LIVE_START if source.guards < 0 else band.start[k.lane_of[query] * band.sets + source.guards]


cdef inline int frequency(const Core* k, uint64_t kinds) noexcept nogil:
    """How often there is an event of some classes, as far as that matters."""
    cdef int kind
    cdef int64_t events = 0
    for kind in range(k.classes if kinds else 0):
        if kinds >> kind & 1:
            events += k.maps.often[kind]
    return bit_length(events)


cdef int precedes(const void* a, const void* b) noexcept nogil:
    """The order of lanes: those that need as much stand side by side, by and large as they came.

    First come those with the most events, so that for these the others need not be looked at.
    """
    cdef const Lane* one = <const Lane*> a
    cdef const Lane* other = <const Lane*> b
    cdef int i
    if one.group != other.group:
        return one.group - other.group
    if (one.column < 0) != (other.column < 0):
        return 1 if one.column >= 0 else -1
    if one.often != other.often:
        return other.often - one.often
    for i in range(2, -1, -1):
        if one.forms[i] != other.forms[i]:
            return one.forms[i] - other.forms[i]
    if one.live != other.live:
        return one.live - other.live
    if one.apart != other.apart:
        return one.apart - other.apart
    if one.kinds != other.kinds:
        return 1 if one.kinds > other.kinds else -1
    return one.number - other.number


cdef bint completes(const Core* k, int query, uint64_t kinds, const Entries* entries) noexcept nogil:
    """Whether events of these classes, in some order, can bring a query from the start to a final state."""
    cdef const Query* q = &k.query[query]
    cdef const Entry* entry
    cdef const Arrival* a
    cdef int i, j, source, cell
    cdef uint64_t reached = 0, before = ~(<uint64_t> 0)
    while reached != before:
        before = reached
        for i in range(entries.first[query], entries.first[query + 1]):
            if not kinds >> entries.kind[i] & 1:
                continue
            entry = &k.entry[entries.entry[i]]
            for j in range(entry.arrivals, entry.arrivals_end):
                a = &q.arrival[k.class_member[j]]
                for source in range(a.sources, a.sources_end):
                    if stands(&q.source[source], reached):
                        for cell in range(a.cells, a.cells_end):
                            reached |= <uint64_t> 1 << q.member[cell]
    for source in range(q.finals, q.finals_end):
        if stands(&q.source[source], reached):
            return True
    return False


cdef inline bint stands(const Source* source, uint64_t reached) noexcept nogil:
    return source.kind != FROM_CELL or reached >> source.place & 1


# ------------------------------------------------------------------------------------------------ what events do

cdef bint fill(
    Core* k, ActiveQueries* chosen, LaneGroup* group, ActiveVector* chunk, const Lane* lane,
    const Entries* entries, Draft* draft, Purpose purpose,
) noexcept nogil:
    """The tables of a chunk of lanes; False where they cannot say it, or memory is short."""
    cdef const Query* q
    cdef int number, kind, i, form, planes = 0, place, _plane
    memset(draft, 0, k.classes * sizeof(Draft))
    for form in range(3):
        chunk.before[form] = planes
        place = 0
        for number in range(chunk.lanes):
            place = max(place, lane[number].forms[form])
        for _plane in range(place):
            if planes == LIVE_PLANES:
                return False
            chunk.live.plane[planes].holds = LIVE_COUNTS if planes == 0 else LIVE_RANKS if form == 2 else (
                LIVE_INTEGERS if form == 0 and purpose != OF_MAPS else LIVE_DOUBLES
            )
            planes += 1
    chunk.live.planes = planes
    chunk.live.whole = chunk.before[1] > 0 and purpose != OF_MAPS
    for number in range(chunk.lanes):
        chunk.query[number], chunk.column[number] = lane[number].query, lane[number].column
        chunk.cells[number] = lane[number].slots
        for i in range(lane[number].slots):
            chunk.at[number][i] = lane[number].at[i]
        chunk.live.slots = max(chunk.live.slots, lane[number].live)
        chunk.live.kinds |= lane[number].kinds
        group.kinds |= lane[number].kinds
    if purpose != OF_WINDOWS:
        chunk.live.slots = max(chunk.live.slots, 2)  # the shapes that are compiled have more than one
    for number in range(chunk.lanes):
        q = &k.query[lane[number].query]
        for i in range(q.finals, q.finals_end if lane[number].column == WHOLE else 0):
            chunk.live.final[lane[number].at[q.source[i].place]] |= <uint8_t> 1 << number
        if lane[number].column == WHOLE:
            begin_starts(k, chunk, &lane[number], number)
        elif lane[number].column != FRONT:
            chunk.live.begin[lane[number].at[lane[number].column]] |= <uint8_t> 1 << number
        for i in range(entries.first[lane[number].query], entries.first[lane[number].query + 1]):
            kind = entries.kind[i]
            if chosen.kinds >> kind & 1 and not enter(
                k, chosen, group, chunk, &k.entry[entries.entry[i]], &lane[number], number, kind, &draft[kind]
            ):
                return False
    if not write_steps(k, chosen, chunk, draft):
        return False
    chunk.live.shape = shape_of(&chunk.live)
    return True


cdef int shape_of(LiveChunk* live) noexcept nogil:
    """The LIVE_SHAPE of a chunk, after its tables are written; -1 where its planes are taken one by one."""
    cdef int plane, sums = 0, ranks = 0
    if live.slots == 1 or live.edges & ~(LIVE_TWO if live.slots == 2 else LIVE_APART) or live.slots > 3:
        return -1
    for plane in range(1, live.planes):
        if live.plane[plane].holds == LIVE_DOUBLES and live.whole:
            return -1
        sums += live.plane[plane].holds != LIVE_RANKS
        ranks += live.plane[plane].holds == LIVE_RANKS
    return LIVE_SHAPE(sums, ranks, live.whole) if sums <= 2 and ranks <= 1 else -1


cdef void begin_starts(const Core* k, ActiveVector* chunk, const Lane* lane, int number) noexcept nogil:
    """The empty trend, where a negated pattern may kill it."""
    cdef const Band* band = &k.band[k.band_of[lane.query]]
    cdef int i, slot
    for i in range(band.sets):
        slot = band.start[k.lane_of[lane.query] * band.sets + i]
        if slot >= 0:
            chunk.live.begin[lane.at[slot]] |= <uint8_t> 1 << number


cdef bint enter(
    Core* k, ActiveQueries* chosen, LaneGroup* group, ActiveVector* chunk, const Entry* entry, const Lane* lane,
    int number, int kind, Draft* draft,
) noexcept nogil:
    """What an event of a class does to one lane; False where the tables cannot say it."""
    cdef const Band* band = &k.band[k.band_of[entry.query]]
    cdef const Query* q = &k.query[entry.query]
    cdef const Arrival* a
    cdef int variable[LIVE_SLOTS]
    cdef int reads[LIVE_SLOTS + 1]  # how many partial trends one that stands there makes
    cdef int i, j, source, slot, to, set_
    cdef uint8_t bit = <uint8_t> 1 << number
    for slot in range(LIVE_SLOTS + 1):
        reads[slot] = 0
    for slot in range(LIVE_SLOTS):
        variable[slot] = -2
    for j in range(entry.arrivals, entry.arrivals_end):
        a = &q.arrival[k.class_member[j]]
        for i in range(a.cells, a.cells_end):
            to = lane.at[q.member[i]]
            if to < 0:
                continue
            if variable[to] != -2 and variable[to] != a.variable:
                return False
            variable[to] = a.variable
            for source in range(a.sources, a.sources_end):
                slot = slot_of(k, band, entry.query, &q.source[source])
                if slot != LIVE_START:
                    slot = lane.at[slot]
                if slot < 0 or slot == LIVE_START and lane.column >= 0:
                    continue
                if draft.edge[slot][to] & bit:
                    return False
                draft.edge[slot][to] |= bit
                chunk.live.edges |= LIVE_EDGE(slot, to)
                reads[slot] += 1
                chosen.most[kind] = max(chosen.most[kind], reads[slot])
                if slot == LIVE_START:
                    group.begins[kind] = max(group.begins[kind], reads[slot])
                else:
                    group.extends[kind] = max(group.extends[kind], reads[slot])
            if not bind(k, chosen, chunk, q, a, k.lane_of[entry.query], to, bit, draft):
                return False
    for slot in range(lane.slots):
        set_ = q.cell_guards[slot] if slot < q.cells else set_of(k, band, entry.query, slot)
        if lane.at[slot] >= 0 and kills(k, entry, set_):
            draft.kill[lane.at[slot]] |= bit
            chunk.live.kills = True
    return True


cdef inline int set_of(const Core* k, const Band* band, int query, int slot) noexcept nogil:
    """The guard set of a guarded start."""
    cdef int set_
    for set_ in range(band.sets):
        if band.start[k.lane_of[query] * band.sets + set_] == slot:
            return set_
    return -1


cdef bint bind(
    Core* k, ActiveQueries* chosen, ActiveVector* chunk, const Query* q, const Arrival* a, int lane, int to,
    uint8_t bit, Draft* draft,
) noexcept nogil:
    """What an event's values add to a slot of a lane; False where there are too many of them."""
    cdef const Band* band = &k.band[k.band_of[q - k.query]]
    cdef const Component* c
    cdef Input input
    cdef int i, j, plane, number, form
    for i in range(1, q.components):
        c = &q.component[i]
        if c.variable != a.variable:
            continue
        plane = band.place[lane * band.places + i]
        form = plane_form(band, plane)
        input.column, input.of = c.column, input_of(c, form < 2)
        input.floating = form == 1 or form == 0 and not chunk.live.whole
        plane = chunk.before[form] + plane_ordinal(band, plane)
        number = 0
        while number < chosen.loads and (
            chosen.load[number].column != input.column or chosen.load[number].of != input.of
            or chosen.load[number].floating != input.floating
        ):
            number += 1
        if number == chosen.loads:
            if number == MOST_INPUTS:
                return False
            chosen.load[number] = input
            chosen.loads += 1
        j = 0
        while j < draft.binds[plane] and draft.bind[plane][j].input != number:
            j += 1
        if j == MOST_BINDS:
            return False
        draft.binds[plane] = max(draft.binds[plane], j + 1)
        draft.bind[plane][j].input = number
        draft.bind[plane][j].lanes[to] |= bit
        chunk.live.bound |= <unsigned int> 1 << to
    return True


# ------------------------------------------------------------------------------------------------ tables

cdef bint write_steps(Core* k, ActiveQueries* chosen, ActiveVector* chunk, const Draft* draft) noexcept nogil:
    """Lay out what the classes do; False where memory is short."""
    cdef int slots = chunk.live.slots, kind, plane, i, j, slot, most
    cdef int size = (slots + 2) * slots
    cdef uint8_t* to
    for plane in range(chunk.live.planes):
        most = 0
        for kind in range(k.classes):
            most = max(most, draft[kind].binds[plane])
        chunk.live.plane[plane].binds, chunk.live.plane[plane].bind = most, size
        size += most * (1 + slots)
    chunk.live.stride = size
    chunk.live.step = <uint8_t*> kept(k, chosen, k.classes, size)
    if chunk.live.step == NULL:
        return False
    to = chunk.live.step
    for kind in range(k.classes):
        for i in range(slots + 1):
            for slot in range(slots):
                to[i * slots + slot] = draft[kind].edge[i if i < slots else LIVE_START][slot]
        for slot in range(slots):
            to[(slots + 1) * slots + slot] = draft[kind].kill[slot]
        for plane in range(chunk.live.planes):
            for j in range(chunk.live.plane[plane].binds):
                i = chunk.live.plane[plane].bind + j * (1 + slots)
                to[i] = <uint8_t> draft[kind].bind[plane][j].input
                for slot in range(slots):
                    to[i + 1 + slot] = draft[kind].bind[plane][j].lanes[slot]
        to += size
    return True
