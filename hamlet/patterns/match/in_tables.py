"""Rows of a `Matcher` in tables, which the host reads: those that wait for earlier ones, and those of live starts.

What is kept of a partition are the rows from the first start on that is not decided, and those before it that PREV may
still read. With each batch they are matched as far as they decide: a start waits while its preferred way reaches the
end of the rows that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.reports import Reports
from hamlet.patterns.automaton._walk import Matches, rows_read, walk_on
from hamlet.patterns.match.evaluate import (
    Meaning,
    arrays_of,
    check_duration,
    kernel_table,
    labelled,
    near_masks,
    ordered_rows,
    reach_of,
    read_ahead,
    register_rows,
    skip_message,
)
from hamlet.patterns.match.host import Host, quoted
from hamlet.patterns.match.keys import key_texts
from hamlet.patterns.match.search import Searching
from hamlet.runtime.reorder_buffer import bytes_of_parts, late_error

if TYPE_CHECKING:
    from hamlet.patterns.match.leading_time import LeadingTime
    from hamlet.patterns.match.ordered import Ordered
    from hamlet.patterns.options import Options
    from hamlet.runtime.monitor import Row

_FOREVER = 2**62
_PARTITION_BYTES = 300  # of what is known of a partition, beside its rows
_COPIES = 11  # of rows in tables, while the host orders them and evaluates conditions; measured beside resident bytes
_MARK = "(SELECT m FROM __hamlet_mark)"


@dataclass
class Progress:
    """How far a partition has been matched.

    Attributes
    ----------
    decided : int
        Rows at the front of those kept that no match begins at any more.
    covered : int
        Rows at the front that lie in a match or have been shown.
    number : int
        Matches so far.
    begins : bool
        Whether the first row that is kept is the partition's first.
    """

    decided: int = 0
    covered: int = 0
    number: int = 0
    begins: bool = True


class InTables:
    """What is kept of a statement's rows.

    Parameters
    ----------
    meaning : Meaning
        Of its clause.
    host : Host
    reports : Reports
    chosen : Options
    time : LeadingTime or None
        Of its order, where it has one.
    rows : pyarrow.Table
        None, in the columns that the clause reads.
    shown : callable
        From the name of a table of the host, with the clause's rows, to the rows of the statement.

    Attributes
    ----------
    pending, live : pyarrow.Table
        Rows that may still have to wait for others, and those that are matched.
    mark : pyarrow.Scalar or None
        No row before it comes any more.
    partitions : dict of str to Progress
    """

    def __init__(
        self,
        meaning: Meaning,
        host: Host,
        reports: Reports,
        chosen: Options,
        time: LeadingTime | None,
        rows: pa.Table,
        shown: Callable[[str], pa.Table],
    ) -> None:
        self._meaning, self._host, self._reports, self._chosen = meaning, host, reports, chosen
        self._time, self._shown = time, shown
        self._back, self._later = reach_of(meaning)[0], read_ahead(meaning)
        self.pending = self.live = rows
        self.mark: Any = None
        self.partitions: dict[str, Progress] = {}

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return int(self.pending.num_rows + self.live.num_rows)

    def nbytes(self) -> tuple[int, int]:
        """Bytes of the rows that wait, and of those of matches that may go on, with what it takes to match them."""
        waiting, live = (bytes_of_parts(each.to_batches()) for each in (self.pending, self.live))
        return waiting, _COPIES * live + _PARTITION_BYTES * len(self.partitions)

    def mark_table(self) -> pa.Table:
        """A table of the mark alone, empty without one."""
        kind = pa.null() if self._time is None else self._time.type
        return pa.table({"m": pa.array([], kind) if self.mark is None else pa.repeat(self.mark, 1)})

    # Time.

    def timed(self, rows: pa.Table, events: int) -> tuple[pa.Table, Any]:
        """The rows that are not late, and the mark behind them.

        Parameters
        ----------
        rows : pyarrow.Table
        events : int
            Rows before them.

        Raises
        ------
        DataError
            If a row has no time, or is late and late rows are errors.
        """
        if self._time is None or not rows.num_rows:
            return rows, None
        marked = self._marked(rows, self._time)
        late = marked.column("late").to_numpy(zero_copy_only=False).astype(bool)
        missing = marked.column("t").is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            raise DataError(f"row {int(np.flatnonzero(missing)[0]) + 1} of the batch has no time (NULL)")
        if late.any() and self._chosen.late == "error":
            place = int(np.flatnonzero(late)[0])
            time, known = (str(marked.column(name)[place].as_py()) for name in ("t", "m"))
            raise late_error(events + place + 1, time, known, self._time.text)
        return rows.filter(pa.array(~late)), marked.column("after")[-1]

    def _marked(self, rows: pa.Table, time: LeadingTime) -> pa.Table:
        """Per row its time, the mark before it, whether it is late, and the mark after all of them."""
        self._host.register("__hamlet_given", rows)
        self._host.register("__hamlet_mark", self.mark_table())
        kind = self._host.types(_MARK)["m"]
        before = "max(h) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        times = f"SELECT ({time.text}) AS t FROM __hamlet_given"
        highest = f"SELECT t, CAST({time.earlier('t', self._chosen.lateness)} AS {kind}) AS h FROM ({times})"
        marks = f"SELECT t, h, greatest({_MARK}, {before}) AS m FROM ({highest})"
        late = "coalesce(t < m, false) AS late, max(greatest(m, h)) OVER () AS after"
        return self._host.arrow(f"SELECT t, m, {late} FROM ({marks})")

    def add(self, rows: pa.Table, mark: Any) -> None:
        """Keep rows of which `timed` has said that they are not late."""
        self.pending = pa.concat_tables([self.pending, rows])
        if mark is not None:
            self.mark = mark

    # Matching.

    def release(self, closing: bool) -> list[Row]:
        """Match the rows that no other comes before any more; give what is certain.

        Raises
        ------
        Failed, HostError
            What the host says against an expression.
        """
        if closing or self._time is None:
            ready, self.pending = self.pending, self.pending.slice(0, 0)
        elif self.mark is not None and self.pending.num_rows:
            self._host.register("__hamlet_given", self.pending)
            self._host.register("__hamlet_mark", self.mark_table())
            found = self._host.arrow(f"SELECT ({self._time.text}) < {_MARK} AS r FROM __hamlet_given").column("r")
            ready = self.pending.filter(found)
            self.pending = self.pending.filter(pa.compute.invert(found))
        else:
            ready = self.pending.slice(0, 0)
        self.live = pa.concat_tables([self.live, ready])
        return self._matched(closing) if self.live.num_rows else []

    def ordered(self, rows: pa.Table) -> Ordered:
        """Rows that the clause reads, in its order."""
        self._host.register("__hamlet_only", rows)
        return ordered_rows(self._meaning, self._host, "SELECT * FROM __hamlet_only", "__hamlet_o", self._reports)

    def _matched(self, closing: bool) -> list[Row]:
        ordered = self.ordered(self.live)
        ordered.is_open = not closing
        keys = self._keys(ordered)
        matching = _Matching(self._meaning, ordered, self._horizon(ordered, closing), self._reports, self._chosen)
        kept: list[tuple[int, int]] = []
        left: list[npt.NDArray[np.int64]] = []
        for place, key in enumerate(keys):
            progress = self.partitions.setdefault(key, Progress())
            low, end = int(ordered.borders[place]), int(ordered.borders[place + 1])
            kept.append((self._decide(matching, place, progress, closing, left), end))
            progress.begins = progress.begins and kept[-1][0] == low
        if matching.found.error is not None:
            raise DataError(skip_message(self._meaning, ordered, self._reports, *matching.found.error))
        rows = self.given(ordered, matching.found, left)
        self._keep(ordered, kept)
        if not self._meaning.reads_past:
            for key, (first, end) in zip(keys, kept, strict=True):
                if first == end:
                    del self.partitions[key]
        return rows

    def _decide(
        self, matching: _Matching, place: int, progress: Progress, closing: bool, left: list[npt.NDArray[np.int64]]
    ) -> int:
        """Match one partition as far as its rows decide; gives the first row to keep."""
        found = matching.found
        low, end = (int(each) for each in matching.ordered.borders[place : place + 2])
        begin, before = low + progress.decided, found.count
        row, number = matching.go_on(place, end, begin, progress, not closing)
        if found.error is not None:
            return low
        rows = found.rows(before)
        covered = low + progress.covered
        if not closing and self._later is not None and len(rows):
            variables, steps = arrays_of(self._meaning.program)[3], found.steps(before)
            for count, (own, last) in enumerate(zip(rows, np.cumsum(rows[:, 1]), strict=True)):
                if own[0] + rows_read(*self._later, variables, steps[last - own[1] : last]) > end:  # rows to come
                    row, number = int(own[0]), int(own[2]) - 1
                    found.cut(before + count)
                    rows = rows[:count]
                    break
        if self._meaning.clause.rows == "unmatched":
            left.append(_left_out(rows, low, begin, covered, row))
        if len(rows):
            covered = max(covered, int((rows[:, 0] + rows[:, 1]).max()))
        keep = max(low, row - self._back)
        progress.number = number
        progress.decided, progress.covered = row - keep, max(0, covered - keep)
        return keep

    def _horizon(self, ordered: Ordered, closing: bool) -> npt.NDArray[np.int64]:
        """By row, the first row that lies too late for a match that begins there; far away where it may still come."""
        within = self._meaning.within
        if within is None:
            return np.zeros(0, np.int64)
        check_duration(self._meaning, self._host, self._reports)
        ends = ordered.ends(within.text)
        if closing:
            return ends
        partition_end = np.repeat(ordered.borders[1:], np.diff(ordered.borders))
        if self.mark is None:
            passed = np.zeros(len(ends), np.bool_)
        else:
            self._host.register("__hamlet_mark", self.mark_table())
            assert self._time is not None
            time = f"CAST({ordered.time} AS HUGEINT)" if pa.types.is_integer(self._time.type) else ordered.time
            mark = _MARK
            if pa.types.is_time(self._time.type):  # which begins again behind midnight
                time, mark = (f"(DATE '1970-01-01' + {each})" for each in (time, mark))
            passed_text = f"{time} + ({within.text}) < {mark}"
            if pa.types.is_float64(self._time.type):
                passed_text = f"{mark} - {time} > ({within.text})"  # as in `Ordered.ends`
            text = f"SELECT coalesce({passed_text}, false) AS p FROM {ordered.table} ORDER BY {ordered.row}"
            passed = self._host.arrow(text).column("p").to_numpy(zero_copy_only=False).astype(bool)
        return np.where((ends >= partition_end) & ~passed, _FOREVER, ends)

    def _keys(self, ordered: Ordered) -> list[str]:
        """The values of each partition, as text."""
        if not ordered.keys:
            return ["()"] if ordered.rows else []
        firsts = pa.table({"r": ordered.borders[:-1]})
        self._host.register("__hamlet_firsts", firsts)
        keys = ", ".join(f"o.{each}" for each in ordered.keys)
        row = f"o.{ordered.row}"
        text = f"SELECT {keys} FROM {ordered.table} o JOIN __hamlet_firsts f ON f.r = {row} ORDER BY {row}"
        return key_texts(self._host.arrow(text).columns)

    def _keep(self, ordered: Ordered, kept: Sequence[tuple[int, int]]) -> None:
        """Keep the rows that live starts and PREV still need."""
        chosen = np.zeros(ordered.rows, np.bool_)
        for first, end in kept:
            chosen[first:end] = True
        listed = ", ".join(map(quoted, ordered.columns))
        rows = self._host.arrow(f"SELECT {listed} FROM {ordered.table} ORDER BY {ordered.row}")
        self.live = rows.filter(pa.array(chosen)).cast(self.live.schema)

    def given(self, ordered: Ordered, found: Matches, left: Sequence[npt.NDArray[np.int64]]) -> list[Row]:
        """The rows of matches, and of rows of none, through the statement around the clause."""
        labels = labelled(self._meaning, found, ordered)
        labels.unmatched = np.concatenate(left) if left else np.zeros(0, np.int64)
        unmatched = len(labels.unmatched) if self._meaning.clause.rows == "unmatched" else 0
        if not len(labels) and not unmatched:
            return []
        register_rows(self._meaning, ordered, labels, "__hamlet_rows_given", self._reports)
        rows: list[Row] = self._shown("__hamlet_rows_given").to_pylist()
        return rows


class _Matching:
    """Matches in the rows that are kept, partition by partition."""

    def __init__(
        self, meaning: Meaning, ordered: Ordered, horizon: npt.NDArray[np.int64], reports: Reports, chosen: Options
    ) -> None:
        self._meaning, self.ordered, self._horizon = meaning, ordered, horizon
        self.found = Matches()
        self._table = kernel_table(meaning, near_masks(meaning, ordered, reports))
        self._searching = None
        if meaning.reads_labels:
            self._searching = Searching(
                meaning, ordered, self._table, horizon, reports, chosen.max_steps, "__hamlet_asking"
            )

    def go_on(self, place: int, high: int, begin: int, progress: Progress, is_open: bool) -> tuple[int, int]:
        """Match a partition from a row on; gives the first start that is not decided, and the number of matches."""
        self._table.edges(progress.begins, is_open)
        if self._searching is None:
            start, low = self._meaning.program.start, int(self.ordered.borders[place])
            rest = begin, progress.number, self._horizon, *self._meaning.skip
            return walk_on(self._table, self.found, start, place, low, high, *rest)
        before = self.found.count
        try:
            return self._searching.run_on(self.found, place, high, begin, progress.number)
        except OverflowError:  # the host has wider numbers, or says what does not fit
            self.found.cut(before)
            self._searching = self._searching.by_host()
        return self._searching.run_on(self.found, place, high, begin, progress.number)


def _left_out(rows: npt.NDArray[np.int64], low: int, begin: int, covered: int, end: int) -> npt.NDArray[np.int64]:
    """The rows of a partition up to a start that lie in no match and have not been shown."""
    border = np.zeros(max(0, end - low) + 1, np.int64)
    border[0] += 1
    border[min(max(begin, covered) - low, len(border) - 1)] -= 1
    np.add.at(border, np.minimum(rows[:, 0] - low, len(border) - 1), 1)
    np.add.at(border, np.minimum(rows[:, 0] + np.maximum(rows[:, 1], 1) - low, len(border) - 1), -1)
    return np.flatnonzero(np.cumsum(border[:-1]) == 0) + low
