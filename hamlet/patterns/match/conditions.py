"""Conditions of DEFINE: which the host computes for all rows at once, and which read the labels of a match."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import Any

from hamlet.errors import Span
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read, placeholder
from hamlet.patterns.clause.tree import Clause, Expression
from hamlet.patterns.match.ordered import Expressions


class Failed(Exception):
    """A clause is wrong; what is wrong has been reported."""


@dataclass(frozen=True)
class Condition:
    """The condition of one variable.

    Attributes
    ----------
    variable : str
        Folded.
    read : Read
        Readings of the candidate row's neighbours left in.
    reads_match : bool
        Whether more is read than rows at a fixed distance from the candidate.
    """

    variable: str
    read: Read
    reads_match: bool


def condition_of(clause: Clause, variable: str, read: Read) -> Condition:
    """Sort a condition: whether all its readings lie at a fixed distance from the candidate row."""
    near = all(is_near(clause, variable, reading) for reading in read.readings)
    return Condition(variable, read, read.reads_number or not near)


def is_near(clause: Clause, variable: str, reading: Navigation | Aggregation) -> bool:
    """Whether a reading is of a row at a fixed distance from the candidate, which is the last row of its variable."""
    if isinstance(reading, Aggregation) or not reading.last or reading.inwards or reading.reads_number:
        return False
    if variable not in clause.members(reading.variable):
        return False
    return not reading.reads_label or reading.step >= 0


def host_text(clause: Clause, condition: Condition, ordered: Expressions) -> str:
    """A condition over the ordered table, for one that reads nothing but neighbours."""
    text = condition.read.text
    for place, reading in enumerate(condition.read.readings):
        if placeholder(place) not in text:
            continue
        assert isinstance(reading, Navigation)
        value = reading.value
        if reading.reads_label:
            name = ordered.label_text(clause.variables[condition.variable])
            # rows behind the candidate have no label yet
            value = value.replace(LABEL, name if reading.step == 0 else f"nullif({name}, {name})")
        text = text.replace(placeholder(place), ordered.shifted(value, reading.step))
    return text


def rows_ahead(read: Read, text: str) -> int:
    """How many rows ahead a part of a condition reads at most."""
    readings = (read.readings[int(place)] for place in PLACEHOLDER.findall(text))
    return max((0, *(each.step for each in readings if isinstance(each, Navigation))))


def bounds_of(clause: Clause, condition: Condition, ordered: Expressions) -> tuple[str, str] | None:
    """A condition that reads rows ahead, as it is at most and at least where they have not come; None for another."""
    import sqlglot
    from sqlglot import exp

    read = condition.read

    def bounded(node: Any, most: bool) -> str:
        if isinstance(node, (exp.And, exp.Or)):
            sign = "AND" if isinstance(node, exp.And) else "OR"
            return f"({bounded(node.left, most)} {sign} {bounded(node.right, most)})"
        if isinstance(node, exp.Paren):
            return bounded(node.this, most)
        if isinstance(node, exp.Not):
            return f"(NOT {bounded(node.this, not most)})"
        text = node if isinstance(node, str) else node.sql(ordered.dialect)
        ahead = rows_ahead(read, text)
        if not ahead:
            return f"({text})"
        return f"(CASE WHEN {ordered.shifted('true', ahead)} IS NULL THEN {most} ELSE ({text}) END)"

    if not rows_ahead(read, read.text):
        return None
    node: Any = read.text
    with contextlib.suppress(sqlglot.errors.SqlglotError, RecursionError):
        node = sqlglot.parse_one(read.text, dialect=ordered.dialect)
    texts = (replace(condition, read=replace(read, text=bounded(node, most))) for most in (True, False))
    found = tuple(host_text(clause, each, ordered) for each in texts)
    return found[0], found[1]


def as_seen(read: Read) -> Read:
    """A condition as an expression over a match that ends with the candidate row: everything is seen."""
    readings = tuple(replace(each, mode=None) for each in read.readings)
    return replace(read, readings=readings)


PLACEHOLDER = re.compile(r"__hamlet_read_(\d+)_")
_OWN_NAME = re.compile(r'["`]*__hamlet_(?:value_\d+|read)_(\d+)\w*["`]*')

_NO_FUNCTION = re.compile(r"Function with name (\S+) does not exist")
_NEIGHBOUR = re.compile(r'["`]*__hamlet_(prev|next)_(\d+)_(\w+)["`]*')  # a column of `ordered.Ordered.shifted`


def report_said(reports: Reports, read: Read, message: str, hint: str | None = None, place: Span | None = None) -> None:
    """Report what the host says against an expression; names that stand for readings become what was written."""
    named = [int(each) for each in _OWN_NAME.findall(message)]
    if named:
        place = read.readings[named[0]].span
        message = _OWN_NAME.sub(lambda match: reports.quote(read.readings[int(match[1])].span), message)
    message = message.replace(LABEL, "CLASSIFIER()").replace(NUMBER, "MATCH_NUMBER()")
    if "__hamlet_" in message and "GROUP BY" in message:  # of a column that nobody wrote
        message = "an aggregate stands inside a macro, where it is not seen to be one over rows of the match"
        hint = "write the aggregate itself"
    for near in _NEIGHBOUR.finditer(message):
        function, step, column = near[1].upper(), int(near[2]), near[3]
        steps = {"PREV": -step, "NEXT": step}
        place = place or next((r.span for r in read.readings if getattr(r, "step", 0) == steps[function]), None)
        message = message.replace(near[0], f"'{function}({column}, {step})'")
    reports.error(message, place or place_in(read.expression, message), hint)


def place_in(expression: Expression, message: str) -> Span:
    """The part of an expression that a message names, or all of it."""
    for part in names_said(message):
        place = expression.text.lower().find(part.lower())
        if part and place >= 0:
            return Span(expression.span.start + place, expression.span.start + place + len(part))
    return expression.span


def names_said(message: str) -> list[str]:
    """What a message of the host names: in quotes, or as a function that is not there."""
    return message.split('"')[1::2] or _NO_FUNCTION.findall(message)


__all__ = [
    "LABEL",
    "NUMBER",
    "PLACEHOLDER",
    "Condition",
    "Failed",
    "as_seen",
    "bounds_of",
    "condition_of",
    "host_text",
    "is_near",
    "names_said",
    "report_said",
    "rows_ahead",
]
