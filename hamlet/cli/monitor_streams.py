"""``hamlet monitor``, ``check``, ``explain`` and ``submit`` for stream specifications."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from hamlet.cli.lasting import lasting
from hamlet.cli.live_options import Live, States
from hamlet.cli.notations import (
    Advance,
    Part,
    Settings,
    Write,
    checkpoint_of,
    following,
    read_all,
    say_notes,
    say_warnings,
    together,
)
from hamlet.cli.options import input_name, inputs_of
from hamlet.errors import DataError, Diagnostic, WorkloadError
from hamlet.input.events import EventSource
from hamlet.streams import Monitor, Specification
from hamlet.streams.check.analysis import Checked
from hamlet.streams.clock import text_of
from hamlet.streams.input_check import column_errors
from hamlet.streams.live_choice import LiveChoice
from hamlet.streams.memory import declaration_text
from hamlet.streams.program import ir
from hamlet.streams.program.together import Together, can_run_together
from hamlet.streams.results import Found, RowForm
from hamlet.streams.run import begun
from hamlet.streams.sources import kinds_of, misfits_of, open_by_name, open_stream
from hamlet.streams.tenant import StreamTenant
from hamlet.streams.trends import TIME, trend_events


def prepare(paths: Sequence[str], settings: Settings) -> PreparedSpecifications:
    """Specifications, checked, beside their input."""
    specs = read_all(paths, Specification.from_file)
    say_warnings(specs, settings.quiet)
    return PreparedSpecifications(specs, settings)


def tenants(paths: Sequence[str], settings: Settings, live: Live, states: States) -> list[StreamTenant]:
    """Specifications, checked, over a stream."""
    specs = read_all(paths, Specification.from_file)
    _inputs(specs)
    say_warnings(specs, settings.quiet)
    return [
        StreamTenant(
            spec,
            Path(spec.source).stem,
            {**monitor_options(settings), "order_column": settings.columns.get("order_column")},
            chosen=_live_choice(spec, settings),
            named=len(specs) > 1,
            names=live.names,
            delimiter=settings.columns.get("delimiter"),
            saved=next(states, None),
        )
        for spec in specs
    ]


def _live_choice(spec: Specification, settings: Settings) -> LiveChoice | None:
    """Which events of a stream count; None where all do."""
    asked = (settings.where, settings.since, settings.until)
    if not any(each is not None for each in asked):
        return None
    unit = settings.columns.get("time_unit", "s")
    return LiveChoice(spec.inputs, *asked, time_column=_time_column(settings), time_unit=unit)


def _inputs(specs: Sequence[Specification]) -> list[ir.Stream]:
    """The inputs of all specifications, each name once; refused where two want it as different types."""
    known: dict[str, ir.Stream] = {}
    for spec in specs:
        for each in spec.inputs:
            other = known.setdefault(each.name, each)
            if ir_family(other) != ir_family(each):
                raise DataError(
                    f"input {each.name} is of type {other.type} in one specification and {each.type} in another; "
                    "give it one type, or monitor them in two calls"
                )
    return list(known.values())


def ir_family(stream: ir.Stream) -> str:
    """What a column is read as."""
    kind = stream.type
    return kind.family if isinstance(kind, ir.Scalar) and kind != ir.BYTES else str(kind)


def _opened(settings: Settings, inputs: Sequence[ir.Stream]) -> EventSource:
    """The input, by what the command line says of it."""
    if settings.trends is not None:
        return open_stream(_trends(settings, settings.trends), inputs, time_column=TIME)
    assert settings.source is not None
    chosen = {name: getattr(settings, name) for name in ("where", "since", "until")}
    source = lasting(settings.source, settings.columns.get("input_format"))
    return open_by_name(source, inputs, {**settings.columns, **chosen})


def _trends(settings: Settings, workload: str) -> pa.Table:
    """The rows of trend queries over the input, as events."""
    from hamlet.cli.loading import load  # which, with the others, brings in the language of queries
    from hamlet.engine.where import chosen_events
    from hamlet.parallel.run import run as run_workload

    checked, events = load(workload, settings.source, settings.quiet, dict(settings.columns))
    assert events is not None
    chosen = chosen_events(events, settings.since, settings.until, settings.where)
    return trend_events(run_workload(checked, chosen))


def _time_column(settings: Settings) -> str | None:
    return TIME if settings.trends is not None else settings.columns.get("time_column")


class PreparedSpecifications:
    """Specifications of one call over one input."""

    def __init__(self, specs: Sequence[Specification], settings: Settings) -> None:
        self._specs, self._settings = specs, settings
        self._watch = _report(specs, settings)
        self._source = source_of(specs, settings)
        self._forms = [RowForm(spec.program, settings.values) for spec in specs]
        self._together: Together | None = None
        if len(specs) > 1 and can_run_together([spec.program for spec in specs]):
            self._together = Together([spec.program for spec in specs])
            common = Checked(specs[0].checked.text, self._together.program, ())
            self._monitors = [_monitor(Specification(common), settings)]
        else:
            self._monitors = [_monitor(spec, settings) for spec in specs]
        self._batches, self._clock = begun(self._monitors, self._source)
        self.parts = [
            Part(
                name=Path(spec.source).stem,
                kind="specification",
                made=partial(form.schema, self._clock),
                named=len(specs) > 1,
                sparse=True,
                title="row",
            )
            for spec, form in zip(specs, self._forms, strict=True)
        ]

    @property
    def rows(self) -> int | None:
        """How many events the input has."""
        return self._source.rows

    def run(self, write: Write, progress: Advance | None) -> Mapping[str, Any]:
        """Monitor the input."""
        started = time.perf_counter()
        for batch in self._batches:
            for place, monitor in enumerate(self._monitors):
                monitor.take(batch, self._source.schema.closed)
                self._hand_out(write, place, monitor, monitor.evaluator.take())
            if progress is not None:
                progress(self._monitors[0].arrived)
        for place, monitor in enumerate(self._monitors):
            self._hand_out(write, place, monitor, monitor.close_batches())
        stats: dict[str, Any] = together([monitor.stats for monitor in self._monitors])
        told = [said for monitor in self._monitors for said in monitor.warnings]
        stats["notes"] = [*self._source.notes(), *dict.fromkeys(told)]
        if self._watch is not None:
            settings = [("start", self._settings.start)] if self._settings.start is not None else []
            seconds = time.perf_counter() - started
            sources = [word for each in inputs_of(self._settings.source) for word in ("--input", each)]
            commands = [["hamlet", "why", spec.source, *sources, "--check"] for spec in self._specs]
            self._watch.write(input_name(self._settings.source), settings, stats, seconds, self._why, commands)
        return stats

    def _why(self, place: int, row: Mapping[str, Any]) -> Any:
        """The evidence of a row of a specification."""
        from hamlet.why.values.why import READING, of_specification

        columns = self._settings.columns
        options = {name: columns[name] for name in READING if columns.get(name) is not None}
        if self._settings.start is not None:
            options["start"] = self._settings.start
        return of_specification(self._specs[place], self._settings.source, row, **options)

    def _hand_out(self, write: Write, place: int, monitor: Monitor, found: list[Found]) -> None:
        """Write rows; those of a common monitor to the specifications whose streams they are of."""
        if self._together is None:
            self._write(write, place, monitor, found)
            return
        for which, numbers in enumerate(self._together.numbers):
            mine = [(time, numbers[row], key, value) for time, row, key, value in found if row in numbers]
            self._write(write, which, monitor, mine)

    def _write(self, write: Write, place: int, monitor: Monitor, found: list[Found]) -> None:
        if found:
            write(place, self._forms[place].batch(found, self._clock, monitor.start_at or 0))
            if self._watch is not None and self._clock is not None:
                start, form = monitor.start_at or 0, self._forms[place]
                self._watch.see(place, found, start, partial(text_of, self._clock))
                self._watch.keep(place, lambda count: form.dicts(found[:count], self._clock, start))


def _report(specs: Sequence[Specification], settings: Settings) -> Any:
    """What watches the run for a page about it, if one is wanted; lines are drawn of streams of numbers."""
    if settings.report is None:
        return None
    from hamlet.pages.specifications import SpecificationReport  # brings in jinja2, which nothing else needs

    about = [
        (
            Path(spec.source).stem,
            spec.text,
            {each.id: (each.name, declaration_text(spec.program, each)) for each in spec.program.triggers},
            {
                each.id: each.name
                for each in spec.program.streams
                if each.kind is ir.Kind.OUTPUT and ir_family(each) in ("Int", "UInt", "Float", "Bool")
            },
        )
        for spec in specs
    ]
    return SpecificationReport(about, settings.report, [*inputs_of(settings.source), *(spec.source for spec in specs)])


def source_of(specs: Sequence[Specification], settings: Settings) -> EventSource:
    """The events that specifications read."""
    return _opened(settings, _inputs(specs))


def _monitor(spec: Specification, settings: Settings) -> Monitor:
    return Monitor(spec, **monitor_options(settings))


def monitor_options(settings: Settings) -> dict[str, Any]:
    """The options of a monitor, by what the command line says."""
    more = {} if settings.max_deadlines is None else {"max_deadlines": settings.max_deadlines}
    return {
        "values": settings.values,
        "start": settings.start,
        "time_column": _time_column(settings),
        "time_unit": settings.columns.get("time_unit", "s"),
        "lateness": settings.lateness,
        "late": settings.late,
        "max_memory": settings.max_memory,
        **more,
    }


def check(path: str, settings: Settings) -> str:
    """What is said of a specification without errors."""
    spec = Specification.from_file(path)
    never = _check_input(spec, settings)
    say_warnings([spec], settings.quiet)
    say_notes(never, settings.quiet)
    outputs = sum(each.kind is ir.Kind.OUTPUT for each in spec.program.streams)
    counts = ((len(spec.inputs), "input"), (outputs, "output"), (len(spec.program.triggers), "trigger"))
    said = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
    return f"{path}: {said}, no errors"


def _check_input(spec: Specification, settings: Settings, most: int | None = None) -> list[str]:
    """Raise what is wrong with the input, if there is one; gives what never comes in its first `most` batches."""
    if settings.source is None:
        return []
    source = _opened(settings, spec.inputs)
    _fitting(spec, source)
    monitor = _monitor(spec, settings)
    never: list[str] = []
    for batch in itertools.islice(begun([monitor], source)[0], most):
        never = monitor.look(batch)
        if not never:
            break
    return never


def _fitting(spec: Specification, source: EventSource) -> None:
    """Raise WorkloadError with every input that has no column, or one of other values."""
    if source.schema.closed:
        mistakes = column_errors(spec.program, kinds_of(source), misfits_of(source))
        if mistakes:
            raise WorkloadError(mistakes)


def warnings(path: str, settings: Settings) -> Sequence[Diagnostic]:  # noqa: ARG001
    """What is allowed in a specification but probably not meant."""
    return Specification.from_file(path).warnings


def explain(path: str, settings: Settings, shown_as: str, html: str | None) -> None:
    """Say how a specification will run."""
    from hamlet.streams.explain import explain as explain_specification

    spec = Specification.from_file(path)
    _check_input(spec, settings, most=1)
    say_warnings([spec], settings.quiet)
    if html is None:
        click.echo(explain_specification(spec, shown_as))
        return
    from hamlet.streams.page import write_specification  # brings in jinja2, which nothing else needs

    write_specification(spec, html)


def submit(paths: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run specifications as a Spark job."""
    specs = read_all(paths, Specification.from_file)
    if len(specs) > 1:
        raise click.UsageError("one specification a job: give one .lola file")
    say_warnings(specs, settings.quiet)
    if options["stream"]:
        return _follow(specs[0], settings, options)
    from hamlet.spark.specifications import submit as submit_specification

    names = ("time_column", "time_unit", "input_format", "delimiter", "bad_rows", "missing_columns")
    return submit_specification(
        specs[0],
        settings.source or "",
        options["output"],
        slices=options.get("slices") or options.get("partitions"),
        values=settings.values,
        start=settings.start,
        where=settings.where,
        since=settings.since,
        until=settings.until,
        master=options["master"],
        output_format=options["output_format"],
        overwrite=bool(options["overwrite"]),
        **{name: settings.columns[name] for name in names if settings.columns.get(name) is not None},
    )


def _follow(spec: Specification, settings: Settings, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The continuous job, until it is stopped."""
    checkpoint = checkpoint_of(given)
    if not isinstance(settings.source, str):
        raise click.UsageError("--stream of a specification follows one folder; give one --input")
    from hamlet.spark.specifications import submit_stream  # brings in pyspark, which nothing else needs

    names = ("time_column", "time_unit", "input_format", "delimiter", "bad_rows", "missing_columns")
    return submit_stream(
        spec,
        settings.source,
        given["output"],
        checkpoint,
        output_format=given["output_format"],
        slices=given["slices"] or given["partitions"],
        values=settings.values,
        start=settings.start,
        lateness=settings.lateness,
        late=settings.late,
        max_memory=settings.max_memory,
        **following(given, settings.quiet),
        **{name: settings.columns[name] for name in names if settings.columns.get(name) is not None},
    )
