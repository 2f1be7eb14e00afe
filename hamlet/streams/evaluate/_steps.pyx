"""One step of a specification: what an event causes, or a deadline.

The inputs of an event are extended by the caller. Tasks run layer by layer, in the order that they were given in, then
instances close; rows of the step are put in the order of the streams.
"""

import heapq

from libc.stdint cimport int64_t
from libc.stdlib cimport free

from hamlet.streams.evaluate._cells cimport OBJECT, Cell, boxed, wide, wide_object
from hamlet.streams.evaluate._nodes cimport Node
from hamlet.streams.evaluate._store cimport Instance, Store, Stream
from hamlet.streams.evaluate._tasks cimport Clause, Closer, Task
from hamlet.streams.evaluate._windows cimport WindowTable


cdef class Steps:
    """The tasks of a specification, and what they are about to do; `Evaluator` says when."""

    def __dealloc__(self):
        free(self.fresh)
        free(self.active)
        free(self.beats)

    cdef int set_beat(self, int number, wide k) except -1:
        """The next deadline of a period."""
        cdef Beat* beat = &self.beats[number]
        beat.k = k
        beat.next = k * beat.over * 1000000000 / beat.under
        return 0

    cdef int event_step(self) except -1:
        """All that an event causes once the inputs are extended."""
        cdef Store store = self.store
        cdef int64_t step = store.step
        cdef int number, place
        cdef tuple terms, term
        cdef bint holds
        cdef Task task
        cdef Py_ssize_t each
        for number, terms in self.terms:
            for term in terms:
                holds = True
                for place in term:
                    if self.fresh[place] != step:
                        holds = False
                        break
                if holds:
                    self.active[number] = step
                    break
        for each in range(len(self.event_tasks)):
            task = <Task>self.event_tasks[each]
            if <bint>self.event_spawns[each]:
                self.spawn(task)
            else:
                self.evaluate(task)
        if self.event_closers:
            self.close_all(self.event_closers)
        self.quiet_since = store.now
        if self.found:
            self.flush()
        return 0

    cdef int deadline_step(self, wide time) except -1:
        """One deadline: all that is due."""
        cdef Store store = self.store
        cdef int each, pacing
        cdef Task task
        cdef Py_ssize_t place
        cdef WindowTable table
        store.step += 1
        store.now = time
        store.changed = False
        self.deadlines += 1
        for each in range(self.n_beats):
            if self.beats[each].next == time:
                pacing = self.beat_pacings[each]
                self.active[pacing] = store.step
                self.set_beat(each, self.beats[each].k + 1)
        if self.heap:
            self.pop_due(wide_object(time))
        for place in range(len(self.time_tasks)):
            task = <Task>self.time_tasks[place]
            if <bint>self.time_spawns[place]:
                self.spawn(task)
            else:
                self.evaluate(task)
        if self.time_closers:
            self.close_all(self.time_closers)
        for table in store.tables:
            if table.leaving:
                table.sweep()
        if store.changed or self.found:
            self.quiet_since = time
        if self.found:
            self.flush()
        return 0

    cdef pop_due(self, time):
        """Collect the instances whose own deadline it is, and set their next ones."""
        cdef Instance instance
        self.due = {}
        while self.heap and self.heap[0][0] == time:
            _, _, pacing, instance, k = heapq.heappop(self.heap)
            if not instance.alive:
                continue
            self.active[<int>pacing] = self.store.step
            self.due.setdefault(pacing, {})[instance] = None
            self.push_due(pacing, instance, k + 1)

    cdef list due_instances(self, Stream stream, Clause clause):
        """The instances of one stream whose own deadline it is; others may have the same pacing."""
        cdef Instance instance
        cdef list found = []
        for instance in self.due.get(clause.pacing, ()):
            if stream.table.get(instance.key) is instance:
                found.append(instance)
        return found

    cdef push_due(self, pacing, Instance instance, k):
        """Set the k-th own deadline of an instance."""
        over, under = self.local_periods[pacing]
        self.entries += 1
        time = wide_object(instance.spawned) + k * over * 1000000000 // under
        heapq.heappush(self.heap, (time, self.entries, pacing, instance, k))

    # -------------------------------------------------------------------------------------------------------- tasks

    cdef int spawn(self, Task task) except -1:
        """Begin an instance where the clause says so."""
        cdef Clause clause = <Clause>task.clauses[0]
        cdef Stream stream = task.stream
        cdef Cell cell
        cdef Instance instance
        cdef object key = None
        cdef Node node
        if self.active[clause.pacing] != self.store.step:
            return 0
        self.current = stream
        if clause.condition is not None and (not clause.condition.num(None, &cell) or not cell.i):
            return 0
        if not stream.keyed:
            if stream.one is not None:
                return 0
        elif task.key is not None:
            if not task.key.num(None, &cell) or stream.find_cell(cell.u) is not None:
                return 0
            key = stream.key_of_cell(cell.u)
        else:
            if len(task.arguments) == 1:
                key = (<Node>task.arguments[0]).obj(None)
                if key is None:
                    return 0
            else:
                found = []
                for node in task.arguments:
                    value = node.obj(None)
                    if value is None:
                        return 0
                    found.append(value)
                key = tuple(found)
            if stream.find(key) is not None:
                return 0
        instance = stream.create(key)
        self.store.changed = True
        for pacing in task.pacings:
            self.push_due(pacing, instance, 1)
        closer = self.closer_of.get(stream.number)
        if closer is not None and (<Closer>closer).narrow:
            (<Closer>closer).hear(instance)
        return 0

    cdef Instance bound_instance(self, Stream stream, Clause clause):
        """The only instance for which a condition can be true, if it lives."""
        cdef Node each
        cdef Cell cell
        if clause.key is not None:
            return stream.find_cell(cell.u) if clause.key.num(None, &cell) else None
        if len(clause.binding) == 1:
            key = (<Node>clause.binding[0]).obj(None)
            return None if key is None else stream.find(key)
        found = []
        for each in clause.binding:
            value = each.obj(None)
            if value is None:
                return None
            found.append(value)
        return stream.find(tuple(found))

    cdef int evaluate(self, Task task) except -1:
        """Extend the instances of a stream for which a clause is active and true."""
        cdef Stream stream = task.stream
        cdef int64_t step = self.store.step
        cdef Clause clause
        cdef Instance instance
        cdef Cell cell
        cdef bint active = False
        if task.column is not None:
            if task.column.mask is not NULL and not task.column.mask[self.row]:
                return 0
            if task.whole:
                cell.u = task.column.cells[self.row]
                stream.push(stream.one, cell, None)
                if task.emits:
                    self.found.append((stream.number, None, boxed(cell, stream.family)))
                return 0
        for clause in task.clauses:
            if self.active[clause.pacing] == step:
                active = True
                break
        if not active:
            return 0
        self.current = stream
        if not stream.keyed:
            if stream.one is not None:
                self.extend(task, stream.one)
            return 0
        if task.bound:
            for clause in task.clauses:
                if self.active[clause.pacing] == step:
                    instance = self.bound_instance(stream, clause)
                    if instance is not None and instance.fresh != step:
                        self.extend(task, instance)
            return 0
        if task.has_local:
            candidates = {}
            for clause in task.clauses:
                if self.active[clause.pacing] == step:
                    if not clause.local:
                        candidates = stream.table.values()
                        break
                    candidates.update(dict.fromkeys(self.due_instances(stream, clause)))
            for instance in list(candidates):
                self.extend(task, instance)
            return 0
        for instance in list(stream.table.values()):
            self.extend(task, instance)
        return 0

    cdef int extend(self, Task task, Instance instance) except -1:
        """The first clause that is active and true gives the value."""
        cdef Clause clause
        cdef Stream stream = task.stream
        cdef Cell cell
        cdef object thing = None
        for clause in task.clauses:
            if self.active[clause.pacing] != self.store.step:
                continue
            if clause.local and instance not in self.due.get(clause.pacing, ()):
                continue
            if clause.condition is not None and (not clause.condition.num(instance, &cell) or not cell.i):
                continue
            if stream.family == OBJECT:
                thing = clause.value.obj(instance)
                if thing is None:
                    continue
                cell.u = 0
            elif not clause.value.num(instance, &cell):
                continue
            stream.push(instance, cell, thing)
            if task.emits:
                self.found.append(
                    (stream.number, instance.key, thing if stream.family == OBJECT else boxed(cell, stream.family))
                )
            if stream.closers:
                self.tell(stream, instance)
            return 1
        return 0

    cdef int tell(self, Stream stream, Instance instance) except -1:
        """Have those looked at whose close condition reads this instance: its newest value has changed, or ended."""
        cdef Closer closer
        cdef Instance other
        for closer in stream.closers:
            other = instance if closer.stream is stream and instance.alive else closer.stream.find(instance.key)
            if other is not None:
                closer.hear(other)
        return 0

    cdef int close_all(self, list closers) except -1:
        """End the instances whose close clause is active and true."""
        cdef Closer closer
        cdef Clause clause
        cdef Instance instance
        cdef Cell cell
        cdef list closing = []
        for closer in closers:
            clause = closer.clause
            if self.active[clause.pacing] != self.store.step:
                continue
            self.current = closer.stream
            if closer.narrow:
                if not closer.waiting:
                    continue
                candidates = closer.waiting
                closer.waiting = []
                for instance in candidates:
                    instance.waiting = False
            elif not closer.stream.keyed:
                candidates = [closer.stream.one] if closer.stream.one is not None else []
            elif clause.local:
                candidates = self.due_instances(closer.stream, clause)
            elif clause.binding is not None:
                instance = self.bound_instance(closer.stream, clause)
                candidates = [instance] if instance is not None else []
            else:
                candidates = list(closer.stream.table.values())
            for instance in candidates:
                if not instance.alive:
                    continue
                if clause.local and instance not in self.due.get(clause.pacing, ()):
                    continue
                if clause.condition is None or (clause.condition.num(instance, &cell) and cell.i):
                    closing.append((closer.stream, instance))
        for stream, instance in closing:
            (<Stream>stream).remove(instance)
            self.tell(stream, instance)
            self.store.changed = True
        return 0

    cdef int flush(self) except -1:
        """The rows of the step, by stream."""
        cdef object time = wide_object(self.store.now)
        if len(self.found) > 1:
            self.found.sort(key=_by_stream)
        for number, key, value in self.found:
            self.rows.append((time, number, key, value))
        self.found = []
        return 0


def _by_stream(row):
    return row[0]
