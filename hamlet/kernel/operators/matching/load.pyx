"""The tables of the matching operator, read from those that the planner has written."""

import numpy as np

from libc.stdint cimport int64_t
from libc.stdlib cimport malloc

from hamlet.kernel.expression cimport Program
from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.spans cimport lay_slots
from hamlet.kernel.operators.matching.tables cimport (
    Arrival,
    Calendar,
    EventSet,
    GuardArrival,
    StateTable,
    Store,
    Table,
    Taking,
    Traced,
    ValueSet,
    Way,
    kept_words,
)
from hamlet.kernel.plan cimport Component, Predicate
from hamlet.kernel.plan cimport Arrival as Binding


cdef void load_table(Table* t, object table, bint apart, Interface owner) except *:
    """Take over the tables of a query (`hamlet.planner.matching_tables`); `owner` keeps alive what they point into."""
    cdef Predicate* predicate
    cdef Program program
    cdef int i, variable
    cdef Py_ssize_t at = 0
    states = [*table.states]
    if apart:  # in the second half no trend ends
        states += [(*row[:5], 0, 0, 0) for row in table.states]
    parts = (
        table.components, table.ways, table.arrivals, states, table.guard_arrivals, table.stores, table.sets,
        table.event_components, table.traced, table.event_sets, table.takings,
    )
    flat = [[number for row in part for number in row] for part in parts]
    edges = [edge for pair in table.guard_sets for edge in pair]
    flat += [table.end_guards, table.members, table.guard_first, edges]
    cdef int* start[15]
    t.table = <int*> malloc((sum(map(len, flat)) + 1) * sizeof(int))
    if t.table == NULL:
        raise MemoryError
    for i, part in enumerate(flat):
        start[i] = t.table + at
        for number in part:
            t.table[at] = number
            at += 1
    t.cells.component, t.way, t.arrival = <Component*> start[0], <Way*> start[1], <Arrival*> start[2]
    t.state, t.guard_arrival, t.store = <StateTable*> start[3], <GuardArrival*> start[4], <Store*> start[5]
    t.value_set, t.traced, t.event_set = <ValueSet*> start[6], <Traced*> start[8], <EventSet*> start[9]
    t.taking, t.end_guards, t.member = <Taking*> start[10], start[11], start[12]
    t.guard_first, t.guard_set = start[13], start[14]
    t.traces, t.event_sets, t.takings = len(table.traced), len(table.event_sets), len(table.takings)
    t.record_words = 1 + max((kept_words(end - first) for _, first, end in table.traced), default=0)
    t.cells.components = len(table.components)
    t.cells.fixed, t.cells.wide, t.cells.exact = table.fixed, table.wide, table.exact
    t.events = t.cells
    t.events.component = <Component*> start[7]
    t.semantics = table.semantics
    t.within, t.slide, t.span, t.gap = table.within, table.slide, table.span, table.gap
    if table.calendar is not None:
        read_calendar(&t.calendar, table.calendar, owner)
    t.delay, t.keeps, t.pane, t.session_end = table.delay, table.keeps, table.pane, table.session_end
    t.states, t.end_count, t.guards = len(states), len(table.end_guards), len(table.guard_first) - 1
    t.own_states = len(table.states)
    t.guard_states, t.stores = table.guard_first[len(table.guard_first) - 1], len(table.stores)
    t.sets = len(table.sets)
    t.registers = sum(approximate for _, _, approximate, *_ in table.sets)
    t.exact_sets = t.sets - t.registers
    t.lists = t.states + t.end_count + 1 + t.stores
    t.looks_back = t.stores > 0 and not table.slides
    t.variables = table.variables
    bindings = np.zeros((table.variables + 1) * sizeof(Binding), np.uint8)
    t.binding = <Binding*> owner.hold(bindings)
    for variable in range(table.variables):
        t.binding[variable].variable = variable
        t.binding[variable].components_end = t.cells.components
    if table.slides and not apart:
        lay_slots(t, table, owner)
    t.predicate = <Predicate*> owner.hold(np.zeros((len(table.predicates) + 1) * sizeof(Predicate), np.uint8))
    for i, (program, vector, scalar) in enumerate(table.predicates):
        owner.held.append(program)
        predicate = &t.predicate[i]
        predicate.code = program.code
        predicate.vector, predicate.vectors = vector
        predicate.scalar, predicate.scalars = scalar


cdef void read_calendar(Calendar* c, object calendar, Interface owner) except *:
    """Take over when a clock is changed, and its periods."""
    cdef int64_t[::1] since, offset, shown
    since, offset, shown, c.period, c.origin, c.first = calendar
    c.zone_changes = len(since)
    c.since, c.offset, c.shown = &since[0], &offset[0], &shown[0]
    owner.held += [since, offset, shown]
