"""What every command begins with: the workload checked, the input opened, warnings printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hamlet.cli.lasting import lasting
from hamlet.cli.options import Input, inputs_of
from hamlet.errors import Diagnostic, HamletError, OptionError, WorkloadError
from hamlet.input.events import EventSource, open_events
from hamlet.input.mistyped import with_values
from hamlet.planner.workload import Workload, mistaken_row_names, mistakes

_OF_EVENTS = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".gz", ".zst", ".bz2")


def load(
    workload: str,
    source: Input | None,
    quiet: bool,
    columns: dict[str, Any],
    queries: Sequence[str] = (),
    *,
    all_errors: bool = False,
) -> tuple[Workload, EventSource | None]:
    """The checked workload (all its queries, or those named), and the opened input if there is one.

    Warnings are printed. The input ``-`` is standard input; it and pipes are copied to a temporary file, since an input
    is read twice: the first time to see whether it is in order. Mistakes in the text alone are reported before the
    input is opened, which may take a while, unless all errors are wanted.
    """
    _refuse_swapped(workload, source)
    found: list[Diagnostic] = []
    try:
        loaded = Workload.from_file(workload)
    except WorkloadError as error:
        found += error.diagnostics
        if source is not None:
            if all_errors:
                raise _with_columns(error, workload, source, columns) from None
            raise
    if source is None:
        special = {columns.get(f"{role}_column"): role for role in ("order", "type", "time")}
        found += mistaken_row_names(workload, {name: role for name, role in special.items() if name is not None})
        if found:
            raise WorkloadError(found)
    if queries:
        loaded = loaded.select(queries)
    if source is None:
        loaded.check_zone(columns.get("timezone"))
    warnings = list(loaded.warnings)
    events = None
    if source is not None:
        events = open_events(lasting(source, columns.get("input_format")), **columns).with_durations(loaded.durations)
        try:
            warnings += loaded.check(events.schema)
        except WorkloadError as error:
            raise with_values(error, events) from None
    if warnings and not quiet:
        click.echo("\n".join(each.format() for each in dict.fromkeys(warnings)), err=True)
    return loaded, events


def _refuse_swapped(workload: str, source: Input | None) -> None:
    """Raise OptionError where the workload is a file of events: reading it as queries would give an error per line."""
    named = Path(workload).suffix.lower()
    if named in _OF_EVENTS:
        swapped = next((each for each in inputs_of(source) if each.endswith(".sase")), None)
        hint = f"; is it the input, and {swapped} the workload?" if swapped else ""
        raise OptionError(f"{workload} is a file of events by its name, and a workload is expected here{hint}")


def _with_columns(error: WorkloadError, workload: str, source: Input, columns: dict[str, Any]) -> WorkloadError:
    """The errors of a text together with those against the input's columns, if there is such an input."""
    try:
        schema = open_events(lasting(source, columns.get("input_format")), **columns).schema
    except HamletError:
        return error
    return WorkloadError([*error.diagnostics, *mistakes(workload, schema)])
