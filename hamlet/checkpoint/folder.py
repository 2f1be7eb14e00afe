"""A folder of saves: each is sealed and beside the one before, so whatever breaks off leaves one that is whole.

Two generations are kept. One process at a time uses the folder; a lock says which.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Sequence
from pathlib import Path

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json
from hamlet.errors import OptionError, OutputError, RestoreError
from hamlet.output.place import to_disk

_NAME = re.compile(r"state-(\d{12})\.save")
_KEPT = 2


class Folder:
    """The saves of one run.

    Parameters
    ----------
    path : pathlib.Path
        Made where it is not there.
    work : Work
        What is saved: another text cannot go on with it.
    names : sequence of str
        The fields of a save.

    Attributes
    ----------
    generation : int
        Of the last save; 0 before the first.

    Raises
    ------
    OptionError
        If another process uses the folder.
    """

    def __init__(self, path: Path, work: frame.Work, names: Sequence[str]) -> None:
        self.path, self.work, self._names = path, work, names
        self.generation = 0
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise OutputError(f"cannot use the checkpoint {path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.read(self._lock, 64).decode(errors="replace").strip() or "another one"
            os.close(self._lock)
            raise OptionError(f"the checkpoint {path} is in use by process {owner}") from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let others use the folder."""
        os.close(self._lock)

    def saves(self) -> list[tuple[int, Path]]:
        """The generations that are there, the latest first."""
        found = [(int(match[1]), each) for each in self.path.iterdir() if (match := _NAME.fullmatch(each.name))]
        return sorted(found, reverse=True)

    def read(self, at_most: int | None = None) -> tuple[dict[str, Json], BlobReader] | None:
        """The latest save that is whole (of a generation up to `at_most`); None where there is none yet.

        Raises
        ------
        RestoreError
            It is of another text, or none is whole.
        """
        damaged: RestoreError | None = None
        for generation, path in self.saves():
            if at_most is not None and generation > at_most:
                continue
            data = path.read_bytes()
            try:
                frame.opened(data)
            except RestoreError as error:
                damaged = damaged or RestoreError(f"{path}: {error}")
                continue
            try:
                found = frame.read(self.work, data, self._names)
            except RestoreError as error:
                raise RestoreError(f"cannot go on from the checkpoint {self.path}: {error}") from None
            self.generation = generation
            return found
        if damaged is not None:
            raise damaged
        return None

    def write(self, fields: dict[str, Json], blobs: BlobWriter) -> None:
        """Write the next generation; when this returns it is on the disk."""
        self.generation += 1
        path = self.path / f"state-{self.generation:012d}.save"
        fresh = path.with_suffix(".new")
        try:
            with fresh.open("wb") as file:
                file.write(frame.write(self.work, fields, blobs))
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(path)
            to_disk(self.path)
            for generation, old in self.saves():
                if generation <= self.generation - _KEPT or generation > self.generation:
                    with contextlib.suppress(FileNotFoundError):
                        old.unlink()
        except OSError as error:
            raise OutputError(f"cannot write the checkpoint {self.path}: {error.strerror}") from error
