"""``hamlet check``."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from typing import Any

import click

from hamlet.cli import machine
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
from hamlet.errors import Diagnostic, HamletError
from hamlet.findings import Watch, found_by, see_unread
from hamlet.planner.skipping import leave_out_useless
from hamlet.planner.workload import Workload


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
    click.option(
        "--format",
        "shown_as",
        type=click.Choice(["text", "json"]),
        default="text",
        help="What to print: a sentence, or all errors and warnings as one JSON document for programs.",
    ),
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
    shown_as: str,
    **columns: Any,
) -> None:
    """Report all errors of a file, with the input's columns if there is an input.

    A workload of trend queries (.sase), a policy (.mfotl; with --negate whether its negation can be monitored) or a
    stream specification (.lola). With a workload, the input is read until every type, condition and key of it has
    occurred; notes say what never does.
    """
    given: dict[str, Any] = {"signature": signature, "negate": negate, "source": source}
    given |= {"where": where, "since": since, "until": until, **columns}
    if shown_as == "json":
        _as_document(workload, given)
        return
    said = _checked(workload, quiet, **given)
    if not quiet and said is not None:
        click.echo(said)


def _as_document(workload: str, given: dict[str, Any]) -> None:
    """Print all errors and warnings as one JSON document; ends with 2 where there are errors."""
    errors, notes = [], io.StringIO()
    try:
        with contextlib.redirect_stderr(notes):
            _checked(workload, False, **given)
    except HamletError as error:
        errors = machine.mistakes(error)
    warnings = [] if errors else [machine.diagnostic(each) for each in _warnings(workload, given["signature"])]
    said = [line.removeprefix("note: ") for line in notes.getvalue().splitlines() if line.startswith("note: ")]
    document = {"file": workload, "errors": errors, "warnings": warnings, "notes": said}
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    if errors:
        click.get_current_context().exit(2)


def _warnings(path: str, signature: str | None) -> Sequence[Diagnostic]:
    """What is allowed in a file but probably not meant."""
    if is_sql(path):
        return ()
    match extension_of(path):
        case ".mfotl":
            from hamlet.policies import Policy

            return Policy.from_file(path, signature or "").warnings
        case ".lola":
            from hamlet.streams import Specification

            return Specification.from_file(path).warnings
    return Workload.from_file(path).warnings


def _checked(
    workload: str,
    quiet: bool,
    *,
    signature: str | None,
    negate: bool,
    source: Input | None,
    where: str | None,
    since: str | None,
    until: str | None,
    **columns: Any,
) -> str | None:
    """Check a file; gives what is said of one without errors."""
    if is_sql(workload):
        check_file(workload, source, quiet, columns["input_format"])
        return None
    extension = extension_of(workload)
    only_for([extension or ""], {"signature": signature, "negate": negate}, ".mfotl", "policies")
    refuse_unheard([extension or ".sase"])
    if extension is not None:
        refuse_timezone(workload, columns)
        own = {"signature": signature, "negate": negate, "source": source, "quiet": quiet}
        own |= {"where": where, "since": since, "until": until}
        return notation_of(extension).check(workload, settings_of({**own, **columns}))
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
    return f"{workload}: {count} quer{'y' if count == 1 else 'ies'}, no errors"
