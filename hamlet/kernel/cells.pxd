"""Arithmetic on cells: the summed aggregates of a set of trends, laid out by a query's components.

Inlined into every module of the kernel; the numbers themselves are in ``bignum.h``.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport (
    COUNT_SCALED,
    GREATEST_DOUBLE,
    GREATEST_INT,
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
)

cdef extern from "bignum.h" nogil:
    ctypedef struct Scaled "hamlet_scaled":
        double m
        int64_t e
    ctypedef struct Scale "hamlet_scale":
        int64_t exponent
        int64_t mixed
    void limbs_add(uint64_t* a, const uint64_t* b, int n)
    void limbs_add_wider(uint64_t* a, int n, const uint64_t* b, int m)
    void limbs_increment(uint64_t* a, int n)
    void limbs_add_product(uint64_t* a, int n, const uint64_t* b, int m, int64_t x)
    bint limbs_nonzero(const uint64_t* a, int n)
    void limbs_add_shifted(uint64_t* a, int n, const uint64_t* b, int m, int64_t x, int64_t shift)
    void limbs_negate(uint64_t* a, int n)
    int64_t limbs_bits(const uint64_t* a, int n)
    Scaled scaled_add(Scaled a, Scaled b)
    Scaled scaled_shift(Scaled a, int64_t bits)
    Scaled scaled_normal(double m, int64_t e)
    Scaled scaled_product(Scaled a, Scaled b)
    Scaled scaled_multiply(Scaled a, double x)
    Scaled scaled_from_limbs(const uint64_t* a, int n)
    void scaled_weigh(const uint64_t* value, long stride, long start, long stop, double* weight, Scale* scale)
    Scaled scaled_add_selected(
        Scaled total, const uint64_t* value, long stride, const double* weight, Scale scale, const int64_t* mask, long n
    )
    void limbs_add_selected(
        uint64_t* total, int words, const uint64_t* value, long stride, const int64_t* mask, long n
    )
    void limbs_add_each(
        uint64_t* total, int words, const uint64_t* value, long stride, const int64_t* place, long places
    )
    long masks_to_places(const int64_t* mask, long n, int64_t* place)
    void scaled_add_each(uint64_t* a, const uint64_t* b, int n)
    Scaled scaled_load(const uint64_t* a)
    void scaled_store(uint64_t* a, Scaled x)

cdef extern from *:
    int clzll "__builtin_clzll"(unsigned long long) noexcept nogil


cdef inline int words_of(const Query* q, int width) noexcept nogil:
    return q.fixed + q.wide * width


cdef inline int64_t floor_divide(int64_t a, int64_t b) noexcept nogil:
    return a // b - (a % b < 0)


cdef inline int64_t lowest_window(int64_t time, int64_t within, int64_t slide) noexcept nogil:
    """The first window that has not ended by a time; where windows overlap or meet, it holds the time."""
    return floor_divide(time, slide) if within == slide else floor_divide(time - within, slide) + 1


cdef inline int64_t first_kept(int64_t time, int64_t within, int64_t slide) noexcept nogil:
    """The first window that stays open when those that end by a time are closed; at the end of time none does."""
    return INT64_MAX if time == INT64_MAX else lowest_window(time, within, slide)


cdef inline int64_t bit_length(int64_t value) noexcept nogil:
    return 0 if value <= 0 else 64 - clzll(<unsigned long long> value)


cdef inline void extend_extremum(int kind, uint64_t* extremum, uint64_t bits) noexcept nogil:
    cdef uint64_t held = extremum[1]
    if extremum[0]:
        if kind == LEAST_INT and <int64_t> bits >= <int64_t> held:
            return
        if kind == GREATEST_INT and <int64_t> bits <= <int64_t> held:
            return
        if kind == LEAST_DOUBLE and (<double*> &bits)[0] >= (<double*> &held)[0]:
            return
        if kind == GREATEST_DOUBLE and (<double*> &bits)[0] <= (<double*> &held)[0]:
            return
    extremum[0] = 1
    extremum[1] = bits


cdef inline int place_in_cell(const Component* c, int width) noexcept nogil:
    """The first word of a component in a cell."""
    return c.offset + c.slope * width


cdef inline int words_in_cell(const Component* c, int width) noexcept nogil:
    """How many words of a cell are a component's."""
    return c.words + c.wide * width


cdef inline void add_cell(const Query* q, int width, uint64_t* target, const uint64_t* source) noexcept nogil:
    """Add the aggregates of one set of trends to those of another."""
    add_components(q, width, target, source, 0, q.components)


cdef inline void add_components(
    const Query* q, int width, uint64_t* target, const uint64_t* source, int first, int end
) noexcept nogil:
    """Add some of them."""
    cdef int i = first, kind, offset
    cdef Component* c
    while i < end:
        c = &q.component[i]
        offset = place_in_cell(c, width)
        kind = c.kind
        i += max(1, c.run)
        if c.run:
            scaled_add_each(target + offset, source + offset, c.run - max(0, i - end))
        elif kind <= SUM_INT:
            limbs_add(target + offset, source + offset, words_in_cell(c, width))
        elif kind == PRESENT:
            target[offset] |= source[offset]
        elif source[offset]:
            extend_extremum(kind, target + offset, source[offset + 1])


cdef inline const uint64_t* trends_in(
    const Query* q, const Component* c, int width, const uint64_t* cell
) noexcept nogil:
    """The count of the trends that a component measures."""
    return cell + place_in_cell(&q.component[c.of], width)


cdef inline bint has_trends(const Query* q, int width, const uint64_t* cell) noexcept nogil:
    if q.exact:
        return limbs_nonzero(cell, width)
    return scaled_load(cell).m != 0


cdef inline void add_arriving(
    const Query* q, const Arrival* a, int width, uint64_t* target, const uint64_t* source
) noexcept nogil:
    """Add the aggregates of trends that an arrival takes part in."""
    cdef const uint64_t* count = source
    if a.components:  # what is read may have trends of other beginnings
        count += place_in_cell(&q.component[a.components], width)
        if q.exact:
            limbs_add(target, count, width)
        else:
            scaled_store(target, scaled_add(scaled_load(target), scaled_load(count)))
    add_components(q, width, target, source, a.components, a.components_end)


cdef inline void increment(const Query* q, int width, uint64_t* count) noexcept nogil:
    cdef Scaled one
    if q.exact:
        limbs_increment(count, width)
    else:
        one.m = 1.0
        one.e = 0
        scaled_store(count, scaled_add(scaled_load(count), one))


cdef inline void add_one(const Query* q, int width, uint64_t* cell, int beginning) noexcept nogil:
    """Add the empty trend, which is of a beginning, if there are any (not 0)."""
    increment(q, width, cell)
    if beginning:
        increment(q, width, cell + place_in_cell(&q.component[beginning], width))


cdef inline void bind_event(
    const Query* q, const Arrival* a, int width, uint64_t* cell, const Column* columns, Py_ssize_t row
) noexcept nogil:
    """Let an event, bound to a variable, take part in all trends of a cell."""
    cdef int i, kind
    cdef Component* c
    cdef uint64_t* target
    cdef const uint64_t* counted
    cdef const Column* column = NULL
    cdef double value
    cdef Scaled trends
    for i in range(a.components, a.components_end):
        c = &q.component[i]
        if c.variable != a.variable:
            continue
        counted = trends_in(q, c, width, cell)
        if c.column >= 0:
            column = &columns[c.column]
            if column.valid != NULL and not column.valid[row]:
                continue
        kind = c.kind
        target = cell + place_in_cell(c, width)
        if kind == OCCURRENCES:
            limbs_add_wider(target, c.words + width, counted, width)
        elif kind == SUM_INT:
            limbs_add_product(target, c.words + width, counted, width, column.data[row])
        elif kind == SUM_DOUBLE:
            value = <double> column.data[row] if c.integer else (<const double*> column.data)[row]
            trends = scaled_from_limbs(counted, width) if q.exact else scaled_load(counted)
            if trends.m != 0:  # the value may be infinite
                scaled_store(target, scaled_add(scaled_load(target), scaled_multiply(trends, value)))
        elif kind == OCCURRENCES_SCALED:
            scaled_store(target, scaled_add(scaled_load(target), scaled_load(counted)))
        elif has_trends(q, width, counted):
            if kind == PRESENT:
                target[0] = 1
            else:
                extend_extremum(kind, target, <uint64_t> column.data[row])
