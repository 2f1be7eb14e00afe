"""What queries may share, on templates made by hand: the paper's figures, shapes, pasts and panes."""

from __future__ import annotations

import pytest

from optimizer.condition import Compare, Condition, Field, constant
from optimizer.merge import Shareable, SharingGroup, merge
from optimizer.merged import MergedTemplate, measures_of
from optimizer.panes import pane_sets
from optimizer.plan import AggregateFacts, QueryFacts
from optimizer.roles import Part
from optimizer.template import Final, Guard, Template, Transition, cyclic_parts

MINUTE = 60


def sequence(*steps: str, guards: tuple[str, ...] = ()) -> Template:
    """``SEQ(A, B+, C)`` is ``sequence("A", "B+", "C")``; with guards, NOT of a type stands before each step."""
    names = [step.removesuffix("+") for step in steps]
    variables = tuple(dict.fromkeys(names))
    negated = tuple(Guard(name, sequence(name)) for name in dict.fromkeys(filter(None, guards)))
    before = [
        frozenset({[guard.text for guard in negated].index(name)} if name else ())
        for name in guards or [""] * len(names)
    ]
    transitions = [Transition(place, place + 1, before[place]) for place in range(len(names))]
    transitions += [Transition(place, place) for place, step in enumerate(steps, 1) if step.endswith("+")]
    labels = (-1, *(variables.index(name) for name in names))
    types = tuple(name.rstrip("0123456789") for name in variables)  # A1 and A2 are variables of type A
    return Template(variables, types, labels, tuple(transitions), (Final(len(names)),), negated)


def nested(first: str, second: str, before: str = "") -> Template:
    """``(SEQ(first, second+))+``, or ``SEQ(before, (SEQ(first, second+))+)``."""
    chain = sequence(*([before] if before else []), first, second + "+")
    last = chain.size - 1
    return Template(
        chain.variables, chain.types, chain.labels, (*chain.transitions, Transition(last, last - 1)), chain.finals
    )


def query(
    template: Template,
    *aggregates: AggregateFacts,
    window: int = 10 * MINUTE,
    partition: str = "driver",
    local: dict[str, Condition] | None = None,
    adjacent: dict[tuple[str, str], Condition] | None = None,
) -> QueryFacts:
    attributes = frozenset(partition.split())
    return QueryFacts("q", (template,), attributes, window, window, aggregates, local or {}, adjacent or {})


def only_group(*queries: QueryFacts) -> SharingGroup:
    found = merge(queries)
    assert len(found.groups) == 1
    assert found.groups[0].queries == tuple(range(len(queries)))
    return found.groups[0]


def drawn(template: MergedTemplate) -> set[str]:
    """The transitions as ``A -> B: 0 1``, with the numbers of the queries."""
    types = [state.type or "start" for state in template.states]
    return {
        f"{types[step.source]} -> {types[step.target]}: {' '.join(str(part.query) for part in step.parts)}"
        for step in template.transitions
    }


def speed(operator: str, bound: int) -> Condition:
    return Compare(operator, Field("speed", "INT"), constant(bound))


# ---------------------------------------------------------------------------------------------- the paper's figures


def test_figure_3() -> None:
    """q1 SEQ(A, B+) and q2 SEQ(C, B+): B+ is sharable, its transition belongs to both queries."""
    group = only_group(query(sequence("A", "B+")), query(sequence("C", "B+")))
    assert drawn(group.template) == {"start -> A: 0", "A -> B: 0", "start -> C: 1", "C -> B: 1", "B -> B: 0 1"}
    assert [state.type for state in group.template.states] == ["", "A", "B", "C"]
    assert group.template.finals == ((2, (Part(0), Part(1))),)
    (shared,) = group.sub_patterns
    assert (shared.shape.types, shared.shape.edges) == (("B",), ((0, 0, 0),))
    assert [(member.part, member.states, member.fed) for member in shared.members] == [
        (Part(0), (2,), False),
        (Part(1), (2,), False),
    ]
    assert group.pane == 10 * MINUTE


def test_figure_1() -> None:
    """Travel T+ after Request, Pickup and Request; q3 has other partition attributes and stays alone."""
    first = query(sequence("Request", "Travel+"), partition="driver rider")
    second = query(sequence("Pickup", "Travel+"), partition="driver rider", window=30 * MINUTE)
    third = query(sequence("Request", "Travel+"), partition="driver")
    found = merge([first, second, third])
    assert [group.queries for group in found.groups] == [(0, 1)]
    assert found.groups[0].pane == 10 * MINUTE
    assert (found.left_out, found.same) == ((), ())


# ----------------------------------------------------------------------------------------- sharable sub-patterns


def test_nothing_to_share() -> None:
    for templates in ([sequence("A", "B")] * 1, [sequence("A", "B"), sequence("C", "B")], [sequence("A", "B+")]):
        assert merge([query(template) for template in templates]) == Shareable((), (), ())


def test_variables_are_renamed() -> None:
    group = only_group(query(sequence("A", "B1+")), query(sequence("C", "B2+")))
    assert drawn(group.template) >= {"B -> B: 0 1"}


def test_nested_sub_patterns_share_as_a_whole_and_their_kleene_plus() -> None:
    """(SEQ(A, B+))+ twice, once behind D, and SEQ(C, B+): the whole is shared by two, its B+ by three."""
    group = only_group(query(nested("A", "B")), query(nested("A", "B", "D")), query(sequence("C", "B+")))
    shared = {pattern.shape.types: pattern.queries for pattern in group.sub_patterns}
    assert shared == {("A", "B"): (0, 1), ("B",): (0, 1, 2)}
    whole = next(pattern for pattern in group.sub_patterns if len(pattern.shape.types) == 2)
    assert whole.shape.edges == ((0, 1, 0), (1, 0, 0), (1, 1, 0))
    assert [member.states for member in whole.members] == [(1, 2), (2, 3)]
    assert drawn(group.template) == {
        "start -> A: 0", "start -> D: 1", "D -> A: 1", "A -> B: 0 1", "B -> A: 0 1", "B -> B: 0 1 2",
        "start -> C: 2", "C -> B: 2",
    }  # fmt: skip


def test_the_states_of_a_cycle_are_compared_in_one_order() -> None:
    """The same cycle, written from another of its states on."""
    group = only_group(query(nested("A", "B", "D")), query(nested("A", "B")))
    whole = next(pattern for pattern in group.sub_patterns if len(pattern.shape.types) == 2)
    assert len(whole.variants) == 1

    def cycle(*types: str) -> Template:
        names = tuple(f"{type}{place}" for place, type in enumerate(types))
        steps = [Transition(place, place % len(types) + 1) for place in range(len(types) + 1)]
        return Template(names, types, (-1, *range(len(types))), tuple(steps), (Final(1),))

    turned = only_group(query(cycle("A", "A", "B", "A")), query(cycle("B", "A", "A", "A")))
    assert turned.sub_patterns[0].shape.types == ("A", "A", "A", "B")
    assert len({member.states for member in turned.sub_patterns[0].members}) == 2


def test_two_occurrences_in_one_query_are_two_roles() -> None:
    """SEQ(B+, C, B+) beside SEQ(A, B+): all three occurrences may share a burst, the template keeps them apart."""
    group = only_group(query(sequence("B1+", "C", "B2+")), query(sequence("A", "B+")))
    (shared,) = group.sub_patterns
    assert [(member.part.query, member.states) for member in shared.members] == [(0, (1,)), (0, (3,)), (1, (2,))]
    assert [state.members for state in group.template.states if state.type == "B"] == [
        ((Part(0), 1), (Part(1), 2)),
        ((Part(0), 3),),
    ]


def test_what_flows_in_from_the_same_type_is_told() -> None:
    group = only_group(query(sequence("B1", "B2+")), query(sequence("A", "B+")))
    assert [member.fed for member in group.sub_patterns[0].members] == [True, False]


def test_guards_inside_a_sub_pattern_must_agree() -> None:
    def guarded(name: str) -> Template:
        guard = Guard(name, sequence(name))
        steps = (Transition(0, 1), Transition(1, 1, frozenset({0})))
        return Template(("B",), ("B",), (-1, 0), steps, (Final(1),), (guard,))

    shared = merge([query(guarded("C")), query(guarded("C1")), query(guarded("D")), query(sequence("A", "B+"))])
    assert [group.queries for group in shared.groups] == [(0, 1)]


def test_sides_of_and_share_with_each_other() -> None:
    pairs = QueryFacts("q", (sequence("A", "B+"), sequence("C", "B+")), frozenset(), 60, 60)
    (group,) = merge([pairs]).groups
    assert [member.part for member in group.sub_patterns[0].members] == [Part(0, 0), Part(0, 1)]


# ----------------------------------------------------------------------------------------------------- predicates


def test_predicates_that_accept_the_same_events_are_one_variant() -> None:
    one = query(sequence("A", "B+"), local={"B": speed(">", 10)})
    other = query(sequence("C", "B1+"), local={"B1": speed(">=", 11)})
    (shared,) = only_group(one, other).sub_patterns
    assert len(shared.variants) == 1
    assert drawn(only_group(one, other).template) >= {"B -> B: 0 1"}


def test_a_predicate_that_implies_another_is_another_variant_of_the_sub_pattern() -> None:
    queries = [
        query(sequence("A", "B+"), local={"B": speed("<", 10)}),
        query(sequence("C", "B+"), local={"B": speed("<", 20)}),
        query(sequence("D", "B+")),
    ]
    group = only_group(*queries)
    (shared,) = group.sub_patterns
    assert [member.variant for member in shared.members] == [0, 1, 2]
    assert drawn(group.template) >= {"B -> B: 0", "B -> B: 1", "B -> B: 2"}  # three roles


def test_unrelated_predicates_do_not_share() -> None:
    one = query(sequence("A", "B+"), local={"B": speed("<", 10)})
    other = query(sequence("C", "B+"), local={"B": Compare("=", Field("district"), constant("Bronx"))})
    assert merge([one, other]).groups == ()


def test_table_5_shares_all_edges_with_some_edges() -> None:
    """q2 has B.v < NEXT(B).v: its edges are some of those of q1, so both are variants of one sub-pattern."""
    rising = Compare("<", Field("v", "INT"), Field("v", "INT", later=True))
    group = only_group(query(sequence("A", "B+")), query(sequence("C", "B+"), adjacent={("B", "B"): rising}))
    (shared,) = group.sub_patterns
    assert shared.variants[0].local == shared.variants[1].local
    assert shared.variants[0].adjacent != shared.variants[1].adjacent
    falling = Compare(">", Field("v", "INT"), Field("v", "INT", later=True))
    apart = [query(sequence("A", "B+"), adjacent={("B", "B"): each}) for each in (rising, falling)]
    assert merge(apart).groups == ()


# ---------------------------------------------------------------------------------------------- pasts, measures


def test_whole_queries_that_return_something_else_are_one() -> None:
    total = AggregateFacts("SUM", "B", "speed")
    queries = [query(sequence("A", "B+")), query(sequence("A", "B+"), total), query(sequence("A", "B+"), window=60)]
    found = merge(queries)
    assert found.same == ((0, 1),)
    alone = merge([query(sequence("A", "B")), query(sequence("A", "B1"))])  # nothing with Kleene, and still one
    assert (alone.groups, alone.same) == ((), ((0, 1),))


def test_equal_beginnings_are_evaluated_once() -> None:
    """The SEQ(A, B+) in SEQ(A, B+, C) has the sums of the query SEQ(A, B+); SEQ(D, B+) has others."""
    group = only_group(*(query(sequence(*steps)) for steps in (("A", "B+"), ("A", "B+", "C"), ("D", "B+"))))
    assert group.pasts.states == (((Part(0), 1), (Part(1), 1)), ((Part(0), 2), (Part(1), 2)))
    assert group.pasts.queries == ()
    assert drawn(group.template) >= {"start -> A: 0 1", "A -> B: 0 1", "B -> B: 0 1 2", "B -> C: 1"}


def test_guards_and_predicates_make_other_pasts() -> None:
    plain, guarded = sequence("A", "B+"), sequence("A", "B+", guards=("", "C"))
    assert only_group(query(plain), query(guarded)).pasts.states == (((Part(0), 1), (Part(1), 1)),)
    slow = query(plain, local={"A": speed("<", 10)})
    assert only_group(query(plain), slow).pasts.states == ()


def test_a_state_says_what_is_measured_of_its_events() -> None:
    counted = AggregateFacts("COUNT", "B")
    total = AggregateFacts("SUM", "B1", "speed")
    mean = AggregateFacts("AVG", "B", "speed")
    group = only_group(
        query(sequence("A", "B+"), counted, AggregateFacts("COUNT")),
        query(sequence("C", "B1+"), total),
        query(sequence("D", "B+"), mean),
    )
    measures = {
        (each.kind, each.attribute): [part.query for part in each.parts]
        for state in group.template.states
        for each in state.measures
    }
    assert measures == {
        ("occurrences", None): [0],
        ("sum", "speed"): [1, 2],
        ("present", "speed"): [1],
        ("occurrences", "speed"): [2],
    }


def test_without_nulls_avg_is_sum_by_count() -> None:
    mean, total = (AggregateFacts(name, "B", "speed", nullable=False) for name in ("AVG", "SUM"))
    assert measures_of(mean) == measures_of(total) == (("sum", "speed"), *measures_of(AggregateFacts("COUNT", "B")))
    assert measures_of(AggregateFacts("MAX", "B", "speed")) == (("greatest", "speed"),)


# ---------------------------------------------------------------------------------------------------------- panes


def test_a_query_that_would_shrink_the_panes_is_left_out() -> None:
    """7 s beside 30 min would cut panes of 1 s."""
    queries = [query(sequence("A", "B+"), window=30 * MINUTE) for _ in range(3)]
    found = merge([*queries, query(sequence("C", "B+"), window=7)])
    assert [(group.queries, group.pane) for group in found.groups] == [((0, 1, 2), 30 * MINUTE)]
    assert found.left_out == (3,)


def test_panes_join_where_many_events_fall_into_them() -> None:
    windows = {place: (minutes * MINUTE, minutes * MINUTE) for place, minutes in enumerate([5, 7, 10, 15, 20] * 10)}
    assert pane_sets(windows, rate=100.0) == [list(range(50))]
    assert len(pane_sets(windows, rate=0.01)) > 1
    assert pane_sets({}) == []


@pytest.mark.parametrize("rate", [None, 0.001, 1.0, 1000.0])
def test_equal_panes_stay_together(rate: float | None) -> None:
    windows = {0: (600, 600), 1: (1200, 600), 2: (7, 7), 3: (1800, 600), 4: (14, 7)}
    sets = pane_sets(windows, rate=rate)
    assert {0, 1, 3} <= set(next(each for each in sets if 0 in each))
    assert {2, 4} <= set(next(each for each in sets if 2 in each))


# --------------------------------------------------------------------------------------------------------- graphs


def test_cyclic_parts() -> None:
    edges = [(0, 1), (1, 2), (2, 1), (2, 3), (3, 3), (3, 4), (5, 6), (6, 5), (4, 9)]
    assert cyclic_parts(range(7), edges) == (frozenset({1, 2}), frozenset({3}), frozenset({5, 6}))
    assert cyclic_parts([1, 3], edges) == (frozenset({3}),)
    ring = [(place, (place + 1) % 5000) for place in range(5000)]
    assert cyclic_parts(range(5000), ring) == (frozenset(range(5000)),)
