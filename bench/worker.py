"""One point of a case in one process: ``python -m bench.worker verify|measure CASE``, called by ``bench.harness``.

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
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import answers, machine
from bench.cases import CASES
from bench.subject import Contender, Subject
from hamlet.errors import DataError, UnsupportedError

WRONG, MISSING = 3, 4


def measure(contenders: Mapping[str, Contender], repeats: int, expected: str) -> dict[str, dict[str, Any]]:
    """Time all contenders in turn, `repeats` times each, after one round that is not kept.

    Every round begins with another contender, so that none always runs behind the same one.

    Returns
    -------
    dict
        For each contender ``wall_s`` (every repeat, in order), ``peak_rss_bytes`` and ``grown_bytes`` (how much of it
        came during the run; the largest of all repeats),
        ``same_question`` (whether its rows are ours, and were compared) and ``metrics`` (each of every repeat).

    Raises
    ------
    WrongAnswer
        A repeat gave other rows than those that were checked.
    """
    measured: dict[str, dict[str, Any]] = {
        name: {
            "wall_s": [],
            "peak_rss_bytes": 0,
            "grown_bytes": 0,
            "same_question": contender.rows is not None,
            "metrics": {},
        }
        for name, contender in contenders.items()
    }
    for name, contender in contenders.items():
        if contender.events is not None:
            measured[name]["events"] = contender.events
        if contender.question:
            measured[name]["question"] = contender.question
    turns = list(contenders.items())
    for repeat in range(repeats + 1):
        first = repeat % len(turns)
        for name, contender in turns[first:] + turns[:first]:
            seconds, peak, grown, metrics = _timed(name, contender, expected)
            if repeat:  # the first round fills caches and imports what is imported on first use
                measured[name]["wall_s"].append(seconds)
                measured[name]["peak_rss_bytes"] = max(measured[name]["peak_rss_bytes"], peak)
                measured[name]["grown_bytes"] = max(measured[name]["grown_bytes"], grown)
                for metric, value in metrics.items():
                    measured[name]["metrics"].setdefault(metric, []).append(value)
    return measured


def _timed(name: str, contender: Contender, expected: str) -> tuple[float, int, int, Mapping[str, float]]:
    """One run: seconds, peak memory and how much of it came during the run in bytes, metrics."""
    gc.collect()
    machine.reset_peak()
    before = 0 if contender.in_children else machine.peak_rss_bytes()
    with machine.TreeMemory() if contender.in_children else contextlib.nullcontext() as tree:
        start = time.perf_counter()
        result = contender.run()
        seconds = time.perf_counter() - start
    peak = tree.peak_rss_bytes if tree else machine.peak_rss_bytes()
    if contender.rows and answers.digest(contender.rows(result)) not in expected.split():
        raise answers.WrongAnswer(f"{name} gave other rows than those that were checked")
    if contender.check:
        contender.check(result)
    return seconds, peak, peak - before, contender.metrics(result) if contender.metrics else {}


def report(phase: str, subject: Subject, repeats: int, expected: str, only: str | None = None) -> dict[str, Any]:
    """Run one phase of a point; see the module's docstring."""
    if phase == "verify":
        return dataclasses.asdict(subject.answer()) | {"contenders": list(subject.contenders())}
    contenders = {name: each for name, each in subject.contenders().items() if only in (None, name)}
    return {"measured": measure(contenders, repeats, expected)}


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.worker")
    parser.add_argument("phase", choices=["verify", "measure"])
    parser.add_argument("case", choices=list(CASES))
    parser.add_argument("--point", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--contender")
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--digest", default="")
    arguments = parser.parse_args()
    try:
        subject = CASES[arguments.case].points(arguments.quick)[arguments.point]()
        found = report(arguments.phase, subject, arguments.repeats, arguments.digest, arguments.contender)
    except answers.WrongAnswer as wrong:
        print(f"wrong answer: {wrong}", file=sys.stderr)
        return WRONG
    except (DataError, UnsupportedError) as missing:
        print(missing, file=sys.stderr)
        return MISSING
    arguments.report.write_text(json.dumps(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
