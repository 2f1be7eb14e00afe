"""RESULTS.md from the files of results: for each class of machine the newest measurement of every case, in a line."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cases import CASES
from bench.cases.curves import COUNTED
from bench.plots import Drawn
from bench.store import by_machine

SAME_MEMORY = 0.05  # a difference in peak memory that is not worth a word
PARTS = {"parse_s": "parse", "plan_s": "plan", "columns_s": "columns", "kernel_s": "kernel", "deliver_s": "deliver"}
SHORT = {"duckdb group by": "G", "duckdb group by code": "D"}
FLOOR = "duckdb group by code"  # what the parts of a run are set against
NUMBER = re.compile(r"(?<![\w^])(?<!- )\d[\d,]*(?:\.\d+)?(?![\w^])")  # not those of LOG2 and 2^n - 1

HEAD = """# Results

Written by `python -m bench report` from the files in `bench/results/`; change nothing here by hand. Every case ran in
processes of its own, and its answer was checked before its time counted. All repeats are in those files, one for each
class of machine, which have the latest measurement of each case; older ones are in the history of the repository.

A line is a case; its time is that of what stands under "timed", and the ratios are to the other contenders: below 1,
what is timed took less. Times and ratios are medians; the interval of a ratio has 95 % of resamples of the repeats.
Where a case has several points, it is the median of their ratios, with the smallest and the largest, and other columns
have the smallest and the largest of all points. Where contenders do not read equally many events, the ratio is that of
events per second. Memory is named where it differs by more than 5 %. G is DuckDB's `GROUP BY`, D the same by the code
of the key; `name*` stands for all cases whose names begin so.
"""

LIMITATIONS = """## Limitations

- Few machines, all small: ratios within one case carry over to other machines better than seconds do.
- The streams beside DuckDB are generated, with few and regular shapes: W1 and W2 in several sizes, numbers of keys and
  lengths of bursts. Other shapes have other ratios; real streams are in `taxi`, `stock` and `smarthome`.
- Times of Spark jobs, of Flink and of cases whose title names a file include reading and decoding it. All else runs
  over an Arrow table in memory.
- DuckDB's `GROUP BY` counts events and not trends. It stands for the cost of touching the data once, and answers
  another question.
- Parsing a workload is not in the time of a run, planning it is. Both are measured again beside the run, over no
  events, so the parts of a run do not add up to its time exactly.
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
  figure 10 (`taxi-*`, `smarthome-*`) against GRETA, and every workload against another execution of the same kernel
  (other batches, another policy, or Spark).
"""

Recorded = Mapping[str, Any]  # a case as the files have it


def _between(values: Iterable[float], form: str = ",.0f") -> str:
    """The smallest and the largest, once where they read alike; a dash where there are none."""
    found = sorted(values)
    return " to ".join(dict.fromkeys(f"{each:{form}}" for each in (found[0], found[-1]))) if found else "-"


def _timed(case: Recorded) -> tuple[str, list[Mapping[str, Any]]]:
    """The first contender, and what was measured of it at the points where it came to an end."""
    measured = [point["measured"] for point in case["points"] if point.get("measured")]
    name = next(iter(measured[0]), "") if measured else ""
    return name, [each[name] for each in measured if "wall_s" in each.get(name, {})]


def line_of(case: Recorded) -> str:
    """The table row of a case."""
    name, timed = _timed(case)
    facts = [point["facts"] for point in case["points"] if "facts" in point]
    sizes = (_between(each[key] for each in facts if key in each) for key in ("events", "queries", "rows"))
    bits = _between(each["largest_count_bits"] for each in facts if "largest_count_bits" in each)
    seconds = _between((statistics.median(values["wall_s"]) for values in timed), ".4g")
    rate = _between(values["events_per_s"] for values in timed)
    memory = _between(values["peak_rss_bytes"] / 2**20 for values in timed)
    quick = " (small sizes)" if case["quick"] else ""
    return (
        f"| {case['case']}{quick} | {name} | {'; '.join(_ratios(case['points'])) or '-'} "
        f"| {seconds} | {rate} | {memory} | {' | '.join(sizes)} | {bits} |"
    )


def _ratios(points: Sequence[Recorded]) -> Iterator[str]:
    """Ratios to the other contenders, with intervals or over all points; and who did not come to an end."""
    found: dict[str, list[Mapping[str, float]]] = {}
    for point in points:
        rates = point.get("throughput_ratios", {})
        for name, ratio in point.get("ratios", {}).items():
            other = name.split(" / ", 1)[1]
            if name in rates:
                found.setdefault(f"{other}, events/s", []).append({"ratio": rates[name]})
            else:
                found.setdefault(other, []).append(ratio)
        for name, ratio in point.get("memory_ratios", {}).items():
            if len(points) == 1 and abs(ratio - 1) > SAME_MEMORY:
                found.setdefault(f"{name.split(' / ', 1)[1]}, memory", []).append({"ratio": ratio})
    for name, each in found.items():
        ratios = sorted(one["ratio"] for one in each)
        interval = ""
        head, mark, rest = name.partition(", ")
        name = SHORT.get(head, head) + mark + rest
        if len(each) > 1:
            interval = f" ({ratios[0]:.3g} to {ratios[-1]:.3g})"
        elif "low" in each[0]:
            interval = f" ({each[0]['low']:.3g} to {each[0]['high']:.3g})"
        yield f"{name} **{statistics.median(ratios):.3g}**{interval}"
    for point in points:
        where = f" at {point['point']}" if point["point"] else ""
        if "timed_out_in" in point:
            yield f"more than {point['timeout_s']:g} s{where}"
        for name, values in point.get("measured", {}).items():
            if "timed_out_s" in values:
                yield f"{name} more than {values['timed_out_s']:g} s{where}"


def _parts(cases: Iterable[Recorded]) -> Iterator[str]:
    """Where the time of a run goes, fixed costs apart, in milliseconds."""
    rows = []
    for case in cases:
        for values in _timed(case)[1]:
            if set(PARTS) <= set(values["metrics"]):
                parts = [1e3 * statistics.median(values["metrics"][part]) for part in PARTS]
                floor = 1e3 * statistics.median(case["points"][0]["measured"][FLOOR]["wall_s"])
                run = 1e3 * statistics.median(values["wall_s"])
                shown = " | ".join(f"{each:.1f}" for each in (*parts, run, floor))
                rows.append(f"| {case['case']} | {shown} | {parts[3] / floor:.2f} |")
    if rows:
        yield "\nParts of a run beside DuckDB in milliseconds: `parse` (not in the run), `plan` (a run over no events),"
        yield "predicates and keys (`columns`), `kernel`, rows and Arrow tables (`deliver`).\n"
        yield f"| case | {' | '.join(PARTS.values())} | run | D | kernel / D |"
        yield "|---|" + "--:|" * (len(PARTS) + 3)
        yield from rows


def _measures(cases: Iterable[Recorded]) -> Iterator[str]:
    """What else was measured of the first contender, but for parts and what the engine counts about sharing."""
    lines = []
    for case in cases:
        name, timed = _timed(case)
        found: dict[str, list[float]] = {}
        for values in timed:
            for metric, each in values["metrics"].items():
                if metric not in (*PARTS, *COUNTED):
                    found.setdefault(metric, []).append(statistics.median(each))
            if "ns_per_pair" in values:
                found.setdefault("ns_per_pair", []).append(values["ns_per_pair"])
        if found:
            shown = ", ".join(f"{metric} {_between(each, ',.4g')}" for metric, each in found.items())
            lines.append(f"- {case['case']}, {name}: {shown}")
    if lines:
        yield "\nWhat else was measured, over all points:\n"
        yield from lines


def _origins(cases: Iterable[Recorded]) -> Iterator[str]:
    """When, at which commit and with which versions; once for all that have these in common."""
    found: dict[str, dict[str, list[str]]] = {}
    for case in cases:
        versions = ", ".join(f"{name} {version}" for name, version in case["machine"]["packages"].items())
        commit = (case["commit"] or "no commit")[:12] + (" with changes" if case["changed"] else "")
        note = f" ({case['note']})" if case["note"] else ""
        origins = found.setdefault(f"Python {case['machine']['python']}, {versions}", {})
        origins.setdefault(f"{case['started'][:10]} at {commit}{note}", []).append(case["case"])
    for versions, origins in found.items():
        yield f"\nMeasured with {versions}:\n"
        for origin, names in origins.items():
            yield f"- {origin}: {_listed(names)}"


def section(machine: str, cases: Sequence[Recorded]) -> Iterator[str]:
    """All of one machine: the table, the parts, what else was measured, and where it came from."""
    yield f"## {machine}\n"
    yield (
        "| case | timed | ratio to | time [s] | events/s | peak memory [MiB] | events | queries | rows "
        "| largest count [bits] |"
    )
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"
    yield from (line_of(case) for case in cases)
    yield from _parts(cases)
    yield from _measures(cases)
    yield from _origins(cases)
    yield ""


def _sentences(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Sentences with the names that they are true of, each once."""
    names: dict[str, dict[str, None]] = {}
    for name, sentence in found:
        names.setdefault(sentence, {})[name] = None
    for sentence, each in names.items():
        yield f"- {sentence}: {_listed(each)}"
    yield ""


def _listed(names: Iterable[str]) -> str:
    """Names of cases or contenders; those of all cases that begin alike as one."""
    left = dict.fromkeys(names)
    found = []
    while left:
        name = next(iter(left))
        alike = [each for each in CASES if each.startswith(name)]
        if name not in CASES or len(alike) < 3 or not left.keys() >= {*alike}:
            alike = [name]
        found.append(f"{name}*" if len(alike) > 1 else SHORT.get(name, name))
        left = {each: None for each in left if each not in alike}
    return ", ".join(found)


def _titles(titles: Mapping[str, str]) -> Iterator[str]:
    """What cases are; of those whose titles begin alike, what the others have that the first has not."""
    families: dict[str, dict[str, list[str]]] = {}
    for name, title in titles.items():
        head, *parts = title.split("; ")
        families.setdefault(head, {})[name] = parts
    for head, members in families.items():
        (first, known), *others = members.items()
        yield f"- **{first}**: {'; '.join([head, *known])}"
        for name, parts in others:
            yield f"  - **{name}**: {'; '.join(part for part in parts if part not in known)}"


def _about(cases: Sequence[Recorded]) -> Iterator[str]:
    """Once for all machines: what the cases are, what others answer instead, and how the answers were checked."""
    yield "## The cases\n"
    titles = {case["case"]: case["title"] for case in cases}
    yield from _titles(titles)
    points = [(case["case"], point) for case in cases for point in case["points"]]
    yield "\nOther questions than ours, and who answers them:\n"
    yield from _sentences(
        (name, values["question"])
        for _, point in points
        for name, values in point.get("measured", {}).items()
        if values.get("question")
    )
    yield "## How the answers were checked\n\nN stands for the numbers, which the files have.\n"
    yield from _sentences((name, _check(check, point)) for name, point in points for check in point.get("checks", []))


def _check(sentence: str, point: Recorded) -> str:
    """How an answer was checked, without numbers and without whose answer it was."""
    whose, _, said = sentence.partition(": ")
    return NUMBER.sub("N", said if whose in point.get("measured", {}) else sentence)


def write_report(folder: Path, output: Path, drawn: Sequence[Drawn] = ()) -> None:
    """Write the page from the cases that there are; an empty folder gives a page without tables."""
    machines = {
        machine: [cases[name] for name in CASES if name in cases] for machine, cases in by_machine(folder).items()
    }
    lines = [HEAD]
    for machine, cases in machines.items():
        lines += section(machine, cases)
    lines.append(LIMITATIONS)
    if drawn:
        lines.append("## Figures\n")
    for figure in drawn:
        lines += [f"![{figure.title}]({os.path.relpath(figure.file, output.parent)})", "", f"*{figure.caption}*", ""]
    lines += _about([case for cases in machines.values() for case in cases])
    output.write_text("\n".join(lines), encoding="utf-8")
