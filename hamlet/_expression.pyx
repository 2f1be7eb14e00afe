"""The expression machine: predicates over blocks of rows, in SQL's three-valued logic.

One machine evaluates local predicates (the *vector* side is the rows of a batch) and adjacent ones (the vector side is
the stored earlier events, the *scalar* side is one row, the later event), so NULL, division and overflow mean the same
everywhere. Programs are typed at compile time (`hamlet.predicates` writes them); the machine trusts them.

Contract
--------
**Values** are 64 bits: integers, truth values 0 and 1, string numbers, or the bits of doubles; a byte beside each says
whether it is there. **NaN** never appears as a value: loads and results turn it into NULL (LANGUAGE §5). **Overflow**
of integer arithmetic on values that are there stops the machine, which returns the operation's place.
"""

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport fmod, isnan
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t
from libc.string cimport memset

cdef extern from *:
    bint add_overflow "__builtin_add_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint subtract_overflow "__builtin_sub_overflow"(int64_t, int64_t, int64_t*) noexcept nogil
    bint multiply_overflow "__builtin_mul_overflow"(int64_t, int64_t, int64_t*) noexcept nogil

cdef enum:
    BLOCK = 128
    MAX_DEPTH = 64

cdef enum Operation:
    LOAD_VECTOR_INT
    LOAD_VECTOR_DOUBLE
    LOAD_SCALAR_INT
    LOAD_SCALAR_DOUBLE
    CONSTANT
    NOTHING
    RANK
    TO_DOUBLE
    NEGATE_INT
    NEGATE_DOUBLE
    ADD_INT
    SUBTRACT_INT
    MULTIPLY_INT
    REMAINDER_INT
    ADD_DOUBLE
    SUBTRACT_DOUBLE
    MULTIPLY_DOUBLE
    REMAINDER_DOUBLE
    DIVIDE
    COMPARE_INT
    COMPARE_DOUBLE
    COMPARE_INT_DOUBLE
    BOTH
    EITHER
    IS_NULL
    IS_NOT_NULL

OPERATIONS = {
    "load_vector_int": LOAD_VECTOR_INT, "load_vector_double": LOAD_VECTOR_DOUBLE,
    "load_scalar_int": LOAD_SCALAR_INT, "load_scalar_double": LOAD_SCALAR_DOUBLE,
    "constant": CONSTANT, "nothing": NOTHING, "rank": RANK, "to_double": TO_DOUBLE,
    "negate_int": NEGATE_INT, "negate_double": NEGATE_DOUBLE,
    "add_int": ADD_INT, "subtract_int": SUBTRACT_INT, "multiply_int": MULTIPLY_INT, "remainder_int": REMAINDER_INT,
    "add_double": ADD_DOUBLE, "subtract_double": SUBTRACT_DOUBLE, "multiply_double": MULTIPLY_DOUBLE,
    "remainder_double": REMAINDER_DOUBLE, "divide": DIVIDE,
    "compare_int": COMPARE_INT, "compare_double": COMPARE_DOUBLE, "compare_int_double": COMPARE_INT_DOUBLE,
    "both": BOTH, "either": EITHER, "is_null": IS_NULL, "is_not_null": IS_NOT_NULL,
}
COMPARISONS = {"=": 0, "<>": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


class OverflowInExpression(Exception):
    """Integer arithmetic passed 64 bits: `text` is the expression, `row` the place of the vector side."""

    def __init__(self, text, row):
        super().__init__(f"{text} does not fit into 64 bits")
        self.text = text
        self.row = row


cdef class Program:
    """A typed postfix program.

    Parameters
    ----------
    steps : sequence of (str, int, str)
        Operation name, argument (a column's place in its side, a constant's place, a comparison code), and the text of
        the expression that the step computes, for messages.
    constants : sequence of int or float
    vector_columns, scalar_columns : tuple of str
        Names of the columns that the two sides load, in the order of the arguments.
    """

    def __init__(self, steps, constants, vector_columns, scalar_columns):
        self._operations = np.array([OPERATIONS[name] for name, _, _ in steps], dtype=np.int32)
        self._arguments = np.array([argument for _, argument, _ in steps], dtype=np.int32)
        self._constants = np.array(
            [np.float64(c).view(np.int64) if isinstance(c, float) else np.int64(c) for c in constants] or [0], np.int64
        )
        self.vector_columns = tuple(vector_columns)
        self.scalar_columns = tuple(scalar_columns)
        self.texts = tuple(text for _, _, text in steps)
        cdef int depth = 0, most = 0
        for name, _, _ in steps:
            if name.startswith("load") or name in ("constant", "nothing"):
                depth += 1
            elif name not in ("rank", "to_double", "negate_int", "negate_double", "is_null", "is_not_null"):
                depth -= 1
            most = max(most, depth)
        if depth != 1 or most > MAX_DEPTH:
            raise ValueError(f"a condition nests deeper than {MAX_DEPTH} levels")
        cdef const int32_t[::1] operations = self._operations
        cdef const int32_t[::1] arguments = self._arguments
        cdef const int64_t[::1] values = self._constants
        self.code.operations = &operations[0]
        self.code.arguments = &arguments[0]
        self.code.constants = &values[0]
        self.code.size = len(steps)
        self.code.depth = most

    def select(self, columns, Py_ssize_t rows, ranks):
        """Which of `rows` rows pass.

        Parameters
        ----------
        columns : sequence of (int64 or float64 array of shape (rows,), uint8 array of shape (rows,) or None)
            The vector side, in the order of `vector_columns`: values, and 1 where there is one.
        rows : int
        ranks : int64 array
            Rank of each string number among all strings seen so far.

        Returns
        -------
        uint8 array of shape (rows,)
            1 where the condition is true.

        Raises
        ------
        OverflowInExpression
        """
        result = np.zeros(rows, dtype=np.uint8)
        if rows == 0:
            return result
        cdef uint8_t[::1] out = result
        cdef const int64_t[::1] rank = ranks
        cdef Py_ssize_t where = 0
        cdef int failed
        cdef Column* vector = <Column*> PyMem_Malloc((len(columns) + 1) * sizeof(Column))
        if vector == NULL:
            raise MemoryError
        held = [bind(&vector[place], data, valid) for place, (data, valid) in enumerate(columns)]
        try:
            with nogil:
                failed = evaluate(&self.code, vector, 0, rows, vector, 0, &rank[0], &out[0], &where)
        finally:
            PyMem_Free(vector)
            del held
        if failed >= 0:
            raise OverflowInExpression(self.texts[failed], where)
        return result


cdef object bind(Column* column, object data, object valid):
    """Point a column at its arrays; the caller keeps the returned views alive."""
    cdef const int64_t[::1] values = data.view(np.int64)
    cdef const uint8_t[::1] there
    column.data = &values[0] if len(data) else NULL
    column.valid = NULL
    if valid is not None:
        there = valid
        column.valid = &there[0] if len(data) else NULL
        return values, there
    return values


cdef inline bint compare_int(int32_t how, int64_t a, int64_t b) noexcept nogil:
    if how == 0:
        return a == b
    if how == 1:
        return a != b
    if how == 2:
        return a < b
    if how == 3:
        return a <= b
    if how == 4:
        return a > b
    return a >= b


cdef inline bint compare_double(int32_t how, long double a, long double b) noexcept nogil:
    # long double holds every 64-bit integer where it has 64 mantissa bits, so an INT beside a DOUBLE compares exactly
    if how == 0:
        return a == b
    if how == 1:
        return a != b
    if how == 2:
        return a < b
    if how == 3:
        return a <= b
    if how == 4:
        return a > b
    return a >= b


cdef int evaluate(
    const Code* code, const Column* vector, Py_ssize_t start, Py_ssize_t stop,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks, uint8_t* result, Py_ssize_t* where,
) noexcept nogil:
    """Truth of the program for vector rows start..stop-1 beside scalar row `row`.

    ``result[i - start]`` is 1 where row i passes. Returns -1, or the place of the operation that overflowed, with
    ``where[0]`` the vector row.
    """
    cdef int64_t values[MAX_DEPTH][BLOCK]
    cdef uint8_t there[MAX_DEPTH][BLOCK]
    cdef Py_ssize_t base = start, i, n
    cdef int failed
    while base < stop:
        n = min(<Py_ssize_t> BLOCK, stop - base)
        failed = evaluate_block(code, vector, base, n, scalar, row, ranks, values, there, where)
        if failed >= 0:
            return failed
        for i in range(n):
            result[base - start + i] = there[0][i] & <uint8_t> (values[0][i] != 0)
        base += n
    return -1


cdef int evaluate_value(
    const Code* code, const Column* vector, Py_ssize_t row, const int64_t* ranks, int64_t* value, uint8_t* there,
) noexcept nogil:
    """The value of the program at one row, its bits in `value` and in `there` whether it is one.

    Returns -1, or the place of the operation that overflowed.
    """
    cdef int64_t values[MAX_DEPTH][BLOCK]
    cdef uint8_t valid[MAX_DEPTH][BLOCK]
    cdef Py_ssize_t where
    cdef int failed
    if code.size == 1 and code.operations[0] == LOAD_VECTOR_INT:  # a bare attribute, the common key
        value[0] = vector[code.arguments[0]].data[row]
        there[0] = vector[code.arguments[0]].valid == NULL or vector[code.arguments[0]].valid[row]
        return -1
    failed = evaluate_block(code, vector, row, 1, vector, row, ranks, values, valid, &where)
    value[0] = values[0][0]
    there[0] = valid[0][0]
    return failed


cdef int evaluate_block(
    const Code* code, const Column* vector, Py_ssize_t base, Py_ssize_t n,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks,
    int64_t (*values)[BLOCK], uint8_t (*there)[BLOCK], Py_ssize_t* where,
) noexcept nogil:
    cdef int place, top = -1
    cdef int32_t operation, argument
    cdef Py_ssize_t i
    cdef int64_t* a
    cdef int64_t* b
    cdef uint8_t* va
    cdef uint8_t* vb
    cdef double* x
    cdef double* y
    cdef const Column* column
    cdef bint left, right
    for place in range(code.size):
        operation = code.operations[place]
        argument = code.arguments[place]
        if operation <= NOTHING:
            top += 1
        elif operation >= ADD_INT and operation <= EITHER:
            top -= 1
        a = values[top]
        va = there[top]
        b = values[top + 1]
        vb = there[top + 1]
        x = <double*> a
        y = <double*> b
        if operation == LOAD_VECTOR_INT or operation == LOAD_VECTOR_DOUBLE:
            column = &vector[argument]
            for i in range(n):
                a[i] = column.data[base + i]
            for i in range(n):
                va[i] = 1 if column.valid == NULL else column.valid[base + i]
            if operation == LOAD_VECTOR_DOUBLE:
                for i in range(n):
                    va[i] &= not isnan(x[i])
        elif operation == LOAD_SCALAR_INT or operation == LOAD_SCALAR_DOUBLE:
            column = &scalar[argument]
            for i in range(n):
                a[i] = column.data[row]
            left = column.valid == NULL or column.valid[row]
            if operation == LOAD_SCALAR_DOUBLE and isnan(x[0]):
                left = False
            memset(va, left, n)
        elif operation == CONSTANT:
            for i in range(n):
                a[i] = code.constants[argument]
            memset(va, 1, n)
        elif operation == NOTHING:
            memset(a, 0, n * sizeof(int64_t))
            memset(va, 0, n)
        elif operation == RANK:
            for i in range(n):
                a[i] = ranks[a[i]] if va[i] else 0
        elif operation == TO_DOUBLE:
            for i in range(n):
                x[i] = <double> a[i]
        elif operation == NEGATE_INT:
            for i in range(n):
                if va[i]:
                    if a[i] == INT64_MIN:
                        where[0] = base + i
                        return place
                    a[i] = -a[i]
        elif operation == NEGATE_DOUBLE:
            for i in range(n):
                x[i] = -x[i]
        elif operation == ADD_INT or operation == SUBTRACT_INT or operation == MULTIPLY_INT:
            for i in range(n):
                va[i] &= vb[i]
                if operation == ADD_INT:
                    left = add_overflow(a[i], b[i], &a[i])
                elif operation == SUBTRACT_INT:
                    left = subtract_overflow(a[i], b[i], &a[i])
                else:
                    left = multiply_overflow(a[i], b[i], &a[i])
                if left and va[i]:
                    where[0] = base + i
                    return place
        elif operation == REMAINDER_INT:
            for i in range(n):
                va[i] &= vb[i] & <uint8_t> (b[i] != 0)
                if va[i]:
                    a[i] = 0 if b[i] == -1 else a[i] % b[i]
        elif operation == ADD_DOUBLE:
            for i in range(n):
                x[i] += y[i]
                va[i] &= vb[i] & <uint8_t> (not isnan(x[i]))
        elif operation == SUBTRACT_DOUBLE:
            for i in range(n):
                x[i] -= y[i]
                va[i] &= vb[i] & <uint8_t> (not isnan(x[i]))
        elif operation == MULTIPLY_DOUBLE:
            for i in range(n):
                x[i] *= y[i]
                va[i] &= vb[i] & <uint8_t> (not isnan(x[i]))
        elif operation == REMAINDER_DOUBLE:
            for i in range(n):
                va[i] &= vb[i] & <uint8_t> (y[i] != 0)
                x[i] = fmod(x[i], y[i]) if va[i] else 0
                va[i] &= not isnan(x[i])
        elif operation == DIVIDE:
            for i in range(n):
                va[i] &= vb[i] & <uint8_t> (y[i] != 0)
                x[i] = x[i] / y[i] if va[i] else 0
                va[i] &= not isnan(x[i])
        elif operation == COMPARE_INT:
            for i in range(n):
                a[i] = compare_int(argument, a[i], b[i])
                va[i] &= vb[i]
        elif operation == COMPARE_DOUBLE:
            for i in range(n):
                a[i] = compare_double(argument, x[i], y[i])
                va[i] &= vb[i]
        elif operation == COMPARE_INT_DOUBLE:
            for i in range(n):
                a[i] = compare_double(argument, a[i], y[i])
                va[i] &= vb[i]
        elif operation == BOTH:
            for i in range(n):
                left = va[i] and a[i] == 0
                right = vb[i] and b[i] == 0
                va[i] = left or right or (va[i] and vb[i])
                a[i] = not (left or right)
        elif operation == EITHER:
            for i in range(n):
                left = va[i] and a[i] != 0
                right = vb[i] and b[i] != 0
                va[i] = left or right or (va[i] and vb[i])
                a[i] = left or right
        elif operation == IS_NULL or operation == IS_NOT_NULL:
            for i in range(n):
                a[i] = va[i] == (operation == IS_NOT_NULL)
                va[i] = 1
    return -1
