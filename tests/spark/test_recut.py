"""Cells of a policy that are cut anew between micro-batches: the same rows, and even loads where a heavy value moves.

A job is played without Spark; `test_spark_continuous.py` has one with it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hamlet.checkpoint.pieces import from_bytes
from hamlet.policies import Monitor, Policy
from hamlet.policies.analysis.reach import reach_of
from hamlet.policies.options import OnlineOptions

pytest.importorskip("pyspark")

from hamlet.spark.continuous import WorkCells
from hamlet.spark.failures import TaskError
from hamlet.spark.policy_work import PolicyWork, policy_work
from hamlet.spark.scaling import balanced, largest_share, spread
from hamlet.spark.sliced import recut

SIGNATURE = "a(x: int, y: int)\nb(y: int, z: int)\nc(z: int, x: int)\n"
COLUMNS = pa.schema(
    [("time", pa.int64()), ("type", pa.string()), ("x", pa.int64()), ("y", pa.int64()), ("z", pa.int64())]
)
HAS = {"a": "xy", "b": "yz", "c": "zx"}
POLICIES = (
    "ONCE[0,4] a(x,y) AND ONCE[0,3] b(y,z) AND EVENTUALLY[0,5] c(z,x)",
    "a(x,y) AND NOT (EXISTS z. ONCE[0,6] (b(y,z) AND z > 2)) AND EVENTUALLY[0,2] b(y,z)",
    "(NOT b(y,y)) SINCE[0,5] a(x,y)",
    "a(x,y) AND EVENTUALLY[1,4] (b(y,z) AND PREV[0,3] c(z,x))",
    "n <- CNT w; x, y (a(x,y) AND ONCE[0,7] c(w,x))",
)
STAR = "C(w,z) AND ONCE[0,10] (A(w,x) AND ONCE[0,10] B(w,y))"


class Cells:
    """A job's cells, without Spark."""

    def __init__(self, work: PolicyWork) -> None:
        self.work = work
        self.states: list[bytes | None] = [None] * work.slices
        self.rows: list[dict[str, Any]] = []
        self.cuts = 0

    def take(self, events: pa.RecordBatch) -> dict[int, int]:
        """A micro-batch; gives how many events each cell had."""
        cells = {cell: self.work.opened(cell, state) for cell, state in enumerate(self.states)}
        for packed in self.work.packed(0, [events]):
            for row in packed.to_pylist():
                cells[row["slice"]].take(row["first"], row["latest"], row["seen"], row["events"])
        for cell, found in cells.items():
            for _, data in found.closed():
                self.rows += [row for batch in from_bytes(data) for row in batch.to_pylist()]
            self.states[cell] = found.save()
        return {cell: found.load for cell, found in cells.items()}

    def cut(self) -> dict[int, int] | None:
        """Cut them anew, as a job does that is started again on its checkpoint; gives the loads of lately."""
        found = recut(self.work, self.states)
        if found is None:
            return None
        self.cuts += 1
        self.work, self.states = self.work.again(json.loads(json.dumps(found.shares))), list(found.states)
        return found.loads


def drawn(lot: random.Random, events: int) -> list[dict[str, Any]]:
    """Events of which half have a value that another one follows."""
    time, rows = 0, []
    for _ in range(events):
        time += lot.choice((0, 0, 0, 1, 1, 2, 9 if lot.random() < 0.1 else 0))
        kind, heavy = lot.choice("abc"), (time // 20) % 5
        values = {name: heavy if lot.random() < 0.5 else lot.randrange(6) for name in HAS[kind]}
        rows.append({"time": time, "type": kind, **dict.fromkeys("xyz"), **values})
    return rows


def ordered(rows: Sequence[dict[str, Any]]) -> list[Any]:
    return sorted(sorted((name, value) for name, value in row.items() if name != "policy") for row in rows)


@pytest.mark.parametrize("seed", range(10))
def test_cells_that_are_cut_anew_give_the_rows_of_one_monitor(seed: int) -> None:
    lot = random.Random(seed)
    policy, lateness = Policy.parse(POLICIES[seed % len(POLICIES)], SIGNATURE), lot.choice((0, 3))
    rows = drawn(lot, lot.choice((60, 150)))
    options = OnlineOptions(lateness=lateness)
    cells = Cells(policy_work(policy, COLUMNS, options, lot.choice((2, 5, 8)), adaptive=True))
    one, expected = Monitor(policy, lateness=lateness), []
    cuts = sorted(lot.sample(range(1, len(rows)), 6))
    for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        cells.take(pa.RecordBatch.from_pylist(rows[begin:end], COLUMNS))
        expected += one.push(rows[begin:end])
        if lot.random() < 0.7:
            cells.cut()
    expected += one.advance(rows[-1]["time"] - lateness)
    assert cells.cuts
    assert ordered(cells.rows) == ordered(expected)


@pytest.mark.parametrize("exponent", [1.5, 2.2])
def test_a_heavy_value_that_moves_is_spread_after_one_micro_batch(exponent: float) -> None:
    """Zipf streams over a star (Schneider et al., STTT 2021, §6), whose heavy values are others all of a sudden."""
    signature = "A(w: int, x: int)\nB(w: int, y: int)\nC(w: int, z: int)\n"
    numbers = [(name, pa.int64()) for name in "wxyz"]
    columns = pa.schema([("time", pa.int64()), ("type", pa.string()), *numbers])
    lot, slices, events = np.random.default_rng(1), 3, 1500
    cells = Cells(policy_work(Policy.parse(STAR, signature), columns, OnlineOptions(), 4 * slices, adaptive=True))
    places, shares = spread(4 * slices, slices), []
    for batch in range(8):
        heavy = (lot.zipf(exponent, events) * 7919 + (batch // 4) * 1_000_003) % 10**6
        kinds, others = lot.choice(list("ABC"), events), lot.integers(0, 10**6, events)
        values = [pa.array(others, mask=kinds != kind) for kind in "ABC"]
        times = np.sort(lot.integers(batch * events * 3, (batch + 1) * events * 3, events))
        loads = cells.take(
            pa.RecordBatch.from_arrays([pa.array(times), pa.array(kinds), pa.array(heavy), *values], schema=columns)
        )
        shares.append(largest_share(loads, places))
        if shares[-1] >= 1.25 and largest_share(loads, balanced(loads, places)) >= 1.25:
            fresh = cells.cut()
            assert fresh is not None
            places = balanced(fresh, spread(4 * slices, slices))
    assert shares[0] > 1.5
    assert shares[4] > 1.5
    assert max(shares[1:4] + shares[5:]) < 1.5


def test_what_looks_without_limit_stays_as_it_is() -> None:
    policy = Policy.parse("a(x,y) AND ONCE b(y,z)", SIGNATURE)
    assert reach_of(policy.formula, 1) is None
    cells = Cells(policy_work(policy, COLUMNS, OnlineOptions(), 4, adaptive=True))
    cells.take(pa.RecordBatch.from_pylist(drawn(random.Random(1), 30), COLUMNS))
    assert cells.cut() is None


def test_states_of_another_number_of_slices_are_refused() -> None:
    """Where no plan says where cells are, as for a streaming DataFrame of one's own."""
    work = policy_work(Policy.parse(POLICIES[0], SIGNATURE), COLUMNS, OnlineOptions(), 3)
    state: Any = SimpleNamespace(iterator=lambda: iter([((0, 0), (2, b""))]))
    with pytest.raises(TaskError, match=r"made with 2 slices, and the job has 3 now\nhint: .*give as many \(slices=2"):
        list(WorkCells(work, None).closed(state, iter([])))


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("a(x,y)", 0),
        ("a(x,y) AND ONCE[2,5] EVENTUALLY[0,3) b(x,y)", 7),
        ("PREV a(x,y)", None),
        ("PREV[0,4] a(x,y)", 4),
        ("tp(i) AND a(x,y)", None),
        ("LET p(x) = ONCE[0,3] (EXISTS y. a(x,y)) IN ONCE[0,4] p(x)", 7),
        ("a(x,y) SINCE[0,2] (b(x,y) AND NEXT[0,9] c(x,y))", 11),
    ],
)
def test_how_far_a_formula_looks(text: str, reach: int | None) -> None:
    assert reach_of(Policy.parse(text, SIGNATURE).formula, 1) == reach
