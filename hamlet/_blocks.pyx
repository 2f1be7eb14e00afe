"""Blocks: what is kept of a band of queries for one key, and how events, windows and numbers too large meet it.

Contract
--------
**Form.** [open window][chunk][slot][vector][lane of the chunk]; window k is at k modulo the most windows open. Behind
them is room for a pane map (``_panes``).
**Bound.** No addition of integers checks for overflow. `bits` and `weight` bound all counts and sums of a block: an
event that makes r partial trends of one at most adds log2(1 + r) bits. Where the bound would pass what a plane can
hold, it is measured anew from the cells; where that does not help, the block is *handed over*: every query goes on in a
state of its own, whose limbs hold any number, until all windows of that time have closed (``_state``).
**Doubles** have exponents of their own under numbers=float, so that counts may be of any size. Values that are not
between 2^-200 and 2^200 (or zero) hand the block over, so that no product overflows or vanishes; so do extrema that
have no rank, or that do not differ from another value with other bits (-0.0).

Source: HAMLET (SIGMOD'21) §3; DESIGN §2 (rungs 4-6, numbers).
"""

from libc.math cimport fabs
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from hamlet._budget cimport ALLOCATION, take
from hamlet._burst cimport Tally
from hamlet._calendar cimport schedule, schedule_slot
from hamlet._cells cimport (
    bit_length,
    floor_divide,
    lane_of,
    lowest_window,
    scaled_normal,
    scaled_store,
    words_of,
)
from hamlet._kernel cimport Core, Graphlet, mixed, take_own
from hamlet._lanes cimport (
    LANES_GREATEST,
    LANES_LEAST,
    LANES_LEAST_VALUE,
    LANES_MOST_VALUE,
    LANES_NUMBER,
    LANES_PRESENCE,
    LANES_SUM,
    Band,
    Block,
    Input,
    LaneProgram,
    Seat,
    Shape,
    Word,
    lanes_bits,
    lanes_measure,
    lanes_ones,
    lanes_power,
    lanes_rank,
    lanes_value,
)
from hamlet._panes cimport apply_step, begin_pane, end_pane, map_of, window_of
from hamlet._rows cimport append_row
from hamlet._state cimport State, cell_of, clear_state, new_state
from hamlet._tables cimport (
    COUNT,
    GREATEST_DOUBLE,
    LEAST_DOUBLE,
    LEAST_INT,
    NO_FAILURE,
    OCCURRENCES,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_INT,
    Component,
    Query,
)
from hamlet._windows cimport close_windows, lowest

cdef extern from *:
    """
    #include <stdlib.h>
    #define HAMLET_ALIGNMENT 64
    static inline void *hamlet_aligned(size_t size) {
        void *found = NULL;
        return posix_memalign(&found, HAMLET_ALIGNMENT, size) ? NULL : found;
    }
    """
    const int ALIGNMENT "HAMLET_ALIGNMENT"
    void* aligned "hamlet_aligned"(size_t size) noexcept nogil


# ------------------------------------------------------------------------------------------------ life

cdef Block* new_block(Core* k, Band* band) noexcept nogil:
    """An empty block; a null pointer without memory."""
    cdef Py_ssize_t size = (band.windows + band.maps) * band.words * sizeof(Word)
    cdef Py_ssize_t bytes = sizeof(Block) + size + 2 * ALLOCATION + ALIGNMENT
    cdef Block* block = band.spare
    band.spare = NULL
    if block == NULL:
        if not take(k.account, bytes):
            return NULL
        block = <Block*> calloc(1, sizeof(Block))
        if block != NULL:
            block.cell = <Word*> aligned(size)
        if block == NULL or block.cell == NULL:
            free(block)
            take(k.account, -bytes)
            return NULL
        block.bytes = bytes
    block.first = block.bits = block.steps = 0
    block.last = -1
    block.mapped = False
    block.weight = 0
    block.border = INT64_MIN
    k.states += band.queries
    return block


cdef void free_block(Core* k, Band* band, Seat* seat) noexcept nogil:
    if seat.block == NULL:
        return
    k.states -= band.queries
    if band.spare == NULL:
        band.spare = seat.block
    else:
        drop_block(k, seat.block)
    seat.block = NULL


cdef void drop_block(Core* k, Block* block) noexcept nogil:
    """Give back the memory of a block or of none."""
    if block != NULL:
        take(k.account, -block.bytes)
        free(block.cell)
        free(block)


cdef bint in_lanes(Core* k, Band* band, int64_t key, int64_t time, int* failure) noexcept nogil:
    """Whether a block, and no states, is to take what happens at a time; closes what states have left where it is."""
    cdef Seat* seat = &band.seat[key]
    cdef State* s
    cdef int64_t end, bits = 0
    cdef int i
    if seat.until == INT64_MIN:
        return True
    end = floor_divide(time, band.slide) * band.slide + band.within
    if time < seat.until:
        seat.until = max(seat.until, end)
        return False
    for i in range(band.queries):
        s = k.state[key * k.queries + band.query[i]]
        if s != NULL:
            bits = max(bits, s.bits)
    if band.exact and bits > band.most_bits:
        seat.until = max(seat.until, end)
        return False  # the next window's counts will hardly be smaller
    for i in range(band.queries):
        s = k.state[key * k.queries + band.query[i]]
        if s != NULL:
            failure[0] = close_windows(
                k, band.query[i], s, key, lowest(k, &k.query[band.query[i]], time)
            )
            if failure[0]:
                return False
            clear_state(&k.query[band.query[i]], s)
    seat.until = INT64_MIN
    return True


cdef int reach(Core* k, int number, int64_t key, int64_t time, Block** found) noexcept nogil:
    """The block of a key with the windows of a time open; a null pointer where no window is. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef Seat* seat = &band.seat[key]
    cdef const Query* q = &k.query[band.query[0]]
    cdef Block* block = seat.block
    cdef int failure
    found[0] = NULL
    if block == NULL:
        if lowest(k, q, time) > floor_divide(time, q.slide):
            return NO_FAILURE
        block = new_block(k, band)
        if block == NULL:
            return OUT_OF_MEMORY
        seat.block = block
    if time >= block.border:
        failure = turn_block(k, number, block, key, time)
        if failure:
            return failure
    if block.first <= block.last:
        found[0] = block
    return NO_FAILURE


cdef int turn_block(Core* k, int number, Block* block, int64_t key, int64_t time) noexcept nogil:
    """Close the windows that end at or before `time` and open those that hold it."""
    cdef Band* band = &k.band[number]
    cdef const Query* q = &k.query[band.query[0]]
    cdef int64_t low = lowest(k, q, time), high = floor_divide(time, q.slide), window
    end_pane(band, block)
    if close_block(k, band, block, key, low):
        return OUT_OF_MEMORY
    if block.last < block.first:
        block.first = low
        block.last = low - 1
        block.bits = 0
        block.weight = 0
    for window in range(block.last + 1, high + 1):
        open_window(band, block, window)
    block.last = max(high, low - 1)
    block.border = min((high + 1) * q.slide, low * q.slide + q.within)
    begin_pane(k, band, block)
    return NO_FAILURE


cdef void open_window(Band* band, Block* block, int64_t window) noexcept nogil:
    cdef const Shape* shape = &band.shape
    cdef Word* cells = window_of(band, block, window)
    cdef Word one
    cdef int i
    memset(cells, 0, band.words * sizeof(Word))
    if band.starts == 0:
        return
    if shape.whole:
        one.i = 1
    else:
        one.d = 1.0
    for i in range(band.starts):
        cells[
            (band.start_chunk[i] * shape.slots + band.start_slot[i]) * shape.vectors * shape.width + band.start_lane[i]
        ] = one
    block.bits = max(block.bits, bit_length(shape.slots))


cdef int close_block(Core* k, Band* band, Block* block, int64_t key, int64_t low) noexcept nogil:
    """Deliver and close all open windows below `low`."""
    while block.first <= block.last and block.first < low:
        if block.bits and deliver_window(k, band, block, key, block.first):
            return OUT_OF_MEMORY
        k.windows += band.queries
        block.first += 1
    return NO_FAILURE


cdef int deliver_window(Core* k, Band* band, Block* block, int64_t key, int64_t window) noexcept nogil:
    """Append the rows of a window, one for each lane with a trend."""
    cdef const Shape* shape = &band.shape
    cdef int lane, width
    cdef const Word* sum
    cdef uint64_t row[MOST_WORDS_OF_ROW]
    cdef const Query* q
    band.machine.finish(shape, &band.finals, window_of(band, block, window), band.sums)
    width = shape.width
    for lane in range(band.queries):
        sum = band.sums + lane // width * shape.vectors * width + lane % width
        if sum.i == 0:  # also the bits of 0.0
            continue
        if band.exact:
            k.most_bits = max(k.most_bits, bit_length(sum.i))
        q = &k.query[band.query[lane]]
        cell_of_lane(band, q, lane, sum, row)
        if append_row(k, &k.rows[band.query[lane]], key, window, 1, row, words_of(q, 1)):
            return OUT_OF_MEMORY
    return NO_FAILURE


cdef void cell_of_lane(
    const Band* band, const Query* q, int lane, const Word* plane, uint64_t* cell
) noexcept nogil:
    """Write the numbers of a lane, [vectors][width] words apart, as a cell of its query of width 1."""
    cdef int i, place
    cdef bint floating
    cdef const Component* c
    cdef const Word* x
    cdef uint64_t* to
    for i in range(q.components):
        c = &q.component[i]
        place = band.place[lane * band.places + i]
        x = plane + place * band.shape.width
        to = cell + c.offset + c.slope
        if c.kind == COUNT:
            to[0] = <uint64_t> x.i
        elif c.kind == OCCURRENCES or c.kind == SUM_INT:
            to[0] = <uint64_t> x.i
            to[1] = to[c.words] = <uint64_t> (x.i >> 63)  # c.words + 1 limbs
        elif c.kind == PRESENT:
            to[0] = x.i != 0
        elif place >= band.shape.linear:
            floating = c.kind == LEAST_DOUBLE or c.kind == GREATEST_DOUBLE
            to[0] = x.i != 0
            to[1] = <uint64_t> lanes_value(x.i, floating, c.kind == LEAST_INT or c.kind == LEAST_DOUBLE)
        elif band.exact:
            scaled_store(to, scaled_normal(x.d, 0))
        else:
            scaled_store(to, scaled_normal(x.d, x[band.shape.planes * band.shape.width].i))


cdef int advance_block(Core* k, int number, int64_t key, int64_t time) noexcept nogil:
    """An entry of the calendar is due."""
    k.band[number].seat[key].scheduled = False
    return leave_block(k, number, key, time)


cdef int leave_block(Core* k, int number, int64_t key, int64_t time) noexcept nogil:
    """Close the windows that end at or before `time`; put what stays open on the calendar. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef Seat* seat = &band.seat[key]
    cdef Block* block = seat.block
    if block == NULL:
        return NO_FAILURE
    if block.first <= block.last and block.first * band.slide + band.within <= time:
        end_pane(band, block)
        if close_block(
            k, band, block, key,
            INT64_MAX if time == INT64_MAX else lowest_window(time, band.within, band.slide),
        ):
            return OUT_OF_MEMORY
        block.border = INT64_MIN  # the next event looks at the windows anew
    if block.last < block.first:
        free_block(k, band, seat)
        return NO_FAILURE
    if seat.scheduled:
        return NO_FAILURE
    seat.scheduled = True
    return schedule_slot(k, ~(key * k.bands + number), block.first * band.slide + band.within)


# ------------------------------------------------------------------------------------------------ bounds

cdef bint has_room(
    Band* band, Block* block, int64_t bits, bint starts, double weight
) noexcept nogil:
    """Raise the bounds by what events add, if the planes can hold it."""
    if not band.exact:
        block.bits = block.bits or starts
        return True
    if bound_raised(band, block, bits, starts, weight):
        return True
    measure(band, block)
    return bound_raised(band, block, bits, starts, weight)


cdef inline bint bound_raised(
    const Band* band, Block* block, int64_t bits, bint starts, double weight
) noexcept nogil:
    bits = block.bits + bits if block.bits or starts else 0
    weight += block.weight
    if bits > band.most_bits or (weight and weight > lanes_power(band.most_bits - bits)):
        return False
    block.bits = bits
    block.weight = weight
    return True


cdef void measure(const Band* band, Block* block) noexcept nogil:
    """The bounds, from what is in the cells."""
    cdef double counts = 0, sums = 0
    cdef int64_t window
    for window in range(block.first, block.last + 1):
        lanes_measure(&band.shape, window_of(band, block, window), &counts, &sums)
    block.bits = lanes_bits(counts * (1 + 1e-12))
    block.weight = sums * (1 + 1e-12) / lanes_power(block.bits)


cdef int hand_over(Core* k, int number, int64_t key) noexcept nogil:
    """Let every query of a band go on in a state of its own. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef Seat* seat = &band.seat[key]
    cdef Block* block = seat.block
    cdef int lane
    cdef int64_t slot
    if block == NULL:
        return NO_FAILURE
    end_pane(band, block)
    if band.exact:
        measure(band, block)
    for lane in range(band.queries):
        slot = key * k.queries + band.query[lane]
        if k.state[slot] == NULL:
            k.state[slot] = new_state(&k.query[band.query[lane]])
            if k.state[slot] == NULL:
                return OUT_OF_MEMORY
            k.states += 1
        fill_state(k, band, block, lane, k.state[slot])
        if block.first <= block.last and not k.state[slot].scheduled:
            if schedule(k, k.state[slot], slot, block.first * band.slide + band.within):
                return OUT_OF_MEMORY
    seat.until = block.last * band.slide + band.within
    free_block(k, band, seat)
    return NO_FAILURE


cdef void fill_state(Core* k, const Band* band, const Block* block, int lane, State* s) noexcept nogil:
    """What a lane holds, as a state without open windows."""
    cdef const Query* q = &k.query[band.query[lane]]
    cdef const Shape* shape = &band.shape
    cdef int64_t window
    cdef int slot, set, i, guard
    cdef Py_ssize_t at
    cdef const Word* cells
    clear_state(q, s)
    s.first, s.last, s.border = block.first, block.last, block.border
    s.bits = block.bits if band.exact and q.cells else 0  # what has no cells has no counts
    for window in range(block.first, block.last + 1):
        cells = window_of(band, block, window)
        at = lane // shape.width * shape.slots * shape.vectors * shape.width + lane % shape.width
        for slot in range(q.cells):
            cell_of_lane(
                band, q, lane, cells + at + slot * shape.vectors * shape.width,
                cell_of(q, s, lane_of(q, window), slot),
            )
        for set in range(band.sets):
            slot = band.start[lane * band.sets + set]
            if slot < 0 or cells[at + slot * shape.vectors * shape.width].i:
                continue
            for i in range(q.guard_set[2 * set], q.guard_set[2 * set + 1]):
                guard = q.member[i]
                if is_dead(q, band, lane, guard, cells + at):
                    s.killed[guard] = max(1, k.step - 1)  # the step under way may kill again
                    s.killed_time[guard] = window * q.slide


cdef bint is_dead(const Query* q, const Band* band, int lane, int guard, const Word* cells) noexcept nogil:
    """Whether no start under a guard is alive: then it may count as matched, whichever guard it was."""
    cdef int set, i, slot
    for set in range(band.sets):
        slot = band.start[lane * band.sets + set]
        if slot >= 0 and cells[slot * band.shape.vectors * band.shape.width].i:
            for i in range(q.guard_set[2 * set], q.guard_set[2 * set + 1]):
                if q.member[i] == guard:
                    return False
    return True


cdef int leave_bands(Core* k) noexcept:
    """Hand all blocks over, and forget when they were due. Returns a Failure."""
    cdef int number
    cdef Py_ssize_t key, i, dues = k.calendar.dues
    for number in range(k.bands):
        for key in range(k.keys):
            if hand_over(k, number, key):
                return OUT_OF_MEMORY
    dues = k.calendar.dues
    k.calendar.dues = 0
    for i in range(dues):  # a place is read before it is written
        if k.calendar.due[i].slot >= 0 and schedule_slot(k, k.calendar.due[i].slot, k.calendar.due[i].time):
            return OUT_OF_MEMORY
    return NO_FAILURE


cdef void hold_seats(Core* k) noexcept:
    """Let states go on that have been taken over from another kernel."""
    cdef Band* band
    cdef const State* s
    cdef int number, i
    cdef Py_ssize_t key
    for number in range(k.bands):
        band = &k.band[number]
        for key in range(k.keys):
            for i in range(band.queries):
                s = k.state[key * k.queries + band.query[i]]
                if s != NULL and s.first <= s.last:
                    band.seat[key].until = max(band.seat[key].until, s.last * band.slide + band.within)


cdef Py_ssize_t bytes_in_block(const Core* k, int query, Py_ssize_t key) noexcept nogil:
    """The share of a query in the block of its band."""
    cdef const Band* band
    cdef const Block* block
    if k.band_of[query] < 0:
        return 0
    band = &k.band[k.band_of[query]]
    block = band.seat[key].block
    if block == NULL:
        return 0
    return block.bytes // band.queries + (block.bytes % band.queries if k.lane_of[query] == 0 else 0)


# ------------------------------------------------------------------------------------------------ events

cdef inline bint usable(double x) noexcept nogil:
    return x == 0 or LANES_LEAST_VALUE <= fabs(x) <= LANES_MOST_VALUE


cdef inline bint rank_of(int64_t bits, bint floating, bint least, Word* rank) noexcept nogil:
    """The rank of an extremum; False where the value has none, or is equal to one with other bits."""
    cdef double value
    if floating:
        value = (<double*> &bits)[0]
        if value != value or bits == INT64_MIN:  # NaN, -0.0
            return False
    rank.i = lanes_rank(bits, floating, least)
    return rank.i != 0


cdef bint load_row(
    Core* k, const Band* band, const LaneProgram* program, int64_t row, Word* x, double* weight
) noexcept nogil:
    """The inputs of one event, and the largest magnitude among them; False where some is out of range."""
    cdef int i
    cdef const Input* input
    cdef bint there
    cdef double value, most = 0
    cdef int64_t bits
    for i in range(program.inputs):
        input = &program.input[i]
        there = input.column < 0 or k.columns[input.column].valid == NULL or k.columns[input.column].valid[row]
        x[i].i = 0
        if not there:
            continue
        bits = k.columns[input.column].data[row] if input.of >= LANES_SUM else 1
        if input.of == LANES_LEAST or input.of == LANES_GREATEST:
            if not rank_of(bits, k.floating[input.column], input.of == LANES_LEAST, &x[i]):
                return False
            continue
        if input.of == LANES_SUM and k.floating[input.column]:
            value = (<double*> &bits)[0]
            if not usable(value):
                return False
        else:
            value = <double> bits
        if input.floating:
            x[i].d = value
        else:
            x[i].i = bits
            most = max(most, fabs(value) if input.of != LANES_PRESENCE else 0)
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
            else:
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
    weight[0] += most
    return True


cdef int reserve_sums(Core* k, Band* band, Py_ssize_t words) noexcept nogil:
    cdef Word* sums
    if words <= band.sums_room:
        return NO_FAILURE
    if not take_own(k, (2 * words - band.sums_room) * sizeof(Word)):
        return OUT_OF_MEMORY
    sums = <Word*> aligned(2 * words * sizeof(Word))
    if sums == NULL:
        return OUT_OF_MEMORY
    free(band.sums)
    band.sums = sums
    band.sums_room = 2 * words
    return NO_FAILURE


cdef int step_band(
    Core* k, int number, int64_t key, int64_t time, const int64_t* rows, int events, bint* done
) noexcept nogil:
    """One step of all queries of a band; not done where states hold them. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef LaneProgram* program = &band.program[k.class_of[rows[0]]]
    cdef Block* block
    cdef double weight = 0
    cdef int failure = NO_FAILURE
    done[0] = False
    if not in_lanes(k, band, key, time, &failure):
        return failure
    if band.seat[key].block == NULL and events == 1 and not program.starts and not band.starts:
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
    if not (
        load_row(k, band, program, rows[0], band.input, &weight)
        and has_room(band, block, bit_length(program.most), program.starts, weight)
    ):
        done[0] = False
        return hand_over(k, number, key)
    apply_step(band, block, program, 1)
    return NO_FAILURE


cdef int step_ties(
    Core* k, int number, Block* block, int64_t key, const int64_t* rows, int events, bint* done
) noexcept nogil:
    """Events of one time: all reads, then the guards, then all writes."""
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program
    cdef int64_t bits = 0, window
    cdef double weight = 0
    cdef bint starts = False
    cdef int i
    cdef Py_ssize_t words = 0, sums = 0, inputs = 0
    cdef Word* x
    cdef Word* at
    cdef Word* cells
    for i in range(events):
        program = &band.every[k.class_of[rows[i]]]
        bits += bit_length(program.most)
        starts = starts or program.starts
        sums += program.groups * band.shape.vectors * band.shape.width
        inputs += program.inputs
    words = sums + inputs
    if reserve_sums(k, band, words):
        return OUT_OF_MEMORY
    x = band.sums + sums
    for i in range(events):
        program = &band.every[k.class_of[rows[i]]]
        if not load_row(k, band, program, rows[i], x, &weight):
            done[0] = False
            return hand_over(k, number, key)
        x += program.inputs
    if not has_room(band, block, bits, starts, weight):
        done[0] = False
        return hand_over(k, number, key)
    block.steps += 1
    for window in range(band.maps if block.mapped else block.last - block.first + 1):
        if block.mapped:
            cells = map_of(band, block) + window * band.words
        else:
            cells = window_of(band, block, block.first + window)
        at, x = band.sums, band.sums + sums
        for i in range(events):
            program = &band.every[k.class_of[rows[i]]]
            band.machine.read(&band.shape, program, cells, x, 1, not block.mapped or window == 0, at)
            at += program.groups * band.shape.vectors * band.shape.width
            x += program.inputs
        for i in range(events):
            band.machine.kill(&band.shape, &band.every[k.class_of[rows[i]]], cells)
        at = band.sums
        for i in range(events):
            program = &band.every[k.class_of[rows[i]]]
            band.machine.write(&band.shape, program, cells, at)
            at += program.groups * band.shape.vectors * band.shape.width
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ bursts

cdef int find_lanes(Core* k, int number, Graphlet* g) noexcept nogil:
    """Find the lanes of a band with trends that a burst extends. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program = band.burst[g - k.graphlet]
    cdef int failure = NO_FAILURE, role
    cdef bint concerned = False, starts = False
    band.reached = False
    band.block = NULL
    if program == NULL:
        return NO_FAILURE
    for role in range(g.roles):
        if k.role_events[role] and program[role].groups:
            concerned = True
            starts = starts or program[role].starts
    if not concerned:
        return NO_FAILURE
    if not in_lanes(k, band, g.key, g.time, &failure):
        g.handed = True
        return failure
    band.reached = True
    memset(band.found, 0, band.marks * sizeof(uint64_t))
    if band.seat[g.key].block == NULL and not starts and not band.starts:
        return NO_FAILURE
    failure = reach(k, number, g.key, g.time, &band.block)
    if failure:
        return failure
    if band.block != NULL and (band.block.bits or starts):
        for role in range(g.roles):
            if k.role_events[role] and program[role].groups:
                find_role(k, number, g, role)
    return NO_FAILURE


cdef void find_role(Core* k, int number, Graphlet* g, int role) noexcept nogil:
    """Find the live lanes of a role: those with a trend to extend in some window.

    The first window has seen all that the others have. Where a match of a negated pattern kills starts, it may be dead
    all the same, and one that opened later alive.
    """
    cdef Band* band = &k.band[number]
    cdef int i, lanes = 0
    cdef int64_t window
    memset(band.marked, 0, band.marks * sizeof(uint64_t))
    for window in range(band.block.first, (band.block.last if band.starts else band.block.first) + 1):
        band.machine.find(
            &band.shape, &band.burst[g - k.graphlet][role], window_of(band, band.block, window),
            map_of(band, band.block), band.marked,
        )
    for i in range(band.marks):
        if band.marked[i]:
            lanes += lanes_ones(band.marked[i])
            g.kindred += mixed(band.marked[i] ^ mixed(<uint64_t> number << 32 | i))
            band.found[i] |= band.marked[i]
    if lanes:
        g.every |= <uint64_t> 1 << role
        g.lives += lanes
        k.role_lives[role] += lanes
        k.role_laned[role] += lanes


cdef int burst_band(Core* k, int number, const Graphlet* g, int role) noexcept nogil:
    """Apply a burst's coefficients to all lanes of a role; afterwards the band may no longer be reached."""
    cdef Band* band = &k.band[number]
    cdef const LaneProgram* program = &band.burst[g - k.graphlet][role]
    cdef Block* block = band.block
    cdef int64_t events = k.role_events[role], bits
    cdef double weight = 0
    if program.groups == 0 or block == NULL or (block.bits == 0 and not program.starts):
        return NO_FAILURE
    bits = events * bit_length(program.most) if program.loop else bit_length(events * program.most)
    if not (
        load_tally(k, band, program, k.role_tally + role * k.event_columns, events, &weight)
        and has_room(band, block, bits, program.starts, weight)
    ):
        band.reached = False
        return hand_over(k, number, g.key)
    apply_step(band, block, program, events)
    return NO_FAILURE
