"""Which queries have windows that fit together: a group's pane is the gcd of all of them, and short panes cost.

Every pane of a group opens its graphlets anew: one snapshot per query. A query of 7 s beside fifty of 30 min makes
panes of 1 s out of panes of 30 min, and is better left out.

Source: HAMLET (SIGMOD'21) §3.1 (panes).
"""

from __future__ import annotations

from collections.abc import Mapping

from optimizer.benefit import MEASURED, BurstStats, Costs, non_shared_cost, shared_cost
from optimizer.plan import pane

USUAL_BURST = 64  # events; a graphlet ends with its burst, however long the pane is


def pane_sets(
    windows: Mapping[int, tuple[int, int]],
    *,
    types: int = 2,
    rate: float | None = None,
    costs: Costs = MEASURED["burst-grained"],
) -> list[list[int]]:
    """Sets of queries whose windows fit together, each query in one of them.

    Parameters
    ----------
    windows : mapping of int to (int, int)
        Query -> (within, slide) in ticks.
    types : int
        Event types per query.
    rate : float or None
        Matched events of one partition per tick; where None, the shortest pane of a query holds `USUAL_BURST`.
    costs : Costs
        Prices of the rung that the queries run on.

    Returns
    -------
    list of list of int
        Queries whose own panes are equal are in one set; the panes of two sets are joined, the longest first, where
        that is not dearer than the two apart.

    Examples
    --------
    >>> seconds = {0: (1800, 1800), 1: (1800, 900), 2: (7, 7), 3: (900, 900), 4: (1800, 900)}
    >>> pane_sets(seconds, rate=2.0)
    [[0, 1, 3, 4], [2]]
    """
    own: dict[int, list[int]] = {}
    for query, window in windows.items():
        own.setdefault(pane([window]), []).append(query)
    if rate is None:
        rate = USUAL_BURST / min(own, default=1)

    def price(queries: list[int]) -> float:
        """Per event of a burst that a pane cuts off."""
        length = pane([windows[query] for query in queries])
        events = max(1, min(round(rate * length), USUAL_BURST))
        burst = BurstStats(b=events, n=events, g=events, k=len(queries), t=types, s_p=1, s_c=1)
        alone = non_shared_cost(burst, costs)
        return (alone if len(queries) == 1 else min(alone, shared_cost(burst, costs))) / events

    sets: list[list[int]] = []
    for length in sorted(own, reverse=True):
        saved = [price(each) + price(own[length]) - price(each + own[length]) for each in sets]
        best = max(range(len(sets)), key=saved.__getitem__, default=None)
        if best is not None and saved[best] >= 0:  # whether a burst is worth sharing is decided when it comes
            sets[best] += own[length]
        else:
            sets.append(list(own[length]))
    return sorted(sorted(each) for each in sets)
