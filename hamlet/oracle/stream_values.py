"""Arithmetic, text and aggregates of stream values, as the brute-force interpreter of specifications needs them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hamlet.streams.program.ir import Scalar, ValueType

_HOLE = re.compile(r"\{\{[^{}]*\}\}")
_LIMITS = {"Int": (-(2**63), 2**63 - 1), "UInt": (0, 2**64 - 1)}


class ArithmeticMistakeError(Exception):
    """A value that has no place in 64 bits, a division by zero, or NaN."""


def checked(value: Any, kind: ValueType) -> Any:
    """The value, if it is one of its type."""
    if isinstance(kind, Scalar) and kind.family in _LIMITS:
        low, high = _LIMITS[kind.family]
        if not low <= value <= high:
            raise ArithmeticMistakeError(f"{value} is no {kind.family}")
    elif isinstance(value, float) and math.isnan(value):
        raise ArithmeticMistakeError("NaN")
    return value


def truncated(numerator: int, denominator: int) -> int:
    """Integer division toward zero."""
    if denominator == 0:
        raise ArithmeticMistakeError("division by zero")
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def binary(operator: str, left: Any, right: Any, kind: ValueType) -> Any:
    """Any operator between two values but ``&&`` and ``||``; `kind` is the type of the result."""
    comparisons: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    if operator in comparisons:
        return comparisons[operator](left, right)
    value = _of_floats(operator, left, right) if isinstance(left, float) else _of_integers(operator, left, right)
    return checked(value, kind)


def _of_integers(operator: str, left: int, right: int) -> int:
    if operator == "/":
        return truncated(left, right)
    if operator == "%":
        return left - right * truncated(left, right)
    if operator == "**":
        if right < 0:
            raise ArithmeticMistakeError("negative exponent")
        if abs(left) > 1 and right > 64:
            raise ArithmeticMistakeError("overflow")
        return int(left**right) if abs(left) > 1 else int(left ** (right % 2 + 2 * (right > 0)))
    if operator in ("<<", ">>") and not 0 <= right < 64:
        raise ArithmeticMistakeError("shift")
    operations: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "&": lambda a, b: a & b,
        "|": lambda a, b: a | b,
        "^": lambda a, b: a ^ b,
        "<<": lambda a, b: a << b,
        ">>": lambda a, b: a >> b,
    }
    return operations[operator](left, right)


def _of_floats(operator: str, left: float, right: float) -> float:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        if right == 0:
            return math.nan if left == 0 else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    if operator == "%":
        return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        return math.inf if left == 0 else math.nan


def unary(operator: str, value: Any, kind: ValueType) -> Any:
    """``!``, ``-`` or ``~``."""
    if operator == "!":
        return not value
    if operator == "-":
        return checked(-value, kind)
    unsigned = isinstance(kind, Scalar) and kind.family == "UInt"
    return value ^ (2**64 - 1) if unsigned else ~value


def call(function: str, values: Sequence[Any], kind: ValueType) -> Any:
    """A function of values."""
    if function == "format":
        rest = iter(values[1:])
        return _HOLE.sub(lambda _: printed(next(rest)), values[0])
    if function == "matches":
        return re.search(values[1], values[0]) is not None
    if function == "at":
        own = bytes.fromhex(values[0])
        return own[values[1]] if values[1] < len(own) else None
    if function in ("cast", "widen"):
        return _converted(values[0], kind)
    if function == "round":
        return checked(_rounded(float(values[0]), values[1]), kind)
    if function == "log":
        return checked(_of_floats("/", _real("ln", values[0]), _real("ln", float(values[1]))), kind)
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    if function == "abs":
        return checked(abs(values[0]), kind)
    return checked(_real(function, values[0]), kind)


def _real(function: str, value: float) -> float:
    functions: dict[str, Callable[[float], float]] = {
        "sqrt": math.sqrt,
        "sin": math.sin,
        "cos": math.cos,
        "tan": math.tan,
        "arcsin": math.asin,
        "arccos": math.acos,
        "arctan": math.atan,
        "exp": math.exp,
        "ln": math.log,
    }
    if function == "ln" and value == 0:
        return -math.inf
    try:
        return functions[function](value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _converted(value: Any, kind: ValueType) -> Any:
    assert isinstance(kind, Scalar)
    if kind.family == "Float":
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        raise ArithmeticMistakeError("infinite")
    return checked(math.trunc(value), kind)


def _rounded(value: float, digits: int) -> float:
    """Half away from zero."""
    factor = 10.0 ** min(digits, 308)
    scaled = value * factor
    if math.isinf(scaled):
        return value
    whole = float(math.trunc(scaled))
    if abs(scaled - whole) >= 0.5:
        whole += math.copysign(1.0, scaled)
    return whole / factor


def printed(value: Any) -> str:
    """A value in the text of a message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, tuple):
        return f"({', '.join(printed(part) for part in value)})"
    return str(value)


# ---------------------------------------------------------------------------------------------------- aggregates


def aggregate(
    function: str, percentile: int, pairs: Sequence[tuple[int, Any]], kind: ValueType, instances: bool = False
) -> Any:
    """An aggregate of values.

    Parameters
    ----------
    function, percentile
        As of a window.
    pairs : sequence of (int, Any)
        Time in ns and value, in order.
    kind : ValueType
        Of the result, without its ``?``.
    instances : bool
        Whether the values are those of instances: percentiles are interpolated then.

    Returns
    -------
    Any
        None where there is nothing of no values.
    """
    values = [value for _, value in pairs]
    if function == "count":
        return len(values)
    if function == "sum":
        whole = isinstance(kind, Scalar) and kind.family != "Float"
        return checked(sum(values) if whole else math.fsum(values), kind)
    if function == "integral":
        return _integral(pairs)
    if function in ("exists", "forall"):
        return any(values) if function == "exists" else all(values)
    if not values:
        return None
    if function == "last":
        return values[-1]
    if function in ("min", "max"):
        return min(values) if function == "min" else max(values)
    if function == "avg":
        return checked(_mean(values), kind)
    if function == "pctl":
        return _interpolated(sorted(values), percentile) if instances else _percentile(sorted(values), percentile)
    return checked(_moment(function, values), kind)


def _mean(values: Sequence[Any]) -> Any:
    if isinstance(values[0], float):
        return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values) / len(values)
    return truncated(sum(values), len(values))


def _integral(pairs: Sequence[tuple[int, Any]]) -> float:
    areas = []
    for (before, left), (after, right) in pairwise(pairs):
        areas.append((float(left) + float(right)) / 2 * ((after - before) / 1e9))
    return float(checked(math.fsum(areas), Scalar("Float64")))


def _percentile(ordered: Sequence[Any], percent: int) -> Any:
    """The mean of the k-th and (k+1)-th smallest where k = n * percent / 100 is whole, else the ceil(k)-th."""
    count = len(ordered)
    k = Fraction(count * percent, 100)
    if k.denominator == 1:
        low, high = max(int(k), 1), min(int(k) + 1, count)
        low = high if k == 0 else low
        return _mean([ordered[low - 1], ordered[high - 1]])
    return ordered[math.ceil(k) - 1]


def _interpolated(ordered: Sequence[Any], percent: int) -> Any:
    """The value at place (n - 1) * percent / 100, from 0, between its neighbours."""
    place, rest = divmod((len(ordered) - 1) * percent, 100)
    low = ordered[place]
    if rest == 0:
        return low
    step = ordered[place + 1] - low
    return low + step * (rest / 100) if isinstance(low, float) else low + step * rest // 100


def _moment(function: str, values: Sequence[Any]) -> float:
    """Population variance, deviation or covariance, exactly and then rounded."""
    pairs = values if function == "cov" else [(value, value) for value in values]
    if not all(math.isfinite(part) for pair in pairs for part in pair):
        return math.nan
    exact = [(Fraction(first), Fraction(second)) for first, second in pairs]
    one = sum(first for first, _ in exact) / len(exact)
    other = sum(second for _, second in exact) / len(exact)
    moment = sum((first - one) * (second - other) for first, second in exact) / len(exact)
    try:
        return math.sqrt(moment) if function == "sd" else float(moment)
    except OverflowError:
        return math.inf
