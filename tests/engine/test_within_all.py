"""WITHIN ALL: one window over everything, without edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import WorkloadError
from tests.compare_random import compare, features_of
from tests.effort import share_of
from tests.strategies import random_case

EVENTS = [
    {"time": time, "type": kind, "k": kind in "AB", "v": time}
    for time, kind in [(-900, "A"), (0, "B"), (7, "A"), (50, "B"), (51, "C"), (9000, "B")]
]
TEXT = """
pairs: RETURN COUNT(*), MIN(B.time) AS first PATTERN SEQ(A, B) WITHIN ALL;
near:  RETURN COUNT(*) PATTERN SEQ(A, B) SPAN 43 s WITHIN ALL;
top:   RETURN v, COUNT(*) PATTERN B GROUP-BY v TOP 2 BY v WITHIN ALL;
hours: RETURN COUNT(*) AS n PATTERN B WITHIN 1 h;
all:   RETURN COUNT(*), SUM(hours.n) AS n PATTERN hours WITHIN ALL;
"""
EDGES: dict[str, Any] = {"window_start": None, "window_end": None}
ROWS = [
    {"query": "pairs", **EDGES, "count": 5, "first": 0},
    {"query": "near", **EDGES, "count": 1},
    {"query": "top", **EDGES, "v": 9000, "count": 1},
    {"query": "top", **EDGES, "v": 50, "count": 1},
    {"query": "hours", "window_start": 0, "window_end": 3600, "n": 2},
    {"query": "hours", "window_start": 7200, "window_end": 10800, "n": 1},
    {"query": "all", **EDGES, "count": 2, "n": 3},
]


def test_rows() -> None:
    workload = hamlet.Workload.parse(TEXT)
    assert hamlet.Workload.parse(str(workload)).queries == workload.queries
    assert hamlet.run(workload, EVENTS).rows() == ROWS
    assert hamlet.run(workload, EVENTS, threads=2).rows() == ROWS


def test_online_rows_come_at_the_end() -> None:
    workload = hamlet.Workload.parse(TEXT)
    engine = hamlet.Engine(workload)
    for event in EVENTS[:4]:
        assert engine.push([event]) == []
    engine = hamlet.Engine.restore(workload, engine.save())
    early = [*engine.push(EVENTS[4:]), *engine.advance(20_000)]
    assert {row["query"] for row in early} == {"hours"}
    found = early + engine.close()
    assert sorted(found, key=str) == sorted(ROWS, key=str)


@pytest.mark.parametrize("features", ["everything,span,semantics,top,having", "everything,chained,conjunction"])
def test_random_workloads(features: str) -> None:
    for seed in range(share_of(40)):
        wrong = compare(random_case(seed, features_of(features)), {}, seed, ("run", "push", "save"))
        assert wrong is None, wrong


@pytest.mark.parametrize("base", [-(2**61), 2**61 - 100, 1_700_000_000_000_000_000])
def test_far_times(base: int) -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN ALL; RETURN COUNT(*) PATTERN SEQ(A, B) SPAN 9 s WITHIN ALL"
    workload = hamlet.Workload.parse(text)
    engine = hamlet.Engine(workload)
    engine.push([{"time": base + 1, "type": "A"}, {"time": base + 9, "type": "B"}])
    engine = hamlet.Engine.restore(workload, engine.save())
    engine.push([{"time": base + 100, "type": "B"}])
    assert [row["count"] for row in engine.close()] == [2, 1]
    events = [{"time": -(2**61), "type": "A"}, {"time": 2**61, "type": "B"}]
    assert [row["count"] for row in hamlet.run(workload, events)] == [1]


def test_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, text = tmp_path / "events.jsonl", tmp_path / "all.sase"
    source.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    text.write_text(TEXT)
    page = tmp_path / "page.html"
    arguments = ["run", str(text), "--input", str(source), "--output", "-", "--quiet", "--report", str(page)]
    assert main([*arguments, "--output-format", "json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS
    assert page.stat().st_size > 1000
    assert main(["run", str(text), "--input", str(source), "--output", "-", "--output-format", "csv", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["pairs,,,5,0,,", "near,,,1,,,"]
    assert main(["explain", str(text)]) == 0
    assert "one over everything" in capsys.readouterr().out
    results = hamlet.run(hamlet.Workload.parse(TEXT), EVENTS)
    assert results.table("pairs").to_pylist() == ROWS[:1]
    assert len(list(results.trends("pairs", limit=9))) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q: RETURN COUNT(*) PATTERN A WITHIN ALL SLIDE 3 s", "WITHIN ALL does not slide"),
        ("q: RETURN COUNT(*) PATTERN A WITHIN ALL OFFSET 3 s", "WITHIN ALL has no offset"),
        ("q: RETURN COUNT(*) PATTERN A WITHIN SESSION ALL", "expected a duration after 'SESSION'"),
        (
            "q: RETURN COUNT(*) PATTERN A WITHIN ALL; r: RETURN COUNT(*) PATTERN q WITHIN 3 s",
            "the rows of q have no time",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        hamlet.Workload.parse(text)
