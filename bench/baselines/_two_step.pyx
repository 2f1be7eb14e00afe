"""Two steps, the class of MCEP: construct every trend, shared between queries, then aggregate what was constructed.

Trends grow event by event, depth first. A sequence of events is constructed once for all queries in which it is a
partial trend; what each query makes of it (its state, its sums) stands beside the sequence. Exponential in the events
of a window, since every trend is one.

Source: Kolchinsky and Schuster, "Real-Time Multi-Pattern Detection over Event Streams" (SIGMOD'19), the comparison of
HAMLET (SIGMOD'21) §5.1.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

from bench.baselines._automaton cimport NO_COLUMN, START_STATE, Automaton, Tables

cdef enum:
    LESS = 0
    LESS_EQUAL = 1
    GREATER = 2
    GREATER_EQUAL = 3

cdef int64_t NEVER = -(<int64_t> 1 << 62)


cdef struct Level:
    long event                # the last event of the sequence, -1 for the empty one
    long next                 # the event that is tried next
    long begin                # its partial trends: [begin, end)
    long end


cdef class Constructor:
    """All trends of all queries in one window and partition; see ``strategy.Counter``."""

    cdef Automaton automaton  # keeps the tables alive
    cdef const Tables *tables
    cdef int32_t *leave_begin  # state -> transitions that leave it [leave_begin[p], leave_begin[p + 1])
    cdef int32_t *leaving      # transition, by the state it leaves
    cdef int32_t *target_of    # transition -> state that it enters
    cdef int32_t *ends_begin   # state -> finals there [ends_begin[p], ends_begin[p + 1])
    cdef int32_t *ends         # finals, by state
    cdef int32_t *query_of     # final -> its query
    cdef list held             # (events, steps, masks, values) of every feed
    cdef const double **row    # event -> its values
    cdef int64_t *step
    cdef uint64_t *mask
    cdef int64_t *before       # guard * events + event -> the last match of the guard before the event, NEVER if none
    cdef int64_t *last         # guard -> its last match
    cdef long events
    cdef Level *levels
    cdef int32_t *state        # partial trend -> its state
    cdef double *sums          # partial trend * components -> its sums
    cdef long room
    cdef double *totals        # query * (1 + components) -> over all trends
    cdef readonly long steps   # pairs of a partial trend and an event that might follow

    def __cinit__(self, Automaton automaton):
        cdef int transition, target, state, count, query, final, finals
        self.automaton = automaton
        self.tables = &automaton.tables
        self.held = []
        count = self.tables.source_begin[self.tables.states]
        self.leave_begin = <int32_t *> calloc(self.tables.states + 1, sizeof(int32_t))
        self.leaving = <int32_t *> calloc(count + 1, sizeof(int32_t))
        self.target_of = <int32_t *> calloc(count + 1, sizeof(int32_t))
        finals = self.tables.final_begin[self.tables.queries]
        self.ends_begin = <int32_t *> calloc(self.tables.states + 1, sizeof(int32_t))
        self.ends = <int32_t *> calloc(finals + 1, sizeof(int32_t))
        self.query_of = <int32_t *> calloc(finals + 1, sizeof(int32_t))
        if not (self.leave_begin and self.leaving and self.target_of and self.ends_begin and self.ends
                and self.query_of):
            raise MemoryError
        for target in range(self.tables.states):
            for transition in range(self.tables.source_begin[target], self.tables.source_begin[target + 1]):
                self.target_of[transition] = target
        count = 0
        for state in range(self.tables.states):
            for transition in range(self.tables.source_begin[self.tables.states]):
                if self.tables.source_of[transition] == state:
                    self.leaving[count] = transition
                    count += 1
            self.leave_begin[state + 1] = count
        for query in range(self.tables.queries):
            for final in range(self.tables.final_begin[query], self.tables.final_begin[query + 1]):
                self.query_of[final] = query
        count = 0
        for state in range(self.tables.states):
            for final in range(finals):
                if self.tables.final_state[final] == state:
                    self.ends[count] = final
                    count += 1
            self.ends_begin[state + 1] = count

    def __dealloc__(self):
        free(self.leave_begin)
        free(self.leaving)
        free(self.target_of)
        free(self.ends_begin)
        free(self.ends)
        free(self.query_of)
        self.forget()

    cdef void forget(self) noexcept:
        free(self.row)
        free(self.step)
        free(self.mask)
        free(self.before)
        free(self.last)
        free(self.levels)
        free(self.state)
        free(self.sums)
        free(self.totals)

    def feed(self, const int64_t[::1] events, const int64_t[::1] steps, const uint64_t[::1] masks,
             const double[:, ::1] values):
        """Keep the events of these numbers until the window is over; see ``strategy.Counter``."""
        self.held.append((events, steps, masks, values))

    cdef int gather(self) except -1:
        """Put all events side by side, and each guard's last match before each of them."""
        cdef const int64_t[::1] events
        cdef const int64_t[::1] steps
        cdef const uint64_t[::1] masks
        cdef const double[:, ::1] values
        cdef long count = sum(len(each[0]) for each in self.held), at = 0, place
        cdef int guard
        self.row = <const double **> malloc((count + 1) * sizeof(double *))
        self.step = <int64_t *> malloc((count + 1) * sizeof(int64_t))
        self.mask = <uint64_t *> malloc((count + 1) * sizeof(uint64_t))
        self.before = <int64_t *> malloc((count * self.tables.guards + 1) * sizeof(int64_t))
        self.last = <int64_t *> malloc((self.tables.guards + 1) * sizeof(int64_t))
        self.levels = <Level *> malloc((count + 2) * sizeof(Level))
        self.totals = <double *> calloc(self.tables.queries * (1 + self.tables.components), sizeof(double))
        if not (self.row and self.step and self.mask and self.before and self.last and self.levels and self.totals):
            raise MemoryError
        self.events = count
        for events, steps, masks, values in self.held:
            for place in range(events.shape[0]):
                self.row[at] = &values[events[place], 0]
                self.step[at] = steps[events[place]]
                self.mask[at] = masks[events[place]]
                at += 1
        for guard in range(self.tables.guards):
            self.last[guard] = NEVER
            place = 0
            for at in range(count):
                while self.step[place] < self.step[at]:
                    if self.mask[place] >> self.tables.guard_role[guard] & 1:
                        self.last[guard] = self.step[place]
                    place += 1
                self.before[guard * count + at] = self.last[guard]
            for at in range(place, count):
                if self.mask[at] >> self.tables.guard_role[guard] & 1:
                    self.last[guard] = self.step[at]
        return 0

    cdef int reserve(self, long room) except -1 nogil:
        cdef void *moved
        if room > self.room:
            room = max(2 * self.room, room + 64)
            moved = realloc(self.state, room * sizeof(int32_t))
            if moved:
                self.state = <int32_t *> moved
                moved = realloc(self.sums, (room * self.tables.components + 1) * sizeof(double))
            if not moved:
                raise MemoryError
            self.sums = <double *> moved
            self.room = room
        return 0

    cdef int construct(self) except -1 nogil:
        """Depth first through all sequences of events that are a partial trend of some query."""
        cdef long depth = 0, event, end
        cdef Level *level
        self.reserve(1)
        self.state[0] = START_STATE
        for event in range(self.tables.components):
            self.sums[event] = 0
        self.levels[0] = Level(-1, 0, 0, 1)
        while depth >= 0:
            level = &self.levels[depth]
            if level.next == self.events:
                depth -= 1
                continue
            event = level.next
            level.next += 1
            if level.event >= 0 and self.step[event] == self.step[level.event]:
                continue
            end = self.extend(level, event)
            if end > level.end:
                depth += 1
                self.levels[depth] = Level(event, event + 1, level.end, end)
        return 0

    cdef long extend(self, Level *level, long event) except -1 nogil:
        """The partial trends of a sequence with one more event, written behind its own; where they end."""
        cdef long trend, end = level.end
        cdef int leave, transition, target, component, column
        cdef const Tables *tables = self.tables
        cdef double x
        for trend in range(level.begin, level.end):
            for leave in range(self.leave_begin[self.state[trend]], self.leave_begin[self.state[trend] + 1]):
                transition = self.leaving[leave]
                target = self.target_of[transition]
                self.steps += 1
                if not self.mask[event] >> tables.role_of[target] & 1:
                    continue
                if not self.passes(transition, level.event, event):
                    continue
                self.reserve(end + 1)
                self.state[end] = target
                for component in range(tables.components):
                    column = tables.adds[component * tables.states + target]
                    x = 0 if column == NO_COLUMN else self.row[event][column]
                    self.sums[end * tables.components + component] = (
                        self.sums[trend * tables.components + component] + (x if x == x else 0)
                    )
                self.count(end, event)
                end += 1
        return end

    cdef bint passes(self, int transition, long earlier, long later) noexcept nogil:
        """Whether guards and adjacent predicates let the later event follow."""
        cdef const Tables *tables = self.tables
        cdef uint64_t guards = tables.source_guards[transition]
        cdef int64_t since = self.step[earlier] if earlier >= 0 else NEVER
        cdef int guard, pair
        cdef double left, right
        for guard in range(tables.guards):
            if guards >> guard & 1 and self.before[guard * self.events + later] > since:
                return False
        for pair in range(tables.pair_begin[transition], tables.pair_begin[transition + 1]):
            left = self.row[earlier][tables.kept_column[tables.pairs[3 * pair]]]
            right = self.row[later][tables.pairs[3 * pair + 2]]
            if not compares(left, tables.pairs[3 * pair + 1], right):
                return False
        return True

    cdef void count(self, long trend, long event) noexcept nogil:
        """The second step: a trend that is complete goes into the aggregates of its queries."""
        cdef const Tables *tables = self.tables
        cdef int state = self.state[trend], place, final, guard, component
        cdef bint allowed
        cdef double *totals
        for place in range(self.ends_begin[state], self.ends_begin[state + 1]):
            final = self.ends[place]
            allowed = True
            for guard in range(tables.guards):
                if tables.final_guards[final] >> guard & 1 and self.last[guard] > self.step[event]:
                    allowed = False
            if allowed:
                totals = self.totals + self.query_of[final] * (1 + tables.components)
                totals[0] += 1
                for component in range(tables.components):
                    totals[1 + component] += self.sums[trend * tables.components + component]

    def result(self):
        """Construct, aggregate, and give the sums of each query; see ``strategy.Counter``."""
        cdef int query, array, width = 1 + self.tables.components
        self.gather()
        with nogil:
            self.construct()
        return [
            ([self.totals[query * width + array] for array in range(width)], 0)
            for query in range(self.tables.queries)
        ]


cdef bint compares(double left, int operator, double right) noexcept nogil:
    if operator == LESS:
        return left < right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == GREATER:
        return left > right
    if operator == GREATER_EQUAL:
        return left >= right
    return left == right
