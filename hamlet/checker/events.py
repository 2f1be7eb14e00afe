"""What the checker is given: events as they were read, and the parsed text."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hamlet.checker.policies import Checker
from hamlet.language.schema import Clock
from hamlet.policies.logs.source import open_source, types_of
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.signature import Signature


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
