"""GRETA (VLDB'17): every event is a vertex that keeps the aggregates of all trends that end in it.

An event that may enter a state sums over all vertices of the states before it: O(n^2) in the matched events, whatever
the predicates are. One graph is one query, one window and one partition. Numbers are doubles under one exponent per
state: when a sum passes 2^300 all vertices of the state are scaled down, and what becomes nothing by it was below
2^-700 of that sum.
"""

import cython

from libc.math cimport fabs, ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

from bench.baselines._automaton cimport (
    DOWN, DOWN_BITS, LARGE, NO_COLUMN, START_STATE, Automaton, Tables, hb_scale, hb_sum, hb_sum_where,
)


cdef struct Vertices:
    long size               # vertices of the state
    long closed             # those of steps before the current one
    long capacity
    int64_t *step
    double **sums           # count, components, kept attributes: one array each


@cython.no_gc_clear  # the automaton must still be there when the vertices of its states are freed
cdef class Graph:
    """The graph of one query, window and partition; see ``strategy.Counter``."""

    cdef Automaton automaton  # keeps the tables alive
    cdef const Tables *tables
    cdef Vertices *vertices
    cdef long *first          # guard, state -> the first vertex that its last match does not forbid
    cdef char *pending        # guard -> whether it matched in the current step
    cdef char *matched        # guard -> whether it has matched before the current step
    cdef int *exponent        # state -> power of two by which its sums are multiplied
    cdef double *sums         # of the arriving event
    cdef int power            # and the power of two by which they are multiplied
    cdef int64_t step
    cdef readonly long steps  # pairs of events that were looked at

    def __cinit__(self, Automaton automaton):
        cdef const Tables *tables = &automaton.tables
        cdef int arrays = 1 + tables.components + tables.kept
        self.automaton = automaton
        self.tables = tables
        self.vertices = <Vertices *> calloc(tables.states, sizeof(Vertices))
        self.first = <long *> calloc(tables.guards * tables.states + 1, sizeof(long))
        self.pending = <char *> calloc(tables.guards + 1, 1)
        self.matched = <char *> calloc(tables.guards + 1, 1)
        self.sums = <double *> calloc(arrays, sizeof(double))
        self.exponent = <int *> calloc(tables.states, sizeof(int))
        if not (self.exponent and self.vertices and self.first and self.pending and self.matched and self.sums):
            raise MemoryError
        for state in range(tables.states):
            self.vertices[state].sums = <double **> calloc(arrays, sizeof(double *))
            if not self.vertices[state].sums:
                raise MemoryError
        self.step = -(<int64_t> 1 << 62)

    def __dealloc__(self):
        cdef int state, array
        if self.vertices:
            for state in range(self.tables.states):
                if self.vertices[state].sums:
                    for array in range(1 + self.tables.components + self.tables.kept):
                        free(self.vertices[state].sums[array])
                free(self.vertices[state].sums)
                free(self.vertices[state].step)
        free(self.vertices)
        free(self.first)
        free(self.pending)
        free(self.matched)
        free(self.sums)
        free(self.exponent)

    def feed(self, const int64_t[::1] events, const int64_t[::1] steps, const uint64_t[::1] masks,
             const double[:, ::1] values):
        """Take the events of these numbers, in order; see ``strategy.Counter``."""
        cdef long at
        cdef int64_t event
        cdef int state
        with nogil:
            for at in range(events.shape[0]):
                event = events[at]
                if steps[event] != self.step:
                    self.close_step()
                    self.step = steps[event]
                for state in range(1, self.tables.states):
                    if masks[event] >> self.tables.role_of[state] & 1:
                        self.arrive(state, &values[event, 0])
                self.note_guards(masks[event])

    cdef int arrive(self, int state, const double *values) except -1 nogil:
        """Add a vertex: its sums read all vertices before it (GRETA, Theorem 4.3)."""
        cdef const Tables *tables = self.tables
        cdef int transition, component, array
        cdef double x
        for array in range(1 + tables.components):
            self.sums[array] = 0
        self.power = 0
        for transition in range(tables.source_begin[state], tables.source_begin[state + 1]):
            self.read(transition, values)
        for component in range(tables.components):
            if tables.adds[component * tables.states + state] != NO_COLUMN:
                x = values[tables.adds[component * tables.states + state]]
                self.sums[1 + component] += (x if x == x else 0) * self.sums[0]
        if self.sums[0] == 0:
            return 0
        for array in range(1 + tables.components):
            while fabs(ldexp(self.sums[array], self.power - self.exponent[state])) > LARGE:
                self.scale_down(state)
        self.append(state, values)
        return 0

    cdef void read(self, int transition, const double *values) noexcept nogil:
        """Add what a transition's source holds for the arriving event."""
        cdef const Tables *tables = self.tables
        cdef int source = tables.source_of[transition], array, begin, end
        cdef double factor = 1.0, found
        cdef uint64_t guards = tables.source_guards[transition]
        cdef Vertices *vertices = &self.vertices[source]
        cdef long first = self.allowed(source, guards)
        if source == START_STATE:
            self.sums[0] += ldexp(1.0, -self.power) if first == 0 else 0
            return
        if first == vertices.closed:
            return
        if self.exponent[source] > self.power:
            for array in range(1 + tables.components):
                self.sums[array] = ldexp(self.sums[array], self.power - self.exponent[source])
            self.power = self.exponent[source]
        elif self.exponent[source] < self.power:
            factor = ldexp(1.0, self.exponent[source] - self.power)
        begin, end = tables.pair_begin[transition], tables.pair_begin[transition + 1]
        self.steps += vertices.closed - first
        for array in range(1 + tables.components):
            if begin == end:
                found = hb_sum(vertices.sums[array] + first, vertices.closed - first)
            else:
                found = hb_sum_where(
                    vertices.sums[array] + first,
                    vertices.sums[1 + tables.components + tables.pairs[3 * begin]] + first,
                    tables.pairs[3 * begin + 1],
                    values[tables.pairs[3 * begin + 2]],
                    vertices.closed - first,
                )
            self.sums[array] += factor * found

    cdef long allowed(self, int state, uint64_t guards) noexcept nogil:
        """The first vertex of a state that no match of the guards has cut off; for the start 1 where one has."""
        cdef long first = 0
        cdef int guard
        for guard in range(self.tables.guards):
            if guards >> guard & 1:
                if state == START_STATE:
                    first = max(first, <long> self.matched[guard])
                else:
                    first = max(first, self.first[guard * self.tables.states + state])
        return first

    cdef int append(self, int state, const double *values) except -1 nogil:
        cdef Vertices *vertices = &self.vertices[state]
        cdef int kept, arrays = 1 + self.tables.components
        if vertices.size == vertices.capacity:
            self.grow(vertices)
        vertices.step[vertices.size] = self.step
        for kept in range(arrays):
            vertices.sums[kept][vertices.size] = ldexp(self.sums[kept], self.power - self.exponent[state])
        for kept in range(self.tables.kept):
            vertices.sums[arrays + kept][vertices.size] = values[self.tables.kept_column[kept]]
        vertices.size += 1
        return 0

    cdef int grow(self, Vertices *vertices) except -1 nogil:
        cdef long capacity = max(<long> 64, 2 * vertices.capacity)
        cdef void *moved = realloc(vertices.step, capacity * sizeof(int64_t))
        cdef int array
        if not moved:
            raise MemoryError
        vertices.step = <int64_t *> moved
        for array in range(1 + self.tables.components + self.tables.kept):
            moved = realloc(vertices.sums[array], capacity * sizeof(double))
            if not moved:
                raise MemoryError
            vertices.sums[array] = <double *> moved
        vertices.capacity = capacity
        return 0

    cdef void scale_down(self, int state) noexcept nogil:
        cdef int array
        for array in range(1 + self.tables.components):
            hb_scale(self.vertices[state].sums[array], DOWN, self.vertices[state].size)
        self.exponent[state] += DOWN_BITS

    cdef void note_guards(self, uint64_t mask) noexcept nogil:
        cdef int guard
        for guard in range(self.tables.guards):
            if mask >> self.tables.guard_role[guard] & 1:
                self.pending[guard] = 1

    cdef void close_step(self) noexcept nogil:
        """What arrived in the last step is seen from now on; a guard's match cuts off the vertices of earlier steps."""
        cdef int state, guard
        cdef long first
        cdef Vertices *vertices
        for state in range(self.tables.states):
            self.vertices[state].closed = self.vertices[state].size
        for guard in range(self.tables.guards):
            if not self.pending[guard]:
                continue
            self.pending[guard] = 0
            self.matched[guard] = 1
            for state in range(self.tables.states):
                vertices = &self.vertices[state]
                first = vertices.size
                while first > 0 and vertices.step[first - 1] == self.step:
                    first -= 1
                self.first[guard * self.tables.states + state] = first

    def result(self):
        """Sums over all trends, and their exponent; see ``strategy.Counter``."""
        cdef int final, array, state, exponent = 0
        cdef long first
        cdef Vertices *vertices
        self.close_step()
        sums = [0.0] * (1 + self.tables.components)
        for final in range(self.tables.final_begin[0], self.tables.final_begin[1]):
            exponent = max(exponent, self.exponent[self.tables.final_state[final]])
        for final in range(self.tables.final_begin[0], self.tables.final_begin[1]):
            state = self.tables.final_state[final]
            vertices = &self.vertices[state]
            first = self.allowed(state, self.tables.final_guards[final])
            for array in range(1 + self.tables.components):
                sums[array] += ldexp(
                    hb_sum(vertices.sums[array] + first, vertices.closed - first), self.exponent[state] - exponent
                )
        return [(sums, exponent)]
