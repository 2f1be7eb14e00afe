"""A notation that is six things and one line of registration gets everything that the others have."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.cli import main, notations
from hamlet.cli.notations import register
from hamlet.errors import MemoryLimitError, RestoreError, WorkloadError
from hamlet.notation import StepMonitor, run
from tests.notation.notation_counts import COUNTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Hamlet = Callable[..., "Said"]
TEXT = "-- more than a person does\nCOUNT login ABOVE 3\nCOUNT pay ABOVE 0"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notations, "_REGISTERED", dict(notations._REGISTERED))
    register(COUNTS)


def events_of(seed: int, number: int = 60) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    times = sorted(chance.randrange(20) for _ in range(number))
    return [{"time": time, "type": chance.choice(["login", "pay", "other"])} for time in times]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.count").write_text(TEXT, encoding="utf-8")
    (tmp_path / "in").mkdir()
    events = events_of(1)
    for place, part in enumerate((events[:25], events[25:])):
        pq.write_table(pa.Table.from_pylist(part), tmp_path / "in" / f"part-{place}.parquet")
    (tmp_path / "events.csv").write_text(
        "time,type\n" + "".join(f"{each['time']},{each['type']}\n" for each in events), encoding="utf-8"
    )
    return tmp_path


@dataclass
class Said:
    """What a command has said."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def hamlet(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def call(*words: object) -> Said:
        code = main([str(each) for each in words])
        return Said(code, *capfd.readouterr())

    return call


def rows_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line]


@pytest.mark.parametrize("seed", range(30))
def test_runs_equal_the_oracle(seed: int) -> None:
    work, events = COUNTS.read(TEXT), events_of(seed)
    expected = COUNTS.oracle(work.tree, events)
    assert expected or not events
    assert run(work, events).to_pylist() == expected
    assert run(work, pl.DataFrame(events)).to_pylist() == expected
    monitor, chance, found = StepMonitor(work, lateness=20), random.Random(seed), []
    chance.shuffle(events)
    while events:
        size = chance.randrange(1, 20)
        found += monitor.push(events[:size])
        events = events[size:]
        if chance.random() < 0.5:
            monitor = StepMonitor.restore(work, monitor.save())
    assert found + monitor.close() == expected


def test_a_save_of_another_text_is_refused() -> None:
    monitor = StepMonitor(COUNTS.read(TEXT))
    monitor.push(events_of(2))
    data = monitor.save()
    assert StepMonitor.restore(COUNTS.read("COUNT login ABOVE 3 COUNT pay ABOVE 0"), data).held == monitor.held
    with pytest.raises(RestoreError, match="differ where"):
        StepMonitor.restore(COUNTS.read(TEXT.replace("3", "4")), data)
    for length in range(0, len(data), 37):
        with pytest.raises(RestoreError):
            StepMonitor.restore(COUNTS.read(TEXT), data[:length])


def test_memory_is_limited() -> None:
    monitor = StepMonitor(COUNTS.read(TEXT), lateness=100, max_memory="20 kB")
    many = [{"time": 80, "type": name} for name in "abcd" * 1000]
    with pytest.raises(MemoryLimitError, match="max_memory allows 20,000"):
        monitor.push(many)


def test_all_mistakes_are_told_at_once(files: Path, hamlet: Hamlet) -> None:
    wrong = "CONT login ABOVE 3 COUNT ABOVE 1 COUNT pay ABOVE @ COUNT a ABOVE 1 COUNT a ABOVE"
    with pytest.raises(WorkloadError) as caught:
        COUNTS.read(wrong)
    assert len(caught.value.diagnostics) == 4
    assert "did you mean COUNT?" in str(caught.value)
    (files / "rules.count").write_text(wrong, encoding="utf-8")
    found = hamlet("check", files / "rules.count", "--format", "json")
    assert found.exit_code == 2
    assert len(json.loads(found.stdout)["errors"]) == 4


def test_it_is_checked_explained_and_shown(files: Path, hamlet: Hamlet) -> None:
    found = hamlet("check", files / "rules.count", "--input", files / "events.csv")
    assert found.stdout == f"{files}/rules.count: a count, no errors\n"
    assert "count login, tell above 3; keeps one number" in hamlet("explain", files / "rules.count").stdout
    assert hamlet("explain", files / "rules.count", "--html", files / "page.html").exit_code == 0
    assert "count login, tell above 3" in (files / "page.html").read_text(encoding="utf-8")
    for command in ("check", "explain", "monitor"):
        assert "RULES.count" in "".join(hamlet(command, "--help").stdout.split())  # usage is cut at the width of a line


def test_it_runs_from_a_file_a_folder_and_a_growing_one(files: Path, hamlet: Hamlet) -> None:
    expected = COUNTS.oracle(COUNTS.read(TEXT).tree, events_of(1))
    for source in ("events.csv", "in"):
        found = hamlet("monitor", files / "rules.count", "--input", files / source, "--output", "-", "--quiet")
        assert rows_in(found.stdout) == expected
    live = ("--checkpoint", files / "saves", "--output", files / "out", "--output-format", "json")
    assert hamlet("monitor", files / "rules.count", "--input", files / "events.csv", *live).exit_code == 0
    parts = sorted((files / "out" / "count=rules").glob("part-*.json"))
    assert rows_in("".join(each.read_text(encoding="utf-8") for each in parts)) == expected


def test_what_it_has_not_is_said(files: Path, hamlet: Hamlet) -> None:
    found = hamlet("monitor", files / "rules.count", "--input", files / "events.csv", "--report", files / "r.html")
    assert found.exit_code == 2
    assert "--report is not given for a count" in found.stderr
    assert "hamlet monitor runs" in hamlet("run", files / "rules.count", "--input", files / "events.csv").stderr


@pytest.mark.spark
@pytest.mark.parametrize("slices", [1, 3])
def test_it_runs_on_spark(spark: SparkSession, files: Path, hamlet: Hamlet, slices: int) -> None:
    out = files / "out"
    words = ("--input", files / "in", "--output", out, "--output-format", "json", "--partitions", slices)
    found = hamlet("submit", files / "rules.count", *words)
    assert found.exit_code == 0, found.stderr
    rows = [row for each in (out / "count=rules").iterdir() for row in rows_in(each.read_text(encoding="utf-8"))]
    rows.sort(key=lambda row: (row["time"], row["type"]))
    assert rows == COUNTS.oracle(COUNTS.read(TEXT).tree, events_of(1))
    assert len(list((out / "count=rules").iterdir())) == slices
    followed = hamlet("submit", files / "rules.count", *words, "--stream", "--checkpoint", files / "c")
    assert followed.exit_code == 2
