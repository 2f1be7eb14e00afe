"""Expressions as trees of nodes: the base of all, and constants.

A node computes a cell of 64 bits (`num`) or a Python value (`obj`); one of family OBJECT (strings, tuples) has `num`
only where it is coded. None, and 0 as the result of `num`, mean that there is no value; it passes through every
operator up to a `DefaultNode`. Instances that an expression stands in come as `me`.

`fill` computes a block of at most BLOCK rows from columns: cells of the rows with a 1 in `rows`, where a 0 is written
for those without a value. It gives 0 for a block that has to be computed row by row, because `num` raises an error for
one of the rows.
"""

from hamlet.streams.evaluate._cells cimport BOOL, INT, OBJECT, UINT, Cell, boxed, unboxed
from hamlet.streams.evaluate._columns cimport Frame
from hamlet.streams.evaluate._store cimport Instance
from hamlet.streams.evaluate._words cimport Words


cdef class Node:
    """Base of all."""

    cdef int num(self, Instance me, Cell* out) except -1:
        raise TypeError("an object is no number")

    cdef object obj(self, Instance me):
        cdef Cell cell
        return boxed(cell, self.family) if self.num(me, &cell) else None

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        return 0


cdef class ConstantNode(Node):
    """A value that is known before any event; a text has its code in `words`."""

    cdef Cell cell
    cdef object value

    def __init__(self, int family, value, Words words):
        self.family, self.value = family, value
        self.coded = family == OBJECT and type(value) is str
        self.columnar = self.coded or family != OBJECT
        self.celled = self.coded or family in (BOOL, INT, UINT)
        if self.coded:
            self.cell.i = words.intern(value)
            self.value = words.thing(self.cell.u)  # what is held keeps its code
        elif family != OBJECT:
            self.cell = unboxed(value, family)

    cdef int num(self, Instance me, Cell* out) except -1:
        out[0] = self.cell
        return 1

    cdef object obj(self, Instance me):
        return self.value

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef int each
        for each in range(n):
            out[each] = self.cell
        return 1
