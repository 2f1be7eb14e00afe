from libc.stdint cimport int64_t

from hamlet.kernel.core cimport Core, Sheet

cdef void load_sheets(Core* k, object queries) except *
cdef void free_sheets(Core* k) noexcept
cdef int make_room(Core* k, Sheet* s, Py_ssize_t rows) noexcept nogil
cdef int begin_run(Core* k, Sheet* s, int64_t window) noexcept nogil
cdef bint comes_last(const Core* k, int query) noexcept nogil
cdef int unroll(Core* k, int query) noexcept nogil
cdef object taken_sheet(Core* k, int query)
