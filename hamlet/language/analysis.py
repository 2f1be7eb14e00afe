"""From the syntax tree to what the queries mean: everything that can be checked without data, all errors at once.

Source: HAMLET (SIGMOD'21) Def. 2.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hamlet.errors import Diagnostic, WorkloadError, in_order, near_miss
from hamlet.frontend.reports import Reports
from hamlet.frontend.units import SECONDS
from hamlet.language.automaton import AmbiguousGuards, PatternTooLarge, check_beginnings, template, templates
from hamlet.language.expression_types import row_types
from hamlet.language.layering import layers_of, order_of
from hamlet.language.meaning import AnalysedQuery, Analysis, Declared, Pair
from hamlet.language.name_checks import check_row_names
from hamlet.language.parser import read
from hamlet.language.pattern_checks import Variables, check_shape, variables_of, warn_of_reluctance
from hamlet.language.predicates import Predicates, take_apart
from hamlet.language.printing import to_text
from hamlet.language.query import (
    NOWHERE,
    Atom,
    Attribute,
    AttributeType,
    Conjunction,
    Duration,
    EventDeclaration,
    Pattern,
    Query,
    Semantics,
    Span,
    Taken,
    WorkloadText,
    atoms,
)
from hamlet.language.result_checks import aggregates_of, check_results, check_session, warn_of_idle_guards
from hamlet.language.schema import Schema
from hamlet.language.typecheck import SPECIAL_COLUMNS, check
from optimizer.template import START, Template

MOST_WINDOWS = 1_000_000  # that hold one event: each costs memory and time, and is a row


def analyse(workload: WorkloadText, *, special: Collection[str] = SPECIAL_COLUMNS) -> Analysis:
    """Check a parsed workload and work out what it means.

    Parameters
    ----------
    workload : WorkloadText
        From `hamlet.language.parser.parse`.
    special : collection of str
        Names of the time and the type column, which every event has whatever is declared.

    Raises
    ------
    WorkloadError
        With every error of the workload.
    """
    analysis, errors = _analyse(workload, special)
    if not (workload.queries or errors):
        hint = "a query is written name: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 min;"
        empty = Diagnostic("the workload has no query", NOWHERE, hint, text=workload.text, source=workload.source)
        raise WorkloadError([empty])
    if errors:
        raise WorkloadError(errors)
    return analysis


def analyse_text(text: str, source: str = "<workload>", *, special: Collection[str] = SPECIAL_COLUMNS) -> Analysis:
    """Parse and check a workload; the errors of the syntax and those of the meaning come together.

    Parameters
    ----------
    text, source : str
        The workload and its file name for messages.
    special : collection of str
        As for `analyse`.

    Raises
    ------
    WorkloadError
        With every syntax error, and every other error of the statements that could be read.

    Examples
    --------
    >>> analysis = analyse_text("RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] AND B.v < NEXT(B).v WITHIN 10 min")
    >>> analysis.queries[0].partition, list(analysis.queries[0].adjacent)
    (('k',), [('B', 'B')])
    """
    workload, problems = read(text, source)
    if not problems:
        return analyse(workload, special=special)
    raise WorkloadError([*problems, *_analyse(workload, special)[1]])


def column_errors(text: str, source: str, schema: Schema) -> list[Diagnostic]:
    """What is wrong with a text, be it sound or not, in view of the columns of an input.

    Parameters
    ----------
    text, source : str
        The workload and its file name for messages.
    schema : Schema
        Of the input.
    """
    special = {schema.clock.column, schema.type_column}
    return check(_analyse(read(text, source)[0], special)[0], schema)


def row_name_errors(text: str, source: str, special: Mapping[str, str]) -> list[Diagnostic]:
    """What is wrong with the names of columns of rows that are events, be the text sound or not.

    Parameters
    ----------
    text, source : str
        The workload and its file name for messages.
    special : mapping of str to str
        As of `check_row_names`.
    """
    return check_row_names(_analyse(read(text, source)[0], special)[0], special)


def _analyse(workload: WorkloadText, special: Collection[str]) -> tuple[Analysis, list[Diagnostic]]:
    reports = Reports(workload.text, workload.source)
    declared = _declarations(workload.declarations, reports)
    _check_names(workload.queries, reports)
    order = order_of(workload.queries, declared, reports)
    found: dict[int, AnalysedQuery] = {}
    known: dict[str, AnalysedQuery] = {}  # by name
    types: dict[str, Mapping[str, AttributeType | None]] = dict(declared)
    used = {atom.type for query in workload.queries for atom in atoms(query.pattern)}
    for place in order:
        query = workload.queries[place]
        found[place] = _Check(query, types, known, special, reports).result(place)
        if query.name in used and query.name not in types:
            known[query.name] = found[place]
            types[query.name] = row_types(found[place])
    queries = tuple(found[place] for place in range(len(workload.queries)))
    layers = layers_of([[each.index for each in query.upstream.values()] for query in queries], order)
    analysis = Analysis(workload, queries, (), types, layers)
    reports.errors += check(analysis, None, special=special)
    return replace(analysis, warnings=in_order(reports.warnings)), reports.errors


def _declarations(declarations: tuple[EventDeclaration, ...], reports: Reports) -> dict[str, dict[str, AttributeType]]:
    declared: dict[str, dict[str, AttributeType]] = {}
    places: dict[str, Span] = {}
    for declaration in declarations:
        if declaration.name in declared:
            place = reports.place(places[declaration.name])
            message = f"the event type {declaration.name} is declared twice, first in {place}"
            reports.error(message, declaration.span, "keep one EVENT declaration with all its attributes")
            continue
        places[declaration.name] = declaration.span
        attributes: dict[str, AttributeType] = {}
        for attribute in declaration.attributes:
            if attribute.name in attributes:
                message = f"{declaration.name} has the attribute '{attribute.name}' twice"
                reports.error(message, attribute.span, "remove one of them")
            attributes.setdefault(attribute.name, attribute.type)
        declared[declaration.name] = attributes
    return declared


def _check_names(queries: tuple[Query, ...], reports: Reports) -> None:
    """Report queries of the same name. The later one is marked, or the named one where the other has no name."""
    first: dict[str, Query] = {}
    for query in queries:
        earlier = first.setdefault(query.name, query)
        if earlier is query:
            continue
        named = query if query.name_span is not None else earlier
        other = earlier if named is query else query
        message = f"the name {query.name} is taken"
        if other.name_span is None:
            message += f": the query without a name in {reports.place(other.span)} is called {query.name} by its place"
        else:
            message += f" by the query in {reports.place(other.name_span)}"
        reports.error(message, named.name_span or named.span, "give one of the two queries another name")


class _Check:
    """The checks of one query."""

    def __init__(
        self,
        query: Query,
        declared: Declared,
        known: Mapping[str, AnalysedQuery],
        special: Collection[str],
        reports: Reports,
    ) -> None:
        self.query = query
        self.known = known  # queries that this one may ask about
        self.declared = declared
        self.special = special
        self.reports = reports

    def result(self, index: int) -> AnalysedQuery:
        """Check everything; what comes back is whole only where nothing was reported."""
        query, reports = self.query, self.reports
        before = len(reports.errors)
        check_shape(query.pattern, reports)
        variables = variables_of(query.pattern, reports)
        self._check_types()
        warn_of_reluctance(query.pattern, reports)
        patterns = query.pattern.operands if isinstance(query.pattern, Conjunction) else (query.pattern,)
        templates = self._templates(patterns) if len(reports.errors) == before else []
        neighbours = _neighbours(templates) if templates else None
        predicates = take_apart(query.condition, variables, neighbours, reports)
        attributes = {each.name: each for each in reversed(query.group_by) if isinstance(each, Attribute)}
        named_groups = (each if isinstance(each, Taken) else attributes[each.name] for each in query.group_by)
        groups = tuple(dict.fromkeys(named_groups))
        grouping = tuple(each.name for each in groups if isinstance(each, Attribute))
        named = [name for equivalence in predicates.equivalences for name in equivalence.attributes]
        equivalence = tuple(dict.fromkeys(named))
        check_results(query, variables, grouping, reports)
        check_session(query, predicates, grouping, self._carries, reports)
        warn_of_idle_guards(query, templates, reports)
        self._check_durations()
        self._check_keys(templates, predicates, variables)
        return AnalysedQuery(
            query=query,
            index=index,
            types=variables.types,
            negated=variables.negated,
            grouping=grouping,
            groups=groups,
            equivalence=equivalence,
            partition=grouping + tuple(name for name in equivalence if name not in grouping),
            local={variable: tuple(found) for variable, found in predicates.local.items()},
            adjacent={pair: tuple(found) for pair, found in predicates.adjacent.items()},
            patterns=patterns,
            declared={v: self.declared[t] for v, t in variables.types.items() if t in self.declared},
            aggregates=aggregates_of(query),
            upstream={t: self.known[t] for t in variables.types.values() if t in self.known},
        )

    def _check_types(self) -> None:
        """Warn of a type that is not declared, but nearly."""
        first = {atom.type: atom for atom in reversed(list(atoms(self.query.pattern)))}
        for event_type, atom in first.items():
            meant = near_miss(event_type, self.declared) if event_type not in self.declared else None
            if meant is not None:
                message = f"the type {event_type} is not declared, but {meant} is"
                self.reports.warn(message, atom.span, f"did you mean {meant}?")

    def _templates(self, patterns: tuple[Pattern, ...]) -> list[Template]:
        found = []
        for pattern in patterns:
            try:
                if self.query.semantics is Semantics.NEXT:
                    check_beginnings(pattern)
                found.append(template(pattern))
            except AmbiguousGuards as error:
                self._refuse_ambiguity(error)
            except PatternTooLarge as error:
                self._refuse_size(error, pattern)
        if len(found) < len(patterns):
            return []
        try:
            templates(patterns)  # AND needs the trends that are in both, too
        except PatternTooLarge as error:
            self._refuse_size(error, self.query.pattern)
        return found

    def _refuse_size(self, error: PatternTooLarge, pattern: Pattern) -> None:
        hint = "use + instead of large numbers in {n,m}, and fewer alternatives inside repetitions"
        self.reports.error(str(error), pattern.span, hint)

    def _refuse_ambiguity(self, error: AmbiguousGuards) -> None:
        guard = self.reports.quote(error.negation.span)
        one, two = sorted(error.places, key=lambda each: each.span.start)
        places = [f"{self.reports.quote(each.span)} ({self.reports.place(each.span)})" for each in (one, two)]
        what = "a trend's beginning" if self.query.semantics is Semantics.NEXT else "one trend"
        message = f"{what} can be read with and without {guard} at one gap: through {' and through '.join(places)}"
        hint = "write both cases apart as branches of OR, with different variables, so that each trend has one reading"
        if isinstance(one, Atom) and isinstance(two, Atom):
            first, second = f"{one.type} {one.variable.lower()}1", f"{two.type} {two.variable.lower()}2"
            hint = f"use different variables in the two places, {first} and {second}: then each trend has one reading"
        self.reports.error(message, error.negation.span, hint)

    # ---------------------------------------------------------------------------------- windows and keys

    def _check_durations(self) -> None:
        query = self.query
        clauses = "WITHIN SESSION" if query.session else "WITHIN"
        for clause, duration in ((clauses, query.within), ("SLIDE", query.slide), ("SPAN", query.longest)):
            if isinstance(duration, Duration) and duration.amount <= 0:
                message = f"{clause} needs a duration above zero"
                self.reports.error(message, duration.span, f"write {clause} 10 min, for instance")
        offset = query.offset
        if offset is not None and offset.amount < 0:
            self.reports.error("OFFSET cannot be below zero", offset.span, self._same_offset(offset))
        slide = self.query.slide
        within = self.query.within
        if slide is not None and within is not None and 0 < MOST_WINDOWS * slide.seconds < within.seconds:
            message = f"one event would be in more than {MOST_WINDOWS:,} windows"
            self.reports.error(message, slide.span, "use a longer SLIDE, or a shorter WITHIN")

    def _same_offset(self, offset: Duration) -> str | None:
        """A hint with the offset that gives the same windows and is not below zero."""
        step = self.query.step
        if step is None or step.amount <= 0:
            return None
        unit = min((step.unit, offset.unit), key=SECONDS.__getitem__)
        same = Duration(offset.seconds % step.seconds / SECONDS[unit], unit)
        return f"the same windows have OFFSET {to_text(same)}"

    def _check_keys(self, templates: list[Template], predicates: Predicates, variables: Variables) -> None:
        """Report words of the pattern that leave a key without a value."""
        keys: dict[str, Span] = {}
        for attribute in self.query.group_by:
            if isinstance(attribute, Attribute):
                keys.setdefault(attribute.name, attribute.span)
        for equivalence in predicates.equivalences:
            for name in equivalence.attributes:
                keys.setdefault(name, equivalence.span)
        for key, span in keys.items():
            carriers = {variable for variable, event_type in variables.types.items() if self._carries(event_type, key)}
            for automaton in templates:
                word = _shortest_word(automaton, carriers)
                if word is not None:
                    self._refuse_word(word, key, span, variables)
                    break

    def _carries(self, event_type: str, attribute: str) -> bool:
        declared = self.declared.get(event_type)
        return declared is None or attribute in declared or attribute in self.special

    def _refuse_word(self, word: list[str], key: str, span: Span, variables: Variables) -> None:
        types = list(dict.fromkeys(variables.types[variable] for variable in word))
        attributes = [name for event_type in variables.types.values() for name in self.declared.get(event_type, ())]
        meant = near_miss(key, attributes) if key not in attributes else None
        spelled = ", ".join(word)
        message = f"the trend ({spelled}) has no event with the attribute '{key}', so it belongs to no group"
        hint = f"did you mean {meant}?" if meant else f"declare {key} for {' or '.join(types)}, or leave it out here"
        self.reports.error(message, span, hint)


def _neighbours(templates: list[Template]) -> frozenset[Pair]:
    """All pairs of variables that may be neighbours, within the trend or within a negated pattern."""
    found: set[Pair] = set()
    for automaton in templates:
        found |= automaton.neighbours
        found |= _neighbours([guard.template for guard in automaton.guards])
    return frozenset(found)


def _shortest_word(automaton: Template, without: Collection[str]) -> list[str] | None:
    """The shortest word of the pattern that uses none of some variables; None where every word uses one."""
    finals = {final.state for final in automaton.finals}
    words: dict[int, list[str]] = {START: []}
    queue = [START]
    for state in queue:
        if state in finals:
            return words[state]
        for step in automaton.transitions:
            if step.source == state and step.target not in words and automaton.variable(step.target) not in without:
                words[step.target] = [*words[state], automaton.variable(step.target)]
                queue.append(step.target)
    return None
