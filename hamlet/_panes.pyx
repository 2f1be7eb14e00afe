"""Pane maps: what a pane makes of a window, computed once for all windows that overlap in it.

No window opens or closes within a pane, so all open windows see the same events, and what these make of a window's
cells S is one linear map: S' = F + sum over the slots j of S_j B_j, where F is what begins within the pane and B_j what
becomes of one trend in slot j. F and the B_j have the form of a window each, so that the programs of events and bursts
run on them as on windows; only the empty trend extends nothing but F. With many windows open this, and to fold every
window with it once, costs less than every step in every window (DESIGN §2, rung 7). A map may span several panes: then
windows that open meanwhile see every step, and those that close are folded as they do.

Integers would need a bound for the products, so only scaled doubles are mapped (numbers=float).
Source: HAMLET (SIGMOD'21) §3.1 (panes); DESIGN §2, rung 7.
"""

from libc.stdint cimport int64_t, uint64_t

from hamlet._kernel cimport Core
from hamlet._lanes cimport Band, Block, LaneProgram, Word


cdef Word* window_of(const Band* band, const Block* block, int64_t window) noexcept nogil:
    """The cells of an open window."""
    cdef int64_t place = window % band.windows if band.windows > 1 else 0  # a division takes as long as a vector's sum
    return block.cell + (place + band.windows if place < 0 else place) * band.words


cdef Word* map_of(const Band* band, const Block* block, int64_t window) noexcept nogil:
    """The pane map that is to be read with the cells of a window; a null pointer where it has all that was."""
    return block.cell + band.windows * band.words if block.mapped and window <= block.early else NULL


cdef int64_t first_apart(const Block* block) noexcept nogil:
    """The first open window that steps are applied to; those before it wait for the map."""
    return max(block.first, block.early + 1) if block.mapped else block.first


cdef void begin_pane(Core* k, const Band* band, Block* block) noexcept nogil:
    """Let the map go on over one more pane, or begin another if it pays, should steps come as they did.

    A map costs its steps, those of windows that opened after it began, and a fold of each window that it began with,
    which reads each slot for each slot. It goes on until the second are as many as the third.
    """
    cdef int64_t windows = block.last - block.first + 1, steps = block.steps
    if block.mapped:
        block.panes += 1
        if block.first <= block.early and block.steps * block.panes < windows * band.shape.slots:
            k.mapped += 1
            return
        steps //= block.panes
        end_map(band, block)
    block.mapped = (
        band.maps > 0 and windows > band.maps
        and steps * (windows - band.maps) * (windows - band.maps) > 2 * windows * band.shape.slots
    )
    block.steps = block.panes = 0
    if block.mapped:
        k.mapped += 1
        block.early = block.last
        band.machine.begin(&band.shape, map_of(band, block, block.first))


cdef void fold_window(const Band* band, const Block* block, int64_t window) noexcept nogil:
    """Bring a window up to what the map has had so far; afterwards nothing else may be done to it."""
    if block.mapped and window <= block.early:
        band.machine.fold(
            &band.shape, window_of(band, block, window), map_of(band, block, window), band.sums
        )


cdef void end_map(const Band* band, Block* block) noexcept nogil:
    """Bring all windows up to what the map has had, and end it."""
    cdef int64_t window
    if block.mapped:
        for window in range(block.first, block.last + 1):
            fold_window(band, block, window)
        block.mapped = False


cdef void apply_step(
    Band* band, Block* block, const LaneProgram* program, int64_t events, uint64_t* found
) noexcept nogil:
    """Let a burst, or one event, take effect; its inputs are loaded.

    The bits of the lanes with trends that it extends are set in `found`, where that is asked for; no map is under way.
    """
    cdef int64_t window
    cdef int i
    block.steps += 1
    if program.kills:
        band.alive_in = NULL
    if block.mapped:
        for i in range(band.maps):
            band.machine.apply(
                &band.shape, program, map_of(band, block, block.early) + i * band.words, band.input, events, i == 0,
                band.sums, NULL,
            )
    for window in range(first_apart(block), block.last + 1):
        band.machine.apply(
            &band.shape, program, window_of(band, block, window), band.input, events, True, band.sums, found
        )
