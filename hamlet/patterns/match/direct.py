"""Few rows at a time, without the host: conditions are programs of the kernel, row by row.

A statement qualifies whose conditions are comparisons and arithmetic that the kernel has, whose table is pushed as it
is, and that is ordered by plain columns. What it gives is computed here where it is rows of the match, counts and sums
of them; anything else is put to the host, match by match.
"""

from __future__ import annotations

import heapq
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.input.records import is_broken
from hamlet.input.widening import is_bytes, is_text
from hamlet.patterns.automaton._live import Live, Partition
from hamlet.patterns.match.direct_conditions import compile_conditions
from hamlet.patterns.match.direct_rows import RowForm, compile_rows
from hamlet.patterns.match.direct_times import EXACT, Times, times_of
from hamlet.patterns.match.evaluate import arrays_of, reach_of, read_ahead

if TYPE_CHECKING:
    from hamlet.input.ticks import Lateness
    from hamlet.patterns.match.evaluate import Meaning
    from hamlet.patterns.match.in_tables import Progress
    from hamlet.patterns.match.leading_time import LeadingTime

# Rows of a push up to which they are taken one by one (3 to 8 us each; a batch in the host takes 20 ms and more), and
# up to which they still are where rows were taken so before: all that is kept would have to be moved.
FEW, STILL_FEW = 4096, 1 << 15
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
    keys : tuple of int
        Places of columns.
    order : tuple of (int, bool, bool)
        Places of columns, whether each descends, and whether NULL comes first.
    """

    schema: pa.Schema
    keys: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    places: dict[str, int] = field(init=False)
    shown: list[Reader | None] = field(init=False)

    def __post_init__(self) -> None:
        self.shown = list(map(_shown_as, self.schema.types))
        self.places = {name.lower(): place for place, name in enumerate(self.schema.names)}

    def place(self, text: str) -> int | None:
        """The place of the column that an expression is."""
        bare = text.strip()
        if bare[:1] == '"' and bare[-1:] == '"' and len(bare) > 1:
            bare = bare[1:-1].replace('""', '"')
        return self.places.get(bare.lower())

    @property
    def key_types(self) -> list[pa.DataType]:
        """Of the columns of PARTITION BY."""
        return [self.schema.types[place] for place in self.keys]

    def behind_time(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """By what rows of one time are sorted; NaN is the greatest number, as for the host."""
        found: list[Any] = []
        for place, descending, nulls_first in self.order[1:]:
            value = row[place]
            if value is None:
                found.append((not nulls_first,))
            else:
                known = (value != value, value)
                found.append((nulls_first, _Descending(known) if descending else known))
        return tuple(found)


class _Descending:
    """A value that comes before those that are less."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and self.value == other.value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    __hash__ = None  # type: ignore[assignment]


Reader = Callable[[Any], Any]


class Intake:
    """Rows as tuples of the columns of a schema, each value as Arrow gives it for a table of the host.

    Parameters
    ----------
    given : pyarrow.Schema
        What is pushed.
    schema : pyarrow.Schema
        What the host makes of it.
    """

    def __init__(self, given: pa.Schema, schema: pa.Schema) -> None:
        self.schema, self._names = schema, schema.names
        self._classes: list[type] = []
        self._readers: list[tuple[int, Reader]] = []  # of columns whose values are looked at
        self._good: dict[tuple[type, ...], tuple[int, ...]] = {}  # places of integers that become doubles
        for place, (kind, pushed) in enumerate(zip(schema.types, given.types, strict=True)):
            python, reader = _python_type(kind, pushed)
            self._classes.append(python)
            if reader is not None:
                self._readers.append((place, reader))
        self._bounds = [
            (place, *bounds_of(kind)) for place, kind in enumerate(schema.types) if pa.types.is_integer(kind)
        ]
        self._floats = [place for place, kind in enumerate(schema.types) if pa.types.is_floating(kind)]

    def rows(self, events: Any, most: int) -> list[tuple[Any, ...]] | None:
        """Few dicts as tuples; None where they are more than `most`, or a value is not as its column asks for."""
        if isinstance(events, dict):
            events = [events]
        if not isinstance(events, list) or len(events) > most:
            return None
        try:
            found = [self._row(event) for event in events]
        except (ValueError, ArithmeticError):
            return None
        return None if None in found else found  # type: ignore[return-value]

    def rows_of(self, table: pa.Table) -> list[tuple[Any, ...]] | None:
        """A table as tuples; None where Python has no value for one of them."""
        try:
            columns = [each.to_pylist() for each in table.cast(self.schema).columns]
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        for place in self._floats:
            columns[place] = [math.nan if value != value else value for value in columns[place]]
        return list(zip(*columns, strict=True))

    def _row(self, event: Any) -> tuple[Any, ...] | None:
        if type(event) is not dict:
            return None
        values: tuple[Any, ...] = tuple(map(event.get, self._names))
        types = tuple(map(type, values))
        widened = self._good.get(types)
        if widened is None:
            widened = self._fitting(types)
            if widened is None:
                return None
        for place, low, high in self._bounds:
            value = values[place]
            if value is not None and not low <= value <= high:
                return None
        if widened or self._readers:
            found = list(values)
            for place in widened:
                if not -_EXACT <= found[place] <= _EXACT:
                    return None
                found[place] = float(found[place])
            for place, read in self._readers:
                if found[place] is not None:
                    found[place] = read(found[place])
            return tuple(found)
        return values

    def _fitting(self, types: tuple[type, ...]) -> tuple[int, ...] | None:
        """Which integers become doubles, None where a value is of another type than its column."""
        widened = []
        for place, (given, asked) in enumerate(zip(types, self._classes, strict=True)):
            if given is asked or given is type(None):
                continue
            if asked is not float or given is not int:
                return None
            widened.append(place)
        self._good[types] = tuple(widened)
        return self._good[types]


def bounds_of(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    bits = kind.bit_width
    return (0, 2**bits - 1) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _python_type(kind: pa.DataType, pushed: pa.DataType) -> tuple[type, Reader | None]:
    """The class of a column's values and what makes one of them as Arrow would; `object` where Arrow has to do it.

    What makes a value raises ValueError at one that Arrow has to look at, such as one that does not fit what is pushed.
    """
    if pa.types.is_integer(kind):
        return int, None
    if pa.types.is_decimal(kind):
        return Decimal, _decimals(kind)
    if pa.types.is_timestamp(kind):
        return datetime, _stamps(kind, pushed.unit)
    if pa.types.is_float32(kind):
        return float, _single
    known: dict[pa.DataType, tuple[type, Reader | None]] = {pa.float64(): (float, _double), pa.string(): (str, _text)}
    known |= {pa.bool_(): (bool, None), pa.date32(): (date, None)}
    if pushed == kind:
        known |= {pa.binary(): (bytes, None), pa.time64("us"): (time, _clock)}
    return known.get(kind, (object, None))


def _double(value: float) -> float:
    return value if value == value else math.nan  # one object, which equals itself in a key


def _single(value: float) -> float:
    if value != value:
        return math.nan
    (found,) = struct.unpack("f", struct.pack("f", value))
    return float(found)


def _text(value: str) -> str:
    if is_broken(value):
        raise ValueError("half a character")
    return value


def _clock(value: time) -> time:
    if value.tzinfo is not None:
        raise ValueError("zone")
    return value


def _decimals(kind: pa.DataType) -> Reader:
    unit, bound = Decimal(1).scaleb(-kind.scale), Decimal(1).scaleb(kind.precision - kind.scale)
    least = -bound

    def read(value: Decimal) -> Decimal:
        if not least < value < bound:
            raise ValueError("digits")
        if value.same_quantum(unit):
            return value
        found = EXACT.quantize(value, unit)
        if found != value:
            raise ValueError("digits")
        return found

    return read


def _stamps(kind: pa.DataType, unit: str) -> Reader:
    """Times of a zone are of UTC to the host; `Columns.shown` makes of them what Arrow gives."""
    step, zoned, own = {"s": 10**6, "ms": 10**3}.get(unit, 1), kind.tz is not None, pa.scalar(0, kind).as_py().tzinfo

    def read(value: datetime) -> Any:
        zone = value.tzinfo
        if (zone is not None) is not zoned or (step > 1 and value.microsecond % step):
            raise ValueError("zone or digits")
        return value if zone is None or zone is UTC or zone is own else value.astimezone(own)

    return read


def _shown_as(kind: pa.DataType) -> Reader | None:
    """From a time as it is kept to what Arrow gives, None where that is the same."""
    if not pa.types.is_timestamp(kind) or (kind.tz is None and kind.unit != "ns"):
        return None
    sample = pa.scalar(0, kind).as_py()
    wide, own = type(sample), sample.tzinfo

    def shown(value: Any) -> Any:
        if value is None or (type(value) is wide and value.tzinfo is own):
            return value
        value = value if value.tzinfo is own else value.replace(tzinfo=own)
        return value if wide is datetime else wide(value).as_unit("ns")

    return shown


def _has_rows(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether Python's values of a type are what the host's table has, for what was pushed as another one."""
    if given != kind:
        alike = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_decimal, pa.types.is_nested, is_text, is_bytes)
        if not any(each(given) and each(kind) for each in alike):
            return False
    if pa.types.is_nested(kind):
        return all(_has_rows(kind.field(place).type, kind.field(place).type) for place in range(kind.num_fields))
    plain = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_date32)
    more = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_string, pa.types.is_binary, pa.types.is_null)
    return any(each(kind) for each in (*plain, *more)) and kind != pa.time64("ns")


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
    form : RowForm, or None
        How rows are made of matches, where that needs no host.
    times : Times, or None
        How times are compared, where there are any.
    """

    def __init__(
        self,
        columns: Columns,
        live: Live,
        values: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        back: int,
        form: RowForm | None,
        times: Times | None,
    ) -> None:
        self.columns, self._live, self._values, self.back, self.form = columns, live, values, back, form
        self.times = times
        self.parts: dict[tuple[Any, ...], Partition] = {}
        self.pending: list[tuple[Any, ...]] = []  # a heap of (time, other columns of ORDER BY, number, row)
        self.mark: Any = None  # no row before it comes any more
        self._count = 0
        self._deadlines: list[tuple[int | float, int, tuple[Any, ...]]] = []
        self.texts: list[str] = []  # that programs read
        self.bounded = False
        self.forgets = False  # partitions without rows
        self.beyond = False  # whether a number or the steps of a search are too many: the host has to go on
        self.leading = columns.order[0][0] if columns.order else None
        self.key = _chooser(columns.keys)

    def time(self, row: tuple[Any, ...]) -> Any:
        """The time of a row, as it is compared; raises NoTimeError at one that only the host compares."""
        return 0 if self.times is None or self.leading is None else self.times.of(row[self.leading])

    def add(self, row: tuple[Any, ...], time: Any) -> None:
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

    def release(self) -> list[tuple[tuple[Any, ...], Partition, list[Match], tuple[int, int] | None]]:
        """Match the rows that no other comes before any more; gives partitions with matches, or where one cannot go on.

        `settled` has to be called for each of them once its matches have been looked at.
        """
        pending, mark = self.pending, self.mark
        touched: dict[tuple[Any, ...], Partition] = {}
        while pending and (self.times is None or (mark is not None and pending[0][0] < mark)):
            entry = heapq.heappop(pending)
            row = entry[-1]
            key = self.key(row)
            part = self.parts.get(key)
            if part is None:
                part = self.part(key)
            part.take(row, entry[0], self._values(row))
            touched[key] = part
        while self._deadlines and mark is not None and self._deadlines[0][0] < mark:
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

    def fill(self, key: tuple[Any, ...], rows: Sequence[tuple[Any, ...]], progress: Progress) -> None:
        """Take a partition as tables keep it, its rows in order."""
        part = self.part(key)
        for row in rows:
            part.take(row, self.time(row), self._values(row))
        part.start, part.covered = progress.decided, progress.covered
        part.number, part.begins = progress.number, progress.begins
        self.settled(key, part)


def direct_of(
    meaning: Meaning,
    given: pa.Schema,
    schema: pa.Schema,
    leading: tuple[LeadingTime, Lateness] | None,
    outer: str,
    max_steps: int,
) -> Direct | None:
    """What takes few rows at a time, None where a statement needs the host for each of them.

    Parameters
    ----------
    meaning : Meaning
    given, schema : pyarrow.Schema
        What is pushed, and what the host makes of it.
    leading : (LeadingTime, lateness), or None
    outer : str
        The statement around the clause.
    max_steps : int
    """
    clause, (back, ahead) = meaning.clause, reach_of(meaning)
    columns = _columns(meaning, given, schema)
    if columns is None or meaning.program.counts or back + max(ahead) > _FAR:
        return None
    times = None
    if leading is not None:
        times = times_of(*leading, None if meaning.within is None else meaning.within.text)
        if times is None:
            return None
    conditions = compile_conditions(meaning, columns.places, schema)
    if conditions is None:
        return None
    within = None if times is None else times.within
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
        *meaning.skip,
        within,
        conditions.searching,
        read_ahead(meaning),
        clause.rows == "unmatched",
        max_steps,
    )
    form = compile_rows(meaning, columns, outer)
    found = Direct(columns, live, conditions.values, back, form, times)
    found.texts = conditions.texts
    found.bounded, found.forgets = within is not None, not meaning.reads_past
    return found


def _columns(meaning: Meaning, given: pa.Schema, schema: pa.Schema) -> Columns | None:
    """The columns, None where a partition or an order is no plain column of a type that can be compared here."""
    names = [each.lower() for each in schema.names]
    found = Columns(schema, (), ())
    if given.names != schema.names or len(set(names)) < len(names):
        return None
    if not all(map(_has_rows, given.types, schema.types)):
        return None
    keys = [found.place(each.text) for each in meaning.partition]
    order = [found.place(each.text) for each in meaning.order]
    if None in keys or None in order:
        return None
    found.keys = tuple(place for place in keys if place is not None)
    how = [(each.descending, each.nulls_first) for each in meaning.clause.order]
    found.order = tuple((place, *each) for place, each in zip(order, how, strict=True) if place is not None)
    compared = [schema.types[place] for place in (*found.keys, *(each[0] for each in found.order))]
    if any(map(pa.types.is_nested, compared)):
        return None
    return None if found.order and found.order[0][1] else found


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as a table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema.names)
    return pa.table(
        [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )
