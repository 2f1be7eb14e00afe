"""``hamlet monitor``: policies and stream specifications over events."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.live_options import LIVE_OPTIONS, Destinations, Live, States, is_live, live_of, refuse_live
from hamlet.cli.notations import Settings, by_notation, notation_of, say_notes, settings_of, together
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    LATENESS,
    OUTPUT,
    PERIOD_OPTIONS,
    QUIET,
    READING_OPTIONS,
    WHERE,
    MonitoredFiles,
    input_option,
    inputs_of,
    max_memory_option,
    option,
    with_options,
)
from hamlet.cli.progress import progress_bar, summary_line
from hamlet.cli.rtlola_names import RTLOLA_OPTIONS, by_other_names
from hamlet.cli.sinks import sink_of
from hamlet.frontend.time_column import called
from hamlet.input.live.lines import LineForm
from hamlet.output.html import SHOWN_ROWS
from hamlet.output.place import check_beside, check_destination, check_place
from hamlet.runtime.tenant import Tenant

ROWS_FOUND = 3  # the exit code of --fail-on-rows
FORMATS = ("json", "csv", "parquet", "monpoly")
FILES = click.argument("files", type=click.Path(), cls=MonitoredFiles, nargs=-1, required=True)
SIGNATURE = click.option(
    "--signature",
    "-s",
    metavar="FILE.sig",
    type=click.Path(),
    help="The predicates that policies use: name(attribute: type, ...), one or more per line.",
)
NEGATE = click.option("--negate", is_flag=True, help="Rows of what satisfies the negation of a policy.")
POLICY_OPTIONS = (
    NEGATE,
    click.option(
        "--open-end",
        is_flag=True,
        help="The input may go on: time-points at its end are left undecided where that would matter.",
    ),
    *map(option, ("verdicts", "mode", "time_points")),
    click.option("--ignore-unknown", is_flag=True, help="Count events that the signature does not declare, and go on."),
)


@click.command(
    "monitor",
    short_help="Find where policies are broken, and run stream specifications.",
    epilog="""\b
    Examples:
      hamlet monitor reported.mfotl --signature bank.sig --input bank.log
      hamlet monitor reported.mfotl --signature bank.sig --input bank.parquet --output - --output-format monpoly
      hamlet monitor a.mfotl b.mfotl --signature bank.sig --input bank.csv --output violations
      hamlet monitor drone.lola --input drone.csv --values --output -
    """,
)
@FILES
@with_options(
    SIGNATURE,
    input_option(required=True, monpoly=True),
    *POLICY_OPTIONS,
    click.option("--stop-at-first", is_flag=True, help="Give the first row of a policy, and stop."),
    click.option("--fail-on-rows", is_flag=True, help="Exit with code 3 where a row was given."),
    click.option(
        "--every-time-point",
        is_flag=True,
        help="With --output-format monpoly: time-points without rows, too, in the form of monpoly -verbose.",
    ),
    click.option(
        "--save",
        metavar="FILE",
        type=click.Path(),
        help="Keep the state of policies at the end of the input, which goes on in another one.",
    ),
    click.option("--load", metavar="FILE", type=click.Path(), help="Go on from the state that --save has kept."),
    click.option("--values", is_flag=True, help="Rows of the output streams of specifications, too."),
    click.option("--start", metavar="TIME", help="When the clocks of specifications start: 0, or a time-stamp."),
    *RTLOLA_OPTIONS,
    click.option(
        "--max-deadlines",
        metavar="N",
        type=click.IntRange(min=1),
        help="Most deadlines of a specification that are run between two events (default: 10,000,000).",
    ),
    click.option(
        "--workload",
        "trends",
        metavar="W.sase",
        type=click.Path(),
        help="Trend queries whose rows specifications read, as inputs named query::column, at window_end.",
    ),
    OUTPUT,
    click.option("--output-format", type=click.Choice(FORMATS), help="Format of the rows; monpoly is MonPoly's lines."),
    WHERE,
    *PERIOD_OPTIONS,
    click.option(
        "--limit", metavar="N", type=click.IntRange(min=0), help="At most N rows in a table; files get all rows."
    ),
    max_memory_option(),
    *LATENESS,
    click.option(
        "--report",
        metavar="FILE.html",
        type=click.Path(),
        help="Write a page about the run: rows over time; for policies the most frequent values, for "
        "specifications (with --values) their streams as lines.",
    ),
    *COLUMN_OPTIONS,
    *READING_OPTIONS,
    *LIVE_OPTIONS,
    click.option("--overwrite", is_flag=True, help="Replace an output directory that is not empty."),
    QUIET,
)
def command(
    files: tuple[str, ...],
    outputs: tuple[str, ...],
    output_format: str | None,
    limit: int | None,
    overwrite: bool,
    fail_on_rows: bool,
    **options: Any,
) -> int:
    """Monitor events: each FILE is a policy (.mfotl) or a stream specification (.lola)."""
    live, output = live_of(options), outputs[0] if outputs else None
    source, form = options["source"], options["input_format"]
    whole = options["report"] is not None or options["trends"] is not None or limit is not None
    whole = whole or any(options[name] for name in ("every_time_point", "load", "save"))
    goes_on = is_live(source, outputs, live, form, whole)
    grouped = by_notation(files)
    refuse_unheard(grouped, live=goes_on)
    by_other_names(options)
    settings = settings_of(options)
    if settings.report is not None and len(grouped) > 1:
        raise click.UsageError("--report is a page about policies or about specifications; monitor them in two calls")
    kept = [*files, *(each for each in (*inputs_of(settings.source), settings.signature) if each is not None)]
    if settings.save:
        check_place(settings.save, "--save", kept, example="policies.state")
    if goes_on:
        more = {name: options.get(name) or None for name in ("every_time_point", "load", "save")}
        own = {name.replace("_", "-"): getattr(settings, name, more[name]) or None for name in more}
        refuse_live({"report": settings.report, "workload": settings.trends, "limit": limit, **own})
        destinations = Destinations(outputs, output_format, overwrite, kept)
        code, rows = _follow(grouped, settings, live, destinations)
        return ROWS_FOUND if fail_on_rows and rows and not code else code
    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=kept)
        check_beside(settings.report, "--report", str(output))
    started = time.perf_counter()
    prepared = [notation_of(extension).prepare(paths, settings) for extension, paths in grouped.items()]
    parts = [part for each in prepared for part in each.parts]
    stats: list[Mapping[str, Any]] = []
    with sink_of(parts, output, output_format, SHOWN_ROWS if limit is None else limit, overwrite, kept) as sink:
        first = 0
        for each in prepared:
            with progress_bar(settings.quiet, each.rows) as progress:
                stats.append(
                    each.run(lambda place, rows, first=first: sink.write(first + place, rows), progress)  # type: ignore[misc]
                )
            first += len(each.parts)
    sys.stdout.flush()  # before the summary
    seconds = time.perf_counter() - started
    say_notes((note for each in stats for note in each.get("notes", ())), settings.quiet)
    if not settings.quiet:
        click.echo(summary_line({**together(stats), "rows": sink.count}, seconds), err=True)
    return ROWS_FOUND if fail_on_rows and sink.count else 0


def _follow(
    grouped: Mapping[str, list[str]], settings: Settings, live: Live, destinations: Destinations
) -> tuple[int, int]:
    """Monitor a stream that does not end."""
    from hamlet.cli.live import drive  # with all that reads and writes streams

    if destinations.output_format == "monpoly" and (list(grouped) != [".mfotl"] or settings.verdicts != "satisfied"):
        raise click.UsageError("--output-format monpoly writes what satisfies a policy; choose json or csv")

    def tenants(states: States) -> list[Tenant]:
        return [
            each
            for extension, paths in grouped.items()
            for each in notation_of(extension).tenants(paths, settings, live, states)
        ]

    columns = settings.columns
    unit = columns.get("time_unit") or "s"
    return drive(
        tenants,
        settings.source,
        destinations,
        live,
        bad_rows=columns.get("bad_rows") or "error",
        lines=LineForm(columns.get("input_format"), called(columns.get("time_column")), unit, live.names),
        quiet=settings.quiet,
    )
