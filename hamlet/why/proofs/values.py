"""Values that a variable has in a claim: one value, or all but some.

Where nothing tells values apart, one claim speaks of all of them: ``Others({1, 2})`` stands for every value but 1 and
2, and of two claims about 1 and 2 and one about the others together follows what a quantifier asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hamlet.errors import DataError
from hamlet.policies.analysis.comparisons import COMPARE, compile_pattern
from hamlet.policies.analysis.terms import compiled
from hamlet.policies.syntax import formula as mfotl
from hamlet.why.proofs.points import typed


class Others:
    """Every value but some."""

    __slots__ = ("known", "values")

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values = tuple(values)
        self.known = frozenset(typed([each]) for each in self.values)

    def has(self, value: Any) -> bool:
        """Whether a value is one of the others."""
        return typed([value]) not in self.known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Others) and self.known == other.known

    def __hash__(self) -> int:
        return hash(self.known)


Valuation = Mapping[str, Any]  # by name a value, or Others


@dataclass(frozen=True, slots=True)
class Unknown:
    """The value of a term that has none: of a variable with many values."""


UNKNOWN = Unknown()


def key_of(valuation: Valuation) -> tuple[Any, ...]:
    """A valuation as a key that tells 4 from 4.0."""
    return tuple((name, each if isinstance(each, Others) else typed([each])) for name, each in valuation.items())


def value_of(term: mfotl.Term, valuation: Valuation) -> Any:
    """The value of a term; Others of a variable that has many; UNKNOWN where it has none."""
    match term:
        case mfotl.Constant(value):
            return value
        case mfotl.Variable(name):
            return valuation.get(name, UNKNOWN)
    if any(isinstance(valuation.get(name, UNKNOWN), Others | Unknown) for name in mfotl.term_variables(term)):
        return UNKNOWN
    try:
        return compiled(term)(dict(valuation))
    except DataError:
        return UNKNOWN


def test(formula: mfotl.Comparison | mfotl.Substring | mfotl.Matches, valuation: Valuation) -> bool | None:
    """Whether a comparison holds, None where the values do not tell."""
    match formula:
        case mfotl.Matches(term, pattern):
            text = value_of(term, valuation)
            return None if _many(text) else compile_pattern(pattern).found(str(text))
        case mfotl.Substring(left, right):
            one, two = value_of(left, valuation), value_of(right, valuation)
            return None if _many(one) or _many(two) else one in two
        case mfotl.Comparison(operator, left, right):
            one, two = value_of(left, valuation), value_of(right, valuation)
            if not (_many(one) or _many(two)):
                return COMPARE[operator](one, two)
            if operator == "=":
                for many, single in ((one, two), (two, one)):
                    if isinstance(many, Others) and not _many(single) and not many.has(single):
                        return False
    return None


def _many(value: Any) -> bool:
    return isinstance(value, Others | Unknown)


def pattern_of(arguments: Iterable[mfotl.Term], valuation: Valuation) -> list[Any]:
    """What the values of a tuple must be: a value, Others, UNKNOWN for any, or the name of an anonymous variable."""
    return [
        _Anonymous(each.name)
        if isinstance(each, mfotl.Variable) and mfotl.is_anonymous(each.name)
        else value_of(each, valuation)
        for each in arguments
    ]


@dataclass(frozen=True, slots=True)
class _Anonymous:
    name: str


def fits(pattern: Iterable[Any], row: Iterable[Any]) -> bool | None:
    """Whether a tuple is of the pattern: None where it is for some of the values that the pattern stands for."""
    found: bool | None = True
    named: dict[str, Any] = {}
    for wanted, value in zip(pattern, row, strict=True):
        if isinstance(wanted, _Anonymous):
            if wanted.name != "_" and typed([named.setdefault(wanted.name, value)]) != typed([value]):
                return False
        elif isinstance(wanted, Others):
            if not wanted.has(value):
                return False
            found = None
        elif isinstance(wanted, Unknown):
            found = None
        elif typed([wanted]) != typed([value]):
            return False
    return found
