"""Values as 64-bit codes: what relations hold in their columns.

Equal values of one type have equal codes, so joins, unions and projections look at codes only. An integer between
-2**62 and 2**62 is its own code, and a float's code are its bits (with one zero and one NaN). A larger integer and
every string have a number in a pool; their codes are `_POOLED` plus the place in the pool.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.output.digits import decimal_digits, integer_of
from hamlet.policies.formula import Arithmetic, Call, Constant, Negative, Term, Type, Value, Variable

Codes = npt.NDArray[np.int64]
_POOLED = 1 << 62
_BITS, _DOUBLE = struct.Struct("=q"), struct.Struct("=d")
_SMALL = 1 << 31  # products of smaller numbers fit 62 bits


class Pool:
    """Strings and large integers by number; one pool for all operators of an evaluation."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._texts: dict[str, int] = {}
        self._numbers: dict[int, int] = {}

    def code(self, value: Value) -> int:
        """The code of a value."""
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int) and -_POOLED < value < _POOLED:
            return value
        if isinstance(value, float):
            plain = math.nan if value != value else value or 0.0  # one NaN, one zero
            code: int = _BITS.unpack(_DOUBLE.pack(plain))[0]
            return code
        known: dict[Any, int] = self._texts if isinstance(value, str) else self._numbers
        code = known.get(value, -1)
        if code < 0:
            code = known[value] = _POOLED + len(self.values)
            self.values.append(value)
        return code

    def codes(self, values: Iterable[Value]) -> Codes:
        """The codes of some values."""
        return np.fromiter((self.code(value) for value in values), np.int64)

    def _codes_of_texts(self, texts: Sequence[str]) -> Codes:
        known = self._texts
        found = [known.get(text, -1) for text in texts]
        if -1 in found:
            for text in texts:
                if text not in known:
                    known[text] = _POOLED + len(self.values)
                    self.values.append(text)
            found = [known[text] for text in texts]
        return np.array(found, np.int64)

    def value(self, code: int, type: Type) -> Value:
        """The value of a code in a column of this type."""
        if type == "bool":
            return bool(code)
        if type == "float":
            return float(np.int64(code).view(np.float64))
        return self.values[code - _POOLED] if code >= _POOLED else code

    def decode(self, codes: Codes, type: Type) -> list[Any]:
        """The values of a column."""
        if type == "float":
            floats: list[Any] = floats_of(codes).tolist()
            return floats
        plain: list[Any] = codes.tolist()
        if type == "bool":
            return [bool(code) for code in plain]
        if type == "int" and (not len(codes) or int(codes.max()) < _POOLED):
            return plain
        values = self.values
        return [values[code - _POOLED] if code >= _POOLED else code for code in plain]

    def array(self, codes: Codes, type: Type) -> pa.Array | list[Any]:
        """The values of a column as an Arrow array; as a list where an integer has more than 62 bits."""
        match type:
            case "float":
                return pa.array(floats_of(codes))
            case "bool":
                return pa.array(codes != 0)
            case "int" if not len(codes) or int(codes.max()) < _POOLED:
                return pa.array(codes)
            case "string":
                kinds, places = np.unique(codes, return_inverse=True)
                return pa.array(self.decode(kinds, type), pa.string()).take(pa.array(places))
        return self.decode(codes, type)

    def encode(self, column: pa.Array | pa.ChunkedArray, type: Type) -> Codes:
        """The codes of an Arrow column without NULL, whose type fits."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # pyarrow keeps several chunks of long strings
            return np.concatenate([self.encode(chunk, type) for chunk in column.chunks])
        if type == "bool":
            return np.asarray(column.cast(pa.int8()).to_numpy(zero_copy_only=False), np.int64)
        if type == "int" and pa.types.is_integer(column.type):
            return self._integers(column)
        if type == "float":
            return float_codes(np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64))
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = column.dictionary.to_pylist()
        if type == "int":
            values = [integer_of(each) if isinstance(each, str) else int(each) for each in values]
        known = self._codes_of_texts(values) if type == "string" else self.codes(values)
        places = column.indices.to_numpy(zero_copy_only=False)
        return known[places] if len(known) else np.zeros(len(column), np.int64)

    def _integers(self, column: pa.Array) -> Codes:
        if pa.types.is_uint64(column.type):
            return self.codes(column.to_pylist())
        codes = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
        if len(codes) and (int(codes.max()) >= _POOLED or int(codes.min()) <= -_POOLED):
            return self.codes(codes.tolist())
        return codes


def float_codes(values: npt.NDArray[np.float64]) -> Codes:
    """The codes of floats: their bits, with one zero and one NaN."""
    values = np.where(values == 0, 0.0, values)
    values[np.isnan(values)] = math.nan
    return values.view(np.int64)


def floats_of(codes: Codes) -> npt.NDArray[np.float64]:
    """The floats of codes."""
    found: npt.NDArray[np.float64] = codes.view(np.float64)
    return found


def type_of(term: Term, types: dict[str, Type]) -> Type:
    """The type of a term whose variables have these types."""
    from hamlet.policies.typecheck import CALLS

    match term:
        case Variable(name):
            return types[name]
        case Constant(value):
            if isinstance(value, bool):
                return "bool"
            return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "string"
        case Arithmetic(_, left, _):
            return type_of(left, types)
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
        At a division by zero of integers, and at text that is no number.
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
    from hamlet.policies.formula import term_variables

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
            return -found if _below(found, _POOLED) else None
        case Arithmetic(operator, left, right) if operator in "+-*":
            first = evaluate(left, columns, types, rows, pool)
            second = evaluate(right, columns, types, rows, pool)
            most = _SMALL if operator == "*" else _POOLED >> 1
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
    if isinstance(left, float):
        if right == 0:
            return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    if right == 0:
        raise DataError("an integer is divided by zero\nhint: test the divisor before: AND NOT (x = 0)")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: Any, right: Any) -> Any:
    """The rest of `_divide`, with the sign of the left side."""
    if right == 0:
        raise DataError("an integer is taken MOD zero\nhint: test the divisor before: AND NOT (x = 0)")
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


def _floated(number: Any) -> Any:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


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
    "i2f": _floated,
    "i2s": decimal_digits,
    "s2i": _integer,
    "f2s": float_text,
    "s2f": _float,
    "DAY_OF_MONTH": lambda seconds: _date(seconds).day,
    "MONTH": lambda seconds: _date(seconds).month,
    "YEAR": lambda seconds: _date(seconds).year,
    "FORMAT_DATE": lambda seconds: _date(seconds).strftime("%Y-%m-%d"),
}

# ----------------------------------------------------------------------------------------------- the tests

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right or (left != left and right != right),
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
_UFUNCS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}


def compare(operator: str, left: Codes, right: Codes, type: Type, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which rows fulfil a comparison of two columns of one type."""
    if operator == "=":
        return np.asarray(left == right)
    if type == "float":
        return np.asarray(_UFUNCS[operator](floats_of(left), floats_of(right)))
    if type == "int" and (not len(left) or max(int(left.max()), int(right.max())) < _POOLED):
        return np.asarray(_UFUNCS[operator](left, right))
    test = COMPARE[operator]
    pairs = zip(pool.decode(left, type), pool.decode(right, type), strict=True)
    return np.fromiter((test(*pair) for pair in pairs), bool, len(left))


def substring(left: Codes, right: Codes, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which rows have the left text in the right one."""
    pairs = zip(pool.decode(left, "string"), pool.decode(right, "string"), strict=True)
    return np.fromiter((one in two for one, two in pairs), bool, len(left))


def matches(codes: Codes, pattern: str, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which texts have a part that fits the pattern."""
    expression = compile_pattern(pattern)
    kinds, places = np.unique(codes, return_inverse=True)
    found = np.fromiter((expression.search(str(text)) is not None for text in pool.decode(kinds, "string")), bool)
    return found[places] if len(kinds) else np.zeros(0, bool)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""A regular expression of OCaml's ``Str`` library, where groups and alternatives are ``\(``, ``\)`` and ``\|``.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    parts: list[str] = []
    place, inside = 0, False
    while place < len(pattern):
        letter = pattern[place]
        if inside:
            parts.append("\\" + letter if letter in "\\[&~|" else letter)
            inside = letter != "]" or parts[-2] in ("[", "[^")
        elif letter == "\\" and place + 1 < len(pattern):
            place += 1
            letter = pattern[place]
            parts.append(
                letter
                if letter in "()|"
                else r"\b"
                if letter == "b"
                else "\\" + letter
                if letter.isdigit()
                else re.escape(letter)
            )
        elif letter == "[":
            caret = pattern[place + 1 : place + 2] == "^"
            parts.append("[^" if caret else "[")
            place += caret
            inside = True
        elif letter in "(){}|":
            parts.append("\\" + letter)
        else:
            parts.append(letter if letter in ".*+?^$" else re.escape(letter))
        place += 1
    try:
        return re.compile("".join(parts), re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None


def sort_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A key that orders rows by values; NaN comes last."""
    return tuple((1, 0.0) if value != value else (0, value) for value in values)
