"""Opening events: every form of source, the types of columns, and what is said where something is wrong."""

from __future__ import annotations

import datetime
import decimal
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hamlet.errors import DataError, OptionError
from hamlet.input.events import EventSource, open_events
from hamlet.input.pushed import batch_of
from hamlet.input.widening import FRACTION, attribute_type
from hamlet.language.query import AttributeType

TABLE = pa.table({"time": [3, 1, 2], "type": ["A", "B", None], "x": [1.5, None, 2.5]})


def rows(source: EventSource, columns: list[str] | None = None) -> list[dict[str, Any]]:
    return pa.Table.from_batches(source.batches(columns), None).to_pylist()


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["time"])


class ArrowExport:
    """An object that pyarrow knows nothing of but its Arrow stream, as polars and duckdb have them."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        ArrowExport(TABLE),
        {"time": np.array([3, 1, 2]), "type": ["A", "B", None], "x": [1.5, None, 2.5]},
        TABLE.to_pylist(),
        (row for row in TABLE.to_pylist()),
    ],
    ids=["table", "batch", "reader", "export", "columns", "dicts", "generator"],
)
def test_every_form_gives_the_same_ordered_rows(source: Any) -> None:
    events = open_events(source)
    assert events.schema.columns == {
        "time": AttributeType.INT,
        "type": AttributeType.STRING,
        "x": AttributeType.DOUBLE,
    }
    assert rows(events) == sorted_rows(TABLE)


def test_numpy_columns_are_not_copied() -> None:
    time, price = np.arange(100_000), np.random.default_rng(1).random(100_000)
    events = open_events({"time": time, "type": np.repeat("A", 100_000), "price": price})
    first = next(events.batches())
    assert first.column("time").buffers()[1].address == time.ctypes.data
    assert first.column("price").buffers()[1].address == price.ctypes.data
    pushed = batch_of({"time": time, "type": np.repeat("A", 100_000), "price": price})
    assert pushed.column("price").chunk(0).buffers()[1].address == price.ctypes.data


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, 2], dtype=">i4"), [1, 2]),
        (np.arange(4, dtype=np.int16)[::2], [0, 2]),
        (np.array(["a", "bc"]), ["a", "bc"]),
        (np.array([1, None], dtype=object), [1, None]),
        (np.array([True, False]), [True, False]),
        (np.array(["2024-01-01T05"], dtype="datetime64[h]").repeat(2), [datetime.datetime(2024, 1, 1, 5)] * 2),
        (pa.chunked_array([[1], [2]]), [1, 2]),
    ],
)
def test_numpy_columns_of_any_layout(array: Any, expected: list[Any]) -> None:
    events = open_events({"time": [1, 2], "type": ["A", "A"], "x": array})
    assert [row["x"] for row in rows(events)] == expected


def test_projection_keeps_the_key_columns_and_the_schema_order() -> None:
    events = open_events(TABLE.append_column("y", pa.array([1, 2, 3])).append_column("z", pa.array([1, 2, 3])))
    assert next(events.batches(["z"])).schema.names == ["time", "type", "z"]


def test_progress_counts_delivered_events() -> None:
    seen: list[int] = []
    table = pa.table({"time": range(300_000), "type": pa.repeat("A", 300_000)})
    batches = list(open_events(table).batches(progress=seen.append))
    assert seen == [262_144, 300_000]
    assert max(batch.num_rows for batch in batches) <= 262_144


def test_a_table_is_cut_between_time_steps() -> None:
    times = np.repeat(np.arange(9), [1, 200_000, 100_000, 300_000, 5, 262_144, 262_144, 1, 1])
    table = pa.table({"time": times, "type": pa.repeat("A", len(times))})
    for chunked in (table, pa.concat_tables([table.slice(0, 250_000), table.slice(250_000)])):
        found = [batch.column("time").to_numpy() for batch in open_events(chunked).batches()]
        assert np.concatenate(found).tolist() == times.tolist()
        assert max(map(len, found)) <= 262_144
        cut = [one[-1] for one, other in pairwise(found) if one[-1] == other[0]]
        assert cut == ([3] if chunked is table else [2, 3])


@pytest.mark.parametrize(
    ("kind", "expected", "delivered"),
    [
        (pa.int8(), AttributeType.INT, pa.int8()),
        (pa.uint64(), AttributeType.INT, pa.int64()),
        (pa.float16(), AttributeType.DOUBLE, pa.float32()),
        (pa.decimal128(10, 2), AttributeType.DOUBLE, pa.decimal128(10, 2)),
        (pa.string_view(), AttributeType.STRING, pa.string()),
        (pa.large_string(), AttributeType.STRING, pa.large_string()),
        (pa.dictionary(pa.int32(), pa.string()), AttributeType.STRING, pa.dictionary(pa.int32(), pa.string())),
        (pa.dictionary(pa.int8(), pa.string()), AttributeType.STRING, pa.dictionary(pa.int32(), pa.string())),
        (pa.dictionary(pa.int8(), pa.int32()), AttributeType.INT, pa.int32()),
        (pa.bool_(), AttributeType.BOOLEAN, pa.bool_()),
        (pa.date32(), AttributeType.TIMESTAMP, pa.date32()),
        (pa.timestamp("ns", "Asia/Tokyo"), AttributeType.TIMESTAMP, pa.timestamp("ns", "Asia/Tokyo")),
        (pa.null(), None, pa.null()),
    ],
    ids=str,
)
def test_column_types(kind: pa.DataType, expected: AttributeType | None, delivered: pa.DataType) -> None:
    column = pa.nulls(2, kind)
    events = open_events(pa.table({"time": [2, 1], "type": ["A", "A"], "x": column}))
    assert events.schema.type_of("x") is expected
    assert events.arrow_schema.field("x").type == delivered
    assert next(events.batches()).column("x").type == delivered


@pytest.mark.parametrize(
    ("kind", "unit", "is_timestamp"),
    [
        (pa.int32(), "ms", False),
        (pa.uint64(), "ms", False),
        (pa.timestamp("us"), "us", True),
        (pa.timestamp("ns", "Europe/Berlin"), "ns", True),
        (pa.date32(), "s", True),
        (pa.date64(), "s", True),
    ],
    ids=str,
)
def test_clock(kind: pa.DataType, unit: str, is_timestamp: bool) -> None:
    days = pa.array([datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)])
    times = days.cast(kind) if attribute_type(kind) is AttributeType.TIMESTAMP else pa.array([2, 1], kind)
    events = open_events(pa.table({"time": times, "type": ["A", "B"]}), time_unit="ms")
    clock = events.schema.clock
    assert (clock.unit, clock.is_timestamp) == (unit, is_timestamp)
    assert next(events.batches()).column("time").type == clock.type
    if pa.types.is_timestamp(kind):
        assert clock.type == kind
        assert events.schema.units["time"] == (unit, kind.tz)


def test_types_that_are_numbers_are_text() -> None:
    events = open_events({"time": [2, 1], "type": np.array([7, 8], np.int16)})
    assert next(events.batches()).column("type").to_pylist() == ["8", "7"]
    assert batch_of({"time": [1], "type": [7]}).column("type").to_pylist() == ["7"]


@pytest.mark.parametrize(
    ("pieces", "distinct"),
    [([[1, 2, 3]], True), ([[1, 2], [3]], True), ([[1, 2], [2]], False), ([[1, 1]], False), ([[2, 1]], False)],
)
def test_whether_no_two_events_have_one_time(pieces: list[list[int]], distinct: bool) -> None:
    table = pa.concat_tables([pa.table({"time": each, "type": ["A"] * len(each), "at": each}) for each in pieces])
    source = open_events(table)
    assert not source.distinct
    assert sum(batch.num_rows for batch in source.batches()) == len(table)
    assert source.distinct == distinct
    ordered = open_events(table, order_column="at")
    assert list(ordered.batches())
    assert not ordered.distinct


def test_streams_are_read_once_unless_they_are_few() -> None:
    events = open_events(TABLE.to_reader())
    assert (events.rows, events.repeatable) == (None, False)
    assert rows(events) == rows(events) == rows(open_events(TABLE))
    assert (events.rows, events.repeatable) == (3, True)
    events = open_events(pa.table({"time": range(10_001), "type": ["A"] * 10_001}).to_reader())
    assert len(rows(events)) == 10_001
    assert (events.rows, events.repeatable) == (None, False)
    with pytest.raises(DataError, match="read already"):
        list(events.batches())


def test_an_opened_source_is_taken_as_it_is() -> None:
    events = open_events(TABLE)
    assert open_events(events, time_column="nothing") is events


# ------------------------------------------------------------------------------------------------------ dicts


def test_dicts_widen_over_the_whole_input() -> None:
    events = [{"time": time, "type": "A", "x": time} for time in range(20_000)] + [{"time": 20_000, "x": 0.5, "y": "s"}]
    source = open_events(iter(events))
    assert source.schema.type_of("x") is AttributeType.DOUBLE
    assert not source.schema.closed
    last = list(source.batches())[-1].to_pylist()[-1]
    assert last == {"time": 20_000, "type": None, "x": 0.5, "y": "s"}


def test_attributes_that_no_dict_has_are_null() -> None:
    source = open_events([{"time": 1}])
    assert rows(source, ["speed"]) == [{"time": 1, "speed": None, "type": None}]


def test_no_events_at_all() -> None:
    source = open_events([])
    assert list(source.batches(["x"])) == []
    assert list(open_events(TABLE.slice(0, 0)).batches()) == []
    assert batch_of([]).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "clock"),
    [
        (pa.float64(), FRACTION),
        (pa.float32(), FRACTION),
        (pa.decimal128(9, 3), FRACTION),
        (pa.decimal128(9, 0), pa.int64()),
        (pa.duration("s"), FRACTION),
        (pa.timestamp("ms"), pa.timestamp("ms")),
        (pa.string(), pa.int64()),
        (pa.null(), pa.int64()),
    ],
)
def test_no_events_of_any_kind_of_time(kind: pa.DataType, clock: pa.DataType) -> None:
    table = pa.table({"time": pa.array([], kind), "type": pa.array([], pa.string())})
    assert open_events(table).schema.clock.type == clock
    assert batch_of(table).num_rows == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, None], AttributeType.BOOLEAN),
        ([np.int32(1), 2], AttributeType.INT),
        ([np.float32(1), 2], AttributeType.DOUBLE),
        ([decimal.Decimal("1.5"), 2], AttributeType.DOUBLE),
        ([2**60 + 1, 0.5], AttributeType.DOUBLE),
        ([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 5)], AttributeType.TIMESTAMP),
        ([np.datetime64("2024-01-01T00:00"), None], AttributeType.TIMESTAMP),
        ([np.timedelta64(1, "ns"), None], AttributeType.DURATION),
        ([datetime.timedelta(1), np.timedelta64(1, "m")], AttributeType.DURATION),
        ([None, None], None),
    ],
)
def test_python_values(values: list[Any], expected: AttributeType | None) -> None:
    events = [{"time": place, "type": "A", "x": value} for place, value in enumerate(values)]
    assert open_events(events).schema.type_of("x") is expected
    assert batch_of(events).num_rows == 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None, "1"], r"attribute 'x' of event 3 is '1' \(STRING\), but INT in the events before"),
        ([1, 2.5, "1"], r"event 3 is '1' \(STRING\), but DOUBLE"),
        ([True, 1], r"event 2 is 1 \(INT\), but BOOLEAN"),
        ([1] * 20_000 + ["1"], r"event 20001 is '1' \(STRING\), but INT"),
        ([1, 2**63], "event 2 holds an integer of 64 bits"),
        ([0.5, 10**400], "event 2 holds an integer of 1329 bits"),
        ([datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "event 2 has .* a zone"),
        (["\ud800"], "attribute 'x': cannot read these values"),
    ],
)
def test_values_that_clash(values: list[Any], message: str) -> None:
    events = [{"time": place, "type": "A", "x": value} for place, value in enumerate(values)]
    with pytest.raises(DataError, match=message):
        open_events(iter(events))
    with pytest.raises(DataError, match=message):
        batch_of(events)


def test_pushed_events_count_from_those_before() -> None:
    with pytest.raises(DataError, match="event 102 "):
        batch_of([{"time": 1, "x": 1}, {"time": 1, "x": "s"}], first_event=100)


# ---------------------------------------------------------------------------------------------- what can be wrong


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"tiem": [1], "type": ["A"]}, "no time column 'time'; did you mean 'tiem'.*--time-column"),
        ({"time": [1], "kind": ["A"]}, "no type column 'type'; the columns are time, kind .*--type-column"),
        ({"time": [float("inf")], "type": ["A"]}, "the time column 'time' holds inf in event 1"),
        ({"time": ["one"], "type": ["A"]}, "the time column 'time' holds 'one' in event 1"),
        ({"time": [1], "type": [1.5]}, "the type column 'type' holds double; event types are strings"),
        ({"time": [1, 2], "type": ["A"]}, "columns differ in length: 'time' has 2 values, 'type' has 1"),
        ({"time": 1, "type": "A"}, r"must be a column .* put a single event into a list"),
        ({1: [1]}, "names must be strings"),
        ({"time": np.zeros((2, 2))}, "has 2 dimensions"),
        ([1], "event 1 is of type int; each event must be a dict"),
        ([{"time": 1}, {1: 2}], "event 2 has the key 1"),
        ([{}], "no time column 'time'"),
        (3, "cannot read events from an object of type int"),
        (pa.table([[1], [1], ["A"]], names=["time", "time", "type"]), "several columns with the name 'time'"),
        ("no/such/file.csv", "no such file"),
    ],
)
def test_wrong_sources(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_events(source)


def test_wrong_options() -> None:
    with pytest.raises(OptionError, match="time unit 'min' is unknown"):
        open_events(TABLE, time_unit="min")
    with pytest.raises(OptionError, match="order column is the time column"):
        open_events(TABLE, order_column="time")
    with pytest.raises(DataError, match="no order column 'seq'"):
        open_events(TABLE, order_column="seq")
    with pytest.raises(OptionError, match="input format 'xml' is unknown"):
        open_events(__file__, input_format="xml")
    with pytest.raises(OptionError, match=r"cannot tell the format .*--input-format"):
        open_events(__file__)


@pytest.mark.parametrize("order", [None, "x"])
@pytest.mark.parametrize("as_reader", [False, True])
def test_a_null_time_or_order_names_its_row(order: str | None, as_reader: bool) -> None:
    column = "time" if order is None else "x"
    data = {"time": [1, 2, 3], "type": ["A"] * 3, "x": [1, 2, 3]}
    data[column][2] = None  # type: ignore[index,call-overload]
    table = pa.table(data)
    events = open_events(table.to_reader() if as_reader else table, order_column=order)
    with pytest.raises(DataError, match=f"column '{column}' is NULL in row 3"):
        list(events.batches())
    with pytest.raises(DataError, match=f"column '{column}' is NULL in row 13"):
        batch_of(table, order_column=order, first_event=10)


def test_columns_that_cannot_be_read_are_errors_only_when_used() -> None:
    events = open_events(TABLE.append_column("list", pa.array([[1]] * 3)))
    assert "list" not in next(events.batches()).schema.names
    with pytest.raises(DataError, match=r"column 'list' has the type list<.*>, which no attribute can have"):
        list(events.batches(["list"]))
    with pytest.raises(DataError, match="no column 'lisst'; did you mean 'list'"):
        list(events.batches(["lisst"]))


def test_unsigned_values_beyond_64_bits() -> None:
    table = pa.table({"time": [1], "type": ["A"], "x": pa.array([2**63], pa.uint64())})
    with pytest.raises(DataError, match=r"column 'x' \(uint64\) holds a value that does not fit int64"):
        list(open_events(table).batches(["x"]))


# --------------------------------------------------------------------------------------------------- time order


@settings(max_examples=60)
@given(
    keys=st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2)), max_size=60),
    batch_rows=st.integers(1, 20),
    spill_rows=st.integers(1, 30),
    with_order=st.booleans(),
)
def test_oracle_sorting_agrees_with_python(
    keys: list[tuple[int, int]], batch_rows: int, spill_rows: int, with_order: bool
) -> None:
    columns = {"time": [time for time, _ in keys], "order": [order for _, order in keys], "place": range(len(keys))}
    table = pa.table({**columns, "type": pa.repeat("A", len(keys))})
    table = table.set_column(0, "time", table["time"].cast(pa.int64())).set_column(
        1, "order", table["order"].cast(pa.int64())
    )
    batches = [
        # Every batch has a dictionary of its own, as Parquet row groups have.
        batch.set_column(3, "type", batch.column("place").cast(pa.string()).dictionary_encode())
        for batch in table.to_batches(max_chunksize=batch_rows)
    ]
    schema = table.schema.set(3, pa.field("type", pa.dictionary(pa.int32(), pa.string())))
    expected = sorted(range(len(keys)), key=lambda place: keys[place] if with_order else keys[place][:1])
    for source in (pa.Table.from_batches(batches, schema), pa.RecordBatchReader.from_batches(schema, batches)):
        events = open_events(source, order_column="order" if with_order else None, spill_rows=spill_rows)
        found = [row for batch in events.batches(["place"]) for row in batch.to_pylist()]
        assert [row["place"] for row in found] == expected
        assert [row["type"] for row in found] == [str(place) for place in expected]


@pytest.fixture
def spill_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("hamlet-*")) == []


def test_spilled_runs_are_removed(spill_folder: Path) -> None:
    table = pa.table({"time": list(range(100, 0, -1)), "type": pa.repeat("A", 100)})
    batches = table.to_batches(max_chunksize=7)
    whole = open_events(pa.RecordBatchReader.from_batches(table.schema, batches), spill_rows=10)
    assert [row["time"] for row in rows(whole)] == list(range(1, 101))
    stopped = open_events(pa.RecordBatchReader.from_batches(table.schema, batches), spill_rows=10).batches()
    next(stopped)
    assert len(list(spill_folder.glob("hamlet-*/*"))) > 5
    stopped.close()  # type: ignore[attr-defined]


def test_no_room_for_runs(spill_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(spill_folder / "missing"))
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))
    with pytest.raises(DataError, match=r"cannot write temporary files in .*set TMPDIR"):
        list(open_events(reader, spill_rows=1).batches())


def test_ordered_parquet_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    count = 1_000_000
    pq.write_table(pa.table({"time": np.arange(count), "type": pa.repeat("A", count)}), path)  # one row group
    before = pa.total_allocated_bytes()
    batches = open_events(path, spill_rows=10).batches()
    next(batches)
    assert pa.total_allocated_bytes() - before < 6_000_000  # pages and a batch, not 13 MB of rows
    assert sum(batch.num_rows for batch in batches) == count - 65_536


def test_disordered_parquet_is_sorted(tmp_path: Path, spill_folder: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(TABLE, path)
    assert rows(open_events(path, spill_rows=1)) == sorted_rows(TABLE)
