"""How to match rows as they come: the options of a `Matcher`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from hamlet.errors import OptionError
from hamlet.input.missing import MissingColumns, check_missing
from hamlet.input.ticks import Lateness, seconds_of
from hamlet.patterns.clause.scan import dialect_of
from hamlet.runtime.options import OF_POLICIES, OF_QUERIES, check_choice
from hamlet.runtime.sizes import Size, bytes_of

MAX_STEPS = 1_000_000


class SqlOptions(TypedDict, total=False):
    """The options of `hamlet.sql`, by name."""

    dialect: str
    allow_files: bool
    max_steps: int
    threads: int | None
    missing_columns: MissingColumns | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementOptions:
    """How to match rows of tables; `hamlet.sql` says what each of these means."""

    UNHEARD: ClassVar[Mapping[str, str]] = {
        "where": "the text says which rows are read, in WHERE",
        "since": "the text says which rows are read, in WHERE",
        "until": "the text says which rows are read, in WHERE",
        "lateness": "rows of tables are sorted, so none is late; a Matcher hears it",
        "late": "rows of tables are sorted, so none is late; a Matcher hears it",
        **dict.fromkeys(
            ("time_column", "order_column", "type_column", "time_unit"),
            "the text says what rows are ordered by, in ORDER BY, and names its columns itself",
        ),
        **dict.fromkeys(
            ("input_format", "delimiter", "bad_rows"),
            "files are read by their names; read what these cannot tell yourself, and give the table",
        ),
        **OF_QUERIES,
        **OF_POLICIES,
        "progress": "DuckDB reads what is given, and does not say how far it is",
        "max_memory": "DuckDB keeps what is read, within its own memory_limit; a Matcher hears it",
    }

    dialect: str = "duckdb"
    allow_files: bool = False
    max_steps: int = MAX_STEPS
    threads: int | None = None
    missing_columns: MissingColumns | None = None

    def __post_init__(self) -> None:
        check_missing(self.missing_columns)


class MatcherOptions(TypedDict, total=False):
    """The options of a `Matcher`, by name."""

    lateness: Lateness
    late: str
    time_unit: str
    max_memory: Size | None
    dialect: str
    max_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to match rows as they come; `Matcher` says what each of these means.

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    lateness: Lateness = 0
    late: str = "error"
    time_unit: str = "s"
    max_memory: Size | None = None
    dialect: str = "duckdb"
    max_steps: int = MAX_STEPS

    def __post_init__(self) -> None:
        seconds_of(self.lateness)
        check_choice("late", self.late)
        check_choice("time_unit", self.time_unit)
        bytes_of(self.max_memory)
        dialect_of(self.dialect)
        if isinstance(self.max_steps, bool) or not isinstance(self.max_steps, int) or self.max_steps < 1:
            raise OptionError(f"max_steps is {self.max_steps!r}; it must be a whole number from 1")
