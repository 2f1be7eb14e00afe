"""The columns of files before they are opened: what their headers and first lines say."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hamlet.errors import HamletError
from hamlet.frontend.time_column import time_column_in
from hamlet.input.csvform import CsvForm
from hamlet.input.files import event_files, matching
from hamlet.input.formats import format_of
from hamlet.input.json_line import object_of
from hamlet.input.live.table_lines import header_of

_MOST_LINES = 100  # of JSON that are looked at for one with a time
_BLOCK = 1 << 16


def names_at(
    paths: Sequence[str | os.PathLike[str]], input_format: str | None = None, form: CsvForm | None = None
) -> list[str]:
    """The columns of the first of some files, folders or patterns; none where it cannot be read.

    Whoever opens the files says why they cannot.
    """
    try:
        first = Path(paths[0])
        path = event_files((matching(first) or [first])[0])[0]
        if not path.is_file():
            return []
        kind = format_of(path, input_format)
        return _of_parquet(path) if kind == "parquet" else _of_json(path) if kind == "json" else _of_csv(path, form)
    except (HamletError, OSError, ValueError, pa.ArrowException):
        return []


def _of_parquet(path: Path) -> list[str]:
    import pyarrow.parquet as pq  # brings in readers of other file systems, which text needs none of

    return list(pq.read_schema(path).names)


def _of_csv(path: Path, form: CsvForm | None) -> list[str]:
    return header_of(next(_lines(path), b""), (form or CsvForm()).of(path), str(path))[0]


def _of_json(path: Path) -> list[str]:
    """The names of the first event that has a time."""
    for line in itertools.islice(_lines(path), _MOST_LINES):
        try:
            event = object_of(line)
        except ValueError:  # said by what reads the file
            continue
        if time_column_in(event) is not None:
            return list(event)
    return []


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that may be compressed."""
    with pa.input_stream(str(path), compression="detect") as stream:
        rest = b""
        while block := stream.read(_BLOCK):
            *whole, rest = (rest + block).split(b"\n")
            yield from (line.removeprefix(b"\xef\xbb\xbf") for line in whole)
        yield rest
