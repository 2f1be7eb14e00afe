from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.core cimport Chain, Core
from hamlet.kernel.state.query_state cimport State

cdef void find_chain(const Query* q, Chain* chain) except *
cdef uint64_t starts_in(const Query* q, const Chain* chain, const State* s, int64_t window) noexcept nogil
cdef int apply_steps(Core* k, int query) noexcept nogil
