"""A line of JSON as the object that it holds, and what is said of a line that holds none."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from hamlet.frontend.time_column import time_column_in

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
MOST_BRACKETS = 400  # in one line; Arrow's reader recurses, and a deep enough line would crash the process


def all_blank(name: str) -> str:
    """What is wrong with a file that has no line."""
    return f"{name} holds no events: all its lines are blank"


def brackets_in(text: bytes) -> int:
    """How many arrays and objects a text may begin."""
    return text.count(b"[") + text.count(b"{")


def object_of(line: bytes) -> dict[str, Any]:
    """The object on a line; NaN and Infinity are numbers, as for Arrow.

    Raises
    ------
    ValueError
        If there is none, or a key stands in it twice.
    """
    try:
        found = json.loads(str(line, "utf-8"), object_pairs_hook=_object, parse_float=_double)
    except UnicodeDecodeError:
        raise ValueError("the line is not UTF-8 text") from None
    except RecursionError:
        raise ValueError("values are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the line is no JSON: {error.msg} (column {error.colno})") from None
    except _TellingError:
        raise
    except ValueError:  # an integer of more digits than Python reads
        raise ValueError("the line holds a number of several thousand digits") from None
    if _SURROGATE.search(line):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a text has half of a character: one of two surrogates, such as \\ud83d") from None
    if isinstance(found, dict):
        return found
    if isinstance(found, list):
        raise ValueError("the line holds a list; JSON lines have one object per line, without [ ] around them all")
    raise ValueError(f"the line holds {brief(found)}; each line must hold one JSON object")


def first_names(lines: Iterable[bytes]) -> list[str]:
    """The names of the first event that has a time; a line that holds no event is passed over."""
    for line in lines:
        with contextlib.suppress(ValueError):
            event = object_of(line)
            if time_column_in(event) is not None:
                return list(event)
    return []


class _TellingError(ValueError):
    """What is wrong with a line of JSON that Python can read."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise _TellingError(f"the line has {brief(twice)} twice")
    return found


def _double(digits: str) -> float:
    """A number with a point or an exponent; Python takes one beyond the doubles for infinity, and Arrow refuses it."""
    found = float(digits)
    if math.isinf(found):
        raise _TellingError(f"the line holds {brief(found)}")
    return found


def brief(value: Any) -> str:
    """A value as JSON for a message, cut where it is long."""
    if isinstance(value, float) and math.isinf(value):
        return "a number beyond the doubles"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, int) or abs(value) < 1 << 200 else "a number"
    return text if len(text) <= 60 else f"{text[:57]}..."
