from libc.stdint cimport uint64_t

from hamlet.kernel.operators.matching.passes cimport Step, Tally
from hamlet.kernel.operators.matching.tables cimport Core, Log

cdef enum:
    TOO_LONG = -1        # numbers pass the width that they have been given


cdef Py_ssize_t compared_words(const Log* log, const Tally* y, Py_ssize_t entries, Py_ssize_t steps) noexcept nogil
cdef int follow_compared(
    Core* k, const Tally* y, const Log* log, const uint64_t* record, Py_ssize_t entries, const Step* step,
    Py_ssize_t steps, int widest, uint64_t* room
) noexcept nogil
