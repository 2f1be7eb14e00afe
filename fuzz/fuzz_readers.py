"""Fuzzes the readers of CSV, JSON lines and Parquet: ``python fuzz/fuzz_readers.py -max_total_time=60``.

Whatever a file holds, its events are read, in order and with one schema, or refused with an error that says why.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path

import driver

with driver.atheris.instrument_imports(include=["hamlet"]):
    from hamlet.errors import HamletError
    from hamlet.input.events import open_events

import pyarrow as pa
import pyarrow.parquet as pq

ENDINGS = ("csv", "jsonl", "parquet")
FOLDER = Path(tempfile.mkdtemp(prefix="hamlet-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))


def check(data: bytes) -> None:
    """One input: the first byte chooses the format and the order column."""
    if not data:
        return
    path = FOLDER / f"events.{ENDINGS[data[0] % 3]}"
    path.write_bytes(data[1:])
    order = "o" if data[0] & 0x80 else None
    with contextlib.suppress(HamletError):
        source = open_events(path, order_column=order)
        previous = None
        for batch in source.batches():
            times = batch.column(source.schema.clock.column).cast(pa.int64()).to_pylist()
            assert times == sorted(times), "the events are out of order"
            assert previous is None or previous <= times[0], "the batches are out of order"
            previous = times[-1]
            batch.validate(full=True)


def seeds() -> list[bytes]:
    """Small files of each format, with every type and some trouble."""
    table = pa.table(
        {
            "time": pa.array([3, 1, 2], pa.int64()),
            "type": pa.array(["A", "B", None]).dictionary_encode(),
            "o": pa.array([0, 1, 2], pa.int16()),
            "v": pa.array([1.5, None, float("nan")]),
            "d": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "b": pa.array([True, None, False]),
        }
    )
    binary = io.BytesIO()
    pq.write_table(table, binary, compression="none")
    csv = [
        b"time,type,o,v\n1,A,0,1.5\n2,B,1,\n1,A,2,x\n",
        b'time,type\n2024-01-01T00:00:00Z,"A,""b"\n2024-01-01 00:00:01,B\n',
        b"\xef\xbb\xbftime,type,v\r\n1,A,9223372036854775808\r\n",
    ]
    json = [
        b'{"time": 1, "type": "A", "v": 1}\n{"time": 0, "type": "B", "v": 2.5, "o": 1}\n',
        b'{"time": "2024-01-01T00:00:00", "type": "A", "v": [1, {"x": null}]}\n\n{"time": null}\n',
        b'{"time": 1, "type": "\\ud83d\\ude00", "v": 1e400}\n',
    ]
    return [b"\x00" + text for text in csv] + [b"\x81" + text for text in json] + [b"\x02" + binary.getvalue()]


if __name__ == "__main__":
    driver.run(Path(__file__).stem, check, seeds())
