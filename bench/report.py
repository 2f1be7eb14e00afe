"""RESULTS.md from the JSON files of all runs: for each machine and case the newest measurement."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.cases import CASES
from bench.compare import read
from bench.machine import title
from bench.plots import Drawn

RESULTS = Path(__file__).resolve().parent / "results"

HEAD = """# Results

Written by `python -m bench report` from the files in `bench/results/`; change nothing here by hand. Every case ran in
processes of its own, its answer was checked before its time counted, and all repeats are kept in the JSON files.
Times are medians, with the fastest and the slowest repeat in parentheses.
"""

LIMITATIONS = """## Limitations

- One machine and small: ratios within one case carry over to other machines better than seconds do.
- Times of Spark jobs, of Flink and of cases whose title names a file include reading and decoding it. All else runs
  over an Arrow table in memory.
- DuckDB's `GROUP BY` counts events and not trends. It stands for the cost of touching the data once, and answers
  another question.
- What is compared at one point runs in one process, over one table: the peak memory of each holds that table and what
  the other has left behind. The curves of figures 8 to 10, Spark beside the hand-written programme or the floor, Flink
  and DuckDB's recursion are the exception: there each has a process of its own.
- The cases `taxi-spark`, `stock-spark`, `smarthome-spark` and `stream-rate` include the start of the JVM and of the
  Python workers, as a user of the command line waits for them; so do Flink's times. The other Spark jobs run in a
  session that is there.
- The memory of Spark, Flink and other child processes is the sum of the resident memory of all of them, sampled ten
  times a second, where shared pages count once per process.
- The baselines (GRETA, two-step, SHARON) count in floating point, and what names events by type and local predicate and
  cuts the stream by window and partition is not in their time; it is in ours.
- Latency is that of a replay: a batch is handed over when its last event would arrive, or when the batch before is
  done. Events come in batches of one second of stream time. Only `stream-rate` runs in real time; `latency` times the
  call that closes a window.
- Peak memory is that of the process, the loaded stream and the interpreter among it; the figures show what came on top
  of that during the run (what the allocator had kept from the run before is not in it).
- The rates of real streams are reached by dividing their times by a constant, as in the paper.
- The brute-force oracle can only check slices of a few events. Over all that is measured of a real stream, one
  query of each of `taxi`, `stock` and `smarthome` is checked against a recurrence in plain Python, all queries of
  `taxi-rates` and `smarthome-rates` against GRETA, and every workload against another execution of the same kernel
  (other batches, another policy, or Spark).
"""


def newest(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """For each machine and case the newest full result (a quick one where there is no other), with its run's header."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    runs = [read(file) for file in sorted(folder.glob("*/*.json"))]
    for run in sorted(runs, key=lambda one: str(one["started"])):
        name = title(run["machine"])
        for case in run["cases"]:
            known = found.setdefault(name, {}).get(case["case"])
            if all("skipped" in point for point in case["points"]) or (known and case["quick"] and not known["quick"]):
                continue
            header = {key: run.get(key, "") for key in ("started", "note", "commit", "changed", "machine")}
            found[name][case["case"]] = case | header
    return found


def median_and_range(values: list[float]) -> str:
    """Seconds, as in ``0.472 (0.464-0.596)``."""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def rows_of(case: dict[str, Any]) -> Iterator[str]:
    """One table row per point and contender."""
    for point in case["points"]:
        name = " ".join(filter(None, (case["case"], point["point"])))
        if "timed_out_in" in point:
            yield f"| {name} | | | | | more than {point['timeout_s']:g} s | | |"
        elif "skipped" not in point:
            yield from _rows_of_point(name, point)


def _rows_of_point(name: str, point: dict[str, Any]) -> Iterator[str]:
    facts = point["facts"]
    ours = f"{facts['queries']} | {facts['rows']:,} | {facts['largest_count_bits']:,}"
    for contender, values in point["measured"].items():
        if "wall_s" not in values:
            limit = f"more than {values['timed_out_s']:g} s" if "timed_out_s" in values else "not tried any more"
            yield f"| {name}: {contender} | {facts['events']:,} | {ours} | {limit} | | |"
            continue
        memory = f"{values['peak_rss_bytes'] / 2**20:,.0f}"
        sizes = ours if values["same_question"] else "- | - | -"
        events = values.get("events", facts["events"])
        yield (
            f"| {name}: {contender} | {events:,} | {sizes} | {median_and_range(values['wall_s'])} "
            f"| {values['events_per_s']:,.0f} | {memory} |"
        )


def _notes_of_point(point: dict[str, Any]) -> Iterator[str]:
    where = f"{point['point']}: " if point["point"] else ""
    for name, ratio in point.get("ratios", {}).items():
        between = f" (95 % of resamples {ratio['low']:.2f}-{ratio['high']:.2f})" if "low" in ratio else ""
        yield f"{where}Ratio of medians {name}: **{ratio['ratio']:.3g}**{between}."
    for name, ratio in point.get("throughput_ratios", {}).items():
        yield f"{where}Ratio of events per second {name}: **{ratio:.3g}**."
    for name, ratio in point.get("memory_ratios", {}).items():
        yield f"{where}Ratio of peak memory {name}: **{ratio:.3f}**."
    for name, values in point.get("measured", {}).items():
        if "ns_per_pair" in values:
            yield f"{where}{name}: **{values['ns_per_pair']:.3f}** ns per pair of events."
        metrics = {metric: statistics.median(each) for metric, each in values.get("metrics", {}).items()}
        if metrics:
            yield f"{where}{name}: " + ", ".join(f"{metric} {value:,.4g}" for metric, value in metrics.items()) + "."
        if values.get("question"):
            yield f"{where}{name} answers another question: {values['question']}."


def section(machine: str, cases: dict[str, dict[str, Any]]) -> Iterator[str]:
    """All of one machine: the table, the ratios, what was checked, and where it came from."""
    order = [name for name in CASES if name in cases] + [name for name in cases if name not in CASES]
    cases = {name: cases[name] for name in order}
    yield f"## {machine}\n"
    yield "| case | events | queries | rows | largest count [bits] | wall time [s] | events/s | peak memory [MiB] |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for case in cases.values():
        yield from rows_of(case)
    for case in cases.values():
        yield f"\n**{case['case']}**: {case['title']}." + (" **Small sizes (--quick).**" if case["quick"] else "")
        if case["note"]:
            yield f"Note: {case['note']}."
        for point in case["points"]:
            yield from _notes_of_point(point)
        for check in dict.fromkeys(check for point in case["points"] for check in point.get("checks", [])):
            yield f"Checked: {check}."
        versions = ", ".join(f"{name} {version}" for name, version in case["machine"]["packages"].items())
        commit = (case["commit"] or "no commit")[:12] + (" with changes" if case["changed"] else "")
        yield f"Measured {case['started'][:10]} at {commit}, Python {case['machine']['python']}, {versions}."
    yield ""


def write_report(folder: Path, output: Path, drawn: Sequence[Drawn] = ()) -> None:
    """Write the page; an empty folder gives a page without tables."""
    lines = [HEAD]
    for figure in drawn:
        lines += [f"![{figure.title}]({os.path.relpath(figure.file, output.parent)})", "", f"*{figure.caption}*", ""]
    for machine, cases in newest(folder).items():
        lines += section(machine, cases)
    output.write_text("\n".join([*lines, LIMITATIONS]), encoding="utf-8")
