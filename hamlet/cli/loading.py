"""What every command begins with: the workload checked, the input opened, warnings printed."""

from __future__ import annotations

from typing import Any

import click

from hamlet.input.events import EventSource, open_events
from hamlet.workload import Workload


def load(
    workload: str, source: str | None, quiet: bool, columns: dict[str, Any]
) -> tuple[Workload, EventSource | None]:
    """The checked workload, and the opened input if there is one; warnings are printed."""
    loaded = Workload.from_file(workload)
    warnings = list(loaded.warnings)
    events = None
    if source is not None:
        events = open_events(source, **columns)
        warnings += loaded.check(events.schema)
    if warnings and not quiet:
        click.echo("\n".join(each.format() for each in dict.fromkeys(warnings)), err=True)
    return loaded, events
