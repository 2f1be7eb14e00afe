"""The paper's figures 8 to 12 as curves: every point is a stream at some rate and a workload of some size, online.

Source: HAMLET (SIGMOD'21) §5. Streams: our ridesharing simulation; the real taxi, smart home and stock streams with
their times divided by a constant. The windows of `*-dense` have as many events as in the authors' programme
(LeiMa0324/Hamlet on GitHub, executor/Experiment.java): 40,000 to 100,000, for 10 queries and more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers, online, workloads
from bench.baselines import strategy
from bench.baselines.question import Question
from bench.subject import Answer, Case, Contender, Points, Subject
from datasets import ridesharing, trips
from datasets.columns import MICROSECONDS
from datasets.location import real_stream
from hamlet.engine.options import SharingPolicy
from hamlet.frontend.units import UNITS_PER_SECOND

MINUTES = 10  # of a stream: two windows
WITHIN = "WITHIN 5 min"
SLICES, SLICE_EVENTS = 40, 10
COUNTED: tuple[str, ...] = ("bursts", "graphlets", "shared_graphlets", "coefficient_computations", "snapshots")
COUNTED += ("snapshot_values", "decisions", "decisions_by_model", "decision_ns", "splits", "merges")
RIDES = 6.5  # reports of a ride with which half of all events are Travel
TRAVEL = "Travel"
TAXI, HOME, STOCK = 1_000, 16, 3_000  # what a curve over the number of queries keeps fixed
DENSE_TAXI, DENSE_HOME = 3_300, 10  # windows of about 50,000 events


class Replayed:
    """A workload over a stream that arrives at its own pace.

    Parameters
    ----------
    text : str
        The workload.
    events : pyarrow.Table
        In order of time and seq.
    key : str
        A column by which small slices for the oracle are cut.
    policies : tuple of str
        Values of `sharing`, each a contender.
    baselines : tuple of str
        Names of strategies, each a contender.
    facts : mapping
        Where the point lies on its curve.
    **options
        Of `hamlet.run`.
    """

    def __init__(
        self,
        text: str,
        events: pa.Table,
        key: str,
        *,
        policies: tuple[str, ...] = ("dynamic",),
        baselines: tuple[str, ...] = (),
        facts: Mapping[str, Any],
        **options: Any,
    ) -> None:
        self.workload = hamlet.Workload.parse(text)
        self.key, self.policies, self.baselines, self.facts = key, policies, baselines, facts
        self.options = {"numbers": "float", "order_column": "seq", **options}
        wanted = {"time", self.options.get("type_column", "type"), "seq", *self.workload.attributes}
        self.whole = events
        self.events = events.select([name for name in events.column_names if name in wanted])
        self.ticks = UNITS_PER_SECOND[self.options.get("time_unit", "s")]
        self.stream = online.batches(self.events["time"].to_numpy(), self.ticks)
        self.pieces = online.pieces_of(self.events, self.stream)

    def at_once(self, policy: str) -> online.Replay:
        """Our engine over the whole stream, as fast as it can."""
        results = hamlet.run(self.workload, self.events, sharing=cast(SharingPolicy, policy), **self.options)
        return online.Replay(results.rows(), stats=results.stats)

    def replayed(self, policy: str) -> online.Replay:
        """Our engine, online."""
        engine = hamlet.Engine(self.workload, sharing=cast(SharingPolicy, policy), **self.options)
        waiting = iter(self.pieces)

        def push(batch: online.Batch) -> list[dict[str, Any]]:
            return engine.push(next(waiting)) + engine.advance(batch.until)

        return online.replay(self.stream, push, engine.close)

    @cached_property
    def question(self) -> Question:
        """What the baselines read."""
        names = {name: self.options[name] for name in ("time_unit", "type_column") if name in self.options}
        return Question(self.workload, self.events, order_column="seq", **names)

    @cached_property
    def pieces_at_once(self) -> list[Any]:
        """The stream by window and partition."""
        return self.question.pieces(0, len(self.events))

    @cached_property
    def pieces_by_batch(self) -> list[Any]:
        """The stream by batch, window and partition."""
        return [self.question.pieces(batch.begin, batch.end) for batch in self.stream]

    def baseline_at_once(self, name: str) -> online.Replay:
        """A baseline over the whole stream, as fast as it can."""
        rows, steps = strategy.run(strategy.STRATEGIES[name], self.question, self.pieces_at_once)
        return online.Replay(rows, stats={"steps": steps})

    def baseline_replayed(self, name: str) -> online.Replay:
        """A baseline, online."""
        running = strategy.Run(strategy.STRATEGIES[name], self.question)
        waiting = iter(self.pieces_by_batch)

        def push(batch: online.Batch) -> list[dict[str, Any]]:
            running.push(next(waiting))
            return running.advance(batch.until)

        found = online.replay(self.stream, push, lambda: running.advance(None))
        found.stats = {"steps": running.steps}
        return found

    @cached_property
    def expected(self) -> list[dict[str, Any]]:
        """The rows of a run over the whole stream."""
        return hamlet.run(self.workload, self.events, **self.options).rows()

    def answer(self) -> Answer:
        """The oracle on slices; all policies, online, against a run that shares nothing, at once."""
        answer, text = Answer(), self.workload.analysis.text
        said = answers.check_slices(
            self.workload, self._for_slices(), "slice", slices=SLICES, length=SLICE_EVENTS, **self.options
        )
        answer.checks.append(said)
        alone = hamlet.run(self.workload, self.events, sharing="never", **self.options).rows()
        for policy in self.policies:
            answers.compare(text, self.replayed(policy).rows, alone, (policy, "never, over the whole stream"))
        answer.checks.append(
            f"all {len(alone):,} rows of {', '.join(self.policies)} online equal those of never at once"
        )
        if self.baselines:
            answer.checks.append(f"the rows of {' and '.join(self.baselines)} are compared with ours at every repeat")
        minutes = (self.stream[-1].until - self.stream[0].until) / self.ticks / 60
        answer.digest = answers.digest(alone)
        answer.facts = {
            **answers.sizes(text, len(self.events), alone),
            "numbers": "float",
            "measured_events_per_min": round(len(self.events) / max(minutes, 1e-9)),
            **self.facts,
        }
        return answer

    def _for_slices(self) -> pa.Table:
        """The stream with the key in a column `slice` and the types in `type`, as slices are drawn by these."""
        table = self.events.append_column("slice", self.whole[self.key])
        return table if "type" in table.column_names else table.append_column("type", table["event"])

    def contenders(self) -> Mapping[str, Contender]:
        """Our policies and the baselines: timed over the whole stream at once, then replayed for the latency."""
        found: dict[str, Contender] = {}
        for policy in self.policies:
            name = "hamlet" if len(self.policies) == 1 else f"hamlet {policy}"
            found[name] = Contender(
                partial(self.at_once, policy), lambda result: result.rows, metrics=partial(self._counted, policy)
            )
        for name in self.baselines:
            found[name] = Contender(
                partial(self.baseline_at_once, name),
                lambda result: result.rows,
                metrics=partial(self._stepped, name),
                check=self._check,
            )
        return found

    def _check(self, result: online.Replay) -> None:
        answers.compare(self.workload.analysis.text, self.expected, result.rows, ("hamlet", "the baseline"))

    def _counted(self, policy: str, result: online.Replay) -> dict[str, float]:
        counted = {name: float(result.stats[name]) for name in COUNTED if name in result.stats}
        return self.replayed(policy).metrics() | counted

    def _stepped(self, name: str, result: online.Replay) -> dict[str, float]:
        found = self.baseline_replayed(name)
        answers.compare(self.workload.analysis.text, result.rows, found.rows, ("at once", "online"))
        steps = found.stats["steps"]
        return found.metrics() | {"steps": steps, "ns_per_step": 1e9 * found.busy_s / max(1, steps)}


# ------------------------------------------------------------------------------------------------- ridesharing


def rides(rate: int, queries: int, minutes: int = MINUTES, **others: Any) -> Subject:
    """Figures 8 and 9: no grouping, half of the events under the Kleene plus."""
    settings = ridesharing.Settings(events=rate * (minutes + 1), seed=1, rate=rate, reports=RIDES)
    events = ridesharing.generate(settings)
    events = events.filter(pa.array(events["time"].to_numpy() < ridesharing.START + 60 * minutes))
    around = [name for name in trips.TYPES if name != TRAVEL]
    text = workloads.around_one_kleene(TRAVEL, around, queries, "LOG2(COUNT(*))", WITHIN)
    facts = {"events_per_min": rate, "kleene_share": round(float(np.mean(events["event"].to_numpy() == TRAVEL)), 3)}
    baselines = others.pop("baselines", ("greta", "sharon"))
    return Replayed(text, events, "driver", baselines=baselines, facts=facts, type_column="event", **others)


def constructed(window_events: int) -> Subject:
    """Few events per window, ten queries: how far two-step approaches come."""
    events = ridesharing.generate(ridesharing.Settings(events=20_000, seed=1, rate=3_000, reports=RIDES))
    events = events.slice(10_000, 4 * window_events)
    times = ridesharing.START + np.arange(len(events)) * 60 // window_events
    events = events.set_column(0, "time", pa.array(times))
    around = [name for name in trips.TYPES if name != TRAVEL]
    text = workloads.around_one_kleene(TRAVEL, around, 10, "LOG2(COUNT(*))", "WITHIN 1 min")
    facts = {"window_events": window_events}
    baselines = ("two-step", "greta", "sharon")
    return Replayed(text, events, "driver", baselines=baselines, facts=facts, type_column="event")


# ------------------------------------------------------------------------------------------------- real streams


def sped_up(stream: str, factor: float, minutes: int, skip: float = 0.0) -> pa.Table:
    """The first minutes of a real stream whose times are divided by a factor.

    Parameters
    ----------
    stream : str
    factor : float
    minutes : int
        Of the faster stream.
    skip : float
        Share of the stream's events that are left out at its beginning.
    """
    table = pq.read_table(real_stream(stream))
    table = table.slice(int(skip * len(table)))
    times = table["time"].to_numpy()
    times = ((times - times[0]) / factor).astype(np.int64)
    kept = int(np.searchsorted(times, minutes * 60 * MICROSECONDS))
    return table.slice(0, kept).set_column(0, "time", pa.array(times[:kept]))


def taxis(factor: int, queries: int, minutes: int = MINUTES) -> Subject:
    """Figure 10: two types only, so queries differ in how long the trip before was; all zones together."""
    text = "\n".join(
        f"RETURN LOG2(COUNT(*)) PATTERN SEQ(Dropoff D, Pickup+) WHERE D.trip_distance > {number / 5} {WITHIN};"
        for number in range(queries)
    )
    events = sped_up("taxi", factor, minutes, skip=0.01)
    return _real(text, events, "zone", factor, minutes, policies=("dynamic",), baselines=("greta",))


def plugs(factor: int, queries: int, minutes: int = MINUTES, grouped: bool = True) -> Subject:
    """Figure 10: steady readings under the plus, per plug or of all plugs together."""
    around = ("Rise", "Fall", "SwitchOn", "SwitchOff", "First")
    returned, end = ("plug, LOG2(COUNT(*))", f"GROUP-BY plug {WITHIN}") if grouped else ("LOG2(COUNT(*))", WITHIN)
    text = workloads.around_one_kleene("Hold", around, queries, returned, end)
    return _real(text, sped_up("smarthome", factor, minutes), "plug", factor, minutes, baselines=("greta",))


def trades(rate: int, queries: int, minutes: int = MINUTES) -> Subject:
    """Figures 11 and 12: the second workload, other Kleene patterns, windows, aggregates, groups and predicates."""
    base = sped_up("stock", 1, 60, skip=0.02)
    factor = rate * 60 / len(base)
    events = sped_up("stock", factor, minutes, skip=0.02)
    text, policies = workloads.diverse_stock(queries), ("dynamic", "static", "never")
    return _real(text, events, "symbol", round(factor, 2), minutes, rate=rate, policies=policies)


def _real(
    text: str,
    events: pa.Table,
    key: str,
    factor: float,
    minutes: int,
    *,
    rate: int | None = None,
    **others: Any,
) -> Subject:
    """A sped-up stream on its curve; without a rate that was asked for, the rate is what the stream has."""
    per_minute = round(len(events) / minutes) if rate is None else rate
    facts = {"events_per_min": per_minute, "speed_up": factor, "window_events": round(5 * len(events) / minutes)}
    return Replayed(text, events, key, facts=facts, time_unit="us", **others)


# ------------------------------------------------------------------------------------------------- the cases


def _points(make: Callable[..., Subject], points: Mapping[str, tuple[Any, ...]]) -> Points:
    return {name: partial(make, *arguments) for name, arguments in points.items()}


def _grid(
    make: Callable[..., Subject], rates: tuple[int, ...], rate: int, sizes: tuple[int, ...], size: int, unit: str
) -> Points:
    """Rates with one number of queries, then numbers of queries at one rate."""
    names = {f"{each} {unit}, {size} queries": (each, size) for each in rates}
    names |= {f"{rate} {unit}, {each} queries": (rate, each) for each in sizes}
    return _points(make, names)


def _online(title: str, full: Points, quick: Points, seconds: tuple[float, float]) -> Case:
    """A curve on which some contenders may never end."""
    return Case(title, full, quick, seconds=seconds, apart=True, timeout_s=(600, 60))


PER_MINUTE = "events/min"
CASES: dict[str, Case] = {
    "ridesharing": _online(
        "figures 8 and 9: simulated rides online, 5 min windows, no grouping, half of the events under the plus, "
        "queries of different patterns with one sharable Kleene sub-pattern, float",
        _grid(rides, (10_000, 12_500, 15_000, 17_500, 20_000), 20_000, (5, 10, 15, 20), 25, PER_MINUTE),
        _points(rides, {"500 events/min, 5 queries": (500, 5), "1000 events/min, 5 queries": (1_000, 5)}),
        seconds=(1_500, 30),
    ),
    "two-step": Case(
        "figure 8, where trends are constructed: simulated rides, few events per window, 10 queries, float",
        _points(constructed, {f"{size} events per window": (size,) for size in (10, 20, 30, 40, 50, 60, 80)}),
        _points(constructed, {f"{size} events per window": (size,) for size in (10, 20)}),
        seconds=(500, 20),
        apart=True,
        timeout_s=(120, 20),
    ),
    "taxi-rates": _online(
        "figure 10: New York's green taxis sped up, 5 min windows, all zones together, queries with one sharable "
        "Kleene sub-pattern, float",
        _grid(taxis, (400, 600, 800, 1_000, 1_200), TAXI, (5, 10, 15, 20), 25, "times faster"),
        _points(taxis, {"100 times faster, 5 queries": (100, 5)}),
        seconds=(120, 10),
    ),
    "smarthome-rates": _online(
        "figure 10: household plugs sped up, 5 min windows per plug, queries with one sharable Kleene part, float",
        _grid(plugs, (10, 12, 14, 16, 18), HOME, (5, 10, 15, 20), 25, "times faster"),
        _points(plugs, {"8 times faster, 5 queries": (8, 5)}),
        seconds=(400, 10),
    ),
    "taxi-dense": _online(
        "figure 10 at the density of the authors' programme: New York's green taxis sped up, windows of 40,000 to "
        "100,000 events, all zones together, queries with one sharable Kleene sub-pattern, float",
        _grid(taxis, (2_700, 4_500, 6_400), DENSE_TAXI, (25, 50), 10, "times faster"),
        _points(taxis, {"100 times faster, 5 queries": (100, 5)}),
        seconds=(400, 10),
    ),
    "smarthome-dense": _online(
        "figure 10 at the density of the authors' programme: household plugs sped up, windows of 40,000 to 100,000 "
        "events, all plugs together, queries with one sharable Kleene part, float",
        _grid(partial(plugs, grouped=False), (8, 14, 20), DENSE_HOME, (25, 50, 75), 10, "times faster"),
        _points(partial(plugs, grouped=False), {"8 times faster, 5 queries": (8, 5)}),
        seconds=(600, 30),
    ),
    "stock-rates": Case(
        "figures 11 and 12: trades sped up, a diverse workload (Kleene patterns, windows of 5 to 15 min, aggregates, "
        "groups, predicates), dynamic against static and never, float",
        _grid(trades, (2_000, 2_500, 3_000, 3_500, 4_000), STOCK, (20, 40, 60, 80, 100), 50, PER_MINUTE),
        _points(trades, {"500 events/min, 20 queries": (500, 20)}),
        seconds=(600, 30),
        timeout_s=(1_200, 120),
    ),
}
