"""Bursts and graphlets: events of one type that queries bind to one Kleene sub-pattern take effect together.

**Bursts.** A graphlet collects the events of one type and key that its members (queries) bind to one state without
looking back. Its burst ends before any event that touches a member otherwise, at the border of a member's pane, and at
the end of the slice; so a member's inflow does not change within it.

Source: HAMLET (SIGMOD'21) Defs. 3.5-3.11, Algorithm 1.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from hamlet._burst cimport Tally, apply_burst, clear_tallies, join_tallies, tally_event
from hamlet._cells cimport add_cell, bit_length, floor_divide, has_trends, lane_of, limbs_bits, words_of
from hamlet._kernel cimport BANNED, MEMBER, MOST_GRAPHLETS, Core, Graphlet, Member
from hamlet._state cimport State, cell_of, widen
from hamlet._step cimport read_source
from hamlet._tables cimport FROM_CELL, FROM_STORE, NO_FAILURE, OUT_OF_MEMORY, Arrival, Entry, Query
from hamlet._windows cimport open_state, reserve_scratch, turn_pane

cdef enum:
    LONGEST_BURST = 4096


cdef void join_graphlet(Core* k, int kind, int type) except *:
    """Let the queries that bind a class of events to one Kleene sub-pattern share its graphlet."""
    cdef Graphlet* g = &k.graphlet[type % MOST_GRAPHLETS]
    cdef Entry* entry
    cdef int i, member, role
    k.class_graphlet = <int*> grown(k.class_graphlet, (kind + 1) * sizeof(int))
    k.class_roles = <uint64_t*> grown(k.class_roles, (kind + 1) * sizeof(uint64_t))
    k.class_ends = <uint64_t*> grown(k.class_ends, (kind + 1) * sizeof(uint64_t))
    k.class_graphlet[kind] = -1
    k.class_roles[kind] = 0
    if type < MOST_GRAPHLETS:
        if g.standing == NULL:
            g.standing = <uint8_t*> calloc(k.queries + 1, 1)
            if g.standing == NULL:
                raise MemoryError
        for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
            entry = &k.entry[i]
            member = member_of(k, g, entry)
            if member < 0:
                ban(k, g, entry.query)
                continue
            role = g.member[member].role
            entry.joins = True
            k.class_graphlet[kind] = type
            k.class_roles[kind] |= <uint64_t> 1 << role
    for i in range(MOST_GRAPHLETS):  # a burst is under way in none of them
        k.graphlet[i].kind = <int*> grown(k.graphlet[i].kind, (kind + 1) * sizeof(int))
        k.graphlet[i].of_kind = <int64_t*> grown(k.graphlet[i].of_kind, (kind + 1) * sizeof(int64_t))
        k.graphlet[i].of_kind[kind] = 0
        k.graphlet[i].tally = <Tally*> grown(
            k.graphlet[i].tally, ((kind + 1) * k.event_columns + 1) * sizeof(Tally)
        )
    for i in range(k.classes):
        k.class_ends[i] = ended_by(k, i)


cdef void ban(Core* k, Graphlet* g, int query) noexcept:
    """Process a query event by event for the type of a graphlet."""
    cdef int i, member
    g.standing[query] = BANNED
    for i in range(k.entries):
        if k.entry[i].query == query and k.entry[i].joins and k.entry[i].type == g - k.graphlet:
            k.entry[i].joins = False
    for member in range(g.members):
        if g.member[member].query == query:
            g.members -= 1
            g.member[member] = g.member[g.members]
            break


cdef int member_of(Core* k, Graphlet* g, const Entry* entry) except -2:
    """The place of an entry's query among the members, a new one where it may become one, else -1."""
    cdef const Query* q = &k.query[entry.query]
    cdef const Arrival* a
    cdef int arrival, i, j, role
    cdef bint loop = False
    if g.standing[entry.query] == BANNED:
        return -1
    if entry.arrivals_end != entry.arrivals + 1 or entry.guards_end != entry.guards:
        return -1
    arrival = k.class_member[entry.arrivals]
    a = &q.arrival[arrival]
    if a.stores != a.stores_end:
        return -1  # later events look back at single ones
    for i in range(a.sources, a.sources_end):
        if q.source[i].kind == FROM_STORE:
            return -1
        for j in range(a.cells, a.cells_end):
            loop = loop or (q.source[i].kind == FROM_CELL and q.source[i].place == q.member[j])
    for i in range(g.members):
        if g.member[i].query == entry.query:
            same = g.member[i].arrival == arrival and g.role[g.member[i].role] == entry.role
            return i if same else -1
    role = 0
    while role < g.roles and g.role[role] != entry.role:
        role += 1
    if role == 64:
        return -1
    if role == g.roles:
        g.role = <int*> grown(g.role, (g.roles + 1) * sizeof(int))
        g.role[role] = entry.role
        g.roles += 1
    if g.rows == NULL and not k.sharing:
        g.rows = <int64_t*> grown(NULL, LONGEST_BURST * sizeof(int64_t))
    g.member = <Member*> grown(g.member, (g.members + 1) * sizeof(Member))
    g.member[g.members].query = entry.query
    g.member[g.members].arrival = arrival
    g.member[g.members].role = role
    g.member[g.members].loop = loop
    g.members += 1
    g.standing[entry.query] = MEMBER
    return g.members - 1


cdef uint64_t ended_by(Core* k, int kind) noexcept:
    """The graphlets with a member that a class of events touches otherwise than by joining."""
    cdef uint64_t ends = 0
    cdef const Entry* entry
    cdef int i, j
    for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
        entry = &k.entry[i]
        for j in range(MOST_GRAPHLETS):
            if k.graphlet[j].members and k.graphlet[j].standing[entry.query] == MEMBER:
                if not (entry.joins and j == k.class_graphlet[kind]):
                    ends |= <uint64_t> 1 << j
    return ends


cdef int join_burst(Core* k, Graphlet* g, int kind, int64_t key, int64_t time, int64_t row) noexcept nogil:
    """Add an event to the burst of a graphlet; begin one where none is under way."""
    cdef int failure, i
    cdef const Query* q
    if g.active and (time >= g.border or g.events == LONGEST_BURST):
        failure = end_burst(k, g)
        if failure:
            return failure
    if not g.active:
        g.active = True
        k.active |= <uint64_t> 1 << (g - k.graphlet)
        g.key = key
        g.time = time
        g.events = 0
        g.kinds = 0
        g.border = INT64_MAX
        for i in range(g.members):
            q = &k.query[g.member[i].query]
            g.border = min(
                g.border,
                (floor_divide(time, q.slide) + 1) * q.slide,
                (floor_divide(time - q.within, q.slide) + 1) * q.slide + q.within,
            )
    if g.of_kind[kind] == 0:
        g.kind[g.kinds] = kind
        g.kinds += 1
        clear_tallies(&g.tally[kind * k.event_columns], k.event_columns)
    g.of_kind[kind] += 1
    if k.sharing:
        tally_event(
            &g.tally[kind * k.event_columns], k.event_columns, k.floating, k.columns, row
        )
    else:
        g.rows[g.events] = row
    g.events += 1
    return NO_FAILURE


cdef int end_bursts(Core* k, uint64_t graphlets) noexcept nogil:
    cdef int i, failure
    for i in range(MOST_GRAPHLETS):
        if graphlets >> i & 1:
            failure = end_burst(k, &k.graphlet[i])
            if failure:
                return failure
    return NO_FAILURE


cdef int end_burst(Core* k, Graphlet* g) noexcept nogil:
    """Apply a burst's coefficients to every query that accepted events of it."""
    cdef int i, role, served = 0, failure
    cdef Member* member
    g.active = False
    k.active &= ~(<uint64_t> 1 << (g - k.graphlet))
    k.bursts += 1
    for role in range(g.roles):
        k.role_events[role] = -1  # not computed yet
    for i in range(g.members):
        member = &g.member[i]
        if not k.sharing or k.role_events[member.role] < 0:
            compute_coefficients(k, g, member.role)
        if k.role_events[member.role]:
            failure = serve(k, g, member, &served)
            if failure:
                return failure
    for i in range(g.kinds):
        g.of_kind[g.kind[i]] = 0
    k.graphlets += served > 0
    k.shared_graphlets += k.sharing and served > 1
    return NO_FAILURE


cdef void compute_coefficients(Core* k, Graphlet* g, int role) noexcept nogil:
    """The coefficients of the burst's events that a role accepts: of all queries at once, or of one."""
    cdef Tally* tally = &k.role_tally[role * k.event_columns]
    cdef int i, kind
    cdef int64_t events = 0, row
    clear_tallies(tally, k.event_columns)
    for i in range(g.kinds):
        kind = g.kind[i]
        if k.class_roles[kind] >> role & 1:
            events += g.of_kind[kind]
            if k.sharing:
                join_tallies(
                    tally, &g.tally[kind * k.event_columns], k.event_columns, k.floating
                )
    if not k.sharing and events:
        for row in g.rows[:g.events]:
            if k.class_roles[k.class_of[row]] >> role & 1:
                tally_event(tally, k.event_columns, k.floating, k.columns, row)
    k.role_events[role] = events
    k.coefficients += events > 0


cdef int serve(Core* k, Graphlet* g, const Member* member, int* served) noexcept nogil:
    """Take a query's snapshot and add what the burst makes of it."""
    cdef const Query* q = &k.query[member.query]
    cdef const Arrival* a = &q.arrival[member.arrival]
    cdef State* s = k.state[g.key * k.queries + member.query]
    cdef int64_t events = k.role_events[member.role], bits
    cdef int lane, i, words, failure
    cdef Py_ssize_t block
    cdef uint64_t* snapshot
    cdef uint64_t* sum
    cdef uint64_t* cell
    cdef bint any = False
    if s == NULL:
        failure = open_state(k, member.query, g.key, g.time, &s)
        if failure or s == NULL:
            return failure
    if g.time >= s.border:
        failure = turn_pane(k, member.query, s, g.key, g.time)
        if failure:
            return failure
    if s.last < s.first:
        return NO_FAILURE
    bits = max(s.bits, 1) + bit_length(q.most_sources) + (events if member.loop else bit_length(events)) + 1
    if q.exact and bits > 64 * s.width - 3 and widen(q, s, bits):
        return OUT_OF_MEMORY
    if reserve_scratch(k, q, s):
        return OUT_OF_MEMORY
    words = words_of(q, s.width)
    block = <Py_ssize_t> q.lanes * words
    snapshot = k.scratch
    sum = k.scratch + block
    memset(snapshot, 0, block * sizeof(uint64_t))
    for i in range(a.sources, a.sources_end):
        failure = read_source(k, member.query, s, &q.source[i], snapshot, 0)
        if failure:
            return failure
    lane = lane_of(q, s.first)
    for _ in range(s.first, s.last + 1):
        if has_trends(q, s.width, snapshot + lane * words):
            any = True
            apply_burst(
                q, s.width, a.variable, member.loop, events,
                &k.role_tally[member.role * k.event_columns],
                snapshot + lane * words, sum, sum + words,
            )
            for i in range(a.cells, a.cells_end):
                cell = cell_of(q, s, lane, q.member[i])
                add_cell(q, s.width, cell, sum)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell, s.width))
        lane = lane + 1 if lane + 1 < q.lanes else 0
    if any:
        k.snapshots += 1
        served[0] += 1
    return NO_FAILURE


cdef void* grown(void* memory, size_t size) except NULL:
    """Reallocate; raises MemoryError."""
    cdef void* moved = realloc(memory, size)
    if moved == NULL:
        raise MemoryError
    return moved


cdef void free_graphlets(Core* k) noexcept:
    cdef int i
    for i in range(MOST_GRAPHLETS):
        free(k.graphlet[i].member)
        free(k.graphlet[i].role)
        free(k.graphlet[i].standing)
        free(k.graphlet[i].rows)
        free(k.graphlet[i].kind)
        free(k.graphlet[i].of_kind)
        free(k.graphlet[i].tally)
    free(k.class_graphlet)
    free(k.class_roles)
    free(k.class_ends)
    free(k.role_tally)
