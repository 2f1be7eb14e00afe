"""From query texts to what the optimizer finds: the facts that `hamlet.planner.compile` states of each query."""

from __future__ import annotations

import pyarrow as pa

from hamlet.language.analysis import analyse_text
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.planner.compile import facts
from optimizer.merge import Shareable, merge
from optimizer.plan import AggregateFacts

INT, DOUBLE, STRING = AttributeType.INT, AttributeType.DOUBLE, AttributeType.STRING
SCHEMA = Schema({"speed": INT, "price": DOUBLE, "district": STRING}, Clock("time", "s", pa.int64()), closed=False)


def shared(text: str) -> Shareable:
    return merge(facts(analyse_text(text), SCHEMA))


def groups(text: str) -> list[tuple[int, ...]]:
    return [group.queries for group in shared(text).groups]


def test_figure_1_as_printed() -> None:
    text = """
    RETURN T.district, COUNT(*), SUM(T.duration) PATTERN SEQ(Request R, Travel T+, NOT Pickup P)
        WHERE [driver, rider] AND T.speed < 10 GROUP-BY T.district WITHIN 30 min SLIDE 1 min;
    RETURN T.district, AVG(T.speed) PATTERN SEQ(Request R, Travel T+, Dropoff D)
        WHERE [driver, rider] AND R.type = Pool GROUP-BY T.district WITHIN 15 min SLIDE 1 min;
    RETURN T.district, COUNT(*) PATTERN SEQ(Request R, Travel T+, Cancel C)
        WHERE [driver, rider] AND T.speed < 10 GROUP-BY T.district WITHIN 20 min SLIDE 1 min"""
    (group,) = shared(text).groups
    assert (group.queries, group.pane) == ((0, 1, 2), 60)
    (travel,) = group.sub_patterns
    assert travel.shape.types == ("Travel",)
    assert [member.variant for member in travel.members] == [0, 1, 0]  # q1 and q3 have one predicate, q2 takes all


def test_facts_of_a_query() -> None:
    text = (
        "RETURN district, COUNT(*), AVG(B.price), LOG2(COUNT(B)) PATTERN SEQ(A, NOT C, B+) "
        "WHERE A.speed > 1 AND C.speed > 2 AND B.price < NEXT(B).price GROUP-BY district WITHIN 1 min"
    )
    (query,) = facts(analyse_text(text), SCHEMA)
    assert query.aggregates == (
        AggregateFacts("COUNT"),
        AggregateFacts("AVG", "B", "price"),
        AggregateFacts("COUNT", "B"),
    )
    assert set(query.local) == {"A", "C"}
    assert set(query.adjacent) == {("B", "B")}


def test_names_and_ways_of_writing_do_not_matter() -> None:
    assert groups(
        "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.speed > 3 AND B.price < NEXT(B).price WITHIN 1 min;"
        "RETURN COUNT(*) PATTERN SEQ(C, B x+) WHERE NOT 4 > x.speed AND x.price > PREV(x).price WITHIN 1 min"
    ) == [(0, 1)]


def test_doubles_are_not_taken_for_integers() -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.{} {} WITHIN 1 min;"

    def variants(attribute: str) -> int:
        return len(
            shared(text.format(attribute, "> 3") + text.format(attribute, ">= 4")).groups[0].sub_patterns[0].variants
        )

    assert (variants("speed"), variants("price")) == (1, 2)


def test_repetition_at_least_and_nested_kleene_share_their_loop() -> None:
    """B{3,} ends in a B+ whose inflow comes from B events, (SEQ(A, B+))+ has one inside."""
    (group,) = shared(
        "RETURN COUNT(*) PATTERN SEQ(A, B{3,}) WITHIN 1 min;"
        "RETURN COUNT(*) PATTERN (SEQ(A, B+))+ WITHIN 1 min;"
        "RETURN COUNT(*) PATTERN (SEQ(A a, B b+))+ AND SEQ(B b+, C) WITHIN 1 min;"
    ).groups
    found = {pattern.shape.types: [member.part.query for member in pattern.members] for pattern in group.sub_patterns}
    assert found[("A", "B")] == [1, 2]
    assert found[("B",)] == [0, 1, 2, 2]


def test_the_middle_of_a_guarded_loop_is_kept_apart() -> None:
    plain, guarded = "(SEQ(A, B+))+", "(SEQ(A, NOT C, B+))+"
    text = "RETURN COUNT(*) PATTERN {} WITHIN 1 min;"
    (group,) = shared(text.format(plain) + text.format(guarded)).groups
    assert {pattern.shape.types for pattern in group.sub_patterns} == {("B",)}
    (group,) = shared(2 * text.format(guarded)).groups
    assert {pattern.shape.types for pattern in group.sub_patterns} == {("B",), ("A", "B")}
    assert group.pasts.queries == ((0, 1),)


def test_partition_attributes_are_taken_together() -> None:
    """Grouping and equivalence attributes may be rolled up differently, the set must be the same."""
    text = "RETURN COUNT(*) PATTERN SEQ(A, B+) {} WITHIN 1 min;"
    assert groups(text.format("WHERE [driver, rider]") + text.format("WHERE [driver] GROUP-BY rider")) == [(0, 1)]
    assert groups(text.format("WHERE [driver, rider]") + text.format("WHERE [driver]")) == []
