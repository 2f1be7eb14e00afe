"""The commands of the tutorial "A log, live" in `docs/live.md`, each run as it stands there but for its ports."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.documents.runner import ROOT, blocks
from tests.live.kafka_broker import Broker
from tests.live.test_live_files import WAIT, until

pytest.importorskip("confluent_kafka")
pytest.importorskip("prometheus_client")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The commands, by what they are about; the files that they need are written."""
    monkeypatch.chdir(tmp_path)
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "hamlet").write_text(f'#!/bin/sh\nexec {sys.executable} -m hamlet "$@"\n')
    (bin / "hamlet").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = {}
    for block in blocks(ROOT / "docs" / "live.md"):
        if block.title is not None:
            Path(block.title).write_text(block.text)
        elif block.language == "sh":
            text = block.text.strip()
            (about,) = re.findall(r"replay|curl|--http|kafka|--output -$", text) or [""]
            found[about] = text
        elif "service.log" in block.text and "printf" in block.text:
            subprocess.run(["bash", "-c", block.text.split("\n")[0].removeprefix("$ ")], check=True)
    assert set(found) == {"replay", "--output -", "--http", "curl", "kafka"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "127.0.0.1:8080" in Path("prometheus.yml").read_text()
    return {about: text.replace("127.0.0.1:8080", f"127.0.0.1:{port}") for about, text in found.items()}


@contextmanager
def shell(command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command with all that it starts, stopped at the end."""
    with subprocess.Popen(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as run:
        try:
            yield run
        finally:
            os.killpg(run.pid, signal.SIGTERM)
            run.communicate(timeout=WAIT)


def test_the_tutorial(commands: dict[str, str]) -> None:
    broker = os.environ.get("KAFKA_BOOTSTRAP") or Broker().address
    started = time.monotonic()
    with (
        shell(commands["--output -"]) as rows,
        shell(commands["--http"]),
        shell(commands["kafka"].replace("127.0.0.1:9092", broker)),
    ):
        subprocess.run(["bash", "-c", commands["replay"]], check=True)
        assert time.monotonic() - started > 1.9  # 20 seconds, ten times as fast
        with Path("app.log").open("a") as log:  # the service goes on
            log.write("@30 publish(9)\n@31 publish(9)\n")
        assert rows.stdout is not None
        found = [json.loads(rows.stdout.readline()) for _ in range(3)]
        assert [(row["time"], row["item"]) for row in found] == [(20, 7), (21, 8), (30, 9)]
        asked = ["bash", "-c", commands["curl"]]
        until(lambda: b'{name="approved"} 3.0' in subprocess.run(asked, stdout=subprocess.PIPE, check=False).stdout)
        assert messages(broker) == [(20, 7), (21, 8), (30, 9)]


def messages(broker: str) -> list[tuple[int, int]]:
    """The first three rows of the topic."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("violations", 0, OFFSET_BEGINNING)])
    found, deadline = [], time.monotonic() + WAIT
    while len(found) < 3 and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            row = json.loads(message.value() or b"")
            found.append((row["time"], row["item"]))
    consumer.close()
    return found
