"""Bursts and graphlets: events of one type that queries bind to one Kleene sub-pattern take effect together.

**Bursts.** A graphlet collects the events of one type and key that its members (queries) bind to one state without
looking back. Its burst ends before any event that touches a member otherwise, at the border of a member's pane, and at
the end of the slice; so a member's inflow does not change within it.
**Coefficients** of a burst depend on its events and not on the query. Queries that share compute them once per class of
events (events that the same local predicates accept) and add up the classes that each accepts; a query on its own
computes them for itself. Then every query applies them to its snapshot, the sum of the trends that the burst extends.

Source: HAMLET (SIGMOD'21) Defs. 3.5-3.11, Algorithm 1.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport (
    add_arriving,
    bit_length,
    floor_divide,
    has_trends,
    lane_of,
    limbs_bits,
    lowest_window,
    words_of,
)
from hamlet.kernel.core cimport (
    EVENT_STORE,
    LONGEST_BURST,
    SCALAR,
    Core,
    Graphlet,
    Member,
    Pending,
    Work,
    column_bit,
    mixed,
)
from hamlet.kernel.operators.scalar.state cimport State, cell_of, start_alive, widen
from hamlet.kernel.operators.scalar.step cimport read_source
from hamlet.kernel.operators.simd.lanes cimport Band, is_found
from hamlet.kernel.operators.simd.step cimport burst_band, find_lanes, single_band
from hamlet.kernel.plan cimport FROM_CELL, NO_FAILURE, OUT_OF_MEMORY, Arrival, Query, Source
from hamlet.kernel.radix_sort cimport MOST_ARRANGED, Event
from hamlet.kernel.run_length cimport Stretch
from hamlet.kernel.scratch cimport reserve_scratch
from hamlet.kernel.sharing.burst cimport Tally, apply_burst, apply_limbs, join_tally, tally_rows, tally_values
from hamlet.kernel.sharing.decision cimport decide, note_burst, note_single
from hamlet.kernel.sharing.deferred cimport begin_pending, put_off
from hamlet.kernel.sharing.members cimport list_live
from hamlet.kernel.windows cimport open_state, turn_pane

cdef extern from *:
    int lowest_bit "__builtin_ctzll"(uint64_t bits) noexcept nogil
    void prefetch "__builtin_prefetch"(const void* address) noexcept nogil


cdef int end_before(Core* k, int kind, int64_t time) noexcept nogil:
    """End the bursts that an event must not find under way. Returns a Failure."""
    cdef uint64_t ending = k.active if time >= k.border else k.active & k.class_ends[kind]
    return end_bursts(k, ending) if ending else NO_FAILURE


cdef int join_burst(Core* k, Graphlet* g, int kind, int64_t key, const Event* event, Py_ssize_t n) noexcept nogil:
    """Add events of one class, each of another time, to the burst of a graphlet; begin one where none is under way."""
    cdef Py_ssize_t taken
    cdef int failure
    while n:
        if k.active:
            failure = end_before(k, kind, event.time)  # where others end, so that windows of a block close in order
            if failure:
                return failure
        if g.active and g.events == LONGEST_BURST:
            failure = end_burst(k, g)
            if failure:
                return failure
        if not g.active:
            begin_burst(k, g, key, event.time)
        taken = min(n, <Py_ssize_t> (LONGEST_BURST - g.events))
        if event[taken - 1].time >= k.border:
            taken = 1
            while event[taken].time < k.border:
                taken += 1
        if g.of_kind[kind] == 0:
            g.kind[g.kinds] = kind
            g.kinds += 1
        g.of_kind[kind] += taken
        if g.reads:
            keep_piece(k, g, event, taken)
        g.events += taken
        event += taken
        n -= taken
    return NO_FAILURE


cdef int join_stretch(Core* k, Graphlet* g, int64_t key, int64_t time, const Stretch* stretch) noexcept nogil:
    """Add a stretch, within which no window opens or closes, to the burst of a graphlet; begin one if there is none."""
    cdef int failure
    if k.active:
        failure = end_before(k, stretch.kind, time)
        if failure:
            return failure
    if g.active and g.events + stretch.events > LONGEST_BURST:
        failure = end_burst(k, g)
        if failure:
            return failure
    if not g.active:
        begin_burst(k, g, key, time)
    if g.of_kind[stretch.kind] == 0:
        g.kind[g.kinds] = stretch.kind
        g.kinds += 1
    g.of_kind[stretch.kind] += stretch.events
    if g.reads:
        g.rows[g.stretches] = stretch - k.stretches
        g.stretches += 1
    g.events += stretch.events
    return NO_FAILURE


cdef void keep_piece(const Core* k, Graphlet* g, const Event* event, Py_ssize_t n) noexcept nogil:
    """Keep events that join a burst: where they lie, as long as that is one place, or their rows."""
    if g.events == 0:
        g.piece = event if are_arranged(k, g) else NULL
    elif g.piece != NULL and event != g.piece + g.events:
        list_rows(g)
    if g.piece == NULL:
        keep_rows(k, g, event, n)


cdef bint are_arranged(const Core* k, const Graphlet* g) noexcept nogil:
    """Whether the values that members read lie in the order of the events."""
    cdef int column
    for column in range(k.event_columns):
        if g.reads & column_bit(column) and (column >= MOST_ARRANGED or k.arranged[column] == NULL):
            return False
    return True


cdef void list_rows(Graphlet* g) noexcept nogil:
    """Keep the rows of the events of a burst instead of the place where they lie."""
    cdef Py_ssize_t i
    for i in range(g.events):
        g.rows[i] = g.piece[i].row
    g.piece = NULL


cdef void keep_rows(const Core* k, Graphlet* g, const Event* event, Py_ssize_t n) noexcept nogil:
    """Keep the rows of events that join a burst, and let their values be fetched until it ends."""
    cdef Py_ssize_t i
    cdef int column
    cdef const int64_t* data
    for i in range(n):
        g.rows[g.events + i] = event[i].row
    for column in range(k.event_columns):
        if g.reads & column_bit(column):
            data = k.columns[column].data
            for i in range(n):
                prefetch(&data[event[i].row])


cdef void begin_burst(Core* k, Graphlet* g, int64_t key, int64_t time) noexcept nogil:
    g.active = True
    k.active |= <uint64_t> 1 << (g - k.graphlet)
    g.key = key
    g.time = time
    g.events = g.stretches = 0
    g.kinds = 0
    if not g.pane <= time < g.pane_end:
        find_pane(k, g, time)
    g.border = g.pane_end
    k.border = min(k.border, g.border) if k.active & (k.active - 1) else g.border


cdef void find_pane(const Core* k, Graphlet* g, int64_t time) noexcept nogil:
    """The pane of the members that holds a time."""
    cdef const Query* q
    cdef int64_t within = 0, slide = 0, begins, ends
    cdef int i
    g.pane, g.pane_end = INT64_MIN, INT64_MAX
    for i in range(min(g.members, 1) if g.even else g.members):
        q = &k.query[g.member[i].query]
        if q.within == within and q.slide == slide:
            continue
        within, slide = q.within, q.slide
        begins = floor_divide(time, slide) * slide
        ends = lowest_window(time, within, slide) * slide + within
        g.pane = max(g.pane, begins, ends - slide)
        g.pane_end = min(g.pane_end, begins + slide, ends)


cdef int end_bursts(Core* k, uint64_t graphlets) noexcept nogil:
    cdef int failure
    while graphlets:
        failure = end_burst(k, &k.graphlet[lowest_bit(graphlets)])
        if failure:
            return failure
        graphlets &= graphlets - 1
    return NO_FAILURE


cdef int end_burst(Core* k, Graphlet* g) noexcept nogil:
    """Let the events of a burst take effect. Returns a Failure."""
    cdef int i, failure
    g.active = False
    k.active &= ~(<uint64_t> 1 << (g - k.graphlet))
    k.bursts += 1
    if g.events == 1 and g.roles == 1 and g.reads == 0 and not g.loops and not k.trace.on and not k.paper:
        failure = end_single(k, g)
    else:
        failure = end_several(k, g)
    for i in range(g.kinds):
        g.of_kind[g.kind[i]] = 0
    return failure


cdef int end_single(Core* k, Graphlet* g) noexcept nogil:
    """One event that no member repeats or reads values of: there is nothing to share, so nothing is decided.

    Not where decisions are traced, or the model is the paper's: then each burst has its record.
    """
    cdef const Member* member
    cdef int64_t applied = k.applied
    cdef int i, failure
    if k.past != NULL:
        note_single(k, g)
    k.role_events[0] = 1
    g.lives = g.lone = 0
    g.handed = g.in_blocks = False
    for i in range(k.bands if g.loose < g.members else 0):
        failure = single_band(k, i, g)
        if failure:
            return failure
        g.in_blocks = g.in_blocks or k.band[i].reached
    if g.loose == 0 and not g.handed:
        return NO_FAILURE
    for i in range(g.members):
        if not in_block(k, g, &g.member[i]):
            failure = find_lone(k, g, i)
            if failure:
                return failure
    for i in range(g.lone):
        member = &g.member[g.live[i]]
        failure = take_burst(k, g, member)
        if failure:
            return failure
    k.applied = applied  # no coefficients
    return NO_FAILURE


cdef int end_several(Core* k, Graphlet* g) noexcept nogil:
    """Decide who shares the burst, and apply its coefficients to every query with trends that it extends."""
    cdef int failure
    cdef uint64_t shared
    count_roles(k, g)
    failure = find_live(k, g)
    if failure:
        return failure
    if g.lives:
        k.graphlets += 1
        shared = decide(k, g)
        if k.past != NULL and note_burst(k, g, shared):
            return OUT_OF_MEMORY
        return apply_coefficients(k, g, shared)
    return NO_FAILURE


cdef void count_roles(Core* k, Graphlet* g) noexcept nogil:
    """How many events of the burst each role accepts, and numbers for the sets of their classes."""
    cdef int role, i, kind
    cdef uint64_t roles, number
    g.kindred = 0
    for role in range(g.roles):
        k.role_events[role] = 0
        k.role_kinds[role] = 0
    for i in range(g.kinds):
        kind = g.kind[i]
        roles = k.class_roles[kind]
        number = mixed(<uint64_t> kind + 1)
        g.kindred += number  # a sum over the set
        for role in range(g.roles):
            if roles >> role & 1:
                k.role_events[role] += g.of_kind[kind]
                k.role_kinds[role] += number


cdef void forget_lives(Core* k, Graphlet* g) noexcept nogil:
    """Of no member it is known whether it has a trend that the burst extends."""
    cdef int i
    g.lives = g.lone = 0
    g.every = 0
    for i in range(g.roles):
        k.role_lives[i] = k.role_laned[i] = 0
    for i in range(g.kins):
        k.kin_lives[i] = 0


cdef int find_live(Core* k, Graphlet* g) noexcept nogil:
    """The members with trends that the burst extends; their panes are turned. Returns a Failure."""
    cdef int i, failure
    forget_lives(k, g)
    g.listed = g.handed = g.in_blocks = False
    if g.loose < g.members:
        for i in range(k.bands):
            failure = find_lanes(k, i, g)
            if failure:
                return failure
            g.in_blocks = g.in_blocks or k.band[i].reached
    if g.loose or g.handed:
        for i in range(g.members):
            if k.role_events[g.member[i].role] and not in_block(k, g, &g.member[i]):
                failure = find_lone(k, g, i)
                if failure:
                    return failure
    return NO_FAILURE


cdef inline bint in_block(const Core* k, const Graphlet* g, const Member* member) noexcept nogil:
    """Whether the burst under way finds a member in a block."""
    return g.in_blocks and k.band_of[member.query] >= 0 and k.band[k.band_of[member.query]].reached


cdef int find_lone(Core* k, Graphlet* g, int place) noexcept nogil:
    """Look at a member whose query is held by a state of its own. Returns a Failure."""
    cdef const Member* member = &g.member[place]
    cdef Pending* p = &k.pending[member.query]
    cdef State* s
    cdef int failure
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
        if member.form != NULL:
            begin_pending(k, member.query, s)
    if (p.live & member.form.reads) != 0 if member.form != NULL else extends(&k.query[member.query], s, member.arrival):
        g.live[g.lone] = place
        g.lone += 1
        g.lives += 1
        g.every |= <uint64_t> 1 << member.role
        k.role_lives[member.role] += 1
        k.kin_lives[member.kin] += 1
    return NO_FAILURE


cdef bint extends(const Query* q, const State* s, int arrival) noexcept nogil:
    """Whether an event would extend a trend, the empty one included, in some open window."""
    cdef const Arrival* a = &q.arrival[arrival]
    cdef const Source* source
    cdef int64_t window
    cdef int i, lane
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        lane = lane_of(q, s.first)
        for window in range(s.first, s.last + 1):
            if source.kind == FROM_CELL:
                if has_trends(q, s.width, cell_of(q, s, lane, source.place)):
                    return True
            elif start_alive(q, s, source.guards, window):
                return True
            lane = lane + 1 if lane + 1 < q.lanes else 0
    return False


# ------------------------------------------------------------------------------------------------ coefficients

cdef int apply_coefficients(Core* k, Graphlet* g, uint64_t shared) noexcept nogil:
    """Compute the coefficients of a burst, once for the roles that share it, and serve the live members."""
    cdef const Member* member
    cdef uint64_t columns = 0, kinds = 0, in_bands = 0, bit
    cdef int i, sharing = 0, role, failure
    cdef bint each = False
    for role in range(g.roles):
        if g.every >> role & 1:
            columns |= g.columns[role]
            if shared >> role & 1:
                kinds |= g.columns[role]
                sharing += k.role_lives[role]
    sort_rows(k, g, columns != 0)
    if sharing:
        tally_kinds(k, g, kinds, shared)
        k.coefficients += 1
        k.shared_graphlets += sharing > 1
        k.snapshots += 1
    for role in range(g.roles):
        bit = <uint64_t> 1 << role
        if not g.every & bit:
            continue
        if shared & bit:
            join_kinds(k, g, kinds, role)
        elif k.role_laned[role]:
            clear_tally(k, role)
        if k.role_laned[role]:
            in_bands |= bit
            k.applied += k.role_laned[role]
            if not shared & bit:
                if g.columns[role]:
                    each = True
                else:  # there is nothing to tally
                    k.coefficients += k.role_laned[role]
                    k.snapshots += k.role_laned[role]
    if each:
        list_live(k, g)
    for i in range(g.lives if g.listed else g.lone):
        member = &g.member[g.live[i]]
        if not shared >> member.role & 1 and (g.columns[member.role] or not in_block(k, g, member)):
            tally_member(k, g, member)
            k.coefficients += 1
            k.snapshots += 1
        if not in_block(k, g, member):
            failure = take_burst(k, g, member)
            if failure:
                return failure
    return serve_bands(k, g, in_bands) if in_bands else NO_FAILURE


cdef int serve_bands(Core* k, Graphlet* g, uint64_t roles) noexcept nogil:
    """Apply a burst's coefficients to the lanes of some roles, or to the states that take them over."""
    cdef const Member* member
    cdef Band* band
    cdef int number, role, i, failure
    for number in range(k.bands):
        band = &k.band[number]
        for role in range(g.roles):
            if not roles >> role & 1 or not band.reached:
                continue
            failure = burst_band(k, number, g, role, NULL)
            if failure:
                return failure
            if band.reached:
                continue
            for i in range(g.members):  # the numbers have become too large for lanes
                member = &g.member[i]
                if k.band_of[member.query] == number and roles >> member.role & 1 and member.role >= role:
                    if is_found(band, k.lane_of[member.query]):
                        k.applied -= 1
                        failure = take_burst(k, g, member)
                        if failure:
                            return failure
    return NO_FAILURE


cdef void clear_tally(Core* k, int role) noexcept nogil:
    memset(k.role_tally + role * k.event_columns, 0, k.event_columns * sizeof(Tally))


cdef void sort_rows(Core* k, Graphlet* g, bint needed) noexcept nogil:
    """Put the burst's rows in order of their classes."""
    cdef int64_t end = 0, row
    cdef int i
    if k.stretches != NULL:
        sort_stretches(k, g)
        return
    if not needed or g.kinds == 1:
        k.rows_by_kind = g.rows
        k.kind_end[0] = g.events
        if needed and g.piece != NULL:
            k.rows_by_kind = NULL
            k.place = g.piece - k.events
        return
    if g.piece != NULL:
        list_rows(g)
    for i in range(g.kinds):
        k.kind_at[g.kind[i]] = end
        end += g.of_kind[g.kind[i]]
        k.kind_end[i] = end
    for row in g.rows[:g.events]:
        i = k.class_of[row]
        k.sorted[k.kind_at[i]] = row
        k.kind_at[i] += 1
    k.rows_by_kind = k.sorted


cdef void sort_stretches(Core* k, const Graphlet* g) noexcept nogil:
    """Put the burst's stretches in order of their classes."""
    cdef int64_t end = 0, here, place
    cdef int i
    k.rows_by_kind = g.rows
    k.kind_end[0] = g.stretches
    if g.kinds == 1 or g.stretches == 0:
        return
    for i in range(g.kinds):
        k.kind_at[g.kind[i]] = 0
    for place in g.rows[:g.stretches]:
        k.kind_at[k.stretches[place].kind] += 1
    for i in range(g.kinds):
        here = k.kind_at[g.kind[i]]
        k.kind_at[g.kind[i]] = end
        end += here
        k.kind_end[i] = end
    for place in g.rows[:g.stretches]:
        i = k.stretches[place].kind
        k.sorted[k.kind_at[i]] = place
        k.kind_at[i] += 1
    k.rows_by_kind = k.sorted


cdef void tally_stretches(Core* k, Tally* tally, int column, int64_t begin, int64_t end) noexcept nogil:
    """Count the values of the stretches rows_by_kind[begin:end] in a column."""
    cdef const Stretch* stretch
    cdef int place = k.stretch_value[column]
    cdef Tally more
    cdef int64_t i
    for i in range(begin, end):
        stretch = &k.stretches[k.rows_by_kind[i]]
        more.present = stretch.events
        more.total = stretch.value[place].total
        more.least = stretch.value[place].least
        more.greatest = stretch.value[place].greatest
        more.real = tally.real
        more.real.m = more.real.e = 0
        join_tally(tally, &more, False)


cdef void tally_columns(
    Core* k, Tally* tally, uint64_t columns, int64_t begin, int64_t end
) noexcept nogil:
    """Count the values of rows_by_kind[begin:end] in some columns."""
    cdef int column
    for column in range(k.event_columns):
        if not columns & column_bit(column):
            continue
        if k.stretches != NULL:
            tally_stretches(k, &tally[column], column, begin, end)
        elif k.rows_by_kind == NULL:
            tally_values(&tally[column], k.arranged[column] + k.place + begin, end - begin)
        else:
            tally_rows(&tally[column], k.floating[column], &k.columns[column], k.rows_by_kind + begin, end - begin)


cdef void tally_kinds(Core* k, const Graphlet* g, uint64_t columns, uint64_t shared) noexcept nogil:
    """The coefficients of every class of events that a sharing role accepts."""
    cdef Tally* tally
    cdef int i
    if columns == 0:
        return
    for i in range(g.kinds):
        if k.class_roles[g.kind[i]] & shared:
            tally = k.kind_tally + i * k.event_columns
            memset(tally, 0, k.event_columns * sizeof(Tally))
            tally_columns(k, tally, columns, k.kind_end[i - 1] if i else 0, k.kind_end[i])


cdef void join_kinds(Core* k, const Graphlet* g, uint64_t columns, int role) noexcept nogil:
    """The coefficients of a sharing role, from those of the classes that it accepts."""
    cdef Tally* tally = k.role_tally + role * k.event_columns
    cdef int i, column
    if columns == 0:
        return
    if g.kinds == 1:
        memcpy(tally, k.kind_tally, k.event_columns * sizeof(Tally))
        return
    clear_tally(k, role)
    for i in range(g.kinds):
        if k.class_roles[g.kind[i]] >> role & 1:
            k.snapshots += 1
            for column in range(k.event_columns):
                if columns & column_bit(column):
                    join_tally(
                        &tally[column], &k.kind_tally[i * k.event_columns + column], k.floating[column]
                    )


cdef void tally_member(Core* k, const Graphlet* g, const Member* member) noexcept nogil:
    """The coefficients of a query on its own."""
    cdef Tally* tally = k.role_tally + member.role * k.event_columns
    cdef int i
    if member.columns == 0:
        return
    for i in range(k.event_columns):
        if member.columns & column_bit(i):  # other columns may be those of another lane
            memset(&tally[i], 0, sizeof(Tally))
    for i in range(g.kinds):
        if k.class_roles[g.kind[i]] >> member.role & 1:
            tally_columns(k, tally, member.columns, k.kind_end[i - 1] if i else 0, k.kind_end[i])


cdef inline int take_burst(Core* k, const Graphlet* g, const Member* member) noexcept nogil:
    """Let a query of its own take a burst that extends a trend of it, at once or later. Returns a Failure."""
    cdef Work* work = &k.work[EVENT_STORE if k.query[member.query].stores else SCALAR]
    cdef bint waits = False
    cdef int failure = NO_FAILURE
    work.events += k.role_events[member.role]
    work.bursts += 1
    if member.form != NULL:
        failure = put_off(k, g, member, &waits)
    return failure if failure or waits else serve(k, g, member)


cdef int serve(Core* k, const Graphlet* g, const Member* member) noexcept nogil:
    """Take a query's snapshot and add what the burst makes of it. Returns a Failure."""
    cdef const Query* q = &k.query[member.query]
    cdef const Arrival* a = &q.arrival[member.arrival]
    cdef State* s = k.state[g.key * k.queries + member.query]
    cdef const Tally* tally = k.role_tally + member.role * k.event_columns
    cdef int64_t events = k.role_events[member.role], bits, window
    cdef int lane, i, words, failure
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
    lane = lane_of(q, s.first)
    if q.exact and q.scaled == 0 and not q.strands:
        for window in range(s.first, s.last + 1):
            apply_limbs(q, s, a, member.loop, events, tally, bits, window, lane, k.scratch)
            lane = lane + 1 if lane + 1 < q.lanes else 0
        return NO_FAILURE
    words = words_of(q, s.width)
    block = <Py_ssize_t> q.lanes * words
    snapshot = k.scratch
    sum = k.scratch + block
    memset(snapshot, 0, block * sizeof(uint64_t))
    for i in range(a.sources, a.sources_end):
        failure = read_source(k, member.query, s, a, &q.source[i], snapshot, 0)
        if failure:
            return failure
    for _ in range(s.first, s.last + 1):
        if has_trends(q, s.width, snapshot + lane * words):
            apply_burst(
                q, a, s.width, member.loop, events, tally,
                snapshot + lane * words, sum, sum + words,
            )
            for i in range(a.cells, a.cells_end):
                cell = cell_of(q, s, lane, q.member[i])
                add_arriving(q, a, s.width, cell, sum)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell, s.width))
        lane = lane + 1 if lane + 1 < q.lanes else 0
    return NO_FAILURE
