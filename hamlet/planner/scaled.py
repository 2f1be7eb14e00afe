"""Doubles with an exponent of their own: sums weighted with counts of any size neither overflow nor vanish.

The pair (m, e) stands for m * 2^e, with e a multiple of 512 and 2^-257 <= |m| < 2^256, or m = 0. The kernel computes
with the same pairs (``bignum.h``); this is what Python does with them once windows have closed. Each operation has a
relative error of some 2^-53.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import lru_cache

Scaled = tuple[float, int]

ZERO: Scaled = (0.0, 0)
_STEP = 512
_BITS = 2.0**53
_WIDE = decimal.Context(prec=40, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_SHOWN = decimal.Context(prec=17, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def normal(mantissa: float, exponent: int = 0) -> Scaled:
    """The pair for m * 2^e, whatever the size of m; infinities and NaN stay what they are."""
    if mantissa == 0:
        return ZERO
    if not math.isfinite(mantissa):
        return mantissa, 0
    shift = (math.frexp(mantissa)[1] + _STEP // 2) // _STEP * _STEP
    return math.ldexp(mantissa, -shift), exponent + shift


def of_integer(number: int) -> Scaled:
    """The pair nearest to an integer of any size."""
    shift = max(0, (number.bit_length() - _STEP) // _STEP * _STEP)
    return normal(float(number >> shift), shift)


def plus(a: Scaled, b: Scaled) -> Scaled:
    """a + b."""
    if a[0] == 0 or b[0] == 0:
        return b if a[0] == 0 else a
    if a[1] < b[1]:
        a, b = b, a
    return normal(a[0] + math.ldexp(b[0], max(b[1] - a[1], -4 * _STEP)), a[1])  # what is smaller than that is lost


def times(a: Scaled, b: Scaled) -> Scaled:
    """a * b."""
    return normal(a[0] * b[0], a[1] + b[1])


def negative(a: Scaled) -> Scaled:
    """-a."""
    return -a[0], a[1]


def over(a: Scaled, b: Scaled) -> Scaled:
    """a / b, where b is not 0."""
    return normal(a[0] / b[0], a[1] - b[1])


def presented(a: Scaled) -> float | Decimal:
    """The nearest double, or 17 digits where no double is near.

    Examples
    --------
    >>> presented((0.75, 0)), presented((1.0, 1024))
    (0.75, Decimal('1.7976931348623159E+308'))
    """
    if a[1] < 3 * _STEP:
        try:
            return math.ldexp(*a)
        except OverflowError:
            pass
    fraction, shift = math.frexp(a[0])  # a double as decimal digits is long, and its 53 bits alone are not
    return _SHOWN.multiply(int(fraction * _BITS), _WIDE.multiply(_power(a[1]), _power(shift - 53)))


@lru_cache(maxsize=4096)
def _power(exponent: int) -> Decimal:
    """2^e, which many rows of a window have in common."""
    return _WIDE.power(Decimal(2), exponent)


def log2(a: Scaled) -> float:
    """The binary logarithm of a pair above 0, or NaN."""
    return math.log2(a[0]) + a[1]
