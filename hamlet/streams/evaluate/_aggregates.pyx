"""Aggregates of values as panes: a pane takes values one by one, and panes merge.

The caller says function and family of the values with every call, and never another pair for the same pane.
"""

from libc.math cimport isnan, sqrt
from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._cells cimport BOOL, FLOAT, UINT, Cell, as_wide, below, wide
from hamlet.streams.evaluate._ordered cimport Ordered

from hamlet.streams.evaluate._cells import Fault


cdef int accept_rows(
    Pane* pane, int function, int family, const uint64_t* cells, const unsigned char* mask, Py_ssize_t low,
    Py_ssize_t high, const int64_t* times, wide origin, int64_t tick
) except -1:
    """Take the values of rows into a pane, in order; the first of them has a value (mask NULL: all have)."""
    cdef Py_ssize_t row
    cdef Cell cell
    cdef double total
    cdef wide whole = 0
    cdef const double* floats = <const double*>cells
    if mask is NULL and function == COUNT:
        pane.n += high - low
        return 0
    if mask is NULL and (function == SUM or function == AVG):
        pane.n += high - low
        if family == FLOAT:
            total = pane.a
            for row in range(low, high):
                total += floats[row]
            pane.a = total
        else:
            for row in range(low, high):
                cell.u = cells[row]
                whole += as_wide(cell, family)
            pane.total += whole
        return 0
    for row in range(low, high):
        if mask is NULL or mask[row]:
            cell.u = cells[row]
            accept(pane, function, family, cell, None, (<wide>times[row] - origin) * tick)
    return 0


cdef int merge(Pane* into, Pane* other, int function, int family) except -1:
    """Take a later pane into an earlier one."""
    cdef double x, y, share
    if other.n == 0:
        return 0
    if into.n == 0:
        into[0] = other[0]
        return 0
    if function == MIN:
        if below(other.cell, into.cell, family):
            into.cell = other.cell
    elif function == MAX:
        if below(into.cell, other.cell, family):
            into.cell = other.cell
    elif function == LAST:
        into.cell = other.cell
    elif function == INTEGRAL:
        into.a += other.a + (into.c + other.b) * (<double>(other.first_at - into.last_at) / 1e9) / 2
        into.c, into.last_at = other.c, other.last_at
    elif function == VAR or function == SD:
        x = other.a - into.a
        share = <double>into.n * <double>other.n / <double>(into.n + other.n)
        into.a += x * other.n / (into.n + other.n)
        into.b += other.b + x * x * share
    elif function == COV:
        x, y = other.a - into.a, other.b - into.b
        share = <double>into.n * <double>other.n / <double>(into.n + other.n)
        into.a += x * other.n / (into.n + other.n)
        into.b += y * other.n / (into.n + other.n)
        into.c += other.c + x * y * share
    elif function != COUNT and function != PCTL:
        into.a += other.a
        into.total += other.total
    into.n += other.n
    return 0


cdef int integer_outcome(wide total, int family, Cell* out) except -1:
    """An integer of 64 bits, or a fault."""
    if family == UINT or family == BOOL:
        if total < 0 or (total >> 64) != 0:
            raise Fault("the sum is beyond 64 bits")
        out.u = <uint64_t>total
    else:
        if total != <wide><int64_t>total:
            raise Fault("the sum is beyond 64 bits")
        out.i = <int64_t>total
    return 1


cdef int outcome(Pane* pane, int function, int family, Cell* out) except -1:
    """What an aggregate comes to; 0 where it has no value."""
    cdef wide total
    if function == COUNT:
        out.u = <uint64_t>pane.n
        return 1
    if function == SUM:
        if family != FLOAT:
            return integer_outcome(pane.total, family, out)
        out.f = pane.a
    elif function == EXISTS:
        out.i = pane.total > 0
        return 1
    elif function == FORALL:
        out.i = pane.total == pane.n
        return 1
    elif function == INTEGRAL:
        out.f = pane.a
    elif pane.n == 0:
        return 0
    elif function == AVG:
        if family != FLOAT:
            total = pane.total / pane.n
            return integer_outcome(total, family, out)
        out.f = pane.a / pane.n
    elif function == VAR:
        out.f = pane.b / pane.n
    elif function == SD:
        out.f = sqrt(pane.b / pane.n)
    elif function == COV:
        out.f = pane.c / pane.n
    else:
        out[0] = pane.cell
        return 1
    if isnan(out.f):
        raise Fault("the aggregate is not a number (NaN)")
    return 1


cdef int percentile_of(Ordered values, int percentile, int family, bint between, Cell* out) except -1:
    """The percentile of values.

    Of a window, k = n * percentile / 100 picks: whole, the mean of the k-th and the next value, else the ceil(k)-th.
    Of instances (`between`) it is interpolated at (n - 1) * percentile / 100.
    """
    cdef int64_t n = values.n
    cdef int64_t place = (n - 1 if between else n) * percentile
    cdef int64_t rest = place % 100
    cdef Cell low, high
    if n == 0:
        return 0
    place = place // 100
    if between and rest:
        low, high = values.at(place), values.at(place + 1)
        if family == FLOAT:
            out.f = low.f + (high.f - low.f) * (rest / 100.0)
        elif family == UINT:
            out.u = low.u + <uint64_t>((<wide>high.u - low.u) * rest / 100)
        else:
            out.i = low.i + <int64_t>((<wide>high.i - low.i) * rest / 100)
    elif between or rest or place == 0 or place >= n:
        out[0] = values.at(min(place, n - 1))
    else:
        low, high = values.at(place - 1), values.at(place)
        if family == FLOAT:
            out.f = (low.f + high.f) / 2
        elif family == UINT:
            out.u = <uint64_t>((as_wide(low, family) + as_wide(high, family)) / 2)
        else:
            out.i = <int64_t>((as_wide(low, family) + as_wide(high, family)) / 2)
    return 1
