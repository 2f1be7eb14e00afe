"""What a burst costs shared and not shared: one formula, and the constants of the models `paper` and `measured`.

    Shared    = b * reads(n) * (coefficient + spread * (s_p - 1)) + application * k
                + s_c * (join + snapshot * k * reads(g) * t)
    NonShared = k * (event * b * reads(n) + burst)

The paper prices an executor in which every event reads all events before it and carries every snapshot: reads(n) = n,
spread = coefficient, application, join and burst are nothing, and an operation is the unit. That is `PAPER`, Eq. 7. The
model `measured` has the same form with reads and nanoseconds of the operator that a graphlet runs on. In closed
forms a snapshot is not carried from event to event: queries that accept other events than the rest add up the
coefficients of the classes of events that they accept, so spread is nothing and s_c counts those additions.

Source: HAMLET (SIGMOD'21) §4.1, Eq. 7.
"""

from dataclasses import dataclass, fields, replace

from libc.math cimport INFINITY, log2

_READS = {"one": READS_ONE, "logarithm": READS_LOGARITHM, "all": READS_ALL}


@dataclass(frozen=True)
class BurstStats:
    """Counts of one burst, named by the paper's symbols; see ``benefit.pyi``."""

    b: int
    n: int
    g: int
    k: int
    t: int
    s_p: int
    s_c: int


@dataclass(frozen=True)
class Costs:
    """Prices of operations; see ``benefit.pyi``."""

    reads: str
    coefficient: float
    application: float
    snapshot: float
    event: float
    burst: float = 0.0
    spread: float = 0.0
    join: float = 0.0

    def __post_init__(self):
        if self.reads not in _READS:
            raise ValueError(f"reads is one of {', '.join(_READS)}, not {self.reads!r}")
        prices = [getattr(self, price.name) for price in fields(self) if price.name != "reads"]
        if not all(0 <= price < float("inf") for price in prices):
            raise ValueError(f"prices are finite and not negative: {self}")

    def widened(self, words):
        """The prices where a number has so many words; see ``benefit.pyi``."""
        wide = ("application", "snapshot", "event", "burst")
        return replace(self, **{price: words * getattr(self, price) for price in wide})


PAPER = Costs("all", coefficient=1.0, application=0.0, snapshot=1.0, event=1.0, spread=1.0)

# What `hamlet calibrate` measures on one core of an AMD EPYC (Zen 5), rounded; doubles. It says what a query of each
# rung is. In closed forms a query takes its own snapshot whether it shares or not, so a snapshot costs nothing more.
_APPLICATION = 74.0
_CLOSED_FORM = Costs("one", coefficient=2.0, application=_APPLICATION, snapshot=0.0, event=1.6, burst=78.0, join=14.0)
_SEARCH = 40.0
_PAIR = 1.5

MEASURED = {
    "state-grained": replace(_CLOSED_FORM, event=75.0, burst=0.0),
    "burst-grained": _CLOSED_FORM,
    "indexed": Costs("logarithm", _SEARCH, _APPLICATION, _SEARCH, event=_SEARCH, spread=_SEARCH),
    "event-grained": Costs("all", _PAIR, _APPLICATION, _PAIR, event=_PAIR, spread=_PAIR),
}


cdef inline double _reads(int reads, int64_t stored) noexcept nogil:
    if reads == READS_ALL:
        return <double> stored
    return log2(1.0 + <double> stored) if reads == READS_LOGARITHM else 1.0


cdef double price_shared(const BurstFacts* burst, const CostFacts* costs) noexcept nogil:
    """Eq. 7, the first line."""
    cdef double k = <double> burst.k
    return (
        <double> burst.b * _reads(costs.reads, burst.n)
        * (costs.coefficient + costs.spread * <double> (burst.s_p - 1))
        + costs.application * k
        + <double> burst.s_c * (costs.join + costs.snapshot * k * _reads(costs.reads, burst.g) * <double> burst.t)
    )


cdef double price_unshared(const BurstFacts* burst, const CostFacts* costs) noexcept nogil:
    """Eq. 7, the second line."""
    return <double> burst.k * (costs.event * <double> burst.b * _reads(costs.reads, burst.n) + costs.burst)


cdef double least_burst(const BurstFacts* burst, const CostFacts* costs) noexcept nogil:
    """The length from which on a burst is cheaper shared, n and g staying as they are; b is not read.

    Both prices are straight lines in b. Where only short bursts would gain, infinity as where none does.
    """
    cdef BurstFacts moved = burst[0]
    cdef double lost, slope
    moved.b = 0
    lost = price_shared(&moved, costs) - price_unshared(&moved, costs)
    moved.b = 1
    slope = price_unshared(&moved, costs) - price_shared(&moved, costs) + lost
    if slope <= 0:
        return INFINITY
    return lost / slope if lost > 0 else 0.0


cdef BurstFacts facts_of_burst(burst) except *:
    """The C face of a `BurstStats`."""
    cdef BurstFacts facts
    facts.b, facts.n, facts.g, facts.k, facts.t = burst.b, burst.n, burst.g, burst.k, burst.t
    facts.s_p, facts.s_c = burst.s_p, burst.s_c
    return facts


cdef CostFacts facts_of_costs(costs) except *:
    """The C face of `Costs`."""
    cdef CostFacts facts
    facts.reads = _READS[costs.reads]
    facts.coefficient, facts.application, facts.snapshot = costs.coefficient, costs.application, costs.snapshot
    facts.event, facts.burst, facts.spread, facts.join = costs.event, costs.burst, costs.spread, costs.join
    return facts


def shared_cost(burst, costs=PAPER):
    """What a burst costs in a graphlet that all queries share; see ``benefit.pyi``."""
    cdef BurstFacts facts = facts_of_burst(burst)
    cdef CostFacts prices = facts_of_costs(costs)
    return price_shared(&facts, &prices)


def non_shared_cost(burst, costs=PAPER):
    """What a burst costs where every query is on its own; see ``benefit.pyi``."""
    cdef BurstFacts facts = facts_of_burst(burst)
    cdef CostFacts prices = facts_of_costs(costs)
    return price_unshared(&facts, &prices)


def benefit(burst, costs=PAPER):
    """What sharing a burst saves; see ``benefit.pyi``."""
    return non_shared_cost(burst, costs) - shared_cost(burst, costs)


def shares_from(burst, costs=PAPER):
    """The length from which on a burst is cheaper shared; see ``benefit.pyi``."""
    cdef BurstFacts facts = facts_of_burst(burst)
    cdef CostFacts prices = facts_of_costs(costs)
    return least_burst(&facts, &prices)
