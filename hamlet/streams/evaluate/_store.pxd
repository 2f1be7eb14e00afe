from libc.stdint cimport int64_t, uint64_t

from hamlet.streams.evaluate._cells cimport Cell, wide
from hamlet.streams.evaluate._ordered cimport Ordered
from hamlet.streams.evaluate._words cimport CellMap, Words

cdef class Instance:
    cdef readonly object key  # the parameter's value, or a tuple of several; None without parameters
    cdef Cell last            # the newest value: a cell, or the code of a text
    cdef int64_t count        # values so far
    cdef int64_t fresh        # the step of the newest value
    cdef object value         # the newest value where it is an object
    cdef bint alive
    cdef bint waiting         # stands in the list of its stream's close clause
    cdef list windows         # own windows by slot; of windows per target too, dicts
    cdef Cell* ring           # `depth` newest values, where more than one is kept
    cdef list past            # the same of objects
    cdef object moments       # deque of (time, value) for offsets in real time, or None
    cdef uint64_t cell        # the key as a cell, where the stream has a map
    cdef int64_t born         # the step of the spawn
    cdef wide spawned         # its time

cdef struct Span:             # rows of a batch of which nothing is read before all of them are taken
    const uint64_t* cells
    const unsigned char* mask  # which rows have a value; NULL: all
    Py_ssize_t low
    Py_ssize_t high
    const int64_t* times      # ticks
    wide origin               # ticks of the start
    int64_t tick              # ns
    int64_t step              # of row `low`

cdef class Watcher:
    cdef readonly int number
    cdef Stream target
    cdef readonly bint per_target
    cdef object leaving            # deque of (time, key): windows over closed instances

    cdef int renew(self, Instance target) except -1
    cdef int extend(self, Instance target, Cell value, object thing) except -1
    cdef int extend_span(self, Instance target, Span* span) except -1
    cdef int begin_reader(self, Instance reader) except -1
    cdef int begin_target(self, Instance target) except -1
    cdef int end_target(self, Instance target) except -1

cdef class Stream:
    cdef readonly int number
    cdef readonly str name
    cdef readonly int family
    cdef readonly bint keyed     # has parameters
    cdef readonly bint spawned   # has a spawn clause
    cdef int64_t depth           # values kept
    cdef int64_t instance_bytes  # what an instance takes, an estimate
    cdef wide keep               # ns for which values are kept for offsets in real time; -1: none
    cdef Instance one            # the only instance, where there are no parameters and it lives
    cdef dict table              # instances by key
    cdef CellMap map             # the same by cell, where the key is one; or None
    cdef readonly int key_family          # of the only parameter, where there is a map
    cdef Words words             # what texts have codes in, where values are codes; or None
    cdef uint64_t recent_cell    # the key that was looked up in the map last
    cdef Instance recent_by_cell
    cdef object recent_key       # the key that was looked up last
    cdef Instance recent         # its instance
    cdef list touched            # instances extended in step `touched_at`
    cdef int64_t touched_at
    cdef bint track              # whether `touched` is kept
    cdef readonly list watched   # WindowTables over this stream
    cdef readonly list own       # WindowTables that instances of this stream have for themselves
    cdef readonly list tallies   # Tallies over this stream
    cdef list closers            # Closers whose condition reads this stream's newest values
    cdef Store store

    cdef Instance find(self, object key)
    cdef Instance find_cell(self, uint64_t cell)
    cdef object key_of_cell(self, uint64_t cell)
    cdef object newest(self, Instance instance)
    cdef object kept_at(self, Instance instance, int64_t place)
    cdef Instance create(self, object key)
    cdef uint64_t cell_of_key(self, object key) except? 0
    cdef int remove(self, Instance instance) except -1
    cdef int push(self, Instance instance, Cell value, object thing) except -1
    cdef int push_span(self, Span* span) except -1

cdef class Store:
    cdef public list streams
    cdef public list tables
    cdef public list tallies
    cdef readonly Words words    # codes of the texts of inputs
    cdef int64_t step
    cdef wide now             # ns from the start
    cdef readonly int64_t bytes  # that instances and windows hold, an estimate
    cdef bint changed         # whether this step had an effect

cdef class Tally:
    cdef readonly int number
    cdef Store store
    cdef Stream target
    cdef bint only_fresh
    cdef int function
    cdef readonly int result
    cdef int percentile
    cdef bint running             # kept up to date by every value
    cdef Ordered ordered          # the newest values in order, where their order counts; or None
    cdef int64_t ordered_bytes    # of it, as accounted
    cdef wide total
    cdef int64_t n

    cdef int change(self, Instance instance, int sign) except -1
    cdef list looked_at(self)
    cdef int gather(self, list instances) except -1
    cdef int read(self, Cell* out) except -1
