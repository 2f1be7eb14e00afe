from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table


cdef int log_event(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* bound, bint new_step, Py_ssize_t row
) noexcept nogil
cdef int close_windows(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil
cdef int deliver_reached(
    Core* k, int query, Partition* p, int64_t key, int64_t window, Py_ssize_t first, Py_ssize_t entries
) noexcept nogil
cdef bint is_log(const Table* t, const Partition* p, const int64_t* limits) noexcept nogil
