"""Tokens to the lists of RETURN and GROUP-BY, durations and EVENT declarations.

The grammar stands in `hamlet.language.parser`. Source: docs/language.md ("A query").
"""

from __future__ import annotations

from hamlet.errors import near_miss, one_of
from hamlet.frontend.cursor import UnreadableError
from hamlet.frontend.lexer import Kind
from hamlet.language.cursor import Cursor
from hamlet.language.parse_result import as_item, parse_group, parse_result
from hamlet.language.query import (
    Aggregate,
    Attribute,
    AttributeType,
    DeclaredAttribute,
    EventDeclaration,
    Group,
    ReturnItem,
    Semantics,
    Taken,
)

_TYPE_MEANT = {"INTEGER": "INT", "BIGINT": "INT", "LONG": "INT", "INT64": "INT", "SMALLINT": "INT"}
_TYPE_MEANT |= {"FLOAT": "DOUBLE", "REAL": "DOUBLE", "DECIMAL": "DOUBLE", "NUMERIC": "DOUBLE", "NUMBER": "DOUBLE"}
_TYPE_MEANT |= {"TEXT": "STRING", "VARCHAR": "STRING", "CHAR": "STRING", "STR": "STRING", "BOOL": "BOOLEAN"}
_TYPE_MEANT |= {"INTERVAL": "DURATION", "TIMEDELTA": "DURATION"}
_TYPE_MEANT |= {"DATE": "TIMESTAMP", "DATETIME": "TIMESTAMP", "TIME": "TIMESTAMP"}

# ------------------------------------------------------------------------------------------ RETURN, GROUP-BY


def parse_items(cursor: Cursor) -> tuple[ReturnItem, ...]:
    """Read the result columns of RETURN; raises UnreadableError with the message recorded."""
    if cursor.at("*"):
        hint = "name the columns, for instance RETURN COUNT(*), SUM(T.duration)"
        raise cursor.fail("RETURN needs named result columns", cursor.peek().span, hint)
    before = len(cursor.reports.errors)
    items = _items(cursor)
    if len(cursor.reports.errors) > before or not items:
        raise UnreadableError
    follows = cursor.at_kind(Kind.WORD, Kind.NAME) and not (cursor.clause() or cursor.ends_statement())
    if follows and (cursor.at(",", offset=1) or cursor.clause(1)):
        hint = f"write AS {cursor.peek().value} to name the column"
        raise cursor.expected(["','", "AS", "PATTERN"], hint, after=items[-1].span)
    return tuple(items)


def _items(cursor: Cursor) -> list[ReturnItem]:
    """The items that can be read; after a wrong one, reading goes on behind the next comma."""
    items: list[ReturnItem] = []
    while True:
        try:
            if items and cursor.clause() is not None:
                raise cursor.expected(["a result column"], "remove the comma")
            items.append(_item(cursor, 1 + sum(item.place > 0 for item in items)))
        except UnreadableError:
            open_parentheses = 0
            while not (cursor.clause() or cursor.ends_statement() or (cursor.at(",") and open_parentheses <= 0)):
                open_parentheses += cursor.at("(") - cursor.at(")")
                cursor.index += 1
        if not cursor.take(","):
            return items


def _item(cursor: Cursor, place: int) -> ReturnItem:
    start = cursor.peek().span
    value, log2 = as_item(parse_result(cursor))
    alias = None
    if cursor.take_word("AS"):
        if not _at_alias(cursor):
            raise cursor.expected(["a name"], "AS gives the column a name, as in COUNT(*) AS trips")
        alias = cursor.advance().value
    lone = isinstance(value, (Attribute, Taken, Aggregate))
    return ReturnItem(value, log2, alias, 0 if lone else place, span=cursor.since(start))


def _at_alias(cursor: Cursor) -> bool:
    """Whether a column name follows; PATTERN is one only where another PATTERN, or a comma, follows it."""
    if cursor.clause() is not None and not (cursor.at(",", offset=1) or cursor.clause(1)):
        return False
    return cursor.at_kind(Kind.WORD) or (cursor.at_kind(Kind.NAME) and cursor.peek().value != "")


def parse_groups(cursor: Cursor) -> tuple[Group, ...]:
    """Read what GROUP-BY names; raises UnreadableError with the message recorded."""
    found: list[Group] = []
    while True:
        found.append(parse_group(cursor))
        if not cursor.take(","):
            return tuple(found)


# ------------------------------------------------------------------------------------------------ semantics

_SEMANTICS = {each.name: each for each in Semantics} | {each.value.upper(): each for each in Semantics}
_SEMANTICS_USAGE = "the semantics are skip-till-any-match, skip-till-next-match and contiguous"


def parse_semantics(cursor: Cursor) -> Semantics:
    """Read the name behind SEMANTICS; raises UnreadableError with the message recorded."""
    start = cursor.peek()
    if start.kind is not Kind.WORD or cursor.clause() is not None:
        raise cursor.expected(["a semantics"], _SEMANTICS_USAGE)
    words = [cursor.advance().value]
    while cursor.at("-") and cursor.at_kind(Kind.WORD, offset=1):
        cursor.advance()
        words.append(cursor.advance().value)
    name = "-".join(words)
    found = _SEMANTICS.get(name.upper().replace("_", "-"))
    if found is None:
        meant = near_miss(name, [each.value for each in Semantics])
        hint = f"did you mean {meant}?" if meant is not None else _SEMANTICS_USAGE
        raise cursor.fail(f"there is no semantics '{name}'", cursor.since(start.span), hint)
    return found


# --------------------------------------------------------------------------------------------- declarations


def parse_declaration(cursor: Cursor) -> EventDeclaration | None:
    """Read one EVENT declaration with its ``;``; None where it has an error, which is recorded."""
    before = len(cursor.reports.errors)
    start = cursor.advance().span
    usage = "a declaration is written EVENT Request(driver INT, district STRING);"
    attributes: list[DeclaredAttribute] = []
    name = ""
    try:
        if not cursor.at_kind(Kind.WORD, Kind.NAME):
            raise cursor.expected(["the name of an event type"], usage)
        name = cursor.take_name()
        if not cursor.take("("):
            raise cursor.expected(["'('"], usage, after=cursor.since(start))
        while True:
            attributes.append(_declared(cursor))
            if not cursor.take(","):
                break
        last = attributes[-1].span
        if not cursor.take(")"):
            raise cursor.expected(["')'", "','"], usage, after=last)
        if not cursor.at(";"):
            raise cursor.expected(["';'"], "a declaration ends with ';'", after=cursor.since(start))
        span = cursor.since(start)
        cursor.advance()
    except UnreadableError:
        while not cursor.ends_statement():
            cursor.index += 1
        cursor.take(";")
        return None
    return EventDeclaration(name, tuple(attributes), span=span) if len(cursor.reports.errors) == before else None


def _declared(cursor: Cursor) -> DeclaredAttribute:
    token = cursor.peek()
    if not cursor.at_kind(Kind.WORD, Kind.NAME):
        raise cursor.expected(["an attribute"], "attributes are written driver INT, district STRING")
    name = cursor.take_name()
    if cursor.at(":"):
        colon = cursor.advance()
        cursor.report(f"expected a type after '{name}'", colon.span, f"write {name} {cursor.peek().value}, without ':'")
    typed = cursor.peek()
    types = one_of([each.value for each in AttributeType])
    word = typed.value.upper()
    if typed.kind is not Kind.WORD:
        raise cursor.expected([types], f"give the attribute a type, as in {name} INT", after=token.span)
    if word not in AttributeType.__members__:
        meant = _TYPE_MEANT.get(word) or cursor.near(AttributeType.__members__.keys())
        hint = f"write {name} {meant}" if meant else f"the types are {types}"
        cursor.report(f"'{typed.value}' is no type", typed.span, hint)
        word = meant or "INT"
    cursor.advance()
    return DeclaredAttribute(name, AttributeType[word], span=cursor.since(token.span))
