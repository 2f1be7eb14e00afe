"""``hamlet check``."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from typing import Any

import click

from hamlet.cli import machine
from hamlet.cli.heard import refuse_unheard
from hamlet.cli.monitor import NEGATE, SIGNATURE
from hamlet.cli.notations import Settings, extension_of, notation_of, settings_of
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    FILES,
    PERIOD_OPTIONS,
    QUIET,
    READING_OPTIONS,
    TIMEZONE,
    WHERE,
    Input,
    input_option,
    with_options,
)
from hamlet.errors import HamletError


@click.command(
    "check",
    short_help="Report all errors of workloads, policies and specifications.",
    epilog="""\b
    Examples:
      hamlet check trips.sase
      hamlet check trips.sase --input trips.parquet --type-column event
      hamlet check reported.mfotl --signature bank.sig
      hamlet check *.sase *.lola
    """,
)
@FILES
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
        help="What to print: a sentence, or all errors and warnings as one JSON document for programs, a list for "
        "several files.",
    ),
    QUIET,
)
def command(
    workloads: tuple[str, ...],
    signature: str | None,
    negate: bool,
    source: Input | None,
    where: str | None,
    since: str | None,
    until: str | None,
    quiet: bool,
    shown_as: str,
    **columns: Any,
) -> int:
    """Report all errors of each file, with the input's columns if there is an input.

    A workload of trend queries (.sase), a policy (.mfotl; with --negate whether its negation can be monitored) or a
    stream specification (.lola). With a workload, the input is read until every type, condition and key of it has
    occurred; notes say what never does.
    """
    given: dict[str, Any] = {"signature": signature, "negate": negate, "source": source}
    given |= {"where": where, "since": since, "until": until, **columns}
    refuse_unheard(map(extension_of, workloads))
    if source == "-" and len(workloads) > 1:
        raise click.UsageError("standard input can be read once, and each file is checked with it; give --input a file")
    settings = settings_of({**given, "quiet": quiet})
    if shown_as == "json":
        documents = [_document(each, replace(settings, quiet=False)) for each in workloads]
        one = documents[0] if len(documents) == 1 else documents
        click.echo(json.dumps(one, ensure_ascii=False, indent=2))
        return 2 if any(each["errors"] for each in documents) else 0
    code = 0
    for each in workloads:
        try:
            said = notation_of(extension_of(each)).check(each, settings)
        except HamletError as error:
            click.echo(machine.shown(error), err=True)
            code = 2
        else:
            if not quiet and said is not None:
                click.echo(said)
    return code


def _document(workload: str, settings: Settings) -> dict[str, Any]:
    """All errors and warnings of a file."""
    errors, notes, notation = [], io.StringIO(), notation_of(extension_of(workload))
    try:
        with contextlib.redirect_stderr(notes):
            notation.check(workload, settings)
    except HamletError as error:
        errors = machine.mistakes(error)
    warnings = [] if errors else [machine.diagnostic(each) for each in notation.warnings(workload, settings)]
    said = [line.removeprefix("note: ") for line in notes.getvalue().splitlines() if line.startswith("note: ")]
    return {"file": workload, "errors": errors, "warnings": warnings, "notes": said}
