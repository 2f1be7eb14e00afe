"""Which value keeps a column from being numbers: for a comparison with a number, and a sum, over a column of text."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import Diagnostic, WorkloadError
from hamlet.input.events import EventSource
from hamlet.input.widening import is_text

_NAME = r'\.("(?:[^"]|"")+"|\w+)'
_COMPARED = re.compile(rf"{_NAME} \(STRING\) cannot be compared with .* \((?:INT|DOUBLE)\)")
_ADDED = re.compile(rf"(?:SUM|AVG) takes .*{_NAME} is STRING")
_COMMA = re.compile(r"[+-]?[\d. ]*\d,\d+")
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def with_values(error: WorkloadError, source: EventSource) -> WorkloadError:
    """Add to an error about text where numbers are meant the column's first value that is no number."""
    if not source.repeatable:
        return error
    return WorkloadError(_told(each, source) for each in error.diagnostics)


def _told(diagnostic: Diagnostic, source: EventSource) -> Diagnostic:
    found = _COMPARED.search(diagnostic.message) or _ADDED.search(diagnostic.message)
    if found is None:
        return diagnostic
    name = found[1][1:-1].replace('""', '"') if found[1].startswith('"') else found[1]
    if name not in source.arrow_schema.names or not is_text(source.arrow_schema.field(name).type):
        return diagnostic
    row = 1
    for batch in source.batches([name]):
        column = batch.column(batch.schema.get_field_index(name))
        texts = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        other = pc.fill_null(pc.invert(pc.match_substring_regex(texts, _NUMBER)), False)
        place = pc.index(other, True).as_py()
        if place >= 0:
            text = texts[place].as_py()
            hint = f"the first value of {name} that is not a number is {text!r}, in row {row + place} by time"
            if _COMMA.fullmatch(text.strip()):
                return replace(diagnostic, hint=f"{hint}; numbers are written with a point, as in 20.5")
            return replace(diagnostic, hint=hint if diagnostic.hint is None else f"{hint}; {diagnostic.hint}")
        row += batch.num_rows
    return diagnostic
