from libc.stdint cimport int64_t

from hamlet.kernel.operators.matching.tables cimport Core, Dictionary, Partition, Table, ValueSet


cdef bint value_of(const Core* k, const ValueSet* s, Py_ssize_t row, int64_t* value) noexcept nogil
cdef int number_value(Core* k, const Table* t, Partition* p, int place, int64_t value) noexcept nogil
cdef int64_t find_value(const Partition* p, int place, int64_t value) noexcept nogil
cdef void widen_values(Dictionary* d) noexcept nogil
