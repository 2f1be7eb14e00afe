"""Lines of text from columns: CSV and JSON, and tuples as MonPoly prints them."""

from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    const int Py_DTSF_ADD_DOT_0
    char* PyOS_double_to_string(double value, char form, int precision, int flags, int* kind) except NULL
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t size, const char* errors)

cdef struct Text:
    char* data
    Py_ssize_t size
    Py_ssize_t room


cdef inline int _reserve(Text* text, Py_ssize_t more) except -1:
    cdef Py_ssize_t room = text.room
    cdef char* grown
    if text.size + more <= room:
        return 0
    while room < text.size + more:
        room *= 2
    grown = <char*>realloc(text.data, room)
    if grown == NULL:
        raise MemoryError
    text.data, text.room = grown, room
    return 0


cdef inline int _put(Text* text, const char* data, Py_ssize_t size) except -1:
    _reserve(text, size)
    memcpy(text.data + text.size, data, size)
    text.size += size
    return 0


cdef inline int _put_text(Text* text, str value) except -1:
    cdef Py_ssize_t size
    cdef const char* data = PyUnicode_AsUTF8AndSize(value, &size)
    return _put(text, data, size)


cdef inline int _put_integer(Text* text, int64_t value) except -1:
    cdef char[24] digits
    cdef int at = 24
    cdef uint64_t rest = <uint64_t>value if value >= 0 else 0 - <uint64_t>value
    while True:
        at -= 1
        digits[at] = <char>(48 + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if value < 0:
        at -= 1
        digits[at] = 45  # -
    return _put(text, &digits[at], 24 - at)


cdef inline int _put_float(Text* text, double value, bint whole) except -1:
    """A float in full, or with six digits as MonPoly has it."""
    cdef char* digits
    cdef Py_ssize_t size = 0
    if whole:
        digits = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    else:
        digits = PyOS_double_to_string(value, b"g", 6, 0, NULL)
    while digits[size]:
        size += 1
    try:
        return _put(text, digits, size)
    finally:
        PyMem_Free(digits)


cdef class Columns:
    """Columns whose values are written as text.

    Parameters
    ----------
    kinds : sequence of {'int', 'float', 'bool', 'text'}
    columns : sequence of int64 arrays, float64 arrays, arrays of bool as uint8, or lists of str
    missing : sequence of uint8 arrays or None
        Where a column has NULL.
    null : str
        What is written there.
    """

    cdef list columns
    cdef list missing
    cdef str null
    cdef int width
    cdef int* kinds
    cdef const void** data
    cdef const uint8_t** nulls

    def __dealloc__(self):
        free(self.kinds)
        free(self.data)
        free(self.nulls)

    def __cinit__(self, kinds, columns, missing, null):
        cdef int c
        cdef const int64_t[::1] integers
        cdef const double[::1] floats
        cdef const uint8_t[::1] flags
        self.columns, self.missing, self.width, self.null = list(columns), list(missing), len(columns), null
        self.kinds = <int*>malloc((self.width + 1) * sizeof(int))
        self.data = <const void**>malloc((self.width + 1) * sizeof(void*))
        self.nulls = <const uint8_t**>malloc((self.width + 1) * sizeof(void*))
        if self.kinds == NULL or self.data == NULL or self.nulls == NULL:
            raise MemoryError
        for c in range(self.width):
            self.data[c] = self.nulls[c] = NULL
            if missing[c] is not None:
                flags = missing[c]
                self.nulls[c] = &flags[0] if flags.shape[0] else NULL
            self.kinds[c] = ("int", "float", "bool", "text").index(kinds[c])
            if kinds[c] == "int":
                integers = columns[c]
                self.data[c] = &integers[0] if integers.shape[0] else NULL
            elif kinds[c] == "float":
                floats = columns[c]
                self.data[c] = &floats[0] if floats.shape[0] else NULL
            elif kinds[c] == "bool":
                flags = columns[c]
                self.data[c] = &flags[0] if flags.shape[0] else NULL

    cdef inline int put(self, Text* text, int c, int64_t row, bint whole) except -1:
        """Write a value."""
        cdef int kind = self.kinds[c]
        cdef list texts
        if self.nulls[c] != NULL and self.nulls[c][row]:
            return _put_text(text, self.null)
        if kind == 0:
            return _put_integer(text, (<const int64_t*>self.data[c])[row])
        if kind == 1:
            return _put_float(text, (<const double*>self.data[c])[row], whole)
        if kind == 2:
            if (<const uint8_t*>self.data[c])[row]:
                return _put(text, b"true", 4)
            return _put(text, b"false", 5)
        texts = <list>self.columns[c]
        return _put_text(text, <str>texts[row])


cdef int _begin(Text* text) except -1:
    text.size, text.room = 0, 1 << 12
    text.data = <char*>malloc(text.room)
    if text.data == NULL:
        raise MemoryError
    return 0


def rows_of(list befores, Columns columns, str ending, Py_ssize_t rows):
    """A line for each row.

    Parameters
    ----------
    befores : list of str
        What stands before the value of each column.
    columns : Columns
    ending : str
        What stands behind the last one.
    rows : int

    Returns
    -------
    str
    """
    cdef Py_ssize_t row
    cdef int c
    cdef Text text
    _begin(&text)
    try:
        for row in range(rows):
            for c in range(columns.width):
                _put_text(&text, <str>befores[c])
                columns.put(&text, c, row, True)
            _put_text(&text, ending)
        return PyUnicode_DecodeUTF8(text.data, text.size, NULL)
    finally:
        free(text.data)


def tuples_of(list heads, const int64_t[::1] starts, const int64_t[::1] order, Columns columns,
              str opened, str between, str closed, const uint8_t[::1] holds):
    """Lines, each a head and its tuples.

    Parameters
    ----------
    heads : list of str
    starts : int64 array of shape (heads + 1,)
        The first place in `order` of each line, and the end of the last.
    order : int64 array
        Rows.
    columns : Columns
    opened, between, closed : str
        What stands before, between and behind the tuples of a line.
    holds : uint8 array
        Which rows have a tuple.

    Returns
    -------
    str
    """
    cdef Py_ssize_t line, at
    cdef int c
    cdef int64_t row
    cdef bint some
    cdef Text text
    _begin(&text)
    try:
        for line in range(len(heads)):
            _put_text(&text, <str>heads[line])
            _put_text(&text, opened)
            some = False
            for at in range(starts[line], starts[line + 1]):
                row = order[at]
                if not holds[row]:
                    continue
                if some:
                    _put_text(&text, between)
                some = True
                _put(&text, b"(", 1)
                for c in range(columns.width):
                    if c:
                        _put(&text, b",", 1)
                    columns.put(&text, c, row, False)
                _put(&text, b")", 1)
            _put_text(&text, closed)
            _put(&text, b"\n", 1)
        return PyUnicode_DecodeUTF8(text.data, text.size, NULL)
    finally:
        free(text.data)
