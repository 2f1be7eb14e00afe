from libc.stdint cimport int32_t, int64_t

from hamlet._cells cimport Scaled, scaled_normal
from hamlet._kernel cimport Core, Sheet, SheetColumn
from hamlet._lanes cimport CAST_LEAST_DOUBLE, Word, lanes_value
from hamlet._rows cimport prefetch_to_write

cdef enum:
    LINE = 8   # words of a cache line

cdef void load_sheets(Core* k, object queries) except *
cdef void free_sheets(Core* k) noexcept
cdef int make_room(Core* k, Sheet* s, int64_t window) noexcept nogil
cdef bint comes_last(const Core* k, int query) noexcept nogil
cdef int unroll(Core* k, int query) noexcept nogil
cdef object taken_sheet(Core* k, int query)


cdef inline int write_row(
    Core* k, Sheet* s, int64_t key, int64_t window, const Word* plane, const int* before, int stride
) noexcept nogil:
    """A row behind the others, from planes `stride` words apart without exponents. Returns a Failure."""
    cdef Py_ssize_t row = s.count
    cdef SheetColumn* column = s.column
    cdef SheetColumn* end = s.column + s.columns
    cdef int64_t value
    cdef int failure
    if row == s.capacity or s.last != window or row == 0:
        failure = make_room(k, s, window)
        if failure:
            return failure
    s.count = row + 1
    s.key[row] = <int32_t> key
    # rows of many queries come in turns: the next one of this query finds its place in the cache
    prefetch_to_write(s.key + row + 2 * LINE)
    while column < end:
        value = plane[(before[column.form] + column.ordinal) * stride].i
        if column.there != NULL:
            column.there[row] = value != 0
        if column.value != NULL:
            prefetch_to_write(column.value + row + LINE)
            if column.doubles:
                write_double(column, row, value)
            else:
                column.value[row] = value ^ column.flip
        column += 1
    return 0


cdef inline void write_double(SheetColumn* column, Py_ssize_t row, int64_t value) noexcept nogil:
    """A sum of doubles, or the rank of one, as a number of a row."""
    cdef Scaled number
    if column.exponent == NULL:
        column.value[row] = lanes_value(value, True, column.how == CAST_LEAST_DOUBLE)
        return
    number = scaled_normal((<double*> &value)[0], 0)
    (<double*> column.value)[row] = number.m
    column.exponent[row] = number.e
