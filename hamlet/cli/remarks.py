"""What a user would want to know of a run that went well but may not be what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hamlet.input.columns import integers
from hamlet.input.doubts import unit_doubt
from hamlet.input.events import EventSource
from hamlet.language.schema import Clock
from hamlet.output.files import FORMATS
from hamlet.planner.workload import Workload


def remarks(workload: Workload, events: EventSource, found: int, stats: Mapping[str, Any]) -> Iterator[str]:
    """Notes, a line each.

    Parameters
    ----------
    workload : Workload
    events : EventSource
        Has been read.
    found : int
        Rows of all queries.
    stats : mapping
        Of the run.
    """
    if events.sample is None:
        if not found:
            yield "note: there are no events"
        return
    schema = events.schema
    if found:
        return
    if stats.get("matched_events"):
        yield (
            "note: some events match, but no trend was found: perhaps events are further apart than WITHIN, in another "
            "order, or differ in an equivalence or GROUP-BY attribute"
        )
        return
    asked = sorted({type for query in workload.analysis.queries for type in query.types.values()})
    seen = sorted({str(each) for each in events.sample.column(schema.type_column).unique().drop_null().to_pylist()})
    if set(asked) & set(seen):
        yield "note: events of these types come, but local predicates or --where reject them all"
    elif {name.lower() for name in asked} & {name.lower() for name in seen}:
        yield f"note: types are case-sensitive: the workload asks for {_list(asked)}, and the events are {_list(seen)}"
    else:
        yield (
            f"note: the workload asks for {_list(asked)}; the column '{schema.type_column}' begins with {_list(seen)} "
            "(--type-column names another column)"
        )


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


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return f"{shown}, ..." if len(names) > 5 else shown


def _first_time(sample: pa.RecordBatch, clock: Clock) -> int:
    return int(integers(sample.column(clock.column), clock.column)[0][0])
