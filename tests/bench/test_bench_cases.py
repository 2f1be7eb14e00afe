"""Every benchmark case that needs neither Spark nor Flink, with tiny sizes: wrong answers fail, times do not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest

import hamlet
from bench import live, online, streams, worker, workloads
from bench.answers import WrongAnswer
from bench.cases import CASES, curves, jobs, limits, neighbours, peers, ranges, row_patterns, service, sharing
from bench.peers import spark_programme
from bench.subject import Subject

SUBJECTS: dict[str, Callable[[], Subject]] = {
    "one-query-many-groups": lambda: limits.GROUPS.other("20 keys", keys=20).subject(
        3_000, text=limits.ONE.format(within="WITHIN 10 s")
    ),
    "sliding-exact": lambda: limits._bursts(
        2_000, workloads.long_bursts_fifty("WITHIN 10 s SLIDE 1 s"), pane_s=1, **limits.EXACT
    ),
    "neighbours-policies": lambda: neighbours.POINTS["50 keys, exact"].subject(20_000, neighbours.Neighbour),
    "one-window": lambda: limits.OneWindow(2_000),
    "ridesharing": lambda: curves.rides(100, 5),
    "two-step": lambda: curves.constructed(12),
    "growth": lambda: sharing.growing(30, 2_000),
    "sharing-map": lambda: sharing.mapped("index", 20, 5, 100),
    "latency": lambda: service.Latency(5, 10, 2),
    "duckdb-recurrence": lambda: peers.closed(20_000),
    "duckdb-recursion": lambda: peers.tiny(10),
}


def shaped(shape: limits.Shape) -> Subject:
    """A case beside DuckDB with windows so short that few events fill some."""
    sliding = shape.within == limits.SLIDING
    details = {**shape.details, "keys": min(20, shape.details.get("keys", 10))}
    small = replace(shape, within="WITHIN 10 s SLIDE 2 s" if sliding else "WITHIN 10 s", details=details)
    return small.subject(3_000)


OTHER_SIZES = ("-small", "-few-keys", "-many-keys")  # of cases that are small here in any case
SUBJECTS |= {name: partial(shaped, shape) for name, shape in limits.SHAPES.items() if not name.endswith(OTHER_SIZES)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_case_answers_and_is_measured(name: str) -> None:
    assert name in CASES
    subject = SUBJECTS[name]()
    answer = subject.answer()
    assert answer.checks
    assert {"events", "queries", "rows", "largest_count_bits"} <= set(answer.facts)
    assert answer.facts["rows"] > 0
    measured = worker.measure(subject.contenders(), 1, answer.digest)
    assert all(len(values["wall_s"]) == 1 for values in measured.values())
    assert all(values["same_question"] or values["question"] for values in measured.values())


def test_the_parts_of_a_run_are_named_apart() -> None:
    """The fixed costs are those of a run without events; the other parts are no more than the run itself."""
    subject = limits.GROUPS.subject(20_000)
    measured = worker.measure(subject.contenders(), 3, subject.answer().digest)["hamlet"]
    parts = measured["metrics"]
    assert list(parts) == ["parse_s", "plan_s", "columns_s", "kernel_s", "deliver_s"]
    assert all(len(each) == 3 and min(each) > 0 for each in parts.values())
    inside = zip(parts["columns_s"], parts["kernel_s"], parts["deliver_s"], strict=True)
    assert all(sum(each) <= whole for each, whole in zip(inside, measured["wall_s"], strict=True))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("stream", "make"),
    [("taxi_file", lambda: curves.taxis(400, 3)), ("stock_file", lambda: curves.trades(40, 12))],
    ids=["taxi", "stock"],
)
def test_the_curves_over_real_streams(stream: str, make: Callable[[], Subject], request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(stream)  # skips where it is not there
    subject = make()
    answer = subject.answer()
    measured = worker.measure(subject.contenders(), 1, answer.digest)
    assert all("latency_s" in values["metrics"] for values in measured.values())


@pytest.mark.usefixtures("stock_file")
def test_the_policies_over_a_real_stream() -> None:
    subject = sharing.stock("stock50", "float", 900_000, 904_000)
    answer = subject.answer()
    measured = worker.measure(subject.contenders(), 1, answer.digest)
    computed = {name: values["metrics"]["coefficient_computations"] for name, values in measured.items()}
    assert computed["hamlet static"] < computed["hamlet dynamic"] <= computed["hamlet never"]


@pytest.mark.parametrize("window", [(60_000, 60_000), (60_000, 20_000)])
def test_oracle_the_hand_written_programme_counts_what_we_count(window: tuple[int, int]) -> None:
    within, slide = window
    events = streams.long_bursts(4_000, keys=1)
    events = events.set_column(0, "time", [range(0, 400_000, 100)])
    counted = spark_programme.stepped(jobs.fifty(), within, slide)(events.select(["time", "type", "key"]))
    ours = hamlet.run(
        hamlet.Workload.parse(
            "".join(
                f"RETURN key, COUNT(*) PATTERN {pattern} GROUP-BY key WITHIN {within} ms SLIDE {slide} ms;\n"
                for *_, pattern in workloads.long_bursts_patterns()
            )
        ),
        events,
        time_unit="ms",
    ).rows()
    expected = {(row["query"], row["window_start"]): row["count"] for row in ours}
    found = {(r["query"], r["window_start"]): int(r["count"], 16) for r in counted.to_pylist()}
    assert found == expected
    assert max(found.values()).bit_length() > 200


def test_every_window_over_a_border_of_time_ranges_is_compared_with_exact_numbers() -> None:
    subject = ranges.TimeRanges(20_000)
    events = pq.read_table(subject.input)
    runs = subject.key_runs(events, 4)
    assert len(runs) == 9
    assert {len(piece) for *_, piece in runs} < set(range(50, 250))
    for border in (0, 5_000, 10_000, 15_000, 19_999):
        time = events["time"][border].as_py()
        over = [row for row in subject.expected if row["window_start"] <= time < row["window_end"]]
        assert over
        assert all(any(ranges._within(row, begin, end) for begin, end, _ in runs) for row in over)


def test_a_wrong_number_of_a_job_over_time_ranges_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by another process than ours: here our own rows, one of them changed."""
    subject = ranges.TimeRanges(2_000)
    written = [dict(row) for row in subject.expected]
    monkeypatch.setattr(subject, "rows", lambda found: written)
    subject.check((subject.folder, {}, 0))
    written[3]["log2_count"] += 1e-6
    with pytest.raises(WrongAnswer, match="log2_count"):
        subject.check((subject.folder, {}, 0))


def test_a_wrong_count_of_ours_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = peers.tiny(10)
    right = subject.run

    class Off:
        def rows(self) -> list[dict[str, Any]]:
            return [row | {"count": row["count"] + 1} for row in right().rows()]

    monkeypatch.setattr(subject, "run", Off)
    with pytest.raises(WrongAnswer, match="duckdb"):
        subject.answer()


def test_a_replay_waits_for_events_and_not_for_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that comes while the one before is still counted has to wait; its latency has the wait in it."""
    clock = iter([0.0, 5.0, 10.0, 10.5, 20.0, 20.25, 30.0, 30.0])
    monkeypatch.setattr(online.time, "perf_counter", lambda: next(clock))
    stream = [online.Batch(0, 1, 1, 1.0), online.Batch(1, 2, 2, 2.0), online.Batch(2, 3, 9, 9.0)]
    found = online.replay(stream, lambda _: [{}], list)
    # 1 + 5 = 6; the second waits from 2 to 6 and takes 0.5; the third comes at 9 and takes 0.25
    assert found.latency_s == [5.0, 4.5, 0.25]
    assert found.busy_s == 5.75


def test_workloads_are_distinct_queries() -> None:
    for text, count in (
        (workloads.many_groups_fifty("WITHIN 1 s"), 50),
        (workloads.five_shapes_fifty("WITHIN 1 s"), 50),
        (workloads.long_bursts_fifty("WITHIN 1 s"), 50),
        (workloads.around_one_kleene("K", [f"T{n}" for n in range(19)], 1_000, "COUNT(*)", "WITHIN 1 s"), 1_000),
        (workloads.diverse_stock(100).replace("  ", " "), 100),
    ):
        lines = text.strip().splitlines()
        assert len(set(lines)) == len(lines) == count
        assert len(hamlet.Workload.parse(text).names) == count


@pytest.mark.parametrize("lengths", [(streams.SHORTEST, streams.LONGEST), (2, 12)])
def test_streams_have_the_bursts_that_they_promise(lengths: tuple[int, int]) -> None:
    events = streams.long_bursts(20_000, keys=2, lengths=lengths).to_pydict()
    runs: list[int] = []
    last = None
    for type, key in zip(events["type"], events["key"], strict=True):
        if key == 0:
            runs = [*runs[:-1], runs[-1] + 1] if type == last else [*runs, 1]
            last = type
    assert len(runs) > 10
    assert all(lengths[0] <= length <= lengths[1] for length in runs[:-1])
    assert len(set(events["time"])) == len(events["time"])


@pytest.mark.parametrize(
    "subject",
    [
        lambda: row_patterns.VShape(2_000, 40, 3),
        lambda: row_patterns.Failing("(a+)+ b", 2_000),
        *row_patterns._sizes(1_000).values(),
    ],
)
def test_row_patterns_answer_and_run(subject: Callable[[], Subject]) -> None:
    made = subject()
    assert made.answer().checks
    for contender in made.contenders().values():
        contender.run()


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(("name", "form"), [("queries", "csv"), ("star", "arrow")])
def test_latency_from_socket_to_socket(monkeypatch: pytest.MonkeyPatch, name: str, form: str) -> None:
    monkeypatch.setattr(live, "QUIET", 0.5)
    found = live.measured(live.Subject(name, form), 20_000, 2.3 if name == "queries" else 10.5)
    assert found["rows"] > 0
    assert found["p50_ms"] < 2000
