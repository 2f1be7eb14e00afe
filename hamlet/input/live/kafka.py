"""Messages of a Kafka topic, each one line; partitions in the order in which messages arrive."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hamlet.errors import DataError, OptionError, UnsupportedError
from hamlet.input.live.sources import Place, Read, Source, Stream

_LOOK = 0.005  # seconds between two looks at what has come
_MESSAGES = 20_000  # that are taken at once
_GRACE = 30.0  # seconds until a broker that does not answer is an error
_COMMIT = 5.0  # seconds between two commits of the group's offsets, where no checkpoint has them


def kafka() -> Any:
    """The client.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    try:
        import confluent_kafka  # needed for kafka:// only
    except ImportError:
        raise UnsupportedError("kafka:// needs confluent-kafka\nhint: pip install 'hamlet[kafka]'") from None
    return confluent_kafka


def topic_of(url: str) -> tuple[str, str, str]:
    """Brokers, topic and group of ``kafka://BROKER[,BROKER]/TOPIC[?group=NAME]``.

    Raises
    ------
    OptionError
        If the URL has none.
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic or "/" in topic or set(query) - {"group"}:
        raise OptionError(f"{url} names no topic; write kafka://127.0.0.1:9092/topic?group=name")
    return parts.netloc, topic, query.get("group", ["hamlet"])[0]


class KafkaSource(Source):
    """A topic, until the run is stopped; only what transactions have committed is read.

    Parameters
    ----------
    url : str
        ``kafka://BROKER[,BROKER]/TOPIC[?group=NAME]``. A group without offsets begins at the earliest message.
    """

    repeatable = True

    def __init__(self, url: str) -> None:
        self._client = client = kafka()
        self.name = url.split("?", 1)[0]
        self.brokers, self.topic, group = topic_of(url)
        self.consumer = client.Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                "logger": silent(),
            }
        )
        self.look = _LOOK
        self.next: dict[int, int] = {}  # of each partition the offset of the message that was not taken yet
        self._stream = Stream(self.name, headless=True)
        self._rest = b""
        self._assigned = False
        self._saved = False  # whether a checkpoint has the offsets
        self._committed_at = time.monotonic()

    def _assign(self) -> None:
        """Begin to read: where the checkpoint says, or the group, or at the earliest message."""
        client = self._client
        try:
            found = self.consumer.list_topics(self.topic, timeout=_GRACE).topics[self.topic]
            if found.error is not None:
                raise DataError(f"cannot read {self.name}: {found.error.str()}")
            parts = [client.TopicPartition(self.topic, number) for number in found.partitions]
            known = {each.partition: each.offset for each in self.consumer.committed(parts, timeout=_GRACE)}
        except client.KafkaException as error:
            raise DataError(f"cannot read {self.name}: {error.args[0].str()}") from None
        for part in parts:
            place = self.next.get(part.partition, known.get(part.partition, -1))
            part.offset = place if place >= 0 else client.OFFSET_BEGINNING
        self.consumer.assign(parts)
        self._assigned = True

    def read(self, ready: set[int]) -> Iterator[Read]:  # noqa: ARG002
        """The messages that have come."""
        if not self._assigned:
            self._assign()
        if self._rest:
            rest, self._rest = self._rest, b""
            yield self._stream, rest
        lines = []
        for message in self.consumer.consume(_MESSAGES, timeout=0):
            error = message.error()
            if error is not None:
                if error.fatal() or not error.retriable():
                    raise DataError(f"cannot read {self.name}: {error.str()}")
                continue
            value = message.value()
            self.next[message.partition()] = message.offset() + 1
            if value:
                lines.append(value.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")
        self.look = 0.0 if lines else _LOOK
        if lines:
            yield self._stream, b"".join(lines)
        if not self._saved and time.monotonic() - self._committed_at >= _COMMIT:
            self._commit()

    def _commit(self) -> None:
        """Tell the group how far the messages were taken."""
        self._committed_at = time.monotonic()
        if self.next:
            try:
                self.consumer.commit(offsets=self.offsets(), asynchronous=False)
            except self._client.KafkaException as error:
                raise DataError(f"cannot keep the place in {self.name}: {error.args[0].str()}") from None

    def offsets(self) -> list[Any]:
        """The place in each partition, for a transaction."""
        return [self._client.TopicPartition(self.topic, part, offset) for part, offset in sorted(self.next.items())]

    def place(self, stream: Stream, offset: int, line: int, header: bytes | None) -> Place:  # noqa: ARG002
        """The offset in each partition."""
        self._saved = True
        return {"offsets": {str(part): offset for part, offset in self.next.items()}, "rest": ""}

    def hold(self, place: Place, rest: bytes) -> Place:
        """The offsets, and the time-point of a log that is open."""
        return {**place, "rest": rest.decode("latin-1")}

    def resume(self, place: Place) -> Place:
        """Go on at these offsets."""
        self.next = {int(part): int(offset) for part, offset in place["offsets"].items()}
        self._rest = place["rest"].encode("latin-1")
        self._saved = True
        return place

    def close(self) -> None:
        """Leave the group, which knows how far the messages were taken."""
        try:
            if not self._saved and self._assigned:
                self._commit()
        finally:
            self.consumer.close()


def silent() -> Any:
    """Where the client's own words go: errors come as messages."""
    return logging.getLogger("hamlet.kafka")
