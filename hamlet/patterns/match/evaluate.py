"""One clause over one table: rows in order, conditions, matches, and the rows that the clause gives."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError, Span
from hamlet.frontend.reports import Reports
from hamlet.patterns.automaton._walk import Matches, Table, walk
from hamlet.patterns.automaton.compile import AT_START, Program, compile_pattern
from hamlet.patterns.clause.expressions import KEPT, LABEL, ExpressionReader, Navigation, Read
from hamlet.patterns.clause.scan import Quoting, Token
from hamlet.patterns.clause.tree import Clause, Expression
from hamlet.patterns.match.conditions import Condition, Failed, bounds_of, condition_of, host_text, report_said
from hamlet.patterns.match.host import Host, HostError, quoted
from hamlet.patterns.match.labelled import Labelled, Points
from hamlet.patterns.match.measures import POINT, Evaluation, members_of
from hamlet.patterns.match.ordered import Ordered, check_condition, masks_of, not_of_each_row, order_rows
from hamlet.patterns.match.search import Searching

_NAME = r'(?:[^\W\d]\w*|"(?:[^"]|"")+"|`[^`]+`)'
_QUALIFIED = re.compile(rf"\A(?:{_NAME}\s*\.\s*)+(?={_NAME}\Z)")
_SKIPS = {"past": 0, "next": 1, "first": 2, "last": 3}


@dataclass
class Shared:
    """What statements of a text share.

    Attributes
    ----------
    tables : dict of (str, ...) to Ordered
        The tables that are in order already: clauses of one table and one order sort it once.
    columns : dict of str to list of str
        Of queries of the host.
    matches : callable
        From a clause, the key of its table and this in order to its matches, where they were found with others'.
    """

    tables: dict[tuple[str, ...], Ordered] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    matches: Callable[[Meaning, tuple[str, ...], Ordered], Matches | None] = lambda *_: None

    def forget(self) -> None:
        """Tables may be others now."""
        self.tables.clear()
        self.columns.clear()


@dataclass
class Meaning:
    """A clause whose expressions have been read.

    Attributes
    ----------
    clause : Clause
    partition, order : list of Read
    measures : list of Read
    conditions : dict of str to Condition
        By folded variable.
    within : Read or None
    program : Program
    translate : callable
        From the dialect of the text to the host's.
    whole_division : bool
        Whether one whole number by another is a whole number.
    """

    clause: Clause
    partition: list[Read]
    order: list[Read]
    measures: list[Read]
    conditions: dict[str, Condition]
    within: Read | None
    program: Program
    translate: Callable[[str], str] = field(repr=False)
    whole_division: bool = False

    @property
    def reads_labels(self) -> bool:
        """Whether any condition reads more than neighbours of the candidate row."""
        return any(each.reads_match for each in self.conditions.values())

    @property
    def reads_past(self) -> bool:
        """Whether a partition is remembered by more than its rows: by the number of its matches, or by ``^``."""
        reads = [*self.measures, *(each.read for each in self.conditions.values())]
        return any(each.reads_number for each in reads) or AT_START in self.program.kinds

    @cached_property
    def skip(self) -> tuple[int, npt.NDArray[np.uint8]]:
        """What follows a match, as the kernel takes it: how, and by variable whether it is skipped to."""
        member = np.zeros(max(1, len(self.clause.variables)), np.uint8)
        if self.clause.skip_to is not None:
            member[members_of(self.clause, [self.clause.skip_to])] = 1
        return _SKIPS[self.clause.skip], member

    def order_texts(self) -> list[str]:
        """The items of ORDER BY, each in a form of its own."""
        items = zip(self.order, self.clause.order, strict=True)
        return [f"{read.text} {each.descending} {each.nulls_first}" for read, each in items]

    def table_key(self, source: str) -> tuple[str, ...]:
        """By what a clause shares the rows of a query in order."""
        return (source, *(each.text for each in self.partition), "", *self.order_texts())

    def key_names(self) -> list[str]:
        """The names of the partition's columns in the result."""
        return [output_name(each.expression) for each in self.partition]


def output_name(expression: Expression) -> str:
    """The name of a column that is an expression: a column's own, without what stands before its dot, else the text."""
    text = expression.text.strip()
    text = _QUALIFIED.sub("", text) or text
    if len(text) > 1 and text[0] == text[-1] and text[0] in '"`':
        return text[1:-1].replace(text[0] * 2, text[0])
    return " ".join(text.split())


def read_clause(
    reports: Reports,
    clause: Clause,
    tokens: Sequence[Token],
    aggregates: Container[str],
    columns: Sequence[str],
    translate: Callable[[str], str],
    quoting: Quoting,
) -> Meaning:
    """Read all expressions of a clause; mistakes are reported.

    Raises
    ------
    Failed
        If there are any.
    """
    known = len(reports.errors)
    for name in (each for each in columns if each.lower().startswith(KEPT)):
        message = f"column {name!r} has a name that is kept for what stands beside the rows"
        reports.error(message, clause.source, "give it another name in the table before: (SELECT ... AS name FROM ...)")
    folded = {each.lower() for each in columns}
    reader = ExpressionReader(reports, clause, tokens, aggregates, folded, translate, quoting)
    conditions = {
        name: condition_of(clause, name, reader.condition(name, each.expression))
        for name, each in clause.definitions.items()
    }
    found = Meaning(
        clause,
        [reader.plain(each) for each in clause.partition],
        [reader.plain(each.expression) for each in clause.order],
        [reader.measure(each.expression) for each in clause.measures],
        conditions,
        None if clause.within is None else reader.plain(clause.within),
        compile_pattern(clause.pattern, list(clause.variables), not any(c.reads_match for c in conditions.values())),
        translate,
    )
    if len(reports.errors) > known:
        raise Failed
    return found


def evaluate(
    meaning: Meaning, host: Host, source: str, name: str, reports: Reports, max_steps: int, shared: Shared
) -> tuple[int, int, pa.Table | None]:
    """Find the matches of a clause; gives how many rows were put in order, of matches, and what `rows_of` does.

    Parameters
    ----------
    meaning : Meaning
    host : Host
    source : str
        The query of the clause's table.
    name : str
        Begins the names of the tables that are made.
    reports : Reports
        Gets what the host says of expressions.
    max_steps : int
        Most steps of one start where conditions read labels.
    shared : Shared

    Raises
    ------
    Failed
        If an expression is wrong.
    """
    key = meaning.table_key(source)
    events = 0
    if key not in shared.tables:
        try:
            shared.tables[key] = ordered_rows(meaning, host, source, f"{name}_ordered", reports)
        except Failed:
            _other_mistakes(meaning, host, source, name, reports)
            raise
        events = int(shared.tables[key].borders[-1])
    ordered = shared.tables[key]
    try:
        matches = shared.matches(meaning, key, ordered) or find(meaning, ordered, reports, max_steps, name)
        check_skip(meaning, ordered, reports, matches)
    except Failed:
        with contextlib.suppress(Failed):  # the mistakes of measures are said in the same go
            rows_of(meaning, ordered, labelled(meaning, Matches(), ordered), name, reports)
        raise
    found = labelled(meaning, matches, ordered)
    return events, len(found), rows_of(meaning, ordered, found, name, reports)


def _other_mistakes(meaning: Meaning, host: Host, source: str, name: str, reports: Reports) -> None:
    """Report what is wrong with DEFINE and MEASURES of a clause whose rows cannot be put in order."""
    some = replace(meaning, partition=[], order=[], within=None)
    with contextlib.suppress(HostError):
        ordered = order_rows(host, f"SELECT * FROM ({source}) LIMIT 0", f"{name}_ordered", [], [])
        with contextlib.suppress(Failed):
            find(some, ordered, reports, 1, name)
        with contextlib.suppress(Failed):
            rows_of(some, ordered, labelled(some, Matches(), ordered), name, reports)


def reach_of(meaning: Meaning) -> tuple[int, tuple[int, int]]:
    """How many rows back anything reads, and the most rows ahead that conditions and measures do."""
    conditions = [reading for each in meaning.conditions.values() for reading in each.read.readings]
    measures = [reading for each in meaning.measures for reading in each.readings]
    steps = [each.step for each in (*conditions, *measures) if isinstance(each, Navigation)]
    ahead = max((each.step for each in conditions if isinstance(each, Navigation)), default=0)
    later = max((each.step for each in measures if isinstance(each, Navigation)), default=0)
    return max(0, -min(steps, default=0)), (max(0, ahead), max(0, later))


def read_ahead(meaning: Meaning) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]] | None:
    """What measures read of rows ahead, as `_walk.rows_read` takes it; None for nothing."""
    every = (reading for each in meaning.measures for reading in each.readings)
    found = [each for each in every if isinstance(each, Navigation) and each.step > 0 and each.value != LABEL]
    members = np.zeros((len(found), max(1, len(meaning.clause.variables))), np.uint8)
    for place, each in enumerate(found):
        members[place, members_of(meaning.clause, meaning.clause.members(each.variable))] = 1
    readings = np.array([(each.last, each.inwards, each.step) for each in found], np.int64)
    return (members, readings) if found else None


def ordered_rows(meaning: Meaning, host: Host, source: str, table: str, reports: Reports) -> Ordered:
    """The table of a clause in order."""
    order = [
        (read.text, each.descending, each.nulls_first)
        for read, each in zip(meaning.order, meaning.clause.order, strict=True)
    ]
    try:
        return order_rows(host, source, table, [each.text for each in meaning.partition], order)
    except HostError as error:
        found = [
            (each, host.said(f"SELECT ({each.text}) FROM ({source}) LIMIT 0"))
            for each in (*meaning.partition, *meaning.order)
        ]
        _report(reports, found, error, meaning.clause.span)
        raise Failed from None


def find(meaning: Meaning, ordered: Ordered, reports: Reports, max_steps: int, name: str) -> Matches:
    """All matches of a clause."""
    try:
        masks = near_masks(meaning, ordered, reports)
    except Failed:
        if meaning.reads_labels:  # the mistakes of other conditions are said in the same go
            nothing = np.zeros(0, np.int64)
            Searching(meaning, ordered, kernel_table(meaning, {}), nothing, reports, max_steps, name)
        raise
    horizon, table = horizon_of(meaning, ordered, reports), kernel_table(meaning, masks)
    if meaning.reads_labels:
        return Searching(meaning, ordered, table, horizon, reports, max_steps, name).matches()
    return walk(table, meaning.program.start, ordered.borders, horizon, *meaning.skip)


def check_skip(meaning: Meaning, ordered: Ordered, reports: Reports, found: Matches) -> None:
    """Raise DataError where a match has no row to skip to."""
    if found.error is not None:
        raise DataError(skip_message(meaning, ordered, reports, *found.error))


def kernel_table(meaning: Meaning, masks: Mapping[str, npt.NDArray[np.uint8]]) -> Table:
    """The kernel's table of a clause's steps over rows that fulfil conditions; a variable without a mask takes all."""
    listed = [masks.get(each, np.zeros(0, np.uint8)) for each in meaning.clause.variables]
    kinds, first, second, variables = arrays_of(meaning.program)
    bounds = np.array(meaning.program.bounds, np.int64).reshape(-1, 2)
    return Table(kinds, first, second, variables, listed, meaning.clause.within is not None, bounds)


def near_texts(meaning: Meaning, ordered: Ordered) -> dict[str, str]:
    """The conditions that the host computes, by variable."""
    near = (each for each in meaning.conditions.values() if not each.reads_match)
    return {each.variable: host_text(meaning.clause, each, ordered) for each in near}


def near_masks(meaning: Meaning, ordered: Ordered, reports: Reports) -> dict[str, npt.NDArray[np.uint8]]:
    """The rows that fulfil the conditions which the host computes, by variable; equal conditions once.

    Where rows may still come it is MAYBE at those for which they decide.
    """
    texts = near_texts(meaning, ordered)
    bounds = {}
    if ordered.is_open:
        bounds = {name: bounds_of(meaning.clause, meaning.conditions[name], ordered) for name in texts}
    try:
        masks = masks_of(ordered, [*texts.values(), *(text for each in bounds.values() for text in each or ())])
        for name, each in bounds.items():
            if each is not None:
                most, least = (masks[text] for text in each)
                masks[texts[name]] = most | (most > least) * np.uint8(2)
    except HostError as error:
        tables = [(meaning.conditions[name].read, _wrong(ordered, text)) for name, text in texts.items()]
        _report(reports, tables, error, meaning.clause.span)
        raise Failed from None
    return {name: masks[text] for name, text in texts.items()}


def arrays_of(program: Program) -> list[npt.NDArray[np.int32]]:
    """The program as the kernel takes it."""
    columns = (program.kinds, program.first, program.second, program.variables)
    return [np.array(each, np.int32) for each in columns]


def horizon_of(meaning: Meaning, ordered: Ordered, reports: Reports) -> npt.NDArray[np.int64]:
    """By start row, the first row that WITHIN leaves out; nothing without WITHIN."""
    if meaning.within is None:
        return np.zeros(0, np.int64)
    duration = meaning.within.text
    kind = check_duration(meaning, ordered.host, reports)
    try:
        return ordered.ends(duration)
    except HostError as error:
        _refuse_unlike(meaning, ordered, kind, reports)
        _report(reports, [(meaning.within, error)], error, meaning.clause.span)
        raise Failed from None


def _refuse_unlike(meaning: Meaning, ordered: Ordered, kind: str, reports: Reports) -> None:
    """Refuse a WITHIN of a kind that the first column of ORDER BY cannot be added to."""
    assert meaning.within is not None
    (time, *_), span = meaning.order, meaning.within.expression.span
    found = ordered.host.types(f"(SELECT ({ordered.time}) AS t FROM {ordered.table})")["t"]
    named = f"the first column of ORDER BY, {time.expression.text}, is {found}"
    dated = found.startswith(("TIMESTAMP", "DATE", "TIME"))
    if found in ("VARCHAR", "BOOLEAN", "BLOB", "UUID", "JSON"):
        hint = f"ORDER BY CAST({time.expression.text} AS TIMESTAMP)"
        reports.error(f"WITHIN measures times or numbers, and {named}", span, hint)
    elif kind == "INTERVAL" and not dated:
        hint = "WITHIN takes a number there, in the unit of that column"
        reports.error(f"WITHIN is an INTERVAL, and {named}", span, hint)
    elif kind != "INTERVAL" and dated:
        reports.error(
            f"WITHIN is a number, and {named}", span, f"WITHIN INTERVAL '{meaning.within.text.strip()}' SECOND"
        )
    else:
        return
    raise Failed


def check_duration(meaning: Meaning, host: Host, reports: Reports) -> str:
    """The type of a WITHIN; refuses one that is NULL, negative or no constant."""
    assert meaning.within is not None
    text, span = meaning.within.text, meaning.within.expression.span
    try:
        kind = host.rows(f"DESCRIBE SELECT ({text}) AS d")[0][1]
        zero = "INTERVAL 0 SECOND" if kind == "INTERVAL" else "0"
        row = host.rows(f"SELECT ({text}) IS NULL, ({text}) < {zero}")[0]
    except HostError as error:
        reports.error(error.message, span, "WITHIN takes a constant: INTERVAL '1' HOUR, or a number")
        raise Failed from None
    if row[0] or row[1]:
        reports.error(f"WITHIN must not be {'NULL' if row[0] else 'negative'}", span, "WITHIN INTERVAL '1' HOUR")
        raise Failed
    return str(kind)


def labelled(meaning: Meaning, matches: Matches, ordered: Ordered) -> Labelled:
    """The matches with the variables of their rows."""
    rows, steps = matches.arrays()
    variables = np.array(meaning.program.variables, np.int32)
    excluded = np.array(meaning.program.excluded, np.bool_)
    start, length, number, partition = (np.ascontiguousarray(rows[:, place]) for place in range(4))
    left_out = excluded[steps] if excluded.any() else np.zeros(len(steps), np.bool_)
    return Labelled(start, length, number, partition, variables[steps], left_out, ordered.borders)


def skip_message(meaning: Meaning, ordered: Ordered, reports: Reports, partition: int, row: int, target: int) -> str:
    """Why matching cannot go on behind a match."""
    clause = meaning.clause
    assert clause.skip_to is not None
    names = {**clause.variables, **{name: each[0] for name, each in clause.subsets.items()}}
    which = "the match's first row" if target == 0 else "in no row of the match"
    place = f"row {row - int(ordered.borders[partition]) + 1}"
    if meaning.partition:
        named = zip(meaning.key_names(), ordered.key_values(row), strict=True)
        shown = [f"{name} = {value}" for name, value in named]
        place += f" of partition {', '.join(shown)}"
    return (
        f"{reports.source}: {reports.place(clause.span)}: AFTER MATCH SKIP TO {clause.skip.upper()} "
        f"{names[clause.skip_to]}: in the match that begins at {place}, {names[clause.skip_to]} is {which}, "
        "so matching would not get ahead; skip to a variable that every match has behind its first row"
    )


# The rows of a clause.


def points_of(meaning: Meaning, found: Labelled) -> tuple[Points, npt.NDArray[np.int64]]:
    """The points of a clause's rows in their order, and the row of the table that each shows."""
    clause = meaning.clause
    everything = np.arange(len(found), dtype=np.int64)
    if clause.rows == "one":
        return Points(everything, np.where(found.length > 0, found.first[1:] - 1, -1), True), found.start
    match = found.match_of_positions()
    rows = found.rows_of_positions()
    positions = np.flatnonzero(~found.excluded)
    empty = np.flatnonzero(found.length == 0) if clause.rows != "omit" else np.zeros(0, np.int64)
    nothing = np.full(len(empty), -1, np.int64)
    parts = [
        (match[positions], positions, rows[positions], found.start[match[positions]]),
        (empty, nothing, found.start[empty], found.start[empty]),
    ]
    if clause.rows == "unmatched":
        left = found.unmatched
        if left is None:
            covered = np.zeros(int(found.borders[-1]), np.bool_)
            covered[rows] = True
            covered[found.start] = True
            left = np.flatnonzero(~covered)
        gap = np.full(len(left), -1, np.int64)
        parts.append((gap, gap, left, left))
    match, positions, rows, first = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((positions, match, first))
    return Points(match[order], positions[order], False), rows[order]


def rows_of(meaning: Meaning, ordered: Ordered, found: Labelled, name: str, reports: Reports) -> pa.Table | None:
    """Let a table of the host have the rows of a clause, or give them where it takes no host for any of them."""
    clause = meaning.clause
    points, shown = points_of(meaning, found)
    evaluation = Evaluation(clause, ordered, found, points, meaning.translate)
    reads = {f'"__hamlet_measure_{place}"': read for place, read in enumerate(meaning.measures)}
    measures = [(each.name, f"m.{column}") for each, column in zip(clause.measures, reads, strict=True)]
    listed = listed_columns(meaning, ordered.keys, measures, {each: quoted(each) for each in ordered.columns})
    try:
        plain = None if clause.rows == "unmatched" else _plain(evaluation, reads, shown, listed)
        if plain is not None:
            return plain
        ordered.host.execute(f"CREATE OR REPLACE TABLE {name} AS {_shown(evaluation, reads, shown, listed, name)}")
    except HostError as error:
        single: list[tuple[Read, HostError | None]] = []
        for column, read in reads.items():
            try:
                alone = evaluation.query({column: read}, f"{name}_alone")
                single.append((read, ordered.host.said(alone)))
            except HostError as own:
                single.append((read, own))
        _report(reports, single, error, clause.span)
        raise Failed from None
    return None


def register_rows(meaning: Meaning, ordered: Ordered, found: Labelled, name: str, reports: Reports) -> None:
    """Let a table of the host have the rows of a clause."""
    plain = rows_of(meaning, ordered, found, name, reports)
    if plain is not None:
        ordered.host.register(f"{name}_plain", plain)
        ordered.host.execute(f"CREATE OR REPLACE TABLE {name} AS FROM {name}_plain")


def _plain(
    evaluation: Evaluation, reads: Mapping[str, Read], shown: npt.NDArray[np.int64], listed: Sequence[tuple[str, str]]
) -> pa.Table | None:
    """The rows of a clause whose columns and measures are values of single rows; None for others."""
    measured = evaluation.values(list(reads.values()))
    if measured is None:
        return None
    values = dict(zip((f"m.{column}" for column in reads), measured, strict=True))
    for _, text in listed:
        if text not in values:
            gathered = evaluation.ordered.gathered(text, shown)
            if gathered is None:
                return None
            values[text] = gathered
    return pa.table({name: values[text] for name, text in distinct_columns(listed)})


def listed_columns(
    meaning: Meaning, keys: Sequence[str], measures: Sequence[tuple[str, str]], columns: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The columns of a clause's rows: their names, and the host's texts for them.

    Parameters
    ----------
    meaning : Meaning
    keys : sequence of str
        Texts of the expressions of PARTITION BY.
    measures : sequence of (str, str)
    columns : mapping of str to str
        Texts of the columns of the table.
    """
    clause = meaning.clause
    listed = list(zip(meaning.key_names(), keys, strict=True))
    if clause.rows == "one":
        return [*listed, *measures]
    taken = {output.lower() for output, _ in listed}
    by_name = {each.lower(): each for each in columns}
    for item in clause.order:
        column = by_name.get(output_name(item.expression).lower())
        if column is not None:
            listed.append((column, columns[column]))
            taken.add(column.lower())
    return [*listed, *measures, *((each, text) for each, text in columns.items() if each.lower() not in taken)]


def _shown(
    evaluation: Evaluation,
    reads: Mapping[str, Read],
    shown: npt.NDArray[np.int64],
    listed: Sequence[tuple[str, str]],
    name: str,
) -> str:
    """A query of columns of the rows that are shown, and of measures (``m.``), in the order of the points."""
    ordered = evaluation.ordered
    plain = [column for _, column in listed if not column.startswith("m.")]
    values = {column: ordered.gathered(column, shown) for column in plain}
    source = ""
    if any(each is None for each in values.values()):
        own = {column: f"d.{column}" for column in plain}
        carried: dict[str, pa.Array] = {"__hamlet_shown": pa.array(shown)}
        source = f" LEFT JOIN {ordered.table} d ON d.{ordered.row} = m.__hamlet_shown"
    else:
        own = {column: f"m.__hamlet_shown_{place}" for place, column in enumerate(plain)}
        carried = {f"__hamlet_shown_{place}": values[column] for place, column in enumerate(plain)}
    query = evaluation.query(reads, name, carried)
    columns = ", ".join(f"{own.get(text, text)} AS {quoted(output)}" for output, text in distinct_columns(listed))
    order = f" ORDER BY m.{POINT}" if source or evaluation.joins else ""
    return f"SELECT {columns} FROM ({query}) m{source}{order}"


def distinct_columns(listed: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Columns whose names differ."""
    return list(zip(distinct_names([name for name, _ in listed]), (text for _, text in listed), strict=True))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names that differ: a later one that is taken gets a number, as the host does it."""
    found: dict[str, str] = {}
    for name in names:
        own, number = name, 0
        while own.lower() in found:
            number += 1
            own = f"{name}_{number}"
        found[own.lower()] = own
    return list(found.values())


def _wrong(ordered: Ordered, condition: str) -> HostError | None:
    """What the host says against a condition over the table in order."""
    query = f"SELECT ({condition}) AS c FROM {ordered.table}"
    found = check_condition(ordered.host, query)
    found = found or ordered.host.said(f"SELECT CAST(({condition}) AS BOOLEAN) FROM {ordered.table}")
    return found or (None if len(ordered.host.arrow(query)) == ordered.rows else not_of_each_row())


def _report(reports: Reports, found: Sequence[tuple[Read, HostError | None]], error: HostError, whole: Span) -> None:
    """Report what the host said of single expressions, or, where none of them is wrong alone, of all."""
    known = len(reports.errors)
    for read, said in found:
        if said is not None:
            report_said(reports, read, said.message, said.hint)
    if len(reports.errors) == known:
        reports.error(error.message, whole, error.hint)
