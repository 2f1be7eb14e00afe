"""Runs straight from the stream: what bursts consist of, without events being put in the order of their keys.

A batch in time order is read once, with one open run per key, whose count and sums go on while events of one class
come. Where runs are long, this costs less than to put the events in order. It is given up, before anything has
been done, where they are short, where two events of a key have one time (they are one step, and no burst), and where a
sum might pass 64 bits; `segmenter` then takes the batch event by event.

Source: HAMLET (SIGMOD'21) Def. 3.5.
"""

from libc.stdint cimport INT8_MIN, INT32_MIN, INT64_MIN, int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from hamlet.kernel.radix_sort cimport order_rows

cdef extern from "run_length.h" nogil:
    int key_run_take(Job* job, long begin, long end)
    int key_run_flush(Job* job, long keys)

cdef extern from "cpu_targets.h" nogil:
    void* allocate "hamlet_allocate"(size_t bytes)

cdef enum:
    LOOK = 4096              # events between two looks whether it pays
    SHORTEST = 4             # events of a run, on average, from which it does
    KEPT = 1 << 18           # rows of a batch whose memory is kept for later ones

cdef list spare = []         # memory that nobody uses


cdef class KeyRuns:
    """The runs of a batch; used again and again, for pages cost time."""

    def __dealloc__(self):
        free(self.job.open)
        free(self.job.last)
        free(self.job.kind)
        free(self.sum)
        free(self.job.closed)
        free(self.key)
        free(self.place)

    cdef void begin(self, Py_ssize_t keys) noexcept nogil:
        """Forget all runs; numbers of keys are below `keys`."""
        cdef Py_ssize_t key
        self.keys = self.job.keys = keys
        self.job.tables = 1 if self.job.apart or keys > KEY_RUN_KEYS else KEY_RUN_TABLES
        self.job.count = self.job.bits = self.job.tied = 0
        self.job.before = INT64_MIN
        for key in range(keys):
            self.job.open[key].events = 0
            self.job.open[key].kind = INT32_MIN
            self.job.last[key] = INT64_MIN
            self.job.kind[key] = INT32_MIN
            self.sum[1 + key] = 0
        memset(self.job.byte_kind, INT8_MIN, sizeof(self.job.byte_kind))
        if self.job.tables > 1:
            memset(self.sum, 0, (1 + KEY_RUN_TABLES * KEY_RUN_KEYS) * sizeof(int64_t))

    cdef bint take(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
        """Take some numbers, behind which windows may open or close; False where it has to be given up."""
        cdef Py_ssize_t stop
        while begin < end:
            stop = min(begin + LOOK, end)
            self.job.room = min(self.room, stop // (SHORTEST * self.job.parts) + self.keys + 1)
            if not key_run_take(&self.job, begin, stop):
                return False
            begin = stop
        return key_run_flush(&self.job, self.keys)

    cdef bint arrange(self) noexcept nogil:
        """Fill `place`; False where memory is short."""
        cdef Py_ssize_t i
        for i in range(self.job.count):
            self.key[i] = self.job.closed[i].key
        return order_rows(self.key, self.job.count, self.keys, self.place) >= 0


cdef KeyRuns key_runs_for(Py_ssize_t rows, Py_ssize_t keys):
    """Memory for the runs of a batch of so many rows."""
    cdef KeyRuns found = spare.pop() if spare else KeyRuns()
    cdef Py_ssize_t room = rows // SHORTEST + keys + 1
    if room > found.room:
        free(found.job.closed)
        free(found.key)
        free(found.place)
        found.job.closed = <KeyRun*> allocate(room * sizeof(KeyRun))
        found.key = <int64_t*> malloc(room * sizeof(int64_t))
        found.place = <int64_t*> malloc(room * sizeof(int64_t))
        found.room = room if found.job.closed != NULL and found.key != NULL and found.place != NULL else 0
        if found.room == 0:
            raise MemoryError
    if keys > found.key_room:
        free(found.job.open)
        free(found.job.last)
        free(found.job.kind)
        free(found.sum)
        found.key_room = 0
        found.job.open = <KeyRun*> malloc(keys * sizeof(KeyRun))
        found.job.last = <int64_t*> malloc(keys * sizeof(int64_t))
        found.job.kind = <int32_t*> malloc(keys * sizeof(int32_t))
        found.sum = <int64_t*> malloc((1 + max(keys, KEY_RUN_TABLES * KEY_RUN_KEYS)) * sizeof(int64_t))
        if found.job.open == NULL or found.job.last == NULL or found.job.kind == NULL or found.sum == NULL:
            raise MemoryError
        found.key_room = keys
    return found


cdef int give_back_key_runs(KeyRuns key_runs) except -1:
    """Let later batches use the memory."""
    if key_runs.room <= KEPT:
        spare.append(key_runs)
    return 0
