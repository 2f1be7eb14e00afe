"""``hamlet doctor``: whether this machine has what Hamlet needs, and whether Hamlet counts right on it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import click

from hamlet.errors import UnsupportedError
from hamlet.java import check_java
from hamlet.oracle import evaluate
from hamlet.parallel.run import run
from hamlet.planner.workload import Workload
from hamlet.version import __version__

State = Literal["ok", "note", "wrong"]  # note: missing, and not needed for all

_POWERS = """
runs: RETURN COUNT(*), COUNT(A), SUM(A.x) AS total PATTERN A+ WITHIN 1 h;
after: RETURN COUNT(*) PATTERN SEQ(S, A+) WITHIN 1 h;
"""
_SMALL = """
EVENT S(k INT, x INT); EVENT A(k INT, x INT); EVENT C(k INT, x INT); EVENT B(k INT, x INT);
kleene: RETURN k, COUNT(*), SUM(A.x) AS total, AVG(A.x) AS mean, MAX(A.x) AS top
        PATTERN SEQ(S, A+) GROUP-BY k WITHIN 8 s SLIDE 4 s;
guarded: RETURN COUNT(*) PATTERN SEQ(S, A+, NOT C, B) WHERE [k] WITHIN 12 s;
rising: RETURN COUNT(*), MIN(A.x) AS low PATTERN A{2,} WHERE A.x < NEXT(A).x WITHIN 12 s;
either: RETURN COUNT(*) PATTERN (SEQ(A, B?) OR C)+ WHERE A.x <> 2 WITHIN 6 s;
"""


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes
    ----------
    state : {'ok', 'note', 'wrong'}
    name : str
        What was looked at.
    text : str
        What is there, or what is missing and how to get it.
    """

    state: State
    name: str
    text: str


def examine(spark_too: bool = False) -> Iterator[Finding]:
    """All checks, one after the other; `spark_too` starts Spark and runs a job."""
    yield Finding("ok", "hamlet", f"{__version__} in {Path(__file__).parents[1]}")
    where = f"{platform.system()} {platform.machine()}, {sys.executable}"
    yield Finding("ok", "Python", f"{platform.python_version()} ({where})")
    yield _packages()
    yield _compiler()
    yield _memory()
    yield _java()
    yield _pyspark()
    yield _tested("counting", _count_powers)
    yield _tested("brute force", _compare_with_the_oracle)
    if spark_too:
        yield _tested("Spark job", _compare_with_spark)


def _packages() -> Finding:
    names = ("numpy", "pyarrow", "sympy")
    return Finding("ok", "packages", ", ".join(f"{name} {metadata.version(name)}" for name in names))


def _compiler() -> Finding:
    """A wheel needs none; building from source does."""
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    found = shutil.which(command)
    if found is None:
        return Finding("note", "compiler", f"there is no {command} on the PATH; only a build from source needs one")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
    return Finding("ok", "compiler", (said.splitlines() or [found])[0])


def _memory() -> Finding:
    available = _available_memory()
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    size = "unknown" if available is None else f"{available / 2**30:.1f} GiB available"
    state: State = "note" if available is not None and available < 2**30 else "ok"
    hint = "; less than 1 GiB: --max-memory stops a run before the machine does" if state == "note" else ""
    return Finding(state, "memory", f"{size}, {processors} processors{hint}")


def _available_memory() -> int | None:
    """Bytes that are free, or soon could be; the limit of a container where there is one."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (
            Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
            for name in ("memory.max", "memory.current")
        )
        if limit != "max":
            found.append(max(0, int(limit) - int(used)))
    except (OSError, ValueError):
        pass  # another system, or no container
    return min(found, default=None)


def _java() -> Finding:
    try:
        return Finding("ok", "Java", str(check_java()))
    except UnsupportedError as error:
        return Finding("note", "Java", f"{error}\nneeded by hamlet submit and hamlet.spark only")


def _pyspark() -> Finding:
    if importlib.util.find_spec("pyspark") is None:
        return Finding(
            "note",
            "Spark",
            "pyspark is not installed: pip install 'hamlet-cep[spark]'\nneeded by hamlet submit and hamlet.spark only",
        )
    worker = os.environ.get("PYSPARK_PYTHON")
    other = f", PYSPARK_PYTHON is {worker}" if worker else ""
    return Finding("ok", "Spark", f"pyspark {metadata.version('pyspark')}{other}")


def _tested(name: str, test: Callable[[], str]) -> Finding:
    begin = time.perf_counter()
    try:
        said = test()
    except Exception as error:  # whatever it is, it is what the doctor is asked for
        return Finding("wrong", name, f"{type(error).__name__}: {error}")
    return Finding("ok", name, f"{said} ({time.perf_counter() - begin:.1f} s)")


# ---------------------------------------------------------------------------------------------------- self-tests


def _equal(found: Any, expected: Any) -> None:
    if found != expected:
        raise AssertionError(f"found {found}, expected {expected}; please report this with hamlet version --json")


def _count_powers() -> str:
    """2^n - 1 trends of n events, far beyond 64 bits, with every digit."""
    workload = Workload.parse(_POWERS)
    for length in (10, 64, 65, 1000):
        events = {
            "time": list(range(length + 1)),
            "type": ["S"] + ["A"] * length,
            "x": [0] + [3] * length,
        }
        edges = {"window_start": 0, "window_end": 3600}
        trends, occurrences = 2**length - 1, length * 2 ** (length - 1)
        runs = {"query": "runs", **edges, "count": trends, "count_A": occurrences, "total": 3 * occurrences}
        _equal(run(workload, events).rows(), [runs, {"query": "after", **edges, "count": trends}])
        near = [abs(row["count"] / trends - 1) < 1e-9 for row in run(workload, events, numbers="float").rows()]
        _equal(near, [True, True])
    return "2^10, 2^64, 2^65 and 2^1000 trends counted, to the last digit"


def _small_stream() -> list[dict[str, Any]]:
    kinds = "SAACABSACAAB"
    return [{"time": place, "type": kind, "k": 1, "x": place * 5 % 7} for place, kind in enumerate(kinds)]


def _compare_with_the_oracle() -> str:
    workload = Workload.parse(_SMALL)
    events = _small_stream()
    expected = evaluate(workload.analysis.text, events)
    for sharing in ("dynamic", "never"):
        _equal(run(workload, events, sharing=sharing).rows(), expected)
    return f"{len(expected)} rows of {len(workload.names)} queries equal those of listing every trend"


def _compare_with_spark() -> str:
    from hamlet import spark  # brings in pyspark, which nothing else needs

    workload = Workload.parse(_SMALL).select(["kleene"])
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events.csv")
        lines = [f"{event['time']},{event['type']},{event['k']},{event['x']}\n" for event in _small_stream()]
        events.write_text("time,type,k,x\n" + "".join(lines), encoding="utf-8")
        stats = spark.submit(workload, str(events), str(Path(folder, "rows")), output_format="json", partitions=2)
        _equal(stats["rows"], len(run(workload, events)))
    return f"{stats['rows']} rows, as many as in process"


@click.command(
    "doctor",
    short_help="Check this machine, and test that it counts correctly.",
    epilog="""\b
    Examples:
      hamlet doctor
      hamlet doctor --spark          (starts Spark, about ten seconds)
    """,
)
@click.option("--spark", "spark_too", is_flag=True, help="Also start Spark and run a job.")
def command(spark_too: bool) -> int:
    """Check Python, compiler, memory, Java and Spark, and test that trends are counted correctly on this machine."""
    wrong = 0
    for finding in examine(spark_too):
        first, *more = finding.text.splitlines()
        mark = {"ok": "ok", "note": "-", "wrong": "WRONG"}[finding.state]
        click.echo(f"{mark:<6}{finding.name:<13}{first}")
        for line in more:
            click.echo(f"{'':<19}{line}")
        wrong += finding.state == "wrong"
    return 1 if wrong else 0
