from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.lanes.lanes cimport Band, Block, Growth, LaneProgram, Word
from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.core cimport Core

cdef int has_limbs(Core* k, Band* band, Block* block, const Growth* growth) noexcept nogil
cdef int fold_limbs(
    Core* k, Band* band, Block* block, int chunk, const Word* map, int maps, Py_ssize_t apart
) noexcept nogil
cdef int64_t note_inputs(
    const LaneProgram* program, const Word* x, int64_t m, bint loop, Growth* growth
) noexcept nogil
cdef int reserve_sums(Core* k, Band* band, Py_ssize_t words) noexcept nogil
cdef void carry(const Band* band, Block* block) noexcept nogil
cdef void leave_limbs(const Band* band, Block* block) noexcept nogil
cdef void begin_in_limbs(const Band* band, Block* block, Word* cells) noexcept nogil
cdef int step_limbs(Core* k, Band* band, Block* block, int takes, int grown, uint64_t* found) noexcept nogil
cdef void find_in_limbs(
    const Band* band, Block* block, const LaneProgram* program, int64_t cohort, uint64_t* found
) noexcept nogil
cdef int deliver_limbs(
    Core* k, Band* band, Block* block, int64_t key, int64_t first, int64_t last
) noexcept nogil
cdef Word* limbs_of_cell(const Band* band, const Block* block, Word* cells, int lane, int slot) noexcept nogil
cdef void cell_of_limbs(
    const Query* q, const Band* band, const Block* block, int lane, const Word* limb, int used, uint64_t* cell,
    int width
) noexcept nogil
cdef bint has_trend(const Band* band, const Block* block, Word* cells, int lane, int slot) noexcept nogil
