"""What an analyst asks of a clickstream: the text that says it gives the number that SQL gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (pip install 'hamlet-cep[sql]')")

EVENTS, USERS, WEEK = 4_000, 120, 7 * 86_400


def clicks() -> pa.Table:
    """Views, carts and purchases of a month; no two events have one time."""
    random = np.random.default_rng(11)
    kind = random.choice(3, EVENTS, p=[0.75, 0.15, 0.1])
    price = random.integers(1, 90, EVENTS)
    time = np.sort(random.choice(4 * WEEK, EVENTS, replace=False))
    return pa.table(
        {
            "time": time,
            "type": np.array(["view", "cart", "purchase"])[kind],
            "user": random.integers(0, USERS, EVENTS),
            "product": random.integers(0, 25, EVENTS),
            "channel": pa.array(
                np.where(kind == 0, np.array(["mail", "search", "campaign"])[random.integers(0, 3, EVENTS)], None)
            ),
            "price": pa.array(price, mask=kind != 2),
            "week": time // WEEK,
        }
    )


CLICKS = clicks()
AFTER = "SELECT * FROM c p WHERE type = 'purchase' AND EXISTS (SELECT 1 FROM c v WHERE v.type = 'view' AND {})"
EARLIER = "v.user = p.user AND v.time < p.time"
FIRST_VIEW = "first AS (SELECT user, min(time) t, arg_min(channel, time) ch FROM c WHERE type = 'view' GROUP BY user)"
BOUGHT = "EXISTS (SELECT 1 FROM c p WHERE p.type = 'purchase' AND p.user = first.user AND p.time > first.t)"

# of every user the first view, and the next purchase
WAITS = f"""WITH {FIRST_VIEW} SELECT first.user, t, min(p.time) - t AS wait FROM first, c p
            WHERE p.type = 'purchase' AND p.user = first.user AND p.time > t GROUP BY first.user, t"""

QUESTIONS = {
    "conversion by channel of first touch": (
        """RETURN FIRST(v.channel), COUNT(EVENTS v) PATTERN SEQ(NOT view n, view v, purchase p) WHERE [user]
           GROUP-BY FIRST(v.channel) WITHIN ALL""",
        f"WITH {FIRST_VIEW} SELECT ch, count(*) FROM first WHERE {BOUGHT} GROUP BY ch",
    ),
    "revenue after a campaign view": (
        """RETURN SUM(EVENTS p.price) PATTERN SEQ(view v, purchase p) WHERE [user] AND v.channel = 'campaign'
           WITHIN ALL""",
        f"SELECT sum(price) FROM ({AFTER.format(EARLIER + ' AND v.channel = $$campaign$$')})",
    ),
    "time from the first view to the next purchase": (
        """RETURN user, MIN(EVENTS p.time) - MIN(EVENTS v.time) AS wait PATTERN SEQ(NOT view n, view v, purchase p)
           GROUP-BY user WITHIN ALL""",
        f"""WITH {FIRST_VIEW} SELECT first.user, min(p.time) - t FROM first, c p
            WHERE p.type = 'purchase' AND p.user = first.user AND p.time > t GROUP BY first.user, t""",
    ),
    "mean time from the first view to the next purchase": (
        """RETURN AVG(p.time) - AVG(v.time) AS mean PATTERN SEQ(NOT view n, view v, purchase p) SEMANTICS NEXT
           WHERE [user] WITHIN ALL""",
        f"SELECT avg(wait) FROM ({WAITS})",
    ),
    "users who viewed at least three times before buying": (
        "RETURN user, COUNT(EVENTS p) PATTERN SEQ(view v{3}, purchase p) GROUP-BY user WITHIN ALL",
        """SELECT user, count(*) FROM c p WHERE type = 'purchase' AND
           (SELECT count(*) FROM c v WHERE v.type = 'view' AND v.user = p.user AND v.time < p.time) >= 3
           GROUP BY user""",
    ),
    "revenue by number of views": (
        """RETURN COUNT(v), SUM(EVENTS p.price) PATTERN SEQ(NOT view n, view v+, purchase p) SEMANTICS NEXT WHERE [user]
           GROUP-BY COUNT(v) WITHIN ALL""",
        f"""WITH {FIRST_VIEW}, bought AS (
                SELECT first.user, min(p.time) t, arg_min(p.price, p.time) price FROM first, c p
                WHERE p.type = 'purchase' AND p.user = first.user AND p.time > first.t GROUP BY first.user)
            SELECT n, sum(price) FROM (
                SELECT b.user, b.price, count(*) n FROM bought b, c v
                WHERE v.type = 'view' AND v.user = b.user AND v.time < b.t GROUP BY b.user, b.price) GROUP BY n""",
    ),
    "drop-off: users with a view": (
        "RETURN COUNT(EVENTS v) PATTERN SEQ(NOT view n, view v) WHERE [user] WITHIN ALL",
        "SELECT count(DISTINCT user) FROM c WHERE type = 'view'",
    ),
    "drop-off: with a cart, then a purchase": (
        """RETURN COUNT(EVENTS v) PATTERN SEQ(NOT view n, view v, cart k, purchase p) WHERE [user] WITHIN ALL""",
        f"""WITH {FIRST_VIEW} SELECT count(*) FROM first WHERE EXISTS (SELECT 1 FROM c k, c p
            WHERE k.type = 'cart' AND p.type = 'purchase' AND k.user = first.user AND p.user = first.user
            AND first.t < k.time AND k.time < p.time)""",
    ),
    "sessions with a purchase": (
        """RETURN user, COUNT(EVENTS p) PATTERN SEQ((view v OR cart k)*, purchase p) GROUP-BY user
           WITHIN SESSION 6 h""",
        """SELECT user, count(*) FILTER (type = 'purchase') FROM (
               SELECT *, sum(fresh) OVER (PARTITION BY user ORDER BY time) session FROM (
                   SELECT *, CASE WHEN time - lag(time) OVER (PARTITION BY user ORDER BY time) <= 21600
                   THEN 0 ELSE 1 END fresh FROM c)) GROUP BY user, session HAVING bool_or(type = 'purchase')""",
    ),
    "retention: users who come in two weeks that follow each other": (
        """RETURN FIRST(a.week), user PATTERN SEQ(view a, view b) WHERE NEXT(b).week = a.week + 1
           GROUP-BY FIRST(a.week), user WITHIN ALL""",
        """SELECT DISTINCT a.week, a.user FROM c a, c b WHERE a.type = 'view' AND b.type = 'view' AND a.user = b.user
           AND b.week = a.week + 1""",
    ),
    "purchases in a rising pair": (
        "RETURN COUNT(EVENTS p) PATTERN purchase p{2} WHERE [user] AND p.price < NEXT(p).price WITHIN ALL",
        """SELECT count(*) FROM c p WHERE type = 'purchase' AND EXISTS (
               SELECT 1 FROM c q WHERE q.type = 'purchase' AND q.user = p.user AND
               ((q.time > p.time AND q.price > p.price) OR (q.time < p.time AND q.price < p.price)))""",
    ),
    "purchases in three rising steps": (
        "RETURN COUNT(EVENTS p) PATTERN purchase p{3} WHERE [user] AND p.price < NEXT(p).price WITHIN ALL",
        """WITH q AS (SELECT *, row_number() OVER () id FROM c WHERE type = 'purchase'),
                steps AS (SELECT a.id a, b.id b, d.id d FROM q a, q b, q d
                WHERE a.user = b.user AND b.user = d.user AND a.time < b.time AND b.time < d.time
                AND a.price < b.price AND b.price < d.price)
           SELECT count(*) FROM (SELECT a FROM steps UNION SELECT b FROM steps UNION SELECT d FROM steps)""",
    ),
    "views, carts and purchases whose products rise at every step": (
        """RETURN COUNT(EVENTS p) PATTERN SEQ(view v, cart k, purchase p)
           WHERE [user] AND v.product < NEXT(k).product AND k.product < NEXT(p).product WITHIN ALL""",
        """SELECT count(*) FROM c p WHERE type = 'purchase' AND EXISTS (SELECT 1 FROM c v, c k WHERE v.type = 'view'
           AND k.type = 'cart' AND v.user = p.user AND k.user = p.user AND v.time < k.time AND k.time < p.time
           AND v.product < k.product AND k.product < p.product)""",
    ),
    "purchases within 30 minutes of a view": (
        """RETURN COUNT(EVENTS p), SUM(EVENTS p.price) PATTERN SEQ(view v, purchase p) WHERE [user]
           SPAN 30 min WITHIN ALL""",
        f"SELECT count(*), sum(price) FROM ({AFTER.format(EARLIER + ' AND p.time - v.time <= 1800')})",
    ),
    "everything in one window": (
        "RETURN COUNT(EVENTS p), AVG(EVENTS p.price) PATTERN SEQ(view v, purchase p) WHERE [user] WITHIN ALL",
        f"SELECT count(*), avg(price) FROM ({AFTER.format(EARLIER)})",
    ),
    "the products most viewed before they were bought": (
        """RETURN product, COUNT(EVENTS v) PATTERN SEQ(view v, purchase p) WHERE [user] GROUP-BY product
           TOP 10 BY COUNT(EVENTS v) WITHIN ALL""",
        """SELECT product, count(*) n FROM c v WHERE type = 'view' AND EXISTS (SELECT 1 FROM c p WHERE
           p.type = 'purchase' AND p.user = v.user AND p.product = v.product AND p.time > v.time)
           GROUP BY product ORDER BY n DESC, product LIMIT 10""",
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_obvious_text_gives_the_number_of_sql(question: str) -> None:
    text, sql = QUESTIONS[question]
    rows = hamlet.run(hamlet.Workload.parse(text), CLICKS).rows()
    with duckdb.connect() as database:
        database.register("c", CLICKS)
        expected = database.execute(sql).fetchall()
    assert expected
    assert rounded([tuple(row.values())[3:] for row in rows]) == rounded(expected)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FIRST(v.channel), COUNT(*) PATTERN SEQ(view v, purchase) WHERE [user] GROUP-BY FIRST(v.channel)", "v"),
        ("COUNT(*) PATTERN SEQ(view, cart, purchase) WHERE [user]", "view"),
        ("user, COUNT(*) PATTERN SEQ(view+, purchase) GROUP-BY user WITHIN SESSION 6 h", "view"),
    ],
)
def test_combinations_are_told_from_events(text: str, named: str) -> None:
    """Conversion by channel, drop-off and sessions with COUNT(*): the number is not SQL's, and a finding says so."""
    within = "" if "WITHIN" in text else " WITHIN ALL"
    [said] = hamlet.run(hamlet.Workload.parse(f"RETURN {text}{within}"), CLICKS).warnings
    assert f"COUNT(EVENTS {named}), each event once, is" in said
    assert "COUNT(EVENTS purchase)" in said


def test_median_and_mean_of_waits() -> None:
    """MEDIAN is no aggregate: the error names the text that gives a row for each wait, and SQL about these rows."""
    with pytest.raises(hamlet.HamletError, match="there is no aggregate 'MEDIAN'") as refused:
        hamlet.Workload.parse("RETURN MEDIAN(p.time - v.time) PATTERN SEQ(view v, purchase p) WHERE [user] WITHIN ALL")
    assert "GROUP-BY FIRST(T.speed)" in str(refused.value)
    assert "SELECT median(x) about the rows" in str(refused.value)
    with pytest.raises(hamlet.HamletError, match=r"AVG\(p.time\) - AVG\(T.speed\)"):
        hamlet.Workload.parse("RETURN AVG(p.time - v.time) PATTERN SEQ(view v, purchase p) WHERE [user] WITHIN ALL")
    text = """RETURN user, FIRST(p.time) - FIRST(v.time) AS x PATTERN SEQ(NOT view n, view v, purchase p) SEMANTICS NEXT
              GROUP-BY user, FIRST(v.time), FIRST(p.time) WITHIN ALL"""
    waits = hamlet.run(hamlet.Workload.parse(text), CLICKS).table("q1")
    with duckdb.connect() as database:
        database.register("c", CLICKS)
        database.register("waits", waits)
        found = database.execute("SELECT median(x), avg(x), count(*) FROM waits").fetchall()
        expected = database.execute(f"SELECT median(wait), avg(wait), count(*) FROM ({WAITS})").fetchall()
    assert rounded(found) == rounded(expected)
    assert expected[0][2] > 50


def rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in an order of their own, without the last digits of doubles."""
    return sorted(tuple(round(each, 9) if isinstance(each, float) else each for each in row) for row in rows)
