"""``hamlet calibrate``."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from hamlet.cli.progress import run_bar
from hamlet.engine.calibrate import calibrate
from hamlet.planner import calibration
from optimizer.benefit import Costs

_PRICES = ("coefficient", "spread", "application", "join", "snapshot", "event", "burst")


@click.command(
    "calibrate",
    short_help="Measure what sharing costs on this machine.",
    epilog="""\b
    Examples:
      hamlet calibrate
      hamlet calibrate --dry-run
      hamlet calibrate --reset
    """,
)
@click.option("--dry-run", is_flag=True, help="Measure and print, but do not store the result.")
@click.option("--reset", is_flag=True, help="Delete what was measured; the shipped constants apply again.")
@click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
def command(dry_run: bool, reset: bool, quiet: bool) -> None:
    """Measure what sharing costs on this machine, for the decisions of later runs.

    Takes a few seconds, during which the machine should be idle. Results of queries never depend on it, only their run
    time.
    """
    if reset:
        found = calibration.forget()
        if not quiet:
            click.echo(f"{calibration.path()}: {'removed' if found else 'there was none'}; the shipped constants apply")
        return
    started = time.perf_counter()
    with run_bar(quiet, "measuring") as progress:
        measured = calibrate(progress)
    if not quiet:
        click.echo(_table(measured.costs, measured.misfit))
    if not dry_run:
        kept = calibration.store(measured.costs, measured.misfit)
        if not quiet:
            click.echo(f"kept in {kept.path}; hamlet explain shows what is used", err=True)
    if not quiet:
        click.echo(f"{calibration.processor()}, {time.perf_counter() - started:.1f} s", err=True)


def _table(costs: Mapping[str, Costs], misfit: Mapping[str, float]) -> str:
    """Measured prices, and the shipped ones in parentheses."""
    old = calibration.shipped().costs
    lines = [f"{'ns (shipped)':<16}" + "".join(f"{name:>16}" for name in _PRICES) + f"{'misfit':>10}"]
    for rung, prices in costs.items():
        cells = [f"{getattr(prices, name):.3g} ({getattr(old[rung], name):.3g})" for name in _PRICES]
        lines.append(f"{rung:<16}" + "".join(f"{cell:>16}" for cell in cells) + f"{misfit[rung]:>10.0%}")
    return "\n".join(lines)
