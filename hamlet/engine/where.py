"""A condition over the columns of the input, for ``--where``: events that fail it are never seen by a query.

The language's own conditions, without variables: a word that names a column is that column (``event.name``
says the same), any other word is text. NULL, NaN, types and overflow are as in a query's WHERE, because parser, checks
and expression machine are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, Diagnostic, OptionError, Span, WorkloadError, near_miss
from hamlet.frontend.cursor import TooManyProblemsError, UnreadableError
from hamlet.frontend.lexer import Kind, Token, tokenize
from hamlet.frontend.reports import Reports
from hamlet.input.buffers import from_numpy
from hamlet.input.columns import StringPool, values
from hamlet.input.events import EventSource, Progress, SomeEvents
from hamlet.input.input_schema import unreadable_column
from hamlet.input.period import PeriodEvents
from hamlet.input.row_groups import Useless
from hamlet.input.widening import is_readable
from hamlet.kernel.expression import OverflowInExpression
from hamlet.language.conditions import conjuncts, is_condition, parts, references, walk
from hamlet.language.cursor import Cursor
from hamlet.language.expression_types import times_as_compiled, type_of_attribute
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.parse_condition import condition_hint, parse_condition
from hamlet.language.printing import name_text
from hamlet.language.query import (
    And,
    Atom,
    AttributeType,
    Condition,
    Duration,
    Equivalence,
    Literal,
    Not,
    Or,
    Query,
    Reference,
    Shift,
    WorkloadText,
)
from hamlet.language.schema import Schema
from hamlet.language.tokens import TOKENS
from hamlet.language.typecheck import check
from hamlet.planner.classify import EVENT, overflow_error
from hamlet.planner.program import ProgramWriter
from hamlet.planner.skipping import BY_WHERE, Conditions

SOURCE = "--where"  # stands for the file in messages
_PREFIX = f"{name_text(EVENT)}."


class Filter:
    """A condition that is ready to select events.

    Parameters
    ----------
    text : str
        The condition.
    schema : Schema
        Of the input; its columns are all that there are, those of dicts and of lines, too.
    growing : bool
        Whether further columns may still come: a word beside no text that names none is such a column, NULL until then.

    Raises
    ------
    WorkloadError
        With every mistake of the condition.
    DataError
        If it reads a column of a type that no attribute can have.

    Attributes
    ----------
    columns : tuple of str
        What it reads.
    conditions : Conditions
        The parts that must all be true, to be asked of the bounds of columns.
    unseen : list of str
        Columns that it reads and that have not come.
    """

    def __init__(self, text: str, schema: Schema, *, growing: bool = False) -> None:
        condition = _read(text, schema, growing)
        named = dict.fromkeys(each.attribute for each in references(condition))
        for name in named:
            kind = schema.arrow_types.get(name)
            if kind is not None and not is_readable(kind):
                raise DataError(f"{SOURCE}: {unreadable_column(name, kind)}")
        self.unseen = [name for name in named if growing and name not in _columns_of(schema)]
        schema = replace(schema, closed=True, columns={**schema.columns, **dict.fromkeys(self.unseen)})
        query = _as_query(text, condition, schema)
        self._strings = StringPool()
        self._program = ProgramWriter(
            lambda reference: type_of_attribute(EVENT, reference.attribute, query, schema),
            lambda _: True,
            self._strings,
            times_as_compiled(query, schema),
        ).program(query.local[EVENT])
        self.columns = self._program.vector_columns
        self._types = [type_of_attribute(EVENT, name, query, schema) for name in self.columns]
        self.conditions = Conditions(
            query.local[EVENT], schema, lambda each: type_of_attribute(EVENT, each.attribute, query, schema)
        )

    def chosen(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """For which events of a batch the condition is true.

        Raises
        ------
        DataError
            INT arithmetic beyond 64 bits.
        """
        columns = [
            values(batch, name, kind, self._strings) for name, kind in zip(self.columns, self._types, strict=True)
        ]
        try:
            chosen = self._program.select(columns, batch.num_rows, self._strings.ranks)
        except OverflowInExpression as error:
            raise overflow_error(batch, error.text.replace(_PREFIX, ""), error.row) from None
        return from_numpy(chosen.astype(np.bool_))


class FilteredEvents(SomeEvents):
    """The events of a source for which a condition is true.

    Parameters
    ----------
    source : EventSource
    condition : str

    Raises
    ------
    WorkloadError
        With every mistake of the condition.
    """

    def __init__(self, source: EventSource, condition: str) -> None:
        super().__init__(source)
        self.condition = condition
        self._filter = Filter(condition, source.schema)
        possible = self._filter.conditions.possible
        self._without(source.leave_out(lambda bounds: not possible(bounds), BY_WHERE, self._filter.columns))

    def leave_out(self, useless: Useless, reason: str, columns: Sequence[str]) -> int:  # noqa: ARG002
        """Leave out nothing: how many events of a row group fulfil the condition is known when they are read."""
        return 0

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None, pane: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the events that pass; columns that the condition reads are there, progress counts all events."""
        wanted = None if columns is None else list(dict.fromkeys([*columns, *self._filter.columns]))
        for batch in self._source.batches(wanted, progress=progress, pane=pane):
            self.sample = self._source.sample
            kept = batch.filter(self._filter.chosen(self._source.clocked(batch)))
            if kept.num_rows:
                yield kept


# ------------------------------------------------------------------------------------------------ text to condition


def chosen_events(events: EventSource, since: Any, until: Any, where: str | None) -> EventSource:
    """The events of a period that fulfil a condition, each where it is given."""
    if where is not None and not isinstance(where, str):
        raise OptionError(f'where is a {type(where).__name__}; it must be a text such as "speed < 10"')
    if since is not None or until is not None:
        events = PeriodEvents(events, since, until)
    return events if where is None else FilteredEvents(events, where)


def _columns_of(schema: Schema) -> set[str]:
    return (schema.columns.keys() | {schema.clock.column, schema.type_column}) - {""}  # some events have no type column


def _read(text: str, schema: Schema, growing: bool) -> Condition:
    """The condition, columns as attributes of the variable `EVENT`."""
    reports = Reports(text, SOURCE)
    columns = _columns_of(schema)
    condition = _parsed(reports, lambda token: token.value in columns)
    unknown: set[Span] = set()
    _check(condition, schema, sorted(columns), reports, unknown if growing else None)
    if reports.errors:
        raise WorkloadError(reports.errors)
    if unknown:
        return _parsed(reports, lambda token: token.value in columns or token.span in unknown)
    return condition


def _parsed(reports: Reports, is_column: Callable[[Token], bool]) -> Condition:
    """The condition that a text is; raises WorkloadError where it is none."""
    condition = None
    try:
        cursor = Cursor(list(_with_variable(tokenize(TOKENS, reports), is_column)), reports)
        condition = parse_condition(cursor)
        if not cursor.at_kind(Kind.END):
            raise cursor.expected(["AND", "OR"], condition_hint(cursor), after=condition.span)
    except (UnreadableError, TooManyProblemsError):
        pass
    if reports.errors or condition is None:
        raise WorkloadError(reports.errors)
    return condition


def _with_variable(tokens: Sequence[Token], is_column: Callable[[Token], bool]) -> Iterator[Token]:
    """Names of columns as the parser wants attributes: with a variable and a point before them."""
    inside = False  # the brackets of an equivalence, which has attributes without variables
    for place, token in enumerate(tokens):
        if token.kind is Kind.SYMBOL and token.value in "[]":
            inside = token.value == "["
        follows, before = tokens[min(place + 1, len(tokens) - 1)], tokens[max(place - 1, 0)]
        alone = follows.value not in (".", "(") and before.value != "." and token.kind in (Kind.WORD, Kind.NAME)
        if alone and not inside and is_column(token):
            yield Token(Kind.WORD, EVENT, token.span, EVENT)
            yield Token(Kind.SYMBOL, ".", token.span, ".")
            yield Token(Kind.NAME, token.value, token.span, token.raw)
        else:
            yield token


def _check(
    condition: Condition, schema: Schema, columns: Sequence[str], reports: Reports, unknown: set[Span] | None
) -> None:
    """Report what a condition over single events cannot say, and words that were meant for columns.

    With `unknown`, such words are columns that have not come yet, and are put there.
    """
    if isinstance(condition, (And, Or, Not)):
        for part in parts(condition):
            if is_condition(part):
                _check(part, schema, columns, reports, unknown)
        return
    if isinstance(condition, Equivalence):
        reports.error(
            "an equivalence speaks of trends; where (--where) looks at single events",
            condition.span,
            "write it into a query",
        )
        return
    named = list(references(condition))
    for reference in named:
        if reference.shift is not Shift.NONE or reference.variable != EVENT:
            reports.error(
                "where (--where) looks at single events, before any pattern: variables, NEXT and PREV are not there",
                reference.span,
                f"write the column alone: {name_text(reference.attribute, free=True)}",
            )
            return
    words = [part for part in walk(condition) if isinstance(part, Literal) and part.bare]
    texts = bool(named) and all(_is_text(reference, schema) for reference in named)
    if words and not texts:
        if unknown is not None:
            unknown.update(word.span for word in words)
            return
        word = words[0]
        meant = near_miss(str(word.value), columns)
        hint = f"its columns are {', '.join(columns[:12])}{', ...' if len(columns) > 12 else ''}"
        hint = f"did you mean {name_text(meant, free=True)}?" if meant is not None else hint
        reports.error(f"the input has no column '{word.value}'", word.span, hint)


def _is_text(reference: Reference, schema: Schema) -> bool:
    known = schema.type_of(reference.attribute)
    return reference.attribute == schema.type_column or known in (None, AttributeType.STRING)


def _as_query(text: str, condition: Condition, schema: Schema) -> AnalysedQuery:
    """The condition as the WHERE clause of a query over one variable, its names and types checked."""
    query = Query("", (), Atom(EVENT, EVENT), condition, (), Duration(Fraction(1), "s"), None)
    analysed = AnalysedQuery(
        query, 0, {EVENT: EVENT}, frozenset(), (), (), (), (), {EVENT: tuple(conjuncts(condition))}, {}, (), {}
    )
    errors = check(Analysis(WorkloadText(text, SOURCE, (), (query,)), (analysed,), (), {}), schema)
    if errors:
        raise WorkloadError(map(_without_variable, errors))
    return analysed


def _without_variable(error: Diagnostic) -> Diagnostic:
    """The message as of columns: the user has written no variable."""
    hint = None if error.hint is None else error.hint.replace(_PREFIX, "")
    return replace(error, message=error.message.replace(_PREFIX, ""), hint=hint)
