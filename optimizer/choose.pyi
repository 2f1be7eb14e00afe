from collections.abc import Sequence
from dataclasses import dataclass

from optimizer.benefit import BurstStats, Costs

@dataclass(frozen=True)
class Candidate:
    """Queries with the same accepted events and edges in a burst, so that a plan takes all of them or none.

    Attributes
    ----------
    queries : int
        How many, >= 1.
    sigma : int
        Snapshots that they add to the shared graphlet; 0 where they agree with the group's reference.

    Source: HAMLET (SIGMOD'21) §4.3.
    """

    queries: int
    sigma: int

@dataclass(frozen=True)
class Choice:
    """The cheapest plan for a burst.

    Attributes
    ----------
    shared : tuple of bool
        For each candidate whether its queries share.
    queries : int
        Queries that share; 0 where none do.
    s_p, s_c : int
        Snapshots that the shared graphlet propagates, and that are created for it; 0 where none share.
    cost : float
        Of this plan, the queries outside the shared set included.
    unshared : float
        Of the plan in which every query is on its own.
    """

    shared: tuple[bool, ...]
    queries: int
    s_p: int
    s_c: int
    cost: float
    unshared: float

def choose(candidates: Sequence[Candidate], burst: BurstStats, carried: int = 0, costs: Costs = ...) -> Choice:
    """The cheapest of all plans with one shared set of at least two queries and the rest alone.

    Parameters
    ----------
    candidates : sequence of Candidate
    burst : BurstStats
        b, n, g and t are read; k, s_p and s_c follow from the candidates.
    carried : int
        Snapshots that the graphlet carries already; 0 where this burst opens or merges it, which creates one.
    costs : Costs
        `PAPER` unless given.

    Returns
    -------
    Choice
        Among equals the unshared plan, then the one with fewest snapshots.

    Raises
    ------
    ValueError
        For a candidate without queries, or a negative number.

    Source: HAMLET (SIGMOD'21) §4.3, Fig. 7.
    """
