"""Which vectors run queries side by side: the widest that the processor has, no wider than there are queries."""

from hamlet.kernel.lanes.avx2 cimport machine_of_4, machine_of_halves
from hamlet.kernel.lanes.avx2_pairs cimport machine_of_pairs
from hamlet.kernel.lanes.avx512 cimport machine_of_8
from hamlet.kernel.lanes.baseline cimport machine_of_1, machine_of_2
from hamlet.kernel.lanes.lanes cimport LANES_PLAIN, LANES_WIDEST, Machine
from hamlet.kernel.state.core cimport AVX2, AVX512

cdef extern from *:
    """
    #include "lanes.h"
    #ifdef LANES_TARGETS
    static int hamlet_has_avx512(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
            && __builtin_cpu_supports("avx512vl");
    }
    static int hamlet_has_avx2(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    #else
    static int hamlet_has_avx512(void) { return 0; }
    static int hamlet_has_avx2(void) { return 0; }
    #endif
    """
    bint has_avx512 "hamlet_has_avx512"() noexcept nogil
    bint has_avx2 "hamlet_has_avx2"() noexcept nogil


cdef const Machine* machine_of(int width) noexcept nogil:
    """The loops for vectors of a width, or of the widest that this processor has (0); a null pointer without any.

    LANES_PLAIN is a width of two without an instruction that some processor lacks.
    """
    if (width == 8 or width == 0) and has_avx512():
        return machine_of_8()
    if (width == 4 or width == 2 or width == 0) and has_avx2():
        return machine_of_pairs() if width == 2 else machine_of_4()
    if width == 1:
        return machine_of_1()
    return machine_of_2() if width == 2 or width == LANES_PLAIN or width == 0 else NULL


cdef const Machine* machine_within(int lanes, int widest) noexcept nogil:
    """The loops for so many lanes: no wider than they need, or than `widest` (0: any; LANES_PLAIN)."""
    cdef int width = machine_of(0).width
    if widest == LANES_PLAIN:
        return machine_of(widest)
    if widest and width > widest:
        width = widest
    while width > 2 and width // 2 >= lanes:
        width //= 2
    return machine_of(width)


cdef const Machine* live_machine_within(bint integers, int widest) noexcept nogil:
    """The loops for live lanes, all of integers or not: the widest, which take no longer where there are few lanes.

    Small integers go eight at a time where those of 64 bits go four.
    """
    cdef const Machine* machine = machine_within(LANES_WIDEST, widest)
    return machine_of_halves() if integers and machine.width == 4 else machine


cdef bint takes_halves(const Machine* machine) noexcept nogil:
    """Whether loops take small integers two for one."""
    return machine == machine_of_halves() and machine != NULL


cdef int feature_of(const Machine* machine) noexcept nogil:
    """The Feature that the vectors of some loops are, -1 where every processor has them."""
    if machine == machine_of_1() or machine == machine_of_2():
        return -1
    return AVX512 if machine == machine_of_8() else AVX2
