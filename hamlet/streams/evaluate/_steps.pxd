from libc.stdint cimport int64_t

from hamlet.streams.evaluate._cells cimport wide
from hamlet.streams.evaluate._store cimport Instance, Store, Stream
from hamlet.streams.evaluate._tasks cimport Clause, Task

cdef struct Beat:
    wide over    # period, ns: over * 10^9 / under
    wide under
    wide k       # of the next deadline
    wide next    # its time

cdef class Steps:
    cdef readonly Store store
    cdef public list rows
    cdef readonly int64_t events
    cdef readonly int64_t deadlines
    cdef readonly Stream current
    cdef list terms
    cdef int64_t* fresh       # step in which an input was extended last
    cdef int64_t* active      # step in which a pacing was active last
    cdef Beat* beats
    cdef list beat_pacings
    cdef int n_beats
    cdef list event_tasks
    cdef list time_tasks
    cdef list event_spawns
    cdef list time_spawns
    cdef list event_closers
    cdef list time_closers
    cdef dict local_periods
    cdef list heap
    cdef int64_t entries
    cdef dict due
    cdef list found
    cdef wide quiet_since
    cdef dict closer_of
    cdef Py_ssize_t row       # of the batch, at an event

    cdef int event_step(self) except -1
    cdef int deadline_step(self, wide time) except -1
    cdef pop_due(self, time)
    cdef list due_instances(self, Stream stream, Clause clause)
    cdef push_due(self, pacing, Instance instance, k)
    cdef int spawn(self, Task task) except -1
    cdef Instance bound_instance(self, Stream stream, Clause clause)
    cdef int evaluate(self, Task task) except -1
    cdef int extend(self, Task task, Instance instance) except -1
    cdef int tell(self, Stream stream, Instance instance) except -1
    cdef int close_all(self, list closers) except -1
    cdef int flush(self) except -1
    cdef int set_beat(self, int number, wide k) except -1
