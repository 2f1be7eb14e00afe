from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.lanes.lanes cimport Band, Block, Growth, KeySlot, Word
from hamlet.kernel.state.core cimport Core

cdef bint in_lanes(Core* k, Band* band, int64_t key, int64_t time, int* failure) noexcept nogil
cdef int reach(Core* k, int number, int64_t key, int64_t time, Block** found) noexcept nogil
cdef int has_room(Core* k, Band* band, Block* block, const Growth* growth) noexcept nogil
cdef int leave_block(Core* k, int number, int64_t key, int64_t time) noexcept nogil
cdef void drop_block(Core* k, Block* block) noexcept nogil
cdef void measure(const Band* band, Block* block) noexcept nogil
cdef int hand_over(Core* k, int number, int64_t key) noexcept nogil
cdef Block* new_block(Core* k, Band* band) noexcept nogil
cdef int open_cohort(Core* k, Band* band, Block* block, int64_t window) noexcept nogil
cdef void free_block(Core* k, Band* band, KeySlot* key_slot) noexcept nogil
cdef Py_ssize_t bytes_in_block(const Core* k, int query, Py_ssize_t key) noexcept nogil
cdef int leave_bands(Core* k) noexcept
cdef void hold_key_slots(Core* k) noexcept
cdef void cell_of_lane(const Band* band, int lane, const Word* plane, uint64_t* cell) noexcept nogil
