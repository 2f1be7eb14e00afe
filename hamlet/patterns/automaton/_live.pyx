"""Matches of rows that come one by one, where conditions read the candidate row and rows before it.

Of each partition only the first start that is not decided is followed: its ways through the pattern, the preferred one
first, each at the step that takes the next row. A row costs as much as there are ways. When the first start is decided,
the next one follows over the rows that are kept; starts that cannot match are found by one look back over those rows,
so that a long run of starts that all fail together costs its length once.

Contract: as in `_walk`; a partition's cells have as many columns as the programs read.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove

import numpy as np

from hamlet.patterns.automaton._machine cimport READ_INT, READ_REAL, Value, apply

cdef enum:
    TAKE = 0
    SPLIT = 1
    AT_START = 2
    AT_END = 3
    ACCEPT = 4

cdef enum:  # what follows a match, as in `_walk`
    PAST = 0
    NEXT = 1
    TO_FIRST = 2

DEF DEEPEST = 64
DEF LOOK_BACK = 48   # so many rows behind a start that fails make a look back over them worth while
cdef int64_t _NEVER = 9223372036854775807


cdef struct Cell:
    int64_t whole
    double real
    bint null


cdef struct Way:
    int32_t step         # that takes the next row
    int64_t node         # the last row's, -1 for none


cdef struct Node:
    int32_t step
    int64_t before


cdef void* _grown(void* old, Py_ssize_t size) except NULL:
    cdef void* found = realloc(old, size)
    if found == NULL:
        raise MemoryError
    return found


cdef inline bint is_later(int64_t start, int64_t within, int64_t time) noexcept nogil:
    """Whether a time is more than so much later than a start; the two may lie further apart than 64 bits say."""
    return time > start and <uint64_t> time - <uint64_t> start > <uint64_t> within


cdef class Live:
    """A statement's automaton and conditions.

    Parameters
    ----------
    kinds, first, second, variables : int32 arrays of shape (steps,)
    start : int
    programs : list
        By variable: None for a condition that is always true, else int64 operations of shape (operations, 4) and a
        float64 array of shape (operations,); READ_INT and READ_REAL take a column and how many rows back.
    columns : int
        Of the cells that programs read.
    back : int
        The most rows back that programs read.
    skip : int
    member : uint8 array of shape (variables,)
    within : int, or None
        The longest time between the first row and the last.
    """

    cdef const int32_t[::1] kinds, first, second, variables
    cdef const uint8_t[::1] member
    cdef list programs
    cdef const int64_t** codes
    cdef const double** reals
    cdef Py_ssize_t* lengths
    cdef int32_t start_step
    cdef Py_ssize_t steps, count, columns, back
    cdef int skip
    cdef bint bounded
    cdef int64_t within
    cdef int64_t* seen      # by step: the number of the row before which it was reached last
    cdef int64_t stamp
    cdef uint8_t* alive
    cdef Py_ssize_t alive_room
    cdef int32_t* stack

    def __cinit__(self, kinds, first, second, variables, int32_t start, list programs, Py_ssize_t columns,
                  Py_ssize_t back, int skip, member, within):
        cdef Py_ssize_t i
        cdef const int64_t[:, ::1] code
        cdef const double[::1] real
        self.kinds, self.first, self.second, self.variables, self.member = kinds, first, second, variables, member
        self.start_step, self.columns, self.back, self.skip = start, columns, back, skip
        self.steps, self.count, self.programs = self.kinds.shape[0], len(programs), programs
        self.bounded = within is not None
        self.within = min(within, INT64_MAX) if self.bounded else 0
        self.seen = <int64_t*>calloc(self.steps, sizeof(int64_t))
        self.stack = <int32_t*>malloc((2 * self.steps + 2) * sizeof(int32_t))
        self.codes = <const int64_t**>calloc(self.count + 1, sizeof(int64_t*))
        self.reals = <const double**>calloc(self.count + 1, sizeof(double*))
        self.lengths = <Py_ssize_t*>calloc(self.count + 1, sizeof(Py_ssize_t))
        if (self.seen == NULL or self.stack == NULL or self.codes == NULL or self.reals == NULL
                or self.lengths == NULL):
            raise MemoryError
        self.stamp, self.alive, self.alive_room = 0, NULL, 0
        for i in range(self.count):
            if programs[i] is not None:
                code, real = programs[i]
                self.codes[i], self.reals[i], self.lengths[i] = &code[0, 0], &real[0], code.shape[0]

    def __dealloc__(self):
        free(self.seen)
        free(self.stack)
        free(self.codes)
        free(self.reals)
        free(self.lengths)
        free(self.alive)


cdef class Partition:
    """The rows of one partition that are kept, and its first start that is not decided.

    Attributes
    ----------
    rows : list of tuple
        As they were pushed, those first that PREV may still read.
    start : int
        The place in `rows` of the first start that is not decided.
    number : int
        Matches so far.
    begins : bool
        Whether the first row kept is the partition's first.
    """

    cdef Live live
    cdef public list rows
    cdef public int64_t start, number
    cdef public bint begins
    cdef int64_t* times
    cdef uint8_t* holds         # by row and variable: whether the row meets the condition
    cdef Cell* cells            # of the last rows, as many as are read back, a ring
    cdef Py_ssize_t room
    cdef int64_t counted        # rows whose conditions are known
    cdef int64_t at             # the next row of the ways
    cdef bint begun
    cdef Way* ways
    cdef Way* later
    cdef Py_ssize_t way_count, later_count
    cdef Node* nodes
    cdef int64_t node_count, node_room
    cdef int64_t best, best_length  # the preferred match of the start so far: its last row's node, -2 for none

    def __cinit__(self, Live live):
        self.live, self.rows = live, []
        self.start = self.number = self.counted = self.at = 0
        self.begins, self.begun = True, False
        self.room = 16
        self.times = <int64_t*>malloc(self.room * sizeof(int64_t))
        self.holds = <uint8_t*>malloc(self.room * max(1, live.count))
        self.cells = <Cell*>calloc((live.back + 1) * max(1, live.columns), sizeof(Cell))
        self.ways = <Way*>malloc((live.steps + 1) * sizeof(Way))
        self.later = <Way*>malloc((live.steps + 1) * sizeof(Way))
        self.node_room = 16
        self.nodes = <Node*>malloc(self.node_room * sizeof(Node))
        if (self.times == NULL or self.holds == NULL or self.cells == NULL or self.ways == NULL
                or self.later == NULL or self.nodes == NULL):
            raise MemoryError

    def __dealloc__(self):
        free(self.times)
        free(self.holds)
        free(self.cells)
        free(self.ways)
        free(self.later)
        free(self.nodes)

    @property
    def size(self):
        """Bytes that are kept beside the rows themselves."""
        return (self.room * (sizeof(int64_t) + self.live.count) + self.node_room * sizeof(Node)
                + 2 * self.live.steps * sizeof(Way) + 400)

    def take(self, tuple row, int64_t time, tuple values):
        """Take a row: `values` are the columns that conditions read, as int or float, or None."""
        cdef Live live = self.live
        cdef Py_ssize_t i, place = len(self.rows)
        cdef Cell* cell
        if place == self.room:
            self.times = <int64_t*>_grown(self.times, 2 * self.room * sizeof(int64_t))
            self.holds = <uint8_t*>_grown(self.holds, 2 * self.room * max(1, live.count))
            self.room *= 2
        cell = self.cells + (self.counted % (live.back + 1)) * live.columns
        for i in range(live.columns):
            value = values[i]
            cell[i].null = value is None
            if value is None:
                continue
            if type(value) is float:
                cell[i].real = value
            else:
                cell[i].whole = value
        self.times[place] = time
        for i in range(live.count):
            self.holds[place * live.count + i] = live.codes[i] == NULL or self._holds(i)
        self.rows.append(row)
        self.counted += 1

    cdef bint _holds(self, Py_ssize_t variable) except -1:
        """Whether the row that has just come meets a condition."""
        cdef Live live = self.live
        cdef Value stack[DEEPEST]
        cdef Value* top = stack
        cdef const int64_t* code = live.codes[variable]
        cdef Py_ssize_t i
        cdef Cell* cell
        top -= 1
        for i in range(live.lengths[variable]):
            if code[0] == READ_INT or code[0] == READ_REAL:
                top += 1
                top.null = code[2] > self.counted
                if not top.null:
                    cell = self.cells + ((self.counted - code[2]) % (live.back + 1)) * live.columns + code[1]
                    top.null, top.whole, top.real = cell.null, cell.whole, cell.real
            else:
                top = apply(code[0], code[1], live.reals[variable][i], top)
            code += 4
        return not top.null and top.whole != 0

    cdef int _enter(self, int32_t step, int64_t node, int64_t length) except -1:
        """Follow the steps that take no row from a step on, the preferred first.

        Gives 1 where the end is reached: no way that is less preferred matters then.
        """
        cdef Live live = self.live
        cdef Py_ssize_t depth = 1
        live.stack[0] = step
        while depth:
            depth -= 1
            step = live.stack[depth]
            if live.seen[step] == live.stamp:
                continue
            live.seen[step] = live.stamp
            if live.kinds[step] == TAKE:
                self.later[self.later_count].step, self.later[self.later_count].node = step, node
                self.later_count += 1
            elif live.kinds[step] == SPLIT:
                live.stack[depth] = live.second[step]
                live.stack[depth + 1] = live.first[step]
                depth += 2
            elif live.kinds[step] == AT_START:
                if self.begins and self.start + length == 0:
                    live.stack[depth] = live.first[step]
                    depth += 1
            elif live.kinds[step] == ACCEPT:
                self.best, self.best_length = node, length
                return 1
        return 0

    cdef void _swap(self) noexcept:
        cdef Way* ways = self.ways
        self.ways, self.later = self.later, ways
        self.way_count, self.later_count = self.later_count, 0

    cdef int _begin(self) except -1:
        self.begun, self.at = True, self.start
        self.best, self.node_count = -2, 0
        self.live.stamp += 1
        self.later_count = 0
        self._enter(self.live.start_step, -1, 0)
        self._swap()
        return 0

    cdef int _step(self) except -1:
        """Let the next row be taken by the ways."""
        cdef Live live = self.live
        cdef const uint8_t* holds = self.holds + self.at * live.count
        cdef Py_ssize_t i
        cdef int32_t step
        cdef bint beyond = live.bounded and is_later(self.times[self.start], live.within, self.times[self.at])
        live.stamp += 1
        self.at += 1
        if not beyond:
            for i in range(self.way_count):
                step = self.ways[i].step
                if not holds[live.variables[step]]:
                    continue
                if self.node_count == self.node_room:
                    self.nodes = <Node*>_grown(self.nodes, 2 * self.node_room * sizeof(Node))
                    self.node_room *= 2
                self.nodes[self.node_count].step, self.nodes[self.node_count].before = step, self.ways[i].node
                self.node_count += 1
                if self._enter(live.first[step], self.node_count - 1, self.at - self.start):
                    break
        self._swap()
        return 0

    def settle(self, int64_t mark, list found):
        """Decide starts as far as rows do; `mark` is the time before which no row comes any more.

        Matches are appended as (first row, rows, number, steps as bytes of int32). Gives None, or, where nothing can be
        skipped to, the first row and which row of the match it is.
        """
        cdef Live live = self.live
        cdef int64_t count = len(self.rows), target, looked = -1
        cdef bint late
        while self.start < count:
            if not self.begun:
                self._begin()
            while self.way_count and self.at < count:
                self._step()
            if self.way_count:
                late = live.bounded and is_later(self.times[self.start], live.within, mark)
                if not late:
                    return None
            self.begun = False
            if self.best == -2:
                if looked < 0 and count - self.start > LOOK_BACK:
                    looked = self.start
                    self._look_back(count)
                self.start += 1
                if looked >= 0:
                    while self.start < count and not live.alive[(self.start - looked) * live.steps + live.start_step]:
                        self.start += 1
                continue
            self.number += 1
            labels = np.empty(self.best_length, np.int32)
            target = self._labels(labels)
            found.append((self.start, self.best_length, self.number, labels))
            if self.best_length == 0 or live.skip == NEXT:
                self.start += 1
            elif live.skip == PAST:
                self.start += self.best_length
            elif target <= 0:
                return self.start, target
            else:
                self.start += target
        return None

    cdef int64_t _labels(self, int32_t[::1] labels) except -2:
        """Fill in the steps of the match; gives the row that is skipped to, -1 for none."""
        cdef Live live = self.live
        cdef int64_t place = self.best_length - 1, node = self.best, target = -1
        while node >= 0:
            labels[place] = self.nodes[node].step
            node = self.nodes[node].before
            place -= 1
        for place in range(self.best_length):
            if live.skip > NEXT and live.member[live.variables[labels[place]]]:
                target = place
                if live.skip == TO_FIRST:
                    break
        return target

    cdef int _look_back(self, int64_t count) except -1:
        """For each row from the start on, which steps can reach the end of the pattern or of the rows."""
        cdef Live live = self.live
        cdef int64_t row = count, rows = count - self.start + 1
        cdef uint8_t* here
        cdef Py_ssize_t i
        if rows * live.steps > live.alive_room:
            live.alive = <uint8_t*>_grown(live.alive, rows * live.steps)
            live.alive_room = rows * live.steps
        while row >= self.start:
            here = live.alive + (row - self.start) * live.steps
            for i in range(live.steps):
                if live.kinds[i] == ACCEPT:
                    here[i] = 1
                elif live.kinds[i] == TAKE:
                    here[i] = row == count or (
                        self.holds[row * live.count + live.variables[i]] and here[live.steps + live.first[i]]
                    )
                elif live.kinds[i] == SPLIT:
                    here[i] = here[live.first[i]] or here[live.second[i]]
                elif live.kinds[i] == AT_START:
                    here[i] = self.begins and row == 0 and here[live.first[i]]
                else:
                    here[i] = 0
            row -= 1
        return 0

    def forget(self, int64_t back):
        """Let go of rows that neither the start nor `back` rows before it need; gives how many they are."""
        cdef Py_ssize_t drop = self.start - back, left
        if drop <= 0:
            return 0
        if drop < len(self.rows) and (drop < 32 or 2 * drop < len(self.rows)):
            return 0  # not worth moving the rest
        left = len(self.rows) - drop
        del self.rows[:drop]
        memmove(self.times, self.times + drop, left * sizeof(int64_t))
        memmove(self.holds, self.holds + drop * self.live.count, left * self.live.count)
        self.start -= drop
        self.at -= drop
        self.begins = False
        return drop

    @property
    def deadline(self):
        """The time after which the start is decided whatever comes, None without one."""
        if not self.live.bounded or self.start >= len(self.rows):
            return None
        return min(int(self.times[self.start]) + self.live.within, INT64_MAX)
