"""Names of attributes, against EVENT declarations and against the columns of the input."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from hamlet.errors import Diagnostic, in_order, near_miss
from hamlet.frontend.reports import Reports
from hamlet.language.conditions import references, walk
from hamlet.language.expression_types import DOUBLE, INT, kind_of, row_types
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import (
    Aggregate,
    Attribute,
    DeclaredAttribute,
    Equivalence,
    Span,
    Taken,
)
from hamlet.language.result_checks import result_parts
from hamlet.language.schema import Schema


class Names:
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
        """Report every name that is not there."""
        for variable, attribute, span in _uses(self.query):
            if variable in self.query.types:
                self._check_attribute(variable, attribute, span)
        for attribute, span in keys_of(self.query):
            if self.query.is_of_input(attribute):
                self._check_column(attribute, span)

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
    """Every attribute that is named of a variable: in conditions, groups and aggregates."""
    if query.query.condition is not None:
        for reference in references(query.query.condition):
            yield reference.variable, reference.attribute, reference.span
    for value in _aggregates(query):
        if value.variable is not None and value.attribute is not None:
            yield value.variable, value.attribute, value.span
    for taken in query.query.group_by:
        if isinstance(taken, Taken) and taken.attribute is not None:
            yield taken.variable, taken.attribute, taken.span


def _aggregates(query: AnalysedQuery) -> Iterator[Aggregate]:
    """Every aggregate as often as it is written."""
    for _, part in result_parts(query.query):
        for inner in walk(part):
            if isinstance(inner, Aggregate):
                yield inner


def keys_of(query: AnalysedQuery) -> Iterator[tuple[str, Span]]:
    """Every attribute of the whole trend."""
    for each in query.query.group_by:
        if isinstance(each, Attribute):
            yield each.name, each.span
    if query.query.condition is not None:
        for part in walk(query.query.condition):
            if isinstance(part, Equivalence):
                for name in part.attributes:
                    yield name, part.span


def check_declarations(analysis: Analysis, schema: Schema, reports: Reports) -> None:
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


def check_rows(query: AnalysedQuery, schema: Schema, reports: Reports) -> None:
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
                or kind_of(kind) == kind_of(known)
            ):
                continue
            place = next((item.span for item in upstream.query.items if item.column == column), upstream.query.span)
            message = f"the rows of {name} have {kind.value} in '{column}', but the input's column holds {known.value}"
            reports.error(message, place, "give the result column another name with AS")
