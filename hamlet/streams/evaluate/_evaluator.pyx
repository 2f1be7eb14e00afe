"""The loop over events and deadlines: what a specification computes, step by step.

Contract
--------
At an event of time t all deadlines before t come first, each a step of its own; then the inputs are extended, the
event-driven tasks run layer by layer, and instances close. All times are nanoseconds from the start. Rows are tuples
``(time, stream, key, value)`` in the order of steps, within one by stream. The caller hands over columns of one length,
times that never decrease, and a program whose nodes fit each other (`hamlet.streams.evaluate.compile`).
"""

import heapq

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memchr

from hamlet.streams.evaluate._cells cimport Cell, boxed, object_wide, wide, wide_object
from hamlet.streams.evaluate._columns cimport Column, Frame
from hamlet.streams.evaluate._steps cimport Beat, Steps
from hamlet.streams.evaluate._store cimport Instance, Span, Store, Stream
from hamlet.streams.evaluate._tasks cimport Closer, Task
from hamlet.streams.evaluate._windows cimport WindowTable
from hamlet.streams.evaluate._words cimport prefetch

cdef enum:
    FEW = 64    # fewer events are taken row by row
    AHEAD = 16  # rows: of a later event's instance the place in memory is asked for, and then the instance
    CROWD = 4096  # instances: fewer are in the processor's memory anyhow
    HINTS = 8
    BUDGET = 1 << 26  # bytes that the columns of a part of a batch may take
    ROW_BYTES = 32    # of a column: a value, whether there is one, and both again where earlier ones are read
    LEAST = 256       # rows of a part
    GIVEN_UP = 3  # batches in which columns ran into an error, after which none are computed any more


class DeadlineLimit(Exception):
    """More deadlines are due than may be run between two events."""


class MemoryLimit(Exception):
    """More is held than may be."""


cdef struct Hint:
    int place
    PyObject* stream       # borrowed
    const uint64_t* cells  # of the batch; NULL where there are none


cdef class Evaluator(Steps):
    """Runs a program.

    Parameters
    ----------
    store : Store
    inputs : list of Stream
    pacings : list
        For an event-driven pacing a tuple of terms, each a tuple of inputs; for a periodic one (over, under, local).
    tasks : list of (Task, bool, bool)
        In order of evaluation; whether each is a spawn; whether periodic.
    closers : list of (Closer, bool)
        Whether each is periodic.
    max_deadlines : int
        Most deadlines that are evaluated between two events.
    span, cycle : int
        Nanoseconds after which a state without effects repeats, and of one common period; 0: never.
    max_memory : int
        Bytes, 0 for no limit.
    column_tasks : list of Task
        Those that are computed in columns, in an order in which each reads inputs and those before.
    segments : bool
        Whether rows may be taken together where nothing else remains to be computed.

    Attributes
    ----------
    rows : list of tuple
        Not yet taken.
    events, deadlines : int
    """

    cdef list inputs
    cdef int64_t max_deadlines
    cdef int64_t max_memory
    cdef wide span
    cdef wide cycle
    cdef list terms_of        # by pacing, None of a periodic one
    cdef list given           # of the batch: (place, input, objects, column)
    cdef list column_tasks    # in an order in which each reads those before
    cdef list emitting        # those of them whose values are rows, by stream
    cdef readonly bint segments  # whether columns say all that happens in a row
    cdef int gave_up
    cdef Span span_of         # of the batch: the times
    cdef Hint[HINTS] hints    # inputs by whose values instances are found
    cdef int n_hints

    def __init__(self, Store store, list inputs, list pacings, list tasks, list closers, max_deadlines, span, cycle,
                 max_memory, list column_tasks, bint segments):
        cdef Task task
        cdef Closer closer
        self.store, self.inputs, self.rows = store, inputs, []
        self.fresh = <int64_t*>calloc(len(inputs) + 1, sizeof(int64_t))
        self.active = <int64_t*>calloc(len(pacings) + 1, sizeof(int64_t))
        self.beats = <Beat*>calloc(len(pacings) + 1, sizeof(Beat))
        if self.fresh is NULL or self.active is NULL or self.beats is NULL:
            raise MemoryError
        self.terms, self.beat_pacings, self.local_periods = [], [], {}
        self.terms_of = [None] * len(pacings)
        for number, pacing in enumerate(pacings):
            if isinstance(pacing[0], tuple):
                self.terms.append((number, pacing))
                self.terms_of[number] = pacing
            elif pacing[2]:
                self.local_periods[number] = (pacing[0], pacing[1])
            else:
                self.beats[self.n_beats].over = object_wide(pacing[0])
                self.beats[self.n_beats].under = object_wide(pacing[1])
                self.beat_pacings.append(number)
                self.set_beat(self.n_beats, 1)
                self.n_beats += 1
        self.event_tasks, self.event_spawns = [], []
        self.time_tasks, self.time_spawns = [], []
        for task, spawns, periodic in tasks:
            (self.time_tasks if periodic else self.event_tasks).append(task)
            (self.time_spawns if periodic else self.event_spawns).append(bool(spawns))
        self.column_tasks = column_tasks
        self.segments = segments and len(column_tasks) == len(self.event_tasks)
        self.emitting = sorted(
            [task for task in column_tasks if task.emits and task.whole], key=_by_number
        )
        self.event_closers = [closer for closer, periodic in closers if not periodic]
        self.time_closers = [closer for closer, periodic in closers if periodic]
        self.closer_of = {closer.stream.number: closer for closer, _ in closers}
        self.heap, self.due, self.found = [], {}, []
        self.max_deadlines, self.max_memory = max_deadlines, max_memory
        self.span, self.cycle = object_wide(span), object_wide(cycle)

    # ------------------------------------------------------------------------------------------------------- events

    def feed(self, const int64_t[::1] times, start, int64_t tick, list columns):
        """Take events.

        Parameters
        ----------
        times : int64 array of shape (n,)
            Ticks.
        start : int
            Ticks of the start; no time is before it.
        tick : int
            Nanoseconds of a tick.
        columns : list of (uint64 array, uint8 array or None, list or None) or None
            For each input the cells, where there is a value, and the objects; None for one without any value. Texts
            are cells, too: their codes.
        """
        cdef Py_ssize_t low, rows = times.shape[0]
        cdef Py_ssize_t most = max(<Py_ssize_t>LEAST, BUDGET // (ROW_BYTES * (len(self.column_tasks) + 1)))
        self.span_of.origin, self.span_of.tick = object_wide(start), tick
        for low in range(0, rows, most):
            self.span_of.times = &times[low]
            self.feed_part(low, min(most, rows - low), columns)

    cdef int feed_part(self, Py_ssize_t low, Py_ssize_t rows, list columns) except -1:
        """Take some rows of a batch, so few that their columns stay within the budget."""
        cdef Frame frame = self.framed(low, rows, columns)
        cdef Task task
        cdef Py_ssize_t row
        try:
            if self.fill_columns(frame) and self.segments:
                self.feed_segments(frame)
            elif self.aim(frame, columns):
                for row in range(rows):
                    self.foresee(row, rows)
                    self.feed_row(row)
            else:
                for row in range(rows):
                    self.feed_row(row)
        finally:
            self.given = None
            for task in self.column_tasks:
                task.column = None
        return 0

    def hint(self, int place, Stream stream):
        """Say that the value of an input is the key of the instance of a stream that an event extends."""
        if stream.map is not None and self.n_hints < HINTS:
            self.hints[self.n_hints].place, self.hints[self.n_hints].stream = place, <PyObject*>stream
            self.n_hints += 1

    cdef bint aim(self, Frame frame, list columns):
        """Whether the instances of a batch are worth being asked for ahead."""
        cdef int each
        cdef bint many = False
        for each in range(self.n_hints):
            self.hints[each].cells = NULL
            if columns[self.hints[each].place] is not None:
                self.hints[each].cells = (<Column>frame.columns[self.hints[each].place]).cells
                many = many or (<Stream>self.hints[each].stream).map.live > CROWD
        return many

    cdef int foresee(self, Py_ssize_t row, Py_ssize_t rows) except -1:
        """Ask for the memory of the instances of later events."""
        cdef int each
        cdef Hint* hint
        cdef PyObject* found
        for each in range(self.n_hints):
            hint = &self.hints[each]
            if hint.cells is not NULL and row + 2 * AHEAD < rows:
                (<Stream>hint.stream).map.foresee(hint.cells[row + 2 * AHEAD])
                found = (<Stream>hint.stream).map.find(hint.cells[row + AHEAD])
                if found is not NULL:
                    prefetch(found)
                    prefetch(<char*>found + 64)
        return 0

    cdef Frame framed(self, Py_ssize_t low, Py_ssize_t rows, list columns):
        """The inputs of rows of a batch, which may be taken from then on."""
        cdef Frame frame = Frame.__new__(Frame)
        cdef Column column
        cdef const uint64_t[::1] view
        cdef const unsigned char[::1] mask
        cdef list things
        cdef int place
        frame.rows, frame.columns = rows, [None] * len(self.store.streams)
        self.given = []
        for place in range(len(columns)):
            column = Column.__new__(Column)
            if columns[place] is None:
                column.own = True
                column.cells = <uint64_t*>calloc(rows, sizeof(uint64_t))
                column.mask = <unsigned char*>calloc(rows, 1)
                if column.cells is NULL or column.mask is NULL:
                    raise MemoryError
                frame.columns[place] = column
                continue
            values, present, things = columns[place]
            if values is not None:
                view = values
                column.cells = <uint64_t*>&view[low]
            if present is not None:
                mask = present
                column.mask = <unsigned char*>&mask[low]
            column.held = columns[place]
            frame.columns[place] = column
            things = things if things is None else things[low : low + rows]
            self.given.append((place, self.inputs[place], things, column))
        return frame

    cdef bint fill_columns(self, Frame frame) except -1:
        """Compute the columns of a batch; false where its rows have to be taken one by one."""
        cdef Task task, other
        if frame.rows < FEW or self.gave_up >= GIVEN_UP:
            return False
        for task in self.column_tasks:
            if not task.fill(frame, self.terms_of):
                self.gave_up += 1
                for other in self.column_tasks:
                    other.column = None
                return False
        return True

    cdef int feed_row(self, Py_ssize_t row) except -1:
        """One event."""
        cdef Store store = self.store
        cdef Cell cell
        cdef Stream stream
        cdef Column column
        cdef list things
        cdef int place
        cdef wide now = (<wide>self.span_of.times[row] - self.span_of.origin) * self.span_of.tick
        if self.n_beats or self.heap:
            self.pass_deadlines(now, False)
        store.step += 1
        store.now = now
        self.events += 1
        self.row = row
        for place, stream, things, column in self.given:
            if column.mask is not NULL and not column.mask[row]:
                continue
            self.fresh[place] = store.step
            if things is not None:
                cell.u = 0
                stream.push(stream.one, cell, things[row])
            else:
                cell.u = column.cells[row]
                stream.push(stream.one, cell, None)
        self.event_step()
        if self.max_memory and store.bytes > self.max_memory:
            self.refuse_memory()
        return 0

    # ------------------------------------------------------------------------------------------------------ segments

    cdef int feed_segments(self, Frame frame) except -1:
        """Take a batch of which every row's values are known: all rows between two deadlines at once.

        Rows in which an expression remains to be computed, a message or a text, are taken one by one.
        """
        cdef Py_ssize_t row = 0, rows = frame.rows, end, stop, low, high, middle
        cdef wide now, due
        cdef bytes alone = self.rows_alone(rows)
        cdef const char* marks = alone
        cdef const char* found
        while row < rows:
            now = (<wide>self.span_of.times[row] - self.span_of.origin) * self.span_of.tick
            end = rows
            if self.n_beats or self.heap:
                self.pass_deadlines(now, False)
                due = self.next_deadline()
                if due >= 0:  # the first row beyond it
                    low, high = row, rows
                    while low < high:
                        middle = (low + high) // 2
                        if (<wide>self.span_of.times[middle] - self.span_of.origin) * self.span_of.tick <= due:
                            low = middle + 1
                        else:
                            high = middle
                    end = low
            while row < end:
                found = <const char*>memchr(marks + row, 1, end - row) if marks[rows] else NULL
                stop = end if found is NULL else found - marks
                if stop > row:
                    self.take_segment(row, stop)
                if stop < end:
                    self.feed_row(stop)
                    stop += 1
                row = stop
        return 0

    cdef bytes rows_alone(self, Py_ssize_t rows):
        """1 for every row that has to be taken by itself; at the end whether there is one at all."""
        cdef bytearray marks = bytearray(rows + 1)
        cdef unsigned char[::1] view = marks
        cdef Task task
        cdef Py_ssize_t row
        for task in self.column_tasks:
            if not task.whole:
                for row in range(rows):
                    view[row] |= task.column.mask[row]
                    view[rows] |= task.column.mask[row]
        return bytes(marks)

    cdef int take_segment(self, Py_ssize_t low, Py_ssize_t high) except -1:
        """Rows in which every value is in the columns, and no deadline is due."""
        cdef Store store = self.store
        cdef Span span = self.span_of
        cdef int64_t step = store.step + 1
        cdef wide now = (<wide>span.times[high - 1] - span.origin) * span.tick
        cdef Column column
        cdef Stream stream
        cdef Task task
        span.low, span.high, span.step = low, high, step
        for _, stream, _, column in self.given:
            span.cells, span.mask = column.cells, column.mask
            stream.push_span(&span)
        for task in self.column_tasks:
            if task.whole:
                span.cells, span.mask = task.column.cells, task.column.mask
                task.stream.push_span(&span)
        store.step += high - low
        store.now = self.quiet_since = now
        self.events += high - low
        if self.emitting:
            self.emit_segment(low, high)
        if self.max_memory and store.bytes > self.max_memory:
            self.refuse_memory()
        return 0

    cdef int emit_segment(self, Py_ssize_t low, Py_ssize_t high) except -1:
        """The rows of outputs, event by event and by stream."""
        cdef Py_ssize_t row
        cdef Task task
        cdef Cell cell
        for row in range(low, high):
            time = None
            for task in self.emitting:
                if task.column.mask is NULL or task.column.mask[row]:
                    if time is None:
                        time = wide_object((<wide>self.span_of.times[row] - self.span_of.origin) * self.span_of.tick)
                    cell.u = task.column.cells[row]
                    self.rows.append((time, task.stream.number, None, boxed(cell, task.stream.family)))
        return 0

    # ---------------------------------------------------------------------------------------------------- deadlines

    def advance(self, until, bint inclusive):
        """Run the deadlines up to a time, in ns from the start."""
        self.pass_deadlines(object_wide(until), inclusive)

    cdef wide next_deadline(self):
        """The time of the next deadline, -1 without any."""
        cdef wide found = -1
        cdef int each
        for each in range(self.n_beats):
            if found < 0 or self.beats[each].next < found:
                found = self.beats[each].next
        while self.heap and not (<Instance>(<tuple>self.heap[0])[3]).alive:
            heapq.heappop(self.heap)
        if self.heap:
            first = object_wide((<tuple>self.heap[0])[0])
            if found < 0 or first < found:
                found = first
        return found

    cdef int pass_deadlines(self, wide until, bint inclusive) except -1:
        """All deadlines before a time, or up to it."""
        cdef wide time
        cdef int64_t passed = 0
        while True:
            time = self.next_deadline()
            if time < 0 or time > until or (time == until and not inclusive):
                return 0
            if self.cycle > 0 and self.store.now - self.quiet_since > self.span and until - time > self.cycle:
                self.skip(until, time)
                continue
            passed += 1
            if passed > self.max_deadlines:
                self.refuse_deadlines(until, time)
            self.deadline_step(time)
            if self.max_memory and self.store.bytes > self.max_memory:
                self.refuse_memory()

    cdef skip(self, wide until, wide time):
        """Leave out deadlines at which nothing can happen: the state repeats with the common period."""
        cdef wide times = (until - time) / self.cycle
        cdef wide by = times * self.cycle
        cdef WindowTable table
        cdef Stream stream
        cdef Instance instance
        cdef Task task
        cdef int each
        if times <= 0:
            self.quiet_since = self.store.now
            return
        for each in range(self.n_beats):
            self.set_beat(each, self.beats[each].k + by * self.beats[each].under / (self.beats[each].over * 1000000000))
        if self.heap:
            delta = wide_object(by)
            moved = []
            for due, entry, pacing, instance, k in self.heap:
                over, under = self.local_periods[pacing]
                moved.append((due + delta, entry, pacing, instance, k + delta * under // (over * 1000000000)))
            heapq.heapify(moved)
            self.heap = moved
        periodic = set()
        for task in self.time_tasks:
            periodic.add(task.stream.number)
        for table in self.store.tables:
            if table.target.number in periodic:
                table.shift(wide_object(by))
        for stream in self.store.streams:
            if stream.keep >= 0 and stream.number in periodic:
                for instance in stream.table.values() if stream.keyed else [stream.one]:
                    if instance is not None:
                        instance.moments = type(instance.moments)(
                            (at + wide_object(by), value) for at, value in instance.moments
                        )
        self.quiet_since = self.store.now + by  # at most one common period is left

    cdef refuse_deadlines(self, wide until, wide time):
        """Raise for too many deadlines."""
        cdef int each
        due = self.max_deadlines
        for each in range(self.n_beats):
            due += max(0, wide_object(until - time) * wide_object(self.beats[each].under) // (
                wide_object(self.beats[each].over) * 1000000000))
        raise DeadlineLimit(
            f"about {due:,} deadlines are due before the next event, and at most {self.max_deadlines:,} are run"
        )

    cdef refuse_memory(self):
        """Raise for too much memory, naming the stream that holds the most."""
        cdef Stream stream
        largest = max(self.store.streams, key=lambda stream: stream.instances())
        raise MemoryLimit(f"most instances, {largest.instances():,}, are of stream '{largest.name}'")

    def state(self):
        """All that is kept, as plain values."""
        cdef int each
        cdef Instance instance
        heap = []
        for _, _, pacing, instance, k in sorted(self.heap, key=_by_time):
            if instance.alive:
                heap.append([pacing, self.owner(instance), instance.key, k])
        return {
            "store": self.store.state(),
            "events": self.events,
            "deadlines": self.deadlines,
            "beats": [wide_object(self.beats[each].k) for each in range(self.n_beats)],
            "heap": heap,
            "quiet": wide_object(self.quiet_since),
        }

    cdef object owner(self, Instance instance):
        """The number of the stream that an instance with a deadline of its own is of."""
        cdef Stream stream
        for stream in self.store.streams:
            if stream.find(instance.key) is instance:
                return stream.number
        raise AssertionError("no stream has the instance")

    def load(self, state):
        """Bring a new evaluator to where `state` was taken; ValueError and the like where it cannot be one."""
        cdef Closer closer
        cdef Stream stream
        cdef int each
        self.store.load(state["store"])
        self.events, self.deadlines = state["events"], state["deadlines"]
        self.quiet_since = object_wide(state["quiet"])
        if len(state["beats"]) != self.n_beats:
            raise ValueError("the periods do not fit")
        for each in range(self.n_beats):
            if state["beats"][each] < 1:
                raise ValueError("a period has no next deadline")
            self.set_beat(each, object_wide(state["beats"][each]))
        for pacing, number, key, k in state["heap"]:
            stream = self.store.streams[number]
            instance = stream.find(key)
            if instance is None or pacing not in self.local_periods or k < 1:
                raise ValueError("a deadline of no instance")
            self.push_due(pacing, instance, k)
        for closer in [*self.event_closers, *self.time_closers]:
            if closer.narrow:
                closer.hear_all()

    def take(self):
        """The rows since the last time."""
        rows, self.rows = self.rows, []
        return rows


def _by_number(task):
    return task.stream.number


def _by_time(entry):
    return entry[:2]
