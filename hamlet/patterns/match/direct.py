"""Few rows at a time, without the host: conditions are programs of the kernel, row by row.

A statement qualifies whose conditions are comparisons and arithmetic that the kernel has, whose table is pushed as it
is, and that is ordered by plain columns. What it gives is computed here where it is rows of the match, counts and sums
of them; anything else is put to the host, match by match.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.input.records import is_broken
from hamlet.patterns.automaton._live import Live, Partition
from hamlet.patterns.match.direct_conditions import compile_conditions
from hamlet.patterns.match.direct_rows import RowForm, compile_rows
from hamlet.patterns.match.evaluate import SKIPS, arrays_of, skip_members
from hamlet.patterns.match.native import microseconds_of

if TYPE_CHECKING:
    from hamlet.patterns.match.evaluate import Meaning

# Rows of a push up to which they are taken one by one (3 to 8 us each; a batch in the host takes 20 ms and more), and
# up to which they still are where rows were taken so before: all that is kept would have to be moved.
FEW, STILL_FEW = 4096, 1 << 15
_BEFORE_ALL = -(2**63)
_FAR = 1 << 16  # rows back or ahead for which no partition keeps room
_EXACT = 1 << 53  # integers up to it are doubles
_ROW_BYTES = 56  # of a tuple
_CELL_BYTES = 24  # of a number in it
Match = tuple[int, int, int, Any]


@dataclass
class Columns:
    """The columns of a table, and which of them a statement is partitioned and ordered by.

    Attributes
    ----------
    schema : pyarrow.Schema
    keys, order : tuple of int
        Places of columns.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    order: tuple[int, ...]
    places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.places = {name.lower(): place for place, name in enumerate(self.schema.names)}

    def place(self, text: str) -> int | None:
        """The place of the column that an expression is."""
        bare = text.strip()
        if bare[:1] == '"' and bare[-1:] == '"' and len(bare) > 1:
            bare = bare[1:-1].replace('""', '"')
        return self.places.get(bare.lower())

    def behind_time(self, row: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
        """By what rows of one time are sorted, NULL last."""
        values = (row[place] for place in self.order[1:])
        return tuple((True, 0) if value is None else (False, value) for value in values)


_INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}


class Intake:
    """Rows as tuples of the columns of a schema, where each value has the type that its column asks for."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._names = schema, schema.names
        self._kinds: list[type] = []
        self._good: dict[tuple[type, ...], tuple[int, ...]] = {}  # places of integers that become doubles
        self._texts = [place for place, kind in enumerate(schema.types) if _python_type(kind) is str]
        self._times = [place for place, kind in enumerate(schema.types) if kind == pa.timestamp("us")]
        self._decimals = [
            (place, Decimal(1).scaleb(-kind.scale), Decimal(1).scaleb(kind.precision - kind.scale))
            for place, kind in enumerate(schema.types)
            if pa.types.is_decimal(kind)
        ]
        self._bounds = [(place, 1 << bits) for place, kind in enumerate(schema.types) if (bits := _INTEGERS.get(kind))]
        for kind in schema.types:
            self._kinds.append(_python_type(kind))

    def rows(self, events: Any, most: int) -> list[tuple[Any, ...]] | None:
        """Few rows as tuples, None where they are more than `most` or need the host's eyes."""
        if isinstance(events, pa.Table):
            if events.num_rows > most or not events.schema.equals(self._schema):
                return None
            return list(zip(*(each.to_pylist() for each in events.columns), strict=True))
        if isinstance(events, dict):
            events = [events]
        if not isinstance(events, list) or len(events) > most:
            return None
        found = []
        for event in events:
            if type(event) is not dict:
                return None
            values: tuple[Any, ...] = tuple(map(event.get, self._names))
            types = tuple(map(type, values))
            widened = self._good.get(types)
            if widened is None:
                widened = self._fitting(types)
                if widened is None:
                    return None
            if widened:
                if not all(-_EXACT <= values[place] <= _EXACT for place in widened):
                    return None
                values = tuple(float(value) if place in widened else value for place, value in enumerate(values))
            for place, bound in self._bounds:
                value = values[place]
                if value is not None and not -bound <= value < bound:
                    return None
            for place in self._texts:
                if values[place] is not None and is_broken(values[place]):
                    return None
            for place in self._times:
                if values[place] is not None and values[place].tzinfo is not None:
                    return None
            if self._decimals:
                exact = self._exact(values)
                if exact is None:
                    return None
                values = exact
            found.append(values)
        return found

    def _exact(self, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Values whose decimals have as many places as their columns, None where one does not fit."""
        found = list(values)
        for place, unit, bound in self._decimals:
            value = values[place]
            if value is not None:
                if not value.is_finite() or abs(value) >= bound:
                    return None
                found[place] = value.quantize(unit)
                if found[place] != value:
                    return None
        return tuple(found)

    def _fitting(self, types: tuple[type, ...]) -> tuple[int, ...] | None:
        """Which integers become doubles, None where a value is of another type than its column."""
        widened = []
        for place, (given, asked) in enumerate(zip(types, self._kinds, strict=True)):
            if given is asked or given is type(None):
                continue
            if asked is not float or given is not int:
                return None
            widened.append(place)
        self._good[types] = tuple(widened)
        return self._good[types]


def _python_type(kind: pa.DataType) -> type:
    """The type of a column's values; `object` for one that rows are not taken with one by one."""
    if kind in _INTEGERS:
        return int
    known = {pa.float64(): float, pa.string(): str, pa.large_string(): str, pa.bool_(): bool, pa.date32(): date}
    known[pa.timestamp("us")] = datetime
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= 18:
        return Decimal
    return known.get(kind, object)


_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def ticks(value: Any) -> int:
    """A time as the kernel compares it."""
    return value if type(value) is int else (value - _EPOCH) // _MICROSECOND


def _chooser(places: tuple[int, ...]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """From a row to a tuple of some of its columns."""
    if len(places) == 1:
        [place] = places
        return lambda row: (row[place],)
    return itemgetter(*places) if places else lambda _: ()


class Direct:
    """A statement over few rows at a time.

    Parameters
    ----------
    columns : Columns
    live : Live
    values : callable
        From a row to what conditions read.
    back : int
        The most rows before a start that anything reads.
    """

    def __init__(
        self,
        columns: Columns,
        live: Live,
        values: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        back: int,
        form: RowForm | None,
    ) -> None:
        self.columns, self._live, self._values, self.back, self.form = columns, live, values, back, form
        self.intake = Intake(columns.schema)
        self.parts: dict[tuple[Any, ...], Partition] = {}
        self.pending: list[tuple[Any, ...]] = []  # a heap of (time, other columns of ORDER BY, number, row)
        self.mark = _BEFORE_ALL
        self._count = 0
        self._deadlines: list[tuple[int, int, tuple[Any, ...]]] = []
        self.texts: list[str] = []  # that programs read
        self.bounded = False
        self.forgets = False  # partitions without rows
        self.beyond = False  # whether a number or the steps of a search are too many: the host has to go on
        self.leading = columns.order[0] if columns.order else None
        self.key = _chooser(columns.keys)

    def time(self, row: tuple[Any, ...]) -> int:
        """The time of a row."""
        return ticks(row[self.leading]) if self.leading is not None else 0

    def add(self, row: tuple[Any, ...], time: int) -> None:
        """A row that waits for rows before it."""
        self._count += 1
        if len(self.columns.order) > 1:
            heapq.heappush(self.pending, (time, self.columns.behind_time(row), self._count, row))
        else:
            heapq.heappush(self.pending, (time, self._count, row))

    def part(self, key: tuple[Any, ...]) -> Partition:
        """The partition of a key."""
        found = self.parts.get(key)
        if found is None:
            found = self.parts[key] = Partition(self._live)
        return found

    def take(self, part: Partition, row: tuple[Any, ...], time: int) -> None:
        """A row before which no other comes any more."""
        part.take(row, time, self._values(row))

    def release(self) -> list[tuple[tuple[Any, ...], Partition, list[Match], tuple[int, int] | None]]:
        """Match the rows that no other comes before any more; gives partitions with matches, or where one cannot go on.

        `settled` has to be called for each of them once its matches have been looked at.
        """
        pending, mark = self.pending, self.mark
        touched: dict[tuple[Any, ...], Partition] = {}
        while pending and (pending[0][0] < mark or not self.columns.order):
            entry = heapq.heappop(pending)
            row = entry[-1]
            key = self.key(row)
            part = self.parts.get(key)
            if part is None:
                part = self.part(key)
            part.take(row, entry[0], self._values(row))
            touched[key] = part
        while self._deadlines and self._deadlines[0][0] < mark:
            key = heapq.heappop(self._deadlines)[2]
            waiting = self.parts.get(key)
            if waiting is not None:
                touched[key] = waiting
        given = []
        for key, part in touched.items():
            found: list[Match] = []
            stuck = None
            try:
                stuck = part.settle(mark, found)
            except OverflowError:
                self.beyond = True
            if found or stuck is not None:
                given.append((key, part, found, stuck))
            else:
                self.settled(key, part)
        return given

    def settled(self, key: tuple[Any, ...], part: Partition) -> None:
        """Let go of what a partition needs no more."""
        part.forget(self.back)
        if self.forgets and not part.rows:
            del self.parts[key]
        elif self.bounded:
            deadline = part.deadline
            if deadline is not None:
                self._count += 1
                heapq.heappush(self._deadlines, (deadline, self._count, key))

    def held(self) -> tuple[int, int]:
        """Rows and bytes that are kept."""
        waiting = sum(max(0, len(part.rows) - max(0, part.start - self.back)) for part in self.parts.values())
        rows = waiting + len(self.pending)
        size = rows * (_ROW_BYTES + _CELL_BYTES * len(self.columns.schema.names))
        return rows, size + sum(part.size for part in self.parts.values())

    def fill(
        self, entries: Sequence[tuple[tuple[Any, ...], Sequence[tuple[Any, ...]], tuple[int, int, int, bool]]]
    ) -> None:
        """Take partitions as tables keep them: key, rows in order, and the first start, the rows that lie in matches,
        the matches so far, and whether the first row is the partition's first.
        """
        for key, rows, front in entries:
            part = self.part(key)
            for row in rows:
                self.take(part, row, self.time(row))
            part.start, part.covered, part.number, part.begins = front
            self.settled(key, part)


def direct_of(
    meaning: Meaning, schema: pa.Schema, back: int, ahead: tuple[int, int], outer: str, max_steps: int
) -> Direct | None:
    """What takes few rows at a time, None where a statement needs the host for each of them."""
    clause = meaning.clause
    columns = _columns(meaning, schema)
    if columns is None or meaning.program.counts or back + max(ahead) > _FAR:
        return None
    conditions = compile_conditions(meaning, columns.places, schema)
    if conditions is None:
        return None
    within = None
    if meaning.within is not None:
        within = _within(meaning.within.text, schema.types[columns.order[0]])
        if within is None:
            return None
    kinds, first, second, variables = arrays_of(meaning.program)
    live = Live(
        kinds,
        first,
        second,
        variables,
        meaning.program.start,
        conditions.programs,
        conditions.cells,
        conditions.back,
        ahead[0],
        SKIPS[clause.skip],
        skip_members(clause),
        within,
        conditions.searching,
        ahead[1],
        clause.rows == "unmatched",
        max_steps,
    )
    form = compile_rows(meaning, columns.places, columns.keys, schema, outer)
    found = Direct(columns, live, conditions.values, back, form)
    found.texts = conditions.texts
    found.bounded, found.forgets = within is not None, not meaning.reads_past
    return found


def _within(text: str, kind: pa.DataType) -> int | None:
    """A duration in ticks of the time."""
    if pa.types.is_integer(kind):
        return int(text) if text.strip().isdecimal() else None
    return microseconds_of(text)


def _columns(meaning: Meaning, schema: pa.Schema) -> Columns | None:
    """The columns, None where a partition or an order is no plain column of a type that can be compared here."""
    names = [each.lower() for each in schema.names]
    found = Columns(schema, (), ())
    if len(set(names)) < len(names) or any(_python_type(kind) is object for kind in schema.types):
        return None
    keys = [found.place(each.text) for each in meaning.partition]
    order = [found.place(each.text) for each in meaning.order]
    if None in keys or None in order or any(each.descending or each.nulls_first for each in meaning.clause.order):
        return None
    found.keys, found.order = tuple(k for k in keys if k is not None), tuple(o for o in order if o is not None)
    if any(_python_type(schema.types[place]) not in (int, str, bool) for place in found.keys):
        return None
    if found.order and schema.types[found.order[0]] not in (*_INTEGERS, pa.timestamp("us")):
        return None
    if any(schema.types[place] not in (*_INTEGERS, pa.string()) for place in found.order[1:]):
        return None
    return found


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as a table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema.names)
    return pa.table(
        [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
