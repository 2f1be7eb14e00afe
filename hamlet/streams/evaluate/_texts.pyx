"""Nodes of texts and tuples."""

import re
from decimal import Decimal

from libc.stdint cimport uint64_t

from hamlet.streams.evaluate._cells cimport BOOL, OBJECT, UINT, Cell, unboxed
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance

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
        return text.removesuffix(".0")
    if type(value) is tuple:
        return f"({', '.join(map(text_of, value))})"
    return str(value)


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

    def __init__(self, Node text, object search):
        self.family, self.text, self.search = BOOL, text, search

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef object value = self.text.obj(me)
        if value is None:
            return 0
        out.i = self.search(value)
        return 1


cdef class AtNode(Node):
    """A byte by its place, counted from 0; none beyond the last. Bytes are texts of two digits each."""

    cdef Node text
    cdef Node index

    def __init__(self, Node text, Node index):
        self.family, self.text, self.index = UINT, text, index

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef object digits = self.text.obj(me)
        cdef Cell place
        if digits is None or self.index.num(me, &place) == 0 or place.u >= <uint64_t>(len(digits) // 2):
            return 0
        out.u = int(digits[2 * place.u:2 * place.u + 2], 16)
        return 1
