"""RESULTS.md from the files of results: for each class of machine the newest measurement of every case."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cases import CASES
from bench.plots import Drawn
from bench.store import by_machine

FEW = 6  # points of a case, up to which all of them are in the tables; curves have figures
SAME_MEMORY = 0.05  # a difference in peak memory that is not worth a line

HEAD = """# Results

Written by `python -m bench report` from the files in `bench/results/`; change nothing here by hand. Every case ran in
processes of its own, and its answer was checked before its time counted. All repeats are kept in those files, of which
there is one for each class of machine; what a newer measurement has replaced is in the history of the repository.
Times are medians, with the fastest and the slowest repeat in parentheses; ratios have the interval of 95 % of resamples
of the repeats.
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


def median_and_range(values: list[float]) -> str:
    """Seconds, as in ``0.472 (0.464-0.596)``."""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def _shown(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The points that have rows in the table: all of a few, else the first and the last that were measured."""
    found = [point for point in case["points"] if "skipped" not in point]
    return found if len(found) <= FEW else [found[0], found[-1]]


def rows_of(case: Mapping[str, Any]) -> Iterator[str]:
    """One table row per contender, of the points that are shown."""
    for point in _shown(case):
        name = " ".join(filter(None, (case["case"], point["point"])))
        if "timed_out_in" in point:
            yield f"| {name} | | | | | more than {point['timeout_s']:g} s | | |"
        else:
            yield from _rows_of_point(name, point)


def _rows_of_point(name: str, point: Mapping[str, Any]) -> Iterator[str]:
    facts = point["facts"]
    ours = " | ".join(f"{facts[key]:,}" if key in facts else "-" for key in ("queries", "rows", "largest_count_bits"))
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


def _notes(case: Mapping[str, Any]) -> Iterator[str]:
    """The ratios of each point, or of many points their medians and ranges; what else was measured where shown."""
    points = case["points"]
    if len(points) > FEW:
        yield f"{len(points)} points, of which the table has the first and the last."
        yield from _ratios_over(points)
    for point in _shown(case):
        where = f"{point['point']}: " if point["point"] else ""
        if len(points) <= FEW and (ratios := "; ".join(_ratios_of(point))):
            yield f"{where}Ratios of medians: {ratios}."
        for name, values in point.get("measured", {}).items():
            if "ns_per_pair" in values:
                yield f"{where}{name}: **{values['ns_per_pair']:.3f}** ns per pair of events."
            metrics = {metric: statistics.median(each) for metric, each in values.get("metrics", {}).items()}
            if metrics:
                yield f"{where}{name}: " + ", ".join(f"{metric} {each:,.4g}" for metric, each in metrics.items()) + "."
    measured = [item for point in _shown(case) for item in point.get("measured", {}).items()]
    for question in dict.fromkeys(values["question"] for _, values in measured if values.get("question")):
        names = dict.fromkeys(name for name, values in measured if values.get("question") == question)
        yield f"Another question is answered by {', '.join(names)}: {question}."


def _ratios_of(point: Mapping[str, Any]) -> Iterator[str]:
    for name, ratio in point.get("ratios", {}).items():
        between = f" ({ratio['low']:.2f}-{ratio['high']:.2f})" if "low" in ratio else ""
        yield f"{name} **{ratio['ratio']:.3g}**{between}"
    for name, ratio in point.get("throughput_ratios", {}).items():
        yield f"events per second {name} **{ratio:.3g}**"
    for name, ratio in point.get("memory_ratios", {}).items():
        if abs(ratio - 1) > SAME_MEMORY:
            yield f"peak memory {name} **{ratio:.3f}**"


def _ratios_over(points: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    found: dict[str, list[float]] = {}
    for point in points:
        for name, ratio in point.get("ratios", {}).items():
            found.setdefault(name, []).append(ratio["ratio"])
    for name, each in found.items():
        between = f"{min(each):.3g} to {max(each):.3g} over {len(each)} points"
        yield f"Ratio of medians {name}: **{statistics.median(each):.3g}** ({between})."


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
        yield from _notes(case)
        checks = dict.fromkeys(check for point in _shown(case) for check in point.get("checks", []))
        yield f"Checked: {'; '.join(checks)}."
        versions = ", ".join(f"{name} {version}" for name, version in case["machine"]["packages"].items())
        commit = (case["commit"] or "no commit")[:12] + (" with changes" if case["changed"] else "")
        yield f"Measured {case['started'][:10]} at {commit}, Python {case['machine']['python']}, {versions}."
    yield ""


def write_report(folder: Path, output: Path, drawn: Sequence[Drawn] = ()) -> None:
    """Write the page; an empty folder gives a page without tables."""
    lines = [HEAD]
    for figure in drawn:
        lines += [f"![{figure.title}]({os.path.relpath(figure.file, output.parent)})", "", f"*{figure.caption}*", ""]
    for machine, cases in by_machine(folder).items():
        lines += section(machine, cases)
    output.write_text("\n".join([*lines, LIMITATIONS]), encoding="utf-8")
