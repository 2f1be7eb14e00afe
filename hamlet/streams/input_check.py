"""The inputs of a specification against the columns of events, before any of them is read."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from hamlet.errors import Diagnostic, near_miss
from hamlet.frontend.reports import Reports
from hamlet.input.widening import is_bytes
from hamlet.streams.program.ir import Program, Scalar, Stream


def column_errors(
    program: Program, columns: Mapping[str, pa.DataType | None], unreadable: Mapping[str, str] | None = None
) -> tuple[Diagnostic, ...]:
    """What does not fit, all at once.

    Parameters
    ----------
    program : Program
        A checked specification.
    columns : mapping of str to DataType or None
        Names and types of the events' columns; None where no value has been seen yet.
    unreadable : mapping of str to str, optional
        Columns of text that do not spell values of the input: what was found in them.

    Returns
    -------
    tuple of Diagnostic
        An input without a column of its name, or with one whose values it cannot be, at its declaration.

    Examples
    --------
    >>> from hamlet.streams import Specification
    >>> program = Specification.parse("input price: Float64, volume: UInt64").program
    >>> [each.message for each in column_errors(program, {"prize": pa.float64(), "volume": pa.bool_()})]
    ["the events have no column 'price'", 'volume is UInt64, and its column holds bool']
    """
    reports = Reports(program.text, program.source)
    for stream in program.streams[: program.inputs]:
        if stream.name not in columns:
            _missing(stream, columns, reports)
            continue
        if unreadable is not None and stream.name in unreadable:
            hint = "'#' or nothing says that an event has no value"
            reports.error(f"{stream.name} is {stream.type}, and {unreadable[stream.name]}", stream.span, hint)
            continue
        found = columns[stream.name]
        if found is not None and not _fits(stream, found):
            message = f"{stream.name} is {stream.type}, and its column holds {found}"
            reports.error(message, stream.span, _hint(stream, found))
    return tuple(reports.errors)


def _missing(stream: Stream, columns: Mapping[str, pa.DataType | None], reports: Reports) -> None:
    meant = near_miss(stream.name, columns)
    shown = ", ".join(list(columns)[:8]) + (", ..." if len(columns) > 8 else "")
    hint = f"did you mean {meant}?" if meant is not None else f"the columns are {shown}"
    reports.error(f"the events have no column '{stream.name}'", stream.span, hint)


def _fits(stream: Stream, found: pa.DataType) -> bool:
    """Whether values of a column can be those of an input; text can be anything that it spells."""
    if pa.types.is_dictionary(found):
        found = found.value_type
    text = pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)
    if pa.types.is_null(found):
        return True
    kind = stream.type
    if not isinstance(kind, Scalar):
        return bool(pa.types.is_nested(found))
    if kind.name == "Bytes" and is_bytes(found):
        return True
    if kind.family == "String":
        return bool(text or pa.types.is_integer(found))
    if kind.family == "Bool":
        return bool(text or pa.types.is_boolean(found))
    number = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    return bool(text or number)


def _hint(stream: Stream, found: pa.DataType) -> str:
    """The type of an input that a column can be, or what it could hold instead."""
    declared = "String"
    if pa.types.is_boolean(found):
        declared = "Bool"
    elif pa.types.is_integer(found):
        declared = "UInt64" if pa.types.is_unsigned_integer(found) else "Int64"
    elif pa.types.is_floating(found) or pa.types.is_decimal(found):
        declared = "Float64"
    elif pa.types.is_temporal(found):
        return "times are no values of streams; give numbers, such as seconds"
    return f"declare it so: input {stream.name}: {declared}"
