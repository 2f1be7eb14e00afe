"""Queries about rows of queries as micro-batches come, without Spark: the rows of a run over all events."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.options import options_of
from hamlet.input.input_schema import plain_schema
from hamlet.input.ordering import SortKey
from hamlet.output.query_rows import dicts_of
from hamlet.spark.chained import ChainedRows, ChainedWork
from hamlet.spark.sliced import CLOSED, decided
from hamlet.spark.tasks import Shipment
from tests.compare_random import features_of
from tests.effort import share_of
from tests.strategies import random_case

pytest.importorskip("pyspark", reason="pyspark is not installed (the extra spark has it)")


def in_micro_batches(work: ChainedWork, events: pa.Table, dice: random.Random) -> list[dict[str, Any]]:
    """The rows, where a slice is saved after every few events; tasks' packets come in any order."""
    saved, found, place = None, [], 0
    while place < len(events):
        part = events.slice(place, dice.randrange(1, 9))
        place += len(part)
        slice = work.opened(0, saved)
        packets = list(work.packed(0, part.combine_chunks().to_batches(max_chunksize=3)))
        dice.shuffle(packets)
        for row in pa.Table.from_batches(packets).to_pylist():
            slice.take(row["first"], row["latest"], row["seen"], row["events"])
        found += [decided(bucket, data) for bucket, data in slice.closed()]
        saved = slice.save()
    rows = ChainedRows(work.shipment).decided([pa.RecordBatch.from_pylist(found, CLOSED)])
    return [row for _, each in rows for row in dicts_of(each, work.schema.clock)]


def by_text(rows: list[dict[str, Any]], end: int) -> list[str]:
    """Rows in any order, of windows that no event at the end is in."""
    return sorted(repr(sorted(row.items())) for row in rows if row["window_end"] < end)


def test_random_workloads() -> None:
    compared = rows = 0
    for seed in range(share_of(500)):
        text, events, options = random_case(seed, features_of("chained,having,top,expressions"))
        workload = hamlet.Workload.parse(text)
        if len(workload.analysis.layers) < 2 or not events:
            continue
        events = sorted(events, key=lambda event: event["time"])
        end = events[-1]["time"] + 10**7
        table = pa.Table.from_pylist([*events, {"time": end, "type": "End", "o": 0}])
        chosen = options_of(options)
        try:
            expected = by_text(hamlet.run(workload, table, **options).rows(), end)
        except hamlet.HamletError:
            continue
        schema = plain_schema(table.schema, SortKey(chosen.time_column, chosen.order_column), chosen.type_column)
        dice = random.Random(seed)
        work = ChainedWork(Shipment(text, "w.sase", chosen, schema), dice.choice([0, 0, 5]), "error")
        found = in_micro_batches(work, table.select(work.events.names), dice)
        assert by_text(found, end) == expected, seed
        compared, rows = compared + 1, rows + len(expected)
    assert compared > share_of(80)
    assert rows > share_of(200)
