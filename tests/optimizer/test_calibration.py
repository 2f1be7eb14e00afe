"""Constants of the model `measured`: fitted, kept, read again, and left alone where they cannot be of this machine."""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hamlet
from hamlet.cli import cli, main
from hamlet.engine import calibrate as measure
from hamlet.engine.sharing import RUNG, Sharing
from hamlet.errors import CalibrationWarning, OptionError, OutputError
from hamlet.planner import calibration
from optimizer.benefit import MEASURED, PAPER, Costs

COSTS = {rung: Costs(each.reads, 1.5, 2.5, 3.5, 4.5, 5.5) for rung, each in MEASURED.items()}
MISFIT = dict.fromkeys(COSTS, 0.25)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the calibration of a test would be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hamlet" / "calibration.json"


def test_shipped_until_calibrated(file: Path) -> None:
    found = calibration.constants()
    assert (found.origin, found.costs, found.path) == ("shipped", MEASURED, None)
    assert "hamlet calibrate" in found.text


def test_kept_and_read_again(file: Path) -> None:
    kept = calibration.store(COSTS, MISFIT)
    found = calibration.constants()
    assert found == kept
    assert (found.origin, found.path, found.costs, found.misfit) == ("calibrated", file, COSTS, MISFIT)
    assert found.measured_at is not None
    assert abs(datetime.datetime.now(datetime.UTC) - found.measured_at) < datetime.timedelta(minutes=5)
    assert f"{found.measured_at:%Y-%m-%d}" in found.text
    assert str(file) in found.text
    assert [each.name for each in file.parent.iterdir()] == ["calibration.json"]  # nothing is left beside it
    assert calibration.forget()
    assert not calibration.forget()
    assert calibration.constants().origin == "shipped"


def test_the_paper_needs_no_file(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("damaged")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = calibration.constants("paper")
    assert found.costs == dict.fromkeys(MEASURED, PAPER)
    with pytest.raises(OptionError, match="'measured' or 'paper'"):
        calibration.constants("guessed")


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        document = json.loads(text)
        changed = change(document)
        return json.dumps(document if changed is None else changed)

    return edit


def set_price(value: Any) -> Callable[[str], str]:
    return edited(lambda document: document["costs"]["indexed"].update(event=value))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: "", "damaged"),
        (lambda text: "[" * 100_000, "damaged"),
        (edited(lambda document: [document]), "another version"),
        (edited(lambda document: document.update(format=99)), "another version"),
        (edited(lambda document: document.update(hamlet="0.0.1")), "hamlet '0.0.1'"),
        (edited(lambda document: document.update(processor="6502")), "processor '6502'"),
        (edited(lambda document: document["costs"].pop("indexed") and None), "indexed"),
        (edited(lambda document: document.update(costs=None)), "damaged"),
        (edited(lambda document: document.update(measured_at="yesterday")), "yesterday"),
        (edited(lambda document: document["costs"]["indexed"].update(reads=["one"])), "damaged"),
        (set_price(-1), "not negative"),
        (set_price(float("nan")), "not negative"),
        (set_price("4"), "no number"),
        (set_price(True), "no number"),
    ],
)
def test_what_cannot_be_used_is_said_and_not_used(file: Path, damage: Callable[[str], str], reason: str) -> None:
    calibration.store(COSTS, MISFIT)
    file.write_text(damage(file.read_text()))
    with pytest.warns(CalibrationWarning, match="hamlet calibrate") as caught:
        found = calibration.constants()
    assert found == calibration.shipped()
    assert reason in str(caught[0].message)
    assert str(file) in str(caught[0].message)


def test_a_file_that_cannot_be_read_or_written(file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.warns(CalibrationWarning, match="not used"):
        assert calibration.constants().origin == "shipped"
    with pytest.raises(OutputError, match="cannot keep"):
        calibration.store(COSTS, MISFIT)
    assert [each.name for each in file.parent.iterdir()] == ["calibration.json"]
    with pytest.raises(OutputError, match="cannot remove"):
        calibration.forget()


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    for given in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert calibration.path() == Path("/home/me/.cache/hamlet/calibration.json")
    monkeypatch.setattr("sys.platform", "darwin")
    assert calibration.path() == Path("/home/me/Library/Caches/hamlet/calibration.json")


def test_the_engine_decides_by_them(file: Path) -> None:
    """Read when an engine compiles; a damaged file is a warning and stops nobody."""
    calibration.store(COSTS, MISFIT)
    assert Sharing().costs == COSTS[RUNG]
    assert Sharing(model="paper").costs == PAPER
    file.write_text("{")
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"))
    with pytest.warns(CalibrationWarning, match="damaged"):
        engine.push([{"time": 1, "type": "A"}, {"time": 2, "type": "B"}])
    assert [row["count"] for row in engine.close()] == [1]


# ------------------------------------------------------------------------------------------------------- measuring


def test_the_fit_finds_the_prices_behind_the_times() -> None:
    rng = np.random.default_rng(3)
    prices = {"coefficient": 5.0, "application": 40.0, "unused": 0.0, "common": 700.0}
    cases = []
    for _ in range(30):
        counts = {name: float(rng.integers(1, 1000)) for name in prices}
        cases.append(measure.Case(None, None, "static", counts))  # type: ignore[arg-type]
    times = [sum(price * case.counts[name] for name, price in prices.items()) for case in cases]
    found, misfit = measure.fitted(cases, times)
    assert found == pytest.approx(prices, abs=1e-6)
    assert misfit < 1e-9


def test_no_price_is_negative() -> None:
    """A second column that could only explain the times with a negative price is left out."""
    counts = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 3.0}]
    cases = [measure.Case(None, None, "never", each) for each in counts]  # type: ignore[arg-type]
    found, _ = measure.fitted(cases, [30.0, 20.0, 10.0])
    assert found["b"] == 0
    assert found["a"] > 0


def test_the_engine_is_measured(file: Path) -> None:
    """Short runs, so nothing is said of the prices but that they are some; what is replaced is no concern."""
    file.parent.mkdir()
    file.write_text("damaged")
    done: list[tuple[int, int]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure.calibrate(lambda *step: done.append(step), repeats=1, events=200)
    assert found.costs.keys() == MEASURED.keys() == found.misfit.keys()
    for rung, costs in found.costs.items():
        assert costs.reads == MEASURED[rung].reads
        assert costs.event + costs.burst > 0
    assert [step[0] for step in done] == list(range(1, done[0][1] + 1))


def test_the_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measure.Calibration(COSTS, MISFIT)
    monkeypatch.setattr("hamlet.cli.calibrate.calibrate", lambda progress: measured)
    runner = CliRunner()
    shown = runner.invoke(cli, ["calibrate", "--dry-run"])
    assert shown.exit_code == 0
    assert "burst-grained" in shown.stdout
    assert "25%" in shown.stdout
    assert not file.exists()
    quiet = runner.invoke(cli, ["calibrate", "-q"])
    assert (quiet.exit_code, quiet.output) == (0, "")
    assert calibration.constants().costs == COSTS
    assert "removed" in runner.invoke(cli, ["calibrate", "--reset"]).output
    assert "there was none" in runner.invoke(cli, ["calibrate", "--reset"]).output


def test_the_command_line_says_warnings_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning

    def warn(*_: object, **__: object) -> int:
        warnings.warn("mind the gap", CalibrationWarning, stacklevel=1)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "main", warn)
        assert main([]) == 0
    assert capsys.readouterr().err == "warning: mind the gap\n"
    assert warnings.showwarning is before
