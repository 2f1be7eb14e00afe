from libc.stdint cimport int64_t

from hamlet.kernel.lanes.lanes cimport Band, Block
from hamlet.kernel.state.checkpoint cimport Bounds, Cursor
from hamlet.kernel.state.core cimport Core, Due
from hamlet.kernel.state.operator cimport Bytes

cdef void write_block(const Band* band, Block* block, Bytes* to) noexcept nogil
cdef int read_block(Core* k, Cursor* source, const Bounds* bounds, const Due* due) noexcept nogil
cdef void write_key_slots(const Core* k, Bytes* to) noexcept nogil
cdef bint read_key_slots(Core* k, Cursor* source, int64_t keys) noexcept nogil
cdef int hand_over_limbs(Core* k) noexcept nogil
