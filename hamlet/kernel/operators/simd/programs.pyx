"""The tables of bands: what the events of each class, and the bursts of each role, do to the lanes of a band.

A program is written when its class is registered, and again when queries leave the graphlet of its type: then their
events are no longer part of bursts. Programs are integers only; `lanes.h` says what they mean.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from hamlet.kernel.cells cimport words_of
from hamlet.kernel.lanes.lanes cimport (
    CAST_COUNT,
    CAST_DOUBLE,
    CAST_END,
    CAST_FLAG,
    CAST_GREATEST_DOUBLE,
    CAST_GREATEST_INT,
    CAST_LEAST_DOUBLE,
    CAST_LEAST_INT,
    CAST_LIMBS,
    CAST_SCALED,
    LANES_GREATEST,
    LANES_LEAST,
    LANES_MOST_PLANES,
    LANES_NUMBER,
    LANES_PLAIN_BITS,
    LANES_PRESENCE,
    LANES_START,
    LANES_SUM,
    Band,
    Bind,
    Cast,
    Group,
    Input,
    Kill,
    LaneProgram,
    LaneSource,
    KeySlot,
    Word,
    aligned,
    aligned_again,
    lanes_fold_words,
)
from hamlet.kernel.operators.simd.blocks cimport drop_block, free_block
from hamlet.kernel.operators.simd.machine cimport feature_of, machine_of, machine_within
from hamlet.kernel.plan cimport (
    COUNT,
    FROM_START,
    GREATEST_DOUBLE,
    GREATEST_INT,
    LEAST_DOUBLE,
    LEAST_INT,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    PRESENT,
    SUM_INT,
    Arrival,
    Component,
    Entry,
    GuardArrival,
    Query,
    Source,
)
from hamlet.kernel.state.core cimport MOST_GRAPHLETS, PANE_MATRIX, SCALAR, Core, Graphlet, take_own
from hamlet.kernel.state.operator cimport number_of
from hamlet.memory.arrays cimport grown


cdef int LIMB_MATRIX = number_of("limb_matrix")


cdef void load_bands(Core* k, object bands, list held) except *:
    """Take over the bands of a kernel (`hamlet.planner.bands.Band`); its queries are loaded."""
    cdef int number, i
    k.band_of = <int*> calloc(k.queries + 1, sizeof(int))
    k.lane_of = <int*> calloc(k.queries + 1, sizeof(int))
    k.band = <Band*> calloc(len(bands) + 1, sizeof(Band))
    if k.band_of == NULL or k.lane_of == NULL or k.band == NULL:
        raise MemoryError
    for i in range(k.queries):
        k.band_of[i] = -1
    k.bands = len(bands)
    for number, given in enumerate(bands):
        held.append({"masks": {}})
        for lane, query in enumerate(given.queries):
            assert k.band_of[query] < 0
            k.band_of[query] = number
            k.lane_of[query] = lane
        load_band(k, &k.band[number], given, held[number])


cdef void load_band(Core* k, Band* band, object given, dict held) except *:
    """Take over one band, zeroed before; `held` is to own its tables."""
    cdef const Query* q = &k.query[<int> given.queries[0]]
    cdef int lane
    assert given.planes <= LANES_MOST_PLANES
    band.queries = len(given.queries)
    band.query = ints(held, "queries", given.queries)
    lanes = {query: lane for lane, query in enumerate(given.queries)}
    band.lane = ints(held, "lanes", [lanes.get(query, -1) for query in range(k.queries)])
    band.within, band.slide, band.windows, band.exact = q.within, q.slide, q.windows, q.exact
    band.most_bits = 61 if band.exact else LANES_PLAIN_BITS
    band.machine = machine_of(given.width) if given.width else machine_within(band.queries, k.widest)
    band.narrow = given.width != 0
    if band.machine == NULL:
        raise ValueError(f"this processor has no vectors of {given.width} numbers")
    band.feature = feature_of(band.machine)
    band.shape.width = band.machine.width
    band.shape.chunks = (band.queries + band.shape.width - 1) // band.shape.width
    band.shape.slots, band.shape.planes = given.slots, given.planes
    band.shape.whole, band.shape.linear, band.shape.ranks = given.whole, given.linear, given.ranks
    band.shape.vectors = given.vectors
    band.maps = given.maps if k.operators >> PANE_MATRIX & 1 else 0
    band.cells = <Word**> grown(NULL, (band.maps + band.windows) * sizeof(Word*))
    band.words = <Py_ssize_t> band.shape.chunks * band.shape.slots * band.shape.vectors * band.shape.width
    band.folded = <Word*> aligned(band.words * sizeof(Word))
    if band.folded == NULL:
        raise MemoryError
    band.places = max(map(len, given.places))
    band.place = ints(held, "places", padded(given.places, band.places))
    band.cast = <Cast*> ints(held, "casts", casts_of(k, band))
    band.row_words = ints(held, "row words", [words_of(&k.query[<int> query], 1) for query in given.queries])
    band.sets = max(map(len, given.starts))
    band.start = ints(held, "starts", padded(given.starts, band.sets))
    starts = [
        (lane // band.shape.width, slot, lane % band.shape.width)
        for lane, slots in enumerate(given.starts) for slot in slots if slot >= 0
    ]
    band.starts = len(starts)
    band.start_chunk = ints(held, "chunk", [chunk for chunk, _, _ in starts])
    band.start_slot = ints(held, "slot", [slot for _, slot, _ in starts])
    band.start_lane = ints(held, "lane", [lane for _, _, lane in starts])
    load_limbs(k, band, held)
    band.marks = (band.shape.chunks * band.shape.width + 63) // 64
    band.found = <uint64_t*> grown(NULL, band.marks * sizeof(uint64_t))
    band.marked = <uint64_t*> grown(NULL, band.marks * sizeof(uint64_t))
    write_finals(k, band, held)


cdef void load_limbs(const Core* k, Band* band, dict held) except *:
    """How the integers of a band lie once they are too large for words: each chunk has what its lanes need."""
    cdef int lane, i, chunk, width = band.shape.width, others = band.shape.planes - band.shape.whole
    cdef list whole = [1] * band.shape.chunks, slots = [1] * band.shape.chunks, before = [0], beside = [0]
    for lane in range(band.queries):
        chunk = lane // width
        for i in range(k.query[band.query[lane]].components):
            if band.place[lane * band.places + i] < band.shape.whole:
                whole[chunk] = max(whole[chunk], band.place[lane * band.places + i] + 1)
        slots[chunk] = max(slots[chunk], k.query[band.query[lane]].cells)
        for i in range(band.sets):
            slots[chunk] = max(slots[chunk], band.start[lane * band.sets + i] + 1)
    for chunk in range(band.shape.chunks):
        before.append(before[chunk] + slots[chunk] * whole[chunk])
        beside.append(beside[chunk] + slots[chunk] * others)
    band.limbs.whole = ints(held, "whole", whole)
    band.limbs.slots = ints(held, "slots", slots)
    band.limbs.before = ints(held, "limbs before", before)
    band.limbs.others = ints(held, "others before", beside)
    band.limbs.head = (band.shape.chunks * band.shape.slots * sizeof(short) + 63) // 64 * 8
    band.limbs.limbs = 0
    band.widens = False


cdef void allow_limbs(Core* k) noexcept:
    """Let numbers beyond 64 bits be limbs in lanes where no other operator does better by itself."""
    cdef Band* band
    cdef int number, i
    for number in range(k.bands):
        band = &k.band[number]
        if band.exact and band.shape.linear == band.shape.whole:
            for i in range(band.queries):
                band.widens = band.widens or k.operator_of[band.query[i]] in (SCALAR, LIMB_MATRIX)


cdef list padded(object rows, int size):
    """Rows of equal length, in one list."""
    return [number for row in rows for number in (*row, *(-1 for _ in range(size - len(row))))]


cdef int* ints(dict held, object name, object numbers) except NULL:
    """A list of integers as a C array, kept until another takes the name."""
    cdef list given = list(numbers)
    cdef Py_ssize_t i, n = len(given)
    cdef bytearray kept = bytearray((n + 1) * sizeof(int))
    cdef int* found = <int*> <char*> kept
    for i in range(n):
        found[i] = given[i]
    held[name] = kept
    return found


cdef list casts_of(const Core* k, const Band* band):
    """How the planes of each lane become a row of width 1; `Cast` as integers, lane by lane."""
    cdef const Query* q
    cdef const Component* c
    cdef int lane, i, place
    extrema = {
        LEAST_INT: CAST_LEAST_INT, GREATEST_INT: CAST_GREATEST_INT, LEAST_DOUBLE: CAST_LEAST_DOUBLE,
        GREATEST_DOUBLE: CAST_GREATEST_DOUBLE,
    }
    found = []
    for lane in range(band.queries):
        q = &k.query[band.query[lane]]
        rows = []
        for i in range(q.components):
            c = &q.component[i]
            place = band.place[lane * band.places + i]
            if c.kind == COUNT:
                how = CAST_COUNT
            elif c.kind == OCCURRENCES or c.kind == SUM_INT:
                how = CAST_LIMBS
            elif c.kind == PRESENT:
                how = CAST_FLAG
            else:
                how = extrema.get(c.kind, CAST_SCALED if band.shape.vectors > band.shape.planes else CAST_DOUBLE)
            rows.append((how, place * band.shape.width, c.offset + c.slope, c.offset + c.slope + c.words))
        rows += [(CAST_END, 0, 0, 0)] * (band.places + 1 - len(rows))
        found += [number for row in rows for number in row]
    return found


# ------------------------------------------------------------------------------------------------ programs

cdef void write_programs(Core* k, int first, list held) except *:
    """Write the programs of the classes from `first` on, and of all bursts and classes whose members have changed."""
    cdef Band* band
    cdef Graphlet* g
    cdef int number, kind, type, role
    for number in range(k.bands):
        band = &k.band[number]
        band.program = <LaneProgram*> grown(band.program, (k.classes + 1) * sizeof(LaneProgram))
        band.every = <LaneProgram*> grown(band.every, (k.classes + 1) * sizeof(LaneProgram))
        for kind in range(k.classes):
            if kind >= first:
                write_class(k, band, kind, True, held[number])
            if kind >= first or k.graphlet[type_of(k, kind)].changed:
                write_class(k, band, kind, False, held[number])
        for type in range(MOST_GRAPHLETS):
            g = &k.graphlet[type]
            if g.changed:
                for role in range(g.roles):
                    write_burst(k, band, type, role, held[number])
                write_member_classes(k, band, type)
            if band.burst[type] != NULL:
                band.types = type + 1
        band.alive = <uint64_t*> grown(band.alive, (band.types * band.marks + 1) * sizeof(uint64_t))
        band.alive_in = NULL
    for type in range(MOST_GRAPHLETS):
        k.graphlet[type].changed = False


cdef inline int type_of(const Core* k, int kind) noexcept:
    """The graphlet of the type of a class."""
    return k.entry[k.entry_first[kind]].type % MOST_GRAPHLETS if k.entry_first[kind] < k.entry_first[kind + 1] else 0


cdef void write_class(Core* k, Band* band, int kind, bint every, dict held) except *:
    """What an event of a class does: in all lanes, or in those where it joins no burst."""
    cdef const Entry* entry
    cdef int i, j
    cdef list lanes = [], arrivals
    for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
        entry = &k.entry[i]
        if band.lane[entry.query] >= 0 and (every or not entry.joins):
            arrivals = [(k.class_member[j], False) for j in range(entry.arrivals, entry.arrivals_end)]
            lanes.append((band.lane[entry.query], arrivals, i))
    write_program(k, band, &band.every[kind] if every else &band.program[kind], lanes, held, (kind, every))


cdef void write_burst(Core* k, Band* band, int type, int role, dict held) except *:
    """What a burst does in the lanes of a role."""
    cdef const Graphlet* g = &k.graphlet[type]
    cdef int i
    cdef list lanes = []
    for i in range(g.members):
        if g.member[i].role == role and band.lane[g.member[i].query] >= 0:
            lanes.append((band.lane[g.member[i].query], [(g.member[i].arrival, g.member[i].loop)], -1))
    if band.burst[type] == NULL:
        if not lanes:
            return
        band.burst[type] = <LaneProgram*> calloc(MOST_GRAPHLETS, sizeof(LaneProgram))
        if band.burst[type] == NULL:
            raise MemoryError
    write_program(k, band, &band.burst[type][role], lanes, held, (type, role, "burst"))


cdef void write_member_classes(const Core* k, Band* band, int type) except *:
    """The lanes of each class and of each role of a graphlet."""
    cdef const Graphlet* g = &k.graphlet[type]
    cdef int i, lane
    band.member_class[type] = <uint64_t*> grown(
        band.member_class[type], (g.member_classes * band.marks + 1) * sizeof(uint64_t)
    )
    band.role[type] = <uint64_t*> grown(band.role[type], (g.roles * band.marks + 1) * sizeof(uint64_t))
    memset(band.member_class[type], 0, g.member_classes * band.marks * sizeof(uint64_t))
    memset(band.role[type], 0, g.roles * band.marks * sizeof(uint64_t))
    for i in range(g.members):
        lane = band.lane[g.member[i].query]
        if lane >= 0:
            band.member_class[type][g.member[i].member_class * band.marks + lane // 64] |= <uint64_t> 1 << lane % 64
            band.role[type][g.member[i].role * band.marks + lane // 64] |= <uint64_t> 1 << lane % 64


cdef void write_finals(Core* k, Band* band, dict held) except *:
    """The sum of a window's final slots, as one group per chunk."""
    cdef const Query* q
    cdef int lane, i
    cdef dict groups = {}, reads
    for lane in range(band.queries):
        q = &k.query[band.query[lane]]
        reads = group_of(groups, lane // band.shape.width, False, ())[0]
        for i in range(q.finals, q.finals_end):
            mark(reads, (i - q.finals, q.source[i].place), lane % band.shape.width)
    pack(band, &band.finals, groups, {}, {}, held, "finals")


cdef inline tuple group_of(dict groups, int chunk, bint loop, tuple targets):
    """The lanes (as bits) by what they read, and by what of an event they add to a plane, of a group."""
    cdef tuple name = (chunk, loop, targets)
    cdef object group = groups.get(name)
    if group is None:
        group = groups[name] = ({}, {})
    return <tuple> group


cdef inline int mark(dict lanes, object name, int lane) except -1:
    """Add a lane of a chunk to the bits under a name."""
    lanes[name] = <long> lanes.get(name, 0) | 1 << lane
    return 0


cdef void write_program(
    Core* k, Band* band, LaneProgram* p, object lanes, dict held, object name
) except *:
    """Write a program from (lane, [(arrival, loop)], the entry with its guards or -1) per lane that it concerns."""
    cdef const Query* q
    cdef const Arrival* a
    cdef const Source* source
    cdef const Component* c
    cdef int i, width = band.shape.width, plane, most = 0, slot, lane, arrival, place, entry
    cdef bint starts = False, added, loop
    cdef object given
    cdef list arrivals
    cdef tuple group, targets
    cdef dict groups = {}, kills = {}, inputs = {}, reads, own  # how often an arrival has read a slot before
    for lane, arrivals, entry in lanes:
        q = &k.query[band.query[lane]]
        reads = {}
        for arrival, loop in arrivals:
            a = &q.arrival[arrival]
            targets = tuple([q.member[i] for i in range(a.cells, a.cells_end)])
            if not targets:
                continue
            group = group_of(groups, lane // width, loop, targets)
            own = {}
            for i in range(a.sources, a.sources_end):
                source = &q.source[i]
                slot = source.place
                if source.kind == FROM_START:
                    slot = LANES_START if source.guards < 0 else band.start[lane * band.sets + source.guards]
                    starts = starts or slot == LANES_START
                place = own.get(slot, 0)
                own[slot] = place + 1
                mark(<dict> group[0], (place, slot), lane % width)
                place = <int> reads.get(slot, 0) + len(targets)
                reads[slot] = place
                most = max(most, place)
            for i in range(1, q.components):
                c = &q.component[i]
                if c.variable != a.variable:
                    continue
                plane = band.place[lane * band.places + i]
                added = plane < band.shape.linear
                given = (c.column, input_of(c, added), added and plane >= band.shape.whole)
                # a plane may hold the presence and the number of values at once
                mark(<dict> group[1], (plane, inputs.setdefault(given, len(inputs))), lane % width)
        if entry >= 0 and k.entry[entry].guards < k.entry[entry].guards_end:
            for slot in killed(k, &k.entry[entry], band, lane):
                mark(kills, (lane // width, slot), lane % width)
    pack(band, p, groups, kills, inputs, held, name)
    p.most, p.starts = most, starts


cdef int input_of(const Component* c, bint counted) noexcept nogil:
    """What of a column's values goes into a component; presence may be told by their number."""
    if c.kind == PRESENT and not counted:
        return LANES_PRESENCE
    if c.column < 0 or c.kind == OCCURRENCES or c.kind == OCCURRENCES_SCALED or c.kind == PRESENT:
        return LANES_NUMBER
    if c.kind == LEAST_INT or c.kind == LEAST_DOUBLE:
        return LANES_LEAST
    return LANES_GREATEST if c.kind == GREATEST_INT or c.kind == GREATEST_DOUBLE else LANES_SUM


cdef set killed(const Core* k, const Entry* entry, const Band* band, int lane):
    """The slots of a lane that matches of negated patterns empty."""
    cdef const Query* q = &k.query[entry.query]
    cdef int cell, set_
    cdef set found = set()
    for cell in range(q.cells):
        if kills(k, entry, q.cell_guards[cell]):
            found.add(cell)
    for set_ in range(band.sets):
        if band.start[lane * band.sets + set_] >= 0 and kills(k, entry, set_):
            found.add(band.start[lane * band.sets + set_])
    return found


cdef bint kills(const Core* k, const Entry* entry, int set_) noexcept nogil:
    """Whether an event completes a match of a negated pattern of a guard set, -1 for none."""
    cdef const Query* q = &k.query[entry.query]
    cdef const GuardArrival* a
    cdef int i, j
    if set_ < 0:
        return False
    for j in range(entry.guards, entry.guards_end):
        a = &q.guard_arrival[k.class_member[j]]
        for i in range(q.guard_set[2 * set_], q.guard_set[2 * set_ + 1]):
            if a.final and a.guard == q.member[i]:
                return True
    return False


cdef void pack(
    Band* band, LaneProgram* p, dict groups, dict kills, dict inputs, dict held, object name
) except *:
    """Lay a program out as integers: lanes that it finds, groups, sources, targets, binds, kills, inputs, begins."""
    cdef Py_ssize_t room
    cdef dict masks = held["masks"], reads, values
    cdef Py_ssize_t before = len(masks)
    cdef object chunk, slot, plane, given, lanes, marked, each
    cdef tuple goals
    cdef bint loop, grows
    cdef int i, width = band.shape.width, words = 2 * ((band.shape.chunks * width + 63) // 64)
    cdef object found = 0  # bits of the lanes of groups that do no more than begin trends
    cdef list rows = [], sources = [], targets = [], binds = [], kill_rows = [], flat = [], read, first, added
    cdef list begin = []
    cdef list forms = []  # of each group: its chunk, and all else
    p.loop = False
    p.extending = 0
    for (chunk, loop, goals), (reads, values) in sorted(groups.items(), key=reads_first):
        first = [len(sources) // 2, len(targets), len(binds) // 3]
        grows = loop and len(goals) == 1
        read = [(slot, lanes) for (_, slot), lanes in sorted(reads.items())]
        read.sort(key=lambda source: source[0] == LANES_START)  # the other sums are there when it is added
        if grows:
            read.sort(key=lambda source: source[0] != goals[0])
            assert not any([lanes & ~read[0][1] for _, lanes in read]), "each lane of a loop reads its target"
        marked = 0
        for slot, lanes in read:
            marked |= lanes
            sources += (slot, masks.setdefault(lanes, len(masks)))
        targets += goals
        added = sorted(values.items())
        for (plane, given), lanes in added:
            binds += (plane, given, masks.setdefault(lanes, len(masks)))
        if only_begins(loop, reads, values):
            found |= marked << chunk * width
            begin += [
                (chunk * band.shape.slots + slot) * band.shape.vectors * width + i
                for slot in goals for i in range(width) if marked >> i & 1
            ]
        else:
            p.extending += 1
        rows += (
            chunk, loop, grows, marked, 0, first[0], len(sources) // 2, first[1], len(targets), first[2],
            len(binds) // 3,
        )
        forms.append((chunk, (loop, goals, read, added)))
        p.loop = p.loop or loop
    for (chunk, slot), lanes in sorted(kills.items()):
        kill_rows += (chunk, slot, masks.setdefault(lanes, len(masks)))
    flat += memoryview((<object> found).to_bytes(4 * words, "little")).cast("i")  # ahead: they are words of 64 bits
    for each in (rows, sources, targets, binds, kill_rows):
        flat += each
    for each in inputs:
        flat += each
    cdef int* packed = ints(held, name, flat + begin)
    p.found = <uint64_t*> packed
    p.begin = packed + len(flat)
    p.begun = len(begin)
    p.group = <Group*> (packed + words)
    p.source = <LaneSource*> (packed + words + len(rows))
    p.target = <int*> p.source + len(sources)
    p.bind = <Bind*> (p.target + len(targets))
    p.kill = <Kill*> (<int*> p.bind + len(binds))
    p.input = <Input*> (<int*> p.kill + len(kill_rows))
    p.groups, p.kills, p.inputs = len(groups), len(kills), len(inputs)
    p.direct = is_direct(groups, kills)
    for i in range(p.groups - 2, -1, -1):
        if forms[i + 1][0] == forms[i][0] + 1 and forms[i + 1][1] == forms[i][1]:
            p.group[i].alike = p.group[i + 1].alike + 1
    p.most = p.starts = 0
    room = max(p.groups, band.shape.chunks) * band.shape.vectors * band.shape.width
    if band.maps:
        room = max(room, lanes_fold_words(&band.shape))
    if room > band.sums_room:
        free(band.sums)
        band.sums = NULL
        band.sums_room = 0
        band.sums = <Word*> aligned_again(NULL, 0, room * sizeof(Word))
        if band.sums == NULL:
            raise MemoryError
        band.sums_room = room
    band.input = <Word*> grown(band.input, (p.inputs + 1 + band.inputs) * sizeof(Word))
    if p.inputs > band.inputs:
        band.inputs, band.takes = p.inputs, 0
    if len(masks) > before:
        write_masks(band, masks)


cdef bint only_begins(bint loop, dict reads, dict values) except -1:
    """Whether a group does no more than begin trends."""
    return not loop and not values and [slot for _, slot in reads] == [LANES_START]


def reads_first(tuple group):
    """Where a group comes among the others, as a key to sort by.

    In a chunk, later slots come first, for a pattern's states read those before them. Groups that do no more than begin
    trends read nothing, and come last.
    """
    cdef object chunk, loop, targets, reads, values
    (chunk, loop, targets), (reads, values) = group
    return only_begins(loop, reads, values), chunk, [-slot for slot in targets], loop


cdef bint is_direct(dict groups, dict kills) except -1:
    """Whether groups may read and write in turns, and cells be emptied afterwards.

    No group reads what one before it in its chunk has written in the same lanes, and none writes what is emptied.
    """
    cdef dict written = {}, reads
    cdef long lanes, marked
    cdef object chunk, targets, slot, name, _
    for (chunk, _, targets), (reads, _) in sorted(groups.items(), key=reads_first):
        lanes = 0
        for (_, slot), marked in reads.items():
            if <long> written.get((chunk, slot), 0) & marked:
                return False
            lanes |= marked
        for slot in targets:
            name = (chunk, slot)
            written[name] = <long> written.get(name, 0) | lanes
    return not any([<long> written.get(name, 0) & <long> marked for name, marked in kills.items()])


cdef void write_masks(Band* band, dict masks) except *:
    cdef int i, lane
    cdef int64_t* mask = <int64_t*> aligned_again(NULL, 0, len(masks) * band.shape.width * sizeof(int64_t))
    if mask == NULL:
        raise MemoryError
    for i, lanes in enumerate(masks):
        for lane in range(band.shape.width):
            mask[i * band.shape.width + lane] = -(<int64_t> lanes >> lane & 1)
    free(band.mask)
    band.mask = mask
    band.shape.mask = mask


# ------------------------------------------------------------------------------------------------ memory

cdef bint reserve_key_slots(Core* k, Py_ssize_t capacity) noexcept:
    """Make room for more keys; False where the run may not take it, or memory is short."""
    cdef int number
    cdef Py_ssize_t key
    cdef KeySlot* key_slot
    for number in range(k.bands):
        if not take_own(k, (capacity - k.keys) * sizeof(KeySlot)):
            return False
        key_slot = <KeySlot*> realloc(k.band[number].key_slot, (capacity + 1) * sizeof(KeySlot))
        if key_slot == NULL:
            return False
        k.band[number].key_slot = key_slot
        for key in range(k.keys, capacity):
            key_slot[key].block = NULL
            key_slot[key].until = INT64_MIN
            key_slot[key].scheduled = False
    return True


cdef void free_bands(Core* k) noexcept:
    cdef int number
    cdef Py_ssize_t key
    cdef Band* band
    if k.band != NULL:
        for number in range(k.bands):
            band = &k.band[number]
            for key in range(k.keys):
                free_block(k, band, &band.key_slot[key])
            drop_block(k, band.spare)
            free_band(band)
    free(k.band)
    free(k.band_of)
    free(k.lane_of)


cdef void free_band(Band* band) noexcept:
    """What a band has but its blocks."""
    cdef int type
    for type in range(MOST_GRAPHLETS):
        free(band.burst[type])
        free(band.member_class[type])
        free(band.role[type])
    free(band.program)
    free(band.every)
    free(band.mask)
    free(band.cells)
    free(band.folded)
    free(band.input)
    free(band.taken)
    free(band.found)
    free(band.marked)
    free(band.alive)
    free(band.sums)
    free(band.key_slot)
