"""Row patterns in SQL: what single clauses give, and the faces."""

from __future__ import annotations

import datetime
import io
import json
import math
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hamlet
from hamlet.checker import EvidenceError
from hamlet.checker import check as check_evidence
from hamlet.cli import main
from hamlet.input.formats import may_contain
from hamlet.input.live.table_lines import Columns, CsvLines, JsonLines
from hamlet.input.ordering import SortKey
from hamlet.matching import Matcher
from hamlet.patterns.match.explain import check
from hamlet.patterns.match.tenant import PatternTenant

PRICES = {"A": [10, 8, 7, 9, 12, 11, 13, 5, 6], "B": [5, 6, 4, 3, 5, 9]}
TICKS = [
    {"symbol": symbol, "ts": ts, "price": price} for symbol, prices in PRICES.items() for ts, price in enumerate(prices)
]


def rows(clause: str, table: Any = None, **options: Any) -> list[dict[str, Any]]:
    """The rows of one clause over the ticks."""
    text = f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})"
    return hamlet.sql(text, {"ticks": TICKS if table is None else table}, **options).rows()


def letters(text: str) -> list[dict[str, Any]]:
    return [{"i": place, "v": letter} for place, letter in enumerate(text)]


def labels(pattern: str, text: str, define: str = "", more: str = "") -> list[str]:
    """The labels of each match over a row of letters; a variable takes the letter of its own name."""
    names = sorted({letter for letter in pattern if letter.islower()})
    define = define or ", ".join(f"{each} AS v = '{each}'" for each in names)
    found = rows(
        f"ORDER BY i MEASURES STRING_AGG(CLASSIFIER(), '') AS w {more} PATTERN ({pattern}) DEFINE {define}",
        letters(text),
    )
    return [each["w"] or "" for each in found]


def test_count_of_nothing_counts_rows() -> None:
    clause = "ORDER BY ts MEASURES COUNT() AS n, FINAL COUNT() AS m PATTERN (a+) DEFINE a AS COUNT() < 3"
    assert rows(clause, pa.table({"ts": [1, 2, 3], "v": [1, 2, None]})) == [{"n": 2, "m": 2}, {"n": 1, "m": 1}]


def test_a_v_shape() -> None:
    found = rows(
        """PARTITION BY symbol ORDER BY ts
        MEASURES FIRST(ts) AS since, LAST(climb.ts) AS until, COUNT(dip.*) AS dips, SUM(dip.price) AS total,
                 ARRAY_AGG(climb.price) AS climbs, PREV(FIRST(dip.price), 2) AS before,
                 climb.price - onset.price AS gain
        PATTERN (onset dip+ climb+) DEFINE dip AS price < PREV(price), climb AS price > PREV(price)"""
    )
    assert found[0] == {
        "symbol": "A",
        "since": 0,
        "until": 4,
        "dips": 2,
        "total": Decimal(15),
        "climbs": [9, 12],
        "before": None,
        "gain": 2,
    }
    assert [(each["symbol"], each["since"], each["until"]) for each in found] == [("A", 0, 4), ("A", 6, 8), ("B", 1, 5)]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a+ b", "aabab", ["aab", "ab"]),
        ("a+?", "aaa", ["a", "a", "a"]),
        ("a{2}", "aaaaa", ["aa", "aa"]),
        ("a{,2} b", "aaab", ["aab"]),
        ("(a | a b) c", "abc", ["abc"]),
        ("PERMUTE(a, b, c)", "cabbca", ["cab", "bca"]),
        ("^ a", "aa", ["a"]),
        ("a $", "aa", ["a"]),
        ("(a?)*", "aab", ["aa", ""]),
        ("(() | a)*", "aa", ["", ""]),
        ("((a?)+?){2} b", "aab", ["aab"]),
        ("a (b | ()) c?", "abcac", ["abc", "ac"]),
        ("a?? b", "ab", ["ab"]),
    ],
)
def test_preference(pattern: str, text: str, expected: list[str]) -> None:
    assert labels(pattern, text) == expected


def test_conditions_over_labels() -> None:
    found = rows(
        """PARTITION BY symbol ORDER BY ts MEASURES FIRST(ts) AS since, COUNT(*) AS n
        PATTERN (onset dip+ climb+) DEFINE dip AS price < PREV(price),
        climb AS climb.price > LAST(dip.price) AND COUNT(climb.*) < 2"""
    )
    assert [(each["since"], each["n"]) for each in found] == [(0, 4), (4, 3), (1, 4)]


def test_unmatched_rows_and_empty_matches() -> None:
    shown = rows("ORDER BY i MEASURES COUNT(*) AS n, MATCH_NUMBER() AS m ALL ROWS PER MATCH WITH UNMATCHED ROWS "
                 "PATTERN (a b) DEFINE a AS v = 'a', b AS v = 'b'", letters("xabx"))  # fmt: skip
    assert [(each["v"], each["n"], each["m"]) for each in shown] == [
        ("x", None, None),
        ("a", 1, 1),
        ("b", 2, 1),
        ("x", None, None),
    ]
    empty = (
        "ORDER BY i MEASURES COUNT(*) AS n, MATCH_NUMBER() AS m ALL ROWS PER MATCH {} PATTERN (a*) DEFINE a AS v = 'a'"
    )
    assert [(each["n"], each["m"]) for each in rows(empty.format(""), letters("xa"))] == [(0, 1), (1, 2)]
    assert [(each["n"], each["m"]) for each in rows(empty.format("OMIT EMPTY MATCHES"), letters("xa"))] == [(1, 2)]


def test_all_errors_at_once() -> None:
    with pytest.raises(hamlet.WorkloadError) as caught:
        rows("ORDER BY i, MEASURES FIRST(SUM(v)) AS x, v PATTERN (a** b{3,2}) DEFINE c AS true, a AS FINAL LAST(v) = 1")
    said = [each.message for each in caught.value.diagnostics]
    for part in ("ends with a comma", "'*'", "cannot stand inside", "a measure needs", "variable 'c'", "FINAL cannot"):
        assert any(part in each for each in said), (part, said)


def test_an_error_of_the_host_stands_at_its_place() -> None:
    with pytest.raises(hamlet.WorkloadError) as caught:
        rows("ORDER BY ts MEASURES FIRST(pric) AS f PATTERN (a b) DEFINE b AS priced > PREV(price)")
    said = str(caught.value)
    assert '"pric"' in said
    assert '"priced"' in said


def test_skipping_to_the_first_row_is_an_error() -> None:
    clause = "PARTITION BY symbol ORDER BY ts AFTER MATCH SKIP TO a PATTERN (a b) DEFINE b AS true"
    with pytest.raises(hamlet.DataError, match="symbol = A, a is the match's first row"):
        rows(clause)


def test_files_are_closed_to_statements() -> None:
    for text in ("SELECT * FROM read_csv('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x.csv'", "ATTACH '/tmp/x.db'"):
        with pytest.raises(hamlet.HamletError):
            hamlet.sql(text, {})


def test_types_pass_through() -> None:
    table = pa.table(
        {
            "i": pa.array([1, 2]),
            "d": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
            "t": pa.array([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)] * 2, pa.timestamp("us", "UTC")),
            "n": pa.array([{"x": [1, 2]}, None], pa.struct([("x", pa.list_(pa.int64()))])),
        }
    )
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS true)"
    found = hamlet.sql(text, {"t": table}).table()
    assert found.schema.types == table.schema.types
    assert found.to_pylist() == table.to_pylist()


def test_an_enum_keeps_its_order() -> None:
    with duckdb.connect() as other:
        values = "(1, 'high'), (2, 'it''s low'), (3, 'mid'), (4, NULL)"
        kind = "ENUM('it''s low', 'mid', 'high')"
        relation = other.sql(f'SELECT i, CAST(s AS {kind}) AS "s s" FROM (VALUES {values}) v(i, s)')
        measures = 'ARRAY_AGG(i) AS l, MAX("s s") AS m, typeof("s s") AS t'
        clause = f'ORDER BY "s s" MEASURES {measures} PATTERN (a+) DEFINE a AS true'
        text = f'SELECT * FROM "T t" MATCH_RECOGNIZE ({clause})'
        assert hamlet.sql(text, {"T t": relation}).rows() == [{"l": [2, 3, 1, 4], "m": "high", "t": kind}]


def test_nested_clauses_and_with() -> None:
    text = """
    WITH late AS (SELECT * FROM ticks WHERE ts > 1),
         runs AS (SELECT * FROM late MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n
                  PATTERN (a b+) DEFINE b AS price > PREV(price)) AS m)
    SELECT * FROM runs MATCH_RECOGNIZE (ORDER BY symbol, n MEASURES SUM(n) AS total PATTERN (x+) DEFINE x AS true)
    """
    assert hamlet.sql(text, {"ticks": TICKS}).rows() == [{"total": Decimal(10)}]


def test_random_clauses_agree_with_the_oracle() -> None:
    from tests.random_patterns import DIALECTS, KEYWORDS, Generator, outcome

    shown = 0
    for seed in range(25):
        case = Generator(seed, labels=seed % 3 > 0).case()
        if seed % 2:
            case = case.renamed(KEYWORDS[seed % len(KEYWORDS)])
        found, expected = outcome(case, DIALECTS[seed // 2 % len(DIALECTS)])
        assert found == expected, f"seed {seed}\n{case.sql}\n{case.rows}"
        shown += bool(expected)
    assert shown > 8


def test_rows_of_all_pushes_are_those_of_a_run() -> None:
    from tests.random_patterns import Generator, pushed

    shown = 0
    for seed in range(8):
        case = Generator(seed, labels=seed % 3 > 0).case()
        if "$" in case.sql:
            continue
        found, expected = pushed(case, seed)
        assert found == expected, f"seed {seed}\n{case.sql}\n{case.rows}"
        shown += bool(expected)
    assert shown > 1


def matcher(clause: str, **options: Any) -> Any:
    schema = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
    return hamlet.matching.Matcher(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", schema, **options)


def test_steps_that_count_agree_with_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    from hamlet.patterns.automaton import compile as automaton
    from tests.random_patterns import Generator, outcome, pushed

    monkeypatch.setattr(automaton, "FAR", 0)  # every quantifier of a variable counts
    for seed in range(500, 515):
        found, expected = outcome(Generator(seed, labels=False).case())
        assert found == expected, seed
        case = Generator(seed, labels=False).case()
        if "$" not in case.sql:
            found, expected = pushed(case, seed)
            assert found == expected, seed


@pytest.mark.parametrize(
    ("time", "within", "said", "hint"),
    [
        ("2024-03-05 10:00:00", "INTERVAL '2' SECOND", "ts, is VARCHAR", "ORDER BY CAST(ts AS TIMESTAMP)"),
        ("2024-03-05 10:00:00", "2", "ts, is VARCHAR", "ORDER BY CAST(ts AS TIMESTAMP)"),
        (7, "INTERVAL '2' SECOND", "WITHIN is an INTERVAL, and", "a number there, in the unit of that column"),
        (datetime.datetime(2024, 3, 5), "2", "WITHIN is a number, and", "WITHIN INTERVAL '2' SECOND"),
    ],
)
def test_within_measures_what_order_by_holds(time: Any, within: str, said: str, hint: str) -> None:
    clause = f"ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) WITHIN {within} DEFINE a AS v > 0"
    with pytest.raises(hamlet.WorkloadError) as caught:
        rows(clause, [{"ts": time, "v": 1}])
    assert said in str(caught.value)
    assert hint in str(caught.value)
    if isinstance(time, str):  # what the hint says
        clause = clause.replace("BY ts", "BY CAST(ts AS TIMESTAMP)").replace("WITHIN 2", "WITHIN INTERVAL '2' SECOND")
        assert rows(clause, [{"ts": time, "v": 1}]) == [{"n": 1}]


@pytest.mark.parametrize("pattern", ["a{1,100000} b", "a{1,100000}? b", "b a{,100000}", "a{70,} b?"])
@pytest.mark.parametrize("within", ["", "WITHIN 150"])
def test_counting_far_costs_no_more_than_counting_near(
    pattern: str, within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hamlet.patterns.automaton import compile as automaton

    clause = f"ORDER BY i MEASURES COUNT(*) AS n PATTERN ({pattern}) {within} DEFINE a AS v >= 1, b AS v = 2"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    table = pa.table({"i": range(30_000), "v": [2 if place % 99 == 98 else 1 for place in range(30_000)]})
    assert len(hamlet.sql(text, {"t": table}))
    some = table.slice(50, 300)
    counted = hamlet.sql(text, {"t": some}).rows()
    monkeypatch.setattr(automaton, "FAR", 2**62)
    assert counted == hamlet.sql(text.replace("100000", "400"), {"t": some}).rows()


def test_a_match_is_given_once_no_later_row_can_change_it() -> None:
    greedy = matcher("ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) WITHIN 10 DEFINE a AS v > 0")
    assert greedy.push([{"k": "x", "ts": 1, "v": 1}, {"k": "x", "ts": 5, "v": 1}]) == []
    assert greedy.advance(11) == []  # a row at 11 may still come
    assert greedy.held["rows"] == 2
    assert greedy.advance(12) == [{"n": 2}]
    assert greedy.held["rows"] == 0
    assert greedy.close() == []


def test_late_rows() -> None:
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS v > 0"
    strict = matcher(clause)
    strict.push([{"k": "x", "ts": 5, "v": 1}])
    with pytest.raises(hamlet.DataError, match="late"):
        strict.push([{"k": "x", "ts": 4, "v": 1}])
    loose = matcher(clause, late="drop")
    loose.push([{"k": "x", "ts": 5, "v": 1}, {"k": "x", "ts": 4, "v": 1}])
    assert loose.stats["late_events"] == 1


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("ORDER BY ts DESC MEASURES 1 AS x PATTERN (a) DEFINE a AS true", "descends"),
        ("ORDER BY ts MEASURES 1 AS x PATTERN (a $) DEFINE a AS true", "end of the partition"),
    ],
)
def test_what_a_stream_has_not_is_refused(clause: str, said: str) -> None:
    with pytest.raises(hamlet.WorkloadError, match=said):
        matcher(clause)


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        *((each, "duckdb") for each in ("at", "order", "end", "desc", "select", "true", "pattern", "Größe", "within")),
        *(("end", each) for each in ("trino", "snowflake", "oracle", "flink", "bigquery", "spark")),
    ],
)
def test_columns_behind_a_variable_may_be_keywords(name: str, dialect: str) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], name: [5, 3, 7, 8]})
    measures = f"b.{name} AS m, SUM(b.{name}) AS s, FIRST(b.{name}) AS f, PREV(b.{name}) AS p"
    define = f"b AS b.{name} > a.{name} AND u.{name} + 1 > PREV(b.{name})"
    clause = f"ORDER BY ts MEASURES {measures} PATTERN (a b+) SUBSET u = (a, b) DEFINE {define}"
    assert rows(clause, table, dialect=dialect) == [{"m": 8, "s": 15, "f": 7, "p": 7}]


def test_quoted_columns_behind_a_variable() -> None:
    table = pa.table({"ts": [1, 2], 'a "b".c': [5, 3]})
    clause = 'ORDER BY ts MEASURES b."a ""b"".c" AS m PATTERN (a b) DEFINE b AS b."a ""b"".c" < a."a ""b"".c"'
    assert rows(clause, table) == [{"m": 3}]


@pytest.mark.parametrize(
    "define",
    [
        "a AS SUM(a.v) < 100000, c AS SUM(c.v) < 100000, b AS SUM(a.v) * 7 = SUM(c.v) + 100000",
        "a AS SUM(a.v) < 100000, b AS MEDIAN(a.v) > 100000",
    ],
)
def test_too_many_ways_of_labelling_are_an_error(define: str) -> None:
    clause = f"PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n PATTERN ((a|c)+ b) DEFINE {define}"
    table = pa.table({"k": ["x"] * 200, "i": range(200), "v": [place * 7919 % 1009 for place in range(200)]})
    said = r"line 1, column .* the pattern '\(a\|c\)\+ b' took more than .* k = x: .*--max-steps"
    with pytest.raises(hamlet.DataError, match=said):
        rows(clause, table, max_steps=20_000)


def test_labellings_that_sums_do_not_tell_apart_are_tried_once() -> None:
    clause = "ORDER BY i MEASURES COUNT(*) AS n PATTERN ((a|c)+ b) DEFINE a AS SUM(a.v) < 99, b AS SUM(a.v) > 99"
    assert rows(clause, pa.table({"i": range(100), "v": [1] * 100})) == []


@pytest.mark.parametrize("pattern", ["a+ b", "(a+)+ b", "(a|a)* b", "(a*)* b", "a? a? a? a? a a a a b"])
def test_hostile_patterns_are_linear(pattern: str) -> None:
    table = pa.table({"i": range(100_000), "v": [1] * 100_000})
    assert rows(f"ORDER BY i MEASURES COUNT(*) AS n PATTERN ({pattern}) DEFINE a AS v = 1, b AS v > 1", table) == []


def test_fields_of_records_behind_a_variable() -> None:
    table = pa.table({"i": range(3), "s": [{"x": place, "y": [place]} for place in range(3)]})
    clause = "ORDER BY i MEASURES a.s.x AS x, SUM(b.s.x) AS s PATTERN (a b+) DEFINE b AS b.s.x > a.s.x AND a.s.y[1] < 9"
    assert rows(clause, table) == [{"x": 0, "s": 3}]


@pytest.mark.parametrize("column", ["time", "type", "value", "year", '"select"'])
def test_a_column_named_like_a_keyword(column: str) -> None:
    clause = f"ORDER BY ts MEASURES FIRST({column}) AS x PATTERN (a+) DEFINE a AS {column} > PREV({column})"
    check(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})")


@pytest.mark.parametrize("constant", ["NULL", "true", "DATE '2024-03-05'", "CAST(1 AS INTEGER)", "1::INTEGER"])
def test_constants_are_no_columns(constant: str) -> None:
    clause = f"ORDER BY ts MEASURES FIRST({constant}) AS x PATTERN (a) DEFINE a AS true"
    with pytest.raises(hamlet.WorkloadError, match="reads no column"):
        check(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})")


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("ORDER BY ts MEASURES LAST(1) AS x PATTERN (a) DEFINE a AS true", ["1:59: 'LAST(1)' reads no column"]),
        ("ORDER BY ts PATTERN (a) DEFINE a AS true", ["1:21: the clause gives no column: ONE ROW PER MATCH shows"]),
        ("ORDER BY ts MEASURES 1 AS x SEEK PATTERN (a) DEFINE a AS true", ["1:66: SEEK is for patterns in windows"]),
        ('ORDER BY ts MEASURES 1 AS x PATTERN (a "$") DEFINE a AS true', ['1:77: "$" is no name of a variable']),
        ("ORDER BY ts MEASURES PREV(v, 3000000000) AS x PATTERN (a) DEFINE a AS true", ["is at most 2,147,483,647"]),
        (
            "ORDER BY ts MEASURES FIRST([1].list_transform(lambda v: v)) AS x PATTERN (a) DEFINE a AS true",
            ["no column"],
        ),
        (
            "ORDER BY ts MEASURES SUM(list_transform([1], lambda v: v + a.v)[1]) AS x PATTERN (a) DEFINE a AS true",
            ["1:99: a parameter of the lambda hides the column v"],
        ),
        ("ORDER BY ts MEASURES FIRST(*) AS x PATTERN (a) DEFINE a AS true", ["'FIRST(*)' reads no column"]),
        ("ORDER BY ts MEASURES SUM(a.*) AS x PATTERN (a) DEFINE a AS true", ["counted alone"]),
        ("ORDER BY ts MEASURES FINAL FINAL LAST(v) AS x PATTERN (a) DEFINE a AS true", ["1:59: RUNNING or FINAL"]),
        ("ORDER BY ts MEASURES EXISTS (SELECT 1) AS x PATTERN (a) DEFINE a AS true", ["1:59: a subquery"]),
        ("ORDER BY SUM(v) MEASURES 1 AS x PATTERN (a) DEFINE a AS true", ["1:47: SUM reads a match"]),
        (
            "ORDER BY ts MEASURES 1 AS x PATTERN (a) DEFINE a AS v",
            ["a condition is true, false or NULL, and this is BIGINT"],
        ),
        (
            "ORDER BY ts MEASURES 1 AS x PATTERN (a b) DEFINE b AS MEDIAN(a.v)",
            ["and this is DOUBLE"],
        ),
        ("ORDER BY ts MEASURES 1 AS x PATTERN (a b) DEFINE b AS MEDIAN(a.none) > 1", ['"none" not found']),
        (
            "PARTITION BY p ORDER BY o MEASURES m AS x PATTERN (a b c) DEFINE b AS d > 1, c AS e > LAST(b.v)",
            ['"p"', '"o"', '"d"', '"e"', '"m"'],
        ),
        ("ORDER BY ts MEASURES 1 AS x PATTERN (a) DEFINE a AS v > ()PREV(v)", ["near 'PREV(v, 1)'"]),
        (
            "ORDER BY ts MEASURES 1 AS x PATTERN (a b) DEFINE b AS v > RUNING MAX(b.v)",
            ["1:103: syntax error at or near 'MAX(b.v)'"],
        ),
        ("ORDER BY ts MEASURES CAST(1 AS FIRST(v)) AS x PATTERN (a) DEFINE a AS true", ["1:69: Type with name 'FIRST"]),
        (
            "ORDER BY ts MEASURES a.v.x AS x PATTERN (a) DEFINE a AS true",
            ["extract field 'x' from expression 'a.v'"],
        ),
        ("ORDER BY ts MEASURES 1 AS x PATTERN (a | | b) DEFINE b AS true", ["expected a variable, not '|'"]),
    ],
)
def test_mistakes_are_said_once_and_at_their_place(clause: str, said: list[str]) -> None:
    with pytest.raises(hamlet.WorkloadError) as caught:
        rows(clause, pa.table({"ts": [1], "v": [1]}))
    text = str(caught.value)
    for each in said:
        assert each in text, text
    assert len(caught.value.diagnostics) == (len(said) if clause.startswith("PARTITION") else 1), text


def test_the_source_has_a_name_in_measures_and_define() -> None:
    clause = """ORDER BY s.ts MEASURES s.order AS last, SUM(s.order) AS total, FIRST(s.order + s.ts) AS first
    PATTERN (a+) DEFINE a AS s.order > 4 AND s.order > PREV(s.ts)"""
    text = f"SELECT * FROM (SELECT * FROM t) AS s MATCH_RECOGNIZE ({clause})"
    table = pa.table({"ts": [0, 1, 2, 3], "order": [9, 5, 6, 7]})
    expected = [{"last": 7, "total": 18, "first": 6}]
    assert hamlet.sql(text, {"t": table}).rows() == expected
    matcher = hamlet.matching.Matcher(text.replace("(SELECT * FROM t) AS s", "s"), table.schema)
    found = [row for each in table.to_pylist() for row in matcher.push([each])]
    assert [*found, *matcher.close()] == expected


def test_parameters_of_lambdas_hide_other_names() -> None:
    table = pa.table({"i": [1, 2], "xs": [[1, 2], [3]], "v": [10, 20], "r": [[{"v": 1}], [{"v": 2}]]})
    clause = """ORDER BY i MEASURES SUM(list_sum(list_transform(a.xs, lambda v: v + a.i))) AS s,
    FIRST(list_transform(a.r, lambda a: a.v)) AS f, list_transform(xs, lambda w, i: w + v + b.i) AS l
    PATTERN (a b?) DEFINE b AS list_transform([i], lambda a, x: a + x)[1] = 3"""
    assert rows(clause, table) == [{"s": 5, "f": [1], "l": [25]}]


def test_the_source_has_a_name_in_partition_and_order() -> None:
    text = "SELECT * FROM (SELECT * FROM t) AS s MATCH_RECOGNIZE (PARTITION BY s.k ORDER BY s.ts % 2, s.ts, s.ts DESC"
    table = pa.table({"k": ["x"] * 3, "ts": [1, 2, 3]})
    found = hamlet.sql(f"{text} ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS true)", {"t": table})
    assert [tuple(row.items()) for row in found.rows()][:1] == [(("k", "x"), ("ts", 2), ("ts_1", 2))]


@pytest.mark.parametrize("name", ["at", "table", "check", "offset", 'a"b', "desc"])
def test_columns_that_the_host_reserves(name: str) -> None:
    shown = name if name in ("at", "table", "check", "offset") else '"' + name.replace('"', '""') + '"'
    table = pa.table({"ts": [1, 2, 3], name: [5, 3, 7]})
    clause = f"""ORDER BY {shown} MEASURES FIRST({shown}) AS f, {shown} + 1 AS g,
    ARRAY_AGG({shown} ORDER BY {shown} DESC) AS l
    PATTERN (a+) DEFINE a AS {shown} > 0 AND coalesce(PREV({shown}), 0) < {shown}"""
    assert rows(clause, table) == [{"f": 3, "g": 8, "l": [7, 5, 3]}]


def test_any_number_of_rounds() -> None:
    assert labels("a{,} b", "aab") == labels("a* b", "aab")


def test_the_page_draws_the_automaton(tmp_path: Path) -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (MEASURES 1 AS x PATTERN (^ a (b+ | {- c -})? d)
    DEFINE b AS v > PREV(v), c AS c.v > LAST(b.v));
    SELECT * FROM t MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN ((x x){1,150}) DEFINE x AS v < 1)"""
    (tmp_path / "q.sql").write_text(text)
    assert main(["explain", str(tmp_path / "q.sql"), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    [graph] = json.loads(re.search(r'"graphs": ?(\[.*\])', page)[1])  # type: ignore[index]
    assert [each["title"] for each in graph["states"]] == ["", "a", "b", "c", "d"]
    assert {(each["source"], each["target"], *each["label"]) for each in graph["arrows"]} == {
        (0, 1, "^"),
        (1, 2, "1"),
        (1, 3, "2"),
        (1, 4, "3"),
        (2, 2, "1"),
        (2, 4, "2"),
        (3, 4),
    }
    for part in (
        "reads labels, judged during the search",
        "a column of the host",
        "300 states, too many",
        "unbounded: b+",
    ):
        assert part in page


@pytest.mark.parametrize("dialect", ["duckdb", "snowflake"])
def test_lag_and_lead_are_other_names(dialect: str) -> None:
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES LEAD(LAST(v)) AS later, lag(FIRST(v), 1) AS before
    PATTERN (up+) DEFINE up AS v > LAG(v))"""
    events = {"t": [{"ts": ts, "v": v} for ts, v in enumerate([2, 3, 0, 5, 6])]}
    found = hamlet.sql(text, events, dialect=dialect).rows()
    assert found == [{"later": 0, "before": 2}, {"later": None, "before": 0}]


def test_stats_count_what_was_read_and_found() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (u+) DEFINE u AS v > 1)"
    events = [{"ts": ts, "v": v} for ts, v in enumerate([2, 3, 0, 5, 6])]
    one = hamlet.sql(f"SELECT * FROM t {clause}", {"t": events})
    assert one.stats == {"events": 5, "matches": 2, "rows": 2}
    two = hamlet.sql(f"SELECT * FROM t {clause}; SELECT COUNT(*) AS c FROM t {clause}", {"t": events})
    assert two.stats == {"events": 5, "matches": 4, "rows": 3}  # the rows are put in order once


@pytest.mark.parametrize(
    "call",
    [
        "LAST(DISTINCT v)",
        "LAST(all v)",
        "PREV(v, 1 IGNORE NULLS)",
        "FIRST(v) respect nulls",
        "LAST(v ORDER BY i)",
        "LAST(v) FILTER (WHERE v > 1)",
        "CLASSIFIER() FILTER (WHERE true)",
        "LENGTH(PREV(CLASSIFIER()) FILTER (WHERE true))",
    ],
)
def test_what_is_for_aggregates_is_told(call: str) -> None:
    for clause in (
        f"MEASURES {call} AS x PATTERN (a) DEFINE a AS true",
        f"MEASURES 1 AS x PATTERN (a) DEFINE a AS {call} = 1",
    ):
        with pytest.raises(hamlet.WorkloadError, match="is for aggregates, not for") as caught:
            rows(f"ORDER BY i {clause}", pa.table({"i": [1], "v": [1]}))
        assert len(caught.value.diagnostics) == 1
    listed = rows(
        "ORDER BY i MEASURES LAST(filter(l, x -> x > 1)) AS x PATTERN (a) DEFINE a AS LAST(v) IS NOT NULL",
        pa.table({"i": [1], "v": [1], "l": [[1, 2]]}),
        dialect="spark",
    )
    assert listed == [{"x": [2]}]


def test_a_clause_behind_a_join() -> None:
    text = "SELECT * FROM a JOIN b ON a.x = b.x MATCH_RECOGNIZE (MEASURES 1 AS n PATTERN (a) DEFINE a AS true)"
    with pytest.raises(hamlet.WorkloadError, match="not behind a join"):
        hamlet.sql(text, {"a": [{"x": 1}], "b": [{"x": 1}]})


def test_the_farthest_offset_reads_nothing() -> None:
    far = 2**31 - 1
    measures = f"LAST(v, {far}) AS a, PREV(v, {far}) AS b, NEXT(FIRST(v, {far}), {far}) AS c"
    clause = (
        f"ORDER BY ts MEASURES {measures} PATTERN (a) DEFINE a AS PREV(v, {far}) IS NULL AND FIRST(v, {far}) IS NULL"
    )
    assert rows(clause, pa.table({"ts": [1], "v": [2]})) == [{"a": None, "b": None, "c": None}]


@pytest.mark.parametrize(
    ("measure", "condition"),
    [
        ("1", "unnest(l) > 1"),
        ("1", "COUNT(*) > 3 OR unnest(l) > 1"),
        ("LAST(unnest(l))", "true"),
        ("SUM(unnest(l))", "v"),
    ],
)
def test_several_values_for_a_row_are_refused(measure: str, condition: str) -> None:
    clause = f"ORDER BY v MEASURES {measure} AS x PATTERN (a+) DEFINE a AS {condition}"
    table = pa.table({"v": [1, 2, 3], "l": [[1, 2], [3], []]})  # as many values as rows
    with pytest.raises(hamlet.WorkloadError, match="unnest gives several values"):
        rows(clause, table)
    assert [each["x"] for each in rows("ORDER BY v MEASURES unnest(l) AS x PATTERN (a) DEFINE a AS true", table)] == [
        1,
        2,
        3,
    ]


def test_a_macro_of_all_rows_is_no_condition() -> None:
    text = """CREATE MACRO total(x) AS sum(x);
    SELECT * FROM t MATCH_RECOGNIZE (ORDER BY v MEASURES 1 AS x PATTERN (a+) DEFINE a AS total(v) > 1)"""
    with pytest.raises(hamlet.WorkloadError, match=r"2:90: a condition has one value for each row") as caught:
        hamlet.sql(text, {"t": [{"v": 1}, {"v": 2}]})
    assert len(caught.value.diagnostics) == 1


def test_an_aggregate_in_a_macro_is_told_without_names_that_nobody_wrote() -> None:
    clause = "ORDER BY v MEASURES total(v) AS x PATTERN (a+) DEFINE a AS {}"
    for condition in ("true", "total(v) > 1"):
        text = f"CREATE MACRO total(x) AS sum(x); SELECT * FROM t MATCH_RECOGNIZE ({clause.format(condition)})"
        with pytest.raises(hamlet.WorkloadError, match="inside a macro") as caught:
            hamlet.sql(text, {"t": [{"v": 1}]})
        assert "__hamlet" not in str(caught.value)


def test_columns_of_one_name_are_told_apart() -> None:
    clause = "MATCH_RECOGNIZE (ORDER BY i MEASURES COUNT(*) AS n PATTERN (a+) DEFINE a AS i < {})"
    text = f"SELECT x.n, y.n FROM t {clause.format(3)} x, t {clause.format(9)} y"
    assert hamlet.sql(text, {"t": [{"i": each} for each in range(9)]}).rows() == [{"n": 3, "n_1": 9}]


def test_functions_of_other_dialects() -> None:
    """Lists in an order behind them, sets, and a time without a fraction, as their systems read them."""
    rows = [{"i": place, "v": value, "ts": datetime.datetime(2024, 1, 1, place)} for place, value in enumerate("cabb")]
    for dialect, measure, expected in (
        ("trino", "listagg(a.v, '-') WITHIN GROUP (ORDER BY a.v DESC)", "c-b-b-a"),
        ("oracle", "LISTAGG(v, '') WITHIN GROUP (ORDER BY v)", "abbc"),
        ("snowflake", "ARRAY_AGG(v) WITHIN GROUP (ORDER BY v)", ["a", "b", "b", "c"]),
        ("spark", "size(collect_set(a.v))", 3),
        ("oracle", "CASE WHEN LAST(ts) > TIMESTAMP '2024-01-01 02:00:00' THEN 1 END", 1),
        ("oracle", "TO_CHAR(FIRST(ts, 1), 'YYYY/MM/DD HH24:MI')", "2024/01/01 01:00"),
        ("bigquery", "FORMAT('%d', a.i)", "3"),
    ):
        text = f"SELECT x FROM t MATCH_RECOGNIZE (ORDER BY i MEASURES {measure} AS x PATTERN (a+) DEFINE a AS i >= 0)"
        assert hamlet.sql(text, {"t": rows}, dialect=dialect).rows() == [{"x": expected}], (dialect, measure)


@pytest.mark.parametrize(
    ("dialect", "measure", "place"),
    [
        ("oracle", "UPPER(TO_CHAR(LAST(i), '999'))", "TO_CHAR"),
        ("oracle", "TO_CHAR(LAST(ts), 'DD-MON-YY')", "TO_CHAR"),
        ("bigquery", "ARRAY_AGG(i LIMIT 3)", "LIMIT"),
        ("trino", "1 + approx_distinct(i, 0.1)", "approx_distinct"),
        ("duckdb", "1 + sum(no_such(i))", "no_such"),
        ("flink", "INTERVAL '1' DAY() < i", "("),  # which sqlglot fails at
    ],
)
def test_what_the_host_cannot_say_is_not_left_out(
    dialect: str, measure: str, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [{"i": 1, "ts": datetime.datetime(2024, 1, 1)}]
    text = f"SELECT /*+ a hint */ x FROM t MATCH_RECOGNIZE (MEASURES {measure} AS x PATTERN (a) DEFINE a AS i > 0)"
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.sql(text, {"t": rows}, dialect=dialect)
    [said] = caught.value.diagnostics
    assert said.span is not None
    assert text[said.span.start :].startswith(place)
    assert not caplog.records


def test_names_that_are_kept_are_refused() -> None:
    """Rather than a wrong sum: columns of these names stand beside those of the table."""
    for name in ("__hamlet_at", "__HAMLET_row"):
        with pytest.raises(hamlet.WorkloadError, match=f"column '{name}' has a name that is kept"):
            rows(f"MEASURES SUM({name}) AS s PATTERN (a) DEFINE a AS true", [{"i": 1, name: 2}])


def test_within_of_doubles_is_a_difference() -> None:
    """0.2 + 0.1 is 0.30000000000000004, which is more than 0.1 later than 0.2; batches, pushes and evidence agree."""
    chance = random.Random(7)
    text = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES FIRST(ts) AS f, COUNT(*) AS n
              AFTER MATCH SKIP TO NEXT ROW PATTERN (a+) WITHIN 0.3 DEFINE a AS true)"""
    rows = [{"k": chance.randrange(2), "ts": chance.randrange(30) * 0.1} for _ in range(60)]
    rows += [{"k": 0, "ts": None}, {"k": 1, "ts": 1e20}]
    times = [sorted(row["ts"] for row in rows if row["k"] == k and row["ts"] is not None) for k in (0, 1)]
    expected = [
        {"k": k, "f": first, "n": sum(last - first <= 0.3 for last in times[k][place:])}
        for k in (0, 1)
        for place, first in enumerate(times[k])
    ]
    assert any(row["n"] != sum(row["f"] <= last <= row["f"] + 0.3 for last in times[row["k"]]) for row in expected)
    found = hamlet.sql(text, {"t": rows})
    assert found.rows() == expected
    ordered = sorted((row for row in rows if row["ts"] is not None), key=lambda row: row["ts"])
    schema = pa.schema([("k", pa.int64()), ("ts", pa.float64())])
    with hamlet.matching.Matcher(text, schema) as matcher:
        pushed = [*matcher.push(ordered[:30]), *matcher.advance(ordered[30]["ts"]), *matcher.push(ordered[30:])]
        pushed += matcher.close()
    assert sorted(pushed, key=str) == sorted(expected, key=str)
    hamlet.checker.check(text, {"t": rows}, found.why(expected[0]))


def test_json_has_the_types_of_csv(tmp_path: Path) -> None:
    """Times of several precisions are times, integers of both signs 64 bits wide; what does not fit stays as it is."""
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts
              MEASURES LAST(ts) AS ts, LAST(i) AS i, typeof(LAST(ts)) AS a, typeof(LAST(i)) AS b
              PATTERN (a+) DEFINE a AS true)"""

    def last(*rows: tuple[Any, Any]) -> list[Any]:
        lines = [json.dumps({"ts": ts, "i": i}) for ts, i in rows]
        (tmp_path / "t.jsonl").write_text("\n".join(lines))
        (found,) = hamlet.sql(text, {"t": tmp_path / "t.jsonl"}).rows()
        return list(found.values())

    late = datetime.datetime(2024, 1, 1, 10, 0, 1, 500000)
    mixed = ("2024-01-01T10:00:01.5", -1), ("2024-01-01T10:00:01", None), ("2024-01-01", 2)
    assert last(*mixed) == [late, -1, "TIMESTAMP", "BIGINT"]
    assert last((None, -(2**63)), ("2024-13-01T10:00:01.5", 2**63 - 1)) == [None, -(2**63), "VARCHAR", "BIGINT"]
    assert last(*mixed * 40, ("then", 2)) == ["then", 2, "VARCHAR", "BIGINT"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("3", "attribute 'v' is 3, but a string in line 1; an attribute must keep one type"),
        ('{"a": "x"}', 'attribute \'v\' is {"a": "x"}, but a string in line 1; an attribute must keep one type'),
        (str(2**64), "attribute 'v' holds an integer of 65 bits, and Hamlet reads integers of 64 bits (signed)"),
        ("1e400", "the line holds a number beyond the doubles"),
        ('1, "v": 2', 'the line has "v" twice'),
    ],
)
def test_json_that_a_pipe_refuses_is_refused_in_files(
    value: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB by itself takes what it can: values of several kinds as texts of JSON, numbers out of range as NULL."""
    kind = "1" if value[0] in "1" else '"x"'
    lines = f'{{"ts": 1, "v": {kind}}}\n{{"ts": 2, "v": {value}}}\n'
    (tmp_path / "t.jsonl").write_text(lines)
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES a.v AS v PATTERN (a) DEFINE a AS true)"
    with pytest.raises(hamlet.DataError) as told:
        hamlet.sql(text, {"t": tmp_path / "t.jsonl"})
    assert str(told.value) == f"{tmp_path}/t.jsonl:2: {said}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["sql", text, "--input", "-", "--input-format", "json"]) == 2
    assert "standard input:2: " in capsys.readouterr().err


def test_objects_of_json_that_differ_are_one_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far apart in a file they stand."""
    values = [{"a": 1, "l": []}, {"b": "x", "l": [1]}, {"a": 1.5, "t": "2024-01-01"}, {"t": "x", "c": [{"d": 1}]}]
    lines = [json.dumps({"ts": ts, "v": value}) for ts, value in enumerate(values)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES a.v AS v PATTERN (a) DEFINE a AS true)"
    found = []
    for size in (1 << 23, 40):
        monkeypatch.setattr("hamlet.input.jsonfile._CHUNK", size)
        found.append([row["v"] for row in hamlet.sql(text, {"t": tmp_path / "t.jsonl"}).rows()])
        assert [{k: v for k, v in row.items() if v is not None} for row in found[-1]] == values
    assert found[0] == found[1]


def test_numbers_of_csv_may_be_missing(tmp_path: Path) -> None:
    """NA and the like are NULL in columns of numbers, and texts in those of texts; nothing else fits any expression."""
    head, *lines = "t,i,x,s,n,e", "1,NA,1.5,007,NA,", "2,-7,NULL,NA,NA,", "3,2,1e3,x,NA,"
    (tmp_path / "t.csv").write_text("\n".join([head, *lines]))
    found = hamlet.sql("SELECT *, typeof(i) AS a, typeof(x) AS b FROM t ORDER BY t", {"t": tmp_path / "t.csv"}).rows()
    kinds = ["BIGINT", "DOUBLE"]
    assert [list(row.values()) for row in found] == [
        [1, None, 1.5, "007", None, None, *kinds],
        [2, -7, None, "NA", None, None, *kinds],
        [3, 2, 1000.0, "x", None, None, *kinds],
    ]
    clause = "ORDER BY t MEASURES SUM(a.e) AS s, LAST(n) || 'x' AS x, COUNT(*) AS c PATTERN (a+)"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause} DEFINE a AS e > 2 OR n = 'x' OR t > 0)"
    assert hamlet.sql(text, {"t": tmp_path / "t.csv"}).rows() == [{"s": None, "x": None, "c": 3}]


def test_letters_of_nan_are_found_wherever_a_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    for lead in range(9):
        for word, found in (("NaN", True), ("nAn", True), ("na n", False), ("nnan", True), ("an", False)):
            path.write_text("x" * lead + word + "y")
            monkeypatch.setattr("hamlet.input.formats._PIECE", 4)
            assert may_contain(path, b"nan") is found
    assert may_contain(tmp_path / "t.csv.gz", b"nan")


def test_nan_of_csv_is_null(tmp_path: Path) -> None:
    """In columns of numbers, in files as in pipes and for queries."""
    head, *lines = "t,i,x,y,s,n", "1,1,1.5,inf,x,NaN", "2,NaN,nan,NaN,NaN,nan", "3,4,NA,-2,y,"
    (tmp_path / "t.csv").write_text("\n".join([head, *lines]))
    measures = ", ".join(f"LAST({each}) AS {each}" for each in "ixysn")
    text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES {measures} PATTERN (a) DEFINE a AS t > 0)"
    parser = CsvLines(Columns(SortKey("t"), "s"), "t")
    parser.begin(head.encode())
    piped = parser.parse("\n".join(lines).encode())
    expected = [[1, 1.5, math.inf, "x", None], [None, None, None, "NaN", None], [4, None, -2.0, "y", None]]
    for source in (tmp_path / "t.csv", piped):
        rows = hamlet.sql(text, {"t": source}).rows()
        assert [list(row.values()) for row in rows] == expected
        assert [type(value) for value in rows[0].values()] == [int, float, float, str, type(None)]


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_nanoseconds_of_text_order_rows(form: str, zone: str, tmp_path: Path) -> None:
    """DuckDB by itself reads microseconds, in which these rows are of one time, and without a zone texts of JSON."""
    digits = {"000000003": "third", "000000001": "first", "000000002": "second", "": "none"}
    rows = [(f"2026-01-01T00:00:01{tail and '.'}{tail}{zone}", name) for tail, name in digits.items()]
    lines = (
        [f"{at},{name}" for at, name in rows]
        if form == "csv"
        else [json.dumps({"seen": at, "name": name}) for at, name in rows]
    )
    (tmp_path / f"t.{form}").write_text("\n".join(["seen,name"] * (form == "csv") + lines) + "\n")
    text = """
        SELECT n, seen FROM t MATCH_RECOGNIZE (
            ORDER BY seen MEASURES a.name AS n, a.seen AS seen PATTERN (a) WITHIN INTERVAL '1' SECOND DEFINE a AS TRUE
        )
    """
    found = hamlet.sql(text, {"t": tmp_path / f"t.{form}"}).table()
    assert found["n"].to_pylist() == ["none", "first", "second", "third"]
    assert found["seen"].type == pa.timestamp("ns", "UTC" if zone else None)


@pytest.mark.parametrize("at", ["1600-01-01T00:00:00.123456789", "2026-01-01T00:00:01.1234567890"])
@pytest.mark.parametrize("zone", ["", "Z"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_times_that_are_too_fine_stay_texts(form: str, zone: str, at: str, tmp_path: Path) -> None:
    """As in a pipe: nanoseconds of 64 bits cannot hold them, and DuckDB by itself would cut them."""
    lines = [f"1,{at}{zone}"] if form == "csv" else [json.dumps({"ts": 1, "seen": f"{at}{zone}"})]
    (tmp_path / f"t.{form}").write_text("\n".join(["ts,seen"] * (form == "csv") + lines) + "\n")
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES seen AS seen PATTERN (a) DEFINE a AS TRUE)"
    assert hamlet.sql(text, {"t": tmp_path / f"t.{form}"}).rows() == [{"seen": f"{at}{zone}"}]


@pytest.mark.parametrize("size", [1, 100])
def test_texts_of_json_have_the_types_of_a_pipe(size: int, tmp_path: Path) -> None:
    """DuckDB by itself takes some for days, times of day and UUIDs, which are other rows and other arithmetic."""
    rows = [
        {"ts": at, "day": f"2026-01-{at + 10}", "clock": "9:30", "id": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"}
        for at in range(4)
    ]
    rows[2] |= {"clock": "12:30:00", "day": None}
    lines = [json.dumps(each) for each in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES a.day AS day, a.clock AS clock,
        a.clock > '12' AS later, a.id AS id PATTERN (a b) DEFINE a AS TRUE, b AS TRUE)"""
    found = hamlet.sql(text, {"t": tmp_path / "t.jsonl"}).rows()
    parser = JsonLines(Columns(SortKey("ts"), "s"))
    blocks = ["\n".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    piped = pa.concat_tables([parser.parse(each.encode()) for each in blocks], promote_options="permissive")
    assert found == hamlet.sql(text, {"t": piped}).rows()
    assert found[0] == {
        "day": datetime.datetime(2026, 1, 10),
        "clock": "9:30",
        "later": True,
        "id": rows[0]["id"],
    }


def test_nanoseconds_of_pandas_with_a_zone() -> None:
    """DuckDB by itself reads them as microseconds."""
    pandas = pytest.importorskip("pandas")
    times = pandas.to_datetime([3, 1, 2, None], utc=True).tz_convert("Europe/Berlin")
    frame = pandas.DataFrame({"ts": times, "again": times, "name": list("cab-")})
    text = """SELECT * FROM t MATCH_RECOGNIZE (
        ORDER BY ts MEASURES STRING_AGG(name, '') AS names, LAST(again, 1) AS again
        PATTERN (a+) DEFINE a AS ts > PREV(ts) OR PREV(ts) IS NULL)"""
    [row] = hamlet.sql(text, {"t": frame}).rows()
    assert row["names"] == "abc"
    assert row["again"].nanosecond == 2


def test_a_plus_sign_in_csv_leaves_numbers_whole(tmp_path: Path) -> None:
    """In a pipe as in a file; a text keeps its sign."""
    lines = ["ts,v,name", "1,+1,x", "2,,a", '3,"+3",+1', "4,-5,+49", "5,+9223372036854775807,b"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS TRUE)"
    found = hamlet.sql(text, {"t": tmp_path / "t.csv"}).rows()
    assert [type(row["v"]) for row in found] == [int, type(None), int, int, int]
    for blocks in (["\n".join(lines[1:])], lines[1:2] + lines[3:4] + lines[2:3]):
        parser = CsvLines(PatternTenant(text, "q", {}).known, "t", names=["ts", "v", "name"])
        tables = [parser.parse(f"{block}\n".encode()) for block in blocks]
        rows = sorted((row for each in tables for row in each.to_pylist()), key=lambda row: row["ts"])
        assert [row["v"] for row in rows] == [row["v"] for row in found][: len(rows)]
    assert rows == found[:3]


def test_csv_is_read_as_other_notations_read_it(tmp_path: Path) -> None:
    """DuckDB takes infinities for days, days beside NA for texts, and integers beyond 64 bits for doubles."""
    lines = ["ts,day,ratio,key,at", "1,2024-01-02,inf,+3,12:30:00", "2,NA,-Infinity,4,"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS TRUE)"
    assert hamlet.sql(text, {"t": tmp_path / "t.csv"}).rows() == [
        {"ts": 1, "day": datetime.date(2024, 1, 2), "ratio": math.inf, "key": 3, "at": "12:30:00"},
        {"ts": 2, "day": None, "ratio": -math.inf, "key": 4, "at": None},
    ]
    (tmp_path / "t.csv").write_text("ts,key\n1,9223372036854775808\n2,NA\n")
    with pytest.raises(hamlet.DataError, match=r"t\.csv: column 'key' holds the integer 9223372036854775808 in row 1"):
        hamlet.sql(text, {"t": tmp_path / "t.csv"})


@pytest.mark.parametrize(("dialect", "half"), [("trino", 3), ("flink", 3), ("duckdb", 3.5), ("oracle", 3.5)])
def test_division_is_that_of_the_dialect(dialect: str, half: float) -> None:
    """In conditions, measures and around the clause; a number with a point divides as everywhere."""
    text = """SELECT s, v / 2 AS around, h, d FROM t MATCH_RECOGNIZE (ORDER BY t
        MEASURES LAST(v) AS v, LAST(v) / 2 AS h, LAST(v) / 2.0 AS d, STRING_AGG(CLASSIFIER(), '') AS s
        PATTERN ((a | b)+) DEFINE a AS v / 2 = 3)"""
    table = pa.table({"t": [1, 2, 3], "v": [6, 7, 7]})
    expected = {"s": "aaa" if half == 3 else "abb", "around": half, "h": half, "d": 3.5}
    assert hamlet.sql(text, {"t": table}, dialect=dialect).rows() == [expected]
    matcher = Matcher(text, table.schema, dialect=dialect)
    assert [row for each in table.to_pylist() for row in matcher.push(each)] + matcher.close() == [expected]
    inner = text.replace("v / 2 AS around, ", "")
    evidence = hamlet.why.of_statement(inner, {"t": table}, {"s": expected["s"]}, dialect=dialect)
    if half == 3:
        with pytest.raises(EvidenceError, match=f"not checked: division as {dialect} has it"):
            check_evidence(inner, {"t": table}, evidence, dialect=dialect)
    else:
        check_evidence(inner, {"t": table}, evidence, dialect=dialect)


@pytest.mark.parametrize("rows", [[{"t": 1}, {"t": "x"}], [{"t": 2**70}], [{"t": "\ud800"}], {"t": [1], "u": [1, 2]}])
def test_rows_that_make_no_table_are_an_error_of_the_table(rows: Any) -> None:
    with pytest.raises(hamlet.DataError, match="table 't' cannot be read"):
        hamlet.sql("SELECT * FROM t", {"t": rows})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([], "has no columns"),
        ([{}], "has no columns"),
        (pa.table({}), "has no columns"),
        ([{"v": 1}, {"v": 1 << 70}], "cannot be read: column 'v'"),
        ({"v": 5}, "cannot be read: column 'v'"),
        (pa.table({"v": pa.array([1]).cast(pa.float32()).cast(pa.float16())}), "cannot be read"),
        (pa.table({"v": pa.array([Decimal(1)], pa.decimal256(40))}), "cannot be read"),
    ],
)
def test_a_table_that_the_host_does_not_take_is_an_error_of_the_table(table: Any, said: str) -> None:
    with pytest.raises(hamlet.DataError, match=f"table 't'.*{said}"):
        hamlet.sql("SELECT * FROM t MATCH_RECOGNIZE (MEASURES a.v AS v PATTERN (a) DEFINE a AS v > 0)", {"t": table})


def test_dicts_may_have_different_attributes() -> None:
    rows = [{"at": 1, "kind": "view"}, {"at": 2, "kind": "buy", "price": 3}, {"at": 3, "kind": "buy", "price": 4.5}]
    text = """
        SELECT * FROM t MATCH_RECOGNIZE (
            ORDER BY at MEASURES SUM(b.price) AS paid ALL ROWS PER MATCH PATTERN (a b+) DEFINE a AS kind = 'view'
        )
    """
    found = hamlet.sql(text, {"t": rows}).rows()
    assert [(row["price"], row["paid"]) for row in found] == [(None, None), (3.0, 3.0), (4.5, 7.5)]


@pytest.mark.parametrize("comment", ["-- of the day: --output x", "--of the day", "--"])
def test_a_text_may_begin_with_a_comment(comment: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", f"{comment}\nSELECT 1 AS n", "--output", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": 1}
    assert main(["sql", f"{comment}\nSELECT 1 AS n", "--no-such=a b"]) == 2
    assert "no such option" in capsys.readouterr().err.lower()


@pytest.mark.parametrize("mode", ["", "RUNNING "])
def test_ties_in_the_order_of_an_aggregate_keep_that_of_the_match(mode: str) -> None:
    table = pa.table({"i": list(range(600)), "g": [i % 5 for i in range(600)]})
    clause = f"MEASURES {mode}ARRAY_AGG(i ORDER BY i % 2 DESC) AS l PATTERN (a+) DEFINE a AS TRUE"
    text = f"SELECT l FROM t MATCH_RECOGNIZE (PARTITION BY g ORDER BY i {clause})"
    lists = [row["l"] for row in hamlet.sql(text, {"t": table}).rows()]
    assert len(lists) == 5
    assert all(each == sorted(each, key=lambda i: (-(i % 2), i)) for each in lists)


@pytest.mark.parametrize("pattern", ["a+", "a+ | b", "a*"])
def test_running_medians_see_the_rows_so_far(pattern: str) -> None:
    table = pa.table({"i": list(range(7)), "v": [5, None, 1, 9, 9, 2, None]})
    clause = f"MEASURES MEDIAN(v) AS m, COUNT(v) AS n ALL ROWS PER MATCH PATTERN ({pattern}) DEFINE a AS i <> 3"
    rows = hamlet.sql(f"SELECT i, m, n FROM t MATCH_RECOGNIZE (ORDER BY i {clause})", {"t": table}).rows()
    expected = {0: (5.0, 1), 1: (5.0, 1), 2: (3.0, 2), 4: (9.0, 1), 5: (5.5, 2), 6: (5.5, 2)}
    expected |= {3: (9.0, 1)} if "b" in pattern else {3: (None, 0)} if "*" in pattern else {}
    assert {row["i"]: (row["m"], row["n"]) for row in rows} == expected


def test_rows_of_csv_that_do_not_fit(tmp_path: Path) -> None:
    """The host by itself takes the longest row for all there is, or a row with a fraction behind many for an error."""
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES SUM(v) AS s PATTERN (a+) DEFINE a AS true)"
    path = tmp_path / "t.csv"
    path.write_text("time,v\n" + "".join(f"{time},1\n" for time in range(30_000)) + "30000,0.5\n")
    assert hamlet.sql(text, {"t": path}).rows() == [{"s": 30_000.5}]
    path.write_text("time,v\n1,2\n2,3\n3,4,5\n")
    with pytest.raises(hamlet.DataError, match=r"t\.csv:4: 3 fields in place of 2, '3,4,5'"):
        hamlet.sql(text, {"t": path})
    path.write_text("time,v\n#1,2\n2,3\n")
    assert hamlet.sql("SELECT * FROM t", {"t": path}).table().num_rows == 2


def test_values_that_cannot_be_cast() -> None:
    """The host fails when its rows are fetched, not when it is asked."""
    table = pa.table({"time": range(5_000), "v": [*map(str, range(4_999)), "x"]})
    for source, define in (("t", "CAST(v AS INT) > 5"), ("(SELECT time, CAST(v AS INT) AS v FROM t)", "v > 5")):
        clause = f"ORDER BY time MEASURES MAX(v) AS v PATTERN (a) DEFINE a AS {define}"
        text = f"SELECT * FROM {source} MATCH_RECOGNIZE ({clause})"
        with pytest.raises(hamlet.HamletError, match="Could not convert string 'x' to INT32"):
            hamlet.sql(text, {"t": table})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM t MATCH_RECOGNISE (ORDER BY v PATTERN (a))", "hint: did you mean MATCH_RECOGNIZE?"),
        ("SELECT * FROM u", "hint: tables are given by name: --input u=FILE, or {'u': ...} in Python"),
        ("MEASURES SUM(v) total", "hint: SUM(v) AS total"),
        ("MEASURES a.v x", "hint: a.v AS x"),
        ("MEASURES a.v", "hint: a.v AS name"),
        ("MEASURES NOT a.v", "hint: NOT a.v AS name"),
    ],
)
def test_what_was_meant(text: str, said: str) -> None:
    if text.startswith("MEASURES"):
        text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY v {text} PATTERN (a) DEFINE a AS true)"
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.sql(text, {"t": pa.table({"v": [1]})})
    assert str(caught.value).endswith(said)


@pytest.mark.parametrize("place", ["measure", "condition"])
def test_a_function_of_snowflake_has_a_hint_that_works(place: str) -> None:
    """DuckDB by itself takes MATCH_SEQUENCE_NUMBER for a collation's name."""
    clause = "ORDER BY ts MEASURES {} AS n ALL ROWS PER MATCH PATTERN (a+) DEFINE a AS {} < 4"
    text = "SELECT n FROM t MATCH_RECOGNIZE (" + clause + ")"
    asked, count = "MATCH_SEQUENCE_NUMBER()", "COUNT(*)"
    measure, condition = (asked, count) if place == "measure" else (count, asked)
    rows = {"t": [{"ts": ts} for ts in range(3)]}
    with pytest.raises(hamlet.WorkloadError) as told:
        hamlet.sql(text.format(measure, condition), rows, dialect="snowflake")
    hint = "RUNNING COUNT(*)" if place == "measure" else count
    assert str(told.value).endswith(f"\nhint: {hint} counts the rows of the match up to this one")
    found = hamlet.sql(text.format(hint if place == "measure" else count, count), rows, dialect="snowflake").rows()
    assert [row["n"] for row in found] == [1, 2, 3]


def test_rows_in_the_order_of_numbers_that_are_text_are_told(tmp_path: Path) -> None:
    """One value that is none makes a column of CSV text, in whose order 10 comes before 9."""
    path, clause = tmp_path / "t.csv", "ORDER BY ts MEASURES a.v AS v PATTERN (a) DEFINE a AS true"
    said = "ORDER BY ts orders text, of which some is a number and some is not, such as 'x2': '10' comes before '9'"
    for times, notes in ((["9", "10", "x2"], [said]), (["9", "10"], []), (["x9", "x10", ""], [])):
        path.write_text("ts,v\n" + "".join(f"{time},{place}\n" for place, time in enumerate(times)))
        found = hamlet.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", {"t": path})
        assert list(found.warnings) == notes
        assert [row["v"] for row in found.rows()] == ([0, 1] if len(times) == 2 else [1, 0, 2])


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_evidence_has_all_columns_of_files(ending: str, tmp_path: Path) -> None:
    """Those too that the statement does not read and that some file lacks."""
    rows = [{"ts": ts, "v": ts % 3, "other": f"x{ts}" if ts < 3 else None} for ts in range(6)]
    for name, part, columns in (("a", rows[:3], 3), ("b", rows[3:], 2)):
        listed = [dict(list(row.items())[:columns]) for row in part]
        lines = [",".join(map(str, row.values())) for row in listed]
        text = [json.dumps(row) for row in listed] if ending == "jsonl" else [",".join(listed[0]), *lines]
        (tmp_path / f"{name}.{ending}").write_text("\n".join(text) + "\n")
    clause = "ORDER BY ts MEASURES FIRST(a.ts) AS s PATTERN (a b) DEFINE b AS v > PREV(v)"
    text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    found = hamlet.sql(text, {"t": tmp_path})
    assert list(found.warnings) == []
    evidence = found.why(found.rows()[0])
    assert [row["event"] for row in evidence.data["rows"]] == rows[:2]
    hamlet.checker.check(text, {"t": rows}, evidence)
