"""Where rows go as they become final: text streams and folders."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from hamlet.errors import OptionError, OutputError
from hamlet.output.columnar import EXTENSIONS, folder_of, plain_batch
from hamlet.output.place import to_disk

_WAIT = 0.2  # seconds until a listener that is away is tried again


class Sink:
    """Takes the text of rows; each row is written before the next call returns."""

    def write(self, text: str) -> None:
        """Write lines."""
        self.write_bytes(text.encode("utf-8", "surrogatepass"))

    def write_bytes(self, data: bytes) -> None:
        """Write whole lines."""
        raise NotImplementedError

    def close(self) -> None:
        """The end of all rows."""


class FileSink(Sink):
    """A file that is open, such as standard output; what is written is flushed."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name

    def write_bytes(self, data: bytes) -> None:
        """Write lines, whatever the other side's speed is."""
        rest = memoryview(data)
        try:
            while rest:  # where Python buffers nothing, a signal leaves a part of it
                rest = rest[self._file.write(rest) or 0 :]
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, f"cannot write to {self._name}: {error.strerror}") from None


class SocketSink(Sink):
    """A listener, at ``tcp://HOST:PORT`` or ``unix:PATH``; while it is away it is tried again.

    Parameters
    ----------
    connect : callable
        Gives a connected socket, or raises OSError.
    name : str
    asked : callable
        Whether to stop trying.
    """

    def __init__(self, connect: Callable[[], socket.socket], name: str, asked: Callable[[], bool]) -> None:
        self._connect, self._name, self._asked = connect, name, asked
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connect, as soon as somebody listens."""
        while self._socket is None:
            try:
                self._socket = self._connect()
            except OSError as error:
                if self._asked():
                    reason = error.strerror or error
                    raise OutputError(f"rows were not sent, since nobody listens at {self._name}: {reason}") from None
                time.sleep(_WAIT)

    def write_bytes(self, data: bytes) -> None:
        """Send lines; those that a connection has not taken whole are sent again by the next one."""
        sent = 0
        while sent < len(data):
            self.open()
            assert self._socket is not None
            try:
                sent += self._socket.send(data[sent : sent + (1 << 16)])
            except OSError:
                self._socket.close()
                self._socket = None
                sent = data.rfind(b"\n", 0, sent) + 1

    def close(self) -> None:
        """Close the connection when all is sent; a listener that was never there gets an empty one."""
        if self._socket is None:
            with contextlib.suppress(OSError):
                self._socket = self._connect()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._socket.close()


class PartFiles:
    """A folder of rows: ``<kind>=<name>/part-*`` per part, as text or Parquet.

    Without a checkpoint text is in its file at once; Parquet, and all under a checkpoint, is in a file whose name
    begins with a dot until `seal` has been asked for.

    Parameters
    ----------
    place : pathlib.Path
    output_format : {'json', 'csv', 'parquet', 'monpoly'}
    parts : sequence of (str, str)
        Kind and name of each.
    at_once : bool
        Whether rows are seen at once.
    """

    def __init__(self, place: Path, output_format: str, parts: Sequence[tuple[str, str]], at_once: bool) -> None:
        self._folders = [place / folder_of(kind, name) for kind, name in parts]
        self._format = output_format
        self._hidden = not at_once or output_format == "parquet"
        self.number = 0  # of the next files
        self._open: dict[int, Any] = {}
        self._ready: list[tuple[Path, Path]] = []
        try:
            for folder in self._folders:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot write to {place}: {error.strerror}") from error

    def _paths(self, part: int) -> tuple[Path, Path]:
        name = f"part-{self.number:05d}.{EXTENSIONS[self._format]}"
        folder = self._folders[part]
        return folder / (f".{name}" if self._hidden else name), folder / name

    def is_new(self, part: int) -> bool:
        """Whether the next rows begin a file."""
        return part not in self._open

    def write(self, part: int, text: str) -> None:
        """Write lines of a part."""
        file = self._open.get(part)
        try:
            if file is None:
                file = self._open[part] = self._paths(part)[0].open("wb", buffering=0)
            data = memoryview(text.encode("utf-8", "surrogatepass"))
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            raise OutputError(f"cannot write to {self._folders[part]}: {error.strerror}") from error

    def write_batch(self, part: int, rows: pa.RecordBatch) -> None:
        """Write rows of a part to a Parquet file."""
        import pyarrow.parquet as pq  # needed for this format only

        writer = self._open.get(part)
        try:
            if writer is None:
                schema = plain_batch(rows, None).schema
                writer = self._open[part] = pq.ParquetWriter(self._paths(part)[0], schema)
            writer.write_batch(plain_batch(rows, writer.schema))
        except OSError as error:
            raise OutputError(f"cannot write to {self._folders[part]}: {error.strerror}") from error

    def seal(self) -> None:
        """Close the files and bring them to the disk; `show` gives them their names."""
        for part, file in self._open.items():
            file.close()
            hidden, shown = self._paths(part)
            to_disk(hidden)
            if hidden != shown:
                self._ready.append((hidden, shown))
        if self._open:
            self._open.clear()
            self.number += 1

    def show(self) -> None:
        """Give sealed files their names."""
        ready, self._ready = self._ready, []
        for hidden, shown in ready:
            hidden.rename(shown)
        for folder in {shown.parent for _, shown in ready}:
            to_disk(folder)

    def resume(self, number: int) -> None:
        """Go on where files before a number were sealed: those get their names, and others go."""
        self.number = number
        for folder in self._folders:
            for path in sorted([*folder.glob(".part-*"), *folder.glob("part-*")]):
                found = int(path.name.lstrip(".").removeprefix("part-").split(".", 1)[0])
                if found >= number:
                    path.unlink()
                elif path.name.startswith("."):
                    path.rename(path.with_name(path.name[1:]))

    def close(self) -> None:
        """The end of all rows."""
        self.seal()
        self.show()


def connector(url: str, host_of: Callable[[str], tuple[str, int]]) -> Callable[[], socket.socket]:
    """What connects to a listener."""
    if url.startswith("unix:"):
        path = url.removeprefix("unix:").removeprefix("//")
        if not path:
            raise OptionError(f"{url} names no path; write unix:/run/app.sock")

        def connect_file() -> socket.socket:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                found.connect(path)
            except OSError:
                found.close()
                raise
            return found

        return connect_file
    host, port = host_of(url)

    def connect() -> socket.socket:
        found = socket.create_connection((host, port), timeout=5)
        found.settimeout(None)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    return connect
