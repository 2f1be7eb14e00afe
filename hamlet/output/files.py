"""Result files: JSON lines, CSV and Parquet, in a folder per query or on one text stream.

A folder of results is written under a temporary name beside its place and renamed when all of it is there, so a run
that fails leaves nothing that looks complete. Inside ``DIR/query=<name>/`` the files do not repeat the query column:
Spark, DuckDB and pyarrow add it from the folder's name, and pyarrow refuses to read it twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from hamlet.errors import OptionError, one_of
from hamlet.language.schema import Clock
from hamlet.output.place import check_destination, folder_name, staged
from hamlet.output.query_part import QueryPart, query_rows
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.query_text import EDGES, query_text
from hamlet.output.result import Results
from hamlet.output.tables import CountTypes, count_infinite, result_schema, to_arrow, unsettled

FORMATS = ("json", "csv", "parquet")


def check_format(output_format: str, to_stream: bool = False) -> str:
    """The output format, if it is one that can go there; raises OptionError if not."""
    if output_format not in FORMATS:
        raise OptionError(f"output format {output_format!r} is unknown; it must be {one_of(FORMATS)}")
    if to_stream and output_format == "parquet":
        raise OptionError("Parquet cannot be written to standard output; choose json or csv, or a directory")
    return output_format


def write(
    results: Results,
    directory: str | os.PathLike[str],
    output_format: str = "parquet",
    overwrite: bool = False,
    keep: Iterable[str] = (),
) -> Path:
    """Write all results to ``directory/query=<name>/part-00000.<format>``, names percent-encoded.

    A query without rows has its folder too: a Parquet file with the schema, a CSV file with the header, an empty JSON
    file.

    Parameters
    ----------
    results : Results
        The rows of all queries.
    directory : path
        Must not exist, or be empty, unless `overwrite` is given; parents are made.
    output_format : {'parquet', 'csv', 'json'}
        Format of the files.
    overwrite, keep
        As for `check_destination`.

    Returns
    -------
    pathlib.Path
        The absolute path of the folder.

    Raises
    ------
    OutputError
        As `check_destination`, if a value does not fit the count type, or if the disk cannot take the files.
    OptionError
        If the format is unknown.
    """
    check_format(output_format)
    place = check_destination(directory, overwrite, keep)
    with staged(place, directory) as fresh:
        infinite = []
        for part in results.parts:
            folder = fresh / folder_name(part.name)
            folder.mkdir()
            infinite.append(_write_file(part, folder / f"part-00000.{output_format}", output_format))
    if results.parts and results.parts[0].count_type == "double" and output_format == "parquet":
        results.stats["infinite_values"] = sum(infinite)
    return place


def _write_file(part: QueryPart, path: Path, output_format: str) -> int:
    with part_file(path, output_format, part.rows.columns, part.clock, part.types) as write_rows:
        return write_rows(part.rows)


@contextlib.contextmanager
def part_file(
    path: Path, output_format: str, columns: Sequence[ResultColumn], clock: Clock, count_type: CountTypes
) -> Iterator[Callable[[QueryRows], int]]:
    """A result file of one query, written a piece at a time.

    Parameters
    ----------
    path : pathlib.Path
        Must not exist.
    output_format : {'parquet', 'csv', 'json'}
    columns : sequence of ResultColumn
        Of the query.
    clock : Clock
    count_type : str or sequence of str
        What a COUNT or SUM becomes in Parquet: a count type, or what each column is (`hamlet.output.fitting`). Under
        ``auto`` it is text, for the values are not known yet.

    Yields
    ------
    callable
        Takes rows, in order, and tells how many of their values are beyond the double range.
    """
    if output_format == "parquet":
        schema = result_schema(columns, clock, count_type)
        import pyarrow.parquet as pq  # needed for this format only

        with pq.ParquetWriter(path, pa.schema([field for field in schema if field.name != "query"])) as writer:

            def write_table(rows: QueryRows) -> int:
                table = to_arrow(rows, clock, unsettled(count_type) if isinstance(count_type, str) else count_type)
                writer.write_table(table.drop_columns(["query"]))
                return count_infinite(table, rows.columns) if count_type == "double" else 0

            yield write_table
        return
    encoder = query_text(output_format, lambda: clock, [*EDGES, *(column.name for column in columns)], lead=False)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(encoder.head())

        def write_lines(rows: QueryRows) -> int:
            file.writelines(encoder.pieces(rows))
            return 0

        yield write_lines


def stream_out(results: Results, stream: TextIO, output_format: str = "json") -> None:
    """Write all results to a text stream.

    Parameters
    ----------
    results : Results
        The rows of all queries.
    stream : text stream
        Gets UTF-8 text with line feeds.
    output_format : {'json', 'csv'}
        JSON lines have each query's own columns. CSV has one header: query, window_start, window_end and the union of
        the RETURN names in first-use order; a field that a query lacks is empty.

    Raises
    ------
    OptionError
        If the format cannot be written to a stream.
    """
    check_format(output_format, to_stream=True)
    names = dict.fromkeys(column.name for rows in query_rows(results) for column in rows.columns)
    for place, part in enumerate(results.parts):
        encoder = query_text(output_format, lambda clock=part.clock: clock, [*EDGES, *names], lead=True)  # type: ignore[misc]
        stream.write("" if place else encoder.head())
        stream.writelines(encoder.pieces(part.rows))
