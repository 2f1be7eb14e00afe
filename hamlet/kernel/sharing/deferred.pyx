"""Bursts that wait: a query takes in the bursts of a pane together, and not one after the other.

Whether a burst extends a trend of a query can be told without its numbers: what reads something that holds trends makes
trends. So a burst is only noted for the query, and bursts that follow each other for it, cut because of others' events,
are one: m events and then n make 2^m * 2^n. What waits is of the key under way, and the state takes it in before
anything but a burst looks at it: at a border of a pane, at an event that the query takes on its own, and at the end of
the slice. Which queries, and how they take in what waits: `burst_runs`.

Source: HAMLET (SIGMOD'21) §3.2, Defs. 3.6-3.11.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from hamlet.kernel.cells cimport has_trends
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.sharing.burst_runs cimport apply_steps, find_chain, starts_in
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport (
    DEFERRED_BURSTS,
    GIVES_FLAG,
    GIVES_TOTAL,
    MOST_NUMBERS,
    MOST_PENDING,
    Chain,
    Core,
    Form,
    Contribution,
    Member,
    SCALAR,
    Pending,
    Step,
    may_use,
)
from hamlet.kernel.state.query_state cimport State, cell_of, cohort_at

cdef extern from *:
    """
    #define HAMLET_MOST_TOTAL ((int64_t)1 << 57)
    """
    const int64_t MOST_TOTAL "HAMLET_MOST_TOTAL"  # of a burst's values: those of all that wait fit 64 bits


cdef void make_pending(Core* k) except *:
    """Make room for bursts that wait; the tables of the queries are loaded."""
    cdef int i
    k.pending = <Pending*> calloc(k.queries + 1, sizeof(Pending))
    k.chain = <Chain*> calloc(k.queries + 1, sizeof(Chain))
    k.begun = <int*> calloc(k.queries + 1, sizeof(int))
    if k.pending == NULL or k.chain == NULL or k.begun == NULL:
        raise MemoryError
    for i in range(k.queries if may_use(k, DEFERRED_BURSTS) else 0):
        if k.operator_of[i] == SCALAR:  # stores do not wait, and what is packed is quick
            find_chain(&k.query[i], &k.chain[i])


cdef void free_pending(Core* k) noexcept:
    cdef int i
    if k.chain != NULL:
        for i in range(k.queries):
            free(k.chain[i].form)
    free(k.chain)
    free(k.pending)
    free(k.begun)


cdef void begin_pending(Core* k, int query, State* s) noexcept nogil:
    """Look at what is alive in a state with open windows."""
    cdef const Query* q = &k.query[query]
    cdef Pending* p = &k.pending[query]
    cdef uint64_t live = 0, bit
    cdef int64_t number
    cdef int i, cohort = cohort_at(s, s.first)
    for number in range(s.first, s.last + 1):
        live |= starts_in(q, &k.chain[query], s, number)
        if s.bits:
            for i in range(q.cells):
                bit = <uint64_t> 1 << i
                if not live & bit and has_trends(q, s.width, cell_of(q, s, cohort, i)):
                    live |= bit
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    p.live = live
    p.border = s.border
    p.state = s
    p.steps = 0
    p.form = NULL
    if not p.listed:
        p.listed = True
        k.begun[k.begins] = query
        k.begins += 1


cdef int put_off(
    Core* k, int64_t key, const Member* member, int64_t events, const Tally* tally, bint* waits
) noexcept nogil:
    """Note a burst that extends a trend of a query. Returns a Failure.

    Where its values are too large to wait, `waits` is False: the state has taken in what was before, not the burst.
    """
    cdef const Form* form = member.form
    cdef Pending* p = &k.pending[member.query]
    cdef const Contribution* contribution
    cdef Step* step
    cdef int64_t value[2 * MOST_NUMBERS]
    cdef int i
    cdef bint joins
    waits[0] = False
    if p.state == NULL:
        begin_pending(k, member.query, k.state[key * k.queries + member.query])
    joins = p.form == form
    for i in range(form.contributions):
        contribution = &form.contribution[i]
        value[i] = events if contribution.column < 0 else tally[contribution.column].present
        if contribution.what == GIVES_TOTAL:
            if not -MOST_TOTAL < tally[contribution.column].total < MOST_TOTAL:
                return settle_pending(k, member.query)
            value[i] = <int64_t> tally[contribution.column].total
            if joins and not -MOST_TOTAL < p.step[p.steps - 1].value[contribution.number] + value[i] < MOST_TOTAL:
                joins = False
    if p.steps + (not joins) > MOST_PENDING and take_in(k, member.query):
        return OUT_OF_MEMORY
    waits[0] = True
    k.applied += 1
    k.reached[DEFERRED_BURSTS] += 1
    p.steps += not joins
    p.form = form
    p.live |= form.writes
    step = &p.step[p.steps - 1]
    step.form = form
    step.events = (step.events if joins else 0) + events  # no branches: whether it joins is by chance
    step.flags = step.flags if joins else 0
    for i in range(1, MOST_NUMBERS):
        step.value[i] = step.value[i] if joins else 0
    for i in range(form.contributions):
        contribution = &form.contribution[i]
        if contribution.what == GIVES_FLAG:
            step.flags |= <uint64_t> (value[i] != 0) << contribution.number
        else:
            step.value[contribution.number] += value[i]
    return NO_FAILURE


cdef int settle_all(Core* k) noexcept nogil:
    """Let the states of the key under way take in what waits. Returns a Failure."""
    cdef int i
    for i in range(k.begins):
        k.pending[k.begun[i]].listed = False
        if settle_pending(k, k.begun[i]):
            return OUT_OF_MEMORY
    k.begins = 0
    return NO_FAILURE


cdef int settle_pending(Core* k, int query) noexcept nogil:
    """Let a state take in what waits for it, and know nothing of it any more. Returns a Failure."""
    cdef int failure = take_in(k, query)
    k.pending[query].state = NULL
    return failure


cdef int take_in(Core* k, int query) noexcept nogil:
    cdef int failure = apply_steps(k, query) if k.pending[query].steps else NO_FAILURE
    k.pending[query].steps = 0
    k.pending[query].form = NULL
    return failure
