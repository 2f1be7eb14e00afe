"""How to compute a specification: the options that `run` and `Monitor` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from hamlet.errors import OptionError
from hamlet.frontend.time_column import TIME
from hamlet.input.ticks import Lateness
from hamlet.planner.paths import names_of
from hamlet.runtime.options import OF_POLICIES, OF_QUERIES, check_choice, check_columns
from hamlet.streams.evaluate.compile import FEATURES, MAX_DEADLINES


class CommonOptions(TypedDict, total=False):
    """The options that `run` and `Monitor` have in common, by name; `Monitor` says what each of them means."""

    start: Any
    time_column: str | None
    time_unit: str
    lateness: Lateness
    late: str
    max_memory: int | str | None
    max_deadlines: int
    features: str | Iterable[str] | None


class MonitorOptions(CommonOptions, total=False):
    """The options of a `Monitor`, by name."""

    values: bool
    order_column: str | None


def check_names(chosen: Options, order_column: str | None) -> None:
    """Raise OptionError where what columns of events mean cannot be."""
    time = TIME if chosen.time_column is None else chosen.time_column
    check_columns(time_column=time, type_column="type", order_column=order_column, time_unit=chosen.time_unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to compute a specification; `Monitor` says what each of these means.

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    UNHEARD: ClassVar[Mapping[str, str]] = {
        "threads": "one thread computes specifications; a job on Spark spreads their instances over slices",
        "type_column": "specifications read events without types",
        **OF_QUERIES,
        **OF_POLICIES,
    }

    values: bool = False
    start: Any = None
    time_column: str | None = None
    time_unit: str = "s"
    order_column: str | None = None
    lateness: Lateness = 0
    late: str = "error"
    max_memory: int | str | None = None
    max_deadlines: int = MAX_DEADLINES
    features: str | Iterable[str] | None = None

    def __post_init__(self) -> None:
        check_names(self, self.order_column)
        if not isinstance(self.max_deadlines, int) or self.max_deadlines < 1:
            raise OptionError(f"max_deadlines is {self.max_deadlines!r}; it must be an integer > 0")
        check_choice("late", self.late)
        object.__setattr__(self, "features", names_of("features", self.features, FEATURES))

    @property
    def ways(self) -> frozenset[str] | None:
        """The features that may be used; None for all."""
        return None if self.features is None else frozenset(str(self.features).split(","))
