"""The preferred match of a start where conditions read the labels so far: depth first, in the order of preference.

What the labels so far mean to conditions is kept beside the path and grows and shrinks with it: for each set of
variables that is read, the rows that carry one of them, and running sums. A state (step, rows taken, what conditions
read) that was left once leads nowhere, and is not entered again. Steps that cannot reach the end of the pattern
whatever conditions over labels say are not entered either (`_walk.Table`).

Conditions are programs over int64 and double, or, where an operation is not known here, keys that the host answers.
"""

from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc

import numpy as np

from hamlet.patterns.automaton._walk cimport Table

cdef enum:
    TAKE = 0
    SPLIT = 1
    AT_START = 2
    AT_END = 3
    ACCEPT = 4

cdef enum:  # operations of conditions; what they take stands in `compile_native`
    PUSH_INT = 0
    PUSH_REAL = 1
    PUSH_NULL = 2
    READ_INT = 3
    READ_REAL = 4
    COUNT = 5
    ACCUMULATED_INT = 6
    ACCUMULATED_REAL = 7
    AVERAGE = 8
    TO_REAL = 9
    COMPARE_INT = 10
    COMPARE_REAL = 11
    AND = 12
    OR = 13
    NOT = 14
    ADD_INT = 15
    SUBTRACT_INT = 16
    MULTIPLY_INT = 17
    ADD_REAL = 18
    SUBTRACT_REAL = 19
    MULTIPLY_REAL = 20
    DIVIDE_REAL = 21
    IS_NULL = 22
    COALESCE = 23
    NEGATE_INT = 24
    NEGATE_REAL = 25
    DISTINCT_INT = 26
    DISTINCT_REAL = 27
    NUMBER = 28

cdef enum:
    NO = 0
    YES = 1
    UNKNOWN = 2

cdef extern from *:
    bint __builtin_add_overflow(int64_t a, int64_t b, int64_t* c) nogil
    bint __builtin_sub_overflow(int64_t a, int64_t b, int64_t* c) nogil
    bint __builtin_mul_overflow(int64_t a, int64_t b, int64_t* c) nogil

DEF DEEPEST = 64


cdef struct Value:
    int64_t whole
    double real
    bint null


class TooLarge(Exception):
    """A whole number beyond 64 bits: the host has to answer."""


class TooManySteps(Exception):
    """A start took more steps than it may."""


cdef void* _grown(void* old, Py_ssize_t size) except NULL:
    """Room of a size that begins with what was there; what was there stays where there is no room."""
    cdef void* found = realloc(old, size)
    if found == NULL:
        raise MemoryError
    return found


cdef int _compare_real(double a, double b) noexcept nogil:
    """-1, 0 or 1; NaN is the greatest, and equal to itself, as the host has it."""
    if isnan(a):
        return 0 if isnan(b) else 1
    if isnan(b):
        return -1
    return (a > b) - (a < b)


cdef bint _holds(int order, int64_t operation) noexcept nogil:
    """Whether a comparison (=, <>, <, <=, >, >=) holds for an order."""
    if operation == 0:
        return order == 0
    if operation == 1:
        return order != 0
    if operation == 2:
        return order < 0
    if operation == 3:
        return order <= 0
    if operation == 4:
        return order > 0
    return order >= 0


cdef class Search:
    """Starts of one partition after the other.

    Parameters
    ----------
    table : Table
        Prepared for the partition that is searched.
    start_step : int
    members : uint8 array of shape (sets, variables)
        The sets of variables that are read; the first has all.
    slots : int64 array of shape (slots, 5)
        Set, whether from the last, rows inwards, step, whether the row's label is read.
    columns : list of (int64 or float64 array, uint8 array)
        Values and NULLs by row.
    sums : int64 array of shape (sums, 3)
        Set, column, kind: 0 sum, 1 least, 2 greatest, of int64; 3 to 5 the same of doubles; 6 none.
    programs : list
        By variable: None for a condition in the table's masks, an int64 array of shape (operations, 4) and a float64
        array of shape (operations,) for a native one, a list of slots and of sets for one that the host answers.
    keep : int64 array of shape (kept, 3)
        What distinguishes states: (set, rows from the front, rows from the back), -1 for all.
    all_labels, by_number : bool
        Whether all labels, and the number of the match, are read.
    """

    cdef Table table
    cdef int32_t start_step
    cdef const uint8_t[:, ::1] members
    cdef const int64_t[:, ::1] slots, sums, keep
    cdef list columns, programs
    cdef Py_ssize_t sets, room, depth, stack_room
    cdef int64_t** places       # by set: offsets of the rows that carry one of its variables
    cdef int64_t** counts       # by set: how many before each offset
    cdef int64_t** whole        # by sum: running value at each offset
    cdef double** real
    cdef int64_t** filled       # by sum: values that are not NULL before each offset
    cdef int32_t* steps
    cdef int32_t* labels
    cdef int32_t* stack_step
    cdef int64_t* stack_taken
    cdef bint all_labels
    cdef public dict truth      # answers of the host by key
    cdef public dict asked      # key -> (variable, start, labels, number, partition borders)
    cdef public int64_t work
    cdef public bint waits      # whether the last start waits for rows to come, not for answers
    cdef int64_t start_row, number
    cdef list _buffers

    def __cinit__(self, Table table, int32_t start_step, members, slots, list columns, sums, list programs, keep,
                  bint all_labels):
        self.table, self.start_step = table, start_step
        self.members, self.slots, self.sums, self.keep = members, slots, sums, keep
        self.columns, self.programs, self.all_labels = columns, programs, all_labels
        self.sets = self.members.shape[0]
        self.truth, self.asked = {}, {}
        self.room = self.stack_room = 0
        self.places = <int64_t**>self._pointers(self.sets)
        self.counts = <int64_t**>self._pointers(self.sets)
        self.whole = <int64_t**>self._pointers(self.sums.shape[0])
        self.real = <double**>self._pointers(self.sums.shape[0])
        self.filled = <int64_t**>self._pointers(self.sums.shape[0])
        self.steps = self.labels = self.stack_step = NULL
        self.stack_taken = NULL
        self._grow(256)

    cdef void* _pointers(self, Py_ssize_t count) except NULL:
        cdef void** found = <void**>malloc(max(1, count) * sizeof(void*))
        cdef Py_ssize_t i
        if found == NULL:
            raise MemoryError
        for i in range(count):
            found[i] = NULL
        return found

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.sets):
            free(self.places[i])
            free(self.counts[i])
        for i in range(self.sums.shape[0]):
            free(self.whole[i])
            free(self.real[i])
            free(self.filled[i])
        free(self.places)
        free(self.counts)
        free(self.whole)
        free(self.real)
        free(self.filled)
        free(self.steps)
        free(self.labels)
        free(self.stack_step)
        free(self.stack_taken)

    cdef int _grow(self, Py_ssize_t room) except -1:
        """Room for paths of so many rows."""
        cdef Py_ssize_t i
        for i in range(self.sets):
            self.places[i] = <int64_t*>_grown(self.places[i], (room + 1) * sizeof(int64_t))
            self.counts[i] = <int64_t*>_grown(self.counts[i], (room + 1) * sizeof(int64_t))
            self.counts[i][0] = 0
        for i in range(self.sums.shape[0]):
            self.whole[i] = <int64_t*>_grown(self.whole[i], (room + 1) * sizeof(int64_t))
            self.real[i] = <double*>_grown(self.real[i], (room + 1) * sizeof(double))
            self.filled[i] = <int64_t*>_grown(self.filled[i], (room + 1) * sizeof(int64_t))
            self.whole[i][0] = 0
            self.real[i][0] = 0.0
            self.filled[i][0] = 0
        self.steps = <int32_t*>_grown(self.steps, (room + 1) * sizeof(int32_t))
        self.labels = <int32_t*>_grown(self.labels, (room + 1) * sizeof(int32_t))
        self.room = room
        return 0

    cdef int _push(self, int32_t step, int64_t taken) except -1:
        cdef Py_ssize_t room
        if self.depth == self.stack_room:
            room = max(64, 2 * self.stack_room)
            self.stack_step = <int32_t*>_grown(self.stack_step, room * sizeof(int32_t))
            self.stack_taken = <int64_t*>_grown(self.stack_taken, room * sizeof(int64_t))
            self.stack_room = room
        self.stack_step[self.depth] = step
        self.stack_taken[self.depth] = taken
        self.depth += 1
        return 0

    def start(self, int64_t row, int64_t most, int64_t number, int64_t partition, int64_t max_steps, bint guess):
        """The preferred match that begins at a row.

        Parameters
        ----------
        row, most : int
            The first row, and the first row that must not be taken (of bounded tables).
        number : int
            Of the match.
        partition : int
        max_steps : int
        guess : bool
            Whether, behind a question to the host, the search goes on as if the answer were yes, to ask more at once.

        Returns
        -------
        int32 array, None or False
            The steps that take its rows; None where there is no match, False where questions in `asked` are open.
        """
        cdef int32_t step = self.start_step
        cdef int64_t taken = 0, work = 0
        cdef int verdict
        cdef bint open_questions = False, ended
        cdef set visited = set()
        max_steps += 16 * (self.table.high - self.table.low)  # a long match is no search
        self.depth, self.waits = 0, False
        self.start_row, self.number = row, number
        first_asked = len(self.asked)
        while True:
            work += 1
            if work > max_steps:
                self.work += work
                raise TooManySteps
            ended = not self.table.can(row + taken, step, most)
            if not ended:
                if self.table.kinds[step] == SPLIT:
                    self._push(self.table.second[step], taken)
                    step = self.table.first[step]
                    continue
                if self.table.kinds[step] == ACCEPT:
                    break
                if self.table.kinds[step] != TAKE:
                    step = self.table.first[step]
                    continue
                if row + taken == self.table.high:
                    self.work += work
                    self.waits = not open_questions
                    return False  # rows to come decide
                verdict = NO
                key = self._state(step, taken) if self.depth or len(visited) else None
                if key is None or key not in visited:
                    if key is not None:
                        visited.add(key)
                    if taken >= self.room:
                        self._grow(2 * self.room)
                    self._label(step, taken)
                    verdict = self._judge(self.table.variables[step], taken, partition)
                if verdict == UNKNOWN:
                    open_questions = True
                    if not guess or len(self.asked) - first_asked >= 64:
                        self.work += work
                        return False
                    verdict = YES
                if verdict == YES:
                    taken += 1
                    step = self.table.first[step]
                    continue
            if not self.depth:
                self.work += work
                return False if open_questions else None
            self.depth -= 1
            step = self.stack_step[self.depth]
            taken = self.stack_taken[self.depth]
        self.work += work
        if open_questions:
            return False
        found = np.empty(taken, np.int32)
        cdef int32_t[::1] view = found
        cdef Py_ssize_t i
        for i in range(taken):
            view[i] = self.steps[i]
        return found

    cdef int _label(self, int32_t step, int64_t taken) except -1:
        """Label the next row, and bring what conditions read up to date."""
        cdef int32_t variable = self.table.variables[step]
        cdef Py_ssize_t i
        cdef int64_t count, row = self.start_row + taken, value
        cdef double number
        cdef const int64_t[::1] whole
        cdef const double[::1] real
        cdef const uint8_t[::1] null
        self.steps[taken] = step
        self.labels[taken] = variable
        for i in range(self.sets):
            count = self.counts[i][taken]
            if self.members[i, variable]:
                self.places[i][count] = taken
                count += 1
            self.counts[i][taken + 1] = count
        for i in range(self.sums.shape[0]):
            self.whole[i][taken + 1] = self.whole[i][taken]
            self.real[i][taken + 1] = self.real[i][taken]
            self.filled[i][taken + 1] = self.filled[i][taken]
            if not self.members[self.sums[i, 0], variable]:
                continue
            values, nulls = self.columns[self.sums[i, 1]]
            null = nulls
            if null[row]:
                continue
            count = self.filled[i][taken]
            self.filled[i][taken + 1] = count + 1
            if self.sums[i, 2] < 3:
                whole = values
                value = whole[row]
                if self.sums[i, 2] == 0:
                    if __builtin_add_overflow(self.whole[i][taken], value, &self.whole[i][taken + 1]):
                        raise TooLarge
                elif count == 0 or (value < self.whole[i][taken]) == (self.sums[i, 2] == 1):
                    self.whole[i][taken + 1] = value
            elif self.sums[i, 2] < 6:
                real = values
                number = real[row]
                if self.sums[i, 2] == 3:
                    self.real[i][taken + 1] = self.real[i][taken] + number
                elif count == 0 or (_compare_real(number, self.real[i][taken]) < 0) == (self.sums[i, 2] == 4):
                    self.real[i][taken + 1] = number
        return 0

    cdef int64_t _row(self, Py_ssize_t slot, int64_t taken) noexcept:
        """The row that a slot leads to while `taken` rows and one more have labels, or -1."""
        cdef int64_t which = self.slots[slot, 0], count = self.counts[which][taken + 1]
        cdef int64_t inwards = self.slots[slot, 2], row
        if inwards >= count:
            return -1
        row = self.start_row + self.places[which][count - 1 - inwards if self.slots[slot, 1] else inwards]
        row += self.slots[slot, 3]
        return row if self.table.low <= row < self.table.high else -1

    cdef object _state(self, int32_t step, int64_t taken):
        """What distinguishes the state before a row from others of this start."""
        cdef Py_ssize_t i, each
        cdef int64_t count, low, high
        if self.all_labels:
            return (step, taken, (<char*>self.labels)[:taken * sizeof(int32_t)])
        parts = [step, taken]
        for i in range(self.keep.shape[0]):
            count = self.counts[self.keep[i, 0]][taken]
            if self.keep[i, 1] < 0:
                parts.append((<char*>self.places[self.keep[i, 0]])[:count * sizeof(int64_t)])
                continue
            parts.append(count if self.keep[i, 1] == 0 and self.keep[i, 2] == 0 else min(count, self.keep[i, 1]))
            high = min(count, self.keep[i, 1])
            for each in range(high):
                parts.append(self.places[self.keep[i, 0]][each])
            low = max(<int64_t>0, count - self.keep[i, 2])
            for each in range(low, count):
                parts.append(self.places[self.keep[i, 0]][each])
        for i in range(self.sums.shape[0]):
            parts.append(self.filled[i][taken])
            if self.sums[i, 2] < 3:
                parts.append(self.whole[i][taken])
            elif self.sums[i, 2] < 6:
                parts.append(self.real[i][taken])
        return tuple(parts)

    cdef int _judge(self, int32_t variable, int64_t taken, int64_t partition) except -1:
        """Whether the condition of a variable holds for the row that has just got its label."""
        program = self.programs[variable]
        if program is None:
            return YES
        if isinstance(program[0], np.ndarray):
            return YES if self._run(program[0], program[1], taken) == YES else NO
        slots, sets, by_number, by_label = program
        parts = [variable, self.start_row + taken]
        cdef int64_t row
        cdef Py_ssize_t slot
        for slot in slots:
            row = self._row(slot, taken)
            parts.append(row)
            if self.slots[slot, 4]:
                inside = self.start_row <= row <= self.start_row + taken
                parts.append(self.labels[row - self.start_row] if inside else -1)
        for each in sets:
            count = self.counts[each][taken + 1]
            parts.append(self.start_row)
            parts.append((<char*>self.places[each])[:count * sizeof(int64_t)])
        if by_label:
            parts.append((<char*>self.labels)[:(taken + 1) * sizeof(int32_t)])
        if by_number:
            parts.append(self.number)
        key = tuple(parts)
        answer = self.truth.get(key)
        if answer is not None:
            return YES if answer else NO
        if key not in self.asked:
            path = np.frombuffer((<char*>self.labels)[:(taken + 1) * sizeof(int32_t)], np.int32)
            self.asked[key] = (variable, self.start_row, path, self.number, partition)
        return UNKNOWN

    cdef int _run(self, const int64_t[:, ::1] code, const double[::1] reals, int64_t taken) except -1:
        """The value of a native condition: YES, NO, or UNKNOWN for NULL."""
        cdef Value stack[DEEPEST]
        cdef Value* top = stack
        cdef Py_ssize_t i
        cdef int64_t operation, row, order
        cdef const int64_t[::1] whole
        cdef const double[::1] real
        cdef const uint8_t[::1] null
        top -= 1
        for i in range(code.shape[0]):
            operation = code[i, 0]
            if operation == PUSH_INT:
                top += 1
                top.whole, top.null = code[i, 1], False
            elif operation == PUSH_REAL:
                top += 1
                top.real, top.null = reals[i], False
            elif operation == PUSH_NULL:
                top += 1
                top.null = True
            elif operation == READ_INT or operation == READ_REAL:
                # slot (-1: the candidate row), column, whether the value without a row is NULL (else in the columns
                # behind it)
                row = self.start_row + taken if code[i, 1] < 0 else self._row(code[i, 1], taken)
                top += 1
                if row < 0:
                    top.null = code[i, 3] != 0
                    top.whole, top.real = <int64_t>reals[i], reals[i]
                    continue
                values, nulls = self.columns[code[i, 2]]
                null = nulls
                top.null = null[row] != 0
                if operation == READ_INT:
                    whole = values
                    top.whole = whole[row]
                else:
                    real = values
                    top.real = real[row]
            elif operation == COUNT:
                top += 1
                top.whole, top.null = self.counts[code[i, 1]][taken + 1], False
            elif operation == ACCUMULATED_INT or operation == ACCUMULATED_REAL:
                top += 1
                top.null = self.filled[code[i, 1]][taken + 1] == 0
                top.whole, top.real = self.whole[code[i, 1]][taken + 1], self.real[code[i, 1]][taken + 1]
                if code[i, 2]:  # how many values there are
                    top.null = False
                    top.whole = self.filled[code[i, 1]][taken + 1]
            elif operation == AVERAGE:
                top += 1
                top.null = self.filled[code[i, 1]][taken + 1] == 0
                if not top.null:
                    top.real = <double>self.whole[code[i, 1]][taken + 1]
                    if code[i, 2]:
                        top.real = self.real[code[i, 1]][taken + 1]
                    top.real /= self.filled[code[i, 1]][taken + 1]
            elif operation == NUMBER:
                top += 1
                top.whole, top.null = self.number, False
            elif operation == TO_REAL:
                top.real = <double>top.whole
            elif operation == NOT:
                top.whole = not top.whole
            elif operation == NEGATE_INT:
                if __builtin_sub_overflow(0, top.whole, &top.whole) and not top.null:
                    raise TooLarge
            elif operation == NEGATE_REAL:
                top.real = -top.real
            elif operation == IS_NULL:
                top.whole, top.null = top.null, False
            else:
                top -= 1
                if operation == COALESCE:
                    if top.null:
                        top[0] = top[1]
                elif operation == AND:
                    if (not top.null and not top.whole) or (not top[1].null and not top[1].whole):
                        top.whole, top.null = 0, False
                    else:
                        top.null = top.null or top[1].null
                        top.whole = 1
                elif operation == OR:
                    if (not top.null and top.whole) or (not top[1].null and top[1].whole):
                        top.whole, top.null = 1, False
                    else:
                        top.null = top.null or top[1].null
                        top.whole = 0
                elif operation == DISTINCT_INT or operation == DISTINCT_REAL:
                    if top.null or top[1].null:
                        order = top.null != top[1].null
                    elif operation == DISTINCT_INT:
                        order = top.whole != top[1].whole
                    else:
                        order = _compare_real(top.real, top[1].real) != 0
                    top.whole, top.null = order, False
                else:
                    top.null = top.null or top[1].null
                    if top.null:
                        continue
                    if operation == COMPARE_INT:
                        order = (top.whole > top[1].whole) - (top.whole < top[1].whole)
                        top.whole = _holds(<int>order, code[i, 1])
                    elif operation == COMPARE_REAL:
                        top.whole = _holds(_compare_real(top.real, top[1].real), code[i, 1])
                    elif operation == ADD_INT:
                        if __builtin_add_overflow(top.whole, top[1].whole, &top.whole):
                            raise TooLarge
                    elif operation == SUBTRACT_INT:
                        if __builtin_sub_overflow(top.whole, top[1].whole, &top.whole):
                            raise TooLarge
                    elif operation == MULTIPLY_INT:
                        if __builtin_mul_overflow(top.whole, top[1].whole, &top.whole):
                            raise TooLarge
                    elif operation == ADD_REAL:
                        top.real += top[1].real
                    elif operation == SUBTRACT_REAL:
                        top.real -= top[1].real
                    elif operation == MULTIPLY_REAL:
                        top.real *= top[1].real
                    elif operation == DIVIDE_REAL:
                        if top[1].real == 0:
                            top.null = True
                        else:
                            top.real /= top[1].real
        return UNKNOWN if top.null else (YES if top.whole else NO)
