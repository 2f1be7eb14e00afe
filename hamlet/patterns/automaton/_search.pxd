"""The search where conditions read labels, for rows that come one by one."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from hamlet.patterns.automaton._walk cimport Table

cdef enum:  # how a start ended
    NO_MATCH = 0
    MATCH = 1
    WAITS = 2


cdef struct Column:
    const int64_t* whole
    const double* real
    const uint8_t* null


cdef struct Condition:
    int kind             # 0: the table's masks say all, 1: a program, 2: the host's
    Py_ssize_t length
    const int64_t* code
    const double* reals


cdef struct Entry:
    int64_t age          # of the start that made it
    uint64_t hashed
    int64_t at           # of its words, behind their number


cdef class Interned:
    cdef Entry* entries
    cdef int64_t* words
    cdef int64_t age, mask, count, used, room

    cdef void forget(self) noexcept
    cdef int64_t number(self, const int64_t* found, Py_ssize_t length, bint* known) except -1
    cdef int _widen(self) except -1


cdef class Search:
    cdef Table table
    cdef int32_t start_step
    cdef const uint8_t[:, ::1] members
    cdef const int64_t[:, ::1] slots, sums, keep
    cdef list programs
    cdef Column* columns
    cdef Condition* conditions
    cdef Interned known         # states that were left, and what is read of paths as numbers
    cdef int64_t* state         # of one state
    cdef Py_ssize_t sets, room, depth, stack_room, state_room
    cdef int64_t** places       # by set: offsets of the rows that carry one of its variables
    cdef int64_t** counts       # by set: how many before each offset
    cdef int64_t** whole        # by sum: running value at each offset
    cdef double** real
    cdef int64_t** filled       # by sum: values that are not NULL before each offset
    cdef int64_t** listed       # by set all of whose rows are read: the number of its rows before each offset
    cdef int64_t* path          # where all labels are read: the number of those before each offset
    cdef int32_t* steps
    cdef int32_t* labels
    cdef int32_t* stack_step
    cdef int64_t* stack_taken
    cdef bint all_labels
    cdef public dict truth      # answers of the host by key
    cdef public dict asked      # key -> (variable, start, labels, number, partition borders)
    cdef public int64_t work    # steps of all starts
    cdef public bint waits      # whether the last start waits for rows to come, not for answers
    cdef list _buffers
    # Of the start that is searched.
    cdef int64_t start_row, number, taken, most, spent
    cdef int32_t step
    cdef bint open_questions, any_seen
    cdef bint is_met            # whether the state has been met, and waits for rows
    cdef Py_ssize_t first_asked

    cdef void begin(self, int64_t row, int64_t most, int64_t number) noexcept
    cdef int go_on(self, int64_t partition, int64_t max_steps, bint guess) except -2
    cdef Py_ssize_t size(self) noexcept
    cdef int _take(self, list columns) except -1
    cdef void* _pointers(self, Py_ssize_t count) except NULL
    cdef void _free(self, void** found, Py_ssize_t count) noexcept
    cdef int _grow(self, Py_ssize_t room) except -1
    cdef int _push(self, int32_t step, int64_t taken) except -1
    cdef int _start(self, int64_t row, int64_t most, int64_t number, int64_t partition, int64_t max_steps,
                    bint guess) except -2
    cdef int _label(self, int32_t step, int64_t taken) except -1
    cdef int64_t _row(self, Py_ssize_t slot, int64_t taken) noexcept
    cdef bint _is_new(self, int32_t step, int64_t taken) except -1
    cdef int _state_of(self, Py_ssize_t room) except -1
    cdef int _judge(self, int32_t variable, int64_t taken, int64_t partition) except -1
    cdef int _run(self, Condition* condition, int64_t taken) except -1
