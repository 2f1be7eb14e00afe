"""What a small run does not import: modules that take longer to load than the run takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.input.buffers import filled, from_list, from_numpy, from_texts, scalar, to_numpy

HEAVY = ("pandas", "pyspark", "jinja2", "igraph", "duckdb", "sympy", "scipy", "matplotlib", "polars", "pyarrow.dataset")
NEVER = (*HEAVY, "rich.progress", "hamlet.engine.checkpointing", "hamlet.planner.explain", "hamlet.explanation.views")
RUN = """
import json, sys
from hamlet.cli import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def modules_after(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE [k] AND B.v > 1 GROUP-BY k WITHIN 10 s"
    (tmp_path / "w.sase").write_text(text)
    rows = ["time,type,k,v", *(f"{time},{'ABB'[time % 3]},{'xy'[time % 2]},{time}" for time in range(12))]
    (tmp_path / "e.csv").write_text("\n".join([*rows, "12,,,"]) + "\n")
    shuffled = [rows[0], *rows[:0:-1]]
    (tmp_path / "late.csv").write_text("\n".join(shuffled) + "\n")
    columns = {"time": range(9), "type": ["A", "B", "B"] * 3, "k": ["x", "y", None] * 3, "v": [1, None, 3] * 3}
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    return tmp_path


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["e.csv", "late.csv", "e.parquet"])
@pytest.mark.parametrize("options", [[], ["--output", "-"], ["--output", "out", "--where", "v > 0", "--from", "1"]])
def test_a_small_run_imports_what_it_needs(folder: Path, name: str, options: list[str]) -> None:
    options = [str(folder / "out") if each == "out" else each for each in options]
    found = modules_after("run", str(folder / "w.sase"), "--input", str(folder / name), *options)
    assert not found.intersection(NEVER)
    if options:
        assert "rich" not in found
    if name.endswith(".csv") and "--output" not in options:
        assert "pyarrow.parquet" not in found


def test_other_commands_import_no_pandas(folder: Path) -> None:
    for command in ("check", "explain"):
        found = modules_after(command, str(folder / "w.sase"), "--input", str(folder / "e.csv"))
        assert not found.intersection(HEAVY)
    row = '{"window_start": 0, "k": "x"}'
    found = modules_after("why", str(folder / "w.sase"), "--input", str(folder / "e.parquet"), "--row", row, "--check")
    assert not found.intersection(HEAVY)


@pytest.mark.parametrize("options", [[], ["--output", "-"], ["--verdicts", "all"]])
def test_a_monitor_of_a_log_imports_what_it_needs(tmp_path: Path, options: list[str]) -> None:
    for name, text in [("p.mfotl", "ONCE[0,5] a(x)"), ("p.sig", "a(x: int)"), ("p.log", "@1 a(1)\n@2")]:
        (tmp_path / name).write_text(text)
    policy = "ONCE[0,5] (EXISTS x. a(x))" if "--verdicts" in options else "ONCE[0,5] a(x)"
    (tmp_path / "p.mfotl").write_text(policy)
    names = [str(tmp_path / each) for each in ("p.mfotl", "p.sig", "p.log")]
    found = modules_after("monitor", names[0], "-s", names[1], "-i", names[2], "--quiet", *options)
    assert not found.intersection(NEVER)
    assert not found.intersection({"hamlet.planner.workload", "hamlet.policies.saving", "hamlet.policies.monitor"})


@pytest.mark.parametrize("options", [[], ["--output", "-"]])
def test_a_monitor_needs_no_columns_before_there_are_time_points(tmp_path: Path, options: list[str]) -> None:
    for name, text in [("p.mfotl", "a(x) AND NOT ONCE[0,5] b(x)"), ("p.sig", "a(x: int)\nb(x: int)"), ("p.log", "")]:
        (tmp_path / name).write_text(text)
    names = [str(tmp_path / each) for each in ("p.mfotl", "p.sig", "p.log")]
    found = modules_after("monitor", names[0], "-s", names[1], "-i", names[2], "--quiet", *options)
    others = {
        "rich",
        "hamlet.input.events",
        "hamlet.input.csvfile",
        "hamlet.checkpoint.folder",
    }
    assert not found.intersection({"numpy", "pyarrow", "hamlet.policies.verdicts.automata", *others})


@pytest.mark.parametrize(
    "options", [["--verdicts", "all"], ["--verdicts", "equivalent"], ["--output-format", "monpoly"], []]
)
def test_numbers_of_a_log_become_text_without_arrow(tmp_path: Path, options: list[str]) -> None:
    text = "ONCE[0,5] (EXISTS x. a(x))" if "--verdicts" in options else "(s <- SUM x; ONCE[0,5] a(x)) AND s > 1"
    log = "".join([f"@{time // 3} a({time})\n" for time in range(40)])
    for name, content in [("p.mfotl", text), ("p.sig", "a(x: int)"), ("p.log", log)]:
        (tmp_path / name).write_text(content)
    names = [str(tmp_path / each) for each in ("p.mfotl", "p.sig", "p.log")]
    output = ["--output", "-", *(["--output-format", "csv"] if "monpoly" not in options else [])]
    found = modules_after("monitor", names[0], "-s", names[1], "-i", names[2], "--quiet", *output, *options)
    assert "numpy" in found
    assert "pyarrow" not in found


@pytest.mark.parametrize("options", [[], ["--output", "-"], ["--where", "v > 0"]])
def test_a_specification_imports_what_it_needs(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "s.lola").write_text('input v: Int64\noutput w := v + 1\ntrigger w > 2 "much"')
    (tmp_path / "e.csv").write_text("time,v\n0.5,1\n1,5\n")
    found = modules_after("monitor", str(tmp_path / "s.lola"), "-i", str(tmp_path / "e.csv"), "--quiet", *options)
    assert not found.intersection(NEVER)
    if "--where" not in options:
        assert not found.intersection({"hamlet.planner.workload", "hamlet.engine.online", "hamlet.engine.where"})


def test_the_package_imports_next_to_nothing() -> None:
    code = "import sys, hamlet; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" not in done.stdout
    assert "pyarrow" not in done.stdout


# ---------------------------------------------------------------------------------------------- Arrow by its buffers


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 2, 3], pa.int64()),
        pa.array([1, 2, 3], pa.uint8()),
        pa.array([1.5, float("nan")], pa.float32()),
        pa.array([True, False, True] * 7),
        pa.array([1, None, 3]),
        pa.array([True, None]),
        pa.array(["a", None]),
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([], pa.int64()),
        pa.array([], pa.bool_()),
        pa.nulls(2),
        pa.chunked_array([[1, 2], [3]]),
        pa.chunked_array([[True], [False]]),
        pa.chunked_array([], pa.int32()),
    ],
    ids=str,
)
def test_to_numpy(array: pa.Array) -> None:
    pieces = [array, array.slice(1), array.slice(0, 1), array.slice(len(array))]
    pieces += [array.slice(start, 5) for start in range(6, 12)]
    for piece in pieces:
        whole = piece.combine_chunks() if isinstance(piece, pa.ChunkedArray) else piece
        expected = whole.to_numpy(zero_copy_only=False)
        found = to_numpy(piece)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(10),
        np.arange(20, dtype=np.int16)[::2],
        np.arange(3, dtype=">i4"),
        np.array([1.5, np.nan, -0.0]),
        np.array([True, False] * 9),
        np.array([], np.bool_),
        np.array([], np.float64),
        np.array(["a", "b"]),
        np.array(["2024-03-05"], "datetime64[s]"),
        np.array([1, 2], object),
    ],
    ids=str,
)
def test_from_numpy(values: np.ndarray) -> None:
    plain = values.astype(values.dtype.newbyteorder("=")) if values.dtype.kind != "O" else values
    given = values if values.dtype.isnative or values.dtype.kind == "O" else plain
    missing = np.arange(len(values)) % 3 == 1
    for mask in (None, missing, np.zeros(len(values), np.bool_)):
        found, expected = from_numpy(given, missing=mask), pa.array(plain, mask=mask)
        found.validate(full=True)
        assert found.type == expected.type
        assert str(found) == str(expected)


def test_from_python() -> None:
    for texts in ([], ["a"], ["", None, "é\U0001f600", "b"], [None, None], ["x"] * 100):
        from_texts(texts).validate(full=True)
        assert from_texts(texts).equals(pa.array(texts, pa.string()))
    lists = [
        ([1, 2], pa.int64()),
        ([1, None], pa.int64()),
        ([1.5, 2.0], pa.float64()),
        ([1, 2.5], pa.float64()),
        ([True, False], pa.bool_()),
        (["a", None], pa.string()),
        ([1, 2], pa.int8()),
        ([1, 2], pa.timestamp("s")),
        ([], pa.int64()),
    ]
    for values, kind in lists:
        assert from_list(values, kind).equals(pa.array(values, kind))
    with pytest.raises((OverflowError, pa.ArrowInvalid)):
        from_list([2**64], pa.int64())
    for value in (5, 1.5, "a", True):
        assert scalar(value).equals(pa.scalar(value))
    assert filled(pa.array([1, None], pa.int8()), 0).equals(pa.array([1, 0], pa.int8()))
