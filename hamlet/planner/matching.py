"""Queries for the matching operator: which they are, how far their trends reach, and their automata.

The kernel's graphlets, bands and whole windows serve queries of skip-till-any-match over windows of fixed length. The
matching operator (`hamlet.kernel.operators.matching`) serves all others: other semantics,
bounds on the trend itself, sessions, and distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from hamlet.language.automaton import intersection, template
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import (
    DISTINCT,
    Alternation,
    And,
    Atom,
    Between,
    Comparison,
    Condition,
    Conjunction,
    Literal,
    Membership,
    Negation,
    Pattern,
    Repetition,
    Semantics,
    Sequence,
    Taken,
    atoms,
)
from hamlet.planner.timeline import Line, Shifted
from optimizer.template import START, Final, Template, Transition

NONE = -1
SESSION_END = "session end"  # stands for the last time of a session among components
EVENT_ID = "\0event"  # the column of what tells events apart, whose events several partitions may take
MOST_COUNT = 100_000  # groups of a count


def is_matching(query: AnalysedQuery) -> bool:
    """Whether the matching operator serves a query."""
    asked = query.query
    return (
        asked.semantics is not Semantics.ANY
        or asked.longest is not None
        or asked.session
        or any(each.function in DISTINCT or each.events for each in query.aggregates)
        or bool(query.taken)
    )


def sees_all(query: AnalysedQuery) -> bool:
    """Whether events of types that no pattern names matter to a query."""
    return query.query.semantics is Semantics.CONTIGUOUS


def matching_form(query: AnalysedQuery) -> Hashable:
    """Equal for queries that differ in nothing but RETURN, and in which keys are rolled up."""
    asked = query.query
    condition = None if asked.condition is None else to_text(asked.condition)
    taken = tuple((each, most_taken(query, each)) for each in query.taken)
    return to_text(asked.pattern), asked.semantics, condition, asked.session, taken, is_over_events(query)


def is_over_events(query: AnalysedQuery) -> bool:
    """Whether all aggregates of a query are over matched events."""
    return bool(query.aggregates) and all(each.events for each in query.aggregates)


def most_taken(query: AnalysedQuery, taken: Taken) -> int | None:
    """The largest count of a group that the pattern allows and HAVING lets pass; None where both say nothing."""
    bounds = [_bound(each, taken) for each in _conjuncts(query.query.having)]
    bounds.append(_most_bound(query.query.pattern, taken.variable))
    return min((each for each in bounds if each is not None), default=None)


def _most_bound(pattern: Pattern, variable: str) -> int | None:
    """How many events a trend binds to a variable at most; None where nothing limits them."""
    match pattern:
        case Atom():
            return int(pattern.variable == variable)
        case Negation():
            return 0
        case Repetition(body=body, high=high):
            within = _most_bound(body, variable)
            return within if within == 0 else None if within is None or high is None else high * within
        case Alternation(branches=parts):
            bounds = [_most_bound(each, variable) for each in parts]
            return None if None in bounds else max(each for each in bounds if each is not None)
        case Sequence(parts=parts) | Conjunction(operands=parts):
            bounds = [_most_bound(each, variable) for each in parts]
            return None if None in bounds else sum(each for each in bounds if each is not None)


def _conjuncts(having: Condition | None) -> tuple[Condition, ...]:
    if having is None:
        return ()
    return having.operands if isinstance(having, And) else (having,)


def _bound(condition: Condition, taken: Taken) -> int | None:
    """What a condition says that a count is at most."""
    match condition:
        case Comparison(operator="=" | "<=" | "<" as sign, left=left, right=Literal(value=value)) if left == taken:
            return _floor(value, strictly=sign == "<")
        case Comparison(operator="=" | ">=" | ">" as sign, left=Literal(value=value), right=right) if right == taken:
            return _floor(value, strictly=sign == ">")
        case Between(operand=operand, high=Literal(value=value), negated=False) if operand == taken:
            return _floor(value, strictly=False)
        case Membership(operand=operand, choices=choices, negated=False) if operand == taken:
            bounds = [_floor(each.value, strictly=False) if isinstance(each, Literal) else None for each in choices]
            return None if None in bounds else max(each for each in bounds if each is not None)
    return None


def _floor(value: object, *, strictly: bool) -> int | None:
    """The largest count that is at most, or below, a number; -1 is below all."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return min(max(math.ceil(value) - 1 if strictly else math.floor(value), -1), MOST_COUNT)


def shared_variables(query: AnalysedQuery) -> frozenset[str]:
    """The variables whose events several partitions of a group, or both operands of AND, may take."""
    rolled_up = [name for name in query.equivalence if name not in query.grouping]
    found = {
        variable
        for variable in query.types
        if any(name not in query.declared.get(variable, (name,)) for name in rolled_up)
    }
    if len(query.patterns) > 1:
        one, two = ({each.variable for each in atoms(pattern)} for pattern in query.patterns)
        found |= one & two
    return frozenset(found)


@dataclass(frozen=True)
class Reach:
    """How far trends of a query reach in time, in ticks; -1 for what it has not.

    Attributes
    ----------
    within, slide : int
        Of windows; of sessions the gap, and 1.
    span : int
        The most that a trend may last.
    gap : int
        Of sessions.
    line : Line
        Where windows begin at multiples of the slide.
    """

    within: int
    slide: int
    span: int = NONE
    gap: int = NONE
    line: Line = Shifted()

    @property
    def stays(self) -> bool:
        """Whether all that matters to a window lies in it, and it begins and ends at known times."""
        return self.span < 0 and self.gap < 0

    @property
    def looks_back(self) -> int:
        """Events of so many ticks may matter to a later one."""
        return max(self.within, 2 * self.span + 1)


@dataclass(frozen=True)
class Automaton:
    """What trends of a part run through.

    Attributes
    ----------
    template : Template
    only_moves : tuple of (int, str, frozenset of int)
        State, variable, guards: an event that could be taken there is not skipped, though no trend of the part goes
        on with it.
    """

    template: Template
    only_moves: tuple[tuple[int, str, frozenset[int]], ...] = ()


def automata(query: AnalysedQuery) -> tuple[Automaton, ...]:
    """The automata of a query: one, or for AND those of both operands and of the trends that are in both."""
    single = tuple(template(pattern) for pattern in query.patterns)
    if len(single) == 1:
        return (Automaton(single[0]),)
    if query.query.semantics is not Semantics.NEXT:
        return (*map(Automaton, single), Automaton(intersection(*single)))
    return (*map(Automaton, single), _both(*single))


def _both(one: Template, two: Template) -> Automaton:
    """Trends that both templates have, none of which skips an event that either of them could take.

    A trend of both is a run in each. Where one of them could take an event, the trend may not skip it, whether the
    other one can take it or not.
    """
    guards = tuple(dict.fromkeys((*one.guards, *two.guards)))
    moved = [{place: guards.index(guard) for place, guard in enumerate(each.guards)} for each in (one, two)]

    def outgoing(automaton: Template, state: int, side: int) -> list[tuple[str, frozenset[int], int]]:
        return [
            (automaton.variable(step.target), frozenset(moved[side][guard] for guard in step.guards), step.target)
            for step in automaton.transitions
            if step.source == state
        ]

    numbers = {(START, START): START}
    pairs = [(START, START)]
    labels = [-1]
    transitions: list[Transition] = []
    only: dict[tuple[int, str, frozenset[int]], None] = {}
    variables = dict(zip(one.variables, one.types, strict=True)) | dict(zip(two.variables, two.types, strict=True))
    names = list(variables)
    for source, (left, right) in enumerate(pairs):  # grows
        ones, twos = outgoing(one, left, 0), outgoing(two, right, 1)
        if source != START:
            only |= dict.fromkeys((source, variable, needed) for variable, needed, _ in (*ones, *twos))
        for variable, first, target in ones:
            for other, second, beside in twos:
                if variable != other:
                    continue
                if (target, beside) not in numbers:
                    numbers[target, beside] = len(pairs)
                    pairs.append((target, beside))
                    labels.append(names.index(variable))
                transitions.append(Transition(source, numbers[target, beside], first | second))
    finals = tuple(
        Final(
            numbers[a.state, b.state],
            frozenset(moved[0][guard] for guard in a.guards) | frozenset(moved[1][guard] for guard in b.guards),
        )
        for a in one.finals
        for b in two.finals
        if (a.state, b.state) in numbers
    )
    joined = Template(tuple(names), tuple(variables.values()), tuple(labels), tuple(transitions), finals, guards)
    return Automaton(joined, tuple(only))
