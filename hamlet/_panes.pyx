"""Pane maps: what a pane makes of a window, computed once for all windows that overlap in it.

No window opens or closes within a pane, so all open windows see the same events, and what these make of a window's
cells S is one linear map: S' = F + sum over the slots j of S_j B_j, where F is what begins within the pane and B_j what
becomes of one trend in slot j. F and the B_j have the form of a window each, so that the programs of events and bursts
run on them as on windows; only the empty trend extends nothing but F. At the end of the pane every window is folded
once. With many windows open this costs less than every step in every window (DESIGN §2, rung 7).

Integers would need a bound for the products, so only scaled doubles are mapped (numbers=float).
Source: HAMLET (SIGMOD'21) §3.1 (panes); DESIGN §2, rung 7.
"""

from libc.stdint cimport int64_t

from hamlet._kernel cimport Core
from hamlet._lanes cimport Band, Block, LaneProgram, Word


cdef Word* window_of(const Band* band, const Block* block, int64_t window) noexcept nogil:
    """The cells of an open window."""
    cdef int64_t place = window % band.windows
    return block.cell + (place + band.windows if place < 0 else place) * band.words


cdef Word* map_of(const Band* band, const Block* block) noexcept nogil:
    """The pane map under way; a null pointer where there is none."""
    return block.cell + band.windows * band.words if block.mapped else NULL


cdef void begin_pane(Core* k, const Band* band, Block* block) noexcept nogil:
    """Map the pane that begins if it pays, should it have as many steps as the one before."""
    cdef int64_t windows = block.last - block.first + 1
    # steps in windows, against steps in maps and a fold of every window, which reads each slot for each slot
    block.mapped = band.maps > 0 and block.steps * (windows - band.maps) > windows * band.shape.slots
    block.steps = 0
    if block.mapped:
        k.mapped += 1
        band.machine.begin(&band.shape, map_of(band, block))


cdef void end_pane(const Band* band, Block* block) noexcept nogil:
    """Bring the windows up to what the pane has had so far."""
    cdef int64_t window
    if block.mapped:
        for window in range(block.first, block.last + 1):
            band.machine.fold(&band.shape, window_of(band, block, window), map_of(band, block), band.sums)
        block.mapped = False


cdef void apply_step(Band* band, Block* block, const LaneProgram* program, int64_t events) noexcept nogil:
    """Let a burst, or one event, take effect; its inputs are loaded."""
    cdef int64_t window
    cdef int i
    block.steps += 1
    if block.mapped:
        for i in range(band.maps):
            band.machine.apply(
                &band.shape, program, map_of(band, block) + i * band.words, band.input, events, i == 0, band.sums
            )
        return
    for window in range(block.first, block.last + 1):
        band.machine.apply(
            &band.shape, program, window_of(band, block, window), band.input, events, True, band.sums
        )
