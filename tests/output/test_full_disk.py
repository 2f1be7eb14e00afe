"""What goes wrong around a run: a disk that fills up, in a process of its own whose files may not grow further.

A clear message, the exit code, and no output that looks complete. Damaged input is in `test_textfiles.py` and
`test_spark_submit.py`, missing columns in `test_analysis.py`, executors that die in `test_spark_cluster.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.effort import only_full

ROOT = Path(__file__).resolve().parents[2]
resource = pytest.importorskip("resource", reason="limits of a process are POSIX")
LARGEST = 1_000_000  # bytes of a file; the results are several times that


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workload, and events of which every one makes a row."""
    size = 150_000
    keys = np.random.default_rng(1).integers(0, 2**60, size)
    pq.write_table(pa.table({"time": np.arange(size), "type": ["A"] * size, "k": keys}), tmp_path / "in.parquet")
    (tmp_path / "w.sase").write_text("RETURN k, COUNT(*), SUM(A.k) AS s PATTERN A GROUP-BY k WITHIN 10 s")
    return tmp_path


def limited(folder: Path, *arguments: str, stdout: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command where no file may grow beyond `LARGEST`."""
    return subprocess.run(
        [sys.executable, "-m", "hamlet", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST)),
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("output_format", ["parquet", "csv", "json"])
def test_a_full_disk_leaves_no_results(folder: Path, output_format: str) -> None:
    before = sorted(folder.iterdir())
    done = limited(
        folder, "run", "w.sase", "--input", "in.parquet", "--output", "out", "--output-format", output_format
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write to out: ")
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before


def test_a_full_disk_behind_standard_output(folder: Path) -> None:
    with (folder / "rows.jsonl").open("wb") as sink:
        done = limited(folder, "run", "w.sase", "--input", "in.parquet", "--output", "-", stdout=sink.fileno())
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: File too large\n"


def test_a_full_disk_keeps_what_was_there(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "before").write_text("rows of yesterday")
    done = limited(folder, "run", "w.sase", "--input", "in.parquet", "--output", "out", "--overwrite")
    assert done.returncode == 2
    assert [path.name for path in (folder / "out").iterdir()] == ["before"]


@pytest.mark.slow
@only_full
def test_a_full_disk_stops_a_job(folder: Path) -> None:
    """Whichever of its files grows too large first: the JVM's, or the results."""
    before = sorted(folder.iterdir())
    done = limited(folder, "submit", "w.sase", "--input", "in.parquet", "--output", "out", "--master", "local[1]")
    assert done.returncode in (1, 2)
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.iterdir()) == before
