from libc.stdint cimport int64_t

from hamlet.kernel.operators.matching.tables cimport Core, Dictionary, Partition, Table


cdef int make_room(Core* k, const Table* t, Partition* p, int place, Py_ssize_t more) noexcept nogil
cdef int number_value(Core* k, const Table* t, Partition* p, int place, int64_t value) noexcept nogil
cdef int64_t find_value(const Partition* p, int place, int64_t value) noexcept nogil
cdef void widen_values(Dictionary* d) noexcept nogil
