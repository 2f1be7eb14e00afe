"""The preferred match of every start, in time linear in rows x steps, where conditions read no labels.

From the last row of a partition to the first it is computed which steps can still reach the end of the pattern; with
that, a walk from a start takes the preferred way at every fork and never turns back. Up to 64 steps are bits of one
word for each row. A step that counts rows of one variable keeps, by row, how many of them follow, and where what is
behind the step can begin: it costs as much as any other step, however far it counts.

Contract: `first` and `second` of a step that takes no row are smaller than its own number, as `Program` orders them;
masks are as long as all rows, an empty one is true everywhere, and MAYBE where rows to come decide; nothing of this is
checked again here.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from hamlet.memory.arrays cimport grown

cdef int64_t _BLOCK_BYTES = 1 << 28


cdef class Matches:
    """Matches in the order in which they were found.

    Attributes
    ----------
    error : (int, int) or None
        Partition and row of a match behind which nothing can be skipped to.
    """

    def __cinit__(self):
        self._rows = NULL
        self._steps = NULL
        self._count = self._room = self._labels = self._label_room = 0
        self.error = None

    def __dealloc__(self):
        free(self._rows)
        free(self._steps)

    cdef int reserve(self, Py_ssize_t labels) except -1 nogil:
        """Room for one more match, and for so many more labels."""
        cdef Py_ssize_t room
        if self._count == self._room:
            room = max(64, 2 * self._room)
            self._rows = <int64_t*>grown(self._rows, room * 4 * sizeof(int64_t))
            self._room = room
        if self._labels + labels > self._label_room:
            room = max(1024, 2 * (self._labels + labels))
            self._steps = <int32_t*>grown(self._steps, room * sizeof(int32_t))
            self._label_room = room
        return 0

    def add(self, int64_t start, int64_t number, int64_t partition, const int32_t[::1] steps):
        """Add a match that was found elsewhere."""
        cdef Py_ssize_t i
        self.reserve(steps.shape[0])
        for i in range(steps.shape[0]):
            self._steps[self._labels + i] = steps[i]
        self.close(start, steps.shape[0], number, partition)

    def renumber(self, const int32_t[::1] numbers):
        """Let each step have another number."""
        cdef Py_ssize_t i
        for i in range(self._labels):
            self._steps[i] = numbers[self._steps[i]]

    def cut(self, Py_ssize_t count):
        """Forget all matches but the first ones."""
        cdef Py_ssize_t i
        for i in range(count, self._count):
            self._labels -= self._rows[4 * i + 1]
        self._count = min(count, self._count)

    cdef void close(self, int64_t start, int64_t length, int64_t number, int64_t partition) noexcept nogil:
        self._rows[4 * self._count] = start
        self._rows[4 * self._count + 1] = length
        self._rows[4 * self._count + 2] = number
        self._rows[4 * self._count + 3] = partition
        self._count += 1
        self._labels += length

    def in_order(self):
        """These matches by partition and number."""
        rows, steps = self.arrays()
        cdef Matches found
        if (np.diff(rows[:, 3]) >= 0).all():
            return self
        found = Matches()
        ends = np.cumsum(rows[:, 1])
        for place in np.lexsort((rows[:, 2], rows[:, 3])):
            start, length, number, partition = rows[place]
            found.add(start, number, partition, steps[ends[place] - length : ends[place]])
        return found

    def arrays(self):
        """Matches and labels.

        Returns
        -------
        (int64 array of shape (matches, 4), int32 array of shape (labels,))
            `rows`; the step that took each row of each match.
        """
        return self.rows(), self.steps()

    def steps(self, Py_ssize_t first=0):
        """The steps that took the rows of the matches from one on; shape (labels,)."""
        cdef Py_ssize_t i, count = 0
        for i in range(first, self._count):
            count += self._rows[4 * i + 1]
        found = np.empty(count, np.int32)
        cdef int32_t[::1] view = found
        if count:
            memcpy(&view[0], self._steps + self._labels - count, count * sizeof(int32_t))
        return found

    def rows(self, Py_ssize_t first=0):
        """Start row, length, number and partition of the matches from one on; shape (matches, 4)."""
        found = np.empty((self._count - first, 4), np.int64)
        cdef int64_t[:, ::1] view = found
        if self._count > first:
            memcpy(&view[0, 0], self._rows + 4 * first, 4 * (self._count - first) * sizeof(int64_t))
        return found

    @property
    def count(self):
        """How many there are."""
        return self._count


cdef class Table:
    """Which steps can reach the end of the pattern from each row of one partition, computed in blocks of rows.

    Parameters
    ----------
    kinds, first, second, variables : int32 arrays of shape (steps,)
    masks : list of uint8 arrays
        By variable: the rows that it takes, none for all.
    bounded : bool
        Whether the nearest end of each is kept, not only that there is one.
    bounds : int64 array of shape (steps, 2)
        Of steps that count: the least and the most rows.
    """

    def __cinit__(self, kinds, first, second, variables, list masks, bint bounded, bounds=None):
        cdef Py_ssize_t i
        cdef const uint8_t[::1] mask
        self.kinds, self.first, self.second, self.variables = kinds, first, second, variables
        self.steps = self.kinds.shape[0]
        self.bounded = bounded
        self.open_end = False
        self.begins = True
        self.masks = <const uint8_t**>malloc(max(1, len(masks)) * sizeof(uint8_t*))
        if self.masks == NULL:
            raise MemoryError
        self._kept = []
        for i in range(len(masks)):
            mask = masks[i]
            self._kept.append(mask)
            self.masks[i] = &mask[0] if mask.shape[0] else NULL
        self.near = self.near_marks = NULL
        self.alive = self.alive_marks = NULL
        self.room = self.mark_room = 0
        self.words = self.word_marks = self.takes = NULL
        self.moved = NULL
        self.follows = NULL
        self.bounds = np.zeros((self.steps, 2), np.int64) if bounds is None else bounds
        self.counters = 0
        for i in range(self.steps):
            self.counters += self.kinds[i] == COUNTED
        self.counter = <Counter*>calloc(max(1, self.counters), sizeof(Counter))
        if self.counter == NULL:
            raise MemoryError
        self.counters = 0
        for i in range(self.steps):
            if self.kinds[i] == COUNTED:
                self.counter[self.counters].step = i
                self.counter[self.counters].low, self.counter[self.counters].high = self.bounds[i, 0], self.bounds[i, 1]
                self.counters += 1
        self.packed = self.steps <= 64 and not (self.counters or bounded)
        if self.packed:
            self._pack(masks)
        self.block = max(<int64_t>64, _BLOCK_BYTES // (8 if self.packed else self.steps * (8 if bounded else 1)))

    cdef int _pack(self, list masks) except -1:
        """Say as words of bits what the steps do."""
        cdef Py_ssize_t i, k, variables = len(masks)
        cdef uint64_t bit
        cdef int32_t kind, by
        for i in range(self.steps):
            variables = max(variables, self.variables[i] + 1)  # `Known` has no masks
        self.variable_count, self.moves, self.follow_count, self.ends, self.takers = len(masks), 0, 0, 0, 0
        self.moved = <Moved*>calloc(self.steps, sizeof(Moved))
        self.follows = <Follow*>calloc(self.steps, sizeof(Follow))
        self.takes = <uint64_t*>calloc(variables + 1, sizeof(uint64_t))
        if self.moved == NULL or self.follows == NULL or self.takes == NULL:
            raise MemoryError
        for i in range(self.steps):
            bit, kind, by = <uint64_t>1 << i, self.kinds[i], <int32_t>i - self.first[i]
            if kind == ACCEPT:
                self.ends |= bit
            elif kind != TAKE:
                self.follows[self.follow_count].kind, self.follows[self.follow_count].step = kind, bit
                self.follows[self.follow_count].leads_to = <uint64_t>1 << self.first[i]
                if kind == SPLIT:
                    self.follows[self.follow_count].leads_to |= <uint64_t>1 << self.second[i]
                self.follow_count += 1
            else:
                self.takers |= bit
                self.takes[self.variables[i]] |= bit
                k = 0
                while k < self.moves and self.moved[k].by != by:
                    k += 1
                self.moves = max(self.moves, k + 1)
                self.moved[k].by = by
                self.moved[k].steps |= bit
        return 0

    cdef uint64_t word(self, int64_t row, uint64_t later) noexcept nogil:
        """The steps that can reach the end of the pattern from before a row, by those behind it."""
        cdef uint64_t here = 0, taken = 0
        cdef Py_ssize_t k
        cdef Follow* follow
        if row < self.high:
            for k in range(self.moves):
                if self.moved[k].by >= 0:
                    here |= (later << self.moved[k].by) & self.moved[k].steps
                else:
                    here |= (later >> -self.moved[k].by) & self.moved[k].steps
            for k in range(self.variable_count):
                taken |= self.takes[k] & (<uint64_t>0 - (1 if self.masks[k] == NULL else self.masks[k][row] & 1))
            here &= taken
        elif self.open_end:
            here = self.takers
        here |= self.ends
        for k in range(self.follow_count):
            follow = self.follows + k
            if here & follow.leads_to and (follow.kind == SPLIT or (
                    row == self.low and self.begins if follow.kind == AT_START else row == self.high)):
                here |= follow.step
        return here

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.counter != NULL:
            for i in range(self.counters):
                free(self.counter[i].run)
                free(self.counter[i].behind)
                free(self.counter[i].before)
                free(self.counter[i].queue)
        free(self.counter)
        free(self.words)
        free(self.word_marks)
        free(self.moved)
        free(self.follows)
        free(self.takes)
        free(self.masks)
        free(self.near)
        free(self.near_marks)
        free(self.alive)
        free(self.alive_marks)

    def edges(self, bint begins, bint open_end):
        """Say whether the first row of the next partition is its first of all, and whether rows may still come."""
        self.begins, self.open_end = begins, open_end

    cdef int prepare(self, int64_t low, int64_t high) except -1 nogil:
        """Compute all blocks of a partition of rows low to high (exclusive), and keep the first in memory."""
        cdef int64_t rows = high - low + 1, blocks, each
        cdef Py_ssize_t needed, cell
        self.low, self.high = low, high
        if self.counters:  # what counts looks far ahead: all rows stay in memory
            self.block = rows
            with gil:
                self.count_room(rows)
        blocks = (rows + self.block - 1) // self.block
        if self.packed:
            if min(rows, self.block) + 1 > self.room:
                self.words = <uint64_t*>grown(self.words, (min(rows, self.block) + 1) * sizeof(uint64_t))
                self.room = min(rows, self.block) + 1
            if blocks > self.mark_room:
                self.word_marks = <uint64_t*>grown(self.word_marks, blocks * sizeof(uint64_t))
                self.mark_room = blocks
            for each in range(blocks - 1, -1, -1):
                self.load(each)
            return 0
        needed = (min(rows, self.block) + 1) * self.steps
        cell = sizeof(int64_t) if self.bounded else 1
        if needed > self.room:
            if self.bounded:
                self.near = <int64_t*>grown(self.near, needed * cell)
            else:
                self.alive = <uint8_t*>grown(self.alive, needed * cell)
            self.room = needed
        if blocks * self.steps > self.mark_room:
            if self.bounded:
                self.near_marks = <int64_t*>grown(self.near_marks, blocks * self.steps * cell)
            else:
                self.alive_marks = <uint8_t*>grown(self.alive_marks, blocks * self.steps * cell)
            self.mark_room = blocks * self.steps
        each = blocks - 1
        while each >= 0:
            self.load(each)
            each -= 1
        return 0

    cdef void load(self, int64_t number) noexcept nogil:
        """Compute the rows of a block from the first row of the one behind it."""
        cdef int64_t start = self.low + number * self.block, row
        cdef int64_t end = min(start + self.block, self.high + 1)
        cdef Py_ssize_t i, m = self.steps
        self.loaded = start
        if self.packed:
            self.words[end - start] = self.word_marks[number + 1] if end <= self.high else 0
            for row in range(end - 1, start - 1, -1):
                self.words[row - start] = self.word(row, self.words[row - start + 1])
            self.word_marks[number] = self.words[0]
            return
        if end <= self.high:
            for i in range(m):
                if self.bounded:
                    self.near[(end - start) * m + i] = self.near_marks[(number + 1) * m + i]
                else:
                    self.alive[(end - start) * m + i] = self.alive_marks[(number + 1) * m + i]
        row = end - 1
        while row >= start:
            if self.bounded:
                self.compute_near(row, start)
            else:
                self.compute_alive(row, start)
            row -= 1
        self.count_done()
        for i in range(m):
            if self.bounded:
                self.near_marks[number * m + i] = self.near[i]
            else:
                self.alive_marks[number * m + i] = self.alive[i]

    cdef void compute_alive(self, int64_t row, int64_t start) noexcept nogil:
        cdef uint8_t* here = self.alive + (row - start) * self.steps
        cdef uint8_t* later = here + self.steps
        cdef const uint8_t* mask
        cdef Py_ssize_t i
        cdef int32_t kind
        cdef Py_ssize_t k = 0
        for i in range(self.steps):
            kind = self.kinds[i]
            if kind == COUNTED:
                self.count_alive(&self.counter[k], row)
                k += 1
            elif kind == TAKE:
                if row == self.high:
                    here[i] = self.open_end
                else:
                    mask = self.masks[self.variables[i]]
                    here[i] = later[self.first[i]] & (1 if mask == NULL else mask[row])
            elif kind == SPLIT:
                here[i] = here[self.first[i]] | here[self.second[i]]
            elif kind == AT_START:
                here[i] = here[self.first[i]] if row == self.low and self.begins else 0
            elif kind == AT_END:
                here[i] = here[self.first[i]] if row == self.high else 0
            else:
                here[i] = 1
        for k in range(self.counters):
            i = row - self.low
            self.counter[k].behind[i] = row if here[self.first[self.counter[k].step]] else self.counter[k].behind[i + 1]

    cdef void compute_near(self, int64_t row, int64_t start) noexcept nogil:
        cdef int64_t* here = self.near + (row - start) * self.steps
        cdef int64_t* later = here + self.steps
        cdef const uint8_t* mask
        cdef Py_ssize_t i
        cdef int32_t kind
        cdef Py_ssize_t k = 0
        for i in range(self.steps):
            kind = self.kinds[i]
            if kind == COUNTED:
                self.count_near(&self.counter[k], row)
                k += 1
            elif kind == TAKE:
                if row == self.high:
                    here[i] = row + 1 if self.open_end else INT64_MAX
                else:
                    mask = self.masks[self.variables[i]]
                    here[i] = later[self.first[i]] if mask == NULL or mask[row] else INT64_MAX
            elif kind == SPLIT:
                here[i] = min(here[self.first[i]], here[self.second[i]])
            elif kind == AT_START:
                here[i] = here[self.first[i]] if row == self.low and self.begins else INT64_MAX
            elif kind == AT_END:
                here[i] = here[self.first[i]] if row == self.high else INT64_MAX
            else:
                here[i] = row

    cdef int count_room(self, int64_t rows) except -1:
        """Room for so many rows of what counts."""
        cdef Counter* each
        cdef Py_ssize_t k, size = (rows + 1) * sizeof(int64_t)
        for k in range(self.counters):
            each = &self.counter[k]
            if each.room < rows:
                each.run = <int64_t*>grown(each.run, size)
                each.behind = <int64_t*>grown(each.behind, size)
                each.before = <int64_t*>grown(each.before, size)
                each.queue = <int64_t*>grown(each.queue, size)
                each.room = rows
            each.run[rows], each.behind[rows] = 0, INT64_MAX
            each.head = each.tail = 0
        return 0

    cdef int64_t _run(self, Counter* each, int64_t row) noexcept nogil:
        """How many rows from one on the variable of a step takes."""
        cdef const uint8_t* mask = self.masks[self.variables[each.step]]
        cdef int64_t i = row - self.low
        each.run[i] = each.run[i + 1] + 1 if row < self.high and (mask == NULL or mask[row]) else 0
        return each.run[i]

    cdef bint _goes_on(self, Counter* each, int64_t row) noexcept nogil:
        """Whether rows to come may be more of the same."""
        return (self.open_end and row + each.run[row - self.low] == self.high
                and each.run[row - self.low] < each.high)

    cdef void count_alive(self, Counter* each, int64_t row) noexcept nogil:
        cdef int64_t reach = min(each.high, self._run(each, row)), i = row - self.low
        self.alive[i * self.steps + each.step] = (
            self._goes_on(each, row) or (each.low <= reach and each.behind[i + each.low] <= row + reach))

    cdef void count_near(self, Counter* each, int64_t row) noexcept nogil:
        cdef int64_t reach = row + min(each.high, self._run(each, row)), found = INT64_MAX, end, place = row + each.low
        cdef int32_t follows = self.first[each.step]
        if reach == row:
            each.head = each.tail = 0
        elif place <= reach:  # the window of rows behind which what follows may begin moves by one
            end = self.near[(place - self.low) * self.steps + follows]
            while (each.tail > each.head
                    and self.near[(each.queue[each.tail - 1] - self.low) * self.steps + follows] >= end):
                each.tail -= 1
            each.queue[each.tail] = place
            each.tail += 1
        while each.tail > each.head and each.queue[each.head] > reach:
            each.head += 1
        if each.tail > each.head:
            found = self.near[(each.queue[each.head] - self.low) * self.steps + follows]
        if self._goes_on(each, row):
            found = min(found, self.high + 1)
        self.near[(row - self.low) * self.steps + each.step] = found

    cdef void count_done(self) noexcept nogil:
        """All rows are known: from which rows what follows can go on, looking back."""
        cdef Py_ssize_t k
        cdef int64_t i
        if self.bounded:
            return
        for k in range(self.counters):
            for i in range(self.high - self.low + 1):
                if self.counter[k].behind[i] == self.low + i:
                    self.counter[k].before[i] = self.low + i
                else:
                    self.counter[k].before[i] = self.counter[k].before[i - 1] if i else -1

    cdef int64_t counted(self, int32_t step, int64_t row, int64_t most) noexcept nogil:
        """The row behind those that a step takes from a row on; -1 where rows to come decide."""
        cdef Counter* each = self.counter
        cdef int64_t reach, place
        cdef bint goes_on
        cdef int32_t follows = self.first[step]
        while each.step != step:
            each += 1
        goes_on = self._goes_on(each, row) and (not self.bounded or self.high + 1 <= most)
        reach = row + min(each.high, each.run[row - self.low])
        if self.second[step]:
            if goes_on:
                return -1
            if not self.bounded:
                return each.before[reach - self.low]
            place = min(reach, most)
            while self.near[(place - self.low) * self.steps + follows] > most:
                place -= 1
            return place
        place = row + each.low
        if not self.bounded:
            place = each.behind[min(place, self.high + 1) - self.low]
        else:
            while place <= reach and self.near[(place - self.low) * self.steps + follows] > most:
                place += 1
        return place if place <= reach else -1

    cdef bint can(self, int64_t row, int32_t step, int64_t most) noexcept nogil:
        """Whether the end of the pattern can be reached from a step before a row, no row from `most` on taken."""
        if row < self.loaded or row >= self.loaded + self.block:
            self.load((row - self.low) // self.block)
        if self.packed:
            return (self.words[row - self.loaded] >> step) & 1
        if self.bounded:
            return self.near[(row - self.loaded) * self.steps + step] <= most
        return self.alive[(row - self.loaded) * self.steps + step]

    cdef bint waits(self, int64_t row, int32_t step) noexcept nogil:
        """Whether rows to come say if a step that takes rows takes a row that is there."""
        cdef const uint8_t* mask = self.masks[self.variables[step]]
        return mask != NULL and mask[row] == MAYBE

    def prepared(self, int64_t low, int64_t high, int64_t end):
        """`prepare`, for callers in Python; rows from `high` to `end` can be read by those before them."""
        self.prepare(low, high)
        self.end = end


def rows_read(const uint8_t[:, ::1] members, const int64_t[:, ::1] readings, const int32_t[::1] variables,
              const int32_t[::1] steps):
    """How many rows behind the first of a match, and this one, measures read.

    Parameters
    ----------
    members : uint8 array of shape (readings, variables)
        Whose rows a reading counts.
    readings : int64 array of shape (readings, 3)
        Whether from the last row, rows inwards, rows of the partition further on.
    variables : int32 array of shape (steps,)
    steps : int32 array of shape (rows,)
        Which took the rows of the match.
    """
    cdef int64_t most = 0, left, row, count = steps.shape[0]
    cdef Py_ssize_t i
    for i in range(readings.shape[0]):
        left, row = readings[i, 1], count - 1 if readings[i, 0] else 0
        while 0 <= row < count and (left or not members[i, variables[steps[row]]]):
            left -= members[i, variables[steps[row]]]
            row += -1 if readings[i, 0] else 1
        if 0 <= row < count:
            most = max(most, row + readings[i, 2] + 1)
    return most


def walk(Table table, int32_t start_step, const int64_t[::1] offsets, const int64_t[::1] horizon, int skip,
         const uint8_t[::1] member):
    """All matches of all partitions.

    Parameters
    ----------
    table : Table
    start_step : int
    offsets : int64 array of shape (partitions + 1,)
    horizon : int64 array of shape (rows,) or (0,)
        By start row, the first row that lies too far behind it; only for a bounded table.
    skip : int
        What follows a match: PAST the last row, the NEXT row, the first or last row of a variable.
    member : uint8 array of shape (variables,)
        The variables that are skipped to.

    Returns
    -------
    Matches
    """
    found = Matches()
    cdef Matches matches = found
    cdef Py_ssize_t partition
    with nogil:
        for partition in range(offsets.shape[0] - 1):
            if offsets[partition] == offsets[partition + 1]:
                continue
            table.prepare(offsets[partition], offsets[partition + 1])
            if not _partition(table, matches, start_step, partition, offsets[partition], 0, horizon, skip, member):
                break
    return found


def walk_all(Table table, const int32_t[::1] starts, const int64_t[::1] offsets, const int32_t[::1] skips,
             const uint8_t[:, ::1] members):
    """All matches of all partitions for several starts in one table, which is not bounded.

    Parameters
    ----------
    table : Table
    starts, skips : int32 arrays of shape (starts,)
    offsets : int64 array of shape (partitions + 1,)
    members : uint8 array of shape (starts, variables)
        As `walk` has them.

    Returns
    -------
    list of Matches
    """
    found = [Matches() for _ in range(starts.shape[0])]
    cdef const int64_t[::1] horizon = np.zeros(0, np.int64)
    cdef Matches matches
    cdef Py_ssize_t partition, i
    for partition in range(offsets.shape[0] - 1):
        if offsets[partition] == offsets[partition + 1]:
            continue
        table.prepare(offsets[partition], offsets[partition + 1])
        for i in range(starts.shape[0]):
            matches = found[i]
            if matches.error is None:
                _partition(table, matches, starts[i], partition, offsets[partition], 0, horizon, skips[i], members[i])
    return found


def walk_on(Table table, Matches found, int32_t start_step, int64_t partition, int64_t low, int64_t high,
            int64_t begin, int64_t number, const int64_t[::1] horizon, int skip, const uint8_t[::1] member):
    """Find the matches of one partition from a row on, as far as they are certain.

    Returns
    -------
    (int, int)
        The first start that is not decided, and how many matches there were.
    """
    cdef int64_t place
    table.prepare(low, high)
    place = _from(table, found, start_step, partition, begin, &number, horizon, skip, member)
    return place, number


cdef bint _partition(Table table, Matches matches, int32_t start_step, int64_t partition, int64_t row, int64_t number,
                     const int64_t[::1] horizon, int skip, const uint8_t[::1] member) except -1 nogil:
    cdef int64_t count = number
    return _from(table, matches, start_step, partition, row, &count, horizon, skip, member) >= 0


cdef int64_t _from(Table table, Matches matches, int32_t start_step, int64_t partition, int64_t row, int64_t* number,
                   const int64_t[::1] horizon, int skip, const uint8_t[::1] member) except -2 nogil:
    """Find matches from a row on; gives the first start that is not decided, or -1 where nothing can be skipped to."""
    cdef int64_t place, most, length, target
    cdef int32_t step
    while row < table.high:
        most = horizon[row] if table.bounded else 0
        if not table.can(row, start_step, most):
            row += 1
            continue
        step = start_step
        place = row
        matches.reserve(1)
        while table.kinds[step] != ACCEPT:
            if table.kinds[step] == TAKE:
                if place == table.high or (table.open_end and table.waits(place, step)):
                    return row  # rows to come decide
                if matches._labels + place - row >= matches._label_room:
                    matches.reserve(place - row + 1)
                matches._steps[matches._labels + place - row] = step
                place += 1
                step = table.first[step]
            elif table.kinds[step] == COUNTED:
                target = table.counted(step, place, most)
                if target < 0:
                    return row
                if matches._labels + target - row >= matches._label_room:
                    matches.reserve(target - row + 1)
                while place < target:
                    if table.open_end and table.waits(place, step):
                        return row
                    matches._steps[matches._labels + place - row] = step
                    place += 1
                step = table.first[step]
            elif table.kinds[step] == SPLIT:
                step = table.first[step] if table.can(place, table.first[step], most) else table.second[step]
            else:
                step = table.first[step]
        length = place - row
        number[0] += 1
        target = skipped(skip, member, table.variables, matches._steps + matches._labels, length)
        matches.close(row, length, number[0], partition)
        if target <= 0:
            with gil:
                matches.error = (partition, row, target)
            return -1
        row += target
    return row
