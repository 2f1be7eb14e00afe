"""Row columns: rows of whole windows, column by column, in the order in which they are asked for.

Whole windows of a batch come one after the other, and the groups of each in the order of their ranks (``window``). So
the rows of a query need not be put in order, and each of their columns is what its numbers become in the result
(``row_buffer`` writes them). Rows that come in another way lie in ``rows``.

Numbers fit 64 bits, or are scaled doubles: larger ones come from blocks and states.
"""

import numpy as np

from cython.view cimport array
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from hamlet.kernel.cells cimport place_in_cell, words_in_cell, words_of
from hamlet.kernel.column_builder cimport EXTREMUM, FLAG, INTEGER, PAIR, Form
from hamlet.kernel.lanes.lanes cimport (
    CAST_DOUBLE,
    CAST_GREATEST_DOUBLE,
    CAST_GREATEST_INT,
    CAST_LEAST_DOUBLE,
    CAST_LEAST_INT,
    CAST_SCALED,
    Band,
    Cast,
    lanes_value,
    plane_form,
    plane_ordinal,
)
from hamlet.kernel.plan cimport (
    COUNT,
    COUNT_SCALED,
    NO_FAILURE,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Component,
    Query,
)
from hamlet.kernel.state.core cimport Core, Rows, RowColumns, RowColumn, enlarged, take_own
from hamlet.kernel.state.rows cimport new_row


cdef inline Form form_of(const Component* c) noexcept nogil:
    if c.kind == COUNT or c.kind == OCCURRENCES or c.kind == SUM_INT:
        return INTEGER
    if c.kind == SUM_DOUBLE or c.kind == COUNT_SCALED or c.kind == OCCURRENCES_SCALED:
        return PAIR
    return FLAG if c.kind == PRESENT else EXTREMUM


# ------------------------------------------------------------------------------------------------ life

cdef void load_row_columns(Core* k, object queries) except *:
    """Give ordered_queries to some queries; the others' rows are never in order."""
    cdef const Band* band
    cdef const Cast* cast
    cdef RowColumn* column
    cdef int query, i, plane
    k.row_columns = <RowColumns*> calloc(k.queries + 1, sizeof(RowColumns))
    if k.row_columns == NULL:
        raise MemoryError
    for query in queries:
        if k.band_of[query] < 0:
            continue
        band = &k.band[k.band_of[query]]
        cast = band.cast + k.lane_of[query] * (band.places + 1)
        k.row_columns[query].columns = k.query[query].components
        k.row_columns[query].column = <RowColumn*> calloc(k.query[query].components + 1, sizeof(RowColumn))
        if k.row_columns[query].column == NULL:
            raise MemoryError
        for i in range(k.query[query].components):
            column, plane = &k.row_columns[query].column[i], band.place[k.lane_of[query] * band.places + i]
            column.how, column.form, column.ordinal = cast[i].how, plane_form(band, plane), plane_ordinal(band, plane)
            if column.how == CAST_LEAST_INT or column.how == CAST_GREATEST_INT:
                column.flip = lanes_value(0, False, column.how == CAST_LEAST_INT)
            column.doubles = column.how in (CAST_DOUBLE, CAST_SCALED, CAST_LEAST_DOUBLE, CAST_GREATEST_DOUBLE)


cdef void free_row_columns(Core* k) noexcept:
    cdef int query, i
    if k.row_columns == NULL:
        return
    for query in range(k.queries):
        if k.row_columns[query].column != NULL:
            for i in range(k.query[query].components):
                free(k.row_columns[query].column[i].value)
                free(k.row_columns[query].column[i].exponent)
                free(k.row_columns[query].column[i].there)
        free(k.row_columns[query].column)
        free(k.row_columns[query].key)
        free(k.row_columns[query].window)
        free(k.row_columns[query].begin)
    free(k.row_columns)


cdef int make_room(Core* k, RowColumns* s, Py_ssize_t rows) noexcept nogil:
    """Room for so many more rows. Returns a Failure."""
    if s.count + rows > s.capacity and not enlarge_columns(k, s, 2 * s.capacity + rows):
        return OUT_OF_MEMORY
    return NO_FAILURE


cdef int begin_run(Core* k, RowColumns* s, int64_t window) noexcept nogil:
    """The rows that follow are of this window. Returns a Failure."""
    if s.runs and s.window[s.runs - 1] == window:
        return NO_FAILURE
    if s.runs == s.runs_capacity and not enlarge_runs(k, s):
        return OUT_OF_MEMORY
    s.window[s.runs] = window
    s.begin[s.runs] = s.count
    s.runs += 1
    return NO_FAILURE


cdef bint enlarge_columns(Core* k, RowColumns* s, Py_ssize_t capacity) noexcept nogil:
    cdef const Query* q = &k.query[s - k.row_columns]
    cdef RowColumn* column = s.column
    cdef Form form
    cdef int i
    if not moved(k, <void**> &s.key, s.capacity, capacity, sizeof(int32_t)):
        return False
    for i in range(s.columns):
        form = form_of(&q.component[i])
        if form != FLAG and not moved(k, <void**> &column[i].value, s.capacity, capacity, sizeof(int64_t)):
            return False
        if form == PAIR and not moved(k, <void**> &column[i].exponent, s.capacity, capacity, sizeof(int64_t)):
            return False
        if form == FLAG or form == EXTREMUM:
            if not moved(k, <void**> &column[i].there, s.capacity, capacity, sizeof(uint8_t)):
                return False
    s.capacity = capacity
    return True


cdef bint enlarge_runs(Core* k, RowColumns* s) noexcept nogil:
    cdef Py_ssize_t capacity = 2 * s.runs + 16
    if not moved(k, <void**> &s.window, s.runs, capacity, sizeof(int64_t)):
        return False
    if not moved(k, <void**> &s.begin, s.runs, capacity, sizeof(int64_t)):
        return False
    s.runs_capacity = capacity
    return True


cdef inline bint moved(Core* k, void** memory, Py_ssize_t before, Py_ssize_t capacity, Py_ssize_t size) noexcept nogil:
    cdef void* found = enlarged(k, memory[0], before, capacity, size)
    if found == NULL:
        return False
    memory[0] = found
    return True


# ------------------------------------------------------------------------------------------------ taking rows

cdef bint comes_last(const Core* k, int query) noexcept nogil:
    """Whether all other rows of a query are of windows before those of its row columns."""
    cdef const Rows* r = &k.rows[query]
    cdef Py_ssize_t i
    for i in range(r.count):
        if r.window[i] >= k.row_columns[query].window[0]:
            return False
    return True


cdef object taken_columns(Core* k, int query):
    """Take the row columns of a query, as `Kernel.take_columns` gives them: the arrays are their memory itself."""
    cdef RowColumns* s = &k.row_columns[query]
    cdef const Component* c = k.query[query].component
    cdef Py_ssize_t rows = s.count, runs = s.runs, capacity = s.capacity, i
    cdef Form form
    s.count = s.capacity = s.runs = 0  # whatever happens, nothing is taken twice
    columns = []
    for i in range(k.query[query].components):
        form = form_of(&c[i])
        number = np.dtype(np.float64 if form == PAIR else np.int64)
        value = given(k, <void**> &s.column[i].value, rows, capacity, number)
        there = given(k, <void**> &s.column[i].there, rows, capacity, np.dtype(np.bool_))
        whole = there is not None and bool(there.all())
        if form == PAIR:
            columns.append((value, given(k, <void**> &s.column[i].exponent, rows, capacity, np.dtype(np.int64))))
        elif form == FLAG:
            columns.append((there, whole))
        else:
            columns.append((value, None if form == INTEGER or whole else there))
    keys = given(k, <void**> &s.key, rows, capacity, np.dtype(np.int32))
    windows = np.array(<int64_t[:runs]> s.window)
    counts = np.diff(np.array(<int64_t[:runs]> s.begin), append=rows)
    return keys, windows, counts, columns


cdef object given(Core* k, void** memory, Py_ssize_t rows, Py_ssize_t capacity, object type):
    """The memory of a column with room for `capacity` rows as an array of its own; None of nothing."""
    cdef array owner
    cdef void* shrunk
    cdef Py_ssize_t size = type.itemsize
    if memory[0] == NULL:
        return None
    shrunk = realloc(memory[0], rows * size)
    if shrunk != NULL:
        memory[0] = shrunk
    owner = <uint8_t[:rows * size]> memory[0]
    owner.callback_free_data = free
    memory[0] = NULL
    take_own(k, -capacity * size)
    return np.asarray(owner).view(type)


cdef int unroll(Core* k, int query) noexcept nogil:
    """Put the rows of a row columns behind those that are in no order. Returns a Failure."""
    cdef RowColumns* s = &k.row_columns[query]
    cdef const Query* q = &k.query[query]
    cdef const RowColumn* column
    cdef const Component* c
    cdef uint64_t* to
    cdef uint64_t* row
    cdef Py_ssize_t i, run = 0
    cdef int number, words = words_of(q, 1)
    cdef Form form
    for i in range(s.count):
        while run + 1 < s.runs and s.begin[run + 1] <= i:
            run += 1
        row = new_row(k, &k.rows[query], s.key[i], s.window[run], 1, words)
        if row == NULL:
            return OUT_OF_MEMORY
        for number in range(q.components):
            c, column = &q.component[number], &s.column[number]
            to, form = row + place_in_cell(c, 1), form_of(c)
            if form == FLAG:
                to[0] = column.there[i]
            elif form == EXTREMUM:
                to[0], to[1] = column.there[i], <uint64_t> column.value[i]
            elif form == PAIR:
                to[0], to[1] = <uint64_t> column.value[i], <uint64_t> column.exponent[i]
            else:
                memset(to, 0xFF if column.value[i] < 0 else 0, words_in_cell(c, 1) * sizeof(uint64_t))
                to[0] = <uint64_t> column.value[i]
    s.count = s.runs = 0
    return NO_FAILURE
