"""Every example runs and does what it says."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hamlet

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_example_is_tested() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    names = [path.stem for path in EXAMPLES.iterdir() if path.suffix == ".py" or (path / "pyproject.toml").exists()]
    assert sorted(names) == sorted(name for name in names if f'"{name}"' in text)
    assert len(names) >= 4


# --------------------------------------------------------------------------------------------------------- service


async def talk(service: ModuleType, lines: list[bytes]) -> list[dict[str, Any]]:
    """What the service answers to lines that are sent in pieces of any size."""
    server = await service.start(0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        data = b"".join(lines)
        for start in range(0, len(data), 37):
            writer.write(data[start : start + 37])
            await writer.drain()
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
    return [json.loads(line) for line in answer.splitlines()]


def test_the_service_answers_as_windows_close() -> None:
    service = module("service")
    events = [{"time": time, "type": "Down" if time % 7 else "Up"} for time in range(150)]
    found = asyncio.run(talk(service, [json.dumps(event).encode() + b"\n" for event in events]))
    expected = hamlet.run(hamlet.Workload.parse(service.WORKLOAD), events).rows()
    assert sorted(found, key=lambda row: (row["query"], row["window_start"])) == sorted(
        expected, key=lambda row: (row["query"], row["window_start"])
    )


def test_the_service_says_what_is_wrong_and_goes_on() -> None:
    service = module("service")
    lines = [
        b'{"time": 1, "type": "Up"}\n',
        b"{no json\n",
        b'{"time": null, "type": "Up"}\n',
        b'{"time": 2, "type": "Down"}\n',
    ]
    found = asyncio.run(talk(service, lines))
    assert [next(iter(row)) for row in found] == ["error", "error", "query"]
    assert found[-1] == {"query": "falls", "window_start": 0, "window_end": 60, "count": 1, "bits": 0.0}


# ------------------------------------------------------------------------------------------------------ fare_trends


def test_fare_trends(taxi_file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    example = module("fare_trends")
    rows = example.rising(taxi_file)
    assert (rows["bits"] >= 0).all()
    zones = example.draw(rows, tmp_path / "fares.png")
    assert len(zones) == example.SHOWN
    assert (tmp_path / "fares.png").read_bytes().startswith(b"\x89PNG")


# --------------------------------------------------------------------------------------------------------- spark_job


def test_spark_job(spark: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    example = module("spark_job")
    events = {
        "time": range(40),
        "type": ["Departure"] * 40,
        "carrier": ["UA", "AA"] * 20,
        "dep_delay": [60 + place if place % 2 == 0 or place < 6 else 0 for place in range(40)],
    }
    pq.write_table(pa.table(events), tmp_path / "events.parquet")
    example.main(spark, str(tmp_path / "events.parquet"), str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).collect() == [("UA", 1, 98)]


# ----------------------------------------------------------------------------------------------------- streaming_job


@pytest.mark.slow
def test_a_streaming_spark_job(spark: Any, tmp_path: Path) -> None:
    """Two runs over one checkpoint: the second goes on in the window that the first has left open."""
    example = module("streaming_job")
    incoming, target, state = (str(tmp_path / name) for name in ("incoming", "target", "state"))
    before = {name: spark.conf.get(name) for name in example.SETTINGS}
    for name, value in example.SETTINGS.items():
        spark.conf.set(name, value)
    try:
        Path(incoming).mkdir()
        for place, times in enumerate((range(1, 8), range(8, 14), [700])):
            events = [{"time": 0, "type": "Request", "driver": 1, "district": "Soho"}] if place == 0 else []
            events += [
                {"time": time, "type": "Travel", "driver": 1, "district": "Soho", "speed": 5.0} for time in times
            ]
            lines = "".join(json.dumps(event) + "\n" for event in events)
            Path(incoming, f"{place}.json").write_text(lines, encoding="utf-8")
            if place:  # the first two files in one run, the third in another
                example.start(spark, incoming, target, state, once=True).awaitTermination(120)
        rows = spark.read.parquet(target).collect()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert [(row["district"], row["count"], row["mean_speed"]) for row in rows] == [("Soho", str(2**13 - 14), 5.0)]


# -------------------------------------------------------------------------------------------------------------- fleet


def test_fleet_is_a_project_that_passes_its_own_tests() -> None:
    project = EXAMPLES / "fleet"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml", "."],
        cwd=project, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert "4 passed" in run.stdout
