"""Slices of a policy give together what one process gives: random formulas and logs, without Spark."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.parallel.routing.closed import cut_chunks, own, ranges, reach
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import dimensions_of, rates_of
from hamlet.policies import Policy, PolicyError, run
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.verdicts.automata import Verdicts
from tests.compare_policies import tables_of
from tests.random_policies import SIGNATURE, random_log, random_policy

Rows = list[str]


def chunks_of(policy: Policy, draw: random.Random) -> list[LogChunk]:
    """A random log in random pieces."""
    log = random_log(draw, 14)
    found = []
    first = 0
    while first < len(log):
        part = log[first : first + draw.randrange(1, 6)]
        times, tables = tables_of(policy.signature, part)
        found.append(LogChunk(first, times, tables, 0))
        first += len(part)
    return found


def rows_of(policy: Policy, chunks: Any) -> list[pa.RecordBatch]:
    return [batch for _, batch in PolicyRunner([policy], pa.int64(), 1).run(chunks)]


def listed(batches: list[pa.RecordBatch]) -> Rows:
    return sorted(str(row) for batch in batches for row in batch.to_pylist())


def sliced(policy: Policy, chunks: list[LogChunk], slices: int) -> Rows:
    """The rows of all slices."""
    formula = goal(policy.formula)[0]
    found: list[pa.RecordBatch] = []
    if dimensions_of(formula):
        slicer = JointSlicer(formula, slices, rates_of(formula, chunks))
        for slice in range(slices):
            parts = rows_of(policy, [slicer.only(chunk, slice) for chunk in chunks])
            found += [slicer.keep(batch, slice) for batch in parts]
        return listed(found)
    for part in ranges(chunks, *reach(formula, 1), slices):
        for batch in rows_of(policy, cut_chunks(chunks, part)):
            found.append(batch.filter(pa.array(own(batch.column("time").to_numpy(), part))))
    return listed(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_slices_give_the_rows_of_one_process(seed: int) -> None:
    draw = random.Random(seed)
    compared = 0
    while compared < 25:
        policy = Policy.parse(random_policy(draw), SIGNATURE)
        chunks = chunks_of(policy, draw)
        try:
            expected = listed(rows_of(policy, chunks))
        except PolicyError:
            continue
        compared += 1
        for slices in (1, 2, 5):
            assert sliced(policy, chunks, slices) == expected, (str(policy), chunks)


BLOCKS = [
    "(ONCE[0,3] p(x)) AND q(x) AND EVENTUALLY[1,2] p(x)",
    "p(x) AND NOT PREV[0,9] (NOT q(x) SINCE[0,5] p(x))",
    "(EXISTS x. p(x)) AND NOT EVENTUALLY[0,4] EXISTS x. q(x)",
    "p(x) AND tp(i)",
    "p(x) AND ONCE q(x)",
    "NEXT[0,1] p(x)",
    "ALWAYS FORALL x. p(x) IMPLIES EVENTUALLY[0,3] q(x)",
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", BLOCKS)
@pytest.mark.parametrize("time_points", ["step", "event"])
def test_files_are_cut_by_time_and_by_values(text: str, time_points: str, tmp_path: Path) -> None:
    """Blocks of time, cells of valuations, and both: row groups that a task does not need change nothing."""
    tasks = pytest.importorskip("hamlet.spark.policy_tasks")
    batch = pytest.importorskip("hamlet.spark.batch")
    policy = Policy.parse(text, "p(x: int) q(x: int)")
    draw = random.Random(5)
    times = sorted(draw.randrange(60) for _ in range(90))
    table = pa.table(
        {
            "time": times,
            "type": [draw.choice("pqo") for _ in times],
            "x": [draw.choice([1, 2, 3, 4, None]) for _ in times],
        }
    )
    for number, begin in enumerate((0, 40)):
        part = table.slice(begin, 40 if begin == 0 else None)
        pq.write_table(part, tmp_path / f"{1 - number}.parquet", row_group_size=7)  # the earlier file comes later
    one = run(policy, table, time_points=time_points)
    expected = sorted(str(row) for row in one.table().to_pylist())
    assert expected
    kinds = set()
    for slices in (1, 2, 4, 16):
        shipment = tasks.PolicyShipment(text, "p(x: int) q(x: int)", "policy1", "policy", time_points=time_points)
        ways = tasks.Input(str(tmp_path), {})
        shares = tasks.shares_of(shipment, ways, ways.open(policy, time_points), slices, None)
        kinds |= {(share.block is not None, share.slicer is not None) for share in shares}
        out = tmp_path / f".out{slices}"
        (out / "policy=policy1").mkdir(parents=True)
        work = tasks.PolicyShares(shipment, ways, None)
        found = [batch.write_share(work, str(out), "json", each) for each in enumerate(shares)]
        rows = [json.loads(line) for file in out.rglob("*.json*") for line in file.read_text().splitlines()]
        assert sorted(map(str, rows)) == expected, slices
        stats = tasks.summed(shares, found)
        assert stats["rows"] == len(rows)
        assert {**stats, "rows": 0, "slices": 0} == {**one.stats, "rows": 0, "slices": 0, "notes": []}
        assert len(stats["slices"]["loads"]) == len(shares) <= slices
    assert (True, False) in kinds or text in BLOCKS[3:5]


CLOSED = [
    "(EXISTS x. p(x)) AND NOT EVENTUALLY[0,4] EXISTS x. q(x)",
    "e() AND ONCE[1,3] PREV[0,2] EXISTS x. p(x)",
    "e() AND NEXT[0,1] NOT e()",
    "(EXISTS x. p(x)) SINCE[0,3] e()",
    "ONCE e()",
    "ALWAYS ((EXISTS x. p(x)) IMPLIES EVENTUALLY[0,3] e())",
]


@pytest.mark.parametrize("text", CLOSED)
def test_closed_policies_are_cut_by_time(text: str) -> None:
    policy = Policy.parse(text, SIGNATURE)
    for seed in range(15):
        chunks = chunks_of(policy, random.Random(seed))
        expected = listed(rows_of(policy, chunks))
        for slices in (2, 4):
            assert sliced(policy, chunks, slices) == expected, seed


PROPOSITIONAL = [
    "e() AND NOT EVENTUALLY[0,4] p(1)",
    "p(x) AND ONCE[1,3] q(x)",
    "p(x) AND NOT (q(x) SINCE[0,5] p(x))",
    "ALWAYS FORALL x. p(x) IMPLIES EVENTUALLY[0,3] EXISTS y. r(x, y) AND y > 0",
    "p(x) AND NEXT[0,2] q(x)",
    "(p(x) OR q(x)) AND NOT ONCE[1,4] (p(x) AND EXISTS y. r(y, x))",
    "(EXISTS x. p(x) AND q(x)) AND ONCE[0,3] (EXISTS n. (n <- CNT x p(x)) AND n > 1)",
]


@pytest.mark.parametrize("text", PROPOSITIONAL)
def test_verdicts_agree_with_satisfying_valuations(text: str) -> None:
    """A verdict is true (of a rule: false) where there is a row for the key, and nowhere else."""
    policy = Policy.parse(text, SIGNATURE)
    for seed in range(20):
        chunks = chunks_of(policy, random.Random(seed))
        verdicts = Verdicts(policy.formula, policy.signature, "all")
        found = [batch for chunk in chunks for batch in verdicts.feed(chunk, pa.int64())]
        found += verdicts.close(pa.int64())
        serving = PolicyRunner([policy], pa.int64(), 1)
        wanted = not serving.violations[0]
        rows = [row for _, batch in serving.run(chunks) for row in batch.to_pylist()]
        times = np.concatenate([chunk.times for chunk in chunks]).tolist() if chunks else []
        offsets = [point - times.index(time) for point, time in enumerate(times)]
        expected = {(row["time"], offsets[row["time_point"]], *(row[name] for name in verdicts.key)) for row in rows}
        got = {
            (row["time"], row["offset"], *(row[name] for name in verdicts.key))
            for batch in found
            for row in batch.to_pylist()
            if row["verdict"] == wanted
        }
        assert got == expected, seed
