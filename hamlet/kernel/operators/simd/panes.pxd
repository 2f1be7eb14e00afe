from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.lanes.lanes cimport Band, Block, LaneProgram, Word
from hamlet.kernel.state.core cimport Core

cdef void begin_pane(Core* k, const Band* band, Block* block) noexcept nogil
cdef const Word* folded_cells(const Band* band, const Block* block, int64_t cohort) noexcept nogil
cdef void end_map(const Band* band, Block* block) noexcept nogil
cdef int64_t first_apart(const Block* block) noexcept nogil
cdef Word* map_of(const Block* block, int64_t cohort) noexcept nogil
cdef void apply_step(
    Band* band, Block* block, const LaneProgram* program, int64_t events, uint64_t* found
) noexcept nogil
cdef bint another_map(const Band* band, Block* block) noexcept nogil
cdef void measure_plain(const Band* band, Block* block) noexcept nogil
cdef void leave_plain(const Band* band, Block* block) noexcept nogil
cdef Word* cells_of(const Band* band, const Block* block, int64_t cohort) noexcept nogil
cdef int place_of(const Block* block, int64_t cohort) noexcept nogil
cdef void list_cohorts(
    const Band* band, const Block* block, int64_t first, int64_t last, Word** cells
) noexcept nogil
