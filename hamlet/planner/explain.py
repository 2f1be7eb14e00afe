"""How a workload will run, before any event is read: what is shown, taken from the engine's tables.

Source: §5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby

import pyarrow as pa

from hamlet._core import SOURCES
from hamlet.errors import OptionError, one_of
from hamlet.explanation.document import as_json
from hamlet.explanation.dot import as_dot
from hamlet.explanation.sharing import Prices, SharingView
from hamlet.explanation.text import as_text, window_text
from hamlet.explanation.views import (
    Cause,
    LinearMaps,
    Matching,
    Memory,
    QueryView,
    Served,
    Step,
    Steps,
    Variable,
    Window,
    WorkloadView,
)
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.columns import StringPool
from hamlet.language.meaning import AnalysedQuery, Analysis, Pair
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import (
    DISTINCT,
    NOWHERE,
    And,
    AttributeType,
    Condition,
    Duration,
    Query,
    Semantics,
    Taken,
)
from hamlet.language.schema import Clock, Schema
from hamlet.language.zones import WEEK, zone_of
from hamlet.planner.calibration import constants
from hamlet.planner.compile import compile_workload, facts, lengths, window_as_written
from hamlet.planner.compiled import CompiledClass, CompiledQuery, CompiledWorkload
from hamlet.planner.coordinates import refusal
from hamlet.planner.layers_shown import with_layers
from hamlet.planner.matching import MOST_COUNT, is_matching, most_taken, sees_all
from hamlet.planner.matching_memory import matching_bound
from hamlet.planner.matching_tables import MatchingTables, why_no_product
from hamlet.planner.memory import bound
from hamlet.planner.physical import physical_plan
from hamlet.planner.shared_bursts import shared_bursts
from hamlet.planner.tables import QueryTables
from hamlet.planner.timeline import Calendar, Line, line_of
from hamlet.planner.together import find_together, names_in
from hamlet.planner.workload import Workload
from optimizer.plan import QueryFacts, plan
from optimizer.template import START, Template

RENDERINGS: Mapping[str, Callable[[WorkloadView], str]] = {"text": as_text, "dot": as_dot, "json": as_json}

_PARTS = {1: (None,), 3: ("left", "right", "both")}
_MERGING = {0: "scan", 1: "sums", 2: "scan"}
_SOURCE_NAMES = {number: name for name, number in SOURCES.items()}


_MOST_NAMES = 12  # of queries in a cell of the table


class Explanation(str):
    """What `explain` says: a text, which a notebook shows under a table of the queries."""

    shown: WorkloadView

    def _repr_html_(self) -> str:
        """The table of the queries and the text, for a notebook."""
        return f"{_table(self.shown)}<pre>{escape(str(self))}</pre>"


def explain(
    workload: Workload, schema: Schema | None = None, shown_as: str = "text", *, timezone: str | None = None
) -> Explanation:
    """Show templates, partitionings, panes, granularity and the memory class of every query.

    Parameters
    ----------
    workload : Workload
    schema : Schema or None
        Of the input; without it the unit of time is unknown, and attributes without a declared type are taken for
        numbers.
    shown_as : {'text', 'dot', 'json'}
        The JSON document is described in `hamlet.explanation.document`.
    timezone : str, optional
        The time zone in which days and weeks begin, where the schema does not say so.

    Raises
    ------
    OptionError
        Another rendering.
    WorkloadError
        Names, types or durations that do not fit the schema.

    Examples
    --------
    >>> text = explain(Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WITHIN 10 min SLIDE 4 min"))
    >>> print(text[text.index("    window") : text.index("    granularity")])
        window      10 min, a new one every 4 min; up to 3 are open at a time
        template    start -> 1 A
                    1 A   -> 2 B  if no C between
                    2 B   -> 2 B
                    2 B   -> end
    <BLANKLINE>
    """
    if shown_as not in RENDERINGS:
        raise OptionError(f"the format is {shown_as!r}; it must be {one_of([repr(name) for name in RENDERINGS])}")
    shown = view(workload, schema, timezone)
    found = Explanation(with_layers(RENDERINGS[shown_as](shown), workload.analysis, shown_as))
    found.shown = shown
    return found


def _table(shown: WorkloadView) -> str:
    """Every query with what it asks for, its windows, and with whom it can share work."""
    sets: dict[int, list[Sequence[int]]] = {}
    for each in shown.sharing_sets:
        for place in each:
            sets.setdefault(place, []).append(each)
    rows = []
    for place, query in enumerate(shown.queries):
        others = sorted(set().union(*sets.get(place, ())) - {place})
        names = shown.names(others[:_MOST_NAMES])
        names += [f"{len(others) - _MOST_NAMES:,} more"] if len(others) > _MOST_NAMES else []
        cells = (query.name, query.pattern, window_text(query, shown), ", ".join(names))
        rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    heads = "".join(f"<th>{head}</th>" for head in ("query", "pattern", "window", "can share with"))
    return f"<table><tr>{heads}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def view(workload: Workload, schema: Schema | None, timezone: str | None = None) -> WorkloadView:
    """What there is to show of a workload; raises as `explain`."""
    analysis = workload.analysis
    read = _open_schema(workload) if schema is None else schema
    if timezone is not None:
        zone_of(timezone)
        read = read.in_zone(timezone)
    workload.check(read)
    exact, scaled = (compile_workload(analysis, read, StringPool(), exact=numbers) for numbers in (True, False))
    known = [
        replace(each, within=within, slide=slide)
        for each, (within, slide) in zip(facts(analysis, read), lengths(analysis, read), strict=True)
    ]
    maps = {name: found for each in scaled.classes for name, found in _maps(each)}
    lacks = {query.name: _lacks(each, query) for each in exact.classes for query in each.queries}
    together, floating = (
        compile_workload(analysis, read, StringPool(), exact=numbers, together=True) for numbers in (True, False)
    )
    whole, plain = _served(together), _served(floating)
    queries = tuple(
        _query(analysis, read, one, other, lacks[one.name], maps[one.name], (whole[number], plain[number]))
        for number, (one, other) in enumerate(zip(exact.queries, scaled.queries, strict=True))
    )
    return WorkloadView(
        queries,
        plan(known),
        read.clock.ticks_per_second,
        None if schema is None else schema.clock.unit,
        _sharing(analysis, known, queries),
        tuple(some for each in exact.classes for some in _together(each)),
        tuple(found for each in together.classes for found in shared_bursts(each).items()),
    )


def _served(compiled: CompiledWorkload) -> dict[int, Served]:
    """Which operator computes each query, by number: those of a run with default options."""
    found = physical_plan(compiled).served
    return {number: Served(each.operator, each.instead, each.reason, each.beyond) for number, each in found.items()}


def _together(each: CompiledClass) -> Iterator[tuple[int, ...]]:
    """The queries of each merged query."""
    queries = each.queries
    if each.matching:
        return
    found = find_together(queries, [query.window for query in queries], names_in(queries))
    for places in found.kept_once():
        yield tuple(queries[place].analysed.index for place in places)


def _sharing(analysis: Analysis, known: Sequence[QueryFacts], queries: Sequence[QueryView]) -> SharingView:
    """What the queries share, with their predicates as they are written."""
    predicates: dict[tuple[int, str], str] = {}
    looks_back: dict[tuple[int, str, str], str] = {}
    for place, (query, shown) in enumerate(zip(analysis.queries, queries, strict=True)):
        predicates |= {(place, name): _all(found) for name, found in query.local.items() if found}
        predicates |= {(place, f"{one} {other}"): _all(found) for (one, other), found in query.adjacent.items()}
        for steps in shown.templates:
            for step, how in zip(steps.template.transitions, steps.steps, strict=True):
                if how.reads in ("search", "scan"):
                    pair = steps.template.variable(step.source), steps.template.variable(step.target)
                    looks_back[place, *pair] = how.reads
    return SharingView(tuple(known), predicates, looks_back, _prices())


def _prices() -> Prices:
    used = constants()
    file, when = (None, None) if used.path is None or used.measured_at is None else (str(used.path), used.measured_at)
    return Prices(used.text, used.origin, used.costs, file, None if when is None else when.isoformat())


def _all(conditions: tuple[Condition, ...]) -> str:
    return to_text(conditions[0] if len(conditions) == 1 else And(conditions))


def _open_schema(workload: Workload) -> Schema:
    """A schema in the coarsest unit from ms on that holds all durations; it takes undeclared attributes for numbers."""
    queries = workload.queries
    durations = [each for query in queries for each in (query.within, query.slide, query.offset) if each]
    unit = next((unit for unit in ("ms", "us") if all(_is_whole(duration, unit) for duration in durations)), "ns")
    columns = dict.fromkeys((*workload.attributes, "time"), AttributeType.INT) | {"type": AttributeType.STRING}
    for declared in workload.analysis.declared.values():
        columns |= {
            name: type
            for name, type in declared.items()
            if name in columns and type is not None and name not in ("time", "type")
        }
    return Schema(columns, Clock("time", unit, pa.int64()), closed=False)


def _is_whole(duration: Duration, unit: str) -> bool:
    return (duration.seconds * UNITS_PER_SECOND[unit]).denominator == 1


# --------------------------------------------------------------------------------------------------------- queries


def _maps(each: CompiledClass) -> Iterator[tuple[str, LinearMaps]]:
    """What is computed as linear maps, by query of a class that is compiled for numbers of floating point."""
    refused = refusal(each)
    mapped = {number for band in each.bands if band.maps for number in band.queries}
    for query, parts in zip(each.queries, each.parts_of, strict=True):
        yield query.name, LinearMaps(not each.matching and bool(parts) and mapped.issuperset(parts), refused)


def _lacks(each: CompiledClass, query: CompiledQuery) -> dict[str, tuple[str, ...]]:
    """The partition attributes that the events of a type do not carry, by variable."""
    return {
        variable: tuple(name for place, name in enumerate(each.attributes) if place not in each.carried[type])
        for variable, type in query.analysed.types.items()
    }


def _query(
    analysis: Analysis,
    schema: Schema,
    exact: CompiledQuery,
    scaled: CompiledQuery,
    lacks: Mapping[str, tuple[str, ...]],
    maps: LinearMaps,
    served: tuple[Served, Served],
) -> QueryView:
    """One query, compiled for exact numbers and for numbers of floating point."""
    query = exact.analysed
    return QueryView(
        name=exact.name,
        pattern=to_text(query.query.pattern),
        returns=tuple(to_text(item) for item in query.query.items),
        variables=tuple(_variable(query, name, lacks[name]) for name in query.types),
        grouping=query.grouping,
        equivalence=query.equivalence,
        window=_window(analysis, query.query, schema),
        templates=tuple(
            _steps(part, template, query, tables)
            for part, template, tables in zip(_PARTS[len(exact.templates)], exact.templates, exact.tables, strict=False)
        ),
        memory=Memory(
            _causes(exact),
            tuple(dict.fromkeys(query.types[name] for name, attributes in lacks.items() if attributes)),
            bound(exact.tables, panes=True) if exact.reach is None else matching_bound(exact.matching),
            bound(scaled.tables) if scaled.reach is None else matching_bound(scaled.matching),
            () if exact.reach is None else tuple(_grows(query, exact.matching)),
            _lane(query),
        ),
        maps=maps,
        exact=served[0],
        scaled=served[1],
        matching=None if exact.reach is None else _matching(query, exact.matching[0]),
        groups=tuple(to_text(each) if isinstance(each, Taken) else each.name for each in query.groups),
    )


def _lane(query: AnalysedQuery) -> str:
    """What partial trends are kept apart by."""
    asked = query.query
    return "open session" if asked.session else "open start of a trend" if asked.longest is not None else "open window"


def _matching(query: AnalysedQuery, tables: MatchingTables) -> Matching:
    """What is asked beside the pattern, and what an event costs then."""
    asked = query.query
    lanes = _lane(query)
    rung = f"state-grained: one addition per event, transition and {lanes}"
    if query.adjacent:
        rung = f"event-grained: looks back at single events, one by one, per {lanes}"
        if tables.logs and not tables.looks_back:
            rung = "state-grained: as a window closes, one event per comparison and state stands for all before it"
        if asked.semantics is Semantics.NEXT:
            rung += "; each is moved at most once per state"
    if asked.semantics is Semantics.CONTIGUOUS:
        rung = f"state-grained: the last step of a key only, per transition and {lanes}"
    elif tables.slides:
        rung = (
            "state-grained: a sliding product, a few additions per event, transition and state, whatever the span holds"
        )
    elif asked.longest is not None and tables.logs:
        rung = (
            "state-grained: as a window closes, a few additions per event, transition and state, and per value that "
            "trends are grouped by, whatever the span holds"
        )
    elif asked.longest is not None:
        rung += (
            f"; so an event costs all times of the last {to_text(asked.longest)} at which trends began, and twice as "
            f"many events cost four times as much: {why_no_product(query, tables)}"
        )
    return Matching(
        asked.semantics.value, None if asked.longest is None else to_text(asked.longest), asked.session, rung
    )


def _grows(query: AnalysedQuery, parts: Sequence[MatchingTables]) -> Iterator[str]:
    """What the matching operator's memory grows with."""
    asked = query.query
    logged = any(tables.logs for tables in parts)
    if logged:
        before = ""
        if asked.longest is not None:
            first = any(state == 0 and guards >= 0 for tables in parts for state, guards in tables.logged_slots()[0])
            before = f" and of {'twice ' * first}{to_text(asked.longest)} before them"  # a first NOT looks back, too
        yield f"the events of open windows{before}, each once"
    if all(tables.logs for tables in parts):
        return
    if asked.longest is not None:
        yield f"the times of a key's last {to_text(asked.longest)} at which trends began"
    for each in query.aggregates:
        if each.function == "COUNT_DISTINCT":
            yield f"the distinct values of {name_text(each.variable or '')}.{name_text(each.attribute or '')}"
        elif each.function in DISTINCT:
            yield "the sums kept, 4 KiB of registers in each"
    for variable in dict.fromkeys(each.variable for each in query.aggregates if each.events and not logged):
        yield f"the {name_text(variable or '')} events of open windows, each once, and the additions that they are in"
    for taken in query.taken:
        most = most_taken(query, taken) if taken.attribute is None else None
        values = f"the values of {to_text(taken)} in a window"
        if taken.attribute is None:
            values += f", at most {MOST_COUNT if most is None else most:,}"
        yield f"{values}: sums are kept for each"


def _variable(query: AnalysedQuery, name: str, lacks: tuple[str, ...]) -> Variable:
    return Variable(
        name_text(name),
        name_text(query.types[name]),
        name in query.negated,
        tuple(to_text(condition) for condition in query.local.get(name, ())),
        lacks,
    )


def _window(analysis: Analysis, query: Query, schema: Schema) -> Window:
    def written(duration: Duration | None) -> str:
        if duration is None:
            return "all"
        if duration.span == NOWHERE:
            return to_text(duration)
        return " ".join(analysis.text.text[duration.span.start : duration.span.end].split())

    within, slide = window_as_written(query, schema)
    most = 1 if query.session else -(-within // slide)
    offset = None if query.offset is None else written(query.offset)
    zone = None if query.session else schema.clock.zone
    begin = _begin(query, line_of(query, schema.clock)[0], offset, zone)
    return Window(written(query.within), written(query.step), within, slide, most, offset, zone, begin)


def _begin(query: Query, line: Line, offset: str | None, zone: str | None) -> str | None:
    """What to say of the times at which windows begin; None where they are multiples of the slide."""
    if zone is None:
        return None if offset is None else f"one of them begins {offset} after 1970 did (UTC)"
    if query.step is None:
        return None
    slide = query.step.seconds
    if offset is not None:
        first = f"{offset} after the first midnight of 1970"
    else:
        first = "on a Monday" if slide % WEEK == 0 else "at midnight"
    changed = ", so that they may be shorter or longer where it is changed" if isinstance(line, Calendar) else ""
    return f"one of them begins {first} by the clock of {zone}{changed}"


# ----------------------------------------------------------------------------------------------------- transitions


def _steps(part: str | None, template: Template, query: AnalysedQuery, tables: QueryTables) -> Steps:
    """A template with what the tables say of its transitions; the tables of its guards follow one another."""
    guards, begin = [], 0
    for guard in template.guards:
        end = begin + guard.template.size - 1
        sources = [(row[2], row[3]) for row in tables.guard_arrivals[begin:end]]
        guards.append(Steps(None, guard.template, _transitions(guard.template, query, tables, sources), ()))
        begin = end
    sources = [(row[1], row[2]) for row in tables.arrivals]
    return Steps(part, template, _transitions(template, query, tables, sources), tuple(guards))


def _transitions(
    template: Template, query: AnalysedQuery, tables: QueryTables, sources: Sequence[tuple[int, int]]
) -> tuple[Step, ...]:
    """What each transition reads; `sources` has the range of sources of every state behind the start."""
    reads = {state: _reads(tables, *each) for state, each in enumerate(sources, START + 1)}
    found = []
    for step in template.transitions:
        pair = None if step.source == START else (template.variable(step.source), template.variable(step.target))
        how = next(reads[step.target])
        if how == "search" and is_matching(query):
            how = "scan"
        found.append(Step(how, _predicate(query, pair)))
    return tuple(found)


def _reads(tables: QueryTables, begin: int, end: int) -> Iterator[str]:
    """Names, in `hamlet.explanation.views.READS`, of what a state's transitions read: in their order, one each.

    A transition has one source, or several searches that differ in nothing but the index.
    """
    for (kind, place, _, _), rows in groupby(tables.sources[begin:end], key=lambda source: source[:4]):
        name = _SOURCE_NAMES[kind]
        if name == "store":
            name = "search" if all(row[4] >= 0 for row in rows) else _MERGING[tables.stores[place][2]]
        yield "sum" if name == "cell" else name


def _predicate(query: AnalysedQuery, pair: Pair | None) -> str | None:
    if pair is None or pair not in query.adjacent:
        return None
    return _all(query.adjacent[pair])


def _causes(query: CompiledQuery) -> tuple[Cause, ...]:
    """The predicates for which single events are kept."""
    found: dict[Cause, None] = {}
    for template, tables in zip(query.templates, query.tables, strict=False):  # a second side repeats the first
        for _, _, _, number, index in tables.sources:
            if number < 0:
                continue
            pair = tables.predicate_pairs[number]
            predicate = _predicate(query.analysed, pair)
            assert predicate is not None
            inside = [guard.text for guard in template.guards if pair in guard.template.neighbours]
            if not inside and sees_all(query.analysed):
                continue  # only the last step of a key is kept
            found[Cause(predicate, inside[0] if inside else None, _search(query, index))] = None
    return tuple(found)


def _search(query: CompiledQuery, index: int) -> str:
    return "search" if index >= 0 and query.reach is None else "scan"
