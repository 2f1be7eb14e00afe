"""Rows of closed windows as columns: components out of the kernel's words, and numbers of any size as doubles.

An integer lies as limbs where the kernel has left it: `size` words from `start` on, two's complement, the least limb
first. What is made of it here is what Python makes of the same integer, to the last digit.
"""

import numpy as np

from libc.math cimport INFINITY, frexp, isinf, isnan, ldexp, log2
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from hamlet.kernel.radix_sort cimport order_rows

cdef extern from *:
    int clzll "__builtin_clzll"(unsigned long long) noexcept nogil
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil

cdef enum:
    FEW = 24           # rows of a window that are put in place one by one
    SPARSE = 4         # times as many windows as rows
    ROOM = 4096        # windows that are few whatever the number of rows
    SPREAD = 64        # ranks for each row of a window that are looked through bit by bit
    BLOCK = 256        # rows that are read for all components while they are in the cache
    STEP = 512         # exponents of scaled doubles are multiples of it
    MOST_EXPONENT = 1 << 20  # beyond all that doubles have

cdef int64_t MOST = <int64_t> 1 << 62  # of numbers of groups

cdef double ONE_STEP = ldexp(1, STEP)

FORMS = {"integer": INTEGER, "pair": PAIR, "flag": FLAG, "extremum": EXTREMUM}

cdef struct Part:      # one component of every row
    int form
    int64_t offset     # in the row, plus slope words for each limb of width
    int64_t slope
    int64_t words
    int64_t wide
    int64_t* first
    int64_t* second
    uint8_t* there
    bint whole         # all integers fit 64 bits, all flags are set, all extrema are there


# --------------------------------------------------------------------------------------------------- order of rows


cdef struct SortScratch:        # what is needed to order the rows of one window
    int64_t* rank        # [most rows of a window]
    int64_t* row         # [most rows of a window]
    int64_t* place       # [limit] the row with each rank
    uint64_t* met        # [limit] bits of the ranks, all 0 between two windows


cdef Py_ssize_t order_window(
    const int64_t* number, const int64_t* ranks, int64_t limit, Py_ssize_t n, int64_t* rows, const SortScratch* sorting
) noexcept nogil:
    """Order the rows of one window by the rank of their number, stable. Returns n; -1 where memory is short."""
    cdef Py_ssize_t i, count = 0
    cdef int64_t word, rank, last = -1
    cdef uint64_t bits
    cdef bint sorted = True, twice = False
    for i in range(n):
        rank = ranks[number[rows[i]]]
        sorted = sorted and rank >= last
        last = rank
        sorting.rank[i] = rank
    if sorted:
        return n
    if n > FEW and limit <= SPREAD * n:
        for i in range(n):
            rank = sorting.rank[i]
            twice = twice or sorting.met[rank >> 6] >> (rank & 63) & 1
            sorting.met[rank >> 6] |= <uint64_t> 1 << (rank & 63)
            sorting.place[rank] = rows[i]
        for word in range((limit + 63) >> 6):
            bits = sorting.met[word]
            sorting.met[word] = 0
            while bits and not twice:
                rows[count] = sorting.place[64 * word + ctzll(bits)]
                count += 1
                bits &= bits - 1
        if not twice:
            return n
    if order_rows(sorting.rank, n, limit, sorting.row) < 0:
        return -1
    for i in range(n):
        sorting.rank[i] = rows[sorting.row[i]]
    for i in range(n):
        rows[i] = sorting.rank[i]
    return n


cdef void spread(
    const int64_t* window, Py_ssize_t n, int64_t low, int64_t span, bint sorted, int64_t* end, int64_t* rows
) noexcept nogil:
    """Put rows in the order of their windows, all from `low` on; those of window low + i end before `end[i + 1]`."""
    cdef Py_ssize_t i
    for i in range(n):
        end[window[i] - low + 1] += 1
    for i in range(span):
        end[i + 1] += end[i]
    if sorted:
        for i in range(n):
            rows[i] = i
        return
    for i in range(n):
        rows[end[window[i] - low]] = i
        end[window[i] - low] += 1
    for i in range(span, 0, -1):  # each has moved to where the next one began
        end[i] = end[i - 1]
    end[0] = 0


def by_window(
    const int64_t[::1] windows, const int64_t[::1] keys, const int64_t[::1] numbers, const int64_t[::1] ranks,
    int64_t limit
):
    """Rows in the order of their window, and in a window of the rank of their number, equal ones as they come.

    Parameters
    ----------
    windows : int64 array of shape (n,)
    keys : int64 array of shape (n,)
        Numbers of partitions.
    numbers : int64 array of shape (n,)
        Places in `ranks`.
    ranks : int64 array
    limit : int
        All ranks are below.

    Returns
    -------
    order : int64 array of shape (n,)
        Places of rows.
    taken : int32 array of shape (n,)
        The keys in this order.
    found : int64 array of shape (m,)
        The windows, ascending.
    counts : int64 array of shape (m,)
        How many rows each has.
    """
    cdef Py_ssize_t n = len(windows), i, row, done = 0, runs = 0, most = 0
    cdef int64_t low, high, last
    cdef bint sorted = True
    cdef SortScratch sorting
    order, taken = np.empty(n, np.int64), np.empty(n, np.int32)
    if n == 0:
        return order, taken, order, order
    cdef int64_t[::1] rows = order
    cdef int32_t[::1] taken_view = taken
    low = high = last = windows[0]
    with nogil:
        for i in range(n):
            low, high = min(low, windows[i]), max(high, windows[i])
            sorted = sorted and windows[i] >= last
            last = windows[i]
    if <uint64_t> high - <uint64_t> low > <uint64_t> (SPARSE * n + ROOM):  # a counter for each would take too long
        distinct, places = np.unique(windows, return_inverse=True)
        order, taken, found, counts = by_window(places, keys, numbers, ranks, limit)
        return order, taken, distinct[found], counts
    cdef int64_t[::1] end = np.zeros(high - low + 2, np.int64)
    with nogil:
        spread(&windows[0], n, low, high - low + 1, sorted, &end[0], &rows[0])
        for i in range(high - low + 1):
            runs += end[i + 1] > end[i]
            most = max(most, end[i + 1] - end[i])
    found, counts = np.empty(runs, np.int64), np.empty(runs, np.int64)
    cdef int64_t[::1] found_view = found, count_view = counts
    cdef int64_t[:, ::1] room = np.empty((2, most), np.int64)
    cdef int64_t seen = limit if limit <= SPREAD * most else 1
    cdef int64_t[::1] place = np.empty(seen, np.int64)
    cdef uint64_t[::1] met = np.zeros((seen + 63) >> 6, np.uint64)
    sorting.rank, sorting.row, sorting.place, sorting.met = &room[0, 0], &room[1, 0], &place[0], &met[0]
    runs = 0
    with nogil:
        for i in range(high - low + 1):
            most = end[i + 1] - end[i]
            if most == 0:
                continue
            found_view[runs], count_view[runs] = low + i, most
            runs += 1
            done = order_window(&numbers[0], &ranks[0], limit, most, &rows[end[i]], &sorting)
            if done < 0:
                break
            for row in range(end[i], end[i + 1]):
                taken_view[row] = <int32_t> keys[rows[row]]
    if done < 0:
        raise MemoryError
    return order, taken, found, counts


def in_groups(columns):
    """The order of rows by their columns, the first one first, equal ones as they come; and where groups begin.

    Parameters
    ----------
    columns : sequence of int64 arrays of shape (n,)
        The first has the windows.

    Returns
    -------
    order : int64 array of shape (n,)
        Places of rows.
    starts : int64 array of shape (groups,) or None
        The first place in `order` of each group: rows whose columns are equal. None where every row is a group.
    found : int64 array of shape (m,)
        The windows, ascending.
    counts : int64 array of shape (m,)
        How many groups each has.
    """
    cdef const int64_t[::1] column, windows = columns[0]
    cdef Py_ssize_t n = len(windows), i, done, groups = 0, runs = 0
    cdef int64_t low, high, size, limit = 1
    order, numbered, starts = np.empty(n, np.int64), np.zeros(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] rows = order, number = numbered, start = starts
    for each in columns if n else ():
        column = each
        low = high = column[0]
        with nogil:
            for i in range(n):
                low, high = min(low, column[i]), max(high, column[i])
        if <uint64_t> high - <uint64_t> low > <uint64_t> (SPARSE * n + ROOM):
            column = np.unique(each, return_inverse=True)[1]
            low, high = 0, n - 1
        size = high - low + 1
        if limit >= MOST // size:
            number = np.unique(np.asarray(number), return_inverse=True)[1]
            limit = n
        with nogil:
            for i in range(n):
                number[i] = number[i] * size + (column[i] - low)
        limit *= size
    with nogil:
        done = order_rows(&number[0], n, limit, &rows[0]) if n else 0
        for i in range(n):
            if i == 0 or number[rows[i]] != number[rows[i - 1]]:
                start[groups] = i
                groups += 1
                runs += i == 0 or windows[rows[i]] != windows[rows[i - 1]]
    if done < 0:
        raise MemoryError
    found, counts = np.empty(runs, np.int64), np.zeros(runs, np.int64)
    cdef int64_t[::1] found_view = found, count_view = counts
    runs = -1
    with nogil:
        for i in range(groups):
            if runs < 0 or windows[rows[start[i]]] != found_view[runs]:
                runs += 1
                found_view[runs] = windows[rows[start[i]]]
            count_view[runs] += 1
    return order, None if groups == n else starts[:groups], found, counts


# ------------------------------------------------------------------------------------------------- words to columns


def gathered(const uint64_t[::1] words, const int32_t[::1] widths, const int64_t[::1] order, layout):
    """The components of rows, in another order.

    Parameters
    ----------
    words : uint64 array
        The rows, one after the other.
    widths : int32 array of shape (rows,)
        Limbs of a count in each row.
    order : int64 array of shape (rows,)
        Places of rows.
    layout : sequence of (str, int, int)
        Per component its form (`FORMS`), and the words that it has: so many, plus so many for each limb of width.

    Returns
    -------
    list of tuple
        Per component: of an integer (int64 array, None), or (starts, sizes) of its limbs in `words`, int64 arrays,
        where some need more than 64 bits; of a pair (float64 array, int64 array); of a flag (bool array, whether all
        are set); of an extremum (int64 array, bool array or None where there always is one). Each of shape (rows,).
    """
    cdef Py_ssize_t n = len(order), begin, count, i
    cdef int parts = len(layout), number
    cdef bytearray part_bytes = bytearray((parts + 1) * sizeof(Part))
    cdef Part* part = <Part*> <char*> part_bytes
    cdef int64_t[::1] first, second, row_start
    cdef uint8_t[::1] there
    cdef int64_t start[BLOCK]
    cdef int64_t width[BLOCK]
    cdef int64_t offset = 0, slope = 0
    cdef bint even = True
    if n == 0:
        words, widths = np.zeros(1, np.uint64), np.zeros(1, np.int32)
    held = []
    for number, (form, fixed, wide) in enumerate(layout):
        one = two = flags = None
        if form != "flag":
            first = one = np.empty(n, np.int64)
            part[number].first = &first[0] if n else NULL
        if form == "pair":
            second = two = np.empty(n, np.int64)
            part[number].second = &second[0] if n else NULL
        if form == "flag" or form == "extremum":
            there = flags = np.empty(n, np.uint8)
            part[number].there = &there[0] if n else NULL
        held.append((one, two, flags))
        part[number].form = FORMS[form]
        part[number].offset, part[number].slope = offset, slope
        part[number].words, part[number].wide = fixed, wide
        part[number].whole = True
        offset += fixed
        slope += wide
    with nogil:
        for i in range(1, n):
            even = even and widths[i] == widths[0]
    row_start = np.empty(1 if even else n, np.int64)
    with nogil:
        if not even:
            row_start[0] = 0
            for i in range(1, n):
                row_start[i] = row_start[i - 1] + offset + slope * widths[i - 1]
        begin = 0
        while begin < n:
            count = min(BLOCK, n - begin)
            for i in range(count):
                width[i] = widths[0] if even else widths[order[begin + i]]
                start[i] = order[begin + i] * (offset + slope * width[0]) if even else row_start[order[begin + i]]
                prefetch(&words[0] + start[i])
                prefetch(&words[0] + start[i] + offset + slope * width[i] - 1)
            for number in range(parts):
                gather_part(&part[number], &words[0], start, width, begin, count)
            begin += count
    return [_gathered(&part[number], held[number], n, widths, order, row_start, even, offset, slope)
            for number in range(parts)]


cdef object _gathered(
    const Part* p, tuple arrays, Py_ssize_t n, const int32_t[::1] widths, const int64_t[::1] order,
    const int64_t[::1] row_start, bint even, int64_t fixed, int64_t wide
):
    """A component as `gathered` returns it."""
    cdef object first = arrays[0], second = arrays[1], there = arrays[2]
    cdef int64_t[::1] start, size
    cdef Py_ssize_t i
    cdef int64_t width
    if p.form == FLAG:
        return there.view(np.bool_), p.whole
    if p.form == PAIR:
        return first.view(np.float64), second
    if p.form == EXTREMUM:
        return first, None if p.whole else there.view(np.bool_)
    if p.whole:
        return first, None
    start, size = first, np.empty(n, np.int64)  # the low words are of no use
    for i in range(n):
        width = widths[order[i]]
        start[i] = order[i] * (fixed + wide * width) if even else row_start[order[i]]
        start[i] += p.offset + p.slope * width
        size[i] = p.words + p.wide * width
    return first, np.asarray(size)


cdef void gather_part(
    Part* p, const uint64_t* words, const int64_t* start, const int64_t* width, Py_ssize_t begin, Py_ssize_t count
) noexcept nogil:
    """A component of some rows."""
    cdef int form = p.form  # a local one: the compiler makes a loop for each form
    cdef Py_ssize_t i
    cdef int64_t limb, size
    cdef const uint64_t* word
    cdef int64_t* first = p.first + begin
    cdef int64_t* second = p.second + begin
    cdef uint8_t* there = p.there + begin
    cdef bint whole = p.whole
    words += p.offset
    for i in range(count):
        word = words + start[i] + p.slope * width[i]
        if form == INTEGER:
            size = p.words + p.wide * width[i]
            first[i] = <int64_t> word[0]
            for limb in range(1, size):
                whole = whole and word[limb] == <uint64_t> (<int64_t> word[0] >> 63)
        elif form == PAIR:
            first[i] = <int64_t> word[0]
            second[i] = <int64_t> word[1]
        else:
            there[i] = word[0] != 0
            whole = whole and there[i]
            if form == EXTREMUM:
                first[i] = <int64_t> word[1]
    p.whole = whole


# ------------------------------------------------------------------------------------------------ limbs to doubles


cdef double leading(const uint64_t* a, int64_t n, int64_t* exponent) noexcept nogil:
    """The number m in [2^63, 2^64], or 0, for which m * 2^exponent is the double nearest to |a|; ties go to even."""
    cdef bint negative = n > 0 and a[n - 1] >> 63
    cdef int64_t low = 0, top = n - 1
    cdef uint64_t x, below = 0
    cdef int zeros
    exponent[0] = 0
    while low < n and a[low] == 0:
        low += 1
    if low == n:
        return 0.0
    while top > low and magnitude(a, top, low, negative) == 0:
        top -= 1
    x = magnitude(a, top, low, negative)
    zeros = clzll(x)
    if top > low:
        below = magnitude(a, top - 1, low, negative)
    if zeros:
        x = x << zeros | below >> (64 - zeros)
        below <<= zeros
    if below or low < top - 1:  # whatever lies below decides ties, 11 bits further down than doubles reach
        x |= 1
    exponent[0] = 64 * top - zeros
    return <double> x


cdef inline uint64_t magnitude(const uint64_t* a, int64_t limb, int64_t low, bint negative) noexcept nogil:
    """A limb of |a|, where `low` is the lowest that is not zero."""
    return a[limb] if not negative else ~a[limb] + (limb == low)


cdef inline double doubled(const uint64_t* a, int64_t n) noexcept nogil:
    """The double nearest to an integer; infinite beyond their range."""
    cdef int64_t exponent
    cdef double m = leading(a, n, &exponent)
    m = ldexp(m, <int> min(exponent, MOST_EXPONENT))
    return -m if n > 0 and a[n - 1] >> 63 else m


def doubles_of(const uint64_t[::1] words, const int64_t[::1] starts, const int64_t[::1] sizes):
    """The nearest doubles of integers, infinite beyond their range; float64 array of shape (rows,)."""
    cdef Py_ssize_t n = len(starts), i
    found = np.empty(n, np.float64)
    cdef double[::1] view = found
    with nogil:
        for i in range(n):
            view[i] = doubled(&words[starts[i]], sizes[i])
    return found


def scaled_of(const uint64_t[::1] words, const int64_t[::1] starts, const int64_t[::1] sizes):
    """Integers of at least 0 as scaled doubles: mantissas and exponents, as `hamlet.planner.scaled.of_integer`."""
    cdef Py_ssize_t n = len(starts), i
    cdef int64_t exponent, size, bits, dropped, shift
    cdef int more
    cdef double x
    cdef const uint64_t* a
    mantissas, exponents = np.empty(n, np.float64), np.empty(n, np.int64)
    cdef double[::1] m = mantissas
    cdef int64_t[::1] e = exponents
    with nogil:
        for i in range(n):
            a, size = &words[starts[i]], sizes[i]
            while size > 0 and a[size - 1] == 0:
                size -= 1
            bits = 64 * size - clzll(a[size - 1]) if size else 0
            dropped = max(0, (bits - STEP) // STEP * STEP)
            x = frexp(leading(a + dropped // 64, sizes[i] - dropped // 64, &exponent), &more)
            exponent += more
            shift = (exponent + STEP // 2) // STEP * STEP if x else 0
            m[i], e[i] = ldexp(x, <int> (exponent - shift)), dropped + shift
    return mantissas, exponents


# ------------------------------------------------------------------------------------------------------- logarithms


def logarithms_of_limbs(const uint64_t[::1] words, const int64_t[::1] starts, const int64_t[::1] sizes):
    """Binary logarithms of integers, and which are above 0; float64 and bool arrays of shape (rows,)."""
    cdef Py_ssize_t n = len(starts), i
    cdef int64_t exponent, size
    cdef int more
    cdef double m, nearest
    cdef const uint64_t* a
    found, above = np.zeros(n, np.float64), np.zeros(n, np.uint8)
    cdef double[::1] view = found
    cdef uint8_t[::1] there = above
    with nogil:
        for i in range(n):
            a, size = &words[starts[i]], sizes[i]
            m = leading(a, size, &exponent)
            if m == 0 or a[size - 1] >> 63:
                continue
            there[i] = 1
            nearest = ldexp(m, <int> min(exponent, MOST_EXPONENT))
            view[i] = log2(nearest)
            if isinf(nearest):
                view[i] = log2(frexp(m, &more)) + <double> (exponent + more)
    return found, above.view(np.bool_)


def logarithms(const double[::1] mantissas, const int64_t[::1] exponents=None):
    """Binary logarithms of (scaled) doubles, and which are above 0 or no number.

    Parameters
    ----------
    mantissas : float64 array of shape (rows,)
    exponents : int64 array of shape (rows,) or None
        0 for all where it is None.

    Returns
    -------
    float64 and bool arrays of shape (rows,)
    """
    cdef Py_ssize_t n = len(mantissas), i
    cdef bint scaled = exponents is not None
    found, above = np.zeros(n, np.float64), np.zeros(n, np.uint8)
    cdef double[::1] view = found
    cdef uint8_t[::1] there = above
    with nogil:
        for i in range(n):
            if mantissas[i] > 0 or isnan(mantissas[i]):
                there[i] = 1
                view[i] = log2(mantissas[i]) + (exponents[i] if scaled else 0)
    return found, above.view(np.bool_)


# ---------------------------------------------------------------------------------------------------------- scaled


def presented(const double[::1] mantissas, const int64_t[::1] exponents):
    """Scaled doubles as doubles, infinite beyond their range.

    Returns
    -------
    found : float64 array of shape (rows,)
    beyond : int
        How many are infinite though their mantissa is not.
    """
    cdef Py_ssize_t n = len(mantissas), i, beyond = 0
    cdef int64_t exponent
    cdef double x
    found = np.empty(n, np.float64)
    cdef double[::1] view = found
    with nogil:
        for i in range(n):
            x = mantissas[i]
            exponent = exponents[i]
            if exponent:
                if exponent >= 4 * STEP and x != 0:  # `ldexp` takes longer; mantissas are normal
                    x *= INFINITY
                elif exponent == STEP:
                    x *= ONE_STEP
                else:
                    x = ldexp(x, <int> max(min(exponent, MOST_EXPONENT), -(MOST_EXPONENT)))
                beyond += x - x != 0 and mantissas[i] - mantissas[i] == 0
            view[i] = x
    return found, beyond


ctypedef fused Bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def placed(const Bits[::1] values, const int32_t[::1] places, Bits[::1] to):
    """Write the values at these places, all of which there are, to an array of the same length and type.

    numpy's `take` makes other numbers of the places first.
    """
    cdef Py_ssize_t n = len(places), i
    assert len(to) == n
    with nogil:
        for i in range(n):
            to[i] = values[places[i]]


def repeated(const int64_t[::1] values, const int64_t[::1] counts, int64_t[::1] to):
    """Write each value so many times, one after the other, to an array that has room for just so many."""
    cdef Py_ssize_t i, row = 0, end
    cdef int64_t value
    assert len(counts) == len(values)
    with nogil:
        for i in range(len(values)):
            value, end = values[i], min(row + counts[i], len(to))
            while row < end:
                to[row] = value
                row += 1
    assert row == len(to)
