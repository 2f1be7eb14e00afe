"""Rows of closed windows, until they are taken: one buffer per query."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from hamlet._kernel cimport Core, Rows, take_own
from hamlet._tables cimport NO_FAILURE, OUT_OF_MEMORY


cdef int reserve_row(Core* k, Rows* r, int words) noexcept nogil:
    """Room for one more row."""
    cdef Py_ssize_t capacity
    cdef void* moved
    if r.count == r.capacity:
        capacity = 2 * r.capacity + 64
        if not take_own(k, (capacity - r.capacity) * (2 * sizeof(int64_t) + sizeof(int32_t))):
            return OUT_OF_MEMORY
        moved = realloc(r.key, capacity * sizeof(int64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.key = <int64_t*> moved
        moved = realloc(r.window, capacity * sizeof(int64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.window = <int64_t*> moved
        moved = realloc(r.width, capacity * sizeof(int32_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.width = <int32_t*> moved
        r.capacity = capacity
    if r.words + words > r.words_capacity:
        capacity = 2 * r.words_capacity + words + 64
        if not take_own(k, (capacity - r.words_capacity) * sizeof(uint64_t)):
            return OUT_OF_MEMORY
        moved = realloc(r.word, capacity * sizeof(uint64_t))
        if moved == NULL:
            return OUT_OF_MEMORY
        r.word = <uint64_t*> moved
        r.words_capacity = capacity
    return NO_FAILURE


cdef int append_row(
    Core* k, Rows* r, int64_t key, int64_t window, int width, const uint64_t* cell, int words
) noexcept nogil:
    """A row behind the others. Returns a Failure."""
    if reserve_row(k, r, words):
        return OUT_OF_MEMORY
    r.key[r.count] = key
    r.window[r.count] = window
    r.width[r.count] = width
    r.count += 1
    memcpy(r.word + r.words, cell, words * sizeof(uint64_t))
    r.words += words
    return NO_FAILURE


cdef void free_rows(Rows* r) noexcept:
    free(r.key)
    free(r.window)
    free(r.width)
    free(r.word)
