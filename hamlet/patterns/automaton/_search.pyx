"""The preferred match of a start where conditions read the labels so far: depth first, in the order of preference.

What the labels so far mean to conditions is kept beside the path and grows and shrinks with it: for each set of
variables that is read, the rows that carry one of them, and running sums. A state (step, rows taken, what conditions
read) that was left once leads nowhere, and is not entered again. Steps that cannot reach the end of the pattern
whatever conditions over labels say are not entered either (`_walk.Table`).

Conditions are programs over int64 and double, or, where an operation is not known here, keys that the host answers.
"""

import cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from hamlet.memory.arrays cimport grown
from hamlet.patterns.automaton._machine cimport (
    ACCUMULATED_INT, ACCUMULATED_REAL, AVERAGE, COUNT, KNOWN, NEVER_FALSE, NUMBER, READ_INT, READ_REAL, TO_COME, Value,
    __builtin_add_overflow, apply, compare_real,
)
from hamlet.patterns.automaton._walk cimport ACCEPT, SPLIT, TAKE, Matches, Table, skipped

cdef enum:
    NO = 0
    YES = 1
    UNKNOWN = 2   # the host is asked
    LATER = 3     # rows to come decide

cdef enum:  # how a partition went on
    DONE = 0
    OPEN = 1
    CANNOT_SKIP = 2
    LONG_START = 3
    LONG_PARTITION = 4

DEF DEEPEST = 64
DEF JUDGED = 10   # steps that a condition of the host's stands for, whose answer is known
DEF ASKED = 50    # and one whose answer is not


cdef class Interned:
    """Sequences of numbers that were seen, each with a number of its own; all are forgotten at once."""

    def __cinit__(self):
        self.age, self.mask, self.count, self.used, self.room = 1, 63, 0, 0, 256
        self.entries = <Entry*>calloc(self.mask + 1, sizeof(Entry))
        self.words = <int64_t*>malloc(self.room * sizeof(int64_t))
        if self.entries == NULL or self.words == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.entries)
        free(self.words)

    cdef void forget(self) noexcept:
        self.age += 1
        self.count = self.used = 0

    cdef int64_t number(self, const int64_t* found, Py_ssize_t length, bint* known) except -1:
        """The number of a sequence, and whether it was known."""
        cdef uint64_t hashed = 0x9E3779B97F4A7C15
        cdef Py_ssize_t i
        cdef int64_t place
        cdef Entry* entry
        for i in range(length):
            hashed = (hashed ^ <uint64_t>found[i]) * <uint64_t>0xFF51AFD7ED558CCD
            hashed ^= hashed >> 32
        place = <int64_t>(hashed & <uint64_t>self.mask)
        while True:
            entry = self.entries + place
            if entry.age != self.age:
                break
            if (entry.hashed == hashed and self.words[entry.at] == length
                    and memcmp(self.words + entry.at + 1, found, length * sizeof(int64_t)) == 0):
                known[0] = True
                return entry.at
            place = (place + 1) & self.mask
        known[0] = False
        if self.used + length + 1 > self.room:
            self.words = <int64_t*>grown(self.words, 2 * (self.room + length) * sizeof(int64_t))
            self.room = 2 * (self.room + length)
        entry.age, entry.hashed, entry.at = self.age, hashed, self.used
        self.words[self.used] = length
        memcpy(self.words + self.used + 1, found, length * sizeof(int64_t))
        self.used += length + 1
        self.count += 1
        cdef int64_t at = entry.at
        if 2 * self.count > self.mask:
            self._widen()
        return at

    cdef int _widen(self) except -1:
        cdef int64_t mask = 4 * self.mask + 3, place
        cdef Entry* wider = <Entry*>calloc(mask + 1, sizeof(Entry))
        cdef int64_t i
        if wider == NULL:
            raise MemoryError
        for i in range(self.mask + 1):
            if self.entries[i].age == self.age:
                place = <int64_t>(self.entries[i].hashed & <uint64_t>mask)
                while wider[place].age == self.age:
                    place = (place + 1) & mask
                wider[place] = self.entries[i]
        free(self.entries)
        self.entries, self.mask = wider, mask
        return 0


@cython.no_gc_clear  # the sums must still be there when their values are freed
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
    sums : int64 array of shape (sums, 4)
        Set, column, kind (0 sum, 1 least, 2 greatest, of int64; 3 to 5 the same of doubles; 6 none), and whether
        the number of values is read.
    programs : list
        By variable: None for a condition in the table's masks, an int64 array of shape (operations, 4) and a float64
        array of shape (operations,) for a native one, a list of slots and of sets for one that the host answers.
    keep : int64 array of shape (kept, 3)
        What distinguishes states: (set, rows from the front, rows from the back), -1 for all.
    all_labels, by_number : bool
        Whether all labels, and the number of the match, are read.
    """

    def __cinit__(self, Table table, int32_t start_step, members, slots, list columns, sums, list programs, keep,
                  bint all_labels):
        self.table, self.start_step = table, start_step
        self.members, self.slots, self.sums, self.keep = members, slots, sums, keep
        self.programs, self.all_labels = programs, all_labels
        self.sets = self.members.shape[0]
        self.truth, self.asked, self.known = {}, {}, Interned()
        self.room = self.stack_room = self.state_room = 0
        self.path = self.state = NULL
        self.listed = <int64_t**>self._pointers(self.sets)
        self._take(columns)
        self.places = <int64_t**>self._pointers(self.sets)
        self.counts = <int64_t**>self._pointers(self.sets)
        self.whole = <int64_t**>self._pointers(self.sums.shape[0])
        self.real = <double**>self._pointers(self.sums.shape[0])
        self.filled = <int64_t**>self._pointers(self.sums.shape[0])
        self.steps = self.labels = self.stack_step = NULL
        self.stack_taken = NULL
        self._grow(16)

    cdef int _take(self, list columns) except -1:
        """Keep columns and programs where they can be read without Python."""
        cdef const int64_t[::1] whole
        cdef const double[::1] real
        cdef const uint8_t[::1] null
        cdef const int64_t[:, ::1] code
        cdef Py_ssize_t i
        self._buffers = [columns]
        self.columns = <Column*>calloc(max(1, len(columns)), sizeof(Column))
        self.conditions = <Condition*>calloc(max(1, len(self.programs)), sizeof(Condition))
        if self.columns == NULL or self.conditions == NULL:
            raise MemoryError
        for i in range(len(columns)):
            values, null = columns[i]
            if not null.shape[0]:
                continue
            self.columns[i].null = &null[0]
            if values.dtype == np.int64:
                whole = values
                self.columns[i].whole = &whole[0]
            else:
                real = values
                self.columns[i].real = &real[0]
        for i in range(len(self.programs)):
            if self.programs[i] is None:
                continue
            self.conditions[i].kind = 2
            if isinstance(self.programs[i][0], np.ndarray):
                code, real = self.programs[i]
                self.conditions[i].kind, self.conditions[i].length = 1, code.shape[0]
                if code.shape[0]:
                    self.conditions[i].code, self.conditions[i].reals = &code[0, 0], &real[0]
        return 0

    cdef void* _pointers(self, Py_ssize_t count) except NULL:
        cdef void** found = <void**>malloc(max(1, count) * sizeof(void*))
        cdef Py_ssize_t i
        if found == NULL:
            raise MemoryError
        for i in range(count):
            found[i] = NULL
        return found

    cdef void _free(self, void** found, Py_ssize_t count) noexcept:
        """Free what pointers point to, and them; there are none where memory ended before."""
        cdef Py_ssize_t i
        for i in range(count if found != NULL else 0):
            free(found[i])
        free(found)

    def __dealloc__(self):
        self._free(<void**>self.places, self.sets)
        self._free(<void**>self.counts, self.sets)
        self._free(<void**>self.listed, self.sets)
        self._free(<void**>self.whole, self.sums.shape[0])
        self._free(<void**>self.real, self.sums.shape[0])
        self._free(<void**>self.filled, self.sums.shape[0])
        free(self.path)
        free(self.state)
        free(self.columns)
        free(self.conditions)
        free(self.steps)
        free(self.labels)
        free(self.stack_step)
        free(self.stack_taken)

    cdef int _grow(self, Py_ssize_t room) except -1:
        """Room for paths of so many rows."""
        cdef Py_ssize_t i, which
        for i in range(self.sets):
            self.places[i] = <int64_t*>grown(self.places[i], (room + 1) * sizeof(int64_t))
            self.counts[i] = <int64_t*>grown(self.counts[i], (room + 1) * sizeof(int64_t))
            self.counts[i][0] = 0
        for i in range(self.keep.shape[0]):
            if self.keep[i, 1] < 0:
                which = self.keep[i, 0]
                self.listed[which] = <int64_t*>grown(self.listed[which], (room + 1) * sizeof(int64_t))
                self.listed[which][0] = 0
        if self.all_labels:
            self.path = <int64_t*>grown(self.path, (room + 1) * sizeof(int64_t))
            self.path[0] = 0
        for i in range(self.sums.shape[0]):
            self.whole[i] = <int64_t*>grown(self.whole[i], (room + 1) * sizeof(int64_t))
            self.real[i] = <double*>grown(self.real[i], (room + 1) * sizeof(double))
            self.filled[i] = <int64_t*>grown(self.filled[i], (room + 1) * sizeof(int64_t))
            self.whole[i][0] = 0
            self.real[i][0] = 0.0
            self.filled[i][0] = 0
        self.steps = <int32_t*>grown(self.steps, (room + 1) * sizeof(int32_t))
        self.labels = <int32_t*>grown(self.labels, (room + 1) * sizeof(int32_t))
        self.room = room
        return 0

    cdef int _push(self, int32_t step, int64_t taken) except -1:
        cdef Py_ssize_t room
        if self.depth == self.stack_room:
            room = max(64, 2 * self.stack_room)
            self.stack_step = <int32_t*>grown(self.stack_step, room * sizeof(int32_t))
            self.stack_taken = <int64_t*>grown(self.stack_taken, room * sizeof(int64_t))
            self.stack_room = room
        self.stack_step[self.depth] = step
        self.stack_taken[self.depth] = taken
        self.depth += 1
        return 0

    def start(self, int64_t row, int64_t most, int64_t number, int64_t partition, int64_t max_steps, bint guess):
        """Search the preferred match that begins at a row, for the questions that it asks; see `advance`."""
        self._start(row, most, number, partition, max_steps, guess)

    def advance(self, Matches found, int64_t partition, int64_t row, int64_t end, int64_t number,
                const int64_t[::1] horizon, int skip, const uint8_t[::1] member, int64_t max_steps, int64_t most_work):
        """Find the matches of a partition from a row on, as far as answers and rows decide them.

        Parameters
        ----------
        found : Matches
            Gets the matches.
        partition, row, end : int
            The partition, the first start, and the first row that is none.
        number : int
            Matches of the partition so far.
        horizon : int64 array of shape (rows,) or (0,)
            By start row, the first row that must not be taken.
        skip : int
        member : uint8 array of shape (variables,)
            As `_walk.walk` has them.
        max_steps, most_work : int
            Most steps of one start, and of this call.

        Returns
        -------
        (int, int, int)
            The first start that is not decided, the matches of the partition, and how the call ended.
        """
        cdef int64_t most, before = self.work, target
        cdef int verdict
        while row < end:
            most = horizon[row] if horizon.shape[0] else 0
            if not self.table.can(row, self.start_step, most):
                row += 1
                continue
            if self.work - before > most_work:
                return row, number, LONG_PARTITION
            verdict = self._start(row, most, number + 1, partition, max_steps, True)
            if verdict < 0:
                return row, number, LONG_START
            if verdict == WAITS:
                return row, number, OPEN
            if verdict == NO_MATCH:
                row += 1
                continue
            number += 1
            found.reserve(self.taken)
            memcpy(found._steps + found._labels, self.steps, self.taken * sizeof(int32_t))
            found.close(row, self.taken, number, partition)
            target = skipped(skip, member, self.table.variables, self.steps, self.taken)
            if target <= 0:
                found.error = (partition, row, target)
                return row, number, CANNOT_SKIP
            row += target
        return row, number, DONE

    cdef int _start(self, int64_t row, int64_t most, int64_t number, int64_t partition, int64_t max_steps,
                    bint guess) except -2:
        """The preferred match that begins at a row: how it ended, -1 for too many steps.

        Parameters
        ----------
        row, most : int64_t
            The first row, and the first row that must not be taken (of bounded tables).
        number : int64_t
            Of the match.
        partition, max_steps : int64_t
        guess : bint
            Whether, behind a question to the host, the search goes on as if the answer were yes, to ask more at once.
        """
        self.begin(row, most, number)
        return self.go_on(partition, max_steps, guess)

    cdef void begin(self, int64_t row, int64_t most, int64_t number) noexcept:
        """Stand before a start; see `_start`."""
        self.start_row, self.most, self.number = row, most, number
        self.step, self.taken, self.spent, self.depth = self.start_step, 0, 0, 0
        self.open_questions = self.any_seen = self.is_met = False
        self.first_asked = len(self.asked)
        self.known.forget()

    cdef int go_on(self, int64_t partition, int64_t max_steps, bint guess) except -2:
        """Search on from where the search of a start stands; where it waits for rows, it can go on again."""
        cdef int32_t step = self.step
        cdef int64_t taken = self.taken, work = self.spent, row = self.start_row
        cdef int verdict, ended = NO_MATCH
        max_steps += 16 * (self.table.high - self.table.low)  # a long match is no search
        self.waits = False
        while True:
            work += 1
            if work > max_steps:
                ended = -1
                break
            if self.table.can(row + taken, step, self.most):
                if self.table.kinds[step] == SPLIT:
                    self._push(self.table.second[step], taken)
                    step = self.table.first[step]
                    continue
                if self.table.kinds[step] == ACCEPT:
                    ended = MATCH
                    break
                if self.table.kinds[step] != TAKE:
                    step = self.table.first[step]
                    continue
                if row + taken == self.table.high or self.table.waits(row + taken, step):
                    self.waits = not self.open_questions
                    ended = WAITS  # rows to come decide
                    break
                verdict = NO
                if self.is_met or not (self.depth or self.any_seen) or self._is_new(step, taken):
                    self.any_seen = self.any_seen or self.depth > 0
                    if taken >= self.room:
                        self._grow(2 * self.room)
                    self._label(step, taken)
                    verdict = self._judge(self.table.variables[step], taken, partition)
                self.is_met = verdict == LATER
                if verdict == LATER:
                    self.waits = not self.open_questions
                    ended = WAITS
                    break
                if verdict == UNKNOWN:
                    self.open_questions = True
                    if not guess or len(self.asked) - self.first_asked >= 64:
                        ended = WAITS
                        break
                    verdict = YES
                if verdict == YES:
                    taken += 1
                    step = self.table.first[step]
                    continue
            if not self.depth:
                break
            self.depth -= 1
            step = self.stack_step[self.depth]
            taken = self.stack_taken[self.depth]
        self.work += work - self.spent
        self.step, self.taken, self.spent = step, taken, work
        return WAITS if self.open_questions and ended >= 0 else ended

    cdef Py_ssize_t size(self) noexcept:
        """About how many bytes are kept."""
        cdef Py_ssize_t cells = 2 * self.sets + 3 * self.sums.shape[0] + 2
        return (2048 + self.room * cells * sizeof(int64_t) + self.known.room * sizeof(int64_t)
                + self.known.mask * sizeof(Entry) + self.stack_room * 12)

    cdef int _label(self, int32_t step, int64_t taken) except -1:
        """Label the next row, and bring what conditions read up to date."""
        cdef int32_t variable = self.table.variables[step]
        cdef Py_ssize_t i
        cdef int64_t count, row = self.start_row + taken, value
        cdef double number
        cdef Column* column
        cdef int64_t link[3]
        cdef bint known
        self.steps[taken] = step
        self.labels[taken] = variable
        for i in range(self.sets):
            count = self.counts[i][taken]
            if self.members[i, variable]:
                self.places[i][count] = taken
                count += 1
            self.counts[i][taken + 1] = count
            if self.listed[i] != NULL:
                self.listed[i][taken + 1] = self.listed[i][taken]
                if self.members[i, variable]:
                    link[0], link[1], link[2] = -2 - i, self.listed[i][taken], taken
                    self.listed[i][taken + 1] = self.known.number(link, 3, &known)
        if self.path != NULL:
            link[0], link[1], link[2] = -1, self.path[taken], variable
            self.path[taken + 1] = self.known.number(link, 3, &known)
        for i in range(self.sums.shape[0]):
            self.whole[i][taken + 1] = self.whole[i][taken]
            self.real[i][taken + 1] = self.real[i][taken]
            self.filled[i][taken + 1] = self.filled[i][taken]
            if not self.members[self.sums[i, 0], variable]:
                continue
            column = self.columns + self.sums[i, 1]
            if column.null[row]:
                continue
            count = self.filled[i][taken]
            self.filled[i][taken + 1] = count + 1
            if self.sums[i, 2] < 3:
                value = column.whole[row]
                if self.sums[i, 2] == 0:
                    if __builtin_add_overflow(self.whole[i][taken], value, &self.whole[i][taken + 1]):
                        raise OverflowError
                elif count == 0 or (value < self.whole[i][taken]) == (self.sums[i, 2] == 1):
                    self.whole[i][taken + 1] = value
            elif self.sums[i, 2] < 6:
                number = column.real[row]
                if self.sums[i, 2] == 3:
                    self.real[i][taken + 1] = self.real[i][taken] + number
                elif count == 0 or (compare_real(number, self.real[i][taken]) < 0) == (self.sums[i, 2] == 4):
                    self.real[i][taken + 1] = number
        return 0

    cdef int64_t _row(self, Py_ssize_t slot, int64_t taken) noexcept:
        """The row that a slot leads to while `taken` rows and one more have labels; -1 for none, -2 for one to come."""
        cdef int64_t which = self.slots[slot, 0], count = self.counts[which][taken + 1]
        cdef int64_t inwards = self.slots[slot, 2], row
        if inwards >= count:
            return -1
        row = self.start_row + self.places[which][count - 1 - inwards if self.slots[slot, 1] else inwards]
        row += self.slots[slot, 3]
        if row >= self.table.end and self.table.open_end:
            return -2
        return row if self.table.low <= row < self.table.end else -1

    cdef bint _is_new(self, int32_t step, int64_t taken) except -1:
        """Whether the state before a row has not been met from this start; it has from now on."""
        cdef Py_ssize_t i, n = 2
        cdef int64_t count, low, high, each, which
        cdef bint known = False
        self._state_of(self.keep.shape[0] + 2 * self.sums.shape[0] + 3)
        self.state[0], self.state[1] = step, taken
        if self.all_labels:
            self.state[2] = self.path[taken]
            self.known.number(self.state, 3, &known)
            return not known
        for i in range(self.keep.shape[0]):
            which = self.keep[i, 0]
            count = self.counts[which][taken]
            if self.keep[i, 1] < 0:
                self.state[n] = self.listed[which][taken]
                n += 1
                continue
            high, low = min(count, self.keep[i, 1]), max(<int64_t>0, count - self.keep[i, 2])
            self._state_of(n + high + count - low + self.keep.shape[0] + 2 * self.sums.shape[0] + 1)
            self.state[n] = count if self.keep[i, 1] == 0 and self.keep[i, 2] == 0 else high
            n += 1
            for each in range(high):
                self.state[n] = self.places[which][each]
                n += 1
            for each in range(low, count):
                self.state[n] = self.places[which][each]
                n += 1
        for i in range(self.sums.shape[0]):
            self.state[n], self.state[n + 1] = self.filled[i][taken], 0
            if not self.sums[i, 3]:  # only whether there are values
                self.state[n] = self.state[n] > 0
            if self.sums[i, 2] < 3:
                self.state[n + 1] = self.whole[i][taken]
            elif self.sums[i, 2] < 6:
                memcpy(self.state + n + 1, self.real[i] + taken, sizeof(double))
            n += 2
        self.known.number(self.state, n, &known)
        return not known

    cdef int _state_of(self, Py_ssize_t room) except -1:
        """Room for so many numbers of a state."""
        if room > self.state_room:
            self.state = <int64_t*>grown(self.state, 2 * room * sizeof(int64_t))
            self.state_room = 2 * room
        return 0

    cdef int _judge(self, int32_t variable, int64_t taken, int64_t partition) except -1:
        """Whether the condition of a variable holds for the row that has just got its label."""
        if self.conditions[variable].kind == 0:
            return YES
        if self.conditions[variable].kind == 1:
            return self._run(self.conditions + variable, taken)
        slots, sets, by_number, by_label = self.programs[variable]
        self.work += JUDGED
        parts = [variable, self.start_row + taken]
        cdef int64_t row
        cdef Py_ssize_t slot
        for slot in slots:
            row = self._row(slot, taken)
            if row == -2:
                return LATER
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
        self.work += ASKED
        if key not in self.asked:
            path = np.frombuffer((<char*>self.labels)[:(taken + 1) * sizeof(int32_t)], np.int32)
            self.asked[key] = (variable, self.start_row, path, self.number, partition)
        return UNKNOWN

    cdef int _run(self, Condition* condition, int64_t taken) except -1:
        """Whether a native condition holds: YES, NO or LATER."""
        cdef const int64_t* code
        cdef Value stack[DEEPEST]
        cdef Value* top = stack
        cdef Py_ssize_t i
        cdef int64_t operation, row
        cdef Column* column
        top -= 1
        for i in range(condition.length):
            code = condition.code + 4 * i
            operation = code[0]
            if operation == READ_INT or operation == READ_REAL:
                # slot (-1: the candidate row), column, whether the value without a row is NULL (else in the columns
                # behind it)
                row = self.start_row + taken if code[1] < 0 else self._row(code[1], taken)
                top += 1
                if row < 0:
                    top.null = TO_COME if row == -2 else code[3] != 0
                    top.whole, top.real = <int64_t>condition.reals[i], condition.reals[i]
                    continue
                column = self.columns + code[2]
                top.null = column.null[row]
                if operation == READ_INT:
                    top.whole = column.whole[row]
                else:
                    top.real = column.real[row]
            elif operation == COUNT:
                top += 1
                top.whole, top.null = self.counts[code[1]][taken + 1], False
            elif operation == ACCUMULATED_INT or operation == ACCUMULATED_REAL:
                top += 1
                top.null = self.filled[code[1]][taken + 1] == 0
                top.whole, top.real = self.whole[code[1]][taken + 1], self.real[code[1]][taken + 1]
                if code[2]:  # how many values there are
                    top.null = False
                    top.whole = self.filled[code[1]][taken + 1]
            elif operation == AVERAGE:
                top += 1
                top.null = self.filled[code[1]][taken + 1] == 0
                if not top.null:
                    top.real = <double>self.whole[code[1]][taken + 1]
                    if code[2]:
                        top.real = self.real[code[1]][taken + 1]
                    top.real /= self.filled[code[1]][taken + 1]
            elif operation == NUMBER:
                top += 1
                top.whole, top.null = self.number, False
            else:
                top = apply(operation, code[1], condition.reals[i], top)
        if top.null == TO_COME or top.null == NEVER_FALSE:
            return LATER
        return YES if top.null == KNOWN and top.whole else NO
