"""Queries side by side in vectors of two numbers of 64 bits, with AVX2: the loops of lanes_body.h, compiled.

They are for few queries.
"""

from hamlet.kernel.lanes.lanes cimport Machine

cdef extern from *:
    """
    #include "lanes.h"
    #ifdef LANES_TARGETS
    #pragma GCC push_options
    #pragma GCC target("avx2,fma")
    #define LANES_FEW_SHAPES
    #define LANES_WIDTH 2
    #define LANES_SUFFIX 2_better
    #include "lanes_body.h"
    #pragma GCC pop_options
    static const lanes_machine *hamlet_machine_of_pairs(void) { return &lanes_machine_2_better; }
    #else
    static const lanes_machine *hamlet_machine_of_pairs(void) { return 0; }
    #endif
    """
    const Machine* machine_of_pairs_ "hamlet_machine_of_pairs"() noexcept nogil


cdef const Machine* machine_of_pairs() noexcept nogil:
    """The loops; a null pointer where this compiler or processor family has none such."""
    return machine_of_pairs_()
