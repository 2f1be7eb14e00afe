"""Partial rows as bytes, and the tasks that exchange them, without Spark."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import random
import zlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamlet
from hamlet.engine.group_order import sort_key
from hamlet.engine.options import options_of
from hamlet.errors import DataError, OutputError
from hamlet.input.input_schema import plain_schema
from hamlet.input.ordering import SortKey
from hamlet.output.partial import SCHEMA, GroupCodec, PartialCodec, decode_components, encode_components
from hamlet.output.query_part import query_results
from hamlet.output.rows import GroupRows
from hamlet.parallel.routing.routes import Route, routes
from hamlet.planner.aggregates import ComponentKey
from hamlet.spark import events as spark_events
from hamlet.spark import rows as spark_rows
from hamlet.spark.events import time_steps
from hamlet.spark.rows import Presenter
from hamlet.spark.tasks import Kernel, Shipment
from tests.comparison import difference
from tests.strategies import DEFAULT, Case, Features, random_case

BERLIN = pa.timestamp("us", "Europe/Berlin")
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False).map(lambda value: value + 0.0),
    pa.float32(): st.floats(allow_nan=False, width=32).map(lambda value: value + 0.0),
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=5),
    pa.dictionary(pa.int32(), pa.string()): st.text("\x00\x01\xffab", max_size=4),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ns"): st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1)),
    pa.timestamp("s"): st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    pa.decimal128(38, 4): st.decimals(-(10**33), 10**33, places=4),
}


@given(st.data())
def test_groups_as_bytes_sort_as_groups_do(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), max_size=3))
    groups = data.draw(st.lists(st.tuples(*(st.none() | VALUES[each] for each in types)), max_size=6))
    encoded = GroupCodec(types).encode(groups)
    decoded = [GroupCodec(types).decode(each) for each in encoded]
    assert decoded == groups
    assert [list(map(type, group)) for group in decoded] == [list(map(type, group)) for group in groups]
    ordered = sorted(zip(encoded, groups, strict=True), key=lambda pair: pair[0])
    assert [group for _, group in ordered] == sorted(groups, key=sort_key)


def test_groups_with_a_zone_come_back_as_they_were() -> None:
    moment = pa.array([datetime.datetime(2024, 10, 27, 0, 30), None], pa.timestamp("us")).cast(BERLIN).to_pylist()
    groups = [(moment[0], "a\x00"), (None, "")]
    codec = GroupCodec([BERLIN, pa.large_string()])
    decoded = [codec.decode(each) for each in codec.encode(groups)]
    assert decoded == groups
    assert decoded[0][0].utcoffset() == moment[0].utcoffset()


COMPONENTS: dict[str, st.SearchStrategy[Any]] = {
    "count": st.integers(0, 2**3000),
    "occurrences": st.integers(0, 2**70),
    "sum_int": st.integers(-(2**3000), 2**3000) | st.integers(-200, 200),
    "sum_double": st.tuples(st.floats(allow_nan=False), st.integers(-(2**40), 2**40)),
    "present": st.booleans(),
    "least_int": st.none() | st.integers(-(2**63), 2**63 - 1),
    "greatest_double": st.none() | st.floats(allow_nan=False),
    "count_scaled": st.tuples(st.floats(1, 2), st.just(512)),
}


@given(st.data())
def test_components_come_back_as_they_were(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(COMPONENTS)), min_size=1, max_size=5))
    keys = [ComponentKey(kind) for kind in kinds]
    rows = data.draw(st.lists(st.tuples(*(COMPONENTS[kind] for kind in kinds)), max_size=4))
    encoded = encode_components(keys, [[row[place] for row in rows] for place in range(len(kinds))])
    assert [tuple(decode_components(keys, each)) for each in encoded] == rows


def test_neighbours_are_merged() -> None:
    keys = [ComponentKey("count"), ComponentKey("least_double", "A", "v"), ComponentKey("present", "A", "v")]
    codec = PartialCodec(3, keys, [pa.string()])
    rows = GroupRows(
        [1, 1, 1, 2],
        [("x",), ("x",), (None,), ("x",)],
        [[2**64, 1, 5, 7], [None, 2.5, 1.0, 3.0], [False, True, True, True]],
    )
    batch = codec.encode(rows)
    assert batch.schema == SCHEMA
    assert batch.column("query").to_pylist() == [3] * 4
    merged = codec.merge(*(batch.column(name).to_pylist() for name in ("window", "group", "components")))
    assert merged.windows == [1, 1, 2]
    assert merged.groups == [("x",), (None,), ("x",)]
    assert merged.components == [[2**64 + 1, 5, 7], [2.5, 1.0, 3.0], [True, True, True]]
    assert codec.merge([], [], []) == GroupRows([], [], [[], [], []])


# ---------------------------------------------------------------------------------------------------- tasks


def table_of(case: Case) -> pa.Table:
    """A case's events with all their attributes."""
    names = dict.fromkeys([*(name for event in case[1] for name in event), "v", "w", "s", "k", "g"])
    return pa.table({name: [event.get(name) for event in case[1]] for name in names})


def pieces(table: pa.Table, chance: random.Random) -> Iterator[pa.RecordBatch]:
    """A table in batches of any size, some of them empty."""
    start = 0
    while start < len(table):
        length = chance.randint(0, 3)
        rows = table.slice(start, length).combine_chunks().to_batches()
        yield from rows or [pa.RecordBatch.from_pylist([], table.schema)]
        start += length


def tasks_of(table: pa.Table, route: Route, schema: Any, count: int) -> list[pa.Table]:
    """What the tasks of a route get: all columns it reads, by key, in the order of time."""
    order = [(name, "ascending") for name in (schema.clock.column, schema.order_column) if name is not None]
    table = table.select(list(route.columns)).sort_by(order)
    keys = [
        tuple(None if value != value else value for value in key)  # NaN goes with NULL
        for key in zip(*(table.column(name).to_pylist() for name in route.keys), strict=True)
    ] or [()] * len(table)
    owner = pa.array([zlib.crc32(repr(key).encode()) % count for key in keys])
    return [table.filter(pa.compute.equal(owner, number)) for number in range(count)]


def shipment_of(text: str, table: pa.Table, **options: Any) -> Shipment:
    """A workload and its options as the driver sends them to tasks that read such a table."""
    chosen = options_of(options)
    key = SortKey(chosen.time_column, chosen.order_column)
    return Shipment(text, "<workload>", chosen, plain_schema(table.schema, key, chosen.type_column))


def through_tasks(case: Case, count: int, seed: int) -> list[dict[str, Any]]:
    """The rows of a case, its events spread over tasks and their partial rows merged."""
    workload, chance = hamlet.Workload.parse(case[0]), random.Random(seed)
    table = table_of(case)
    shipment = shipment_of(case[0], table, **case[2])
    compiled = shipment.compiled()
    partial = []
    for route in routes(workload, compiled):
        for task in tasks_of(table, route, compiled.schema, count if route.keys and route.carried else 1):
            partial += list(Kernel(shipment, [route]).partial(pieces(task, chance)))
    sorted_rows = pa.Table.from_batches(partial, SCHEMA).sort_by([(name, "ascending") for name in SCHEMA.names[:3]])
    presenter = Presenter(shipment)
    found = {place: [] for place in range(len(workload.names))}
    for query, rows in presenter.rows(pieces(sorted_rows, chance)):
        found[query].append(rows)
    return [
        row for place in found for each in found[place] for row in query_results([each], compiled.schema.clock).rows()
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "features",
    [DEFAULT, Features(queries=6, adjacent=False), Features(conjunction=True), Features(broadcast=True)],
    ids=["default", "many queries", "conjunction", "broadcast"],
)
@pytest.mark.parametrize("rows", [2, 65_536], ids=["small batches", "large batches"])
def test_tasks_give_the_rows_of_one_process(features: Features, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_events, "BATCH_ROWS", rows)
    for seed in range(24):
        case = random_case(seed, features)
        expected = hamlet.run(hamlet.Workload.parse(case[0]), table_of(case), **case[2]).rows()
        for count in (1, 3):
            wrong = difference(through_tasks(case, count, seed), expected)
            assert wrong is None, f"seed {seed}, {count} tasks: {wrong}\n{case}"


def test_a_time_goes_on_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_events, "BATCH_ROWS", 2)
    table = pa.table({"time": [1, 1, 1, 1, 2, 2, 5], "type": list("AABBABB")})
    schema = shipment_of("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s", table).schema()
    steps = list(time_steps(table.to_batches(max_chunksize=1), schema))
    assert [(batch.column("time").to_pylist(), following) for batch, following in steps] == [
        ([1, 1, 1, 1], 2),
        ([2, 2], 5),
        ([5], 2**63 - 1),
    ]
    assert list(time_steps([], schema)) == []


@pytest.mark.parametrize(
    ("times", "orders", "message"),
    [
        ([1, None], [1, 2], r"the time column 'time' is NULL in an event \(type='B', seq=2\)"),
        ([1, 2], [None, 2], r"the order column 'seq' is NULL in an event \(time=1, type='A'\)"),
        ([1, 2**62], [1, 2], r"holds a time beyond 2\^61 ticks"),
    ],
)
def test_times_that_cannot_be(times: list[Any], orders: list[Any], message: str) -> None:
    table = pa.table({"time": times, "type": ["A", "B"], "seq": orders})
    shipment = shipment_of("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s", table, order_column="seq")
    with pytest.raises(DataError, match=message):
        list(time_steps(table.to_batches(), shipment.schema()))


def test_a_full_disk_leaves_no_file_that_looks_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "RETURN COUNT(*) PATTERN A+ WITHIN 10 s"
    table = pa.table({"time": [1, 2], "type": ["A", "A"]})
    shipment = shipment_of(text, table)
    (route,) = routes(hamlet.Workload.parse(text), shipment.compiled())
    partial = list(Kernel(shipment, [route]).partial(table.to_batches()))
    (tmp_path / "query=q1").mkdir()

    @contextlib.contextmanager
    def full(path: Path, *arguments: Any) -> Iterator[Any]:
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield

    with monkeypatch.context() as patched:
        patched.setattr(spark_rows, "part_file", full)
        with pytest.raises(OutputError, match=r"cannot write .*part-0\.parquet: No space left on device"):
            list(spark_rows.write_files(shipment, str(tmp_path), "parquet", "0", partial))
    assert not list(tmp_path.rglob("part-*"))
    list(spark_rows.write_files(shipment, str(tmp_path), "parquet", "0", partial))
    assert [path.name for path in tmp_path.rglob("part-*")] == ["part-0.parquet"]


# --------------------------------------------------------------------------------------------------- routes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RETURN COUNT(*) PATTERN A GROUP-BY g, k WITHIN 1 s", [(("g", "k"), True)]),
        ("RETURN COUNT(*) PATTERN A WHERE [k] GROUP-BY g WITHIN 1 s", [(("g",), True)]),
        ("RETURN COUNT(*) PATTERN A WHERE [k, g] WITHIN 1 s", [(("g", "k"), False)]),
        (
            "RETURN COUNT(*) PATTERN A WHERE [k] WITHIN 1 s; RETURN COUNT(*) PATTERN A GROUP-BY k WITHIN 1 s",
            [(("k",), False)],
        ),
        (
            "RETURN COUNT(*) PATTERN A WHERE [k] GROUP-BY g WITHIN 1 s;"
            "RETURN COUNT(*) PATTERN A GROUP-BY k, g WITHIN 1 s; RETURN COUNT(*) PATTERN A WITHIN 1 s",
            [(("g",), True), ((), True)],
        ),
        (
            "EVENT C(g STRING); RETURN COUNT(*) PATTERN SEQ(A, NOT C, A) WHERE [k, g] WITHIN 1 s",
            [(("g",), False)],
        ),
        ("EVENT C(v INT); RETURN COUNT(*) PATTERN SEQ(A, NOT C, A) WHERE [k] WITHIN 1 s", [(("k",), False)]),
    ],
)
def test_routes(text: str, expected: list[tuple[tuple[str, ...], bool]]) -> None:
    table = pa.table({"time": [1], "type": ["A"], "g": ["x"], "k": [1], "v": [2], "unused": [3]})
    found = routes(hamlet.Workload.parse(text), shipment_of(text, table).compiled())
    assert [(route.keys, route.whole) for route in found] == expected
    assert all(route.carried != text.startswith("EVENT C(v") for route in found)
    assert all("unused" not in route.columns for route in found)


def test_decimals_keep_their_digits() -> None:
    codec = GroupCodec([pa.decimal256(70, 3)])
    groups = [(Decimal("1234567890123456789012345678901234567890123456789012345.678"),), (Decimal("-0.001"),)]
    assert [codec.decode(each) for each in codec.encode(groups)] == groups
