"""A file as if it happened now; random files as pipes."""

from __future__ import annotations

import json
import random
import re
import signal
from pathlib import Path

import pytest

from hamlet.cli import main
from tests.live.test_live_files import POLICY, hears, running, stopped, until
from tests.live.test_live_pipe import given

QUERY = "RETURN s, COUNT(*), SUM(B.v), MAX(B.f) PATTERN SEQ(A a, B+) WHERE [s] GROUP-BY s WITHIN 5 s SLIDE 2 s"
SPECIFICATION = """
input v: Int64
input f: Float64
input s: String
output n := n.offset(by: -1).defaults(to: 0) + v
output m @1Hz := f.aggregate(over: 3s, using: sum)
trigger eval when s = "x y" with "xy"
"""
TASKS = (
    ["run", "q.sase"],
    ["monitor", "b.mfotl", "e.mfotl", "--signature", "s.sig"],
    ["monitor", "s.lola", "--values"],
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.sase").write_text(QUERY)
    (tmp_path / "s.sig").write_text("A(s: string, v: int) B(s: string, v: int, f: float)")
    (tmp_path / "b.mfotl").write_text("B(s, v, f) AND NOT ONCE[0,3] A(s, v)")
    (tmp_path / "e.mfotl").write_text("ALWAYS FORALL s, v. A(s, v) IMPLIES EVENTUALLY[0,4] EXISTS f. B(s, v, f)")
    (tmp_path / "s.lola").write_text(SPECIFICATION)
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines_by_lot(lot: random.Random) -> list[str]:
    time, found = 0, []
    stamps = lot.random() < 0.3
    strings = lot.choice((["a", "b"], ["x y", "\N{GREEK SMALL LETTER ALPHA}", '"q"', "p,q"]))
    for _ in range(lot.choice((30, 120))):
        time += lot.choice((0, 0, 1, 2))
        at = f"2024-01-01T00:{time // 60:02}:{time % 60:02}" if stamps else time
        event = {
            "time": at,
            "type": lot.choice("AABBC"),
            "s": lot.choice(strings),
            "v": lot.randint(0, 9),
            "f": lot.random(),
        }
        if lot.random() < 0.1:
            event[lot.choice(("s", "v", "f"))] = None
        found.append(json.dumps(event, ensure_ascii=lot.random() < 0.5))
    return found


@pytest.mark.parametrize("seed", range(24))
def test_random_lines_as_a_pipe_and_as_a_file(
    seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lot = random.Random(seed)
    text = "\n".join(lines_by_lot(lot))
    (folder / "e.jsonl").write_text(text, encoding="utf-8")
    arguments = [*TASKS[seed % len(TASKS)], "--output", "-", "--quiet", "--output-format", lot.choice(("json", "csv"))]
    assert main([*arguments, "--input", "e.jsonl"]) == 0
    expected = capfd.readouterr().out
    given(monkeypatch, text.encode(), lot.choice((1, 40, 300, 100_000)))
    assert main([*arguments, "--input", "-"]) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(expected.splitlines())


def test_lines_are_sent_unchanged(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for name, text in (
        ("a.csv", b"time,x\r\n1,\xc3\xa4\r\n1.5,2\r\n2,3"),
        ("a.log", b"# a log\n@1 p(1)\n p(2)\n@2 p(3)\n"),
        ("a.jsonl", b'{"time": 1}\n\n{"time":   1.25}\n{"time": 2}\n'),
        ("b.csv", b'\n\nx,time\n"1,5",1\n"a\n2,9",2\nb,3\n'),
    ):
        (folder / name).write_bytes(text)
        for pace in (["--rate", "1000"], ["--speed", "10"]):
            assert main(["replay", name, *pace, "--report"]) == 0
            out, err = capfdbinary.readouterr()
            assert out == text
            found = re.search(rb"in ([\d.]+) s .*at most [\d.]+ ms behind\n$", err)
            assert found is not None
            assert pace[0] == "--rate" or float(found[1]) >= 0.1


def test_what_is_wrong_with_a_line_or_an_option(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "a.jsonl").write_text('{"time": 1}\n{"time": 2}\n{"ti\n')
    assert main(["replay", "a.jsonl", "--speed", "1000"]) == 2
    out, err = capfd.readouterr()
    assert out.count("\n") == 2  # what was due before
    assert err.startswith("error: a.jsonl:3: the line is no JSON")
    assert main(["replay", "a.jsonl", "--rate", "9", "--time-unit", "ms"]) == 2
    assert "--time-unit is for --speed" in capfd.readouterr().err
    assert main(["replay", str(folder), "--rate", "9"]) == 2
    assert "did you mean" not in capfd.readouterr().err


def test_nothing_is_sent_of_an_empty_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").write_text("")
    assert main(["replay", "a.csv", "--speed", "1"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("target", "told"), [("-", ""), ("unix:nobody.sock", "rows were not sent, since nobody listens")]
)
def test_a_stop(folder: Path, target: str, told: str) -> None:
    (folder / "a.log").write_text("@1 p(1)\n@90 p(2)\n")
    with running("replay", "a.log", "--speed", "1", "--to", target) as run:
        until(lambda: hears(run.pid, signal.SIGTERM))
        said = stopped(run)
    assert told in said


@pytest.mark.parametrize("blank", ["", "\n\r\n"])
def test_files_are_merged_by_time_whatever_their_values(
    blank: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.csv").write_text(blank + 'note,time,type,x\n"a, ""b""",1,publish,1\n"c, d",3,publish,3\n')
    (folder / "b.jsonl").write_text(blank + '{"time": 2, "type": "publish", "x": 2}\n')
    (folder / "c.csv").write_text(blank)
    inputs = ["--input", "a.csv", "--input", "b.jsonl", "--input", "c.csv", "--checkpoint", "c"]
    assert main([*POLICY, *inputs, "--output", "-", "--quiet"]) == 0
    assert [json.loads(line)["x"] for line in capfd.readouterr().out.splitlines()] == [1, 2, 3]


def test_a_rate_to_a_socket(folder: Path) -> None:
    (folder / "a.log").write_text("".join(f"@{at} publish({at})\n" for at in range(1, 501)))
    with running(*POLICY, "--input", "unix:in.sock", "--output", "out", "--output-format", "json") as run:
        until(lambda: (folder / "in.sock").exists())
        assert main(["replay", "a.log", "--rate", "2000", "--to", "unix:in.sock"]) == 0
        file = folder / "out" / "policy=p" / "part-00000.json"
        until(lambda: file.exists() and file.read_text().count("\n") == 499)
        assert "after 499 events" in stopped(run)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.log"], "give --rate N, lines per second, or --speed X"),
        (["a.log", "--rate", "1", "--speed", "1"], "give --rate N, lines per second, or --speed X"),
        (["none.log", "--rate", "1"], "cannot read none.log"),
        (["a.log", "--rate", "1", "--to", "ftp://x"], "--to is 'ftp://x'"),
        (["b.csv", "--speed", "1"], "there is no column 'time'"),
        (["c.jsonl", "--speed", "1"], "the first event has no 'time'"),
    ],
)
def test_what_cannot_be_sent(
    folder: Path, arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    (folder / "b.csv").write_text("at\n1\n")
    (folder / "c.jsonl").write_text('{"at": 1}\n')
    assert main(["replay", *arguments]) == 2
    assert message in capfd.readouterr().err


def test_files_that_are_whole_are_no_streams(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "a.parquet").write_bytes(b"PAR1")
    assert main(["run", "q.sase", "--input", "a.parquet", "--follow", "--output", "-"]) == 2
    assert "can be read as a whole only" in capfd.readouterr().err
