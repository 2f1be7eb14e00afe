from libc.stdint cimport int32_t, int64_t, uint64_t

from hamlet.kernel.expression cimport Column
from hamlet.memory.budget cimport Account, Budget


cdef class Interface:
    cdef Budget budget
    cdef list held       # Python objects that own memory the tables point into

    cdef void* hold(self, object array)


cdef class EventColumns:
    cdef Column* column  # values, and whether there is one, of each column of a batch
    cdef list held


cdef void check_failure(
    int failure, const Account* account, int query, int predicate, int place, Py_ssize_t row
) except *
cdef tuple rows_of(int64_t* key, int64_t* window, int32_t* width, uint64_t* word, Py_ssize_t count, Py_ssize_t words)
