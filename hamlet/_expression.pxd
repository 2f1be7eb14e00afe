from libc.stdint cimport int32_t, int64_t, uint8_t


cdef struct Column:
    const int64_t* data   # 64-bit integers, or the bits of doubles
    const uint8_t* valid  # 1 where there is a value; a null pointer where no row is NULL


cdef struct Code:
    const int32_t* operations  # operations[0:size], a postfix program over a stack of blocks
    const int32_t* arguments   # column, or index into constants
    const int64_t* constants   # integers, or the bits of doubles
    int size
    int depth                  # the most blocks on the stack at once, <= MAX_DEPTH


cdef class Program:
    cdef Code code
    cdef object _operations, _arguments, _constants
    cdef readonly tuple vector_columns
    cdef readonly tuple scalar_columns
    cdef readonly tuple texts


cdef int evaluate_value(
    const Code* code, const Column* vector, Py_ssize_t row, const int64_t* ranks, int64_t* value, uint8_t* there,
) noexcept nogil
cdef int evaluate(
    const Code* code, const Column* vector, Py_ssize_t start, Py_ssize_t stop,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks, uint8_t* result, Py_ssize_t* where,
) noexcept nogil
