"""EVENTUALLY, UNTIL and ALWAYS with a bound, time-point by time-point."""

from collections import OrderedDict
from operator import itemgetter

from libc.stdint cimport int64_t

from hamlet.policies.changes._changes cimport (
    Block,
    Line,
    Operator,
    Queue,
    count_begun,
    count_ended,
    first_block,
    key_of,
)


cdef class Future(Operator):
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
        starts, ends = _taken(self.starts, point), _taken(self.ends, point)
        if starts is not None:
            self.coming -= len(starts)
            count_begun(self.counts, starts, come)
        if ends is not None:
            count_ended(self.counts, ends, gone)
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
            for point, sign in sorted(entries, key=itemgetter(0)):
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


cdef class Until(Future):
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
        Future.__init__(self, right, left, 0, most, undecided)
        self.negated, self.key, self.every = negated, key, tuple(range(len(key)))
        self.now, self.since, self.failed = set(), {}, OrderedDict()
        for point, row in sorted(lefts, key=itemgetter(0)):
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


cdef class Eventually(Future):
    """EVENTUALLY that does not look at what is now."""

    cdef set now
    cdef bint cut  # whether stretches of what is in the child have ended, since no time-point will lie in the interval

    def __init__(self, child, least, most, list undecided):
        Future.__init__(self, child, None, least, most, undecided)
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


cdef class Always(Future):
    """ALWAYS with a bound: what holds throughout the interval.

    Parameters
    ----------
    going : list of (int, tuple)
        What holds and goes on, with the first time-point whose interval lies in its period.
    """

    cdef set now

    def __init__(self, child, least, most, list undecided, list going):
        Future.__init__(self, child, None, least, most, undecided)
        self.now = set()
        for begin, row in going:
            self.start(begin, row)
            self.now.add(row)

    cdef int at(self, Line line, int64_t point, Block one, Block two) except -1:
        cdef int64_t begin, end
        if self.fresh:
            one = first_block(point, one, self.now)
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
