"""From an event's arrival to its rows, at a rate, from socket to socket, and the rates that hold.

A process sends a file as ``hamlet replay --rate`` does (`hamlet.runtime.replay`; the batches of an Arrow stream in the
same way), one runs Hamlet, and one takes the rows. The latency of a row is the time from sending the first event that
decides it to having the row, both sockets included; from the moment at which that event was due it is longer where the
sender is held up.

``python -m bench.live star-monpoly --rate 75000 --seconds 20`` measures once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench import machine, streams, workloads
from bench.answers import WrongAnswer
from hamlet.input.live.sources import host_of
from hamlet.output.live import SocketSink, connector
from hamlet.runtime.replay import Replay

QUIET = 3.0  # seconds without a row until nothing more is expected
GROUP = 0.001  # seconds of an Arrow stream that are one batch
SIGNATURE = "A(w: int, x: int) B(w: int, x: int) C(w: int, x: int)\n"
_DOUBLE = re.compile(rb"\d+\.\d+(e[+-]?\d+)?")
NAMES = {"star": ("w", "x"), "queries": ("key", "value")}


@dataclass(frozen=True)
class Subject:
    """What is run over a stream whose times are milliseconds.

    Attributes
    ----------
    name : {'star', 'queries'}
    form : {'monpoly', 'json', 'csv', 'arrow'}
    """

    name: str
    form: str

    def command(self, folder: Path) -> list[str]:
        """Hamlet without input and output; what it reads is written to the folder."""
        if self.name == "star":
            (folder / "star.sig").write_text(SIGNATURE, encoding="utf-8")
            policy = str(machine.ROOT / "workloads" / "star.mfotl")
            chosen = ["monitor", policy, "--signature", "star.sig"]
        else:
            text = "".join(workloads.many_groups_fifty(f"WITHIN {seconds} s") for seconds in (2, 3))
            (folder / "hundred.sase").write_text(text, encoding="utf-8")
            chosen = ["run", "hundred.sase", "--numbers", "float"]
        return [sys.executable, "-m", "hamlet", *chosen, "--time-unit", "ms", "--input-format", self.form]

    def decided(self, row: dict[str, Any]) -> int:
        """The time from which on no event can change a row."""
        return int(row["time"]) + 10_000 if self.name == "star" else int(row["window_end"])

    def events(self, begin: int, count: int, rate: int) -> pa.Table:
        """Some events of the stream."""
        lot = np.random.default_rng(begin)
        if self.name == "star":  # of so many values that some hundred rows come in a second at any rate
            types, first, other = "ABC", lot.integers(0, int(3e6 * (rate / 75_000) ** 1.5), count), 10**6
        else:
            types, first, other = "".join(streams.TYPES), lot.integers(0, 20, count), 100
        kinds = pa.DictionaryArray.from_arrays(lot.integers(0, len(types), count).astype(np.int8), list(types))
        names = ["time", "type", *NAMES[self.name]]
        times = (begin + np.arange(count)) * 1000 // rate
        return pa.table([times, kinds.cast(pa.string()), first, lot.integers(0, other, count)], names=names)

    def text(self, events: pa.Table) -> bytes:
        """Events as lines."""
        times, types, first, other = (each.combine_chunks().cast(pa.string()) for each in events.columns)
        one, two = NAMES[self.name]
        between = {
            "monpoly": ("@", " ", "(", ",", ")\n"),
            "json": ('{"time": ', ', "type": "', f'", "{one}": ', f', "{two}": ', "}\n"),
            "csv": ("", ",", ",", ",", "\n"),
        }[self.form]
        columns = (times, types, first, other)
        parts = [part for text, column in zip(between, columns, strict=False) for part in (text, column)]
        lines = pc.binary_join_element_wise(*parts, between[-1], "")
        end = int(np.frombuffer(lines.buffers()[1], np.int32)[len(lines)])
        found: bytes = lines.buffers()[2].to_pybytes()[:end]
        return found

    def write(self, path: Path, rate: int, seconds: float) -> list[int]:
        """Write a stream; gives where the batches of an Arrow stream end."""
        count, ends = int(rate * seconds), []
        parts = ((begin, min(rate, count - begin)) for begin in range(0, count, rate))
        if self.form == "arrow":
            each = max(1, int(rate * GROUP))
            with pa.OSFile(str(path), "wb") as sink:
                writer = pa.ipc.new_stream(sink, self.events(0, 1, rate).schema)
                for part in parts:
                    for batch in self.events(*part, rate).combine_chunks().to_batches(max_chunksize=each):
                        writer.write_batch(batch)
                        ends.append(sink.tell())
            return ends
        with path.open("wb") as file:
            if self.form == "csv":
                file.write(",".join(["time", "type", *NAMES[self.name]]).encode() + b"\n")
            for part in parts:
                file.write(self.text(self.events(*part, rate)))
        return ends


class Receiver(threading.Thread):
    """Takes rows, and remembers when each came."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._parts: list[tuple[float, bytes]] = []
        self.last = time.perf_counter()
        self.start()

    def run(self) -> None:
        """Read until the other side has closed."""
        connection, _ = self._listener.accept()
        while part := connection.recv(1 << 20):
            self.last = time.perf_counter()
            self._parts.append((self.last, part))

    def rows(self) -> list[tuple[float, bytes]]:
        """Each row, and when it was whole."""
        found, rest = [], b""
        for at, part in self._parts:
            *lines, rest = (rest + part).split(b"\n")
            found += [(at, line) for line in lines]
        return found


def measured(subject: Subject, rate: int, seconds: float) -> dict[str, float]:
    """Run once.

    Returns
    -------
    dict
        Latencies in milliseconds, from sending and from being due; how far the sender fell behind; processor time.

    Raises
    ------
    WrongAnswer
        If the rows are not those of a run over the whole file.
    """
    with tempfile.TemporaryDirectory(prefix="hamlet-bench-") as name:
        folder = Path(name)
        path = folder / "events"
        ends = subject.write(path, rate, seconds)
        (folder / "ends").write_text(json.dumps(ends), encoding="utf-8")
        command, receiver = subject.command(folder), Receiver()
        to = ["--input", "tcp://127.0.0.1:0", "--output", f"tcp://127.0.0.1:{receiver.port}"]
        environment = {**os.environ, "PYTHONPATH": str(machine.ROOT)}
        with subprocess.Popen([*command, *to], stderr=subprocess.PIPE, cwd=folder, env=environment) as run:
            assert run.stderr is not None
            url = run.stderr.readline().decode().split()[-1]
            sender = [sys.executable, "-m", "bench.live", "--send", str(path), "--to", url, "--rate", str(rate)]
            sent = json.loads(subprocess.run(sender, stdout=subprocess.PIPE, check=True, cwd=machine.ROOT).stdout)
            while time.perf_counter() < max(receiver.last, sent["started"] + seconds) + QUIET:
                time.sleep(0.1)
            run.terminate()
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
        receiver.join(60)
        rows = [(at, line, subject.decided(json.loads(line))) for at, line in receiver.rows()]
        _check(subject, command, folder, [line for _, line, _ in rows], (int(rate * seconds) - 1) * 1000 // rate)
    came, decided = np.array([at for at, _, _ in rows]), np.array([decided for _, _, decided in rows])
    lines, times = np.array(sent["lines"]), np.array(sent["times"])
    first = -(-decided * rate // 1000)  # the first event of that time
    delays = came - times[np.searchsorted(lines, first, side="right")]
    found = {f"p{part}_ms": 1000 * float(np.percentile(delays, part)) for part in (50, 99, 100)}
    due = came - sent["started"] - decided / 1000
    found |= {f"p{part}_due_ms": 1000 * float(np.percentile(due, part)) for part in (50, 99, 100)}
    cpu = usage.ru_utime + usage.ru_stime
    behind = {"behind_ms": 1000 * sent["behind"], "sent_s": sent["seconds"]}
    return {"rows": len(rows), **found, **behind, "cpu_s": cpu, "peak_bytes": usage.ru_maxrss * 1024}


def _check(subject: Subject, command: list[str], folder: Path, rows: list[bytes], end: int) -> None:
    """Compare with a run over the file, up to what was decided when it ended."""
    more = ["--input", "events", "--output", "-", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(machine.ROOT)}
    with subprocess.Popen([*command, *more], stdout=subprocess.PIPE, cwd=folder, env=environment) as run:
        assert run.stdout is not None
        expected = [line.rstrip(b"\n") for line in run.stdout if subject.decided(json.loads(line)) <= end]
    if run.returncode:
        raise WrongAnswer("the run over the whole file failed")
    if not expected or Counter(map(_rounded, rows)) != Counter(map(_rounded, expected)):
        first = next(iter(Counter(map(_rounded, rows)) - Counter(map(_rounded, expected))), None)
        raise WrongAnswer(f"{len(rows)} rows at a rate are not the {len(expected)} of a run over the file: {first!r}")


def _rounded(line: bytes) -> bytes:
    """A row with doubles to nine digits: sums depend on the order in which batches are added up."""
    return _DOUBLE.sub(lambda match: b"%.9g" % float(match[0]), line)


def send(path: Path, url: str, rate: int) -> dict[str, Any]:
    """Send a file at a rate; gives among other things how many events had been sent by which moments."""
    sink = SocketSink(connector(url, host_of), url, lambda: False)
    sink.open()
    ends = json.loads((path.parent / "ends").read_text(encoding="utf-8"))
    if ends:
        found = _send_batches(path.read_bytes(), ends, rate, sink)
    else:
        with path.open("rb") as file:
            head = int(file.readline().startswith(b"time,"))  # a header is sent with the first line
        replay = Replay(str(path), lambda _, number: max(0, number - head) / rate)
        lines: list[int] = []
        times: list[float] = []

        def put(data: bytes) -> None:
            lines.append(data.count(b"\n") + (lines[-1] if lines else -head))
            times.append(time.perf_counter())
            sink.write_bytes(data)

        started = time.perf_counter()
        replay.run(put)
        found = {"started": started, "behind": replay.behind, "seconds": replay.seconds}
        found |= {"lines": lines, "times": times}
    sink.close()
    return found


def _send_batches(data: bytes, ends: list[int], rate: int, sink: SocketSink) -> dict[str, Any]:
    """Send the batches of an Arrow stream when their first events are due."""
    started, behind, begin = time.perf_counter(), 0.0, 0
    each, times = max(1, int(rate * GROUP)), []
    for place, end in enumerate(ends):
        early = started + place * each / rate - time.perf_counter()
        if early > 0:
            time.sleep(early)
        behind = max(behind, -early)
        times.append(time.perf_counter())
        sink.write_bytes(data[begin:end])
        begin = end
    lines = [each * place for place in range(1, len(ends) + 1)]
    found = {"started": started, "behind": behind, "seconds": time.perf_counter() - started}
    return {**found, "lines": lines, "times": times}


def main() -> None:
    """Measure once, or send for a measurement."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    options.add_argument("subject", nargs="?", default="star-monpoly", help="star|queries-monpoly|json|csv|arrow")
    options.add_argument("--rate", type=int, default=75_000)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--send", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--to", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.send is not None:
        found = send(chosen.send, chosen.to, chosen.rate)
    else:
        found = measured(Subject(*chosen.subject.split("-")), chosen.rate, chosen.seconds)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
