"""Streams made for benchmarks: deterministic, in memory, a type dictionary<int8, string>.

The first two are W1 and W2 in the titles of cases: many groups with hardly an event each, and few groups with long
bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

TYPES = ("A", "B", "C", "D", "E")
DAY_S = 86_400
FULL = 10_000_000  # events of a day; fewer events are the beginning of a day of the same rate
SHORTEST, LONGEST = 20, 120  # events of a burst

Array = np.ndarray[Any, Any]


def typed(codes: Array, names: tuple[str, ...] = TYPES) -> pa.DictionaryArray:
    """Type names as a dictionary of small codes, one per event; each code is a place in `names`."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), pa.array(names))


def many_groups(events: int, keys: int = 5_000, seed: int = 1, weights: Sequence[float] | None = None) -> pa.Table:
    """Random keys and types: time (seconds), type, key (int32), value (int64, 0 to 99), code (int8, the type's).

    At 10 million events a day a key has 7 events in 300 seconds. Events of one key and second are unordered. With
    `weights` the types are that frequent, in the order of `TYPES`; else all are equally frequent.
    """
    random = np.random.default_rng(seed)
    codes = (
        random.integers(0, len(TYPES), events)
        if weights is None
        else random.choice(len(TYPES), events, p=np.divide(weights, sum(weights)))
    )
    return pa.table(
        {
            "time": np.sort(random.integers(0, max(1, DAY_S * events // FULL), events)),
            "type": typed(codes),
            "key": random.integers(0, keys, events).astype(np.int32),
            "value": random.integers(0, 100, events),
            "code": codes.astype(np.int8),
        }
    )


def long_bursts(events: int, keys: int = 10, seed: int = 1, lengths: tuple[int, int] = (SHORTEST, LONGEST)) -> pa.Table:
    """Bursts of one type per key: columns as in `many_groups`, time in milliseconds, no two equal.

    Their `lengths` are at least and at most so many events. At 10 million events a day and 10 keys, a key has 3,500
    events in 300 seconds, about 50 bursts of 20 to 120.
    """
    random = np.random.default_rng(seed)
    owners = random.integers(0, keys, events)
    codes = np.empty(events, np.int64)
    for key in range(keys):
        places = np.nonzero(owners == key)[0]
        codes[places] = bursts(random, len(places), len(TYPES), lengths)
    millisecond = DAY_S * 1000 / FULL
    return pa.table(
        {
            "time": (np.arange(events) * millisecond).astype(np.int64),
            "type": typed(codes),
            "key": owners.astype(np.int32),
            "value": random.integers(0, 100, events),
            "code": codes.astype(np.int8),
        }
    )


def short_bursts(events: int, keys: int, burst: int, seed: int = 1, weights: Sequence[float] | None = None) -> pa.Table:
    """Runs of so many events of one type and key, which follow one another in the stream; columns of `many_groups`."""
    runs = many_groups(events // burst, keys, seed, weights).take(np.repeat(np.arange(events // burst), burst))
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, max(1, DAY_S * events // FULL), len(runs)))
    values = random.integers(0, 100, len(runs))
    return runs.set_column(0, "time", pa.array(times)).set_column(3, "value", pa.array(values)).combine_chunks()


def clickstream(events: int, users: int, days: int = 7, seed: int = 7) -> pa.Table:
    """What visitors of a shop do: time (seconds), type (view, cart, purchase: 7 to 2 to 1), user (int32).

    Every user comes three times in so many days, for an hour at most, which is where all its events lie.
    """
    random = np.random.default_rng(seed)
    user = random.integers(0, users, events)
    visits = random.integers(0, days * DAY_S, 3 * users)
    times = visits[3 * user + random.integers(0, 3, events)] + random.integers(0, 3600, events)
    codes = random.choice(3, events, p=[0.7, 0.2, 0.1])
    order = np.argsort(times, kind="stable")
    return pa.table(
        {
            "time": times[order],
            "type": typed(codes[order], ("view", "cart", "purchase")),
            "user": user[order].astype(np.int32),
        }
    )


def bursts(
    random: np.random.Generator, events: int, types: int, lengths: tuple[int, int] = (SHORTEST, LONGEST)
) -> Array:
    """Types of consecutive events, int64 (events,), 0 to types - 1: each run has another than the one before."""
    runs = 1 + events // lengths[0]
    per_run = random.integers(lengths[0], lengths[1] + 1, runs)
    steps = random.integers(1, types, runs)
    return np.repeat(np.cumsum(steps) % types, per_run)[:events]


def kleene_among_others(
    events: int, others: int, lengths: tuple[int, int] = (SHORTEST, LONGEST), seed: int = 1
) -> pa.Table:
    """Bursts of the type Kleene between single events of other types T0, T1, ...: time (seconds), type, value.

    Parameters
    ----------
    events, others : int
    lengths : (int, int)
        Events of a burst, at least and at most.
    seed : int
    """
    random = np.random.default_rng(seed)
    runs = 1 + events // lengths[0]
    per_run = random.integers(lengths[0], lengths[1] + 1, runs)
    pairs = np.stack([1 + random.integers(0, others, runs), np.zeros(runs, np.int64)], axis=1)
    codes = np.repeat(pairs.ravel(), np.stack([np.ones(runs, np.int64), per_run], axis=1).ravel())[:events]
    names = ("Kleene", *(f"T{number}" for number in range(others)))
    return pa.table({"time": np.arange(events), "type": typed(codes, names), "value": random.integers(0, 100, events)})
