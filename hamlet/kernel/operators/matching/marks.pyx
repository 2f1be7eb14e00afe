"""Marks: what partial trends took of the variables that GROUP-BY names, numbered, so that equal ones are one number.

A mark has two words for each such thing: of a first or last value whether there is an event (bit 0) and a value
(bit 1), then the value; of a count 0, then the count. Mark 0 is that of trends without an event.

Contract
--------
**Order.** Marks keep their order when those that no node has are given up, so lists stay sorted.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from hamlet.kernel.operators.matching.predicates cimport value_of
from hamlet.kernel.operators.matching.room cimport claim, reserve_words
from hamlet.kernel.operators.matching.tables cimport (
    COUNT,
    FIRST,
    HEAD,
    Core,
    Marks,
    Partition,
    Rows,
    Table,
    Taking,
    mark_of,
    node_at,
    node_words,
    value_words,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.memory.budget cimport ALLOCATION

cdef enum:
    FIRST_SLOTS = 16
    TIDY_FROM = 64       # fewer marks are not looked through
    MOST_MARKS = 1073741824


cdef inline uint64_t hash_of(const uint64_t* word, int words) noexcept nogil:
    cdef uint64_t hashed = 0
    cdef int i
    for i in range(words):
        hashed = (hashed ^ word[i]) * <uint64_t> 0x9E3779B97F4A7C15
        hashed ^= hashed >> 29
    return hashed


cdef void free_marks(Partition* p) noexcept nogil:
    free(p.marks.word)
    free(p.marks.slot)


cdef void clear_marks(Partition* p) noexcept nogil:
    """Forget all marks, and keep the memory."""
    p.marks.count = 0
    if p.marks.slots:
        memset(p.marks.slot, 0xFF, p.marks.slots * sizeof(int32_t))


cdef void enter_mark(const Table* t, Marks* m) noexcept nogil:
    """Give the mark behind the last one a slot, and a number."""
    cdef int words = 2 * t.takings
    cdef uint64_t at = hash_of(m.word + m.count * words, words) & <uint64_t> (m.slots - 1)
    while m.slot[at] >= 0:
        at = (at + 1) & <uint64_t> (m.slots - 1)
    m.slot[at] = <int32_t> m.count
    m.count += 1


cdef void enter_all(const Table* t, Marks* m, Py_ssize_t count) noexcept nogil:
    memset(m.slot, 0xFF, m.slots * sizeof(int32_t))
    m.count = 0
    while m.count < count:
        enter_mark(t, m)


cdef int enlarge(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Twice as many slots; half of them may be taken."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t slots = max(2 * m.slots, <Py_ssize_t> FIRST_SLOTS), words = 2 * t.takings
    cdef uint64_t* word
    cdef int32_t* slot
    cdef Py_ssize_t more = (slots - m.slots) * (words * sizeof(uint64_t) // 2 + sizeof(int32_t))
    more += 0 if m.slots else 2 * ALLOCATION
    if slots > MOST_MARKS or claim(k, p, more):
        return OUT_OF_MEMORY
    word = <uint64_t*> realloc(m.word, slots // 2 * words * sizeof(uint64_t))
    slot = <int32_t*> realloc(m.slot, slots * sizeof(int32_t))
    m.word = m.word if word == NULL else word
    m.slot = m.slot if slot == NULL else slot
    if word == NULL or slot == NULL:
        claim(k, p, -more)
        return OUT_OF_MEMORY
    m.slots = slots
    enter_all(t, m, m.count)
    return NO_FAILURE


cdef int number_mark(Core* k, const Table* t, Partition* p, const uint64_t* word, int64_t* number) noexcept nogil:
    """The number of a mark; a new one where it has none."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t words = 2 * t.takings
    cdef uint64_t at
    if m.slots:
        at = hash_of(word, <int> words) & <uint64_t> (m.slots - 1)
        while m.slot[at] >= 0:
            if memcmp(m.word + m.slot[at] * words, word, words * sizeof(uint64_t)) == 0:
                number[0] = m.slot[at]
                return NO_FAILURE
            at = (at + 1) & <uint64_t> (m.slots - 1)
    number[0] = m.count
    return add_mark(k, t, p, word)


cdef int add_mark(Core* k, const Table* t, Partition* p, const uint64_t* word) noexcept nogil:
    """One more mark, behind all others."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t words = 2 * t.takings
    if 2 * (m.count + 1) > m.slots and enlarge(k, t, p):
        return OUT_OF_MEMORY
    memcpy(m.word + m.count * words, word, words * sizeof(uint64_t))
    enter_mark(t, m)
    return NO_FAILURE


cdef void begin_marks(Core* k) noexcept nogil:
    """Another event, or another variable of it: nothing is known of what it makes of marks."""
    k.mark_stamp += 1


cdef int64_t next_mark(
    Core* k, const Table* t, Partition* p, int64_t mark, int variable, Py_ssize_t row
) noexcept nogil:
    """The mark of trends of a mark, one event longer; negative where there is none."""
    cdef Py_ssize_t before = k.mapped_words
    cdef int64_t found = 0
    if reserve_words(k, &k.mapped, &k.mapped_words, 2 * (mark + 1)):
        return NO_MEMORY
    if k.mapped_words > before:
        memset(k.mapped + before, 0, (k.mapped_words - before) * sizeof(uint64_t))
    if k.mapped[2 * mark] != k.mark_stamp:
        found = extended(k, t, p, mark, variable, row)
        k.mapped[2 * mark] = k.mark_stamp
        k.mapped[2 * mark + 1] = <uint64_t> found
    return <int64_t> k.mapped[2 * mark + 1]


cdef int64_t extended(
    Core* k, const Table* t, Partition* p, int64_t mark, int variable, Py_ssize_t row
) noexcept nogil:
    """The number of a mark after an event."""
    cdef uint64_t word[MOST_WORDS]
    cdef int i
    cdef const Taking* taking
    cdef int64_t value = 0, found = 0
    if p.marks.count == 0:
        memset(word, 0, 2 * t.takings * sizeof(uint64_t))
        if number_mark(k, t, p, word, &found):
            return NO_MEMORY
    memcpy(word, p.marks.word + mark * 2 * t.takings, 2 * t.takings * sizeof(uint64_t))
    for i in range(t.takings):
        taking = &t.taking[i]
        if taking.values.variable != variable:
            continue
        if taking.function == COUNT:
            word[2 * i + 1] += 1
            if taking.most >= 0 and <int64_t> word[2 * i + 1] > taking.most:
                return DROPPED
            if taking.most < 0 and <int64_t> word[2 * i + 1] > MOST_GROUPS:
                return TOO_MANY
        elif taking.function != FIRST or word[2 * i] == 0:
            word[2 * i], word[2 * i + 1] = TAKEN, 0
            if value_of(k, &taking.values, row, &value):
                word[2 * i], word[2 * i + 1] = TAKEN | VALUED, <uint64_t> value
    return NO_MEMORY if number_mark(k, t, p, word, &found) else found


cdef int tidy_marks(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Give up the marks that no node has, where they may be many."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t i, kept = 1, words = value_words(t, p), stride, size = 2 * t.takings
    cdef int place
    cdef uint64_t* node
    if m.count < max(m.tidy_at, <Py_ssize_t> TIDY_FROM):
        return NO_FAILURE
    if reserve_words(k, &k.todo, &k.todo_words, m.count):
        return OUT_OF_MEMORY
    memset(k.todo, 0, m.count * sizeof(uint64_t))
    for place in range(t.states + t.end_count + 1):
        stride = node_words(t, p, place)
        for i in range(p.nodes[place].count):
            k.todo[mark_of(t, node_at(&p.nodes[place], i, stride) + HEAD, words)] = 1
    for i in range(1, m.count):
        if k.todo[i]:
            memmove(m.word + kept * size, m.word + i * size, size * sizeof(uint64_t))
            k.todo[i] = <uint64_t> kept
            kept += 1
    for place in range(t.states + t.end_count + 1):
        stride = node_words(t, p, place)
        for i in range(p.nodes[place].count):
            node = node_at(&p.nodes[place], i, stride) + HEAD + words - 1
            node[0] = k.todo[node[0]] if node[0] else 0
    enter_all(t, m, kept)
    m.tidy_at = 2 * kept
    return NO_FAILURE


cdef void widen_marks(const Table* t, Partition* p, int place) noexcept nogil:
    """Integers become doubles; two that become one keep two numbers, and whoever reads rows makes them one."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t i
    cdef uint64_t* word
    if not m.count:
        return
    for i in range(m.count):
        word = m.word + (i * t.takings + place) * 2
        if word[0] & VALUED:
            (<double*> (word + 1))[0] = <double> (<int64_t*> (word + 1))[0]
    enter_all(t, m, m.count)


cdef int show_marks(Core* k, const Table* t, Partition* p) noexcept nogil:
    """Find, for every mark, the one that is the same in a row: no event and no value are both NULL there."""
    cdef Marks* m = &p.marks
    cdef Py_ssize_t count = m.count, i
    cdef uint64_t word[MOST_WORDS]
    cdef int64_t found = 0
    cdef int place
    if reserve_words(k, &k.todo, &k.todo_words, count):
        return OUT_OF_MEMORY
    for i in range(count):
        memcpy(word, m.word + i * 2 * t.takings, 2 * t.takings * sizeof(uint64_t))
        for place in range(t.takings):
            if word[2 * place] == TAKEN:
                word[2 * place] = 0
        if number_mark(k, t, p, word, &found):
            return OUT_OF_MEMORY
        k.todo[i] = <uint64_t> found
    return NO_FAILURE


cdef int append_mark(Core* k, const Table* t, const Partition* p, Rows* r, int64_t mark) noexcept nogil:
    """The mark of a row, in words of its own."""
    cdef Py_ssize_t words = 2 * t.takings
    if reserve_words(k, &r.mark, &r.marks_capacity, r.marks + words):
        return OUT_OF_MEMORY
    memcpy(r.mark + r.marks, p.marks.word + mark * words, words * sizeof(uint64_t))
    r.marks += words
    return NO_FAILURE
