"""The tables that all baselines read; see ``_automaton.pxd`` for the fields."""

import numpy as np

from libc.stdint cimport int32_t, uint64_t


cdef class Automaton:
    """Integer tables of one template or of several side by side; see ``_automaton.pyi``."""

    def __init__(self, role_of, sources, finals, guard_role, kept_column, adds):
        flat = [source for each in sources for source in each]
        pairs = [pair for _, _, each in flat for pair in each]
        self.arrays = []
        self.tables.states = len(role_of)
        self.tables.guards = len(guard_role)
        self.tables.components = len(adds)
        self.tables.queries = len(finals)
        self.tables.kept = len(kept_column)
        self.tables.role_of = self.integers(role_of)
        self.tables.source_begin = self.integers(np.cumsum([0, *map(len, sources)]))
        self.tables.source_of = self.integers([state for state, _, _ in flat])
        self.tables.source_guards = self.bits([guards for _, guards, _ in flat])
        self.tables.pair_begin = self.integers(np.cumsum([0, *(len(each) for _, _, each in flat)]))
        self.tables.pairs = self.integers(pairs)
        self.tables.kept_column = self.integers(kept_column)
        self.tables.guard_role = self.integers(guard_role)
        self.tables.final_begin = self.integers(np.cumsum([0, *map(len, finals)]))
        self.tables.final_state = self.integers([state for each in finals for state, _ in each])
        self.tables.final_guards = self.bits([guards for each in finals for _, guards in each])
        self.tables.adds = self.integers(adds)

    cdef int32_t *integers(self, numbers) except NULL:
        """Numbers as an array that lives as long as this object; one more than there are, so that none is empty."""
        cdef int32_t[::1] array = np.append(np.asarray(numbers, np.int32).ravel(), np.int32(0))
        self.arrays.append(array.base)
        return &array[0]

    cdef uint64_t *bits(self, sets) except NULL:
        cdef uint64_t[::1] array = np.append(np.asarray(sets, np.uint64).ravel(), np.uint64(0))
        self.arrays.append(array.base)
        return &array[0]
