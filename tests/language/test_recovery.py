"""After a mistake the parser goes on, and no text makes it crash, hang or recurse without end."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamlet
from hamlet.errors import WorkloadError
from hamlet.frontend.cursor import MAX_DEPTH, MAX_PROBLEMS
from hamlet.language.parser import parse, read
from tests.language.test_parser import FIGURE_1, problems


def test_every_statement_and_clause_reports_its_own_error() -> None:
    text = "\n".join(
        [
            "a: RETURN COUNT(, SUM(x) PATTERN SEQ(A WHERE A.x < WITHIN 10 mins;",
            "b: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 min;",
            "EVENT X(a FOO, b BAR);",
            "c: RETURN COUNT(*) PATTERN A WITHIN",
            "d: RETURN COUNT(*) PATTERN A WITHIN 1 min SLIDE 5",
        ]
    )
    workload, found = read(text, "x.sase")
    assert [each.name for each in workload.queries] == ["b"]
    assert [each.line for each in found] == [1, 1, 1, 1, 1, 3, 3, 5, 5]
    with pytest.raises(WorkloadError) as raised:
        parse(text, "x.sase")
    assert len(raised.value.diagnostics) == len(found)


NESTED = {
    "parentheses": lambda n: f"RETURN COUNT(*) PATTERN {'(' * n}A{')' * n} WITHIN 1 min",
    "SEQ": lambda n: f"RETURN COUNT(*) PATTERN {'SEQ(B, ' * n}A{')' * n} WITHIN 1 min",
    "NOT": lambda n: f"RETURN COUNT(*) PATTERN {'NOT ' * n}A WITHIN 1 min",
    "postfix": lambda n: f"RETURN COUNT(*) PATTERN A{'+' * n} WITHIN 1 min",
    "condition": lambda n: f"RETURN COUNT(*) PATTERN A WHERE {'(' * n}A.x{')' * n} = 1 WITHIN 1 min",
    "negation": lambda n: f"RETURN COUNT(*) PATTERN A WHERE {'NOT ' * n}A.x = 1 WITHIN 1 min",
    "minus": lambda n: f"RETURN COUNT(*) PATTERN A WHERE {'- ' * n}A.x = 1 WITHIN 1 min",
    "sum": lambda n: f"RETURN COUNT(*) PATTERN A WHERE A.x > {'1 + (' * n}1{')' * n} WITHIN 1 min",
    "in": lambda n: f"RETURN COUNT(*) PATTERN A WHERE {'A.x IN (' * n}1{')' * n} WITHIN 1 min",
    "or": lambda n: f"RETURN COUNT(*) PATTERN A WHERE {'(A.x = 1 OR ' * n}A.x = 1{')' * n} WITHIN 1 min",
}


@pytest.mark.parametrize("kind", NESTED)
def test_deep_nesting_is_refused_with_the_limit(kind: str) -> None:
    for depth in (MAX_DEPTH + 1, 10_000):
        found = problems(NESTED[kind](depth))
        assert len(found) == 1
        assert f"nests deeper than {MAX_DEPTH} levels" in found[0] or kind == "in"


@pytest.mark.parametrize("kind", [kind for kind in NESTED if kind != "in"])
def test_nesting_up_to_the_limit_is_read(kind: str) -> None:
    assert problems(NESTED[kind](MAX_DEPTH // 2 - 2)) == []


def test_long_chains_are_no_nesting() -> None:
    text = f"RETURN COUNT(*) PATTERN {' OR '.join(['A'] * 5000)} WHERE {' AND '.join(['A.x = 1'] * 5000)} WITHIN 1 min"
    assert problems(text) == []


PIECES = ["@ x ", "RETURN ", "(", "q:", "EVENT x(", "a b ", "'", "'\nRETURN ", "[", "A.x IN ("]


@pytest.mark.parametrize("piece", PIECES)
def test_large_nonsense_is_refused_in_good_time(piece: str) -> None:
    started = time.process_time()
    found = problems(piece * 20_000)
    assert 0 < len(found) <= MAX_PROBLEMS
    assert time.process_time() - started < 20


WORDS = [
    "RETURN",
    "PATTERN",
    "WHERE",
    "GROUP-BY",
    "WITHIN",
    "SLIDE",
    "EVENT",
    "SEQ",
    "NOT",
    "AND",
    "OR",
    "IN",
    "BETWEEN",
    "IS",
    "NULL",
    "NEXT",
    "PREV",
]
WORDS += [
    "COUNT",
    "SUM",
    "LOG2",
    "A",
    "B",
    "T.x",
    "1",
    "2.5",
    "'text'",
    '"name"',
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "+",
    "*",
    "?",
    ",",
    ";",
    ":",
    ".",
    "=",
    "<",
    "<>",
    "/",
    "%",
    "-",
    "min",
    "h",
    "q1:",
    "INT",
    "STRING",
    "@",
    "'",
    "--",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40).map("\n".join) | st.text(string.printable, max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    workload, found = read(text)
    for each in found:
        assert each.format()
    if not found:
        assert read(workload.text) == (workload, [])


@given(st.data())
def test_a_damaged_workload_is_read_or_refused(data: st.DataObject) -> None:
    letters = list(FIGURE_1)
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(letters) - 1))
        letters[place : place + data.draw(st.integers(0, 3))] = data.draw(st.text(string.printable, max_size=3))
    for each in read("".join(letters))[1]:
        assert each.format()


def test_operators_in_a_row_are_flat() -> None:
    condition = f"A.x > {'1 + ' * 400}1 AND A.x < {'2 + ' * 400}1"
    text = f"RETURN COUNT(*){' + 1' * 400} AS n PATTERN A WHERE {condition} WITHIN 10 s"
    events = [{"time": 1, "type": "A", "x": x} for x in (401, 402, 800, 801)]
    assert [row["n"] for row in hamlet.run(hamlet.Workload.parse(text), events).rows()] == [402]
    [found] = problems(text.replace("2 + " * 400, "2 + " * 600))
    assert "has more than 500 operators in a row" in found
