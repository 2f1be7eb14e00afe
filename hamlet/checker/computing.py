"""Operators, functions and aggregates of specifications by their definition, one value at a time, for the checker."""

from __future__ import annotations

import math
import operator as operators
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "&": operators.and_,
    "|": operators.or_,
    "^": operators.xor,
    "<<": operators.lshift,
    ">>": operators.rshift,
}
_REAL: dict[str, Callable[[float], float]] = {
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


def binary(operator: str, one: Any, two: Any) -> Any:
    """An operation of two values."""
    if operator in _PLAIN:
        return _PLAIN[operator](one, two)
    if isinstance(one, float):
        if operator == "/":
            if two:
                return one / two
            return math.nan if not one else math.copysign(math.inf, one) * math.copysign(1, two)
        return math.fmod(one, two) if operator == "%" else math.pow(one, two)
    if operator == "**":
        return one**two
    quotient = abs(one) // abs(two) * (1 if (one < 0) == (two < 0) else -1)
    return quotient if operator == "/" else one - quotient * two


def unary(operator: str, value: Any, unsigned: bool) -> Any:
    """``!``, ``-`` or ``~``."""
    if operator == "!":
        return not value
    return -value if operator == "-" else value ^ (2**64 - 1) if unsigned else ~value


def call(function: str, values: Sequence[Any], family: str) -> Any:
    """A function of values; `family` is that of the result's type."""
    match function:
        case "format":
            rest = iter(values[1:])
            return re.sub(r"\{\{[^{}]*\}\}", lambda _: printed(next(rest)), values[0])
        case "matches":
            return re.search(values[1], values[0]) is not None
        case "at":
            own = bytes.fromhex(values[0])
            return own[values[1]] if values[1] < len(own) else None
        case "cast" | "widen":
            return float(values[0]) if family == "Float" else math.trunc(values[0])
        case "round":
            return _rounded(float(values[0]), values[1])
        case "log":
            return math.log(values[0]) / math.log(float(values[1]))
        case "min" | "max":
            return min(values) if function == "min" else max(values)
        case "abs":
            return abs(values[0])
    if function == "ln" and values[0] == 0:
        return -math.inf
    return _REAL[function](values[0])


def _rounded(value: float, digits: int) -> float:
    """Half away from zero."""
    factor = 10.0 ** min(digits, 308)
    scaled = value * factor
    if math.isinf(scaled):
        return value
    whole = float(math.trunc(scaled))
    return (whole + (math.copysign(1.0, scaled) if abs(scaled - whole) >= 0.5 else 0.0)) / factor


def printed(value: Any) -> str:
    """A value in a message: a float is its shortest decimal."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isfinite(value):
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"({', '.join(map(printed, value))})" if isinstance(value, tuple) else str(value)


def aggregate(function: str, percentile: int, pairs: Sequence[tuple[int, Any]], integer: bool, instances: bool) -> Any:
    """An aggregate of the values of a window with their times in ns, or of instances; None for none."""
    values = [value for _, value in pairs]
    if function in ("count", "sum", "exists", "forall", "integral"):
        if function == "integral":
            found = sum(
                (Fraction(a) + Fraction(b)) * (later - first) / (2 * 10**9)
                for (first, a), (later, b) in pairwise(pairs)
            )
            return float(found)
        known = {"count": len(values), "exists": any(values), "forall": all(values)}
        return known[function] if function in known else _sum(values, integer)
    if not values:
        return None
    if function in ("min", "max", "last"):
        return values[-1] if function == "last" else min(values) if function == "min" else max(values)
    if function == "avg":
        return _divided(sum(values), len(values)) if integer else _sum(values, False) / len(values)
    if function in ("median", "percentile", "pctl"):
        return _percentile(sorted(values), 50 if function == "median" else percentile, integer, instances)
    parts = [each if isinstance(each, tuple) else (each, each) for each in values]
    means = [sum(Fraction(each[side]) for each in parts) / len(parts) for side in (0, 1)]
    spread = sum((Fraction(a) - means[0]) * (Fraction(b) - means[1]) for a, b in parts) / len(parts)
    return math.sqrt(spread) if function == "sd" else float(spread)


def _sum(values: Sequence[Any], integer: bool) -> Any:
    return sum(values) if integer else math.fsum(values)


def _divided(one: int, two: int) -> int:
    return abs(one) // two * (1 if one >= 0 else -1)


def _percentile(values: Sequence[Any], percentile: int, integer: bool, instances: bool) -> Any:
    if instances:
        place, rest = divmod((len(values) - 1) * percentile, 100)
        low, high = values[place], values[min(place + 1, len(values) - 1)]
        return low + (high - low) * rest // 100 if integer else low + (high - low) * (rest / 100)
    place, rest = divmod(len(values) * percentile, 100)
    if rest:
        return values[place]
    low, high = values[max(place - 1, 0)], values[min(place, len(values) - 1)]
    return _divided(low + high, 2) if integer else (low + high) / 2
