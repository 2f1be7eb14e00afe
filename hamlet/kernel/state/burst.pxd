from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.cells cimport Scaled
from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport Arrival, Query
from hamlet.kernel.state.query_state cimport State

cdef extern from *:
    """
    typedef __int128 hamlet_total;
    """
    ctypedef long long Total "hamlet_total"  # 128 bits: a burst's values cannot overflow it

cdef struct Tally:          # what a burst's events have in one column
    int64_t present         # events with a value
    Total total             # of integers
    Scaled real             # of doubles
    int64_t least           # bits of the smallest value, where present > 0
    int64_t greatest

cdef void tally_rows(
    Tally* tally, bint floating, const Column* column, const int64_t* rows, int64_t events
) noexcept nogil
cdef void tally_values(Tally* tally, const int64_t* values, int64_t events) noexcept nogil
cdef void join_tally(Tally* tally, const Tally* more, bint floating) noexcept nogil
cdef void apply_burst(
    const Query* q, const Arrival* a, int width, bint loop, int64_t events, const Tally* tally,
    const uint64_t* extended, uint64_t* sum, uint64_t* spare,
) noexcept nogil
cdef void apply_limbs(
    const Query* q, State* s, const Arrival* a, bint loop, int64_t events, const Tally* tally, int64_t bits,
    int64_t number, int cohort, uint64_t* scratch,
) noexcept nogil
