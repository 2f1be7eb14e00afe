from hamlet.streams.evaluate._columns cimport Column, Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance, Stream

cdef class Clause:
    cdef int pacing
    cdef bint local
    cdef Node condition
    cdef Node value
    cdef list binding
    cdef Node key              # the only binding, where the instance is found by cell

cdef class Task:
    cdef readonly Stream stream
    cdef list clauses
    cdef list arguments
    cdef bint emits
    cdef bint bound
    cdef bint has_local
    cdef list pacings
    cdef Node key              # of a spawn: the only argument, where instances are found by cell
    cdef bint whole            # in columns: values, not only which rows have one
    cdef Column column         # of the batch, or None

    cdef int fill(self, Frame frame, list terms) except -1
    cdef int fill_block(
        self, Frame frame, list terms, Py_ssize_t low, int n, unsigned char* mask, unsigned long long* cells
    ) except -1

cdef class Closer:
    cdef Stream stream
    cdef Clause clause
    cdef bint narrow
    cdef list waiting

    cdef int hear(self, Instance instance) except -1
