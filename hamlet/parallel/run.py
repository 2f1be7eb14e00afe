"""`hamlet.run`: a workload over a complete stream, in this process."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import pyarrow as pa

from hamlet.engine.online import Engine, EngineOptions
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.engine.trace import TraceFile
from hamlet.engine.where import chosen_events
from hamlet.errors import WorkloadError
from hamlet.findings import Most, Part, Watch, left_out, of_results, see_unread
from hamlet.input.events import EventSource, open_events
from hamlet.input.file_form import BadRows
from hamlet.input.missing import MissingColumns
from hamlet.input.mistyped import with_values
from hamlet.output.query_part import query_results
from hamlet.output.query_rows import QueryRows
from hamlet.output.result import Asked, Results
from hamlet.parallel.time.side_by_side import side_by_side
from hamlet.planner.skipping import leave_out_useless
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import ZONED
from hamlet.runtime.options import takes
from hamlet.runtime.progress import Progress, showing

if TYPE_CHECKING:
    from hamlet.pages.report import Report
    from hamlet.trends import TrendSample
    from hamlet.why.evidence import Evidence

Format = Literal["parquet", "csv", "json"]
_LOG = logging.getLogger("hamlet")
_OWN = (
    "progress",
    "input_format",
    "delimiter",
    "bad_rows",
    "missing_columns",
    "where",
    "since",
    "until",
    "trace",
    "report",
)


@takes(Options)
def run(
    workload: Workload,
    events: Any,
    *,
    progress: Progress = None,
    input_format: Format | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows = "error",
    missing_columns: MissingColumns | None = None,
    where: str | None = None,
    since: Any = None,
    until: Any = None,
    trace: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    **options: Unpack[RunOptions],
) -> Results:
    """Run a workload over events.

    Parameters
    ----------
    workload : Workload
    events : path, pyarrow Table or RecordBatchReader, dict of numpy arrays, iterable of dicts
    progress : callable or bool, optional
        Called with the number of events read so far; True shows a bar, on a terminal or in a notebook, False none. By
        default notebooks have one where a run takes more than a second.
    input_format : {'parquet', 'csv', 'json'}, optional
        Of a path; by default its extension says.
    delimiter : str, optional
        What separates the fields of CSV; by default the header tells.
    bad_rows : {'error', 'drop'}
        What becomes of rows without a time, CSV rows with too many or too few fields, and lines that are no JSON object
        or have a value of another kind than the attribute had before.
    missing_columns : {'error', 'null'}, optional
        What becomes of a column that one of several files lacks and others have: an error before any row, or NULL,
        which ``warnings`` say; by default an error in CSV, NULL in other formats.
    where : str, optional
        Only events for which this condition over columns is true, beside what the queries say.
    since, until : int, str or datetime, optional
        Only events from a time on, and before another one; row groups of Parquet without any are not read.
    trace : path, optional
        A file for a record per burst: what was decided, and why (`hamlet.engine.trace`). Parquet or, by its
        extension, JSON lines.
    report : path, optional
        Where to write an HTML page about the run: results over time, events by type, where the time went, and the
        sharing decisions. A file that is there is replaced.
    **options
        `hamlet.engine.options.Options`: sharing, benefit, numbers, count_type, threads, time_column, type_column,
        order_column, time_unit, timezone, null_keys, max_memory. Threads compute stretches of time side by side where
        windows do not overlap, or there is one group only; else groups.

    Returns
    -------
    Results
        Rows by query, window and group, NULL first. ``warnings`` says what is odd about them: types that never
        occur, conditions that no event passes, why a query has no rows.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError, MemoryLimitError
        All are `HamletError`: a user's mistake, said in words.

    Examples
    --------
    >>> workload = Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
    >>> run(workload, [{"time": t, "type": "ABB"[t]} for t in range(3)]).rows()
    [{'query': 'q1', 'window_start': 0, 'window_end': 10, 'count': 3}]
    """
    options_of(options, _OWN)
    watched = trace is not None or report is not None
    engine = Engine(workload, **cast(EngineOptions, {**options, "trace": watched}))
    chosen: Options = engine.options
    begin = time.perf_counter()
    reading: dict[str, Any] = {
        "input_format": input_format,
        "delimiter": delimiter,
        "bad_rows": bad_rows,
        "missing_columns": missing_columns,
    }
    columns: dict[str, Any] = {name: getattr(chosen, name) for name in ZONED}
    source: EventSource = open_events(events, **columns, **reading).with_durations(workload.durations)
    whole = source
    source = chosen_events(source, since, until, where)
    _open(engine, source)
    chosen = engine.options
    watch = Watch(workload, source.schema, keep_null_keys=chosen.null_keys == "keep")
    unread = 0 if watched else leave_out_useless(engine.workload, source)
    observer = _observer(workload, source, chosen, report)
    collected = {each.name: each for each in engine.without_rows()}
    chunks = side_by_side(engine, source.rows)
    kept = (workload.analysis.text.source, source.name)
    tracing = TraceFile(trace, kept) if trace is not None else nullcontext()
    with tracing as file, chunks or nullcontext(), showing(progress, source.rows) as told:
        batches = source.batches(_columns(workload, source), progress=told, pane=engine.pane)
        for batch in engine.stages.measured_steps("read", batches):
            engine.executor.distinct = source.distinct
            _extend(collected, engine.feed(batch, wait=True) if chunks is None else chunks.feed(batch))
            watch.see(batch)
            _hand_on(engine, file, observer, batch)
        see_unread(watch, source, unread)
        _extend(collected, engine.close_batches() if chunks is None else chunks.close())
        _hand_on(engine, file, observer)
    rows = list(collected.values())
    stats = _stats(engine, chunks, source, unread) | {
        "seconds": time.perf_counter() - begin,
        "stages": engine.stages.seconds,
        "rows": sum(map(len, rows)),
    }
    choices = {"since": since, "until": until, "where": where}
    watch.left_out = left_out(whole, watch.missing, [name for name, each in choices.items() if each is not None])
    again_over = partial(rows_alone, source, options)
    warnings = source.notes() + of_results(engine.workload, source, watch, rows, again_over)
    again = {**reading, "since": since, "until": until}
    whole_events = events if where is None else source  # of a part there is no evidence, which is said then
    explainer = partial(_why, engine.workload, whole_events, {**options, **again})
    asked = Asked(explainer, engine.workload.explain, partial(_trends, engine.workload, source))
    results = query_results(rows, engine.clock, chosen.count_type, stats, warnings, asked)
    for each in warnings:
        _LOG.warning(each)
    _LOG.info("%s: %d events, %d rows in %.3f s", source.name, stats["events"], stats["rows"], stats["seconds"])
    if observer is not None:
        observer.write(results)
    return results


def _stats(engine: Engine, chunks: Any, source: EventSource, unread: int) -> dict[str, Any]:
    """What a run has counted; events of `unread` were not read, since no query needs them."""
    found: dict[str, Any] = engine.stats | (chunks.stats if chunks is not None else {})
    found["events"] += unread
    if source.left_out:
        found["row_groups"] = {"all": source.row_groups.all, "skipped": source.left_out}
    return found


def _open(engine: Engine, source: EventSource) -> None:
    engine.workload.refuse_misspelled(source.schema, source.types())
    try:
        engine.open(source.schema)
    except WorkloadError as error:
        raise with_values(error, source) from None


def rows_alone(
    source: EventSource,
    options: Mapping[str, Any],
    workload: Workload,
    part: Part | None = None,
    most: Most | None = None,
) -> Results | None:
    """The rows of a workload over a part of some events, and nothing about them; None where it has too many."""
    engine = Engine(workload, **cast(EngineOptions, options))
    _open(engine, source)
    rows = {each.name: each for each in engine.without_rows()}
    part, seen = part or Part(), 0
    limit = None if most is None else most.looking_back if engine.executor.looks_back else most.events
    since, until = (None, None) if part.period is None else map(source.schema.clock.present, part.period)
    with source.row_groups.unchanged():
        source = chosen_events(source, since, until, part.where)
        for batch in source.batches(_columns(workload, source), pane=engine.pane):
            seen += batch.num_rows
            if limit is not None and seen > limit:
                return None
            engine.executor.distinct = source.distinct
            _extend(rows, engine.feed(batch, wait=True))
    _extend(rows, engine.close_batches())
    return query_results(list(rows.values()), engine.clock)


def _trends(workload: Workload, source: EventSource, results: Results, *asked: Any) -> TrendSample:
    """`hamlet.trends.trends_of`, which is loaded when it is first asked for."""
    from hamlet.trends import trends_of

    return trends_of(workload, source, results, *asked)


def _why(workload: Workload, events: Any, options: Mapping[str, Any], row: Mapping[str, Any], limit: int) -> Evidence:
    """`hamlet.why.of_query`, which is loaded when it is first asked for."""
    import hamlet

    return hamlet.why.of_query(workload, events, row, limit=limit, **options)


def _observer(
    workload: Workload, source: EventSource, options: Options, report: str | os.PathLike[str] | None
) -> Report | None:
    """What watches the run for a page about it, if one is wanted."""
    if report is None:
        return None
    from hamlet.pages.report import Report  # brings in jinja2, which nothing else needs

    return Report(workload, source, options, report)


def _hand_on(
    engine: Engine, file: TraceFile | None, observer: Report | None, batch: pa.RecordBatch | None = None
) -> None:
    """The events just read, and the records of bursts since the last call, to whom they are for."""
    if file is None and observer is None:
        return
    with engine.stages.measured("watch"):
        records = engine.trace()
        if file is not None:
            file.write(records)
        if observer is not None:
            observer.decided(records)
            if batch is not None:
                observer.see(batch)


def _columns(workload: Workload, source: EventSource) -> list[str]:
    """The columns that some query reads."""
    return [name for name in workload.attributes if name in source.schema.columns]


def _extend(collected: dict[str, QueryRows], rows: list[QueryRows]) -> None:
    for more in rows:
        collected[more.name].extend(more)
