"""Which queries share a burst: the cheapest of the 2^k - k plans, in O(m * k).

A plan is one shared set of at least two queries with the rest alone (Fig. 7). A *candidate* is a set of queries with
the same accepted events and edges in the burst: they share with each other for nothing, and together add sigma
snapshots, so a plan takes all of a candidate or nothing. With s the total of sigma over the candidates taken, a plan
costs F(s) + K * G(s) + (k - K) * N for K shared queries, where N is one query's price alone. Either G(s) < N, and the
plan with most queries is the best of its s, or sharing does not pay at this s at all. So one number per s suffices,
which a knapsack over the candidates finds; F and G grow with s, which bounds it: at s_p >= k for Eq. 7.

Where Theorems 4.3 and 4.5 of the paper call it always good to share queries that add no snapshot, we compare all the
same: k = 3, no sigma, b = n = g = t = 2 costs 16 shared and 12 not, since the graphlet's own snapshot has its price.

Source: HAMLET (SIGMOD'21) §4.3, Fig. 7, Theorems 4.3-4.5.
"""

from dataclasses import dataclass

from libc.stdlib cimport calloc, free, malloc

from optimizer.benefit cimport facts_of_burst, facts_of_costs, price_shared, price_unshared

from optimizer.benefit import PAPER


cdef bint make_choice_space(ChoiceSpace* space, int candidates, int64_t totals) noexcept nogil:
    """Make room for choices among some candidates, totals >= 1; False where memory is short."""
    space.candidates = candidates
    space.totals = totals
    space.most = <int64_t*> malloc(totals * sizeof(int64_t))
    space.taken = <unsigned char*> malloc(max(<int64_t> 1, candidates * totals))
    if space.most == NULL or space.taken == NULL:
        free_choice_space(space)
        return False
    return True


cdef void free_choice_space(ChoiceSpace* space) noexcept nogil:
    """Give the room back."""
    free(space.most)
    free(space.taken)
    space.most = NULL
    space.taken = NULL


cdef inline double _price(
    BurstFacts* plan, int64_t carried, int64_t added, int64_t shared, int64_t queries, const CostFacts* costs
) noexcept nogil:
    """The price of a plan; leaves s_p, s_c and k of its shared part in `plan`."""
    cdef double alone = 0.0
    if shared < queries:
        plan.k = queries - shared
        alone = price_unshared(plan, costs)
    plan.k = shared
    plan.s_p = max(carried, <int64_t> 1) + added
    plan.s_c = added + (carried == 0)
    return price_shared(plan, costs) + alone


cdef inline bint _consider(
    BurstFacts* plan, int64_t carried, int64_t added, int64_t shared, int64_t queries, const CostFacts* costs,
    ChoiceFacts* choice
) noexcept nogil:
    """Keep a plan if it is the cheapest so far."""
    cdef double price
    if shared < 2:
        return False
    price = _price(plan, carried, added, shared, queries, costs)
    if price >= choice.cost:
        return False
    choice.cost = price
    choice.queries = shared
    choice.s_p = plan.s_p
    choice.s_c = plan.s_c
    return True


cdef int64_t _most_added(
    BurstFacts* plan, int64_t carried, int64_t queries, int64_t total, const CostFacts* costs
) noexcept nogil:
    """The largest total of sigma at which a plan can still be the cheapest, -1 where none can.

    A plan saves at most what all k queries would save at its total, and that falls in a straight line.
    """
    cdef double first = _price(plan, carried, 0, queries, queries, costs)
    cdef double slope = _price(plan, carried, 1, queries, queries, costs) - first
    cdef double saved
    plan.k = queries
    saved = price_unshared(plan, costs) - first
    if saved <= 0:
        return -1
    if slope * <double> total < saved:
        return total
    return <int64_t> (saved / slope)


cdef void _scan(
    const CandidateFacts* candidates, int count, int64_t weight, int64_t free_queries, int64_t queries, int64_t limit,
    BurstFacts* plan, int64_t carried, const CostFacts* costs, ChoiceSpace* space, unsigned char* chosen,
    ChoiceFacts* choice
) noexcept nogil:
    """Candidates of one size: the best plan is a prefix in the order of sigma (the paper's Levels 1 and 2)."""
    cdef int64_t sigma, last = 0, last_taken = 0, total = 0, shared = free_queries, number
    cdef int i
    for sigma in range(limit + 1):
        space.most[sigma] = 0
    for i in range(count):
        if 0 < candidates[i].sigma <= limit:
            space.most[candidates[i].sigma] += 1
    _consider(plan, carried, 0, shared, queries, costs, choice)
    for sigma in range(1, limit + 1):
        for number in range(1, space.most[sigma] + 1):
            total += sigma
            if total > limit:
                break
            shared += weight
            if _consider(plan, carried, total, shared, queries, costs, choice):
                last = sigma
                last_taken = number
        if total > limit:
            break
    if choice.queries == 0:
        return
    for i in range(count):
        sigma = candidates[i].sigma
        chosen[i] = sigma < last or sigma == 0 or (sigma == last and last_taken > 0)
        if sigma == last and sigma > 0:
            last_taken -= 1


cdef void _fill(
    const CandidateFacts* candidates, int count, int64_t free_queries, int64_t queries, int64_t limit,
    BurstFacts* plan, int64_t carried, const CostFacts* costs, ChoiceSpace* space, unsigned char* chosen,
    ChoiceFacts* choice
) noexcept nogil:
    """Candidates of any size: most queries for every total of sigma, a knapsack of at most `limit`."""
    cdef int64_t* most = space.most
    cdef unsigned char* taken
    cdef int64_t s, sigma, best = -1
    cdef int i
    for s in range(1, limit + 1):
        most[s] = -1
    most[0] = free_queries
    for i in range(count):
        sigma = candidates[i].sigma
        taken = space.taken + i * space.totals
        for s in range(limit + 1):
            taken[s] = 0
        if not 0 < sigma <= limit:
            continue
        for s in range(limit, sigma - 1, -1):
            if most[s - sigma] >= 0 and most[s - sigma] + candidates[i].queries > most[s]:
                most[s] = most[s - sigma] + candidates[i].queries
                taken[s] = 1
    for s in range(limit + 1):
        if _consider(plan, carried, s, most[s], queries, costs, choice):
            best = s
    if best < 0:
        return
    for i in range(count - 1, -1, -1):
        chosen[i] = candidates[i].sigma == 0 or space.taken[i * space.totals + best]
        if chosen[i]:
            best -= candidates[i].sigma


cdef void choose_shared(
    const CandidateFacts* candidates,
    int count,
    const BurstFacts* burst,
    int64_t carried,
    const CostFacts* costs,
    ChoiceSpace* space,
    unsigned char* chosen,
    ChoiceFacts* choice,
) noexcept nogil:
    """The cheapest plan for a burst; among equals the unshared one, then the one with fewest snapshots.

    Parameters are described in ``choose.pxd``. Totals of sigma from `space.totals` on are not looked at; count must
    not pass `space.candidates`.
    """
    cdef BurstFacts plan = burst[0]
    cdef int64_t queries = 0, free_queries = 0, total = 0, weight = 0, limit
    cdef bint equal = True
    cdef int i
    for i in range(count):
        chosen[i] = 0
        queries += candidates[i].queries
        if candidates[i].sigma == 0:
            free_queries += candidates[i].queries
        else:
            equal = equal and (weight == 0 or weight == candidates[i].queries)
            weight = candidates[i].queries
            total += candidates[i].sigma
    plan.k = queries
    choice.unshared = choice.cost = price_unshared(&plan, costs)
    choice.queries = choice.s_p = choice.s_c = 0
    if total == 0:  # most often: one plan but the unshared one
        if _consider(&plan, carried, 0, queries, queries, costs, choice):
            for i in range(count):
                chosen[i] = 1
        return
    limit = min(_most_added(&plan, carried, queries, total, costs), space.totals - 1)
    if limit < 0 or queries < 2:
        return
    if equal:
        _scan(candidates, count, weight, free_queries, queries, limit, &plan, carried, costs, space, chosen, choice)
    else:
        _fill(candidates, count, free_queries, queries, limit, &plan, carried, costs, space, chosen, choice)


@dataclass(frozen=True)
class Candidate:
    """Queries that a plan takes together; see ``choose.pyi``."""

    queries: int
    sigma: int


@dataclass(frozen=True)
class Choice:
    """The cheapest plan; see ``choose.pyi``."""

    shared: tuple
    queries: int
    s_p: int
    s_c: int
    cost: float
    unshared: float


def choose(candidates, burst, carried=0, costs=PAPER):
    """Which candidates share a burst; see ``choose.pyi``."""
    if any(each.queries < 1 or each.sigma < 0 for each in candidates) or carried < 0:
        raise ValueError("a candidate has at least one query, and no count of snapshots is negative")
    cdef int count = len(candidates), i
    cdef int64_t totals = 1 + sum([each.sigma for each in candidates])
    cdef int64_t carries = carried
    cdef BurstFacts facts = facts_of_burst(burst)
    cdef CostFacts prices = facts_of_costs(costs)
    cdef ChoiceSpace space
    cdef ChoiceFacts choice
    cdef CandidateFacts* table = <CandidateFacts*> calloc(count + 1, sizeof(CandidateFacts))
    cdef unsigned char* chosen = <unsigned char*> calloc(count + 1, 1)
    cdef bint made = make_choice_space(&space, count, totals)
    try:
        if table == NULL or chosen == NULL or not made:
            raise MemoryError
        for i in range(count):
            table[i].queries = candidates[i].queries
            table[i].sigma = candidates[i].sigma
        with nogil:
            choose_shared(table, count, &facts, carries, &prices, &space, chosen, &choice)
        shared = tuple([chosen[i] == 1 for i in range(count)])
        return Choice(shared, choice.queries, choice.s_p, choice.s_c, choice.cost, choice.unshared)
    finally:
        free(table)
        free(chosen)
        if made:
            free_choice_space(&space)
