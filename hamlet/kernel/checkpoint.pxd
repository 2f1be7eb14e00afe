from libc.stdint cimport int64_t, uint8_t

from hamlet.kernel.core cimport Core
from hamlet.kernel.operator cimport Bytes
from hamlet.kernel.operators.scalar.state cimport State
from hamlet.kernel.operators.simd.lanes cimport Band, Block
from hamlet.kernel.plan cimport Query


cdef enum:
    DAMAGED = 16             # beside the numbers of a Failure: these bytes are no state of this query

cdef struct Cursor:          # what is read
    const uint8_t* byte
    Py_ssize_t left

cdef struct Bounds:          # what the rest of a save says of a state
    int64_t step             # the last step of the kernel
    int64_t exponent         # of two, which no scaled double of so many events is beyond
    const int64_t* limits    # per event column the end of its values from 0 on (strings), negative: any value


cdef void put_word(Bytes* to, int64_t word) noexcept nogil
cdef bint take_word(Cursor* source, int64_t low, int64_t high, int64_t* word) noexcept nogil
cdef void put_windows(const State* s, Bytes* to) noexcept nogil
cdef void write_block(const Band* band, Block* block, Bytes* to) noexcept nogil
cdef void write_state(const Query* q, const State* s, Bytes* to) noexcept nogil
cdef int read_state(const Query* q, Cursor* source, const Bounds* bounds, State** found) noexcept nogil

cdef enum:
    MOST_COUNTERS = 20

cdef int counters_of(Core* k, int64_t** counter) noexcept nogil
cdef void write_states(Core* k, Bytes* to) noexcept nogil
cdef int read_states(Core* k, Cursor* source, Bounds* bounds, int64_t keys) noexcept nogil
