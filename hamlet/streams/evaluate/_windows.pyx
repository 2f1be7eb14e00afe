"""Windows as panes, and all windows that one expression stands for.

A window that is read at the deadlines d(1), d(2), ... of its reader is cut at d(k) - duration, so that what is read at
d(k) is exactly a suffix of its panes, whatever the rate of the events.
"""

from collections import deque

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memmove, memset

from hamlet.streams.evaluate._aggregates cimport (
    INTEGRAL, LAST, PCTL, Pane, accept, accept_rows, merge, outcome, percentile_of,
)
from hamlet.streams.evaluate._cells cimport OBJECT, Cell, object_wide, wide, wide_object
from hamlet.streams.evaluate._ordered cimport Ordered
from hamlet.streams.evaluate._store cimport Instance, Span, Store, Stream, Watcher
from hamlet.streams.evaluate._words cimport Words

cdef int64_t PANE_BYTES = sizeof(Pane)
cdef int64_t MANY = 256  # values; to sort fewer at each look costs about as much as to keep them sorted


cdef class Window:
    """The panes of one window."""

    def __dealloc__(self):
        free(self.panes)
        free(self.values)
        if self.table is not None and self.table.store is not None:  # the collector may have cleared either
            self.table.store.bytes -= self.room * PANE_BYTES + self.value_room * 8 + self.ordered_bytes

    cdef int add(self, Cell value, object thing) except -1:
        """Take a value of the step that runs."""
        cdef WindowTable table = self.table
        accept(self.newest(thing), table.function, table.family, value, thing, table.store.now)
        if self.things is not None:
            self.things[len(self.things) - 1] = thing
        if table.function == PCTL:
            self.keep(value)
        return 0

    cdef Pane* newest(self, object thing) except NULL:
        """The pane that takes a value of the step that runs; `thing` if it is an object."""
        cdef WindowTable table = self.table
        cdef wide now = table.store.now
        cdef Pane* pane
        if table.duration == 0:
            if self.size == table.count:
                self.forget(1)
        else:
            if self.size:
                pane = &self.panes[(self.head + self.size - 1) % self.room]
                if now <= pane.bound:
                    return pane
            # what the next read, which is at a deadline, cannot reach goes before the panes grow
            self.drop(table.bound_of(self, now - table.duration))
        if self.size == self.room:
            self.grow()
        pane = &self.panes[(self.head + self.size) % self.room]
        memset(pane, 0, sizeof(Pane))
        pane.bound = 0 if table.duration == 0 else table.bound_of(self, now)
        self.size += 1
        if self.things is not None:
            self.things.append(thing)
        return pane

    cdef int add_span(self, Span* span, Words words) except -1:
        """Take the values of rows: those of one pane at a time."""
        cdef WindowTable table = self.table
        cdef Store store = table.store
        cdef Py_ssize_t row = span.low, end, low, high, middle
        cdef Pane* pane
        cdef Cell cell
        if table.duration == 0:
            return self.add_counted(span, words)
        while True:
            while row < span.high and span.mask is not NULL and not span.mask[row]:
                row += 1
            if row >= span.high:
                return 0
            store.now = (<wide>span.times[row] - span.origin) * span.tick
            pane = self.newest(None)
            low, high = row + 1, span.high  # the first row beyond the pane; times never decrease
            while low < high:
                middle = (low + high) // 2
                if (<wide>span.times[middle] - span.origin) * span.tick <= pane.bound:
                    low = middle + 1
                else:
                    high = middle
            end = low
            accept_rows(pane, table.function, table.family, span.cells, span.mask, row, end, span.times, span.origin,
                        span.tick)
            if table.function == PCTL:
                for low in range(row, end):
                    if span.mask is NULL or span.mask[low]:
                        cell.u = span.cells[low]
                        self.keep(cell)
            if self.things is not None:
                for low in range(end - 1, row - 1, -1):
                    if span.mask is NULL or span.mask[low]:
                        self.things[len(self.things) - 1] = words.thing(span.cells[low])
                        break
            row = end

    cdef int add_counted(self, Span* span, Words words) except -1:
        """Take the values of rows into a window over a number of values; earlier ones than that are left out."""
        cdef Store store = self.table.store
        cdef Py_ssize_t row = span.high
        cdef int64_t wanted = self.table.count
        cdef Cell cell
        while row > span.low and wanted:
            row -= 1
            if span.mask is NULL or span.mask[row]:
                wanted -= 1
        while row < span.high:
            if span.mask is NULL or span.mask[row]:
                store.now = (<wide>span.times[row] - span.origin) * span.tick
                cell.u = span.cells[row]
                self.add(cell, words.thing(cell.u) if words is not None else None)
            row += 1
        return 0

    cdef int grow(self) except -1:
        """Room for twice as many panes."""
        cdef int64_t room = 2 * self.room if self.room else 2, place
        cdef Pane* panes
        if self.table.duration == 0 and room > self.table.count:
            room = self.table.count
        panes = <Pane*>malloc(room * sizeof(Pane))
        if panes is NULL:
            raise MemoryError
        for place in range(self.size):
            panes[place] = self.panes[(self.head + place) % self.room]
        free(self.panes)
        self.table.store.bytes += (room - self.room) * PANE_BYTES
        self.panes, self.head, self.room = panes, 0, room
        return 0

    cdef int keep(self, Cell value) except -1:
        """Remember a value for percentiles."""
        cdef int64_t room
        cdef Cell* values
        if self.first_value + self.stored == self.value_room:
            if self.first_value > self.value_room // 2:
                memmove(self.values, self.values + self.first_value, self.stored * sizeof(Cell))
                self.first_value = 0
            else:
                room = 2 * self.value_room + 8
                values = <Cell*>realloc(self.values, room * sizeof(Cell))
                if values is NULL:
                    raise MemoryError
                self.table.store.bytes += (room - self.value_room) * 8
                self.values, self.value_room = values, room
        self.values[self.first_value + self.stored] = value
        self.stored += 1
        if self.ordered is not None:
            self.ordered.change(value, 1)
        return 0

    cdef int forget(self, int64_t panes) except -1:
        """Drop the oldest panes."""
        cdef int64_t n, place
        while panes:
            n = self.panes[self.head].n
            if self.table.function == PCTL:
                if self.ordered is not None:
                    for place in range(self.first_value, self.first_value + n):
                        self.ordered.change(self.values[place], -1)
                self.first_value += n
                self.stored -= n
                if not self.stored:
                    self.first_value = 0
            if self.things is not None:
                self.things.popleft()
            self.head = (self.head + 1) % self.room
            self.size -= 1
            panes -= 1
        return 0

    cdef int drop(self, wide until) except -1:
        """Drop the panes whose values are all of this time or before."""
        cdef int64_t panes = 0
        while panes < self.size and self.panes[(self.head + panes) % self.room].bound <= until:
            panes += 1
        if panes:
            self.forget(panes)
        return 0

    cdef bint complete(self):
        """Whether a window that wants its first full length has seen it."""
        cdef WindowTable table = self.table
        if not table.exactly:
            return True
        if table.duration == 0:
            return self.size >= table.count
        return table.store.now - self.began >= table.duration

    cdef Ordered in_order(self):
        """The values in order; what is kept for that of a window that has many is brought up to date."""
        cdef Ordered ordered = self.ordered
        if ordered is None and self.stored < MANY:
            ordered = self.table.scratch
            ordered.fill(self.values + self.first_value, self.stored)
            return ordered
        if ordered is None:
            ordered = self.ordered = Ordered(self.table.family)
            ordered.stale = True
        if not ordered.settle():
            ordered.fill(self.values + self.first_value, self.stored)
        self.table.store.bytes += ordered.nbytes - self.ordered_bytes
        self.ordered_bytes = ordered.nbytes
        return ordered

    cdef int read(self, Cell* out) except -1:
        """What the window comes to now; 0 where it has no value."""
        cdef WindowTable table = self.table
        cdef Pane whole
        cdef int64_t place
        if table.duration != 0:
            self.drop(table.store.now - table.duration)
        if not self.complete():
            return 0
        if table.function == PCTL:
            return percentile_of(self.in_order(), table.percentile, table.family, False, out)
        memset(&whole, 0, sizeof(Pane))
        for place in range(self.size):
            merge(&whole, &self.panes[(self.head + place) % self.room], table.function, table.family)
        return outcome(&whole, table.function, table.family, out)

    cdef object read_object(self):
        """The last object of the window, or None."""
        if self.table.duration != 0:
            self.drop(self.table.store.now - self.table.duration)
        return self.things[len(self.things) - 1] if self.things and self.complete() else None

    def state(self):
        """What the window holds, as plain values."""
        cdef Pane* pane
        cdef int64_t place
        panes = []
        for place in range(self.size):
            pane = &self.panes[(self.head + place) % self.room]
            panes.append([
                wide_object(pane.bound), wide_object(pane.total), wide_object(pane.first_at), wide_object(pane.last_at),
                pane.n, pane.a, pane.b, pane.c, pane.cell.u,
            ])
        values = [self.values[self.first_value + place].u for place in range(self.stored)]
        things = None if self.things is None else list(self.things)
        return [wide_object(self.began), panes, values, things]

    def load(self, state):
        """Bring the window to where `state` was taken."""
        cdef Pane* pane
        cdef Cell cell
        cdef bint counted = self.table.duration == 0
        began, panes, values, things = state
        self.began = object_wide(began)
        if counted and len(panes) > self.table.count or (things is None) != (self.things is None):
            raise ValueError("a window holds too much")
        if things is not None:
            if len(things) != len(panes):
                raise ValueError("a window does not have the values that it must have")
            self.things.extend(things)
        total = 0
        for bound, sum_, first_at, last_at, n, a, b, c, bits in panes:
            if self.size == self.room:
                self.grow()
            pane = &self.panes[self.size]
            pane.bound, pane.total = object_wide(bound), object_wide(sum_)
            pane.first_at, pane.last_at = object_wide(first_at), object_wide(last_at)
            pane.n, pane.a, pane.b, pane.c, pane.cell.u = n, a, b, c, bits
            if n < 1:
                raise ValueError("a pane without values")
            total += n
            self.size += 1
        if len(values) != (total if self.table.function == PCTL else 0):
            raise ValueError("a window does not have the values that it must have")
        for bits in values:
            cell.u = bits
            self.keep(cell)


cdef class WindowTable(Watcher):
    """All windows that one window expression stands for: one, or one for each instance of its reader or its target.

    Parameters
    ----------
    store : Store
    number : int
        Of the window in the specification.
    target, reader : Stream
    function, family, result, percentile : int
        The aggregate; the families of the values and of what is read.
    duration : int
        Nanoseconds, 0 for a window over the last `count` values.
    count : int
    exactly : bool
    period : (int, int)
        Seconds between two reads as a fraction; (0, 1) where they are not known.
    local, per_reader : bool
        Whether deadlines count from the spawn of the reader; whether each instance of it has its own windows.
    paired : bool
        Whether an instance of the reader reads one window only, that over the target's instance with its own key.
    """

    def __init__(
        self, Store store, int number, Stream target, Stream reader, int function, int family, int result,
        int percentile, duration, int64_t count, bint exactly, period, bint local, bint per_reader,
        bint paired
    ):
        self.store, self.number, self.target, self.reader = store, number, target, reader
        self.function, self.family, self.result, self.percentile = function, family, result, percentile
        self.scratch = Ordered(family)
        self.duration, self.count, self.exactly = object_wide(duration), count, exactly
        self.period_over, self.period_under = object_wide(period[0]), object_wide(period[1])
        self.local, self.per_reader, self.per_target, self.paired = local, per_reader, target.keyed, paired
        self.by_target = {}
        self.leaving = deque()
        target.watched.append(self)
        if per_reader:
            self.slot = len(reader.own)
            reader.own.append(self)
        if self.per_target:
            target.track = True
        store.tables.append(self)

    def begin(self):
        """The window that is there from the start."""
        if not self.per_reader and not self.per_target:
            self.one = self.fresh_window(0)

    cdef Window fresh_window(self, wide began):
        """An empty window."""
        cdef Window window = Window.__new__(Window)
        window.table, window.began = self, began
        if self.family == OBJECT and self.function == LAST:
            window.things = deque()
        return window

    cdef int begin_reader(self, Instance reader) except -1:
        """The windows of an instance of the reader that begins."""
        cdef dict windows
        cdef Window window
        cdef Instance target
        if self.paired or not self.per_target:
            window = self.fresh_window(self.store.now)
            reader.windows[self.slot] = window
            if self.paired and self.target.touched_at == self.store.step:
                for target in self.target.touched:  # a value of this very step counts
                    if target.key == reader.key:
                        window.add(target.last, target.value)
            return 0
        windows = {}
        reader.windows[self.slot] = windows
        for key in self.target.table:
            windows[key] = self.fresh_window(self.store.now)
        if self.target.touched_at == self.store.step:
            for target in self.target.touched:  # values of this very step count
                window = windows.get(target.key)
                if window is not None:
                    window.add(target.last, target.value)
        return 0

    cdef int begin_target(self, Instance target) except -1:
        """The windows over an instance of the target that begins; what earlier ones of its key hold is gone."""
        cdef Instance reader
        if not self.per_reader:
            self.by_target[target.key] = self.fresh_window(0)
        elif self.paired:
            reader = self.reader_of(target)
            if reader is not None:
                reader.windows[self.slot] = self.fresh_window(reader.spawned)
        elif self.reader.keyed:
            for reader in self.reader.table.values():
                (<dict>reader.windows[self.slot])[target.key] = self.fresh_window(reader.spawned)
        elif self.reader.one is not None:
            reader = self.reader.one
            (<dict>reader.windows[self.slot])[target.key] = self.fresh_window(reader.spawned)
        return 0

    cdef int renew(self, Instance target) except -1:
        """The windows over a target without parameters that begins, or begins anew: they are empty."""
        cdef Instance reader
        if not self.per_reader:
            self.one = self.fresh_window(0)
        elif self.reader.keyed:
            for reader in self.reader.table.values():
                reader.windows[self.slot] = self.fresh_window(reader.spawned)
        elif self.reader.one is not None:
            self.reader.one.windows[self.slot] = self.fresh_window(self.reader.one.spawned)
        return 0

    cdef int end_target(self, Instance target) except -1:
        """The windows over an instance that ends stay until what they hold has expired."""
        if self.duration != 0:
            self.leaving.append((wide_object(self.store.now + self.duration), target.key))
        return 0

    def sweep(self):
        """Drop the windows over closed instances that hold nothing any more."""
        cdef Instance reader
        now = wide_object(self.store.now)
        while self.leaving and self.leaving[0][0] < now:
            key = self.leaving.popleft()[1]
            if key in self.target.table or any(each[1] == key for each in self.leaving):
                continue
            if not self.per_reader:
                self.by_target.pop(key, None)
            elif self.paired:
                reader = self.reader.find(key)
                if reader is not None:
                    reader.windows[self.slot] = self.fresh_window(reader.spawned)
            else:
                for reader in self.reader.table.values() if self.reader.keyed else (self.reader.one,):
                    if reader is not None:
                        (<dict>reader.windows[self.slot]).pop(key, None)

    cdef int extend(self, Instance target, Cell value, object thing) except -1:
        """Give a new value of the target to the windows over it."""
        cdef Instance reader
        if not self.per_reader:
            if self.per_target:
                (<Window>self.by_target[target.key]).add(value, thing)
            else:
                self.one.add(value, thing)
        elif self.paired:
            reader = self.reader_of(target)
            if reader is not None:
                (<Window>reader.windows[self.slot]).add(value, thing)
        elif self.reader.keyed:
            for reader in self.reader.table.values():
                self.extend_own(reader, target, value, thing)
        elif self.reader.one is not None:
            self.extend_own(self.reader.one, target, value, thing)
        return 0

    cdef int extend_span(self, Instance target, Span* span) except -1:
        """Give values of a target without parameters to the windows over it; no reader began in the same step."""
        cdef Instance reader
        cdef Words words = self.target.words
        if not self.per_reader:
            self.one.add_span(span, words)
        elif self.reader.keyed:
            for reader in self.reader.table.values():
                (<Window>reader.windows[self.slot]).add_span(span, words)
        elif self.reader.one is not None:
            (<Window>self.reader.one.windows[self.slot]).add_span(span, words)
        return 0

    cdef int extend_own(self, Instance reader, Instance target, Cell value, object thing) except -1:
        """Add a value to one reader's own window; the step of the reader's spawn counts for targets with parameters."""
        if self.per_target:
            (<Window>(<dict>reader.windows[self.slot])[target.key]).add(value, thing)
        elif reader.born != self.store.step:
            (<Window>reader.windows[self.slot]).add(value, thing)
        return 0

    cdef Instance reader_of(self, Instance target):
        """The instance of the reader with the key of one of the target."""
        if self.reader.map is not None:
            return self.reader.find_cell(target.cell)
        return self.reader.find(target.key)

    cdef Window find(self, Instance reader, object key):
        """The window that an instance of the reader reads, over the target of this key; an empty one for no target."""
        cdef Window window
        cdef dict windows
        cdef wide began
        if not self.per_reader and not self.per_target:
            return self.one
        if self.paired or not self.per_target:
            return <Window>reader.windows[self.slot]
        windows = <dict>reader.windows[self.slot] if self.per_reader else self.by_target
        window = windows.get(key)
        if window is None:
            began = reader.spawned if self.per_reader else 0
            window = self.fresh_window(began)
        return window

    cdef wide bound_of(self, Window window, wide time):
        """The latest time that falls out of the window together with this one."""
        cdef wide phase = window.began if self.local else 0
        cdef wide over, needed, k
        if self.period_over == 0:
            return time
        over = self.period_over * 1000000000
        needed = time + self.duration - phase  # the first deadline at or after it no longer reads the time
        k = (needed * self.period_under + over - 1) / over if needed > 0 else 1
        if k < 1:
            k = 1
        while k * over / self.period_under < needed:
            k += 1
        while k > 1 and (k - 1) * over / self.period_under >= needed:
            k -= 1
        return k * over / self.period_under - self.duration + phase

    def windows(self):
        """All windows."""
        cdef Instance reader
        if not self.per_reader:
            return [self.one] if not self.per_target else list(self.by_target.values())
        found = []
        for reader in self.reader.table.values() if self.reader.keyed else (self.reader.one,):
            if reader is not None:
                own = reader.windows[self.slot]
                found.extend(own.values() if self.per_target and not self.paired else [own])
        return found

    def kept(self):
        """How many panes or values its windows hold."""
        cdef Window window
        cdef int64_t found = 0
        for window in self.windows():
            found += window.stored if self.function == PCTL else window.size
        return found

    def state(self):
        """All windows as plain values."""
        cdef Instance reader
        if not self.per_reader:
            held = self.one.state() if not self.per_target else [[k, v.state()] for k, v in self.by_target.items()]
        else:
            held = []
            for reader in list(self.reader.table.values()) if self.reader.keyed else [self.reader.one]:
                if reader is not None:
                    own = reader.windows[self.slot]
                    several = self.per_target and not self.paired
                    held.append([reader.key, [[k, v.state()] for k, v in own.items()] if several else own.state()])
        return [held, [list(each) for each in self.leaving]]

    def load(self, state):
        """Bring all windows to where `state` was taken; the instances of the streams are there already."""
        cdef Instance reader
        cdef Window window
        held, leaving = state
        self.leaving = deque((int(time), key) for time, key in leaving)
        if not self.per_reader:
            if self.per_target:
                self.by_target = self.loaded(held)
            else:
                self.one = self.fresh_window(0)
                self.one.load(held)
            return
        if len(held) != self.reader.instances():
            raise ValueError("a window lacks a reader")
        for key, own in held:
            reader = self.reader.find(key)
            if reader is None:
                raise ValueError("a window of no reader")
            if self.per_target and not self.paired:
                reader.windows[self.slot] = self.loaded(own)
            else:
                window = self.fresh_window(0)
                window.load(own)
                reader.windows[self.slot] = window

    def loaded(self, held):
        """Windows by target; every target that lives has one."""
        cdef Window window
        found = {}
        for key, own in held:
            window = self.fresh_window(0)
            window.load(own)
            found[key] = window
        if not found.keys() >= self.target.table.keys():
            raise ValueError("a window lacks a target")
        return found

    def shift(self, by):
        """Move what all windows hold in time."""
        cdef wide delta = object_wide(by)
        cdef Window window
        cdef int64_t place
        cdef Pane* pane
        if self.duration == 0 and self.function != INTEGRAL:
            return
        for window in self.windows():
            for place in range(window.size):
                pane = &window.panes[(window.head + place) % window.room]
                pane.bound += delta
                pane.first_at += delta
                pane.last_at += delta
