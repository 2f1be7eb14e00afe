"""Lines of tuples as MonPoly prints them, from columns."""

from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

cdef extern from "Python.h":
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


cdef inline int _put_float(Text* text, double value) except -1:
    cdef char* digits = PyOS_double_to_string(value, b"g", 6, 0, NULL)
    cdef Py_ssize_t size = 0
    while digits[size]:
        size += 1
    try:
        return _put(text, digits, size)
    finally:
        PyMem_Free(digits)


def lines_of(list heads, const int64_t[::1] starts, const int64_t[::1] order, list kinds, list columns,
             str opened, str between, str closed, const uint8_t[::1] holds):
    """Lines, each a head and its tuples.

    Parameters
    ----------
    heads : list of str
    starts : int64 array of shape (heads + 1,)
        The first place in `order` of each line, and the end of the last.
    order : int64 array
        Rows.
    kinds : list of {'int', 'float', 'text'}
    columns : list of int64 arrays, float64 arrays or lists of str
    opened, between, closed : str
        What stands before, between and behind the tuples of a line.
    holds : uint8 array
        Which rows have a tuple.

    Returns
    -------
    str
    """
    cdef Py_ssize_t line, at
    cdef int width = len(columns), c, kind
    cdef int64_t row
    cdef bint some
    cdef const int64_t[::1] integers
    cdef const double[::1] floats
    cdef Text text
    cdef const void** data = <const void**>malloc((width + 1) * sizeof(void*))
    cdef int* coded = <int*>malloc((width + 1) * sizeof(int))
    cdef list texts
    text.size, text.room = 0, 1 << 12
    text.data = <char*>malloc(text.room)
    try:
        if data == NULL or coded == NULL or text.data == NULL:
            raise MemoryError
        for c in range(width):
            data[c] = NULL
            coded[c] = 2
            if kinds[c] == "int":
                integers, coded[c] = columns[c], 0
                data[c] = &integers[0] if integers.shape[0] else NULL
            elif kinds[c] == "float":
                floats, coded[c] = columns[c], 1
                data[c] = &floats[0] if floats.shape[0] else NULL
        for line in range(len(heads)):
            _put_text(&text, heads[line])
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
                for c in range(width):
                    if c:
                        _put(&text, b",", 1)
                    kind = coded[c]
                    if kind == 0:
                        _put_integer(&text, (<const int64_t*>data[c])[row])
                    elif kind == 1:
                        _put_float(&text, (<const double*>data[c])[row])
                    else:
                        texts = <list>columns[c]
                        _put_text(&text, <str>texts[row])
                _put(&text, b")", 1)
            _put_text(&text, closed)
            _put(&text, b"\n", 1)
        return PyUnicode_DecodeUTF8(text.data, text.size, NULL)
    finally:
        free(data)
        free(coded)
        free(text.data)
