from libc.stdint cimport int32_t, int64_t, uint64_t

from hamlet.kernel.lanes.lanes cimport Word
from hamlet.kernel.radix_sort cimport Event
from hamlet.kernel.state.core cimport ActiveQueries, Core

cdef enum:
    MOST_EVENTS = 256    # of a window, or that are mapped at once
    MANY_TIES = 4        # of so many events one is of the time of the one before: not to branch on it is faster

cdef struct Steps:       # what some events bring: those of one class and step, of which there may be several, as one
    uint64_t kinds       # of all
    Py_ssize_t count
    int32_t kind[MOST_EVENTS]
    int32_t step[MOST_EVENTS]
    Word times[MOST_EVENTS]     # how many events these are, a double
    double weight[MOST_EVENTS]  # the sum of the largest magnitude that each of them brings to a sum


cdef void prepare_whole(Core* k) noexcept nogil
cdef bint tries_whole(Core* k) noexcept nogil
cdef int take_window(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders, int64_t window, bint* done
) noexcept nogil
cdef void forget_chosen(Core* k) noexcept nogil
cdef double load_window(
    Core* k, const ActiveQueries* chosen, const Event* event, Py_ssize_t n, Word* x, bint* near
) noexcept nogil
cdef void merge_steps(
    const ActiveQueries* chosen, const Event* event, Py_ssize_t n, const int64_t* orders, bint merges, Word* x,
    Steps* steps
) noexcept nogil
