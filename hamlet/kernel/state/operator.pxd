"""Operators behind one interface: a table of functions for each, and what they are handed.

A *segment* is what one key has next: events of one time, a burst, or a whole window. Its *runs* are events that belong
together, either as rows or already reduced to what their values come to. Who takes it is said by the plan, as numbers:
`Core.operator_of` names for each query the operator that has it by itself, `Core.unit` lists what is fed.

A *unit* of ``simd`` is a band of queries side by side, of the others one query; a burst is for several of these, and
they are handed over together (`Segment.member`). No function raises, and none needs the
interpreter; an int that is returned is a Failure (`plan.pxd`).
"""

from libc.stdint cimport int64_t, uint8_t

from hamlet.kernel.plan cimport Entry
from hamlet.kernel.radix_sort cimport Event
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport MOST_OPERATORS, Core, Graphlet, Member
from hamlet.kernel.state.query_state cimport State

cdef struct Run:
    int kind               # class of the first event
    int role               # of a burst: the local predicate that accepts its events
    int64_t events
    const int64_t* rows    # events of one time, none of which extends another, with values to be read; or NULL...
    const Tally* tally     # ...[columns] for events one after the other: number, sum, least and greatest of values

cdef struct Segment:
    int64_t key
    int64_t time           # of its first event
    int runs               # one per role for a burst, else one
    Run* run
    const Entry* entry     # of one event: what it does to the query; NULL where that is to be looked up
    Graphlet* graphlet     # whose burst it is; NULL for none
    const int* member      # [members] of it, their places, of one role: the queries that take the burst by themselves
    int members
    bint sought            # of a burst: whether `find` has been asked who has trends that it extends
    bint tells             # where it has not: whether `consume` is to say it, as `find` would have done
    const Event* event     # [events] of a whole window, or of a pane; NULL for none
    Py_ssize_t events      # of a pane: becomes how many of them, from the first on, were taken
    const int64_t* orders  # orders rows of one time, or NULL
    int64_t window
    bint taken             # set to whether a whole window was taken; where it was not, nothing has been done

cdef struct Bytes:         # what is written
    uint8_t* byte          # a null pointer: only counted
    Py_ssize_t count

cdef struct Operator:      # NULL where an operator has no such function
    int (*consume)(Core* k, int unit, Segment* segment) noexcept nogil
    # which members from `first` to `end` have trends that the burst of a graphlet extends; of a band, all its queries
    int (*find)(Core* k, int unit, Graphlet* g, int first, int end) noexcept nogil
    # windows of a key that end at or before a time; what is held of them is written
    int (*close)(Core* k, int unit, int64_t key, int64_t time) noexcept nogil
    # the row of a window that closes in a state that the operator has packed
    int (*deliver)(Core* k, int unit, State* s, int64_t key, int64_t window) noexcept nogil
    # a key's numbers to the next wider operator; of a packed state to `scalar`
    int (*promote)(Core* k, int unit, int64_t key) noexcept nogil
    void (*checkpoint)(Core* k, int unit, int64_t key, Bytes* to) noexcept nogil
    # that a query holds for a key
    Py_ssize_t (*bytes)(const Core* k, int query, Py_ssize_t key) noexcept nogil

cdef Operator[MOST_OPERATORS] operators

cdef int number_of(str name) except -1


cdef inline bint in_block(const Core* k, const Graphlet* g, const Member* member) noexcept nogil:
    """Whether the burst under way finds a member in a block."""
    return g.in_blocks and k.band_of[member.query] >= 0 and k.band[k.band_of[member.query]].reached


cdef inline int unpacked(Core* k, int query, int64_t key) noexcept nogil:
    """Let the cells of a state hold sums, whoever packed them. Returns a Failure."""
    cdef const State* s = k.state[key * k.queries + query]
    return operators[s.packed].promote(k, query, key) if s != NULL and s.packed else 0
