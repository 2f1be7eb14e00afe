"""Random logs for propositional policies: a number of time-stamps, each with as many time-points as the event rate.

Columns: time (int64, 0, 1, ...), type (string: p, q, r, or none where nothing is true). Read them with
``--time-points event``: each row is a time-point. The logs have the shape of those in Basin, Bhatt, Traytel (TACAS
2017), §6: 100 time-stamps of 100 to 100,000 time-points.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hamlet.errors import OptionError

TYPES = ("p", "q", "r", "none")


def generate(stamps: int = 100, rate: int = 1000, share: float = 0.01, seed: int = 0) -> pa.Table:
    """A random log.

    Parameters
    ----------
    stamps : int
        Distinct time-stamps.
    rate : int
        Time-points of each.
    share : float
        How often p occurs at a time-point; q and r as often. At most 1/3.
    seed : int
        Equal seeds and options give equal logs.

    Returns
    -------
    pyarrow.Table
        stamps * rate rows.

    Raises
    ------
    OptionError
        At a number that makes no log.
    """
    if stamps < 1 or rate < 1 or not 0 <= share <= 1 / 3:
        raise OptionError("a log needs time-stamps, time-points and a share from 0 to 1/3")
    random = np.random.default_rng(seed)
    rows = stamps * rate
    codes = np.searchsorted(np.cumsum([share] * 3), random.random(rows), side="right").astype(np.int32)
    types = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(TYPES)).cast(pa.string())
    return pa.table({"time": pa.array(np.repeat(np.arange(stamps), rate)), "type": types})
