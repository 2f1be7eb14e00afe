"""``python -m bench``: run cases, each in its own processes, and turn what was measured into tables and plots."""

from __future__ import annotations

import datetime
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import click

from bench import machine
from bench.ablate import CASES as ABLATED
from bench.ablate import ablate as ablated
from bench.ablate import lines, table
from bench.cases import CASES
from bench.compare import compare_files
from bench.estimates import FACTOR, compared
from bench.estimates import lines as estimate_lines
from bench.harness import Failed, run_case
from bench.plane import NUMBERS, REDUCED, apart, cells, draw, growths
from bench.plots import FIGURES, write_plots
from bench.report import write_report
from bench.store import RESULTS, keep
from bench.worker import WRONG


def show(point: dict[str, Any]) -> None:
    """Print what was measured at a point; only called when the answer was right."""
    if "skipped" in point or "timed_out_in" in point:
        reason = point.get("skipped") or f"more than {point['timeout_s']:g} s in {point['timed_out_in']}"
        click.echo(f"  not measured: {reason}")
        return
    for check in point["checks"]:
        click.echo(f"  checked: {check}")
    click.echo("  " + ", ".join(f"{name} {value}" for name, value in point["facts"].items()))
    for name, values in point["measured"].items():
        if "wall_s" not in values:
            click.echo(f"  {name}: more than {values.get('timed_out_s', 'the limit at a point before')} s")
            continue
        times = " ".join(f"{seconds:.3f}" for seconds in values["wall_s"])
        extra = {name: statistics.median(each) for name, each in values["metrics"].items()}
        if "ns_per_pair" in values:
            extra["ns_per_pair"] = values["ns_per_pair"]
        click.echo(
            f"  {name}: wall_s {times}; {values['events_per_s']:,.0f} events/s, "
            f"peak_rss_bytes {values['peak_rss_bytes']:,}"
            + "".join(f", {metric} {value:,.6g}" for metric, value in extra.items())
        )
    for name, ratio in point["ratios"].items():
        click.echo(f"  {name}: {ratio['ratio']:.3f} (95 % of resamples {ratio['low']:.3f} to {ratio['high']:.3f})")
    for name, ratio in point["throughput_ratios"].items():
        click.echo(f"  events per second {name}: {ratio:.3f}")
    for name, ratio in point["memory_ratios"].items():
        click.echo(f"  peak memory {name}: {ratio:.3f}")


@click.group()
def main() -> None:
    """Run the benchmarks of this tree."""


def _list_cases() -> None:
    click.echo(f"{'case':22} {'full [s]':>9} {'quick [s]':>9}  title")
    for name, case in CASES.items():
        click.echo(f"{name:22} {case.seconds[0]:9,.0f} {case.seconds[1]:9,.0f}  {case.title}")
    full, quick = (sum(case.seconds[place] for case in CASES.values()) for place in (0, 1))
    click.echo(f"{'all':22} {full:9,.0f} {quick:9,.0f}  about, with five repeats on one core of 2025")


@main.command()
@click.argument("cases", metavar="[CASE]...", nargs=-1, type=click.Choice(list(ABLATED)))
@click.option("--scale", default=1.0, show_default=True, help="Events, as a part of each case's size.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(2), help="Runs of each variant.")
@click.option("--path", "paths", multiple=True, help="Only without this operator or feature; may be repeated.")
@click.option("--output", type=click.Path(path_type=Path), help="A JSON file for what was measured.")
@click.option("--note", default="", help="Kept in it, such as 'noisy: others were working'.")
def ablate(
    cases: tuple[str, ...], scale: float, rounds: int, paths: tuple[str, ...], output: Path | None, note: str
) -> None:
    """Run the main cases with everything, and without each operator and feature: what each is worth."""
    found = []
    for name in cases or ABLATED:
        found.append(ablated(ABLATED[name], scale=scale, rounds=rounds, paths=paths or None))
        for line in lines(found[-1]):
            click.echo(line)
    if len(found) > 1:
        for line in table(found):
            click.echo(line)
    if output is not None:
        whole = {"note": note, **machine.commit(), "machine": machine.description(), "cases": found}
        output.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


@main.command()
@click.argument("cases", metavar="[CASE]...", nargs=-1, type=click.Choice(list(ABLATED)))
@click.option("--scale", default=1.0, show_default=True, help="Events, as a part of each case's size.")
def estimates(cases: tuple[str, ...], scale: float) -> None:
    """Compare `hamlet explain --estimate` with a run, case by case; exit 1 where one is not within a factor of two."""
    found = []
    for name in cases or ABLATED:
        found.append(compared(ABLATED[name], scale=scale))
        click.echo(list(estimate_lines(found[-1:]))[-1])
    beyond = [each.case for each in found if not each.within()]
    if beyond:
        click.echo(f"not within {FACTOR:g} times: {', '.join(beyond)}", err=True)
    sys.exit(1 if beyond else 0)


@main.command()
@click.option(
    "--repeats", default=2, show_default=True, type=click.IntRange(1), help="Runs of a cell; the least counts."
)
@click.option(
    "--reduced", is_flag=True, help="Up to 10,000 events of a key and window, each cell run once: a few minutes."
)
@click.option("--output", type=click.Path(path_type=Path), help="A JSON file for what was measured.")
@click.option("--figure", type=click.Path(path_type=Path), help="An SVG file for the heat map.")
@click.option("--note", default="", help="Kept in it, such as 'noisy: others were working'.")
def plane(repeats: int, reduced: bool, output: Path | None, figure: Path | None, note: str) -> None:
    """Measure what an event costs over the whole plane, and how runs grow when something doubles."""
    grown = {numbers: growths(numbers) for numbers in NUMBERS}
    for numbers, exponents in grown.items():
        shown = ", ".join(f"{name} {exponent:.2f}" for name, exponent in exponents.items())
        click.echo(f"{numbers}: exponents when what doubles is {shown}")
    found = cells(click.echo, 1, REDUCED) if reduced else cells(click.echo, repeats)
    for line in apart(found):
        click.echo(f"apart: {line}")
    if figure is not None:
        draw(found, figure)
    if output is not None:
        whole = {"note": note, **machine.commit(), "machine": machine.description(), "growth": grown}
        whole["cells"] = [vars(each) | {"ns": each.ns} for each in found]
        output.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


@main.command("list")
def list_cases() -> None:
    """Print the cases and about how long they take."""
    _list_cases()


@main.command()
@click.argument("cases", metavar="[CASE]...", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--quick", is_flag=True, help="Small sizes: is everything right, and does everything run?")
@click.option("--list", "listed", is_flag=True, help="Print the cases and about how long they take, run nothing.")
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1), help="Timed runs of each contender.")
@click.option("--timeout", "timeout_s", default=3600.0, show_default="3600", help="Seconds that a phase may take.")
@click.option("--note", default="", help="Kept with the results, such as 'noisy: others were working'.")
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Where the JSON files go.")
def run(
    cases: tuple[str, ...], quick: bool, listed: bool, repeats: int, timeout_s: float, note: str, results: Path
) -> None:
    """Run the cases given (`list` names them), or all; exit 1 on a wrong answer, before any of its times is printed."""
    if listed:
        _list_cases()
        return
    described, started = machine.description(), datetime.datetime.now(datetime.UTC)
    found: list[dict[str, Any]] = []
    code = 0
    for case in cases or CASES:
        click.echo(case)
        try:
            found.append(run_case(case, repeats, timeout_s, quick=quick, say=click.echo))
        except Failed as failed:
            kind = "WRONG ANSWER" if failed.code == WRONG else f"FAILED with exit code {failed.code}"
            click.echo(f"  {kind}\n{failed}", err=True)
            code = 1
            break
        for point in found[-1]["points"]:
            if point["point"]:
                click.echo(f"  {point['point']}:")
            show(point)
    if any("skipped" not in point for one in found for point in one["points"]):
        header = {
            "started": started.isoformat(timespec="seconds"),
            "note": note,
            **machine.commit(),
            "machine": described,
        }
        click.echo(f"kept in {keep(results, header, found)}")
    sys.exit(code)


@main.command()
@click.option("--results", default=RESULTS, type=click.Path(path_type=Path), help="Where the JSON files are.")
@click.option("--output", default=RESULTS.parent / "RESULTS.md", type=click.Path(path_type=Path), help="The page.")
@click.option("--figures", default=FIGURES, type=click.Path(path_type=Path), help="Where the plots go.")
def report(results: Path, output: Path, figures: Path) -> None:
    """Write RESULTS.md and the plots from the JSON files, one for each class of machine."""
    drawn = write_plots(results, figures)
    write_report(results, output, drawn)
    click.echo(f"written to {output}" + "".join(f"\nwritten to {figure.file}" for figure in drawn))


@main.command()
@click.argument("first", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("second", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def compare(first: Path, second: Path) -> None:
    """Print what changed from one JSON file of results to another: medians and their ratio, contender by contender."""
    for line in compare_files(first, second):
        click.echo(line)


if __name__ == "__main__":
    main(prog_name="python -m bench")
