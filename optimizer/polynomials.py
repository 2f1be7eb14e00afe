"""Integer arithmetic brought to one form: sympy expands polynomials and isolates their real roots.

Only +, - and * over INT fields and INT constants: there the engine is exact. Doubles round, so that not even
``x + 0.1 > 0.3`` and ``x > 0.2`` accept the same events; they are never rearranged. sympy is loaded on first use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from optimizer.condition import Arithmetic, Constant, Field, Negative, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DEGREE = 6
MAX_TERMS = 64
MAX_FIELDS = 4

Monomial = tuple[tuple[Field, int], ...]  # (field, exponent > 0), in the order of the fields' names


@dataclass(frozen=True)
class Polynomial:
    """A polynomial with integer coefficients, its constant term kept apart.

    Attributes
    ----------
    terms : tuple of (Monomial, int)
        Without the constant; primitive (their greatest common divisor is 1), the first coefficient positive.
    scale : int
        What the terms were divided by; negative where the sign was turned, 1 where there are no terms.
    constant : int
        The whole is scale * terms + constant.
    """

    terms: tuple[tuple[Monomial, int], ...]
    scale: int
    constant: int

    @property
    def field(self) -> Field | None:
        """The only field, where there is only one."""
        found = {field for monomial, _ in self.terms for field, _ in monomial}
        return found.pop() if len(found) == 1 else None

    @property
    def is_field(self) -> bool:
        """Whether the terms are nothing but one field."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and [power for _, power in self.terms[0][0]] == [1]

    def at(self, value: int) -> int:
        """The value of the whole where its only field has a value."""
        total = 0
        for monomial, coefficient in self.terms:
            power: int = sum(power for _, power in monomial)
            total += coefficient * int(value**power)
        return self.constant + self.scale * total


def is_polynomial(value: Value) -> bool:
    """Whether a value is integer arithmetic of a size that is worth expanding."""
    found: set[Field] = set()
    size = _size(value, found)
    return size is not None and len(found) <= MAX_FIELDS


def _size(value: Value, found: set[Field]) -> tuple[int, int] | None:
    """(degree, terms) at most; None for what is no integer arithmetic or passes a limit."""
    match value:
        case Field(kind="INT"):
            found.add(value)
            return 1, 1
        case Constant(kind="INT"):
            return 0, 1
        case Negative(operand=operand):
            return _size(operand, found)
        case Arithmetic(operator="+" | "-" | "*" as operator, left=left, right=right):
            one, other = _size(left, found), _size(right, found)
            if one is None or other is None:
                return None
            if operator == "*":
                size = one[0] + other[0], one[1] * other[1]
            else:
                size = max(one[0], other[0]), one[1] + other[1]
            return size if size[0] <= MAX_DEGREE and size[1] <= MAX_TERMS else None
    return None


def difference(left: Value, right: Value) -> Polynomial:
    """left - right of two values that are polynomials, expanded."""
    if isinstance(left, Field) and isinstance(right, Field):  # most often; not worth loading sympy
        return _difference_of_fields(left, right)
    import sympy

    symbols: dict[Field, Any] = {}
    expression = _expression(Arithmetic("-", left, right), symbols)
    if not symbols:
        return Polynomial((), 1, int(expression))
    ordered = sorted(symbols, key=_place)
    expanded = sympy.Poly(expression, *(symbols[field] for field in ordered), domain="ZZ")
    terms: list[tuple[Monomial, int]] = []
    constant = 0
    for powers, coefficient in expanded.terms():
        monomial = tuple((field, power) for field, power in zip(ordered, powers, strict=True) if power)
        if monomial:
            terms.append((monomial, int(coefficient)))
        else:
            constant = int(coefficient)
    if not terms:
        return Polynomial((), 1, constant)
    scale = math.gcd(*(coefficient for _, coefficient in terms)) * (1 if terms[0][1] > 0 else -1)
    return Polynomial(tuple((monomial, coefficient // scale) for monomial, coefficient in terms), scale, constant)


def _place(field: Field) -> tuple[str, bool]:
    return field.name, field.later


def _difference_of_fields(left: Field, right: Field) -> Polynomial:
    if left == right:
        return Polynomial((), 1, 0)
    scale = 1 if _place(left) < _place(right) else -1
    first, second = sorted((left, right), key=_place)
    return Polynomial(((((first, 1),), 1), (((second, 1),), -1)), scale, 0)


def _expression(value: Value, symbols: dict[Field, Any]) -> Any:
    import sympy

    match value:
        case Field():
            return symbols.setdefault(value, sympy.Symbol(f"x{len(symbols)}"))
        case Constant(value=number):
            return sympy.Integer(number)
        case Negative(operand=operand):
            return -_expression(operand, symbols)
        case Arithmetic(operator=operator, left=left, right=right):
            one, other = _expression(left, symbols), _expression(right, symbols)
            return one + other if operator == "+" else one - other if operator == "-" else one * other


@cache
def turning_points(polynomial: Polynomial) -> frozenset[int]:
    """Integers such that the sign is the same at all integers between two neighbouring ones, and beyond the last ones.

    Parameters
    ----------
    polynomial : Polynomial
        Of one field.
    """
    import sympy

    symbol = sympy.Symbol("x")
    powers: Mapping[int, int] = {monomial[0][1]: coefficient for monomial, coefficient in polynomial.terms}
    whole = sympy.Poly(
        polynomial.constant + polynomial.scale * sum(factor * symbol**power for power, factor in powers.items()), symbol
    )
    found: set[int] = set()
    for (low, high), _ in whole.intervals(eps=sympy.Rational(1, 4)):
        found.update(range(math.floor(low), math.ceil(high) + 1))
    return frozenset(found)
