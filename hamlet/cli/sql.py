"""``hamlet sql``, and what other commands do with files of SQL."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from hamlet.cli.lasting import lasting
from hamlet.cli.notations import Part, Settings, extension_of
from hamlet.cli.options import QUIET, Input, inputs_of, with_options
from hamlet.cli.progress import summary_line
from hamlet.cli.sinks import DirectorySink, Sink, StreamSink, TableSink
from hamlet.errors import DataError, Diagnostic, OptionError, UnsupportedError
from hamlet.output.html import SHOWN_ROWS
from hamlet.output.place import check_destination

EXTENSION = ".sql"
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
        found = str(lasting(path, input_format))
        if match:
            named.setdefault(match[1], []).append(found)
        else:
            unnamed.append(found)
    if named and unnamed:
        raise OptionError(f"some inputs have a name and {unnamed[0]} has none; write --input name={unnamed[0]}")
    return named or unnamed or None


def text_of(path: str) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


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
    options: Mapping[str, Any],
) -> None:
    """Run statements, and print or write their rows."""
    from hamlet.patterns.match.run import sql  # brings in duckdb and sqlglot

    if output is None and output_format is not None:
        raise click.UsageError("--output-format needs --output: a directory, or - for standard output")
    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=keep)
    started = time.perf_counter()
    given = {name: value for name, value in options.items() if value is not None}
    results = sql(text, tables, source=source, **given)
    several = len(results.by_statement) > 1
    parts = [
        Part(name=each.name, kind="query", schema=each.table.schema, named=several, title="row")
        for each in results.by_statement
    ]
    with _sink(parts, output, output_format, SHOWN_ROWS if limit is None else limit, overwrite, keep) as sink:
        for place, each in enumerate(results.by_statement):
            table = each.table if limit is None else each.table.slice(0, limit)
            for batch in table.to_batches():
                sink.write(place, batch)
    sys.stdout.flush()  # before the summary
    if not quiet:
        for line in results.warnings:
            click.echo(f"note: {line}", err=True)
        click.echo(summary_line({"rows": len(results)}, time.perf_counter() - started), err=True)


def _sink(
    parts: list[Part], output: str | None, output_format: str | None, limit: int, overwrite: bool, keep: list[str]
) -> Sink:
    if output is None:
        return TableSink(parts, limit)
    if output == "-":
        return StreamSink(parts, output_format or "json")
    return DirectorySink(parts, output, output_format or "parquet", overwrite, keep)


def check(path: str, settings: Settings) -> str:
    """What is said of a file without errors."""
    from hamlet.patterns.match.explain import check as checked

    found = checked(text_of(path), tables_of(settings.source, settings.columns.get("input_format")), source=path)
    return f"{path}: {len(found)} row pattern{'s' * (len(found) != 1)}, no errors"


def warnings(path: str, settings: Settings) -> Sequence[Diagnostic]:  # noqa: ARG001
    """What is allowed in a file but probably not meant: nothing."""
    return ()


def explain(path: str, settings: Settings, shown_as: str, html: str | None) -> None:  # noqa: ARG001
    """Show how row patterns will be matched."""
    if html is not None or shown_as != "text":
        raise UnsupportedError("row patterns are explained as text; leave --html and --format out")
    from hamlet.patterns.match.explain import explain as explained

    click.echo(explained(text_of(path), source=path))


@click.command(
    "sql",
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
        multiple=True,
        help="A table: a Parquet, CSV or JSON lines file, a folder of them, or a pattern such as 'logs/*.csv'; may be "
        "repeated. Without a name it is the one table that the text reads and does not define. - is standard input.",
    ),
    click.option("--input-format", type=click.Choice(["parquet", "csv", "json"]), help="Format of standard input."),
    click.option(
        "--output",
        "-o",
        metavar="DIR|-",
        help="A new directory (parquet unless --output-format says otherwise), or - for standard output (json). "
        "Without, tables of the first 20 rows are printed.",
    ),
    click.option("--output-format", type=click.Choice(["json", "csv", "parquet"]), help="Format of the rows."),
    click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most N rows of each statement."),
    *SQL_OPTIONS,
    click.option("--overwrite", is_flag=True, help="Replace an output directory that is not empty."),
    QUIET,
)
def command(
    text: str,
    source: tuple[str, ...],
    input_format: str | None,
    output: str | None,
    output_format: str | None,
    limit: int | None,
    overwrite: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run SQL in which tables are followed by row patterns (MATCH_RECOGNIZE); DuckDB runs what is around them."""
    tables = tables_of(list(source), input_format)
    run_text(
        text,
        "<sql>",
        tables,
        output,
        output_format,
        limit=limit,
        overwrite=overwrite,
        quiet=quiet,
        keep=[match[2] if (match := _NAMED.fullmatch(each)) else each for each in source],
        options=options,
    )
