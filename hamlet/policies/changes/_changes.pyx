"""The operators of policies, time-point by time-point: each takes what changes in its children's relations.

Contract
--------
**Rows** are tuples of codes. A `Block` says which rows are in a relation at a time-point that were not in it at the one
before, and the other way round; no row is in both lists. At time-points without a block nothing changes.
**Beginning**: an operator that is made from what the operator over columns keeps takes the relations at the time-point
before to be empty: the first block of every relation has all of its rows.
**State** is that of `hamlet.policies.operators`, by valuation; `hamlet.policies.changes.made` moves it from
one to the other, and nothing here is kept for longer than there.
A change costs some look-ups for each row that it adds to, or takes from, a relation, whatever else is in it.
"""

from collections import OrderedDict, deque

cimport cython
from cpython.object cimport PyTypeObject, visitproc
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

cdef extern from "Python.h":
    int PyObject_GC_IsTracked(PyObject* found)
    void PyObject_GC_UnTrack(void* found)
    int PyGC_Disable()
    int PyGC_Enable()

cdef frozenset CONTAINERS = frozenset((dict, set, list, OrderedDict, deque))


cdef int _hide(PyObject* found, void* _) except -1:
    cdef object kind = type(<object>found)
    if kind in CONTAINERS:
        if PyObject_GC_IsTracked(found):
            PyObject_GC_UnTrack(found)
    elif kind is Index:
        (<PyTypeObject*>kind).tp_traverse(found, <visitproc>_hide, NULL)
    return 0


def hide(list operators):
    """Keep what operators keep from Python's cyclic garbage collector, which would look through it again and again.

    A dict of a million rows takes it up to 100 ms, for which a push of one event waits. Rows are tuples of integers, so
    no cycle leads through them.
    """
    cdef object each, kind
    for each in operators:
        kind = type(each)
        (<PyTypeObject*>kind).tp_traverse(<PyObject*>each, <visitproc>_hide, NULL)


def advance(list operators, Line line):
    """Have operators, children before parents, take what is new and decide as much as can be."""
    cdef bint collects = PyGC_Disable()  # a dict that takes a new row is seen by the collector until it is hidden again
    try:
        for each in operators:
            (<Operator>each).step(line)
        hide(operators)
    finally:
        if collects:
            PyGC_Enable()


cdef class Line:
    """The time-points that are known; as `hamlet.policies.operators.node.Timeline`."""

    def __cinit__(self):
        self.room = 64
        self.times = <int64_t*>malloc(self.room * sizeof(int64_t))
        if self.times == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.times)

    def __init__(self, list times, base, bound):
        self.base = self.known = base
        self.bound = bound
        self.tables = {}
        for time in times:
            self.add(time)

    cpdef int add(self, int64_t time) except -1:
        """One more time-point."""
        cdef Py_ssize_t count = self.known - self.base
        cdef int64_t* fresh
        if count == self.room:
            fresh = <int64_t*>malloc(2 * self.room * sizeof(int64_t))
            if fresh == NULL:
                raise MemoryError
            memcpy(fresh, self.times, count * sizeof(int64_t))
            free(self.times)
            self.times = fresh
            self.room *= 2
        self.times[count] = time
        self.known += 1
        if time > self.bound:
            self.bound = time
        return 0

    cpdef int forget(self, int64_t point) except -1:
        """Let go of the time-stamps before a time-point, where they are many."""
        cdef Py_ssize_t gone = point - self.base
        if gone > 32 and 2 * gone > self.known - self.base:
            memmove(self.times, self.times + gone, (self.known - point) * sizeof(int64_t))
            self.base = point
        return 0

    def tolist(self):
        """The time-stamps from `base` on."""
        return [self.times[place] for place in range(self.known - self.base)]

    @property
    def nbytes(self):
        """Bytes that are held."""
        return self.room * 8

    cpdef int64_t at(self, int64_t point):
        """The time-stamp of a time-point."""
        return self.times[point - self.base]

    cdef int64_t first_at_least(self, int64_t time):
        """The first time-point that is not earlier; `known` where there is none."""
        cdef Py_ssize_t low = 0, high = self.known - self.base, middle
        while low < high:
            middle = (low + high) >> 1
            if self.times[middle] < time:
                low = middle + 1
            else:
                high = middle
        return low + self.base

    cdef int64_t last_at_most(self, int64_t time):
        """The last time-point that is not later."""
        return self.first_at_least(time + 1) - 1

    cdef int64_t next_time(self, int64_t point):
        """A time-stamp that this time-point, and later ones, do not stay below."""
        return self.times[point - self.base] if point < self.known else self.bound


@cython.no_gc
cdef class Block:
    """What changes at a time-point.

    Blocks wait by the hundred thousand. Python's collector looks through what it tracks again and again: it tracks no
    tuples of tuples of integers, and no cycle leads through a block.
    """

    def __init__(self, int64_t point, gone, come):
        self.point, self.gone, self.come = point, tuple(gone), tuple(come)


cdef Block netted(int64_t point, list gone, list come):
    """A block without the rows that go and come; None where nothing is left."""
    cdef set both
    if gone and come:
        both = set(gone).intersection(come)
        if both:
            gone = [row for row in gone if row not in both]
            come = [row for row in come if row not in both]
    if not gone and not come:
        return None
    return Block(point, gone, come)


cdef class Queue:
    """The blocks of a child that have not been taken yet."""

    def __init__(self):
        self.blocks = []
        self.head = 0
        PyObject_GC_UnTrack(<PyObject*>self.blocks)  # of a list nothing changes that

    cpdef put(self, Block block):
        """One more block, not earlier than the last one."""
        cdef Block last
        if self.head < len(self.blocks):
            last = <Block>self.blocks[len(self.blocks) - 1]
            if last.point == block.point:
                self.blocks.pop()
                block = netted(block.point, list(last.gone + block.gone), list(last.come + block.come))
                if block is None:
                    return
        self.blocks.append(block)

    cdef Block take(self, int64_t point):
        """The block of a time-point; None where it has none. Earlier ones have been taken."""
        cdef Block block
        if self.head == len(self.blocks):
            return None
        block = <Block>self.blocks[self.head]
        if block.point != point:
            return None
        self.head += 1
        if self.head == len(self.blocks):
            self.blocks.clear()
            self.head = 0
        elif self.head > 64 and 2 * self.head > len(self.blocks):
            del self.blocks[:self.head]
            self.head = 0
        return block

    cdef int64_t next(self, int64_t until):
        """The time-point of the first block, at most `until`."""
        if self.head == len(self.blocks):
            return until
        return min((<Block>self.blocks[self.head]).point, until)

    def __len__(self):
        """How many blocks there are."""
        return len(self.blocks) - self.head

    @property
    def waiting(self):
        """The blocks."""
        return self.blocks[self.head:]


cdef class Operator:
    """One operator.

    Attributes
    ----------
    children : list of Operator
    queues : list of Queue
        Of each child.
    outs : list of Queue
        Of those who take its blocks.
    seen, done : int
        The first time-points whose children, or whose own relation, are not known.
    """

    def __init__(self, list children):
        cdef Operator child
        self.children, self.queues, self.outs = children, [], []
        for child in children:
            queue = Queue()
            self.queues.append(queue)
            child.outs.append(queue)
        self.seen = self.done = 0
        self.fresh = True

    cdef int emit(self, int64_t point, list gone, list come) except -1:
        cdef Block block = netted(point, gone, come)
        if block is not None:
            for queue in self.outs:
                (<Queue>queue).put(block)
        return 0

    cdef int64_t until(self, Line line):
        """The first time-point that not all children have decided."""
        cdef int64_t found = line.known
        for child in self.children:
            if (<Operator>child).done < found:
                found = (<Operator>child).done
        return found

    cpdef int step(self, Line line) except -1:
        """Take what the children decided, and decide as much as can be."""
        cdef int64_t until = self.until(line), point = self.seen
        cdef Queue one, two
        if until > point:
            one = <Queue>self.queues[0]
            two = <Queue>self.queues[1] if len(self.queues) > 1 else None
            if self.fresh:
                self.fresh = False
                self.at(line, point, one.take(point), None if two is None else two.take(point))
                point += 1
            while True:
                point = one.next(until)
                if two is not None:
                    point = two.next(point)
                if point >= until:
                    break
                self.at(line, point, one.take(point), None if two is None else two.take(point))
        self.seen = self.done = until
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        """Take the blocks of a time-point; None is no block."""
        raise NotImplementedError

    def base(self):
        """The rows of each child; of an only child nobody asks."""
        return [[] for _ in self.children]

    @property
    def rows(self):
        """Valuations that are kept."""
        return 0

    @property
    def oldest(self):
        """The first time-point whose time-stamp is still needed."""
        return self.seen - 1


cdef class Index:
    """Rows by the values at some places."""

    def __init__(self, tuple on):
        self.on, self.found, self.rows = on, {}, 0

    cdef int add(self, tuple row) except -1:
        key = key_of(row, self.on)
        here = self.found.get(key)
        self.rows += 1
        if here is None:
            self.found[key] = row
        elif type(here) is set:
            (<set>here).add(row)
        else:
            here = {here, row}
            PyObject_GC_UnTrack(<PyObject*>here)
            self.found[key] = here
        return 0

    cdef int remove(self, tuple row) except -1:
        key = key_of(row, self.on)
        here = self.found[key]
        self.rows -= 1
        if type(here) is not set:
            del self.found[key]
            return 0
        (<set>here).remove(row)
        if len(<set>here) == 1:
            self.found[key] = (<set>here).pop()
        return 0

    cdef object get(self, object key):
        """The rows of a key, to go through."""
        here = self.found.get(key)
        if here is None:
            return ()
        return tuple(<set>here) if type(here) is set else (here,)

    cdef list all(self):
        cdef list rows = []
        for here in self.found.values():
            if type(here) is set:
                rows.extend(here)
            else:
                rows.append(here)
        return rows


cdef Block first_block(int64_t point, Block block, set held):
    """The first block of a child whose relation at the time-point before is known."""
    return netted(point, list(held), [] if block is None else list(block.come)) if held else block


cdef int count_begun(dict counts, rows, list come) except -1:
    """Count one more stretch of each row; those that hold from now on come. An end may have been counted before."""
    cdef Py_ssize_t count
    for row in rows:
        count = counts.get(row, 0) + 1
        if count == 1:
            come.append(row)
        if count:
            counts[row] = count
        else:
            del counts[row]
    return 0


cdef int count_ended(dict counts, rows, list gone) except -1:
    """Count one stretch of each row less; those that hold no more are gone."""
    cdef Py_ssize_t count
    for row in rows:
        count = counts.get(row, 0) - 1
        if count:
            counts[row] = count
        else:
            del counts[row]
            gone.append(row)
    return 0
