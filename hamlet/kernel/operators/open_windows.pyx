"""What stands in a state while its windows are open: read for chunks of a stream (`hamlet.parallel.time`).

A chunk is a linear map of a window's sums. Its columns are the sums themselves, read from
queries of which one sum was 1 when the chunk began.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport add_one, has_trends, words_of
from hamlet.kernel.lanes.lanes cimport Band, Block, Word
from hamlet.kernel.operators.simd.blocks cimport cell_of_lane, hand_over
from hamlet.kernel.operators.simd.panes cimport cells_of, end_map, place_of
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.state.core cimport Core
from hamlet.kernel.state.operator cimport unpacked
from hamlet.kernel.state.query_state cimport State, cell_of, cohort_at, start_alive
from hamlet.kernel.state.rows cimport append_row, new_row
from hamlet.kernel.state.scratch cimport reserve_scratch


cdef int export_windows(Core* k, int query, int place) noexcept nogil:
    """Append a row per key and open window: a cell that is not empty, or a start under a guard set that is dead.

    Starts follow the cells: place `cells` + i is the start under guard set i. Returns a Failure.
    """
    cdef int number = k.band_of[query]
    cdef Py_ssize_t key
    cdef const State* s
    for key in range(k.keys):
        if number >= 0 and k.band[number].key_slot[key].block != NULL and k.band[number].key_slot[key].block.limbs:
            if hand_over(k, number, key):
                return OUT_OF_MEMORY
        if number >= 0 and k.band[number].key_slot[key].block != NULL:
            if export_block(k, query, place, key, &k.band[number], k.band[number].key_slot[key].block):
                return OUT_OF_MEMORY
            continue
        if unpacked(k, query, key):
            return OUT_OF_MEMORY
        s = k.state[key * k.queries + query]
        if s != NULL and export_state(k, query, place, key, s):
            return OUT_OF_MEMORY
    return NO_FAILURE


cdef int export_block(
    Core* k, int query, int place, int64_t key, const Band* band, Block* block
) noexcept nogil:
    cdef const Query* q = &k.query[query]
    cdef int lane = k.lane_of[query], width = band.shape.width, vectors = band.shape.vectors, slot = place
    cdef Py_ssize_t at = <Py_ssize_t> (lane // width) * band.shape.slots * vectors * width + lane % width
    cdef uint64_t* row
    cdef const Word* sum
    cdef int64_t window, cohort = block.oldest
    if place >= q.cells:
        slot = band.start[lane * band.sets + place - q.cells]
    end_map(band, block)
    for window in range(block.first, block.last + 1):
        if block.until[place_of(block, cohort)] < window:
            cohort += 1
        sum = cells_of(band, block, cohort) + at + <Py_ssize_t> slot * vectors * width
        if (sum.i != 0) == (place >= q.cells):
            continue
        row = new_row(k, &k.rows[query], key, window, 1, words_of(q, 1))
        if row == NULL:
            return OUT_OF_MEMORY
        cell_of_lane(band, lane, sum, row)
    return NO_FAILURE


cdef int export_state(Core* k, int query, int place, int64_t key, const State* s) noexcept nogil:
    cdef const Query* q = &k.query[query]
    cdef int words = words_of(q, s.width)
    cdef const uint64_t* sum
    cdef int64_t window, number = s.first
    if reserve_scratch(k, q, s):
        return OUT_OF_MEMORY
    for window in range(s.lowest, s.until[cohort_at(s, s.last)] + 1 if s.first <= s.last else s.lowest):
        number += window > s.until[cohort_at(s, number)]
        if place >= q.cells:
            if start_alive(q, s, place - q.cells, number):
                continue
            memset(k.scratch, 0, words * sizeof(uint64_t))
            add_one(q, s.width, k.scratch, 0)
            sum = k.scratch
        else:
            sum = cell_of(q, s, cohort_at(s, number), place)
            if not has_trends(q, s.width, sum):
                continue
        if append_row(k, &k.rows[query], key, window, s.width, sum, words):
            return OUT_OF_MEMORY
    return NO_FAILURE
