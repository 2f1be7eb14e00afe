"""The harness keeps its promises: wrong answers stop it, repeats are kept, results are never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench import answers, worker
from bench.cases import CASES
from bench.report import write_report
from bench.subject import Contender
from hamlet.language.parser import parse

WORKLOAD = parse("q1: RETURN T.zone, COUNT(*), AVG(T.fare) AS fare PATTERN Trip T+ GROUP-BY T.zone WITHIN 1 min")


def row(zone: int | None, count: int, fare: float | None, start: int = 0) -> dict[str, Any]:
    return {"query": "q1", "window_start": start, "window_end": start + 60, "zone": zone, "count": count, "fare": fare}


def test_rows_agree_in_any_order_and_within_the_bound_of_doubles() -> None:
    first = [row(None, 2**5000, 1.5), row(7, 3, None)]
    second = [row(7, 3, None), row(None, 2**5000, 1.5 * (1 + 1e-12))]
    answers.compare(WORKLOAD, first, second, ("one", "two"))
    assert answers.digest(first) == answers.digest(second)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([row(7, 2**5000 + 1, 1.0)], "5001 bits"),
        ([row(7, 2**5000, 1.1)], "fare"),
        ([row(7, 2**5000, None)], "fare"),
        ([row(8, 2**5000, 1.0)], "two has none"),
        ([], "two has none"),
        ([row(7, 2**5000, 1.0), row(8, 1, 1.0)], "two has a row"),
    ],
)
def test_a_difference_is_named(second: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(answers.WrongAnswer, match=message):
        answers.compare(WORKLOAD, [row(7, 2**5000, 1.0)], second, ("one", "two"))


def test_the_digest_sees_every_exact_value() -> None:
    digests = {answers.digest([r]) for r in (row(7, 3, 1.0), row(7, 4, 1.0), row(8, 3, 1.0), row(7, 3, 1.0, start=60))}
    assert len(digests) == 4
    assert answers.digest([row(7, 3, 1.0)]) != answers.digest([row(7, 3, 1.0)] * 2)


def test_the_largest_count() -> None:
    assert answers.largest_count_bits(WORKLOAD, [row(7, 2**100, 1.0), row(1 << 500, 5, 1.0)]) == 101
    assert answers.largest_count_bits(WORKLOAD, []) == 0


def test_a_logarithm_tells_the_largest_count_too() -> None:
    workload = parse("q1: RETURN LOG2(COUNT(*)) PATTERN Trip T+ WITHIN 1 min")
    rows = [{"query": "q1", "window_start": 0, "window_end": 60, "log2_count": value} for value in (99.5, 3.0)]
    assert answers.largest_count_bits(workload, rows) == 100


@pytest.mark.parametrize("repeated", [True, False])
def test_the_recurrence(repeated: bool) -> None:
    events = pa.table({"time": [0, 1, 2, 3, 4, 60], "type": list("ABBABB"), "zone": [7] * 6})
    recurrence = answers.Recurrence("q1", "A", "B", repeated, 60)
    expected = {True: 8, False: 4}[repeated]
    assert recurrence.counts(events, "zone") == {(7, 0): expected}
    right = {"query": "q1", "window_start": 0, "window_end": 60, "zone": 7, "count": expected}
    assert recurrence.check(events, "zone", [right]) == 1
    for wrong in ([], [right | {"count": expected + 1}], [right, right | {"window_start": 60}]):
        with pytest.raises(answers.WrongAnswer):
            recurrence.check(events, "zone", wrong)


def test_slices_are_short_and_of_one_key_every_other_time() -> None:
    zones = [place % 3 for place in range(100)]
    events = pa.table({"time": list(range(100)), "type": ["A"] * 100, "zone": zones})
    slices = list(answers.small_slices(events, "zone", slices=6, length=10))
    assert [len(piece) for piece in slices] == [10] * 6
    assert [len(piece["zone"].unique()) for piece in slices] == [1, 3] * 3
    assert all(piece["time"].to_pylist() == sorted(piece["time"].to_pylist()) for piece in slices)


def test_every_repeat_is_kept_and_contenders_take_turns() -> None:
    turns: list[str] = []
    rows = [row(7, 3, 1.0)]
    contenders = {
        "ours": Contender(lambda: turns.append("ours"), lambda _: rows),
        "theirs": Contender(lambda: turns.append("theirs"), None),
    }
    measured = worker.measure(contenders, 3, answers.digest(rows))
    assert turns == ["ours", "theirs"] * 4  # the first round warms up
    assert [len(values["wall_s"]) for values in measured.values()] == [3, 3]
    assert measured["ours"]["peak_rss_bytes"] > 0
    assert list(worker.ratios(measured)) == ["ours / theirs"]


def test_a_repeat_with_other_rows_is_a_wrong_answer() -> None:
    contenders = {"ours": Contender(lambda: None, lambda _: [row(7, 4, 1.0)])}
    with pytest.raises(answers.WrongAnswer):
        worker.measure(contenders, 1, answers.digest([row(7, 3, 1.0)]))


def fake_phase(name: str, case: str, timeout_s: float, *options: str) -> dict[str, Any]:
    if case == "stock":
        raise command.Failed(worker.WRONG, "count of q1 differs")
    if case == "smarthome":
        raise command.TimedOut
    if name == "verify":
        facts = {"events": 100, "queries": 1, "rows": 2, "largest_count_bits": 9}
        return {"checks": ["it is right"], "facts": facts, "digest": "d"}
    assert "d" in options
    values = {"wall_s": [0.2, 0.1, 0.4], "peak_rss_bytes": 2**20, "same_question": True}
    return {"measured": {"hamlet": values}, "ratios": {}}


def test_results_are_kept_and_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "phase", fake_phase)
    for cases in (["taxi"], ["taxi", "smarthome"]):
        result = CliRunner().invoke(command.main, ["run", *cases, "--results", str(tmp_path)])
        assert result.exit_code == 0, result.output
    files = sorted(tmp_path.glob("*/*.json"))
    assert len(files) == 2
    runs = [json.loads(file.read_text()) for file in files]
    assert all(run["cases"][0]["measured"]["hamlet"]["wall_s"] == [0.2, 0.1, 0.4] for run in runs)
    assert all({"machine", "commit", "started"} <= set(run) for run in runs)

    write_report(tmp_path, tmp_path / "RESULTS.md")
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| taxi: hamlet | 100 | 1 | 2 | 9 | 0.200 (0.100-0.400) | 500 | 1 |" in page
    assert "more than 3600 s" in page
    assert "## Limitations" in page


def test_a_wrong_answer_exits_with_1_before_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "phase", fake_phase)
    result = CliRunner().invoke(command.main, ["run", "stock", "--results", str(tmp_path)])
    assert result.exit_code == 1
    assert "WRONG ANSWER" in result.output
    assert "wall_s" not in result.output
    assert not list(tmp_path.glob("*/*.json"))


def test_the_cases_are_listed() -> None:
    output = CliRunner().invoke(command.main, ["list"]).output
    assert all(name in output for name in CASES)
