"""Seconds with a fraction: every source and notation has the rows of the same stream in whole nanoseconds."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet import DataError, policies, streams
from hamlet.frontend.units import decimal_text

NANOSECONDS = 10**9
QUERIES = [
    "q: RETURN k, COUNT(*), SUM(B.x) AS s PATTERN SEQ(A, B+) WHERE [k] GROUP-BY k WITHIN 2 s SLIDE 500 ms",
    "q: RETURN COUNT(*) AS n PATTERN SEQ(A+, NOT C, B) SPAN 750 ms WITHIN 3 s",
    "q: RETURN COUNT(*) AS n, MAX(B.x) AS m PATTERN SEQ(A, B) SEMANTICS NEXT WITHIN SESSION 400 ms",
    "q: RETURN COUNT(*) AS n PATTERN A+ WITHIN ALL",
    "q: RETURN COUNT(EVENTS B) AS n PATTERN SEQ(A, B) WITHIN 1 s",
    "p: RETURN COUNT(*) AS n PATTERN SEQ(A, B) WITHIN 1 s; "
    "q: RETURN COUNT(*) AS c, SUM(p.n) AS s PATTERN p+ WITHIN 3 s",
]
SIGNATURE = "A(k: int) B(k: int) C(k: int)"
POLICIES = ["A(k) AND EVENTUALLY[0,2) B(k)", "ONCE(0,1] A(k)", "A(k) AND NOT ONCE[1s,2s] B(k)", "A(k) SINCE[0,3] B(k)"]
SPECIFICATION = streams.Specification.parse(
    'input x: Int64\noutput c @1Hz := x.aggregate(over: 2s, using: count)\ntrigger c > 1 "many"\ntrigger x > 2 "large"'
)
EDGES = ("window_start", "window_end", "time")


def drawn(random: random.Random) -> list[dict[str, Any]]:
    """Events whose times are whole nanoseconds."""
    step = random.choice([NANOSECONDS // 2, NANOSECONDS // 10, 1, 123_456_789])
    time = random.choice([0, -3, 1_384_300_800]) * NANOSECONDS
    found = []
    for _ in range(random.randint(2, 14)):
        time += random.choice([0, 1, 1, 2, 3]) * step
        event = {"time": time, "type": random.choice("AABBC"), "k": random.choice([1, 2]), "x": random.randint(-5, 5)}
        found.append(event)
    found[-1]["time"] += 1 if all(each["time"] % NANOSECONDS == 0 for each in found) else 0  # some time has a fraction
    return found


def timed(events: list[dict[str, Any]], form: Callable[[int], Any]) -> list[dict[str, Any]]:
    return [{**each, "time": form(each["time"])} for each in events]


def long_text(nanoseconds: int) -> str:
    text = decimal_text(nanoseconds)
    return text if "." in text else f"{text}.0"


def forms(events: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The events in seconds, as every source has them."""
    exact = timed(events, lambda time: Decimal(time).scaleb(-9))
    texts = timed(events, long_text)
    table = pa.Table.from_pylist(events)
    decimals = table.set_column(0, "time", pa.array([each["time"] for each in exact], pa.decimal128(25, 9)))
    written = table.set_column(0, "time", pa.array([each["time"] for each in texts]))
    pq.write_table(decimals, folder / "decimal.parquet")
    pq.write_table(written, folder / "text.parquet")
    (folder / "two").mkdir(exist_ok=True)
    halves = {"two/a": events[: len(events) // 2], "two/b": events[len(events) // 2 :]}
    for name, part in {"long": events, "short": events, **halves}.items():
        shown = timed(part, long_text if name == "long" else decimal_text)
        lines = ["time,type,k,x", *(",".join(map(str, each.values())) for each in shown)]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        objects = [f'{{"time": {each["time"]}, {json.dumps({**each, "time": 0})[12:]}' for each in shown]
        if "/" not in name:
            (folder / f"{name}.jsonl").write_text("\n".join(objects) + "\n")
    found: dict[str, Any] = {"decimals": exact, "texts": texts, "Arrow": decimals, "a stream": decimals.to_reader()}
    names = ("decimal.parquet", "text.parquet", "long.csv", "short.csv", "long.jsonl", "short.jsonl", "two")
    found |= {name: str(folder / name) for name in names}
    if all(abs(each["time"]) < 2**53 or each["time"] % 10**6 == 0 for each in events):  # what doubles can tell apart
        floats = timed(events, lambda time: time / NANOSECONDS)
        pq.write_table(pa.Table.from_pylist(floats), folder / "float.parquet")
        columns = {name: [each[name] for each in floats] for name in floats[0]}
        found |= {"floats": floats, "columns": columns, "float.parquet": str(folder / "float.parquet")}
    return found


def in_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value / NANOSECONDS if name in EDGES and value is not None else value for name, value in row.items()}
        for row in rows
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_every_source_has_the_rows_of_nanoseconds(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    events = drawn(chosen)
    workload = hamlet.Workload.parse(chosen.choice(QUERIES))
    text = chosen.choice(POLICIES)
    policy, timed_policy = (
        policies.Policy.parse(each, signature=SIGNATURE)
        for each in (text, text.replace("2)", "2s)").replace("1]", "1s]").replace("3]", "3s]"))
    )
    rows = in_seconds(hamlet.run(workload, events, time_unit="ns").rows())
    verdicts = in_seconds(policies.run(timed_policy, events, time_unit="ns").rows())
    values = in_seconds(streams.run(SPECIFICATION, events, time_unit="ns", values=True).rows())
    for name in forms(events, tmp_path):
        found = hamlet.run(workload, forms(events, tmp_path)[name])
        assert found.rows() == rows, name
        assert found.table().column("window_start").to_pylist() == [row["window_start"] for row in rows]
        assert policies.run(policy, forms(events, tmp_path)[name]).rows() == verdicts, name
        assert streams.run(SPECIFICATION, forms(events, tmp_path)[name], values=True).rows() == values, name


@pytest.mark.parametrize("seed", range(12))
def test_pushes_saves_and_promises(seed: int) -> None:
    chosen = random.Random(seed)
    events = drawn(chosen)
    workload = hamlet.Workload.parse(chosen.choice(QUERIES))
    policy = policies.Policy.parse("A(k) AND NOT ONCE[1s,2s] B(k)", signature=SIGNATURE)
    given = timed(events, chosen.choice([lambda time: Decimal(time).scaleb(-9), long_text]))
    for made, text in ((hamlet.Engine, workload), (policies.Monitor, policy), (streams.Monitor, SPECIFICATION)):
        monitor: Any = made(text)  # type: ignore[operator]
        exact: Any = made(text, time_unit="ns")  # type: ignore[operator]
        found, expected, place = [], [], 0
        while place < len(events):
            end = place + chosen.randint(1, 4)
            found += monitor.push(given[place:end])
            expected += exact.push(events[place:end])
            place = end
            if chosen.random() < 0.3:
                monitor = made.restore(text, monitor.save())  # type: ignore[attr-defined]
            if chosen.random() < 0.3 and made is not streams.Monitor:  # which takes no event of that time any more
                last = events[min(place, len(events)) - 1]["time"]
                found += monitor.advance(chosen.choice([Decimal(last).scaleb(-9), long_text(last)]))
                expected += exact.advance(last)
        assert found + monitor.close() == in_seconds(expected + exact.close())


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (1e-10, "holds 1e-10 in event 2, which has digits that nanoseconds cannot hold"),
        (Decimal("0.1234567891"), "holds 0.1234567891 in event 2, which has digits"),
        ("0.1234567891", "holds '0.1234567891' in event 2, which has digits"),
        (1e300, r"holds 1e\+300 in event 2, which is more than 2\^61 nanoseconds"),
        (Decimal("1e12"), r"in event 2, which is more than 2\^61 nanoseconds"),
        (float("inf"), "holds inf in event 2, which is no time"),
    ],
    ids=repr,
)
def test_what_nanoseconds_cannot_hold_names_the_event(time: Any, said: str) -> None:
    first: Any = "0.5" if isinstance(time, str) else 0.5
    events = [{"time": first, "type": "A", "k": 1}, {"time": time, "type": "B", "k": 1}]
    policy = policies.Policy.parse("A(k)", signature=SIGNATURE)
    workload = hamlet.Workload.parse(QUERIES[3])
    for act in (
        lambda: hamlet.run(workload, events),
        lambda: hamlet.Engine(workload).push(events),
        lambda: policies.run(policy, events),
        lambda: policies.Monitor(policy).push(events),
    ):
        with pytest.raises(DataError, match=said):
            act()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("time", ["0.0000000001", "1e30", "9999999999"])
def test_files_name_the_row(tmp_path: Path, name: str, time: str) -> None:
    lines = {"a.csv": f"time,type\n0.5,A\n{time},B\n"}
    text = lines.get(name, f'{{"time": 0.5, "type": "A"}}\n{{"time": {time}, "type": "B"}}\n')
    (tmp_path / name).write_text(text)
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
    with pytest.raises(DataError, match=r"a\.(csv.* in row 2|jsonl:2:).*nanoseconds"):
        hamlet.run(workload, tmp_path / name)
    assert len(hamlet.run(workload, tmp_path / name, bad_rows="drop")) == 1


def test_a_float_is_the_decimal_that_is_written_for_it() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 100 ms")
    times = [0.1 + 0.2, 1_700_000_000.1, 4.35]  # the first is 0.30000000000000004
    found = [row["window_start"] for row in hamlet.run(workload, {"time": times, "type": ["A"] * 3}).rows()]
    assert found == [0.3, 4.3, 1_700_000_000.1]
    narrow = pa.table({"time": pa.array([0.1, 4.3], pa.float32()), "type": ["A", "A"]})
    assert [row["window_start"] for row in hamlet.run(workload, narrow).rows()] == [0.1, 4.3]


def test_times_that_have_a_fraction_all_of_a_sudden() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 10 s")
    engine = hamlet.Engine(workload)
    engine.push([{"time": 1, "type": "A"}])
    engine.push([{"time": 2.0, "type": "A"}])  # a whole second
    with pytest.raises(DataError, match=r"holds 3\.5 in event 4, and the events before have integers, in s; give all"):
        engine.push([{"time": 3.0, "type": "A"}, {"time": 3.5, "type": "A"}])
    assert engine.close() == [{"query": "q1", "window_start": 0, "window_end": 10, "count": 3}]
    engine = hamlet.Engine(workload)
    engine.push([{"time": 0.5, "type": "A"}])
    assert engine.push([{"time": 12, "type": "A"}])[0]["window_end"] == 10.0  # an integer after these is seconds


def test_time_is_a_number_of_seconds_in_conditions_and_results() -> None:
    text = "RETURN MAX(B.time) AS last, COUNT(*) AS n PATTERN SEQ(A, B) WHERE A.time + 500 ms < NEXT(B).time WITHIN ALL"
    events = [{"time": time, "type": kind} for time, kind in ((0.25, "A"), (0.5, "B"), (1.0, "B"))]
    [row] = hamlet.run(hamlet.Workload.parse(text), events).rows()
    assert (row["last"], row["n"]) == (1.0, 1)
    grouped = hamlet.Workload.parse("RETURN FIRST(A.time), COUNT(*) PATTERN A GROUP-BY FIRST(A.time) WITHIN ALL")
    [row] = hamlet.run(grouped, events).rows()
    assert row["first_A_time"] == 0.25
    chosen = hamlet.run(workload := hamlet.Workload.parse("RETURN COUNT(*) PATTERN B WITHIN ALL"), events, since="0.75")
    assert [row["count"] for row in chosen.rows()] == [1]
    assert [row["count"] for row in hamlet.run(workload, events, where="time < 0.75").rows()] == [1]


def test_groups_by_time_are_seconds() -> None:
    """Times that doubles cannot tell apart are groups of their own all the same."""
    events = [{"time": time, "type": "A"} for time in ("1700000000.25", "1700000000.25", "1700000000.250000001")]
    for group, having in (("time", "HAVING time > 1700000000 "), ("time, COUNT(A)", "")):
        text = f"RETURN time, time - 1700000000 AS past, COUNT(*) PATTERN A GROUP-BY {group} {having}WITHIN ALL"
        found = hamlet.run(hamlet.Workload.parse(text), events)
        assert [(row["time"], row["past"], row["count"]) for row in found] == [
            (1_700_000_000.25, 0.25, 2),
            (1_700_000_000.25, 0.25, 1),
        ]
        assert found.table().schema.field("time").type == pa.float64()


def test_trends_and_evidence_show_seconds() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) WHERE A.time < 1 WITHIN 2 s")
    results = hamlet.run(workload, [{"time": 0.25, "type": "A"}, {"time": 1.5, "type": "B"}])
    [trend] = results.trends("q1")
    assert [event["time"] for event in trend] == [0.25, 1.5]
    assert "time=0.25" in results.why(results.rows()[0]).text()


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_outputs_show_seconds(tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    from hamlet.cli import main

    (tmp_path / "e.csv").write_text("time,type\n1700000000.123456789,A\n")
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN A WITHIN SESSION 500 ms")
    asked = ["run", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--output", "-"]
    assert main([*asked, "--output-format", suffix]) == 0
    assert "1700000000.623456789" in capsys.readouterr().out  # all digits, though doubles have not as many


@pytest.mark.parametrize("ending", ["csv", "jsonl", "dicts", "texts"])
def test_digits_beyond_what_decimals_keep(ending: str, tmp_path: Path) -> None:
    """A time of fifty digits is refused for its last ones, and read where these are zeros."""
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 10 s")

    def source(written: str) -> Any:
        path = tmp_path / f"e.{ending}"
        if ending in ("dicts", "texts"):
            return [{"time": Decimal(written) if ending == "dicts" else written, "type": "A"}]
        line = f"time,type\n{written},A\n" if ending == "csv" else f'{{"time": {written}, "type": "A"}}\n'
        path.write_text(line)
        return path

    for zeros in (20, 28, 29, 50):
        with pytest.raises(hamlet.DataError):
            hamlet.run(workload, source("0.2" + "0" * zeros + "7253"))
    assert len(hamlet.run(workload, source("0.2" + "0" * 20))) == 1
    if ending in ("dicts", "texts"):
        assert len(hamlet.run(workload, source("0.2" + "0" * 60))) == 1


def test_decimals_of_dicts_keep_their_digits_in_specifications() -> None:
    """A window of two seconds that ends half a nanosecond of a double away from an event."""
    times = [Decimal("1709254923.000000001"), Decimal("1709254923.000000002"), Decimal("1709254925.5")]
    text = "input n: Int64  output sum @1Hz := n.aggregate(over: 2s, using: sum)"
    specification = streams.Specification.parse(text)
    table = pa.table({"time": pa.array(times, pa.decimal128(20, 9)), "n": [1, 2, 4]})
    wanted = [(row["time"], row["value"]) for row in streams.run(specification, table, values=True).rows()]
    assert [value for _, value in wanted] == [3, 2]
    for events in (table.to_pylist(), table.to_pydict()):
        rows = streams.run(specification, events, values=True).rows()
        assert [(row["time"], row["value"]) for row in rows] == wanted
