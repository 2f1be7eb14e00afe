"""Printing is the inverse of parsing: ``parse(to_text(tree)) == tree`` for any tree, and the text reads well."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hamlet.language import query as q
from hamlet.language.parser import parse
from hamlet.language.printing import name_text, to_text

KEYWORDS = ["SEQ", "not", "Within", "group", "RETURN", "event", "in", "next", "TRUE", "by", "as", "count", "min", "h"]
names = st.sampled_from(["A", "B", "Travel", "x1", "größe", "two words", 'a"b', "1st", "a-b", *KEYWORDS])


def trees(leaves: st.SearchStrategy, extend) -> st.SearchStrategy:  # type: ignore[no-untyped-def, type-arg]
    return st.recursive(leaves, extend, max_leaves=8)


def several(inner: st.SearchStrategy) -> st.SearchStrategy:  # type: ignore[type-arg]
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


@st.composite
def repetitions(draw: st.DrawFn, inner: st.SearchStrategy[q.Pattern]) -> q.Repetition:
    low = draw(st.integers(0, 3))
    return q.Repetition(draw(inner), low, draw(st.none() | st.integers(0, 4)))


patterns: st.SearchStrategy[q.Pattern] = trees(
    st.builds(q.Atom, names, names) | names.map(lambda name: q.Atom(name, name)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: q.Sequence(tuple(parts))),
        several(inner).map(q.Alternation),
        several(inner).map(q.Conjunction),
        st.builds(q.Negation, inner),
        repetitions(inner),
    ),
)

values = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
expressions: st.SearchStrategy[q.Expression] = trees(
    st.builds(q.Literal, values) | st.builds(q.Reference, names, names, st.sampled_from(q.Shift)),
    lambda inner: st.one_of(
        st.builds(q.Unary, st.sampled_from("+-"), inner), st.builds(q.Binary, st.sampled_from("+-*/%"), inner, inner)
    ),
)
conditions: st.SearchStrategy[q.Condition] = trees(
    st.one_of(
        st.builds(q.Equivalence, st.lists(names, min_size=1, max_size=3).map(tuple)),
        st.builds(q.Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), expressions, expressions),
        st.builds(q.Membership, expressions, st.lists(expressions, min_size=1, max_size=3).map(tuple), st.booleans()),
        st.builds(q.Between, expressions, expressions, expressions, st.booleans()),
        st.builds(q.NullTest, expressions, st.booleans()),
    ),
    lambda inner: st.one_of(several(inner).map(q.And), several(inner).map(q.Or), st.builds(q.Not, inner)),
)

attributes = st.builds(q.Attribute, names, st.none() | names)
aggregates = st.one_of(
    st.just(q.Aggregate("COUNT")),
    st.builds(q.Aggregate, st.just("COUNT"), names),
    st.builds(q.Aggregate, st.sampled_from(["SUM", "AVG", "MIN", "MAX"]), names, names),
)
items = st.one_of(
    st.builds(q.ReturnItem, attributes, st.just(False), st.none() | names),
    st.builds(q.ReturnItem, aggregates, st.booleans(), st.none() | names),
)
amounts = st.builds(lambda digits, places: Fraction(digits, 10**places), st.integers(-50, 10**9), st.integers(0, 12))
durations = st.builds(q.Duration, amounts, st.sampled_from(["ms", "s", "min", "h", "d"]))
queries = st.builds(
    q.Query,
    name=names,
    items=st.lists(items, min_size=1, max_size=3).map(tuple),
    pattern=patterns,
    condition=st.none() | conditions,
    group_by=st.lists(attributes, max_size=2).map(tuple),
    within=durations,
    slide=st.none() | durations,
)
declarations = st.builds(
    q.EventDeclaration,
    names,
    st.lists(st.builds(q.DeclaredAttribute, names, st.sampled_from(q.AttributeType)), min_size=1).map(tuple),
)
workloads = st.builds(
    q.WorkloadText,
    text=st.just(""),
    source=st.just(""),
    declarations=st.lists(declarations, max_size=2).map(tuple),
    queries=st.lists(queries, max_size=3).map(tuple),
)


def whole(pattern: q.Pattern, condition: q.Condition | None = None) -> q.Query:
    items = (q.ReturnItem(q.Aggregate("COUNT")),)
    return q.Query("q1", items, pattern, condition, (), q.Duration(Fraction(1), "s"), None)


def exact(tree: object) -> object:
    """A tree that tells 1 from 1.0 and TRUE, which compare equal."""
    return repr(tree).replace("bare=True", "bare=False").replace("-0.0", "0.0")


@given(workloads)
def test_parsing_the_text_of_a_workload_gives_it_back(workload: q.WorkloadText) -> None:
    text = to_text(workload)
    again = parse(text)
    assert again == workload
    assert to_text(again) == text


@given(patterns)
def test_parsing_the_text_of_a_pattern_gives_it_back(pattern: q.Pattern) -> None:
    assert parse(to_text(whole(pattern))).queries[0].pattern == pattern


@given(conditions)
def test_parsing_the_text_of_a_condition_gives_it_back(condition: q.Condition) -> None:
    again = parse(to_text(whole(q.Atom("A", "A"), condition))).queries[0].condition
    assert again == condition
    assert exact(again) == exact(condition)


WORKLOADS = sorted((Path(__file__).resolve().parents[2] / "workloads").glob("*.sase"))


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_every_shipped_workload_prints_and_parses(path: Path) -> None:
    workload = parse(path.read_text("utf-8"), path.name)
    assert parse(to_text(workload)) == workload


def test_figure_1_reads_well() -> None:
    text = (
        "return T.district,count(*)pattern seq(Request R,(Travel T)+,not Pickup P)where[driver,rider]"
        "and R.type=Pool groupby T.district within 30minutes slide 1min"
    )
    assert to_text(parse(text)).splitlines() == [
        "q1: RETURN T.district, COUNT(*)",
        "    PATTERN SEQ(Request R, Travel T+, NOT Pickup P)",
        "    WHERE [driver, rider] AND R.type = Pool",
        "    GROUP-BY T.district",
        "    WITHIN 30 min SLIDE 1 min;",
    ]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("((A OR (B)))", "A OR B"),
        ("(A OR B) AND C", "(A OR B) AND C"),
        ("A OR (B AND C)", "A OR B AND C"),
        ("(SEQ(A))+", "SEQ(A)+"),
        ("(A{1,})?", "A+?"),
        ("A{0,1}", "A?"),
        ("A{2,2}", "A{2}"),
        ("(NOT A)+", "(NOT A)+"),
        ("NOT (A OR B)", "NOT (A OR B)"),
        ("A A", "A"),
    ],
)
def test_patterns_have_as_few_parentheses_as_possible(text: str, printed: str) -> None:
    pattern = parse(f"RETURN COUNT(*) PATTERN {text} WITHIN 1 s").queries[0].pattern
    assert to_text(pattern) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(((A.x + 1) * 2)) = 1", "(A.x + 1) * 2 = 1"),
        ("A.x + (1 + 2) = (A.x + 1) + 2", "A.x + (1 + 2) = A.x + 1 + 2"),
        ("- - A.x = -(1)", "-(-A.x) = -(1)"),
        ("(A.x = 1 AND A.y = 1) OR NOT (A.x = 2)", "A.x = 1 AND A.y = 1 OR NOT A.x = 2"),
        ("A.x = 'it''s' AND A.y = Pool AND A.z = 'Pool'", "A.x = 'it''s' AND A.y = Pool AND A.z = 'Pool'"),
        ("A.x = 1.50 and A.y==TRUE", "A.x = 1.5 AND A.y = TRUE"),
        ('next(A).x>prev(A)."a b"', 'NEXT(A).x > PREV(A)."a b"'),
    ],
)
def test_conditions_read_well(text: str, printed: str) -> None:
    condition = parse(f"RETURN COUNT(*) PATTERN A WHERE {text} WITHIN 1 s").queries[0].condition
    assert condition is not None
    assert to_text(condition) == printed


def test_names_are_quoted_where_they_must() -> None:
    assert [name_text(name) for name in ("Travel", "a b", "WITHIN", 'a"b', "1a")] == [
        "Travel",
        '"a b"',
        '"WITHIN"',
        '"a""b"',
        '"1a"',
    ]
    assert name_text("within", free=True) == "within"


def test_a_duration_that_is_no_decimal_cannot_be_printed() -> None:
    with pytest.raises(ValueError, match="1/3"):
        to_text(q.Duration(Fraction(1, 3), "h"))
