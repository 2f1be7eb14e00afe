"""The matching operator: matching semantics, SPAN, sessions and distinct values, beside the oracle and the kernel."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.inside import kernels_of
from hamlet.errors import MemoryLimitError
from hamlet.output.distinct import estimates
from hamlet.output.partial import decode_components, encode_components
from hamlet.planner.aggregates import ComponentKey
from hamlet.planner.explain import view
from tests.compare_random import chunks_of_few_events, compare, features_of
from tests.comparison import difference, rows_of
from tests.effort import share_of
from tests.strategies import random_case

FEATURES = features_of("semantics,span,session,distinct,broadcast,conjunction")
WAYS: dict[str, dict[str, Any]] = {"exact": {}, "float": {"numbers": "float"}, "threads": {"threads": 2}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
def test_random_workloads(way: str) -> None:
    start = 100_000 * (1 + list(WAYS).index(way))
    for seed in range(start, start + 50):
        with chunks_of_few_events(seed):
            wrong = compare(random_case(seed, FEATURES), WAYS[way], seed)
        assert wrong is None, wrong


def test_random_workloads_that_are_saved_and_restored() -> None:
    for seed in range(500_000, 500_000 + share_of(60)):
        wrong = compare(random_case(seed, FEATURES), {}, seed, ("save",))
        assert wrong is None, wrong


def stream(events: int, seed: int = 3) -> pa.Table:
    """Three types, three keys, ties of three."""
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "time": np.arange(events) // 3,
            "type": pa.array(list("ABC")).take(pa.array(chance.integers(0, 3, events))),
            "k": chance.integers(0, 3, events),
            "v": chance.integers(-50, 50, events),
            "w": chance.normal(size=events),
        }
    )


@pytest.mark.parametrize("window", ["WITHIN 200 s", "WITHIN 100 s SLIDE 30 s"])
@pytest.mark.parametrize("condition", ["", "AND A.v < NEXT(A).v"])
@pytest.mark.parametrize(
    "pattern", ["A+", "SEQ(A, NOT C, A x+)", "(SEQ(NOT C, A+, NOT SEQ(C, C nc), B))+", "SEQ(A+, NOT B)"]
)
def test_it_counts_as_the_kernel_does(pattern: str, condition: str, window: str) -> None:
    """Asked for distinct values too, a query of skip-till-any-match goes the other way; counts pass 64 bits."""
    returns = "COUNT(*), COUNT(A), SUM(A.v), AVG(A.w), MIN(A.v), MAX(A.w), SUM(A.w)"
    text = f"PATTERN {pattern} WHERE [k] {condition} {window}"
    if pattern == "SEQ(A, NOT C, A x+)" and condition:
        text = text.replace("NEXT(A)", "NEXT(x)")
    expected = rows_of(f"RETURN {returns} {text}", stream(1500))
    got = rows_of(f"RETURN {returns}, COUNT(DISTINCT A.v) AS d {text}", stream(1500))
    assert len(got) > 2
    assert all(row["d"] is not None for row in got)
    without = [{name: value for name, value in row.items() if name != "d"} for row in got]
    assert difference(without, expected) is None


def test_counts_pass_64_bits() -> None:
    events = [{"time": time, "type": "A", "v": time % 5} for time in range(300)]
    (row,) = rows_of("RETURN COUNT(*), SUM(A.v), COUNT(DISTINCT A.v) PATTERN A+ WITHIN 1 h", events)
    assert row["count"] == 2**300 - 1
    assert row["sum_A_v"] == sum(time % 5 for time in range(300)) * 2**299
    assert row["count_distinct_A_v"] == 5


FOREIGN = """
    EVENT Closed(place STRING);
    RETURN k, COUNT(*) PATTERN SEQ(A, B) SEMANTICS contiguous GROUP-BY k WITHIN 10 s"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (None, 1),
        ({"type": "Stranger", "k": 1}, 0),
        ({"type": "Stranger", "k": 2}, 1),
        ({"type": None, "k": 1}, 0),
        ({"type": "Stranger"}, 1),  # its key is NULL, which is another group
        ({"type": "Closed", "place": "x"}, 0),  # declared without the key: it agrees with every group
    ],
)
def test_contiguous_sees_events_that_no_query_names(between: dict[str, Any] | None, expected: int) -> None:
    events: list[dict[str, Any]] = [{"time": 1, "type": "A", "k": 1}, {"time": 3, "type": "B", "k": 1}]
    if between is not None:
        events.insert(1, {"time": 2, **between})
    rows = rows_of(FOREIGN, events)
    assert [row["count"] for row in rows] == [1] * expected
    engine = hamlet.Engine(hamlet.Workload.parse(FOREIGN))
    online = [row for event in events for row in engine.push([event])] + engine.close()
    assert online == rows


def test_span_looks_over_the_edges_of_windows_and_last_guards_ahead() -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A, B, NOT C) SPAN 4 s WITHIN 10 s"
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    assert engine.push([{"time": 8, "type": "A"}, {"time": 11, "type": "B"}]) == []
    assert engine.advance(23) == []
    row = {"query": "q1", "window_start": 10, "window_end": 20, "count": 1}
    assert engine.advance(24) == [row]  # as far as a C could have come after the last event of the window
    for time, expected in ((12, []), (13, [row])):
        events = [{"time": 8, "type": "A"}, {"time": 11, "type": "B"}, {"time": time, "type": "C"}]
        assert rows_of(text, events) == expected


def test_sessions_close_after_their_end() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN g, COUNT(*) PATTERN SEQ(A, B) GROUP-BY g WITHIN SESSION 5 s"))
    assert engine.push([{"time": 0, "type": "A", "g": 1}, {"time": 5, "type": "B", "g": 1}]) == []
    assert engine.advance(10) == []  # an event at 10 would still belong to it
    assert engine.advance(11) == [{"query": "q1", "window_start": 0, "window_end": 10, "g": 1, "count": 1}]


def test_queries_that_differ_in_return_share_one_computation() -> None:
    one = "RETURN {} PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE [k] SPAN 20 s WITHIN 60 s;"
    texts = [one.format(items) for items in ("COUNT(*)", "COUNT(*), SUM(B.v)", "MAX(B.v), COUNT(DISTINCT A.v)")]
    together = hamlet.run(hamlet.Workload.parse("".join(texts)), stream(600))
    apart = [hamlet.run(hamlet.Workload.parse(text), stream(600)) for text in texts]
    rows = [{**row, "query": "q1"} for row in together.rows()]
    assert rows == [row for each in apart for row in each.rows()]
    never = hamlet.run(hamlet.Workload.parse("".join(texts)), stream(600), sharing="never")
    assert never.rows() == together.rows()
    assert never.stats["windows"] == 3 * together.stats["windows"] > 0


def test_memory_follows_what_is_alive() -> None:
    """A thousand keys a second that never come back, for a hundred seconds."""
    text = "RETURN COUNT(*), COUNT(DISTINCT B.v) PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE [k] SPAN 2 s WITHIN 4 s"
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    sizes = []
    for second in range(100):
        keys = np.repeat(np.arange(1000) + 1000 * second, 2)
        kinds = pa.array(["A", "B"] * 1000)
        table = pa.table({"time": np.full(2000, second), "type": kinds, "k": keys, "v": keys})
        engine.push(table)
        sizes.append(engine.stats["live_states"])
    assert max(sizes) < 12_000
    assert len(engine.save()) < 4_000_000


def test_memory_limit() -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE A.v < NEXT(B).v SPAN 1 h WITHIN 1 h"
    table = pa.table({"time": np.arange(20_000), "type": ["A"] * 20_000, "v": np.arange(20_000)})
    with pytest.raises(MemoryLimitError, match="query 'q1' holds the most"):
        hamlet.run(hamlet.Workload.parse(text), table, max_memory="100 KB")


def test_types_widen_as_events_arrive() -> None:
    text = """
        RETURN COUNT(*), SUM(A.v), MAX(A.v), COUNT(DISTINCT A.v), APPROX_COUNT_DISTINCT(A.v) AS n
        PATTERN SEQ(A+, B) SEMANTICS NEXT WHERE A.v < NEXT(A).v SPAN 50 s WITHIN 100 s"""
    values = [1, 2, 2.5, 3, 3.5]
    events = [{"time": time, "type": "A", "v": value} for time, value in enumerate(values)] + [{"time": 9, "type": "B"}]
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    rows = [row for event in events for row in engine.push([event])] + engine.close()
    assert rows == rows_of(text, events)
    assert (rows[0]["count"], rows[0]["count_distinct_A_v"], rows[0]["n"]) == (5, 5, 5)


@pytest.mark.parametrize("kind", ["int", "double", "text"])
def test_estimates_of_distinct_values(kind: str) -> None:
    """Exact and approximate counts over groups of several partitions; the error of 4096 registers is 1.6 %."""
    count, chance = 30_000, np.random.default_rng(5)
    numbers = chance.integers(0, 20_000, count)
    values: Any = {"int": numbers, "double": numbers / 8, "text": pa.array([f"v{each}" for each in numbers])}[kind]
    table = pa.table({"time": np.arange(count), "type": ["A"] * count, "k": chance.integers(0, 4, count), "v": values})
    text = "RETURN COUNT(DISTINCT A.v) AS exact, APPROX_COUNT_DISTINCT(A.v) AS near PATTERN A WHERE [k] WITHIN 1 d"
    (row,) = rows_of(text, table)
    assert row["exact"] == len(set(numbers.tolist()))
    assert abs(row["near"] - row["exact"]) < 0.06 * row["exact"]


def test_estimates_are_those_of_the_registers() -> None:
    """Few values give few registers, and are nearly counted; no value gives 0."""
    registers = np.zeros((3, 4096), np.uint8)
    registers[1, 7] = 3
    registers[2, :100] = 1
    assert estimates(registers).tolist() == [0, 1, 101]


def test_sets_travel_as_bytes() -> None:
    chance = random.Random(1)
    keys = [ComponentKey("count"), ComponentKey("distinct", "A", "v"), ComponentKey("registers", "A", "v")]
    registers = bytes(chance.randrange(60) for _ in range(4096))
    for values in (frozenset(), frozenset({-(2**62), 5}), frozenset({0.5, float("inf")}), frozenset({"", "a\0b", "ü"})):
        (encoded,) = encode_components(keys, [[2**70], [values], [registers]])
        assert decode_components(keys, encoded) == [2**70, values, registers]


BOUNDED = (
    ("SEQ(A, B+)", "NEXT", "", "WITHIN 40 s SLIDE 10 s"),
    ("SEQ(A+, NOT C, B+, NOT C x)", "ANY", "", "SPAN 15 s WITHIN 30 s SLIDE 10 s"),
    ("SEQ(A+, NOT C, B+, NOT C x)", "NEXT", "", "WITHIN 40 s SLIDE 10 s"),
    ("SEQ(A+, B)", "ANY", "WHERE A.v <= NEXT(A).v", "SPAN 15 s WITHIN 30 s SLIDE 10 s"),
    ("SEQ(A+, NOT SEQ(C x, C y), B)", "ANY", "WHERE x.v <= NEXT(y).v", "SPAN 15 s WITHIN 30 s"),
    ("SEQ(A, B+)", "CONTIGUOUS", "WHERE A.v <= NEXT(B).v", "WITHIN 40 s SLIDE 10 s"),
    ("SEQ(A+, B+)", "ANY", "", "WITHIN SESSION 20 s"),
)


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("query", BOUNDED)
def test_the_printed_bound_holds(query: tuple[str, str, str, str], numbers: str) -> None:
    pattern, semantics, condition, window = query
    text = f"RETURN COUNT(*), SUM(B.v), APPROX_COUNT_DISTINCT(A.v) PATTERN {pattern} SEMANTICS {semantics} {condition} "
    workload = hamlet.Workload.parse(text + window)
    source = random.Random(7)
    ticks = [place // 2 for place in range(400)]
    events = [{"time": time, "type": source.choice("AAABBC"), "v": source.randint(0, 9)} for time in ticks]
    engine = hamlet.Engine(workload, numbers=numbers)  # type: ignore[arg-type]
    engine.push(events)
    held = int(kernels_of(engine)[0].memory(0).max())
    bits = 400 if "SESSION" in window else 100  # an event doubles a count at most
    memory = view(workload, None).queries[0].memory
    found = memory.exact if numbers == "exact" else memory.scaled
    assert found is not None
    starts = len({time for time in ticks if time >= ticks[-1] - 15})
    lanes = starts if "SPAN" in window else 4 if "SLIDE" in window else 1
    kept = sum(time >= ticks[-1] - 40 for time in ticks) if "SESSION" not in window else len(events)
    most = found.partition + (lanes + 1) * found.window.at(bits)
    most += kept * (found.event + (lanes + 1) * found.event_window.at(bits))
    assert 0 < held <= most
    assert held > most / 400  # and says something


def test_a_record_per_burst_and_query(tmp_path: Path) -> None:
    workload = hamlet.Workload.parse("""
        one: RETURN COUNT(*) PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE [k] WITHIN 10 s;
        two: RETURN COUNT(B) PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE [k] WITHIN 10 s;
        big: RETURN COUNT(*) PATTERN SEQ(A, B+) SEMANTICS NEXT WHERE [k] AND B.v > 1 WITHIN 10 s""")
    events = [
        {"time": time, "type": kind, "k": key, "v": time % 3}
        for time, kind, key in ((1, "A", 7), (2, "B", 7), (3, "B", 8), (4, "C", 7), (5, "B", 7), (12, "B", 7))
    ]
    hamlet.run(workload, events, trace=tmp_path / "t.jsonl")
    with (tmp_path / "t.jsonl").open() as file:
        records = [json.loads(line) for line in file]
    found = [[each[name] for name in ("pane", "key", "type", "b", "n", "k", "queries")] for each in records]
    both: list[str] = ["one", "two"]
    none: list[str] = []
    assert sorted(found) == [
        [0, "k=7", "A", 1, 1, 1, none],
        [0, "k=7", "A", 1, 1, 2, both],
        [0, "k=7", "B", 2, 3, 1, none],  # no query names C
        [0, "k=7", "B", 2, 3, 2, both],
        [0, "k=8", "B", 1, 1, 2, both],
        [10, "k=7", "B", 1, 1, 2, both],
    ]
    assert {each["decision"] for each in records} == {"shared", "alone"}
    assert all(each["shared_cost"] is None and each["s_c"] == 0 for each in records)
