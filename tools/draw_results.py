"""Draw the picture of README.md from a file of bench/results: events per second on real streams, one thread.

``python tools/draw_results.py bench/results/amd-epyc-avx512-2-cores.json docs/images/throughput.svg``
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

CASES = ("smarthome-vs-duckdb", "smarthome", "stock", "taxi")
NAMES = {"hamlet": "Hamlet", "duckdb group by": "DuckDB, GROUP BY"}


def bars(cases: list[dict[str, Any]]) -> list[tuple[str, float, bool]]:
    """Label, million events per second, and whether it is ours; of every case over a real stream in process."""
    found = []
    for case in sorted((case for case in cases if case["case"] in CASES), key=lambda case: CASES.index(case["case"])):
        (point,) = case["points"]
        facts = point["facts"]
        for name, measured in point["measured"].items():
            if name not in NAMES:
                continue
            speed = facts["events"] / statistics.median(measured["wall_s"]) / 1e6
            ours = name == "hamlet"
            what = (
                f"{facts['queries']} queries, counts of {facts['largest_count_bits']} bits" if ours else "counts events"
            )
            found.append((f"{case['case'].partition('-')[0]}: {NAMES[name]}\n{what}", speed, ours))
    return found


def main() -> None:
    """Parse the command line and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    run = json.loads(arguments.results.read_text(encoding="utf-8"))
    rows = bars(run["cases"])[::-1]
    plt.rcParams |= {"svg.hashsalt": "hamlet", "svg.fonttype": "none"}  # the same file for the same numbers; small
    figure, axes = plt.subplots(figsize=(7.5, 0.55 * len(rows) + 0.8), layout="constrained")
    drawn = axes.barh(
        [label for label, _, _ in rows],
        [speed for _, speed, _ in rows],
        color=["#3f51b5" if ours else "#9e9e9e" for _, _, ours in rows],
    )
    axes.bar_label(drawn, fmt="%.1f", padding=3)
    axes.set_xlabel("million events per second, one thread")
    axes.spines[["top", "right"]].set_visible(False)
    figure.patch.set_facecolor("white")
    figure.savefig(arguments.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
