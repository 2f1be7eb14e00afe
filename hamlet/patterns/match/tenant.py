"""Statements over a live stream (`hamlet.runtime.tenant`): types of columns are learnt as lines come."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hamlet.engine.live_filter import never_came
from hamlet.errors import DataError, Span, WorkloadError
from hamlet.input.live.table_lines import BadLineError, Columns
from hamlet.input.ordering import SortKey
from hamlet.input.widening import widen
from hamlet.patterns.clause.scan import without_layout
from hamlet.patterns.clause.statement import Script, Statement
from hamlet.patterns.match.matcher import Matcher
from hamlet.patterns.options import Options
from hamlet.runtime.monitor_tenant import MonitorTenant
from hamlet.runtime.options import by_name
from hamlet.runtime.tenant import Pieces

_NO_COLUMN = re.compile(r'Referenced column "(.+)" not found in FROM clause!')


class _Columns(Columns):
    """The columns of a table; a row without a time is no row.

    Parameters
    ----------
    time : str or None
        The column that rows are ordered by first, in any case; None where that is an expression.
    """

    def __init__(self, time: str | None) -> None:
        super().__init__(SortKey(""), "")  # no column has to be a time of the kinds that other notations have
        self.types.clear()
        self._time = time

    def check(self, table: pa.Table) -> None:
        """Raise BadLineError where a row has no time."""
        super().check(table)
        if self._time is None:
            return
        names = [*table.schema.names, *self.types]
        for name in {each for each in names if each.lower() == self._time.lower()} or {self._time}:
            if name not in table.schema.names:
                raise BadLineError(f"there is no {name!r}")
            if table.column(name).null_count:
                raise BadLineError(f"{name!r} is NULL")


class PatternTenant(MonitorTenant):
    """One statement.

    Parameters
    ----------
    text : str
        One statement.
    name : str
    options : mapping
        Of `Matcher`.
    named : bool
        Whether each row names its statement.
    names, delimiter
        The columns and the delimiter of CSV, where they are given.
    saved : bytes, optional
        From `save`.
    time : str, optional
        The column that rows are ordered by first; a row without it is a bad one.
    """

    kind = "query"
    monitor: Matcher | None
    _reads = "row patterns read json, csv or arrow"

    def __init__(
        self,
        text: str,
        name: str,
        options: dict[str, Any],
        *,
        named: bool = True,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        saved: bytes | None = None,
        time: str | None = None,
    ) -> None:
        self.names: Sequence[str] = [name]
        self.named = named
        self._sql, self._options, self._named, self._delimiter = text, options, names, delimiter
        self.known = _Columns(time)
        self._is_open = False
        self._awaited: dict[str, str] = {}  # columns, as the statement has them, that did not come with the first rows
        self.monitor = None
        if saved:
            self.monitor = Matcher.restore(text, saved, max_memory=options.get("max_memory"))
            self.known.types |= {each.name: each.type for each in self.monitor.schema}

    @property
    def asked(self) -> dict[str, Any]:
        """The options of the matcher, which a save has, too."""
        known = by_name(Options())
        given = {name: value for name, value in self._options.items() if name in known}
        return {**known, **given} if self.monitor is None else by_name(self.monitor.options)

    def text(self) -> str:
        """The statement, without what only lays it out."""
        return f"{self.names[0]}: {without_layout(self._sql)}"

    @property
    def events(self) -> int:
        """Rows seen."""
        return 0 if self.monitor is None else self.monitor.stats["events"]

    @property
    def late_events(self) -> int:
        """Rows left out for being late."""
        return 0 if self.monitor is None else self.monitor.stats["late_events"]

    @property
    def last_time(self) -> str | None:
        """The largest time seen."""
        seen = None if self.monitor is None else self.monitor.seen
        return None if seen is None else str(seen)

    def push(self, events: pa.Table, name: str) -> Pieces:  # noqa: ARG002
        """Take a table; a column whose type widens, or that is new, is so from now on."""
        if not events.num_rows:
            return []
        events = events.rename_columns([self._awaited.get(each.lower(), each) for each in events.schema.names])
        known = None if self.monitor is None else self.monitor.schema
        schema = _united(known, events.schema)
        if self.monitor is None:
            self.monitor = self._begun(schema)
            schema = self.monitor.schema
        elif schema != known:
            self.monitor = self.monitor.widened(schema)
        missing = [field for field in schema if field.name not in events.schema.names]
        for field in missing:
            events = events.append_column(field, pa.nulls(events.num_rows, field.type))
        return self._pieces(self.monitor.push(events))

    def _begun(self, schema: pa.Schema) -> Matcher:
        """A matcher; of lines of JSON a column that the statement reads may still come, and is NULL until then."""
        while True:
            try:
                return Matcher(self._sql, schema, **self._options)
            except WorkloadError as error:
                missing = [_NO_COLUMN.match(each.message) for each in error.diagnostics]
                found = {each[1].lower(): each[1] for each in missing if each}
                if not self._is_open or None in missing or not found.keys().isdisjoint(self._awaited):
                    raise
                self._awaited |= found
                schema = pa.schema([*schema, *(pa.field(each, pa.null()) for each in found.values())])

    def _reads_lines(self, form: str) -> None:
        """Lines of a form will come."""
        self._is_open = form == "json"

    @property
    def warnings(self) -> Sequence[str]:
        """What was probably not meant."""
        kinds = {} if self.monitor is None else {each.name: each.type for each in self.monitor.schema}
        never = [each for each in self._awaited.values() if pa.types.is_null(kinds[each])]
        return [*never_came(never, kinds.keys() - never, "no row"), *super().warnings]

    def pass_time(self, seconds: float) -> Pieces:
        """Time has passed since the last event."""
        return [] if self.monitor is None else self._pieces(self.monitor.pass_time(seconds))

    def close(self) -> Pieces:
        """The rows that are left."""
        return [] if self.monitor is None else self._pieces(self.monitor.close())

    def _pieces(self, rows: Sequence[dict[str, Any]]) -> Pieces:
        assert self.monitor is not None
        return [(0, pa.RecordBatch.from_pylist(list(rows), self.monitor.rows_schema))] if rows else []

    def columns(self, place: int) -> Sequence[str]:  # noqa: ARG002
        """The columns of rows; unknown before the first row of the input."""
        return [] if self.monitor is None else list(self.monitor.rows_schema.names)


def _united(known: pa.Schema | None, given: pa.Schema) -> pa.Schema:
    """The columns that are known and those of a table, in types that hold the values of both."""
    types: dict[str, pa.DataType] = {} if known is None else {each.name: each.type for each in known}
    for field in given:
        old = types.get(field.name, pa.null())
        wide = widen(old, field.type)
        if wide is None:
            raise DataError(f"column {field.name!r} holds {field.type}, and held {old} before")
        types[field.name] = wide
    return pa.schema(list(types.items()))


def statement_text(script: Script, statement: Statement) -> str:
    """One statement of a text, at the place where it stands, so that messages name its lines."""
    span: Span = statement.span
    before = "".join("\n" if each == "\n" else " " for each in script.text[: span.start])
    return before + script.text[span.start : span.end]
