"""Rows in the order of small numbers."""

from libc.stdint cimport int32_t, int64_t

cdef struct Event:       # a row of the batch under way
    int64_t time
    int32_t row
    int32_t kind         # its class

cdef struct Slice:       # the events of one key, from the end of the slice before
    int32_t key
    int32_t end


cdef enum:
    MOST_ARRANGED = 4    # columns

cdef struct Portion:     # rows of a batch that are taken together
    const int32_t* number    # [end] the key, where a row is not left out
    const int32_t* rows      # [end] the row of each number, ascending; NULL where it is its place
    Py_ssize_t first
    Py_ssize_t end
    int64_t limit            # keys are below
    int32_t part             # rows are left out whose number is negative or does not give `part` modulo `parts`;
    int32_t parts            # the quotient is the key
    const int64_t* times     # by row
    const int32_t* classes   # by row
    const int64_t* column[MOST_ARRANGED]  # by row, whose values are wanted in the order of events; NULL for none


cdef class Area:
    cdef Py_ssize_t room
    cdef int64_t* own[MOST_ARRANGED]  # [room] memory for `value`
    cdef const int64_t* value[MOST_ARRANGED]  # values in the order of `event`; NULL where nobody asked
    cdef int32_t* place  # [room] key and window of each row, where both make the order
    cdef int64_t* row    # [room] chosen rows, their keys in the upper half; afterwards room for rows of one step
    cdef Event* event    # [room] by key, as they come
    cdef Slice* slice    # [room]

    cdef Py_ssize_t arrange(self, const Portion* p) noexcept nogil
    cdef Py_ssize_t arrange_windows(
        self, const Portion* p, int64_t within, const int32_t* place_of, const int32_t* key_at, bint* ordered
    ) noexcept nogil
    cdef bint reserve(self, int column) noexcept nogil
    cdef Py_ssize_t _choose(self, const Portion* p, bint* sorted) noexcept nogil
    cdef Py_ssize_t _count(self, const Portion* p) noexcept nogil
    cdef bint _sort(self, Py_ssize_t count, int64_t limit) noexcept nogil
    cdef Py_ssize_t _copy(self, const Portion* p, Py_ssize_t count) noexcept nogil


cdef inline bint tied(const Event* event, const int64_t* orders) noexcept nogil:
    """Whether an event is of one step with the event before it."""
    cdef const Event* before = event - 1
    return event.time == before.time and (orders == NULL or orders[event.row] == orders[before.row])


cdef inline int64_t time_of(const int64_t* times, const int32_t* rows, Py_ssize_t place) noexcept nogil:
    """The time of the row of a place, which is the place itself where there are no `rows`."""
    return times[place if rows == NULL else rows[place]]


cdef inline Py_ssize_t first_from(
    const int64_t* times, const int32_t* rows, Py_ssize_t begin, Py_ssize_t end, int64_t time
) noexcept nogil:
    """The first place of ascending times from `begin` on that is not before a time, else `end`."""
    cdef Py_ssize_t middle
    while begin < end:
        middle = (begin + end) // 2
        if time_of(times, rows, middle) < time:
            begin = middle + 1
        else:
            end = middle
    return begin


cdef Py_ssize_t end_of_windows(const Portion* p, Py_ssize_t events, int64_t within) noexcept nogil
cdef Area area_for(Py_ssize_t rows)
cdef int give_back(Area area) except -1
cdef Py_ssize_t order_rows(const int64_t* number, Py_ssize_t n, int64_t limit, int64_t* rows) noexcept nogil
