"""Policies as Spark jobs: the rows of one process, over files, DataFrames and folders that grow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.cli import main
from hamlet.policies import Policy, run

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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", FORMULAS)
def test_a_job_gives_the_rows_of_one_process(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    from hamlet.spark import monitor

    policy = Policy.parse(text, SIGNATURE)
    table = pa.Table.from_pylist([*events().to_pylist(), {"time": 80, "type": "A", "x": 1, "y": None}])
    expected = listed(run(policy, table).rows())
    assert expected
    if policy.formula != Policy.parse(FORMULAS[1], SIGNATURE).formula:
        found = monitor(policy, spark.createDataFrame(table.to_pylist()), slices=2)
        assert listed(row.asDict() for row in found.collect()) == expected
    pq.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "p.sig").write_text(SIGNATURE)
    (tmp_path / "p.mfotl").write_text(text)
    command = ["submit", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "--slices", "3"]
    assert main([*command, "--input", str(tmp_path / "in.parquet"), "--output", str(tmp_path / "out")]) == 0
    rows = pq.read_table(tmp_path / "out" / "policy=p", partitioning=None).to_pylist()
    assert listed(rows) == expected
    said = capsys.readouterr().err
    assert f"{len(rows):,} row" in said
    assert f"{table.num_rows} events" in said
    assert "1 event is in no relation" in said


def test_a_folder_that_grows_gives_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    from hamlet.spark.continuous import PROVIDER, ROCKSDB

    spark.conf.set(PROVIDER, ROCKSDB)  # the job runs in this session
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
            (tmp_path / "state" / "commits" / "0").unlink()
            (tmp_path / "state" / "commits" / ".0.crc").unlink(missing_ok=True)
    expected = listed(run(policy, table, open_end=True).rows())
    found = listed(pq.read_table(tmp_path / "out" / "policy=p", partitioning=None).to_pylist())
    # Of the last time-point more events may come, so what it would decide is not known yet.
    assert found == [row for row in expected if row in found]
    assert len(expected) - 6 <= len(found) <= len(expected)


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.sig").write_text(SIGNATURE)
    (tmp_path / "p.mfotl").write_text("A(x,y)")
    command = ["submit", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "-i", "in", "-o", "out"]
    for more, said in (
        (["--stream"], "--stream needs --checkpoint"),
        (["--trigger", "1 second"], "--trigger belongs to --stream"),
        (["--stream", "--checkpoint", "c", "--overwrite"], "--overwrite belongs to a batch"),
        (["--verdicts", "all"], "hamlet monitor gives other --verdicts"),
        (["--statistics", "no.json"], "no.json cannot be read"),
    ):
        assert main([*command, *more]) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "p.mfotl").write_text("NOT A(x,y)")
    (tmp_path / "in.csv").write_text("time,type\n0,A\n")
    command[command.index("in")] = str(tmp_path / "in.csv")
    assert main(command) == 2  # before what the columns lack, as in one process
    assert "the variable 'x' is not bound" in capsys.readouterr().err
