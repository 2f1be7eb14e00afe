"""Specifications over events: the evaluator against the oracle, its faces, and what is hostile to it."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.cli import main
from hamlet.errors import (
    DataError,
    HamletError,
    MemoryLimitError,
    OptionError,
    RestoreError,
    UnsupportedError,
    WorkloadError,
)
from hamlet.oracle.streams import evaluate
from hamlet.streams import Monitor, Specification, run
from hamlet.streams.program.routing import routed_by
from tests.compare_streams import compare
from tests.effort import share_of
from tests.streams.stream_runs import run_pushed, run_whole

COUNT = "input a: Int64  output n @1Hz := a.aggregate(over: 5s, using: count)"


def rows(text: str, events: Any, **options: Any) -> list[dict[str, Any]]:
    return run(Specification.parse(text), events, values=True, **options).rows()


def values(text: str, events: Any, stream: str, **options: Any) -> list[tuple[Any, Any]]:
    return [(row["time"], row["value"]) for row in rows(text, events, **options) if row.get("stream") == stream]


# ------------------------------------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("first", range(0, 200, 100))
def test_random_specifications_whole(first: int) -> None:
    assert compare(range(first, first + share_of(100)), run_whole) is None


def test_random_specifications_pushed_saved_and_restored() -> None:
    assert compare(range(5000, 5100), run_pushed) is None


# ---------------------------------------------------------------------------------------------------------- windows


def test_a_deadline_comes_after_the_events_of_its_time_and_before_later_ones() -> None:
    events = {"time": [0, 1, 1, 2, 4], "a": [1, 2, 3, 4, 5]}
    # at 1: both events of time 1 count; the deadline at the last event's time comes at the end
    assert values("input a: Int64  output n @1Hz := a.aggregate(over: 1s, using: count)", events, "n") == [
        (1, 2),
        (2, 1),
        (3, 0),
        (4, 1),
    ]


def test_a_window_excludes_its_begin_and_includes_its_end() -> None:
    events = [{"time": time, "a": 1} for time in (0.0, 0.5, 1.0, 1.5, 2.0, 9.0)]
    found = values("input a: Int64  output n @2Hz := a.aggregate(over: 1s, using: count)", events, "n")
    assert found[:4] == [(0.5, 2), (1.0, 2), (1.5, 2), (2.0, 2)]


@pytest.mark.parametrize(
    ("using", "expected"),
    [("sum", 7.5), ("avg", 2.5), ("min", 1.0), ("max", 4.0), ("last", 4.0), ("median", 2.5), ("pctl25", 1.0)],
)
def test_aggregates(using: str, expected: float) -> None:
    text = f"input a: Float64  output x @1s := a.aggregate(over: 10s, using: {using})" + (
        ".defaults(to: 0.0)" if using != "sum" else ""
    )
    events = {"time": [0.25, 0.5, 0.75, 5.0], "a": [1.0, 2.5, 4.0, 0.0]}
    assert values(text, events, "x", start=0)[0] == (1.0, expected)


def test_moments_and_the_integral() -> None:
    text = """input a: Float64
    output v @1s := a.aggregate(over: 10s, using: var).defaults(to: -1.0)
    output s @1s := a.aggregate(over: 10s, using: sd).defaults(to: -1.0)
    output i @1s := a.aggregate(over: 10s, using: integral)"""
    events = {"time": [0.0, 0.5, 1.0, 1.5], "a": [1.0, 3.0, 5.0, 0.0]}
    found = {row["stream"]: row["value"] for row in rows(text, events) if row["time"] == 1.0}
    assert found["v"] == pytest.approx(8 / 3)
    assert found["s"] == pytest.approx((8 / 3) ** 0.5)
    assert found["i"] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("a.count(over: 2s)", "a.aggregate(over: 2s, using: count)"),
        ("a.count(2s)", "a.aggregate(over: 2s, using: count)"),
        ("f.avg(2s, or: 0.0)", "f.aggregate(over: 2s, using: avg).defaults(to: 0.0)"),
        ("f.median(over: 3s, or: 0.0)", "f.aggregate(over: 3s, using: median).defaults(to: 0.0)"),
        ("f.pctl25(over: 3s, or: 0.0)", "f.aggregate(over: 3s, using: pctl25).defaults(to: 0.0)"),
        ("a.min(over: 3s, or: 0)", "a.aggregate(over: 3s, using: min).defaults(to: 0)"),
        ("a.last(over: 3s, or: 0)", "a.aggregate(over: 3s, using: last).defaults(to: 0)"),
        ("b.exists(over: 2s)", "b.aggregate(over: 2s, using: exists)"),
        ("b.forall(2s)", "b.aggregate(over: 2s, using: forall)"),
        ("a.sum(over_exactly: 2s, or: -1)", "a.aggregate(over_exactly: 2s, using: sum).defaults(to: -1)"),
    ],
)
def test_windows_in_short(short: str, long: str) -> None:
    events = {"time": [0, 1, 2, 4], "a": [1, 2, 3, 4], "f": [1.0, 2.0, 4.0, 8.0], "b": [True, False, True, True]}
    head = "import math\ninput a: Int64, f: Float64, b: Bool\noutput o @1Hz := "
    assert values(head + short, events, "o") == values(head + long, events, "o")


def test_regular_expressions_do_not_backtrack_and_know_all_alphabets() -> None:
    head = 'import regex\ninput a: String\noutput o := a.matches(regex: "%s")'
    hard = {"time": [0, 1], "a": ["a" * 40 + "b", "aaa"]}
    assert [value for _, value in values(head % "^(a+)+$", hard, "o")] == [False, True]
    letters = {"time": [0, 1, 2], "a": ["é1", "٣٣", "a"]}
    assert [value for _, value in values(head % r"^\w+\d$", letters, "o")] == [True, True, False]
    with pytest.raises(WorkloadError, match="no back-references"):
        Specification.parse(head % r"(a)\1")


def test_discrete_windows_in_short_and_what_only_looks_so() -> None:
    events = {"time": [0, 1, 2], "a": [1, 2, 3]}
    head = "import math\ninput a: Int64\noutput o := "
    assert [value for _, value in values(head + "a.sum(over_discrete: 2)", events, "o")] == [1, 3, 5]
    assert [value for _, value in values(head + "a.min(2)", events, "o")] == [1, 2, 2]
    assert [value for _, value in values(head + "a.last(or: 7)", events, "o")] == [7, 1, 2]


def test_exact_windows_wait_for_their_first_full_length() -> None:
    text = "input a: Int64  output n @1Hz := a.aggregate(over_exactly: 3s, using: count).defaults(to: 99)"
    assert values(text, {"time": [0, 6], "a": [1, 1]}, "n") == [(1, 99), (2, 99), (3, 0), (4, 0), (5, 0), (6, 1)]


def test_fractions_of_a_second_as_periods() -> None:
    text = "input a: Int64  output n @3Hz := a.aggregate(over: 1s, using: count)"
    times = [row["time"] for row in rows(text, {"time": [0, 2], "a": [1, 1]})]
    assert times == [0.333333333, 0.666666666, 1, 1.333333333, 1.666666666, 2]


def test_memory_does_not_grow_with_the_rate() -> None:
    spec = Specification.parse(COUNT)
    held = []
    for rate in (1_000, 100_000):
        times = np.arange(20 * 1_000_000 // 1_000 * 1) * (1_000_000 // rate)
        monitor = Monitor(spec, time_unit="us")
        monitor.push({"time": times, "a": np.ones(len(times), np.int64)})
        held.append(monitor.stats["bytes"])
    assert held[0] <= 6 * 240 + 20 * 128
    assert held[1] <= held[0]


# -------------------------------------------------------------------------------------------------------- instances


def test_instances_are_spawned_found_and_closed() -> None:
    text = """input p: String
    output n(q: String) spawn with p eval when p = q with n(q).offset(by: -1).defaults(to: 0) + 1 close when n(q) > 1"""
    found = rows(text, {"time": [0, 1, 2, 3], "p": ["x", "x", "x", "y"]})
    assert [(row["q"], row["value"]) for row in found] == [("x", 1), ("x", 2), ("x", 1), ("y", 1)]


def test_streams_with_the_same_deadlines_of_their_own_end_their_own_instances() -> None:
    clauses = "(k: Int64) spawn with a eval @Global(2Hz) with 1 close @Local(1Hz)"
    text = f"""input a: Int64  output o{clauses}  output q{clauses}
    output x @a := o.aggregate(over_instances: all, using: count)"""
    assert values(text, {"time": [0, 1, 2, 3], "a": [1, 2, 3, 4]}, "x") == [(0, 0), (1, 1), (2, 1), (3, 1)]


def test_a_close_at_a_deadline_of_its_own_comes_after_those_of_others() -> None:
    text = """input a: Int64
    output o(k: Int64) spawn with a eval when a = k with 0 close @Local(1Hz) when o(k).hold(or: 1) = 0
    output x @a := o.aggregate(over_instances: all, using: count)"""
    assert values(text, {"time": [0, 0.5, 2], "a": [1, 2, 3]}, "x") == [(0, 1), (0.5, 2), (2, 1)]


def test_a_close_hears_of_the_end_of_an_instance_that_it_reads() -> None:
    text = """input a: Int64, b: Int64, c: Bool
    output o(k: Int64) spawn with a eval when a = k with a close @c when c
    output q(k: Int64) spawn with a eval @b with b close @b when o(k).hold(or: 0) = 0"""
    events = {
        "time": [0, 1, 2, 3, 4],
        "a": [1, *[None] * 4],
        "b": [None, 5, None, 6, 7],
        "c": [*[None] * 2, True, *[None] * 2],
    }
    assert values(text, events, "q") == [(1, 5), (3, 6)]


def test_many_instances_are_not_scanned() -> None:
    text = """input p: Int64
    output n(q: Int64) spawn with p eval when p = q with n(q).offset(by: -1).defaults(to: 0) + 1 close when n(q) > 5"""
    spec = Specification.parse(text)
    keys = np.arange(200_000) % 100_000
    results = run(spec, {"time": np.arange(len(keys)), "p": keys})
    assert results.stats["instances"] == 100_000  # in seconds: a scan would take 10^10 steps


def test_parameters_of_rows() -> None:
    text = (
        'input a: Int64, b: String  trigger (x: Int64, y: String) spawn with (a, b) eval when x = a && y = b with "m"'
    )
    found = run(Specification.parse(text), {"time": [0, 1], "a": [1, 2], "b": ["u", "v"]}).rows()
    assert found == [
        {"trigger": "m", "time": 0, "x": 1, "y": "u"},
        {"trigger": "m", "time": 1, "x": 2, "y": "v"},
    ]


# --------------------------------------------------------------------------------------------------- input and times


def test_csv_has_fractions_marks_and_empty_fields(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,a,s\n0,1,\n0.000536,#,x\n2,,#\n")
    text = 'input a: Int64, s: String  output x := a  output y := s  trigger s = "x" "here"'
    found = run(Specification.parse(text), file, values=True).rows()
    assert found == [
        {"stream": "x", "time": 0.0, "value": 1},
        {"stream": "y", "time": 0.0, "value": ""},
        {"stream": "y", "time": 0.000536, "value": "x"},
        {"trigger": "here", "time": 0.000536},
    ]


def test_texts_that_look_like_numbers_stay_texts(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("time,s,type\n0,007,A\n")
    found = run(
        Specification.parse("input s: String, type: String  output y := s  output z := type"), file, values=True
    )
    assert [row["value"] for row in found] == ["007", "A"]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "table", "columns", "dicts", "stream"])
def test_every_form_of_events_gives_the_same(kind: str, tmp_path: Path) -> None:
    table = pa.table({"time": [1, 2, 4], "a": pa.array([5, None, 7])})
    text = "input a: Int64  output b := a * 2  output n @1Hz := a.aggregate(over: 2s, using: count)"
    file = tmp_path / f"events.{kind}"
    forms: dict[str, Callable[[], Any]] = {
        "table": lambda: table,
        "columns": lambda: {"time": table["time"], "a": table["a"]},
        "dicts": lambda: iter([{"time": 1, "a": 5}, {"time": 2}, {"time": 4, "a": 7}]),
        "stream": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    }
    if kind == "parquet":
        pq.write_table(table, file)
    elif kind == "csv":
        file.write_text("time,a\n1,5\n2,\n4,7\n")
    elif kind == "jsonl":
        file.write_text('{"time": 1, "a": 5}\n{"time": 2}\n\n{"time": 4, "a": 7}\n')
    found = rows(text, forms[kind]() if kind in forms else file)
    assert [(row["stream"], row["time"], row["value"]) for row in found] == [
        ("b", 1, 10),
        ("n", 2, 1),
        ("n", 3, 0),
        ("b", 4, 14),
        ("n", 4, 1),
    ]


def test_timestamps_come_back_as_timestamps() -> None:
    start = datetime.datetime(2024, 3, 5, 12)
    events = [{"time": start, "a": 1}, {"time": start + datetime.timedelta(seconds=2), "a": 2}]
    assert rows(COUNT, events)[0]["time"] == start + datetime.timedelta(seconds=1)


def test_a_start_before_the_first_event() -> None:
    assert values(COUNT, {"time": [2, 3], "a": [1, 1]}, "n", start=0) == [(1, 0), (2, 1), (3, 2)]
    with pytest.raises(DataError, match="before the start"):
        rows(COUNT, {"time": [2], "a": [1]}, start=3)


def test_times_that_decrease_are_an_error_unless_there_is_lateness() -> None:
    events = {"time": [0, 3, 1, 9], "a": [1, 2, 3, 4]}
    with pytest.raises(DataError, match=r"event 3 is late.*no event before 3"):
        rows(COUNT, events)
    sorted_events = {"time": [0, 1, 3, 9], "a": [1, 3, 2, 4]}
    assert rows(COUNT, events, lateness=2) == rows(COUNT, sorted_events)
    assert run(Specification.parse(COUNT), events, late="drop").stats["late_events"] == 1


TUPLES = "input a: (Int64, (Bool, Float64)), s: Int64  output b := a.0 + s  output c := a[-1].1.0.defaults(to: false)"


def test_tuples_are_read_from_every_form(tmp_path: Path) -> None:
    events = [{"time": 0, "a": (42, (True, 1.5)), "s": 1}, {"time": 1, "a": (13, (False, 2)), "s": 2}]
    expected = [(0, 43), (1, 15)]
    assert values(TUPLES, events, "b") == expected
    assert values(TUPLES, events, "c") == [(0, False), (1, True)]
    columns = {name: [each[name] for each in events] for name in ("time", "a", "s")}
    assert values(TUPLES, columns, "b") == expected
    struct = pa.struct([("x", pa.int64()), ("y", pa.struct([("f", pa.bool_()), ("g", pa.float64())]))])
    rows_of = [{"x": a, "y": {"f": f, "g": float(g)}} for a, (f, g) in columns["a"]]
    table = pa.table({"time": [0, 1], "a": pa.array(rows_of, struct), "s": [1, 2]})
    assert values(TUPLES, table, "b") == expected
    (tmp_path / "e.json").write_text("".join(json.dumps(each) + "\n" for each in events))
    assert values(TUPLES, tmp_path / "e.json", "b") == expected
    monitor = Monitor(Specification.parse(TUPLES), values=True)
    assert [row["value"] for row in monitor.push(events) if row["stream"] == "b"] == [43, 15]


@pytest.mark.parametrize(
    "value", [("x", (True, 1.0)), (1, (1, 1.0)), (1, True), (1,), (2**63, (True, 1.0)), (1, (True, float("nan")))]
)
def test_tuples_of_another_type_are_an_error(value: object) -> None:
    with pytest.raises(DataError, match="'a'"):
        rows(TUPLES, [{"time": 0, "a": value, "s": 1}])


def test_text_is_no_tuple(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('time,a,s\n0,"(1, (true, 1.0))",1\n')
    with pytest.raises(WorkloadError, match=r"a is \(Int64, \(Bool, Float64\)\), and its column holds string"):
        rows(TUPLES, tmp_path / "e.csv")


def test_coded_columns() -> None:
    text = 'input s: String  trigger eval when s != "" with "<{{}}>".format(s)'
    coded = pa.array([7, 8, None, 7]).dictionary_encode()
    said = [row["trigger"] for row in rows(text, pa.table({"time": [0, 1, 2, 3], "s": coded}))]
    assert said == ["<7>", "<8>", "<7>"]


def test_times_beyond_the_clock_are_an_error() -> None:
    with pytest.raises(DataError, match=r"more than 2\^61 nanoseconds"):
        rows(COUNT, {"time": [0.5, 1e300], "a": [1, 2]})


def test_no_events_give_no_rows() -> None:
    assert rows(COUNT, []) == []
    with pytest.raises(OptionError, match="not a str"):
        run("input a: Int64", [])  # type: ignore[arg-type]


def test_a_close_reads_newest_values() -> None:
    text = """input a: Int64, r: Bool
    output n(p) spawn @a with a eval @a when a = p with n(p).offset(by: -1).defaults(to: 0) + 1
        close @(a && r) when n(p) > 1 && r"""
    events = {"time": [0, 1, 2, 3], "a": [1, 1, 2, 1], "r": [False, False, True, False]}
    # instance 1 ends at 2, where it is not extended: at 3 it counts from one again
    assert values(text, events, "n") == [(0, 1), (1, 2), (2, 1), (3, 1)]
    specification = Specification.parse(text)
    steps = [(time * 10**9, {"a": a, "r": r}) for time, a, r in zip(*events.values(), strict=True)]
    found = [row["value"] for group in evaluate(specification.program, steps, values=True) for row in group.rows]
    assert found == [1, 2, 1, 1]


def test_what_does_not_fit_an_input_is_said() -> None:
    with pytest.raises(WorkloadError, match="the events have no column 'a'") as all_at_once:
        rows("input a: Int64, b: Bool  trigger b", pa.table({"time": [1], "b": [1]}))
    assert "b is Bool, and its column holds int64" in str(all_at_once.value)
    with pytest.raises(DataError, match="column 'a' holds"):
        rows(COUNT, {"time": [1], "a": ["five"]})
    with pytest.raises(DataError, match="NaN"):
        rows("input a: Float64  output b := a", {"time": [1], "a": np.array([np.nan])})


# ----------------------------------------------------------------------------------------------------------- monitor


def test_advance_runs_deadlines_up_to_a_time_and_close_runs_none() -> None:
    monitor = Monitor(Specification.parse(COUNT), values=True)
    assert monitor.push([{"time": 0, "a": 1}]) == []
    assert [row["time"] for row in monitor.advance(2)] == [1, 2]
    with pytest.raises(DataError, match="is late"):
        monitor.push([{"time": 2, "a": 1}])
    assert [row["time"] for row in monitor.push({"time": 3.5, "a": 1})] == [3]
    assert monitor.close() == []
    with pytest.raises(HamletError, match="closed"):
        monitor.push([])


def test_a_save_that_is_damaged_or_of_another_specification_is_refused() -> None:
    spec = Specification.parse(COUNT)
    monitor = Monitor(spec)
    monitor.push([{"time": 0, "a": 1}])
    data = monitor.save()
    for bad in (b"", data[:20], data[:-1], data + b"x", data[:60] + b"?" + data[61:], b"\x00" * len(data)):
        with pytest.raises(RestoreError):
            Monitor.restore(spec, bad)
    with pytest.raises(RestoreError, match="of other specifications"):
        Monitor.restore(Specification.parse(COUNT.replace("1", "2", 1)), data)


def test_memory_has_a_limit_that_names_the_stream() -> None:
    text = "input p: Int64  output n(q: Int64) spawn with p eval when p = q with 1"
    with pytest.raises(MemoryLimitError, match="'n'"):
        run(Specification.parse(text), {"time": np.arange(5000), "p": np.arange(5000)}, max_memory="100 kB")


# ----------------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input a: Int64  output b := a * 9223372036854775807", r"'b' at time 1: 2 \* 9223372036854775807 is beyond"),
        ("input a: Int64  output b := 1 / (a - 2)", "'b' at time 1: 1 / 0 is an integer division by zero"),
        ("import math input a: Int64  output b := sqrt(cast<Int64, Float64>(0 - a))", r"'b' at time 1: sqrt\(-2\)"),
        ("input a: Int64  output b := cast<Int64, UInt64>(0 - a)", "'b' at time 1: -2 does not fit UInt64"),
        ("input a: UInt64  output b := -a", r"'b' at time 1: -\(2\) is beyond 64 bits \(UInt64\)"),
    ],
)
def test_computations_without_result_name_stream_and_time(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        rows(text, {"time": [1], "a": [2]})


def test_an_integer_is_rounded_as_a_float() -> None:
    assert values("import math input a: Int64  output b := round(a, 2)", {"time": [0], "a": [-5]}, "b") == [(0, -5.0)]


def test_a_jump_of_long_ages_passes_deadlines_without_effect_in_one_step() -> None:
    text = """input a: Int64
    output n @1kHz := a.aggregate(over: 5s, using: count)
    output last @1kHz := n.offset(by: -3).defaults(to: 0) + n
    trigger @1kHz last > 1 "two"
    """
    events = {"time": [0, 10**15, 10**15 + 1], "a": [1, 2, 3]}
    found = run(Specification.parse(text), events)
    few = run(Specification.parse(text), {"time": [0, 10**4, 10**4 + 1], "a": [1, 2, 3]})
    assert len(found) == len(few) > 1000
    assert found.stats["deadlines"] < 100_000


def test_a_jump_whose_deadlines_matter_stops_and_says_how_many_are_due() -> None:
    with pytest.raises(DataError, match="about 999,999,999 deadlines are due"):
        run(
            Specification.parse("input a: Int64  trigger @1kHz a.hold(or: 0) > 0"),
            {"time": [0, 10**6], "a": [1, 2]},
            max_deadlines=1000,
        )


def test_times_that_stand_still() -> None:
    found = run(Specification.parse(COUNT), {"time": np.zeros(100_000, np.int64), "a": np.ones(100_000, np.int64)})
    assert found.stats["deadlines"] == 0


def test_thousands_of_streams() -> None:
    text = "input a: Int64\n" + "".join(f"output s{number} := a + {number}\n" for number in range(3_000))
    found = run(Specification.parse(text), {"time": [0, 1], "a": [1, 2]}, values=True)
    assert len(found) == 6_000
    assert found.rows()[-1] == {"stream": "s2999", "time": 1, "value": 3_001}


# -------------------------------------------------------------------------------------------------------- the command


def spec_file(folder: Path, text: str, name: str = "watch") -> str:
    file = folder / f"{name}.lola"
    file.write_text(text)
    return str(file)


def test_monitor_prints_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0.5,1\n1.25,9\n")
    watch = spec_file(tmp_path, 'input a: Int64  output b := a * 2  trigger b > 10 "big"  trigger a = 1')
    arguments = ["monitor", watch, "--input", str(tmp_path / "e.csv"), "--output", "-"]
    assert main(arguments) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said == [{"trigger": "", "time": 0.5}, {"trigger": "big", "time": 1.25}]
    assert main([*arguments, "--values"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"stream": "b", "time": 1.25, "value": 18} in said
    assert len(said) == 4


def test_several_specifications_in_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n1,9\n")
    files = [
        spec_file(tmp_path, 'input a: Int64  trigger a > 5 "big"', "one"),
        spec_file(tmp_path, 'input a: Int64  trigger a < 5 "small"', "two"),
    ]
    assert main(["monitor", *files, "--input", str(tmp_path / "e.csv"), "--output", "-"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said == [
        {"specification": "one", "trigger": "big", "time": 1},
        {"specification": "two", "trigger": "small", "time": 0},
    ]


def test_what_several_specifications_must_agree_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The types of inputs that they share; the mistakes of all of them are told at once."""
    (tmp_path / "e.csv").write_text("time,a\n0,1\n")
    whole = spec_file(tmp_path, "input a: Int64  trigger a > 5", "whole")
    real = spec_file(tmp_path, "input a: Float64  trigger a > 5.0", "real")
    arguments = ["--input", str(tmp_path / "e.csv")]
    assert main(["monitor", whole, real, *arguments]) == 2
    assert "input a is of type Int64 in one specification and Float64 in another" in capsys.readouterr().err
    wrong = [spec_file(tmp_path, f"input a: Int64  trigger {name} > 5", name) for name in ("b", "c")]
    assert main(["monitor", whole, *wrong, *arguments]) == 2
    said = capsys.readouterr().err
    assert "b.lola:1:" in said
    assert "c.lola:1:" in said
    assert main(["monitor", whole, *arguments, "--output-format", "csv"]) == 2
    assert "--output-format needs --output" in capsys.readouterr().err
    assert main(["monitor", whole, *arguments, "--output", "-", "--limit", "3"]) == 2
    assert "--limit is for tables; --output writes all rows" in capsys.readouterr().err
    assert main(["monitor", whole, *arguments, "--output", "-", "--output-format", "monpoly"]) == 2
    assert "--output-format monpoly writes what satisfies a policy" in capsys.readouterr().err


def test_a_table_for_each_specification(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n" + "".join(f"{time},9\n" for time in range(5)))
    files = [spec_file(tmp_path, "input a: Int64  trigger a > 5", name) for name in ("one", "two")]
    assert main(["monitor", *files, "--input", str(tmp_path / "e.csv"), "--limit", "2"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    for table, name in ((first, "one"), (second, "two")):
        assert table.startswith(f"{name}: 5 rows")


def test_explain_of_a_specification(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = spec_file(tmp_path, "input a: Int64  output n(p) spawn with a eval when a = p with a")
    assert main(["explain", watch]) == 0
    said = capsys.readouterr()
    assert "no total: n keeps 0 B for each instance" in said.out
    assert "warning: instances of n are never closed" in said.err
    assert main(["explain", watch, "--quiet", "--html", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr() == ("", "")
    assert "for each instance" in (tmp_path / "page.html").read_text()


def test_a_table_shows_values_of_several_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n1,9\n")
    text = 'input a: Int64  output b := a  output c @a := "x"  output t := (a, 0.5)  output d @2.5Hz := a.hold(or: 0)'
    watch = spec_file(tmp_path, text)
    assert main(["monitor", watch, "--input", str(tmp_path / "e.csv"), "--values"]) == 0
    said = capsys.readouterr().out
    assert "watch: 8 rows" in said
    assert "{'0': 9, '1': 0.5}" in said
    (tmp_path / "e.csv").write_text("time,a\n")
    assert main(["monitor", watch, "--input", str(tmp_path / "e.csv"), "--values"]) == 0


def test_parquet_has_a_column_for_each_type_of_values(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n")
    watch = spec_file(tmp_path, "input a: Int64  output b := a > 1  output t := (a, 0.5)")
    out = tmp_path / "out"
    assert main(["monitor", watch, "--input", str(tmp_path / "e.csv"), "--values", "--output", str(out)]) == 0
    part = next((out / "specification=watch").iterdir())
    table = pq.read_table(part)
    assert table["value_bool"].to_pylist() == [False, None]
    assert table["value_tuple"].to_pylist() == [None, {"0": 1, "1": 0.5}]


def test_tuples_of_several_types_stay_apart_in_tables() -> None:
    text = (
        "input a: Int64  output i := (a, 0.5)  output f @a := (0.75, 1.5)  output n := (a, (a, true))  output s @a := a"
    )
    table = run(Specification.parse(text), [{"time": 0, "a": 3}], values=True).table()
    given = [(row["stream"], [row[each] for each in row if each.startswith("value")]) for row in table.to_pylist()]
    found = {name: [value for value in values if value is not None] for name, values in given}
    assert found == {
        "i": [{"0": 3, "1": 0.5}],
        "f": [{"0": 0.75, "1": 1.5}],
        "n": [{"0": 3, "1": {"0": 3, "1": True}}],
        "s": [3],
    }


def test_tuples_of_several_types_are_written_as_one_type_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n2,3\n")
    text = 'input a: Int64  output t := (a, (a, 0.5))  output u @a := "x"  output w @2.5Hz := a.hold(or: 0)'
    for said, form in ((text.split("  output u")[0], "json"), (text, "json"), (text, "csv")):
        watch = spec_file(tmp_path, said)
        given = ["--input", str(tmp_path / "e.csv"), "--values", "--output", "-", "--output-format", form, "--quiet"]
        assert main(["monitor", watch, *given]) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if "0.5}" in line]
        if form == "json":
            assert [json.loads(each)["value"] for each in lines] == [{"0": v, "1": {"0": v, "1": 0.5}} for v in (1, 3)]
        else:
            assert lines == [
                f't,{at},"{{""0"": {v}, ""1"": {{""0"": {v}, ""1"": 0.5}}}}"' for at, v in ((0, 1), (2, 3))
            ]


def test_disorder_and_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.csv").write_text("time,type,a\n0,A,1\n3,A,2\n1,A,3\n")
    watch = spec_file(tmp_path, 'input a: Int64  trigger a > 1 "big"')
    arguments = ["monitor", watch, "--input", str(tmp_path / "e.csv"), "--output", "-"]
    assert main(arguments) == 2
    assert "--lateness" in capsys.readouterr().err
    assert main([*arguments, "--lateness", "2"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [1, 3]
    assert main([*arguments, "--late", "drop"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [3]
    # a pipe gives what it has once, and a policy and a specification both read it
    (tmp_path / "p.sig").write_text("A(a: int)")
    (tmp_path / "p.mfotl").write_text("A(x) AND x > 1")
    piped = io.TextIOWrapper(io.BytesIO(b"time,type,a\n0,A,1\n3,A,2\n"))
    monkeypatch.setattr("sys.stdin", piped)
    files = [watch, str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig")]
    assert main(["monitor", *files, "--input", "-", "--input-format", "csv", "--output", "-"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [3, 3]


@pytest.mark.parametrize("time", ["time", "ts"])
def test_where_needs_no_type_column_and_takes_fractions(
    time: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text(f"{time},a,s\n0.5,1,x\n1.25,#,x\n2.75,5,y\n3,7,x\n")
    watch = spec_file(tmp_path, 'input a: Int64  trigger a > 0 "big"')
    arguments = ["monitor", watch, "--input", str(tmp_path / "e.csv"), "--output", "-", "--where"]
    assert main([*arguments, "s = 'x' AND a > 1"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [3.0]
    assert main([*arguments, "a < 6"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [0.5, 2.75]
    assert main([*arguments, "b < 6"]) == 2
    assert "its columns are a, " in capsys.readouterr().err
    assert main([*arguments, f"{time} > 0.5 AND {time} < 3"]) == 0
    assert [json.loads(line)["time"] for line in capsys.readouterr().out.splitlines()] == [2.75]


@pytest.mark.parametrize("declared", ["", ", time: Float64", ", time: String"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "rows", "table"])
@pytest.mark.parametrize(
    ("times", "condition"),
    [
        ([1, 2, 3, 4], "time > 2"),
        ([0.5, 1, 2.25, 3], "time > 1.5"),
        ([f"2024-01-0{day}T10:00:00" for day in range(1, 5)], "time > '2024-01-02T10:00:00'"),
        (["1", "2", "3", "4"], "time > 2"),
    ],
)
def test_where_may_speak_of_the_time(
    times: list[Any],
    condition: str,
    form: str,
    declared: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times are times there, also where the column is an input: in files, in what stands in memory, and in pipes."""
    rows = [{"time": time, "a": place} for place, time in enumerate(times)]
    if (isinstance(times[0], float) and "String" in declared) or ("2024" in str(times[0]) and "Float64" in declared):
        return  # no values of that input
    path = tmp_path / f"e.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form == "csv":
        path.write_text("time,a\n" + "".join(f"{row['time']},{row['a']}\n" for row in rows))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = f"input a: Int64{declared}\noutput b := a"
    events = rows if form == "rows" else pa.Table.from_pylist(rows) if form == "table" else path
    found = run(Specification.parse(text), events, True, where=condition)
    assert [row["value"] for row in found.rows()] == [2, 3]
    if form not in ("csv", "jsonl"):
        return
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        piped = ["--input", "-", "--input-format", form.removesuffix("l"), "--output", "-", "--values"]
        assert main(["monitor", spec_file(tmp_path, text), *piped, "--where", condition]) == 0
    assert [json.loads(line)["value"] for line in capsys.readouterr().out.splitlines()] == [2, 3]


@pytest.mark.parametrize("source", ["file", "standard input"])
def test_where_and_an_order_column_over_typed_events(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "time,type,a,seq\n0,A,1,2\n0,A,7,1\n1,B,8,3\n2,A,9,4\n"
    (tmp_path / "e.csv").write_text(text)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    where = [str(tmp_path / "e.csv")] if source == "file" else ["-", "--input-format", "csv"]
    watch = spec_file(tmp_path, 'input a: Int64  trigger eval when a > 0 with "{{}}".format(a)')
    chosen = ["--where", "type = 'A' AND a < 9", "--order-column", "seq"]
    assert main(["monitor", watch, "--input", *where, "--output", "-", *chosen]) == 0
    assert [json.loads(line)["trigger"] for line in capsys.readouterr().out.splitlines()] == ["7", "1"]


def test_events_of_a_period(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0.5,1\n1.25,2\n2.75,3\n3,4\n")
    watch = spec_file(
        tmp_path, 'input a: Int64  trigger a.offset(by: -1).defaults(to: 0) = 0 "first"  trigger a > 3 "big"'
    )
    arguments = ["monitor", watch, "--input", str(tmp_path / "e.csv"), "--output", "-"]
    assert main([*arguments, "--from", "1.25", "--to", "3"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [{"trigger": "first", "time": 1.25}]
    assert main([*arguments, "--from", "3", "--to", "1"]) == 2
    assert "--to (1) is not after --from (3)" in capsys.readouterr().err
    assert main([*arguments, "--from", "noon"]) == 2
    assert "--from is 'noon'; it must be a whole number of ticks" in capsys.readouterr().err


def test_check_says_all_that_does_not_fit_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,x,a,b,c\n0,1,2.5,7,#\n")
    watch = spec_file(tmp_path, "input aa: Int64, a: Int64, b: Bool, c: Float64  trigger b")
    assert main(["check", watch, "--input", str(tmp_path / "e.csv")]) == 2
    said = capsys.readouterr().err
    assert "the events have no column 'aa'" in said
    assert "a is Int64, and its column holds '2.5'" in said
    assert "b is Bool, and its column holds '7'" in said
    assert "c is" not in said
    watch = spec_file(tmp_path, "input a: Int64, c: Float64  trigger a > 1", "other")
    assert main(["monitor", watch, "--input", str(tmp_path / "e.csv")]) == 2
    assert "column 'a': '2.5' is no int64" in capsys.readouterr().err


def test_instances_without_an_end_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = spec_file(tmp_path, "input a: Int64  output n(p) spawn with a eval when a = p with a")
    assert main(["check", watch]) == 0
    assert "warning: instances of n are never closed" in capsys.readouterr().err
    watch = spec_file(tmp_path, "input a: Int64  output n(p) spawn with a eval when a = p with a close when n(p) > 3")
    assert main(["check", watch]) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_rows_of_several_types_are_written(form: str, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n1,9\n")
    watch = spec_file(tmp_path, 'input a: Int64  output b := a  output c @a := "x"  output d @2.5Hz := a.hold(or: 0)')
    out = tmp_path / "out"
    arguments = ["--input", str(tmp_path / "e.csv"), "--values", "--output", str(out), "--output-format", form]
    assert main(["monitor", watch, *arguments]) == 0
    part = next((out / "specification=watch").iterdir())
    if form == "parquet":
        table = pq.read_table(part)
        assert table.num_rows == 6
        assert set(table["value_int"].to_pylist()) == {1, 9, None}
        assert set(table["value_text"].to_pylist()) == {"x", None}
    else:
        assert len(part.read_text().splitlines()) == 6 + (form == "csv")


def test_mistakes_end_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,a\n0,1\n1,x\n")
    watch = spec_file(tmp_path, "input a: Int64  output b := 1 / a")
    assert main(["monitor", watch, "--input", str(tmp_path / "e.csv")]) == 2
    assert "hint" in capsys.readouterr().err
    assert main(["check", watch, "--input", str(tmp_path / "e.csv")]) == 2
    (tmp_path / "e.csv").write_text("time,b\n0,1\n")
    assert main(["check", watch, "--input", str(tmp_path / "e.csv")]) == 2
    assert "'a'" in capsys.readouterr().err


def test_trend_queries_and_triggers_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,type\n" + "".join(f"{time},A\n" for time in (0, 1, 12, 13, 14, 15)))
    (tmp_path / "w.sase").write_text("q1: RETURN COUNT(*) PATTERN A+ WITHIN 10 s")
    watch = spec_file(
        tmp_path, 'input q1::count: UInt64  trigger eval when q1::count > 10 with "{{}} trends".format(q1::count)'
    )
    arguments = ["--workload", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--output", "-"]
    assert main(["monitor", watch, *arguments]) == 0
    assert json.loads(capsys.readouterr().out) == {"trigger": "15 trends", "time": 20}


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("eval when p = q with 1  output total := p", "total has no parameter that is spawned with p"),
        ("eval when v = q with 1", "n is not bound: its eval clause lacks a condition such as p = p"),
        ("eval when p = q with 1 close @true when true", "n closes at events without p"),
        ("eval when p = q with 1 close when v = 3", "n closes at events of others"),
        ("eval when p = q with v.offset(by: -1).defaults(to: 0)", "n reads earlier values of input v"),
        (
            "eval when p = q with v  output m(q: Int64) spawn with p eval when p = q with n(q + 1).hold(or: 0)",
            "m reads other instances of n",
        ),
    ],
)
def test_what_cannot_be_routed_names_the_stream(rest: str, said: str) -> None:
    text = f"input p: Int64, v: Int64  output n(q: Int64) spawn with p {rest}"
    with pytest.raises(UnsupportedError) as caught:
        routed_by(Specification.parse(text).program)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "column", "found"),
    [
        ("String", pa.array([1, 2]).dictionary_encode(), ["1", "2"]),
        ("Int64", pa.array([1, 2]).dictionary_encode(), [1, 2]),
        ("Int64", pa.array([5, 6], pa.timestamp("s")), "a is Int64, and its column holds timestamp"),
        ("Float64", pa.array([" 1.5", "2 "], pa.string_view()), [1.5, 2.0]),
        ("String", pa.array([1.5, 2.5]), "a is String, and its column holds double"),
        ("Int64", pa.array([True, False]), "a is Int64, and its column holds bool"),
        ("Bool", pa.array([1, 0]), "a is Bool, and its column holds int64"),
        ("Int64", pa.array(["1", "x"]), "column 'a' holds in row 2 .* what input a of type Int64 cannot be"),
    ],
)
def test_columns_of_other_types(kind: str, column: pa.Array, found: list[Any] | str) -> None:
    """Integers stand for text, and text that reads so for numbers; nothing else for anything else."""
    text, table = f"input a: {kind}  output o := a", pa.table({"time": [0, 1], "a": column})
    if isinstance(found, str):
        with pytest.raises(HamletError, match=found):
            rows(text, table)
    else:
        assert [value for _, value in values(text, table, "o")] == found


def test_errors_are_of_the_house() -> None:
    for bad in ({"max_deadlines": 0}, {"late": "maybe"}, {"time_unit": "h"}, {"lateness": "soon"}, {"max_memory": "x"}):
        with pytest.raises(HamletError):
            run(Specification.parse(COUNT), {"time": [1], "a": [1]}, **bad)  # type: ignore[arg-type]


def test_a_page_shows_triggers_over_time_and_streams_as_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text("time,a\n" + "".join(f"{time},{time % 7}\n" for time in range(5000)))
    watch = spec_file(
        tmp_path,
        """input a: Int64  output b := a * 2  output s @a := "text"  output big(p) spawn with a eval when a = p with a
        trigger a > 4 "large <a>"  trigger eval when a < 0 with "{{}}".format(a)""",
    )
    page = tmp_path / "r.html"
    arguments = ["monitor", watch, "--input", str(tmp_path / "e.csv"), "--report", str(page), "-q"]
    assert main([*arguments, "--values"]) == 0
    said = page.read_text()
    assert "trigger 1: 1,428 times" in said
    assert "large &lt;a&gt;" in said
    assert "trigger 2: 0 times" in said
    assert "1 fired, 1,428 times in all" in said
    charts = json.loads(said.split('id="data"', 1)[1].split(">", 1)[1].split("</script>", 1)[0])["charts"]
    drawn = {each["label"]: each for each in charts}
    (numbers,) = drawn["b over time"]["lines"]
    values = [value for value in numbers["values"] if value is not None]
    assert (min(values), max(values)) >= (0, 0)
    assert max(values) <= 12
    assert sum(len(each.get("lines", ())) for each in charts) == 1 + 7
    assert "s over time" not in drawn
    bars = drawn["trigger 1 over time"]
    assert sum(bars["bars"]) == 1428
    assert len(bars["bars"]) == len(bars["times"]) - 1 <= 120
    assert main([*arguments[:-2], watch, "-q"]) == 2
    assert "would replace" in capsys.readouterr().err


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([[1], [1], [2]], names=["time", "a", "a"])
    pq.write_table(table, tmp_path / "e.parquet")
    specification = Specification.parse("input a: Int64  output b := a")
    for source in (table, table.to_reader(), tmp_path / "e.parquet"):
        with pytest.raises(DataError, match="several columns with the name 'a'"):
            run(specification, source)
    with pytest.raises(DataError, match="several columns with the name 'a'"):
        Monitor(specification).push(table)
