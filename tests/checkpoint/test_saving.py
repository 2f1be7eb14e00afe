"""Save and restore: wherever the cut is, going on equals never having stopped; wrong bytes end in an error."""

from __future__ import annotations

import datetime
import os
import random
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.checkpoint import frame
from hamlet.engine import checkpointing
from hamlet.errors import HamletError, MemoryLimitError, OptionError, RestoreError
from hamlet.input.events import open_events
from tests.checkpoint.save_mutations import mutated, opened, sealed
from tests.compare_random import FEATURES
from tests.comparison import difference
from tests.effort import share_of
from tests.kernel.test_ordered_sums import PATTERNS, PREDICATES, stream
from tests.strategies import random_case

Rows = list[dict[str, Any]]
Events = Sequence[Mapping[str, Any]]

RIDES = (
    "EVENT Jam(v DOUBLE); RETURN g, COUNT(*), SUM(A.v), MAX(A.t) PATTERN SEQ(A+, NOT SEQ(C, Jam), B) "
    "WHERE [k] AND A.v < NEXT(A).v AND C.v < NEXT(Jam).v GROUP-BY g WITHIN 30 s SLIDE 7 s;"
    "both: RETURN g, COUNT(*), MIN(A.w) PATTERN A+ AND SEQ(A, B) GROUP-BY g WITHIN 20 s"
)

SCANNED = (
    "scanned: RETURN g, COUNT(*), SUM(A.v), AVG(A.w) PATTERN SEQ(B?, A+) "
    "WHERE A.v * 2 + A.w < NEXT(A).v + NEXT(A).w + 3 GROUP-BY g WITHIN 25 s SLIDE 10 s"
)


def rides(seed: int, events: int = 100) -> list[dict[str, Any]]:
    """Events for `RIDES`, three per second."""
    draw = random.Random(seed)
    found: list[dict[str, Any]] = []
    for number in range(events):
        event = {
            "time": number // 3,
            "type": draw.choice(["A", "A", "B", "C", "Jam"]),
            "v": draw.choice((1.5, 2.5, 3.0, None)),
            "w": draw.randint(-3, 3),
            "t": datetime.datetime(2023, 1, 1, minute=draw.randrange(60)),
            "k": draw.choice((1, 2, None)),
            "g": draw.choice(("p", "q", None)),
        }
        found.append({name: event[name] for name in ("time", "type", "v")} if event["type"] == "Jam" else event)
    return found


def pieces(events: Events, seed: int, most: int | None = None) -> list[list[Mapping[str, Any]]]:
    """Events in time order, those of one time in any order, cut at random places."""
    draw = random.Random(seed)
    rest = sorted(draw.sample(list(events), len(events)), key=lambda event: event["time"])
    found = []
    while rest:
        size = draw.randint(1, most or max(1, len(rest) // 2))
        found.append(rest[:size])
        rest = rest[size:]
    return found


def again(engine: hamlet.Engine, workload: hamlet.Workload) -> hamlet.Engine:
    """The engine after save and restore; both are alike in all that can be seen."""
    data = engine.save()
    restored = hamlet.Engine.restore(workload, data)
    assert counted(restored) == counted(engine)
    assert restored.options == engine.options
    assert restored.save() == data
    return restored


def counted(engine: hamlet.Engine) -> dict[str, Any]:
    """The counters that a save keeps; who computes is told from the restore on."""
    return {name: count for name, count in engine.stats.items() if name not in ("operators", "features")}


# A restored engine begins with no live graphlet and no decision known; its rows are the same.
OF_DECISIONS = {"decisions_by_model", "decision_ns", "splits", "merges"}


def played(
    workload: hamlet.Workload, parts: Sequence[Any], cuts: Collection[int], **options: Any
) -> tuple[Rows, dict[str, Any]]:
    """All rows and the counters of a run that is saved and restored before some of its pushes and before its end."""
    engine = hamlet.Engine(workload, **options)
    rows: Rows = []
    for number, part in enumerate(parts):
        if number in cuts:
            engine = again(engine, workload)
        rows += engine.push(iter(part))  # processed at once: counters tell what waits, rows do not
        if number % 3 == 2 and not options.get("lateness"):
            rows += engine.advance(max(event["time"] for event in part))
    if len(parts) in cuts:
        engine = again(engine, workload)
    rows += engine.close()
    return rows, {name: count for name, count in counted(engine).items() if name not in OF_DECISIONS}


# ---------------------------------------------------------------------------------------------- going on


@pytest.mark.sampled(2)
@pytest.mark.parametrize("extra", [{}, {"numbers": "float"}, {"threads": 2}], ids=["exact", "float", "threads"])
@pytest.mark.parametrize("features", FEATURES)
def test_going_on_equals_never_having_stopped(features: str, extra: dict[str, Any]) -> None:
    for seed in range(share_of(8)):
        text, events, options = random_case(seed, FEATURES[features])
        workload, parts = hamlet.Workload.parse(text), pieces(events, seed)
        whole = played(workload, parts, (), **options, **extra)
        cut = played(workload, parts, range(len(parts) + 1), **options, **extra)
        assert repr(cut) == repr(whole), f"seed {seed}"  # NaN, too


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{}, {"numbers": "float", "threads": 2}], ids=["exact", "float"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_going_on_with_single_events(predicate: str, options: dict[str, Any]) -> None:
    """Indexes are made anew, so only doubles may differ, in their last digits."""
    pattern = PATTERNS[PREDICATES.index(predicate) % len(PATTERNS)]
    items = "k, COUNT(*), COUNT(B), SUM(B.v), AVG(B.w), MIN(B.w), MAX(B.v)"
    workload = hamlet.Workload.parse(
        f"RETURN {items} PATTERN {pattern} WHERE {predicate} GROUP-BY k WITHIN 300 s SLIDE 70 s"
    )
    parts = pieces(stream(PREDICATES.index(predicate), 500), 1, most=90)
    rows, stats = played(workload, parts, (), **options)
    cut_rows, cut_stats = played(workload, parts, range(0, len(parts), 2), **options)
    assert rows
    assert difference(cut_rows, rows) is None
    assert cut_stats == stats


def killed_and_replayed(workload: hamlet.Workload, parts: Sequence[Any], seed: int, **options: Any) -> tuple[Rows, int]:
    """All rows of a run that is saved now and then, killed at random, restored from the last save, and what came after
    it replayed; and how often it was killed.
    """
    draw = random.Random(seed)
    engine = hamlet.Engine(workload, **options)
    place, data, delivered = 0, engine.save(), 0  # the last save
    rows: Rows = []
    killed = sorted(draw.sample(range(len(parts)), min(4, len(parts))))
    kills = len(killed)
    number = 0
    while number < len(parts):
        rows += engine.push(parts[number])
        if number % 3 == 2 and not options.get("lateness"):
            rows += engine.advance(max(event["time"] for event in parts[number]))
        number += 1
        if killed and number > killed[0]:
            killed.pop(0)
            engine, number = hamlet.Engine.restore(workload, data), place
            del rows[delivered:]
        elif draw.random() < 0.3:
            place, data, delivered = number, engine.save(), len(rows)
    return rows + engine.close(), kills


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options",
    [{}, {"numbers": "float"}, {"lateness": 6}, {"lateness": 2, "late": "drop", "numbers": "float", "threads": 2}],
    ids=["exact", "float", "disorder", "late"],
)
def test_going_on_after_a_hundred_kills(options: dict[str, Any]) -> None:
    """AND, broadcast, guards with predicates of their own, an index and a scan."""
    kills, seeds = 0, share_of(8 if options else 25)
    workload = hamlet.Workload.parse(RIDES + "; " + SCANNED)
    for seed in range(seeds):
        draw, events = random.Random(seed), rides(seed)
        if "lateness" in options:
            events = [event | {"time": event["time"] - draw.randint(0, 6)} for event in events]
            parts: list[Any] = [events[place : place + 9] for place in range(0, len(events), 9)]
        else:
            parts = pieces(events, seed, most=12)
        expected, stats = played(workload, parts, (), **options)
        rows, more = killed_and_replayed(workload, parts, seed, **options)
        assert difference(rows, expected, floats="numbers" in options) is None, f"seed {seed}"
        assert (stats["late_events"] > 0) == ("late" in options)
        kills += more
    assert kills == 4 * seeds


def test_kills_in_random_workloads() -> None:
    """One and more a case, of every feature in turn."""
    kills, seeds, features = 0, share_of(90), sorted(FEATURES)
    for seed in range(seeds):
        text, events, options = random_case(seed, FEATURES[features[seed % len(features)]])
        workload, parts = hamlet.Workload.parse(text), pieces(events, seed, most=3)
        numbers = "float" if seed % 4 == 3 else "exact"
        expected, _ = played(workload, parts, (), numbers=numbers, **options)
        rows, more = killed_and_replayed(workload, parts, seed, numbers=numbers, **options)
        assert difference(rows, expected, floats=numbers == "float") is None, f"seed {seed}"
        kills += more
    assert kills >= seeds


def test_types_that_were_all_null_at_first() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 6 s")
    parts = [[{"time": time, "type": type}] for time, type in enumerate([None, "A", "B", None, "B"])]
    whole = played(workload, parts, ())
    assert [row["count"] for row in whole[0]] == [3]
    assert played(workload, parts, range(len(parts) + 1)) == whole


def test_held_events_and_late_ones() -> None:
    draw = random.Random(5)
    workload = hamlet.Workload.parse(RIDES)
    events = [event | {"time": event["time"] - draw.randint(0, 6)} for event in rides(5, 300)]
    for late, lateness in (("drop", 3), ("error", "6 s"), ("drop", 10**30)):
        parts = [events[place : place + 11] for place in range(0, len(events), 11)]
        whole = played(workload, parts, (), lateness=lateness, late=late)
        assert played(workload, parts, range(len(parts) + 1), lateness=lateness, late=late) == whole
        assert (whole[1]["late_events"] > 0) == (lateness == 3)
    engine = again(hamlet.Engine(workload, lateness=2), workload)
    engine.push([{"time": 10, "type": "A"}, {"time": 9, "type": "A"}])
    with pytest.raises(HamletError, match="event 3 is late: its time is 7, and no event before 8"):
        again(engine, workload).push([{"time": 7, "type": "A"}])
    assert again(engine, workload).advance(9) == []
    assert again(engine, workload).push([{"time": 8, "type": "A"}]) == []


@pytest.mark.parametrize(
    "time",
    [
        3,
        datetime.datetime(2023, 1, 1, 1),
        datetime.date(2023, 1, 2),
        np.datetime64("2023-01-01T01:30", "m"),
        datetime.datetime(2023, 1, 1, 1, tzinfo=datetime.UTC),
    ],
    ids=repr,
)
def test_a_time_promised_before_the_first_event(time: Any) -> None:
    """Only the first event says in what unit it is."""
    clock = pa.int64() if time == 3 else pa.timestamp("s", "UTC" if getattr(time, "tzinfo", None) else None)
    start = datetime.datetime(2023, 1, 1, tzinfo=getattr(time, "tzinfo", None))
    times = [2, 40] if time == 3 else [start, start + datetime.timedelta(days=2)]
    table = pa.table({"time": pa.array(times, clock), "type": ["A", "A"]})
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 9 s")
    engine = hamlet.Engine(workload, late="drop", lateness=datetime.timedelta(milliseconds=1500))
    engine.advance(time)
    restored = again(again(engine, workload), workload)
    assert restored.push(table) == engine.push(table)
    assert counted(restored) == counted(engine)
    assert engine.stats["late_events"] == 1
    assert again(restored, workload).close() == engine.close()
    engine = hamlet.Engine(workload)
    with pytest.raises(OptionError, match="cannot read 'soon' as a time"):
        engine.advance("soon")


def test_a_stream_that_is_fed_in_order() -> None:
    """What `hamlet.run` does."""
    workload = hamlet.Workload.parse(RIDES)
    table = pa.Table.from_pylist(rides(7))
    whole, engine = hamlet.run(workload, table), hamlet.Engine(workload)
    engine.open(open_events(table).schema)
    rows = 0
    for batch in table.to_batches(max_chunksize=7):
        rows += sum(len(each.rows) for each in engine.feed(batch))
        engine = again(engine, workload)
    assert rows + len(engine.close()) == len(whole)


def test_types_that_widen_after_the_restore() -> None:
    workload = hamlet.Workload.parse(
        "RETURN k, SUM(B.v), MIN(B.v) PATTERN SEQ(A, B+) WHERE B.v <= NEXT(B).v GROUP-BY k WITHIN 99 s"
    )
    parts: list[list[dict[str, Any]]] = [
        [{"time": 1, "type": "A", "k": 1}],
        [{"time": 2, "type": "B", "v": 3, "k": 1, "other": 1}],
        [{"time": 3, "type": "B", "v": 3.5, "k": 1.0}],
        [{"time": 4, "type": "A", "k": 2.5}, {"time": 5, "type": "B", "v": 7, "k": 2.5}],
    ]
    whole = played(workload, parts, ())
    assert whole[0] == [
        {"query": "q1", "window_start": 0, "window_end": 99, "k": 1, "sum_B_v": 13.0, "min_B_v": 3.0},
        {"query": "q1", "window_start": 0, "window_end": 99, "k": 2.5, "sum_B_v": 7.0, "min_B_v": 7.0},
    ]
    for cuts in ((0, 1, 2, 3, 4), (1,), (2,), (3,)):
        assert repr(played(workload, parts, cuts)) == repr(whole)


KEYS = [
    [1, 2, None],
    [1.5, -0.0, None],
    ["x", "", "é\0y"],
    [True, False, None],
    [datetime.date(2023, 1, 1), datetime.date(1969, 1, 1), None],
    [datetime.datetime(2023, 1, 1, microsecond=7), datetime.datetime(1, 1, 1), None],
    pa.array([1000, 2001000, None], pa.timestamp("ns", "Europe/Berlin")),
    pa.array([1, 2001, None], pa.timestamp("us", "+01:30")),
    [datetime.timedelta(hours=-1, microseconds=7), datetime.timedelta(0), None],
    pa.array([1, 2001000, None], pa.duration("ns")),
    pa.array([2**62, 2**33, None], pa.duration("ms")),  # beyond what Python's has, and beyond microseconds in 64 bits
    pa.array([2**43, 5, None], pa.duration("s")),
    pa.array([Decimal("1.50"), Decimal("-0.10"), None], pa.decimal128(20, 2)),
    pa.array([Decimal(10**60), Decimal(7), None], pa.decimal256(70, 0)),
    pa.array(["a", "b", None]).dictionary_encode(),
    pa.array([None, None, None], pa.null()),
    np.array([1, 2, 3], np.uint16),
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: str(getattr(keys, "type", type(keys[0]).__name__)))
def test_keys_come_back_as_they_were(keys: Any) -> None:
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s")
    tables = [pa.table({"time": [time] * 3, "type": ["AB"[time]] * 3, "k": keys, "unused": [0] * 3}) for time in (0, 1)]
    engine = hamlet.Engine(workload, lateness=1)
    for table in tables:
        engine = again(engine, workload)
        assert engine.push(table) == []
    expected = hamlet.run(workload, pa.concat_tables(tables)).rows()
    assert repr(again(engine, workload).close()) == repr(expected)


def test_times_with_a_fraction_are_keys() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WHERE [time] WITHIN 10 s")
    engine = hamlet.Engine(workload)
    for time in (0.5, 0.5, 1.000000001):
        engine = again(engine, workload)
        engine.push([{"time": time, "type": "A"}])
    assert [row["count"] for row in again(engine, workload).close()] == [3]  # events of one time are no neighbours


def test_durations_of_nanoseconds_among_none() -> None:
    """A column of durations has the type of times with a fraction, and is none of these."""
    workload = hamlet.Workload.parse("RETURN COUNT(*), SUM(EVENTS A.d) AS s PATTERN A+ WITHIN 10 s")
    engine = hamlet.Engine(workload)
    for time, (tick, unit) in enumerate(((None, "ns"), (7000, "ns"), (1, "s"), (None, None))):
        kind = pa.null() if unit is None else pa.duration(unit)
        table = pa.table({"time": pa.array([time], pa.timestamp("s")), "type": ["A"], "d": pa.array([tick], kind)})
        engine.push(table)
        engine = again(engine, workload)
    (row,) = engine.close()
    assert row["s"] == datetime.timedelta(seconds=1, microseconds=7)


def test_another_process_restores() -> None:
    """Nothing in a save, and nothing in what it stands on, depends on the order of a set of strings."""
    engine = hamlet.Engine(hamlet.Workload.parse(RIDES))
    engine.push(rides(3))
    code = f"import sys, hamlet; workload = hamlet.Workload.parse({RIDES!r});"
    code += "print(hamlet.Engine.restore(workload, sys.stdin.buffer.read()).close())"
    environment = os.environ | {"PYTHONHASHSEED": "12", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=engine.save(), env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().strip() == repr(engine.close())


def test_what_cannot_be_saved() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WHERE A.v + 1 > NEXT(A).v WITHIN 9 s")
    engine = hamlet.Engine(workload, order_column="o", time_unit="ms", sharing="never")
    restored = again(engine, workload)  # nothing has come yet
    assert restored.options.time_unit == "ms"
    assert restored.close() == []
    with pytest.raises(HamletError, match="the engine is closed"):
        restored.save()
    engine = hamlet.Engine(workload)
    engine.push([{"time": 1, "type": "A", "v": 2**63 - 1}, {"time": 2, "type": "A", "v": 1}])
    with pytest.raises(HamletError, match="passes 64 bits"):
        engine.advance(3)
    with pytest.raises(HamletError, match="cannot go on"):
        engine.save()


# ------------------------------------------------------------------------------------------- wrong bytes


@pytest.fixture(scope="module")
def saves() -> list[tuple[hamlet.Workload, bytes, Events]]:
    """Workload, save, and events that may follow."""
    found = []
    for extra in ({}, {"numbers": "float"}, {"threads": 2, "lateness": "3 s"}):
        for name in FEATURES:
            text, events, options = random_case(4, FEATURES[name])
            found.append((text, sorted(events, key=lambda event: event["time"]), options | extra))
        found.append((RIDES, rides(1), extra))
    engines = []
    for text, events, options in found:
        workload = hamlet.Workload.parse(text)
        engine = hamlet.Engine(workload, **options)
        engine.push(events[: len(events) * 2 // 3])
        engines.append((workload, engine.save(), events[len(events) * 2 // 3 :]))
    return engines


WORKLOAD = hamlet.Workload.parse(RIDES)


def refusal(data: Any, text: str | None = None) -> str:
    """The text of the error."""
    with pytest.raises(RestoreError) as error:
        hamlet.Engine.restore(WORKLOAD if text is None else hamlet.Workload.parse(text), data)
    return str(error.value)


def ride(**options: Any) -> bytes:
    engine = hamlet.Engine(WORKLOAD, **options)
    engine.push(rides(2, 30))
    return engine.save()


def test_another_workload() -> None:
    data = ride()
    assert "of other queries: they differ where it has" in refusal(data, RIDES.replace("30 s", "31 s"))
    assert "of other queries" in refusal(data, RIDES.replace("both:", "two:"))
    same = hamlet.Workload.parse("-- a comment\n" + RIDES.replace("; ", ";\n\n").replace("WITHIN", "within"))
    assert hamlet.Engine.restore(same, data).save() == data


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    description, blobs = opened(ride())
    other = sealed(description | {"version": "0.0.9"}, blobs)
    assert hamlet.Engine.restore(WORKLOAD, other).stats["events"] > 0  # the tables are the same
    later = frame.resealed(ride(), format=frame.FORMAT + 1, version="99.1")
    assert f"the save has format {frame.FORMAT + 1}, of Hamlet 99.1, and Hamlet" in refusal(later)
    assert "another order of bytes" in refusal(sealed(description | {"byte_order": "big"}, blobs))
    monkeypatch.setattr(checkpointing, "_tables_digest", lambda workload: "another")
    assert "written by Hamlet 0.0.9, which runs this workload in another way" in refusal(other)


def test_bytes_that_are_not_whole() -> None:
    data = ride()
    assert "a save is bytes, not a str" in refusal("text")
    assert "not a save of Hamlet" in refusal(b"PAR1" + data)
    assert f"it has {len(data) + 1} bytes instead of {len(data)}" in refusal(data + b"\0")
    for length in range(len(data)):
        assert "the save is not whole" in refusal(data[:length])
    engine = hamlet.Engine.restore(WORKLOAD, memoryview(bytearray(b"x" + data))[1:])
    assert engine.save() == data


def test_flipped_bits() -> None:
    data, draw = ride(), random.Random(0)
    for place in [*range(8 * frame.HEAD.size), *(draw.randrange(8 * len(data)) for _ in range(1000))]:
        wrong = bytearray(data)
        wrong[place // 8] ^= 1 << place % 8
        refusal(wrong)


def test_memory_that_a_save_may_take() -> None:
    """Few bytes must not ask for much: a limit of the run holds for its restore too."""
    description, blobs = opened(ride(max_memory="1 GiB"))
    small = sealed(description | {"options": description["options"] | {"max_memory": 1000}}, blobs)
    with pytest.raises(MemoryLimitError, match="more memory than its limit, 1000 bytes"):
        hamlet.Engine.restore(WORKLOAD, small)


class Seeded:
    """Chance of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, end: int) -> int:
        return self._random.randrange(end)


@pytest.mark.parametrize("first", range(0, 1500, 500))
def test_wrong_bytes_with_a_right_digest(saves: list[tuple[hamlet.Workload, bytes, Events]], first: int) -> None:
    """They end in a clear error or in an engine that works, whatever it counts."""
    worked = 0
    for seed in range(first, first + share_of(500)):
        workload, data, events = saves[seed % len(saves)]
        try:
            engine = hamlet.Engine.restore(workload, mutated(data, Seeded(seed)))
            engine.push(events)
            engine.close()
            worked += 1
        except HamletError:
            pass
    assert 0 < worked < 250
