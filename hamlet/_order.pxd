"""Rows in the order of small numbers."""

from libc.stdint cimport int64_t


cdef Py_ssize_t order_rows(
    const int64_t* number, Py_ssize_t n, int64_t limit, int64_t part, int64_t parts, int64_t* rows
) noexcept nogil
