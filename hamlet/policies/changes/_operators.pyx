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
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

cdef int64_t NEVER = (<int64_t>1) << 61
cdef int64_t POOLED = (<int64_t>1) << 62


cdef class Line:
    """The time-points that are known; as `hamlet.policies.operators.node.Timeline`."""

    cdef int64_t* times
    cdef Py_ssize_t room
    cdef public int64_t base, known, bound
    cdef public dict tables

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

    cdef readonly int64_t point
    cdef readonly tuple gone, come

    def __init__(self, int64_t point, gone, come):
        self.point, self.gone, self.come = point, tuple(gone), tuple(come)


cdef Block _netted(int64_t point, list gone, list come):
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

    cdef list blocks
    cdef Py_ssize_t head

    def __init__(self):
        self.blocks = []
        self.head = 0

    cpdef put(self, Block block):
        """One more block, not earlier than the last one."""
        cdef Block last
        if self.head < len(self.blocks):
            last = <Block>self.blocks[len(self.blocks) - 1]
            if last.point == block.point:
                self.blocks.pop()
                block = _netted(block.point, list(last.gone + block.gone), list(last.come + block.come))
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

    cdef readonly list children, queues, outs
    cdef public int64_t seen, done
    cdef bint fresh

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
        cdef Block block = _netted(point, gone, come)
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


cdef inline object key_of(tuple row, tuple on):
    """The values at some places, a single one as it is."""
    cdef Py_ssize_t count = len(on)
    if count == 1:
        return row[<Py_ssize_t>on[0]]
    if count == 2:
        return (row[<Py_ssize_t>on[0]], row[<Py_ssize_t>on[1]])
    return tuple([row[<Py_ssize_t>place] for place in on])


cdef class Index:
    """Rows by the values at some places."""

    cdef tuple on
    cdef dict found
    cdef Py_ssize_t rows

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
            self.found[key] = {here, row}
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


# ------------------------------------------------------------------------------------------- without children


cdef class Events(Operator):
    """The tuples of a predicate, those that have some constants and equal places; `columns` of them."""

    cdef object key
    cdef tuple constants, equal, columns
    cdef list now

    def __init__(self, key, tuple constants, tuple equal, tuple columns):
        Operator.__init__(self, [])
        self.key, self.constants, self.equal, self.columns = key, constants, equal, columns
        self.now = []

    cpdef int step(self, Line line) except -1:
        cdef int64_t point = self.seen
        cdef list tuples = line.tables.get(self.key)
        cdef Py_ssize_t at = 0, count = 0 if tuples is None else len(tuples)
        cdef list come
        cdef tuple row
        while point < line.known:
            if not self.now:
                if at == count:
                    break
                point = (<tuple>tuples[at])[0]
            come = []
            while at < count and (<tuple>tuples[at])[0] == point:
                row = shaped(<tuple>(<tuple>tuples[at])[1], self.constants, self.equal, self.columns)
                if row is not None:
                    come.append(row)
                at += 1
            if len(come) > 1:
                come = list(dict.fromkeys(come))
            self.emit(point, self.now, come)
            self.now = come
            point += 1
        self.seen = self.done = line.known
        return 0


cdef tuple shaped(tuple row, tuple constants, tuple equal, tuple columns):
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


cdef class Positions(Operator):
    """``tp(i)``, ``ts(t)``, and ``tpts(i, t)``."""

    cdef str name
    cdef list now

    def __init__(self, str name):
        Operator.__init__(self, [])
        self.name, self.now = name, []

    cpdef int step(self, Line line) except -1:
        cdef int64_t point
        for point in range(self.seen, line.known):
            time = line.at(point)
            come = [{"tp": (point,), "ts": (time,), "tpts": (point, time)}[self.name]]
            self.emit(point, self.now, come)
            self.now = come
        self.seen = self.done = line.known
        return 0


cdef class Constants(Operator):
    """Some rows, at all time-points."""

    cdef list held

    def __init__(self, list held):
        Operator.__init__(self, [])
        self.held = held

    cpdef int step(self, Line line) except -1:
        if self.fresh and line.known > self.seen:
            self.fresh = False
            self.emit(self.seen, [], self.held)
        self.seen = self.done = line.known
        return 0


# ----------------------------------------------------------------------------------------------- without time


cdef class Shapes(Operator):
    """The rows with some constants and equal places; some of their columns."""

    cdef tuple constants, equal, columns
    cdef dict counts

    def __init__(self, Operator child, tuple constants, tuple equal, tuple columns, bint counted):
        Operator.__init__(self, [child])
        self.constants, self.equal, self.columns = constants, equal, columns
        self.counts = {} if counted else None

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        cdef dict counts = self.counts
        cdef Py_ssize_t count
        cdef tuple shape
        if one is None:
            return 0
        for row in one.gone:
            shape = shaped(<tuple>row, self.constants, self.equal, self.columns)
            if shape is None:
                continue
            if counts is not None:
                count = counts[shape] - 1
                if count:
                    counts[shape] = count
                    continue
                del counts[shape]
            gone.append(shape)
        for row in one.come:
            shape = shaped(<tuple>row, self.constants, self.equal, self.columns)
            if shape is None:
                continue
            if counts is not None:
                count = counts.get(shape, 0)
                counts[shape] = count + 1
                if count:
                    continue
            come.append(shape)
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return 0 if self.counts is None else len(self.counts)


cdef class Filters(Operator):
    """The rows that pass a test."""

    cdef object test

    def __init__(self, Operator child, test):
        Operator.__init__(self, [child])
        self.test = test

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        if one is None:
            return 0
        test = self.test
        return self.emit(point, [row for row in one.gone if test(row)], [row for row in one.come if test(row)])


cdef class Compare:
    """A test of two codes of a row, or of one and a number, where codes are in the order of values."""

    cdef str word
    cdef Py_ssize_t left, right
    cdef int64_t constant
    cdef bint negated
    cdef object other

    def __init__(self, str word, Py_ssize_t left, Py_ssize_t right, int64_t constant, bint negated, other):
        self.word, self.left, self.right, self.constant, self.negated = word, left, right, constant, negated
        self.other = other  # the test where an integer is too large to be its own code

    def __call__(self, tuple row):
        cdef int64_t one = row[self.left]
        cdef int64_t two = self.constant if self.right < 0 else row[self.right]
        cdef bint found
        if self.word == "=":
            return (one == two) != self.negated
        if one >= POOLED or two >= POOLED:
            return self.other(row)
        if self.word == "<":
            found = one < two
        elif self.word == ">":
            found = one > two
        elif self.word == "<=":
            found = one <= two
        else:
            found = one >= two
        return found != self.negated


cdef class Extends(Operator):
    """The rows with one more column."""

    cdef object term

    def __init__(self, Operator child, term):
        Operator.__init__(self, [child])
        self.term = term

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        if one is None:
            return 0
        term = self.term
        return self.emit(
            point, [(<tuple>row) + (term(row),) for row in one.gone], [(<tuple>row) + (term(row),) for row in one.come]
        )


cdef class Joins(Operator):
    """AND: the left columns, then those of the right side that are not shared."""

    cdef Index left, right
    cdef tuple rest

    def __init__(self, Operator left, Operator right, tuple on_left, tuple on_right, tuple rest):
        Operator.__init__(self, [left, right])
        self.left, self.right, self.rest = Index(on_left), Index(on_right), rest

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        if one is not None:
            for row in one.gone:
                for other in self.right.get(key_of(<tuple>row, self.left.on)):
                    gone.append(self.both(<tuple>row, <tuple>other))
                self.left.remove(<tuple>row)
        if two is not None:
            for row in two.gone:
                for other in self.left.get(key_of(<tuple>row, self.right.on)):
                    gone.append(self.both(<tuple>other, <tuple>row))
                self.right.remove(<tuple>row)
            for row in two.come:
                for other in self.left.get(key_of(<tuple>row, self.right.on)):
                    come.append(self.both(<tuple>other, <tuple>row))
                self.right.add(<tuple>row)
        if one is not None:
            for row in one.come:
                for other in self.right.get(key_of(<tuple>row, self.left.on)):
                    come.append(self.both(<tuple>row, <tuple>other))
                self.left.add(<tuple>row)
        return self.emit(point, gone, come)

    cdef tuple both(self, tuple left, tuple right):
        if not self.rest:
            return left
        return left + tuple([right[<Py_ssize_t>place] for place in self.rest])

    def base(self):
        """The rows of each child."""
        return [self.left.all(), self.right.all()]

    @property
    def rows(self):
        """Valuations that are kept."""
        return self.left.rows + self.right.rows


cdef class Differences(Operator):
    """AND NOT: the left rows without those that the right side has."""

    cdef Index left, right

    def __init__(self, Operator left, Operator right, tuple on_left, tuple on_right):
        Operator.__init__(self, [left, right])
        self.left, self.right = Index(on_left), Index(on_right)

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        if one is not None:
            for row in one.gone:
                if key_of(<tuple>row, self.left.on) not in self.right.found:
                    gone.append(row)
                self.left.remove(<tuple>row)
        if two is not None:
            for row in two.gone:
                self.right.remove(<tuple>row)
                come.extend(self.left.get(key_of(<tuple>row, self.right.on)))
            for row in two.come:
                self.right.add(<tuple>row)
                gone.extend(self.left.get(key_of(<tuple>row, self.right.on)))
        if one is not None:
            for row in one.come:
                if key_of(<tuple>row, self.left.on) not in self.right.found:
                    come.append(row)
                self.left.add(<tuple>row)
        return self.emit(point, gone, come)

    def base(self):
        """The rows of each child."""
        return [self.left.all(), self.right.all()]

    @property
    def rows(self):
        """Valuations that are kept."""
        return self.left.rows + self.right.rows


cdef class Unions(Operator):
    """OR; `order` are the right side's columns in the order of the left side's."""

    cdef dict sides  # 1: the left side has it, 2: the right side, 3: both
    cdef tuple order, back

    def __init__(self, Operator left, Operator right, tuple order):
        Operator.__init__(self, [left, right])
        self.sides, self.order = {}, order
        self.back = tuple([order.index(place) for place in range(len(order))])

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        if one is not None:
            self.take(one, 1, False, gone, come)
        if two is not None:
            self.take(two, 2, True, gone, come)
        return self.emit(point, gone, come)

    cdef int take(self, Block block, int side, bint turned, list gone, list come) except -1:
        cdef int known
        for row in block.gone:
            if turned:
                row = shaped(<tuple>row, (), (), self.order)
            known = <int>self.sides[row] - side
            if known:
                self.sides[row] = known
            else:
                del self.sides[row]
                gone.append(row)
        for row in block.come:
            if turned:
                row = shaped(<tuple>row, (), (), self.order)
            known = self.sides.get(row, 0)
            self.sides[row] = known + side
            if not known:
                come.append(row)
        return 0

    def base(self):
        """The rows of each child."""
        left = [row for row, side in self.sides.items() if side & 1]
        return [left, [shaped(row, (), (), self.back) for row, side in self.sides.items() if side & 2]]

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.sides)


# ------------------------------------------------------------------------------------------------- aggregations


cdef class Aggregates(Operator):
    """An aggregation; `make` gives the state of a group, and `code` a result."""

    cdef Py_ssize_t place
    cdef tuple groups
    cdef object make, code, value, nothing
    cdef dict states
    cdef bint counting
    cdef Py_ssize_t count

    def __init__(self, Operator child, str operator, Py_ssize_t place, tuple groups, make, code, value, nothing):
        Operator.__init__(self, [child])
        self.place, self.groups, self.make, self.code, self.value = place, groups, make, code, value
        self.nothing, self.states = nothing, {}
        self.counting = operator == "CNT"

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef dict touched = {}
        cdef list gone = [], come = []
        cdef tuple result
        if not self.groups and () not in self.states:  # the first time-point
            touched[()] = None
            self.states[()] = 0 if self.counting else self.make()
        if one is not None:
            for row in one.gone:
                self.change(<tuple>row, -1, touched)
            for row in one.come:
                self.change(<tuple>row, 1, touched)
        for key, before in touched.items():
            state = self.states[key]
            result = self.result(<tuple>key, state)
            if not (state if self.counting else state.size) and self.groups:
                del self.states[key]
            if result == before:
                continue
            if before is not None:
                gone.append(before)
            if result is not None:
                come.append(result)
        return self.emit(point, gone, come)

    cdef int change(self, tuple row, int sign, dict touched) except -1:
        cdef tuple key = shaped(row, (), (), self.groups)
        state = self.states.get(key)
        if key not in touched:
            touched[key] = None if state is None else self.result(key, state)
        if self.counting:
            self.states[key] = sign if state is None else state + sign
            return 0
        if state is None:
            state = self.states[key] = self.make()
        value = self.value(row[self.place])
        self.count += sign
        if sign > 0:
            state.add(value)
        else:
            state.remove(value)
        return 0

    cdef tuple result(self, tuple key, state):
        if self.counting:
            if not state:
                return None if self.groups else (self.nothing,)
            return (state,) + key
        if not state.size:
            return None if self.groups else (self.nothing,)
        return (self.code(state.result()),) + key

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.states) if self.counting else self.count


# ------------------------------------------------------------------------------------------ one time-point away


cdef class Shifts(Operator):
    """PREV and NEXT: what held one time-point before, or holds one later, where the time between is in an interval."""

    cdef int64_t least, most
    cdef bint back, shown
    cdef set held  # of the child, as it is shown or would be
    cdef int64_t start

    def __init__(self, Operator child, bint back, least, most, list held):
        Operator.__init__(self, [child])
        self.back, self.least, self.most = back, least, NEVER if most is None else most
        self.held, self.shown, self.start = set(held), False, -1

    cpdef int step(self, Line line) except -1:
        cdef int64_t high = self.until(line), done, point, other, gap
        cdef Queue queue = <Queue>self.queues[0]
        cdef Block block
        if self.fresh:
            self.fresh, self.start = False, self.seen
        done = max(self.done, min(high + 1, line.known) if self.back else high - 1)
        for point in range(self.done, done):
            other = point - 1 if self.back else point + 1
            # NEXT passes by the child's first time-point of all.
            block = None
            while queue.next(other + 1) <= other:
                block = queue.take(queue.next(other + 1))
                if block.point < other:
                    self.held.difference_update(block.gone)
                    self.held.update(block.come)
                    block = None
            if other == self.start:
                block = _first(other, block, self.held)
            if other < 0:
                continue
            gap = line.at(point) - line.at(other)
            if not self.back:
                gap = -gap
            self.move(point, block, self.least <= gap <= self.most)
        self.seen, self.done = high, done
        return 0

    cdef int move(self, int64_t point, Block block, bint shown) except -1:
        cdef list gone = [], come = []
        if self.shown and shown:
            if block is not None:
                gone, come = list(block.gone), list(block.come)
        elif self.shown:
            gone = list(self.held)
        if block is not None:
            self.held.difference_update(block.gone)
            self.held.update(block.come)
        if shown and not self.shown:
            come = list(self.held)
        self.shown = shown
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.held)

    @property
    def relation(self):
        """The rows of the child at the last time-point that was taken, with blocks behind it."""
        blocks = (<Queue>self.queues[0]).waiting
        if self.done - 1 <= self.start < self.seen:  # the first block is still to be taken
            here = [block for block in blocks if block.point == self.start]
            block = _first(self.start, here[0] if here else None, self.held)
            blocks = ([] if block is None else [block]) + blocks[len(here):]
        return list(self.held), blocks

    @property
    def oldest(self):
        """The first time-point whose time-stamp is still needed."""
        return min(self.done, self.seen) - 1


# ------------------------------------------------------------------------------------------------- the past


cdef Block _first(int64_t point, Block block, set held):
    """The first block of a child whose relation at the time-point before is known."""
    return _netted(point, list(held), [] if block is None else list(block.come)) if held else block


cdef class Pasts(Operator):
    """ONCE, and SINCE from now on: what is in the right side, and what was lately.

    Parameters
    ----------
    right, left : Operator
        The left one may be None.
    most : int or None
    negated : bool
    key : tuple of int
        The right columns that the left side's columns equal.
    alive : list of (int, tuple)
        What was in the right side, with the time until which it counts; in the order of these.
    """

    cdef int64_t most
    cdef bint negated, bounded, begun
    cdef tuple key, every
    cdef set now       # what is in the right side
    cdef object past   # what was, by the time until which it counts, the earliest first
    cdef Index index   # both, by key, where there is a left side
    cdef set lefts

    def __init__(self, Operator right, Operator left, most, bint negated, tuple key, list alive):
        Operator.__init__(self, [right] if left is None else [right, left])
        self.bounded, self.most = most is not None, NEVER if most is None else most
        self.negated, self.key, self.now, self.lefts = negated, key, set(), set()
        self.every, self.begun = tuple(range(len(key))), False
        self.past = OrderedDict() if self.bounded else {}
        self.index = None if left is None else Index(key)
        for until, row in alive:
            self.past[row] = until
            if left is not None:
                self.index.add(row)

    cpdef int step(self, Line line) except -1:
        cdef int64_t until, point
        cdef Queue one, two
        if not self.bounded:
            return Operator.step(self, line)
        until = self.until(line)
        one = <Queue>self.queues[0]
        two = <Queue>self.queues[1] if len(self.queues) > 1 else None
        for point in range(self.seen, until):
            self.at(line, point, one.take(point), None if two is None else two.take(point))
        self.seen = self.done = until
        return 0

    cdef bint fails(self, tuple row) except -1:
        """Whether the left side does not hold for a row."""
        return (key_of(row, self.key) in self.lefts) == self.negated

    cdef list failed(self, Block two):
        """The keys for which the left side ceases to hold."""
        cdef list gone = [key_of(<tuple>row, self.every) for row in two.gone]
        cdef list come = [key_of(<tuple>row, self.every) for row in two.come]
        self.lefts.difference_update(gone)
        self.lefts.update(come)
        return come if self.negated else gone

    cdef int drop(self, tuple row) except -1:
        if self.index is not None:
            self.index.remove(row)
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = [], failed
        cdef bint left = self.index is not None
        past = self.past
        failed = [] if two is None else self.failed(two)
        if not self.begun:  # all of the left side is new: what it does not go on with is over
            self.begun = True
            if left:
                for row in [row for row in past if self.fails(<tuple>row)]:
                    del past[row]
                    self.index.remove(<tuple>row)
                failed = []
            come.extend(past)
        if one is not None and one.gone:
            until = line.at(point - 1) + self.most if self.bounded else NEVER
            for row in one.gone:
                self.now.remove(row)
                if left and self.fails(<tuple>row):
                    self.index.remove(<tuple>row)
                    gone.append(row)
                else:
                    past[row] = until
        for key in failed:
            for row in self.index.get(key):
                if past.pop(row, None) is not None:
                    self.index.remove(<tuple>row)
                    gone.append(row)
        if one is not None:
            for row in one.come:
                if past.pop(row, None) is None:
                    come.append(row)
                    if left:
                        self.index.add(<tuple>row)
                self.now.add(row)
        if self.bounded and past:
            now = line.at(point)
            while past:
                row = next(iter(past))
                if past[row] >= now:
                    break
                past.popitem(last=False)
                gone.append(row)
                self.drop(<tuple>row)
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.now) + len(self.past)

    def base(self):
        """The rows of each child."""
        return [list(self.now), [key if len(self.key) != 1 else (key,) for key in self.lefts]]

    def alive(self, Line line):
        """As the parameter."""
        until = line.at(self.seen - 1) + self.most if self.bounded and self.now else NEVER
        return [(until, row) for row, until in self.past.items()] + [(until, row) for row in self.now]


cdef class Delays(Operator):
    """ONCE that does not look at what is now.

    Parameters
    ----------
    least, most : int
        `most` may be None.
    alive : list of (int, int, tuple)
        What was in the child, with the times from which on, and until which, it counts.
    """

    cdef int64_t least, most
    cdef bint bounded
    cdef Py_ssize_t coming  # rows of `enter`
    cdef dict counts       # how many stretches of a row count now
    cdef object enter      # (time, rows): they count from this time on
    cdef object leave      # (time, rows): they count until this time
    cdef set now

    def __init__(self, Operator child, least, most, list alive):
        Operator.__init__(self, [child])
        self.bounded, self.least, self.most = most is not None, least, NEVER if most is None else most
        self.counts, self.now = {}, set()
        self.enter = deque([(after, [row]) for after, _, row in sorted(alive, key=_time_of)])
        self.coming = len(self.enter)
        self.leave = deque()
        if self.bounded:
            self.leave.extend([(until, [row]) for _, until, row in sorted(alive, key=_until_of)])

    cpdef int step(self, Line line) except -1:
        cdef int64_t until = self.until(line), point
        cdef Queue one = <Queue>self.queues[0]
        for point in range(self.seen, until):
            self.at(line, point, one.take(point), None)
        self.seen = self.done = until
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        cdef tuple ended, begun
        cdef int64_t now = line.at(point), before
        cdef dict counts = self.counts
        cdef Py_ssize_t count
        if self.bounded:
            before = line.at(point - 1) if point > line.base else now
            ended = () if one is None else one.gone
            begun = () if one is None else one.come
            if self.now and now - before > self.most - self.least:  # between the two no time-point counts
                ended = tuple(self.now)
                self.now.difference_update(() if one is None else one.gone)
                begun = begun + tuple(self.now)
                self.now.update(begun)
            elif one is not None:
                self.now.difference_update(ended)
                self.now.update(begun)
            if ended:
                self.leave.append((before + self.most, ended))
        else:
            begun = () if one is None else tuple([row for row in one.come if row not in counts])
        if begun:
            self.enter.append((now + self.least, begun))
            self.coming += len(begun)
        while self.enter and self.enter[0][0] <= now:
            entered = self.enter.popleft()[1]
            self.coming -= len(entered)
            for row in entered:
                count = counts.get(row, 0)
                if not count:
                    come.append(row)
                counts[row] = count + 1 if self.bounded else 1
        while self.leave and self.leave[0][0] < now:
            for row in self.leave.popleft()[1]:
                count = counts[row] - 1
                if count:
                    counts[row] = count
                else:
                    del counts[row]
                    gone.append(row)
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.counts) + self.coming

    def alive(self, Line line):
        """As the parameter."""
        cdef dict stretches = {row: [-NEVER] * count for row, count in self.counts.items()}
        cdef dict ends = {}
        for after, rows in self.enter:
            for row in rows:
                stretches.setdefault(row, []).append(after)
        if not self.bounded:
            return [(after, NEVER, row) for row, afters in stretches.items() for after in afters[:1]]
        for until, rows in self.leave:
            for row in rows:
                ends.setdefault(row, []).append(until)
        for row in self.now:
            ends.setdefault(row, []).append(line.at(self.seen - 1) + self.most)
        return [
            (after, until, row)
            for row, afters in stretches.items()
            for after, until in zip(afters, ends[row], strict=True)
        ]


def _time_of(entry):
    return entry[0]


def _until_of(entry):
    return entry[1]


cdef class Throughouts(Operator):
    """HISTORICALLY: what held throughout the interval.

    Parameters
    ----------
    least, most : int
        `most` may be None.
    periods : list of (int, int, tuple)
        What held, with the times after which, and before which, the interval lies in its period; NEVER if it goes on.
    """

    cdef int64_t least, most
    cdef bint bounded
    cdef Py_ssize_t coming  # rows of `enter`
    cdef dict counts
    cdef object enter   # (time, rows): they count behind this time
    cdef object leave   # (time, rows): they do not count from this time on
    cdef set now

    def __init__(self, Operator child, least, most, list periods):
        Operator.__init__(self, [child])
        self.bounded, self.least, self.most = most is not None, least, NEVER if most is None else most
        self.counts, self.now = {}, {row for _, before, row in periods if before == NEVER}
        self.enter = deque([(after, [row]) for after, _, row in sorted(periods, key=_time_of)])
        self.coming = len(self.enter)
        self.leave = deque(
            [(before, [row]) for _, before, row in sorted(periods, key=_until_of) if before < NEVER]
        )

    cpdef int step(self, Line line) except -1:
        cdef int64_t until = self.until(line), point
        cdef Queue one = <Queue>self.queues[0]
        cdef Block block
        for point in range(self.seen, until):
            block = one.take(point)
            if self.fresh:
                self.fresh = False
                block = _first(point, block, self.now)
            self.at(line, point, block, None)
        self.seen = self.done = until
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        cdef int64_t now = line.at(point)
        cdef dict counts = self.counts
        cdef Py_ssize_t count
        if one is not None:
            self.now.difference_update(one.gone)
            self.now.update(one.come)
            if one.gone:
                self.leave.append((now + self.least, one.gone))
            if one.come:
                after = -NEVER if point == 0 else line.at(point - 1) + self.most if self.bounded else NEVER
                self.enter.append((after, one.come))
                self.coming += len(one.come)
        while self.enter and self.enter[0][0] < now:
            entered = self.enter.popleft()[1]
            self.coming -= len(entered)
            for row in entered:
                count = counts.get(row, 0) + 1
                if count == 1:
                    come.append(row)
                if count:
                    counts[row] = count
                else:
                    del counts[row]
        while self.leave and self.leave[0][0] <= now:
            for row in self.leave.popleft()[1]:
                count = counts.get(row, 0) - 1
                if not count:
                    gone.append(row)
                    del counts[row]
                else:
                    counts[row] = count
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.counts) + self.coming

    def periods(self):
        """As the parameter."""
        cdef dict afters = {row: [-NEVER] * count for row, count in self.counts.items() if count > 0}
        cdef dict befores = {}, skipped = {row: -count for row, count in self.counts.items() if count < 0}
        for after, rows in self.enter:
            for row in rows:
                if skipped.get(row, 0):
                    skipped[row] -= 1
                else:
                    afters.setdefault(row, []).append(after)
        for before, rows in self.leave:
            for row in rows:
                befores.setdefault(row, []).append(before)
        for row in self.now:
            befores.setdefault(row, []).append(NEVER)
        return [
            (after, before, row)
            for row, begins in afters.items()
            for after, before in zip(begins, befores[row], strict=True)
        ]


# ------------------------------------------------------------------------------------------------ the future


cdef class Futures(Operator):
    """What is decided where a bound of time is over: a calendar of where rows begin and cease to hold.

    Parameters
    ----------
    right, left : Operator
        The left one may be None.
    least, most : int
    undecided : list of (int, int, tuple)
        Stretches of time-points, first and last, in which rows hold.
    """

    cdef int64_t least, most
    cdef dict counts   # how many stretches of a row there are at the last decided time-point
    cdef dict starts, ends
    cdef Py_ssize_t coming  # rows of `starts`

    def __init__(self, Operator right, Operator left, least, most, list undecided):
        Operator.__init__(self, [right] if left is None else [right, left])
        self.least, self.most = least, most
        self.counts, self.starts, self.ends, self.coming = {}, {}, {}, 0
        for first, last, row in undecided:
            self.start(first, row)
            _put(self.ends, last + 1, row)

    cpdef int step(self, Line line) except -1:
        cdef int64_t high = self.until(line), point, done
        cdef Queue one, two
        one = <Queue>self.queues[0]
        two = <Queue>self.queues[1] if len(self.queues) > 1 else None
        for point in range(self.seen, high):
            self.at(line, point, one.take(point), None if two is None else two.take(point))
            self.fresh = False
        self.seen = high
        self.before_deciding(line)
        done = min(high, line.first_at_least(line.next_time(high) - self.most))
        if done > self.done:
            for point in range(self.done, done):
                self.decide(point)
            self.done = done
        return 0

    cdef int start(self, int64_t point, row) except -1:
        _put(self.starts, point, row)
        self.coming += 1
        return 0

    cdef int before_deciding(self, Line line) except -1:
        return 0

    cdef int decide(self, int64_t point) except -1:
        cdef list gone = [], come = []
        cdef dict counts = self.counts
        cdef Py_ssize_t count
        starts, ends = _taken(self.starts, point), _taken(self.ends, point)
        if starts is not None:
            self.coming -= len(starts)
            for row in starts:
                count = counts.get(row, 0) + 1
                if count == 1:
                    come.append(row)
                if count:
                    counts[row] = count
                else:
                    del counts[row]
        if ends is not None:
            for row in ends:
                count = counts.get(row, 0) - 1
                if count:
                    counts[row] = count
                else:
                    del counts[row]
                    gone.append(row)
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return self.stretched()

    cdef Py_ssize_t stretched(self):
        return len(self.counts) + self.coming

    @property
    def oldest(self):
        """The first time-point whose time-stamp is still needed."""
        return min(self.done, self.seen) - 1

    cdef list stretches(self, dict counts, dict starts, set going, int64_t last):
        """As the parameter `undecided`; those of `going` that have no end yet end with a time-point."""
        cdef dict changes = {row: [(self.done, count)] for row, count in counts.items() if count}
        cdef list found = []
        cdef Py_ssize_t count
        for sign, calendar in ((1, starts), (-1, self.ends)):
            for point in calendar:
                for row in _there(calendar[point]):
                    changes.setdefault(row, []).append((point, sign))
        for row in going:
            changes[row].append((last + 1, -1))
        for row, entries in changes.items():
            count, first = 0, 0
            for point, sign in sorted(entries, key=_time_of):
                if count <= 0 < count + sign:
                    first = point
                elif count > 0 >= count + sign and point > first:
                    found.append((first, point - 1, row))
                count += sign
        return found


cdef _put(dict calendar, int64_t point, row):
    """A calendar has a row, or a list of several: mostly there is one, and it has no place for a list of it."""
    found = calendar.get(point)
    if found is None:
        calendar[point] = row
    elif type(found) is tuple:
        calendar[point] = [found, row]
    else:
        (<list>found).append(row)


cdef _there(found):
    """The rows of an entry of a calendar."""
    return (found,) if type(found) is tuple else found


cdef _taken(dict calendar, int64_t point):
    """The rows of a time-point, which the calendar has no more; None where it has none."""
    found = calendar.pop(point, None)
    return None if found is None else _there(found)


cdef class Untils(Futures):
    """EVENTUALLY and UNTIL from now on.

    Parameters
    ----------
    negated : bool
    key : tuple of int
        The right columns that the left side's columns equal.
    lefts : list of (int, tuple)
        The left side where it holds, with the time-point since when; of a negated one, where it last held.
    """

    cdef bint negated
    cdef tuple key, every
    cdef dict since     # keys for which the left side, as it is written, is true; since when
    cdef object failed  # of a negated one: where it was true for the last time
    cdef set now

    def __init__(self, right, left, most, bint negated, tuple key, list undecided, list lefts):
        Futures.__init__(self, right, left, 0, most, undecided)
        self.negated, self.key, self.every = negated, key, tuple(range(len(key)))
        self.now, self.since, self.failed = set(), {}, OrderedDict()
        for point, row in sorted(lefts, key=_time_of):
            if negated:
                self.failed[key_of(row, self.every)] = point
            else:
                self.since[key_of(row, self.every)] = point

    cdef int64_t begin(self, int64_t point, tuple row) except -2:
        """The first time-point from which on the left side holds, before one."""
        key = key_of(row, self.key)
        if self.negated:
            return point if key in self.since else self.failed.get(key, -1) + 1
        return self.since.get(key, point)

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef int64_t begin, least
        if one is not None:
            least = max(self.done, line.first_at_least(line.at(point) - self.most))
            self.now.difference_update(one.gone)
            self.now.update(one.come)
            for row in one.come:
                begin = least
                if self.key is not None and len(self.queues) > 1:
                    begin = max(least, self.begin(point, <tuple>row))
                self.start(begin, row)
            for row in one.gone:
                _put(self.ends, point, row)
        if self.fresh and not self.negated and len(self.queues) > 1:
            keys = [] if two is None else [key_of(<tuple>row, self.every) for row in two.come]
            self.since = {key: self.since.get(key, point) for key in keys}
        elif two is not None:
            for row in two.gone:
                key = key_of(<tuple>row, self.every)
                del self.since[key]
                if self.negated:
                    self.failed[key] = point - 1
            for row in two.come:
                key = key_of(<tuple>row, self.every)
                self.since[key] = point
                if self.negated:
                    self.failed.pop(key, None)
        return 0

    cdef int before_deciding(self, Line line) except -1:
        while self.failed:
            key = next(iter(self.failed))
            if self.failed[key] >= self.done:
                break
            del self.failed[key]
        return 0

    def undecided(self):
        """As the parameter."""
        return self.stretches(self.counts, self.starts, self.now, self.seen - 1)

    def lefts(self):
        """As the parameter."""
        if self.negated:
            found = {**self.failed, **dict.fromkeys(self.since, self.seen - 1)}
        else:
            found = {key: max(point, self.done) for key, point in self.since.items() if self.done < self.seen}
        return [(point, (key,) if len(self.key) == 1 else key) for key, point in found.items() if point >= self.done]

    def base(self):
        """The rows of each child."""
        return [list(self.now), [(key,) if len(self.key) == 1 else key for key in self.since]]

    @property
    def rows(self):
        """Valuations that are kept."""
        return self.stretched() + len(self.since) + len(self.failed)


cdef class Eventuallys(Futures):
    """EVENTUALLY that does not look at what is now."""

    cdef set now
    cdef bint cut  # whether stretches of what is in the child have ended, since no time-point will lie in the interval

    def __init__(self, child, least, most, list undecided):
        Futures.__init__(self, child, None, least, most, undecided)
        self.now, self.cut = set(), False

    cdef int end(self, Line line, int64_t time, rows) except -1:
        cdef int64_t point = max(self.done, line.last_at_most(time - self.least) + 1)
        for row in rows:
            _put(self.ends, point, row)
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef int64_t now = line.at(point), begin = max(self.done, line.first_at_least(now - self.most))
        cdef list come
        if self.now and not self.cut and now - line.at(point - 1) > self.most - self.least:
            self.end(line, line.at(point - 1), self.now)
            self.cut = True
        if self.cut:
            self.now.difference_update(() if one is None else one.gone)
            come = list(self.now)
            self.cut = False
        else:
            come = []
            if one is not None:
                self.now.difference_update(one.gone)
                self.end(line, line.at(point - 1) if point > line.base else now, one.gone)
        if one is not None:
            come.extend(one.come)
            self.now.update(one.come)
        for row in come:
            self.start(begin, row)
        return 0

    cdef int before_deciding(self, Line line) except -1:
        cdef int64_t last
        if self.now and not self.cut:
            last = line.at(self.seen - 1)
            if line.next_time(self.seen) - last > self.most - self.least:
                self.end(line, last, self.now)
                self.cut = True
        return 0

    def undecided(self, Line line):
        """As the parameter."""
        if not self.now or self.cut:
            return self.stretches(self.counts, self.starts, set(), 0)
        last = line.last_at_most(line.at(self.seen - 1) - self.least)
        return self.stretches(self.counts, self.starts, self.now, max(last, self.done - 1))


cdef class Henceforths(Futures):
    """ALWAYS with a bound: what holds throughout the interval.

    Parameters
    ----------
    going : list of (int, tuple)
        What holds and goes on, with the first time-point whose interval lies in its period.
    """

    cdef set now

    def __init__(self, child, least, most, list undecided, list going):
        Futures.__init__(self, child, None, least, most, undecided)
        self.now = set()
        for begin, row in going:
            self.start(begin, row)
            self.now.add(row)

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef int64_t begin, end
        if self.fresh:
            one = _first(point, one, self.now)
        if one is None:
            return 0
        end = max(self.done, line.first_at_least(line.at(point) - self.most))
        begin = point
        if point > 0:
            begin = max(self.done, min(begin, line.last_at_most(line.at(point - 1) - self.least) + 1))
        for row in one.gone:
            _put(self.ends, end, row)
        for row in one.come:
            self.start(begin, row)
        self.now.difference_update(one.gone)
        self.now.update(one.come)
        return 0

    def kept(self):
        """As the parameters `undecided` and `going`."""
        cdef dict counts = dict(self.counts)
        cdef dict starts = {point: list(_there(rows)) for point, rows in self.starts.items()}
        cdef dict begins = {}
        for point, rows in starts.items():
            for row in rows:
                begins[row] = max(begins.get(row, -1), point)
        going = []
        for row in self.now:
            begin = begins.get(row, -1)
            if begin < 0:
                counts[row] -= 1
            else:
                starts[begin].remove(row)
            going.append((max(begin, self.done), row))
        return self.stretches(counts, starts, set(), 0), going


# -------------------------------------------------------------------------------------------------- the rows


cdef class Answers:
    """The rows of a goal at each time-point."""

    cdef Queue queue
    cdef Operator goal
    cdef set rows
    cdef readonly int64_t seen

    def __init__(self, Operator goal):
        self.goal, self.queue, self.rows, self.seen = goal, Queue(), set(), goal.done
        goal.outs.append(self.queue)

    def take(self, Line line):
        """(time, time-point, rows) for each time-point that has rows and was decided since the last call."""
        cdef list found = []
        cdef int64_t point, until = self.goal.done
        cdef Block block
        point = self.seen
        while point < until:
            if not self.rows:
                point = self.queue.next(until)
                if point == until:
                    break
            block = self.queue.take(point)
            if block is not None:
                self.rows.difference_update(block.gone)
                self.rows.update(block.come)
            if self.rows:
                found.append((line.at(point), point, list(self.rows)))
            point += 1
        self.seen = until
        return found

    @property
    def count(self):
        """Rows that are kept."""
        return len(self.rows)
