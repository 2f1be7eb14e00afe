"""Inputs that can be read once, copied so that they can be read twice."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import click

from hamlet.cli.options import Input
from hamlet.errors import DataError, one_of
from hamlet.input.formats import FORMATS, format_of


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
    if isinstance(source, list):
        return [_lasting(each, input_format, more_formats) for each in source]
    return _lasting(source, input_format, more_formats)


def _lasting(source: str, input_format: str | None, more_formats: Sequence[str]) -> str:
    if source == "-":
        if input_format is None:
            raise click.UsageError(f"--input - needs --input-format: {one_of((*FORMATS, *more_formats))}")
        return _copied(sys.stdin.buffer, f"standard-input.{input_format}")
    if Path(source).is_fifo():
        with open(source, "rb") as pipe:
            known = input_format in more_formats
            ending = input_format if known else format_of(Path(source), input_format)
            return _copied(pipe, f"{Path(source).name}.{ending}")
    return source


def _copied(stream: BinaryIO, name: str) -> str:
    context = click.get_current_context()
    copies: dict[str, str] = context.meta.setdefault("hamlet.copies", {})
    if name in copies:  # several readers of one call: a pipe gives what it has once
        return copies[name]
    import tempfile  # seldom needed

    folder = tempfile.TemporaryDirectory(prefix="hamlet-")
    context.call_on_close(folder.cleanup)
    copy = Path(folder.name, name)
    try:
        with copy.open("wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise DataError(f"cannot copy the input to {folder.name}: {error.strerror or error}") from None
    copies[name] = str(copy)
    return copies[name]
