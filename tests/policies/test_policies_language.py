"""Policies as text: how formulas bind, what is printed, and what is said about mistakes."""

from __future__ import annotations

import random

import pytest

from hamlet.policies import Policy, PolicyError, Signature, run
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.printing import print_formula
from tests.random_policies import SIGNATURE, random_policy

SIG = "p(a: int) q(a: int) r(a: int, b: int) e() s(a: string) f(a: float)"

# What is written, and the same with the parentheses that MonPoly's grammar puts.
BINDS = [
    ("ONCE p(x) AND q(x)", "ONCE (p(x) AND q(x))"),
    ("ONCE p(x) SINCE q(x)", "(ONCE p(x)) SINCE q(x)"),
    ("NOT p(x) AND q(x)", "(NOT p(x)) AND q(x)"),
    ("NOT ONCE p(x) AND q(x)", "NOT (ONCE (p(x) AND q(x)))"),
    ("p(x) AND ONCE q(x) SINCE p(x)", "(p(x) AND (ONCE q(x))) SINCE p(x)"),
    ("EXISTS x. p(x) SINCE q(y)", "(EXISTS x. p(x)) SINCE q(y)"),
    ("EXISTS x. p(x) EQUIV q(y)", "EXISTS x. (p(x) EQUIV q(y))"),
    ("ONCE EXISTS x. p(x) AND q(x)", "ONCE (EXISTS x. (p(x) AND q(x)))"),
    ("e() IMPLIES e() IMPLIES e()", "e() IMPLIES (e() IMPLIES e())"),
    ("e() EQUIV e() EQUIV e()", "(e() EQUIV e()) EQUIV e()"),
    ("e() SINCE e() UNTIL[0,1] e()", "e() SINCE (e() UNTIL[0,1] e())"),
    ("e() OR e() AND e() IMPLIES e()", "(e() OR (e() AND e())) IMPLIES e()"),
    ("y <- CNT x p(x) SINCE q(x)", "y <- CNT x (p(x) SINCE q(x))"),
    ("m <- MAX x; (p(x))", "m <- MAX x p(x)"),
    ("LET d(x) = p(x) IN d(x) SINCE q(x)", "LET d(x) = p(x) IN (d(x) SINCE q(x))"),
    ("x + 1 * 2 = y", "x + (1 * 2) = y"),
    ("x - 1 - 2 = y", "(x - 1) - 2 = y"),
    ("x MOD 2 + 1 = y", "x MOD (2 + 1) = y"),
    ("1 + x MOD 2 * 3 = y", "1 + (x MOD (2 * 3)) = y"),
    ("∀x. p(x) → ◊[0,5] q(x)", "FORALL x. (p(x) IMPLIES (EVENTUALLY[0,5] q(x)))"),
    ("p(x) S[0,∞) q(x)", "p(x) SINCE q(x)"),
    ("¬ e() ∧ ● e()", "(NOT e()) AND (PREV e())"),
    ("PAST_ALWAYS [0, *] e() # comment", "HISTORICALLY e()"),
    ("(* comment *) SOMETIMES [0,5] e()", "EVENTUALLY[0,5] e()"),
    ("PREVIOUS (0,5] e()", "PREV(0,5] e()"),
]


@pytest.mark.parametrize(("text", "meant"), BINDS)
def test_operators_bind_as_in_monpoly(text: str, meant: str) -> None:
    assert parse_formula(text)[0] == parse_formula(meant)[0]


@pytest.mark.parametrize("text", [text for text, _ in BINDS])
def test_what_is_printed_parses_back(text: str) -> None:
    formula, _ = parse_formula(text)
    assert parse_formula(print_formula(formula))[0] == formula


def test_random_formulas_are_printed_and_parsed_back() -> None:
    for seed in range(300):
        formula, _ = parse_formula(random_policy(random.Random(seed)))
        assert parse_formula(print_formula(formula))[0] == formula


def test_names_go_on_as_in_monpoly() -> None:
    assert Policy.parse("p(t')", SIG).formula == parse_formula("p(t')")[0]
    assert print_formula(parse_formula("x-1 = y")[0]) == "x-1 = y"  # one name, as MonPoly reads it
    (warning,) = Policy.parse("p(x) AND x-1 = 2", SIG).warnings
    assert warning.message == "'x-1' is the name of a variable"
    assert warning.hint == "with blanks it is arithmetic: x - 1"
    assert not Policy.parse("p(user-id) AND user-id = 2", SIG).warnings
    (warning,) = Policy.parse("p(x) AND true = FALSE", SIG).warnings
    assert warning.hint == "the constant is written TRUE"
    with pytest.raises(PolicyError, match="'x/y' is one name; with blanks it is arithmetic: x / y"):
        run(Policy.parse("r(x, y) AND z = x/y", SIG), [])


def test_mod_takes_everything_and_says_so() -> None:
    (warning,) = Policy.parse("p(x) AND x MOD 2 + 1 = 1", SIG).warnings
    assert "MOD" in warning.message
    assert not Policy.parse("p(x) AND (x MOD 2) + 1 = 1", SIG).warnings


ERRORS = [
    ("p(x", "expected ')'"),
    ("p(x) AND", "the text ends here"),
    ("p(x) q(x)", "expected an operator"),
    ("ONCE[5,3] p(x)", "the interval is empty"),
    ("ONCE[0,0) p(x)", "the interval is empty"),
    ("ONCE[-1,3] p(x)", "negative"),
    ("pp(x)", "no predicate 'pp'"),
    ("p(x, y)", "'p' takes 1 argument, not 2"),
    ('p("a")', "is a string, but 'p' has an int"),
    ("p(x) AND s(x)", "is an int, but 's' has a string"),
    ("p(x) AND f(y) AND x = y", "is an int, and 'y' is a float"),
    ("s(x) AND y = x + 1", "is a string"),
    ("y <- SUM x s(x)", "SUM needs numbers"),
    ("y <- SUM z p(x)", "'z' is not free"),
    ("LET d(x) = r(x, y) IN d(x)", "'y' is free in the meaning of 'd'"),
    ("LET d(x, z) = p(x) IN d(x, 1)", "'z' is not free"),
    ('s(x) AND x MATCHES r"\\(a"', "regular expression"),
    ("FORWARD p(x) AND", "formula"),
    ("MATCHP (p(x) q(x))?", "'?' stands behind a formula only"),
    ("LETPAST d(x) = PREV d(x, x) IN d(x)", "takes 1 argument"),
    ('p("a) ', "not closed"),
    ("s('a) ", "close it with '"),
    ("p(x) AND (* and so on", "the comment that starts here is not closed"),
    ("p(x) AND NOT x ≠ 1", "write NOT (x = y) for values that differ"),
    ("p(x) & q(x)", "write AND, OR, NOT"),
    ("p(x) ANDD q(x)", "hint: did you mean AND?"),
    ("p(x) AND ONC[0,3] q(x)", "hint: did you mean ONCE?"),
    ("p(x) AND ONCE[0,3 d] q(x)", "hint: a unit stands right behind its number: [0,7d]"),
    ("p(x) AND $", "unexpected character '$'"),
    ("", "no formula"),
]


@pytest.mark.parametrize(("text", "message"), ERRORS)
def test_mistakes_are_told_with_their_place(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, SIG)
    assert message in str(caught.value)
    assert str(caught.value).startswith("<policy>:1:")


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse("pp(x) AND p(x, x) AND s(y) AND y > 1 AND ONCE[3,1] q(y)", SIG)
    assert len(caught.value.diagnostics) >= 4


BROKEN = {
    "p(x AND q(y) AND r(": [4, 19],
    "ONCE[1 p(x)) AND (q(x) OR ) IMPLIES EXISTS . s(x)": [7, 26, 43],
    "LET a(x) = p(x IN a(x": [15, 21],
    "p(x) ! AND q(@)": [5, 13],
    "p(x) AND AND q(x)": [9],
    "p(x) and q(x)": [5],
    "((p(x) AND q(x)": [15],
}


@pytest.mark.parametrize("text", BROKEN)
def test_all_mistakes_of_syntax_are_told_at_once(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, SIG)
    assert [each.span.start for each in caught.value.diagnostics] == BROKEN[text]


UNSAFE = [
    ("NOT p(x)", "'x' is not bound"),
    ("p(x) AND y > 3", "'y' is not bound"),
    ("p(x) OR q(y)", "both sides of OR"),
    ("p(x) SINCE q(y)", "on the left of SINCE"),
    ("EVENTUALLY p(x)", "EVENTUALLY has no bound"),
    ("e() UNTIL p(x)", "UNTIL has no bound"),
    ("p(x) AND ALWAYS q(x)", "ALWAYS has no bound"),
    ("x = y", "is not bound"),
    ("x < 5", "'x' is not bound"),
    ("p(x) AND NOT x = y", "'y' is not bound"),
    ("p(x) AND EXISTS z. NOT r(z, x)", "'z' is not bound"),
    ("HISTORICALLY[1,5] p(x)", "'x' is not bound"),
]


@pytest.mark.parametrize(("text", "message"), UNSAFE)
def test_what_cannot_be_monitored_is_told_before_any_data_is_read(text: str, message: str) -> None:
    policy = Policy.parse(text, SIG)
    with pytest.raises(PolicyError) as caught:
        run(policy, [{"time": "no time", "type": "p"}])
    assert message in str(caught.value)


def test_all_that_cannot_be_monitored_is_told_at_once() -> None:
    text = (
        "LET f(a) = NOT p(a) IN f(y) AND (EXISTS x. NOT q(x)) AND (NOT r(y, z) SINCE q(y))\n"
        " AND (c <- CNT i; x (q(i) AND MATCHP[0,5] ((NOT p(i))? r(i, x)?))) AND (EXISTS t. t < 5)"
        " AND EVENTUALLY p(y)"
    )
    with pytest.raises(PolicyError) as caught:
        run(Policy.parse(text, SIG), [])
    assert [text[each.span.start : each.span.end] for each in caught.value.diagnostics] == [
        "p(a)",
        "q(x)",
        "r(y, z)",
        "MATCHP[0,5] ((NOT p(i))? r(i, x)?)",
        "t < 5",
        "EVENTUALLY p(y)",
    ]


SAFE = [
    "0 = 0",
    "x = 5",
    "5 = x",
    "p(x) AND x = y",
    "p(y) AND x = 0",
    "p(x) AND NOT (x = x)",
    "p(x) AND NOT x < 0",
    "NOT e()",
    "NOT (EXISTS x. p(x))",
    "(NOT (p(x) AND q(x))) SINCE q(x)",
    "((EXISTS x. p(x)) IMPLIES (EXISTS x. q(x))) SINCE q(x)",
    "(NOT (p(x) IMPLIES q(x))) SINCE q(x)",
    "NOT (p(x) IMPLIES (NOT q(x) SINCE p(x)) AND ONCE[0,10] EXISTS m. r(m,x))",
    "p(x) AND NOT ONCE[2,21) EXISTS y. r(y,x)",
    "NOT (p(x) AND q(x) IMPLIES ONCE[0,5] q(x))",
    "p(x) AND (q(x) OR NOT EVENTUALLY[0,3] q(x))",
    "p(x) AND HISTORICALLY[1,5] q(x)",
    "p(x) AND ALWAYS[1,5] q(x)",
    "p(x) AND ALWAYS[0,5] (q(x) IMPLIES ONCE p(x))",
    "p(x) AND ONCE[0,5] (x > y AND q(y))",
    "p(x) AND EXISTS y. (y = x + 1)",
    "p(x) AND p(x + 1)",
    "(m <- MAX s; (s <- CNT i; x TRUE SINCE r(i,x))) AND (m <- CNT i; x TRUE SINCE r(i,x))",
    "LET islast() = NEXT[10000d,*] TRUE IN LET notfirst() = PREVIOUS TRUE IN islast() AND notfirst()",
    "FORALL x. p(x) IMPLIES q(x)",
    "tp(i) AND ts(t) AND tpts(i, t)",
    "p(x) AND NOT HISTORICALLY q(x)",
    "p(x) AND NOT HISTORICALLY[2,*) q(x)",
    "p(x) AND NOT HISTORICALLY (q(x) OR p(x))",
    "(NOT HISTORICALLY q(x)) SINCE p(x)",
    "(NOT ALWAYS[0,5] q(x)) UNTIL[0,3] p(x)",
    "(NOT HISTORICALLY[0,5] q(x)) TRIGGER p(x)",
]


@pytest.mark.parametrize("text", SAFE)
def test_what_monpoly_monitors_is_monitored(text: str) -> None:
    assert run(Policy.parse(text, SIG), []).rows() == []


def test_signatures() -> None:
    signature = Signature.parse("p(int)\nq(a: string, b: float) # comment\np(int, int) e()")
    assert [str(each) for each in signature] == ["p(int)", "q(a: string, b: float)", "p(int, int)", "e()"]
    with pytest.raises(PolicyError) as caught:
        Signature.parse("p(itn)\nq(a: int, a: int)\nz\ng(int)\ng(int)")
    assert len(caught.value.diagnostics) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p(int)\np(string)", "<signature>:2:1: p with 1 arguments is declared twice"),
        ("p{a: int}", "<signature>:1:2: expected '(' after 'p', found '{'"),
        ("(int)", "<signature>:1:1: expected the name of a predicate, found '('"),
        ("p(a: int, a: int)", "<signature>:1:11: 'a' names two arguments of p"),
        ("p(int string)", "<signature>:1:7: expected ',' or ')' in the arguments of 'p', found 'string'"),
        ("p(quaternion)", "hint: types are int, float, string and bool"),
        ("p(strin)", "hint: did you mean string?"),
        ("p(a:", "<signature>:1:5: expected a type: int, float, string or bool, the text ends here"),
    ],
)
def test_mistakes_of_signatures(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Signature.parse(text)
    assert message in str(caught.value)


def test_nesting_is_bounded() -> None:
    for text in ("(" * 5000 + "e()" + ")" * 5000, "NOT " * 5000 + "e()"):
        with pytest.raises(PolicyError, match="nested"):
            Policy.parse(text, SIGNATURE)
    for word in ("AND", "OR", "EQUIV"):  # chains are flat
        assert Policy.parse(f" {word} ".join(["e()"] * 5000), SIGNATURE)


def test_files(tmp_path) -> None:
    (tmp_path / "late.mfotl").write_text("p(x)")
    (tmp_path / "it.sig").write_text("p(a: int)")
    policy = Policy.from_file(tmp_path / "late.mfotl", signature=tmp_path / "it.sig")
    assert policy.name == "late"
