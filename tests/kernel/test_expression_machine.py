"""The expression machine against a few lines of Python: every operation, NULL, the borders of 64 bits, blocks."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hamlet.kernel.expression import COMPARISONS, OverflowInExpression, Program

ROWS = 1100  # more than two blocks
NAMES = list(COMPARISONS)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
INTEGERS = [0, 1, -1, 2, 3, -7, 10**6, 2**31 - 1, -(2**31), 2**53, 2**53 + 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-300, 1e300, 2.0**53, 2.0**63, -(2.0**63), math.inf, -math.inf, math.nan]

Column = list[Any]  # a value of each row, None for NULL


class Overflow(Exception):
    """An operation passed 64 bits: its place and the first row."""


class Writer:
    """Writes a random program and keeps what it computes, operation by operation.

    Parameters
    ----------
    draw : random.Random
    columns : dict of str to list of Column
        By type.
    """

    def __init__(self, draw: random.Random, columns: dict[str, list[Column]]) -> None:
        self.draw, self.columns, self.row = draw, columns, draw.randrange(ROWS)
        self.steps: list[tuple[str, int, str]] = []
        self.constants: list[int | float] = []

    def step(self, name: str, argument: int = 0) -> None:
        self.steps.append((name, argument, f"step {len(self.steps)}"))

    def leaf(self, kind: str) -> Column:
        """A column, one row of it for all rows, or a constant."""
        form = self.draw.choice(("vector", "vector", "scalar", "constant", "nothing"))
        if form == "constant" or (form == "nothing" and kind == "double"):
            value = self.draw.choice(INTEGERS if kind == "int" else DOUBLES)
            self.constants.append(value)
            self.step(f"constant_{kind}", len(self.constants) - 1)
            return [known(value)] * ROWS
        if form == "nothing":
            self.step("nothing_int")
            return [None] * ROWS
        place = self.draw.randrange(len(self.columns[kind]))
        self.step(f"load_{form}_{kind}", place + (kind == "double") * len(self.columns["int"]))
        column = self.columns[kind][place]
        return column if form == "vector" else [column[self.row]] * ROWS

    def value(self, kind: str, depth: int) -> Column:
        """An expression of a type."""
        if depth == 0 or self.draw.random() < 0.2:
            return self.leaf(kind)
        if kind == "double" and self.draw.random() < 0.2:
            found = self.value("int", depth - 1)
            self.step("to_double")
            return [None if each is None else float(each) for each in found]
        if self.draw.random() < 0.15:
            found = self.value(kind, depth - 1)
            self.step(f"negate_{kind}")
            return self.checked([None if each is None else -each for each in found], kind)
        name = self.draw.choice(("add", "subtract", "multiply", "remainder") + ("divide",) * (kind == "double"))
        left, right = self.value(kind, depth - 1), self.value(kind, depth - 1)
        self.step(name if name == "divide" else f"{name}_{kind}")
        return self.checked([binary(name, kind, x, y) for x, y in zip(left, right, strict=True)], kind)

    def checked(self, found: Column, kind: str) -> Column:
        if kind == "int":
            for row, each in enumerate(found):
                if each is not None and not -(2**63) <= each < 2**63:
                    raise Overflow(len(self.steps) - 1, row)
        return found

    def truth(self, depth: int) -> list[bool]:
        """A condition."""
        if depth and self.draw.random() < 0.4:
            left, right = self.truth(depth - 1), self.truth(depth - 1)
            name = self.draw.choice(("both", "either"))
            self.step(name)
            both = name == "both"
            return [x and y if both else x or y for x, y in zip(left, right, strict=True)]
        if self.draw.random() < 0.2:
            kind = self.draw.choice(("int", "double"))
            found = self.value(kind, depth)
            negated = self.draw.random() < 0.5
            self.step(f"is_not_null_{kind}" if negated else f"is_null_{kind}")
            return [(each is None) != negated for each in found]
        kinds = self.draw.choice((("int", "int"), ("double", "double"), ("int", "double")))
        left, right = self.value(kinds[0], depth), self.value(kinds[1], depth)
        name = self.draw.choice(NAMES)
        self.step("compare_int_double" if kinds[0] != kinds[1] else f"compare_{kinds[0]}", COMPARISONS[name])
        return [None not in (x, y) and COMPARE[name](x, y) for x, y in zip(left, right, strict=True)]


def known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def binary(name: str, kind: str, x: Any, y: Any) -> Any:
    """One operation, with SQL's NULL."""
    if x is None or y is None or (name in ("divide", "remainder") and y == 0):
        return None
    if kind == "int":
        if name == "remainder":
            return int(math.copysign(1, x)) * (abs(x) % abs(y))
        return {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}[name](x, y)
    with np.errstate(all="ignore"):
        operation: Any = {
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": np.divide,
            "remainder": np.fmod,
        }[name]
        return known(float(operation(np.float64(x), np.float64(y))))


def column(draw: random.Random, kind: str) -> Column:
    """Small or any numbers, with NULLs or without; some in the last block only."""
    pool: list[Any] = INTEGERS[:6] if kind == "int" else DOUBLES[:5]
    if draw.random() < 0.5:
        pool = INTEGERS if kind == "int" else DOUBLES
    nulls = draw.choice((0.0, 0.0, 0.1, 1.0))
    first = draw.choice((0, 0, 1030))
    return [None if row >= first and draw.random() < nulls else known(draw.choice(pool)) for row in range(ROWS)]


def arrays(found: Column, kind: str, draw: random.Random) -> tuple[Any, Any]:
    """What the machine takes: values, and whether there is one; behind a NULL lies anything."""
    valid = np.array([each is not None for each in found], np.uint8)
    anything = draw.choice(INTEGERS) if kind == "int" else draw.choice(DOUBLES)
    values = np.array([anything if each is None else each for each in found], np.int64 if kind == "int" else np.float64)
    return values, None if valid.all() else valid


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        columns = {kind: [column(draw, kind) for _ in range(3)] for kind in ("int", "double")}
        given = [arrays(each, kind, draw) for kind in ("int", "double") for each in columns[kind]]
        writer = Writer(draw, columns)
        failed: tuple[int, int] | None = None
        expected: list[bool] = []
        try:
            expected = writer.truth(3)
        except Overflow as error:
            failed = error.args
        if failed:  # the program ends where it overflows
            program = Program(close(writer.steps), writer.constants, tuple("abcdef"), tuple("abcdef"))
            with pytest.raises(OverflowInExpression) as caught:
                program.select(given, ROWS, np.zeros(1, np.int64), given, writer.row)
            assert caught.value.text.startswith("step ")
            continue
        program = Program(writer.steps, writer.constants, tuple("abcdef"), tuple("abcdef"))
        found = program.select(given, ROWS, np.zeros(1, np.int64), given, writer.row)
        assert found.tolist() == expected, writer.steps


def close(steps: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """A program that was cut off, with what it left on the stack taken together."""
    depth = 0
    for name, *_ in steps:
        pushes = name.startswith(("load", "constant", "nothing"))
        pops = name.startswith(("add", "subtract", "multiply", "remainder", "divide", "compare", "both", "either"))
        depth += pushes - pops
    return steps + [("both", 0, "end")] * (depth - 1)
