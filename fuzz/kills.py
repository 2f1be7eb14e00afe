"""Runs that are killed at random moments, from sources that can be read again to sinks that have each row once.

``python -m fuzz.kills --kills 10`` tries each notation with each source and sink: the run is started again and again
while events come, and ended with SIGKILL; then once more, until all rows are there. They must be those of one run over
all events, each once. Kafka is the broker of the tests, or the one that ``KAFKA_BOOTSTRAP`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WAIT = 90.0  # seconds until all rows must be there
NOTATIONS = {
    "policy": (["monitor", "p.mfotl", "--signature", "p.sig"], "{0} publish({0})", "@"),
    "query": (["run", "q.sase"], '"time": {0}, "type": "A", "x": {0}}}', "{"),
    "specification": (["monitor", "s.lola", "--values"], '"time": {0}, "x": {0}}}', "{"),
    "row pattern": (["run", "m.sql"], '"time": {0}, "x": {0}}}', "{"),
}
PAIRS = (("file", "file"), ("file", "kafka"), ("kafka", "file"), ("kafka", "kafka"))


def prepared(folder: Path) -> None:
    """Write what is monitored."""
    (folder / "p.mfotl").write_text("publish(x) AND EXISTS y. (ONCE[1,5] publish(y)) AND y + 3 = x")
    (folder / "p.sig").write_text("publish(x: int)")
    (folder / "q.sase").write_text("RETURN COUNT(*), SUM(A.x) PATTERN A+ WITHIN 3 s SLIDE 1 s")
    clause = "ORDER BY time MEASURES FIRST(x) AS a, COUNT(*) AS n PATTERN (p q{2}) WITHIN 5 DEFINE q AS x > PREV(x)"
    (folder / "m.sql").write_text(f"SELECT a, a + n - 1 AS time FROM events MATCH_RECOGNIZE ({clause})")
    (folder / "s.lola").write_text("input x: Int64  output n := n.offset(by: -1).defaults(to: 0) + x  trigger n > 0")


def lines(notation: str, first: int, count: int) -> list[str]:
    """Some events."""
    _, form, begin = NOTATIONS[notation]
    return [begin + form.format(at) for at in range(first, first + count)]


class Run:
    """One notation, one source, one sink.

    Parameters
    ----------
    folder : pathlib.Path
        Empty.
    notation, source, sink : str
    brokers : str
        Of Kafka.
    """

    def __init__(self, folder: Path, notation: str, source: str, sink: str, brokers: str) -> None:
        self.folder, self.notation, self.brokers = folder, notation, brokers
        prepared(folder)
        name = uuid.uuid4().hex[:8]
        self.topics = {"in": f"in-{name}", "out": f"out-{name}"}
        self.file = folder / ("events.log" if notation == "policy" else "events.jsonl")
        self.file.touch()
        self.source = str(self.file) if source == "file" else f"kafka://{brokers}/{self.topics['in']}?group=g-{name}"
        self.sink = "out" if sink == "file" else f"kafka://{brokers}/{self.topics['out']}"
        self.sent = 0
        form = "monpoly" if notation == "policy" else "json"
        self.command = [sys.executable, "-m", "hamlet", *NOTATIONS[notation][0], "--input-format", form]
        self._producer: Any = None
        if source == "kafka":
            from confluent_kafka import Producer

            self._producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0})

    def send(self, count: int) -> None:
        """Let some more events come."""
        more = lines(self.notation, self.sent, count)
        self.sent += count
        with self.file.open("a") as file:  # for the run over all of them, too
            file.write("".join(f"{line}\n" for line in more))
        if self._producer is not None:
            for line in more:
                self._producer.produce(self.topics["in"], line.encode())
            self._producer.flush(30)

    def started(self, every: str) -> subprocess.Popen[bytes]:
        """The run under a checkpoint, started or started again."""
        more = ["--input", self.source, "--output", self.sink, "--output-format", "json", "--checkpoint", "ck"]
        follow = [] if self._producer is not None else ["--follow"]
        return self._process([*more, *follow, "--every", every], subprocess.PIPE)

    def _process(self, more: list[str], errors: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [*self.command, *more, "--quiet"],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )

    def whole(self) -> list[str]:
        """The rows of a run over all events so far that are final without the end of the input."""
        with self._process(["--input", self.file.name, "--output", "-", "--output-format", "json"], 2) as run:
            text = run.communicate(timeout=WAIT)[0].decode()
        behind = self.sent - 1  # what the last event has not decided is of its own time, or of a window open then
        rows = [json.loads(line) for line in text.splitlines()]
        return [
            _plain(row)
            for row in rows
            if (
                row["window_end"] <= behind
                if "window_end" in row
                else self.notation == "specification" or row["time"] < behind
            )
        ]

    def rows(self) -> list[str]:
        """The rows that others can see."""
        if self.sink == "out":
            files = sorted((self.folder / "out").rglob("part-*"))
            return [_plain(json.loads(line)) for file in files for line in file.read_text().splitlines()]
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        reader = Consumer(
            {"bootstrap.servers": self.brokers, "group.id": "reader", "isolation.level": "read_committed"}
        )
        reader.assign([TopicPartition(self.topics["out"], 0, OFFSET_BEGINNING)])
        found: list[str] = []
        quiet = time.monotonic() + 3
        while time.monotonic() < quiet:
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                found.append(_plain(json.loads(message.value())))
                quiet = time.monotonic() + 0.5
        reader.close()
        return found


def _plain(row: dict[str, Any]) -> str:
    """A row without what folders say and messages say in a column."""
    return json.dumps({key: value for key, value in row.items() if key not in ("policy", "query")}, sort_keys=True)


def killed(run: Run, kills: int, lot: random.Random, every: str = "0.1 s") -> int:
    """Kill so many times, then let the run come to the end of what was sent; gives the number of rows.

    Raises
    ------
    AssertionError
        If they are not those of the run over all events, each once.
    """
    for _ in range(kills):
        with run.started(every) as process:
            try:
                deadline = time.monotonic() + WAIT
                while not (run.folder / "ck" / "lock").exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                until = time.monotonic() + lot.uniform(0.3, 3.0)
                while time.monotonic() < until:
                    run.send(lot.randint(1, 30))
                    time.sleep(lot.random() * 0.1)
            finally:
                process.kill()
    expected = run.whole()
    with run.started(every) as process:
        try:
            wait_for(lambda: len(run.rows()) >= len(expected), process)
        finally:
            process.kill()
    assert sorted(run.rows()) == sorted(expected), f"{len(run.rows())} rows, and not {len(expected)}"
    return len(expected)


def wait_for(true: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait while a process runs."""
    deadline = time.monotonic() + WAIT
    while not true():
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1].decode())
        assert time.monotonic() < deadline, "the rows did not come"
        time.sleep(0.1)


def main() -> None:
    """Try all, and print a line of each."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    brokers = os.environ.get("KAFKA_BOOTSTRAP")
    if brokers is None:
        from tests.live.kafka_broker import Broker

        brokers = Broker().address
    for source, sink in PAIRS:
        for notation in NOTATIONS:
            with tempfile.TemporaryDirectory() as name:
                run = Run(Path(name), notation, source, sink, brokers)
                rows = killed(run, chosen.kills, random.Random(f"{chosen.seed}{notation}{source}{sink}"))
            told = f"{notation}, {source} to {sink}: {chosen.kills} kills, {run.sent} events, {rows} rows, each once\n"
            sys.stdout.write(told)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
