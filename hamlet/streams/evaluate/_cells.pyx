"""Cells of 64 bits, times of 128 bits, and what goes wrong with them.

Contract
--------
**Time** is nanoseconds from the start in 128 bits, so that no span of 64-bit ticks overflows. **Values** of Bool, Int,
UInt and Float are cells of 64 bits; strings and tuples are Python objects.
"""

from libc.stdint cimport int64_t, uint64_t


class Fault(ArithmeticError):
    """What a computation ran into; the evaluator says in which stream and when."""


cdef object wide_object(wide value):
    """A wide number as a Python integer."""
    cdef int64_t high = <int64_t>(value >> 64)
    return (int(high) << 64) | int(<uint64_t>value)


cdef wide object_wide(object value) except? -1:
    """A Python integer of at most 127 bits as a wide number; OverflowError beyond."""
    cdef int64_t high = value >> 64
    cdef uint64_t low = value & 0xFFFFFFFFFFFFFFFF
    return ((<wide>high) << 64) | <wide>low


cdef Cell unboxed(object value, int family) except *:
    """A Python value as a cell."""
    cdef Cell cell
    if family == FLOAT:
        cell.f = value
    elif family == UINT:
        cell.u = value
    elif family == BOOL:
        cell.i = 1 if value else 0
    else:
        cell.i = value
    return cell


cdef object boxed(Cell value, int family):
    """A cell as a Python value."""
    if family == FLOAT:
        return value.f
    if family == UINT:
        return value.u
    if family == BOOL:
        return value.i != 0
    return value.i
