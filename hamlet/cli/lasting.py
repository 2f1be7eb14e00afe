"""Inputs that can be read once, copied so that they can be read twice."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from hamlet.cli.options import Input
from hamlet.cli.words import known_as
from hamlet.errors import DataError, OptionError
from hamlet.input.formats import COMPRESSIONS, FORMATS, format_of

_COPIES = "hamlet.copies"  # in the context of a command: of inputs, their copies
_FIRST = 1 << 16  # bytes of a pipe that say what its format is


def lasting(source: Input, input_format: str | None, more_formats: Sequence[str] = ()) -> Input:
    """The name of an input that can be read twice; that of a copy, kept while the command runs, where it cannot.

    Parameters
    ----------
    source : str or list of str
        As the user named it, or them; ``-`` is standard input.
    input_format : str or None
        As the user named it.
    more_formats : sequence of str
        Formats that can be read besides those of every command, for messages.
    """
    found = [_lasting(each, input_format, more_formats) for each in ([source] if isinstance(source, str) else source)]
    some = [each for each in found if each is not None]  # what gives nothing has no events
    return some[0] if len(found) == 1 and some else some


def _lasting(source: str, input_format: str | None, more_formats: Sequence[str]) -> str | None:
    """The name of an input, or of its copy; None where it can be read once, and nothing was in it."""
    is_input = source == "-"
    if not is_input and not Path(source).is_fifo():
        return source
    if not is_input:
        with contextlib.suppress(OptionError):
            input_format = input_format or format_of(Path(source), None)
    copies: dict[str, str | None] = click.get_current_context().meta.setdefault(_COPIES, {})
    if source not in copies:  # several readers of one call: a pipe gives what it has once
        with contextlib.nullcontext(sys.stdin.buffer) if is_input else open(source, "rb") as pipe:
            name = "standard-input" if is_input else Path(source).name
            copies[source] = copy = _copied(pipe, name, input_format, more_formats)
        if copy is not None:
            known_as(copy, "standard input" if is_input else source)
    return copies[source]


def told(path: str, input_format: str | None) -> str:
    """A name that tells the format of a file, for readers that go by names; a link where its own does not."""
    file = Path(path)
    if input_format not in FORMATS or not file.is_file():
        return path
    with contextlib.suppress(OptionError):
        if format_of(file, None) == input_format:
            return path
    packed = file.suffix.lower() if file.suffix.lower() in COMPRESSIONS else ""
    link = Path(_folder(), f"{file.name}.{input_format}{packed}")
    link.symlink_to(file.resolve())
    known_as(str(link), path)
    return str(link)


def _folder() -> str:
    """A folder that is there while the command runs."""
    import tempfile  # seldom needed

    folder = tempfile.TemporaryDirectory(prefix="hamlet-")
    click.get_current_context().call_on_close(folder.cleanup)
    return folder.name


def _copied(stream: BinaryIO, name: str, input_format: str | None, more_formats: Sequence[str]) -> str | None:
    if input_format not in (None, *more_formats):
        format_of(Path(name), input_format)  # refuses what is none
    folder = _folder()
    copy = Path(folder, name)
    try:
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise DataError(f"cannot copy the input to {folder}: {error.strerror or error}") from None
    if not copy.stat().st_size and input_format != "parquet":
        return None
    form = input_format or _found(copy, more_formats)
    return str(copy.rename(f"{copy}.{'log' if form == 'monpoly' else form}"))


def _found(copy: Path, more_formats: Sequence[str]) -> str:
    """The format of a pipe by its first bytes."""
    from hamlet.input.live.line_times import sniffed  # brings in Arrow

    with copy.open("rb") as file:
        found = sniffed(file.read(_FIRST)) or "json"
    if found not in (*FORMATS, *more_formats):
        format_of(copy, found)  # says who reads it
    return found
