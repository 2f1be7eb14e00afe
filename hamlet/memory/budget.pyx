"""The memory of a run; see ``budget.pxd``."""

from libc.stdint cimport INT64_MAX


class BudgetExceeded(MemoryError):
    """A kernel needs more memory than the run may take; it must not be used any more."""


cdef class Budget:
    """What the kernels of a run hold, and the most that the run may take.

    Parameters
    ----------
    limit : int or None
        Bytes; none by default.

    Attributes
    ----------
    held : int
        Bytes that kernels have allocated for states, nodes, indexes, the calendar and rows not yet taken.
    most : int
        The most that they have held so far.
    other : int
        Bytes of everything else that counts; set by whoever knows.
    """

    def __init__(self, limit=None):
        self.account.limit = INT64_MAX if limit is None else min(limit, INT64_MAX)

    @property
    def limit(self):
        """Bytes, None for no limit."""
        return None if self.account.limit == INT64_MAX else self.account.limit

    @property
    def held(self):
        return self.account.held

    @property
    def most(self):
        return self.account.most

    @property
    def other(self):
        return self.account.other

    @other.setter
    def other(self, bytes):
        self.account.other = bytes

    @property
    def exceeded(self):
        """Whether what is held now passes the limit."""
        return self.account.held + self.account.other > self.account.limit
