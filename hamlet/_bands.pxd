from hamlet._kernel cimport Core

cdef void load_bands(Core* k, object bands, dict held) except *
cdef void write_programs(Core* k, int first, dict held) except *
cdef bint reserve_seats(Core* k, Py_ssize_t capacity) noexcept
cdef void free_bands(Core* k) noexcept
