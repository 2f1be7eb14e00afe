"""Where the input arrives in time ranges, maps travel in place of events, and the rows are those of one process."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.errors import DataError, OptionError
from hamlet.output.digits import integer_of
from hamlet.output.partial import SCHEMA
from hamlet.output.query_part import query_results
from hamlet.output.result import Results
from hamlet.parallel.routing.routes import routes
from hamlet.parallel.time.ranges import Cut, Range, cut_of, ranges_of, refused, too_dear
from hamlet.spark import chunk_tasks
from hamlet.spark.chunk_tasks import BORDER, ChunkTask, Sender
from hamlet.spark.parts import parts_of, read_part, row_groups
from hamlet.spark.rows import Presenter
from hamlet.spark.tasks import Shipment
from tests.comparison import difference
from tests.parallel.test_time_chunks import CHUNKS, FEATURES, LONG, stream
from tests.spark.test_partial_rows import pieces, shipment_of, table_of
from tests.spark.test_spark import assert_same_rows, rows_of
from tests.spark.test_spark_submit import read
from tests.strategies import Case, random_case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# ------------------------------------------------------------------------------------------- without Spark


def measured(shipment: Shipment, parts: list[pa.Table]) -> list[Range]:
    """The ranges of parts of a stream."""
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    found = [
        batch
        for part in parts
        for batch in chunk_tasks.measured(shipment, known, part.column_names, iter(part.to_batches()))
    ]
    return ranges_of(found)


def anywhere(table: pa.Table, count: int, chance: random.Random) -> list[pa.Table]:
    """A sorted table in parts that may split a time, some of them empty."""
    places = sorted(chance.randint(0, len(table)) for _ in range(count - 1))
    return [table.slice(a, b - a) for a, b in itertools.pairwise([0, *places, len(table)])]


def sorted_by(rows: list[pa.RecordBatch], *names: str) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(rows, SCHEMA).sort_by([(name, "ascending") for name in names]).to_batches()


def through_tasks(case: Case, count: int, seed: int, **extra: Any) -> list[dict[str, Any]] | None:
    """The rows of a case as tasks make them of time ranges; None where a query has no maps."""
    chance, table = random.Random(seed), table_of(case)
    shipment = shipment_of(case[0], table, **case[2], **extra)
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    order = [(name, "ascending") for name in (compiled.schema.clock.column, compiled.schema.order_column) if name]
    columns = [name for name in compiled.schema.columns if any(name in route.columns for route in known)]
    parts = anywhere(table.sort_by(order).select(columns), count, chance)
    cut = cut_of(measured(shipment, parts))
    if isinstance(cut, str) or refused(compiled):
        return None
    found = [
        batch for part in parts for batch in ChunkTask(shipment, known, cut).products(iter(list(pieces(part, chance))))
    ]
    found = sorted_by(found, "query", "window")
    found = list(ChunkTask(shipment, known, cut).of_borders(iter(found)))
    assert all(BORDER not in batch.column("query").to_pylist() for batch in found)
    found = sorted_by(found, "query", "group", "window")
    found = sorted_by(list(Sender(shipment).folded(iter(found))), *SCHEMA.names[:3])
    shown = sorted(Presenter(shipment).rows(found), key=lambda pair: pair[0])
    return [row for _, rows in shown for row in query_results([rows], compiled.schema.clock).rows()]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("features", FEATURES)
def test_tasks_of_time_ranges_give_the_rows_of_one_process(features: str) -> None:
    """Ranges may have a time in common, whose events meet."""
    compared = 0
    for seed in range(100, 160):
        case = random_case(seed, FEATURES[features])
        count = CHUNKS[seed % len(CHUNKS)]
        got = through_tasks(case, count, seed)
        if got is None:
            continue
        compared += 1
        expected = hamlet.run(hamlet.Workload.parse(case[0]), table_of(case), **case[2]).rows()
        wrong = difference(got, expected)
        assert wrong is None, f"seed {seed}, {count} ranges: {wrong}\n{case}\n{got}\n{expected}"
    assert compared > 10


def test_ranges_that_are_none() -> None:
    one, two = Range(0, 5, 9, 1, 2, True, (1,)), Range(5, 8, 9, 3, 1, False, (1,))
    assert cut_of([one, two]) == Cut((5,), 5, ordered=False, ranges=2, partitions=1)
    assert cut_of([one]) == Cut((), 6, ordered=True, ranges=1, partitions=1)
    assert cut_of([]) == "the input is empty"
    assert cut_of([one, Range(4, 9, 3, 1, 1, True, (1,))]) == "ranges of the input overlap in time"
    several = [Range(5, 5, 3, 3, 3, True, (1,))] * 3
    assert cut_of([one, *several, two]) == Cut((5,), 5, ordered=False, ranges=5, partitions=1)


def test_a_range_is_measured_exactly() -> None:
    table = pa.table({"time": [5, 3, 3, None, 9, 9, 9, 4], "type": ["A"] * 8, "k": [1, None, 1, 2, 1, None, 3, 1]})
    shipment = shipment_of("RETURN COUNT(*) PATTERN A WHERE [k] WITHIN 1 s", table)
    for size in (1, 3, 8):
        parts = iter(table.to_batches(max_chunksize=size))
        known = routes(shipment.workload, shipment.compiled())
        (found,) = ranges_of(chunk_tasks.measured(shipment, known, ["time", "type", "k"], parts))
        assert found == Range(3, 9, 7, 2, 3, ordered=False, keys=(3,))
    assert ranges_of(chunk_tasks.measured(shipment, known, ["time", "type", "k"], iter([]))) == []


def test_maps_travel_where_that_pays() -> None:
    """One group, windows far shorter than ranges: yes. Few events, many partitions, or all at one time: no."""
    text = "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] WITHIN 60 s SLIDE 10 s"
    slow = "2 ranges are estimated to take 2 tasks longer than events that are shuffled"
    compiled = shipment_of(text, pa.table({"time": [1], "type": ["A"], "k": [1]})).compiled()

    def dear(
        keys: int, rows: int, at_border: int = 1, parts: int = 4, slots: int = 2, *, apart: bool = True
    ) -> str | None:
        ranges = [
            Range(t * 10_000, t * 10_000 + 10_000, rows, at_border, at_border, True, (keys,)) for t in range(parts)
        ]
        cut = cut_of(ranges)
        assert isinstance(cut, Cut)
        return too_dear(compiled, ranges, cut, slots, apart=apart)

    assert dear(1, 500_000) is None
    assert dear(50, 1_000_000, parts=2, apart=False) == slow  # what reading them twice costs
    assert dear(50, 2_000_000, parts=2) is None
    assert dear(50, 20_000_000, parts=1, slots=16) == slow.replace("2 ranges", "1 ranges").replace(
        "2 tasks", "16 tasks"
    )
    assert dear(1, 500) == "2,000 events are too few"
    assert "entries of matrices would travel" in (dear(100_000, 500_000) or "")
    assert "of times at which one range ends" in (dear(1, 500_000, 300_000) or "")


@pytest.mark.parametrize("statistics", [True, False])
def test_parts_of_files_are_in_the_order_of_time(tmp_path: Path, statistics: bool) -> None:
    """Row groups are put in order whatever the files' names, if these say what times they have; nothing is lost."""
    paths = []
    for name, first in (("a", 600), ("b", 0), ("c", 300)):
        times = list(range(first, first + 300))
        table = pa.table({"time": times, "v": [-time for time in times], name: times})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100, write_statistics=statistics)
        paths.append(str(tmp_path / f"{name}.parquet"))
    wanted = pa.schema([("a", pa.int64()), ("v", pa.int64()), ("time", pa.int64())])
    parts = parts_of(row_groups(paths, "time"), 4)
    assert sorted(len(part) for part in parts) == [2, 2, 2, 3]
    rows = [row for part in parts for batch in read_part(part, wanted) for row in batch.to_pylist()]
    order = [0, 300, 600] if statistics else [600, 0, 300]
    times = [time for first in order for time in range(first, first + 300)]
    assert rows == [{"a": time if time >= 600 else None, "v": -time, "time": time} for time in times]


def test_parts_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"time": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert parts_of(row_groups([str(tmp_path / "none.parquet")], "time"), 4) == []


PEAK = """
import resource, sys
import pyarrow as pa, pyarrow.parquet as pq
from hamlet.parallel.time.ranges import Cut
from hamlet.engine.options import Options
from hamlet.parallel.routing.routes import routes
from hamlet.spark.chunk_tasks import ChunkTask
from hamlet.spark.parts import read_part, row_groups
from hamlet.spark.tasks import Shipment
path, text, groups = sys.argv[1], sys.argv[2], int(sys.argv[3])
shipment = Shipment(text, "test", Options(numbers="float"), pq.read_schema(path))
task = ChunkTask(shipment, routes(shipment.workload, shipment.compiled()), Cut((), -1, True, 2, 1))
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before = peak()
for _ in task.products(read_part(row_groups([path], "time")[:groups], pq.read_schema(path))):
    pass
print(task.received, peak() - before)
"""


def test_memory_of_a_task_is_bounded_by_its_chunk(tmp_path: Path) -> None:
    """A task of a tenth of a group, and one of the whole group: neither holds its events."""
    events = 2_000_000
    times = np.arange(events)
    table = pa.table({"time": times, "type": np.where(times % 10, "B", "A"), "v": times})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=events // 10)
    text = "RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WITHIN 5000 s SLIDE 1000 s"

    def peak(groups: int) -> int:
        command = [sys.executable, "-c", PEAK, str(tmp_path / "in.parquet"), text, str(groups)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).resolve().parents[2]
        )
        received, grown = map(int, done.stdout.split())
        assert received == groups * events // 10
        return grown

    least, most = peak(1), peak(10)
    assert most - least < table.nbytes / 4
    assert most < 200e6


# -------------------------------------------------------------------------------------------- on Spark


def files(folder: Path, parts: list[pa.Table]) -> str:
    """Parts of a stream as files of a folder."""
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"part-{number}.parquet")
    return str(folder)


def check_files(folder: Path, workload: hamlet.Workload, expected: Results, *, floats: bool = False) -> None:
    """The files of a job hold the rows of one process, numbers of any size as they are written there."""
    kinds: dict[type, Any] = {int: integer_of, float: float, Decimal: Decimal}
    for name in workload.names:
        wanted = [row for row in expected.rows() if row["query"] == name]
        rows = []
        for row, like in zip(read(folder, name, "parquet"), wanted, strict=True):
            found = {"query": name, **row}
            for column, value in found.items():
                if isinstance(value, str) and type(like[column]) in kinds:
                    found[column] = kinds[type(like[column])](value)
            rows.append(found)
        assert difference(rows, wanted, floats=floats) is None


WINDOWS = ["WITHIN 40 s", "WITHIN 300 s SLIDE 60 s", "WITHIN 5000 s", "WITHIN 90 s", "WITHIN 60 s"]
KEYED = "keyed: RETURN k, COUNT(*), MIN(B.w) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY k WITHIN 200 s SLIDE 50 s"
WORKLOAD = "; ".join(
    [*(f"{name}: {query} {window}" for (name, query), window in zip(LONG.items(), WINDOWS, strict=True)), KEYED]
)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    table = stream(3000, random.Random(11), "AABBBCD")
    chance = random.Random(12)
    table = table.append_column("k", pa.array([chance.choice([None, "x", "y"]) for _ in range(3000)]))
    return table.append_column("g", pa.array([chance.randint(1, 3) for _ in range(3000)]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_submit_sends_maps(
    spark: SparkSession, events: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: str
) -> None:
    """Files that have a time in common with their neighbours; what is shuffled, and what the summary says of it."""
    monkeypatch.setattr("hamlet.spark.parts.MOST_ROWS", 100)
    source = files(tmp_path / "in", anywhere(events, 4, random.Random(2)))
    workload = hamlet.Workload.parse(WORKLOAD)
    expected = hamlet.run(workload, events, numbers=numbers, count_type="string")
    stats = hamlet.spark.submit(
        workload, source, str(tmp_path / "out"), products="always", numbers=numbers, count_type="string"
    )
    assert stats["products"] == {"used": True, "reason": None, "ranges": 4}
    for name in ("matched_events", "largest_count_bits"):
        assert stats[name] == expected.stats[name], name
    assert sum(stats["slices"]["loads"]) == events.num_rows
    assert stats["rows"] == len(expected.rows())
    check_files(tmp_path / "out", workload, expected, floats=numbers == "float")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_frame_whose_partitions_are_ranges(spark: SparkSession, events: pa.Table, tmp_path: Path, lazy: bool) -> None:
    folder = files(tmp_path / "in", anywhere(events, 3, random.Random(4)))
    parts = [spark.read.parquet(f"{folder}/part-{number}.parquet") for number in (2, 0, 1)]
    frame = reduce(lambda one, other: one.unionAll(other), parts)
    workload = hamlet.Workload.parse(WORKLOAD)
    got = hamlet.spark.run(workload, frame, products="always", lazy=lazy)
    assert_same_rows(rows_of(got, workload), hamlet.run(workload, events).rows())


def test_ranges_that_overlap_are_no_chunks(spark: SparkSession, events: pa.Table, tmp_path: Path) -> None:
    """The ordinary job runs, and says so; so it does where a query has no maps."""
    chance = random.Random(6)
    shuffled = events.take(pa.array(chance.sample(range(len(events)), len(events))))
    source = files(tmp_path / "in", [shuffled.slice(0, 1400), shuffled.slice(1400)])
    for number, (text, reason) in enumerate(
        [
            (LONG["kleene"] + " WITHIN 300 s SLIDE 60 s", "ranges of the input overlap in time"),
            ("RETURN COUNT(*) PATTERN A+ WHERE A.v < NEXT(A).v WITHIN 100 s", "query q1 has an adjacent predicate"),
        ]
    ):
        workload = hamlet.Workload.parse(text)
        out = tmp_path / f"out{number}"
        stats = hamlet.spark.submit(workload, source, str(out), products="always")
        assert not stats["products"]["used"]
        assert stats["products"]["reason"].startswith(reason)
        check_files(out, workload, hamlet.run(workload, shuffled))


def test_an_input_without_events(spark: SparkSession, events: pa.Table, tmp_path: Path) -> None:
    source = files(tmp_path / "in", [events.slice(0, 0)])
    workload = hamlet.Workload.parse(LONG["kleene"] + " WITHIN 300 s")
    stats = hamlet.spark.submit(workload, source, str(tmp_path / "out"), products="always")
    assert (stats["rows"], stats["products"]["reason"]) == (0, "the input is empty")


def test_a_range_in_no_order_is_sorted(spark: SparkSession, events: pa.Table, tmp_path: Path) -> None:
    half = len(events) // 2
    parts = [events.slice(0, half).take(list(range(half))[::-1]), events.slice(half)]
    source = files(tmp_path / "in", parts)
    workload = hamlet.Workload.parse(WORKLOAD)
    stats = hamlet.spark.submit(workload, source, str(tmp_path / "out"), products="always")
    assert stats["products"]["used"]
    check_files(tmp_path / "out", workload, hamlet.run(workload, events))


def test_events_that_change_are_an_error(events: pa.Table) -> None:
    """What was measured is checked again where it is used."""
    shipment = shipment_of(LONG["kleene"] + " WITHIN 300 s", events)
    known = routes(shipment.workload, shipment.compiled())
    cut = Cut((), 0, ordered=True, ranges=2, partitions=1)
    columns = ["time", "type", "v", "w"]

    def made(part: pa.Table) -> list[pa.RecordBatch]:
        return list(ChunkTask(shipment, known, cut).products(iter(part.select(columns).to_batches())))

    with pytest.raises(DataError, match="a part of the input is not in the order of time, though"):
        made(events.take([5, 2000, 1]))
    twice = sorted_by([*made(events.slice(0, 2000)), *made(events.slice(1000))], "query", "group", "window")
    with pytest.raises(DataError, match="two parts of the input overlap in time, though"):
        list(Sender(shipment).folded(iter(twice)))


def test_there_is_no_such_choice(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="products is 'sometimes'; it must be 'auto', 'always' or 'never'"):
        hamlet.spark.submit(
            hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 9 s"), "none", str(tmp_path), products="sometimes"
        )


def test_a_condition_goes_before_the_maps(spark: SparkSession, events: pa.Table, tmp_path: Path) -> None:
    """--where is tested in the tasks that make the maps; what is dropped is not counted."""
    source = files(tmp_path / "in", anywhere(events, 3, random.Random(8)))
    workload = hamlet.Workload.parse(f"kleene: {LONG['kleene']} WITHIN 300 s SLIDE 60 s")
    stats = hamlet.spark.submit(workload, source, str(tmp_path / "out"), products="always", where="k = 'x' OR v > 3")
    chosen = [row for row in events.to_pylist() if row["k"] == "x" or (row["v"] is not None and row["v"] > 3)]
    assert stats["products"]["used"]
    assert stats["events"] == len(chosen)
    check_files(tmp_path / "out", workload, hamlet.run(workload, pa.Table.from_pylist(chosen, events.schema)))
