"""Matches of regular expressions over time, with what they ask for on the way."""

from __future__ import annotations

from collections.abc import Callable

from hamlet.policies.syntax.formula import Formula
from hamlet.policies.syntax.regex import Alternation, Concatenation, Regex, Star, Step, Test

Path = tuple[tuple[Formula, int], ...]  # formulas and the time-points at which they hold


class Walk:
    """Where an expression can lead.

    Parameters
    ----------
    holds : callable
        Whether a formula holds at a time-point.
    past : bool
        Whether a bare formula is asked at the end of its step (MATCHP), not at the beginning.
    last : int
        No step leads behind it.
    open_end : bool
        Whether it stands for all time-points behind what is known, so that a step from there may lead to another.
    """

    def __init__(self, holds: Callable[[Formula, int], bool], past: bool, last: int, open_end: bool = False) -> None:
        self._holds = holds
        self._past = past
        self._last = last
        self._open_end = open_end
        self._known: dict[tuple[int, int], dict[int, Path]] = {}

    def ends(self, regex: Regex, start: int) -> dict[int, Path]:
        """The time-points to which an expression matches from `start`, each with what one match asks for."""
        key = id(regex), start
        if key not in self._known:
            self._known[key] = self._ends(regex, start)
        return self._known[key]

    def _ends(self, regex: Regex, start: int) -> dict[int, Path]:
        match regex:
            case Test(formula):
                return {start: ((formula, start),)} if self._holds(formula, start) else {}
            case Step(formula):
                at = start + 1 if self._past else start
                return {end: ((formula, at),) for end in self._steps(start) if self._holds(formula, at)}
            case Concatenation(left, right):
                found: dict[int, Path] = {}
                for middle, path in self.ends(left, start).items():
                    for end, rest in self.ends(right, middle).items():
                        found.setdefault(end, path + rest)
                return found
            case Alternation(left, right):
                return self.ends(right, start) | self.ends(left, start)
            case Star(body):
                found = {start: ()}
                todo = [start]
                while todo:
                    middle = todo.pop()
                    for end, path in self.ends(body, middle).items():
                        if end not in found:
                            found[end] = found[middle] + path
                            todo.append(end)
                return found
        return dict.fromkeys(self._steps(start), ())

    def _steps(self, start: int) -> tuple[int, ...]:
        """Where a step leads."""
        if start < self._last:
            return (start + 1,)
        return (start,) if self._open_end else ()
