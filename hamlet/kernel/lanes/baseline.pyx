"""Queries side by side in vectors of two numbers, or one by one, on any processor: lanes_body.h, compiled.

Vectors of one are for a lone query of which many windows are open: no memory is left for a second lane.
"""

from hamlet.kernel.lanes.lanes cimport Machine

cdef extern from *:
    """
    #include "lanes.h"
    #define LANES_FEW_SHAPES
    #define LANES_WIDTH 2
    #define LANES_SUFFIX 2
    #include "lanes_body.h"
    #define LANES_WIDTH 1
    #define LANES_SUFFIX 1
    #include "lanes_body.h"
    """
    const Machine two "lanes_machine_2"
    const Machine one "lanes_machine_1"


cdef const Machine* machine_of_2() noexcept nogil:
    """The loops for vectors of two."""
    return &two


cdef const Machine* machine_of_1() noexcept nogil:
    """The loops for single numbers."""
    return &one
