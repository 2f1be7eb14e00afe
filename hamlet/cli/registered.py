"""The commands for a notation that was registered: made of the six things that it is (`hamlet.notation`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
import pyarrow as pa

from hamlet.cli.lasting import lasting
from hamlet.cli.live_options import Live, States
from hamlet.cli.notations import Advance, Part, Settings, Write, read_all, say_notes, say_warnings
from hamlet.engine.live_filter import filter_of
from hamlet.engine.where import chosen_events
from hamlet.errors import Diagnostic, UnsupportedError
from hamlet.input.events import EventSource, open_events
from hamlet.notation.live import WorkTenant
from hamlet.notation.monitor import StepMonitor
from hamlet.notation.notation import Notation, Work
from hamlet.notation.run import driven
from hamlet.runtime.definitions import COLUMNS


class Commands:
    """What `hamlet.cli.notations` asks of a notation."""

    def __init__(self, notation: Notation) -> None:
        self._notation = notation

    def _read(self, paths: Sequence[str], quiet: bool = True) -> list[Work]:
        """Files, checked; the mistakes of all of them are told together."""
        works = read_all(paths, self._notation.read_file)
        say_warnings(works, quiet)
        return works

    def check(self, path: str, settings: Settings) -> str:
        """What is said of a file without errors; with an input its columns are checked, too."""
        (work,) = self._read([path], settings.quiet)
        if settings.source is not None:
            monitor = StepMonitor(work, **_options(settings))
            for batch in _opened(settings).batches(list(work.plan.columns)):
                monitor.push(batch)
            say_notes(monitor.warnings, settings.quiet)
        return f"{path}: a {self._notation.kind}, no errors"

    def warnings(self, path: str, settings: Settings) -> Sequence[Diagnostic]:  # noqa: ARG002
        """What is allowed in a file but probably not meant."""
        return self._read([path])[0].warnings

    def explain(self, path: str, settings: Settings, shown_as: str, html: str | None) -> None:
        """Show what a text will do."""
        (work,) = self._read([path], settings.quiet)
        if html is not None:
            from hamlet.pages.notation import write_explanation  # brings in jinja2, which nothing else needs

            write_explanation(work, html)
            return
        if shown_as != "text":
            raise UnsupportedError(f"a {work.notation.kind} is explained as text or, with --html, as a page")
        click.echo(work.explain())

    def prepare(self, paths: Sequence[str], settings: Settings) -> PreparedWorks:
        """Texts, checked, beside their input."""
        for name in ("report", "load", "save"):
            if getattr(settings, name) is not None:
                raise UnsupportedError(
                    f"--{name} is not given for a {self._notation.kind}; --checkpoint saves, and --http shows a page"
                )
        return PreparedWorks(self._read(paths, settings.quiet), settings)

    def tenants(self, paths: Sequence[str], settings: Settings, live: Live, states: States) -> list[WorkTenant]:
        """Texts, checked, over a stream."""
        columns = {name: settings.columns.get(name) for name in COLUMNS}
        chosen = filter_of(settings.where, settings.since, settings.until, **columns)
        return [
            WorkTenant(
                work,
                _options(settings),
                chosen=chosen,
                names=live.names,
                delimiter=settings.columns.get("delimiter"),
                saved=next(states, None),
            )
            for work in self._read(paths, settings.quiet)
        ]

    def submit(self, paths: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A Spark job for one text."""
        (work,) = self._read(paths, settings.quiet)
        if options["stream"]:
            raise UnsupportedError(
                f"a {work.notation.kind} is submitted as a batch; hamlet monitor --follow takes events as they come"
            )
        from hamlet.spark.look import Choice  # brings in pyspark, which nothing else needs
        from hamlet.spark.notation import submit

        return submit(
            work,
            settings.source or "",
            options["output"],
            master=options.get("master"),
            slices=options.get("slices") or options.get("partitions"),
            output_format=options["output_format"],
            overwrite=bool(options.get("overwrite")),
            keep=paths,
            choice=Choice(settings.where, settings.since, settings.until),
            **settings.columns,
        )


class PreparedWorks:
    """Texts of one call over one input."""

    def __init__(self, works: Sequence[Work], settings: Settings) -> None:
        self._settings = settings
        self._events = _opened(settings)
        self._monitors = [StepMonitor(each, **_options(settings)) for each in works]
        self.rows = self._events.rows
        self.parts = [
            Part(
                name=each.work.name,
                kind=each.work.notation.kind,
                made=partial(self._schema, each.rows_schema),
                named=len(works) > 1,
            )
            for each in self._monitors
        ]

    def _schema(self, of_work: pa.Schema) -> pa.Schema:
        return of_work.set(0, of_work.field(0).with_type(self._events.schema.clock.type))

    def run(self, write: Write, progress: Advance | None) -> Mapping[str, Any]:
        """Drive the monitors to the end of the input."""
        for place, monitor in enumerate(self._monitors):
            for rows in driven(monitor, self._events if not place else _opened(self._settings), progress):
                write(place, rows)
        stats = dict(self._monitors[0].stats)
        notes = [*self._events.notes(), *(each for monitor in self._monitors for each in monitor.warnings)]
        return {**stats, "notes": notes}


def _options(settings: Settings) -> dict[str, Any]:
    """The options of a monitor."""
    found = {name: settings.columns[name] for name in COLUMNS if name in settings.columns}
    return {**found, "lateness": settings.lateness, "late": settings.late, "max_memory": settings.max_memory}


def _opened(settings: Settings) -> EventSource:
    """The input, by what the command line says of it."""
    assert settings.source is not None
    events = open_events(lasting(settings.source, settings.columns.get("input_format")), **settings.columns)
    return chosen_events(events, settings.since, settings.until, settings.where)
