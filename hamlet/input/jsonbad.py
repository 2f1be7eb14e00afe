"""Lines of JSON that are no events: what is wrong with each, where such lines are left out.

A line is bad that holds no JSON object, has no time (or order) or one of another kind than the first line that has one,
or has a value of another kind than the attribute had before: text where numbers were, or an integer beyond 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from hamlet.input.file_form import Dropped
from hamlet.input.json_line import MOST_BRACKETS, brackets_in, brief, object_of
from hamlet.input.moments import nanoseconds_of
from hamlet.input.ordering import SortKey
from hamlet.input.widening import FRACTION, is_text

_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
NAMES = {float: "a number", str: "text", bool: "true or false", list: "a list", dict: "an object"}


class BadLines:
    """The bad lines of a file, found chunk by chunk in its order.

    Parameters
    ----------
    key : SortKey
        The time and order columns.
    reads : callable
        Which attributes somebody reads; others may be of any kind.

    Attributes
    ----------
    dropped : Dropped
    """

    def __init__(self, key: SortKey, reads: Callable[[str], bool] = lambda _: True) -> None:
        self._reads = reads
        self.dropped = Dropped()
        self._keys = key.names
        self._time = key.time
        self._fractions = False  # whether times have one
        self._lines: set[int] = set()
        self._kinds: dict[str, type] = {}
        self._moments: dict[str, bool] = {}  # key columns that are text: whether with a zone

    def find(self, chunk: bytes, line: int, types: Mapping[str, pa.DataType]) -> bool:
        """Look at the lines of a chunk, the first of which has this number; gives whether some is bad.

        `types` are those of attributes in what came before.
        """
        for name, kind in types.items():
            of_kind = kind_of_type(kind)
            if of_kind is not None:
                self._kinds.setdefault(name, of_kind)
            if name in self._keys and pa.types.is_timestamp(kind):
                self._moments.setdefault(name, kind.tz is not None)
        fraction = rb'"%b"\s*:\s*-?\d+[.eE]' % re.escape(self._time.encode())
        self._fractions = self._fractions or types.get(self._time) == FRACTION or bool(re.search(fraction, chunk))
        before = len(self._lines)
        for number, text in enumerate(chunk.split(b"\n"), line):
            if text.strip() and number not in self._lines:
                wrong = self._wrong(text)
                if wrong is not None:
                    self._lines.add(number)
                    self.dropped.add(f"line {number}: {wrong}")
        return len(self._lines) > before

    def without(self, chunk: bytes, line: int) -> bytes:
        """A chunk with blank lines in place of the bad ones, so that lines keep their numbers."""
        lines = chunk.split(b"\n")
        bad = [number - line for number in self._lines if line <= number < line + len(lines)]
        for place in bad:
            lines[place] = b""
        return b"\n".join(lines) if bad else chunk

    def _wrong(self, text: bytes) -> str | None:
        """What is wrong with a line; where nothing is, its attributes' kinds are known from now on."""
        if brackets_in(text) > MOST_BRACKETS:
            return "values are nested too deeply"
        try:
            event = object_of(text)
        except ValueError as error:
            return str(error)
        kinds = {}
        for name, value in event.items():
            if value is None or not (name in self._keys or self._reads(name)):
                continue
            kind = _kind(value)
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                return f"{name!r} is an integer of more than 64 bits"
            known = self._kinds.get(name, kind)
            if kind is not known:
                return f"{name!r} is {brief(value)}, and {NAMES[known]} in the lines before"
            kinds[name] = kind
        moments = {}
        for name in self._keys:
            value = event.get(name)
            if value is None:
                return f"{name!r} is NULL" if name in event else f"there is no {name!r}"
            zoned = _zoned(value)
            if zoned is None:
                whole = isinstance(value, int) and not (name == self._time and self._fractions)
                if isinstance(value, bool) or not (whole or (name == self._time and _is_seconds(value))):
                    return f"{name!r} is {brief(value)}, which is no time"
            elif self._moments.get(name, zoned) is not zoned:
                return f"{name!r} is {brief(value)}, {'with' if zoned else 'without'} a zone"
            else:
                moments[name] = zoned
        self._kinds |= kinds
        self._moments |= moments
        return None


def _is_seconds(value: Any) -> bool:
    """Whether a value is a number of seconds that nanoseconds can hold."""
    try:
        nanoseconds_of(value)
    except ValueError:
        return False
    return True


def _kind(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def kind_of_type(kind: pa.DataType) -> type | None:
    """What a value of an Arrow type is in JSON; None where nothing is known."""
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == FRACTION:
        return float
    if is_text(kind) or pa.types.is_timestamp(kind):
        return str
    if pa.types.is_list(kind):
        return list
    return dict if pa.types.is_struct(kind) else None


def _zoned(value: Any) -> bool | None:
    """Whether a text is a time with a zone; None where it is no time."""
    if not isinstance(value, str):
        return None
    for kind in _TIMES:
        try:
            pa.scalar(value.strip()).cast(kind)
        except pa.ArrowException:
            continue
        return kind.tz is not None
    return None
