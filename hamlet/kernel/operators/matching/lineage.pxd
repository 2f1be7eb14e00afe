from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Rows, Table


cdef int join_lineage(Core* k, Partition* p, uint64_t* target, uint64_t source) noexcept nogil
cdef int trace_event(
    Core* k, const Table* t, Partition* p, int variable, Py_ssize_t row, uint64_t* vertex
) noexcept nogil
cdef int tidy_lineage(Core* k, const Table* t, Partition* p) noexcept nogil
cdef int count_events(Core* k, const Table* t, Partition* p, Rows* r, uint64_t* value) noexcept nogil
cdef int close_set(Core* k, Rows* r, Py_ssize_t first) noexcept nogil
cdef void widen_records(const Table* t, Partition* p, int number, int place) noexcept nogil
cdef void free_lineage(Partition* p) noexcept nogil
cdef int reserve_vertex(Core* k, Partition* p) noexcept nogil
cdef int reserve_record(Core* k, const Table* t, Partition* p) noexcept nogil
cdef bint is_lineage(const Table* t, const Partition* p) noexcept nogil
