"""What a user would want to know of a run that went well but may not be what was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from hamlet.input.columns import integers
from hamlet.input.doubts import unit_doubt
from hamlet.input.events import EventSource
from hamlet.language.schema import Clock
from hamlet.output.files import FORMATS


def doubts(events: EventSource) -> Iterator[str]:
    """What is odd about the times, as soon as there is a first event; notes, a line each."""
    if events.sample is not None:
        clock = events.schema.clock
        doubt = unit_doubt(_first_time(events.sample, clock), clock)
        if doubt is not None:
            yield f"note: {doubt}"


def folder_doubt(output: str, output_format: str | None) -> str | None:
    """What is odd about an output directory: a name that only a file would have.

    Parameters
    ----------
    output : str
    output_format : str or None
        As it was asked for.

    Returns
    -------
    str or None
        A sentence, None where there is no doubt.
    """
    named = Path(output).suffix.lower().removeprefix(".")
    if named not in FORMATS or Path(output).is_dir():
        return None
    text = f"{output} will be a folder of {output_format or 'parquet'} files, one folder per query"
    if named == "parquet":
        return text
    return f"{text}; for one file write --output - --output-format {named} > {output}"


def _first_time(sample: pa.RecordBatch, clock: Clock) -> int:
    return int(integers(sample.column(clock.column), clock.column)[0][0])
