"""Windows that begin by OFFSET, or at midnight of a time zone: their rows against brute force, SQL and the clock."""

from __future__ import annotations

import csv
import datetime
import itertools
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet import oracle
from hamlet.cli import main
from hamlet.errors import DataError, OptionError, WorkloadError
from hamlet.frontend.units import SECONDS
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from hamlet.language.query import Duration, Query, WorkloadText
from hamlet.language.schema import Clock
from hamlet.language.zones import zone_of
from hamlet.planner.timeline import Calendar, line_of
from hamlet.testing import describe_trends
from tests.case_files import oracle_options
from tests.comparison import difference, in_any_order, in_file_order
from tests.strategies import DEFAULT, random_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",  # half an hour beside the others, never changed
    "Australia/Lord_Howe",  # changed by half an hour
    "America/Havana",  # changed at midnight
    "Africa/Cairo",  # a day that begins at one o'clock
    "Pacific/Apia",  # has left out a day
)
ALL = replace(
    DEFAULT,
    events=7,
    **dict.fromkeys(("semantics", "span", "session", "having", "top", "distinct", "chained", "broadcast"), True),
)
COUNT = "RETURN COUNT(*) PATTERN A"


def seconds(year: int, month: int, day: int, hour: int = 0, minute: int = 0, *, zone: Any = BERLIN) -> int:
    """A time of a clock, in seconds from 1970."""
    return int(datetime.datetime(year, month, day, hour, minute, tzinfo=zone).timestamp())


def shown(row: dict[str, Any], zone: Any = BERLIN) -> tuple[str, str, int]:
    """A row's window by the clock, and its count."""
    start, end = (datetime.datetime.fromtimestamp(row[name], zone) for name in ("window_start", "window_end"))
    return f"{start:%m-%d %H:%M%z}", f"{end:%m-%d %H:%M%z}", row["count"]


def rows_of(text: str, times: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of a workload over events of type A."""
    events = {"time": np.array(times, np.int64), "type": np.array(["A"] * len(times))}
    found: list[dict[str, Any]] = hamlet.run(hamlet.Workload.parse(text), events, **options).rows()
    return found


# ------------------------------------------------------------------------------------------------------ language


def test_weeks_and_offsets_are_read_and_printed() -> None:
    text = f"{COUNT} WITHIN 2 Weeks SLIDE 1 w OFFSET 4.5 days SPAN 10 min"
    (query,) = parse(text).queries
    assert query.within.seconds == 2 * 7 * 86_400
    assert query.offset is not None
    assert query.offset.seconds == 4.5 * 86_400
    assert to_text(query).endswith("SPAN 10 min WITHIN 2 w SLIDE 1 w OFFSET 4.5 d;")
    assert parse(to_text(query)).queries[0] == query
    assert parse("RETURN offset PATTERN offset GROUP-BY offset WITHIN 1 s").queries[0].offset is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{COUNT} WITHIN 1 d OFFSET -2 h", "the same windows have OFFSET 22 h"),
        (f"{COUNT} WITHIN SESSION 1 d OFFSET 2 h", "sessions have no offset"),
        (f"{COUNT} OFFSET 2 h WITHIN 1 d", "WITHIN must stand before OFFSET"),
        (f"{COUNT} WITHIN 1 month", "the longest unit is a week"),
        (f"{COUNT} WITHIN 1 d OFFSET 2 h OFFSET 3 h", "OFFSET stands twice"),
    ],
)
def test_mistakes_are_explained(text: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        hamlet.Workload.parse(text)


def test_an_offset_that_the_time_column_cannot_hold_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no whole number of seconds"):
        rows_of(f"{COUNT} WITHIN 1 d OFFSET 500 ms", [1])


def test_weeks_are_a_duration_of_every_option() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse(f"{COUNT} WITHIN 1 w"), lateness="1 week", late="drop")
    engine.push([{"time": 8 * 86_400, "type": "A"}])
    engine.push([{"time": 2 * 86_400, "type": "A"}])
    assert [row["count"] for row in engine.close()] == [1, 1]


# ---------------------------------------------------------------------------------------------------- brute force


def _longer(duration: Duration | None, times: int) -> Duration | None:
    return None if duration is None else Duration(duration.seconds * times / SECONDS["s"], "s")


def _changed(text: WorkloadText, source: random.Random, times: int, offset_in: Fraction | None) -> str:
    """A workload with windows so many times as long, and with offsets of some such lengths."""

    def changed(query: Query) -> Query:
        lengths = (_longer(each, times) for each in (query.within, query.slide, query.longest))
        within, slide, longest = lengths
        assert within is not None
        offset = None
        if offset_in is not None and not query.session and source.random() < 0.7:
            offset = Duration(source.randint(0, 9) * offset_in, "s")
        return replace(query, within=within, slide=slide, longest=longest, offset=offset)

    return to_text(replace(text, queries=tuple(map(changed, text.queries))))


def _pushed(workload: hamlet.Workload, events: list[Any], source: random.Random, options: Any) -> list[Any]:
    """The rows of an engine that is fed in pieces, and saved between some of them."""
    time = options.get("time_column", "time")
    engine = hamlet.Engine(workload, **options)
    ordered = sorted(events, key=lambda event: event[time])
    rows: list[Any] = []
    while ordered:
        size = source.randint(1, 3)
        piece, ordered = ordered[:size], ordered[size:]
        rows += engine.push(piece)
        if source.random() < 0.3:
            rows += engine.advance(piece[-1][time])
        if source.random() < 0.3:
            engine = hamlet.Engine.restore(workload, engine.save())
    return rows + engine.close()


def _check(text: str, events: list[Any], options: dict[str, Any], zone: str | None, seed: int) -> None:
    """The engine's rows, of a run and of pushes, are those of brute force."""
    workload, source = hamlet.Workload.parse(text), random.Random(seed)
    assert parse(str(workload)).queries == workload.queries
    expected = oracle.evaluate(workload.analysis.text, events, **oracle_options({**options, "timezone": zone}))
    options = {**options, "timezone": zone, "threads": source.choice([1, 1, 2])}
    what = f"seed {seed}, {zone}\n{text}\n{events}"
    assert difference(hamlet.run(workload, events, **options).rows(), expected) is None, what
    rows = in_file_order(_pushed(workload, events, source, options), workload.names)
    assert difference(in_any_order(rows), in_any_order(expected)) is None, what


@pytest.mark.parametrize("seed", range(50))
def test_offsets_agree_with_brute_force(seed: int) -> None:
    text, events, options = random_case(seed, ALL)
    source = random.Random(seed)
    tick = Fraction(1, oracle_options(options)["ticks_per_second"])
    _check(_changed(parse(text), source, 1, tick), events, options, None, seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(50))
def test_windows_by_a_clock_agree_with_brute_force(seed: int) -> None:
    """A second of the case is a day of its stream, which lies about a time at which the clock is changed."""
    text, events, options = random_case(seed, ALL)
    source = random.Random(seed)
    if any((each.within.seconds * 4).denominator != 1 for each in parse(text).queries):
        pytest.skip("windows of milliseconds")
    zone = ZONES[seed % len(ZONES)]
    per_second = oracle_options(options)["ticks_per_second"]
    change = source.choice([each for each in zone_of(zone).since if 10**9 < each < 2 * 10**9] or [10**9])
    name = options.get("time_column", "time")
    begin = change - 86_400 * source.randint(0, 9) + 3600 * source.randint(-12, 12)
    moved = {
        time: time * 86_400 + (begin + source.choice([0, source.randint(-40_000, 40_000)])) * per_second
        for time in sorted({event[name] for event in events})
    }
    events = [{**event, name: moved[event[name]]} for event in events]
    _check(_changed(parse(text), source, 86_400, source.choice([None, Fraction(21_600)])), events, options, zone, seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("window", ["1 h", "30 min", "90 min SLIDE 30 min", "6 h", "1 d SLIDE 1 h", "8 h SLIDE 6 h"])
def test_windows_of_hours_agree_with_brute_force(window: str) -> None:
    workload = hamlet.Workload.parse(f"RETURN COUNT(*) PATTERN SEQ(A, B?) WITHIN {window}")
    source = random.Random(window)
    for zone, change in itertools.product(ZONES, (0, 1)):
        changes = [10**9, 10**9, *(each for each in zone_of(zone).since if 10**9 < each < 2 * 10**9)]
        begin = changes[-1 - change]
        times = [begin + 900 * source.randint(-14, 14) + source.choice([0, 0, -1, 1]) for _ in range(7)]
        events = [{"time": time, "type": source.choice("AAB")} for time in times]
        expected = oracle.evaluate(workload.analysis.text, events, zone=zone)
        assert hamlet.run(workload, events, timezone=zone).rows() == expected, (zone, events)


# --------------------------------------------------------------------------------------------------- by the clock


def test_days_begin_at_midnight_and_weeks_on_monday() -> None:
    """A quarter of an hour after the other, over the change of the clock on March 31st."""
    times = range(seconds(2024, 3, 30), seconds(2024, 4, 3), 900)
    text = f"d: {COUNT} WITHIN 1 d; w: {COUNT} WITHIN 1 week; s: {COUNT} WITHIN 1 week OFFSET 6 d"
    found: dict[str, list[Any]] = {}
    for row in rows_of(text, times, timezone="Europe/Berlin"):
        found.setdefault(row["query"], []).append(shown(row))
    assert found["d"] == [
        ("03-30 00:00+0100", "03-31 00:00+0100", 96),
        ("03-31 00:00+0100", "04-01 00:00+0200", 92),
        ("04-01 00:00+0200", "04-02 00:00+0200", 96),
        ("04-02 00:00+0200", "04-03 00:00+0200", 96),
    ]
    assert found["w"] == [("03-25 00:00+0100", "04-01 00:00+0200", 188), ("04-01 00:00+0200", "04-08 00:00+0200", 192)]
    wednesday = [("03-27 00:00+0100", "04-03 00:00+0200", 380)]  # 1970 began on a Thursday: six days later
    assert found["s"] == wednesday


def test_the_hour_that_occurs_twice_has_a_window_each_time() -> None:
    times = range(seconds(2024, 10, 27), seconds(2024, 10, 28), 900)
    rows = rows_of(f"{COUNT} WITHIN 1 h", times, timezone="Europe/Berlin")
    assert len(rows) == 25
    assert {row["count"] for row in rows} == {4}
    rows = rows_of(f"{COUNT} WITHIN 6 h", times, timezone="Europe/Berlin")
    assert [shown(row)[0][6:11] for row in rows] == ["00:00", "06:00", "12:00", "18:00"]
    assert [row["count"] for row in rows] == [28, 24, 24, 24]


def test_zones_of_half_hours() -> None:
    kolkata = ZoneInfo("Asia/Kolkata")
    times = range(seconds(2024, 5, 1, zone=kolkata), seconds(2024, 5, 3, zone=kolkata), 900)
    rows = rows_of(
        f"d: {COUNT} WITHIN 1 d; h: {COUNT} WITHIN 1 h; s: {COUNT} WITHIN 7 h", times, timezone="Asia/Kolkata"
    )
    assert [row["count"] for row in rows if row["query"] == "d"] == [96, 96]
    assert {row["count"] for row in rows if row["query"] == "h"} == {4}
    assert sum(row["count"] for row in rows if row["query"] == "s") == 192


def test_without_a_zone_windows_begin_as_ever() -> None:
    assert [row["window_start"] for row in rows_of(f"{COUNT} WITHIN 7 d", [10**9])] == [10**9 // 604_800 * 604_800]
    (row,) = rows_of(f"{COUNT} WITHIN 7 d OFFSET 4 d", [seconds(2024, 3, 6, zone=datetime.UTC)])
    assert row["window_start"] == seconds(2024, 3, 4, zone=datetime.UTC)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca"])
def test_a_calendar_keeps_the_order_of_times(zone: str) -> None:
    """Times one by one around all changes of a clock: ascending on the line, in a window that has begun and goes on."""
    (query,) = parse(f"{COUNT} WITHIN 1 d").queries
    line, within, slide = line_of(query, Clock("time", "s", pa.int64(), zone))
    assert isinstance(line, Calendar)
    assert within == slide == line.room
    changes = [each for each in zone_of(zone).since if 0 < each < 4 * 10**9]
    times = np.unique(np.concatenate([np.arange(each - 7200, each + 7200, 7) for each in changes])).astype(np.int64)
    places = line.places(times)
    assert (np.diff(places) > 0).all()
    starts, ends = line.times(places // slide * slide), line.times(places // slide * slide + within)
    assert (starts <= times).all()
    assert (times < ends).all()
    assert (places % slide == times - starts).all()


# ------------------------------------------------------------------------------------------------------------ SQL


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_days_and_weeks_are_those_of_sql(zone: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    source = random.Random(zone)
    times = sorted(source.randint(seconds(2023, 10, 20), seconds(2024, 11, 20)) for _ in range(3000))
    table = pa.table(
        {"time": pa.array(times, pa.timestamp("s", "UTC")).cast(pa.timestamp("us", "UTC")), "type": ["A"] * len(times)}
    )
    workload = hamlet.Workload.parse(f"day: {COUNT} WITHIN 1 d; week: {COUNT} WITHIN 1 w; hour: {COUNT} WITHIN 1 h")
    rows = hamlet.run(workload, table, timezone=zone).rows()
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for unit in ("day", "week"):
        begin = f"date_trunc('{unit}', time AT TIME ZONE '{zone}') AT TIME ZONE '{zone}'"
        wanted = connection.execute(
            f'SELECT epoch({begin})::BIGINT, count(*) FROM "table" GROUP BY ALL ORDER BY ALL'
        ).fetchall()
        found = [(int(row["window_start"].timestamp()), row["count"]) for row in rows if row["query"] == unit]
        assert found == wanted


# ------------------------------------------------------------------------------------------------ online, and Spark


def test_a_changed_offset_is_another_query() -> None:
    engine = hamlet.Engine(
        hamlet.Workload.parse(f"a: {COUNT} WITHIN 1 d; b: {COUNT} WITHIN 1 d"), timezone="Asia/Tokyo"
    )
    engine.push([{"time": 10**6, "type": "A"}])
    done = engine.replace(hamlet.Workload.parse(f"a: {COUNT} WITHIN 1 d; b: {COUNT} WITHIN 1 d OFFSET 1 h"))
    assert (done.kept, done.changed) == (("a",), ("b",))
    engine.push([{"time": 10**6 + 2 * 86_400, "type": "A"}])
    begin = {(row["query"], (row["window_start"] + 9 * 3600) % 86_400, row["count"]) for row in engine.close()}
    assert begin == {("a", 0, 1), ("b", 3600, 1)}
    saved = hamlet.Engine(hamlet.Workload.parse(f"a: {COUNT} WITHIN 1 d")).save()
    with pytest.raises(hamlet.RestoreError):
        hamlet.Engine.restore(hamlet.Workload.parse(f"a: {COUNT} WITHIN 1 d OFFSET 1 h"), saved)


def test_a_restored_engine_keeps_its_zone() -> None:
    workload = hamlet.Workload.parse(f"{COUNT} WITHIN 1 d")
    engine = hamlet.Engine(workload, timezone="Europe/Berlin")
    start = seconds(2024, 3, 31)
    assert engine.push([{"time": start + 5, "type": "A"}]) == []
    engine = hamlet.Engine.restore(workload, engine.save())
    assert engine.options.timezone == "Europe/Berlin"
    assert engine.advance(start + 23 * 3600 - 1) == []
    (row,) = engine.advance(start + 23 * 3600)
    assert (row["window_start"], row["window_end"]) == (start, start + 23 * 3600)


@pytest.mark.parametrize("options", [{}, {"timezone": "Europe/Berlin"}])
def test_events_that_wait_for_each_other_wait_for_no_window(options: dict[str, Any]) -> None:
    workload = hamlet.Workload.parse(f"a: {COUNT} WITHIN 1 d OFFSET 1 h; b: {COUNT} WITHIN 1 w")
    engines = [hamlet.Engine(workload, gather=gather, **options) for gather in (False, True)]
    for time in range(seconds(2024, 3, 28), seconds(2024, 4, 3), 1800):
        one, other = (engine.push([{"time": time, "type": "A"}]) for engine in engines)
        assert one == other
    assert engines[0].close() == engines[1].close()


def test_spark_gives_the_rows_of_one_process(spark: SparkSession) -> None:
    times = list(range(seconds(2024, 3, 29), seconds(2024, 4, 3), 900))
    events = pa.table(
        {"time": times, "type": ["AB"[each // 900 % 2] for each in times], "k": [each % 7 for each in times]}
    )
    workload = hamlet.Workload.parse(
        "a: RETURN k, COUNT(*) PATTERN A WHERE [k] GROUP-BY k WITHIN 1 d;"
        "b: RETURN COUNT(*) PATTERN A WITHIN 2 d SLIDE 1 d OFFSET 6 h;"
        "c: RETURN COUNT(*) PATTERN SEQ(A, B) SPAN 1 h WITHIN 1 d;"
        "d: RETURN COUNT(*) PATTERN a HAVING COUNT(*) > 1 WITHIN 1 w"
    )
    from hamlet import spark as jobs

    expected = hamlet.run(workload, events, timezone="Europe/Berlin", count_type="int64").rows()
    for balance in (False, True):
        frame = jobs.run(
            workload, spark.createDataFrame(events), timezone="Europe/Berlin", count_type="int64", balance=balance
        )
        found = [{name: value for name, value in row.asDict().items() if value is not None} for row in frame.collect()]
        assert in_any_order([dict(sorted(row.items())) for row in found]) == in_any_order(
            [dict(sorted(row.items())) for row in expected]
        )


# ---------------------------------------------------------------------------------------------------- on the way in


def test_times_before_1970_have_no_place_in_a_zone() -> None:
    for options in ({}, {"threads": 2}):
        with pytest.raises(DataError, match="from 1970 on"):
            rows_of(f"{COUNT} WITHIN 1 d", [-5, 5], timezone="Europe/Berlin", **options)
    engine = hamlet.Engine(hamlet.Workload.parse(f"{COUNT} WITHIN 1 d"), timezone="Asia/Tokyo")
    with pytest.raises(DataError, match="from 1970 on"):
        engine.push([{"time": -5, "type": "A"}])
    engine.push([{"time": 5, "type": "A"}])  # nothing was taken of the other push
    assert len(engine.close()) == 1


def test_windows_that_fit_no_day_are_refused() -> None:
    for window in ("5 h", "36 h", "1 d SLIDE 7 min"):
        with pytest.raises(WorkloadError, match="fit no day of Europe/Berlin"):
            rows_of(f"{COUNT} WITHIN {window}", [5], timezone="Europe/Berlin")
    with pytest.raises(OptionError, match="did you mean 'Europe/Berlin'"):
        hamlet.Engine(hamlet.Workload.parse(f"{COUNT} WITHIN 1 d"), timezone="Europe/Berln")


def test_a_failed_assertion_lists_the_trends_of_the_zone() -> None:
    start = seconds(2024, 3, 31)
    stream = f"A@{start} A@{start + 22 * 3600}"
    assert describe_trends(f"{COUNT}+ WITHIN 1 d", stream).count(": 1 trend\n") == 2  # two days by UTC
    text = describe_trends(f"{COUNT}+ WITHIN 1 d", stream, timezone="Europe/Berlin")
    assert text.startswith(f"q1, window [{start}, {start + 23 * 3600}): 3 trends")


def test_text_is_read_by_the_clock_of_the_zone(tmp_path: Path) -> None:
    """Midnight in WHERE is where the day's window begins; also where row groups of a file are left out by it."""
    start = seconds(2024, 3, 5)
    times = pa.array(range(start, start + 4 * 86_400, 3600), pa.timestamp("s", "UTC"))
    plain = times.cast(pa.timestamp("s"))
    table = pa.table({"time": times, "type": ["A"] * len(times), "born": plain})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=5)
    day = "A.time >= '2024-03-06' AND A.time < '2024-03-07'"
    rows = []
    for given in (table, tmp_path / "e.parquet"):
        for text, options in ((f"WHERE {day}", {}), ("", {"since": "2024-03-06", "until": "2024-03-07"})):
            workload = hamlet.Workload.parse(f"{COUNT} {text} WITHIN 1 d")
            rows += [hamlet.run(workload, given, timezone="Europe/Berlin", **options).rows()]
    assert all([row["count"] for row in each] == [24] for each in rows)
    workload = hamlet.Workload.parse(f"{COUNT} WHERE A.born = '2024-03-06' WITHIN 1 d")
    assert [row["count"] for row in hamlet.run(workload, table, timezone="Europe/Berlin").rows()] == [1]
    assert hamlet.run(workload, table, timezone="Europe/Berlin").rows()[0]["window_start"].timestamp() == start + 86_400


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    workload, events = tmp_path / "w.sase", tmp_path / "e.csv"
    workload.write_text(f"q: {COUNT} WITHIN 1 d\n")
    start = datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC) - datetime.timedelta(hours=2)
    moments = [start + datetime.timedelta(hours=each) for each in range(26)]
    events.write_text("".join(["time,type\n", *(f"{each:%Y-%m-%dT%H:%M:%SZ},A\n" for each in moments)]))
    given = ["--input", str(events), "--timezone", "Europe/Berlin"]

    def output(*arguments: str, code: int = 0) -> str:
        assert main(list(arguments)) == code
        said = capfd.readouterr()
        return said.out + said.err

    text = output("run", str(workload), *given, "--output", "-", "--output-format", "csv", "--quiet")
    rows = list(csv.DictReader(text.splitlines()))
    assert [(row["window_start"][:16], row["count"]) for row in rows] == [
        ("2024-03-29T23:00", "1"),
        ("2024-03-30T23:00", "23"),
        ("2024-03-31T22:00", "2"),
    ]
    period = ("--from", "2024-03-31", "--to", "2024-04-01")  # midnights of Berlin
    text = output("run", str(workload), *given, *period, "--output", "-", "--output-format", "csv", "--quiet")
    assert [row["count"] for row in csv.DictReader(text.splitlines())] == ["23"]
    assert "window_start=2024-03-30 23:00" in output(
        "trends", str(workload), *given, "--window", "2024-03-30 23:00:00Z"
    )
    shown_text = " ".join(output("explain", str(workload), *given).split())
    assert "begins at midnight by the clock of Europe/Berlin" in shown_text
    assert "pane 1 d" in shown_text
    output("check", str(workload), *given)
    workload.write_text(f"q: {COUNT} WITHIN 5 h\n")
    assert "fit no day of Europe/Berlin" in output("check", str(workload), "--timezone", "Europe/Berlin", code=2)
    naive = events.read_text().replace("Z,", ",")
    events.write_text(naive)
    workload.write_text(f"q: {COUNT} WITHIN 1 d OFFSET 2 h\n")
    assert "they are read as UTC" in output("run", str(workload), *given)
    policy = tmp_path / "p.mfotl"
    policy.write_text("A()")
    assert "--timezone is for workloads" in output("check", str(policy), "--timezone", "Europe/Berlin", code=2)
