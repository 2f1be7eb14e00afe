"""Matches, and what may be reached from a row and a step, for other ways of matching."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef enum:  # what a step does, as `compile` numbers it
    TAKE = 0
    SPLIT = 1
    AT_START = 2
    AT_END = 3
    ACCEPT = 4
    COUNTED = 5


cdef enum:  # what follows a match
    PAST = 0
    NEXT = 1
    TO_FIRST = 2
    TO_LAST = 3


cdef inline int64_t skipped(int skip, const uint8_t[::1] member, const int32_t[::1] variables, const int32_t* steps,
                            int64_t length) noexcept nogil:
    """How many rows behind the first of a match the next start is; 0 or -1 where nothing can be skipped to.

    `steps` took the rows of the match; `member` says by variable whether it is skipped to.
    """
    cdef int64_t row, target = -1
    if length == 0 or skip == NEXT:
        return 1
    if skip == PAST:
        return length
    for row in range(length):
        if member[variables[steps[row]]]:
            target = row
            if skip == TO_FIRST:
                break
    return target


cdef enum:  # in a mask: rows to come say whether a row meets the condition, so the lowest bit is set, and another
    MAYBE = 3


cdef struct Counter:         # a step that takes many rows; by row of the partition:
    int32_t step
    int64_t low, high
    int64_t room
    int64_t* run            # how many rows from there on its variable takes
    int64_t* behind         # the nearest row from there on before which what follows can reach the end
    int64_t* before         # the farthest such row up to there
    int64_t* queue          # bounded: rows of a window, the nearest ends first
    int64_t head, tail


cdef struct Moved:           # steps that take a row and lie equally far from the step that follows them
    int32_t by
    uint64_t steps


cdef struct Follow:          # a step that takes none, and those that it leads to
    int32_t kind
    uint64_t step, leads_to


cdef class Matches:
    cdef int64_t* _rows      # start, length, number, partition of each match
    cdef Py_ssize_t _count, _room
    cdef int32_t* _steps     # of each row of each match
    cdef Py_ssize_t _labels, _label_room
    cdef public object error

    cdef int reserve(self, Py_ssize_t labels) except -1 nogil
    cdef void close(self, int64_t start, int64_t length, int64_t number, int64_t partition) noexcept nogil


cdef class Table:
    cdef const int32_t[::1] kinds, first, second, variables
    cdef const uint8_t** masks
    cdef list _kept
    cdef Py_ssize_t steps, block, room
    cdef bint bounded, open_end, begins
    cdef int64_t low, high, loaded      # rows of the partition, and the first row of the block in memory
    cdef int64_t end                    # rows before it are there to be read, if not yet to be taken
    cdef int64_t* near                  # bounded: nearest end from (row, step), else unused
    cdef uint8_t* alive
    cdef int64_t* near_marks            # of the first row of each block
    cdef uint8_t* alive_marks
    cdef Py_ssize_t mark_room
    cdef bint packed                    # the steps of a row are bits of one word
    cdef uint64_t* words
    cdef uint64_t* word_marks
    cdef Moved* moved
    cdef Follow* follows
    cdef uint64_t* takes                # by variable: the steps that it takes rows for
    cdef uint64_t ends, takers
    cdef Py_ssize_t moves, follow_count, variable_count
    cdef const int64_t[:, ::1] bounds
    cdef Py_ssize_t counters
    cdef Counter* counter

    cdef int _pack(self, list masks) except -1
    cdef uint64_t word(self, int64_t row, uint64_t later) noexcept nogil
    cdef int64_t _run(self, Counter* each, int64_t row) noexcept nogil
    cdef bint _goes_on(self, Counter* each, int64_t row) noexcept nogil
    cdef int count_room(self, int64_t rows) except -1
    cdef void count_alive(self, Counter* each, int64_t row) noexcept nogil
    cdef void count_near(self, Counter* each, int64_t row) noexcept nogil
    cdef void count_done(self) noexcept nogil
    cdef int64_t counted(self, int32_t step, int64_t row, int64_t most) noexcept nogil

    cdef int prepare(self, int64_t low, int64_t high) except -1 nogil
    cdef void load(self, int64_t number) noexcept nogil
    cdef void compute_alive(self, int64_t row, int64_t start) noexcept nogil
    cdef void compute_near(self, int64_t row, int64_t start) noexcept nogil
    cdef bint can(self, int64_t row, int32_t step, int64_t most) noexcept nogil
    cdef bint waits(self, int64_t row, int32_t step) noexcept nogil
