from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.plan cimport Source
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.query_state cimport State

cdef int scan_sums(Core* k, int query, State* s, const Source* source, uint64_t* sum, int64_t row) noexcept nogil
cdef int scan_starts(
    Core* k, int query, const State* s, const Source* source, int64_t row, int64_t* step, int64_t* begin
) noexcept nogil
