"""What happens on ridesharing trips, each on its own clock: which events, when, and with what values.

All trips are drawn at once; a kind of event is one array operation over the trips that have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TYPES = (
    "Request", "Quote", "Surge", "Accept", "Reject", "Travel", "Jam", "Reroute", "Call", "Wait",
    "Cancel", "Pickup", "Pool", "Stop", "Toll", "Dropoff", "Pay", "Tip", "Rate", "Idle",
)  # fmt: skip
KINDS = ("Solo", "Pool", "Premium", "Shuttle")
FIXED = {
    "Request": ("the rate",),
    "Accept": ("Reject",),
    "Pickup": ("Cancel", "Wait"),
    "Dropoff": ("Cancel", "Wait"),
}  # types that every trip has that gets so far, and what changes their number instead
_KIND_SHARES = (0.55, 0.3, 0.1, 0.05)
_KIND_PRICES = np.array((1.0, 0.7, 1.8, 0.5))
_MOST_REPORTS = 60  # Travel events of one leg: a bound on the size of a trip's counts
_NO_DURATION = -1


@dataclass(frozen=True)
class Trips:
    """Events of many trips, in trip order.

    Attributes
    ----------
    kind, seconds : numpy.ndarray
        int64 (trips,): index into `KINDS`; time of the last event.
    trip, time, type, duration : numpy.ndarray
        int64 (events,): index of the trip; seconds since the trip's Request, strictly increasing within a trip; index
        into `TYPES`; seconds, -1 for none.
    speed, price : numpy.ndarray
        float64 (events,): miles per hour and USD, NaN for none.
    """

    kind: Array
    seconds: Array
    trip: Array
    time: Array
    type: Array
    duration: Array
    speed: Array
    price: Array


class _Log:
    """Events as they are drawn, one array per kind of event and column."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, ...]] = []

    def add(self, type_name: str, trip: Array, time: Array, **values: Array) -> None:
        """Note one event of a type for each given trip, with `duration`, `speed` or `price` where it has them."""
        rows = len(trip)
        self._parts.append(
            (
                trip.astype(np.int64),
                np.asarray(time, np.float64),
                np.full(rows, TYPES.index(type_name)),
                values.get("duration", np.full(rows, _NO_DURATION)).astype(np.int64),
                values.get("speed", np.full(rows, np.nan)),
                values.get("price", np.full(rows, np.nan)),
            )
        )

    def finish(self, kind: Array) -> Trips:
        """All events by trip and time, the times moved to whole seconds that differ within a trip."""
        trip, time, type_, duration, speed, price = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = np.lexsort((time, trip))
        trip, whole = trip[order], np.floor(time[order]).astype(np.int64)
        # Strictly increasing: cumulative maximum of (time - rank), with trips so far apart that none reaches the next.
        rank = np.arange(len(trip))
        apart = int(whole.max()) + len(trip) + 1
        distinct = np.maximum.accumulate(whole - rank + trip * apart) - trip * apart + rank
        last = np.searchsorted(trip, np.arange(len(kind)), side="right") - 1
        return Trips(kind, distinct[last], trip, distinct, type_[order], duration[order], speed[order], price[order])


class _Dice:
    """Chances, with the factor that the user gave to each event type."""

    def __init__(self, rng: np.random.Generator, mix: Mapping[str, float]) -> None:
        self.rng = rng
        self.mix = mix

    def falls(self, type_name: str, chance: Array | float, among: Array) -> Array:
        """Which of the trips in a mask have an event of that type, as trip numbers."""
        threshold = np.minimum(np.asarray(chance) * self.mix.get(type_name, 1.0), 1.0)
        return np.flatnonzero(among & (self.rng.random(len(among)) < threshold))


def simulate(rng: np.random.Generator, in_surge: Array, reports: float, mix: Mapping[str, float]) -> Trips:
    """Draw trips.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where chance comes from.
    in_surge : numpy.ndarray
        bool (trips,): requested in a surge of demand, so traffic is slower and prices are higher.
    reports : float
        Mean number of Travel events of a ride.
    mix : mapping of str to float
        Factors on how often types occur.
    """
    count = len(in_surge)
    dice, log, everyone = _Dice(rng, mix), _Log(), np.arange(count)
    kind = rng.choice(len(KINDS), count, p=_KIND_SHARES)
    reports *= mix.get("Travel", 1.0)
    fare = np.round((3 + 0.9 * rng.gamma(4, 3, count)) * _KIND_PRICES[kind], 2)

    answer, fare = _order(dice, log, in_surge, fare)
    refused = np.zeros(count, bool)
    refused[dice.falls("Reject", 0.08, np.ones(count, bool))] = True
    log.add("Reject", everyone[refused], answer[refused])
    log.add("Accept", everyone[~refused], answer[~refused])

    slow = rng.random(count) < np.where(in_surge, 0.55, 0.25)
    arrival = _leg(
        dice, log, everyone[~refused], answer, slow, 0.6 * reports, {"Jam": 0.4, "Reroute": 0.1, "Call": 0.2}
    )
    called_off = np.zeros(count, bool)
    called_off[dice.falls("Cancel", np.where(slow, 0.22, 0.07), ~refused)] = True
    fee = np.where(rng.random(count) < 0.6, 5.0, np.nan)
    log.add(
        "Cancel", everyone[called_off], arrival[called_off] + rng.uniform(1, 9, called_off.sum()), price=fee[called_off]
    )

    present, boarding = _meet(dice, log, ~refused & ~called_off, arrival)
    slow = rng.random(count) < np.where(in_surge, 0.55, 0.25)
    riding = np.flatnonzero(present)
    end = _leg(dice, log, riding, boarding, slow, reports, {"Jam": 0.4, "Reroute": 0.15, "Stop": 0.1})
    _extras(dice, log, present, kind, boarding, end)
    done = _settle(dice, log, riding, boarding, end, fare)
    finished = np.maximum.reduce([answer, arrival, boarding, done]) + rng.uniform(9, 40, count)
    idle = dice.falls("Idle", 0.5, np.ones(count, bool))
    log.add("Idle", idle, finished[idle])
    return log.finish(kind)


def _order(dice: _Dice, log: _Log, in_surge: Array, fare: Array) -> tuple[Array, Array]:
    """Request, Quote and Surge; the time of the driver's answer and the fare, each float64 (trips,)."""
    count, rng = len(fare), dice.rng
    log.add("Request", np.arange(count), np.zeros(count))
    quoted = dice.falls("Quote", 0.9, np.ones(count, bool))
    log.add(
        "Quote",
        quoted,
        rng.uniform(1, 3, len(quoted)),
        price=np.round(fare[quoted] * rng.uniform(0.9, 1.1, len(quoted)), 2),
    )
    dearer = dice.falls("Surge", np.where(in_surge, 0.7, 0.05), np.ones(count, bool))
    fare = fare.copy()
    fare[dearer] = np.round(fare[dearer] * rng.uniform(1.2, 2.5, len(dearer)), 2)
    log.add("Surge", dearer, rng.uniform(3, 5, len(dearer)), price=fare[dearer])
    return rng.uniform(6, 25, count), fare


def _leg(
    dice: _Dice, log: _Log, trips: Array, begin: Array, slow: Array, reports: float, on_the_way: Mapping[str, float]
) -> Array:
    """Drive: Travel reports every few seconds, and what happens on the way.

    Parameters
    ----------
    dice, log : _Dice, _Log
        Where chance comes from and events go.
    trips : numpy.ndarray
        Numbers of the trips that drive.
    begin, slow : numpy.ndarray
        (all trips,): seconds at which the leg begins; whether traffic is slow.
    reports : float
        Mean number of Travel events, at least 1 each.
    on_the_way : mapping of str to float
        Chance of each other type; a Jam needs slow traffic.

    Returns
    -------
    numpy.ndarray
        float64 (all trips,): the time of the last report, `begin` for trips that do not drive.
    """
    rng = dice.rng
    number = np.minimum(1 + rng.poisson(max(reports - 1, 0), len(trips)), _MOST_REPORTS)
    trip = np.repeat(trips, number)
    gaps = rng.integers(3, 10, len(trip))
    passed = np.cumsum(gaps)
    before = np.repeat(np.cumsum(number) - number, number)  # index of the leg's first report
    elapsed = passed - passed[before] + gaps[before]
    speed = np.where(slow[trip], rng.normal(9, 4, len(trip)), rng.normal(24, 7, len(trip)))
    log.add("Travel", trip, begin[trip] + elapsed, duration=gaps, speed=np.round(np.clip(speed, 0.3, 65), 1))
    end = begin.copy()
    end[trips] += elapsed[np.cumsum(number) - 1]
    driving = np.zeros(len(begin), bool)
    driving[trips] = True
    for type_name, chance in on_the_way.items():
        some = dice.falls(type_name, chance, driving & slow if type_name == "Jam" else driving)
        log.add(type_name, some, begin[some] + rng.uniform(0.1, 0.95, len(some)) * (end - begin)[some])
    return end


def _meet(dice: _Dice, log: _Log, expected: Array, arrival: Array) -> tuple[Array, Array]:
    """Driver and rider meet, or not: a mask of the trips with a Pickup, and the time of boarding (trips,)."""
    rng, count = dice.rng, len(arrival)
    absent = expected & (rng.random(count) < 0.06)
    waiting = np.union1d(dice.falls("Wait", 0.5, expected & ~absent), np.flatnonzero(absent))
    waited = np.zeros(count)
    waited[waiting] = np.floor(rng.uniform(5, 60, len(waiting)) * np.where(absent[waiting], 3, 1))
    log.add("Wait", waiting, arrival[waiting] + 1, duration=waited[waiting])
    boarding = arrival + waited + rng.uniform(2, 6, count)
    present = expected & ~absent
    log.add("Pickup", np.flatnonzero(present), boarding[present], duration=boarding[present])
    return present, boarding


def _extras(dice: _Dice, log: _Log, present: Array, kind: Array, boarding: Array, end: Array) -> None:
    """Pool (twice at most, pooled requests only) and Toll, somewhere on the ride."""
    rng = dice.rng
    pooled = present & (kind == KINDS.index("Pool"))
    for chance in (0.6, 0.25):
        some = dice.falls("Pool", chance, pooled)
        log.add("Pool", some, boarding[some] + rng.uniform(0.05, 0.9, len(some)) * (end - boarding)[some])
    tolled = dice.falls("Toll", 0.12, present)
    place = boarding[tolled] + rng.uniform(0.1, 0.9, len(tolled)) * (end - boarding)[tolled]
    log.add("Toll", tolled, place, price=np.round(rng.uniform(2, 10, len(tolled)), 2))


def _settle(dice: _Dice, log: _Log, riding: Array, boarding: Array, end: Array, fare: Array) -> Array:
    """Dropoff, Pay, Tip and Rate; the time of the last of them, float64 (trips,)."""
    rng, count = dice.rng, len(end)
    riders = np.zeros(count, bool)
    riders[riding] = True
    left = end + rng.uniform(2, 8, count)
    log.add("Dropoff", riding, left[riding], duration=(left - boarding)[riding])
    paying = dice.falls("Pay", 0.97, riders)
    paid = left + rng.uniform(2, 8, count)
    log.add("Pay", paying, paid[paying], price=fare[paying])
    tipping = dice.falls("Tip", 0.35, riders)
    tip = np.round(fare[tipping] * rng.uniform(0.05, 0.25, len(tipping)), 2)
    log.add("Tip", tipping, paid[tipping] + rng.uniform(1, 6, len(tipping)), price=tip)
    rating = dice.falls("Rate", 0.55, riders)
    log.add("Rate", rating, paid[rating] + rng.uniform(6, 20, len(rating)))
    done = paid + 20
    done[~riders] = 0
    return done
