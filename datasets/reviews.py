"""Reviews of products whose popularity follows a power law, as in Faymonville et al. (2019), Section 5.2.

Columns: time (int64, seconds), product (string), rating (double, 1.0 to 5.0). The k-th most popular product is reviewed
with probability proportional to k ** -exponent; every product is reviewed at least once where there are enough events.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hamlet.errors import OptionError

START = 1_400_000_000


def generate(
    events: int = 7_000_000, products: int = 500_000, exponent: float = 0.9, rate: float = 1.0, seed: int = 0
) -> pa.Table:
    """A stream of reviews.

    Parameters
    ----------
    events : int
    products : int
        Distinct products; at most `events` occur.
    exponent : float
        How steeply popularity falls, 0 (all alike) or more.
    rate : float
        Reviews per second of stream time.
    seed : int
        Equal seeds and options give equal streams.

    Returns
    -------
    pyarrow.Table
        In the order of time.

    Raises
    ------
    OptionError
        At a number that makes no stream.
    """
    if events < 1 or products < 1 or exponent < 0 or not rate > 0:
        raise OptionError("a stream of reviews needs events, products, an exponent >= 0 and a rate > 0")
    random = np.random.default_rng(seed)
    weights = np.cumsum(np.arange(1, products + 1, dtype=np.float64) ** -exponent)
    codes = np.searchsorted(weights, random.random(events) * weights[-1], side="right").astype(np.int32)
    once = random.permutation(products)[: min(products, events)].astype(np.int32)
    codes[random.permutation(events)[: len(once)]] = once
    names = pa.array([f"P{number:07}" for number in range(products)])
    liked = random.normal(4.0, 0.7, products)
    ratings = np.clip(np.rint(liked[codes] + random.normal(0.0, 0.8, events)), 1.0, 5.0)
    times = START + (np.arange(events) / rate).astype(np.int64)
    return pa.table(
        {
            "time": pa.array(times),
            "product": pa.DictionaryArray.from_arrays(pa.array(codes), names).cast(pa.string()),
            "rating": pa.array(ratings),
        }
    )
