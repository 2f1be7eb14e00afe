"""``hamlet why``: evidence for a row."""

from __future__ import annotations

import json
from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.monitor import POLICY_OPTIONS, SIGNATURE
from hamlet.cli.notations import QUERIES, extension_of
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    PERIOD_OPTIONS,
    READING_OPTIONS,
    TIMEZONE,
    Input,
    input_option,
    inputs_of,
    option,
    with_options,
)
from hamlet.errors import DataError, OptionError, OutputError
from hamlet.output.place import check_place, write_whole
from hamlet.why.evidence import Evidence

_HINT = 'hint: --row \'{"query": "q1", "window_start": 0}\''


@click.command(
    "why",
    short_help="Give evidence for a row, or for its absence.",
    epilog="""\b
    Examples:
      hamlet why trips.sase --input trips.parquet --row '{"query": "q1", "window_start": 0, "district": "Soho"}'
      hamlet why reported.mfotl -s bank.sig --input bank.log --row '{"time_point": 0, "u": "ann", "a": 2000}' --check
    """,
)
@click.argument("work", type=click.Path(), metavar="WORKLOAD.sase|POLICY.mfotl|SPEC.lola|TEXT.sql")
@with_options(
    SIGNATURE,
    input_option("", metavar="PATH", required=True, monpoly=True),
    click.option("--row", required=True, metavar="JSON", help="The row, or enough of its columns to name one."),
    click.option("--check", "checked", is_flag=True, help="Check the evidence by the definitions before it is shown."),
    click.option(
        "--format",
        "shown_as",
        type=click.Choice(["text", "json", "html"]),
        default="text",
        show_default=True,
        help="As text, as one JSON object, or as a page.",
    ),
    click.option("--output", "-o", metavar="FILE", type=click.Path(), help="Where it goes; else to standard output."),
    click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(min=1),
        default=1000,
        show_default=True,
        help="Most steps of trends that are listed, and most steps of a window.",
    ),
    *POLICY_OPTIONS,
    click.option("--start", metavar="TIME", help="When the clocks of a specification start."),
    *PERIOD_OPTIONS,
    option("null_keys"),
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
)
def command(
    work: str,
    signature: str | None,
    source: Input,
    row: str,
    checked: bool,
    shown_as: str,
    output: str | None,
    limit: int,
    **options: Any,
) -> None:
    """Say why a row is in the result, or is not: the events behind it, in a form that can be checked.

    Exit codes are those of run; --check ends with 2 where the evidence is not accepted.
    """
    refuse_unheard([extension_of(work)])
    wanted = _row(row)
    if any(each.rpartition("=")[2] == "-" for each in inputs_of(source)):
        raise OptionError("--input - is standard input, which can be read once; evidence needs a file")
    if output is not None:
        read = [each for each in (work, signature, *inputs_of(source)) if each is not None]
        check_place(output, "--output", read, example="evidence.html")
    evidence = _evidence(work, signature, source, wanted, limit, options, checked)
    text = {"text": evidence.text, "json": evidence.json, "html": evidence.html}[shown_as]()
    if checked:
        left = len(evidence.data.get("unchecked", ()))
        but = f", but for {left} {'node' if left == 1 else 'nodes'} that it lists as unchecked" if left else ""
        click.echo(f"the evidence was checked{but}", err=True)
    if output is None:
        click.echo(text)
        return
    try:
        write_whole(output, f"{text}\n".encode())
    except OSError as error:
        raise OutputError(f"{output} cannot be written: {error.strerror or error}") from error


def _row(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise OptionError(f'--row is no JSON: {error}\nhint: --row \'{{"query": "q1", "window_start": 0}}\'') from None
    if not isinstance(found, dict):
        raise OptionError('--row is no JSON object\nhint: --row \'{"query": "q1", "window_start": 0}\'')
    return found


def _evidence(
    work: str,
    signature: str | None,
    source: Input,
    row: dict[str, Any],
    limit: int,
    options: dict[str, Any],
    checked: bool,
) -> Evidence:
    """Evidence of the notation that the file's name tells, checked if that is asked for."""
    from hamlet.checker import check

    extension = extension_of(work)
    own = {name: value for name, value in options.items() if value is not None}
    if extension == ".mfotl":
        from hamlet.policies import Policy
        from hamlet.why.policies import of_policy

        if signature is None:
            raise click.UsageError("policies need --signature FILE.sig, which names their predicates")
        for name in ("start", "timezone", "null_keys"):
            own.pop(name, None)
        policy = Policy.from_file(work, signature)
        evidence = of_policy(policy, source, row, **own)
        if checked:
            for name in ("verdicts", "open_end", "mode"):
                own.pop(name)
            check(policy.text, source, evidence, signature=policy.signature.text, **own)
        return evidence
    if extension == ".lola":
        from hamlet.streams import Specification
        from hamlet.why.values.why import READING, of_specification

        names = [name for name in (*READING, "since", "until", "start") if name in own]
        chosen = {name: own[name] for name in names if name != "time_column" or own[name] != "time"}
        specification = Specification.from_file(work)
        evidence = of_specification(specification, source, row, limit=limit, **chosen)
        if checked:
            check(specification.text, source, evidence, **chosen)
        return evidence
    if work.lower().endswith(".sql"):
        from hamlet.cli.sql import tables_of
        from hamlet.frontend.files import text_of_file
        from hamlet.why.matches import of_statement

        text, tables = text_of_file(work, "SQL text"), tables_of(source, own.get("input_format"))
        evidence = of_statement(text, tables, row, source=work)
        if checked:
            check(text, tables, evidence)
        return evidence
    if extension == QUERIES:
        from hamlet.planner.workload import Workload
        from hamlet.why.trends.why import of_query

        for name in ("negate", "open_end", "verdicts", "mode", "time_points", "ignore_unknown", "start"):
            own.pop(name, None)
        workload = Workload.from_file(work)
        evidence = of_query(workload, source, row, limit=limit, **own)
        if checked:
            check(workload.analysis.text.text, source, evidence, **own)
        return evidence
    raise DataError(
        f"{work}: evidence is given for queries (.sase), policies (.mfotl), specifications (.lola) and SQL (.sql)"
    )
