"""What a checked query means (docs/language.md). The messages of wrong ones stand in tests/language/errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hamlet.errors import WorkloadError
from hamlet.language.analysis import analyse, analyse_text
from hamlet.language.conditions import parts, push_not
from hamlet.language.expression_types import type_of
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType, Comparison, Condition, Not
from hamlet.language.schema import Clock, Schema
from hamlet.language.typecheck import check
from tests.language.test_parser import FIGURE_1


def analysed(pattern: str, where: str = "", group_by: str = "", declarations: str = "") -> AnalysedQuery:
    return workload(pattern, where, group_by, declarations).queries[0]


def workload(pattern: str, where: str = "", group_by: str = "", declarations: str = "") -> Analysis:
    where = f"WHERE {where}" if where else ""
    group_by = f"GROUP-BY {group_by}" if group_by else ""
    return analyse_text(f"{declarations} RETURN COUNT(*) PATTERN {pattern} {where} {group_by} WITHIN 10 min")


def wrong(text: str) -> list[str]:
    with pytest.raises(WorkloadError) as raised:
        analyse_text(text)
    return [each.message for each in raised.value.diagnostics]


def texts(conditions: tuple[Condition, ...]) -> list[str]:
    return [to_text(condition) for condition in conditions]


def test_figure_1() -> None:
    first, second, third = analyse_text(FIGURE_1).queries
    assert first.types == {"R": "Request", "T": "Travel", "P": "Pickup"}
    assert first.negated == {"P"}
    assert first.grouping == ("district",)
    assert first.equivalence == ("driver", "rider")
    assert first.partition == ("district", "driver", "rider")
    assert first.patterns == (first.query.pattern,)
    assert texts(second.local["R"]) == ["R.type = Pool"]
    assert second.local["T"] == ()
    assert texts(third.local["T"]) == ["T.speed < 10"]
    assert [each.index for each in (first, second, third)] == [0, 1, 2]
    assert not first.adjacent


def test_keys_come_once_and_in_order() -> None:
    query = analysed("SEQ(A, B)", "[c, b] AND A.x > 1 AND [a, b, c]", "A.b, d, B.b")
    assert query.equivalence == ("c", "b", "a")
    assert query.grouping == ("b", "d")
    assert query.partition == ("b", "d", "c", "a")


def test_the_operands_of_and() -> None:
    query = analysed("SEQ(A, B+) AND SEQ(C, B+)", "B.v < NEXT(B).v")
    assert [to_text(pattern) for pattern in query.patterns] == ["SEQ(A, B+)", "SEQ(C, B+)"]
    assert set(query.types) == {"A", "B", "C"}


# --------------------------------------------------------------------------------------------------- predicates


@pytest.mark.parametrize(
    ("where", "local"),
    [
        ("A.x = 1 AND A.y = 2", ["A.x = 1", "A.y = 2"]),
        ("NOT (A.x = 1 OR A.y < 2)", ["A.x <> 1", "A.y >= 2"]),
        ("NOT (A.x = 1 AND A.y < 2)", ["A.x <> 1 OR A.y >= 2"]),
        ("NOT NOT (A.x = 1 AND NOT A.y IS NULL)", ["A.x = 1", "A.y IS NOT NULL"]),
        ("NOT A.x IN (1, 2) AND NOT A.x NOT BETWEEN 1 AND 2", ["A.x NOT IN (1, 2)", "A.x BETWEEN 1 AND 2"]),
        ("NOT (NOT (A.x > 1 OR A.x <= 0) AND A.y <> 3)", ["A.x > 1 OR A.x <= 0 OR A.y = 3"]),
        ("A.x = 1 OR (A.y = 2 OR A.z = 3)", ["A.x = 1 OR A.y = 2 OR A.z = 3"]),
        ("1 = 2", ["1 = 2"]),
    ],
)
def test_conditions_are_split_and_not_is_pushed_inward(where: str, local: list[str]) -> None:
    assert texts(analysed("SEQ(A, B)", where).local["A"]) == local


def test_conditions_without_reference_stand_on_every_variable() -> None:
    query = analysed("SEQ(A, NOT C, B)", "1 < 2 AND A.x = 1")
    assert {variable: texts(found) for variable, found in query.local.items()} == {
        "A": ["1 < 2", "A.x = 1"],
        "B": ["1 < 2"],
        "C": ["1 < 2"],
    }


@pytest.mark.parametrize(
    ("where", "pair", "text"),
    [
        ("A.x < NEXT(B).y", ("A", "B"), "A.x < NEXT(B).y"),
        ("B.y > PREV(A).x", ("A", "B"), "NEXT(B).y > A.x"),
        ("B.y > PREV(B).y", ("B", "B"), "NEXT(B).y > B.y"),
        ("B.y < NEXT(B).y", ("B", "B"), "B.y < NEXT(B).y"),
        ("NOT B.y - 1 IN (PREV(A).x, PREV(A).z)", ("A", "B"), "NEXT(B).y - 1 NOT IN (A.x, A.z)"),
        ("A.x = 1 OR NEXT(B).y = 2 OR A.z IS NULL", ("A", "B"), "A.x = 1 OR NEXT(B).y = 2 OR A.z IS NULL"),
        ("NOT -A.x BETWEEN NEXT(B).a AND NEXT(B).b", ("A", "B"), "-A.x NOT BETWEEN NEXT(B).a AND NEXT(B).b"),
    ],
)
def test_pairs_are_seen_from_the_earlier_event(where: str, pair: tuple[str, str], text: str) -> None:
    analysis = workload("SEQ(A, B+)", where)
    assert {key: texts(found) for key, found in analysis.queries[0].adjacent.items()} == {pair: [text]}
    assert analysis.warnings == ()


def test_pairs_within_a_negated_pattern() -> None:
    analysis = workload("SEQ(A, NOT SEQ(C, D+), B)", "C.x < NEXT(D).x AND D.x < NEXT(D).x AND A.x < NEXT(B).x")
    assert set(analysis.queries[0].adjacent) == {("C", "D"), ("D", "D"), ("A", "B")}
    assert analysis.warnings == ()


@pytest.mark.parametrize("pattern", ["SEQ(A, C, B)", "A OR B", "SEQ(B, A)"])
def test_a_pair_that_is_never_neighbours_is_a_warning(pattern: str) -> None:
    (warning,) = workload(pattern, "A.x < NEXT(B).x").warnings
    assert warning.severity == "warning"
    assert "no trend has B directly after A" in warning.message


def test_an_optional_part_between_makes_neighbours() -> None:
    assert workload("SEQ(A, C?, B)", "A.x < NEXT(B).x").warnings == ()


def test_pushed_conditions_have_no_not() -> None:
    condition = parse("RETURN COUNT(*) PATTERN A WHERE NOT (A.x = 1 OR NOT (A.y = 2 AND NOT A.z > 3)) WITHIN 1 s")
    assert condition.queries[0].condition is not None
    pending = [push_not(condition.queries[0].condition)]
    while pending:
        part = pending.pop()
        assert not isinstance(part, Not)
        pending += parts(part)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------- patterns that are allowed


@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(A, (NOT P))",
        "SEQ(NOT P, A)",
        "(SEQ(NOT C, A))+",
        "SEQ(A, NOT C, B*, D)",
        "SEQ(A, NOT C, B?)",
        "SEQ(A, NOT B, NOT C, D)",
        "SEQ(A, NOT C, B) OR SEQ(A, NOT C, D)",
        "SEQ(A, NOT C, B) OR SEQ(A a2, B b2)",
        "SEQ(A, NOT SEQ(C, D+), B)",
        "SEQ(A, NOT (C OR D), B)",
        "SEQ(A, NOT C*, B)",
        "SEQ(A, A x, A)",
        "SEQ(A x, NOT A y)",
        "A*",
        "A{2,5}",
        "SEQ(A)",
        "(A OR SEQ(B, C+))+ AND SEQ(A, NOT D, C)",
    ],
)
def test_allowed_patterns(pattern: str) -> None:
    assert analysed(pattern).types


def test_variables_in_two_negated_patterns() -> None:
    query = analysed("SEQ(A, NOT SEQ(C, D), B, NOT C)", "C.x < NEXT(D).x")
    assert query.negated == {"C", "D"}


# ------------------------------------------------------------------------------------------- several errors at once


def test_syntax_and_meaning_are_reported_together() -> None:
    messages = wrong(
        "RETURN COUNT(*) PATTERN NOT A WITHIN 1 min; RETURN COUNT(* PATTERN B WITHIN 1 min;"
        "RETURN COUNT(X) PATTERN C WHERE D.x = 1 WITHIN 0 min"
    )
    assert len(messages) == 5


def test_a_workload_without_a_query_is_an_error() -> None:
    for text in ("", "-- comment", "EVENT A(x INT);"):
        assert wrong(text) == ["the workload has no query"]
        with pytest.raises(WorkloadError):
            analyse(parse(text))


def test_a_name_by_place_collides_with_a_given_one() -> None:
    body = "RETURN COUNT(*) PATTERN A WITHIN 1 min;"
    assert len(wrong(f"{body} q1: {body}")) == 1
    assert len(wrong(f"q3: {body} {body} {body}")) == 1
    assert len(analyse_text(f"q2: {body} q1: {body}").queries) == 2


# ----------------------------------------------------------------------------------------- declarations and types


DECLARED = "EVENT A(k INT, s STRING, d DOUBLE, b BOOLEAN, at TIMESTAMP); EVENT B(k INT, v INT); EVENT C(road STRING);"


def test_broadcast_types_are_allowed() -> None:
    analysis = workload("SEQ(A, NOT C, B+)", "[k]", declarations=DECLARED)
    assert analysis.queries[0].declared["C"] == {"road": AttributeType.STRING}
    assert analysis.declared["B"] == {"k": AttributeType.INT, "v": AttributeType.INT}
    declared = "EVENT X(driver INT); EVENT Y(rider INT);"
    assert analysed("SEQ(X, Y)", "[driver, rider]", declarations=declared).partition == ("driver", "rider")


@pytest.mark.parametrize("pattern", ["SEQ(C, A*)", "A OR C", "SEQ(A?, C)", "(SEQ(A?, C))+", "A AND C"])
def test_a_word_without_a_key_is_an_error(pattern: str) -> None:
    (message,) = wrong(f"{DECLARED} RETURN COUNT(*) PATTERN {pattern} WHERE [k] WITHIN 1 min")
    assert message == "the trend (C) has no event with the attribute 'k', so it belongs to no group"


def test_undeclared_types_have_any_attribute() -> None:
    assert analysed("SEQ(X, C)", "[k] AND X.anything > 3", declarations=DECLARED).partition == ("k",)


def test_time_and_type_columns_need_no_declaration() -> None:
    assert workload("SEQ(A, B)", "A.time > 5 AND A.type = A AND [time]", declarations=DECLARED).warnings == ()
    text = f"{DECLARED} RETURN COUNT(*) PATTERN A WHERE A.moment > 5 WITHIN 1 min"
    assert len(analyse_text(text, special=["moment", "event"]).queries) == 1
    assert len(wrong(text)) == 1


CLOCK = Clock("time", "s", pa.int64())


def schema(closed: bool = True, clock: Clock = CLOCK, **columns: AttributeType | None) -> Schema:
    return Schema(columns, clock, closed=closed)


def test_types_of_declared_attributes() -> None:
    query = analysed("SEQ(A, B)", "-A.k + A.k / 2 * A.d = A.d", declarations=DECLARED)
    (comparison,) = query.local["A"]
    assert isinstance(comparison, Comparison)
    assert type_of(comparison.left, query, None) is AttributeType.DOUBLE


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("A.k", AttributeType.INT),
        ("A.k % 2 - -A.k", AttributeType.INT),
        ("A.k / 2", AttributeType.DOUBLE),
        ("A.k * 1.0", AttributeType.DOUBLE),
        ("A.s", AttributeType.STRING),
        ("A.time", AttributeType.INT),
        ("A.type", AttributeType.STRING),
        ("A.n", None),
        ("A.n + 1", None),
        ("TRUE", AttributeType.BOOLEAN),
        ("NEXT(A).k + A.k", AttributeType.INT),
    ],
)
def test_types_from_columns(expression: str, expected: AttributeType | None) -> None:
    query = analysed("A+", f"({expression} IS NULL OR A.k = NEXT(A).k)")
    columns = schema(k=AttributeType.INT, s=AttributeType.STRING, n=None)
    (condition,) = query.adjacent["A", "A"]
    null_test = parts(condition)[0]
    assert type_of(parts(null_test)[0], query, columns) is expected  # type: ignore[arg-type]


def test_a_timestamp_clock_makes_the_time_a_timestamp() -> None:
    clock = Clock("time", "us", pa.timestamp("us"))
    analysis = workload("A+", "A.time - 1 > 3")
    assert check(analysis, schema()) == []
    (problem,) = check(analysis, schema(clock=clock))
    assert problem.message == "'-' beside a time takes instants and durations: 1 is INT"


def test_closed_and_open_schemas() -> None:
    analysis = workload("SEQ(A, B)", "A.x = 'a' AND [k]", "g")
    assert [each.message for each in check(analysis, schema())] == [
        "the input has no column 'x'",
        "the input has no column 'k'",
        "the input has no column 'g'",
    ]
    assert check(analysis, schema(closed=False)) == []
    columns = {"k": AttributeType.INT, "g": AttributeType.INT}
    assert len(check(analysis, schema(x=AttributeType.INT, **columns))) == 1
    assert check(analysis, schema(closed=False, x=AttributeType.INT, **columns)) == []
    assert check(analysis, schema(x=None, **columns)) == []


def test_literals_and_declared_types_are_checked_whatever_the_schema() -> None:
    analysis = workload("A", "A.x = 1", declarations="EVENT A(x INT);")
    assert check(analysis, schema(closed=False, x=None)) == []
    (error,) = check(analysis, schema(closed=False, x=AttributeType.STRING))
    assert error.message == "A.x is declared INT, but the column holds STRING"
    assert len(check(analysis, schema(x=AttributeType.STRING))) == 2  # the declaration and the comparison


def test_numbers_compare_and_double_takes_int() -> None:
    analysis = workload("A", "A.x < 1.5 AND A.y = 3", declarations="EVENT A(x INT, y DOUBLE);")
    assert check(analysis, schema(x=AttributeType.INT, y=AttributeType.INT)) == []


@pytest.mark.parametrize(
    ("window", "unit", "mistakes"),
    [
        ("WITHIN 500 ms", "s", 1),
        ("WITHIN 500 ms", "ms", 0),
        ("WITHIN 1.5 s SLIDE 0.25 s", "s", 2),
        ("WITHIN 1.5 min SLIDE 0.5 h", "s", 0),
        ("WITHIN 0.0000001 s", "us", 1),
        ("WITHIN 1e13 d", "s", 0),
        ("WITHIN 1e14 d", "s", 1),
    ],
)
def test_windows_fit_the_clock(window: str, unit: str, mistakes: int) -> None:
    analysis = analyse_text(f"RETURN COUNT(*) PATTERN A {window}")
    assert len(check(analysis, schema(clock=Clock("time", unit, pa.int64())))) == mistakes
