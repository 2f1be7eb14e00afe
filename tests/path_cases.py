"""Workloads and streams of ten thousand events and more, drawn around the thresholds of operators and features.

What a case has is drawn from a seed: how many events a window and a group have, how long bursts are, how many windows
overlap, how many queries stand side by side, and where values and counts lie (2^31, 2^52, 2^61, 2^64, 2^640).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TYPES = ("A", "B", "C", "D", "x")  # no query asks for the last
PATTERNS = (
    "B+",
    "SEQ(A, B+)",
    "SEQ(A, B)",
    "SEQ(A+, B)",
    "SEQ(A, B+, C)",
    "SEQ(A, NOT C, B+)",
    "SEQ(A, B+, NOT C)",
    "SEQ(NOT D, A, B+)",
    "(SEQ(A, B+))+",
    "SEQ((SEQ(A, B+))+, C)",
    "SEQ(A, (B | C)+)",
    "SEQ((A | B)+, NOT D, C)",
    "SEQ(A{2,3}, B)",
    "SEQ(A, B, C, D)",
    "SEQ(A, NOT SEQ(C, D), B+)",
    "SEQ(A, B B1, B B2+)",
)
AGGREGATES = (
    "COUNT(*)",
    "COUNT(*), SUM({b}.v)",
    "AVG({b}.v), COUNT(*)",
    "MIN({b}.v), COUNT(*)",
    "MAX({b}.v), SUM({b}.w)",
    "COUNT({b}), SUM({b}.v), MIN({b}.w)",
    "COUNT({b}), SUM({b}.v), SUM({b}.w), AVG({b}.v)",
)
DECLARED = "EVENT A(k INT, v INT, w DOUBLE); EVENT B(k INT, v INT, w DOUBLE);\n"
KINDS = ("few", "bursts", "sliding", "back", "alone", "alike", "mixed")
# Values of v around which a path gives way to another one, and how far from them.
MAGNITUDES = (3, 1 << 15, 1 << 30, 1 << 31, 1 << 45, 1 << 52, 1 << 61, (1 << 63) - 8)


@dataclass(frozen=True)
class PathCase:
    """A workload, a stream in the order of time, and how numbers are.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    text : str
    events : pyarrow.Table
        Columns time, type, k, v (integers), w (doubles).
    numbers : {'exact', 'float'}
    widens : int
        v is a column of doubles, of which those before this row are integers; 0 where it is one of integers.
    """

    kind: str
    text: str
    events: pa.Table
    numbers: str
    widens: int = 0


def draw(seed: int, size: int) -> PathCase:
    """Draw a case of about `size` events, fewer where each costs more.

    Under ``numbers='float'`` values of a column have one sign, so that 1e-9 of a sum is a bound for its error.
    """
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    numbers = chance.choice(["exact", "float"])
    queries = (
        1 if kind == "alone" and chance.random() < 0.5 else chance.choice([1, 2, 3, 4, 5, 8, 9, 16, 17, 20, 40, 70])
    )
    overlap = chance.choice([2, 3, 8, 10, 30, 100]) if kind == "sliding" or (kind == "alone" and seed % 2) else 1
    groups = 1 if kind == "alone" or chance.random() < 0.2 else chance.choice([2, 7, 60, 127, 128, 900, 5_000])
    in_window = {
        "few": [2, 4, 9, 30, 250, 270],
        "bursts": [40, 300, 1_500] if numbers == "exact" else [60, 600, 3_000],
        "sliding": [20, 300, 900] if numbers == "exact" else [4, 20, 70, 150, 900, 3_000],  # beyond 64 bits
        "back": [6, 30, 120],
    }.get(kind, [4, 20, 70, 150])
    matched = chance.choice(in_window)  # events of a window and group, by and large
    queries = max(1, min(queries, 12 if kind == "back" else 70))
    cost = queries * overlap * (matched // 40 + 1)
    rows = max(2_000, min(size, 60 * size // max(cost, 1)))
    events = _stream(chance, seed, rows, groups, kind, numbers)
    times = events.column("time").to_numpy()
    per_tick = rows / max(int(times[-1]) + 1, 1)
    within = max(1, int(matched * groups / max(per_tick, 1e-9)))
    text = _text(chance, kind, queries, groups, within, overlap)
    return _widened(seed, PathCase(kind, DECLARED + text, events, numbers))


def _widened(seed: int, case: PathCase) -> PathCase:
    """Let the integers of some cases turn into doubles at a random event; they are small, and of one sign."""
    chance = random.Random(f"widens {seed}")
    if chance.random() < 0.75:
        return case
    first = chance.randrange(1, case.events.num_rows)
    held = case.events.column("v")
    values = np.abs(held.fill_null(0).to_numpy() % (1 << 40)).astype(np.float64)
    values[first:] += 0.5
    place = case.events.schema.get_field_index("v")
    column = pa.array(values, pa.float64(), mask=held.is_null().to_numpy())
    events = case.events.set_column(place, "v", column)
    return replace(case, text=case.text.removeprefix(DECLARED), events=events, widens=first)


def _stream(chance: random.Random, seed: int, rows: int, groups: int, kind: str, numbers: str) -> pa.Table:
    """Bursts of one type and group; some of their events have one time, some are far apart."""
    numpy = np.random.default_rng(seed)
    mean = chance.choice([1, 1, 2, 8, 9, 60, 700, 1_100] if kind == "bursts" else [1, 1, 2, 8, 9, 20])
    lengths = numpy.geometric(1 / mean, rows).astype(np.int64)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), rows)) + 1]
    rare = chance.choice([0.0, 0.01, 0.1])  # of what cuts bursts
    weights = np.array([0.3, 0.5 - rare, rare, rare, 0.2 - rare])
    types = np.repeat(numpy.choice(len(TYPES), len(lengths), p=weights / weights.sum()), lengths)[:rows]
    skewed = chance.random() < 0.3
    drawn = numpy.zipf(1.4, len(lengths)) % groups if skewed else numpy.integers(0, groups, len(lengths))
    keys = np.repeat(drawn, lengths)[:rows]
    ties = chance.choice([0.0, 0.0, 0.05, 0.6])
    steps = np.where(numpy.random(rows) < ties, 0, numpy.integers(1, 4, rows))
    steps[numpy.random(rows) < chance.choice([0, 0, 1e-3])] = chance.choice([500, 100_000])
    if chance.random() < 0.3:  # calm parts and dense ones
        parts = numpy.integers(0, rows, 2 * chance.choice([1, 3, 10]))
        parts[0] = chance.randrange(1_500)
        steps *= np.where(np.searchsorted(np.sort(parts), np.arange(rows)) % 2, chance.choice([3, 8]), 1)
    mixed = chance.random() < 0.3  # instead of bursts in the order of time, events of many groups in turns
    if mixed:
        order = np.argsort(np.arange(rows) + numpy.integers(0, 50, rows), kind="stable")
        types, keys = types[order], keys[order]
    return pa.table(
        {
            "time": np.cumsum(steps),
            "type": pa.DictionaryArray.from_arrays(types.astype(np.int32), list(TYPES)),
            "k": keys,
            "v": _integers(chance, numpy, rows, numbers),
            "w": _doubles(chance, numpy, rows, numbers),
        }
    )


def _integers(chance: random.Random, numpy: np.random.Generator, rows: int, numbers: str) -> pa.Array:
    size = chance.choice(MAGNITUDES if chance.random() < 0.5 else MAGNITUDES[:1])
    values: npt.NDArray[np.int64] = numpy.integers(0, 8, rows)
    if size > 3:
        rare = numpy.random(rows) < chance.choice([1e-3, 0.1, 1.0])
        values = np.where(rare, size - 3 + values, values)
    if numbers == "exact":
        values = np.where(numpy.random(rows) < 0.4, -values, values)
    elif chance.random() < 0.3:
        values = -values
    missing = numpy.random(rows) < chance.choice([0, 0, 0.02, 0.5])
    return pa.array(values, pa.int64(), mask=missing)


def _doubles(chance: random.Random, numpy: np.random.Generator, rows: int, numbers: str) -> pa.Array:
    values = numpy.integers(0, 64, rows) / 8
    scale = chance.choice([1.0, 1.0, 2.0**-190, 2.0**195, 2.0**210, 2.0**-300])
    values = np.where(numpy.random(rows) < chance.choice([1e-3, 1.0]), values * scale, values)
    if numbers == "exact" and scale == 1.0:  # eighths add up without rounding, whatever the order
        values = np.where(numpy.random(rows) < 0.4, -values, values)
    missing = numpy.random(rows) < chance.choice([0, 0, 0.1])
    return pa.array(values, pa.float64(), mask=missing)


def _text(chance: random.Random, kind: str, queries: int, groups: int, within: int, overlap: int) -> str:
    """The queries of a case, with windows of so many ticks."""
    slide = max(1, within // overlap)
    window = f"WITHIN {slide * overlap} s" + (f" SLIDE {slide} s" if overlap > 1 else "")
    if kind == "mixed" and chance.random() < 0.4:
        window = f"WITHIN {within} s SLIDE {within + chance.randint(1, within)} s"
    keyed = groups > 1 or (kind != "alone" and chance.random() < 0.5)
    patterns = PATTERNS[:12] if kind in ("few", "bursts", "sliding", "alone") else PATTERNS
    aggregates = AGGREGATES
    if kind == "few" and chance.random() < 0.5:  # what registers hold with loops of their own
        patterns, aggregates = ("SEQ(A, B+)", "SEQ(A, B)", "SEQ(A, B+, C)", "(SEQ(A, B+))+"), AGGREGATES[:4]
    if kind == "alone" and chance.random() < 0.4:  # what the number of events answers
        patterns, aggregates = ("B+",), AGGREGATES[:1]
    several = kind == "sliding" and chance.random() < 0.3  # windows
    found: list[str] = []
    for number in range(queries):
        if kind == "alike" and found and chance.random() < 0.5:
            found.append(_alike(chance, chance.choice(found)))
            continue
        own = window
        if kind == "mixed" and chance.random() < 0.3:
            own = f"WITHIN {within * chance.choice([2, 3])} s"
        if several and chance.random() < 0.2:
            own = f"WITHIN {2 * slide * overlap} s SLIDE {slide} s"
        found.append(_query(chance, kind, chance.choice(patterns), chance.choice(aggregates), keyed, own, number))
    return ";\n".join(found)


def _query(
    chance: random.Random, kind: str, pattern: str, aggregates: str, keyed: bool, window: str, number: int
) -> str:
    variable = "B2" if "B2" in pattern else "B"
    conditions = []
    if chance.random() < 0.4:
        conditions.append(f"{variable}.v > {chance.randint(-3, 6)}")
    if (kind == "back" or (kind in ("alike", "mixed") and chance.random() < 0.2)) and f"{variable}+" in pattern:
        conditions.append(
            chance.choice(
                [
                    f"{variable}.v < NEXT({variable}).v",
                    f"{variable}.v = NEXT({variable}).v",
                    f"{variable}.v <> NEXT({variable}).v AND {variable}.w <= NEXT({variable}).w",
                    f"({variable}.v < NEXT({variable}).v OR {variable}.w = 1)",
                ]
            )
        )
    by = ""
    if keyed:
        shown = number % 5 != 4
        conditions += [] if shown else ["[k]"]
        by = "GROUP-BY k " if shown else ""
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    items = aggregates.format(b=variable)
    return f"RETURN {'k, ' if by else ''}{items} PATTERN {pattern} {where}{by}{window}"


def _alike(chance: random.Random, query: str) -> str:
    """The same query with other aggregates."""
    head, rest = query.split(" PATTERN ", 1)
    variable = "B2" if "B2" in rest else "B"
    group = "k, " if head.startswith("RETURN k, ") else ""
    return f"RETURN {group}{chance.choice(AGGREGATES).format(b=variable)} PATTERN {rest}"
