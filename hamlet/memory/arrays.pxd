"""Arrays that become longer; what was in them stays."""

from libc.stdlib cimport realloc


cdef inline void* grown(void* memory, size_t size) except NULL nogil:
    """Reallocate; raises MemoryError, and leaves the memory as it is."""
    cdef void* moved = realloc(memory, size)
    if moved == NULL:
        with gil:
            raise MemoryError
    return moved


cdef inline bint regrown(void** memory, size_t size) noexcept nogil:
    """Reallocate; False, and the memory as it is, where there is none."""
    cdef void* moved = realloc(memory[0], size)
    if moved == NULL:
        return False
    memory[0] = moved
    return True
