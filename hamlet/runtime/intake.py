"""What comes in with a push: batches of the columns that are asked for, and what is known of all columns by then.

Most pushes have the columns of the one before, types and all: then their events are only looked at (`check`), and
nothing is worked out again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME, settled
from hamlet.input.durations import with_durations
from hamlet.input.input_schema import coded_in, schema_of, unreadable_column
from hamlet.input.moments import with_moments
from hamlet.input.ordering import SortKey
from hamlet.input.pushed import arrived
from hamlet.input.readers import check, named, table_of
from hamlet.input.stream_schema import conformed, widened
from hamlet.input.widening import conform, in_batches, is_readable
from hamlet.language.schema import Schema


class ColumnOptions(Protocol):
    """What the columns of events mean, as options say it."""

    @property
    def time_column(self) -> str:
        """The column of times."""

    @property
    def type_column(self) -> str:
        """The column of types."""

    @property
    def order_column(self) -> str | None:
        """What orders events of one time."""

    @property
    def time_unit(self) -> str:
        """What 1 means in an integer time column."""

    @property
    def timezone(self) -> str | None:
        """The zone in which days begin."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a push.

    Attributes
    ----------
    given : pyarrow.Schema
        As they came.
    closed : bool
        Whether they were all.
    schema : Schema
        What was known with them.
    taken : pyarrow.Schema
        The columns that the engine takes, and as what.
    direct : bool
        Whether nothing but their types has to be changed, and those at once.
    """

    given: pa.Schema
    closed: bool
    schema: Schema
    taken: pa.Schema
    direct: bool


AnyOptions = TypeVar("AnyOptions", bound=ColumnOptions)


def for_columns(options: AnyOptions, names: Iterable[str]) -> AnyOptions:
    """Options with the time column that is among these columns."""
    return replace(options, time_column=settled(options.time_column, names))  # type: ignore[type-var]


def with_time_column(options: AnyOptions, events: Any) -> tuple[AnyOptions, Any]:
    """Options with the time column that the first events have, and the events."""
    if options.time_column != TIME:
        return options, events
    names, events = named(events)
    return for_columns(options, names), events


class Intake:
    """Reads what is pushed.

    Parameters
    ----------
    options : ColumnOptions
    wanted : sequence of str
        The columns that a workload needs.
    wide_integers : bool
        Whether integers of more than 64 bits in dicts make a column of decimals, instead of an error.
    durations : collection of str
        Attributes whose numbers in dicts and lines of text are seconds.
    """

    def __init__(
        self,
        options: ColumnOptions,
        wanted: tuple[str, ...],
        wide_integers: bool = False,
        durations: Collection[str] = (),
    ) -> None:
        self._options = options
        self._key = SortKey(options.time_column, options.order_column)
        self._wanted = wanted
        self._wide = wide_integers
        self._durations = durations
        self._attributes = [name for name in wanted if name not in (options.time_column, options.type_column)]
        self._last: _Columns | None = None

    def read(self, events: Any, known: Schema | None, first_event: int) -> tuple[list[pa.RecordBatch], Schema | None]:
        """The events of a push, not sorted, and what is known with them; `known` itself where they say nothing new.

        Parameters
        ----------
        events : pyarrow Table or RecordBatch, dict of numpy arrays, iterable of dicts
        known : Schema or None
            What was known before.
        first_event : int
            How many events were pushed before, for messages.

        Raises
        ------
        DataError
            A column that is missing, changes its type or has one that no attribute can have, a NULL time, data that are
            damaged.
        """
        options = self._options
        table, closed = table_of(events, first_event, self._wide, options.time_column)
        before = None if known is None else known.clock.type
        table = with_moments(table, options.time_column, options.time_unit, first_event, known=before)
        if not closed and self._durations:
            table = with_durations(table, self._durations)
        last = self._last
        if last is None or last.schema is not known or last.closed != closed or not table.schema.equals(last.given):
            return self._learn(table, closed, known, first_event)
        if not last.direct or any(table.column(name).null_count for name in self._key.names):
            return in_batches(conformed(self._plain(table, closed, first_event), last.schema, self._wanted)), known
        part = table.select(last.taken.names)
        for batch in part.to_batches():
            check(batch)
        batches = in_batches(part)
        if not part.schema.equals(last.taken):
            batches = [conform(batch, last.taken) for batch in batches]
        return batches, known

    def _learn(
        self, table: pa.Table, closed: bool, known: Schema | None, first_event: int
    ) -> tuple[list[pa.RecordBatch], Schema | None]:
        """Read events whose columns are not those of the push before."""
        options = self._options
        plain = self._plain(table, closed, first_event)
        if not plain.num_rows:
            return [], known
        found = schema_of(plain.schema, self._key, options.type_column, options.time_unit, closed=closed)
        found = replace(found.in_zone(options.timezone), coded=coded_in(table.schema, found.type_column))
        schema = found if known is None else widened(known, found, self._attributes)
        part = conformed(plain, schema, self._wanted)
        direct = all(field.type.equals(plain.schema.field(field.name).type) for field in part.schema)
        self._last = _Columns(table.schema, closed, schema, part.schema, direct)
        return in_batches(part), schema

    def _plain(self, table: pa.Table, closed: bool, first_event: int) -> pa.Table:
        """All columns that the engine can read, in plain types; one that is asked for must be among them."""
        options = self._options
        for field in table.schema:
            if field.name in self._attributes and not is_readable(field.type):
                raise DataError(unreadable_column(field.name, field.type)).about(column=field.name)
        return arrived(
            table,
            closed,
            time_column=options.time_column,
            type_column=options.type_column,
            order_column=options.order_column,
            first_event=first_event,
        )
