"""Rows as messages of Kafka topics: at once, or under a checkpoint in a transaction with the save that covers them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hamlet.errors import OptionError, OutputError
from hamlet.input.live.kafka import KafkaSource, kafka, silent, topic_of
from hamlet.output.live import Sink

_GRACE = 30.0  # seconds


class RowProducer:
    """Sends rows to topics of one cluster.

    Parameters
    ----------
    urls : sequence of str
    checkpoint : pathlib.Path or None
        With one, rows are seen when they are committed.
    every : float
        Seconds between two commits.
    """

    def __init__(self, urls: Sequence[str], checkpoint: Path | None, every: float) -> None:
        self._client = client = kafka()
        clusters = {topic_of(url)[0] for url in urls}
        if len(clusters) > 1:
            raise OptionError("rows go to topics of one Kafka cluster; run once for each cluster")
        (self.brokers,) = clusters
        self._topic = topic_of(urls[0])[1]
        config: dict[str, Any] = {
            "bootstrap.servers": self.brokers,
            "enable.idempotence": True,
            "linger.ms": 0,
            "logger": silent(),
        }
        self._begun = False
        self._failed: str | None = None
        self._marker: Any = None
        if checkpoint is not None:
            name = hashlib.blake2b(f"{checkpoint.resolve()} {self._topic}".encode(), digest_size=12).hexdigest()
            self._name = f"hamlet-{name}"
            config |= {
                "transactional.id": self._name,
                "transaction.timeout.ms": int(min(900, max(60, 3 * every)) * 1000),
            }
            self._marker = client.Consumer(
                {
                    "bootstrap.servers": self.brokers,
                    "group.id": self._name,
                    "isolation.level": "read_committed",
                    "logger": silent(),
                }
            )
        self._producer = client.Producer(config)
        self._find()
        if checkpoint is not None:
            self._try(lambda: self._producer.init_transactions(_GRACE))  # whatever was under way is aborted

    def _find(self) -> None:
        """See that the topic is there; where brokers make topics, asking for one makes it."""
        deadline = time.monotonic() + _GRACE
        while True:
            found = self._try(lambda: self._producer.list_topics(self._topic, timeout=_GRACE)).topics[self._topic]
            if found.error is None and found.partitions:
                return
            if time.monotonic() > deadline:
                reason = "it has no partitions" if found.error is None else found.error.str()
                raise OutputError(f"rows cannot be sent to kafka://{self.brokers}/{self._topic}: {reason}")
            time.sleep(0.1)

    def committed(self) -> int | None:
        """The generation of the save whose rows were committed last; None without a checkpoint."""
        if self._marker is None:
            return None
        parts = [self._client.TopicPartition(self._topic, 0)]
        (found,) = self._try(lambda: self._marker.committed(parts, timeout=_GRACE))
        return max(1, int(found.offset))  # of the first generation no rows have been sent

    def sink(self, url: str) -> Sink:
        """Where rows for a topic go."""
        return _TopicSink(self, topic_of(url)[1])

    def send(self, topic: str, lines: Sequence[bytes]) -> None:
        """Send messages; without a checkpoint they are there when this returns."""
        if self._marker is not None and not self._begun:
            self._try(self._producer.begin_transaction)
            self._begun = True
        for line in lines:
            while True:
                try:
                    self._producer.produce(topic, value=line, on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.05)
        if self._marker is None:
            self.flush()
        else:
            self._producer.poll(0)
        self._check()

    def flush(self) -> None:
        """Wait until all messages are there."""
        deadline = time.monotonic() + 2 * _GRACE
        while self._producer.flush(0.5):
            self._check()
            if time.monotonic() > deadline:
                raise OutputError(f"rows cannot be sent to kafka://{self.brokers}: the broker does not answer")
        self._check()

    def commit(self, generation: int, sources: Sequence[Any]) -> None:
        """Commit the rows, the place in topics of this cluster, and which save they belong to."""
        producer = self._producer
        if not self._begun:
            self._try(producer.begin_transaction)
        marker = [self._client.TopicPartition(self._topic, 0, generation)]
        self._try(lambda: producer.send_offsets_to_transaction(marker, self._marker.consumer_group_metadata(), _GRACE))
        for source in sources:
            if isinstance(source, KafkaSource) and source.brokers == self.brokers and source.next:
                offsets, group = source.offsets(), source.consumer.consumer_group_metadata()
                self._try(lambda o=offsets, g=group: producer.send_offsets_to_transaction(o, g, _GRACE))
        self._try(lambda: producer.commit_transaction(_GRACE))
        self._begun = False

    def _try(self, work: Any) -> Any:
        attempts = 5
        while True:
            attempts -= 1
            try:
                return work()
            except self._client.KafkaException as error:
                reason = error.args[0]
                if not attempts or not reason.retriable():
                    raise OutputError(f"rows cannot be sent to kafka://{self.brokers}: {reason.str()}") from None

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed = error.str()

    def _check(self) -> None:
        if self._failed is not None:
            raise OutputError(f"rows cannot be sent to kafka://{self.brokers}: {self._failed}")


class _TopicSink(Sink):
    def __init__(self, producer: RowProducer, topic: str) -> None:
        self._producer, self._topic = producer, topic

    def write_bytes(self, data: bytes) -> None:
        """Send lines, each as a message."""
        self._producer.send(self._topic, [line for line in data.split(b"\n") if line])
