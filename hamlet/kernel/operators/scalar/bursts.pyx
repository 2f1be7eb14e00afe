"""Bursts of one query by itself: whether it has a trend that one extends, and what the burst makes of its snapshot.

Most bursts wait, and are taken in together (`hamlet.kernel.sharing.deferred`).

Source: HAMLET (SIGMOD'21) Defs. 3.9-3.11.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport add_arriving, bit_length, has_trends, limbs_bits, words_of
from hamlet.kernel.operators.scalar.step cimport read_source
from hamlet.kernel.operators.scalar.windows cimport open_state, turn_pane
from hamlet.kernel.plan cimport FROM_CELL, NO_FAILURE, OUT_OF_MEMORY, Arrival, Query, Source
from hamlet.kernel.sharing.deferred cimport begin_pending, put_off
from hamlet.kernel.state.burst cimport Tally, apply_burst, apply_limbs
from hamlet.kernel.state.core cimport EVENT_STORE, SCALAR, Core, Graphlet, Member, Pending, Work
from hamlet.kernel.state.operator cimport Run, Segment, in_block
from hamlet.kernel.state.query_state cimport State, cell_of, cohort_at, start_alive, widen
from hamlet.kernel.state.scratch cimport reserve_scratch


cdef int find_members(Core* k, int _, Graphlet* g, int first, int end) noexcept nogil:
    """Put the members with trends that a burst extends on their list. Returns a Failure."""
    cdef const Member* member
    cdef int place, failure
    cdef bint found
    for place in range(first, end):
        member = &g.member[place]
        if k.role_events[member.role] == 0 or in_block(k, g, member):
            continue
        failure = look_at(k, g, member, &found)
        if failure:
            return failure
        if found:
            list_member(k, g, place)
    return NO_FAILURE


cdef inline int look_at(Core* k, const Graphlet* g, const Member* member, bint* found) noexcept nogil:
    """Whether a member has trends that a burst extends. Returns a Failure."""
    cdef Pending* p = &k.pending[member.query]
    cdef State* s
    cdef int failure
    found[0] = False
    if p.state == NULL or g.time >= p.border or member.form == NULL:
        s = k.state[g.key * k.queries + member.query]
        if s == NULL:
            if not member.starts:
                return NO_FAILURE  # nothing is there to extend
            failure = open_state(k, member.query, g.key, g.time, &s)
            if failure or s == NULL:
                return failure
        if g.time >= s.border:
            failure = turn_pane(k, member.query, s, g.key, g.time)
            if failure:
                return failure
        if s.last < s.first:
            return NO_FAILURE
        if member.form == NULL:
            found[0] = extends(&k.query[member.query], s, member.arrival)
            return NO_FAILURE
        begin_pending(k, member.query, s)
    found[0] = (p.live & member.form.reads) != 0
    return NO_FAILURE


cdef void list_member(Core* k, Graphlet* g, int place) noexcept nogil:
    """Count a member, which is in no block, among those with trends that a burst extends."""
    cdef const Member* member = &g.member[place]
    g.live[g.lone] = place
    g.lone += 1
    g.lives += 1
    g.every |= <uint64_t> 1 << member.role
    k.role_lives[member.role] += 1
    k.member_class_lives[member.member_class] += 1


cdef bint extends(const Query* q, const State* s, int arrival) noexcept nogil:
    """Whether an event would extend a trend, the empty one included, in some cohort."""
    cdef const Arrival* a = &q.arrival[arrival]
    cdef const Source* source
    cdef int64_t number
    cdef int i, cohort
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        cohort = cohort_at(s, s.first)
        for number in range(s.first, s.last + 1):
            if source.kind == FROM_CELL:
                if has_trends(q, s.width, cell_of(q, s, cohort, source.place)):
                    return True
            elif start_alive(q, s, source.guards, number):
                return True
            cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    return False


cdef int take_burst(Core* k, const Segment* segment) noexcept nogil:
    """Let queries by themselves take a burst that extends trends of them, at once or later. Returns a Failure."""
    cdef const Member* member
    cdef const Run* run = segment.run
    cdef Work* work
    cdef bint waits
    cdef int i, failure = NO_FAILURE
    for i in range(segment.members):
        member = &segment.graphlet.member[segment.member[i]]
        work = &k.work[EVENT_STORE if k.query[member.query].stores else SCALAR]
        work.events += run.events
        work.bursts += 1
        waits = False
        if member.form != NULL:
            failure = put_off(k, segment.key, member, run.events, run.tally, &waits)
        if failure == NO_FAILURE and not waits:
            failure = serve(k, segment.key, member, run)
        if failure:
            return failure
    return NO_FAILURE


cdef int serve(Core* k, int64_t key, const Member* member, const Run* run) noexcept nogil:
    """Take a query's snapshot and add what the burst makes of it. Returns a Failure."""
    cdef const Query* q = &k.query[member.query]
    cdef const Arrival* a = &q.arrival[member.arrival]
    cdef State* s = k.state[key * k.queries + member.query]
    cdef const Tally* tally = run.tally
    cdef int64_t events = run.events, bits, number
    cdef int cohort, i, words, failure
    cdef Py_ssize_t block
    cdef uint64_t* snapshot
    cdef uint64_t* sum
    cdef uint64_t* cell
    k.applied += 1
    bits = max(s.bits, 1) + bit_length(q.most_sources) + (events if member.loop else bit_length(events)) + 1
    if q.exact and bits > 64 * s.width - 3 and widen(q, s, bits):
        return OUT_OF_MEMORY
    if reserve_scratch(k, q, s):
        return OUT_OF_MEMORY
    cohort = cohort_at(s, s.first)
    if q.exact and q.scaled == 0 and not q.beginnings:
        for number in range(s.first, s.last + 1):
            apply_limbs(q, s, a, member.loop, events, tally, bits, number, cohort, k.scratch)
            cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
        return NO_FAILURE
    words = words_of(q, s.width)
    block = <Py_ssize_t> s.cohorts * words
    snapshot = k.scratch
    sum = k.scratch + block
    memset(snapshot, 0, block * sizeof(uint64_t))
    for i in range(a.sources, a.sources_end):
        failure = read_source(k, member.query, s, a, &q.source[i], snapshot, 0)
        if failure:
            return failure
    for _ in range(s.first, s.last + 1):
        if has_trends(q, s.width, snapshot + cohort * words):
            apply_burst(
                q, a, s.width, member.loop, events, tally,
                snapshot + cohort * words, sum, sum + words,
            )
            for i in range(a.cells, a.cells_end):
                cell = cell_of(q, s, cohort, q.member[i])
                add_arriving(q, a, s.width, cell, sum)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell, s.width))
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    return NO_FAILURE
