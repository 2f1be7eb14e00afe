"""Patterns as automata over marked words, by derivatives: what may come next, behind which negations, and what then.

A word's gaps carry the negated patterns that stand in them. The derivative of a pattern by a letter (negations of the
gap, variable) is what can still follow (Brzozowski 1964, with the marks of gaps beside the letters).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hamlet.language import query as q

Gap = frozenset[Any]  # the bodies of the NOTs that stand in a gap
Letter = tuple[Gap, str]
_NOTHING = q.Sequence(())
_NO_GAP: Gap = frozenset()


def _then(first: Any, rest: tuple[Any, ...]) -> Any:
    """One pattern and then others, without what is empty."""
    parts = (first.parts if isinstance(first, q.Sequence) else (first,)) + rest
    return parts[0] if len(parts) == 1 else q.Sequence(parts)


@lru_cache(maxsize=4096)
def empty(pattern: Any) -> frozenset[Gap]:
    """The marks with which a pattern spells the empty word; none where it cannot."""
    match pattern:
        case q.Atom():
            return frozenset()
        case q.Negation(body):
            return frozenset([frozenset([body])])
        case q.Alternation(branches):
            return frozenset().union(*map(empty, branches))
        case q.Sequence(parts):
            found = frozenset([_NO_GAP])
            for part in parts:
                found = frozenset(one | two for one in found for two in empty(part))
            return found
        case q.Repetition(body, low, high):
            return frozenset(gap for times, gaps in _skipped(body, low, high) if times >= low for gap in gaps)
    raise ValueError("AND stands at the top of a pattern only")


def _skipped(body: Any, low: int, high: int | None) -> Iterator[tuple[int, frozenset[Gap]]]:
    """How many rounds without an event, and the marks that they leave."""
    marks = frozenset([_NO_GAP])
    own, times, seen = empty(body), 0, set()
    while True:
        yield times, marks
        if times == high or not own or (times >= low and marks in seen):
            return
        seen.add(marks)
        marks = frozenset(one | two for one in marks for two in own)
        times += 1


@lru_cache(maxsize=65536)
def steps(pattern: Any) -> tuple[tuple[Gap, Any, Any], ...]:
    """The next letters of a pattern: marks of the gap, atom, and what can follow then."""
    found: list[tuple[Gap, Any, Any]] = []
    match pattern:
        case q.Atom():
            found.append((_NO_GAP, pattern, _NOTHING))
        case q.Alternation(branches):
            found += [step for branch in branches for step in steps(branch)]
        case q.Sequence(parts):
            marks = frozenset([_NO_GAP])
            for place, part in enumerate(parts):
                rest = parts[place + 1 :]
                found += [
                    (gap | mark, atom, _then(residue, rest)) for gap, atom, residue in steps(part) for mark in marks
                ]
                marks = frozenset(one | two for one in marks for two in empty(part))
        case q.Repetition(body, low, high):
            for times, marks in _skipped(body, low, high):
                if high is not None and times >= high:
                    break
                more = q.Repetition(body, max(low - times - 1, 0), None if high is None else high - times - 1)
                rest = () if more.high == 0 else (more,)
                found += [
                    (gap | mark, atom, _then(residue, rest)) for gap, atom, residue in steps(body) for mark in marks
                ]
    return tuple(dict.fromkeys(found))


class Automaton:
    """What can follow the beginnings of a pattern's words.

    Attributes
    ----------
    types : dict of str to str
        Of the variables.
    moves : list of dict
        For each state by letter (marks of the gap, variable) the next one; state 0 is the start.
    finals : list of frozenset
        For each state the marks behind the last event with which a word may end there; none where it may not.
    kinds : list of int
        Equal for states that the same words can follow.
    """

    def __init__(self, pattern: Any, most: int = 20_000) -> None:
        self.types: dict[str, str] = {}
        self.moves: list[dict[Letter, int]] = []
        self.finals: list[frozenset[Gap]] = []
        numbers = {frozenset([pattern]): 0}
        todo = [frozenset([pattern])]
        while len(self.moves) < len(todo):
            members = todo[len(self.moves)]
            targets: dict[Letter, set[Any]] = {}
            for member in members:
                for gap, atom, residue in steps(member):
                    self.types[atom.variable] = atom.type
                    targets.setdefault((gap, atom.variable), set()).add(residue)
            move: dict[Letter, int] = {}
            for letter, residues in targets.items():
                key = frozenset(residues)
                if key not in numbers:
                    numbers[key] = len(todo)
                    todo.append(key)
                move[letter] = numbers[key]
            self.moves.append(move)
            self.finals.append(frozenset(gap for member in members for gap in empty(member)))
            if len(todo) > most:
                raise ValueError("the pattern has too many states to check")
        self.kinds = self._alike()

    def _alike(self) -> list[int]:
        kinds = [hash(each) for each in self.finals]
        count = 0
        while len(set(kinds)) != count:
            count = len(set(kinds))
            numbers: dict[Any, int] = {}
            kinds = [
                numbers.setdefault(
                    (self.finals[state], frozenset((letter, kinds[target]) for letter, target in move.items())),
                    len(numbers),
                )
                for state, move in enumerate(self.moves)
            ]
        return kinds
