"""Times as values: durations and instants in conditions, results and outputs."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import HamletError, OutputError, WorkloadError
from tests.effort import share_of
from tests.random_times import compare

DAY = datetime.datetime(2024, 3, 5)
SECOND = datetime.timedelta(seconds=1)
EVENTS: list[dict[str, Any]] = [
    {"time": DAY + 36_000 * SECOND, "type": "cart", "u": 1, "d": 3 * SECOND},
    {"time": DAY + 37_200.000001 * SECOND, "type": "buy", "u": 1, "d": 5.000001 * SECOND},
    {"time": DAY + 39_600 * SECOND, "type": "buy", "u": 1, "d": None},
]
TEXT = """
q: RETURN MAX(buy.time) - MIN(cart.time) AS took, AVG(buy.time) AS mean, SUM(buy.d) AS total, MIN(buy.d) AS least,
          MAX(buy.time) + 30 min AS later, (MAX(buy.time) - MIN(cart.time)) / 1 min AS minutes, 90 s AS fixed
   PATTERN SEQ(cart, buy) WHERE [u] HAVING MAX(buy.time) - MIN(cart.time) > 30 min WITHIN ALL
"""
ROW = {
    "query": "q",
    "window_start": None,
    "window_end": None,
    "took": 3600 * SECOND,
    "mean": DAY + 38_400 * SECOND,  # and half a microsecond: to the even one
    "total": 5.000001 * SECOND,
    "least": 5.000001 * SECOND,
    "later": DAY + 41_400 * SECOND,
    "minutes": 60.0,
    "fixed": 90 * SECOND,
}


def rows(text: str, events: Any, **options: Any) -> list[dict[str, Any]]:
    return hamlet.run(hamlet.Workload.parse(text), events, **options).rows()


@pytest.mark.parametrize("wrong", [0, 12])
def test_random_queries(wrong: int) -> None:
    found = [compare(seed, wrong) for seed in range(9_000, 9_000 + share_of(250))]
    assert {each for each in found if each not in (None, "refused")} == set()
    assert found.count(None) > share_of(60)


def test_random_queries_with_floats() -> None:
    assert {compare(seed, numbers="float") for seed in range(9_300, 9_400)} <= {None, "refused"}


def test_rows() -> None:
    table = pa.Table.from_pylist(EVENTS)
    for events in (EVENTS, table):
        assert rows(TEXT, events) == [ROW]
    engine = hamlet.Engine(hamlet.Workload.parse(TEXT))
    assert [engine.push([event]) for event in EVENTS] == [[], [], []]
    assert engine.close() == [ROW]
    found = hamlet.run(hamlet.Workload.parse(TEXT), table).table()
    assert found.schema.field("took").type == pa.duration("us")
    assert found.schema.field("later").type == pa.timestamp("us")
    assert found.to_pylist() == [ROW]


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, text = tmp_path / "events.csv", tmp_path / "times.sase"
    source.write_text("time,type\n2024-03-05 10:00:00,A\n2024-03-05 10:00:01.5,B\n")
    text.write_text("q: RETURN MIN(B.time) - MIN(A.time) AS d, MIN(B.time) AS t PATTERN SEQ(A, B) WITHIN ALL")
    for form, expected in (("json", '"d": 1.5'), ("csv", "q,,,1.5,2024-03-05T10:00:01.500000")):
        arguments = ["run", str(text), "--input", str(source), "--output", "-", "--output-format", form, "--quiet"]
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert expected in out, out
        if form == "json":
            assert json.loads(out)["d"] == 1.5
    folder = tmp_path / "out"
    assert main(["run", str(text), "--input", str(source), "-o", str(folder), "--quiet"]) == 0
    found = (
        pa.parquet.read_table(folder)
        if hasattr(pa, "parquet")
        else hamlet.run(hamlet.Workload.from_file(text), str(source)).table()
    )
    assert found.column("d").to_pylist() == [1.5 * SECOND]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_units(unit: str) -> None:
    times = pa.array([0, 1, 4], pa.timestamp(unit))
    events = pa.table({"time": times, "type": ["A", "B", "B"]})
    text = "q: RETURN AVG(B.time) - MIN(A.time) AS x, (MAX(B.time) - MIN(A.time)) / 8 AS y PATTERN SEQ(A, B) WITHIN ALL"
    [found] = rows(text, events)
    x, y = (np.timedelta64(found[name]).astype(f"m8[{unit}]").astype(int) for name in ("x", "y"))
    assert (x, y) == (2, 0)  # 2.5 and 0.5, each to the even neighbour
    if unit == "ns":
        assert found["x"] == np.timedelta64(2, "ns")


def test_a_mean_far_from_1970_is_exact_with_floats() -> None:
    times = pa.array([1_700_000_000_000_000_000 + tick for tick in (0, 3, 5)], pa.timestamp("ns"))
    events = pa.table({"time": times, "type": ["A", "B", "B"]})
    [found] = rows("q: RETURN AVG(B.time) - MIN(A.time) AS x PATTERN SEQ(A, B) WITHIN ALL", events, numbers="float")
    assert found["x"] == np.timedelta64(4, "ns")


@pytest.mark.parametrize("item", ["SUM(A.d)", "AVG(A.at)", "SUM(EVENTS A.d)", "AVG(EVENTS A.at)"])
@pytest.mark.parametrize("group", ["u", "COUNT(A)", "FIRST(A.u)"])
def test_times_that_come_late_with_floats(item: str, group: str) -> None:
    """Sums that have begun before an attribute turns out to be a time go on as they are, also when they are saved."""
    events: list[dict[str, Any]] = [{"time": second, "type": "A", "u": 1} for second in range(6)]
    for second, event in enumerate(events[3:5]):
        event |= {"d": second * SECOND, "at": DAY + second * SECOND}
    workload = hamlet.Workload.parse(f"q: RETURN COUNT(*), {item} AS x PATTERN A+ GROUP-BY {group} WITHIN 1 min")
    expected = hamlet.run(workload, events).rows()
    engine = hamlet.Engine(workload, numbers="float")
    found = []
    for event in events:
        found += engine.push([event])
        engine = hamlet.Engine.restore(workload, engine.save())
    assert found + engine.close() == expected


def test_what_numbers_turn_out_to_be_late_with_floats() -> None:
    events = [{"time": second, "type": "A"} | ({"x": 2} if second > 2 else {}) for second in range(5)]
    workload = hamlet.Workload.parse("q: RETURN COUNT(*), SUM(A.x) PATTERN A+ GROUP-BY COUNT(A) WITHIN 1 min")
    engine = hamlet.Engine(workload, numbers="float")
    found = [row for event in events for row in engine.push([event])] + engine.close()
    assert found == hamlet.run(workload, events).rows()


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_means_finer_than_a_datetime(zone: str | None) -> None:
    """What has no Python type, nanoseconds in a time zone, is rounded there, and only there."""
    kind = pa.timestamp("ns", zone)
    events = pa.table({"time": pa.array([0, 1_000_000, 1_000_001_000], kind), "type": ["A"] * 3})
    results = hamlet.run(hamlet.Workload.parse("q: RETURN AVG(A.time) AS m PATTERN A WITHIN ALL"), events)
    assert results.table("q")["m"].cast(pa.int64()).to_pylist() == [333_667_000]
    (row,) = hamlet.run(hamlet.Workload.parse("q: RETURN AVG(A.time) + 1 ms AS m PATTERN A WITHIN ALL"), events)
    assert row["m"].replace(tzinfo=None) == datetime.datetime(1970, 1, 1, 0, 0, 0, 334_667)
    odd = events.set_column(0, "time", pa.array([0, 0, 4_500], kind))
    (row,) = hamlet.run(hamlet.Workload.parse("q: RETURN AVG(A.time) AS m PATTERN A WITHIN ALL"), odd)
    assert np.datetime64(row["m"].replace(tzinfo=None) if zone else row["m"], "ns").astype(int) == (
        2000 if zone else 1500
    )


def test_sums_that_no_duration_holds() -> None:
    events = [{"time": time, "type": "A", "d": datetime.timedelta(days=9)} for time in range(80)]
    with pytest.raises(OutputError, match=r"SUM\(EVENTS \.\.\).*/ 1 s"):
        rows("q: RETURN SUM(A.d) PATTERN A+ WITHIN ALL", events)
    [found] = rows("q: RETURN SUM(A.d) / 1 s AS x PATTERN A+ HAVING SUM(A.d) > 1 d WITHIN ALL", events)
    assert found["x"] == 9 * 86_400 * 80 * 2**79
    assert rows("q: RETURN COUNT(*) PATTERN A+ HAVING SUM(A.d) < 1 d WITHIN ALL", events) == []


def test_rows_as_events() -> None:
    text = """
    a: RETURN MAX(buy.time) - MIN(cart.time) AS took PATTERN SEQ(cart, buy) WITHIN 1 h;
    b: RETURN SUM(a.took) AS total PATTERN a WHERE a.took > 10 min AND a.window_end - a.took > '2024-03-05' WITHIN ALL;
    """
    assert rows(text, EVENTS)[-1]["total"] == 1200.000001 * SECOND


@pytest.mark.parametrize("function", ["FIRST", "LAST"])
@pytest.mark.parametrize("attribute", ["d", "time"])
def test_times_that_trends_took(function: str, attribute: str) -> None:
    taken = f"{function}(A.{attribute})"
    text = f"RETURN {taken} AS x, COUNT(*) AS n PATTERN A+ GROUP-BY {taken} TOP 9 BY {taken} WITHIN ALL"
    events = [{"time": DAY + t * SECOND, "type": "A", "d": d} for t, d in enumerate([2 * SECOND, None, 1.5 * SECOND])]
    counts = {"FIRST": [4, 2, 1], "LAST": [1, 2, 4]}[function]
    expected = [(event[attribute], n) for event, n in zip(events, counts, strict=True)]
    assert sorted([(row["x"], row["n"]) for row in rows(text, events)], key=repr) == sorted(expected, key=repr)


def test_declared_durations() -> None:
    text = "EVENT A(d DURATION); q: RETURN MAX(A.d) - 1 s AS x PATTERN A WHERE A.d * 2 > 3 s WITHIN ALL"
    assert rows(text, [{"time": DAY, "type": "A", "d": 2 * SECOND}])[0]["x"] == SECOND
    with pytest.raises(WorkloadError, match="cannot be compared with"):
        hamlet.Workload.parse("EVENT A(d DURATION); RETURN COUNT(*) PATTERN A WHERE A.d > 3 WITHIN 1 s")


def test_numbers_of_an_attribute_declared_duration_are_seconds(tmp_path: Path) -> None:
    text = """EVENT A(d DURATION, v INT); EVENT B(v INT);
    q: RETURN SUM(A.d) AS s, AVG(A.d) AS mean, MIN(A.d) AS least, MAX(A.d) AS most
       PATTERN A WHERE A.d <> 1 s WITHIN ALL"""
    lengths = [1, 0.0000015, -2.25, None, 1.5]
    expected = {"s": -0.749998, "mean": -0.249999, "least": -2.25, "most": 1.5}  # 1.5 us is 2 us
    events = [{"time": place, "type": "A", "d": d, "v": place} for place, d in enumerate(lengths)]
    lines = [json.dumps(each) for each in events]
    (tmp_path / "e.jsonl").write_text("\n".join(lines))
    rest = [f"{each['time']},A,{'' if each['d'] is None else each['d']},{each['v']}" for each in events]
    (tmp_path / "e.csv").write_text("\n".join(["time,type,d,v", *rest]))
    (tmp_path / "both").mkdir()
    for name, part in (("a", rest[:2]), ("b", rest[2:])):
        (tmp_path / "both" / f"{name}.csv").write_text("\n".join(["time,type,d,v", *part]))
    for given in (events, *(str(tmp_path / name) for name in ("e.jsonl", "e.csv", "both"))):
        (row,) = rows(text, given)
        assert {name: row[name].total_seconds() for name in expected} == pytest.approx(expected, abs=1e-9)
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    for event in events:
        engine.push([event])
    assert engine.close() == rows(text, events)
    with pytest.raises(HamletError, match="too long for a DURATION"):
        rows(text, [{"time": 0, "type": "A", "d": 1e300, "v": 0}])
    with pytest.raises(WorkloadError, match="declared DURATION, but the column holds STRING"):
        rows(text, [{"time": 0, "type": "A", "d": "1 s", "v": 0}])
    table = pa.table({"time": [0], "type": ["A"], "d": [1.5], "v": [1]})  # Arrow has durations of its own
    with pytest.raises(WorkloadError, match="declared DURATION, but the column holds DOUBLE"):
        rows(text, table)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("SUM(buy.time)", "SUM takes"),
        ("MAX(buy.time) > 5", None),
        ("MAX(buy.time) + MIN(cart.time) AS x", "two instants have a difference, and no sum"),
        ("LOG2(MAX(buy.time)) AS x", "LOG2 takes numbers"),
        ("MAX(buy.time) * 2 AS x", "takes durations and numbers, and no instants"),
        ("MAX(buy.d) % 2 AS x", "'%' takes numbers"),
        ("MAX(buy.d) + 1 AS x", "'\\+' beside a time takes instants and durations: 1 is INT"),
        ("0.0001 ms AS x", "0.0001 ms is no whole number of microseconds"),
    ],
)
def test_refused(item: str, said: str | None) -> None:
    text = f"RETURN {item} PATTERN SEQ(cart, buy) WITHIN ALL"
    if said is None:
        text, said = f"RETURN COUNT(*) PATTERN SEQ(cart, buy) HAVING {item} WITHIN ALL", "cannot be compared with"
    for events in (pa.Table.from_pylist(EVENTS), EVENTS):
        with pytest.raises(HamletError, match=said):
            rows(text, events)


@pytest.mark.parametrize("condition", ["HAVING MAX(buy.time)", "WHERE buy.time", "HAVING MIN(buy.time) + 1 s"])
def test_text_with_a_zone_beside_times_without(condition: str) -> None:
    text = f"RETURN COUNT(*) PATTERN buy {condition} > '2024-03-05T10:00Z' WITHIN ALL"
    with pytest.raises(WorkloadError, match=r"<workload>:1:\d+: '2024-03-05T10:00Z' has a zone, and .* has none"):
        rows(text, pa.Table.from_pylist(EVENTS))


def test_means_of_what_is_known_late() -> None:
    """Of what kind a mean is, nobody knows before a value of the attribute has come."""
    moment = datetime.datetime(2024, 3, 5)
    events = [{"time": moment + datetime.timedelta(hours=hour), "type": "A"} for hour in range(3)]
    events[2] |= {"at": moment, "d": datetime.timedelta(hours=1)}
    later = "later: RETURN MAX(means.m) AS m PATTERN means WHERE means.m - 1 h < means.m WITHIN ALL;"
    for item, declared in (
        ("AVG(A.at) + AVG(A.d)", ""),
        ("MIN(A.d) + AVG(A.time)", "EVENT A(d DURATION);"),
        ("AVG(EVENTS A.time) - MIN(A.time) + AVG(A.at)", "EVENT A(at TIMESTAMP);"),
    ):
        text = f"{declared} means: RETURN {item} AS m PATTERN A WITHIN 1 h; {later}"
        workload = hamlet.Workload.parse(text)
        found = hamlet.run(workload, events).rows()
        assert [row["m"] for row in found] == [None, None, found[-1]["m"], found[-1]["m"]]
        assert isinstance(found[-1]["m"], datetime.datetime)
        engine = hamlet.Engine(workload)
        pushed = [row for event in events for row in engine.push([event])] + engine.close()
        assert pushed == found
    assert rows("RETURN AVG(A.never) + 1 AS m PATTERN A WITHIN ALL", events) == [
        {"query": "q1", "window_start": None, "window_end": None, "m": None}
    ]
    with pytest.raises(WorkloadError, match="is no integer"):
        hamlet.Workload.parse("RETURN AVG(A.x) % 2 PATTERN A WITHIN 1 s")


def test_times_of_a_declared_type() -> None:
    """Every event has the time and the type column, declared or not, by whatever name the time column is found."""
    for name in ("time", "ts", "timestamp"):
        text = f"EVENT A(x INT); RETURN MAX(A.{name}) AS last PATTERN A+ WHERE A.{name} > 1 AND A.type = 'A' WITHIN ALL"
        events = [{name: time, "type": "A", "x": 1} for time in range(4)]
        for given in (events, pa.Table.from_pylist(events)):
            (row,) = rows(text, given)
            assert row["last"] == 3
    with pytest.raises(WorkloadError, match="A is declared without the attribute 'ts'"):
        rows("EVENT A(x INT); RETURN MAX(A.ts) PATTERN A WITHIN ALL", [{"time": 1, "type": "A", "x": 1, "ts": 5}])


def test_bare_constants_are_exact() -> None:
    found = rows("RETURN 9223372036854775808 AS e, -1 AS m PATTERN A WITHIN 1 s", [{"time": 0, "type": "A"}])
    assert (found[0]["e"], found[0]["m"]) == (2**63, -1)
    assert isinstance(found[0]["e"], int)
