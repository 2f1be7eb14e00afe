"""Who is a member of which graphlet: settled when a class of events is registered, long before its first burst.

A query is a member of the graphlet of a type if all classes of the type that touch it bind their events to one state,
without looking back at single events and without negation. The others are processed event by event (``step``).
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from hamlet.kernel.lanes.lanes cimport Band, LaneProgram, is_found
from hamlet.kernel.plan cimport FROM_CELL, FROM_START, FROM_STORE, Arrival, Entry, Query
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport (
    BANNED,
    LONGEST_BURST,
    MEMBER,
    MOST_GRAPHLETS,
    MOST_MEMBER_CLASSES,
    Consumer,
    Core,
    Graphlet,
    MemberClass,
    Member,
    column_bit,
)
from hamlet.memory.arrays cimport grown


cdef void join_graphlet(Core* k, int kind, int type) except *:
    """Let the queries that bind a class of events to one Kleene sub-pattern share its graphlet."""
    cdef Graphlet* g = &k.graphlet[type % MOST_GRAPHLETS]
    cdef Entry* entry
    cdef const Query* q
    cdef const Query* first
    cdef int i, member, role
    k.class_graphlet = <int*> grown(k.class_graphlet, (kind + 1) * sizeof(int))
    k.class_roles = <uint64_t*> grown(k.class_roles, (kind + 1) * sizeof(uint64_t))
    k.class_ends = <uint64_t*> grown(k.class_ends, (kind + 1) * sizeof(uint64_t))
    k.class_graphlet[kind] = -1
    k.class_roles[kind] = 0
    if type < MOST_GRAPHLETS:
        if g.membership == NULL:
            g.membership = <uint8_t*> calloc(k.queries + 1, 1)
            if g.membership == NULL:
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
    k.kind_tally = <Tally*> grown(k.kind_tally, ((kind + 1) * k.event_columns + 1) * sizeof(Tally))
    k.kind_end = <int64_t*> grown(k.kind_end, (kind + 1) * sizeof(int64_t))
    k.kind_at = <int64_t*> grown(k.kind_at, (kind + 1) * sizeof(int64_t))
    find_ends(k)
    g.reads = 0
    g.loops = False
    g.even = True
    for i in range(g.roles):  # members may have gone
        g.columns[i] = 0
    for i in range(g.members):
        g.columns[g.member[i].role] |= g.member[i].columns
        g.reads |= g.member[i].columns
        g.loops = g.loops or g.member[i].loop
        q, first = &k.query[g.member[i].query], &k.query[g.member[0].query]
        g.even = g.even and q.within == first.within and q.slide == first.slide
    g.pane = g.pane_end = 0  # found anew for the first burst


cdef void find_consumers(Core* k) except *:
    """Find who takes single events of each class, and the classes whose events only join a burst.

    The programs of bands are written.
    """
    cdef int kind, number, i, query, count = 0
    cdef Consumer* consumer
    k.class_plain = <uint8_t*> grown(k.class_plain, k.classes + 1)
    k.consumer_first = <int*> grown(k.consumer_first, (k.classes + 1) * sizeof(int))
    k.consumer = <Consumer*> grown(k.consumer, (k.entries + k.classes * k.bands + 1) * sizeof(Consumer))
    for kind in range(k.classes):
        k.consumer_first[kind] = count
        for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
            query = k.entry[i].query
            if not k.entry[i].joins and k.band_of[query] < 0:
                consumer = &k.consumer[count]
                consumer.operator, consumer.unit, consumer.entry = k.operator_of[query], query, i
                count += 1
        for number in range(k.bands):
            if k.band[number].program[kind].groups or k.band[number].program[kind].kills:
                consumer = &k.consumer[count]
                consumer.operator, consumer.unit, consumer.entry = k.unit[number].operator, number, -1
                count += 1
        k.class_plain[kind] = k.class_graphlet[kind] >= 0 and k.consumer_first[kind] == count
    k.consumer_first[k.classes] = count
    for kind in range(MOST_GRAPHLETS):
        k.graphlet[kind].only = only_band(k, kind)


cdef int only_band(const Core* k, int type) noexcept:
    """The band of all members of a graphlet, where they have one role and tumbling windows; else -1."""
    cdef int number, found = -1
    cdef const LaneProgram* program
    if k.graphlet[type].roles != 1 or k.graphlet[type].loose:
        return -1
    for number in range(k.bands):
        program = k.band[number].burst[type]
        if program == NULL or program.groups == 0:
            continue
        if found >= 0 or not program.direct or k.band[number].windows > 1:
            return -1
        found = number
    return found


cdef void ban(Core* k, Graphlet* g, int query) noexcept:
    """Process a query event by event for the type of a graphlet."""
    cdef int i, member
    g.changed = True
    g.membership[query] = BANNED
    for i in range(k.entries):
        if k.entry[i].query == query and k.entry[i].joins and k.entry[i].type == g - k.graphlet:
            k.entry[i].joins = False
    for member in range(g.members):
        if g.member[member].query == query:
            g.loose -= k.band_of[query] < 0
            g.members -= 1
            g.member[member] = g.member[g.members]
            break


cdef int member_of(Core* k, Graphlet* g, const Entry* entry) except -2:
    """The place of an entry's query among the members, a new one where it may become one, else -1."""
    cdef const Query* q = &k.query[entry.query]
    cdef const Arrival* a
    cdef int arrival, i, j, role
    cdef bint loop = False, starts = False
    if g.membership[entry.query] == BANNED:
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
        starts = starts or q.source[i].kind == FROM_START
        for j in range(a.cells, a.cells_end):
            loop = loop or (q.source[i].kind == FROM_CELL and q.source[i].place == q.member[j])
    for i in range(g.members if g.membership[entry.query] == MEMBER else 0):
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
        g.columns = <uint64_t*> grown(g.columns, (g.roles + 1) * sizeof(uint64_t))
        g.role[role] = entry.role
        g.roles += 1
    if g.rows == NULL:
        g.rows = <int64_t*> grown(NULL, LONGEST_BURST * sizeof(int64_t))
    if k.sorted == NULL:
        k.sorted = <int64_t*> grown(NULL, LONGEST_BURST * sizeof(int64_t))
    g.member = <Member*> grown(g.member, (g.members + 1) * sizeof(Member))
    g.member[g.members].query = entry.query
    g.member[g.members].operator = k.operator_of[entry.query]
    g.member[g.members].arrival = arrival
    g.member[g.members].role = role
    g.member[g.members].loop = loop
    g.member[g.members].starts = starts
    g.member[g.members].columns = 0
    g.member[g.members].form = &k.chain[entry.query].form[arrival] if k.chain[entry.query].fits else NULL
    for i in range(q.components):
        if q.component[i].variable == a.variable and q.component[i].column >= 0:
            g.member[g.members].columns |= column_bit(q.component[i].column)
    g.member[g.members].member_class = member_class_of(g, role, q.types, g.member[g.members].columns)
    g.live = <int*> grown(g.live, (g.members + 1) * sizeof(int))
    g.members += 1
    g.loose += k.band_of[entry.query] < 0
    g.changed = True
    g.membership[entry.query] = MEMBER
    return g.members - 1


cdef int member_class_of(Graphlet* g, int role, int types, uint64_t columns) except -1:
    """The class of a new member. Where there are too many it is one of its role, and prices are a little off."""
    cdef MemberClass* added
    cdef int i, found = -1
    for i in range(g.member_classes):
        if g.member_class[i].role == role:
            found = i
            if g.member_class[i].types == types and g.member_class[i].columns == columns:
                return i
    if found >= 0 and g.member_classes >= MOST_MEMBER_CLASSES - MOST_GRAPHLETS:
        return found
    g.member_class = <MemberClass*> grown(g.member_class, (g.member_classes + 1) * sizeof(MemberClass))
    added = &g.member_class[g.member_classes]
    added.role, added.types, added.columns = role, types, columns
    g.member_classes += 1
    return g.member_classes - 1


cdef void list_live(const Core* k, Graphlet* g) noexcept nogil:
    """Put all live members of a burst on its list, in order; so far only those that states hold are there."""
    cdef int i, lone = g.lone - 1, at = g.lives, lane
    cdef const Band* band
    if g.listed:
        return
    g.listed = True
    for i in range(g.members - 1, -1, -1):  # from behind: the list is not longer than what it becomes
        if lone >= 0 and g.live[lone] == i:
            lone -= 1
        elif k.band_of[g.member[i].query] < 0 or k.role_events[g.member[i].role] == 0:
            continue
        else:
            band = &k.band[k.band_of[g.member[i].query]]
            lane = k.lane_of[g.member[i].query]
            if not (band.reached and is_found(band, lane)):
                continue
        at -= 1
        g.live[at] = i


cdef int find_ends(Core* k) except -1:
    """Find the graphlets with a member that a class of events touches otherwise than by joining, for all classes."""
    cdef uint64_t* joined = <uint64_t*> calloc(k.queries + 1, sizeof(uint64_t))  # by query the graphlets it is in
    cdef uint64_t ends, own
    cdef const Entry* entry
    cdef int kind, i, j
    if joined == NULL:
        raise MemoryError
    for j in range(MOST_GRAPHLETS):
        for i in range(k.graphlet[j].members):
            joined[k.graphlet[j].member[i].query] |= <uint64_t> 1 << j
    for kind in range(k.classes):
        ends = 0
        for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
            entry = &k.entry[i]
            own = <uint64_t> 1 << k.class_graphlet[kind] if entry.joins else 0
            ends |= joined[entry.query] & ~own
        k.class_ends[kind] = ends
    free(joined)
    return 0


cdef void free_graphlets(Core* k) noexcept:
    cdef int i
    for i in range(MOST_GRAPHLETS):
        free(k.graphlet[i].member)
        free(k.graphlet[i].role)
        free(k.graphlet[i].member_class)
        free(k.graphlet[i].columns)
        free(k.graphlet[i].membership)
        free(k.graphlet[i].rows)
        free(k.graphlet[i].kind)
        free(k.graphlet[i].of_kind)
        free(k.graphlet[i].live)
    free(k.class_plain)
    free(k.class_graphlet)
    free(k.class_roles)
    free(k.class_ends)
    free(k.role_tally)
    free(k.kind_tally)
    free(k.kind_end)
    free(k.kind_at)
    free(k.sorted)
