"""Logs of events, which are looked through forwards and backwards when a window closes.

Where any event may be skipped, an event is in a trend exactly where a beginning reaches it and an end is reached from
it. Both only ask which slots have been reached before, and which will be: a bit for each slot of each query (`logs`), a
pass over the window in either direction for all queries of a log at once; where neighbours are compared also with what
key (`neighbours`). In either direction a match of a guard empties slots, and what events of its own step reach stays:
no gap between two of them holds it. Queries that ask how many trends there are count those over the events that are
left (`tallies`). Under SPAN a time stands in place of a bit (`lengths`), and what lies before a window is kept as far
back as its trends begin.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memmove

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
from hamlet.kernel.operators.matching.lineage cimport close_set, reserve_record
from hamlet.kernel.operators.matching.neighbours cimport (
    check_keys,
    lay_gates,
    look_backwards_through,
    look_forwards_through,
)
from hamlet.kernel.operators.matching.packed cimport count_packed
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_cell
from hamlet.kernel.operators.matching.tables cimport (
    LOG_HEAD,
    Core,
    EventSet,
    Gain,
    Log,
    Member,
    Move,
    Partition,
    Rows,
    Sum,
    Table,
    Trace,
    clear,
    copy,
    place_on_line,
    rotated,
    time_of_edge,
)
from hamlet.kernel.operators.matching.tallies cimport count_trends
from hamlet.kernel.plan cimport (
    LEAST_INT,
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
    int popcountll "__builtin_popcountll"(unsigned long long) noexcept nogil

cdef enum:
    BITS = 64            # of a word


cdef inline int64_t time_of(const Table* t, const Partition* p, Py_ssize_t entry) noexcept nogil:
    return <int64_t> p.lineage.record[entry * t.record_words]


cdef int log_event(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* bound, bint new_step, Py_ssize_t row
) noexcept nogil:
    """Append an event that lies in an open window. Returns a Failure."""
    cdef const Table* t = &k.query[query]
    cdef const Log* log = t.log
    cdef const Column* column
    cdef uint64_t* entry
    cdef uint8_t* there
    cdef int i
    if p.lineage.records == p.lineage.record_capacity and reserve_record(k, t, p):
        return OUT_OF_MEMORY
    entry = p.lineage.record + p.lineage.records * t.record_words
    p.lineage.records += 1
    p.step += new_step
    entry[0], entry[1] = <uint64_t> time, <uint64_t> p.step
    copy(entry + LOG_HEAD, bound, 2 * log.words)
    there = <uint8_t*> (entry + log.head + log.columns)
    clear(<uint64_t*> there, t.record_words - log.head - log.columns)
    for i in range(log.columns):
        column = &k.columns[log.column[i]]
        there[i] = column.valid == NULL or column.valid[row]
        entry[log.head + i] = <uint64_t> column.data[row] if there[i] else 0
    if p.row_due == INT64_MAX or t.span >= 0:
        p.row_due = min(p.row_due, due_of(t, window_of(t, p, p.lineage.records - 1)))
    return check_keys(k, log, entry, row) if log.searches else NO_FAILURE


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


cdef int deliver_reached(
    Core* k, int query, Partition* p, int64_t key, int64_t window, Py_ssize_t first, Py_ssize_t entries
) noexcept nogil:
    """Append the rows of a window, which ends with so many entries of the log and begins with the one at `first`."""
    cdef const Table* t = &k.query[query]
    cdef const Log* log = t.log
    cdef const Member* m
    cdef const uint64_t* record = p.lineage.record
    cdef uint64_t* cell
    cdef int i, listed = 0, failure
    if t.span >= 0:
        listed = reach_within(k, t, log, record, first, entries)
        k.windows += max(listed, 0)
        failure = OUT_OF_MEMORY if listed < 0 else NO_FAILURE
    else:
        failure = reach_all(k, t, log, record, entries, &listed)
    if failure or listed == 0:
        return failure
    add_up_events(log, listed, record, t.record_words, entries, k.taken)
    for i in range(listed):
        m = &log.member[log.listed[i]]
        cell = log.cell + m.cell
        clear(cell, m.words)
        gain_all(log, m, record, t.record_words, entries, k.taken, cell)
        if k.query[m.query].event_sets and give_events(k, log, m, record, t.record_words, entries):
            return OUT_OF_MEMORY
        if m.tallies:
            continue
        increment(&k.query[m.query].cells, 1, cell)
        if append_cell(k, m.query, key, window, 0, 0, cell):
            return OUT_OF_MEMORY
    if t.span < 0 and log.tallies:
        listed = count_packed(k, log, p, key, window, entries, listed)
        if listed < 0:
            return OUT_OF_MEMORY
    for i in range(listed if log.tallies else 0):
        m = &log.member[log.listed[i]]
        failure = count_trends(k, log, m, p, key, window, first, entries) if m.tallies else NO_FAILURE
        if failure:
            return failure
    return NO_FAILURE


cdef int reach_all(
    Core* k, const Table* t, const Log* log, const uint64_t* record, Py_ssize_t entries, int* listed
) noexcept nogil:
    """Find the slots that some trend takes each entry in, as `k.taken`, and list the queries that have one."""
    cdef uint64_t* reached = log.room
    cdef uint64_t* fields = log.room + log.words
    cdef uint64_t touched
    cdef int i, failure
    cdef bint compares = log.gate_first[log.words] > 0
    if compares and lay_gates(k, t, record, entries):
        return OUT_OF_MEMORY
    if reserve_words(k, &k.taken, &k.taken_words, entries * log.words):
        return OUT_OF_MEMORY
    for i in range(log.words):
        if log.gate_first[i] < log.gate_first[i + 1]:
            failure = look_forwards_through(k, t, i, record, entries, &reached[i], &touched)
            if failure:
                return failure
        else:
            reached[i] = look_forwards(log, i, record, t.record_words, entries, k.taken + i, &touched)
        reached[i] &= log.finals[i]
        k.windows += popcountll(highest_of(log, i, touched))
    listed[0] = list_members(log, reached, fields)
    for i in range(log.words if listed[0] else 0):
        if log.gate_first[i] < log.gate_first[i + 1]:
            failure = look_backwards_through(k, t, i, record, entries, fields[i] & log.finals[i])
            if failure:
                return failure
        else:
            look_backwards(log, i, record, t.record_words, entries, fields[i] & log.finals[i], k.taken + i)
    return NO_FAILURE


cdef inline uint64_t highest_of(const Log* log, int word, uint64_t bits) noexcept nogil:
    """The highest bits of those queries of which some bit of a word is set."""
    cdef uint64_t highest = log.highest[word], lower = log.lower[word]
    return ((bits & lower) + lower | bits) & highest  # the sum carries into the highest bit


cdef int list_members(const Log* log, const uint64_t* bits, uint64_t* fields) noexcept nogil:
    """List the queries of which some bit is set, and say how many they are; `fields` are all bits of these."""
    cdef int count = 0, i, place
    cdef uint64_t left, found
    for i in range(log.words):
        left = highest_of(log, i, bits[i])
        found = 0
        while left:
            place = log.member_of[BITS * i + ctzll(left)]
            log.listed[count] = place
            found |= log.field_of[place]
            left &= left - 1
            count += 1
        fields[i] = found
    return count


cdef uint64_t look_forwards(
    const Log* log, int word, const uint64_t* entry, Py_ssize_t stride, Py_ssize_t entries, uint64_t* found,
    uint64_t* touched
) noexcept nogil:
    """For each entry the slots of a word that it enters, and those that are reached in the end.

    `touched` are the slots that entries might enter, and those that they empty.
    """
    cdef const Move* first = log.move + log.move_first[word]
    cdef const Move* end = log.move + log.move_first[word + 1]
    cdef const Move* move
    cdef const uint64_t* bound = entry + LOG_HEAD + word
    cdef Py_ssize_t at = 0
    cdef uint64_t reached = log.starts[word], entered, fresh, emptied, step
    touched[0] = 0
    while at < entries:
        entered = fresh = emptied = 0
        move = first
        while move < end:
            entered |= rotated(reached, move.shift) & move.targets
            move += 1
        step = entry[1]
        while True:  # events of a step do not follow one another
            touched[0] |= bound[0] | bound[log.words]
            found[0] = entered & bound[0]
            fresh |= found[0]
            emptied |= bound[log.words]
            found += log.words
            bound += stride
            entry += stride
            at += 1
            if at == entries or entry[1] != step:
                break
        reached = reached & ~emptied | fresh
    return reached


cdef void look_backwards(
    const Log* log, int word, const uint64_t* record, Py_ssize_t stride, Py_ssize_t entries, uint64_t wanted,
    uint64_t* found
) noexcept nogil:
    """Of the slots that each entry enters leave those from which an end is reached, which are `wanted` at the end."""
    cdef const Move* first = log.move + log.move_first[word]
    cdef const Move* end = log.move + log.move_first[word + 1]
    cdef const Move* move
    cdef const uint64_t* entry = record + (entries - 1) * stride
    cdef Py_ssize_t at = entries
    cdef uint64_t fresh, emptied, step
    found += entries * log.words
    while at:
        step = entry[1]
        fresh = emptied = 0
        while True:
            found -= log.words
            found[0] &= wanted
            fresh |= found[0]
            emptied |= entry[LOG_HEAD + log.words + word]
            entry -= stride
            at -= 1
            if at == 0 or entry[1] != step:
                break
        wanted &= ~emptied
        move = first
        while move < end:
            wanted |= rotated(fresh & move.targets, -move.shift)
            move += 1


cdef void add_up_events(
    const Log* log, int listed, const uint64_t* record, Py_ssize_t stride, Py_ssize_t entries, const uint64_t* taken
) noexcept nogil:
    """Add up the events that trends of the listed queries take, event by event: most matter to few queries."""
    cdef const Member* m
    cdef const Trace* trace
    cdef const uint64_t* kept = record + log.head
    cdef Sum* s
    cdef uint64_t left
    cdef int i, word, number
    cdef Py_ssize_t _
    for i in range(listed):
        m = &log.member[log.listed[i]]
        for number in range(log.trace[m.traces].sums if m.traces < m.traces_end else 0, sums_end(log, m)):
            s = &log.sum[number]
            s.count = s.low = s.high = 0
            s.least, s.greatest = INT64_MAX, INT64_MIN
    for _ in range(entries):
        for word in range(log.words):
            left = taken[word] & log.summed[word]
            while left:
                trace = &log.trace[log.trace_of[BITS * word + ctzll(left)]]
                left &= ~trace.mask
                for number in range(trace.sums, trace.sums_end):
                    add_event(&log.sum[number], kept)
        taken += log.words
        kept += stride


cdef inline int sums_end(const Log* log, const Member* m) noexcept nogil:
    """The end of a query's sums."""
    return log.trace[m.traces_end - 1].sums_end if m.traces < m.traces_end else 0


cdef inline void add_event(Sum* s, const uint64_t* kept) noexcept nogil:
    """Add an event, whose attributes are kept, where it has a value; no log has so many that 128 bits are too few."""
    cdef uint64_t value = kept[s.place]
    if not s.always | (<const uint8_t*> kept)[s.there]:
        return
    s.count += 1
    s.low += value
    s.high += <uint64_t> (<int64_t> value >> 63) + (s.low < value)
    s.least = min(s.least, <int64_t> value)
    s.greatest = max(s.greatest, <int64_t> value)


cdef void gain_all(
    const Log* log, const Member* m, const uint64_t* record, Py_ssize_t stride, Py_ssize_t entries,
    const uint64_t* taken, uint64_t* cell
) noexcept nogil:
    """Write the components of a query over matched events into a cell of width 1 that is all zeros."""
    cdef const Trace* trace
    cdef const Gain* gain
    cdef const Sum* s
    cdef uint64_t* target
    cdef int number, each
    for number in range(m.traces, m.traces_end):
        trace = &log.trace[number]
        for each in range(trace.gains, trace.gains_end):
            gain = &log.gain[each]
            target = cell + gain.place
            if gain.sum < 0:
                gain_each(
                    gain, trace.mask, record + log.head, stride, entries, log.columns, taken + m.word, log.words, target
                )
                continue
            s = &log.sum[gain.sum]
            if gain.kind == OCCURRENCES:
                target[0] = s.count
            elif gain.kind == SUM_INT:
                target[0], target[1], target[2] = s.low, s.high, <uint64_t> (<int64_t> s.high >> 63)
            else:
                target[0] = s.count > 0
                if gain.kind != PRESENT and s.count:
                    target[1] = <uint64_t> (s.least if gain.kind == LEAST_INT else s.greatest)


cdef void gain_each(
    const Gain* gain, uint64_t mask, const uint64_t* kept, Py_ssize_t stride, Py_ssize_t entries, int columns,
    const uint64_t* taken, int words, uint64_t* target
) noexcept nogil:
    """Add the events that trends take in the slots of a mask, whose attributes are kept, to a component."""
    cdef Py_ssize_t _
    cdef uint64_t value = 0
    cdef Scaled one
    for _ in range(entries):
        if taken[0] & mask and (gain.column < 0 or (<const uint8_t*> (kept + columns))[gain.column]):
            if gain.column >= 0:
                value = kept[gain.column]
            if gain.kind == SUM_DOUBLE or gain.kind == OCCURRENCES_SCALED:
                one.m, one.e = 1.0, 0
                if gain.kind == SUM_DOUBLE:
                    one = scaled_multiply(one, <double> <int64_t> value if gain.integer else (<double*> &value)[0])
                scaled_store(target, scaled_add(scaled_load(target), one))
            else:
                extend_extremum(gain.kind, target, value)
        taken += words
        kept += stride


cdef int give_events(
    Core* k, const Log* log, const Member* m, const uint64_t* record, Py_ssize_t stride, Py_ssize_t entries
) noexcept nogil:
    """Append the events of a query's event sets that trends take, of the one row that it gives of a window."""
    cdef Rows* r = &k.rows[m.query]
    cdef const EventSet* s
    cdef const uint64_t* kept
    cdef const uint8_t* there
    cdef Py_ssize_t at, found = r.events
    cdef int i
    for i in range(k.query[m.query].event_sets):
        s = &m.event_set[i]
        for at in range(entries):
            if not k.taken[at * log.words + m.word] & m.set_slots[i]:
                continue
            if reserve_words(k, &r.event, &r.events_capacity, r.events + 3):
                return OUT_OF_MEMORY
            kept = record + at * stride + log.head
            there = <const uint8_t*> (kept + log.columns)
            r.event[r.events] = kept[s.id]
            r.event[r.events + 1] = <uint64_t> (there[s.place] if s.place >= 0 else 0)
            r.event[r.events + 2] = kept[s.place] if s.place >= 0 else 0
            r.events += 3
        if close_set(k, r, found):
            return OUT_OF_MEMORY
        found = r.events
    return NO_FAILURE


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
