"""Comparisons of values, and text tests (SUBSTRING, MATCHES), on whole columns of codes."""

from __future__ import annotations

import functools
import operator as op
import re
from collections.abc import Callable, Sequence
from typing import Any

from hamlet.arrays import np, npt, pa
from hamlet.language.regular import RegularExpression
from hamlet.policies.relations.values import POOLED, Codes, Pool, floats_of
from hamlet.policies.syntax.formula import Type

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right or (left != left and right != right),
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}
_OF_COLUMNS: dict[str, Callable[[Any, Any], Any]] = {"<": op.lt, ">": op.gt, "<=": op.le, ">=": op.ge}


def compare(operator: str, left: Codes, right: Codes, type: Type, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which rows fulfil a comparison of two columns of one type."""
    if operator == "=":
        return np.asarray(left == right)
    if type == "float":
        return np.asarray(_OF_COLUMNS[operator](floats_of(left), floats_of(right)))
    if type == "int" and (not len(left) or max(int(left.max()), int(right.max())) < POOLED):
        return np.asarray(_OF_COLUMNS[operator](left, right))
    test = COMPARE[operator]
    pairs = zip(pool.decode(left, type), pool.decode(right, type), strict=True)
    return np.fromiter((test(*pair) for pair in pairs), bool, len(left))


def substring(left: Codes, right: Codes, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which rows have the left text in the right one."""
    pairs = zip(pool.decode(left, "string"), pool.decode(right, "string"), strict=True)
    return np.fromiter((one in two for one, two in pairs), bool, len(left))


def matches(codes: Codes, pattern: str, pool: Pool) -> npt.NDArray[np.bool_]:
    """Which texts have a part that fits the pattern."""
    kinds, places = np.unique(codes, return_inverse=True)
    texts = pa.array(pool.decode(kinds, "string"), pa.string())
    found = np.asarray(compile_pattern(pattern).found_in(texts).to_numpy(zero_copy_only=False), bool)
    return found[places] if len(kinds) else np.zeros(0, bool)


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> RegularExpression:
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
    return RegularExpression(f"(?m){''.join(parts)}")


def sort_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """A key that orders rows by values; NaN comes last."""
    return tuple((1, 0.0) if value != value else (0, value) for value in values)
