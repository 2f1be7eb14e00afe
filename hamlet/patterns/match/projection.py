"""Statements around one clause that take its columns as they are: their rows need no host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_PARTS = {"expressions", "from", "from_", "kind"}  # of such a SELECT


def projection(statement: str, columns: Sequence[str]) -> list[tuple[str, int]] | None:
    """The names of a statement's columns and their places among those of the table that it reads.

    Gives None where it computes, filters or orders anything, or reads more than one table.
    """
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(statement, dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Select) or _given(tree) - _PARTS:
        return None
    tables = list(tree.find_all(exp.From))
    if len(tables) != 1 or not _is_plain(tables[0].this):
        return None
    places = {name.lower(): place for place, name in enumerate(columns)}
    found: list[tuple[str, int]] = []
    for each in tree.expressions:
        star = each.this if isinstance(each, exp.Column) else each
        if isinstance(star, exp.Star):
            if _given(star):
                return None
            found += [(name, place) for place, name in enumerate(columns)]
            continue
        column = each.this if isinstance(each, exp.Alias) else each
        if not isinstance(column, exp.Column) or column.name.lower() not in places or len(column.parts) > 2:
            return None
        place = places[column.name.lower()]
        found.append((each.alias or columns[place], place))
    return found if len({name.lower() for name, _ in found}) == len(found) else None


def _is_plain(table: Any) -> bool:
    """Whether a table stands there, with no other names for its columns."""
    from sqlglot import exp

    if not isinstance(table, exp.Table) or _given(table) - {"this", "alias"}:
        return False
    alias = table.args.get("alias")
    return isinstance(table.this, exp.Identifier) and (alias is None or not alias.args.get("columns"))


def _given(node: Any) -> set[str]:
    """The parts that a node has."""
    return {name for name, each in node.args.items() if each}
