"""The expression machine: predicates over blocks of rows, with SQL's NULL.

One machine evaluates local predicates (the *vector* side is the rows of a batch) and adjacent ones (the vector side is
the stored earlier events, the *scalar* side is one row, the later event), so NULL, division and overflow mean the same
everywhere. Programs are typed at compile time (`hamlet.language.predicates` writes them); the machine trusts them.

Contract
--------
**Values** are 64 bits: integers, string numbers, or the bits of doubles. **NULL** is a cleared byte beside an integer
and NaN among doubles, so NaN is read as NULL. **Truth** is two-valued: no NOT is left in a condition, so
unknown may be taken for false. **Overflow** of integer arithmetic on values that are there stops the machine, which
returns the operation's place.
"""

import numpy as np

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "expression_machine.h" nogil:
    int LOAD_VECTOR_INT
    int LOAD_VECTOR_DOUBLE
    int LOAD_SCALAR_INT
    int LOAD_SCALAR_DOUBLE
    int CONSTANT_INT
    int CONSTANT_DOUBLE
    int NOTHING_INT
    int NOTHING_TRUTH
    int RANK
    int TO_DOUBLE
    int NEGATE_INT
    int NEGATE_DOUBLE
    int IS_NULL_INT
    int IS_NULL_DOUBLE
    int IS_NOT_NULL_INT
    int IS_NOT_NULL_DOUBLE
    int ADD_INT
    int SUBTRACT_INT
    int MULTIPLY_INT
    int REMAINDER_INT
    int ADD_DOUBLE
    int SUBTRACT_DOUBLE
    int MULTIPLY_DOUBLE
    int REMAINDER_DOUBLE
    int DIVIDE
    int COMPARE_INT
    int COMPARE_DOUBLE
    int COMPARE_INT_DOUBLE
    int BOTH
    int EITHER
    int ADD_SCALED
    int SUBTRACT_SCALED
    int COMPARE_SCALED
    int RATIO
    int MULTIPLY_TICKS
    int DIVIDE_TICKS
    int DIVIDE_TICKS_INT
    int REFUSE
    int machine_block(
        const Code* code, const Column* vector, long base, long n,
        const Column* scalar, long row, const int64_t* ranks, Register* r, long* where,
    )
    int machine_select(
        const Code* code, const Column* vector, long start, long stop,
        const Column* scalar, long row, const int64_t* ranks, uint8_t* result, long* where,
    )
    int machine_value(
        const Code* code, const Column* vector, long row, const int64_t* ranks, int floating,
        int64_t* value, uint8_t* there,
    )

OPERATIONS = {
    "load_vector_int": LOAD_VECTOR_INT,
    "load_vector_double": LOAD_VECTOR_DOUBLE,
    "load_scalar_int": LOAD_SCALAR_INT,
    "load_scalar_double": LOAD_SCALAR_DOUBLE,
    "constant_int": CONSTANT_INT,
    "constant_double": CONSTANT_DOUBLE,
    "nothing_int": NOTHING_INT,
    "nothing_truth": NOTHING_TRUTH,
    "rank": RANK,
    "to_double": TO_DOUBLE,
    "negate_int": NEGATE_INT,
    "negate_double": NEGATE_DOUBLE,
    "is_null_int": IS_NULL_INT,
    "is_null_double": IS_NULL_DOUBLE,
    "is_not_null_int": IS_NOT_NULL_INT,
    "is_not_null_double": IS_NOT_NULL_DOUBLE,
    "add_int": ADD_INT,
    "subtract_int": SUBTRACT_INT,
    "multiply_int": MULTIPLY_INT,
    "remainder_int": REMAINDER_INT,
    "add_double": ADD_DOUBLE,
    "subtract_double": SUBTRACT_DOUBLE,
    "multiply_double": MULTIPLY_DOUBLE,
    "remainder_double": REMAINDER_DOUBLE,
    "divide": DIVIDE,
    "compare_int": COMPARE_INT,
    "compare_double": COMPARE_DOUBLE,
    "compare_int_double": COMPARE_INT_DOUBLE,
    "both": BOTH,
    "either": EITHER,
    "add_scaled": ADD_SCALED,
    "subtract_scaled": SUBTRACT_SCALED,
    "compare_scaled": COMPARE_SCALED,
    "ratio": RATIO,
    "multiply_ticks": MULTIPLY_TICKS,
    "divide_ticks": DIVIDE_TICKS,
    "divide_ticks_int": DIVIDE_TICKS_INT,
    "refuse": REFUSE,
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
    steps : sequence of (str, int, object)
        Operation name, argument (a column's place in its side, a constant's place, a comparison code), and what is,
        as a string, the expression that the step computes, for messages.
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
            operation = OPERATIONS[name]
            depth += 1 if operation <= NOTHING_TRUTH else -1 if operation >= ADD_INT else 0
            most = max(most, depth)
        if depth != 1 or most > MACHINE_DEPTH:
            raise ValueError(f"a condition nests deeper than {MACHINE_DEPTH} levels")
        cdef const int32_t[::1] operations = self._operations
        cdef const int32_t[::1] arguments = self._arguments
        cdef const int64_t[::1] values = self._constants
        self.code.operations = &operations[0]
        self.code.arguments = &arguments[0]
        self.code.constants = &values[0]
        self.code.size = len(steps)
        self.code.depth = most

    def select(self, columns, Py_ssize_t rows, ranks, scalars=(), Py_ssize_t row=0):
        """Which of `rows` rows pass.

        Parameters
        ----------
        columns : sequence of (int64 or float64 array of shape (rows,), uint8 array of shape (rows,) or None)
            The vector side, in the order of `vector_columns`: values, and 1 where there is one.
        rows : int
        ranks : int64 array
            Rank of each string number among all strings seen so far.
        scalars : sequence of (int64 or float64 array, uint8 array or None)
            The scalar side, in the order of `scalar_columns`.
        row : int
            The row of the scalar side.

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
        cdef Py_ssize_t first = len(columns)
        cdef Column* vector = <Column*> PyMem_Malloc((first + len(scalars) + 1) * sizeof(Column))
        if vector == NULL:
            raise MemoryError
        held = [bind(&vector[place], data, valid) for place, (data, valid) in enumerate((*columns, *scalars))]
        try:
            with nogil:
                failed = machine_select(
                    &self.code, vector, 0, rows, vector + first, row, &rank[0], &out[0], <long*> &where
                )
        finally:
            PyMem_Free(vector)
            del held
        if failed >= 0:
            raise OverflowInExpression(str(self.texts[failed]), where)
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


cdef int evaluate_block(
    const Code* code, const Column* vector, Py_ssize_t start, Py_ssize_t rows,
    const Column* scalar, Py_ssize_t row, const int64_t* ranks, Register* r, Py_ssize_t* where,
) noexcept nogil:
    """Masks of the vector rows start..start+rows-1 (a block at most) that pass beside scalar row `row`, in ``r[0]``.

    Returns -1, or the place of the operation that overflowed, with ``where[0]`` the vector row.
    """
    return machine_block(code, vector, start, rows, scalar, row, ranks, r, <long*> where)


cdef int evaluate_value(
    const Code* code, const Column* vector, Py_ssize_t row, const int64_t* ranks, bint floating,
    int64_t* value, uint8_t* there,
) noexcept nogil:
    """The value of the program at one row, its bits in `value` and in `there` whether it is one.

    Returns -1, or the place of the operation that overflowed.
    """
    cdef const Column* column
    if code.size == 1 and code.operations[0] <= LOAD_VECTOR_DOUBLE:  # a bare attribute, the common key
        column = &vector[code.arguments[0]]
        value[0] = column.data[row]
        there[0] = column.valid == NULL or column.valid[row]
        if floating and isnan((<double*> value)[0]):
            there[0] = 0
        return -1
    return machine_value(code, vector, row, ranks, floating, value, there)
