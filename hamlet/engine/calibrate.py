"""What the operations of the benefit model cost on this machine: the engine itself is timed, on streams made for it.

Every rung has a few cases: a workload of k queries that could share one Kleene sub-pattern, a stream, and how often
each price of the model comes in. Times of all cases are one linear system; what has the same price whatever is shared
(reading an event, ending a burst) is fitted besides and dropped. A time is the least of several that are interleaved
with those of the other cases, so that what else the machine does falls on all alike.

What a query of a rung is:

burst-grained
    ``SEQ(A, B+)``: bursts as closed forms, with `sharing` static and never; all queries accept the same events, or
    several classes of them, whose coefficients are then joined. A snapshot costs nothing more, for every query takes
    its own whether it shares or not.
state-grained
    ``SEQ(A, B x, B y+)``: what flows in changes with every event, so the query takes them one by one. Sharing it costs
    what sharing a burst costs.
indexed, event-grained
    ``B+`` with an adjacent comparison, and with an adjacent predicate that only a scan answers. The coefficients of an
    event are looked up as one query's sums are, and so are the values of a snapshot.

Source: HAMLET (SIGMOD'21) §4.1, Eq. 7.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.executor import Executor, executor_of
from hamlet.engine.options import Options
from hamlet.errors import CalibrationWarning
from hamlet.input.columns import StringPool
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.planner.workload import Workload
from optimizer.benefit import MEASURED, Costs

REPEATS = 5
_IN_A_ROW = 3  # runs of a case, so that one of them at least finds its data in the caches
Floats = npt.NDArray[np.float64]
_EVENTS = 3_000  # of a stream, about
_QUERIES = (1, 4, 24)
_BURSTS = (1, 4, 16, 64)
_CLASSES = 4  # of events that queries with different local predicates tell apart
_STORED = (256, 1024)  # events that a scan looks back at
_SEARCHED = (512, 4096)  # events that a search looks back at


@dataclass(frozen=True)
class Calibration:
    """Measured prices.

    Attributes
    ----------
    costs : mapping of str to Costs
        By rung; nanoseconds.
    misfit : mapping of str to float
        By rung: the median of abs(fitted - measured) / measured over its cases.
    """

    costs: Mapping[str, Costs]
    misfit: Mapping[str, float]


@dataclass(frozen=True)
class Case:
    """A workload, a stream, and how often each price comes in.

    Attributes
    ----------
    workload : Workload
    events : pyarrow.RecordBatch
    sharing : str
        The option of that name.
    counts : mapping of str to float
        Names of prices, those that are dropped too.
    first : int
        Events before the time is taken, in which types, queries and memory are new.
    """

    workload: Workload
    events: pa.RecordBatch
    sharing: str
    counts: Mapping[str, float]
    first: int = max(_QUERIES)


def calibrate(
    progress: Callable[[int, int], None] | None = None, *, repeats: int = REPEATS, events: int = _EVENTS
) -> Calibration:
    """Measure all prices; takes some seconds, in which the machine should do nothing else.

    Parameters
    ----------
    progress : callable, optional
        Called with the number of timed runs that are done and of all.
    repeats : int
        Runs of each case.
    events : int
        Length of the streams of bursts.
    """
    cases = {
        "burst-grained": list(_burst_cases(events)),
        "state-grained": list(_step_cases(events)),
        "indexed": [_looking_back("v < NEXT(B).v", np.log2, stored, k) for stored in _SEARCHED for k in (1, 4)],
        "event-grained": [
            _looking_back("v + NEXT(B).v < 600", np.asarray, stored, k) for stored in _STORED for k in (1, 4)
        ],
    }
    seconds = timed([case for some in cases.values() for case in some], repeats, progress)
    prices: dict[str, dict[str, float]] = {}
    misfit: dict[str, float] = {}
    for rung, some in cases.items():
        prices[rung], misfit[rung] = fitted(some, seconds[: len(some)])
        del seconds[: len(some)]
    return Calibration(_costs(prices), misfit)


def _costs(prices: Mapping[str, Mapping[str, float]]) -> dict[str, Costs]:
    """The fitted prices of all rungs, and for what a rung does not measure those of bursts or of its own events."""
    burst = prices["burst-grained"]
    shared = Costs(
        "one",
        coefficient=burst["coefficient"],
        application=burst["application"],
        snapshot=0.0,
        event=burst["event"],
        burst=burst["burst"],
        join=burst["join"],
    )
    step = prices["state-grained"]["event"]
    found = {"burst-grained": shared, "state-grained": replace(shared, event=step, burst=0.0)}
    for rung in ("indexed", "event-grained"):
        event = prices[rung]["event"]
        found[rung] = Costs(MEASURED[rung].reads, event, burst["application"], event, event, spread=event)
    return found


# ----------------------------------------------------------------------------------------------------------- cases


def _burst_cases(events: int) -> list[Case]:
    found = []
    for length in _BURSTS:
        bursts, first = max(4, events // (length + 1)), max(_QUERIES) + length + 1
        stream = _stream(["B"] * length + ["C"], bursts)
        for k in _QUERIES:
            counts = {"common run": 1, "common query": k, "common event": bursts * length, "common burst": bursts}
            workload = _workload(k, "SEQ(A{}, B+)", stream)
            shared = {"coefficient": bursts * length, "application": bursts * k, "join": bursts}
            alone = {"event": bursts * length * k, "burst": bursts * k}
            found += [
                Case(workload, stream, "static", counts | shared),
                Case(workload, stream, "never", counts | alone),
            ]
            if length >= _CLASSES <= k:  # query j accepts 1 + j % _CLASSES classes, the optimizer's s_c in all
                differ = {"join": bursts * sum(range(1, _CLASSES + 1)), "sorted event": bursts * length}
                workload = _workload(k, "SEQ(A{}, B+)", stream, "B.w <= {class_}")
                found.append(Case(workload, stream, "static", counts | shared | differ, first))
    return found


def _step_cases(events: int) -> list[Case]:
    stream = _stream(["B"], events)
    return [
        Case(
            _workload(k, "SEQ(A{}, B x, B y+)", stream, variable="y"),
            stream,
            "never",
            {"common run": 1, "common query": k, "common event": events, "event": events * k},
        )
        for k in _QUERIES
    ]


def _looking_back(predicate: str, reads: Callable[[Floats], Floats], stored: int, k: int) -> Case:
    """Queries that compare every event with those before it; `reads` is the model's reads(n), of 1 + n."""
    stream = _stream(["B"], stored)
    read = float(reads(np.arange(1, stored + 1, dtype=np.float64)).sum())
    workload = _workload(k, "SEQ(A{}, B+)", stream, f"B.{predicate}")
    return Case(
        workload, stream, "never", {"common run": 1, "common query": k, "common event": stored, "event": k * read}
    )


def _workload(k: int, pattern: str, stream: pa.RecordBatch, where: str = "", variable: str = "B") -> Workload:
    """k queries that differ in what comes first, one window over all; a last one makes every C end a burst of B."""
    window = f"WITHIN {stream.num_rows + 1} s"
    queries = [
        f"RETURN COUNT(*), SUM({variable}.v) PATTERN {pattern.format(number)} "
        f"{f'WHERE {where.format(class_=number % _CLASSES)}' if where else ''} {window};"
        for number in range(k)
    ]
    if "C" in stream.column("type").dictionary.to_pylist():
        queries.append(f"RETURN COUNT(*) PATTERN SEQ(Z, B+, C) {window};")
    return Workload.parse("\n".join(queries))


def _stream(unit: Sequence[str], times: int) -> pa.RecordBatch:
    """What begins the trends of all queries, then the same types once and so many times; w is the class of an event."""
    begin = [f"A{number}" for number in range(max(_QUERIES))]
    types = [*begin, *list(unit) * (times + 1)]
    values = np.random.default_rng(7).integers(0, 1000, len(types))
    classes = np.concatenate([np.zeros(len(begin)), np.tile(np.arange(len(unit)) % _CLASSES, times + 1)]).astype(
        np.int64
    )
    columns = {"time": np.arange(len(types)), "type": pa.array(types).dictionary_encode(), "v": values, "w": classes}
    return pa.record_batch(columns)


# ---------------------------------------------------------------------------------------------- times and the fit


def timed(cases: Sequence[Case], repeats: int, progress: Callable[[int, int], None] | None = None) -> list[float]:
    """Nanoseconds that each case takes; the least of some runs, all cases once before any runs again."""
    least = [float("inf")] * len(cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # of what this calibration is about to replace
        _time_all(cases, repeats, least, progress)
    return least


def _time_all(
    cases: Sequence[Case], repeats: int, least: list[float], progress: Callable[[int, int], None] | None
) -> None:
    for run in range(repeats):
        for place, case in enumerate(cases):
            for _ in range(_IN_A_ROW):
                executor = _executor(case)
                executor.process(case.events.slice(0, case.first))
                rest = case.events.slice(case.first)
                begin = time.perf_counter_ns()
                executor.process(rest)
                least[place] = min(least[place], float(time.perf_counter_ns() - begin))
            if progress is not None:
                progress(run * len(cases) + place + 1, repeats * len(cases))


def _executor(case: Case) -> Executor:
    options = Options(sharing=case.sharing, numbers="float")
    key = SortKey(options.time_column, options.order_column)
    schema = schema_of(case.events.schema, key, options.type_column, options.time_unit, closed=True)
    return executor_of(case.workload, schema, StringPool(), options)


def fitted(cases: Sequence[Case], times: Sequence[float]) -> tuple[dict[str, float], float]:
    """The prices, none of them negative, that explain the times best in proportion; and the median misfit.

    Source: Lawson and Hanson 1974 (least squares without negative values), here by leaving out the most negative one.
    """
    names = list(dict.fromkeys(name for case in cases for name in case.counts))
    matrix = np.array([[case.counts.get(name, 0.0) for name in names] for case in cases]) / np.array(times)[:, None]
    kept = list(range(len(names)))
    while True:
        solution = np.linalg.lstsq(matrix[:, kept], np.ones(len(cases)), rcond=None)[0]
        if (solution >= 0).all():
            break
        del kept[int(solution.argmin())]
    prices = dict.fromkeys(names, 0.0) | {
        names[place]: float(price) for place, price in zip(kept, solution, strict=True)
    }
    return prices, float(np.median(np.abs(matrix[:, kept] @ solution - 1)))
