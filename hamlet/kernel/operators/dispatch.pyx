"""The operators that every kernel has, entered into the table: who takes a segment, and who takes over from whom.

================ ======================================================= =====================================
operator         takes                                                   what does not fit
================ ======================================================= =====================================
complete_window  windows that a batch holds whole, of short bursts       goes to ``simd``, event by event
simd             events of one time, and bursts, for a band of queries   its block goes to states of each query
pane_matrix      the same: where many windows overlap, blocks have maps  likewise
scalar           the same, for one query; numbers of any size            nothing
event_store      the same, for one query that keeps single events        nothing
================ ======================================================= =====================================
"""

from hamlet.kernel.state.operator import NUMBERS

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.lanes.lanes cimport Band, LaneProgram, is_found
from hamlet.kernel.operators.complete_window.row_buffer cimport write_held
from hamlet.kernel.operators.complete_window.window cimport take_window
from hamlet.kernel.operators.pane_matrix.event_maps cimport take_events
from hamlet.kernel.operators.scalar.bursts cimport find_members, take_burst
from hamlet.kernel.operators.scalar.step cimport entry_of, step_query
from hamlet.kernel.operators.scalar.windows cimport leave_state
from hamlet.kernel.operators.simd.blocks cimport bytes_in_block, hand_over, leave_block
from hamlet.kernel.operators.simd.checkpoint cimport write_block
from hamlet.kernel.operators.simd.step cimport burst_band, count_lanes, find_lanes, seek_block, step_band
from hamlet.kernel.plan cimport NO_FAILURE
from hamlet.kernel.state.checkpoint cimport write_state
from hamlet.kernel.state.core cimport (
    COMPLETE_WINDOW,
    EVENT_STORE,
    PANE_MATRIX,
    SCALAR,
    SIMD,
    Core,
    Graphlet,
    Member,
)
from hamlet.kernel.state.operator cimport Bytes, Operator, Run, Segment, operators
from hamlet.kernel.state.query_state cimport State

OPERATORS = NUMBERS  # by name, others' too; `hamlet.planner.paths` says what each is


# ------------------------------------------------------------------------------------------------ scalar, event_store


cdef int consume_alone(Core* k, int query, Segment* segment) noexcept nogil:
    """A burst for some queries, or events of one time for one."""
    cdef const Run* run = segment.run
    if segment.graphlet != NULL:
        return take_burst(k, segment)
    if segment.entry == NULL and not concerns(k, query, run):
        return NO_FAILURE
    return step_query(k, query, segment.entry, segment.key, segment.time, run.rows, <int> run.events)


cdef bint concerns(const Core* k, int query, const Run* run) noexcept nogil:
    """Whether some of the events of one time do something to a query."""
    cdef int i
    for i in range(run.events):
        if entry_of(k, k.class_of[run.rows[i]], query) != NULL:
            return True
    return False


cdef void write_alone(Core* k, int query, int64_t key, Bytes* to) noexcept nogil:
    write_state(&k.query[query], k.state[key * k.queries + query], to)


cdef Py_ssize_t bytes_alone(const Core* k, int query, Py_ssize_t key) noexcept nogil:
    cdef const State* s = k.state[key * k.queries + query]
    return 0 if s == NULL else s.bytes


# ------------------------------------------------------------------------------------------------ simd, pane_matrix


cdef int consume_band(Core* k, int number, Segment* segment) noexcept nogil:
    """A burst, a run for each role, or events of one time, for the queries of a band."""
    cdef Band* band = &k.band[number]
    cdef Graphlet* g = segment.graphlet
    cdef uint64_t* found = NULL
    cdef bint starts
    cdef int i, failure
    if g == NULL:
        return consume_step(k, number, segment)
    if not segment.sought:
        failure = seek_block(k, number, g, &starts)
        if failure or not band.reached:
            return failure
        if segment.tells:
            found = band.found
            memset(found, 0, band.marks * sizeof(uint64_t))
    for i in range(segment.runs):
        failure = burst_band(k, number, g, &segment.run[i], found)
        if failure:
            return failure
        if not band.reached:  # the numbers have become too large for lanes
            if segment.sought:
                return pass_burst(k, number, segment, i)
            g.handed = True  # who asks next finds states
            return NO_FAILURE
        if found != NULL:
            count_lanes(k, band, g, segment.run[i].role, found)
    return NO_FAILURE


cdef int pass_burst(Core* k, int number, const Segment* segment, int first) noexcept nogil:
    """Let the queries of a band, which has been handed over, take the runs of a burst from `first` on by themselves."""
    cdef Band* band = &k.band[number]
    cdef Segment own = segment[0]
    cdef const Member* member
    cdef int run, i, failure
    own.runs = own.members = 1
    own.member = &i  # the place that is looked at
    for run in range(first, segment.runs):
        own.run = &segment.run[run]
        for i in range(segment.graphlet.members):
            member = &segment.graphlet.member[i]
            if member.role != own.run.role or k.band_of[member.query] != number:
                continue
            if not is_found(band, k.lane_of[member.query]):
                continue
            k.applied -= 1
            failure = operators[member.operator].consume(k, member.query, &own)
            if failure:
                return failure
    return NO_FAILURE


cdef int consume_step(Core* k, int number, const Segment* segment) noexcept nogil:
    """Events of one time; by states, where these hold the queries."""
    cdef Band* band = &k.band[number]
    cdef Run* run = segment.run
    cdef Segment own
    cdef const LaneProgram* program
    cdef int i, failure
    cdef bint done
    if run.events > 1:
        for i in range(run.events):
            program = &band.every[k.class_of[run.rows[i]]]
            if program.groups or program.kills:
                break
        else:
            return NO_FAILURE
    failure = step_band(k, number, segment.key, segment.time, run.kind, run.rows, <int> run.events, &done)
    if failure or done:
        return failure
    own = segment[0]
    if run.events > 1:
        own.entry = NULL
        for i in range(band.queries):
            failure = operators[k.operator_of[band.query[i]]].consume(k, band.query[i], &own)
            if failure:
                return failure
        return NO_FAILURE
    for i in range(k.entry_first[run.kind], k.entry_first[run.kind + 1]):
        own.entry = &k.entry[i]
        if k.band_of[own.entry.query] == number and not own.entry.joins:
            failure = operators[k.operator_of[own.entry.query]].consume(k, own.entry.query, &own)
            if failure:
                return failure
    return NO_FAILURE


cdef int find_in_band(Core* k, int number, Graphlet* g, int _, int __) noexcept nogil:
    return find_lanes(k, number, g)


cdef void write_key_slot(Core* k, int number, int64_t key, Bytes* to) noexcept nogil:
    write_block(&k.band[number], k.band[number].key_slot[key].block, to)


# ------------------------------------------------------------------------------------------------ complete_window


cdef int consume_window(Core* k, int unit, Segment* segment) noexcept nogil:
    """A window that a batch holds whole; nothing has been done where it is not taken."""
    return take_window(
        k, segment.key, segment.event, segment.events, segment.orders, segment.window, &segment.taken
    )


cdef int close_held(Core* k, int unit, int64_t key, int64_t time) noexcept nogil:
    """The windows are closed already; their rows are written."""
    return write_held(k)


# ------------------------------------------------------------------------------------------------ pane_matrix


cdef int consume_pane(Core* k, int number, Segment* segment) noexcept nogil:
    """Events of a pane, as far as they are mapped; or what a band takes."""
    if segment.event == NULL:
        return consume_band(k, number, segment)
    return take_events(k, segment.key, segment.event, segment.orders, &segment.events)


cdef Operator* alone
for number in (SCALAR, EVENT_STORE):
    alone = &operators[<int> number]
    alone.consume, alone.find, alone.close = consume_alone, find_members, leave_state
    alone.checkpoint, alone.bytes = write_alone, bytes_alone

cdef Operator* side_by_side
for number in (SIMD, PANE_MATRIX):
    side_by_side = &operators[<int> number]
    side_by_side.consume, side_by_side.find, side_by_side.close = consume_band, find_in_band, leave_block
    side_by_side.promote, side_by_side.checkpoint, side_by_side.bytes = hand_over, write_key_slot, bytes_in_block

operators[PANE_MATRIX].consume = consume_pane
operators[COMPLETE_WINDOW].consume, operators[COMPLETE_WINDOW].close = consume_window, close_held
