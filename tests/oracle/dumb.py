"""A second brute force, dumber than the oracle: all subsets of events times variables, and Python's `re`.

Nothing of the oracle is used. A pattern becomes a regular expression over one letter per variable and one per guard;
a trend's guards are found by trying to put guard letters into every gap of its word until the expression matches.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hamlet.language.query import Alternation, Atom, Negation, Pattern, Repetition, atoms
from hamlet.language.query import Sequence as SequenceNode

Pairs = tuple[tuple[int, str], ...]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class Encoded:
    """A pattern as a regular expression."""

    letters: dict[str, str] = field(default_factory=dict)  # variable -> letter
    guards: dict[Pattern, str] = field(default_factory=dict)  # negated pattern -> capital letter

    def expression(self, pattern: Pattern) -> str:
        match pattern:
            case Atom(variable=variable):
                return self.letters.setdefault(variable, LETTERS[len(self.letters)])
            case Negation(body=body):
                return self.guards.setdefault(body, LETTERS[len(self.guards)].upper())
            case SequenceNode(parts=parts):
                return "".join(f"(?:{self.expression(part)})" for part in parts)
            case Alternation(branches=branches):
                return "|".join(f"(?:{self.expression(branch)})" for branch in branches)
            case Repetition(body=body, low=low, high=high):
                return f"(?:{self.expression(body)}){{{low},{'' if high is None else high}}}"
        raise TypeError(pattern)


def dumb_trends(pattern: Pattern, types: Sequence[str | None], times: Sequence[int]) -> set[Pairs] | None:
    """The trends of a pattern in one window, without predicates and keys; None where its guards are ambiguous.

    Parameters
    ----------
    pattern : Pattern
        Without AND.
    types, times : sequence
        Type and time of every event, in order of time.
    """
    encoded = Encoded()
    expression = re.compile(encoded.expression(pattern))
    found = set()
    placed_guards = functools.cache(functools.partial(placements, expression, "".join(encoded.guards.values())))
    for pairs in sequences(pattern, encoded, types, times):
        placed = placed_guards("".join(encoded.letters[name] for _, name in pairs))
        if len(placed) > 1:
            return None
        moments = [-(10**9), *(times[index] for index, _ in pairs), 10**9]
        for gaps in placed:
            broken = any(
                matches_between(body, types, times, moments[gap], moments[gap + 1])
                for body, letter in encoded.guards.items()
                for gap, guards in enumerate(gaps)
                if letter in guards
            )
            if not broken:
                found.add(pairs)
    return found


def sequences(pattern: Pattern, encoded: Encoded, types: Sequence[str | None], times: Sequence[int]) -> Iterator[Pairs]:
    """All sequences of (event, variable) with strictly rising times; their words may be none of the pattern."""
    bound = {(atom.type, atom.variable) for atom in atoms(pattern) if atom.variable in encoded.letters}
    for size in range(1, len(types) + 1):
        for indices in itertools.combinations(range(len(types)), size):
            if any(times[i] >= times[j] for i, j in itertools.pairwise(indices)):
                continue
            choices = [sorted(name for type_, name in bound if type_ == types[i]) for i in indices]
            for names in itertools.product(*choices):
                yield tuple(zip(indices, names, strict=True))


def placements(expression: re.Pattern[str], guards: str, word: str) -> set[tuple[frozenset[str], ...]]:
    """All ways to put guards into the gaps of a word (at most two letters each) so that the expression matches."""
    fillings = ["".join(some) for size in range(3) for some in itertools.product(guards, repeat=size)]
    placed = set()
    for gaps in itertools.product(fillings, repeat=len(word) + 1):
        text = gaps[0] + "".join(letter + gap for letter, gap in zip(word, gaps[1:], strict=True))
        if expression.fullmatch(text):
            placed.add(tuple(frozenset(gap) for gap in gaps))
    return placed


def matches_between(body: Pattern, types: Sequence[str | None], times: Sequence[int], after: int, before: int) -> bool:
    """Whether a negated pattern matches strictly between two times."""
    inside = [index for index, time in enumerate(times) if after < time < before]
    return bool(dumb_trends(body, [types[index] for index in inside], [times[index] for index in inside]))
