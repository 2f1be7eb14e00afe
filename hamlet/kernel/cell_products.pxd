"""Products of cells: trends that are one of some and then one of others.

Counts multiply; (count, sum) is a dual number, so that a sum becomes count * sum' + sum * count'; of extrema the better
one stays where both counts are not zero.
"""

from libc.stdint cimport uint64_t

from hamlet.kernel.cells cimport (
    Scaled,
    extend_extremum,
    place_in_cell,
    scaled_add,
    scaled_from_limbs,
    scaled_load,
    scaled_product,
    scaled_store,
    words_in_cell,
)
from hamlet.kernel.plan cimport (
    COUNT,
    COUNT_SCALED,
    OCCURRENCES,
    OCCURRENCES_SCALED,
    PRESENT,
    SUM_DOUBLE,
    SUM_INT,
    Component,
    Query,
)

cdef extern from "limb_products.h" nogil:
    int limbs_used(const uint64_t* a, int n, uint64_t fill)
    void limbs_add_times(uint64_t* a, int n, const uint64_t* b, int m, const uint64_t* c, int l)
    void limbs_subtract(uint64_t* a, int n, const uint64_t* b, int m)
    void limbs_add_signed_times(uint64_t* a, int n, const uint64_t* b, int m, const uint64_t* c, int l)


cdef inline void add_product(
    const Query* q, uint64_t* to, int width, const uint64_t* a, int a_width, const uint64_t* b, int b_width
) noexcept nogil:
    """Add the trends that are one of `a` and then one of `b`, if there are any, to a cell that is wide enough.

    Trends are counted by the first component alone.
    """
    cdef int a_used = 0, b_used = 0, i, kind
    cdef const Component* c
    cdef const uint64_t* first
    cdef const uint64_t* second
    cdef uint64_t* target
    cdef Scaled a_count, b_count
    if q.exact:
        a_used, b_used = limbs_used(a, a_width, 0), limbs_used(b, b_width, 0)
        if a_used == 0 or b_used == 0:
            return
    else:
        a_count, b_count = scaled_load(a), scaled_load(b)
        if a_count.m == 0 or b_count.m == 0:
            return
    for i in range(q.components):
        c = &q.component[i]
        kind = c.kind
        target = to + place_in_cell(c, width)
        first, second = a + place_in_cell(c, a_width), b + place_in_cell(c, b_width)
        if kind == COUNT:
            limbs_add_times(target, width, a, a_used, b, b_used)
        elif kind == OCCURRENCES or kind == SUM_INT:
            limbs_add_signed_times(
                target, words_in_cell(c, width), a, a_used, second, words_in_cell(c, b_width)
            )
            limbs_add_signed_times(
                target, words_in_cell(c, width), b, b_used, first, words_in_cell(c, a_width)
            )
        elif kind == COUNT_SCALED:
            scaled_store(target, scaled_add(scaled_load(target), scaled_product(a_count, b_count)))
        elif kind == SUM_DOUBLE or kind == OCCURRENCES_SCALED:
            if q.exact:
                a_count, b_count = scaled_from_limbs(a, a_used), scaled_from_limbs(b, b_used)
            add_scaled(target, a_count, second)
            add_scaled(target, b_count, first)
        elif kind == PRESENT:
            target[0] |= first[0] | second[0]
        else:
            if first[0]:
                extend_extremum(kind, target, first[1])
            if second[0]:
                extend_extremum(kind, target, second[1])


cdef inline void add_scaled(uint64_t* to, Scaled count, const uint64_t* sum) noexcept nogil:
    """Add a sum of doubles times a count."""
    cdef Scaled value = scaled_load(sum)
    if value.m != 0:
        scaled_store(to, scaled_add(scaled_load(to), scaled_product(count, value)))
