from hamlet.streams.evaluate._cells cimport Cell
from hamlet.streams.evaluate._columns cimport Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance

cdef class PairNode(Node):
    cdef Node left
    cdef Node right
    cdef int operator

    cdef int both(self, Instance me, Cell* left, Cell* right) except -1
    cdef int both_rows(self, Frame frame, Py_ssize_t low, int n, Cell* left, Cell* right, unsigned char* rows) except -1
