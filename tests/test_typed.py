"""Options that a type checker and an editor know, and errors that say which one was meant, with fields."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.online import EngineOptions
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.output.fitting import COUNT_TYPES

WORKLOAD = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s")
EVENTS = [{"time": time, "type": kind, "k": "x"} for time, kind in enumerate("ABB")]

MISTAKES = """\
import hamlet
import hamlet.spark
import hamlet.testing
w = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
hamlet.Engine(w, latenes="5 s")
hamlet.Engine(w, late="dorp")
hamlet.run(w, [], numbers="floats")
hamlet.run(w, [], count_typ="int64")
hamlet.spark.run(w, None, time_unit="m")
hamlet.testing.assert_trends(w, "A", 1, threads="4")
"""
RIGHT = """\
import hamlet
w = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
hamlet.Engine(w, lateness="5 s", late="drop", trace=True, max_memory="1 GiB", order_column=None)
hamlet.run(w, [], numbers="float", threads=2, count_type="auto", input_format="csv", null_keys="drop")
"""


def test_a_type_checker_finds_options(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    root = Path(hamlet.__file__).parents[1]
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    (tmp_path / "right.py").write_text(RIGHT)
    options = ["--no-error-summary", "--ignore-missing-imports", "--follow-imports=silent"]
    options += ["--cache-dir", str(root / ".mypy_cache")]  # reads what the package's own check has left
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *options, "mistakes.py", "right.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = {
        int(line.split(":")[1])
        for line in done.stdout.splitlines()
        if line.startswith("mistakes.py") and "error" in line
    }
    assert lines == set(range(5, 11)), done.stdout + done.stderr
    assert "right.py" not in done.stdout


def test_types_and_values_agree() -> None:
    hints = get_type_hints(RunOptions)
    assert set(hints) | {"trace"} == set(get_type_hints(EngineOptions)) == set(Options.__dataclass_fields__)
    assert get_args(hints["count_type"]) == COUNT_TYPES
    for name, hint in hints.items():
        for value in get_args(hint):
            if isinstance(value, str):
                options_of({name: value})
    with pytest.raises(hamlet.OptionError, match="sharing is 'random'"):
        options_of({"sharing": "random"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [("latenes", "lateness"), ("count_typ", "count_type"), ("timeColumn", "time_column"), ("thread", "threads")],
)
def test_did_you_mean(name: str, meant: str) -> None:
    wrong: Any = {name: 1}
    with pytest.raises(hamlet.OptionError, match=f"there is no option '{name}'; did you mean '{meant}'"):
        hamlet.Engine(WORKLOAD, **wrong)


def test_fields_of_errors() -> None:
    with pytest.raises(hamlet.DataError) as found:
        hamlet.run(WORKLOAD, pa.table({"time": [1, None], "type": ["A", "B"], "k": [1, 1]}))
    assert (found.value.row, found.value.column) == (2, "time")
    with pytest.raises(hamlet.DataError) as found:
        hamlet.run(WORKLOAD, [*EVENTS, {"time": 9, "type": "A", "k": 3}])
    assert (found.value.row, found.value.column) == (4, "k")
    many = [{"time": 1, "type": "A", "k": "x"}, *({"time": 2 + n / 100, "type": "B", "k": "x"} for n in range(80))]
    with pytest.raises(hamlet.OutputError) as unfit:
        hamlet.run(
            WORKLOAD, [{**each, "time": int(each["time"] * 100)} for each in many], time_unit="ms", count_type="int64"
        ).table()
    error = pickle.loads(pickle.dumps(unfit.value))
    assert (error.query, error.window, error.group, error.column) == ("q1", (0, 10_000), {"k": "x"}, "count")
    engine = hamlet.Engine(WORKLOAD)
    engine.push(EVENTS)
    with pytest.raises(hamlet.DataError) as late:
        engine.push([{"time": 0, "type": "A", "k": "x"}])
    assert (late.value.row, late.value.column) == (4, "time")
    text = "RETURN COUNT(*) PATTERN A WHERE A.v * A.v > 3 WITHIN 10 s"
    with pytest.raises(hamlet.DataError) as beyond:
        hamlet.run(hamlet.Workload.parse(text), [{"time": 1, "type": "A", "v": 2**40}])
    assert beyond.value.event is not None
    assert beyond.value.event["v"] == 2**40
    with pytest.raises(hamlet.MemoryLimitError) as much:
        hamlet.run(WORKLOAD, EVENTS, max_memory=10)
    assert str(much.value)


def test_one_query_of_the_results() -> None:
    text = "a: RETURN COUNT(*) PATTERN A WITHIN 10 s; b: RETURN COUNT(*) PATTERN B+ WITHIN 10 s"
    results = hamlet.run(hamlet.Workload.parse(text), EVENTS)
    assert results["b"].rows() == [row for row in results.rows() if row["query"] == "b"]
    assert results["b"].table().equals(results.table("b"))
    assert ("b" in results, "c" in results) == (True, False)
    with pytest.raises(hamlet.OptionError, match="there is no query 'c'"):
        results["c"]


def test_frames() -> None:
    results = hamlet.run(WORKLOAD, EVENTS)
    polars = pytest.importorskip("polars")
    frame = results.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["count"].to_list() == [3]


def test_notebooks() -> None:
    workload = hamlet.Workload.parse('RETURN COUNT(*) PATTERN "<A>"+ WITHIN 100 s')
    events = [{"time": time, "type": "<A>"} for time in range(0, 3000, 100)]
    html = hamlet.run(workload, events)._repr_html_()
    assert "<caption>q1: 30 rows</caption>" in html
    assert html.count("<tr>") == 21
    assert "... and 10 more" in html
    assert "&lt;A&gt;" in workload._repr_html_()
    assert "<A>" not in workload._repr_html_()


def test_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="hamlet"):
        hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, a) WITHIN 10 s"), EVENTS)
    assert ("hamlet", logging.WARNING, "q1: no rows, because a never occurs (did you mean A?)") in caplog.record_tuples
    assert any(level == logging.INFO and "3 events, 0 rows" in text for _, level, text in caplog.record_tuples)
