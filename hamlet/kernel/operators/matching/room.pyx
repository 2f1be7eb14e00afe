"""Room for what the matching operator keeps: memory is counted before it is allocated.

A function that returns an int gives a Failure.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport realloc

from hamlet.kernel.operators.matching.tables cimport Core, Partition
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.memory.budget cimport take


cdef int claim(Core* k, Partition* p, Py_ssize_t bytes) noexcept nogil:
    if not take(k.account, bytes):
        return OUT_OF_MEMORY
    p.bytes += bytes
    return NO_FAILURE


cdef int reserve_words(Core* k, uint64_t** words, Py_ssize_t* capacity, Py_ssize_t needed) noexcept nogil:
    """Room in one of the operator's own arrays."""
    cdef uint64_t* moved
    if needed <= capacity[0]:
        return NO_FAILURE
    needed += needed
    if not take(k.account, (needed - capacity[0]) * sizeof(uint64_t)):
        return OUT_OF_MEMORY
    moved = <uint64_t*> realloc(words[0], needed * sizeof(uint64_t))
    if moved == NULL:
        take(k.account, (capacity[0] - needed) * <int64_t> sizeof(uint64_t))
        return OUT_OF_MEMORY
    k.own += (needed - capacity[0]) * sizeof(uint64_t)
    words[0] = moved
    capacity[0] = needed
    return NO_FAILURE
