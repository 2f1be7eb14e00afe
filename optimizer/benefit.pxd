"""Facts of a burst and prices of operations, for compiled callers. Fields carry the paper's symbols (§4.1)."""

from libc.stdint cimport int64_t

cdef enum Reads:
    READS_ONE          # an event reads one sum (state-grained, burst-grained)
    READS_LOGARITHM    # it searches an ordered index: log2(1 + stored)
    READS_ALL          # it reads every stored event (event-grained, and all of the paper)

cdef struct BurstFacts:
    int64_t b          # events in the burst, >= 1
    int64_t n          # matched events in the window so far, the burst included
    int64_t g          # events in the graphlet, the burst included
    int64_t k          # queries
    int64_t t          # event types per query: what a snapshot is summed from
    int64_t s_p        # snapshots propagated through the burst
    int64_t s_c        # snapshots created for the burst

cdef struct CostFacts:
    int reads            # Reads: how many stored values an event, or a snapshot, is summed from
    double coefficient   # ns * b * reads(n): coefficients of one event, computed once for all queries
    double spread        # ns * b * reads(n) * (s_p - 1): the same for every further snapshot
    double application   # ns * k: a query plugs its values of the snapshots into the coefficients of a burst
    double join          # ns * s_c: coefficients of one class of events, added to those of queries that accept it
    double snapshot      # ns * s_c * k * reads(g) * t: a query's value of a new snapshot
    double event         # ns * k * b * reads(n): one event for one query on its own
    double burst         # ns * k: what a query on its own pays per burst

cdef double price_shared(const BurstFacts* burst, const CostFacts* costs) noexcept nogil
cdef double price_unshared(const BurstFacts* burst, const CostFacts* costs) noexcept nogil

cdef BurstFacts facts_of_burst(burst) except *
cdef CostFacts facts_of_costs(costs) except *
