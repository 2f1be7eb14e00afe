"""Times as values, with Python's own datetimes and timedeltas: exact to the microsecond, rounded half to even."""

from __future__ import annotations

import contextlib
import contextvars
import datetime
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from hamlet.errors import DataError
from hamlet.language.query import Binary, Duration, Expression, Literal, Unary

Time = datetime.datetime | datetime.timedelta
_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1)
_TICKS: contextvars.ContextVar[int | None] = contextvars.ContextVar("ticks per second of integer times", default=1)


@contextlib.contextmanager
def counted_in(ticks_per_second: int | None) -> Iterator[None]:
    """What a duration beside a number counts; None where times are timestamps, and it is a duration."""
    token = _TICKS.set(ticks_per_second)
    try:
        yield
    finally:
        _TICKS.reset(token)


def dated(ticks: int, ticks_per_second: int) -> datetime.datetime:
    """A time of so many ticks since 1970."""
    return _EPOCH + datetime.timedelta(microseconds=ticks * 1_000_000 // ticks_per_second)


def length(duration: Duration) -> datetime.timedelta:
    """The value of a literal."""
    return datetime.timedelta(microseconds=int(duration.seconds * 1_000_000))


def is_time(value: Any) -> bool:
    """Whether a value is an instant or a duration."""
    return isinstance(value, (datetime.datetime, datetime.timedelta))


def both(left: Expression, right: Expression, value: Callable[[Expression], Any]) -> tuple[Any, Any]:
    """The values of two sides, a duration written beside a number as the number of its ticks."""
    first, second = value(left), value(right)
    return _beside(left, first, right, second), _beside(right, second, left, first)


def _beside(expression: Expression, own: Any, beside: Expression, other: Any) -> Any:
    number = isinstance(other, (int, float)) and not isinstance(other, bool)
    counts = _TICKS.get() is not None and isinstance(own, datetime.timedelta) and number
    return _counted(expression) if counts and _is_literal(expression) and not _is_literal(beside) else own


def _counted(expression: Expression) -> Any:
    """The value of literals, a duration the number of its ticks."""
    match expression:
        case Literal(value=Duration() as written):
            return int(written.seconds * (_TICKS.get() or 1))
        case Literal(value=value):
            return value
        case Unary(operator=operator, operand=operand):
            return -_counted(operand) if operator == "-" else _counted(operand)
        case Binary(operator=operator, left=left, right=right):
            one, two = _counted(left), _counted(right)
            if operator == "/":
                return one / two if two else None
            return one + two if operator == "+" else one - two if operator == "-" else one * two
    raise ValueError(f"no literal: {expression}")


def _is_literal(expression: Expression) -> bool:
    match expression:
        case Literal():
            return True
        case Unary(operand=operand):
            return _is_literal(operand)
        case Binary(left=left, right=right):
            return _is_literal(left) and _is_literal(right)
    return False


def operation(operator: str, first: Any, second: Any) -> Any:
    """An operation with a time on some side; raises DataError where there is none."""
    if first is None or second is None:
        return None
    try:
        match operator:
            case "+" if not isinstance(first, datetime.datetime) or isinstance(second, datetime.timedelta):
                return first + second
            case "-":
                return first - second
            case "*" if not (isinstance(first, bool) or isinstance(second, bool)):
                return first * second
            case "/" if isinstance(first, datetime.timedelta) and not isinstance(second, bool):
                return first / second if second else None
    except TypeError:
        pass
    except OverflowError as error:
        raise DataError("a time beyond what Python has") from error
    raise DataError(f"{first!r} {operator} {second!r}")


def mean(values: Sequence[Time]) -> Time:
    """The mean of instants or of durations."""
    first = values[0]
    origin = _EPOCH.replace(tzinfo=first.tzinfo) if isinstance(first, datetime.datetime) else datetime.timedelta()
    ticks = [(each - origin) // _MICROSECOND for each in values]  # type: ignore[operator]
    found: Time = origin + datetime.timedelta(microseconds=round(Fraction(sum(ticks), len(ticks))))
    return found
