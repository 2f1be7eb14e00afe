from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport Query
from hamlet.kernel.state.query_state cimport State

cdef int read_index(
    const Query* q, State* s, int number, const Column* columns, Py_ssize_t row, const int64_t* ranks,
    uint64_t* sum, int* place,
) noexcept nogil
cdef void forget_cohort(const Query* q, State* s, int cohort) noexcept nogil
