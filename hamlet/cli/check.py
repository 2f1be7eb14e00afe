"""``hamlet check``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.loading import load
from hamlet.cli.monitor import NEGATE, SIGNATURE
from hamlet.cli.notations import extension_of, notation_of, only_for, refuse_timezone, settings_of
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    FILE,
    PERIOD_OPTIONS,
    QUIET,
    READING_OPTIONS,
    TIMEZONE,
    WHERE,
    Input,
    input_option,
    with_options,
)
from hamlet.cli.sql import check_file, is_sql
from hamlet.engine.where import chosen_events
from hamlet.findings import Watch, found_by, see_unread
from hamlet.planner.skipping import leave_out_useless


@click.command(
    "check",
    short_help="Report all errors of a workload, a policy or a specification.",
    epilog="""\b
    Examples:
      hamlet check trips.sase
      hamlet check trips.sase --input trips.parquet --type-column event
      hamlet check reported.mfotl --signature bank.sig
    """,
)
@FILE
@with_options(
    SIGNATURE,
    NEGATE,
    input_option(monpoly=True),
    WHERE,
    *PERIOD_OPTIONS,
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
    QUIET,
)
def command(
    workload: str,
    signature: str | None,
    negate: bool,
    source: Input | None,
    where: str | None,
    since: str | None,
    until: str | None,
    quiet: bool,
    **columns: Any,
) -> None:
    """Report all errors of a file, with the input's columns if there is an input.

    A workload of trend queries (.sase), a policy (.mfotl; with --negate whether its negation can be monitored) or a
    stream specification (.lola). With a workload, the input is read until every type, condition and key of it has
    occurred; notes say what never does.
    """
    if is_sql(workload):
        check_file(workload, source, quiet, columns["input_format"])
        return
    extension = extension_of(workload)
    only_for([extension or ""], {"signature": signature, "negate": negate}, ".mfotl", "policies")
    refuse_unheard([extension or ".sase"])
    if extension is not None:
        refuse_timezone(workload, columns)
        own = {"signature": signature, "negate": negate, "source": source, "quiet": quiet}
        own |= {"where": where, "since": since, "until": until}
        said = notation_of(extension).check(workload, settings_of({**own, **columns}))
    else:
        checked, events = load(workload, source, quiet, columns, all_errors=True)
        events = events if events is None else chosen_events(events, since, until, where)
        if events is not None and not quiet:
            watch = Watch(checked, events.schema)
            unread = leave_out_useless(checked, events)
            watch.see_some(events.batches([name for name in watch.columns if name in events.schema.columns]))
            see_unread(watch, events, unread)
            for sentence in [*events.notes(), *found_by(watch)]:
                click.echo(f"note: {sentence}", err=True)
        count = len(checked.names)
        said = f"{workload}: {count} quer{'y' if count == 1 else 'ies'}, no errors"
    if not quiet:
        click.echo(said)
