"""Clauses whose tables read the rows around them, against brute force: each outer row's table by itself."""

import random
import re
from collections import Counter

import pyarrow as pa
import pytest

import hamlet
from hamlet.errors import WorkloadError
from tests.effort import share_of

CLAUSES = [
    "ORDER BY ts MEASURES FIRST(ts) AS s, COUNT(*) AS n PATTERN (a b+) DEFINE b AS v > PREV(v)",
    "PARTITION BY j ORDER BY ts MEASURES MATCH_NUMBER() AS s, COUNT(b.*) AS n "
    "PATTERN (a b*) DEFINE b AS v <= LAST(a.v)",
    "ORDER BY ts, v MEASURES SUM(v) AS n, LAST(ts) AS s AFTER MATCH SKIP TO NEXT ROW "
    "PATTERN (a b) DEFINE b AS v <> a.v",
    "PARTITION BY k, j ORDER BY ts DESC MEASURES CLASSIFIER() AS s, FINAL COUNT(*) AS n ALL ROWS PER MATCH "
    "PATTERN ((a | b)+) SUBSET c = (a, b) DEFINE a AS v > 1, b AS COUNT(c.*) < 3",
    "MEASURES COUNT(*) AS n, FIRST(v) AS s PATTERN (a b?) DEFINE b AS v < a.v",  # in the order of the input
]
INPUTS = [
    "SELECT * FROM t WHERE t.k = u.k",
    "SELECT * FROM t WHERE t.k IS NOT DISTINCT FROM u.k AND ts >= since",
    "SELECT t.*, u.lim + 0 AS more FROM t WHERE v <= u.lim",
    'SELECT * FROM t WHERE v <> u."LIM" ORDER BY ts, v, j LIMIT 5',
    "SELECT j AS k, ts, v, k AS j FROM t WHERE EXISTS (SELECT 1 FROM w WHERE w.j = t.j AND w.x > u.lim)",
    "WITH c AS (SELECT * FROM t WHERE k = u.k) SELECT c.* FROM c WHERE v <> lim",
    "SELECT * FROM (SELECT * FROM t WHERE t.k = u.k) u WHERE u.v > 0",  # another u
]


def tables(seed):
    dice = random.Random(seed)

    def one(*values):
        return dice.choice(values)

    rows = [{"k": one(0, 1, 2, None), "ts": ts, "v": one(0, 1, 2, 3, None), "j": one(0, 1)} for ts in range(14)]
    outer = [{"id": i, "k": one(0, 1, 3, None), "lim": one(0, 1, 2), "since": one(0, 4, None)} for i in range(6)]
    return {"t": rows, "u": [*outer, outer[0]], "w": [{"j": one(0, 1), "x": one(0, 1, 3)} for _ in range(3)]}


def counted(rows):
    return Counter(tuple(sorted((name, str(value)) for name, value in row.items())) for row in rows)


def alone(table, clause, row, given):
    """The rows of a clause over the table of one outer row, its values written into the text."""
    text = f"({table})"
    if ") u WHERE" not in text:
        text = re.sub(r"\bu\.\"?(\w+)\"?", lambda name: literal(row[name[1].lower()]), text)
    text = re.sub(r"\b(u\.k|since|lim)\b", lambda name: literal(row[name[0].split(".")[-1]]), text)
    return hamlet.sql(f"SELECT * FROM {text} MATCH_RECOGNIZE ({clause})", given).rows()


def literal(value):
    return "CAST(NULL AS BIGINT)" if value is None else str(value)


def forms(table, matched, found, given, limit):
    """Statements around a clause, and their rows by what it gives for each outer row."""
    pairs = [{"id": row["id"], "n": each["n"], "s": each["s"]} for row, rows in found for each in rows]
    empty = [{"id": row["id"], "n": None, "s": None} for row, rows in found if not rows]
    exists = [row for row, rows in found if any(each["n"] is not None and each["n"] >= limit for each in rows)]
    most = [(row, max((each["n"] for each in rows if each["n"] is not None), default=None)) for row, rows in found]
    return [
        (f"SELECT id, n, s FROM u, LATERAL {matched} m", pairs),
        (f"SELECT id, m.n, m.s FROM u CROSS JOIN LATERAL (SELECT * FROM {matched}) AS m", pairs),
        (f"SELECT id, m.* FROM u JOIN LATERAL (SELECT n, s FROM {matched}) m ON m.n >= 0 OR m.n IS NULL", pairs),
        (f"SELECT id, n, s FROM u LEFT JOIN LATERAL {matched} m ON true", pairs + empty),
        (f"SELECT * FROM u WHERE EXISTS (SELECT 1 FROM {matched} AS m WHERE n >= {limit})", exists),
        (
            f"SELECT * FROM u WHERE lim >= 1 AND NOT EXISTS (FROM {matched} WHERE n >= {limit})",
            [row for row, _ in found if row["lim"] >= 1 and row not in exists],
        ),
        (f"SELECT * FROM u WHERE 2 IN (SELECT n FROM {matched})", [r for r, m in found if 2 in [e["n"] for e in m]]),
        (f"SELECT id, (SELECT max(n) FROM {matched}) AS n FROM u", [{"id": row["id"], "n": n} for row, n in most]),
        (
            f"WITH x AS (SELECT * FROM u WHERE id < 4) SELECT id FROM x u WHERE (SELECT max(n) FROM {matched}) > lim",
            [{"id": row["id"]} for row, n in most if row["id"] < 4 and n is not None and n > row["lim"]],
        ),
        (
            f"SELECT id FROM w JOIN u ON w.x > u.lim AND EXISTS (FROM {matched})",
            [{"id": row["id"]} for row, rows in found for w in given["w"] if w["x"] > row["lim"] and rows],
        ),
        (
            f"SELECT id FROM u WHERE id = 1 UNION ALL SELECT (SELECT max(n) FROM {matched}) FROM u WHERE id <> 1",
            [{"id": 1 if row["id"] == 1 else n} for row, n in most],
        ),
        (  # the outer table is two levels further out
            f"SELECT id, q.n, q.s FROM u, LATERAL (SELECT m.n, m.s FROM w, LATERAL {matched} m WHERE w.x >= u.lim) q",
            [each for each in pairs for w in given["w"] if w["x"] >= given["u"][each["id"]]["lim"]],
        ),
    ]


@pytest.mark.parametrize("seed", range(share_of(24)))
def test_outer_rows_against_each_row_alone(seed):
    dice, given = random.Random(seed), tables(seed)
    for table in dice.sample(INPUTS, 3):
        clause = dice.choice(CLAUSES)
        found = [(row, alone(table, clause, row, given)) for row in given["u"]]
        matched, limit = f"({table}) MATCH_RECOGNIZE ({clause})", dice.choice([1, 2, 3])
        for text, expected in dice.sample(forms(table, matched, found, given, limit), 5):
            assert counted(hamlet.sql(text, given).rows()) == counted(expected), text


RISES = "ORDER BY ts MEASURES FIRST(ts) AS s, COUNT(*) AS n PATTERN (a b+) DEFINE b AS v > PREV(v)"
ROWS = {
    "t": [{"k": k, "ts": ts, "v": (ts * 7 + k * 3) % 5} for k in range(3) for ts in range(6)],
    "u": [{"k": k, "lim": lim, "s": {"x": k}, "xs": [1, 2, 3]} for k in (0, 1, 1, None) for lim in (1, 3)],
    "w": [{"k": 0, "y": 2}, {"k": 1, "y": 1}],
}


def lists(text, given=ROWS):
    return [list(each.values()) for each in hamlet.sql(text, given).rows()]


def test_a_clause_may_read_the_rows_of_another_one_beside_it():
    later = f"(SELECT * FROM t WHERE t.k = m.k AND t.ts >= m.s) MATCH_RECOGNIZE ({RISES})"
    text = f"SELECT k, s, (SELECT count(*) FROM {later}) AS later FROM t MATCH_RECOGNIZE (PARTITION BY k {RISES}) m"
    every = lists(f"SELECT k, s FROM t MATCH_RECOGNIZE (PARTITION BY k {RISES})")
    expected = [[k, s, sum(k == other and s <= at for other, at in every)] for k, s in every]
    assert sorted(lists(text)) == sorted(expected)


def test_a_clause_over_the_rows_of_a_correlated_one():
    inner = f"SELECT s AS ts, n AS v FROM (SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({RISES})"
    every = "MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS q PATTERN (a+) DEFINE a AS true)"
    text = f"SELECT k, lim, q FROM u, LATERAL ({inner}) {every}"
    assert sorted(lists(text)) == sorted([k, lim, 2] for k in (0, 1, 1) for lim in (1, 3))


@pytest.mark.parametrize(
    "table",
    [
        "SELECT * FROM t WHERE t.k = s.x",
        "SELECT * FROM t WHERE t.k = u.s.x",
        "SELECT t.* FROM t, (SELECT u.*) x WHERE t.k = x.k",
    ],
)
def test_structures_and_whole_rows_are_read(table):
    text = "SELECT u.k, m.s, m.n FROM u, LATERAL (SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({}) m"
    expected = lists(text.format(RISES))
    assert sorted(lists(text.format(RISES).replace("SELECT * FROM t WHERE t.k = u.k", table))) == sorted(expected)
    assert len(expected) == 12


def test_tables_of_functions_and_statements_that_change_tables():
    every = "MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+) DEFINE a AS true)"
    assert lists(f"SELECT u.k, m.n FROM u, LATERAL unnest(u.xs) AS q(ts) {every} m") == [[u["k"], 3] for u in ROWS["u"]]
    matched = f"(SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({RISES})"
    text = (
        f"CREATE TABLE uu AS SELECT k, lim FROM u; "
        f"UPDATE uu AS u SET lim = (SELECT max(n) FROM {matched}) WHERE k = 0; "
        f"DELETE FROM uu AS u WHERE NOT EXISTS (FROM {matched}); FROM uu ORDER BY ALL"
    )
    assert lists(text) == [[0, 3], [0, 3], [1, 1], [1, 1], [1, 3], [1, 3]]


def test_equal_tables_are_put_in_order_once():
    text = f"SELECT u.k, m.n FROM u, LATERAL (SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({RISES}) m"
    once, several = (hamlet.sql(each, ROWS) for each in (text, ";".join([text] * 5)))
    assert several.stats["events"] == once.stats["events"] == 12
    assert len(several.rows()) == 5 * len(once.rows())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT * FROM u, LATERAL (SELECT * FROM t WHERE t.k = u.k AND zz > 3) MATCH_RECOGNIZE ({}) m",
            '"zz" not found',
        ),
        ("SELECT * FROM u, LATERAL (SELECT * FROM t WHERE t.k = x.k) MATCH_RECOGNIZE ({}) m", '"x" not found'),
        (
            "WITH RECURSIVE r(k, d) AS (SELECT 0, 0 UNION ALL SELECT m.n, d + 1 FROM r, "
            "LATERAL (SELECT * FROM t WHERE t.k = r.k) MATCH_RECOGNIZE ({}) m WHERE d < 3) FROM r",
            "r is not whole before its recursion ends",
        ),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(text, said):
    with pytest.raises(WorkloadError, match=said) as told:
        hamlet.sql(text.format(RISES), ROWS)
    assert str(told.value).splitlines()[2].index("^") > 20  # in the table, not at the statement


def test_why_of_a_row_whose_table_reads_outer_rows():
    text = f"SELECT u.k, lim, m.s, m.n FROM u, LATERAL (SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({RISES}) m"
    results = hamlet.sql(text, ROWS)
    for row in results.rows():
        evidence = results.why(row)
        hamlet.checker.check(text, ROWS, evidence)
        assert evidence.data["partition"] == {"outer k of u": row["k"]}
        assert [each["event"]["ts"] for each in evidence.data["rows"]] == [*range(row["s"], row["s"] + row["n"])]
    absent = results.why({"k": 1, "ts": 2})
    hamlet.checker.check(text, ROWS, absent)
    assert not absent.holds


def test_a_matcher_refuses_tables_that_read_outer_rows():
    text = f"SELECT * FROM t AS u WHERE EXISTS (FROM (SELECT * FROM t WHERE t.k = u.k) MATCH_RECOGNIZE ({RISES}))"
    schema = pa.schema([(name, pa.int64()) for name in ("k", "ts", "v")])
    with pytest.raises(WorkloadError, match="a matcher's table reads no rows around it"):
        hamlet.matching.Matcher(text, schema)
