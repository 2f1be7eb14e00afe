from hamlet.kernel.state.core cimport Core, Graphlet
from hamlet.kernel.state.operator cimport Segment

cdef int find_members(Core* k, int _, Graphlet* g, int first, int end) noexcept nogil
cdef int take_burst(Core* k, const Segment* segment) noexcept nogil
cdef void list_member(Core* k, Graphlet* g, int place) noexcept nogil
