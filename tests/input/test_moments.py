"""Times as programs have them: text, floats of seconds, datetimes with zones, from dicts, polars and pandas."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import hamlet

WORKLOAD = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 h")
START = datetime.datetime(2024, 3, 5, 10)


def dicts(*times: Any) -> list[dict[str, Any]]:
    return [{"time": time, "type": "AB"[place % 2]} for place, time in enumerate(times)]


@pytest.mark.parametrize(
    ("times", "zone"),
    [
        (("2024-03-05 10:00:00", "2024-03-05T10:00:01"), None),
        (("2024-03-05T10:00:00.5", "2024-03-05T10:00:01.000000001"), None),
        (("2024-03-05T10:00:00Z", "2024-03-05T11:00:01+01:00"), "UTC"),
        ((START, START + datetime.timedelta(seconds=1)), None),
        (
            (
                datetime.datetime(2024, 3, 5, 10, tzinfo=datetime.UTC),
                datetime.datetime(2024, 3, 5, 11, 0, 1, tzinfo=ZoneInfo("Europe/Berlin")),
            ),
            "UTC",
        ),
    ],
    ids=["text", "nanoseconds", "text with zones", "datetimes", "datetimes with zones"],
)
def test_times_of_dicts(times: tuple[Any, ...], zone: str | None) -> None:
    found = hamlet.run(WORKLOAD, dicts(*times)).rows()
    start = START if zone is None else START.replace(tzinfo=datetime.UTC)
    assert [(row["window_start"], row["count"]) for row in found] == [(start, 1)]
    engine = hamlet.Engine(WORKLOAD)
    assert engine.push(dicts(*times)) + engine.close() == found
    assert hamlet.run(WORKLOAD, {"time": list(times), "type": ["A", "B"]}).rows() == found


def test_pushes_one_by_one_and_promises() -> None:
    engine = hamlet.Engine(WORKLOAD)
    assert not engine.push(dicts("2024-03-05 10:00:00"))
    assert not engine.push([{"time": "2024-03-05 10:00:01.5", "type": "B"}])
    assert [row["count"] for row in engine.advance("2024-03-05 11:00:00")] == [1]
    engine = hamlet.Engine(WORKLOAD)
    assert not engine.push(dicts(1709632800.5, 1709632801.5))
    assert [row["count"] for row in engine.advance(1709636400.0)] == [1]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (("2024-03-05", "5 March"), "holds '5 March' in event 2"),
        (("2024-03-05", "2024-03-05T10:00:00Z"), r"in event 2, and mixes times with and without a zone"),
        ((1.0, float("inf")), "holds inf in event 2"),
        ((1.0, None), "NULL in row 2"),
        (("2024-03-05", None), "NULL in row 2"),
    ],
)
def test_what_is_no_time(times: tuple[Any, ...], said: str) -> None:
    for act in (lambda: hamlet.run(WORKLOAD, dicts(*times)), lambda: hamlet.Engine(WORKLOAD).push(dicts(*times))):
        with pytest.raises(hamlet.DataError, match=said):
            act()


@pytest.mark.parametrize("times", [(1709632800.0, 1709632801.25), (1709632800, 1709632801.25)])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_floats_are_seconds_whatever_integers_are(times: tuple[Any, ...], unit: str) -> None:
    found = hamlet.run(WORKLOAD, dicts(*times), time_unit=unit).rows()
    assert [(row["window_start"], row["window_end"], row["count"]) for row in found] == [(1709632800, 1709636400, 1)]
    assert type(found[0]["window_start"]) is float
    engine = hamlet.Engine(WORKLOAD, time_unit=unit)
    assert engine.push(dicts(*times)) + engine.close() == found


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"time": ["2024-03-05 10:00:00", "2024-03-05 10:00:01"], "type": ["A", "B"]})
    rows = hamlet.run(WORKLOAD, frame).rows()
    assert [row["window_start"] for row in rows] == [START]
    engine = hamlet.Engine(WORKLOAD)
    assert engine.push(frame) + engine.close() == rows
    assert hamlet.run(WORKLOAD, pa.table(frame).to_reader()).rows() == rows


def test_pandas() -> None:
    """As a user has it: pandas is none of this project's packages."""
    script = (
        "import importlib.util, sys\n"
        "if importlib.util.find_spec('pandas') is None: sys.exit(77)\n"
        "import hamlet, pandas\n"
        "w = hamlet.Workload.parse('RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 h')\n"
        "t = ['2024-03-05 10:00:00', '2024-03-05 10:00:01']\n"
        "for times in (t, pandas.to_datetime(t), pandas.to_datetime(t).tz_localize('Europe/Berlin'), [1.0, 2.5]):\n"
        "    frame = pandas.DataFrame({'time': times, 'type': ['A', 'B']}, index=[7, 5])\n"
        "    engine = hamlet.Engine(w)\n"
        "    assert len(hamlet.run(w, frame)) == len(engine.push(frame) + engine.close()) == 1\n"
        "back = hamlet.run(w, frame).to_pandas()\n"
        "assert type(back).__name__ == 'DataFrame' and back['count'].max() == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("pandas is not installed")
    assert done.returncode == 0, done.stderr
