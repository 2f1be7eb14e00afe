"""Events out of order: the lateness buffer, late events, promised times, and rows that never depend on the batches."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hamlet
from hamlet import oracle
from hamlet.errors import DataError, HamletError, OptionError
from hamlet.language.parser import parse
from tests.case_files import oracle_options
from tests.comparison import difference, in_file_order
from tests.strategies import DEFAULT, Case, case_strategy

COUNT = "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"
Events = list[dict[str, Any]]

some = settings(max_examples=100, suppress_health_check=list(HealthCheck))


def engine(text: str = COUNT, **options: Any) -> hamlet.Engine:
    return hamlet.Engine(hamlet.Workload.parse(text), **options)


def stream(types: str, times: Iterable[int] | None = None) -> Events:
    listed = range(len(types)) if times is None else times
    return [{"time": time, "type": type_} for time, type_ in zip(listed, types, strict=True)]


def pushed(running: hamlet.Engine, pieces: Iterable[Any]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for piece in pieces:
        found += running.push(piece)
    return found + running.close()


def split(events: Sequence[dict[str, Any]], source: random.Random) -> list[Events]:
    """The events in random pieces, some of them empty."""
    pieces, rest = [], list(events)
    while rest:
        size = source.choice([0, 1, 1, 2, 5, len(rest)])
        pieces.append(rest[:size])
        rest = rest[size:]
    return pieces


def disordered(events: Events, lateness: int, source: random.Random) -> Events:
    """The events in an order of arrival in which none is late: each is delayed by up to `lateness` ticks."""
    delayed = [(event["time"] + source.uniform(0, lateness), source.random(), event) for event in events]
    return [event for _, _, event in sorted(delayed, key=lambda each: each[:2])]


# -------------------------------------------------------------------------------------- equal rows, whatever comes


@some
@given(case=case_strategy(DEFAULT), seed=st.integers(0, 10**6), lateness=st.sampled_from([0, 1, 2, 5, 50]))
def test_arrival_within_the_lateness_makes_no_difference(case: Case, seed: int, lateness: int) -> None:
    text, events, options = case
    source = random.Random(seed)
    arrived = disordered(events, lateness, source)
    running = engine(text, lateness=lateness, **options)
    rows = in_file_order(pushed(running, split(arrived, source)), running.workload.names)
    expected = oracle.evaluate(parse(text), events, **oracle_options(options))
    assert difference(rows, expected) is None
    assert running.stats["late_events"] == 0


@some
@given(seed=st.integers(0, 10**6), lateness=st.sampled_from([0, 3, 10]), numbers=st.sampled_from(["exact", "float"]))
def test_long_disordered_streams_equal_the_sorted_run(seed: int, lateness: int, numbers: str) -> None:
    source = random.Random(seed)
    start = source.choice([-500, 0, 10**9])
    events = [
        {"time": start + i // 3, "type": source.choice("AABBBC"), "k": source.choice("xyz"), "v": source.randint(-9, 9)}
        for i in range(300)
    ]
    text = """RETURN k, COUNT(*), SUM(B.v), MIN(B.v) PATTERN SEQ(A+, NOT C, B+) GROUP-BY k WITHIN 20 s SLIDE 7 s;
              RETURN COUNT(*), AVG(B.v) PATTERN SEQ(A, B+) WHERE [k] AND B.v < NEXT(B).v WITHIN 15 s;"""
    running = engine(text, lateness=lateness, numbers=numbers, threads=source.choice([1, 2]))
    rows = in_file_order(pushed(running, split(disordered(events, lateness, source), source)), ["q1", "q2"])
    assert rows == hamlet.run(running.workload, events, numbers=numbers).rows()


def test_ties_may_be_split_over_pushes() -> None:
    events = stream("AABBB", [0, 0, 0, 1, 1])
    expected = hamlet.run(hamlet.Workload.parse(COUNT), events).rows()
    for order in ([[0], [1], [2], [3], [4]], [[2, 0], [1, 4], [3]], [[2], [], [1], [0, 3], [4]]):
        assert pushed(engine(), [[events[place] for place in piece] for piece in order]) == expected


def test_an_order_column_orders_late_arrivals_too() -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s"
    a, b, c = ({"time": 3, "type": type_, "o": o} for type_, o in (("A", 1), ("B", 2), ("B", 0)))
    for order in ([a, b, c], [b, c, a], [c, a, b]):
        (row,) = pushed(engine(text, order_column="o"), [[event] for event in order])
        assert row["count"] == 1


# ------------------------------------------------------------------------------------------------- late events


def test_a_late_event_is_refused_and_nothing_is_taken() -> None:
    running = engine(lateness=2)
    running.push(stream("AB", [10, 14]))
    late = stream("BBA", [13, 12, 11])
    with pytest.raises(DataError, match=r"event 5 is late: its time is 11, and no event before 12 is expected"):
        running.push(late)
    assert running.stats["late_events"] == 0
    running.push(late[:2])
    (row,) = running.close()
    assert row["count"] == 2**3 - 1


def test_a_refused_push_teaches_no_types() -> None:
    running = engine("RETURN COUNT(*), MAX(B.v) PATTERN SEQ(A, B+) WITHIN 10 s")
    running.push(stream("A", [5]))
    with pytest.raises(DataError, match="late"):
        running.push([{"time": 1, "type": "B", "v": dt.datetime(2024, 1, 1)}])
    running.push([{"time": 6, "type": "B", "v": 3}])
    assert running.close()[0]["max_B_v"] == 3


@some
@given(
    times=st.lists(st.integers(-30, 30), min_size=1, max_size=30),
    seed=st.integers(0, 999),
    lateness=st.integers(0, 20),
    promises=st.booleans(),
)
def test_each_event_is_judged_by_those_before_it(times: list[int], seed: int, lateness: int, promises: bool) -> None:
    """What is dropped, and the rows, do not depend on how the events are split over pushes."""
    source = random.Random(seed)
    events = [{"time": time, "type": source.choice("AB"), "v": place} for place, time in enumerate(times)]
    kept, largest, dropped = [], times[0], 0
    for event in events:
        in_time = event["time"] >= largest - lateness
        kept += [event] * in_time
        dropped += not in_time
        largest = max(largest, event["time"])
    text = "RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A+, B+) WITHIN 12 s SLIDE 5 s"
    running = engine(text, lateness=lateness, late="drop")
    rows: list[Mapping[str, Any]] = []
    for piece in split(events, source):
        rows += running.push(piece)
        if promises and piece:
            rows += running.advance(max(event["time"] for event in piece) - lateness)  # says nothing new
    assert rows + running.close() == hamlet.run(running.workload, kept).rows()
    assert running.stats["late_events"] == dropped


def test_late_events_may_be_all_of_a_push() -> None:
    running = engine(late="drop")
    running.push(stream("AB", [10, 11]))
    assert running.push(stream("AB", [1, 2])) == []
    assert running.stats["late_events"] == 2
    assert [row["count"] for row in running.close()] == [1]


@pytest.mark.parametrize(
    ("lateness", "unit", "kept"),
    [
        (1500, "ms", 1500),
        ("1.5 s", "ms", 1500),
        ("2 min", "s", 120),
        ("1 ms", "s", 1),
        (dt.timedelta(seconds=2), "s", 2),
    ],
)
def test_lateness_in_ticks_or_time(lateness: Any, unit: str, kept: int) -> None:
    running = engine(lateness=lateness, time_unit=unit)
    running.push([{"time": 10_000, "type": "A"}])
    running.push([{"time": 10_000 - kept, "type": "A"}])
    with pytest.raises(DataError, match="is late"):
        running.push([{"time": 10_000 - kept - 1, "type": "A"}])


@pytest.mark.parametrize("lateness", [-1, 0.5, float("inf"), float("nan"), None, True, "5", "5 parsecs", "-5 s", [1]])
def test_wrong_lateness(lateness: Any) -> None:
    with pytest.raises(OptionError, match=r"lateness is .*; it must be a number of ticks >= 0 or a duration"):
        engine(lateness=lateness)


def test_endless_lateness_and_other_wrong_options() -> None:
    assert (
        pushed(engine(lateness=10**30), [stream("B", [9]), stream("A", [-(2**60)]), stream("A", [1])])[0]["count"] == 1
    )
    with pytest.raises(OptionError, match="late is 'ignore'"):
        engine(late="ignore")


# ----------------------------------------------------------------------------------------------- advance, close


def test_advance_closes_windows_without_events() -> None:
    running = engine("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s SLIDE 5 s")
    running.push([{"time": time, "type": "A", "k": time % 4} for time in range(4)])
    assert running.advance(4) == []
    assert [(row["window_start"], row["k"]) for row in running.advance(5)] == [(-5, k) for k in range(4)]
    assert [(row["window_start"], row["k"]) for row in running.advance(10**15)] == [(0, k) for k in range(4)]
    assert running.stats["live_states"] == 0
    assert running.close() == []


def test_windows_close_on_time_in_every_group() -> None:
    """One group goes on, the others are silent: their windows close with it."""
    running = engine("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s")
    running.push([{"time": 1, "type": "A", "k": k} for k in ("x", "y", "z")])
    running.push([{"time": 11, "type": "A", "k": "x"}])
    rows = running.push([{"time": 12, "type": "Z", "k": "x"}])
    assert rows == []  # given with the first event of the next window
    running = engine("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s", lateness=3)
    running.push([{"time": 1, "type": "A", "k": k} for k in ("x", "y", "z")])
    assert running.push([{"time": 12, "type": "Z", "k": "x"}]) == []  # 9 is still possible
    assert [row["k"] for row in running.push([{"time": 13, "type": "Z", "k": "x"}])] == ["x", "y", "z"]
    assert running.stats["live_states"] == 0


def test_a_promise_makes_events_late() -> None:
    running = engine(lateness=100)
    running.push(stream("A", [50]))
    running.advance(55)
    with pytest.raises(DataError, match=r"its time is 54, and no event before 55 is expected"):
        running.push(stream("B", [54]))
    running.advance(10)  # takes nothing back
    running.push(stream("B", [55]))
    assert running.close()[0]["count"] == 1


def test_advance_reads_the_time_columns_type() -> None:
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    running = engine()
    running.advance(start - dt.timedelta(days=1))  # before the first event, and remembered
    running.push([{"time": start, "type": "A"}, {"time": start + dt.timedelta(seconds=1), "type": "B"}])
    for moment in ("noon", 1.5, None, True, start.replace(tzinfo=None)):
        with pytest.raises(OptionError, match=r"cannot read .* as a time of column 'time'"):
            running.advance(moment)
    (row,) = running.advance(start + dt.timedelta(seconds=10))
    assert (row["window_start"], row["count"]) == (start, 1)
    early = engine()
    early.advance(dt.datetime(2024, 1, 1))
    with pytest.raises(DataError, match="its time is 2023-12-31T00:00:00, and no event before 2024-01-01T00:00:00"):
        early.push([{"time": dt.datetime(2023, 12, 31), "type": "A"}])
    dates = engine()
    dates.push({"time": np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"), "type": ["A", "B"]})
    assert dates.advance(np.datetime64("2024-01-03")) == []


@pytest.mark.parametrize("time", [0.25, np.float64(0.25), Decimal("0.25"), "0.25", 0])
@pytest.mark.parametrize("saved", [False, True])
def test_advance_before_the_first_of_times_with_a_fraction(time: Any, saved: bool) -> None:
    """In what unit a number is, the first event says."""
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 500 ms SLIDE 250 ms")
    running = hamlet.Engine(workload)
    assert running.advance(-1) == running.advance(time) == running.advance(-0.5) == []
    running = hamlet.Engine.restore(workload, running.save()) if saved else running
    with pytest.raises(DataError, match=f"no event before {float(time)} is expected"):
        running.push([{"time": float(time) - 0.001, "type": "A"}])
    assert running.push([{"time": 0.25, "type": "A"}, {"time": 0.4, "type": "B"}]) == []
    assert [row["count"] for row in running.advance(1)] == [1, 1]


@pytest.mark.parametrize("time", [10**30, -(10**30), 2**62])
def test_advance_beyond_all_time(time: int) -> None:
    running = engine()
    running.push(stream("AB"))
    with pytest.raises(OptionError, match=r"at most 2\^61 ticks; close\(\) ends the stream"):
        running.advance(time)
    assert running.close()[0]["count"] == 1


def test_a_closed_engine_says_so() -> None:
    running = engine()
    assert running.close() == []
    assert running.close() == []
    for call in (lambda: running.push(stream("A")), lambda: running.advance(1), running.save):
        with pytest.raises(HamletError, match="the engine is closed; make a new one"):
            call()


# ------------------------------------------------------------------------------------------ columns that change


def test_types_widen_with_live_state() -> None:
    """NULL, then INT, then DOUBLE, while windows are open: sums, extrema and stored neighbours go on."""
    text = """RETURN COUNT(*), SUM(B.v), AVG(B.v), MIN(B.v), MAX(B.v) PATTERN SEQ(A, B+) WITHIN 100 s;
              RETURN COUNT(*), MIN(B.v) PATTERN SEQ(A, B+) WHERE B.v < NEXT(B).v WITHIN 100 s;
              RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 100 s;
              RETURN COUNT(*), SUM(B.v) PATTERN (SEQ(A, B+)) AND (B+) WITHIN 100 s"""
    values = [None, None, 1, 2**53 + 1, None, -3, 0.5, 2, 1.5]
    events = [{"time": t, "type": "AB"[t % 3 > 0], "v": v, "k": None if t < 3 else t % 2} for t, v in enumerate(values)]
    for numbers in ("exact", "float"):
        expected = oracle.evaluate(parse(text), events)
        rows = pushed(engine(text, numbers=numbers), [[event] for event in events])
        assert (
            difference(in_file_order(rows, [f"q{i}" for i in range(1, 5)]), expected, floats=numbers == "float") is None
        )


def test_events_held_back_widen_too() -> None:
    running = engine("RETURN SUM(A.v) PATTERN A+ WITHIN 10 s", lateness=5)
    pieces = [{"v": None}, {"v": 1}, {"v": 2.5, "unused": 1}, {"unused": "text"}]
    rows = pushed(running, [[{"time": 3, "type": "A", **piece}] for piece in pieces])
    assert rows[0]["sum_A_v"] == 3.5


def test_columns_of_other_but_equal_types_go_on() -> None:
    """Dictionaries, large strings and narrow integers are the same types of the language."""
    tables = [
        pa.table({"time": pa.array([0], kind), "type": pa.array([type_], text), "k": pa.array(["x"], text)})
        for kind, type_, text in (
            (pa.int64(), "A", pa.string()),
            (pa.int16(), "B", pa.dictionary(pa.int8(), pa.string())),
            (pa.uint64(), "B", pa.large_string()),
            (pa.int32(), "B", pa.dictionary(pa.int32(), pa.large_string())),
        )
    ]
    running = engine("RETURN k, COUNT(*) PATTERN (A OR B)+ GROUP-BY k WITHIN 10 s", lateness=2)
    assert [(row["k"], row["count"]) for row in pushed(running, tables)] == [("x", 4)]


def test_timestamps_keep_the_unit_of_the_first_push() -> None:
    first = dt.datetime(2024, 1, 1, 12)
    running = engine("RETURN MIN(A.d), MAX(A.d) PATTERN A+ WITHIN 10 s")
    running.push([{"time": 0, "type": "A", "d": first}])
    running.push([{"time": 1, "type": "A", "d": dt.date(2024, 1, 2)}])
    running.push({"time": [2], "type": ["A"], "d": np.array(["2024-01-01T00:00:00.000001000"], "datetime64[ns]")})
    with pytest.raises(
        DataError, match=r"column 'd' \(timestamp\[ns\]\) holds a value that does not fit timestamp\[us\]"
    ):
        running.push({"time": [3], "type": ["A"], "d": np.array([1], "datetime64[ns]")})
    with pytest.raises(DataError, match=r"'d' was timestamp\[us\] so far and is now timestamp\[us, tz=UTC\]"):
        running.push([{"time": 3, "type": "A", "d": first.replace(tzinfo=dt.UTC)}])
    (row,) = running.close()
    assert row["min_A_d"] == dt.datetime(2024, 1, 1, 0, 0, 0, 1)
    assert row["max_A_d"] == dt.datetime(2024, 1, 2)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"k": 1}, {"k": "x"}, "'k' was INT so far and is now STRING"),
        ({"k": "x"}, {"k": True}, "'k' was STRING so far and is now BOOLEAN"),
        (
            {"k": dt.date(2024, 1, 1)},
            {"k": dt.datetime(2024, 1, 1, 1)},
            r"'k' was date32\[day\] so far and is now timestamp",
        ),
        (
            {"time": 1},
            {"time": dt.datetime(2024, 1, 1)},
            r"the time column 'time' was int64 and is now timestamp\[us\]",
        ),
    ],
)
def test_columns_that_change_their_type(first: dict[str, Any], second: dict[str, Any], message: str) -> None:
    running = engine("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s", lateness=9)
    running.push([{"time": 1, "type": "A", **first}])
    with pytest.raises(DataError, match=message):
        running.push([{"time": 1, "type": "A", **second}])
    assert [row["count"] for row in running.close()] == [1]


def test_a_column_that_is_missing_later() -> None:
    running = engine("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s")
    running.push({"time": [1], "type": ["A"], "k": [1]})
    with pytest.raises(DataError, match="this batch lacks the column 'k', which earlier batches had"):
        running.push({"time": [2], "type": ["A"]})
    assert len(running.close()) == 1


def test_events_after_a_failure_are_refused() -> None:
    running = engine("RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE A.v + 1 > 0 WITHIN 10 s")
    running.push([{"time": 0, "type": "A", "v": 2**63 - 1}])
    with pytest.raises(DataError, match="passes 64 bits"):
        running.push(stream("B", [1]))
    with pytest.raises(HamletError, match=r"cannot go on after an error: A.v \+ 1 passes 64 bits"):
        running.push(stream("B", [2]))
