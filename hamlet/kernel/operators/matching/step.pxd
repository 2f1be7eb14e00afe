from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core

cdef int take_step(
    Core* k, int query, int64_t key, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t n
) noexcept nogil
cdef int take_apart(
    Core* k, int query, int64_t key, int64_t time, const uint64_t* events, const int* classes, Py_ssize_t rows,
    Py_ssize_t n, const int64_t* orders
) noexcept nogil


cdef inline int64_t order_of(const int64_t* orders, uint64_t event) noexcept nogil:
    return orders[event & <uint64_t> 0xFFFFFFFF]
