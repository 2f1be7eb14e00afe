"""Rows of closed windows, until they are taken: one buffer per query."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.state.core cimport Core, Rows, enlarged

cdef int reserve_row(Core* k, Rows* r, int words) noexcept nogil:
    """Room for one more row."""
    cdef Py_ssize_t capacity
    cdef void* moved
    if r.count == r.capacity:
        capacity = 2 * r.capacity + 64
        moved = enlarged(k, r.key, r.capacity, capacity, sizeof(int64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.key = <int64_t*> moved
        moved = enlarged(k, r.window, r.capacity, capacity, sizeof(int64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.window = <int64_t*> moved
        moved = enlarged(k, r.width, r.capacity, capacity, sizeof(int32_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.width = <int32_t*> moved
        r.capacity = capacity
    if r.words + words > r.words_capacity:
        capacity = 2 * r.words_capacity + words + 64
        moved = enlarged(k, r.word, r.words_capacity, capacity, sizeof(uint64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.word = <uint64_t*> moved
        r.words_capacity = capacity
    return NO_FAILURE


cdef int append_row(
    Core* k, Rows* r, int64_t key, int64_t window, int width, const uint64_t* cell, int words
) noexcept nogil:
    """A row behind the others. Returns a Failure."""
    cdef uint64_t* to = new_row(k, r, key, window, width, words)
    if to == NULL:
        return OUT_OF_MEMORY
    memcpy(to, cell, words * sizeof(uint64_t))
    return NO_FAILURE


cdef void free_rows(Rows* r) noexcept:
    free(r.key)
    free(r.window)
    free(r.width)
    free(r.word)
