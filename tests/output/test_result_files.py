"""Result files: what stands in them, and that a failed run leaves nothing that looks complete."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamlet.output.files
from hamlet.cli import main
from hamlet.errors import OptionError, OutputError
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock
from hamlet.output.digits import decimal_digits, integer_of
from hamlet.output.files import stream_out, write
from hamlet.output.place import check_destination, write_whole
from hamlet.output.query_part import QueryPart, query_results, query_rows
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.result import Results

HUGE = 10**5000 + 7
CLOCK = Clock("time", "s", pa.int64())
DISTRICT = ResultColumn("district", "attribute", AttributeType.STRING, pa.string())
COUNT = ResultColumn("count", "count", AttributeType.INT)
AVG = ResultColumn("avg_T_x", "double", AttributeType.DOUBLE)
RESULTS = query_results(
    [
        QueryRows("q1", (DISTRICT, COUNT), [(0, 10, None, HUGE), (0, 10, 'a "b",\n', 1)]),
        QueryRows("50% off/../q", (COUNT, AVG), []),
        QueryRows("q3", (AVG, COUNT), [(-5, 5, 0.1, 3), (0, 10, None, 4)]),
    ],
    CLOCK,
)


def streamed(results: Results, output_format: str) -> str:
    text = io.StringIO()
    stream_out(results, text, output_format)
    return text.getvalue()


def value_as(output_format: str, value: Any, column: ResultColumn) -> str:
    """How one value is written."""
    text = streamed(query_results([QueryRows("q", (column,), [(0, 1, value)])], CLOCK), output_format)
    if output_format == "csv":
        return text.splitlines()[1].removeprefix("q,0,1,")
    return text.removeprefix('{"query": "q", "window_start": 0, "window_end": 1, "x": ').removesuffix("}\n")


def test_json_stream() -> None:
    lines = streamed(RESULTS, "json").splitlines()
    assert lines[0] == (
        f'{{"query": "q1", "window_start": 0, "window_end": 10, "district": null, "count": {decimal_digits(HUGE)}}}'
    )
    assert [json.loads(line) for line in lines[1:]] == RESULTS.rows()[1:]
    limit = sys.get_int_max_str_digits()
    assert json.loads(lines[0], parse_int=integer_of) == RESULTS.rows()[0]
    assert sys.get_int_max_str_digits() == limit


def test_csv_stream_has_one_header() -> None:
    found = list(csv.reader(io.StringIO(streamed(RESULTS, "csv"), newline="")))
    assert found == [
        ["query", "window_start", "window_end", "district", "count", "avg_T_x"],
        ["q1", "0", "10", "", decimal_digits(HUGE), ""],
        ["q1", "0", "10", 'a "b",\n', "1", ""],
        ["q3", "-5", "5", "", "3", "0.1"],
        ["q3", "0", "10", "", "4", ""],
    ]


STRING = ResultColumn("x", "attribute", AttributeType.STRING)
TIME = ResultColumn("x", "extremum", AttributeType.TIMESTAMP)
REAL = ResultColumn("x", "double", AttributeType.DOUBLE)
MONEY = ResultColumn("x", "attribute", AttributeType.DOUBLE, pa.decimal128(9, 2))


@pytest.mark.parametrize(
    ("value", "column", "as_json", "as_csv"),
    [
        (None, STRING, "null", ""),
        ("", STRING, '""', '""'),
        (" é ", STRING, '" é "', '" é "'),
        (True, ResultColumn("x", "attribute", AttributeType.BOOLEAN), "true", "true"),
        (0.1 + 0.2, REAL, "0.30000000000000004", "0.30000000000000004"),
        (math.inf, REAL, "null", "inf"),
        (decimal.Decimal("-1.2345678901234567e456"), REAL, "-1.2345678901234567e+456", "-1.2345678901234567e+456"),
        (decimal.Decimal("1.50"), MONEY, "1.50", "1.50"),
        (datetime.date(2024, 1, 31), TIME, '"2024-01-31"', "2024-01-31"),
        (
            datetime.datetime(2024, 1, 31, 5, 6, 7, 500),
            TIME,
            '"2024-01-31T05:06:07.000500"',
            "2024-01-31T05:06:07.000500",
        ),
    ],
)
def test_values(value: Any, column: ResultColumn, as_json: str, as_csv: str) -> None:
    assert value_as("json", value, column) == as_json
    assert value_as("csv", value, column) == as_csv


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_reads_back(text: str) -> None:
    results = query_results(
        [QueryRows(text, (ResultColumn(text, "attribute", AttributeType.STRING),), [(0, 1, text)])], CLOCK
    )
    row = {"query": text, "window_start": 0, "window_end": 1}
    row[text] = text  # a name may collide with one of the three
    assert json.loads(streamed(results, "json")) == row
    header, fields = csv.reader(io.StringIO(streamed(results, "csv"), newline=""))
    assert (header[3], fields[0], fields[3]) == (text, text, text)


def test_timestamps_are_iso_strings() -> None:
    results = query_results([QueryRows("q", (COUNT,), [(0, 1500, 1)])], Clock("time", "ms", pa.timestamp("ms", "UTC")))
    assert '"window_start": "1970-01-01T00:00:00+00:00", "window_end": "1970-01-01T00:00:01.500+00:00"' in streamed(
        results, "json"
    )
    assert "q,1970-01-01T00:00:00+00:00,1970-01-01T00:00:01.500+00:00,1" in streamed(results, "csv")


# ------------------------------------------------------------------------------------------------------- folders


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("output_format", ["json", "csv", "parquet"])
def test_every_query_has_its_file(tmp_path: Path, output_format: str) -> None:
    place = write(RESULTS, tmp_path / "deep" / "out", output_format)
    assert files_below(place) == [
        f"query=50%25%20off%2F..%2Fq/part-00000.{output_format}",
        f"query=q1/part-00000.{output_format}",
        f"query=q3/part-00000.{output_format}",
    ]
    assert [path.name for path in place.parent.iterdir()] == ["out"]
    text = place / "query=q3" / f"part-00000.{output_format}"
    empty = place / "query=50%25%20off%2F..%2Fq" / f"part-00000.{output_format}"
    if output_format == "json":
        assert json.loads(text.read_text().splitlines()[0]) == {
            "window_start": -5,
            "window_end": 5,
            "avg_T_x": 0.1,
            "count": 3,
        }
        assert empty.read_text() == ""
    elif output_format == "csv":
        assert text.read_text() == "window_start,window_end,avg_T_x,count\n-5,5,0.1,3\n0,10,,4\n"
        assert empty.read_text() == "window_start,window_end,count,avg_T_x\n"
    else:
        assert pq.ParquetFile(empty).schema_arrow.names == ["window_start", "window_end", "count", "avg_T_x"]
        counts = pq.ParquetFile(place / "query=q1" / "part-00000.parquet").read().column("count")
        assert [integer_of(text) for text in counts.to_pylist()] == [HUGE, 1]


def test_readers_find_the_query_in_the_folder_name(tmp_path: Path) -> None:
    write(RESULTS, tmp_path / "out")
    found = ds.dataset(tmp_path / "out", partitioning="hive").to_table(columns=["query", "window_start"]).to_pylist()
    assert {row["query"] for row in found} == {"q1", "q3"}
    assert pq.read_table(tmp_path / "out" / "query=q3").num_rows == 2


def test_a_folder_with_something_in_it_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write(RESULTS, out, "json")  # an empty folder is fine
    before = files_below(out)
    with pytest.raises(OutputError, match="out is not empty; give --overwrite"):
        write(RESULTS, out, "csv")
    assert files_below(out) == before
    write(RESULTS, out, "csv", overwrite=True)
    assert all(name.endswith(".csv") for name in files_below(out))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_must_not_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "events.csv").touch()
    with pytest.raises(OutputError, match=r"holds .*events.csv, which --overwrite would delete"):
        write(RESULTS, tmp_path, overwrite=True, keep=[str(tmp_path / "events.csv")])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="would delete"):
        check_destination(".", overwrite=True)
    with pytest.raises(OutputError, match=r"events.csv is a file; the output must be a directory"):
        check_destination("events.csv", overwrite=True)
    assert files_below(tmp_path) == ["events.csv"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failed_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Any, overwrite: bool
) -> None:
    out = tmp_path / "out"
    if overwrite:
        write(RESULTS, out, "json")
    before = files_below(tmp_path)
    real = hamlet.output.files._write_file

    def fails(part: QueryPart, path: Path, output_format: str) -> None:
        real(part, path, output_format)
        if part.name == "q3":
            raise stop

    monkeypatch.setattr(hamlet.output.files, "_write_file", fails)
    with pytest.raises((KeyboardInterrupt, OutputError)):
        write(RESULTS, out, "csv", overwrite)
    assert files_below(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"] * overwrite


def test_former_results_come_back_where_new_ones_cannot_take_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real = tmp_path / "out", Path.rename
    write(RESULTS, out, "json")
    before = files_below(tmp_path)

    def rename(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OutputError, match=r"cannot write to .*out: Input/output error"):
        write(RESULTS, out, "csv", overwrite=True)
    assert files_below(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_count_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"query q1, window \[0, 10\), group district=None: count = 1000.* int64"):
        write(query_results(query_rows(RESULTS), CLOCK, "int64"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_names_that_no_folder_can_have(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write to .*File name too long"):
        write(query_results([QueryRows("x" * 300, (), [])], CLOCK), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_wrong_formats(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="output format 'xml' is unknown; it must be json, csv or parquet"):
        write(RESULTS, tmp_path / "out", "xml")
    with pytest.raises(OptionError, match="Parquet cannot be written to standard output"):
        streamed(RESULTS, "parquet")


def test_a_file_is_written_as_a_whole(tmp_path: Path) -> None:
    """Behind a link, beside nothing that is left over, and to a pipe or a device without taking its place."""
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old")
    link.symlink_to(real)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDWR)
    write_whole(pipe, b"new")
    assert pipe.is_fifo()
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    with pytest.raises(OSError, match="No such file"):
        write_whole(tmp_path / "none" / "page.html", b"new")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.html", "pipe", "real.html"]


def test_evidence_replaces_nothing_that_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("time,type\n1,A\n")
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN A WITHIN 9 s")
    files = [str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv")]
    assert main(["why", *files, "--row", '{"window_start": 0}', "--output", files[2]]) == 2
    assert "would replace a file that is read here" in capsys.readouterr().err
