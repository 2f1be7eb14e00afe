"""From the syntax tree to what the queries mean: everything that can be checked without data, all errors at once.

Source: LANGUAGE.md §§1-9; HAMLET (SIGMOD'21) Def. 2.2.
"""

from __future__ import annotations

from collections.abc import Collection

from hamlet.errors import Diagnostic, Reports, WorkloadError, in_order, near_miss
from hamlet.language.automaton import AmbiguousGuards, PatternTooLarge, template, templates
from hamlet.language.meaning import AnalysedQuery, Analysis, Declared, Pair
from hamlet.language.parser import read
from hamlet.language.pattern_checks import Variables, check_shape, variables_of, warn_of_reluctance
from hamlet.language.predicates import Predicates, report_unknown, take_apart
from hamlet.language.printing import name_text
from hamlet.language.query import (
    NOWHERE,
    Aggregate,
    Atom,
    Attribute,
    AttributeType,
    Conjunction,
    Duration,
    EventDeclaration,
    Pattern,
    Query,
    Span,
    WorkloadText,
    atoms,
)
from hamlet.language.schema import Schema
from hamlet.language.typecheck import SPECIAL_COLUMNS, check
from optimizer.template import START, Template

# Columns of every result row.
RESULT_COLUMNS = ("query", "window_start", "window_end")
MOST_WINDOWS = 1_000_000  # that hold one event: each costs memory and time, and is a row


def analyse(workload: WorkloadText, *, special: Collection[str] = SPECIAL_COLUMNS) -> Analysis:
    """Check a parsed workload and work out what it means.

    Parameters
    ----------
    workload : WorkloadText
        From `hamlet.language.parser.parse`.
    special : collection of str
        Names of the time and the type column, which every event has whatever is declared (LANGUAGE §6).

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


def _analyse(workload: WorkloadText, special: Collection[str]) -> tuple[Analysis, list[Diagnostic]]:
    reports = Reports(workload.text, workload.source)
    declared = _declarations(workload.declarations, reports)
    _check_names(workload.queries, reports)
    queries = tuple(
        _Check(query, declared, special, reports).result(index) for index, query in enumerate(workload.queries)
    )
    analysis = Analysis(workload, queries, (), declared)
    reports.errors += check(analysis, None, special=special)
    return Analysis(workload, queries, in_order(reports.warnings), declared), reports.errors


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

    def __init__(self, query: Query, declared: Declared, special: Collection[str], reports: Reports) -> None:
        self.query = query
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
        grouping = tuple(dict.fromkeys(attribute.name for attribute in query.group_by))
        named = [name for equivalence in predicates.equivalences for name in equivalence.attributes]
        equivalence = tuple(dict.fromkeys(named))
        self._check_result(variables, grouping)
        self._check_durations()
        self._check_keys(templates, predicates, variables)
        return AnalysedQuery(
            query=query,
            index=index,
            types=variables.types,
            negated=variables.negated,
            grouping=grouping,
            equivalence=equivalence,
            partition=grouping + tuple(name for name in equivalence if name not in grouping),
            local={variable: tuple(found) for variable, found in predicates.local.items()},
            adjacent={pair: tuple(found) for pair, found in predicates.adjacent.items()},
            patterns=patterns,
            declared={v: self.declared[t] for v, t in variables.types.items() if t in self.declared},
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
        message = f"one trend can be read with and without {guard} at one gap: through {' and through '.join(places)}"
        hint = "write both cases apart as branches of OR, with different variables, so that each trend has one reading"
        if isinstance(one, Atom) and isinstance(two, Atom):
            first, second = f"{one.type} {one.variable.lower()}1", f"{two.type} {two.variable.lower()}2"
            hint = f"use different variables in the two places, {first} and {second}: then each trend has one reading"
        self.reports.error(message, error.negation.span, hint)

    # ------------------------------------------------------------------------------- RETURN and GROUP-BY

    def _check_result(self, variables: Variables, grouping: tuple[str, ...]) -> None:
        columns = dict.fromkeys(RESULT_COLUMNS, "")
        for attribute in self.query.group_by:
            self._check_prefix(attribute, "GROUP-BY", variables)
        for item in self.query.items:
            if isinstance(item.value, Attribute):
                if self._check_prefix(item.value, "RETURN", variables):
                    self._check_grouped(item.value, grouping)
            else:
                self._check_aggregate(item.value, variables)
            column = item.column
            if column in columns:
                text = f"'{columns[column]}'" if columns[column] else "a column that every result has"
                hint = f"rename it, as in {self.reports.quote(item.value.span)[1:-1]} AS {column}_2"
                self.reports.error(f"the column name '{column}' is taken by {text}", item.span, hint)
            columns.setdefault(column, self.reports.quote(item.span)[1:-1])

    def _check_prefix(self, attribute: Attribute, clause: str, variables: Variables) -> bool:
        if attribute.variable is None:
            return True
        name = name_text(attribute.name, free=True)
        if attribute.variable not in variables.types:
            report_unknown(attribute.variable, attribute.span, f"{{}}.{name}", variables, self.reports)
            return False
        if attribute.variable in variables.negated:
            message = f"{attribute.variable} stands inside NOT: its events are no part of a trend"
            hint = f"write {clause} {name_text(attribute.name)} for the attribute of the trend"
            self.reports.error(message, attribute.span, hint)
            return False
        return True

    def _check_grouped(self, attribute: Attribute, grouping: tuple[str, ...]) -> None:
        if attribute.name in grouping:
            return
        meant = near_miss(attribute.name, grouping)
        text = self.reports.quote(attribute.span)[1:-1]
        if meant is not None:
            hint = f"did you mean {name_text(meant)}?"
        elif grouping:
            hint = f"add it: GROUP-BY {', '.join(map(name_text, grouping))}, {text}"
        else:
            hint = f"add GROUP-BY {text} before WITHIN"
        self.reports.error(f"{text} is in RETURN but not in GROUP-BY", attribute.span, hint)

    def _check_aggregate(self, aggregate: Aggregate, variables: Variables) -> None:
        variable = aggregate.variable
        if variable is None:
            return
        if variable not in variables.types:
            attribute = f".{name_text(aggregate.attribute, free=True)}" if aggregate.attribute is not None else ""
            report_unknown(variable, aggregate.span, f"{aggregate.function}({{}}{attribute})", variables, self.reports)
        elif variable in variables.negated:
            message = f"{variable} stands inside NOT: no trend has such an event to aggregate"
            hint = f"aggregate one of {', '.join(variables.positive)}"
            self.reports.error(message, aggregate.span, hint)

    # ---------------------------------------------------------------------------------- windows and keys

    def _check_durations(self) -> None:
        for clause, duration in (("WITHIN", self.query.within), ("SLIDE", self.query.slide)):
            if isinstance(duration, Duration) and duration.amount <= 0:
                message = f"{clause} needs a duration above zero"
                self.reports.error(message, duration.span, f"write {clause} 10 min, for instance")
        slide = self.query.slide
        if slide is not None and slide.amount > 0 and self.query.within.seconds > MOST_WINDOWS * slide.seconds:
            message = f"one event would be in more than {MOST_WINDOWS:,} windows"
            self.reports.error(message, slide.span, "use a longer SLIDE, or a shorter WITHIN")

    def _check_keys(self, templates: list[Template], predicates: Predicates, variables: Variables) -> None:
        """Report words of the pattern that leave a key without a value (LANGUAGE §6)."""
        keys: dict[str, Span] = {}
        for attribute in self.query.group_by:
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
