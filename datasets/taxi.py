"""Taxi trips of New York: a trip record gives a Pickup and a Dropoff event.

Columns: time (int64 microseconds), type (string), seq (int32), trip_id (int64, the row among all input, from 1), zone
(int16, where the event happens), pu_zone, do_zone (int16), vendor (int8), passenger_count (int8), trip_distance
(double, miles), fare_amount, tip_amount, tolls_amount, total_amount (double, USD), payment_type (int8: 1 card, 2 cash,
3 no charge, 4 dispute), rate_code (int8: 1 standard, 2 JFK, 3 Newark, 4 Nassau or Westchester, 5 negotiated, 6 group),
trip_type (int8: 1 hailed, 2 dispatched; NULL for yellow taxis), duration_s (int64, seconds). Both events of a trip have
all of them. The wall clock of New York is written as if it were UTC. Records are taken as they are (negative fares,
distances of thousands of miles), except trips that end before they begin: those are left out.

Source: trip records of the NYC Taxi and Limousine Commission (nyc.gov/site/tlc/about/tlc-trip-record-data.page),
columns as in its data dictionaries for green (``lpep_``) and yellow (``tpep_``) taxis.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datasets.columns import MICROSECONDS, in_order, stack
from datasets.files import gather, header, read_raw
from hamlet.errors import DataError

SCHEMA = pa.schema(
    {
        "time": pa.int64(),
        "type": pa.string(),
        "trip_id": pa.int64(),
        "zone": pa.int16(),
        "pu_zone": pa.int16(),
        "do_zone": pa.int16(),
        "vendor": pa.int8(),
        "passenger_count": pa.int8(),
        "trip_distance": pa.float64(),
        "fare_amount": pa.float64(),
        "tip_amount": pa.float64(),
        "tolls_amount": pa.float64(),
        "total_amount": pa.float64(),
        "payment_type": pa.int8(),
        "rate_code": pa.int8(),
        "trip_type": pa.int8(),
        "duration_s": pa.int64(),
    }
)
_NAMES = {  # column of the stream: column of the record
    "pu_zone": "PULocationID",
    "do_zone": "DOLocationID",
    "vendor": "VendorID",
    "passenger_count": "passenger_count",
    "trip_distance": "trip_distance",
    "fare_amount": "fare_amount",
    "tip_amount": "tip_amount",
    "tolls_amount": "tolls_amount",
    "total_amount": "total_amount",
    "payment_type": "payment_type",
    "rate_code": "RatecodeID",
    "trip_type": "trip_type",
}
_CLOCK = pa.timestamp("us")


def read(inputs: Sequence[Path], begin: datetime | None = None, end: datetime | None = None) -> pa.Table:
    """The stream of trip records.

    Parameters
    ----------
    inputs : sequence of pathlib.Path
        Parquet or CSV files of green or yellow taxis, and folders of them.
    begin, end : datetime.datetime or None
        Keep trips picked up in ``[begin, end)``, on New York's clock.

    Returns
    -------
    pyarrow.Table
        Columns as in the module's documentation, sorted by time, type and trip; its metadata notes what was left out.

    Raises
    ------
    DataError
        A file cannot be read, lacks a column, or has a record without times or zones.
    """
    parts, first = [], 1
    for path in gather(inputs, (".parquet", ".csv", ".zip")):
        parts.append(_records(path, first))
        first += parts[-1].num_rows
    trips = pa.concat_tables(parts).combine_chunks()
    backwards = pc.less(trips["dropoff"], trips["pickup"])
    kept = pc.invert(backwards)
    if begin is not None:
        kept = pc.and_(kept, pc.greater_equal(trips["pickup"], pa.scalar(begin, _CLOCK)))
    if end is not None:
        kept = pc.and_(kept, pc.less(trips["pickup"], pa.scalar(end, _CLOCK)))
    left_out = pc.sum(backwards).as_py() or 0
    trips = trips.filter(kept).combine_chunks()
    stream = in_order(stack([_events(trips, "Pickup"), _events(trips, "Dropoff")], SCHEMA), ("time", "type", "trip_id"))
    return stream.replace_schema_metadata(
        {"left out": f"{left_out} trips that end before they begin"} if left_out else None
    )


def _records(path: Path, first: int) -> pa.Table:
    """The columns of one file that the stream has, named as in the stream, with pickup, dropoff and trip_id."""
    columns = header(path)
    prefix = next((p for p in ("lpep", "tpep") if f"{p}_pickup_datetime" in columns), None)
    if prefix is None:
        raise DataError(f"{path} is no trip record file: it has neither lpep_pickup_datetime nor tpep_pickup_datetime")
    clocks = {"pickup": f"{prefix}_pickup_datetime", "dropoff": f"{prefix}_dropoff_datetime"}
    names = {ours: theirs for ours, theirs in _NAMES.items() if ours != "trip_type" or theirs in columns}
    needed = dict.fromkeys(clocks.values(), _CLOCK) | dict.fromkeys(names.values(), pa.float64())
    raw = read_raw(path, needed)
    for name in (*clocks.values(), "PULocationID", "DOLocationID"):
        if raw[name].null_count:
            raise DataError(f"{path}: {raw[name].null_count} records without {name}")
    try:  # some months store whole numbers as doubles
        arrays = {ours: raw[theirs].cast(SCHEMA.field(ours).type) for ours, theirs in names.items()}
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {error}") from error
    arrays.setdefault("trip_type", pa.nulls(raw.num_rows, pa.int8()))
    arrays |= {ours: raw[theirs] for ours, theirs in clocks.items()}
    arrays["trip_id"] = pa.array(np.arange(first, first + raw.num_rows))
    return pa.table(arrays)


def _events(trips: pa.Table, type_name: str) -> dict[str, pa.Array]:
    """One event of a type per trip."""
    columns = {name: trips[name].combine_chunks() for name in trips.column_names}
    pickup, dropoff = (columns.pop(name).cast(pa.int64()) for name in ("pickup", "dropoff"))
    columns["duration_s"] = pc.divide(pc.subtract(dropoff, pickup), MICROSECONDS)
    columns["time"] = pickup if type_name == "Pickup" else dropoff
    columns["zone"] = columns["pu_zone" if type_name == "Pickup" else "do_zone"]
    columns["type"] = pa.repeat(type_name, trips.num_rows)
    return columns
