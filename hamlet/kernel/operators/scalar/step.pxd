from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.plan cimport Arrival, Entry, Source
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.query_state cimport State

cdef const Entry* entry_of(const Core* k, int kind, int query) noexcept nogil
cdef int64_t concerning(const Core* k, int query, const int64_t* rows, int64_t events) noexcept nogil
cdef int read_source(
    Core* k, int query, State* s, const Arrival* a, const Source* source, uint64_t* sum, int64_t row
) noexcept nogil
cdef int step_query(
    Core* k, int query, const Entry* only, int64_t key, int64_t time, const int64_t* rows, int events
) noexcept nogil
