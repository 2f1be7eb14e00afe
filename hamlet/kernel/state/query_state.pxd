"""What the kernel keeps for one query and one key.

**Cohorts.** A cohort is the windows that opened at one turn: what came before is in none of them and what comes after
in all, so their sums are equal until they close, and every cell exists once per cohort. A key with few events has few
cohorts, however many of its windows overlap. They are numbered in the order in which they open, and kept in a ring,
which grows.
**Headroom.** All limb vectors of a state are `width` limbs for counts, one more for occurrences and two more for sums.
`bits` bounds the bit length of every count; before a step adds, `width` is raised until no sum in it can overflow.
**Memory.** All that a state has allocated is in its `bytes` and in the account of the run; `claim` comes before the
allocation. A refused claim is an allocation that failed, and the account tells which of the two it was.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from hamlet.kernel.cells cimport Scale, words_of
from hamlet.kernel.expression cimport MACHINE_BLOCK, Column
from hamlet.kernel.plan cimport Query
from hamlet.memory.budget cimport ALLOCATION, take

cdef extern from "cpu_targets.h" nogil:
    void* allocate "hamlet_allocate"(size_t bytes)

cdef enum:
    FEW_COHORTS = 4        # a state has room for them from the beginning
    RECENT = 16          # nodes that an index keeps unsorted
    COLUMN = 9           # bytes of a kept value and of whether there is one
    SCAN_BLOCK = MACHINE_BLOCK  # nodes whose weights have one exponent

cdef struct Run:         # nodes of consecutive arrival, sorted by their keys
    Py_ssize_t count
    int64_t first_step   # of the earliest node
    int64_t last_step
    int64_t* number      # [count] which node of the store
    int64_t* key         # [count][keys]
    uint64_t* sum        # [count][cohorts][words of a cell] of all nodes up to here whose other keys are equal
    Py_ssize_t bytes     # allocated

cdef struct Index:       # a binary counter of runs: reading and adding cost O(log n) cells
    int runs
    int capacity
    Run* run             # [capacity] by arrival, sizes falling
    int64_t next         # number of the first node that is not in it
    int recent           # nodes in no run yet
    int64_t* recent_number  # [RECENT]
    int64_t* recent_key  # [RECENT][keys]
    Py_ssize_t room      # bytes allocated for the above, the runs' own arrays left out

cdef struct Store:
    Py_ssize_t head      # nodes head..count-1 are visible
    Py_ssize_t count
    Py_ssize_t pending   # nodes count..pending-1 belong to the step under way
    Py_ssize_t capacity
    int64_t base         # number of the node at place 0; a node keeps its number
    int64_t* step        # [capacity] the (latest) step of arrival
    int64_t* time        # [capacity] its time
    uint64_t* value      # [capacity][cohorts][words of a cell], or [capacity][2]: latest start (step, time)
    int64_t* data        # [columns][capacity]
    uint8_t* valid       # [columns][capacity]
    uint64_t gaps        # bit of each column: whether some value of it may not be there
    Py_ssize_t weighed   # nodes with weights, where a scan has asked for them
    Py_ssize_t weights   # room for so many
    double* weight       # [cohorts][scaled components][weights]
    Scale* scale         # [cohorts][scaled components][blocks of the weights]
    Py_ssize_t room      # bytes allocated for step, time and value

cdef struct State:       # one query and one key
    int64_t first        # cohorts first..last are open, none where last < first
    int64_t last
    int64_t lowest       # the lowest window that is open
    int64_t* until        # [cohorts] the last window of each; the first one is behind that of the cohort before
    int64_t border       # no window opens or closes before this time
    int64_t bits         # no count has more bits
    int cohorts          # room for so many
    int width            # limbs of a count
    int packed           # the operator that keeps the cells in a form of its own; 0 (`SCALAR`) where they hold sums
    bint scheduled       # an entry of the calendar points here
    uint64_t* cell       # [cohorts][cells][words of a cell]; cohort n is at n modulo their number, here and below
    Py_ssize_t words     # allocated words of cell
    Store* store         # [stores]
    Index* index         # [indexes]
    int64_t* start_step  # [guard_states] latest start of a partial match of a negated pattern, 0 for none
    int64_t* start_time
    int64_t* fresh_step  # [guard_states] the same for the step under way
    int64_t* fresh_time
    int64_t* killed      # [guards] latest start of a finished match, 0 for none
    int64_t* killed_time
    int64_t* begun       # [guards] the last step at which a match could begin
    int64_t bytes        # allocated, all of the above


cdef inline int cohort_at(const State* s, int64_t number) noexcept nogil:
    """Where the cohort of a number is kept."""
    return <int> (number % s.cohorts) if s.cohorts > 1 else 0


cdef inline uint64_t* cell_of(const Query* q, const State* s, int cohort, int cell) noexcept nogil:
    return s.cell + (<Py_ssize_t> cohort * q.cells + cell) * words_of(q, s.width)


cdef inline bint claim(const Query* q, State* s, Py_ssize_t bytes) noexcept nogil:
    """Count memory that a state is about to allocate; False where the run may not take it."""
    if not take(q.account, bytes):
        return False
    s.bytes += bytes
    return True


cdef inline void release(const Query* q, State* s, Py_ssize_t bytes) noexcept nogil:
    """Count memory that a state has freed."""
    take(q.account, -bytes)
    s.bytes -= bytes


cdef inline Py_ssize_t room_of(Py_ssize_t capacity, Py_ssize_t words) noexcept nogil:
    """Bytes of a store's steps, times and values, of so many words each; and of the heads of its five blocks."""
    return capacity * (2 + words) * sizeof(uint64_t) + 5 * ALLOCATION


cdef inline Py_ssize_t blocks_of(Py_ssize_t nodes) noexcept nogil:
    """How many blocks a scan of so many nodes has."""
    return (nodes + SCAN_BLOCK - 1) // SCAN_BLOCK


cdef inline Py_ssize_t weight_bytes(const Query* q, const State* s, Py_ssize_t weights) noexcept nogil:
    """Bytes of the weights of so many nodes and of their scales."""
    if weights == 0:
        return 0
    return s.cohorts * q.scaled * (weights * sizeof(double) + blocks_of(weights) * sizeof(Scale)) + 2 * ALLOCATION


cdef State* new_state(const Query* q) noexcept nogil
cdef void clear_state(const Query* q, State* s) noexcept nogil
cdef void free_state(const Query* q, State* s) noexcept nogil
cdef void replace_cells(const Query* q, State* s, uint64_t* cell, Py_ssize_t words) noexcept nogil
cdef int more_cohorts(const Query* q, State* s, int64_t cohorts) noexcept nogil
cdef int more_windows(const Query* q, State* s, int cohorts) noexcept nogil
cdef int widen(const Query* q, State* s, int64_t bits) noexcept nogil
cdef int convert_state(const Query* q, const Query* old, State* s) noexcept nogil
cdef int renew_indexes(const Query* q, State* s, int before) noexcept nogil
cdef uint64_t* append_node(
    const Query* q, State* s, int place, int64_t step, int64_t time, const Column* columns, Py_ssize_t row
) noexcept nogil
cdef void drop_weights(const Query* q, State* s, Store* store) noexcept nogil
cdef void forget_weights(const Query* q, State* s, int cohort) noexcept nogil
cdef void merge_nodes(const Query* q, State* s, int place) noexcept nogil
cdef bint told_apart(const Query* q, const State* s, int guards, int64_t earlier, int64_t later) noexcept nogil
cdef int64_t killed_before(const Query* q, const State* s, int guards) noexcept nogil
cdef Py_ssize_t first_alive(const Store* store, int64_t step) noexcept nogil
cdef bint start_alive(const Query* q, const State* s, int guards, int64_t number) noexcept nogil
