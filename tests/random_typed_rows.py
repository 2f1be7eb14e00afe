"""Random row patterns over columns of every type: rows that are pushed one by one give what a run over all gives.

``python -m tests.random_typed_rows --seeds 0:1000`` prints the first case that differs.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

import hamlet
from hamlet.matching import Matcher

_DAY, _BERLIN = datetime.datetime(2024, 3, 30, 22), datetime.timezone(datetime.timedelta(hours=1))
_TEXTS = ("", "a", "B", "b", "é", "\uffff", "\U0001f600", "aa")
_FLOATS = (-1.5, 0.0, -0.0, 0.1, 2.0, 1e300, 5e-324)


def _stamps(step: datetime.timedelta, zone: datetime.tzinfo | None = None) -> list[Any]:
    found = [_DAY + step * each for each in (0, 1, 1, 2, 5, 60, 90, 7000, 90_000)]
    return [each if zone is None else each.replace(tzinfo=zone) for each in found]


def _days(*counts: int) -> list[datetime.date]:
    return [datetime.date(1969, 12, 30) + datetime.timedelta(each) for each in counts]


_SECOND, _MICRO = datetime.timedelta(seconds=1), datetime.timedelta(microseconds=1)
KINDS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [-(2**53) - 1, -1, 0, 1, 2, 2**53, 2**53 + 1],
    pa.uint8(): [0, 1, 2, 254, 255],
    pa.uint32(): [0, 1, 2, 2**31, 2**32 - 1],
    pa.uint64(): [0, 1, 2**53 + 1, 2**63, 2**64 - 1],
    pa.float64(): [*_FLOATS, float("nan"), float("inf"), float("-inf")],
    pa.float32(): [-1.5, 0.0, -0.0, 0.5, 2.0, 0.1, float("nan")],
    pa.string(): list(_TEXTS),
    pa.large_string(): list(_TEXTS),
    pa.dictionary(pa.int32(), pa.string()): list(_TEXTS),
    pa.bool_(): [True, False],
    pa.date32(): _days(0, 1, 2, 3, 5, 40, 20_000),
    pa.timestamp("s"): _stamps(_SECOND),
    pa.timestamp("ms"): _stamps(_SECOND / 10),
    pa.timestamp("us"): _stamps(_MICRO),
    pa.timestamp("ns"): _stamps(_MICRO),
    pa.timestamp("us", "UTC"): _stamps(_SECOND, datetime.UTC),
    pa.timestamp("us", "Europe/Berlin"): _stamps(_SECOND, _BERLIN),
    pa.timestamp("s", "UTC"): _stamps(_SECOND, _BERLIN),
    pa.timestamp("ns", "UTC"): _stamps(_MICRO, datetime.UTC),
    pa.decimal128(9, 2): [Decimal(each) / 4 for each in (-5, 0, 1, 2, 3, 10**7)],
    pa.decimal128(18, 0): [Decimal(2**53 + each) for each in range(4)],
    pa.decimal128(30, 3): [Decimal(10) ** 20 + Decimal(each) / 8 for each in range(4)],
    pa.binary(): [b"", b"a", b"\xff", b"a\0"],
    pa.time64("us"): [datetime.time(0), datetime.time(1, 2, 3), datetime.time(23, 59, 59, 999_999)],
    pa.time32("s"): [datetime.time(0), datetime.time(1, 2, 3), datetime.time(23, 59, 59)],
    pa.list_(pa.int32()): [[], [1], [1, None]],
    pa.struct([("a", pa.int8())]): [{"a": 1}, {"a": None}],
}
LEADING = [kind for kind in KINDS if not pa.types.is_nested(kind) and kind not in (pa.bool_(), pa.binary())]
PLAIN = [kind for kind in KINDS if not pa.types.is_nested(kind)]


@dataclass
class Typed:
    """A statement over rows of some schema.

    Attributes
    ----------
    text : str
    schema : pyarrow.Schema
    rows : list of dict
    lateness : object
    """

    text: str
    schema: pa.Schema
    rows: list[dict[str, Any]]
    lateness: Any


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def typed(seed: int, count: int | None = None) -> Typed:
    """A random case, of so many rows."""
    dice = random.Random(seed)
    kinds = {"o": dice.choice(LEADING), "i": pa.int64()}
    kinds |= {name: dice.choice(PLAIN) for name in ("k", "l", "s", "t")}
    kinds["x"] = kinds["y"] = dice.choice(PLAIN)
    kinds["z"] = dice.choice(list(KINDS))
    if dice.random() < 0.3:
        kinds["s"] = pa.null()
    rows = []
    for place in range(dice.choice((5, 10, 20, 40)) if count is None else count):
        row: dict[str, Any] = {"i": place}
        for name in "oklstxyz":
            some = KINDS.get(kinds[name], [None])
            row[name] = dice.choice(some[: 3 if name in "kl" else None])
            if name != "o" and dice.random() < 0.1:
                row[name] = None
        rows.append(row)
    kind = kinds["o"]
    if dice.random() < 0.8:
        for row in rows:
            if row["o"] != row["o"]:
                row["o"] = 0.5
    order = ["o", *dice.sample(["s", "t DESC", "s NULLS FIRST", "t DESC NULLS FIRST", "y"], dice.choice((0, 0, 1, 2)))]
    keys = dice.choice(("", "PARTITION BY k ", "PARTITION BY k, l "))
    clause = f"{keys}ORDER BY {', '.join(order)} MEASURES {_measures(dice)} {_shown(dice)}"
    pattern = dice.choice(("a b+ c?", "a b*? c", "(a | b) c+", "a b", "a? b{2}"))
    clause += f" PATTERN ({pattern}){_within(dice, kind)} DEFINE b AS {_condition(dice, kinds)}"
    clause += f", c AS {_condition(dice, kinds)}" * ("c" in pattern)
    schema = pa.schema([(name, kinds[name]) for name in dice.sample("oiklstxyz", 9)])
    return Typed(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", schema, rows, _lateness(dice, kind))


def _measures(dice: random.Random) -> str:
    said = (
        "LAST(i) AS n",
        "FIRST(o) AS first",
        "LAST(x) AS x",
        "z AS z_last",
        "COUNT(y) AS c",
        "CLASSIFIER() AS label",
        "MATCH_NUMBER() AS m",
        "b.y AS y_b",
        "MAX(o) AS high",
        "MIN(x) AS low",
    )
    return ", ".join(dice.sample(said, 3))


def _shown(dice: random.Random) -> str:
    rows = dice.choice(("", "", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"))
    return rows + dice.choice(("", "", " AFTER MATCH SKIP TO NEXT ROW"))


def _within(dice: random.Random, kind: pa.DataType) -> str:
    if dice.random() < 0.5 or pa.types.is_time(kind):
        return ""
    if _is_moment(kind):
        return f" WITHIN INTERVAL '{dice.choice((1, 5, 30))}' {dice.choice(('SECOND', 'MINUTE', 'DAY', 'MICROSECOND'))}"
    if pa.types.is_integer(kind):
        return f" WITHIN {dice.choice((0, 1, 2, 300))}"
    if pa.types.is_float64(kind) or pa.types.is_decimal(kind):
        return f" WITHIN {dice.choice(('0.5', '2', '0.1'))}"
    return ""


def _lateness(dice: random.Random, kind: pa.DataType) -> Any:
    if dice.random() < 0.5:
        return 0
    if _is_moment(kind):
        return dice.choice((1, "2 s", "36 h", datetime.timedelta(seconds=1.5), datetime.timedelta(microseconds=3)))
    if pa.types.is_integer(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind):
        return dice.choice((1, 3, "2 s"))
    return 0


def _condition(dice: random.Random, kinds: dict[str, pa.DataType]) -> str:
    sign = dice.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    name = dice.choice(("x", "x", "o", "k", "i"))
    said = [
        f"{name} {sign} PREV({name})",
        f"{name} IS NOT NULL",
        f"a.{name} {sign} {name}",
        f"x {sign} y",
        f"NEXT({name}) {sign} {name}",
        f"COUNT(b.x) {dice.choice('<>')} 2",
        "i % 2 = 0" if dice.random() < 0.1 else "i > PREV(i) - 3",
    ]
    moments = [each for each in "xo" if _is_moment(kinds[each])]
    if moments:
        said += [f"{moments[0]} - PREV({moments[0]}) {sign} {moments[0]} - a.{moments[0]}"]
        said += [f"{moments[0]} {sign} {kind} '2024-03-31'" for kind in ("DATE", "TIMESTAMP")]
        said += [f"{moments[0]} + INTERVAL '20' MINUTE {sign} PREV({moments[0]})"]
    said += [f"x {sign} {number}" for number in ("1", "0.5", "300") if _is_number(kinds["x"])]
    one, other = dice.choice(said), dice.choice(said)
    return dice.choice((one, f"{one} OR {other}", f"NOT ({one})", f"{one} AND {other}"))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def compare_typed(seed: int, count: int | None = None) -> str:
    """Compare one seed, of so many rows; 'direct' where rows needed no host, 'host', or 'refused'."""
    case, dice = typed(seed, count), random.Random(-seed)
    said = f"seed {seed}\n{case.text}\n{case.schema}\nlateness {case.lateness!r}\n"
    table = pa.Table.from_pylist(case.rows, case.schema)
    try:
        expected = hamlet.sql(case.text, {"t": table}).rows()
        matcher = Matcher(case.text, case.schema, lateness=case.lateness)
    except hamlet.HamletError:
        return "refused"
    went = matcher.goes_directly
    ranks = pa.compute.rank(_sortable(table.column("o")), tiebreaker="dense").to_pylist()
    rows = [row for _, row in sorted(zip(ranks, case.rows, strict=True), key=lambda pair: pair[0])]
    found, place, nested = [], 0, pa.types.is_nested(case.schema.field("z").type)
    while place < len(rows):
        size = dice.choice((1, 1, 1, 2, 5))
        some: Any = rows[place : place + size]
        form = dice.randrange(6)
        if form == 0:
            some = pa.Table.from_pylist(some, case.schema)
        elif form == 1:
            some = {name: [row[name] for row in some] for name in case.schema.names}
        found += matcher.push(some[0] if form == 2 and size == 1 and not nested else some)
        place += size
        if dice.random() < 0.1:
            matcher = Matcher.restore(case.text, matcher.save())
        if dice.random() < 0.1 and place < len(rows):
            found += _advanced(matcher, rows[place]["o"])
    went = went and matcher.goes_directly
    found += matcher.close()
    given, wanted = (sorted(map(repr, each)) for each in (found, expected))
    assert given == wanted, f"{said}direct   {went}\npushed   {given}\nexpected {wanted}\nrows {rows}"
    return "direct" if went else "host"


def _advanced(matcher: Matcher, time: Any) -> list[dict[str, Any]]:
    """What is given at a time that can be promised."""
    beyond = isinstance(time, int) and time > 2**61
    return [] if beyond or time != time else matcher.advance(time)


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0:1000")
    given = parser.parse_args()
    low, high = map(int, given.seeds.split(":"))
    counts: dict[str, int] = {}
    for seed in range(low, high):
        outcome = compare_typed(seed)
        counts[outcome] = counts.get(outcome, 0) + 1
    sys.stdout.write(f"{counts}\n")


if __name__ == "__main__":
    main()
