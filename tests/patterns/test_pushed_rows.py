"""Few rows at a time: taken one by one in the kernel, they give what a run over all of them gives."""

from __future__ import annotations

import datetime
import decimal
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.matching import Matcher
from tests.effort import share_of
from tests.random_patterns import Generator, compare_pushed, compare_wild, pushed
from tests.random_typed_rows import compare_typed

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us")),
        ("user", pa.string()),
        ("page", pa.string()),
        ("price", pa.float64()),
        ("items", pa.int64()),
        ("seen", pa.bool_()),
        ("day", pa.date32()),
    ]
)
CLAUSES = (
    """PARTITION BY user ORDER BY at MEASURES FIRST(at) AS since, LAST(b.price) AS p, COUNT(v.*) AS n, CLASSIFIER() AS c
    PATTERN (v+ b) WITHIN INTERVAL '5' MINUTE
    DEFINE v AS page IN ('view', 'cart'), b AS page = 'buy' AND price >= 1.5""",
    """PARTITION BY user ORDER BY at MEASURES SUM(items) AS s, MIN(a.items) AS low, MAX(items) AS high,
    COUNT(page) AS c, LAST(items) - FIRST(items) + 1 AS d, MATCH_NUMBER() AS m, PREV(FIRST(items), 2) AS before
    AFTER MATCH SKIP TO NEXT ROW PATTERN (a b{1,2}? | c) DEFINE a AS items > PREV(items) + 1,
    b AS seen OR PREV(page) <> 'view', c AS items BETWEEN 2 AND 3 AND NOT seen""",
    """ORDER BY at, items MEASURES AVG(price) AS mean, STRING_AGG(user, '') AS users
    PATTERN (PERMUTE(a, b) c*) DEFINE a AS user = 'x', b AS user = 'y', c AS price IS NULL OR price * 2 < 4""",
    """PARTITION BY user, seen ORDER BY at MEASURES day AS day, LAST(day) AS last ALL ROWS PER MATCH
    PATTERN (^ a? b+) DEFINE a AS PREV(items, 3) = 1, b AS -items < -1 AND coalesce(price, 2.5) > 1""",
)
OUTER = ("SELECT * FROM clicks MATCH_RECOGNIZE ({}) AS m", "SELECT * FROM clicks c MATCH_RECOGNIZE ({}) WHERE 1 < 2")


def clicks(dice: random.Random, count: int) -> list[dict[str, Any]]:
    start = datetime.datetime(2024, 3, 5)
    rows = []
    for _ in range(count):
        start += datetime.timedelta(seconds=dice.choice((0, 20, 60, 200)))
        rows.append(
            {
                "at": start,
                "user": dice.choice(("x", "y", None)),
                "page": dice.choice(("view", "view", "cart", "buy", None)),
                "price": dice.choice((1, 1.5, 2.0, None)),
                "items": dice.choice((1, 2, 3, 5, None)),
                "seen": dice.choice((True, False, None)),
                "day": start.date(),
            }
        )
    return rows


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32()])
def test_narrow_integers_are_those_of_the_host(kind: pa.DataType) -> None:
    """Rows, and what does not fit their type."""
    schema = pa.schema([("t", kind), ("k", kind), ("v", kind)])
    text = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES LAST(v) - FIRST(v) + 1 AS d,
        SUM(v) AS s, MAX(v) AS m PATTERN (a b+) DEFINE b AS v > PREV(v) + 1 OR -v < -100)"""
    dice = random.Random(7)
    rows = [{"t": place, "k": place % 2, "v": dice.choice((1, 3, 5, 120, None))} for place in range(60)]
    matcher = Matcher(text, schema)
    assert matcher.goes_directly
    found = [row for each in rows for row in matcher.push(each)] + matcher.close()
    expected = hamlet.sql(text, {"t": pa.Table.from_pylist(rows, schema)}).rows()
    assert sorted(map(str, found)) == sorted(map(str, expected))
    most = {8: 127, 16: 2**15 - 1, 32: 2**31 - 1}[kind.bit_width]
    rows = [{"t": place, "k": 0, "v": most} for place in range(3)]
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES 1 AS m PATTERN (b+) DEFINE b AS v < PREV(v) + 1)"
    with pytest.raises(hamlet.DataError, match="does not fit its type"):
        Matcher(text, schema).push(rows)
    with pytest.raises(hamlet.HamletError, match="Overflow"):
        hamlet.sql(text, {"t": pa.Table.from_pylist(rows, schema)})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("clause", CLAUSES)
def test_rows_of_single_pushes_are_those_of_a_run(clause: str, outer: str) -> None:
    text, dice = outer.format(clause), random.Random(len(clause))
    for count in (3, 90):
        rows = clicks(dice, count)
        expected = hamlet.sql(text, {"clicks": pa.Table.from_pylist(rows, SCHEMA)}).rows()
        matcher = Matcher(text, SCHEMA)
        assert matcher.goes_directly
        found: list[dict[str, Any]] = []
        place = 0
        while place < len(rows):
            size = dice.choice((1, 1, 1, 2, 5, 70 if count > 80 else 1))
            some: Any = rows[place : place + size]
            found += matcher.push(pa.Table.from_pylist(some, SCHEMA) if size == 5 else some)
            place += size
            if dice.random() < 0.05:
                matcher = Matcher.restore(text, matcher.save())
            if place < len(rows) and dice.random() < 0.1:
                found += matcher.advance(rows[place]["at"])
        assert matcher.held["rows"] <= len(rows)
        found += matcher.close()
        assert sorted(map(str, found)) == sorted(map(str, expected))
        assert all(list(row) == matcher.rows_schema.names for row in found)


def test_random_patterns_row_by_row() -> None:
    shown = 0
    for seed in range(8):
        case = Generator(seed, back=True).case()
        if "$" in case.sql:
            continue
        found, expected = pushed(case, seed)
        assert found == expected, f"seed {seed}\n{case.sql}\n{case.rows}"
        shown += bool(expected)
    assert shown > 1


def test_random_patterns_that_read_labels_row_by_row() -> None:
    """Labels, rows ahead, decimals, rows of no match."""
    found = [compare_pushed(seed) for seed in range(max(share_of(14), 4))]
    assert found.count(True) > share_of(6)


NUMBERS = pa.schema(
    [("k", pa.int64()), ("ts", pa.int64()), ("v", pa.int64()), ("d", pa.decimal128(10, 2)), ("p", pa.float64())]
)


@pytest.mark.parametrize(
    "clause",
    [
        "MEASURES LAST(ts) AS t PATTERN (a b) DEFINE b AS b.v > LAST(a.v)",
        "MEASURES LAST(ts) AS t PATTERN (a+ b) DEFINE a AS SUM(a.v) < 30, b AS SUM(a.v) > 10.5",
        "MEASURES NEXT(LAST(ts)) AS t, CLASSIFIER() AS c PATTERN (a b) DEFINE b AS v > NEXT(v, 2)",
        "MEASURES LAST(ts) AS t PATTERN (a b c?) DEFINE b AS d > PREV(d) + 1.5 OR d / 3 < 0.2, c AS d < 7 AND d > p",
        "MEASURES COUNT(*) AS t, SUM(v) AS s, FINAL LAST(ts) AS l ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b)"
        " DEFINE b AS v > PREV(v)",
        "MEASURES LAST(ts) AS t, AVG(p) AS m, SUM(b.p) AS s PATTERN (a b+ c) WITHIN 50"
        " DEFINE b AS b.p < AVG(b.p) + 1.25, c AS c.p > FIRST(b.p) AND COUNT(b.*) > 2",
        "MEASURES SUM(v) AS s ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN ({- a -} b*? c)"
        " WITHIN 9 DEFINE b AS SUM(b.d) + 1 > b.d * 0.5, c AS MAX(b.d) - c.d < 0.25 AND NEXT(c.v) IS NOT NULL",
        "MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO LAST b"
        " PATTERN (a b{2} c) WITHIN 30 DEFINE b AS NEXT(FIRST(a.v), 2) > 3, c AS c.v = LAST(a.v)",
    ],
)
def test_what_needs_no_host(clause: str) -> None:
    """Conditions over labels, rows ahead, decimals, and rows of no match are given without the host."""
    text = f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts {clause})"
    dice = random.Random(len(clause))

    def some(value: Any) -> Any:
        return None if dice.random() < 0.05 else value

    rows = [
        {
            "k": dice.randrange(4),
            "ts": ts,
            "v": some(dice.randrange(10)),
            "d": some(decimal.Decimal(dice.randrange(1000)) / 100),
            "p": some(dice.randrange(40) / 4),
        }
        for ts in range(600)
    ]
    matcher = Matcher(text, NUMBERS)
    found = [row for each in rows for row in matcher.push(each)]
    assert matcher._direct is not None
    assert matcher._direct.form is not None
    found += matcher.close()
    expected = hamlet.sql(text, {"t": pa.Table.from_pylist(rows, NUMBERS)}).rows()
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len(found) > 20


MIXED = pa.schema([("ts", pa.timestamp("us")), *((name, pa.string()) for name in "st"), *NUMBERS.remove(1)])
OPERANDS = {
    "text": (
        "s",
        "t",
        "PREV(s)",
        "a.s",
        "LAST(b.t)",
        "PREV(a.t)",
        "coalesce(s, t)",
        "coalesce(a.s, t)",
        "NEXT(s)",
        "'x'",
        "PREV(coalesce(s, 'yy'))",
    ),
    "number": (
        "v",
        "d",
        "PREV(d)",
        "a.d",
        "LAST(b.v)",
        "abs(v - a.v)",
        "abs(d - PREV(d))",
        "d - 2.5",
        "3",
        "p",
        "SUM(a.v)",
    ),
    "time": ("ts - PREV(ts)", "ts - a.ts", "INTERVAL '3' SECOND", "INTERVAL '1' DAY", "ts - FIRST(ts)"),
    "stamp": ("ts", "PREV(ts) + INTERVAL '5' SECOND", "a.ts + INTERVAL 2 SECOND", "LAST(b.ts) - INTERVAL '1' MINUTE"),
}


def mixed(seed: int) -> tuple[str, list[dict[str, Any]]]:
    """A statement whose conditions compare texts, times and numbers of several types, and rows."""
    dice = random.Random(seed)

    def condition() -> str:
        kind = dice.choice(list(OPERANDS))
        if dice.random() < 0.1:
            return f"{dice.choice(OPERANDS['text'])} {dice.choice(('', 'NOT'))} IN ('x', 'X', 'ß')"
        sign = dice.choice(("=", "=", "<>", "IS DISTINCT FROM", *(("<", "<=", ">", ">="))))
        return f"{dice.choice(OPERANDS[kind])} {sign} {dice.choice(OPERANDS[kind])}"

    pattern = f"a b+{dice.choice(('', '?'))} c?"
    define = f"b AS {condition()} {dice.choice(('AND', 'OR'))} {condition()}, c AS {condition()}"
    clause = f"MEASURES LAST(ts) AS l, COUNT(*) AS n, LAST(b.s) AS s PATTERN ({pattern}) DEFINE {define}"
    start = datetime.datetime(2024, 3, 5)
    rows = []
    for _ in range(60):
        start += datetime.timedelta(seconds=dice.choice((0, 1, 3, 5, 70, 86_400)))
        texts = {name: dice.choice(("x", "X", "yy", "ß", "\U0001f600", "", None)) for name in "st"}
        numbers = {"k": dice.randrange(3), "v": dice.choice((1, 2, 3, None)), "p": dice.choice((1.0, 2.5, None))}
        rows.append(
            {"ts": start, **texts, **numbers, "d": dice.choice((None, *map(decimal.Decimal, ("1.00", "2.50", "3.00"))))}
        )
    order = dice.choice(("ts", "ts, s", "ts, t, v"))
    return f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY {order} {clause})", rows


def check_mixed(seed: int) -> bool:
    """The kernel's conditions are the host's, over a table and pushed; gives whether rows need no host."""
    text, rows = mixed(seed)
    table = pa.Table.from_pylist(rows, MIXED)
    expected = sorted(map(str, hamlet.sql(text, {"t": table}).rows()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hamlet.patterns.match.search.native_program", lambda *_: None)
        assert sorted(map(str, hamlet.sql(text, {"t": table}).rows())) == expected, f"seed {seed}\n{text}"
    matcher, found = Matcher(text, MIXED), []
    for place, each in enumerate(rows):
        if place == len(rows) // 2:
            matcher = Matcher.restore(text, matcher.save())
        found += matcher.push(each)
    found += matcher.close()
    assert sorted(map(str, found)) == expected, f"seed {seed}\n{text}"
    return matcher.goes_directly


def test_texts_times_and_numbers_of_several_types() -> None:
    assert sum(check_mixed(seed) for seed in range(6)) > 2


def test_texts_that_a_collation_makes_equal_are_compared_by_the_host() -> None:
    text = """CREATE TABLE u (i INTEGER, s VARCHAR COLLATE NOCASE); INSERT INTO u VALUES (1, 'x'), (2, 'X'), (3, 'y');
        SELECT * FROM u MATCH_RECOGNIZE (ORDER BY i MEASURES COUNT(*) AS n PATTERN (a b+) DEFINE b AS s = a.s)"""
    assert hamlet.sql(text).rows() == [{"n": 2}]


def test_a_collation_that_a_clause_is_partitioned_or_ordered_by() -> None:
    table = pa.table({"i": [1, 2, 3, 4], "s": ["x", "X", "y", "x"]})
    clause = "MEASURES LIST(i) AS n PATTERN (a+) DEFINE a AS TRUE"
    for order, expected in (
        ("PARTITION BY s COLLATE NOCASE ORDER BY i", [[1, 2, 4], [3]]),
        ("ORDER BY s COLLATE NOCASE DESC, i", [[3, 1, 2, 4]]),
    ):
        rows = hamlet.sql(f"SELECT n FROM t MATCH_RECOGNIZE ({order} {clause})", {"t": table}).rows()
        assert sorted(row["n"] for row in rows) == expected


def test_a_matcher_refuses_the_collation_of_a_subquery_which_it_would_lose() -> None:
    clause = "ORDER BY i MEASURES COUNT(*) AS n PATTERN (a b) DEFINE b AS s = PREV(s)"
    schema = pa.schema([("i", pa.int64()), ("s", pa.string())])
    with pytest.raises(hamlet.WorkloadError, match="without its collations"):
        Matcher(f"SELECT * FROM (SELECT i, s COLLATE NOCASE AS s FROM t) MATCH_RECOGNIZE ({clause})", schema)


@pytest.mark.parametrize(
    ("clause", "most"),
    [
        ("MEASURES PREV(FIRST(v), 2) AS p, NEXT(LAST(v)) AS n PATTERN (a b) DEFINE b AS v < NEXT(v, 2)", 7),
        ("MEASURES v AS v AFTER MATCH SKIP TO NEXT ROW PATTERN (a b+) WITHIN 4 DEFINE b AS v <> PREV(v, 3)", 8),
    ],
)
def test_no_more_rows_are_kept_than_explain_says(clause: str, most: int) -> None:
    matcher = Matcher(f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts {clause})", NUMBERS)
    assert f"at most {most} rows" in matcher.explain() or "WITHIN 4 and 3 more" in matcher.explain()
    held = []
    for ts in range(60):
        matcher.push({"ts": ts, "v": ts % 7 % 3})
        held.append(matcher.held["rows"] - 1)  # the last row waits for others of its time
    assert most - 3 < max(held) <= most


def test_a_long_negative_constant_is_no_narrow_integer() -> None:
    clause = "ORDER BY ts MEASURES ts AS t PATTERN (a) DEFINE a AS (-9007199254740989 + 1) < v"
    matcher = Matcher(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", NUMBERS)
    assert matcher.push({"ts": 1, "v": 1}) + matcher.close() == [{"t": 1}]


def test_zeros_are_one_partition_and_numbers_of_matches_go_on_in_aggregates() -> None:
    rows = [{"ts": ts, "f": (0.0, -0.0)[ts % 2]} for ts in range(6)]
    schema = pa.schema([("ts", pa.int64()), ("f", pa.float64())])
    for text in (
        "PARTITION BY f ORDER BY ts ALL ROWS PER MATCH WITH UNMATCHED ROWS"
        " PATTERN (a b) DEFINE b AS ts > 3 AND PREV(ts, 2) > 0",
        "ORDER BY ts MEASURES MAX(ts + MATCH_NUMBER()) AS n PATTERN (a) DEFINE a AS TRUE",
    ):
        text = f"SELECT * FROM t MATCH_RECOGNIZE ({text})"
        matcher = Matcher(text, schema)
        found = [row for each in rows for row in matcher.push([each])] + matcher.close()
        assert found == hamlet.sql(text, {"t": pa.Table.from_pylist(rows, schema)}).rows()


def test_classifiers_within_group_are_part_of_what_an_answer_depends_on() -> None:
    text = """ORDER BY i MEASURES ARRAY_AGG(CLASSIFIER()) AS n PATTERN ((a | b) (a | b) c) SUBSET u = (a, b)
        DEFINE c AS LISTAGG(u.i, '') WITHIN GROUP (ORDER BY CLASSIFIER(u)) = '10'"""
    rows = hamlet.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({text})", {"t": pa.table({"i": [0, 1, 2]})}).rows()
    assert rows == [{"n": ["b", "a", "c"]}]


def test_rows_far_back_and_ahead_are_the_hosts() -> None:
    for step in ("PREV(v, 2147483647)", "NEXT(v, 2147483647)"):
        text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES v AS v PATTERN (a) DEFINE a AS {step} IS NULL)"
        matcher = Matcher(text, NUMBERS)
        assert not matcher.goes_directly
        found = matcher.push([{"ts": 1, "v": 1}, {"ts": 2, "v": 2}]) + matcher.close()
        assert found == [{"v": 1}, {"v": 2}]


@pytest.mark.parametrize(
    "table",
    [
        "t",
        '"t"',
        "main.t",
        '"my ""t"',
        't AS "u"',
        '"t" u',
        "(SELECT * FROM t)",
        "(SELECT k, ts, v, d, p FROM t AS u) AS w",
        "(SELECT w.* FROM (SELECT * FROM t) w)",
    ],
)
@pytest.mark.parametrize("column", ["v", '"v"'])
def test_a_table_is_pushed_as_it_is_however_it_is_called(table: str, column: str) -> None:
    clause = f"ORDER BY ts MEASURES LAST(a.{column}) AS v PATTERN (a b) DEFINE b AS {column} > PREV({column})"
    matcher = Matcher(f"SELECT * FROM {table} MATCH_RECOGNIZE ({clause})", NUMBERS)
    assert matcher.goes_directly
    assert matcher.push([{"ts": 1, "v": 1}, {"ts": 2, "v": 2}, {"ts": 3, "v": 0}]) == [{"v": 1}]


@pytest.mark.parametrize(
    "table",
    ["(SELECT k, v, ts, d, p FROM t)", "(SELECT * FROM t WHERE v >= 0)", "(SELECT * FROM t) AS u (k, ts, v, d, p)"],
)
def test_a_subquery_that_changes_its_table_is_the_hosts(table: str) -> None:
    clause = "ORDER BY ts MEASURES LAST(a.v) AS v PATTERN (a b) DEFINE b AS v > PREV(v)"
    matcher = Matcher(f"SELECT * FROM {table} MATCH_RECOGNIZE ({clause})", NUMBERS)
    assert not matcher.goes_directly
    assert matcher.push([{"ts": 1, "v": 1}, {"ts": 2, "v": 2}, {"ts": 3, "v": 0}]) == [{"v": 1}]


def test_the_host_goes_on_where_a_sum_needs_more_bits() -> None:
    """Nothing is lost or given twice."""
    clause = "PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n, SUM(v) AS s PATTERN (a+? b) DEFINE a AS SUM(a.v) > 0"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause}, b AS v < 0)"
    rows = [{"k": place % 2, "ts": place, "v": 2**62 if place % 6 else -1} for place in range(30)]
    matcher = Matcher(text, NUMBERS)
    assert matcher.goes_directly
    found = [row for each in rows for row in matcher.push(each)]
    assert not matcher.goes_directly
    found += matcher.close()
    table = pa.Table.from_pylist([{"d": None, "p": None, **row} for row in rows], NUMBERS)
    assert sorted(map(str, found)) == sorted(map(str, hamlet.sql(text, {"t": table}).rows()))
    assert len(found) > 3


def test_the_host_says_that_a_search_takes_too_many_steps() -> None:
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN ((a | b)+ c) WITHIN 14 DEFINE a AS SUM(a.v) <> 1"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause}, c AS SUM(c.v) < 0)"
    matcher = Matcher(text, NUMBERS, max_steps=500)
    assert matcher.goes_directly
    rows = [{"ts": place, "v": 2 + 2 ** (place % 20)} for place in range(40)]
    with pytest.raises(hamlet.DataError, match=r"took more than .* steps"):
        matcher.push(rows)


def test_random_patterns_at_the_edges(tmp_path: Path) -> None:
    found = []
    for seed in range(share_of(16)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found.append(compare_wild(seed, folder))
    assert found.count("equal") > share_of(12)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_condition_over_the_match_reads_rows_that_may_not_be_taken_yet(size: int) -> None:
    """What follows FIRST(a) is there before a start after it is tried, and is no end of the rows."""
    rows = [{"k": "x", "ts": ts, "v": ts % 5 - 2} for ts in range(20)]
    schema = pa.schema([("k", "string"), ("ts", "int64"), ("v", "int64")])
    for condition in ("NEXT(FIRST(a.v), 1) IS NULL", "NEXT(FIRST(a.v), 2) > 0", "v < 0 OR NEXT(LAST(a.v), 3) IS NULL"):
        clause = f"ORDER BY ts MEASURES LAST(ts) AS at PATTERN (a b?) DEFINE a AS {condition}"
        text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
        matcher = Matcher(text, schema)
        found = [row for at in range(0, 20, size) for row in matcher.push(rows[at : at + size])] + matcher.close()
        assert found == hamlet.sql(text, {"t": pa.Table.from_pylist(rows, schema)}).rows()


EDGE = 2**63 - 1


@pytest.mark.parametrize("size", [1, 100])
def test_times_at_both_ends_of_64_bits(size: int) -> None:
    """A start and a row further apart than 64 bits say, durations and lateness beyond the ends."""
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) WITHIN {} DEFINE a AS v > 0"
    rows = [{"k": "x", "ts": ts, "v": 1} for ts in (-EDGE - 1, -EDGE, 0, EDGE - 1, EDGE)]
    for within, expected in ((1, [2, 1, 2]), (EDGE, [2, 3]), (0, [1, 1, 1, 1, 1])):
        for lateness in (0, 10, 2**40):
            matcher = matcher_of(clause.format(within), lateness=lateness)
            found = [row for at in range(0, 5, size) for row in matcher.push(rows[at : at + size])] + matcher.close()
            assert [row["n"] for row in found] == expected
        table = pa.Table.from_pylist(rows, pa.schema([("k", "string"), ("ts", "int64"), ("v", "int64")]))
        text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause.format(within)})"
        assert [row["n"] for row in hamlet.sql(text, {"t": table}).rows()] == expected


def test_a_day_behind_a_time_of_day_is_not_that_time() -> None:
    table = pa.table({"ts": pa.array([datetime.time(hour) for hour in (1, 2, 9)])})
    for duration, expected in (("1 DAY", [3]), ("6 HOUR", [2, 1])):
        clause = f"ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) WITHIN INTERVAL {duration} DEFINE a AS true"
        text = f"SELECT n FROM t MATCH_RECOGNIZE ({clause})"
        assert [row["n"] for row in hamlet.sql(text, {"t": table}).rows()] == expected
        with Matcher(text, table.schema) as matcher:
            pushed = [row for place in range(3) for row in matcher.push(table.slice(place, 1))]
            assert [row["n"] for row in (*pushed, *matcher.close())] == expected


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (pa.uint32(), 5),
        (pa.uint64(), 0),
        (pa.int8(), -128),
        (pa.decimal128(38, 0), decimal.Decimal(10) ** 37),
        (pa.decimal128(5, 2), decimal.Decimal("-999.99")),
        (pa.time64("us"), datetime.time(0, 30)),
        (pa.date32(), datetime.date(1, 1, 1)),
    ],
)
@pytest.mark.parametrize("more", ["", ", ARRAY_AGG(ts) AS l"])  # which the host computes
def test_a_lateness_beyond_the_least_time_lets_every_row_in(kind: pa.DataType, first: Any, more: str) -> None:
    text = f"SELECT n FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n{more} PATTERN (a b) DEFINE a AS true)"
    with Matcher(text, pa.schema([("ts", kind)]), lateness="2 h") as matcher:
        assert [*matcher.push([{"ts": first}]), *matcher.push([{"ts": first}]), *matcher.close()] == [{"n": 2}]


def test_a_lateness_that_cannot_be_taken_off_is_refused() -> None:
    text = "SELECT n FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b) DEFINE a AS true)"
    for kind in (pa.string(), pa.bool_(), pa.time64("us")):
        with pytest.raises(hamlet.OptionError, match="lateness=5 cannot be taken off"):
            Matcher(text, pa.schema([("ts", kind)]), lateness=5)
    with pytest.raises(hamlet.OptionError, match="cannot read 300 as a time"):
        Matcher(text, pa.schema([("ts", pa.int8())])).advance(300)


def matcher_of(clause: str, **options: Any) -> Matcher:
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    found = Matcher(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", schema, **options)
    assert found.goes_directly
    return found


def test_time_decides_starts_of_other_partitions() -> None:
    matcher = matcher_of("PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) WITHIN 10 DEFINE a AS v > 0")
    assert matcher.push({"k": "x", "ts": 1, "v": 1}) == []
    assert matcher.push({"k": "y", "ts": 5, "v": 1}) == []
    assert matcher.push({"k": "y", "ts": 12, "v": 0}) == [{"k": "x", "n": 1}]
    assert matcher.held["rows"] == 2
    assert matcher.advance(13) == [{"k": "y", "n": 1}]
    assert matcher.close() == []


def test_a_long_run_that_fails_costs_its_length() -> None:
    matcher = matcher_of("ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+ b) DEFINE a AS v = 1, b AS v = 2")
    for ts in range(0, 20_000, 50):
        assert matcher.push([{"k": "x", "ts": ts + place, "v": 1} for place in range(50)]) == []
    assert matcher.held["rows"] == 20_000
    assert matcher.push([{"k": "x", "ts": 20_000, "v": 3}, {"k": "x", "ts": 20_001, "v": 3}]) == []
    assert matcher.held["rows"] == 1


def test_late_rows_and_rows_that_do_not_fit() -> None:
    matcher = matcher_of("ORDER BY ts MEASURES v AS v PATTERN (a) DEFINE a AS v > 0", lateness=2, late="drop")
    assert matcher.push([{"ts": 5, "v": 1}, {"ts": 3, "v": 2}, {"ts": 2, "v": 3}]) == []
    assert matcher.push({"ts": 6, "v": 1}) == [{"v": 2}]
    assert matcher.stats == {"events": 4, "late_events": 1, "rows": 1}
    with pytest.raises(hamlet.DataError, match="no time"):
        matcher.push([{"ts": 7, "v": 1}, {"v": 1}])
    with pytest.raises(hamlet.DataError, match="does not fit the schema"):
        matcher.push({"ts": 7, "v": "seven"})
    assert matcher.close() == [{"v": 1}, {"v": 1}]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"page": "\ud800"}, "cannot read these values"),
        ({"price": 2**63}, "64 bits"),
        ({"price": 10**400}, "64 bits"),
    ],
)
def test_what_no_column_can_hold_is_refused_and_leaves_no_trace(wrong: dict[str, Any], message: str) -> None:
    clause = "ORDER BY at MEASURES COUNT(*) AS n PATTERN (a+) DEFINE a AS price > 0"
    matcher = Matcher(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", SCHEMA)
    assert matcher.goes_directly
    row = {"at": datetime.datetime(2024, 1, 1), "user": "x", "page": "buy", "price": 2**53}
    matcher.push([row])
    with pytest.raises(hamlet.DataError, match=message):
        matcher.push([{**row, **wrong}])
    matcher.push([row])
    assert matcher.close() == [{"n": 2}]


def test_where_matching_cannot_go_on() -> None:
    matcher = matcher_of("PARTITION BY k ORDER BY ts AFTER MATCH SKIP TO a PATTERN (a b) DEFINE b AS v > 1")
    matcher.push([{"k": "x", "ts": 1, "v": 1}, {"k": "x", "ts": 2, "v": 2}])
    with pytest.raises(hamlet.DataError, match="k = x, a is the match's first row"):
        matcher.push({"k": "x", "ts": 3, "v": 2})


def test_whole_numbers_beyond_64_bits() -> None:
    matcher = matcher_of("ORDER BY ts MEASURES v AS v PATTERN (a) DEFINE a AS v * 3 > 0")
    matcher.push({"ts": 1, "v": 2**62})
    with pytest.raises(hamlet.DataError, match="does not fit its type"):
        matcher.push({"ts": 2, "v": 1})


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {} AS z(many, last)",
        "SELECT * FROM (SELECT * FROM {} WHERE n > 2)",
        "SELECT N, z.L AS q, z.* FROM {} z",
        "SELECT * EXCLUDE (n) FROM {}",
        "SELECT z FROM {} z WHERE l > 2",
    ],
)
def test_what_stands_around_a_clause(statement: str) -> None:
    """Other names of its columns, filters inside, and columns as the host names them, pushed and at once."""
    clause = (
        "t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n, LAST(v) AS l PATTERN (a b+) DEFINE b AS v > PREV(v))"
    )
    text = statement.format(clause)
    rows = [{"ts": ts, "v": v} for ts, v in enumerate((1, 2, 1, 2, 3, 1, 5, 6, 7))]
    schema = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
    matcher = Matcher(text, schema)
    found = [row for each in rows for row in matcher.push(each)] + matcher.close()
    assert found == hamlet.sql(text, {"t": pa.Table.from_pylist(rows, schema)}).rows()


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("SELECT ** FROM {}", "FROM", "syntax error"),
        ("SELECT * FROM {})", ")", "syntax error"),
        ("SELECT * FROM NEXT( {}", "t", "at or near MATCH_RECOGNIZE"),
        ("SELECT * FROM {} WHERE 1 < no_such(n)", "no_such", "does not exist"),
        ("SUMMARIZE SELECT * FROM {}", "SUMMARIZE", "no SELECT"),
        ("SELECT 1", "SELECT", "one MATCH_RECOGNIZE"),
        ("SELECT * FROM u, {}", "SELECT", "and the text reads t, u"),
        ("SELECT * FROM (VALUES (1)) v(ts), LATERAL (SELECT v.ts + n FROM {})", "SELECT", "a join"),
    ],
)
def test_what_is_wrong_around_a_clause(text: str, place: str, message: str) -> None:
    text = text.format("t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS true)")
    with pytest.raises(hamlet.WorkloadError) as caught:
        Matcher(text, pa.schema([("ts", pa.int64())]))
    [said] = caught.value.diagnostics
    assert message in said.message
    assert text[said.span.start :].startswith(place)


def test_partitions_without_rows_are_forgotten() -> None:
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    clause = "PARTITION BY k ORDER BY t MEASURES {} PATTERN (a b) WITHIN 5 DEFINE a AS v > 5, b AS v < 3"
    rows = [{"t": place, "k": f"key {place // 3}", "v": place * 7 % 11} for place in range(10_000)]
    for measures, kept in (("COUNT(*) AS n", 10), ("MATCH_NUMBER() AS n", 4000)):
        text = f"SELECT * FROM s MATCH_RECOGNIZE ({clause.format(measures)})"
        expected = hamlet.sql(text, {"s": pa.Table.from_pylist(rows, schema)}).rows()
        for size in (1, 100, 5000):  # the last by the host
            matcher = Matcher(text, schema)
            found: list[dict[str, Any]] = []
            for place in range(0, len(rows), size):
                found += matcher.push(pa.Table.from_pylist(rows[place : place + size], schema))
            assert (matcher._direct is None) == (size == 5000)
            matcher._as_tables()
            assert len(matcher._tables.partitions) <= kept
            assert sorted(map(str, found + matcher.close())) == sorted(map(str, expected))


def test_columns_of_every_type_row_by_row() -> None:
    assert [compare_typed(seed, 5) for seed in (0, 2, 3)].count("direct") > 1


def test_decimals_of_dicts_keep_their_digits() -> None:
    schema = pa.schema(
        [("k", pa.decimal128(20, 0)), ("t", pa.int64()), ("u", pa.uint64()), ("v", pa.decimal128(38, 4))]
    )
    clause = "PARTITION BY k ORDER BY t MEASURES SUM(v) AS s, MAX(u) AS u PATTERN (a a)"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause} DEFINE a AS TRUE)"
    value, most = decimal.Decimal("12345678901234567890.1234"), 2**64 - 1
    rows = [{"k": 2**53 + place % 2, "t": place, "u": most, "v": value} for place in range(4)]
    columns = {name: [row[name] for row in rows] for name in schema.names}
    expected = [{"k": decimal.Decimal(2**53 + place), "s": value + value, "u": most} for place in range(2)]
    for events in (rows, columns):
        for direct in (True, False):
            matcher = Matcher(text, schema)
            assert matcher.goes_directly
            matcher.goes_directly = direct
            assert sorted(matcher.push(events) + matcher.close(), key=str) == expected
    matcher = Matcher(text, schema)
    with pytest.raises(hamlet.DataError, match=r"'v'.*would cause data loss"):
        matcher.push([{**rows[0], "v": decimal.Decimal("0.00001")}])


def test_nanoseconds_tell_partitions_apart() -> None:
    schema = pa.schema([("k", pa.timestamp("ns")), ("t", pa.int64())])
    clause = "PARTITION BY k ORDER BY t MEASURES COUNT(*) AS n PATTERN (a+) DEFINE a AS TRUE"
    text = f"SELECT n FROM t MATCH_RECOGNIZE ({clause})"
    for direct in (True, False):
        matcher = Matcher(text, schema)
        matcher.goes_directly = direct
        for place in range(6):
            matcher.push(pa.table({"k": pa.array([place % 2], pa.timestamp("ns")), "t": [place]}))
        assert matcher.close() == [{"n": 3}, {"n": 3}]
