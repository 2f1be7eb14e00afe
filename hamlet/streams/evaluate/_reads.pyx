"""Nodes that read: parameters, values of streams, windows, aggregates over instances."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from hamlet.streams.evaluate._cells cimport BOOL, INT, OBJECT, UINT, Cell, unboxed, wide_object
from hamlet.streams.evaluate._columns cimport Column, Frame
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance, Store, Stream, Tally
from hamlet.streams.evaluate._windows cimport Window, WindowTable


cdef class ParameterNode(Node):
    """A parameter of the instance; `alone` where it is the only one, and so the key itself.

    `celled` where instances of the stream are found by cell.
    """

    cdef int index
    cdef bint alone

    def __init__(self, int family, int index, bint alone, bint celled):
        self.family, self.index, self.alone, self.celled = family, index, alone, celled

    cdef int num(self, Instance me, Cell* out) except -1:
        if self.celled:
            out.u = me.cell
            return 1
        out[0] = unboxed(me.key if self.alone else (<tuple>me.key)[self.index], self.family)
        return 1

    cdef object obj(self, Instance me):
        return me.key if self.alone else (<tuple>me.key)[self.index]


cdef object key_of(list arguments, Instance me):
    """The key of an instance: the only argument, a tuple of several; None where one has no value."""
    cdef Node each
    cdef object value
    cdef list found
    if len(arguments) == 1:
        return (<Node>arguments[0]).obj(me)
    found = []
    for each in arguments:
        value = each.obj(me)
        if value is None:
            return None
        found.append(value)
    return tuple(found)


cdef class PlainRead(Node):
    """The newest value of a stream without parameters."""

    cdef Stream stream

    def __init__(self, Stream stream):
        self.family, self.stream, self.coded = stream.family, stream, stream.words is not None
        self.celled = self.coded or stream.family in (BOOL, INT, UINT)
        self.columnar = self.coded or stream.family != OBJECT

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Instance one = self.stream.one
        if one is None or one.count == 0:
            return 0
        out[0] = one.last
        return 1

    cdef object obj(self, Instance me):
        cdef Instance one = self.stream.one
        if one is None or one.count == 0:
            return None
        return self.stream.newest(one)

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Column column = <Column>frame.columns[self.stream.number]
        cdef int64_t place
        cdef int each
        cdef bint stale = False
        if column.mask is not NULL:
            for each in range(n):
                stale |= rows[each] and not column.mask[low + each]
        if not stale:
            memcpy(out, column.cells + low, n * sizeof(Cell))
            return 1
        column.pack(self.stream, frame.rows)
        for each in range(n):
            place = column.earlier + column.rank[low + each] - 1
            if place >= 0:
                out[each].u = column.packed[place]
            else:
                rows[each] = 0
        return 1


cdef enum:
    NOW = 0
    OFFSET = 1
    HOLD = 2
    GET = 3
    FRESH = 4
    TIME = 5


cdef class ReadNode(Node):
    """A value of a stream, of any access and instance; `own` where the instance read is the one that reads."""

    cdef Stream stream
    cdef Store store
    cdef int access
    cdef int64_t amount
    cdef object ago
    cdef list arguments
    cdef bint own
    cdef bint by_cell

    def __init__(self, Store store, Stream stream, int access, amount, list arguments, bint own):
        self.family = BOOL if access == FRESH else stream.family
        self.coded = access != FRESH and stream.words is not None
        self.celled = self.coded or self.family in (BOOL, INT, UINT)
        self.columnar = not stream.keyed and access in (OFFSET, GET, FRESH) and (self.family != OBJECT or self.coded)
        self.store, self.stream, self.access, self.arguments, self.own = store, stream, access, arguments, own
        self.by_cell = stream.map is not None and (<Node>arguments[0]).celled
        self.amount, self.ago = amount if access == OFFSET else 0, amount

    cdef Instance target(self, Instance me):
        cdef object key
        cdef Cell cell
        if self.own:
            return me
        if not self.stream.keyed:
            return self.stream.one
        if self.by_cell:
            return self.stream.find_cell(cell.u) if (<Node>self.arguments[0]).num(me, &cell) else None
        key = key_of(self.arguments, me)
        return None if key is None else self.stream.find(key)

    cdef int64_t place(self, Instance target):
        """Which of the kept values is meant, from 0; -1 for none."""
        cdef bint fresh = target.fresh == self.store.step
        cdef int64_t back = 0
        if self.access == OFFSET:
            back = self.amount - (0 if fresh else 1)
        elif self.access == GET and not fresh:
            return -1
        return target.count - 1 - back

    cdef int num(self, Instance me, Cell* out) except -1:
        cdef Instance target = self.target(me)
        cdef int64_t place
        if self.access == FRESH:
            out.i = target is not None and target.fresh == self.store.step
            return 1
        if target is None or target.count == 0:
            return 0
        if self.access == TIME:
            return self.earlier_cell(target, out)
        place = self.place(target)
        if place < 0:
            return 0
        out[0] = target.last if place == target.count - 1 else target.ring[place % self.stream.depth]
        return 1

    cdef object obj(self, Instance me):
        cdef Instance target
        cdef int64_t place
        if self.family != OBJECT:
            return Node.obj(self, me)
        target = self.target(me)
        if target is None or target.count == 0:
            return None
        if self.access == TIME:
            return self.earlier(target)
        place = self.place(target)
        if place < 0:
            return None
        return self.stream.kept_at(target, place)

    cdef int fill(self, Frame frame, Py_ssize_t low, int n, Cell* out, unsigned char* rows) except -1:
        cdef Column column = <Column>frame.columns[self.stream.number]
        cdef int64_t place
        cdef int each
        cdef bint fresh = True
        if self.access == FRESH:
            for each in range(n):
                out[each].i = column.mask is NULL or column.mask[low + each]
            return 1
        column.pack(self.stream, frame.rows)
        if column.rank is NULL:
            for each in range(n):
                place = column.earlier + low + each - self.amount
                if place >= 0:
                    out[each].u = column.packed[place]
                else:
                    rows[each] = 0
            return 1
        for each in range(n):
            fresh = column.mask[low + each]
            place = column.earlier + column.rank[low + each] - 1
            if self.access == OFFSET:
                place -= self.amount - (0 if fresh else 1)
            if place < 0 or (self.access == GET and not fresh):
                rows[each] = 0
            else:
                out[each].u = column.packed[place]
        return 1

    cdef int earlier_cell(self, Instance target, Cell* out) except -1:
        """The newest value that is old enough, as a cell."""
        cdef object value = self.earlier(target)
        if value is None:
            return 0
        if self.coded:
            out.i = self.store.words.intern(value)
        else:
            out[0] = unboxed(value, self.family)
        return 1

    cdef object earlier(self, Instance target):
        """The newest value that is old enough."""
        horizon = wide_object(self.store.now) - self.ago
        found = None
        for time, value in target.moments:
            if time > horizon:
                break
            found = value
        return found


cdef class WindowNode(Node):
    """What a window holds now."""

    cdef WindowTable table
    cdef list arguments
    cdef bint asks             # whether the arguments say which window is read

    def __init__(self, WindowTable table, list arguments):
        self.family, self.table, self.arguments = table.result, table, arguments
        self.asks = table.per_target and not table.paired

    cdef Window window(self, Instance me):
        return self.table.find(me, key_of(self.arguments, me) if self.asks else None)

    cdef int num(self, Instance me, Cell* out) except -1:
        return self.window(me).read(out)

    cdef object obj(self, Instance me):
        return self.window(me).read_object() if self.family == OBJECT else Node.obj(self, me)


cdef class TallyNode(Node):
    """An aggregate over instances."""

    cdef Tally tally

    def __init__(self, Tally tally):
        self.family, self.tally = tally.result, tally

    cdef int num(self, Instance me, Cell* out) except -1:
        return self.tally.read(out)
