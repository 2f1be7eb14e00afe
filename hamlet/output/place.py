"""Where results may go: a folder that takes its place once all of it is there, and single files beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from hamlet.arrays import pa
from hamlet.errors import OutputError


def check_place(path: str | os.PathLike[str], option: str, keep: Iterable[str] = (), *, example: str) -> Path:
    """The absolute place of a file, after a look at what is there now; to be called before a long run.

    Parameters
    ----------
    path : path
        A file that is there already will be replaced.
    option : str
        What asked for the file, for the message.
    keep : iterable of str
        Files that must not be replaced, and folders of such files: the workload and the input.
    example : str
        A name that such a file may have, for the message.

    Raises
    ------
    OutputError
        If it is a folder or a file to keep, or the folder that it shall lie in is missing or must not be written.
    """
    place = Path(path).absolute()
    if place.is_dir():
        raise OutputError(f"{option} {os.fspath(path)!r} is a folder; name a file in it, such as {example}")
    if place.exists() and any(place.resolve().is_relative_to(Path(each).resolve()) for each in keep):
        raise OutputError(f"{option} {os.fspath(path)!r} would replace a file that is read here; choose another name")
    if not place.parent.is_dir():
        raise OutputError(f"{option} {os.fspath(path)!r}: there is no folder {str(place.parent)!r}; make it first")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise OutputError(f"{option} {os.fspath(path)!r}: no permission to write there; choose another place")
    return place


def check_beside(path: str | os.PathLike[str] | None, option: str, directory: str | os.PathLike[str]) -> None:
    """Refuse a file inside the folder of the results, which a run puts in place as a whole, whatever is there.

    Raises
    ------
    OutputError
        With both names.
    """
    if path is not None and Path(path).resolve().is_relative_to(Path(directory).resolve()):
        raise OutputError(
            f"{option} {os.fspath(path)!r} lies in the output directory {os.fspath(directory)!r}, which holds results "
            "only; choose a place beside it"
        )


def check_destination(directory: str | os.PathLike[str], overwrite: bool = False, keep: Iterable[str] = ()) -> Path:
    """The absolute place of a result folder, after a look at what is there now; to be called before a long run.

    Parameters
    ----------
    directory : path
        Where the results shall go.
    overwrite : bool
        Whether what is there may be replaced.
    keep : iterable of str
        Files that must not be lost, the input of the run above all.

    Raises
    ------
    OutputError
        If the place is a file, a folder with something in it (without `overwrite`), or a folder that holds a file to
        keep, the current folder or the home folder.
    """
    if "://" in os.fspath(directory):
        raise OutputError(
            f"{os.fspath(directory)} is a URL, and results are written to directories here\n"
            "hint: write to a directory and copy that, or let hamlet submit write to what Spark can"
        )
    place = Path(directory).resolve()
    if place.exists() and not place.is_dir():
        raise OutputError(f"{directory} is a file; the output must be a directory")
    if not place.exists() or not any(place.iterdir()):
        return place
    if not overwrite:
        raise OutputError(
            f"{directory} is not empty; give --overwrite (overwrite=True) to replace it, or choose another directory"
        )
    precious = [Path(file).resolve() for file in keep] + [Path.cwd()]
    with contextlib.suppress(RuntimeError):  # there is no home folder
        precious.append(Path.home().resolve())
    for path in precious:
        if path.is_relative_to(place):
            raise OutputError(f"{directory} holds {path}, which --overwrite would delete; choose another directory")
    return place


@contextlib.contextmanager
def claimed(place: Path) -> Iterator[None]:
    """Hold a folder of rows, which is made where it is not there, so that no other run writes to it meanwhile.

    Raises
    ------
    OutputError
        Another run holds it, or it cannot be made.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
        folder = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"cannot write to {place}: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):  # of a file system without locks
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(
                    f"another run writes to {place}\nhint: stop that one first, or choose another directory"
                ) from None
        yield
    finally:
        os.close(folder)


@contextlib.contextmanager
def staged(place: Path, shown: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder beside a place, which takes the place when the block ends well and is removed otherwise.

    Parameters
    ----------
    place : pathlib.Path
        As `check_destination` gives it.
    shown : path
        The place as the user wrote it, for messages.

    Raises
    ------
    OutputError
        If the disk cannot take the files.
    """
    unique = os.urandom(6).hex()
    fresh, former = (place.with_name(f".{place.name}.{unique}.{role}") for role in ("new", "old"))
    try:
        fresh.mkdir(parents=True)
        yield fresh
        _put_in_place(fresh, place, former)
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"cannot write to {shown}: {reason}") from error
    finally:  # also after Ctrl-C
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(former, ignore_errors=True)


def folder_name(query: str) -> str:
    """The name of a query's folder, percent-encoded."""
    return f"query={quote(query, safe='')}"


def _put_in_place(fresh: Path, place: Path, former: Path) -> None:
    try:
        with claimed(place) if place.exists() else contextlib.nullcontext():
            if place.exists():
                place.rename(former)
            fresh.rename(place)
    except BaseException:
        if former.exists() and not place.exists():
            former.rename(place)
        raise


def to_disk(path: Path) -> None:
    """Wait until what was written to a file, or to the names of a folder, is on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that no half of it is ever seen; raises OSError.

    Of a link the file behind it is replaced; what is no file (a device, a pipe) is written to.
    """
    place = Path(path).resolve()
    if place.exists() and not place.is_file():
        place.write_bytes(data)
        return
    fresh = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        fresh.write_bytes(data)
        fresh.replace(place)
    finally:
        fresh.unlink(missing_ok=True)
