"""Workloads that nobody should write: a clear error or the right rows, quickly, and never a traceback."""

from __future__ import annotations

import datetime as dt
import math
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.keys import KeyIndex
from hamlet.errors import DataError, WorkloadError
from hamlet.language.printing import to_text
from hamlet.planner import program
from tests.comparison import rows_of

COUNT = "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"
LARGEST = 2**63 - 1
inf, nan = math.inf, math.nan
SOON = 10  # seconds; each takes well below one on an idle machine


def count(text: str, events: Any, **options: Any) -> int:
    found = rows_of(text, events, **options)
    return found[0]["count"] if found else 0


def stream(types: str) -> list[dict[str, Any]]:
    return [{"time": time, "type": type_} for time, type_ in enumerate(types)]


def pair(a: Any, b: Any, name: str = "v") -> list[dict[str, Any]]:
    """An A and a B with a value each."""
    return [{"time": 0, "type": "A", name: a}, {"time": 1, "type": "B", name: b}]


def where(condition: str) -> str:
    return f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {condition} WITHIN 10 s"


# ------------------------------------------------------------------------------------ patterns that explode


def alternatives(number: int, part: str) -> str:
    return " OR ".join(part.replace("#", str(place)) for place in range(number))


@pytest.mark.parametrize(
    ("pattern", "types", "expected"),
    [
        ("A{1000}", "A" * 20, 0),
        ("(A?){1000}", "A" * 20, 2**20 - 1),
        ("((A?){30}){30}", "A" * 20, 2**20 - 1),
        ("(A*){1000}", "A" * 20, 2**20 - 1),
        ("((A{0,1}){0,1}){0,1000}", "A" * 20, 2**20 - 1),
        ("(SEQ(A?, B?, C?)){300}", "ABC" * 10, 2**30 - 1),
        ("(A{1,500}) AND (A{1,500})", "A" * 20, (2**20 - 1) * (2**20 - 2) // 2),
        (f"({alternatives(500, 'SEQ(A, B)')})+", "ABAB", 4),
        (f"({alternatives(220, 'A x#')})+", "A" * 5, 221**5 - 1),
        (f"SEQ(A, {', '.join(f'NOT C c{i}' for i in range(1000))}, B)", "ACAB", 1),
        ("SEQ(B, NOT ((A?){1000}), B)", "BABB", 1),
        ("(" * 90 + "A" + ")+" * 90, "A" * 5, 2**5 - 1),
    ],
)
def test_large_patterns_are_compiled_smartly(pattern: str, types: str, expected: int) -> None:
    begin = time.process_time()
    assert count(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 1000 s", stream(types)) == expected
    assert time.process_time() - begin < SOON


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [
        ("(A{1000}){1000}", "unrolls to more than 2,000 events"),
        ("A{999999999}", "unrolls to more than 2,000 events"),
        ("SEQ(A, NOT B){0,999999999}", "unrolls to more than 2,000 events"),
        (f"({alternatives(900, 'SEQ(A x#, B y#)')})+", "more than 2,000 states or 50,000 transitions"),
        ("SEQ((A OR B)*, A, (A OR B){18})", "more than 2,000 states or 50,000 transitions"),
        ("SEQ((A OR B)*, A, (A OR B){9}) AND SEQ((A OR B)*, B, (A OR B){9})", "both patterns have has more than 2,000"),
        (f"({alternatives(25, 'SEQ(A?, NOT C c#)')})+", "more than 1,000 sets of guards"),
        (f"SEQ({', '.join(f'(SEQ(A?, NOT C c{i}))?' for i in range(25))})", "more than 1,000 sets of guards"),
        ("(" * 200 + "A" + ")+" * 200, "the pattern nests deeper than 100 levels"),
    ],
)
def test_patterns_beyond_a_limit_are_refused_at_once(pattern: str, limit: str) -> None:
    begin = time.process_time()
    with pytest.raises(WorkloadError, match=limit):
        hamlet.Workload.parse(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 1000 s")
    assert time.process_time() - begin < SOON


# ---------------------------------------------------------------------------------- conditions, windows, queries


def nested(form: str, levels: int) -> str:
    text = "A.v"
    for _ in range(levels):
        text = form.format(text)
    return text


@pytest.mark.parametrize(
    ("condition", "limit"),
    [
        (nested("({} + A.v)", 90) + " > 0", None),
        (nested("(A.v + {})", 50) + " > 0", None),
        (nested("(A.v + {})", 90) + " > 0", "holds more than 60 values at once while it is computed"),
        (nested("(A.v + {})", 5000) + " > 0", "the condition nests deeper than 100 levels"),
        ("NOT " * 90 + "A.v = 1", None),
        ("NOT " * 5000 + "A.v = 1", "the condition nests deeper than 100 levels"),
        (" OR ".join(f"A.v = {i}" for i in range(3000)), None),
        (f"A.v IN ({', '.join(map(str, range(5000)))})", None),
        (" AND ".join(f"A.v{i} IS NULL" for i in range(500)), None),
        (" AND ".join(f"A.v <= NEXT(B).v + {i}" for i in range(64)), None),
        (" AND ".join(f"A.v <= NEXT(B).v + {i}" for i in range(65)), "more than 64 conditions on A and the B after it"),
        (" OR ".join(f"A.v{i} < NEXT(B).v OR TRUE = TRUE" for i in range(64)), None),
        (" OR ".join(f"A.v{i} < NEXT(B).v" for i in range(65)), "more than 64 attributes of A are compared"),
        (" OR ".join(f"A.v < NEXT(B).v{i}" for i in range(65)), "more than 64 attributes of B are compared"),
    ],
)
def test_large_conditions(condition: str, limit: str | None) -> None:
    begin = time.process_time()
    if limit is None:
        assert count(where(condition), pair(1, 1)) == 1
    else:
        with pytest.raises(WorkloadError, match=limit):
            hamlet.Workload.parse(where(condition))
    assert time.process_time() - begin < SOON


@pytest.mark.parametrize(
    ("window", "unit", "message"),
    [
        ("1 d SLIDE 1 ms", "ms", "one event would be in more than 1,000,000 windows"),
        ("999999999999999999999 d", "s", "is longer than the time column 'time' can hold"),
        ("200 ms SLIDE 0.5 ms", "ms", "is no whole number of milliseconds"),
        ("0 s", "s", "WITHIN needs a duration above zero"),
    ],
)
def test_windows_beyond_reason(window: str, unit: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        rows_of(f"RETURN COUNT(*) PATTERN A WITHIN {window}", stream("A"), time_unit=unit)


def test_thousands_of_queries() -> None:
    begin = time.process_time()
    number = 2000
    lines = [
        f"RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A{i % 50}, B+) WHERE B.v < {i % 90} WITHIN {10 + i % 3} s;"
        for i in range(number)
    ]
    events = [{"time": i // 7, "type": f"A{i % 50}" if i % 3 else "B", "v": i % 90} for i in range(700)]
    results = hamlet.run(hamlet.Workload.parse("\n".join(lines)), events)
    assert len(results.queries) == number
    alone = hamlet.run(hamlet.Workload.parse(lines[1234]), events)
    expected = [list(row.values())[1:] for row in alone.rows()]
    assert [list(row.values())[1:] for row in results.rows() if row["query"] == "q1235"] == expected
    assert time.process_time() - begin < 2 * SOON


# ------------------------------------------------------------------------------------------- numbers that do not fit


@pytest.mark.parametrize(
    ("condition", "a", "b", "expression", "event"),
    [
        ("A.v + 1 > 0", LARGEST, 1, r"A.v \+ 1", rf"time=0, type='A', v={LARGEST}"),
        ("A.v - 1 < 0", ~LARGEST, 1, "A.v - 1", "time=0"),
        ("-A.v > 0", ~LARGEST, 1, "-A.v", "time=0"),
        ("B.v * 2 > 0", 1, LARGEST, r"B.v \* 2", "time=1, type='B'"),
        ("A.v + NEXT(B).v > 0", LARGEST, 1, r"A.v \+ NEXT\(B\).v", "time=1"),
        ("A.v < NEXT(B).v + 1", 1, LARGEST, r"NEXT\(B\).v \+ 1", "time=1"),
        ("A.v = NEXT(B).v * 3", 1, LARGEST, r"NEXT\(B\).v \* 3", "time=1"),
        ("A.v - NEXT(B).v <> 0", ~LARGEST, 1, r"A.v - NEXT\(B\).v", "time=1"),
        ("A.v + 1 < NEXT(B).v OR A.v = 1", LARGEST, 1, r"A.v \+ 1", "time=1"),
    ],
)
def test_integer_overflow_names_expression_and_event(
    condition: str, a: int, b: int, expression: str, event: str
) -> None:
    with pytest.raises(DataError, match=rf"{expression} passes 64 bits for the event \(.*{event}"):
        rows_of(where(condition), pair(a, b))


def test_the_steps_of_a_chain_are_put_into_words_where_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of each step stand all before it."""
    told: list[Any] = []
    monkeypatch.setattr(program, "to_text", lambda node: told.append(node) or to_text(node))
    chain = where(f"{' + '.join(['A.v'] * 400)} > 0")
    assert rows_of(chain, pair(1, 1))
    assert not told
    with pytest.raises(DataError, match=r"A.v \+ A.v passes 64 bits"):
        rows_of(chain, pair(LARGEST, 1))
    assert {to_text(each) for each in told} == {"A.v + A.v"}


@pytest.mark.parametrize(
    ("condition", "a", "b", "expected"),
    [
        ("A.v % -1 = 0", ~LARGEST, 1, 1),
        ("A.v / -1 > 9e18", ~LARGEST, 1, 1),
        ("A.v + 1.0 > 0", LARGEST, 1, 1),
        ("A.v + 1 > 0", None, 1, 0),
        ("A.v + NEXT(B).v > 0", LARGEST, None, 0),
        ("A.v = NEXT(B).v", nan, nan, 0),
        ("A.v <= NEXT(B).v", -inf, inf, 1),
        ("A.v = NEXT(B).v", inf, inf, 1),
        ("A.v - NEXT(B).v = 0", inf, inf, 0),  # NaN is NULL
        ("A.v = NEXT(B).v", -0.0, 0.0, 1),
        ("A.v < NEXT(B).v", LARGEST, float(LARGEST), 1),  # 2^63 - 1 below 2^63
    ],
)
def test_arithmetic_at_the_edges(condition: str, a: Any, b: Any, expected: int) -> None:
    if isinstance(a, int) and isinstance(b, float):
        text, events = where(condition.replace("NEXT(B).v", "NEXT(B).w")), pair(a, None)
        events[1]["w"] = b
    else:
        text, events = where(condition), pair(a, b)
    assert count(text, events) == expected


@pytest.mark.parametrize("key", [nan, inf, -0.0, "", "\0", "a" * 10**5, True, Decimal("1.50"), dt.date(1, 1, 1)])
def test_keys_of_every_kind(key: Any) -> None:
    text = "RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s"
    (row,) = rows_of(text, pair(key, key, "k"))
    assert row["k"] == (None if key != key else key)


def test_more_combinations_of_keys_than_64_bits_tell_apart() -> None:
    n = 5000
    names = [f"k{i}" for i in range(8)]
    batch = pa.record_batch({name: pa.array(np.random.default_rng(i).permutation(n)) for i, name in enumerate(names)})
    index = KeyIndex(names)
    numbers = index.encode(pa.record_batch(pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()[0]))
    assert list(numbers) == [*range(n), *range(n)]
    assert index.keys[17] == tuple(batch.column(i)[17].as_py() for i in range(8))
