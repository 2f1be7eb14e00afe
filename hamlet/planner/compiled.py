"""What an executor runs: queries as integer tables, classes of queries of one partition, a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hamlet.input.columns import StringPool
from hamlet.language.expression_types import times_as_compiled
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import Aggregate, Attribute, AttributeType, ReturnItem, Taken
from hamlet.language.schema import Schema
from hamlet.language.times import Times
from hamlet.planner.aggregates import ComponentKey, Layout, is_double, needed
from hamlet.planner.bands import Band, bands
from hamlet.planner.classify import Classifier, Role, Signature
from hamlet.planner.matching import Reach, sees_all
from hamlet.planner.matching_tables import MatchingTables
from hamlet.planner.tables import QueryTables
from hamlet.planner.timeline import Line, Shifted
from optimizer.template import Template

Entry = tuple[int, list[int], list[int], Role]  # as of `CompiledClass.entries`


@dataclass(frozen=True)
class CompiledQuery:
    """One query as its kernel runs it.

    Attributes
    ----------
    analysed : AnalysedQuery
    templates : tuple of Template
        One, or three for AND: both operands, and the trends that are in both.
    tables : tuple of QueryTables
        One per template, or per side.
    layout : Layout
        What a row holds.
    types : dict of (variable, attribute) to AttributeType or None
        Of the aggregated attributes.
    roles : dict of str to Role
        What accepts events for each variable.
    group : tuple of int
        Place of each grouping attribute among the partition attributes of the class.
    shared : frozenset of str
        Variables whose events several partitions of a group, or both operands of AND, may take, where matched events
        are asked for.
    like : int or None
        Place in the class of the query whose kernel query serves this one too (`hamlet.planner.alike`).
    merged query : int or None
        Which of the merged queries of the class keeps its sums.
    matching : tuple of MatchingTables
        As many, where the matching operator serves the query, else none.
    reach : Reach or None
        Of such a query.
    hidden : frozenset of str
        Event types that are no part of its stream: the rows of queries that it does not ask about.
    line : Line
        The line of time on which its windows begin at multiples of its slide.
    schema : Schema or None
        Of the events.
    sides : tuple of Layout
        The components of each of the kernel's queries, where what is over all trends and what is over events are
        computed apart; else none.
    """

    analysed: AnalysedQuery
    templates: tuple[Template, ...]
    tables: tuple[QueryTables, ...]
    layout: Layout
    types: dict[tuple[str, str], AttributeType | None]
    roles: dict[str, Role]
    group: tuple[int, ...]
    shared: frozenset[str] = frozenset()
    like: int | None = None
    merged: int | None = None
    matching: tuple[MatchingTables, ...] = ()
    reach: Reach | None = None
    hidden: frozenset[str] = frozenset()
    line: Line = Shifted()
    schema: Schema | None = None
    sides: tuple[Layout, ...] = ()

    def layout_of(self, part: int) -> Layout:
        """The components of one of the kernel's queries that it has."""
        return self.sides[part] if self.sides else self.layout

    @cached_property
    def times(self) -> Times:
        """What is known of times."""
        assert self.schema is not None, "compiled for one"
        return times_as_compiled(self.analysed, self.schema)

    def with_tables(self, tables: tuple[QueryTables, ...]) -> CompiledQuery:
        """This query with its tables."""
        found = object.__new__(CompiledQuery)  # a workload may have a thousand: `replace` takes ten times as long
        vars(found).update(vars(self), tables=tables)
        return found

    @cached_property
    def reads(self) -> tuple[tuple[ReturnItem, tuple[ComponentKey, ...], tuple[int, ...]], ...]:
        """The RETURN items, each with the components that it is read from, and their places in the layout.

        A value of the group has no component, and the place is that among its values; what is calculated of several
        has neither (`hamlet.output.expressions`).
        """
        found: list[tuple[ReturnItem, tuple[ComponentKey, ...], tuple[int, ...]]] = []
        for item in self.analysed.query.items:
            if isinstance(item.value, Aggregate):
                found.append((item, *self.components_of(item.value)))
            elif isinstance(item.value, (Attribute, Taken)):
                found.append((item, (), (self.analysed.place_of(item.value),)))
            else:
                found.append((item, (), ()))
        return tuple(found)

    def components_of(self, aggregate: Aggregate) -> tuple[tuple[ComponentKey, ...], tuple[int, ...]]:
        """The components that an aggregate is read from, and their places in the layout."""
        keys = needed(aggregate, is_double(aggregate, self.types), self.exact, aggregate.variable in self.shared)
        return keys, tuple(map(self.layout.keys.index, keys))

    @cached_property
    def is_calculated(self) -> bool:
        """Whether rows are more than what the kernel has: HAVING, TOP, or an expression in RETURN."""
        asked = self.analysed.query
        return asked.having is not None or asked.top is not None or any(item.place for item in asked.items)

    @property
    def name(self) -> str:
        """The query's name."""
        return self.analysed.query.name

    @property
    def window(self) -> tuple[int, int]:
        """(within, slide) in ticks of the query's line."""
        return self.tables[0].within, self.tables[0].slide

    @property
    def exact(self) -> bool:
        """Whether counts and sums of integers are exact."""
        return self.tables[0].exact


@dataclass(frozen=True)
class CompiledMerged:
    """A kernel's query that keeps the sums of several queries (`hamlet.planner.beginnings`).

    Attributes
    ----------
    queries : tuple of int
        Places in the class of those that have tables: its outputs.
    tables : QueryTables
    roles : mapping of str to Role
        What accepts events for the variables of the tables.
    """

    queries: tuple[int, ...]
    tables: QueryTables
    roles: Mapping[str, Role]


@dataclass(frozen=True)
class CompiledClass:
    """Queries with equal partition attributes, run by one kernel.

    Attributes
    ----------
    attributes : tuple of str
        The partition attributes.
    queries : tuple of CompiledQuery
    merged queries : tuple of CompiledMerged
        Which the kernel has behind the others.
    columns : tuple of (str, AttributeType or None)
        The event columns that the kernel reads, in its order.
    carried : dict of str to tuple of int
        Event type -> places of the partition attributes that its events carry.
    line : Line
        The line of time on which the windows of the queries begin at multiples of their slides.
    """

    attributes: tuple[str, ...]
    queries: tuple[CompiledQuery, ...]
    merged_queries: tuple[CompiledMerged, ...]
    columns: tuple[tuple[str, AttributeType | None], ...]
    carried: dict[str, tuple[int, ...]]
    line: Line = Shifted()

    @property
    def broadcasts(self) -> bool:
        """Whether some type's events belong to several partitions."""
        return any(len(places) < len(self.attributes) for places in self.carried.values())

    @cached_property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The kernel's queries that have rows: place in `queries`, place in its tables."""
        return tuple(
            (place, part)
            for place, query in enumerate(self.queries)
            if query.like is None
            for part in range(len(query.tables))
        )

    @property
    def kernel_queries(self) -> int:
        """How many the kernel has: the parts, and behind them the merged queries."""
        return len(self.parts) + len(self.merged_queries)

    @cached_property
    def parts_of(self) -> tuple[tuple[int, ...], ...]:
        """For each place in `queries` its numbers among the kernel's queries."""
        found: list[list[int]] = [[] for _ in self.queries]
        for number, (place, _) in enumerate(self.parts):
            found[place].append(number)
        leaders = (place if query.like is None else query.like for place, query in enumerate(self.queries))
        return tuple(tuple(found[place]) for place in leaders)

    @cached_property
    def users_of(self) -> tuple[tuple[int, ...], ...]:
        """For each part the places of the queries that it serves."""
        found: list[list[int]] = [[] for _ in self.parts]
        for place, parts in enumerate(self.parts_of):
            for part in parts:
                found[part].append(place)
        return tuple(map(tuple, found))

    @cached_property
    def listed(self) -> tuple[int, ...]:
        """The parts whose rows all queries that they serve ask for in the order of the first query's groups."""
        group = self.queries[0].group
        return tuple(
            self.parts_of[users[0]][0]
            for users in self.users_of
            if all(len(self.parts_of[each]) == 1 and self.queries[each].group == group for each in users)
        )

    @cached_property
    def kept_by(self) -> tuple[tuple[int, ...], ...]:
        """For each of the kernel's queries the places of the queries whose sums it keeps."""
        found: list[list[int]] = [[] for _ in range(self.kernel_queries)]
        for number, users in enumerate(self.users_of):
            merged = self.queries[self.parts[number][0]].merged
            found[number if merged is None else len(self.parts) + merged] += users
        return tuple(map(tuple, found))

    def tables(self, number: int) -> QueryTables:
        """The tables of one of the kernel's queries."""
        if number >= len(self.parts):
            return self.merged_queries[number - len(self.parts)].tables
        place, part = self.parts[number]
        return self.queries[place].tables[part]

    def roles(self, number: int) -> Mapping[str, Role]:
        """What accepts events for the variables of these tables."""
        if number >= len(self.parts):
            return self.merged_queries[number - len(self.parts)].roles
        return self.queries[self.parts[number][0]].roles

    @cached_property
    def touched(self) -> dict[str, list[tuple[int, list[str]]]]:
        """For each event type the kernel's queries that have variables of it, and these."""
        found: dict[str, list[tuple[int, list[str]]]] = {}
        for number in range(self.kernel_queries):
            if self.tables(number).is_merged:
                continue
            own: dict[str, list[str]] = {}
            for variable, role in self.roles(number).items():
                own.setdefault(role.type, []).append(variable)
            for type, variables in own.items():
                found.setdefault(type, []).append((number, variables))
        return found

    def entries(self, signature: Signature) -> list[Entry]:
        """What an event does: to which of the kernel's queries, by which arrivals and guard arrivals, in which role."""
        found = self._entries.get(signature)
        if found is None:
            found = []
            for number, variables in self.touched.get(signature.type, ()):
                tables, roles = self.tables(number), self.roles(number)
                fitting = [variable for variable in variables if signature.fits(roles[variable])]
                bound = [variable for variable in fitting if variable in tables.arrivals_of]
                arrivals = [arrival for variable in bound for arrival in tables.arrivals_of[variable]]
                guards = [arrival for variable in fitting for arrival in tables.guard_arrivals_of.get(variable, ())]
                if arrivals or guards:
                    found.append((number, arrivals, guards, roles[(bound or fitting)[0]]))
            self._entries[signature] = found
        return found

    @cached_property
    def matching(self) -> bool:
        """Whether the matching operator runs the class, not the kernel."""
        return any(query.reach is not None for query in self.queries)

    @property
    def sees_all(self) -> bool:
        """Whether events of types that no pattern names matter."""
        return any(sees_all(query.analysed) for query in self.queries)

    @property
    def retention(self) -> int:
        """Events of so many ticks may matter to a later one."""
        return max(query.window[0] if query.reach is None else query.reach.looks_back for query in self.queries)

    def matching_tables(self, number: int) -> MatchingTables:
        """The matching operator's tables of a part."""
        place, part = self.parts[number]
        return self.queries[place].matching[part]

    def seen(self, signature: Signature | None) -> list[tuple[int, list[int], list[int], bool]]:
        """What an event does: to which parts, by which arrivals and guard arrivals, and whether their pattern names it.

        Without a signature it is of a type that no query of the workload names, or of none.
        """
        found = []
        for number, (place, _) in enumerate(self.parts):
            query, tables = self.queries[place], self.matching_tables(number)
            types = query.analysed.types
            named = signature is not None and signature.type in types.values()
            fitting = [name for name, role in query.roles.items() if signature is not None and signature.fits(role)]
            arrivals = [arrival for name in fitting for arrival in tables.arrivals_of.get(name, ())]
            guards = [arrival for name in fitting for arrival in tables.guard_arrivals_of.get(name, ())]
            hidden = signature is not None and signature.type in query.hidden
            if arrivals or guards or (sees_all(query.analysed) and not hidden) or (tables.gap >= 0 and named):
                found.append((number, arrivals, guards, named))
        return found

    @cached_property
    def _entries(self) -> dict[Signature, list[Entry]]:
        """Those found so far."""
        return {}

    def likeness(self, number: int) -> tuple[tuple[object, ...], ...]:
        """The steps of a part, and its event types, those that may repeat first: like events meet like lanes."""
        place, part = self.parts[number]
        query = self.queries[place]
        template = query.templates[0 if query.sides else part]
        types = tuple(query.analysed.types[template.variable(state)] for state in range(1, template.size))
        steps = sorted((each.target, each.source) for each in template.transitions)
        return tuple(steps), tuple(types[target - 1] for target, source in steps if target == source), types

    @cached_property
    def bands(self) -> list[Band]:
        """Those of the kernel's queries that it runs side by side."""
        numbers = range(len(self.parts))
        return bands([self.tables(number) for number in numbers], [self.likeness(number) for number in numbers])


@dataclass(frozen=True)
class CompiledWorkload:
    """All that an executor needs besides events."""

    classes: tuple[CompiledClass, ...]
    classifier: Classifier
    strings: StringPool
    schema: Schema

    @property
    def queries(self) -> list[CompiledQuery]:
        """All queries in the order of the workload."""
        found = [query for each in self.classes for query in each.queries]
        return sorted(found, key=lambda query: query.analysed.index)

    @property
    def is_plain(self) -> bool:
        """Whether no predicate was compiled: programs number strings, and have memory that one thread uses."""
        return not (self.classifier.has_programs or any(query.analysed.adjacent for query in self.queries))

    def anew(self, strings: StringPool) -> CompiledWorkload:
        """A copy for another run, which numbers its own strings; only where this one `is_plain`."""
        return CompiledWorkload(self.classes, self.classifier.anew(strings), strings, self.schema)
