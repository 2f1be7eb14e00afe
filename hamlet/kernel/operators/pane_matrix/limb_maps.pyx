"""Pane maps of exact numbers: the areas of memory in which a state keeps them, and their products."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy, memmove, memset

from hamlet.kernel.cell_products cimport add_product
from hamlet.kernel.cells cimport limbs_bits, limbs_nonzero, place_in_cell, words_in_cell, words_of
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, SUM_INT, Component, Query
from hamlet.kernel.state.core cimport ones
from hamlet.kernel.state.query_state cimport State, claim, release, replace_cells

# ------------------------------------------------------------------------------------------------ memory

cdef void clear_panes(Panes* p) noexcept nogil:
    """Forget everything: no window is open any more."""
    p.live = 0
    p.steps = 0
    p.multiplied = False
    p.result_width = 0
    p.waiting = -1
    p.area[FRONT].used = p.area[BACK].used = 0


cdef int make_room(const Query* q, State* s, int area, Py_ssize_t words) noexcept nogil:
    """Let an area have so many words; the state's cells may move. Returns a Failure."""
    cdef Panes* p = panes_of(s)
    cdef Py_ssize_t total = head_words()
    cdef uint64_t* cell
    cdef Panes* new
    cdef int i
    if words <= p.area[area].words:
        return NO_FAILURE
    words += words >> 1
    for i in range(AREAS):
        total += words if i == area else p.area[i].words
    if not claim(q, s, total * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    cell = <uint64_t*> malloc((total + 1) * sizeof(uint64_t))
    if cell == NULL:
        release(q, s, total * sizeof(uint64_t))
        return OUT_OF_MEMORY
    new = <Panes*> cell
    new[0] = p[0]
    total = head_words()
    for i in range(AREAS):
        new.area[i].place = total
        if i == area:
            new.area[i].words = words
        memcpy(
            cell + total, s.cell + p.area[i].place,
            (p.area[i].used if i == FRONT or i == BACK else p.area[i].words) * sizeof(uint64_t),
        )
        total += new.area[i].words
    replace_cells(q, s, cell, total)
    return NO_FAILURE


# ------------------------------------------------------------------------------------------------ products

cdef int64_t multiply(
    const Query* q, const uint64_t* a, uint64_t a_rows, int a_width, uint64_t rows, const uint64_t* b, uint64_t b_rows,
    int b_width, uint64_t* to, int width,
) noexcept nogil:
    """Write some rows of the product of two maps, first `a` and then `b`; returns the most bits of a count in it."""
    cdef const uint64_t* left[MOST_ROWS]
    cdef const uint64_t* right[MOST_ROWS]
    cdef const uint64_t* factor
    cdef uint64_t* cell = to
    cdef Py_ssize_t words = words_of(q, width), a_words = words_of(q, a_width), b_words = words_of(q, b_width)
    cdef int number, i, j
    list_rows(q, a, a_rows, a_width, left)
    list_rows(q, b, b_rows, b_width, right)
    for number in range(1 + q.cells):
        if not rows >> number & 1:
            continue
        for i in range(q.cells):
            if number == 0:
                fit_cell(q, cell + i * words, width, right[0] + i * b_words, b_width)
            else:
                memset(cell + i * words, 0, words * sizeof(uint64_t))
        for j in range(q.cells):
            factor = left[number] + j * a_words
            if right[j + 1] == NULL or not limbs_nonzero(factor, a_width):
                continue
            for i in range(q.cells):
                add_product(q, cell + i * words, width, factor, a_width, right[j + 1] + i * b_words, b_width)
        cell += q.cells * words
    return bits_of(q, to, rows, width)


cdef void fit_cell(const Query* q, uint64_t* to, int width, const uint64_t* source, int before) noexcept nogil:
    """Copy a cell into one of more limbs, which may be in its place or behind, or of fewer, which hold it."""
    cdef const Component* c
    cdef uint64_t* target
    cdef int i, words, more
    for i in range(q.components - 1, -1, -1):
        c = &q.component[i]
        words = words_in_cell(c, min(width, before))
        more = words_in_cell(c, width) - words
        target = to + place_in_cell(c, width)
        memmove(target, source + place_in_cell(c, before), words * sizeof(uint64_t))
        if more > 0:
            memset(
                target + words, 0xFF if c.kind == SUM_INT and <int64_t> target[words - 1] < 0 else 0,
                more * sizeof(uint64_t),
            )


cdef int64_t bits_of(const Query* q, const uint64_t* cell, uint64_t rows, int width) noexcept nogil:
    """The most bits of a count in some rows that lie one after the other."""
    cdef int64_t bits = 0
    cdef int i
    for i in range(ones(rows) * q.cells):
        bits = max(bits, limbs_bits(cell + i * words_of(q, width), width))
    return bits


cdef void list_rows(
    const Query* q, const uint64_t* cell, uint64_t rows, int width, const uint64_t** row
) noexcept nogil:
    """Where each row of a map begins; a null pointer where it has none."""
    cdef int number
    for number in range(1 + q.cells):
        row[number] = NULL
        if rows >> number & 1:
            row[number] = cell
            cell += q.cells * words_of(q, width)
