"""What a run found that was probably not meant, in sentences: types that never occur, conditions that nothing passes.

A query that finds nothing, or too much, is no error, and its rows look like any other rows. `Watch` sees the events of
a run as they pass and knows what has not occurred (it stops looking once everything has), `reasons` says why a query
has no rows, and `doubts_of_counts` what large counts usually mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.findings.beside import Beside, Most, Part, Rerun
from hamlet.findings.groups import doubts_of_groups
from hamlet.findings.having import rejected_by_having
from hamlet.findings.large import (
    Tally,
    doubts_of_counts,
    doubts_of_selections,
    keys_of,
    may_explode,
    may_mix,
    tally_of,
)
from hamlet.findings.left_out import left_out
from hamlet.findings.often import doubts_of_combinations, doubts_of_sums
from hamlet.findings.reasons import Again, reasons
from hamlet.findings.seen import Seen, of_names, seen_in
from hamlet.findings.watch import Watch, named
from hamlet.input.events import EventSource
from hamlet.output.query_rows import QueryRows
from hamlet.planner.skipping import OF_NO_USE
from hamlet.planner.workload import Workload
from hamlet.runtime.expected import NO_EVENTS

__all__ = [
    "Again",
    "Most",
    "Part",
    "Seen",
    "Tally",
    "Watch",
    "found_by",
    "left_out",
    "of_names",
    "of_numbers",
    "of_results",
    "of_tallies",
    "see_unread",
    "seen_in",
    "tally_of",
]


def see_unread(watch: Watch, source: EventSource, unread: int) -> None:
    """Have events that a run has left out looked at, too, where something has not occurred among the others.

    Parameters
    ----------
    watch : Watch
        Has seen the others.
    source : EventSource
    unread : int
        How many events were left out (`hamlet.planner.skipping.leave_out_useless`).
    """
    if unread and not watch.settled:
        with source.row_groups.only_left_out(OF_NO_USE):
            unread -= watch.see_some(source.batches([name for name in watch.columns if name in source.schema.columns]))
    watch.events += unread


def found_by(watch: Watch) -> list[str]:
    """What never occurred, a sentence each, where nobody has computed rows."""
    return [f"{named(queries)}: {text}" for queries, text in watch.findings()]


def of_results(
    workload: Workload, source: EventSource, watch: Watch, rows: Sequence[QueryRows], rerun: Rerun
) -> list[str]:
    """What to know of the rows of a run, a sentence each: why there are none, what never occurred, large counts, and
    numbers that other words would change.

    Parameters
    ----------
    workload : Workload
    source : EventSource
        The events; may be read once more where a query has no rows.
    watch : Watch
        Has seen all of them.
    rows : sequence of QueryRows
        Of each query, in the order of the workload.
    rerun : callable
        Gives the rows of another workload over the same events, or over those of a period.
    """
    keys = keys_of(source.schema)
    tallies = [  # the largest count is looked for where it may matter
        tally_of(query.query, found) if may_mix(query, keys) or may_explode(query) else Tally(len(found))
        for query, found in zip(workload.analysis.queries, rows, strict=True)
    ]
    return of_tallies(workload, source, watch, tallies, rerun, rows)


def of_tallies(
    workload: Workload,
    source: Again,
    watch: Watch,
    tallies: Sequence[Tally],
    rerun: Rerun,
    rows: Sequence[QueryRows] | None = None,
) -> list[str]:
    """What to know of rows that may stand elsewhere, as `of_results`.

    Parameters
    ----------
    tallies : sequence of Tally
        Of the rows of each query, in the order of the workload.
    """
    if not watch.events:
        return [NO_EVENTS]
    pairs = zip(workload.analysis.queries, tallies, strict=True)
    without = [query for query, found in pairs if not found.rows]
    why = reasons(without, source, watch, lambda some: rejected_by_having(workload, some, source, rerun))
    because: dict[str, list[str]] = {}
    for query, text in why.items():
        because.setdefault(text, []).append(query)
    sentences = [f"{named(queries)}: no rows, because {text}" for text, queries in because.items()]
    for queries, text in watch.findings():
        others = [query for query in queries if why.get(query) != text]
        if others:
            sentences.append(f"{named(others)}: {text}")
    if not source.schema.closed:  # dicts: a name that none of them has may be right
        unknown = [name for name in workload.attributes if name not in source.schema.columns]
        sentences += [f"no event has the attribute '{name}', so it is NULL everywhere" for name in unknown]
    sentences += workload.unlike(source.schema)
    return [*sentences, *doubts_of_groups(workload, watch), *of_numbers(workload, source, tallies, rerun, rows)]


def of_numbers(
    workload: Workload,
    source: Again,
    tallies: Sequence[Tally],
    rerun: Rerun,
    rows: Sequence[QueryRows] | None = None,
) -> list[str]:
    """What to know of the numbers in rows: large counts, and numbers that other words would change."""
    beside = Beside(workload, source, rerun)
    return [
        *doubts_of_counts(workload, source.schema, tallies),
        *doubts_of_sums(workload, beside, tallies, rows),
        *doubts_of_combinations(workload, beside, tallies, rows),
        *doubts_of_selections(workload, source.schema, tallies, beside, rows),
    ]
