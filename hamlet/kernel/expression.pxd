from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "expression_machine.h":
    ctypedef struct Column "hamlet_column":
        const int64_t* data
        const uint8_t* valid

    ctypedef struct Code "hamlet_code":
        const int32_t* operations
        const int32_t* arguments
        const int64_t* constants
        int size
        int depth

    ctypedef struct Register "hamlet_register":
        const int64_t* value  # masks, where it is a truth value
        int one               # 1: one value for the whole block

    enum:
        MACHINE_DEPTH
        MACHINE_BLOCK


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
cdef int evaluate_block(
    const Code* code, const Column* vector, Py_ssize_t start, Py_ssize_t rows,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks, Register* r, Py_ssize_t* where,
) noexcept nogil
