"""``hamlet check`` and ``explain`` for workloads of trend queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.notations import Settings, say_notes
from hamlet.cli.options import input_name
from hamlet.engine.where import chosen_events
from hamlet.errors import Diagnostic
from hamlet.findings import Watch, found_by, see_unread
from hamlet.input.events import EventSource
from hamlet.planner.explain import explain as explain_workload
from hamlet.planner.skipping import leave_out_useless
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import ZONED


def check(path: str, settings: Settings) -> str:
    """What is said of a workload without errors; with an input also what it never has."""
    workload, events = load(path, settings.source, settings.quiet, _columns(settings), all_errors=True)
    if events is not None and not settings.quiet:
        events = chosen_events(events, settings.since, settings.until, settings.where)
        watch = Watch(workload, events.schema)
        unread = leave_out_useless(workload, events)
        watch.see_some(events.batches([name for name in watch.columns if name in events.schema.columns]))
        see_unread(watch, events, unread)
        say_notes([*events.notes(), *found_by(watch)], settings.quiet)
    count = len(workload.names)
    return f"{path}: {count} quer{'y' if count == 1 else 'ies'}, no errors"


def warnings(path: str, settings: Settings) -> Sequence[Diagnostic]:  # noqa: ARG001
    """What is allowed in a workload but probably not meant."""
    return Workload.from_file(path).warnings


def explain(path: str, settings: Settings, shown_as: str, html: str | None) -> None:
    """Show how a workload will run."""
    workload, events, _ = _chosen(path, settings)
    schema = None if events is None else events.schema
    if html is None:
        click.echo(explain_workload(workload, schema, shown_as, timezone=settings.timezone))
        return
    from hamlet.pages.explained import write_explanation  # brings in jinja2, which nothing else needs

    write_explanation(workload, html, schema, input_name(settings.source) or None, timezone=settings.timezone)


def estimated(path: str, settings: Settings, numbers: str, *, as_json: bool) -> str:
    """What a run over the input will take, as text or as JSON."""
    from hamlet.parallel.estimate import estimate  # runs, which nothing else here does

    workload, _, chosen = _chosen(path, settings)
    columns = _columns(settings)
    found = estimate(workload, chosen, numbers=numbers, **{name: columns[name] for name in ZONED})
    return json.dumps(found.facts()) if as_json else found.text()


def _chosen(path: str, settings: Settings) -> tuple[Workload, EventSource | None, Any]:
    """The workload, the input, and the events of it that are wanted; it is said what need not be read."""
    workload, events = load(path, settings.source, settings.quiet, _columns(settings), tuple(settings.queries))
    if events is None:
        return workload, None, None
    chosen = chosen_events(events, settings.since, settings.until, settings.where)
    leave_out_useless(workload, chosen)
    said = chosen.row_groups.sentence("a run skips")
    say_notes([] if said is None else [said], settings.quiet)
    return workload, events, chosen


def _columns(settings: Settings) -> dict[str, Any]:
    return {**settings.columns, "timezone": settings.timezone}
