from hamlet.streams._store cimport Cell, Instance, Store, Stream, Tally, WindowTable, wide
from libc.stdint cimport int64_t

cdef class Node:
    cdef readonly int family
    cdef int num(self, Instance me, Cell* out) except -1  # 1: a value; 0: none
    cdef object obj(self, Instance me)                    # a Python value, or None
