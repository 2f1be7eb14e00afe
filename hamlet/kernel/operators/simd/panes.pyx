"""Pane maps: what a pane makes of a window, computed once for all windows that overlap in it.

No window opens or closes within a pane, so all open windows see the same events, and what these make of a window's
cells S is one linear map: S' = F + sum over the slots j of S_j B_j, where F is what begins within the pane and B_j what
becomes of one trend in slot j. F and the B_j have the form of a window each, so that the programs of events and bursts
run on them as on windows; only the empty trend extends nothing but F. With many windows open this, and to fold every
window with it once, costs less than every step in every window. A map may span several panes: then
windows that open meanwhile see every step, and those that close are folded as they do.

Integers would need a bound for the products, so only scaled doubles are mapped (numbers=float).

**Plain numbers.** As long as the bound that a block keeps says that what steps are applied to stays below
2^LANES_PLAIN_BITS, all its exponents are zero and no step looks at them: in a map, in the cohorts that open after it
began, and where there is no map in all cohorts, until they grow too large. A map that does is folded, and another one
begins. Cohorts that a map was folded into are scaled.

Source: HAMLET (SIGMOD'21) §3.1 (panes).
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from hamlet.kernel.lanes.lanes cimport Band, Block, LaneProgram, Word, lanes_bits, lanes_power
from hamlet.kernel.state.core cimport Core


cdef enum:
    FOLD = 30  # steps of one cohort that a cohort's fold costs, for each slot; measured with a step or two per pane


cdef int place_of(const Block* block, int64_t cohort) noexcept nogil:
    """Where a cohort that is kept, or the next one, lies."""
    cdef int place = block.head + <int> (cohort - block.oldest)
    return place - block.room if place >= block.room else place


cdef Word* cells_of(const Band* band, const Block* block, int64_t cohort) noexcept nogil:
    """The cells of a cohort, as they are in each of its windows."""
    return block.cell + (band.maps + place_of(block, cohort)) * block.words


cdef Word* map_of(const Block* block, int64_t cohort) noexcept nogil:
    """The pane map that is to be read with the cells of a cohort; a null pointer where these have all that was."""
    return block.cell if block.mapped and cohort <= block.early else NULL


cdef int64_t first_apart(const Block* block) noexcept nogil:
    """The first cohort that steps are applied to; those before it wait for the map."""
    return max(block.oldest, block.early + 1) if block.mapped else block.oldest


cdef void begin_pane(Core* k, const Band* band, Block* block) noexcept nogil:
    """Let the map go on over one more pane, or begin another if it pays, should steps come as they did.

    A map costs its steps, those of cohorts that opened after it began, and a fold of each cohort that it began with,
    which reads each slot for each slot. It goes on until the second are as many as the third, or its numbers would
    hardly be plain any longer.
    """
    cdef int64_t cohorts = block.newest - block.oldest + 1, steps = block.steps
    if block.mapped:
        block.panes += 1
        if (
            block.oldest <= block.early and block.steps * block.panes < cohorts * band.shape.slots
            and stays_plain(band, block)
        ):
            k.mapped += 1
            return
        steps //= block.panes
        end_map(band, block)
    block.steps = block.panes = 0
    if (
        band.maps > 0 and cohorts > band.maps
        and steps * (cohorts - band.maps) * (cohorts - band.maps) > FOLD * cohorts * band.shape.slots
    ):
        k.mapped += 1
        leave_plain(band, block)  # a plain number times one of a map may overflow
        begin_map(band, block)


cdef void begin_map(const Band* band, Block* block) noexcept nogil:
    block.mapped = block.plain = True
    block.early = block.newest
    block.bits = 1
    block.weight = 0
    band.machine.begin(&band.shape, block.cell)


cdef bint another_map(const Band* band, Block* block) noexcept nogil:
    """Begin a map anew where the one under way has become too large to be plain; False where there is no such map."""
    if not (block.mapped and block.plain):
        return False
    end_map(band, block)
    begin_map(band, block)
    return True


cdef bint stays_plain(const Band* band, Block* block) noexcept nogil:
    """Whether a map's numbers are plain, and will be at the end of one more pane should they grow as they did."""
    if block.plain and not has_room_for_a_pane(band, block):
        measure_plain(band, block)
    return block.plain and has_room_for_a_pane(band, block)


cdef inline bint has_room_for_a_pane(const Band* band, const Block* block) noexcept nogil:
    """Whether a bound leaves room for one more pane."""
    return (block.bits + lanes_bits(block.weight)) * (block.panes + 1) < band.most_bits * block.panes


cdef int stepped(const Band* band, const Block* block) noexcept nogil:
    """List in `band.cells` what steps are applied to: of a map its slots and what begins in it, and cohorts apart.

    Returns how many of them no trend can begin in; these come first.
    """
    cdef int i, slots = band.maps - 1 if block.mapped else 0
    cdef Word* cell
    if block.mapped:
        cell = block.cell
        band.cells[slots] = cell
        for i in range(slots):
            cell += band.words
            band.cells[i] = cell
    list_cohorts(band, block, first_apart(block), block.newest, band.cells + (band.maps if block.mapped else 0))
    return slots


cdef void list_cohorts(
    const Band* band, const Block* block, int64_t first, int64_t last, Word** cells
) noexcept nogil:
    """The cells of some cohorts, one after the other."""
    cdef Word* end = block.cell + (band.maps + block.room) * block.words
    cdef Word* cell
    cdef int64_t i
    if first <= last:
        cell = cells_of(band, block, first)
        for i in range(last + 1 - first):
            cells[i] = cell
            cell += block.words
            if cell == end:
                cell = block.cell + band.maps * block.words


cdef inline int steppings(const Band* band, const Block* block) noexcept nogil:
    """How many that are."""
    return <int> (block.newest + 1 - first_apart(block)) + (band.maps if block.mapped else 0)


cdef void measure_plain(const Band* band, Block* block) noexcept nogil:
    """The bounds of plain numbers, from what steps are applied to."""
    cdef double counts = 0, sums = 0
    stepped(band, block)
    band.machine.size(&band.shape, band.cells, steppings(band, block), &counts, &sums)
    block.bits = max(lanes_bits(counts * (1 + 1e-9)), 1)
    block.weight = sums * (1 + 1e-9) / lanes_power(block.bits)


cdef void leave_plain(const Band* band, Block* block) noexcept nogil:
    """Let the numbers that steps are applied to have exponents."""
    cdef int i
    if block.plain:
        stepped(band, block)
        for i in range(steppings(band, block)):
            band.machine.scale(&band.shape, band.cells[i])
        block.plain = False
        block.bits = block.bits > 0
        block.weight = 0


cdef const Word* folded_cells(const Band* band, const Block* block, int64_t cohort) noexcept nogil:
    """The cells of a cohort with what the map has had so far, until others are asked for."""
    cdef Word* cells = cells_of(band, block, cohort)
    if map_of(block, cohort) == NULL:
        return cells
    memcpy(band.folded, cells, band.words * sizeof(Word))
    band.cells[0] = band.folded
    fold_cells(band, block, 1)
    return band.folded


cdef inline void fold_cells(const Band* band, const Block* block, int cohorts) noexcept nogil:
    """Fold the first cohorts that `band.cells` lists with the block's map."""
    band.machine.fold(&band.shape, band.cells, cohorts, block.cell, block.plain, band.sums)


cdef void end_map(const Band* band, Block* block) noexcept nogil:
    """Bring all cohorts up to what the map has had, and end it."""
    cdef int64_t last = min(block.early, block.newest)
    if not block.mapped:
        return
    if block.oldest <= last:
        list_cohorts(band, block, block.oldest, last, band.cells)
        fold_cells(band, block, <int> (last + 1 - block.oldest))
    leave_plain(band, block)
    block.mapped = False


cdef void apply_step(
    Band* band, Block* block, const LaneProgram* program, int64_t events, uint64_t* found
) noexcept nogil:
    """Let a burst, or one event, take effect; its inputs are loaded.

    `found` gets the bits of the lanes with trends that it extends; a null pointer for nobody asks.
    """
    cdef int begins
    block.steps += 1
    if program.kills:
        band.alive_in = NULL
    begins = stepped(band, block)
    band.machine.apply(
        &band.shape, program, band.cells, steppings(band, block), begins, band.input, events, block.plain, band.sums,
        found,
    )
