"""One case in one process: ``python -m bench.worker verify|measure CASE``, called by ``python -m bench run``.

The answer is checked in one process and timed in another, so that the memory of the check is not in the peak. The
report goes as JSON into the file named by ``--report``.
Exit codes: 0 done, 3 a wrong answer, 4 the case cannot run here.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import answers, machine
from bench.cases import CASES
from bench.subject import Contender
from hamlet.errors import DataError

WRONG, MISSING = 3, 4


def measure(contenders: Mapping[str, Contender], repeats: int, expected: str) -> dict[str, dict[str, Any]]:
    """Time all contenders in turn, `repeats` times each, after one round that is not kept.

    Returns
    -------
    dict
        For each contender ``wall_s`` (every repeat, in order) and ``peak_rss_bytes`` (the largest of all repeats),
        and ``same_question``: whether its rows are ours, and were compared.

    Raises
    ------
    WrongAnswer
        A repeat gave other rows than those that were checked.
    """
    measured: dict[str, dict[str, Any]] = {
        name: {"wall_s": [], "peak_rss_bytes": 0, "same_question": contender.rows is not None}
        for name, contender in contenders.items()
    }
    for name, contender in contenders.items():
        if contender.events is not None:
            measured[name]["events"] = contender.events
    for repeat in range(repeats + 1):
        for name, contender in contenders.items():
            gc.collect()
            machine.reset_peak()
            with machine.TreeMemory() if contender.in_children else contextlib.nullcontext() as tree:
                start = time.perf_counter()
                result = contender.run()
                seconds = time.perf_counter() - start
            peak = tree.peak_rss_bytes if tree else machine.peak_rss_bytes()
            if contender.rows and answers.digest(contender.rows(result)) not in expected.split():
                raise answers.WrongAnswer(f"{name} gave other rows than those that were checked")
            del result
            if repeat:  # the first round fills caches and imports what is imported on first use
                measured[name]["wall_s"].append(seconds)
                measured[name]["peak_rss_bytes"] = max(measured[name]["peak_rss_bytes"], peak)
    return measured


def ratios(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Median wall time of the first contender over that of each other one."""
    first, *others = measured
    medians = {name: statistics.median(values["wall_s"]) for name, values in measured.items()}
    return {f"{first} / {other}": medians[first] / medians[other] for other in others}


def memory_ratios(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Peak memory of the first contender over that of each other one."""
    first, *others = measured
    peaks = {name: values["peak_rss_bytes"] for name, values in measured.items()}
    return {f"{first} / {other}": peaks[first] / peaks[other] for other in others if peaks[other]}


def report(phase: str, case: str, repeats: int, expected: str) -> dict[str, Any]:
    """Run one phase of a case; see the module's docstring."""
    subject = CASES[case].subject()
    if phase == "verify":
        return dataclasses.asdict(subject.answer())
    measured = measure(subject.contenders(), repeats, expected)
    return {"measured": measured, "ratios": ratios(measured), "memory_ratios": memory_ratios(measured)}


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker")
    parser.add_argument("phase", choices=["verify", "measure"])
    parser.add_argument("case", choices=list(CASES))
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--digest", default="")
    arguments = parser.parse_args()
    try:
        found = report(arguments.phase, arguments.case, arguments.repeats, arguments.digest)
    except answers.WrongAnswer as wrong:
        print(f"wrong answer: {wrong}", file=sys.stderr)
        return WRONG
    except DataError as missing:
        print(missing, file=sys.stderr)
        return MISSING
    arguments.report.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
