from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "_machine.h":
    ctypedef struct Column "hamlet_column":
        const int64_t* data
        const uint8_t* valid

    ctypedef struct Code "hamlet_code":
        const int32_t* operations
        const int32_t* arguments
        const int64_t* constants
        int size
        int depth


cdef class Program:
    cdef Code code
    cdef object _operations, _arguments, _constants
    cdef readonly tuple vector_columns
    cdef readonly tuple scalar_columns
    cdef readonly tuple texts


cdef int evaluate_value(
    const Code* code, const Column* vector, Py_ssize_t row, const int64_t* ranks, bint floating,
    int64_t* value, uint8_t* there,
) noexcept nogil
cdef int evaluate(
    const Code* code, const Column* vector, Py_ssize_t start, Py_ssize_t stop,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks, uint8_t* result, Py_ssize_t* where,
) noexcept nogil
