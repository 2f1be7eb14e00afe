"""Aggregates over EVENTS, and groups by what trends took, beside brute force and worked examples."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from hamlet.errors import DataError, WorkloadError
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from tests import compare_random
from tests.comparison import rows_of
from tests.effort import share_of
from tests.strategies import random_case

CLICKS: list[dict[str, Any]] = [
    {"time": 1, "type": "view", "user": 1, "channel": "mail"},
    {"time": 2, "type": "view", "user": 2, "channel": "search"},
    {"time": 3, "type": "view", "user": 1, "channel": "search"},
    {"time": 4, "type": "buy", "user": 1, "price": 30},
    {"time": 5, "type": "buy", "user": 2, "price": 12},
    {"time": 6, "type": "buy", "user": 1, "price": 5},
    {"time": 7, "type": "buy", "user": 3, "price": 99},
]


def test_each_purchase_counts_once() -> None:
    text = """
        RETURN COUNT(*), SUM(buy.price), COUNT(EVENTS buy), SUM(EVENTS buy.price), AVG(EVENTS buy.price),
               MIN(EVENTS buy.price), MAX(EVENTS buy.price), COUNT(EVENTS view), LOG2(COUNT(EVENTS buy))
        PATTERN SEQ(view+, buy) WHERE [user] WITHIN 1 min
    """
    (row,) = rows_of(text, CLICKS)
    assert row["count"] == 7
    assert row["sum_buy_price"] == 3 * 30 + 3 * 5 + 12
    assert row["count_events_buy"] == 3
    assert row["sum_events_buy_price"] == 47
    assert row["avg_events_buy_price"] == 47 / 3
    assert (row["min_events_buy_price"], row["max_events_buy_price"]) == (5, 30)
    assert row["count_events_view"] == 3
    assert row["log2_count_events_buy"] == pytest.approx(1.584962500721156)


def test_first_and_last_touch() -> None:
    text = """
        first: RETURN FIRST(view.channel), SUM(EVENTS buy.price) AS revenue PATTERN SEQ(view+, buy) WHERE [user]
               GROUP-BY FIRST(view.channel) WITHIN 1 min;
        last: RETURN LAST(view.channel) AS channel, COUNT(EVENTS buy) PATTERN SEQ(view+, buy) SEMANTICS NEXT
              WHERE [user] GROUP-BY LAST(view.channel) WITHIN 1 min;
        lengths: RETURN COUNT(view), COUNT(*), COUNT(view) * COUNT(*) AS occurrences PATTERN SEQ(view+, buy)
                 WHERE [user] GROUP-BY COUNT(view) WITHIN 1 min;
    """
    found = hamlet.run(hamlet.Workload.parse(text), CLICKS)
    rows = [tuple(row.values())[3:] for row in found.rows()]
    assert rows == [("mail", 35), ("search", 47), ("search", 2), (1, 5, 5), (2, 2, 4)]
    assert list(found.rows()[0]) == ["query", "window_start", "window_end", "first_view_channel", "revenue"]


def test_groups_come_in_the_order_of_group_by_null_first() -> None:
    text = """
        RETURN user, LAST(view.channel), COUNT(*) PATTERN SEQ(view?, buy) WHERE [user]
        GROUP-BY LAST(view.channel), user WITHIN 1 min
    """
    rows = [(row["last_view_channel"], row["user"]) for row in rows_of(text, CLICKS)]
    assert rows == [(None, 1), (None, 2), (None, 3), ("mail", 1), ("search", 1), ("search", 2)]


def test_sessions_are_cut_by_attributes_alone() -> None:
    text = """
        RETURN COUNT(view), COUNT(*) PATTERN SEQ(view+, buy) WHERE [user] GROUP-BY user, COUNT(view)
        WITHIN SESSION 10 s
    """
    rows = [(row["window_start"], row["count_view"], row["count"]) for row in rows_of(text, CLICKS)]
    assert rows == [(1, 1, 4), (1, 2, 2), (2, 1, 1)]


def test_group_values_of_every_type() -> None:
    events = [
        {"time": 1, "type": "A", "i": 3, "d": 0.5, "s": "x", "b": True},
        {"time": 2, "type": "A", "i": None, "d": -0.0, "s": None, "b": None},
        {"time": 3, "type": "A", "i": -1, "d": float("nan"), "s": "", "b": False},
        {"time": 4, "type": "A", "i": 3, "d": 0.0, "s": "x", "b": True},
    ]
    for name in "idsb":
        text = f"RETURN FIRST(A.{name}), COUNT(*) PATTERN A GROUP-BY FIRST(A.{name}) WITHIN 10 s"
        assert rows_of(text, events) == oracle.evaluate(parse(text), events), name


def test_broadcast_events_count_once_in_a_group() -> None:
    """A closure without a driver is in every driver's trends, whatever came first."""
    text = """
        EVENT closed(street STRING, cost INT);
        RETURN COUNT(*), COUNT(EVENTS closed), SUM(EVENTS closed.cost), COUNT(EVENTS drive)
        PATTERN SEQ(closed, drive+) WHERE [driver] WITHIN 100 s
    """
    events = [{"time": 0, "type": "closed", "street": "a", "cost": 7}] * 2 + [
        {"time": t, "type": ["drive", "closed"][t % 5 == 0], "driver": t % 3, "cost": t} for t in range(1, 9)
    ]
    expected = oracle.evaluate(parse(text), events)
    assert expected[0]["count_events_closed"] == 3
    for threads in (1, 2):
        assert rows_of(text, events, threads=threads) == expected
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    rows = []
    for event in events:
        rows += engine.push([event])
        engine = hamlet.Engine.restore(hamlet.Workload.parse(text), engine.save())
    assert [dict(row) for row in [*rows, *engine.close()]] == expected


@pytest.mark.parametrize(
    "bound", ["<= 2", "< 3", "= 2", "IN (1, 2)", "BETWEEN 0 AND 2", "< 2.5", "<= 2 AND COUNT(*) > 1"]
)
def test_having_cuts_groups_by_count(bound: str) -> None:
    text = f"RETURN COUNT(A), COUNT(*) PATTERN A+ GROUP-BY COUNT(A) HAVING COUNT(A) {bound} WITHIN 100 s"
    events = [{"time": t, "type": "A"} for t in range(12)]
    assert rows_of(text, events) == oracle.evaluate(parse(text), events)
    many = rows_of(text, [{"time": t % 100, "type": "A"} for t in range(400)])
    assert {row["count_A"] for row in many} <= {1, 2}


def test_a_count_of_too_many_groups_is_an_error() -> None:
    text = "RETURN COUNT(A) PATTERN A{1,} SEMANTICS CONTIGUOUS GROUP-BY COUNT(A) WITHIN 200000 s"
    text = text.replace("A{1,}", "SEQ(B, A+)")
    events = [{"time": 0, "type": "B"}, *({"time": t, "type": "A"} for t in range(1, 100_003))]
    with pytest.raises(DataError, match=r"q1: COUNT\(A\) passes 100,000 values in one window.*A\{1,100\}"):
        rows_of(text, events)
    assert len(rows_of(text, events[:5001])) == 5000


def test_values_that_are_gone_are_forgotten() -> None:
    """A key that lives long has as many marks and vertices as its open windows need."""
    text = "RETURN FIRST(A.v), COUNT(EVENTS B) PATTERN SEQ(A, B+) GROUP-BY FIRST(A.v) WITHIN 10 s SLIDE 5 s"
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    events = [{"time": t, "type": "AB"[t % 2], "v": t} for t in range(40_000)]
    engine.push(events[:2_000])
    early = engine.stats["memory"]["q1"] if "memory" in engine.stats else len(engine.save())
    rows = engine.push(events[2_000:])
    late = engine.stats["memory"]["q1"] if "memory" in engine.stats else len(engine.save())
    assert late < 3 * early
    assert rows[-1]["count_events_B"] > 0


def test_more_than_sixty_four_distinct_values_at_one_time() -> None:
    text = "RETURN COUNT(A) AS m, COUNT(DISTINCT A.v) AS d PATTERN A WITHIN 100 s"
    events = [{"time": min(t, 63), "type": "A", "v": t} for t in range(65)]
    assert [(row["m"], row["d"]) for row in rows_of(text, events)] == [(65, 65)]


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_many_distinct_values_beside_ties(numbers: str) -> None:
    """Values that are numbered at one time, some of them after others have been given up."""
    text = "RETURN COUNT(A) AS m, COUNT(DISTINCT A.v) AS d PATTERN A WITHIN 12 s SLIDE 4 s"
    for seed in range(40):
        source = random.Random(seed)
        time, events = 0, []
        for _ in range(source.choice([90, 200, 400])):
            time += source.random() < 0.15
            events.append({"time": time, "type": "A", "v": source.randrange(source.choice([50, 500]))})
        rows = rows_of(text, events, numbers=numbers)
        for row in rows:
            inside = [e["v"] for e in events if row["window_start"] <= e["time"] < row["window_end"]]
            assert (row["m"], row["d"]) == (len(inside), len(set(inside))), seed


@pytest.mark.parametrize("features", ["matched,taken", "matched,taken,semantics,span,session,having,top,expressions"])
def test_random_cases(features: str) -> None:
    chosen = compare_random.features_of(features)
    for seed in range(share_of(60)):
        report = compare_random.compare(random_case(seed, chosen), {}, seed, ("run", "save"))
        assert report is None, report


def test_random_cases_of_shared_events() -> None:
    chosen = compare_random.features_of("matched,broadcast,conjunction,chained")
    for seed in range(share_of(60)):
        report = compare_random.compare(random_case(seed, chosen), {"threads": 2}, seed, ("run", "save"))
        assert report is None, report


def test_integers_that_widen_while_events_are_kept() -> None:
    text = """
        RETURN SUM(EVENTS A.v), MAX(EVENTS A.v), LAST(A.v), COUNT(*) PATTERN SEQ(A+, B) GROUP-BY LAST(A.v) WITHIN 9 s
    """
    events = [{"time": t, "type": "AAB"[t % 3], "v": t // 2 if t < 5 else t / 4} for t in range(9)]
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    rows = [*engine.push(events[:4]), *engine.push(events[4:]), *engine.close()]
    assert [dict(row) for row in rows] == oracle.evaluate(parse(text), events)


# ------------------------------------------------------------------------------------------------------ language


def test_texts_are_read_back() -> None:
    text = (
        "RETURN FIRST(a.x), COUNT(a) + 1 AS n, SUM(EVENTS a.y), COUNT(EVENTS EVENTS), COUNT(EVENTS), LOG2(COUNT(a)) "
        "PATTERN SEQ(A a+, B EVENTS) GROUP-BY FIRST(a.x), g, COUNT(a) HAVING COUNT(a) > 1 TOP 3 BY COUNT(a) WITHIN 5 s"
    )
    parsed = parse(text)
    assert parse(to_text(parsed)) == parsed
    names = [item.column for item in parsed.queries[0].items]
    assert names == ["first_a_x", "n", "sum_events_a_y", "count_events_EVENTS", "count_EVENTS", "expr_2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RETURN COUNT(EVENTS *) PATTERN A WITHIN 1 s", "EVENTS counts the events of one variable"),
        ("RETURN COUNT(EVENTS A.x) PATTERN A WITHIN 1 s", "COUNT takes a variable, not an attribute"),
        ("RETURN SUM(EVENTS A) PATTERN A WITHIN 1 s", "expected '.' and an attribute"),
        ("RETURN COUNT(DISTINCT EVENTS A.x) PATTERN A WITHIN 1 s", "leave one of them out"),
        ("RETURN COUNT(EVENTS N) PATTERN SEQ(A, NOT N, B) WITHIN 1 s", "N stands inside NOT"),
        ("RETURN COUNT(EVENTS C) PATTERN A WITHIN 1 s", "no variable 'C'"),
        ("RETURN FIRST(A.x) PATTERN A WITHIN 1 s", r"add GROUP-BY FIRST\(A.x\) before WITHIN"),
        ("RETURN COUNT(*) PATTERN A GROUP-BY FIRST(A) WITHIN 1 s", r"write FIRST\(T.district\)"),
        ("RETURN COUNT(*) PATTERN A GROUP-BY SUM(A.x) WITHIN 1 s", "trends are not grouped by SUM"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT N) GROUP-BY COUNT(N) WITHIN 1 s", "N stands inside NOT"),
        ("RETURN COUNT(*) PATTERN A+ AND B GROUP-BY COUNT(A) WITHIN 1 s", "AND makes pairs of them"),
    ],
)
def test_errors_say_what_to_write(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        hamlet.Workload.parse(text)


def test_all_errors_come_at_once() -> None:
    text = """
        RETURN COUNT(EVENTS N), FIRST(A.x), LAST(B.x) PATTERN SEQ(A, NOT N, B) GROUP-BY COUNT(N), FIRST(Q.x) WITHIN 1 s
    """
    with pytest.raises(WorkloadError) as caught:
        hamlet.Workload.parse(text)
    assert len(caught.value.diagnostics) == 5


@pytest.mark.parametrize("window", ["WITHIN 5 s", "WITHIN 6 s SLIDE 2 s", "WITHIN 3 s SLIDE 5 s", "WITHIN ALL"])
def test_logged_windows(window: str) -> None:
    """Queries over matched events alone, whose windows are looked through when they close."""
    text = "\n".join(
        f"RETURN COUNT(EVENTS x) AS n, SUM(EVENTS y.v) AS s, MIN(EVENTS y.v) AS m PATTERN {pattern} WHERE [k] {window};"
        for pattern in ("SEQ(A x+, B y)", "SEQ(A x, (B y OR C)*, A x)", "(SEQ(A x, B y))+", "SEQ(A x?, B y{2,})")
    )
    workload = hamlet.Workload.parse(text)
    for seed in range(share_of(25)):
        source = random.Random(seed)
        time, events = source.choice([0, -7]), []
        for place in range(9):
            time += source.choice([0, 1, 1, 2])
            value = place if seed % 3 else place / 2  # INT at first, then perhaps DOUBLE
            events.append({"time": time, "type": source.choice("AABBC"), "k": source.choice([1, 2, None]), "v": value})
        expected = oracle.evaluate(parse(text), events)
        assert hamlet.run(workload, events, threads=1 + seed % 2).rows() == expected
        engine, rows = hamlet.Engine(workload), []
        for place in range(0, 9, 1 + seed % 4):
            rows += engine.push(events[place : place + 1 + seed % 4])
            engine = hamlet.Engine.restore(workload, engine.save())
        rows += engine.close()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), seed
