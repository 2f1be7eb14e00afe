"""What every command begins with: the workload checked, the input opened, warnings printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from hamlet.input.events import EventSource, open_events
from hamlet.workload import Workload


def load(
    workload: str, source: str | None, quiet: bool, columns: dict[str, Any], queries: Sequence[str] = ()
) -> tuple[Workload, EventSource | None]:
    """The checked workload (all its queries, or those named), and the opened input if there is one.

    Warnings are printed.
    """
    loaded = Workload.from_file(workload)
    if queries:
        loaded = loaded.select(queries)
    warnings = list(loaded.warnings)
    events = None
    if source is not None:
        events = open_events(source, **columns)
        warnings += loaded.check(events.schema)
    if warnings and not quiet:
        click.echo("\n".join(each.format() for each in dict.fromkeys(warnings)), err=True)
    return loaded, events
