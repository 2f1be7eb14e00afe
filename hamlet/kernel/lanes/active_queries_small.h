/* Live lanes of integers where vectors have four elements: eight lanes side by side, of 32 bits each where the numbers of
 * a window are small, or else four and four; included by active_queries_body.h.
 *
 * Most windows have few events: then their counts, sums and extrema need no more bits. Of a rank the bits that those of
 * all small values have in common are left away until the end.
 */
#define LIVE_SMALL_RANK ((int64_t)(((uint64_t)1 << 63) - LIVE_SMALL_VALUE)) /* larger ones are those of small values */

typedef int32_t live_ints __attribute__((vector_size(32)));

/* All ones in the lanes of some bits. */
LANE_INLINE live_ints live_small_lanes(unsigned bits) {
    const live_ints each = {1, 2, 4, 8, 16, 32, 64, 128};
    return (live_ints)(((live_ints)_mm256_set1_epi8((char)bits) & each) == each);
}

LANE_INLINE live_ints live_small_join(live_ints a, live_ints b, live_ints lanes, const int holds) {
    return holds == LIVE_RANKS ? (live_ints)_mm256_max_epi32((__m256i)a, (__m256i)(b & lanes)) : a + (b & lanes);
}

LANE_INLINE live_ints live_small_bind(live_ints a, live_ints trends, int64_t value, live_ints lanes, const int holds) {
    const live_ints each = (live_ints){0} + (int32_t)value;
    return live_small_join(
        a, holds == LIVE_RANKS ? (trends != 0) & (each + LIVE_SMALL_VALUE) : trends * each, lanes, holds
    );
}

LANE_INLINE void live_small_store(LANE_INTS *result, live_ints sum, const int holds) {
    LANES_UNROLLED
    for (int half = 0; half < 2; half++) {
        const __m128i four = half ? _mm256_extracti128_si256((__m256i)sum, 1) : _mm256_castsi256_si128((__m256i)sum);
        result[half] = (LANE_INTS)_mm256_cvtepi32_epi64(four);
        if (holds == LIVE_RANKS) result[half] += (LANE_INTS)(result[half] != 0) & LIVE_SMALL_RANK;
    }
}

#define PLANES_NAME live_small_planes
#define PLANES_INTS live_ints
#define PLANES_MASK live_ints
#define PLANES_EVERY (~(live_ints){0})
#define PLANES_LANES(bits) live_small_lanes(bits)
#define PLANES_ONLY(a, lanes) ((a) & (lanes))
#define PLANES_BEGIN(a, lanes, whole) ((a) - (lanes))
#define PLANES_JOIN(a, b, lanes, holds, whole) live_small_join(a, b, lanes, holds)
#define PLANES_BIND(a, trends, value, lanes, holds, whole) live_small_bind(a, trends, (value).i, lanes, holds)
#define PLANES_TIMES(a, repeat) (a)
#define PLANES_STORE(result, sum, holds) live_small_store(result, sum, holds)
#include "active_queries_planes.h"

/* As live_window for eight lanes; small: what holds of the numbers of the window (active_queries.h). */
static uint64_t live_window_halves(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, const lanes_word *times, long n, const lanes_word *x,
    long inputs, int small, lanes_word *trends, lanes_word *result, lanes_word *cells, int goes_on
) {
    const LANE_INTS low = {1, 2, 4, 8}, high = {16, 32, 64, 128};
    LANE_INTS *to = (LANE_INTS *)result;
    uint64_t some;
    (void)cells, (void)goes_on; /* who asks for them takes lanes of 64 bits */
    int lean = !(c->edges & LIVE_EDGE(0, 0)); /* no event follows another one like it at the beginning of a pattern */
#define PLANES(slots, edges, sums, ranks, ties) \
    live_small_planes(c, kind, ends, NULL, n, x, inputs, low, to, 2, NULL, 0, slots, edges, sums, ranks, 1, ties, 0)
#define TIES(slots, edges, sums, ranks) \
    if (ends) PLANES(slots, edges, sums, ranks, 1); else PLANES(slots, edges, sums, ranks, 0)
#define GRAPH(slots, edges) switch (c->shape) { \
        case LIVE_SHAPE(0, 0, 1): TIES(slots, edges, 0, 0); break; \
        case LIVE_SHAPE(1, 0, 1): TIES(slots, edges, 1, 0); break; \
        case LIVE_SHAPE(2, 0, 1): TIES(slots, edges, 2, 0); break; \
        case LIVE_SHAPE(0, 1, 1): TIES(slots, edges, 0, 1); break; \
        case LIVE_SHAPE(1, 1, 1): TIES(slots, edges, 1, 1); break; \
        case LIVE_SHAPE(2, 1, 1): TIES(slots, edges, 2, 1); break; \
    }
    if (c->shape >= 0 && small >= (c->shape & LIVE_SHAPE(0, 1, 0) ? LIVE_SMALL_RANKS : LIVE_SMALL)) {
        if (c->slots == 2 && lean) GRAPH(2, LIVE_TWO & ~LIVE_EDGE(0, 0))
        else if (c->slots == 2) GRAPH(2, LIVE_TWO)
        else if (c->edges & ~LIVE_THREE) GRAPH(3, LIVE_APART)
        else if (lean) GRAPH(3, LIVE_THREE & ~LIVE_EDGE(0, 0))
        else GRAPH(3, LIVE_THREE)
        return LANES_NAME(lanes_some)(to[0]) | LANES_NAME(lanes_some)(to[1]) << 4;
    }
#undef GRAPH
#undef TIES
#undef PLANES
    some = LANES_NAME(live_part)(c, kind, ends, times, n, x, inputs, low, (LANE_INTS *)trends, to, 2, NULL, 0);
    if (c->lanes <= 4) return some;
    return some | LANES_NAME(live_part)(
        c, kind, ends, times, n, x, inputs, high, (LANE_INTS *)trends, to + 1, 2, NULL, 0
    ) << 4;
}

static const lanes_machine live_machine_halves = {.width = 8, .window = live_window_halves};
