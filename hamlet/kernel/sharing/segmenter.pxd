"""A batch, cut into slices of one key and steps of one time."""

from libc.stdint cimport int32_t, int64_t

from hamlet.kernel.radix_sort cimport Area, Portion
from hamlet.kernel.run_length cimport KeyRuns
from hamlet.kernel.state.core cimport Core


cdef bint cut_key_runs(Core* k, KeyRuns found, Py_ssize_t n) noexcept nogil
cdef int process_key_runs(Core* k, KeyRuns found, int64_t until) noexcept nogil
cdef int process_slices(
    Core* k, Area area, Py_ssize_t slices, const int64_t* orders, int64_t until, bint whole
) noexcept nogil
cdef int process_portions(
    Core* k, Area area, const Portion* batch, const int32_t* place_of, const int32_t* key_at, const int64_t* orders,
    int64_t until,
) noexcept nogil
