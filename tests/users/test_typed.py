"""Options that a type checker and an editor know, and errors that say which one was meant, with fields."""

from __future__ import annotations

import inspect
import logging
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pytest

import hamlet
import hamlet.policies.options
import hamlet.streams.options
from hamlet.engine.online import EngineOptions
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.output.fitting import COUNT_TYPES
from hamlet.runtime.options import names_in

WORKLOAD = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s")
EVENTS = [{"time": time, "type": kind, "k": "x"} for time, kind in enumerate("ABB")]

MISTAKES = """\
import hamlet
import hamlet.policies
import hamlet.spark
import hamlet.streams
import hamlet.testing
w = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
hamlet.Engine(w, latenes="5 s")
hamlet.Engine(w, late="dorp")
hamlet.run(w, [], numbers="floats")
hamlet.run(w, [], count_typ="int64")
hamlet.spark.run(w, None, time_unit="m")
hamlet.testing.assert_trends(w, "A", 1, threads="4")
hamlet.spark.submit(w, "in.csv", "out", semijoin="of")
hamlet.spark.submit_stream(w, "in", "out", "state", avialable_now=True)
policy = hamlet.policies.Policy.parse("p(1)", signature="p(u: int)")
hamlet.policies.run(policy, [], lateness=3)
hamlet.policies.Monitor(policy, negate="no")
hamlet.spark.monitor(policy, None)
spec = hamlet.streams.Specification.parse("input a: Int64")
hamlet.streams.run(spec, [], valeus=True)
hamlet.streams.Monitor(spec, time_unit=1)
"""
RIGHT = """\
import hamlet
import hamlet.policies
import hamlet.spark
import hamlet.streams
w = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
hamlet.Engine(w, lateness="5 s", late="drop", trace=True, max_memory="1 GiB", order_column=None)
hamlet.run(w, [], numbers="float", threads=2, count_type="auto", input_format="csv", null_keys="drop")
hamlet.spark.submit(w, ["a.csv"], "out", semijoin="on", threads=2, keep=["w.sase"], output_format="csv")
hamlet.spark.submit_stream(w, "in", "out", "state", late="drop", trigger="1 s", numbers="float")
policy = hamlet.policies.Policy.parse("p(1)", signature="p(u: int)")
hamlet.policies.run(policy, [], negate=True, input_format="csv")
hamlet.policies.Monitor([policy], lateness="5 s", max_memory="1 GiB")
spec = hamlet.streams.Specification.parse("input a: Int64")
hamlet.streams.run(spec, [], True, lateness=3, input_format="csv")
hamlet.streams.Monitor(spec, values=True, features=None)
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
    assert lines == {*range(7, 15), *range(16, 19), 20, 21}, done.stdout + done.stderr
    assert "right.py" not in done.stdout


@pytest.mark.parametrize(
    ("by_name", "kinds", "others"),
    [
        (hamlet.policies.options.RunOptions, [hamlet.policies.options.FileOptions], set()),
        (hamlet.policies.options.MonitorOptions, [hamlet.policies.options.OnlineOptions], set()),
        (hamlet.streams.options.MonitorOptions, [hamlet.streams.options.Options], set()),
        (hamlet.streams.options.CommonOptions, [hamlet.streams.options.Options], {"values", "order_column"}),
    ],
)
def test_names_for_type_checkers_are_those_of_the_object(by_name: type, kinds: list[type], others: set[str]) -> None:
    assert set(get_type_hints(by_name)) | others == {name for kind in kinds for name in names_in(kind)}


def test_names_of_jobs_are_those_of_their_objects() -> None:
    options = pytest.importorskip("hamlet.spark.options", exc_type=hamlet.UnsupportedError)
    engine, monitor = {*names_in(Options)}, {*names_in(hamlet.policies.options.OnlineOptions)}
    for by_name, kind, inner in (
        (options.SubmitOptions, options.Batch, engine),
        (options.SubmitStreamOptions, options.Stream, engine - {"trace"}),
        (options.PolicySubmitOptions, options.PolicyBatch, set()),
        (options.PolicyStreamOptions, options.PolicyStream, monitor),
        (options.MonitorFrameOptions, options.PolicyFrame, set()),
    ):
        assert {*by_name.__required_keys__, *by_name.__optional_keys__} == ({*names_in(kind)} - {"run"}) | inner, kind


def test_help_shows_names_and_defaults() -> None:
    found = inspect.signature(hamlet.policies.Monitor).parameters
    assert (found["lateness"].default, found["time_points"].default) == (0, "step")
    assert all(each.kind is not each.VAR_KEYWORD for each in found.values())
    assert inspect.signature(hamlet.run).parameters["numbers"].default == "exact"
    assert "trace: 'str | os.PathLike[str] | None' = None" in str(inspect.signature(hamlet.run))


def test_types_and_values_agree() -> None:
    hints = get_type_hints(RunOptions)
    assert set(hints) | {"trace"} == set(get_type_hints(EngineOptions)) == set(names_in(Options))
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


@pytest.mark.parametrize(
    ("call", "name", "meant"),
    [
        (hamlet.policies.Monitor, "latenes", "lateness"),
        (hamlet.policies.run, "time_point", "time_points"),
        (hamlet.streams.Monitor, "sorce", "source"),
        (hamlet.streams.run, "input_fromat", "input_format"),
    ],
)
def test_did_you_mean_of_other_notations(call: Any, name: str, meant: str) -> None:
    policy = hamlet.policies.Policy.parse("p(1)", signature="p(u: int)")
    given = (
        policy
        if call.__module__.startswith("hamlet.policies")
        else hamlet.streams.Specification.parse("input a: Int64")
    )
    with pytest.raises(hamlet.OptionError, match=f"there is no option '{name}'; did you mean '{meant}'"):
        call(*([given, []] if call.__name__ == "run" else [given]), **{name: 1})


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


def test_null_and_truth_values_in_notebooks() -> None:
    workload = hamlet.Workload.parse("RETURN b, SUM(A.v) PATTERN A GROUP-BY b WITHIN 100 s")
    html = hamlet.run(workload, [{"time": 1, "type": "A", "b": True, "v": None}])._repr_html_()
    assert "<td>true</td><td>NULL</td>" in html


def test_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="hamlet"):
        hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, a) WITHIN 10 s"), EVENTS)
    assert ("hamlet", logging.WARNING, "q1: no rows, because a never occurs (did you mean A?)") in caplog.record_tuples
    assert any(level == logging.INFO and "3 events, 0 rows" in text for _, level, text in caplog.record_tuples)
