"""What the command line says of streams that do not end, without what reads and writes them (`hamlet.cli.live`)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from hamlet.cli.options import Input, Place, inputs_of

SCHEMES = ("tcp://", "unix:", "kafka://")
LIVE_OPTIONS = (
    click.option(
        "--follow",
        is_flag=True,
        help="Go on reading files as they grow, also through rotation, and folders as files appear in them.",
    ),
    click.option("--clock", is_flag=True, help="Let the wall clock move time once no event has come for --idle."),
    click.option("--idle", metavar="DURATION", default="5 s", show_default=True, help="How long --clock waits."),
    click.option("--columns", metavar="NAME,NAME", help="The columns of CSV without a header."),
    click.option("--checkpoint", metavar="DIR", type=Place(), help="Save place and state there, and go on from them."),
    click.option("--every", metavar="DURATION", default="10 s", show_default=True, help="How often to save."),
    click.option("--http", metavar="HOST:PORT", help="Serve /metrics, /health and a page about the run."),
)
States = Iterator[bytes]  # what tenants were saved as; empty where they begin


@dataclass(frozen=True, kw_only=True)
class Live:
    """What the command line says about a stream that does not end."""

    follow: bool = False
    clock: bool = False
    idle: str = "5 s"
    columns: str | None = None
    checkpoint: str | None = None
    every: str = "10 s"
    http: str | None = None

    @property
    def names(self) -> list[str] | None:
        """The columns of CSV."""
        return None if self.columns is None else [each.strip() for each in self.columns.split(",")]


def live_of(options: dict[str, Any]) -> Live:
    """What `LIVE_OPTIONS` say, taken out of the options of a command."""
    return Live(**{name: options.pop(name) for name in Live.__dataclass_fields__ if name in options})


def is_live(
    source: Input | None, output: Sequence[str], live: Live, input_format: str | None, whole: bool = False
) -> bool:
    """Whether the input, or the output, is one that does not end.

    With `whole`, an option asks for all of the input at once: then a pipe is read to its end, and copied.
    """
    asked = live.follow or live.clock or live.checkpoint is not None or live.http is not None
    if asked or live.columns is not None or input_format == "arrow":
        return True
    if len(output) > 1 or any(each.startswith(SCHEMES) for each in output):
        return True
    inputs = inputs_of(source)
    if any(each.startswith(SCHEMES) or each.lower().endswith(".arrow") for each in inputs):
        return True
    return not whole and input_format != "parquet" and any(each == "-" or is_pipe(each) for each in inputs)


def refuse_live(given: Mapping[str, Any]) -> None:
    """Refuse options that need the whole input at once."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise click.UsageError(f"--{name} needs the whole input at once, and a stream goes on; leave it out")


def is_pipe(path: str) -> bool:
    """Whether there is a named pipe."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


@dataclass
class Destinations:
    """Where the rows of a command go.

    Attributes
    ----------
    outputs : sequence of str
        As the user named them; ``-`` by default.
    output_format : str or None
    overwrite : bool
    keep : sequence of str
        Files that must not be lost.
    """

    outputs: Sequence[str]
    output_format: str | None = None
    overwrite: bool = False
    keep: Sequence[str] = ()
