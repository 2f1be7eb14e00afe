from libc.stdint cimport uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Partition


cdef int claim(Core* k, Partition* p, Py_ssize_t bytes) noexcept nogil
cdef int reserve_words(Core* k, uint64_t** words, Py_ssize_t* capacity, Py_ssize_t needed) noexcept nogil
