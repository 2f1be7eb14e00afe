"""Regular expressions over time, the bodies of MATCHP and MATCHF: their letters are formulas.

An expression matches from a time-point j to one i >= j. ``.`` matches from each time-point to the next; ``f?`` stays
where it is and asks whether f holds there; a bare f is one step with that question behind it (MATCHP) or before it
(MATCHF).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from hamlet.policies.syntax.formula import Formula


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``.``: one step."""


@dataclass(frozen=True, slots=True)
class Step:
    """``f``: one step, and f holds at its end (MATCHP) or at its beginning (MATCHF)."""

    formula: Formula


@dataclass(frozen=True, slots=True)
class Test:
    """``f?``: no step; f holds here."""

    __test__ = False  # pytest: not a class of tests

    formula: Formula


@dataclass(frozen=True, slots=True)
class Concatenation:
    """``left right``."""

    left: Regex
    right: Regex


@dataclass(frozen=True, slots=True)
class Alternation:
    """``left + right``."""

    left: Regex
    right: Regex


@dataclass(frozen=True, slots=True)
class Star:
    """``body*``: any number of times, also none."""

    body: Regex


Regex = Union[Wildcard, Step, Test, Concatenation, Alternation, Star]


def formulas(regex: Regex) -> tuple[Formula, ...]:
    """The formulas in an expression, from left to right."""
    match regex:
        case Step(formula) | Test(formula):
            return (formula,)
        case Concatenation(left, right) | Alternation(left, right):
            return (*formulas(left), *formulas(right))
        case Star(body):
            return formulas(body)
    return ()


def mapped(regex: Regex, function: Callable[[Formula], Formula]) -> Regex:
    """The expression with what a function makes of each formula."""
    match regex:
        case Step(formula) | Test(formula):
            return dataclasses.replace(regex, formula=function(formula))
        case Concatenation(left, right) | Alternation(left, right):
            return type(regex)(mapped(left, function), mapped(right, function))
        case Star(body):
            return Star(mapped(body, function))
    return regex
