"""Matches of rows that come one by one, where programs evaluate conditions.

Of each partition only the first start that is not decided is followed. Where conditions read rows at a fixed distance
these are its ways through the pattern, the preferred one first, each at the step that takes the next row: a row costs
as much as there are ways. Conditions that read rows to come hold perhaps, and the ways from there on are tried anew
with each row. Where conditions read labels it is a search (`_search`) that goes on where it stood when the
rows ended. When the first start is decided, the next one follows over the rows that are kept; starts that cannot match
are found by one look back over those rows, so that a long run of starts that all fail together costs its length once.

Contract: as in `_walk`; a partition's cells have as many columns as the programs read.
"""

import cython
import numpy as np

from cpython.datetime cimport (
    PyDateTime_DATE_GET_HOUR, PyDateTime_DATE_GET_MICROSECOND, PyDateTime_DATE_GET_MINUTE, PyDateTime_DATE_GET_SECOND,
    PyDateTime_GET_DAY, PyDateTime_GET_MONTH, PyDateTime_GET_YEAR, date, datetime, import_datetime,
)
from cpython.ref cimport PyObject
from libc.math cimport INFINITY, nextafter
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove

from hamlet.memory.arrays cimport grown
from hamlet.patterns.automaton._machine cimport (
    KNOWN, NEVER_FALSE, NULL_VALUE, READ_INT, READ_REAL, TO_COME, Value, apply,
)
from hamlet.patterns.automaton._search cimport MATCH, WAITS, Search
from hamlet.patterns.automaton._walk cimport ACCEPT, AT_START, MAYBE, SPLIT, TAKE, Table, skipped

from hamlet.patterns.automaton._walk import rows_read

DEF DEEPEST = 64
DEF LOOK_BACK = 48   # so many rows behind a start that fails make a look back over them worth while
DEF CALL = 20        # one call may take so many times the steps of a start


cdef struct Cell:
    int64_t whole
    double real
    int null


cdef struct Program:
    const int64_t* code      # NULL for what is always true
    const double* reals
    Py_ssize_t length
    int64_t ahead            # the most rows ahead that it reads
    bint real


cdef struct Way:
    int32_t step         # that takes the next row
    int64_t node         # the last row's, -1 for none
    bint unsure          # whether a row on it holds perhaps


cdef struct Node:
    int32_t step
    int64_t before


import_datetime()


def days(date value):
    """A date in days since 1970."""
    cdef int64_t month = (PyDateTime_GET_MONTH(value) + 9) % 12  # March is the first one, so that leap days come last
    cdef int64_t year = PyDateTime_GET_YEAR(value) - month // 10
    cdef int64_t leap = year // 4 - year // 100 + year // 400
    return 365 * year + leap + (153 * month + 2) // 5 + PyDateTime_GET_DAY(value) - 719469


def microseconds(datetime value):
    """A time in microseconds since 1970, by its own clock."""
    cdef int64_t seconds = 86400 * <int64_t>days(value) + 3600 * PyDateTime_DATE_GET_HOUR(value)
    seconds += 60 * PyDateTime_DATE_GET_MINUTE(value) + PyDateTime_DATE_GET_SECOND(value)
    return 1000000 * seconds + PyDateTime_DATE_GET_MICROSECOND(value)


cdef inline int64_t bits(double value) noexcept nogil:
    return (<int64_t*>&value)[0]


cdef inline double real(int64_t kept) noexcept nogil:
    return (<double*>&kept)[0]


cdef inline bint is_later(bint reals, int64_t start, int64_t within, int64_t time) noexcept nogil:
    """Whether a time is more than so much later than a start; the two may lie further apart than 64 bits say."""
    if reals:
        return real(time) - real(start) > real(within)  # subtracted: a sum may be rounded to one that is later
    return time > start and <uint64_t> time - <uint64_t> start > <uint64_t> within


cdef int _run(const Program* program, const Cell* cells, Py_ssize_t columns, int64_t rows, int64_t row, int64_t count,
              Value* found) except -1:
    """The value of a program at a row, where `cells` are a ring of so many rows; of no row where there are none.

    Rows from `count` on are to come.
    """
    cdef Value stack[DEEPEST]
    cdef Value* top = stack
    cdef const int64_t* code = program.code
    cdef const Cell* cell
    cdef Py_ssize_t i
    top -= 1
    for i in range(program.length):
        if code[0] == READ_INT or code[0] == READ_REAL:
            top += 1
            top.null = NULL_VALUE if rows == 0 or code[2] > row else TO_COME if row - code[2] >= count else KNOWN
            if top.null == KNOWN:
                cell = cells + ((row - code[2]) % rows) * columns + code[1]
                top.null, top.whole, top.real = cell.null, cell.whole, cell.real
        else:
            top = apply(code[0], code[1], program.reals[i], top)
        code += 4
    found[0] = top[0]
    return 0


def without_row(code, reals, bint real):
    """The value of a program where all that it reads is NULL."""
    cdef const int64_t[:, ::1] operations = code
    cdef const double[::1] numbers = reals
    cdef Program program
    cdef Value value
    program.code, program.reals, program.length = &operations[0, 0], &numbers[0], operations.shape[0]
    _run(&program, NULL, 0, 0, 0, 0, &value)
    return None if value.null else value.real if real else value.whole


cdef class Live:
    """A statement's automaton and conditions.

    Parameters
    ----------
    kinds, first, second, variables : int32 arrays of shape (steps,)
    start : int
    programs : list
        By variable: None for a condition that is always true or reads labels, else (int64 operations of shape
        (operations, 4), float64 array of shape (operations,)); READ_INT and READ_REAL take a column and how many rows
        back. Behind them those of the columns that conditions over labels read.
    cells : int
        How many values programs read of a row.
    back, ahead : int
        The most rows back and ahead that programs read.
    skip : int
    member : uint8 array of shape (variables,)
    within : int or float, or None
        The longest time between the first row and the last; times are of its type.
    searching : tuple, or None
        Where conditions read labels: members, slots, sums, programs, keep and all_labels of `_search.Search`.
    later : (uint8 array, int64 array)
        What measures read of rows ahead, as `_walk.rows_read` takes it: they have to be there before a match is given.
    unmatched : bool
        Whether rows of no match are given.
    max_steps : int
        Most steps of one start where conditions read labels.
    """

    cdef const int32_t[::1] kinds, first, second, variables
    cdef const uint8_t[::1] member
    cdef list kept
    cdef object searching, later
    cdef Program* programs
    cdef int32_t start_step
    cdef Py_ssize_t steps, count, columns, cells, ring
    cdef int64_t max_steps
    cdef int skip
    cdef bint bounded, reals, unmatched
    cdef int64_t within
    cdef int64_t* seen      # by step: the number of the row before which it was reached last
    cdef int64_t stamp
    cdef uint8_t* alive
    cdef Py_ssize_t alive_room
    cdef int32_t* stack

    def __cinit__(self, kinds, first, second, variables, int32_t start, list programs, Py_ssize_t cells,
                  Py_ssize_t back, int64_t ahead, int skip, const uint8_t[::1] member, within, searching, later,
                  bint unmatched, int64_t max_steps):
        cdef Py_ssize_t i
        cdef const int64_t[:, ::1] code
        cdef const double[::1] reals
        self.kinds, self.first, self.second, self.variables, self.member = kinds, first, second, variables, member
        self.start_step, self.cells, self.skip = start, cells, skip
        self.steps, self.count, self.kept = self.kinds.shape[0], member.shape[0], programs
        self.columns = len(programs) - self.count
        self.searching, self.later, self.unmatched, self.max_steps = searching, later, unmatched, max_steps
        self.bounded = within is not None
        self.reals = isinstance(within, float)
        self.within = self.time(within) if self.bounded else 0
        self.seen = <int64_t*>calloc(self.steps, sizeof(int64_t))
        self.stack = <int32_t*>malloc((2 * self.steps + 2) * sizeof(int32_t))
        self.programs = <Program*>calloc(len(programs) + 1, sizeof(Program))
        if self.seen == NULL or self.stack == NULL or self.programs == NULL:
            raise MemoryError
        self.stamp, self.alive, self.alive_room = 0, NULL, 0
        for i in range(len(programs)):
            if programs[i] is not None:
                code, reals, self.programs[i].real = programs[i]
                self.programs[i].code, self.programs[i].reals = &code[0, 0], &reals[0]
                self.programs[i].length = code.shape[0]
                self.programs[i].ahead = max(0, -min(each[2] for each in programs[i][0]))
        self.ring = back + ahead + 1

    cdef int64_t time(self, time) except? -1:
        """A time or a duration as it is kept."""
        return bits(time) if self.reals else max(-INT64_MAX - 1, min(time, INT64_MAX))

    def __dealloc__(self):
        free(self.seen)
        free(self.stack)
        free(self.programs)
        free(self.alive)


cdef class Known(Table):
    """Which steps may take the rows of a partition that have come; nothing is known of rows behind them."""

    cdef const uint8_t* holds
    cdef Py_ssize_t count

    cdef bint waits(self, int64_t row, int32_t step) noexcept nogil:
        """Whether rows to come say if a step takes a row."""
        return self.holds[row * self.count + self.variables[step]] == MAYBE

    cdef bint can(self, int64_t row, int32_t step, int64_t most) noexcept nogil:
        """Whether a step may be tried before a row."""
        if self.kinds[step] == TAKE:
            return row < most and (row == self.high or self.holds[row * self.count + self.variables[step]])
        return self.kinds[step] != AT_START or (self.begins and row == 0)


@cython.no_gc_clear  # the statement must still be there when the values of its columns are freed
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
    covered : int
        The place behind the last row of any match so far.
    begins : bool
        Whether the first row kept is the partition's first.
    """

    cdef Live live
    cdef public list rows
    cdef public int64_t start, number, covered
    cdef public bint begins
    cdef int64_t* times
    cdef uint8_t* holds         # by row and variable: whether the row meets the condition, perhaps MAYBE
    cdef Cell* cells            # of the last rows, as many as are read back and ahead, a ring
    cdef int64_t** values       # by column of conditions over labels: whole numbers or doubles by row
    cdef uint8_t** nulls
    cdef Search search          # where conditions read labels
    cdef Known table
    cdef Py_ssize_t room
    cdef int64_t counted        # rows that have come
    cdef int64_t at             # the next row of the ways, or the next whose time is looked at
    cdef bint begun
    cdef bint stuck             # whether the start waits for rows, and not for time
    cdef Way* ways
    cdef Way* later
    cdef Way* sure              # the ways before the first row that holds perhaps
    cdef Py_ssize_t way_count, later_count
    cdef Node* nodes
    cdef int64_t node_count, node_room
    cdef int64_t best, best_length  # the preferred match of the start so far: its last row's node, -2 for none
    cdef bint best_unsure

    def __cinit__(self, Live live):
        self.live, self.rows = live, []
        self.start = self.number = self.counted = self.at = self.covered = 0
        self.begins, self.begun, self.stuck = True, False, False
        self.room, self.node_room = 16, 16
        self.cells = <Cell*>calloc(live.ring * max(1, live.cells), sizeof(Cell))
        self.ways = <Way*>malloc((live.steps + 1) * sizeof(Way))
        self.later = <Way*>malloc((live.steps + 1) * sizeof(Way))
        self.sure = <Way*>malloc((live.steps + 1) * sizeof(Way))
        self.nodes = <Node*>malloc(self.node_room * sizeof(Node))
        self.values = <int64_t**>calloc(live.columns + 1, sizeof(int64_t*))
        self.nulls = <uint8_t**>calloc(live.columns + 1, sizeof(uint8_t*))
        if (self.cells == NULL or self.ways == NULL or self.later == NULL or self.sure == NULL or self.nodes == NULL
                or self.values == NULL or self.nulls == NULL):
            raise MemoryError
        if live.searching is not None:
            self.table = Known(live.kinds, live.first, live.second, live.variables, [], False)
            self.table.count, self.table.low, self.table.open_end = live.count, 0, True
            members, slots, sums, programs, keep, all_labels = live.searching
            nothing = np.zeros(0, np.int64), np.zeros(0, np.uint8)
            self.search = Search(self.table, live.start_step, members, slots, [nothing] * live.columns, sums, programs,
                                 keep, all_labels)
        self._widen(16)

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.values != NULL and self.nulls != NULL:
            for i in range(self.live.columns):
                free(self.values[i])
                free(self.nulls[i])
        free(self.values)
        free(self.nulls)
        free(self.times)
        free(self.holds)
        free(self.cells)
        free(self.ways)
        free(self.later)
        free(self.sure)
        free(self.nodes)

    cdef int _widen(self, Py_ssize_t room) except -1:
        """Room for so many rows."""
        cdef Py_ssize_t i
        self.times = <int64_t*>grown(self.times, room * sizeof(int64_t))
        self.holds = <uint8_t*>grown(self.holds, room * self.live.count)
        for i in range(self.live.columns):
            self.values[i] = <int64_t*>grown(self.values[i], room * sizeof(int64_t))
            self.nulls[i] = <uint8_t*>grown(self.nulls[i], room)
            self.search.columns[i].whole, self.search.columns[i].real = self.values[i], <double*>self.values[i]
            self.search.columns[i].null = self.nulls[i]
        if self.table is not None:
            self.table.holds = self.holds
        self.room = room
        return 0

    @property
    def size(self):
        """Bytes that are kept beside the rows themselves."""
        return (self.room * (sizeof(int64_t) + self.live.count + 9 * self.live.columns)
                + self.node_room * sizeof(Node) + 3 * self.live.steps * sizeof(Way) + 400
                + (0 if self.search is None else self.search.size()))

    def take(self, tuple row, time, tuple values):
        """Take a row: its time matters where WITHIN bounds matches.

        `values` are the columns that conditions read, as int, float, the row's own str, or None.
        """
        cdef Live live = self.live
        cdef Py_ssize_t i
        cdef int64_t place = len(self.rows), behind
        cdef Cell* cell
        if place == self.room:
            self._widen(2 * self.room)
        cell = self.cells + (self.counted % live.ring) * live.cells
        for i in range(live.cells):
            value = values[i]
            cell[i].null = NULL_VALUE if value is None else KNOWN
            if value is None:
                continue
            if type(value) is float:
                cell[i].real = value
            elif type(value) is str:
                cell[i].whole = <int64_t><PyObject*>value  # the row keeps it alive
            else:
                cell[i].whole = value
        if live.bounded:
            self.times[place] = live.time(time)
        self.rows.append(row)
        self.counted += 1
        for i in range(live.count + live.columns):
            for behind in range(min(place, live.programs[i].ahead) + 1):
                self._evaluate(i, place - behind, self.counted - 1 - behind)

    cdef int _evaluate(self, Py_ssize_t i, int64_t place, int64_t row) except -1:
        """Carry out a program at a row, as far as the rows that it reads are there."""
        cdef Live live = self.live
        cdef Program* program = live.programs + i
        cdef Value found
        found.null, found.whole = KNOWN, True
        if program.code != NULL:
            _run(program, self.cells, live.cells, live.ring, row, self.counted, &found)
        if i < live.count:
            self.holds[place * live.count + i] = MAYBE if found.null == TO_COME or found.null == NEVER_FALSE else (
                found.null == KNOWN and found.whole != 0)
            return 0
        i -= live.count
        self.nulls[i][place] = found.null
        if program.real:
            (<double*>self.values[i])[place] = found.real
        else:
            self.values[i][place] = found.whole
        return 0

    cdef int _enter(self, int32_t step, int64_t node, int64_t length, bint unsure) except -1:
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
                self.later[self.later_count].unsure = unsure
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
                self.best, self.best_length, self.best_unsure = node, length, unsure
                return 1
        return 0

    cdef void _swap(self) noexcept:
        cdef Way* ways = self.ways
        self.ways, self.later = self.later, ways
        self.way_count, self.later_count = self.later_count, 0

    cdef int _begin(self) except -1:
        self.begun, self.at = True, self.start
        self.best, self.node_count = -2, 0
        if self.search is not None:
            self.search.begin(self.start, INT64_MAX, self.number + 1)
            return 0
        self.live.stamp += 1
        self.later_count = 0
        self._enter(self.live.start_step, -1, 0, False)
        self._swap()
        return 0

    cdef int _step(self) except -1:
        """Let the next row be taken by the ways."""
        cdef Live live = self.live
        cdef const uint8_t* holds = self.holds + self.at * live.count
        cdef Py_ssize_t i
        cdef int32_t step
        cdef bint beyond = live.bounded and is_later(
            live.reals, self.times[self.start], live.within, self.times[self.at])
        live.stamp += 1
        self.at += 1
        if not beyond:
            for i in range(self.way_count):
                step = self.ways[i].step
                if not holds[live.variables[step]]:
                    continue
                if self.node_count == self.node_room:
                    self.nodes = <Node*>grown(self.nodes, 2 * self.node_room * sizeof(Node))
                    self.node_room *= 2
                self.nodes[self.node_count].step, self.nodes[self.node_count].before = step, self.ways[i].node
                self.node_count += 1
                if self._enter(live.first[step], self.node_count - 1, self.at - self.start,
                               self.ways[i].unsure or holds[live.variables[step]] == MAYBE):
                    break
        self._swap()
        return 0

    cdef bint _is_sure(self) noexcept:
        """Whether it is known which ways take the next row."""
        cdef const uint8_t* holds = self.holds + self.at * self.live.count
        cdef Py_ssize_t i
        for i in range(self.way_count):
            if holds[self.live.variables[self.ways[i].step]] == MAYBE:
                return False
        return True

    cdef bint _may_change(self, int64_t known, bint is_late) except -1:
        """Whether rows to come can change the match of the start, some of whose next rows hold perhaps.

        If they do, the ways stand afterwards where they stood.
        """
        cdef int64_t at = self.at, best = self.best, length = self.best_length, nodes = self.node_count
        cdef Py_ssize_t count = self.way_count
        memcpy(self.sure, self.ways, count * sizeof(Way))
        while self.way_count and self.at < known:
            self._step()
        if (self.way_count == 0 or is_late) and not (self.best != -2 and self.best_unsure):
            return False
        memcpy(self.ways, self.sure, count * sizeof(Way))
        self.at, self.best, self.best_length, self.node_count, self.way_count = at, best, length, nodes, count
        self.best_unsure = False
        return True

    cdef bint _is_open(self, int64_t known, bint is_late) except -1:
        """Whether the start waits for rows behind those that are known."""
        cdef Live live = self.live
        cdef int ended
        if self.search is None:
            while self.way_count and self.at < known and self._is_sure():
                self._step()
            if self.way_count and self.at < known:
                return self._may_change(known, is_late)
            return self.way_count and not is_late
        if self.best != -2:
            return False
        while live.bounded and self.search.most == INT64_MAX and self.at < known:
            if is_later(live.reals, self.times[self.start], live.within, self.times[self.at]):
                self.search.most = self.at
            self.at += 1
        if is_late and self.search.most == INT64_MAX:
            self.search.most = known
        self.table.high, self.table.end, self.table.begins = known, len(self.rows), self.begins
        ended = self.search.go_on(0, live.max_steps, False)
        if ended < 0:
            raise OverflowError
        if ended == MATCH:
            self.best, self.best_length = 0, self.search.taken
        return ended == WAITS

    def settle(self, known_time, list found):
        """Decide starts as far as rows do; no row comes any more before `known_time`, None where that is not known.

        Matches are appended as (first row, rows, number, steps), rows of no match as (row, -1, 0, None). Gives None,
        or, where nothing can be skipped to, the first row and which row of the match it is. Raises OverflowError where
        a number or the steps of a search are too many: what was found before stays found.
        """
        cdef Live live = self.live
        cdef int64_t known = len(self.rows), target, looked = -1
        cdef int64_t most_work = 0 if self.search is None else self.search.work + CALL * live.max_steps
        cdef int64_t mark = live.time(known_time) if live.bounded and known_time is not None else 0
        cdef bint timed = live.bounded and known_time is not None, is_late
        while self.start < known:
            if not self.begun:
                self._begin()
            self.stuck = is_late = timed and is_later(live.reals, self.times[self.start], live.within, mark)
            if self._is_open(known, is_late):
                return None
            if self.best == -2:
                self.begun = False
                if self.search is not None and self.search.work > most_work:
                    raise OverflowError
                if looked < 0 and known - self.start > LOOK_BACK:
                    looked = self.start
                    self._look_back(known)
                self._failed(found)
                if looked >= 0:
                    while self.start < known and not live.alive[(self.start - looked) * live.steps + live.start_step]:
                        self._failed(found)
                continue
            labels = np.empty(self.best_length, np.int32)
            target = self._labels(labels)
            if live.later is not None and self.start + <int64_t>rows_read(*live.later, live.variables, labels) > known:
                self.stuck = True
                return None  # measures read rows that are not there yet
            self.begun = False
            self.number += 1
            found.append((self.start, self.best_length, self.number, labels))
            self.covered = max(self.covered, self.start + max(<int64_t>1, self.best_length))
            if target <= 0:
                return self.start, target
            self.start += target
        self.stuck = True
        return None

    cdef int _failed(self, list found) except -1:
        """No match begins at the start."""
        if self.live.unmatched and self.start >= self.covered:
            found.append((self.start, -1, 0, None))
        self.start += 1
        return 0

    cdef int64_t _labels(self, int32_t[::1] labels) except -2:
        """Fill in the steps of the match; gives how many rows on the next start is, as `skipped` does."""
        cdef Live live = self.live
        cdef int64_t place = self.best_length, node = self.best
        cdef const int32_t* steps = &labels[0] if place else NULL
        while place:
            place -= 1
            if self.search is not None:
                labels[place] = self.search.steps[place]
            else:
                labels[place] = self.nodes[node].step
                node = self.nodes[node].before
        return skipped(live.skip, live.member, live.variables, steps, self.best_length)

    cdef int _look_back(self, int64_t count) except -1:
        """For each row from the start on, which steps can reach the end of the pattern or of the rows."""
        cdef Live live = self.live
        cdef int64_t row = count, rows = count - self.start + 1
        cdef uint8_t* here
        cdef Py_ssize_t i
        if rows * live.steps > live.alive_room:
            live.alive = <uint8_t*>grown(live.alive, rows * live.steps)
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
        cdef Py_ssize_t drop = self.start - back, left, i
        if drop <= 0:
            return 0
        if drop < len(self.rows) and (drop < 32 or 2 * drop < len(self.rows)):
            return 0  # not worth moving the rest
        left = len(self.rows) - drop
        del self.rows[:drop]
        memmove(self.times, self.times + drop, left * sizeof(int64_t))
        memmove(self.holds, self.holds + drop * self.live.count, left * self.live.count)
        for i in range(self.live.columns):
            memmove(self.values[i], self.values[i] + drop, left * sizeof(int64_t))
            memmove(self.nulls[i], self.nulls[i] + drop, left)
        if self.search is not None:
            self.search.start_row -= drop
            if self.search.most != INT64_MAX:
                self.search.most -= drop
        self.start -= drop
        self.at -= drop
        self.covered = max(<int64_t>0, self.covered - drop)
        self.begins = False
        return drop

    @property
    def deadline(self):
        """The time after which the start is decided whatever comes, None without one."""
        if not self.live.bounded or self.stuck or self.start >= len(self.rows):
            return None
        if self.live.reals:  # or a little before
            return nextafter(real(self.times[self.start]) + real(self.live.within), -INFINITY)
        return min(int(self.times[self.start]) + self.live.within, INT64_MAX)
