"""Clauses and tasks: what a step does, and the columns of it that are computed for a batch at once."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memset

from hamlet.streams.evaluate._cells cimport OBJECT, Cell
from hamlet.streams.evaluate._columns cimport BLOCK, Column, Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance, Stream


cdef int active_rows(Frame frame, tuple terms, Py_ssize_t low, int n, unsigned char* rows) except -1:
    """The rows of a pacing: those in which all inputs of a term have a value."""
    cdef unsigned char[BLOCK] some
    cdef tuple term
    cdef Column column
    cdef int each
    memset(rows, 0, n)
    for term in terms:
        memset(some, 1, n)
        for place in term:
            column = <Column>frame.columns[place]
            if column.mask is not NULL:
                for each in range(n):
                    some[each] &= column.mask[low + each]
        for each in range(n):
            rows[each] |= some[each]
    return 0


cdef class Clause:
    """When, whether and how: of a spawn, an evaluation or a close.

    Parameters
    ----------
    pacing : int
        Number of the pacing.
    local : bool
        Whether the pacing counts from the spawn.
    condition : Node or None
    value : Node or None
        What the stream is extended by; None for spawns and closes.
    binding : list of Node or None
        Values of all parameters that the condition asks for: it is false of every other instance.
    """

    def __init__(self, int pacing, bint local, condition, value, binding):
        self.pacing, self.local, self.condition, self.value = pacing, local, condition, value
        self.binding = binding

    def columnar(self):
        """Whether the condition can be computed in columns, and whether the value can."""
        values = self.value is not None and self.value.columnar and self.value.family != OBJECT
        return self.condition is None or self.condition.columnar, values


cdef class Task:
    """The spawn, the evaluation or the close of a stream.

    Parameters
    ----------
    stream : Stream
    clauses : list of Clause
        One for spawns and closes.
    arguments : list of Node or None
        Of a spawn: the values of the parameters.
    emits : bool
        Whether values become rows.
    pacings : list of (int, int, int)
        Of a spawn: the local pacings of the stream with their periods in seconds, as fractions.
    """

    def __init__(self, Stream stream, list clauses, arguments, bint emits, pacings):
        cdef Clause each
        self.stream, self.clauses, self.arguments, self.emits, self.pacings = stream, clauses, arguments, emits, pacings
        self.bound = stream.keyed
        for each in clauses:
            self.bound = self.bound and each.binding is not None
            self.has_local = self.has_local or each.local
            if stream.map is not None and each.binding is not None and (<Node>each.binding[0]).celled:
                each.key = each.binding[0]
        if stream.map is not None and arguments is not None and (<Node>arguments[0]).celled:
            self.key = arguments[0]

    def compute_in_columns(self, bint whole):
        """Compute the values of a batch before its rows are taken; not `whole`: only which rows have one."""
        self.whole = whole

    def columnar(self):
        """Whether all conditions can be computed in columns, and whether all values can."""
        found = [(<Clause>each).columnar() for each in self.clauses]
        return all(condition for condition, _ in found), all(value for _, value in found)

    cdef int fill(self, Frame frame, list terms) except -1:
        """Compute the column of a batch; 0 where it has to be taken row by row."""
        cdef Py_ssize_t rows = frame.rows, low
        cdef Column column = Column.__new__(Column)
        cdef int n
        column.own = True
        column.mask = <unsigned char*>calloc(rows + 1, 1)
        if self.whole:
            column.cells = <uint64_t*>malloc((rows + 1) * sizeof(uint64_t))
        if column.mask is NULL or (self.whole and column.cells is NULL):
            raise MemoryError
        for low in range(0, rows, BLOCK):
            n = <int>min(<Py_ssize_t>BLOCK, rows - low)
            if not self.fill_block(
                frame, terms, low, n, column.mask + low, <unsigned long long*>column.cells + low if self.whole else NULL
            ):
                return 0
        if self.whole and memchr(column.mask, 0, rows) is NULL:
            free(column.mask)
            column.mask = NULL
        self.column = column
        if self.whole:
            frame.columns[self.stream.number] = column
        return 1

    cdef int fill_block(
        self, Frame frame, list terms, Py_ssize_t low, int n, unsigned char* mask, unsigned long long* cells
    ) except -1:
        """The first clause that is active and true gives the value."""
        cdef unsigned char[BLOCK] rows
        cdef Cell[BLOCK] found
        cdef Clause clause
        cdef int each
        for clause in self.clauses:
            active_rows(frame, <tuple>terms[clause.pacing], low, n, rows)
            for each in range(n):
                rows[each] &= not mask[each]
            if clause.condition is not None:
                if not clause.condition.fill(frame, low, n, found, rows):
                    return 0
                for each in range(n):
                    rows[each] = rows[each] and found[each].i
            if cells is not NULL:
                if not clause.value.fill(frame, low, n, found, rows):
                    return 0
                for each in range(n):
                    if rows[each]:
                        cells[each] = found[each].u
            for each in range(n):
                mask[each] |= rows[each]
        return 1


cdef class Closer:
    """The close clause of a stream; `narrow` where it waits for instances whose newest values have changed."""

    def __init__(self, Stream stream, Clause clause, bint narrow):
        self.stream, self.clause, self.narrow, self.waiting = stream, clause, narrow, []

    def watch(self, Stream stream):
        """Hear of the values of a stream, and of their end."""
        stream.closers.append(self)

    cdef int hear(self, Instance instance) except -1:
        if not instance.waiting:
            instance.waiting = True
            self.waiting.append(instance)
        return 0

    def hear_all(self):
        """Look at every instance the next time."""
        cdef Instance each
        for each in list(self.stream.table.values()) if self.stream.keyed else [self.stream.one]:
            if each is not None:
                self.hear(each)
