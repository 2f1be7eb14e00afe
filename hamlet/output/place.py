"""Where a single file that a run writes beside its results may go: a page, a trace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

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
