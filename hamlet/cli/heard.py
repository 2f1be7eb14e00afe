"""Which options a call hears, and why it does not hear the others: an option that would do nothing is refused.

Each rule names options, says of which calls it speaks, and gives the reason as the user reads it, behind the option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hamlet.cli.options import inputs_of

_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_PACKED = (".gz", ".zst", ".bz2")
_FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".json": "JSON",
    ".jsonl": "JSON",
    ".ndjson": "JSON",
    ".arrow": "arrow",
}
_COLUMNS = ("time_column", "type_column", "order_column")
QUERIES, POLICIES, SPECIFICATIONS, STATEMENTS = ".sase", ".mfotl", ".lola", ".sql"


@dataclass(frozen=True)
class Call:
    """A call of a command.

    Attributes
    ----------
    command : str
    notations : frozenset of str
        The extensions of the files.
    live : bool
        Whether events come as they happen.
    options : dict
        All options by name.
    """

    command: str
    notations: frozenset[str]
    live: bool
    options: dict[str, Any]

    def only(self, *notations: str) -> bool:
        """Whether all files are of these notations."""
        return self.notations <= set(notations)

    def asks(self, name: str) -> bool:
        """Whether an option is there and says something."""
        return bool(self.options.get(name))

    @property
    def streams(self) -> bool:
        """Whether it is a continuous job on Spark."""
        return self.asks("stream")

    @property
    def reads(self) -> bool:
        """Whether there is an input, or the command always has one."""
        return self.command not in ("check", "explain") or self.asks("source")

    @property
    def formats(self) -> set[str | None]:
        """The formats of the inputs, None for those whose names do not say it."""
        asked = self.options.get("input_format")
        if asked is not None:
            return {{"parquet": "Parquet", "json": "JSON", "csv": "CSV"}.get(asked, asked)}
        return {_format_of(each) for each in inputs_of(self.options.get("source"))}


def _format_of(source: str) -> str | None:
    suffixes = [each.lower() for each in Path(source).suffixes if each.lower() not in _PACKED]
    return _FORMATS.get(suffixes[-1]) if suffixes else None


@dataclass(frozen=True)
class Rule:
    """Options that some calls do not hear.

    Attributes
    ----------
    options : tuple of str
    holds : callable
        Whether a call does not hear them.
    reason : str
    """

    options: tuple[str, ...]
    holds: Callable[[Call], bool]
    reason: str


OF_POLICIES = ("signature", "negate", "open_end", "verdicts", "mode", "time_points", "ignore_unknown", "statistics")
_JOB_OF_QUERIES = ("balance", "trace", "report", "products", "semijoin", "threads")
STREAMING = (
    *("checkpoint", "lateness", "late", "trigger", "files_per_batch", "available_now", "verbose", "adaptive"),
    *("conf", "log_level"),
)
_ENDED = "tells of a job that has ended, and --stream goes on; for {} the files that are there, submit them without "
RULES = (
    Rule(
        (*OF_POLICIES, "every_time_point", "stop_at_first", "load", "save"),
        lambda call: POLICIES not in call.notations,
        "is for policies (.mfotl)",
    ),
    Rule(
        ("load", "save", "stop_at_first"),
        lambda call: call.options.get("verdicts") != "satisfied",
        "is for --verdicts satisfied",
    ),
    Rule(
        ("every_time_point",),
        lambda call: call.options.get("output_format") != "monpoly",
        "is for --output-format monpoly",
    ),
    Rule(
        ("values", "start", "max_deadlines", "trends", "offline", "verbosity"),
        lambda call: SPECIFICATIONS not in call.notations,
        "is for stream specifications (.lola)",
    ),
    Rule(
        ("output_format",),
        lambda call: call.command in ("run", "monitor", "sql") and not call.live and not call.asks("outputs"),
        "needs --output: a directory, or - for standard output",
    ),
    Rule(
        ("limit",),
        lambda call: call.command == "monitor" and call.asks("outputs"),
        "is for tables; --output writes all rows",
    ),
    Rule(("idle",), lambda call: not call.asks("clock"), "says how long --clock waits; give --clock"),
    Rule(("every",), lambda call: not call.asks("checkpoint"), "says how often --checkpoint saves; give --checkpoint"),
    Rule(
        ("where", "since", "until", "input_format", "time_unit", "delimiter", "bad_rows", "missing_columns"),
        lambda call: not call.reads,
        "speaks of an input; give --input",
    ),
    Rule(
        _COLUMNS,
        lambda call: not call.reads and call.only(POLICIES, SPECIFICATIONS),
        "speaks of an input; give --input",
    ),
    Rule(
        ("time_column", "time_unit"),
        lambda call: call.command == "replay" and call.options.get("rate") is not None,
        "is for --speed, which goes by the times of the lines",
    ),
    Rule(("missing_columns",), lambda call: call.live, "is for several files that end"),
    Rule(
        ("delimiter", "columns"),
        lambda call: bool(call.formats) and call.formats <= {"Parquet", "JSON", "arrow", "monpoly"},
        "is for CSV, and the input is another format",
    ),
    Rule(
        ("overwrite",),
        lambda call: call.command in ("run", "monitor", "sql") and not _directories(call),
        "replaces an output directory; give --output DIR",
    ),
    Rule(
        ("mode",),
        lambda call: call.options.get("verdicts") != "equivalent",
        "says which verdicts are equivalent; give --verdicts equivalent",
    ),
    Rule(
        ("type_column",),
        lambda call: call.only(SPECIFICATIONS) and not call.asks("trends"),
        "names the types of events, and specifications (.lola) read events without types",
    ),
    Rule(
        ("lateness", "late"),
        lambda call: (
            call.command in ("run", "monitor", "sql") and not call.live and SPECIFICATIONS not in call.notations
        ),
        "is for events as they happen: those of files are sorted by time, so none is late",
    ),
    Rule(
        ("max_memory",),
        lambda call: call.command == "submit" and call.only(POLICIES, SPECIFICATIONS) and not call.asks("stream"),
        "is not heard on Spark, where executors have limits of their own; hamlet monitor hears it",
    ),
    Rule(
        ("where", "since", "until", "queries", "dates", "trace", "sharing", "benefit", "numbers"),
        lambda call: call.only(STATEMENTS),
        "is for trend queries; a statement says it itself, with WHERE and the like",
    ),
    Rule(
        (*_COLUMNS, "time_unit", "timezone", "count_type", "null_keys"),
        lambda call: call.only(STATEMENTS),
        "is for trend queries; a statement says it itself, with ORDER BY and the functions of the host",
    ),
    Rule(
        ("count_type",),
        lambda call: (
            call.options.get("output_format") in ("json", "csv") or (call.command == "run" and not _directories(call))
        ),
        "says what COUNT and SUM are in Parquet; JSON, CSV and tables have all digits",
    ),
    Rule(
        ("delimiter", "bad_rows", "max_memory"),
        lambda call: call.only(STATEMENTS) and call.command != "submit" and not call.live,
        "is for rows as they come (--input -, tcp://, --follow); DuckDB reads files that end",
    ),
    Rule(
        (*_JOB_OF_QUERIES, "max_memory"),
        lambda call: call.command == "submit" and call.only(STATEMENTS),
        "would do nothing: the text says what row patterns read",
    ),
    Rule(
        ("partitions", "slices", "bad_rows"),
        lambda call: call.command == "submit" and call.only(STATEMENTS) and not call.streams,
        "is for a --stream of row patterns; Spark reads the files of a batch",
    ),
    Rule(
        (*_JOB_OF_QUERIES, "sharing", "benefit", "numbers", "count_type", "null_keys"),
        lambda call: call.command == "submit" and QUERIES not in call.notations,
        "is for workloads of trend queries (.sase)",
    ),
    Rule(
        ("limit",),
        lambda call: call.command == "why" and call.only(POLICIES, STATEMENTS),
        "is for the trends of queries and the windows of specifications; other evidence is shown whole",
    ),
    Rule(
        ("queries", "timezone", "null_keys"),
        lambda call: QUERIES not in call.notations,
        "is for workloads of trend queries (.sase)",
    ),
    Rule(
        ("where", "since", "until"),
        lambda call: call.command == "submit" and call.only(POLICIES),
        "is for workloads of trend queries (.sase)",
    ),
    Rule(
        ("order_column",),
        lambda call: call.command == "submit" and call.only(SPECIFICATIONS),
        "is not heard on Spark for specifications; hamlet monitor hears it",
    ),
    Rule(STREAMING, lambda call: call.command == "submit" and not call.streams, "belongs to --stream"),
    Rule(
        ("overwrite", "balance"),
        lambda call: call.streams,
        "belongs to a batch; --stream goes on from its checkpoint",
    ),
    Rule(("products",), lambda call: call.streams, "belongs to a batch; --stream sends every event to its slice"),
    Rule(("semijoin",), lambda call: call.streams, "belongs to a batch; --stream does not know what keys will have"),
    Rule(
        ("report",),
        lambda call: call.streams,
        _ENDED.format("a page about") + "--stream, or give them to hamlet run --report",
    ),
    Rule(
        ("trace",),
        lambda call: call.streams,
        _ENDED.format("a trace of") + "--stream, or give them to hamlet run --trace",
    ),
    Rule(
        ("since", "until"),
        lambda call: call.streams and call.only(QUERIES),
        "belongs to a batch; --where can compare the time of a --stream",
    ),
    Rule(
        ("where", "since", "until"),
        lambda call: call.streams and call.only(SPECIFICATIONS),
        "belongs to a batch of a specification; leave it out with --stream",
    ),
    Rule(
        ("open_end", "ignore_unknown"),
        lambda call: call.streams,
        "belongs to a batch: a --stream has no end, and reads no logs",
    ),
)


def _directories(call: Call) -> list[str]:
    return [
        each
        for each in call.options.get("outputs") or ()
        if each != "-" and "://" not in each and not each.startswith("unix:")
    ]


def refuse_unheard(notations: Iterable[str], *, live: bool = False) -> None:
    """Refuse the options of the running command that were given and would do nothing.

    Raises
    ------
    click.UsageError
        It names the option, and says why.
    """
    context = click.get_current_context()
    call = Call(str(context.info_name), frozenset(notations), live, dict(context.params))
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) not in _GIVEN:
            continue
        for rule in RULES:
            if name in rule.options and rule.holds(call):
                raise click.UsageError(f"{parameter.opts[0]} {rule.reason}")
