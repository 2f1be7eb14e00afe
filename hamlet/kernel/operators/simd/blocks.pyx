"""Blocks: what is kept of a band of queries for one key, how windows open and close in it, and numbers too large.

Contract
--------
**Form.** [cohort][chunk][slot][vector][lane of the chunk]. A *cohort* is the windows that opened at one turn: they have
seen the same events, and are equal until they close, so that there is one for each pane with an event, and not one for
each window. Cohorts lie in a ring that grows with need; before it is room for a pane map (``panes``).
**Bound.** No addition of integers checks for overflow. `bits` and `weight` bound all counts and sums of a block: an
event that makes r partial trends of one at most adds log2(1 + r) bits. Where the bound would pass what a plane can
hold, it is measured anew from the cells; where that does not help, integers become limbs (``limbs``), or the block is
*handed over*: every query goes on in a state of its own, whose limbs hold any number, until all windows of that time
have closed (``state``).
**Doubles** have exponents of their own under numbers=float, so that counts may be of any size. What an event brings may
hand a block over, too (``simd.step``).

Source: HAMLET (SIGMOD'21) §3.
"""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport bit_length, first_kept, floor_divide, limbs_bits, scaled_normal, scaled_store
from hamlet.kernel.lanes.lanes cimport (
    ALIGNMENT,
    CAST_COUNT,
    CAST_DOUBLE,
    CAST_END,
    CAST_FLAG,
    CAST_GREATEST_DOUBLE,
    CAST_LEAST_DOUBLE,
    CAST_LEAST_INT,
    CAST_LIMBS,
    CAST_SCALED,
    LIMB_BITS,
    Band,
    Block,
    Cast,
    Growth,
    KeySlot,
    Shape,
    Word,
    aligned,
    becomes_limbs,
    bound_raised,
    lanes_bits,
    lanes_measure,
    lanes_power,
    lanes_value,
)
from hamlet.kernel.operators.scalar.windows cimport close_windows, lowest
from hamlet.kernel.operators.simd.limbs cimport (
    begin_in_limbs,
    carry,
    cell_of_limbs,
    deliver_limbs,
    has_limbs,
    has_trend,
    leave_limbs,
    limbs_of_cell,
)
from hamlet.kernel.operators.simd.panes cimport (
    another_map,
    begin_pane,
    cells_of,
    end_map,
    folded_cells,
    leave_plain,
    measure_plain,
    place_of,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.sharing.deferred cimport settle
from hamlet.kernel.state.core cimport PANE_MATRIX, PLAIN_DOUBLES, SIMD, Core, may_use
from hamlet.kernel.state.operator cimport unpacked
from hamlet.kernel.state.query_state cimport State, cell_of, clear_state, cohort_at, more_cohorts, new_state, widen
from hamlet.kernel.state.rows cimport new_row
from hamlet.kernel.state.timer_heap cimport schedule, schedule_slot
from hamlet.memory.budget cimport ALLOCATION, take


cdef enum:
    FEW_COHORTS = 4  # that a block has room for at first


# ------------------------------------------------------------------------------------------------ life

cdef Block* new_block(Core* k, Band* band) noexcept nogil:
    """An empty block; a null pointer without memory."""
    cdef Py_ssize_t bytes = sizeof(Block) + ALLOCATION
    cdef Block* block = band.spare
    band.spare = NULL
    if block == NULL:
        if not take(k.account, bytes):
            return NULL
        block = <Block*> calloc(1, sizeof(Block))
        if block == NULL:
            take(k.account, -bytes)
            return NULL
        block.bytes = bytes
        block.words = band.words
        if not enlarge_block(k, band, block, min(FEW_COHORTS, band.windows)):
            drop_block(k, block)
            return NULL
    band.alive_in = NULL
    block.first = block.bits = block.steps = block.head = block.oldest = 0
    block.last = block.newest = -1
    block.mapped = False
    block.plain = not band.exact and may_use(k, PLAIN_DOUBLES)
    block.weight = 0
    block.border = INT64_MIN
    leave_limbs(band, block)
    k.states += band.queries
    return block


cdef bint enlarge_block(Core* k, const Band* band, Block* block, int room) noexcept nogil:
    """Make room for more cohorts; False, with those that are kept where they were, without memory."""
    cdef Py_ssize_t size = block.words * sizeof(Word), more = (room - block.room) * sizeof(int64_t)
    cdef Py_ssize_t words = (band.maps + room) * max(block.words, band.words)
    cdef int kept = block.room - block.head  # before the end of the ring
    cdef Word* cell
    cdef int64_t* until
    more += (words - block.capacity) * sizeof(Word)
    if block.room == 0:
        more += 2 * ALLOCATION + ALIGNMENT
    if not take(k.account, more):
        return False
    cell = <Word*> aligned(words * sizeof(Word))
    until = <int64_t*> malloc(room * sizeof(int64_t))
    if cell == NULL or until == NULL:
        free(cell)
        free(until)
        take(k.account, -more)
        return False
    if block.room:
        memcpy(cell, block.cell, band.maps * size)
        memcpy(cell + band.maps * block.words, block.cell + (band.maps + block.head) * block.words, kept * size)
        memcpy(cell + (band.maps + kept) * block.words, block.cell + band.maps * block.words, block.head * size)
        memcpy(until, block.until + block.head, kept * sizeof(int64_t))
        memcpy(until + kept, block.until, block.head * sizeof(int64_t))
    free(block.cell)
    free(block.until)
    block.cell, block.until, block.room, block.head, block.capacity = cell, until, room, 0, words
    block.bytes += more
    return True


cdef void free_block(Core* k, Band* band, KeySlot* key_slot) noexcept nogil:
    if key_slot.block == NULL:
        return
    k.states -= band.queries
    if band.spare == NULL:
        band.spare = key_slot.block
    else:
        drop_block(k, key_slot.block)
    key_slot.block = NULL


cdef void drop_block(Core* k, Block* block) noexcept nogil:
    """Give back the memory of a block or of none."""
    if block != NULL:
        take(k.account, -block.bytes)
        free(block.cell)
        free(block.until)
        free(block)


cdef bint in_lanes(Core* k, Band* band, int64_t key, int64_t time, int* failure) noexcept nogil:
    """Whether a block, and no states, is to take what happens at a time; closes what states have left where it is."""
    cdef KeySlot* key_slot = &band.key_slot[key]
    cdef State* s
    cdef int64_t end, bits = 0
    cdef int i
    if key_slot.until == INT64_MIN:
        return True
    end = floor_divide(time, band.slide) * band.slide + band.within
    if time < key_slot.until:
        key_slot.until = max(key_slot.until, end)
        return False
    for i in range(band.queries):
        s = k.state[key * k.queries + band.query[i]]
        if s != NULL:
            failure[0] = settle(k, band.query[i])
            if failure[0]:
                return False
            bits = max(bits, s.bits)
    if band.exact and bits > band.most_bits and not becomes_limbs(band):
        key_slot.until = max(key_slot.until, end)
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
    key_slot.until = INT64_MIN
    return True


cdef int reach(Core* k, int number, int64_t key, int64_t time, Block** found) noexcept nogil:
    """The block of a key with the windows of a time open; a null pointer where no window is. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef KeySlot* key_slot = &band.key_slot[key]
    cdef const Query* q = &k.query[band.query[0]]
    cdef Block* block = key_slot.block
    cdef int failure
    found[0] = NULL
    if block == NULL:
        if lowest(k, q, time) > floor_divide(time, q.slide):
            return NO_FAILURE
        block = new_block(k, band)
        if block == NULL:
            return OUT_OF_MEMORY
        key_slot.block = block
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
    cdef int64_t low = lowest(k, q, time), high = floor_divide(time, q.slide)
    if close_block(k, band, block, key, low):
        return OUT_OF_MEMORY
    if block.last < block.first:
        block.mapped = False
        block.plain = not band.exact and may_use(k, PLAIN_DOUBLES)
        block.first = low
        block.last = low - 1
        block.bits = 0
        block.weight = 0
        leave_limbs(band, block)
    if block.last < high and open_cohort(k, band, block, high):
        return OUT_OF_MEMORY
    block.border = min((high + 1) * q.slide, low * q.slide + q.within)
    begin_pane(k, band, block)
    return NO_FAILURE


cdef int open_cohort(Core* k, Band* band, Block* block, int64_t window) noexcept nogil:
    """Open all windows up to one, as one cohort."""
    cdef Word* cells
    if block.newest - block.oldest + 1 == block.room:
        if not enlarge_block(k, band, block, min(2 * block.room, band.windows)):
            return OUT_OF_MEMORY
    block.newest += 1
    block.last = block.until[place_of(block, block.newest)] = window
    cells = cells_of(band, block, block.newest)
    memset(cells, 0, block.words * sizeof(Word))
    if band.starts and block.limbs:
        begin_in_limbs(band, block, cells)
    elif band.starts:
        begin_starts(band, cells)
        block.bits = max(block.bits, bit_length(band.shape.slots))
    return NO_FAILURE


cdef void begin_starts(const Band* band, Word* cells) noexcept nogil:
    """The empty trend, where a negated pattern may kill it."""
    cdef const Shape* shape = &band.shape
    cdef Word one
    cdef int i
    if shape.whole:
        one.i = 1
    else:
        one.d = 1.0
    for i in range(band.starts):
        cells[
            (band.start_chunk[i] * shape.slots + band.start_slot[i]) * shape.vectors * shape.width + band.start_lane[i]
        ] = one


cdef int close_block(Core* k, Band* band, Block* block, int64_t key, int64_t low) noexcept nogil:
    """Deliver and close all open windows below `low`."""
    cdef int64_t until, last, lanes
    while block.first <= block.last and block.first < low:
        until = block.until[block.head]
        last = min(until, low - 1)
        lanes = (last - block.first + 1) * band.queries
        k.work[PANE_MATRIX if block.mapped and block.oldest <= block.early else SIMD].windows += lanes
        if block.limbs:
            if deliver_limbs(k, band, block, key, block.first, last):
                return OUT_OF_MEMORY
        elif block.bits and deliver_cells(
            k, band, folded_cells(band, block, block.oldest), key, block.first, last
        ):
            return OUT_OF_MEMORY
        k.windows += lanes
        block.first = last + 1
        if last == until:
            block.oldest += 1
            block.head = 0 if block.head + 1 == block.room else block.head + 1
    return NO_FAILURE


cdef int deliver_cells(
    Core* k, Band* band, const Word* cells, int64_t key, int64_t first, int64_t last
) noexcept nogil:
    """Append the rows of windows that are equal, one for each window and lane with a trend."""
    cdef const Shape* shape = &band.shape
    cdef int chunk, lane, width = band.shape.width
    cdef const Word* sum
    cdef uint64_t* row
    cdef int64_t window, counts = 0  # all of them, bit by bit
    band.machine.finish(shape, &band.finals, cells, band.sums)
    for chunk in range(shape.chunks):
        sum = band.sums + chunk * shape.vectors * width
        for lane in range(chunk * width, min((chunk + 1) * width, band.queries)):
            if sum.i:  # none of the bits of 0.0 either
                counts |= sum.i
                for window in range(first, last + 1):
                    row = new_row(k, &k.rows[band.query[lane]], key, window, 1, band.row_words[lane])
                    if row == NULL:
                        return OUT_OF_MEMORY
                    if window == first:
                        cell_of_lane(band, lane, sum, row)
                    else:
                        memcpy(row, row - band.row_words[lane], band.row_words[lane] * sizeof(uint64_t))
            sum += 1
    if band.exact:
        k.most_bits = max(k.most_bits, bit_length(counts))
    return NO_FAILURE


cdef inline Py_ssize_t place_in_block(const Band* band, int lane, int slot) noexcept nogil:
    """Where in a cohort of words a lane has the first plane of a slot."""
    cdef int width = band.shape.width
    return (
        (<Py_ssize_t> (lane // width) * band.shape.slots + slot) * band.shape.vectors * width + lane % width
    )


cdef void cell_of_lane(const Band* band, int lane, const Word* plane, uint64_t* cell) noexcept nogil:
    """Write the numbers of a lane, [vectors][width] words apart, as a cell of its query of width 1."""
    cdef const Cast* c = band.cast + lane * (band.places + 1)
    cdef const Word* x
    cdef uint64_t* to
    while c.how != CAST_END:
        x = plane + c.plane
        to = cell + c.first
        if c.how == CAST_COUNT:
            to[0] = <uint64_t> x.i
        elif c.how == CAST_LIMBS:
            to[0] = <uint64_t> x.i
            to[1] = cell[c.last] = <uint64_t> (x.i >> 63)
        elif c.how == CAST_FLAG:
            to[0] = x.i != 0
        elif c.how == CAST_DOUBLE:
            scaled_store(to, scaled_normal(x.d, 0))
        elif c.how == CAST_SCALED:
            scaled_store(to, scaled_normal(x.d, x[band.shape.planes * band.shape.width].i))
        else:
            to[0] = x.i != 0
            to[1] = <uint64_t> lanes_value(
                x.i, c.how == CAST_LEAST_DOUBLE or c.how == CAST_GREATEST_DOUBLE,
                c.how == CAST_LEAST_INT or c.how == CAST_LEAST_DOUBLE,
            )
        c += 1


cdef int leave_block(Core* k, int number, int64_t key, int64_t time) noexcept nogil:
    """Close the windows that end at or before `time`; put what stays open on the calendar. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef KeySlot* key_slot = &band.key_slot[key]
    cdef Block* block = key_slot.block
    if block == NULL:
        return NO_FAILURE
    if block.first <= block.last and block.first * band.slide + band.within <= time:
        if close_block(k, band, block, key, first_kept(time, band.within, band.slide)):
            return OUT_OF_MEMORY
        block.border = INT64_MIN  # the next event looks at the windows anew
    if block.last < block.first:
        free_block(k, band, key_slot)
        return NO_FAILURE
    if key_slot.scheduled:
        return NO_FAILURE
    key_slot.scheduled = True
    return schedule_slot(k, ~(key * k.bands + number), block.first * band.slide + band.within)


# ------------------------------------------------------------------------------------------------ bounds

cdef int has_room(Core* k, Band* band, Block* block, const Growth* growth) noexcept nogil:
    """Raise the bounds by what events add; integers become limbs, and doubles are no longer plain, if they have to.

    Returns whether the block can hold it all, -1 without memory.
    """
    if block.limbs:
        return has_limbs(k, band, block, growth)
    if band.exact or block.plain:
        if bound_raised(band, block, growth.bits, growth.starts, growth.weight):
            return True
        measure(band, block)
        if bound_raised(band, block, growth.bits, growth.starts, growth.weight):
            return True
    if band.exact:
        return has_limbs(k, band, block, growth) if becomes_limbs(band) else 0
    if another_map(band, block) and bound_raised(band, block, growth.bits, growth.starts, growth.weight):
        return True
    leave_plain(band, block)
    block.bits = block.bits or growth.starts
    return True


cdef void measure(const Band* band, Block* block) noexcept nogil:
    """The bounds, from what is in the cells."""
    cdef double counts = 0, sums = 0
    cdef int64_t cohort
    if not band.exact:
        measure_plain(band, block)
        return
    for cohort in range(block.oldest, block.newest + 1):
        lanes_measure(&band.shape, cells_of(band, block, cohort), &counts, &sums)
    block.bits = lanes_bits(counts * (1 + 1e-12))
    block.weight = sums * (1 + 1e-12) / lanes_power(block.bits)


cdef int hand_over(Core* k, int number, int64_t key) noexcept nogil:
    """Let every query of a band go on in a state of its own. Returns a Failure."""
    cdef Band* band = &k.band[number]
    cdef KeySlot* key_slot = &band.key_slot[key]
    cdef Block* block = key_slot.block
    cdef int lane
    cdef int64_t slot
    if block == NULL:
        return NO_FAILURE
    end_map(band, block)
    if block.limbs:
        carry(band, block)
    elif band.exact:
        measure(band, block)
    for lane in range(band.queries):
        slot = key * k.queries + band.query[lane]
        if k.state[slot] == NULL:
            k.state[slot] = new_state(&k.query[band.query[lane]])
            if k.state[slot] == NULL:
                return OUT_OF_MEMORY
            k.states += 1
        if unpacked(k, band.query[lane], key) or fill_state(k, band, block, lane, k.state[slot]):
            return OUT_OF_MEMORY
        if block.first <= block.last and not k.state[slot].scheduled:
            if schedule(k, k.state[slot], slot, block.first * band.slide + band.within):
                return OUT_OF_MEMORY
    key_slot.until = block.last * band.slide + band.within
    free_block(k, band, key_slot)
    return NO_FAILURE


cdef int fill_state(Core* k, const Band* band, Block* block, int lane, State* s) noexcept nogil:
    """Put what a lane of vectors holds into a state without open windows. Returns a Failure."""
    cdef const Query* q = &k.query[band.query[lane]]
    cdef int64_t cohort, window
    cdef int slot, set, i, guard
    cdef Word* cells
    cdef uint64_t* cell
    clear_state(q, s)
    s.width = 1
    if more_cohorts(q, s, block.newest - block.oldest + 1):
        return OUT_OF_MEMORY
    if block.limbs and widen(q, s, block.used * LIMB_BITS + LIMB_BITS):
        return OUT_OF_MEMORY
    s.first, s.last, s.lowest, s.border = 0, block.newest - block.oldest, block.first, block.border
    s.bits = block.bits if band.exact and q.cells and not block.limbs else 0  # what has no cells has no counts
    for cohort in range(block.oldest, block.newest + 1):
        cells = cells_of(band, block, cohort)
        window = block.until[place_of(block, cohort)]
        s.until[cohort_at(s, cohort - block.oldest)] = window
        for slot in range(q.cells):
            cell = cell_of(q, s, cohort_at(s, cohort - block.oldest), slot)
            if block.limbs:
                cell_of_limbs(
                    q, band, block, lane, limbs_of_cell(band, block, cells, lane, slot), block.used, cell, s.width
                )
                s.bits = max(s.bits, limbs_bits(cell, s.width))
            else:
                cell_of_lane(band, lane, cells + place_in_block(band, lane, slot), cell)
        for set in range(band.sets):
            slot = band.start[lane * band.sets + set]
            if slot < 0 or has_trend(band, block, cells, lane, slot):
                continue
            for i in range(q.guard_set[2 * set], q.guard_set[2 * set + 1]):
                guard = q.member[i]
                if is_dead(q, band, block, lane, guard, cells):
                    s.killed[guard] = max(1, k.step - 1)  # the step under way may kill again
                    s.killed_time[guard] = window * q.slide
    return NO_FAILURE


cdef bint is_dead(
    const Query* q, const Band* band, const Block* block, int lane, int guard, Word* cells
) noexcept nogil:
    """Whether no start under a guard is alive: then it may count as matched, whichever guard it was."""
    cdef int set, i, slot
    for set in range(band.sets):
        slot = band.start[lane * band.sets + set]
        if slot >= 0 and has_trend(band, block, cells, lane, slot):
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


cdef void hold_key_slots(Core* k) noexcept:
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
                    band.key_slot[key].until = max(
                        band.key_slot[key].until, s.until[cohort_at(s, s.last)] * band.slide + band.within
                    )


cdef Py_ssize_t bytes_in_block(const Core* k, int query, Py_ssize_t key) noexcept nogil:
    """The share of a query in the block of its band."""
    cdef const Band* band
    cdef const Block* block
    if k.band_of[query] < 0:
        return 0
    band = &k.band[k.band_of[query]]
    block = band.key_slot[key].block
    if block == NULL:
        return 0
    return block.bytes // band.queries + (block.bytes % band.queries if k.lane_of[query] == 0 else 0)
