"""A specification over a whole input."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from hamlet.errors import UnsupportedError, WorkloadError
from hamlet.input.events import EventSource
from hamlet.input.file_form import BadRows, FileForm
from hamlet.input.missing import MissingColumns
from hamlet.language.schema import Clock
from hamlet.output.result import Asked, Results
from hamlet.runtime.options import made_of, takes
from hamlet.runtime.progress import Progress, showing
from hamlet.streams.clock import Times
from hamlet.streams.input_check import column_errors
from hamlet.streams.monitor import Monitor
from hamlet.streams.options import CommonOptions, Options, check_names
from hamlet.streams.results import Found, RowsPart
from hamlet.streams.sources import batches_of, clock_of, kinds_of, open_stream
from hamlet.streams.specification import Specification

if TYPE_CHECKING:
    from hamlet.why.evidence import Evidence

_READING = (
    *("input_format", "delimiter", "bad_rows", "missing_columns", "order_column", "where", "since", "until"),
    "progress",
)


@takes(Options)
def run(
    spec: Specification,
    events: Any,
    values: bool = False,
    *,
    input_format: str | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows = "error",
    missing_columns: MissingColumns | None = None,
    order_column: str | None = None,
    where: str | None = None,
    since: Any = None,
    until: Any = None,
    progress: Progress = None,
    **options: Unpack[CommonOptions],
) -> Results:
    """Compute a specification over events.

    Parameters
    ----------
    spec : Specification
    events : path, pyarrow Table, RecordBatch or RecordBatchReader, dict of columns, iterable of dicts
        In the order of time; a file is Parquet, CSV or JSON lines.
    values : bool
        Whether the values of outputs are rows, beside those of triggers.
    start, time_column, time_unit, lateness, late, max_memory, max_deadlines, features
        As for `hamlet.streams.Monitor`.
    input_format : {'parquet', 'csv', 'json'}, optional
        The format of a file; by default its extension says.
    delimiter, bad_rows, missing_columns, where, since, until
        As for `hamlet.run`.
    order_column : str, optional
        What orders events of one time; with it, events are sorted.
    progress : callable or bool, optional
        As for `hamlet.run`.

    Returns
    -------
    Results
        A row for each trigger that fires, and under `values` for each value of an output, in the order of time.

    Raises
    ------
    DataError
        If the input cannot be read, times decrease, or a computation goes wrong (the message names stream and time).

    Examples
    --------
    >>> import hamlet.streams as streams
    >>> spec = streams.Specification.parse("input a: Int64  output b := a + a.offset(by: -1).defaults(to: 0)")
    >>> streams.run(spec, {"time": [0, 1], "a": [2, 3]}, values=True).rows()
    [{'stream': 'b', 'time': 0, 'value': 2}, {'stream': 'b', 'time': 1, 'value': 5}]
    """
    chosen = made_of(Options, {"values": values, **options}, _READING)
    monitor = Monitor(spec, **asdict(chosen))
    check_names(chosen, order_column)
    source = open_stream(
        events,
        spec.inputs,
        where=where,
        since=since,
        until=until,
        time_column=chosen.time_column,
        order_column=order_column,
        time_unit=chosen.time_unit,
        input_format=input_format,
        form=FileForm(delimiter, bad_rows, missing_columns=missing_columns),
    )
    found: list[Found] = []
    with showing(progress, source.rows) as told:
        drive(monitor, source, found.extend, told)
    warnings = source.notes() + monitor.warnings
    again = {"input_format": input_format, "delimiter": delimiter, "bad_rows": bad_rows, "order_column": order_column}
    again |= {"missing_columns": missing_columns}
    again |= {"where": where, "since": since, "until": until, "start": chosen.start}
    again |= {"time_column": chosen.time_column, "time_unit": chosen.time_unit}
    part = RowsPart(monitor.form, found, monitor.clock, monitor.start_at or 0)
    return Results(
        [part], monitor.stats, warnings, Asked(partial(_why, spec, events, again), partial(_explained, spec))
    )


def _explained(spec: Any) -> str:
    return "\n\n".join(each.explain() for each in (spec if isinstance(spec, list | tuple) else [spec]))


def _why(spec: Any, events: Any, options: Mapping[str, Any], row: Mapping[str, Any], limit: int) -> Evidence:
    """The values behind a row, or behind its absence: `hamlet.why.of_specification`, loaded when first asked for."""
    import hamlet

    if isinstance(events, Iterator):
        raise UnsupportedError("the events cannot be read again; give a file, a table or a list to run")
    return hamlet.why.of_specification(spec, events, row, limit=limit, **options)


def begun(monitors: Sequence[Monitor], source: EventSource) -> tuple[Iterator[pa.RecordBatch], Clock | None]:
    """The events of an input, of which monitors know columns and times; and what these are, None without any event."""
    clock = clock_of(source)
    every = list({each.name: each for monitor in monitors for each in monitor.spec.inputs}.values())
    for each in monitors:
        each.attach(source.name)
        # every input that has no column, or one of another type
        mistakes = column_errors(each.spec.program, kinds_of(source)) if source.schema.closed else ()
        if mistakes:
            raise WorkloadError(mistakes)
        if source.arrow_schema.names:  # no column at all: a list without events
            each.times = Times(each.find_time(source.arrow_schema.names), each.options.time_unit, source.name)
            each.times.clock = clock
    batches = batches_of(source, every)
    first = next(batches, None)
    return (iter(()), None) if first is None else (itertools.chain([first], batches), clock)


def drive(
    monitor: Monitor, source: EventSource, take: Callable[[list[Found]], Any], progress: Callable[[int], None] | None
) -> None:
    """Feed a monitor all events, and hand on what it finds, batch by batch."""
    for batch in begun([monitor], source)[0]:
        monitor.take(batch, source.schema.closed)
        take(monitor.evaluator.take())
        if progress is not None:
            progress(monitor.arrived)
    take(monitor.close_batches())
