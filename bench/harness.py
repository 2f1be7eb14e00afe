"""Runs cases in processes of their own and puts together what they report. A time-out is a result too."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench import machine
from bench.cases import CASES
from bench.ratios import ratio_of
from bench.worker import MISSING

MESSAGE = 4_000  # characters of what a failed worker said
Say = Callable[[str], None]


class TimedOut(Exception):
    """A phase took longer than it may."""


class Failed(Exception):
    """A phase ended with an error; the worker has printed it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def phase(name: str, case: str, timeout_s: float, *options: str) -> dict[str, Any]:
    """Run one phase of a point in a process of its own and return its report.

    Raises
    ------
    TimedOut
    Failed
        With the worker's exit code and what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="hamlet-bench-") as folder:
        file = Path(folder) / "report.json"
        command = [sys.executable, "-m", "bench.worker", name, case, "--report", str(file), *options]
        try:
            process = subprocess.run(
                command, cwd=machine.ROOT, timeout=timeout_s, stderr=subprocess.PIPE, text=True, check=False
            )
        except subprocess.TimeoutExpired as expired:
            raise TimedOut from expired
        if process.returncode:
            raise Failed(process.returncode, process.stderr.strip()[-MESSAGE:])
        loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return loaded


def run_case(case: str, repeats: int, timeout_s: float, *, quick: bool = False, say: Say = print) -> dict[str, Any]:
    """Check and measure all points of a case.

    Parameters
    ----------
    case : str
    repeats : int
        Timed runs of each contender.
    timeout_s : float
        What a phase may take, unless the case says it itself.
    quick : bool
        Small sizes.
    say : callable
        Told the name of each point as it begins.

    Returns
    -------
    dict
        ``case``, ``title``, ``quick`` and ``points``, each with what was measured, ``skipped``, or ``timed_out_in``.
    """
    described = CASES[case]
    if described.timeout_s is not None:
        timeout_s = described.timeout_s[quick]
    found: dict[str, Any] = {"case": case, "title": described.title, "quick": quick, "points": []}
    exhausted: set[str] = set()  # contenders that ran out of time at a point before
    for point in described.points(quick):
        if point:
            say(f"  {point}")
        options = ["--point", point, *(["--quick"] if quick else []), "--repeats", str(repeats)]
        found["points"].append(_run_point(case, point, options, timeout_s, described.apart, exhausted))
    return found


def _run_point(
    case: str, point: str, options: list[str], timeout_s: float, apart: bool, exhausted: set[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {"point": point}
    for name in ("verify", "measure"):
        started = time.perf_counter()
        try:
            if name == "verify":
                found |= phase(name, case, timeout_s, *options)
            else:
                found["measured"] = _measured(
                    case, [*options, "--digest", found["digest"]], timeout_s, found, apart, exhausted
                )
        except TimedOut:
            return found | {"timed_out_in": name, "timeout_s": timeout_s}
        except Failed as failed:
            if failed.code == MISSING:
                return found | {"skipped": str(failed)}
            raise
        found[f"{name}_phase_s"] = time.perf_counter() - started
    _derive(found)
    return found


def _measured(
    case: str, options: list[str], timeout_s: float, found: Mapping[str, Any], apart: bool, exhausted: set[str]
) -> dict[str, Any]:
    """What was measured of each contender; apart, one that ran out of time is not asked again at the next points."""
    if not apart:
        measured: dict[str, Any] = phase("measure", case, timeout_s, *options)["measured"]
        return measured
    measured = {}
    for contender in found["contenders"]:
        if contender in exhausted:
            measured[contender] = {"timed_out_before": True}
            continue
        try:
            measured |= phase("measure", case, timeout_s, *options, "--contender", contender)["measured"]
        except TimedOut:
            exhausted.add(contender)
            measured[contender] = {"timed_out_s": timeout_s}
    return measured


def _derive(found: dict[str, Any]) -> None:
    """Add rates and the ratios of the first contender to each other one."""
    finished = {name: values for name, values in found["measured"].items() if "wall_s" in values}
    for values in finished.values():
        median = statistics.median(values["wall_s"])
        values["events_per_s"] = values.get("events", found["facts"]["events"]) / median
        if "pairs" in found["facts"]:
            values["ns_per_pair"] = 1e9 * median / found["facts"]["pairs"]
    first, *others = finished or [None]
    found["ratios"] = {
        f"{first} / {other}": ratio_of(finished[first]["wall_s"], finished[other]["wall_s"]) for other in others
    }
    found["throughput_ratios"] = {  # where not all read as many events
        f"{first} / {other}": finished[first]["events_per_s"] / finished[other]["events_per_s"]
        for other in others
        if "events" in finished[other] or "events" in finished[str(first)]
    }
    found["memory_ratios"] = {
        f"{first} / {other}": finished[first]["peak_rss_bytes"] / finished[other]["peak_rss_bytes"]
        for other in others
        if finished[other]["peak_rss_bytes"]
    }
