"""From an analysed workload and a schema to what an executor runs (`hamlet.planner.compiled`).

What the tables mean is in ``plan.pxd``; ARCHITECTURE.md has the steps before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from hamlet.input.columns import StringPool
from hamlet.kernel.expression import Program
from hamlet.language.automaton import templates
from hamlet.language.conditions import references, walk
from hamlet.language.expression_types import compiled_type, times_as_compiled
from hamlet.language.meaning import AnalysedQuery, Analysis, Pair
from hamlet.language.query import (
    AttributeType,
    Condition,
    Duration,
    Expression,
    Literal,
    Query,
    Reference,
    Shift,
    atoms,
)
from hamlet.language.schema import Schema
from hamlet.language.times import TIMES
from hamlet.planner.adjacent import Keys, keys_of
from hamlet.planner.aggregates import ComponentKey, Layout, Types, apart, components, in_order
from hamlet.planner.alike import form
from hamlet.planner.classify import Classifier, Loads, Role
from hamlet.planner.compiled import CompiledClass, CompiledMerged, CompiledQuery, CompiledWorkload
from hamlet.planner.matching import (
    SESSION_END,
    Reach,
    automata,
    is_matching,
    is_over_events,
    matching_form,
    sees_all,
    shared_variables,
)
from hamlet.planner.matching_tables import MatchingTables, MatchingWriter, empty_tables
from hamlet.planner.merged_queries import MergedQuery
from hamlet.planner.predicate_facts import adjacent_predicates, local_predicates
from hamlet.planner.program import ProgramWriter, Text
from hamlet.planner.roles import role_keys
from hamlet.planner.tables import QueryTables, TableWriter
from hamlet.planner.timeline import Everything, line_of
from hamlet.planner.together import alone, find_together, names_in
from optimizer.plan import GRAPHLETS, MATCHING, MATCHING_ALL, AggregateFacts, Plan, QueryFacts, plan
from optimizer.template import Template


def ticks(duration: Duration, schema: Schema) -> int:
    """A duration in ticks of the time column; the check has refused what does not come out whole."""
    whole, rest = duration.ticks(schema.clock.ticks_per_second)
    assert rest == 0, "checked by hamlet.language.typecheck"
    return whole


def window(query: AnalysedQuery, schema: Schema) -> tuple[int, int]:
    """(within, slide) on the query's line of time; SLIDE defaults to WITHIN. Of sessions the gap, and 1."""
    _, within, slide = line_of(query.query, schema.clock)
    return within, slide


def window_as_written(query: Query, schema: Schema) -> tuple[int, int]:
    """(within, slide) in ticks of the time column; SLIDE defaults to WITHIN. Of sessions the gap, and 1."""
    if query.within is None:
        return Everything.length, Everything.length
    within = ticks(query.within, schema)
    if query.session:
        return within, 1
    return within, within if query.slide is None else ticks(query.slide, schema)


def lengths(analysis: Analysis, schema: Schema) -> list[tuple[int, int]]:
    """`window_as_written` of all queries."""
    return [window_as_written(query.query, schema) for query in analysis.queries]


def reach_of(query: AnalysedQuery, schema: Schema) -> Reach:
    """How far the trends of a query reach in time."""
    line, within, slide = line_of(query.query, schema.clock)
    span = -1 if query.query.longest is None else ticks(query.query.longest, schema)
    return Reach(within, slide, span, within if query.query.session else -1, line)


def facts(analysis: Analysis, schema: Schema) -> list[QueryFacts]:
    """What the optimizer knows of each query."""
    return [_facts(query, schema) for query in analysis.queries]


def _facts(query: AnalysedQuery, schema: Schema) -> QueryFacts:
    type_of = partial(compiled_type, query, schema)
    return QueryFacts(
        query.query.name,
        templates(query.patterns),
        frozenset(query.partition),
        *window(query, schema),
        tuple(AggregateFacts(each.function, each.variable, each.attribute) for each in query.aggregates),
        local_predicates(query, type_of),
        adjacent_predicates(query, type_of),
        GRAPHLETS if not is_matching(query) else MATCHING_ALL if sees_all(query) else MATCHING,
        line_of(query.query, schema.clock)[0],
    )


def compile_workload(
    analysis: Analysis,
    schema: Schema,
    strings: StringPool,
    *,
    exact: bool = True,
    together: bool = False,
    settled: bool = True,
    indexed: bool = True,
) -> CompiledWorkload:
    """Compile a workload for a schema.

    Parameters
    ----------
    analysis : Analysis
        Checked against the schema (`hamlet.language.typecheck.check`).
    schema : Schema
    strings : StringPool
        Numbers strings for as long as the kernels live.
    exact : bool
        Whether counts and sums of integers are exact (docs/numbers.md, "Exact numbers").
    together : bool
        Whether queries that are alike are evaluated once, and sums that several have in common.
    settled : bool
        Whether the schema knows the types for good.
    indexed : bool
        Whether earlier events are found by ordered sums where they can be; else each of them is looked at.
    """
    exact = exact or any(may_add_times(query, schema, settled) for query in analysis.queries)
    known = facts(analysis, schema)
    chosen: Plan = plan(known)
    classifier = Classifier(strings)
    same = role_keys(analysis, known, settled=settled)
    special = (schema.clock.column, schema.type_column)  # every event has them
    classes = []
    asked = analysis.text.queries
    rows = frozenset(query.name for query in asked) & {atom.type for query in asked for atom in atoms(query.pattern)}
    if any(map(sees_all, analysis.queries)):
        for type in (*analysis.declared, *rows):
            classifier.plain(type)  # some query has to tell them from types that nobody knows
    for each in chosen.classes:
        compiler = _ClassCompiler(schema, strings, classifier, same, each.attributes, exact, indexed)
        given = [(analysis.queries[place], known[place]) for place in each.queries]
        types = {type for query, _ in given for type in query.types.values()}
        if each.operator == MATCHING_ALL:
            types |= analysis.declared.keys()
        carried = {
            type: tuple(
                place
                for place, attribute in enumerate(each.attributes)
                if attribute in analysis.declared.get(type, (attribute,)) or attribute in special
            )
            for type in sorted(types)
        }
        merged_queries: tuple[CompiledMerged, ...] = ()
        if each.operator == GRAPHLETS:
            queries, merged_queries = compiler.queries(given, together)
        else:
            queries = compiler.matching(given, together, carried, rows)
        line, _, _ = line_of(given[0][0].query, schema.clock)
        queries = tuple(replace(query, line=line) for query in queries) if not line.is_plain else queries
        classes.append(CompiledClass(each.attributes, queries, merged_queries, tuple(compiler.columns), carried, line))
    return CompiledWorkload(tuple(classes), classifier, strings, schema)


def may_add_times(query: AnalysedQuery, schema: Schema, settled: bool) -> bool:
    """Whether times are added up, of which doubles have too few digits: a mean is near its values, far from 1970.

    An attribute without a type may still turn out to be a time where types are not `settled`, and sums that have begun
    stay as they are.
    """
    for each in query.aggregates:
        if each.function in ("SUM", "AVG") and each.variable is not None and each.attribute is not None:
            kind = compiled_type(query, schema, each.variable, each.attribute)
            if kind in TIMES or (kind is None and not settled):
                return True
    return False


def may_refuse(workload: CompiledWorkload) -> bool:
    """Whether a predicate computes with times, or compares them, in a way that is an error at the first such event."""
    return any(_may_refuse(query.analysed, workload.schema) for query in workload.queries)


def _may_refuse(query: AnalysedQuery, schema: Schema) -> bool:
    def type_of(reference: Reference) -> AttributeType | None:
        return compiled_type(query, schema, reference.variable, reference.attribute)

    def is_of_times(part: object) -> bool:
        if isinstance(part, Reference):
            return type_of(part) in TIMES
        return isinstance(part, Literal) and isinstance(part.value, Duration)

    for conditions in (*query.local.values(), *query.adjacent.values()):
        if any(is_of_times(part) for each in conditions for part in walk(each)):
            writer = ProgramWriter(type_of, lambda _: True, StringPool(), times_as_compiled(query, schema))
            writer.all_of(conditions, Text(conditions[0]))
            if any(name == "refuse" for name, _, _ in writer.steps):
                return True
    return False


@dataclass
class _ClassCompiler:
    schema: Schema
    strings: StringPool
    classifier: Classifier
    same: Mapping[tuple[int, str], Hashable]
    attributes: tuple[str, ...]
    exact: bool
    indexed: bool

    def __post_init__(self) -> None:
        self.columns: dict[tuple[str, AttributeType | None], int] = {}
        self.windows: dict[int, tuple[int, int]] = {}  # of queries by their index, in ticks
        self.written: dict[Hashable, tuple[QueryTables, dict[str, str]]] = {}  # with the names of its variables

    def queries(
        self, given: Sequence[tuple[AnalysedQuery, QueryFacts]], together: bool
    ) -> tuple[tuple[CompiledQuery, ...], tuple[CompiledMerged, ...]]:
        """Compile queries; those that are alike get the tables of the first one. And merged queries of several."""
        drafts = [self.draft(analysed, known.templates) for analysed, known in given]
        self.windows.update({analysed.index: (known.within, known.slide) for analysed, known in given})
        names = names_in(drafts)
        windows = [self.windows[each.analysed.index] for each in drafts]
        chosen = find_together(drafts, windows, names) if together else alone(drafts)
        for places in chosen.alike:
            if len(places) > 1:
                for place in places:
                    layout = chosen.layouts[place]
                    types = self.types(drafts[place].analysed, layout)
                    drafts[place] = replace(drafts[place], layout=layout, types=types)
        merged_queries = [self.is_merged(drafts, number, *each) for number, each in enumerate(chosen.merged_queries)]
        for first, *others in chosen.alike:
            leader = drafts[first]
            if leader.merged is None:
                own = names[first] if len(leader.templates) == 1 else None
                tables = [
                    self.tables(leader.analysed, each, leader.layout, leader.types, own) for each in leader.templates
                ]
                leader = drafts[first] = leader.with_tables(tuple(tables))
            for place in others:
                drafts[place] = replace(drafts[place], tables=leader.tables, like=first, merged=leader.merged)
        number_outputs(drafts, merged_queries)
        return tuple(drafts), tuple(merged_queries)

    def matching(
        self,
        given: Sequence[tuple[AnalysedQuery, QueryFacts]],
        together: bool,
        carried: Mapping[str, tuple[int, ...]],
        rows: frozenset[str],
    ) -> tuple[CompiledQuery, ...]:
        """Compile queries for the matching operator; those that differ in RETURN only are evaluated once."""
        drafts = [self.draft(analysed, known.templates) for analysed, known in given]
        self.windows.update({analysed.index: (known.within, known.slide) for analysed, known in given})
        reaches = [reach_of(analysed, self.schema) for analysed, _ in given]
        keeps = 0
        if any(len(places) < len(self.attributes) for places in carried.values()):
            keeps = max(each.looks_back for each in reaches)
        alike: dict[Hashable, list[int]] = {}
        for place, draft in enumerate(drafts):
            key = (matching_form(draft.analysed), reaches[place]) if together else place
            alike.setdefault(key, []).append(place)
        for leader, *others in alike.values():
            layout = in_order(key for place in (leader, *others) for key in drafts[place].layout.keys)
            types = {key: type for place in (leader, *others) for key, type in drafts[place].types.items()}
            for place in (leader, *others):
                hidden = rows - drafts[place].analysed.upstream.keys()
                drafts[place] = replace(drafts[place], layout=layout, types=types, reach=reaches[place], hidden=hidden)
            sides = _sides(drafts[leader])
            tables = self.matching_tables(drafts[leader], keeps, sides or (layout,))
            if sides and not tables[1].logs:  # then neither gains
                sides, tables = (), self.matching_tables(drafts[leader], keeps, (layout,))
            plain = tuple(
                self.tables(drafts[leader].analysed, template, each, types)
                for template in drafts[leader].templates
                for each in sides or (layout,)
            )
            for place in (leader, *others):
                like = None if place == leader else leader
                drafts[place] = replace(drafts[place], tables=plain, matching=tables, like=like, sides=sides)
        return tuple(drafts)

    def matching_tables(
        self, query: CompiledQuery, keeps: int, layouts: Sequence[Layout]
    ) -> tuple[MatchingTables, ...]:
        """The matching operator's tables of a query: for each automaton those of each layout."""
        analysed, column_of = query.analysed, partial(self.column, query.analysed)
        assert query.reach is not None
        parts = automata(analysed)
        delayed = any(final.guards for each in parts for final in each.template.finals)
        found = []
        for each, layout in product(parts, layouts):
            variables = {variable: number for number, variable in enumerate(each.template.variables)}
            writer = MatchingWriter(
                analysed,
                each,
                partial(self.pair_program, analysed),
                lambda pair: read_attributes(analysed.adjacent[pair]),
                column_of,
                partial(self.pair_keys, analysed),
                partial(self.key_program, analysed),
                layout,
                query.types,
                variables,
                empty_tables(
                    analysed,
                    query.reach,
                    layout,
                    query.types,
                    variables,
                    column_of,
                    exact=self.exact,
                    delayed=delayed,
                    keeps=keeps,
                ),
                is_over_events(analysed) or (len(layouts) > 1 and layout is layouts[1]),
            )
            found.append(writer.write())
        return tuple(found)

    def is_merged(
        self, drafts: list[CompiledQuery], number: int, places: tuple[int, ...], merged: MergedQuery
    ) -> CompiledMerged:
        """Compile a merged query; its queries get tables without anything but a layout."""
        tables = self.merged_tables([drafts[place] for place in places], merged)
        for place in places:
            each = drafts[place]
            components = each.layout.rows({}, partial(self.column, each.analysed), each.types)
            layout = components, each.layout.fixed, each.layout.wide
            own = QueryTables(tables.within, tables.slide, self.exact, *layout, is_merged=True)
            drafts[place] = replace(each, tables=(own,), merged=number)
        return CompiledMerged(places, tables, merged.roles)

    def merged_tables(self, queries: Sequence[CompiledQuery], merged: MergedQuery) -> QueryTables:
        """The tables of a merged query."""
        own = [{common: variable for variable, common in names.items()} for names in merged.names]

        def whose(variable: str) -> tuple[CompiledQuery, str]:
            number = next(number for number, names in enumerate(own) if variable in names)
            return queries[number], own[number][variable]

        def pair_of(pair: Pair) -> tuple[AnalysedQuery, Pair]:
            number, its = merged.pairs[pair]
            return queries[number].analysed, its

        def column_of(variable: str, attribute: str) -> int:
            query, its = whose(variable)
            return self.column(query.analysed, its, attribute)

        types: dict[tuple[str, str], AttributeType | None] = {}
        for key in merged.layout.keys:
            if key.variable is not None and key.attribute is not None:
                query, its = whose(key.variable)
                types[key.variable, key.attribute] = self.type_of(query.analysed, its, key.attribute)
        within, slide = self.windows[queries[0].analysed.index]
        variables = {variable: number for number, variable in enumerate(merged.template.variables)}
        components = merged.layout.rows(variables, column_of, types)
        writer = TableWriter(
            merged.template,
            {pair: queries[number].analysed.adjacent[its] for pair, (number, its) in merged.pairs.items()},
            lambda pair: self.pair_program(*pair_of(pair)),
            lambda pair: read_attributes(pair_of(pair)[0].adjacent[pair_of(pair)[1]]),
            column_of,
            lambda pair: self.pair_keys(*pair_of(pair)),
            lambda pair, expression: self.key_program(pair_of(pair)[0], expression),
            QueryTables(within, slide, self.exact, components, merged.layout.fixed, merged.layout.wide),
            merged,
        )
        return writer.write()

    def types(self, analysed: AnalysedQuery, layout: Layout) -> dict[tuple[str, str], AttributeType | None]:
        """The types of the attributes that a query's components measure."""
        places = [(key.variable, key.attribute) for key in layout.keys if key.variable and key.attribute]
        return {place: self.type_of(analysed, *place) for place in dict.fromkeys(places)}

    def draft(self, analysed: AnalysedQuery, templates: tuple[Template, ...]) -> CompiledQuery:
        """A query without its tables."""
        types: dict[tuple[str, str], AttributeType | None] = {}
        for each in analysed.aggregates:
            if each.attribute is not None:
                place = (each.variable or "", each.attribute)
                types[place] = self.type_of(analysed, *place)
        for taken in analysed.taken:
            if taken.attribute is not None:
                types[taken.variable, taken.attribute] = self.type_of(analysed, taken.variable, taken.attribute)
        shared = shared_variables(analysed) if any(each.events for each in analysed.aggregates) else frozenset()
        layout = components(analysed.aggregates, types, exact=self.exact, shared=shared)
        if analysed.query.session:
            layout = in_order((*layout.keys, ComponentKey("greatest_int", None, SESSION_END)))
        roles = {variable: self.role(analysed, variable) for variable in analysed.types}
        group = tuple(self.attributes.index(name) for name in analysed.grouping)
        return CompiledQuery(analysed, templates, (), layout, types, roles, group, shared, schema=self.schema)

    def tables(
        self,
        analysed: AnalysedQuery,
        template: Template,
        layout: Layout,
        types: Types,
        names: Mapping[str, str] | None = None,
    ) -> QueryTables:
        """The tables of a template; with `names`, those of one that differs in names only are used again."""
        column_of = partial(self.column, analysed)
        within, slide = self.windows[analysed.index]
        variables = {variable: number for number, variable in enumerate(template.variables)}
        components = layout.rows(variables, column_of, types)
        same = None
        if names is not None and not analysed.adjacent:
            same = within, slide, form(template, names), tuple(components)
            if same in self.written:
                tables, theirs = self.written[same]
                own = {common: variable for variable, common in names.items()}
                return tables.renamed({variable: own[common] for variable, common in theirs.items()})
        writer = TableWriter(
            template,
            analysed.adjacent,
            lambda pair: self.pair_program(analysed, pair),
            lambda pair: read_attributes(analysed.adjacent[pair]),
            column_of,
            lambda pair: self.pair_keys(analysed, pair),
            lambda _, expression: self.key_program(analysed, expression),
            QueryTables(within, slide, self.exact, components, layout.fixed, layout.wide),
        )
        tables = writer.write()
        if same is not None and names is not None:
            self.written[same] = tables, {variable: names[variable] for variable in tables.variables}
        return tables

    def type_of(self, analysed: AnalysedQuery, variable: str, attribute: str) -> AttributeType | None:
        """An attribute's type."""
        return compiled_type(analysed, self.schema, variable, attribute)

    def column(self, analysed: AnalysedQuery, variable: str, attribute: str) -> int:
        """Number of a kernel column."""
        return self.columns.setdefault((attribute, self.type_of(analysed, variable, attribute)), len(self.columns))

    def writer(self, analysed: AnalysedQuery, is_vector: Callable[[Reference], bool]) -> ProgramWriter:
        return ProgramWriter(
            lambda reference: self.type_of(analysed, reference.variable, reference.attribute),
            is_vector,
            self.strings,
            times_as_compiled(analysed, self.schema),
        )

    def pair_program(self, analysed: AnalysedQuery, pair: Pair) -> Program:
        """The adjacent predicate of a pair: the earlier event is the vector side."""
        writer = self.writer(analysed, lambda reference: reference.shift is not Shift.NEXT)
        return writer.program(analysed.adjacent[pair])

    def pair_keys(self, analysed: AnalysedQuery, pair: Pair) -> tuple[Keys, ...]:
        """The searches that answer the adjacent predicate of a pair."""
        if not self.indexed:
            return ()
        writer = self.writer(analysed, lambda _: True)
        return keys_of(analysed.adjacent[pair], writer.kind, writer.scale)

    def key_program(self, analysed: AnalysedQuery, expression: Expression) -> tuple[Program, bool]:
        """The program of one side of a comparison, over the columns of that side's event."""
        writer = self.writer(analysed, lambda _: True)
        return writer.value_program(expression), writer.kind(expression) is AttributeType.DOUBLE

    def role(self, analysed: AnalysedQuery, variable: str) -> Role:
        conditions = analysed.local.get(variable, ())
        if not conditions:
            return self.classifier.plain(analysed.types[variable])

        def compiled() -> tuple[Program, Loads]:
            program = self.writer(analysed, lambda _: True).program(conditions)
            return program, [(name, self.type_of(analysed, variable, name)) for name in program.vector_columns]

        same = self.same.get((analysed.index, variable))
        return self.classifier.role(analysed.types[variable], conditions, same, compiled)


def _sides(query: CompiledQuery) -> tuple[Layout, ...]:
    """The components that may better be computed apart.

    Under SPAN sums over trends are sliding products, and events that trends take are found in a log: together they
    are neither.
    """
    analysed = query.analysed
    if analysed.query.longest is None or analysed.taken or len(analysed.patterns) > 1 or is_over_events(analysed):
        return ()
    return apart(query.layout)


def number_outputs(queries: Sequence[CompiledQuery], merged_queries: Sequence[CompiledMerged]) -> None:
    """Write the kernel's numbers of queries that are merged into the tables of their merged queries."""
    numbers: dict[int, int] = {}
    parts = 0
    for place, query in enumerate(queries):
        if query.like is None:
            numbers[place] = parts
            parts += len(query.tables)
    for merged in merged_queries:
        outputs = zip(merged.queries, merged.tables.outputs, strict=True)
        merged.tables.outputs = [(numbers[place], *output[1:]) for place, output in outputs]


def read_attributes(conditions: Sequence[Condition]) -> tuple[list[str], list[str]]:
    """The attributes that conditions read of the earlier and of the later event of a pair."""
    found: tuple[dict[str, None], dict[str, None]] = ({}, {})
    for reference in (each for condition in conditions for each in references(condition)):
        found[reference.shift is Shift.NEXT][reference.attribute] = None
    return list(found[0]), list(found[1])
