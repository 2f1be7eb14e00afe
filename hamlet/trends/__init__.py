"""Real trends behind a count: some of those that a result row counts, event by event.

`trends_of` reads the events of one window and group, and walks the template over them (`hamlet.trends.walk`): it takes
as long as reading does, however many trends there are.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from hamlet.errors import OptionError, UnsupportedError, near_miss, one_of
from hamlet.input.events import EventSource
from hamlet.input.ticks import time_in_ticks
from hamlet.language.automaton import template
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import Pattern, Semantics, Taken
from hamlet.language.schema import MOST_TICKS, Clock
from hamlet.output.html import page_table
from hamlet.output.result import Results
from hamlet.planner.workload import Workload
from hamlet.trends.gather import Gathered, Partition, gathered
from hamlet.trends.walk import Step, TooManySteps, Walk
from optimizer.template import Template

__all__ = ["TrendSample", "trends_of"]


@dataclass(frozen=True)
class TrendSample:
    """Some trends of one result row.

    Attributes
    ----------
    query : str
    row : dict
        The result row: window, group and aggregates.
    trends : list of list of dict
        The shortest first, those of one length by their events. An event has the key ``variable``, what it is bound
        to, and all its columns.
    complete : bool
        Whether these are all the trends that there are.
    note : str or None
        Why there are fewer than asked for, where the walk gave up.
    """

    query: str
    row: dict[str, Any]
    trends: list[list[dict[str, Any]]]
    complete: bool
    note: str | None = None

    def __len__(self) -> int:
        return len(self.trends)

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        return iter(self.trends)

    def __getitem__(self, place: int) -> list[dict[str, Any]]:
        return self.trends[place]

    def _repr_html_(self) -> str:
        """A table with a row per event, for a notebook."""
        names = list(dict.fromkeys(name for trend in self.trends for event in trend for name in event))
        rows = [
            [str(number), *("" if event.get(name) is None else str(event[name]) for name in names)]
            for number, trend in enumerate(self.trends, 1)
            for event in trend
        ]
        return page_table(f"{self.query}: {len(self)} trends", ["trend", *names], rows, self.note or "")


def trends_of(
    workload: Workload,
    source: EventSource,
    results: Results,
    query: str,
    window: Any = None,
    group: Any = None,
    limit: int = 5,
) -> TrendSample:
    """Some of the trends that a result row counts.

    Parameters
    ----------
    workload : Workload
    source : EventSource
        Is read once more.
    results : Results
        Of this workload and this source.
    query : str
    window : int, str, datetime or numpy.datetime64, optional
        When the row's window begins; by default that of the first row.
    group : optional
        The row's values of the GROUP-BY attributes: a dict or, of one attribute, its value; text will do. By default
        the first row counts.
    limit : int
        How many trends, at most.

    Raises
    ------
    OptionError
        If there is no such query or row.
    UnsupportedError
        If the events cannot be read again.
    """
    analysed = next((each for each in workload.analysis.queries if each.query.name == query), None)
    if analysed is None:
        meant = near_miss(query, workload.names)
        hint = f"did you mean {meant!r}?" if meant else f"the queries are {', '.join(workload.names)}"
        raise OptionError(f"there is no query {query!r}; {hint}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError(f"limit is {limit!r}; it must be a whole number from 1")
    refuse_others(analysed)
    if not source.repeatable:
        raise UnsupportedError("the events were a stream, which can be read only once; give a file or a table")
    rows = results[query]
    taken = {item.value: item.column for item in analysed.query.items if isinstance(item.value, Taken)}
    found = _row(rows, results.parts[0].clock, [*analysed.grouping, *taken.values()], window, group)
    edges = (-MOST_TICKS, MOST_TICKS + 1)
    if analysed.query.within is not None:
        start, end = (time_in_ticks(found[name], results.parts[0].clock) for name in ("window_start", "window_end"))
        edges = start, end
    events = gathered(analysed, source, (edges[0], edges[1]), {name: found[name] for name in _named(analysed, found)})
    note = None
    sample: list[list[dict[str, Any]]] = []
    try:
        trends = (each for each in _all(analysed.patterns, events) if _is_grouped_as(each, found, taken))
        for trend in itertools.islice(trends, limit + 1):
            sample.append(trend)
    except TooManySteps:
        note = "the conditions on neighbours, or NOT, reject so many trends that the search for more was given up"
    return TrendSample(query, found, sample[:limit], note is None and len(sample) <= limit, note)


def _is_grouped_as(trend: list[dict[str, Any]], row: Mapping[str, Any], columns: Mapping[Taken, str]) -> bool:
    """Whether a trend took what its row says."""
    for taken, column in columns.items():
        events = [event for event in trend if event["variable"] == taken.variable]
        value: Any = len(events)
        if taken.attribute is not None:
            value = events[0 if taken.function == "FIRST" else -1].get(taken.attribute) if events else None
        if not _same(None if value != value else value, row[column]):  # NaN is NULL
            return False
    return True


def _named(analysed: AnalysedQuery, row: Mapping[str, Any]) -> list[str]:
    return [name for name in analysed.grouping if name in row]


def refuse_others(analysed: AnalysedQuery) -> None:
    """Raise UnsupportedError for a query whose trends are not listed."""
    query = analysed.query
    if query.semantics is not Semantics.ANY:
        raise UnsupportedError("trends are listed under skip-till-any-match only")
    if query.longest is not None or query.session:
        raise UnsupportedError("trends of queries with SPAN or SESSION are not listed")
    if analysed.upstream:
        raise UnsupportedError(
            f"trends of queries about rows are not listed, and {query.name} asks about the rows of "
            f"{one_of(list(analysed.upstream), 'and')}"
        )


def _row(rows: Results, clock: Clock, grouping: Sequence[str], window: Any, group: Any) -> dict[str, Any]:
    """The first result row of a window and a group."""
    wanted: Mapping[str, Any] = {}
    if group is not None:
        wanted = group if isinstance(group, Mapping) else _by_name(group, grouping)
        for name in wanted:
            if name not in grouping:
                raise OptionError(f"the query is not grouped by {name!r}; it is by {', '.join(grouping) or 'nothing'}")
    start = None if window is None else time_in_ticks(_number(window), clock)
    for row in rows:
        begin = row["window_start"]
        fits = start is None or (begin is not None and time_in_ticks(begin, clock) == start)
        if fits and all(_same(row.get(name), value) for name, value in wanted.items()):
            return row
    if not len(rows):
        raise OptionError("the query has no rows, so there are no trends")
    asked = [f"window {window}"] * (window is not None) + [f"{name}={value}" for name, value in wanted.items()]
    first = next(iter(rows))
    shown = ", ".join(f"{name}={first[name]}" for name in ("window_start", *_known(grouping, first)))
    raise OptionError(f"there is no row of {', '.join(asked)}; the first row has {shown}")


def _known(grouping: Sequence[str], row: Mapping[str, Any]) -> list[str]:
    return [name for name in grouping if name in row]


def _by_name(group: Any, grouping: Sequence[str]) -> dict[str, Any]:
    """``k=x,v=3``, or the value of the only attribute."""
    if isinstance(group, str) and "=" in group and group.partition("=")[0].strip() in grouping:
        pairs = [each.partition("=") for each in group.split(",")]
        return {name.strip(): value.strip() for name, _, value in pairs}
    if len(grouping) != 1:
        names = ", ".join(f"{name}=..." for name in grouping)
        raise OptionError(f"the query has {len(grouping)} GROUP-BY attributes; say {names or 'no group'}")
    return {grouping[0]: group}


def _number(window: Any) -> Any:
    """A whole number that came as text, from a command line."""
    if isinstance(window, str) and window.strip().lstrip("-").isdecimal():
        return int(window)
    return window


def _same(value: Any, wanted: Any) -> bool:
    return value == wanted or (isinstance(wanted, str) and ("NULL" if value is None else str(value)) == wanted)


def _all(patterns: Sequence[Pattern], events: Gathered) -> Iterator[list[dict[str, Any]]]:
    """Trends of all partitions, the shortest first; those of AND's left operand before those of its right."""
    for pattern in patterns:
        walks = (_of_partition(template(pattern), part, events) for part in events.partitions)
        for _, _, part, steps in heapq.merge(*walks, key=itemgetter(0, 1)):
            yield [{"variable": step.variable, **part.event(step.place)} for step in steps]


def _of_partition(
    automaton: Template, part: Partition, events: Gathered
) -> Iterator[tuple[int, list[int], Partition, tuple[Step, ...]]]:
    walk = Walk(automaton, part.moments, part.accepted, events.adjacent, part.connects)
    for steps in walk.trends():
        yield len(steps), [part.places[step.place] for step in steps], part, steps
