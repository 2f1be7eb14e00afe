"""Integers of any length to decimal digits and back, whatever limit the host process sets.

Python refuses to convert integers of more than 4,300 digits (`sys.set_int_max_str_digits`), and its conversion takes
quadratic time. These two functions halve the number instead, with the fast multiplication of the decimal module one
way and of integers the other way, and never touch the limit.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from typing import Any

from hamlet.arrays import np
from hamlet.frontend.units import decimal_text

_SAFE_BITS = 2_000  # below 640 digits, the smallest limit that Python lets anybody set
_SAFE = 1 << _SAFE_BITS
_SAFE_DIGITS = 600
_LEAF_BITS = 4_096  # below it, decimal's own quadratic conversion is faster than another halving
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def decimal_digits(number: int) -> str:
    """The decimal digits of an integer, with a minus sign if it is negative.

    Examples
    --------
    >>> decimal_digits(-120)
    '-120'
    >>> len(decimal_digits(2**100_000))
    30103
    """
    if number.bit_length() <= _SAFE_BITS:
        return str(int(number))
    sign = "-" if number < 0 else ""
    return sign + format(_to_decimal(abs(number)), "f")


def _to_decimal(number: int) -> decimal.Decimal:
    # A context of its own: the caller's precision and traps must not matter, nor change.
    exact = decimal.Context(
        prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact]
    )
    powers: dict[int, decimal.Decimal] = {}

    def power_of_two(bits: int) -> decimal.Decimal:
        if bits not in powers:
            if bits <= _LEAF_BITS:
                powers[bits] = decimal.Decimal(1 << bits)
            else:
                half = bits >> 1
                powers[bits] = exact.multiply(power_of_two(half), power_of_two(bits - half))
        return powers[bits]

    def convert(value: int, bits: int) -> decimal.Decimal:
        if bits <= _LEAF_BITS:
            return decimal.Decimal(value)
        low = bits >> 1
        high = value >> low
        lower = convert(value - (high << low), low)
        return exact.fma(convert(high, bits - low), power_of_two(low), lower)

    return convert(number, number.bit_length())


def integer_of(text: str) -> int:
    """The integer that a string of decimal digits spells; the inverse of `decimal_digits`.

    Raises
    ------
    ValueError
        If the text is anything but digits 0-9 with an optional sign.

    Examples
    --------
    >>> integer_of("-" + "9" * 5000) == 1 - 10**5000
    True
    """
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"not an integer: {text[:40]!r}")
    digits = text.lstrip("+-")
    powers: dict[int, int] = {}

    def power_of_five(exponent: int) -> int:
        if exponent not in powers:
            half = exponent >> 1
            powers[exponent] = (
                5**exponent if exponent <= _SAFE_DIGITS else power_of_five(half) * power_of_five(exponent - half)
            )
        return powers[exponent]

    def convert(start: int, end: int) -> int:
        if end - start <= _SAFE_DIGITS:
            return int(digits[start:end])
        low = (end - start) >> 1
        # 10^low = 5^low * 2^low: the powers of two are a shift.
        return ((convert(start, end - low) * power_of_five(low)) << low) + convert(end - low, end)

    number = convert(0, len(digits))
    return -number if text.startswith("-") else number


def seconds_text(length: datetime.timedelta | np.timedelta64) -> str:
    """A duration as the number of its seconds, in full.

    Examples
    --------
    >>> seconds_text(datetime.timedelta(minutes=-1)), seconds_text(np.timedelta64(1_500_000_001, "ns"))
    ('-60', '1.500000001')
    """
    if isinstance(length, np.timedelta64):
        unit = np.datetime_data(length.dtype)[0]
        digits, ticks = {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit], int(length.astype(np.int64))
    else:
        digits, ticks = 6, length // datetime.timedelta(microseconds=1)
    return decimal_text(ticks, digits)


def number_text(number: int | float | decimal.Decimal) -> str:
    """A number as it is written to files: every digit of an integer, a double so that it reads back the same.

    A Decimal stands for a value beyond the double range and gets 17 digits, as ``1.2345678901234567e+456``.

    Examples
    --------
    >>> number_text(0.1), number_text(decimal.Decimal("123.456e900"))
    ('0.1', '1.2345600000000000e+902')
    """
    if isinstance(number, int):
        return str(number) if type(number) is int and -_SAFE < number < _SAFE else decimal_digits(number)
    return repr(float(number)) if isinstance(number, float) else format(number, ".16e")


def short_text(number: int | float | decimal.Decimal) -> str:
    """A number for people: integers of up to 20 digits in full, longer ones as ``1.23e+456``, doubles to 6 digits.

    Decimals of ordinary size are values of columns that hold decimals, such as prices, and stand in full, too.

    Examples
    --------
    >>> short_text(2**64), short_text(2**5000), short_text(1 / 3)
    ('18446744073709551616', '1.41e+1505', '0.333333')
    >>> short_text(decimal.Decimal("1234.50")), short_text(decimal.Decimal("1.2345e+400"))
    ('1234.50', '1.23e+400')
    """
    if isinstance(number, decimal.Decimal) and -20 < number.adjusted() < 20:
        return format(number, "f")
    if isinstance(number, float):
        return format(number, ".6g")
    if isinstance(number, int):
        if abs(number) < 10**20:
            return str(int(number))
        number = leading(number)
    return format(number, ".2e")


def leading(number: int) -> decimal.Decimal:
    """An integer of any size, as fast as a small one, with an error below 1e-38 of its value.

    Examples
    --------
    >>> format(leading(2**5000), ".6e"), leading(-7)
    ('1.412467e+1505', Decimal('-7'))
    """
    # The leading bits decide the digits that are shown; the rest is scaled by 2^shift through decimal's exponent.
    shift = max(number.bit_length() - 128, 0)
    wide = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    return wide.multiply(decimal.Decimal(number >> shift), wide.power(2, shift))


def nearest_double(number: Any) -> float:
    """The double nearest to an exact number, infinite beyond their range."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
