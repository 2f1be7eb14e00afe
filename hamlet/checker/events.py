"""What the checker is given: events as they were read, and the parsed text."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hamlet.checker import trends
from hamlet.checker.policies import Checker
from hamlet.input.events import open_events
from hamlet.input.ticks import time_in_ticks
from hamlet.language.parser import parse
from hamlet.language.schema import Clock
from hamlet.policies.logs.source import open_source, types_of
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.signature import Signature


def trend_checker(text: str, events: Any, options: Mapping[str, Any]) -> trends.Checker:
    """The checker of a workload over events of any form that `hamlet.run` takes."""
    workload = parse(text)
    given = {name: value for name, value in options.items() if value is not None}
    source = open_events(events, **given)
    schema, clock = source.schema, source.schema.clock
    special = clock.column, schema.type_column
    originals = events if isinstance(events, list | tuple) and not isinstance(events[:1], str) else None
    found: list[trends.Event] = []
    for batch in source.as_read():
        ticks = batch.column(clock.column).cast(pa.int64()).to_pylist()
        for time, row in zip(ticks, _rows(batch), strict=True):
            row[clock.column] = clock.present(time)
            order = row.get(schema.order_column) if schema.order_column is not None else None
            found.append(trends.Event(len(found), time, order, row.get(schema.type_column), row))
    if originals is not None and all(isinstance(each, Mapping) for each in originals):
        for event, original in zip(found, originals, strict=True):
            event.columns = {name: event.columns.get(name) for name in original}
    return trends.Checker(
        workload, found, lambda told: time_in_ticks(told, clock), clock.ticks_per_second, clock.zone, special
    )


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = {}
    for field in batch.schema:
        column = batch.column(field.name)
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = column.cast(pa.timestamp("us", field.type.tz), safe=False)
        columns[field.name] = column.to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def policy_checker(text: str, signature_text: str, events: Any, open_end: bool, options: Mapping[str, Any]) -> Checker:
    """The checker of a policy over events of any form that `hamlet.policies.run` takes."""
    signature = Signature.parse(signature_text)
    formula, _ = parse_formula(text, "<policy>")
    types = types_of(signature)
    source = open_source(events, signature, types, **options)
    log: list[tuple[int, dict[tuple[str, int], set[tuple[Any, ...]]]]] = []
    for chunk in source.chunks():
        first = len(log)
        log += [(time, {}) for time in chunk.times.tolist()]
        for key, (points, fields) in chunk.relations.items():
            columns = [
                [_value(one, kind) for one in each.to_pylist()] for each, kind in zip(fields, types[key], strict=True)
            ]
            rows = zip(*columns, strict=True) if columns else [()] * len(points)
            for point, row in zip(points.tolist(), rows, strict=False):
                log[first + point][1].setdefault(key, set()).add(row)
    kind = source.time_type
    clock = Clock("time", kind.unit, kind) if pa.types.is_timestamp(kind) else None

    def shown(time: int) -> Any:
        if clock is None:
            return time
        moment = clock.present(time)
        return moment.isoformat() if isinstance(moment, datetime.datetime) else str(moment)

    return Checker(formula, types, log, shown, source.per_second, open_end)


def _value(value: Any, kind: str) -> Any:
    """A field of a log as a value of its type; integers beyond 64 bits come as digits or decimals."""
    return int(value) if kind == "int" else value
