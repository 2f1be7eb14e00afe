"""Files that come to a folder after a continuous job has begun: taken by name and type, or refused by file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.errors import DataError
from hamlet.input.file_form import FileForm
from hamlet.input.files import open_path
from hamlet.input.folder import own_columns
from hamlet.input.ordering import SortKey
from hamlet.input.timed import dropped_by
from hamlet.input.widening import conform
from hamlet.parallel.run import run
from hamlet.planner.workload import Workload

KEY = SortKey("time", None)
KNOWN = pa.schema([("time", pa.int64()), ("type", pa.string()), ("k", pa.int64()), ("v", pa.int64())])
WORKLOAD = Workload.parse("q: RETURN k, COUNT(*), SUM(B.v) AS s PATTERN SEQ(A, B+) WHERE [k] GROUP-BY k WITHIN 10 s")


def csv_of(*lines: str) -> bytes:
    return "\n".join(["time,type,k,v", *lines, ""]).encode()


def json_of(*events: dict[str, Any]) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def with_v(value: Any) -> bytes:
    return json_of({"time": 11, "type": "A", "k": 1, "v": 5}, {"time": 12, "type": "B", "k": 1, "v": value})


def parquet_of(values: list[Any], name: str = "v") -> Callable[[Path], None]:
    table = pa.table({"time": [11, 12], "type": ["A", "B"], "k": [1, 1], name: values})
    return lambda path: pq.write_table(table, path)


def read_file(folder: Path, name: str, content: bytes | Callable[[Path], None]) -> list[dict[str, Any]]:
    """The events of a file, read as one that comes after files of these types."""
    path = folder / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    reader = open_path(path, KEY, "type", known={field.name: field.type for field in KNOWN})
    batches = [conform(batch, KNOWN) for batch in reader.batches(own_columns(reader, KNOWN.names))]
    return pa.Table.from_batches(batches, KNOWN).to_pylist()


REFUSED = {
    "text": ("1.csv", csv_of("11,A,1,5", "12,B,1,oops"), r"1\.csv:3: column 'v' holds 'oops', .* it is INT"),
    "fraction": ("1.csv", csv_of("11,A,1,5", "12,B,1,2.5"), r"1\.csv:3: column 'v' holds '2\.5', .* it is INT"),
    "huge": ("1.csv", csv_of("12,B,1,99999999999999999999"), r"1\.csv:2: column 'v' holds '9{20}'"),
    "short row": ("1.csv", csv_of("11,A,1,5", "12,B,1"), r"1\.csv:3: 3 fields in place of 4, '12,B,1'"),
    "long row": ("1.csv", csv_of("11,A,1,5", "12,B,1,7,8"), r"1\.csv:3: 5 fields in place of 4, '12,B,1,7,8'"),
    "no header": ("1.csv", b"11,A,1,5\n12,B,1,7\n", r"1\.csv:1: the first line must name the columns"),
    "other columns": ("1.csv", b"time,type,k,w\n11,A,1,5\n", r"1\.csv:1: there is no column 'v'"),
    "JSON text": ("1.json", json_of({"time": 11, "type": "A", "v": "x"}), r"1\.json:1: column 'v' holds \"x\""),
    "JSON text in a later line": ("1.json", with_v("x"), r"1\.json:2: attribute 'v' is \"x\", but a number in line 1"),
    "JSON list": ("1.json", json_of({"time": 11, "type": "A", "v": [1]}), r"1\.json:1: column 'v' holds \[1\]"),
    "JSON fraction": ("1.json", with_v(2.5), r"1\.json:2: column 'v' holds 2\.5, .* it is INT"),
    "JSON huge": ("1.json", with_v(10**25), r"1\.json:2: attribute 'v' holds an integer of 84 bits"),
    "JSON broken": ("1.json", with_v(7) + b'{"time": 13, "ty\n', r"1\.json:3: the line is no JSON"),
    "Parquet text": ("1.parquet", parquet_of(["a", "b"]), r"1\.parquet: column 'v' holds values of the type .*string"),
    "Parquet double": ("1.parquet", parquet_of([5.0, 7.5]), r"1\.parquet: column 'v' holds values of the type double"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_file_and_line(case: str, tmp_path: Path) -> None:
    name, content, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        read_file(tmp_path, name, content)


def test_a_file_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    parquet_of([5, 7])(tmp_path / "whole.parquet")
    half = (tmp_path / "whole.parquet").read_bytes()[:300]
    with pytest.raises(DataError, match=r"1\.parquet is not a readable Parquet file"):
        read_file(tmp_path, "1.parquet", half)


FITS = {
    "other order": ("1.csv", b"v,k,type,time\n5,1,A,11\n7,1,B,12\n", [5, 7]),
    "more columns": ("1.csv", b"time,type,note,k,v\n11,A,x,1,5\n12,B,y,1,7\n", [5, 7]),
    "JSON without v": (
        "1.json",
        json_of({"time": 11, "type": "A", "k": 1}, {"time": 12, "type": "B", "k": 1}),
        [None] * 2,
    ),
    "Parquet": ("1.parquet", parquet_of([5, 7]), [5, 7]),
    "Parquet, V is not v": ("1.parquet", parquet_of([5, 7], "V"), [None, None]),
}


@pytest.mark.parametrize("case", FITS)
def test_columns_are_taken_by_name(case: str, tmp_path: Path) -> None:
    name, content, values = FITS[case]
    rows = read_file(tmp_path, name, content)
    assert [(row["time"], row["type"], row["k"]) for row in rows] == [(11, "A", 1), (12, "B", 1)]
    assert [row["v"] for row in rows] == values


def test_text_that_looks_like_numbers_or_times_stays_text(tmp_path: Path) -> None:
    known = {"time": pa.int64(), "type": pa.string(), "v": pa.string()}
    (tmp_path / "1.csv").write_text("time,type,v\n1,A,17\n2,B,2024-01-31T12:00:00\n")
    (tmp_path / "1.json").write_bytes(json_of({"time": 1, "type": "A", "v": "2024-01-31T12:00:00"}))
    assert [
        value
        for name in ("1.csv", "1.json")
        for batch in open_path(tmp_path / name, KEY, "type", known=known).batches(["v"])
        for value in batch.column(0).to_pylist()
    ] == ["17", "2024-01-31T12:00:00", "2024-01-31T12:00:00"]


def test_a_folder_of_csv_files_needs_every_column_in_each(tmp_path: Path) -> None:
    """A header that is missing or misspelt would otherwise be a column of NULL."""
    (tmp_path / "0.csv").write_bytes(csv_of("1,A,1,5", "2,B,1,7"))
    (tmp_path / "1.csv").write_bytes(b"time,type,k,w\n11,A,1,5\n12,B,1,7\n")
    with pytest.raises(DataError, match=r"1\.csv:1: there is no column 'v'"):
        run(WORKLOAD, tmp_path)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_bad_rows_of_files_whose_rows_need_no_time(form: str, tmp_path: Path) -> None:
    """Those of row patterns: a row is not bad for having no time."""
    lines = {"jsonl": ['{"x": 1}', "{", '{"x": 2}'], "csv": ["x,y", "1,1", "2", "2,2"]}[form]
    (tmp_path / f"a.{form}").write_text("\n".join(lines))
    reader = open_path(tmp_path / f"a.{form}", SortKey(""), "", form=FileForm(bad_rows="drop"))
    assert [each for batch in reader.batches(["x"]) for each in batch.column("x").to_pylist()] == [1, 2]
    assert dropped_by(reader).rows == 1
