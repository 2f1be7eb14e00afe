"""Two files of results side by side."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.ratios import ratio_of
from bench.store import read

Name = tuple[str, str, str]  # case, point, contender


def seconds(cases: Iterable[Mapping[str, Any]]) -> dict[Name, list[float]]:
    """All repeats of every contender that finished; quick cases have names of their own."""
    return {
        (case["case"] + (" (quick)" if case["quick"] else ""), point["point"], name): values["wall_s"]
        for case in cases
        for point in case["points"]
        for name, values in point.get("measured", {}).items()
        if "wall_s" in values
    }


def compare_files(first: Path, second: Path) -> Iterator[str]:
    """Lines of a Markdown table: what both files have, then what only one has."""
    before, after = read(first), read(second)
    yield f"A: {first} at {_commits(before)}"
    yield f"B: {second} at {_commits(after)}"
    if {str(case["machine"]) for case in before} != {str(case["machine"]) for case in after}:
        yield "The machines or versions differ; ratios say little."
    one, two = seconds(before), seconds(after)
    yield "| case | A median [s] | B median [s] | B / A | 95 % of resamples |"
    yield "|---|--:|--:|--:|--:|"
    for name in one:
        if name in two:
            ratio = ratio_of(two[name], one[name])
            medians = " | ".join(f"{statistics.median(each):.4f}" for each in (one[name], two[name]))
            interval = f"{ratio['low']:.3f}-{ratio['high']:.3f}"
            yield f"| {' '.join(filter(None, name))} | {medians} | {ratio['ratio']:.3f} | {interval} |"
    for label, here, there in (("A", one, two), ("B", two, one)):
        for name in here:
            if name not in there:
                yield f"only in {label}: {' '.join(filter(None, name))}"


def _commits(cases: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys((case["commit"] or "no commit")[:12] for case in cases))
