"""RESULTS.md from the JSON files of all runs: for each machine and case the newest measurement."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.cases import CASES

RESULTS = Path(__file__).resolve().parent / "results"

HEAD = """# Results

Written by `python -m bench report` from the files in `bench/results/`; change nothing here by hand. Every case ran in
processes of its own, its answer was checked before its time counted, and all repeats are kept in the JSON files.
Times are medians, with the fastest and the slowest repeat in parentheses.
"""

LIMITATIONS = """## Limitations

- One machine and small: ratios within one case carry over to other machines better than seconds do.
- Times of the cases in process include reading and decoding the Parquet file, unless the title says "in memory".
- DuckDB's `GROUP BY` counts events and not trends. It stands for the cost of touching the data once, and answers
  another question.
- What is compared in one case runs in one process, over one table: the peak memory of each holds that table and what
  the other has left behind.
- Spark cases include the start of the JVM and of the Python workers, as a user of the command line waits for them.
  Their memory is the sum of the resident memory of all processes, where shared pages count once per process.
- The brute-force oracle can only check slices of a few events of the real streams. Over a whole stream one query of
  each workload is checked against a recurrence in plain Python, and all against another execution of the same kernel
  (other batches, or Spark).
"""


def newest(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """For each machine (file name without its number) and case the newest result, with its run's header."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*/*.json"))]
    for run in sorted(runs, key=lambda one: str(one["started"])):
        machine = run["machine"]
        name = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB"
        for case in run["cases"]:
            if "measured" in case or "timed_out_in" in case:
                found.setdefault(name, {})[case["case"]] = case | {
                    key: run[key] for key in ("started", "commit", "changed", "machine")
                }
    return found


def seconds(values: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def rows_of(case: dict[str, Any]) -> Iterator[str]:
    """One table row per contender."""
    if "timed_out_in" in case:
        yield f"| {case['case']} | | | | | more than {case['timeout_s']:g} s | | |"
        return
    facts = case["facts"]
    ours = f"{facts['queries']} | {facts['rows']:,} | {facts['largest_count_bits']:,}"
    for name, values in case["measured"].items():
        memory = f"{values['peak_rss_bytes'] / 2**20:,.0f}"
        sizes = ours if values["same_question"] else "- | - | -"
        events = values.get("events", facts["events"])
        yield (
            f"| {case['case']}: {name} | {events:,} | {sizes} | {seconds(values['wall_s'])} "
            f"| {values['events_per_s']:,.0f} | {memory} |"
        )


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
        yield f"\n**{case['case']}**: {case['title']}."
        for name, ratio in case.get("ratios", {}).items():
            yield f"Ratio of medians {name}: **{ratio:.2f}**."
        for name, ratio in case.get("memory_ratios", {}).items():
            yield f"Ratio of peak memory {name}: **{ratio:.3f}**."
        for name, values in case.get("measured", {}).items():
            if "ns_per_pair" in values:
                yield f"{name}: **{values['ns_per_pair']:.3f}** ns per pair of events."
        for check in case.get("checks", []):
            yield f"Checked: {check}."
        versions = ", ".join(f"{name} {version}" for name, version in case["machine"]["packages"].items())
        commit = (case["commit"] or "no commit")[:12] + (" with changes" if case["changed"] else "")
        yield f"Measured {case['started'][:10]} at {commit}, Python {case['machine']['python']}, {versions}."
    yield ""


def write_report(folder: Path, output: Path) -> None:
    """Write the page; an empty folder gives a page without tables."""
    lines = [HEAD]
    for machine, cases in newest(folder).items():
        lines += section(machine, cases)
    output.write_text("\n".join([*lines, LIMITATIONS]), encoding="utf-8")
