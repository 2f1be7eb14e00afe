"""The automaton of a propositional policy over columns of time-points.

Its states and steps come from `hamlet.policies.verdicts.progression` when they are first met, and are looked up from
then on: by state and true atoms where the time stands still, by state, atoms and difference of times otherwise. A
stream is one run through the automaton: its state, and the slots, the undecided time-points that it keeps. It serves
formulas whose futures nest; others need no states (`hamlet.policies.verdicts._anchored`).

Where verdicts are wanted for all time-points, a slot holds every time-point whose verdict is its own, as runs of
time-points side by side, and rows are given in the order of time-points. Else a slot is one time-point, and others that
must come out like it have been told so.

Invariant: slot k of a stream is slot k of its state; slots are in the order of their (first) time-points.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove, memset

from hamlet.memory.arrays cimport grown
from hamlet.policies.verdicts._rows cimport (
    KEPT_ROWS, SAME, VerdictRow, VerdictRows, copy_rows, give_row, reserve_rows, take_rows,
)

import numpy as np

cdef enum:
    UNDECIDED = 2
    MOST_STEPS = 1 << 20  # steps kept; beyond, all are forgotten and made anew when met

cdef struct Step:
    int32_t state    # the next one
    int32_t fate     # of the time-point: -1 true, -2 false, or a slot of the next state
    int32_t moves    # slots of the old state; their fates stand in `Automaton.moves` from `first` on
    int64_t first
    uint8_t opens    # whether the time-point opens its slot
    uint8_t still    # whether all slots stay where they are

cdef struct Key:
    uint64_t place   # atoms << 24, plus the state, plus 1
    int64_t delta    # the difference of times


cdef inline int64_t hashed(Key* key) noexcept nogil:
    cdef uint64_t mixed = key.place ^ (<uint64_t> key.delta * <uint64_t> 0xC2B2AE3D27D4EB4F)
    return <int64_t> ((mixed * <uint64_t> 0x9E3779B97F4A7C15) >> 24)


cdef class Automaton:
    """States and steps of one formula, shared by all its streams.

    Parameters
    ----------
    progression : hamlet.policies.verdicts.progression.Progression
    width : int
        The number of atoms; at most 20.
    """

    cdef readonly object progression
    cdef readonly int width
    cdef readonly bint all_points   # whether every time-point gets a verdict of its own
    cdef int64_t beyond             # differences of times from here on are alike
    cdef Step* steps
    cdef int64_t count              # steps
    cdef int64_t room
    cdef int32_t* moves             # of all steps
    cdef int64_t moves_count
    cdef int64_t moves_room
    cdef int32_t* zero              # [states << width] the step of a state and atoms where the time stands still, or -1
    cdef int64_t zero_room          # states
    cdef Key* keys                  # [slots] open addressing: state, atoms and difference; `place` is 0 where free
    cdef int64_t* values            # [slots] the place of the step
    cdef int64_t slots              # a power of two
    cdef int64_t used

    def __cinit__(self, progression, int width):
        self.progression = progression
        self.width = width
        self.all_points = progression.mode == "all"
        self.beyond = progression.beyond
        self.room, self.moves_room, self.zero_room, self.slots = 256, 1024, 64, 1024
        self.steps = <Step*> malloc(self.room * sizeof(Step))
        self.moves = <int32_t*> malloc(self.moves_room * sizeof(int32_t))
        self.zero = <int32_t*> malloc((self.zero_room << width) * sizeof(int32_t))
        self.keys = <Key*> calloc(self.slots, sizeof(Key))
        self.values = <int64_t*> malloc(self.slots * sizeof(int64_t))
        if (self.steps == NULL or self.moves == NULL or self.zero == NULL or self.keys == NULL
                or self.values == NULL):
            raise MemoryError
        memset(self.zero, 255, (self.zero_room << width) * sizeof(int32_t))

    def __dealloc__(self):
        free(self.steps)
        free(self.moves)
        free(self.zero)
        free(self.keys)
        free(self.values)

    @property
    def states(self):
        """How many states have been met."""
        return len(self.progression)

    @property
    def nbytes(self):
        """Bytes of the tables."""
        return (self.room * sizeof(Step) + self.moves_room * 4 + (self.zero_room << self.width) * 4
                + self.slots * 24 + self.progression.nbytes)

    def stream(self):
        """A stream that has read nothing."""
        return Stream(self)

    cdef int64_t _find(self, int32_t state, int64_t atoms, int64_t delta) except -1:
        """The place of a step, which is made where it is new."""
        cdef int64_t place
        if delta == 0:
            if state < self.zero_room:
                place = self.zero[(<int64_t> state << self.width) + atoms]
                if place >= 0:
                    return place
            place = self._make(state, atoms, 0)
            while state >= self.zero_room:
                self._grow_zero()
            self.zero[(<int64_t> state << self.width) + atoms] = <int32_t> place
            return place
        if delta > self.beyond:
            delta = self.beyond
        cdef Key key
        key.place, key.delta = (<uint64_t> atoms << 24) + <uint64_t> state + 1, delta
        cdef int64_t slot = hashed(&key) & (self.slots - 1)
        while self.keys[slot].place != 0:
            if self.keys[slot].place == key.place and self.keys[slot].delta == delta:
                return self.values[slot]
            slot = (slot + 1) & (self.slots - 1)
        place = self._make(state, atoms, delta)
        if 2 * (self.used + 1) > self.slots:
            self._grow_keys()
        slot = hashed(&key) & (self.slots - 1)
        while self.keys[slot].place != 0:
            slot = (slot + 1) & (self.slots - 1)
        self.keys[slot], self.values[slot] = key, place
        self.used += 1
        return place

    cdef int64_t _make(self, int32_t state, int64_t atoms, int64_t delta) except -1:
        cdef Step* step
        cdef int64_t place
        if state >= (1 << 24) - 1:
            raise MemoryError("the policy has more than 16 million states")
        found = self.progression.step(state, atoms, delta)
        if self.count >= MOST_STEPS:
            self._forget()
        if self.count == self.room:
            self.steps = <Step*>grown(self.steps, 2 * self.room * sizeof(Step))
            self.room = 2 * self.room
        while self.moves_count + len(found.moves) > self.moves_room:
            self.moves = <int32_t*>grown(self.moves, 2 * self.moves_room * sizeof(int32_t))
            self.moves_room = 2 * self.moves_room
        step = &self.steps[self.count]
        step.state, step.fate, step.opens = found.state, found.fate, found.opens
        step.moves, step.first = len(found.moves), self.moves_count
        step.still = found.moves == tuple(range(len(found.moves)))
        for place in range(step.moves):
            self.moves[self.moves_count + place] = found.moves[place]
        self.moves_count += step.moves
        self.count += 1
        return self.count - 1

    cdef int _forget(self) except -1:
        """Give up all steps; states keep their numbers."""
        memset(self.zero, 255, (self.zero_room << self.width) * sizeof(int32_t))
        memset(self.keys, 0, self.slots * sizeof(Key))
        self.count = self.moves_count = self.used = 0
        return 0

    cdef int _grow_zero(self) except -1:
        cdef int64_t room = 2 * self.zero_room
        self.zero = <int32_t*> grown(self.zero, (room << self.width) * sizeof(int32_t))
        memset(self.zero + (self.zero_room << self.width), 255,
               ((room - self.zero_room) << self.width) * sizeof(int32_t))
        self.zero_room = room
        return 0

    cdef int _grow_keys(self) except -1:
        cdef int64_t old = self.slots
        cdef Key* keys = self.keys
        cdef int64_t* values = self.values
        cdef Key* more_keys = <Key*> calloc(2 * old, sizeof(Key))
        cdef int64_t* more_values = <int64_t*> malloc(2 * old * sizeof(int64_t))
        cdef int64_t place, slot
        if more_keys == NULL or more_values == NULL:
            free(more_keys)
            free(more_values)
            raise MemoryError
        self.keys, self.values, self.slots = more_keys, more_values, 2 * old
        for place in range(old):
            if keys[place].place:
                slot = hashed(&keys[place]) & (self.slots - 1)
                while self.keys[slot].place != 0:
                    slot = (slot + 1) & (self.slots - 1)
                self.keys[slot], self.values[slot] = keys[place], values[place]
        free(keys)
        free(values)
        return 0


cdef struct Slot:
    int64_t time     # of its first time-point
    int64_t offset   # place of this one among those of its time-stamp
    int32_t head     # its first run, -1 for none
    int32_t tail     # its last one

cdef struct PointRun:
    int64_t first    # a time-point, counted from the first of the stream
    int64_t count    # time-points from there on
    int32_t next     # the next run of the slot, -1 at the last; of a free one the next free one


cdef class Stream:
    """One run through an automaton.

    Attributes
    ----------
    points : int
        Time-points read.
    state : int
    """

    cdef Automaton automaton
    cdef readonly int32_t state
    cdef bint begun
    cdef int64_t time            # the last time-stamp
    cdef int64_t offset          # of the next time-point, if it has the same time-stamp
    cdef readonly int64_t points
    cdef Slot* slots
    cdef int32_t count           # slots
    cdef int32_t slots_room
    cdef PointRun* point_runs
    cdef int32_t point_runs_used
    cdef int32_t point_runs_room
    cdef int32_t free_point_run    # the first free one, -1
    # Time-points from the first undecided one on, where all get rows:
    cdef int64_t base            # the number of the first
    cdef int64_t open            # how many
    cdef int64_t open_room
    cdef int64_t* open_times
    cdef int64_t* open_offsets
    cdef int8_t* open_verdicts
    cdef VerdictRows rows        # where not

    def __cinit__(self, Automaton automaton):
        self.automaton = automaton
        self.slots_room = 8
        self.slots = <Slot*> malloc(2 * self.slots_room * sizeof(Slot))
        self.point_runs_room, self.free_point_run = 8, -1
        self.point_runs = <PointRun*> malloc(self.point_runs_room * sizeof(PointRun))
        if self.slots == NULL or self.point_runs == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)
        free(self.point_runs)
        free(self.open_times)
        free(self.open_offsets)
        free(self.open_verdicts)
        free(self.rows.row)

    @property
    def nbytes(self):
        """Bytes held for undecided time-points and rows that are not yet taken."""
        return (2 * self.slots_room * sizeof(Slot) + self.point_runs_room * sizeof(PointRun) + 17 * self.open_room
                + sizeof(VerdictRow) * self.rows.room)

    @property
    def undecided(self):
        """How many undecided time-points are kept."""
        if not self.automaton.all_points:
            return self.count
        return sum(self.open_verdicts[place] == UNDECIDED for place in range(self.open))

    def copy(self):
        """Another stream at the same place."""
        cdef Stream other = Stream(self.automaton)
        other.state, other.begun, other.time, other.offset = self.state, self.begun, self.time, self.offset
        other.points, other.base = self.points, self.base
        while other.slots_room < self.count:
            other._more_slots()
        other.count = self.count
        memcpy(other.slots, self.slots, self.count * sizeof(Slot))
        while other.point_runs_room < self.point_runs_used:
            other._more_point_runs()
        other.point_runs_used, other.free_point_run = self.point_runs_used, self.free_point_run
        memcpy(other.point_runs, self.point_runs, self.point_runs_used * sizeof(PointRun))
        if self.open:
            other._open_for(self.open)
            memcpy(other.open_times, self.open_times, self.open * 8)
            memcpy(other.open_offsets, self.open_offsets, self.open * 8)
            memcpy(other.open_verdicts, self.open_verdicts, self.open)
            other.open = self.open
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
        cdef int64_t n = times.shape[0]
        cdef int64_t i, delta, place
        cdef Automaton automaton = self.automaton
        cdef bint all_points = automaton.all_points
        cdef int width = automaton.width
        cdef int32_t state = self.state
        cdef int64_t time = self.time
        cdef int64_t offset = self.offset
        cdef Step* step
        if not n:
            return
        if not self.begun:
            self.begun, time, offset = True, times[0], 0
        if all_points:
            self._open_for(self.open + n)
        else:
            # a guess: earlier time-points that are decided here take rows as well
            reserve_rows(&self.rows, self.rows.count + n)
        for i in range(n):
            delta = times[i] - time
            place = -1
            if delta == 0:
                if state < automaton.zero_room:
                    place = automaton.zero[(<int64_t> state << width) + atoms[i]]
            else:
                time, offset = times[i], 0
            if place < 0:
                self.state = state
                place = automaton._find(state, atoms[i], delta)
            step = &automaton.steps[place]
            if not step.still:
                self._move(step)
            state = step.state
            if all_points:
                self.open_times[self.open] = time
                self.open_offsets[self.open] = offset
                if step.fate < 0:
                    self.open_verdicts[self.open] = step.fate == -1
                else:
                    self.open_verdicts[self.open] = UNDECIDED
                    self._join(step, time, offset)
                self.open += 1
            elif step.fate < 0:
                give_row(&self.rows, time, offset, step.fate == -1, 0, 0)
            elif step.opens:
                self._join(step, time, offset)
            else:
                self._same_row(time, offset, &self.slots[step.fate])
            offset += 1
            self.points += 1
        self.state, self.time, self.offset = state, time, offset

    def move(self, Automaton automaton, int32_t state):
        """Go on in another automaton of the formula, at the same place."""
        self.automaton, self.state = automaton, state

    def finish(self, int32_t atoms=0):
        """Decide all slots, as time-points without events that follow, each infinitely later, decide them.

        Parameters
        ----------
        atoms : int
            Those that are true whatever happens.
        """
        cdef int32_t place
        for place, value in enumerate(self.automaton.progression.final(self.state, atoms)):
            self._decide(&self.slots[place], value)
        self.count = 0

    cdef int _move(self, Step* step) except -1:
        """Put the slots where a step says."""
        cdef int32_t old, to
        cdef Slot* slot
        cdef Slot* target
        cdef Slot* fresh = self.slots + self.slots_room  # the second half of the room
        cdef int32_t count = 0
        for old in range(step.moves):
            to = self.automaton.moves[step.first + old]
            slot = &self.slots[old]
            if to < 0:
                self._decide(slot, to == -1)
            elif to == count:
                fresh[count] = slot[0]
                count += 1
            elif self.automaton.all_points:
                target = &fresh[to]
                if slot.head >= 0:
                    self.point_runs[target.tail].next = slot.head
                    target.tail = slot.tail
            else:
                self._same_row(slot.time, slot.offset, &fresh[to])
        memcpy(self.slots, fresh, count * sizeof(Slot))
        self.count = count
        return 0

    cdef int _decide(self, Slot* slot, bint verdict) except -1:
        """Give the time-points of a slot their verdict."""
        cdef int32_t place = slot.head
        cdef int32_t after
        cdef PointRun* point_run
        if not self.automaton.all_points:
            return give_row(&self.rows, slot.time, slot.offset, verdict, 0, 0)
        while place >= 0:
            point_run = &self.point_runs[place]
            memset(self.open_verdicts + (point_run.first - self.base), verdict, point_run.count)
            after = point_run.next
            point_run.next, self.free_point_run = self.free_point_run, place
            place = after
        return 0

    cdef int _join(self, Step* step, int64_t time, int64_t offset) except -1:
        """Let the current time-point share a slot, or open one."""
        cdef Slot* slot
        cdef PointRun* point_run
        cdef int32_t place
        if step.opens:
            if self.count == self.slots_room:
                self._more_slots()
            slot = &self.slots[self.count]
            self.count += 1
            slot.time, slot.offset, slot.head, slot.tail = time, offset, -1, -1
        else:
            slot = &self.slots[step.fate]
        if not self.automaton.all_points:
            return 0
        if slot.tail >= 0:
            point_run = &self.point_runs[slot.tail]
            if point_run.first + point_run.count == self.points:
                point_run.count += 1
                return 0
        place = self.free_point_run
        if place >= 0:
            self.free_point_run = self.point_runs[place].next
        else:
            if self.point_runs_used == self.point_runs_room:
                self._more_point_runs()
            place = self.point_runs_used
            self.point_runs_used += 1
        point_run = &self.point_runs[place]
        point_run.first, point_run.count, point_run.next = self.points, 1, -1
        if slot.tail >= 0:
            self.point_runs[slot.tail].next = place
        else:
            slot.head = place
        slot.tail = place
        return 0

    cdef inline int _same_row(self, int64_t time, int64_t offset, Slot* other) except -1:
        """A row that says: like the time-point of a slot."""
        return give_row(&self.rows, time, offset, SAME, other.time, other.offset)

    cdef int _more_slots(self) except -1:
        cdef Slot* fresh = <Slot*> malloc(4 * self.slots_room * sizeof(Slot))
        if fresh == NULL:
            raise MemoryError
        memcpy(fresh, self.slots, self.count * sizeof(Slot))
        free(self.slots)
        self.slots, self.slots_room = fresh, 2 * self.slots_room
        return 0

    cdef int _more_point_runs(self) except -1:
        self.point_runs = <PointRun*> grown(self.point_runs, 2 * self.point_runs_room * sizeof(PointRun))
        self.point_runs_room = 2 * self.point_runs_room
        return 0

    cdef int _open_for(self, int64_t wanted) except -1:
        """Room for so many time-points."""
        if wanted <= self.open_room:
            return 0
        cdef int64_t room = max(wanted, self.open_room + self.open_room // 2)
        self.open_times = <int64_t*> grown(self.open_times, room * 8)
        self.open_offsets = <int64_t*> grown(self.open_offsets, room * 8)
        self.open_verdicts = <int8_t*> grown(self.open_verdicts, room)
        self.open_room = room
        return 0

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
        if not self.automaton.all_points:
            return take_rows(&self.rows)
        cdef int64_t ready = 0
        while ready < self.open and self.open_verdicts[ready] != UNDECIDED:
            ready += 1
        found = (
            _copied(<char*> self.open_times, ready, np.int64),
            _copied(<char*> self.open_offsets, ready, np.int64),
            _copied(<char*> self.open_verdicts, ready, np.int8),
            None,
            None,
        )
        self.open -= ready
        self.base += ready
        memmove(self.open_times, self.open_times + ready, self.open * 8)
        memmove(self.open_offsets, self.open_offsets + ready, self.open * 8)
        memmove(self.open_verdicts, self.open_verdicts + ready, self.open)
        if self.open_room > KEPT_ROWS and self.open < self.open_room // 4:
            self.open_room = 0
            self._open_for(max(self.open, 64))
        return found

    def saved(self):
        """All that a stream is, once its rows have been taken.

        Returns
        -------
        (list of int, int64 array of shape (slots, 2), int64 array of shape (runs, 3), tuple of arrays)
            State, whether it has begun, last time-stamp, next offset, time-points and the first open one; time and
            offset of each slot; slot, first time-point and length of each run; and of the time-points from the
            first open one on time-stamps, offsets and verdicts.
        """
        cdef Py_ssize_t place
        cdef int32_t at
        slots = [(self.slots[place].time, self.slots[place].offset) for place in range(self.count)]
        point_runs = []
        for place in range(self.count):
            at = self.slots[place].head if self.automaton.all_points else -1
            while at >= 0:
                point_runs.append((place, self.point_runs[at].first, self.point_runs[at].count))
                at = self.point_runs[at].next
        numbers = [self.state, int(self.begun), self.time, self.offset, self.points, self.base]
        return (
            numbers,
            np.array(slots, np.int64).reshape(-1, 2),
            np.array(point_runs, np.int64).reshape(-1, 3),
            (
                _copied(<char*> self.open_times, self.open, np.int64),
                _copied(<char*> self.open_offsets, self.open, np.int64),
                _copied(<char*> self.open_verdicts, self.open, np.int8),
            ),
        )

    def load(self, numbers, const int64_t[:, ::1] slots, const int64_t[:, ::1] point_runs,
             const int64_t[::1] times, const int64_t[::1] offsets, const int8_t[::1] verdicts):
        """Be the stream that `saved` told of; this one is new, and everything has been checked."""
        cdef Py_ssize_t place
        cdef int32_t at
        cdef Slot* slot
        self.state, self.begun, self.time, self.offset, self.points, self.base = numbers
        while self.slots_room < slots.shape[0]:
            self._more_slots()
        self.count = slots.shape[0]
        for place in range(self.count):
            slot = &self.slots[place]
            slot.time, slot.offset, slot.head, slot.tail = slots[place, 0], slots[place, 1], -1, -1
        while self.point_runs_room < point_runs.shape[0]:
            self._more_point_runs()
        self.point_runs_used = point_runs.shape[0]
        for at in range(self.point_runs_used):
            slot = &self.slots[point_runs[at, 0]]
            self.point_runs[at].first, self.point_runs[at].count = point_runs[at, 1], point_runs[at, 2]
            self.point_runs[at].next = -1
            if slot.tail >= 0:
                self.point_runs[slot.tail].next = at
            else:
                slot.head = at
            slot.tail = at
        self._open_for(times.shape[0])
        self.open = times.shape[0]
        for place in range(self.open):
            self.open_times[place], self.open_offsets[place] = times[place], offsets[place]
            self.open_verdicts[place] = verdicts[place]


cdef object _copied(char* values, int64_t rows, kind):
    found = np.empty(rows, kind)
    cdef char[::1] view
    if rows:
        view = found.view(np.int8)
        memcpy(&view[0], values, found.nbytes)
    return found
