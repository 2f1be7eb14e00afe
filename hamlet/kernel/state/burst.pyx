"""Bursts as closed forms: what m events of a Kleene sub-pattern add, in one step whatever m is.

An event bound to E, in a pattern where E may follow itself, turns T = S + x (what stands in E's state and what flows
into it) into 2T: it extends every trend of T, or does not. So m events add (2^m - 1) T trends, and with V the summed
attribute of T's trends and s the sum over the burst's own values, (2^m - 1) V + 2^(m-1) s T to the sums. The
coefficients m, s, and the number, least and greatest of the values do not depend on the query: a *graphlet* computes
them once, and each query applies them to its snapshot T. Where E may not follow itself, the factors are m and 1.

Source: HAMLET (SIGMOD'21) §3.2, Defs. 3.6-3.11, Eqs. 5-6.
"""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport (
    Scaled,
    bit_length,
    extend_extremum,
    has_trends,
    limbs_add_shifted,
    limbs_bits,
    limbs_increment,
    limbs_negate,
    place_in_cell,
    scaled_add,
    scaled_from_limbs,
    scaled_load,
    scaled_multiply,
    scaled_normal,
    scaled_product,
    scaled_shift,
    scaled_store,
    trends_in,
    words_in_cell,
)
from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport (
    COUNT,
    COUNT_SCALED,
    FROM_CELL,
    LEAST_DOUBLE,
    LEAST_INT,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Arrival,
    Component,
    Query,
    Source,
)
from hamlet.kernel.state.query_state cimport State, cell_of, start_alive

cdef extern from "bignum_bursts.h" nogil:
    void limbs_add_small(uint64_t* a, int n, int64_t x)
    void limbs_sum(uint64_t* sum, const uint64_t* a, const uint64_t* b, int n)
    void limbs_repeat(uint64_t* a, int n, const uint64_t* b, int m, int64_t events)
    void limbs_raise(uint64_t* a, int n, const uint64_t* b, int m, int64_t x, int64_t shift)

cdef extern from "tallies.h" nogil:
    void hamlet_tally(
        const int64_t* value, int64_t n, int64_t* least, int64_t* greatest, int64_t* high, int64_t* low
    )

cdef extern from *:
    """
    #define HAMLET_PLAIN 1e60
    """
    const double PLAIN "HAMLET_PLAIN"  # a burst's sum of smaller doubles cannot overflow


cdef inline bint is_less(int64_t a, int64_t b, bint floating) noexcept nogil:
    return (<double*> &a)[0] < (<double*> &b)[0] if floating else a < b


cdef void tally_rows(
    Tally* tally, bint floating, const Column* column, const int64_t* rows, int64_t events
) noexcept nogil:
    """Count the values of some events in one column."""
    cdef int64_t bits, i
    cdef double value, plain = 0
    if column.valid == NULL and not floating and events:
        tally_integers(tally, column.data, rows, events)
        return
    for i in range(events):
        if column.valid != NULL and not column.valid[rows[i]]:
            continue
        bits = column.data[rows[i]]
        if floating:
            value = (<double*> &bits)[0]
            if fabs(value) < PLAIN:
                plain += value
            else:
                tally.real = scaled_add(tally.real, scaled_normal(value, 0))
        else:
            tally.total += bits
        if tally.present == 0 or is_less(bits, tally.least, floating):
            tally.least = bits
        if tally.present == 0 or is_less(tally.greatest, bits, floating):
            tally.greatest = bits
        tally.present += 1
    if plain != 0:
        tally.real = scaled_add(tally.real, scaled_normal(plain, 0))


cdef inline void tally_integers(Tally* tally, const int64_t* data, const int64_t* rows, int64_t events) noexcept nogil:
    """Add up a column of integers without NULL by rows; no branches, for values come in any order."""
    cdef int64_t value = data[rows[0]], i
    cdef int64_t least = value if tally.present == 0 else tally.least
    cdef int64_t greatest = value if tally.present == 0 else tally.greatest
    cdef Total total = tally.total
    for i in range(events):
        value = data[rows[i]]
        total += value
        least = min(least, value)
        greatest = max(greatest, value)
    tally.total = total
    tally.least = least
    tally.greatest = greatest
    tally.present += events


cdef inline uint64_t extreme_of(int kind, const Tally* tally) noexcept nogil:
    """The bits of the value that a burst brings to an extremum of this kind."""
    return <uint64_t> (tally.least if kind == LEAST_INT or kind == LEAST_DOUBLE else tally.greatest)


cdef void tally_values(Tally* tally, const int64_t* values, int64_t events) noexcept nogil:
    """Begin a tally with integers without NULL that lie side by side."""
    cdef int64_t high, low
    hamlet_tally(values, events, &tally.least, &tally.greatest, &high, &low)
    tally.total = (<Total> high << 32) + low
    tally.present = events


cdef void join_tally(Tally* tally, const Tally* more, bint floating) noexcept nogil:
    """Add the tally of other events of the burst in the same column."""
    if more.present == 0:
        return
    tally.total += more.total
    tally.real = scaled_add(tally.real, more.real)
    if tally.present == 0 or is_less(more.least, tally.least, floating):
        tally.least = more.least
    if tally.present == 0 or is_less(tally.greatest, more.greatest, floating):
        tally.greatest = more.greatest
    tally.present += more.present


cdef void add_repeated(
    uint64_t* sum, const uint64_t* limbs, int words, bint loop, int64_t events, uint64_t* spare
) noexcept nogil:
    """sum += (2^events - 1) * limbs, or events * limbs without a loop; two's complement of equal size."""
    cdef int64_t sign = 1
    memcpy(spare, limbs, words * sizeof(uint64_t))
    if <int64_t> spare[words - 1] < 0:
        limbs_negate(spare, words)
        sign = -1
    if loop:
        limbs_add_shifted(sum, words, spare, words, sign, events)
        limbs_add_shifted(sum, words, spare, words, -sign, 0)
    else:
        limbs_add_shifted(sum, words, spare, words, sign * events, 0)


cdef inline Scaled repeated(Scaled value, bint loop, int64_t events) noexcept nogil:
    """(2^events - 1) * value, or events * value without a loop."""
    cdef Scaled less = value
    if not isfinite(value.m):
        return value
    if not loop:
        return scaled_multiply(value, <double> events)
    less.m = -less.m
    return scaled_add(scaled_shift(value, events), less)


cdef inline Scaled trends_of(const Query* q, int width, const uint64_t* cell) noexcept nogil:
    return scaled_from_limbs(cell, width) if q.exact else scaled_load(cell)


cdef void add_total(
    uint64_t* sum, int words, const uint64_t* trends, int width, Total total, int64_t shift
) noexcept nogil:
    """sum += trends * total * 2^shift; the total may be beyond 64 bits."""
    cdef int64_t high = <int64_t> (total >> 32), low = <int64_t> (<uint32_t> total)
    if high == <int64_t> (<int32_t> high):
        limbs_raise(sum, words, trends, width, <int64_t> total, shift)
    else:
        limbs_raise(sum, words, trends, width, low, shift)
        limbs_raise(sum, words, trends, width, high, shift + 32)


cdef void apply_burst(
    const Query* q, const Arrival* a, int width, bint loop, int64_t events, const Tally* tally,
    const uint64_t* extended, uint64_t* sum, uint64_t* spare,
) noexcept nogil:
    """Set `sum` to what a burst adds, as far as it takes part in it.

    `extended` is T, the cell of all trends that the burst's first event extends; `loop` says whether later ones extend
    what earlier ones made; `tally` is by event column; `spare` has room for a cell.
    """
    cdef int i, words, kind
    cdef int64_t shift = events - 1 if loop else 0, present
    cdef Component* c
    cdef uint64_t* target
    cdef const uint64_t* held
    cdef const uint64_t* counted
    cdef const Tally* values = NULL
    cdef Scaled found, factor
    cdef bint mine
    for i in range(a.components_end):
        if 0 < i < a.components:
            continue
        c = &q.component[i]
        counted = trends_in(q, c, width, extended)
        kind = c.kind
        words = words_in_cell(c, width)
        target = sum + place_in_cell(c, width)
        held = extended + place_in_cell(c, width)
        mine = c.variable == a.variable
        values = &tally[c.column] if mine and c.column >= 0 else NULL
        present = events if values == NULL else values.present
        memset(target, 0, words * sizeof(uint64_t))
        if kind == COUNT or kind == OCCURRENCES or kind == SUM_INT:
            add_repeated(target, held, words, loop, events, spare)
            if mine and kind == OCCURRENCES:
                limbs_add_shifted(target, words, counted, width, present, shift)
            elif mine and kind == SUM_INT:
                add_total(target, words, counted, width, values.total, shift)
        elif kind == COUNT_SCALED or kind == OCCURRENCES_SCALED or kind == SUM_DOUBLE:
            found = repeated(scaled_load(held), loop, events)
            if mine and present:
                if kind != SUM_DOUBLE:
                    factor = scaled_normal(<double> present, 0)
                else:
                    factor = scaled_normal(<double> values.total, 0) if c.integer else values.real
                found = scaled_add(found, scaled_product(
                    scaled_shift(trends_of(q, width, counted), shift), factor
                ))
            scaled_store(target, found)
        elif kind == PRESENT:
            target[0] = 1 if held[0] or (mine and present and has_trends(q, width, counted)) else 0
        else:
            if held[0]:
                extend_extremum(kind, target, held[1])
            if mine and present and has_trends(q, width, counted):
                extend_extremum(kind, target, extreme_of(kind, values))


# ------------------------------------------------------------------------------------------------ limbs alone

cdef void apply_limbs(
    const Query* q, State* s, const Arrival* a, bint loop, int64_t events, const Tally* tally, int64_t bits,
    int64_t number, int cohort, uint64_t* scratch,
) noexcept nogil:
    """Let a burst take effect in a cohort of a query without doubles.

    The result is that of `apply_burst`, added to each cell of the arrival; but there is no sum between, and no limb
    is touched that is not in use. No source is a store. The state is wide enough for counts of `bits` bits,
    which they do not exceed; `scratch` has room for three cells.
    """
    cdef int limbs, words, i, target
    cdef int64_t shift = events - 1 if loop else 0, present
    cdef uint64_t* trends = scratch
    cdef uint64_t* more = scratch + s.width
    cdef uint64_t* to
    cdef const Component* c
    cdef const Tally* values
    cdef bint mine, held, cells = False
    for i in range(a.sources, a.sources_end):
        cells = cells or q.source[i].kind == FROM_CELL
    limbs = min(s.width, <int> ((s.bits + bit_length(q.most_sources)) // 64) + 1) if cells else 1
    if not sum_sources(q, s, a, 0, limbs, number, cohort, trends):
        return
    while limbs and trends[limbs - 1] == 0:
        limbs -= 1
    if limbs == 0:
        return
    for target in range(a.cells, a.cells_end):
        to = cell_of(q, s, cohort, q.member[target])
        if loop:  # one more limb, since the last one is a sign
            trends[limbs] = 0
            limbs_repeat(to, s.width, trends, min(limbs + 1, s.width), events)
        elif limbs == 1 and trends[0] == 1 and to[0] >> 62 == 0:  # events that begin trends, and no carry
            to[0] += <uint64_t> events
            s.bits = max(s.bits, bit_length(<int64_t> to[0]))
            continue
        else:
            limbs_raise(to, s.width, trends, limbs, events, 0)
        s.bits = max(s.bits, limbs_bits(to, <int> min(s.width, bits // 64 + 1)))
    for i in range(1, q.components):
        c = &q.component[i]
        mine = c.variable == a.variable
        values = &tally[c.column] if mine and c.column >= 0 else NULL
        present = 0 if not mine else events if values == NULL else values.present
        if c.wide == 0:
            if cells or present:
                join_extremes(q, s, a, i, cohort, values, present)
            continue
        if not (cells or present):
            continue
        words = limbs + c.words  # of a sum: its magnitude is below trends * 2^127
        held = cells and sum_sources(q, s, a, i, words, number, cohort, more)
        for target in range(a.cells, a.cells_end):
            to = cell_of(q, s, cohort, q.member[target]) + place_in_cell(c, s.width)
            if held and loop:
                limbs_repeat(to, s.width + c.words, more, words, events)
            elif held:
                limbs_raise(to, s.width + c.words, more, words, events, 0)
                if <int64_t> more[words - 1] < 0:
                    limbs_add_small(to + words, s.width - limbs, -events)
            if present and c.kind == SUM_INT:
                add_total(to, s.width + c.words, trends, limbs, values.total, shift)
            elif present:
                limbs_raise(to, s.width + c.words, trends, limbs, present, shift)


cdef inline bint sum_sources(
    const Query* q, const State* s, const Arrival* a, int component, int limbs, int64_t number, int cohort,
    uint64_t* sum,
) noexcept nogil:
    """Add up the first limbs of a component in all that an arrival reads; False where it reads nothing."""
    cdef const Component* c = &q.component[component]
    cdef const Source* source
    cdef const uint64_t* cell
    cdef const uint64_t* held = NULL
    cdef bint starts = False
    cdef int i
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        if source.kind != FROM_CELL:
            starts = starts or (component == 0 and start_alive(q, s, source.guards, number))
            continue
        cell = cell_of(q, s, cohort, source.place) + place_in_cell(c, s.width)
        if held == NULL:
            held = cell
        else:
            limbs_sum(sum, held, cell, limbs)
            held = sum
    if held == NULL:
        if starts:
            memset(sum, 0, limbs * sizeof(uint64_t))
    elif held != sum:
        memcpy(sum, held, limbs * sizeof(uint64_t))
    if starts:
        limbs_increment(sum, limbs)
    return starts or held != NULL


cdef void join_extremes(
    const Query* q, const State* s, const Arrival* a, int component, int cohort, const Tally* values, int64_t present
) noexcept nogil:
    """Let presence of values, or an extremum, in the cells of an arrival be that of what it reads and of a burst."""
    cdef const Component* c = &q.component[component]
    cdef int kind = c.kind, offset = place_in_cell(c, s.width), i, target
    cdef const Source* source
    cdef const uint64_t* cell
    cdef uint64_t* to
    for target in range(a.cells, a.cells_end):
        to = cell_of(q, s, cohort, q.member[target]) + offset
        if kind == PRESENT and to[0]:
            continue
        for i in range(a.sources, a.sources_end):
            source = &q.source[i]
            cell = cell_of(q, s, cohort, source.place) + offset
            if source.kind != FROM_CELL or not cell[0]:
                continue
            if kind == PRESENT:
                to[0] = 1
            else:
                extend_extremum(kind, to, cell[1])
        if present and kind == PRESENT:
            to[0] = 1
        elif present:
            extend_extremum(kind, to, extreme_of(kind, values))
