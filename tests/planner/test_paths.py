"""Runs that may use some operators and features only: the same rows, and it is told who computed them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.options import Options
from hamlet.errors import OptionError
from hamlet.explanation.views import OPERATORS as EXPLAINED
from hamlet.input.columns import StringPool
from hamlet.input.events import open_events
from hamlet.planner import paths
from hamlet.planner.compile import compile_workload
from hamlet.planner.paths import FEATURES, OPERATORS, Paths
from hamlet.planner.physical import PhysicalPlan, physical_plan
from tests.comparison import difference, in_file_order

ROOT = Path(__file__).resolve().parents[2]


def stream(length: int = 6_000, groups: int = 9, seed: int = 1) -> pa.Table:
    chance = random.Random(seed)
    time, rows = 0, []
    while len(rows) < length:
        key, type = chance.randrange(groups), chance.choice("AABBBC")
        for _ in range(chance.choice([1, 1, 3])):
            time += chance.choice([0, 1, 1])
            rows.append({"time": time, "type": type, "k": key, "v": chance.randrange(-5, 9)})
    return pa.Table.from_pylist(rows)


TUMBLING = """
    RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 60 s;
    RETURN k, COUNT(*) PATTERN SEQ(B, C) GROUP-BY k WITHIN 60 s;
    RETURN k, MAX(B.v) PATTERN SEQ(A, NOT C, B+) GROUP-BY k WITHIN 60 s
"""
SLIDING = """
    RETURN k, COUNT(*), AVG(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 400 s SLIDE 10 s;
    RETURN k, COUNT(*) PATTERN (SEQ(A, B+))+ GROUP-BY k WITHIN 400 s SLIDE 10 s
"""
LOOKING_BACK = "RETURN k, COUNT(*), SUM(B.v) PATTERN B{2,} WHERE B.v < NEXT(B).v GROUP-BY k WITHIN 50 s"


def served(text: str, *, numbers: str = "exact", **given: Any) -> PhysicalPlan:
    workload, schema = hamlet.Workload.parse(text), open_events(stream(100)).schema
    exact = numbers == "exact"
    compiled = compile_workload(workload.analysis, schema, StringPool(), exact=exact, together=True)
    return physical_plan(compiled, **given)


@pytest.mark.parametrize("text", [TUMBLING, SLIDING, LOOKING_BACK], ids=["tumbling", "sliding", "looking back"])
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_rows_do_not_depend_on_operators(text: str, numbers: str) -> None:
    workload, events = hamlet.Workload.parse(text), stream()
    expected = hamlet.run(workload, events, numbers=numbers, operators="scalar", features=())
    assert {name for name, work in expected.stats["operators"].items() if work["events"]} <= {"scalar", "event_store"}
    assert not any(expected.stats["features"].values())
    for operators in (None, "simd", ["simd", "complete_window"], ["simd", "pane_matrix"]):
        found = hamlet.run(workload, events, numbers=numbers, operators=operators)
        assert (wrong := difference(found.rows(), expected.rows(), floats=numbers == "float")) is None, wrong
        given = found.stats["operators"]
        assert all(
            given[name]["events"] == 0 for name in OPERATORS if not Options(operators=operators).paths.runs(name)
        )


@pytest.mark.parametrize("feature", FEATURES)
def test_rows_do_not_depend_on_a_feature(feature: str) -> None:
    """Each of them alone, and all but it."""
    workload, events = hamlet.Workload.parse(TUMBLING), stream(3_000)
    expected = hamlet.run(workload, events).rows()
    for chosen in ([feature], [name for name in FEATURES if name != feature]):
        found = hamlet.run(workload, events, features=chosen, threads=2 if feature == "time_partitions" else 1)
        assert found.rows() == expected
        assert all(count == 0 for name, count in found.stats["features"].items() if name not in chosen)


def test_who_computes_is_told() -> None:
    for text, numbers, groups, operator in (
        (TUMBLING, "exact", 9, "complete_window"),
        (SLIDING, "exact", 9, "simd"),
        (SLIDING, "float", 3, "pane_matrix"),  # with events in nearly every pane of a group
        (LOOKING_BACK, "exact", 9, "event_store"),
    ):
        plan, events = served(text, numbers=numbers), stream(groups=groups)
        assert {each.operator for each in plan.served.values()} == {operator}
        work = hamlet.run(hamlet.Workload.parse(text), events, numbers=numbers).stats["operators"]
        assert max(work, key=lambda name: work[name]["events"]) == operator
        assert work[operator]["windows"] > 0


def test_counts_of_operators() -> None:
    """One query by itself: every event of its types once, each window once, bursts as there are."""
    events = [{"time": time, "type": type} for time, type in enumerate("ABBBABB")]
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
    work = hamlet.run(workload, events, operators="scalar").stats["operators"]["scalar"]
    assert work == {"events": 7, "bursts": 4, "windows": 1}


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        (TUMBLING, {"sharing": "never"}, "every query is to be computed by itself (sharing='never')"),
        (TUMBLING, {"benefit": "paper"}, "the paper's model decides for every burst (benefit='paper')"),
        (TUMBLING, {"trace": True}, "each decision about a burst is recorded"),
        (TUMBLING, {"paths": Paths(frozenset({"simd"}))}, "operators= leaves out complete_window"),
        (TUMBLING, {"paths": Paths(frozenset())}, "operators= leaves out simd"),
        (
            TUMBLING.replace("k WITHIN 60 s;", "k WITHIN 30 s;", 1),
            {},
            "queries of the same partition have other windows",
        ),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 4 s SLIDE 9 s", {}, "there are gaps between its windows"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 4 s", {"numbers": "float"}, "at most 3 windows overlap"),
        (LOOKING_BACK, {}, "it compares an event with earlier ones, which have to be kept"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B) WITHIN 9 s", {}, "it has a negated pattern that is longer"),
    ],
)
def test_why_no_faster_one(text: str, given: dict[str, Any], reason: str) -> None:
    found = served(text, **given).served[0]
    assert found.instead is not None
    assert (found.reason or "").startswith(reason)


def test_why_all_other_queries_of_a_partition_are_slower() -> None:
    found = served(TUMBLING.rstrip() + "; late: " + LOOKING_BACK.replace("50 s", "60 s")).served
    assert found[0].reason == "late, which has the same partition, cannot run side by side"
    assert found[3].operator == "event_store"


def test_names() -> None:
    with pytest.raises(OptionError, match="operators has 'vector'; the operators are 'scalar', 'event_store',"):
        Options(operators=["simd", "vector"])
    with pytest.raises(OptionError, match="features is 3; it must be names, such as active_queries, int32"):
        Options(features=3)  # type: ignore[arg-type]
    assert Options(operators=" simd,scalar ").operators == "scalar,simd"
    assert list(EXPLAINED) == sorted(OPERATORS, key=list(EXPLAINED).index)
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    for name, what in (*OPERATORS.items(), *FEATURES.items()):
        assert f"| `{name}` |" in page, name
        assert what
    assert set(paths._core.OPERATORS) | {"matching"} == set(OPERATORS)
    assert set(paths._core.FEATURES) | {"merged_queries", "time_partitions"} == set(FEATURES)


def test_a_save_keeps_the_choice() -> None:
    workload, events = hamlet.Workload.parse(TUMBLING), stream(400).to_pylist()
    expected = hamlet.run(workload, events).rows()
    engine = hamlet.Engine(workload, operators=["scalar"], features=["index"])
    rows = engine.push(events[:200])
    engine = hamlet.Engine.restore(workload, engine.save())
    assert (engine.options.operators, engine.options.features) == ("scalar", "index")
    rows += [*engine.push(events[200:]), *engine.close()]
    assert in_file_order(rows, workload.names) == expected
