from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Member, Table, Taking

cdef enum:
    NOTHING = 0          # mark of trends without an event of the variable
    NO_VALUE = 1
    FIRST_VALUE = 2
    START_HEAD = 3       # words of what is noted of trends that begin, before their number: time, slot, mark

cdef struct Step:        # an event of the window, as trends of one query take it
    uint64_t slots       # that it is taken in
    uint64_t emptied
    uint64_t step
    uint64_t starts      # SPAN: the slots of the start in which trends may begin
    int64_t time
    Py_ssize_t entry     # of the log
    Py_ssize_t place     # of what is kept of it: a number for each of its states of the named variable
    int state            # that `slots` are of; -1 for several, or none
    int mark             # of its value
    int bits             # that numbers of trends grow by
    int counts           # 1 where trends that end with it count

cdef struct Tally:       # numbers of the trends of one query in one window
    const Member* member
    const Table* table
    const Taking* taking  # NULL where trends are not grouped
    uint64_t named       # the slots of the variable that trends are grouped by
    uint64_t starts      # SPAN: the slots of the start; else 0
    int marks
    int used             # marks that some trend may have by now
    int width            # limbs of a number
    int words            # of a number; of compared neighbours with sums those of a cell
    int depth            # numbers of a vector: one for each mark; 1 where trends are split
    Py_ssize_t stride    # words of a vector
    int rows             # how often every slot is there
    int splits           # 1 where trends are counted at the first, or last, event of the variable
    int keeps            # 1 while what is found of one side of it is kept, and trends do not go on with it
    int overwrites       # 1 where an event gives its mark to all trends; 0: to those without one
    Py_ssize_t meeting   # the place of the next number that is kept
    uint64_t* standing   # [rows][slots] vectors; where they are retraced [slots][rows]
    uint64_t* pending    # [rows][states] vectors that the step under way adds; or [states][rows]
    uint64_t* nothing    # a vector of zeros
    uint64_t* number
    uint64_t* total      # [marks]
    uint64_t* kept

cdef void follow(Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil
cdef Py_ssize_t read_step(
    Tally* y, const Step* step, Py_ssize_t steps, uint64_t* entered, uint64_t* emptied
) noexcept nogil
cdef void write_step(Tally* y, uint64_t entered, uint64_t emptied) noexcept nogil
cdef int retrace(Core* k, Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil
cdef void add_times(const Tally* y, uint64_t* target, const uint64_t* one, const uint64_t* other) noexcept nogil
cdef void add_marks(const Tally* y, uint64_t* target, const uint64_t* source, int marks) noexcept nogil
