"""Chunks on threads: rows, errors and counters are those of one thread, wherever the stream is cut."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.online import Engine
from hamlet.engine.where import FilteredEvents
from hamlet.errors import HamletError, OutputError
from hamlet.input.events import open_events
from hamlet.language.parser import parse
from hamlet.parallel.time import side_by_side
from hamlet.parallel.time.mapped import MappedChunks
from hamlet.parallel.time.side_by_side import SideBySide
from hamlet.parallel.time.whole import WholeChunks
from tests import compare_random
from tests.case_files import oracle_options
from tests.comparison import difference
from tests.parallel.test_time_chunks import LONG, stream
from tests.strategies import Features, random_case

COUNTERS = ("events", "matched_events", "partitions", "largest_count_bits", "rows")
TUMBLING = """
    EVENT A(k INT, v INT); EVENT B(k INT, v INT, w DOUBLE); EVENT C(v INT); EVENT D(k INT, s STRING, v INT);
    RETURN k, COUNT(*), SUM(B.v), AVG(B.w) PATTERN SEQ(A, B+, NOT C) GROUP-BY k WITHIN 30 s;
    RETURN COUNT(*), MIN(B.v) PATTERN SEQ(NOT D, A, B+) WHERE [k] AND B.v > 0 WITHIN 20 s SLIDE 40 s;
    RETURN COUNT(*), MAX(D.v) PATTERN SEQ(A, NOT SEQ(C, B), D+) WHERE D.v <= NEXT(D).v WITHIN 60 s;
    RETURN s, COUNT(*) PATTERN D+ GROUP-BY s WITHIN 120 s;
    RETURN s, k, COUNT(*), SUM(D.v) PATTERN SEQ(A, D+) GROUP-BY s, k WITHIN 24 s;
    RETURN k, COUNT(*) PATTERN SEQ(A, B) AND SEQ(A, D) GROUP-BY k WITHIN 40 s
"""


@pytest.fixture
def chunk_rows(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """Events of a chunk; it begins at each border where that is 1."""
    for kind in (MappedChunks, WholeChunks):
        monkeypatch.setattr(kind, "sizes", (request.param, request.param))
    return int(request.param)


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[type, int, bool]]:
    """Of each run on chunks: who made them, how many, and whether the engine got the rest."""
    found = []
    close = SideBySide.close

    def noted(self: SideBySide) -> Any:
        rows = close(self)
        found.append((type(self._work), self._started, self._handed_over))
        return rows

    monkeypatch.setattr(SideBySide, "close", noted)
    return found


def keyed(length: int, seed: int = 1) -> pa.Table:
    """A stream of some groups, with NULLs, equal times, and gaps that are longer than windows."""
    chance = random.Random(seed)
    table = stream(length, chance, "AABBBBCD")
    times = [time + 700 * (row // 97) for row, time in enumerate(table["time"].to_pylist())]
    keys, names = (
        [chance.choice([None, *range(5)]) for _ in times],
        [chance.choice([None, "", "a", "é"]) for _ in times],
    )
    return table.set_column(0, "time", pa.array(times)).append_column("k", [keys]).append_column("s", [names])


def in_batches(table: pa.Table, rows: int) -> pa.RecordBatchReader:
    """The same, read once, each batch with a dictionary of its own."""
    encoded = [batch.column("type").dictionary_encode() for batch in table.to_batches(max_chunksize=rows)]
    batches = [
        batch.set_column(batch.schema.get_field_index("type"), "type", types)
        for batch, types in zip(table.to_batches(max_chunksize=rows), encoded, strict=True)
    ]
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


# -------------------------------------------------------------------------------------------------------- one group


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("chunk_rows", [8, 50, 100_000], indirect=True)
def test_differential_one_group(chunk_rows: int, numbers: str, kinds: list[tuple[type, int, bool]]) -> None:
    """Windows that span chunks: chunks of any size, batches that split times, rows in their order."""
    table = stream(700, random.Random(9), "AABBBCD")
    windows = ["WITHIN 40 s", "WITHIN 300 s SLIDE 60 s", "WITHIN 5000 s", "WITHIN 90 s", "WITHIN 5 s SLIDE 20 s"]
    text = "; ".join(f"{query} {window}" for query, window in zip(LONG.values(), windows, strict=True))
    workload = hamlet.Workload.parse(text)
    expected = hamlet.run(workload, table, numbers=numbers)
    for threads in (2, 5):
        got = hamlet.run(workload, table if threads == 2 else in_batches(table, 37), threads=threads, numbers=numbers)
        wrong = difference(got.rows(), expected.rows(), floats=numbers == "float")
        assert wrong is None, wrong
        for name in ("events", "matched_events", "partitions", "largest_count_bits", "rows"):
            assert got.stats[name] == expected.stats[name], name
    assert {kind for kind, *_ in kinds} == {MappedChunks}
    assert all((made > 5) == (chunk_rows < 100) for _, made, _ in kinds)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("chunk_rows", [64, 600], indirect=True)
def test_windows_that_end_before_the_next_event_of_a_chunk(chunk_rows: int, numbers: str) -> None:
    """Ties, bursts, gaps, and events that no query asks for: rows stay in the order of their windows.

    Among them are windows, and events of one time, that take more than a chunk, and chunks without a matched event.
    """
    text = """
        EVENT A(v INT); EVENT B(v INT);
        RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 20 s SLIDE 2 s;
        RETURN COUNT(*), SUM(A.v) PATTERN SEQ(A, NOT N, B+) WITHIN 100 s SLIDE 10 s;
        RETURN COUNT(*), MAX(B.v) PATTERN SEQ(A, B) WITHIN 1500 s SLIDE 500 s
    """
    workload = hamlet.Workload.parse(text)
    for seed in range(6):
        chance, times, types, time = random.Random(seed), [], [], 0
        while len(times) < 2_000:
            length = chance.choice([1, 1, 2, 8, 20, 150 if chance.random() < 0.3 else 3])
            ties, type = chance.random() < 0.5, chance.choice("AABCCN")
            for _ in range(length):
                time += 0 if ties else chance.choice([0, 1, 1, 2])
                times.append(time)
                types.append(type)
            time += chance.choice([0, 1, 5, 30, 100] if seed % 2 else [1, 2])
        table = pa.table({"time": times, "type": types, "v": [chance.randrange(9) for _ in times]})
        expected = hamlet.run(workload, table, numbers=numbers)
        got = hamlet.run(workload, table, numbers=numbers, threads=2)
        assert (wrong := difference(got.rows(), expected.rows(), floats=numbers == "float")) is None, wrong
        assert len(expected) > 50


def test_windows_that_end_before_the_next_event_of_a_chunk_of_the_shipped_size() -> None:
    """Where most events are of no type that is asked for, a window may end before the first matched one of a chunk."""
    rows = 4 * MappedChunks.sizes[0]
    types = np.full(rows, 2, np.int32)
    types[3::13_000], types[4::13_000] = 0, 1
    table = pa.table(
        {"time": np.arange(rows), "type": pa.DictionaryArray.from_arrays(types, ["A", "B", "C"])},
    )
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 9000 s SLIDE 3000 s")
    got, expected = hamlet.run(workload, table, threads=2), hamlet.run(workload, table)
    assert got.rows() == expected.rows()
    assert len(expected) > 100


# ---------------------------------------------------------------------------------------------------- whole windows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("chunk_rows", [1, 50, 300, 100_000], indirect=True)
def test_differential_windows_that_do_not_overlap(chunk_rows: int, kinds: list[tuple[type, int, bool]]) -> None:
    """Several lengths and classes, guards, adjacent predicates, types without a key, pairs."""
    workload, table = hamlet.Workload.parse(TUMBLING), keyed(1500)
    expected = hamlet.run(workload, table)
    assert len(expected) > 200
    for threads, events in ((2, table), (3, in_batches(table, 41)), (5, in_batches(table, 400))):
        got = hamlet.run(workload, events, threads=threads)
        wrong = difference(got.rows(), expected.rows())
        assert wrong is None, wrong
        for name in COUNTERS:
            assert got.stats[name] == expected.stats[name], name
    assert [kind for kind, *_ in kinds] == [WholeChunks] * 3
    assert all((made > 3) != handed_over for _, made, handed_over in kinds)
    assert all(handed_over == (chunk_rows > 1500) for *_, handed_over in kinds)


@pytest.mark.parametrize("features", ["tumbling", "large tumbling", "broadcast", "negation"])
def test_oracle_random_streams(features: str) -> None:
    """Chunks of an event or a few, windows at once or not; what cannot be cut goes to the groups' threads."""
    for seed in range(20):
        case = random_case(seed, compare_random.FEATURES[features])
        with compare_random.chunks_of_few_events(seed):
            report = compare_random.compare(case, {"threads": 2 + seed % 2}, seed, ["run"])
        assert report is None, f"seed {seed}: {report}"


def test_oracle_gaps_and_common_borders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query has windows of its own, some with gaps between them."""
    monkeypatch.setattr(WholeChunks, "sizes", (1, 2))
    chance = random.Random(5)
    for seed in range(20):
        features = Features(queries=3, windows=False, events=12, broadcast=seed % 2 == 1)
        text, events, options = random_case(seed, features)
        queries = text.split("WITHIN")
        widths = [chance.choice([1, 2, 3, 4]) for _ in queries[1:]]
        for place, width in enumerate(widths, 1):
            rest = queries[place].split(";", 1)
            slide = f" SLIDE {width + chance.choice([1, 2])} s" if chance.random() < 0.5 else ""
            queries[place] = f" {width} s{slide}" + (f";{rest[1]}" if len(rest) > 1 else "")
        text = "WITHIN".join(queries)
        got = hamlet.run(hamlet.Workload.parse(text), events, threads=2, **options).rows()
        expected = oracle.evaluate(parse(text), events, **oracle_options(options))
        wrong = difference(got, expected)
        assert wrong is None, f"seed {seed}: {wrong}\n{text}\n{events}"


@pytest.mark.parametrize("chunk_rows", [20], indirect=True)
def test_a_window_of_too_many_events_ends_the_chunks(
    chunk_rows: int, kinds: list[tuple[type, int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the stream goes to the threads of groups, and not many events are held before that is known."""
    monkeypatch.setattr(side_by_side, "MOST_HELD", 50)
    times = [*range(200), *[200] * 300, *range(210, 400)]
    table = pa.table({"time": times, "type": ["A", "B"] * 345, "k": [row % 7 for row in range(690)]})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s")
    most = 0
    feed = SideBySide.feed

    def watched(self: SideBySide, batch: pa.RecordBatch) -> Any:
        nonlocal most
        rows = feed(self, batch)
        most = max(most, self._rows)
        return rows

    monkeypatch.setattr(SideBySide, "feed", watched)
    got = hamlet.run(workload, in_batches(table, 15), threads=2)
    expected = hamlet.run(workload, table)
    assert got.rows() == expected.rows()
    assert {name: got.stats[name] for name in COUNTERS} == {name: expected.stats[name] for name in COUNTERS}
    ((_, made, handed_over),) = kinds
    assert made >= 9
    assert handed_over
    assert most <= 50 + 15


@pytest.mark.parametrize("chunk_rows", [64], indirect=True)
def test_keys_come_and_go(chunk_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hamlet.engine.keys._FEW", 20)
    rows = 3000
    table = pa.table(
        {"time": range(rows), "type": ["A", "B", "B"] * (rows // 3), "k": [f"key {row // 30}" for row in range(rows)]}
    )
    workload = hamlet.Workload.parse("RETURN k, COUNT(*), COUNT(B) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s")
    expected = hamlet.run(workload, table)
    for threads in (2, 3):
        assert hamlet.run(workload, table, threads=threads).rows() == expected.rows()


def test_chunks_are_small_near_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the number of events is known, all threads are done at much the same time."""
    monkeypatch.setattr(WholeChunks, "sizes", (10, 200))
    sizes = []
    job = WholeChunks.job

    def noted(self: WholeChunks, batches: list[pa.RecordBatch]) -> Any:
        sizes.append(sum(each.num_rows for each in batches))
        return job(self, batches)

    monkeypatch.setattr(WholeChunks, "job", noted)
    table = pa.table({"time": np.arange(2000), "type": ["A"] * 2000, "k": np.arange(2000) % 3})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 5 s")
    hamlet.run(workload, table, threads=2)
    assert sum(sizes) == 2000
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 200
    assert 5 <= sizes[-1] <= 10


@pytest.mark.parametrize("chunk_rows", [5000], indirect=True)
def test_windows_stay_whole_in_batches_that_end_anywhere(chunk_rows: int) -> None:
    """As one thread has it: a file's batches end within windows, and so do chunks within batches."""
    rows = 30_000
    draw = np.random.default_rng(3)
    table = pa.table({"time": np.arange(rows), "type": draw.choice(["A", "B"], rows), "k": draw.integers(0, 50, rows)})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 500 s")
    expected = hamlet.run(workload, table)
    got = hamlet.run(workload, in_batches(table, 1300), threads=2)
    assert got.rows() == expected.rows()
    assert expected.stats["whole_windows"] > 2900
    assert got.stats["whole_windows"] > 2800


# ----------------------------------------------------------------------------------------------------------- who cuts


@pytest.mark.parametrize(
    ("query", "options", "kind"),
    [
        ("PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 3 s", {}, MappedChunks),
        ("PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 3 s", {"threads": 1}, None),
        ("PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 3 s", {"max_memory": "1 GiB"}, None),
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 9 s SLIDE 3 s", {}, None),
        ("PATTERN A+ WHERE A.k < NEXT(A).k WITHIN 9 s SLIDE 3 s", {}, None),
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 9 s", {}, WholeChunks),
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 9 s", {"threads": 1}, None),
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 9 s", {"max_memory": "1 GiB"}, None),
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 9 s", {"trace": True}, None),
        ("PATTERN A+ WHERE A.k < NEXT(A).k WITHIN 9 s SLIDE 10 s", {}, WholeChunks),
        ("PATTERN A+ WHERE [k] WITHIN 9 s; RETURN COUNT(*) PATTERN A+ WHERE [k] WITHIN 5 s SLIDE 4 s", {}, None),
        ("PATTERN A+ WHERE [k] WITHIN 1000000007 s; RETURN COUNT(*) PATTERN A WITHIN 4294967291 s", {}, None),
    ],
)
def test_who_computes_chunks(query: str, options: dict[str, Any], kind: type | None) -> None:
    """Groups are spread where windows overlap, with a limit of memory, and where bursts are recorded."""
    engine = Engine(hamlet.Workload.parse(f"RETURN COUNT(*) {query}"), **{"threads": 2} | options)
    engine.open(open_events(pa.table({"time": [1], "type": ["A"], "k": [1]})).schema)
    found = side_by_side.side_by_side(engine, None)
    assert (found is None) == (kind is None)
    if found is not None and kind is not None:
        with found:
            assert isinstance(found._work, kind)


# ------------------------------------------------------------------------------------------------------------- errors


def said(workload: hamlet.Workload, events: Any, threads: int, **options: Any) -> str:
    with pytest.raises(HamletError) as error:
        hamlet.run(workload, events() if callable(events) else events, threads=threads, **options)
    return str(error.value)


@pytest.mark.parametrize("chunk_rows", [10, 64], indirect=True)
@pytest.mark.parametrize("place", [1, 17, 250, 499])
@pytest.mark.parametrize(
    "query",
    [
        "PATTERN A+ WHERE A.v * 4 > 1 WITHIN 9 s",
        "PATTERN A+ WHERE [k] AND A.v * 4 > 1 WITHIN 9 s",
        "PATTERN A+ WHERE [k] AND PREV(A).v * A.v * 4 > 0 WITHIN 9 s",
    ],
)
def test_the_first_error_is_that_of_one_thread(chunk_rows: int, query: str, place: int) -> None:
    """Also where later events, in the same chunk and in others, are wrong too."""
    values = [2**62 + row if row >= place and (row - place) % 3 == 0 else 1 for row in range(500)]
    table = pa.table({"time": range(500), "type": ["A"] * 500, "k": [1] * 500, "v": values})
    workload = hamlet.Workload.parse(f"RETURN COUNT(*) {query}")
    expected = said(workload, table, 1)
    for threads in (2, 3):
        assert said(workload, table, threads) == expected


@pytest.mark.parametrize("chunk_rows", [10], indirect=True)
@pytest.mark.parametrize(("first", "second"), [("v", "w"), ("w", "v")])
def test_an_error_of_an_event_before_goes_first(chunk_rows: int, first: str, second: str) -> None:
    """The condition of the input is tested while earlier events are still computed."""
    columns: dict[str, Any] = {"v": [1] * 400, "w": [1] * 400}
    columns[first][99], columns[second][125] = 2**62, 2**62
    table = pa.table({"time": range(400), "type": ["A"] * 400, "k": [1] * 400, **columns})
    batches = table.to_batches(max_chunksize=20)
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ WHERE A.v * 4 > 0 GROUP-BY k WITHIN 10 s")

    def events() -> FilteredEvents:
        reader = pa.RecordBatchReader.from_batches(table.schema, batches)
        return FilteredEvents(open_events(reader), "w * 4 > 0")

    expected = said(workload, events, 1)
    assert f"{first} * 4 passes 64 bits" in expected
    assert said(workload, events, 2) == expected


@pytest.mark.parametrize("query", ["PATTERN A+ WITHIN 9 s", "PATTERN A+ WHERE [k] WITHIN 9 s"])
def test_no_chunk_is_computed_after_one_has_failed(query: str) -> None:
    """The executor of a thread must not go on after an error."""
    engine = Engine(hamlet.Workload.parse(f"RETURN COUNT(*) {query}"), threads=2)
    engine.open(open_events(pa.table({"time": [1], "type": ["A"], "k": [1]})).schema)
    chunks = side_by_side.side_by_side(engine, None)
    assert chunks is not None
    done = []

    def fail() -> None:
        raise ValueError("the first one")

    with chunks:
        assert chunks._unless_broken(lambda: 1) == 1
        with pytest.raises(ValueError, match="the first one"):
            chunks._unless_broken(fail)
        chunks._unless_broken(lambda: done.append(1))
    assert done == []


@pytest.mark.parametrize("chunk_rows", [10], indirect=True)
def test_a_number_that_does_not_fit(chunk_rows: int) -> None:
    """What does not fit the count type is told as by one thread: query, window, group."""
    table = pa.table({"time": range(1000), "type": ["A"] * 1000, "k": [1] * 500 + [2] * 500})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 80 s")
    texts = []
    for threads in (1, 2):
        with pytest.raises(OutputError, match="query q1, window") as error:
            hamlet.run(workload, table, threads=threads, count_type="int64").table()
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("chunk_rows", [10], indirect=True)
def test_times_too_far(chunk_rows: int) -> None:
    table = pa.table({"time": [*range(100), 2**61 + 1], "type": ["A"] * 101, "k": [1] * 101})
    for query in ("PATTERN A+ WITHIN 5 s", "PATTERN A+ WHERE [k] WITHIN 5 s"):
        workload = hamlet.Workload.parse(f"RETURN COUNT(*) {query}")
        assert said(workload, table, 2) == said(workload, table, 1)


@pytest.mark.parametrize("chunk_rows", [10], indirect=True)
def test_an_interrupt_ends_all_threads(chunk_rows: int) -> None:
    before = set(threading.enumerate())
    table = keyed(500)

    def progress(done: int) -> None:
        if done > 200:
            raise KeyboardInterrupt

    workload = hamlet.Workload.parse(TUMBLING)
    with pytest.raises(KeyboardInterrupt):
        hamlet.run(workload, in_batches(table, 40), threads=3, progress=progress)
    assert not set(threading.enumerate()) - before
