"""The order of a table that is a subquery, as a column: joins do not keep the order of what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hamlet.errors import Span
from hamlet.patterns.clause.parser import closing
from hamlet.patterns.clause.scan import Token

_NO_ORDER = ("DISTINCT", "GROUP", "HAVING", "WITH", "VALUES", "UNION", "INTERSECT", "EXCEPT", "MATCH_RECOGNIZE")
JOINS = ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "NATURAL", "ASOF", "POSITIONAL", "SEMI", "ANTI")
_BEHIND_A_TABLE = ("WHERE", "ORDER", "LIMIT", "OFFSET", *JOINS, *_NO_ORDER)
NUMBER = "__hamlet_number_"


def flat(tokens: Sequence[Token], start: int, end: int) -> Iterator[int]:
    """The places of tokens between two of them that stand in no parentheses there."""
    while start < end:
        yield start
        start = closing(tokens, start) + 1 if tokens[start].text in ("(", "[", "{") else start + 1


def span_of(tokens: Sequence[Token], first: int, last: int) -> Span:
    """The text of some tokens."""
    return tokens[first].span.to(tokens[last - 1].span)


def numbered(
    tokens: Sequence[Token], first: int, last: int, render: Callable[[Span], str], number: str
) -> tuple[str, str] | None:
    """A SELECT with a column that its rows are in the order of, and the column; None where its order is not known.

    Parameters
    ----------
    tokens : sequence of Token
    first, last : int
        Those of the SELECT.
    render : callable
        The text of a part of it.
    number : str
        What the host numbers the rows of a table by.
    """
    places = list(flat(tokens, first, last))
    begun = next((each for each in places if tokens[each].is_word("FROM")), last)
    unknown = any(tokens[each].is_word(*_NO_ORDER) for each in places)
    if not tokens[first].is_word("SELECT") or unknown or begun + 1 >= last:
        return None
    behind = begun + 1
    if tokens[behind].text == "(":
        behind = closing(tokens, behind)
        inner = numbered(tokens, begun + 2, behind, render, number)
        if inner is None:
            return None
        table, known = inner
        table = f"({table})"
    else:
        while behind + 2 < last and tokens[behind + 1].text == ".":
            behind += 2
        known = f"{NUMBER}0"
        table = f"(SELECT *, {number} AS {known} FROM {render(span_of(tokens, begun + 1, behind + 1))})"
        following = tokens[behind + 1] if behind + 1 < last else None
        if following is None or following.text in (",", ")") or following.is_word(*_BEHIND_A_TABLE):
            table += f" AS {render(tokens[behind].span)}"
    order = next((each for each in places if tokens[each].is_word("ORDER")), None)
    value, own = known, f"{NUMBER}{int(known[len(NUMBER) :]) + 1}"
    if order is not None:
        ended = next((each for each in places if each > order and tokens[each].is_word("LIMIT", "OFFSET")), last)
        if any(tokens[each].kind == "number" for each in places if order < each < ended):
            return None  # the number of a column
        value = f"row_number() OVER ({render(span_of(tokens, order, ended))}, {known})"
    text = f"{render(span_of(tokens, first, begun))}, {value} AS {own} FROM {table}"
    return f"{text} {render(span_of(tokens, behind + 1, last))}" if behind + 1 < last else text, own
