/* The loops of active_queries.h for vectors of LANES_WIDTH elements; included by lanes_body.h. */

/* LIVE_LANES: the lanes of some bits, as what LIVE_ONLY and the others take; `each` has the bit of each lane. */
#if LANES_WIDTH == 8
#define LIVE_MASK unsigned
#define LIVE_EVERY 255u
#define LIVE_LANES(bits, each) (bits)
#define LIVE_ONLY(a, lanes) ((LANE_INTS)_mm512_maskz_mov_epi64((__mmask8)(lanes), (__m512i)(a)))
#define LIVE_ADD(a, b, lanes) \
    ((LANE_INTS)_mm512_mask_add_epi64((__m512i)(a), (__mmask8)(lanes), (__m512i)(a), (__m512i)(b)))
#define LIVE_ADD_REAL(a, b, lanes) \
    ((LANE_INTS)_mm512_mask_add_pd((__m512d)(a), (__mmask8)(lanes), (__m512d)(a), (__m512d)(b)))
/* In other lanes the value may be a rank, which is too small a double to be multiplied fast. */
#define LIVE_PRODUCT(a, x, lanes) \
    ((LANE_DOUBLES)_mm512_maskz_mul_pd((__mmask8)(lanes), (__m512d)(a), _mm512_set1_pd(x)))
#define LIVE_LARGER(a, b, lanes) \
    ((LANE_INTS)_mm512_mask_max_epu64((__m512i)(a), (__mmask8)(lanes), (__m512i)(a), (__m512i)(b)))
#else
LANE_INLINE LANE_INTS LANES_NAME(live_lanes)(unsigned bits, LANE_INTS each) {
#if LANES_WIDTH == 4 /* a byte goes to all places straight from memory */
    return (LANE_INTS)((LANE_INTS)_mm256_set1_epi8((char)bits) & each) == each;
#elif LANES_WIDTH == 2
    static const LANE_INTS lanes[4] = {{0, 0}, {-1, 0}, {0, -1}, {-1, -1}};
    return (void)each, lanes[bits & 3];
#else
    return (void)each, (LANE_INTS){0} - (int64_t)(bits & 1);
#endif
}
#define LIVE_MASK LANE_INTS
#define LIVE_EVERY (~(LANE_INTS){0})
#define LIVE_LANES(bits, each) LANES_NAME(live_lanes)(bits, each)
#define LIVE_ONLY(a, lanes) ((a) & (lanes))
#define LIVE_ADD(a, b, lanes) ((a) + LIVE_ONLY(b, lanes))
#define LIVE_ADD_REAL(a, b, lanes) ((LANE_INTS)((LANE_DOUBLES)(a) + (LANE_DOUBLES)LIVE_ONLY(b, lanes)))
#define LIVE_PRODUCT(a, x, lanes) ((a) * (LANE_DOUBLES)LIVE_ONLY((LANE_INTS)((LANE_DOUBLES){0} + (x)), lanes))
#define LIVE_LARGER(a, b, lanes) LANES_NAME(lanes_larger)(a, LIVE_ONLY(b, lanes))
#endif

LANE_INLINE LANE_INTS LANES_NAME(live_join)(
    LANE_INTS a, LANE_INTS b, LIVE_MASK lanes, const int holds, const int whole
) {
    if (holds == LIVE_RANKS) return LIVE_LARGER(a, b, lanes);
    return holds == LIVE_INTEGERS || (holds == LIVE_COUNTS && whole) ? LIVE_ADD(a, b, lanes) : LIVE_ADD_REAL(a, b, lanes);
}

LANE_INLINE LANE_INTS LANES_NAME(live_one)(const int whole) {
    return whole ? (LANE_INTS){0} + 1 : (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
}

LANE_INLINE LANE_INTS LANES_NAME(live_times)(LANE_INTS a, double repeat) {
    return (LANE_INTS)((LANE_DOUBLES)a * repeat);
}

/* A plane, and what an event's value adds to it for so many trends. */
LANE_INLINE LANE_INTS LANES_NAME(live_bind)(
    LANE_INTS a, LANE_INTS trends, lanes_word value, LIVE_MASK lanes, const int holds, const int whole
) {
    if (holds == LIVE_INTEGERS) return LIVE_ADD(a, trends * value.i, lanes);
    if (holds == LIVE_RANKS) return LIVE_LARGER(a, (LANE_INTS)(trends != 0) & value.i, lanes);
    LANE_DOUBLES weight = whole ? __builtin_convertvector(trends, LANE_DOUBLES) : (LANE_DOUBLES)trends;
    return (LANE_INTS)((LANE_DOUBLES)a + LIVE_PRODUCT(weight, value.d, lanes));
}

/* What stands in the final cells of a plane after all events; trends: what each has extended, by the slot where it goes
 * to, which the plane of counts writes and the others read. */
LANE_INLINE void LANES_NAME(live_plane)(
    const live_chunk *c, const live_plane *plane, const int32_t *kind, const uint8_t *ends, const lanes_word *times,
    long n, const lanes_word *x, long inputs, const LANE_INTS each, LANE_INTS *trends, LANE_INTS *result, LANE_INTS *cells,
    const int goes_on, const int slots, const uint64_t edges, const int holds, const int whole
) {
    const LANE_INTS one = LANES_NAME(live_one)(whole);
    LANE_INTS cell[LIVE_SLOTS], more[LIVE_SLOTS], sum = {0};
    unsigned killed[LIVE_SLOTS];
    LANES_UNROLLED
    for (int to = 0; to < slots; to++) {
        cell[to] = goes_on ? cells[to]
            : holds == LIVE_COUNTS ? LIVE_ONLY(one, LIVE_LANES(c->begin[to], each)) : (LANE_INTS){0};
        more[to] = (LANE_INTS){0};
        killed[to] = 0;
    }
    for (long i = 0; i < n; i++, trends += slots) {
        const uint8_t *step = c->step + (long)LIVE_KIND(kind[i]) * c->stride;
        const lanes_word *value = x + (long)LIVE_PLACE(kind[i]) * inputs;
        const double repeat = !whole && times ? times[LIVE_PLACE(kind[i])].d : 1.0;
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANE_INTS in = {0};
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to))
                    in = LANES_NAME(live_join)(
                        in, cell[from], LIVE_LANES(step[from * slots + to], each), holds, whole
                    );
            if (holds == LIVE_COUNTS) {
                if (edges & LIVE_EDGE(LIVE_START, to))
                    in = LANES_NAME(live_join)(in, one, LIVE_LANES(step[slots * slots + to], each), holds, whole);
                if (c->planes > 1) trends[to] = in;
            }
            if (!whole && holds != LIVE_RANKS) in = LANES_NAME(live_times)(in, repeat);
            const uint8_t *bind = step + plane->bind;
            for (int j = 0; holds != LIVE_COUNTS && j < plane->binds; j++, bind += 1 + slots) {
                in = LANES_NAME(live_bind)(
                    in, trends[to], value[bind[0]], LIVE_LANES(bind[1 + to], each), holds, whole
                );
            }
            more[to] = LANES_NAME(live_join)(more[to], in, LIVE_EVERY, holds, whole);
            if (c->kills) killed[to] |= step[(slots + 1) * slots + to];
        }
        if (ends && !ends[i]) continue; /* of one time: all reads, then the guards, then all writes */
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            if (c->kills) cell[to] = LIVE_ONLY(cell[to], LIVE_LANES(~killed[to], each));
            cell[to] = LANES_NAME(live_join)(cell[to], more[to], LIVE_EVERY, holds, whole);
            more[to] = (LANE_INTS){0};
            killed[to] = 0;
        }
    }
    LANES_UNROLLED
    for (int to = 0; to < slots; to++)
        sum = LANES_NAME(live_join)(sum, cell[to], LIVE_LANES(c->final[to], each), holds, whole);
    *result = sum;
    if (!cells) return;
    LANES_UNROLLED
    for (int to = 0; to < slots; to++) cells[to] = cell[to];
}

#define PLANES_NAME LANES_NAME(live_planes)
#define PLANES_INTS LANE_INTS
#define PLANES_MASK LIVE_MASK
#define PLANES_EVERY LIVE_EVERY
#define PLANES_LANES(bits) LIVE_LANES(bits, each)
#define PLANES_ONLY(a, lanes) LIVE_ONLY(a, lanes)
#define PLANES_BEGIN(a, lanes, whole) LANES_NAME(live_join)(a, LANES_NAME(live_one)(whole), lanes, LIVE_COUNTS, whole)
#define PLANES_JOIN(a, b, lanes, holds, whole) LANES_NAME(live_join)(a, b, lanes, holds, whole)
#define PLANES_BIND(a, trends, value, lanes, holds, whole) LANES_NAME(live_bind)(a, trends, value, lanes, holds, whole)
#define PLANES_TIMES(a, repeat) LANES_NAME(live_times)(a, repeat)
#define PLANES_STORE(result, sum, holds) (*(result) = (sum))
#define PLANES_CELLS 1
#include "active_queries_planes.h"

/* Take all events of a window for the lanes of the bits `each`; ends: LIVE_END where an event is the last one of its
 * time, or a null pointer where each is; times: by their places how many events of one class and time each stands for,
 * a double, where counts are doubles and there are `ends`, or a null pointer where it is one; result: a vector of each
 * plane, so many vectors apart; cells: those at the end, or a null pointer, and where the window goes_on those before it.
 * Returns the bits of the lanes with trends. */
static uint64_t LANES_NAME(live_part)(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, const lanes_word *times, long n, const lanes_word *x,
    long inputs, const LANE_INTS each, LANE_INTS *trends, LANE_INTS *result, long stride, LANE_INTS *cells, int goes_on
) {
#define PLANES(slots, edges, sums, ranks, whole, merged) LANES_NAME(live_planes)( \
        c, kind, ends, times, n, x, inputs, each, result, stride, cells, goes_on, slots, edges, sums, ranks, whole, \
        ends != NULL, merged)
#define GRAPH(slots, edges, merged) switch (c->shape) { \
        case LIVE_SHAPE(0, 0, 0): PLANES(slots, edges, 0, 0, 0, merged); break; \
        case LIVE_SHAPE(1, 0, 0): PLANES(slots, edges, 1, 0, 0, merged); break; \
        case LIVE_SHAPE(2, 0, 0): PLANES(slots, edges, 2, 0, 0, merged); break; \
        case LIVE_SHAPE(0, 1, 0): PLANES(slots, edges, 0, 1, 0, merged); break; \
        case LIVE_SHAPE(1, 1, 0): PLANES(slots, edges, 1, 1, 0, merged); break; \
        case LIVE_SHAPE(2, 1, 0): PLANES(slots, edges, 2, 1, 0, merged); break; \
        WHOLE(slots, edges, merged) \
    }
#define WHOLE_0(slots, edges) \
        case LIVE_SHAPE(0, 0, 1): PLANES(slots, edges, 0, 0, 1, 0); break; \
        case LIVE_SHAPE(1, 0, 1): PLANES(slots, edges, 1, 0, 1, 0); break; \
        case LIVE_SHAPE(2, 0, 1): PLANES(slots, edges, 2, 0, 1, 0); break; \
        case LIVE_SHAPE(0, 1, 1): PLANES(slots, edges, 0, 1, 1, 0); break; \
        case LIVE_SHAPE(1, 1, 1): PLANES(slots, edges, 1, 1, 1, 0); break; \
        case LIVE_SHAPE(2, 1, 1): PLANES(slots, edges, 2, 1, 1, 0); break;
#define WHOLE_1(slots, edges) /* events are merged where counts are doubles */
#define WHOLE(slots, edges, merged) WHOLE_##merged(slots, edges)
#define PLANE(holds, whole) LANES_NAME(live_plane)( \
        c, plane, kind, ends, times, n, x, inputs, each, trends, result + i * stride, cells ? cells + i * c->slots : NULL, \
        goes_on, c->slots, c->edges, holds, whole)
#ifdef LANES_FEW_SHAPES /* processors and cases that are rare: the loops for any shape will do, and compile fast */
    if (0) {
    } else {
#else
    if (c->shape >= 0 && times && c->slots == 2) {
        GRAPH(2, LIVE_TWO, 1)
    } else if (c->shape >= 0 && times) {
        GRAPH(3, LIVE_APART, 1)
    } else if (c->shape >= 0 && c->slots == 2) {
        GRAPH(2, LIVE_TWO, 0)
    } else if (c->shape >= 0 && !(c->edges & ~LIVE_THREE)) {
        GRAPH(3, LIVE_THREE, 0)
    } else if (c->shape >= 0) {
        GRAPH(3, LIVE_APART, 0)
    } else {
#endif
        for (int i = 0; i < c->planes; i++) {
            const live_plane *plane = &c->plane[i];
            if (plane->holds == LIVE_INTEGERS) PLANE(LIVE_INTEGERS, 1);
            else if (plane->holds == LIVE_RANKS) PLANE(LIVE_RANKS, 1);
            else if (plane->holds == LIVE_DOUBLES && c->whole) PLANE(LIVE_DOUBLES, 1);
            else if (plane->holds == LIVE_DOUBLES) PLANE(LIVE_DOUBLES, 0);
            else if (c->whole) PLANE(LIVE_COUNTS, 1);
            else PLANE(LIVE_COUNTS, 0);
        }
    }
#undef PLANE
#undef WHOLE
#undef WHOLE_0
#undef WHOLE_1
#undef GRAPH
#undef PLANES
    return LANES_NAME(lanes_some)(*result);
}

/* Take all events of a window; result: [planes][width]. */
static uint64_t LANES_NAME(live_window)(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, const lanes_word *times, long n, const lanes_word *x,
    long inputs, int small, lanes_word *trends, lanes_word *result, lanes_word *cells, int goes_on
) {
#if LANES_WIDTH == 4
    const LANE_INTS each = {1, 2, 4, 8};
#else
    const LANE_INTS each = {0}; /* not asked for */
#endif
    (void)small;
    return LANES_NAME(live_part)(
        c, kind, ends, times, n, x, inputs, each, (LANE_INTS *)trends, (LANE_INTS *)result, 1, (LANE_INTS *)cells, goes_on
    );
}

#if LANES_WIDTH == 4
#include "active_queries_small.h"
#endif

#undef LIVE_MASK
#undef LIVE_EVERY
#undef LIVE_LANES
#undef LIVE_ONLY
#undef LIVE_ADD
#undef LIVE_ADD_REAL
#undef LIVE_PRODUCT
#undef LIVE_LARGER
