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

    try:
        tree = sqlglot.parse_one(statement, dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    return _chosen(tree, columns)


def is_whole(statement: str, columns: Sequence[str]) -> bool:
    """Whether a statement gives the rows of a table as they are."""
    return projection(statement, columns) == list(zip(columns, range(len(columns)), strict=True))


def _chosen(tree: Any, columns: Sequence[str]) -> list[tuple[str, int]] | None:
    """What `projection` gives, of a tree."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or _given(tree) - _PARTS:
        return None
    source = tree.find(exp.From)
    inner: list[tuple[str, int]] | None = list(zip(columns, range(len(columns)), strict=True))
    if source is not None and isinstance(source.this, exp.Subquery):
        inner = _chosen(source.this.this, columns)
    if source is None or inner is None or not _is_plain(source.this):
        return None
    places = {name.lower(): place for place, (name, _) in enumerate(inner)}
    found: list[tuple[str, int]] = []
    for each in tree.expressions:
        star = each.this if isinstance(each, exp.Column) else each
        if isinstance(star, exp.Star):
            if _given(star):
                return None
            found += inner
            continue
        column = each.this if isinstance(each, exp.Alias) else each
        if not isinstance(column, exp.Column) or column.name.lower() not in places or len(column.parts) > 2:
            return None
        name, place = inner[places[column.name.lower()]]
        found.append((each.alias or name, place))
    return found if len({name.lower() for name, _ in found}) == len(found) else None


def _is_plain(table: Any) -> bool:
    """Whether a table or a subquery stands there, with no other names for its columns."""
    from sqlglot import exp

    if not isinstance(table, (exp.Table, exp.Subquery)) or _given(table) - {"this", "alias", "db", "catalog"}:
        return False
    alias = table.args.get("alias")
    return isinstance(table.this, (exp.Identifier, exp.Select)) and (alias is None or not alias.args.get("columns"))


def _given(node: Any) -> set[str]:
    """The parts that a node has."""
    return {name for name, each in node.args.items() if each}
