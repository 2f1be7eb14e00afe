"""Rows of columns as lines, whatever their types, beside each value by itself."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hamlet.input.buffers import values_of, where_null
from hamlet.output.columnar import csv_texts, encoder_of, json_texts
from hamlet.output.plain_rows import PlainRows

COLUMNS: dict[str, pa.Array] = {
    "whole": pa.array([0, -1, 2**63 - 1, -(2**63)], pa.int64()),
    "small": pa.array([1, None, -3, 4], pa.int32()),
    "real": pa.array([0.1, -0.0, 1e300, 5e-324]),
    "odd": pa.array([math.inf, -math.inf, math.nan, 1e16]),
    "flag": pa.array([True, False, False, True]),
    "maybe": pa.array([True, None, False, None]),
    "whole or none": pa.array([None, 5, None, -(2**63)], pa.int64()),
    "real or none": pa.array([None, 0.5, 2.0, None]),
    "odd or none": pa.array([math.inf, None, math.nan, 1.0]),
    "text": pa.array(["", "a,b", 'q"x', "\N{SNOWMAN}\n"]),
    "wide": pa.array([Decimal(10) ** 30, None, Decimal(-5), Decimal(0)], pa.decimal256(76, 0)),
}
SCHEMA = pa.schema([(name, column.type) for name, column in COLUMNS.items()])
ROWS = pa.RecordBatch.from_arrays(list(COLUMNS.values()), schema=SCHEMA)


def csv_value(value: Any) -> str:
    """A field."""
    if value is None:
        return ""
    if isinstance(value, str):
        quoted = not value or value != value.strip() or any(each in value for each in ',"\r\n')
        return '"' + value.replace('"', '""') + '"' if quoted else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def json_value(value: Any) -> str:
    """A value of a JSON line."""
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(("begin", "count"), [(0, 4), (1, 2), (3, 1), (2, 0)])
def test_lines_have_each_value_in_full(begin: int, count: int) -> None:
    rows = ROWS.slice(begin, count)
    header = ["kind", *SCHEMA.names, "missing"]
    csv = encoder_of("csv", SCHEMA.names, lead={"kind": "a b"}, header=header)
    told = [["a b", *map(csv_value, row.values()), ""] for row in rows.to_pylist()]
    assert csv.lines(rows) == "".join([",".join(fields) + "\n" for fields in told])
    lines = encoder_of("json", SCHEMA.names, lead={"kind": "a%b"})
    wanted = [
        ", ".join(['{"kind": "a%b"', *(f'"{name}": {json_value(value)}' for name, value in row.items())]) + "}\n"
        for row in rows.to_pylist()
    ]
    assert lines.lines(rows) == "".join(wanted)
    numbers = rows.select(
        [name for name in SCHEMA.names if str(SCHEMA.field(name).type) in ("int64", "double", "bool")]
    )
    arrays = {name: numbers.column(name) for name in numbers.column_names}
    plain = PlainRows(
        {name: values_of(column) for name, column in arrays.items()},
        {name: where for name, column in arrays.items() if (where := where_null(column)) is not None},
    )
    assert str(plain.in_arrow().to_pylist()) == str(numbers.to_pylist())  # NaN is not itself
    for output_format in ("csv", "json"):
        encoder = encoder_of(output_format, numbers.column_names)
        assert encoder.lines(plain) == encoder.lines(numbers)
        assert encoder.lines(plain.slice(1)) == encoder.lines(numbers.slice(1))


@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_tuples_are_in_the_order_of_their_values_in_batches_of_any_size(step: int) -> None:
    rng = np.random.default_rng(step)
    points = np.sort(rng.integers(0, 4, 30))
    values = {
        "time": pa.array(points),
        "time_point": pa.array(points),
        "x": pa.array([["b", "a", "\N{GREEK SMALL LETTER BETA}"][each] for each in rng.integers(0, 3, 30)]),
        "y": pa.array(rng.integers(-2, 2, 30).astype(np.float64) / 2),
    }
    rows = pa.record_batch(values)
    encoder = encoder_of("monpoly", rows.schema.names, tuples=["y", "x"])
    text = "".join([encoder.lines(rows.slice(begin, step)) for begin in range(0, 30, step)]) + encoder.tail()
    expected = ""
    for point in sorted(set(points.tolist())):
        held = sorted((row["y"], row["x"]) for row in rows.to_pylist() if row["time_point"] == point)
        expected += f"@{point} (time point {point}): " + " ".join(f'({y:g},"{x}")' for y, x in held) + "\n"
    assert text == expected


def test_a_time_point_may_have_larger_integers_in_a_later_batch() -> None:
    narrow = pa.record_batch({"time": pa.array([1, 1]), "time_point": pa.array([0, 0]), "x": pa.array([5, 7])})
    wide = pa.array([Decimal(2) ** 70], pa.decimal256(76, 0))
    later = pa.record_batch({"time": pa.array([1]), "time_point": pa.array([0]), "x": wide})
    encoder = encoder_of("monpoly", narrow.schema.names, tuples=["x"])
    assert encoder.lines(narrow) + encoder.lines(later) == ""
    assert encoder.tail() == f"@1 (time point 0): (5) (7) ({2**70})\n"


@pytest.mark.parametrize(
    "column",
    [
        *COLUMNS.values(),
        pa.array([datetime(2024, 1, 1), None, datetime(2024, 1, 1, 0, 0, 1, 5)]),
        pa.array([timedelta(seconds=1.5), None, timedelta(0)]),
        pa.array([[1.5, math.nan], None, []]),
    ],
    ids=lambda column: str(column.type),
)
def test_what_a_list_holds_is_written_as_it_is_alone(column: pa.Array) -> None:
    """In lists, structs and maps, sliced and NULL ones too; JSON that others can read."""
    alone = json_texts(column)
    count = len(column)
    lists = pa.ListArray.from_arrays(pa.array([0, count, None, count]), column)
    assert json_texts(lists) == [f"[{', '.join(alone)}]", "[]", "null"]
    assert json_texts(lists[1:]) == ["[]", "null"]
    structs = pa.StructArray.from_arrays([column, column], ['a"', "b"], mask=pa.array([False] * (count - 1) + [True]))
    shown = [f'{{"a\\"": {each}, "b": {each}}}' for each in alone[:-1]]
    assert json_texts(structs) == [*shown, "null"]
    assert json_texts(structs[1:]) == [*shown[1:], "null"]
    for text in [*json_texts(lists), *json_texts(structs)]:
        json.loads(text, parse_constant=pytest.fail)
    pairs = pa.MapArray.from_arrays([0, 1, 1], pa.array(["k"]), column[:1])
    assert json_texts(pairs) == [f'[["k", {alone[0]}]]', "[]"]
    assert csv_texts(pairs) == [f'"[[""k"", {alone[0].replace(chr(34), chr(34) * 2)}]]"', "[]"]


def test_what_has_no_value_may_be_left_out_and_an_infinite_value_is_there() -> None:
    lines = encoder_of("json", SCHEMA.names, sparse=True).lines(ROWS)
    for number, line in enumerate(lines.split("\n")[:-1]):
        there = [name for name, column in COLUMNS.items() if column[number].is_valid]
        assert list(json.loads(line)) == there
    assert '"odd": null' in lines.split("\n")[0]
