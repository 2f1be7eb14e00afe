"""PREV and NEXT, ONCE, SINCE and HISTORICALLY, time-point by time-point."""

from collections import OrderedDict, deque
from operator import itemgetter

from libc.stdint cimport int64_t

from hamlet.policies.changes._changes cimport (
    UNBOUNDED,
    Block,
    Index,
    Line,
    Operator,
    Queue,
    count_begun,
    count_ended,
    first_block,
    key_of,
)


cdef class Shift(Operator):
    """PREV and NEXT: what held one time-point before, or holds one later, where the time between is in an interval."""

    cdef int64_t least, most
    cdef bint back, shown
    cdef set held  # of the child, as it is shown or would be
    cdef int64_t start

    def __init__(self, Operator child, bint back, least, most, list held):
        Operator.__init__(self, [child])
        self.back, self.least, self.most = back, least, 2 * UNBOUNDED if most is None else most
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
                block = first_block(other, block, self.held)
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
            block = first_block(self.start, here[0] if here else None, self.held)
            blocks = ([] if block is None else [block]) + blocks[len(here):]
        return list(self.held), blocks

    @property
    def oldest(self):
        """The first time-point whose time-stamp is still needed."""
        return min(self.done, self.seen) - 1


cdef class Since(Operator):
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
        self.bounded, self.most = most is not None, UNBOUNDED if most is None else most
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
            until = line.at(point - 1) + self.most if self.bounded else UNBOUNDED
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
        until = line.at(self.seen - 1) + self.most if self.bounded and self.now else UNBOUNDED
        return [(until, row) for row, until in self.past.items()] + [(until, row) for row in self.now]


cdef class Once(Operator):
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
        self.bounded, self.least, self.most = most is not None, least, UNBOUNDED if most is None else most
        self.counts, self.now = {}, set()
        self.enter = deque([(after, (row,)) for after, _, row in sorted(alive, key=itemgetter(0))])
        self.coming = len(self.enter)
        self.leave = deque()
        if self.bounded:
            self.leave.extend([(until, (row,)) for _, until, row in sorted(alive, key=itemgetter(1))])

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
        cdef dict stretches = {row: [-UNBOUNDED] * count for row, count in self.counts.items()}
        cdef dict ends = {}
        for after, rows in self.enter:
            for row in rows:
                stretches.setdefault(row, []).append(after)
        if not self.bounded:
            return [(after, UNBOUNDED, row) for row, afters in stretches.items() for after in afters[:1]]
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


cdef class Historically(Operator):
    """HISTORICALLY: what held throughout the interval.

    Parameters
    ----------
    least, most : int
        `most` may be None.
    periods : list of (int, int, tuple)
        What held, with the times after which, and before which, the interval lies in its period; UNBOUNDED: it goes on.
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
        self.bounded, self.least, self.most = most is not None, least, UNBOUNDED if most is None else most
        self.counts, self.now = {}, {row for _, before, row in periods if before == UNBOUNDED}
        self.enter = deque([(after, (row,)) for after, _, row in sorted(periods, key=itemgetter(0))])
        self.coming = len(self.enter)
        self.leave = deque(
            [(before, (row,)) for _, before, row in sorted(periods, key=itemgetter(1)) if before < UNBOUNDED]
        )

    cpdef int step(self, Line line) except -1:
        cdef int64_t until = self.until(line), point
        cdef Queue one = <Queue>self.queues[0]
        cdef Block block
        for point in range(self.seen, until):
            block = one.take(point)
            if self.fresh:
                self.fresh = False
                block = first_block(point, block, self.now)
            self.at(line, point, block, None)
        self.seen = self.done = until
        return 0

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef list gone = [], come = []
        cdef int64_t now = line.at(point)
        if one is not None:
            self.now.difference_update(one.gone)
            self.now.update(one.come)
            if one.gone:
                self.leave.append((now + self.least, one.gone))
            if one.come:
                after = -UNBOUNDED if point == 0 else line.at(point - 1) + self.most if self.bounded else UNBOUNDED
                self.enter.append((after, one.come))
                self.coming += len(one.come)
        while self.enter and self.enter[0][0] < now:
            entered = self.enter.popleft()[1]
            self.coming -= len(entered)
            count_begun(self.counts, entered, come)
        while self.leave and self.leave[0][0] <= now:
            count_ended(self.counts, self.leave.popleft()[1], gone)
        return self.emit(point, gone, come)

    @property
    def rows(self):
        """Valuations that are kept."""
        return len(self.counts) + self.coming

    def periods(self):
        """As the parameter."""
        cdef dict afters = {row: [-UNBOUNDED] * count for row, count in self.counts.items() if count > 0}
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
            befores.setdefault(row, []).append(UNBOUNDED)
        return [
            (after, before, row)
            for row, begins in afters.items()
            for after, before in zip(begins, befores[row], strict=True)
        ]
