"""What a batch job on Spark says of its events and rows is what `hamlet.run` says, and its errors keep their fields."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.engine.where import FilteredEvents
from hamlet.errors import DataError, HamletError, OptionError
from hamlet.input.events import open_events
from hamlet.policies import Policy
from hamlet.spark import patterns, policies, specifications
from hamlet.spark.failures import packed, unpacked_error
from hamlet.spark.query_batch import NO_SEMIJOIN
from hamlet.streams import Specification
from tests.why.test_findings import CLICKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
a: RETURN COUNT(*) PATTERN SEQ(view, buy+, NOT Refund) WITHIN 10 s;
b: RETURN COUNT(*) PATTERN SEQ(View, buy) WITHIN 10 s;
c: RETURN COUNT(*) PATTERN SEQ(view v, buy) WHERE v.price > 10 AND v.user_id > 1 WITHIN 10 s;
d: RETURN COUNT(*) PATTERN SEQ(view, NOT refund r, buy) WHERE r.price > 100 WITHIN 10 s;
e: RETURN COUNT(*) PATTERN SEQ(refund, view) WITHIN 2 s;
f: RETURN COUNT(*) PATTERN SEQ(refund, view) WHERE [price] WITHIN 10 s;
g: RETURN COUNT(*) PATTERN SEQ(view, buy) WHERE [user_id] WITHIN 10 s;
h: RETURN COUNT(*) PATTERN SEQ(view, buy) WITHIN 10 s
"""
FEW = ";".join(each for each in TEXT.split(";") if each.strip()[0] in "bcg")
LAYERS = """
one: RETURN user_id, COUNT(*) AS n PATTERN SEQ(view, buy) GROUP-BY user_id WITHIN 10 s;
two: RETURN COUNT(*) PATTERN SEQ(one o, one p) WHERE o.n > 9 WITHIN 90 s;
six: RETURN COUNT(*) PATTERN SEQ(one, Refund) WITHIN 90 s
"""
LARGE = pa.table({"time": range(80), "type": ["view"] * 80, "user": [1] * 80})


def clicks(folder: Path) -> pa.Table:
    path = folder / "clicks.csv"
    path.write_text(CLICKS)
    return pa_csv.read_csv(path)


@pytest.mark.parametrize("text", [LAYERS, FEW])
def test_a_frame_is_told_of_as_in_process(spark: SparkSession, tmp_path: Path, text: str) -> None:
    table, workload = clicks(tmp_path), hamlet.Workload.parse(text)
    expected = hamlet.run(workload, table)
    assert expected.warnings
    found = hamlet.spark.run(workload, spark.createDataFrame(table))
    assert list(found.warnings) == list(expected.warnings)
    assert found.stats["rows"] == len(expected) == found.count()
    windows = sum(work["windows"] for work in found.stats["operators"].values())
    assert windows >= sum(work["windows"] for work in expected.stats["operators"].values()) > 0


def test_files_are_told_of_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    table, workload = clicks(tmp_path), hamlet.Workload.parse(TEXT)
    pq.write_table(table, tmp_path / "clicks.parquet")
    source = str(tmp_path / "clicks.parquet")
    expected = hamlet.run(workload, FilteredEvents(open_events(source), "price < 5")).run_warnings
    found = hamlet.spark.submit(workload, source, str(tmp_path / "out"), where="price < 5")
    assert found["warnings"] == list(expected)


def test_operators_are_added_up_over_tasks(spark: SparkSession) -> None:
    events = pa.table({"time": range(600), "type": ["A", "B", "B"] * 200, "k": [i % 7 for i in range(600)]})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 100 s")
    one = hamlet.run(workload, events, operators="scalar").stats
    found = hamlet.spark.run(workload, spark.createDataFrame(events).repartition(3), operators="scalar").stats
    assert found["operators"] == one["operators"]
    assert one["operators"]["scalar"]["windows"] == one["windows"] == found["windows"]
    assert found["features"].keys() == one["features"].keys()


def test_large_counts_over_events_that_have_an_owner(spark: SparkSession, tmp_path: Path) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN view+ WITHIN 200 s")
    expected = hamlet.run(workload, LARGE).warnings
    assert "[user] counts within each" in expected[0]
    found_of_frame = hamlet.spark.run(workload, spark.createDataFrame(LARGE)).warnings
    assert found_of_frame == (expected[0], expected[1].removeprefix("q1."))  # one column of all queries
    pq.write_table(LARGE, tmp_path / "large.parquet")
    found = hamlet.spark.submit(workload, str(tmp_path / "large.parquet"), str(tmp_path / "out"))
    assert [*found["warnings"], *found["notes"]] == list(expected)


def test_errors_keep_their_fields(spark: SparkSession) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WHERE A.v * A.v > 3 WITHIN 9 s")
    huge = pa.table({"time": [1, 2], "type": ["A", "A"], "v": [1, 2**40]})
    with pytest.raises(DataError, match="passes 64 bits") as raised:
        hamlet.spark.run(workload, spark.createDataFrame(huge))
    assert raised.value.event == {"time": 2, "type": "A", "v": 2**40}
    late = pa.table({"time": pa.array([1, None], pa.int64()), "type": ["A", "A"], "v": [1, 7]})
    with pytest.raises(DataError, match="time column 'time' is NULL") as raised:
        hamlet.spark.run(workload, spark.createDataFrame(late))
    assert (raised.value.column, raised.value.event) == ("time", {"type": "A", "v": 7})
    counts = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN view+ GROUP-BY k WITHIN 90 s")
    frame = spark.createDataFrame(LARGE.append_column("k", [["b"] * 80]))
    with pytest.raises(HamletError, match="does not fit int64") as raised:
        hamlet.spark.run(counts, frame, count_type="int64")
    assert (raised.value.query, raised.value.window, raised.value.group) == ("q1", (0, 90), {"k": "b"})


def test_what_a_message_quotes_is_no_error() -> None:
    inner = packed(OptionError("a value"))
    error = DataError(f"the value {inner}").about(
        row=2, event={"at": datetime.datetime(2024, 3, 5, 1), "price": Decimal("1.50"), "none": None}, window=(1, 2)
    )
    found = unpacked_error(f"An exception was thrown: {error}\n{packed(error)}\n\tat org.apache.spark.X")
    assert isinstance(found, DataError)
    assert (str(found), found.row, found.event, found.window) == (str(error), 2, error.event, (1, 2))
    assert unpacked_error("[hamlet:WzFd]") is None


def test_what_is_no_frame_of_spark(spark: SparkSession) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
    pandas = type("DataFrame", (), {"__module__": "pandas.core.frame"})()
    for events, shown in ((pandas, "a pandas DataFrame"), ([{"time": 1}], "a list")):
        with pytest.raises(OptionError, match=f"^events is {shown}; hamlet.spark.run takes a DataFrame of Spark"):
            hamlet.spark.run(workload, events)  # type: ignore[arg-type]


def test_what_a_semijoin_leaves_behind_is_told_of_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Key 1 has all that a pattern needs; the others, and those without a key, stay behind."""
    keys = [1, 1, 1, 2, 2, 3, None]
    events = pa.table(
        {"time": range(7), "type": ["A", "B", "B", "A", "A", "B", "A"], "k": keys, "v": [0, 1, 2, 3, 4, 5, 1]}
    )
    pq.write_table(events, tmp_path / "e.parquet")
    text = "RETURN COUNT(*) PATTERN SEQ(A a, NOT C, B b+) WHERE [k] AND a.v < 4 AND b.v < 9 WITHIN 10 s"
    workload = hamlet.Workload.parse(text)
    expected = hamlet.run(workload, tmp_path / "e.parquet")
    for balance, semijoin in ((False, "on"), (True, "auto"), (True, "off")):
        out = tmp_path / f"out-{balance}-{semijoin}"
        found = hamlet.spark.submit(
            workload, str(tmp_path / "e.parquet"), str(out), balance=balance, semijoin=semijoin,
            products="never", output_format="json",
        )  # fmt: skip
        (path,) = (out / "query=q1").iterdir()
        assert [json.loads(line)["count"] for line in path.read_text().splitlines()] == [3]
        assert found["warnings"] == list(expected.warnings)
        assert found["matched_events"] == expected.stats["matched_events"]
        if semijoin == "off":
            assert (found["semijoin"], found["left_behind"]) == ({"keys": 0, "possible": 0}, 0)
        else:
            assert (found["semijoin"], found["left_behind"]) == ({"keys": 4, "possible": 1}, 3)


@pytest.mark.parametrize(("semijoin", "told"), [("on", True), ("auto", False)])
def test_a_semijoin_that_cannot_be_is_told(
    spark: SparkSession, tmp_path: Path, semijoin: Literal["on", "auto"], told: bool
) -> None:
    """Rows of a query have no scan before the shuffle, in which keys could be looked at; times keep their unit."""
    times = pa.array([0, 1000, 2000, 11000], pa.timestamp("ms"))
    pq.write_table(pa.table({"time": times, "type": ["A", "A", "B", "A"], "k": [1, 2, 1, 1]}), tmp_path / "e.parquet")
    text = "up: RETURN k, COUNT(*) PATTERN SEQ(A, B) GROUP-BY k WITHIN 10 s; RETURN COUNT(*) PATTERN up WITHIN 30 s"
    workload = hamlet.Workload.parse(text)
    found = hamlet.spark.submit(workload, str(tmp_path / "e.parquet"), str(tmp_path / "out"), semijoin=semijoin)
    one = hamlet.run(workload, tmp_path / "e.parquet")
    for name in workload.names:
        (path,) = (tmp_path / "out" / f"query={name}").iterdir()
        assert pq.read_schema(path).types == one.table(name).schema.types[1:]
    assert [each for each in found["notes"] if "semijoin" in each] == [NO_SEMIJOIN] * told
    assert found["rows"] == 2


def test_several_inputs_and_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in" / "day=1").mkdir(parents=True)
    (tmp_path / "in" / "day=2").mkdir()
    (tmp_path / "in" / "day=1" / "a.csv").write_text("time,type\n1,A\n2,B\n,B\n3,B,7\n")
    (tmp_path / "in" / "day=2" / "b.csv").write_text("time,type\n1,A\n")
    (tmp_path / "c.jsonl").write_text('{"time": 3, "type": "B", "day": 1}\n{"time": 4,\n')
    workload = hamlet.Workload.parse("RETURN day, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY day WITHIN 10 s")
    sources = [str(tmp_path / "in"), str(tmp_path / "c.jsonl")]
    expected = hamlet.run(workload, sources, bad_rows="drop")
    assert "3 bad rows dropped" in expected.warnings[0]
    found = hamlet.spark.submit(workload, sources, str(tmp_path / "out"), output_format="json", bad_rows="drop")
    (path,) = (tmp_path / "out" / "query=q1").iterdir()
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {name: value for name, value in row.items() if name != "query"} for row in expected.rows()
    ]
    assert (found["warnings"], found["events"]) == (list(expected.warnings), 4)
    with pytest.raises(DataError, match=r"a\.csv|c\.jsonl"):
        hamlet.spark.submit(workload, sources, str(tmp_path / "other"))
    for mixed, option in ((["hdfs://x/y.csv", sources[0]], {}), ("hdfs://x/y.csv", {"bad_rows": "drop"})):
        with pytest.raises(OptionError, match=r"hdfs://x/y\.csv"):
            hamlet.spark.submit(workload, mixed, str(tmp_path / "other"), **option)


OTHER_WORDS = """
sums: RETURN user_id, SUM(v.price), COUNT(v) PATTERN SEQ(view v+, buy) GROUP-BY user_id WITHIN 100 s;
many: RETURN COUNT(*) PATTERN view+ WHERE [user_id] WITHIN 1000 s;
none: RETURN COUNT(*) PATTERN SEQ(view, buy) HAVING COUNT(*) > 100000 WITHIN 10 s
"""


def test_other_words_are_tried_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    """SUM beside EVENTS, 2^64 trends beside SEMANTICS NEXT, and what HAVING rejects."""
    kinds = ["view", "view", "view", "buy"] * 75
    events = pa.table({"time": range(300), "type": kinds, "user_id": [1] * 300, "price": [i % 7 for i in range(300)]})
    workload = hamlet.Workload.parse(OTHER_WORDS)
    expected = hamlet.run(workload, events).run_warnings
    assert [any(each in said for said in expected) for each in ("EVENTS", "SEMANTICS NEXT", "HAVING")] == [True] * 3
    found = hamlet.spark.run(workload, spark.createDataFrame(events)).warnings
    assert [each for each in found if " in tables and Parquet, " not in each] == list(expected)
    pq.write_table(events, tmp_path / "e.parquet")
    told = hamlet.spark.submit(workload, str(tmp_path / "e.parquet"), str(tmp_path / "out"))
    assert told["warnings"] == list(expected)


def test_names_that_never_come_in_other_notations(spark: SparkSession, tmp_path: Path) -> None:
    """Policies in blocks of time and whole, specifications, and row patterns over no rows."""
    del spark
    events = pa.table({"time": range(4000), "type": ["p", "q"] * 2000, "x": [i % 5 for i in range(4000)]})
    pq.write_table(events, tmp_path / "e.parquet", row_group_size=500)
    policy = Policy.parse("p(x) AND NOT ONCE[0,3] r(x)", "p(x: int) q(x: int) r(x: int)")
    expected = hamlet.policies.run(policy, tmp_path / "e.parquet").warnings
    assert expected
    told = policies.submit(policy, str(tmp_path / "e.parquet"), str(tmp_path / "policy"), slices=4)
    assert told["notes"] == list(expected)
    inputs = pa.table({"time": range(5), "x": range(5), "y": pa.nulls(5, pa.int64())})
    pq.write_table(inputs, tmp_path / "s.parquet")
    spec = Specification.parse("input x: Int64, y: Int64\noutput z(k) spawn with x eval when k == x with x + k")
    expected = hamlet.streams.run(spec, tmp_path / "s.parquet").warnings
    assert expected
    told = specifications.submit(spec, str(tmp_path / "s.parquet"), str(tmp_path / "spec"))
    assert told["notes"] == list(expected)
    none = pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})
    pq.write_table(none, tmp_path / "t.parquet")
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES A.v AS v PATTERN (A) DEFINE A AS v > 0)"
    told = patterns.submit(text, {"t": [str(tmp_path / "t.parquet")]}, str(tmp_path / "sql"))
    assert told["notes"] == list(hamlet.sql(text, {"t": none}).warnings) != []
