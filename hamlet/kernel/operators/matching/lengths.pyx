"""Trends of limited length (SPAN) over a log: which events they take, and how many there are.

**Which events.** An event that is taken in a state is in a trend of at most d if and only if the earliest end that is
reached from there comes at most d after the latest beginning that reaches it. For what leads to a slot and what leads
on from it do not depend on each other: ways read sums, guards empty slots, whatever a trend took before. So any
beginning that reaches the state and any end that it reaches make one trend, and its length is least for the latest and
the earliest. One pass in either direction finds both, a time for each slot in place of a bit. What a guard before the
first event forbids depends on the beginning alone, and is settled there. A guard behind the last event would forbid an
end to the later beginnings only; such queries keep their trends by beginnings (`step`), as do those that compare
neighbours.

**How many.** Events are cut into blocks of length d at most, of which two that are not neighbours lie more than d
apart. So a trend lies in one block, where none is too long, or crosses one border. What trends have become at a border
is found from the border backwards, for each step in which they begin; what becomes of one that stands in a slot there
is found forwards, with the next block; and the two are multiplied: at each end with the sums of all beginnings that are
not yet too long ago, and, for marks that beginnings decide, when the time of a beginning is over with the ends until
then. An event costs (1 + slots) times the marks, and a beginning is entered and taken out once.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cell_products cimport limbs_subtract
from hamlet.kernel.cells cimport bit_length, limbs_add, limbs_increment
from hamlet.kernel.operators.matching.passes cimport (
    NOTHING,
    START_HEAD,
    Step,
    Tally,
    add_marks,
    add_times,
    read_step,
    retrace,
    write_step,
)
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.tables cimport FIRST, LOG_HEAD, Arrival, Core, Log, Member, Table
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil
    int clzll "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum:
    BITS = 64


# ------------------------------------------------------------------------------------------------ which events


cdef int reach_within(
    Core* k, const Table* t, const Log* log, const uint64_t* record, Py_ssize_t first, Py_ssize_t entries
) noexcept nogil:
    """Find the slots that some trend takes each entry in, as `k.taken`, and list the queries that have one; how many.

    Trends end with an entry from `first` on. Returns -1 where there is no memory.
    """
    cdef int i, listed = 0
    if reserve_words(k, &k.taken, &k.taken_words, entries * log.words):
        return -1
    memset(k.taken, 0, entries * log.words * sizeof(uint64_t))
    for i in range(log.members):
        k.gathered_count = 0
        if find_latest(k, t, log, &log.member[i], record, entries):
            return -1
        if find_earliest(k, t, log, &log.member[i], record, first, entries):
            log.listed[listed] = i
            listed += 1
    return listed


cdef int find_latest(
    Core* k, const Table* t, const Log* log, const Member* m, const uint64_t* entry, Py_ssize_t entries
) noexcept nogil:
    """The latest beginning that reaches each entry in each of its states; INT64_MIN for none. Returns a Failure."""
    cdef int64_t standing[BITS]  # of a slot; of the start's: when it was emptied
    cdef int64_t fresh[BITS]
    cdef const Arrival* a
    cdef uint64_t left, entered, emptied, step
    cdef Py_ssize_t at = 0
    cdef int64_t time, latest
    cdef int bit, way, slot
    for slot in range(m.slots):
        standing[slot] = INT64_MIN
    while at < entries:
        time, step = <int64_t> entry[0], entry[1]
        entered = emptied = 0
        while at < entries and entry[1] == step:
            left = entry[LOG_HEAD + m.word] >> m.base & (m.field >> m.base)
            if reserve_words(k, &k.gathered, &k.gathered_words, k.gathered_count + BITS):
                return OUT_OF_MEMORY
            while left:
                bit = ctzll(left)
                left &= ~m.state_slots[m.slot_state[bit]]
                a = &k.query[m.query].arrival[m.arrival[m.slot_state[bit]]]
                latest = INT64_MIN
                for way in range(a.ways, a.ways_end):
                    slot = m.way_slot[way]
                    if m.slot_state[slot]:
                        latest = max(latest, standing[slot])
                    elif standing[slot] == INT64_MIN or standing[slot] < time - t.span:
                        latest = time
                k.gathered[k.gathered_count] = <uint64_t> latest
                k.gathered_count += 1
                fresh[bit] = latest
                entered |= <uint64_t> 1 << bit
            emptied |= entry[LOG_HEAD + log.words + m.word] >> m.base & (m.field >> m.base)
            entry += t.record_words
            at += 1
        while emptied:
            slot = ctzll(emptied)
            emptied &= emptied - 1
            standing[slot] = INT64_MIN if m.slot_state[slot] else time
        while entered:
            bit = ctzll(entered)
            entered &= entered - 1
            left = m.state_slots[m.slot_state[bit]]
            while left:
                slot = ctzll(left)
                left &= left - 1
                standing[slot] = max(standing[slot], fresh[bit])
    return NO_FAILURE


cdef bint find_earliest(
    Core* k, const Table* t, const Log* log, const Member* m, const uint64_t* record, Py_ssize_t first,
    Py_ssize_t entries
) noexcept nogil:
    """Note where the earliest end that an entry reaches is near enough to the latest beginning; whether any is."""
    cdef int64_t standing[BITS]
    cdef int64_t fresh[BITS]
    cdef const Arrival* a
    cdef const uint64_t* entry = record + entries * t.record_words
    cdef uint64_t left, entered, emptied, step, found
    cdef Py_ssize_t at = entries
    cdef int64_t earliest, latest
    cdef int bit, way, slot
    cdef bint some = False
    for slot in range(m.slots):
        standing[slot] = INT64_MAX
    while at:
        step = (entry - t.record_words)[1]
        entered = emptied = 0
        while at and (entry - t.record_words)[1] == step:
            at -= 1
            entry -= t.record_words
            found = 0
            left = entry[LOG_HEAD + m.word] >> m.base & (m.field >> m.base)
            while left:
                bit = BITS - 1 - clzll(left)  # the other way round than they were found
                left &= ~m.state_slots[m.slot_state[bit]]
                earliest = INT64_MAX
                if at >= first and m.state_slots[m.slot_state[bit]] & m.finals:
                    earliest = <int64_t> entry[0]
                else:
                    earliest = earliest_of(standing, m.state_slots[m.slot_state[bit]])
                k.gathered_count -= 1
                latest = <int64_t> k.gathered[k.gathered_count]
                if latest != INT64_MIN and earliest != INT64_MAX and earliest - latest <= t.span:
                    found |= m.state_slots[m.slot_state[bit]] << m.base
                fresh[bit] = earliest
                entered |= <uint64_t> 1 << bit
            k.taken[at * log.words + m.word] |= found
            some |= found != 0
            emptied |= entry[LOG_HEAD + log.words + m.word] >> m.base & (m.field >> m.base)
        while emptied:
            standing[ctzll(emptied)] = INT64_MAX
            emptied &= emptied - 1
        while entered:
            bit = ctzll(entered)
            entered &= entered - 1
            a = &k.query[m.query].arrival[m.arrival[m.slot_state[bit]]]
            for way in range(a.ways, a.ways_end):
                standing[m.way_slot[way]] = min(standing[m.way_slot[way]], fresh[bit])
    return some


cdef inline int64_t earliest_of(const int64_t* standing, uint64_t slots) noexcept nogil:
    cdef int64_t earliest = INT64_MAX
    while slots:
        earliest = min(earliest, standing[ctzll(slots)])
        slots &= slots - 1
    return earliest


# --------------------------------------------------------------------------------------------------- how many


cdef Py_ssize_t block_end(const Table* t, const Step* step, Py_ssize_t steps) noexcept nogil:
    """How many events the first block has."""
    cdef Py_ssize_t at = 0
    while at < steps and step[at].time <= step[0].time + t.span:
        at += 1
    return at


cdef int64_t lay_blocks(const Table* t, const Member* m, Step* step, Py_ssize_t steps) noexcept nogil:
    """Note where trends may begin; at least the length of any number of trends."""
    cdef int64_t emptied[BITS]
    cdef int64_t bits = 0, before = 0, most = 0
    cdef Py_ssize_t at, end = 0, other
    cdef uint64_t starts = m.state_slots[0], left
    cdef int slot
    for slot in range(BITS):
        emptied[slot] = INT64_MIN
    for at in range(steps):
        if at == end:
            end = at + block_end(t, step + at, steps - at)
            before, bits = bits, 0
        bits += step[at].bits
        most = max(most, before + bits)
        left = starts
        step[at].starts = starts
        while left:
            slot = ctzll(left)
            left &= left - 1
            if emptied[slot] != INT64_MIN and emptied[slot] >= step[at].time - t.span:
                step[at].starts &= ~(<uint64_t> 1 << slot)
        if at + 1 < steps and step[at + 1].step == step[at].step:
            continue
        other = at
        while other >= 0 and step[other].step == step[at].step:  # no gap between events of one step holds another one
            left = step[other].emptied & starts
            while left:
                emptied[ctzll(left)] = step[at].time
                left &= left - 1
            other -= 1
    return most + bit_length(steps)


cdef int count_within(Core* k, Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil:
    """Add up the trends that are not too long, by marks. Returns a Failure.

    Behind the vectors of `standing` there is room for two numbers of each slot: what beginnings that are not too long
    ago had become at the last border (`before`), and the ends so far of one trend that stood there (`ended`).
    """
    cdef const Member* m = y.member
    cdef Py_ssize_t vectors = (1 + m.slots) * m.slots * y.stride, pending, count
    cdef uint64_t* before = y.standing + vectors
    cdef uint64_t* ended = before + m.slots * y.width
    cdef bint firsts = y.taking == NULL or y.taking.function == FIRST
    pending = (1 + m.slots) * y.table.states * y.stride
    k.gathered_count = 0
    while steps:
        count = block_end(y.table, step, steps)
        memset(y.standing, 0, (vectors + 2 * m.slots * y.width) * sizeof(uint64_t))
        memset(y.pending, 0, pending * sizeof(uint64_t))
        y.rows = 1
        if k.gathered_count:
            y.rows = 1 + m.slots
            set_out(y, y.standing + m.slots * y.stride)
            sum_before(k, y, firsts, before)
        y.overwrites = not firsts
        take_block(k, y, step, count, firsts, before, ended)
        expire_until(k, y, INT64_MAX, firsts, before, ended)
        if count < steps:
            memset(y.standing, 0, vectors * sizeof(uint64_t))
            y.rows = m.slots
            set_out(y, y.standing)
            y.overwrites = firsts
            if retrace(k, y, step, count):
                return OUT_OF_MEMORY
        step += count
        steps -= count
    return NO_FAILURE


cdef void set_out(const Tally* y, uint64_t* standing) noexcept nogil:
    """One trend in each slot but those of the start, each slot by itself."""
    cdef int slot
    for slot in range(y.member.slots):
        if not y.starts >> slot & 1:
            limbs_increment(standing + (slot * y.member.slots + slot) * y.stride, y.width)


cdef void sum_before(const Core* k, const Tally* y, bint firsts, uint64_t* before) noexcept nogil:
    """Add up what all beginnings have become, those only that have no mark yet where marks are of first values."""
    cdef Py_ssize_t words = START_HEAD + y.width, _
    cdef const uint64_t* record = k.gathered
    for _ in range(k.gathered_count):
        if not firsts or record[2] == NOTHING:
            limbs_add(before + record[1] * y.width, record + START_HEAD, y.width)
        record += words


cdef void expire_until(
    Core* k, const Tally* y, int64_t time, bint firsts, uint64_t* before, const uint64_t* ended
) noexcept nogil:
    """Take out the beginnings before a time: no more ends are theirs."""
    cdef Py_ssize_t words = START_HEAD + y.width
    cdef const uint64_t* record
    while k.gathered_count:
        record = k.gathered + (k.gathered_count - 1) * words
        if <int64_t> record[0] >= time:
            break
        k.gathered_count -= 1
        if not firsts or record[2] != NOTHING:
            add_times(y, y.total + record[2] * y.width, record + START_HEAD, ended + record[1] * y.width)
        if not firsts or record[2] == NOTHING:
            limbs_subtract(before + record[1] * y.width, y.width, record + START_HEAD, y.width)


cdef void take_block(
    Core* k, Tally* y, const Step* step, Py_ssize_t steps, bint firsts, uint64_t* before, uint64_t* ended
) noexcept nogil:
    """The trends that end in a block."""
    cdef Py_ssize_t at = 0
    cdef uint64_t entered = 0, emptied = 0, left
    cdef int state
    while at < steps:
        expire_until(k, y, step[at].time - y.table.span, firsts, before, ended)
        left = y.starts
        while left:
            y.standing[ctzll(left) * y.stride] = step[at].starts >> ctzll(left) & 1
            left &= left - 1
        at += read_step(y, step + at, steps - at, &entered, &emptied)
        left = entered & y.member.finals if step[at - 1].counts else 0
        while left:
            state = y.member.slot_state[ctzll(left)]
            left &= ~y.member.state_slots[state]
            end_trends(y, state, firsts, before, ended)
        write_step(y, entered, emptied)


cdef void end_trends(
    const Tally* y, int state, bint firsts, const uint64_t* before, uint64_t* ended
) noexcept nogil:
    """Count the trends that end in a state."""
    cdef const uint64_t* source = y.pending + state * y.stride
    cdef Py_ssize_t beside = y.table.states * y.stride
    cdef int row, mark
    add_marks(y, y.total, source, y.depth)
    for row in range(y.rows - 1):
        source += beside
        for mark in range(0 if firsts else NOTHING + 1, y.depth):
            add_times(y, y.total + mark * y.width, before + row * y.width, source + mark * y.width)
        for mark in range(y.depth if firsts else NOTHING + 1):
            limbs_add(ended + row * y.width, source + mark * y.width, y.width)
