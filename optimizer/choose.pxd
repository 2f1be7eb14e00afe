"""The choice of the queries that share a burst, for compiled callers."""

from libc.stdint cimport int64_t

from optimizer.benefit cimport BurstFacts, CostFacts

cdef struct CandidateFacts:
    int64_t queries      # queries with the same accepted events and edges in the burst, >= 1
    int64_t sigma        # snapshots that they add; 0 where they agree with the group's reference

cdef struct ChoiceFacts:
    double cost          # of the chosen plan, the queries outside included
    double unshared      # of the plan in which every query is on its own
    int64_t queries      # queries that share; 0 where none do
    int64_t s_p          # snapshots that the shared graphlet propagates
    int64_t s_c          # snapshots that are created for it

cdef struct ChoiceSpace:  # scratch, made once per group of queries
    int candidates       # most candidates
    int64_t totals       # totals of sigma from 0 to totals - 1 are looked at
    int64_t* most        # most[s]: most queries that add s snapshots in total, -1 for none; or a count per sigma
    unsigned char* taken  # taken[candidate * totals + s]: whether the candidate is among those

cdef bint make_choice_space(ChoiceSpace* space, int candidates, int64_t totals) noexcept nogil
cdef void free_choice_space(ChoiceSpace* space) noexcept nogil

cdef void choose_shared(
    const CandidateFacts* candidates,
    int count,
    const BurstFacts* burst,    # b, n, g and t are read
    int64_t carried,            # snapshots that the graphlet carries; 0 where this burst opens or merges it
    const CostFacts* costs,
    ChoiceSpace* space,
    unsigned char* chosen,      # out: 1 for every candidate that shares
    ChoiceFacts* choice,        # out
) noexcept nogil
