from libc.stdint cimport int64_t, uint8_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition, Table

cdef struct Writer:
    uint64_t* word
    Py_ssize_t count
    Py_ssize_t capacity

cdef struct Reader:
    const uint8_t* byte
    Py_ssize_t left      # words; negative once something did not fit
    int64_t most         # events so far
    const int64_t* limits  # per event column how many values it can have, negative for any

cdef int write_partition(Writer* to, const Table* t, const Partition* p, int64_t slot) noexcept nogil
cdef Partition* read_partition(Core* k, Reader* source, int64_t* slot) noexcept nogil
