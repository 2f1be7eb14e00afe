from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Rows, Table


cdef enum:
    DROPPED = -1         # trends of this mark are in no row
    NO_MEMORY = -2
    TOO_MANY = -3        # the count of an event's variable passes the largest number of groups
    MOST_WORDS = 128     # of a mark
    MOST_GROUPS = 100000  # of a count
    TAKEN = 1            # there is an event
    VALUED = 2           # and it has a value

cdef int64_t next_mark(
    Core* k, const Table* t, Partition* p, int64_t mark, int variable, Py_ssize_t row
) noexcept nogil
cdef void begin_marks(Core* k) noexcept nogil
cdef int tidy_marks(Core* k, const Table* t, Partition* p) noexcept nogil
cdef int show_marks(Core* k, const Table* t, Partition* p) noexcept nogil
cdef int append_mark(Core* k, const Table* t, const Partition* p, Rows* r, int64_t mark) noexcept nogil
cdef int add_mark(Core* k, const Table* t, Partition* p, const uint64_t* word) noexcept nogil
cdef void widen_marks(const Table* t, Partition* p, int place) noexcept nogil
cdef void clear_marks(Partition* p) noexcept nogil
cdef void free_marks(Partition* p) noexcept nogil
