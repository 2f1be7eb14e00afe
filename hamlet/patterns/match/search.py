"""Matches where conditions read the labels of the match so far.

The kernel searches; where a condition is a program of the kernel it goes through, where it is not, the kernel asks, the
host answers all questions of all partitions at once, and the searches that asked begin again with the answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.errors import DataError
from hamlet.frontend.reports import Reports
from hamlet.patterns.automaton._search import Search
from hamlet.patterns.automaton._walk import Matches, Table
from hamlet.patterns.clause.expressions import LABEL, Aggregation, Navigation
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.conditions import Condition, Failed, as_seen, report_said
from hamlet.patterns.match.host import HostError
from hamlet.patterns.match.labelled import Labelled, Points
from hamlet.patterns.match.measures import POINT, Evaluation
from hamlet.patterns.match.native import native_program
from hamlet.patterns.match.ordered import Expressions, Ordered, check_condition

_AHEAD = 16  # starts of a partition that are tried while the first waits for answers
_OPEN, _LONG_START, _LONG_PARTITION = 1, 3, 4  # how `Search.advance` ends
_PARTITION, _PER_ROW = 20, 500  # a partition may take so many times the steps of a start, and so many for each row


@dataclass
class Tables:
    """What the kernel keeps beside a path.

    Attributes
    ----------
    sets : list of tuple of int
        Sets of variables; the first has all.
    slots : list of tuple of int
        Set, whether from the last row, rows inwards, step, whether the label is read.
    columns : list of (array, array)
        Values and NULLs by row.
    sums : list of (int, int, int, int)
        Set, column, kind, whether the number of values counts.
    keep : list of (int, int, int)
        What distinguishes states.
    all_labels : bool
    """

    clause: Clause
    sets: list[tuple[int, ...]] = field(default_factory=list)
    slots: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    columns: list[tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]] = field(default_factory=list)
    column_kinds: dict[str, tuple[int, str]] = field(default_factory=dict)
    sums: list[tuple[int, int, int, int]] = field(default_factory=list)
    keep: list[tuple[int, int, int]] = field(default_factory=list)
    all_labels: bool = False

    def __post_init__(self) -> None:
        self.sets.append(tuple(range(len(self.clause.variables))))

    def set_of(self, variable: str | None) -> int:
        """The number of the set of variables that a folded name stands for."""
        numbers = {name: place for place, name in enumerate(self.clause.variables)}
        members = tuple(sorted(numbers[each] for each in self.clause.members(variable)))
        if members not in self.sets:
            self.sets.append(members)
        return self.sets.index(members)

    def slot_of(self, reading: Navigation) -> int:
        """The number of the slot that leads to a row."""
        which = self.set_of(reading.variable)
        if reading.reads_label:
            self.all_labels = True
        slot = (which, int(reading.last), reading.inwards, reading.step, int(reading.reads_label))
        if slot not in self.slots:
            self.slots.append(slot)
        if which:
            depth = reading.inwards + 1
            self._keep((which, 0, depth) if reading.last else (which, depth, 0))
        return self.slots.index(slot)

    def counted(self, variable: str | None) -> int:
        """The number of a set whose rows are counted."""
        which = self.set_of(variable)
        self._keep((which, 0, 0))
        return which

    def listed(self, reading: Aggregation) -> int:
        """The number of a set all of whose rows are read."""
        which = self.set_of(reading.variable)
        self._keep((which, -1, -1))
        if LABEL in f"{reading.arguments}{reading.order}{reading.condition}{reading.within}":
            self.all_labels = True
        return which

    def sum_of(self, which: int, column: int, kind: int, counted: bool = False) -> int:
        """The number of a running value; how many values it is made of counts where it is averaged."""
        item = (which, column, kind, int(counted))
        if item not in self.sums:
            self.sums.append(item)
        return self.sums.index(item)

    def _keep(self, item: tuple[int, int, int]) -> None:
        if item not in self.keep:
            self.keep.append(item)

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Members, slots, sums and what is kept, as the kernel takes them."""
        members = np.zeros((len(self.sets), max(1, len(self.clause.variables))), np.uint8)
        for place, each in enumerate(self.sets):
            members[place, list(each)] = 1
        shapes = ((self.slots, 5), (self.sums, 4), (self.keep, 3))
        return members, *(np.array(rows, np.int64).reshape(len(rows), width) for rows, width in shapes)


def native_programs(meaning: Any, ordered: Expressions) -> tuple[Tables, list[Any]] | None:
    """The conditions of a clause that read labels as programs of the kernel; None where one has none."""
    tables, programs = Tables(meaning.clause), list[Any]()
    for variable in meaning.clause.variables:
        condition = meaning.conditions.get(variable)
        program = None
        if condition is not None and condition.reads_match:
            program = native_program(meaning.clause, condition, ordered, tables)
            if program is None:
                return None
        programs.append(program)
    return tables, programs


class Searching:
    """A search over the partitions of a table."""

    def __init__(
        self,
        meaning: Any,
        ordered: Ordered,
        table: Table,
        horizon: npt.NDArray[np.int64],
        reports: Reports,
        max_steps: int,
        name: str,
        natively: bool = True,
        known: tuple[Tables, list[Any]] | None = None,
    ) -> None:
        self.meaning, self.ordered, self.table, self.horizon = meaning, ordered, table, horizon
        self.reports, self.max_steps, self.name = reports, max_steps, name
        self.spent: dict[int, int] = {}  # steps of partitions that have been left
        self.failed = False
        self.host_conditions: dict[int, Condition] = {}
        self.tables, self.programs = known or (Tables(meaning.clause), [])
        if known is None:
            self._compile(natively)
        members, slots, sums, keep = self.tables.arrays()
        self.kernel = Search(
            table,
            meaning.program.start,
            members,
            slots,
            self.tables.columns,
            sums,
            self.programs,
            keep,
            self.tables.all_labels,
        )

    def matches(self) -> Matches:
        """All matches, by the host where numbers are beyond the kernel.

        Raises
        ------
        DataError
            If a start takes too many steps.
        """
        try:
            return self.run()
        except OverflowError:  # the host has wider numbers, or says what does not fit
            return self.by_host().run()

    def by_host(self) -> Searching:
        """A search in which the host answers all conditions over labels."""
        kept = self.meaning, self.ordered, self.table, self.horizon, self.reports, self.max_steps, self.name
        return Searching(*kept, natively=False)

    def _compile(self, natively: bool) -> None:
        """Programs of conditions, or what the host's answers to them depend on."""
        for place, variable in enumerate(self.meaning.clause.variables):
            condition = self.meaning.conditions.get(variable)
            program = None
            if condition is not None and condition.reads_match:
                if natively:
                    program = native_program(self.meaning.clause, condition, self.ordered, self.tables)
                if program is None:
                    program = self._asked(place, condition)
            self.programs.append(program)
        if self.failed:
            raise Failed

    def _asked(self, place: int, condition: Condition) -> tuple[list[int], list[int], bool, bool]:
        """What the answer to a condition depends on: slots, sets, the number of the match, labels."""
        self.host_conditions[place] = condition
        self._check(condition)
        slots, sets, by_label = [], [], False
        for reading in condition.read.readings:
            if isinstance(reading, Navigation):
                slots.append(self.tables.slot_of(reading))
                by_label = by_label or (reading.reads_label and reading.value != LABEL)
            else:
                sets.append(self.tables.listed(reading))
                by_label = by_label or reading.reads_label
        return slots, sets, condition.read.reads_number, by_label

    def _check(self, condition: Condition) -> None:
        """Report what the host says against a condition, whether or not a row will ask for it."""
        nothing = np.zeros(0, np.int64)
        labels, excluded = nothing.astype(np.int32), nothing.astype(np.bool_)
        none = Labelled(nothing, nothing, nothing, nothing, labels, excluded, np.zeros(1, np.int64))
        evaluation = Evaluation(
            self.meaning.clause, self.ordered, none, Points(nothing, nothing, True), self.meaning.translate
        )
        query = evaluation.query({'"__hamlet_holds"': as_seen(condition.read)}, f"{self.name}_checked")
        error = check_condition(self.ordered.host, f'SELECT "__hamlet_holds" FROM ({query})')
        if error is not None:
            report_said(self.reports, condition.read, error.message, error.hint)
            self.failed = True

    def run(self) -> Matches:
        """Search partition by partition; those that have questions wait until all have been tried."""
        borders = [int(each) for each in self.ordered.borders]
        found = Matches()
        waiting = {each: (borders[each], 0) for each in range(len(borders) - 1)}
        while waiting:
            for partition in list(waiting):
                row, number = waiting.pop(partition)
                self.table.prepared(borders[partition], borders[partition + 1], borders[partition + 1])
                row, number = self._advance(found, partition, row, borders[partition + 1], number)
                if found.error is not None:
                    return found
                if row < borders[partition + 1]:
                    waiting[partition] = (row, number)
            self._answer()
        return found.in_order()

    def _advance(self, found: Matches, partition: int, row: int, end: int, number: int) -> tuple[int, int]:
        """Go on as far as there are answers; gives the next start, and how many matches there were."""
        before, borders = self.kernel.work, self.ordered.borders
        skip, member = self.meaning.skip
        most = _PARTITION * self.max_steps + _PER_ROW * int(borders[partition + 1] - borders[partition])
        row, number, ended = self.kernel.advance(
            found,
            partition,
            row,
            end,
            number,
            self.horizon,
            skip,
            member,
            self.max_steps,
            most - self.spent.get(partition, 0),
        )
        if ended in (_LONG_START, _LONG_PARTITION):
            raise DataError(self._too_long(partition, row, most if ended == _LONG_PARTITION else None))
        if ended == _OPEN:
            if not self.kernel.waits:
                self._ask_ahead(row + 1, min(row + _AHEAD, end), number + 1, partition)
                self.kernel.waits = False
            self.spent[partition] = self.spent.get(partition, 0) + self.kernel.work - before
        return row, number

    def run_on(self, found: Matches, partition: int, high: int, begin: int, number: int) -> tuple[int, int]:
        """Find the matches of one partition from a row on, as far as rows before `high` decide them.

        Returns
        -------
        (int, int)
            The first start that is not decided, and how many matches there were.
        """
        while True:
            low, end = (int(each) for each in self.ordered.borders[partition : partition + 2])
            self.table.prepared(low, high, end)
            begin, number = self._advance(found, partition, begin, high, number)
            if found.error is not None or not self.kernel.asked:
                return begin, number
            self._answer()

    def _ask_ahead(self, low: int, high: int, number: int, partition: int) -> None:
        """Try later starts while one waits for answers, so that the host answers their questions in the same go."""
        for row in range(low, high):
            if len(self.kernel.asked) > 10_000:
                break
            most = int(self.horizon[row]) if len(self.horizon) else 0
            self.kernel.start(row, most, number, partition, self.max_steps, True)

    def _too_long(self, partition: int, row: int, most: int | None) -> str:
        """Why a search was given up: at a start, or, with the most steps of a partition, in all of it."""
        place = f"from row {row - int(self.ordered.borders[partition]) + 1}" if most is None else "up to row "
        if most is not None:
            place += f"{row - int(self.ordered.borders[partition]) + 1}"
        if self.ordered.keys:
            shown = zip(self.meaning.key_names(), self.ordered.key_values(row), strict=True)
            place += f" of partition {', '.join(f'{name} = {value}' for name, value in shown)}"
        span = self.meaning.clause.pattern_span
        steps = f"{self.max_steps:,}" if most is None else f"{most:,}"
        return (
            f"{self.reports.source}: {self.reports.place(span)}: the pattern {self.reports.quote(span, 80)} took more "
            f"than {steps} steps {place}: its conditions read the labels so far, so all ways of labelling may have to "
            f"be tried; make the pattern less ambiguous, or raise max_steps (--max-steps), which is {self.max_steps:,}"
        )

    def _answer(self) -> None:
        """Have the host answer all questions."""
        by_variable: dict[int, list[Any]] = {}
        for key, question in self.kernel.asked.items():
            by_variable.setdefault(question[0], []).append((key, question))
        self.kernel.asked.clear()
        for variable, asked in by_variable.items():
            condition = self.host_conditions[variable]
            paths = [path for _, (_, _, path, _, _) in asked]
            lengths = np.array([len(path) for path in paths], np.int64)
            labels = np.concatenate(paths).astype(np.int32)
            start, number, partition = (
                np.array([question[place] for _, question in asked], np.int64) for place in (1, 3, 4)
            )
            borders = self.ordered.borders
            found = Labelled(start, lengths, number, partition, labels, np.zeros(len(labels), np.bool_), borders)
            points = Points(np.arange(len(asked), dtype=np.int64), found.first[1:] - 1, True)
            evaluation = Evaluation(self.meaning.clause, self.ordered, found, points, self.meaning.translate)
            query = evaluation.query({'"__hamlet_holds"': as_seen(condition.read)}, f"{self.name}_asked")
            text = f'SELECT coalesce(CAST("__hamlet_holds" AS BOOLEAN), false) AS h FROM ({query}) ORDER BY {POINT}'
            try:
                answers = self.ordered.host.arrow(text).column("h").to_pylist()
            except HostError as error:
                report_said(self.reports, condition.read, error.message, error.hint)
                raise Failed from None
            for (key, _), answer in zip(asked, answers, strict=True):
                self.kernel.truth[key] = answer
