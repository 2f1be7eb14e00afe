from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.query_state cimport State

cdef int open_state(Core* k, int query, int64_t key, int64_t time, State** state) noexcept nogil
cdef int turn_pane(Core* k, int query, State* s, int64_t key, int64_t time) noexcept nogil
cdef int close_windows(Core* k, int query, State* s, int64_t key, int64_t low) noexcept nogil
cdef int leave_state(Core* k, int query, int64_t key, int64_t time) noexcept nogil
cdef int64_t lowest(Core* k, const Query* q, int64_t time) noexcept nogil
cdef int append_sum(
    Core* k, const Query* q, int width, const uint64_t* sum, int query, const int* chosen, int64_t key, int64_t window
) noexcept nogil
