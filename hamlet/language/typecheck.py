"""Names and types of attributes, against EVENT declarations and against the columns of the input.

A closed schema (files, tables) knows its columns, so a name that is not there is a mistake; an open one (dicts) does
not, and what it does not know is not checked. Source: docs/language.md; docs/numbers.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hamlet.errors import Diagnostic, in_order
from hamlet.frontend.reports import Reports
from hamlet.frontend.time_column import TIME_COLUMNS
from hamlet.language.conditions import Part, is_condition, walk
from hamlet.language.expression_types import DOUBLE, NUMBERS, kind_of, times_of, type_of, type_of_attribute
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.moments import FORMS, is_difference, is_text, moment_of
from hamlet.language.name_checks import Names, check_declarations, check_rows, keys_of
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import (
    DISTINCT,
    Aggregate,
    Attribute,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Expression,
    Literal,
    Log2,
    Membership,
    NullTest,
    Query,
    Reference,
    Span,
    Taken,
    Unary,
)
from hamlet.language.result_checks import result_parts
from hamlet.language.schema import Schema
from hamlet.language.times import Typed
from hamlet.language.zones import zone_of

SPECIAL_COLUMNS = (*TIME_COLUMNS, "type")  # what the time and the type column may be called where no option says it
_LARGEST_TICKS = 1 << 61  # as for times: edges of windows stay within 64 bits


def check(analysis: Analysis, schema: Schema | None, *, special: Collection[str] = SPECIAL_COLUMNS) -> list[Diagnostic]:
    """Check the names and types that queries use.

    Parameters
    ----------
    analysis : Analysis
        The workload.
    schema : Schema or None
        The input; None before it is known, which checks against declarations and literals only.
    special : collection of str
        The time and the type column's names, where there is no schema to say so.

    Returns
    -------
    list of Diagnostic
        All mistakes, in the order of the text; empty where there is none.
    """
    reports = Reports(analysis.text.text, analysis.text.source)
    if schema is not None:
        check_declarations(analysis, schema, reports)
    for query in analysis.queries:
        names = Names(query, schema, special, reports)
        names.check()
        _Types(query, schema, reports).check()
        if schema is not None:
            _check_durations(query, schema, reports)
            check_zone(query.query, schema.clock.zone, reports)
            check_rows(query, schema, reports)
    return list(in_order(reports.errors))


def unlike(analysis: Analysis, schema: Schema) -> list[str]:
    """Comparisons of values of two kinds, of which none are equal, a sentence each.

    They are mistakes where types are known before events are read. Dicts show the types of their values as they come:
    the kind that an attribute had first is then that of all its values, and what is compared with another kind is said.

    Parameters
    ----------
    analysis : Analysis
    schema : Schema
        What is known by now.
    """
    reports = Reports(analysis.text.text, analysis.text.source)
    known, queries = replace(schema, closed=True), {}
    for query in analysis.queries:
        types, begun = _Types(query, known, reports), len(reports.errors)
        for root in (query.query.condition, *(part for _, part in result_parts(query.query))):
            for left, right in (pair for part in (() if root is None else walk(root)) for pair in _compared(part)):
                types.check_comparable(left, right)
        queries.update(dict.fromkeys(reports.errors[begun:], query.query.name))
    return [
        f"{queries[each]}: {each.message}" + ("" if each.hint is None else f"; {each.hint}")
        for each in in_order(reports.errors)
    ]


def _compared(part: Part) -> list[tuple[Expression, Expression]]:
    """What a part of a condition compares with one another."""
    match part:
        case Comparison(left=left, right=right):
            return [(left, right)]
        case Membership(operand=operand, choices=choices):
            return [(operand, choice) for choice in choices]
        case Between(operand=operand, low=low, high=high):
            return [(operand, low), (operand, high)]
    return []


class _Types:
    """The types in one query: what its text compares, computes with and aggregates."""

    def __init__(self, query: AnalysedQuery, schema: Schema | None, reports: Reports) -> None:
        self._query, self._schema, self._reports = query, schema, reports
        self._times = times_of(query, schema)

    def check(self) -> None:
        if self._query.query.condition is not None:
            for part in walk(self._query.query.condition):
                self.check_part(part)
                self._check_sides(part)
        for item in self._query.query.items:
            if item.log2:
                self._check_times(item.expression)
        for _, part in result_parts(self._query.query):
            if not is_condition(part):
                self._check_times(part)  # type: ignore[arg-type]  # a TypeGuard says nothing of others
            for inner in walk(part):
                self.check_part(inner)
                self._check_sides(inner)
                if isinstance(inner, Aggregate):
                    self._check_aggregate(inner)
        for key, span in keys_of(self._query):
            self._check_key(key, span)

    def _check_sides(self, part: Part) -> None:
        """Report operations on times that there are not, in what a condition compares."""
        if isinstance(part, NullTest):
            self._check_times(part.operand)
        for left, right in _compared(part):
            for side in self._times.compared(left, right)[:2]:
                for mistake in side.mistakes:
                    self._report_time(mistake)

    def check_part(self, part: Part) -> None:
        """Report operands that do not fit."""
        for one, other in _compared(part):
            self.check_comparable(one, other)
        match part:
            case Unary(operator=operator, operand=operand):
                if not self._is_of_times(part):
                    self._check_number(operand, operator)
            case Log2(operand=operand):
                if not self._is_of_times(part):
                    self._check_number(operand, "LOG2")
            case Binary(operator=operator, left=left, right=right):
                words = [inner for inner in (left, right) if isinstance(inner, Literal) and inner.bare]
                if operator == "-" and len(words) == 2:
                    hint = f"quote text with special characters: '{words[0].value}-{words[1].value}'"
                    self._reports.error("text cannot be subtracted", part.span, hint)
                    return
                if self._is_of_times(part) or (
                    not (self._schema is not None and self._schema.closed) and self._may_be_length(part)
                ):
                    return
                for inner in (left, right):
                    self._check_number(inner, operator)
                    fractional = self._type_of(inner) is DOUBLE or _is_mean(inner)
                    if operator == "%" and _is_of_results(part) and fractional:
                        message = f"{_described(inner, DOUBLE)} is no integer, and '%' of results is over integers"
                        self._reports.error(message, inner.span, "use counts, and sums of INT attributes")

    def check_comparable(self, left: Expression, right: Expression) -> None:
        """Report operands of two kinds."""
        first, second, wrong = self._times.compared(left, right)
        if first.mistakes or second.mistakes:
            return  # what is wrong in them is said by itself
        one, two = first.type, second.type
        if first.loose or second.loose or one is None or two is None or kind_of(one) == kind_of(two):
            return
        for literal, other in ((left, second), (right, first)):
            if is_text(literal) and other.type is AttributeType.TIMESTAMP:
                self._check_moment(literal, other)
                return
        span = left.span if left.span.end > right.span.end else left.span.to(right.span)
        message = wrong or f"{_described(left, one)} cannot be compared with {_described(right, two)}"
        hint = _comparison_hint(left, one, right, two)
        if AttributeType.DURATION in (one, two):
            hint = "a duration is compared with a duration, as in B.at - PREV(A).at < 10 min"
        self._reports.error(message, span, hint)

    def _is_of_times(self, part: Part) -> bool:
        """Whether an operation has a time for an operand, or may have: `_check_times` says what is wrong with it."""
        assert isinstance(part, (Unary, Binary, Log2))
        typed = self._times.typed(part)
        return typed.wrong is not None or any(each.is_time or each.loose or each.wrong for each in typed.operands)

    def _check_times(self, expression: Expression) -> None:
        """Report operations on times that there are not."""
        for each in self._times.typed(expression).mistakes:
            self._report_time(each)

    def _report_time(self, mistake: Typed) -> None:
        assert mistake.wrong is not None
        hint = "times are subtracted, compared and moved by durations: B.at - PREV(A).at < 10 min, A.at + 5 min"
        if isinstance(mistake.node, Literal):
            hint = "use a longer duration, or a time column in a finer unit"
        elif any(each.type in NUMBERS for each in mistake.operands):
            hint = "a number is compared with a number; a duration has a unit, as in 10 min, and d / 1 s is a number"
        if not any(each.span == mistake.node.span and each.message == mistake.wrong for each in self._reports.errors):
            self._reports.error(mistake.wrong, mistake.node.span, hint)

    def _may_be_length(self, part: Binary) -> bool:
        """Whether a difference is between a time that is written as text and what may turn out to be a time."""
        sides = (part.left, part.right)
        texts = [
            isinstance(each, Literal) and is_text(each) and moment_of(str(each.value)) is not None for each in sides
        ]
        return is_difference(part) and any(texts) and any(type_of(each, self._query, None) is None for each in sides)

    def _check_moment(self, literal: Expression, other: Typed) -> None:
        """Report a text that is no time, or has a zone where the instant beside it has none."""
        assert isinstance(literal, Literal)
        found = moment_of(str(literal.value))
        if found is None:
            self._reports.error(f"{to_text(literal)} is no time", literal.span, f"a time is written {FORMS}")
            return
        if self._schema is None or not found[1] or other.zone is not None:
            return
        known = {*self._schema.units, *([self._schema.clock.column] if self._schema.clock.is_timestamp else [])}
        leaves = [each for each in walk(other.node) if isinstance(each, (Reference, Aggregate, Taken, Attribute))]
        names = [each.name if isinstance(each, Attribute) else each.attribute for each in leaves]
        if all(name is None or name in known for name in names):
            hint = "leave the zone out"
            self._reports.error(
                f"{to_text(literal)} has a zone, and {to_text(other.node)} has none", literal.span, hint
            )

    def _check_number(self, operand: Expression, operator: str) -> None:
        known = self._type_of(operand)
        if known is None or known in NUMBERS:
            return
        hint = f"'{operator}' takes numbers only"
        if isinstance(operand, Literal) and operand.bare:
            hint = f"an attribute needs its variable, as in T.{operand.value}"
        self._reports.error(f"{_described(operand, known)} is not a number", operand.span, hint)

    def _check_aggregate(self, aggregate: Aggregate) -> None:
        if aggregate.variable is None or aggregate.attribute is None:
            return
        known = type_of_attribute(aggregate.variable, aggregate.attribute, self._query, self._schema)
        if known is None and self._schema is not None:
            known = self._schema.type_of(aggregate.attribute)  # of an open one it widens from number to number only
        if aggregate.function in DISTINCT:
            return
        allowed = [*NUMBERS, AttributeType.DURATION]
        allowed += [AttributeType.TIMESTAMP] if aggregate.function != "SUM" else []
        if known is None or known in allowed:
            return
        types = " and ".join(", ".join(each.value for each in allowed).rsplit(", ", 1))
        attribute = f"{name_text(aggregate.variable)}.{name_text(aggregate.attribute, free=True)}"
        hint = f"write COUNT({name_text(aggregate.variable)}) to count the events, or take another attribute"
        if known is AttributeType.TIMESTAMP:
            hint = "take MIN, MAX or AVG, or a difference such as MAX(B.at) - MIN(A.at)"
        self._reports.error(
            f"{aggregate.function} takes {types} attributes; {attribute} is {known.value}", aggregate.span, hint
        )

    def _check_key(self, key: str, span: Span) -> None:
        """Report a key that is declared with types that are never equal."""
        seen: dict[str | None, tuple[str, AttributeType]] = {}
        for variable, attributes in self._query.declared.items():
            known = attributes.get(key)
            if known is not None:
                seen.setdefault(kind_of(known), (self._query.types[variable], known))
        if len(seen) > 1:
            (first, one), (second, two) = list(seen.values())[:2]
            message = f"'{key}' is {one.value} in {first} and {two.value} in {second}, so no trend agrees on it"
            self._reports.error(message, span, "declare it with one type")

    def _type_of(self, expression: Expression) -> AttributeType | None:
        if isinstance(expression, (Unary, Binary)):
            return self._times.typed(expression).type
        return type_of(expression, self._query, self._schema)


def _is_mean(part: Part) -> bool:
    """Whether it is no integer, whatever it is the mean of."""
    return isinstance(part, Aggregate) and part.function == "AVG"


def _is_of_results(part: Part) -> bool:
    return not any(isinstance(inner, Reference) for inner in walk(part)) and any(
        isinstance(inner, (Aggregate, Attribute, Taken)) for inner in walk(part)
    )


def _described(expression: Expression, known: AttributeType) -> str:
    return f"{to_text(expression)} ({known.value})"


def _comparison_hint(left: Expression, one: AttributeType, right: Expression, two: AttributeType) -> str | None:
    for literal, other in ((left, two), (right, one)):
        if not isinstance(literal, Literal):
            continue
        if literal.bare:
            return f"{literal.value} without a variable is text; an attribute is written T.{literal.value}"
        if isinstance(literal.value, str) and other in NUMBERS and _is_number(literal.value):
            return f"write the number without quotes: {literal.value.strip()}"
        if other is AttributeType.STRING and not isinstance(literal.value, str):
            return f"write it as text: '{to_text(literal)}'"
        if other is AttributeType.BOOLEAN:
            return "compare it with TRUE or FALSE"
        if other is AttributeType.TIMESTAMP:
            return f"a timestamp is compared with another one, or with text such as {FORMS}"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------ windows


def _check_durations(query: AnalysedQuery, schema: Schema, reports: Reports) -> None:
    """Report edges of windows that the time column cannot hold."""
    clock = schema.clock
    for duration in (query.query.within, query.query.slide, query.query.offset, query.query.longest):
        if duration is None:
            continue
        ticks, rest = duration.ticks(clock.ticks_per_second)
        if not rest and ticks <= _LARGEST_TICKS:
            continue
        units = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[clock.unit]
        text = reports.quote(duration.span)[1:-1]
        if rest:
            message = f"{text} is no whole number of {units}, the unit of the time column '{clock.column}'"
            hint = "use a longer duration, or name the unit of the time column with --time-unit if it is finer"
        else:
            message = f"{text} is longer than the time column '{clock.column}' can hold in {units}"
            hint = f"use at most {_LARGEST_TICKS // clock.ticks_per_second} s; WITHIN ALL is one window over everything"
        reports.error(message, duration.span, hint)


def check_zone(query: Query, name: str | None, reports: Reports) -> None:
    """Report windows that have no place in the days of a time zone."""
    if name is None or query.session or query.within is None:
        return
    step = query.slide or query.within
    within, slide = query.within.seconds, step.seconds
    if min(within, slide) <= 0:
        return
    try:
        zone_of(name).is_calendar(within, slide)
    except ValueError:
        message = f"windows that begin every {to_text(step)} fit no day of {name}, whose clock is changed now and then"
        reports.error(message, step.span, "use whole days, or a part of a day such as 6 h; or leave --timezone out")
