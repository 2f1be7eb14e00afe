"""Reads durations: a number and a unit, as in ``10 min``."""

from __future__ import annotations

from fractions import Fraction

from hamlet.errors import one_of
from hamlet.frontend.lexer import Kind, Token
from hamlet.frontend.units import SPELLINGS, unit_of
from hamlet.language.cursor import Cursor
from hamlet.language.query import Duration

_UNIT_MEANT = {"m": "min", "mins": "min", "secs": "s", "hr": "h", "hrs": "h", "msec": "ms", "millisecond": "ms"}
_UNIT_MEANT |= {"milliseconds": "ms", "millis": "ms"}
_LONGEST_NUMBER = 100  # characters of a duration's number, so that what is read can be printed without an exponent
_LONGEST_MANTISSA, _LARGEST_EXPONENT = 40, 30  # where it has an exponent


def parse_duration(cursor: Cursor, clause: str) -> Duration:
    """Read the length of WITHIN, SLIDE, OFFSET or SPAN; raises UnreadableError with the message recorded.

    A minus is read here and refused by the analysis, which says what a duration must be.
    """
    start = cursor.peek().span
    sign = -1 if cursor.take("-") else 1
    number = cursor.peek()
    if number.kind is not Kind.NUMBER:
        raise cursor.expected(["a duration"], f"a duration is a number and a unit, as in {clause} 10 min")
    cursor.advance()
    unit = cursor.peek()
    known = unit_of(unit.value)
    lines = "\n" in cursor.reports.text[number.span.end : unit.span.start]
    apart = lines and known is None  # an unknown word on another line was not meant to be the unit
    if unit.kind is not Kind.WORD or apart or cursor.clause() or cursor.starts_statement():
        units = one_of(list(SPELLINGS))
        raise cursor.expected([f"a unit ({units})"], f"write {clause} {number.value} min", after=number.span)
    if known is None:
        raise cursor.fail(f"'{unit.value}' is no unit of time", unit.span, _unit_hint(unit, number))
    cursor.advance()
    return Duration(sign * _amount(cursor, number), known, span=cursor.since(start))


def _unit_hint(unit: Token, number: Token) -> str:
    word = unit.value.lower()
    meant = _UNIT_MEANT.get(word)
    if meant is not None:
        return f"write {number.value} {meant}"
    if word.startswith(("event", "row")):
        return "windows are measured in time, not in events"
    if word.startswith(("month", "year", "quarter")):
        return "months and years have no one length: the longest unit is a week, written w"
    return "the units are ms, s, min, h, d and w"


def _amount(cursor: Cursor, number: Token) -> Fraction:
    """The number, exactly. Its size is looked at first: a billion digits are quickly written, as in 1e1000000000."""
    mantissa, _, exponent = number.value.lower().partition("e")
    digits = exponent.lstrip("+-").lstrip("0")
    longest = _LONGEST_MANTISSA if exponent else _LONGEST_NUMBER
    if len(mantissa) > longest or len(digits) > 3 or int(digits or "0") > _LARGEST_EXPONENT:
        hint = f"use at most {longest} digits and an exponent of at most {_LARGEST_EXPONENT}"
        raise cursor.fail("the number of this duration is too long", number.span, hint)
    return Fraction(number.value)
