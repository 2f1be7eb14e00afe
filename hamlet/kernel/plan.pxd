"""The kernel's fixed tables: what `hamlet.planner.tables` writes, field by field.

Python validates, the kernel trusts. Index pairs ``x``, ``x_end`` are half-open ranges.
"""

from libc.stdint cimport int32_t, int64_t

from hamlet.kernel.expression cimport Code
from hamlet.memory.budget cimport Account

cdef enum ComponentKind:
    COUNT              # trends; limbs, always the first component, and the first of each beginning
    OCCURRENCES        # events bound to a variable (with a value, where a column is given); limbs
    SUM_INT            # limbs, two's complement
    SUM_DOUBLE         # scaled double
    PRESENT            # 1 where some trend has a value
    LEAST_INT          # (1 where there is one, value)
    GREATEST_INT
    LEAST_DOUBLE
    GREATEST_DOUBLE
    COUNT_SCALED       # COUNT and OCCURRENCES under numbers=float
    OCCURRENCES_SCALED

cdef enum SourceKind:
    FROM_START         # the empty trend: 1, unless a guard of the source has matched in the window
    FROM_CELL          # everything that stands in a state
    FROM_STORE         # single events that stand in a state

cdef enum Failure:
    NO_FAILURE = 0
    OUT_OF_MEMORY = 1
    OVERFLOW = 2
    TOO_MANY_GROUPS = 3  # of a count that trends are grouped by

cdef struct Component:
    int kind           # ComponentKind
    int variable       # the variable whose events it looks at, -1 for COUNT
    int column         # the event column of its values, -1 where every event counts
    int integer        # whether the column holds integers (a scaled sum of integers under numbers=float)
    int offset         # first word in a cell = offset + slope * width
    int slope
    int words          # its words = words + wide * width
    int wide
    int of             # the component that counts the trends which it measures
    int run            # how many scaled doubles follow one another from it on

cdef struct Source:
    int kind           # SourceKind
    int place          # FROM_CELL: cell (guards: state of the negated template); FROM_STORE: store; FROM_START: begin
    int guards         # guard set over the gap, -1 for none
    int predicate      # predicate on (earlier, later) event, -1 for none
    int index          # the index that answers it, -1 where the store is scanned

cdef struct Arrival:
    int variable       # the variable that the event is bound to
    int sources        # sources[sources : sources_end] are read
    int sources_end
    int cells          # members[cells : cells_end] are the cells that it is added to
    int cells_end
    int stores         # members[stores : stores_end] are the stores that keep it
    int stores_end
    int components     # components[components : components_end] measure its trends: all, or those of its beginning,
    int components_end  # of which the first counts them, as does then the first of all

cdef struct GuardArrival:
    int guard          # which negated pattern
    int state          # the state of its template, counted over all guards of the query
    int sources        # sources[sources : sources_end] are read
    int sources_end
    int store          # the store that keeps it for adjacent predicates, -1 for none
    int final          # 1 where a match may end here

cdef struct Output:    # a query whose sums another one keeps
    int query
    int finals         # sources[finals : finals_end] are summed at a window's end
    int finals_end
    int components     # member[components + i] is what its own i-th component is called here

cdef struct StoreTable:
    int columns        # members[columns : columns_end] are the event columns that its predicates read
    int columns_end
    int merging        # 1: no predicate looks at its nodes, so nodes that no guard can tell apart are one
    int guards         # the guard set of a merging store, -1 otherwise
    int starts         # 1: keeps starts of matches of a negated pattern, not aggregates

cdef struct Predicate:
    Code code
    int vector         # members[vector + i] is the store column of the program's i-th vector column
    int scalar         # members[scalar + i] is the event column of its i-th scalar column
    int vectors
    int scalars

cdef struct KeyProgram:  # computes one key of an index from one event
    Code code
    int columns        # member[columns + i] is the column of the program's i-th one: of the store, or of the events
    int count
    int floating       # 1 where the key is a double

cdef struct IndexTable:
    int store          # the store whose nodes it orders
    int guards         # the guard set of its transitions, -1 for none
    int keys           # keys of a node: all but an ordered one must be equal
    int ordered        # 1 where the last key is compared by order
    int inclusive      # 1 for <= and >=
    int reversed       # 1 for > and >=
    int earlier        # key[earlier + i] computes the i-th key of a node, key[later + i] that of the later event
    int later

cdef struct Query:
    int64_t within     # ticks
    int64_t slide      # ticks
    int windows        # most of them open at once
    int components
    int beginnings        # 1 where trends are told apart by how they begin, and counted for each beginning
    int scaled         # components that are scaled doubles
    int cells
    int stores
    int guards         # negated patterns
    int guard_states   # over all of them
    int arrivals
    int indexes
    int finals         # sources[finals : finals_end] are summed at a window's end
    int finals_end
    int outputs        # queries whose sums this one keeps
    int most_sources   # the most sources of an arrival, and of the finals
    int fixed          # words of a cell = fixed + wide * width
    int wide
    int exact          # counts are limbs
    int types          # event types that its trends are made of
    Component* component
    Source* source
    Arrival* arrival
    GuardArrival* guard_arrival
    StoreTable* store
    Predicate* predicate
    IndexTable* index
    KeyProgram* key
    int* member        # index lists of all tables
    int* guard_set     # guard set i is member[guard_set[2i] : guard_set[2i + 1]]
    int* simple        # guard -> 1 where every match is one event
    int* guard_first   # guard -> its first state
    int* cell_guards   # cell -> its guard set (all simple), -1 for none
    Output* output     # [outputs]
    int* table         # the memory of what the pointers to integers point to, where it is this query's own
    Account* account   # the memory of the run

cdef struct Entry:     # what one event class does to one query
    int query
    int arrivals       # class_member[arrivals : arrivals_end]
    int arrivals_end
    int guards         # class_member[guards : guards_end] are guard arrivals
    int guards_end
    int role           # the local predicate that accepts the event
    int type           # the event type
    int joins          # 1: a burst of the class's graphlet does it, not the single event
