"""The batch job of queries that ask about the rows of other queries: a job per unit, one folder of results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hamlet.engine.stages import Stages
from hamlet.findings import Tally
from hamlet.output.place import staged
from hamlet.planner.workload import Workload
from hamlet.spark.counters import events_seen, stats_of, summed
from hamlet.spark.findings import of_layers, unit_notes, warnings_of
from hamlet.spark.input import Loaded
from hamlet.spark.layers import Done, layers, looked_at
from hamlet.spark.options import Batch
from hamlet.spark.output import written
from hamlet.spark.session import watched

if TYPE_CHECKING:
    from hamlet.spark.report import JobReport

_REASON = "queries ask about the rows of other queries"
NO_SEMIJOIN = f"--semijoin on has no effect: no events are left behind before the shuffle, since {_REASON}"


def submit_layers(
    workload: Workload,
    read: Loaded,
    options: Batch,
    place: tuple[Path, str],
    traced: tuple[Path, str] | None,
    about: JobReport | None,
    stages: Stages,
) -> dict[str, Any]:
    """Compute and write all units.

    Parameters
    ----------
    workload : Workload
    read : Loaded
    options : Batch
    place : (pathlib.Path, str)
        Where the rows go, and as the user wrote it.
    traced : (pathlib.Path, str), optional
        Where the records of bursts go: a folder per unit.
    about : JobReport, optional
        Writes a page.
    stages : Stages

    Returns
    -------
    dict
        As of `hamlet.spark.submit`; the counters are those of all units together, ``slices`` those of the first one.
    """
    began = time.perf_counter() - sum(stages.seconds.values())
    context = read.events.frame.sparkSession.sparkContext
    stats = stats_of(context)
    where, progress = options.where, options.progress
    frame = looked_at(workload, read.events, options.run, where, stats, watch=about is not None)
    if where is not None or about is not None:
        frame = frame.localCheckpoint(eager=True)  # each event is looked at once, however many units read it
    with contextlib.ExitStack() as held:
        records = None if traced is None else held.enter_context(staged(*traced))
        done: list[Done] = []
        counts: dict[str, Any] = {"rows": 0, "infinite_values": 0, "notes": []}
        tallies: dict[str, Tally] = {}
        with (
            stages.measured("compute"),
            staged(*place) as fresh,
            watched(context, "counting trends", progress),
        ):
            for each in layers(
                workload, frame, options.run, options.partitions, balance=options.balance, traced=records,
                units=read.events.schema,
            ):  # fmt: skip
                files = written(each.job, each.rows, each.rows.count(), fresh, options.output_format)
                tallies |= dict(zip(each.job.names, files.pop("tallies"), strict=True))
                counts = {name: counts[name] + files[name] for name in counts}
                done.append(each)
        for unfinished in records.glob("*/.part-*") if records is not None else ():  # of a task that was killed
            unfinished.unlink()
        seen = read.rows if where is None else events_seen(stats.value)
        used = {"used": False, "reason": _REASON}
        noted, _ = of_layers(done, workload.names)
        counts["notes"] = unit_notes(done[0].job.schema, noted) + counts["notes"]
        if options.semijoin == "on":
            counts["notes"].insert(0, NO_SEMIJOIN)
        in_order = [tallies[name] for name in workload.names]
        said = warnings_of(workload, done[0].job, noted, in_order, read.schema, seen)
        found = {**_together(done), **noted.paths, "events": seen, **counts, "warnings": [*read.notes, *said]}
        found |= {"products": used, "stages": stages.seconds}
        if about is not None:
            with watched(context, "drawing", progress):
                about.write_layers(done, stats.value, found, began)
    return found


def _together(done: Sequence[Done]) -> dict[str, Any]:
    """The counters of all units together."""
    found: dict[str, Any] = {}
    for each in done:
        for name, count in summed(each.stats.value, each.job.partitions).items():
            if name == "slices":
                found.setdefault(name, count)
            elif name in ("operators", "features"):
                continue  # added up beside, with what else tasks have noted
            elif name in ("largest_count_bits", "matched_events"):
                found[name] = max(found.get(name, 0), count)
            else:
                found[name] = found.get(name, 0) + count
    return found
