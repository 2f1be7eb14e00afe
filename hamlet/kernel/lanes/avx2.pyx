"""Queries side by side in vectors of four numbers of 64 bits, with AVX2: the loops of lanes_body.h, compiled.

Small integers also go eight at a time (active_queries_small.h).
"""

from hamlet.kernel.lanes.lanes cimport Machine

cdef extern from *:
    """
    #include "lanes.h"
    #ifdef LANES_TARGETS
    #pragma GCC push_options
    #pragma GCC target("avx2,fma")
    #define LANES_WIDTH 4
    #define LANES_SUFFIX 4
    #include "lanes_body.h"
    #pragma GCC pop_options
    static const lanes_machine *hamlet_machine_of_4(void) { return &lanes_machine_4; }
    static const lanes_machine *hamlet_machine_of_halves(void) { return &live_machine_halves; }
    #else
    static const lanes_machine *hamlet_machine_of_4(void) { return 0; }
    static const lanes_machine *hamlet_machine_of_halves(void) { return 0; }
    #endif
    """
    const Machine* machine_of_4_ "hamlet_machine_of_4"() noexcept nogil
    const Machine* machine_of_halves_ "hamlet_machine_of_halves"() noexcept nogil


cdef const Machine* machine_of_4() noexcept nogil:
    """The loops; a null pointer where this compiler or processor family has none such."""
    return machine_of_4_()


cdef const Machine* machine_of_halves() noexcept nogil:
    """The loops; a null pointer where this compiler or processor family has none such."""
    return machine_of_halves_()
