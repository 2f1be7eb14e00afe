"""Tuples in events: in Python and JSON as tuples or lists, in Arrow as structs, checked part by part."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hamlet.errors import DataError
from hamlet.streams.program import ir

_DIGITS = re.compile("(?:[0-9a-fA-F]{2})*")


def as_structs(events: Any, inputs: Sequence[ir.Stream]) -> Any:
    """Events with tuples as dicts of parts ``0``, ``1``, ..., of which Arrow makes structs whatever the parts' types.

    Parameters
    ----------
    events : any form that stands in memory
        Dicts, or a dict of columns, are copied where an input is a tuple; all else comes back as it is.
    inputs : sequence of ir.Stream
    """
    names = {each.name for each in inputs if isinstance(each.type, ir.TupleOf)}
    if not names or hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return events
    if isinstance(events, Mapping):
        return {
            name: [_struct(each) for each in column] if name in names and isinstance(column, (list, tuple)) else column
            for name, column in events.items()
        }
    if isinstance(events, Iterable) and not isinstance(events, (str, bytes)):
        return [
            {name: _struct(value) if name in names else value for name, value in each.items()}
            if isinstance(each, Mapping)
            else each
            for each in events
        ]
    return events


def _struct(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return {str(place): _struct(part) for place, part in enumerate(value)}
    return value


def tuple_of(value: Any, stream: ir.Stream, source: str) -> Any:
    """A value of Arrow (a struct or a list) as a tuple of the input's type; None where there is none.

    Raises
    ------
    DataError
        If it is no such tuple.
    """
    if value is None:
        return None
    try:
        return _part(value, stream.type)
    except ValueError as error:
        raise DataError(
            f"{source}: column {stream.name!r} holds what input {stream.name} of type {stream.type} cannot be: {error}"
        ) from None


def digits_of(value: Any) -> str:
    """Bytes, or text of two hexadecimal digits a byte, as text of small digits.

    Raises
    ------
    ValueError
        It is neither.
    """
    if isinstance(value, bytes):
        return value.hex()
    if not isinstance(value, str) or _DIGITS.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not made of two hexadecimal digits a byte")
    return value.lower()


def _part(value: Any, kind: ir.ValueType) -> Any:
    if isinstance(kind, ir.TupleOf):
        if isinstance(value, Mapping):
            value = list(value.values())
        if not isinstance(value, (list, tuple)) or len(value) != len(kind.parts):
            raise ValueError(f"{value!r} is no tuple of {len(kind.parts)}")
        return tuple(_part(each, part) for each, part in zip(value, kind.parts, strict=True))
    assert isinstance(kind, ir.Scalar)
    family = kind.family
    integer = isinstance(value, int) and not isinstance(value, bool)
    if family == "Float" and (integer or isinstance(value, float)) and not math.isnan(value):
        return float(value)
    if family == "Int" and integer and -(2**63) <= value < 2**63:
        return value
    if family == "UInt" and integer and 0 <= value < 2**64:
        return value
    if kind.name == "Bytes":
        return digits_of(value)
    if (family == "Bool" and isinstance(value, bool)) or (family == "String" and isinstance(value, str)):
        return value
    raise ValueError(f"{value!r} is no {kind}")
