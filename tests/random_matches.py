"""Random TRIGGER, RELEASE, MATCHP, MATCHF and LETPAST, most of which can be evaluated."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.random_policies import atom, interval, part, test

Draw = random.Random
Free = tuple[str, ...]
Inner = Callable[[Draw, Free, int], str]


def dual(draw: Draw, free: Free, depth: int, inner: Inner) -> str:
    """TRIGGER or RELEASE."""
    word = draw.choice(["TRIGGER", "RELEASE"])
    bounds = interval(draw, word == "RELEASE")
    if draw.random() < 0.4:
        bounds = draw.choice(["[0,0]", "[0,1]", "[0,3]", "[0,4)"]) if word == "RELEASE" or draw.random() < 0.6 else ""
        left = inner(draw, part(draw, free), depth)
        if draw.random() < 0.4:
            left = f"NOT ({left})" if draw.random() < 0.6 or not free else test(draw, free)
        return f"(({left}) {word}{bounds} ({inner(draw, free, depth)}))"
    some = part(draw, free)
    no = draw.choice(["", "", "", "NOT "])
    body = f"{no}(({inner(draw, some, depth)}) {word}{bounds} ({inner(draw, some, depth)}))"
    return f"({inner(draw, free, depth)}) AND {body}"


def match(draw: Draw, free: Free, depth: int, inner: Inner) -> str:
    """MATCHP or MATCHF."""
    past = draw.random() < 0.5
    rest = _regex(draw, free, draw.randrange(3), depth, inner)
    if free:
        binder = f"({inner(draw, free, depth)}){draw.choice(['?', '?', ''])}"
        if draw.random() < 0.2:
            vacuous = draw.choice(["", "", "HISTORICALLY[1,3] ", "ALWAYS[1,2] "])  # alone it holds for infinitely many
            binder = f"({binder} + ({vacuous}({inner(draw, free, depth)}))?)"
        rest = f"{binder} {rest}" if past else f"{rest} {binder}"
    return f"(MATCH{'P' if past else 'F'}{interval(draw, not past)} {rest})"


def _regex(draw: Draw, free: Free, size: int, depth: int, inner: Inner) -> str:
    if size <= 0:
        kind = draw.randrange(8)
        if kind == 0:
            return "."
        if kind == 1:
            return "(.)*"
        some = part(draw, free)
        letter = f"{draw.choice(['', '', 'NOT '])}({inner(draw, some, min(depth, 1))})"
        if kind == 2 and free:
            letter = test(draw, free)
        return f"({letter}){draw.choice(['', '?', '?', '*'])}"
    left, right = _regex(draw, free, size - 1, depth, inner), _regex(draw, free, size - 2, depth, inner)
    return draw.choice([f"({left} {right})", f"({left} + {right})", f"({left} {right})*", f"({left})* {right}"])


def recursion(draw: Draw, free: Free, depth: int, inner: Inner) -> str:
    """LETPAST."""
    names = ", ".join(free)
    given = f"d({names})"
    start = inner(draw, free, depth)
    ways = [
        f"(PREV{interval(draw, False)} {given})",
        f"(ONCE[{draw.choice([1, 1, 2])},{draw.choice(['4', '*'])}] {given})",
        f"(PREV {given} AND {draw.choice(['', 'NOT '])}({inner(draw, part(draw, free), depth)}))",
        f"(({inner(draw, part(draw, free), depth)}) SINCE[1,{draw.choice(['3', '*'])}] {given})",
        f"((NOT PREV {given}) SINCE[1,5] {given})",
        f"({atom(draw, free)} AND HISTORICALLY[1,{draw.choice(['2', '4', '*'])}] {given})",
        f"({atom(draw, free)} AND NOT ONCE[1,{draw.choice(['2', '4', '*'])}] {given})",
        f"({atom(draw, free)} AND (({inner(draw, free, depth)}) TRIGGER[{draw.choice(['1,3', '2,*'])}] {given}))",
        f"({atom(draw, free)} AND NOT PREV {given})",
        f"({atom(draw, free)} AND EVENTUALLY[0,2] ({inner(draw, part(draw, free), depth)}) AND NOT PREV {given})",
        f"(MATCHP (PREV {given})? . ({inner(draw, part(draw, free), 0)})?)",
        f"(LET u({names}) = PREV {given} IN u({names}))",
    ]
    body = draw.choice([given, f"{given} AND ({inner(draw, part(draw, free), depth)})", f"NEXT[0,3] {given}"])
    meaning = f"({start}) OR {draw.choice(ways)}" if draw.random() < 0.8 else draw.choice(ways)
    if draw.random() < 0.3:
        meaning = f"({meaning}) OR {draw.choice(ways)}"
    return f"LETPAST {given} = {meaning} IN {body}"


def random_matching(draw: Draw, inner: Inner) -> str:
    """One of these formulas, perhaps below others."""
    free = ("x", "y", "z")[: draw.choice([0, 1, 1, 2])]
    depth = draw.choice([0, 0, 1])
    kind = draw.randrange(3)
    if kind == 0:
        return recursion(draw, free, depth, inner)
    made = (dual if kind == 1 else match)(draw, free, depth, inner)
    shape = draw.randrange(6)
    if shape == 0:
        return f"({inner(draw, free, depth)}) AND NOT ({made})"
    if shape == 1:
        return f"ONCE{interval(draw, False)} ({made})"
    if shape == 2:
        return f"({inner(draw, free, depth)}) AND EVENTUALLY[0,3] ({made})"
    return made
