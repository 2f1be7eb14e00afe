"""Rows of closed windows of one query, column by column, in the order in which they are asked for."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hamlet.kernel.cells cimport place_in_cell
from hamlet.kernel.column_builder cimport EXTREMUM, INTEGER, PAIR, Form
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Component, Query
from hamlet.memory.budget cimport Account

cdef struct RowColumn:
    Form form
    int64_t* value       # integers, values of extrema, or mantissas; a null pointer for flags
    uint8_t* there       # flags, and whether there is an extremum
    int64_t* exponent    # of scaled doubles

cdef struct RowColumns:
    Account* account     # of the run
    int64_t* own         # bytes of the kernel's own, of which these are some
    Py_ssize_t count
    Py_ssize_t capacity
    int32_t* key
    int columns          # 0 where the query has no row columns
    RowColumn* column
    Py_ssize_t runs      # of rows of one window
    Py_ssize_t runs_capacity
    int64_t* window      # [runs]
    int64_t* begin       # [runs] the first row

cdef void lay_columns(RowColumns* s, Account* account, int64_t* own, const Query* q, int more) except *
cdef void free_columns(RowColumns* s) noexcept
cdef bint enlarge_columns(RowColumns* s, Py_ssize_t capacity) noexcept nogil
cdef bint enlarge_runs(RowColumns* s) noexcept nogil
cdef void read_cell(const RowColumns* s, const Query* q, Py_ssize_t row, uint64_t* cell) noexcept nogil
cdef bint comes_last(const RowColumns* s, const int64_t* window, Py_ssize_t rows) noexcept nogil
cdef object taken_columns(RowColumns* s)


cdef inline int make_room(RowColumns* s, Py_ssize_t rows) noexcept nogil:
    """Room for so many more rows. Returns a Failure."""
    if s.count + rows > s.capacity and not enlarge_columns(s, 2 * s.capacity + rows):
        return OUT_OF_MEMORY
    return NO_FAILURE


cdef inline int begin_run(RowColumns* s, int64_t window) noexcept nogil:
    """The rows that follow are of this window. Returns a Failure."""
    if s.runs and s.window[s.runs - 1] == window:
        return NO_FAILURE
    if s.runs == s.runs_capacity and not enlarge_runs(s):
        return OUT_OF_MEMORY
    s.window[s.runs] = window
    s.begin[s.runs] = s.count
    s.runs += 1
    return NO_FAILURE


cdef inline void write_cell(RowColumns* s, const Query* q, const uint64_t* cell) noexcept nogil:
    """Write the components of the next row, for which there is room, from a cell of width 1; integers fit a word."""
    cdef const uint64_t* from_
    cdef RowColumn* column = s.column
    cdef int i
    for i in range(q.components):
        from_ = cell + place_in_cell(&q.component[i], 1)
        if column.form == INTEGER:
            column.value[s.count] = <int64_t> from_[0]
        elif column.form == PAIR:
            column.value[s.count], column.exponent[s.count] = <int64_t> from_[0], <int64_t> from_[1]
        else:
            column.there[s.count] = from_[0] != 0
            if column.form == EXTREMUM:
                column.value[s.count] = <int64_t> from_[1]
        column += 1
