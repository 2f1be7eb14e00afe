"""The page about a run: what stands in its data, that it stays small, and what cannot be written."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hamlet
import hamlet.cli
from hamlet.errors import OutputError
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.pages.activity import MOST_BINS, Activity
from hamlet.pages.decisions import MOST_BURSTS, Decisions
from hamlet.pages.series import query_lines
from hamlet.pages.timeline import axis
from tests.pages.traces import burst, table

SECONDS = Clock("time", "s", pa.int64())
WORKLOAD = """
trends: RETURN g, COUNT(*), LOG2(COUNT(*)) AS bits, AVG(B.x) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 100 s;
pairs: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s;
none: RETURN COUNT(*) PATTERN SEQ(A, C) WITHIN 10 s;
"""


def events(count: int, groups: int = 1) -> dict[str, Any]:
    places = np.arange(count)
    return {
        "time": places,
        "type": np.where(places % 50 < groups, "A", "B"),
        "g": np.array([f"g{place % groups}" for place in range(count)]),
        "x": places * 1.5,
    }


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def reported(tmp_path: Path, workload: str, stream: Any, **options: Any) -> dict[str, Any]:
    place = tmp_path / "report.html"
    hamlet.run(hamlet.Workload.parse(workload), stream, report=place, **options)
    return data_of(place.read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------ results over time


def test_the_page_has_the_rows_of_the_run(tmp_path: Path) -> None:
    stream = events(400, groups=2)
    data = reported(tmp_path, WORKLOAD, stream)
    rows = hamlet.run(hamlet.Workload.parse(WORKLOAD), stream).rows()
    trends, pairs, none = data["queries"]
    assert [trends["name"], pairs["name"], none["name"]] == ["trends", "pairs", "none"]
    assert (trends["measures"], trends["first"], trends["logarithms"]) == (["count", "bits", "avg_B_x"], 0, [1])
    assert {line["label"] for line in trends["lines"]} == {"g0", "g1"}
    for line in trends["lines"]:
        expected = [row for row in rows if row["query"] == "trends" and row["g"] == line["label"]]
        assert [trends["starts"][place] for place in line.get("bins", range(len(trends["starts"])))] == [
            row["window_start"] for row in expected
        ]
        assert line["values"][1] == pytest.approx([row["bits"] for row in expected], rel=1e-5)
    assert pairs["lines"][0]["values"][0] == [row["count"] for row in rows if row["query"] == "pairs"]
    assert (none["rows"], none["lines"]) == (0, [])


def test_the_page_opens_with_what_came_out(tmp_path: Path) -> None:
    stream = events(400, groups=2)
    results = hamlet.run(hamlet.Workload.parse(WORKLOAD), stream, report=tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    lead = re.search(r'<p class="lead">(.*?)</p>', page, re.DOTALL)
    assert lead is not None
    rows = results.rows()
    assert lead[1] == f"3 queries asked of 400 events: {len(rows)} rows in all; 1 of the queries found no trend."
    assert page.index('class="lead"') < page.index("Results over time") < page.index("Where the time went")
    best = max((row for row in rows if row["query"] == "pairs"), key=lambda row: row["count"])
    table = page[page.index("<table") : page.index("</table>")]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in table.splitlines() if "<td>" in line]
    assert [re.sub("<[^>]*>", "", line[0]) for line in cells] == ["trends", "pairs", "none"]
    assert re.sub("<[^>]*>", "", cells[1][4]) == f"count {best['count']:,}"
    assert cells[1][5] == f"{best['window_start']} s – {best['window_end']} s"
    assert cells[2][2:] == ["0", "", "", "", ""]
    (trends,) = [query for query in data_of(page)["queries"] if query["name"] == "trends"]
    most = max((row for row in rows if row["query"] == "trends"), key=lambda row: row["count"])
    assert (trends["top"]["group"], trends["top"]["start"]) == (most["g"], most["window_start"])


def test_counts_of_thousands_of_digits_keep_their_logarithm(tmp_path: Path) -> None:
    stream = {"time": np.arange(20_000), "type": np.array(["A"] + ["B"] * 19_999)}
    data = reported(tmp_path, "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 d", stream)
    (value,) = data["queries"][0]["lines"][0]["values"][0]
    mantissa, exponent = value.split("e")
    exact = Decimal(2) ** 19_999 - 1
    assert abs(Decimal(value) / exact - 1) < Decimal("5e-5")
    assert (1 <= float(mantissa) < 10, int(exponent)) == (True, 6020)


def columns(*kinds: str) -> tuple[ResultColumn, ...]:
    type = {"attribute": AttributeType.STRING}
    return tuple(ResultColumn(f"c{n}", kind, type.get(kind, AttributeType.INT)) for n, kind in enumerate(kinds))  # type: ignore[arg-type]


def test_many_windows_are_joined_by_their_largest_value() -> None:
    query = hamlet.Workload.parse("RETURN COUNT(*), MIN(A.x) PATTERN A WITHIN 1 s").queries[0]
    rows = [(start, start + 1, start * 7 % 1_000, None if start % 3 else -start) for start in range(1_000)]
    found = query_lines(query, QueryRows("q", columns("count", "extremum"), rows), SECONDS, 10_000)
    assert found["joined"] == 7
    assert found["starts"] == list(range(0, 1_000, 7))
    for measure in (0, 1):
        expected = [
            max(row[2 + measure] for row in rows[n : n + 7] if row[2 + measure] is not None) for n in range(0, 1_000, 7)
        ]
        assert found["lines"][0]["values"][measure] == expected


def test_many_groups_become_a_band() -> None:
    query = hamlet.Workload.parse("RETURN g, COUNT(*) PATTERN A GROUP-BY g WITHIN 1 s").queries[0]
    rows = [(start, start + 1, f"g{group:04}", start + group) for start in range(20) for group in range(1_000)]
    found = query_lines(query, QueryRows("q", columns("attribute", "count"), rows), SECONDS, 300)
    assert [line["label"] for line in found["lines"]] == [f"g{group:04}" for group in range(999, 984, -1)]
    assert found["groups"] == 1_000
    assert found["band"] == [{"low": list(range(20)), "high": list(range(999, 1_019))}]


def test_a_large_run_makes_a_small_page(tmp_path: Path) -> None:
    query = "RETURN g, COUNT(*), AVG(B.x), MAX(B.x) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 60 s SLIDE {} s;\n"
    workload = hamlet.Workload.parse("".join(query.format(slide) for slide in (10, 12, 15, 20, 30, 60)))
    place = tmp_path / "report.html"
    results = hamlet.run(workload, events(30_000, groups=25), report=place)
    assert len(results) > 50_000
    assert 200_000 < place.stat().st_size < 380_000  # 51,000 of them draw charts


# ---------------------------------------------------------------------------------------------------------- activity


def activity_of(*batches: dict[str, Any]) -> Activity:
    parts = [pa.table(batch) for batch in batches]
    found = Activity(schema_of(parts[0].schema, SortKey("time", None), "type", "s", closed=True))
    for part in parts:
        for batch in part.to_batches():
            found.add(batch)
    return found


def test_events_are_counted_by_type_and_time() -> None:
    generator = np.random.default_rng(1)
    times = np.sort(generator.integers(-5_000, 2_000_000, 30_000))
    types = generator.choice(["A", "B", "C"], 30_000)
    parts = [{"time": times[n : n + 999], "type": types[n : n + 999]} for n in range(0, 30_000, 999)]
    shown = activity_of(*parts).shown()
    assert shown is not None
    assert shown["length"] == 21_600
    bins = (times - shown["first"]) // shown["length"]
    for each in shown["types"]:
        assert len(each["counts"]) <= MOST_BINS
        assert each["counts"] == np.bincount(bins[types == each["name"]], minlength=len(each["counts"])).tolist()


def test_rare_types_are_put_together_and_a_missing_type_has_a_name() -> None:
    names = [f"t{n}" for n in range(12) for _ in range(20 - n)] + [None]
    shown = activity_of({"time": range(len(names)), "type": pa.array(names)}).shown()
    assert shown is not None
    assert [each["name"] for each in shown["types"]] == [*(f"t{n}" for n in range(7)), "6 other types"]
    assert sum(map(sum, (each["counts"] for each in shown["types"]))) == len(names)
    few = activity_of({"time": [1, 2], "type": pa.array(["A", None])}).shown()
    assert few is not None
    assert [each["name"] for each in few["types"]] == ["(no type)", "A"]


def test_an_input_without_events(tmp_path: Path) -> None:
    empty = pa.table({"time": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    data = reported(tmp_path, "RETURN COUNT(*) PATTERN A WITHIN 1 s", empty)
    assert (data["events"], data["queries"][0]["rows"]) == (None, 0)


def test_integers_are_dates_only_where_they_can_be() -> None:
    assert axis(SECONDS, 0, 5_000)["dates"] is False
    assert axis(SECONDS, 1_672_531_200, 1_672_617_600)["dates"] is True
    assert axis(Clock("time", "us", pa.timestamp("us")), 0, 5)["dates"] is True


def test_counts_of_tasks_are_those_of_one_process() -> None:
    """However events are spread, over time and over tasks, and whichever task comes first."""
    generator = np.random.default_rng(7)
    times = np.sort(generator.integers(-90_000, 400_000, 20_000))
    parts = [times[:40], times[40:9_000], times[9_000:9_100], times[9_100:], times[::3], times[:0]]
    batches = [{"time": part, "type": generator.choice(["A", "B"], len(part))} for part in parts]
    whole = activity_of(*batches)
    merged = activity_of(batches[-1])
    for batch in batches:
        merged.merge(activity_of(batch))
    assert merged.shown() == whole.shown()
    assert merged.events == whole.events == sum(map(len, parts))


# --------------------------------------------------------------------------------------------------------- decisions


def added_up(*parts: list[dict[str, Any]]) -> dict[str, Any]:
    found = Decisions(SECONDS)
    for part in parts:
        found.add(table(part))
    shown = found.shown()
    assert shown is not None
    return shown


def test_decisions_are_added_up_over_time() -> None:
    bursts = [
        burst(0, "merged", ["q1", "q2"]),
        burst(0, "shared", ["q1", "q2"], s_c=0, b=6),
        burst(3, "shared", ["q1", "q2"], b=2),
        burst(3, "split", s_c=2, key="g=y", shared_cost=120.0, non_shared_cost=88.0),
        burst(4, "alone", type="C"),
    ]
    found = added_up(bursts)
    assert found == added_up(bursts[:1], bursts[1:3], [], bursts[3:])
    assert (found["first"], found["length"], found["bins"]) == (0, 1, 5)
    shared, merged, split, alone = (found["kinds"].index(kind) for kind in ("shared", "merged", "split", "alone"))
    both, nobody = found["sets"].index(["q1", "q2"]), found["sets"].index([])
    assert found["sums"] == [
        [0, shared, both, 1, 6, 0, 12],
        [0, merged, both, 1, 4, 1, 12],
        [3, shared, both, 1, 2, 1, 12],
        [3, split, nobody, 1, 4, 0, -32],
        [4, alone, nobody, 1, 4, 0, 12],
    ]
    assert (found["keys"], found["types"], found["standsFor"]) == (["g=x", "g=y"], ["B", "C"], 5)
    assert found["bursts"][3] == [3, 1, 0, nobody, split, 4, 7, 4, 2, 2, 1, 120, 88]


def test_a_long_trace_is_thinned_to_its_largest_bursts() -> None:
    """However the records come, what is kept grows with neither their number nor their time."""
    generator = np.random.default_rng(2)
    sizes = generator.integers(1, 1_000, 5_000).tolist()
    bursts = [burst(n * 7 - 9_000, "shared", ["q1", "q2"], b=b, type="XYZ"[n % 3]) for n, b in enumerate(sizes)]
    found = added_up(bursts)
    assert found == added_up(*(bursts[n : n + 300] for n in range(0, 5_000, 300)))
    assert (found["standsFor"], found["length"], found["bins"]) == (5_000, 300, 117)
    assert 100 < len(found["bursts"]) <= MOST_BURSTS
    assert max(sizes) in [record[5] for record in found["bursts"]]
    assert [record[0] for record in found["bursts"]] == sorted(record[0] for record in found["bursts"])
    assert sum(each[3] for each in found["sums"]) == 5_000
    assert sum(each[4] for each in found["sums"]) == sum(sizes)
    assert len(json.dumps(found)) < 40_000


@pytest.mark.parametrize("count", [200, 5_000])
def test_decisions_of_tasks_are_those_of_one_process(count: int) -> None:
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 10**9, count).tolist()  # no two alike, so that the largest are the same ones
    bursts = [burst(n * 7 - 9_000, "shared", ["q1", f"q{n % 5}"], b=b, type="XYZ"[n % 3]) for n, b in enumerate(sizes)]
    bursts += [burst(0, "alone", k=1)] * 3
    merged = Decisions(SECONDS)
    for part in (bursts[::2], bursts[1::2][: count // 3], [], bursts[1::2][count // 3 :]):
        decisions = Decisions(SECONDS)
        decisions.add(table(part))
        merged.merge(decisions)
    assert merged.shown() == added_up(bursts)


def test_many_sets_of_queries_become_others() -> None:
    bursts = [burst(0, "shared", [f"q{n}", f"q{n + 1}"], b=n + 1) for n in range(500)]
    found = added_up(bursts)
    assert found["others"] + len(found["sets"]) == 500
    assert {each[2] for each in found["sums"]} == set(range(len(found["sets"]) + 1))


def test_a_run_hands_its_decisions_to_the_page(tmp_path: Path) -> None:
    text = "".join(f"RETURN COUNT(*) PATTERN SEQ({first}, B+) WITHIN 100 s;" for first in "ACDE")
    stream = {"time": np.arange(900), "type": np.array([*"ACDE", *"BBBBBBBBBBBBBB"] * 50)}
    both = {"trace": tmp_path / "t.parquet"}
    found = reported(tmp_path, text, stream, **both)["decisions"]
    records = pq.read_table(tmp_path / "t.parquet")
    several = records.filter(pc.greater(records.column("k"), 1))
    assert found["standsFor"] == len(several) >= 30
    assert found["single"] == len(records) - len(several) > 0
    assert ["q1", "q2", "q3", "q4"] in found["sets"]
    assert sum(each[4] for each in found["sums"]) == pc.sum(several.column("b")).as_py()
    never = reported(tmp_path, text, stream, sharing="never")["decisions"]
    assert {never["kinds"][each[1]] for each in never["sums"]} == {"alone"}


# ---------------------------------------------------------------------------------------------------------- the page


def test_names_of_the_stream_are_no_part_of_the_page(tmp_path: Path) -> None:
    """Whatever a group, a type or a query is called: it is data, and never markup or script."""
    evil = "</script><script>alert(1)</script><!-- \u2028 & é"
    stream = {"time": [0, 1], "type": ["A", evil], "g": [evil, evil]}
    text = f'"<b>": RETURN g, COUNT(*) PATTERN "{evil}" T GROUP-BY g WITHIN 10 s'
    place = tmp_path / "report.html"
    hamlet.run(hamlet.Workload.parse(text, source="<i>w.sase"), stream, report=place)
    page = place.read_text(encoding="utf-8")
    body = page[page.index("<body>") : page.index("<script")]
    assert "<b>&lt;b&gt;</b>" in body
    assert len(re.findall("<b[ >]", body)) == body.count("</b>")
    assert page.count("<script") == 2
    assert "<i>w.sase" not in page
    query = data_of(page)["queries"][0]
    assert (query["name"], query["lines"][0]["label"]) == ("<b>", evil)


@pytest.mark.parametrize("watched", [False, True])
def test_the_stages_fill_the_time_of_the_run(watched: bool, tmp_path: Path) -> None:
    options = {"report": tmp_path / "r.html"} if watched else {}
    stats = hamlet.run(hamlet.Workload.parse(WORKLOAD), events(50_000), **options).stats  # type: ignore[arg-type]
    assert list(stats["stages"]) == ["read", "classify", "kernel", "deliver"] + ["watch"] * watched
    assert all(spent > 0 for spent in stats["stages"].values())
    assert sum(stats["stages"].values()) <= stats["seconds"]


def test_the_command_line_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.sase").write_text(WORKLOAD)
    (tmp_path / "e.csv").write_text("time,type,g,x\n0,A,a,1\n1,B,a,2\n")
    run = ["run", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--report"]
    assert hamlet.cli.main([*run, str(tmp_path / "r.html"), "--output", "-"]) == 0
    written = capsys.readouterr()
    assert len(written.out.splitlines()) == 2
    assert data_of((tmp_path / "r.html").read_text(encoding="utf-8"))["queries"][0]["rows"] == 1
    for place, message in (
        (tmp_path, "is a folder; name a file in it"),
        (tmp_path / "no" / "r.html", "make it first"),
        (tmp_path / "e.csv", "would replace a file that is read here"),
    ):
        assert hamlet.cli.main([*run, str(place)]) == 2
        assert message in capsys.readouterr().err
    assert (tmp_path / "e.csv").read_text().startswith("time,")


def test_a_page_that_cannot_be_written_is_known_before_the_run(tmp_path: Path) -> None:
    def never() -> Any:
        yield {"time": 0, "type": "A"}

    with pytest.raises(OutputError, match="there is no folder"):
        hamlet.run(hamlet.Workload.parse(WORKLOAD), events(10), report=tmp_path / "no" / "r.html")
    assert not list(tmp_path.iterdir())
