"""The values of streams as columns: of the rows of a batch, before any of them is taken.

A column is computed from those of other streams and from what the streams keep. Nothing is changed by it, so that a
batch in which something goes wrong can be taken row by row instead.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from hamlet.streams.evaluate._store cimport Instance, Stream


cdef class Column:
    """The values of one stream."""

    def __dealloc__(self):
        if self.own:
            free(self.cells)
            free(self.mask)
        free(self.packed)
        free(self.rank)

    cdef int pack(self, Stream stream, Py_ssize_t rows) except -1:
        """The values alone, those from before in front, and where each row's is."""
        cdef Instance one = stream.one
        cdef int64_t place, found
        cdef Py_ssize_t row
        if self.packed is not NULL:
            return 0
        self.earlier = min(one.count, stream.depth)
        self.packed = <uint64_t*>malloc((self.earlier + rows + 1) * sizeof(uint64_t))
        if self.packed is NULL:
            raise MemoryError
        for place in range(self.earlier):
            if stream.depth > 1:
                self.packed[place] = one.ring[(one.count - self.earlier + place) % stream.depth].u
            else:
                self.packed[place] = one.last.u
        found = self.earlier
        if self.mask is NULL:
            memcpy(self.packed + found, self.cells, rows * sizeof(uint64_t))
            return 0
        self.rank = <int64_t*>malloc((rows + 1) * sizeof(int64_t))
        if self.rank is NULL:
            raise MemoryError
        for row in range(rows):
            if self.mask[row]:
                self.packed[found] = self.cells[row]
                found += 1
            self.rank[row] = found - self.earlier
        return 0


cdef class Frame:
    """A batch: a column for each stream that has one."""

    cdef Column packed(self, Stream stream):
        """The column of a stream, packed."""
        cdef Column found = <Column>self.columns[stream.number]
        found.pack(stream, self.rows)
        return found
