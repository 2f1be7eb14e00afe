"""Flink in an environment of its own, since its packages want other versions than ours.

``make flink`` makes ``build/flink``; another one is named by ``HAMLET_FLINK`` (the folder of a virtual environment with
apache-flink in it). Java's compiler must be on the PATH for Flink CEP.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from bench.machine import ROOT
from hamlet.errors import DataError

HERE = Path(__file__).resolve().parent
OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang")]


class Flink:
    """Runs both of Flink's ways over a CSV file; every run starts a JVM.

    Raises
    ------
    DataError
        There is no environment with Flink in it.
    """

    def __init__(self) -> None:
        self.environment = Path(os.environ.get("HAMLET_FLINK") or ROOT / "build" / "flink")
        self._home = next(self.environment.glob("lib/python*/site-packages/pyflink"), None)
        if self._home is None:
            raise DataError(
                f"Flink is not installed in {self.environment}: run 'make flink', or name it in HAMLET_FLINK"
            )
        self._classes = ROOT / "build" / "flink-classes"

    def sql(self, events: Path, width: int) -> dict[str, Any]:
        """``query_s`` and ``rows`` (key, window start, runs) of ``flink_sql.py``."""
        return self._run(
            [str(self.environment / "bin" / "python"), str(HERE / "flink_sql.py"), str(events), str(width)]
        )

    def strict(self, events: Path, width: int) -> dict[str, Any]:
        """``query_s`` and ``rows`` (key, window start, trends) of ``flink_strict.py``."""
        return self._run(
            [str(self.environment / "bin" / "python"), str(HERE / "flink_strict.py"), str(events), str(width)]
        )

    def cep(self, events: Path, width: int) -> dict[str, Any]:
        """``query_s`` and ``rows`` (key, window start, trends) of ``FlinkTrends.java``."""
        self.compile()
        path = f"{self._classes}:{self._home}/lib/*"
        return self._run(["java", *OPENED, "-cp", path, "FlinkTrends", str(events), str(width)])

    def compile(self) -> None:
        """Compile the Java programme, where that has not been done since it changed."""
        source, target = HERE / "FlinkTrends.java", self._classes / "FlinkTrends.class"
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            return
        if shutil.which("javac") is None:
            raise DataError("Flink CEP needs javac on the PATH (Debian: apt-get install openjdk-17-jdk-headless)")
        command = ["javac", "-nowarn", "-cp", f"{self._home}/lib/*", "-d", str(self._classes), str(source)]
        subprocess.run(command, check=True, capture_output=True)

    @staticmethod
    def _run(command: list[str]) -> dict[str, Any]:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise RuntimeError(f"{command[0]} failed ({process.returncode}):\n{process.stderr[-3000:]}")
        found: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
        return found


def write_csv(events: pa.Table, file: Path) -> Path:
    """Time (milliseconds), type and key as Flink reads them: no header, no quotes."""
    table = pa.table({"ts": events["time"], "type": events["type"].cast(pa.string()), "k": events["key"]})
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    pyarrow.csv.write_csv(table, file, options)
    return file


def write_strict_csv(events: pa.Table, width: int, file: Path) -> Path:
    """As `write_csv`, times doubled, with an event of the type ``end`` behind the last of each window and key."""
    starts = pa.table({"k": events["key"], "start": pc.multiply(pc.divide(events["time"], width), width)})
    last = starts.group_by(["k", "start"]).aggregate([])
    time = pc.subtract(pc.multiply(pc.add(last["start"], width), 2), 1)
    ends = pa.table({"ts": time, "type": pa.repeat("end", len(last)), "k": last["k"]})
    doubled = pa.table(
        {"ts": pc.multiply(events["time"], 2), "type": events["type"].cast(pa.string()), "k": events["key"]}
    )
    table = pa.concat_tables([doubled, ends]).sort_by("ts")
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    pyarrow.csv.write_csv(table, file, options)
    return file
