"""oracle_*: every baseline against brute force; and against the engine on streams that brute force cannot list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from bench.baselines.question import Question
from bench.baselines.strategy import GRETA, SHARON, TWO_STEP, Run, Strategy, run
from hamlet import oracle
from hamlet.errors import UnsupportedError
from tests.comparison import difference

# the aggregated variable, the pattern, the condition
COMMON = [
    ("B", "SEQ(A, B+)", ""),
    ("x", "SEQ(A x+, A y+)", ""),
    ("A", "(SEQ(A, B+))+", ""),
    ("B", "SEQ(A, B+, C)", ""),
    ("A", "SEQ(C, B+, A?)", ""),
    ("B", "(A | B)+", ""),
    ("C", "SEQ(A, (SEQ(B, C*))+)", ""),
    ("A", "A{2,3}", ""),
    ("b", "SEQ(A, B b+)", "b.v > 2"),
    ("b", "SEQ(A a, B b+, A c)", "a.v IN (1, 3) AND (c.v BETWEEN 1 AND 4 OR c.v IS NULL) AND NOT b.v = 2 + 1"),
]
GUARDED = [
    ("B", "SEQ(A, NOT C, B+)", ""),
    ("A", "SEQ(NOT C, A+, B)", ""),
    ("A", "SEQ(A+, NOT C)", "A.v > 0 AND C.v < 4"),
    ("B", "SEQ(A, NOT C, B*, D)", ""),
    ("A", "(SEQ(NOT C, A))+", ""),
    ("y", "SEQ(A x+, NOT B, NOT C, A y)", ""),
]
ADJACENT = [
    ("b", "SEQ(A, B b+)", "b.v < NEXT(b).v"),
    ("a", "SEQ(A a+, B b+)", "a.v >= NEXT(a).v AND PREV(a).v <= b.v"),
    ("b", "B b+", "b.v = NEXT(b).v"),
    ("b", "SEQ(A a, NOT C, B b+)", "a.v > NEXT(b).v"),
]
RETURNS = "RETURN k, COUNT(*), COUNT({v}), SUM({v}.v), AVG({v}.v), LOG2(COUNT(*))"


def stream(seed: int, length: int, *, ties: bool) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "time": np.sort(random.integers(0, 12, length)) if ties else np.arange(length),
            "type": random.choice(list("ABCD"), length, p=(0.3, 0.45, 0.15, 0.1)),
            "k": random.integers(0, 2, length),
            "p": random.integers(0, 2, length),
            "v": pa.array(random.integers(0, 5, length), mask=random.random(length) < 0.1),
        }
    )


def workload(patterns: list[tuple[str, str, str]], seed: int) -> hamlet.Workload:
    window = ("WITHIN 6 s", "WITHIN 6 s SLIDE 2 s", "WITHIN 2 s SLIDE 3 s", "WITHIN 100 s")[seed % 4]
    lines = []
    for variable, pattern, condition in patterns:
        conditions = " AND ".join(filter(None, [condition, "[p]" if seed % 3 == 0 else ""]))
        where = f"WHERE {conditions}" if conditions else ""
        lines.append(f"{RETURNS.format(v=variable)} PATTERN {pattern} {where} GROUP-BY k {window};")
    return hamlet.Workload.parse("\n".join(lines))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (int(row["query"][1:]), row["window_start"], row["k"]))


@pytest.mark.parametrize("strategy", [GRETA, SHARON, TWO_STEP], ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(12))
def test_oracle_baselines_count_what_brute_force_counts(strategy: Strategy, seed: int) -> None:
    patterns = [*COMMON, *([] if strategy is SHARON else [*GUARDED, *ADJACENT])]
    queries, events = workload(patterns, seed), stream(seed, 11, ties=seed % 2 == 0)
    expected = oracle.evaluate(queries.analysis.text, events.to_pylist())
    rows, _ = run(strategy, Question(queries, events))
    assert difference(ordered(rows), expected, floats=True) is None
    assert expected


@pytest.mark.parametrize("strategy", [GRETA, SHARON], ids=lambda each: each.name)
def test_differential_baselines_and_the_engine_agree_beyond_the_double_range(strategy: Strategy) -> None:
    patterns = COMMON[:5] + (GUARDED[:3] + ADJACENT[:1] if strategy is GRETA else [])
    text = str(workload(patterns, 1)).replace("WITHIN 6 s SLIDE 2 s", "WITHIN 4000 s SLIDE 2000 s")
    queries, events = hamlet.Workload.parse(text), stream(5, 6_000, ties=False)
    rows, _ = run(strategy, Question(queries, events))
    expected = hamlet.run(queries, events, numbers="float").rows()
    assert max(row["log2_count"] for row in expected) > 1_100
    assert difference(ordered(rows), expected, floats=True) is None


@pytest.mark.parametrize("strategy", [GRETA, SHARON], ids=lambda each: each.name)
def test_a_small_count_beside_sums_beyond_the_double_range_is_not_lost(strategy: Strategy) -> None:
    """C comes early, then only B: hardly a trend ends in C while partial ones are 2^3000 and more."""
    types = ["A", "B", "C", *["B"] * 3_000, "D", "A"]
    events = pa.table({"time": np.arange(len(types)), "type": types})
    text = "".join(
        f"RETURN COUNT(*) PATTERN {each} WITHIN 10000 s;" for each in ("SEQ(A, B+, C)", "SEQ(D, A)", "SEQ(A, B+)")
    )
    rows, _ = run(strategy, Question(hamlet.Workload.parse(text), events))
    assert [row["count"] for row in rows[:2]] == [1.0, 1.0]
    expected = hamlet.run(hamlet.Workload.parse(text), events, numbers="float").rows()
    assert difference(rows, expected, floats=True) is None


@pytest.mark.parametrize("strategy", [GRETA, SHARON, TWO_STEP], ids=lambda each: each.name)
def test_any_split_over_pushes_gives_the_same_rows(strategy: Strategy) -> None:
    queries, events = workload(COMMON, 1), stream(3, 16, ties=False)
    question = Question(queries, events)
    online, rows = Run(strategy, question), []
    for begin in range(0, 16, 5):
        rows += online.advance(int(question.times[begin]))
        online.push(question.pieces(begin, min(begin + 5, 16)))
    rows += online.advance(None)
    assert ordered(rows) == ordered(run(strategy, question)[0])


def test_what_a_baseline_does_not_know_is_refused() -> None:
    events = stream(1, 10, ties=False)
    for asked in ("MAX(A.v) PATTERN A+", "COUNT(*) PATTERN SEQ(A, NOT SEQ(B, C), A x)"):
        text = f"RETURN {asked} WITHIN 5 s"
        with pytest.raises(UnsupportedError):
            Question(hamlet.Workload.parse(text), events)
    guarded = Question(workload(GUARDED[:1], 1), events)
    with pytest.raises(UnsupportedError, match="SHARON"):
        run(SHARON, guarded)


def test_sharon_shares_the_counters_of_common_prefixes() -> None:
    """Two queries that differ only in their last step cost hardly more than one; unrelated ones cost twice."""
    events = stream(2, 400, ties=False)

    def steps(*patterns: str) -> int:
        text = "".join(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 1000 s;\n" for pattern in patterns)
        return run(SHARON, Question(hamlet.Workload.parse(text), events))[1]

    assert steps("SEQ(A, B+)", "SEQ(A, B+)") == steps("SEQ(A, B+)")
    assert steps("SEQ(A, B+)", "SEQ(A, B+, C)") == steps("SEQ(A, B+, C)")
    assert steps("SEQ(A, B+)", "SEQ(C, B+)") == steps("SEQ(A, B+)") + steps("SEQ(C, B+)")
