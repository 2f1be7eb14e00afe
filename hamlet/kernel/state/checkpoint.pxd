from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.operator cimport Bytes
from hamlet.kernel.state.query_state cimport State

cdef extern from *:
    """
    #define HAMLET_MOST_TICKS ((int64_t)1 << 61)
    """
    const int64_t MOST_TICKS "HAMLET_MOST_TICKS"             # no event's time is beyond it

cdef enum:
    WORD = 8
    DAMAGED = 16             # beside the numbers of a Failure: these bytes are no state of this query

cdef struct Cursor:          # what is read
    const uint8_t* byte
    Py_ssize_t left

cdef struct Bounds:          # what the rest of a save says of a state
    int64_t step             # the last step of the kernel
    int64_t exponent         # of two, which no scaled double of so many events is beyond
    const int64_t* limits    # per event column the end of its values from 0 on (strings), negative: any value


cdef inline void put(Bytes* to, const void* source, Py_ssize_t size) noexcept nogil:
    if to.byte != NULL and size:
        memcpy(to.byte + to.count, source, size)
    to.count += size


cdef inline bint take(Cursor* source, void* target, Py_ssize_t size) noexcept nogil:
    if size > source.left:
        return False
    memcpy(target, source.byte, size)
    source.byte += size
    source.left -= size
    return True


cdef void put_word(Bytes* to, int64_t word) noexcept nogil
cdef bint take_word(Cursor* source, int64_t low, int64_t high, int64_t* word) noexcept nogil
cdef void write_state(const Query* q, const State* s, Bytes* to) noexcept nogil
cdef int read_state(const Query* q, Cursor* source, const Bounds* bounds, State** found) noexcept nogil
