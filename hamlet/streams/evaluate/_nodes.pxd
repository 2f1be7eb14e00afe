from hamlet.streams.evaluate._cells cimport Cell
from hamlet.streams.evaluate._columns cimport Frame
from hamlet.streams.evaluate._store cimport Instance

cdef class Node:
    cdef readonly int family
    cdef readonly bint columnar  # whether `fill` is there
    cdef readonly bint coded     # whether `num` and `fill` give codes of texts
    cdef readonly bint celled    # whether `num` gives what an instance is found by
    cdef int num(self, Instance me, Cell* out) except -1  # 1: a value; 0: none
    cdef object obj(self, Instance me)                    # a Python value, or None
    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1
