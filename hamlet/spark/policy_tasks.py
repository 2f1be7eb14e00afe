"""What the tasks of a policy's job do: they read files by themselves, evaluate, and write rows; no pyspark needed.

A task has a cell of the valuations, a block of time, or a cell within a block. Parquet files are read in parts where
the policy sees only so far in time; what is in other files is read by every task, which keeps what its slice needs:
reading and routing columns costs little beside the evaluation, and nothing is shuffled, so that memory holds one chunk.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.events import EventSource
from hamlet.input.files import ParquetFile
from hamlet.input.folder import Folder
from hamlet.input.ordering import OrderCheck
from hamlet.input.period import PeriodEvents
from hamlet.parallel.routing.blocks import EVERY_TIME, Block, blocks_and_cells, blocks_of, moved, steps_of
from hamlet.parallel.routing.closed import Range, cut_chunks, own, ranges, reach
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.placement import Balance
from hamlet.parallel.routing.rates import Rates, atoms_of, dimensions_of, rates_of
from hamlet.policies import Policy
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.logs.source import Source, open_source
from hamlet.policies.logs.table_source import TableSource
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.syntax.signature import Signature
from hamlet.runtime.expected import Expected
from hamlet.spark.parts import row_groups

SAMPLED = 1_000_000  # events by which shares are chosen, where nobody gives rates


@dataclass(frozen=True)
class PolicyShipment:
    """What every task knows of a policy.

    Attributes
    ----------
    text, signature, name, source : str
        The policy and its signature as texts.
    negate, open_end : bool
    time_points : {'step', 'event'}
    """

    text: str
    signature: str
    name: str
    source: str
    negate: bool = False
    open_end: bool = False
    time_points: str = "step"

    @property
    def policy(self) -> Policy:
        """The policy, parsed and checked."""
        return _parsed(self.text, self.signature, self.name, self.source)

    def runner(self, time_type: pa.DataType, per_second: int) -> PolicyRunner:
        """What evaluates it."""
        return PolicyRunner([self.policy], time_type, per_second, negate=self.negate, open_end=self.open_end)


def shipment_of(policy: Policy, negate: bool, open_end: bool, time_points: str = "step") -> PolicyShipment:
    """What tasks know of a policy."""
    text, signature = policy.text, str(policy.signature)
    return PolicyShipment(text, signature, policy.name, policy.source, negate, open_end, time_points)


@functools.lru_cache(maxsize=8)
def _parsed(text: str, signature: str, name: str, source: str) -> Policy:
    """A worker process is used for many tasks."""
    return Policy.parse(text, Signature.parse(signature), name, source)


@dataclass(frozen=True)
class Input:
    """How tasks read the input of `submit`.

    Attributes
    ----------
    path : str or list of str
    options : mapping
        Of `hamlet.policies.logs.source.open_source`.
    """

    path: str | list[str]
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, policy: Policy, time_points: str, block: Block | None = None) -> Source:
        """The input; of Parquet files, what a block needs of it."""
        wanted = {atom.predicate for atom in atoms_of(policy.formula, ())}
        options = dict(self.options)
        if block is not None:
            part = block.range
            since, until = (each if abs(each) < EVERY_TIME else None for each in (part.begin, part.end + 1))
            options["filtered"] = functools.partial(_part, since, until, block.ordered)
            options["counted"] = part.first, part.last
        return open_source(self.path, policy.signature, wanted, time_points=time_points, **options)


def _part(since: int | None, until: int | None, ordered: bool, events: EventSource) -> EventSource:
    """The events of some times, in order."""
    reader = events._reader
    if ordered and isinstance(reader, Folder | ParquetFile):
        reader.ordered = True  # who made the blocks has seen it
    return PeriodEvents(events, since, until)


@dataclass(frozen=True)
class Share:
    """What one task does.

    Attributes
    ----------
    slicer : JointSlicer or None
        Whose cell `cell` it keeps; None for all valuations.
    cell : int
    range : Range or None
        Times of which it reads everything, and keeps what they need.
    block : Block or None
        Times of which it reads the part of the input that they need.
    """

    slicer: JointSlicer | None = None
    cell: int = 0
    range: Range | None = None
    block: Block | None = None


def shares_of(
    shipment: PolicyShipment, ways: Input, opened: Source, slices: int, statistics: Rates | None
) -> list[Share]:
    """What the tasks are: blocks of time where the input can be read in parts, and cells of valuations."""
    formula = goal(shipment.policy.formula, shipment.negate)[0]
    free = bool(dimensions_of(formula))
    past, future = reach(formula, opened.per_second)
    if shipment.open_end:
        past = None  # which time-points are decided is known at the end of the input only
    blocks: list[Block | None] = [None]
    cells = slices
    if past is not None and future is not None and slices > 1 and isinstance(opened, TableSource):
        files = _parquet(opened.events)
        if files:
            blocks, cells = _blocks(shipment, opened.events, files, (past, future), slices, free)
    if not free:
        # Rows show seconds as doubles, by which they cannot be told apart to the nanosecond.
        if len(blocks) == 1 and cells > 1 and not pa.types.is_floating(opened.time_type):
            return [Share(range=each) for each in ranges(opened.chunks(), past, future, slices)]
        return [Share(block=each) for each in blocks]
    if cells == 1:
        return [Share(block=each) for each in blocks]
    rates = statistics or rates_of(
        formula, _narrow(ways.open(shipment.policy, shipment.time_points).chunks(), shipment.policy), SAMPLED
    )
    slicer = JointSlicer(formula, cells, rates)
    return [Share(slicer, cell, block=block) for block in blocks for cell in range(cells)]


def _parquet(events: EventSource) -> list[str]:
    """The files of a source, if all are Parquet."""
    reader = events._reader
    readers = reader.readers if isinstance(reader, Folder) else (reader,)
    return [each.name for each in readers] if all(isinstance(each, ParquetFile) for each in readers) else []


def _blocks(
    shipment: PolicyShipment,
    events: EventSource,
    files: Sequence[str],
    sees: tuple[int, int],
    slices: int,
    free: bool,
) -> tuple[list[Block | None], int]:
    """Blocks of time, and in how many cells each is cut, by the times of all events."""
    key, by_step = events._key, shipment.time_points == "step"
    check = OrderCheck(key)
    steps = steps_of(_checked(events._reader.batches(key.names), check), by_step)
    if not check.ordered:
        steps = steps_of((key.columns_of(batch) for batch in events.batches([])), by_step)
    if len(steps.times) < 2:
        return [None], slices
    span = int(steps.times[-1]) - int(steps.times[0]) + 1
    count, cells = blocks_and_cells(slices, sum(sees) / span) if free else (slices, 1)
    if count == 1:
        return [None], cells
    borders = [each.times[0] for each in row_groups(files, key.time) if each.times is not None]
    found = blocks_of(steps, *sees, count, np.unique(np.array(borders, np.int64)))
    return [replace(each, ordered=check.ordered) for each in found], cells


def _checked(batches: Iterable[pa.RecordBatch], check: OrderCheck) -> Iterator[tuple[Any, Any]]:
    """Times and orders of batches, which a check sees, too."""
    for batch in batches:
        check.feed(batch)
        yield check.key.columns_of(batch)


@dataclass(frozen=True)
class PolicyShares:
    """A policy whose tasks read files; as `hamlet.spark.batch.Sharing`."""

    shipment: PolicyShipment
    ways: Input
    tuples: Sequence[str] | None
    kind = "policy"

    @property
    def name(self) -> str:
        """Of the policy."""
        return self.shipment.name

    def monitored(self, share: Share) -> PolicyShare:
        """What a task does with a share."""
        return PolicyShare(self.shipment, self.ways, share)


class PolicyShare:
    """A share in its task."""

    def __init__(self, shipment: PolicyShipment, ways: Input, share: Share) -> None:
        self._policy, self._share = shipment.policy, share
        self._source = ways.open(self._policy, shipment.time_points, share.block)
        self._runner = shipment.runner(self._source.time_type, self._source.per_second)
        self.schema = self._runner.schemas[0]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the share."""
        for _, rows in self._runner.run(_chunks(self._source, self._share, self._policy)):
            yield _own(rows, self._share)

    def counts(self) -> dict[str, Any]:
        """What there was to count, ``load`` and ``notes`` among it."""
        share, source = self._share, self._source
        load = self._runner.events if share.slicer is None else int(share.slicer.sent[share.cell])
        return {"load": load, **source.stats, "notes": source.notes(), "expected": source.expected}


def _chunks(source: Source, share: Share, policy: Policy) -> Iterator[LogChunk]:
    chunks = source.chunks() if share.block is None else moved(source.chunks(), share.block.before)
    if share.range is not None:
        return cut_chunks(chunks, share.range)
    slicer = share.slicer
    if slicer is None:
        return iter(chunks)
    return (slicer.only(chunk, share.cell) for chunk in _narrow(chunks, policy))


def _narrow(chunks: Iterable[LogChunk], policy: Policy) -> Iterator[LogChunk]:
    """Chunks whose integers have 64 bits at most: the slices of larger ones would depend on how a file is cut."""
    for chunk in chunks:
        for key, (_, columns) in chunk.relations.items():
            for column, kind in zip(columns, policy.signature[key].types, strict=True):
                if kind == "int" and not pa.types.is_integer(column.type):
                    raise DataError(
                        f"an event of {key[0]} has an integer of more than 64 bits, which a Spark job cannot slice\n"
                        "hint: hamlet monitor reads integers of any size"
                    )
        yield chunk


def _own(rows: pa.RecordBatch, share: Share) -> pa.RecordBatch:
    if share.slicer is not None:
        rows = share.slicer.keep(rows, share.cell)
    part = share.range if share.block is None else share.block.range
    if part is None:
        return rows
    times = rows.column("time").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return rows.filter(pa.array(own(times, part)))


def summed(shares: Sequence[Share], found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The counters of a whole job."""
    loads = [each["load"] for each in found]
    notes = [each.pop("notes") for each in found]
    expected = functools.reduce(Expected.plus, (each.pop("expected") for each in found))
    # The cells of a block count the same events; so do all tasks where there are no blocks.
    blocks = {share.block: each for share, each in zip(shares, found, strict=True)}
    totals: dict[str, Any] = {}
    for each in blocks.values():
        for name, count in each.items():
            totals[name] = totals.get(name, 0) + count
    events = totals.get("matched_events", totals.get("events", 0))
    del totals["load"]
    return {
        **totals,
        # what a task leaves out of a block is another one's
        "notes": notes[0] if len(blocks) == 1 else expected.warnings(),
        "rows": sum(each["rows"] for each in found),
        "slices": Balance(tuple(loads), events).stats,
    }
