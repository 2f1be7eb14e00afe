"""What changes in relations, and what all operators over changes have; see ``_changes.pyx``."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #define HAMLET_UNBOUNDED (((int64_t)1 << 62) - 1)
    """
    const int64_t UNBOUNDED "HAMLET_UNBOUNDED"  # a time that does not come


cdef class Line:
    cdef int64_t* times
    cdef Py_ssize_t room
    cdef public int64_t base, known, bound
    cdef public dict tables
    cpdef int add(self, int64_t time) except -1
    cpdef int forget(self, int64_t point) except -1
    cpdef int64_t at(self, int64_t point)
    cdef int64_t first_at_least(self, int64_t time)
    cdef int64_t last_at_most(self, int64_t time)
    cdef int64_t next_time(self, int64_t point)


cdef class Block:
    cdef readonly int64_t point
    cdef readonly tuple gone, come


cdef class Queue:
    cdef list blocks
    cdef Py_ssize_t head
    cpdef put(self, Block block)
    cdef Block take(self, int64_t point)
    cdef int64_t next(self, int64_t until)


cdef class Operator:
    cdef readonly list children, queues, outs
    cdef public int64_t seen, done
    cdef bint fresh
    cdef int emit(self, int64_t point, list gone, list come) except -1
    cdef int64_t until(self, Line line)
    cpdef int step(self, Line line) except -1
    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1


cdef class Index:
    cdef tuple on
    cdef dict found
    cdef Py_ssize_t rows
    cdef int add(self, tuple row) except -1
    cdef int remove(self, tuple row) except -1
    cdef object get(self, object key)
    cdef list all(self)


cdef Block first_block(int64_t point, Block block, set held)
cdef int count_begun(dict counts, rows, list come) except -1
cdef int count_ended(dict counts, rows, list gone) except -1


cdef inline object key_of(tuple row, tuple on):
    """The values at some places, a single one as it is."""
    cdef Py_ssize_t count = len(on)
    if count == 1:
        return row[<Py_ssize_t>on[0]]
    if count == 2:
        return (row[<Py_ssize_t>on[0]], row[<Py_ssize_t>on[1]])
    return tuple([row[<Py_ssize_t>place] for place in on])


cdef inline tuple shaped(tuple row, tuple constants, tuple equal, tuple columns):
    """Some columns of a row that has these constants and equal places; None of another row."""
    for place, code in constants:
        if row[<Py_ssize_t>place] != code:
            return None
    for one, two in equal:
        if row[<Py_ssize_t>one] != row[<Py_ssize_t>two]:
            return None
    if len(columns) == 1:
        return (row[<Py_ssize_t>columns[0]],)
    if len(columns) == 2:
        return (row[<Py_ssize_t>columns[0]], row[<Py_ssize_t>columns[1]])
    return tuple([row[<Py_ssize_t>place] for place in columns])
