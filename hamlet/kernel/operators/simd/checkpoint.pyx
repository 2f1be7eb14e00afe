"""The blocks of a band as bytes and back; `hamlet/kernel/state/checkpoint.pyx` says what is believed of a save."""

from libc.math cimport fabs, isfinite
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.string cimport memset

from hamlet.kernel.lanes.lanes cimport (
    LANES_LEAST_MANTISSA,
    LANES_MOST_MANTISSA,
    LANES_STEP,
    Band,
    Block,
    KeySlot,
    Shape,
    Word,
    lanes_measure,
    lanes_power,
)
from hamlet.kernel.operators.simd.blocks cimport hand_over, new_block, open_cohort
from hamlet.kernel.operators.simd.panes cimport cells_of, end_map, leave_plain, place_of
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.state.checkpoint cimport (
    DAMAGED,
    MOST_TICKS,
    WORD,
    Bounds,
    Cursor,
    put,
    put_word,
    take,
    take_word,
)
from hamlet.kernel.state.core cimport Core, Due
from hamlet.kernel.state.operator cimport Bytes


cdef void write_block(const Band* band, Block* block, Bytes* to) noexcept nogil:
    """Append a block, cohort after cohort and lane after lane, so that the machine's vectors do not matter."""
    cdef int64_t cohort
    cdef Py_ssize_t place
    cdef int lane
    cdef const Word* cells
    put_word(to, block != NULL)
    if block == NULL:
        return
    end_map(band, block)
    leave_plain(band, block)
    put_word(to, block.first)
    put_word(to, block.last)
    put_word(to, block.bits)
    put(to, &block.weight, WORD)
    for cohort in range(block.oldest, block.newest + 1):
        put_word(to, block.until[place_of(block, cohort)])
        cells = cells_of(band, block, cohort)
        for lane in range(band.queries):
            for place in range(band.shape.slots * band.shape.vectors):
                put(to, cells + place_in_block(band, lane, place), WORD)


cdef inline Py_ssize_t place_in_block(const Band* band, int lane, Py_ssize_t place) noexcept nogil:
    """Where in a window's cells a lane has its `place`-th word, slot after slot and vector after vector."""
    cdef int width = band.shape.width
    return (lane // width * band.shape.slots * band.shape.vectors + place) * width + lane % width


cdef int read_block(Core* k, Cursor* source, const Bounds* bounds, const Due* due) noexcept nogil:
    """Make a block of what `write_block` wrote, at a place of the calendar. Returns a Failure, or DAMAGED."""
    cdef int number = <int> (~due.slot % k.bands)
    cdef Band* band = &k.band[number]
    cdef KeySlot* key_slot = &band.key_slot[~due.slot // k.bands]
    cdef int64_t low = -(MOST_TICKS + min(band.within, MOST_TICKS)) // band.slide - 1, high = MOST_TICKS // band.slide
    cdef int64_t there, first, last, bits, until
    cdef double weight, counts, sums
    cdef Block* block
    cdef Word* cells
    cdef Py_ssize_t place, at
    cdef int lane
    if key_slot.scheduled or not take_word(source, 0, 1, &there):
        return DAMAGED
    key_slot.scheduled = True
    if not there:
        return NO_FAILURE
    if not (
        key_slot.until == INT64_MIN
        and take_word(source, low, high, &first)
        and take_word(source, first - 1, min(high, first + band.windows - 1), &last)
        and take_word(source, 0, band.most_bits, &bits)
        and take(source, &weight, WORD)
        and 0 <= weight <= lanes_power(band.most_bits - bits)
        and due.time <= first * band.slide + band.within
    ):
        return DAMAGED
    block = new_block(k, band)
    if block == NULL:
        return OUT_OF_MEMORY
    key_slot.block = block
    block.first, block.last = first, first - 1
    block.plain = False
    while block.last < last:
        if not (
            take_word(source, block.last + 1, last, &until)
            and band.queries * band.shape.slots * band.shape.vectors <= source.left // WORD
        ):
            return DAMAGED
        if open_cohort(k, band, block, until):
            return OUT_OF_MEMORY
        cells = cells_of(band, block, block.newest)
        memset(cells, 0, band.words * sizeof(Word))
        for lane in range(band.queries):
            for place in range(band.shape.slots * band.shape.vectors):
                at = place_in_block(band, lane, place)
                take(source, cells + at, WORD)
                if not is_number(&band.shape, place % band.shape.vectors, cells[at], bounds.exponent):
                    return DAMAGED
        counts = sums = 0
        lanes_measure(&band.shape, cells, &counts, &sums)
        if counts > lanes_power(bits) or sums > weight * lanes_power(bits) * (1 + 1e-9):
            return DAMAGED
    block.bits, block.weight = bits, weight
    return NO_FAILURE


cdef inline bint is_number(const Shape* shape, Py_ssize_t vector, Word x, int64_t exponent) noexcept nogil:
    """Whether a vector of a cell can hold a number: a count is not negative, a scaled double normal."""
    if vector < shape.whole:
        return vector > 0 or x.i >= 0
    if vector >= shape.planes:
        return x.i % LANES_STEP == 0 and 0 <= x.i <= exponent
    if vector >= shape.linear:
        return True  # every rank is one of a value
    if shape.vectors > shape.planes:
        return x.i == 0 or (LANES_LEAST_MANTISSA <= fabs(x.d) < LANES_MOST_MANTISSA and (vector > 0 or x.d > 0))
    return isfinite(x.d)


cdef void write_key_slots(const Core* k, Bytes* to) noexcept nogil:
    """Which keys of a band are held by states, and at least how long."""
    cdef int number
    cdef Py_ssize_t key
    cdef int64_t held
    cdef const KeySlot* key_slot
    for number in range(k.bands):
        key_slot = k.band[number].key_slot
        held = 0
        for key in range(k.keys):
            held += key_slot[key].until != INT64_MIN
        put_word(to, held)
        for key in range(k.keys):
            if key_slot[key].until != INT64_MIN:
                put_word(to, key)
                put_word(to, key_slot[key].until)


cdef bint read_key_slots(Core* k, Cursor* source, int64_t keys) noexcept nogil:
    cdef int number
    cdef int64_t held, key
    for number in range(k.bands):
        if not take_word(source, 0, keys, &held):
            return False
        while held:
            if not (
                take_word(source, 0, keys - 1, &key)
                and take_word(source, INT64_MIN + 1, INT64_MAX, &k.band[number].key_slot[key].until)
            ):
                return False
            held -= 1
    return True


cdef int hand_over_limbs(Core* k) noexcept nogil:
    """Let states hold what lies in limbs, which so is saved as their numbers are. Returns a Failure."""
    cdef const Block* block
    cdef int number
    cdef Py_ssize_t key
    for number in range(k.bands):
        for key in range(k.keys):
            block = k.band[number].key_slot[key].block
            if block != NULL and block.limbs and hand_over(k, number, key):
                return OUT_OF_MEMORY
    return NO_FAILURE
