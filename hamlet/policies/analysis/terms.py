"""Terms: their types, and their values, on whole columns or one by one."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from hamlet.arrays import np
from hamlet.errors import DataError
from hamlet.output.digits import decimal_digits, integer_of, nearest_double
from hamlet.policies.relations.values import POOLED, Codes, Pool, float_codes, floats_of
from hamlet.policies.syntax.formula import Arithmetic, Call, Constant, Negative, Term, Type, Value, Variable

_SMALL = 1 << 31  # products of smaller numbers fit 62 bits


def type_of(term: Term, types: dict[str, Type]) -> Type:
    """The type of a term whose variables have these types."""
    from hamlet.policies.analysis.typecheck import CALLS

    while isinstance(term, Arithmetic):  # chains of operators may be long
        term = term.left
    match term:
        case Variable(name):
            return types[name]
        case Constant(value):
            if isinstance(value, bool):
                return "bool"
            return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "string"
        case Negative(inner):
            return type_of(inner, types)
        case Call(function, _):
            return CALLS[function][1]
    raise TypeError(f"a {type(term).__name__} is no term")


def evaluate(term: Term, columns: dict[str, Codes], types: dict[str, Type], rows: int, pool: Pool) -> Codes:
    """The codes of a term for each row.

    Raises
    ------
    DataError
        At a number that is no integer, and at one that is no date.
    """
    match term:
        case Variable(name):
            return columns[name]
        case Constant(value):
            return np.full(rows, pool.code(value), np.int64)
    fast = _fast(term, columns, types, rows, pool)
    if fast is not None:
        return fast
    names = list(dict.fromkeys(_names(term)))
    function = compiled(term)
    decoded = [pool.decode(columns[name], types[name]) for name in names]
    rest = zip(*decoded, strict=True) if names else iter([()] * rows)
    return pool.codes(function(dict(zip(names, row, strict=True))) for row in rest)


def _names(term: Term) -> Iterable[str]:
    from hamlet.policies.syntax.formula import term_variables

    return term_variables(term)


def _fast(term: Term, columns: dict[str, Codes], types: dict[str, Type], rows: int, pool: Pool) -> Codes | None:
    """Sums, differences and products of floats and of small integers, on whole columns."""
    kind = type_of(term, types)
    if kind == "float":
        return _fast_floats(term, columns, types, rows, pool)
    if kind != "int":
        return None
    match term:
        case Negative(inner):
            found = evaluate(inner, columns, types, rows, pool)
            return -found if _below(found, POOLED) else None
        case Arithmetic(operator, left, right) if operator in "+-*":
            first = evaluate(left, columns, types, rows, pool)
            second = evaluate(right, columns, types, rows, pool)
            most = _SMALL if operator == "*" else POOLED >> 1
            if not (_below(first, most) and _below(second, most)):
                return None
            result: Codes = first + second if operator == "+" else first - second if operator == "-" else first * second
            return result
    return None


def _fast_floats(term: Term, columns: dict[str, Codes], types: dict[str, Type], rows: int, pool: Pool) -> Codes | None:
    match term:
        case Negative(inner):
            return float_codes(-floats_of(evaluate(inner, columns, types, rows, pool)))
        case Arithmetic(operator, left, right):
            first, second = (floats_of(evaluate(each, columns, types, rows, pool)) for each in (left, right))
            with np.errstate(all="ignore"):
                join = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[operator]
                return float_codes(join(first, second))
    return None


def _below(codes: Codes, bound: int) -> bool:
    return not len(codes) or (int(codes.max()) < bound and int(codes.min()) > -bound)


# ------------------------------------------------------------------------------------------------ one value


def compiled(term: Term) -> Callable[[dict[str, Value]], Value]:
    """The term as a function of its variables' values."""
    match term:
        case Variable(name):
            return lambda values: values[name]
        case Constant(value):
            return lambda _: value
        case Negative(inner):
            one = compiled(inner)
            return lambda values: -one(values)  # type: ignore[operator]  # types are checked
        case Call(function, argument):
            one, call = compiled(argument), _FUNCTIONS[function]
            return lambda values: call(one(values))
        case Arithmetic(operator, left, right):
            one, two, join = compiled(left), compiled(right), _OPERATIONS[operator]
            return lambda values: join(one(values), two(values))
    raise TypeError(f"a {type(term).__name__} is no term")


def _divide(left: Any, right: Any) -> Any:
    """A quotient, of integers towards zero; as in VeriMon, an integer divided by zero is 0."""
    if isinstance(left, float):
        if right == 0:
            return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    if right == 0:
        return 0
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: Any, right: Any) -> Any:
    """The rest of `_divide`, with the sign of the left side; as in VeriMon, an integer MOD zero is 0."""
    if right == 0:
        return 0
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _times(left: Any, right: Any) -> Any:
    return left * right


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": _times,
    "/": _divide,
    "MOD": _modulo,
}


def _truncated(number: Any) -> Any:
    if not math.isfinite(number):
        raise DataError(f"f2i cannot convert {number} to an integer")
    return int(number)


def _integer(text: Any) -> Any:
    """The integer that a text is; as in MonPoly, 0 where it is none."""
    return integer_of(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else 0


def _float(text: Any) -> Any:
    """The float that a text is; as in MonPoly, 0 where it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def float_text(number: float) -> str:
    """A float as OCaml's ``string_of_float`` writes it: twelve significant digits, and always a point or exponent."""
    text = f"{number:.12g}"
    return text if any(letter in text for letter in ".en") else text + "."


def _date(seconds: Any) -> datetime.datetime:
    try:
        return datetime.datetime.fromtimestamp(float(seconds), datetime.UTC)
    except (OverflowError, ValueError, OSError):
        raise DataError(f"{seconds} seconds since 1970 is not a date") from None


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "f2i": _truncated,
    "i2f": nearest_double,
    "i2s": decimal_digits,
    "s2i": _integer,
    "f2s": float_text,
    "s2f": _float,
    "DAY_OF_MONTH": lambda seconds: _date(seconds).day,
    "MONTH": lambda seconds: _date(seconds).month,
    "YEAR": lambda seconds: _date(seconds).year,
    "FORMAT_DATE": lambda seconds: _date(seconds).strftime("%Y-%m-%d"),
}
