from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.passes cimport Step, Tally
from hamlet.kernel.operators.matching.tables cimport Core, Log, Member, Table


cdef int64_t lay_blocks(const Table* t, const Member* m, Step* step, Py_ssize_t steps) noexcept nogil
cdef int count_within(Core* k, Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil
cdef int reach_within(
    Core* k, const Table* t, const Log* log, const uint64_t* record, Py_ssize_t first, Py_ssize_t entries
) noexcept nogil
