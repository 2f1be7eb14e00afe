"""What a specification keeps while it runs: streams with their instances, windows as panes, tallies of instances.

Contract
--------
**Time** is nanoseconds from the start in 128 bits, so that no span of 64-bit ticks overflows. **Values** of Bool, Int,
UInt and Float are cells of 64 bits; strings and tuples are Python objects. **Panes**: a window that is read at the
deadlines d(1), d(2), ... of its reader is cut at d(k) - duration, so that what is read at d(k) is exactly a suffix of
the panes, whatever the rate of the events. The caller checks no bounds here: `hamlet.streams.compile` builds all of it.
"""

from collections import deque

from libc.math cimport isnan, sqrt
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memmove, memset

INSTANCE_BYTES = 240  # of an instance with its key and its place in a table; measured

cdef int64_t PANE_BYTES = sizeof(Pane)
cdef Cell NOTHING
NOTHING.u = 0


class Fault(ArithmeticError):
    """What a computation ran into; the evaluator says in which stream and when."""


cdef object wide_object(wide value):
    """A wide number as a Python integer."""
    cdef int64_t high = <int64_t>(value >> 64)
    return (int(high) << 64) | int(<uint64_t>value)


cdef wide object_wide(object value) except? -1:
    """A Python integer of at most 127 bits as a wide number; OverflowError beyond."""
    cdef int64_t high = value >> 64
    cdef uint64_t low = value & 0xFFFFFFFFFFFFFFFF
    return ((<wide>high) << 64) | <wide>low


cdef Cell unboxed(object value, int family) except *:
    """A Python value as a cell."""
    cdef Cell cell
    if family == FLOAT:
        cell.f = value
    elif family == UINT:
        cell.u = value
    elif family == BOOL:
        cell.i = 1 if value else 0
    else:
        cell.i = value
    return cell


cdef object boxed(Cell value, int family):
    """A cell as a Python value."""
    if family == FLOAT:
        return value.f
    if family == UINT:
        return value.u
    if family == BOOL:
        return value.i != 0
    return value.i


cdef class Instance:
    """One instance of a stream; a stream without parameters has one."""

    def __dealloc__(self):
        free(self.ring)


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
    """

    def __init__(self, Store store, int number, str name, int family, int64_t depth, keep, bint keyed, bint spawned):
        self.store, self.number, self.name, self.family = store, number, name, family
        self.depth, self.keep, self.keyed, self.spawned = depth, object_wide(keep), keyed, spawned
        self.table = {}
        self.touched = []
        self.touched_at = -1
        self.watched, self.own, self.tallies = [], [], []
        store.streams.append(self)

    def track_touched(self):
        """Keep the list of the instances of each step."""
        self.track = True

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

    cdef Instance create(self, object key):
        """A new instance, with its windows."""
        cdef Instance instance = Instance.__new__(Instance)
        cdef WindowTable each
        instance.key, instance.fresh, instance.born = key, -1, self.store.step
        instance.spawned, instance.alive = self.store.now, True
        if self.depth > 1:
            if self.family == OBJECT:
                instance.past = [None] * self.depth
            else:
                instance.ring = <Cell*>malloc(self.depth * sizeof(Cell))
                if instance.ring is NULL:
                    raise MemoryError
        if self.keep >= 0:
            instance.moments = deque()
        self.store.bytes += INSTANCE_BYTES + 8 * (self.depth - 1)
        if self.keyed:
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

    cdef int remove(self, Instance instance) except -1:
        """End an instance."""
        cdef WindowTable each
        cdef Tally tally
        for tally in self.tallies:
            if tally.running and instance.count:
                tally.change(instance, -1)
        for each in self.watched:
            if each.per_target:
                each.end_target(instance)
        instance.alive = False
        self.recent_key, self.recent = None, None
        self.store.bytes -= INSTANCE_BYTES + 8 * (self.depth - 1)
        if self.keyed:
            self.table.pop(instance.key, None)
        else:
            self.one = None
        return 0

    cdef int push(self, Instance instance, Cell value, object thing) except -1:
        """Extend an instance by a value."""
        cdef WindowTable each
        cdef Tally tally
        cdef Store store = self.store
        cdef bint object_value = self.family == OBJECT
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
            self.remember(instance)
        if self.tallies:
            for tally in self.tallies:
                if tally.running:
                    tally.change(instance, 1)
        for each in self.watched:
            each.extend(instance, value, thing)
        return 0

    def remember(self, Instance instance):
        """Note the newest value and its time, and forget those that no offset in real time can read any more."""
        now = wide_object(self.store.now)
        moments = instance.moments
        moments.append((now, instance.value if self.family == OBJECT else boxed(instance.last, self.family)))
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
                values = [instance.past[place] for place in places] if self.depth > 1 else [instance.value] * kept
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
                if self.family == OBJECT:
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
        self.step = 0
        self.now = 0

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


# ------------------------------------------------------------------------------------------------------- aggregates


cdef double as_double(Cell value, int family) noexcept nogil:
    if family == FLOAT:
        return value.f
    if family == UINT:
        return <double>value.u
    return <double>value.i


cdef bint below(Cell left, Cell right, int family) noexcept nogil:
    if family == FLOAT:
        return left.f < right.f
    if family == UINT:
        return left.u < right.u
    return left.i < right.i


cdef inline wide as_wide(Cell value, int family) noexcept nogil:
    return <wide>value.u if family == UINT else <wide>value.i


cdef int accept(Pane* pane, int function, int family, Cell value, object thing, wide now) except -1:
    """Take one value into a pane."""
    cdef double x, y, before
    pane.n += 1
    if function == COUNT:
        return 0
    if function == SUM or function == AVG:
        if family == FLOAT:
            pane.a += value.f
        else:
            pane.total += as_wide(value, family)
    elif function == MIN:
        if pane.n == 1 or below(value, pane.cell, family):
            pane.cell = value
    elif function == MAX:
        if pane.n == 1 or below(pane.cell, value, family):
            pane.cell = value
    elif function == LAST:
        pane.cell = value
    elif function == EXISTS or function == FORALL:
        pane.total += value.i
    elif function == INTEGRAL:
        x = as_double(value, family)
        if pane.n == 1:
            pane.b, pane.first_at = x, now
        else:
            pane.a += (pane.c + x) * (<double>(now - pane.last_at) / 1e9) / 2
        pane.c, pane.last_at = x, now
    elif function == VAR or function == SD:
        x = as_double(value, family)
        before = pane.a
        pane.a += (x - before) / pane.n
        pane.b += (x - before) * (x - pane.a)
    elif function == COV:
        x, y = thing
        before = pane.a
        pane.a += (x - before) / pane.n
        pane.b += (y - pane.b) / pane.n
        pane.c += (x - before) * (y - pane.b)
    return 0


cdef int merge(Pane* into, Pane* other, int function, int family) except -1:
    """Take a later pane into an earlier one."""
    cdef double x, y, share
    if other.n == 0:
        return 0
    if into.n == 0:
        into[0] = other[0]
        return 0
    if function == MIN:
        if below(other.cell, into.cell, family):
            into.cell = other.cell
    elif function == MAX:
        if below(into.cell, other.cell, family):
            into.cell = other.cell
    elif function == LAST:
        into.cell = other.cell
    elif function == INTEGRAL:
        into.a += other.a + (into.c + other.b) * (<double>(other.first_at - into.last_at) / 1e9) / 2
        into.c, into.last_at = other.c, other.last_at
    elif function == VAR or function == SD:
        x = other.a - into.a
        share = <double>into.n * <double>other.n / <double>(into.n + other.n)
        into.a += x * other.n / (into.n + other.n)
        into.b += other.b + x * x * share
    elif function == COV:
        x, y = other.a - into.a, other.b - into.b
        share = <double>into.n * <double>other.n / <double>(into.n + other.n)
        into.a += x * other.n / (into.n + other.n)
        into.b += y * other.n / (into.n + other.n)
        into.c += other.c + x * y * share
    elif function != COUNT and function != PCTL:
        into.a += other.a
        into.total += other.total
    into.n += other.n
    return 0


cdef int integer_outcome(wide total, int family, Cell* out) except -1:
    """An integer of 64 bits, or a fault."""
    if family == UINT or family == BOOL:
        if total < 0 or (total >> 64) != 0:
            raise Fault("the sum is beyond 64 bits")
        out.u = <uint64_t>total
    else:
        if total != <wide><int64_t>total:
            raise Fault("the sum is beyond 64 bits")
        out.i = <int64_t>total
    return 1


cdef int outcome(Pane* pane, int function, int family, Cell* out) except -1:
    """What an aggregate comes to; 0 where it has no value."""
    cdef wide total
    if function == COUNT:
        out.u = <uint64_t>pane.n
        return 1
    if function == SUM:
        if family != FLOAT:
            return integer_outcome(pane.total, family, out)
        out.f = pane.a
    elif function == EXISTS:
        out.i = pane.total > 0
        return 1
    elif function == FORALL:
        out.i = pane.total == pane.n
        return 1
    elif function == INTEGRAL:
        out.f = pane.a
    elif pane.n == 0:
        return 0
    elif function == AVG:
        if family != FLOAT:
            total = pane.total / pane.n
            return integer_outcome(total, family, out)
        out.f = pane.a / pane.n
    elif function == VAR:
        out.f = pane.b / pane.n
    elif function == SD:
        out.f = sqrt(pane.b / pane.n)
    elif function == COV:
        out.f = pane.c / pane.n
    else:
        out[0] = pane.cell
        return 1
    if isnan(out.f):
        raise Fault("the aggregate is not a number (NaN)")
    return 1


cdef int by_float(const void* left, const void* right) noexcept nogil:
    cdef double x = (<Cell*>left).f, y = (<Cell*>right).f
    return (x > y) - (x < y)


cdef int by_int(const void* left, const void* right) noexcept nogil:
    cdef int64_t x = (<Cell*>left).i, y = (<Cell*>right).i
    return (x > y) - (x < y)


cdef int by_uint(const void* left, const void* right) noexcept nogil:
    cdef uint64_t x = (<Cell*>left).u, y = (<Cell*>right).u
    return (x > y) - (x < y)


cdef int percentile_of(Cell* values, int64_t n, int percentile, int family, bint between, Cell* out) except -1:
    """The percentile of unsorted values, which are copied.

    Of a window, k = n * percentile / 100 picks: whole, the mean of the k-th and the next value, else the ceil(k)-th.
    Of instances (`between`) it is interpolated at (n - 1) * percentile / 100.
    """
    cdef Cell* sorted
    cdef int64_t place, rest
    cdef wide total
    if n == 0:
        return 0
    sorted = <Cell*>malloc(n * sizeof(Cell))
    if sorted is NULL:
        raise MemoryError
    try:
        for place in range(n):
            sorted[place] = values[place]
        qsort(sorted, n, sizeof(Cell), by_float if family == FLOAT else by_uint if family == UINT else by_int)
        place = (n - 1 if between else n) * percentile
        rest = place % 100
        place = place // 100
        if between:
            out[0] = sorted[place]
            if rest:
                if family == FLOAT:
                    out.f = sorted[place].f + (sorted[place + 1].f - sorted[place].f) * (rest / 100.0)
                elif family == UINT:
                    out.u = sorted[place].u + <uint64_t>((<wide>sorted[place + 1].u - sorted[place].u) * rest / 100)
                else:
                    out.i = sorted[place].i + <int64_t>((<wide>sorted[place + 1].i - sorted[place].i) * rest / 100)
        elif rest:
            out[0] = sorted[place]
        elif place == 0:
            out[0] = sorted[0]
        elif place >= n:
            out[0] = sorted[n - 1]
        elif family == FLOAT:
            out.f = (sorted[place - 1].f + sorted[place].f) / 2
        else:
            total = as_wide(sorted[place - 1], family) + as_wide(sorted[place], family)
            if family == UINT:
                out.u = <uint64_t>(total / 2)
            else:
                out.i = <int64_t>(total / 2)
    finally:
        free(sorted)
    return 1


# ---------------------------------------------------------------------------------------------------------- windows


cdef class Window:
    """The panes of one window."""

    def __dealloc__(self):
        free(self.panes)
        free(self.values)
        if self.table is not None:
            self.table.store.bytes -= self.room * PANE_BYTES + self.value_room * 8

    cdef int add(self, Cell value, object thing) except -1:
        """Take a value of the step that runs."""
        cdef WindowTable table = self.table
        cdef wide now = table.store.now
        cdef Pane* pane
        cdef bint opens
        if table.duration == 0:
            if self.size == table.count:
                self.forget(1)
            opens = True
        else:
            pane = &self.panes[(self.head + self.size - 1) % self.room] if self.size else NULL
            opens = pane is NULL or now > pane.bound
        if opens:
            if table.duration != 0:
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
        accept(pane, table.function, table.family, value, thing, now)
        if self.things is not None:
            self.things[len(self.things) - 1] = thing
        if table.function == PCTL:
            self.keep(value)
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
        return 0

    cdef int forget(self, int64_t panes) except -1:
        """Drop the oldest panes."""
        cdef int64_t n
        while panes:
            n = self.panes[self.head].n
            if self.table.function == PCTL:
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
            return percentile_of(
                self.values + self.first_value, self.stored, table.percentile, table.family, False, out
            )
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


cdef class WindowTable:
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
    """

    def __init__(
        self, Store store, int number, Stream target, Stream reader, int function, int family, int result,
        int percentile, duration, int64_t count, bint exactly, period, bint local, bint per_reader
    ):
        self.store, self.number, self.target, self.reader = store, number, target, reader
        self.function, self.family, self.result, self.percentile = function, family, result, percentile
        self.duration, self.count, self.exactly = object_wide(duration), count, exactly
        self.period_over, self.period_under = object_wide(period[0]), object_wide(period[1])
        self.local, self.per_reader, self.per_target = local, per_reader, target.keyed
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
        if not self.per_target:
            window = self.fresh_window(self.store.now)
            reader.windows[self.slot] = window
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
        elif self.reader.keyed:
            for reader in self.reader.table.values():
                self.extend_own(reader, target, value, thing)
        elif self.reader.one is not None:
            self.extend_own(self.reader.one, target, value, thing)
        return 0

    cdef int extend_own(self, Instance reader, Instance target, Cell value, object thing) except -1:
        """Add a value to one reader's own window; the step of the reader's spawn counts for targets with parameters."""
        if self.per_target:
            (<Window>(<dict>reader.windows[self.slot])[target.key]).add(value, thing)
        elif reader.born != self.store.step:
            (<Window>reader.windows[self.slot]).add(value, thing)
        return 0

    cdef Window find(self, Instance reader, object key):
        """The window that an instance of the reader reads, over the target of this key; an empty one for no target."""
        cdef Window window
        cdef dict windows
        cdef wide began
        if not self.per_reader and not self.per_target:
            return self.one
        if not self.per_target:
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
                found.extend(own.values() if self.per_target else [own])
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
                    held.append([
                        reader.key, [[k, v.state()] for k, v in own.items()] if self.per_target else own.state()
                    ])
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
            if self.per_target:
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
        self.running = whole and not only_fresh
        target.tallies.append(self)
        if only_fresh:
            target.track = True
        store.tallies.append(self)

    cdef int change(self, Instance instance, int sign) except -1:
        """Take the newest value of an instance in, or out."""
        self.n += sign
        if self.function != COUNT:
            self.total += sign * as_wide(instance.last, self.target.family)
        return 0

    cdef int read(self, Cell* out) except -1:
        """What the aggregate comes to now; 0 where it has no value."""
        cdef Pane whole
        cdef Instance instance
        cdef list values
        cdef Cell* cells
        cdef int64_t n = 0
        cdef int family = self.target.family
        memset(&whole, 0, sizeof(Pane))
        if self.running:
            whole.n, whole.total = self.n, self.total
            return outcome(&whole, self.function, family, out)
        if self.only_fresh:
            values = self.target.touched if self.target.touched_at == self.store.step else []
        elif self.target.keyed:
            values = list(self.target.table.values())
        else:
            values = [self.target.one] if self.target.one is not None else []
        if self.function != PCTL:
            for instance in values:
                if instance.count:
                    accept(&whole, self.function, family, instance.last, instance.value, self.store.now)
            return outcome(&whole, self.function, family, out)
        cells = <Cell*>malloc((len(values) + 1) * sizeof(Cell))
        if cells is NULL:
            raise MemoryError
        try:
            for instance in values:
                if instance.count:
                    cells[n] = instance.last
                    n += 1
            return percentile_of(cells, n, self.percentile, family, True, out)
        finally:
            free(cells)

    def state(self):
        """What is kept, as plain values."""
        return [self.n, wide_object(self.total)]

    def load(self, state):
        """Bring it to where `state` was taken."""
        self.n, self.total = state[0], object_wide(state[1])
