from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._cells cimport FLOAT, Cell, as_double, as_wide, below, wide
from hamlet.streams.evaluate._ordered cimport Ordered

cdef enum:
    COUNT = 0
    SUM = 1
    AVG = 2
    MIN = 3
    MAX = 4
    INTEGRAL = 5
    LAST = 6
    VAR = 7
    SD = 8
    COV = 9
    EXISTS = 10
    FORALL = 11
    PCTL = 12

cdef struct Pane:
    wide bound     # the latest time that this pane may hold, ns from the start
    wide total     # sum of integers; of Booleans how many are true
    wide first_at  # time of the first value (integral)
    wide last_at
    int64_t n      # values
    double a       # sum of floats; mean (var, sd, cov: of x); volume (integral)
    double b       # second moment (var, sd); mean of y (cov); first value (integral)
    double c       # co-moment (cov); last value (integral)
    Cell cell      # min, max, last

cdef int accept_rows(
    Pane* pane, int function, int family, const uint64_t* cells, const unsigned char* mask, Py_ssize_t low,
    Py_ssize_t high, const int64_t* times, wide origin, int64_t tick
) except -1
cdef int merge(Pane* into, Pane* other, int function, int family) except -1
cdef int outcome(Pane* pane, int function, int family, Cell* out) except -1
cdef int percentile_of(Ordered values, int percentile, int family, bint between, Cell* out) except -1


cdef inline int accept(Pane* pane, int function, int family, Cell value, object thing, wide now) except -1:
    """Take one value into a pane."""
    cdef double x, y, before
    pane.n += 1
    if function == COUNT:
        return 0
    if function == SUM or function == AVG:
        if family == FLOAT:
            pane.a += value.f
        else:
            pane.total += as_wide(value, family)
    elif function == MIN:
        if pane.n == 1 or below(value, pane.cell, family):
            pane.cell = value
    elif function == MAX:
        if pane.n == 1 or below(pane.cell, value, family):
            pane.cell = value
    elif function == LAST:
        pane.cell = value
    elif function == EXISTS or function == FORALL:
        pane.total += value.i
    elif function == INTEGRAL:
        x = as_double(value, family)
        if pane.n == 1:
            pane.b, pane.first_at = x, now
        else:
            pane.a += (pane.c + x) * (<double>(now - pane.last_at) / 1e9) / 2
        pane.c, pane.last_at = x, now
    elif function == VAR or function == SD:
        x = as_double(value, family)
        before = pane.a
        pane.a += (x - before) / pane.n
        pane.b += (x - before) * (x - pane.a)
    elif function == COV:
        x, y = thing
        before = pane.a
        pane.a += (x - before) / pane.n
        pane.b += (y - pane.b) / pane.n
        pane.c += (x - before) * (y - pane.b)
    return 0
