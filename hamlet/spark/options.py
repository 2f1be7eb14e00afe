"""How a job runs: the options of `submit` and `submit_stream`, for workloads and for policies.

As in `hamlet.engine.options`: by name at the call, one object inside.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypedDict, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hamlet.engine.online import Late
from hamlet.engine.options import Options, RunOptions
from hamlet.errors import OptionError, one_of
from hamlet.frontend.time_column import TIME
from hamlet.input.file_form import BadRows, FileForm
from hamlet.input.missing import MissingColumns
from hamlet.input.ticks import Lateness
from hamlet.output import columnar
from hamlet.parallel.routing.rates import Rates
from hamlet.policies.options import MonitorOptions, OnlineOptions
from hamlet.runtime.definitions import COLUMNS, READING
from hamlet.runtime.options import check_choice, made_of, names_in
from hamlet.spark.look import Choice
from hamlet.spark.session import Progress

Products = Literal["never", "auto", "always"]
Semijoin = Literal["auto", "on", "off"]
Paths = Iterable[str | os.PathLike[str]]
PRODUCTS = ("auto", "always", "never")


def check_partitions(number: int | None) -> None:
    """Raise OptionError where a number of partitions is none."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise OptionError(f"partitions is {number!r}; it must be a whole number from 1")


Job = TypeVar("Job")


def job_of(kind: type[Job], inner: type, options: Mapping[str, Any]) -> Job:
    """How a job runs, of its options by name and those of what it runs; as `made_of`.

    Parameters
    ----------
    kind : type
        A dataclass of the options of a job, whose field ``run`` is an `inner`.
    inner : type
        A dataclass of the options of what it runs.
    options : mapping of str to Any
    """
    own = [name for name in names_in(kind) if name != "run"]
    rest = {name: value for name, value in options.items() if name not in own}
    given = {name: value for name, value in options.items() if name in own}
    given["run"] = made_of(inner, rest, own)
    return kind(**given)


# ---------------------------------------------------------------------------------------------- workloads


class JobOptions(TypedDict, total=False):
    """The options of all jobs over files, by name."""

    master: str | None
    input_format: str | None
    delimiter: str | None
    bad_rows: BadRows
    missing_columns: MissingColumns | None
    output_format: str


class OnceOptions(JobOptions, total=False):
    """The options of all batch jobs over files, by name."""

    overwrite: bool
    keep: Paths
    progress: Progress | None


class FollowOptions(JobOptions, total=False):
    """The options of all continuous jobs, by name."""

    slices: int | None
    trigger: str | None
    available_now: bool
    files_per_batch: int | None
    verbose: bool
    conf: Mapping[str, str] | Iterable[str]
    log_level: str | None
    started: Callable[[StreamingQuery], None] | None
    said: Callable[[str], None] | None
    adaptive: bool


@dataclass(frozen=True, kw_only=True)
class FileJob:
    """How a job over files runs; `hamlet.spark.submit` says what each option means.

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    FORMATS: ClassVar[tuple[str, ...]] = ("json", "csv", "parquet")

    master: str | None = None
    input_format: str | None = None
    delimiter: str | None = None
    bad_rows: BadRows = "error"
    missing_columns: MissingColumns | None = None
    output_format: str = "parquet"

    def __post_init__(self) -> None:
        if self.output_format not in self.FORMATS:
            raise OptionError(f"output format {self.output_format!r} is unknown; it must be {one_of(self.FORMATS)}")

    @property
    def form(self) -> FileForm:
        """How files are read."""
        return FileForm(self.delimiter, self.bad_rows, missing_columns=self.missing_columns)


@dataclass(frozen=True, kw_only=True)
class Once(FileJob):
    """How a batch job runs."""

    overwrite: bool = False
    keep: Paths = ()
    progress: Progress | None = None


class QueryOptions(RunOptions, total=False):
    """The options of jobs for workloads that `submit` and `submit_stream` have in common, by name."""

    partitions: int | None
    where: str | None


class SubmitOptions(OnceOptions, QueryOptions, total=False):
    """The options of `hamlet.spark.submit`, by name."""

    balance: bool
    since: Any
    until: Any
    report: str | os.PathLike[str] | None
    trace: str | None
    products: Products
    semijoin: Semijoin


class SubmitStreamOptions(FollowOptions, QueryOptions, total=False):
    """The options of `hamlet.spark.submit_stream`, by name."""

    lateness: Lateness
    late: Late


@dataclass(frozen=True, kw_only=True)
class QueryJob(FileJob):
    """How a job for a workload runs.

    Attributes
    ----------
    run : Options
        Those of `hamlet.run`.
    """

    run: Options
    partitions: int | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_partitions(self.partitions)

    @property
    def choice(self) -> Choice:
        """Which events of the input go on."""
        return Choice(self.where)

    @property
    def watched(self) -> bool:
        """Whether events that no query can use are looked at, too."""
        return True


@dataclass(frozen=True, kw_only=True)
class Batch(QueryJob, Once):
    """How `hamlet.spark.submit` runs."""

    balance: bool = False
    since: Any = None
    until: Any = None
    report: str | os.PathLike[str] | None = None
    trace: str | None = None
    products: Products = "auto"
    semijoin: Semijoin = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("products", self.products, PRODUCTS)
        check_choice("semijoin", self.semijoin, ("auto", "on", "off"))
        if self.watched:
            object.__setattr__(self, "run", replace(self.run, trace=True))

    @property
    def choice(self) -> Choice:
        """Which events of the input go on."""
        return Choice(self.where, self.since, self.until)

    @property
    def watched(self) -> bool:
        """Whether a page or a trace tells of every event."""
        return self.report is not None or self.trace is not None


@dataclass(frozen=True, kw_only=True)
class Follow(FileJob):
    """How a continuous job follows its folder; `hamlet.spark.submit_stream` says what each option means."""

    trigger: str | None = None
    available_now: bool = False
    files_per_batch: int | None = None
    verbose: bool = False
    conf: Mapping[str, str] | Iterable[str] = ()
    log_level: str | None = None
    started: Callable[[StreamingQuery], None] | None = None
    said: Callable[[str], None] | None = None
    slices: int | None = None
    adaptive: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """Spark's own settings.

        Raises
        ------
        OptionError
            Where one has no value.
        """
        if isinstance(self.conf, Mapping):
            return {str(name): str(value) for name, value in self.conf.items()}
        found = {}
        for each in self.conf:
            name, mark, value = each.partition("=")
            if not mark or not name.strip():
                raise OptionError(f"{each!r} is no setting of Spark; write name=value, as in spark.executor.memory=4g")
            found[name.strip()] = value.strip()
        return found

    def writer(self, frame: DataFrame, checkpoint: str) -> DataStreamWriter:
        """What writes a streaming DataFrame, as often as is asked for."""
        found = frame.writeStream.option("checkpointLocation", checkpoint)
        if self.available_now:
            return found.trigger(availableNow=True)
        return found if self.trigger is None else found.trigger(processingTime=self.trigger)


@dataclass(frozen=True, kw_only=True)
class Stream(QueryJob, Follow):
    """How `hamlet.spark.submit_stream` runs."""

    lateness: Lateness = 0
    late: Late = "error"


# ---------------------------------------------------------------------------------------------- policies


class MonitorFrameOptions(TypedDict, total=False):
    """The options of `hamlet.spark.monitor`, by name."""

    slices: int | None
    negate: bool
    open_end: bool
    time_column: str
    type_column: str
    order_column: str | None
    time_unit: str


class PolicySubmitOptions(MonitorFrameOptions, OnceOptions, total=False):
    """The options of `hamlet.spark.policies.submit`, by name."""

    time_points: str
    statistics: Rates | None
    ignore_unknown: bool


class PolicyStreamOptions(MonitorOptions, FollowOptions, total=False):
    """The options of `hamlet.spark.policies.submit_stream`, by name."""

    statistics: Rates | None


@dataclass(frozen=True, kw_only=True)
class PolicyFrame:
    """How `hamlet.spark.monitor` runs."""

    slices: int | None = None
    negate: bool = False
    open_end: bool = False
    time_column: str = TIME
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"

    @property
    def columns(self) -> dict[str, Any]:
        """What columns mean, as `hamlet.input.events.open_events` takes it."""
        return {name: getattr(self, name) for name in COLUMNS}


@dataclass(frozen=True, kw_only=True)
class PolicyBatch(PolicyFrame, Once):
    """How `hamlet.spark.policies.submit` runs."""

    FORMATS = columnar.FORMATS

    time_points: str = "step"
    statistics: Rates | None = None
    ignore_unknown: bool = False

    @property
    def reading(self) -> dict[str, Any]:
        """How tasks read the input, as `hamlet.policies.logs.source.open_source` takes it."""
        return {**self.columns, **{name: getattr(self, name) for name in (*READING, "ignore_unknown")}}


@dataclass(frozen=True, kw_only=True)
class PolicyStream(Follow):
    """How `hamlet.spark.policies.submit_stream` runs.

    Attributes
    ----------
    run : OnlineOptions
        Those of `hamlet.policies.Monitor`.
    """

    FORMATS = columnar.FORMATS

    run: OnlineOptions
    statistics: Rates | None = None
