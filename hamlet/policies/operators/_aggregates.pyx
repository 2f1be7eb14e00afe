"""Aggregates over periods, group by group: counts, sums, averages, least, greatest and median values.

Each period comes at its first time-point and goes behind its last. These comings and goings are sorted by group and
time-point; the state behind one time-point lasts until the next at which something changes, and equal results that
touch are one period.

Contract: the Python side gives contiguous arrays of equal lengths, and values for which nothing here overflows.
Nothing is checked again.
"""

from libc.math cimport isinf, ldexp
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

cdef extern from * nogil:
    """
    typedef __int128 hamlet_wide;
    """
    ctypedef long long wide "hamlet_wide"
    int ctz "__builtin_ctzll"(uint64_t word)
    int clz "__builtin_clzll"(uint64_t word)

cdef enum:
    LEVELS = 6  # of words of 64 bits: more values than memory holds

cdef enum Kind:
    COUNT, SUM, SUM_FLOAT, AVERAGE, AVERAGE_FLOAT, LEAST, GREATEST, MEDIAN, MEDIAN_FLOAT

KINDS = {
    "COUNT": COUNT, "SUM": SUM, "SUM_FLOAT": SUM_FLOAT, "AVERAGE": AVERAGE, "AVERAGE_FLOAT": AVERAGE_FLOAT,
    "LEAST": LEAST, "GREATEST": GREATEST, "MEDIAN": MEDIAN, "MEDIAN_FLOAT": MEDIAN_FLOAT,
}

# ----------------------------------------------------------------------------------------------------- places

cdef struct Places:
    # A set of places: a bit each, and above 64 of them a bit that says whether one of them is set.
    uint64_t* words[LEVELS]
    int levels


cdef int _open(Places* places, Py_ssize_t size) noexcept nogil:
    """An empty set of places below a number; -1 where there is no memory."""
    cdef Py_ssize_t many = size
    places.levels = 0
    while True:
        many = (many + 63) // 64
        places.words[places.levels] = <uint64_t*>calloc(many + 1, sizeof(uint64_t))
        if places.words[places.levels] == NULL:
            return -1
        places.levels += 1
        if many <= 1:
            return 0


cdef void _release(Places* places) noexcept nogil:
    cdef int level
    for level in range(LEVELS):
        free(places.words[level])


cdef inline void _set(Places* places, int64_t place) noexcept nogil:
    cdef int level
    for level in range(places.levels):
        places.words[level][place >> 6] |= <uint64_t>1 << (place & 63)
        place >>= 6


cdef inline void _clear(Places* places, int64_t place) noexcept nogil:
    cdef int level
    for level in range(places.levels):
        places.words[level][place >> 6] &= ~(<uint64_t>1 << (place & 63))
        if places.words[level][place >> 6]:
            return
        place >>= 6


cdef inline int64_t _first_below(Places* places, int level, int64_t place) noexcept nogil:
    """The first place that is set below a bit of a level."""
    while level:
        level -= 1
        place = place << 6 | ctz(places.words[level][place])
    return place


cdef inline int64_t _last_below(Places* places, int level, int64_t place) noexcept nogil:
    while level:
        level -= 1
        place = place << 6 | (63 - clz(places.words[level][place]))
    return place


cdef inline int64_t _next(Places* places, int64_t place) noexcept nogil:
    """The next place that is set; there is one."""
    cdef int level
    cdef uint64_t rest
    for level in range(places.levels):
        rest = places.words[level][place >> 6] & (~<uint64_t>1 << (place & 63))
        if rest:
            return _first_below(places, level, (place >> 6) << 6 | ctz(rest))
        place >>= 6
    return -1


cdef inline int64_t _previous(Places* places, int64_t place) noexcept nogil:
    """The place before that is set; there is one."""
    cdef int level
    cdef uint64_t rest
    for level in range(places.levels):
        rest = places.words[level][place >> 6] & ((<uint64_t>1 << (place & 63)) - 1)
        if rest:
            return _last_below(places, level, (place >> 6) << 6 | (63 - clz(rest)))
        place >>= 6
    return -1

# ----------------------------------------------------------------------------------------------------- results

cdef inline int64_t _code(double value) noexcept nogil:
    """The code of a float, as `hamlet.policies.relations.values.float_codes` has it; not NaN."""
    cdef int64_t code
    if value == 0:
        return 0
    memcpy(&code, &value, sizeof(code))
    return code


cdef inline double _float(int64_t code) noexcept nogil:
    cdef double value
    memcpy(&value, &code, sizeof(value))
    return value


cdef inline int64_t _middle(int64_t one, int64_t two, bint floats) noexcept nogil:
    """The code of the mean of two values."""
    cdef double sum
    if not floats:
        return _code(<double>(one + two) / 2)
    sum = _float(one) + _float(two)
    if isinf(sum):
        return _code(_float(one) / 2 + _float(two) / 2)
    return _code(sum / 2)


def swept(int kind, const int64_t[::1] ids, const int64_t[::1] first, const int64_t[::1] last,
          const int64_t[::1] order, const int64_t[::1] values, const int64_t[::1] slots, const int64_t[::1] high,
          int least, Py_ssize_t largest):
    """The result of an aggregation over periods, at all time-points at which its group has one.

    Parameters
    ----------
    kind : int
        Of `KINDS`.
    ids, first, last : int64 arrays of shape (rows,)
        The group of each row, and its first and last time-point.
    order : int64 array of shape (2 * rows,)
        Comings (the number of a row) and goings (the number of a row, and the number of rows), by group and time-point.
    values : int64 array of shape (rows,)
        Codes; of sums and averages of floats the low 64 bits of the floats as integers over a power of two.
    slots : int64 array
        For least, greatest and median values: each row's place among those of its group, by value. Else empty.
    high : int64 array
        The other bits of the floats of sums and averages. Else empty.
    least : int
        That power of two.
    largest : int
        Rows of the largest group.

    Returns
    -------
    four int64 arrays
        Rows of groups, codes of results, and first and last time-points.
    """
    import numpy as np  # brought in by the first columns

    cdef Py_ssize_t rows = ids.shape[0], events = 2 * rows, at, made = 0
    cdef int64_t row, group = -1, point, head = 0, count = 0, total = 0, code = 0, slot, middle = -1, shift
    cdef wide sum = 0, value
    cdef bint ordered = kind >= LEAST, coming, open = False
    cdef int failed = 0
    cdef Places places
    heads_array, codes_array = np.empty(events, np.int64), np.empty(events, np.int64)
    begins_array, ends_array = np.empty(events, np.int64), np.empty(events, np.int64)
    cdef int64_t[::1] heads = heads_array, codes = codes_array, begins = begins_array, ends = ends_array
    cdef int64_t[::1] row_at = np.empty(largest if ordered else 0, np.int64)  # of the group, by slot
    for at in range(LEVELS):
        places.words[at] = NULL
    places.levels = 0
    with nogil:
        if ordered:
            failed = _open(&places, largest)
        at = 0
        while at < events and not failed:
            row = order[at] if order[at] < rows else order[at] - rows
            point = first[row] if order[at] < rows else last[row] + 1
            if ids[row] != group:
                group, head, open = ids[row], row, False
                count, total, sum, middle = 0, 0, 0, -1
            while at < events:
                coming = order[at] < rows
                row = order[at] if coming else order[at] - rows
                if ids[row] != group or (first[row] if coming else last[row] + 1) != point:
                    break
                at += 1
                if not ordered:
                    count += 1 if coming else -1
                    if kind == SUM or kind == AVERAGE:
                        total += values[row] if coming else -values[row]
                    elif kind == SUM_FLOAT or kind == AVERAGE_FLOAT:
                        value = (<wide>high[row] << 64) + <uint64_t>values[row]
                        sum += value if coming else -value
                    continue
                slot = slots[row]
                if coming:
                    row_at[slot] = row
                    _set(&places, slot)
                    count += 1
                    if kind == LEAST:
                        middle = slot if middle < 0 or slot < middle else middle
                    elif kind == GREATEST:
                        middle = slot if slot > middle else middle
                    elif count == 1:
                        middle = slot
                    else:
                        # The place of the middle, (count - 1) // 2, moves by one at most.
                        shift = (count - 1) // 2 - (count - 2) // 2 - (slot < middle)
                        if shift > 0:
                            middle = _next(&places, middle)
                        elif shift < 0:
                            middle = _previous(&places, middle)
                else:
                    count -= 1
                    if count == 0:
                        middle = -1
                    elif kind == LEAST:
                        middle = _next(&places, slot) if slot == middle else middle
                    elif kind == GREATEST:
                        middle = _previous(&places, slot) if slot == middle else middle
                    elif slot == middle:
                        middle = _next(&places, slot) if count & 1 else _previous(&places, slot)
                    else:
                        shift = (count - 1) // 2 - count // 2 + (slot < middle)
                        _clear(&places, slot)
                        if shift > 0:
                            middle = _next(&places, middle)
                        elif shift < 0:
                            middle = _previous(&places, middle)
                    _clear(&places, slot)
            if open and count == 0:
                ends[made - 1] = point - 1
                open = False
            if count == 0:
                continue
            if kind == COUNT:
                code = count
            elif kind == SUM:
                code = total
            elif kind == AVERAGE:
                code = _code(<double>total / <double>count)
            elif kind == SUM_FLOAT:
                code = _code(ldexp(<double>sum, least))
            elif kind == AVERAGE_FLOAT:
                code = _code(ldexp(<double>sum, least) / <double>count)
            elif kind == LEAST or kind == GREATEST:
                code = values[row_at[middle]]
            else:
                row = row_at[middle]
                if count & 1:
                    code = values[row] if kind == MEDIAN_FLOAT else _code(<double>values[row])
                else:
                    code = _middle(values[row], values[row_at[_next(&places, middle)]], kind == MEDIAN_FLOAT)
            if open:
                if codes[made - 1] == code:
                    continue
                ends[made - 1] = point - 1
            heads[made], codes[made], begins[made] = head, code, point
            made += 1
            open = True
    _release(&places)
    if failed:
        raise MemoryError
    return heads_array[:made], codes_array[:made], begins_array[:made], ends_array[:made]
