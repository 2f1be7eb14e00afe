"""Policies as Spark jobs: the rows of one process, over files, DataFrames and folders that grow."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.cli import main
from hamlet.errors import DataError
from hamlet.policies import Policy, run
from hamlet.policies.options import OnlineOptions
from hamlet.spark.arrivals import Arrivals
from hamlet.spark.checkpoint import owned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNATURE = "A(x: int, y: int) B(x: int, y: int) C(x: int, y: int) n(x: int)"
FORMULAS = [
    "((ONCE[0,10) A(w,x)) AND B(w,y)) AND (EVENTUALLY[0,10) C(w,z))",
    "(EXISTS x, y. A(x,y)) AND NOT EVENTUALLY[0,1] EXISTS x. n(x)",
]


def events(seed: int = 3) -> pa.Table:
    draw = random.Random(seed)
    rows = [
        {"time": place // 3, "type": draw.choice("ABCn"), "x": draw.choice([1, 1, 1, 2, 3, 4]), "y": draw.randrange(4)}
        for place in range(240)
    ]
    return pa.Table.from_pylist(rows)


def listed(rows: Any) -> list[str]:
    return sorted(str({name: value for name, value in row.items() if name != "policy"}) for row in rows)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_job_gives_the_rows_of_one_process(spark: SparkSession, tmp_path: Path, text: str) -> None:
    from hamlet.spark import monitor
    from hamlet.spark.policies import submit

    policy = Policy.parse(text, SIGNATURE)
    table = events()
    expected = listed(run(policy, table).rows())
    assert expected
    if policy.formula != Policy.parse(FORMULAS[1], SIGNATURE).formula:
        found = monitor(policy, spark.createDataFrame(table.to_pylist()), slices=2)
        assert listed(row.asDict() for row in found.collect()) == expected
    pq.write_table(table, tmp_path / "in.parquet")
    stats = submit(policy, str(tmp_path / "in.parquet"), str(tmp_path / "out"), slices=3)
    rows = pq.read_table(tmp_path / "out" / "policy=policy1", partitioning=None).to_pylist()
    assert listed(rows) == expected
    assert stats["rows"] == len(rows)
    assert stats["events"] == table.num_rows


def test_a_folder_that_grows_gives_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None  # the job runs in this session
    table = events()
    (tmp_path / "in").mkdir()
    (tmp_path / "p.sig").write_text(SIGNATURE)
    (tmp_path / "p.mfotl").write_text("A(x,y) AND EVENTUALLY[0,3] B(y,x)")
    command = ["submit", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "--quiet", "--stream"]
    command += ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--available-now"]
    command += ["--checkpoint", str(tmp_path / "state")]
    policy = Policy.from_file(tmp_path / "p.mfotl", tmp_path / "p.sig")
    for number, begin in enumerate(range(0, 240, 120)):
        pq.write_table(table.slice(begin, 120), tmp_path / "in" / f"{number}.parquet")
        assert main(command) == 0
        if number == 0:  # as if the job had been killed before Spark knew that the last micro-batch was done
            (last,) = (tmp_path / "state" / "spark" / "commits").glob("0")
            last.unlink()
            for check in (tmp_path / "state" / "spark" / "commits").glob(".0.crc"):
                check.unlink()
    expected = listed(run(policy, table, open_end=True).rows())
    found = listed(pq.read_table(tmp_path / "out" / "policy=p", partitioning=None).to_pylist())
    # Of the last time-point more events may come, so what it would decide is not known yet.
    assert found == [row for row in expected if row in found]
    assert len(expected) - 6 <= len(found) <= len(expected)


def test_files_are_read_by_name_and_type_or_refused_whole(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark is not None  # the job runs in this session
    source, out, state = (tmp_path / name for name in ("in", "out", "state"))
    source.mkdir()
    (tmp_path / "p.sig").write_text("w(u: string, a: int)")
    (tmp_path / "p.mfotl").write_text("w(u, a)")
    command = ["submit", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "--quiet", "--stream"]
    command += ["--input", str(source), "--output", str(out), "--available-now", "--checkpoint", str(state)]

    def rows() -> list[tuple[int, str, int]]:
        found = pq.read_table(out / "policy=p", partitioning=None).to_pylist()
        return sorted((row["time"], row["u"], row["a"]) for row in found)

    (source / "0.csv").write_text("time,type,u,a\n1,w,x,7\n2,w,y,8\n")
    assert main(command) == 0
    (source / "1.csv").write_text("a,u,type,time\n9,5,w,3\n4,z,w,4\n")
    assert main(command) == 0
    assert rows() == [(1, "x", 7), (2, "y", 8), (3, "5", 9)]
    capsys.readouterr()
    (source / "2.csv").write_text("time,type,u,a\n5,w,x,1\n6,w,y,ten\n")
    assert main(command) == 2
    assert "2.csv:3" in capsys.readouterr().err
    assert rows() == [(1, "x", 7), (2, "y", 8), (3, "5", 9)]
    (source / "2.csv").write_text("time,type,u,a\n5,w,x,1\n6,w,y,2\n")
    assert main(command) == 0
    assert rows() == [(1, "x", 7), (2, "y", 8), (3, "5", 9), (4, "z", 4), (5, "x", 1)]
    with owned(str(state)):
        assert main(command) == 2
    assert f"is in use by process {os.getpid()} on" in capsys.readouterr().err
    with (source / "2.csv").open("a") as file:
        file.write("7,w,y,3\n")
    assert main(command) == 2
    assert "2.csv has changed since it was read" in capsys.readouterr().err
    shutil.move(state / "spark", tmp_path / "spark")
    assert main(command) == 2
    assert "has lost Spark's place in the input" in capsys.readouterr().err
    shutil.move(tmp_path / "spark", state / "spark")
    shutil.move(state / "monitor", tmp_path / "monitor")
    assert main(command) == 2
    assert "has lost the monitor's state" in capsys.readouterr().err


BAD = {
    "short row": ("b.csv", "time,type,u,a\n5,w,x,1\n6,w,y\n", "b.csv:3"),
    "text": ("b.csv", "time,type,u,a\n5,w,x,1\n6,w,y,ten\n", "b.csv:3: column 'a'"),
    "float": ("b.csv", "time,type,u,a\n5,w,x,1\n6,w,y,1.5\n", "b.csv:3: column 'a'"),
    "no column": ("b.csv", "time,type,u\n5,w,x\n", "b.csv:1"),
    "broken": ("b.jsonl", '{"time": 5, "type": "w", "u": "x", "a": 1}\n{"time": 6, "type"', "b.jsonl:2"),
    "key twice": ("b.jsonl", '{"time": 5, "type": "w", "u": "x", "a": 1, "a": 2}\n', "b.jsonl"),
    "number as text": ("b.jsonl", '{"time": 5, "type": "w", "u": "x", "a": "1"}\n', "b.jsonl"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    name, text, said = BAD[what]
    policy = Policy.parse("w(u, a)", "w(u: string, a: int)")
    (tmp_path / "a.csv").write_text("time,type,u,a\n1,w,x,7\n")
    (tmp_path / name).write_text(text)
    arrivals = Arrivals(policy, {("w", 2)}, OnlineOptions(), None, tmp_path / "a.csv", tmp_path)
    with pytest.raises(DataError, match=re.escape(said)):
        arrivals.read([tmp_path / "a.csv", tmp_path / name])
    (tmp_path / name).write_text("a,u,type,time\n9,5,w,3\n" if name.endswith("csv") else "")
    found = arrivals.read([tmp_path / "a.csv", *([tmp_path / name] if name.endswith("csv") else [])]).to_pylist()
    assert found[0] == {"time": 1, "type": "w", "u": "x", "a": 7}
    assert found[1:] in ([], [{"time": 3, "type": "w", "u": "5", "a": 9}])
    arrivals.remember()
    again = Arrivals(policy, {("w", 2)}, OnlineOptions(), None, tmp_path / name, tmp_path)
    assert again.schema == arrivals.schema


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.sig").write_text(SIGNATURE)
    (tmp_path / "p.mfotl").write_text("A(x,y)")
    command = ["submit", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "-i", "in", "-o", "out"]
    for more, said in (
        (["--stream"], "--stream needs --checkpoint"),
        (["--trigger", "1 second"], "--trigger belongs to --stream"),
        (["--stream", "--checkpoint", "c", "--slices", "3"], "--slices belongs to a batch"),
        (["--verdicts", "all"], "hamlet monitor gives other --verdicts"),
        (["--statistics", "no.json"], "no.json cannot be read"),
    ):
        assert main([*command, *more]) == 2
        assert said in capsys.readouterr().err
