"""Random policies and logs: small values, equal time-stamps, gaps and empty time-points, so that corners are met."""

from __future__ import annotations

import random
import re
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
        return f"EXISTS {name}. ({formula(draw, (*free, name), below)})"
    if kind == 6:
        return f"{draw.choice(['PREV', 'NEXT'])}{interval(draw, False)} ({formula(draw, free, below)})"
    if kind == 7:
        return f"ONCE{interval(draw, False)} ({formula(draw, free, below)})"
    if kind == 8:
        return f"EVENTUALLY{interval(draw, True)} ({formula(draw, free, below)})"
    if kind == 9:
        operator = draw.choice(["HISTORICALLY", "ALWAYS", "ONCE", "EVENTUALLY"])
        no, inner = draw.choice(["", "NOT "]), formula(draw, part(draw, free), below)
        reach = interval(draw, operator in ("ALWAYS", "EVENTUALLY"))
        return f"({formula(draw, free, below)}) AND {no}{operator}{reach} ({inner})"
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
    return f"{no}({one} {operator} {two}{draw.choice(['', '', ' + 1', f' / {one}', f' MOD {one}'])})"


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


# ------------------------------------------------------------------------------------------------- values of any size

EDGES = [each + more for each in (0, 2**31, 2**53, 2**62, 2**63, 2**64, 10**30) for more in (-1, 0, 1)]
WILD: dict[str, list[Any]] = {
    "int": [0, 1, 2, *EDGES, *(-each for each in EDGES)],
    "float": [
        0.0,
        -0.0,
        1.0,
        2.0,
        -1.0,
        0.1,
        0.30000000000000004,
        2.0**53,
        2.0**60,
        2.0**63,
        1e308,
        -1e308,
        5e-324,
        1.5,
    ],
    "string": ["", "a", "A", "0", "1", "b a", "é", "\U0001f600", "z" * 70, "a\x00b", '"', "NULL"],
}
_INTERVAL = re.compile(r"([\[(])(\d+),(\d+|\*)([\])])")
_NUMBER = re.compile(r"(?<![\w.,\[])(\d+)(?![\w.,\]])")


def wild(draw: random.Random, text: str, log: list[Point]) -> tuple[str, list[Point], str]:
    """A policy and a log with values of another type or size, and times and bounds of another scale; its signature."""
    kind = draw.choice(["int", "int", "int", "float", "string"])
    values = draw.sample(WILD[kind], 3)
    if kind == "int" and draw.random() < 0.5:
        values[0] = draw.choice([0, 1])  # what the constants of the formula say
    scale = draw.choice([1, 1, 7, 1000, 2**31, 2**40, 2**52])
    base = draw.choice([0, 0, -(2**61) + 1, -(2**53), -1, 2**31 - 1, 2**53, 2**61 - 40 * scale * 9 - 9])
    base = max(base, -(2**61) + 1)
    made: list[Point] = []
    for time, tables in log:
        at = max(base + time * scale + draw.choice([0, 0, 0, 0, 1, -1]) * (scale > 1), made[-1][0] if made else base)
        found = {key: {tuple(values[each] for each in row) for row in rows} for key, rows in tables.items()}
        made.append((at, found))
    if draw.random() < 0.2 and made:  # a silence
        place = draw.randrange(len(made))
        gap = draw.choice([2**31, 2**53, 2**60])
        if made[-1][0] + gap < 2**61:
            made = made[:place] + [(time + gap, tables) for time, tables in made[place:]]
    if kind != "int":
        spans = [match.span() for match in _INTERVAL.finditer(text)]
        inside = lambda at: any(low <= at < high for low, high in spans)  # noqa: E731
        told = (lambda digits: f"{digits}.0") if kind == "float" else (lambda digits: f'"{digits}"')
        text = _NUMBER.sub(lambda match: match[0] if inside(match.start()) else told(match[0]), text)
    text = _INTERVAL.sub(
        lambda match: (
            f"{match[1]}{int(match[2]) * scale},{match[3] if match[3] == '*' else int(match[3]) * scale}{match[4]}"
        ),
        text,
    )
    return text, made, SIGNATURE.replace("int", kind)
