"""Result files: JSON lines, CSV and Parquet, in a folder per query or on one text stream.

A folder of results is written under a temporary name beside its place and renamed when all of it is there, so a run
that fails leaves nothing that looks complete. Inside ``DIR/query=<name>/`` the files do not repeat the query column:
Spark, DuckDB and pyarrow add it from the folder's name, and pyarrow refuses to read it twice.

In JSON, integers are written in full as numbers, times as ISO 8601 strings, and infinite doubles (which JSON does not
have) as null. In CSV, NULL is an empty field and an empty string is ``""``.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from hamlet.errors import OptionError, one_of
from hamlet.language.schema import Clock
from hamlet.output.digits import number_text, seconds_text
from hamlet.output.place import check_destination, folder_name, staged
from hamlet.output.query_part import QueryPart, query_rows
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.result import Results
from hamlet.output.tables import CountTypes, count_infinite, result_schema, to_arrow, unsettled
from hamlet.output.time_text import time_text

FORMATS = ("json", "csv", "parquet")
EDGES = ("window_start", "window_end")


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
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if output_format == "csv":
            file.write(csv_line([*EDGES, *(column.name for column in columns)]))

        def write_lines(rows: QueryRows) -> int:
            if output_format == "json":
                file.writelines(json_lines(rows, clock, with_query=False))
            else:
                file.writelines(csv_line([*edges(row, clock), *csv_values(rows, row)]) for row in rows.rows)
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
    if check_format(output_format, to_stream=True) == "json":
        for part in results.parts:
            stream.writelines(json_lines(part.rows, part.clock, with_query=True))
        return
    names = list(dict.fromkeys(column.name for rows in query_rows(results) for column in rows.columns))
    stream.write(csv_line(["query", *EDGES, *names]))
    for part in results.parts:
        rows = part.rows
        places = {column.name: place for place, column in enumerate(rows.columns)}
        for row in rows.rows:
            values = list(csv_values(rows, row))
            own = [values[places[name]] if name in places else None for name in names]
            stream.write(csv_line([rows.name, *edges(row, part.clock), *own]))


def edges(row: tuple[Any, ...], clock: Clock) -> tuple[str | None, str | None]:
    """Beginning and end of a row's window as text; None where the window has no edges."""
    start, end = (None if edge is None else time_text(edge, clock) for edge in row[:2])
    return start, end


def json_lines(rows: QueryRows, clock: Clock, with_query: bool) -> Iterator[str]:
    """A line per row."""
    # json.dumps cannot write long integers, so numbers are put between the parts that it wrote.
    query = f'"query": {_json_text(rows.name)}, ' if with_query else ""
    keys = [f", {_json_text(column.name)}: " for column in rows.columns]
    quoted = '"' if clock.is_timestamp else ""
    window, head = None, ""
    for row in rows.rows:
        if window != row[:2] or not head:  # many rows are of one window
            window = row[:2]
            start, end = ("null" if edge is None else f"{quoted}{edge}{quoted}" for edge in edges(row, clock))
            head = f'{{{query}"window_start": {start}, "window_end": {end}'
        parts = [head]
        for key, column, value in zip(keys, rows.columns, row[2:], strict=True):
            parts += key, _json_value(value, column)
        yield "".join(parts) + "}\n"


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json_value(value: Any, column: ResultColumn) -> str:
    kind = type(value)
    if kind is int or (kind is float and math.isfinite(value)):
        return number_text(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    if isinstance(value, str):
        return _json_text(value)
    text = _plain_text(value, column)
    numbers = (bool, int, float, Decimal, datetime.timedelta, np.timedelta64)
    return text if isinstance(value, numbers) else _json_text(text)


def _plain_text(value: Any, column: ResultColumn) -> str:
    """A value other than NULL as text, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and column.kind == "attribute":
        return format(value, "f")  # a group value of a decimal column, not a number beyond the double range
    if isinstance(value, (int, float, Decimal)):
        return number_text(value)
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return seconds_text(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def csv_values(rows: QueryRows, row: tuple[Any, ...]) -> Iterator[str | None]:
    """The values of a row behind its window as text, None for NULL."""
    for column, value in zip(rows.columns, row[2:], strict=True):
        yield None if value is None else _plain_text(value, column)


def csv_line(fields: Sequence[str | None]) -> str:
    """Fields as a line."""
    return ",".join(map(_csv_field, fields)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if not text or text != text.strip() or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
