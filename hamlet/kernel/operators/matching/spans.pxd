from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table

cdef void lay_slots(Table* t, object table, Interface owner) except *
cdef int step_spans(
    Core* k, int query, Partition* p, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil
cdef bint are_spans(const Table* t, const Partition* p) noexcept nogil
