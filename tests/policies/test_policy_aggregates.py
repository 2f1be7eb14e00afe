"""Aggregates over periods: the compiled sweep beside the states of every time-point by itself."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hamlet.policies.operators.aggregating import STATES, Aggregate
from hamlet.policies.operators.node import Node
from hamlet.policies.relations.relation import Relation
from hamlet.policies.relations.values import Pool
from hamlet.policies.syntax.formula import Type

POINTS = 40
VALUES: dict[str, list[Any]] = {
    "small": [-3, -1, 0, 0, 1, 2, 5, 7],
    "large": [2**61, -(2**61), 2**53 + 1, 2**53, 1, 0, -(2**52), 3**40],
    "larger": [2**62, -(2**70), 2**62 + 1, 5, 6],
    "floats": [0.1, 0.2, -0.3, 1e6, 12.5, -0.0, 0.0, 1e-3],
    "wide": [1e300, 5e-324, -1e300, 1.0, 1.7e308, 2.0**-1060],
    "odd": [float("inf"), float("-inf"), float("nan"), 1.5, 2.5],
    "infinite": [float("inf"), 1.5, 2.5, -1e9],
    "strings": ["", "a", "b", "\N{GREEK SMALL LETTER ALPHA}", "\N{PILE OF POO}", "aa"],
}
KIND: dict[str, Type] = {"small": "int", "large": "int", "larger": "int", "strings": "string"}


class _Child(Node):
    """Gives the relation of a test."""


def relation(choices: list[Any], pool: Pool, seed: int) -> Relation:
    """Disjoint periods of values in three groups, some of which touch."""
    rng = random.Random(seed)
    rows = []
    for group in range(3):
        for value in set(rng.sample(choices, rng.randint(1, len(choices)))):
            at = rng.randrange(8)
            while at < POINTS:
                end = min(POINTS - 1, at + rng.randrange(9))
                rows.append((pool.code(value), group, at, end))
                at = end + 1 + rng.randrange(6)
    rng.shuffle(rows)
    first, second, begins, ends = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    return Relation([first, second], begins, ends)


def at_points(rows: Relation) -> dict[tuple[int, ...], list[int]]:
    """The codes of a relation whose first column is the result, by group and time-point."""
    found: dict[tuple[int, ...], list[int]] = {}
    for place in range(len(rows)):
        for point in range(int(rows.first[place]), int(rows.last[place]) + 1):
            key = *(int(column[place]) for column in rows.columns[1:]), point
            found.setdefault(key, []).append(int(rows.columns[0][place]))
    return found


def result(operator: str, codes: list[int], kind: Type, pool: Pool) -> int:
    """The code of what an aggregation of some values gives."""
    if operator == "CNT":
        return len(codes)
    state = STATES[operator]()
    for code in codes:
        state.add(pool.value(code, kind))
    return pool.code(state.result())


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("operator", STATES)
def test_results_are_those_of_each_time_point(name: str, operator: str) -> None:
    kind = KIND.get(name, "float")
    if kind == "string" and operator not in ("CNT", "MIN", "MAX"):
        return
    for seed in range(12):
        pool = Pool()
        rows = relation(VALUES[name], pool, seed)
        node = Aggregate(_Child((kind, "int"), ()), operator, 0, (1,), pool)
        found = at_points(node._swept(rows))
        expected = {key: [result(operator, codes, kind, pool)] for key, codes in at_points(rows).items()}
        assert found == expected
        made = node._swept(rows)
        for place in range(len(made)):  # equal results that touch are one period
            touches = (made.first == made.last[place] + 1) & (made.columns[1] == made.columns[1][place])
            assert not (made.columns[0][touches] == made.columns[0][place]).any()


@pytest.mark.parametrize(
    ("operator", "name"), [("SUM", "small"), ("AVG", "floats"), ("MED", "floats"), ("MAX", "strings")]
)
def test_usual_numbers_are_swept_in_compiled_code(operator: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Aggregate, "_one_by_one")
    pool = Pool()
    Aggregate(_Child((KIND.get(name, "float"), "int"), ()), operator, 0, (1,), pool)._swept(
        relation(VALUES[name], pool, 1)
    )


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 5_000])
def test_values_of_a_large_group_come_and_go(size: int) -> None:
    rng = np.random.default_rng(size)
    values = rng.integers(-(10**9), 10**9, size)
    first = np.sort(rng.integers(0, 3 * size, size))
    last = first + rng.integers(0, 200, size)
    aggregates: list[tuple[str, Callable[[list[int]], float]]] = [
        ("MIN", min),
        ("MAX", max),
        ("MED", statistics.median),
    ]
    for operator, wanted in aggregates:
        pool = Pool()
        made = Aggregate(_Child(("int",), ()), operator, 0, (), pool)._swept(Relation([values], first, last))
        for point in range(0, 3 * size, max(1, size // 40)):
            there = values[(first <= point) & (last >= point)].tolist()
            holds = (made.first <= point) & (made.last >= point)
            found = [pool.value(code, made_kind(operator)) for code in made.columns[0][holds].tolist()]
            assert found == ([wanted(there)] if there else [])


def made_kind(operator: str) -> Type:
    """The type of results over integers."""
    return "float" if operator == "MED" else "int"
