"""A workload that runs again over the same columns is not compiled again; no run sees anything of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.input.columns import StringPool
from hamlet.input.events import open_events
from hamlet.planner.compiled import CompiledWorkload

TEXT = "".join(
    f"RETURN k, COUNT(*), SUM(B.v), MAX(B.v) PATTERN {pattern} GROUP-BY k WITHIN 60 s;"
    for pattern in ("SEQ(A, B+)", "SEQ(B+, C)", "SEQ(A, NOT C, B+)", "(SEQ(A, B+))+")
)


def events(seed: int, types: str = "ABC", **changed: Any) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {
        "time": np.arange(200) * 2,
        "type": random.choice(list(types), 200),
        "k": random.integers(0, 4, 200),
        "v": random.integers(-9, 10, 200),
    }
    return pa.table(columns | changed)


def compiled(workload: hamlet.Workload, table: pa.Table, exact: bool = True) -> CompiledWorkload:
    schema = open_events(table).schema
    return workload.compiled(schema, StringPool(), exact=exact, together=True, settled=True)


def test_runs_of_one_workload_are_as_runs_of_several() -> None:
    workload = hamlet.Workload.parse(TEXT)
    streams = [
        events(1),
        events(2, "CBXA"),
        events(3, v=np.arange(200) / 7),
        events(4, k=[f"key {place % 3}" for place in range(200)]),
        events(5, type=pa.array(["A", "B"] * 100).dictionary_encode()),
        events(6),
    ]
    for stream in streams:
        for options in ({}, {"numbers": "float"}, {"sharing": "never"}):
            alone = hamlet.run(hamlet.Workload.parse(TEXT), stream, **options)
            assert hamlet.run(workload, stream, **options).rows() == alone.rows()


def test_engines_side_by_side_know_nothing_of_each_other() -> None:
    workload = hamlet.Workload.parse(TEXT)
    streams = [events(seed, types) for seed, types in ((1, "ABC"), (2, "CZBA"), (3, "BBA"))]
    engines = [hamlet.Engine(workload) for _ in streams]
    rows: list[list[dict[str, Any]]] = [[] for _ in streams]
    for start in range(0, 200, 25):
        for found, engine, stream in zip(rows, engines, streams, strict=True):
            found += engine.push(stream.slice(start, 25))
    for found, engine, stream in zip(rows, engines, streams, strict=True):
        one = hamlet.Engine(hamlet.Workload.parse(TEXT))
        alone = [row for start in range(0, 200, 25) for row in one.push(stream.slice(start, 25))]
        assert found + engine.close() == alone + one.close()


def test_what_is_kept_is_for_the_same_columns_and_options() -> None:
    workload = hamlet.Workload.parse(TEXT)
    first, again = compiled(workload, events(1)), compiled(workload, events(2))
    assert again.classes is first.classes
    assert again.classifier is not first.classifier
    assert again.strings is not first.strings
    for other in (
        compiled(workload, events(1), exact=False),
        compiled(workload, events(1, v=np.arange(200) / 7)),
    ):
        assert other.classes is not first.classes


def test_predicates_are_compiled_for_each_run() -> None:
    """They number strings."""
    for condition in ("B.name = 'x'", "PREV(B).v < B.v"):
        text = f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {condition} WITHIN 60 s"
        workload = hamlet.Workload.parse(text)
        streams = [events(seed, name=np.array(["y", "x", "z"])[np.arange(200) * seed % 3]) for seed in (1, 2)]
        assert compiled(workload, streams[0]).classes is not compiled(workload, streams[0]).classes
        for stream in streams:
            assert hamlet.run(workload, stream).rows() == hamlet.run(hamlet.Workload.parse(text), stream).rows()


def test_mistakes_are_told_each_time() -> None:
    workload = hamlet.Workload.parse(TEXT)
    wrong = events(1).drop_columns(["v"])
    for _ in range(2):
        with pytest.raises(hamlet.WorkloadError, match="'v'"):
            hamlet.run(workload, wrong)
    assert hamlet.run(workload, events(1)).rows()
