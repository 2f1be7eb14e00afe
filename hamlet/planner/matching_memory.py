"""Static memory analysis of the matching operator: what it allocates for a query at most, read from its tables.

The sizes are those of the structs of ``matching/tables.pxd``; tests compare the bound with what the operator counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.kernel.operators.matching.operator import SIZES
from hamlet.planner.matching_tables import MatchingTables
from hamlet.planner.memory import ALLOCATION, WIDER, WORD
from optimizer.bounds import Bound, Line

PLACE = 8 + 2 * 2 * 16  # a partition's pointer, and its entries of the calendar, which grows by doubling
GROWTH = 3  # a list grows by doubling, and its old block is there while it is copied
HEAD = 2  # words of a node before its value
ENTRY = 4  # words of a log's entry before attributes: time, step, bits that may be bound, and that are emptied
LOOKED_THROUGH = 6  # words for an event while its window is looked through
FOUND = 3  # words of what an event is compared by, for a search
LONG_LANE = 8  # nodes of one lane that are not compared with each other
LIMBS = 3  # of a small count: a step's head-room, a quarter more, and one


def matching_bound(parts: Sequence[MatchingTables]) -> Bound | None:
    """What a query needs at most, per partition and per lane; None where sets of values grow.

    A lane is an open window, an open session, or under SPAN a time at which a trend begins that may still grow. The
    working area is that for one event.

    Parameters
    ----------
    parts : sequence of MatchingTables
        All tables of the query, under the kind of numbers that the bound is for.
    """
    if any(not approximate for tables in parts for _, _, approximate, *_ in tables.sets):
        return None
    each = [_bound(tables) for tables in parts]
    return Bound.sum(each)


def _bound(tables: MatchingTables) -> Bound:
    guards = len(tables.guard_first) - 1
    guard_states = tables.guard_first[-1]
    lists = len(tables.states) + len(tables.end_guards) + 1 + len(tables.stores)
    partition = SIZES["partition"] + lists * (SIZES["nodes"] + ALLOCATION) + 2 * WORD * (guard_states + guards)
    partition += ALLOCATION + PLACE
    if tables.logs:
        return _of_log(partition, tables)
    apart = 1 if not guards else LONG_LANE + guard_states + guards  # nodes of a lane that a guard may tell apart
    looks_back = bool(tables.stores)  # nodes of all steps are kept apart
    lane, by_event = [], []
    back = Line(0, 0)
    if tables.slides:
        lane = [_node(tables, 0).times(tables.slots)]
        back = _node(tables, 0).times((1 + tables.slots) * tables.slots)
    for _, single, begin, end, told_apart, *_ in [] if tables.slides else tables.states[1:]:
        stride = _node(tables, end - begin + (end - begin + 7) // 8 if single else 0)
        if single or (told_apart >= 0 and looks_back):
            by_event.append(stride)
        else:
            lane += [stride] * (apart if told_apart >= 0 else 1)
    panes = (max(tables.within, 1) + tables.delay) // tables.pane + 2 if tables.span >= 0 and tables.gap < 0 else 0
    for _ in tables.end_guards:
        stride = _node(tables, 1)
        by_event += [stride] if looks_back else []
        lane += [] if looks_back else [stride] * apart * (max(tables.span // tables.pane, 0) + 2 if panes else 1)
    totals = _node(tables, 0)
    stored = sum(HEAD + end - begin + (end - begin + 7) // 8 for begin, end in tables.stores)
    stored *= len(tables.arrivals) + len(tables.guard_arrivals) if tables.slides else 1
    if panes:
        return _with(partition, Line.sum([totals.times(GROWTH * panes), back]), tables, lane, by_event, stored)
    return _with(partition, Line(0, 0), tables, [*lane, totals], by_event, stored)


def _of_log(partition: int, tables: MatchingTables) -> Bound:
    """Of a query that logs its events, as if it were alone: what each takes is there however many windows it is in."""
    read = {column for _, _, column in (*tables.recorded(), *tables.compared_columns())}
    columns = len(read) + len(tables.takings)
    entry = ENTRY + columns + (columns + 7) // 8
    gates = len({(predicate, guards) for _, guards, predicate in tables.ways if predicate >= 0})
    entry += 2 if gates else 0  # two halves of a word for each entry of the table of keys, four at most
    for each in tables.compared:
        entry += sum(FOUND + max(len(keys), 1) for *_, keys, _ in each.searches)
    entry += gates * max((2 * len(each.searches) or 1 for each in tables.compared), default=0)
    # trends of neighbours that are compared: by state, and in the trees of each gate, as long as a window is added up
    sums = len(tables.states) + gates * sum(len(each.searches) for each in tables.compared) if tables.compared else 0
    trees = _node(tables, 1).times(GROWTH * sums)
    return Bound(partition, Line(0, 0), GROWTH * WORD * (entry + LOOKED_THROUGH), trees, _node(tables, 1))


def _with(
    partition: int, always: Line, tables: MatchingTables, lane: list[Line], by_event: list[Line], stored: int
) -> Bound:
    # What is there whatever comes has no place for the bits of counts: it is counted with the first lane.
    step = _node(tables, 1).times(8 * (len(tables.arrivals) + 1) * (1 + tables.slots if tables.slides else 1))
    return Bound(
        partition,
        Line.sum([always, *(each.times(GROWTH) for each in lane)]),
        GROWTH * WORD * stored,
        Line.sum([each.times(GROWTH) for each in by_event]),
        step,
    )


def _node(tables: MatchingTables, more: int) -> Line:
    """Bytes of one node with so many words behind its value."""
    registers = sum(bool(approximate) for _, _, approximate, *_ in tables.sets) * SIZES["registers"]
    limbs = WIDER * tables.wide
    return Line(WORD * (HEAD + more + tables.fixed + limbs * LIMBS) + registers, WORD * limbs / 64)
