"""The grammar (docs/language.md, "A query"): what is read, how, and that nothing makes the parser crash or hang."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hamlet.language.parser import parse, read
from hamlet.language.query import (
    Aggregate,
    Alternation,
    And,
    Atom,
    Attribute,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Conjunction,
    Equivalence,
    Expression,
    Literal,
    Membership,
    Negation,
    Not,
    NullTest,
    Or,
    Pattern,
    Query,
    Reference,
    Repetition,
    ReturnItem,
    Sequence,
    Shift,
    Unary,
)

FIGURE_1 = """
RETURN T.district, COUNT(*), SUM(T.duration)
PATTERN SEQ(Request R, Travel T+, NOT Pickup P)
WHERE [driver, rider]
GROUP-BY T.district WITHIN 30 min SLIDE 1 min

RETURN T.district, COUNT(*), SUM(T.duration)
PATTERN SEQ(Request R, Travel T+, Dropoff D)
WHERE [driver, rider] AND R.type = Pool
GROUP-BY T.district WITHIN 30 min SLIDE 1 min

RETURN T.district, COUNT(*), SUM(T.duration)
PATTERN SEQ(Request R, Travel T+, Cancel C)
WHERE [driver, rider] AND T.speed < 10
GROUP-BY T.district WITHIN 30 min SLIDE 1 min
"""

A, B, C = Atom("A", "A"), Atom("B", "B"), Atom("C", "C")


def query(text: str) -> Query:
    return parse(text).queries[0]


def pattern(text: str) -> Pattern:
    return query(f"RETURN COUNT(*) PATTERN {text} WITHIN 1 min").pattern


def condition(text: str) -> Condition:
    found = query(f"RETURN COUNT(*) PATTERN A WHERE {text} WITHIN 1 min").condition
    assert found is not None
    return found


def expression(text: str) -> Expression:
    found = condition(f"{text} = 0")
    assert isinstance(found, Comparison)
    return found.left


def problems(text: str) -> list[str]:
    return [each.message for each in read(text)[1]]


def test_figure_1_is_valid_as_printed() -> None:
    queries = parse(FIGURE_1).queries
    assert [each.name for each in queries] == ["q1", "q2", "q3"]
    parts = (Atom("Request", "R"), plus(Atom("Travel", "T")), Negation(Atom("Pickup", "P")))
    assert queries[0].pattern == Sequence(parts)
    pool = Comparison("=", Reference("R", "type"), Literal("Pool"))
    assert queries[1].condition == And((Equivalence(("driver", "rider")), pool))
    assert queries[2].group_by == (Attribute("district", "T"),)
    assert queries[2].slide is not None
    assert queries[2].slide.seconds == 60


def plus(body: Pattern) -> Repetition:
    return Repetition(body, 1, None)


# ----------------------------------------------------------------------------------------------------- patterns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", A),
        ("A x", Atom("A", "x")),
        ("seq(A)", Sequence((A,))),
        ("((A))", A),
        ("SEQ(A, (NOT B))", Sequence((A, Negation(B)))),
        ("A+", plus(A)),
        ("A*", Repetition(A, 0, None)),
        ("A?", Repetition(A, 0, 1)),
        ("A{2}", Repetition(A, 2, 2)),
        ("A{2,}", Repetition(A, 2, None)),
        ("A { 2 , 3 }", Repetition(A, 2, 3)),
        ("A{1,}", plus(A)),
        ("A+?", Repetition(plus(A), 0, 1)),
        ("A x+{2}*", Repetition(Repetition(plus(Atom("A", "x")), 2, 2), 0, None)),
        ("A OR B OR C", Alternation((A, B, C))),
        ("A | B ∨ C", Alternation((A, B, C))),
        ("A AND B", Conjunction((A, B))),
        ("A & B ∧ C", Conjunction((A, B, C))),
        ("A OR B AND C", Alternation((A, Conjunction((B, C))))),
        ("(A OR B) AND C", Conjunction((Alternation((A, B)), C))),
        ("NOT A AND B", Conjunction((Negation(A), B))),
        ("NOT A+", Negation(plus(A))),
        ("(NOT A)+", plus(Negation(A))),
        ("NOT NOT A", Negation(Negation(A))),
        ("(SEQ(A, B+))+", plus(Sequence((A, plus(B))))),
        ("SEQ(A, A x)", Sequence((A, Atom("A", "x")))),
    ],
)
def test_patterns(text: str, expected: Pattern) -> None:
    assert pattern(text) == expected


@pytest.mark.parametrize(
    "word", ["Count", "min", "Next", "Event", "In", "is", "null", "True", "as", "By", "Group", "Log2", "distinct", "h"]
)
def test_most_keywords_are_types_and_variables(word: str) -> None:
    parts = (Atom(word, word), Atom("A", word), plus(Atom(word, "x")))
    assert pattern(f"SEQ({word}, A {word}, {word} x+)") == Sequence(parts)


def test_return_is_a_type_where_nothing_else_can_be_meant() -> None:
    assert pattern("SEQ(Purchase, Return)") == Sequence((Atom("Purchase", "Purchase"), Atom("Return", "Return")))


def test_quoted_names() -> None:
    assert pattern('SEQ("SEQ" "a b", "say ""hi""")') == Sequence((Atom("SEQ", "a b"), Atom('say "hi"', 'say "hi"')))


# -------------------------------------------------------------------------------------------------- conditions


X, Y = Reference("A", "x"), Reference("A", "y")
ONE, TWO = Literal(1), Literal(2)
X_IS_1, Y_IS_1 = Comparison("=", X, ONE), Comparison("=", Y, ONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A.x == 1", Comparison("=", X, ONE)),
        ("A.x != 1", Comparison("<>", X, ONE)),
        ("A.x <> 1", Comparison("<>", X, ONE)),
        ("A.x ≤ 1", Comparison("<=", X, ONE)),
        ("A.x>=1", Comparison(">=", X, ONE)),
        ("A.x NOT IN (1, 2)", Membership(X, (ONE, TWO), True)),
        ("A.x in (1)", Membership(X, (ONE,))),
        ("A.x BETWEEN 1 AND 2 AND A.y = 1", And((Between(X, ONE, TWO), Comparison("=", Y, ONE)))),
        ("A.x NOT BETWEEN 1 AND 2", Between(X, ONE, TWO, True)),
        ("A.x IS NULL", NullTest(X)),
        ("A.x is not null", NullTest(X, True)),
        ("[a, b]", Equivalence(("a", "b"))),
        ("NOT A.x = 1 AND A.y = 1", And((Not(Comparison("=", X, ONE)), Comparison("=", Y, ONE)))),
        ("NOT NOT A.x = 1", Not(Not(Comparison("=", X, ONE)))),
        ("A.x = 1 OR A.y = 1 AND [a]", Or((X_IS_1, And((Y_IS_1, Equivalence(("a",))))))),
        ("(A.x = 1 OR A.y = 1) AND [a]", And((Or((X_IS_1, Y_IS_1)), Equivalence(("a",))))),
        ("(A.x) = (1)", Comparison("=", X, ONE)),
        ("A.x = Pool", Comparison("=", X, Literal("Pool"))),
        ("A.x = 'it''s'", Comparison("=", X, Literal("it's"))),
        ("A.x = true", Comparison("=", X, Literal(True))),
        ("A.x = Count", Comparison("=", X, Literal("Count"))),
        ("A.x < NEXT(A).x", Comparison("<", X, Reference("A", "x", Shift.NEXT))),
        ("A.x > prev ( A ) . y", Comparison(">", X, Reference("A", "y", Shift.PREV))),
        ('"a b"."c d" = 1', Comparison("=", Reference("a b", "c d"), ONE)),
        ("next.min = prev.in", Comparison("=", Reference("next", "min"), Reference("prev", "in"))),
    ],
)
def test_conditions(text: str, expected: Condition) -> None:
    assert condition(text) == expected


def test_bare_words_are_marked() -> None:
    for text, bare in (("A.x = Pool", True), ("A.x = 'Pool'", False), ('A.x = "Pool"', True)):
        found = condition(text)
        assert isinstance(found, Comparison)
        assert isinstance(found.right, Literal)
        assert found.right.bare is bare


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 2", Binary("+", ONE, Binary("*", TWO, TWO))),
        ("(1 + 2) * 2", Binary("*", Binary("+", ONE, TWO), TWO)),
        ("1 - 2 - 1", Binary("-", Binary("-", ONE, TWO), ONE)),
        ("1 - (2 - 1)", Binary("-", ONE, Binary("-", TWO, ONE))),
        ("1 / 2 % 2", Binary("%", Binary("/", ONE, TWO), TWO)),
        ("-A.x * 2", Binary("*", Unary("-", X), TWO)),
        ("-2", Literal(-2)),
        ("-(2)", Unary("-", TWO)),
        ("+2", Unary("+", TWO)),
        ("1 - -2", Binary("-", ONE, Literal(-2))),
        ("1 - - A.x", Binary("-", ONE, Unary("-", X))),
        ("1 -- comment\n - 2", Binary("-", ONE, TWO)),
        (".5", Literal(0.5)),
        ("1e3", Literal(1000.0)),
        ("2.5E-1", Literal(0.25)),
        ("9223372036854775807", Literal(2**63 - 1)),
        ("-9223372036854775808", Literal(-(2**63))),
    ],
)
def test_expressions(text: str, expected: Expression) -> None:
    found = expression(text)
    assert found == expected
    if isinstance(found, Literal) and isinstance(expected, Literal):
        assert type(found.value) is type(expected.value)


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" * 5000, "1e999"])
def test_numbers_that_fit_nothing(number: str) -> None:
    assert len(problems(f"RETURN COUNT(*) PATTERN A WHERE A.x = {number} WITHIN 1 min")) == 1


# ------------------------------------------------------------------------------------------- clauses and the rest


def test_result_columns() -> None:
    items = "T.d AS x, d, count(*), COUNT(T), sum(T.min), LOG2(Avg(T.v)) AS MAX, log2, count"
    assert query(f"RETURN {items} PATTERN A T WITHIN 1 min").items == (
        ReturnItem(Attribute("d", "T"), alias="x"),
        ReturnItem(Attribute("d")),
        ReturnItem(Aggregate("COUNT")),
        ReturnItem(Aggregate("COUNT", "T")),
        ReturnItem(Aggregate("SUM", "T", "min")),
        ReturnItem(Aggregate("AVG", "T", "v"), log2=True, alias="MAX"),
        ReturnItem(Attribute("log2")),
        ReturnItem(Attribute("count")),
    )


@pytest.mark.parametrize("keyword", ["GROUP-BY", "GROUPBY", "GROUP BY", "group - by", "Group–By"])
def test_spellings_of_group_by(keyword: str) -> None:
    text = f"RETURN COUNT(*) PATTERN A {keyword} A.x, event WITHIN 1 min"
    assert query(text).group_by == (Attribute("x", "A"), Attribute("event"))


UNITS = {"ms": Fraction(1, 1000)} | dict.fromkeys(["s", "sec", "second", "seconds"], Fraction(1))
UNITS |= dict.fromkeys(["min", "minute", "minutes"], Fraction(60))
UNITS |= dict.fromkeys(["h", "hour", "hours"], Fraction(3600))
UNITS |= dict.fromkeys(["d", "day", "days"], Fraction(86400))


@pytest.mark.parametrize(("unit", "seconds"), UNITS.items())
def test_durations(unit: str, seconds: Fraction) -> None:
    for text, amount in (("2", Fraction(2)), ("1.5", Fraction(3, 2)), (".1", Fraction(1, 10)), ("1e2", Fraction(100))):
        for spelled in (f"{text} {unit}", f"{text}{unit.upper()}", f"{text} -- of\n{unit}"):
            found = query(f"RETURN COUNT(*) PATTERN A WITHIN {spelled} SLIDE {spelled}")
            assert found.within.seconds == amount * seconds
            assert found.slide == found.within


def test_names_of_queries() -> None:
    body = "RETURN COUNT(*) PATTERN A WITHIN 1 min"
    queries = parse(f'{body}; slow: {body}\n"a b": {body} {body};;; event: {body}; return: {body}').queries
    assert [each.name for each in queries] == ["q1", "slow", "a b", "q4", "event", "return"]
    assert [each.name_span is None for each in queries] == [True, False, False, True, False, False]


def test_declarations() -> None:
    workload = parse('event "Gas Alarm"(type string, "a b" INT, min DOUBLE, x Boolean, at TIMESTAMP); -- comment')
    declaration = workload.declarations[0]
    assert declaration.name == "Gas Alarm"
    assert [(each.name, each.type) for each in declaration.attributes] == [
        ("type", AttributeType.STRING),
        ("a b", AttributeType.INT),
        ("min", AttributeType.DOUBLE),
        ("x", AttributeType.BOOLEAN),
        ("at", AttributeType.TIMESTAMP),
    ]


def test_spans_are_places_in_the_text() -> None:
    text = "x: RETURN T.d, COUNT(*) PATTERN SEQ(A, (B T)+) WHERE (T.v) < - 1 AND [k] GROUP-BY T.d WITHIN 10 min;"
    found = query(text)
    assert isinstance(found.pattern, Sequence)
    assert isinstance(found.condition, And)
    nodes = [found.items[0], found.pattern.parts[1], *found.condition.operands, found.group_by[0], found.within]
    quoted = [text[node.span.start : node.span.end] for node in nodes]
    assert quoted == ["T.d", "(B T)+", "(T.v) < - 1", "[k]", "T.d", "10 min"]
    assert text[found.span.start : found.span.end] == text[:-1]
    assert found.name_span is not None
    assert text[found.name_span.start : found.name_span.end] == "x"


def test_strings_may_hold_line_breaks_and_quotes() -> None:
    assert condition("A.x = 'two\nlines; -- and ''more'''") == Comparison("=", X, Literal("two\nlines; -- and 'more'"))


def test_an_empty_text_has_no_queries() -> None:
    for text in ("", "  \n", "-- nothing", ";;", "\ufeff"):
        assert parse(text).queries == ()
