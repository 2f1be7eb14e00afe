"""Continuous jobs of all notations: the rows of a batch, one reader, one lock, DataFrames in and out."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import DataError, OptionError, UnsupportedError
from hamlet.input.ordering import SortKey
from hamlet.policies import Policy
from hamlet.policies import run as run_policy
from hamlet.spark.checkpoint import owned
from hamlet.streams import Specification
from hamlet.streams import run as run_specification

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNATURE = "w(u: string, a: int) d(u: string, a: int) refund(u: string)"
POLICY = "w(u, a) AND NOT ONCE[0,5] EXISTS b. d(u, b)"
SPECIFICATION = """input u: String, a: Int64
output n(v: String) spawn with u eval when u = v with n(v).offset(by: -1).defaults(to: 0) + a
trigger (v: String) spawn with u eval when u = v && n(v) > 60 with "{} is rich".format(v)"""
PATTERNS = """SELECT u, t, n FROM events MATCH_RECOGNIZE (PARTITION BY u ORDER BY time
MEASURES FIRST(time) AS t, COUNT(*) AS n PATTERN (x y+) WITHIN 30 DEFINE y AS a > PREV(a)) WHERE n > 1"""
QUERY = "q: RETURN u, COUNT(*) AS n, SUM(d.a) AS s PATTERN SEQ(w, d+) WHERE [u] GROUP-BY u WITHIN 20 s"
CHAINED = f"""{QUERY};
r: RETURN u, COUNT(*) AS n, MAX(q.n) AS m PATTERN SEQ(q, w+) WHERE [u] AND q.n > 1 GROUP-BY u WITHIN 60 s;
e: RETURN COUNT(*) AS n PATTERN r+ WITHIN 120 s"""
NEVER = ["r: no rows, because Refund never occurs"]
END = 1000  # a time at which everything before is decided


@dataclass(frozen=True)
class Notation:
    """A text, how its job is submitted, and what a batch gives."""

    file: str
    text: str
    batch: Callable[[pa.Table], list[dict[str, Any]]]


def _policy() -> Policy:
    return Policy.parse(POLICY, SIGNATURE)


def _values(table: pa.Table) -> list[dict[str, Any]]:
    return run_specification(Specification.parse(SPECIFICATION), table, values=True).rows()


def _queries(text: str) -> Notation:
    return Notation("q.sase", text, lambda table: hamlet.run(hamlet.Workload.parse(text), table).rows())


NOTATIONS = {
    "query": _queries(QUERY),
    "policy": Notation("p.mfotl", POLICY, lambda table: run_policy(_policy(), table).rows()),
    "specification": Notation("s.lola", SPECIFICATION, _values),
    "patterns": Notation("m.sql", PATTERNS, lambda table: hamlet.sql(PATTERNS, {"events": table}).rows()),
}
EVERY = NOTATIONS | {"chained queries": _queries(CHAINED)}


@pytest.fixture
def store(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that keeps state as continuous jobs need it."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed (pip install 'hamlet-cep[spark]')")
    pytest.importorskip("duckdb", reason="duckdb is not installed (pip install 'hamlet-cep[sql]')")
    from hamlet.spark.continuous import PROVIDER, ROCKSDB

    before = {name: spark.conf.get(name) for name in (PROVIDER, "spark.sql.shuffle.partitions")}
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def drawn(seed: int, rows: int = 120) -> pa.Table:
    draw = random.Random(seed)
    found = [
        {"time": place // 2, "type": draw.choice("wwd"), "u": draw.choice("xyz"), "a": draw.randrange(9)}
        for place in range(rows)
    ]
    return pa.Table.from_pylist([*found, {"time": END, "type": "w", "u": "x", "a": 0}])


def listed(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in any order, without the names of what gave them and without what has no value."""
    left_out = ("policy", "query")
    kept = [{name: value for name, value in row.items() if name not in left_out and value is not None} for row in rows]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in kept)


def decided(notation: str, table: pa.Table) -> list[str]:
    """The rows of a batch that are final before the last event's time."""
    rows = EVERY[notation].batch(table)
    return early([row for row in rows if row.get("window_end", 0) < END])


def early(rows: list[dict[str, Any]]) -> list[str]:
    """The rows in which the last event has no part."""
    return [row for row in listed(rows) if str(END) not in row]


def written(out: Path) -> list[str]:
    rows = [json.loads(line) for file in sorted(out.rglob("part-*.json")) for line in file.read_text().splitlines()]
    return listed(rows)


def command(tmp_path: Path, notation: str, *more: str) -> list[str]:
    """The command line of a continuous job."""
    (tmp_path / "p.sig").write_text(SIGNATURE)
    place = tmp_path / EVERY[notation].file
    place.write_text(EVERY[notation].text)
    found = ["submit", str(place), "--stream", "--available-now", "--output-format", "json", "--quiet"]
    found += ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--slices", "2"]
    found += ["--signature", str(tmp_path / "p.sig")] if notation == "policy" else []
    found += ["--values"] if notation == "specification" else []
    return [*found, "--checkpoint", str(tmp_path / "state"), *more]


def put(folder: Path, name: str, text: str) -> None:
    """A file that appears at once."""
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)
    time.sleep(0.02)  # Spark's file source knows their order by milliseconds


def csv(rows: list[dict[str, Any]]) -> str:
    return "time,type,u,a\n" + "".join(f"{row['time']},{row['type']},{row['u']},{row['a']}\n" for row in rows)


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("notation", EVERY)
def test_rows_are_those_of_a_batch(store: SparkSession, tmp_path: Path, notation: str) -> None:
    """In micro-batches, over a restart, with disorder within the lateness; a late event is dropped and counted."""
    assert store is not None
    table = drawn(7)
    rows = table.to_pylist()
    draw = random.Random(3)
    mixed = rows  # of specifications and patterns events of one time count in the order of the input
    if notation in ("query", "chained queries", "policy"):
        mixed = [row for _, row in sorted(((row["time"] // 4, draw.random()), row) for row in rows)]
    more: tuple[str, ...] = ("--lateness", "8", "--late", "drop", "--files-per-batch", "1")
    if notation == "chained queries":
        more = (*more, "--where", "a < 100")  # which all fulfil
    last = {"time": END, "type": "w", "u": "x", "a": 0}
    put(tmp_path / "in", "0.csv", csv(mixed[:70]))
    assert main(command(tmp_path, notation, *more)) == 0
    put(tmp_path / "in", "1.csv", csv([*mixed[70:], last]))
    put(tmp_path / "in", "2.csv", csv([{**last, "time": 1}, {**last, "time": END + 90}]))
    assert main(command(tmp_path, notation, *more)) == 0
    expected = decided(notation, table)
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == expected
    assert len(expected) > 5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("notation", ["query", "patterns"])  # the others are read as patterns are
def test_empty_files_hold_no_events(store: SparkSession, tmp_path: Path, notation: str) -> None:
    """As in pipes; Spark does not read them, wherever they stand among others."""
    assert store is not None
    table = drawn(7)
    rows = table.to_pylist()
    for number, text in enumerate(("", lines(rows[:70]), "", lines(rows[70:]))):
        put(tmp_path / "in", f"{number}.jsonl", text)
    assert main(command(tmp_path, notation)) == 0
    expected = decided(notation, table)
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == expected
    assert expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("notation", ["query", "specification"])  # policies are read as specifications are
def test_times_may_be_called_ts(store: SparkSession, tmp_path: Path, notation: str) -> None:
    """Found by itself, at the first start and at the next."""
    assert store is not None
    table = drawn(7)
    rows = table.to_pylist()
    for number, part in enumerate((rows[:70], rows[70:])):
        put(tmp_path / "in", f"{number}.csv", csv(part).replace("time", "ts", 1))
        assert main(command(tmp_path, notation)) == 0
    expected = decided(notation, table)
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == expected
    assert expected


BAD = {
    "short row": ("1.csv", "time,type,u,a\n61,w,x,1\n62,w,y\n", "1.csv:3", ""),
    "text": ("1.csv", "time,type,u,a\n61,w,x,1\n62,w,y,ten\n", "1.csv:3", "'a'"),
    "float": ("1.csv", "time,type,u,a\n61,w,x,1\n62,w,y,1.5\n", "1.csv:3", "'a'"),
    "no column": ("1.csv", "time,type,u\n61,w,x\n", "1.csv:1", "'a'"),
    "broken": ("1.jsonl", '{"time": 61, "type": "w", "u": "x", "a": 1}\n{"time": 62, "type"\n', "1.jsonl:2", ""),
    "key twice": ("1.jsonl", '{"time": 61, "type": "w", "u": "x", "a": 1, "a": 2}\n', "1.jsonl", ""),
    "number as text": ("1.jsonl", '{"time": 61, "type": "w", "u": "x", "a": "1"}\n', "1.jsonl:1", "'a'"),
}


# One reader serves all notations, and a start takes seconds: JSON lines are tried with one of them.
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("notation", "form"), [*((each, "csv") for each in NOTATIONS), ("policy", "jsonl")])
def test_a_bad_file_stops_a_job_and_loses_nothing(
    store: SparkSession, tmp_path: Path, notation: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, line and column are said, nothing of the micro-batch is written, and the job goes on when it is mended."""
    assert store is not None
    text_of = csv if form == "csv" else lines
    rows = drawn(5).to_pylist()
    put(tmp_path / "in", f"0.{form}", text_of(rows[:60]))
    go = command(tmp_path, notation)
    assert main(go) == 0
    before = written(tmp_path / "out")
    capsys.readouterr()
    put(tmp_path / "in", f"2.{form}", text_of(rows[60:]))
    # A query's job learns types from all files at its start: those of files that come later are in test_spark_stream.
    # Every kind of bad file is in the test of the reader, below.
    what = "broken" if form == "jsonl" else "short row" if notation == "query" else "text"
    name, text, place, column = BAD[what]
    put(tmp_path / "in", name, text)
    assert main(go) == 2
    said = capsys.readouterr().err
    assert place in said, said
    assert column in said, said
    assert written(tmp_path / "out") == before
    added = {"a": 3, "u": "x", "type": "w", "time": 30}  # found by name
    put(tmp_path / "in", f"1.{form}", "a,u,type,time\n3,x,w,30\n" if form == "csv" else lines([added]))
    assert main(go) == 0
    table = pa.Table.from_pylist([*rows[:60], added, *rows[60:]])
    found = [row for row in written(tmp_path / "out") if str(END) not in row]
    assert found == decided(notation, table.sort_by("time"))


def test_every_kind_of_bad_file_is_named(tmp_path: Path) -> None:
    """By the reader that the tasks of all notations use."""
    from hamlet.spark.events import Reading, read_arrivals

    put(tmp_path, "0.csv", csv(drawn(5).to_pylist()))
    schema = pa.schema([("time", pa.int64()), ("type", pa.string()), ("u", pa.string()), ("a", pa.int64())])
    for what, (name, text, place, column) in BAD.items():
        put(tmp_path, name, text)
        paths = [pa.RecordBatch.from_pydict({"path": [f"file:{tmp_path / each}" for each in ("0.csv", name)]})]
        read = read_arrivals(Reading(SortKey("time"), "type"), lambda *_: None, schema, schema, frozenset(), paths)
        with pytest.raises(DataError) as raised:
            list(read)
        assert place in str(raised.value), what
        assert column in str(raised.value), what


def parquet(rows: list[dict[str, Any]], path: Path) -> pa.RecordBatch:
    """What tells a task to read a file of these rows."""
    pq.write_table(pa.Table.from_pylist(rows), path)
    return pa.RecordBatch.from_pydict({"path": [f"file:{path}"]})


def test_a_file_of_parquet_that_is_bad_is_named(tmp_path: Path) -> None:
    from hamlet.spark.events import Reading, read_arrivals

    schema = pa.schema([("time", pa.int64()), ("a", pa.int64())])
    good, path = {"time": 61, "a": 1}, tmp_path / "1.parquet"
    for row, said in (
        ({"time": None, "a": 1}, ": the time column 'time' is NULL in row 2 (the first row is 1)"),
        ({"time": 62, "a": 1.5}, ": column 'a' holds 1.5 in row 2 (the first row is 1), and in the files before"),
    ):
        read = read_arrivals(
            Reading(SortKey("time"), "", declared=("a",)),
            lambda *_: None,
            schema,
            schema,
            frozenset(),
            [parquet([good, row], path)],
        )
        with pytest.raises(DataError) as raised:
            list(read)
        assert str(raised.value).startswith(f"{path}{said}")
    told = parquet([{"a": 1}], path)
    with pytest.raises(DataError, match=r"1\.parquet: there is no time column 'time'; the columns are a"):
        list(read_arrivals(Reading(SortKey("time"), ""), lambda *_: None, schema, schema, frozenset(), [told]))


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_doubles_that_are_whole_are_integers_of_a_specification(ending: str, tmp_path: Path) -> None:
    """In a continuous job as in a batch; what a query reads keeps the type that it had when the job began."""
    from hamlet.spark.events import Reading, read_arrivals

    rows, path = [{"time": 61, "a": 1.0}, {"time": 62, "a": None}, {"time": 63, "a": 3.0}], tmp_path / f"1.{ending}"
    told = parquet(rows, path)
    if ending == "jsonl":
        path.write_text(lines(rows))
    schema = pa.schema([("time", pa.int64()), ("a", pa.int64())])
    for declared in (("a",), ()):
        reading = Reading(SortKey("time"), "", declared=declared)
        read = read_arrivals(reading, lambda *_: None, schema, schema, frozenset(), [told])
        if not declared:
            with pytest.raises(DataError, match=rf"1\.{ending}.*in the files before it is INT"):
                list(read)
            continue
        [batch] = list(read)
        assert batch.column(1).to_pylist() == [1, None, 3]
    spec = Specification.parse("input a: Int64\noutput b := a")
    assert [row["value"] for row in run_specification(spec, path, values=True).rows()] == [1, 3]


def test_strings_of_a_signature_are_text_in_a_job_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hamlet.input.files import open_path
    from hamlet.policies import Policy
    from hamlet.spark import policies

    def columns_of_the_first_file(source: str, *given: Any) -> pa.Schema:
        reading, columns, *_ = given[3:]
        return columns(open_path(Path(source) / "0.csv", reading.key, reading.type_column, None, reading.form))

    put(tmp_path, "0.csv", "time,type,u,a\n61,w,007,1\n")
    monkeypatch.setattr(policies, "follow", columns_of_the_first_file)
    policy = Policy.parse("w(u, a)", "w(u: string, a: int)")
    schema: Any = policies.submit_stream(policy, str(tmp_path), "out", "state")
    assert schema.field("u").type == pa.string()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("notation", NOTATIONS)
def test_the_checkpoint_is_one_jobs_and_whole(
    store: SparkSession, tmp_path: Path, notation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert store is not None
    put(tmp_path / "in", "0.csv", csv(drawn(5).to_pylist()))
    go = command(tmp_path, notation)
    assert main(go) == 0
    capsys.readouterr()
    with owned(str(tmp_path / "state")):
        assert main(go) == 2
    assert f"is in use by process {os.getpid()} on" in capsys.readouterr().err
    spark = tmp_path / "state" if notation != "patterns" else tmp_path / "state" / "q1"
    for part, said in (("state", "the states of its monitors"), ("offsets", "place in the input"), ("sources", "read")):
        shutil.move(spark / part, tmp_path / f"{part}-moved")
        assert main(go) == 2
        assert said in capsys.readouterr().err
        shutil.move(tmp_path / f"{part}-moved", spark / part)
    with (tmp_path / "in" / "0.csv").open("a") as file:
        file.write("1001,w,y,3\n")
    assert main(go) == 2
    assert "0.csv has changed since it was read" in capsys.readouterr().err


@pytest.mark.sampled(5)
@pytest.mark.parametrize("notation", EVERY)
def test_a_streaming_frame_in_and_out(store: SparkSession, tmp_path: Path, notation: str) -> None:
    """It knows what was probably not meant, as far as its queries have come."""
    table = drawn(11)
    table = table.append_column("b", pa.nulls(table.num_rows, pa.int64()))
    said = {"query": NEVER, "policy": ["refund never occurs"], "specification": ["b never occurs"]}
    (tmp_path / "in").mkdir()
    for number, begin in enumerate(range(0, table.num_rows, 50)):
        pq.write_table(table.slice(begin, 50), tmp_path / "in" / f"{number}.parquet")
        time.sleep(0.02)
    schema = store.read.parquet(str(tmp_path / "in")).schema
    events = store.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    work: Any = {"policy": _policy, "patterns": lambda: PATTERNS}.get(notation, lambda: None)()
    if notation == "query":
        work = hamlet.Workload.parse(f"{QUERY}; r: RETURN COUNT(*) PATTERN SEQ(w, Refund) WITHIN 20 s")
    if notation == "chained queries":
        work = hamlet.Workload.parse(CHAINED)
    options: dict[str, Any] = {"slices": 2}
    if notation == "specification":
        work, options["values"] = Specification.parse(f"input b: Int64\n{SPECIFICATION}"), True
    rows = hamlet.spark.stream(events, work, **options)
    assert rows.isStreaming
    assert list(rows.warnings) == []
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
    query = writer.format("parquet").start(str(tmp_path / "out"))
    query.awaitTermination()
    assert list(rows.warnings) == said.get(notation, [])
    counted = sum(each.observedMetrics["hamlet"]["events"] or 0 for each in query.recentProgress)
    assert counted == table.num_rows
    found = [row.asDict() for row in store.read.parquet(str(tmp_path / "out")).collect()]
    expected = decided(notation, table)
    if isinstance(work, hamlet.Workload):  # COUNT of a lazy frame is text
        texts = ("n", "s", "m")
        found = [{**row, **{name: int(row[name]) for name in texts if row.get(name) is not None}} for row in found]
    assert early([row for row in found if (row.get("window_end") or 0) < END]) == expected
    assert expected


def test_what_cannot_go_on_is_refused(store: SparkSession) -> None:
    rate = store.readStream.format("rate").load()
    rate = rate.selectExpr("timestamp as time", "'w' as type", "'x' as u", "value as a")
    plain = PATTERNS.replace(" WITHIN 30", "")
    for text, said in (
        (plain.replace("(x y+)", "(x y+ $)"), r"\$ needs the end"),
        (plain.replace("ORDER BY time", "ORDER BY time DESC"), "descends"),
        (plain.replace("ORDER BY time", ""), "needs ORDER BY"),
        (plain.replace("ORDER BY time", "ORDER BY u"), "needs times"),
    ):
        with pytest.raises((UnsupportedError, hamlet.WorkloadError), match=said):
            hamlet.spark.stream(text, rate)
    with pytest.raises(OptionError, match="takes a streaming DataFrame"):
        hamlet.spark.stream(_policy(), store.range(1))
    with pytest.raises(OptionError, match="there is no option 'slicse'"):
        hamlet.spark.stream(_policy(), rate, slicse=2)
    with pytest.raises(DataError, match="no column"):
        hamlet.spark.stream(_policy(), rate.drop("a"))


def sums_of(rows: list[dict[str, Any]]) -> list[str]:
    """What is said of the query's sums."""
    found = [each for each in hamlet.run(hamlet.Workload.parse(QUERY), rows).warnings if "EVENTS" in each]
    assert found
    return found


def sliced(tmp_path: Path, notation: str, slices: int, *more: str, loud: bool = False) -> None:
    """Run a job with so many slices over what is there."""
    arguments = command(tmp_path, notation, *more)
    arguments = [each for each in arguments if each != "--quiet" or not loud]
    arguments[arguments.index("--slices") + 1] = str(slices)
    assert main(arguments) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("notation", ["query", "policy", "specification"])
def test_another_number_of_slices_goes_on(
    store: SparkSession, tmp_path: Path, notation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the rows, and the findings, of one run over all events."""
    assert store is not None
    table = drawn(11)
    rows = table.to_pylist()
    last = {"time": END, "type": "w", "u": "x", "a": 0}
    third = len(rows) // 3
    parts = [rows[:third], rows[third : 2 * third], [*rows[2 * third :], last, {**last, "time": END + 90}]]
    for number, (slices, part) in enumerate(zip((2, 3, 1), parts, strict=True)):
        put(tmp_path / "in", f"{number}.csv", csv(part))
        capsys.readouterr()
        sliced(tmp_path, notation, slices, loud=True)
        plan = json.loads((tmp_path / "state" / "cells.json").read_text())
        assert set(plan["places"]) == set(range(slices))
        assert plan["generation"] == number
    notes = [line.removeprefix("note: ") for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes == {"query": sums_of([*rows, last]), "policy": ["refund never occurs"], "specification": []}[notation]
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == decided(notation, table)


def adapting(folder: Path, notation: str, rows: list[dict[str, Any]], says: pytest.CaptureFixture[str]) -> list[float]:
    """Run an adaptive job over files of 300 events; the largest slice over the mean, micro-batch by micro-batch."""
    last = {"time": END, "type": "w", "u": "x", "a": 0}
    rows = [*rows, last, {**last, "time": END + 90}]
    begins = range(0, len(rows) - 2, 300)
    for number, begin in enumerate(begins):
        put(folder / "in", f"{number}.csv", csv(rows[begin : begin + 300 if number + 1 < len(begins) else None]))
    sliced(folder, notation, 3, "--adaptive", "--files-per-batch", "1", "--verbose")
    return [float(each) for each in re.findall(r"largest slice ([\d.]+) of the mean", says.readouterr().err)]


def test_states_move_to_where_there_is_less_to_do(
    store: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The cells beside that of a heavy user move, and no row changes."""
    assert store is not None
    lot = random.Random(4)
    users = [f"k{number}" for number in range(60)]
    rows = [
        {"time": at // 8, "type": lot.choice("wwd"), "u": "heavy" if lot.random() < 0.4 else lot.choice(users), "a": 1}
        for at in range(900)
    ]
    shares = adapting(tmp_path, "query", rows, capfd)
    assert shares[0] > 1.25
    assert shares[-1] < min(1.5, shares[0])
    plan = json.loads((tmp_path / "state" / "cells.json").read_text())
    assert plan["generation"] > 0
    assert set(plan["places"]) == {0, 1, 2}
    expected = decided("query", pa.Table.from_pylist(rows))
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == expected


def test_a_policy_is_cut_anew_where_a_heavy_user_moves(
    store: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A user with two thirds of the events has shares of their own, and another one after them; no row changes."""
    assert store is not None
    lot = random.Random(4)
    users = [f"k{number}" for number in range(60)]
    rows = [
        {
            "time": at // 4,
            "type": lot.choice("wwd"),
            "u": f"heavy{at // 600}" if lot.random() < 0.67 else lot.choice(users),
            "a": lot.randrange(1000),
        }
        for at in range(1200)
    ]
    shares = adapting(tmp_path, "policy", rows, capfd)
    assert shares[0] > 1.5
    assert max(shares[1], shares[3]) < 1.5
    assert json.loads((tmp_path / "state" / "cells.json").read_text())["shares"] is not None
    expected = decided("policy", pa.Table.from_pylist(rows))
    assert [row for row in written(tmp_path / "out") if str(END) not in row] == expected


def test_cells_go_where_least_is() -> None:
    from hamlet.spark.scaling import balanced, largest_share, spread

    places = spread(8, 2)
    assert places == (0, 1) * 4
    loads = {0: 40, 2: 30, 4: 20, 6: 10, 1: 5}
    assert largest_share(loads, places) == pytest.approx(200 / 105)
    found = balanced(loads, places)
    assert largest_share(loads, found) < 1.1
    assert balanced(loads, found) == found
    assert balanced({}, places) == places
    assert balanced({3: 9}, places) == places
