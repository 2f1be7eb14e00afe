"""Stretches: events of one class and key that no other event of the key comes between."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

cdef extern from "run_length.h" nogil:
    enum:
        STRETCH_COLUMNS
        STRETCH_FEW_BITS
        STRETCH_KEYS
        STRETCH_TABLES
    ctypedef struct Values "stretch_values":
        int64_t total
        int64_t least
        int64_t greatest
    ctypedef struct Stretch "stretch":
        int32_t key
        int32_t kind
        int32_t row
        int32_t events
        int64_t time
        Values value[4]
    ctypedef struct Job "stretch_job":
        const int32_t* number
        const int32_t* rows
        const int32_t* classes
        const int8_t* byte_number
        const int8_t* byte_classes
        const int64_t* times
        const uint8_t* plain
        int32_t part
        int32_t parts
        int columns
        int apart
        int distinct
        const int64_t* data[4]
        int32_t longest
        Stretch* open
        int64_t* last
        int32_t* kind
        int8_t byte_kind[64]
        int64_t* sum
        int tables
        Stretch* closed
        long count
        long room
        int64_t before
        int64_t bits
        int tied
        long keys
    bint reads_bytes "stretch_reads_bytes"()


cdef class Stretches:
    cdef Job job
    cdef Py_ssize_t keys
    cdef Py_ssize_t room     # of `job.closed`
    cdef Py_ssize_t key_room  # of what is by key
    cdef int64_t* sum        # for `job.sum`, which begins behind its first
    cdef int64_t* key        # [room] of each stretch, to sort them by
    cdef int64_t* place      # [room] of stretches by key, as they come

    cdef void begin(self, Py_ssize_t keys) noexcept nogil
    cdef bint take(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef bint arrange(self) noexcept nogil


cdef Stretches stretches_for(Py_ssize_t rows, Py_ssize_t keys)
cdef int give_back_stretches(Stretches stretches) except -1
