"""Which predicates accept the same events: examples, and random pairs against an evaluation of values."""

from __future__ import annotations

import math
import operator as operators
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hamlet.language.analysis import analyse_text
from hamlet.language.query import AttributeType
from hamlet.planner.predicate_facts import adjacent_predicates, local_predicates
from optimizer.condition import (
    TRUE,
    AllOf,
    AnyOf,
    Arithmetic,
    Compare,
    Condition,
    Constant,
    Field,
    IsNull,
    Negative,
    Value,
    constant,
    fields,
    normal,
)
from optimizer.predicates import Relation, classes, implies, relation

KINDS = {
    "i": AttributeType.INT,
    "j": AttributeType.INT,
    "x": AttributeType.DOUBLE,
    "y": AttributeType.DOUBLE,
    "s": AttributeType.STRING,
    "b": AttributeType.BOOLEAN,
}  # u is of a kind that is not known


def local(where: str, variable: str = "E") -> Condition:
    text = f"RETURN COUNT(*) PATTERN E {variable}+ WHERE {where.replace('E.', variable + '.')} WITHIN 1 min"
    query = analyse_text(text).queries[0]
    return local_predicates(query, lambda _, attribute: KINDS.get(attribute)).get(variable, TRUE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("E.i > 3", "E.i >= 4"),  # no integer between
        ("E.i > 3", "NOT E.i <= 3 AND E.i = E.i"),
        ("E.i > 3 AND E.x < 2", "2 > E.x AND 3 < E.i AND 3 < E.i"),
        ("2 * E.i + 1 > 7", "E.i > 3"),
        ("E.i * E.i < 5", "E.i BETWEEN -2 AND 2"),
        ("E.i * E.i = 2", "E.i < 0 AND E.i > 0"),  # no integer does
        ("E.i IN (1, 2, 3)", "E.i BETWEEN 1 AND 3"),
        ("E.i NOT IN (1, 2)", "E.i < 1 OR E.i > 2"),
        ("E.i < E.j", "E.j - E.i > 0"),
        ("3 * E.i < 3 * E.j + 3", "E.i <= E.j"),
        ("(E.i + E.j) * (E.i - E.j) = 0", "E.i * E.i = E.j * E.j"),
        ("E.i > 2.5", "E.i > 2"),
        ("E.x > 5 * 60", "E.x > 300"),
        ("-E.x < -3", "E.x > 3"),
        ("E.x * E.y > 1", "1 < E.y * E.x"),
        ("E.x > 1 OR E.x <= 1", "E.x IS NOT NULL"),
        ("E.x <> 1", "E.x < 1 OR E.x > 1"),
        ("E.i + 1 IS NULL", "E.i IS NULL"),
        ("E.s = 'a' OR E.s <> 'a'", "NOT E.s IS NULL"),
        ("E.s > 'a' AND E.s < 'b' OR E.s = 'b'", "'a' < E.s AND E.s <= 'b'"),
        ("E.b = TRUE", "E.b <> FALSE"),
        ("E.u = 'a' AND E.u = 1", "E.i > 3 AND E.i < 4"),  # nothing is a string and a number
    ],
)
def test_the_same_events(one: str, other: str) -> None:
    assert relation(local(one), local(other)) is Relation.SAME
    assert relation(local(other), local(one, "T")) is Relation.SAME


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("E.i > 5", "E.i > 3"),
        ("E.i = 4", "E.i IN (4, 5)"),
        ("E.x > 3 AND E.s = 'a'", "E.x > 3"),
        ("E.x > 3", "E.x IS NOT NULL"),
        ("E.x > 3", "E.x > 3 OR E.x IS NULL"),
        ("E.i * E.i > 9", "E.i <> 0"),
        ("E.s = 'b'", "E.s > 'a'"),
        ("E.u < 5", "E.u <> 7"),
        ("E.i + E.j > 10", "E.i + E.j > 2"),
    ],
)
def test_one_implies_the_other(one: str, other: str) -> None:
    assert relation(local(one), local(other)) is Relation.IMPLIES
    assert relation(local(other), local(one)) is Relation.IMPLIED
    assert implies(local(one), local(one))
    assert not implies(local(other), local(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("E.x > 3", "E.x >= 4"),  # doubles lie between
        ("E.x > 3", "E.y > 3"),
        ("E.i > 3", "E.i < 10"),
        ("E.x + 0.1 > 0.3", "E.x > 0.2"),  # doubles round
        ("E.x / E.y > 1", "E.x > E.y"),  # NULL where E.y is 0, and the order turns below it
        ("E.u > 3", "E.u >= 4"),
        ("E.u <> 3", "E.u < 3 OR E.u > 3"),  # a string is not 3, but has no order to it
        ("E.i % 2 = 0", "E.i % 4 = 0"),  # true, but not decided
        ("-E.u <> 5", "E.u <> -5"),  # there is no negative string
    ],
)
def test_what_is_different_or_not_known(one: str, other: str) -> None:
    assert relation(local(one), local(other)) is not Relation.SAME


def test_what_accepts_everything_is_implied_by_all() -> None:
    assert relation(local("E.i > 5"), TRUE) is Relation.IMPLIES
    assert relation(local("E.i > 5 OR E.i <= 5"), TRUE) is Relation.IMPLIES  # a NULL passes TRUE only
    assert relation(local("E.i > 5 OR E.i <= 5 OR E.i IS NULL"), TRUE) is Relation.SAME


def test_large_predicates_are_called_different_at_once() -> None:
    many = " OR ".join(f"E.a{place} > {place}" for place in range(12))
    one, other = local(many), local(many + " OR E.i > 5")
    assert relation(one, other) is Relation.DIFFERENT
    assert relation(one, local(many.replace(" OR ", "  OR "))) is Relation.SAME
    steep = "E.i" + " * E.i" * 40 + " > 1"
    assert relation(local(steep), local("E.i > 1")) is Relation.DIFFERENT


def test_adjacent_predicates_speak_of_two_events() -> None:
    text = (
        "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {} WITHIN 1 min; RETURN COUNT(*) PATTERN B T+ WHERE {} WITHIN 1 min"
    )

    def pair(one: str, other: str) -> list[Condition]:
        first, second = analyse_text(text.format(one, other)).queries
        typed = [adjacent_predicates(query, lambda _, name: KINDS.get(name)) for query in (first, second)]
        return [typed[0]["B", "B"], typed[1]["T", "T"]]

    assert relation(*pair("B.i < NEXT(B).i", "T.i > PREV(T).i")) is Relation.SAME
    assert implies(*pair("B.i + 1 < NEXT(B).i", "T.i < NEXT(T).i"))
    assert relation(*pair("B.i < NEXT(B).i", "T.i > NEXT(T).i")) is not Relation.SAME


def test_classes_number_the_accepted_events() -> None:
    found = classes([local(each) for each in ("E.i > 3", "E.i > 5", "4 <= E.i", "E.x > 1", "E.i > 3")] + [TRUE])
    assert found.numbers == (0, 1, 0, 2, 0, 3)
    assert found.narrower == {(1, 0), (0, 3), (1, 3), (2, 3)}
    assert found.related(0, 1)
    assert found.related(3, 2)
    assert not found.related(0, 2)


def test_many_predicates_are_numbered_at_once() -> None:
    found = classes([local(f"E.x > {bound}") for bound in range(300)] + [local(f"E.x >= {bound}") for bound in (5, 7)])
    assert found.numbers == tuple(range(302))
    assert {(300, 4), (5, 300), (299, 0)} <= found.narrower
    wide = [f"E.x > {bound} AND E.y < {bound} AND E.i > {bound} AND E.j > {bound}" for bound in range(40)]
    assert len(set(classes([local(each) for each in wide]).numbers)) == 40


def test_sympy_is_loaded_for_arithmetic_only() -> None:
    code = (
        "import sys, hamlet, optimizer.predicates as p\n"
        "from optimizer.condition import *\n"
        "x, y = Field('x', 'INT'), Field('y', 'INT')\n"
        "assert p.relation(Compare('>', x, constant(3)), Compare('>=', x, constant(4))) is p.Relation.SAME\n"
        "assert p.relation(Compare('>', x, y), Compare('<', y, x)) is p.Relation.SAME\n"
        "assert 'sympy' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------------------- random pairs against values

VALUES: dict[str, list[object]] = {
    "i": [None, -3, -2, -1, 0, 1, 2, 3],
    "x": [None, -2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0],
    "s": [None, "a", "ab", "b"],
    "u": [None, 1, 0.5, "a", True],
}


PYTHON: dict[str, Callable[[Any, Any], object]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "/": operators.truediv,
    "%": math.fmod,
    "=": operators.eq,
    "<>": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


def value_of(value: Value, event: dict[Field, object]) -> object:
    match value:
        case Field():
            return event[value]
        case Constant(value=known):
            return known
        case Negative(operand=operand):
            inner = value_of(operand, event)
            return -inner if is_number(inner) else None  # type: ignore[operator]
        case Arithmetic(operator=operator, left=left, right=right):
            one, other = value_of(left, event), value_of(right, event)
            if not is_number(one) or not is_number(other) or (operator in "/%" and other == 0):
                return None
            return PYTHON[operator](one, other)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def accepts(condition: Condition, event: dict[Field, object]) -> bool:
    match condition:
        case AllOf(parts=parts):
            return all(accepts(part, event) for part in parts)
        case AnyOf(parts=parts):
            return any(accepts(part, event) for part in parts)
        case IsNull(operand=operand, negated=negated):
            return (value_of(operand, event) is None) != negated
        case Compare(operator=operator, left=left, right=right):
            one, other = value_of(left, event), value_of(right, event)
            if one is None or other is None:
                return False
            if not (is_number(one) and is_number(other)) and type(one) is not type(other):
                return operator == "<>"
            return bool(PYTHON[operator](one, other))


CONSTANTS = [constant(value) for value in (-2, -1, 0, 1, 2, 0.5, 1.0, "a", "ab", True)]


def predicates_over(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Condition, Condition]]:
    """Two predicates over a few fields, made of the same few leaves so that they are often related."""
    known = [
        each
        for each in (Field("i", "INT"), Field("x", "DOUBLE"), Field("s", "STRING"), Field("u"))
        if each.name in names
    ]
    values: st.SearchStrategy[Value] = st.recursive(
        st.sampled_from(known) | st.sampled_from(CONSTANTS),
        lambda inner: st.builds(Negative, inner) | st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        max_leaves=3,
    )
    comparison = st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), values, values)
    leaf: st.SearchStrategy[Condition] = comparison | comparison | st.builds(IsNull, values, st.booleans())

    def pairs(pool: list[Condition]) -> st.SearchStrategy[tuple[Condition, Condition]]:
        parts = st.lists(st.sampled_from(pool), min_size=1, max_size=3).map(tuple)
        whole = st.builds(AllOf, parts) | st.builds(AnyOf, parts)
        return st.tuples(whole, whole)

    return st.lists(leaf, min_size=2, max_size=3).flatmap(pairs)


@settings(max_examples=300)
@given(st.sampled_from(["i", "iu", "x", "ix", "su", "u"]).map(tuple).flatmap(predicates_over))
def test_what_is_found_holds_for_all_values(pair: tuple[Condition, Condition]) -> None:
    one, other = pair
    found = relation(one, other)
    involved = sorted({*fields(one), *fields(other)}, key=lambda field: field.name)
    for chosen in product(*(VALUES[field.name] for field in involved)):
        event = dict(zip(involved, chosen, strict=True))
        first, second = accepts(one, event), accepts(other, event)
        assert accepts(normal(one), event) == first
        assert found is not Relation.SAME or first == second
        assert found is not Relation.IMPLIES or second or not first
        assert found is not Relation.IMPLIED or first or not second


def test_the_order_of_operands_needs_no_text_of_whole_values(monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[Value] = [Field("a"), Field("a")]
    for place in range(300):
        sums = [Arithmetic("+", each, Field(f"v{place}")) for each in sums]
    one, other = sums

    def refuse(_: Arithmetic) -> str:
        raise AssertionError("a text at each level takes the square of the time")

    monkeypatch.setattr(Arithmetic, "__repr__", refuse)
    turned = Compare("=", Arithmetic("*", Field("b"), one), constant(0))
    assert normal(turned) == normal(Compare("=", constant(0), Arithmetic("*", other, Field("b"))))
