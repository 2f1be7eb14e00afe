"""Errors of tasks on their way to the driver, through the JVM: as text, with all fields; no pyspark needed.

The text of an error may quote events, and events may hold anything: what is read back is JSON, of which nothing but an
error of this project with plain values is made.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hamlet import errors
from hamlet.errors import HamletError

_MARK = re.compile(r"\[hamlet:([A-Za-z0-9+/=]+)\]")
_FIELDS = ("row", "column", "event", "query", "window", "group")


class TaskError(Exception):
    """A `HamletError` of a task, in a form that survives the way through the JVM."""


def packed(error: HamletError) -> str:
    """An error as one word that `unpacked_error` finds in any text around it.

    Examples
    --------
    >>> error = errors.DataError("no time").about(row=3, event={"at": datetime.date(2024, 3, 5), "price": 1.5})
    >>> found = unpacked_error(f"Job aborted: {packed(error)} at org.apache.spark")
    >>> type(found).__name__, str(found), found.row, found.event
    ('DataError', 'no time', 3, {'at': datetime.date(2024, 3, 5), 'price': 1.5})
    """
    fields = {name: _plain(getattr(error, name)) for name in _FIELDS if getattr(error, name) is not None}
    text = json.dumps([type(error).__name__, str(error), fields])
    return f"[hamlet:{base64.b64encode(text.encode()).decode()}]"


def unpacked_error(text: str) -> HamletError | None:
    """The error that a text of Spark's holds, None where it holds none."""
    marks = _MARK.findall(text)
    if not marks:
        return None
    try:
        # The last mark is the task's: the ones before may stand in values that its message quotes.
        name, message, fields = json.loads(base64.b64decode(marks[-1]))
        values = {field: _value(value) for field, value in fields.items() if field in _FIELDS}
    except (ValueError, TypeError, AttributeError):
        return None
    kind = getattr(errors, name, HamletError) if isinstance(name, str) else HamletError
    # A WorkloadError is made of diagnostics; tasks raise one only where the driver's check would have done so.
    if not isinstance(kind, type) or not issubclass(kind, HamletError) or kind is errors.WorkloadError:
        kind = HamletError
    error: HamletError = kind(message)
    return error.about(**values)


def _plain(value: Any) -> Any:
    """A value as JSON has it; what JSON lacks with its type, the rest as its text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return ["tuple", [_plain(each) for each in value]]
    for kind in (datetime.datetime, datetime.date):  # a datetime is a date, too
        if isinstance(value, kind):
            return [kind.__name__, value.isoformat()]
    return ["Decimal", str(value)] if isinstance(value, Decimal) else str(value)


def _value(found: Any) -> Any:
    """The value that `_plain` has been given."""
    if isinstance(found, dict):
        return {name: _value(each) for name, each in found.items()}
    if not isinstance(found, list):
        return found
    kind, value = found
    if kind == "tuple":
        return tuple(map(_value, value))
    if kind == "Decimal":
        return Decimal(value)
    return (datetime.datetime if kind == "datetime" else datetime.date).fromisoformat(value)
