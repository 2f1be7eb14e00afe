"""The simulated ridesharing stream: trips of drivers with riders, as 20 types of events in demand surges.

A trip is a Request, then perhaps a Quote and a Surge price, then Reject, or Accept and an approach (Travel reports
with speeds, perhaps Jam, Reroute, Call). The approach ends in Cancel, in a Wait without the rider, or in Pickup; a ride
(Travel, Jam, Reroute, Stop, Toll, Pool when another rider joins) ends in Dropoff, Pay, perhaps Tip and Rate. Idle ends
a driver's work on a trip. All events of a trip share trip, driver, rider, district and type (the request's kind).

Columns: time (int64, seconds unless asked otherwise), event (string, the event type), seq (int32, total order),
trip, driver, rider (int64), district, type (string: Solo, Pool, Premium, Shuttle), speed (double, miles per hour, of
Travel), duration (int64, seconds: since the report before of Travel, since the Request of Pickup, since the Pickup of
Dropoff, waited of Wait), price (double, USD, of Quote, Surge, Cancel, Toll, Pay, Tip). What an event does not have is
NULL. The events of one trip have strictly increasing times.

Source: HAMLET (SIGMOD'21) §5.1 describes the stream: 20 event types; each event carries a time stamp in seconds, driver
and rider, request type, district, duration and price. Rates of the paper are 10,000 to 20,000 events per minute.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from datasets.columns import names
from datasets.trips import FIXED, KINDS, TYPES, Array, Trips, simulate
from hamlet.errors import OptionError
from hamlet.frontend.units import UNITS_PER_SECOND

DISTRICTS = (
    "Manhattan", "Brooklyn", "Queens", "Bronx", "Harlem", "Astoria",
    "Chelsea", "Flushing", "Jamaica", "Red Hook", "SoHo", "Tribeca",
)  # fmt: skip
START = 1_624_176_000  # 2021-06-20 08:00:00 UTC, the first morning of SIGMOD'21
_SURGE_TRIPS = 25  # trips in a surge of demand, on average
_SURGE_SECONDS = 4.0  # mean time between the begin of a surge and one of its requests


@dataclass(frozen=True)
class Settings:
    """What a stream shall look like.

    Attributes
    ----------
    events : int
        Number of events, > 0.
    seed : int
        Two streams of equal settings are equal.
    rate : float
        Events per minute once the first trips have got going.
    burstiness : float
        Share of the trips that are requested in a surge (about 25 requests of one district within seconds), in [0, 1].
    reports : float
        Mean number of Travel events of a ride; an approach has 0.6 times as many. The length of a trip's bursts.
    mix : mapping of str to float
        Factor per event type on how often it occurs per trip; chances stop at 1.
    drivers : int or None
        Number of drivers; None is as many as are needed so that nobody waits for one. With fewer, requests come later.
        There are 20 riders per driver, who ride in turns.
    districts : int
        Number of districts, > 0; the first ones have more trips.
    start : int
        Seconds since 1970 of the first possible request.
    time_unit : {'s', 'ms', 'us', 'ns'}
        Unit of the time column. The resolution is a second all the same.
    """

    events: int
    seed: int = 0
    rate: float = 10_000.0
    burstiness: float = 0.3
    reports: float = 8.0
    mix: Mapping[str, float] = field(default_factory=dict)
    drivers: int | None = None
    districts: int = len(DISTRICTS)
    start: int = START
    time_unit: str = "s"

    def __post_init__(self) -> None:
        """Refuse settings that have no stream (OptionError)."""
        if self.events < 1 or self.districts < 1 or (self.drivers is not None and self.drivers < 1):
            raise OptionError("events, districts and drivers must be at least 1")
        if not (self.rate > 0 and math.isfinite(self.rate) and 0 < self.reports <= 100):
            raise OptionError("the rate must be a positive number, and reports must lie between 0 and 100")
        if not 0 <= self.burstiness <= 1:
            raise OptionError(f"burstiness must lie between 0 and 1, not {self.burstiness}")
        if self.time_unit not in UNITS_PER_SECOND:
            raise OptionError(f"the time unit must be one of {', '.join(UNITS_PER_SECOND)}, not {self.time_unit}")
        for name, factor in self.mix.items():
            if name not in TYPES:
                raise OptionError(f"there is no event type {name}; the types are {', '.join(TYPES)}")
            if name in FIXED:
                raise OptionError(
                    f"the number of {name} events follows from the trips; change {', '.join(FIXED[name])}"
                )
            if not (factor >= 0 and math.isfinite(factor)):
                raise OptionError(f"the factor of {name} must be a number >= 0, not {factor}")


def generate(settings: Settings) -> pa.Table:
    """The stream, sorted by time.

    Parameters
    ----------
    settings : Settings
        What it shall look like.

    Returns
    -------
    pyarrow.Table
        `settings.events` rows; columns as in the module's documentation.
    """
    travel = settings.reports * 1.6 * settings.mix.get("Travel", 1.0)
    count = int(settings.events / (7 + travel) * 1.1 + settings.rate * (1 + travel / 10) / (7 + travel)) + 60
    while True:
        table = _stream(settings, count)
        if table is not None:
            return table
        count = count * 4 // 3


def _stream(settings: Settings, count: int) -> pa.Table | None:
    """The stream made of that many trips, or None where they do not reach to its last event."""
    rng = np.random.default_rng(settings.seed)
    in_surge = rng.random(count) < settings.burstiness
    trips = simulate(rng, in_surge, settings.reports, settings.mix)
    if len(trips.time) < settings.events:
        return None
    horizon = count * 60.0 * (len(trips.time) / count) / settings.rate  # seconds in which all trips are requested
    starts, districts = _demand(rng, in_surge, horizon, settings.districts)
    starts, drivers = _dispatch(starts, starts + trips.seconds, settings.drivers)
    place = np.argsort(np.argsort(starts, kind="stable"), kind="stable")  # of each trip among all, by its start
    riders = 1 + rng.permutation(20 * int(drivers.max()))[place % (20 * int(drivers.max()))]
    time = starts[trips.trip] + trips.time
    order = np.argsort(time, kind="stable")[: settings.events]
    if time[order[-1]] >= horizon:
        return None  # a later trip might have had an event before this one
    return _table(settings, trips, time, order, (place + 1, drivers, riders, districts))


def _demand(rng: np.random.Generator, in_surge: Array, horizon: float, districts: int) -> tuple[Array, Array]:
    """When and where rides are requested: seconds since the start, int64 (trips,), and district numbers (trips,)."""
    count = len(in_surge)
    share = 1.0 / np.arange(1, districts + 1) ** 0.7
    share /= share.sum()
    surges = max(1, round(int(in_surge.sum()) / _SURGE_TRIPS))
    surge = rng.integers(0, surges, count)
    surge_start, surge_district = rng.uniform(0, horizon, surges), rng.choice(districts, surges, p=share)
    starts = np.where(
        in_surge, surge_start[surge] + rng.exponential(_SURGE_SECONDS, count), rng.uniform(0, horizon, count)
    )
    return starts.astype(np.int64), np.where(in_surge, surge_district[surge], rng.choice(districts, count, p=share))


def _dispatch(starts: Array, ends: Array, drivers: int | None) -> tuple[Array, Array]:
    """Give each trip the driver who has been free for longest.

    Returns
    -------
    starts, drivers : numpy.ndarray
        int64 (trips,); a trip starts later than asked for where no driver was free. Drivers count from 1.
    """
    if drivers is None:
        moments = np.concatenate([starts, ends + 1])
        changes = np.repeat([1, -1], len(starts))[np.argsort(moments, kind="stable")]
        drivers = int(np.cumsum(changes).max()) + 1
    free = [(-1, driver) for driver in range(1, drivers + 1)]
    chosen, actual = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    lengths = (ends - starts).tolist()
    for trip in np.argsort(starts, kind="stable").tolist():
        since, driver = free[0]
        start = max(int(starts[trip]), since + 1)
        heapq.heapreplace(free, (start + lengths[trip], driver))
        actual[trip], chosen[trip] = start, driver
    return actual, chosen


def _table(
    settings: Settings,
    trips: Trips,
    time: Array,
    order: Array,
    of_trip: tuple[Array, ...],
) -> pa.Table:
    """The chosen events with the columns of the stream; `of_trip`: number, driver, rider, district of each trip."""
    numbers, drivers, riders, districts = of_trip
    trip = trips.trip[order]
    district_names = [DISTRICTS[d] if d < len(DISTRICTS) else f"District {d + 1}" for d in range(settings.districts)]
    duration, speed, price = trips.duration[order], trips.speed[order], trips.price[order]
    return pa.table(
        {
            "time": (settings.start + time[order]) * UNITS_PER_SECOND[settings.time_unit],
            "event": names(trips.type[order], TYPES),
            "seq": np.arange(len(order), dtype=np.int32),
            "trip": numbers[trip],
            "driver": drivers[trip],
            "rider": riders[trip],
            "district": names(districts[trip], district_names),
            "type": names(trips.kind[trip], KINDS),
            "speed": pa.array(speed, mask=np.isnan(speed)),
            "duration": pa.array(duration, mask=duration < 0),
            "price": pa.array(price, mask=np.isnan(price)),
        }
    )
