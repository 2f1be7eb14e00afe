"""The matching operator: queries with matching semantics, bounds on trends, sessions or distinct values.

It keeps, per query and key, the summed aggregates of partial trends as sparse lists of nodes (`matching_tables`), in
lanes that end at different times. `hamlet.kernel.interface` has what it shares with `hamlet._core.Kernel`.

Contract
--------
**Order.** Rows come in time order; the rows of a batch are put in the order of keys, which keeps their order in time.
Rows of one key, time and order are one step, and no step is spread over two calls.
"""

import cython
import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from hamlet.kernel.expression cimport MACHINE_DEPTH, Column, Register
from hamlet.kernel.interface cimport EventColumns, Interface, check_failure, rows_of
from hamlet.kernel.operators.matching.checkpoint cimport Reader, Writer, read_partition, write_partition
from hamlet.kernel.operators.matching.feed cimport log_batch, may_be_whole, sort_by_key, take_events
from hamlet.kernel.operators.matching.lineage cimport widen_records
from hamlet.kernel.operators.matching.load cimport load_table
from hamlet.kernel.operators.matching.logs cimport lay_logs, log_class, relay_log
from hamlet.kernel.operators.matching.marks cimport widen_marks
from hamlet.kernel.operators.matching.rows cimport free_rows, lay_row_columns, unroll
from hamlet.kernel.operators.matching.state cimport free_partition, relay
from hamlet.kernel.operators.matching.tables cimport (
    ANY,
    CONTIGUOUS,
    MOVES,
    NEXT,
    REGISTER_WORDS,
    Core,
    Entry,
    Log,
    Nodes,
    Partition,
    Rows,
    Table,
    extra_words,
    node_words,
)
from hamlet.kernel.operators.matching.value_sets cimport widen_values
from hamlet.kernel.operators.matching.windows cimport advance_time, schedule
from hamlet.kernel.plan cimport OUT_OF_MEMORY
from hamlet.kernel.radix_sort cimport Area, Portion, area_for, give_back
from hamlet.kernel.row_columns cimport RowColumns, comes_last, free_columns, taken_columns
from hamlet.memory.arrays cimport grown
from hamlet.memory.budget cimport Budget, take

cdef extern from "value_hash.h" nogil:
    uint64_t hash_coupon(const uint8_t* data, int64_t length)

SEMANTICS = {"any": ANY, "next": NEXT, "contiguous": CONTIGUOUS}
SIZES = {"partition": sizeof(Partition), "nodes": sizeof(Nodes), "registers": REGISTER_WORDS * sizeof(uint64_t)}


@cython.no_gc_clear  # the budget must still be there when the partitions are freed
cdef class Matching(Interface):
    """Runs the queries of one class of partition attributes over the events of its keys.

    Parameters
    ----------
    tables : sequence of hamlet.planner.matching.MatchingTables
        One per query, integers only.
    budget : Budget or None
        What all kernels of the run hold together; by default one of its own, without a limit.
    apart : bool
        Whether the order of events is 0 for rows of other queries, which come first of their time and have no order
        among its other events, and more for all others.
    ordered_queries : sequence of int
        Those whose rows may come as columns, in the `sequence` of `process`.

    Notes
    -----
    Not safe for use by two threads at once. After an exception the operator must not be used any more.
    """

    cdef Core core
    cdef dict logged     # of each query that keeps a log: for each of its columns the queries that it is kept for
    cdef object ranks    # of strings, as they are known

    def __cinit__(self, tables, budget=None, bint apart=False, ordered_queries=()):
        cdef Core* k = &self.core
        cdef int number, columns = 1, states = 1
        self.budget = Budget() if budget is None else budget
        k.account = &self.budget.account
        k.apart = apart
        k.mark = MOVES
        k.advanced = INT64_MIN
        k.queries = len(tables)
        k.query = <Table*> calloc(k.queries + 1, sizeof(Table))
        k.rows = <Rows*> calloc(k.queries + 1, sizeof(Rows))
        k.registers = <Register*> malloc(MACHINE_DEPTH * sizeof(Register))
        k.row_columns = <RowColumns*> calloc(k.queries + 1, sizeof(RowColumns))
        if k.query == NULL or k.rows == NULL or k.registers == NULL or k.row_columns == NULL:
            raise MemoryError
        for number, table in enumerate(tables):
            load_table(&k.query[number], table, apart, self)
            states = max(states, k.query[number].guard_states)
            for program, *_ in table.predicates:
                columns = max(columns, len(program.vector_columns), len(program.scalar_columns))
            for compared in table.compared:
                columns = max(columns, len(compared.columns))
        self.logged = lay_logs(k, tables, apart, self)
        for number in ordered_queries:
            if k.query[number].log != NULL and may_be_whole(&k.query[number]) and not k.query[number].event_sets:
                lay_row_columns(k, number)
        k.vector = <Column*> calloc(columns, sizeof(Column))
        k.scalar = <Column*> calloc(columns, sizeof(Column))
        k.fresh = <int64_t*> calloc(4 * states, sizeof(int64_t))
        traces = max((k.query[number].traces for number in range(k.queries)), default=0)
        widest = max((k.query[number].record_words for number in range(k.queries)), default=0)
        for table in tables:
            widest = max(widest, max((end - first for first, end in table.stores), default=0))
        k.traced_record = <int64_t*> calloc(traces + 1, sizeof(int64_t))
        k.kept_column = <Column*> calloc(widest + 1, sizeof(Column))
        if k.vector == NULL or k.scalar == NULL or k.fresh == NULL or k.traced_record == NULL or k.kept_column == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef Core* k = &self.core
        cdef Partition* spare
        cdef Py_ssize_t i
        cdef int query
        if k.query == NULL or k.rows == NULL:
            return
        for i in range(k.keys * k.queries):
            free_partition(k, &k.query[i % k.queries], k.partition[i])
        for query in range(k.queries):
            while k.query[query].spare != NULL:
                spare = k.query[query].spare
                k.query[query].spare = spare.next
                free_partition(k, &k.query[query], spare)
            free_rows(&k.rows[query])
            free(k.query[query].table)
            if k.row_columns != NULL:
                free_columns(&k.row_columns[query])
            if k.query[query].keeps_log:
                free(k.query[query].log.bound)
                free_partition(k, &k.query[query], k.query[query].log.whole)
        if k.account != NULL:
            take(k.account, -k.own)
        free(k.partition)
        free(k.query)
        free(k.rows)
        free(k.row_columns)
        free(k.due)
        free(k.entry)
        free(k.class_member)
        free(k.gathered)
        free(k.pending)
        free(k.fresh)
        free(k.kept_start)
        free(k.tally)
        free(k.taken)
        free(k.compared)
        free(k.scratch)
        free(k.bound)
        free(k.seen)
        free(k.todo)
        free(k.mapped)
        free(k.traced_record)
        free(k.kept_column)
        free(k.vector)
        free(k.scalar)
        free(k.registers)

    def add_class(self, entries, int type):
        """Register a class of events: what such an event does to each query.

        Parameters
        ----------
        entries : sequence of (int, sequence of int, sequence of int, bool)
            Query, its arrivals, its guard arrivals, and whether its pattern names the type. Queries that do not see
            such events are left out.
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
        cdef int arrival, way
        cdef const Table* t
        k.class_member = <int*> grown(k.class_member, (k.class_members + more + 1) * sizeof(int))
        k.entry = <Entry*> grown(k.entry, (k.classes + 1) * k.queries * sizeof(Entry))
        memset(&k.entry[k.classes * k.queries], 0, k.queries * sizeof(Entry))
        log_class(k, entries)
        for query, arrivals, guards, named in entries:
            t = &k.query[query]
            entry = &k.entry[k.classes * k.queries + <int> query]
            entry.present = True
            entry.named = named
            entry.begins = bool(guards) or (named and t.gap >= 0)
            entry.arrivals = k.class_members
            for arrival in arrivals:
                k.class_member[k.class_members] = arrival
                k.class_members += 1
                for way in range(t.arrival[arrival].ways, t.arrival[arrival].ways_end):
                    entry.begins |= t.way[way].source == 0
            entry.arrivals_end = entry.guards = k.class_members
            for arrival in guards:
                k.class_member[k.class_members] = arrival
                k.class_members += 1
            entry.guards_end = k.class_members
        k.classes += 1
        return k.classes - 1

    def adopt(self, Matching other, widened):
        """Take over the state of an operator of the same queries whose attributes knew less of their types.

        Parameters
        ----------
        other : Matching
            Left empty.
        widened : sequence of (sequence of (int, int), sequence of int, sequence of (int, int), sequence of int)
            Per query the (list, place of column) whose kept values turn from INT into DOUBLE, the sets, the (traced
            variable, place of column) of records, what trends are grouped by, and the (predicate, place of column) of
            what is compared or added up in a log.
        """
        cdef Core* k = &self.core
        cdef Core* old = &other.core
        cdef Py_ssize_t slot, i, stride
        cdef int query, number, place
        cdef const Table* t
        cdef Partition* p
        cdef uint64_t* word
        assert k.queries == old.queries and k.keys == 0 and k.account == old.account
        k.partition, k.keys, k.live = old.partition, old.keys, old.live
        k.due, k.dues, k.dues_capacity = old.due, old.dues, old.dues_capacity
        k.advanced, k.most_bits = old.advanced, old.most_bits
        k.windows, k.whole_windows = old.windows, old.whole_windows
        moved = k.keys * k.queries * sizeof(Partition*) + k.dues_capacity * sizeof(uint64_t)
        k.own += moved
        old.own -= moved
        old.partition, old.keys = NULL, 0
        old.due, old.dues, old.dues_capacity = NULL, 0, 0
        if other.ranks is not None:
            self.know_ranks(other.ranks)
        for query in range(k.queries):
            t = &k.query[query]
            if t.log != NULL:
                self._adopt_log(other, query, widened)
                continue
            for slot in range(query, k.keys * k.queries, k.queries):
                p = k.partition[slot]
                if p == NULL:
                    continue
                if relay(k, t, &old.query[query], p, p.width, p.set_words):
                    self._raise(OUT_OF_MEMORY)
                for number, place in widened[query][0]:
                    number += t.states - t.own_states if number >= t.own_states else 0
                    stride = node_words(t, p, number)
                    for i in range(p.nodes[number].count):
                        word = p.nodes[number].word + p.nodes[number].head + i * stride
                        word += stride - extra_words(t, number) + place
                        (<double*> word)[0] = <double> (<int64_t*> word)[0]
                for place in widened[query][1]:
                    widen_values(&p.dictionary[place])
                for number, place in widened[query][2]:
                    widen_records(t, p, number, place)
                for place in widened[query][3]:
                    widen_marks(t, p, place)

    cdef void _adopt_log(self, Matching other, int query, object widened) except *:
        """Give the entries of a log the columns that are kept now."""
        cdef Core* k = &self.core
        cdef const Table* t = &k.query[query]
        cdef Py_ssize_t slot
        if not t.keeps_log:
            return
        before = other.logged[query]
        source, widens = np.zeros(t.log.columns + 1, np.int32), np.zeros(t.log.columns + 1, np.uint8)
        for column, users in enumerate(self.logged[query]):
            of, (kind, number, place) = users[0]
            source[column] = next(at for at, each in enumerate(before) if users[0] in each)
            turned = widened[of][{"trace": 2, "taking": 3, "compared": 4}[kind]]
            widens[column] = (number if kind == "taking" else (number, place)) in turned
        cdef const int32_t[::1] sources = source
        cdef const uint8_t[::1] wider = widens
        for slot in range(query, k.keys * k.queries, k.queries):
            if k.partition[slot] != NULL:
                if relay_log(k, t, k.partition[slot], other.core.query[query].log, &sources[0], &wider[0]):
                    self._raise(OUT_OF_MEMORY)

    def process(
        self, keys, times, orders, classes, columns, ranks, Py_ssize_t key_count, int32_t part=0, int32_t parts=1,
        int64_t until=INT64_MIN, rows=None, sequence=None, bint distinct=False, hashes=None,
    ):
        """Feed rows in (time, order) order; see `hamlet._core.Kernel.process`, also for what it raises.

        Parameters
        ----------
        hashes : uint64 array, optional
            Of each string number (`hash_texts`), where a query asks for them.
        """
        cdef Core* k = &self.core
        cdef EventColumns bound = EventColumns(columns)
        cdef const uint64_t[::1] hash_view = hashes
        if len(keys) == 0:
            return
        self._reserve_keys(key_count)
        k.columns = bound.column
        self.know_ranks(ranks)
        k.hashes = NULL if hashes is None or len(hashes) == 0 else &hash_view[0]
        try:
            if k.takers:
                self._take_events(keys, times, orders, classes, rows, key_count, part, parts)
            if k.logs:
                self._log_events(keys, times, orders, classes, rows, key_count, part, parts, until, sequence)
        finally:
            k.columns = NULL

    cdef void _log_events(
        self, object keys, object times, object orders, object classes, object rows, Py_ssize_t key_count,
        int32_t part, int32_t parts, int64_t until, object sequence,
    ) except *:
        """Give a batch to the logs."""
        cdef Core* k = &self.core
        cdef Area area = area_for(len(keys))
        cdef Portion batch
        cdef const int32_t[::1] key_view = np.asarray(keys, dtype=np.int32)
        cdef const int32_t[::1] class_view = np.asarray(classes, dtype=np.int32)
        cdef const int64_t[::1] time_view = times
        cdef const int64_t[::1] order_view = times if orders is None else orders
        cdef const int32_t[::1] row_view = key_view if rows is None else rows
        cdef const int32_t[::1] place_of = None if sequence is None else sequence[0]
        cdef const int32_t[::1] key_at = None if sequence is None else sequence[1]
        cdef const int32_t* place = NULL if sequence is None else &place_of[0]
        cdef const int32_t* at = NULL if sequence is None else &key_at[0]
        cdef const int64_t* order = NULL if orders is None else &order_view[0]
        cdef int number, failure
        memset(&batch, 0, sizeof(Portion))
        batch.number, batch.rows, batch.end = &key_view[0], NULL if rows is None else &row_view[0], len(keys)
        batch.limit, batch.part, batch.parts = key_count, part, parts
        batch.times, batch.classes = &time_view[0], &class_view[0]
        try:
            for number in range(k.logs):
                with nogil:
                    failure = log_batch(k, k.keeping[number], area, &batch, place, at, order, until)
                self._raise(failure)
        finally:
            give_back(area)

    cdef void _take_events(
        self, object keys, object times, object orders, object classes, object rows, Py_ssize_t key_count,
        int32_t part, int32_t parts
    ) except *:
        """Give a batch to the queries that take events one by one."""
        cdef Core* k = &self.core
        cdef const int32_t[::1] key_view = np.asarray(keys, dtype=np.int32)
        cdef const int32_t[::1] class_view = np.asarray(classes, dtype=np.int32)
        cdef const int64_t[::1] time_view = times
        cdef const int64_t[::1] order_view = times if orders is None else orders
        cdef const int64_t* order = NULL if orders is None else &order_view[0]
        cdef const int32_t[::1] row_view = rows
        cdef const int32_t* row = NULL if rows is None else &row_view[0]
        cdef Py_ssize_t n = len(keys), i, count = 0
        cdef uint64_t* event
        cdef uint64_t* spare
        cdef int* kind
        cdef Py_ssize_t place
        cdef int failure
        event = <uint64_t*> malloc(n * sizeof(uint64_t))
        spare = <uint64_t*> malloc(n * sizeof(uint64_t))
        kind = <int*> malloc(n * sizeof(int))
        try:
            if event == NULL or spare == NULL or kind == NULL:
                raise MemoryError
            with nogil:
                for i in range(n if parts == 1 else 0):
                    if key_view[i] >= 0:
                        event[count] = <uint64_t> key_view[i] << 32 | <uint64_t> (i if row == NULL else row[i])
                        count += 1
                for i in range(n if parts > 1 else 0):
                    if key_view[i] >= 0 and key_view[i] % parts == part:
                        event[count] = (
                            <uint64_t> (key_view[i] // parts) << 32 | <uint64_t> (i if row == NULL else row[i])
                        )
                        count += 1
                sort_by_key(event, spare, count, key_count)
                for i in range(count):  # one by one, so that the memory is asked for many at a time
                    place = <Py_ssize_t> (event[i] & <uint64_t> 0xFFFFFFFF)
                    (<int64_t*> spare)[i] = time_view[place]
                    kind[i] = class_view[place]
                failure = take_events(k, event, count, <int64_t*> spare, order, kind)
        finally:
            free(event)
            free(spare)
            free(kind)
        self._raise(failure)

    def know_ranks(self, ranks):
        """Keep the ranks of all strings that have a number: windows that close later compare by them, too."""
        cdef const int64_t[::1] view = ranks
        self.ranks = ranks
        self.core.ranks = &view[0]

    cdef void _raise(self, int failure) except *:
        cdef Core* k = &self.core
        check_failure(failure, k.account, k.failed_query, k.failed_predicate, k.failed_place, k.failed_row)

    cdef void _reserve_keys(self, Py_ssize_t key_count) except *:
        cdef Core* k = &self.core
        cdef Py_ssize_t capacity = k.keys
        if key_count <= capacity:
            return
        capacity = max(key_count, capacity + (capacity >> 1) + 16)
        if not take(k.account, (capacity - k.keys) * k.queries * sizeof(Partition*)):
            self._raise(OUT_OF_MEMORY)
        k.own += (capacity - k.keys) * k.queries * <int64_t> sizeof(Partition*)
        k.partition = <Partition**> grown(k.partition, (capacity * k.queries + 1) * sizeof(Partition*))
        memset(k.partition + k.keys * k.queries, 0, (capacity - k.keys) * k.queries * sizeof(Partition*))
        k.keys = capacity

    def advance(self, int64_t time):
        """Deliver every window that is final at `time` (ticks); no earlier row may follow."""
        cdef int failure
        with nogil:
            failure = advance_time(&self.core, time)
        self._raise(failure)

    # ------------------------------------------------------------------------------------------- saved states

    @property
    def due(self):
        """The first time at which something is looked at again whatever comes; no session ends before."""
        return self.core.due[0].time if self.core.dues else INT64_MAX

    def save(self):
        """The partitions as bytes for `load`; between two calls of `process`, with no row left to drain."""
        cdef Core* k = &self.core
        cdef Writer to
        cdef Py_ssize_t slot
        if self.waiting:
            raise ValueError("rows of closed windows have not been taken")
        memset(&to, 0, sizeof(Writer))
        header = np.array([k.advanced, k.most_bits, k.windows, k.whole_windows, k.live], np.int64).tobytes()
        for slot in range(k.keys * k.queries):
            if k.partition[slot] != NULL and write_partition(&to, &k.query[slot % k.queries], k.partition[slot], slot):
                free(to.word)
                raise MemoryError
        try:
            return header + PyBytes_FromStringAndSize(<char*> to.word, to.count * sizeof(uint64_t))
        finally:
            free(to.word)

    def load(self, const uint8_t[::1] data, Py_ssize_t key_count, int64_t events, const int64_t[::1] limits):
        """Take over what `save` wrote; see `hamlet._core.Kernel.load`."""
        cdef Core* k = &self.core
        cdef Reader source
        cdef int64_t header[5]
        cdef int64_t slot, _
        cdef Partition* p
        cdef int failure = 0
        assert k.keys == 0
        if len(data) < <Py_ssize_t> sizeof(header) or len(data) % sizeof(uint64_t):
            raise ValueError("the state of the windows is damaged")
        self._reserve_keys(key_count)
        memcpy(header, &data[0], sizeof(header))
        source.byte = &data[0] + sizeof(header)
        source.left = (len(data) - sizeof(header)) // sizeof(uint64_t)
        source.limits = &limits[0] if len(limits) else NULL
        source.most = min(max(events, 0), <int64_t> 1 << 40)
        k.advanced, k.most_bits, k.windows, k.whole_windows = header[0], header[1], header[2], header[3]
        for _ in range(header[4]):
            p = read_partition(k, &source, &slot)
            if p == NULL:
                self._raise(OUT_OF_MEMORY if source.left >= 0 else 0)
                raise ValueError("the state of the windows is damaged")
            if slot < 0 or slot >= k.keys * k.queries or k.partition[slot] != NULL:
                free_partition(k, &k.query[slot % k.queries], p)
                raise ValueError("the state of the windows is damaged")
            k.partition[slot] = p
            failure = schedule(k, &k.query[slot % k.queries], p, slot, k.advanced)
            self._raise(failure)
        if source.left:
            raise ValueError("the state of the windows is damaged")

    # ------------------------------------------------------------------------------------- what others look at

    def live(self):
        """Which keys are remembered: 1 by their number; uint8 array of shape (keys,)."""
        cdef Core* k = &self.core
        cdef Py_ssize_t slot
        found = np.zeros(k.keys, dtype=np.uint8)
        cdef uint8_t[::1] view = found
        for slot in range(k.keys * k.queries):
            if k.partition[slot] != NULL:
                view[slot // k.queries] = 1
        return found

    def closed(self):
        """How many rows each query has to drain, of those that have any; a dict of int to int."""
        cdef const Core* k = &self.core
        cdef int query
        return {
            query: k.rows[query].count + k.row_columns[query].count
            for query in range(k.queries) if k.rows[query].count or k.row_columns[query].count
        }

    def takes_whole(self, Py_ssize_t rows):  # noqa: ARG002
        """Whether windows that are whole in a batch are taken at once."""
        cdef int number
        return any([may_be_whole(&self.core.query[self.core.keeping[number]]) for number in range(self.core.logs)])

    @property
    def waiting(self):
        """Rows to drain."""
        return sum(self.closed().values())

    def memory(self, int query):
        """Bytes that a query holds, per key; of a log the queries hold equal parts. int64 array of shape (keys,)."""
        cdef Core* k = &self.core
        cdef Py_ssize_t key
        cdef const Log* log = k.query[query].log
        cdef int keeper = query if log == NULL else log.member[0].query, sharers = 1 if log == NULL else log.members
        found = np.zeros(k.keys, dtype=np.int64)
        cdef int64_t[::1] view = found
        for key in range(k.keys):
            if k.partition[key * k.queries + keeper] != NULL:
                view[key] = k.partition[key * k.queries + keeper].bytes // sharers
        return found

    def rows(self, int query):
        """The rows of windows that have closed since `drop`: valid until the operator is called again.

        Returns
        -------
        keys, windows : int64 arrays of shape (n,)
            Partition, and number of the window; of a session the time at which it begins.
        widths : int32 array of shape (n,)
        words : uint64 array
            The rows' cells one after the other (`hamlet._core.Kernel.rows`).
        """
        cdef Rows* r = &self.core.rows[query]
        self._raise(unroll(&self.core, query))
        return rows_of(r.key, r.window, r.width, r.word, r.count, r.words)

    def take_columns(self, int query):
        """Take the rows of whole windows, as `hamlet._core.Kernel.take_columns` does.

        Where trends are grouped by what they took, that is the last column.
        """
        cdef RowColumns* s = &self.core.row_columns[query]
        if s.count == 0:
            return None
        if comes_last(s, self.core.rows[query].window, self.core.rows[query].count):
            return taken_columns(s)
        self._raise(unroll(&self.core, query))
        return None

    def sets(self, int query):
        """The distinct values of the same rows, copied.

        Returns
        -------
        sizes : int64 array of shape (n, exact sets)
        values : int64 array
            The values of all exact sets, row after row: integers, the bits of doubles, or numbers of strings.
        registers : uint8 array of shape (n, approximate sets, 4096)
        """
        cdef Rows* r = &self.core.rows[query]
        cdef const Table* t = &self.core.query[query]
        sizes = np.zeros(r.sizes, np.int64)
        values = np.zeros(r.members, np.int64)
        registers = np.zeros(r.register_words, np.uint64)
        if r.sizes:
            sizes[:] = np.asarray(<int64_t[:r.sizes]> r.size)
        if r.members:
            values[:] = np.asarray(<int64_t[:r.members]> r.member)
        if r.register_words:
            registers[:] = np.asarray(<uint64_t[:r.register_words]> r.registers)
        return (
            sizes.reshape(r.count, t.exact_sets),
            values,
            registers.view(np.uint8).reshape(r.count, t.registers, 8 * <int> REGISTER_WORDS),
        )

    def events(self, int query):
        """The matched events of the same rows, for those event sets that are asked for; copied.

        Returns
        -------
        sizes : int64 array of shape (n, event sets)
        events : int64 array of shape (events of all sets, 3)
            Row after row, set after set: what tells an event apart, whether it has a value, and the value.
        """
        cdef Rows* r = &self.core.rows[query]
        sizes = np.zeros(r.event_sizes, np.int64)
        events = np.zeros(r.events, np.int64)
        if r.event_sizes:
            sizes[:] = np.asarray(<int64_t[:r.event_sizes]> <int64_t*> r.event_size)
        if r.events:
            events[:] = np.asarray(<int64_t[:r.events]> <int64_t*> r.event)
        return sizes.reshape(r.count, self.core.query[query].event_sets), events.reshape(-1, 3)

    def marks(self, int query):
        """What the trends of the same rows took; int64 array of shape (n, things that GROUP-BY names, 2), copied.

        The first number of a value says whether there is an event (bit 0) and a value (bit 1).
        """
        cdef Rows* r = &self.core.rows[query]
        marks = np.zeros(r.marks, np.int64)
        if r.marks:
            marks[:] = np.asarray(<int64_t[:r.marks]> <int64_t*> r.mark)
        return marks.reshape(r.count, self.core.query[query].takings, 2)

    def drop(self, int query):
        """Forget the rows that `rows` gives."""
        cdef Rows* r = &self.core.rows[query]
        r.count = r.words = r.members = r.sizes = r.register_words = 0
        r.marks = r.events = r.event_sizes = 0

    @property
    def counters(self):
        """What has been counted so far, by name; integers. Bursts and what concerns them are the kernel's."""
        cdef Core* k = &self.core
        found = dict.fromkeys(COUNTERS, 0)
        found["windows"], found["largest_count_bits"], found["live_states"] = k.windows, k.most_bits, k.live
        found["whole_windows"] = k.whole_windows
        return found


COUNTERS = (
    "windows", "largest_count_bits", "live_states", "bursts", "graphlets", "shared_graphlets",
    "coefficient_computations", "snapshots", "snapshot_values", "beginnings", "pane_maps", "whole_windows", "decisions",
    "decisions_by_model", "decision_ns", "splits", "merges",
)


def hash_texts(texts):
    """What registers keep of strings; uint64 array of shape (len(texts),)."""
    cdef bytes data
    cdef Py_ssize_t i
    found = np.zeros(len(texts), np.uint64)
    cdef uint64_t[::1] view = found
    for i, text in enumerate(texts):
        data = text.encode("utf-8", "surrogatepass")
        view[i] = hash_coupon(<const uint8_t*> <const char*> data, len(data))
    return found
