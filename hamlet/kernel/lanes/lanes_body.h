/* The loops of lanes.h for vectors of LANES_WIDTH 64-bit elements; included once per instruction set, with a suffix for
 * all names. */

typedef int64_t LANES_NAME(lanes_ints) __attribute__((vector_size(8 * LANES_WIDTH)));
typedef uint64_t LANES_NAME(lanes_bits_of) __attribute__((vector_size(8 * LANES_WIDTH)));
typedef double LANES_NAME(lanes_doubles) __attribute__((vector_size(8 * LANES_WIDTH)));
#define LANE_INTS LANES_NAME(lanes_ints)
#define LANE_BITS LANES_NAME(lanes_bits_of)
#define LANE_DOUBLES LANES_NAME(lanes_doubles)
#define LANES_UNROLLED _Pragma("GCC unroll 8")
#define LANE_INLINE static inline __attribute__((always_inline))
#define LANES_VECTORS(planes, whole, linear) ((whole) ? (planes) : (planes) + (linear))

#include "numbers_body.h"
#include "steps_body.h"
#include "maps_body.h"
#include "limbs_body.h"
#include "active_queries_body.h"

static const lanes_machine LANES_NAME(lanes_machine) = {
    LANES_WIDTH, LANES_NAME(lanes_apply), LANES_NAME(lanes_read), LANES_NAME(lanes_kill), LANES_NAME(lanes_write),
    LANES_NAME(live_window),
    LANES_NAME(lanes_find), LANES_NAME(lanes_finish), LANES_NAME(lanes_begin), LANES_NAME(lanes_fold),
    LANES_NAME(lanes_size), LANES_NAME(lanes_scale),
    LANES_NAME(limbs_step), LANES_NAME(limbs_carry), LANES_NAME(limbs_find), LANES_NAME(limbs_total),
    LANES_NAME(limbs_fold)
};

#undef LANE_INTS
#undef LANE_BITS
#undef LANE_DOUBLES
#undef LANE_WAY
#undef LANE_FLOW
#undef LANES_UNROLLED
#undef LANE_INLINE
#undef LANES_BY_SHAPE
#undef LANES_WIDTH
#undef LANES_SUFFIX
