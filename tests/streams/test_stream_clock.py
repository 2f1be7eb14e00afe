"""Times of a specification's events: every form that a time column may have, what a user may give, what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hamlet.cli import main
from hamlet.errors import DataError, OptionError
from hamlet.streams import Monitor, Specification, run

COUNT = "input a: Int64  output n @1Hz := a.aggregate(over: 5s, using: count)"
SECONDS = (0, 1, 1, 2, 4)
START = datetime.datetime(2024, 3, 5, 12)
MOMENTS = [START + datetime.timedelta(seconds=each) for each in SECONDS]
ZONED = [each.replace(tzinfo=datetime.UTC) for each in MOMENTS]


def found(times: Any) -> list[tuple[Any, Any]]:
    """What the count every second gives over events at these times."""
    events = pa.table({"time": times, "a": list(range(len(times)))})
    shown = run(Specification.parse(COUNT), events, values=True).rows()
    return [(row["time"], row["value"]) for row in shown if row.get("stream") == "n"]


@pytest.mark.parametrize(
    "times",
    [
        pa.array(SECONDS, pa.int32()),
        pa.array(SECONDS, pa.uint8()),
        pa.array(SECONDS, pa.float64()),
        pa.array(SECONDS, pa.decimal128(12, 3)),
        pa.array([f" {each}" for each in SECONDS]),
        pa.array([f"{each}.0" for each in SECONDS]),
        pa.array(["0", "1", "1.00", "2", "4"]),  # a fraction anywhere makes all of it fractions
        pa.array(["0", "1e0", "10e-1", "2", "4"]),  # which Arrow's decimals do not read
    ],
    ids=["int32", "uint8", "float", "decimal", "text", "text of fractions", "text, some fractions", "exponents"],
)
def test_numbers_and_texts_are_the_times_of_integers(times: pa.Array) -> None:
    assert found(times) == found(pa.array(SECONDS)) == [(1, 3), (2, 4), (3, 4), (4, 5)]


@pytest.mark.parametrize(
    ("times", "start"),
    [
        (pa.array(MOMENTS, pa.timestamp("s")), START),
        (pa.array(MOMENTS, pa.timestamp("ns")), START),
        (pa.array([each.isoformat() for each in MOMENTS]), START),
        (pa.array(ZONED, pa.timestamp("us", "UTC")), START.replace(tzinfo=datetime.UTC)),
        (pa.array([f"{each.isoformat()}Z" for each in MOMENTS]), START.replace(tzinfo=datetime.UTC)),
    ],
    ids=["s", "ns", "text", "zone", "text with a zone"],
)
def test_timestamps_are_moments_of_their_zone(times: pa.Array, start: datetime.datetime) -> None:
    seconds = [((time - start).total_seconds(), value) for time, value in found(times)]
    assert seconds == found(pa.array(SECONDS))


def test_days_are_timestamps() -> None:
    days = pa.array([datetime.date(2024, 3, 5), datetime.date(2024, 3, 6)])
    counted = found(days)
    assert len(counted) == 86_400  # that of the last event's time, too
    assert counted[0] == (datetime.datetime(2024, 3, 5, 0, 0, 1), 1)
    assert counted[-2:] == [(datetime.datetime(2024, 3, 5, 23, 59, 59), 0), (datetime.datetime(2024, 3, 6), 1)]


def test_a_deadline_between_microseconds_is_a_moment_of_numpy() -> None:
    spec = Specification.parse("input a: Int64  output n @300000000Hz := a.aggregate(over: 1s, using: count)")
    times = pa.array(np.array([0, 10], "datetime64[ns]"))
    shown = run(spec, pa.table({"time": times, "a": [1, 2]}), values=True).rows()
    moments = [row["time"] for row in shown if row.get("stream") == "n"]
    assert moments[0] == np.datetime64(3, "ns")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([0, None, 2]), "NULL in row 2"),
        (
            pa.array(["soon", "later"]),
            r"holds 'soon' in event 1, which is no time: times are integers, seconds",
        ),
        (pa.array(["1", "two"]), "holds 'two' in event 2"),
        (pa.array([0.0, float("nan")]), "NULL in row 2"),
        (pa.array([0.0, float("inf")]), "holds inf in event 2"),
        (pa.array([0.5, 1e-10]), "holds 1e-10 in event 2,.* nanoseconds cannot hold"),
        (pa.array(["0.5", "0.1234567891"]), "holds '0.1234567891' in event 2,.* nanoseconds cannot hold"),
        (pa.array([0.0, 1e300]), r"holds 1e\+300 in event 2,.* more than 2\^61 nanoseconds"),
        (pa.array([0, 2**62]), r"beyond 2\^61 ticks"),
        (pa.array([True, False]), "holds bool; it must hold integers"),
    ],
    ids=["NULL", "words", "a word", "NaN", "infinity", "fine float", "fine text", "large float", "large", "bool"],
)
def test_what_is_no_time_is_refused(times: pa.Array, message: str) -> None:
    with pytest.raises(DataError, match=message):
        found(times)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (pa.array([0]), pa.array(MOMENTS[:1]), "after times of kind int64"),
        (pa.array(MOMENTS[:1]), pa.array([0]), "after timestamps"),
        (pa.array(MOMENTS[:1]), pa.array([0.5]), "fractional seconds after timestamps"),
        (pa.array(MOMENTS[:1]), pa.array(ZONED[:1]), "after times of kind timestamp"),
        (pa.array([0.5]), pa.array([2**40]), r"holds 1099511627776 in row 2 .* more than 2\^61 nanoseconds"),
    ],
    ids=["a moment after integers", "an integer", "a fraction", "a zone", "large after fractions"],
)
def test_a_stream_has_times_of_one_kind(first: pa.Array, second: pa.Array, message: str) -> None:
    monitor = Monitor(Specification.parse(COUNT))
    monitor.push(pa.table({"time": first, "a": [1]}))
    with pytest.raises(DataError, match=message):
        monitor.push(pa.table({"time": second, "a": [2]}))


def test_integers_after_fractions_are_seconds() -> None:
    monitor = Monitor(Specification.parse(COUNT), values=True)
    monitor.push(pa.table({"time": [0.5], "a": [1]}))
    assert [row["value"] for row in monitor.push(pa.table({"time": [3], "a": [2]})) if row["stream"] == "n"] == [1, 1]


@pytest.mark.parametrize("until", [4, 4.0, "4", " 4.0 ", Decimal(4), np.int64(4)], ids=repr)
def test_numbers_that_a_user_gives(until: Any) -> None:
    monitor = Monitor(Specification.parse(COUNT), values=True)
    monitor.push({"time": [0], "a": [1]})
    assert len([row for row in monitor.advance(until) if row["stream"] == "n"]) == 4


@pytest.mark.parametrize(
    "until",
    [START + datetime.timedelta(seconds=4), "2024-03-05T12:00:04", np.datetime64("2024-03-05T12:00:04")],
    ids=repr,
)
def test_moments_that_a_user_gives(until: Any) -> None:
    monitor = Monitor(Specification.parse(COUNT), values=True)
    monitor.push(pa.table({"time": pa.array(MOMENTS[:1]), "a": [1]}))
    assert len([row for row in monitor.advance(until) if row["stream"] == "n"]) == 4


@pytest.mark.parametrize(
    ("times", "until", "message"),
    [
        (pa.array([0]), "soon", "the time is 'soon'; it must be a whole number of ticks, or a time since 1970"),
        (pa.array([0]), MOMENTS[1], r"as a time of column 'time' \(int64\)"),
        (pa.array([0]), True, "int64"),
        (pa.array([0]), float("inf"), "int64"),
        (pa.array([0]), 2**62, r"at most 2\^61 ticks"),
        (pa.array(MOMENTS[:1]), "soon", "such as '2024-03-05'"),
        (pa.array(MOMENTS[:1]), ZONED[1], "timestamp"),
    ],
    ids=["a word", "a moment", "a bool", "infinity", "large", "no moment", "a zone"],
)
def test_what_a_user_gives_and_is_no_time_of_this_clock(times: pa.Array, until: Any, message: str) -> None:
    monitor = Monitor(Specification.parse(COUNT))
    monitor.push(pa.table({"time": times, "a": [1]}))
    with pytest.raises(OptionError, match=message):
        monitor.advance(until)


def test_a_unit_that_there_is_not() -> None:
    with pytest.raises(OptionError, match="time_unit is 'min'"):
        run(Specification.parse(COUNT), pa.table({"time": [0], "a": [1]}), time_unit="min")


@pytest.mark.parametrize(
    ("offline", "ours"),
    [
        ("relative", ["--start", "0"]),
        ("relative-float-secs", ["--start", "0"]),
        ("relative-uint-nanos", ["--start", "0", "--time-unit", "ns"]),
        ("absolute-unix", []),
    ],
)
def test_times_by_the_names_of_rtlola(
    offline: str, ours: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.lola").write_text("input x: Int64\noutput n @2s := x.hold(or: 0)\ntrigger n > 1")
    times = [5 * 10**9, 7 * 10**9, 11 * 10**9] if offline.endswith("nanos") else [5, 7, 11]
    (tmp_path / "e.csv").write_text("time,x\n" + "".join(f"{each},{place}\n" for place, each in enumerate(times)))
    common = ["monitor", str(tmp_path / "s.lola"), "--input", str(tmp_path / "e.csv"), "--output", "-", "--quiet"]
    found = []
    for more in ([*ours, "--values"], ["--offline", offline, "--verbosity", "outputs"]):
        assert main([*common, *more]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert found[0].count('"stream": "n"') == (5 if ours else 3)
    assert main([*common, *ours]) == 0
    expected = capsys.readouterr().out
    assert main([*common, "--offline", offline, "--verbosity", "violations"]) == 0
    assert capsys.readouterr().out == expected


def test_times_that_begin_at_zero_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.lola").write_text("input x: Int64\ntrigger x > 1")
    (tmp_path / "e.csv").write_text("time,x\n2024-03-05T10:00:00,1\n")
    asked = ["monitor", str(tmp_path / "s.lola"), "--input", str(tmp_path / "e.csv"), "--offline", "relative"]
    for more in ([], ["--limit", "9"]):
        assert main([*asked, *more]) == 2
        assert capsys.readouterr().err.startswith("error: --offline relative says --start 0; it must be a time such as")


def test_times_from_the_event_before_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.lola").write_text("input x: Int64\ntrigger x > 1")
    for more, said in (
        (["--offline", "offset-nanos"], "add them up"),
        (["--offline", "relative", "--start", "3"], "leave them out"),
        (["--verbosity", "loud"], "not one of"),
    ):
        assert main(["monitor", str(tmp_path / "s.lola"), "--input", "-", *more]) == 2
        assert said in capsys.readouterr().err
