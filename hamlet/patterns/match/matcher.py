"""Row patterns continuously: rows come in batches, a match is given once no later row can change it.

Rows are kept in tables of the host (`in_tables`), or, as long as few come at a time and the kernel has all that their
conditions ask, one by one (`direct`). Saves are of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any, Unpack, cast

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.columns import BlobWriter
from hamlet.checkpoint.frame import Work, read, write
from hamlet.checkpoint.pieces import as_bytes
from hamlet.errors import (
    DataError,
    HamletError,
    MemoryLimitError,
    OptionError,
    RestoreError,
    Span,
    WorkloadError,
    option,
)
from hamlet.frontend.reports import Reports
from hamlet.input.readers import table_of
from hamlet.input.widening import plain_type
from hamlet.patterns.automaton._live import Partition
from hamlet.patterns.automaton._walk import Matches
from hamlet.patterns.clause.scan import without_layout
from hamlet.patterns.clause.statement import Script
from hamlet.patterns.match.conditions import Failed
from hamlet.patterns.match.direct import FEW, STILL_FEW, Direct, Intake, direct_of, table_of_rows
from hamlet.patterns.match.direct_times import NoTimeError
from hamlet.patterns.match.evaluate import (
    Meaning,
    Shared,
    distinct_names,
    evaluate,
    skip_message,
)
from hamlet.patterns.match.host import HostError
from hamlet.patterns.match.in_tables import InTables, Progress
from hamlet.patterns.match.keys import key_of, key_texts
from hamlet.patterns.match.leading_time import LeadingTime
from hamlet.patterns.match.projection import is_whole
from hamlet.patterns.match.run import StatementRun, host_of, parsed, tables_read
from hamlet.patterns.match.streamed import beyond_stream, unreadable
from hamlet.patterns.options import MatcherOptions, Options
from hamlet.runtime.monitor import Monitor, Row
from hamlet.runtime.options import by_name, made_of, takes
from hamlet.runtime.reorder_buffer import late_error
from hamlet.runtime.sizes import Limit, bytes_of, limit_of, size_text

_FIELDS = ("options", "schema", "pending", "live", "mark", "partitions", "counts")
_OF_DAMAGE = (pa.ArrowException, OSError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


class Matcher(Monitor):
    """Finds the matches of one statement in rows that come in batches.

    Parameters
    ----------
    text : str
        One statement with one MATCH_RECOGNIZE clause, around which a projection and a filter stand.
    schema : pyarrow.Schema
        The columns of the rows.
    source : str
        The name of the text in messages.
    lateness : int, float, str or datetime.timedelta
        How far behind the latest time rows may be: ticks of the time, or a duration (``'5 s'``).
    late : {'error', 'drop'}
        What becomes of later rows.
    time_unit : {'s', 'ms', 'us', 'ns'}
        What 1 means where times are integers.
    max_memory : int or str, optional
        Most bytes that rows may take which are kept: ``'2 GiB'``.
    dialect : str
        What the SQL is written in.
    max_steps : int
        Most steps of one start of a pattern whose conditions read labels.

    Attributes
    ----------
    goes_directly : bool
        Whether pushes of few rows go to the automaton as they are, without a table of DuckDB.

    Examples
    --------
    >>> import pyarrow as pa
    >>> clause = "ORDER BY ts MEASURES FIRST(ts) AS since PATTERN (a b) DEFINE b AS v > 1"
    >>> text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    >>> matcher = Matcher(text, pa.schema([("ts", pa.int64()), ("v", pa.int64())]))
    >>> matcher.push([{"ts": 1, "v": 1}, {"ts": 2, "v": 5}])
    []
    >>> matcher.push([{"ts": 3, "v": 1}])
    [{'since': 1}]
    """

    _called = "matcher"

    @takes(Options)
    def __init__(
        self, text: str, schema: pa.Schema, *, source: str = "<sql>", **options: Unpack[MatcherOptions]
    ) -> None:
        super().__init__()
        self.options = chosen = made_of(Options, options, ("source",))
        if not isinstance(schema, pa.Schema):
            raise OptionError(f"schema is a pyarrow.Schema, not {type(schema).__name__}")
        self._sql, self._schema = text, schema
        self._limit = bytes_of(chosen.max_memory)
        self._script = parsed(text, chosen.dialect, source)
        self._reports = Reports(text, source)
        self._table_name = self._one_table(self._script)
        self._host = host_of(self._script, {self._table_name: schema.empty_table()})
        self._read(self._script)
        self._counts = {"events": 0, "late_events": 0, "rows": 0}
        self.rows_schema = self._shown_schema()  # with all that the host says against the text
        empty = self._sourced(schema.empty_table())
        order = self._meaning.order
        self._time = LeadingTime(order[0].text, self._time_of(empty), chosen.time_unit) if order else None
        if self._time is not None:
            self._time.earlier("t", chosen.lateness)  # which is refused where it cannot be
        self._tables = InTables(self._meaning, self._host, self._reports, chosen, self._time, empty, self._seen_through)
        self._direct: Direct | None = None  # what takes rows one by one, while it does
        self._intake = Intake(schema, empty.schema)
        self._spare = self._made_direct() if is_whole(self._inner_query(), schema.names) else None
        self.goes_directly = self._spare is not None

    # The statement.

    def _one_table(self, script: Script) -> str:
        """The table that the one clause of the one statement reads."""
        whole = Span(0, max(1, len(self._sql)))
        if [len(each.clauses) for each in script.statements] != [1]:
            self._reports.error("a matcher takes one statement with one MATCH_RECOGNIZE", whole, "use hamlet.sql")
            raise WorkloadError(self._reports.errors)
        names = tables_read(script)
        if len(names) != 1:
            said = f"a matcher reads one table, and the text reads {', '.join(names) or 'none'}"
            self._reports.error(said, whole, "use hamlet.sql for more")
            raise WorkloadError(self._reports.errors)
        return names[0]

    def _read(self, script: Script) -> None:
        """Read the statement, and refuse what cannot be done continuously."""
        [statement] = script.statements
        [clause] = statement.clauses
        steps = self.options.max_steps
        self._run = run = StatementRun(script, statement, self._host, self._reports, "__hamlet_m", steps)
        try:
            self._meaning: Meaning = run.read(clause, run.source_of(clause))
        except Failed:
            raise WorkloadError(self._reports.errors) from None
        if run.read_outside(clause):
            said = "a matcher's table reads no rows around it: later ones may need all rows again"
            self._reports.error(said, clause.source, "use hamlet.sql")
            raise WorkloadError(self._reports.errors)
        rewriting = run._rewriting
        self._inner = f"SELECT * FROM {rewriting.render(clause.source)}"
        rewriting.replace(clause, "__hamlet_given")
        self._outer = rewriting.render(statement.span)
        if "collat" in self._inner.lower():
            said = "a matcher keeps the rows of a subquery without its collations"
            hint = "write COLLATE in the clause, where texts are compared"
            self._reports.error(said, Span(clause.source.start, clause.source.end), hint)
        if not beyond_stream(script, statement, self._reports):
            self._shown_schema()  # unless the host says what is wrong
            unreadable(statement, self._reports)
        if self._reports.errors:
            raise WorkloadError(self._reports.errors)

    def _sourced(self, rows: pa.Table) -> pa.Table:
        """Rows as the clause reads them: with the projection and the filter of its table."""
        self._host.connection.unregister(self._table_name)
        self._host.register(self._table_name, rows)
        return self._host.arrow(self._inner_query())

    def _made_direct(self) -> Direct | None:
        leading = None if self._time is None else (self._time, self.options.lateness)
        schema, outer = self._tables.live.schema, self._run._translate(self._outer)
        return direct_of(self._meaning, self._schema, schema, leading, outer, self.options.max_steps)

    def _shown_schema(self) -> pa.Schema:
        """The columns of the rows that are given; what the host says against expressions is an error now."""
        host, name = self._host, "__hamlet_shape"
        try:
            query = f"SELECT * FROM ({self._inner_query()}) LIMIT 0"
            plain = evaluate(self._meaning, host, query, name, self._reports, self.options.max_steps, Shared())[2]
            if plain is not None:
                host.register(name, plain)
            return self._seen_through(name).schema
        except Failed:
            raise WorkloadError(self._reports.errors) from None
        except HostError as error:
            self._run._report(error, self._script.statements[0].span)
            raise WorkloadError(self._reports.errors) from None

    def _inner_query(self) -> str:
        return self._run._translate(self._inner)

    def _seen_through(self, name: str) -> pa.Table:
        """The rows of a table of the host through the statement around the clause."""
        self._host.connection.unregister("__hamlet_given")
        self._host.execute(f"CREATE OR REPLACE TEMP VIEW __hamlet_given AS SELECT * FROM {name}")
        rows = self._host.arrow(self._run._translate(self._outer))
        self._host.execute("DROP VIEW __hamlet_given")
        return rows.rename_columns(distinct_names(rows.column_names))

    def _time_of(self, rows: pa.Table) -> pa.DataType:
        self._host.register("__hamlet_given", rows)
        return self._host.arrow(f"SELECT ({self._meaning.order[0].text}) AS t FROM __hamlet_given").schema.types[0]

    # The protocol.

    @property
    def _text(self) -> Any:
        return self._sql

    @property
    def stats(self) -> dict[str, int]:
        """``events``, ``late_events`` and ``rows`` so far."""
        return dict(self._counts)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that are pushed."""
        return self._schema

    @property
    def seen(self) -> Any:
        """The time before which no row may come any more, None where there is none yet."""
        self._as_tables()
        mark = self._tables.mark
        return None if mark is None else mark.as_py()

    def explain(self) -> str:
        """How it runs: the text of ``hamlet explain``."""
        from hamlet.patterns.match.explain import explain

        return explain(self._sql, dialect=self.options.dialect, source=self._reports.source)

    def _repr_html_(self) -> str:
        """What is kept, for a notebook."""
        kept = "closed" if self._closed else "{rows:,} rows, {bytes:,} bytes".format(**self.held)
        return f"<p>row pattern, kept: {kept}</p>"

    @property
    def warnings(self) -> list[str]:
        """What was probably not meant."""
        return []

    def _held(self) -> tuple[int, int]:
        if self._direct is not None:
            return self._direct.held()
        return self._tables.rows, sum(self._tables.nbytes())

    def _push(self, events: Any) -> list[Row]:
        table = None
        if self.goes_directly:
            most = FEW if self._direct is None else STILL_FEW
            rows = self._intake.rows(events, most)
            if rows is None:
                table = _table(events, self._schema)
                rows = self._intake.rows_of(table) if table.num_rows <= most else None
            given = None if rows is None else self._push_few(rows)
            if given is not None:
                return given
        self._as_tables()
        rows = self._sourced(_table(events, self._schema) if table is None else table)
        taken, mark = self._tables.timed(rows, self._counts["events"])
        with self._working():
            self._counts["events"] += rows.num_rows
            self._counts["late_events"] += rows.num_rows - taken.num_rows
            self._tables.add(taken, mark)
            return self._release(False)

    def _advance(self, time: Any) -> list[Row]:
        if self._time is None:
            return []
        mark = self._time.promise(time)
        if self._direct is not None:
            with self._working():
                assert self._direct.times is not None
                promised, known = self._direct.times.of_scalar(mark), self._direct.mark
                self._direct.mark = promised if known is None else max(known, promised)
                return self._released(self._direct)
        with self._working():
            known = self._tables.mark
            if known is None or mark.as_py() > known.as_py():
                self._tables.mark = mark
            return self._release(False)

    def pass_time(self, seconds: float) -> list[Row]:
        """Say that so many seconds have passed since the last row; the lateness is taken off."""
        with self._lock:
            self._as_tables()
            mark = self._tables.mark
            if mark is None or self._time is None or self._closed:
                return []
            known = mark.as_py()
            if isinstance(known, date):
                return self.advance(known + timedelta(seconds=seconds))
            clock = self._time.clock
            return self.advance(known + (seconds if clock is None else int(seconds * clock.ticks_per_second)))

    def widened(self, schema: pa.Schema) -> Matcher:
        """This matcher over columns of wider types, or over more columns; rows that are kept have NULL there.

        Raises
        ------
        DataError
            If a column of a partition changes its type.
        """
        self._as_tables()
        found = Matcher(self._sql, schema, source=self._reports.source, **_named(self.options))
        names = {each.lower() for each in self._meaning.key_names()}
        for field in self._schema:
            kind = schema.field(field.name).type
            if field.name.lower() in names and kind != field.type and not pa.types.is_null(field.type):
                raise DataError(f"column {field.name!r} of PARTITION BY holds {kind} now, and held {field.type}")
        old, new = self._tables, found._tables
        new.pending, new.live = (_fitted(each, new.live.schema) for each in (old.pending, old.live))
        if old.mark is not None and found._time is not None:
            new.mark = old.mark.cast(found._time.type)
        new.partitions, found._counts = old.partitions, self._counts
        return found

    def _end(self) -> list[Row]:
        self._as_tables()
        with self._working():
            return self._release(True)

    # Few rows at a time.

    def _push_few(self, rows: Sequence[tuple[Any, ...]]) -> list[Row] | None:
        """Take rows one by one; None where the host has to compare their times, from now on."""
        direct = self._direct or self._moved()
        if direct is None:
            return None
        leading, compared = direct.leading, direct.times
        mark, times, taken = direct.mark, [], []
        for place, row in enumerate(rows):
            if compared is None or leading is None:
                times.append(0)
                taken.append(row)
                continue
            if row[leading] is None:
                raise DataError(f"row {place + 1} of the batch has no time (NULL)")
            try:
                time = compared.of(row[leading])
            except NoTimeError:
                self.goes_directly = False
                return None
            if mark is not None and time < mark:
                if self.options.late == "error":
                    assert self._time is not None
                    own, last = (str(compared.scalar(each).as_py()) for each in (time, mark))
                    raise late_error(self._counts["events"] + place + 1, own, last, self._time.text)
                continue
            earlier = compared.earlier(time)
            if mark is None or earlier > mark:
                mark = earlier
            times.append(time)
            taken.append(row)
        try:  # as `_working`, without a generator for each row
            self._counts["events"] += len(rows)
            self._counts["late_events"] += len(rows) - len(taken)
            for row, time in zip(taken, times, strict=True):
                direct.add(row, time)
            direct.mark = mark
            return self._released(direct)
        except BaseException as error:
            self._failed = str(error) or type(error).__name__
            raise

    def _released(self, direct: Direct) -> list[Row]:
        """The rows of what has been decided."""
        try:
            decided = direct.release()
            given: list[Row] = []
            for key, part, found, stuck in decided:
                if stuck is not None:
                    ordered = self._tables.ordered(table_of_rows(part.rows, self._tables.live.schema))
                    raise DataError(skip_message(self._meaning, ordered, self._reports, 0, *stuck))
                if direct.form is not None and direct.form.takes(found):
                    given += direct.form.rows(part.rows, found)
                else:
                    given += self._given_alone(part, found)
                direct.settled(key, part)
        except OverflowError:
            raise DataError("a whole number of an expression does not fit its type; cast it to DOUBLE") from None
        self._counts["rows"] += len(given)
        if direct.beyond:
            self.goes_directly = False
            self._as_tables()
            return given + self._release(False)
        if self._limit is not None:
            size = direct.held()[1]
            if size > self._limit:
                most = "rows of matches that may go on, or held back for earlier ones,"
                self._refuse_memory(most, size, "bound the pattern, with WITHIN or {n,m}")
        return given

    def _given_alone(self, part: Partition, found: Sequence[tuple[int, int, int, Any]]) -> list[Row]:
        """The rows of matches of one partition, by the host."""
        matches = Matches()
        for start, length, number, steps in found:
            if length >= 0:
                matches.add(start, number, 0, steps)
        left = np.array([start for start, length, _, _ in found if length < 0], np.int64)
        rows = table_of_rows(part.rows, self._tables.live.schema)
        return self._tables.given(self._tables.ordered(rows), matches, [left])

    def _moved(self) -> Direct | None:
        """Have what is kept in tables taken row by row from now on; None where the host has to compare times."""
        tables = self._tables
        kept, waiting = self._intake.rows_of(tables.live), self._intake.rows_of(tables.pending)
        direct, self._spare = self._spare or self._made_direct(), None  # one that fails half-way is not used again
        if kept is None or waiting is None or direct is None:
            self.goes_directly = False
            return None
        entries: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        try:
            if direct.times is not None:
                kept.sort(key=direct.columns.behind_time)
                kept.sort(key=direct.time)
                direct.mark = None if tables.mark is None else direct.times.of_scalar(tables.mark)
            for row in waiting:
                direct.add(row, direct.time(row))
        except NoTimeError:
            self.goes_directly = False
            return None
        for row in kept:
            entries.setdefault(direct.key(row), []).append(row)
        for text, progress in tables.partitions.items():
            key = key_of(text, direct.columns.key_types)
            direct.fill(key, entries.get(key, []), progress)
        tables.pending, tables.live = tables.pending.slice(0, 0), tables.live.slice(0, 0)
        tables.partitions, self._direct = {}, direct
        return direct

    def _as_tables(self) -> None:
        """Have what is kept in tables, where the host reads it."""
        direct, tables = self._direct, self._tables
        if direct is None:
            return
        kinds, schema = direct.columns.key_types, tables.live.schema
        pending = table_of_rows([entry[-1] for entry in sorted(direct.pending)], schema)
        live = table_of_rows([row for part in direct.parts.values() for row in part.rows], schema)
        keys = [
            pa.chunked_array([pa.array([key[place] for key in direct.parts], kind)]) for place, kind in enumerate(kinds)
        ]
        texts = key_texts(keys) or ["()"] * len(direct.parts)
        partitions = {
            text: Progress(part.start, part.covered, part.number, part.begins)
            for text, part in zip(texts, direct.parts.values(), strict=True)
        }
        if direct.mark is not None and direct.times is not None:
            tables.mark = direct.times.scalar(direct.mark)
        tables.pending, tables.live, tables.partitions, self._direct = pending, live, partitions, None

    # In tables.

    def _release(self, closing: bool) -> list[Row]:
        """Match the rows that no other comes before any more; give what is certain."""
        try:
            given = self._tables.release(closing)
        except Failed:
            raise WorkloadError(self._reports.errors) from None
        except HostError as error:
            raise DataError(error.message) from None
        self._counts["rows"] += len(given)
        self._check_memory()
        return given

    def _check_memory(self) -> None:
        """Raise MemoryLimitError where the rows that are kept take more than they may."""
        if self._limit is None:
            return
        waiting, live = self._tables.nbytes()
        if waiting + live > self._limit:
            most, remedy = ("rows held back for earlier ones", "shorten lateness")
            if live >= waiting:
                most, remedy = ("rows of matches that may go on", "bound the pattern, with WITHIN or {n,m}")
            self._refuse_memory(most, max(waiting, live), remedy)

    def _refuse_memory(self, most: str, size: int, remedy: str) -> None:
        assert self._limit is not None
        raise MemoryLimitError(
            f"the run stops, since it needs more memory than its limit, {size_text(self._limit)}; {most} take "
            f"{size_text(size)}\nhint: {remedy}, or raise the limit ({option('max_memory')})"
        )

    # Saves.

    def _saved(self) -> bytes:
        self._as_tables()
        blobs, tables = BlobWriter(), self._tables
        fields = {
            "options": {**asdict(self.options), "lateness": _lateness_field(self.options.lateness)},
            "schema": blobs.blob(self._schema.serialize().to_pybytes()),
            "pending": blobs.blob(as_bytes(tables.pending)),
            "live": blobs.blob(as_bytes(tables.live)),
            "mark": blobs.blob(as_bytes(tables.mark_table())),
            "partitions": [[key, *vars(each).values()] for key, each in tables.partitions.items()],
            "counts": self._counts,
        }
        return write(Work("row patterns", without_layout(self._sql)), fields, blobs)

    @classmethod
    def restore(cls, text: str, data: bytes, *, max_memory: Limit = ...) -> Matcher:
        """The matcher that was saved, with its options.

        Parameters
        ----------
        text : str
            The statement.
        data : bytes
            What `save` gave.
        max_memory : int, str or None, optional
            The limit from now on, None for none; by default the one of the saved matcher.

        Raises
        ------
        RestoreError
        """
        fields: Any
        fields, blobs = read(Work("row patterns", without_layout(text)), data, _FIELDS)
        limit = limit_of(max_memory)
        try:
            schema = pa.ipc.read_schema(pa.py_buffer(bytes(blobs.blob(fields["schema"]))))
            pending, live, mark = (
                pa.ipc.open_stream(bytes(blobs.blob(fields[name]))).read_all() for name in ("pending", "live", "mark")
            )
            options, lateness = dict(fields["options"]), fields["options"]["lateness"]
            if isinstance(lateness, dict):
                options["lateness"] = timedelta(microseconds=lateness["us"])
            found = cls(text, schema, **{**options, **limit})
            found._take_state(pending, live, mark, fields)
        except RestoreError:
            raise
        except (*_OF_DAMAGE, HamletError) as error:
            raise RestoreError(f"the save is damaged: {error}") from None
        return found

    def _take_state(self, pending: pa.Table, live: pa.Table, mark: pa.Table, fields: Mapping[str, Any]) -> None:
        """What a save has of the rows that are kept, if it can be.

        Raises
        ------
        ValueError
        """
        tables = self._tables
        for name, table, known in (("pending", pending, tables.pending), ("live", live, tables.live)):
            if table.schema != known.schema:
                raise ValueError(f"the {name} rows have other columns")
            table.validate(full=True)
        mark.validate(full=True)
        if mark.schema != tables.mark_table().schema or mark.num_rows > 1 or mark.column("m").null_count:
            raise ValueError("the mark is none")
        partitions = {key: Progress(*rest) for key, *rest in fields["partitions"]}
        for key, each in partitions.items():
            numbers = each.decided, each.covered, each.number
            whole = all(type(number) is int and 0 <= number < 2**62 for number in numbers)
            if not (isinstance(key, str) and whole and type(each.begins) is bool):
                raise ValueError("a partition is none")
            if max(each.decided, each.covered) > live.num_rows:
                raise ValueError("a partition has more rows than there are")
        counts = dict(fields["counts"])
        if counts.keys() != self._counts.keys() or not all(type(each) is int and each >= 0 for each in counts.values()):
            raise ValueError("the counts are none")
        tables.pending, tables.live, tables.partitions, self._counts = pending, live, partitions, counts
        tables.mark = mark.column("m")[0] if mark.num_rows else None


def _table(events: Any, schema: pa.Schema) -> pa.Table:
    """A batch with the columns of the schema.

    Raises
    ------
    DataError
        If a column is missing or has another type.
    """
    if isinstance(events, dict) and not any(
        hasattr(each, "__len__") and not isinstance(each, (str, bytes)) for each in events.values()
    ):
        events = [events]
    try:
        exact = (pa.types.is_decimal, pa.types.is_uint64)
        known = {each.name: each.type for each in schema if any(is_kind(each.type) for is_kind in exact)}
        found, closed = table_of(events, decimals=known)
        if not closed:
            for name in schema.names:
                if name not in found.column_names:
                    found = found.append_column(name, pa.nulls(found.num_rows))
        missing = [name for name in schema.names if name not in found.column_names]
        if missing:
            raise DataError(f"the batch has no column {missing[0]!r}; it has {', '.join(found.column_names)}")
        return pa.table([_as(found.column(each.name), each.type) for each in schema], schema=schema)
    except (pa.ArrowException, TypeError, AttributeError) as error:
        raise DataError(f"the batch does not fit the schema: {error}") from None


def _named(options: Options) -> MatcherOptions:
    """Options by name, as a matcher takes them."""
    return cast(MatcherOptions, by_name(options))


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column in another type; integers beyond 2^53 among doubles are rounded, as the host does."""
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
        column = column.cast(plain_type(column.type))  # Arrow takes no string views out of a dictionary
        column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return column.cast(kind, safe=not pa.types.is_floating(kind))


def _fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows as a wider schema has them."""
    columns = [
        _as(rows.column(each.name), each.type) if each.name in rows.schema.names else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    return pa.table(columns, schema=schema)


def _lateness_field(lateness: Any) -> Any:
    return {"us": lateness // timedelta(microseconds=1)} if isinstance(lateness, timedelta) else lateness
