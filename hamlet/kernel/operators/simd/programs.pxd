from hamlet.kernel.plan cimport Component, Entry
from hamlet.kernel.state.core cimport Core

cdef void load_bands(Core* k, object bands, list held) except *
cdef void allow_limbs(Core* k) noexcept
cdef void write_programs(Core* k, int first, list held) except *
cdef int input_of(const Component* c, bint counted) noexcept nogil
cdef bint kills(const Core* k, const Entry* entry, int set_) noexcept nogil
cdef bint reserve_key_slots(Core* k, Py_ssize_t capacity) noexcept
cdef void free_bands(Core* k) noexcept
