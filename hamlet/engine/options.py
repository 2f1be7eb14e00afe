"""How to run a workload: the options that the command line, `run`, `Engine` and the Spark jobs have in common.

A call with many options takes them by name, as a TypedDict says (``**options: Unpack[RunOptions]``); inside they are
one object of a dataclass, which has their defaults and checks them. `hamlet.runtime.options` makes the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, cast

from hamlet.engine.sharing import Model, Policy, Sharing
from hamlet.errors import OptionError
from hamlet.frontend.time_column import TIME
from hamlet.language.zones import zone_of
from hamlet.planner.paths import FEATURES, OPERATORS, Paths, names_of, paths_of
from hamlet.planner.workload import Workload
from hamlet.runtime.options import OF_POLICIES, check_choice, check_columns, made_of
from hamlet.runtime.sizes import Size, bytes_of

SharingPolicy = Literal["dynamic", "static", "never"]
CountType = Literal["auto", "string", "int64", "double", "decimal"]
Numbers = Literal["exact", "float"]
TimeUnit = Literal["s", "ms", "us", "ns"]
NullKeys = Literal["keep", "drop"]


class RunOptions(TypedDict, total=False):
    """The options of `hamlet.run`, `hamlet.Engine` and `hamlet.spark`, by name: what editors and type checkers see.

    `Options` says what each of them means.
    """

    sharing: SharingPolicy
    benefit: Model
    numbers: Numbers
    count_type: CountType
    threads: int
    time_column: str
    type_column: str
    order_column: str | None
    time_unit: TimeUnit
    timezone: str | None
    null_keys: NullKeys
    max_memory: Size | None
    operators: str | Iterable[str] | None
    features: str | Iterable[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a workload; the command line has the same names and defaults.

    Attributes
    ----------
    sharing : {'dynamic', 'static', 'never'}
        Whether queries share work: as the cost model says, burst by burst; always; or never. Rows do not depend on it.
    benefit : {'measured', 'paper'}
        The cost model that decides: prices measured on this engine, or Eq. 7 of the paper.
    numbers : {'exact', 'float'}
        Integers of any size, or doubles with an exponent of their own, within 1e-9.
    count_type : {'auto', 'string', 'int64', 'double', 'decimal'}
        What COUNT and SUM are in tables and Parquet. The first is, column by column, int64 where all values fit, else
        a decimal of up to 76 digits, else text; text always fits, and doubles may be infinite.
    threads : int
        Threads that compute, each with the groups, or stretches of time, of its own; 1 to 1,024.
    time_column, type_column : str
        Names of the columns that hold each event's time and type.
    order_column : str or None
        Of what orders events of equal time; without it they have no order.
    time_unit : {'s', 'ms', 'us', 'ns'}
        What 1 means in an integer time column; timestamps carry their own unit.
    timezone : str or None
        The time zone in which windows of days and weeks begin at midnight, such as ``'Europe/Berlin'``; a day of its
        calendar may have 23 or 25 hours. Without it they begin by UTC, and weeks on Thursdays, as 1970 did.
    null_keys : {'keep', 'drop'}
        What becomes of events that have no value of an equivalence or GROUP-BY attribute: NULL is a value like any
        other, or a query does not take such events.
    max_memory : int, str or None
        The most memory that the run may take: bytes, or text such as ``'2 GiB'`` or ``'500 MB'``. A run that needs
        more stops with a `MemoryLimitError`. `hamlet.engine.memory_limit` says what is counted. On Spark it holds
        for each class of queries in a task.
    trace : bool
        Whether the engine keeps a record of every burst for `Engine.trace`.
    operators, features : str, iterable of str, or None
        For tests and measurements: the only operators, and features, that may be used (`hamlet.planner.paths` has their
        names), as names or as one text with commas between them. Rows do not depend on them. ``scalar`` and
        ``event_store`` are always there.

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    UNHEARD: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("lateness", "late"), "events of files and tables are sorted by time, so none is late; an Engine hears it"
        ),
        **OF_POLICIES,
    }

    sharing: str = "dynamic"
    benefit: str = "measured"
    numbers: str = "exact"
    count_type: str = "auto"
    threads: int = 1
    time_column: str = TIME
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"
    timezone: str | None = None
    null_keys: str = "keep"
    max_memory: Size | None = None
    trace: bool = False
    operators: str | Iterable[str] | None = None
    features: str | Iterable[str] | None = None

    def __post_init__(self) -> None:
        for name in ("sharing", "benefit", "numbers", "count_type", "null_keys"):
            check_choice(name, getattr(self, name))
        bytes_of(self.max_memory)
        if self.timezone is not None:
            zone_of(self.timezone)
        check_columns(
            time_column=self.time_column,
            type_column=self.type_column,
            order_column=self.order_column,
            time_unit=self.time_unit,
        )
        if not isinstance(self.trace, bool):
            raise OptionError(f"trace is {self.trace!r}; it must be True or False")
        if isinstance(self.threads, bool) or not isinstance(self.threads, int) or not 1 <= self.threads <= 1024:
            raise OptionError(f"threads is {self.threads!r}; it must be a whole number from 1 to 1024")

        object.__setattr__(self, "operators", names_of("operators", self.operators, OPERATORS))
        object.__setattr__(self, "features", names_of("features", self.features, FEATURES))

    @property
    def paths(self) -> Paths:
        """The operators and features that may be used."""
        return paths_of(cast("str | None", self.operators), cast("str | None", self.features))

    @property
    def decided_by(self) -> Sharing:
        """Who decides which queries share a burst."""
        return Sharing(cast(Policy, self.sharing), cast(Model, self.benefit), self.trace)

    def columns_of(self, workload: Workload) -> tuple[str, ...]:
        """The columns that a workload needs: time, type, order, and every attribute that some query reads."""
        special = (self.time_column, self.type_column, self.order_column)
        return tuple(dict.fromkeys(name for name in (*special, *workload.attributes) if name is not None))


def options_of(options: Mapping[str, Any], others: Iterable[str] = ()) -> Options:
    """The options of a workload, by name; as `made_of`."""
    return made_of(Options, options, others)
