"""Rows of closed windows of one query, column by column, in the order in which they are asked for."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hamlet.kernel.column_builder cimport Form
from hamlet.kernel.plan cimport Component, Query
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

cdef Form form_of(const Component* c) noexcept nogil
cdef void lay_columns(RowColumns* s, Account* account, int64_t* own, const Query* q, int more) except *
cdef void free_columns(RowColumns* s) noexcept
cdef int make_room(RowColumns* s, Py_ssize_t rows) noexcept nogil
cdef int begin_run(RowColumns* s, int64_t window) noexcept nogil
cdef void write_cell(RowColumns* s, const Query* q, const uint64_t* cell) noexcept nogil
cdef void read_cell(const RowColumns* s, const Query* q, Py_ssize_t row, uint64_t* cell) noexcept nogil
cdef bint comes_last(const RowColumns* s, const int64_t* window, Py_ssize_t rows) noexcept nogil
cdef object taken_columns(RowColumns* s)
