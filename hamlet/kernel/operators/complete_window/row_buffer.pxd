from libc.stdint cimport int64_t

from hamlet.kernel.lanes.lanes cimport Word
from hamlet.kernel.state.core cimport ActiveQueries, Core

cdef bint make_held(Core* k) noexcept nogil
cdef void free_held(Core* k) noexcept nogil
cdef Word* hold(Core* k, ActiveQueries* chosen, int64_t key, int64_t window) noexcept nogil
cdef int write_held(Core* k) noexcept nogil
