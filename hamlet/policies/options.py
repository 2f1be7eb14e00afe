"""How to evaluate policies: the options that `run` and `Monitor` have in common, and those of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from hamlet.frontend.time_column import TIME
from hamlet.input.file_form import BadRows
from hamlet.input.missing import MissingColumns
from hamlet.input.ticks import Lateness
from hamlet.policies.verdicts.modes import Mode, mode_of
from hamlet.runtime.definitions import COLUMNS
from hamlet.runtime.options import OF_QUERIES, check_choice, check_columns
from hamlet.runtime.progress import Progress
from hamlet.runtime.sizes import Size, bytes_of


class CommonOptions(TypedDict, total=False):
    """The options that `run` and `Monitor` have in common, by name; `run` says what each of them means."""

    negate: bool
    time_points: str
    verdicts: str
    mode: str
    open_end: bool
    max_memory: Size | None
    time_column: str
    type_column: str
    order_column: str | None
    time_unit: str


class RunOptions(CommonOptions, total=False):
    """The options of `run`, by name."""

    ignore_unknown: bool
    input_format: str | None
    delimiter: str | None
    bad_rows: BadRows
    missing_columns: MissingColumns | None
    progress: Progress
    where: str | None
    since: Any
    until: Any


class MonitorOptions(CommonOptions, total=False):
    """The options of a `Monitor`, by name."""

    lateness: Lateness
    late: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to evaluate policies; `run` says what each of these means.

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    UNHEARD: ClassVar[Mapping[str, str]] = {
        "threads": "one thread evaluates policies; a job on Spark spreads them over slices",
        "lateness": "events of files and tables are sorted by time, so none is late; a Monitor hears it",
        "late": "events of files and tables are sorted by time, so none is late; a Monitor hears it",
        **OF_QUERIES,
    }

    negate: bool = False
    time_points: str = "step"
    verdicts: str = "satisfied"
    mode: str = "local"
    open_end: bool = False
    max_memory: Size | None = None
    time_column: str = TIME
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"

    def __post_init__(self) -> None:
        check_choice("time_points", self.time_points)
        check_choice("verdicts", self.verdicts)
        check_choice("mode", self.mode)
        bytes_of(self.max_memory)
        check_columns(**self.columns)

    @property
    def automaton(self) -> Mode | None:
        """Of which mode the automaton of a propositional policy is; None where rows are valuations."""
        return None if self.verdicts == "satisfied" else mode_of(self.verdicts, self.mode)

    @property
    def timezone(self) -> None:
        """Windows of policies know no calendar."""

    @property
    def columns(self) -> dict[str, Any]:
        """What columns mean, as `hamlet.input.events.open_events` takes it."""
        return {name: getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions(Options):
    """The options of `run`."""

    ignore_unknown: bool = False
    input_format: str | None = None
    delimiter: str | None = None
    bad_rows: str = "error"
    missing_columns: MissingColumns | None = None
    progress: Progress = None
    where: str | None = None
    since: Any = None
    until: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineOptions(Options):
    """The options of a `Monitor`."""

    lateness: Lateness = 0
    late: str = "error"
