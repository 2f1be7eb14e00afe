"""How many trends a window has, by one thing that they took: integers over the events of a log that some trend takes.

A *mark* says what trends took so far. Of a first or last value mark 0 says that there is no event, mark 1 that it has
no value, and the others are the values in the order in which they come; of a count the mark is the count. Every slot
has a vector, a number of trends for each mark, that goes with the events (`passes`). By a first or last value trends
are split, unless there are few values or numbers so long that a product costs more than a vector; what SPAN allows is
counted in `lengths`, and trends of compared neighbours in `compared`.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from hamlet.kernel.cells cimport (
    bit_length,
    has_trends,
    limbs_add,
    limbs_bits,
    limbs_increment,
    limbs_nonzero,
    words_of,
)
from hamlet.kernel.operators.matching.compared cimport TOO_LONG, compared_words, follow_compared
from hamlet.kernel.operators.matching.lengths cimport count_within, lay_blocks
from hamlet.kernel.operators.matching.marks cimport MOST_GROUPS, TAKEN, VALUED
from hamlet.kernel.operators.matching.passes cimport FIRST_VALUE, NO_VALUE, Step, Tally, add_marks, follow, retrace
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.rows cimport append_marked, append_sums
from hamlet.kernel.operators.matching.tables cimport (
    COUNT,
    FIRST,
    LOG_HEAD,
    Core,
    Log,
    Member,
    Partition,
    Table,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, TOO_MANY_GROUPS

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil

cdef enum:
    HEAD_ROOM = 8        # bits of a total besides those of the trends that stand in one slot
    FIRST_WIDTH = 2      # of numbers that may turn out short
    FEW_MARKS = 16       # vectors of fewer numbers cost less than a second pass

cdef struct Values:      # of the variable that trends are grouped by, numbered
    uint64_t* value      # of marks from FIRST_VALUE on
    int32_t* slot        # open addressing; 0 is free
    Py_ssize_t slots     # a power of two
    int marks

cdef struct Ranked:
    int64_t rank
    int64_t mark

cdef struct Found:       # what is known of all steps of a window
    Py_ssize_t steps
    Py_ssize_t named     # events of the variable, and how often they are taken in a state
    Py_ssize_t places
    int64_t bits         # of the number of all partial trends, at most: of events that can be taken beside each other
    int64_t once         # and how many others are taken


cdef int count_trends(
    Core* k, const Log* log, const Member* m, const Partition* p, int64_t key, int64_t window, Py_ssize_t first,
    Py_ssize_t entries
) noexcept nogil:
    """Append the rows of a window of one query, one for each mark; `k.taken` has the slots that events are taken in.

    The window begins with the entry `first` of the log.
    """
    cdef Tally y
    cdef Values values
    cdef Found found
    cdef Step* step
    cdef const Table* t = &k.query[m.query]
    cdef Py_ssize_t at, words = sizeof(Step) // sizeof(uint64_t)
    cdef int failure, widest
    cdef bint counts, compares = m.gates < m.gates_end
    y.member, y.table = m, t
    y.taking = &t.taking[0] if t.takings else NULL
    counts = y.taking != NULL and y.taking.function == COUNT
    y.named = m.named
    values.slots = 4
    while values.slots < 2 * entries:
        values.slots *= 2
    at = 0 if y.taking == NULL or counts else values.slots // 2 + entries + FIRST_VALUE
    if reserve_words(k, &k.tally, &k.tally_words, at + entries * words):
        return OUT_OF_MEMORY
    values.marks = 1
    if at:
        values.slot, values.value, values.marks = <int32_t*> k.tally, k.tally + values.slots // 2, FIRST_VALUE
        memset(values.slot, 0, values.slots * sizeof(int32_t))
    step = <Step*> (k.tally + at)
    gather(log, &y, &values, p, k.taken, first, entries, step, &found)
    if t.span >= 0:
        found.bits = lay_blocks(t, m, step, found.steps)
    found.bits += m.once * bit_length(found.once + 1)
    y.marks = values.marks
    if counts:
        y.marks = <int> min(found.named, MOST_GROUPS + 1 if y.taking.most < 0 else y.taking.most) + 1
    widest = <int> ((found.bits + HEAD_ROOM) // 64 + 1)
    y.width = min(widest, <int> FIRST_WIDTH) if compares else widest
    y.starts = m.state_slots[0] if t.span >= 0 else 0
    y.rows = 1
    y.splits = y.taking != NULL and not counts and t.span < 0 and y.marks >= max(y.width, FEW_MARKS)
    y.depth = 1 if y.splits else y.marks
    at += found.steps * words
    while True:
        failure = add_up(k, log, &y, p, entries, at, &found, widest)
        if failure != TOO_LONG:
            break
        y.width = min(2 * y.width, widest)
    values.value = k.tally + values.slots // 2
    return failure if failure else append_tally(k, &y, values.value, log, key, window)


cdef int add_up(
    Core* k, const Log* log, Tally* y, const Partition* p, Py_ssize_t entries, Py_ssize_t at, const Found* found,
    int widest
) noexcept nogil:
    """Find the totals, in numbers of a width, of at most `widest`; what has been gathered ends at the word `at`.

    Returns a Failure, or TOO_LONG where the numbers need more words.
    """
    cdef const Member* m = y.member
    cdef const Table* t = y.table
    cdef Step* step
    cdef Py_ssize_t vectors, room = 0
    cdef bint counts = y.taking != NULL and y.taking.function == COUNT
    y.words = words_of(&t.cells, y.width) if m.sums else y.width
    y.stride = y.depth * <Py_ssize_t> y.words
    vectors = (m.slots + t.states) * y.stride
    if t.span >= 0:
        vectors = (1 + m.slots) * (m.slots + t.states) * y.stride + 2 * m.slots * y.width
    if m.gates < m.gates_end:
        room = compared_words(log, y, entries, found.steps)
    if reserve_words(
        k, &k.tally, &k.tally_words,
        at + vectors + room + y.stride + (y.marks + 1 + (found.places if y.splits else 0)) * <Py_ssize_t> y.words,
    ):
        return OUT_OF_MEMORY
    step = <Step*> (k.tally + at) - found.steps  # it may have moved
    y.total = k.tally + at
    y.number = y.total + y.marks * <Py_ssize_t> y.words
    y.nothing = y.number + y.words
    y.standing = y.nothing + y.stride
    y.pending = y.standing + vectors - (1 if t.span < 0 else 1 + m.slots) * t.states * y.stride
    y.kept = y.standing + vectors
    memset(y.total, 0, (y.standing + vectors + room - y.total) * sizeof(uint64_t))
    if t.span >= 0:
        return count_within(k, y, step, found.steps)
    if y.splits:
        return split(k, y, step, found.steps)
    if m.gates < m.gates_end:
        return follow_compared(k, y, log, p.lineage.record, entries, step, found.steps, widest, y.standing + vectors)
    begin(y, m.state_slots[0])
    y.used = 1 if y.taking == NULL or counts else FIRST_VALUE
    y.overwrites = y.taking != NULL and y.taking.function != FIRST
    follow(y, step, found.steps)
    end(y, m.finals)
    return NO_FAILURE


cdef void begin(const Tally* y, uint64_t slots) noexcept nogil:
    """One trend in some slots."""
    while slots:
        limbs_increment(y.standing + ctzll(slots) * y.stride, y.width)
        slots &= slots - 1


cdef void end(const Tally* y, uint64_t slots) noexcept nogil:
    """Count what stands in some slots."""
    while slots:
        add_marks(y, y.total, y.standing + ctzll(slots) * y.stride, y.depth)
        slots &= slots - 1


cdef int split(Core* k, Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil:
    """Add up the trends of each first, or last, value, and those without one: one side of them, then the other."""
    cdef const Member* m = y.member
    cdef int side
    cdef bint forwards
    for side in range(2):
        forwards = (side == 0) == (y.taking.function == FIRST)
        y.keeps = side == 0
        if side:
            memset(y.standing, 0, m.slots * y.stride * sizeof(uint64_t))
        begin(y, m.state_slots[0] if forwards else m.finals)
        if forwards:
            follow(y, step, steps)
        elif retrace(k, y, step, steps):
            return OUT_OF_MEMORY
        if y.keeps:
            end(y, m.finals if forwards else m.state_slots[0])
    return NO_FAILURE


cdef void gather(
    const Log* log, const Tally* y, Values* values, const Partition* p, const uint64_t* taken, Py_ssize_t first,
    Py_ssize_t entries, Step* step, Found* found
) noexcept nogil:
    """The events that matter to the query, with marks for their values."""
    cdef const Member* m = y.member
    cdef const uint64_t* entry = p.lineage.record
    cdef Py_ssize_t stride = y.table.record_words, at
    cdef uint64_t field = m.field >> m.base, slots, emptied, left
    cdef int state, fan, once
    found.steps = found.named = found.places = 0
    found.bits = found.once = 0
    for at in range(entries):
        left = slots = taken[m.word] >> m.base & field
        emptied = entry[LOG_HEAD + log.words + m.word] >> m.base & field
        if slots or emptied:
            step.slots, step.emptied, step.step, step.time = slots, emptied, entry[1], <int64_t> entry[0]
            step.state, step.mark, step.place, step.counts = -1, 0, found.places, at >= first
            step.entry = at
            fan = once = 0
            while left:
                state = m.slot_state[ctzll(left)]
                left &= ~m.state_slots[state]
                if slots & ~m.state_slots[state] == 0:
                    step.state = state
                if m.state_slots[state] & m.again:
                    fan += m.fan[state]
                else:
                    once += m.fan[state]
                found.places += m.state_slots[state] & y.named != 0
            step.bits = <int> bit_length(fan)
            found.bits += step.bits
            found.once += once
            found.named += slots & y.named != 0
            if slots & y.named and y.taking.function != COUNT:
                step.mark = mark_of_value(log, y, values, entry + log.head)
            step += 1
            found.steps += 1
        taken += log.words
        entry += stride


cdef int mark_of_value(const Log* log, const Tally* y, Values* values, const uint64_t* kept) noexcept nogil:
    """The mark of an event's value."""
    cdef uint64_t value, at
    if not value_of(log, y.member, y.taking, kept, &value):
        return NO_VALUE
    at = (value * <uint64_t> 0x9E3779B97F4A7C15 >> 32) & <uint64_t> (values.slots - 1)
    while values.slot[at]:
        if values.value[values.slot[at]] == value:
            return values.slot[at]
        at = (at + 1) & <uint64_t> (values.slots - 1)
    values.slot[at] = values.marks
    values.value[values.marks] = value
    values.marks += 1
    return values.marks - 1


cdef const Ranked* order_marks(const Tally* y, const uint64_t* value, Ranked* ranked) noexcept nogil:
    """All marks; those of values in their order, behind the others."""
    cdef int mark
    for mark in range(y.marks):
        ranked[mark].mark = mark
        if y.taking != NULL and y.taking.function != COUNT and mark >= FIRST_VALUE:
            ranked[mark].rank = rank_of(y.taking, value[mark])
    if y.taking != NULL and y.taking.function != COUNT:
        qsort(ranked + <int> FIRST_VALUE, y.marks - <int> FIRST_VALUE, sizeof(Ranked), compared)
    return ranked


cdef int compared(const void* one, const void* other) noexcept nogil:
    cdef int64_t before = (<const Ranked*> one).rank, after = (<const Ranked*> other).rank
    return (before > after) - (before < after)


cdef int append_tally(
    Core* k, const Tally* y, const uint64_t* value, const Log* log, int64_t key, int64_t window
) noexcept nogil:
    """Append a row for each mark with trends, in the order of values; no event and no value are both NULL there."""
    cdef const Member* m = y.member
    cdef uint64_t* total = y.total
    cdef uint64_t there, what
    cdef const Ranked* ranked
    cdef int place, mark, width
    if m.sums:
        if not has_trends(&y.table.cells, y.width, total):
            return NO_FAILURE
        return append_sums(k, m.query, key, window, total, y.width, log.cell + m.cell)
    if y.taking != NULL and y.taking.function != COUNT:
        limbs_add(total, total + NO_VALUE * y.width, y.width)
        memset(total + NO_VALUE * y.width, 0, y.width * sizeof(uint64_t))
    if reserve_words(k, &k.gathered, &k.gathered_words, y.marks * <Py_ssize_t> (sizeof(Ranked) // sizeof(uint64_t))):
        return OUT_OF_MEMORY
    ranked = order_marks(y, value, <Ranked*> k.gathered)
    for place in range(y.marks):
        mark = <int> ranked[place].mark
        if not limbs_nonzero(total + mark * y.width, y.width):
            continue
        there, what = 0, <uint64_t> mark
        if y.taking != NULL and y.taking.function == COUNT and y.taking.most < 0 and mark > MOST_GROUPS:
            k.failed_query = m.query
            return TOO_MANY_GROUPS
        if y.taking != NULL and y.taking.function != COUNT and mark >= FIRST_VALUE:
            there, what = TAKEN | VALUED, value[mark]
        width = <int> (limbs_bits(total + mark * y.width, y.width) // 64) + 1
        if append_marked(
            k, m.query, key, window, there, what, total + mark * y.width, width, log.cell + m.cell
        ):
            return OUT_OF_MEMORY
    return NO_FAILURE
