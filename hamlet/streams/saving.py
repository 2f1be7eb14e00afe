"""A monitor of a specification as bytes: what `Monitor.save` gives and `Monitor.restore` takes.

Contract
--------
**Form.** A frame (`hamlet.checkpoint.frame`) without blobs. Floats are written so that they come back to the bit;
values of numeric streams are their 64 bits.
**Saved** are the options, the place in the stream, held events, and all that streams, windows and deadlines keep. The
program is compiled anew from the specification.
**Refused** is what the frame refuses. Bytes that somebody has made up end in a `RestoreError`, or in a monitor that
computes wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobWriter, check_zone, items, text, whole
from hamlet.errors import OptionError
from hamlet.input.widening import FRACTION
from hamlet.language.schema import Clock
from hamlet.runtime.reorder_buffer import Place
from hamlet.streams.clock import Times
from hamlet.streams.monitor import Monitor
from hamlet.streams.specification import Specification
from hamlet.streams.syntax.tokens import canonical

_FAR = 1 << 93  # nanoseconds: times of 2^61 seconds
_FIELDS = ("options", "clock", "time_column", "place", "held", "evaluator", "expected")


def saved(monitor: Monitor) -> bytes:
    """A monitor as bytes.

    Raises
    ------
    OptionError
        If an option is no plain value.
    """
    clock = monitor.clock
    described = {
        "options": _plain_options(asdict(monitor.options)),
        "clock": None if clock is None else _described(clock),
        "time_column": monitor.time_column,
        "place": [monitor.start_at, monitor.seen, monitor.promised, monitor.arrived, monitor.late_events],
        "held": _held(monitor),
        "evaluator": encoded(monitor.evaluator.state()),
        "expected": monitor._expected.described(),
    }
    return frame.write(_work(monitor.spec), described, BlobWriter())


def _described(clock: Clock) -> list[str | None]:
    kind = "timestamp" if clock.is_timestamp else "fraction" if clock.is_fraction else "integer"
    return [clock.column, clock.unit, kind, clock.type.tz if clock.is_timestamp else None]


def restored(spec: Specification, data: bytes | bytearray | memoryview, instead: Mapping[str, Any]) -> Monitor:
    """A monitor that goes on where another one was saved; `instead` are options in place of those of that one."""
    described, blobs = frame.read(_work(spec), data, _FIELDS)
    with frame.blamed():
        blobs.end()
        monitor = Monitor(spec, **{**described["options"], **instead})
        if described["clock"] is not None:
            column, unit, kind, zone = items(described["clock"], 4)
            monitor.times = Times(column, monitor.options.time_unit)
            if kind not in ("integer", "fraction", "timestamp") or unit not in ("s", "ms", "us", "ns"):
                raise ValueError("the clock is not valid")
            if zone is not None:
                check_zone(text(zone))
            types = {"integer": pa.int64(), "fraction": FRACTION, "timestamp": pa.timestamp(unit, zone)}
            monitor.times.clock = Clock(text(column), "ns" if kind == "fraction" else unit, types[kind])
        if described["time_column"] is not None:
            monitor.time_column = text(described["time_column"])
        *times, arrived, late_events = items(described["place"], 5)
        monitor.start_at, monitor.seen, monitor.promised = (
            None if each is None else whole(each, -_FAR, _FAR) for each in times
        )
        monitor.arrived, monitor.late_events = whole(arrived), whole(late_events)
        missing, others = items(described["expected"], 2)
        monitor._expected.load(map(text, items(missing)), map(text, items(others)))
        monitor.evaluator.load(decoded(described["evaluator"]))
        _hold(monitor, described["held"])
    return monitor


def _work(spec: Specification) -> frame.Work:
    """What a save of a monitor is of."""
    return frame.Work("specifications", canonical(spec.text))


def _plain_options(found: dict[str, Any]) -> dict[str, Any]:
    for name in ("start", "lateness"):
        value = found[name]
        if value is not None and not isinstance(value, (int, float, str)):
            shown = value.isoformat() if hasattr(value, "isoformat") else None
            if shown is None and hasattr(value, "total_seconds"):
                shown = f"{value.total_seconds()} s"
            if shown is None:
                raise OptionError(f"a monitor with {name}={value!r} cannot be saved; give a number or a text")
            found[name] = shown
    return found


def encoded(value: Any) -> Any:
    """Plain values as JSON has them: a tuple is ``{"t": [...]}``, bytes and decimals are their digits."""
    kind = type(value)
    if kind is tuple:
        return {"t": [encoded(each) for each in value]}
    if kind is list:
        return [encoded(each) for each in value]
    if kind is dict:
        return {"d": [[key, encoded(each)] for key, each in value.items()]}
    if kind is bytes:
        return {"b": value.hex()}
    return {"n": str(value)} if kind is Decimal else value


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if isinstance(value, dict):
        if "t" in value:
            return tuple(decoded(each) for each in value["t"])
        if "b" in value:
            return bytes.fromhex(value["b"])
        if "n" in value:
            return Decimal(value["n"])
        return {key: decoded(each) for key, each in value["d"]}
    return value


def _named(kind: pa.DataType) -> Any:
    """A type of a column as JSON has it."""
    if pa.types.is_dictionary(kind):  # its values are saved as they are
        return _named(kind.value_type)
    if pa.types.is_struct(kind):
        return [[field.name, _named(field.type)] for field in kind]
    return [kind.bit_width, kind.precision, kind.scale] if pa.types.is_decimal(kind) else str(kind)


def _type_of(named: Any) -> pa.DataType:
    """What `_named` was given."""
    if isinstance(named, str):
        return pa.type_for_alias(named)
    if named and isinstance(named[0], list):
        return pa.struct([(text(name), _type_of(kind)) for name, kind in named])
    width, precision, scale = items(named, 3)
    return (pa.decimal256 if whole(width) > 128 else pa.decimal128)(whole(precision, 1, 76), whole(scale))


def _held(monitor: Monitor) -> Any:
    """The events that the reorder buffer holds."""
    if monitor.buffer is None:
        return None
    place = monitor.buffer.place()
    rows = None if place.held is None else encoded([list(each.values()) for each in place.held.to_pylist()])
    names = None if place.held is None else [[field.name, _named(field.type)] for field in place.held.schema]
    return [place.events, place.late_events, place.seen, place.promised, names, rows]


def _hold(monitor: Monitor, held: Any) -> None:
    if held is None or monitor.buffer is None:
        return
    events, late_events, seen, promised, names, rows = held
    table = None
    if names is not None:
        schema = pa.schema([(text(name), _type_of(kind)) for name, kind in names])
        columns: list[Any] = list(zip(*decoded(rows), strict=True)) or [[] for _ in names]
        table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    monitor.engine_clock = monitor.clock
    monitor.buffer.load(Place(int(events), int(late_events), seen, promised, table), monitor.engine_clock)
