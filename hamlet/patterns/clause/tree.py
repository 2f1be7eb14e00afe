"""What a MATCH_RECOGNIZE clause says: the row pattern as a tree, and the sections of the clause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Union

from hamlet.errors import Span

Rows = Literal["one", "show", "omit", "unmatched"]
Skip = Literal["past", "next", "first", "last"]


@dataclass(frozen=True)
class Variable:
    """A row labelled by a variable; `name` is folded, as names are compared."""

    name: str


@dataclass(frozen=True)
class Anchor:
    """``^`` (the first row of the partition is next) or ``$`` (no row is next)."""

    at_start: bool


@dataclass(frozen=True)
class Concatenation:
    """One part behind the other; no part is the empty pattern."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Alternation:
    """One of several, the first preferred."""

    choices: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Quantified:
    """`body` from `low` to `high` times, any number of times where `high` is None."""

    body: RowPattern
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True)
class Permutation:
    """The alternation of all orders of the parts, lexicographic in the order written."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True)
class Exclusion:
    """Rows that match, and that ALL ROWS PER MATCH leaves out."""

    body: RowPattern


RowPattern = Union[Variable, Anchor, Concatenation, Alternation, Quantified, Permutation, Exclusion]


def children(node: RowPattern) -> tuple[RowPattern, ...]:
    """The patterns that a pattern consists of."""
    if isinstance(node, (Concatenation, Permutation)):
        return node.parts
    if isinstance(node, Alternation):
        return node.choices
    return (node.body,) if isinstance(node, (Quantified, Exclusion)) else ()


def nodes(node: RowPattern) -> Iterator[RowPattern]:
    """A pattern and all that is in it, from the left."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(children(each))


@dataclass(frozen=True)
class Expression:
    """Text of the statement, read later; `span` is where it stands."""

    text: str
    span: Span


@dataclass(frozen=True)
class Ordering:
    """An item of ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Named:
    """A measure (``expression AS name``), or a definition (``name AS expression``)."""

    name: str
    expression: Expression
    span: Span  # of the name


@dataclass(frozen=True)
class Clause:
    """One MATCH_RECOGNIZE clause.

    Attributes
    ----------
    span : Span
        From the keyword to the closing parenthesis.
    source : Span
        The table that the clause reads, as it is written before the keyword.
    partition : tuple of Expression
    order : tuple of Ordering
    measures : tuple of Named
    rows : {'one', 'show', 'omit', 'unmatched'}
    skip : {'past', 'next', 'first', 'last'}
    skip_to : str or None
        The folded variable of the skip.
    pattern : RowPattern
    variables : dict of str to str
        The variables of the pattern as first written, by their folded names, in the order of the pattern.
    within : Expression or None
    subsets : dict of str to (str, tuple of str)
        By folded name: the name as written, and the folded members.
    definitions : dict of str to Named
        By folded variable.
    """

    span: Span
    source: Span
    partition: tuple[Expression, ...]
    order: tuple[Ordering, ...]
    measures: tuple[Named, ...]
    rows: Rows
    skip: Skip
    skip_to: str | None
    pattern: RowPattern
    variables: dict[str, str]
    within: Expression | None
    subsets: dict[str, tuple[str, tuple[str, ...]]]
    definitions: dict[str, Named]
    pattern_span: Span = field(default=Span(0, 0))

    def members(self, name: str | None) -> tuple[str, ...]:
        """The folded variables that a folded name stands for; all of them for None."""
        if name is None:
            return tuple(self.variables)
        return self.subsets[name][1] if name in self.subsets else (name,)
