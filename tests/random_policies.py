"""Random policies and logs: small values, equal time-stamps, gaps and empty time-points, so that corners are met."""

from __future__ import annotations

import random
from typing import Any

SIGNATURE = "p(a: int) q(a: int) r(a: int, b: int) e() s(a: string)"
VARIABLES = ("x", "y", "z")
Point = tuple[int, dict[tuple[str, int], set[tuple[Any, ...]]]]


def random_log(draw: random.Random, longest: int = 9) -> list[Point]:
    """A log over `SIGNATURE`."""
    time, log = draw.randrange(3), []
    values = range(draw.choice([2, 3]))
    for _ in range(draw.randrange(longest + 1)):
        time += draw.choice([0, 0, 1, 1, 1, 2, 3, 7])
        tables: dict[tuple[str, int], set[tuple[Any, ...]]] = {}
        for name, width in (("p", 1), ("q", 1), ("r", 2), ("e", 0)):
            rows = {tuple(draw.choice(values) for _ in range(width)) for _ in range(draw.choice([0, 0, 1, 1, 2]))}
            if rows:
                tables[name, width] = rows
        log.append((time, tables))
    return log


def interval(draw: random.Random, bounded: bool) -> str:
    """An interval in the notation."""
    low = draw.choice([0, 0, 0, 1, 2, 4])
    left, right = draw.choice("[[["), draw.choice("]])")
    if not bounded and draw.random() < 0.3:
        return draw.choice(["", f"[{low},*)"])
    high = low + draw.choice([0, 1, 2, 3, 6]) + (right == ")")
    return f"{left}{low},{high}{right}"


def formula(draw: random.Random, free: tuple[str, ...], depth: int) -> str:
    """A formula with just these free variables, most often one that can be evaluated."""
    if depth <= 0:
        return atom(draw, free)
    below = depth - 1
    kind = draw.randrange(20)
    if kind == 0:
        return atom(draw, free)
    if kind in (1, 2):
        return f"({formula(draw, free, below)}) AND ({formula(draw, part(draw, free), below)})"
    if kind == 3:
        return f"({formula(draw, free, below)}) AND NOT ({formula(draw, part(draw, free), below)})"
    if kind == 4:
        return f"({formula(draw, free, below)}) OR ({formula(draw, free, below)})"
    if kind == 5 and len(free) < 3:
        name = next(each for each in VARIABLES if each not in free)
        return f"EXISTS {name}. {formula(draw, (*free, name), below)}"
    if kind == 6:
        return f"{draw.choice(['PREV', 'NEXT'])}{interval(draw, False)} ({formula(draw, free, below)})"
    if kind == 7:
        return f"ONCE{interval(draw, False)} ({formula(draw, free, below)})"
    if kind == 8:
        return f"EVENTUALLY{interval(draw, True)} ({formula(draw, free, below)})"
    if kind == 9:
        operator = draw.choice(["HISTORICALLY", "ALWAYS", "NOT ONCE", "NOT EVENTUALLY"])
        inner = formula(draw, part(draw, free), below)
        return f"({formula(draw, free, below)}) AND {operator}{interval(draw, True)} ({inner})"
    if kind in (10, 11, 12, 13):
        no = draw.choice(["", "", "NOT "])
        operator = draw.choice(["SINCE", "UNTIL"])
        left = formula(draw, part(draw, free), below)
        return f"({no}({left})) {operator}{interval(draw, operator == 'UNTIL')} ({formula(draw, free, below)})"
    if kind == 14 and free:
        return f"({formula(draw, free, below)}) AND {test(draw, free)}"
    if kind == 15 and free:
        return aggregation(draw, free, below)
    if kind == 16:
        left, right = formula(draw, part(draw, free), below), formula(draw, part(draw, free), below)
        word = draw.choice(["IMPLIES", "EQUIV", "OR NOT"])
        return f"({formula(draw, free, below)}) AND (({left}) {word} ({right}))"
    if kind == 17 and free:
        (x, *_) = free
        bound = draw.choice([f"r(w, {x})", f"r({x}, w)", "p(w)"])
        told = draw.choice([f"w > {x}", f"q({x})", "ONCE[0,3] q(w)", f"NOT r(w, {x})", f"p(w) AND w = {x}"])
        return f"({formula(draw, free, below)}) AND (FORALL w. {bound} IMPLIES {told})"
    if kind == 18 and free:
        word, told = draw.choice(["AND", "OR", "IMPLIES", "EQUIV"]), formula(draw, part(draw, free), below)
        inner = f"({test(draw, free)}) {word} ({told})"
        operator = draw.choice(
            ["", "NOT ", "ONCE[0,3] ", "EVENTUALLY[1,4] ", "PREV ", "NEXT[0,2] ", "HISTORICALLY[1,3] "]
        )
        return f"({formula(draw, free, below)}) AND {operator}({inner})"
    if kind == 19:
        given, told = test(draw, free) if free else "e()", formula(draw, part(draw, free), below)
        operator = draw.choice(["SINCE", "UNTIL"]) + interval(draw, True)
        return f"({formula(draw, free, below)}) AND (({given} OR {told}) {operator} ({given} AND {told}))"
    return f"{draw.choice(['HISTORICALLY', 'ALWAYS'])}[0,{draw.randrange(5)}] ({formula(draw, free, below)})"


def part(draw: random.Random, free: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the variables."""
    return tuple(name for name in free if draw.random() < 0.7)


def test(draw: random.Random, free: tuple[str, ...]) -> str:
    """A comparison."""
    one, two = draw.choice(free), draw.choice([*free, "1", "0"])
    no, operator = draw.choice(["", "NOT "]), draw.choice(["=", "<", ">", "<=", ">="])
    return f"{no}({one} {operator} {two}{draw.choice(['', '', ' + 1'])})"


def aggregation(draw: random.Random, free: tuple[str, ...], depth: int) -> str:
    """An aggregation whose result and groups are the variables; its results stay integers."""
    result, *groups = free
    over = next(each for each in ("x", "y", "z", "w") if each not in groups)
    extra = () if len(groups) > 1 else draw.choice([(), ("v",)])
    inside = tuple(dict.fromkeys((over, *extra, *groups)))
    by = f"; {', '.join(groups)}" if groups else ""
    operator = draw.choice(["CNT", "SUM", "MIN", "MAX"])
    return f"({result} <- {operator} {over}{by} ({formula(draw, inside, min(depth, 1))}))"


def atom(draw: random.Random, free: tuple[str, ...]) -> str:
    """A conjunction of predicates that binds the variables."""
    if not free:
        return draw.choice(["e()", "TRUE", "p(_)", "p(1)", "(EXISTS x. q(x))", "r(_, 0)", "FALSE"])
    if len(free) == 1:
        (x,) = free
        return draw.choice([f"p({x})", f"q({x})", f"r({x}, _)", f"r({x}, {x})", f"r(1, {x})", f"{x} = 1", f"p({x})"])
    if len(free) == 2:
        x, y = free
        return draw.choice([f"r({x}, {y})", f"r({y}, {x})", f"(p({x}) AND q({y}))", f"(q({x}) AND {y} = {x} + 1)"])
    rest = ", ".join(free[2:])
    more = " AND ".join(f"p({name})" for name in free[2:]) if rest else ""
    return f"(r({free[0]}, {free[1]}) AND {more})"


def random_policy(draw: random.Random) -> str:
    """A formula, sometimes a rule."""
    free = VARIABLES[: draw.choice([0, 1, 1, 2])]
    depth = draw.choice([1, 2, 2, 3])
    kind = draw.random()
    if kind < 0.15:
        given = formula(draw, free, depth - 1)
        names = f"FORALL {', '.join(free)}. " if free else ""
        return f"ALWAYS {names}({given}) IMPLIES ({formula(draw, part(draw, free), depth - 1)})"
    if kind < 0.25 and free:
        meaning, names = formula(draw, free, depth - 1), ", ".join(free)
        return f"LET d({names}) = {meaning} IN (d({names})) AND ({formula(draw, part(draw, free), depth - 1)})"
    return formula(draw, free, depth)
