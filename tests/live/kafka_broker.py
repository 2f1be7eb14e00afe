"""A Kafka broker of one node in memory, with transactions: the dozen requests that clients send, in their older forms.

`python -m tests.live.kafka_broker` serves until it is ended, and prints its address. What is kept: batches as they
came, the offsets of groups, and for each transactional id its epoch and what is open. A batch that comes twice is there
once.
"""

from __future__ import annotations

import contextlib
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

UNKNOWN_TOPIC, UNSUPPORTED, OUT_OF_ORDER, FENCED = 3, 35, 45, 47
TRANSACTIONAL, CONTROL = 0x10, 0x20
_SEQUENCE = struct.Struct(">qhi")  # producer, epoch and first sequence number, at byte 43 of a batch


class Reader:
    """The fields of a request."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        """A number of fixed size."""
        (found,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def data(self, size: int) -> bytes:
        """So many bytes; none where the size is negative."""
        found = self._data[self._at : self._at + max(0, size)]
        self._at += max(0, size)
        return found

    def text(self) -> str:
        """A string; empty where it is null."""
        return self.data(self.number("h")).decode()

    def array(self, each: Callable[[], Any]) -> list[Any] | None:
        """Some of the same; None where it is null."""
        count = self.number("i")
        return None if count < 0 else [each() for _ in range(count)]


def text(value: str) -> bytes:
    """A string."""
    return struct.pack(">h", len(value.encode())) + value.encode()


def array(parts: list[bytes]) -> bytes:
    """Some of the same."""
    return struct.pack(">i", len(parts)) + b"".join(parts)


NULL = struct.pack(">h", -1)


@dataclass
class Partition:
    """Batches by their first offsets, and which transactions are open or were aborted."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list)  # first and next offset, and the batch
    end: int = 0
    open: dict[int, int] = field(default_factory=dict)  # of a producer, the first offset of its transaction
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first and last offset
    sequences: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)  # next number, last first offset

    @property
    def stable(self) -> int:
        """The first offset that is not decided."""
        return min(self.open.values(), default=self.end)

    def append(self, batch: bytes) -> tuple[int, int]:
        """Append a batch; gives an error and its first offset."""
        (attributes,) = struct.unpack_from(">h", batch, 21)
        (last,) = struct.unpack_from(">i", batch, 23)
        producer, epoch, first = _SEQUENCE.unpack_from(batch, 43)
        if producer >= 0 and not attributes & CONTROL:
            expected, before = self.sequences.get((producer, epoch), (0, -1))
            if first < expected:
                return 0, before
            if first > expected:
                return OUT_OF_ORDER, -1
            self.sequences[producer, epoch] = (first + last + 1, self.end)
        if attributes & TRANSACTIONAL and not attributes & CONTROL:
            self.open.setdefault(producer, self.end)
        begun = self.end
        self.end += last + 1
        self.batches.append((begun, self.end, struct.pack(">q", begun) + batch[8:]))
        return 0, begun

    def finish(self, producer: int, epoch: int, committed: bool) -> None:
        """End the transaction of a producer with a marker."""
        if producer not in self.open:
            return
        first = self.open.pop(producer)
        if not committed:
            self.aborted.append((producer, first, self.end))
        self.append(marker(producer, epoch, committed))


@dataclass
class Transaction:
    """What belongs to a transactional id."""

    producer: int
    epoch: int = -1
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)


class Broker(socketserver.ThreadingTCPServer):
    """Serves at a port of the loopback address; topics are there once somebody asks for them.

    Parameters
    ----------
    partitions : int
        Of each topic.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.port = int(self.server_address[1])
        self.address = f"127.0.0.1:{self.port}"
        self.topics: dict[str, list[Partition]] = {}
        self.groups: dict[tuple[str, str, int], int] = {}
        self.transactions: dict[str, Transaction] = {}
        self.changed = threading.Condition()
        self._partitions, self._producers = partitions, 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def topic(self, name: str) -> list[Partition]:
        """The partitions of a topic."""
        return self.topics.setdefault(name, [Partition() for _ in range(self._partitions)])

    def answer(self, key: int, version: int, body: Reader) -> bytes:
        """The answer to a request; all but waiting readers are answered one after the other."""
        with self.changed:
            found: bytes = getattr(self, REQUESTS[key][0])(version, body)
            self.changed.notify_all()
            return found

    # ------------------------------------------------------------------------------------- topics and their rows

    def metadata(self, _: int, body: Reader) -> bytes:
        """Who leads what: this broker everything."""
        asked = body.array(body.text)
        topics = []
        for name in self.topics if asked is None else asked:
            parts = [
                struct.pack(">hii", 0, number, 1) + array([struct.pack(">i", 1)]) * 2
                for number in range(len(self.topic(name)))
            ]
            topics.append(struct.pack(">h", 0) + text(name) + b"\0" + array(parts))
        broker = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self.port) + NULL
        return bytes(4) + array([broker]) + text("tests") + struct.pack(">i", 1) + array(topics)

    def produce(self, _: int, body: Reader) -> bytes:
        """Append batches."""
        body.text(), body.number("h"), body.number("i")

        def partition() -> bytes:
            number, data = body.number("i"), body.data(body.number("i"))
            error, first = 0, -1
            for batch in batches(data):
                producer, epoch, _ = _SEQUENCE.unpack_from(batch, 43)
                if self.fenced(producer, epoch):
                    error = FENCED
                    break
                error, first = self.topic(self.named)[number].append(batch)
            return struct.pack(">ihqq", number, error, first, -1)

        return array(body.array(lambda: self.of_topic(body, partition)) or []) + bytes(4)

    def fetch(self, _: int, body: Reader) -> bytes:
        """Give batches, once there are some or the time is over."""
        body.number("i")
        deadline = time.monotonic() + body.number("i") / 1000
        body.number("i"), body.number("i")
        committed = body.number("b") == 1
        asked = body.array(
            lambda: (body.text(), body.array(lambda: (body.number("i"), body.number("q"), body.number("i"))) or [])
        )
        while True:
            any_found, topics = False, []
            for name, partitions in asked or []:
                parts = []
                for number, offset, size in partitions:
                    part = self.topic(name)[number]
                    bound = part.stable if committed else part.end
                    data = b""
                    for first, after, batch in part.batches:
                        if after > offset and first < bound and (not data or len(data) + len(batch) <= size):
                            data += batch
                    any_found = any_found or bool(data)
                    aborted = [struct.pack(">qq", p, first) for p, first, last in part.aborted if last >= offset]
                    head = struct.pack(">ihqq", number, 0, part.end, part.stable)
                    parts.append(head + array(aborted) + struct.pack(">i", len(data)) + data)
                topics.append(text(name) + array(parts))
            left = deadline - time.monotonic()
            if any_found or left <= 0:
                return bytes(4) + array(topics)
            self.changed.wait(left)

    def list_offsets(self, _: int, body: Reader) -> bytes:
        """The first or the next offset of partitions."""
        body.number("i")
        committed = body.number("b") == 1

        def partition() -> bytes:
            number, wanted = body.number("i"), body.number("q")
            part = self.topic(self.named)[number]
            found = 0 if wanted == -2 else part.stable if committed else part.end
            return struct.pack(">ihqq", number, 0, -1, found)

        return bytes(4) + array(body.array(lambda: self.of_topic(body, partition)) or [])

    # -------------------------------------------------------------------------------- groups and transactions

    def find_coordinator(self, _: int, body: Reader) -> bytes:  # noqa: ARG002
        """This broker coordinates everything."""
        return struct.pack(">ih", 0, 0) + NULL + struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self.port)

    def offset_commit(self, _: int, body: Reader) -> bytes:
        """Remember how far a group is."""
        group = body.text()
        body.number("i"), body.text(), body.number("q")

        def partition() -> bytes:
            number, offset = body.number("i"), body.number("q")
            body.text()
            self.groups[group, self.named, number] = offset
            return struct.pack(">ih", number, 0)

        return bytes(4) + array(body.array(lambda: self.of_topic(body, partition)) or [])

    def offset_fetch(self, _: int, body: Reader) -> bytes:
        """How far a group is."""
        group = body.text()

        def partition() -> bytes:
            number = body.number("i")
            offset = self.groups.get((group, self.named, number), -1)
            return struct.pack(">iq", number, offset) + text("") + struct.pack(">h", 0)

        return bytes(4) + array(body.array(lambda: self.of_topic(body, partition)) or []) + struct.pack(">h", 0)

    def init_producer_id(self, _: int, body: Reader) -> bytes:
        """A number for a producer; one with a transactional id ends what was under way, and fences who did that."""
        name = body.text()
        self._producers += 1
        if not name:
            return struct.pack(">ihqh", 0, 0, self._producers, 0)
        found = self.transactions.setdefault(name, Transaction(self._producers))
        self.end(found, False)
        found.epoch += 1
        return struct.pack(">ihqh", 0, 0, found.producer, found.epoch)

    def add_partitions(self, _: int, body: Reader) -> bytes:
        """Partitions take part in a transaction."""
        found, error = self.transaction(body)

        def partition() -> bytes:
            number = body.number("i")
            if not error:
                found.partitions.add((self.named, number))
            return struct.pack(">ih", number, error)

        return bytes(4) + array(body.array(lambda: self.of_topic(body, partition)) or [])

    def add_offsets(self, _: int, body: Reader) -> bytes:
        """A group takes part in a transaction."""
        return struct.pack(">ih", 0, self.transaction(body)[1])

    def txn_offset_commit(self, _: int, body: Reader) -> bytes:
        """How far a group is once the transaction is committed."""
        name, group = body.text(), body.text()
        found = self.transactions[name]
        producer, epoch = body.number("q"), body.number("h")
        error = FENCED if self.fenced(producer, epoch) else 0

        def partition() -> bytes:
            number, offset = body.number("i"), body.number("q")
            body.text()
            if not error:
                found.offsets[group, self.named, number] = offset
            return struct.pack(">ih", number, error)

        return bytes(4) + array(body.array(lambda: self.of_topic(body, partition)) or [])

    def end_txn(self, _: int, body: Reader) -> bytes:
        """Commit, or abort."""
        found, error = self.transaction(body)
        if not error:
            self.end(found, body.number("b") == 1)
        return struct.pack(">ih", 0, error)

    # ------------------------------------------------------------------------------------------------ inside

    def of_topic(self, body: Reader, partition: Callable[[], bytes]) -> bytes:
        """What is said of the partitions of a topic."""
        self.named = body.text()
        return text(self.named) + array(body.array(partition) or [])

    def transaction(self, body: Reader) -> tuple[Transaction, int]:
        """The transaction that a request speaks of, and whether who speaks is fenced."""
        found = self.transactions[body.text()]
        return found, FENCED if self.fenced(body.number("q"), body.number("h")) else 0

    def fenced(self, producer: int, epoch: int) -> bool:
        """Whether a newer producer has taken a transactional id over."""
        return any(each.producer == producer and each.epoch != epoch for each in self.transactions.values())

    def end(self, found: Transaction, committed: bool) -> None:
        """End a transaction."""
        for name, number in found.partitions:
            self.topic(name)[number].finish(found.producer, found.epoch, committed)
        if committed:
            self.groups |= found.offsets
        found.partitions, found.offsets = set(), {}


REQUESTS = {  # of a number, the method and the latest form of the request
    0: ("produce", 3),
    1: ("fetch", 4),
    2: ("list_offsets", 2),
    3: ("metadata", 4),
    8: ("offset_commit", 3),
    9: ("offset_fetch", 3),
    10: ("find_coordinator", 2),
    22: ("init_producer_id", 1),
    24: ("add_partitions", 1),
    25: ("add_offsets", 1),
    26: ("end_txn", 1),
    28: ("txn_offset_commit", 1),
}
OLDEST = {0: 3, 1: 4, 2: 2, 3: 4, 8: 3, 9: 3, 10: 1}


class Connection(socketserver.StreamRequestHandler):
    """A client."""

    server: Broker

    def handle(self) -> None:
        """Answer requests until the client goes."""
        with contextlib.suppress(OSError):  # it is killed, perhaps
            while len(size := self.rfile.read(4)) == 4:
                body = Reader(self.rfile.read(struct.unpack(">i", size)[0]))
                key, version, correlation = body.number("h"), body.number("h"), body.number("i")
                body.text()
                answer = known(version) if key == 18 else self.server.answer(key, version, body)
                self.wfile.write(struct.pack(">ii", len(answer) + 4, correlation) + answer)


def known(version: int) -> bytes:
    """Which requests there are, in the oldest form, which a client that asks in a later one takes, too."""
    requests = [struct.pack(">hhh", each, OLDEST.get(each, 0), last) for each, (_, last) in REQUESTS.items()]
    return struct.pack(">h", UNSUPPORTED if version > 0 else 0) + array([*requests, struct.pack(">hhh", 18, 0, 0)])


def batches(data: bytes) -> Iterator[bytes]:
    """The batches that were sent together."""
    while data:
        (size,) = struct.unpack_from(">i", data, 8)
        yield data[: 12 + size]
        data = data[12 + size :]


def marker(producer: int, epoch: int, committed: bool) -> bytes:
    """The batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, committed), struct.pack(">hi", 0, 0)
    record = bytes([0, 0, 0, 2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\0"
    record = bytes([2 * len(record)]) + record
    now = int(time.time() * 1000)
    attributes = TRANSACTIONAL | CONTROL
    behind = struct.pack(">hiqqqhii", attributes, 0, now, now, producer, epoch, -1, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(behind), 0, 2, crc32c(behind)) + behind


def crc32c(data: bytes) -> int:
    """Castagnoli's sum."""
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


if __name__ == "__main__":
    sys.stdout.write(Broker().address + "\n")
    sys.stdout.flush()
    threading.Event().wait()
