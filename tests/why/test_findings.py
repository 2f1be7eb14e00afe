"""What never occurs is said: a sentence for each trap that would look like a result."""

from __future__ import annotations

import datetime
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main

CLICKS = """\
time,type,user_id,price
1,view,7,3
2,buy,7,5
3,refund,7,5
40,view,,3
41,buy,,5
90,view,8,1
95,buy,9,1
"""


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.csv"
    path.write_text(CLICKS)
    return path


def warnings(text: str, events: Any, **options: Any) -> list[str]:
    return list(hamlet.run(hamlet.Workload.parse(text), events, **options).warnings)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SEQ(view, buy+, NOT Refund) WITHIN 10 s", ["q1: Refund never occurs (did you mean refund?)"]),
        ("SEQ(view, buy?, Refund*) WITHIN 10 s", ["q1: Refund never occurs (did you mean refund?)"]),
        ("SEQ(View, buy) WITHIN 10 s", ["q1: no rows, because View never occurs (did you mean view?)"]),
        (
            "SEQ(view buy) WITHIN 10 s",
            ["q1: buy names view events here, though it is a type, too: is view, buy meant?"],
        ),
        ("SEQ(view buy, buy view) WITHIN 10 s", []),
        ("SEQ(view, (Bought OR byu)) WITHIN 10 s", None),
        (
            "SEQ(view v, buy) WHERE v.price > 10 AND v.user_id > 1 WITHIN 10 s",
            ["q1: no rows, because v.price > 10 AND v.user_id > 1 rejects all 3 view events"],
        ),
        (
            "SEQ(view, NOT refund r, buy) WHERE r.price > 100 WITHIN 10 s",
            ["q1: r.price > 100 rejects the refund event"],
        ),
        (
            "SEQ(refund, view) WITHIN 2 s",
            ["q1: no rows, because no window of 2 s has both refund and view; perhaps WITHIN is too short"],
        ),
        (
            "SEQ(refund, view) WHERE [price] WITHIN 10 s",
            ["q1: no rows, because no window of 10 s has both refund and view with the same price"],
        ),
        (
            "SEQ(refund, view) WITHIN 10 s",
            ["q1: no rows, because the events occur, but no trend is left by the order of the pattern"],
        ),
        (
            "SEQ(view, buy) WHERE [user_id] WITHIN 10 s",
            ["q1: 2 events have no user_id; they are one partition (--null-keys drop leaves them out)"],
        ),
        ("SEQ(view, buy) WITHIN 10 s", []),
        ("SEQ(view, buy) WHERE view.price < 4 WITHIN 10 s", []),
    ],
)
def test_one_query(clicks: Path, query: str, said: list[str] | None) -> None:
    found = warnings(f"RETURN COUNT(*) PATTERN {query}", clicks)
    if said is None:
        assert len(found) >= 1
        assert "Bought never occurs" in " ".join(found)
    else:
        assert found == said


def test_queries_that_find_the_same_are_told_together(clicks: Path) -> None:
    text = "".join(f"RETURN COUNT(*) PATTERN SEQ(view, NOT Refund, buy) WITHIN {n} s;" for n in range(2, 9))
    assert "q1, q2, q3 and 4 more: Refund never occurs (did you mean refund?)" in warnings(text, clicks)


def test_another_type_column(clicks: Path) -> None:
    found = warnings("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s", clicks, type_column="price")
    assert any("the types in column 'price' are" in each and "--type-column" in each for each in found)


def test_keys_that_nobody_has() -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "B"], "user": pa.nulls(2, pa.string())})
    text = "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [user] WITHIN 10 s"
    assert warnings(text, events) == ["q1: no event has a value of user, so all are one partition"]
    assert "no event has a value of user" in " ".join(warnings(text, events, null_keys="drop"))


def test_null_keys(clicks: Path) -> None:
    text = "RETURN user_id, COUNT(*) PATTERN SEQ(view, buy) GROUP-BY user_id WITHIN 10 s"
    workload = hamlet.Workload.parse(text)
    kept = hamlet.run(workload, clicks).rows()
    dropped = hamlet.run(workload, clicks, null_keys="drop")
    assert [row["user_id"] for row in kept] == [7, None]
    assert dropped.rows() == [row for row in kept if row["user_id"] is not None]
    assert not dropped.warnings
    engine = hamlet.Engine(workload, null_keys="drop")
    half = engine.push(pa.table({"time": [1], "type": ["view"], "user_id": pa.array([None], pa.int64())}))
    engine = hamlet.Engine.restore(workload, engine.save())
    events = pa.table(
        {"time": [2, 3, 4], "type": ["buy", "view", "buy"], "user_id": pa.array([None, 4, 4], pa.int64())}
    )
    assert [row["user_id"] for row in half + engine.push(events) + engine.close()] == [4]
    with pytest.raises(hamlet.OptionError, match="null_keys is 'no'; it must be 'keep' or 'drop'"):
        hamlet.run(workload, clicks, null_keys="no")


def test_broadcast_types_have_no_key_to_drop() -> None:
    text = """
        EVENT Closed(road INT); EVENT Trip(driver INT, road INT);
        RETURN driver, COUNT(*) PATTERN SEQ(Closed, Trip) GROUP-BY driver WITHIN 10 s"""
    events = [{"time": 1, "type": "Closed", "road": 1}, {"time": 2, "type": "Trip", "driver": 4, "road": 1}]
    for keys in ("keep", "drop"):
        results = hamlet.run(hamlet.Workload.parse(text), events, null_keys=keys)
        assert [row["driver"] for row in results.rows()] == [4]
        assert not results.warnings


def test_an_equivalence_that_was_forgotten() -> None:
    events = pa.table({"time": range(70), "type": ["A"] * 70, "user_id": [n % 7 for n in range(70)]})
    text = "RETURN COUNT(*) PATTERN A+ {} WITHIN 100 s"
    [found] = [each for each in warnings(text.format(""), events) if "combine" in each]
    assert found == (
        "q1: counts up to 1.18e+21, because trends combine the events of all user_id values; the input has user_id: "
        "WHERE [user_id] counts within each"
    )
    for other in ("WHERE [user_id]", "GROUP-BY user_id"):
        assert not any("combine" in each for each in warnings(text.format(other), events))


def test_the_command_line(clicks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = tmp_path / "w.sase"
    workload.write_text("RETURN COUNT(*) PATTERN SEQ(view, buy+, NOT Refund) WHERE [user_id] WITHIN 10 s")
    for command in ("run", "check"):
        assert main([command, str(workload), "--input", str(clicks)]) == 0
        said = capsys.readouterr().err
        assert "note: q1: Refund never occurs (did you mean refund?)\n" in said
        assert "note: q1: 2 events have no user_id; they are one partition (--null-keys drop leaves them out)\n" in said
        assert main([command, str(workload), "--input", str(clicks), "--quiet"]) == 0
        assert not capsys.readouterr().err
    assert main(["run", str(workload), "--input", str(clicks), "--null-keys", "drop"]) == 0
    assert "user_id" not in capsys.readouterr().err


def test_a_stream_is_told_of_without_being_read_again(clicks: Path) -> None:
    from pyarrow.csv import read_csv

    table = read_csv(clicks)
    text = "q1: RETURN COUNT(*) PATTERN SEQ(refund, view) WITHIN 10 s; q2: RETURN COUNT(*) PATTERN Buy WITHIN 10 s"
    unseen = "q2: no rows, because Buy never occurs (did you mean buy?)"
    many = pa.table({"time": range(1_000, 11_000), "type": ["other"] * 10_000})
    assert warnings(text, pa.concat_tables([table, many], promote_options="default").to_reader()) == [unseen]
    assert warnings(text, table.to_reader()) == warnings(text, table)  # few events are kept


@pytest.mark.parametrize("program", ["pandas", "polars", "duckdb"])
def test_findings_of_events_that_programs_hold(program: str) -> None:
    module = pytest.importorskip(program)
    events = pa.Table.from_pylist([{"time": t, "type": "view" if t < 2 else "buy", "price": t} for t in range(4)])
    given = module.sql("SELECT * FROM events") if program == "duckdb" else module.DataFrame(events.to_pydict())
    text = "RETURN SUM(buy.price) PATTERN SEQ(view, buy) WITHIN ALL"
    assert warnings(text, given) == warnings(text, events) != []


def test_no_events() -> None:
    assert warnings("RETURN COUNT(*) PATTERN A WITHIN 10 s", []) == ["there are no events"]


def test_text_where_a_number_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, workload = tmp_path / "e.csv", tmp_path / "w.sase"
    path.write_text("time,type,price\n1,A,3.5\n2,A,\n3,A,1e3\n4,A,n/a\n")
    workload.write_text("RETURN COUNT(*) PATTERN A WHERE A.price > 10 WITHIN 10 s")
    said = "the first value of price that is not a number is 'n/a', in row 4 by time"
    with pytest.raises(hamlet.WorkloadError, match=said):
        hamlet.run(hamlet.Workload.from_file(workload), path)
    assert main(["run", str(workload), "--input", str(path)]) == 2
    assert said in capsys.readouterr().err


def test_which_text_keeps_a_column_from_being_numbers(tmp_path: Path) -> None:
    """In files whose texts are coded, columns whose names are quoted, and far behind the first batch."""
    rows = 200_000
    prices = pa.array(["3.5"] * (rows - 2) + [None, "n/a"]).dictionary_encode()
    table = pa.table({"time": range(rows), "type": ["A"] * rows, 'the "price"': prices, "all": ["7"] * rows})
    pq.write_table(table, tmp_path / "e.parquet")
    text = "RETURN COUNT(*) PATTERN A WHERE A.{} > 10 WITHIN 10 s"
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.run(hamlet.Workload.parse(text.format('"the ""price"""')), tmp_path / "e.parquet")
    assert f"""first value of the "price" that is not a number is 'n/a', in row {rows:d} by time""" in str(caught.value)
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.run(hamlet.Workload.parse(text.format("all")), tmp_path / "e.parquet")
    assert "cannot be compared" in str(caught.value)
    assert "first value" not in str(caught.value)


@pytest.mark.parametrize(("threads", "exact"), [(1, 1 << 52), (2, 1 << 52), (1, -1)])  # -1: one by one
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "SEQ(view, buy) HAVING COUNT(*) > 100 WITHIN 10 s",
            "COUNT(*) > 100 rejects all 3 rows; COUNT(*) came nearest with 1",
        ),
        (
            "buy HAVING SUM(buy.price) = 7 WITHIN 10 s",
            "SUM(buy.price) = 7 rejects all 3 rows; SUM(buy.price) came nearest with 5",
        ),
        (
            "buy HAVING COUNT(*) > 0 AND MAX(buy.price) BETWEEN 8 AND 9 WITHIN 10 s",
            "COUNT(*) > 0 AND MAX(buy.price) BETWEEN 8 AND 9 rejects all 3 rows; MAX(buy.price) came nearest with 5",
        ),
        (
            "refund HAVING COUNT(*) > 1 TOP 1 BY COUNT(*) WITHIN 10 s",
            "COUNT(*) > 1 rejects the only row; COUNT(*) came nearest with 1",
        ),
        (
            "SEQ(view, buy) HAVING COUNT(*) IN (9, 5) WITHIN 10 s",
            "COUNT(*) IN (9, 5) rejects all 3 rows; COUNT(*) came nearest with 1",
        ),
        (
            "buy HAVING COUNT(*) > 9 OR MAX(buy.price) IS NULL WITHIN 10 s",
            "COUNT(*) > 9 OR MAX(buy.price) IS NULL rejects all 3 rows",
        ),
    ],
)
def test_having_that_rejects_all_rows(
    clicks: Path, query: str, said: str, threads: int, exact: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hamlet.findings.having._EXACT", exact)
    other = "RETURN AVG(buy.price) PATTERN buy HAVING AVG(buy.price) < 0.5 WITHIN 10 s"
    found = warnings(f"RETURN COUNT(*) PATTERN {query}; {other}", clicks, threads=threads)
    assert found == [
        f"q1: no rows, because HAVING {said}",
        "q2: no rows, because HAVING AVG(buy.price) < 0.5 rejects all 3 rows; AVG(buy.price) came nearest with 1.0",
    ]


def test_having_beside_another_reason(clicks: Path) -> None:
    (said,) = warnings("RETURN COUNT(*) PATTERN SEQ(refund, view) HAVING COUNT(*) > 1 WITHIN 10 s", clicks)
    assert said == "q1: no rows, because the events occur, but no row is left by the order of the pattern and HAVING"


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("options", "by"), [({"where": "type <> refund"}, "where"), ({"since": 40}, "since"), ({"until": 3}, "until")]
)
def test_types_that_the_choice_of_events_leaves_out(
    clicks: Path, tmp_path: Path, form: str, options: dict[str, Any], by: str
) -> None:
    path = clicks
    if form == "parquet":
        path = tmp_path / "clicks.parquet"
        pq.write_table(pa.csv.read_csv(clicks), path, row_group_size=2)
    said = warnings("RETURN COUNT(*) PATTERN refund WITHIN 10 s", path, **options)[-1]
    assert said == f"q1: no rows, because {by} leaves out the only refund event"


def test_groups_that_demand_the_attribute_of_others() -> None:
    events = [
        {"time": 0, "type": "view", "channel": "ad"},
        {"time": 1, "type": "buy", "channel": "shop"},
        {"time": 2, "type": "buy", "channel": "ad"},
    ]
    query = "RETURN view.channel, COUNT(*) PATTERN SEQ(view, buy) GROUP-BY {} WITHIN 10 s"
    assert warnings(query.format("view.channel"), events) == [
        "q1: GROUP-BY view.channel demands channel of all events of a trend, of buy, too; "
        "GROUP-BY FIRST(view.channel) asks it of view alone"
    ]
    assert warnings("RETURN COUNT(*) PATTERN SEQ(buy a, buy b) GROUP-BY a.channel WITHIN ALL", events)[-1:] == [
        "q1: GROUP-BY a.channel demands channel of all events of a trend, of b, too; "
        "GROUP-BY FIRST(a.channel) asks it of a alone"
    ]
    assert warnings(query.format("channel").replace("view.channel,", "channel,"), events) == []
    assert warnings(query.replace("GROUP-BY", "WHERE [channel] GROUP-BY").format("view.channel"), events) == []


PURCHASES = [
    *({"time": t, "type": "view", "user": 1 + t % 2, "price": None} for t in range(4)),
    {"time": 4, "type": "buy", "user": 1, "price": 30},
    {"time": 5, "type": "buy", "user": 1, "price": 5},
    {"time": 6, "type": "buy", "user": 2, "price": 2},
]
OFTEN = "since an event counts once for every trend that takes it"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "RETURN SUM(buy.price) PATTERN SEQ(view+, buy) WHERE [user] WITHIN 1 min",
            f"q1: SUM(buy.price) is 111 in the row of window_start 0, {OFTEN}; SUM(EVENTS buy.price), each event once, "
            "is 37 there",
        ),
        (
            """RETURN user, AVG(buy.price) AS m, COUNT(buy) PATTERN SEQ(view, buy) GROUP-BY user HAVING user = 1
            WITHIN ALL""",
            f"q1: COUNT(buy) is 4 in the row of user 1, {OFTEN}; COUNT(EVENTS buy), each event once, is 2 there",
        ),
        (
            "RETURN user PATTERN SEQ(view, buy+) GROUP-BY user HAVING SUM(buy.price) > 1 WITHIN SESSION 9 s",
            f"q1: SUM(buy.price) is 140 in the row of window_start 0 and user 1, {OFTEN}; SUM(EVENTS buy.price), each "
            "event once, is 35 there",
        ),
        (
            "RETURN LOG2(COUNT(*)), SUM(buy.price) PATTERN SEQ(view, buy) WHERE [user] AND buy.price = 30 WITHIN ALL",
            f"q1: SUM(buy.price) is 60 in its row, {OFTEN}; SUM(EVENTS buy.price), each event once, is 30 there",
        ),
        ("RETURN SUM(buy.price) PATTERN buy WITHIN 1 min", None),
        ("RETURN SUM(buy.price), MIN(view.time) PATTERN SEQ(NOT view v, view, buy{2}) WHERE [user] WITHIN 1 min", None),
        ("RETURN SUM(EVENTS buy.price), COUNT(*) PATTERN SEQ(view+, buy) WHERE [user] WITHIN 1 min", None),
        ("RETURN COUNT(view), COUNT(*) PATTERN SEQ(view+, buy) GROUP-BY COUNT(view) WITHIN 1 min", None),
    ],
)
def test_sums_that_take_events_often(query: str, said: str | None) -> None:
    assert warnings(query, PURCHASES) == ([] if said is None else [said])


def test_sums_of_many_events_are_looked_at_in_some_windows(tmp_path: Path) -> None:
    """Of a large input one group of a window is read again; what that leaves out is there for those who read later."""
    count = 60_000
    table = pa.table(
        {
            "time": range(count),
            "type": ["view", "buy"] * (count // 2),
            "user": [place // 2 % 50 for place in range(count)],
            "price": [1] * count,
        }
    )
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=4_000)
    for window in ("WITHIN 400 s", "WITHIN ALL", "SPAN 400 s WITHIN 200 s"):
        text = f"RETURN user, SUM(buy.price) AS s PATTERN SEQ(view, buy) GROUP-BY user {window}"
        results = hamlet.run(hamlet.Workload.parse(text), tmp_path / "many.parquet")
        [said] = results.warnings
        assert said.startswith("q1: SUM(buy.price) is ")
        assert "SUM(EVENTS buy.price), each event once, is " in said
        assert results.stats.get("row_groups") is None
        if "SPAN" not in window:
            assert len(list(results.trends("q1", group=49))) == 5


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "RETURN user, COUNT(*) PATTERN SEQ(view, buy) GROUP-BY user WITHIN ALL",
            "q1: COUNT(*) is 4 in the row of user 1, {}; COUNT(EVENTS view), each event once, is 2 there, and "
            "COUNT(EVENTS buy) 2",
        ),
        (
            "RETURN FIRST(v.user), COUNT(*) AS n PATTERN SEQ(view v+, buy) GROUP-BY FIRST(v.user) WITHIN 1 min",
            "q1: COUNT(*) is 30 in the row of window_start 0 and FIRST(v.user) 1, {}; COUNT(EVENTS v), each event "
            "once, is 4 there, and COUNT(EVENTS buy) 3",
        ),
        (
            "RETURN user, COUNT(*) PATTERN SEQ(view+, buy) GROUP-BY user WITHIN SESSION 9 s",
            "q1: COUNT(*) is 6 in the row of window_start 0 and user 1, {}; COUNT(EVENTS view), each event once, is 2 "
            "there, and COUNT(EVENTS buy) 2",
        ),
        ("RETURN COUNT(*) PATTERN SEQ(view, buy) WITHIN 1 min", None),  # trends of everybody's events
        ("RETURN user, COUNT(*) PATTERN SEQ(view, buy+) GROUP-BY user WITHIN 1 min", None),  # the paper's question
        ("RETURN COUNT(*), COUNT(EVENTS buy) PATTERN SEQ(view, buy) WHERE [user] WITHIN 1 min", None),
        ("RETURN COUNT(*) PATTERN SEQ(view, buy) SEMANTICS NEXT WHERE [user] WITHIN 1 min", None),
        (
            "RETURN user, COUNT(*) PATTERN SEQ(NOT view v, view, buy) GROUP-BY user WITHIN 1 min",
            None,
        ),  # as many as buys
        ("RETURN COUNT(view), COUNT(*) PATTERN SEQ(view+, buy) GROUP-BY COUNT(view) WITHIN 1 min", None),
    ],
)
def test_a_funnel_counts_combinations(query: str, said: str | None) -> None:
    why = "since every combination of events in that order is a trend"
    assert warnings(query, PURCHASES) == ([] if said is None else [said.format(why)])


def test_durations_are_said_in_seconds() -> None:
    events = [{**event, "wait": datetime.timedelta(seconds=-4)} for event in PURCHASES]
    text = "RETURN wait, SUM(buy.price) PATTERN SEQ(view+, buy) GROUP-BY wait WITHIN 1 min"
    assert warnings(text, events)[0].startswith(
        "q1: SUM(buy.price) is 555 in the row of window_start 0 and wait -4 s, since"
    )


def test_counts_beyond_all_measure_within_keys() -> None:
    events = [{"time": t, "type": "view", "user": 7} for t in range(70)] + [{"time": 70, "type": "buy", "user": 7}]
    text = "RETURN user, COUNT(*) PATTERN SEQ(view+, buy) GROUP-BY user WITHIN ALL"
    [said, kind] = warnings(text, events)
    assert said == (
        "q1: COUNT(*) is 1.18e+21 in the row of user 7, since every selection of events is a trend; SEMANTICS NEXT, "
        "whose trends skip nothing that they could take, counts 70 there"
    )
    assert "decimal" in kind
    assert warnings(text.replace("GROUP-BY", "SEMANTICS NEXT GROUP-BY"), events) == []


def test_findings_beside_events_are_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, text = tmp_path / "events.jsonl", tmp_path / "sum.sase"
    source.write_text("".join(json.dumps(event) + "\n" for event in PURCHASES))
    text.write_text("RETURN SUM(buy.price) PATTERN SEQ(view+, buy) WHERE [user] WITHIN 1 min")
    assert main(["run", str(text), "--input", str(source)]) == 0
    assert "SUM(EVENTS buy.price)" in capsys.readouterr().err
    assert main(["run", str(text), "--input", str(source), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_windows_that_events_share() -> None:
    """Whether some window, and some window of one key, has an event of each type, against all windows one by one."""
    said: set[str] = set()
    for seed in range(150):
        drawn = random.Random(seed)
        within, slide = drawn.randint(1, 12), drawn.randint(1, 15)
        times = sorted(drawn.randint(0, 60) for _ in range(drawn.randint(4, 9)))
        events = [{"time": time, "type": drawn.choice("AB"), "key": drawn.choice("xyz"), "value": 1} for time in times]
        held: dict[str, set[tuple[int, str]]] = {"A": set(), "B": set()}
        for each in events:
            inside = [turn for turn in range(-15, 62) if turn * slide <= each["time"] < turn * slide + within]
            held[each["type"]] |= {(turn, each["key"]) for turn in inside}
        turns = [{turn for turn, _ in each} for each in held.values()]
        if len({each["type"] for each in events}) < 2:
            continue
        text = "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [key] AND A.value < NEXT(B).value"
        found = " ".join(warnings(f"{text} WITHIN {within} s SLIDE {slide} s", events))
        assert ("perhaps WITHIN is too short" in found) == (not turns[0] & turns[1]), (seed, found)
        same = bool(held["A"] & held["B"])
        assert ("with the same key" in found) == (bool(turns[0] & turns[1]) and not same), (seed, found)
        said.add(found)
    assert len(said) > 2


def test_windows_that_overlap_cost_no_more() -> None:
    """What is looked at are the events and not their windows, of which each lies in 900."""
    events = pa.table({"time": range(20_000), "type": ["A", "B"] * 10_000, "value": [1] * 20_000})
    text = "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE A.value < NEXT(B).value WITHIN 900 s SLIDE 1 s"
    (said,) = warnings(text, events)
    assert "the events occur" in said


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ("SEQ(A+, B) WHERE A.v * NEXT(A).v < 20 WITHIN 2000 s", 4_000),  # each event looks back at those before it
        ("SEQ(A+, B) WHERE A.v < NEXT(A).v WITHIN 2000 s", None),  # each event once is found without
        ("SEQ(A+, B) SPAN 2000 s WITHIN 5000 s", None),
        ("SEQ(A+, NOT C, B) SPAN 2000 s WITHIN 5000 s", None),
    ],
)
def test_other_words_are_tried_where_they_cost_what_the_query_costs(asked: str, most: int | None) -> None:
    """A run of many events does not take its time once more, many times, for a remark."""
    chance = random.Random(5)
    for events in (3_000, 12_000):
        stream = [
            {"time": place * 1_900 // events, "type": chance.choice("AABC"), "v": chance.randint(0, 9)}
            for place in range(events)
        ]
        said = warnings(f"RETURN SUM(A.v) AS s PATTERN {asked}", stream)
        assert any("each event once" in each for each in said) == (most is None or events < most), (events, said)


@pytest.mark.parametrize(("keys", "within", "told"), [(30, 400, "ab"), (1_500, 1_200, "a")])
@pytest.mark.parametrize("shown", ["k, ", ""])
def test_numbers_of_remarks_are_those_of_the_row(keys: int, within: int, told: str, shown: str) -> None:
    """Whether the row is at hand, is one of many, or does not say its group, so that its query is run again, too."""
    chance = random.Random(6)
    events = [
        {"time": place // 10, "type": chance.choice("ABBB"), "k": chance.randrange(keys), "v": chance.random()}
        for place in range(12_000)
    ]
    asked = hamlet.Workload.parse(
        f"a: RETURN {shown}SUM(B.v) AS m PATTERN SEQ(A, B+) GROUP-BY k WITHIN {within} s;"
        f"b: RETURN {shown}COUNT(*) AS m PATTERN SEQ(A, B+) GROUP-BY k WITHIN {within} s"
    )
    results = hamlet.run(asked, events, numbers="float")
    numbers = {f"{value:.15g}" for row in results.rows() for value in [row["m"]]}
    said = [re.match(r"(.): \S+ is (\S+) in", each) for each in results.warnings]
    found = [each for each in said if each is not None]
    assert {each[1] for each in found} == {*told}, results.warnings
    assert all(each[1] == "b" or each[2] in numbers for each in found), results.warnings


def test_other_words_of_named_queries_beside_queries_about_rows() -> None:
    """The queries that a query asks about are run once more, too, with those of other words that ask about events."""
    text = """
        a: RETURN k, COUNT(*) AS n, SUM(B.v) AS v PATTERN SEQ(A, B+) WHERE [k] GROUP-BY k WITHIN 10 s
        b: RETURN SUM(r.v) AS s PATTERN a r+ WITHIN 40 s
        c: RETURN AVG(B.v) AS m PATTERN SEQ(A+, B) WITHIN 20 s
    """
    events = [{"time": time, "type": "ABB"[time % 3], "k": time % 2, "v": time % 7} for time in range(40)]
    said = warnings(text, events)
    for name in "abc":
        assert any(each.startswith(f"{name}: ") and "each event once" in each for each in said), said


def test_dicts_and_pipes_that_compare_two_kinds_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table is refused then; the types of dicts and of a pipe are known only as they come."""
    text = "RETURN COUNT(*) PATTERN A WHERE A.x = '1' OR A.flag IN ('yes', TRUE) OR A.d BETWEEN 1 AND 2.5 WITHIN 9 s"
    said = [
        "q1: A.x (INT) cannot be compared with '1' (STRING); write the number without quotes: 1",
        "q1: A.flag (BOOLEAN) cannot be compared with 'yes' (STRING); compare it with TRUE or FALSE",
    ]
    events = [{"time": time, "type": "A", "x": time, "flag": True, "d": 2.0} for time in range(3)]
    assert warnings(text, events) == said
    with pytest.raises(hamlet.WorkloadError, match="cannot be compared"):
        warnings(text, pa.Table.from_pylist(events))
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    assert engine.warnings == []
    for each in events:
        engine.push([each])
    assert engine.warnings == said
    (tmp_path / "q.sase").write_text(text)
    lines = "".join(json.dumps(each) + "\n" for each in events)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert main(["run", str(tmp_path / "q.sase"), "--input", "-", "--output", "-"]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "compared" in line] == [f"note: {x}" for x in said]
