"""The checkpoint of a continuous job: whose it is, whether all of it is there, what has been read; no pyspark needed.

A job holds a lock of the operating system while it runs, so a killed one leaves nothing behind that is in the way.
Beside Spark's own folders there are the owner, and the columns of the input as they were when the job began.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from hamlet.errors import DataError, OutputError, RestoreError

LOCK = "owner"
_MOST_FILES = 10_000  # that are looked at again, the latest


@contextmanager
def owned(checkpoint: str) -> Iterator[None]:
    """Hold a checkpoint while a job runs.

    Raises
    ------
    OutputError
        If another job holds it, with its process.
    RestoreError
        If a part of it has been removed.
    """
    folder = Path(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise OutputError(
                f"the checkpoint {checkpoint} is in use by {owner}\n"
                "hint: stop that job first, or give this one a checkpoint and an output of its own"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        check_parts(folder)
        yield


def is_begun(checkpoint: Path) -> bool:
    """Whether a job has been there."""
    return checkpoint.is_dir() and any(each.name != LOCK for each in checkpoint.iterdir())


def check_parts(folder: Path) -> None:
    """Check that Spark's place in the input and the states of monitors are both there, or both are not.

    Raises
    ------
    RestoreError
        If one of them has been removed.
    """
    if (folder / "monitor").is_dir() or (folder / "spark").is_dir():
        raise RestoreError(f"the checkpoint {folder} is of an earlier version; begin with a new one and a new output")
    hint = "hint: put it back, or begin again with a new checkpoint and a new output"
    done, begun = _numbers(folder / "commits"), _numbers(folder / "offsets")
    for lost, there, what in (
        (folder / "state", any((folder / "state").rglob("*")), "the states of its monitors"),
        (folder / "sources", any((folder / "sources").rglob("*")), "what has been read of the input"),
        (folder / "offsets", bool(begun), "Spark's place in the input"),
    ):
        is_needed = done or (begun and lost.name == "sources") or (lost.name == "offsets" and _has_state(folder))
        if is_needed and not there:
            raise RestoreError(f"the checkpoint {folder} has lost {what}, {lost}\n{hint}")


def _has_state(folder: Path) -> bool:
    return any((folder / "state").rglob("*.zip")) or any((folder / "state").rglob("*.changelog"))


def _numbers(folder: Path) -> list[int]:
    """The micro-batches that a log of Spark's has."""
    return sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit()) if folder.is_dir() else []


def kept_columns(checkpoint: str, found: Callable[[], pa.Schema], table: str = "columns") -> pa.Schema:
    """The columns of the input, or of one of its tables, as they were when the job began.

    Raises
    ------
    RestoreError
        If what was kept is damaged.
    """
    place = Path(checkpoint, f"{table}.arrow")
    try:
        return pa.ipc.read_schema(pa.BufferReader(place.read_bytes()))
    except FileNotFoundError:
        schema = found()
    except (ValueError, pa.ArrowException) as error:
        raise RestoreError(f"the checkpoint is damaged: {place} cannot be read ({error})") from None
    fresh = place.with_suffix(".new")
    fresh.write_bytes(schema.serialize().to_pybytes())
    fresh.replace(place)
    return schema


class FilesRead:
    """The files that a job has read, as Spark's log of its source tells; one that changes afterwards is a mistake.

    Parameters
    ----------
    checkpoint : str
    held : str, optional
        The folder that `owned` holds, where it is another one.
    """

    def __init__(self, checkpoint: str, held: str | None = None) -> None:
        self._folder = Path(checkpoint)
        self._logs: set[str] = set()
        self._files: dict[Path, tuple[int, int]] = {}  # when it was changed last (ms), and with what it was read
        self._began = _changed(Path(held or checkpoint, LOCK)) or 0
        self._offsets: dict[int, int] = {}  # of micro-batches: the last number of the source

    def check(self) -> None:
        """Check that no file has changed since it was read.

        Raises
        ------
        DataError
            With the file, and what to do instead.
        """
        self._learn()
        done = _numbers(self._folder / "commits")
        bounds = {each: bound for each in done if (bound := self._read_by(each)) is not None}
        for path, (listed, number) in list(self._files.items())[-_MOST_FILES:]:
            batch = next((each for each in done if self._offsets.get(each, -1) >= number), None)
            changed = _changed(path)
            if changed is None or changed == listed or batch not in bounds or changed <= bounds[batch]:
                continue
            raise DataError(
                f"{path} has changed since it was read; what was written since then is not read\n"
                "hint: write a file elsewhere and move it into the folder when it is complete; here move the new "
                "lines into a file of their own, and set the time of this one back (touch -d)"
            )

    def committed(self) -> tuple[int, list[str]]:
        """The last micro-batch that is done, -1 for none, and the files that were read by it."""
        self._learn()
        last = max(_numbers(self._folder / "commits"), default=-1)
        if last < 0:
            return last, []
        self._read_by(last)
        bound = self._offsets.get(last, -1)
        return last, [str(path) for path, (_, number) in self._files.items() if number <= bound]

    def _read_by(self, batch: int) -> int | None:
        """A time, in ms, from which on a change of a file comes after the micro-batch that has read it.

        A micro-batch that was tried before has read files that were mended in between.
        """
        done = _changed(self._folder / "commits" / str(batch))
        place = self._folder / "offsets" / str(batch)
        begun = _changed(place)
        if done is None or begun is None:
            return None
        if batch not in self._offsets:
            lines = place.read_text().splitlines()
            found = [json.loads(line).get("logOffset", -1) for line in lines[2:] if line.startswith("{")]
            self._offsets[batch] = max(found, default=-1)
        return done if done <= self._began else max(begun, self._began)

    def _learn(self) -> None:
        """Read what is new in the log."""
        folder = self._folder / "sources" / "0"  # of a job that follows one folder
        names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        fresh = [each for each in names if each not in self._logs and each.removesuffix(".compact").isdigit()]
        for name in sorted(fresh, key=lambda each: int(each.removesuffix(".compact"))):
            lines = (folder / name).read_text("utf-8", "replace").splitlines()
            for line in lines[1:]:
                told = json.loads(line)
                path = Path(unquote(urlsplit(told["path"]).path))
                self._files[path] = int(told["timestamp"]), int(told["batchId"])
            self._logs.add(name)


def _changed(path: Path) -> int | None:
    """When a file was changed last, in ms; None where there is none."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return None
