"""How long after its arrival an event's rows are there: a policy from socket to socket at a rate, in one process.

``python -m bench.live --rate 75000 --seconds 60`` runs *star* (window 10 s, time-stamps in milliseconds) over a log
that is sent as it happens. The latency of a row is the time from sending the first event that decides it to receiving
it, and includes both sockets. The rows are compared with those of a run over the whole log before anything is printed.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SIGNATURE = "A(w: int, x: int) B(w: int, y: int) C(w: int, z: int)\n"
ROOT = Path(__file__).resolve().parent.parent
AHEAD = {"star": 10_000, "star_past": 1}  # milliseconds from a row's time to that of the event that decides it
WAIT = 60.0  # seconds until nothing more is expected


def groups(rate: int, seconds: float, keys: int, lot: random.Random) -> list[bytes]:
    """The lines of each millisecond."""
    found, sent = [], 0
    for milli in range(int(seconds * 1000)):
        due = int((milli + 1) * rate / 1000)
        lines = (
            f"@{milli} {lot.choice('ABC')}({lot.randrange(keys)},{lot.randrange(1_000_000)})\n"
            for _ in range(due - sent)
        )
        found.append("".join(lines).encode())
        sent = due
    return found


class Receiver(threading.Thread):
    """Takes rows, and remembers when each came."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.parts: list[tuple[float, bytes]] = []
        self.start()

    def run(self) -> None:
        """Read until the other side has closed."""
        connection, _ = self.listener.accept()
        while part := connection.recv(1 << 20):
            self.parts.append((time.perf_counter(), part))

    def rows(self) -> list[tuple[float, bytes]]:
        """Each row, and when it was whole."""
        found, rest = [], b""
        for at, part in self.parts:
            *lines, rest = (rest + part).split(b"\n")
            found += [(at, line) for line in lines]
        return found


def measured(policy: str, rate: int, seconds: float, keys: int) -> dict[str, float]:
    """Run once; milliseconds.

    Raises
    ------
    AssertionError
        If the rows are not those of a run over the whole log.
    """
    lines = groups(rate, seconds, keys, random.Random(rate))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "star.sig").write_text(SIGNATURE)
        (folder / "all.log").write_bytes(b"".join(lines))
        receiver = Receiver()
        common = [sys.executable, "-m", "hamlet", "monitor", str(ROOT / "workloads" / f"{policy}.mfotl")]
        common += ["--signature", str(folder / "star.sig"), "--time-unit", "ms"]
        to = [
            "--input",
            "tcp://127.0.0.1:0",
            "--input-format",
            "monpoly",
            "--output",
            f"tcp://127.0.0.1:{receiver.port}",
        ]
        with subprocess.Popen([*common, *to], stderr=subprocess.PIPE, cwd=ROOT) as run:
            assert run.stderr is not None
            port = int(run.stderr.readline().decode().rstrip("/\n").rsplit(":", 1)[1])
            sent, behind = sending(lines, port)
            before, until = -1, time.monotonic() + WAIT
            while len(receiver.parts) != before and time.monotonic() < until:
                before = len(receiver.parts)
                time.sleep(2.0)
            run.terminate()
            run.wait()
        receiver.join(WAIT)
        rows = receiver.rows()
        check(common, folder, [line for _, line in rows], len(lines) - 1 - AHEAD[policy])
    delays = sorted(at - sent[json.loads(line)["time"] + AHEAD[policy]] for at, line in rows)
    found = {f"p{part}": 1000 * delays[min(len(delays) - 1, int(len(delays) * part / 100))] for part in (50, 99)}
    return {"rate": rate, "events": rate * seconds, "rows": len(rows), "behind_ms": 1000 * behind, **found}


def sending(lines: list[bytes], port: int) -> tuple[list[float], float]:
    """Send each millisecond's lines in its millisecond; gives when, and the most that one came too late."""
    sent, behind = [], 0.0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        started = time.perf_counter()
        for milli, part in enumerate(lines):
            early = started + milli / 1000 - time.perf_counter()
            if early > 0:
                time.sleep(early)
            behind = max(behind, -early)
            sent.append(time.perf_counter())
            connection.sendall(part)
    return sent, behind


def check(common: list[str], folder: Path, rows: list[bytes], last: int) -> None:
    """Compare with a run over the file, up to what was decided when the log ended."""
    whole = subprocess.run(
        [*common, "--input", str(folder / "all.log"), "--output", "-", "--quiet"],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
    ).stdout.splitlines()
    expected = [line for line in whole if json.loads(line)["time"] <= last]
    assert sorted(rows[: len(expected)]) == sorted(expected), "the rows are not those of the whole log"


def main() -> None:
    """Measure, and print a line of JSON per run."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    options.add_argument("--policy", choices=sorted(AHEAD), default="star")
    options.add_argument("--rate", type=int, default=75_000)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--keys", type=int, default=10_000_000)
    chosen = options.parse_args()
    sys.stdout.write(json.dumps(measured(chosen.policy, chosen.rate, chosen.seconds, chosen.keys)) + "\n")


if __name__ == "__main__":
    main()
