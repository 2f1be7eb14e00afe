from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

@dataclass(frozen=True)
class BurstStats:
    """Counts of one burst, named by the paper's symbols; all >= 0.

    Attributes
    ----------
    b : int
        Events in the burst.
    n : int
        Matched events in the window so far, the burst included.
    g : int
        Events in the graphlet, the burst included.
    k : int
        Queries.
    t : int
        Event types per query: what a snapshot is summed from.
    s_p : int
        Snapshots propagated through the burst.
    s_c : int
        Snapshots created for the burst.

    Source: HAMLET (SIGMOD'21) §4.1.
    """

    b: int
    n: int
    g: int
    k: int
    t: int
    s_p: int
    s_c: int

@dataclass(frozen=True)
class Costs:
    """Prices of operations: the constants of a model on one rung of the ladder.

    Attributes
    ----------
    reads : str
        How many stored values an event, or a snapshot, is summed from: ``one``, ``logarithm`` (log2(1 + stored)) or
        ``all``.
    coefficient : float
        ns; multiplies b * reads(n): the coefficients of an event, computed once for all queries.
    application : float
        ns; multiplies k: a query plugs its values of the snapshots into the coefficients of a burst.
    snapshot : float
        ns; multiplies s_c * k * reads(g) * t: a query's value of a new snapshot.
    event : float
        ns; multiplies k * b * reads(n): one event for one query on its own.
    burst : float
        ns; multiplies k: what a query on its own pays per burst beside its events.
    spread : float
        ns; multiplies b * reads(n) * (s_p - 1): the coefficients of an event for every further snapshot.
    join : float
        ns; multiplies s_c: the coefficients of one class of events, added to those of queries that accept it.

    Raises
    ------
    ValueError
        Where a price is negative or not finite, or `reads` is another word.

    Source: HAMLET (SIGMOD'21) §4.1, Eq. 7.
    """

    reads: Literal["one", "logarithm", "all"]
    coefficient: float
    application: float
    snapshot: float
    event: float
    burst: float = 0.0
    spread: float = 0.0
    join: float = 0.0

    def widened(self, words: float) -> Costs:
        """The prices where a number has so many machine words, as exact counts have.

        All prices but those of coefficients grow with it: coefficients are as wide as a graphlet is long, not as the
        window.
        """

PAPER: Costs
"""Eq. 7 as printed: reads all, an operation is the unit."""

MEASURED: Mapping[str, Costs]
"""Rung (``state-grained``, ``burst-grained``, ``indexed``, ``event-grained``) -> prices in nanoseconds.

Measured by `hamlet calibrate` on a Zen 5 core, doubles; it replaces them by those of the machine.
"""

def shared_cost(burst: BurstStats, costs: Costs = ...) -> float:
    """What a burst costs in a graphlet that all queries share.

    Parameters
    ----------
    burst : BurstStats
    costs : Costs
        `PAPER` unless given.

    Returns
    -------
    float
        Operations (`PAPER`) or nanoseconds (`MEASURED`), comparable with `non_shared_cost` under the same prices.

    Source: HAMLET (SIGMOD'21) §4.1, Eq. 7.
    """

def non_shared_cost(burst: BurstStats, costs: Costs = ...) -> float:
    """What a burst costs where every query is on its own; s_p, s_c, g and t are not read. As `shared_cost`."""

def benefit(burst: BurstStats, costs: Costs = ...) -> float:
    """What sharing a burst saves: `non_shared_cost` - `shared_cost`; sharing pays where it is above 0 (Eq. 7)."""

def shares_from(burst: BurstStats, costs: Costs = ...) -> float:
    """The length b from which on a burst is cheaper shared than not, the other counts staying as they are.

    Both prices are straight lines in b, so this number replaces the model as long as nothing else changes (n and g do
    not matter on rungs that read one sum). Infinite where no burst gains, or only short ones do.
    """
