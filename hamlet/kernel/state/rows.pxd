from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.state.core cimport Core, Rows

cdef extern from *:
    """
    #define hamlet_prefetch_to_write(place) __builtin_prefetch(place, 1)
    """
    void prefetch_to_write "hamlet_prefetch_to_write"(const void*) noexcept nogil

cdef int reserve_row(Core* k, Rows* r, int words) noexcept nogil
cdef int append_row(
    Core* k, Rows* r, int64_t key, int64_t window, int width, const uint64_t* cell, int words
) noexcept nogil
cdef void free_rows(Rows* r) noexcept


cdef inline uint64_t* new_row(Core* k, Rows* r, int64_t key, int64_t window, int width, int words) noexcept nogil:
    """Where the words of one more row belong; a null pointer where there is no memory."""
    cdef uint64_t* to
    if (r.count == r.capacity or r.words + words > r.words_capacity) and reserve_row(k, r, words):
        return NULL
    r.key[r.count] = key
    r.window[r.count] = window
    r.width[r.count] = width
    to = r.word + r.words
    r.count += 1
    r.words += words
    # rows of many queries come in turns: the next one of this query finds its place in the cache
    prefetch_to_write(to + words)
    prefetch_to_write(to + 2 * words)
    prefetch_to_write(r.key + r.count + 1)
    prefetch_to_write(r.window + r.count + 1)
    prefetch_to_write(r.width + r.count + 1)
    return to
