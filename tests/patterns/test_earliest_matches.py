"""A match is given once no later row can change it, and not a row later.

What can change it is tried: the rows so far go on in many ways, and brute force finds the matches of each. A condition
reads a column of its variable alone, so that rows to come may let any of them hold.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from hamlet.matching import Matcher
from hamlet.oracle import patterns as oracle
from tests.random_patterns import VARIABLES, Generator

LONGEST = 6  # rows that follow


def _next(column: str, step: int) -> Callable[[oracle.View], Any]:
    def value(view: oracle.View) -> Any:
        row = view.place(True, None, 0, None, step)
        return None if row is None else view.rows[row][column] == 1

    return value


def condition(dice: random.Random, column: str) -> tuple[str, Callable[[oracle.View], Any]]:
    """A condition that rows to come may let hold or not, whatever those of other variables do."""
    step = dice.choice((1, 1, 2, 3))
    here, there = _next(column, 0), _next(column, step)
    texts = f"{column} = 1", f"NEXT({column}, {step}) = 1"
    kind = dice.randrange(6)
    if kind < 2:
        return texts[kind], (here, there)[kind]
    if kind == 2:
        return " AND ".join(texts), lambda view: here(view) and there(view)
    if kind == 3:
        return " OR ".join(texts), lambda view: here(view) or there(view)
    if kind == 4:  # NULL where there is no such row, unless the row itself says all
        return (
            f"NOT ({' AND '.join(texts)})",
            lambda view: True if not here(view) else None if there(view) is None else not there(view),
        )
    return f"{texts[1]} AND {column} IS NOT NULL", there


class Question:
    """A statement, rows, and what rows may follow."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        generator = Generator(seed)
        generator.exclusions = False
        sql, written = "$", []
        while "$" in sql or not written:
            sql, self.pattern = generator.pattern(2)
            written = [each for each in VARIABLES if re.search(rf"\b{each}\b", sql)]
        self.conditions, texts = {}, []
        for each in written:
            if dice.random() < 0.15:
                texts.append(f"{each} AS true")
            else:
                text, self.conditions[each.lower()] = condition(dice, f"c_{each.lower()}")
                texts.append(f"{each} AS {text}")
        self.within = dice.choice((None, None, 3, 5))
        self.skip = dice.choice(("past", "next"))
        self.ahead = dice.choice((None, None, (False, 1), (True, 1), (True, 2)))
        self.written = dice.choice(written)
        measures = "MATCH_NUMBER() AS m, STRING_AGG(CLASSIFIER(), '' ORDER BY i) AS labels, FIRST(i) AS f"
        if self.ahead is not None:
            which = "LAST" if self.ahead[0] else "FIRST"
            measures += f", NEXT({which}({self.written}.i), {self.ahead[1]}) AS behind"
        skip = "PAST LAST ROW" if self.skip == "past" else "TO NEXT ROW"
        self.sql = (
            f"SELECT * FROM t MATCH_RECOGNIZE ({'ORDER BY i' if self.within else ''} MEASURES {measures} "
            f"AFTER MATCH SKIP {skip} PATTERN ({sql}) {f'WITHIN {self.within}' if self.within else ''} "
            f"DEFINE {', '.join(texts)})"
        )
        self.columns = [f"c_{each.lower()}" for each in VARIABLES]
        self.rows = [self.row(place, None) for place in range(dice.randrange(3, 8))]

    def row(self, place: int, values: Any) -> dict[str, Any]:
        given = values or [self.dice.randrange(2) for _ in self.columns]
        return {"i": place, **dict(zip(self.columns, given, strict=True))}

    def matches(self, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Number, labels, first row and what is read ahead of each match."""
        within = self.within
        members = {each.lower(): (each.lower(),) for each in VARIABLES}
        task = oracle.Task(
            self.pattern,
            rows,
            self.conditions,
            members,
            lambda start, row: within is None or rows[row]["i"] - rows[start]["i"] <= within,
            self.skip,
            None,
        )
        found = []
        for match in oracle.matches(task):
            labels = tuple(label for label, _ in match.path)
            own = "".join(name for label in labels for name in VARIABLES if name.lower() == label)
            values: tuple[Any, ...] = match.number, own or None, match.start if own else None
            if self.ahead is not None:
                view = oracle.View(rows, match.start, labels, len(labels) - 1 if labels else None, True, 1, members)
                last, step = self.ahead
                row = view.place(last, self.written.lower(), 0, None, step)
                values += (None if row is None else rows[row]["i"],)
            found.append(values)
        return found

    def continuations(self, count: int) -> Iterator[list[dict[str, Any]]]:
        """What may follow so many rows."""
        for values, length in itertools.product(itertools.product((0, 1), repeat=len(self.columns)), range(1, LONGEST)):
            yield [self.row(count + place, values) for place in range(length)]
        for _ in range(20):
            yield [self.row(count + place, None) for place in range(self.dice.randrange(LONGEST))]

    def certain(self, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """The matches that no continuation changes."""
        found = self.matches(rows)
        for more in self.continuations(len(rows)):
            other = self.matches(rows + more)
            while found and found != other[: len(found)]:
                found.pop()
            if not found:
                break
        return found


def check(seed: int, directly: bool) -> int:
    """Push rows one by one; gives how many matches came before the end."""
    question = Question(seed)
    schema = pa.schema([(each, pa.int64()) for each in ("i", *question.columns)])
    matcher = Matcher(question.sql, schema)
    if not directly:
        matcher.goes_directly = False
    given: list[tuple[Any, ...]] = []
    for count, row in enumerate(question.rows, 1):
        rows = matcher.push([row])
        if question.within:
            rows += matcher.advance(row["i"] + 1)
        given += [tuple(each.values()) for each in rows]
        expected = question.certain(question.rows[:count])
        assert given == expected, f"seed {seed}, row {count}\n{question.sql}\n{question.rows[:count]}"
    early = len(given)
    given += [tuple(each.values()) for each in matcher.close()]
    assert given == question.matches(question.rows), f"seed {seed}\n{question.sql}\n{question.rows}"
    return early


@pytest.mark.parametrize("directly", [True, False])
def test_a_match_is_given_at_the_first_row_behind_which_nothing_changes_it(directly: bool) -> None:
    assert sum(check(seed, directly) for seed in range(20 if directly else 8)) > 8


@pytest.mark.parametrize("directly", [True, False])
@pytest.mark.parametrize(
    ("values", "given"),
    [((2, 1), 1), ((1, 5, 1), 3), ((1, 5, 0, 2), 4), ((1, 0, 2, 0), 3), ((1, None, 2), 3), ((1, 5, None, 2), 4)],
)
def test_conditions_over_labels_wait_for_rows_only_where_these_decide(
    values: tuple[int | None, ...], given: int, directly: bool
) -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (MEASURES CLASSIFIER() AS l PATTERN (a b | c)
    DEFINE a AS v = 1, b AS b.v > a.v AND NEXT(b.v) > 0, c AS v = 2)"""
    matcher = Matcher(text, pa.schema([("v", pa.int64())]))
    if not directly:
        matcher.goes_directly = False
    assert [bool(matcher.push([{"v": each}])) for each in values].index(True) + 1 == given
