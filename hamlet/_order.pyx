"""Rows in the order of small numbers (keys of a batch; windows and ranks of result rows), stable.

A counting sort where the numbers are about as many as the rows, else a radix sort; nothing at all where the rows stand
in order. A batch's rows and counters stay in the cache, so its cost is a few nanoseconds per row.
"""

import numpy as np

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

ctypedef fused Code:
    int8_t
    int16_t
    int32_t

cdef enum:
    FEW = 24               # rows that are put in place one by one
    DIGIT = 11             # bits of a pass of the radix sort
    COUNTERS = 1 << DIGIT
    ROOM = 4096            # counters that are cheap whatever the number of rows


cdef Py_ssize_t order_rows(
    const int64_t* number, Py_ssize_t n, int64_t limit, int64_t part, int64_t parts, int64_t* rows
) noexcept nogil:
    """The rows whose number is not negative and gives `part` modulo `parts`, by number, equal ones as they come.

    Parameters
    ----------
    number : int64 array of shape (n,)
        Below `limit`.
    rows : int64 array of shape (n,)
        Is filled from the left.

    Returns
    -------
    int
        How many rows there are; -1 where memory is short.
    """
    cdef Py_ssize_t i, count = 0
    cdef int64_t last = -1, one
    cdef bint sorted = True
    for i in range(n):
        one = number[i]
        if one < 0 or (parts > 1 and one % parts != part):
            continue
        sorted = sorted and one >= last
        last = one
        rows[count] = i
        count += 1
    if sorted:
        return count
    if count <= FEW:
        insert_rows(number, count, rows)
        return count
    if limit <= 4 * count + ROOM:
        return count_rows(number, count, limit, rows)
    return radix_rows(number, count, limit, rows)


cdef void insert_rows(const int64_t* number, Py_ssize_t count, int64_t* rows) noexcept nogil:
    cdef Py_ssize_t i, place
    cdef int64_t row
    for i in range(1, count):
        row = rows[i]
        place = i
        while place > 0 and number[rows[place - 1]] > number[row]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row


cdef Py_ssize_t count_rows(const int64_t* number, Py_ssize_t count, int64_t limit, int64_t* rows) noexcept nogil:
    cdef int32_t* place = <int32_t*> calloc(limit + 1, sizeof(int32_t))
    cdef int64_t* given = <int64_t*> malloc(count * sizeof(int64_t))
    cdef Py_ssize_t i
    cdef int64_t one
    if place == NULL or given == NULL:
        free(place)
        free(given)
        return -1
    for i in range(count):
        given[i] = rows[i]
        place[number[rows[i]] + 1] += 1
    for i in range(limit):
        place[i + 1] += place[i]
    for i in range(count):
        one = number[given[i]]
        rows[place[one]] = given[i]
        place[one] += 1
    free(place)
    free(given)
    return count


cdef Py_ssize_t radix_rows(const int64_t* number, Py_ssize_t count, int64_t limit, int64_t* rows) noexcept nogil:
    cdef int64_t* other = <int64_t*> malloc(count * sizeof(int64_t))
    cdef int64_t* source = rows
    cdef int64_t* target = other
    cdef Py_ssize_t place[COUNTERS]
    cdef Py_ssize_t i, total, here
    cdef int shift = 0
    cdef uint64_t digit
    if other == NULL:
        return -1
    while shift < 63 and (limit - 1) >> shift:
        for i in range(COUNTERS):
            place[i] = 0
        for i in range(count):
            place[<uint64_t> number[source[i]] >> shift & (COUNTERS - 1)] += 1
        total = 0
        for i in range(COUNTERS):
            here = place[i]
            place[i] = total
            total += here
        for i in range(count):
            digit = <uint64_t> number[source[i]] >> shift & (COUNTERS - 1)
            target[place[digit]] = source[i]
            place[digit] += 1
        source, target = target, source
        shift += DIGIT
    if source != rows:
        for i in range(count):
            rows[i] = source[i]
    free(other)
    return count


def ordered(const int64_t[::1] numbers, int64_t limit):
    """The places of numbers in ascending order, equal ones as they come.

    Parameters
    ----------
    numbers : int64 array of shape (n,)
        From 0 to below `limit`; negative ones are left out.
    limit : int

    Returns
    -------
    int64 array of shape (m,), m <= n
    """
    cdef Py_ssize_t n = len(numbers), count = 0
    rows = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] row_view = rows
    if n:
        with nogil:
            count = order_rows(&numbers[0], n, limit, 0, 1, &row_view[0])
        if count < 0:
            raise MemoryError
    return rows if count == n else rows[:count]


def looked_up(const Code[::1] numbers, const int32_t[::1] table):
    """`table[number]` for each number, and the table's last element for negative ones.

    Parameters
    ----------
    numbers : int8, int16 or int32 array of shape (n,)
    table : int32 array of shape (m,), m >= 1

    Returns
    -------
    found : int32 array of shape (n,)
    count : int
        How many of them are not negative.
    """
    cdef Py_ssize_t n = len(numbers), i
    cdef uint32_t last = <uint32_t> (len(table) - 1)
    cdef int64_t without = 0
    cdef int32_t one
    found = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] view = found
    with nogil:
        for i in range(n):  # without a branch: numbers come in any order
            one = table[min(<uint32_t> <int32_t> numbers[i], last)]
            view[i] = one
            without += one >> 31
    return found, n + without


def ascending(const int64_t[::1] numbers):
    """Whether no number is less than the one before."""
    cdef Py_ssize_t n = len(numbers), i
    cdef bint less = False
    with nogil:
        for i in range(1, n):
            less |= numbers[i] < numbers[i - 1]
    return not less
