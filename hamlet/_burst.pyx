"""Bursts as closed forms: what m events of a Kleene sub-pattern add, in one step whatever m is.

An event bound to E, in a pattern where E may follow itself, turns T = S + x (what stands in E's state and what flows
into it) into 2T: it extends every trend of T, or does not. So m events add (2^m - 1) T trends, and with V the summed
attribute of T's trends and s the sum over the burst's own values, (2^m - 1) V + 2^(m-1) s T to the sums. The
coefficients m, s, and the number, least and greatest of the values do not depend on the query: a *graphlet* computes
them once, and each query applies them to its snapshot T. Where E may not follow itself, the factors are m and 1.

Source: HAMLET (SIGMOD'21) §3.2, Defs. 3.6-3.11, Eqs. 5-6; DESIGN §2, rungs 5 and 6.
"""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet._cells cimport (
    Scaled,
    extend_extremum,
    has_trends,
    limbs_add_shifted,
    limbs_negate,
    scaled_add,
    scaled_from_limbs,
    scaled_load,
    scaled_multiply,
    scaled_normal,
    scaled_product,
    scaled_shift,
    scaled_store,
)
from hamlet._expression cimport Column
from hamlet._tables cimport (
    COUNT,
    COUNT_SCALED,
    LEAST_DOUBLE,
    LEAST_INT,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Component,
    Query,
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
    """sum += trends * total * 2^shift for a total beyond 64 bits."""
    cdef int64_t high = <int64_t> (total >> 32), low = <int64_t> (<uint32_t> total)
    limbs_add_shifted(sum, words, trends, width, low, shift)
    limbs_add_shifted(sum, words, trends, width, high, shift + 32)


cdef void apply_burst(
    const Query* q, int width, int variable, bint loop, int64_t events, const Tally* tally,
    const uint64_t* extended, uint64_t* sum, uint64_t* spare,
) noexcept nogil:
    """Set `sum` to what a burst adds.

    `extended` is T, the cell of all trends that the burst's first event extends; `loop` says whether later ones extend
    what earlier ones made; `tally` is by event column; `spare` has room for a cell.
    """
    cdef int i, words, kind
    cdef int64_t shift = events - 1 if loop else 0, present
    cdef Component* c
    cdef uint64_t* target
    cdef const uint64_t* held
    cdef const Tally* values = NULL
    cdef Scaled found, factor
    cdef bint mine
    for i in range(q.components):
        c = &q.component[i]
        kind = c.kind
        words = c.words + c.wide * width
        target = sum + c.offset + c.slope * width
        held = extended + c.offset + c.slope * width
        mine = c.variable == variable
        values = &tally[c.column] if mine and c.column >= 0 else NULL
        present = events if values == NULL else values.present
        memset(target, 0, words * sizeof(uint64_t))
        if kind == COUNT or kind == OCCURRENCES or kind == SUM_INT:
            add_repeated(target, held, words, loop, events, spare)
            if mine and kind == OCCURRENCES:
                limbs_add_shifted(target, words, extended, width, present, shift)
            elif mine and kind == SUM_INT:
                add_total(target, words, extended, width, values.total, shift)
        elif kind == COUNT_SCALED or kind == OCCURRENCES_SCALED or kind == SUM_DOUBLE:
            found = repeated(scaled_load(held), loop, events)
            if mine and present:
                if kind != SUM_DOUBLE:
                    factor = scaled_normal(<double> present, 0)
                else:
                    factor = scaled_normal(<double> values.total, 0) if c.integer else values.real
                found = scaled_add(found, scaled_product(
                    scaled_shift(trends_of(q, width, extended), shift), factor
                ))
            scaled_store(target, found)
        elif kind == PRESENT:
            target[0] = 1 if held[0] or (mine and present and has_trends(q, width, extended)) else 0
        else:
            if held[0]:
                extend_extremum(kind, target, held[1])
            if mine and present and has_trends(q, width, extended):
                extend_extremum(
                    kind, target,
                    <uint64_t> (values.least if kind == LEAST_INT or kind == LEAST_DOUBLE else values.greatest),
                )
