from libc.stdint cimport int32_t, int64_t

from hamlet.kernel.radix_sort cimport Event
from hamlet.kernel.state.core cimport Core

cdef void prepare_maps(Core* k, const int32_t* rows, Py_ssize_t n) noexcept nogil
cdef int take_events(
    Core* k, int64_t key, const Event* event, const int64_t* orders, Py_ssize_t* events
) noexcept nogil
cdef void forget_maps(Core* k) noexcept nogil
