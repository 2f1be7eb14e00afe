"""To share, or not to share: which queries share a burst, decided when its events are known.

A burst's live members are grouped into candidates: queries whose local predicates accept the same classes of its
events. The candidate with most queries is the reference. Others add sigma snapshots: under the model `paper` one per
event on which they differ from it, under `measured` one per class of events that they accept, since that is what closed
forms have to add up (``optimizer/benefit.pyx``). The model reads how many live members of a *member class* there are
(members that it does not tell apart), so that a decision does not look at each of them. The optimizer chooses.

A graphlet goes on over several bursts while no event ends it: where the longest burst is full, and over the border of
two batches. `DecisionHistory` remembers what the last burst decided; a set that has become smaller is a split, a larger
one a merge (Fig. 6).

Source: HAMLET (SIGMOD'21) §4.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free

from hamlet.kernel.cells cimport lowest_window
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.sharing.members cimport list_live
from hamlet.kernel.state.core cimport (
    ALONE,
    MERGED,
    NEVER,
    RANDOM,
    SHARED,
    SPLIT,
    STATIC,
    Core,
    Graphlet,
    MemberClass,
    Member,
    DecisionHistory,
    Record,
    Trace,
    enlarged,
    mixed,
    ones,
)
from optimizer.benefit cimport BurstFacts, CostFacts, price_shared, price_unshared
from optimizer.choose cimport (
    CandidateFacts,
    ChoiceFacts,
    choose_shared,
    free_choice_space,
    make_choice_space,
)

cdef extern from *:
    """
    #include <time.h>
    #include <stdint.h>
    static inline int64_t hamlet_now(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    }
    """
    int64_t now "hamlet_now"() noexcept nogil

cdef enum:
    MOST_CANDIDATES = 64  # as many as a graphlet has roles

cdef struct Burst:       # what the model is told
    BurstFacts facts
    CostFacts costs
    int candidates
    CandidateFacts candidate[MOST_CANDIDATES]
    uint64_t roles[MOST_CANDIDATES]
    int64_t carried


cdef bint prepare_decisions(Core* k) noexcept:
    """Make room for the choice among all roles; False where memory is short."""
    return make_choice_space(&k.space, MOST_CANDIDATES, k.queries + 1)


cdef void free_decisions(Core* k) noexcept:
    free_choice_space(&k.space)
    free(k.past)
    free(k.trace.record)
    free(k.trace.number)


cdef uint64_t decide(Core* k, Graphlet* g) noexcept nogil:
    """Bits of the roles whose queries share the burst; its live members and role_events are known."""
    cdef uint64_t shared
    cdef int64_t begun
    k.decisions += 1
    if k.policy == NEVER or (g.lives < 2 and k.policy != STATIC):
        return 0
    if k.policy == STATIC:
        return g.every
    if k.policy == RANDOM:
        k.chance = mixed(k.chance + 1)
        return g.every & k.chance
    begun = now()
    shared = choose_roles(k, g)
    k.decided += 1
    k.decision_ns += now() - begun
    return shared


cdef uint64_t choose_roles(Core* k, Graphlet* g) noexcept nogil:
    """Ask the optimizer."""
    cdef Burst burst
    cdef double price, again
    cdef uint64_t shared, anew
    describe(k, g, &burst)
    shared = choose_candidates(k, &burst, &price)
    if burst.carried:  # or a merge: a new graphlet, which carries one snapshot
        burst.carried = 0
        burst.facts.g = burst.facts.b
        anew = choose_candidates(k, &burst, &again)
        if again < price:
            return anew
    return shared


cdef uint64_t choose_candidates(Core* k, const Burst* burst, double* price) noexcept nogil:
    cdef ChoiceFacts choice
    cdef unsigned char chosen[MOST_CANDIDATES]
    cdef uint64_t shared = 0
    cdef int i
    choose_shared(
        burst.candidate, burst.candidates, &burst.facts, burst.carried, &burst.costs, &k.space, chosen, &choice
    )
    for i in range(burst.candidates):
        if chosen[i]:
            shared |= burst.roles[i]
    price[0] = choice.cost
    return shared


cdef void describe(Core* k, Graphlet* g, Burst* burst) noexcept nogil:
    """The candidates among the live members, and the counts that a model reads."""
    cdef const MemberClass* member_class
    cdef int i, j, reference = 0
    cdef int64_t values = 0  # that the queries would read, each on its own
    cdef uint64_t wanted = 0
    burst.candidates = 0
    burst.facts.t = 1
    for i in range(g.member_classes):
        if k.member_class_lives[i] == 0:
            continue
        member_class = &g.member_class[i]
        wanted |= member_class.columns
        values += ones(member_class.columns) * k.role_events[member_class.role] * k.member_class_lives[i]
        burst.facts.t = max(burst.facts.t, <int64_t> member_class.types)
        for j in range(burst.candidates):
            if k.role_kinds[member_class.role] == k.role_kinds[burst.candidate[j].sigma]:
                break
        else:
            j = burst.candidates
            burst.candidates += 1
            burst.roles[j] = 0
            burst.candidate[j].queries = 0
            burst.candidate[j].sigma = member_class.role  # one of its roles, until sigma is known
        burst.roles[j] |= <uint64_t> 1 << member_class.role
        burst.candidate[j].queries += k.member_class_lives[i]
        if burst.candidate[j].queries > burst.candidate[reference].queries:
            reference = j
    for j in range(burst.candidates):
        if j != reference:
            burst.candidate[j].sigma = sigma_of(
                k, g, <int> burst.candidate[j].sigma, <int> burst.candidate[reference].sigma
            )
    burst.candidate[reference].sigma = 0
    burst.facts.b = g.events
    burst.facts.n, burst.facts.g, burst.carried = g.events, g.events, 0
    if k.past != NULL:
        recall(k, g, burst)
    burst.costs = k.costs
    if not k.paper:  # prices are of one column; where only trends are counted, nothing is read
        burst.costs.coefficient *= ones(wanted)
        burst.costs.join *= ones(wanted)
        burst.costs.event *= <double> values / (<double> g.lives * <double> g.events)


cdef int64_t sigma_of(Core* k, const Graphlet* g, int role, int reference) noexcept nogil:
    """The snapshots that the queries of a role add beside those of the reference."""
    cdef int64_t found = 0
    cdef int i
    cdef uint64_t roles
    for i in range(g.kinds):
        roles = k.class_roles[g.kind[i]]
        if not k.paper:
            found += roles >> role & 1
        elif (roles >> role ^ roles >> reference) & 1:
            found += g.of_kind[g.kind[i]]
    return found


# ------------------------------------------------------------------------------------------------ the live graphlet

cdef bint goes_on(const DecisionHistory* past, const Core* k, const Graphlet* g) noexcept nogil:
    """Whether the burst belongs to the graphlet of the key's last one."""
    return past.type == g - k.graphlet + 1 and g.time < past.border


cdef void recall(const Core* k, const Graphlet* g, Burst* burst) noexcept nogil:
    """What the graphlet and the window have seen so far."""
    cdef const DecisionHistory* past = &k.past[g.key]
    if g.time < past.window:
        burst.facts.n += past.n
    if goes_on(past, k, g) and past.carried:
        burst.facts.g += past.g
        burst.carried = past.carried


cdef void count_event(Core* k, int64_t key, int kind) noexcept nogil:
    """An event that joins no burst: it ends the graphlets of queries that it touches."""
    cdef DecisionHistory* past = &k.past[key]
    past.n += 1
    if past.type and k.class_ends[kind] >> (past.type - 1) & 1:
        past.type = 0


cdef void note_single(Core* k, const Graphlet* g) noexcept nogil:
    """Note for the decisions to come an event that a graphlet has on its own."""
    turn_window(k, g)
    count_event(k, g.key, g.kind[0])


cdef void turn_window(Core* k, const Graphlet* g) noexcept nogil:
    """Forget what came before the windows of a burst."""
    cdef DecisionHistory* past = &k.past[g.key]
    cdef const Query* q = &k.query[g.member[0].query]
    if g.time >= past.window:
        past.window = lowest_window(g.time, q.within, q.slide) * q.slide + q.within
        past.n -= past.n * min(q.slide, q.within) // q.within  # the first window's events are gone


cdef int note_burst(Core* k, Graphlet* g, uint64_t shared) noexcept nogil:
    """Remember and trace a burst and what was decided for it. Returns a Failure."""
    cdef DecisionHistory* past = &k.past[g.key]
    cdef Burst burst
    cdef uint64_t every = g.every
    cdef int decision
    cdef bint told = k.trace.on or k.paper
    decision = SHARED if shared else ALONE
    if goes_on(past, k, g):
        if past.shared & every & ~shared:
            decision = SPLIT
        elif past.alone & shared:
            decision = MERGED
    k.splits += decision == SPLIT
    k.merges += decision == MERGED
    if told:
        describe(k, g, &burst)
        price_decision(&burst, g, shared, decision)
        if k.trace.on and record_burst(k, g, shared, &burst, decision):
            return OUT_OF_MEMORY
        past.carried = <int> burst.facts.s_p if shared else 0
        past.g = burst.facts.g
    if not goes_on(past, k, g):
        past.shared = past.alone = 0
    past.shared = (past.shared | shared) & ~(every & ~shared)
    past.alone = (past.alone | every) & ~past.shared
    turn_window(k, g)
    past.n += g.events
    past.type = <int> (g - k.graphlet) + 1
    past.border = g.border
    return NO_FAILURE


cdef void price_decision(Burst* burst, const Graphlet* g, uint64_t shared, int decision) noexcept nogil:
    """The counts of what was decided, in place of those of the question."""
    cdef int i
    if decision == MERGED:
        burst.carried = 0
        burst.facts.g = burst.facts.b
    burst.facts.k = g.lives
    burst.facts.s_c = burst.carried == 0
    burst.facts.s_p = max(burst.carried, <int64_t> 1)
    for i in range(burst.candidates):
        if burst.roles[i] & shared:
            burst.facts.s_c += burst.candidate[i].sigma
            burst.facts.s_p += burst.candidate[i].sigma


cdef int record_burst(Core* k, Graphlet* g, uint64_t shared, const Burst* burst, int decision) noexcept nogil:
    cdef Trace* trace = &k.trace
    cdef Record* record
    cdef const Member* member
    cdef BurstFacts facts = burst.facts
    cdef Py_ssize_t capacity
    cdef void* moved
    cdef int i
    if trace.count == trace.capacity:
        capacity = 2 * trace.capacity + 256
        moved = enlarged(k, trace.record, trace.capacity, capacity, sizeof(Record))
        if moved == NULL:
            return OUT_OF_MEMORY
        trace.record = <Record*> moved
        trace.capacity = capacity
    if trace.numbers + g.lives > trace.numbers_capacity:
        capacity = 2 * trace.numbers_capacity + g.lives + 256
        moved = enlarged(k, trace.number, trace.numbers_capacity, capacity, sizeof(int32_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        trace.number = <int32_t*> moved
        trace.numbers_capacity = capacity
    list_live(k, g)
    record = &trace.record[trace.count]
    trace.count += 1
    record.pane, record.key, record.type = g.pane, g.key, g - k.graphlet
    record.b, record.n, record.g, record.k = facts.b, facts.n, facts.g, facts.k
    record.s_c, record.s_p, record.decision = facts.s_c, facts.s_p, decision
    record.shared_cost = price_shared(&facts, &burst.costs)
    record.non_shared_cost = price_unshared(&facts, &burst.costs)
    record.queries = 0
    for i in range(g.lives):
        member = &g.member[g.live[i]]
        if shared >> member.role & 1:
            trace.number[trace.numbers] = member.query
            trace.numbers += 1
            record.queries += 1
    return NO_FAILURE
