"""Types of events that are there, and are all left out by the user's own choice of events."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext

from hamlet.errors import one_of, option
from hamlet.findings.local import of_type
from hamlet.findings.reasons import MOST_EVENTS
from hamlet.input.events import EventSource
from hamlet.language.printing import name_text


def left_out(whole: EventSource, kinds: Collection[str], chosen: Collection[str]) -> dict[str, str]:
    """Why types do not occur among the chosen events, as a clause each, where they occur among all of them.

    Parameters
    ----------
    whole : EventSource
        All events.
    kinds : collection of str
        Types that do not occur.
    chosen : collection of str
        The options that choose among events: ``since``, ``until``, ``where``.
    """
    if not kinds or not chosen or not whole.repeatable or whole.rows is None or whole.rows > MOST_EVENTS:
        return {}
    counts = dict.fromkeys(kinds, 0)
    for reason in (None, *whole.row_groups.skipped()):
        with nullcontext() if reason is None else whole.row_groups.only_left_out(reason):
            for batch in whole.batches([]):
                for kind in kinds:
                    counts[kind] += int(of_type(batch, whole.schema.type_column, kind).sum())
    by = one_of([option(each) for each in chosen])
    return {kind: f"{by} leaves out {_counted(count, name_text(kind))}" for kind, count in counts.items() if count}


def _counted(events: int, kind: str) -> str:
    return f"all {events:,} {kind} events" if events > 1 else f"the only {kind} event"
