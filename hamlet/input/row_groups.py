"""Row groups of Parquet that are not read, because their statistics prove that nothing in them is of use.

Who knows what is of use says so as a function of the bounds of columns (`Useless`); a row group is left out only where
reading it could not raise either: no time or order is NULL or too far away, as far as the statistics say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.input.files import ParquetFile
from hamlet.input.files_protocol import Reader
from hamlet.input.folder import Folder
from hamlet.input.hive import InFolders
from hamlet.input.statistics import Bounds, BoundsOf, Statistics
from hamlet.language.schema import MOST_TICKS, Schema

Useless = Callable[[BoundsOf], bool]
_PROBES = 64  # row groups of a file that are looked at first: where none can be left out, the others are read, too


@dataclass
class _Part:
    """A file of an input, with what is left out of it.

    Attributes
    ----------
    file : ParquetFile
    statistics : Statistics
    skipped : dict of str to list of int
        The row groups that are left out, by the reason.
    """

    file: ParquetFile
    statistics: Statistics
    skipped: dict[str, list[int]] = field(default_factory=dict)

    @property
    def groups(self) -> int:
        """How many row groups the file has."""
        return int(self.file.metadata.num_row_groups)

    def rows(self, groups: Iterable[int]) -> int:
        """How many rows some row groups have."""
        return sum(self.file.metadata.row_group(number).num_rows for number in groups)


class RowGroups:
    """The row groups of an input, and those of them that are left out.

    Parameters
    ----------
    reader : Reader
        Of the input; it reads what is not left out from then on.
    schema : Schema
        Of the input.

    Attributes
    ----------
    all_parquet : bool
        Whether the input is nothing but Parquet.
    """

    def __init__(self, reader: Reader, schema: Schema) -> None:
        self._schema = schema
        self.all_parquet = _is_parquet(reader)
        self._parts = [
            _Part(file, Statistics(file.metadata, file.schema, schema, constants))
            for file, constants in _files(reader, {})
        ]

    @property
    def all(self) -> int:
        """How many row groups there are."""
        return sum(part.groups for part in self._parts)

    def skipped(self) -> dict[str, int]:
        """How many row groups are left out, by the reason."""
        found: dict[str, int] = {}
        for part in self._parts:
            for reason, groups in part.skipped.items():
                found[reason] = found.get(reason, 0) + len(groups)
        return found

    def chosen(self) -> dict[str, Sequence[int]]:
        """The row groups that are read, by the name of the file."""
        return {part.file.name: part.file.groups for part in self._parts}

    def places(self, read: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The places in the input of rows, by their places among the rows that are read."""
        counts = [part.rows([number]) for part in self._parts for number in range(part.groups)]
        chosen = [number in part.file.groups for part in self._parts for number in range(part.groups)]
        kept = np.array(counts, np.int64) * chosen
        left_out = np.cumsum(np.array(counts, np.int64) - kept)
        return read + left_out[np.searchsorted(np.cumsum(kept), read, side="right")]

    def leave_out(self, useless: Useless, reason: str, columns: Iterable[str] | None = None) -> int:
        """Leave out row groups of which nothing is of use; gives how many rows they have.

        Parameters
        ----------
        useless : callable
            Whether statistics prove that no event of a row group is of use.
        reason : str
            Why, in a few words: ``by their times``.
        columns : iterable of str, optional
            What would be read. Given, statistics must say that reading it raises nothing; else it is enough that they
            do not say that some time is NULL.
        """
        rows = 0
        for part in self._parts:
            if columns is not None and any(self._may_raise(part.file.schema, name) for name in columns):
                continue
            found = list(self._useless_groups(part, useless, columns is not None))
            if found:
                gone = set(found)
                part.file.groups = [number for number in part.file.groups if number not in gone]
                part.skipped[reason] = [*part.skipped.get(reason, ()), *found]
                rows += part.rows(found)
        return rows

    def _may_raise(self, arrow: pa.Schema, name: str) -> bool:
        """Whether a value of a column may not fit the type in which it is read."""
        kind = arrow.field(name).type if name in arrow.names else pa.null()
        unit = self._schema.units.get(name)
        return bool(pa.types.is_uint64(kind) or (pa.types.is_timestamp(kind) and unit and unit[0] != kind.unit))

    def _useless_groups(self, part: _Part, useless: Useless, strict: bool) -> Iterator[int]:
        groups: Sequence[int] = part.file.groups
        step = -(-len(groups) // _PROBES) if len(groups) else 1

        def is_useless(number: int) -> bool:
            bounds = part.statistics.of(number)
            return useless(bounds) and self._is_sound(bounds, strict)

        if step > 1 and not any(is_useless(number) for number in groups[::step]):
            return
        yield from (number for number in groups if is_useless(number))

    def _is_sound(self, bounds: BoundsOf, strict: bool) -> bool:
        """Whether times and orders of a row group are such that reading them raises nothing."""
        time = bounds(self._schema.clock.column)
        if strict and not (time.known and time.least >= -MOST_TICKS and time.most <= MOST_TICKS):
            return False
        order = self._schema.order_column
        return _has_values(time, strict) and (order is None or _has_values(bounds(order), strict))

    @contextmanager
    def only_left_out(self, reason: str) -> Iterator[None]:
        """Read what has been left out for a reason, and nothing else, while the block runs."""
        before = [part.file.groups for part in self._parts]
        for part in self._parts:
            part.file.groups = part.skipped.get(reason, [])
        try:
            yield
        finally:
            for part, groups in zip(self._parts, before, strict=True):
                part.file.groups = groups

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """What is left out while the block runs is read again after it."""
        before = [(part.file.groups, {**part.skipped}) for part in self._parts]
        try:
            yield
        finally:
            for part, (groups, skipped) in zip(self._parts, before, strict=True):
                part.file.groups, part.skipped = groups, skipped

    def sentence(self, verb: str = "skipped") -> str | None:
        """How many are left out, and why; None where all are read."""
        return sentence(self.skipped(), self.all, verb)


def sentence(skipped: dict[str, int], groups: int, verb: str = "skipped") -> str | None:
    """How many row groups are left out of all there are, and why; None where none is.

    Examples
    --------
    >>> sentence({"by their times": 1200}, 1300)
    'skipped 1,200 of 1,300 row groups by their times'
    >>> sentence({"by their times": 2, "by --where": 1}, 4)
    'skipped 3 of 4 row groups: 2 by their times, 1 by --where'
    """
    if not skipped:
        return None
    text = f"{verb} {sum(skipped.values()):,} of {groups:,} row groups"
    if len(skipped) == 1:
        return f"{text} {next(iter(skipped))}"
    return f"{text}: " + ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())


def _has_values(bounds: Bounds, strict: bool) -> bool:
    return bounds.nulls == 0 or (bounds.nulls is None and not strict)


def _is_parquet(reader: Reader) -> bool:
    """Whether all rows are those of Parquet files, none of them left out."""
    if isinstance(reader, Folder):
        return all(map(_is_parquet, reader.readers))
    return isinstance(reader.reader if isinstance(reader, InFolders) else reader, ParquetFile)


def _files(reader: Reader, constants: dict[str, Any]) -> Iterator[tuple[ParquetFile, dict[str, Any]]]:
    """The Parquet files of a reader, with the columns that the folders around them say."""
    if isinstance(reader, Folder):
        for each in reader.readers:
            yield from _files(each, constants)
    elif isinstance(reader, InFolders):
        yield from _files(reader.reader, {**constants, **reader.constants})
    elif isinstance(reader, ParquetFile):
        yield reader, constants
