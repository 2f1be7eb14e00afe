"""The evaluator of specifications as the comparison with the oracle runs it: whole, and pushed in random pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import hamlet.streams
from hamlet.errors import DataError
from hamlet.oracle.streams import Event
from hamlet.streams import Specification


def _dicts(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"time": time, **columns} for time, columns in events]


def run_whole(specification: Specification, events: Sequence[Event]) -> list[Mapping[str, Any]]:
    """All rows of `hamlet.streams.run`; ArithmeticError where a computation has no result."""
    try:
        return list(hamlet.streams.run(specification, _dicts(events), values=True, time_unit="ns").rows())
    except DataError as error:
        if "stream '" not in str(error):
            raise
        raise ArithmeticError(str(error)) from error


def run_pushed(specification: Specification, events: Sequence[Event]) -> list[Mapping[str, Any]]:
    """All rows of a monitor that gets the events in random pieces, and is saved and restored in between."""
    random = Random(len(events))
    monitor = hamlet.streams.Monitor(specification, values=True, time_unit="ns")
    rows: list[Mapping[str, Any]] = []
    dicts = _dicts(events)
    try:
        while dicts:
            size = random.randint(1, 5)
            rows += monitor.push(dicts[:size])
            del dicts[:size]
            if random.random() < 0.3:
                monitor = hamlet.streams.Monitor.restore(specification, monitor.save())
        return [*rows, *monitor.close()]
    except DataError as error:
        if "stream '" not in str(error):
            raise
        raise ArithmeticError(str(error)) from error
