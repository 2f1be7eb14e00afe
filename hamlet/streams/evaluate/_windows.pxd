from libc.stdint cimport int64_t

from hamlet.streams.evaluate._aggregates cimport Pane
from hamlet.streams.evaluate._cells cimport Cell, wide
from hamlet.streams.evaluate._ordered cimport Ordered
from hamlet.streams.evaluate._store cimport Instance, Span, Store, Stream, Watcher
from hamlet.streams.evaluate._words cimport Words

cdef class Window:
    cdef Pane* panes
    cdef int64_t head
    cdef int64_t size
    cdef int64_t room
    cdef Cell* values         # of all panes, oldest first (percentiles)
    cdef int64_t first_value
    cdef int64_t stored
    cdef int64_t value_room
    cdef Ordered ordered      # the same in order, once they are many; or None
    cdef int64_t ordered_bytes
    cdef object things        # deque of objects, one a pane (last of objects)
    cdef wide began           # with the spawn of its reader, or with the run
    cdef WindowTable table

    cdef int add(self, Cell value, object thing) except -1
    cdef Pane* newest(self, object thing) except NULL
    cdef int add_span(self, Span* span, Words words) except -1
    cdef int add_counted(self, Span* span, Words words) except -1
    cdef int grow(self) except -1
    cdef int keep(self, Cell value) except -1
    cdef int forget(self, int64_t panes) except -1
    cdef bint complete(self)
    cdef int drop(self, wide until) except -1
    cdef Ordered in_order(self)
    cdef int read(self, Cell* out) except -1
    cdef object read_object(self)

cdef class WindowTable(Watcher):
    cdef Store store
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
    cdef bint paired               # an instance of the reader reads the instance of the target with its own key only
    cdef int slot
    cdef Ordered scratch           # where values of a window that has few are put in order
    cdef Window one
    cdef dict by_target

    cdef Window fresh_window(self, wide began)
    cdef int extend_own(self, Instance reader, Instance target, Cell value, object thing) except -1
    cdef Instance reader_of(self, Instance target)
    cdef Window find(self, Instance reader, object key)
    cdef wide bound_of(self, Window window, wide time)
