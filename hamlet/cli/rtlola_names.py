"""Times and verbosity by the names that ``rtlola-cli`` has for them."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.words import known_as

_SECONDS, _NANOS = ("{}", "{}-secs", "{}-float-secs"), ("{}-nanos", "{}-uint-nanos")
_OFFSETS = [each.format("offset") for each in (*_SECONDS, *_NANOS)]
_RELATIVE = {each.format("relative"): "s" for each in _SECONDS} | {each.format("relative"): "ns" for each in _NANOS}
_ABSOLUTE = ("absolute", "absolute-unix", "absolute-rfc", "absolute-rfc3339")
_LEVELS = {"violations": False, "trigger": False, "outputs": True, "streams": True}  # whether values are rows
RTLOLA_OPTIONS = (
    click.option(
        "--offline",
        metavar="FORMAT",
        type=click.Choice([*_RELATIVE, *_ABSOLUTE, *_OFFSETS]),
        help="The times of specifications, by rtlola-cli's names: relative-float-secs is --start 0, relative-nanos "
        "--start 0 --time-unit ns; absolute-unix and absolute-rfc3339 begin with the first event.",
    ),
    click.option(
        "--verbosity",
        metavar="LEVEL",
        type=click.Choice(list(_LEVELS)),
        help="What specifications give, by rtlola-cli's names: trigger (or violations), or outputs (or streams), which "
        "is --values.",
    ),
)


def by_other_names(options: dict[str, Any]) -> None:
    """Put what `RTLOLA_OPTIONS` say into the options that they stand for.

    Raises
    ------
    click.UsageError
        If both are given, or times count from the event before.
    """
    offline, verbosity = options.pop("offline"), options.pop("verbosity")
    if offline in _OFFSETS:
        raise click.UsageError(
            f"--offline {offline}: times that count from the event before are not read; add them up, and give "
            "--offline relative"
        )
    if offline in _RELATIVE:
        unit = _RELATIVE[offline]
        if options["start"] is not None or options["time_unit"] not in ("s", unit):
            raise click.UsageError(f"--offline {offline} says --start and --time-unit; leave them out")
        options |= {"start": "0", "time_unit": unit}
        known_as("--start is '0'", f"--offline {offline} says --start 0")
    if verbosity is not None:
        options["values"] = options["values"] or _LEVELS[verbosity]
