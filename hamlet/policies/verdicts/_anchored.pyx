"""Propositional policies whose futures do not nest, over columns of time-points, in memory that is flat.

An *obligation* is an UNTIL or a NEXT that a time-point still waits for. Where nothing below one speaks of the future,
all obligations of a time-point begin at its own time, so what decides it is known without a state for each residue of a
bound: a truth table over the (at most six) obligations of the formula, one bit per valuation, and the time. With each
time-point that is read, an obligation is met, missed or kept by all earlier time-points of an interval alike, and those
that still have it are always the last ones. So each time-point is touched once per obligation, however irregular the
gaps and however large the bounds, and nothing is kept for speed.

Of the past, a SINCE keeps the times at which its right side was true that are too young for its interval, and the
youngest that is not; a PREV the last value of its body.

Where time-points that must come out the same are told, equal ones of one time-stamp share an *entry*; in the mode
'global' also those of different ones, once none of the obligations left has an end and all have begun.

Source of the question: Basin, Bhatt, Traytel (TACAS 2017); of the past, constant work per time-point: Basin, Klaedtke,
Zalinescu, Algorithms for monitoring real-time properties (Acta Informatica 2018).
"""

import cython
import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

from hamlet.policies.verdicts._rows cimport SAME, VerdictRow, VerdictRows, copy_rows, give_row, take_rows

cdef enum:
    MOST_FUTURES = 6     # obligations of a formula: a truth table is a word
    LEAST_ROOM = 64

ctypedef enum Kind:
    ATOM
    TRUTH
    NOT
    AND
    OR
    PREV
    NEXT
    SINCE
    UNTIL

cdef uint64_t[MOST_FUTURES] HOLDS  # the valuations in which an obligation is true
HOLDS[:] = [
    0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0, 0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000,
    0xFFFFFFFF00000000,
]
cdef uint64_t TRUE = ~(<uint64_t> 0)
cdef int64_t FAR = <int64_t> 1 << 62  # no difference of two times is larger
KINDS = {
    "atom": ATOM, "true": TRUTH, "not": NOT, "and": AND, "or": OR, "prev": PREV, "next": NEXT, "since": SINCE,
    "until": UNTIL,
}

cdef struct Node:
    int kind
    int first
    int second
    int place        # of what is kept of the past, or of the obligation
    bint ends        # whether `high` is finite
    int64_t low
    int64_t high


cdef inline uint64_t settled(uint64_t table, int place, bint value) noexcept nogil:
    """A truth table once an obligation is met or missed."""
    cdef uint64_t part
    if value:
        part = table & HOLDS[place]
        return part | part >> (1 << place)
    part = table & ~HOLDS[place]
    return part | part << (1 << place)


cdef inline bint reads(uint64_t table, int place) noexcept nogil:
    """Whether a truth table depends on an obligation."""
    return ((table & HOLDS[place]) >> (1 << place)) != (table & ~HOLDS[place])


def fits(nodes):
    """Whether a formula's futures are few and do not nest.

    Parameters
    ----------
    nodes : sequence of hamlet.policies.analysis.propositions.Node
    """
    future = []
    for node in nodes:
        if node.kind not in KINDS:
            return False
        below = [future[place] for place in (node.first, node.second) if place >= 0] if node.kind != "atom" else []
        if node.kind in ("prev", "next", "since", "until") and any(below):
            return False
        future.append(node.kind in ("next", "until") or any(below))
    return sum([node.kind in ("next", "until") for node in nodes]) <= MOST_FUTURES


cdef class AnchoredFormula:
    """A formula that `fits`, shared by all its streams.

    Parameters
    ----------
    nodes : sequence of hamlet.policies.analysis.propositions.Node
    mode : {'all', 'local', 'global'}
    """

    cdef Node* nodes
    cdef int count
    cdef int futures                # obligations
    cdef int[MOST_FUTURES] future   # their nodes
    cdef int pasts                  # SINCEs and PREVs
    cdef readonly bint all_points   # whether every time-point gets a verdict of its own
    cdef readonly bint across       # whether time-points of different time-stamps may be told to be the same

    def __cinit__(self, nodes, mode):
        cdef int place
        self.count = len(nodes)
        self.all_points, self.across = mode == "all", mode == "global"
        self.nodes = <Node*> calloc(self.count + 1, sizeof(Node))
        if self.nodes == NULL:
            raise MemoryError
        for place, node in enumerate(nodes):
            self.nodes[place].kind = KINDS[node.kind]
            self.nodes[place].first, self.nodes[place].second = node.first, node.second
            self.nodes[place].low = min(node.low, FAR)
            self.nodes[place].ends = node.high is not None and node.high < FAR
            self.nodes[place].high = node.high if self.nodes[place].ends else FAR
            if node.kind in ("next", "until"):
                self.nodes[place].place = self.futures
                self.future[self.futures] = place
                self.futures += 1
            elif node.kind in ("prev", "since"):
                self.nodes[place].place = self.pasts
                self.pasts += 1

    def __dealloc__(self):
        free(self.nodes)

    @property
    def nbytes(self):
        """Bytes of the tables."""
        return (self.count + 1) * sizeof(Node)

    def stream(self):
        """A stream that has read nothing."""
        return AnchoredStream(self)


cdef struct Past:
    bint holds       # of a PREV the last value; of a SINCE whether `latest` is one
    int64_t latest   # the youngest time that the interval has reached
    int64_t* young   # times that are too young for it, in order, from `head` on
    int64_t head
    int64_t end
    int64_t room

cdef struct Entry:
    int64_t time
    int64_t offset   # the place of the time-point among those of its time; -1 once its row is given
    uint64_t table

cdef struct Span:
    int64_t first
    int64_t end


@cython.no_gc_clear  # the formula must still be there when what its parts keep of the past is freed
cdef class AnchoredStream:
    """One run of a formula over time-points; the face is that of `hamlet.policies.verdicts._automaton.Stream`.

    Attributes
    ----------
    points : int
        Time-points read.
    """

    cdef AnchoredFormula formula
    cdef bint begun
    cdef int64_t time                        # the last time-stamp
    cdef int64_t offset                      # of the next time-point, if it has the same one
    cdef readonly int64_t points
    cdef Past* past
    cdef uint64_t* value                     # [nodes] of the current time-point
    cdef Entry* entry                        # from `head` on, in the order of time-points
    cdef int64_t head
    cdef int64_t end
    cdef int64_t room
    cdef int64_t gone                        # entries from `head` on whose rows are given
    cdef int64_t[MOST_FUTURES] waits         # the first entry that may have the obligation
    cdef int64_t[MOST_FUTURES] early         # the first entry that the obligation's interval has not reached
    cdef int64_t[1 << MOST_FUTURES] timeless  # mode 'global': entries whose times do not matter any more
    cdef int timeless_count
    cdef VerdictRows rows                    # where time-points share entries

    def __cinit__(self, AnchoredFormula formula):
        self.formula = formula
        self.past = <Past*> calloc(formula.pasts + 1, sizeof(Past))
        self.value = <uint64_t*> calloc(formula.count + 1, sizeof(uint64_t))
        if self.past == NULL or self.value == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef int place
        if self.past != NULL:
            for place in range(self.formula.pasts):
                free(self.past[place].young)
        free(self.past)
        free(self.value)
        free(self.entry)
        free(self.rows.row)

    @property
    def nbytes(self):
        """Bytes held for the past, for undecided time-points and for rows that are not yet taken."""
        young = sum([self.past[place].room for place in range(self.formula.pasts)])
        tables = (self.formula.pasts + 1) * sizeof(Past) + self.formula.count * 8
        return tables + 8 * young + self.room * sizeof(Entry) + sizeof(VerdictRow) * self.rows.room

    @property
    def undecided(self):
        """How many undecided time-points are kept."""
        cdef int64_t at, found = 0
        for at in range(self.head, self.end):
            found += self.entry[at].offset >= 0 and self.entry[at].table != 0 and self.entry[at].table != TRUE
        return found

    def copy(self):
        """Another stream at the same place."""
        cdef AnchoredStream other = AnchoredStream(self.formula)
        cdef int place
        cdef Past* mine
        cdef Past* theirs
        other.begun, other.time, other.offset, other.points = self.begun, self.time, self.offset, self.points
        for place in range(self.formula.pasts):
            mine, theirs = &self.past[place], &other.past[place]
            theirs.holds, theirs.latest = mine.holds, mine.latest
            if mine.end > mine.head:
                reserve_young(theirs, mine.end - mine.head)
                memcpy(theirs.young, mine.young + mine.head, (mine.end - mine.head) * sizeof(int64_t))
                theirs.end = mine.end - mine.head
        if self.end > self.head:
            other._reserve(self.end - self.head)
            memcpy(other.entry, self.entry + self.head, (self.end - self.head) * sizeof(Entry))
            other.end, other.gone = self.end - self.head, self.gone
        for place in range(self.formula.futures):
            other.waits[place], other.early[place] = self.waits[place] - self.head, self.early[place] - self.head
        other.timeless_count = self.timeless_count
        for place in range(self.timeless_count):
            other.timeless[place] = self.timeless[place] - self.head
        copy_rows(&other.rows, &self.rows)
        return other

    def feed(self, const int64_t[::1] times, const int32_t[::1] atoms):
        """Read time-points.

        Parameters
        ----------
        times : int64 array of shape (n,)
            Never decreasing, and not below those before.
        atoms : int32 array of shape (n,)
            The true atoms of each.
        """
        cdef int64_t i, n = times.shape[0]
        cdef uint64_t table
        cdef bint all_points = self.formula.all_points
        for i in range(n):
            if not self.begun or times[i] != self.time:
                self.offset = 0
            table = self._step(times[i], times[i] - self.time if self.begun else 0, atoms[i], False)
            self.begun, self.time = True, times[i]
            if all_points:
                self._append(table)
            elif table == 0 or table == TRUE:
                self._give(self.time, self.offset, table != 0, NULL)
            else:
                self._share(table)
            self.offset += 1
            self.points += 1

    def finish(self, int32_t atoms=0):
        """Decide all time-points, as others without events that follow, each infinitely later, decide them.

        Parameters
        ----------
        atoms : int
            Those that are true whatever happens.
        """
        cdef int place
        cdef int64_t at
        for _ in range(self.formula.count + 1):  # by then what a time-point sees of the past changes no more
            self._step(self.time, FAR, atoms, True)
        for at in range(self.head, self.end):
            for place in range(self.formula.futures):  # an UNTIL without end that is never met
                self.entry[at].table = settled(self.entry[at].table, place, False)
        if not self.formula.all_points:
            self._settle(self.head, self.end)

    cdef uint64_t _step(self, int64_t time, int64_t delta, int32_t atoms, bint far) except? 0x5A:
        """Read a time-point, settle what it decides of earlier ones, and give its own truth table."""
        cdef AnchoredFormula formula = self.formula
        cdef uint64_t* value = self.value
        cdef Node* node
        cdef int number, place
        cdef Span[MOST_FUTURES] changed
        for number in range(formula.count):
            node = &formula.nodes[number]
            if node.kind == ATOM:
                value[number] = TRUE if atoms >> node.first & 1 else 0
            elif node.kind == TRUTH:
                value[number] = TRUE
            elif node.kind == NOT:
                value[number] = ~value[node.first]
            elif node.kind == AND:
                value[number] = value[node.first] & value[node.second]
            elif node.kind == OR:
                value[number] = value[node.first] | value[node.second]
            elif node.kind == PREV:
                value[number] = 0
                if self.past[node.place].holds and node.low <= delta and (not node.ends or delta <= node.high):
                    value[number] = TRUE
            elif node.kind == SINCE:
                value[number] = TRUE if self._since(node, time, far) else 0
            elif node.kind == NEXT:
                changed[node.place] = self._next(node, delta)
                value[number] = HOLDS[node.place]
            else:
                changed[node.place] = self._until(node, time, far)
                value[number] = value[node.first] & HOLDS[node.place]
                if node.low == 0:
                    value[number] |= value[node.second]
        for number in range(formula.count):
            node = &formula.nodes[number]
            if node.kind == PREV:
                self.past[node.place].holds = value[node.first] != 0
        if not formula.all_points:
            for place in range(formula.futures):
                if changed[place].end > changed[place].first:
                    self._settle(changed[place].first, changed[place].end)
            if formula.across:
                self._reach(time)
            self._tidy()
        return value[formula.count - 1]

    cdef bint _since(self, const Node* node, int64_t time, bint far) except -1:
        """The value of a SINCE."""
        cdef Past* past = &self.past[node.place]
        if not self.value[node.first]:
            past.holds, past.head, past.end = False, 0, 0
        if far:  # all before is older than every bound
            past.holds = (past.holds or past.end > past.head) and not node.ends
            past.head = past.end = 0
        if self.value[node.second]:
            if node.low == 0:
                past.holds, past.latest = True, time
            elif past.end == past.head or past.young[past.end - 1] != time:
                if past.end == past.room:
                    reserve_young(past, past.end - past.head + 1)
                past.young[past.end] = time
                past.end += 1
        while past.head < past.end and past.young[past.head] <= time - node.low:
            past.holds, past.latest = True, past.young[past.head]
            past.head += 1
        if past.head == past.end:
            past.head = past.end = 0
        if past.holds and node.ends and past.latest < time - node.high:
            past.holds = False
        return past.holds

    cdef Span _next(self, const Node* node, int64_t delta) noexcept:
        """Settle the NEXT of the time-point before; the entries that it was."""
        cdef Span span = Span(max(self.waits[node.place], self.head), self.end)
        cdef bint met = node.low <= delta and (not node.ends or delta <= node.high) and self.value[node.first] != 0
        self._put(span, node.place, met)
        self.waits[node.place] = self.end
        return span

    cdef Span _until(self, const Node* node, int64_t time, bint far) noexcept:
        """Settle what can be told of an UNTIL of earlier time-points; the entries that it was."""
        cdef int64_t at = max(self.waits[node.place], self.head)
        cdef Span span = Span(at, at), late, met, missed
        late.first = at
        while at < self.end and node.ends and (far or self.entry[at].time < time - node.high):
            at += 1
        late.end = met.first = at
        if self.value[node.second]:
            while at < self.end and (far or self.entry[at].time <= time - node.low):
                at += 1
        met.end = missed.first = at
        if not self.value[node.first]:
            at = self.end
        missed.end = at
        self._put(late, node.place, False)
        self._put(met, node.place, True)
        self._put(missed, node.place, False)
        self.waits[node.place] = span.end = at
        return span

    cdef inline void _put(self, Span span, int place, bint value) noexcept:
        cdef int64_t at
        for at in range(span.first, span.end):
            self.entry[at].table = settled(self.entry[at].table, place, value)

    # ---------------------------------------------------------------------------------------------- shared entries

    cdef int _settle(self, int64_t first, int64_t end) except -1:
        """Give the rows of entries that are decided, or have become like an earlier one."""
        cdef int64_t at
        cdef Entry* each
        for at in range(first, end):
            each = &self.entry[at]
            if each.offset < 0:
                continue
            if each.table == 0 or each.table == TRUE:
                self._give(each.time, each.offset, each.table != 0, NULL)
                self._remove(at)
            else:
                self._compare(at)
        return 0

    cdef int _compare(self, int64_t at) except -1:
        """Give up an entry if it is like an earlier one."""
        cdef Entry* each = &self.entry[at]
        cdef int64_t other = at - 1
        while other >= self.head and self.entry[other].time == each.time:
            if self.entry[other].offset >= 0 and self.entry[other].table == each.table:
                self._give(each.time, each.offset, SAME, &self.entry[other])
                self._remove(at)
                return 0
            other -= 1
        if self.formula.across and self._is_timeless(each.table, at):
            self._compare_timeless(at)
        return 0

    cdef bint _is_timeless(self, uint64_t table, int64_t at) noexcept:
        """Whether all obligations that an entry has left have begun, and have no end."""
        cdef int place
        cdef const Node* node
        for place in range(self.formula.futures):
            if reads(table, place):
                node = &self.formula.nodes[self.formula.future[place]]
                if node.kind == NEXT or node.ends or at >= self.early[place]:
                    return False
        return True

    cdef int _compare_timeless(self, int64_t at) except -1:
        cdef int number = 0
        cdef int64_t other
        while number < self.timeless_count:
            other = self.timeless[number]
            if other == at or other < self.head or self.entry[other].offset < 0:
                self.timeless_count -= 1  # it is gone, or is looked up once more
                self.timeless[number] = self.timeless[self.timeless_count]
                continue
            if self.entry[other].table == self.entry[at].table:
                if other > at:  # the later one is given up
                    self.timeless[number] = at
                    at, other = other, at
                self._give(self.entry[at].time, self.entry[at].offset, SAME, &self.entry[other])
                self._remove(at)
                return 0
            number += 1
        if self.timeless_count < 1 << MOST_FUTURES:
            self.timeless[self.timeless_count] = at
            self.timeless_count += 1
        return 0

    cdef void _list_timeless(self, int64_t at) noexcept:
        """Have an entry among those that later ones are compared with, if it is one."""
        if self.timeless_count < 1 << MOST_FUTURES and self._is_timeless(self.entry[at].table, at):
            self.timeless[self.timeless_count] = at
            self.timeless_count += 1

    cdef int _reach(self, int64_t time) except -1:
        """Look at entries that an interval without end has reached just now."""
        cdef int place
        cdef const Node* node
        cdef int64_t at
        for place in range(self.formula.futures):
            node = &self.formula.nodes[self.formula.future[place]]
            if node.kind == NEXT or node.ends:
                continue
            at = max(self.early[place], self.head)
            while at < self.end and self.entry[at].time <= time - node.low:
                self.early[place] = at + 1
                if self.entry[at].offset >= 0:
                    self._compare(at)
                at += 1
            self.early[place] = max(self.early[place], self.head)
        return 0

    cdef int _share(self, uint64_t table) except -1:
        """An entry for the current time-point, or the row that says which one it is like."""
        cdef int place
        cdef int64_t at
        self._append(table)
        at = self.end - 1  # entries may have moved to the front
        if self.formula.across:
            for place in range(self.formula.futures):
                if self.early[place] == at and self.formula.nodes[self.formula.future[place]].low == 0:
                    self.early[place] = at + 1
        return self._compare(at)

    cdef inline void _remove(self, int64_t at) noexcept:
        self.entry[at].offset = -1
        self.gone += 1

    cdef void _tidy(self) noexcept:
        """Forget entries whose rows are given: those in front, and all where they are most."""
        cdef int64_t at, kept = 0, end = self.end
        cdef int place
        cdef int64_t[MOST_FUTURES] waits, early
        while self.head < self.end and self.entry[self.head].offset < 0:
            self.head += 1
            self.gone -= 1
        if self.head == self.end:
            self.head = self.end = 0
            for place in range(MOST_FUTURES):
                self.waits[place] = self.early[place] = 0
            self.timeless_count = 0
            return
        if self.gone < LEAST_ROOM or 2 * self.gone < self.end - self.head:
            return
        for place in range(MOST_FUTURES):
            waits[place] = early[place] = 0
        for at in range(self.head, end):
            if self.entry[at].offset < 0:
                continue
            for place in range(self.formula.futures):
                waits[place] += at < self.waits[place]
                early[place] += at < self.early[place]
            self.entry[kept] = self.entry[at]
            kept += 1
        self.head, self.end, self.gone = 0, kept, 0
        for place in range(self.formula.futures):
            self.waits[place], self.early[place] = waits[place], early[place]
        self.timeless_count = 0
        if self.formula.across:
            for at in range(kept):
                self._list_timeless(at)

    # ------------------------------------------------------------------------------------------------------- room

    cdef inline int _append(self, uint64_t table) except -1:
        """An entry for the current time-point."""
        if self.end == self.room:
            self._reserve(self.end - self.head + 1)
        self.entry[self.end] = Entry(self.time, self.offset, table)
        self.end += 1
        return 0

    cdef int _reserve(self, int64_t entries) except -1:
        """Room for so many entries in all; those that are there move to the front."""
        cdef int64_t shift = self.head, room = self.room
        cdef int place
        cdef Entry* fresh = self.entry
        while room < 2 * entries:
            room = max(2 * room, LEAST_ROOM)
        if room > self.room:
            fresh = <Entry*> malloc(room * sizeof(Entry))
            if fresh == NULL:
                raise MemoryError
        if self.end > self.head:
            memmove(fresh, self.entry + self.head, (self.end - self.head) * sizeof(Entry))
        if fresh != self.entry:
            free(self.entry)
        self.entry, self.room = fresh, room
        self.head, self.end = 0, self.end - shift
        for place in range(MOST_FUTURES):
            self.waits[place] = max(self.waits[place] - shift, 0)
            self.early[place] = max(self.early[place] - shift, 0)
        for place in range(self.timeless_count):
            self.timeless[place] -= shift
        return 0

    cdef int _give(self, int64_t time, int64_t offset, int8_t verdict, const Entry* like) except -1:
        """One more row; `like` is the entry that it is the same as."""
        if like == NULL:
            return give_row(&self.rows, time, offset, verdict, 0, 0)
        return give_row(&self.rows, time, offset, verdict, like.time, like.offset)

    def take(self):
        """The rows since the last call.

        Returns
        -------
        times, offsets : int64 arrays of shape (rows,)
        verdicts : int8 array of shape (rows,)
            0, 1, or 2: like an earlier time-point.
        same_times, same_offsets : int64 arrays of shape (rows,), or None
            The earlier time-point where the verdict is 2; None where all time-points get verdicts.
        """
        cdef int64_t at, ready = 0
        cdef int64_t[::1] times, offsets
        cdef int8_t[::1] verdicts
        if not self.formula.all_points:
            self._shrink()
            return take_rows(&self.rows)
        while self.head + ready < self.end and (
            self.entry[self.head + ready].table == 0 or self.entry[self.head + ready].table == TRUE
        ):
            ready += 1
        found = [np.empty(ready, np.int64), np.empty(ready, np.int64), np.empty(ready, np.int8)]
        times, offsets, verdicts = found
        for at in range(ready):
            times[at], offsets[at] = self.entry[self.head + at].time, self.entry[self.head + at].offset
            verdicts[at] = self.entry[self.head + at].table != 0
        self.head += ready
        self._shrink()
        return (*found, None, None)

    cdef int _shrink(self) except -1:
        """Give back room that a burst of time-points has left."""
        cdef int64_t entries = self.end - self.head, room = max(2 * entries, LEAST_ROOM)
        if self.room <= LEAST_ROOM or entries > self.room // 4:
            return 0
        cdef Entry* fresh
        self._reserve(entries)  # to the front
        fresh = <Entry*> realloc(self.entry, room * sizeof(Entry))
        if fresh != NULL:
            self.entry, self.room = fresh, room
        return 0

    # ----------------------------------------------------------------------------------------------------- saving

    def saved(self):
        """All that a stream is, once its rows have been taken.

        Returns
        -------
        (list of int, list of int64 array, int64 array of shape (entries, 3))
            Whether it has begun, last time-stamp, next offset, time-points, and per obligation the first entry that may
            have it and the first that its interval has not reached; of each SINCE and PREV whether it holds, the latest
            time and the young ones; and of entries time, offset and truth table.
        """
        cdef int place
        cdef int64_t at
        numbers = [int(self.begun), self.time, self.offset, self.points]
        for place in range(self.formula.futures):
            numbers += [
                min(max(self.waits[place] - self.head, 0), self.end - self.head),
                min(max(self.early[place] - self.head, 0), self.end - self.head),
            ]
        pasts = []
        for place in range(self.formula.pasts):
            young = [self.past[place].young[at] for at in range(self.past[place].head, self.past[place].end)]
            pasts.append(np.array([int(self.past[place].holds), self.past[place].latest, *young], np.int64))
        entries = np.empty((self.end - self.head, 3), np.int64)
        for at in range(self.end - self.head):
            entries[at, 0], entries[at, 1] = self.entry[self.head + at].time, self.entry[self.head + at].offset
            entries[at, 2] = <int64_t> self.entry[self.head + at].table
        return numbers, pasts, entries

    def load(self, numbers, pasts, const int64_t[:, ::1] entries):
        """Be the stream that `saved` told of; this one is new.

        Raises
        ------
        ValueError
            If there is no such stream.
        """
        cdef int place
        cdef int64_t at, count = entries.shape[0]
        cdef const int64_t[::1] told
        cdef Past* past
        cdef const Node* node
        if len(numbers) != 4 + 2 * self.formula.futures or len(pasts) != self.formula.pasts:
            raise ValueError("a stream is of another formula")
        self.begun, self.time, self.offset, self.points = numbers[0] == 1, numbers[1], numbers[2], numbers[3]
        for node_at in range(self.formula.count):
            node = &self.formula.nodes[node_at]
            if node.kind != PREV and node.kind != SINCE:
                continue
            told, past = pasts[node.place], &self.past[node.place]
            if told.shape[0] < 2 or not 0 <= told[0] <= 1 or (node.kind == PREV and told.shape[0] > 2):
                raise ValueError("the past of a stream is none")
            past.holds, past.latest = told[0] == 1, told[1]
            if past.holds and node.kind == SINCE and not -FAR < past.latest <= self.time:
                raise ValueError("the past of a stream is to come")
            reserve_young(past, told.shape[0] - 2)
            for at in range(told.shape[0] - 2):
                past.young[at] = told[2 + at]
                if not -FAR < past.young[at] <= self.time or (at and past.young[at] <= past.young[at - 1]):
                    raise ValueError("the past of a stream is out of order")
            past.end = told.shape[0] - 2
        if count:
            self._reserve(count)
        for at in range(count):
            if entries[at, 0] > self.time or (at and entries[at, 0] < entries[at - 1, 0]):
                raise ValueError("the entries of a stream are out of order")
            if entries[at, 1] < -1 or entries[at, 1] > self.points or not -FAR < entries[at, 0]:
                raise ValueError("an entry of a stream is none")
            if self.formula.all_points and entries[at, 1] < 0:
                raise ValueError("a time-point is told to be like another one")
            self.entry[at] = Entry(entries[at, 0], entries[at, 1], <uint64_t> entries[at, 2])
            self.gone += entries[at, 1] < 0
        self.end = count
        for place in range(self.formula.futures):
            self.waits[place], self.early[place] = numbers[4 + 2 * place], numbers[5 + 2 * place]
            if not (0 <= self.waits[place] <= count and 0 <= self.early[place] <= count):
                raise ValueError("an obligation begins nowhere")
            for at in range(self.waits[place]):
                if reads(self.entry[at].table, place):
                    raise ValueError("an entry has an obligation that is settled")
        for place in range(self.formula.futures, MOST_FUTURES):
            for at in range(count):
                if reads(self.entry[at].table, place):
                    raise ValueError("an entry has an obligation that is none of the formula")
        if self.formula.across:
            for at in range(count):
                if self.entry[at].offset >= 0:
                    self._list_timeless(at)


cdef int reserve_young(Past* past, int64_t times) except -1:
    """Room for so many young times in all; those that are there move to the front."""
    cdef int64_t room = past.room
    cdef int64_t* fresh = past.young
    while room < 2 * times:
        room = max(2 * room, 8)
    if room > past.room:
        fresh = <int64_t*> malloc(room * sizeof(int64_t))
        if fresh == NULL:
            raise MemoryError
    if past.end > past.head:
        memmove(fresh, past.young + past.head, (past.end - past.head) * sizeof(int64_t))
    if fresh != past.young:
        free(past.young)
    past.young, past.room = fresh, room
    past.head, past.end = 0, past.end - past.head
    return 0
