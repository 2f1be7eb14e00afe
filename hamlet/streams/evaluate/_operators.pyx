"""Nodes that choose, and functions and conversions of numbers.

What can fail is one function of a cell (`apply`), which `num` calls for a row and `fill` for each of a block; where it
finds no value it says so, and `num` words the error.
"""

from libc.math cimport acos, asin, atan, cos, exp, fabs, isinf, isnan, log, pow, sin, sqrt, tan, trunc
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from hamlet.streams.evaluate._arithmetic cimport PairNode
from hamlet.streams.evaluate._cells cimport BOOL, FLOAT, INT, UINT, Cell, boxed
from hamlet.streams.evaluate._columns cimport BLOCK, Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance

from hamlet.streams.evaluate._cells import Fault
from hamlet.streams.evaluate._texts import text_of

cdef int64_t SMALLEST = -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1


cdef class LazyNode(PairNode):
    """``&&`` and ``||``: the right side is left out where the left side decides."""

    cdef bint decides

    def __init__(self, bint decides, Node left, Node right):
        PairNode.__init__(self, BOOL, 0, left, right)
        self.decides = decides

    cdef int num(self, Instance me, Cell* out) except -1:
        if not self.left.num(me, out):
            return 0
        if out.i == self.decides:
            return 1
        return self.right.num(me, out)

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] right
        cdef unsigned char[BLOCK] open
        cdef int each, some = 0
        if not self.left.fill(frame, low, n, out, rows):
            return 0
        for each in range(n):
            open[each] = rows[each] and out[each].i != self.decides
            some |= open[each]
        if not some:
            return 1
        memcpy(right, out, n * sizeof(Cell))
        if not self.right.fill(frame, low, n, right, open):
            return 0
        for each in range(n):
            if rows[each] and out[each].i != self.decides:
                out[each] = right[each]
                rows[each] = open[each]
        return 1


cdef class OperandNode(Node):
    """What is computed of one cell."""

    cdef Node operand

    cdef bint apply(self, Cell* out) noexcept:
        """Compute one; false where it has no value of 64 bits."""
        return False

    cdef object fault(self, Cell given):
        """The error at a cell of which it has none."""
        raise NotImplementedError

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell given
        if not self.operand.num(me, out):
            return 0
        given = out[0]
        if not self.apply(out):
            raise self.fault(given)
        return 1

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef int each
        if not self.operand.fill(frame, low, n, out, rows):
            return 0
        for each in range(n):
            if rows[each] and not self.apply(&out[each]):
                return 0
        return 1


cdef class UnaryNode(OperandNode):
    """``!``, ``-``, ``~``; `mask` are the bits that ``~`` flips."""

    cdef uint64_t mask
    cdef int kind

    def __init__(self, str operator, Node operand, mask):
        self.family, self.operand, self.mask = operand.family, operand, mask
        self.columnar, self.celled = operand.columnar, operand.celled
        self.kind = "!-~".index(operator)

    cdef bint apply(self, Cell* out) noexcept:
        if self.kind == 0:
            out.i = not out.i
        elif self.kind == 2:
            out.u = out.u ^ self.mask
        elif self.family == FLOAT:
            out.f = -out.f
        elif self.family == UINT:
            return out.u == 0
        elif out.i == SMALLEST:
            return False
        else:
            out.i = -out.i
        return True

    cdef object fault(self, Cell given):
        kind = "UInt64" if self.family == UINT else "Int64"
        return Fault(f"-({boxed(given, self.family)}) is beyond 64 bits ({kind})")


cdef class ChoiceNode(Node):
    """``if c then a else b``."""

    cdef Node condition
    cdef Node left
    cdef Node right

    def __init__(self, Node condition, Node left, Node right):
        self.family, self.condition, self.left, self.right = left.family, condition, left, right
        self.columnar = condition.columnar and left.columnar and right.columnar
        self.coded, self.celled = left.coded and right.coded, left.celled and right.celled

    cdef int num(self, Instance me, Cell* out) except -1:
        if not self.condition.num(me, out):
            return 0
        return self.left.num(me, out) if out.i else self.right.num(me, out)

    cdef object obj(self, Instance me):
        cdef Cell cell
        if not self.condition.num(me, &cell):
            return None
        return self.left.obj(me) if cell.i else self.right.obj(me)

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] other
        cdef unsigned char[BLOCK] chosen
        cdef int each
        if not self.condition.fill(frame, low, n, other, rows):
            return 0
        for each in range(n):
            chosen[each] = rows[each] and other[each].i
            rows[each] = rows[each] and not other[each].i
        if not self.left.fill(frame, low, n, out, chosen) or not self.right.fill(frame, low, n, other, rows):
            return 0
        for each in range(n):
            if rows[each]:
                out[each] = other[each]
            rows[each] |= chosen[each]
        return 1


cdef class DefaultNode(Node):
    """The operand where it has a value, else the default."""

    cdef Node operand
    cdef Node value

    def __init__(self, Node operand, Node value):
        self.family, self.operand, self.value = value.family, operand, value
        self.columnar = operand.columnar and value.columnar
        self.coded, self.celled = operand.coded and value.coded, operand.celled and value.celled

    cdef int num(self, Instance me, Cell* out) except -1:
        return 1 if self.operand.num(me, out) else self.value.num(me, out)

    cdef object obj(self, Instance me):
        cdef object found = self.operand.obj(me)
        return self.value.obj(me) if found is None else found

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] other
        cdef unsigned char[BLOCK] given
        cdef int each, some = 0
        memcpy(given, rows, n)
        if not self.operand.fill(frame, low, n, out, given):
            return 0
        for each in range(n):
            rows[each] = rows[each] and not given[each]
            some |= rows[each]
        if some:
            if not self.value.fill(frame, low, n, other, rows):
                return 0
            for each in range(n):
                if rows[each]:
                    out[each] = other[each]
        for each in range(n):
            rows[each] |= given[each]
        return 1


FUNCTIONS = ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "exp", "ln", "abs")


cdef inline double function_of(int which, double x) noexcept nogil:
    """One of `FUNCTIONS`; NaN where it has no value."""
    if which == 0:
        return sqrt(x)
    if which == 1:
        return sin(x)
    if which == 2:
        return cos(x)
    if which == 3:
        return tan(x)
    if which == 4:
        return asin(x)
    if which == 5:
        return acos(x)
    if which == 6:
        return atan(x)
    if which == 7:
        return exp(x)
    if which == 8:
        return log(x)
    return fabs(x)


cdef class FunctionNode(OperandNode):
    """A function of one number."""

    cdef int which
    cdef str name

    def __init__(self, str name, Node operand):
        self.family, self.name, self.operand, self.which = operand.family, name, operand, FUNCTIONS.index(name)
        self.columnar, self.celled = operand.columnar, operand.celled

    cdef bint apply(self, Cell* out) noexcept:
        if self.which == 9 and self.family != FLOAT:
            if self.family == INT and out.i < 0:
                if out.i == SMALLEST:
                    return False
                out.i = -out.i
            return True
        out.f = function_of(self.which, out.f)
        return not isnan(out.f)

    cdef object fault(self, Cell given):
        if self.family == FLOAT:
            return Fault(f"{self.name}({text_of(given.f)}) is not a number (NaN)")
        return Fault(f"abs({given.i}) is beyond 64 bits (Int64)")


cdef inline double rounded(double value, double digits) noexcept nogil:
    """A float with so many digits after the point, halves away from zero."""
    cdef double scale = pow(10.0, min(digits, 308.0)), scaled = value * scale, whole
    if isinf(scaled):
        return value
    whole = trunc(scaled)
    if fabs(scaled - whole) >= 0.5:
        whole += 1.0 if scaled > 0 else -1.0
    return whole / scale


cdef class LogNode(PairNode):
    """``log`` to a base, and ``round`` to digits after the point, halves away from zero."""

    cdef bint rounds

    def __init__(self, bint rounds, Node value, Node other):
        PairNode.__init__(self, FLOAT, 0, value, other)
        self.rounds = rounds

    cdef double apply(self, Cell value, Cell other) noexcept:
        """Compute one; NaN where it has no value."""
        cdef double second = other.f
        if self.right.family != FLOAT:
            second = <double>other.u if self.right.family == UINT else <double>other.i
        return rounded(value.f, second) if self.rounds else log(value.f) / log(second)

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell value, other
        if not self.both(me, &value, &other):
            return 0
        out.f = self.apply(value, other)
        if isnan(out.f) and not self.rounds:
            raise Fault("the logarithm is not a number (NaN)")
        return 1

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Cell[BLOCK] other
        cdef int each
        if not self.both_rows(frame, low, n, out, other, rows):
            return 0
        for each in range(n):
            if rows[each]:
                out[each].f = self.apply(out[each], other[each])
                if isnan(out[each].f) and not self.rounds:
                    return 0
        return 1


cdef class CastNode(OperandNode):
    """A number as one of another type; faults where it does not fit 64 bits. Fractions are cut off."""

    def __init__(self, int family, Node operand):
        self.family, self.operand = family, operand
        self.columnar, self.celled = operand.columnar, family in (BOOL, INT, UINT)

    cdef bint apply(self, Cell* out) noexcept:
        cdef int source = self.operand.family
        cdef double x
        if source == self.family:
            return True
        if self.family == FLOAT:
            out.f = <double>out.u if source == UINT else <double>out.i
        elif source == FLOAT:
            x = out.f
            if self.family == UINT:
                if not (x > -1.0 and x < 18446744073709551616.0):
                    return False
                out.u = <uint64_t>x
            else:
                if not (x >= -9223372036854775808.0 and x < 9223372036854775808.0):
                    return False
                out.i = <int64_t>x
        elif source == BOOL:
            return True
        else:
            return out.i >= 0  # of either sign in the other: the highest bit is not used
        return True

    cdef object fault(self, Cell given):
        shown = text_of(given.f) if self.operand.family == FLOAT else boxed(given, self.operand.family)
        return Fault(f"{shown} does not fit {'UInt64' if self.family == UINT else 'Int64'}")
