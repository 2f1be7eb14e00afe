"""A policy whose events travel: slices of its valuations, each with a monitor of its own.

The joint data slicer says which slices an event matters to, and every slice hears of every time-point. What several
slices find is kept by the one that the valuation belongs to.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.checkpoint.pieces import joined, unjoined
from hamlet.errors import DataError, UnsupportedError
from hamlet.findings import Seen, of_names, seen_in
from hamlet.input.columns import Int64Array
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import ticks_of
from hamlet.output.time_text import time_text
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import Rates, atoms_of, dimensions_of, kept_rates, rates_again, rates_of
from hamlet.policies import Monitor, Policy
from hamlet.policies.analysis.bare_bounds import notes_of_bounds
from hamlet.policies.analysis.reach import reach_of
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.tables import Tables
from hamlet.policies.options import OnlineOptions
from hamlet.policies.syntax.formula import Formula, per_second_of
from hamlet.runtime.monitor import begun
from hamlet.spark.policy_tasks import shipment_of
from hamlet.spark.sliced import Submonitor, TimedWork


def check_verdicts(options: OnlineOptions) -> None:
    """Refuse what slices do not give."""
    if options.verdicts != "satisfied":
        raise UnsupportedError(
            "a continuous job writes what satisfies a policy\nhint: hamlet.policies.Monitor gives other verdicts"
        )


def policy_work(
    policy: Policy,
    events: pa.Schema,
    options: OnlineOptions,
    slices: int,
    statistics: Rates | None = None,
    *,
    adaptive: bool = False,
) -> PolicyWork:
    """A policy over events of these columns."""
    check_verdicts(options)
    formula = goal(policy.formula, options.negate)[0]
    if not dimensions_of(formula) or options.time_points == "event":
        slices = 1  # no variable to slice by; each event is a time-point, which every slice would need
    work = PolicyWork(policy, events, options, JointSlicer(formula, slices, statistics))
    if adaptive and slices > 1:
        work.keep_lately()
    return work


class PolicyWork(TimedWork):
    """A policy that runs continuously; goes to every worker."""

    tells_steps = True

    def __init__(self, policy: Policy, events: pa.Schema, options: OnlineOptions, slicer: JointSlicer) -> None:
        self._shipment = shipment_of(policy, options.negate, options.open_end)
        self._key = key = SortKey(options.time_column, options.order_column, "the DataFrame")
        wanted = {atom.predicate for atom in atoms_of(policy.formula, ())}
        self._names = [each.name for each in policy.signature]
        self._tables = partial(Tables, policy.signature, wanted, events, key, options.type_column)
        names = dict.fromkeys([*key.names, options.type_column, *self._tables().columns])
        missing = [name for name in names if name not in events.names]
        if missing:
            raise DataError(f"the DataFrame has no column {missing[0]!r}; it has {', '.join(events.names)}")
        columns = pa.schema([events.field(name) for name in names])
        self._clock = schema_of(columns, key, options.type_column, options.time_unit, source="the DataFrame").clock
        super().__init__(slicer.slices, columns, ticks_of(options.lateness, self._clock), options.late)
        self.options = {**asdict(options), "lateness": 0, "late": "error"}
        self.slicer = slicer
        self.rows = self._shipment.runner(self._clock.shown_type, per_second_of(self._clock)).schemas[0]

    def keep_lately(self) -> None:
        """Keep the events that matter to what is not decided: their cells can be cut anew."""
        reach = reach_of(self.formula, per_second_of(self._clock))
        # What the watermark leaves open lies at most one reach behind it, and is decided by as much before.
        self.reach = None if reach is None else 2 * reach + 1

    @property
    def formula(self) -> Formula:
        """What is monitored."""
        return goal(self._shipment.policy.formula, self.options["negate"])[0]

    def recut(self, events: pa.RecordBatch) -> tuple[Any, PolicyWork]:
        """Shares, and values with shares of their own, by the rates of some events."""
        rates = rates_of(self.formula, self._tables(time_points="event").feed(events))
        shares = kept_rates(rates, self.slices)
        return shares, self.again(shares)

    def again(self, shares: Any) -> PolicyWork:
        """The policy in other shares."""
        found = copy(self)
        found.slicer = JointSlicer(self.formula, self.slices, rates_again(shares, self.formula))
        return found

    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """Ticks and orders."""
        return self._key.columns_of(events)

    def looked(self, events: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], Seen]:
        """Which slices need which events, and the predicates that have come."""
        needs, tables = np.zeros((events.num_rows, self.slices), np.bool_), self._tables(time_points="event")
        for chunk in tables.feed(events):  # each event is a time-point
            for slice, part in enumerate(self.slicer.route(chunk)):
                for points, _ in part.relations.values():
                    needs[points, slice] = True
        return needs, replace(seen_in(events, self.options["type_column"], self._names), nulls=tables.nulls)

    def monitor(self, slice: int, first: int, saved: bytes | None) -> PolicySlice:  # noqa: ARG002
        """The monitor of a slice."""
        return PolicySlice(self, self._shipment.policy, slice, saved)

    def findings(self, seen: Seen) -> list[str]:
        """Bounds without a unit, predicates that never came, events in no relation."""
        bounds = notes_of_bounds([self._shipment.policy], self._clock.type) if seen.events else []
        return [*bounds, *of_names(self._names, seen)]

    def time_text(self, tick: int) -> str:
        """A time for a message."""
        return time_text(tick, self._clock)


class PolicySlice(Submonitor):
    """A monitor over the events of a slice."""

    _monitor: Monitor

    def __init__(self, work: PolicyWork, policy: Policy, slice: int, saved: bytes | None) -> None:
        self._work, self._slice = work, slice
        before, monitor = (b"0", None) if saved is None else unjoined(saved)
        self._before = int(before)  # time-points of a monitor that began earlier, where this one goes on
        super().__init__(begun(Monitor, policy, work.options, monitor))

    @property
    def points(self) -> int:
        """Time-points so far."""
        return self._before + self._monitor._runner.points

    @points.setter
    def points(self, points: int) -> None:
        self._before = points - self._monitor._runner.points

    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:  # noqa: ARG002
        """Take events; a step has no type, so it belongs to its time-point and to no relation."""
        place = events.schema.get_field_index(self._work.options["type_column"])
        field = events.schema.field(place)
        if steps.any():
            types = pc.if_else(pa.array(steps), pa.scalar("", field.type), events.column(place))
            events = events.set_column(place, field, types)
        return self._own(self._monitor.push_batches(pa.Table.from_batches([events])))

    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """No event before a time will come."""
        return self._own(self._monitor.advance_batches(tick))

    def end(self, tick: int) -> list[pa.RecordBatch]:  # noqa: ARG002
        """No event will come."""
        return self._own(self._monitor.close_batches())

    def _own(self, found: list[tuple[int, pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """The rows whose valuation belongs to the slice."""
        return [self._numbered(rows) for _, rows in found if rows.num_rows]

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        own = self._work.slicer.keep(rows, self._slice)
        if self._before:
            place = own.schema.get_field_index("time_point")
            own = own.set_column(place, own.schema.field(place), pc.add(own.column(place), self._before))
        return own.cast(self._work.rows)

    def save(self) -> bytes:
        """The monitor, and how many time-points there were before it."""
        return joined([str(self._before).encode(), super().save()])
