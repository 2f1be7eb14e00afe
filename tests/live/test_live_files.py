"""Streams that do not end: growing files, folders, sockets, stops and checkpoints."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from hamlet.cli import main
from hamlet.cli.interrupt import heard_at_once
from hamlet.input.live import merging
from hamlet.input.live.sources import Ended, FileSource
from hamlet.runtime import runs
from hamlet.runtime.feed import Feed
from hamlet.runtime.stop import Stop, readable

ROOT = Path(__file__).resolve().parents[2]
POLICY = ["monitor", "p.mfotl", "--signature", "p.sig"]
WAIT = 60
RISING = """SELECT * FROM events MATCH_RECOGNIZE (ORDER BY time MEASURES FIRST(time) AS a, COUNT(*) AS n
    AFTER MATCH SKIP PAST LAST ROW PATTERN (a b+) DEFINE b AS x > PREV(x))"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    (tmp_path / "q.sase").write_text("RETURN COUNT(*), SUM(A.x) PATTERN A+ WITHIN 3 s SLIDE 1 s")
    (tmp_path / "q.sql").write_text(RISING)
    (tmp_path / "s.lola").write_text("input x: Int64  output n := n.offset(by: -1).defaults(to: 0) + x  trigger n > 0")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hamlet", *arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)


@contextlib.contextmanager
def running(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with process(*arguments, **options) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                run.kill()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def xs(run: subprocess.Popen[bytes], count: int) -> list[int]:
    assert run.stdout is not None
    return [json.loads(run.stdout.readline())["x"] for _ in range(count)]


def stopped(run: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> str:
    run.send_signal(number)
    started = time.monotonic()
    _, err = run.communicate(timeout=WAIT)
    assert time.monotonic() - started < 5
    assert run.returncode == 128 + number
    assert f"stopped by {number.name} after " in err.decode()
    return err.decode()


def test_a_growing_file_through_rotation_and_cuts(folder: Path) -> None:
    log = folder / "a.csv"
    log.write_text("time,type,x\n1,publish,1\n")
    with running(*POLICY, "--input", "a.csv", "--follow", "--output", "-") as run:
        append(log, "2,publish,2\n3,pub")
        assert xs(run, 1) == [1]
        append(log, "lish,3\n")
        assert xs(run, 1) == [2]
        log.rename(folder / "a.csv.1")
        append(folder / "a.csv.1", "4,publish,4\n")  # its writer goes on for a while
        time.sleep(0.2)
        log.write_text("x,type,time\n5,publish,5\n6,publish,6\n")  # with a header of its own
        assert xs(run, 3) == [3, 4, 5]
        log.write_text("time,type,x\n7,publish,7\n")  # cut, and begun anew
        assert xs(run, 1) == [6]
        append(log, "8,publish,8\n")
        assert xs(run, 1) == [7]
        assert "after 8 events" in stopped(run)


NAMES = [
    ["a.csv.2", "a.csv.1"],
    ["a.csv.8", "a.csv.9"],
    ["a.csv-0930", "a.csv-1001"],
    ["a-1.csv", "a-2.csv"],
]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("started_again", [False, True])
def test_files_that_were_renamed_between_two_looks_are_read_in_turn(
    folder: Path, names: tuple[str, str], started_again: bool
) -> None:
    log = folder / "a.csv"
    source = FileSource(log, True)
    log.write_text("one\n")
    ((stream, _),) = source.read(set())
    if started_again:
        place = source.place(stream, len("one\n"), 2, None)
        source.close()
        source = FileSource(log, True)
    for number, name in enumerate(names):
        append(log, f"last of {number}\n")
        log.rename(folder / name)
        os.utime(folder / name, (number, number))
        (folder / f"a.csv.bak{number}").write_text("another name")
        log.write_text(f"first after {number}\n")
    if started_again:
        source.resume(place)
    came = [data for _ in range(20) for _, data in source.read(set())]
    whole = Ended(True)
    assert came == [b"last of 0\n", whole, b"first after 0\nlast of 1\n", whole, b"first after 1\n"]
    source.close()


def test_a_time_point_of_a_log_goes_on_behind_a_rotation(folder: Path) -> None:
    """The new file then begins with a predicate, and is a log all the same."""
    log = folder / "a.log"
    log.write_text("@1 publish(1)\n@2 publish(2)\n")
    with running(*POLICY, "--input", "a.log", "--follow", "--output", "-") as run:
        assert xs(run, 1) == [1]
        log.rename(folder / "a.log.1")
        log.write_text("publish(3)\n@4 publish(4)\n@5\n")
        assert xs(run, 3) == [2, 3, 4]
        stopped(run)


def test_a_folder_takes_new_files_by_name(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "2.jsonl").write_text('{"time": 2, "type": "publish", "x": 2}\n')
    (folder / "in" / "1.jsonl").write_text('{"time": 1, "type": "publish", "x": 1}')
    (folder / "in" / "_3.jsonl").write_text("no rows yet")
    (folder / "in" / ".3.jsonl").write_text("no rows yet")
    with running(*POLICY, "--input", "in", "--follow", "--output", "-") as run:
        assert xs(run, 1) == [1]
        (folder / "in" / "_3.jsonl").write_text('{"time": 3, "type": "publish", "x": 3}\n')
        (folder / "in" / "_3.jsonl").rename(folder / "in" / "3.jsonl")
        assert xs(run, 1) == [2]
        stopped(run, signal.SIGINT)


def test_the_last_time_points_of_the_logs_of_a_folder(folder: Path) -> None:
    (folder / "in").mkdir()
    for at in (1, 3, 5):
        (folder / "in" / f"{at}.log").write_text(f"@{at} publish({at})\n@{at + 1} publish({at + 1})\n")
    with running(*POLICY, "--input", "in", "--follow", "--output", "-") as run:
        assert xs(run, 6) == [1, 2, 3, 4, 5, 6]  # a file is complete, and so is its last time-point
        stopped(run)


class Receiver(threading.Thread):
    """Listens, and keeps what comes."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(daemon=True)
        self.listener, self.data = listener, b""
        self.start()

    def run(self) -> None:
        connection, _ = self.listener.accept()
        while part := connection.recv(1 << 16):
            self.data += part


def sent(address: Any, data: bytes) -> None:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as connection:
        deadline = time.monotonic() + WAIT
        while True:
            try:
                connection.connect(address)
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        connection.sendall(data)


def test_sockets(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = str(folder / "in.sock")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)  # and nobody listens any more
    out = str(folder / "out.sock")
    inputs = ["--input", f"tcp://127.0.0.1:{port}", "--input", f"unix:{path}", "--input-format", "csv"]
    with running(*POLICY, *inputs, "--output", f"unix:{out}", "--bad-rows", "drop", "--lateness", "9") as run:
        sent(("127.0.0.1", port), b"time,type,x\n1,publish,1\n2,pub")
        sent(path, b"x,time,type\n3,3,publish\n20,20,publish\n30,30,publish\n")
        time.sleep(0.3)
        with socket.socket(socket.AF_UNIX) as listener:  # it was away until now
            listener.bind(out)
            listener.listen()
            receiver = Receiver(listener)
            until(lambda: receiver.data.count(b"\n") == 3)
            err = stopped(run)
            receiver.join(WAIT)
    assert [json.loads(line)["x"] for line in receiver.data.splitlines()] == [1, 3, 20]
    assert "1 bad rows" in err
    assert "after 4 events" in err
    assert not os.path.exists(path)


def test_row_patterns_from_one_socket_file_to_another(folder: Path) -> None:
    clause = "ORDER BY time MEASURES FIRST(x) AS x, COUNT(*) AS n PATTERN (p q) DEFINE p AS x > 0, q AS x > PREV(x)"
    (folder / "m.sql").write_text(f"SELECT * FROM events MATCH_RECOGNIZE ({clause})")
    path, out = str(folder / "in.sock"), str(folder / "out.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(out)
        listener.listen()
        receiver = Receiver(listener)
        with running("run", "m.sql", "--input", f"unix:{path}", "--output", f"unix:{out}") as run:
            sent(path, b'{"time": 1, "x": 1}\n{"time": 2, "x": 2}\n{"time": 3, "x": 5}\n')
            until(lambda: receiver.data.count(b"\n") == 1)  # while the connection is over and the stream is not
            sent(path, b'{"time": 4, "x": 7}\n{"time": 5, "x": 1}\n')
            until(lambda: receiver.data.count(b"\n") == 2)
            err = stopped(run)
        receiver.join(WAIT)
    assert [tuple(json.loads(line).values())[-2:] for line in receiver.data.splitlines()] == [(1, 2), (5, 2)]
    assert "after 5 events" in err
    assert not os.path.exists(path)


def test_what_cannot_be_listened_to(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken, socket.socket(socket.AF_UNIX) as file:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        file.bind("in.sock")
        file.listen()
        (folder / "a.txt").write_text("")
        port = taken.getsockname()[1]
        for url in (f"tcp://127.0.0.1:{port}", "tcp://127.0.0.1", "unix:in.sock", "unix:a.txt", "ftp://x"):
            assert main([*POLICY, "--input", url, "--follow", "--output", "-"]) == 2
            assert capfd.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("lines", [b"oops\n", b'{"time": 1, "type": "publish", "x": 3}\n'])
def test_rows_that_were_final_are_given_in_parquet_too(folder: Path, lines: bytes) -> None:
    good = b'{"time": 1, "type": "publish", "x": 1}\n{"time": 2, "type": "publish", "x": 2}\n'
    (folder / "a.jsonl").write_bytes(good + lines)
    assert main([*POLICY, "--input", "a.jsonl", "--follow", "--output", "o"]) == 2
    (rows,) = (folder / "o" / "policy=p").iterdir()
    assert rows.name == "part-00000.parquet"
    assert pq.read_table(rows)["x"].to_pylist() == [1]


def test_what_can_be_there_once_only(capfd: pytest.CaptureFixture[str]) -> None:
    for options in (["--input", "-", "--input", "-"], ["--input", "-", "--output", "o", "--output", "o"]):
        assert main([*POLICY, *options]) == 2
        assert "is given twice" in capfd.readouterr().err


def hears(pid: int, wanted: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> (wanted - 1) & 1)


def test_a_stop_while_nobody_takes_rows(folder: Path) -> None:
    (folder / "log").write_bytes(b"@1 publish(1)\n@2 publish(2)\n")
    others = ["--output", "-", "--output", "rows", "--output-format", "json"]
    with running(*POLICY, "--input", "log", "--follow", "--output", "unix:nobody.sock", *others) as run:
        assert run.stderr is not None
        until(lambda: hears(run.pid, signal.SIGTERM))
        time.sleep(1.5)  # it tries again and again
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=5) == 143
        said = run.stderr.read().decode()
        assert xs(run, 1) == [1]
    assert "rows were not sent, since nobody listens at unix:nobody.sock" in said
    assert (folder / "rows" / "policy=p" / "part-00000.json").read_text()
    assert said.endswith("stopped by SIGTERM after 1 events\n")


def test_a_stop_tells_of_what_was_not_done_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    codes: list[int] = []
    monkeypatch.setattr("hamlet.runtime.stop.GRACE", 0.05)
    monkeypatch.setattr("os._exit", codes.append)
    with Stop(said.append).listening():
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: bool(codes))
    assert codes == [143]
    assert said[0] == "what was under way took more than 0.05 s: the last rows may not be written"
    assert said[1] == "stopped by SIGTERM after 0 events"


def test_signals_are_heard_beyond_a_thousand_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """`select.select` takes none beyond 1,023."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 1100:
        pytest.skip("the process may not have as many")
    said: list[str] = []
    monkeypatch.setattr("hamlet.cli.interrupt._MOMENT", 0.01)
    monkeypatch.setattr("hamlet.cli.interrupt._say", said.append)
    with contextlib.ExitStack() as opened:
        for _ in range(1100):
            opened.callback(os.close, os.dup(0))
        with Stop().listening() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert readable(stop.fd, 5)
        opened.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, lambda *_: None))
        with heard_at_once():
            os.kill(os.getpid(), signal.SIGINT)
            until(lambda: bool(said))


def test_a_stop_while_arrow_reads() -> None:
    class Interrupted(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() and not heard:
                heard.append(signal.SIGINT)  # a second one would end the process
                signal.raise_signal(signal.SIGINT)
            return super().read(size)

    heard: list[signal.Signals] = []
    options = csv.ReadOptions(block_size=1000, use_threads=False)
    with Stop().listening() as stop:
        assert csv.read_csv(Interrupted(b"x\n" + b"1\n" * 10_000), options).num_rows == 10_000
        until(lambda: stop.asked)


def test_a_second_signal_ends_at_once(folder: Path) -> None:
    os.mkfifo(folder / "full")
    reader = os.open(folder / "full", os.O_RDONLY | os.O_NONBLOCK)  # which never reads
    lines = "".join(f"@{at} publish({at})\n" for at in range(1, 60_000))
    (folder / "a.log").write_text(lines)
    writer = os.open(folder / "full", os.O_WRONLY)
    with running(*POLICY, "--input", "a.log", "--follow", "--output", "-", stdout=writer) as run:
        until(lambda: bool(select.select([reader], [], [], 0)[0]))
        time.sleep(0.3)  # until the pipe is full
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        started = time.monotonic()
        assert run.wait(timeout=WAIT) == 130
        assert time.monotonic() - started < 3
        assert run.stderr is not None
        assert b"stopped by SIGINT after" in run.stderr.read()
    os.close(reader)
    os.close(writer)


SAVED = {
    "policy": (POLICY, "a.log", "@{0} publish({0})\n", ""),
    "query": (["run", "q.sase"], "a.jsonl", '{{"time": {0}, "type": "A", "x": {0}}}\n', ""),
    "specification": (["monitor", "s.lola", "--values"], "a.csv", "{0},{0}\n", "time,x\n"),
}


def rows_of(folder: Path) -> list[str]:
    return [line for file in sorted(folder.rglob("part-*")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("task", SAVED)
def test_each_row_once_after_kills(task: str, folder: Path) -> None:
    arguments, name, line, head = SAVED[task]
    lot = random.Random(task)
    (folder / name).write_text(head)
    common = [*arguments, "--input", name, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    at = 0
    for _ in range(3):
        with running(*common, "--follow", "--every", "0.05 s") as run:
            until(lambda: (folder / "ck" / "lock").exists() and len(list((folder / "ck").glob("*.save"))) > 0)
            for _ in range(lot.randint(2, 6)):
                more = lot.randint(1, 40)
                append(folder / name, "".join(line.format(at + place) for place in range(more)))
                at += more
                time.sleep(lot.random() * 0.1)
            os.kill(run.pid, signal.SIGKILL)
            run.wait(timeout=WAIT)
    with running(*common) as run:
        assert run.wait(timeout=WAIT) == 0
    assert main([*arguments, "--input", name, "--output", "whole", "--output-format", "json", "--quiet"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole")
    assert not list((folder / "out").rglob(".part-*"))


LEARNT = {  # what lines before a stop say of columns, and lines behind it that go on so
    "times of JSON as text, policy": ([*POLICY], "a.jsonl", "", '{"time": "%d", "type": "publish", "x": 1}\n'),
    "times of JSON as text, query": (["run", "q.sase"], "a.jsonl", "", '{"ts": "%d", "type": "A", "x": 1}\n'),
    "texts that are digits": (["monitor", "s.lola", "--where", "k <> '7'"], "a.csv", "time,x,k\n", "%d,1,%s\n"),
}


@pytest.mark.parametrize("task", LEARNT)
@pytest.mark.parametrize("how", ["stop", "rotation"])
def test_what_was_learnt_of_columns_is_known_in_what_follows(how: str, task: str, folder: Path) -> None:
    arguments, name, head, line = LEARNT[task]
    lines = [line % ((at, "a" if at < 4 else "12") if line.endswith("%s\n") else at) for at in range(8)]
    (folder / "whole").with_suffix(Path(name).suffix).write_text(head + "".join(lines))
    whole = ["--input", f"whole{Path(name).suffix}", "--output", "whole", "--output-format", "json", "--quiet"]
    assert main([*arguments, *whole]) == 0
    common = [*arguments, "--input", name, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    (folder / name).write_text(head + "".join(lines[:4]))
    with running(*common, "--follow", "--every", "0.05 s") as run:
        until(lambda: len(rows_of(folder / "out")) > 0)
        if how == "rotation":
            (folder / name).rename(folder / f"{name}.1")
            append(folder / name, head)
        else:
            stopped(run)
        append(folder / name, "".join(lines[4:]))
        if how == "rotation":
            until(lambda: len(rows_of(folder / "out")) >= len(rows_of(folder / "whole")) - 3)
            stopped(run)
    assert main([*common, "--quiet"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole")


def saves_in(folder: Path) -> set[str]:
    return {each.name for each in (folder / "ck").glob("*.save")}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", SAVED)
def test_a_run_that_is_started_again_and_reads_nothing_keeps_its_place(task: str, folder: Path) -> None:
    arguments, name, line, head = SAVED[task]
    (folder / name).write_text(head + "".join(line.format(at) for at in range(100)))
    common = [*arguments, "--input", name, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        before = saves_in(folder)
        with running(*common, "--follow", "--every", "0.05 s") as run:
            until(lambda before=before: saves_in(folder) - before and rows_of(folder / "out"))  # type: ignore[misc]
            run.send_signal(how)
            run.wait(timeout=WAIT)
    append(folder / name, line.format(100))
    with running(*common) as run:
        assert run.wait(timeout=WAIT) == 0
    assert main([*arguments, "--input", name, "--output", "whole", "--output-format", "json", "--quiet"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole")


def test_a_run_that_was_killed_before_its_first_save(folder: Path) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    (folder / "out" / "policy=p").mkdir(parents=True)
    (folder / "ck").mkdir()
    (folder / "ck" / "lock").write_text("1\n")
    assert main([*POLICY, "--input", "a.log", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]) == 0
    assert len(rows_of(folder / "out")) == 1
    assert main([*POLICY, "--input", "a.log", "--output", "s3://x", "--checkpoint", "other"]) == 2


def test_a_file_that_is_renamed_before_it_has_been_read(folder: Path) -> None:
    (folder / "a.csv").write_text("old")
    place = FileSource(Path("a.csv"), True).start()
    (folder / "a.csv").rename(folder / "a.csv.1")
    (folder / "a.csv").write_text("new")
    source = FileSource(Path("a.csv"), True)
    source.resume(place)
    assert [data for _ in range(4) for _, data in source.read(set())] == [b"old", Ended(True), b"new"]


def test_a_checkpoint_of_others(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    common = ["--input", "a.log", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*POLICY, *common, "--follow", "--every", "0.1 s") as run:
        until(lambda: len(list((folder / "ck").glob("*.save"))) == 2)
        assert main([*POLICY, *common]) == 2
        assert f"in use by process {run.pid}" in capfd.readouterr().err
        stopped(run)
    text = (folder / "p.mfotl").read_text()
    (folder / "p.mfotl").write_text("publish(x) AND x > 7")
    assert main([*POLICY, *common]) == 2
    assert "they differ" in capfd.readouterr().err
    (folder / "p.mfotl").write_text(f"# a comment\n{text}")
    latest = max((folder / "ck").glob("*.save"))
    latest.write_bytes(latest.read_bytes()[:-9])  # torn: the one before is taken
    assert main([*POLICY, *common]) == 0
    assert [json.loads(line)["x"] for line in rows_of(folder / "out")] == [1]


@pytest.mark.parametrize("count", [3, 300])
def test_a_file_that_was_begun_anew_between_two_runs(count: int, folder: Path) -> None:
    """Also where it is longer by now than what was read of the one before, whose number it has."""
    (folder / "a.csv").write_text("time,type,x\n" + "".join(f"{at},publish,1\n" for at in range(30)))
    common = [*POLICY, "--input", "a.csv", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, "--follow", "--every", "0.05 s") as run:
        until(lambda: len(rows_of(folder / "out")) == 29)
        stopped(run)
    (folder / "a.csv").write_text("x,time,type\n" + "".join(f"2,{at},publish\n" for at in range(100, 100 + count)))
    assert main([*common, "--quiet"]) == 0
    assert [json.loads(line)["x"] for line in rows_of(folder / "out")] == [1] * 30 + [2] * count


COMMENTED = {
    "policy": ("p.mfotl", "# a comment\npublish(x)\n  AND x > 0"),
    "query": ("q.sase", "-- a comment\nRETURN COUNT(*), SUM(A.x)\n PATTERN A+ WITHIN 3 s SLIDE 1 s"),
    "specification": (
        "s.lola",
        "// a comment\ninput x: Int64\noutput n := n.offset(by: -1).defaults(to: 0) + x\ntrigger n > 0",
    ),
}


@pytest.mark.parametrize("task", COMMENTED)
def test_a_checkpoint_of_a_text_with_other_comments(task: str, folder: Path) -> None:
    arguments, name, line, head = SAVED[task]
    (folder / name).write_text(head + "".join(line.format(at) for at in range(9)))
    common = [*arguments, "--input", name, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, "--follow", "--every", "0.05 s") as run:
        until(lambda: len(rows_of(folder / "out")) > 0)
        stopped(run)
    (folder / COMMENTED[task][0]).write_text(COMMENTED[task][1])
    append(folder / name, line.format(9))
    assert main([*common, "--quiet"]) == 0
    assert main([*arguments, "--input", name, "--output", "whole", "--output-format", "json", "--quiet"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole")


def test_a_checkpoint_of_a_statement_with_other_comments(folder: Path) -> None:
    common = ["--input", "a.csv", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    (folder / "a.csv").write_text("time,x\n1,1\n2,-2\n")
    with running("sql", MATCH, *common, "--follow", "--every", "0.05 s") as run:
        until(lambda: len(saves_in(folder)) > 1)
        stopped(run)
    append(folder / "a.csv", "3,3\n4,-4\n")
    assert main(["sql", MATCH.replace("PATTERN", "/* what is found */\nPATTERN"), *common, "--quiet"]) == 0
    assert main(["sql", MATCH, "--input", "a.csv", "--output", "whole", "--output-format", "json", "--quiet"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole") != []


def test_one_run_at_a_time_writes_to_a_folder(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Before there is a file in it, and on copies of one checkpoint, too."""
    (folder / "a.log").write_text("@1 publish(-1)\n@2 publish(2)\n")
    common = [*POLICY, "--input", "a.log", "--output", "out", "--output-format", "json"]
    with running(*common, "--checkpoint", "ck", "--follow", "--every", "0.05 s") as run:
        until(lambda: len(saves_in(folder)) > 1)
        shutil.copytree(folder / "ck", folder / "copy")
        for others in (["--checkpoint", "copy"], ["--checkpoint", "new"], ["--overwrite", "--http", "127.0.0.1:0"], []):
            assert main([*common, *(others or ["--overwrite"])]) == 2
            assert f"another run writes to {folder / 'out'}" in capfd.readouterr().err
        append(folder / "a.log", "@3 publish(3)\n@4 publish(4)\n")
        until(lambda: len(rows_of(folder / "out")) == 2)
        stopped(run)
    assert main([*common, "--checkpoint", "copy"]) == 0
    assert [json.loads(line)["x"] for line in rows_of(folder / "out")] == [2, 3, 4]


def test_a_run_that_was_killed_before_its_last_files_got_their_names(folder: Path) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    common = [*POLICY, "--input", "a.log", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    assert main(common) == 0
    (file,) = (folder / "out").rglob("part-*")
    file.rename(file.with_name(f".{file.name}"))
    assert main(common) == 0
    assert len(rows_of(folder / "out")) == 1


def test_rows_that_were_found_before_a_run_was_started_again(folder: Path) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    common = [*POLICY, "--input", "a.log", "--output", "out", "--checkpoint", "ck", "--fail-on-rows"]
    for _ in range(2):
        assert main(common) == 3


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("policy", ["--open-end"], "without --open-end"),
        ("policy", ["--verdicts", "all"], "with --verdicts satisfied"),
        ("query", ["--lateness", "5 s"], "with --lateness 0"),
        ("query", ["--type-column", "x"], "with --type-column type"),
        ("specification", ["--time-unit", "ms"], "with --time-unit s"),
    ],
)
def test_a_checkpoint_of_other_options(
    task: str, options: list[str], said: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is saved goes on as it was asked for, so that others would do nothing."""
    arguments, name, line, head = SAVED[task]
    (folder / name).write_text(head + "".join(line.format(at) for at in range(9)))
    common = [*arguments, "--input", name, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, "--follow", "--every", "0.05 s") as run:
        until(lambda: len(rows_of(folder / "out")) > 0)
        stopped(run)
    assert main([*common, *options]) == 2
    assert f"the checkpoint ck is of a run {said}\n" in capfd.readouterr().err
    column = [] if name.endswith(".log") else ["--time-column", "time"]
    assert main([*common, *column, "--quiet"]) == 0


MATCH = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time MEASURES 1 AS x PATTERN (a+ b) DEFINE b AS x < 0)"
GROWING = {  # what keeps more with every line
    "policy": ("p.mfotl", "publish(x) AND ONCE approve(x)", [*POLICY]),
    "verdicts": ("p.mfotl", "EVENTUALLY[0,1000] approve(x)", [*POLICY, "--verdicts", "all"]),
    "query": ("q.sase", "RETURN COUNT(*) PATTERN publish GROUP-BY x WITHIN 9 s", ["run", "q.sase"]),
    "specification": ("s.lola", "input x: Int64  output n(k) spawn with x eval when x = k", ["monitor", "s.lola"]),
    "pattern": ("r.sql", "", ["sql", MATCH]),
}


@pytest.mark.parametrize("task", GROWING)
def test_a_checkpoint_goes_on_with_a_larger_limit_of_memory(
    task: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The limit is that of the new start, and not the one of the run that could not go on."""
    name, text, arguments = GROWING[task]
    (folder / name).write_text(text)
    (folder / "p.sig").write_text("publish(x: int) approve(x: int)")
    lines = [f"{at // 1000},{'approve' if at % 2 else 'publish'},{at // 2}\n" for at in range(8000)]
    (folder / "a.csv").write_text("time,type,x\n" + "".join(lines[:20]))
    source = ["--input", "e=a.csv" if task == "pattern" else "a.csv"]
    common = [*arguments, *source, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, "--max-memory", "40 kB", "--follow", "--every", "0.05 s") as run:
        until(lambda: len(saves_in(folder)) > 1)
        stopped(run)
    append(folder / "a.csv", "".join(lines[20:]))
    for _ in range(2):
        assert main([*common, "--max-memory", "40 kB"]) == 2
        assert "more memory than its limit, 39.1 KiB" in capfd.readouterr().err
    assert main([*common, "--max-memory", "1 GiB", "--quiet"]) == 0
    assert main([*arguments, *source, "--output", "whole", "--output-format", "json", "--quiet"]) == 0
    assert sorted(rows_of(folder / "out")) == sorted(rows_of(folder / "whole"))


def test_a_pipe_cannot_be_read_again(folder: Path) -> None:
    common = [*POLICY, "--input", "-", "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        run.stdin.write(b"@1 publish(1)\n@2 publish(2)\n@3 publish(3)\n")
        run.stdin.flush()
        until(lambda: any(file.read_bytes().count(b"\n") == 2 for file in (folder / "out").rglob(".part-*")))
        stopped(run)
    with running(*common, stdin=subprocess.PIPE) as run:
        _, err = run.communicate(b"@4 publish(4)\n", timeout=WAIT)
    assert b"a pipe cannot be read again: events after number 2 (time 2) were at stake" in err
    assert [json.loads(line)["x"] for line in rows_of(folder / "out")] == [1, 2, 4]


def test_a_merged_file_that_begins_late_does_not_hold_up_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of JSON have no header, by which a stream would be known from its start."""
    alone: list[int] = []
    whole = Feed.data
    monkeypatch.setattr(Feed, "data", lambda feed, data: (alone.append(data.count(b"\n")), whole(feed, data))[1])
    inputs = []
    for number, times in enumerate((range(0, 400, 2), range(1, 400, 2), (300, 310))):
        (folder / f"{number}.jsonl").write_text("".join(f'{{"time": {t}, "type": "A", "x": 1}}\n' for t in times))
        inputs += ["--input", f"{number}.jsonl"]
    command = ["run", "q.sase", *inputs, "--output-format", "json", "--quiet", "--output"]
    assert main([*command, "out", "--checkpoint", "ck"]) == 0
    assert 0 < sum(alone) < 10
    assert main([*command, "whole"]) == 0
    assert rows_of(folder / "out") == rows_of(folder / "whole")


MERGED = {
    "policy": (POLICY, "publish", "note {0}"),
    "query": (["run", "q.sase"], "A", '"two\nlines"'),
    "specification": (["monitor", "s.lola", "--values"], "-", ""),
    "row pattern": (["run", "q.sql"], "r", "x"),
}


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("task", MERGED)
def test_files_that_end_are_merged_by_time(
    task: str, plain: bool, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is read at once; of plain files runs are pushed together."""
    monkeypatch.setattr(merging, "READ", 200)
    together: list[bool] = []
    whole_runs = runs._together
    monkeypatch.setattr(
        runs, "_together", lambda *all_: (found := whole_runs(*all_), together.append(found is not None))[0]
    )
    arguments, kind, note = MERGED[task]
    lot = random.Random(task)
    inputs = []
    for number, size in enumerate((40, 40, lot.choice([0, 3, 40]))):
        times = sorted(lot.choices(range(60), k=size))
        rows = [f"{time},{kind},{lot.randrange(1, 100)},{'' if plain else note.format(time)}\n" for time in times]
        if not plain:  # blank lines are no events
            rows = [row + "\n" * (lot.random() < 0.1) for row in rows]
        (folder / f"{number}.csv").write_text("time,type,x,note\n" + "".join(rows))
        inputs += ["--input", f"{number}.csv"]
    assert main([*arguments, *inputs, "--output", "-", "--quiet"]) == 0
    whole = capfd.readouterr().out
    assert main([*arguments, *inputs, "--output", "-", "--quiet", "--http", "127.0.0.1:0"]) == 0
    assert capfd.readouterr().out == whole
    assert any(together) or not plain
    common = [*arguments, *inputs, "--output", "out", "--output-format", "json", "--checkpoint", "ck"]
    with running(*common, "--every", "0.001 s") as run:
        until(lambda: len(list((folder / "ck").glob("*.save"))) == 2)
        run.kill()
    assert main([*common, "--quiet"]) == 0
    assert len(rows_of(folder / "out")) == whole.count("\n")
