"""A standalone cluster on loopback: a master and two workers, whose executors may be killed.

Takes a minute or two, and so runs only in `make test-full`. With HAMLET_ARCHIVE=environment.tar.gz, from
``tools/pack_environment.py``, the workers use what is in the archive instead of this interpreter and this tree.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
from tests.effort import only_full
from tests.spark.test_spark_submit import read

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.slow,
    only_full,
]
WORKLOAD = """
    keyed: RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 60 s;
    all: RETURN COUNT(*), MAX(B.v) PATTERN SEQ(A, B+, C) WHERE [g] WITHIN 60 s SLIDE 30 s"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def log_of(folder: Path, name: str, text: str, seconds: float = 120) -> None:
    """Wait until a log says something."""
    end = time.monotonic() + seconds
    while text not in (folder / name).read_text("utf-8", "replace"):
        assert time.monotonic() < end, (folder / name).read_text("utf-8", "replace")
        time.sleep(0.3)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster that the pip package's spark-class has started."""
    pyspark = pytest.importorskip("pyspark")
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, web = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> None:
        with (tmp_path / name).open("wb") as log:
            command = [str(spark_class), f"org.apache.spark.deploy.{kind}", *arguments]
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True))

    try:
        start("master.log", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
        log_of(tmp_path, "master.log", "I have been elected leader")
        for number in range(2):
            folder = str(tmp_path / f"work-{number}")
            start(f"worker-{number}.log", "worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0",
                  "--host", "127.0.0.1", "--work-dir", folder, url)  # fmt: skip
            log_of(tmp_path, f"worker-{number}.log", "Successfully registered with master")
        yield url
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def executors(folder: Path) -> list[int]:
    """Processes that work in the folders of the workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                place = os.readlink(entry / "cwd")
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and place.startswith(str(folder)):
                found.append(int(entry.name))
    return found


def stream_table(chance: np.random.Generator, size: int) -> pa.Table:
    """Events in the order of time."""
    columns = {
        "time": np.sort(chance.integers(0, 20_000, size)),
        "type": np.array(list("ABC"))[chance.integers(0, 3, size)],
    }
    columns |= {"k": chance.integers(0, 300, size), "g": chance.integers(0, 9, size), "v": chance.integers(-9, 9, size)}
    return pa.table(columns)


def test_an_executor_dies_and_the_rows_are_there(master: str, tmp_path: Path) -> None:
    size = 300_000
    chance = np.random.default_rng(7)
    table = stream_table(chance, size)
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=20_000)
    (tmp_path / "w.sase").write_text(WORKLOAD)
    archive = os.environ.get("HAMLET_ARCHIVE")
    submit = [str(Path(__import__("pyspark").__file__).parent / "bin" / "spark-submit"), "--master", master]
    submit += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false", "--executor-memory", "600m"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": sys.executable}
    if archive:
        submit += ["--archives", f"{archive}#environment"]
        environment["PYSPARK_PYTHON"] = "./environment/bin/python"
    else:
        submit += ["--conf", f"spark.executorEnv.PYTHONPATH={ROOT}"]
    job = [str(ROOT / "hamlet" / "__main__.py"), "submit", str(tmp_path / "w.sase"), "--partitions", "4", "--balance"]
    job += ["--input", str(tmp_path / "in.parquet"), "--output", str(tmp_path / "out")]
    with (tmp_path / "job.log").open("wb") as log:
        process = subprocess.Popen([*submit, *job], stdout=log, stderr=log, env=environment)
    log_of(tmp_path, "job.log", "Finished task")
    (victim, *_) = executors(tmp_path)
    os.kill(victim, signal.SIGKILL)
    assert process.wait(timeout=300) == 0, (tmp_path / "job.log").read_text("utf-8", "replace")[-5000:]
    assert "Lost executor" in (tmp_path / "job.log").read_text("utf-8", "replace")
    results = hamlet.run(hamlet.Workload.parse(WORKLOAD), table)
    for name in ("keyed", "all"):
        assert read(tmp_path / "out", name, "parquet") == results.table(name).drop_columns(["query"]).to_pylist()


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "parquet": lambda table, path: pq.write_table(table, path),
    "csv": lambda table, path: pa_csv.write_csv(table, path),
    "json": lambda table, path: (
        path.write_text("".join(f"{json.dumps(each)}\n" for each in table.to_pylist())) and None
    ),
}


@pytest.mark.parametrize("form", WRITERS)
def test_a_stream_is_killed_again_and_again(form: str, tmp_path: Path) -> None:
    """SIGKILL at random moments; the job goes on from its checkpoint, and each row is there once."""
    size, files, kills = 40_000, 20, 10
    chance = np.random.default_rng(11)
    table = stream_table(chance, size)
    end = pa.table({"time": [10**6], "type": ["Z"], "k": [0], "g": [0], "v": [0]})
    (tmp_path / "in").mkdir()
    for number in range(files):
        part = table.slice(number * size // files, size // files)
        WRITERS[form](part, tmp_path / "in" / f"{number:03}.{form}")
        time.sleep(0.02)  # Spark takes files in the order of their times
    WRITERS[form](end, tmp_path / "in" / f"end.{form}")
    (tmp_path / "w.sase").write_text(WORKLOAD)
    command = [sys.executable, "-m", "hamlet", "submit", str(tmp_path / "w.sase"), "--stream", "--available-now"]
    command += ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--master", "local[2]"]
    command += ["--checkpoint", str(tmp_path / "state"), "--files-per-batch", "1", "--partitions", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = 0
    for turn in range(kills + 1):
        before = len(list((tmp_path / "out").rglob("part-0*"))) if turn else 0
        process = subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE)
        try:
            if turn < kills:  # once it has done something, at any moment of a micro-batch
                while process.poll() is None and len(list((tmp_path / "out").rglob("part-0*"))) <= before:
                    time.sleep(0.1)
                process.wait(timeout=float(chance.uniform(0, 4)))
            else:
                _, said = process.communicate(timeout=300)
                assert process.returncode == 0, said.decode()
        except subprocess.TimeoutExpired:
            killed += 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert killed >= min(kills, 2)
    results = hamlet.run(hamlet.Workload.parse(WORKLOAD), table, count_type="string")
    for name in ("keyed", "all"):
        expected = results.table(name).drop_columns(["query"]).to_pylist()
        assert sorted(map(repr, read(tmp_path / "out", name, "parquet"))) == sorted(map(repr, expected))
