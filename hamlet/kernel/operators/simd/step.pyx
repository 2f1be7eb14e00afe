"""One step, or one burst, of a band: what events bring to the lanes of its block (``blocks``).

**Inputs.** Values that are not between 2^-200 and 2^200 (or zero) hand the block over, so that no product of doubles
overflows or vanishes; so do extrema that have no rank, or that are equal to another value with other bits (-0.0).
**Reads before writes**, as in ``step``: events of one time read, then kill, then add.

Source: HAMLET (SIGMOD'21) §3 (Eqs. 2-4), Defs. 3.5-3.11.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport bit_length
from hamlet.kernel.lanes.lanes cimport (
    LANES_GREATEST,
    LANES_LEAST,
    LANES_NUMBER,
    LANES_PRESENCE,
    LANES_SUM,
    Band,
    Block,
    Growth,
    Input,
    LaneProgram,
    Taken,
    Word,
    note_turn,
    rank_of,
    usable,
)
from hamlet.kernel.operators.simd.blocks cimport hand_over, has_room, in_lanes, reach
from hamlet.kernel.operators.simd.limbs cimport find_in_limbs, note_inputs, reserve_sums, step_limbs
from hamlet.kernel.operators.simd.panes cimport apply_step, cells_of, first_apart, map_of
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport (
    PANE_MATRIX,
    PLAIN_DOUBLES,
    SIMD,
    Core,
    Graphlet,
    Work,
    kind_of,
    ones,
    take_own,
)
from hamlet.kernel.state.operator cimport Run


cdef enum:
    FEW_STEPS = 2  # of a pane, before what is known of lanes is worth keeping
    NO_ROOM = -1   # no Failure: a block cannot hold what events add

cdef double MOST_SUM = 2.0 ** 61  # of magnitudes that are added up in a word


# ------------------------------------------------------------------------------------------------ inputs

cdef bint load_row(
    Core* k, const Band* band, const LaneProgram* program, int64_t row, Word* x, double* weight
) noexcept nogil:
    """The inputs of one event, and the largest magnitude among them; False where some is out of range.

    Of doubles beside integers the magnitude does not matter.
    """
    cdef int i
    cdef double size, most = 0
    for i in range(program.inputs):
        if not load_input(k, &program.input[i], row, &x[i], &size):
            return False
        if program.input[i].floating and not band.exact:
            size = fabs(x[i].d)
        most = max(most, size)
    weight[0] += most
    return True


cdef bint load_tally(
    Core* k, const Band* band, const LaneProgram* program, const Tally* tally, int64_t events, double* weight
) noexcept nogil:
    """The inputs of a burst, likewise."""
    cdef int i
    cdef const Input* input
    cdef const Tally* values
    cdef Word least, greatest
    cdef Word* x = band.input
    cdef double most = 0, size
    for i in range(program.inputs):
        input = &program.input[i]
        if input.of == LANES_NUMBER:
            x[i].i = events if input.column < 0 else tally[input.column].present
            size = <double> x[i].i
            if input.floating:
                x[i].d = size
            if not (input.floating and band.exact):
                most = max(most, size)
            continue
        if input.of == LANES_PRESENCE:
            x[i].i = (events if input.column < 0 else tally[input.column].present) > 0
            continue
        values = &tally[input.column]
        x[i].i = 0
        if values.present == 0:
            continue
        least.i, greatest.i = values.least, values.greatest
        if input.of == LANES_LEAST or input.of == LANES_GREATEST:
            if not rank_of(
                least.i if input.of == LANES_LEAST else greatest.i, k.floating[input.column],
                input.of == LANES_LEAST, &x[i],
            ):
                return False
        elif k.floating[input.column]:
            if not (usable(least.d) and usable(greatest.d)) or values.real.e:
                return False
            x[i].d = values.real.m
        elif input.floating:
            x[i].d = <double> values.total
        else:
            size = max(fabs(<double> least.i), fabs(<double> greatest.i)) * <double> values.present
            x[i].i = <int64_t> values.total
            most = max(most, size)
        if input.floating and not band.exact:
            most = max(most, fabs(x[i].d))
    weight[0] += most
    return True


# ------------------------------------------------------------------------------------------------ events

cdef int step_band(
    Core* k, int number, int64_t key, int64_t time, int kind, const int64_t* rows, int events, bint* done
) noexcept nogil:
    """One step of all queries of a band; not done where states hold them. Returns a Failure.

    `kind` is the class of the first event.
    """
    cdef Band* band = &k.band[number]
    cdef LaneProgram* program = &band.program[kind]
    cdef Block* block
    cdef double weight = 0
    cdef int failure = NO_FAILURE
    cdef bint starts
    done[0] = False
    note_turn(band, events, events)
    if not in_lanes(k, band, key, time, &failure):
        return failure
    starts = program.starts if events == 1 else starts_any(k, band, rows, events)
    if band.key_slot[key].block == NULL and not starts and not band.starts:
        done[0] = True
        return NO_FAILURE  # there is nothing to extend
    failure = reach(k, number, key, time, &block)
    if failure:
        return failure
    done[0] = True
    if block == NULL:
        return NO_FAILURE
    if events > 1:
        return step_ties(k, number, block, key, rows, events, done)
    if block.bits == 0 and not program.starts:
        return NO_FAILURE  # there is nothing to extend
    if not load_row(k, band, program, rows[0], band.input, &weight):
        done[0] = False
        return hand_over(k, number, key)
    failure = take_in(k, band, block, program, 1, False, bit_length(program.most), weight, NULL)
    if failure == NO_ROOM:
        done[0] = False
        return hand_over(k, number, key)
    note(k, band, block, 1)
    return failure


cdef int take_in(
    Core* k, Band* band, Block* block, const LaneProgram* program, int64_t events, bint loop, int64_t bits,
    double weight, uint64_t* found
) noexcept nogil:
    """Let one event, several of one time, or a burst take effect, whose inputs are loaded, if the block can hold it.

    Returns a Failure, or NO_ROOM with nothing done. `found` as of `apply_step`.
    """
    cdef Growth growth
    cdef Taken taken
    cdef Taken* listed = band.taken
    cdef int room
    growth.bits, growth.weight, growth.starts = bits, weight, program.starts
    growth.limbs = 0
    growth.limb_weight = 0
    if band.widens:
        growth.limb_bits = bit_length(note_inputs(program, band.input, events, loop, &growth))
        if weight > MOST_SUM and events > 1:
            return NO_ROOM
    room = has_room(k, band, block, &growth)
    if room <= 0:
        return NO_ROOM if room == 0 else OUT_OF_MEMORY
    if block.limbs == 0:
        apply_step(band, block, program, events, found)
        return NO_FAILURE
    taken.program, taken.x, taken.m, taken.kind = program, band.input, events, -1
    band.taken = &taken
    room = step_limbs(k, band, block, 1, growth.limbs, found)
    band.taken = listed
    return room


cdef inline Work* note(Core* k, const Band* band, const Block* block, int64_t events) noexcept nogil:
    """Count events that all lanes of a band take."""
    cdef Work* work = &k.work[PANE_MATRIX if block.mapped else SIMD]
    work.events += events
    k.reached[PLAIN_DOUBLES] += block.plain
    if band.feature >= 0:
        k.reached[band.feature] += 1
    return work


cdef inline bint starts_any(const Core* k, const Band* band, const int64_t* rows, int events) noexcept nogil:
    """Whether a trend may begin with some of the events."""
    cdef int i
    for i in range(events):
        if band.every[kind_of(k, rows[i])].starts:
            return True
    return False


cdef int step_ties(
    Core* k, int number, Block* block, int64_t key, const int64_t* rows, int events, bint* done
) noexcept nogil:
    """Events of one time: all reads, then the guards, then all writes. Those of one class are read once."""
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program
    cdef Growth growth
    cdef int64_t cohort, place, times, most = 0, maps = band.maps if block.mapped else 0
    cdef double weight = 0
    cdef bint starts = False
    cdef int i, takes, room
    cdef Py_ssize_t sums = 0
    cdef Word* at
    cdef Word* cells
    takes = take_classes(k, band, rows, events, &weight)
    if takes < 0:
        return OUT_OF_MEMORY
    if takes == 0:
        return NO_FAILURE
    growth.limbs = times = 0
    growth.limb_weight = 0
    for i in range(takes):
        program = band.taken[i].program
        most += program.most * band.taken[i].m
        starts = starts or program.starts
        if program.kills:
            band.alive_in = NULL
        sums += program.groups * band.shape.vectors * band.shape.width
        if band.widens:
            times += note_inputs(program, band.taken[i].x, band.taken[i].m, False, &growth)
    growth.bits, growth.weight, growth.starts, growth.limb_bits = bit_length(most), weight, starts, bit_length(times)
    room = has_room(k, band, block, &growth) if weight <= MOST_SUM or not band.widens and weight < INFINITY else 0
    if room < 0:
        return OUT_OF_MEMORY
    if room == 0:
        done[0] = False
        return hand_over(k, number, key)
    note(k, band, block, events)
    if block.limbs:
        return step_limbs(k, band, block, takes, growth.limbs, NULL)
    if takes == 1:
        memcpy(band.input, band.taken.x, band.taken.program.inputs * sizeof(Word))
        apply_step(band, block, band.taken.program, band.taken.m, NULL)
        return NO_FAILURE
    block.steps += takes  # each is read, kills and writes by itself
    if reserve_sums(k, band, sums):
        return OUT_OF_MEMORY
    for cohort in range(first_apart(block) - maps, block.newest + 1):
        place = cohort - first_apart(block) + maps
        if place < maps:
            cells = block.cell + place * band.words
        else:
            cells = cells_of(band, block, cohort)
        at = band.sums
        for i in range(takes):
            program = band.taken[i].program
            band.machine.read(
                &band.shape, program, cells, band.taken[i].x, band.taken[i].m, place == 0 or place >= maps,
                block.plain, at,
            )
            at += program.groups * band.shape.vectors * band.shape.width
        for i in range(takes):
            band.machine.kill(&band.shape, band.taken[i].program, cells)
        at = band.sums
        for i in range(takes):
            program = band.taken[i].program
            band.machine.write(&band.shape, program, cells, block.plain, at)
            at += program.groups * band.shape.vectors * band.shape.width
    return NO_FAILURE


cdef int take_classes(
    Core* k, Band* band, const int64_t* rows, int events, double* weight
) noexcept nogil:
    """List the classes of events of one time in `band.taken`; returns how many, -1 without memory.

    `weight` is raised as by `load_row`, to infinity where an input is out of range.
    """
    cdef Taken* taken
    cdef Word* x
    cdef int i, _, kind, takes = 0
    if reserve_takes(k, band, min(events, k.classes)):
        return -1
    for i in range(events):
        kind = kind_of(k, rows[i])
        taken = band.taken
        for _ in range(takes):
            if taken.kind == kind:
                break
            taken += 1
        else:
            if band.every[kind].groups == 0 and band.every[kind].kills == 0:
                continue
            taken.program, taken.m, taken.kind = &band.every[kind], 0, kind
            takes += 1
        taken.m += 1
        x = <Word*> taken.x if taken.m == 1 else band.input
        if not load_row(k, band, taken.program, rows[i], x, weight):
            weight[0] = INFINITY
            return takes
        if taken.m > 1:
            join_inputs(taken.program, <Word*> taken.x, x)
    return takes


cdef inline void join_inputs(const LaneProgram* program, Word* x, const Word* more) noexcept nogil:
    """Let the inputs of one event be those of two of the same class and time."""
    cdef int i
    cdef const Input* input
    for i in range(program.inputs):
        input = &program.input[i]
        if input.of == LANES_NUMBER or input.of == LANES_SUM:
            if input.floating:
                x[i].d += more[i].d
            else:
                x[i].i = <int64_t> (<uint64_t> x[i].i + <uint64_t> more[i].i)
        else:  # flags, and ranks without a sign
            x[i].i = <int64_t> max(<uint64_t> x[i].i, <uint64_t> more[i].i)


cdef int reserve_takes(Core* k, Band* band, int classes) noexcept nogil:
    """Room for so many classes, and for the inputs of each."""
    cdef int i, takes = 2 * classes
    cdef Py_ssize_t bytes = sizeof(Taken) + band.inputs * sizeof(Word)
    cdef Taken* taken
    if classes <= band.takes:
        return NO_FAILURE
    if not take_own(k, (takes - band.takes) * bytes):
        return OUT_OF_MEMORY
    taken = <Taken*> malloc(takes * bytes)
    if taken == NULL:
        take_own(k, -(takes - band.takes) * bytes)
        return OUT_OF_MEMORY
    free(band.taken)
    for i in range(takes):
        taken[i].x = <Word*> (taken + takes) + i * band.inputs
    band.taken, band.takes = taken, takes
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ bursts

cdef int seek_block(Core* k, int number, Graphlet* g, bint* starts) noexcept nogil:
    """Find the block that a burst may extend: `reached`, `block`; whether it may begin trends. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program = band.burst[g - k.graphlet]
    cdef int failure = NO_FAILURE, role
    cdef int64_t events = 0
    cdef bint concerned = False
    band.reached = False
    band.block = NULL
    starts[0] = False
    if program == NULL:
        return NO_FAILURE
    for role in range(g.roles):
        if k.role_events[role] and program[role].groups:
            concerned = True
            events += k.role_events[role]
            starts[0] = starts[0] or program[role].starts
    if not concerned:
        return NO_FAILURE
    note_turn(band, 1, events)
    if not in_lanes(k, band, g.key, g.time, &failure):
        g.handed = True
        return failure
    band.reached = True
    if band.key_slot[g.key].block == NULL and not starts[0] and not band.starts:
        return NO_FAILURE
    return reach(k, number, g.key, g.time, &band.block)


cdef int find_lanes(Core* k, int number, Graphlet* g) noexcept nogil:
    """Find the lanes of a band with trends that a burst extends. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef bint starts
    cdef int role, i, failure = seek_block(k, number, g, &starts)
    if failure or not band.reached:
        return failure
    for i in range(band.marks):
        band.found[i] = 0
    if band.block != NULL and (band.block.bits or starts):
        for role in range(g.roles):
            if k.role_events[role] and band.burst[g - k.graphlet][role].groups:
                find_role(k, number, g, role)
    return NO_FAILURE


cdef bint recalled(Band* band, const uint64_t* alive, const uint64_t* members) noexcept nogil:
    """Find the lanes that are known to be live; whether these are all members."""
    cdef uint64_t missing = 0
    cdef int i
    if band.alive_in != band.block or band.alive_since != band.block.oldest:
        memset(band.alive, 0, band.types * band.marks * sizeof(uint64_t))
        band.alive_in, band.alive_since = band.block, band.block.oldest
    for i in range(band.marks):
        band.marked[i] = members[i] & alive[i]
        missing |= members[i] & ~alive[i]
    return missing == 0


cdef void find_role(Core* k, int number, Graphlet* g, int role) noexcept nogil:
    """Find the live lanes of a role: those with a trend to extend in some window.

    The oldest cohort has seen all that the others have. Where a match of a negated pattern kills starts, it may be dead
    all the same, and one that opened later alive.
    """
    cdef Band* band = &k.band[number]
    cdef uint64_t* alive = band.alive + (g - k.graphlet) * band.marks
    cdef int i
    cdef bint lasting = band.block.mapped or band.block.steps >= FEW_STEPS
    cdef int64_t cohort
    for i in range(0 if lasting else band.marks):
        band.marked[i] = 0
    if not (lasting and recalled(band, alive, band.role[g - k.graphlet] + role * band.marks)):
        for cohort in range(band.block.oldest, (band.block.newest if band.starts else band.block.oldest) + 1):
            if band.block.limbs:
                find_in_limbs(band, band.block, &band.burst[g - k.graphlet][role], cohort, band.marked)
                continue
            band.machine.find(
                &band.shape, &band.burst[g - k.graphlet][role], cells_of(band, band.block, cohort),
                map_of(band.block, cohort), band.marked,
            )
    for i in range(band.marks):
        if lasting:
            alive[i] |= band.marked[i]
        band.found[i] |= band.marked[i]
    count_lanes(k, band, g, role, band.marked)


cdef void count_lanes(Core* k, const Band* band, Graphlet* g, int role, const uint64_t* found) noexcept nogil:
    """Count the live lanes of a role among the members with trends that the burst extends, and of each class."""
    cdef const uint64_t* of_member_class = band.member_class[g - k.graphlet]
    cdef int i, member_class, lanes = 0
    for i in range(band.marks):
        if found[i]:
            lanes += ones(found[i])
    if lanes == 0:
        return
    g.every |= <uint64_t> 1 << role
    g.lives += lanes
    k.role_lives[role] += lanes
    k.role_laned[role] += lanes
    if g.member_classes == g.roles:
        k.member_class_lives[role] += lanes
        return
    for member_class in range(g.member_classes):
        if g.member_class[member_class].role == role:
            for i in range(band.marks):
                k.member_class_lives[member_class] += ones(found[i] & of_member_class[member_class * band.marks + i])


cdef int burst_band(Core* k, int number, const Graphlet* g, const Run* run, uint64_t* found) noexcept nogil:
    """Apply a burst's coefficients to all lanes of a role; afterwards the band may no longer be reached.

    `found` gets the bits of the lanes with trends that it extends; a null pointer for nobody asks.
    """
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program = &band.burst[g - k.graphlet][run.role]
    cdef Block* block = band.block
    cdef int64_t events = run.events, bits
    cdef double weight = 0
    cdef int failure
    if program.groups == 0 or block == NULL or (block.bits == 0 and not program.starts):
        return NO_FAILURE
    bits = events * bit_length(program.most) if program.loop else bit_length(events * program.most)
    if not load_tally(k, band, program, run.tally, events, &weight):
        band.reached = False
        return hand_over(k, number, g.key)
    failure = take_in(k, band, block, program, events, program.loop, bits, weight, found)
    if failure == NO_ROOM:
        band.reached = False
        return hand_over(k, number, g.key)
    note(k, band, block, events).bursts += 1
    return failure
