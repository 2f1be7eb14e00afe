"""Where the rows of ``hamlet monitor`` go as they are decided; here, tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType

import click

from hamlet.arrays import pa
from hamlet.cli.notations import Part
from hamlet.cli.titles import title
from hamlet.input.buffers import values_of
from hamlet.output.holds import HOLDS
from hamlet.output.plain_rows import Rows, arrow_rows


class Sink:
    """Takes rows part by part; rows are complete once the block that it stands for has ended.

    Attributes
    ----------
    count : int
        Rows of all parts.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.count = 0

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.finish(kind is None)

    def write(self, place: int, rows: Rows) -> None:
        """Take rows of a part, by its place."""
        marked = rows.num_columns and rows.column_names[-1] == HOLDS
        self.count += int(values_of(rows.column(HOLDS)).sum()) if marked else rows.num_rows
        if rows.num_rows:
            self.take(place, rows)

    def take(self, place: int, rows: Rows) -> None:
        """Take at least one row."""
        raise NotImplementedError

    def finish(self, well: bool) -> None:
        """All rows are there, or the run has broken off."""


class TableSink(Sink):
    """Tables of the first rows, printed at the end."""

    def __init__(self, parts: Sequence[Part], limit: int) -> None:
        super().__init__(parts)
        self._limit = limit
        self._kept: list[list[pa.RecordBatch]] = [[] for _ in parts]
        self._counts = [0] * len(parts)

    def take(self, place: int, rows: Rows) -> None:
        """Keep the first rows, and count the others."""
        missing = self._limit - self._counts[place]
        if missing > 0:
            self._kept[place].append(arrow_rows(rows.slice(0, missing)))
        self._counts[place] += rows.num_rows

    def finish(self, well: bool) -> None:
        """Print the tables."""
        if not well:
            return
        for place, (part, kept) in enumerate(zip(self.parts, self._kept, strict=True)):
            if place:
                sys.stdout.write("\n")
            if not self._counts[place]:
                click.secho(title(part.name, 0, part.title), bold=True)
                continue
            from hamlet.cli.show import show_columns  # brings in rich

            show_columns(part.name, part.title, _table(kept, part.schema), self._counts[place])


def _table(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Batches as a table; a column may be wider than the schema says where its integers are."""
    return pa.table({name: _column(batches, place, schema.types[place]) for place, name in enumerate(schema.names)})


def _column(batches: Sequence[pa.RecordBatch], place: int, kind: pa.DataType) -> pa.ChunkedArray:
    """One column of all batches; Arrow makes no empty array of values of several types, and joins none."""
    if pa.types.is_union(kind):
        return pa.chunked_array([batch.column(place) for batch in batches], kind)
    tables = [pa.table({"": batch.column(place)}) for batch in batches]
    empty = pa.Table.from_batches([], pa.schema([("", kind)]))
    return pa.concat_tables([empty, *tables], promote_options="permissive").column(0)


def sink_of(
    parts: Sequence[Part], output: str | None, output_format: str | None, limit: int, overwrite: bool, kept: list[str]
) -> Sink:
    """Where rows go."""
    if output_format == "monpoly":
        without = next((part for part in parts if part.tuples is None), None)
        if without is not None:
            raise click.UsageError(
                f"--output-format monpoly writes what satisfies a policy, and the rows of {without.name!r} are "
                "others; choose json or csv"
            )
    if output is None:
        return TableSink(parts, limit)
    from hamlet.cli.file_sinks import DirectorySink, StreamSink  # bring in all that rows are written as

    if output == "-":
        return StreamSink(parts, output_format or "json")
    return DirectorySink(parts, output, output_format or "parquet", overwrite, kept)
