"""What the estimates of `hamlet.parallel.time.ranges` rest on: ``python -m bench.range_costs`` measures its constants.

Whole jobs run over two sizes of one stream (three queries, COUNT, tumbling windows, float); the slope of the processor
time of all processes over the events is what an event costs, whatever else the machine does. The first rounds, in which
the JVM compiles, do not count; of the others the least is taken. What a task does by itself is timed without Spark.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench.cases.ranges import TimeRanges
from bench.workloads import RIDES
from hamlet.engine.options import options_of
from hamlet.parallel.routing.routes import routes
from hamlet.parallel.time.probes import coordinates_of
from hamlet.parallel.time.ranges import Cut

SIZES = (1_000_000, 4_000_000)
ROUNDS, WARM = 6, 3
OPTIONS: dict[str, Any] = {"numbers": "float", "time_unit": "ms"}


def workload(groups: int, window: str) -> hamlet.Workload:
    """The queries over rides."""
    returned, by = ("district, ", "GROUP-BY district ") if groups else ("", "")
    return hamlet.Workload.parse("".join(f"RETURN {returned}COUNT(*) PATTERN {each} {by}{window};\n" for each in RIDES))


def processor_seconds() -> float:
    """Of this process and all that it has started, the JVM and its workers included (Linux)."""
    used: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            used[int(entry.name)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    waiting, total = [os.getpid()], 0
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def in_task(events: int, groups: int, window: str) -> tuple[float, int]:
    """Seconds to make the matrices of two ranges and to fold them; their entries, as they are estimated."""
    from hamlet.spark import chunk_tasks
    from hamlet.spark.parts import parts_of, read_part, row_groups
    from hamlet.spark.tasks import Shipment, columns_of

    stream, asked = TimeRanges(events, groups), workload(groups, window)
    schema = pq.read_schema(stream.input)
    text = asked.analysis.text
    shipment = Shipment(text.text, text.source, options_of(OPTIONS), schema)
    known = routes(asked, shipment.compiled())
    columns = pa.schema([schema.field(name) for name in columns_of(known, shipment.schema())])
    parts = parts_of(row_groups([str(stream.input)], "time"), 2)
    cut = Cut((), -1, ordered=True, ranges=2, partitions=max(1, groups))  # both ranges are probed
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        found = [
            each
            for part in parts
            for each in chunk_tasks.ChunkTask(shipment, known, cut).products(read_part(part, columns))
        ]
        maps = pa.Table.from_batches([each for each in found if each.column("query")[0].as_py() < 0])
        met = maps.sort_by([(name, "ascending") for name in ("query", "group", "window")]).combine_chunks()
        list(chunk_tasks.Sender(shipment).folded(iter(met.to_batches())))
        taken.append(time.process_time() - began)
    of = [each for known_class in shipment.compiled().classes for each in coordinates_of(known_class)]
    size = sum(each.size**2 + 2 * -(-each.window[0] // each.window[1]) * each.size for each in of)
    return min(taken), 2 * max(1, groups) * size


def jobs() -> dict[str, tuple[float, float]]:
    """Processor seconds per event, and seconds that a job takes however few there are, by the way of the job."""
    import hamlet.spark

    streams = {events: TimeRanges(events) for events in SIZES}
    asked = workload(0, "WITHIN 5 min")
    spark = streams[SIZES[0]].spark

    def submit(events: int, products: Literal["auto", "always", "never"]) -> object:
        stream = streams[events]
        output = str(stream.folder / products)
        return hamlet.spark.submit(asked, str(stream.input), output, overwrite=True, products=products, **OPTIONS)

    def frame(events: int, products: Literal["auto", "always", "never"]) -> object:
        read = spark.read.parquet(str(streams[events].input))
        return hamlet.spark.run(asked, read, products=products, **OPTIONS).count()

    ways: dict[str, Callable[[int], object]] = {
        f"{name}, {products}": lambda events, run=run, products=products: run(events, products)  # type: ignore[misc]
        for name, run in (("file", submit), ("frame", frame))
        for products in ("never", "always")
    }
    least: dict[tuple[str, int], tuple[float, float]] = {}
    for number in range(ROUNDS):
        for name, way in ways.items():
            for events in SIZES:
                processor, began = processor_seconds(), time.perf_counter()
                way(events)
                now = (processor_seconds() - processor, time.perf_counter() - began)
                if number >= WARM:
                    before = least.get((name, events), now)
                    least[name, events] = (min(before[0], now[0]), min(before[1], now[1]))
    few, many = SIZES
    found = {}
    for name in ways:
        per_event, per_second = (
            (least[name, many][place] - least[name, few][place]) / (many - few) for place in (0, 1)
        )
        found[name] = (per_event, least[name, few][1] - per_second * few)
    return found


def main() -> None:
    """Print the constants, in nanoseconds."""
    queries, events = len(RIDES), SIZES[0]
    plain, _ = in_task(events, 0, "WITHIN 5 min")
    double, _ = in_task(2 * events, 0, "WITHIN 5 min")
    probed, _ = in_task(2 * events, 0, "WITHIN 10 days")
    event = (double - plain) / events / queries
    print(f"EVENT {event * 1e9:.0f}, a third of READ included")
    print(f"PROBED {1 + (probed - double) / (2 * events * queries * event):.2f} of EVENT")
    (few, entries), (many, more) = (in_task(events, groups, "WITHIN 5 min SLIDE 1 min") for groups in (100, 1_000))
    print(f"ENTRY {(many - few) / (more - entries) * 1e9:.0f}")
    found = jobs()
    for name, (per_event, fixed) in found.items():
        print(f"{name}: {per_event * 1e9:.0f} per event, engine included; {fixed * 1e9:.2g} whatever there is")


if __name__ == "__main__":
    main()
