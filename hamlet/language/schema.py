"""What the engine knows of the events before it reads them: the names and types of attributes, and the clock.

A `Schema` comes from a file's or table's columns (closed: a missing name is a mistake) or grows from dicts (open: a
missing name is NULL). Source: docs/language.md ("Attributes and declarations"); docs/numbers.md ("Time and order").
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hamlet.arrays import np, pa
from hamlet.errors import DataError
from hamlet.frontend.units import UNITS_PER_SECOND

if TYPE_CHECKING:
    from hamlet.language.query import AttributeType  # with all of the language

MOST_TICKS = 1 << 61  # of a time; beyond it, window edges could pass 64 bits
END_OF_TIME = MOST_TICKS + 1  # behind all events
NO_TIME = -(1 << 63)  # in place of ticks, where arrays hold them: the edges of a window over everything


@dataclass(frozen=True, slots=True)
class Clock:
    """The time column: its name, its unit, and the Arrow type that result windows come back in.

    Attributes
    ----------
    column : str
        Name of the time column.
    unit : str
        ``s``, ``ms``, ``us`` or ``ns``: what one step of the integer means.
    type : pyarrow.DataType
        An integer type, a timestamp type (with its zone), or a duration of nanoseconds: seconds with a fraction.
    zone : str or None
        The time zone in which days and weeks begin; None for UTC.
    """

    column: str
    unit: str
    type: pa.DataType
    zone: str | None = None

    @property
    def ticks_per_second(self) -> int:
        """How many steps of the time column make one second."""
        return UNITS_PER_SECOND[self.unit]

    @property
    def tick(self) -> int:
        """Nanoseconds of a step."""
        return 1_000_000_000 // UNITS_PER_SECOND[self.unit]

    @property
    def is_timestamp(self) -> bool:
        """Whether the time column is a timestamp, so that results carry timestamps too."""
        return bool(pa.types.is_timestamp(self.type))

    @property
    def is_fraction(self) -> bool:
        """Whether times are seconds with a fraction, which are counted in nanoseconds."""
        return bool(pa.types.is_duration(self.type))

    @property
    def kind(self) -> str:
        """What its times are, in a word."""
        return "seconds with a fraction" if self.is_fraction else str(self.type)

    @property
    def ticks_per_unit(self) -> int:
        """How many ticks a number is that stands for a time: one, or those of a second where times are seconds."""
        return self.ticks_per_second if self.is_fraction else 1

    @property
    def units_per_second(self) -> int:
        """What a second is where times are numbers."""
        return self.ticks_per_second // self.ticks_per_unit

    @property
    def shown_type(self) -> pa.DataType:
        """The type of times in results: 64 bits, a double of seconds, or the timestamp type."""
        return self.type if self.is_timestamp else pa.float64() if self.is_fraction else pa.int64()

    def present(self, ticks: int | None) -> float | datetime.datetime | np.datetime64 | None:
        """Ticks in the type of the time column: integers as they are, timestamps as datetimes (`timestamp`).

        Nanoseconds of seconds with a fraction are seconds again.
        What is finer than a datetime, a tick of nanoseconds that are no whole microseconds, is a `numpy.datetime64`
        where no time zone is to be kept.
        """
        if ticks is None:
            return None
        if not self.is_timestamp:
            return ticks / self.ticks_per_second if self.is_fraction else ticks
        if self.type.tz is None and is_finer(ticks, self.unit):
            return np.datetime64(ticks, "ns")
        return timestamp(ticks, self.unit, self.type.tz)


def clock_shown(kind: pa.DataType) -> Clock | None:
    """The clock whose times results show in a type (`Clock.shown_type`); None of integers, which are ticks."""
    if pa.types.is_floating(kind):
        return Clock("time", "ns", pa.duration("ns"))
    return Clock("time", kind.unit, kind) if pa.types.is_timestamp(kind) else None


def is_finer(ticks: int, unit: str) -> bool:
    """Whether a timestamp is finer than the microseconds of a datetime."""
    return unit == "ns" and ticks % 1000 != 0


def timestamp(ticks: int, unit: str, zone: str | None) -> datetime.datetime:
    """A timestamp from ticks since 1970; nanoseconds are cut to microseconds, which is all that datetime holds.

    Raises
    ------
    DataError
        Outside the years 1 to 9999, or in a time zone that is not known here.
    """
    micros = ticks // 1000 if unit == "ns" else ticks * (1_000_000 // UNITS_PER_SECOND[unit])
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
        if zone is None:
            return moment
        value: datetime.datetime = pa.scalar(micros, pa.timestamp("us", zone)).as_py()
    except (OverflowError, ValueError) as error:  # also pyarrow's errors
        if isinstance(error, pa.ArrowInvalid):
            raise DataError(f"the time zone {zone!r} is not known on this machine") from error
        raise DataError(f"the time {ticks} {unit} from 1970 is outside the years 1 to 9999") from error
    return value


def duration(ticks: int, unit: str) -> datetime.timedelta | np.timedelta64:
    """A duration from ticks: numpy's where Python's has no such digits, or no such length."""
    try:
        if not is_finer(ticks, unit):
            micros = ticks // 1000 if unit == "ns" else ticks * (1_000_000 // UNITS_PER_SECOND[unit])
            return datetime.timedelta(microseconds=micros)
    except OverflowError:
        pass
    found: np.timedelta64 = np.array([ticks], f"m8[{unit}]")[0]
    return found


def nanoseconds(length: datetime.timedelta | np.timedelta64) -> int:
    """What `duration` gives as a number: numpy's and Python's cannot be compared with each other."""
    if isinstance(length, np.timedelta64):
        return int(length.astype(np.int64)) * (1_000_000_000 // UNITS_PER_SECOND[np.datetime_data(length.dtype)[0]])
    return length // datetime.timedelta(microseconds=1) * 1000


@dataclass(frozen=True, slots=True)
class Schema:
    """Names and types of the attributes of a stream.

    Attributes
    ----------
    columns : mapping of str to AttributeType or None
        None where no value has been seen yet (an all-NULL column).
    clock : Clock
        The time column.
    type_column : str
        The column that holds the event type.
    order_column : str or None
        The column that orders events of equal time.
    units : mapping of str to (str, str or None)
        Unit and zone of each TIMESTAMP column.
    arrow_types : mapping of str to pyarrow.DataType
        The columns' types as the engine reads them.
    closed : bool
        Whether a name that is not in `columns` is a mistake (files, tables) or NULL (dicts).
    coded : bool or None
        Whether event types, which are text to whoever reads them, come as integers; None where none has come.
    """

    columns: Mapping[str, AttributeType | None]
    clock: Clock
    type_column: str = "type"
    order_column: str | None = None
    closed: bool = True
    units: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    arrow_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    coded: bool | None = None

    def type_of(self, attribute: str) -> AttributeType | None:
        """The type of an attribute; None where it is not known."""
        return self.columns.get(attribute)

    def zone_of(self, attribute: str) -> str | None:
        """The zone of the clock that a text without a zone is read by beside a timestamp; None where it has none.

        Where days begin in a time zone, that is it, but for columns that are not in any.
        """
        known = self.units.get(attribute, ("s", None))[1]
        return self.clock.zone or known if known is not None or attribute == self.clock.column else None

    def in_zone(self, zone: str | None) -> Schema:
        """These columns where days and weeks begin in a time zone."""
        return self if self.clock.zone == zone else replace(self, clock=replace(self.clock, zone=zone))
