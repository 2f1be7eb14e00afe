"""Logs of events, which are looked through forwards and backwards when a window closes.

Where any event may be skipped and no neighbours are compared, an event is in a trend exactly where a beginning reaches
it and an end is reached from it. Both only ask which slots have been reached before, and which will be: a bit for each
slot of each query (`logs`), a pass over the window in either direction for all queries of a log at once. In either
direction a match of a guard empties slots, and what events of its own step reach stays: no gap between two of them
holds it. Queries that ask how many trends there are count those over the events that are left (`tallies`). Under SPAN a
time stands in place of a bit (`lengths`), and what lies before a window is kept as far back as its trends begin.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from hamlet.kernel.cells cimport (
    Scaled,
    extend_extremum,
    increment,
    lowest_window,
    scaled_add,
    scaled_load,
    scaled_multiply,
    scaled_store,
)
from hamlet.kernel.expression cimport Column
from hamlet.kernel.operators.matching.lengths cimport reach_within
from hamlet.kernel.operators.matching.lineage cimport reserve_record
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_cell
from hamlet.kernel.operators.matching.tables cimport (
    LOG_HEAD,
    Core,
    Gain,
    Log,
    Member,
    Move,
    Partition,
    Table,
    Trace,
    place_on_line,
    time_of_edge,
)
from hamlet.kernel.operators.matching.tallies cimport count_trends
from hamlet.kernel.plan cimport (
    NO_FAILURE,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
)

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil


cdef inline int64_t time_of(const Table* t, const Partition* p, Py_ssize_t entry) noexcept nogil:
    return <int64_t> p.lineage.record[entry * t.record_words]


cdef int log_event(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* bound, bint new_step, Py_ssize_t row
) noexcept nogil:
    """Append an event that lies in an open window."""
    cdef const Table* t = &k.query[query]
    cdef const Log* log = t.log
    cdef const Column* column
    cdef uint64_t* entry
    cdef uint8_t* there
    cdef int i
    if reserve_record(k, t, p):
        return OUT_OF_MEMORY
    entry = p.lineage.record + p.lineage.records * t.record_words
    p.lineage.records += 1
    p.step += new_step
    entry[0], entry[1] = <uint64_t> time, <uint64_t> p.step
    memcpy(entry + LOG_HEAD, bound, 2 * log.words * sizeof(uint64_t))
    there = <uint8_t*> (entry + log.head + log.columns)
    memset(there, 0, (t.record_words - log.head - log.columns) * sizeof(uint64_t))
    for i in range(log.columns):
        column = &k.columns[log.column[i]]
        there[i] = column.valid == NULL or column.valid[row]
        entry[log.head + i] = <uint64_t> column.data[row] if there[i] else 0
    if p.row_due == INT64_MAX or t.span >= 0:
        p.row_due = min(p.row_due, due_of(t, window_of(t, p, p.lineage.records - 1)))
    return NO_FAILURE


cdef inline int64_t window_of(const Table* t, const Partition* p, Py_ssize_t entry) noexcept nogil:
    """The first window that has not been delivered and holds an entry, or comes behind it."""
    return max(p.next_window, lowest_window(place_on_line(t, time_of(t, p, entry)), t.within, t.slide))


cdef inline int64_t due_of(const Table* t, int64_t window) noexcept nogil:
    return time_of_edge(t, window * t.slide + t.within)


cdef Py_ssize_t first_behind(const Table* t, const Partition* p, int64_t place) noexcept nogil:
    """The first entry at a place on the line of windows, or behind it."""
    cdef Py_ssize_t low = 0, high = p.lineage.records, middle
    while low < high:
        middle = (low + high) // 2
        if place_on_line(t, time_of(t, p, middle)) < place:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t first_ending(const Table* t, const Partition* p) noexcept nogil:
    """The first entry that trends of windows to be delivered may end with; without SPAN no others are kept."""
    return 0 if t.span < 0 or p.next_window == INT64_MIN else first_behind(t, p, p.next_window * t.slide)


cdef int64_t log_due(const Table* t, const Partition* p) noexcept nogil:
    """When the first window with an entry ends, or, where none is left, no trend can begin with an entry any more."""
    cdef Py_ssize_t at = first_ending(t, p)
    if at < p.lineage.records:
        return due_of(t, window_of(t, p, at))
    return time_of(t, p, at - 1) + t.log.looks_back + 1 if at else INT64_MAX


cdef void drop_before(const Table* t, Partition* p, int64_t time) noexcept nogil:
    """Forget the entries before a time."""
    cdef Py_ssize_t gone = 0, words = t.record_words
    while gone < p.lineage.records and time_of(t, p, gone) < time:
        gone += 1
    p.lineage.records -= gone
    if gone and p.lineage.records:
        memmove(
            p.lineage.record, p.lineage.record + gone * words, p.lineage.records * words * sizeof(uint64_t)
        )


cdef int close_windows(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil:
    """Deliver the windows that are over when all events before a time have been seen."""
    cdef const Table* t = &k.query[query]
    cdef int64_t now = max(time, k.advanced), window, since = now
    cdef Py_ssize_t first, entries
    cdef int failure
    while True:
        first = first_ending(t, p)
        if first == p.lineage.records:
            break
        window = window_of(t, p, first)
        if due_of(t, window) > now:
            since = min(now, time_of_edge(t, window * t.slide))
            break
        if window * t.slide <= place_on_line(t, time_of(t, p, first)):
            entries = first_behind(t, p, window * t.slide + t.within)
            failure = deliver_reached(k, query, p, key, window, first, entries)
            if failure:
                return failure
            window += 1
        p.next_window = window
        if t.span < 0:
            drop_before(t, p, window * t.slide)
    if t.span >= 0:
        drop_before(t, p, since - t.log.looks_back)
    p.row_due = log_due(t, p)
    return NO_FAILURE


# -------------------------------------------------------------------------------------------------- a window


cdef inline void enter(const Log* log, uint64_t* entered, const uint64_t* reached) noexcept nogil:
    """The slots that are entered from slots that have been reached."""
    cdef const Move* move
    cdef int i
    memset(entered, 0, log.words * sizeof(uint64_t))
    for i in range(log.moves):
        move = &log.move[i]
        if move.shift >= 0:
            entered[move.word] |= reached[move.word] << move.shift & move.targets
        else:
            entered[move.word] |= reached[move.word] >> -move.shift & move.targets


cdef inline void leave(const Log* log, uint64_t* left, const uint64_t* entered) noexcept nogil:
    """Add the slots from which slots are entered."""
    cdef const Move* move
    cdef int i
    for i in range(log.moves):
        move = &log.move[i]
        if move.shift >= 0:
            left[move.word] |= (entered[move.word] & move.targets) >> move.shift
        else:
            left[move.word] |= (entered[move.word] & move.targets) << -move.shift


cdef int deliver_reached(
    Core* k, int query, Partition* p, int64_t key, int64_t window, Py_ssize_t first, Py_ssize_t entries
) noexcept nogil:
    """Append the rows of a window, which ends with so many entries of the log and begins with the one at `first`."""
    cdef const Table* t = &k.query[query]
    cdef const Log* log = t.log
    cdef const Member* m
    cdef const uint64_t* record = p.lineage.record
    cdef int i, listed = 0, failure
    if t.span >= 0:
        listed = reach_within(k, t, log, record, first, entries)
        k.windows += max(listed, 0)
        failure = OUT_OF_MEMORY if listed < 0 else NO_FAILURE
    else:
        failure = reach_all(k, t, log, record, entries, &listed)
    if failure or listed == 0:
        return failure
    for i in range(listed):
        m = &log.member[log.listed[i]]
        memset(log.cell + m.cell, 0, m.words * sizeof(uint64_t))
    bind_taken(log, record, t.record_words, entries, k.taken)
    for i in range(listed):
        m = &log.member[log.listed[i]]
        if m.tallies:
            failure = count_trends(k, log, m, p, key, window, first, entries)
        else:
            increment(&k.query[m.query].cells, 1, log.cell + m.cell)
            failure = append_cell(k, m.query, key, window, log.cell + m.cell, NULL, 1)
        if failure:
            return failure
    return NO_FAILURE


cdef int reach_all(
    Core* k, const Table* t, const Log* log, const uint64_t* record, Py_ssize_t entries, int* listed
) noexcept nogil:
    """Find the slots that some trend takes each entry in, as `k.taken`, and list the queries that have one."""
    cdef uint64_t* reached = log.room
    cdef uint64_t* touched = log.room + 4 * log.words
    cdef int i
    if reserve_words(k, &k.taken, &k.taken_words, entries * log.words):
        return OUT_OF_MEMORY
    memcpy(reached, log.starts, log.words * sizeof(uint64_t))
    memset(touched, 0, log.words * sizeof(uint64_t))
    look_forwards(log, record, t.record_words, entries, reached, touched, k.taken)
    k.windows += list_members(log, touched, log.room + 5 * log.words)
    for i in range(log.words):
        reached[i] &= log.finals[i]
    listed[0] = list_members(log, reached, touched)
    if listed[0] == 0:
        return NO_FAILURE
    for i in range(log.words):
        touched[i] &= log.finals[i]
    look_backwards(log, record, t.record_words, entries, touched, k.taken)
    return NO_FAILURE


cdef int list_members(const Log* log, const uint64_t* bits, uint64_t* fields) noexcept nogil:
    """List the queries of which some bit is set, and say how many they are; `fields` are all bits of these."""
    cdef int count = 0, i
    cdef uint64_t left
    cdef const Member* m
    for i in range(log.words):
        left = bits[i]
        fields[i] = 0
        while left:
            log.listed[count] = log.member_of[64 * i + ctzll(left)]
            m = &log.member[log.listed[count]]
            fields[i] |= m.field
            left &= ~m.field
            count += 1
    return count


cdef void look_forwards(
    const Log* log, const uint64_t* entry, Py_ssize_t stride, Py_ssize_t entries, uint64_t* reached, uint64_t* touched,
    uint64_t* found
) noexcept nogil:
    """For each entry the slots that it enters; `touched` are those that it might, or empties."""
    cdef uint64_t* entered = log.room + log.words
    cdef uint64_t* fresh = log.room + 2 * log.words
    cdef uint64_t* emptied = log.room + 3 * log.words
    cdef Py_ssize_t at = 0
    cdef uint64_t step
    cdef int i
    while at < entries:
        enter(log, entered, reached)
        step = entry[1]
        memset(fresh, 0, 2 * log.words * sizeof(uint64_t))
        while at < entries and entry[1] == step:  # events of a step do not follow one another
            for i in range(log.words):
                touched[i] |= entry[LOG_HEAD + i] | entry[LOG_HEAD + log.words + i]
                found[i] = entered[i] & entry[LOG_HEAD + i]
                fresh[i] |= found[i]
                emptied[i] |= entry[LOG_HEAD + log.words + i]
            found += log.words
            entry += stride
            at += 1
        for i in range(log.words):
            reached[i] = reached[i] & ~emptied[i] | fresh[i]


cdef void look_backwards(
    const Log* log, const uint64_t* record, Py_ssize_t stride, Py_ssize_t entries, uint64_t* wanted, uint64_t* found
) noexcept nogil:
    """Of the slots that each entry enters leave those from which an end is reached, and which have a row."""
    cdef uint64_t* fresh = log.room + 2 * log.words
    cdef uint64_t* emptied = log.room + 3 * log.words
    cdef const uint64_t* entry = record + (entries - 1) * stride
    cdef Py_ssize_t at = entries
    cdef uint64_t step
    cdef int i
    found += entries * log.words
    while at:
        step = entry[1]
        memset(fresh, 0, 2 * log.words * sizeof(uint64_t))
        while at and entry[1] == step:
            found -= log.words
            for i in range(log.words):
                found[i] &= wanted[i]
                fresh[i] |= found[i]
                emptied[i] |= entry[LOG_HEAD + log.words + i]
            entry -= stride
            at -= 1
        for i in range(log.words):
            wanted[i] &= ~emptied[i]
        leave(log, wanted, fresh)


cdef void bind_taken(
    const Log* log, const uint64_t* entry, Py_ssize_t stride, Py_ssize_t entries, const uint64_t* taken
) noexcept nogil:
    """Add every event to the components over matched events of the variables that trends bind it to."""
    cdef Py_ssize_t _
    cdef uint64_t left
    cdef const Trace* trace
    cdef int i, number
    for _ in range(entries):
        for i in range(log.words):
            left = taken[i] & log.traced[i]
            while left:
                trace = &log.trace[log.trace_of[64 * i + ctzll(left)]]
                left &= ~trace.mask
                for number in range(trace.gains, trace.gains_end):
                    gain_of(&log.gain[number], log.cell + trace.cell, entry + log.head, log.columns)
        taken += log.words
        entry += stride


cdef inline void gain_of(const Gain* gain, uint64_t* cell, const uint64_t* kept, int columns) noexcept nogil:
    """Add an event, whose attributes are kept, to one component of a cell of width 1."""
    cdef uint64_t* target = cell + gain.place
    cdef uint64_t value = 0, before = target[0]
    cdef Scaled one
    if gain.column >= 0:
        if not (<const uint8_t*> (kept + columns))[gain.column]:
            return
        value = kept[gain.column]
    if gain.kind == OCCURRENCES:
        target[0] += 1
    elif gain.kind == SUM_INT:  # no log has so many events that 128 bits are too few
        target[0] += value
        target[1] += <uint64_t> (<int64_t> value >> 63) + (target[0] < before)
        target[2] = <uint64_t> (<int64_t> target[1] >> 63)
    elif gain.kind == PRESENT:
        target[0] = 1
    elif gain.kind == SUM_DOUBLE or gain.kind == OCCURRENCES_SCALED:
        one.m, one.e = 1.0, 0
        if gain.kind == SUM_DOUBLE:
            one = scaled_multiply(one, <double> <int64_t> value if gain.integer else (<double*> &value)[0])
        scaled_store(target, scaled_add(scaled_load(target), one))
    else:
        extend_extremum(gain.kind, target, value)


cdef bint is_log(const Table* t, const Partition* p, const int64_t* limits) noexcept nogil:
    """Whether a log that was read can be: times ascend, and steps, bits are there, strings are known."""
    cdef const Log* log = t.log
    cdef Py_ssize_t i
    cdef int column, word
    cdef int64_t limit
    cdef uint64_t known
    cdef const uint64_t* entry = p.lineage.record
    for i in range(p.lineage.records):
        for word in range(2 * log.words):
            known = fields_of(log, word % log.words)
            if entry[LOG_HEAD + word] & ~known:
                return False
        if not -(<int64_t> 1 << 62) <= <int64_t> entry[0] <= <int64_t> 1 << 62:
            return False
        if i and (<int64_t> entry[0] < time_of(t, p, i - 1) or entry[1] < (entry - t.record_words)[1]):
            return False
        for column in range(log.columns):
            limit = -1 if limits == NULL else limits[log.column[column]]
            if limit >= 0 and not 0 <= <int64_t> entry[log.head + column] < max(limit, 1):
                return False
        entry += t.record_words
    return True


cdef uint64_t fields_of(const Log* log, int word) noexcept nogil:
    """All bits of a word that some query has."""
    cdef uint64_t found = 0
    cdef int i
    for i in range(log.members):
        if log.member[i].word == word:
            found |= log.member[i].field
    return found
