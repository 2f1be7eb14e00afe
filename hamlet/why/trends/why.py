"""`why` for trend queries: the graph of trends behind a row, or behind its absence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hamlet.errors import OptionError, UnsupportedError, near_miss
from hamlet.input.events import EventSource, open_events
from hamlet.input.period import period_of
from hamlet.input.ticks import time_in_ticks
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import Attribute, Group, ReturnItem, Semantics, Taken
from hamlet.language.schema import Clock
from hamlet.oracle import Event, Search, Window
from hamlet.output.plain import json_value
from hamlet.parallel.run import rows_alone
from hamlet.planner.matching import automata
from hamlet.planner.workload import Workload
from hamlet.why.evidence import Evidence, only_row, same
from hamlet.why.trends.below import beside, closure, rows_of_all, told
from hamlet.why.trends.graph import Graph, Step, partitions, samples
from hamlet.why.trends.reading import Selection, chosen
from hamlet.why.trends.rows import aggregates_of, reason_of

_MOST_SAMPLES = 3
_MOST_FORBIDDEN = 20
_MOST_BELOW = 10  # rows of other queries of which evidence is given, too
_EDGES = ("window_start", "window_end")
_READING = ("input_format", "delimiter", "bad_rows", "missing_columns", "since", "until")
_OPENING = ("time_column", "type_column", "order_column", "time_unit", "timezone", *_READING[:3])


def of_query(workload: Workload, events: Any, row: Mapping[str, Any], *, limit: int = 1000, **options: Any) -> Evidence:
    """The trends behind a row of a query, or why there is no such row.

    Parameters
    ----------
    workload : Workload
    events : as of `hamlet.run`
    row : mapping
        A row of the result, or enough of its columns to name one. A window's start and a value for every attribute
        of GROUP-BY name a row that the result may lack.
    limit : int
        Most steps that are listed; beyond, some trends stand for them.
    **options
        Those with which the rows were made.

    Raises
    ------
    OptionError
        If several rows match, or none is named.
    UnsupportedError
        If the events cannot be read again.
    """
    if isinstance(events, Iterator):
        raise UnsupportedError("the events were a stream, which can be read once only; give a file or a table")
    analysed = _query_of(workload, row)
    given = {name: value for name, value in row.items() if name != "query"}
    source = open_events(events, **_opening(options)).with_durations(workload.durations)
    found = _Row(workload, analysed, source, events, given, options)
    longest = _ticks(analysed, source)
    window = found.window()
    search = Search(analysed.query, found.chosen.stream, window, longest)
    group = found.group
    data: dict[str, Any] = {
        "kind": "trends",
        "row": json_value({"query": analysed.query.name, **found.row}),
        "holds": found.holds,
        "group": json_value({**group, **{each.column: value for each, value in found.taken.items()}}),
        "window": [json_value(found.row.get("window_start")), json_value(found.row.get("window_end"))],
    }
    keys = [
        each for each in partitions(search, group) if options.get("null_keys") != "drop" or None not in each.values()
    ]
    data |= _graphs(analysed, search, group, keys, found, limit)
    if analysed.upstream:
        data["rows"] = told(found.below, {} if "above" in data else json_value(group))
        asked = partial(of_query, workload, events, **options)
        data |= _with_rows(data, found.below, asked, limit)
    return Evidence(data)


def _with_rows(
    data: Mapping[str, Any], rows: Mapping[int, Mapping[str, Any]], why: Callable[..., Evidence], limit: int
) -> dict[str, Any]:
    """Of too many rows only those in samples, so that no steps are listed; else evidence of some that steps take."""
    lists = data.get("operands") or [data.get("steps")]
    listed = lists != [None]
    pairs = [(step["at"], "") for steps in lists for step in steps or ()]
    pairs += [pair for trend in data.get("samples", ()) for pair in trend]
    taken = list(dict.fromkeys(at for at, _ in pairs if at in rows))
    if not listed:
        return {"rows": [each for each in data["rows"] if each["at"] in taken]}
    left, found = limit - len(pairs), list[dict[str, Any]]()
    for at in taken if len(taken) <= _MOST_BELOW else ():
        try:
            found.append(why(rows[at], limit=max(left, 1)).data)
        except OptionError:  # rows of several groups that no column tells apart
            return {}
        left -= _size(found[-1])
        if left < 0:
            return {}
    return {"because": found} if found else {}


def _size(data: Mapping[str, Any]) -> int:
    """How many steps are listed, with those below."""
    lists = data.get("operands") or [data.get("steps")]
    return sum(len(each or ()) for each in lists) + sum(map(_size, data.get("because", ())))


def _opening(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _OPENING if options.get(name) is not None}


def _query_of(workload: Workload, row: Mapping[str, Any]) -> AnalysedQuery:
    name = row.get("query")
    if name is None and len(workload.names) == 1:
        name = workload.names[0]
    for each in workload.analysis.queries:
        if each.query.name == name:
            return each
    meant = near_miss(str(name), workload.names)
    hint = f"did you mean {meant!r}?" if meant else f"the queries are {', '.join(workload.names)}"
    raise OptionError(
        f"the row's query must be named: {hint}" if name is None else f"there is no query {name!r}; {hint}"
    )


def _ticks(analysed: AnalysedQuery, source: EventSource) -> int | None:
    length = analysed.query.longest
    return None if length is None else length.ticks(source.schema.clock.ticks_per_second)[0]


def _with_groups(workload: Workload, analysed: AnalysedQuery) -> tuple[Workload, dict[Group, str]]:
    """The query with all that GROUP-BY names as columns, and the column of each."""
    query = analysed.query
    columns: dict[Group, str] = {}
    for item in query.items:
        if isinstance(item.value, Attribute | Taken):
            columns.setdefault(_plain(item.value), item.column)
    taken = {item.column for item in query.items} | set(_EDGES)
    named = list(dict.fromkeys(map(_plain, analysed.groups)))
    more = []
    for each in named:
        if each not in columns:
            name = each.name if isinstance(each, Attribute) else each.column
            columns[each] = name if name not in taken else f"{name}_of_the_group"
            more.append(ReturnItem(each, alias=columns[each]))
    found = {each: columns[each] for each in named}
    if not more:
        return workload, found
    text = workload.analysis.text
    own = tuple(replace(each, items=(*each.items, *more)) if each.name == query.name else each for each in text.queries)
    return Workload.parse(to_text(replace(text, queries=own))), found


def _plain(each: Group) -> Group:
    """An attribute without the variable that it may be written with: it is one of the whole trend."""
    return Attribute(each.name) if isinstance(each, Attribute) else each


def _within(
    times: tuple[int | None, int | None], options: Mapping[str, Any], clock: Clock
) -> tuple[int | None, int | None]:
    """Times cut to the period of a run; both ends are included."""
    low, high = times
    since, until = options.get("since"), options.get("until")
    first, end = period_of(since, until, clock)
    if since is not None:
        low = first if low is None else max(low, first)
    if until is not None:
        high = end - 1 if high is None else min(high, end - 1)
    return low, high


def _unnamed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "query"}


class _Row:
    """The row that is asked about, and the events that can matter for it."""

    def __init__(
        self,
        workload: Workload,
        analysed: AnalysedQuery,
        source: EventSource,
        events: Any,
        given: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> None:
        query = analysed.query
        self._analysed, self._clock = analysed, source.schema.clock
        self._work, self._columns = _with_groups(workload.select(closure(analysed)), analysed)
        kinds = frozenset(analysed.types.values()) - analysed.upstream.keys()
        types = kinds if query.semantics is not Semantics.CONTIGUOUS else None
        self._known(given)
        named = [name for name, column in self._columns.items() if column in given]
        edges = self._edges(given)
        whole = edges is None or query.session
        reach = _within((None, None) if whole or edges is None else self._reach(*edges), options, self._clock)
        wanted = {
            each.name: given[name]
            for each, name in self._columns.items()
            if name in given and isinstance(each, Attribute)
        }
        keys = {} if query.top is not None or events is source else wanted  # TOP looks at the rows of other groups
        declared = workload.analysis.text.declarations
        self.chosen: Selection = chosen(source, events, declared, types, reach, keys)
        self.below: dict[int, Mapping[str, Any]] = {}
        if analysed.upstream:
            own = {name: value for name, value in options.items() if name not in _READING or name in ("since", "until")}
            every = rows_of_all(source, own, self._work)
            rows = [_unnamed(row) for row in every if row["query"] == query.name]
            every.sort(key=lambda row: not all(same(row[name], wanted[name]) for name in wanted if name in row))
            self.chosen, self.below = beside(self.chosen, analysed, every, source, reach)
        else:
            rows = self._rows(source, options)
        found = only_row(rows, given)
        self.holds = found is not None
        self.others = rows
        if (
            found is None
            and edges is None
            and given.get("window_start") is not None
            and len(named) == len(self._columns)
        ):
            edges = self._session(given)
        if found is None and (edges is None or len(named) < len(self._columns)):
            lacking = [
                name
                for name in (*_EDGES[: 1 + ("window_start" in given)], *self._columns.values())
                if name not in given
            ]
            raise OptionError(
                f"no row of {query.name} matches, and the evidence of a row that is not there needs "
                f"{', '.join(lacking) or 'window_start'} in the row, too"
            )
        self.row: dict[str, Any] = dict(found) if found is not None else self._named(given, edges)
        self.group: dict[str, Any] = {}
        self.taken: dict[Taken, Any] = {}
        for named_by, column in self._columns.items():
            if isinstance(named_by, Attribute):
                self.group[named_by.name] = self._value(named_by.name, self.row.get(column))
            else:
                self.taken[named_by] = self._taken_value(named_by, self.row.get(column))
        own = {name: self.row.get(name) for name in ("window_start", *self._columns.values())}
        self.instead = only_row(rows, own) if found is None else None  # what the result has of the window and the group
        returned = {item.column for item in query.items}
        self.row = {name: value for name, value in self.row.items() if name in returned or name in _EDGES}

    def _known(self, given: Mapping[str, Any]) -> None:
        """Refuse columns that no row has."""
        query = self._analysed.query
        known = list(dict.fromkeys([*_EDGES, *(item.column for item in query.items), *self._columns.values()]))
        for name in given:
            if name not in known:
                raise OptionError(f"rows of {query.name} have no column {name!r}; they have {', '.join(known)}")

    def _session(self, given: Mapping[str, Any]) -> tuple[int, int] | None:
        """The session of a group that begins at the row's window_start, None for none."""
        query = self._analysed.query
        if not query.session or query.within is None:
            return None
        gap = query.within.ticks(self._clock.ticks_per_second)[0]
        start = time_in_ticks(given["window_start"], self._clock)
        group = {name.name: given[column] for name, column in self._columns.items() if isinstance(name, Attribute)}
        times = sorted(event.time for event in self._of_session(group))
        if start not in times or any(start - gap <= time < start for time in times):
            raise OptionError(f"no session of this group begins at {given['window_start']}")
        end = start
        for time in times:
            end = time if end <= time <= end + gap else end
        return start, end + gap

    def _of_session(self, group: Mapping[str, Any]) -> Iterator[Event]:
        """The events of the query's types with the values of a group."""
        types, stream = set(self._analysed.types.values()), self.chosen.stream
        for event in stream.events:
            if event.type in types and all(same(stream.read(event, name), value) for name, value in group.items()):
                yield event

    def _rows(self, source: EventSource, options: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The query's rows over the chosen events: dicts where an attribute that none has is NULL."""
        given = self.chosen.table if source.schema.closed else [dict(each) for each in self.chosen.shown.values()]
        own = {name: value for name, value in options.items() if name not in _READING}
        events = open_events(given, **_opening(own)).with_durations(self._work.durations)
        rows = rows_alone(events, own, self._work) or ()
        return list(map(_unnamed, rows))

    def _named(self, given: Mapping[str, Any], edges: tuple[int, int] | None) -> dict[str, Any]:
        """The row as it was named, with its window."""
        if self._analysed.query.within is None or edges is None:
            shown: dict[str, Any] = {"window_start": None, "window_end": None}
        else:
            shown = {"window_start": self._clock.present(edges[0]), "window_end": self._clock.present(edges[1])}
        return {**shown, **{name: value for name, value in given.items() if name not in shown}}

    def _taken_value(self, each: Taken, wanted: Any) -> Any:
        """The value of what a trend took as events have it."""
        return wanted if each.attribute is None else self._value(each.attribute, wanted)

    def _value(self, name: str, wanted: Any) -> Any:
        """The value of a grouping attribute as events have it."""
        for event in self.chosen.stream.events:
            value = self.chosen.stream.read(event, name)
            if same(value, wanted):
                return value
        return wanted

    def _edges(self, given: Mapping[str, Any]) -> tuple[int, int] | None:
        """The window in ticks, where the row names it."""
        query = self._analysed.query
        if query.within is None:
            return 0, 0
        if given.get("window_start") is None:
            return None
        start = time_in_ticks(given["window_start"], self._clock)
        if given.get("window_end") is not None and (query.session or self._clock.zone is not None):
            return start, time_in_ticks(given["window_end"], self._clock)
        if query.session or self._clock.zone is not None:
            return None
        per_second = self._clock.ticks_per_second
        length = query.within.ticks(per_second)[0]
        slide = length if query.slide is None else query.slide.ticks(per_second)[0]
        away = (start - (0 if query.offset is None else query.offset.ticks(per_second)[0])) % slide
        if away:
            near = " and ".join(str(self._clock.present(each)) for each in (start - away, start - away + slide))
            raise OptionError(f"no window of {query.name} begins at {given['window_start']}; windows begin at {near}")
        return start, start + length

    def _reach(self, start: int, end: int) -> tuple[int | None, int | None]:
        """The times that can matter for a window."""
        query = self._analysed.query
        if query.within is None:
            return None, None
        more = 0 if query.longest is None else query.longest.ticks(self._clock.ticks_per_second)[0]
        return start - 2 * more, end - 1 + more  # a NOT before a trend looks as far back as the trend may

    def window(self) -> Window:
        """The window, with the events of a session."""
        query, events = self._analysed.query, self.chosen.stream.events
        if query.within is None:
            times = [event.time for event in events] or [0]
            return Window(min(times), max(times) + 1, everything=True)
        start = time_in_ticks(self.row["window_start"], self._clock)
        end = time_in_ticks(self.row["window_end"], self._clock)
        if not query.session:
            return Window(start, end)
        held = frozenset(event for event in self._of_session(self.group) if start <= event.time <= end)
        return Window(start, end, held)


def _graphs(
    analysed: AnalysedQuery,
    search: Search,
    group: Mapping[str, Any],
    keys: Sequence[Mapping[str, Any]],
    found: _Row,
    limit: int,
) -> dict[str, Any]:
    """Steps, or samples of trends, of one pattern or of the operands of AND."""
    lists: list[list[Step]] = []
    graphs: list[Graph] = []
    for place, (template, moves) in enumerate((each.template, each.only_moves) for each in automata(analysed)):
        patterns = analysed.patterns if place == 2 else [analysed.patterns[place]]
        own = [Graph(search, patterns, template, key, found.taken, limit, only_moves=moves) for key in keys]
        lists.append(sorted((step for graph in own for step in graph.steps), key=lambda step: step.event.time))
        graphs += own
    listed = all(graph.complete for graph in graphs) and sum(map(len, lists)) <= limit
    for steps in lists:
        for place, step in enumerate(steps):
            step.place = place
    told = [[_step(step, search, found) for step in steps] for steps in lists] if listed else [None]
    data: dict[str, Any] = {"steps": told[0]} if len(told) == 1 else {"operands": told}
    if not listed:
        paths = [path for steps in lists[:2] for path in samples(steps, _MOST_SAMPLES)]
        data["samples"] = [[[step.event.index, step.variable] for step in path] for path in paths]
    forbidden = [each for graph in graphs for each in _forbidden(graph)]
    if forbidden and len(lists) == 1 and listed:
        data["forbidden"] = forbidden[:_MOST_FORBIDDEN]
    if not found.holds:
        values = aggregates_of(analysed, lists, search.stream) if listed else None
        if listed and found.instead is not None:
            computed = [item.column for item in analysed.query.items if not isinstance(item.value, Attribute | Taken)]
            values = {name: found.instead[name] for name in computed}
        if values is not None:
            data["values"] = json_value(values)
        if found.instead is None:
            data |= reason_of(analysed, search, group, found.taken, any(lists), found.others, found.row)
    return data


def _forbidden(graph: Graph) -> Iterator[dict[str, Any]]:
    for _, (before, step, match) in zip(range(_MOST_FORBIDDEN), graph.forbidden(200), strict=False):
        yield {
            "between": [None if before is None else before.place, None if step is None else step.place],
            "events": [event.index for event in match.events],
        }


def _step(step: Step, search: Search, found: _Row) -> dict[str, Any]:
    grouping = set(found.group)
    return {
        "at": step.event.index,
        "event": json_value(found.chosen.shown[step.event.index]),
        "variable": step.variable,
        "partition": json_value({name: step.partition[name] for name in search.partition if name not in grouping}),
        "begins": step.begins,
        "after": sorted(each.place for each in step.after),
        "count": json_value(step.count),
        "ends": step.ends,
        "trends": json_value(step.trends),
    }
