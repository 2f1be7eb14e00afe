"""Matched events of plain queries: events are logged, and looked through forwards and backwards when a window closes.

Where nothing but matched events is asked, any event may be skipped, and there are no guards and no conditions on
neighbours, an event is in a trend exactly where a beginning reaches it and an end is reached from it. Both only ask
which states have been reached before, and which will be: a bit for each state, a pass over the window in either
direction. An entry of the log is the time, the step, the states that the event may be bound in, and attributes.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memmove, memset

from hamlet.kernel.cells cimport add_cell, bind_event, first_kept, increment, lowest_window, words_of
from hamlet.kernel.operators.matching.lineage cimport reserve_record
from hamlet.kernel.operators.matching.predicates cimport keep_columns
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_row
from hamlet.kernel.operators.matching.tables cimport LOG_HEAD, Core, Lineage, Partition, Table, Traced
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil


cdef inline int first_column(const Table* t) noexcept nogil:
    return t.traced[0].columns


cdef inline int64_t time_of(const Table* t, const Partition* p, Py_ssize_t entry) noexcept nogil:
    return <int64_t> p.lineage.record[entry * t.record_words]


cdef int log_event(
    Core* k, int query, Partition* p, int64_t time, uint64_t states, bint new_step, Py_ssize_t row
) noexcept nogil:
    """Append an event that lies in an open window."""
    cdef const Table* t = &k.query[query]
    cdef uint64_t* entry
    if reserve_record(k, t, p):
        return OUT_OF_MEMORY
    entry = p.lineage.record + p.lineage.records * t.record_words
    p.lineage.records += 1
    p.step += new_step
    entry[0], entry[1], entry[2] = <uint64_t> time, <uint64_t> p.step, states
    keep_columns(k, t, first_column(t), t.traced[t.traces - 1].columns_end, entry + LOG_HEAD, row)
    if p.row_due == INT64_MAX:
        p.row_due = log_due(t, p)
    return NO_FAILURE


cdef inline int64_t first_open(const Table* t, const Partition* p) noexcept nogil:
    """The first window that has not been delivered and did not end before the first entry; there is one."""
    return max(p.next_window, lowest_window(time_of(t, p, 0), t.within, t.slide))


cdef int64_t log_due(const Table* t, const Partition* p) noexcept nogil:
    """When the first window with an entry ends."""
    if p.lineage.records == 0:
        return INT64_MAX
    return first_open(t, p) * t.slide + t.within


cdef void drop_before(const Table* t, Partition* p, int64_t time) noexcept nogil:
    """Forget the entries before a time."""
    cdef Lineage* log = &p.lineage
    cdef Py_ssize_t gone = 0
    while gone < log.records and time_of(t, p, gone) < time:
        gone += 1
    log.records -= gone
    if gone and log.records:
        memmove(log.record, log.record + gone * t.record_words, log.records * t.record_words * sizeof(uint64_t))


cdef int close_windows(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil:
    """Deliver the windows that are over when all events before a time have been seen."""
    cdef const Table* t = &k.query[query]
    cdef int64_t limit = first_kept(max(time, k.advanced), t.within, t.slide), window
    cdef Py_ssize_t entries
    while p.lineage.records:
        window = first_open(t, p)
        if window >= limit:
            break
        if window * t.slide <= time_of(t, p, 0):
            entries = 1
            while entries < p.lineage.records and time_of(t, p, entries) < window * t.slide + t.within:
                entries += 1
            if deliver_reached(k, query, p, key, window, entries):
                return OUT_OF_MEMORY
            k.windows += 1
            p.next_window = window + 1
            window += 1
        drop_before(t, p, window * t.slide)
    p.row_due = log_due(t, p)
    return NO_FAILURE


cdef inline uint64_t sources_of(const Table* t, uint64_t states) noexcept nogil:
    """The states from which some of these are entered."""
    cdef uint64_t found = 0
    while states:
        found |= t.sources[ctzll(states)]
        states &= states - 1
    return found


cdef inline uint64_t enterable(const Table* t, uint64_t states, uint64_t reached) noexcept nogil:
    """Those of some states that are entered from states that have been reached."""
    cdef uint64_t found = 0, one
    while states:
        one = states & (~states + 1)
        if t.sources[ctzll(states)] & reached:
            found |= one
        states ^= one
    return found


cdef int deliver_reached(
    Core* k, int query, Partition* p, int64_t key, int64_t window, Py_ssize_t entries
) noexcept nogil:
    """Append the row of a window, which holds the first entries of the log."""
    cdef const Table* t = &k.query[query]
    cdef Py_ssize_t words = words_of(&t.cells, p.width), stride = t.record_words, at = 0, end
    cdef const uint64_t* entry
    cdef uint64_t reached = 1, fresh, wanted = 0, taken
    cdef uint64_t step
    if reserve_words(k, &k.todo, &k.todo_words, entries):
        return OUT_OF_MEMORY
    while at < entries:
        fresh = 0
        entry = p.lineage.record + at * stride
        step = entry[1]
        while at < entries and entry[1] == step:  # events of a step do not follow one another
            k.todo[at] = enterable(t, entry[2], reached)
            fresh |= k.todo[at]
            at += 1
            entry += stride
        reached |= fresh
    if not reached & t.finals:
        return NO_FAILURE
    if reserve_words(k, &k.scratch, &k.scratch_words, words) or reserve_words(k, &k.bound, &k.bound_words, words):
        return OUT_OF_MEMORY
    memset(k.scratch, 0, words * sizeof(uint64_t))
    increment(&t.cells, p.width, k.scratch)
    end = entries
    while end:
        fresh = 0
        at = end
        entry = p.lineage.record + (at - 1) * stride
        step = entry[1]
        while at and entry[1] == step:
            at -= 1
            taken = k.todo[at] & (t.finals | wanted)
            if taken:
                bind_entry(k, t, p, entry, taken)
                fresh |= sources_of(t, taken)
            entry -= stride
        wanted |= fresh
        end = at
    return append_row(k, query, p, key, window, k.scratch)


cdef void bind_entry(
    Core* k, const Table* t, const Partition* p, const uint64_t* entry, uint64_t states
) noexcept nogil:
    """Add an event to the components over matched events of the variables that it is bound to."""
    cdef int number, i, place
    cdef const Traced* traced
    cdef int columns = t.traced[t.traces - 1].columns_end - first_column(t)
    cdef const uint8_t* there = <const uint8_t*> (entry + LOG_HEAD + columns)
    cdef Py_ssize_t words = words_of(&t.cells, p.width)
    for number in range(t.traces):
        if not states & t.traced_states[number]:
            continue
        traced = &t.traced[number]
        for i in range(traced.columns_end - traced.columns):
            place = traced.columns - first_column(t) + i
            k.kept_column[i].data = <const int64_t*> entry + LOG_HEAD + place
            k.kept_column[i].valid = there + place
        memset(k.bound, 0, words * sizeof(uint64_t))
        increment(&t.cells, p.width, k.bound)
        bind_event(&t.events, &t.binding[traced.variable], p.width, k.bound, k.kept_column, 0)
        memset(k.bound, 0, (p.width if t.cells.exact else 2) * sizeof(uint64_t))  # no trends
        add_cell(&t.cells, p.width, k.scratch, k.bound)


cdef bint is_log(const Table* t, const Partition* p) noexcept nogil:
    """Whether a log that was read can be: times ascend, and steps, and states are there."""
    cdef Py_ssize_t i
    cdef const uint64_t* entry = p.lineage.record
    for i in range(p.lineage.records):
        if t.states < 64 and entry[2] >> t.states:
            return False
        if not -(<int64_t> 1 << 62) <= <int64_t> entry[0] <= <int64_t> 1 << 62:
            return False
        if i and (<int64_t> entry[0] < time_of(t, p, i - 1) or entry[1] < (entry - t.record_words)[1]):
            return False
        entry += t.record_words
    return True
