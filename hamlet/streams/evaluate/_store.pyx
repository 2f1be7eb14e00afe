"""What a specification keeps while it runs: streams with their instances, and tallies of instances.

The caller checks no bounds here: `hamlet.streams.evaluate.compile` builds all of it.
"""

from collections import deque

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from hamlet.streams.evaluate._aggregates cimport (
    AVG, COUNT, EXISTS, FORALL, MAX, MIN, PCTL, SUM, Pane, accept, outcome, percentile_of,
)
from hamlet.streams.evaluate._cells cimport (
    FLOAT, INT, OBJECT, UINT, Cell, as_wide, boxed, object_wide, unboxed, wide, wide_object,
)
from hamlet.streams.evaluate._words cimport CellMap, Words

INSTANCE_BYTES = 256  # of an instance with its place in tables; measured
TEXT_BYTES = 80       # more where its key is a text


cdef class Instance:
    """One instance of a stream; a stream without parameters has one."""

    def __dealloc__(self):
        free(self.ring)


cdef class Watcher:
    """What hears of every value of a stream: all windows over it that one expression stands for.

    Parameters
    ----------
    number : int
    target : Stream
    """

    cdef int renew(self, Instance target) except -1:
        """A target without parameters begins, or begins anew."""
        raise NotImplementedError

    cdef int extend(self, Instance target, Cell value, object thing) except -1:
        """The target has a new value."""
        raise NotImplementedError

    cdef int extend_span(self, Instance target, Span* span) except -1:
        """The target has the values of some rows."""
        raise NotImplementedError

    cdef int begin_reader(self, Instance reader) except -1:
        """An instance of the reader begins."""
        raise NotImplementedError

    cdef int begin_target(self, Instance target) except -1:
        """An instance of the target begins."""
        raise NotImplementedError

    cdef int end_target(self, Instance target) except -1:
        """An instance of the target ends."""
        raise NotImplementedError


cdef class Stream:
    """A stream and its instances.

    Parameters
    ----------
    store : Store
    number : int
    name : str
    family : int
        BOOL to OBJECT.
    depth : int
        Values kept by offsets and as the newest, at least 1.
    keep : int
        Nanoseconds for which values are kept, -1 where no offset in real time reads them.
    keyed, spawned : bool
        Has parameters; has a spawn clause.
    key_family : int
        Of the only parameter, OBJECT for a text; -1 where instances are found by object only.
    coded : bool
        Whether values are codes of texts.
    """

    def __init__(
        self, Store store, int number, str name, int family, int64_t depth, keep, bint keyed, bint spawned,
        int key_family, bint coded
    ):
        self.store, self.number, self.name, self.family = store, number, name, family
        self.depth, self.keep, self.keyed, self.spawned = depth, object_wide(keep), keyed, spawned
        self.table = {}
        self.key_family = key_family
        self.instance_bytes = INSTANCE_BYTES + (TEXT_BYTES if key_family == OBJECT else 0) + 8 * (depth - 1)
        if key_family >= 0:
            self.map = CellMap()
        if coded:
            self.words = store.words
        self.touched = []
        self.touched_at = -1
        self.watched, self.own, self.tallies, self.closers = [], [], [], []
        store.streams.append(self)

    def begin(self):
        """The only instance of a stream that is not spawned."""
        if not self.spawned:
            self.create(None)

    def instances(self):
        """How many live."""
        return len(self.table) if self.keyed else int(self.one is not None)

    def kept(self, most):
        """How many values its instances hold, at most so many each (None: all, of offsets in real time)."""
        cdef Instance instance
        cdef int64_t found = 0, bound = 0 if most is None else most
        for instance in self.table.values() if self.keyed else (self.one,):
            if instance is None:
                continue
            if instance.moments is not None:
                found += max(<int64_t>len(instance.moments), min(instance.count, bound))
            else:
                found += min(instance.count, bound)
        return found

    cdef Instance find(self, object key):
        """The living instance of a key, or None."""
        cdef Instance found
        if not self.keyed:
            return self.one
        if key is self.recent_key and self.recent is not None:
            return self.recent
        found = self.table.get(key)
        self.recent_key, self.recent = key, found
        return found

    cdef Instance find_cell(self, uint64_t cell):
        """The living instance of a key that is a cell, or None; only where there is a map."""
        cdef PyObject* found
        if cell == self.recent_cell and self.recent_by_cell is not None:
            return self.recent_by_cell
        found = self.map.find(cell)
        if found is NULL:
            return None
        self.recent_cell, self.recent_by_cell = cell, <Instance>found
        return self.recent_by_cell

    cdef object key_of_cell(self, uint64_t cell):
        """The key that a cell stands for."""
        cdef Cell value
        if self.key_family == OBJECT:
            return self.store.words.thing(cell)
        value.u = cell
        return boxed(value, self.key_family)

    cdef object newest(self, Instance instance):
        """The newest value of an instance that has one."""
        if self.words is not None:
            return self.words.thing(instance.last.u)
        return instance.value if self.family == OBJECT else boxed(instance.last, self.family)

    cdef object kept_at(self, Instance instance, int64_t place):
        """The text, tuple or the like that is kept as value `place`, counted from the first ever."""
        if place == instance.count - 1:
            return self.newest(instance)
        if self.words is not None:
            return self.words.thing(instance.ring[place % self.depth].u)
        return instance.past[place % self.depth]

    cdef Instance create(self, object key):
        """A new instance, with its windows."""
        cdef Instance instance = Instance.__new__(Instance)
        cdef Watcher each
        instance.key, instance.fresh, instance.born = key, -1, self.store.step
        instance.spawned, instance.alive = self.store.now, True
        if self.depth > 1:
            if self.family == OBJECT and self.words is None:
                instance.past = [None] * self.depth
            else:
                instance.ring = <Cell*>malloc(self.depth * sizeof(Cell))
                if instance.ring is NULL:
                    raise MemoryError
        if self.keep >= 0:
            instance.moments = deque()
        self.store.bytes += self.instance_bytes
        if self.keyed:
            if self.map is not None:
                instance.cell = self.cell_of_key(key)
                if self.key_family == OBJECT:  # a text is held as long as its code is the key of an instance
                    instance.key = key = self.store.words.thing(instance.cell)
                self.map.put(instance.cell, <PyObject*>instance)
                self.recent_cell, self.recent_by_cell = instance.cell, instance
            self.table[key] = instance
            self.recent_key, self.recent = key, instance
        else:
            self.one = instance
        if self.own:
            instance.windows = [None] * len(self.own)
            for each in self.own:
                each.begin_reader(instance)
        if self.spawned:
            for each in self.watched:
                if each.per_target:
                    each.begin_target(instance)
                else:
                    each.renew(instance)
        return instance

    cdef uint64_t cell_of_key(self, object key) except? 0:
        """The cell of a key."""
        if self.key_family == OBJECT:
            return <uint64_t>self.store.words.intern(key)
        return unboxed(key, self.key_family).u

    cdef int remove(self, Instance instance) except -1:
        """End an instance."""
        cdef Watcher each
        cdef Tally tally
        for tally in self.tallies:
            if tally.running and instance.count:
                tally.change(instance, -1)
        for each in self.watched:
            if each.per_target:
                each.end_target(instance)
        instance.alive = False
        self.recent_key, self.recent, self.recent_by_cell = None, None, None
        if self.map is not None:
            self.map.drop(instance.cell)
        self.store.bytes -= self.instance_bytes
        if self.keyed:
            self.table.pop(instance.key, None)
        else:
            self.one = None
        return 0

    cdef int push(self, Instance instance, Cell value, object thing) except -1:
        """Extend an instance by a value."""
        cdef Watcher each
        cdef Tally tally
        cdef Store store = self.store
        cdef bint object_value = self.family == OBJECT and self.words is None
        if not store.changed:
            if instance.count == 0:
                store.changed = True
            elif object_value:
                store.changed = instance.value != thing
            else:
                store.changed = instance.last.u != value.u
        if self.tallies:
            for tally in self.tallies:
                if tally.running and instance.count:
                    tally.change(instance, -1)
        if object_value:
            instance.value = thing
            if self.depth > 1:
                instance.past[instance.count % self.depth] = thing
        else:
            instance.last = value
            if self.depth > 1:
                instance.ring[instance.count % self.depth] = value
        instance.count += 1
        instance.fresh = store.step
        if self.track:
            if self.touched_at != store.step:
                self.touched_at = store.step
                self.touched = []
            self.touched.append(instance)
        if self.keep >= 0:
            self.note(instance, self.newest(instance))
        if self.tallies:
            for tally in self.tallies:
                if tally.running:
                    tally.change(instance, 1)
        if self.watched:
            if self.words is not None:
                thing = self.words.thing(value.u)
            for each in self.watched:
                each.extend(instance, value, thing)
        return 0

    cdef int push_span(self, Span* span) except -1:
        """Extend the only instance by the values of some rows, in which nothing else happens."""
        cdef Store store = self.store
        cdef Instance instance = self.one
        cdef Watcher each
        cdef Tally tally
        cdef int64_t found = 0, skip
        cdef Py_ssize_t row, newest = -1
        cdef Cell cell
        if span.mask is NULL:
            found, newest = span.high - span.low, span.high - 1
        else:
            for row in range(span.low, span.high):
                if span.mask[row]:
                    found += 1
                    newest = row
        if found == 0:
            return 0
        for tally in self.tallies:
            if tally.running and instance.count:
                tally.change(instance, -1)
        if self.depth > 1:
            skip = found - self.depth  # values that are pushed out at once
            for row in range(span.low, span.high):
                if span.mask is NULL or span.mask[row]:
                    if skip <= 0:
                        instance.ring[instance.count % self.depth].u = span.cells[row]
                    instance.count += 1
                    skip -= 1
        else:
            instance.count += found
        instance.last.u = span.cells[newest]
        instance.fresh = span.step + newest - span.low
        if self.keep >= 0:
            for row in range(span.low, span.high):
                if span.mask is NULL or span.mask[row]:
                    store.now = (<wide>span.times[row] - span.origin) * span.tick
                    cell.u = span.cells[row]
                    value = self.words.thing(cell.u) if self.words is not None else boxed(cell, self.family)
                    self.note(instance, value)
        for tally in self.tallies:
            if tally.running:
                tally.change(instance, 1)
        for each in self.watched:
            each.extend_span(instance, span)
        return 0

    def note(self, Instance instance, value):
        """Keep a value with the time, and forget those that no offset in real time can read any more."""
        now = wide_object(self.store.now)
        moments = instance.moments
        moments.append((now, value))
        horizon = now - wide_object(self.keep)
        while len(moments) > 1 and moments[1][0] <= horizon:
            moments.popleft()

    def state(self):
        """What is kept, as plain values: a list per instance."""
        cdef Instance instance
        found = []
        for instance in list(self.table.values()) if self.keyed else [self.one]:
            if instance is None:
                continue
            kept = min(instance.count, self.depth)
            places = [place % self.depth for place in range(instance.count - kept, instance.count)]
            if self.family == OBJECT:
                values = [self.kept_at(instance, place) for place in range(instance.count - kept, instance.count)]
            elif self.depth > 1:
                values = [instance.ring[<int64_t>place].u for place in places]
            else:
                values = [instance.last.u] * kept
            moments = None if instance.moments is None else [list(each) for each in instance.moments]
            spawned = wide_object(instance.spawned)
            found.append([
                instance.key, instance.count, instance.fresh, instance.born, spawned, values, moments
            ])
        return found

    def load(self, state):
        """Bring the instances to where `state` was taken; ValueError where it cannot be one."""
        cdef Instance instance
        cdef int64_t place, kept
        if not self.keyed and len(state) > 1 or (not self.spawned and len(state) != 1):
            raise ValueError("a stream has the wrong number of instances")
        for key, count, fresh, born, spawned, values, moments in state:
            if self.spawned:
                if not self.keyed and key is not None or self.keyed and (key is None or key in self.table):
                    raise ValueError("an instance has a wrong key")
                instance = self.create(key)
            else:
                instance = self.one
            instance.count, instance.fresh, instance.born = count, fresh, born
            instance.spawned = object_wide(spawned)
            kept = min(instance.count, self.depth)
            if instance.count < 0 or len(values) != kept or (moments is None) != (instance.moments is None):
                raise ValueError("an instance does not have the values that it must have")
            for place in range(kept):
                if self.words is not None:
                    instance.last.u = self.words.intern(values[place])
                    if self.depth > 1:
                        instance.ring[(instance.count - kept + place) % self.depth] = instance.last
                elif self.family == OBJECT:
                    instance.value = values[place]
                    if self.depth > 1:
                        instance.past[(instance.count - kept + place) % self.depth] = values[place]
                else:
                    instance.last.u = values[place]
                    if self.depth > 1:
                        instance.ring[(instance.count - kept + place) % self.depth].u = values[place]
            if moments is not None:
                instance.moments = deque((int(time), value) for time, value in moments)


cdef class Store:
    """All streams, windows and tallies of a specification."""

    def __init__(self):
        self.streams, self.tables, self.tallies = [], [], []
        self.words = Words()
        self.step = 0
        self.now = 0

    def tidy(self, bint at_once=False):
        """Forget texts that nothing holds any more, where they are many or `at_once`; no column may be in use."""
        cdef Stream stream
        cdef Instance instance
        cdef int64_t place
        if not at_once and not self.words.crowded():
            return
        held = set()
        for stream in self.streams:
            if stream.words is not None:
                instance = stream.one
                held.add(instance.last.u)
                if stream.depth > 1:
                    for place in range(min(stream.depth, instance.count)):
                        held.add(instance.ring[place].u)
        self.words.sweep(held)

    def time(self):
        """Nanoseconds from the start."""
        return wide_object(self.now)

    def state(self):
        """All that is kept, as plain values."""
        return {
            "step": self.step,
            "now": wide_object(self.now),
            "streams": [each.state() for each in self.streams],
            "tables": [each.state() for each in self.tables],
            "tallies": [each.state() for each in self.tallies],
        }

    def load(self, state):
        """Bring all to where `state` was taken."""
        for name in ("streams", "tables", "tallies"):
            for each, saved in zip(getattr(self, name), state[name], strict=True):
                each.load(saved)
        self.step, self.now = state["step"], object_wide(state["now"])


cdef class Tally:
    """An aggregate over the instances of a stream.

    Parameters
    ----------
    store : Store
    number : int
    target : Stream
    only_fresh : bool
        Over those extended in this step; else over all that have a value.
    function, result, percentile : int
    """

    def __init__(
        self, Store store, int number, Stream target, bint only_fresh, int function, int result, int percentile
    ):
        self.store, self.number, self.target, self.only_fresh = store, number, target, only_fresh
        self.function, self.result, self.percentile = function, result, percentile
        whole = function == COUNT or (target.family != FLOAT and function in (SUM, AVG)) or function in (EXISTS, FORALL)
        numbers = target.family in (INT, UINT, FLOAT)
        if function == PCTL or (function in (MIN, MAX) and numbers and not only_fresh):
            self.ordered = Ordered(target.family)
        self.running = not only_fresh and (whole or self.ordered is not None)
        target.tallies.append(self)
        if only_fresh:
            target.track = True
        store.tallies.append(self)

    cdef int change(self, Instance instance, int sign) except -1:
        """Take the newest value of an instance in, or out."""
        self.n += sign
        if self.ordered is not None:
            self.ordered.change(instance.last, sign)
        elif self.function != COUNT:
            self.total += sign * as_wide(instance.last, self.target.family)
        return 0

    cdef list looked_at(self):
        """The instances that it is over."""
        if self.only_fresh:
            return self.target.touched if self.target.touched_at == self.store.step else []
        if self.target.keyed:
            return list(self.target.table.values())
        return [self.target.one] if self.target.one is not None else []

    cdef int gather(self, list instances) except -1:
        """Put the newest values of instances in order."""
        cdef Instance instance
        cdef int64_t n = 0
        cdef Cell* cells = <Cell*>malloc((len(instances) + 1) * sizeof(Cell))
        if cells is NULL:
            raise MemoryError
        try:
            for instance in instances:
                if instance.count:
                    cells[n] = instance.last
                    n += 1
            self.ordered.fill(cells, n)
        finally:
            free(cells)
        return 0

    cdef int read(self, Cell* out) except -1:
        """What the aggregate comes to now; 0 where it has no value."""
        cdef Pane whole
        cdef Instance instance
        cdef Ordered ordered = self.ordered
        cdef int family = self.target.family
        if ordered is not None:
            if not self.running or not ordered.settle():
                self.gather(self.looked_at())
            self.store.bytes += ordered.nbytes - self.ordered_bytes
            self.ordered_bytes = ordered.nbytes
            if self.function == PCTL:
                return percentile_of(ordered, self.percentile, family, True, out)
            if ordered.n:
                out[0] = ordered.at(0 if self.function == MIN else ordered.n - 1)
            return ordered.n > 0
        memset(&whole, 0, sizeof(Pane))
        if self.running:
            whole.n, whole.total = self.n, self.total
        else:
            for instance in self.looked_at():
                if instance.count:
                    accept(&whole, self.function, family, instance.last, instance.value, self.store.now)
        return outcome(&whole, self.function, family, out)

    def state(self):
        """What is kept, as plain values."""
        return [self.n, wide_object(self.total)]

    def load(self, state):
        """Bring it to where `state` was taken."""
        self.n, self.total = state[0], object_wide(state[1])
        if self.ordered is not None:
            self.ordered.stale = True
