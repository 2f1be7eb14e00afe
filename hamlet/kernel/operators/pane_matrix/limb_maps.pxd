from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.cells cimport words_of
from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.burst cimport Tally
from hamlet.kernel.state.core cimport ones
from hamlet.kernel.state.query_state cimport State

cdef enum:
    MOST_COLUMNS = 8   # event columns of which bursts may wait
    MOST_ROWS = 17     # of a map
    TRAILER = 5        # words behind an entry of a stack: its last window, rows, width, bits of its counts, words

cdef enum:             # areas
    PANE               # [1 + cells][cells] the map of the pane under way
    PRODUCT            # the same: of the panes since the last turn, where windows at the front are open
    NEXT               # where the next product is made
    FRONT              # a stack: the cells of windows as of the last turn; those that close next on top
    BACK               # a stack: maps of panes since then, of the rows that are there
    RESULT             # a cell: what was delivered last
    AREAS

cdef struct Area:
    Py_ssize_t place   # its first word
    Py_ssize_t words
    Py_ssize_t used    # of a stack

cdef struct Panes:     # at the beginning of a state's cells
    uint64_t live      # bits of cells with trends in an open window; of those that have closed since a turn, too
    uint64_t rows      # of the map of the pane under way
    uint64_t product_rows
    int64_t steps      # of the pane under way; without any the other fields of its map mean nothing
    int64_t bits       # no count of its map has more
    int64_t product_bits
    int width
    int product_width
    bint multiplied    # whether there has been a pane since the last turn
    int result_width   # 0: nothing is kept
    int64_t result_last  # the last window of those that `RESULT` is of
    int waiting        # the arrival of the burst that waits, -1 for none
    bint loop
    int64_t events     # of the burst that waits
    Tally tally[MOST_COLUMNS]
    Area area[AREAS]


cdef inline Py_ssize_t head_words() noexcept nogil:
    """Words of a `Panes`."""
    return (sizeof(Panes) + 7) // 8


cdef inline Panes* panes_of(const State* s) noexcept nogil:
    return <Panes*> s.cell


cdef inline uint64_t* words_at(const State* s, int area) noexcept nogil:
    return s.cell + panes_of(s).area[area].place


cdef inline uint64_t* top_of(const State* s, int area) noexcept nogil:
    """The words behind the top of a stack, see `TRAILER`."""
    return words_at(s, area) + panes_of(s).area[area].used - TRAILER


cdef inline void pop(State* s, int area) noexcept nogil:
    panes_of(s).area[area].used -= TRAILER + <Py_ssize_t> top_of(s, area)[4]


cdef inline void end_entry(
    Panes* p, int area, uint64_t* entry, Py_ssize_t words, int64_t last, uint64_t rows, int width, int64_t bits
) noexcept nogil:
    """Write the words behind an entry of a stack, which is its top then."""
    entry += words
    entry[0], entry[1], entry[2], entry[3], entry[4] = last, rows, width, bits, words
    p.area[area].used += words + TRAILER


cdef inline void swap_products(Panes* p) noexcept nogil:
    p.area[PRODUCT], p.area[NEXT] = p.area[NEXT], p.area[PRODUCT]


cdef inline Py_ssize_t size_of(const Query* q, uint64_t rows, int width) noexcept nogil:
    """Words of a map."""
    return <Py_ssize_t> ones(rows) * q.cells * words_of(q, width)


cdef void clear_panes(Panes* p) noexcept nogil
cdef int make_room(const Query* q, State* s, int area, Py_ssize_t words) noexcept nogil
cdef int64_t multiply(
    const Query* q, const uint64_t* a, uint64_t a_rows, int a_width, uint64_t rows, const uint64_t* b, uint64_t b_rows,
    int b_width, uint64_t* to, int width,
) noexcept nogil
cdef void fit_cell(const Query* q, uint64_t* to, int width, const uint64_t* source, int before) noexcept nogil
cdef int64_t bits_of(const Query* q, const uint64_t* cell, uint64_t rows, int width) noexcept nogil
cdef void list_rows(
    const Query* q, const uint64_t* cell, uint64_t rows, int width, const uint64_t** row
) noexcept nogil
