"""What the kernels have in common as Python sees them: `hamlet._core.Kernel`, and `Matching` of the matching operator.

Whoever feeds, saves and delivers need not know which of the two it has. `process`, `advance`, `save`, `load`, `live`,
`closed`, `waiting`, `memory`, `rows` and `drop` are of each kernel's own.
"""

import cython
import numpy as np

from hamlet.memory.budget import BudgetExceeded

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from hamlet.kernel.expression cimport Column
from hamlet.kernel.plan cimport OUT_OF_MEMORY, OVERFLOW, TOO_MANY_GROUPS
from hamlet.memory.budget cimport Account


@cython.no_gc_clear  # the budget must still be there when what is accounted to it is freed
cdef class Interface:
    """The base of the kernels: what they hold, and the answers of one without the ways that only some have."""

    def __cinit__(self):
        self.held = []

    cdef void* hold(self, object array):
        """Keep an array alive and return its first byte, a null pointer where it is empty."""
        return <void*> address(self.held, np.ascontiguousarray(array).reshape(-1))

    def reads_bytes(self, Py_ssize_t rows, Py_ssize_t key_count):  # noqa: ARG002
        """Whether keys and classes of a batch of so many rows are asked for as bytes."""
        return False

    def takes_whole(self, Py_ssize_t rows):  # noqa: ARG002
        """Whether windows that are whole in a batch of so many rows are taken at once."""
        return False

    def take_columns(self, int query):  # noqa: ARG002
        """Take the rows of a query that are kept as columns; None where all are among those of `rows`."""
        return None

    def forget(self):
        """Forget what is remembered of keys that are not live; their numbers may stand for others now."""


cdef class EventColumns:
    """The columns of a batch, as C reads them; they live as long as this does.

    Parameters
    ----------
    columns : sequence of (int64 or float64 array of shape (n,), uint8 array of shape (n,) or None)
        Values, and 1 where there is one.
    """

    def __cinit__(self, columns):
        self.held = []
        self.column = <Column*> calloc(len(columns) + 1, sizeof(Column))
        if self.column == NULL:
            raise MemoryError
        for i, (data, valid) in enumerate(columns):
            self.column[i].data = <const int64_t*> address(self.held, data)
            self.column[i].valid = NULL if valid is None else <const uint8_t*> address(self.held, valid)

    def __dealloc__(self):
        free(self.column)


class KernelOverflow(Exception):
    """Integer arithmetic of an adjacent predicate passed 64 bits at a row of the batch."""

    def __init__(self, query, predicate, place, row):
        super().__init__("integer arithmetic passed 64 bits")
        self.query = query
        self.predicate = predicate
        self.place = place
        self.row = row


class TooManyGroups(Exception):
    """A count that the trends of a query are grouped by passed the largest number of groups."""

    def __init__(self, query):
        super().__init__("too many groups of a count")
        self.query = query


cdef void check_failure(
    int failure, const Account* account, int query, int predicate, int place, Py_ssize_t row
) except *:
    """Raise what a Failure stands for; with the account of the kernel, and where arithmetic overflowed, if it did."""
    if failure == OUT_OF_MEMORY and account.refused:
        raise BudgetExceeded
    if failure == OUT_OF_MEMORY:
        raise MemoryError
    if failure == OVERFLOW:
        raise KernelOverflow(query, predicate, place, row)
    if failure == TOO_MANY_GROUPS:
        raise TooManyGroups(query)


cdef tuple rows_of(int64_t* key, int64_t* window, int32_t* width, uint64_t* word, Py_ssize_t count, Py_ssize_t words):
    """Rows as arrays, where they lie: their keys, windows and widths, and the words of their cells."""
    if count == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint64)
    return (
        np.asarray(<int64_t[:count]> key),
        np.asarray(<int64_t[:count]> window),
        np.asarray(<int32_t[:count]> width),
        np.asarray(<uint64_t[:words]> word),
    )


cdef const void* address(list held, object array):
    """The first byte of a contiguous array, kept alive by `held`; a null pointer where it is empty."""
    cdef const uint8_t[::1] view
    if len(array) == 0:
        return NULL
    view = array.view(np.uint8)
    held.append(view)
    return <const void*> &view[0]
