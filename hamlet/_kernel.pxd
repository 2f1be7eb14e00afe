"""What a kernel knows and holds: its tables, its states, the batch under way; every part of the kernel works on it."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hamlet._budget cimport Account, take
from hamlet._burst cimport Tally
from hamlet._expression cimport Column
from hamlet._state cimport State
from hamlet._tables cimport Entry, Query

cdef enum:
    MOST_GRAPHLETS = 64  # per key; types beyond are processed event by event

cdef enum Standing:
    STRANGER
    MEMBER
    BANNED               # some class of the type does more to the query than one burst can

cdef struct Member:      # a query whose Kleene sub-pattern a graphlet serves
    int query
    int arrival
    int role             # its local predicate, counted over the graphlet
    bint loop            # whether its events may follow one another

cdef struct Graphlet:    # events of one type that queries bind to a Kleene sub-pattern (Def. 3.6)
    int members
    int roles
    Member* member       # [members]
    uint8_t* standing    # [queries] whether a query is a member, may become one, or must not
    int* role            # [roles] the role's number among all
    bint active          # a burst is under way
    int64_t key
    int64_t time         # of its first event
    int64_t border       # no window of a member opens or closes before
    int64_t events
    int64_t* rows        # [LONGEST_BURST] the events, where every query computes its own coefficients
    int kinds            # classes among the events
    int* kind            # [classes]
    int64_t* of_kind     # [classes] events of each
    Tally* tally         # [classes][columns]

cdef struct Due:
    int64_t time
    int64_t slot         # key * queries + query

cdef struct Calendar:    # when the next window of each state closes; a binary heap
    Py_ssize_t dues
    Py_ssize_t capacity
    Due* due

cdef struct Rows:        # of closed windows of one query
    Py_ssize_t count
    Py_ssize_t capacity
    Py_ssize_t words
    Py_ssize_t words_capacity
    int64_t* key
    int64_t* window
    int32_t* width
    uint64_t* word       # row after row, as many words as a cell of that width has

cdef struct Core:
    int queries
    Query* query         # [queries]
    Account* account     # of the run
    int64_t own          # bytes taken, but for those of the states
    Py_ssize_t keys
    State** state        # [keys][queries]
    int64_t states       # alive
    Calendar calendar
    Rows* rows           # [queries]
    int64_t step         # number of the step under way, from 1
    int64_t advanced     # windows that end at or before this time are closed and stay so
    # what events do
    int classes
    int entries
    int class_members
    Entry* entry         # entries of all classes
    int* entry_first     # class -> its first entry; [classes + 1]
    int* class_member
    # the batch under way
    const Column* columns
    const int32_t* class_of
    const int64_t* ranks
    uint64_t* scratch    # sums of the step under way
    Py_ssize_t scratch_words
    uint8_t* used        # [most arrivals] which sums of the step are set
    # where a Failure happened
    int failed_query
    int failed_predicate
    int failed_place
    Py_ssize_t failed_row
    # bursts
    bint sharing         # whether coefficients are computed once for all queries
    Graphlet graphlet[MOST_GRAPHLETS]
    int* class_graphlet  # class -> the graphlet that its events join, -1 for none
    uint64_t* class_roles  # class -> bits of the roles that accept it there
    uint64_t* class_ends   # class -> bits of the graphlets whose burst it ends
    uint64_t active      # bits of the graphlets with a burst under way
    int event_columns
    int* floating        # [columns]
    Tally* role_tally    # [64][columns] coefficients of the burst under way, per role
    int64_t role_events[64]
    # counted
    int64_t windows      # closed, per query and key, with trends or without
    int64_t most_bits    # bit length of the largest count delivered
    int64_t bursts
    int64_t graphlets    # bursts that some query had a trend to extend in
    int64_t shared_graphlets  # those that served two queries or more
    int64_t coefficients  # times that a burst's coefficients were computed
    int64_t snapshots    # times that they were applied to a query


cdef inline bint take_own(Core* k, Py_ssize_t bytes) noexcept nogil:
    """Count memory that is no state's, before it is allocated; False where the run may not take it."""
    if not take(k.account, bytes):
        return False
    k.own += bytes
    return True
