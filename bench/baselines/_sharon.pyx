"""SHARON: every Kleene pattern flattened to sequences of each length up to the longest match, aggregated online.

S[q][j] sums the aggregates of all partial trends of j events that stand in state q: the prefix counter of one sequence
of fixed length. An event that enters q adds S[p][j] to S[q][j + 1] for every j, so a step costs the length of the
longest match. Counters of a common prefix are shared by all queries and all lengths, the states of all queries having
been merged before. Numbers are doubles under one exponent per state, as in ``_greta.pyx``.

Sources: Poppe et al., "Sharon" (ICDE'18); flattened as HAMLET (SIGMOD'21) §5.1 does for the comparison.
"""

import cython

from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from bench.baselines._automaton cimport (
    DOWN_BITS, LARGE, NO_COLUMN, START_STATE, Automaton, Tables, hb_scale, hb_shift_add, hb_shift_add_scaled,
)


@cython.no_gc_clear  # the automaton must still be there when the sums of its states are freed
cdef class Counters:
    """The prefix counters of all queries in one window and partition; see ``strategy.Counter``."""

    cdef Automaton automaton  # keeps the tables alive
    cdef const Tables *tables
    cdef double **sums        # state * arrays + array -> by length; array 0 counts, the others are components
    cdef double **added       # the same for what the current step adds, where it cannot be added at once
    cdef long *reach          # state -> length of the longest partial trend in it, -1 where there is none
    cdef long *reached        # the same after the current step, 0 where the step does not touch the state
    cdef long longest         # the largest reach
    cdef long capacity
    cdef int arrays
    cdef int *exponent        # state -> power of two by which its sums are multiplied
    cdef readonly long steps  # counters that were added to

    def __cinit__(self, Automaton automaton):
        self.automaton = automaton
        self.tables = &automaton.tables
        self.arrays = 1 + self.tables.components
        self.sums = <double **> calloc(self.tables.states * self.arrays, sizeof(double *))
        self.added = <double **> calloc(self.tables.states * self.arrays, sizeof(double *))
        self.reach = <long *> calloc(self.tables.states, sizeof(long))
        self.reached = <long *> calloc(self.tables.states, sizeof(long))
        self.exponent = <int *> calloc(self.tables.states, sizeof(int))
        if not (self.sums and self.added and self.reach and self.reached and self.exponent):
            raise MemoryError
        for state in range(1, self.tables.states):
            self.reach[state] = -1
        self.reserve(64)
        self.sums[START_STATE][0] = 1.0

    def __dealloc__(self):
        cdef int place
        for place in range(self.tables.states * self.arrays):
            if self.sums:
                free(self.sums[place])
            if self.added:
                free(self.added[place])
        free(self.sums)
        free(self.added)
        free(self.reach)
        free(self.reached)
        free(self.exponent)

    cdef int reserve(self, long capacity) except -1 nogil:
        """Room for partial trends of fewer than so many events."""
        cdef int place
        for place in range(self.tables.states * self.arrays):
            self.widen(&self.sums[place], capacity)
            self.widen(&self.added[place], capacity)
        self.capacity = capacity
        return 0

    cdef int widen(self, double **array, long capacity) except -1 nogil:
        cdef void *moved = realloc(array[0], capacity * sizeof(double))
        if not moved:
            raise MemoryError
        array[0] = <double *> moved
        memset(array[0] + self.capacity, 0, (capacity - self.capacity) * sizeof(double))
        return 0

    def feed(self, const int64_t[::1] events, const int64_t[::1] steps, const uint64_t[::1] masks,
             const double[:, ::1] values):
        """Take the events of these numbers, in order, whole steps at a time; see ``strategy.Counter``."""
        cdef long begin = 0, end, count = events.shape[0]
        with nogil:
            while begin < count:
                end = begin + 1
                while end < count and steps[events[end]] == steps[events[begin]]:
                    end += 1
                if self.longest + 2 >= self.capacity:
                    self.reserve(2 * self.capacity)
                if end == begin + 1 and self.independent(masks[events[begin]]):
                    self.arrive(masks[events[begin]], &values[events[begin], 0], self.sums)
                else:
                    while begin < end:
                        self.arrive(masks[events[begin]], &values[events[begin], 0], self.added)
                        begin += 1
                    self.commit()
                begin = end
                self.settle()

    cdef bint independent(self, uint64_t mask) noexcept nogil:
        """Whether no state that the event enters is read for another one, so that sums may be added in place."""
        cdef int state, transition, source
        cdef const Tables *tables = self.tables
        for state in range(1, tables.states):
            if not mask >> tables.role_of[state] & 1:
                continue
            for transition in range(tables.source_begin[state], tables.source_begin[state + 1]):
                source = tables.source_of[transition]
                if source != START_STATE and source != state and mask >> tables.role_of[source] & 1:
                    return False
        return True

    cdef void arrive(self, uint64_t mask, const double *values, double **into) noexcept nogil:
        """Add what an event adds to every state that it may enter, at every length."""
        cdef int state, source, transition, component, column
        cdef double x
        cdef const Tables *tables = self.tables
        for state in range(1, tables.states):
            if not mask >> tables.role_of[state] & 1:
                continue
            for transition in range(tables.source_begin[state], tables.source_begin[state + 1]):
                source = tables.source_of[transition]
                self.reached[state] = max(self.reached[state], self.reach[source] + 1)
                if self.reach[source] >= 0 and self.exponent[source] > self.exponent[state]:
                    self.scale_down(state, self.exponent[source] - self.exponent[state])
            for component in range(tables.components):
                column = tables.adds[component * tables.states + state]
                x = 0 if column == NO_COLUMN else values[column]
                for transition in range(tables.source_begin[state], tables.source_begin[state + 1]):
                    self.extend(into, state, tables.source_of[transition], 1 + component, x if x == x else 0)
            for transition in range(tables.source_begin[state], tables.source_begin[state + 1]):
                self.extend(into, state, tables.source_of[transition], 0, 0)

    cdef void extend(self, double **into, int state, int source, int array, double x) noexcept nogil:
        """One transition at every length; sums of a component come before the counts that they read."""
        cdef int arrays = self.arrays
        cdef long length = self.reach[source] + 1
        cdef double factor = ldexp(1.0, self.exponent[source] - self.exponent[state])
        if factor == 1.0:
            hb_shift_add(into[state * arrays + array], self.sums[source * arrays + array], length)
        else:
            hb_shift_add_scaled(into[state * arrays + array], self.sums[source * arrays + array], factor, length)
        self.steps += length
        if array and x:
            hb_shift_add_scaled(into[state * arrays + array], self.sums[source * arrays], x * factor, length)
            self.steps += length

    cdef void commit(self) noexcept nogil:
        """Add what the events of one time have gathered."""
        cdef int state, array
        cdef long j
        cdef double *sums
        cdef double *added
        for state in range(1, self.tables.states):
            if self.reached[state]:
                for array in range(self.arrays):
                    sums, added = self.sums[state * self.arrays + array], self.added[state * self.arrays + array]
                    for j in range(self.longest + 2):
                        sums[j] += added[j]
                        added[j] = 0

    cdef void settle(self) noexcept nogil:
        """After a step: how long the trends are now, and is a sum so large that its state must be scaled down?"""
        cdef int state, place
        cdef bint large
        for state in range(1, self.tables.states):
            if self.reached[state]:
                self.reach[state] = max(self.reach[state], self.reached[state])
                self.longest = max(self.longest, self.reach[state])
                self.reached[state] = 0
                large = False
                for place in range(state * self.arrays, (state + 1) * self.arrays):
                    large = large or self.has_large(self.sums[place], self.reach[state])
                if large:
                    self.scale_down(state, DOWN_BITS)

    cdef void scale_down(self, int state, int bits) noexcept nogil:
        cdef int place
        for place in range(state * self.arrays, (state + 1) * self.arrays):
            hb_scale(self.sums[place], ldexp(1.0, -bits), self.reach[state] + 1)
            hb_scale(self.added[place], ldexp(1.0, -bits), self.longest + 2)
        self.exponent[state] += bits

    cdef bint has_large(self, const double *sums, long longest) noexcept nogil:
        """Whether some sum is large; every eighth is looked at, since neighbours differ by far less than 2^90."""
        cdef long j
        for j in range(0, longest + 1, 8):
            if sums[j] > LARGE or sums[j] < -LARGE:
                return True
        return False

    def result(self):
        """Sums over all trends of each query, and their exponent; see ``strategy.Counter``."""
        cdef int query, final, array, state, exponent
        cdef long j
        cdef double *sums
        cdef double factor
        found = []
        for query in range(self.tables.queries):
            exponent = 0
            for final in range(self.tables.final_begin[query], self.tables.final_begin[query + 1]):
                exponent = max(exponent, self.exponent[self.tables.final_state[final]])
            totals = [0.0] * self.arrays
            for final in range(self.tables.final_begin[query], self.tables.final_begin[query + 1]):
                state = self.tables.final_state[final]
                factor = ldexp(1.0, self.exponent[state] - exponent)
                for array in range(self.arrays):
                    sums = self.sums[state * self.arrays + array]
                    for j in range(1, self.longest + 1):
                        totals[array] += factor * sums[j]
            found.append((totals, exponent))
        return found
