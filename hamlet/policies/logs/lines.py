"""MonPoly's log as it arrives: time-points from blocks of lines, each as soon as ``;`` or the next ``@`` ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, LateError
from hamlet.input.buffers import from_numpy
from hamlet.input.columns import Int64Array
from hamlet.language.schema import MOST_TICKS
from hamlet.policies.logs._tokens import LogMistake, LogScanner
from hamlet.policies.logs.reader import KINDS, LARGEST, LogChunk, LogFile, Predicate, column_behind, scanned

_BEGUN = re.compile(rb"@\s*(-?\d+)\s")  # an open time-point whose time is known


class LogLines(LogFile):
    """Reads a log from blocks of lines.

    Parameters
    ----------
    name : str
        Of the source.
    predicates, wanted, ignore_unknown, drops
        As for `LogFile`.

    Attributes
    ----------
    begun : int or None
        The time of the time-point that is open.
    open_bytes : int
        Bytes of the time-point that is open.
    """

    def __init__(
        self,
        name: str,
        predicates: Mapping[Predicate, Sequence[str]],
        *,
        wanted: Any = None,
        ignore_unknown: bool = False,
        drops: bool = False,
    ) -> None:
        self._set_up(name, predicates, wanted, ignore_unknown, drops)
        self._keys = list(self._predicates)
        self._scanner = LogScanner(
            [
                (key[0].encode(), [KINDS[kind] for kind in self._predicates[key]], key in self._wanted)
                for key in self._keys
            ],
            ignore_unknown,
            True,
        )
        self.begun: int | None = None
        self._open = b""  # of the time-point that is open
        self._lines = 0
        self._first = 0
        self._skips = False  # whether the time-point that is left out may go on

    @property
    def open_bytes(self) -> int:
        """How much of what came belongs to the time-point that is open."""
        return len(self._open)

    @property
    def open_text(self) -> bytes:
        """What came of the time-point that is open."""
        return self._open

    @property
    def open_lines(self) -> int:
        """The line breaks in it."""
        return self._open.count(b"\n")

    def take(self, block: bytes, line: int | None = None, final: bool = False) -> Iterator[LogChunk]:
        """The time-points that are complete with some more lines, which begin with the line of a number.

        Raises
        ------
        DataError
            At the first mistake, with source, line and column; time-points before it were given.
        """
        if line is not None:
            self._lines = line - 1 - self._open.count(b"\n")
        if self._skips:
            block = self._behind_mistake(block)
        if len(self._open) + len(block) > LARGEST:
            raise DataError(f"{self.name}: a time-point is longer than {LARGEST:,} bytes")
        if self._open and not final and b"@" not in block and b";" not in block:
            self._open += block  # it goes on, and need not be looked at again and again
            return
        block = self._open + block
        while True:
            try:
                taken = scanned(self._scanner, block, final)
                break
            except LogMistake as mistake:
                start, end = self.extent(mistake, block)
                if not self._drops:
                    error = self._error(mistake, block, self._lines)
                    self._scanner.widen()
                    self._scanner.scan(block[:start], True)
                    yield from self._taken(start)
                    raise error from None
                self._skips = end == len(block) and not final
                block = self._without(mistake, block, self._lines)
                self._scanner.widen()  # which forgets what it has read of the block
        self._open = block[taken:]
        self._before = column_behind(block, taken, self._before)
        self._lines += block.count(b"\n", 0, taken)
        begun = _BEGUN.match(self._open)
        self.begun = int(begun[1]) if begun is not None and abs(int(begun[1])) < MOST_TICKS else None
        yield from self._taken(taken)

    def _taken(self, offset: int) -> Iterator[LogChunk]:
        self.unknown, self.commands = self._scanner.unknown, self._scanner.commands
        times, relations = self._scanner.take()
        if len(times):
            yield LogChunk(self._first, times, self._arrays(self._keys, relations), offset)
            self._first += len(times)

    def _behind_mistake(self, block: bytes) -> bytes:
        """A block without the lines that belong to a time-point that is left out; blanks stand for them."""
        at = 0 if block.startswith(b"@") else block.find(b"\n@") + 1
        if not at and not block.startswith(b"@"):
            return b"\n" * block.count(b"\n")
        self._skips = False
        return b"\n" * block.count(b"\n", 0, at) + block[at:]


class PointOrder:
    """Time-points of logs in the order of time, held until no earlier one can come.

    Parameters
    ----------
    lateness : int
        Ticks.
    late : {'error', 'drop'}

    Attributes
    ----------
    seen : int or None
        The largest time seen.
    late_events : int
        Tuples of time-points that were left out.
    """

    def __init__(self, lateness: int, late: str) -> None:
        self.lateness = lateness
        self.late = late
        self.seen: int | None = None
        self.promised: int | None = None
        self.late_events = 0
        self.held: LogChunk | None = None

    @property
    def watermark(self) -> int | None:
        """No time-point before this time will come."""
        known = [] if self.seen is None else [self.seen - self.lateness]
        known += [] if self.promised is None else [self.promised]
        return max(known, default=None)

    @property
    def nbytes(self) -> int:
        """Bytes of the time-points that are held."""
        if self.held is None:
            return 0
        arrays = [each for points, columns in self.held.relations.values() for each in (points, *columns)]
        return sum(int(each.nbytes) for each in (self.held.times, *arrays))

    def take(self, chunk: LogChunk, name: str) -> list[LogChunk]:
        """Take time-points in the order of arrival; gives those that may be evaluated.

        Raises
        ------
        LateError
            At one that is late; those before it are taken, and given by `release`.
        """
        times = chunk.times
        before = np.concatenate([times[:1] if self.seen is None else [self.seen], times[:-1]])
        if self.seen is not None:
            before = np.maximum(before, self.seen)
        bound = np.maximum.accumulate(before) - self.lateness
        if self.promised is not None:
            bound = np.maximum(bound, self.promised)
        fresh = times >= bound
        error = None
        if not fresh.all():
            first = int(np.argmin(fresh))
            if self.late == "error":
                error = LateError(
                    f"{name}: the time-point @{times[first]} is late: none before @{bound[first]} is expected any "
                    "more\n"
                    "hint: give --lateness '5 s', or leave late events out with --late drop"
                )
                fresh = np.arange(len(times)) < first
            else:
                self.late_events += len(times) - int(fresh.sum())
            chunk = chosen(chunk, np.nonzero(fresh)[0])
        if len(chunk.times):
            last = int(chunk.times.max())
            self.seen = last if self.seen is None else max(self.seen, last)
        ordered = bool((chunk.times[1:] >= chunk.times[:-1]).all())
        if self.held is None and ordered and self.lateness == 0:
            if error is not None:
                self.held = chunk
                raise error
            return [chunk] if len(chunk.times) else []
        self.held = chunk if self.held is None else joined(self.held, chunk)
        if error is not None:
            raise error
        return self.release()

    def release(self, everything: bool = False) -> list[LogChunk]:
        """The time-points that are held and before the watermark, in the order of time."""
        held, watermark = self.held, self.watermark
        if held is None or (watermark is None and not everything):
            return []
        order = np.argsort(held.times, kind="stable")
        # one of the watermark's own time may be followed by others of it, but by none before it
        due = (
            len(order)
            if everything or watermark is None
            else int(np.searchsorted(held.times[order], watermark, side="right"))
        )
        if not due:
            return []
        ready, rest = order[:due], order[due:]
        self.held = chosen(held, rest) if len(rest) else None
        return [chosen(held, ready)]


def chosen(chunk: LogChunk, places: Int64Array) -> LogChunk:
    """Some time-points of a chunk, in a given order."""
    new = np.full(len(chunk.times), -1, np.int64)
    new[places] = np.arange(len(places))
    relations = {}
    for key, (points, columns) in chunk.relations.items():
        target = new[points]
        rows = np.nonzero(target >= 0)[0]
        if len(rows):
            rows = rows[np.argsort(target[rows], kind="stable")]
            relations[key] = (target[rows], tuple(column.take(from_numpy(rows)) for column in columns))
    return LogChunk(chunk.first, np.ascontiguousarray(chunk.times[places]), relations, chunk.offset)


def joined(one: LogChunk, other: LogChunk) -> LogChunk:
    """Two chunks, one behind the other."""
    shift = len(one.times)
    relations = dict(one.relations)
    for key, (points, columns) in other.relations.items():
        if key in relations:
            known, before = relations[key]
            both = tuple(_behind(first, second) for first, second in zip(before, columns, strict=True))
            relations[key] = (np.concatenate([known, points + shift]), both)
        else:
            relations[key] = (points + shift, columns)
    return LogChunk(one.first, np.concatenate([one.times, other.times]), relations, other.offset)


def _behind(one: pa.Array, other: pa.Array) -> pa.Array:
    """Two columns as one; integers of which some have more than 64 bits are digits."""
    if one.type != other.type:
        one, other = one.cast(pa.string()), other.cast(pa.string())
    return pa.concat_arrays([one, other])
