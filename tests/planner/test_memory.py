"""The printed bound holds: what the C allocator gave a kernel against what `hamlet.planner.memory` says before."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet._core import Kernel
from hamlet.engine.sharing import Sharing
from hamlet.input.columns import StringPool
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.memory.budget import Budget
from hamlet.planner.compile import compile_workload
from hamlet.planner.compiled import CompiledQuery
from hamlet.planner.matching_memory import matching_bound
from hamlet.planner.memory import bound
from hamlet.planner.workload import Workload
from optimizer.bounds import Bound

KEYS = 100

BOUNDED = (
    "SEQ(A, B+) WITHIN 2000 s",
    "(SEQ(A+, B+))+ WITHIN 2000 s SLIDE 1000 s",
    "SEQ(A+, NOT C, B) WITHIN 2000 s SLIDE 1000 s",
    "SEQ(A+, NOT SEQ(C, D, E, F), B) WITHIN 2000 s",
    "A+ AND SEQ(A, B*) WITHIN 2000 s",
)
LINEAR = (
    "SEQ(A, B+) WHERE B.v < NEXT(B).v WITHIN 2000 s",
    "SEQ(A, B+) WHERE B.v <> NEXT(B).v WITHIN 2000 s SLIDE 1000 s",
    "SEQ(A, B+) WHERE B.v + NEXT(B).v > 10 WITHIN 2000 s",
    "SEQ(A, NOT SEQ(C, D), B+) WHERE C.v < NEXT(D).v WITHIN 2000 s SLIDE 1000 s",
)


class _Allocated(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library."""

    _fields_ = (
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    )


def allocated() -> int:
    """Bytes that the C allocator has handed out and not got back."""
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        pytest.skip("the C library has no mallinfo2 (GNU, 2.33 or newer), so allocations cannot be counted")
    function.restype = _Allocated
    gc.collect()
    found = function()
    return int(found.uordblks + found.hblkhd)


def work_area(rows: int, count: int) -> None:
    """Let the kernels have the areas in which a batch is put in order, or cut into stretches: they serve all."""
    tables = compiled("SEQ(A, B+) WITHIN 10 s", True).tables[0]
    kernel = Kernel([tables], [0])
    kind = kernel.add_class([(0, tables.arrivals_of["B"], [], 0)], 0)
    times, keys = np.arange(rows), np.arange(rows)[::-1] % count
    for start, orders in ((0, times), (rows, None)):  # what has an order column is never taken as stretches
        kinds, columns = np.full(rows, kind, np.int32), [(times, None)]
        kernel.process(keys, start + times, orders, kinds, columns, np.zeros(1, np.int64), count)


def compiled(pattern: str, exact: bool, items: str = "COUNT(*), SUM(B.v), MIN(B.v)") -> CompiledQuery:
    workload = Workload.parse(f"RETURN {items} PATTERN {pattern}")
    schema = Schema({"v": AttributeType.INT}, Clock("time", "s", pa.int64()), closed=False)
    (query,) = compile_workload(workload.analysis, schema, StringPool(), exact=exact).queries
    return query


def most(of: Bound, windows: int, bits: int, events: int) -> float:
    """Bytes of one partition at most."""
    kept = events * (of.event + windows * of.event_window.at(bits))
    return of.partition + windows * of.window.at(bits) + kept


def settled(measure: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """What one measurement says, or the middle one of three where it is off: other threads ask and give back, too."""
    found, counted = measure()
    if 0.9 * counted <= found <= 1.1 * counted:
        return found, counted
    return sorted([(found, counted), measure(), measure()])[1]


def measured(query: CompiledQuery, events: int) -> tuple[int, int]:
    """Bytes of `KEYS` partitions with so many events each, all windows open: by the allocator, by the kernel."""
    return settled(lambda: _measured_once(query, events))


def _measured_once(query: CompiledQuery, events: int) -> tuple[int, int]:
    types = list(dict.fromkeys(query.analysed.types.values()))
    chosen = np.random.default_rng(events).integers(0, len(types), events)
    keys = np.tile(np.arange(KEYS, dtype=np.int64), events)
    times = np.repeat(np.arange(events, dtype=np.int64), KEYS)
    classes = np.repeat(chosen, KEYS).astype(np.int32)
    values = [(np.arange(len(keys), dtype=np.int64), None)]
    ranks = np.zeros(1, np.int64)
    work_area(len(keys), KEYS)
    budget = Budget()
    kernel = Kernel(list(query.tables), [0], Sharing(), budget)
    for place, type_ in enumerate(types):
        fitting = [variable for variable, its in query.analysed.types.items() if its == type_]
        entries = [
            (
                number,
                [row for variable in fitting for row in tables.arrivals_of.get(variable, ())],
                [row for variable in fitting for row in tables.guard_arrivals_of.get(variable, ())],
                place,
            )
            for number, tables in enumerate(query.tables)
        ]
        kernel.add_class([entry for entry in entries if entry[1] or entry[2]], place)
    before = allocated()  # tables of the plan are there once, whatever comes
    kernel.process(keys, times, None, classes, values, ranks, KEYS)
    return allocated() - before, budget.held


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "float"])
@pytest.mark.parametrize("pattern", BOUNDED + LINEAR)
def test_the_bound_holds(pattern: str, exact: bool) -> None:
    query = compiled(pattern, exact)
    of, windows = bound(query.tables), -(-query.window[0] // query.window[1])
    for events in (5, 100, 1000):
        bits = events + 1  # every event at most doubles what there is
        area = windows * of.thread.at(bits)
        allowance = 32 * 1024  # of Python and numpy themselves, and what a page is rounded up to
        found, counted = measured(query, events)
        assert found <= KEYS * most(of, windows, bits, events) + area + allowance
        assert 0.9 * counted - allowance <= found <= 1.1 * counted + allowance


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("items", ["COUNT(EVENTS A)", "COUNT(EVENTS A), COUNT(*), SUM(A.v), MIN(A.v), AVG(A.v)"])
def test_a_window_of_compared_neighbours_is_added_up_within_the_bound(items: str, numbers: str) -> None:
    pattern, events = "SEQ(A+, B+) WHERE PREV(A).v < A.v AND A.v < NEXT(B).v WITHIN ALL", 1000
    of = matching_bound(compiled(pattern, numbers == "exact", items).matching)
    assert of is not None
    limit = int(most(of, 1, events + 1, events) + of.thread.at(events + 1)) + 32 * 1024
    stream = [{"time": n, "type": "AB"[2 * n // events], "v": n} for n in range(events)]
    workload = Workload.parse(f"RETURN {items} PATTERN {pattern}")
    [row] = hamlet.run(workload, stream, max_memory=limit, numbers=numbers).rows()
    assert row["count_events_A"] == events / 2


@pytest.mark.parametrize("pattern", BOUNDED)
def test_the_bound_is_near_the_truth(pattern: str) -> None:
    """A bound that is far too large holds as well; at least half of these bytes are really there."""
    query = compiled(pattern, exact=False)
    of, windows = bound(query.tables), -(-query.window[0] // query.window[1])
    assert measured(query, 1000)[0] > 0.5 * KEYS * most(of, windows, 0, 0)


@pytest.mark.parametrize("pattern", BOUNDED)
def test_float_memory_does_not_follow_the_events(pattern: str) -> None:
    query = compiled(pattern, exact=False)
    assert bound(query.tables).window.per_bit == 0
    assert bound(query.tables).event == 0
    assert measured(query, 1900)[0] <= 1.05 * measured(query, 950)[0] + 64 * 1024


@pytest.mark.parametrize("pattern", LINEAR)
def test_events_are_kept_where_a_predicate_looks_back(pattern: str) -> None:
    query = compiled(pattern, exact=True)
    assert bound(query.tables).event > 0
