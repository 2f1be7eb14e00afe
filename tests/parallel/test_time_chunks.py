"""Chunks of a stream, folded in the order of time, give the rows of one process and of the oracle."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.keys import Key
from hamlet.engine.options import Options, options_of
from hamlet.input.events import open_events
from hamlet.language.parser import parse
from hamlet.output.partial import SCHEMA
from hamlet.output.query_part import query_results
from hamlet.output.rows import GroupRows
from hamlet.parallel.routing.routes import part_of, routes
from hamlet.parallel.time import exchange
from hamlet.parallel.time.chunk import Chunk, Maps
from hamlet.parallel.time.fold import Folds
from hamlet.parallel.time.probes import coordinates_of
from hamlet.planner.coordinates import refusal
from hamlet.spark.rows import Presenter
from hamlet.spark.tasks import Shipment, codec_of
from tests.case_files import oracle_options
from tests.compare_random import magnitudes
from tests.comparison import difference
from tests.effort import share_of
from tests.spark.test_partial_rows import shipment_of, table_of
from tests.strategies import Case, Features, random_case

CHUNKS = (1, 2, 3, 7)
FEATURES = {
    "default": Features(adjacent=False),
    "many queries": Features(queries=6, adjacent=False),
    "negation": Features(queries=2, events=12, adjacent=False, aggregates=False),
    "conjunction": Features(adjacent=False, conjunction=True),
    "large": Features(local=False, adjacent=False, large=True),
}


def cut(table: pa.Table, count: int, chance: random.Random) -> list[pa.Table]:
    """A sorted table in so many parts, some of them empty; none splits a time."""
    times = table.column("time").to_pylist()
    borders = sorted(chance.choice([*times, max(times, default=0) + 1]) for _ in range(count - 1))
    places = [0, *(sum(time < border for time in times) for border in borders), len(times)]
    return [table.slice(a, b - a) for a, b in itertools.pairwise(places)]


def of_chunk(
    chunk: Chunk, table: pa.Table, queries: tuple[int, ...], chance: random.Random
) -> tuple[list[tuple[int, GroupRows]], dict[Key, Maps]]:
    """Rows and maps of a chunk whose events come in batches."""
    rows = []
    for piece in cut(table, chance.randint(1, 3), chance):
        for batch in piece.combine_chunks().to_batches():
            if batch.num_rows:
                chunk.process(batch)
                rows += [(query, chunk.rows(query)) for query in queries]
    return rows, chunk.finish()


def through_chunks(case: Case, count: int, seed: int, **extra: Any) -> list[dict[str, Any]] | None:
    """The rows of a case, its events cut along time; None where a query has no maps."""
    chance, table = random.Random(seed), table_of(case)
    shipment = shipment_of(case[0], table, **case[2], **extra)
    compiled = shipment.compiled()
    if any(refusal(each) for each in compiled.classes):
        return None
    order = [(name, "ascending") for name in (compiled.schema.clock.column, compiled.schema.order_column) if name]
    pieces = cut(table.sort_by(order), count, chance)
    partial = []
    for route in routes(shipment.workload, compiled):
        part = part_of(shipment.workload, route.queries)
        chunks: dict[Key, list[bytes]] = {}
        of = coordinates_of(compiled.classes[route.number])
        known = chance.random() < 0.5
        for piece in pieces:
            opens = known and piece is next(each for each in pieces if len(each))
            chunk = Chunk(part, compiled.schema, options_of(case[2] | extra), opens=opens)
            rows, maps = of_chunk(chunk, piece, route.queries, chance)
            partial += _encoded(shipment, rows)
            for key, each in maps.items():
                chunks.setdefault(key, []).append(exchange.encoded(of, each))
        for key, found in chunks.items():
            folds = Folds(compiled.classes[route.number])
            for data in found:
                folds.take(exchange.decoded(of, data))
            folds.close()
            partial += _encoded(shipment, list(folds.rows(key).items()))
    ordered = pa.Table.from_batches(partial, SCHEMA).sort_by([(name, "ascending") for name in SCHEMA.names[:3]])
    shown = sorted(Presenter(shipment).rows(ordered.to_batches()), key=lambda pair: pair[0])
    return [row for _, rows in shown for row in query_results([rows], compiled.schema.clock).rows()]


def _encoded(shipment: Shipment, rows: list[tuple[int, GroupRows]]) -> list[pa.RecordBatch]:
    compiled = shipment.compiled()
    codecs = {query.analysed.index: codec_of(query, compiled.schema) for query in compiled.queries}
    return [codecs[query].encode(each) for query, each in rows if each.windows]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("features", FEATURES)
def test_oracle_chunks_of_random_streams(features: str, numbers: str) -> None:
    """What has no maps is left out; it is told apart in `test_what_has_no_maps`."""
    compared = 0
    for seed in range(share_of(40)):
        case = random_case(seed, FEATURES[features])
        count = CHUNKS[seed % len(CHUNKS)]
        got = through_chunks(case, count, seed, numbers=numbers)
        if got is None:
            continue
        compared += 1
        floats = numbers == "float"
        expected = oracle.evaluate(parse(case[0]), case[1], **oracle_options(case[2]))
        wrong = difference(got, expected, magnitudes=magnitudes(case), floats=floats)
        assert wrong is None, f"seed {seed}, {count} chunks: {wrong}\n{case}\n{got}\n{expected}"
    assert compared >= share_of(10)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WITHIN 9 s", None),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE A.v < NEXT(B).v WITHIN 9 s", "q1 has an adjacent predicate"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B) WITHIN 9 s", "q1 has a negated pattern that is longer"),
        ("EVENT C(v INT); RETURN COUNT(*) PATTERN SEQ(A, NOT C, B) WHERE [k] WITHIN 9 s", "a type of q1 lacks a key"),
    ],
)
def test_what_has_no_maps(text: str, reason: str | None) -> None:
    table = pa.table({"time": [1], "type": ["A"], "v": [1], "k": [1]})
    (compiled,) = shipment_of(text, table).compiled().classes
    found = refusal(compiled)
    assert found is None if reason is None else found is not None and reason in found


def stream(length: int, chance: random.Random, types: str) -> pa.Table:
    """A longer stream of one group, with NULLs and equal times."""
    times = sorted(chance.randint(0, 4 * length) for _ in range(length))
    return pa.table(
        {
            "time": times,
            "type": [chance.choice(types) for _ in times],
            "v": [chance.choice([None, *range(-9, 10)]) for _ in times],
            "w": [chance.choice([None, chance.uniform(-1, 1)]) for _ in times],
        }
    )


LONG = {
    "kleene": "RETURN COUNT(*), SUM(B.v), AVG(B.w), MIN(B.w), MAX(A.v) PATTERN SEQ(A, B+)",
    "nested": "RETURN COUNT(*), COUNT(B), SUM(B.w), AVG(A.v) PATTERN (SEQ(A, B+))+",
    "negation": "RETURN COUNT(*), SUM(A.w), MAX(B.w) PATTERN SEQ(NOT C, A+, NOT D, B, NOT C)",
    "alternative": "RETURN COUNT(*), AVG(A.w), MIN(B.v) PATTERN SEQ(NOT C, A+) OR SEQ(B, A?, D*)",
    "pairs": "RETURN COUNT(*), SUM(A.v), AVG(A.w) PATTERN SEQ(A, B+) AND SEQ(A, D)",
}


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("window", ["WITHIN 40 s", "WITHIN 300 s SLIDE 60 s", "WITHIN 2000 s", "WITHIN 5 s SLIDE 20 s"])
@pytest.mark.parametrize("query", LONG)
def test_differential_chunks_of_longer_streams(query: str, window: str, numbers: str) -> None:
    """Windows inside a chunk, over two chunks, and over all of them; counts beyond 64 bits."""
    table = stream(400, random.Random(7), "AABBBCD")
    text = f"{LONG[query]} {window}"
    events = table.to_pylist()
    expected = hamlet.run(hamlet.Workload.parse(text), table, numbers=numbers).rows()
    assert expected
    for count in CHUNKS:
        got = through_chunks((text, events, {}), count, count, numbers=numbers)
        assert got is not None
        wrong = difference(got, expected, floats=numbers == "float")
        assert wrong is None, f"{count} chunks: {wrong}"


def test_a_map_serves_all_windows_and_every_partition() -> None:
    """Windows overlap a hundredfold, yet a chunk has one matrix per partition, as large as the automaton says."""
    text = "RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE [k] WITHIN 1000 s SLIDE 10 s"
    table = stream(200, random.Random(3), "AB")
    table = table.append_column("k", pa.array([row % 3 for row in range(200)]))
    shipment = shipment_of(text, table)
    compiled = shipment.compiled()
    chunk = Chunk(shipment.workload, compiled.schema, shipment.options)
    for batch in table.to_batches():
        chunk.process(batch)
    chunk.rows(0)
    maps = chunk.finish()
    assert sorted(maps) == [(0,), (1,), (2,)]
    (of,) = coordinates_of(compiled.classes[0])
    assert (of.cells, of.starts, of.finals) == (2, (-1,), (0,))
    for each in maps.values():
        assert set(each.through[0]) == {(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)}
        assert len(each.begun) > 50
        assert exchange.decoded([of], exchange.encoded([of], each)) == each


def test_memory_of_a_chunk_is_bounded_by_its_own_events() -> None:
    """One window over 64,000 events: the group's counts have as many bits, those of a chunk and of its map do not."""
    events, rows = 64_000, 2_000
    table = pa.table({"time": range(events), "type": ["A" if row % 10 == 0 else "B" for row in range(events)]})
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 100000 s")
    schema = open_events(table).schema

    def held(first: int, count: int) -> tuple[int, int]:
        chunk = Chunk(workload, schema, Options(), opens=first == 0)
        for batch in table.slice(first, count).to_batches(max_chunksize=500):
            chunk.process(batch)
        (maps,) = chunk.finish().values()
        return chunk.executor.budget.most, len(exchange.encoded(coordinates_of(chunk.compiled), maps))

    whole, _ = held(0, events)
    assert whole > events // 8  # bytes: one count at least
    for first in range(0, events, rows):
        states, sent = held(first, rows)
        assert states < whole / 4
        assert sent < 7 * (rows // 8 + 64)  # entries of a matrix, or of a vector in the first chunk
