from libc.stdint cimport int64_t

from hamlet.kernel.lanes.lanes cimport Word
from hamlet.kernel.radix_sort cimport Event
from hamlet.kernel.state.core cimport ActiveQueries, Core

cdef void prepare_whole(Core* k) noexcept nogil
cdef bint tries_whole(Core* k) noexcept nogil
cdef int take_window(
    Core* k, int64_t key, const Event* event, Py_ssize_t n, const int64_t* orders, int64_t window, bint* done
) noexcept nogil
cdef void forget_chosen(Core* k) noexcept nogil
cdef double load_window(
    Core* k, const ActiveQueries* chosen, const Event* event, Py_ssize_t n, Word* x, bint* near
) noexcept nogil
