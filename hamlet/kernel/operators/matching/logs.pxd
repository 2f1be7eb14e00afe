from libc.stdint cimport int32_t, uint8_t

from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.tables cimport Core, Log, Member, Partition, Table


cdef dict lay_logs(Core* k, object tables, bint apart, Interface owner)
cdef void log_class(Core* k, object entries) except *
cdef int relay_log(
    Core* k, const Table* t, Partition* p, const Log* old, const int32_t* source, const uint8_t* widens
) noexcept nogil
