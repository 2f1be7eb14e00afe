"""Scratch memory of a kernel: the sums of the step under way; it grows, and what stands in it is soon forgotten."""

from libc.stdint cimport uint64_t

from hamlet.kernel.cells cimport words_of
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.state.core cimport Core, enlarged
from hamlet.kernel.state.query_state cimport State


cdef inline int reserve_words(Core* k, Py_ssize_t words) noexcept nogil:
    """Make room for so many words. Returns a Failure."""
    cdef uint64_t* scratch
    if words <= k.scratch_words:
        return NO_FAILURE
    scratch = <uint64_t*> enlarged(k, k.scratch, k.scratch_words, 2 * words, sizeof(uint64_t))
    if scratch == NULL:
        return OUT_OF_MEMORY
    k.scratch = scratch
    k.scratch_words = 2 * words
    return NO_FAILURE


cdef inline int reserve_scratch(Core* k, const Query* q, const State* s) noexcept nogil:
    """Make room for one cell per arrival and cohort, and for two more arrivals. Returns a Failure."""
    return reserve_words(k, <Py_ssize_t> (q.arrivals + 3) * s.cohorts * words_of(q, s.width))
