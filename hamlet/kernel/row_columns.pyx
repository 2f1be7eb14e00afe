"""Row columns: rows of closed windows of one query, column by column, in the order in which they are asked for.

Where whole windows of a batch come one after the other, and the groups of each in the order of their ranks, the rows of
a query need not be put in order, and each of their columns is what its numbers become in the result. Numbers fit 64
bits, or are scaled doubles.
"""

import numpy as np

from cython.view cimport array
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from hamlet.kernel.cells cimport place_in_cell, words_in_cell
from hamlet.kernel.column_builder cimport EXTREMUM, FLAG, INTEGER, PAIR, Form
from hamlet.kernel.plan cimport (
    COUNT,
    COUNT_SCALED,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Component,
    Query,
)
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport Account, take


cdef Form form_of(const Component* c) noexcept nogil:
    if c.kind == COUNT or c.kind == OCCURRENCES or c.kind == SUM_INT:
        return INTEGER
    if c.kind == SUM_DOUBLE or c.kind == COUNT_SCALED or c.kind == OCCURRENCES_SCALED:
        return PAIR
    return FLAG if c.kind == PRESENT else EXTREMUM


# ------------------------------------------------------------------------------------------------------------ life


cdef void lay_columns(RowColumns* s, Account* account, int64_t* own, const Query* q, int more) except *:
    """Give a query a column for each component, and so many more, of integers."""
    cdef int i
    s.account, s.own = account, own
    s.column = <RowColumn*> calloc(q.components + more + 1, sizeof(RowColumn))
    if s.column == NULL:
        raise MemoryError
    s.columns = q.components + more
    for i in range(s.columns):
        s.column[i].form = form_of(&q.component[i]) if i < q.components else INTEGER


cdef void free_columns(RowColumns* s) noexcept:
    cdef int i
    for i in range(s.columns):
        free(s.column[i].value)
        free(s.column[i].exponent)
        free(s.column[i].there)
    free(s.column)
    free(s.key)
    free(s.window)
    free(s.begin)


cdef bint enlarge_columns(RowColumns* s, Py_ssize_t capacity) noexcept nogil:
    cdef RowColumn* column
    cdef int i
    if not moved(s, <void**> &s.key, s.capacity, capacity, sizeof(int32_t)):
        return False
    for i in range(s.columns):
        column = &s.column[i]
        if column.form != FLAG and not moved(s, <void**> &column.value, s.capacity, capacity, sizeof(int64_t)):
            return False
        if column.form == PAIR and not moved(s, <void**> &column.exponent, s.capacity, capacity, sizeof(int64_t)):
            return False
        if column.form == FLAG or column.form == EXTREMUM:
            if not moved(s, <void**> &column.there, s.capacity, capacity, sizeof(uint8_t)):
                return False
    s.capacity = capacity
    return True


cdef bint enlarge_runs(RowColumns* s) noexcept nogil:
    cdef Py_ssize_t capacity = 2 * s.runs + 16
    if not moved(s, <void**> &s.window, s.runs, capacity, sizeof(int64_t)):
        return False
    if not moved(s, <void**> &s.begin, s.runs, capacity, sizeof(int64_t)):
        return False
    s.runs_capacity = capacity
    return True


cdef bint moved(
    RowColumns* s, void** memory, Py_ssize_t before, Py_ssize_t capacity, Py_ssize_t size
) noexcept nogil:
    """Make room for `capacity` numbers of `size` bytes where there was some for `before`; False where there is none."""
    cdef int64_t bytes = (capacity - before) * size
    if not take(s.account, bytes):
        return False
    if not regrown(memory, capacity * size):
        take(s.account, -bytes)
        return False
    s.own[0] += bytes
    return True


# ------------------------------------------------------------------------------------------------------------ rows


cdef void read_cell(const RowColumns* s, const Query* q, Py_ssize_t row, uint64_t* cell) noexcept nogil:
    """The components of a row as a cell of width 1."""
    cdef const RowColumn* column = s.column
    cdef uint64_t* to
    cdef int i
    for i in range(q.components):
        to = cell + place_in_cell(&q.component[i], 1)
        if column.form == INTEGER:
            memset(to, 0xFF if column.value[row] < 0 else 0, words_in_cell(&q.component[i], 1) * sizeof(uint64_t))
            to[0] = <uint64_t> column.value[row]
        elif column.form == PAIR:
            to[0], to[1] = <uint64_t> column.value[row], <uint64_t> column.exponent[row]
        else:
            to[0] = column.there[row]
            if column.form == EXTREMUM:
                to[1] = <uint64_t> column.value[row]
        column += 1


cdef bint comes_last(const RowColumns* s, const int64_t* window, Py_ssize_t rows) noexcept nogil:
    """Whether all other rows, which are of these windows, are of windows before those of the row columns."""
    cdef Py_ssize_t i
    for i in range(rows):
        if window[i] >= s.window[0]:
            return False
    return True


cdef object taken_columns(RowColumns* s):
    """Take all rows, as `hamlet._core.Kernel.take_columns` gives them: the arrays are their memory itself."""
    cdef Py_ssize_t rows = s.count, runs = s.runs, capacity = s.capacity, i
    cdef RowColumn* column
    s.count = s.capacity = s.runs = 0  # whatever happens, nothing is taken twice
    columns = []
    for i in range(s.columns):
        column = &s.column[i]
        number = np.dtype(np.float64 if column.form == PAIR else np.int64)
        value = given(s, <void**> &column.value, rows, capacity, number)
        there = given(s, <void**> &column.there, rows, capacity, np.dtype(np.bool_))
        whole = there is not None and bool(there.all())
        if column.form == PAIR:
            columns.append((value, given(s, <void**> &column.exponent, rows, capacity, np.dtype(np.int64))))
        elif column.form == FLAG:
            columns.append((there, whole))
        else:
            columns.append((value, None if column.form == INTEGER or whole else there))
    keys = given(s, <void**> &s.key, rows, capacity, np.dtype(np.int32))
    windows = np.array(<int64_t[:runs]> s.window)
    counts = np.diff(np.array(<int64_t[:runs]> s.begin), append=rows)
    return keys, windows, counts, columns


cdef object given(RowColumns* s, void** memory, Py_ssize_t rows, Py_ssize_t capacity, object type):
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
    take(s.account, -capacity * size)
    s.own[0] -= capacity * size
    return np.asarray(owner).view(type)
