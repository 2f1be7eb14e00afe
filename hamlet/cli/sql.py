"""``hamlet sql``, and what other commands do with files of SQL."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.lasting import lasting, told
from hamlet.cli.live_options import LIVE_OPTIONS, Destinations, Live, States, is_live, live_of, refuse_live
from hamlet.cli.notations import Part, Settings, extension_of, say_notes
from hamlet.cli.options import (
    LATENESS,
    OUTPUT,
    QUIET,
    READING_OPTIONS,
    REPORT,
    Input,
    Place,
    inputs_of,
    max_memory_option,
    with_options,
)
from hamlet.cli.progress import summary_line
from hamlet.cli.sinks import sink_of
from hamlet.errors import DataError, Diagnostic, OptionError, UnsupportedError
from hamlet.frontend.files import text_of_file
from hamlet.frontend.time_column import called
from hamlet.input.live.lines import LineForm
from hamlet.output.html import SHOWN_ROWS
from hamlet.output.place import check_destination

if TYPE_CHECKING:
    import pyarrow as pa

    from hamlet.output.result import Part as Rows

EXTENSION = ".sql"
_COMMENT = re.compile(r"--[^\s=]*\s")
_NAMED = re.compile(r"([^\W\d]\w*)=(.+)", re.DOTALL)
DIALECTS = ("duckdb", "trino", "snowflake", "oracle", "flink", "bigquery", "spark")
SQL_OPTIONS = (
    click.option(
        "--dialect",
        type=click.Choice(DIALECTS),
        default="duckdb",
        show_default=True,
        help="What the SQL is written in.",
    ),
    click.option(
        "--allow-files", is_flag=True, help="Let statements read and write files that were not given as --input."
    ),
    click.option(
        "--max-steps",
        metavar="N",
        type=click.IntRange(min=1),
        help="Most steps of one start of a pattern whose conditions read labels (default: 1,000,000).",
    ),
)


def is_sql(path: str) -> bool:
    """Whether a file is one of SQL."""
    return extension_of(path) == EXTENSION


def tables_of(source: Input | None, input_format: str | None = None) -> Any:
    """Tables from ``--input [name=]PATH``: by name, or the paths of the one table without a name."""
    named: dict[str, list[str]] = {}
    unnamed: list[str] = []
    for each in inputs_of(source):
        match = _NAMED.fullmatch(each)
        path = match[2] if match else each
        found = [told(each, input_format) for each in inputs_of(lasting(path, input_format))]
        if not found:
            raise DataError(f"{'standard input' if path == '-' else path} is empty, and a table has columns")
        if match:
            named.setdefault(match[1], []).extend(found)
        else:
            unnamed += found
    if named and unnamed:
        raise OptionError(f"some inputs have a name and {unnamed[0]} has none; write --input name={unnamed[0]}")
    return named or unnamed or None


def run_text(
    text: str,
    source: str,
    tables: Any,
    output: str | None,
    output_format: str | None,
    *,
    limit: int | None,
    overwrite: bool,
    quiet: bool,
    keep: list[str],
    report: str | None,
    options: Mapping[str, Any],
) -> None:
    """Run statements, and print or write their rows."""
    from hamlet.patterns.match.run import sql  # brings in duckdb and sqlglot

    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=keep)
    page = None
    if report is not None:
        from hamlet.pages.matches import MatchReport  # brings in jinja2, which nothing else needs

        page = MatchReport(text, source, report, keep)
    started = time.perf_counter()
    given = {name: value for name, value in options.items() if value is not None}
    results = sql(text, tables, source=source, **given)
    several = len(results.parts) > 1
    parts = [
        Part(name=each.name, kind="query", made=partial(_schema_of, each), named=several, title="row")
        for each in results.parts
    ]
    with sink_of(parts, output, output_format, SHOWN_ROWS if limit is None else limit, overwrite, keep) as sink:
        for place, each in enumerate(results.parts):
            table = each.table() if limit is None else each.table().slice(0, limit)
            for batch in table.to_batches():
                sink.write(place, batch)
    sys.stdout.flush()  # before the summary
    seconds = time.perf_counter() - started
    if page is not None:
        page.write(results, tables, given, seconds)
    if not quiet:
        say_notes(results.warnings, quiet)
        click.echo(summary_line({"rows": len(results)}, seconds), err=True)


def _schema_of(part: Rows) -> pa.Schema:
    return part.table().schema


def run_stream(
    text: str,
    source: str,
    given: Input | None,
    live: Live,
    destinations: Destinations,
    options: Mapping[str, Any],
) -> int | None:
    """Run statements over an input that does not end; gives the exit code.

    None says that a pipe has to be read to its end, because a statement needs all rows: nothing was read then.
    """
    from hamlet.patterns.match.leading_time import leading_column, reads_table
    from hamlet.patterns.match.run import parsed, tables_read  # bring in duckdb and sqlglot
    from hamlet.patterns.match.streamed import needs_all_rows
    from hamlet.patterns.match.tenant import PatternTenant, statement_text

    script = parsed(text, options["dialect"], source)
    inputs, name = _one_table(given)
    hindered = needs_all_rows(script)
    if hindered is not None:
        if is_live(inputs, destinations.outputs, live, options["input_format"], whole=True):
            raise hindered
        return None
    read = tables_read(script)
    if len(read) != 1 or (name is not None and name.lower() != read[0].lower()):
        raise OptionError(f"a stream is one table, {name or 'without a name'}, and the text reads {', '.join(read)}")
    names = ("dialect", "lateness", "late", "max_steps", "max_memory")
    chosen = {each: options[each] for each in names if options.get(each) is not None}
    texts = [statement_text(script, each) for each in script.statements]
    plain = [all(reads_table(script.text, clause) for clause in each.clauses) for each in script.statements]
    times = [leading_column([each]) if whole else None for each, whole in zip(script.statements, plain, strict=True)]

    def tenants(states: States) -> list[PatternTenant]:
        return [
            PatternTenant(
                each,
                f"q{place}",
                {**chosen, "source": source},
                named=len(texts) > 1,
                names=live.names,
                delimiter=options.get("delimiter"),
                saved=next(states, None),
                time=time,
            )
            for place, (each, time) in enumerate(zip(texts, times, strict=True), 1)
        ]

    column = leading_column(script.statements)
    lines = LineForm(options["input_format"], called(None) if column is None else (column,), "s", live.names)
    from hamlet.cli.live import drive  # with all that reads and writes streams

    code, _ = drive(
        tenants,
        inputs,
        destinations,
        live,
        bad_rows=options.get("bad_rows") or "error",
        lines=lines,
        quiet=options["quiet"],
    )
    return code


def _one_table(given: Input | None) -> tuple[list[str], str | None]:
    """The inputs without the name of their table, and that name."""
    found, names = [], set()
    for each in inputs_of(given):
        match = _NAMED.fullmatch(each)
        found.append(match[2] if match else each)
        names.add(match[1] if match else None)
    if len(names) > 1:
        raise OptionError("the inputs of a stream are one table; give all of them one name, or none")
    return found, next(iter(names), None)


def goes_on(given: Input | None, outputs: Sequence[str], live: Live, input_format: str | None, whole: bool) -> bool:
    """Whether an input, or an output, is one that does not end."""
    inputs = [match[2] if (match := _NAMED.fullmatch(each)) else each for each in inputs_of(given)]
    return is_live(inputs, outputs, live, input_format, whole)


def check(path: str, settings: Settings) -> str:
    """What is said of a file without errors."""
    from hamlet.patterns.match.explain import check as checked

    found = checked(
        text_of_file(path, "SQL text"), tables_of(settings.source, settings.columns.get("input_format")), source=path
    )
    return f"{path}: {len(found)} row pattern{'s' * (len(found) != 1)}, no errors"


def warnings(path: str, settings: Settings) -> Sequence[Diagnostic]:  # noqa: ARG001
    """What is allowed in a file but probably not meant: nothing."""
    return ()


def explain(path: str, settings: Settings, shown_as: str, html: str | None) -> None:  # noqa: ARG001
    """Show how row patterns will be matched."""
    if shown_as != "text":
        raise UnsupportedError("row patterns are explained as text or, with --html, as a page; leave --format out")
    if html is not None:
        from hamlet.pages.row_patterns import write_explanation  # brings in jinja2

        write_explanation(text_of_file(path, "SQL text"), path, html)
        return
    from hamlet.patterns.match.explain import explain as explained

    click.echo(explained(text_of_file(path, "SQL text"), source=path))


class _Sql(click.Command):
    """A command whose argument may begin with a comment, as ``$(cat FILE)`` does, and is no option then."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f" {each}" if _COMMENT.match(each) else each for each in args])


@click.command(
    "sql",
    cls=_Sql,
    short_help="Run SQL with row patterns (MATCH_RECOGNIZE).",
    epilog="""\b
    Examples:
      hamlet sql "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n
                  PATTERN (up+) DEFINE up AS price > PREV(price))" --input ticks=ticks.parquet
      hamlet sql "$(cat visits.sql)" --input events=events.csv --input users=users.parquet --output -
      hamlet run visits.sql --input events.csv --output results
    """,
)
@click.argument("text", metavar="SQL")
@with_options(
    click.option(
        "--input",
        "-i",
        "source",
        metavar="[NAME=]PATH|-",
        type=Place(),
        multiple=True,
        help="A table: a Parquet, CSV or JSON lines file, a folder of them, or a pattern such as 'logs/*.csv'; may be "
        "repeated. Without a name it is the one table that the text reads and does not define. - is standard input.",
    ),
    click.option(
        "--input-format",
        type=click.Choice(["parquet", "csv", "json", "arrow"]),
        help="Format of the inputs; by default the one of a name, and of pipes and sockets what their first bytes say. "
        "arrow is an IPC stream.",
    ),
    OUTPUT,
    click.option("--output-format", type=click.Choice(["json", "csv", "parquet"]), help="Format of the rows."),
    click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most N rows of each statement."),
    *SQL_OPTIONS,
    REPORT,
    max_memory_option(),
    *READING_OPTIONS,
    *LATENESS,
    *LIVE_OPTIONS,
    click.option("--overwrite", is_flag=True, help="Replace an output directory that is not empty."),
    QUIET,
)
def command(
    text: str,
    source: tuple[str, ...],
    input_format: str | None,
    outputs: tuple[str, ...],
    output_format: str | None,
    limit: int | None,
    overwrite: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Run SQL in which tables are followed by row patterns (MATCH_RECOGNIZE); DuckDB runs what is around them."""
    if text.endswith(EXTENSION) and len(text.split()) == 1:
        missing = "" if Path(text).is_file() else ", which is not there"
        raise click.UsageError(f"{text} is a file{missing}; hamlet run {text} runs it")
    options |= {"input_format": input_format, "overwrite": overwrite, "quiet": quiet}
    return run_statements(text, "<sql>", list(source), outputs, output_format, limit, options)


def run_statements(
    text: str,
    source: str,
    given: Input | None,
    outputs: Sequence[str],
    output_format: str | None,
    limit: int | None,
    options: dict[str, Any],
) -> int:
    """Run statements over files, or over streams that go on."""
    live = live_of(options)
    keep = [match[2] if (match := _NAMED.fullmatch(each)) else each for each in inputs_of(given)]
    whole = limit is not None or options["report"] is not None
    if goes_on(given, outputs, live, options["input_format"], whole):
        refuse_unheard([EXTENSION], live=True)
        refuse_live({"limit": limit, "report": options["report"]})
        destinations = Destinations(outputs, output_format, options["overwrite"], keep)
        code = run_stream(text, source, given, live, destinations, options)
        if code is not None:
            return code
    refuse_unheard([EXTENSION])
    run_text(
        text,
        source,
        tables_of(given, options["input_format"]),
        outputs[0] if outputs else None,
        output_format,
        limit=limit,
        overwrite=options["overwrite"],
        quiet=options["quiet"],
        keep=keep,
        report=options["report"],
        options={
            name: options.get(name) for name in ("dialect", "allow_files", "max_steps", "threads", "missing_columns")
        },
    )
    return 0
