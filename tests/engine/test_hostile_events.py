"""Events that nobody should send: a clear error or the right rows, never a traceback, and in sane time and memory.

The long ones are marked slow: ``pytest tests/engine/test_hostile_events.py -m slow -s`` takes a few minutes and
prints what it measured.
"""

from __future__ import annotations

import datetime as dt
import resource
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.errors import DataError, HamletError, OptionError, WorkloadError
from tests.comparison import near, rows_of

COUNT = "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"
SUM = "RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WITHIN 10 s"


def pair(**columns: tuple[Any, Any]) -> list[dict[str, Any]]:
    """An A and a B with attributes."""
    return [
        {"time": place, "type": "AB"[place], **{name: values[place] for name, values in columns.items()}}
        for place in range(2)
    ]


# ------------------------------------------------------------------------------------------- types that clash


@pytest.mark.parametrize("value", ["text", True, dt.datetime(2024, 1, 1)])
def test_sums_of_what_is_no_number(value: Any) -> None:
    """Of dicts too, whose types are known only when they come."""
    for events in (pair(v=(value, value)), pa.Table.from_pylist(pair(v=(value, value)))):
        with pytest.raises(
            WorkloadError,
            match=r"SUM takes INT, DOUBLE and DURATION attributes; B.v is (STRING|BOOLEAN)|instants cannot be added up",
        ):
            rows_of(SUM, events)
    engine = hamlet.Engine(hamlet.Workload.parse(SUM))
    engine.push(pair(v=(None, 3)))
    with pytest.raises(DataError, match="the attribute 'v' was INT so far and is now"):
        engine.push([{"time": 2, "type": "B", "v": value}])
    assert engine.close()[0]["sum_B_v"] == 3


@pytest.mark.parametrize(("declared", "value"), [("INT", "3"), ("INT", 0.5), ("STRING", 3), ("TIMESTAMP", 3)])
def test_values_that_contradict_their_declaration(declared: str, value: Any) -> None:
    text = f"EVENT B(v {declared}); RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.v = PREV(B).v WITHIN 10 s"
    with pytest.raises(WorkloadError, match=f"B.v is declared {declared}, but the column holds"):
        rows_of(text, pair(v=(None, value)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "attribute 'v' of event 2 holds an integer of 64 bits; Hamlet reads integers of 64 bits"),
        (-(2**63) - 1, "holds an integer of 64 bits"),
        (b"x", "column 'v' has the type binary, which no attribute can have"),
        ([1], "column 'v' has the type list"),
        ([2**63], "attribute 'v': cannot read these values"),
        ({"a": 1}, "column 'v' has the type struct"),
        (1 + 2j, "attribute 'v': cannot read these values"),
    ],
)
def test_values_that_no_attribute_can_have(value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        rows_of(SUM, pair(v=(None, value)))
    engine = hamlet.Engine(hamlet.Workload.parse(SUM))
    engine.push(pair(v=(None, 1))[:1])
    with pytest.raises(DataError, match="attribute 'v'" if isinstance(value, int) else message):
        engine.push(pair(v=(None, value))[1:])


@pytest.mark.parametrize("value", [dt.time(1, 2), b"x", [1], {"a": 1}])
def test_columns_of_other_types_are_no_matter_where_nobody_reads_them(value: Any) -> None:
    events = pair(v=(value, value))
    engine = hamlet.Engine(hamlet.Workload.parse(COUNT))
    assert rows_of(COUNT, events) == engine.push(events) + engine.close()


@pytest.mark.parametrize("value", [Decimal("NaN"), float("nan"), np.float32("nan"), None])
def test_values_that_are_null(value: Any) -> None:
    (row,) = rows_of(SUM, pair(v=(None, value)))
    assert (row["count"], row["sum_B_v"]) == (1, None)


@pytest.mark.parametrize(
    "options",
    [
        *({"time_column": name} for name in ("type", "", 3, None)),
        *({"type_column": name} for name in ("", 3, None)),
        *({"order_column": name} for name in ("time", "type", "missing", 3)),
        *({"threads": number} for number in (0, "2", 2000, True)),
        *({name: "other"} for name in ("numbers", "count_type", "sharing", "benefit", "time_unit", "no_option")),
    ],
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises((OptionError, DataError)):
        rows_of(COUNT, pair(), **options)


# --------------------------------------------------------------------------------------------- few events, or none


def test_no_events() -> None:
    """Columns without rows, no columns, dicts that are none."""
    for empty in ([], iter([]), pa.table({"time": pa.array([], pa.int64()), "type": pa.array([], pa.string())})):
        results = hamlet.run(hamlet.Workload.parse(COUNT), empty)
        assert (results.rows(), results.table("q1").num_rows) == ([], 0)
    assert rows_of(COUNT, {"time": [], "type": []}) == []
    for wrong in ({}, [{}], pa.table({}), None, 3, b"x", [None], "missing.csv"):
        with pytest.raises(HamletError):
            rows_of(COUNT, wrong)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("group", [None, "t", "i", "d", "s", "b"])
def test_attributes_never_seen(declared: bool, numbers: str, group: str | None) -> None:
    """Every aggregate over an attribute without any value, and every type as a group: in rows, tables and saves."""
    numeric = [f"{function}(A.{name})" for function in ("SUM", "AVG", "MIN", "MAX") for name in "id"]
    aggregates = ["COUNT(*)", "COUNT(A)", "MIN(A.t)", "MAX(A.t)", *numeric]
    forms = ("{}", "LOG2({})")  # a time has no logarithm
    items = [forms[form and "A.t" not in each].format(each) for each in aggregates for form in (False, True)]
    items = [f"{item} AS x{place}" for place, item in enumerate(items)] + ([group] if group else [])
    text = "EVENT A(t TIMESTAMP, i INT, d DOUBLE, s STRING, b BOOLEAN); " if declared else ""
    text += f"RETURN {', '.join(items)} PATTERN A+ {f'GROUP-BY {group}' if group else ''} WITHIN 10 s"
    workload = hamlet.Workload.parse(text)
    nothing = dict.fromkeys("tidsb")
    for events in ([], [{"time": -3, "type": "A"}], [{"time": -3, "type": "A", **nothing}]):
        for count_type in ("string", "int64", "double", "decimal"):
            results = hamlet.run(workload, events, numbers=numbers, count_type=count_type)
            table = results.table("q1")
            table.validate(full=True)
            assert len(table) == len(events)
            for row in results.rows():
                assert (row["window_start"], row["x0"], row["x1"], row["x2"]) == (-10, 1, 0.0, 1)
                assert all(value is None for name, value in row.items() if name[1:].isdigit() and int(name[1:]) > 3)
            engine = hamlet.Engine(workload, numbers=numbers, count_type=count_type)
            found = engine.push(events)
            assert found + hamlet.Engine.restore(workload, engine.save()).close() == results.rows()


def test_files_without_events(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    pq.write_table(table, tmp_path / "a.parquet")
    assert rows_of(COUNT, tmp_path / "a.parquet") == []
    (tmp_path / "a.csv").write_text("time,type\n")
    assert rows_of(COUNT, tmp_path / "a.csv") == []
    for name, text in (("b.csv", ""), ("a.jsonl", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=r"is empty|holds no"):
            rows_of(COUNT, tmp_path / name)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_event(threads: int) -> None:
    events = [{"time": -7, "type": "A", "k": None}]
    text = "RETURN k, COUNT(*), MAX(A.time) PATTERN A+ GROUP-BY k WITHIN 5 s SLIDE 2 s"
    expected = [(start, start + 5, None, 1, -7) for start in (-10, -8)]
    assert [tuple(row.values())[1:] for row in rows_of(text, events, threads=threads)] == expected
    engine = hamlet.Engine(hamlet.Workload.parse(text), threads=threads)
    assert [tuple(row.values())[1:] for row in engine.push(events) + engine.close()] == expected


# -------------------------------------------------------------------------------------------------------- times


def test_times_at_the_ends_of_what_is_read() -> None:
    for start in (2**61 - 1, -(2**61)):
        (row,) = rows_of(COUNT, [{"time": start + place, "type": "AB"[place]} for place in range(2)])
        assert row["window_start"] <= start < row["window_end"]
    for beyond in (2**61 + 1, -(2**61) - 1, 2**63 - 1):
        with pytest.raises(DataError, match=r"holds a time beyond 2\^61 ticks\nhint: is it in a coarser unit"):
            rows_of(COUNT, [{"time": beyond, "type": "A"}])
    (row,) = rows_of("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 60000 d SLIDE 60000 d", pair(), time_unit="us")
    assert row["window_end"] == 60000 * 86400 * 10**6


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_with_zones(zone: str | None, unit: str) -> None:
    """Windows come back in the zone of the input, across a change of clocks too; they are aligned to 1970 UTC."""
    kind = pa.timestamp(unit, zone)
    moments = [1711846799, 1711846801]  # 2024-03-31, one second before and after Berlin's clocks go forward
    table = pa.table(
        {"time": pa.array(moments, pa.timestamp("s")).cast(pa.timestamp(unit)).cast(kind), "type": ["A", "B"]}
    )
    (row,) = rows_of("RETURN MIN(A.time), COUNT(*) PATTERN SEQ(A, B) WITHIN 1 h SLIDE 30 min", table)
    start = row["window_start"]
    expected = dt.datetime.fromtimestamp(1711846800 - 1800, dt.UTC)
    assert (start if zone else start.replace(tzinfo=dt.UTC)) == expected
    assert (start.tzinfo is None) == (zone is None)
    assert row["window_end"].utcoffset() == start.utcoffset() if zone != "Europe/Berlin" else dt.timedelta(hours=2)
    assert row["min_A_time"] == (start + dt.timedelta(minutes=30, seconds=-1))


def test_time_zones_that_are_no_text() -> None:
    """Arrow takes any bytes from a file for the name of a zone."""
    good = pa.schema({"time": pa.int64(), "type": pa.string(), "v": pa.timestamp("us", "U_C")})
    schema = pa.ipc.read_schema(pa.py_buffer(good.serialize().to_pybytes().replace(b"U_C", b"U\xd4C")))
    events = pa.table([pa.array([1]), pa.array(["A"]), pa.array([0]).cast(pa.timestamp("us"))], names=good.names)
    arrays = [
        pa.Array.from_buffers(kind, 1, events[name].chunk(0).buffers())
        for name, kind in zip(good.names, schema.types, strict=True)
    ]
    with pytest.raises(DataError, match="the time zone of column 'v' is no UTF-8 text"):
        rows_of(COUNT, pa.Table.from_arrays(arrays, schema=schema))


def test_times_that_no_result_can_hold() -> None:
    far = [{"time": dt.datetime(9999, 12, 31, 23, 59, 59), "type": "A"}]
    with pytest.raises(DataError, match="is outside the years 1 to 9999"):
        rows_of("RETURN COUNT(*) PATTERN A WITHIN 10 s", far)
    with pytest.raises(DataError, match="is outside the years 1 to 9999"):
        rows_of("RETURN COUNT(*) PATTERN A WITHIN 4000000 d", [{"time": dt.datetime(2024, 1, 1), "type": "A"}])
    table = pa.table({"time": pa.array([0, 1], pa.timestamp("us", "Mars/Phobos")), "type": ["A", "B"]})
    with pytest.raises(DataError, match="column 'time': the time zone 'Mars/Phobos' is not known on this machine"):
        rows_of(COUNT, table)
    fine = {"time": [0, 1], "type": ["A", "B"], "d": np.array(["2024-01-01T00:00:00.000000001"] * 2, "datetime64[ns]")}
    with pytest.raises(DataError, match="column 'd' holds nanoseconds, which no key can have"):
        rows_of("RETURN d, COUNT(*) PATTERN SEQ(A, B) GROUP-BY d WITHIN 10 s", fine)


def test_dates_are_times_of_day_zero() -> None:
    days = [dt.date(2024, 2, 28), dt.date(2024, 3, 1)]
    text = """RETURN d, COUNT(*), MAX(A.d) PATTERN A+ WHERE A.d <= NEXT(A).d GROUP-BY d WITHIN 10 s;
              RETURN MIN(A.d), MAX(B.d) PATTERN SEQ(A, B) WHERE A.d < NEXT(B).d WITHIN 10 s"""
    one, two, both = rows_of(text, [*pair(d=(days[0], days[1])), {"time": 2, "type": "A", "d": days[1]}])
    assert (one["d"], one["max_A_d"], two["d"]) == (days[0], days[0], days[1])
    assert (both["min_A_d"], both["max_B_d"]) == tuple(days)


# -------------------------------------------------------------------------------------------- dictionary columns


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint16()])
def test_dictionary_columns(index: pa.DataType, tmp_path: Path) -> None:
    """Every batch with a dictionary of its own, NULL among the indices and in the dictionary itself."""
    words = [["A", "B", None], ["B", "unused", "A"], ["B"]]
    codes = [[0, 1, 2], [0, None, 2], [0, 0, 0]]
    kind = pa.dictionary(index, pa.string())
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(code, index), pa.array(word, pa.string()))
        for word, code in zip(words, codes, strict=True)
    ]
    column = pa.chunked_array(chunks, kind)
    table = pa.table({"time": range(9), "type": column, "s": column})
    plain = pa.table({"time": range(9), "type": column.cast(pa.string()), "s": column.cast(pa.string())})
    text = """RETURN s, COUNT(*) PATTERN (A OR B)+ GROUP-BY s WITHIN 10 s;
              RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE A.s < NEXT(B).s AND B.s = 'B' WITHIN 10 s"""
    expected = rows_of(text, plain)
    assert len(expected) == 3
    assert rows_of(text, table) == expected
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    pushed = [row for batch in table.to_batches() for row in engine.push(batch)]
    assert pushed + engine.close() == expected
    pq.write_table(table.slice(3), tmp_path / "a.parquet", row_group_size=2)  # Parquet has no NULL in a dictionary
    assert rows_of(text, tmp_path / "a.parquet") == rows_of(text, plain.slice(3))


def test_arrow_data_that_is_not_valid(tmp_path: Path) -> None:
    """Text that is no UTF-8, and places beyond the end of a dictionary: found by fuzzing Parquet files."""
    damaged = [
        pa.Array.from_buffers(pa.string(), 2, pa.array([b"A", b"\xff"]).buffers()),
        pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int32()), pa.array(["A", "B"]), safe=False),
    ]
    text = "RETURN s, COUNT(*) PATTERN A+ GROUP-BY s WITHIN 10 s"
    for column in damaged:
        for table in (
            pa.table({"time": [0, 1], "type": ["A", "A"], "s": column}),
            pa.table({"time": [0, 1], "type": column, "s": ["x", "y"]}),
        ):
            for events in (table, table.to_reader()):
                with pytest.raises(DataError, match=r"are not valid Arrow data|the Arrow stream broke off"):
                    rows_of(text, events)
            with pytest.raises(DataError, match="are not valid Arrow data"):
                hamlet.Engine(hamlet.Workload.parse(text)).push(table)
    pq.write_table(pa.table({"time": [0, 1], "type": damaged[0], "s": ["x", "y"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"cannot be read to its end: .*UTF8"):
        rows_of(text, tmp_path / "a.parquet")


# --------------------------------------------------------------------------------------------------- many of them


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def grouped(groups: int) -> pa.Table:
    places = np.arange(groups)
    return pa.table({"time": places // 10, "type": pa.array(["A"] * groups), "k": places, "v": places % 100})


def test_many_groups_of_one_event() -> None:
    groups = 60_000
    results = hamlet.run(
        hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 500 s"), grouped(groups)
    )
    assert len(results) == groups
    assert (results.stats["partitions"], results.stats["live_states"]) == (groups, 0)
    (row,) = rows_of("RETURN COUNT(*), SUM(A.v) PATTERN A+ WHERE [k] WITHIN 60000 s", grouped(groups))
    assert (row["count"], row["sum_A_v"]) == (groups, sum(range(100)) * groups // 100)


def test_one_time_step_over_many_batches() -> None:
    """Reads before writes, however many events share the time."""
    events = pa.table({"time": np.zeros(200_001, np.int64), "type": pa.array(["A"] * 100_000 + ["B"] * 100_001)})
    assert rows_of(COUNT, events) == []
    (row,) = rows_of("RETURN COUNT(*) PATTERN A OR B WITHIN 10 s", events)
    assert row["count"] == 200_001


@pytest.mark.slow
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_a_million_groups_of_one_event(numbers: str) -> None:
    groups = 1_000_000
    events, before = grouped(groups), peak_megabytes()
    workload = hamlet.Workload.parse("RETURN k, COUNT(*), SUM(A.v) PATTERN A+ GROUP-BY k WITHIN 200000 s")
    begin = time.perf_counter()
    results = hamlet.run(workload, events, numbers=numbers)
    seconds, megabytes = time.perf_counter() - begin, peak_megabytes() - before
    sys.stdout.write(f"\n1,000,000 groups, {numbers}: {seconds:.1f} s, {megabytes:.0f} MB\n")
    assert len(results) == groups
    assert megabytes < 2000


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "within", "slide"),
    [("float", 100_000, 100_000), ("float", 100_000, 20_000), ("exact", 100_000, 100_000)],
)
def test_a_group_of_ten_million_events(numbers: str, within: int, slide: int) -> None:
    """Windows of 100,000 events, whose counts have close to 100,000 bits."""
    n = 10_000_000
    types = np.random.default_rng(1).integers(0, 2, n)
    events = pa.table(
        {"time": np.arange(n), "type": pa.array(np.array(["A", "B"])[types]).dictionary_encode(), "v": types}
    )
    text = f"RETURN COUNT(*), SUM(B.v), LOG2(COUNT(*)) PATTERN SEQ(A, B+) WITHIN {within} s SLIDE {slide} s"
    before, begin = peak_megabytes(), time.perf_counter()
    results = hamlet.run(hamlet.Workload.parse(text), events, numbers=numbers)
    seconds, megabytes = time.perf_counter() - begin, peak_megabytes() - before
    sys.stdout.write(f"\n10,000,000 events, {numbers}, {within} SLIDE {slide}: {seconds:.1f} s, {megabytes:.0f} MB\n")
    total = standing = 0
    for place in types[:within]:
        standing, total = (standing + 1, total) if place == 0 else (standing, 2 * total + standing)
    row = next(row for row in results.rows() if row["window_start"] == 0)
    assert row["count"] == total if numbers == "exact" else near(row["count"], total, total)
    assert 40_000 < row["log2_count"] < 100_000
