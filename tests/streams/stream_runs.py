"""The evaluator of specifications as the comparison with the oracle runs it: whole, from files, pushed in pieces."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import hamlet.streams
from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME_COLUMNS
from hamlet.oracle.streams import Event
from hamlet.streams import Specification
from tests.comparison import whole


def _dicts(events: Sequence[Event], time_column: str = "time") -> list[dict[str, Any]]:
    return [{time_column: time, **columns} for time, columns in events]


def run_whole(specification: Specification, events: Sequence[Event]) -> list[Mapping[str, Any]]:
    """All rows of `hamlet.streams.run`; ArithmeticError where a computation has no result."""
    return _run(specification, whole(Random(len(events)), _dicts(events)))


def run_files(specification: Specification, events: Sequence[Event]) -> list[Mapping[str, Any]]:
    """All rows over files of JSON lines whose columns stand in any order; one that has no value there is left out."""
    random = Random(len(events))
    time_column, cuts = random.choice(TIME_COLUMNS), sorted(random.randrange(len(events) + 1) for _ in range(2))
    dicts = _dicts(events, time_column)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for place, (low, high) in enumerate(pairwise([0, *cuts, len(dicts)])):
            lines = [{name: event[name] for name in random.sample([*event], len(event))} for event in dicts[low:high]]
            if lines:
                paths.append(str(Path(folder, f"{place}.jsonl")))
                Path(paths[-1]).write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        return _run(specification, paths)


def _run(specification: Specification, events: Any) -> list[Mapping[str, Any]]:
    options: dict[str, Any] = {"missing_columns": "null"} if isinstance(events[0], str) else {}
    try:
        results = hamlet.streams.run(specification, events, values=True, time_unit="ns", **options)
        rows: list[Mapping[str, Any]] = results.rows()
        assert [_value_in(row) for row in results.table().to_pylist()] == [row.get("value") for row in rows]
        return list(rows)
    except DataError as error:
        if "stream '" not in str(error):
            raise
        raise ArithmeticError(str(error)) from error


def _value_in(row: Mapping[str, Any]) -> Any:
    """The value of a row of a table, which has a column for each type of values."""
    return next((_tuple(row[name]) for name in row if name.startswith("value") and row[name] is not None), None)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value.values())) if isinstance(value, dict) else value


def run_pushed(specification: Specification, events: Sequence[Event]) -> list[Mapping[str, Any]]:
    """All rows of a monitor that gets the events in random pieces, and is saved and restored in between."""
    random = Random(len(events))
    monitor = hamlet.streams.Monitor(specification, values=True, time_unit="ns")
    rows: list[Mapping[str, Any]] = []
    dicts = whole(random, _dicts(events, random.choice(TIME_COLUMNS)))
    sizes = range(1, 6) if len(dicts) <= 30 else (1, 5, 63, 64, 65, 66, 100_000)
    try:
        while dicts:
            size = random.choice(sizes)
            rows += monitor.push(dicts[:size])
            del dicts[:size]
            if random.random() < 0.3:
                monitor = hamlet.streams.Monitor.restore(specification, monitor.save())
        return [*rows, *monitor.close()]
    except DataError as error:
        if "stream '" not in str(error):
            raise
        raise ArithmeticError(str(error)) from error
