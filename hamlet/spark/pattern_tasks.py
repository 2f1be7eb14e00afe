"""What tasks do with a clause whose expressions Spark SQL evaluates: rows in order in, matched rows out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError
from hamlet.frontend.reports import Reports
from hamlet.patterns.automaton._walk import Matches, Table, walk
from hamlet.patterns.clause.expressions import LABEL, NUMBER, Navigation
from hamlet.patterns.match.evaluate import Meaning, check_skip, kernel_table, labelled, points_of
from hamlet.patterns.match.host import Host
from hamlet.patterns.match.labelled import Labelled, Numbers, Points, count, target
from hamlet.patterns.match.measures import members_of
from hamlet.patterns.match.ordered import Ordered, codes_of_texts
from hamlet.patterns.match.search import Searching
from hamlet.patterns.match.sorting import ends_within
from hamlet.spark.pattern_columns import (
    AT,
    DEADLINE,
    FIRST,
    MATCH,
    MATCHED,
    POINT,
    SHOWN,
    TASK,
    TIME,
    VARIABLE,
    Layout,
    Output,
)
from hamlet.spark.pattern_masks import evaluated, first_rows
from hamlet.spark.session import task_number
from hamlet.spark.slices import Batches

_ROWS = "hamlet_rows"


@dataclass
class TaskRows(Ordered):
    """The rows of a task in order; a host is there only for conditions that the kernel cannot evaluate."""

    named: pa.Table | None = None

    def key_values(self, row: int) -> tuple[Any, ...]:
        """The values of PARTITION BY at a row."""
        assert self.named is not None
        return tuple(each[row].as_py() for each in self.named.columns)


@dataclass(frozen=True)
class ClauseTask:
    """A clause; goes to every worker.

    Attributes
    ----------
    text, source : str
        For messages.
    meaning : Meaning
        Read in Spark's dialect.
    asked : Meaning or None
        Read in DuckDB's, where that answers conditions over labels.
    columns : tuple of str
        Those of the table that a DuckDB would read.
    layout : Layout
    max_steps : int
    zone : str
        Of the session.
    rows : pyarrow.Schema
        What is given.
    """

    text: str
    source: str
    meaning: Meaning
    asked: Meaning | None
    columns: tuple[str, ...]
    layout: Layout
    max_steps: int
    zone: str
    rows: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Match the partitions of a task."""
        parts = [each for each in batches if each.num_rows]
        if not parts:
            return
        table = pa.Table.from_batches(parts).combine_chunks()
        reports = Reports(self.text, self.source)
        keys = [table.column(each) for each in self.layout.keys]
        windowed = self.layout.windowed
        firsts = np.flatnonzero(bits_of(table.column(FIRST))) if windowed else first_rows(keys, table.num_rows)
        borders = np.append(firsts, table.num_rows).astype(np.int64)
        ordered = TaskRows(
            self._host(table),
            _ROWS,
            list(self.columns),
            self.layout.keys,
            None,
            "rowid",
            borders,
            named=table.select(self.layout.keys),
        )
        masks = {
            name: bits_of(pc.fill_null(evaluated(each, table, borders), False))
            for name, each in self.layout.masks.items()
        }
        horizon = _horizon(table, borders) if self.meaning.within is not None else np.zeros(0, np.int64)
        matches = self._matches(table, ordered, kernel_table(self.meaning, masks), horizon, reports)
        check_skip(self.meaning, ordered, reports, matches)
        given = self._given(table, labelled(self.meaning, matches, ordered))
        yield from given.to_batches(max_chunksize=1 << 16)

    def _host(self, table: pa.Table) -> Any:
        """A DuckDB with the rows in order, where conditions need one."""
        if self.asked is None:
            return None
        host = Host({"hamlet_given": table.select(self.columns)}, threads=1, timezone=self.zone)
        host.execute(f"CREATE TABLE {_ROWS} AS FROM hamlet_given")
        return host

    def _matches(self, table: pa.Table, ordered: TaskRows, steps: Table, horizon: Numbers, reports: Reports) -> Matches:
        meaning = self.meaning
        if not meaning.reads_labels:
            return walk(steps, meaning.program.start, ordered.borders, horizon, *meaning.skip)
        if self.asked is not None:
            searching = Searching(self.asked, ordered, steps, horizon, reports, self.max_steps, "hamlet_asking")
            return searching.matches()
        assert self.layout.native is not None
        tables, programs = self.layout.native
        codes: dict[str, int] = {}
        tables.columns = [numbers_of(table.column(name), kind, codes) for name, kind in self.layout.numbers]
        known = tables, programs
        try:
            return Searching(meaning, ordered, steps, horizon, reports, self.max_steps, "", known=known).run()
        except OverflowError:
            raise DataError(
                f"{self.source}: {reports.place(meaning.clause.span)}: a condition computes an integer that needs more "
                "than 64 bits; cast what it adds or multiplies: CAST(x AS DOUBLE)"
            ) from None

    # What is given.

    def _given(self, table: pa.Table, found: Labelled) -> pa.Table:
        """Values at the rows that measures read, a row per point, or per row of a match where aggregates read them."""
        points, shown = points_of(self.meaning, found)
        is_shown = np.ones(len(shown), np.bool_)
        if self.layout.every_row:
            left = np.ones(int(found.first[-1]), np.bool_)
            left[points.position[points.position >= 0]] = False
            more = np.flatnonzero(left)
            match = np.concatenate([points.match, found.match_of_positions()[more]])
            points = Points(match, np.concatenate([points.position, more]), points.final)
            shown = np.concatenate([shown, np.full(len(more), -1, np.int64)])
            is_shown = np.concatenate([is_shown, np.zeros(len(more), np.bool_)])
        given = _Given(self.meaning, table, found, points, shown, is_shown)
        columns = [given.column(each) for each in self.layout.outputs]
        return pa.table(columns, names=[each.name for each in self.layout.outputs]).cast(self.rows)


class _Given:
    """The columns of what a task gives."""

    def __init__(
        self,
        meaning: Meaning,
        table: pa.Table,
        found: Labelled,
        points: Points,
        shown: Numbers,
        is_shown: npt.NDArray[np.bool_],
    ) -> None:
        self._clause, self._table, self._found, self._points = meaning.clause, table, found, points
        self._shown, self._is_shown = shown, is_shown
        self._match = np.maximum(points.match, 0)
        self._targets: dict[Any, tuple[Numbers, Numbers]] = {}

    def column(self, given: Output) -> Any:
        """One column."""
        points = self._points
        if given.kind in ("shown", "current", "value"):
            rows = self._shown if given.kind == "shown" else self._rows(given)
            missing = rows < 0
            places = pa.array(rows, mask=missing) if missing.any() else pa.array(rows)
            return self._table.column(given.column).take(places)
        if given.kind == "count":
            assert given.reading is not None
            return pa.array(count(self._found, points, given.reading.mode, self._members(given.reading.variable)))
        if given.kind in ("there", "label"):
            row, position = self._target(given)
            return pa.array(row >= 0) if given.kind == "there" else self._labels(position)
        return self._own(given.kind)

    def _own(self, kind: str) -> Any:
        found, points, matched = self._found, self._points, self._points.match >= 0
        if kind in (MATCHED, SHOWN):
            return pa.array(matched if kind == MATCHED else self._is_shown)
        if kind in (TASK, POINT):
            everyone = len(matched)
            return pa.array(np.full(everyone, task_number(), np.int64) if kind == TASK else np.arange(everyone))
        if kind == NUMBER:
            numbers = found.number[self._match] if len(found) else np.zeros(len(matched), np.int64)
            return pa.array(numbers, mask=~matched)
        if kind == MATCH:
            return pa.array(points.match, mask=~matched)
        if kind == AT:
            return pa.array(np.where(points.position >= 0, points.position, -1 - self._match), mask=~matched)
        if kind == LABEL:
            return self._labels(points.position)
        assert kind == VARIABLE
        if not len(found.variable):
            return pa.nulls(len(matched), pa.int32())
        return pa.array(found.variable[np.maximum(points.position, 0)], mask=points.position < 0)

    def _labels(self, position: Numbers) -> pa.Array:
        """The names of the variables at positions, NULL at -1."""
        names = pa.array(list(self._clause.variables.values()), pa.string())
        if not len(self._found.variable):
            return pa.nulls(len(position), pa.string())
        return names.take(pa.array(self._found.variable[np.maximum(position, 0)], mask=position < 0))

    def _rows(self, given: Output) -> Numbers:
        """The rows that a column is read at."""
        if given.kind == "value":
            return self._target(given)[0]
        found, points = self._found, self._points
        if not len(found):
            return np.full(len(points.match), -1, np.int64)
        row = found.start[self._match] + points.position - found.first[self._match]
        return np.where((points.position >= 0) & (points.match >= 0), row, -1)

    def _target(self, given: Output) -> tuple[Numbers, Numbers]:
        reading = given.reading
        assert isinstance(reading, Navigation)
        key = (reading.variable, reading.last, reading.inwards, reading.step, reading.mode)
        if key not in self._targets:
            self._targets[key] = target(self._found, self._points, reading, self._members(reading.variable))
        return self._targets[key]

    def _members(self, variable: str | None) -> list[int] | None:
        return None if variable is None else members_of(self._clause, [variable])


def bits_of(column: pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """A Boolean column as bytes."""
    return np.ascontiguousarray(column.cast(pa.uint8()).to_numpy(), np.uint8)


def numbers_of(
    column: pa.ChunkedArray, kind: str, codes: dict[str, int] | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """A column as the kernel reads it: int64 or float64, and where it is NULL; `codes` has those of texts."""
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if kind == "code":
        return codes_of_texts(values, {} if codes is None else codes)
    nulls = np.ascontiguousarray(values.is_null().to_numpy(zero_copy_only=False), np.uint8)
    if kind == "real":
        return np.ascontiguousarray(values.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64), nulls
    if kind.startswith("decimal"):
        low = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset :: 2][: len(values)]
        return np.where(nulls, 0, low), nulls
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    whole = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(whole, np.int64), nulls


def _horizon(table: pa.Table, borders: Numbers) -> Numbers:
    """By row, the first row of its partition whose time is beyond what a match may take that begins there."""
    time, end = table.column(TIME), table.column(DEADLINE)
    if pa.types.is_decimal(time.type):
        times, ends = (np.array(each.to_pylist(), object) for each in (time, end))
        nulls = bits_of(time.is_null())
    elif pa.types.is_float64(time.type):
        (times, nulls), (ends, _) = numbers_of(time, "real"), numbers_of(end, "real")
        return ends_within(np.where(nulls, np.nan, times), ends[0] if len(ends) else 0.0, borders)
    else:
        kind = "real" if pa.types.is_floating(time.type) else "int"
        (times, nulls), (ends, _) = numbers_of(time, kind), numbers_of(end, kind)
    found = np.arange(table.num_rows, dtype=np.int64)
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        there = low + np.flatnonzero(nulls[low:high] == 0)
        if len(there):
            first, behind = int(there[0]), int(there[-1]) + 1
            found[first:behind] = first + np.searchsorted(times[first:behind], ends[first:behind], side="right")
    return found
