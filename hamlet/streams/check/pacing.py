"""When a clause is evaluated: pacing formulas, what two of them share, and whether one implies another.

`Paced` is a pacing, or None where nothing says when (a constant can be read at any time), or `SOME_PERIOD` where only
a frequency is missing.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm
from typing import Final, TypeAlias

from hamlet.frontend.reports import Reports
from hamlet.frontend.units import LONGEST, UNITS, frequency_text, seconds_of
from hamlet.streams.check.declarations import Declared, Table
from hamlet.streams.program.ir import ANY_EVENT, EventPacing, Pacing, PeriodicPacing
from hamlet.streams.syntax import tree as s

SOME_PERIOD: Final = PeriodicPacing(Fraction(0))
Paced: TypeAlias = Pacing | None
MOST_TERMS = 4096  # of a formula in normal form


class MixedError(Exception):
    """Two pacings have no common one: event-driven and periodic, or periods with different beginnings."""


class TooComplexError(Exception):
    """A formula has too many terms."""


def minimal(terms: set[int]) -> tuple[int, ...]:
    """A disjunction without the terms that contain another, sorted."""
    if len(terms) > 1:
        kept: list[int] = []
        for term in sorted(terms, key=int.bit_count):
            if not any(other & term == other for other in kept):
                kept.append(term)
        return tuple(sorted(kept))
    return tuple(terms)


def both(one: Paced, other: Paced) -> Paced:
    """When both are evaluated together; raises `MixedError` where that is never."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, EventPacing) and isinstance(other, EventPacing):
        if one == other:
            return one
        if len(one.terms) * len(other.terms) > MOST_TERMS:
            raise TooComplexError
        return EventPacing(minimal({first | second for first in one.terms for second in other.terms}))
    if isinstance(one, EventPacing) or isinstance(other, EventPacing):
        raise MixedError
    if one == SOME_PERIOD or other == SOME_PERIOD:
        return other if one == SOME_PERIOD else one
    if one.local != other.local:
        raise MixedError
    first, second = one.period, other.period
    period = Fraction(lcm(first.numerator, second.numerator), gcd(first.denominator, second.denominator))
    return PeriodicPacing(period, one.local)


def either(one: EventPacing, other: EventPacing) -> EventPacing:
    """When one of two is evaluated."""
    if len(one.terms) + len(other.terms) > MOST_TERMS:
        raise TooComplexError
    return EventPacing(minimal({*one.terms, *other.terms}))


def implies(one: Paced, other: Paced) -> bool:
    """Whether `other` is evaluated whenever `one` is."""
    if other is None:
        return True
    if one is None:
        return False
    if isinstance(one, EventPacing) or isinstance(other, EventPacing):
        if not (isinstance(one, EventPacing) and isinstance(other, EventPacing)):
            return False
        return one == other or all(other.holds(term) for term in one.terms)
    if other == SOME_PERIOD:
        return True
    if one == SOME_PERIOD or one.local != other.local:
        return False
    return (one.period / other.period).denominator == 1


def pace_text(pacing: Paced, table: Table) -> str:
    """A pacing as it is written: ``@(a && b)``, ``@2Hz``, ``@Local(10s)``."""
    if pacing is None:
        return "no pacing"
    if pacing == SOME_PERIOD:
        return "some frequency"
    if isinstance(pacing, PeriodicPacing):
        text = frequency_text(pacing.period)
        return f"@Local({text})" if pacing.local else f"@{text}"
    if pacing == ANY_EVENT:
        return "@true"
    shown = []
    for term in pacing.inputs()[:4]:
        names = [table.streams[place].name for place in term[:6]] + ["..."] * (len(term) > 6)
        shown.append(" && ".join(names))
    shown += ["..."] * (len(pacing.terms) > 4)
    if len(shown) == 1:
        return f"@{shown[0]}" if "&" not in shown[0] else f"@({shown[0]})"
    return f"@({' || '.join(f'({text})' if '&' in text else text for text in shown)})"


class Paces:
    """Reads what is written behind ``@``.

    Parameters
    ----------
    table : Table
        All names; inputs have the first numbers.
    reports : Reports
        Receives the mistakes.
    known : dict of int to Pacing or None
        The pacing of streams that is known so far, by number; grows outside.
    """

    def __init__(self, table: Table, reports: Reports, known: dict[int, Paced]) -> None:
        self.table = table
        self.reports = reports
        self.known = known

    def named(self, pace: s.Pace) -> list[int]:
        """The outputs whose pacing a formula uses."""
        found, waiting = [], [pace.formula]
        while waiting:
            each = waiting.pop()
            waiting += s.parts(each)
            stream = self.table.names.get(each.name) if isinstance(each, s.Name) else None
            if stream is not None and stream.output is not None:
                found.append(stream.id)
        return found

    def read(self, pace: s.Pace, word: str, stream: Declared) -> Paced:
        """The pacing of a clause (`word` is its keyword); None after a mistake."""
        formula = pace.formula
        if isinstance(formula, s.Number):
            return self._periodic(formula, pace, word, stream)
        if pace.scope:
            hint = f"write @{pace.scope}(1Hz), or leave {pace.scope} out"
            self.reports.error(f"{pace.scope} is for frequencies", pace.span, hint)
            return None
        try:
            return self._formula(formula)
        except TooComplexError:
            self.reports.error("this pacing is too complex", pace.span, "give a part of it an output of its own")
            return None

    def _periodic(self, number: s.Number, pace: s.Pace, word: str, stream: Declared) -> Paced:
        period = seconds_of(number.value, number.unit)
        if period is None or not number.unit:
            hint = f"write @1Hz or @10s; units are {', '.join(UNITS)}"
            what = f"'{number.unit}' is no unit of time" if number.unit else "a frequency needs its unit"
            self.reports.error(what if number.value else "a frequency is positive", number.span, hint)
            return None
        if period <= 0:
            self.reports.error("a frequency is positive", number.span, "write @1Hz or @10s")
            return None
        if not Fraction(1, 10**9) <= period <= LONGEST:
            self.reports.error("this period is too long or too short", number.span, "from 1ns to 292 years")
            return None
        if pace.scope == "Local" and not stream.spawned:
            hint = "there is no spawn that it could count from; leave Local out"
            self.reports.error("@Local needs a spawned stream", pace.span, hint)
            return None
        if pace.scope == "Local" and word == "spawn":
            self.reports.error("a spawn is never Local", pace.span, "it counts from the start; leave Local out")
            return None
        local = pace.scope == "Local" or (not pace.scope and word == "eval" and stream.spawned)
        return PeriodicPacing(period, local)

    def _formula(self, formula: s.Expression) -> Paced:
        match formula:
            case s.Binary(operator=operator, left=left, right=right):
                one, other = self._formula(left), self._formula(right)
                if not (isinstance(one, EventPacing) and isinstance(other, EventPacing)):
                    return None
                return both(one, other) if operator == "&&" else either(one, other)
            case s.Boolean(value=True):
                return ANY_EVENT
            case s.Name(name=name):
                return self._name(name, formula)
        hint = "pacing is @1Hz, @10s, @a, @(a && b), @(a || b) or @true"
        self.reports.error("this is no pacing", formula.span, hint)
        return None

    def _name(self, name: str, formula: s.Name) -> Paced:
        stream = self.table.names.get(name)
        if stream is None:
            if name in self.table.constants:
                self.reports.error(f"{name} is a constant, not a stream", formula.span, "pacing names inputs")
            else:
                self.reports.error(f"there is no stream '{name}'", formula.span, self.table.near(name))
            return None
        if stream.output is None:
            return EventPacing((1 << stream.id,))
        pacing = self.known.get(stream.id)
        if isinstance(pacing, PeriodicPacing):
            hint = f"write the frequency itself: {pace_text(pacing, self.table)}"
            self.reports.error(f"{name} is periodic, and formulas are over events", formula.span, hint)
            return None
        return pacing
