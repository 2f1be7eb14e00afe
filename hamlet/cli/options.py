"""The options that several commands have: the columns of the input, and how to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hamlet.runtime.definitions import COLUMNS, DEFINITIONS

Command = TypeVar("Command", bound=Callable[..., Any])

WORKLOAD = click.argument("workload", type=click.Path(), metavar="WORKLOAD.sase")


class Place(click.Path):
    """A file, folder or URL that has a name: ``"$UNSET"`` is not the folder where a command runs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, as the user gives it."""
        if value == "":
            self.fail("it is empty; name a place", param, ctx)
        return super().convert(value, param, ctx)


class Files(click.Argument):
    """A file, or files, of any notation that is registered."""

    monitored = False

    def make_metavar(self, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """The files that the command takes."""
        from hamlet.cli.notations import metavars  # imports this module

        return metavars(monitored=self.monitored) + "..." * (self.nargs != 1)


class MonitoredFiles(Files):
    """Files of notations that are monitored."""

    monitored = True


FILE = click.argument("workload", type=click.Path(), cls=Files)
FILES = click.argument("workloads", type=click.Path(), cls=Files, nargs=-1, required=True)


Input = str | list[str]  # a path, a pattern or a URL, or several of them


def _inputs(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Input | None:  # noqa: ARG001
    """What an option that may be repeated names: one input as it is, several as a list."""
    if len(given) > 1:
        return list(given)
    return given[0] if given else None


def inputs_of(source: Input | None) -> list[str]:
    """The inputs of a command, one by one."""
    return [source] if isinstance(source, str) else list(source or ())


def input_name(source: Input | None) -> str:
    """What an input is called in a title."""
    names = inputs_of(source)
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else ""


def input_option(
    more: str = " - is standard input.", *, metavar: str = "PATH|-", required: bool = False, monpoly: bool = False
) -> Callable[[Any], Any]:
    """``--input``, whose help ends with what a command can read besides; logs of MonPoly only where they are read."""
    forms = "a Parquet, CSV or JSON lines file, a folder of them, or a pattern such as 'logs/*.csv'" + (
        ", or MonPoly's log (.log)" if monpoly else ""
    )
    return click.option(
        "--input",
        "-i",
        "source",
        metavar=metavar,
        type=Place(),
        multiple=True,
        callback=_inputs,
        required=required,
        help=f"Events: {forms}; may be repeated: all are one stream, merged by time.{more}",
    )


def option(name: str, more: str = "", **settings: Any) -> Callable[[Any], Any]:
    """An option as `hamlet.runtime.definitions` has it, whose help ends with what is given."""
    known = DEFINITIONS[name]
    if known.default is not None:
        settings = {"default": known.default, "show_default": True, **settings}
    kind = click.Choice(known.choices) if known.choices else click.IntRange(min=1) if known.counted else str
    said = known.help + more
    return click.option(known.written, name, metavar=known.shown, type=kind, help=said, **settings)


def max_memory_option(more: str = "") -> Callable[[Any], Any]:
    """``--max-memory``, whose help ends with where it holds."""
    return option("max_memory", more)


QUERY = click.option(
    "--query", "queries", metavar="NAME", multiple=True, help="Only this query of the workload; may be repeated."
)


def lateness_option(more: str = "") -> Callable[[Any], Any]:
    """``--lateness``: ticks as a number, a duration as its text; the help ends with where it holds."""
    return option("lateness", more, default="0", callback=_ticks)


def _ticks(_context: click.Context, _option: click.Parameter, given: str) -> int | str:
    return int(given) if given.isdecimal() else given


LATENESS = (lateness_option(), option("late"))
WHERE = option("where")
OUTPUT = click.option(
    "--output",
    "-o",
    "outputs",
    metavar="DIR|-|URL",
    type=Place(),
    multiple=True,
    help="A new directory (parquet unless --output-format says otherwise), - for standard output (json), "
    "tcp://HOST:PORT, unix:PATH or kafka://BROKER/TOPIC; may be repeated. Without, tables of the first 20 rows are "
    "printed, and of pipes and sockets all rows as they come.",
)
REPORT = click.option(
    "--report",
    metavar="FILE.html",
    type=click.Path(),
    help="Write a page about the run: results over time, events by type, where the time went, what was shared.",
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print results and errors only.")
COLUMN_OPTIONS = tuple(option(name) for name in ("input_format", *COLUMNS))
TIMEZONE = option("timezone")
READING_OPTIONS = (
    option("delimiter"),
    option("bad_rows", callback=lambda _context, _option, given: "error" if given == "fail" else given),
    option("missing_columns"),
)
PERIOD_OPTIONS = (option("since"), option("until"))
RUN_OPTIONS = (
    click.option("--output-format", type=click.Choice(["json", "csv", "parquet"]), help="Format of the results."),
    *(option(name) for name in ("sharing", "benefit", "numbers", "count_type", "threads", "null_keys")),
    click.option("--overwrite", is_flag=True, help="Replace an output directory that is not empty."),
    QUIET,
)


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that puts several options on a command, in this order in its help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
