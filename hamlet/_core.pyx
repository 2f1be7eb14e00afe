"""The kernel: propagates the summed aggregates of partial trends through templates, one slice of one key at a time.

Python validates, the kernel trusts: it sees integers only (`hamlet.compiler.tables` writes them). A *cell* holds the
summed aggregates of all partial trends that stand in one automaton state; an event bound to v along p -v-> q adds
cell p to cell q. Where an adjacent predicate or a longer negated pattern has to look back at single events, a *store*
keeps one node per event instead of the sum. A burst of events that extend one Kleene sub-pattern is one step of a
*graphlet*.

Contract
--------
**Reads before writes.** All events of one time (and order) are one step. A step first reads what stood there before
it, then lets guards kill, then adds (DESIGN §2). Tested: ties in the golden cases and against the oracle.
**Bursts.** A graphlet collects the events of one type and key that its members (queries) bind to one state without
looking back. Its burst ends before any event that touches a member otherwise, at the border of a member's pane, and at
the end of the slice; so a member's inflow does not change within it.
**Sequence.** `process` expects rows in time order; `advance(t)` promises that no row before t will follow, and no
window that ends at or before t is opened again.
Headroom, lanes and guards: see ``_state.pxd`` and ``_state.pyx``.

Source: HAMLET (SIGMOD'21) §3 (propagation, Eqs. 2-6), GRETA (VLDB'17) §§4-6; LANGUAGE.md §§3-8.
"""

import cython
import numpy as np

from hamlet._budget import BudgetExceeded

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from hamlet._budget cimport Account, Budget, take
from hamlet._cells cimport (
    add_cell,
    add_one,
    bind_event,
    bit_length,
    floor_divide,
    has_trends,
    lane_of,
    limbs_bits,
    scaled_add_selected,
    scaled_load,
    scaled_store,
    words_of,
)
from hamlet._burst cimport Tally, apply_burst, clear_tallies, join_tallies, tally_event
from hamlet._expression cimport Column, Program, evaluate
from hamlet._index cimport forget_lane, read_index
from hamlet._saved cimport DAMAGED, Bounds, Bytes, Cursor, put_word, read_state, take_word, write_state
from hamlet._state cimport (
    State,
    Store,
    append_node,
    cell_of,
    clear_state,
    convert_state,
    first_alive,
    free_state,
    killed_before,
    merge_nodes,
    new_state,
    renew_indexes,
    start_alive,
    told_apart,
    widen,
)
from hamlet._tables cimport (
    COUNT,
    COUNT_SCALED,
    FROM_CELL,
    FROM_START,
    FROM_STORE,
    GREATEST_DOUBLE,
    GREATEST_INT,
    LEAST_DOUBLE,
    LEAST_INT,
    NO_FAILURE,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    OUT_OF_MEMORY,
    OVERFLOW,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Arrival,
    Component,
    Entry,
    GuardArrival,
    IndexTable,
    KeyProgram,
    Predicate,
    Query,
    Source,
    StoreTable,
)

COMPONENTS = {
    "count": COUNT, "occurrences": OCCURRENCES, "sum_int": SUM_INT, "sum_double": SUM_DOUBLE, "present": PRESENT,
    "least_int": LEAST_INT, "greatest_int": GREATEST_INT, "least_double": LEAST_DOUBLE,
    "greatest_double": GREATEST_DOUBLE, "count_scaled": COUNT_SCALED, "occurrences_scaled": OCCURRENCES_SCALED,
}

SOURCES = {"start": FROM_START, "cell": FROM_CELL, "store": FROM_STORE}

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

cdef struct Due:         # an entry of the calendar, a binary heap
    int64_t time
    int64_t slot         # key * queries + query

cdef struct Buffer:      # rows of closed windows of one query
    Py_ssize_t rows
    Py_ssize_t capacity
    Py_ssize_t words
    Py_ssize_t words_capacity
    int64_t* key
    int64_t* window
    int32_t* width
    uint64_t* word       # row after row, as many words as a cell of that width has


cdef enum:
    SCAN_BLOCK = 512
    MOST_COUNTERS = 16
    LONGEST_BURST = 4096
    MOST_GRAPHLETS = 64  # per key; types beyond are processed event by event


cdef enum Standing:
    STRANGER
    MEMBER
    BANNED               # some class of the type does more to the query than one burst can


@cython.no_gc_clear  # the budget must still be there when the states are freed
cdef class Kernel:
    """Runs all queries of one class of partition attributes over the events of its keys.

    Parameters
    ----------
    tables : sequence of hamlet.compiler.tables.QueryTables
        One per query, integers only.
    budget : Budget or None
        What all kernels of the run hold together; by default a kernel has one of its own, without a limit.

    Notes
    -----
    Not safe for use by two threads at once; two kernels are independent. After an exception the kernel must not be
    used any more.
    """

    cdef Query* query
    cdef readonly int queries
    cdef Budget budget
    cdef Account* account         # of the budget
    cdef int64_t own              # bytes taken, but for those of the states
    cdef list held                # Python objects that own memory the tables point into
    cdef Entry* entry             # entries of all classes
    cdef int* entry_first         # class -> its first entry; [classes + 1]
    cdef int* class_member
    cdef readonly int classes
    cdef int entries
    cdef int class_members
    cdef State** state            # [keys][queries]
    cdef Py_ssize_t keys
    cdef Due* due
    cdef Py_ssize_t dues
    cdef Py_ssize_t due_capacity
    cdef Buffer* buffer           # [queries]
    cdef uint64_t* scratch        # sums of the step under way
    cdef Py_ssize_t scratch_words
    cdef uint8_t* used            # [most arrivals] which sums of the step are set
    cdef int64_t step             # number of the step under way, from 1
    cdef int64_t advanced         # windows that end at or before this time are closed and stay so
    cdef const Column* columns    # of the batch under way
    cdef const int32_t* class_of
    cdef const int64_t* ranks
    cdef int failed_query         # where a Failure happened
    cdef int failed_predicate
    cdef int failed_place
    cdef Py_ssize_t failed_row
    cdef Graphlet graphlet[MOST_GRAPHLETS]
    cdef int* class_graphlet      # class -> the graphlet that its events join, -1 for none
    cdef uint64_t* class_roles    # class -> bits of the roles that accept it there
    cdef uint64_t* class_ends     # class -> bits of the graphlets whose burst it ends
    cdef uint64_t active          # bits of the graphlets with a burst under way
    cdef int event_columns
    cdef int* floating            # [columns]
    cdef Tally* role_tally        # [64][columns] coefficients of the burst under way, per role
    cdef int64_t role_events[64]
    cdef readonly bint sharing    # whether coefficients are computed once for all queries
    cdef readonly int64_t bursts
    cdef readonly int64_t graphlets          # bursts that some query had a trend to extend in
    cdef readonly int64_t shared_graphlets   # those that served two queries or more
    cdef readonly int64_t coefficients       # times that a burst's coefficients were computed
    cdef readonly int64_t snapshots          # times that they were applied to a query
    cdef readonly int64_t most_bits      # bit length of the largest count delivered
    cdef readonly int64_t states         # states alive
    cdef readonly int64_t windows        # windows closed, per query and key, with trends or without

    def __cinit__(self, tables, floating=(), sharing=True, budget=None):
        cdef int i, most = 0
        self.queries = len(tables)
        self.budget = Budget() if budget is None else budget
        self.account = &self.budget.account
        self.advanced = INT64_MIN
        self.sharing = sharing
        self.held = []
        self.event_columns = len(floating)
        self.floating = self._ints(floating)
        self.role_tally = <Tally*> calloc(64 * self.event_columns + 1, sizeof(Tally))
        if self.role_tally == NULL:
            raise MemoryError
        self.query = <Query*> calloc(self.queries + 1, sizeof(Query))
        self.buffer = <Buffer*> calloc(self.queries + 1, sizeof(Buffer))
        self.entry_first = <int*> calloc(1, sizeof(int))
        if self.query == NULL or self.buffer == NULL or self.entry_first == NULL:
            raise MemoryError
        for i, table in enumerate(tables):
            self._load(&self.query[i], table)
            most = max(most, self.query[i].arrivals)
        self.used = <uint8_t*> calloc(most + 1, 1)
        if self.used == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        cdef Buffer* b
        if self.query != NULL:
            for i in range(self.keys * self.queries):
                free_state(&self.query[i % self.queries], self.state[i])
        if self.account != NULL:
            take(self.account, -self.own)
        if self.buffer != NULL:
            for i in range(self.queries):
                b = &self.buffer[i]
                free(b.key)
                free(b.window)
                free(b.width)
                free(b.word)
        for i in range(MOST_GRAPHLETS):
            free(self.graphlet[i].member)
            free(self.graphlet[i].role)
            free(self.graphlet[i].standing)
            free(self.graphlet[i].rows)
            free(self.graphlet[i].kind)
            free(self.graphlet[i].of_kind)
            free(self.graphlet[i].tally)
        free(self.class_graphlet)
        free(self.class_roles)
        free(self.class_ends)
        free(self.role_tally)
        free(self.state)
        free(self.buffer)
        free(self.query)
        free(self.entry)
        free(self.entry_first)
        free(self.class_member)
        free(self.due)
        free(self.scratch)
        free(self.used)

    # -------------------------------------------------------------------------------------------- tables

    cdef void* _hold(self, object array):
        """Keep a contiguous array alive and return its first byte."""
        cdef const uint8_t[::1] view = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.held.append(view)
        return <void*> &view[0]

    cdef int* _ints(self, object rows):
        """A list of integers, or of tuples of integers, as a C array."""
        flat = np.array(rows, dtype=np.int32).reshape(-1)
        return <int*> self._hold(np.concatenate([flat, np.zeros(1, np.int32)]))

    cdef void _load(self, Query* q, object table) except *:
        cdef Predicate* predicate
        cdef Program program
        q.within = table.within
        q.slide = table.slide
        q.lanes = -(-table.within // table.slide)
        q.components = len(table.components)
        q.cells = len(table.cell_guards)
        q.stores = len(table.stores)
        q.guards = len(table.simple)
        q.guard_states = table.guard_states
        q.arrivals = len(table.arrivals)
        q.indexes = len(table.indexes)
        q.finals, q.finals_end = table.finals
        q.most_sources = table.most_sources
        q.fixed = table.fixed
        q.wide = table.wide
        q.exact = table.exact
        q.account = self.account
        q.component = <Component*> self._ints(table.components)
        q.source = <Source*> self._ints(table.sources)
        q.arrival = <Arrival*> self._ints(table.arrivals)
        q.guard_arrival = <GuardArrival*> self._ints(table.guard_arrivals)
        q.store = <StoreTable*> self._ints(table.stores)
        q.member = self._ints(table.members)
        q.guard_set = self._ints(table.guard_sets)
        q.simple = self._ints(table.simple)
        q.guard_first = self._ints(table.guard_first)
        q.cell_guards = self._ints(table.cell_guards)
        q.index = <IndexTable*> self._ints(table.indexes)
        q.key = <KeyProgram*> self._hold(np.zeros(max(1, len(table.keys)) * sizeof(KeyProgram), np.uint8))
        for i, (program, columns, count, floating) in enumerate(table.keys):
            self.held.append(program)
            q.key[i].code = program.code
            q.key[i].columns, q.key[i].count, q.key[i].floating = columns, count, floating
        q.predicate = <Predicate*> self._hold(np.zeros(max(1, len(table.predicates)) * sizeof(Predicate), np.uint8))
        for i, (program, vector, scalar) in enumerate(table.predicates):
            self.held.append(program)
            predicate = &q.predicate[i]
            predicate.code = program.code
            predicate.vector, predicate.vectors = vector
            predicate.scalar, predicate.scalars = scalar

    def add_class(self, entries, int type):
        """Register a class of events: what such an event does to each query.

        Parameters
        ----------
        entries : sequence of (int, sequence of int, sequence of int, int)
            Query, its arrivals, its guard arrivals, and the number of the local predicate by which it accepts the
            event (of one of them, where there are several); by ascending query, queries without any left out.
        type : int
            Number of the event type.

        Returns
        -------
        int
            The number of the class, counted from 0.
        """
        cdef Entry* entry
        cdef int* members
        cdef int more = sum(len(arrivals) + len(guards) for _, arrivals, guards, _ in entries)
        members = <int*> realloc(self.class_member, (self.class_members + more + 1) * sizeof(int))
        if members == NULL:
            raise MemoryError
        self.class_member = members
        entry = <Entry*> realloc(self.entry, (self.entries + len(entries) + 1) * sizeof(Entry))
        if entry == NULL:
            raise MemoryError
        self.entry = entry
        members = <int*> realloc(self.entry_first, (self.classes + 2) * sizeof(int))
        if members == NULL:
            raise MemoryError
        self.entry_first = members
        for query, arrivals, guards, role in entries:
            entry = &self.entry[self.entries]
            self.entries += 1
            entry.query = query
            entry.role = role
            entry.joins = False
            entry.type = type
            entry.arrivals = self.class_members
            for arrival in arrivals:
                self.class_member[self.class_members] = arrival
                self.class_members += 1
            entry.arrivals_end = entry.guards = self.class_members
            for guard in guards:
                self.class_member[self.class_members] = guard
                self.class_members += 1
            entry.guards_end = self.class_members
        self.classes += 1
        self.entry_first[self.classes] = self.entries
        self._join_graphlet(self.classes - 1, type)
        return self.classes - 1

    cdef void _join_graphlet(self, int kind, int type) except *:
        """Let the queries that bind a class of events to one Kleene sub-pattern share its graphlet."""
        cdef Graphlet* g = &self.graphlet[type % MOST_GRAPHLETS]
        cdef Entry* entry
        cdef int i, member, role
        self.class_graphlet = <int*> grown(self.class_graphlet, (kind + 1) * sizeof(int))
        self.class_roles = <uint64_t*> grown(self.class_roles, (kind + 1) * sizeof(uint64_t))
        self.class_ends = <uint64_t*> grown(self.class_ends, (kind + 1) * sizeof(uint64_t))
        self.class_graphlet[kind] = -1
        self.class_roles[kind] = 0
        if type < MOST_GRAPHLETS:
            if g.standing == NULL:
                g.standing = <uint8_t*> calloc(self.queries + 1, 1)
                if g.standing == NULL:
                    raise MemoryError
            for i in range(self.entry_first[kind], self.entry_first[kind + 1]):
                entry = &self.entry[i]
                member = self._member(g, entry)
                if member < 0:
                    self._ban(g, entry.query)
                    continue
                role = g.member[member].role
                entry.joins = True
                self.class_graphlet[kind] = type
                self.class_roles[kind] |= <uint64_t> 1 << role
        for i in range(MOST_GRAPHLETS):  # a burst is under way in none of them
            self.graphlet[i].kind = <int*> grown(self.graphlet[i].kind, (kind + 1) * sizeof(int))
            self.graphlet[i].of_kind = <int64_t*> grown(self.graphlet[i].of_kind, (kind + 1) * sizeof(int64_t))
            self.graphlet[i].of_kind[kind] = 0
            self.graphlet[i].tally = <Tally*> grown(
                self.graphlet[i].tally, ((kind + 1) * self.event_columns + 1) * sizeof(Tally)
            )
        for i in range(self.classes):
            self.class_ends[i] = self._ends(i)

    cdef void _ban(self, Graphlet* g, int query) noexcept:
        """Process a query event by event for the type of a graphlet."""
        cdef int i, member
        g.standing[query] = BANNED
        for i in range(self.entries):
            if self.entry[i].query == query and self.entry[i].joins and self.entry[i].type == g - self.graphlet:
                self.entry[i].joins = False
        for member in range(g.members):
            if g.member[member].query == query:
                g.members -= 1
                g.member[member] = g.member[g.members]
                break

    cdef int _member(self, Graphlet* g, const Entry* entry) except -2:
        """The place of an entry's query among the members, a new one where it may become one, else -1."""
        cdef const Query* q = &self.query[entry.query]
        cdef const Arrival* a
        cdef int arrival, i, j, role
        cdef bint loop = False
        if g.standing[entry.query] == BANNED:
            return -1
        if entry.arrivals_end != entry.arrivals + 1 or entry.guards_end != entry.guards:
            return -1
        arrival = self.class_member[entry.arrivals]
        a = &q.arrival[arrival]
        if a.stores != a.stores_end:
            return -1  # later events look back at single ones
        for i in range(a.sources, a.sources_end):
            if q.source[i].kind == FROM_STORE:
                return -1
            for j in range(a.cells, a.cells_end):
                loop = loop or (q.source[i].kind == FROM_CELL and q.source[i].place == q.member[j])
        for i in range(g.members):
            if g.member[i].query == entry.query:
                same = g.member[i].arrival == arrival and g.role[g.member[i].role] == entry.role
                return i if same else -1
        role = 0
        while role < g.roles and g.role[role] != entry.role:
            role += 1
        if role == 64:
            return -1
        if role == g.roles:
            g.role = <int*> grown(g.role, (g.roles + 1) * sizeof(int))
            g.role[role] = entry.role
            g.roles += 1
        if g.rows == NULL and not self.sharing:
            g.rows = <int64_t*> grown(NULL, LONGEST_BURST * sizeof(int64_t))
        g.member = <Member*> grown(g.member, (g.members + 1) * sizeof(Member))
        g.member[g.members].query = entry.query
        g.member[g.members].arrival = arrival
        g.member[g.members].role = role
        g.member[g.members].loop = loop
        g.members += 1
        g.standing[entry.query] = MEMBER
        return g.members - 1

    cdef uint64_t _ends(self, int kind) noexcept:
        """The graphlets with a member that a class of events touches otherwise than by joining."""
        cdef uint64_t ends = 0
        cdef const Entry* entry
        cdef int i, j
        for i in range(self.entry_first[kind], self.entry_first[kind + 1]):
            entry = &self.entry[i]
            for j in range(MOST_GRAPHLETS):
                if self.graphlet[j].members and self.graphlet[j].standing[entry.query] == MEMBER:
                    if not (entry.joins and j == self.class_graphlet[kind]):
                        ends |= <uint64_t> 1 << j
        return ends

    def adopt(self, Kernel other, widened):
        """Take over the state of a kernel of the same queries whose attributes knew less of their types.

        Parameters
        ----------
        other : Kernel
            Left empty.
        widened : sequence of sequences of (int, int)
            Per query the (store, place of column) whose kept values turn from INT into DOUBLE.
        """
        cdef Py_ssize_t slot, node, bytes
        cdef int query, i
        cdef const Query* q
        cdef State* s
        cdef Store* kept
        cdef int64_t* data
        cdef bint changed
        assert self.queries == other.queries and self.keys == 0 and self.account == other.account
        bytes = other.keys * self.queries * sizeof(State*) + other.due_capacity * sizeof(Due)
        self.own += bytes
        other.own -= bytes
        self.state, self.keys, self.states = other.state, other.keys, other.states
        self.due, self.dues, self.due_capacity = other.due, other.dues, other.due_capacity
        self.step, self.most_bits, self.windows = other.step, other.most_bits, other.windows
        self.advanced = other.advanced
        other.state = NULL
        other.keys = 0
        other.due = NULL
        other.dues = other.due_capacity = 0
        for query in range(self.queries):
            q = &self.query[query]
            changed = False
            for i in range(q.components):
                changed = changed or q.component[i].kind != other.query[query].component[i].kind
            for slot in range(query, self.keys * self.queries, self.queries):
                s = self.state[slot]
                if s == NULL:
                    continue
                if changed and convert_state(q, &other.query[query], s):
                    self._raise(OUT_OF_MEMORY)
                if renew_indexes(q, s, other.query[query].indexes):
                    self._raise(OUT_OF_MEMORY)
                for store, place in widened[query]:
                    kept = &s.store[<int> store]
                    data = kept.data + <Py_ssize_t> place * kept.capacity
                    for node in range(kept.head, kept.count):
                        (<double*> data)[node] = <double> data[node]

    # -------------------------------------------------------------------------------------------- events

    def process(self, keys, times, orders, classes, columns, ranks, Py_ssize_t key_count):
        """Feed rows in (time, order) order; rows of one key, time and order are one step.

        Parameters
        ----------
        keys : int64 array of shape (n,)
            Number of the partition, below `key_count`.
        times : int64 array of shape (n,)
            Ticks, ascending, not before any time given to `process` or `advance` earlier.
        orders : int64 array of shape (n,) or None
            Orders rows of equal time.
        classes : int32 array of shape (n,)
            From `add_class`.
        columns : sequence of (int64 or float64 array of shape (n,), uint8 array of shape (n,) or None)
            The event columns: values, and 1 where there is one.
        ranks : int64 array
            Rank of each string number.
        key_count : int
            Partitions known so far.

        Raises
        ------
        KernelOverflow
            Integer arithmetic of an adjacent predicate passed 64 bits.
        BudgetExceeded
            The run may not take the memory that the kernel needs.
        MemoryError
        """
        cdef Py_ssize_t n = len(keys), i
        if n == 0:
            return
        self._reserve_keys(key_count)
        cdef const int64_t[::1] key_view = keys
        cdef const int64_t[::1] time_view = times
        cdef const int64_t[::1] order_view = times if orders is None else orders
        cdef const int32_t[::1] class_view = classes
        cdef const int64_t[::1] rank_view = ranks
        cdef const int64_t[::1] row_view = np.argsort(keys, kind="stable")
        cdef Column* bound = <Column*> calloc(len(columns) + 1, sizeof(Column))
        cdef int failure
        if bound == NULL:
            raise MemoryError
        held = []
        for i, (data, valid) in enumerate(columns):
            bound[i].data = <const int64_t*> address(held, data.view(np.int64))
            bound[i].valid = NULL if valid is None else <const uint8_t*> address(held, valid)
        self.columns = bound
        self.class_of = &class_view[0]
        self.ranks = &rank_view[0]
        try:
            with nogil:
                failure = self._slices(&row_view[0], n, &key_view[0], &time_view[0], &order_view[0])
        finally:
            free(bound)
            self.columns = NULL
        self._raise(failure)

    cdef void _raise(self, int failure) except *:
        if failure == OUT_OF_MEMORY and self.account.refused:
            raise BudgetExceeded
        if failure == OUT_OF_MEMORY:
            raise MemoryError
        if failure == OVERFLOW:
            raise KernelOverflow(self.failed_query, self.failed_predicate, self.failed_place, self.failed_row)

    cdef void _reserve_keys(self, Py_ssize_t key_count) except *:
        cdef Py_ssize_t capacity = self.keys
        cdef State** state
        if key_count <= capacity:
            return
        capacity = max(key_count, capacity + (capacity >> 1) + 16)
        if not self._take((capacity - self.keys) * self.queries * sizeof(State*)):
            self._raise(OUT_OF_MEMORY)
        state = <State**> realloc(self.state, (capacity * self.queries + 1) * sizeof(State*))
        if state == NULL:
            raise MemoryError
        memset(state + self.keys * self.queries, 0, (capacity - self.keys) * self.queries * sizeof(State*))
        self.state = state
        self.keys = capacity

    cdef inline bint _take(self, Py_ssize_t bytes) noexcept nogil:
        """Count memory that is no state's, before it is allocated; False where the run may not take it."""
        if not take(self.account, bytes):
            return False
        self.own += bytes
        return True

    cdef int _slices(
        self, const int64_t* rows, Py_ssize_t n, const int64_t* keys, const int64_t* times, const int64_t* orders
    ) noexcept nogil:
        """Cut rows that are sorted by key and time into steps."""
        cdef Py_ssize_t i = 0, j
        cdef int64_t row, key, time, order
        cdef int failure
        while i < n:
            row = rows[i]
            key = keys[row]
            time = times[row]
            order = orders[row]
            j = i + 1
            while j < n and times[rows[j]] == time and keys[rows[j]] == key and orders[rows[j]] == order:
                j += 1
            failure = self._step(key, time, rows + i, <int> (j - i))
            if failure:
                return failure
            i = j
            if self.active and (i == n or keys[rows[i]] != key):
                failure = self._end_bursts(self.active)
                if failure:
                    return failure
        return NO_FAILURE

    cdef int _step(self, int64_t key, int64_t time, const int64_t* rows, int events) noexcept nogil:
        cdef int i, query, failure, kind = self.class_of[rows[0]]
        self.step += 1
        if events == 1:
            if self.active & self.class_ends[kind]:
                failure = self._end_bursts(self.active & self.class_ends[kind])
                if failure:
                    return failure
            if self.class_graphlet[kind] >= 0:
                failure = self._join_burst(&self.graphlet[self.class_graphlet[kind]], kind, key, time, rows[0])
                if failure:
                    return failure
            for i in range(self.entry_first[kind], self.entry_first[kind + 1]):
                if self.entry[i].joins:
                    continue
                failure = self._step_query(self.entry[i].query, &self.entry[i], key, time, rows, 1)
                if failure:
                    return failure
            return NO_FAILURE
        if self.active:  # events of one time are no burst
            failure = self._end_bursts(self.active)
            if failure:
                return failure
        for query in range(self.queries):
            for i in range(events):
                if self._entry_of(self.class_of[rows[i]], query) != NULL:
                    failure = self._step_query(query, NULL, key, time, rows, events)
                    if failure:
                        return failure
                    break
        return NO_FAILURE

    # -------------------------------------------------------------------------------------------- bursts

    cdef int _join_burst(self, Graphlet* g, int kind, int64_t key, int64_t time, int64_t row) noexcept nogil:
        """Add an event to the burst of a graphlet; begin one where none is under way."""
        cdef int failure, i
        cdef const Query* q
        if g.active and (time >= g.border or g.events == LONGEST_BURST):
            failure = self._end_burst(g)
            if failure:
                return failure
        if not g.active:
            g.active = True
            self.active |= <uint64_t> 1 << (g - self.graphlet)
            g.key = key
            g.time = time
            g.events = 0
            g.kinds = 0
            g.border = INT64_MAX
            for i in range(g.members):
                q = &self.query[g.member[i].query]
                g.border = min(
                    g.border,
                    (floor_divide(time, q.slide) + 1) * q.slide,
                    (floor_divide(time - q.within, q.slide) + 1) * q.slide + q.within,
                )
        if g.of_kind[kind] == 0:
            g.kind[g.kinds] = kind
            g.kinds += 1
            clear_tallies(&g.tally[kind * self.event_columns], self.event_columns)
        g.of_kind[kind] += 1
        if self.sharing:
            tally_event(
                &g.tally[kind * self.event_columns], self.event_columns, self.floating, self.columns, row
            )
        else:
            g.rows[g.events] = row
        g.events += 1
        return NO_FAILURE

    cdef int _end_bursts(self, uint64_t graphlets) noexcept nogil:
        cdef int i, failure
        for i in range(MOST_GRAPHLETS):
            if graphlets >> i & 1:
                failure = self._end_burst(&self.graphlet[i])
                if failure:
                    return failure
        return NO_FAILURE

    cdef int _end_burst(self, Graphlet* g) noexcept nogil:
        """Apply a burst's coefficients to every query that accepted events of it."""
        cdef int i, role, served = 0, failure
        cdef Member* member
        g.active = False
        self.active &= ~(<uint64_t> 1 << (g - self.graphlet))
        self.bursts += 1
        for role in range(g.roles):
            self.role_events[role] = -1  # not computed yet
        for i in range(g.members):
            member = &g.member[i]
            if not self.sharing or self.role_events[member.role] < 0:
                self._coefficients(g, member.role)
            if self.role_events[member.role]:
                failure = self._serve(g, member, &served)
                if failure:
                    return failure
        for i in range(g.kinds):
            g.of_kind[g.kind[i]] = 0
        self.graphlets += served > 0
        self.shared_graphlets += self.sharing and served > 1
        return NO_FAILURE

    cdef void _coefficients(self, Graphlet* g, int role) noexcept nogil:
        """The coefficients of the burst's events that a role accepts: of all queries at once, or of one."""
        cdef Tally* tally = &self.role_tally[role * self.event_columns]
        cdef int i, kind
        cdef int64_t events = 0, row
        clear_tallies(tally, self.event_columns)
        for i in range(g.kinds):
            kind = g.kind[i]
            if self.class_roles[kind] >> role & 1:
                events += g.of_kind[kind]
                if self.sharing:
                    join_tallies(
                        tally, &g.tally[kind * self.event_columns], self.event_columns, self.floating
                    )
        if not self.sharing and events:
            for row in g.rows[:g.events]:
                if self.class_roles[self.class_of[row]] >> role & 1:
                    tally_event(tally, self.event_columns, self.floating, self.columns, row)
        self.role_events[role] = events
        self.coefficients += events > 0

    cdef int _serve(self, Graphlet* g, const Member* member, int* served) noexcept nogil:
        """Take a query's snapshot and add what the burst makes of it."""
        cdef const Query* q = &self.query[member.query]
        cdef const Arrival* a = &q.arrival[member.arrival]
        cdef State* s = self.state[g.key * self.queries + member.query]
        cdef int64_t events = self.role_events[member.role], bits
        cdef int lane, i, words, failure
        cdef Py_ssize_t block
        cdef uint64_t* snapshot
        cdef uint64_t* sum
        cdef uint64_t* cell
        cdef bint any = False
        if s == NULL:
            failure = self._open_state(member.query, g.key, g.time, &s)
            if failure or s == NULL:
                return failure
        if g.time >= s.border:
            failure = self._turn_pane(member.query, s, g.key, g.time)
            if failure:
                return failure
        if s.last < s.first:
            return NO_FAILURE
        bits = max(s.bits, 1) + bit_length(q.most_sources) + (events if member.loop else bit_length(events)) + 1
        if q.exact and bits > 64 * s.width - 3 and widen(q, s, bits):
            return OUT_OF_MEMORY
        if self._reserve_scratch(q, s):
            return OUT_OF_MEMORY
        words = words_of(q, s.width)
        block = <Py_ssize_t> q.lanes * words
        snapshot = self.scratch
        sum = self.scratch + block
        memset(snapshot, 0, block * sizeof(uint64_t))
        for i in range(a.sources, a.sources_end):
            failure = self._read_source(member.query, s, &q.source[i], snapshot, 0)
            if failure:
                return failure
        lane = lane_of(q, s.first)
        for _ in range(s.first, s.last + 1):
            if has_trends(q, s.width, snapshot + lane * words):
                any = True
                apply_burst(
                    q, s.width, a.variable, member.loop, events,
                    &self.role_tally[member.role * self.event_columns],
                    snapshot + lane * words, sum, sum + words,
                )
                for i in range(a.cells, a.cells_end):
                    cell = cell_of(q, s, lane, q.member[i])
                    add_cell(q, s.width, cell, sum)
                    if q.exact:
                        s.bits = max(s.bits, limbs_bits(cell, s.width))
            lane = lane + 1 if lane + 1 < q.lanes else 0
        if any:
            self.snapshots += 1
            served[0] += 1
        return NO_FAILURE

    cdef inline const Entry* _entry_of(self, int kind, int query) noexcept nogil:
        cdef int i
        for i in range(self.entry_first[kind], self.entry_first[kind + 1]):
            if self.entry[i].query == query:
                return &self.entry[i]
        return NULL

    cdef int _step_query(
        self, int query, const Entry* only, int64_t key, int64_t time, const int64_t* rows, int events
    ) noexcept nogil:
        """One step of one query: all reads, then the guards, then all writes. `only` is the entry of a lone event."""
        cdef const Query* q = &self.query[query]
        cdef State* s = self.state[key * self.queries + query]
        cdef const Entry* entry
        cdef Py_ssize_t nodes = q.most_sources
        cdef int64_t bits
        cdef int i, j, failure
        if s == NULL:
            failure = self._open_state(query, key, time, &s)
            if failure or s == NULL:
                return failure
        if time >= s.border:
            failure = self._turn_pane(query, s, key, time)
            if failure:
                return failure
        if s.last < s.first:
            return NO_FAILURE
        for i in range(q.stores):
            if not q.store[i].starts:
                nodes += s.store[i].count - s.store[i].head
        bits = max(s.bits, 1) + bit_length(events * nodes)
        if bits > 64 * s.width - 3:
            if widen(q, s, bits):
                return OUT_OF_MEMORY
        if self._reserve_scratch(q, s):
            return OUT_OF_MEMORY
        for i in range(events):
            entry = only if only != NULL else self._entry_of(self.class_of[rows[i]], query)
            if entry == NULL:
                continue
            for j in range(entry.arrivals, entry.arrivals_end):
                failure = self._read(query, s, self.class_member[j], time, rows[i])
                if failure:
                    return failure
        if q.guards:
            failure = self._guards(query, s, only, time, rows, events)
            if failure:
                return failure
        for i in range(events):
            entry = only if only != NULL else self._entry_of(self.class_of[rows[i]], query)
            if entry == NULL:
                continue
            for j in range(entry.arrivals, entry.arrivals_end):
                if self.used[self.class_member[j]]:
                    self.used[self.class_member[j]] = 0
                    if self._write(q, s, self.class_member[j], time):
                        return OUT_OF_MEMORY
        for i in range(q.stores):
            s.store[i].count = s.store[i].pending
        return NO_FAILURE

    cdef int _open_state(self, int query, int64_t key, int64_t time, State** state) noexcept nogil:
        """A new state for a query and key; none where the time belongs to no open window."""
        cdef const Query* q = &self.query[query]
        state[0] = NULL
        if self._lowest(q, time) > floor_divide(time, q.slide):
            return NO_FAILURE
        state[0] = new_state(q)
        if state[0] == NULL:
            return OUT_OF_MEMORY
        self.state[key * self.queries + query] = state[0]
        self.states += 1
        return NO_FAILURE

    cdef int _reserve_scratch(self, const Query* q, const State* s) noexcept nogil:
        """Room for one cell per arrival and lane, and for two more arrivals."""
        cdef Py_ssize_t words = <Py_ssize_t> (q.arrivals + 3) * q.lanes * words_of(q, s.width)
        cdef uint64_t* scratch
        if words <= self.scratch_words:
            return NO_FAILURE
        if not self._take((2 * words - self.scratch_words) * sizeof(uint64_t)):
            return OUT_OF_MEMORY
        scratch = <uint64_t*> realloc(self.scratch, 2 * words * sizeof(uint64_t))
        if scratch == NULL:
            return OUT_OF_MEMORY
        self.scratch = scratch
        self.scratch_words = 2 * words
        return NO_FAILURE

    cdef int _read(self, int query, State* s, int arrival, int64_t time, int64_t row) noexcept nogil:
        """Sum what one event extends, into scratch; keep the event where later ones look at it."""
        cdef const Query* q = &self.query[query]
        cdef const Arrival* a = &q.arrival[arrival]
        cdef int words = words_of(q, s.width), lane, i, failure
        cdef Py_ssize_t block = <Py_ssize_t> q.lanes * words
        cdef uint64_t* total = self.scratch + arrival * block
        cdef uint64_t* sum = self.scratch + q.arrivals * block if self.used[arrival] else total
        cdef uint64_t* node
        cdef int64_t _
        memset(sum, 0, block * sizeof(uint64_t))
        for i in range(a.sources, a.sources_end):
            failure = self._read_source(query, s, &q.source[i], sum, row)
            if failure:
                return failure
        if q.components > 1:
            lane = lane_of(q, s.first)
            for _ in range(s.first, s.last + 1):
                bind_event(q, s.width, a.variable, sum + lane * words, self.columns, row)
                lane = lane + 1 if lane + 1 < q.lanes else 0
        for i in range(a.stores, a.stores_end):
            if q.store[q.member[i]].merging:
                continue
            node = append_node(q, s, q.member[i], self.step, time, self.columns, row)
            if node == NULL:
                return OUT_OF_MEMORY
            memcpy(node, sum, block * sizeof(uint64_t))
        if self.used[arrival]:
            for lane in range(q.lanes):
                add_cell(q, s.width, total + lane * words, sum + lane * words)
        self.used[arrival] = 1
        return NO_FAILURE

    cdef int _read_source(self, int query, State* s, const Source* source, uint64_t* sum, int64_t row) noexcept nogil:
        cdef const Query* q = &self.query[query]
        cdef int words = words_of(q, s.width), lane = lane_of(q, s.first), failure, place = 0
        cdef Py_ssize_t node, stop, block = <Py_ssize_t> q.lanes * words, i
        cdef int64_t _, window
        cdef Store* store
        cdef uint8_t selected[SCAN_BLOCK]
        if source.kind == FROM_STORE and source.index >= 0:
            failure = read_index(q, s, source.index, self.columns, row, self.ranks, sum, &place)
            if failure == OVERFLOW:
                self.failed_query = query
                self.failed_predicate = source.predicate
                self.failed_place = -1
                self.failed_row = row
            return failure
        if source.kind == FROM_STORE:
            store = &s.store[source.place]
            node = first_alive(store, killed_before(q, s, source.guards))
            while node < store.count:
                stop = min(node + SCAN_BLOCK, store.count)
                failure = self._select(query, source, store, node, stop, row, selected)
                if failure:
                    return failure
                if words == 2 and q.lanes == 1 and not q.exact:  # one scaled count per node
                    scaled_store(sum, scaled_add_selected(
                        scaled_load(sum), store.value + node * 2, selected, stop - node
                    ))
                    node = stop
                    continue
                for i in range(node, stop):
                    if selected[i - node]:
                        lane = lane_of(q, s.first)
                        for _ in range(s.first, s.last + 1):
                            add_cell(q, s.width, sum + lane * words, store.value + i * block + lane * words)
                            lane = lane + 1 if lane + 1 < q.lanes else 0
                node = stop
            return NO_FAILURE
        for window in range(s.first, s.last + 1):
            if source.kind == FROM_CELL:
                add_cell(q, s.width, sum + lane * words, cell_of(q, s, lane, source.place))
            elif start_alive(q, s, source.guards, window):
                add_one(q, s.width, sum + lane * words)
            lane = lane + 1 if lane + 1 < q.lanes else 0
        return NO_FAILURE

    cdef int _select(
        self, int query, const Source* source, const Store* store, Py_ssize_t start, Py_ssize_t stop, int64_t row,
        uint8_t* selected,
    ) noexcept nogil:
        """Which stored nodes satisfy the adjacent predicate with the event."""
        cdef const Query* q = &self.query[query]
        cdef const Predicate* predicate
        cdef Column vector[64]
        cdef Column scalar[64]
        cdef int i, place
        cdef Py_ssize_t column, where = 0
        if source.predicate < 0:
            memset(selected, 1, stop - start)
            return NO_FAILURE
        predicate = &q.predicate[source.predicate]
        for i in range(predicate.vectors):
            column = q.member[predicate.vector + i]
            vector[i].data = store.data + column * store.capacity
            vector[i].valid = store.valid + column * store.capacity
        for i in range(predicate.scalars):
            scalar[i] = self.columns[q.member[predicate.scalar + i]]
        place = evaluate(&predicate.code, vector, start, stop, scalar, row, self.ranks, selected, &where)
        if place >= 0:
            self.failed_query = query
            self.failed_predicate = source.predicate
            self.failed_place = place
            self.failed_row = row
            return OVERFLOW
        return NO_FAILURE

    cdef int _write(self, const Query* q, State* s, int arrival, int64_t time) noexcept nogil:
        """Add the sums of a step to the cells and merging stores of an arrival."""
        cdef const Arrival* a = &q.arrival[arrival]
        cdef int words = words_of(q, s.width), lane, i, place
        cdef Py_ssize_t block = <Py_ssize_t> q.lanes * words
        cdef uint64_t* total = self.scratch + arrival * block
        cdef uint64_t* cell
        cdef int64_t _
        cdef Store* store
        lane = lane_of(q, s.first)
        for _ in range(s.first, s.last + 1):
            for i in range(a.cells, a.cells_end):
                cell = cell_of(q, s, lane, q.member[i])
                add_cell(q, s.width, cell, total + lane * words)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell, s.width))
            if q.exact and a.stores < a.stores_end:
                s.bits = max(s.bits, limbs_bits(total + lane * words, s.width))
            lane = lane + 1 if lane + 1 < q.lanes else 0
        for i in range(a.stores, a.stores_end):
            place = q.member[i]
            if not q.store[place].merging:
                continue
            store = &s.store[place]
            if store.count == store.head or told_apart(
                q, s, q.store[place].guards, store.step[store.count - 1], self.step
            ):
                if append_node(q, s, place, self.step, time, self.columns, 0) == NULL:
                    return OUT_OF_MEMORY
                store.count = store.pending
            cell = store.value + (store.count - 1) * block
            for lane in range(q.lanes):
                add_cell(q, s.width, cell + lane * words, total + lane * words)
                if q.exact:
                    s.bits = max(s.bits, limbs_bits(cell + lane * words, s.width))
            store.step[store.count - 1] = self.step
            store.time[store.count - 1] = time
            if q.store[place].merging == 1 and store.count - store.head > 8 + q.guard_states:
                merge_nodes(q, s, place)
        return NO_FAILURE

    # -------------------------------------------------------------------------------------------- guards

    cdef int _guards(
        self, int query, State* s, const Entry* only, int64_t time, const int64_t* rows, int events
    ) noexcept nogil:
        """Advance the negated patterns by one step; a match that finishes kills what arrived before it began."""
        cdef const Query* q = &self.query[query]
        cdef const Entry* entry
        cdef const GuardArrival* arrival
        cdef int i, j, guard, state, failure
        cdef bint stepped = False
        for i in range(events):
            entry = only if only != NULL else self._entry_of(self.class_of[rows[i]], query)
            if entry == NULL or entry.guards == entry.guards_end:
                continue
            if not stepped:
                memset(s.fresh_step, 0, q.guard_states * sizeof(int64_t))
                stepped = True
            for j in range(entry.guards, entry.guards_end):
                failure = self._read_guard(query, s, &q.guard_arrival[self.class_member[j]], time, rows[i])
                if failure:
                    return failure
        if not stepped:
            return NO_FAILURE
        for state in range(q.guard_states):
            if s.fresh_step[state] > s.start_step[state]:
                s.start_step[state] = s.fresh_step[state]
                s.start_time[state] = s.fresh_time[state]
        for i in range(events):
            entry = only if only != NULL else self._entry_of(self.class_of[rows[i]], query)
            if entry == NULL:
                continue
            for j in range(entry.guards, entry.guards_end):
                arrival = &q.guard_arrival[self.class_member[j]]
                guard = arrival.guard
                if arrival.final and s.fresh_step[arrival.state] > s.killed[guard]:
                    s.killed[guard] = s.fresh_step[arrival.state]
                    s.killed_time[guard] = s.fresh_time[arrival.state]
                    if q.simple[guard]:
                        self._kill_cells(q, s, guard)
        return NO_FAILURE

    cdef int _read_guard(
        self, int query, State* s, const GuardArrival* arrival, int64_t time, int64_t row
    ) noexcept nogil:
        """The latest start of a partial match that the event extends."""
        cdef const Query* q = &self.query[query]
        cdef const Source* source
        cdef Store* store
        cdef uint64_t* node
        cdef int64_t step = 0, begin = 0
        cdef Py_ssize_t first, stop, i
        cdef uint8_t selected[SCAN_BLOCK]
        cdef int number, failure
        for number in range(arrival.sources, arrival.sources_end):
            source = &q.source[number]
            if source.kind == FROM_START:
                s.begun[arrival.guard] = self.step
                step = self.step
                begin = time
            elif source.kind == FROM_CELL:
                if s.start_step[source.place] > step:
                    step = s.start_step[source.place]
                    begin = s.start_time[source.place]
            else:
                store = &s.store[source.place]
                first = store.head
                while first < store.count:
                    stop = min(first + SCAN_BLOCK, store.count)
                    failure = self._select(query, source, store, first, stop, row, selected)
                    if failure:
                        return failure
                    for i in range(first, stop):
                        if selected[i - first] and <int64_t> store.value[2 * i] > step:
                            step = <int64_t> store.value[2 * i]
                            begin = <int64_t> store.value[2 * i + 1]
                    first = stop
        if step == 0:
            return NO_FAILURE
        if step > s.fresh_step[arrival.state]:
            s.fresh_step[arrival.state] = step
            s.fresh_time[arrival.state] = begin
        if arrival.store >= 0:
            node = append_node(q, s, arrival.store, self.step, time, self.columns, row)
            if node == NULL:
                return OUT_OF_MEMORY
            node[0] = <uint64_t> step
            node[1] = <uint64_t> begin
        return NO_FAILURE

    cdef void _kill_cells(self, const Query* q, State* s, int guard) noexcept nogil:
        cdef int cell, lane, i, guards, words = words_of(q, s.width)
        for cell in range(q.cells):
            guards = q.cell_guards[cell]
            if guards < 0:
                continue
            for i in range(q.guard_set[2 * guards], q.guard_set[2 * guards + 1]):
                if q.member[i] == guard:
                    for lane in range(q.lanes):
                        memset(cell_of(q, s, lane, cell), 0, words * sizeof(uint64_t))

    # -------------------------------------------------------------------------------------------- windows

    cdef int _turn_pane(self, int query, State* s, int64_t key, int64_t time) noexcept nogil:
        """Close the windows that end at or before `time` and open those that hold it."""
        cdef const Query* q = &self.query[query]
        cdef int64_t low = self._lowest(q, time), high = floor_divide(time, q.slide), window
        cdef int lane, i, words
        cdef Py_ssize_t node, block
        if self._close_windows(query, s, key, low):
            return OUT_OF_MEMORY
        if s.last < s.first:
            clear_state(q, s)
            s.first = low
            s.last = low - 1
        words = words_of(q, s.width)
        block = <Py_ssize_t> q.lanes * words
        for window in range(s.last + 1, high + 1):
            lane = lane_of(q, window)
            memset(cell_of(q, s, lane, 0), 0, <Py_ssize_t> q.cells * words * sizeof(uint64_t))
            for i in range(q.stores):
                if not q.store[i].starts:
                    for node in range(s.store[i].head, s.store[i].count):
                        memset(s.store[i].value + node * block + lane * words, 0, words * sizeof(uint64_t))
            forget_lane(q, s, lane)
        s.last = max(high, low - 1)
        for i in range(q.stores):
            while s.store[i].head < s.store[i].count and s.store[i].time[s.store[i].head] < s.first * q.slide:
                s.store[i].head += 1
        s.border = min((high + 1) * q.slide, low * q.slide + q.within)
        if s.last >= s.first and not s.scheduled:
            return self._schedule(s, key * self.queries + query, s.first * q.slide + q.within)
        return NO_FAILURE

    cdef inline int64_t _lowest(self, const Query* q, int64_t time) noexcept nogil:
        """The lowest window that holds `time` and is not closed: a late replay must not open what was delivered."""
        cdef int64_t low = floor_divide(time - q.within, q.slide) + 1
        if self.advanced > time:
            low = max(low, floor_divide(self.advanced - q.within, q.slide) + 1)
        return low

    cdef int _close_windows(self, int query, State* s, int64_t key, int64_t low) noexcept nogil:
        """Deliver and close all open windows below `low`."""
        while s.first <= s.last and s.first < low:
            if self._deliver(query, s, key, s.first):
                return OUT_OF_MEMORY
            self.windows += 1
            s.first += 1
        return NO_FAILURE

    cdef int _deliver(self, int query, State* s, int64_t key, int64_t window) noexcept nogil:
        """Append the window's row where it has a trend."""
        cdef const Query* q = &self.query[query]
        cdef const Source* source
        cdef const Store* store
        cdef Py_ssize_t node, nodes = q.finals_end - q.finals
        cdef int lane = lane_of(q, window), number, i, words
        for i in range(q.stores):
            if not q.store[i].starts:
                nodes += s.store[i].count - s.store[i].head
        if q.exact and s.bits + bit_length(nodes) > 64 * s.width - 3:
            if widen(q, s, s.bits + bit_length(nodes)):
                return OUT_OF_MEMORY
        if self._reserve_scratch(q, s):
            return OUT_OF_MEMORY
        words = words_of(q, s.width)
        memset(self.scratch, 0, words * sizeof(uint64_t))
        for number in range(q.finals, q.finals_end):
            source = &q.source[number]
            if source.kind == FROM_CELL:
                add_cell(q, s.width, self.scratch, cell_of(q, s, lane, source.place))
            else:
                store = &s.store[source.place]
                for node in range(first_alive(store, killed_before(q, s, source.guards)), store.count):
                    add_cell(q, s.width, self.scratch, store.value + (node * q.lanes + lane) * words)
        if has_trends(q, s.width, self.scratch):
            if q.exact:
                self.most_bits = max(self.most_bits, limbs_bits(self.scratch, s.width))
            if self._reserve_row(&self.buffer[query], words):
                return OUT_OF_MEMORY
            append_row(&self.buffer[query], key, window, s.width, self.scratch, words)
        return NO_FAILURE

    def advance(self, int64_t time):
        """Close every window that ends at or before `time` (ticks); no earlier row may follow."""
        cdef int failure
        with nogil:
            failure = self._advance(time)
        self._raise(failure)

    cdef int _advance(self, int64_t time) noexcept nogil:
        cdef int64_t slot, low
        cdef int query
        cdef State* s
        cdef const Query* q
        self.advanced = max(self.advanced, time)
        while self.dues and self.due[0].time <= time:
            slot = self._pop_due()
            query = <int> (slot % self.queries)
            q = &self.query[query]
            s = self.state[slot]
            s.scheduled = False
            low = INT64_MAX if time == INT64_MAX else floor_divide(time - q.within, q.slide) + 1
            if self._close_windows(query, s, slot // self.queries, low):
                return OUT_OF_MEMORY
            if s.last < s.first:
                free_state(q, s)
                self.state[slot] = NULL
                self.states -= 1
            else:
                s.border = INT64_MIN  # the next event looks at the windows anew
                if self._schedule(s, slot, s.first * q.slide + q.within):
                    return OUT_OF_MEMORY
        return NO_FAILURE

    cdef int _schedule(self, State* s, int64_t slot, int64_t time) noexcept nogil:
        """Put a state on the calendar, so that its windows close on time without events of its key."""
        cdef Py_ssize_t capacity, child, parent
        cdef Due* due
        if self.dues == self.due_capacity:
            capacity = 2 * self.due_capacity + 64
            if not self._take((capacity - self.due_capacity) * sizeof(Due)):
                return OUT_OF_MEMORY
            due = <Due*> realloc(self.due, capacity * sizeof(Due))
            if due == NULL:
                return OUT_OF_MEMORY
            self.due = due
            self.due_capacity = capacity
        s.scheduled = True
        child = self.dues
        self.dues += 1
        while child > 0:
            parent = (child - 1) // 2
            if self.due[parent].time <= time:
                break
            self.due[child] = self.due[parent]
            child = parent
        self.due[child].time = time
        self.due[child].slot = slot
        return NO_FAILURE

    cdef int64_t _pop_due(self) noexcept nogil:
        cdef int64_t slot = self.due[0].slot
        cdef Due moved
        cdef Py_ssize_t parent = 0, child
        self.dues -= 1
        moved = self.due[self.dues]
        while True:
            child = 2 * parent + 1
            if child >= self.dues:
                break
            if child + 1 < self.dues and self.due[child + 1].time < self.due[child].time:
                child += 1
            if self.due[child].time >= moved.time:
                break
            self.due[parent] = self.due[child]
            parent = child
        self.due[parent] = moved
        return slot

    # -------------------------------------------------------------------------------------------- saving

    def save(self):
        """The states and counters as bytes for `load`; between two calls of `process`, with no row left to drain."""
        cdef Bytes to
        cdef int query
        for query in range(self.queries):
            if self.buffer[query].rows:
                raise ValueError("rows of closed windows have not been taken")
        to.byte = NULL
        to.count = 0
        self._write_states(&to)
        data = PyBytes_FromStringAndSize(NULL, to.count)
        to.byte = <uint8_t*> PyBytes_AS_STRING(data)
        to.count = 0
        with nogil:
            self._write_states(&to)
        return data

    def load(self, const uint8_t[::1] data, Py_ssize_t key_count, int64_t events, const int64_t[::1] limits):
        """Take over what `save` wrote; the kernel is new.

        Parameters
        ----------
        data : bytes-like
        key_count : int
            Partitions known so far.
        events : int
            At least so many events were matched.
        limits : int64 array
            Per event column how many values it can have (0, 1, ...: strings), negative where any integer will do.

        Raises
        ------
        ValueError
            The bytes are not of a kernel with the same tables; this one must not be used.
        MemoryError
        """
        cdef Cursor source
        cdef Bounds bounds
        cdef int failure
        assert self.keys == 0
        self._reserve_keys(key_count)
        source.byte = &data[0] if len(data) else NULL
        source.left = len(data)
        bounds.exponent = 64 * min(max(events, 0), <int64_t> 1 << 50) + 8192
        bounds.limits = &limits[0] if len(limits) else NULL
        with nogil:
            failure = self._read_states(&source, &bounds, key_count * self.queries)
        self._raise(failure)
        if failure or source.left:
            raise ValueError("the state of the windows is damaged")

    cdef int _counters(self, int64_t** counter) noexcept nogil:
        """What is saved of the kernel beside its states; how many of them."""
        counter[0] = &self.step
        counter[1] = &self.most_bits
        counter[2] = &self.windows
        counter[3] = &self.bursts
        counter[4] = &self.graphlets
        counter[5] = &self.shared_graphlets
        counter[6] = &self.coefficients
        counter[7] = &self.snapshots
        return 8

    cdef void _write_states(self, Bytes* to) noexcept nogil:
        """The counters, then every state in the order of the calendar, which so stays as it is."""
        cdef int64_t* counter[MOST_COUNTERS]
        cdef Py_ssize_t i
        cdef int64_t slot
        for i in range(self._counters(counter)):
            put_word(to, counter[i][0])
        put_word(to, min(self.advanced, <int64_t> 1 << 62))  # no event is there, and sums of times have head-room
        put_word(to, self.dues)
        for i in range(self.dues):
            slot = self.due[i].slot
            put_word(to, self.due[i].time)
            put_word(to, slot)
            write_state(&self.query[slot % self.queries], self.state[slot], to)

    cdef int _read_states(self, Cursor* source, Bounds* bounds, int64_t slots) noexcept nogil:
        cdef int64_t* counter[MOST_COUNTERS]
        cdef const Query* q
        cdef State* s
        cdef Py_ssize_t i
        cdef int64_t dues
        cdef int failure
        for i in range(self._counters(counter)):
            if not take_word(source, 0, <int64_t> 1 << 62, counter[i]):
                return DAMAGED
        bounds.step = self.step
        if not (
            take_word(source, INT64_MIN, <int64_t> 1 << 62, &self.advanced)
            and take_word(source, 0, source.left // (2 * sizeof(int64_t)), &dues)
        ):
            return DAMAGED
        if not self._take((dues + 1) * sizeof(Due)):
            return OUT_OF_MEMORY
        self.due = <Due*> realloc(self.due, (dues + 1) * sizeof(Due))
        if self.due == NULL:
            return OUT_OF_MEMORY
        self.due_capacity = dues + 1
        for i in range(dues):
            if not (
                take_word(source, self.due[(i - 1) // 2].time if i else INT64_MIN, INT64_MAX, &self.due[i].time)
                and take_word(source, 0, slots - 1, &self.due[i].slot)
                and self.state[self.due[i].slot] == NULL
            ):
                return DAMAGED
            q = &self.query[self.due[i].slot % self.queries]
            failure = read_state(q, source, bounds, &self.state[self.due[i].slot])
            if failure:
                return failure
            self.dues += 1
            self.states += 1
            s = self.state[self.due[i].slot]
            s.scheduled = True
            if self.due[i].time > s.first * q.slide + q.within:
                return DAMAGED  # its first window would close too late
        return NO_FAILURE

    def live(self):
        """Numbers of the keys that have an open window; int64 array."""
        cdef Py_ssize_t key
        cdef int query
        found = []
        for key in range(self.keys):
            for query in range(self.queries):
                if self.state[key * self.queries + query] != NULL:
                    found.append(key)
                    break
        return np.array(found, dtype=np.int64)

    def memory(self, int query):
        """Bytes that the states of a query hold, per key; int64 array of shape (keys,)."""
        found = np.zeros(self.keys, dtype=np.int64)
        cdef int64_t[::1] view = found
        cdef Py_ssize_t key
        cdef const State* s
        for key in range(self.keys):
            s = self.state[key * self.queries + query]
            view[key] = 0 if s == NULL else s.bytes
        return found

    cdef int _reserve_row(self, Buffer* b, int words) noexcept nogil:
        """Room for one more row."""
        cdef Py_ssize_t capacity
        cdef void* moved
        if b.rows == b.capacity:
            capacity = 2 * b.capacity + 64
            if not self._take((capacity - b.capacity) * (2 * sizeof(int64_t) + sizeof(int32_t))):
                return OUT_OF_MEMORY
            moved = realloc(b.key, capacity * sizeof(int64_t))
            if moved == NULL:
                return OUT_OF_MEMORY
            b.key = <int64_t*> moved
            moved = realloc(b.window, capacity * sizeof(int64_t))
            if moved == NULL:
                return OUT_OF_MEMORY
            b.window = <int64_t*> moved
            moved = realloc(b.width, capacity * sizeof(int32_t))
            if moved == NULL:
                return OUT_OF_MEMORY
            b.width = <int32_t*> moved
            b.capacity = capacity
        if b.words + words > b.words_capacity:
            capacity = 2 * b.words_capacity + words + 64
            if not self._take((capacity - b.words_capacity) * sizeof(uint64_t)):
                return OUT_OF_MEMORY
            moved = realloc(b.word, capacity * sizeof(uint64_t))
            if moved == NULL:
                return OUT_OF_MEMORY
            b.word = <uint64_t*> moved
            b.words_capacity = capacity
        return NO_FAILURE

    def drain(self, int query):
        """Take the rows of windows that have closed since the last call.

        Returns
        -------
        keys : int64 array of shape (n,)
        windows : int64 array of shape (n,)
            Window numbers k; the window is [k * slide, k * slide + within).
        widths : int32 array of shape (n,)
            Limbs of a count in each row.
        words : uint64 array of shape (total,)
            The rows' cells one after the other, laid out by the query's components.
        """
        cdef Buffer* b = &self.buffer[query]
        keys = np.empty(b.rows, dtype=np.int64)
        windows = np.empty(b.rows, dtype=np.int64)
        widths = np.empty(b.rows, dtype=np.int32)
        words = np.empty(b.words, dtype=np.uint64)
        cdef int64_t[::1] key_view = keys
        cdef int64_t[::1] window_view = windows
        cdef int32_t[::1] width_view = widths
        cdef uint64_t[::1] word_view = words
        if b.rows:
            memcpy(&key_view[0], b.key, b.rows * sizeof(int64_t))
            memcpy(&window_view[0], b.window, b.rows * sizeof(int64_t))
            memcpy(&width_view[0], b.width, b.rows * sizeof(int32_t))
            memcpy(&word_view[0], b.word, b.words * sizeof(uint64_t))
        b.rows = 0
        b.words = 0
        return keys, windows, widths, words


class KernelOverflow(Exception):
    """Integer arithmetic of an adjacent predicate passed 64 bits at a row of the batch."""

    def __init__(self, query, predicate, place, row):
        super().__init__("integer arithmetic passed 64 bits")
        self.query = query
        self.predicate = predicate
        self.place = place
        self.row = row


cdef void* grown(void* memory, size_t size) except NULL:
    """Reallocate; raises MemoryError."""
    cdef void* moved = realloc(memory, size)
    if moved == NULL:
        raise MemoryError
    return moved


cdef const void* address(list held, object array):
    """The first byte of a contiguous array, kept alive by `held`."""
    cdef const uint8_t[::1] view
    if len(array) == 0:
        return NULL
    view = array.view(np.uint8)
    held.append(view)
    return <const void*> &view[0]


cdef void append_row(
    Buffer* b, int64_t key, int64_t window, int width, const uint64_t* cell, int words
) noexcept nogil:
    """A row behind the others; there must be room for it."""
    b.key[b.rows] = key
    b.window[b.rows] = window
    b.width[b.rows] = width
    b.rows += 1
    memcpy(b.word + b.words, cell, words * sizeof(uint64_t))
    b.words += words
