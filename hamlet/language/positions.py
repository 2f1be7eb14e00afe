"""Glushkov's position automaton of a pattern, with the guards that each gap spells.

The pattern is unrolled to *positions* (occurrences of atoms). The first, follow and last relations say which position
may stand next to which, and each such link carries the set of guards of the gap: ``NOT N`` is an empty word that leaves
a mark. Sets of positions are bits of Python integers, so that the union of many costs little.

Source: Glushkov 1961; Brueggemann-Klein 1993.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from hamlet.language.query import Alternation, Atom, Conjunction, Negation, Pattern, Repetition, Sequence

Guards = frozenset[int]
Marked = dict[Guards, int]  # the guards of a gap -> the positions on its one side, as bits
NO_GUARDS: Guards = frozenset()

MAX_POSITIONS = 2_000
MAX_MARKS = 1_000
MAX_LINKS = 1_000_000


class PatternTooLarge(Exception):
    """The automaton of a pattern passes a limit; the message names it."""


def bits(positions: int) -> Iterator[int]:
    """The positions of a set, in ascending order."""
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


@dataclass
class Fragment:
    """What may begin, end and empty-spell a part of the pattern; every link with the guards that it carries."""

    first: Marked = field(default_factory=dict)
    last: Marked = field(default_factory=dict)
    empty: set[Guards] = field(default_factory=set)  # the marks with which the empty word can be spelled


class Positions:
    """The position automaton of a pattern; `build` fills it.

    Attributes
    ----------
    atoms : list of Atom
        The atom of each position.
    follow : list of Marked
        The positions that may come next, by the guards of the gap.
    guards : dict of Pattern to int
        Negated patterns and their numbers; equal ones are one.
    negations : list of Negation
        Where each was found first.
    """

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.follow: list[Marked] = []
        self.guards: dict[Pattern, int] = {}
        self.negations: list[Negation] = []
        self._links = 0

    def build(self, pattern: Pattern) -> Fragment:
        """Add the positions of a part.

        Raises
        ------
        PatternTooLarge
            More positions, links, or sets of guards than the limits of this module.
        """
        match pattern:
            case Atom():
                return self._atom(pattern)
            case Negation():
                guard = self.guards.setdefault(pattern.body, len(self.guards))
                if guard == len(self.negations):
                    self.negations.append(pattern)
                return Fragment(empty={frozenset({guard})})
            case Sequence(parts=parts):
                return self._sequence(self.build(part) for part in parts)
            case Alternation(branches=branches):
                return self._union(self.build(branch) for branch in branches)
            case Repetition():
                return self._repetition(pattern)
            case Conjunction():
                raise TypeError("a conjunction has one template per operand")

    def _atom(self, atom: Atom) -> Fragment:
        position = len(self.atoms)
        if position >= MAX_POSITIONS:
            raise PatternTooLarge(f"the pattern unrolls to more than {MAX_POSITIONS:,} events")
        self.atoms.append(atom)
        self.follow.append({})
        return Fragment({NO_GUARDS: 1 << position}, {NO_GUARDS: 1 << position})

    def _link(self, last: Marked, first: Marked) -> None:
        for before, positions in last.items():
            for position in bits(positions):
                follow = self.follow[position]
                for after, targets in first.items():
                    guards = before | after
                    follow[guards] = follow.get(guards, 0) | targets
                self._links += len(first)
                if self._links > MAX_LINKS:
                    raise PatternTooLarge(f"the pattern unrolls to more than {MAX_LINKS:,} links between events")

    def _sequence(self, parts: Iterable[Fragment]) -> Fragment:
        whole = Fragment(empty={NO_GUARDS})
        for part in parts:
            self._link(whole.last, part.first)
            _join(whole.first, part.first, whole.empty)
            whole.last = _join(dict(part.last), whole.last, part.empty)
            whole.empty = {left | right for left in whole.empty for right in part.empty}
            _check_marks(whole.empty)
        return whole

    @staticmethod
    def _union(parts: Iterable[Fragment]) -> Fragment:
        whole = Fragment()
        for part in parts:
            _join(whole.first, part.first, {NO_GUARDS})
            _join(whole.last, part.last, {NO_GUARDS})
            whole.empty |= part.empty
        return whole

    def _repetition(self, repetition: Repetition) -> Fragment:
        body, low, high = repetition.body, repetition.low, repetition.high
        if high is None:
            required = [self.build(body) for _ in range(max(low, 1) - 1)]
            return self._sequence([*required, self._optional(self._loop(self.build(body)), low == 0)])
        # x{n,m} is n times x and then (x(x(...)?)?)?, so that the tail's links stay linear
        tail = Fragment(empty={NO_GUARDS})
        required = [self.build(body) for _ in range(low)]
        for part in [self.build(body) for _ in range(high - low)]:
            tail = self._optional(self._sequence([part, tail]), True)
        return self._sequence([*required, tail])

    @staticmethod
    def _optional(part: Fragment, optional: bool) -> Fragment:
        return Fragment(part.first, part.last, part.empty | {NO_GUARDS}) if optional else part

    def _loop(self, body: Fragment) -> Fragment:
        marks: set[Guards] = {NO_GUARDS}  # what empty rounds may add between two real ones, or at the ends
        for mark in body.empty:
            marks |= {mark | other for other in marks}
            _check_marks(marks)
        whole = Fragment(
            _join({}, body.first, marks),
            _join({}, body.last, marks),
            {mark for mark in marks if mark or NO_GUARDS in body.empty},
        )
        self._link(whole.last, body.first)
        return whole


def _join(target: Marked, more: Marked, marks: Iterable[Guards]) -> Marked:
    """Add links whose gaps also spell one of some marks; returns the target."""
    for mark in marks:
        for guards, positions in more.items():
            target[mark | guards] = target.get(mark | guards, 0) | positions
    _check_marks(target)
    return target


def _check_marks(marks: Collection[Guards]) -> None:
    if len(marks) > MAX_MARKS:
        raise PatternTooLarge(
            f"the pattern's parts with NOT that may be left out give one gap more than {MAX_MARKS:,} sets of guards"
        )
