"""Pushes whose columns are those of the push before are read by what was found out then; nothing is overlooked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.errors import DataError

WORKLOAD = hamlet.Workload.parse("RETURN g, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY g WITHIN 10 s")


def events(first: int, rows: int = 20, names: tuple[str, ...] = ("A", "B")) -> pa.RecordBatch:
    draw = np.random.default_rng(first)
    types = pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, len(names), rows), pa.int8()), pa.array(names))
    columns: dict[str, Any] = {
        "time": pa.array(first + np.arange(rows) // 3),
        "type": types,
        "g": pa.array(draw.choice(["p", "q"], rows)),
        "v": pa.array(draw.integers(0, 9, rows), pa.uint64()),
        "unread": pa.array([b"x"] * rows),
    }
    return pa.record_batch(columns)


def with_column(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), column)


def test_pushes_of_every_form_give_the_rows_of_one_run() -> None:
    parts = [events(0), events(7), events(14, names=("C", "B", "A")), events(21), events(28, rows=1)]
    forms = [
        parts[0],
        pa.Table.from_batches([parts[1]]),
        parts[2].to_pylist(),
        pa.Table.from_batches([parts[3].slice(0, 5), parts[3].slice(5)]),
        parts[4],
    ]
    forms[2] = [{name: value for name, value in row.items() if name != "unread"} for row in forms[2]]
    engine = hamlet.Engine(WORKLOAD)
    rows = [row for form in forms for row in engine.push(form)] + engine.close()
    table = pa.concat_tables([pa.Table.from_batches([part]) for part in parts]).unify_dictionaries()
    expected = hamlet.run(WORKLOAD, table).rows()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert len(rows) == 6


def broken(batch: pa.RecordBatch, what: str) -> pa.RecordBatch:
    if what == "a place":
        indices = pa.array([7] * batch.num_rows, pa.int8())
        return with_column(batch, "type", pa.DictionaryArray.from_arrays(indices, pa.array(["A", "B"]), safe=False))
    if what == "text":
        texts = pa.array([b"\xff"] * batch.num_rows, pa.binary())
        return with_column(batch, "g", pa.Array.from_buffers(pa.string(), len(texts), texts.buffers()))
    if what == "a number":
        return with_column(batch, "v", pa.array([2**64 - 1] * batch.num_rows, pa.uint64()))
    return with_column(batch, "time", pa.array([*batch["time"].to_pylist()[:-1], None], pa.int64()))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a place", "not valid Arrow data"),
        ("text", "not valid Arrow data"),
        ("a number", "column 'v'"),
        ("a time", "'time' is NULL in row 40"),
    ],
)
def test_damage_is_found_in_later_pushes_too(what: str, message: str) -> None:
    engine, sound = hamlet.Engine(WORKLOAD), hamlet.Engine(WORKLOAD)
    engine.push(events(0))
    sound.push(events(0))
    with pytest.raises(DataError, match=message):
        engine.push(broken(events(7), what))
    assert engine.push(events(7)) == sound.push(events(7))
    assert engine.close() == sound.close()
