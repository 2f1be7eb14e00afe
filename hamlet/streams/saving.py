"""A monitor as bytes: what `Monitor.save` gives and `Monitor.restore` takes.

Contract
--------
**Form.** A head of fixed length (magic, format, length, BLAKE2b digest of all that is behind it), then JSON. Floats are
written so that they come back to the bit; values of numeric streams are their 64 bits.
**Saved** are the options, the place in the stream, held events, and all that streams, windows and deadlines keep. The
program is compiled anew from the specification, whose text must be the same.
**Refused** are bytes that are cut short or changed, of another format, or of another specification. The digest finds
damage, not malice: bytes that somebody has made up end in a `RestoreError`, or in a monitor that computes wrong; they
run no code, and ask for memory in proportion to their length.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from hamlet.engine.reorder_buffer import Place
from hamlet.errors import HamletError, OptionError, RestoreError
from hamlet.streams.clock import StreamClock, Times
from hamlet.streams.monitor import Monitor
from hamlet.streams.specification import Specification
from hamlet.version import __version__

FORMAT = 2
MAGIC = b"\x93HAMLOLA"
HEAD = struct.Struct("<8sIQ32s")


def saved(monitor: Monitor) -> bytes:
    """A monitor as bytes.

    Raises
    ------
    OptionError
        If an option is no plain value.
    """
    clock = monitor.clock
    described = {
        "version": __version__,
        "specification": _digest(monitor.spec),
        "options": _plain_options(asdict(monitor.options)),
        "clock": None if clock is None else [clock.column, clock.unit, clock.kind, clock.zone],
        "time_column": monitor.time_column,
        "place": [monitor.start_at, monitor.seen, monitor.promised, monitor.arrived, monitor.late_events],
        "held": _held(monitor),
        "evaluator": encoded(monitor.evaluator.state()),
    }
    body = json.dumps(described, separators=(",", ":")).encode()
    return HEAD.pack(MAGIC, FORMAT, len(body), hashlib.blake2b(body, digest_size=32).digest()) + body


def restored(spec: Specification, data: bytes | bytearray | memoryview) -> Monitor:
    """A monitor that goes on where another one was saved."""
    described = _opened(data)
    try:
        if described["specification"] != _digest(spec):
            raise RestoreError(
                "the save is of a monitor of another specification\n"
                "hint: restore it with the text that it was saved with"
            )
        monitor = Monitor(spec, **described["options"])
        if described["clock"] is not None:
            column, unit, kind, zone = described["clock"]
            monitor.times = Times(column, monitor.options.time_unit)
            if kind not in ("integer", "fraction", "timestamp") or unit not in ("s", "ms", "us", "ns"):
                raise ValueError("the clock is none")
            monitor.times.clock = StreamClock(column, unit, kind, zone)
        monitor.time_column = described["time_column"]
        start_at, seen, promised, arrived, late_events = described["place"]
        for each in (start_at, seen, promised):
            if each is not None and type(each) is not int:
                raise ValueError("a time is no number")
        monitor.start_at, monitor.seen, monitor.promised = start_at, seen, promised
        monitor.arrived, monitor.late_events = int(arrived), int(late_events)
        monitor.evaluator.load(decoded(described["evaluator"]))
        _hold(monitor, described["held"])
    except RestoreError:
        raise
    except (
        HamletError,
        ArithmeticError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        pa.ArrowException,
    ) as error:
        raise RestoreError(
            f"the save cannot be restored: {error}\n"
            "hint: its bytes fit their digest, so something else than monitor.save() has made them"
        ) from error
    return monitor


def _opened(data: bytes | bytearray | memoryview) -> dict[str, Any]:
    """The description, of bytes that are whole."""
    try:
        view = memoryview(data).toreadonly().cast("B")
    except TypeError:
        raise RestoreError(f"a save is bytes, not a {type(data).__name__}") from None
    if bytes(view[: len(MAGIC)]) != MAGIC[: len(view)] or not len(view):
        raise RestoreError("these bytes are not a save of a specification's monitor\nhint: give what save() returned")
    if len(view) < HEAD.size:
        raise RestoreError(f"the save is not whole: it has {len(view)} bytes of at least {HEAD.size}")
    _, format, length, digest = HEAD.unpack_from(view)
    if format != FORMAT:
        raise RestoreError(f"the save has format {format}, and Hamlet {__version__} reads format {FORMAT}")
    body = view[HEAD.size :]
    if len(body) != length:
        raise RestoreError(f"the save is not whole: it has {len(view)} bytes instead of {HEAD.size + length}")
    if hashlib.blake2b(body, digest_size=32).digest() != digest:
        raise RestoreError("the save is damaged: its bytes do not fit their digest\nhint: take an older save")
    try:
        found = json.loads(bytes(body))
    except (ValueError, RecursionError) as error:
        raise RestoreError(f"the save is damaged: its description cannot be read ({error})") from None
    if not isinstance(found, dict):
        raise RestoreError("the save is damaged: its description is none")
    return found


def _digest(spec: Specification) -> str:
    return hashlib.blake2b(spec.program.text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


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
    """Plain values as JSON has them: a tuple is ``{"t": [...]}``."""
    kind = type(value)
    if kind is tuple:
        return {"t": [encoded(each) for each in value]}
    if kind is list:
        return [encoded(each) for each in value]
    if kind is dict:
        return {"d": [[key, encoded(each)] for key, each in value.items()]}
    return value


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if isinstance(value, dict):
        if "t" in value:
            return tuple(decoded(each) for each in value["t"])
        return {key: decoded(each) for key, each in value["d"]}
    return value


def _held(monitor: Monitor) -> Any:
    """The events that the reorder buffer holds."""
    if monitor.disorder is None:
        return None
    place = monitor.disorder.place()
    rows = None if place.held is None else encoded([list(each.values()) for each in place.held.to_pylist()])
    names = None if place.held is None else [[field.name, str(field.type)] for field in place.held.schema]
    return [place.events, place.late_events, place.seen, place.promised, names, rows]


def _hold(monitor: Monitor, held: Any) -> None:
    if held is None or monitor.disorder is None:
        return
    events, late_events, seen, promised, names, rows = held
    table = None
    if names is not None:
        schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in names])
        columns: list[Any] = list(zip(*decoded(rows), strict=True)) or [[] for _ in names]
        table = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    clock = monitor.clock
    monitor.engine_clock = None if clock is None else clock.engine_clock
    monitor.disorder.load(Place(int(events), int(late_events), seen, promised, table), monitor.engine_clock)
