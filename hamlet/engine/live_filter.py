"""Which events of a live stream are taken: those of a period that fulfil a condition."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hamlet.errors import near_miss
from hamlet.frontend.time_column import TIME
from hamlet.input.buffers import from_numpy
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.period import period_of

if TYPE_CHECKING:
    from hamlet.engine.where import Filter


class LiveFilter:
    """Leaves out events, table by table.

    Parameters
    ----------
    where : str or None
        A condition of the language.
    since, until : str or None
        The first time whose events are taken, and the first whose events are not any more.
    columns : mapping
        ``time_column, type_column, order_column, time_unit``.

    Attributes
    ----------
    growing : bool
        Whether events may bring further columns, as lines of JSON do: what has not come is NULL.
    """

    growing = False

    def __init__(self, where: str | None, since: str | None, until: str | None, **columns: str | None) -> None:
        self._where, self._since, self._until = where, since, until
        self._key = SortKey(columns.get("time_column") or TIME, columns.get("order_column"))
        self._type = columns.get("type_column") or "type"
        self._unit = columns.get("time_unit") or "s"
        self._fields: dict[str, pa.DataType] = {}
        self._filter: Filter | None = None

    def may_read(self, name: str) -> bool:
        """Whether the condition may speak of a column."""
        return self._where is not None and name in self._where

    def of(self, table: pa.Table) -> pa.Table:
        """The events of a table that are taken."""
        fields = {each.name: each.type for each in table.schema}
        fields = {**self._fields, **fields} if self.growing else fields
        if fields != self._fields:
            self._fields = fields
            self._key = self._key.among(fields)
            schema = schema_of(pa.schema(list(fields.items())), self._key, self._type, self._unit, closed=False)
            if self._where is not None:
                from hamlet.engine.where import Filter  # brings in the language of queries

                self._filter = Filter(self._where, schema, growing=self.growing)
            self._period = (
                None
                if self._since is None and self._until is None
                else period_of(self._since, self._until, schema.clock)
            )
        if self._period is not None:
            times, _ = self._key.columns_of(table)
            inside = (times >= self._period[0]) & (times < self._period[1])
            if not inside.all():
                table = table.filter(from_numpy(np.ascontiguousarray(inside)))
        if self._filter is not None and table.num_rows:
            parts = [batch.filter(self._filter.chosen(batch)) for batch in table.to_batches()]
            table = pa.Table.from_batches(parts, table.schema)
        return table

    @property
    def warnings(self) -> list[str]:
        """That columns of the condition never came, a sentence each."""
        return [] if self._filter is None else never_came(self._filter.unseen, self._fields)


def never_came(unseen: Iterable[str], known: Collection[str], what: str = "--where: no event") -> list[str]:
    """That columns that something reads are not among those that have come, a sentence each."""
    said = []
    for name in unseen:
        meant = near_miss(name, known)
        said.append(f"{what} has a value of {name}" + ("" if meant is None else f" (did you mean {meant}?)"))
    return said


def filter_of(where: str | None, since: str | None, until: str | None, **columns: str | None) -> LiveFilter | None:
    """What leaves out events; None where all are taken."""
    return None if where is None and since is None and until is None else LiveFilter(where, since, until, **columns)
