"""`max_memory`: what is counted, which runs are stopped, what the error says, and that nothing is left behind."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hamlet
from hamlet.cli import cli, main
from hamlet.engine.executor import executor_of
from hamlet.engine.options import Options
from hamlet.errors import MemoryLimitError, OptionError
from hamlet.input.columns import StringPool
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.memory.budget import Budget
from hamlet.runtime.sizes import bytes_of, size_text
from tests.comparison import difference
from tests.engine.memory_growth import CASES

STATES = "RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 1000 s SLIDE 500 s"
SEARCH = "rising: RETURN COUNT(*) PATTERN B+ WHERE [k, s] AND B.v < NEXT(B).v WITHIN 10 h"
SCAN = "odd: RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] AND B.v * NEXT(B).v > 90 WITHIN 10 h"
GUARDED = "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B+) WHERE [k] AND C.v < NEXT(D).v WITHIN 10 h SLIDE 1 h"
PAIRS = "both: RETURN COUNT(*) PATTERN SEQ(A, B+) AND B+ WHERE [k] AND B.v <> NEXT(B).v WITHIN 10 h"


def stream(events: int, groups: int = 3, seed: int = 1) -> pa.Table:
    """One event a second; three of four belong to group 0."""
    random = np.random.default_rng(seed)
    keys = np.where(random.random(events) < 0.75, 0, random.integers(0, groups, events))
    types = np.array(list("ABCD"))[random.integers(0, 4, events)]
    keys[:4], types[:4] = 0, list("ABCD")  # a batch is processed group by group, in the order of first events
    return pa.table(
        {
            "time": np.arange(events),
            "type": types,
            "k": keys,
            "s": np.where(keys == 0, "O'Hare", "x"),
            "v": random.integers(0, 10, events),
        }
    )


def refusal(text: str, events: Any, **options: Any) -> str:
    with pytest.raises(MemoryLimitError) as error:
        hamlet.run(hamlet.Workload.parse(text), events, **options)
    return str(error.value)


def push_all(engine: hamlet.Engine, events: pa.Table, size: int) -> None:
    for start in range(0, len(events), size):
        engine.push(events.slice(start, size))


@pytest.mark.parametrize("threads", [1, 3])
def test_states_do_not_grow_with_the_events(threads: int) -> None:
    workload, events = hamlet.Workload.parse(STATES), stream(50_000)
    free = hamlet.run(workload, events, numbers="float", threads=threads)
    limited = hamlet.run(workload, events, numbers="float", threads=threads, max_memory="64 KiB")
    assert difference(limited.rows(), free.rows()) is None  # smaller batches, and so sums in another order
    assert len(limited) > 100


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("text", "query", "group"),
    [
        (SEARCH, "rising", 'k = 0, s = "O\'Hare"'),
        (SCAN, "odd", "k = 0"),
        (GUARDED, "q1", "k = 0"),
        (PAIRS, "both", "k = 0"),
    ],
)
def test_kept_events_are_stopped(text: str, query: str, group: str, threads: int, numbers: str) -> None:
    said = refusal(text, stream(36_000), numbers=numbers, threads=threads, max_memory="300 KiB")
    assert "more memory than its limit, 300 KiB" in said
    assert f"query '{query}' holds the most" in said
    group = group if threads == 1 else "k = "  # of several threads any may come first
    assert f"for the group {group}" in said
    assert "hint: shorten its WITHIN" in said
    assert "its adjacent condition keeps" in said
    assert ("numbers=float" in said) == (numbers == "exact")


def test_one_batch_does_not_pass_the_limit() -> None:
    workload = hamlet.Workload.parse(SEARCH)
    types = {"k": AttributeType.INT, "s": AttributeType.STRING, "v": AttributeType.INT, "type": AttributeType.STRING}
    schema = Schema({"time": AttributeType.INT, **types}, Clock("time", "s", pa.int64()))
    budget = Budget(200_000)
    executor = executor_of(workload, schema, StringPool(), Options(), budget)
    with pytest.raises(MemoryLimitError):
        executor.process(stream(65_536).combine_chunks().to_batches()[0])
    assert 100_000 < budget.held <= 200_000
    del executor
    gc.collect()
    assert budget.held == 0


def test_wide_counts_are_stopped() -> None:
    events = {"time": range(20_000), "type": ["A", *["B"] * 19_999]}
    said = refusal("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 h", events, max_memory="2 kB")
    assert "query 'q1' holds the most" in said
    assert "group" not in said.splitlines()[0]
    assert "count with numbers=float" in said
    assert "adjacent" not in said


def test_the_heaviest_of_several_queries_and_groups_is_named() -> None:
    light = "light: RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [k] WITHIN 10 h"
    events = stream(9_000, groups=200)
    engine = hamlet.Engine(hamlet.Workload.parse(f"{light}; {SCAN}"), numbers="float", max_memory="300 KiB")
    with pytest.raises(MemoryLimitError, match=r"query 'odd' holds .*, in 1\d\d groups: .* for the group k = 0"):
        push_all(engine, events, 100)


def test_many_groups_are_counted() -> None:
    events = {"time": np.zeros(100_000, np.int64), "type": np.full(100_000, "A"), "k": np.arange(100_000)}
    said = refusal("RETURN k, COUNT(*) PATTERN A GROUP-BY k WITHIN 10 s", events, max_memory="12 MB")
    assert "values of group attributes take" in said


@pytest.mark.parametrize(
    "text",
    [
        "RETURN COUNT(DISTINCT A.k) PATTERN A WITHIN 10 s",
        "RETURN COUNT(*) PATTERN SEQ(A x, A y) WHERE x.k < NEXT(y).k WITHIN 10 s",
    ],
)
def test_texts_are_counted(text: str) -> None:
    engine = hamlet.Engine(hamlet.Workload.parse(text), max_memory="2 MB")
    times = range(0, 400_000, 10)  # windows close, and what they hold
    events = pa.table({"time": times, "type": ["A"] * len(times), "k": [f"{time:090}" for time in times]})
    with pytest.raises(MemoryLimitError, match="texts of conditions and distinct counts take"):
        push_all(engine, events, 1000)


def test_events_held_back_are_counted() -> None:
    workload = hamlet.Workload.parse(STATES)
    for size in (1, 1000):
        engine = hamlet.Engine(workload, lateness=10**6, max_memory="1 MB")
        events = stream(30_000)
        with pytest.raises(MemoryLimitError, match="events held back for earlier ones take"):
            push_all(engine, events, size)
        with pytest.raises(hamlet.HamletError, match="cannot go on after an error"):
            engine.push(events.slice(0, 1))


def test_events_of_several_groups_are_counted() -> None:
    text = "EVENT A (v INT); EVENT B (k INT, v INT); q1: RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE [k] WITHIN 10 h"
    events = stream(36_000)
    events = events.set_column(1, "type", pa.array(["A"] * 36_000))
    engine = hamlet.Engine(hamlet.Workload.parse(text), max_memory="200 KiB")
    with pytest.raises(MemoryLimitError, match="events that several groups get take"):
        push_all(engine, events, 1000)


def test_an_engine_that_learns_types_counts_on() -> None:
    """A column turns from INT into DOUBLE: a new executor takes the states over, and nothing is counted twice."""
    workload = hamlet.Workload.parse("RETURN COUNT(*), SUM(B.v) PATTERN B+ WHERE B.v < NEXT(B).v WITHIN 10 h")
    engine = hamlet.Engine(workload, max_memory="40 kB", numbers="float")
    for time in range(100):
        engine.push([{"time": time, "type": "B", "v": time if time < 50 else time + 0.5}])
    with pytest.raises(MemoryLimitError, match="query 'q1'"):
        push_all(engine, pa.table({"time": range(100, 2000), "type": ["B"] * 1900, "v": [0.5] * 1900}), 100)


# ------------------------------------------------------------------------------------------------- command line


def files(tmp_path: Path) -> tuple[str, str]:
    workload, events = tmp_path / "w.sase", tmp_path / "events.parquet"
    workload.write_text(SCAN)
    pq.write_table(stream(36_000), events)
    return str(workload), str(events)


@pytest.mark.parametrize("output", ["results", "-", None])
def test_nothing_is_written(tmp_path: Path, output: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    workload, events = files(tmp_path)
    before = set(tmp_path.iterdir())
    where = [] if output is None else ["--output", output if output == "-" else str(tmp_path / output)]
    assert main(["run", workload, "--input", events, "--quiet", "--max-memory", "0.25 MiB", *where]) == 2
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(
        "error: the run stops, since it needs more memory than its limit, 256 KiB; query 'odd'"
    )
    assert "Traceback" not in printed.err
    assert set(tmp_path.iterdir()) == before


def test_a_limit_that_suffices(tmp_path: Path) -> None:
    workload, events = files(tmp_path)
    result = CliRunner().invoke(
        cli, ["run", workload, "--input", events, "--max-memory", "1 GiB", "--numbers", "float"]
    )
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("size", ["12 parsecs", "", "GiB", "-1 MB", "0", "1e9", "1,5 GB", "2 GiB GiB", "٣ MB", "nan"])
def test_a_size_that_is_none(tmp_path: Path, size: str, capfd: pytest.CaptureFixture[str]) -> None:
    workload, events = files(tmp_path)
    assert main(["run", workload, "--input", events, "--max-memory", size]) == 2
    assert f"max memory is {size!r}; it must be" in capfd.readouterr().err


@pytest.mark.parametrize("size", [0, -1, True, 1.5, b"1 MB", "0.1 B"])
def test_a_value_that_is_no_size(size: Any) -> None:
    with pytest.raises(OptionError, match="max memory is"):
        hamlet.Engine(hamlet.Workload.parse(STATES), max_memory=size)


def test_sizes() -> None:
    assert [bytes_of(text) for text in ("1", "2b", "3 kB", "4 KiB", "0.5GIB", " 1 TB ")] == [
        1, 2, 3000, 4096, 2**29, 10**12,
    ]  # fmt: skip
    assert bytes_of(np.int64(7)) == 7  # type: ignore[arg-type]
    assert bytes_of(10**30) == 10**30
    hamlet.run(hamlet.Workload.parse(STATES), stream(100), max_memory=10**30)
    assert size_text(1023) == "1023 bytes"
    assert size_text(1 << 50) == "1024 TiB"


LIMITS = ("1000000", "8000000")


@pytest.mark.sampled(3)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", CASES)
def test_no_notation_grows_far_beyond_its_limit(name: str) -> None:
    command = [sys.executable, "-m", "tests.engine.memory_growth", name, *LIMITS]
    done = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
