"""Tokens to result expressions, HAVING and TOP.

::

    rexpr = + - * / % and unary minus over aggregates, attributes of the trend, numbers, LOG2(rexpr), parentheses
    hcond = boolean combination of  rexpr cmp rexpr    rexpr [NOT] IN (..)    rexpr [NOT] BETWEEN a AND b
            rexpr IS [NOT] NULL
    top   = TOP k BY rexpr [ASC | DESC]

Operators are those of conditions (`hamlet.language.parse_condition`); a bare word is an attribute here, and strings,
TRUE and FALSE are values to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hamlet.errors import near_miss
from hamlet.frontend.lexer import Kind
from hamlet.language.cursor import Cursor
from hamlet.language.parse_condition import parse_condition, parse_number, parse_value
from hamlet.language.query import Aggregate, Attribute, Condition, Expression, Group, Literal, Log2, Taken, Top

_OF_SORTED_VALUES = frozenset({"MEDIAN", "MODE", "QUANTILE", "PERCENTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"})
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "APPROX_COUNT_DISTINCT")
_COLUMNS = "COUNT(*), SUM(T.duration) and T.district are result columns"
_TOP_USAGE = "rows are kept by TOP 3 BY COUNT(*), or TOP 3 BY COUNT(*) ASC for the smallest"
_MOST_DIGITS = 18  # of the number of TOP


def parse_result(cursor: Cursor) -> Expression:
    """Read one expression of RETURN; raises UnreadableError with the message recorded."""
    with _operands(cursor, _column):
        return parse_value(cursor)


def parse_having(cursor: Cursor) -> Condition:
    """Read the condition of HAVING; raises UnreadableError with the message recorded."""
    with _operands(cursor, _value):
        return parse_condition(cursor)


def parse_top(cursor: Cursor) -> Top:
    """Read what stands behind TOP; raises UnreadableError with the message recorded."""
    start = cursor.peek(-1).span
    sign = -1 if cursor.take("-") else 1
    token = cursor.advance()  # a number: TOP is a keyword only there
    if not token.value.isdigit():
        raise cursor.fail(f"'{token.value}' is no whole number", token.span, _TOP_USAGE)
    if len(token.value) > _MOST_DIGITS:
        hint = "leave TOP out to keep all rows"
        raise cursor.fail(f"the number of TOP has at most {_MOST_DIGITS} digits", token.span, hint)
    if not cursor.take_word("BY"):
        raise cursor.expected(["BY"], _TOP_USAGE, after=cursor.since(start))
    with _operands(cursor, _value):
        by = parse_value(cursor)
    ascending = cursor.take_word("ASC", "DESC")
    is_ascending = ascending is not None and ascending.value.upper() == "ASC"
    return Top(sign * int(token.value), by, is_ascending, span=cursor.since(start))


def as_item(expression: Expression) -> tuple[Expression, bool]:
    """What a column is made of, and whether it is LOG2 of that, which it is for a lone aggregate only."""
    if isinstance(expression, Log2) and isinstance(expression.operand, Aggregate):
        return expression.operand, True
    return expression, False


@contextmanager
def _operands(cursor: Cursor, operand: Callable[[Cursor], Expression]) -> Iterator[None]:
    cursor.operand = operand
    try:
        yield
    finally:
        cursor.operand = None


# ------------------------------------------------------------------------------------------------- operands


def _column(cursor: Cursor) -> Expression:
    """An operand of RETURN."""
    return _operand(cursor, "a result column", _COLUMNS)


def _value(cursor: Cursor) -> Expression:
    """An operand of HAVING and TOP, where strings and truth values may stand too."""
    token = cursor.peek()
    if token.kind is Kind.STRING:
        return Literal(cursor.advance().value, span=token.span)
    if cursor.at_word("TRUE", "FALSE") and not cursor.at(".", offset=1):
        return Literal(cursor.advance().value.upper() == "TRUE", span=token.span)
    hint = "conditions on results are written HAVING COUNT(*) > 3 AND district = 'Soho'"
    if cursor.at_word("NULL"):
        hint = "write IS NULL or IS NOT NULL"
    elif cursor.at("["):
        hint = "attributes that all events of a trend share stand in WHERE"
    elif cursor.at_word("NEXT", "PREV") and cursor.at("(", offset=1):
        message = f"{token.value.upper()} speaks of single events; results have none"
        raise cursor.fail(message, token.span, "compare neighbours in WHERE")
    return _operand(cursor, "a result, such as COUNT(*) or an attribute of GROUP-BY,", hint)


def _operand(cursor: Cursor, what: str, hint: str) -> Expression:
    if cursor.at_kind(Kind.NUMBER):
        return parse_number(cursor)
    if cursor.at_word("LOG2") and cursor.at("(", offset=1):
        return _logarithm(cursor)
    if at_taken(cursor, "FIRST", "LAST"):
        return parse_taken(cursor)
    if cursor.at_kind(Kind.WORD) and cursor.at("(", offset=1):
        return _aggregate(cursor)
    if cursor.at_word("AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL") and not cursor.at(".", offset=1):
        raise cursor.expected([what], hint)
    return parse_attribute(cursor, what, hint)


def _logarithm(cursor: Cursor) -> Log2:
    start = cursor.advance().span
    cursor.advance()  # the parenthesis
    cursor.deeper(start, "expression")
    operand = parse_value(cursor)
    cursor.depth -= 1
    if not cursor.take(")"):
        raise cursor.expected(["')'"], "close LOG2(", after=cursor.since(start))
    return Log2(operand, span=cursor.since(start))


def _aggregate(cursor: Cursor) -> Aggregate:
    token = cursor.advance()
    function = token.value.upper()
    if function not in _AGGREGATES:
        hint = "the aggregates are COUNT, SUM, AVG, MIN, MAX and APPROX_COUNT_DISTINCT, and LOG2 of what they give"
        meant = near_miss(function, _AGGREGATES, 0.75) or {"AVERAGE": "AVG", "MEAN": "AVG"}.get(function)
        if meant is not None:
            hint = f"did you mean {meant}?"
        elif function in _OF_SORTED_VALUES:
            hint += (
                "; SQL gives it of a row for each value: write FIRST(T.speed) AS x and GROUP-BY FIRST(T.speed) here, "
                "then SELECT median(x) about the rows"
            )
        raise cursor.fail(f"there is no aggregate '{token.value}'", token.span, hint)
    cursor.advance()  # the parenthesis
    usage = "write COUNT(*) for trends or COUNT(T) for events" if function == "COUNT" else f"write {function}(T.speed)"
    variable = attribute = None
    events = _takes_events(cursor, function)
    if events:
        usage = "write COUNT(EVENTS T)" if function == "COUNT" else f"write {function}(EVENTS T.speed)"
    if function == "COUNT" and cursor.take("*"):
        pass
    else:
        if cursor.at_word("DISTINCT") and cursor.at_kind(Kind.WORD, Kind.NAME, offset=1):
            if function != "COUNT":
                hint = "values are counted once by COUNT(DISTINCT T.driver)"
                raise cursor.fail(f"{function} does not support DISTINCT", cursor.peek().span, hint)
            cursor.advance()
            function, usage = "COUNT_DISTINCT", "write COUNT(DISTINCT T.driver)"
        if not cursor.at_kind(Kind.WORD, Kind.NAME):
            what = "'*' or a variable" if function == "COUNT" else "a variable and its attribute"
            raise cursor.expected([what], usage, after=cursor.since(token.span))
        variable = cursor.take_name()
        if function != "COUNT":
            if not cursor.at("."):
                shown = "COUNT(DISTINCT " if function == "COUNT_DISTINCT" else f"{function}({'EVENTS ' * events}"
                hint = f"name the variable too: {shown}T.{variable})"
                raise cursor.expected(["'.' and an attribute"], hint, after=cursor.since(token.span))
            attribute = _attribute_name(cursor)
        elif cursor.at("."):
            name = cursor.peek(1).value
            hint = f"write COUNT({variable}) for its events in all trends, COUNT(DISTINCT {variable}.{name}) for values"
            if events:
                hint = f"write COUNT(EVENTS {variable}) for the events, COUNT(DISTINCT {variable}.{name}) for values"
            span = cursor.peek().span.to(cursor.peek(1).span)
            raise cursor.fail("COUNT takes a variable, not an attribute", span, hint)
    if not cursor.take(")"):
        hint = f"{usage}; arithmetic on attributes is for WHERE"
        if function == "AVG" and attribute is not None and cursor.at("-"):
            mean = "AVG(EVENTS " if events else "AVG("
            hint += f"; a mean difference is a difference of means: {mean}{variable}.{attribute}) - {mean}T.speed)"
        raise cursor.expected(["')'"], hint, after=cursor.since(token.span))
    return Aggregate(function, variable, attribute, events, span=cursor.since(token.span))


def _takes_events(cursor: Cursor, function: str) -> bool:
    """Take EVENTS, a keyword only right before a name; raises UnreadableError where it cannot stand."""
    before = cursor.at_word("DISTINCT") and cursor.at_word("EVENTS", offset=1)
    if before and cursor.at_kind(Kind.WORD, Kind.NAME, offset=2):
        message = "DISTINCT counts values and EVENTS counts events"
        raise cursor.fail(message, cursor.peek(1).span, "leave one of them out")
    if not cursor.at_word("EVENTS"):
        return False
    if cursor.at("*", offset=1):
        hint = "name the variable, as in COUNT(EVENTS T); COUNT(*) counts trends"
        raise cursor.fail("EVENTS counts the events of one variable", cursor.peek(1).span, hint)
    if not cursor.at_kind(Kind.WORD, Kind.NAME, offset=1):
        return False
    distinct = cursor.at_word("DISTINCT", offset=1) and cursor.at_kind(Kind.WORD, Kind.NAME, offset=2)
    if function == "APPROX_COUNT_DISTINCT" or distinct:
        hint = "leave EVENTS out: a value counts once, however many events have it"
        raise cursor.fail("distinct values are those of all events", cursor.peek().span, hint)
    cursor.advance()
    return True


def at_taken(cursor: Cursor, *functions: str) -> bool:
    """Whether FIRST(, LAST( or COUNT( follows: what a trend took of a variable."""
    return cursor.at_word(*functions) and cursor.at("(", offset=1)


def parse_taken(cursor: Cursor) -> Taken:
    """Read ``FIRST(v.a)``, ``LAST(v.a)`` or, in GROUP-BY, ``COUNT(v)``."""
    start = cursor.advance().span
    function = cursor.peek(-1).value.upper()
    cursor.advance()  # the parenthesis
    counts = function == "COUNT"
    usage = "write COUNT(T) for how many events of T a trend has" if counts else f"write {function}(T.district)"
    words = cursor.at_word("EVENTS", "DISTINCT") and cursor.at_kind(Kind.WORD, Kind.NAME, offset=1)
    if not cursor.at_kind(Kind.WORD, Kind.NAME) or (counts and words):
        raise cursor.expected(
            ["a variable" if counts else "a variable and its attribute"], usage, after=cursor.since(start)
        )
    variable, attribute = cursor.take_name(), None
    if counts and cursor.at("."):
        span = cursor.peek().span.to(cursor.peek(1).span)
        raise cursor.fail("COUNT takes a variable, not an attribute", span, f"write COUNT({variable})")
    if not counts:
        if not cursor.at("."):
            raise cursor.expected(["'.' and an attribute"], usage, after=cursor.since(start))
        attribute = _attribute_name(cursor)
    if not cursor.take(")"):
        raise cursor.expected(["')'"], usage, after=cursor.since(start))
    return Taken(function, variable, attribute, span=cursor.since(start))


def parse_group(cursor: Cursor) -> Group:
    """Read what GROUP-BY names; raises UnreadableError with the message recorded."""
    usage = "groups are written GROUP-BY T.district, FIRST(T.district), COUNT(T)"
    if at_taken(cursor, "FIRST", "LAST", "COUNT"):
        return parse_taken(cursor)
    if cursor.at_kind(Kind.WORD) and cursor.at("(", offset=1):
        name = cursor.peek().value
        message = f"trends are not grouped by {name.upper() if name.upper() in _AGGREGATES else name}"
        raise cursor.fail(message, cursor.peek().span, usage)
    return parse_attribute(cursor, "an attribute", usage)


def parse_attribute(cursor: Cursor, what: str, hint: str) -> Attribute:
    """Read ``[var.]name``; `what` and `hint` are for the message where there is none."""
    token = cursor.peek()
    keyword = (cursor.clause() or cursor.starts_statement()) and not cursor.at(".", offset=1)
    if keyword or not cursor.at_kind(Kind.WORD, Kind.NAME):
        raise cursor.expected([what], hint)
    name, variable = cursor.take_name(), None
    if cursor.at("."):
        name, variable = _attribute_name(cursor), name
    return Attribute(name, variable, span=cursor.since(token.span))


def _attribute_name(cursor: Cursor) -> str:
    """A point and the name behind it."""
    start = cursor.peek(-1).span
    cursor.advance()
    if not cursor.at_kind(Kind.WORD, Kind.NAME):
        raise cursor.expected(["an attribute"], after=cursor.since(start))
    return cursor.take_name()
