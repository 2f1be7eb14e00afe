"""``python -m bench``: run cases, each in its own processes, and turn what was measured into RESULTS.md."""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from bench import machine
from bench.cases import CASES
from bench.report import RESULTS, write_report
from bench.worker import MISSING, WRONG


class TimedOut(Exception):
    """A phase took longer than it may."""


class Failed(Exception):
    """A phase ended with an error; the worker has printed it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def phase(name: str, case: str, timeout_s: float, *options: str) -> dict[str, Any]:
    """Run one phase of a case in a process of its own and return its report."""
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
            raise Failed(process.returncode, process.stderr.strip())
        loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return loaded


def run_case(case: str, repeats: int, timeout_s: float) -> dict[str, Any]:
    """Check and measure one case; a time-out is a result too."""
    found: dict[str, Any] = {"case": case, "title": CASES[case].title}
    for name in ("verify", "measure"):
        started = time.perf_counter()
        options = ["--repeats", str(repeats), "--digest", found["digest"]] if name == "measure" else []
        try:
            found |= phase(name, case, timeout_s, *options)
        except TimedOut:
            return found | {"timed_out_in": name, "timeout_s": timeout_s}
        except Failed as failed:
            if failed.code == MISSING:
                return found | {"skipped": str(failed)}
            raise
        found[f"{name}_phase_s"] = time.perf_counter() - started
    for values in found["measured"].values():
        median = statistics.median(values["wall_s"])
        values["events_per_s"] = values.get("events", found["facts"]["events"]) / median
        if "pairs" in found["facts"]:
            values["ns_per_pair"] = 1e9 * median / found["facts"]["pairs"]
    return found


def show(found: dict[str, Any]) -> None:
    """Print what was measured; only called when the answer was right."""
    if "skipped" in found or "timed_out_in" in found:
        reason = found.get("skipped") or f"more than {found['timeout_s']:g} s in {found['timed_out_in']}"
        click.echo(f"  not measured: {reason}")
        return
    for check in found["checks"]:
        click.echo(f"  checked: {check}")
    click.echo("  " + ", ".join(f"{name} {value}" for name, value in found["facts"].items()))
    for name, values in found["measured"].items():
        times = " ".join(f"{seconds:.3f}" for seconds in values["wall_s"])
        click.echo(
            f"  {name}: wall_s {times}; {values['events_per_s']:,.0f} events/s, "
            f"peak_rss_bytes {values['peak_rss_bytes']:,}"
            + (f", {values['ns_per_pair']:.3f} ns per pair" if "ns_per_pair" in values else "")
        )
    for name, ratio in found["ratios"].items():
        click.echo(f"  {name}: {ratio:.2f}")
    for name, ratio in found.get("memory_ratios", {}).items():
        click.echo(f"  peak memory {name}: {ratio:.3f}")


def result_file(folder: Path, described: dict[str, Any]) -> Path:
    """A file that does not exist yet: results are never overwritten."""
    day = folder / datetime.datetime.now(datetime.UTC).date().isoformat()
    day.mkdir(parents=True, exist_ok=True)
    name, number = machine.slug(described), 1
    while (file := day / (f"{name}.json" if number == 1 else f"{name}-{number}.json")).exists():
        number += 1
    return file


@click.group()
def main() -> None:
    """Run the benchmarks of this tree."""


@main.command("list")
def list_cases() -> None:
    """Print the cases."""
    for name, case in CASES.items():
        click.echo(f"{name:22} {case.title}")


@main.command()
@click.argument("cases", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1), help="Timed runs of each contender.")
@click.option("--timeout", "timeout_s", default=3600.0, show_default=True, help="Seconds that a phase may take.")
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Where the JSON files go.")
def run(cases: tuple[str, ...], repeats: int, timeout_s: float, results: Path) -> None:
    """Run the CASES given, or all; exit 1 on a wrong answer, before any of its times is printed."""
    described, started = machine.description(), datetime.datetime.now(datetime.UTC)
    found: list[dict[str, Any]] = []
    code = 0
    for case in cases or CASES:
        click.echo(case)
        try:
            found.append(run_case(case, repeats, timeout_s))
        except Failed as failed:
            kind = "WRONG ANSWER" if failed.code == WRONG else f"FAILED with exit code {failed.code}"
            click.echo(f"  {kind}\n{failed}", err=True)
            code = 1
            break
        show(found[-1])
    if any("measured" in one or "timed_out_in" in one for one in found):
        whole = {
            "started": started.isoformat(timespec="seconds"),
            **machine.commit(),
            "machine": described,
            "cases": found,
        }
        file = result_file(results, described)
        file.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        click.echo(f"written to {file}")
    sys.exit(code)


@main.command()
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Where the JSON files are.")
@click.option("--output", default=RESULTS.parent / "RESULTS.md", type=click.Path(path_type=Path))
def report(results: Path, output: Path) -> None:
    """Write RESULTS.md from the JSON files: for each machine and case the newest measurement."""
    write_report(results, output)
    click.echo(f"written to {output}")


if __name__ == "__main__":
    main(prog_name="python -m bench")
