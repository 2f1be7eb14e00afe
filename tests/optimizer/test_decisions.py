"""Decisions per burst: Fig. 6 as seen in the trace, results that no decision changes, what the counters count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.planner.paths import OPERATORS
from tests.compare_random import FEATURES, compare, decisions_by_lot
from tests.effort import share_of
from tests.strategies import random_case

TWO = """
RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE B.w < 2 WITHIN 1000 s;
RETURN COUNT(*), SUM(B.v) PATTERN SEQ(C, B+) WHERE B.w > 0 WITHIN 1000 s;
"""


def burst(start: int, ws: list[int]) -> list[dict[str, Any]]:
    """Events of B; w = 0 is accepted by the first query only, 2 by the second only, 1 by both."""
    return [{"time": start + place, "type": "B", "v": place, "w": w} for place, w in enumerate(ws)]


def traced(pushes: list[list[dict[str, Any]]], **options: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    engine = hamlet.Engine(hamlet.Workload.parse(TWO), trace=True, **options)
    rows = []
    for events in pushes:  # an event that no query asks for ends the last time step, and no burst
        rows += engine.push([*events, {"time": events[-1]["time"] + 1, "type": "Z", "v": 0, "w": 0}])
    rows += engine.close()
    return [record for record in engine.trace().to_pylist() if record["type"] == "B"], rows


def test_share_split_and_merge_of_one_graphlet() -> None:
    """Fig. 6 under the paper's model: equal bursts are shared, diverging ones split a graphlet, equal ones merge it."""
    begin = [{"time": 0, "type": "A", "v": 0, "w": 1}, {"time": 1, "type": "C", "v": 0, "w": 1}]
    together, apart = [1] * 8, [0, 2, 1, 0, 2, 0, 2, 1]
    pushes = [begin, burst(10, together), burst(20, together), burst(30, apart), burst(40, together)]
    records, rows = traced(pushes, benefit="paper")
    assert [record["decision"] for record in records] == ["shared", "shared", "split", "merged"]
    assert [record["queries"] for record in records] == [["q1", "q2"], ["q1", "q2"], [], ["q1", "q2"]]
    assert [record["b"] for record in records] == [8, 8, 8, 8]
    assert [record["n"] for record in records] == [10, 18, 26, 34]
    assert [record["g"] for record in records] == [8, 16, 24, 8]
    assert [record["s_c"] for record in records] == [1, 0, 0, 1]
    for policy in ("static", "never"):
        assert traced(pushes, sharing=policy)[1] == rows
    assert traced([[event for events in pushes for event in events]])[1] == rows


def test_the_end_of_a_graphlet_forgets_its_decisions() -> None:
    begin = [{"time": 0, "type": "A", "v": 0, "w": 1}, {"time": 1, "type": "C", "v": 0, "w": 1}]
    between = [{"time": 25, "type": "A", "v": 0, "w": 1}]
    together, apart = [1] * 8, [0, 2, 1, 0, 2, 0, 2, 1]
    pushes = [begin, burst(10, together), between, burst(30, apart), burst(40, together)]
    records, _ = traced(pushes, benefit="paper")
    assert [record["decision"] for record in records] == ["shared", "alone", "merged"]
    pushes = [begin, burst(10, apart), [dict(between[0], time=20)], burst(30, together)]
    records, _ = traced(pushes, benefit="paper")
    assert [record["decision"] for record in records] == ["alone", "shared"]


def test_queries_without_trends_take_no_part() -> None:
    """Only q1 has begun: one live member, nobody to share with, whatever the policy."""
    begin = [{"time": 0, "type": "A", "v": 0, "w": 1}]
    records, _ = traced([begin, burst(10, [1] * 8), burst(20, [1])])
    assert [(record["k"], record["decision"], record["queries"]) for record in records] == [(1, "alone", [])] * 2


@pytest.mark.parametrize("features", ["sharing", "default", "large", "negation"])
def test_rows_do_not_depend_on_decisions(features: str) -> None:
    for seed in range(share_of(40)):
        with decisions_by_lot(seed):
            report = compare(random_case(seed, FEATURES[features]), {}, seed)
        assert report is None, report


LEAVES = """
import hamlet
workload = hamlet.Workload.parse(
    "RETURN SUM(x.v) PATTERN SEQ(A, B x+, NOT B y, C) WHERE x.w < 5 AND y.w >= 5 WITHIN 1000 s;"
    "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.w < 5 WITHIN 1000 s;"
    "RETURN COUNT(*) PATTERN SEQ(D, B+) WHERE B.w < 5 WITHIN 1000 s"
)
types = ["A", "D", *"B" * 30, "B", *"B" * 30, "C", "A", *"B" * 500, "C"]
events = [{"time": time, "type": type, "v": time, "w": 7 * (time == 32)} for time, type in enumerate(types)]
found = []
for sharing in ("static", "never"):
    engine = hamlet.Engine(workload, sharing=sharing)
    found.append([*engine.push(events[:32]), *engine.push(events[32:]), *engine.close()])
assert len(found[0]) == 3 and found[0] == found[1], found
"""


def test_a_query_that_leaves_a_graphlet_takes_its_columns_along() -> None:
    """A later class of events is a guard of it, so it is no member; the rows that only it has read are not kept.

    Memory that nobody has written is filled (glibc's switch), so that whoever reads it does not get away with it.
    """
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    subprocess.run([sys.executable, "-c", LEAVES], env=environment, check=True, timeout=60)


@pytest.mark.parametrize("model", ["measured", "paper"])
def test_rows_do_not_depend_on_the_model(model: str) -> None:
    for seed in range(share_of(40)):
        report = compare(random_case(seed, FEATURES["sharing"]), {"benefit": model, "numbers": "float"}, seed)
        assert report is None, report


def test_long_bursts_of_many_queries_are_shared() -> None:
    text = "".join(f"RETURN SUM(B.v) PATTERN SEQ(A, B+) WITHIN {1000 + k} s;" for k in range(50))
    events = [{"time": t, "type": "A" if t % 100 == 0 else "B", "v": t} for t in range(900)]
    stats = hamlet.run(hamlet.Workload.parse(text), events).stats
    assert stats["shared_graphlets"] >= 9
    assert stats["decisions"] >= stats["decisions_by_model"] > 0
    assert stats["decision_ns"] > 0


def test_bursts_are_shared_whoever_is_live() -> None:
    kinds = [f"T{number}" for number in range(40)]
    text = "".join(f"RETURN SUM(B.v) PATTERN SEQ({kind}, B+) WITHIN 1000 s;" for kind in kinds)
    types = [kind for number in range(400) for kind in (kinds[(7 * number + number // 40) % 40], "B", "B", "B")]
    events = [{"time": t * 3, "type": type, "v": t % 5} for t, type in enumerate(types)]
    workload = hamlet.Workload.parse(text)
    others = [each for each in OPERATORS if each != "pane_matrix"]  # its maps are shared without a decision
    stats = hamlet.run(workload, events, operators=others).stats
    assert stats["shared_graphlets"] > 300
    assert 300 < stats["decisions_by_model"] <= stats["decisions"]
    assert hamlet.run(workload, events, sharing="never", operators=others).stats["coefficient_computations"] > 30 * 300


@pytest.mark.parametrize("name", ["trace.parquet", "trace.jsonl"])
def test_the_trace_as_a_file(name: str, tmp_path: Path) -> None:
    events = [
        {"time": 0, "type": "A", "w": 1, "v": 0},
        *burst(10, [1, 2, 0]),
        {"time": 50, "type": "C", "w": 1, "v": 0},
    ]
    path = tmp_path / name
    hamlet.run(hamlet.Workload.parse(TWO), [dict(event, g="x") for event in events], trace=path)
    if name.endswith("parquet"):
        found = pq.read_table(path).to_pylist()
    else:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(record["type"], record["b"], record["k"]) for record in found] == [("A", 1, 1), ("B", 3, 1), ("C", 1, 1)]
    assert list(tmp_path.iterdir()) == [path]


def test_keys_have_names_in_the_trace() -> None:
    text = "RETURN k, COUNT(*) PATTERN SEQ(A, B+) WHERE [s] GROUP-BY k WITHIN 10 s"
    engine = hamlet.Engine(hamlet.Workload.parse(text), trace=True)
    engine.push([{"time": 1, "type": "A", "k": 1, "s": "x"}, {"time": 12, "type": "B", "k": 2, "s": None}])
    engine.close()
    (record,) = engine.trace().to_pylist()
    assert record["key"] == "k=1, s=x"
    assert record["pane"] == 0


@pytest.mark.parametrize("name", ["trace.txt", "trace"])
def test_a_trace_of_another_kind(name: str, tmp_path: Path) -> None:
    with pytest.raises(hamlet.OptionError, match=r"must end in \.parquet, \.jsonl or \.json"):
        hamlet.run(hamlet.Workload.parse(TWO), [], trace=tmp_path / name)


def test_a_trace_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(hamlet.OutputError, match="there is no folder"):
        hamlet.run(hamlet.Workload.parse(TWO), [], trace=tmp_path / "no" / "trace.parquet")
    (tmp_path / "trace.parquet").mkdir()
    with pytest.raises(hamlet.OutputError, match="is a folder; name a file in it"):
        hamlet.run(hamlet.Workload.parse(TWO), [], trace=tmp_path / "trace.parquet")
