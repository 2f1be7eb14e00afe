"""Rows of closed windows of the matching operator: cells, values of sets, marks, matched events.

Those of whole windows that come in the order in which their rows are asked for are row columns.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport has_trends, limbs_bits, place_in_cell, words_in_cell, words_of
from hamlet.kernel.column_builder cimport EXTREMUM
from hamlet.kernel.operators.matching.lineage cimport count_events
from hamlet.kernel.operators.matching.marks cimport TAKEN, VALUED, append_mark
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.tables cimport (
    COUNT,
    REGISTER_WORDS,
    Core,
    Partition,
    Rows,
    Table,
    mark_of,
    value_words,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, SUM_INT, Component
from hamlet.kernel.row_columns cimport (
    RowColumn,
    RowColumns,
    begin_run,
    lay_columns,
    make_room,
    read_cell,
    write_cell,
)
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


cdef void lay_row_columns(Core* k, int query) except *:
    """Give a query row columns: its components, and behind them what trends took, if they are grouped by it."""
    cdef const Table* t = &k.query[query]
    cdef RowColumns* s = &k.row_columns[query]
    lay_columns(s, k.account, &k.own, &t.cells, t.takings)
    if t.takings and t.taking[0].function != COUNT:
        s.column[s.columns - 1].form = EXTREMUM


cdef int append_cell(
    Core* k, int query, int64_t key, int64_t window, uint64_t there, uint64_t what, const uint64_t* cell
) noexcept nogil:
    """Append a row of a cell of width 1, and what trends took where they are grouped by it."""
    cdef const Table* t = &k.query[query]
    cdef RowColumns* s = &k.row_columns[query]
    cdef int words = words_of(&t.cells, 1)
    cdef uint64_t* row
    if t.cells.exact:
        k.most_bits = max(k.most_bits, limbs_bits(cell, 1))
    if k.in_order and s.columns and fits_columns(t, cell):
        if make_room(s, 1) or begin_run(s, window):
            return OUT_OF_MEMORY
        write_cell(s, &t.cells, cell)
        if t.takings:
            write_mark(s, s.count, there, what)
        s.key[s.count] = <int32_t> key
        s.count += 1
        return NO_FAILURE
    row = next_row(k, &k.rows[query], key, window, 1, words)
    if row == NULL or (t.takings and note_mark(k, &k.rows[query], there, what)):
        return OUT_OF_MEMORY
    memcpy(row, cell, words * sizeof(uint64_t))
    return NO_FAILURE


cdef inline bint fits_columns(const Table* t, const uint64_t* cell) noexcept nogil:
    """Whether the sums of a cell of width 1 fit a word."""
    cdef const uint64_t* sum_
    cdef int i
    for i in range(1, t.cells.components):
        sum_ = cell + place_in_cell(&t.cells.component[i], 1)
        if t.cells.component[i].kind == SUM_INT and sum_[1] != <uint64_t> (<int64_t> sum_[0] >> 63):
            return False
    return True


cdef int append_marked(
    Core* k, int query, int64_t key, int64_t window, uint64_t there, uint64_t what, const uint64_t* count, int width,
    uint64_t* cell
) noexcept nogil:
    """Append a row with a count of some width, its other components from a cell of width 1; and what trends took."""
    cdef const Table* t = &k.query[query]
    cdef Rows* r = &k.rows[query]
    cdef uint64_t* row
    cdef int i
    if width == 1:
        cell[0] = count[0]
        return append_cell(k, query, key, window, there, what, cell)
    row = next_row(k, r, key, window, width, words_of(&t.cells, width))
    if row == NULL or (t.takings and note_mark(k, r, there, what)):
        return OUT_OF_MEMORY
    if t.cells.exact:
        k.most_bits = max(k.most_bits, limbs_bits(count, width))
    for i in range(1, t.cells.components):
        write_wider(&t.cells.component[i], row, width, cell)
    for i in range(width):
        row[i] = count[i]
    return NO_FAILURE


cdef inline void write_wider(const Component* c, uint64_t* row, int width, const uint64_t* cell) noexcept nogil:
    """Write a component of a cell of width 1 into a wider one."""
    cdef uint64_t* target = row + place_in_cell(c, width)
    cdef int i
    memcpy(target, cell + place_in_cell(c, 1), words_in_cell(c, 1) * sizeof(uint64_t))
    for i in range(words_in_cell(c, 1), words_in_cell(c, width)):
        target[i] = <uint64_t> (<int64_t> target[i - 1] >> 63)


cdef int append_sums(
    Core* k, int query, int64_t key, int64_t window, const uint64_t* sums, int width, uint64_t* cell
) noexcept nogil:
    """Append a row with sums over trends from a cell of some width, and those over events from one of width 1."""
    cdef const Table* t = &k.query[query]
    cdef const Component* c
    cdef uint64_t* row = cell
    cdef int i, narrower = 1
    if t.cells.exact:
        narrower = <int> (limbs_bits(sums, width) // 64) + 1
        k.most_bits = max(k.most_bits, limbs_bits(sums, width))
    if narrower > 1:
        row = next_row(k, &k.rows[query], key, window, narrower, words_of(&t.cells, narrower))
        if row == NULL:
            return OUT_OF_MEMORY
    for i in range(t.cells.components):
        c = &t.cells.component[i]
        if i == 0 or c.variable >= 0:
            memcpy(
                row + place_in_cell(c, narrower), sums + place_in_cell(c, width),
                words_in_cell(c, narrower) * sizeof(uint64_t),
            )
        elif narrower > 1:
            write_wider(c, row, narrower, cell)
    return NO_FAILURE if narrower > 1 else append_cell(k, query, key, window, 0, 0, cell)


cdef inline int note_mark(Core* k, Rows* r, uint64_t there, uint64_t what) noexcept nogil:
    """Put down what the trends of one more row took."""
    if r.marks + 2 > r.marks_capacity and reserve_words(k, &r.mark, &r.marks_capacity, r.marks + 2):
        return OUT_OF_MEMORY
    r.mark[r.marks], r.mark[r.marks + 1] = there, what
    r.marks += 2
    return NO_FAILURE


cdef inline void write_mark(RowColumns* s, Py_ssize_t row, uint64_t there, uint64_t what) noexcept nogil:
    """Write what the trends of a row took, behind its components."""
    cdef RowColumn* column = &s.column[s.columns - 1]
    column.value[row] = <int64_t> what
    if column.form == EXTREMUM:
        column.there[row] = there & VALUED != 0


cdef int append_numbers(
    Core* k, int query, int64_t key, int64_t window, int rows, uint64_t there, const uint64_t* what,
    const uint64_t* number
) noexcept nogil:
    """Append rows of cells that are a number of trends, each with what these took; all have something, or none has.

    Those of a window come in the order of what was taken.
    """
    cdef Rows* r = &k.rows[query]
    cdef RowColumns* s = &k.row_columns[query]
    cdef Py_ssize_t at
    cdef uint64_t most = 0
    cdef int i
    for i in range(rows):
        most |= number[i]
    k.most_bits = max(k.most_bits, limbs_bits(&most, 1))
    if k.in_order and s.columns and rows:
        if make_room(s, rows) or begin_run(s, window):
            return OUT_OF_MEMORY
        at = s.count
        for i in range(rows):
            s.key[at + i] = <int32_t> key
            s.column[0].value[at + i] = <int64_t> number[i]
            write_mark(s, at + i, there, what[i])
        s.count += rows
        return NO_FAILURE
    if reserve_rows(k, r, rows, rows):
        return OUT_OF_MEMORY
    at = r.count
    for i in range(rows):
        if note_mark(k, r, there, what[i]):
            return OUT_OF_MEMORY
        r.key[at + i], r.window[at + i], r.width[at + i] = key, window, 1
        r.word[r.words + i] = number[i]
    r.count += rows
    r.words += rows
    return NO_FAILURE


cdef int unroll(Core* k, int query) noexcept nogil:
    """Put the rows of a query's row columns behind those that are in no order. Returns a Failure."""
    cdef const Table* t = &k.query[query]
    cdef RowColumns* s = &k.row_columns[query]
    cdef Rows* r = &k.rows[query]
    cdef const RowColumn* taken
    cdef uint64_t* row
    cdef uint64_t there = 0
    cdef Py_ssize_t i, run = 0
    for i in range(s.count):
        while run + 1 < s.runs and s.begin[run + 1] <= i:
            run += 1
        row = next_row(k, r, s.key[i], s.window[run], 1, words_of(&t.cells, 1))
        if row == NULL:
            return OUT_OF_MEMORY
        read_cell(s, &t.cells, i, row)
        if t.takings:
            taken = &s.column[s.columns - 1]
            if taken.form == EXTREMUM:
                there = TAKEN | VALUED if taken.there[i] else 0
            if note_mark(k, r, there, <uint64_t> taken.value[i]):
                return OUT_OF_MEMORY
    s.count = s.runs = 0
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


cdef void free_rows(Rows* r) noexcept:
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
