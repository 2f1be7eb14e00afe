"""Two files of results side by side."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.ratios import ratio_of

Name = tuple[str, str, str]  # case, point, contender


def read(file: Path) -> dict[str, Any]:
    """A file of results; the first ones had no points: their one is read as the point ""."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for place, case in enumerate(found["cases"]):
        if "points" not in case:
            point = {"point": "", **{key: value for key, value in case.items() if key not in ("case", "title")}}
            point["ratios"] = {name: {"ratio": ratio} for name, ratio in point.get("ratios", {}).items()}
            found["cases"][place] = {"case": case["case"], "title": case["title"], "quick": False, "points": [point]}
    return found


def seconds(results: dict[str, Any]) -> dict[Name, list[float]]:
    """All repeats of every contender that finished; quick cases have names of their own."""
    return {
        (case["case"] + (" (quick)" if case["quick"] else ""), point["point"], name): values["wall_s"]
        for case in results["cases"]
        for point in case["points"]
        for name, values in point.get("measured", {}).items()
        if "wall_s" in values
    }


def compare_files(first: Path, second: Path) -> Iterator[str]:
    """Lines of a Markdown table: what both files have, then what only one has."""
    before, after = read(first), read(second)
    yield f"A: {first} at {(before['commit'] or 'no commit')[:12]}"
    yield f"B: {second} at {(after['commit'] or 'no commit')[:12]}"
    if before["machine"] != after["machine"]:
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
