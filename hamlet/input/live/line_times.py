"""The time of a line of text, read without parsing all of it: to send lines as they happened, or to merge files."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from hamlet.errors import DataError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.live.lines import BYTE_ORDER_MARK
from hamlet.input.live.table_lines import header_of
from hamlet.language.moments import moment_of

_POINT = re.compile(rb"\s*@\s*(-?\d+)")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
Seconds = int | Fraction
_COMPRESSED = "this is compressed; send what {} makes of it, or give the file by its name"
_OTHERS = {  # how streams begin that a pipe cannot have, and what to do with them
    b"\x1f\x8b": _COMPRESSED.format("gunzip -c"),
    b"\x28\xb5\x2f\xfd": _COMPRESSED.format("zstd -dc"),
    **{b"BZh%d1AY" % level: _COMPRESSED.format("bunzip2 -c") for level in range(1, 10)},
    b"PAR1\x15": "this is Parquet, which cannot be read from its beginning on; give the file by its name",
    b"ARROW1\0\0": "this is an Arrow file; send an Arrow stream (pyarrow.ipc.new_stream writes one)",
    b"\xff\xfe": "this is UTF-16 text; send it as UTF-8",
    b"\xfe\xff": "this is UTF-16 text; send it as UTF-8",
}

_ARROW = b"\xff\xff\xff\xff"

TimeText = Callable[[bytes], str | None]


def no_events(data: bytes) -> str | None:
    """What is wrong with a stream by its first bytes, where it holds neither lines nor an Arrow stream."""
    return next((told for begin, told in _OTHERS.items() if data.startswith(begin)), None)


def sniffed(data: bytes) -> str | None:
    """The form of a stream by its first bytes; None where more are needed."""
    if data.startswith(_ARROW):
        return "arrow"
    first = data.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not first or any(begin.startswith(data) for begin in (*_OTHERS, _ARROW, BYTE_ORDER_MARK)):
        return None
    if first[:1] in b"@>#;":
        return "monpoly"
    return "json" if first[:1] in b"{[" else "csv"


def time_text(
    form: str, first: bytes, columns: Sequence[str], path: str, names: Sequence[str] | None = None
) -> TimeText | None:
    """What finds the time in a line; None for a form without lines.

    Parameters
    ----------
    form : {'json', 'csv', 'monpoly', 'arrow'}
    first : bytes
        The first line, which is the header of CSV.
    columns : sequence of str
        What the column of times may be called, the likeliest first.
    path : str
        For messages.
    names : sequence of str, optional
        The columns of CSV, where no header comes.

    Raises
    ------
    DataError
        If there is no such column.
    """
    if form == "json":
        return _of_json(columns)
    if form == "csv":
        return _of_csv(first, columns, path, names)
    return _of_log if form == "monpoly" else None


def seconds_in(text: str, time_unit: str) -> Seconds | None:
    """A time in seconds since its zero, exactly; None where the text is no time."""
    if _WHOLE.fullmatch(text):
        units = UNITS_PER_SECOND[time_unit]
        return int(text) if units == 1 else Fraction(int(text), units)
    try:
        return Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError):
        found = moment_of(text)
        return None if found is None else found[0]


def _of_json(columns: Sequence[str]) -> TimeText:
    def time_in(line: bytes) -> str | None:
        try:
            found = json.loads(line, parse_float=str)
        except ValueError as error:
            raise DataError(f"the line is no JSON: {error}") from None
        if not isinstance(found, dict):
            return None
        value = next((found[name] for name in columns if found.get(name) is not None), None)
        return None if value is None else str(value)

    return time_in


def _of_csv(first: bytes, columns: Sequence[str], path: str, known: Sequence[str] | None) -> TimeText:
    names, delimiter = header_of(first, None, path)
    names = names if known is None else list(known)
    column = next((name for name in columns if name in names), None)
    if column is None:
        raise DataError(f"{path}:1: there is no column {columns[0]!r}; --time-column names the time column")
    place, mark = names.index(column), delimiter.encode()
    header = first if known is None else None

    def time_in(line: bytes) -> str | None:
        if line == header:
            return None
        if b'"' in line:  # a value may have the mark, too
            text = line.decode(errors="replace").rstrip("\r\n")
            values: list[str] = next(csv.reader([text], delimiter=delimiter), [])
            return values[place] if len(values) > place else None
        fields = line.rstrip(b"\r\n").split(mark)
        return fields[place].decode(errors="replace") if len(fields) > place else None

    return time_in


def _of_log(line: bytes) -> str | None:
    found = _POINT.match(line)
    return None if found is None else found[1].decode()
