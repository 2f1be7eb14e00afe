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

from hamlet.kernel.cells cimport floor_divide, lowest_window
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.radix_sort cimport MOST_ARRANGED, Event
from hamlet.kernel.run_length cimport KeyRun
from hamlet.kernel.sharing.decision cimport decide, note_burst, note_single
from hamlet.kernel.sharing.members cimport list_live
from hamlet.kernel.state.burst cimport Tally, join_tally, tally_rows, tally_values
from hamlet.kernel.state.core cimport (
    BURSTS_AT_ONCE,
    DYNAMIC,
    LONGEST_BURST,
    STATIC,
    Core,
    Graphlet,
    Member,
    column_bit,
    may_use,
    mixed,
)
from hamlet.kernel.state.operator cimport Run, Segment, in_block, operators

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


cdef int join_key_run(Core* k, Graphlet* g, int64_t key, int64_t time, const KeyRun* key_run) noexcept nogil:
    """Add a run, within which no window opens or closes, to the burst of a graphlet; begin one if there is none."""
    cdef int failure
    if k.active:
        failure = end_before(k, key_run.kind, time)
        if failure:
            return failure
    if g.active and g.events + key_run.events > LONGEST_BURST:
        failure = end_burst(k, g)
        if failure:
            return failure
    if not g.active:
        begin_burst(k, g, key, time)
    if g.of_kind[key_run.kind] == 0:
        g.kind[g.kinds] = key_run.kind
        g.kinds += 1
    g.of_kind[key_run.kind] += key_run.events
    if g.reads:
        g.rows[g.key_runs] = key_run - k.key_runs
        g.key_runs += 1
    g.events += key_run.events
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
    g.events = g.key_runs = 0
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
    cdef int64_t applied = k.applied
    cdef int i, failure
    cdef Segment segment
    cdef Run run
    if k.past != NULL:
        note_single(k, g)
    k.role_events[0] = 1
    g.lives = g.lone = 0
    g.listed = g.handed = g.in_blocks = False
    for i in range(k.bands if g.loose < g.members else 0):
        burst_of_role(k, g, 0, &run)
        one_burst(&segment, g, &run)
        failure = operators[k.unit[i].operator].consume(k, i, &segment)
        if failure:
            return failure
        g.in_blocks = g.in_blocks or k.band[i].reached
    if g.loose == 0 and not g.handed:
        return NO_FAILURE
    failure = find_alone(k, g)
    if failure == NO_FAILURE:
        failure = give_members(k, g, ~<uint64_t> 0)
    k.applied = applied  # no coefficients
    return failure


cdef int end_several(Core* k, Graphlet* g) noexcept nogil:
    """Decide who shares the burst, and apply its coefficients to every query with trends that it extends."""
    cdef int failure
    cdef uint64_t shared
    cdef bint done
    count_roles(k, g)
    if g.only >= 0 and k.band[g.only].key_slot[g.key].block != NULL and (g.sharing or g.reads == 0) and takes_effect(k):
        failure = end_at_once(k, g, &done)
        if failure or done:
            return failure
    failure = find_live(k, g)
    if failure:
        return failure
    if g.lives:
        k.graphlets += 1
        shared = decide(k, g)
        g.sharing = shared != 0
        if k.past != NULL and note_burst(k, g, shared):
            return OUT_OF_MEMORY
        return apply_coefficients(k, g, shared)
    return NO_FAILURE


cdef inline bint takes_effect(const Core* k) noexcept nogil:
    """Whether a burst may take effect before it is decided who shares it."""
    return may_use(k, BURSTS_AT_ONCE) and (k.policy == DYNAMIC or k.policy == STATIC) and not k.trace.on and not k.paper


cdef int end_at_once(Core* k, Graphlet* g, bint* done) noexcept nogil:
    """Let a burst of one role take effect in its only band as if it were shared, and see by that whom it concerns.

    So no lane is looked at twice. The decision is that for the next burst; where nothing is tallied it changes nothing.
    Not `done` where states take the lanes over: then nothing has been applied.
    """
    cdef uint64_t columns = g.columns[0]
    cdef int64_t snapshots = k.snapshots, joined
    cdef Segment segment
    cdef Run run
    cdef int failure
    k.reached[BURSTS_AT_ONCE] += 1
    done[0] = False
    forget_lives(k, g)
    g.listed = g.handed = g.in_blocks = False
    sort_rows(k, g, columns != 0)
    tally_kinds(k, g, columns, 1)
    join_kinds(k, g, columns, 0)
    joined = k.snapshots - snapshots
    k.snapshots = snapshots
    burst_of_role(k, g, 0, &run)
    one_burst(&segment, g, &run)
    segment.tells = True
    failure = operators[k.unit[g.only].operator].consume(k, g.only, &segment)
    if failure or not k.band[g.only].reached:
        return failure
    done[0] = True
    if g.lives == 0:
        return NO_FAILURE
    k.graphlets += 1
    g.sharing = decide(k, g) != 0
    if k.past != NULL and note_burst(k, g, g.sharing):
        return OUT_OF_MEMORY
    k.shared_graphlets += g.sharing and g.lives > 1
    k.snapshots += 1 + joined if g.sharing else g.lives
    k.coefficients += 1 if columns or g.sharing else g.lives
    k.applied += g.lives
    return NO_FAILURE


cdef void count_roles(Core* k, Graphlet* g) noexcept nogil:
    """How many events of the burst each role accepts, and numbers for the sets of their classes."""
    cdef int role, i, kind
    cdef uint64_t roles, number
    for role in range(g.roles):
        k.role_events[role] = 0
        k.role_kinds[role] = 0
    for i in range(g.kinds):
        kind = g.kind[i]
        roles = k.class_roles[kind]
        number = mixed(<uint64_t> kind + 1)
        for role in range(g.roles):
            if roles >> role & 1:
                k.role_events[role] += g.of_kind[kind]
                k.role_kinds[role] += number  # a sum over the set


cdef void forget_lives(Core* k, Graphlet* g) noexcept nogil:
    """Of no member it is known whether it has a trend that the burst extends."""
    cdef int i
    g.lives = g.lone = 0
    g.every = 0
    for i in range(g.roles):
        k.role_lives[i] = k.role_laned[i] = 0
    for i in range(g.member_classes):
        k.member_class_lives[i] = 0


cdef int find_live(Core* k, Graphlet* g) noexcept nogil:
    """The members with trends that the burst extends; their panes are turned. Returns a Failure."""
    cdef int i, failure
    forget_lives(k, g)
    g.listed = g.handed = g.in_blocks = False
    if g.loose < g.members:
        for i in range(k.bands):
            failure = operators[k.unit[i].operator].find(k, i, g, 0, g.members)
            if failure:
                return failure
            g.in_blocks = g.in_blocks or k.band[i].reached
    return find_alone(k, g) if g.loose or g.handed else NO_FAILURE


cdef int find_alone(Core* k, Graphlet* g) noexcept nogil:
    """Those members with trends that the burst extends whose queries are in no block. Returns a Failure."""
    cdef int begin = 0, end, failure
    while begin < g.members:
        end = begin + 1
        while end < g.members and g.member[end].operator == g.member[begin].operator:
            end += 1
        failure = operators[g.member[begin].operator].find(k, g.member[begin].query, g, begin, end)
        if failure:
            return failure
        begin = end
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ coefficients

cdef int apply_coefficients(Core* k, Graphlet* g, uint64_t shared) noexcept nogil:
    """Compute the coefficients of a burst, once for the roles that share it, and serve the live members."""
    cdef uint64_t columns = 0, kinds = 0, in_bands = 0, bit
    cdef int sharing = 0, role, failure
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
    failure = give_members(k, g, shared)
    if failure:
        return failure
    return serve_bands(k, g, in_bands) if in_bands else NO_FAILURE


cdef int serve_bands(Core* k, Graphlet* g, uint64_t roles) noexcept nogil:
    """Give the bands a burst's coefficients, a run for each of some roles."""
    cdef Run run[64]
    cdef Segment segment
    cdef int number, role, failure
    one_burst(&segment, g, run)
    segment.sought, segment.runs = True, 0
    for role in range(g.roles):
        if roles >> role & 1:
            burst_of_role(k, g, role, &run[segment.runs])
            segment.runs += 1
    for number in range(k.bands):
        if k.band[number].reached:
            failure = operators[k.unit[number].operator].consume(k, number, &segment)
            if failure:
                return failure
    return NO_FAILURE


cdef int give_members(Core* k, Graphlet* g, uint64_t tallied) noexcept nogil:
    """Give a burst's coefficients to the live members that are in no block; those of roles not `tallied` get their own.

    Neighbours of one role and operator are given them together.
    """
    cdef const Member* member
    cdef const Member* other
    cdef int begin = 0, end, count = g.lives if g.listed else g.lone, failure
    cdef bint alone
    cdef Run run
    cdef Segment segment
    one_burst(&segment, g, &run)
    segment.sought = True
    while begin < count:
        member = &g.member[g.live[begin]]
        end = begin + 1
        alone = not in_block(k, g, member)
        if tallied >> member.role & 1:
            while alone and end < count:
                other = &g.member[g.live[end]]
                if other.role != member.role or other.operator != member.operator or in_block(k, g, other):
                    break
                end += 1
        elif g.columns[member.role] or alone:
            tally_member(k, g, member)
            k.coefficients += 1
            k.snapshots += 1
        if alone:
            burst_of_role(k, g, member.role, &run)
            segment.member, segment.members = g.live + begin, end - begin
            failure = operators[member.operator].consume(k, member.query, &segment)
            if failure:
                return failure
        begin = end
    return NO_FAILURE


cdef inline void burst_of_role(const Core* k, const Graphlet* g, int role, Run* run) noexcept nogil:
    """The events of a burst that a role accepts, as a run."""
    run.kind, run.role, run.events, run.rows = g.kind[0], role, k.role_events[role], NULL
    run.tally = k.role_tally + role * k.event_columns


cdef inline void one_burst(Segment* segment, Graphlet* g, Run* run) noexcept nogil:
    """A burst as a segment of one run; nobody has been asked yet who has trends that it extends."""
    segment.key, segment.time, segment.graphlet, segment.runs, segment.run = g.key, g.time, g, 1, run
    segment.sought = segment.tells = False
    segment.member, segment.members, segment.entry, segment.event = NULL, 0, NULL, NULL


cdef void clear_tally(Core* k, int role) noexcept nogil:
    memset(k.role_tally + role * k.event_columns, 0, k.event_columns * sizeof(Tally))


cdef void sort_rows(Core* k, Graphlet* g, bint needed) noexcept nogil:
    """Put the burst's rows in order of their classes."""
    cdef int64_t end = 0, row
    cdef int i
    if k.key_runs != NULL:
        sort_key_runs(k, g)
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


cdef void sort_key_runs(Core* k, const Graphlet* g) noexcept nogil:
    """Put the burst's runs in order of their classes."""
    cdef int64_t end = 0, here, place
    cdef int i
    k.rows_by_kind = g.rows
    k.kind_end[0] = g.key_runs
    if g.kinds == 1 or g.key_runs == 0:
        return
    for i in range(g.kinds):
        k.kind_at[g.kind[i]] = 0
    for place in g.rows[:g.key_runs]:
        k.kind_at[k.key_runs[place].kind] += 1
    for i in range(g.kinds):
        here = k.kind_at[g.kind[i]]
        k.kind_at[g.kind[i]] = end
        end += here
        k.kind_end[i] = end
    for place in g.rows[:g.key_runs]:
        i = k.key_runs[place].kind
        k.sorted[k.kind_at[i]] = place
        k.kind_at[i] += 1
    k.rows_by_kind = k.sorted


cdef void tally_key_runs(Core* k, Tally* tally, int column, int64_t begin, int64_t end) noexcept nogil:
    """Count the values of the runs rows_by_kind[begin:end] in a column."""
    cdef const KeyRun* key_run
    cdef int place = k.key_run_value[column]
    cdef Tally more
    cdef int64_t i
    for i in range(begin, end):
        key_run = &k.key_runs[k.rows_by_kind[i]]
        more.present = key_run.events
        more.total = key_run.value[place].total
        more.least = key_run.value[place].least
        more.greatest = key_run.value[place].greatest
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
        if k.key_runs != NULL:
            tally_key_runs(k, &tally[column], column, begin, end)
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
