from libc.stdint cimport int64_t

from hamlet.kernel.core cimport Core, Graphlet, Member
from hamlet.kernel.operator cimport Run

cdef int find_member(Core* k, int query, Graphlet* g, int place) noexcept nogil
cdef int take_burst(Core* k, int64_t key, const Member* member, const Run* run) noexcept nogil
cdef void list_member(Core* k, Graphlet* g, int place) noexcept nogil
