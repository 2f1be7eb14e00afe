"""Continuous Spark jobs that are killed at random moments, with another number of slices each time they start.

``python -m fuzz.spark_kills --kills 10`` runs each notation over a folder of files, two or three of a micro-batch at a
time, and ends the job with SIGKILL, also while its states are read, moved and written; then once more, to the end. Rows
must be those of one run over all files, each once. Row patterns keep the slices that they began with.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.spark.test_spark_continuous import END, NOTATIONS, SIGNATURE, csv, decided, put, written

ROOT = Path(__file__).resolve().parent.parent
ROWS = 80  # of each file
LONGEST = 240.0  # seconds until a job must have ended


def events(lot: random.Random, files: int) -> list[dict[str, Any]]:
    """A stream; the last event stands for its end."""
    users = [f"u{number}" for number in range(12)]
    return [
        {"time": at // 4, "type": lot.choice("wwd"), "u": lot.choice(users), "a": lot.randrange(9)}
        for at in range(files * ROWS)
    ]


class Job:
    """One notation in an empty folder."""

    def __init__(self, folder: Path, notation: str, lot: random.Random, files: int = 12) -> None:
        self.folder, self.notation, self.lot = folder, notation, lot
        self.rows = events(lot, files)
        for number in range(files):
            put(folder / "in", f"{number:03}.csv", csv(self.rows[ROWS * number : ROWS * (number + 1)]))
        self.last = {"time": END, "type": "w", "u": "u1", "a": 0}
        put(folder / "in", "end.csv", csv([self.last, {**self.last, "time": END + 90}]))
        (folder / "p.sig").write_text(SIGNATURE)
        (folder / NOTATIONS[notation].file).write_text(NOTATIONS[notation].text)

    def started(self, slices: int) -> subprocess.Popen[bytes]:
        """The job, started or started again."""
        command = [sys.executable, "-m", "hamlet", "submit", NOTATIONS[self.notation].file, "--stream", "--quiet"]
        command += ["--available-now", "--input", "in", "--output", "out", "--output-format", "json"]
        command += ["--checkpoint", "state", "--slices", str(slices), "--master", "local[2]"]
        command += ["--files-per-batch", str(self.lot.choice((1, 2)))]
        command += {"policy": ["--signature", "p.sig"], "specification": ["--values"]}.get(self.notation, [])
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, start_new_session=True, stderr=subprocess.PIPE
        )

    def batches(self) -> int:
        """How much has been written."""
        return len(list((self.folder / "out").glob("*=*/part-0*")))

    def slices(self) -> int:
        """For the next start."""
        return 2 if self.notation == "patterns" else self.lot.choice((1, 2, 3))


def killed(job: Job, kills: int) -> tuple[int, int]:
    """Kill so many times, then let the job end; gives how often it was killed while it ran, and the rows.

    Raises
    ------
    AssertionError
        If the rows are not those of a run over all files, each once.
    """
    found = 0
    for _ in range(kills):
        process = job.started(job.slices())
        before, until = job.batches(), time.monotonic() + LONGEST
        try:  # half of the kills come at any moment, half of them once something has been written
            waits = job.lot.random() < 0.5
            while waits and process.poll() is None and job.batches() <= before and time.monotonic() < until:
                time.sleep(0.05)
            process.wait(timeout=job.lot.uniform(0, 3) if waits else job.lot.uniform(3, 15))
        except subprocess.TimeoutExpired:
            found += 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    process = job.started(job.slices())
    try:
        _, said = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said.decode()[-3000:]
    table = pa.Table.from_pylist([*job.rows, job.last])
    rows, expected = [row for row in written(job.folder / "out") if str(END) not in row], decided(job.notation, table)
    assert rows == expected, f"{len(rows)} rows, and not {len(expected)}"
    return found, len(rows)


def main() -> None:
    """Try all, and print a line of each."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--notation", action="append", choices=sorted(NOTATIONS))
    chosen = options.parse_args()
    for notation in chosen.notation or NOTATIONS:
        with tempfile.TemporaryDirectory() as name:
            job = Job(Path(name), notation, random.Random(f"{chosen.seed}{notation}"))
            found, rows = killed(job, chosen.kills)
            place = job.folder / "state" / "cells.json"
            moves = json.loads(place.read_text())["generation"] if place.exists() else 0
        sys.stdout.write(f"{notation}: {found} kills, states moved {moves} times, {rows} rows, each once\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
