"""A column that one of several files lacks: one rule for all notations and formats, before any row."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
import hamlet.policies as policies
import hamlet.streams as streams
from hamlet.cli import main
from tests.notation.test_matrix import SIGNATURE, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("csv", "jsonl", "parquet")
FIRST = [{"time": 1, "type": "A", "a": 5}, {"time": 4, "type": "A", "a": 6}]
SECOND = [{"more": 0, "type": "A", "time": 2}, {"more": 1, "type": "A", "time": 3}]  # in another order, with one more
FILES = {"queries": "sliced.sase", "policies": "sliced.mfotl", "specifications": "sliced.lola", "patterns": "m.sql"}


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return str(path)


def results(notation: str, events: Any, **options: Any) -> Any:
    if notation == "queries":
        return hamlet.run(hamlet.Workload.parse("RETURN COUNT(*), SUM(A.a) PATTERN A WITHIN 9 s"), events, **options)
    if notation == "policies":
        return policies.run(policies.Policy.parse("A(a)", signature=SIGNATURE), events, **options)
    if notation == "specifications":
        return streams.run(streams.Specification.parse("input a: Int64\noutput b := a"), events, True, **options)
    return hamlet.sql(TEXTS["m.sql"], {"events": events}, **options)


EXPECTED = {
    "queries": [{"query": "q1", "window_start": 0, "window_end": 9, "count": 4, "sum_A_a": 11}],
    "policies": [{"policy": "policy1", "time": t, "time_point": p, "a": a} for t, p, a in ((1, 0, 5), (4, 3, 6))],
    "specifications": [{"stream": "b", "time": time, "value": a} for time, a in ((1, 5), (4, 6))],
    "patterns": [{"a": 5}, {"a": 6}],
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("notation", EXPECTED)
def test_one_rule(notation: str, ending: str, order: int, tmp_path: Path) -> None:
    paths = [written(tmp_path / f"1.{ending}", FIRST), written(tmp_path / f"2.{ending}", SECOND)][::order]
    said = f"{tmp_path}/2.{ending} has no column 'a', which others have: it is NULL in its 2 events"
    refused = re.escape(f"{tmp_path}/2.{ending}{':1' * (ending == 'csv')}: there is no column 'a'")
    for source in (paths, str(tmp_path), f"{tmp_path}/*.{ending}"):
        for rule in ("error", *([None] if ending == "csv" else [])):
            with pytest.raises(hamlet.DataError, match=refused) as told:
                results(notation, source, missing_columns=rule)
            assert "hint: missing_columns='null'" in str(told.value)
        for rule in ("null", *([None] if ending != "csv" else [])):
            found = results(notation, source, missing_columns=rule)
            assert found.rows() == EXPECTED[notation]
            assert [each for each in found.warnings if "has no column" in each] == [said]
    with pytest.raises(hamlet.OptionError, match="missing_columns is 'nul'"):
        results(notation, paths, missing_columns="nul")


@pytest.mark.parametrize("notation", ["queries", "policies", "specifications"])
def test_times_that_a_file_lacks(notation: str, tmp_path: Path) -> None:
    """The file is named, and the row in it; row patterns order by any column, and NULL is the last."""
    written(tmp_path / "1.parquet", FIRST)
    pq.write_table(
        pa.table({"time": pa.array([2, *[3] * 70_000, None]), "type": ["A"] * 70_002, "a": [1] * 70_002}),
        tmp_path / "2.parquet",
    )
    said = f"{tmp_path}/2.parquet: the time column 'time' is NULL in row 70002 (the first row is 1)"
    with pytest.raises(hamlet.DataError, match=f"^{re.escape(said)}$"):
        results(notation, str(tmp_path))
    for ending in ("parquet", "jsonl"):
        (tmp_path / ending).mkdir()
        written(tmp_path / ending / f"1.{ending}", FIRST)
        written(tmp_path / ending / f"2.{ending}", [{"type": "A", "a": 1}])
        with pytest.raises(hamlet.DataError, match=rf"{ending}/2\.{ending}: there is no time column 'time'"):
            results(notation, str(tmp_path / ending))


def files_of(tmp_path: Path, notation: str) -> list[str]:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    more = ["--signature", str(tmp_path / "p.sig")] if notation == "policies" else []
    return [str(tmp_path / FILES[notation]), *more, *(["--values"] if notation == "specifications" else [])]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("notation", EXPECTED)
def test_the_command_line(notation: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [written(tmp_path / f"1.{ending}", FIRST), written(tmp_path / f"2.{ending}", SECOND)]
    command = "run" if notation in ("queries", "patterns") else "monitor"
    call = [command, *files_of(tmp_path, notation), "--output", "-", "--input", paths[0], "--input", paths[1]]
    assert main([*call, "--missing-columns", "error"]) == 2
    said = capsys.readouterr()
    assert not said.out, "rows before the error"
    assert "there is no column 'a'" in said.err
    assert "hint: --missing-columns null takes them as NULL" in said.err
    assert main([*call, "--missing-columns", "null"]) == 0
    said = capsys.readouterr()
    assert said.out
    assert said.err.count(f"2.{ending} has no column 'a', which others have: it is NULL in its 2 events") == 1


@pytest.mark.sampled(4)
@pytest.mark.spark
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("notation", EXPECTED)
def test_spark(
    notation: str, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    assert spark is not None
    folder = tmp_path / "in"
    folder.mkdir()
    written(folder / f"1.{ending}", FIRST)
    written(folder / f"2.{ending}", SECOND)
    call = [*files_of(tmp_path, notation), "--input", str(folder)]
    out = ["--output", str(tmp_path / "out"), "--output-format", "json"]
    assert main(["submit", *call, *out, "--missing-columns", "error"]) == 2
    said = capsys.readouterr().err
    assert "there is no column 'a'" in said, said
    assert not list((tmp_path / "out").rglob("part-*"))
    assert main(["submit", *call, *out, "--missing-columns", "null"]) == 0
    said = capsys.readouterr().err
    assert said.count(f"2.{ending} has no column 'a', which others have: it is NULL in its 2 events") == 1, said
    rows = [line for file in (tmp_path / "out").rglob("part-*.json") for line in file.read_text().splitlines()]
    command = "run" if notation in ("queries", "patterns") else "monitor"
    assert main([command, *call, "--output", "-", "--missing-columns", "null"]) == 0
    assert len(rows) == len(capsys.readouterr().out.splitlines()) > 0
