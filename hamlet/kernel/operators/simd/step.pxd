from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.expression cimport Column
from hamlet.kernel.lanes.lanes cimport (
    LANES_GREATEST,
    LANES_LEAST,
    LANES_PRESENCE,
    LANES_SUM,
    Band,
    Input,
    Word,
    rank_of,
    usable,
)
from hamlet.kernel.state.core cimport Core, Graphlet
from hamlet.kernel.state.operator cimport Run

cdef int step_band(
    Core* k, int number, int64_t key, int64_t time, int kind, const int64_t* rows, int events, bint* done
) noexcept nogil
cdef int find_lanes(Core* k, int number, Graphlet* g) noexcept nogil
cdef int seek_block(Core* k, int number, Graphlet* g, bint* starts) noexcept nogil
cdef int burst_band(Core* k, int number, const Graphlet* g, const Run* run, uint64_t* found) noexcept nogil
cdef void count_lanes(Core* k, const Band* band, Graphlet* g, int role, const uint64_t* found) noexcept nogil


cdef inline bint load_input(Core* k, const Input* input, int64_t row, Word* x, double* size) noexcept nogil:
    """An input of one event, 0 where it has no value; False where it is out of range.

    `size` becomes the magnitude of what it adds to a plane of integers.
    """
    cdef const Column* column = &k.columns[input.column]
    cdef int64_t bits
    cdef double value
    x.i = 0
    size[0] = 0
    if input.column >= 0 and column.valid != NULL and not column.valid[row]:
        return True
    bits = column.data[row] if input.of >= LANES_SUM else 1
    if input.of == LANES_LEAST or input.of == LANES_GREATEST:
        return rank_of(bits, k.floating[input.column], input.of == LANES_LEAST, x)
    value = <double> bits
    if input.of == LANES_SUM and k.floating[input.column]:
        value = (<double*> &bits)[0]
        if not usable(value):
            return False
    if input.floating:
        x.d = value
        return True
    x.i = bits
    if input.of != LANES_PRESENCE:
        size[0] = fabs(value)
    return True
