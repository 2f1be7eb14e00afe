"""Runs: events of one class and key that no other event of the key comes between."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

cdef extern from "run_length.h" nogil:
    enum:
        KEY_RUN_COLUMNS
        KEY_RUN_FEW_BITS
        KEY_RUN_KEYS
        KEY_RUN_TABLES
    ctypedef struct Values "key_run_values":
        int64_t total
        int64_t least
        int64_t greatest
    ctypedef struct KeyRun "key_run":
        int32_t key
        int32_t kind
        int32_t row
        int32_t events
        int64_t time
        Values value[4]
    ctypedef struct Job "key_run_job":
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
        KeyRun* open
        int64_t* last
        int32_t* kind
        int8_t byte_kind[64]
        int64_t* sum
        int tables
        KeyRun* closed
        long count
        long room
        int64_t before
        int64_t bits
        int tied
        long keys
    bint reads_bytes "key_run_reads_bytes"()


cdef class KeyRuns:
    cdef Job job
    cdef Py_ssize_t keys
    cdef Py_ssize_t room     # of `job.closed`
    cdef Py_ssize_t key_room  # of what is by key
    cdef int64_t* sum        # for `job.sum`, which begins behind its first
    cdef int64_t* key        # [room] of each run, to sort them by
    cdef int64_t* place      # [room] of runs by key, as they come

    cdef void begin(self, Py_ssize_t keys) noexcept nogil
    cdef bint take(self, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
    cdef bint arrange(self) noexcept nogil


cdef KeyRuns key_runs_for(Py_ssize_t rows, Py_ssize_t keys)
cdef int give_back_key_runs(KeyRuns key_runs) except -1
