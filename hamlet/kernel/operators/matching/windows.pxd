from libc.stdint cimport int64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table

cdef int expire(Core* k, int query, Partition* p, int64_t key, int64_t time) noexcept nogil
cdef int schedule(Core* k, const Table* t, Partition* p, int64_t slot, int64_t now) noexcept nogil
cdef int advance_time(Core* k, int64_t time) noexcept nogil
cdef void expect_row(const Table* t, Partition* p) noexcept nogil
