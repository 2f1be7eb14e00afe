from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    typedef __int128 hamlet_wide;
    """
    ctypedef long long wide "hamlet_wide"  # 128 bits; never converted to Python but by wide_object

ctypedef union Cell:
    int64_t i
    uint64_t u
    double f

cdef enum:
    BOOL = 0
    INT = 1
    UINT = 2
    FLOAT = 3
    OBJECT = 4

cdef object wide_object(wide value)
cdef wide object_wide(object value) except? -1
cdef Cell unboxed(object value, int family) except *
cdef object boxed(Cell value, int family)


cdef inline double as_double(Cell value, int family) noexcept nogil:
    if family == FLOAT:
        return value.f
    if family == UINT:
        return <double>value.u
    return <double>value.i


cdef inline bint below(Cell left, Cell right, int family) noexcept nogil:
    if family == FLOAT:
        return left.f < right.f
    if family == UINT:
        return left.u < right.u
    return left.i < right.i


cdef inline wide as_wide(Cell value, int family) noexcept nogil:
    return <wide>value.u if family == UINT else <wide>value.i
