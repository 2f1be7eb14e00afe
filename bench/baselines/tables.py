"""From templates to the integer tables of the baselines: one query alone, side by side, or with common prefixes merged.

Source: HAMLET (SIGMOD'21) §3.1; prefix merging is what SHARON (ICDE'18) shares.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.baselines._automaton import Automaton
from bench.baselines.question import PlainQuery, Slot
from hamlet.errors import UnsupportedError
from optimizer.template import START

Place = tuple[int, int]  # query, state


def slots_of(queries: Sequence[PlainQuery]) -> list[Slot]:
    """The distinct linear aggregates of some queries: the components of their tables, in order."""
    return list(dict.fromkeys(slot for query in queries for slot in query.slots.values()))


def side_by_side(queries: Sequence[PlainQuery]) -> Automaton:
    """Tables of some queries that have the start in common and nothing else."""
    numbers: dict[Place, int] = {}
    for place, query in enumerate(queries):
        before = len(numbers) - place  # states of the queries before, the start not counted
        numbers[place, START] = START
        numbers |= {(place, state): before + state for state in range(1, len(query.roles))}
    return _written(queries, numbers)


def with_merged_prefixes(queries: Sequence[PlainQuery]) -> Automaton:
    """Tables in which states that are reached by the same sequences are one.

    Two states stay apart as long as their roles differ or their transitions come from states that are apart: Moore's
    refinement, read backwards.

    Raises
    ------
    UnsupportedError
        A query with NOT or an adjacent predicate, which SHARON does not know.
    """
    for query in queries:
        if query.guards or query.pairs:
            raise UnsupportedError("SHARON knows neither NOT nor adjacent predicates")
    states = [(place, state) for place, query in enumerate(queries) for state in range(1, len(query.roles))]
    numbers = {(place, START): START for place in range(len(queries))}
    numbers |= dict.fromkeys(states, 1)
    while True:
        keys: dict[tuple[object, ...], int] = {}
        refined = dict.fromkeys(((place, START) for place in range(len(queries))), START)
        for place, state in states:
            query = queries[place]
            sources = {numbers[place, step.source] for step in query.template.transitions if step.target == state}
            key = (numbers[place, state], query.roles[state], query.ordinals[state], frozenset(sources))
            refined[place, state] = keys.setdefault(key, len(keys) + 1)
        if len(set(refined.values())) == len(set(numbers.values())):
            return _written(queries, refined)
        numbers = refined


def _written(queries: Sequence[PlainQuery], numbers: dict[Place, int]) -> Automaton:
    """The tables of some queries whose states have these numbers; merged states agree in all that is written."""
    size = 1 + max(numbers.values())
    slots = slots_of(queries)
    kept = list(dict.fromkeys(pair[0] for query in queries for pair in query.pairs.values()))
    role_of = [-1] * size
    sources: list[dict[tuple[int, int, tuple[tuple[int, int, int], ...]], None]] = [{} for _ in range(size)]
    adds = [[-1] * size for _ in slots]
    finals: list[list[tuple[int, int]]] = []
    guard_role: list[int] = []
    for place, query in enumerate(queries):
        first = len(guard_role)
        guard_role += query.guards
        for state in range(1, len(query.roles)):
            number = numbers[place, state]
            role_of[number] = query.roles[state]
            for slot, (role, ordinal, column) in enumerate(slots):
                if (query.roles[state], query.ordinals[state]) == (role, ordinal):
                    adds[slot][number] = column
        for step in query.template.transitions:
            pairs: tuple[tuple[int, int, int], ...] = ()
            if step.source != START:
                name = (query.template.variable(step.source), query.template.variable(step.target))
                if name in query.pairs:
                    left, operator, right = query.pairs[name]
                    pairs = ((kept.index(left), operator, right),)
            source = (numbers[place, step.source], _bits(step.guards, first), pairs)
            sources[numbers[place, step.target]].setdefault(source)
        finals.append([(numbers[place, final.state], _bits(final.guards, first)) for final in query.template.finals])
    if len(guard_role) > 64:
        raise UnsupportedError("the baselines know 64 guards")
    ordered = [sorted(each, key=lambda source: source[0] != number) for number, each in enumerate(sources)]
    return Automaton(role_of, ordered, finals, guard_role, kept, adds)


def _bits(guards: frozenset[int], first: int) -> int:
    return sum(1 << (first + guard) for guard in guards)
