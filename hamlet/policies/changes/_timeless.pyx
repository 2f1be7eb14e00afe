"""Operators that look at one time-point only, and the rows of a formula."""

from libc.stdint cimport int64_t

from hamlet.policies.changes._changes cimport Block, Index, Line, Operator, Queue, key_of, shaped

cdef int64_t POOLED = (<int64_t>1) << 62  # codes from here on are in no order


cdef class Event(Operator):
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


cdef class Position(Operator):
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


cdef class Constant(Operator):
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


cdef class Shape(Operator):
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


cdef class Filter(Operator):
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


cdef class Extend(Operator):
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


cdef class Join(Operator):
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


cdef class Minus(Operator):
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


cdef class Union(Operator):
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


cdef class Aggregate(Operator):
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
