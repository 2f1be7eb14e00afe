"""Some of the trends behind a count are trends of it, in order, and all of them where there are few."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.oracle import trends as all_trends

PATTERNS = (
    "SEQ(A, B+)",
    "SEQ(A, B+, C)",
    "A+",
    "(SEQ(A, B?))+",
    "SEQ(A x+, A y, B)",
    "A OR SEQ(B, C)",
    "SEQ(A, NOT C, B)",
    "SEQ(NOT C, A+, B)",
    "SEQ(A, B+, NOT C)",
    "SEQ(A, NOT SEQ(C, C), B+)",
    "A{2,3}",
    "SEQ(A+, B*, C)",
)
CONDITIONS = ("", "WHERE [k]", "WHERE A.v > 1", "WHERE PREV(A).v <= A.v", "WHERE [k] AND B.v <> PREV(A).v")


def stream(chance: random.Random, events: int = 9) -> list[dict[str, Any]]:
    times = sorted(chance.choices(range(14), k=events))
    return [
        {"time": t, "type": chance.choice("AABBC"), "k": chance.choice("xy"), "v": chance.randrange(4), "seq": place}
        for place, t in enumerate(times)
    ]


def as_pairs(events: list[dict[str, Any]], trend: list[dict[str, Any]]) -> tuple[tuple[int, str], ...]:
    return tuple((event["seq"], event["variable"]) for event in trend)


@pytest.mark.parametrize("seed", range(75))
def test_all_of_few(seed: int) -> None:
    chance = random.Random(seed)
    condition, pattern = chance.choice(CONDITIONS), chance.choice(PATTERNS)
    if " x+" in pattern or "B" not in pattern:  # there is no variable A, or no B
        condition = "WHERE [k]" if condition else ""
    group = chance.choice(("", "GROUP-BY k"))
    text = f"RETURN COUNT(*) PATTERN {pattern} {condition} {group} WITHIN 8 s SLIDE 4 s"
    events = stream(chance)
    workload = hamlet.Workload.parse(text)
    order = chance.choice((None, "seq"))
    expected: dict[tuple[int, str | None], set[tuple[tuple[int, str], ...]]] = {}
    for trend in all_trends(workload.queries[0], events, order_column=order):
        key = dict(trend.key).get("k") if group else None
        expected.setdefault((trend.window_start, key), set()).add(trend.pairs)
    results = hamlet.run(workload, events, order_column=order)
    for (start, key), trends in expected.items():
        try:
            sample = results.trends("q1", window=start, group=key, limit=100_000)
        except hamlet.OptionError:
            assert group  # the row does not say its group, which RETURN does not name
            continue
        found = [as_pairs(events, trend) for trend in sample]
        if group:  # rows of several groups look the same
            assert trends <= set(found) or set(found) & trends
            continue
        assert set(found) == trends
        assert len(found) == len(trends)
        assert [len(each) for each in found] == sorted(len(each) for each in found)
        few = results.trends("q1", window=start, limit=2)
        assert list(few) == list(sample)[:2]
        assert few.complete == (len(trends) <= 2)


def test_groups() -> None:
    events = stream(random.Random(3), 30)
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 8 s")
    results = hamlet.run(workload, events)
    for row in results.rows():
        for group in (row["k"], {"k": row["k"]}, f"k={row['k']}"):
            sample = results.trends("q1", window=row["window_start"], group=group, limit=row["count"] + 1)
            assert (len(sample), sample.complete, sample.row) == (row["count"], True, row)
            assert {event["k"] for trend in sample for event in trend} == {row["k"]}
    with pytest.raises(hamlet.OptionError, match="there is no row of window 5000"):
        results.trends("q1", window=5000)
    with pytest.raises(hamlet.OptionError, match="not grouped by 'v'"):
        results.trends("q1", group={"v": 1})
    with pytest.raises(hamlet.OptionError, match="there is no query 'q2'"):
        results.trends("q2")


def test_broadcast_events_are_in_every_partition() -> None:
    text = """
        EVENT Closed(road INT); EVENT Trip(driver INT, road INT);
        RETURN COUNT(*) PATTERN SEQ(Closed, Trip) WHERE [driver] WITHIN 10 s"""
    events = [{"time": 1, "type": "Closed", "road": 1}]
    events += [{"time": 2 + place, "type": "Trip", "driver": place, "road": 1} for place in range(3)]
    sample = hamlet.run(hamlet.Workload.parse(text), events).trends("q1")
    assert [trend[1]["driver"] for trend in sample] == [0, 1, 2]


def big(tmp_path: Path) -> tuple[Path, Path]:
    """A window of 100,000 events, and a count of a thousand digits."""
    kinds = ["A"] + ["N"] * 96_670 + ["B"] * 3_328 + ["C"]
    table = pa.table({"time": range(100_000), "type": kinds, "v": range(100_000)})
    events, workload = tmp_path / "e.parquet", tmp_path / "w.sase"
    pq.write_table(table, events)
    workload.write_text("q1: RETURN COUNT(*) PATTERN SEQ(A, B+, C) WITHIN 200000 s")
    return workload, events


def test_a_count_of_a_thousand_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload, events = big(tmp_path)
    began = time.perf_counter()
    assert main(["trends", str(workload), "--input", str(events), "--query", "q1", "--limit", "3"]) == 0
    seconds = time.perf_counter() - began
    said = capsys.readouterr().out
    assert "count=1.39e+1002" in said or "e+100" in said
    assert said.count("trend ") == 3
    assert "  A: time=0, v=0\n  B: time=96671, v=96671\n  C: time=99999, v=99999\n" in said
    assert seconds < 5  # well below one on an idle machine


def test_what_the_command_line_says_of_trends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which query is asked for, a column without a value, another name of a type, and the rest of a long trend."""
    workload, events = tmp_path / "w.sase", tmp_path / "e.csv"
    workload.write_text(
        "short: RETURN COUNT(*) PATTERN A x WITHIN 100 s; long: RETURN COUNT(*) PATTERN A{60,60} WITHIN 100 s"
    )
    events.write_text("time,type,v\n" + "".join(f"{time},A,{time or ''}\n" for time in range(60)))
    asked = ["trends", str(workload), "--input", str(events)]
    assert main(asked) == 2
    assert "error: --query says which of the queries: short, long\n" in capsys.readouterr().err
    assert main([*asked, "--query", "short", "--limit", "1"]) == 0
    assert "trend 1, 1 event:\n  A x: time=0, v=NULL\n" in capsys.readouterr().out
    assert main([*asked, "--query", "long"]) == 0
    out = capsys.readouterr().out
    assert "trend 1, 60 events:\n" in out
    shown = out.count("  A: time=")
    assert f"  ... and {60 - shown} more events\n" in out


def test_long_trends_only(tmp_path: Path) -> None:
    events = [{"time": place, "type": "A" if place < 3000 else "B"} for place in range(3001)]
    results = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A{200,}, B) WITHIN 5000 s"), events)
    [first] = results.trends("q1", limit=1)
    assert [event["time"] for event in first] == [*range(200), 3000]


def test_streams_are_not_read_twice() -> None:
    """But those of so few events that they were kept for findings."""
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 5 s")
    few = hamlet.run(workload, pa.table({"time": [1], "type": ["A"]}).to_reader())
    assert len(few.trends("q1").trends) == 1
    many = pa.table({"time": range(10_001), "type": ["A"] * 10_001})
    results = hamlet.run(workload, many.to_reader())
    with pytest.raises(hamlet.UnsupportedError, match="read only once"):
        results.trends("q1")


def test_a_sample_in_a_notebook() -> None:
    results = hamlet.run(
        hamlet.Workload.parse('RETURN COUNT(*) PATTERN "<A>"+ WITHIN 5 s'), [{"time": 1, "type": "<A>"}]
    )
    html = results.trends("q1")._repr_html_()
    assert "&lt;A&gt;" in html
    assert "<A>" not in html


def test_conditions_that_reject_nearly_everything_end() -> None:
    """A walk that leads nowhere is not taken twice."""
    events = [{"time": place, "type": "A", "v": place % 7} for place in range(400)]
    events.append({"time": 400, "type": "B", "v": -5})
    text = "RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE PREV(A).v < A.v AND B.v > PREV(A).v + 5 WITHIN 1000 s"
    results = hamlet.run(hamlet.Workload.parse(text), [*events, {"time": 401, "type": "B", "v": 7}])
    sample = results.trends("q1", limit=3)
    assert [[event["v"] for event in trend] for trend in sample] == [[0, 7], [1, 7], [0, 7]]
