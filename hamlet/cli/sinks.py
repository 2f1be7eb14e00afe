"""Where the rows of ``hamlet monitor`` go as they are decided: tables on a terminal, a text stream, a directory."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import pyarrow as pa

from hamlet.cli.notations import Part
from hamlet.errors import OptionError
from hamlet.output.columnar import HOLDS, Encoder, encoder_of, file_writer
from hamlet.output.place import check_destination, staged


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

    def write(self, place: int, rows: pa.RecordBatch) -> None:
        """Take rows of a part, by its place."""
        marked = rows.num_columns and rows.schema.names[-1] == HOLDS
        self.count += sum(rows.column(rows.num_columns - 1).to_pylist()) if marked else rows.num_rows
        if rows.num_rows:
            self.take(place, rows)

    def take(self, place: int, rows: pa.RecordBatch) -> None:
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

    def take(self, place: int, rows: pa.RecordBatch) -> None:
        """Keep the first rows, and count the others."""
        missing = self._limit - self._counts[place]
        if missing > 0:
            self._kept[place].append(rows.slice(0, missing))
        self._counts[place] += rows.num_rows

    def finish(self, well: bool) -> None:
        """Print the tables."""
        if not well:
            return
        for place, (part, kept) in enumerate(zip(self.parts, self._kept, strict=True)):
            if place:
                sys.stdout.write("\n")
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


class StreamSink(Sink):
    """Lines on standard output: those of the first part as they come, those of the others after it."""

    def __init__(self, parts: Sequence[Part], output_format: str) -> None:
        if output_format == "parquet":
            raise OptionError("Parquet cannot be written to standard output; choose json or csv, or a directory")
        super().__init__(parts)
        union = list(dict.fromkeys(name for part in parts for name in part.schema.names))
        leads = list(dict.fromkeys(part.kind for part in parts if part.named))
        self._encoders: list[Encoder] = [
            encoder_of(
                output_format,
                part.schema,
                lead={part.kind: part.name} if part.named else {},
                sparse=part.sparse,
                tuples=part.tuples,
                header=[*leads, *(name for name in union if name not in leads)],
            )
            for part in parts
        ]
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in parts]
        # Whatever the terminal's encoding is, files are UTF-8 with line feeds.
        self._text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n", write_through=True)
        self._put(self._encoders[0].head() if self._encoders else "")

    def take(self, place: int, rows: pa.RecordBatch) -> None:
        """Print rows of the first part, and hold others."""
        if place:
            self._waiting[place].append(rows)
        else:
            self._put(self._encoders[0].lines(rows))

    def finish(self, well: bool) -> None:
        """Print what was held."""
        try:
            if well and self._encoders:
                self._put(self._encoders[0].tail())
            for place, batches in enumerate(self._waiting[1:] if well else [], 1):
                for rows in batches:
                    self._put(self._encoders[place].lines(rows))
                self._put(self._encoders[place].tail())
            self._text.flush()
        finally:
            self._text.detach()

    def _put(self, text: str) -> None:
        try:
            self._text.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:  # what is still buffered must not be written at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OSError(error.errno, f"cannot write to standard output: {error.strerror}") from None


class DirectorySink(Sink):
    """A file per part below a new directory, which is put in place when all of it is there."""

    def __init__(self, parts: Sequence[Part], directory: str, output_format: str, overwrite: bool, keep: list[str]):
        super().__init__(parts)
        place = check_destination(directory, overwrite, keep)
        self._stack = ExitStack()
        fresh = self._stack.enter_context(staged(place, directory))
        files = ExitStack()
        self._stack.push(files)
        self._writers: list[Any] = [
            files.enter_context(
                file_writer(fresh, output_format, part.kind, part.name, part.schema, part.sparse, part.tuples)
            )
            for part in parts
        ]

    def take(self, place: int, rows: pa.RecordBatch) -> None:
        """Write rows."""
        self._writers[place](rows)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)
