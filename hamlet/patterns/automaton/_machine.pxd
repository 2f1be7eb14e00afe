"""Operations of conditions on a stack of values: whole numbers, doubles, and truth as whole numbers.

A text is a whole number, too: a code that equal texts share, or the address of a str that its row keeps alive.
"""

from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_Compare
from libc.math cimport fabs, isnan
from libc.stdint cimport int64_t

cdef enum:  # operations of conditions; what they take stands in `compile_native`
    PUSH_INT = 0
    PUSH_REAL = 1
    PUSH_NULL = 2
    READ_INT = 3
    READ_REAL = 4
    COUNT = 5
    ACCUMULATED_INT = 6
    ACCUMULATED_REAL = 7
    AVERAGE = 8
    TO_REAL = 9
    COMPARE_INT = 10
    COMPARE_REAL = 11
    AND = 12
    OR = 13
    NOT = 14
    ADD_INT = 15
    SUBTRACT_INT = 16
    MULTIPLY_INT = 17
    ADD_REAL = 18
    SUBTRACT_REAL = 19
    MULTIPLY_REAL = 20
    DIVIDE_REAL = 21
    IS_NULL = 22
    COALESCE = 23
    NEGATE_INT = 24
    NEGATE_REAL = 25
    DISTINCT_INT = 26
    DISTINCT_REAL = 27
    NUMBER = 28
    NARROW = 29
    COMPARE_TEXT = 30
    DISTINCT_TEXT = 31
    COMPARE_SCALED = 32
    ABSOLUTE_INT = 33
    ABSOLUTE_REAL = 34

cdef extern from *:
    """
    static inline int hamlet_compare_scaled(int64_t a, int64_t b, int64_t shift) {
        __int128 one = a, other = b;
        for (; shift > 0; shift--) one *= 10;
        for (; shift < 0; shift++) other *= 10;
        return (one > other) - (one < other);
    }
    """
    int hamlet_compare_scaled(int64_t a, int64_t b, int64_t shift) nogil
    bint __builtin_add_overflow(int64_t a, int64_t b, int64_t* c) nogil
    bint __builtin_sub_overflow(int64_t a, int64_t b, int64_t* c) nogil
    bint __builtin_mul_overflow(int64_t a, int64_t b, int64_t* c) nogil

cdef enum:  # of a value that is none: NULL, or that of a row which has not come; such a truth may have a bound
    KNOWN = 0
    NULL_VALUE = 1
    TO_COME = 2
    NEVER_TRUE = 3
    NEVER_FALSE = 4


cdef struct Value:
    int64_t whole
    double real
    int null


cdef inline int compare_real(double a, double b) noexcept nogil:
    """-1, 0 or 1; NaN is the greatest, and equal to itself, as the host has it."""
    if isnan(a):
        return 0 if isnan(b) else 1
    if isnan(b):
        return -1
    return (a > b) - (a < b)


cdef inline int compare_text(int64_t a, int64_t b) except -2:
    """-1, 0 or 1 for two addresses of str: by their code points, as the host has it."""
    return 0 if a == b else PyUnicode_Compare(<object><PyObject*>a, <object><PyObject*>b)


cdef inline int _low(Value* truth) noexcept nogil:
    """The least that a truth can be: -1 for false, 0 for NULL, 1 for true."""
    if truth.null == KNOWN:
        return 1 if truth.whole else -1
    return 0 if truth.null == NULL_VALUE or truth.null == NEVER_FALSE else -1


cdef inline int _high(Value* truth) noexcept nogil:
    """The most that a truth can be."""
    if truth.null == KNOWN:
        return 1 if truth.whole else -1
    return 0 if truth.null == NULL_VALUE or truth.null == NEVER_TRUE else 1


cdef inline void _bound(Value* truth, int low, int high) noexcept nogil:
    """Let a truth be anything from low to high."""
    truth.whole, truth.null = high > 0, KNOWN
    if low == high:
        truth.null = NULL_VALUE if low == 0 else KNOWN
    else:
        truth.null = TO_COME if high - low == 2 else NEVER_TRUE if high == 0 else NEVER_FALSE


cdef inline bint _holds(int order, int64_t operation) noexcept nogil:
    """Whether a comparison (=, <>, <, <=, >, >=) holds for an order."""
    if operation == 0:
        return order == 0
    if operation == 1:
        return order != 0
    if operation == 2:
        return order < 0
    if operation == 3:
        return order <= 0
    if operation == 4:
        return order > 0
    return order >= 0


cdef inline Value* apply(int64_t operation, int64_t argument, double real, Value* top) except NULL:
    """Carry out an operation on the values on top of a stack; gives the new top.

    Raises OverflowError where a whole number needs more bits than it has.
    """
    cdef int64_t order
    if operation == PUSH_INT:
        top += 1
        top.whole, top.null = argument, False
    elif operation == PUSH_REAL:
        top += 1
        top.real, top.null = real, False
    elif operation == PUSH_NULL:
        top += 1
        top.null = True
    elif operation == TO_REAL:
        top.real = <double>top.whole
    elif operation == NOT:
        _bound(top, -_high(top), -_low(top))
    elif operation == NEGATE_INT:
        if __builtin_sub_overflow(0, top.whole, &top.whole) and not top.null:
            raise OverflowError
    elif operation == NEGATE_REAL:
        top.real = -top.real
    elif operation == ABSOLUTE_INT:
        if top.whole < 0 and __builtin_sub_overflow(0, top.whole, &top.whole) and not top.null:
            raise OverflowError
    elif operation == ABSOLUTE_REAL:
        top.real = fabs(top.real)
    elif operation == IS_NULL:
        if top.null <= NULL_VALUE:
            top.whole, top.null = top.null, KNOWN
        else:
            top.null = TO_COME
    elif operation == NARROW:  # to a number of so many bits
        if not top.null and not -(<int64_t>1 << (argument - 1)) <= top.whole < <int64_t>1 << (argument - 1):
            raise OverflowError
    else:
        top -= 1
        if operation == COALESCE:
            if top.null == NULL_VALUE:
                top[0] = top[1]
            elif top.null:
                top.null = TO_COME
        elif operation == AND:
            _bound(top, min(_low(top), _low(top + 1)), min(_high(top), _high(top + 1)))
        elif operation == OR:
            _bound(top, max(_low(top), _low(top + 1)), max(_high(top), _high(top + 1)))
        elif operation == DISTINCT_INT or operation == DISTINCT_REAL or operation == DISTINCT_TEXT:
            if top.null > NULL_VALUE or top[1].null > NULL_VALUE:
                top.null = TO_COME
                return top
            if top.null or top[1].null:
                order = top.null != top[1].null
            elif operation == DISTINCT_TEXT:
                order = compare_text(top.whole, top[1].whole) != 0
            elif operation == DISTINCT_INT:
                order = top.whole != top[1].whole
            else:
                order = compare_real(top.real, top[1].real) != 0
            top.whole, top.null = order, False
        else:
            if top.null or top[1].null:
                top.null = NULL_VALUE if NULL_VALUE in (top.null, top[1].null) else TO_COME
                return top
            if operation == COMPARE_INT:
                order = (top.whole > top[1].whole) - (top.whole < top[1].whole)
                top.whole = _holds(<int>order, argument)
            elif operation == COMPARE_REAL:
                top.whole = _holds(compare_real(top.real, top[1].real), argument)
            elif operation == COMPARE_TEXT:
                top.whole = _holds(compare_text(top.whole, top[1].whole), argument)
            elif operation == COMPARE_SCALED:  # of two numbers with so many decimals more on the right, and 32
                order = hamlet_compare_scaled(top.whole, top[1].whole, (argument >> 3) - 32)
                top.whole = _holds(<int>order, argument & 7)
            elif operation == ADD_INT:
                if __builtin_add_overflow(top.whole, top[1].whole, &top.whole):
                    raise OverflowError
            elif operation == SUBTRACT_INT:
                if __builtin_sub_overflow(top.whole, top[1].whole, &top.whole):
                    raise OverflowError
            elif operation == MULTIPLY_INT:
                if __builtin_mul_overflow(top.whole, top[1].whole, &top.whole):
                    raise OverflowError
            elif operation == ADD_REAL:
                top.real += top[1].real
            elif operation == SUBTRACT_REAL:
                top.real -= top[1].real
            elif operation == MULTIPLY_REAL:
                top.real *= top[1].real
            elif operation == DIVIDE_REAL:
                top.real /= top[1].real
    return top
