"""Statements over one table are matched together: each has the rows that it has alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.patterns.match import together
from tests.random_patterns import Generator

V = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i
    MEASURES FIRST(i) AS f, LAST(i) AS l, CLASSIFIER() AS c
    {} PATTERN ({}) DEFINE dip AS v < PREV(v), climb AS v > PREV(v))"""


def outcome(text: str, table: pa.Table) -> Any:
    try:
        found = hamlet.sql(text, {"t": table})
        return [[repr(row) for row in found.rows(name)] for name in found.names]
    except hamlet.HamletError as error:
        return str(error)


def alike(text: str) -> str:
    """A statement in the order of the others, without WITHIN."""
    lines = [line for line in text.splitlines() if not line.startswith(("WITHIN", "PARTITION"))]
    return "\n".join([lines[0], "PARTITION BY k", *lines[1:]])


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many clauses were matched in each pass."""
    seen: list[int] = []
    walk_all = together.walk_all

    def counted(*arguments: Any) -> Any:
        seen.append(len(arguments[1]))
        return walk_all(*arguments)

    monkeypatch.setattr(together, "walk_all", counted)
    return seen


def test_random_statements_together_are_those_alone(passes: list[int]) -> None:
    rows = 0
    for seed in range(3):
        cases = [Generator(seed * 100 + place, labels=False).case() for place in range(12)]
        table = Generator(seed, labels=False).case().table
        texts = [alike(case.sql) for case in cases]
        alone = [outcome(text, table) for text in texts]
        good = [place for place, each in enumerate(alone) if isinstance(each, list)]
        found = outcome(";\n".join(texts[place] for place in good), table)
        assert found == [alone[place][0] for place in good], f"seed {seed}"
        rows += sum(map(len, found))
    assert sum(passes) > 20
    assert rows > 50


def test_equal_ends_of_patterns_are_one(passes: list[int]) -> None:
    dice = random.Random(2)
    table = pa.table({"k": [place % 7 for place in range(3000)], "i": range(3000), "v": dice.choices(range(9), k=3000)})
    skips = ["", "AFTER MATCH SKIP TO NEXT ROW", "AFTER MATCH SKIP TO FIRST climb", "AFTER MATCH SKIP TO LAST dip"]
    patterns = [f"a dip{{{least},}}{kind} climb+" for least in (1, 2, 3) for kind in ("", "?")] + ["{- a -} dip climb+"]
    texts = [V.format(skip, pattern) for pattern in patterns for skip in skips]
    alone = [outcome(text, table)[0] for text in texts]
    assert not passes
    assert outcome(";".join(texts), table) == alone
    assert max(passes) == 24
    assert all(len(each) > 10 for each in alone)


def test_where_statements_part(passes: list[int]) -> None:
    """A statement that makes a table, another order, and labels that conditions read."""
    table = pa.table({"k": [1] * 6, "i": range(6), "v": [3, 2, 4, 1, 5, 0]})
    one = V.format("", "a dip climb")
    texts = [
        one,
        one,
        "CREATE OR REPLACE TABLE t AS SELECT k, i, -v AS v FROM t",
        one,
        one.replace("BY i", "BY v"),
        one,
    ]
    found = outcome(";".join(texts), table)
    assert passes == [2]
    assert found[0] == found[1] == outcome(one, table)[0]
    assert found[2] == found[4] == outcome(";".join(texts[2:4]), table)[0]
    read = one.replace("climb AS v > PREV(v)", "climb AS v > LAST(dip.v)")
    assert outcome(f"{one};{read};{one}", table) == [outcome(each, table)[0] for each in (one, read, one)]


def test_a_mistake_is_said_of_its_statement() -> None:
    table = pa.table({"k": [1, 1], "i": [1, 2], "v": [1, 2]})
    wrong = V.format("", "a dip climb").replace("v < PREV(v)", "w < 1")
    stuck = V.format("AFTER MATCH SKIP TO a", "a").replace("dip AS v < PREV(v), climb AS v > PREV(v)", "a AS true")
    good = V.format("", "a climb").replace("dip AS v < PREV(v), ", "")
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.sql(";".join([good, wrong, good]), {"t": table})
    assert len(caught.value.diagnostics) == 1
    assert '"w" not found' in str(caught.value)
    with pytest.raises(hamlet.DataError, match="a is the match's first row"):
        hamlet.sql(";".join([good, stuck, good]), {"t": table})
