"""Nodes of two operands: arithmetic and comparisons.

Every operator is one function of cells (`float_of`, `integer_of`), which `num` calls for a row and `fill` in a loop
over rows. Where it finds no value it says so, and `num` words the error.
"""

from libc.math cimport fmod, isnan, pow
from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._cells cimport BOOL, FLOAT, INT, OBJECT, UINT, Cell, boxed, unboxed, wide, wide_object
from hamlet.streams.evaluate._columns cimport BLOCK, Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance

from hamlet.streams.evaluate._cells import Fault
from hamlet.streams.evaluate._texts import text_of

cdef enum:
    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    REM = 4
    POW = 5
    AND_BITS = 6
    OR_BITS = 7
    XOR_BITS = 8
    LEFT = 9
    RIGHT = 10
    LEAST = 11
    MOST = 12

SIGNS = ("+", "-", "*", "/", "%", "**", "&", "|", "^", "<<", ">>", "min", "max")

cdef class PairNode(Node):
    """Two operands; without a value where one of them has none."""

    def __init__(self, int family, int operator, Node left, Node right):
        self.family, self.operator, self.left, self.right = family, operator, left, right
        self.columnar = left.columnar and right.columnar
        self.celled = family in (BOOL, INT, UINT)

    cdef int both(self, Instance me, Cell* left, Cell* right) except -1:
        """The operands as cells; 0 where one has no value."""
        return self.left.num(me, left) and self.right.num(me, right)

    cdef int both_rows(
        self, Frame frame, Py_ssize_t low, int n, Cell* left, Cell* right, unsigned char* rows
    ) except -1:
        """The operands of rows."""
        return self.left.fill(frame, low, n, left, rows) and self.right.fill(frame, low, n, right, rows)


cdef inline double float_of(int op, double x, double y) noexcept nogil:
    """Arithmetic of floats; NaN where there is no result."""
    if op == ADD:
        return x + y
    if op == SUB:
        return x - y
    if op == MUL:
        return x * y
    if op == DIV:
        return x / y
    if op == REM:
        return fmod(x, y)
    if op == POW:
        return pow(x, y)
    if op == LEAST:
        return y if y < x else x
    return y if y > x else x


cdef inline bint float_rows(int op, int n, Cell* left, const Cell* right, const unsigned char* rows) noexcept nogil:
    """Arithmetic of rows, into the left operands; false where one has no result."""
    cdef int each
    cdef int wrong = 0
    for each in range(n):
        left[each].f = float_of(op, left[each].f, right[each].f)
        wrong |= rows[each] & <int>(left[each].f != left[each].f)
    return not wrong


cdef class FloatNode(PairNode):
    """Arithmetic of floats; the exponent of ``**`` may be an integer."""

    cdef double exponent(self, Cell right) noexcept:
        """The right operand of any type."""
        if self.right.family == FLOAT:
            return right.f
        return <double>right.i if self.right.family == INT else <double>right.u

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef double y
        if not self.both(me, &left, &right):
            return 0
        y = right.f if self.operator != POW else self.exponent(right)
        out.f = float_of(self.operator, left.f, y)
        if isnan(out.f):
            raise Fault(f"{text_of(left.f)} {SIGNS[self.operator]} {text_of(y)} is not a number (NaN)")
        return 1

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] right
        cdef int each
        if not self.both_rows(frame, low, n, out, right, rows):
            return 0
        if self.operator == ADD:  # each a loop of its own, so that it becomes vector instructions
            return float_rows(ADD, n, out, right, rows)
        if self.operator == SUB:
            return float_rows(SUB, n, out, right, rows)
        if self.operator == MUL:
            return float_rows(MUL, n, out, right, rows)
        if self.operator == DIV:
            return float_rows(DIV, n, out, right, rows)
        if self.operator == POW:
            for each in range(n):
                right[each].f = self.exponent(right[each])
        return float_rows(self.operator, n, out, right, rows)


cdef enum:
    FITS = 0
    BEYOND = 1   # 64 bits
    BY_ZERO = 2
    TOO_FAR = 3  # shifts


cdef inline int integer_of(int op, bint unsigned, Cell left, wide y, Cell* out) noexcept nogil:
    """Arithmetic of integers but ``**``."""
    cdef wide x = <wide>left.u if unsigned else <wide>left.i, value
    if op == ADD:
        value = x + y
    elif op == SUB:
        value = x - y
    elif op == MUL:
        if unsigned and x > 0 and y > (((<wide>1) << 64) - 1) / x:
            return BEYOND
        value = x * y
    elif op == DIV or op == REM:
        if y == 0:
            return BY_ZERO
        value = x / y if op == DIV else x % y
    elif op == AND_BITS:
        value = x & y
    elif op == OR_BITS:
        value = x | y
    elif op == XOR_BITS:
        value = x ^ y
    elif op == LEAST:
        value = y if y < x else x
    elif op == MOST:
        value = y if y > x else x
    elif y < 0 or y > 63:
        return TOO_FAR
    elif op == RIGHT:
        value = x >> y
    elif unsigned:
        value = <wide>(<uint64_t>(left.u << <int>y))
    else:
        value = <wide>(<int64_t>(<uint64_t>left.i << <int>y))
    if unsigned:
        out.u = <uint64_t>value
        return BEYOND if value < 0 or (value >> 64) != 0 else FITS
    out.i = <int64_t>value
    return FITS if value == <wide>out.i else BEYOND


cdef inline bint integer_rows(
    int op, bint unsigned, bint by_unsigned, int n, Cell* left, const Cell* right, const unsigned char* rows
) noexcept nogil:
    """Arithmetic of rows, into the left operands; false where one has no result."""
    cdef int each, wrong = 0
    cdef wide y
    for each in range(n):
        if rows[each]:
            y = <wide>right[each].u if by_unsigned else <wide>right[each].i
            wrong |= integer_of(op, unsigned, left[each], y, &left[each])
    return wrong == 0


cdef class IntegerNode(PairNode):
    """Arithmetic of integers, checked for 64 bits; the right side of shifts and ``**`` may be of the other sign."""

    def __init__(self, int family, int operator, Node left, Node right):
        PairNode.__init__(self, family, operator, left, right)
        self.columnar = self.columnar and operator != POW

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef wide y
        cdef int found
        if not self.both(me, &left, &right):
            return 0
        y = <wide>right.u if self.right.family == UINT else <wide>right.i
        if self.operator == POW:
            return self.power(left, y, out)
        found = integer_of(self.operator, self.family == UINT, left, y, out)
        if found == FITS:
            return 1
        shown, sign = boxed(left, self.family), SIGNS[self.operator]
        if found == BY_ZERO:
            raise Fault(f"{shown} {sign} 0 is an integer division by zero")
        if found == TOO_FAR:
            raise Fault(f"{shown} {sign} {wide_object(y)} shifts by more than 63 bits")
        kind = "UInt64" if self.family == UINT else "Int64"
        raise Fault(f"{shown} {sign} {boxed(right, self.family)} is beyond 64 bits ({kind})")

    cdef int power(self, Cell left, wide y, Cell* out) except -1:
        """A power of integers."""
        base = boxed(left, self.family)
        if y < 0:
            raise Fault(f"{base} ** {wide_object(y)} is no integer")
        if base not in (-1, 0, 1) and y > 64:
            raise Fault(f"{base} ** {wide_object(y)} is beyond 64 bits")
        value = base ** wide_object(y if y < 66 else 64 + y % 2)
        try:
            out[0] = unboxed(value, self.family)
        except OverflowError:
            raise Fault(f"{base} ** {wide_object(y)} is beyond 64 bits") from None
        return 1

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] right
        cdef bint unsigned = self.family == UINT, by_unsigned = self.right.family == UINT
        if not self.both_rows(frame, low, n, out, right, rows):
            return 0
        if self.operator == ADD:
            return integer_rows(ADD, unsigned, by_unsigned, n, out, right, rows)
        if self.operator == SUB:
            return integer_rows(SUB, unsigned, by_unsigned, n, out, right, rows)
        return integer_rows(self.operator, unsigned, by_unsigned, n, out, right, rows)


cdef enum:
    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


cdef inline bint compared(int op, int order) noexcept nogil:
    if op == EQ:
        return order == 0
    if op == NE:
        return order != 0
    if op == LT:
        return order < 0
    if op == LE:
        return order <= 0
    if op == GT:
        return order > 0
    return order >= 0


cdef inline int order_of(Cell left, Cell right, int family) noexcept nogil:
    """-1, 0 or 1."""
    if family == FLOAT:
        return (left.f > right.f) - (left.f < right.f)
    if family == UINT:
        return (left.u > right.u) - (left.u < right.u)
    return (left.i > right.i) - (left.i < right.i)


cdef class CompareNode(PairNode):
    """A comparison of two values of one type; whether texts are equal is seen by their codes."""

    cdef bint texts

    def __init__(self, int operator, Node left, Node right):
        PairNode.__init__(self, BOOL, operator, left, right)
        self.texts = left.family == OBJECT and left.coded and right.coded and operator <= NE
        self.columnar = self.columnar and (left.family != OBJECT or self.texts)

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef int order
        cdef object x, y
        if self.left.family == OBJECT and not self.texts:
            x = self.left.obj(me)
            y = self.right.obj(me) if x is not None else None
            if y is None:
                return 0
            order = 0 if x == y else 1
            if self.operator > NE and order:
                order = -1 if x < y else 1
        else:
            if not self.both(me, &left, &right):
                return 0
            order = order_of(left, right, self.left.family)
        out.i = compared(self.operator, order)
        return 1

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] right
        cdef int each, family = self.left.family, op = self.operator
        if not self.both_rows(frame, low, n, out, right, rows):
            return 0
        if family == FLOAT:
            for each in range(n):
                out[each].i = compared(op, order_of(out[each], right[each], FLOAT))
        elif family == UINT:
            for each in range(n):
                out[each].i = compared(op, order_of(out[each], right[each], UINT))
        else:
            for each in range(n):
                out[each].i = compared(op, order_of(out[each], right[each], INT))
        return 1
