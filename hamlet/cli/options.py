"""The options that several commands have: the columns of the input, and how to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

WORKLOAD = click.argument("workload", type=click.Path(), metavar="WORKLOAD.sase")


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
        multiple=True,
        callback=_inputs,
        required=required,
        help=f"Events: {forms}; may be repeated: all are one stream, merged by time.{more}",
    )


def max_memory_option(more: str = "") -> Callable[[Any], Any]:
    """``--max-memory``, whose help ends with where it holds."""
    return click.option(
        "--max-memory",
        metavar="SIZE",
        help="Stop, and say which query and group holds the most, before the run takes more: '2 GiB', '500 MB'. "
        f"This counts what queries keep between events, not the input batch or the results.{more}",
    )


QUERY = click.option(
    "--query", "queries", metavar="NAME", multiple=True, help="Only this query of the workload; may be repeated."
)
LATENESS = (
    click.option(
        "--lateness",
        metavar="DURATION",
        default="0",
        help="How far behind the latest time events of a stream may be: '5 s', or ticks of the time column.",
    ),
    click.option(
        "--late",
        type=click.Choice(["error", "drop"]),
        default="error",
        help="What happens to events later than that: an error, or dropped and counted.",
    ),
)
WHERE = click.option(
    "--where",
    metavar="CONDITION",
    help="Only events for which this is true, beside what the queries say: \"speed < 10 AND district = 'Soho'\". "
    "Conditions are those of the language, over columns.",
)
REPORT = click.option(
    "--report",
    metavar="FILE.html",
    type=click.Path(),
    help="Write a page about the run: results over time, events by type, where the time went, what was shared.",
)
QUIET = click.option("--quiet", "-q", is_flag=True, help="Print results and errors only.")
COLUMN_OPTIONS = (
    click.option(
        "--input-format",
        type=click.Choice(["parquet", "csv", "json", "monpoly", "arrow"]),
        help="Format of the input; by default the one of its extension, and of pipes and sockets what their first "
        "bytes say. monpoly is for policies; arrow is an IPC stream.",
    ),
    click.option("--time-column", metavar="COLUMN", default="time", show_default=True, help="The time of the event."),
    click.option("--type-column", metavar="COLUMN", default="type", show_default=True, help="The type of the event."),
    click.option(
        "--order-column", metavar="COLUMN", help="Orders events with equal times; without it they are unordered."
    ),
    click.option(
        "--time-unit",
        type=click.Choice(["s", "ms", "us", "ns"]),
        default="s",
        show_default=True,
        help="What 1 means in an integer time column; timestamps carry their own unit.",
    ),
)
TIMEZONE = click.option(
    "--timezone",
    metavar="ZONE",
    help="Where windows of days and weeks begin at midnight, such as Europe/Berlin; else by UTC.",
)
READING_OPTIONS = (
    click.option("--delimiter", metavar="CHARACTER", help="Separates the fields of CSV; by default from its header."),
    click.option(
        "--bad-rows",
        type=click.Choice(["error", "fail", "drop"]),
        default="error",
        show_default=True,
        callback=lambda _context, _option, given: "error" if given == "fail" else given,
        help="Rows without a time, CSV rows with too many or too few fields, lines that are no JSON object or have "
        "text where numbers were: an error (fail says the same), or dropped, counted and the first three shown.",
    ),
)
PERIOD_OPTIONS = (
    click.option("--from", "since", metavar="TIME", help="Only events from this time on: '2024-03-05', or ticks."),
    click.option("--to", "until", metavar="TIME", help="Only events before this time."),
)
RUN_OPTIONS = (
    click.option("--output-format", type=click.Choice(["json", "csv", "parquet"]), help="Format of the results."),
    click.option(
        "--sharing",
        type=click.Choice(["dynamic", "static", "never"]),
        default="dynamic",
        show_default=True,
        help="Share work among queries: decide for every burst, always, or never. The results are the same.",
    ),
    click.option(
        "--benefit",
        type=click.Choice(["measured", "paper"]),
        default="measured",
        show_default=True,
        help="The cost model that decides: measured on this engine, or the paper's.",
    ),
    click.option(
        "--numbers",
        type=click.Choice(["exact", "float"]),
        default="exact",
        show_default=True,
        help="Exact integers of any size, or faster numbers with a relative error below 1e-9.",
    ),
    click.option(
        "--count-type",
        type=click.Choice(["auto", "string", "int64", "double", "decimal"]),
        default="auto",
        show_default=True,
        help="What COUNT and SUM are in Parquet: int64 where all values fit, else a decimal, else exact digits (auto); "
        "exact digits; a number that must fit; or a double that may be inf.",
    ),
    click.option(
        "--threads",
        metavar="N",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Threads to compute with.",
    ),
    click.option(
        "--null-keys",
        type=click.Choice(["keep", "drop"]),
        default="keep",
        show_default=True,
        help="Events without a value of an equivalence or GROUP-BY attribute: a partition of their own, or dropped.",
    ),
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
