"""Bursts and graphlets."""

from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.radix_sort cimport Event
from hamlet.kernel.run_length cimport KeyRun
from hamlet.kernel.state.core cimport Core, Graphlet


cdef int end_before(Core* k, int kind, int64_t time) noexcept nogil
cdef int join_burst(Core* k, Graphlet* g, int kind, int64_t key, const Event* event, Py_ssize_t n) noexcept nogil
cdef int join_key_run(Core* k, Graphlet* g, int64_t key, int64_t time, const KeyRun* key_run) noexcept nogil
cdef void find_pane(const Core* k, Graphlet* g, int64_t time) noexcept nogil
cdef int end_bursts(Core* k, uint64_t graphlets) noexcept nogil
