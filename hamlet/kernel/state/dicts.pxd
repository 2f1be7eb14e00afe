from libc.stdint cimport int64_t

from hamlet.kernel.state.core cimport Core

cdef list listed_rows(Core* k, list wanted, const int64_t[::1] ranks, int64_t limit, list values)
