"""Queries about the rows of other queries: in one run, online, saved and restored."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.cli import main
from hamlet.errors import DataError, OptionError, UnsupportedError, WorkloadError
from hamlet.language.parser import parse
from tests.case_files import oracle_options
from tests.compare_random import compare, features_of
from tests.comparison import difference, in_file_order, rows_of
from tests.effort import share_of
from tests.strategies import random_case

GROWTH = """
    surge: RETURN COUNT(*) AS n PATTERN A WITHIN 10 s;
    growth: RETURN COUNT(*), MAX(B.n) AS most PATTERN SEQ(surge A, surge B) WHERE A.n < NEXT(B).n WITHIN 100 s"""


@pytest.mark.parametrize("features", ["chained", "chained,having,top,expressions", "chained,semantics,span,session"])
def test_random_workloads(features: str) -> None:
    for seed in range(share_of(30)):
        report = compare(random_case(seed, features_of(features)), {}, seed)
        assert report is None, f"seed {seed}: {report}"


def test_saved_and_restored_between_any_two_events() -> None:
    compared = 0
    for seed in range(60):
        text, events, options = random_case(seed, features_of("chained"))
        workload = hamlet.Workload.parse(text)
        if len(workload.analysis.layers) < 2:
            continue
        source = random.Random(seed)
        engine, rows = hamlet.Engine(workload, **options), []
        for event in sorted(events, key=lambda event: event["time"]):
            rows += engine.push([event])
            if source.random() < 0.4:
                engine = hamlet.Engine.restore(workload, engine.save())
            if source.random() < 0.3:
                rows += engine.advance(event["time"])
        rows += engine.close()
        expected = oracle.evaluate(parse(text), events, **oracle_options(options))
        assert difference(in_file_order(rows, list(workload.names)), expected) is None, seed
        compared += 1
    assert compared > 10


def test_rows_come_when_their_windows_close() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse(GROWTH))
    events = [{"time": time, "type": "A"} for time in (1, 2, 11, 12, 13, 25)]
    assert engine.push(events[:2]) == []
    assert [row["n"] for row in engine.push(events[2:5])] == [2]
    assert [row["n"] for row in engine.advance(20)] == [3]
    assert [row["n"] for row in engine.push(events[5:])] == []
    assert [row.get("most", row.get("n")) for row in engine.close()] == [1, 3]


def test_three_layers_beside_the_stream() -> None:
    text = """
        a: RETURN k, COUNT(*) AS n PATTERN X GROUP-BY k WITHIN 10 s;
        b: RETURN k, SUM(a.n) AS m PATTERN a+ GROUP-BY k HAVING COUNT(*) > 1 WITHIN 40 s;
        c: RETURN COUNT(*), MAX(b.m) AS m PATTERN SEQ(b, X) WITHIN 100 s"""
    source = random.Random(5)
    events = [{"time": source.randint(0, 90), "type": "X", "k": source.randint(0, 2)} for _ in range(18)]
    expected = oracle.evaluate(parse(text), events)
    assert any(row["query"] == "c" for row in expected)
    table = pa.Table.from_pylist(sorted(events, key=lambda event: event["time"]))
    assert difference(rows_of(text, table), expected) is None
    assert difference(rows_of(text, table, threads=3), expected) is None


def test_a_value_beyond_64_bits_is_a_double() -> None:
    text = """
        big: RETURN COUNT(*) AS n PATTERN A+ WITHIN 100 s;
        q: RETURN COUNT(*), MIN(big.n) AS least, MAX(big.n) AS most PATTERN big+ WITHIN 1000 s"""
    events = [{"time": time, "type": "A"} for time in [*range(5), *range(100, 170)]]
    for numbers in ("exact", "float"):
        row = rows_of(text, events, numbers=numbers)[-1]
        assert (row["count"], row["least"], row["most"]) == (3, 31, 2.0**70)
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    rows: list[dict[str, Any]] = []
    for event in events:
        rows += engine.push([event])
        engine = hamlet.Engine.restore(engine.workload, engine.save())
    assert [row.get("most") for row in rows + engine.close()][-1] == 2.0**70


def test_a_type_of_the_input_with_the_name_of_a_query() -> None:
    with pytest.raises(DataError, match="events of type surge"):
        rows_of(GROWTH, [{"time": 1, "type": "A"}, {"time": 2, "type": "surge"}])


def test_a_column_that_events_have_already() -> None:
    text = GROWTH.replace("AS n", "AS v").replace(".n", ".v")
    events = [{"time": time, "type": "A", "v": "text"} for time in (1, 2, 11, 12, 13)]
    assert rows_of(text, events)[-1]["most"] == 3  # an attribute of rows is not one of events
    with pytest.raises(WorkloadError, match="is the time column"):
        rows_of(GROWTH.replace("AS n", "AS time").replace(".n", ".time"), events)


def test_a_query_is_selected_with_those_that_it_asks_about() -> None:
    workload = hamlet.Workload.parse(GROWTH)
    assert workload.select(["surge"]).names == ("surge",)
    assert workload.select(["growth", "surge"]).names == ("surge", "growth")
    with pytest.raises(OptionError, match="select it, too"):
        workload.select(["growth"])


ORDERED = (
    "RETURN COUNT(*) PATTERN SEQ(s, A)",
    "RETURN COUNT(*), SUM(s.n) PATTERN SEQ(A, s+, B?)",
    "RETURN COUNT(*) PATTERN SEQ(A+, NOT s, B)",
    "RETURN COUNT(*) PATTERN SEQ(NOT s, A, B, NOT s t)",
    "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(s x, s y), B) WHERE x.n < NEXT(y).n",
    "RETURN COUNT(*), MAX(s.n) AS most PATTERN (s | A)+",
    "RETURN COUNT(*) PATTERN SEQ(s x, A+, s y) WHERE x.n <= NEXT(A).v AND A.v < NEXT(y).n",
    "RETURN k, COUNT(*), COUNT(s) PATTERN SEQ(s+, A+) GROUP-BY k",
    "RETURN COUNT(*) PATTERN SEQ(s, A) AND SEQ(A, s)",
    "RETURN COUNT(DISTINCT s.n) PATTERN SEQ(s+, A)",
)


def saved_at_each_event(text: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of an engine that is given events one by one, and saved and restored behind each."""
    engine, rows = hamlet.Engine(hamlet.Workload.parse(text), order_column="o"), []
    for event in sorted(events, key=lambda event: event["time"]):
        rows += engine.push([event])
        engine = hamlet.Engine.restore(engine.workload, engine.save())
    return in_file_order(rows + engine.close(), ["s", "q"])


def test_a_key_that_rows_alone_carry() -> None:
    """No column of the input is missed for it: not by a reader, and not by a save."""
    text = (
        "EVENT A(x INT); EVENT D(x INT); s: RETURN SUM(A.x) AS m PATTERN A WITHIN 5 s; "
        "q: RETURN m, COUNT(*) PATTERN SEQ(NOT D, s) GROUP-BY m WITHIN 12 s"
    )
    workload = hamlet.Workload.parse(text)
    assert workload.attributes == ("x",)
    events = [{"time": time, "type": kind, "x": 2} for time, kind in ((1, "A"), (7, "A"), (8, "D"), (11, "A"))]
    table = pa.Table.from_pylist(events)
    engine, rows = hamlet.Engine(workload), []
    for place in range(len(events)):
        rows += engine.push(table.slice(place, 1))
        engine = hamlet.Engine.restore(workload, engine.save())
    rows = in_file_order(rows + engine.close(), ["s", "q"])
    assert rows == oracle.evaluate(parse(text), events) == hamlet.run(workload, table).rows()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("query", ORDERED)
def test_rows_have_no_order_among_events(query: str) -> None:
    for seed in range(4):
        source = random.Random(seed)
        k = "k, " if "GROUP-BY" in query else ""
        text = f"s: RETURN {k}COUNT(*) AS n PATTERN A+ {'GROUP-BY k' if k else ''} WITHIN 5 s SLIDE {2 + seed % 4} s; "
        text += f"q: {query} {'SPAN 8 s ' if seed % 2 else ''}WITHIN 20 s SLIDE 10 s"
        events = [
            {"time": 5 * source.randint(0, 3), "type": source.choice("AAB"), "k": 1, "v": source.randint(0, 4)}
            | {"o": source.choice((-3, 0, 1, 2))}
            for _ in range(9)
        ]
        expected = oracle.evaluate(parse(text), events, order_column="o")
        assert difference(rows_of(text, events, order_column="o"), expected) is None, seed
        assert difference(saved_at_each_event(text, events), expected) is None, seed


def test_events_with_an_order_wait_for_rows_in_a_save() -> None:
    text = "s: RETURN COUNT(*) AS n PATTERN SEQ(A, NOT C) SPAN 3 s WITHIN 5 s; "
    text += "q: RETURN COUNT(*) PATTERN SEQ(A, s, B) WITHIN 60 s"
    events = [
        {"time": 4 * place // 3, "type": "AAB"[place % 3] if place < 9 else "B", "o": place % 4} for place in range(18)
    ]
    expected = oracle.evaluate(parse(text), events, order_column="o")
    assert expected[-1]["query"] == "q"
    assert difference(saved_at_each_event(text, events), expected) is None


STRICT = (
    *ORDERED[:4],
    "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(s x, s y), B+) # WHERE x.n < NEXT(y).n",
    "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(s x, A y), (B | s z)+) # WHERE x.n < NEXT(y).v",
    "RETURN COUNT(*) PATTERN SEQ(s u, NOT SEQ(A x, s y), (B | s z)+) # WHERE x.v < NEXT(y).n",
    "RETURN COUNT(*), MAX(s.n) AS most PATTERN (s | A)+",
    "RETURN COUNT(*) PATTERN SEQ(s x, A+, s y) # WHERE x.n <= NEXT(A).v AND A.v < NEXT(y).n",
    "RETURN k, COUNT(*), COUNT(s) PATTERN SEQ(s+, A+) # GROUP-BY k",
    "RETURN COUNT(*) PATTERN SEQ(s, A)+ AND SEQ(A | s, s)",
    "RETURN COUNT(DISTINCT s.n) PATTERN SEQ(s+, A)",
    "RETURN COUNT(*) PATTERN SEQ((s | A)+, NOT s y)",
    "RETURN COUNT(*), COUNT(s) PATTERN (s | A | B)+",
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("semantics", ["NEXT", "CONTIGUOUS"])
@pytest.mark.parametrize("query", STRICT)
def test_rows_have_no_order_where_not_everything_may_be_skipped(query: str, semantics: str) -> None:
    for seed in range(2):
        source = random.Random(seed)
        k = "k, " if "GROUP-BY" in query else ""
        text = f"s: RETURN {k}COUNT(*) AS n PATTERN A+ {'GROUP-BY k' if k else ''} WITHIN 5 s SLIDE {2 + seed % 4} s; "
        asked = f"SEMANTICS {semantics}"
        text += f"q: {query.replace('#', asked) if '#' in query else f'{query} {asked}'} "
        text += source.choice(("WITHIN 20 s SLIDE 10 s", "SPAN 8 s WITHIN 20 s SLIDE 10 s", "WITHIN SESSION 5 s"))
        events = [
            {"time": 5 * source.randint(0, 3), "type": source.choice("AABC"), "k": source.randint(1, 2)}
            | {"o": source.choice((-3, 0, 1, 2)), "v": source.randint(0, 4)}
            for _ in range(7)
        ]
        expected = oracle.evaluate(parse(text), events, order_column="o")
        assert difference(rows_of(text, events, order_column="o"), expected) is None, seed
        assert difference(saved_at_each_event(text, events), expected) is None, seed


def test_a_row_is_neither_before_nor_behind_the_events_of_its_time() -> None:
    text = "s: RETURN COUNT(*) PATTERN A WITHIN 10 s; "
    text += "next: RETURN COUNT(*) PATTERN SEQ(A, s) SEMANTICS NEXT WITHIN 100 s; "
    text += "both: RETURN COUNT(*) PATTERN SEQ(A, (s | A b), A c) SEMANTICS CONTIGUOUS WITHIN 100 s"
    events = [{"time": time, "type": "A", "o": order} for time, order in ((1, 0), (10, 1), (10, 2), (21, 0))]
    found = {row["query"]: row["count"] for row in rows_of(text, events, order_column="o")[-2:]}
    # next: the row of time 10 is the next one of A1 only, that of 20 of both A's of time 10, that of 30 of A21.
    # both: A1 and the two of time 10; the last of these, the row of time 20 and A21. The row of 10 has s20 before A21.
    assert found == {"next": 4, "both": 2}


@pytest.mark.parametrize("name", ["time", "type", "seq"])
def test_check_without_data_knows_the_columns_of_events(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "w.sase"
    path.write_text(GROWTH.replace("AS n", f"AS {name}").replace(".n", f".{name}"), encoding="utf-8")
    assert main(["check", str(path), "--order-column", "seq"]) == 2
    role = {"seq": "order"}.get(name, name)
    said = capsys.readouterr().err
    assert f"w.sase:2:19: rows of surge are events, and '{name}' is the {role} column of events" in said
    assert main(["check", str(path), "--time-column", "t", "--type-column", "kind"]) == 0
    path.write_text("other: RETURN COUNT(*) PATTERN SEQ(A WITHIN 10 s;" + path.read_text(encoding="utf-8"))
    assert main(["check", str(path), "--order-column", "seq"]) == 2
    said = capsys.readouterr().err
    assert "SEQ(A WITHIN" in said
    assert "rows of surge are events" in said


def test_what_cannot_be_said_about_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GROWTH + "; large: RETURN COUNT(*) PATTERN SEQ(surge s, A) WHERE s.n > 100 WITHIN 100 s"
    events = [{"time": time, "type": "A"} for time in (1, 2, 11, 12, 13, 25)]
    results = hamlet.run(hamlet.Workload.parse(text), events)
    assert "large: no rows, because the events and the rows of surge make no trend" in results.warnings
    assert len(results.trends("surge")) == 2
    with pytest.raises(UnsupportedError, match="growth asks about the rows of surge"):
        results.trends("growth")
    (tmp_path / "w.sase").write_text(text)
    (tmp_path / "e.csv").write_text("time,type\n1,A\n2,A\n")
    command = ["trends", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--query"]
    assert main([*command, "surge"]) == 0
    assert main([*command, "growth"]) == 2
    assert "growth asks about the rows of surge" in capsys.readouterr().err


def test_rows_of_queries_are_not_missed_among_events() -> None:
    workload = hamlet.Workload.parse(
        "n: RETURN COUNT(*) PATTERN A WITHIN 1 s; m: RETURN COUNT(*) PATTERN SEQ(n, B) WITHIN 5 s"
    )
    engine = hamlet.Engine(workload)
    engine.push([{"time": 1, "type": "A"}, {"time": 3, "type": "A"}])
    assert engine.warnings == ["B never occurs"]
