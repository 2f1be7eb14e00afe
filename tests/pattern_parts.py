"""Parts of patterns that random conditions speak of: variables, negated patterns, and who may be neighbours."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from hamlet.language.query import Atom, Conjunction, Negation, Pattern, children
from hamlet.oracle.words import begins


def variables(pattern: Pattern) -> set[str]:
    """The variables outside NOT."""
    if isinstance(pattern, Negation):
        return set()
    own = {pattern.variable} if isinstance(pattern, Atom) else set()
    return own.union(*(variables(part) for part in children(pattern)))


def negated(pattern: Pattern) -> Iterator[Pattern]:
    """The patterns that stand in NOT."""
    if isinstance(pattern, Negation):
        yield pattern.body
    for part in children(pattern):
        yield from negated(part)


@functools.cache
def neighbours(pattern: Pattern) -> frozenset[tuple[str, str]]:
    """Pairs of variables that stand side by side among the first four of some word."""
    found: set[tuple[str, str]] = set()
    for part in pattern.operands if isinstance(pattern, Conjunction) else (pattern,):
        heads: list[tuple[str, ...]] = [()]
        for _ in range(4):
            heads = [(*head, name) for head in heads for name in variables(part) if begins(part, (*head, name))]
            found.update(pair for head in heads for pair in itertools.pairwise(head))
    return frozenset(found)
