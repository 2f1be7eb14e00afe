"""The integer tables of the matching operator (`hamlet.kernel.operators.matching.operator`).

Field by field they mirror the structs of ``matching/tables.pxd``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from hamlet.kernel.expression import Program
from hamlet.kernel.operators.matching.operator import SEMANTICS
from hamlet.language.meaning import AnalysedQuery, Pair
from hamlet.language.query import AttributeType, Expression, Semantics
from hamlet.planner.adjacent import Keys, are_apart
from hamlet.planner.aggregates import Layout, Types
from hamlet.planner.matching import EVENT_ID, NONE, SESSION_END, Automaton, Reach, most_taken
from hamlet.planner.tables import Writer
from hamlet.planner.timeline import Calendar
from optimizer.template import START, Guard

_BITS = 64  # of a word: a bit for each state
_OVERLAP = 16  # windows, at most, that values are counted in one by one


Key = tuple[Program, list[int], bool]  # the event columns that it reads; whether it is a double


@dataclass(frozen=True)
class Compared:
    """A predicate on neighbours that a log answers.

    Attributes
    ----------
    columns : tuple of int
        Event columns of the attributes that it reads, whatever is known of their types.
    vector, scalar : tuple of int
        Event columns of its program.
    searches : tuple of (int, int, int, keys, keys)
        Whether the last key is ordered, equal ones are, too, and the order is turned round; the keys of the earlier and
        of the later event. Without any all pairs of events are looked at.
    """

    columns: tuple[int, ...]
    vector: tuple[int, ...]
    scalar: tuple[int, ...]
    searches: tuple[tuple[int, int, int, list[Key], list[Key]], ...]


@dataclass
class MatchingTables:
    """One part of a query; tuples in the order of the operator's struct fields."""

    semantics: int
    within: int
    slide: int
    span: int
    gap: int
    delay: int
    keeps: int
    pane: int
    session_end: int
    exact: bool
    components: list[tuple[int, ...]]
    fixed: int
    wide: int
    sets: list[tuple[int, ...]]
    variables: int
    ways: list[tuple[int, int, int]] = field(default_factory=list)
    arrivals: list[tuple[int, ...]] = field(default_factory=list)
    states: list[tuple[int, ...]] = field(default_factory=list)
    end_guards: list[int] = field(default_factory=list)
    guard_arrivals: list[tuple[int, ...]] = field(default_factory=list)
    stores: list[tuple[int, int]] = field(default_factory=list)
    event_components: list[tuple[int, ...]] = field(default_factory=list)
    traced: list[tuple[int, int, int]] = field(default_factory=list)
    event_sets: list[tuple[int, int, int]] = field(default_factory=list)
    takings: list[tuple[int, ...]] = field(default_factory=list)
    logs: bool = False  # whether events are logged, and looked through when a window closes
    over_events: bool = False  # whether it is enough to know that there is a trend, not how many
    slides: bool = False  # whether sums over trends of limited length are sliding products, and the store is a log
    predicates: list[tuple[Program, tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)  # of a log: what its predicates read, and their keys
    members: list[int] = field(default_factory=list)
    guard_sets: list[tuple[int, int]] = field(default_factory=list)
    guard_first: list[int] = field(default_factory=lambda: [0])
    arrivals_of: dict[str, list[int]] = field(default_factory=dict)
    guard_arrivals_of: dict[str, list[int]] = field(default_factory=dict)
    calendar: tuple[Any, ...] | None = None  # `hamlet.planner.timeline.Calendar.table`, where times stay what they are

    @property
    def looks_back(self) -> bool:
        """Whether an event costs all events, or all beginnings of trends, before it: next moves each but once."""
        keeps_beginnings = self.span >= 0 and not self.logs and not self.slides
        scans = any(not each.searches for each in self.compared) if self.logs else bool(self.predicates)
        return self.semantics == SEMANTICS["any"] and (scans or keeps_beginnings)

    @property
    def slots(self) -> int:
        """How many sums a sliding product has: a state, once for each set of guards on the ways that leave it."""
        return len({(source, guards) for source, guards, _ in self.ways if source > START})

    def logged_slots(self) -> tuple[list[tuple[int, int]], set[tuple[int, int]]]:
        """The slots of a log, (state, guard set), in their order; and those in which trends end.

        A state is a slot once for each set of guards on the ways and ends that leave it; the start is one, too.
        """
        ways = [way for _, _, begin, end in self.arrivals for way in self.ways[begin:end]]
        ends = {(state, NONE) for state, row in enumerate(self.states) if row[5]}
        for state, row in enumerate(self.states):
            ends |= {(state, self.end_guards[end]) for end in self.members[row[6] : row[7]]}
        return sorted(ends | {(source, guards) for source, guards, _ in ways}), ends

    def recorded(self) -> list[tuple[int, int, int]]:
        """(traced variable, place, event column) of the attributes that records of matched events keep."""
        return [
            (number, place, self.members[begin + place])
            for number, (_, begin, end) in enumerate(self.traced)
            for place in range(end - begin)
        ]

    def compared_columns(self) -> list[tuple[int, int, int]]:
        """(predicate, place, event column) of the attributes that a log keeps since neighbours are compared by them.

        Those that are added up over trends of compared neighbours have -1 and the place of a component.
        """
        return [
            *(
                (number, place, column)
                for number, each in enumerate(self.compared)
                for place, column in enumerate(each.columns)
            ),
            *((NONE, place, row[2]) for place, row in enumerate(self.components) if self.compared and row[2] >= 0),
        ]

    def kept(self) -> list[tuple[int, int, int]]:
        """(list, place, event column) of the attributes that nodes keep."""
        found = [
            (state, place, self.members[begin + place])
            for state, (_, single, begin, end, *_) in enumerate(self.states)
            for place in range(end - begin if single else 0)
        ]
        first = len(self.states) + len(self.end_guards) + 1
        for number, (begin, end) in enumerate(self.stores, first):
            found += [(number, place, self.members[begin + place]) for place in range(end - begin)]
        return found


@dataclass
class MatchingWriter(Writer):
    """Writes the tables of one part of a query.

    Parameters
    ----------
    query : AnalysedQuery
    automaton : Automaton
    program_of, references, column_of, keys_of
        As of `Writer` and `TableWriter`; pairs are of neighbours.
    key_program : callable
        Compiles one key; also whether it is a double.
    layout, types, variables
        As for `empty_tables`.
    tables : MatchingTables
        Filled.
    over_events : bool
        Whether all that is asked is over matched events.
    """

    query: AnalysedQuery
    automaton: Automaton
    program_of: Callable[[Pair], Program]
    references: Callable[[Pair], tuple[list[str], list[str]]]
    column_of: Callable[[str, str], int]
    keys_of: Callable[[Pair], tuple[Keys, ...]]
    key_program: Callable[[Expression], tuple[Program, bool]]
    layout: Layout
    types: Types
    variables: Mapping[str, int]
    tables: MatchingTables
    over_events: bool
    set_numbers: dict[frozenset[int], int] = field(default_factory=dict)
    kept: dict[object, dict[str, int]] = field(default_factory=dict)  # state or store -> attribute -> event column
    predicate_numbers: dict[tuple[object, Pair], int] = field(default_factory=dict)

    def write(self) -> MatchingTables:
        """Fill and return the tables."""
        found, tables = self.automaton.template, self.tables
        for guard in found.guards:
            self._guard(guard)
        ways: dict[int, list[tuple[int, int, int]]] = {state: [] for state in range(1, found.size)}
        leaving: dict[int, frozenset[int]] = {}
        for step in found.transitions:
            ways[step.target].append(self._way(step.source, found.variable(step.target), step.guards))
            leaving[step.source] = leaving.get(step.source, frozenset()) | step.guards
        for state in range(1, found.size):
            self._arrival(state, found.labels[state], found.variable(state), ways[state])
        for source, variable, guards in self.automaton.only_moves:
            self._arrival(NONE, 0, variable, [self._way(source, variable, guards)])
            leaving[source] = leaving.get(source, frozenset()) | guards
        ends: dict[int, list[int]] = {}
        final = {each.state for each in found.finals if not each.guards}
        for each in found.finals:
            if each.guards:
                ends.setdefault(each.state, []).append(len(tables.end_guards))
                tables.end_guards.append(self._set(each.guards))
        for state in range(found.size):
            columns = list(self.kept[state].values()) if state in self.kept else []
            tables.states.append(
                (
                    int(state in leaving and state != START),
                    int(state in self.kept),
                    *self._members(columns),
                    self._set(leaving.get(state, frozenset())),
                    int(state in final),
                    *self._members(ends.get(state, [])),
                )
            )
        self._trace()
        tables.over_events = self.over_events and len(self.query.patterns) == 1  # pairs need numbers
        stores = [key for key in self.kept if not isinstance(key, int)]
        tables.stores = [self._members(list(self.kept[key].values())) for key in stores]
        tables.logs = self._logs()
        if tables.logs:
            tables.compared = [self._compared(source, pair) for source, pair in self.predicate_numbers]
        tables.slides = why_no_product(self.query, tables) is None
        if tables.slides:
            read = dict.fromkeys(column for _, _, column, *_ in tables.components if column >= 0)
            tables.stores = [self._members(list(read))]
        return tables

    def _logs(self) -> bool:
        """Whether a window can be looked through when it closes: all may be skipped.

        Then a bit for each state, once for each set of guards on the ways and ends that leave it, says whether trends
        have reached it; and where trends are counted they are in integers, by at most one thing that they took. Where
        neighbours are compared an extreme value stands beside each bit, and sums over trends in trees by key; by what
        trends took, there would be as many trees. Events that several partitions, or both operands, may take are given
        row by row with what tells them apart. Under SPAN beginnings matter, which no guard behind the last event
        may tell apart; counts of trends by how many events they took are products of polynomials there, and better
        kept by beginnings; so are values where windows overlap much, for each of them is looked through, while trends
        that are kept are added up by pane.
        """
        tables = self.tables
        plain = self.query.query.semantics is Semantics.ANY and tables.gap < 0
        if tables.span >= 0:
            counts = any(each.function == "COUNT" for each in self.query.taken)
            alone = len(self.query.patterns) == 1  # rows of both operands come at one time, and one may look ahead
            few = bool(tables.traced or (tables.takings and tables.within <= _OVERLAP * tables.slide))
            plain = plain and alone and not tables.end_guards and not counts and few
        free = not (tables.stores or self.automaton.only_moves)
        once = all(key.once for key in self.layout.keys[1:])
        counted = tables.exact and len(tables.takings) == (not tables.traced)
        compares = bool(tables.predicates)
        if compares:
            free = (
                free
                and tables.span < 0
                and all(are_apart(self.query.adjacent[pair]) for _, pair in self.predicate_numbers)
            )
        asked = once and (counted or (tables.over_events and not tables.takings))
        if compares:
            asked = bool(tables.traced) and not (tables.takings or tables.sets)
        return plain and free and asked and only_single_events(tables) and len(tables.logged_slots()[0]) <= _BITS

    def _compared(self, source: object, pair: Pair) -> Compared:
        """How a log answers the predicate of a pair."""
        program, _, _ = self.tables.predicates[self.predicate_numbers[source, pair]]
        read = self.references(pair)
        columns = [self.column_of(pair[side], name) for side in (0, 1) for name in read[side]]
        vector = [self.column_of(pair[0], name) for name in program.vector_columns]
        scalar = [self.column_of(pair[1], name) for name in program.scalar_columns]
        searches = []
        for keys in self.keys_of(pair):
            sides: tuple[list[Key], list[Key]] = ([], [])
            for side, variable in enumerate(pair):
                for expressions in keys.pairs:
                    key, floating = self.key_program(expressions[side])
                    sides[side].append((key, [self.column_of(variable, each) for each in key.vector_columns], floating))
            inclusive, turned = keys.operator in ("<=", ">="), keys.operator in (">", ">=")
            searches.append((int(keys.ordered is not None), int(inclusive), int(turned), *sides))
        return Compared(tuple(columns), tuple(vector), tuple(scalar), tuple(searches))

    def _trace(self) -> None:
        """What is kept of the events that aggregates over matched events, and groups, ask for."""
        tables, variables = self.tables, self.variables
        read: dict[str, dict[str, int]] = {}  # variable -> attribute -> place in its records
        keys = [key for key in self.layout.keys if key.once or key.kind == "events"]
        for key in keys:
            assert key.variable is not None
            places = read.setdefault(key.variable, {})
            names = [*([EVENT_ID] if key.kind == "events" else []), *([key.attribute] if key.attribute else [])]
            for name in names:
                places.setdefault(name, len(places))
        traced = list(read)
        for variable in traced:
            columns = [self.column_of(variable, name) for name in read[variable]]
            tables.traced.append((variables.get(variable, -2), *self._members(columns)))
        tables.event_components = self.layout.cells.rows(
            variables, lambda variable, name: read[variable][name], self.types, once=True
        )
        for key in keys:
            if key.kind == "events":
                assert key.variable is not None
                places = read[key.variable]
                value = NONE if key.attribute is None else places[key.attribute]
                tables.event_sets.append((traced.index(key.variable), places[EVENT_ID], value))
        for taken in self.query.taken:
            most = most_taken(self.query, taken) if taken.attribute is None else None
            type = self.types.get((taken.variable, taken.attribute or ""))
            column = NONE if taken.attribute is None else self.column_of(taken.variable, taken.attribute)
            tables.takings.append(
                (
                    ("FIRST", "LAST", "COUNT").index(taken.function),
                    NONE if most is None else most,
                    variables.get(taken.variable, -2),
                    column,
                    0,
                    int(type is AttributeType.DOUBLE),
                    int(type is AttributeType.STRING),
                )
            )

    def _arrival(self, state: int, label: int, variable: str, ways: list[tuple[int, int, int]]) -> None:
        self.tables.arrivals_of.setdefault(variable, []).append(len(self.tables.arrivals))
        begin = len(self.tables.ways)
        self.tables.ways += ways
        self.tables.arrivals.append((state, label, begin, len(self.tables.ways)))

    def _way(self, source: int, target: str, guards: frozenset[int]) -> tuple[int, int, int]:
        """What a transition reads: state, guard set, predicate."""
        predicate = NONE
        if source != START:
            pair = (self.automaton.template.variable(source), target)
            if pair in self.query.adjacent:
                predicate = self._predicate(source, pair)
        return source, self._set(guards), predicate

    def _guard(self, guard: Guard) -> None:
        """The tables of one negated pattern: per state the latest start of a partial match."""
        automaton, number = guard.template, len(self.tables.guard_first) - 1
        base = self.tables.guard_first[-1]
        self.tables.guard_first.append(base + automaton.size)
        finals = {final.state for final in automaton.finals}
        stores: dict[int, tuple[int, int]] = {}  # state of this pattern -> key of its store
        rows = []
        for state in range(1, automaton.size):
            ways = []
            for step in automaton.transitions:
                if step.target != state:
                    continue
                pair = (automaton.variable(step.source), automaton.variable(state)) if step.source != START else None
                if step.source == START:
                    ways.append((NONE, NONE, NONE))
                elif pair is not None and pair in self.query.adjacent:
                    key = stores.setdefault(step.source, (number, step.source))
                    predicate = self._predicate(key, pair)
                    ways.append((base + step.source, self._store(key), predicate))
                else:
                    ways.append((base + step.source, NONE, NONE))
            rows.append((state, ways))
        for state, ways in rows:
            begin = len(self.tables.ways)
            self.tables.ways += ways
            arrivals = self.tables.guard_arrivals
            self.tables.guard_arrivals_of.setdefault(automaton.variable(state), []).append(len(arrivals))
            store = self._store(stores[state]) if state in stores else NONE
            arrivals.append((number, base + state, begin, len(self.tables.ways), store, int(state in finals)))

    def _store(self, key: tuple[int, int]) -> int:
        return [each for each in self.kept if not isinstance(each, int)].index(key)

    def _predicate(self, place: int | tuple[int, int], pair: Pair) -> int:
        return self._predicate_over(place, self.kept.setdefault(place, {}), pair)


def only_single_events(tables: MatchingTables) -> bool:
    """Whether every event of a negated pattern is a match of it."""
    return all(
        final and (NONE, NONE, NONE) in tables.ways[begin:end] for _, _, begin, end, _, final in tables.guard_arrivals
    )


def why_no_product(query: AnalysedQuery, tables: MatchingTables) -> str | None:
    """Why trends of limited length are kept by the time at which they begin; None where a sliding product serves."""
    if tables.span < 0 or tables.gap >= 0:
        return "no trend has a limited length" if tables.span < 0 else "a session has no windows that slide"
    if query.query.semantics is not Semantics.ANY:
        return f"{query.query.semantics.value} takes trends out of the states that they stand in"
    if tables.predicates:
        return "neighbouring events are compared"
    if tables.sets:
        return "sets of distinct values are no sums"
    if tables.traced or tables.takings:
        return "events of trends are told apart"
    if tables.end_guards:
        return "a negated pattern at the end looks ahead"
    if not only_single_events(tables):
        return "a negated pattern has more than one event"
    return None


def empty_tables(
    query: AnalysedQuery,
    reach: Reach,
    layout: Layout,
    types: Types,
    variables: Mapping[str, int],
    column_of: Callable[[str, str], int],
    *,
    exact: bool,
    delayed: bool,
    keeps: int,
) -> MatchingTables:
    """The tables of a part before its automaton is written.

    Parameters
    ----------
    query : AnalysedQuery
    reach : Reach
    layout : Layout
        Sets behind all other components.
    types : mapping of (variable, attribute) to AttributeType or None
    variables : mapping of str to int
        Of the part's template.
    column_of : callable
    exact : bool
    delayed : bool
        Whether rows wait for what may forbid trends after their windows.
    keeps : int
        Ticks that partitions are remembered after their last event.
    """
    cells = layout.cells
    sets: list[tuple[int, ...]] = []
    for key in layout.keys:
        if key.kind in ("distinct", "registers") and key.variable is not None and key.attribute is not None:
            type = types.get((key.variable, key.attribute))
            sets.append(
                (
                    variables.get(key.variable, -2),
                    column_of(key.variable, key.attribute),
                    int(key.kind == "registers"),
                    int(type is AttributeType.DOUBLE),
                    int(type is AttributeType.STRING),
                )
            )
    end = next((place for place, key in enumerate(cells.keys) if key.attribute == SESSION_END), NONE)
    return MatchingTables(
        SEMANTICS[query.query.semantics.name.lower()],
        reach.within,
        reach.slide,
        reach.span,
        reach.gap,
        reach.span if delayed and reach.gap < 0 <= reach.span else 0,
        max(keeps, reach.span + 1),
        gcd(reach.within, reach.slide),
        end,
        exact,
        cells.rows(variables, column_of, types),
        cells.fixed,
        cells.wide,
        sets,
        len(variables),
        calendar=reach.line.table if isinstance(reach.line, Calendar) and reach.line.apart else None,
    )
