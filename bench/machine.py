"""On what a result was measured: the machine, the versions and the commit; and how much memory a process took."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from hamlet.planner.calibration import processor

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hamlet-cep", "numpy", "pyarrow", "pyspark", "duckdb", "cython")
SAMPLE_SECONDS = 0.1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def description() -> dict[str, Any]:
    """Processor, its widest vector instructions, cores, memory, system and versions."""
    return {
        "processor": processor(),
        "vectors": pa.runtime_info().detected_simd_level,  # machines of one name may differ in them
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {package: version for package in PACKAGES if (version := _version(package))},
    }


def slug(machine: dict[str, Any]) -> str:
    """A file name for a machine, such as ``amd-epyc-avx2-2-cores``."""
    named = f"{machine['processor']} {machine.get('vectors', '')} {machine['cores']} cores"
    return re.sub(r"[^a-z0-9]+", "-", named.lower()).strip("-")


def title(machine: dict[str, Any]) -> str:
    """A machine as people name it; results that are older than its vectors' record do not have them."""
    vectors = f", {machine['vectors'].upper()}" if "vectors" in machine else ""
    return f"{machine['processor']}{vectors}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB"


def commit() -> dict[str, Any]:
    """The commit that is checked out, and whether the tree differs from it; None outside a git checkout."""

    def git(*arguments: str) -> str | None:
        process = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return process.stdout.strip() if process.returncode == 0 else None

    changes = git("status", "--porcelain")
    return {"commit": git("rev-parse", "HEAD"), "changed": None if changes is None else bool(changes)}


# ------------------------------------------------------------------------------------------------------- memory


def reset_peak() -> None:
    """Forget the peak of this process, where the system can (Linux)."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def peak_rss_bytes() -> int:
    """The largest resident memory of this process since `reset_peak` (since its start where that does nothing)."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)):
        return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class TreeMemory:
    """Samples the resident memory of all child processes together while its block runs (Linux; else 0).

    Shared pages count once per process, so the sum is an upper bound.
    """

    def __init__(self) -> None:
        self.peak_rss_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> TreeMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self.peak_rss_bytes = max(self.peak_rss_bytes, children_rss_bytes())


def children_rss_bytes() -> int:
    """Resident memory of all child processes together, and of theirs; see `TreeMemory`."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The command name stands in parentheses and may hold anything; the fields after it are plain.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended meanwhile
            continue
        parents[int(folder.name)] = int(fields[1])
        resident[int(folder.name)] = int(fields[21])
    total, known, newer = 0, set[int](), {os.getpid()}
    while newer:
        known |= newer
        newer = {process for process, parent in parents.items() if parent in known and process not in known}
        total += sum(resident[process] for process in newer)
    return total * os.sysconf("SC_PAGE_SIZE")
