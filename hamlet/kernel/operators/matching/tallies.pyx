"""How many trends a window has, by one thing that they took: integers over the events of a log that some trend takes.

A *mark* says what trends took so far. Of a first or last value mark 0 says that there is no event, mark 1 that it has
no value, and the others are the values in the order in which they come; of a count the mark is the count. Every slot
has a number of trends for each mark, and an event adds them up along its ways: with what it makes of marks, that is a
sum of vectors, moved or gathered into one place.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport bit_length, limbs_add, limbs_bits, limbs_increment, limbs_nonzero
from hamlet.kernel.operators.matching.marks cimport MOST_GROUPS, TAKEN, VALUED
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_cell
from hamlet.kernel.operators.matching.tables cimport (
    COUNT,
    FIRST,
    LOG_HEAD,
    Arrival,
    Core,
    Log,
    Member,
    Partition,
    Rows,
    Table,
    Taking,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, TOO_MANY_GROUPS

cdef extern from *:
    """
    #include <stdint.h>
    /* Few numbers: the compiler is kept from making vectors of them, which takes longer than adding them. */
    #define hamlet_one_by_one() __asm__ volatile("")
    """
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil
    void one_by_one "hamlet_one_by_one"() noexcept nogil

cdef enum:
    HEAD_ROOM = 8        # bits of a total besides those of the trends that stand in one slot
    NOTHING = 0          # mark of trends without an event of the variable
    NO_VALUE = 1
    FIRST_VALUE = 2

cdef struct Tally:       # numbers of the trends of one query in one window
    const Member* member
    const Table* table
    const Taking* taking  # NULL where trends are not grouped
    uint64_t named       # the slots of the variable that trends are grouped by
    int marks
    int used             # marks that some trend may have by now
    int width            # limbs of a number
    Py_ssize_t stride    # words of a vector
    uint64_t* standing   # [slots] vectors
    uint64_t* pending    # [states] vectors that the step under way adds
    uint64_t* nothing    # a vector of zeros
    uint64_t* value      # of marks from FIRST_VALUE on

cdef struct Step:        # an event of the window, as trends of one query take it
    uint64_t slots       # that it is taken in
    uint64_t emptied
    uint64_t step
    int state            # that these are of; -1 for several, or none
    int mark             # of its value


cdef int count_trends(
    Core* k, const Log* log, const Member* m, const Partition* p, int64_t key, int64_t window, Py_ssize_t entries
) noexcept nogil:
    """Append the rows of a window of one query, one for each mark; `k.taken` has the slots that events are taken in."""
    cdef Tally y
    cdef int64_t bits = 0, most = 0
    cdef Py_ssize_t steps = 0, at
    y.member, y.table = m, &k.query[m.query]
    y.taking = &y.table.taking[0] if y.table.takings else NULL
    y.named = 0
    for at in range(1, y.table.states if y.table.takings else 0):
        if y.table.arrival[m.arrival[at]].variable == y.taking.values.variable:
            y.named |= m.state_slots[at]
    if reserve_words(k, &k.tally, &k.tally_words, entries * (sizeof(Step) // sizeof(uint64_t) + 1) + FIRST_VALUE):
        return OUT_OF_MEMORY
    y.value = k.tally
    y.marks = 1 if y.taking == NULL or y.taking.function == COUNT else FIRST_VALUE
    steps = gather(log, &y, p, k.taken, entries, <Step*> (k.tally + entries + FIRST_VALUE), &bits, &most)
    if y.taking != NULL and y.taking.function == COUNT:
        most = min(most, <int64_t> MOST_GROUPS + 1)
        y.marks = <int> (most if y.taking.most < 0 else min(most, <int64_t> y.taking.most)) + 1
    y.width = <int> ((bits + HEAD_ROOM) // 64 + 1)
    y.stride = y.marks * <Py_ssize_t> y.width
    at = entries * (<Py_ssize_t> sizeof(Step) // <Py_ssize_t> sizeof(uint64_t) + 1) + FIRST_VALUE
    if reserve_words(k, &k.tally, &k.tally_words, at + (m.slots + y.table.states + 1) * y.stride):
        return OUT_OF_MEMORY
    y.value = k.tally  # it may have moved
    y.standing = k.tally + at
    y.pending = y.standing + m.slots * y.stride
    y.nothing = y.pending + y.table.states * y.stride
    memset(y.standing, 0, (m.slots + y.table.states + 1) * y.stride * sizeof(uint64_t))
    follow(&y, <const Step*> (k.tally + entries + FIRST_VALUE), steps)
    return append_tally(k, &y, log, key, window)


cdef Py_ssize_t gather(
    const Log* log, Tally* y, const Partition* p, const uint64_t* taken, Py_ssize_t entries, Step* found,
    int64_t* bits, int64_t* most
) noexcept nogil:
    """The events that matter to the query, with marks for their values; how many there are.

    `bits` is at least the length of the number of all partial trends, `most` how often the variable can be bound.
    """
    cdef const Member* m = y.member
    cdef const uint64_t* entry = p.lineage.record
    cdef Py_ssize_t stride = y.table.record_words, count = 0, _
    cdef uint64_t field = m.field >> m.base, slots, emptied, left
    cdef int state, fan
    for _ in range(entries):
        left = slots = taken[m.word] >> m.base & field
        emptied = entry[LOG_HEAD + log.words + m.word] >> m.base & field
        if slots or emptied:
            found[count].slots, found[count].emptied, found[count].step = slots, emptied, entry[1]
            found[count].state, found[count].mark = -1, NOTHING
            fan = 0
            while left:
                state = m.slot_state[ctzll(left)]
                left &= ~m.state_slots[state]
                if slots & ~m.state_slots[state] == 0:
                    found[count].state = state
                fan += m.fan[state]
            bits[0] += bit_length(fan)
            if slots & y.named:
                most[0] += 1
                if y.taking.function != COUNT:
                    found[count].mark = mark_of_value(log, y, entry + log.head)
            count += 1
        taken += log.words
        entry += stride
    return count


cdef int mark_of_value(const Log* log, Tally* y, const uint64_t* kept) noexcept nogil:
    """The mark of an event's value; -0.0 is 0.0, and NaN is none."""
    cdef uint64_t value = kept[y.member.column]
    cdef double number
    cdef int mark
    if not (<const uint8_t*> (kept + log.columns))[y.member.column]:
        return NO_VALUE
    if y.taking.values.floating:
        number = (<double*> &value)[0]
        if number != number:
            return NO_VALUE
        (<double*> &value)[0] = number + 0.0
    for mark in range(FIRST_VALUE, y.marks):
        if y.value[mark] == value:
            return mark
    y.value[y.marks] = value
    y.marks += 1
    return y.marks - 1


cdef void follow(Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil:
    """Add up the trends of all slots at the end of the window."""
    cdef const Member* m = y.member
    cdef Py_ssize_t at = 0, first
    cdef uint64_t left, emptied, entered
    cdef int slot, state
    cdef const Arrival* a
    y.used = 1 if y.taking == NULL or y.taking.function == COUNT else FIRST_VALUE
    for slot in range(m.slots):
        if m.slot_state[slot] == 0:
            limbs_increment(y.standing + slot * y.stride, y.width)
    while at < steps:
        first = at
        emptied = entered = 0
        use_mark(y, &step[at])
        state = step[at].state
        if state >= 0 and y.width == 1 and not step[at].emptied and (
            at + 1 == steps or step[at + 1].step != step[at].step
        ):
            a = &y.table.arrival[m.arrival[state]]
            left = m.state_slots[state]
            if left & (left - 1) == 0 and 1 <= a.ways_end - a.ways <= 2:
                take_alone(y, a, ctzll(left), step[at].mark)
                at += 1
                continue
        while at < steps and step[at].step == step[first].step:
            use_mark(y, &step[at])
            left = step[at].slots
            while left:
                state = m.slot_state[ctzll(left)]
                left &= ~m.state_slots[state]
                entered |= m.state_slots[state]
                take_event(y, state, step[at].mark)
            emptied |= step[at].emptied
            at += 1
        while emptied:
            slot = ctzll(emptied)
            emptied &= emptied - 1
            memset(y.standing + slot * y.stride, 0, y.stride * sizeof(uint64_t))
        while entered:
            slot = ctzll(entered)
            entered &= entered - 1
            state = m.slot_state[slot]
            add_marks(y, y.standing + slot * y.stride, y.pending + state * y.stride, y.marks)
            if not entered & m.state_slots[state]:
                memset(y.pending + state * y.stride, 0, y.stride * sizeof(uint64_t))


cdef inline void use_mark(Tally* y, const Step* step) noexcept nogil:
    """Note the mark that trends may have behind an event."""
    if y.taking == NULL or not step.slots & y.named:
        return
    if y.taking.function == COUNT:
        y.used = min(y.used + 1, y.marks)
    else:
        y.used = max(y.used, step.mark + 1)


cdef inline void take_alone(Tally* y, const Arrival* a, int slot, int mark) noexcept nogil:
    """`take_event` for the only event of its step, into one slot by one way or two, with numbers of one word: added
    where they are.

    What is written for a mark is not read again, since marks go down where they move up by one.
    """
    cdef uint64_t* target = y.standing + slot * y.stride
    cdef const uint64_t* one = y.standing + y.member.way_slot[a.ways] * y.stride
    cdef const uint64_t* two = y.nothing
    cdef uint64_t found = 0
    cdef int each
    cdef bint named = y.taking != NULL and a.variable == y.taking.values.variable
    if a.ways_end - a.ways == 2:
        two = y.standing + y.member.way_slot[a.ways + 1] * y.stride
    if named and y.taking.function == COUNT:
        for each in range(y.used - 1, 0, -1):
            target[each] += one[each - 1] + two[each - 1]
            one_by_one()
    elif named and y.taking.function != FIRST:
        for each in range(y.used):
            found += one[each] + two[each]
            one_by_one()
        target[mark] += found
    else:
        found = one[NOTHING] + two[NOTHING]
        for each in range(NO_VALUE, y.used):
            target[each] += one[each] + two[each]
            one_by_one()
        target[mark if named else NOTHING] += found


cdef inline void add_marks(const Tally* y, uint64_t* target, const uint64_t* source, int marks) noexcept nogil:
    """Add numbers of trends, mark by mark."""
    cdef int mark
    if y.width == 1:
        for mark in range(marks):
            target[mark] += source[mark]
            one_by_one()
    else:
        for mark in range(marks):
            limbs_add(target + mark * y.width, source + mark * y.width, y.width)


cdef void take_event(const Tally* y, int state, int64_t mark) noexcept nogil:
    """Extend what stands in slots by an event that is taken in a state."""
    cdef const Member* m = y.member
    cdef const Arrival* a = &y.table.arrival[m.arrival[state]]
    cdef uint64_t* target = y.pending + state * y.stride
    cdef const uint64_t* source
    cdef int way, each
    cdef bint named = y.taking != NULL and a.variable == y.taking.values.variable
    for way in range(a.ways, a.ways_end):
        source = y.standing + m.way_slot[way] * y.stride
        if not named:
            add_marks(y, target, source, y.marks)
        elif y.taking.function == COUNT:
            add_marks(y, target + y.width, source, y.marks - 1)
        elif y.taking.function == FIRST:
            add_marks(y, target + y.width, source + y.width, y.marks - 1)
            limbs_add(target + mark * y.width, source, y.width)
        else:
            for each in range(y.marks):
                limbs_add(target + mark * y.width, source + each * y.width, y.width)


cdef int append_tally(Core* k, const Tally* y, const Log* log, int64_t key, int64_t window) noexcept nogil:
    """Append a row for each mark with trends; no event and no value are both NULL there."""
    cdef const Member* m = y.member
    cdef Rows* r = &k.rows[m.query]
    cdef uint64_t* total = y.pending
    cdef uint64_t* mark_word
    cdef uint64_t left = m.finals
    cdef int mark
    cdef int64_t bits
    memset(total, 0, y.stride * sizeof(uint64_t))
    while left:
        add_marks(y, total, y.standing + ctzll(left) * y.stride, y.marks)
        left &= left - 1
    if y.taking != NULL and y.taking.function != COUNT:
        limbs_add(total, total + NO_VALUE * y.width, y.width)
        memset(total + NO_VALUE * y.width, 0, y.width * sizeof(uint64_t))
    for mark in range(y.marks):
        if not limbs_nonzero(total + mark * y.width, y.width):
            continue
        if y.taking != NULL:
            if y.taking.function == COUNT and y.taking.most < 0 and mark > MOST_GROUPS:
                k.failed_query = m.query
                return TOO_MANY_GROUPS
            if reserve_words(k, &r.mark, &r.marks_capacity, r.marks + 2):
                return OUT_OF_MEMORY
            mark_word = r.mark + r.marks
            mark_word[0], mark_word[1] = 0, <uint64_t> mark
            if y.taking.function != COUNT:
                mark_word[0], mark_word[1] = 0, 0
                if mark >= FIRST_VALUE:
                    mark_word[0], mark_word[1] = TAKEN | VALUED, y.value[mark]
            r.marks += 2
        bits = limbs_bits(total + mark * y.width, y.width)
        if append_cell(k, m.query, key, window, log.cell + m.cell, total + mark * y.width, <int> (bits // 64) + 1):
            return OUT_OF_MEMORY
    return NO_FAILURE
