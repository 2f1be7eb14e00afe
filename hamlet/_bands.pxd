from hamlet._kernel cimport Core
from hamlet._lanes cimport Band

cdef void load_bands(Core* k, object bands, list held) except *
cdef void load_band(Core* k, Band* band, object given, dict held) except *
cdef void write_programs(Core* k, int first, list held) except *
cdef void write_class(Core* k, Band* band, int kind, bint every, dict held, dict inputs=*) except *
cdef int* ints(dict held, object name, object numbers) except NULL
cdef void free_band(Band* band) noexcept
cdef bint reserve_seats(Core* k, Py_ssize_t capacity) noexcept
cdef void free_bands(Core* k) noexcept
