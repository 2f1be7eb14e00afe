"""Result rows as dicts and Arrow tables, count types, and integers of any number of digits."""

from __future__ import annotations

import datetime
import decimal
import math
import sys
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamlet
from hamlet.errors import DataError, OptionError, OutputError, UnsupportedError
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock
from hamlet.output.digits import decimal_digits, integer_of, number_text, short_text
from hamlet.output.query_part import dated, query_results
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.tables import result_schema, to_arrow
from hamlet.output.time_text import time_text

SECONDS = Clock("time", "s", pa.int64())
HUGE = 2**20_000 - 1
COLUMNS = (
    ResultColumn("district", "attribute", AttributeType.STRING, pa.dictionary(pa.int32(), pa.string())),
    ResultColumn("count", "count", AttributeType.INT),
    ResultColumn("total", "sum", AttributeType.INT),
    ResultColumn("paid", "sum", AttributeType.DOUBLE),
    ResultColumn("avg", "double", AttributeType.DOUBLE),
)
SMALL = QueryRows("q1", COLUMNS, [(-10, 0, None, 5, -3, 1.5, 0.5), (0, 10, "Bronx", 2, None, None, None)])


def with_count(value: Any) -> QueryRows:
    return QueryRows("q1", COLUMNS, [(0, 10, "Bronx", value, 1, 0.5, 0.5)])


# ------------------------------------------------------------------------------------------------------ digits


@given(
    st.integers() | st.integers(0, 8000).map(lambda bits: (1 << bits) - 1) | st.integers(0, 3000).map(lambda n: 10**n)
)
def test_digits_are_those_of_python(number: int) -> None:
    for signed in (number, -number):
        assert decimal_digits(signed) == str(signed)
        assert integer_of(decimal_digits(signed)) == signed


@pytest.mark.parametrize("digits", [4300, 4301, 30_000])
def test_digits_beyond_the_limit_of_the_host(digits: int) -> None:
    limit = sys.get_int_max_str_digits()
    assert decimal_digits(10**digits - 1) == "9" * digits
    assert decimal_digits(-(10**digits)) == "-1" + "0" * digits
    assert integer_of("1" + "0" * digits) == 10**digits
    assert integer_of("-" + "9" * digits) == 1 - 10**digits
    assert sys.get_int_max_str_digits() == limit


def test_digits_ignore_the_contexts_of_the_host() -> None:
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)
        with decimal.localcontext(decimal.Context(prec=3, Emax=9, Emin=-9, traps=[decimal.Inexact, decimal.Rounded])):
            assert decimal_digits(10**5000 + 7) == "1" + "0" * 4999 + "7"
            assert integer_of("7" * 5000) * 9 == 7 * (10**5000 - 1)
            assert number_text(2**2500) == decimal_digits(2**2500)
    finally:
        sys.set_int_max_str_digits(limit)


def test_digits_are_faster_than_quadratic() -> None:
    number = (1 << 3_321_928) - 1  # a million digits; a quadratic conversion takes 15 seconds and more
    started = time.process_time()
    assert integer_of(decimal_digits(number)) == number
    assert time.process_time() - started < 8


@pytest.mark.parametrize("text", ["", "-", "1.0", "1e5", " 1", "1_000", "٣", "0x10"])
def test_texts_that_are_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer"):
        integer_of(text)


@pytest.mark.parametrize(
    ("number", "text", "short"),
    [
        (0, "0", "0"),
        (True, "1", "1"),
        (-(10**19), "-10000000000000000000", "-10000000000000000000"),
        (10**20, "100000000000000000000", "1.00e+20"),
        (0.1, "0.1", "0.1"),
        (1e300, "1e+300", "1e+300"),
        (decimal.Decimal("1.23456789012345678E+456"), "1.2345678901234568e+456", "1.23e+456"),
        (decimal.Decimal("-1E+5000000"), "-1.0000000000000000e+5000000", "-1.00e+5000000"),
    ],
)
def test_numbers_as_text(number: Any, text: str, short: str) -> None:
    assert (number_text(number), short_text(number)) == (text, short)


@given(st.integers(min_value=10**20))
def test_short_text_is_near(number: int) -> None:
    shown = decimal.Decimal(short_text(number))
    assert abs(shown - number) <= decimal.Decimal(number) / 180


# --------------------------------------------------------------------------------------------------------- rows


def test_rows_are_dicts_in_column_order() -> None:
    results = query_results([SMALL, QueryRows("q2", (), [])], SECONDS, stats={"events": 3})
    names = ["query", "window_start", "window_end", "district", "count", "total", "paid", "avg"]
    assert [list(row) for row in results.rows()] == [names, names]
    assert results.rows()[0] == dict(zip(names, ["q1", -10, 0, None, 5, -3, 1.5, 0.5], strict=True))
    assert list(results) == results.rows()
    assert (len(results), results.queries, results.stats) == (2, ("q1", "q2"), {"events": 3, "rows": 2})
    assert repr(results) == "<Results, rows by query: q1: 2, q2: 0>"


def test_windows_come_in_the_type_of_the_time_column() -> None:
    clock = Clock("time", "ms", pa.timestamp("ms", "Europe/Berlin"))
    row = query_results([SMALL], clock).rows()[1]
    assert row["window_start"] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert row["window_start"].utcoffset() == datetime.timedelta(hours=1)
    assert to_arrow(SMALL, clock).schema.field("window_start").type == clock.type
    assert to_arrow(SMALL, Clock("time", "s", pa.uint8())).schema.field("window_start").type == pa.int64()


@pytest.mark.parametrize(
    ("ticks", "unit", "zone", "expected"),
    [
        (0, "s", None, "1970-01-01T00:00:00"),
        (-1, "ms", None, "1969-12-31T23:59:59.999"),
        (1_500_000, "us", "UTC", "1970-01-01T00:00:01.500000+00:00"),
        (1, "ns", "Asia/Tokyo", "1970-01-01T09:00:00.000000001+09:00"),
    ],
)
def test_time_text(ticks: int, unit: str, zone: str | None, expected: str) -> None:
    assert time_text(ticks, Clock("time", unit, pa.timestamp(unit, zone))) == expected


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_not_lost(zone: str | None) -> None:
    kind = pa.timestamp("ns", zone)
    events = pa.table({"time": pa.array([2, 1001], kind), "type": ["A", "A"]})
    workload = hamlet.Workload.parse("RETURN COUNT(*), MAX(A.time) AS last PATTERN A WITHIN 0.0005 ms")
    if zone:
        with pytest.raises(DataError, match=r"last is 2 ns from 1970, in a time zone.*cut column 'time' to micro"):
            hamlet.run(workload, events)
        return
    results = hamlet.run(workload, events)
    shown = [[str(row[name]) for name in ("window_start", "window_end", "last")] for row in results.rows()]
    assert shown == [
        ["1970-01-01 00:00:00", "1970-01-01T00:00:00.000000500", "1970-01-01T00:00:00.000000002"],
        ["1970-01-01 00:00:00.000001", "1970-01-01T00:00:00.000001500", "1970-01-01T00:00:00.000001001"],
    ]
    assert results.table("q1").column("last").cast(pa.int64()).to_pylist() == [2, 1001]
    engine = hamlet.Engine(workload)
    assert engine.push(events) + engine.close() == results.rows()


def test_times_that_no_calendar_has() -> None:
    with pytest.raises(OutputError, match="outside the years 1 to 9999"):
        time_text(2**60, Clock("time", "s", pa.timestamp("s")))


# ----------------------------------------------------------------------------------------------------- count types


@pytest.mark.parametrize(
    ("count_type", "kind", "value"),
    [
        ("string", pa.string(), "5"),
        ("int64", pa.int64(), 5),
        ("double", pa.float64(), 5.0),
        ("decimal", pa.decimal128(38, 0), decimal.Decimal(5)),
    ],
)
def test_count_types(count_type: str, kind: pa.DataType, value: Any) -> None:
    table = query_results([SMALL], SECONDS, count_type).table("q1")
    assert table.schema == result_schema(COLUMNS, SECONDS, count_type)
    assert table.schema.field("count").type == table.schema.field("total").type == kind
    assert table.column("count")[0].as_py() == value
    assert table.column("total")[1].as_py() is None
    assert table.column("district").to_pylist() == [None, "Bronx"]
    assert table.column("avg").to_pylist() == [0.5, None]
    paid = table.column("paid")[0].as_py()
    assert paid == ("1.5" if count_type == "string" else 1.5)


@pytest.mark.parametrize("value", [HUGE, -HUGE], ids=["positive", "negative"])
def test_the_string_type_is_exact(value: int) -> None:
    assert integer_of(to_arrow(with_count(value), SECONDS).column("count")[0].as_py()) == value


@pytest.mark.parametrize(
    ("count_type", "fits", "too_large"),
    [("int64", 2**63 - 1, 2**63), ("int64", -(2**63), -(2**63) - 1), ("decimal", 10**38 - 1, 10**38)],
)
def test_values_that_do_not_fit(count_type: str, fits: int, too_large: int) -> None:
    assert to_arrow(with_count(fits), SECONDS, count_type).column("count")[0].as_py() == fits
    message = r"query q1, window \[0, 10\), group district=Bronx: count = .* does not fit (int64|decimal)"
    for value in (too_large, HUGE):
        with pytest.raises(OutputError, match=message):
            to_arrow(with_count(value), SECONDS, count_type)


def test_doubles_may_be_infinite_and_are_counted() -> None:
    rows = QueryRows(
        "q1", COLUMNS, [(0, 10, "x", value, -value, decimal.Decimal("1e400"), None) for value in (1, HUGE)]
    )
    results = query_results([rows], SECONDS, "double")
    for _ in range(2):  # not counted twice
        table = results.table("q1")
        assert results.stats["infinite_values"] == 4
    assert table.column("count").to_pylist() == [1.0, math.inf]
    assert table.column("total").to_pylist() == [-1.0, -math.inf]
    rows = QueryRows("q1", COLUMNS, [(0, 10, "x", 1, 1, decimal.Decimal("1e400"), None)])
    with pytest.raises(OutputError, match=r"paid = 1.0000000000000000e\+400 does not fit a double"):
        to_arrow(rows, SECONDS, "int64")


def test_float_mode_counts() -> None:
    beyond = decimal.Decimal("1.2345678901234567e456")
    assert to_arrow(with_count(8.0), SECONDS, "int64").column("count")[0].as_py() == 8
    assert to_arrow(with_count(8.0), SECONDS).column("count")[0].as_py() == "8.0"
    assert to_arrow(with_count(beyond), SECONDS).column("count")[0].as_py() == "1.2345678901234567e+456"
    assert to_arrow(with_count(beyond), SECONDS, "double").column("count")[0].as_py() == math.inf
    for value in (beyond, 1e300, math.inf):
        with pytest.raises(OutputError, match="does not fit decimal"):
            to_arrow(with_count(value), SECONDS, "decimal")


@pytest.mark.parametrize(
    ("kind", "attribute", "arrow", "values", "expected"),
    [
        ("attribute", AttributeType.INT, pa.int8(), [1, None], pa.int8()),
        ("attribute", AttributeType.INT, None, [1, None], pa.int64()),
        ("attribute", AttributeType.DOUBLE, pa.decimal128(5, 2), [decimal.Decimal("1.50")], pa.decimal128(5, 2)),
        ("attribute", AttributeType.STRING, pa.large_string(), ["x"], pa.large_string()),
        ("attribute", AttributeType.STRING, pa.null(), [None], pa.string()),
        ("attribute", AttributeType.BOOLEAN, pa.bool_(), [True], pa.bool_()),
        ("attribute", AttributeType.TIMESTAMP, pa.date32(), [datetime.date(2024, 1, 1)], pa.date32()),
        ("extremum", AttributeType.DOUBLE, pa.decimal128(5, 2), [1.5], pa.float64()),
        ("extremum", AttributeType.DOUBLE, pa.float32(), [1.5], pa.float32()),
        ("extremum", AttributeType.TIMESTAMP, pa.timestamp("ms"), [datetime.datetime(2024, 1, 1)], pa.timestamp("ms")),
    ],
)
def test_other_columns(kind: Any, attribute: Any, arrow: Any, values: list[Any], expected: pa.DataType) -> None:
    rows = QueryRows("q", (ResultColumn("x", kind, attribute, arrow),), [(0, 1, value) for value in values])
    column = to_arrow(rows, SECONDS).column("x")
    assert column.type == expected
    assert column.to_pylist() == values


def test_unknown_names() -> None:
    with pytest.raises(
        OptionError, match="count type 'int' is unknown; it must be auto, string, int64, double or decimal"
    ):
        query_results([], SECONDS, "int")
    with pytest.raises(OptionError, match=r"there is no query 'q11'; did you mean 'q1'\?"):
        query_results([SMALL], SECONDS).table("q11")


def test_rows_of_unknown_events_have_no_trends() -> None:
    with pytest.raises(UnsupportedError, match="these results do not know their events"):
        query_results([SMALL], SECONDS)["q1"].trends("q1")


def test_dates_of_integers_and_of_timestamps() -> None:
    """Integers are taken as times since 1970; what is a timestamp stays one of its zone."""
    [row, _] = dated(query_results([SMALL], SECONDS)).rows()
    assert row["window_end"] == datetime.datetime(1970, 1, 1)
    clock = Clock("time", "s", pa.timestamp("s", "Asia/Tokyo"))
    [row, _] = dated(query_results([SMALL], clock)).rows()
    assert row["window_end"].isoformat() == "1970-01-01T09:00:00+09:00"
