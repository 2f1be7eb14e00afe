"""Timestamps written as text, and differences of timestamps compared with durations."""

from __future__ import annotations

import datetime
import random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.where import Filter
from hamlet.input.events import open_events
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from hamlet.oracle import evaluate

START = datetime.datetime(2024, 3, 5)


def table(unit: str = "us", zone: str | None = None, step: int = 600) -> pa.Table:
    """Ten A and ten B by turns, ten minutes apart, from midnight on 5 March (UTC where there is a zone)."""
    times = [START + datetime.timedelta(seconds=step * place) for place in range(20)]
    times = [each.replace(tzinfo=datetime.UTC) for each in times] if zone else times
    return pa.table(
        {"time": pa.array(range(20)), "type": ["A", "B"] * 10, "at": pa.array(times, pa.timestamp(unit, zone))}
    )


def count(condition: str, events: Any, pattern: str = "A") -> int:
    workload = hamlet.Workload.parse(f"RETURN COUNT(*) PATTERN {pattern} WHERE {condition} WITHIN 100 s")
    return sum(row["count"] for row in hamlet.run(workload, events).rows())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("A.at >= '2024-03-05 01:00:00'", 7),
        ("A.at > '2024-03-05 01:00:00'", 6),
        ("'2024-03-05T01:00' <= A.at", 7),
        ("A.at < '2024-03-06'", 10),
        ("A.at = '2024-03-05'", 1),
        ("A.at <> '2024-03-05'", 9),
        ("A.at > '2024-03-05 00:59:59.9999'", 7),
        ("A.at BETWEEN '2024-03-05 00:20:00' AND '2024-03-05 01:00:00'", 3),
        ("A.at IN ('2024-03-05 00:20:00', '2024-03-05 00:30:00')", 1),
        ("A.at - '2024-03-05' < 1 h", 3),
        ("A.at - '2024-03-05' <= 1 h", 4),
        ("'2024-03-06' - A.at > 22.5 h", 5),
        ("A.at < '2999-01-01'", 10),
    ],
)
def test_one_event(unit: str, condition: str, found: int) -> None:
    assert count(condition, table(unit)) == found
    where = open_events(table(unit))
    [column] = {"at"}
    text = condition.replace("A.at", column)
    batch = table(unit).combine_chunks().to_batches()[0]
    chosen = Filter(text, where.schema).chosen(batch).to_pylist()
    assert sum(chosen[::2]) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("A.at >= '2024-03-05T01:00:00Z'", 7),
        ("A.at >= '2024-03-05T02:00:00+01:00'", 7),
        ("A.at >= '2024-03-05 02:00:00'", 7),  # on the clocks of Berlin
        ("A.at >= '2024-03-04T20:00:00-0500'", 7),
    ],
)
def test_zones(condition: str, found: int) -> None:
    assert count(condition, table(zone="Europe/Berlin")) == found
    rows = table(zone="Europe/Berlin").to_pylist()
    assert count(condition, rows) == found
    query = parse(f"RETURN COUNT(*) PATTERN A WHERE {condition} WITHIN 100 s")
    assert sum(row["count"] for row in evaluate(query, rows)) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("B.at - PREV(A).at < 15 min", 10),
        ("B.at - PREV(A).at <= 30 min", 19),
        ("B.at - PREV(A).at < 30 min", 10),
        ("PREV(A).at - B.at > -15 min", 10),
        ("NEXT(B).at - A.at BETWEEN 20 min AND 40 min", 9),
        ("1800 s >= B.at - PREV(A).at", 19),
        ("B.at - PREV(A).at < 15 min AND A.at > '2024-03-05 01:30:00'", 5),
    ],
)
def test_neighbours(condition: str, found: int) -> None:
    assert count(condition, table(), "SEQ(A, B)") == found
    rows = table().to_pylist()
    assert count(condition, rows, "SEQ(A, B)") == found
    query = parse(f"RETURN COUNT(*) PATTERN SEQ(A, B) WHERE {condition} WITHIN 100 s")
    assert sum(row["count"] for row in evaluate(query, rows)) == found


def test_sessions_as_brute_force_counts_them() -> None:
    chance = random.Random(20)
    for _ in range(40):
        times = sorted(chance.sample(range(60), 9))
        rows = [{"time": t, "type": chance.choice("AB"), "at": START + datetime.timedelta(minutes=t)} for t in times]
        text = (
            "RETURN COUNT(*), COUNT(A) PATTERN SEQ(A+, B) WHERE A.at - PREV(A).at < 12 min "
            "AND B.at - PREV(A).at <= 9 min WITHIN 40 s SLIDE 20 s"
        )
        found = hamlet.run(hamlet.Workload.parse(text), rows).rows()
        assert found == evaluate(parse(text), rows)


def test_shared_predicates_are_told_apart() -> None:
    """Queries that differ in a time alone are different."""
    hours = range(4)
    text = "".join(
        f"q{hour}: RETURN COUNT(*) PATTERN A+ WHERE A.at >= '2024-03-05 0{hour}:00:00' WITHIN 100 s;" for hour in hours
    )
    rows = hamlet.run(hamlet.Workload.parse(text), table()).rows()
    assert [row["count"] for row in rows] == [2 ** len(range(3 * hour, 10)) - 1 for hour in hours if 3 * hour < 10]


def test_durations_that_are_compared_in_several_queries() -> None:
    """Queries are compared with each other by what they ask of events: of durations, too."""
    lengths = [(1, 2), (2, 1), (2, 2), (None, 1), (3, None)]
    rows = [{"time": START, "type": "A", "d": d, "e": e} for d, e in ((_seconds(d), _seconds(e)) for d, e in lengths)]
    wanted = {
        "A.d < A.e": 1,
        "A.e > A.d": 1,
        "A.d >= A.e": 2,
        "A.d IS NULL": 1,
        "A.d IS NOT NULL": 4,
        "A.d IS NULL OR A.e IS NULL": 2,
        "A.d > 1 s": 3,
        "A.d > 2 s": 1,
        "NOT A.d <= 2 s": 1,
        "A.d <> A.e AND A.d > 1 s": 1,
        "A.d IN (1 s, 3 s)": 2,
    }
    for declared in ("", "EVENT A(d DURATION, e DURATION);"):
        text = declared + "".join(f"RETURN COUNT(*) PATTERN A WHERE {each} WITHIN 100 s;" for each in wanted)
        for events in (rows, pa.Table.from_pylist(rows)):
            found = hamlet.run(hamlet.Workload.parse(text), events).rows()
            assert [row["count"] for row in found] == list(wanted.values())


def _seconds(number: int | None) -> datetime.timedelta | None:
    return None if number is None else datetime.timedelta(seconds=number)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("A.at > '5 March'", "'5 March' is no time"),
        ("A.at > '2024-03-05Z'", "has a zone, and A.at has none"),
        ("A.at > 10 min", r"A.at \(TIMESTAMP\) cannot be compared with 10 min \(DURATION\)"),
        ("A.at - '2024-03-05' > 10", r"\(DURATION\) cannot be compared with 10 \(INT\)"),
        ("A.at * 2 > '2024-03-05'", "'\\*' takes durations and numbers, and no instants"),
        ("A.at + A.at > '2024-03-05'", "two instants have a difference, and no sum"),
        ("A.at + A.n > '2024-03-05'", "'\\+' beside a time takes instants and durations: A.n is INT"),
        ("5 min - A.at > '2024-03-05'", "an instant cannot be subtracted from a duration"),
        ("A.n / (A.at - '2024-03-05') > 1", "a number cannot be divided by a duration"),
        ("(A.at - '2024-03-05') % 5 > 1", "'%' takes numbers, and no times"),
        ("-A.at < '2024-03-05'", "an instant has no '-'"),
        ("A.n > 0.5 s", "0.5 s is no whole number of seconds, the unit of the time column"),
    ],
)
def test_what_is_no_time(condition: str, said: str) -> None:
    events = table().append_column("n", pa.array(range(20)))
    with pytest.raises(hamlet.WorkloadError, match=said):
        count(condition, events)
    if "'5 March'" not in condition and "05Z" not in condition:
        with pytest.raises(hamlet.HamletError, match=said):  # of dicts the types are known with the first event
            count(condition, events.to_pylist())


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("A.n > 10 s", 4),  # times are integers here, and so are durations beside numbers
        ("A.n * 2 s > 20", 4),
        ("(A.at - '2024-03-05') * 2 > 3 h", 5),
        ("A.at + 5 min > '2024-03-05 02:00'", 4),
        ("(A.at - '2024-03-05') / 1 min >= 60", 7),
        ("(A.at - '2024-03-05') * 0.0 = 0 * (A.at - '2024-03-05')", 10),
        ("-0.0 * (A.at - '2024-03-05') < 1 s", 10),
        ("(A.at - '2024-03-05') / 0.0 IS NULL", 10),
    ],
)
def test_times_that_are_calculated(condition: str, found: int) -> None:
    events = table().append_column("n", pa.array(range(20)))
    assert count(condition, events) == found
    assert count(condition, events.to_pylist()) == found


def test_durations_are_printed_and_read() -> None:
    text = (
        "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE B.at - PREV(A).at < 1.5 h AND B.at - PREV(A).at > -10 min WITHIN 1 d"
    )
    tree = parse(text)
    assert parse(to_text(tree)) == tree
    assert "B.at - PREV(A).at < 1.5 h" in to_text(tree)


def test_local_times_across_the_change_of_clocks() -> None:
    zone = ZoneInfo("Europe/Berlin")
    times = [datetime.datetime(2024, 3, 31, hour, 30, tzinfo=zone) for hour in (0, 1, 3, 4)]
    events = pa.table({"time": range(4), "type": ["A"] * 4, "at": pa.array(times, pa.timestamp("s", "Europe/Berlin"))})
    assert count("A.at >= '2024-03-31 03:00:00'", events) == 2
    assert count("A.at >= '2024-03-31 01:30:00'", events) == 3
