"""Row patterns over pipes and files that grow: the rows of a run over a file of the same lines, once they are final."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
import hamlet.matching
from hamlet.cli import main
from hamlet.errors import WorkloadError
from hamlet.matching import Matcher
from hamlet.patterns.match.tenant import PatternTenant

RISES = """SELECT k, f, n, s FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
MEASURES FIRST(ts) AS f, COUNT(*) AS n, SUM(v) AS s PATTERN (a b+) DEFINE b AS v > PREV(v))"""
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])


def lines(count: int) -> list[bytes]:
    dice = random.Random(3)
    rows = [{"ts": ts, "k": dice.choice("xy"), "v": dice.choice([1, 2, 3, 4.5, None])} for ts in range(count)]
    return [json.dumps(row).encode() + b"\n" for row in rows]


def hamlet_command(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hamlet", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **options)


def test_a_pipe_gives_rows_before_it_ends(tmp_path: Path) -> None:
    sent = lines(60)
    (tmp_path / "t.jsonl").write_bytes(b"".join(sent))
    (tmp_path / "q.sql").write_text(RISES)
    expected = hamlet.sql(RISES, {"t": str(tmp_path / "t.jsonl")}).rows()
    running = hamlet_command("run", str(tmp_path / "q.sql"), "--input", "t=-", "--quiet", stdin=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(b"".join(sent[:50]))
    running.stdin.flush()
    found = [json.loads(running.stdout.readline())]
    rest, said = running.communicate(b"".join(sent[50:]), 60)
    assert (running.returncode, said) == (0, b"")
    found += [json.loads(line) for line in rest.splitlines()]
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_run_that_is_killed_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    sent = lines(80)
    file, out = tmp_path / "t.jsonl", tmp_path / "out"
    file.write_bytes(b"".join(sent[:40]))
    call = ["sql", RISES, "--input", str(file), "--checkpoint", str(tmp_path / "state"), "--output", str(out)]
    call += ["--output-format", "json", "--every", "0.1 s"]
    running = hamlet_command(*call, "--follow")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(out.rglob("part-*")):
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    file.write_bytes(b"".join(sent))
    again = hamlet_command(*call)
    assert again.communicate(timeout=60)[0] == b""
    found = [json.loads(line) for part in out.rglob("part-*") for line in part.read_text().splitlines()]
    expected = hamlet.sql(RISES, {"t": str(file)}).rows()
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_types_are_learnt_as_lines_come() -> None:
    """Integers become doubles, columns appear, and what was kept goes on; saves, too."""
    tenant = PatternTenant(RISES.replace("SUM(v)", "SUM(b.v)"), "q1", {})
    parser = tenant.parser("json", "lines")
    found = []
    for block in (
        b'{"ts": 1, "k": "x", "v": null}\n{"ts": 2, "k": "x", "v": 1}\n',
        b'{"ts": 3, "k": "x", "v": 2.5}\n',
        b'{"ts": 4, "k": "x", "v": 3, "more": true}\n{"ts": 5, "k": "x", "v": 0}\n{"ts": 6, "k": "x", "v": 0}\n',
    ):
        for _, batch in tenant.push(parser.parse(block), "lines"):
            found += batch.to_pylist()
        tenant = PatternTenant(RISES.replace("SUM(v)", "SUM(b.v)"), "q1", {}, saved=tenant.save())
        parser = tenant.parser("json", "lines")
    assert found == [{"k": "x", "f": 2, "n": 3, "s": 5.5}]


def test_what_needs_all_rows_is_read_to_the_end_of_a_pipe() -> None:
    call = [
        "sql",
        RISES.replace("k, f, n, s", "COUNT(*) AS c"),
        "--input",
        "-",
        "--input-format",
        "json",
        "--output",
        "-",
    ]
    running = hamlet_command(*call, stdin=subprocess.PIPE)
    out, _ = running.communicate(b"".join(lines(60)), 60)
    assert json.loads(out)["c"] > 5
    refused = hamlet_command(*call[:3], "tcp://127.0.0.1:1")
    assert b"an aggregate needs all rows" in refused.communicate(timeout=60)[1]
    assert refused.returncode == 2


def test_a_limit_of_memory_ends_a_matcher() -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a+ b) DEFINE b AS v = 9)"
    matcher = hamlet.matching.Matcher(text, SCHEMA, max_memory="20 kB")
    matcher.push([{"k": "x", "ts": ts, "v": 1} for ts in range(50)])
    with pytest.raises(hamlet.errors.MemoryLimitError, match=r"[(]max_memory[)]"):
        matcher.push([{"k": "x", "ts": ts, "v": 1} for ts in range(50, 5000)])
    with pytest.raises(hamlet.HamletError, match="closed"):
        matcher.push([])


def test_comments_do_not_matter_to_a_save() -> None:
    matcher = hamlet.matching.Matcher(RISES, SCHEMA)
    matcher.push([{"k": "x", "ts": 1, "v": 1}, {"k": "x", "ts": 2, "v": 2}])
    again = hamlet.matching.Matcher.restore(f"-- rises\n{RISES} /* all */", matcher.save())
    assert again.push([{"k": "x", "ts": 3, "v": 0}, {"k": "x", "ts": 4, "v": 0}]) == [
        {"k": "x", "f": 1, "n": 2, "s": 3}
    ]
    assert "pattern" in again.explain()


def test_a_file_in_the_place_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.sql"
    path.write_text(RISES)
    assert main(["sql", str(path), "--input", str(tmp_path / "t.jsonl")]) == 2
    assert f"{path} is a file; hamlet run {path} runs it" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_row_without_a_time_is_a_bad_one(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {
        "json": '{"v": 0}\n{"time": 1, "v": 1}\n{"time": null, "v": 2}\n{"time": 3, "v": 3}\n',
        "csv": "time,v\n,0\n1,1\n,2\n3,3\n",
    }
    source = tmp_path / f"rows.{form}"
    source.write_text(lines[form])
    text = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time MEASURES SUM(v) AS s PATTERN (a b) DEFINE b AS v > a.v)"
    go = ["sql", text, "--input-format", form, "--input", "e=-", "--output", "-"]
    with source.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main([*go, "--bad-rows", "drop"]) == 0
    seen = capsys.readouterr()
    assert json.loads(seen.out) == {"s": 4}
    assert "2 bad rows" in seen.err
    with source.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(go) == 2
    assert f"standard input:{1 if form == 'json' else 2}: " in capsys.readouterr().err


@pytest.mark.parametrize("clause", ["ORDER BY tim", "PARTITION BY tim ORDER BY time"])
def test_a_matcher_names_the_place_of_a_column_that_is_not_there(clause: str) -> None:
    text = f"SELECT * FROM e MATCH_RECOGNIZE ({clause} MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS v > 1)"
    with pytest.raises(WorkloadError, match=r'<sql>:1:\d+: Referenced column "tim" not found'):
        Matcher(text, pa.schema([("time", pa.int64()), ("v", pa.int64())]))


FORKED = """
import gc, os, sys
import pyarrow as pa
import hamlet
from hamlet.matching import Matcher

text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES COUNT(*) AS n PATTERN (A B) DEFINE B AS price > 2)"
first = pa.table({"time": [1, 2, 3], "price": [1.0, 3.0, 2.0]})
more = pa.table({"time": [4, 5, 6], "price": [5.0, 1.0, 0.0]})
matcher = Matcher(text, first.schema)
rows = matcher.push(first)
left = [matcher, hamlet.sql(text, {"t": first})]
left.append(left)
child = os.fork()
rows += matcher.push(more)
if child == 0:
    del matcher, left
    gc.collect()
    sys.exit(len(rows) != 2)
sys.exit(os.waitpid(child, 0)[1] or len(rows) != 2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_frees_and_ends() -> None:
    """What a process made before it was forked may be freed in both: a DuckDB would wait there for its threads."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
