"""Rows of closed windows as dicts, straight from the kernel's words: one loop, no array and no list between.

What is made of a component here is what `hamlet.output.components` makes of the same words, to the last digit.
"""

import cython
import numpy as np

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.math cimport isfinite, isinf, isnan, ldexp, log2
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from hamlet.kernel.cells cimport Scaled, place_in_cell, scaled_load, scaled_normal, words_in_cell, words_of
from hamlet.kernel.column_builder import by_window
from hamlet.kernel.plan cimport (
    COUNT,
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
    Component,
    Query,
)
from hamlet.kernel.state.core cimport Core, Rows

cdef extern from "Python.h":
    bint PyGC_Enable()
    bint PyGC_Disable()

cdef enum:
    FEW = 64               # rows of a query that are put in order by insertion
    MOST_EXPONENT = 1 << 20  # beyond all that doubles have

cdef enum Reading:         # of a result value
    ATTRIBUTE              # of the group
    PLAIN                  # a component
    PRESENT_ONLY           # a component, where another one says that there is one
    QUOTIENT               # of two components that are both scaled, or both integers
    LOGARITHM              # of a scaled component
    COMPUTED               # by a function of Python, of one component or two

READINGS = {
    "attribute": ATTRIBUTE, "plain": PLAIN, "present": PRESENT_ONLY, "quotient": QUOTIENT, "logarithm": LOGARITHM,
    "computed": COMPUTED,
}

cdef struct Item:
    int reading
    int first              # the component, or the place of the attribute in the key
    int second             # of the other component, -1 where there is none


@cython.final
cdef class Listing:
    """How the rows of a query become dicts: all that does not change from row to row.

    Parameters
    ----------
    part : int
        The query of the kernel.
    index : int
        Number of the query, as the rows are asked for.
    name : str
    names : sequence of str
        Of the RETURN items.
    items : sequence of (str, int, int, callable or None)
        Per item its reading (`READINGS`); the place of the attribute in the key, or of the component; that of the other
        component, or -1; and what computes it.
    within, slide : int
    present : callable or None
        Ticks as the clock shows them; None for the ticks themselves.
    beyond : callable
        A pair of mantissa and exponent beyond the range of doubles, as a number.
    """

    cdef readonly int part
    cdef readonly int index
    cdef int64_t within
    cdef int64_t slide
    cdef dict blank          # a row without values
    cdef list names
    cdef list functions
    cdef object present
    cdef object beyond
    cdef Item* item

    def __cinit__(self, int part, int index, name, names, items, int64_t within, int64_t slide, present, beyond):
        cdef int i
        self.part, self.index, self.within, self.slide = part, index, within, slide
        self.present, self.beyond = present, beyond
        self.names = list(names)
        self.blank = {"query": name, "window_start": None, "window_end": None, **dict.fromkeys(names)}
        self.functions = [function for *_, function in items]
        self.item = <Item*> malloc((len(items) + 1) * sizeof(Item))
        if self.item == NULL:
            raise MemoryError
        for i, (reading, first, second, _) in enumerate(items):
            self.item[i].reading, self.item[i].first, self.item[i].second = READINGS[reading], first, second

    def __dealloc__(self):
        free(self.item)


cdef list listed_rows(Core* k, list wanted, const int64_t[::1] ranks, int64_t limit, list values):
    """The rows that wait of some queries, as dicts in the order of windows and ranks.

    Parameters
    ----------
    wanted : list of Listing
    ranks, limit
        The rank of each key's group, and a number above all ranks.
    values : list of list
        For each attribute of the key its values by number of the key.

    Returns
    -------
    list of (int, list of dict)
        Number of the query, and its rows; queries without any are left out.
    """
    cdef Listing listing
    cdef int64_t* room = NULL
    cdef const Rows* r
    cdef const Query* q
    cdef Py_ssize_t most = 0, i, words
    cdef list found = []
    for listing in wanted:
        most = max(most, k.rows[listing.part].count)
    if most == 0:
        return found
    room = <int64_t*> malloc(2 * most * sizeof(int64_t))
    if room == NULL:
        raise MemoryError
    cdef bint collects = PyGC_Disable()  # dicts of numbers and texts are in no cycle: no need to look through them
    try:
        for listing in wanted:
            r, q = &k.rows[listing.part], &k.query[listing.part]
            if r.count == 0:
                continue
            if r.count <= FEW:
                order_few(r, &ranks[0], room)
            else:
                order_many(r, ranks, limit, room)
            words = 0
            for i in range(r.count):
                room[most + i] = words
                words += words_of(q, r.width[i])
            found.append((listing.index, dicts(q, r, listing, room, room + most, values)))
        return found
    finally:
        if collects:
            PyGC_Enable()
        free(room)


cdef void order_few(const Rows* r, const int64_t* ranks, int64_t* order) noexcept nogil:
    """Places of the rows by window and rank of their key."""
    cdef Py_ssize_t i, place
    cdef int64_t window, rank
    for i in range(r.count):
        window = r.window[i]
        rank = ranks[r.key[i]]
        place = i
        while place > 0 and (
            r.window[order[place - 1]] > window
            or (r.window[order[place - 1]] == window and ranks[r.key[order[place - 1]]] > rank)
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


cdef int order_many(const Rows* r, const int64_t[::1] ranks, int64_t limit, int64_t* order) except -1:
    """Order more rows than `order_few` takes, by window and rank."""
    cdef const int64_t[::1] view
    cdef Py_ssize_t i
    numbers = np.asarray(<int64_t[:r.count]> r.key)
    windows = np.asarray(<int64_t[:r.count]> r.window)
    view = by_window(windows, numbers, numbers, ranks, limit)[0]
    for i in range(r.count):
        order[i] = view[i]
    return 0


cdef list dicts(
    const Query* q, const Rows* r, Listing listing, const int64_t* order, const int64_t* start, list values
):
    """The rows of one query."""
    cdef list found = PyList_New(r.count)
    cdef dict blank = None, row
    cdef Py_ssize_t i, place
    cdef int item
    cdef int64_t tick
    for i in range(r.count):
        place = order[i]
        if i == 0 or r.window[place] != r.window[order[i - 1]]:
            tick = r.window[place] * listing.slide
            blank = listing.blank.copy()
            blank["window_start"] = tick if listing.present is None else listing.present(tick)
            tick += listing.within
            blank["window_end"] = tick if listing.present is None else listing.present(tick)
        row = blank.copy()
        for item in range(len(listing.names)):
            row[listing.names[item]] = (
                (<list> values[listing.item[item].first])[r.key[place]]
                if listing.item[item].reading == ATTRIBUTE
                else value(q, listing, item, r.width[place], r.word + start[place])
            )
        Py_INCREF(row)
        PyList_SET_ITEM(found, i, row)
    return found


cdef object value(const Query* q, Listing listing, int number, int width, const uint64_t* cell):
    """A result value other than an attribute of the group."""
    cdef const Item* item = &listing.item[number]
    cdef const Component* first = &q.component[item.first]
    cdef const uint64_t* word = cell + place_in_cell(first, width)
    cdef const uint64_t* other = NULL
    cdef Scaled total, by
    if item.second >= 0:
        other = cell + place_in_cell(&q.component[item.second], width)
    if item.reading == COMPUTED:
        function = listing.functions[number]
        if other == NULL:
            return function(component(first, width, word))
        return function(component(first, width, word), component(&q.component[item.second], width, other))
    if item.reading == PRESENT_ONLY and other[0] == 0:
        return None
    if not is_scaled(first):
        found = component(first, width, word)
        if item.reading == QUOTIENT:
            divisor = component(&q.component[item.second], width, other)
            return found / divisor if divisor else None  # the double nearest to the quotient
        return found
    total = scaled_load(word)
    if item.reading == LOGARITHM:
        return log2(total.m) + total.e if total.m > 0 or isnan(total.m) else None
    if item.reading == QUOTIENT:
        by = scaled_load(other)
        if by.m == 0:
            return None
        total = scaled_normal(total.m / by.m, total.e - by.e)
    return presented(total.m, total.e, listing.beyond)


cdef inline bint is_scaled(const Component* c) noexcept nogil:
    return c.kind == SUM_DOUBLE or c.kind == COUNT_SCALED or c.kind == OCCURRENCES_SCALED


cdef inline object presented(double m, int64_t e, object beyond):
    """`hamlet.planner.scaled.presented`."""
    cdef double nearest
    if e == 0:
        return m
    nearest = ldexp(m, <int> max(min(e, MOST_EXPONENT), -(MOST_EXPONENT)))
    return beyond((m, e)) if isinf(nearest) and isfinite(m) else nearest


cdef object component(const Component* c, int width, const uint64_t* word):
    """A component as a Python value."""
    cdef int words = words_in_cell(c, width)
    if c.kind == COUNT or c.kind == OCCURRENCES or c.kind == SUM_INT:
        if words == 1 or is_short(word, words):
            return <int64_t> word[0]
        return int.from_bytes((<const char*> word)[:words * sizeof(uint64_t)], "little", signed=True)
    if c.kind == PRESENT:
        return word[0] != 0
    if c.kind == LEAST_INT or c.kind == GREATEST_INT:
        return <int64_t> word[1] if word[0] else None
    if c.kind == LEAST_DOUBLE or c.kind == GREATEST_DOUBLE:
        return (<const double*> word)[1] if word[0] else None
    return (<const double*> word)[0], <int64_t> word[1]


cdef inline bint is_short(const uint64_t* word, int words) noexcept nogil:
    """Whether an integer fits its lowest limb."""
    cdef int i
    for i in range(1, words):
        if word[i] != <uint64_t> (<int64_t> word[0] >> 63):
            return False
    return True
