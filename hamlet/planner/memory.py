"""Static memory analysis: what the kernel allocates for a query at most, read from its tables before any event comes.

The sizes below are those of the structs of ``state.pxd`` and ``core.pxd`` on a 64-bit machine; tests compare the
bound with what the C allocator says. Source: docs/numbers.md; Faymonville et al. 2017 (static
bounds of RTLola).
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet._core import COMPONENTS, SOURCES
from hamlet.kernel.operators.pane_matrix.limb_matrices import serves
from hamlet.planner.tables import QueryTables
from optimizer.bounds import Bound, Line

WORD = 8
STATE = 152 + 4 * 8  # struct State, and the last windows of a few cohorts
STORE = 128  # struct Store
INDEX = 56  # struct Index
RUN = 56  # struct Run
UNTIL = 8  # the last one of windows that opened at one turn
ALLOCATION = 16  # what the C allocator adds to a block, padding included
PAST = 56  # struct Past, in an array that grows by halves
PLACE = (8 + PAST) * 3 // 2 + 2 * 16  # its pointer and its entry of the calendar, which grows by doubling
BURST = 8 * 1024 + 16  # the rows of the longest burst
CHOICES = 2 * 8 * 256 + 16  # what is known of earlier decisions
PENDING = 2 * 1024  # struct Pending, the bursts that wait for a query, and struct Chain
FORM = 240  # struct Form, of an arrival
NODE = 16  # step and time of a node
START_NODE = 16  # its value in a store of starts: a step and a time
COLUMN = 9  # a value and whether there is one
MERGED = 8  # a merging store is thinned out past this many nodes and one per state of a negated pattern
SPARE = 4  # stores double once they are more than half full, and what an index merges is there twice
SMALLEST = 8  # nodes
RECENT = 16  # nodes that an index keeps unsorted
SCAN_BLOCK = 512  # nodes of a scan whose weights have one exponent
SCALE = 2  # words of that exponent
FROM_STORE = SOURCES["store"]
SCALED = {COMPONENTS[name] for name in ("sum_double", "count_scaled", "occurrences_scaled")}
PANES = 1024  # struct Panes
TRAILER = 40  # behind what a stack has
RUNS = 8  # of an index; more of them take thousands of nodes, and vanish beside what is counted for those
WIDER = 1.25  # a state that needs more limbs takes a quarter more than it needs
STEP_BITS = 64  # head-room for one step: the kernel adds fewer than 2^62 numbers, and keeps 2 bits free


def bound(parts: Sequence[QueryTables], *, panes: bool = False) -> Bound:
    """What a query needs at most.

    Parameters
    ----------
    parts : sequence of QueryTables
        All tables of the query, under the kind of numbers that the bound is for.
    panes : bool
        Whether ``limb_matrix`` may have it.
    """
    each = [_with_panes(tables, _bound(tables)) if panes and serves(tables) else _bound(tables) for tables in parts]
    return Bound.sum(each)


def _bound(tables: QueryTables) -> Bound:
    cell = _cell(tables)
    cells, most = len(tables.cell_guards), _merged_nodes(tables)
    numbers = 4 * tables.guard_states + 3 * len(tables.simple) + 1
    partition = STATE + PLACE + (len(tables.stores) + 1) * STORE + (len(tables.indexes) + 1) * INDEX
    partition += WORD * (numbers + 1) + 3 * ALLOCATION
    nodes, event, kept = 0, 0, 0  # nodes that are there without any event; bytes per event; sums per event
    weights = WORD * sum(kind in SCALED for kind, *_ in tables.components)  # of one node, where its store is scanned
    weighed = 0
    for place, (begin, end, merging, _, starts) in enumerate(tables.stores):
        if (
            weights
            and not starts
            and any(
                kind == FROM_STORE and store == place and predicate >= 0 > index
                for kind, store, _, predicate, index in tables.sources
            )
        ):
            partition += 2 * ALLOCATION
            weighed += 1
        head = NODE + COLUMN * (end - begin) + (START_NODE if starts else 0)
        always = most if merging == 1 else SMALLEST
        partition += always * head + WORD + 1 + 5 * ALLOCATION
        nodes += 0 if starts else always
        if merging != 1:
            event += SPARE * head
            kept += not starts
    for _, _, keys, *_ in tables.indexes:
        entry = WORD * (1 + keys)  # its number and its keys
        partition += RECENT * entry + RUNS * (RUN + 3 * (WORD + ALLOCATION)) + 3 * ALLOCATION
        event += SPARE * entry
        kept += 1
    arrivals = len(tables.arrivals) + 1
    step = cell.times(3 * arrivals + max(cells, most, SMALLEST))
    return Bound(
        partition,
        _plus(cell.times(cells + nodes), weighed * weights * (SMALLEST + SCALE) + UNTIL),
        event,
        _plus(cell.times(SPARE * kept), weighed * weights * SPARE * (1 + SCALE / SCAN_BLOCK)),
        # sums of a step, of which old and new exist while they move to a larger area; a copy of what is being widened;
        # the burst of each type, the one that is put in order, and those that wait
        Line(step.constant + BURST + tables.types * (BURST + CHOICES) + PENDING + arrivals * FORM, step.per_bit),
    )


def _with_panes(tables: QueryTables, alone: Bound) -> Bound:
    """What ``limb_matrix`` needs, too: it goes from the cells of each window to stacks of panes and back.

    The maps of panes since a turn have counts that multiply, so their bits add up to those of the largest count. They,
    the products and the map under way are [1 + cells][cells]; there are more windows than 1 + cells, so a window has
    a share of `cells` cells in each of these. An area that grows is there twice, once half as large again.
    """
    cells, cell = len(tables.cell_guards), _cell(tables)
    borders = 1 if tables.within % tables.slide == 0 else 2  # panes that a window's opening and closing end
    maps = borders * ((1 + cells) * cells * cell.at(0) + TRAILER)
    areas = _plus(cell.times(5 * cells), maps + TRAILER)  # the front; and the back, products, the pane under way
    scratch = cell.times(len(tables.arrivals) + 1)
    return Bound(
        alone.partition + 3 * PANES,
        Line.sum([alone.window, areas.times(3)]),
        alone.event,
        alone.event_window,
        Line.sum([alone.thread, scratch]),
    )


def _cell(tables: QueryTables) -> Line:
    """Bytes of one cell: its limbs have room for the bits of the largest count and those of a step."""
    limbs = WIDER * tables.wide
    return Line(WORD * (tables.fixed + limbs * (1 + STEP_BITS / 64)), WORD * limbs / 64)


def _merged_nodes(tables: QueryTables) -> int:
    """The capacity of a merging store: smallest doubling that holds its nodes twice."""
    capacity = SMALLEST
    while capacity < 2 * (MERGED + tables.guard_states):
        capacity *= 2
    return capacity


def _plus(line: Line, constant: float) -> Line:
    return Line(line.constant + constant, line.per_bit)
