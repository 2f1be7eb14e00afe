"""Row columns of whole windows: where each column's numbers stand in the vectors of lanes (``row_buffer`` writes them).

Rows that come in another way lie in ``rows``; numbers that fit no word come from blocks and states.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from hamlet.kernel.cells cimport words_of
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
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.row_columns cimport RowColumns, free_columns, lay_columns, read_cell
from hamlet.kernel.state.core cimport Core, PlaneColumn
from hamlet.kernel.state.rows cimport new_row


cdef void load_row_columns(Core* k, object queries) except *:
    """Give row columns to some queries; the others' rows are never in order."""
    cdef const Band* band
    cdef const Cast* cast
    cdef PlaneColumn* column
    cdef int query, i, plane
    k.row_columns = <RowColumns*> calloc(k.queries + 1, sizeof(RowColumns))
    k.plane_columns = <PlaneColumn**> calloc(k.queries + 1, sizeof(PlaneColumn*))
    if k.row_columns == NULL or k.plane_columns == NULL:
        raise MemoryError
    for query in queries:
        if k.band_of[query] < 0:
            continue
        band = &k.band[k.band_of[query]]
        cast = band.cast + k.lane_of[query] * (band.places + 1)
        lay_columns(&k.row_columns[query], k.account, &k.own, &k.query[query], 0)
        k.plane_columns[query] = <PlaneColumn*> calloc(k.query[query].components + 1, sizeof(PlaneColumn))
        if k.plane_columns[query] == NULL:
            raise MemoryError
        for i in range(k.query[query].components):
            column, plane = &k.plane_columns[query][i], band.place[k.lane_of[query] * band.places + i]
            column.how, column.form, column.ordinal = cast[i].how, plane_form(band, plane), plane_ordinal(band, plane)
            if column.how == CAST_LEAST_INT or column.how == CAST_GREATEST_INT:
                column.flip = lanes_value(0, False, column.how == CAST_LEAST_INT)
            column.doubles = column.how in (CAST_DOUBLE, CAST_SCALED, CAST_LEAST_DOUBLE, CAST_GREATEST_DOUBLE)


cdef void free_row_columns(Core* k) noexcept:
    cdef int query
    for query in range(k.queries):
        if k.row_columns != NULL:
            free_columns(&k.row_columns[query])
        if k.plane_columns != NULL:
            free(k.plane_columns[query])
    free(k.row_columns)
    free(k.plane_columns)


cdef int unroll(Core* k, int query) noexcept nogil:
    """Put the rows of a query's row columns behind those that are in no order. Returns a Failure."""
    cdef RowColumns* s = &k.row_columns[query]
    cdef uint64_t* row
    cdef Py_ssize_t i, run = 0
    for i in range(s.count):
        while run + 1 < s.runs and s.begin[run + 1] <= i:
            run += 1
        row = new_row(k, &k.rows[query], s.key[i], s.window[run], 1, words_of(&k.query[query], 1))
        if row == NULL:
            return OUT_OF_MEMORY
        read_cell(s, &k.query[query], i, row)
    s.count = s.runs = 0
    return NO_FAILURE
