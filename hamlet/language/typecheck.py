"""Names and types of attributes, against EVENT declarations and against the columns of the input.

A closed schema (files, tables) knows its columns, so a name that is not there is a mistake; an open one (dicts) does
not, and what it does not know is not checked. Source: docs/language.md; docs/numbers.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from hamlet.errors import Diagnostic, Reports, in_order, near_miss
from hamlet.language.conditions import Part, references, walk
from hamlet.language.layering import ROW_COLUMNS
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.moments import FORMS, is_difference, is_duration, is_text, moment_of
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import (
    DISTINCT,
    Aggregate,
    Attribute,
    AttributeType,
    Between,
    Binary,
    Comparison,
    DeclaredAttribute,
    Duration,
    Equivalence,
    Expression,
    Literal,
    Log2,
    Membership,
    Query,
    Reference,
    Span,
    Unary,
)
from hamlet.language.result_checks import result_parts
from hamlet.language.schema import Schema
from hamlet.language.zones import zone_of

INT, DOUBLE = AttributeType.INT, AttributeType.DOUBLE
NUMBERS = (INT, DOUBLE)
SPECIAL_COLUMNS = ("time", "type")  # what the time and the type column are called unless options say otherwise
_LARGEST_TICKS = 2**63 - 1


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
        _check_declarations(analysis, schema, reports)
    for query in analysis.queries:
        names = _Names(query, schema, special, reports)
        names.check()
        _check_types(query, schema, reports)
        if schema is not None:
            _check_durations(query, schema, reports)
            check_zone(query.query, schema.clock.zone, reports)
            _check_rows(query, schema, reports)
    return list(in_order(reports.errors))


def type_of(expression: Expression, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    """The type of an expression's values; None where it is not known before reading.

    Parameters
    ----------
    expression : Expression
        Of a condition of `query`.
    query : AnalysedQuery
        Knows the declared types of its variables.
    schema : Schema or None
        The input. Its column types come before declared ones, which they agree with; an open schema's are not used,
        since they may still widen.
    """
    match expression:
        case Literal(value=value):
            return _literal_type(value)
        case Reference(variable=variable, attribute=attribute):
            return type_of_attribute(variable, attribute, query, schema)
        case Attribute(name=name):
            return _type_of_key(name, query, schema)
        case Aggregate():
            return _type_of_aggregate(expression, query, schema)
        case Log2():
            return DOUBLE
        case Unary(operand=operand):
            known = type_of(operand, query, schema)
            return known if known in NUMBERS else None
        case Binary(operator=operator, left=left, right=right):
            types = (type_of(left, query, schema), type_of(right, query, schema))
            if operator == "/" or DOUBLE in types:
                return DOUBLE
            return INT if types == (INT, INT) else None
    raise TypeError(f"no expression: {expression!r}")


def type_of_attribute(
    variable: str, attribute: str, query: AnalysedQuery, schema: Schema | None
) -> AttributeType | None:
    """The type of an attribute of a variable's events; None where it is not known before reading."""
    upstream = query.upstream.get(query.types.get(variable, ""))
    if upstream is not None:
        return row_types(upstream, schema).get(attribute)
    if schema is not None:
        if attribute == schema.clock.column:
            return AttributeType.TIMESTAMP if schema.clock.is_timestamp else INT
        if attribute == schema.type_column:
            return AttributeType.STRING
        known = schema.type_of(attribute) if schema.closed else None
        if known is not None:
            return known
    return query.declared.get(variable, {}).get(attribute)


def row_types(query: AnalysedQuery, schema: Schema | None = None) -> dict[str, AttributeType | None]:
    """The columns of a query's rows with their types, as other queries see them; None where a type is not known yet."""
    time = None
    if schema is not None:
        time = AttributeType.TIMESTAMP if schema.clock.is_timestamp else INT
    found: dict[str, AttributeType | None] = {name: kind or time for name, kind in ROW_COLUMNS.items()}
    found.update((item.column, type_of(item.expression, query, schema)) for item in query.query.items)
    return found


def _type_of_key(name: str, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    """The type of an attribute of the whole trend."""
    for variable in query.types:
        known = type_of_attribute(variable, name, query, schema)
        if known is not None:
            return known
    return schema.type_of(name) if schema is not None else None


def _type_of_aggregate(aggregate: Aggregate, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    if aggregate.function in ("COUNT", *DISTINCT):
        return INT
    if aggregate.function == "AVG":
        return DOUBLE
    if aggregate.variable is None or aggregate.variable not in query.types or aggregate.attribute is None:
        return None
    known = type_of_attribute(aggregate.variable, aggregate.attribute, query, schema)
    return schema.type_of(aggregate.attribute) if known is None and schema is not None else known


def _literal_type(value: int | float | str | bool | Duration) -> AttributeType | None:
    if isinstance(value, bool):
        return AttributeType.BOOLEAN
    if isinstance(value, str):
        return AttributeType.STRING
    if isinstance(value, Duration):
        return None
    return INT if isinstance(value, int) else DOUBLE


# -------------------------------------------------------------------------------------------------------- names


class _Names:
    """Whether the attributes that one query names exist."""

    def __init__(self, query: AnalysedQuery, schema: Schema | None, special: Collection[str], reports: Reports) -> None:
        self.query = query
        self.reports = reports
        self.columns: Collection[str] | None = None
        self.special = set(special)
        if schema is not None:
            self.special = {schema.clock.column, schema.type_column}
            self.columns = schema.columns.keys() | self.special if schema.closed else None

    def check(self) -> None:
        for variable, attribute, span in _uses(self.query):
            if variable in self.query.types:
                self._check_attribute(variable, attribute, span)
        for attribute, span in _keys(self.query):
            if self._is_of_input(attribute):
                self._check_column(attribute, span)

    def _is_of_input(self, key: str) -> bool:
        """Whether events of the input carry a key, and not only the rows of other queries."""
        types = {name: each for name, each in self.query.types.items() if each not in self.query.upstream}
        return any(name not in self.query.declared or key in self.query.declared[name] for name in types)

    def _check_attribute(self, variable: str, attribute: str, span: Span) -> None:
        declared = self.query.declared.get(variable)
        if declared is not None and attribute in declared and self.query.types[variable] in self.query.upstream:
            return
        if declared is None or attribute in self.special or attribute in declared:
            self._check_column(attribute, span)
        else:
            event_type = self.query.types[variable]
            meant = near_miss(attribute, declared)
            hint = f"its attributes are {', '.join(map(name_text, declared))}"
            kind = "declared without the attribute"
            if event_type in self.query.upstream:
                kind = "a query whose rows have no column"
            if meant is not None:
                hint = f"did you mean {name_text(variable)}.{name_text(meant, free=True)}?"
            self.reports.error(f"{event_type} is {kind} '{attribute}'", span, hint)

    def _check_column(self, attribute: str, span: Span) -> None:
        if self.columns is None or attribute in self.columns:
            return
        meant = near_miss(attribute, self.columns)
        names = sorted(self.columns)
        hint = f"its columns are {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"
        if meant is not None:
            hint = f"did you mean {name_text(meant, free=True)}?"
        self.reports.error(f"the input has no column '{attribute}'", span, hint)


def _uses(query: AnalysedQuery) -> Iterator[tuple[str, str, Span]]:
    """Every attribute that is named of a variable: in conditions and aggregates."""
    if query.query.condition is not None:
        for reference in references(query.query.condition):
            yield reference.variable, reference.attribute, reference.span
    for value in _aggregates(query):
        if value.variable is not None and value.attribute is not None:
            yield value.variable, value.attribute, value.span


def _aggregates(query: AnalysedQuery) -> Iterator[Aggregate]:
    """Every aggregate as often as it is written."""
    for _, part in result_parts(query.query):
        for inner in walk(part):
            if isinstance(inner, Aggregate):
                yield inner


def _keys(query: AnalysedQuery) -> Iterator[tuple[str, Span]]:
    """Every attribute of the whole trend."""
    for attribute in query.query.group_by:
        yield attribute.name, attribute.span
    if query.query.condition is not None:
        for part in walk(query.query.condition):
            if isinstance(part, Equivalence):
                for name in part.attributes:
                    yield name, part.span


def _check_declarations(analysis: Analysis, schema: Schema, reports: Reports) -> None:
    """Report declared types that the input's columns contradict."""
    used = {event_type for query in analysis.queries for event_type in query.types.values()}
    for declaration in analysis.text.declarations:
        for attribute in declaration.attributes:
            if declaration.name in used:
                _check_declared(attribute, declaration.name, schema, reports)


def _check_declared(attribute: DeclaredAttribute, event_type: str, schema: Schema, reports: Reports) -> None:
    column = schema.type_of(attribute.name)
    widened = attribute.type is DOUBLE and column is INT
    special = attribute.name in (schema.clock.column, schema.type_column)
    if column is None or column is attribute.type or widened or special:
        return
    message = f"{event_type}.{attribute.name} is declared {attribute.type.value}, but the column holds {column.value}"
    reports.error(message, attribute.span, f"declare {to_text(attribute).rsplit(' ', 1)[0]} {column.value}")


def check_row_names(analysis: Analysis, special: Mapping[str, str]) -> list[Diagnostic]:
    """Check that rows that are events have no column named like one that every event has, before there is an input.

    Parameters
    ----------
    analysis : Analysis
        The workload.
    special : mapping of str to str
        What the time, the type and the order column are for (``time``, ...), by their names.
    """
    reports = Reports(analysis.text.text, analysis.text.source)
    for query in analysis.queries:
        _check_row_names(query, special, reports)
    return list(in_order(reports.errors))


def _check_row_names(query: AnalysedQuery, special: Mapping[str, str], reports: Reports) -> None:
    for name, upstream in query.upstream.items():
        for item in upstream.query.items:
            if item.column in special:
                message = (
                    f"rows of {name} are events, and '{item.column}' is the {special[item.column]} column of events"
                )
                reports.error(message, item.span, f"rename it, as in {to_text(item.value)} AS {item.column}_2")


def _check_rows(query: AnalysedQuery, schema: Schema, reports: Reports) -> None:
    """Report columns of rows that are events and cannot have such columns beside those of the input."""
    special = {schema.clock.column: "time", schema.type_column: "type"}
    if schema.order_column is not None:
        special[schema.order_column] = "order"
    _check_row_names(query, special, reports)
    for name, upstream in query.upstream.items():
        for column, kind in row_types(upstream, schema).items():
            known = schema.type_of(column)
            if (
                column not in query.partition
                or column in special
                or kind is None
                or known is None
                or _kind(kind) == _kind(known)
            ):
                continue
            place = next((item.span for item in upstream.query.items if item.column == column), upstream.query.span)
            message = f"the rows of {name} have {kind.value} in '{column}', but the input's column holds {known.value}"
            reports.error(message, place, "give the result column another name with AS")


# -------------------------------------------------------------------------------------------------------- types


def _check_types(query: AnalysedQuery, schema: Schema | None, reports: Reports) -> None:
    if query.query.condition is not None:
        for part in walk(query.query.condition):
            _check_part(part, query, schema, reports)
    for _, part in result_parts(query.query):
        for inner in walk(part):
            _check_part(inner, query, schema, reports)
            if isinstance(inner, Aggregate):
                _check_aggregate(inner, query, schema, reports)
    for key, span in _keys(query):
        _check_key(key, span, query, reports)


def _check_part(part: Part, query: AnalysedQuery, schema: Schema | None, reports: Reports) -> None:
    match part:
        case Comparison(left=left, right=right):
            _check_comparable(left, right, query, schema, reports)
        case Membership(operand=operand, choices=choices):
            for choice in choices:
                _check_comparable(operand, choice, query, schema, reports)
        case Between(operand=operand, low=low, high=high):
            for end in (low, high):
                _check_comparable(operand, end, query, schema, reports)
        case Unary(operator=operator, operand=operand):
            _check_number(operand, operator, query, schema, reports)
        case Log2(operand=operand):
            _check_number(operand, "LOG2", query, schema, reports)
        case Binary(operator=operator, left=left, right=right):
            words = [inner for inner in (left, right) if isinstance(inner, Literal) and inner.bare]
            if operator == "-" and len(words) == 2:
                hint = f"quote text with special characters: '{words[0].value}-{words[1].value}'"
                reports.error("text cannot be subtracted", part.span, hint)
                return
            if _is_length(part, query, schema) or (schema is None and _may_be_length(part, query)):
                return
            for inner in (left, right):
                _check_number(inner, operator, query, schema, reports)
                if operator == "%" and _is_of_results(part) and type_of(inner, query, schema) is DOUBLE:
                    message = f"{_described(inner, DOUBLE)} is no integer, and '%' of results is over integers"
                    reports.error(message, inner.span, "use counts, and sums of INT attributes")


def _is_of_results(part: Part) -> bool:
    return not any(isinstance(inner, Reference) for inner in walk(part)) and any(
        isinstance(inner, (Aggregate, Attribute)) for inner in walk(part)
    )


def _kind(known: AttributeType | None) -> str | None:
    """Types of one kind can be compared."""
    return "number" if known in NUMBERS else known.value if known is not None else None


def _check_comparable(
    left: Expression, right: Expression, query: AnalysedQuery, schema: Schema | None, reports: Reports
) -> None:
    one, two = type_of(left, query, schema), type_of(right, query, schema)
    if is_duration(left) or is_duration(right) or _is_length(left, query, schema) or _is_length(right, query, schema):
        _check_lengths(left, right, query, schema, reports)
        return
    if one is None or two is None or _kind(one) == _kind(two):
        return
    for literal, other, kind in ((left, right, two), (right, left, one)):
        if is_text(literal) and kind is AttributeType.TIMESTAMP:
            _check_moment(literal, other, schema, reports)
            return
    span = left.span if left.span.end > right.span.end else left.span.to(right.span)
    message = f"{_described(left, one)} cannot be compared with {_described(right, two)}"
    reports.error(message, span, _comparison_hint(left, one, right, two))


def _is_length(expression: Expression, query: AnalysedQuery, schema: Schema | None) -> bool:
    """Whether an expression is the difference of two timestamps, as far as is known."""
    if not (isinstance(expression, Binary) and is_difference(expression)):
        return False
    sides = (expression.left, expression.right)
    return all(
        is_text(each) or _seen_type(each, query, schema) is AttributeType.TIMESTAMP for each in sides
    ) and not all(map(is_text, sides))


def _may_be_length(part: Binary, query: AnalysedQuery) -> bool:
    """Whether a difference is between a time that is written as text and something that may turn out to be a time."""
    sides = (part.left, part.right)
    texts = [isinstance(each, Literal) and is_text(each) and moment_of(str(each.value)) is not None for each in sides]
    return is_difference(part) and any(texts) and any(type_of(each, query, None) is None for each in sides)


def _seen_type(expression: Expression, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    """The type of an expression, also by what dicts have shown: no type turns into a timestamp, or out of one."""
    known = type_of(expression, query, schema)
    if known is None and schema is not None and isinstance(expression, Reference):
        return schema.type_of(expression.attribute)
    return known


def _check_lengths(
    left: Expression, right: Expression, query: AnalysedQuery, schema: Schema | None, reports: Reports
) -> None:
    """A duration is compared with the difference of two timestamps, and the other way round."""
    for length, other in ((left, right), (right, left)):
        if is_duration(length) and not (is_duration(other) or _is_length(other, query, schema)):
            if isinstance(other, Binary) and is_difference(other):
                kinds = [_seen_type(each, query, schema) for each in (other.left, other.right)]
                if None in kinds:
                    return  # nothing is known before events come
            elif _seen_type(other, query, schema) is None and schema is None:
                hint = "a duration is compared with a difference, as in B.at - PREV(A).at < 10 min"
                reports.error(f"{to_text(other)} cannot be compared with a duration", other.span, hint)
                return
            hint = (
                "only a difference of two timestamps is compared with a duration, as in B.at - PREV(A).at < 10 min; "
                "a number is compared with a number in its own unit"
            )
            reports.error(f"{to_text(other)} cannot be compared with a duration", other.span, hint)
            return
        if _is_length(length, query, schema) and not (is_duration(other) or _is_length(other, query, schema)):
            hint = f"write {to_text(length)} < 10 min"
            reports.error("a difference of timestamps is compared with a duration", other.span, hint)
            return


def _check_moment(literal: Expression, other: Expression, schema: Schema | None, reports: Reports) -> None:
    """Report a text that is no time, or has a zone where the column has none."""
    assert isinstance(literal, Literal)
    found = moment_of(str(literal.value))
    if found is None:
        reports.error(f"{to_text(literal)} is no time", literal.span, f"a time is written {FORMS}")
        return
    if schema is None or not isinstance(other, Reference):
        return
    clock = other.attribute == schema.clock.column and schema.clock.is_timestamp
    zone = schema.clock.type.tz if clock else schema.units.get(other.attribute, ("s", "UTC"))[1]
    if found[1] and zone is None:
        hint = "leave the zone out"
        reports.error(f"{to_text(literal)} has a zone, and {to_text(other)} has none", literal.span, hint)


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


def _check_number(
    operand: Expression, operator: str, query: AnalysedQuery, schema: Schema | None, reports: Reports
) -> None:
    known = type_of(operand, query, schema)
    if is_duration(operand) or _is_length(operand, query, schema):
        hint = "compare it with a duration: B.at - PREV(A).at < 10 min"
        reports.error(f"{to_text(operand)} is a length of time, and can only be compared", operand.span, hint)
        return
    if known is None or known in NUMBERS:
        return
    hint = f"'{operator}' takes numbers only"
    if known is AttributeType.TIMESTAMP:
        hint = "timestamps are compared, or subtracted from each other: B.at - PREV(A).at < 10 min"
    if isinstance(operand, Literal) and operand.bare:
        hint = f"an attribute needs its variable, as in T.{operand.value}"
    reports.error(f"{_described(operand, known)} is not a number", operand.span, hint)


def _check_aggregate(aggregate: Aggregate, query: AnalysedQuery, schema: Schema | None, reports: Reports) -> None:
    if aggregate.variable is None or aggregate.attribute is None:
        return
    known = type_of_attribute(aggregate.variable, aggregate.attribute, query, schema)
    if known is None and schema is not None:
        known = schema.type_of(aggregate.attribute)  # of an open schema, which widens from number to number only
    if aggregate.function in DISTINCT:
        return
    allowed = [*NUMBERS, AttributeType.TIMESTAMP] if aggregate.function in ("MIN", "MAX") else [*NUMBERS]
    if known is None or known in allowed:
        return
    types = " and ".join(", ".join(each.value for each in allowed).rsplit(", ", 1))
    attribute = f"{name_text(aggregate.variable)}.{name_text(aggregate.attribute, free=True)}"
    hint = f"write COUNT({name_text(aggregate.variable)}) to count the events, or take another attribute"
    reports.error(f"{aggregate.function} takes {types} attributes; {attribute} is {known.value}", aggregate.span, hint)


def _check_key(key: str, span: Span, query: AnalysedQuery, reports: Reports) -> None:
    """Report a key that is declared with types that are never equal."""
    seen: dict[str | None, tuple[str, AttributeType]] = {}
    for variable, attributes in query.declared.items():
        known = attributes.get(key)
        if known is not None:
            seen.setdefault(_kind(known), (query.types[variable], known))
    if len(seen) > 1:
        (first, one), (second, two) = list(seen.values())[:2]
        message = f"'{key}' is {one.value} in {first} and {two.value} in {second}, so no trend agrees on it"
        reports.error(message, span, "declare it with one type")


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
            hint = f"use at most {_LARGEST_TICKS // clock.ticks_per_second} s"
        reports.error(message, duration.span, hint)


def check_zone(query: Query, name: str | None, reports: Reports) -> None:
    """Report windows that have no place in the days of a time zone."""
    within, slide = query.within.seconds, (query.slide or query.within).seconds
    if name is None or query.session or min(within, slide) <= 0:
        return
    try:
        zone_of(name).is_calendar(within, slide)
    except ValueError:
        step = query.slide or query.within
        message = f"windows that begin every {to_text(step)} fit no day of {name}, whose clock is changed now and then"
        reports.error(message, step.span, "use whole days, or a part of a day such as 6 h; or leave --timezone out")
