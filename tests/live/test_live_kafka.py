"""Topics as sources and sinks: with the mock cluster of the client's own library, and with a broker of the tests."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz.kills import Run, killed
from hamlet.cli import main
from hamlet.input.live.kafka import silent
from tests.live.kafka_broker import Broker
from tests.live.test_live_files import POLICY, WAIT, running, stopped, until

kafka = pytest.importorskip("confluent_kafka")
PARTS = 4  # of a topic of the mock cluster


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def cluster() -> tuple[str, Any]:
    producer = kafka.Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "linger.ms": 0, "log_level": 4})
    (broker,) = producer.list_topics(timeout=WAIT).brokers.values()
    return f"{broker.host}:{broker.port}", producer


def put(producer: Any, topic: str, *values: str) -> None:
    for value in values:
        producer.produce(topic, value=value.encode(), partition=0)
    assert producer.flush(WAIT) == 0


def messages(brokers: str, topic: str, count: int, group: str = "test") -> list[Any]:
    consumer = kafka.Consumer({"bootstrap.servers": brokers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.list_topics(topic, timeout=WAIT)  # which makes it
    consumer.assign([kafka.TopicPartition(topic, part, kafka.OFFSET_BEGINNING) for part in range(PARTS)])
    found: list[Any] = []
    deadline = time.monotonic() + WAIT
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value()))
    consumer.close()
    return sorted(row["x"] for row in found)


def test_from_topic_to_topic(cluster: tuple[str, Any]) -> None:
    brokers, producer = cluster
    put(producer, "events", *(f'{{"time": {at}, "type": "publish", "x": {at}}}' for at in range(1, 6)))
    arguments = ["--input", f"kafka://{brokers}/events?group=one", "--output", f"kafka://{brokers}/rows"]
    with running(*POLICY, *arguments) as run:
        assert messages(brokers, "rows", 4) == [1, 2, 3, 4]
        put(producer, "events", '{"time": 7,\n"type": "publish", "x": 7}')
        assert messages(brokers, "rows", 5) == [1, 2, 3, 4, 5]
        assert "after 6 events" in stopped(run)
    with running(*POLICY, *arguments) as run:  # the group goes on behind what was taken
        put(producer, "events", *(f'{{"time": {at}, "type": "publish", "x": {at}}}' for at in (8, 9)))
        assert messages(brokers, "rows", 6)[-1] == 8
        assert "after 2 events" in stopped(run, signal.SIGINT)


def test_logs_and_csv(cluster: tuple[str, Any]) -> None:
    brokers, producer = cluster
    put(producer, "logs", "@1 publish(1)", "@2 publish(2)", "publish(3)", "@3")
    put(producer, "lines", "1,publish,1", "2,publish,2", "bad", "3,publish,3")
    with running(*POLICY, "--input", f"kafka://{brokers}/logs", "--output", f"kafka://{brokers}/found") as run:
        assert messages(brokers, "found", 3) == [1, 2, 3]
        stopped(run)
    columns = ["--columns", "time,type,x", "--bad-rows", "drop"]
    with running(*POLICY, "--input", f"kafka://{brokers}/lines", *columns, "--output", f"kafka://{brokers}/csv") as run:
        assert messages(brokers, "csv", 2) == [1, 2]
        assert "1 bad rows" in stopped(run)


def test_state_and_offsets_go_on_together(cluster: tuple[str, Any], folder: Path) -> None:
    brokers, producer = cluster
    common = [*POLICY, "--input", f"kafka://{brokers}/saved", "--output", "out", "--output-format", "json"]
    common += ["--checkpoint", "ck", "--every", "0.1 s"]
    for first in (1, 11, 21):
        put(producer, "saved", *(f"@{at} publish({at})" for at in range(first, first + 10)))
        with running(*common) as run:
            until(partial(seen, folder, first + 8))
            run.kill()
            run.wait(timeout=WAIT)
    assert found(folder) == [*range(1, 30)]


def seen(folder: Path, x: int) -> bool:
    return x in found(folder)


def found(folder: Path) -> list[int]:
    files = sorted((folder / "out").rglob("part-*"))
    return [json.loads(line)["x"] for file in files for line in file.read_text().splitlines()]


def test_what_cannot_be_read(cluster: tuple[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
    brokers, producer = cluster
    put(producer, "headless", "time,type,x", "1,publish,1")
    assert main([*POLICY, "--input", f"kafka://{brokers}/headless", "--output", "-"]) == 2
    assert "--columns" in capfd.readouterr().err
    for url in ("kafka://there", f"kafka://{brokers}/a/b", f"kafka://{brokers}/a?offset=1"):
        assert main([*POLICY, "--input", url, "--output", "-"]) == 2
        assert "names no topic" in capfd.readouterr().err


def test_the_broker_of_the_tests_is_as_plain_clients_want_it() -> None:
    with Broker(partitions=1) as broker:
        put(kafka.Producer({"bootstrap.servers": broker.address}), "t", "1", "2")
        producer = transactional(broker.address)
        producer.begin_transaction()
        put(producer, "t", "3")
        assert read(broker.address, "read_committed") == [b"1", b"2"]
        assert read(broker.address, "read_uncommitted") == [b"1", b"2", b"3"]
        group = kafka.Consumer({"bootstrap.servers": broker.address, "group.id": "g"})
        place = kafka.TopicPartition("t", 0, 2)
        producer.send_offsets_to_transaction([place], group.consumer_group_metadata(), WAIT)
        assert group.committed([kafka.TopicPartition("t", 0)], timeout=WAIT)[0].offset < 0
        producer.commit_transaction(WAIT)
        assert group.committed([kafka.TopicPartition("t", 0)], timeout=WAIT)[0].offset == 2
        producer.begin_transaction()
        put(producer, "t", "4")
        producer.abort_transaction(WAIT)
        producer.begin_transaction()
        put(producer, "t", "5")
        other = transactional(broker.address)  # ends what was under way, and takes over
        other.begin_transaction()
        put(other, "t", "6")
        other.commit_transaction(WAIT)
        with pytest.raises(kafka.KafkaException):
            producer.commit_transaction(WAIT)
        assert read(broker.address, "read_committed") == [b"1", b"2", b"3", b"6"]
        group.close()
        broker.shutdown()


def transactional(brokers: str) -> Any:
    producer = kafka.Producer({"bootstrap.servers": brokers, "transactional.id": "x", "logger": silent()})
    producer.init_transactions(WAIT)
    return producer


def read(brokers: str, isolation: str) -> list[bytes]:
    consumer = kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": "r", "isolation.level": isolation, "logger": silent()}
    )
    consumer.assign([kafka.TopicPartition("t", 0, kafka.OFFSET_BEGINNING)])
    found, deadline = [], time.monotonic() + 2
    while time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("notation", "source", "sink"),
    [
        ("policy", "file", "kafka"),
        ("query", "kafka", "file"),
        ("specification", "kafka", "kafka"),
        ("row pattern", "kafka", "file"),
    ],
)
def test_each_row_once_after_kills(notation: str, source: str, sink: str, tmp_path: Path) -> None:
    brokers = os.environ.get("KAFKA_BOOTSTRAP") or Broker().address
    place = tmp_path / "run"
    place.mkdir()
    run = Run(place, notation, source, sink, brokers)
    assert killed(run, 3, random.Random(f"{notation} {source} {sink}")) > 10


def test_rows_are_committed_with_the_save(
    cluster: tuple[str, Any], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The mock cluster keeps no offsets of transactions, so a run that is started again has to refuse."""
    brokers, _ = cluster
    (folder / "a.log").write_text("".join(f"@{at} publish({at})\n" for at in range(1, 8)))
    arguments = ["--input", "a.log", "--output", f"kafka://{brokers}/once", "--checkpoint", "ck", "--every", "0.2 s"]
    with running(*POLICY, *arguments, "--follow") as run:
        assert messages(brokers, "once", 6) == [1, 2, 3, 4, 5, 6]
        until(lambda: min(each.name for each in (folder / "ck").glob("*.save")) > "state-000000000001.save")
        stopped(run)
    assert main([*POLICY, *arguments]) == 2
    assert "were committed to Kafka" in capfd.readouterr().err
