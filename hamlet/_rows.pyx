"""Rows of closed windows, until they are taken: one buffer per query."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from hamlet._kernel cimport Core, Rows, enlarged
from hamlet._tables cimport (
    COUNT,
    GREATEST_DOUBLE,
    GREATEST_INT,
    LEAST_DOUBLE,
    LEAST_INT,
    NO_FAILURE,
    OCCURRENCES,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_INT,
    Component,
    Query,
)

cdef extern from *:
    """
    #define hamlet_prefetch_to_write(place) __builtin_prefetch(place, 1)
    """
    void prefetch_to_write "hamlet_prefetch_to_write"(const void*) noexcept nogil

cdef enum:
    FEW_WORDS = 8  # of a row that are copied without a call


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
    cdef uint64_t* to
    cdef int i
    if (r.count == r.capacity or r.words + words > r.words_capacity) and reserve_row(k, r, words):
        return OUT_OF_MEMORY
    r.key[r.count] = key
    r.window[r.count] = window
    r.width[r.count] = width
    r.count += 1
    to = r.word + r.words
    if words <= FEW_WORDS:
        for i in range(words):
            to[i] = cell[i]
    else:
        memcpy(to, cell, words * sizeof(uint64_t))
    r.words += words
    # rows of many queries come in turns: the next one of this query finds its place in the cache
    prefetch_to_write(to + words)
    prefetch_to_write(to + 2 * words)
    prefetch_to_write(r.key + r.count + 1)
    prefetch_to_write(r.window + r.count + 1)
    prefetch_to_write(r.width + r.count + 1)
    return NO_FAILURE


cdef void free_rows(Rows* r) noexcept:
    free(r.key)
    free(r.window)
    free(r.width)
    free(r.word)


cdef void order_by_window(const Rows* r, const int64_t* ranks, Py_ssize_t* order) noexcept nogil:
    """Places of the rows by window and rank of their key; for few rows."""
    cdef Py_ssize_t i, place
    cdef int64_t window, rank
    for i in range(r.count):
        window = r.window[i]
        rank = ranks[r.key[i]]
        place = i
        while place > 0 and (
            r.window[order[place - 1]] > window
            or (r.window[order[place - 1]] == window and ranks[r.key[order[place - 1]]] > rank)
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


cdef list listed_rows(Core* k, int query, const int64_t* ranks):
    """The rows of a query as Python values: keys, windows, and a list per component."""
    cdef const Query* q = &k.query[query]
    cdef const Rows* r = &k.rows[query]
    cdef Py_ssize_t* order = <Py_ssize_t*> malloc((r.count + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t* start = <Py_ssize_t*> malloc((r.count + 1) * sizeof(Py_ssize_t))
    cdef Py_ssize_t i, words = 0
    cdef int component
    if order == NULL or start == NULL:
        free(order)
        free(start)
        raise MemoryError
    try:
        order_by_window(r, ranks, order)
        for i in range(r.count):
            start[i] = words
            words += q.fixed + q.wide * r.width[i]
        found = [[r.key[order[i]] for i in range(r.count)], [r.window[order[i]] for i in range(r.count)]]
        for component in range(q.components):
            found.append([
                value_of(&q.component[component], r.width[order[i]], r.word + start[order[i]]) for i in range(r.count)
            ])
        return found
    finally:
        free(order)
        free(start)


cdef object value_of(const Component* c, int width, const uint64_t* cell):
    """A component as a Python value."""
    cdef const uint64_t* word = cell + c.offset + c.slope * width
    cdef int words = c.words + c.wide * width
    if c.kind == COUNT or c.kind == OCCURRENCES or c.kind == SUM_INT:
        if words == 1:
            return <int64_t> word[0]
        return int.from_bytes((<const char*> word)[:words * sizeof(uint64_t)], "little", signed=True)
    if c.kind == PRESENT:
        return word[0] != 0
    if c.kind == LEAST_INT or c.kind == GREATEST_INT:
        return <int64_t> word[1] if word[0] else None
    if c.kind == LEAST_DOUBLE or c.kind == GREATEST_DOUBLE:
        return (<const double*> word)[1] if word[0] else None
    return (<const double*> word)[0], <int64_t> word[1]
