"""Specifications as Spark jobs: the rows of one process, whatever the slices."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hamlet.cli import main
from hamlet.errors import UnsupportedError
from hamlet.spark.specifications import SpecificationSubmitOptions, submit
from hamlet.streams import Specification, run

SPEC = """
input user: String, amount: Float64
output spent(u: String) spawn with user eval when user = u with spent(u).offset(by: -1).defaults(to: 0.0) + amount
output recent(u: String) spawn with user eval @1Hz with spent(u).aggregate(over: 5s, using: count)
trigger (u: String) spawn with user eval when user = u && spent(u) > 50.0 with "{{}} spends".format(u)
"""


def sorted_rows(rows: list[dict[str, object]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def parts_of(out: Path) -> list[list[dict[str, object]]]:
    """The rows of each file, by its number."""
    files = sorted((out / "specification=spend").glob("part-*.json"))
    return [[json.loads(line) for line in each.read_text().splitlines()] for each in files]


@pytest.mark.usefixtures("spark")
def test_slices_give_the_rows_of_one_process(tmp_path: Path, spark: SparkSession) -> None:
    assert spark is not None
    draw = random.Random(1)
    time, folder = 0.0, tmp_path / "events"
    folder.mkdir()
    for part in range(2):
        lines = ["time,user,amount"]
        for _ in range(150):
            time += draw.random() * 0.2
            lines.append(f"{time:.6f},u{draw.randrange(7)},{draw.randrange(100) / 4}")
        (folder / f"part-{part}.csv").write_text("\n".join(lines) + "\n")
    file = tmp_path / "spend.lola"
    file.write_text(SPEC)
    spec = Specification.from_file(file)
    out = tmp_path / "out"
    found = submit(spec, str(folder), str(out), values=True, output_format="json", slices=3)
    wanted = run(spec, folder, values=True).rows()
    assert found == {"events": 300, "rows": len(wanted), "notes": []}
    parts = parts_of(out)
    assert len(parts) == 3
    assert sorted_rows([row for part in parts for row in part]) == sorted_rows(wanted)
    for part in parts:
        assert [row["time"] for row in part] == sorted(row["time"] for row in part)


@pytest.mark.usefixtures("spark")
def test_events_are_chosen_by_condition_and_period(tmp_path: Path, spark: SparkSession) -> None:
    assert spark is not None
    folder = tmp_path / "events"
    folder.mkdir()
    lines = [f"{place / 4},u{place % 5},{place % 7}.5,{'web' if place % 3 else 'shop'}" for place in range(120)]
    for part in range(2):
        (folder / f"{part}.csv").write_text("\n".join(["time,user,amount,place", *lines[60 * part : 60 * part + 60]]))
    spec = Specification.parse(SPEC, "spend.lola")
    where: SpecificationSubmitOptions = {"where": "place = 'web' AND amount > 1", "since": "3.5", "until": "22"}
    out = tmp_path / "out"
    found = submit(spec, str(folder), str(out), values=True, output_format="json", slices=3, **where)
    events = [
        {"time": time, "user": f"u{place % 5}", "amount": place % 7 + 0.5}
        for place, time in ((place, place / 4) for place in range(120))
        if place % 3 and place % 7 >= 1 and 3.5 <= time < 22
    ]
    wanted = run(spec, events, values=True).rows()
    assert found == {"events": len(events), "rows": len(wanted), "notes": []}
    assert sorted_rows([row for part in parts_of(out) for row in part]) == sorted_rows(wanted)


@pytest.mark.usefixtures("spark")
def test_bad_rows_are_dropped_and_counted(tmp_path: Path, spark: SparkSession) -> None:
    """What a file lacks is told with all its events, whichever are chosen."""
    assert spark is not None
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "0.csv").write_text("time;user;amount\n0;u1;1.5\n1;u1\n2;u2;60\n")
    (folder / "1.csv").write_text("time;user\n3;u1\n#;u2\n4;u2\n")
    spec = Specification.parse(SPEC, "spend.lola")
    out = tmp_path / "out"
    reading: SpecificationSubmitOptions = {"delimiter": ";", "bad_rows": "drop", "missing_columns": "null"}
    where = "user = 'u1'"
    found = submit(spec, str(folder), str(out), values=True, output_format="json", slices=2, where=where, **reading)
    one = run(spec, folder, values=True, delimiter=";", bad_rows="drop", missing_columns="null", where=where)
    assert "NULL in its 2 events" in found["notes"][1]
    assert found["notes"] == [*one.warnings]
    assert found["notes"][0].startswith("2 bad rows dropped")
    assert found["events"] == 2
    assert sorted_rows([row for part in parts_of(out) for row in part]) == sorted_rows(one.rows())


@pytest.mark.usefixtures("spark")
def test_folders_name_columns(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for user in ("u1", "u2"):
        (folder / f"user={user}").mkdir(parents=True)
        (folder / f"user={user}" / "part.csv").write_text(f"time,amount\n0,1.5\n{user[1]},60\n3,2.5\n")
    spec = Specification.parse(SPEC, "spend.lola")
    out = tmp_path / "out"
    found = submit(spec, str(folder), str(out), values=True, output_format="json", slices=2, where="user != 'u3'")
    wanted = run(spec, folder, values=True).rows()
    assert found == {"events": 6, "rows": len(wanted), "notes": []}
    assert sorted_rows([row for part in parts_of(out) for row in part]) == sorted_rows(wanted) != []


def test_what_cannot_be_cut_is_refused_before_spark_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SPEC + "output total @1Hz := amount.aggregate(over: 5s, using: sum)"
    spec = Specification.parse(text)
    with pytest.raises(UnsupportedError, match="total has no parameter"):
        submit(spec, str(tmp_path), str(tmp_path / "out"), output_format="json")
    (tmp_path / "s.lola").write_text(text)
    assert main(["submit", str(tmp_path / "s.lola"), "-i", str(tmp_path), "-o", str(tmp_path / "out")]) == 2
    assert "instances of spent are never closed" in capsys.readouterr().err
