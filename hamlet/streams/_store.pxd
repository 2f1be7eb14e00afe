from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    typedef __int128 hamlet_wide;
    """
    ctypedef long long wide "hamlet_wide"  # 128 bits; never converted to Python but by wide_object

ctypedef union Cell:
    int64_t i
    uint64_t u
    double f

cdef enum:
    BOOL = 0
    INT = 1
    UINT = 2
    FLOAT = 3
    OBJECT = 4

cdef enum:
    COUNT = 0
    SUM = 1
    AVG = 2
    MIN = 3
    MAX = 4
    INTEGRAL = 5
    LAST = 6
    VAR = 7
    SD = 8
    COV = 9
    EXISTS = 10
    FORALL = 11
    PCTL = 12

cdef struct Pane:
    wide bound     # the latest time that this pane may hold, ns from the start
    wide total     # sum of integers; of Booleans how many are true
    wide first_at  # time of the first value (integral)
    wide last_at
    int64_t n      # values
    double a       # sum of floats; mean (var, sd, cov: of x); volume (integral)
    double b       # second moment (var, sd); mean of y (cov); first value (integral)
    double c       # co-moment (cov); last value (integral)
    Cell cell      # min, max, last

cdef object wide_object(wide value)
cdef wide object_wide(object value) except? -1
cdef Cell unboxed(object value, int family) except *
cdef object boxed(Cell value, int family)

cdef class Instance:
    cdef readonly object key  # the parameter's value, or a tuple of several; None without parameters
    cdef Cell last            # the newest value, unless an object
    cdef object value         # the newest value where it is an object
    cdef Cell* ring           # `depth` newest values, where more than one is kept
    cdef list past            # the same of objects
    cdef object moments       # deque of (time, value) for offsets in real time, or None
    cdef int64_t count        # values so far
    cdef int64_t fresh        # the step of the newest value
    cdef int64_t born         # the step of the spawn
    cdef wide spawned         # its time
    cdef list windows         # own windows by slot; of windows per target too, dicts
    cdef bint alive
    cdef bint waiting         # stands in the list of its stream's close clause

cdef class Stream:
    cdef readonly int number
    cdef readonly str name
    cdef readonly int family
    cdef readonly bint keyed     # has parameters
    cdef readonly bint spawned   # has a spawn clause
    cdef int64_t depth           # values kept
    cdef wide keep               # ns for which values are kept for offsets in real time; -1: none
    cdef Instance one            # the only instance, where there are no parameters and it lives
    cdef dict table              # instances by key
    cdef object recent_key       # the key that was looked up last
    cdef Instance recent         # its instance
    cdef list touched            # instances extended in step `touched_at`
    cdef int64_t touched_at
    cdef bint track              # whether `touched` is kept
    cdef readonly list watched   # WindowTables over this stream
    cdef readonly list own       # WindowTables that instances of this stream have for themselves
    cdef readonly list tallies   # Tallies over this stream
    cdef Store store

    cdef Instance find(self, object key)
    cdef Instance create(self, object key)
    cdef int remove(self, Instance instance) except -1
    cdef int push(self, Instance instance, Cell value, object thing) except -1

cdef class Store:
    cdef public list streams
    cdef public list tables
    cdef public list tallies
    cdef int64_t step
    cdef wide now             # ns from the start
    cdef readonly int64_t bytes  # that instances and windows hold, an estimate
    cdef bint changed         # whether this step had an effect

cdef class Window:
    cdef Pane* panes
    cdef int64_t head
    cdef int64_t size
    cdef int64_t room
    cdef Cell* values         # of all panes, oldest first (percentiles)
    cdef int64_t first_value
    cdef int64_t stored
    cdef int64_t value_room
    cdef object things        # deque of objects, one a pane (last of objects)
    cdef wide began           # with the spawn of its reader, or with the run
    cdef WindowTable table

    cdef int add(self, Cell value, object thing) except -1
    cdef int grow(self) except -1
    cdef int keep(self, Cell value) except -1
    cdef int forget(self, int64_t panes) except -1
    cdef bint complete(self)
    cdef int drop(self, wide until) except -1
    cdef int read(self, Cell* out) except -1
    cdef object read_object(self)

cdef class WindowTable:
    cdef readonly int number
    cdef Store store
    cdef Stream target
    cdef Stream reader
    cdef readonly int function
    cdef readonly int family       # of the values
    cdef readonly int result       # of what is read
    cdef int percentile
    cdef wide duration             # ns; 0: counts values
    cdef int64_t count
    cdef bint exactly
    cdef wide period_over          # seconds as a fraction; 0: not known
    cdef wide period_under
    cdef bint local                # deadlines count from the spawn of the reader
    cdef readonly bint per_reader
    cdef readonly bint per_target
    cdef int slot
    cdef Window one
    cdef dict by_target
    cdef object leaving            # deque of (time, key): windows over closed instances

    cdef Window fresh_window(self, wide began)
    cdef int renew(self, Instance target) except -1
    cdef int extend(self, Instance target, Cell value, object thing) except -1
    cdef int extend_own(self, Instance reader, Instance target, Cell value, object thing) except -1
    cdef int begin_reader(self, Instance reader) except -1
    cdef int begin_target(self, Instance target) except -1
    cdef int end_target(self, Instance target) except -1
    cdef Window find(self, Instance reader, object key)
    cdef wide bound_of(self, Window window, wide time)

cdef class Tally:
    cdef readonly int number
    cdef Store store
    cdef Stream target
    cdef bint only_fresh
    cdef int function
    cdef readonly int result
    cdef int percentile
    cdef bint running             # kept up to date by every value
    cdef wide total
    cdef int64_t n

    cdef int change(self, Instance instance, int sign) except -1
    cdef int read(self, Cell* out) except -1

cdef int accept(Pane* pane, int function, int family, Cell value, object thing, wide now) except -1
cdef int merge(Pane* into, Pane* other, int function, int family) except -1
cdef int outcome(Pane* pane, int function, int family, Cell* out) except -1
cdef int percentile_of(Cell* values, int64_t n, int percentile, int family, bint between, Cell* out) except -1
