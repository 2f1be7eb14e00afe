"""Rows of ``hamlet monitor`` as text on standard output, and as files in a directory."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from types import TracebackType
from typing import Any

from hamlet.cli.notations import Part
from hamlet.cli.sinks import Sink
from hamlet.errors import OptionError
from hamlet.output.columnar import Encoder, encoder_of, file_writer
from hamlet.output.place import check_destination, staged
from hamlet.output.plain_rows import Rows


class StreamSink(Sink):
    """Lines on standard output: those of the first part as they come, those of the others after it."""

    def __init__(self, parts: Sequence[Part], output_format: str) -> None:
        if output_format == "parquet":
            raise OptionError("Parquet cannot be written to standard output; choose json or csv, or a directory")
        super().__init__(parts)
        self._format = output_format
        self._encoders: dict[int, Encoder] = {}  # of parts with rows
        self._waiting: list[list[Rows]] = [[] for _ in parts]
        # Whatever the terminal's encoding is, files are UTF-8 with line feeds.
        self._text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n", write_through=True)
        if output_format == "csv" and parts:  # no other format has a head
            self._put(self._encoder(0).head())

    @cached_property
    def _header(self) -> list[str]:
        """The columns of all parts."""
        leads = list(dict.fromkeys(part.kind for part in self.parts if part.named))
        union = dict.fromkeys(name for part in self.parts for name in part.names)
        return [*leads, *(name for name in union if name not in leads)]

    def _encoder(self, place: int) -> Encoder:
        if place not in self._encoders:
            part = self.parts[place]
            self._encoders[place] = encoder_of(
                self._format,
                part.names,
                lead={part.kind: part.name} if part.named else {},
                sparse=part.sparse,
                tuples=part.tuples,
                header=self._header,
            )
        return self._encoders[place]

    def take(self, place: int, rows: Rows) -> None:
        """Print rows of the first part, and hold others."""
        if place:
            self._waiting[place].append(rows)
        else:
            self._put(self._encoder(0).lines(rows))

    def finish(self, well: bool) -> None:
        """Print what was held."""
        try:
            for place, batches in enumerate(self._waiting if well else []):
                for rows in batches:
                    self._put(self._encoder(place).lines(rows))
                if place in self._encoders:
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

    def take(self, place: int, rows: Rows) -> None:
        """Write rows."""
        self._writers[place](rows)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)
