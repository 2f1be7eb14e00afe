from libc.stdint cimport int64_t

from hamlet._kernel cimport Chosen, Core
from hamlet._lanes cimport Word

cdef bint make_held(Core* k) noexcept nogil
cdef void free_held(Core* k) noexcept nogil
cdef Word* hold(Core* k, Chosen* chosen, int64_t key, int64_t window) noexcept nogil
cdef int write_held(Core* k) noexcept nogil
