"""The kernel: propagates the summed aggregates of partial trends through templates, one slice of one key at a time.

Python validates, the kernel trusts: it sees integers only (`hamlet.planner.tables` writes them). A *cell* holds the
summed aggregates of all partial trends that stand in one automaton state; an event bound to v along p -v-> q adds
cell p to cell q. Where an adjacent predicate or a longer negated pattern has to look back at single events, a *store*
keeps one node per event instead of the sum. A burst of events that extend one Kleene sub-pattern is one step of a
*graphlet*.

Contract
--------
**Reads before writes.** All events of one time (and order) are one step. A step first reads what stood there before
it, then lets guards kill, then adds. Tested: ties in the golden cases and against the oracle.
**Sequence.** `process` expects rows in time order; `advance(t)` promises that no row before t will follow, and no
window that ends at or before t is opened again.

Modules, as a row meets them: ``segmenter`` cuts a batch into steps; ``graphlet`` and ``burst`` take bursts, ``step``
the other events; ``decision`` says who shares; ``windows``, ``timer_heap`` and ``rows`` open, close and deliver.
``core.pxd`` has what all of them work on, ``state`` and ``index`` what is kept per query and key (headroom, lanes,
guards).

Source: HAMLET (SIGMOD'21) §3 (propagation, Eqs. 2-6), GRETA (VLDB'17) §§4-6; docs/language.md; docs/numbers.md.
"""

import cython
import numpy as np

from hamlet.kernel.operators.dispatch import OPERATORS

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from hamlet.kernel.expression cimport Program, Register
from hamlet.kernel.interface cimport EventColumns, Interface, check_failure, rows_of
from hamlet.kernel.lanes.lanes cimport LANES_PLAIN
from hamlet.kernel.operators.checkpoint cimport MOST_COUNTERS, counters_of, read_states, write_states
from hamlet.kernel.operators.complete_window.row_columns cimport free_row_columns, load_row_columns, unroll
from hamlet.kernel.operators.complete_window.window cimport forget_chosen, prepare_whole, tries_whole
from hamlet.kernel.operators.open_windows cimport export_windows
from hamlet.kernel.operators.pane_matrix.event_maps cimport forget_maps, prepare_maps
from hamlet.kernel.operators.simd.blocks cimport hold_key_slots, leave_bands
from hamlet.kernel.operators.simd.programs cimport (
    allow_limbs,
    free_bands,
    load_bands,
    reserve_key_slots,
    write_programs,
)
from hamlet.kernel.plan cimport (
    COUNT,
    COUNT_SCALED,
    FROM_CELL,
    FROM_START,
    FROM_STORE,
    GREATEST_DOUBLE,
    GREATEST_INT,
    LEAST_DOUBLE,
    LEAST_INT,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Arrival,
    Component,
    Entry,
    GuardArrival,
    IndexTable,
    KeyProgram,
    Output,
    Predicate,
    Query,
    Source,
    StoreTable,
)
from hamlet.kernel.radix_sort cimport MOST_ARRANGED, Area, Portion, area_for, give_back
from hamlet.kernel.row_columns cimport comes_last, taken_columns
from hamlet.kernel.run_length cimport (
    KEY_RUN_FEW_BITS,
    KEY_RUN_KEYS,
    Job,
    KeyRuns,
    give_back_key_runs,
    reads_bytes,
    key_runs_for,
)
from hamlet.kernel.sharing.decision cimport free_decisions, prepare_decisions
from hamlet.kernel.sharing.deferred cimport free_pending, make_pending
from hamlet.kernel.sharing.members cimport find_consumers, free_graphlets, join_graphlet
from hamlet.kernel.sharing.segmenter cimport cut_key_runs, process_portions, process_slices, process_key_runs
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.checkpoint cimport Bounds, Cursor
from hamlet.kernel.state.core cimport (
    ACTIVE_QUERIES,
    ALONE,
    AVX2,
    AVX512,
    BURSTS_AT_ONCE,
    BYTES,
    COMPLETE_WINDOW,
    DEFERRED_BURSTS,
    DYNAMIC,
    EVENT_MAPS,
    EVENT_STORE,
    INDEX,
    INT32,
    LONGEST_BURST,
    MERGED,
    MOST_GRAPHLETS,
    NEVER,
    PANE_MATRIX,
    PLAIN_DOUBLES,
    RANDOM,
    ROW_COLUMNS,
    RUN_LENGTH,
    SCALAR,
    SHARED,
    SIMD,
    SPLIT,
    STATIC,
    Calendar,
    Core,
    Due,
    DecisionHistory,
    Record,
    Rows,
    Unit,
    Work,
    column_bit,
    may_use,
    take_own,
)
from hamlet.kernel.state.dicts cimport listed_rows
from hamlet.kernel.state.operator cimport Bytes, operators, unpacked
from hamlet.kernel.state.query_state cimport State, Store, allocate, convert_state, free_state, renew_indexes
from hamlet.kernel.state.rows cimport free_rows
from hamlet.kernel.state.timers cimport advance_time
from hamlet.memory.arrays cimport grown
from hamlet.memory.budget cimport Budget, take
from optimizer.benefit cimport facts_of_costs

COMPONENTS = {
    "count": COUNT, "occurrences": OCCURRENCES, "sum_int": SUM_INT, "sum_double": SUM_DOUBLE, "present": PRESENT,
    "least_int": LEAST_INT, "greatest_int": GREATEST_INT, "least_double": LEAST_DOUBLE,
    "greatest_double": GREATEST_DOUBLE, "count_scaled": COUNT_SCALED, "occurrences_scaled": OCCURRENCES_SCALED,
}

cdef enum:
    FEWEST = 1024        # rows of a batch that are worth being taken as runs
    MOST_BACKOFF = 63    # batches between two of which that is tried

# On which faster paths; `hamlet.planner.paths` says what each is.
FEATURES = {
    "active_queries": ACTIVE_QUERIES, "int32": INT32, "row_columns": ROW_COLUMNS, "run_length": RUN_LENGTH,
    "bytes": BYTES, "bursts_at_once": BURSTS_AT_ONCE,
    "deferred_bursts": DEFERRED_BURSTS, "plain_doubles": PLAIN_DOUBLES, "index": INDEX, "event_maps": EVENT_MAPS,
    "avx2": AVX2, "avx512": AVX512,
}

POLICIES = {"never": NEVER, "static": STATIC, "dynamic": DYNAMIC, "random": RANDOM}

DECISIONS = {ALONE: "alone", SHARED: "shared", SPLIT: "split", MERGED: "merged"}

SOURCES = {"start": FROM_START, "cell": FROM_CELL, "store": FROM_STORE}

# The fields of a Record, in its order.
RECORD = np.dtype([
    *((name, np.int64) for name in ("pane", "key", "type", "b", "n", "g", "k", "s_c", "s_p")),
    ("shared_cost", np.float64), ("non_shared_cost", np.float64), ("decision", np.int64), ("queries", np.int64),
])


@cython.no_gc_clear  # the budget must still be there when the states are freed
cdef class Kernel(Interface):
    """Runs all queries of one class of partition attributes over the events of its keys.

    Parameters
    ----------
    tables : sequence of hamlet.planner.tables.QueryTables
        One per query, integers only.
    floating : sequence of int
        Per event column 1 where it holds doubles.
    sharing : hamlet.engine.sharing.Sharing or None
        Who decides which queries share a burst; every query on its own where it is None.
    budget : Budget or None
        What all kernels of the run hold together; by default a kernel has one of its own, without a limit.
    bands : sequence of hamlet.planner.bands.Band
        Which queries run side by side; results do not depend on it.
    whole_from : int
        In batches of so many events and more, windows that are whole may be taken at once (``window``).
    ordered_queries : sequence of int
        Queries whose rows are asked for in the `sequence` that `process` gets: they may come as columns.
    allowed : int
        Bits of the `OPERATORS` that may be used; those for which a query has no other are used anyway.
    features : int
        Bits of the `FEATURES` that may be used. Results depend on neither.
    alone : sequence of int
        For each query the number of the operator that has it by itself, where it is in no band or its numbers are too
        large for one; by default ``event_store`` or ``scalar``.

    Notes
    -----
    Not safe for use by two threads at once; two kernels are independent. After an exception the kernel must not be
    used any more.
    """

    cdef Core core
    cdef list programs   # the same for each band
    cdef bint remembers  # whether live graphlets are kept per key

    def __cinit__(
        self, tables, floating=(), sharing=None, budget=None, bands=(), int64_t whole_from=INT64_MAX,
        ordered_queries=(),
        uint64_t allowed=~(<uint64_t> 0), uint64_t features=~(<uint64_t> 0), alone=(),
    ):
        cdef Core* k = &self.core
        cdef int i, j, most = 0, depth = 0
        k.queries = len(tables)
        self.budget = Budget() if budget is None else budget
        k.account = &self.budget.account
        k.advanced = INT64_MIN
        if sharing is not None:
            k.policy = POLICIES[sharing.policy]
            k.paper = sharing.model == "paper"
            k.costs = facts_of_costs(sharing.costs)
            k.chance = sharing.seed
            k.trace.on = sharing.trace
        self.remembers = k.trace.on or k.policy == DYNAMIC
        k.operators, k.features = allowed, features
        if not (may_use(k, AVX2) and may_use(k, AVX512)):
            k.widest = 4 if may_use(k, AVX2) else LANES_PLAIN
        self.programs = []
        k.maps_from = whole_from if allowed >> PANE_MATRIX & 1 and may_use(k, EVENT_MAPS) else INT64_MAX
        k.whole_from = whole_from if allowed >> COMPLETE_WINDOW & 1 else INT64_MAX
        k.event_columns = len(floating)
        k.floating = self._ints(floating)
        k.role_tally = <Tally*> calloc(64 * k.event_columns + 1, sizeof(Tally))
        if k.role_tally == NULL:
            raise MemoryError
        k.query = <Query*> calloc(k.queries + 1, sizeof(Query))
        k.rows = <Rows*> calloc(k.queries + 1, sizeof(Rows))
        k.entry_first = <int*> calloc(1, sizeof(int))
        if k.query == NULL or k.rows == NULL or k.entry_first == NULL:
            raise MemoryError
        known = {}
        for i, table in enumerate(tables):
            j = known.setdefault(table.form, i)
            if j < i:
                k.query[i] = k.query[j]
                k.query[i].table = NULL
                continue
            self._load(&k.query[i], table)
            most = max(most, k.query[i].arrivals)
            k.extremes = k.extremes or reads_extremes(&k.query[i])
            for j in range(len(table.predicates)):
                depth = max(depth, k.query[i].predicate[j].code.depth)
        self._plan(alone)
        make_pending(k)
        k.used = <uint8_t*> calloc(most + 1, 1)
        k.registers = <Register*> allocate((depth + 1) * sizeof(Register))
        if k.used == NULL or k.registers == NULL or not prepare_decisions(k):
            raise MemoryError
        load_bands(k, bands if allowed >> SIMD & 1 else (), self.programs)
        self._list_units()
        load_row_columns(k, ordered_queries if may_use(k, ROW_COLUMNS) else ())

    def __dealloc__(self):
        cdef Core* k = &self.core
        cdef Py_ssize_t i
        if k.query != NULL:
            for i in range(k.keys * k.queries):
                free_state(&k.query[i % k.queries], k.state[i])
        free_bands(k)
        if k.account != NULL:
            forget_chosen(k)
            forget_maps(k)
            take(k.account, -k.own)
        if k.rows != NULL:
            for i in range(k.queries):
                free_rows(&k.rows[i])
        free_row_columns(k)
        if k.query != NULL:
            for i in range(k.queries):
                free(k.query[i].table)
        free_graphlets(k)
        free_pending(k)
        free_decisions(k)
        free(k.state)
        free(k.rows)
        free(k.query)
        free(k.entry)
        free(k.entry_first)
        free(k.class_member)
        free(k.consumer)
        free(k.consumer_first)
        free(k.operator_of)
        free(k.unit)
        free(k.calendar.due)
        free(k.scratch)
        free(k.used)
        free(k.registers)

    cdef int* _ints(self, object rows):
        """A list of integers, or of tuples of integers, as a C array."""
        flat = np.array(rows, dtype=np.int32).reshape(-1)
        return <int*> self.hold(np.concatenate([flat, np.zeros(1, np.int32)]))

    cdef void _plan(self, object alone) except *:
        """Note who has each query by itself; the tables of the queries are loaded."""
        cdef Core* k = &self.core
        cdef int i
        k.operator_of = <int*> grown(NULL, (k.queries + 1) * sizeof(int))
        for i in range(k.queries):
            k.operator_of[i] = EVENT_STORE if k.query[i].stores else SCALAR
        for i, number in enumerate(alone):
            k.operator_of[i] = number

    cdef void _list_units(self) except *:
        """List who is fed with what all queries have to see: the bands, then the queries in none."""
        cdef Core* k = &self.core
        cdef int i
        allow_limbs(k)
        k.unit = <Unit*> grown(NULL, (k.bands + k.queries + 1) * sizeof(Unit))
        for i in range(k.bands):
            k.unit[i].operator, k.unit[i].number = SIMD, i
        k.units = k.bands
        for i in range(k.queries):
            if k.band_of[i] < 0:
                k.unit[k.units].operator, k.unit[k.units].number = k.operator_of[i], i
                k.units += 1

    cdef void _load(self, Query* q, object table) except *:
        cdef Core* k = &self.core
        cdef Predicate* predicate
        cdef Program program
        cdef int i
        q.within = table.within
        q.slide = table.slide
        q.windows = -(-table.within // table.slide)
        q.components = len(table.components)
        q.cells = len(table.cell_guards)
        q.stores = len(table.stores)
        q.guards = len(table.simple)
        q.guard_states = table.guard_states
        q.arrivals = len(table.arrivals)
        q.indexes = len(table.indexes)
        q.finals, q.finals_end = table.finals
        q.outputs = len(table.outputs)
        q.most_sources = table.most_sources
        q.fixed = table.fixed
        q.wide = table.wide
        q.exact = table.exact
        q.beginnings = any(of for *_, of, _ in table.components)
        q.scaled = sum(kind == SUM_DOUBLE or kind >= COUNT_SCALED for kind, *_ in table.components)
        q.account = k.account
        q.types = table.types
        parts = (
            table.components, table.sources, table.arrivals, table.guard_arrivals, table.stores, table.guard_sets,
            table.indexes, table.outputs,
        )
        flat = [[number for row in part for number in row] for part in parts]
        flat += [table.members, table.simple, table.guard_first, table.cell_guards]
        cdef Py_ssize_t at = 0
        cdef int number
        cdef int* start[12]
        q.table = <int*> grown(NULL, (sum(map(len, flat)) + 1) * sizeof(int))
        for i, part in enumerate(flat):
            start[i] = q.table + at
            for number in part:
                q.table[at] = number
                at += 1
        q.component, q.source, q.arrival = <Component*> start[0], <Source*> start[1], <Arrival*> start[2]
        q.guard_arrival, q.store = <GuardArrival*> start[3], <StoreTable*> start[4]
        q.guard_set, q.index, q.output, q.member = start[5], <IndexTable*> start[6], <Output*> start[7], start[8]
        q.simple, q.guard_first, q.cell_guards = start[9], start[10], start[11]
        q.key = <KeyProgram*> self.hold(np.zeros(len(table.keys) * sizeof(KeyProgram), np.uint8))
        for i, (program, columns, count, floating) in enumerate(table.keys):
            self.held.append(program)
            q.key[i].code = program.code
            q.key[i].columns, q.key[i].count, q.key[i].floating = columns, count, floating
        q.predicate = <Predicate*> self.hold(np.zeros(len(table.predicates) * sizeof(Predicate), np.uint8))
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
        cdef Core* k = &self.core
        cdef Entry* entry
        cdef int more = sum(len(arrivals) + len(guards) for _, arrivals, guards, _ in entries)
        k.class_member = <int*> grown(k.class_member, (k.class_members + more + 1) * sizeof(int))
        k.entry = <Entry*> grown(k.entry, (k.entries + len(entries) + 1) * sizeof(Entry))
        k.entry_first = <int*> grown(k.entry_first, (k.classes + 2) * sizeof(int))
        for query, arrivals, guards, role in entries:
            entry = &k.entry[k.entries]
            k.entries += 1
            entry.query = query
            entry.role = role
            entry.joins = False
            entry.type = type
            entry.arrivals = k.class_members
            for arrival in arrivals:
                k.class_member[k.class_members] = arrival
                k.class_members += 1
            entry.arrivals_end = entry.guards = k.class_members
            for guard in guards:
                k.class_member[k.class_members] = guard
                k.class_members += 1
            entry.guards_end = k.class_members
        k.classes += 1
        k.entry_first[k.classes] = k.entries
        join_graphlet(k, k.classes - 1, type)
        write_programs(k, k.classes - 1, self.programs)
        find_consumers(k)
        return k.classes - 1

    def adopt(self, Kernel other, widened):
        """Take over the state of a kernel of the same queries whose attributes knew less of their types.

        Parameters
        ----------
        other : Kernel
            Left empty.
        widened : sequence of sequences of (int, int)
            Per query the (store, place of column) whose kept values turn from INT into DOUBLE.
        """
        cdef Core* k = &self.core
        cdef Core* old = &other.core
        cdef int64_t* counter[MOST_COUNTERS]
        cdef int64_t* before[MOST_COUNTERS]
        cdef Py_ssize_t slot, node, bytes
        cdef int query, i
        cdef const Query* q
        cdef State* s
        cdef Store* kept
        cdef int64_t* data
        cdef bint changed
        assert k.queries == old.queries and k.keys == 0 and k.account == old.account
        self._raise(leave_bands(old))
        for query in range(k.queries):  # who packed a state reads it by the tables with which that was done
            for slot in range(old.keys):
                if unpacked(old, query, slot):
                    self._raise(OUT_OF_MEMORY)
        if not reserve_key_slots(k, old.keys):
            self._raise(OUT_OF_MEMORY)
        bytes = old.keys * k.queries * sizeof(State*) + old.calendar.capacity * sizeof(Due)
        if old.past != NULL:
            bytes += old.keys * sizeof(DecisionHistory)
        k.own += bytes
        old.own -= bytes
        k.state, k.keys, k.states = old.state, old.keys, old.states
        k.calendar = old.calendar
        k.advanced = old.advanced
        for i in range(counters_of(k, counter)):
            counters_of(old, before)
            counter[i][0] = before[i][0]
        memcpy(k.work, old.work, sizeof(k.work))
        memcpy(k.reached, old.reached, sizeof(k.reached))
        k.past, old.past = old.past, NULL
        old.state = NULL
        old.keys = 0
        hold_key_slots(k)
        memset(&old.calendar, 0, sizeof(Calendar))
        for query in range(k.queries):
            q = &k.query[query]
            changed = False
            for i in range(q.components):
                changed = changed or q.component[i].kind != old.query[query].component[i].kind
            for slot in range(query, k.keys * k.queries, k.queries):
                s = k.state[slot]
                if s == NULL:
                    continue
                if changed and convert_state(q, &old.query[query], s):
                    self._raise(OUT_OF_MEMORY)
                if renew_indexes(q, s, old.query[query].indexes):
                    self._raise(OUT_OF_MEMORY)
                for store, place in widened[query]:
                    kept = &s.store[<int> store]
                    data = kept.data + <Py_ssize_t> place * kept.capacity
                    for node in range(kept.head, kept.count):
                        (<double*> data)[node] = <double> data[node]

    def process(
        self, keys, times, orders, classes, columns, ranks, Py_ssize_t key_count, int32_t part=0, int32_t parts=1,
        int64_t until=INT64_MIN, rows=None, sequence=None, bint distinct=False,
    ):
        """Feed rows in (time, order) order; rows of one key, time and order are one step.

        Parameters
        ----------
        keys : int32 array of shape (m,), or int8 array of shape (n,)
            Number of the partition of each of `rows`, below `key_count`; where all rows are meant, those with a
            negative number are left out.
        times : int64 array of shape (n,)
            Ticks, ascending, not before any time given to `process` or `advance` earlier.
        orders : int64 array of shape (n,) or None
            Orders rows of equal time.
        classes : int32 array of shape (n,), or int8 array where keys are
            From `add_class`.
        columns : sequence of (int64 or float64 array of shape (n,), uint8 array of shape (n,) or None)
            The event columns: values, and 1 where there is one.
        ranks : int64 array
            Rank of each string number.
        key_count : int
            Partitions known so far.
        part, parts : int
            Only keys with this remainder are this kernel's, each under its quotient; `key_count` is of quotients.
        until : int
            No event before this time will follow: windows that end by then may be closed at once.
        rows : int32 array of shape (m,), optional
            Ascending; by default all rows.
        sequence : pair of int32 arrays of shape (key_count,), optional
            Where there is one part: the place of each key among the rows of a window, and the key of each place. Rows
            may come in this order, or in another.
        distinct : bool
            Whether it is known that no two rows of a key have one time.

        Raises
        ------
        KernelOverflow
            Integer arithmetic of an adjacent predicate passed 64 bits.
        BudgetExceeded
            The run may not take the memory that the kernel needs.
        MemoryError
        """
        cdef Core* k = &self.core
        cdef Py_ssize_t n = len(keys)
        if n == 0:
            return
        self._reserve_keys(key_count)
        cdef bint bytes = keys.dtype == np.int8
        cdef const int8_t[::1] byte_view = keys if bytes else None
        cdef const int8_t[::1] byte_class_view = classes if bytes else None
        cdef const int32_t[::1] key_view
        cdef const int32_t[::1] row_view
        cdef const int64_t[::1] time_view = times
        cdef const int64_t[::1] order_view = times if orders is None else orders
        cdef const int64_t* order = NULL if orders is None else &order_view[0]
        cdef const int32_t[::1] class_view
        cdef const int64_t[::1] rank_view = ranks
        cdef EventColumns bound = EventColumns(columns)
        cdef const int64_t* arranged[MOST_ARRANGED]
        cdef KeyRuns key_runs = None
        cdef bint tries = orders is None and FEWEST <= n and key_count <= n // 16 and may_use(&self.core, RUN_LENGTH)
        cdef Portion batch
        cdef Job job
        cdef int failure
        k.columns = bound.column
        choose_arranged(k, arranged)
        k.ranks = &rank_view[0]
        memset(&job, 0, sizeof(Job))
        job.times, job.part, job.parts, job.distinct = &time_view[0], part, parts, distinct
        try:
            if bytes:
                job.byte_number, job.byte_classes = &byte_view[0], &byte_class_view[0]
                k.byte_class_of = job.byte_classes
                if tries and rows is None and self.reads_bytes(n, key_count):
                    key_runs = self._key_runs(&job, n, key_count, arranged)
                    tries = k.backoff == 0
                job.byte_number = job.byte_classes = NULL
            if key_runs is None:
                k.byte_class_of = NULL
                key_view = np.asarray(keys, dtype=np.int32)
                class_view = np.asarray(classes, dtype=np.int32)
                row_view = key_view if rows is None else rows
                job.number, job.rows = &key_view[0], NULL if rows is None else &row_view[0]
                job.classes = k.class_of = &class_view[0]
                if tries:
                    key_runs = self._key_runs(&job, n, key_count, arranged)
            k.by_key_runs = key_runs is not None
            if key_runs is not None:
                k.reached[RUN_LENGTH] += 1
                k.reached[BYTES] += key_runs.job.byte_number != NULL
                with nogil:
                    failure = process_key_runs(k, key_runs, until)
                give_back_key_runs(key_runs)
            else:
                batch.number, batch.rows, batch.first, batch.end = job.number, job.rows, 0, n
                batch.limit, batch.part, batch.parts = key_count, part, parts
                batch.times, batch.classes = &time_view[0], k.class_of
                memcpy(batch.column, arranged, sizeof(arranged))
                failure = self._process_events(batch, order, until, sequence)
        finally:
            k.columns = NULL
            k.arranged = NULL
            k.key_runs = NULL
            k.byte_class_of = NULL
        self._raise(failure)

    cdef int _process_events(self, Portion batch, const int64_t* orders, int64_t until, object sequence) except -1:
        """Take a batch event by event, in the order of their keys. Returns a Failure."""
        cdef Core* k = &self.core
        cdef Area area = area_for(batch.end)
        cdef int failure
        cdef bint whole = False
        cdef const int32_t[::1] place_of, key_at
        cdef const int32_t* place = NULL
        cdef const int32_t* at = NULL
        if sequence is not None:
            place_of, key_at = sequence
            place, at = &place_of[0], &key_at[0]
        try:
            if batch.end >= k.whole_from:
                prepare_whole(k)
                whole = tries_whole(k)
            k.maps.tries = batch.end >= k.maps_from
            if k.maps.tries:
                prepare_maps(k, batch.rows, batch.end)
            with nogil:
                if whole:
                    failure = process_portions(k, area, &batch, place, at, orders, until)
                else:
                    failure = process_slices(k, area, area.arrange(&batch), orders, until, False)
        finally:
            give_back(area)
        return failure

    def reads_bytes(self, Py_ssize_t rows, Py_ssize_t key_count):
        """Whether `process` would rather get the keys and classes of so many rows as bytes, -1 where there is none."""
        cdef Core* k = &self.core
        return (
            may_use(k, BYTES) and may_use(k, RUN_LENGTH)
            and not k.words and k.backoff == 0 and rows >= FEWEST and 0 < key_count <= rows // 16
            and key_count < KEY_RUN_KEYS and reads_bytes()
        )

    cdef KeyRuns _key_runs(self, const Job* wanted, Py_ssize_t n, Py_ssize_t key_count, const int64_t** arranged):
        """A batch as runs; None where it is to be taken event by event. The more often, the rarer it is tried.

        Bytes are taken in the fastest way only; where that does not fit, they are not asked for any more.
        """
        cdef Core* k = &self.core
        cdef KeyRuns found
        cdef Job* job
        cdef bint bytes = wanted.byte_number != NULL, cut = False, fits
        cdef int i
        if k.backoff:
            k.backoff -= 1
            return None
        found = key_runs_for(n, key_count)
        job = &found.job
        job.number, job.rows, job.classes, job.times = wanted.number, wanted.rows, wanted.classes, wanted.times
        job.byte_number, job.byte_classes = wanted.byte_number, wanted.byte_classes
        job.plain, job.part, job.parts, job.longest = k.class_plain, wanted.part, wanted.parts, LONGEST_BURST
        job.columns, job.distinct = 0, wanted.distinct
        for i in range(MOST_ARRANGED):
            if arranged[i] != NULL:
                k.key_run_value[i] = job.columns
                job.data[job.columns] = arranged[i]
                job.columns += 1
        if only_arranged(k, arranged):
            for _ in range(3):  # the fastest way fits most streams
                job.apart = k.apart and not job.distinct
                job.sum = NULL if job.parts > 1 or job.columns > 1 or (k.extremes and job.columns) else found.sum + 1
                fits = not bytes or (job.sum != NULL and not job.apart)
                if fits:
                    with nogil:
                        found.begin(key_count)
                        cut = cut_key_runs(k, found, n)
                if bytes and not cut and (not fits or job.tied or job.bits >> KEY_RUN_FEW_BITS):
                    k.words = True
                    give_back_key_runs(found)
                    return None
                if not cut and job.tied and not job.apart:
                    k.apart = True
                elif not cut and job.sum != NULL and job.bits >> KEY_RUN_FEW_BITS:
                    k.extremes = True
                else:
                    break
        if cut:
            k.next_backoff = 0
            k.key_runs = job.closed
            return found
        k.backoff = k.next_backoff = min(2 * k.next_backoff + 1, MOST_BACKOFF)
        give_back_key_runs(found)
        return None

    cdef void _raise(self, int failure) except *:
        cdef Core* k = &self.core
        check_failure(failure, k.account, k.failed_query, k.failed_predicate, k.failed_place, k.failed_row)

    cdef void _reserve_keys(self, Py_ssize_t key_count) except *:
        cdef Core* k = &self.core
        cdef Py_ssize_t capacity = k.keys
        if key_count <= capacity:
            return
        capacity = max(key_count, capacity + (capacity >> 1) + 16)
        if not take_own(k, (capacity - k.keys) * k.queries * sizeof(State*)):
            self._raise(OUT_OF_MEMORY)
        k.state = <State**> grown(k.state, (capacity * k.queries + 1) * sizeof(State*))
        memset(k.state + k.keys * k.queries, 0, (capacity - k.keys) * k.queries * sizeof(State*))
        if self.remembers:
            if not take_own(k, (capacity - k.keys) * sizeof(DecisionHistory)):
                self._raise(OUT_OF_MEMORY)
            k.past = <DecisionHistory*> grown(k.past, capacity * sizeof(DecisionHistory))
            memset(k.past + k.keys, 0, (capacity - k.keys) * sizeof(DecisionHistory))
        if not reserve_key_slots(k, capacity):
            self._raise(OUT_OF_MEMORY)
        k.keys = capacity

    def advance(self, int64_t time):
        """Close every window that ends at or before `time` (ticks); no earlier row may follow."""
        cdef int failure
        with nogil:
            failure = advance_time(&self.core, time)
        self._raise(failure)

    def save(self):
        """The states and counters as bytes for `load`; between two calls of `process`, with no row left to drain."""
        cdef Core* k = &self.core
        cdef Bytes to
        cdef int query
        for query in range(k.queries):
            if k.rows[query].count or k.row_columns[query].count:
                raise ValueError("rows of closed windows have not been taken")
        to.byte = NULL
        to.count = 0
        write_states(k, &to)
        if to.count < 0:
            self._raise(OUT_OF_MEMORY)
        data = PyBytes_FromStringAndSize(NULL, to.count)
        to.byte = <uint8_t*> PyBytes_AS_STRING(data)
        to.count = 0
        with nogil:
            write_states(k, &to)
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
        cdef Core* k = &self.core
        cdef Cursor source
        cdef Bounds bounds
        cdef int failure
        assert k.keys == 0
        self._reserve_keys(key_count)
        source.byte = &data[0] if len(data) else NULL
        source.left = len(data)
        bounds.exponent = 64 * min(max(events, 0), <int64_t> 1 << 50) + 8192
        bounds.limits = &limits[0] if len(limits) else NULL
        with nogil:
            failure = read_states(k, &source, &bounds, key_count)
        self._raise(failure)
        if failure or source.left:
            raise ValueError("the state of the windows is damaged")

    def live(self):
        """Which keys have an open window: 1 by their number; uint8 array of shape (keys,)."""
        cdef const Core* k = &self.core
        cdef Py_ssize_t key, states = k.states
        cdef int query, number
        found = np.zeros(k.keys, dtype=np.uint8)
        cdef uint8_t[::1] view = found
        for number in range(k.bands):
            for key in range(k.keys):
                if k.band[number].key_slot[key].block != NULL:
                    view[key] = 1
                    states -= k.band[number].queries
        for key in range(k.keys if states else 0):  # of queries that are in no band, or were handed over
            for query in range(k.queries):
                if k.state[key * k.queries + query] != NULL:
                    view[key] = 1
                    break
        return found

    def forget(self):
        """Forget what is remembered of keys without an open window; their numbers may stand for others now."""
        cdef Core* k = &self.core
        cdef const uint8_t[::1] live
        cdef Py_ssize_t key
        cdef int number
        if k.past == NULL and k.bands == 0:
            return
        live = self.live()
        for key in range(k.keys):
            if live[key]:
                continue
            if k.past != NULL:
                memset(&k.past[key], 0, sizeof(DecisionHistory))
            for number in range(k.bands):
                k.band[number].key_slot[key].until = INT64_MIN

    def closed(self):
        """How many rows each query has to drain, of those that have any; a dict of int to int."""
        cdef const Core* k = &self.core
        cdef int query
        return {
            query: k.rows[query].count + k.row_columns[query].count
            for query in range(k.queries) if k.rows[query].count or k.row_columns[query].count
        }

    def takes_whole(self, Py_ssize_t rows):
        """Whether windows that are whole in a batch of so many rows are taken at once, as far as its queries go.

        All classes of the batch are registered.
        """
        if rows < self.core.whole_from:
            return False
        prepare_whole(&self.core)
        return self.core.whole.fits

    @property
    def by_key_runs(self):
        """Whether the last batch was taken as runs (`run_length`), and not event by event."""
        return self.core.by_key_runs

    @property
    def waiting(self):
        """Rows to drain."""
        cdef int query
        cdef Py_ssize_t count = 0
        for query in range(self.core.queries):
            count += self.core.rows[query].count + self.core.row_columns[query].count
        return count

    def memory(self, int query):
        """Bytes that the states of a query hold, per key; int64 array of shape (keys,)."""
        cdef Core* k = &self.core
        found = np.zeros(k.keys, dtype=np.int64)
        cdef int64_t[::1] view = found
        cdef Py_ssize_t key
        for key in range(k.keys):
            view[key] = operators[k.operator_of[query]].bytes(k, query, key) + operators[SIMD].bytes(k, query, key)
        return found

    def rows(self, int query):
        """The rows of windows that have closed since `drop`, where they lie: valid until the kernel is called again.

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
        cdef Rows* b = &self.core.rows[query]
        self._raise(unroll(&self.core, query))
        return rows_of(b.key, b.window, b.width, b.word, b.count, b.words)

    def take_columns(self, int query):
        """Take the rows of whole windows, if they are in order and no others belong between or behind them.

        Returns
        -------
        keys : int32 array of shape (n,)
        windows : int64 array of shape (m,)
            Ascending; in a window, rows are in the `sequence` of `process`.
        counts : int64 array of shape (m,)
            How many rows each window has.
        columns : list of tuple
            Of each component, as `hamlet.kernel.column_builder.gathered` gives it.

        Or None; then all rows are among those of `rows`.
        """
        cdef const Rows* b = &self.core.rows[query]
        if self.core.row_columns[query].count == 0:
            return None
        if comes_last(&self.core.row_columns[query], b.window, b.count):
            return taken_columns(&self.core.row_columns[query])
        self._raise(unroll(&self.core, query))
        return None

    def drop(self, int query):
        """Forget the rows that `rows` gives."""
        self.core.rows[query].count = 0
        self.core.rows[query].words = 0

    def exported(self, int query, int place):
        """What stands in one place of the open windows, as `rows` gives rows, until `drop`; no rows are waiting.

        Parameters
        ----------
        query : int
        place : int
            A cell: its sums, where there are any. From the number of cells on a guard set: a row where the start under
            it is dead.
        """
        cdef int failure
        assert self.core.rows[query].count == 0
        with nogil:
            failure = export_windows(&self.core, query, place)
        self._raise(failure)
        return self.rows(query)

    def take_listed(self, list listings, const int64_t[::1] ranks, int64_t limit, list values):
        """Take the rows of some queries as dicts, in the order of windows and ranks.

        Parameters
        ----------
        listings : list of hamlet.kernel.state.dicts.Listing
            A query of the kernel may have several.
        ranks : int64 array
            By key.
        limit : int
            All ranks are below.
        values : list of list
            For each attribute of the key its values, by key.

        Returns
        -------
        list of (int, list of dict)
            The `index` of each listing that has rows, and these.
        """
        for listing in listings:
            self._raise(unroll(&self.core, listing.part))
        found = listed_rows(&self.core, listings, ranks, limit, values)
        for listing in listings:
            self.drop(listing.part)
        return found

    @property
    def counters(self):
        """What the kernel has counted so far, by name; integers."""
        cdef Core* k = &self.core
        return {
            "windows": k.windows,
            "largest_count_bits": k.most_bits,
            "live_states": k.states,
            "bursts": k.bursts,
            "graphlets": k.graphlets,
            "shared_graphlets": k.shared_graphlets,
            "coefficient_computations": k.coefficients,
            "snapshots": k.snapshots,
            "snapshot_values": k.applied,
            "beginnings": k.beginnings,
            "pane_maps": k.mapped,
            "whole_windows": k.whole_windows,
            "decisions": k.decisions,
            "decisions_by_model": k.decided,
            "decision_ns": k.decision_ns,
            "splits": k.splits,
            "merges": k.merges,
        }

    @property
    def work(self):
        """What each operator was given: (events, bursts, windows) by the names of `OPERATORS`."""
        cdef const Work* work = self.core.work
        return {name: (work[i].events, work[i].bursts, work[i].windows) for name, i in OPERATORS.items()}

    @property
    def reached(self):
        """How often each of the `FEATURES` was used, by name, since the kernel was made or adopted another one."""
        return {name: self.core.reached[i] for name, i in FEATURES.items()}

    def take_trace(self):
        """Take the records of bursts since the last call.

        Returns
        -------
        records : structured array of shape (n,)
            Fields: time and pane (ticks), key and type (numbers), b, n, g, k, s_c, s_p, shared_cost, non_shared_cost,
            decision (see `DECISIONS`), queries (how many shared).
        queries : int32 array
            The numbers of the queries that shared, record after record.
        """
        cdef Core* k = &self.core
        records = np.empty(k.trace.count, dtype=RECORD)
        queries = np.empty(k.trace.numbers, dtype=np.int32)
        cdef uint8_t[::1] record_view = records.view(np.uint8)
        cdef int32_t[::1] query_view = queries
        if k.trace.count:
            memcpy(&record_view[0], k.trace.record, k.trace.count * sizeof(Record))
        if k.trace.numbers:
            memcpy(&query_view[0], k.trace.number, k.trace.numbers * sizeof(int32_t))
        k.trace.count = 0
        k.trace.numbers = 0
        return records, queries


cdef void choose_arranged(const Core* k, const int64_t** columns) noexcept:
    """The columns whose values are worth being put in the order of the events: bursts read all of them."""
    cdef uint64_t read = 0
    cdef int i
    for i in range(MOST_GRAPHLETS):
        read |= k.graphlet[i].reads
    for i in range(MOST_ARRANGED):
        columns[i] = NULL
        if i < k.event_columns and read & column_bit(i) and not k.floating[i] and k.columns[i].valid == NULL:
            columns[i] = k.columns[i].data


cdef bint reads_extremes(const Query* q) noexcept:
    """Whether a query asks for the least or greatest value of a burst: exact sums do, for their bounds."""
    cdef int i
    for i in range(q.components):
        if LEAST_INT <= q.component[i].kind <= GREATEST_DOUBLE:
            return True
    return q.exact


cdef bint only_arranged(const Core* k, const int64_t** arranged) noexcept:
    """Whether the columns that bursts read are all worth being put in the order of the events."""
    cdef int i
    for i in range(k.event_columns):
        if arranged[min(i, MOST_ARRANGED - 1)] == NULL or i >= MOST_ARRANGED:
            for j in range(MOST_GRAPHLETS):
                if k.graphlet[j].reads & column_bit(i):
                    return False
    return True
