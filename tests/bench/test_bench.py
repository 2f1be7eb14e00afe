"""The harness keeps its promises: wrong answers stop it, repeats are kept, the latest result of a case is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from bench import __main__ as command
from bench import answers, harness, machine, range_costs, worker
from bench.cases import CASES
from bench.compare import compare_files
from bench.plots import write_plots
from bench.ratios import ratio_of
from bench.report import FLOOR, PARTS, SHORT, write_report
from bench.store import keep, read
from bench.subject import Case, Contender
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
    assert turns == ["ours", "theirs", "theirs", "ours"] * 2  # the first round warms up
    assert [len(values["wall_s"]) for values in measured.values()] == [3, 3]
    assert measured["ours"]["peak_rss_bytes"] > 0


def test_metrics_of_every_repeat_are_kept() -> None:
    values = iter(range(10))
    contender = Contender(lambda: next(values), None, metrics=lambda result: {"latency_s": float(result)})
    assert worker.measure({"ours": contender}, 3, "")["ours"]["metrics"] == {"latency_s": [1.0, 2.0, 3.0]}


def test_a_check_that_fails_is_a_wrong_answer() -> None:
    def check(result: object) -> None:
        raise answers.WrongAnswer(f"{result} is wrong")

    with pytest.raises(answers.WrongAnswer, match="7 is wrong"):
        worker.measure({"ours": Contender(lambda: 7, None, check=check)}, 1, "")


def test_the_digest_of_tables_sees_every_exact_value_in_any_order() -> None:
    table = pa.table({"k": [1, 2, None], "name": ["x", "y", None], "count": [5, 6, 7], "average": [0.1, 0.2, 0.3]})
    expected = answers.digest({"q1": table})
    assert answers.digest({"q1": table.take([2, 0, 1])}) == expected
    assert answers.digest({"q1": table.set_column(3, "average", pa.array([0.5] * 3))}) == expected
    others = [
        {"q2": table},
        {"q1": table.slice(1)},
        {"q1": table.set_column(2, "count", pa.array([5, 7, 6]))},
        {"q1": table.set_column(1, "name", pa.array(["x", "y", ""]))},
        {"q1": table.set_column(0, "k", pa.array([2, 1, None]))},
    ]
    assert len({expected, *map(answers.digest, others)}) == 6


def test_the_ratio_of_medians_has_an_interval() -> None:
    found = ratio_of([2.0, 2.2, 1.8, 2.1, 1.9], [1.0, 1.1, 0.9, 1.05, 0.95])
    assert found["ratio"] == 2.0
    assert found["low"] == pytest.approx(2.0) == found["high"]  # the noise of each pair cancels
    assert ratio_of([1.0, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0])["low"] < 2.0


def test_a_repeat_with_other_rows_is_a_wrong_answer() -> None:
    contenders = {"ours": Contender(lambda: None, lambda _: [row(7, 4, 1.0)])}
    with pytest.raises(answers.WrongAnswer):
        worker.measure(contenders, 1, answers.digest([row(7, 3, 1.0)]))


def fake_phase(name: str, case: str, timeout_s: float, *options: str) -> dict[str, Any]:
    if case == "stock":
        raise harness.Failed(worker.WRONG, "count of q1 differs")
    if case == "smarthome":
        raise harness.TimedOut
    if name == "verify":
        facts = {"events": 100, "queries": 1, "rows": 2, "largest_count_bits": 9}
        return {"checks": ["it is right"], "facts": facts, "digest": "d", "contenders": ["hamlet", "slow"]}
    assert "d" in options
    if "slow" in options:
        raise harness.TimedOut
    values = {"wall_s": [0.2, 0.1, 0.4], "peak_rss_bytes": 2**20, "same_question": True, "metrics": {"x_s": [1, 3, 2]}}
    return {"measured": {"hamlet": values}}


def test_the_latest_result_of_each_case_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "phase", fake_phase)
    earlier = tmp_path / "earlier.txt"
    for cases in (["taxi"], ["--quick", "taxi"], ["taxi", "smarthome"]):
        result = CliRunner().invoke(command.main, ["run", *cases, "--results", str(tmp_path), "--note", cases[-1]])
        assert result.exit_code == 0, result.output
        (file,) = tmp_path.glob("*.json")
        if cases[0] == "--quick":
            assert [(case["quick"], case["note"]) for case in read(file)] == [(False, "taxi")]
        elif len(cases) == 1:
            earlier.write_text(file.read_text())
    kept = read(file)
    assert [(case["case"], case["note"]) for case in kept] == [("taxi", "smarthome"), ("smarthome", "smarthome")]
    assert kept[0]["points"][0]["measured"]["hamlet"]["wall_s"] == [0.2, 0.1, 0.4]
    assert all({"machine", "commit", "started"} <= set(case) for case in kept)

    write_report(tmp_path, tmp_path / "RESULTS.md")
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| taxi | hamlet | - | 0.2 | 500 | 1 | 100 | 1 | 2 | 9 |" in page
    assert "| smarthome |  | more than 3600 s | - |" in page
    assert "- taxi, hamlet: x_s 2" in page
    assert page.count("- it is right: taxi\n") == 1
    assert "(smarthome): taxi, smarthome" in page  # the note, once for all that were measured together
    assert "## Limitations" in page
    lines = list(compare_files(earlier, file))
    assert "| taxi hamlet | 0.2000 | 0.2000 | 1.000 | 1.000-1.000 |" in lines


def test_a_contender_that_runs_out_of_time_is_a_result_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "phase", fake_phase)
    points = {"small": None, "large": None}
    case = Case("a curve", points, points, (1, 1), apart=True, timeout_s=(60, 6))  # type: ignore[arg-type]
    monkeypatch.setitem(CASES, "scan", case)
    result = CliRunner().invoke(command.main, ["run", "scan", "--quick", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (file,) = tmp_path.glob("*.json")
    small, large = read(file)[0]["points"]
    assert small["measured"]["slow"] == {"timed_out_s": 6}
    assert large["measured"]["slow"] == {"timed_out_before": True}
    write_report(tmp_path, tmp_path / "RESULTS.md")
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| scan (small sizes) | hamlet | slow more than 6 s at small | 0.2 |" in page


def test_the_page_has_a_line_for_a_case_and_its_parts(tmp_path: Path) -> None:
    def point(name: str, seconds: float, floor: float) -> dict[str, Any]:
        ours: dict[str, Any] = {"wall_s": [seconds], "events_per_s": 8, "peak_rss_bytes": 2**21, "metrics": {}}
        parts = (0.01, 0.02, 0.03, 0.5, 0.25)
        metrics = {part: [each] for part, each in zip(PARTS, parts, strict=True)}
        return {
            "point": name,
            "checks": [f"{len(name)} rows equal 2^n - 1"],
            "facts": {"events": 1_000, "queries": 50, "rows": len(name)},
            "measured": {"hamlet": ours | {"metrics": metrics}, FLOOR: ours | {"wall_s": [floor], "question": "less"}},
            "ratios": {f"hamlet / {FLOOR}": {"ratio": seconds / floor, "low": 0.5, "high": 3.0}},
            "memory_ratios": {f"hamlet / {FLOOR}": 1.2},
        }

    def case(name: str, *points: dict[str, Any]) -> dict[str, Any]:
        return {"case": name, "title": "a title", "quick": False, "points": list(points)}

    cases = [case("scan", point("ab", 1.0, 2.0), point("abcd", 3.0, 2.0)), case("sliding", point("", 1.0, 2.0))]
    header = {"started": "2026-01-01", "note": "", "commit": None, "changed": False, "machine": machine.description()}
    keep(tmp_path, header, [*cases, case("a case of before", point("", 1.0, 1.0))])
    write_report(tmp_path, tmp_path / "RESULTS.md")
    page = (tmp_path / "RESULTS.md").read_text()
    assert f"| scan | hamlet | {SHORT[FLOOR]} **1** (0.5 to 1.5) | 1 to 3 | 8 | 2 | 1,000 | 50 | 2 to 4 | - |" in page
    assert f"| sliding | hamlet | {SHORT[FLOOR]} **0.5** (0.5 to 3); {SHORT[FLOOR]}, memory **1.2** | 1 | 8 |" in page
    assert "| sliding | 10.0 | 20.0 | 30.0 | 500.0 | 250.0 | 1000.0 | 2000.0 | 0.25 |" in page
    assert "- N rows equal 2^n - 1: sliding, scan\n" in page
    assert f"- less: {SHORT[FLOOR]}\n" in page
    assert "a case of before" not in page


def test_a_figure_is_drawn_from_the_files(tmp_path: Path) -> None:
    def point(rate: int) -> dict[str, Any]:
        values = {"wall_s": [0.1], "events_per_s": rate * 10, "peak_rss_bytes": 2**20, "metrics": {"latency_s": [0.1]}}
        return {"point": f"{rate}", "facts": {"events_per_min": rate, "queries": 25}, "measured": {"hamlet": values}}

    case = {"case": "ridesharing", "title": "", "quick": False, "points": [point(10_000), point(20_000)]}
    keep(tmp_path, {"started": "2026", "machine": machine.description()}, [case])
    (drawn,) = write_plots(tmp_path, tmp_path / "figures")
    assert "Figures 8 and 9" in drawn.title
    assert "<svg" in drawn.file.read_text()
    assert "The paper:" in drawn.caption


def test_a_wrong_answer_exits_with_1_before_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "phase", fake_phase)
    result = CliRunner().invoke(command.main, ["run", "stock", "--results", str(tmp_path)])
    assert result.exit_code == 1
    assert "WRONG ANSWER" in result.output
    assert "wall_s" not in result.output
    assert not list(tmp_path.glob("*.json"))


def test_the_cases_are_listed() -> None:
    for arguments in (["list"], ["run", "--list"]):
        output = CliRunner().invoke(command.main, arguments).output
        assert all(name in output for name in CASES)


def test_the_micro_benchmarks_have_right_answers() -> None:
    command_line = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--benchmark-disable",
        "-p",
        "no:cacheprovider",
        "bench/micro",
    ]
    process = subprocess.run(command_line, cwd=machine.ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout


def test_what_estimates_for_time_ranges_rest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of both ranges is probed and folded; processor time goes on."""
    monkeypatch.setattr(range_costs, "ROUNDS", 1)
    before = range_costs.processor_seconds()
    seconds, entries = range_costs.in_task(20_000, 12, "WITHIN 5 min SLIDE 1 min")
    assert seconds > 0
    assert entries == 2 * 12 * sum(size**2 + 2 * 5 * size for size in (3, 5, 3))
    assert range_costs.processor_seconds() >= before
