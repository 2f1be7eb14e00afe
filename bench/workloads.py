"""Workloads of benchmarks that are too regular to be written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice, permutations, product

from bench.streams import TYPES

STRIDE = 389  # prime, so that queries side by side differ in everything and none comes twice
RIDES = ("SEQ(Request, Travel+)", "SEQ(Request, Travel+, NOT Pool, Dropoff)", "(SEQ(Request, Travel+))+")
EVENT_ITEMS = ("COUNT(EVENTS {v})", *(f"{each}(EVENTS {{v}}.value)" for each in ("SUM", "AVG", "MIN", "MAX")))
MIXED = ("", ", SUM({y}.value)", ", AVG({y}.value)", ", MIN({y}.value)", ", MAX({y}.value)")


def many_groups_fifty(within: str) -> str:
    """50 distinct queries per key in four shapes, NOT among them, with COUNT, SUM, AVG, MIN and MAX in turns."""
    pairs, triples = list(permutations(TYPES, 2)), list(permutations(TYPES, 3))
    patterns = [
        *((y, f"SEQ({x}, {y}+)") for x, y in pairs[:15]),
        *((y, f"(SEQ({x}, {y}+))+") for x, y in pairs[::2]),
        *((y, f"SEQ({x}, {y}+, {z})") for x, y, z in triples[::4]),
        *((y, f"SEQ({x}, NOT {z}, {y}+)") for x, y, z in triples[2::6]),
    ]
    return _mixed(patterns, within)


def five_shapes_fifty(within: str) -> str:
    """50 distinct queries per key, ten of each of five shapes, with COUNT, SUM, AVG, MIN and MAX in turns."""
    pairs, triples = list(permutations(TYPES, 2)), list(permutations(TYPES, 3))
    patterns = [
        *((y, f"SEQ({x}, {y}+)") for x, y in pairs[:10]),
        *((y, f"(SEQ({x}, {y}+))+") for x, y in pairs[::2]),
        *((y, f"SEQ({x}+, {y}+)") for x, y in pairs[1::2]),
        *((y, f"SEQ({x}, {y}+, {z})") for x, y, z in triples[::6]),
        *((y, f"SEQ({x}, NOT {z}, {y}+)") for x, y, z in triples[2::6]),
    ]
    return _mixed(patterns, within)


def neighbours_fifty(within: str) -> str:
    """50 distinct queries per key of five shapes over rotating letters, with five aggregates in turns."""
    items = ("COUNT(*)", "SUM({v}.value)", "AVG({v}.value)", "COUNT({v})", "MAX({v}.value)")
    found = []
    for number, (pattern, repeated) in enumerate(_rotating_fifty()):
        turn, letter = divmod(number, 5)
        item = items[(letter + turn) % 5].format(v=repeated)
        found.append(f"RETURN key, {item} PATTERN {pattern} GROUP-BY key {within};\n")
    return "".join(found)


def _rotating_fifty() -> Iterator[tuple[str, str]]:
    """50 distinct patterns of five shapes over rotating letters, each with the variable that repeats in it."""
    shapes = ("SEQ({a}, {b}+)", "SEQ({a}, {b}+, {c})", "(SEQ({a}, {b}+))+", "SEQ({a}+, {c})", "SEQ({a}, {b}+, NOT {c})")
    for number in range(50):
        turn, letter = divmod(number, 5)
        further = turn // 5
        a, b, c = (TYPES[(letter + step) % 5] for step in (0, 1 + further, 2 + 2 * further))
        shape = shapes[turn % 5]
        yield shape.format(a=a, b=b, c=c), a if "{a}+" in shape else b


def told_fifty(items: Sequence[str], group: str, within: str) -> str:
    """50 distinct queries of the five shapes of `neighbours_fifty`, per key and what `group` names.

    Parameters
    ----------
    items : sequence of str
        In turns; ``{v}`` is the variable that repeats.
    group : str
        In GROUP-BY besides the key; may be empty.
    within : str
    """
    found = []
    for number, (pattern, repeated) in enumerate(_rotating_fifty()):
        more = f", {group.format(v=repeated)}" if group else ""
        item = items[(number + number // 5) % len(items)].format(v=repeated)
        found.append(f"RETURN key{more}, {item} PATTERN {pattern} GROUP-BY key{more} {within};\n")
    return "".join(found)


def _mixed(patterns: Sequence[tuple[str, str]], within: str) -> str:
    """A query per key for each pattern; the aggregates in turns are of the type that is named beside it."""
    return "".join(
        f"RETURN key, COUNT(*){extra.format(y=y)} PATTERN {pattern} GROUP-BY key {within};\n"
        for (y, pattern), extra in zip(patterns, cycle(MIXED), strict=False)
    )


def long_bursts_patterns() -> list[tuple[str, str, str, str]]:
    """50 patterns: (X, Y, Z, pattern) of the shapes SEQ(X, Y+), its repetition, and SEQ(X, Y+, Z); else Z is empty."""
    pairs, triples = list(permutations(TYPES, 2)), list(permutations(TYPES, 3))
    return [
        *((x, y, "", f"SEQ({x}, {y}+)") for x, y in pairs),
        *((x, y, "", f"(SEQ({x}, {y}+))+") for x, y in pairs),
        *((x, y, z, f"SEQ({x}, {y}+, {z})") for x, y, z in triples[::6]),
    ]


def long_bursts_fifty(within: str) -> str:
    """50 COUNT and SUM queries per key; ten have each of the five types under the Kleene plus."""
    return "".join(
        f"RETURN key, COUNT(*), SUM({y}.value) PATTERN {pattern} GROUP-BY key {within};\n"
        for _, y, _, pattern in long_bursts_patterns()
    )


def around_one_kleene(kleene: str, others: Sequence[str], queries: int, returned: str, end: str) -> str:
    """Distinct queries that share one Kleene sub-pattern (HAMLET §5.1, first workload).

    Parameters
    ----------
    kleene : str
        The type under the plus.
    others : sequence of str
        The types around it.
    queries : int
        How many; the shapes come in turns: X Kleene+, X Kleene+ Y, X Y Kleene+, (X Kleene+)+; when
        they are used up X NOT Y Kleene+.
    returned, end : str
        The items of RETURN, and what follows the pattern.
    """

    def patterns() -> Iterator[str]:
        shapes = (
            (f"SEQ({x}, {kleene}+)" for x in others),
            (f"SEQ({x}, {kleene}+, {y})" for x, y in product(others, repeat=2)),
            (f"SEQ({x}, {y}, {kleene}+)" for x, y in permutations(others, 2)),
            (f"(SEQ({x}, {kleene}+))+" for x in others),
        )
        waiting = [iter(shape) for shape in shapes]
        while waiting:
            for shape in list(waiting):
                pattern = next(shape, None)
                if pattern is None:
                    waiting.remove(shape)
                else:
                    yield pattern
        yield from (f"SEQ({x}, NOT {y}, {kleene}+)" for x, y in permutations(others, 2))

    found = [f"RETURN {returned} PATTERN {pattern} {end};" for pattern in islice(patterns(), queries)]
    if len(found) < queries:
        raise ValueError(f"{len(others)} types make only {len(found)} distinct queries")
    return "\n".join(found)


def diverse_stock(queries: int) -> str:
    """Distinct queries over trades: Kleene patterns, windows, aggregates, groups and predicates differ (§5.1, second).

    Parameters
    ----------
    queries : int
        At most 1,080.
    """
    shapes = (
        ("SEQ(Down D, Up K+)", "D"),
        ("SEQ(Flat F, Up K+)", "F"),
        ("SEQ(Up U, Down K+)", "U"),
        ("SEQ(Flat F, Down K+, Up U)", "F"),
        ("(SEQ(Up U, Flat K+))+", "U"),
        ("SEQ(Down D, NOT Flat F, Up K+)", "D"),
    )
    returned = (
        "COUNT(*)",
        "COUNT(*), SUM(K.size)",
        "LOG2(COUNT(*)), AVG(K.price)",
        "COUNT(*), MAX(K.price)",
        "COUNT(K)",
    )
    conditions = (
        "",
        "K.size >= 100",
        "K.size >= 500",
        "{first}.size >= 200",
        "K.price > 14 AND {first}.size < 1000",
        "K.size < 300",
    )
    windows = ("WITHIN 5 min", "WITHIN 10 min SLIDE 5 min", "WITHIN 15 min SLIDE 5 min")
    groups = ("symbol", "symbol, exchange")
    mixed = list(product(shapes, returned, conditions, windows, groups))
    found = []
    for number in range(queries):
        (pattern, first), items, condition, window, group = mixed[number * STRIDE % len(mixed)]
        where = f"WHERE {condition.format(first=first)}" if condition else ""
        found.append(f"RETURN {group}, {items} PATTERN {pattern} {where} GROUP-BY {group} {window};")
    return "\n".join(found)
