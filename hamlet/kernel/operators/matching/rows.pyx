"""Rows of closed windows of the matching operator: cells, values of sets, marks, matched events."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport has_trends, limbs_bits, place_in_cell, words_in_cell, words_of
from hamlet.kernel.operators.matching.lineage cimport count_events
from hamlet.kernel.operators.matching.marks cimport append_mark
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.tables cimport (
    REGISTER_WORDS,
    Core,
    Partition,
    Rows,
    Table,
    mark_of,
    value_words,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Component
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport take


cdef uint64_t* next_row(
    Core* k, Rows* r, int64_t key, int64_t window, int width, Py_ssize_t words
) noexcept nogil:
    """Put down of one more row all but its cells, for which it gives the place; NULL where there is no memory."""
    cdef uint64_t* cells
    if reserve_rows(k, r, 1, words):
        return NULL
    r.key[r.count] = key
    r.window[r.count] = window
    r.width[r.count] = width
    r.count += 1
    cells = r.word + r.words
    r.words += words
    return cells


cdef int append_row(
    Core* k, int query, Partition* p, int64_t key, int64_t window, uint64_t* value
) noexcept nogil:
    """Append a row where there is a trend, no wider than its count needs."""
    cdef const Table* t = &k.query[query]
    cdef Rows* r = &k.rows[query]
    cdef int width = p.width, narrower = width, i
    cdef int64_t bits
    cdef Py_ssize_t words, taken
    cdef const Component* c
    cdef uint64_t* row
    if not has_trends(&t.cells, width, value):
        return NO_FAILURE
    if t.traces and count_events(k, t, p, r, value):
        return OUT_OF_MEMORY
    if t.takings and append_mark(k, t, p, r, <int64_t> mark_of(t, value, value_words(t, p))):
        return OUT_OF_MEMORY
    if t.session_end >= 0:
        row = value + place_in_cell(&t.cells.component[t.session_end], width)
        row[0] = 1
        row[1] = <uint64_t> (p.until - t.gap)
    if t.cells.exact:
        bits = limbs_bits(value, width)
        k.most_bits = max(k.most_bits, bits)
        narrower = <int> (bits // 64) + 1
    words = words_of(&t.cells, narrower)
    taken = words_of(&t.cells, width)
    row = next_row(k, r, key, window, narrower, words)
    if row == NULL:
        return OUT_OF_MEMORY
    for i in range(t.cells.components):
        c = &t.cells.component[i]
        memcpy(
            row + place_in_cell(c, narrower), value + place_in_cell(c, width),
            words_in_cell(c, narrower) * sizeof(uint64_t),
        )
    return append_sets(k, t, p, r, value + taken) if t.sets else NO_FAILURE


cdef int append_marked(
    Core* k, int query, int64_t key, int64_t window, uint64_t there, uint64_t what, const uint64_t* count, int width,
    const uint64_t* cell
) noexcept nogil:
    """Append a row with a count of some width, its other components from a cell of width 1; and what trends took."""
    cdef const Table* t = &k.query[query]
    cdef Rows* r = &k.rows[query]
    cdef const Component* c
    cdef uint64_t* row = next_row(k, r, key, window, width, words_of(&t.cells, width))
    cdef uint64_t* target
    cdef int i, j
    if row == NULL:
        return OUT_OF_MEMORY
    if t.takings:
        if r.marks + 2 > r.marks_capacity and reserve_words(k, &r.mark, &r.marks_capacity, r.marks + 2):
            return OUT_OF_MEMORY
        r.mark[r.marks], r.mark[r.marks + 1] = there, what
        r.marks += 2
    if t.cells.exact:
        k.most_bits = max(k.most_bits, limbs_bits(count, width))
    for i in range(1, t.cells.components):
        c = &t.cells.component[i]
        target = row + place_in_cell(c, width)
        memcpy(target, cell + place_in_cell(c, 1), words_in_cell(c, 1) * sizeof(uint64_t))
        for j in range(words_in_cell(c, 1), words_in_cell(c, width)):
            target[j] = <uint64_t> (<int64_t> target[j - 1] >> 63)
    for i in range(width):
        row[i] = count[i]
    return NO_FAILURE


cdef int append_numbers(
    Core* k, int query, int64_t key, int64_t window, int rows, uint64_t there, const uint64_t* what,
    const uint64_t* number
) noexcept nogil:
    """Append rows of cells that are a number of trends, each with what these took; all have something, or none has."""
    cdef Rows* r = &k.rows[query]
    cdef Py_ssize_t at
    cdef uint64_t* mark
    cdef uint64_t most = 0
    cdef int i
    if r.marks + 2 * rows > r.marks_capacity and reserve_words(k, &r.mark, &r.marks_capacity, r.marks + 2 * rows):
        return OUT_OF_MEMORY
    if reserve_rows(k, r, rows, rows):
        return OUT_OF_MEMORY
    at = r.count
    mark = r.mark + r.marks
    for i in range(rows):
        r.key[at + i], r.window[at + i], r.width[at + i] = key, window, 1
        r.word[r.words + i] = number[i]
        mark[2 * i], mark[2 * i + 1] = there, what[i]
        most |= number[i]
    r.count += rows
    r.words += rows
    r.marks += 2 * rows
    k.most_bits = max(k.most_bits, limbs_bits(&most, 1))
    return NO_FAILURE


cdef int append_sets(Core* k, const Table* t, const Partition* p, Rows* r, const uint64_t* bits) noexcept nogil:
    """The values of a row's exact sets, and the registers of the others."""
    cdef int i
    cdef Py_ssize_t number, words = t.registers * <Py_ssize_t> REGISTER_WORDS, before
    for i in range(t.exact_sets):
        before = r.members
        for number in range(p.dictionary[i].count):
            if bits[number >> 6] >> (number & 63) & 1:
                if reserve_words(k, <uint64_t**> &r.member, &r.members_capacity, r.members + 1):
                    return OUT_OF_MEMORY
                r.member[r.members] = p.dictionary[i].value[number]
                r.members += 1
        if reserve_words(k, <uint64_t**> &r.size, &r.sizes_capacity, r.sizes + 1):
            return OUT_OF_MEMORY
        r.size[r.sizes] = r.members - before
        r.sizes += 1
        bits += p.set_words
    if reserve_words(k, &r.registers, &r.registers_capacity, r.register_words + words):
        return OUT_OF_MEMORY
    if words:
        memcpy(r.registers + r.register_words, bits, words * sizeof(uint64_t))
    r.register_words += words
    return NO_FAILURE


cdef inline int reserve_rows(Core* k, Rows* r, int rows, Py_ssize_t words) noexcept nogil:
    """Room for more rows, whose cells have so many words."""
    cdef Py_ssize_t capacity = 2 * r.capacity + 64
    if r.count + rows > r.capacity:
        if not take(k.account, (capacity - r.capacity) * (2 * sizeof(int64_t) + sizeof(int32_t))):
            return OUT_OF_MEMORY
        k.own += (capacity - r.capacity) * <int64_t> (2 * sizeof(int64_t) + sizeof(int32_t))
        if not regrown(<void**>&r.key, capacity * sizeof(int64_t)):
            return OUT_OF_MEMORY
        if not regrown(<void**>&r.window, capacity * sizeof(int64_t)):
            return OUT_OF_MEMORY
        if not regrown(<void**>&r.width, capacity * sizeof(int32_t)):
            return OUT_OF_MEMORY
        r.capacity = capacity
    if r.words + words <= r.words_capacity:
        return NO_FAILURE
    return reserve_words(k, &r.word, &r.words_capacity, r.words + words)


cdef void free_rows(Core* k, Rows* r) noexcept:
    free(r.key)
    free(r.window)
    free(r.width)
    free(r.word)
    free(r.member)
    free(r.size)
    free(r.registers)
    free(r.mark)
    free(r.event)
    free(r.event_size)
    memset(r, 0, sizeof(Rows))
