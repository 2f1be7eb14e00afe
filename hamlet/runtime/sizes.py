"""Sizes of memory as people write and read them."""

from __future__ import annotations

import re
from fractions import Fraction
from types import EllipsisType
from typing import SupportsIndex

from hamlet.errors import OptionError

Size = int | str
Limit = Size | EllipsisType | None  # of a monitor that is restored; ``...`` for the one that it was saved with

_UNITS = {"": 1, **{f"{prefix}b": 1000**power for power, prefix in enumerate(("", "k", "m", "g", "t"))}}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate(("k", "m", "g", "t"), 1)}
_SIZE = re.compile(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([a-zA-Z]*)\s*", re.ASCII)


def bytes_of(size: Size | None) -> int | None:
    """A size in bytes.

    Parameters
    ----------
    size : int, str or None
        Bytes, or text such as ``'2 GiB'`` (2 * 1024^3 bytes), ``'500 MB'`` (500 * 1000^2) or ``'1000000'``.

    Raises
    ------
    OptionError
        If it is neither, or not positive.

    Examples
    --------
    >>> bytes_of("1.5 KiB"), bytes_of("500 MB"), bytes_of(10**6), bytes_of(None)
    (1536, 500000000, 1000000, None)
    """
    if size is None:
        return None
    found = None
    if isinstance(size, SupportsIndex) and not isinstance(size, bool):  # numpy's integers, too
        found = size.__index__()
    elif isinstance(size, str) and (match := _SIZE.fullmatch(size)) and match[2].lower() in _UNITS:
        found = int(Fraction(match[1]) * _UNITS[match[2].lower()])
    if found is None or found <= 0:
        raise OptionError(
            f"max memory is {size!r}; it must be a number of bytes > 0 or a size such as '2 GiB' or '500 MB'"
        )
    return found


def limit_of(max_memory: Limit) -> dict[str, Size | None]:
    """What is to stand in the options of a save in place of its own limit of memory, by name; nothing for ``...``.

    A limit is of the machine and not of the stream, so what was saved may go on with any: it is no part of the state.
    """
    if isinstance(max_memory, EllipsisType):
        return {}
    bytes_of(max_memory)
    return {"max_memory": max_memory}


def size_text(size: int) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> [size_text(size) for size in (17, 2048, 1536 * 1024**2, 10 * 1024**4)]
    ['17 bytes', '2 KiB', '1.5 GiB', '10 TiB']
    """
    power = max(power for power in range(5) if size >= 1024**power or power == 0)
    value = f"{size / 1024**power:.{1 if power else 0}f}".removesuffix(".0")
    return f"{value} {('bytes' if size != 1 else 'byte', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
