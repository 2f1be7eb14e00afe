"""Queries side by side in vectors of eight numbers of 64 bits, with AVX-512: the loops of lanes_body.h, compiled."""

from hamlet.kernel.lanes.lanes cimport Machine

cdef extern from *:
    """
    #include "lanes.h"
    #ifdef LANES_TARGETS
    #pragma GCC push_options
    #pragma GCC target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")
    #define LANES_WIDTH 8
    #define LANES_SUFFIX 8
    #include "lanes_body.h"
    #pragma GCC pop_options
    static const lanes_machine *hamlet_machine_of_8(void) { return &lanes_machine_8; }
    #else
    static const lanes_machine *hamlet_machine_of_8(void) { return 0; }
    #endif
    """
    const Machine* machine_of_8_ "hamlet_machine_of_8"() noexcept nogil


cdef const Machine* machine_of_8() noexcept nogil:
    """The loops; a null pointer where this compiler or processor family has none such."""
    return machine_of_8_()
