"""Numbers beyond 64 bits in lanes: when the integers of a block become limbs, grow, and are words again (``limbs.h``).

Contract
--------
**Bound.** `bits` and `weight` of such a block bound each limb of one cell, with the recurrence that else bounds its
numbers: what adds trends adds their limbs. Where a limb might outgrow its word, carries are brought up.
**Room.** Only carries and shifts use more limbs. `used` bounds those in use and stays two below `limbs` where something
is added, so that there is always room for a carry; it is measured anew whenever carries are brought up.
**Width.** A block is of words until its numbers outgrow them, and again when none of its windows is open; then it
begins with the limbs that the block before it had in the end.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from hamlet.kernel.cells cimport place_in_cell, words_in_cell, words_of
from hamlet.kernel.lanes.lanes cimport (
    LANES_GREATEST,
    LANES_LEAST,
    LIMB_BITS,
    LIMB_FACTOR,
    LIMB_MAP_LIMBS,
    LIMB_PIECE,
    Band,
    Block,
    Growth,
    LaneProgram,
    Limbs,
    Word,
    aligned,
    bound_raised,
    lanes_value,
    limbs_as_words,
    limbs_grown,
    limbs_in_use,
    limbs_moved,
    limbs_of_words,
    limbs_place,
    limbs_words_of,
)
from hamlet.kernel.operators.scalar.windows cimport append_sum
from hamlet.kernel.operators.simd.panes cimport cells_of, list_cohorts
from hamlet.kernel.plan cimport (
    COUNT,
    LEAST_DOUBLE,
    GREATEST_DOUBLE,
    LEAST_INT,
    NO_FAILURE,
    OCCURRENCES,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_INT,
    Component,
    Query,
)
from hamlet.kernel.state.core cimport Core, take_own
from hamlet.kernel.state.scratch cimport reserve_words
from hamlet.memory.budget cimport take


cdef inline Limbs form_of(const Band* band, int limbs) noexcept nogil:
    """How integers of so many limbs lie."""
    cdef Limbs form = band.limbs
    form.limbs = limbs
    return form


# ------------------------------------------------------------------------------------------------ room

cdef int has_limbs(Core* k, Band* band, Block* block, const Growth* growth) noexcept nogil:
    """Let a block have room for what events add; whether it has, -1 without memory."""
    cdef int grown = growth.limbs
    if block.limbs == 0 and not lay_out(k, band, block, max(5 + grown, min(band.limbs.limbs, 12 + grown))):
        return -1
    if not make_room(k, band, block, grown):
        return -1
    if not bound_raised(band, block, growth.limb_bits, growth.starts, growth.limb_weight):
        carry(band, block)
        if not make_room(k, band, block, grown):
            return -1
        if not bound_raised(band, block, growth.limb_bits, growth.starts, growth.limb_weight):
            return False
    return True


cdef bint make_room(Core* k, Band* band, Block* block, int grown) noexcept nogil:
    """Make room for some more limbs, and a carry; False without memory."""
    if block.used + grown + 1 < block.limbs:
        return True
    carry(band, block)
    if block.used + grown + 1 < block.limbs:
        return True
    return lay_out(k, band, block, block.used + grown + 2 + (block.used + grown) // 2)


cdef int fold_limbs(
    Core* k, Band* band, Block* block, int chunk, const Word* map, int maps, Py_ssize_t apart
) noexcept nogil:
    """Let what maps say be done to a chunk of all windows, whose integers become limbs. Returns a Failure."""
    cdef Limbs form
    cdef int grown = maps * LIMB_MAP_LIMBS
    if block.limbs == 0:
        if not lay_out(k, band, block, max(5 + grown, min(band.limbs.limbs, 12 + grown))):
            return OUT_OF_MEMORY
    elif block.bits > LIMB_BITS + 1:
        carry(band, block)
    if not make_room(k, band, block, grown) or reserve_sums(
        k, band, band.shape.slots * band.shape.planes * block.limbs * band.shape.width
    ):
        return OUT_OF_MEMORY
    form = form_of(band, block.limbs)
    list_cohorts(band, block, block.oldest, block.newest, band.cells)
    block.used = max(block.used, band.machine.limbs_fold(
        &band.shape, &form, chunk, band.cells, <int> (block.newest + 1 - block.oldest), map, maps, apart, band.sums
    ))
    block.bits, block.weight = LIMB_BITS + 1, 1
    return NO_FAILURE


cdef int64_t note_inputs(
    const LaneProgram* program, const Word* x, int64_t m, bint loop, Growth* growth
) noexcept nogil:
    """Add to the bounds of limbs what m events add, which follow one another (`loop`) or are of one time.

    `x` are their inputs. Returns how many times a limb of what they read they add to one at most.
    """
    cdef int i
    cdef uint64_t size
    cdef int64_t factor, most = 0
    cdef bint large = False
    for i in range(program.inputs):
        if program.input[i].of == LANES_LEAST or program.input[i].of == LANES_GREATEST:
            continue
        size = <uint64_t> x[i].i if x[i].i >= 0 else -<uint64_t> x[i].i
        factor = <int64_t> size
        if size >= <uint64_t> 1 << LIMB_FACTOR:
            large = True
            factor = 0
            while size:
                size >>= LIMB_PIECE
                factor += 1 << LIMB_PIECE
        most = max(most, factor)
    growth.limb_weight += most
    growth.limbs = max(growth.limbs, limbs_grown(m, loop, large))
    if loop and m > 1:  # what is read, shifted, and what that carries into the next limb; without what is read
        return max(2 * program.most + 2, program.most * m)
    return program.most * m


cdef bint lay_out(Core* k, Band* band, Block* block, int limbs) noexcept nogil:
    """Let the integers of a block be so many limbs, or words (0) with no window open; False without memory."""
    cdef Limbs had = form_of(band, block.limbs), form = form_of(band, limbs)
    cdef Py_ssize_t words = limbs_words_of(&band.shape, &form), capacity
    cdef Py_ssize_t more
    cdef int64_t cohort
    cdef Word* cells
    cdef Word* old = block.cell
    cdef Block moved
    capacity = max(words, band.words) * block.room
    more = (capacity - block.capacity) * sizeof(Word)
    if not take(k.account, more):
        return False
    cells = <Word*> aligned(capacity * sizeof(Word))
    if cells == NULL:
        take(k.account, -more)
        return False
    memset(cells, 0, words * block.room * sizeof(Word))
    moved = block[0]
    moved.cell, moved.words, moved.limbs, moved.capacity = cells, words, limbs, capacity
    moved.bytes += more
    for cohort in range(block.oldest, block.newest + 1):
        if block.limbs:
            limbs_moved(
                &band.shape, &had, cells_of(band, block, cohort), &form, cells_of(band, &moved, cohort)
            )
        else:
            limbs_of_words(&band.shape, &form, cells_of(band, block, cohort), cells_of(band, &moved, cohort))
    if block.limbs == 0:
        moved.bits, moved.weight, moved.used = LIMB_BITS + 1, 1, 3
    block[0] = moved
    free(old)
    return True


cdef void leave_limbs(const Band* band, Block* block) noexcept nogil:
    """Let integers be words: no window is open."""
    if block.limbs:
        (<Band*> band).limbs.limbs = min(block.limbs, block.used + 2)
    block.limbs = block.used = 0
    block.words = band.words


cdef void carry(const Band* band, Block* block) noexcept nogil:
    """Bring up all carries, and measure the limbs in use."""
    cdef Limbs form = form_of(band, block.limbs)
    cdef int64_t cohort
    block.used = 1
    for cohort in range(block.oldest, block.newest + 1):
        block.used = max(block.used, band.machine.limbs_carry(&band.shape, &form, cells_of(band, block, cohort)))
    block.bits, block.weight = LIMB_BITS + 1, 1


# ------------------------------------------------------------------------------------------------ events

cdef int step_limbs(Core* k, Band* band, Block* block, int takes, int grown, uint64_t* found) noexcept nogil:
    """Let what `band.taken` lists take effect, for which there is room. Returns a Failure."""
    cdef Limbs form = form_of(band, block.limbs)
    cdef Py_ssize_t words = 0
    cdef int i, j
    for i in range(takes):
        for j in range(band.taken[i].program.groups):
            words += 1 + form.whole[band.taken[i].program.group[j].chunk] * form.limbs
            words += band.shape.planes - band.shape.whole
        if band.taken[i].program.kills:
            band.alive_in = NULL
    block.steps += takes
    if reserve_sums(k, band, words * band.shape.width):
        return OUT_OF_MEMORY
    list_cohorts(band, block, block.oldest, block.newest, band.cells)
    form.most = block.used
    block.used += grown
    band.machine.limbs_step(
        &band.shape, &form, band.taken, takes, band.cells, <int> (block.newest - block.oldest + 1), band.sums, found
    )
    return NO_FAILURE


cdef int reserve_sums(Core* k, Band* band, Py_ssize_t words) noexcept nogil:
    """Room for what events of one time make, before it is added."""
    cdef Word* sums
    if words <= band.sums_room:
        return NO_FAILURE
    if not take_own(k, (2 * words - band.sums_room) * sizeof(Word)):
        return OUT_OF_MEMORY
    sums = <Word*> aligned(2 * words * sizeof(Word))
    if sums == NULL:
        take_own(k, -(2 * words - band.sums_room) * sizeof(Word))
        return OUT_OF_MEMORY
    free(band.sums)
    band.sums = sums
    band.sums_room = 2 * words
    return NO_FAILURE


cdef void begin_in_limbs(const Band* band, Block* block, Word* cells) noexcept nogil:
    """The empty trend, where a negated pattern may kill it."""
    cdef Limbs form = form_of(band, block.limbs)
    cdef int i
    for i in range(band.starts):
        cells[
            limbs_place(&band.shape, &form, band.start_chunk[i], band.start_slot[i]) + band.start_lane[i]
        ].i = 1
        limbs_in_use(&band.shape, cells, band.start_chunk[i], band.start_slot[i])[0] = 1


cdef void find_in_limbs(
    const Band* band, Block* block, const LaneProgram* program, int64_t cohort, uint64_t* found
) noexcept nogil:
    """Set the bits of the lanes with trends that an event extends."""
    cdef Limbs form = form_of(band, block.limbs)
    band.machine.limbs_find(&band.shape, &form, program, cells_of(band, block, cohort), found)


# ------------------------------------------------------------------------------------------------ one lane

cdef Word* limbs_of_cell(const Band* band, const Block* block, Word* cells, int lane, int slot) noexcept nogil:
    """The lowest limb of the count of a lane."""
    cdef Limbs form = form_of(band, block.limbs)
    return cells + limbs_place(&band.shape, &form, lane // band.shape.width, slot) + lane % band.shape.width


cdef void cell_of_limbs(
    const Query* q, const Band* band, const Block* block, int lane, const Word* limb, int used, uint64_t* cell,
    int width,
) noexcept nogil:
    """Write the numbers of a lane, of which `limb` is the lowest one of its count, as a cell that is wide enough."""
    cdef const Component* c
    cdef const Word* x
    cdef uint64_t* to
    cdef int i, j, plane, step = band.shape.width, whole = band.limbs.whole[lane // step]
    for i in range(q.components):
        c = &q.component[i]
        plane = band.place[lane * band.places + i]
        to = cell + place_in_cell(c, width)
        if plane < band.shape.whole:
            x = limb + <Py_ssize_t> plane * block.limbs * step
            if c.kind == COUNT or c.kind == OCCURRENCES or c.kind == SUM_INT:
                limbs_as_words(x, used, step, to, words_in_cell(c, width))
                continue
            to[0] = 0
            for j in range(used):
                to[0] |= x[j * step].i != 0
            continue
        x = limb + (<Py_ssize_t> whole * block.limbs + plane - band.shape.whole) * step
        to[0] = x.i != 0
        if c.kind != PRESENT:
            to[1] = <uint64_t> lanes_value(
                x.i, c.kind == LEAST_DOUBLE or c.kind == GREATEST_DOUBLE,
                c.kind == LEAST_INT or c.kind == LEAST_DOUBLE,
            )


cdef bint has_trend(const Band* band, const Block* block, Word* cells, int lane, int slot) noexcept nogil:
    """Whether a lane has a trend in a slot of a cohort."""
    cdef int width = band.shape.width, i
    cdef const Word* limb
    if block.limbs == 0:
        return cells[
            (<Py_ssize_t> (lane // width) * band.shape.slots + slot) * band.shape.vectors * width + lane % width
        ].i != 0
    limb = limbs_of_cell(band, block, cells, lane, slot)
    for i in range(block.used):
        if limb[i * width].i:
            return True
    return False


# ------------------------------------------------------------------------------------------------ rows

cdef int deliver_limbs(
    Core* k, Band* band, Block* block, int64_t key, int64_t first, int64_t last
) noexcept nogil:
    """Append the rows of the windows of the oldest cohort, one for each window and lane with a trend."""
    cdef Limbs form
    cdef const Query* q
    cdef int i, lane, chunk, used, width = band.shape.width, limbs
    cdef int64_t window
    carry(band, block)
    form = form_of(band, block.limbs)
    form.most = block.used
    limbs = ((block.used + 1) * LIMB_BITS + 63) // 64 + 1
    if reserve_sums(k, band, (band.shape.whole * block.limbs + band.shape.planes) * width):
        return OUT_OF_MEMORY
    for i in range(band.finals.groups):
        chunk = band.finals.group[i].chunk
        used = band.machine.limbs_total(
            &band.shape, &form, &band.finals, &band.finals.group[i], cells_of(band, block, block.oldest), band.sums
        )
        if used == 0:
            continue
        for lane in range(chunk * width, min((chunk + 1) * width, band.queries)):
            q = &k.query[band.query[lane]]
            if reserve_words(k, words_of(q, limbs)):
                return OUT_OF_MEMORY
            cell_of_limbs(q, band, block, lane, band.sums + lane % width, used, k.scratch, limbs)
            for window in range(first, last + 1):
                if append_sum(k, q, limbs, k.scratch, band.query[lane], NULL, key, window):
                    return OUT_OF_MEMORY
    return NO_FAILURE
