"""Expressions as trees of nodes: each computes a cell of 64 bits (`num`) or a Python value (`obj`).

A node of family OBJECT (strings, tuples) has `obj` only. None, and 0 as the result of `num`, mean that there is no
value; it passes through every operator up to a `Default`. Instances that an expression stands in come as `me`.
"""

import re
from decimal import Decimal

from libc.math cimport (
    acos, asin, atan, cos, exp, fabs, fmod, isinf, isnan, log, pow, sin, sqrt, tan, trunc,
)
from libc.stdint cimport int64_t, uint64_t

from hamlet.streams._store cimport (
    BOOL, FLOAT, INT, OBJECT, UINT, Cell, Instance, Store, Stream, Tally, Window, WindowTable, boxed, unboxed, wide,
    wide_object,
)

from hamlet.streams._store import Fault


HOLE = re.compile(r"\{\{[^{}]*\}\}")


def text_of(value):
    """A value as a message shows it: floats as the shortest decimal without exponent, 2.0 as 2; true and false."""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is float:
        if value != value or value in (float("inf"), float("-inf")):
            return "NaN" if value != value else "inf" if value > 0 else "-inf"
        text = repr(value)
        if "e" in text:
            text = format(Decimal(text), "f")
        return text[:-2] if text.endswith(".0") else text
    if type(value) is tuple:
        return f"({', '.join(map(text_of, value))})"
    return str(value)


cdef int whole(wide value, int family, str sign, Cell left, Cell right, Cell* out) except -1:
    """An integer result of 64 bits, or a fault that shows the operands."""
    if family == UINT:
        if value < 0 or (value >> 64) != 0:
            raise Fault(f"{boxed(left, family)} {sign} {boxed(right, family)} is beyond 64 bits (UInt64)")
        out.u = <uint64_t>value
    else:
        if value != <wide><int64_t>value:
            raise Fault(f"{boxed(left, family)} {sign} {boxed(right, family)} is beyond 64 bits (Int64)")
        out.i = <int64_t>value
    return 1


cdef int number(double value, str what, Cell* out) except -1:
    """A float, or a fault where it is none."""
    if isnan(value):
        raise Fault(f"{what} is not a number (NaN)")
    out.f = value
    return 1


cdef class Node:
    """Base of all."""

    cdef int num(self, Instance me, Cell* out) except -1:
        raise TypeError("an object is no number")

    cdef object obj(self, Instance me):
        cdef Cell cell
        return boxed(cell, self.family) if self.num(me, &cell) else None


cdef class ConstantNode(Node):
    """A value that is known before any event."""

    cdef Cell cell
    cdef object value

    def __init__(self, int family, value):
        self.family, self.value = family, value
        if family != OBJECT:
            self.cell = unboxed(value, family)

    cdef int num(self, Instance me, Cell* out) except -1:
        out[0] = self.cell
        return 1

    cdef object obj(self, Instance me):
        return self.value


cdef class ParameterNode(Node):
    """A parameter of the instance; `alone` where it is the only one, and so the key itself."""

    cdef int index
    cdef bint alone

    def __init__(self, int family, int index, bint alone):
        self.family, self.index, self.alone = family, index, alone

    cdef int num(self, Instance me, Cell* out) except -1:
        out[0] = unboxed(me.key if self.alone else (<tuple>me.key)[self.index], self.family)
        return 1

    cdef object obj(self, Instance me):
        return me.key if self.alone else (<tuple>me.key)[self.index]


cdef object key_of(list arguments, Instance me):
    """The key of an instance: the only argument, a tuple of several; None where one has no value."""
    cdef Node each
    cdef object value
    cdef list found
    if len(arguments) == 1:
        return (<Node>arguments[0]).obj(me)
    found = []
    for each in arguments:
        value = each.obj(me)
        if value is None:
            return None
        found.append(value)
    return tuple(found)


cdef class PlainRead(Node):
    """The newest value of a stream without parameters."""

    cdef Stream stream

    def __init__(self, Stream stream):
        self.family, self.stream = stream.family, stream

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Instance one = self.stream.one
        if one is None or one.count == 0:
            return 0
        out[0] = one.last
        return 1

    cdef object obj(self, Instance me):
        cdef Instance one = self.stream.one
        if one is None or one.count == 0:
            return None
        return one.value if self.family == OBJECT else boxed(one.last, self.family)


cdef enum:
    NOW = 0
    OFFSET = 1
    HOLD = 2
    GET = 3
    FRESH = 4
    TIME = 5
    SELF_NOW = 6


cdef class ReadNode(Node):
    """A value of a stream, of any access and instance; `own` where the instance read is the one that reads."""

    cdef Stream stream
    cdef Store store
    cdef int access
    cdef int64_t amount
    cdef object ago
    cdef list arguments
    cdef bint own

    def __init__(self, Store store, Stream stream, int access, amount, list arguments, bint own):
        self.family = BOOL if access == FRESH else stream.family
        self.store, self.stream, self.access, self.arguments, self.own = store, stream, access, arguments, own
        self.amount, self.ago = amount if access == OFFSET else 0, amount

    cdef Instance target(self, Instance me):
        cdef object key
        if self.own:
            return me
        if not self.stream.keyed:
            return self.stream.one
        key = key_of(self.arguments, me)
        return None if key is None else self.stream.find(key)

    cdef int64_t place(self, Instance target):
        """Which of the kept values is meant, from 0; -1 for none."""
        cdef bint fresh = target.fresh == self.store.step
        cdef int64_t back = 0
        if self.access == OFFSET:
            back = self.amount - (0 if fresh else 1)
        elif self.access == GET and not fresh:
            return -1
        return target.count - 1 - back

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Instance target = self.target(me)
        cdef int64_t place
        cdef object value
        if self.access == FRESH:
            out.i = target is not None and target.fresh == self.store.step
            return 1
        if target is None or target.count == 0:
            return 0
        if self.access == TIME:
            value = self.earlier(target)
            if value is None:
                return 0
            out[0] = unboxed(value, self.family)
            return 1
        place = self.place(target)
        if place < 0:
            return 0
        out[0] = target.last if place == target.count - 1 else target.ring[place % self.stream.depth]
        return 1

    cdef object obj(self, Instance me):
        cdef Instance target
        cdef int64_t place
        if self.family != OBJECT:
            return Node.obj(self, me)
        target = self.target(me)
        if target is None or target.count == 0:
            return None
        if self.access == TIME:
            return self.earlier(target)
        place = self.place(target)
        if place < 0:
            return None
        return target.value if place == target.count - 1 else target.past[place % self.stream.depth]

    cdef object earlier(self, Instance target):
        """The newest value that is old enough."""
        horizon = wide_object(self.store.now) - self.ago
        found = None
        for time, value in target.moments:
            if time > horizon:
                break
            found = value
        return found


cdef class WindowNode(Node):
    """What a window holds now."""

    cdef WindowTable table
    cdef list arguments

    def __init__(self, WindowTable table, list arguments):
        self.family, self.table, self.arguments = table.result, table, arguments

    cdef Window window(self, Instance me):
        return self.table.find(me, key_of(self.arguments, me) if self.table.per_target else None)

    cdef int num(self, Instance me, Cell* out) except -1:
        return self.window(me).read(out)

    cdef object obj(self, Instance me):
        return self.window(me).read_object() if self.family == OBJECT else Node.obj(self, me)


cdef class TallyNode(Node):
    """An aggregate over instances."""

    cdef Tally tally

    def __init__(self, Tally tally):
        self.family, self.tally = tally.result, tally

    cdef int num(self, Instance me, Cell* out) except -1:
        return self.tally.read(out)


# -------------------------------------------------------------------------------------------------------- operators

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


cdef class FloatNode(Node):
    """Arithmetic of floats; the exponent of ``**`` may be an integer."""

    cdef Node left
    cdef Node right
    cdef int operator

    def __init__(self, int operator, Node left, Node right):
        self.family, self.operator, self.left, self.right = FLOAT, operator, left, right

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef double x, y, value
        if not self.left.num(me, &left) or not self.right.num(me, &right):
            return 0
        x = left.f
        y = right.f
        if self.operator == POW and self.right.family != FLOAT:
            y = <double>right.i if self.right.family == INT else <double>right.u
        if self.operator == ADD:
            value = x + y
        elif self.operator == SUB:
            value = x - y
        elif self.operator == MUL:
            value = x * y
        elif self.operator == DIV:
            value = x / y
        elif self.operator == REM:
            value = fmod(x, y)
        elif self.operator == POW:
            value = pow(x, y)
        elif self.operator == LEAST:
            value = y if y < x else x
        else:
            value = y if y > x else x
        if isnan(value):
            raise Fault(f"{text_of(x)} {SIGNS[self.operator]} {text_of(y)} is not a number (NaN)")
        out.f = value
        return 1


cdef class IntegerNode(Node):
    """Arithmetic of integers, checked for 64 bits; the right side of shifts and ``**`` may be of the other sign."""

    cdef Node left
    cdef Node right
    cdef int operator

    def __init__(self, int operator, Node left, Node right):
        self.family, self.operator, self.left, self.right = left.family, operator, left, right

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef wide x, y, value
        cdef int op = self.operator
        cdef bint unsigned = self.family == UINT
        if not self.left.num(me, &left) or not self.right.num(me, &right):
            return 0
        x = <wide>left.u if unsigned else <wide>left.i
        y = <wide>right.u if self.right.family == UINT else <wide>right.i
        if op == ADD:
            value = x + y
        elif op == SUB:
            value = x - y
        elif op == MUL:
            if unsigned and x > 0 and y > (((<wide>1) << 64) - 1) / x:
                value = -1
            else:
                value = x * y
        elif op == DIV or op == REM:
            if y == 0:
                raise Fault(f"{boxed(left, self.family)} {SIGNS[op]} 0 is an integer division by zero")
            value = x / y if op == DIV else x % y
        elif op == POW:
            return self.power(left, right, x, y, out)
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
        else:
            if y < 0 or y > 63:
                raise Fault(f"{boxed(left, self.family)} {SIGNS[op]} {wide_object(y)} shifts by more than 63 bits")
            if op == RIGHT:
                value = x >> y
            elif unsigned:
                value = <wide>(<uint64_t>(left.u << y))
            else:
                value = <wide>(<int64_t>(<uint64_t>left.i << y))
        return whole(value, self.family, SIGNS[op], left, right, out)

    cdef int power(self, Cell left, Cell right, wide x, wide y, Cell* out) except -1:
        """A power of integers."""
        cdef object value
        if y < 0:
            raise Fault(f"{boxed(left, self.family)} ** {wide_object(y)} is no integer")
        base = wide_object(x)
        if base not in (-1, 0, 1) and y > 64:
            raise Fault(f"{base} ** {wide_object(y)} is beyond 64 bits")
        value = base ** wide_object(y if y < 66 else 64 + y % 2)
        try:
            out[0] = unboxed(value, self.family)
        except OverflowError:
            raise Fault(f"{base} ** {wide_object(y)} is beyond 64 bits") from None
        return 1


cdef enum:
    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


cdef bint compared(int op, int order) noexcept:
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


cdef class CompareNode(Node):
    """A comparison of two values of one type."""

    cdef Node left
    cdef Node right
    cdef int operator

    def __init__(self, int operator, Node left, Node right):
        self.family, self.operator, self.left, self.right = BOOL, operator, left, right

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell left, right
        cdef int family = self.left.family, order
        cdef object x, y
        if family == OBJECT:
            x = self.left.obj(me)
            y = self.right.obj(me) if x is not None else None
            if y is None:
                return 0
            order = 0 if x == y else 1
            if self.operator > NE and order:
                order = -1 if x < y else 1
        else:
            if not self.left.num(me, &left) or not self.right.num(me, &right):
                return 0
            if family == FLOAT:
                order = (left.f > right.f) - (left.f < right.f)
            elif family == UINT:
                order = (left.u > right.u) - (left.u < right.u)
            else:
                order = (left.i > right.i) - (left.i < right.i)
        out.i = compared(self.operator, order)
        return 1


cdef class LazyNode(Node):
    """``&&`` and ``||``: the right side is left out where the left side decides."""

    cdef Node left
    cdef Node right
    cdef bint decides

    def __init__(self, bint decides, Node left, Node right):
        self.family, self.decides, self.left, self.right = BOOL, decides, left, right

    cdef int num(self, Instance me, Cell* out) except -1:
        if not self.left.num(me, out):
            return 0
        if out.i == self.decides:
            return 1
        return self.right.num(me, out)


cdef class UnaryNode(Node):
    """``!``, ``-``, ``~``; `mask` are the bits that ``~`` flips."""

    cdef Node operand
    cdef str operator
    cdef uint64_t mask
    cdef int kind

    def __init__(self, str operator, Node operand, mask):
        self.family, self.operator, self.operand, self.mask = operand.family, operator, operand, mask
        self.kind = "!-~".index(operator)

    cdef int num(self, Instance me, Cell* out) except -1:
        if not self.operand.num(me, out):
            return 0
        if self.kind == 0:
            out.i = not out.i
        elif self.kind == 2:
            out.u = out.u ^ self.mask
        elif self.family == FLOAT:
            out.f = -out.f
        elif out.i == -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1:
            raise Fault(f"-({out.i}) is beyond 64 bits (Int64)")
        else:
            out.i = -out.i
        return 1


cdef class ChoiceNode(Node):
    """``if c then a else b``."""

    cdef Node condition
    cdef Node left
    cdef Node right

    def __init__(self, Node condition, Node left, Node right):
        self.family, self.condition, self.left, self.right = left.family, condition, left, right

    cdef int num(self, Instance me, Cell* out) except -1:
        if not self.condition.num(me, out):
            return 0
        return self.left.num(me, out) if out.i else self.right.num(me, out)

    cdef object obj(self, Instance me):
        cdef Cell cell
        if not self.condition.num(me, &cell):
            return None
        return self.left.obj(me) if cell.i else self.right.obj(me)


cdef class DefaultNode(Node):
    """The operand where it has a value, else the default."""

    cdef Node operand
    cdef Node value

    def __init__(self, Node operand, Node value):
        self.family, self.operand, self.value = value.family, operand, value

    cdef int num(self, Instance me, Cell* out) except -1:
        return 1 if self.operand.num(me, out) else self.value.num(me, out)

    cdef object obj(self, Instance me):
        cdef object found = self.operand.obj(me)
        return self.value.obj(me) if found is None else found


cdef class TupleNode(Node):
    """A tuple."""

    cdef list parts

    def __init__(self, list parts):
        self.family, self.parts = OBJECT, parts

    cdef object obj(self, Instance me):
        cdef Node each
        cdef list found = []
        for each in self.parts:
            value = each.obj(me)
            if value is None:
                return None
            found.append(value)
        return tuple(found)


cdef class PartNode(Node):
    """A part of a tuple."""

    cdef Node operand
    cdef int index

    def __init__(self, int family, Node operand, int index):
        self.family, self.operand, self.index = family, operand, index

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef object found = self.operand.obj(me)
        if found is None:
            return 0
        out[0] = unboxed((<tuple>found)[self.index], self.family)
        return 1

    cdef object obj(self, Instance me):
        cdef object found = self.operand.obj(me)
        return None if found is None else (<tuple>found)[self.index]


FUNCTIONS = ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "exp", "ln", "abs")


cdef class FunctionNode(Node):
    """A function of one number."""

    cdef Node operand
    cdef int which
    cdef str name

    def __init__(self, str name, Node operand):
        self.family, self.name, self.operand, self.which = operand.family, name, operand, FUNCTIONS.index(name)

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef double x
        if not self.operand.num(me, out):
            return 0
        if self.which == 9 and self.family != FLOAT:
            if self.family == INT and out.i < 0:
                if out.i == -(<int64_t>0x7FFFFFFFFFFFFFFF) - 1:
                    raise Fault(f"abs({out.i}) is beyond 64 bits (Int64)")
                out.i = -out.i
            return 1
        x = out.f
        if self.which == 0:
            out.f = sqrt(x)
        elif self.which == 1:
            out.f = sin(x)
        elif self.which == 2:
            out.f = cos(x)
        elif self.which == 3:
            out.f = tan(x)
        elif self.which == 4:
            out.f = asin(x)
        elif self.which == 5:
            out.f = acos(x)
        elif self.which == 6:
            out.f = atan(x)
        elif self.which == 7:
            out.f = exp(x)
        elif self.which == 8:
            out.f = log(x)
        else:
            out.f = fabs(x)
        if isnan(out.f):
            raise Fault(f"{self.name}({text_of(x)}) is not a number (NaN)")
        return 1


cdef class LogNode(Node):
    """``log`` to a base, and ``round`` to digits after the point, halves away from zero."""

    cdef Node value
    cdef Node other
    cdef bint rounds

    def __init__(self, bint rounds, Node value, Node other):
        self.family, self.rounds, self.value, self.other = FLOAT, rounds, value, other

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell value, other
        cdef double scale, scaled, digits
        if not self.value.num(me, &value) or not self.other.num(me, &other):
            return 0
        digits = other.f if self.other.family == FLOAT else (
            <double>other.u if self.other.family == UINT else <double>other.i
        )
        if not self.rounds:
            return number(log(value.f) / log(digits), "the logarithm", out)
        scale = pow(10.0, min(digits, 308.0))
        scaled = value.f * scale
        if isinf(scaled):
            out.f = value.f
            return 1
        digits = trunc(scaled)
        if fabs(scaled - digits) >= 0.5:
            digits += 1.0 if scaled > 0 else -1.0
        out.f = digits / scale
        return 1


cdef class CastNode(Node):
    """A number as one of another type; faults where it does not fit 64 bits. Fractions are cut off."""

    cdef Node operand

    def __init__(self, int family, Node operand):
        self.family, self.operand = family, operand

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Cell value
        cdef double x
        cdef int source = self.operand.family
        if not self.operand.num(me, &value):
            return 0
        if source == self.family:
            out[0] = value
        elif self.family == FLOAT:
            out.f = <double>value.u if source == UINT else <double>value.i
        elif source == FLOAT:
            x = value.f
            if self.family == UINT:
                if not (x > -1.0 and x < 18446744073709551616.0):
                    raise Fault(f"{text_of(x)} does not fit UInt64")
                out.u = <uint64_t>x
            else:
                if not (x >= -9223372036854775808.0 and x < 9223372036854775808.0):
                    raise Fault(f"{text_of(x)} does not fit Int64")
                out.i = <int64_t>x
        elif self.family == UINT:
            if source == INT and value.i < 0:
                raise Fault(f"{value.i} does not fit UInt64")
            out.u = value.u
        else:
            if source == UINT and value.u > <uint64_t>0x7FFFFFFFFFFFFFFF:
                raise Fault(f"{value.u} does not fit Int64")
            out.i = value.i
        return 1


cdef class FormatNode(Node):
    """A template whose ``{{}}`` are filled with values."""

    cdef list pieces
    cdef list arguments

    def __init__(self, str template, list arguments):
        self.family, self.pieces, self.arguments = OBJECT, HOLE.split(template), arguments

    cdef object obj(self, Instance me):
        cdef Node each
        cdef int place = 0
        cdef list found = [self.pieces[0]]
        for each in self.arguments:
            value = each.obj(me)
            if value is None:
                return None
            place += 1
            if place < len(self.pieces):  # values without a place are left out
                found.append(text_of(value))
                found.append(self.pieces[place])
        found.extend(self.pieces[place + 1 :])
        return "".join(found)


cdef class MatchNode(Node):
    """Whether a regular expression is found in a text."""

    cdef Node text
    cdef object search

    def __init__(self, Node text, str pattern):
        self.family, self.text, self.search = BOOL, text, re.compile(pattern).search

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef object value = self.text.obj(me)
        if value is None:
            return 0
        out.i = self.search(value) is not None
        return 1
