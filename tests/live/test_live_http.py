"""A run looked at from outside: metrics, health, the page, and what is refused."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hamlet.cli import main
from tests.live.test_live_files import POLICY, WAIT, running, until

pytest.importorskip("prometheus_client")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    arguments = ["--input", "-", "--output", "-", "--http", "127.0.0.1:0", "--bad-rows", "drop", "--late", "drop"]
    with running(*POLICY, *arguments, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(b"@1 publish(1)\n@2 publish(2)\n@3 publish(x)\n@1 publish(9)\n@4 publish(4)\n@5 publish(5)\n")
        run.stdin.flush()
        found = re.search(rb"http://127.0.0.1:(\d+)/", run.stderr.readline())
        assert found is not None
        run.stdout.readline()
        yield int(found[1]), run
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=WAIT)
        assert run.returncode == 143


def asked(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def test_metrics_health_and_page(run: tuple[int, Any]) -> None:
    port, _ = run
    until(lambda: "hamlet_events_total 4.0" in asked(port, "/metrics")[1])
    status, text, headers = asked(port, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    for line in (
        'hamlet_rows_total{name="p"} 3.0',
        "hamlet_late_events_total 1.0",
        "hamlet_bad_rows_total 1.0",
        "hamlet_lag_seconds ",
        'hamlet_kept_bytes{name="p"} ',
        'hamlet_latency_seconds_bucket{le="+Inf",name="p"} ',
    ):
        assert line in text
    assert asked(port, "/health")[:2] == (200, "ok\n")
    status, page, headers = asked(port, "/")
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not re.search(r"(src|href)\s*=|https?:|@import|url\(", page)
    assert asked(port, "/", "HEAD")[:2] == (200, "")
    assert asked(port, "/nothing")[0] == 404


def test_what_happens_is_sent(run: tuple[int, Any]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", run[0], timeout=WAIT)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.headers["Content-Type"] == "text/event-stream"
    seen: dict[str, Any] = {"last": []}
    while not seen["last"]:  # a row is written before the page hears of it
        line = answer.readline().decode()
        seen = json.loads(line.removeprefix("data: ")) if line.strip() else seen
    assert seen["rows"][0][0] == "p"
    assert json.loads(seen["last"][-1][2])["x"] == 1
    connection.close()


def test_other_hosts_and_methods_are_refused(run: tuple[int, Any]) -> None:
    port, _ = run
    for host in ("evil.example", f"evil.example:{port}", "", "127.0.0.1.evil.example"):
        assert asked(port, "/", Host=host)[0] == 403
    for host in ("localhost", f"LOCALHOST:{port}", "127.0.0.1", f"[::1]:{port}"):
        assert asked(port, "/health", Host=host)[0] == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, _, headers = asked(port, "/metrics", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_port_in_use(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "a.log").write_text("@1 publish(1)\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for address in (f"127.0.0.1:{taken.getsockname()[1]}", "here", "127.0.0.1:99999"):
            assert main([*POLICY, "--input", "a.log", "--output", "-", "--http", address]) == 2
            assert capfd.readouterr().err.startswith("error: ")
