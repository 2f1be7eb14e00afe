"""Ratios of what was measured in turn, with an interval that says how sure they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2_000


def ratio_of(first: Sequence[float], second: Sequence[float]) -> dict[str, float]:
    """The ratio of two medians, and a bootstrap interval of it.

    Parameters
    ----------
    first, second : sequence of float
        Seconds of every repeat. Where both took turns (as many repeats each), pairs are resampled together, so that
        what slows both down does not widen the interval.

    Returns
    -------
    dict
        ``ratio`` of medians, ``low`` and ``high`` of the 95 % interval.
    """
    above, below = np.asarray(first), np.asarray(second)
    random = np.random.default_rng(1)
    rows = random.integers(0, len(above), (RESAMPLES, len(above)))
    columns = rows if len(above) == len(below) else random.integers(0, len(below), (RESAMPLES, len(below)))
    ratios = np.median(above[rows], axis=1) / np.median(below[columns], axis=1)
    low, high = np.percentile(ratios, (2.5, 97.5))
    return {"ratio": float(np.median(above) / np.median(below)), "low": float(low), "high": float(high)}
