"""Where bytes come from: pipes, files that grow, folders, and connections to a socket.

A source never waits: it says what to watch, and gives what is there. Each connection and each file is a stream of its
own.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import select
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from hamlet.errors import DataError, OptionError, similar_file

READ = 1 << 20  # bytes that are read at once
_QUICK = getattr(socket, "TCP_QUICKACK", None)  # of Linux
_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux
_TOLD = 256  # bytes before a place by which a file is known again
_LOOK = 0.05  # seconds between two looks at files that may have grown
_FORMS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_FORMS |= {".arrow": "arrow", ".arrows": "arrow"}
_WHOLE = (".parquet", ".pq", ".gz", ".bz2", ".zst")
Place = dict[str, Any]
_Identity = tuple[int, int]


@dataclass(eq=False)
class Stream:
    """A connection, a file or a pipe.

    Attributes
    ----------
    name : str
        For messages.
    offset, line : int
        Where it begins in the file.
    header : bytes or None
        The CSV header before that.
    headless : bool
        Whether no header can come.
    owner : Source or None
        Whose it is, where another source of its group may give what it has.
    """

    name: str
    offset: int = 0
    line: int = 1
    header: bytes | None = None
    headless: bool = False
    about: Place = field(default_factory=dict)
    owner: Source | None = None


@dataclass(frozen=True)
class Ended:
    """No bytes follow in a stream; where it is not `whole`, a last line without a line break is none."""

    whole: bool


Read = tuple[Stream, "bytes | Ended"]


class Source:
    """Gives bytes of streams.

    Attributes
    ----------
    name : str
    done : bool
        Whether nothing can come any more.
    look : float or None
        Seconds after which the source wants to be read though nothing says that it is ready.
    repeatable : bool
        Whether it can be read again from a place.
    carries : bool
        Whether a time-point of a log may go on in the next stream.
    form : str or None
        Of its streams, where the name tells.
    """

    name = ""
    done = False
    look: float | None = None
    repeatable = False
    carries = False
    form: str | None = None

    def watched(self) -> list[int]:
        """The descriptors that can be read when something has come."""
        return []

    def read(self, ready: set[int]) -> Iterator[Read]:
        """What is there; descriptors in `ready` can be read."""
        raise NotImplementedError

    def place(self, stream: Stream, offset: int, line: int, header: bytes | None) -> Place:
        """Where to go on, when so much of a stream has been taken."""
        raise NotImplementedError

    def start(self) -> Place:
        """Where to begin, while nothing has been read."""
        return self.place(Stream(self.name), 0, 1, None)

    def hold(self, place: Place, rest: bytes) -> Place:
        """A place, with what has been read and belongs to a time-point of a log that is open."""
        del rest
        return place

    def resume(self, place: Place) -> Place:
        """Go on at a place, or where that is gone, at the one that is given."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what is open."""


class PipeSource(Source):
    """Standard input, or a named pipe."""

    def __init__(self, file: BinaryIO | None, name: str, path: Path | None = None) -> None:
        self.name = name
        self._stream = Stream(name)
        self._file = file
        self._fd = -1
        if path is not None:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        elif file is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                self._fd = file.fileno()
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._fd, _PIPE_SIZE, READ)
        else:
            self.look = 0.0
        self._path = path

    def watched(self) -> list[int]:
        """The pipe."""
        return [self._fd] if self._fd >= 0 and not self.done else []

    def read(self, ready: set[int]) -> Iterator[Read]:
        """What is in the pipe."""
        if self._fd >= 0 and self._fd not in ready:
            return
        try:
            data = os.read(self._fd, READ) if self._fd >= 0 else self._of_file()
        except BlockingIOError:
            return
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror}") from error
        if not data:
            self.done = True
        yield self._stream, data or Ended(True)

    def _of_file(self) -> bytes:
        return b"" if self._file is None else self._file.read(READ)

    def close(self) -> None:
        """Close a named pipe."""
        if self._path is not None:
            os.close(self._fd)
            self._fd = -1


class ListenSource(Source):
    """Connections to a socket, one after the other."""

    carries = True

    def __init__(self, url: str) -> None:
        self.name = url
        self._count = 0
        self._connection: socket.socket | None = None
        self._stream: Stream | None = None
        self._path: str | None = None
        if url.startswith("unix:"):
            self._path = url.removeprefix("unix:").removeprefix("//")
            self._socket = _listening_file(self._path, url)
        else:
            self._socket = _listening(*host_of(url), url)
            host, port = self._socket.getsockname()[:2]
            self.name = f"tcp://{f'[{host}]' if ':' in host else host}:{port}"
        self._socket.setblocking(False)

    def watched(self) -> list[int]:
        """The connection, or the socket while there is none."""
        return [(self._connection or self._socket).fileno()]

    def read(self, ready: set[int]) -> Iterator[Read]:
        """What the connection has sent; a new one where there is none."""
        if self._connection is None:
            if self._socket.fileno() not in ready:
                return
            try:
                self._connection, _ = self._socket.accept()
            except OSError:
                return
            self._connection.setblocking(False)
            self._count += 1
            self._stream = Stream(f"{self.name} (connection {self._count})")
        elif self._connection.fileno() not in ready:
            return
        assert self._stream is not None
        try:
            data = self._connection.recv(READ)
            if _QUICK is not None and self._path is None:
                # A sender with small writes waits for their acknowledgement, and that may be held back 40 ms; said anew
                # after each read, since the kernel forgets it.
                self._connection.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
        except BlockingIOError:
            return
        except OSError:  # it was reset
            data = b""
        if data:
            yield self._stream, data
            return
        self._connection.close()
        self._connection = None
        yield self._stream, Ended(False)

    def close(self) -> None:
        """Stop listening."""
        if self._connection is not None:
            self._connection.close()
        self._socket.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


class FileSource(Source):
    """A file, read to its end, or as it grows: through rotation, and anew where it shrank."""

    repeatable = True
    carries = True

    def __init__(self, path: Path, follow: bool, name: str | None = None) -> None:
        self.name = name or str(path)
        self._path, self.follow = path, follow
        self.form = form_of(path)
        self.look = 0.0
        self._file: BinaryIO | None = None
        self._stream = Stream(self.name)
        self._at = 0
        self._latest = True  # whether the file that is read was the one of the path when it was opened
        if not follow and not path.exists():
            raise DataError(f"no such file: {path}{similar_file(path)}")
        if path.exists() and not os.access(path, os.R_OK):
            raise DataError(f"cannot read {path}: Permission denied")

    def read(self, ready: set[int]) -> Iterator[Read]:  # noqa: ARG002
        """What the file has beyond what was read."""
        if not self._is_there():
            self.look = _LOOK
            return
        assert self._file is not None
        data = self._file.read(READ)
        if data:
            self._at += len(data)
            self.look = 0.0
            yield self._stream, data
            return
        if not self.follow and self._latest:
            self.done = True
            yield self._stream, Ended(True)
            return
        self.look = _LOOK
        if os.fstat(self._file.fileno()).st_size < self._at:  # it was cut, and begins anew
            yield self._stream, Ended(False)
            self._begin(self._file)
        elif not self._latest or self._replaced():
            data = self._file.read(READ)  # what came until it was replaced
            if data:
                self._at += len(data)
                yield self._stream, data
                return
            after = self._after(self._file)
            if after is not None:
                yield self._stream, Ended(True)
                self._file.close()
                self._begin(after)

    def _is_there(self) -> bool:
        """Open the file if none is open, and it is there."""
        if self._file is None:
            opened = self._opened(self._path)
            if opened is not None:
                self._begin(opened)
        return self._file is not None

    def _after(self, file: BinaryIO) -> BinaryIO | None:
        """Open the file that was begun after one; None where it was just renamed and is to be looked for again."""
        later = _since(self._path, _identity(file.fileno()))[1:]
        path, wanted = later[0] if later else (self._path, None)
        return self._opened(path, wanted)

    def _opened(self, path: Path, wanted: _Identity | None = None) -> BinaryIO | None:
        """Open the file of a path, if it is there and the one that is wanted."""
        try:
            file = path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise DataError(f"{path} is not a file")
        if wanted is not None and _identity(file.fileno()) != wanted:
            file.close()
            return None
        self._latest = path == self._path
        return file

    def _begin(self, file: BinaryIO) -> None:
        """Read a file from its start."""
        file.seek(0)
        self._file, self._at = file, 0
        found = os.fstat(file.fileno())
        self._stream = Stream(self.name, about={"file": [found.st_dev, found.st_ino]})
        self.look = 0.0

    def _replaced(self) -> bool:
        """Whether the path is that of another file now."""
        assert self._file is not None
        return _identity(self._path) not in (None, _identity(self._file.fileno()))

    def start(self) -> Place:
        """The start of the file that is there now, which may be renamed before anything has been read."""
        self._is_there()
        return self.place(self._stream, 0, 1, None)

    def place(self, stream: Stream, offset: int, line: int, header: bytes | None) -> Place:
        """The file, and how much of it was taken."""
        told = None if header is None else header.decode("latin-1")
        before = None if self._file is None or stream is not self._stream else self._before(self._file, offset)
        return {**stream.about, "offset": offset, "line": line, "header": told, "before": before}

    @staticmethod
    def _before(file: BinaryIO, offset: int) -> str:
        """What a file has right before a place: another file may get the number of one that is gone."""
        begin = max(0, offset - _TOLD)
        return os.pread(file.fileno(), offset - begin, begin).decode("latin-1")

    def resume(self, place: Place) -> Place:
        """Go on in the file that was read, wherever it lies by now, and then in those that followed it."""
        if not place.get("file"):
            return self.start()
        device, number = place["file"]
        opened = None
        while opened is None:
            found = _since(self._path, (device, number))
            if not found:
                if place["offset"]:
                    raise DataError(
                        f"{self.name}: the file that the checkpoint speaks of is not there any more, nor among those "
                        "that it may have been renamed to"
                    )
                return place
            opened = self._opened(*found[0])
        self._begin(opened)
        assert self._file is not None
        offset = int(place["offset"])
        cut = os.fstat(self._file.fileno()).st_size < offset
        before = place.get("before")
        if cut or (before is not None and before != self._before(self._file, offset)):  # it was begun anew meanwhile
            return self.place(self._stream, 0, 1, None)
        self._file.seek(offset)
        self._at = offset
        self._stream.offset, self._stream.line = offset, int(place["line"])
        self._stream.header = None if place["header"] is None else place["header"].encode("latin-1")
        return place

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class FolderSource(Source):
    """The files of a folder in the order of their names; with `follow` those that appear, too."""

    repeatable = True

    def __init__(self, path: Path, follow: bool) -> None:
        self.name = str(path)
        self._path, self._follow = path, follow
        self.look = 0.0
        self._taken: set[str] = set()
        self._inner: FileSource | None = None
        self._open = ""
        self._waiting: list[str] = []
        self._held: Stream | None = None

    @property
    def form(self) -> str | None:  # type: ignore[override]
        """The form of the file that is open."""
        return None if self._inner is None else self._inner.form

    def read(self, ready: set[int]) -> Iterator[Read]:
        """What the next file has."""
        if self._inner is None and not self._next():
            self.done = not self._follow
            self.look = _LOOK
            return
        assert self._inner is not None
        self.look = 0.0
        for stream, data in self._inner.read(ready):
            stream.about["name"] = self._open
            yield stream, data
        if self._inner.done:
            self._taken.add(self._open)
            self._inner.close()
            self._inner = None

    def _next(self) -> bool:
        if not self._waiting:
            self._waiting = [name for name in self._names() if name not in self._taken]
        if not self._waiting:
            return False
        self._open = self._waiting.pop(0)
        path = self._path / self._open
        self._inner = FileSource(path, False, str(path))
        return True

    def _names(self) -> list[str]:
        try:
            found = [each.relative_to(self._path) for each in self._path.rglob("*") if each.is_file()]
        except OSError as error:
            raise DataError(f"cannot read the folder {self.name}: {error.strerror}") from error
        return sorted(str(each) for each in found if not any(part.startswith((".", "_")) for part in each.parts))

    def place(self, stream: Stream, offset: int, line: int, header: bytes | None) -> Place:
        """The files that were read, and how much of the one that is open."""
        told = None if header is None else header.decode("latin-1")
        inside = {**stream.about, "offset": offset, "line": line, "header": told}
        return {"taken": sorted(self._taken), "inside": None if stream.about.get("name") in self._taken else inside}

    def resume(self, place: Place) -> Place:
        """Go on after the files that were read."""
        self._taken = set(place["taken"])
        inside = place["inside"]
        if inside and inside.get("name"):
            self._open = inside["name"]
            path = self._path / self._open
            if path.exists():
                self._inner = FileSource(path, False, str(path))
                inside = self._inner.resume(inside)
        return {**place, "inside": inside}

    def close(self) -> None:
        """Close the file that is open."""
        if self._inner is not None:
            self._inner.close()


def form_of(path: Path) -> str | None:
    """The form of a file by its name."""
    if path.suffix.lower() in _WHOLE:
        raise OptionError(
            f"{path} can be read as a whole only, and a stream is read as it comes: as csv, json, monpoly or arrow\n"
            "hint: leave out --follow, --checkpoint, --http and --clock"
        )
    return _FORMS.get(path.suffix.lower())


def _since(path: Path, first: _Identity | None) -> list[tuple[Path, _Identity]]:
    """The first file, wherever it was renamed to, and those begun after it, oldest first; none where it is gone.

    What was renamed in the same way has a name that differs in digits only: ``a.log.1`` and ``a.log.2``, or dates. Such
    files stand in the order in which they were last written, where that is equal as logrotate counts: 1 is the latest.
    """
    now = _identity(path)
    if now == first and now is not None:
        return [(path, now)]
    found = []
    for each in path.parent.iterdir():
        rest = each.name.removeprefix(path.stem)
        with contextlib.suppress(OSError):
            if rest != each.name and each != path:
                known = os.stat(each)
                ages = known.st_mtime_ns, [-int(digits) for digits in re.findall("[0-9]+", rest)]
                found.append((re.sub("[0-9]+", "0", rest), ages, each, (known.st_dev, known.st_ino)))
    for form, begun, _, identity in found:
        if identity == first:
            alike = sorted(each[1:] for each in found if each[0] == form and each[1] >= begun)
            return [each[1:] for each in alike] + ([] if now is None else [(path, now)])
    return []


def _identity(of: Path | int) -> _Identity | None:
    """What a file keeps when it is renamed."""
    try:
        found = os.stat(of)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def host_of(url: str) -> tuple[str, int]:
    """Host and port of ``tcp://HOST:PORT``.

    Raises
    ------
    OptionError
        If the URL has none.
    """
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.path not in ("", "/"):
        raise OptionError(f"{url} names no host and port; write tcp://127.0.0.1:9000")
    return host, port


def _listening(host: str, port: int, url: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(16)
    except OSError as error:
        used = "; another process listens there" if error.errno == errno.EADDRINUSE else ""
        raise OptionError(f"cannot listen at {url}: {error.strerror or error}{used}") from None
    return found


def _listening_file(path: str, url: str) -> socket.socket:
    """A socket at a path; one that nobody listens to any more is replaced."""
    if not path:
        raise OptionError(f"{url} names no path; write unix:/run/app.sock")
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise OptionError(f"cannot listen at {url}: {path} is there, and is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(path)
            except OSError:
                os.unlink(path)
            else:
                raise OptionError(f"cannot listen at {url}: another process listens there")
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.bind(path)
        found.listen(16)
    except OSError as error:
        raise OptionError(f"cannot listen at {url}: {error.strerror or error}") from None
    return found


def wait(sources: list[Source], also: list[int], timeout: float | None) -> set[int]:
    """Wait until something has come, for so many seconds at most; gives the descriptors that can be read."""
    poll = select.poll()
    for fd in [*(fd for source in sources for fd in source.watched()), *also]:
        poll.register(fd, select.POLLIN)
    for source in sources:
        if not source.done and source.look is not None:
            timeout = source.look if timeout is None else min(timeout, source.look)
    return {fd for fd, _ in poll.poll(None if timeout is None else max(0.0, timeout) * 1000)}
