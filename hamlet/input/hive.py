"""Folders that say the value of a column, ``day=2024-03-05/hour=10/part-0.parquet``, as Hive and Spark lay them out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from hamlet.input.files_protocol import Reader

_NULL = "__HIVE_DEFAULT_PARTITION__"
_LONGEST = 18  # digits of an integer of 64 bits


def values_in(path: Path, root: Path) -> dict[str, str | None]:
    """The columns that the folders between a root and a file name, and their values; None for NULL."""
    found: dict[str, str | None] = {}
    for part in path.relative_to(root).parts[:-1]:
        name, mark, value = part.partition("=")
        if mark and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


def types_of(values: Sequence[Mapping[str, str | None]]) -> dict[str, pa.DataType]:
    """The type of each such column: INT where every value is a whole number, else text."""
    names = dict.fromkeys(name for each in values for name in each)
    return {name: _type_of([each.get(name) for each in values]) for name in names}


def _type_of(values: Sequence[str | None]) -> pa.DataType:
    known = [value for value in values if value is not None]
    whole = all(_is_integer(value) for value in known)
    return pa.int64() if known and whole else pa.string()


def _is_integer(value: str) -> bool:
    digits = value.removeprefix("-")
    plain = digits == "0" or not digits.startswith("0")  # 007 is a name, not a number
    return digits.isascii() and digits.isdecimal() and plain and len(digits) <= _LONGEST


class InFolders:
    """A file whose folders say the values of further columns; a column that the file has itself is the file's.

    Attributes
    ----------
    reader : Reader
        Of the file.
    """

    def __init__(self, reader: Reader, values: Mapping[str, str | None], types: Mapping[str, pa.DataType]) -> None:
        self.name = reader.name
        self.rows = reader.rows
        self.ordered = reader.ordered
        self.reader = reader
        self._values = {name: value for name, value in values.items() if name not in reader.schema.names}
        self._types = types
        more = [pa.field(name, types[name]) for name in self._values]
        self.schema = pa.schema([*reader.schema, *more])

    def again(self, reader: Reader) -> InFolders:
        """A reader of the file that was opened anew, with the columns of its folders."""
        return InFolders(reader, self._values, self._types)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the file, with the columns of its folders."""
        own = [name for name in columns if name in self.reader.schema.names]
        read = own or self.reader.schema.names[:1]  # something has to say how many rows there are
        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in self.reader.batches(read):
            arrays = [
                batch.column(own.index(name)) if name in own else self._constant(name, batch.num_rows)
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def constants(self) -> dict[str, int | str | None]:
        """The values of the further columns, None for NULL."""
        whole = {name for name, kind in self._types.items() if pa.types.is_int64(kind)}
        return {name: int(text) if text and name in whole else text for name, text in self._values.items()}

    def __getstate__(self) -> dict[str, Any]:
        """All but the reader, for a task that opens the file itself."""
        return vars(self) | {"reader": None}

    def _constant(self, name: str, rows: int) -> pa.Array:
        value, kind = self.constants[name], self._types[name]
        return pa.nulls(rows, kind) if value is None else pa.repeat(pa.scalar(value, kind), rows)
