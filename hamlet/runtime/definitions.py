"""Options that several calls have, each defined once: its name, what it may be, its default and what it does.

The command line is made of these (`hamlet.cli.options.option`); the objects of options in Python have the same names
and defaults, which `tests/notation/test_definitions.py` holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hamlet.frontend.time_column import TIME


@dataclass(frozen=True)
class Definition:
    """An option.

    Attributes
    ----------
    name : str
        In Python.
    help : str
    default : object
    choices : tuple of str
        All that it may be; none where it may be more.
    shown : str
        How a value is written: ``DURATION``.
    flag : str
        On the command line, where it has another name than in Python.
    counted : bool
        Whether it is a whole number from 1.
    """

    name: str
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    shown: str | None = None
    flag: str = ""
    counted: bool = False

    @property
    def written(self) -> str:
        """On the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"


_ALL = (
    Definition(
        "input_format",
        "Format of the input; by default the one of its extension, and of pipes and sockets what their first bytes "
        "say. monpoly is for policies; arrow is an IPC stream.",
        choices=("parquet", "csv", "json", "monpoly", "arrow"),
    ),
    Definition(
        "time_column",
        "The time of the event; where there is no column time, ts or timestamp is taken.",
        TIME,
        shown="COLUMN",
    ),
    Definition("type_column", "The type of the event.", "type", shown="COLUMN"),
    Definition("order_column", "Orders events with equal times; without it they are unordered.", shown="COLUMN"),
    Definition(
        "time_unit",
        "What 1 means in an integer time column; timestamps carry their own unit.",
        "s",
        choices=("s", "ms", "us", "ns"),
    ),
    Definition(
        "timezone",
        "Where windows of days and weeks begin at midnight, such as Europe/Berlin; else by UTC.",
        shown="ZONE",
    ),
    Definition("delimiter", "Separates the fields of CSV; by default from its header.", shown="CHARACTER"),
    Definition(
        "bad_rows",
        "Rows without a time, CSV rows with too many or too few fields, lines that are no JSON object or have text "
        "where numbers were: an error (fail says the same), or dropped, counted and the first three shown.",
        "error",
        choices=("error", "fail", "drop"),
    ),
    Definition(
        "missing_columns",
        "A column that one of several files lacks and others have: an error before any row, or NULL in its events, "
        "which a note says; by default an error in CSV, whose header may be wrong, and NULL in other formats.",
        choices=("error", "null"),
    ),
    Definition("since", "Only events from this time on: '2024-03-05', or ticks.", shown="TIME", flag="--from"),
    Definition("until", "Only events before this time.", shown="TIME", flag="--to"),
    Definition(
        "where",
        "Only events for which this is true, beside what the queries say: \"speed < 10 AND district = 'Soho'\". "
        "Conditions are those of the language, over columns.",
        shown="CONDITION",
    ),
    Definition(
        "lateness",
        "How far behind the latest time events of a stream may be: '5 s', or ticks of the time column.",
        0,
        shown="DURATION",
    ),
    Definition(
        "late",
        "What happens to events later than that: an error, or dropped and counted.",
        "error",
        choices=("error", "drop"),
    ),
    Definition(
        "max_memory",
        "Stop, and say which query and group holds the most, before the run takes more: '2 GiB', '500 MB'. This counts "
        "what queries keep between events, not the input batch or the results.",
        shown="SIZE",
    ),
    Definition(
        "sharing",
        "Share work among queries: decide for every burst, always, or never. The results are the same.",
        "dynamic",
        choices=("dynamic", "static", "never"),
    ),
    Definition(
        "benefit",
        "The cost model that decides: measured on this engine, or the paper's.",
        "measured",
        choices=("measured", "paper"),
    ),
    Definition(
        "numbers",
        "Exact integers of any size, or faster numbers with a relative error below 1e-9.",
        "exact",
        choices=("exact", "float"),
    ),
    Definition(
        "count_type",
        "What COUNT and SUM are in Parquet: int64 where all values fit, else a decimal, else exact digits (auto); "
        "exact digits; a number that must fit; or a double that may be inf.",
        "auto",
        choices=("auto", "string", "int64", "double", "decimal"),
    ),
    Definition(
        "verdicts",
        "Rows of what satisfies a policy; or true or false for every time-point of each key; or that, where "
        "time-points that must come out the same only name the earlier one.",
        "satisfied",
        choices=("satisfied", "all", "equivalent"),
    ),
    Definition(
        "mode",
        "Which time-points --verdicts equivalent compares: those of one time-stamp, or all.",
        "local",
        choices=("local", "global"),
    ),
    Definition(
        "time_points",
        "What a time-point is: all events of one time, or each event.",
        "step",
        choices=("step", "event"),
    ),
    Definition("threads", "Threads to compute with.", 1, shown="N", counted=True),
    Definition(
        "null_keys",
        "Events without a value of an equivalence or GROUP-BY attribute: a partition of their own, or dropped.",
        "keep",
        choices=("keep", "drop"),
    ),
)
DEFINITIONS = {each.name: each for each in _ALL}
COLUMNS = ("time_column", "type_column", "order_column", "time_unit")  # what the columns of events mean
ZONED = (*COLUMNS, "timezone")
READING = ("input_format", "delimiter", "bad_rows", "missing_columns")  # how files are read
