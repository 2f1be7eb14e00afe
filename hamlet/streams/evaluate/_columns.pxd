from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._store cimport Stream

cdef enum:
    BLOCK = 256  # rows that an expression is computed for at once

cdef class Column:
    cdef uint64_t* cells        # of the rows
    cdef unsigned char* mask    # which rows have a value; NULL: all
    cdef bint own               # whether the memory is the column's
    cdef object held            # whose memory it is, otherwise
    cdef uint64_t* packed       # the values that the stream keeps from before, then those of the rows
    cdef int64_t earlier        # how many of them are from before
    cdef int64_t* rank          # values up to a row and with it; NULL where all rows have one

    cdef int pack(self, Stream stream, Py_ssize_t rows) except -1

cdef class Frame:
    cdef Py_ssize_t rows
    cdef list columns           # by stream: Column, or None where it is not known

    cdef Column packed(self, Stream stream)
