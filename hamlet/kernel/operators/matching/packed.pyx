"""Numbers of trends of all queries of a log at once, where those of a slot fit one word.

The numbers of a slot, one for each mark (`tallies`), are *fields* of a word, as wide as the number of all partial
trends of the query may become. So adding words adds all numbers, and a shift raises marks, whatever a query asks for.
Marks are the events of the variable by their order, or how many a trend took; equal values are put together when rows
are written. What the events of a window do to the slots of a word of bits is listed first, and then done without
branches: which events are taken is hard to foretell.

Source: Kronecker's substitution, as in von zur Gathen and Gerhard, Modern Computer Algebra (3rd ed., 2013) §8.4.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy

from hamlet.kernel.operators.matching.marks cimport TAKEN, VALUED
from hamlet.kernel.operators.matching.rows cimport append_marked, append_numbers
from hamlet.kernel.operators.matching.tables cimport (
    COUNT,
    FIRST,
    LOG_HEAD,
    MOST_MARKS,
    Change,
    Core,
    Log,
    Member,
    Packing,
    Partition,
    Slot,
    Table,
    clear,
)
from hamlet.kernel.operators.matching.tallies cimport rank_of, value_of
from hamlet.kernel.plan cimport OUT_OF_MEMORY

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil
    int clzll "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum:
    BITS = 64            # of a word
    NOTHING = BITS       # a slot in which nothing stands


cdef int count_packed(
    Core* k, const Log* log, const Partition* p, int64_t key, int64_t window, Py_ssize_t entries, int listed
) noexcept nogil:
    """Append the rows of a window of those listed queries whose numbers fit; the others keep their place in the list.

    `k.taken` has the slots that events are taken in. Returns how many others there are, -1 without memory.
    """
    cdef const uint64_t* record = p.lineage.record
    cdef Py_ssize_t stride = k.query[log.member[0].query].record_words, changes = 0
    cdef const Member* m
    cdef uint64_t fields
    cdef int i, first = 0, end, word, left = 0
    cdef bint defers = False
    while first < listed:  # those of a word are neighbours
        word = log.member[log.listed[first]].word
        fields = 0
        end = first
        while end < listed and log.member[log.listed[end]].word == word:
            m = &log.member[log.listed[end]]
            if is_packed(m):
                fields |= m.field
                begin(&log.packing[log.listed[end]])
            end += 1
        if fields:
            defers = log.twice[word]
            changes = gather_changes(log, word, fields, record, stride, entries, k.taken + word, &defers)
        for i in range(first, end):
            m = &log.member[log.listed[i]]
            if is_packed(m) and not lay_fields(&log.packing[log.listed[i]], &k.query[m.query]):
                fields &= ~m.field
        if fields and defers:
            make_steps(log, word, changes)
        elif fields:
            make_changes(log, word, changes)
        for i in range(first, end):
            m = &log.member[log.listed[i]]
            if not fields & m.field:
                log.listed[left] = log.listed[i]
                left += 1
            elif append_packed(k, log, m, &log.packing[log.listed[i]], record, stride, key, window):
                return -1
        first = end
    return left


cdef inline bint is_packed(const Member* m) noexcept nogil:
    """Whether numbers of a query may be fields of words."""
    return m.tallies and m.gates == m.gates_end


cdef inline void begin(Packing* s) noexcept nogil:
    s.width = 1
    s.marks = 0


cdef inline bint lay_fields(Packing* s, const Table* t) noexcept nogil:
    """Find how an event of the variable changes a word of a query; False where its numbers do not fit."""
    cdef int _
    cdef bint fits = s.marks < MOST_MARKS and (s.marks + 1) * s.width < BITS
    if not fits:
        s.width = 1  # what is added up is of no use
    s.ones, s.top, s.total, s.stay = 1, 0, <uint64_t> -1, 0
    s.shift, s.shift_by_mark = 0, s.width
    if t.takings and t.taking[0].function == COUNT:
        s.shift, s.shift_by_mark = s.width, 0
    elif t.takings and t.taking[0].function == FIRST:
        s.stay = <uint64_t> -1 << s.width
    elif t.takings:
        s.top, s.total = s.marks * s.width & (BITS - 1), ((<uint64_t> 1 << s.width) - 1)
        for _ in range(s.marks):
            s.ones = s.ones << s.width | 1
    return fits


cdef Py_ssize_t gather_changes(
    const Log* log, int word, uint64_t fields, const uint64_t* entry, Py_ssize_t stride, Py_ssize_t entries,
    const uint64_t* taken, bint* defers
) noexcept nogil:
    """Put down what the events of a window do to the slots of a word, from the highest slot to the lowest; how much.

    So what an event reads of its own slots has not changed, but where a way leads to a lower slot that it is taken in.
    """
    cdef const int* member = log.member_of + BITS * word
    cdef const Slot* slot = log.slot + BITS * word
    cdef Packing* s
    cdef Change* change = log.change
    cdef Py_ssize_t at
    cdef uint64_t left, emptied, filled = log.starts[word] & fields, fresh = 0, cleared = 0, step = 0
    cdef int bit, pair
    for at in range(entries):
        if step != entry[1]:
            step = entry[1]
            fresh = cleared = 0
        left = taken[0] & fields
        emptied = entry[LOG_HEAD + log.words + word] & filled & ~cleared
        defers[0] |= (fresh | cleared) != 0 and (left | emptied) != 0
        fresh |= left
        cleared |= emptied
        filled = filled & ~emptied | fresh  # what comes with a step stays
        while left:
            bit = BITS - 1 - clzll(left)
            left ^= <uint64_t> 1 << bit
            s = &log.packing[member[bit]]
            s.event[s.marks + 1] = <int32_t> at
            s.marks += slot[bit].named
            s.width += slot[bit].grows
            if s.width >= BITS or s.marks == MOST_MARKS:
                fields &= ~log.member[member[bit]].field
                left &= fields
            change.bit, change.mark, change.step = bit, s.marks, <int32_t> step
            change.keep = (emptied >> bit & 1) - <uint64_t> 1
            change.one, change.two = slot[bit].one, slot[bit].two
            change += 1
            for pair in range(slot[bit].pairs, slot[bit].pairs_end):
                change[0] = change[-1]
                change.keep = <uint64_t> -1
                change.one, change.two = log.pair[2 * pair], log.pair[2 * pair + 1]
                change += 1
        left = emptied & ~taken[0]
        while left:
            change.bit, change.mark, change.step, change.keep = ctzll(left), 0, <int32_t> step, 0
            change.one = change.two = NOTHING
            change += 1
            left &= left - 1
        taken += log.words
        entry += stride
    return change - log.change


cdef inline uint64_t read_change(const Log* log, const int* member, const Slot* slot, const Change* c) noexcept nogil:
    """What a change adds to its slot."""
    cdef const Packing* s = &log.packing[member[c.bit]]
    cdef uint64_t number = log.standing[c.one] + log.standing[c.two], stay = s.stay | slot[c.bit].plain
    cdef uint64_t moved = (number & ~stay) * s.ones >> s.top & s.total
    return (number & stay) + (moved << (s.shift + c.mark * s.shift_by_mark & (BITS - 1)))


cdef inline void stand_before(const Log* log, int word) noexcept nogil:
    """What stands in the slots of a word before the first event."""
    memcpy(log.standing, log.before + BITS * word, log.used[word] * sizeof(uint64_t))


cdef void make_changes(const Log* log, int word, Py_ssize_t changes) noexcept nogil:
    """Make all changes, one after the other."""
    cdef const int* member = log.member_of + BITS * word
    cdef const Slot* slot = log.slot + BITS * word
    cdef uint64_t* standing = log.standing
    cdef const Change* c = log.change
    cdef Py_ssize_t _
    stand_before(log, word)
    for _ in range(changes):
        standing[c.bit] = (standing[c.bit] & c.keep) + read_change(log, member, slot, c)
        c += 1


cdef void make_steps(const Log* log, int word, Py_ssize_t changes) noexcept nogil:
    """Make the changes of each step at once: read all, empty slots, add."""
    cdef const int* member = log.member_of + BITS * word
    cdef const Slot* slot = log.slot + BITS * word
    cdef uint64_t* standing = log.standing
    cdef Change* c = log.change
    cdef Py_ssize_t at = 0, end = 0, i
    stand_before(log, word)
    while at < changes:
        while end < changes and c[end].step == c[at].step:
            c[end].number = read_change(log, member, slot, &c[end])
            end += 1
        for i in range(at, end):
            standing[c[i].bit] &= c[i].keep
        for i in range(at, end):
            standing[c[i].bit] += c[i].number
        at = end


cdef int append_packed(
    Core* k, const Log* log, const Member* m, const Packing* s, const uint64_t* record, Py_ssize_t stride,
    int64_t key, int64_t window
) noexcept nogil:
    """Append the rows of a query."""
    cdef const Table* t = &k.query[m.query]
    cdef uint64_t number[MOST_MARKS + 1]
    cdef uint64_t value[MOST_MARKS + 1]
    cdef int64_t rank[MOST_MARKS + 1]
    cdef int64_t own
    cdef uint64_t here
    cdef uint64_t field = (<uint64_t> 1 << s.width) - 1, left = m.finals, word
    cdef int mark, other, place, marks = 0, most = s.marks
    clear(number, s.marks + 1)
    while left:
        word = log.standing[m.base + ctzll(left)]
        left &= left - 1
        for mark in range(s.marks + 1):
            number[mark] += word & field
            word >>= s.width
    if t.takings == 0:
        return append_marked(k, m.query, key, window, 0, 0, number, 1, log.cell + m.cell)
    if t.taking[0].function == COUNT:
        if t.taking[0].most >= 0:
            most = min(most, t.taking[0].most)
        for mark in range(most + 1):  # those that there are move down, behind others or themselves
            number[marks], value[marks] = number[mark], <uint64_t> mark
            marks += number[mark] != 0
        return append_numbers(k, m.query, key, window, marks, 0, value, number)
    for mark in range(1, most + 1):
        here = number[mark]
        if here == 0:
            continue
        if not value_of(log, m, &t.taking[0], record + s.event[mark] * stride + log.head, &word):
            number[0] += here
            continue
        own = rank_of(&t.taking[0], word)
        other = marks
        while other and rank[other] > own:
            other -= 1
        if other and rank[other] == own:
            number[other] += here
            continue
        marks += 1
        place = marks
        while place > other + 1:  # those behind it move up, over what has been read
            rank[place], value[place], number[place] = rank[place - 1], value[place - 1], number[place - 1]
            place -= 1
        rank[place], value[place], number[place] = own, word, here
    value[0] = 0
    if number[0] and append_numbers(k, m.query, key, window, 1, 0, value, number):
        return OUT_OF_MEMORY
    return append_numbers(k, m.query, key, window, marks, TAKEN | VALUED, value + 1, number + 1)
