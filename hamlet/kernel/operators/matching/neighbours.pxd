from libc.stdint cimport uint64_t

from hamlet.kernel.expression cimport Column
from hamlet.kernel.operators.matching.tables cimport Core, Gate, Log, Table


cdef enum Fit:
    NOT
    FITS
    FAILED

cdef Fit fits_pair(
    Core* k, const Table* t, const Gate* gate, const uint64_t* record, Py_ssize_t earlier, Py_ssize_t later
) noexcept nogil
cdef void point_at_all(const Log* log, const uint64_t* entry, Column* to) noexcept nogil
cdef int check_keys(Core* k, const Log* log, const uint64_t* entry, Py_ssize_t row) noexcept nogil
cdef int lay_gates(Core* k, const Table* t, const uint64_t* record, Py_ssize_t entries) noexcept nogil
cdef int look_forwards_through(
    Core* k, const Table* t, int word, const uint64_t* record, Py_ssize_t entries, uint64_t* reached, uint64_t* touched
) noexcept nogil
cdef int look_backwards_through(
    Core* k, const Table* t, int word, const uint64_t* record, Py_ssize_t entries, uint64_t wanted
) noexcept nogil
