/* The loops of _live.h for vectors of LANES_WIDTH elements; included by _lanes_body.h. */

#if LANES_WIDTH == 8
#define LIVE_ONLY(a, bits) ((LANE_INTS)_mm512_maskz_mov_epi64((__mmask8)(bits), (__m512i)(a)))
#define LIVE_ADD(a, b, bits) \
    ((LANE_INTS)_mm512_mask_add_epi64((__m512i)(a), (__mmask8)(bits), (__m512i)(a), (__m512i)(b)))
#define LIVE_ADD_REAL(a, b, bits) \
    ((LANE_INTS)_mm512_mask_add_pd((__m512d)(a), (__mmask8)(bits), (__m512d)(a), (__m512d)(b)))
#define LIVE_LARGER(a, b, bits) \
    ((LANE_INTS)_mm512_mask_max_epu64((__m512i)(a), (__mmask8)(bits), (__m512i)(a), (__m512i)(b)))
#else
LANE_INLINE LANE_INTS LANES_NAME(live_only)(LANE_INTS a, unsigned bits) {
#if LANES_WIDTH == 4
    return a & -(((LANE_INTS){0} + (int64_t)bits) >> (LANE_INTS){0, 1, 2, 3} & 1);
#elif LANES_WIDTH == 2
    return a & (LANE_INTS){-(int64_t)(bits & 1), -(int64_t)(bits >> 1 & 1)};
#else
    return a & -(int64_t)(bits & 1);
#endif
}
#define LIVE_ONLY(a, bits) LANES_NAME(live_only)(a, bits)
#define LIVE_ADD(a, b, bits) ((a) + LIVE_ONLY(b, bits))
#define LIVE_ADD_REAL(a, b, bits) ((LANE_INTS)((LANE_DOUBLES)(a) + (LANE_DOUBLES)LIVE_ONLY(b, bits)))
#define LIVE_LARGER(a, b, bits) LANES_NAME(lanes_larger)(a, LIVE_ONLY(b, bits))
#endif

LANE_INLINE LANE_INTS LANES_NAME(live_join)(LANE_INTS a, LANE_INTS b, unsigned bits, const int holds, const int whole) {
    if (holds == LIVE_RANKS) return LIVE_LARGER(a, b, bits);
    return holds == LIVE_INTEGERS || (holds == LIVE_COUNTS && whole) ? LIVE_ADD(a, b, bits) : LIVE_ADD_REAL(a, b, bits);
}

/* A plane, and what an event's value adds to it for so many trends. */
LANE_INLINE LANE_INTS LANES_NAME(live_bind)(
    LANE_INTS a, LANE_INTS trends, lanes_word value, unsigned bits, const int holds, const int whole
) {
    if (holds == LIVE_INTEGERS) return LIVE_ADD(a, trends * value.i, bits);
    if (holds == LIVE_RANKS) return LIVE_LARGER(a, (LANE_INTS)(trends != 0) & value.i, bits);
    LANE_DOUBLES weight = whole ? __builtin_convertvector(trends, LANE_DOUBLES) : (LANE_DOUBLES)trends;
    return LIVE_ADD_REAL(a, (LANE_INTS)(weight * value.d), bits);
}

/* What stands in the final cells of a plane after all events; trends: what each has extended, by the slot where it goes
 * to, which the plane of counts writes and the others read. */
LANE_INLINE void LANES_NAME(live_plane)(
    const live_chunk *c, const live_plane *plane, const int32_t *kind, const uint8_t *ends, long n,
    const lanes_word *x, long inputs, LANE_INTS *trends, LANE_INTS *result, const int slots, const uint64_t edges,
    const int holds, const int whole
) {
    const unsigned every = (1u << LANES_WIDTH) - 1;
    const LANE_INTS one = whole ? (LANE_INTS){0} + 1 : (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
    LANE_INTS cell[LIVE_SLOTS], more[LIVE_SLOTS], sum = {0};
    unsigned killed[LIVE_SLOTS];
    LANES_UNROLLED
    for (int to = 0; to < slots; to++) {
        cell[to] = holds == LIVE_COUNTS ? LIVE_ONLY(one, c->begin[to]) : (LANE_INTS){0};
        more[to] = (LANE_INTS){0};
        killed[to] = 0;
    }
    for (long i = 0; i < n; i++, trends += slots, x += inputs) {
        const uint8_t *step = c->step + (long)kind[i] * c->stride;
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANE_INTS in = {0};
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to))
                    in = LANES_NAME(live_join)(in, cell[from], step[from * slots + to], holds, whole);
            if (holds == LIVE_COUNTS) {
                if (edges & LIVE_EDGE(LIVE_START, to))
                    in = LANES_NAME(live_join)(in, one, step[slots * slots + to], holds, whole);
                if (c->planes > 1) trends[to] = in;
            }
            const uint8_t *bind = step + plane->bind;
            for (int j = 0; holds != LIVE_COUNTS && j < plane->binds; j++, bind += 1 + slots) {
                in = LANES_NAME(live_bind)(in, trends[to], x[bind[0]], bind[1 + to], holds, whole);
            }
            more[to] = LANES_NAME(live_join)(more[to], in, every, holds, whole);
            if (c->kills) killed[to] |= step[(slots + 1) * slots + to];
        }
        if (ends && !ends[i]) continue; /* of one time: all reads, then the guards, then all writes */
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            if (c->kills) cell[to] = LIVE_ONLY(cell[to], every & ~killed[to]);
            cell[to] = LANES_NAME(live_join)(cell[to], more[to], every, holds, whole);
            more[to] = (LANE_INTS){0};
            killed[to] = 0;
        }
    }
    LANES_UNROLLED
    for (int to = 0; to < slots; to++)
        sum = LANES_NAME(live_join)(sum, cell[to], c->final[to], holds, whole);
    *result = sum;
}

/* The same for all planes at once, which then share the bits of the edges: counts, `sums` planes of the like, and a plane
 * of ranks or none. */
LANE_INLINE void LANES_NAME(live_planes)(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, long n, const lanes_word *x, long inputs,
    LANE_INTS *result, const int slots, const uint64_t edges, const int sums, const int ranks, const int whole
) {
    enum { MOST_SLOTS = 3, MOST_PLANES = 4 };
    const int planes = 1 + sums + ranks, kills = c->kills;
    const unsigned every = (1u << LANES_WIDTH) - 1, bound = c->bound;
    const LANE_INTS one = whole ? (LANE_INTS){0} + 1 : (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
    LANE_INTS cell[MOST_PLANES][MOST_SLOTS], more[MOST_PLANES][MOST_SLOTS];
    unsigned killed[MOST_SLOTS];
    int open = 0; /* whether events of the same time stand in `more` and `killed` */
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) cell[k][to] = k ? (LANE_INTS){0} : LIVE_ONLY(one, c->begin[to]);
    }
#define HOLDS(k) ((k) == 0 ? LIVE_COUNTS : (k) <= sums ? (whole ? LIVE_INTEGERS : LIVE_DOUBLES) : LIVE_RANKS)
    for (long i = 0; i < n; i++, x += inputs) {
        const uint8_t *step = c->step + (long)kind[i] * c->stride;
        LANE_INTS in[MOST_PLANES][MOST_SLOTS];
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) in[k][to] = (LANE_INTS){0};
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to)) {
                    const unsigned bits = step[from * slots + to];
                    LANES_UNROLLED
                    for (int k = 0; k < planes; k++)
                        in[k][to] = LANES_NAME(live_join)(in[k][to], cell[k][from], bits, HOLDS(k), whole);
                }
            if (edges & LIVE_EDGE(LIVE_START, to))
                in[0][to] = LANES_NAME(live_join)(in[0][to], one, step[slots * slots + to], LIVE_COUNTS, whole);
            if (planes == 1 || !(bound >> to & 1)) continue;
            const uint8_t *bind = step + (slots + 2) * slots;
            LANES_UNROLLED
            for (int k = 1; k < planes; k++)
                for (int j = 0; j < c->plane[k].binds; j++, bind += 1 + slots)
                    in[k][to] = LANES_NAME(live_bind)(in[k][to], in[0][to], x[bind[0]], bind[1 + to], HOLDS(k), whole);
        }
        if (__builtin_expect(ends && (open || !ends[i]), 0)) {
            for (int to = 0; to < slots; to++) {
                killed[to] = (open ? killed[to] : 0) | step[(slots + 1) * slots + to];
                for (int k = 0; k < planes; k++) {
                    if (open) in[k][to] = LANES_NAME(live_join)(in[k][to], more[k][to], every, HOLDS(k), whole);
                    more[k][to] = in[k][to];
                }
            }
            open = !ends[i];
            if (open) continue; /* all reads of a step, then its guards, then all writes */
        } else if (kills) {
            LANES_UNROLLED
            for (int to = 0; to < slots; to++) killed[to] = step[(slots + 1) * slots + to];
        }
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) {
                if (kills) cell[k][to] = LIVE_ONLY(cell[k][to], every & ~killed[to]);
                cell[k][to] = LANES_NAME(live_join)(cell[k][to], in[k][to], every, HOLDS(k), whole);
            }
        }
    }
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        LANE_INTS sum = {0};
        LANES_UNROLLED
        for (int to = 0; to < slots; to++)
            sum = LANES_NAME(live_join)(sum, cell[k][to], c->final[to], HOLDS(k), whole);
        result[k] = sum;
    }
#undef HOLDS
}

/* Take all events of a window; ends: whether an event is the last one of its time, or a null pointer where each is;
 * result: [planes][width]. Returns the bits of the lanes with trends. */
static uint64_t LANES_NAME(live_window)(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, long n, const lanes_word *x, long inputs,
    lanes_word *trends, lanes_word *result
) {
#define PLANES(slots, edges, sums, ranks, whole) \
    LANES_NAME(live_planes)(c, kind, ends, n, x, inputs, (LANE_INTS *)result, slots, edges, sums, ranks, whole)
#define GRAPH(slots, edges) switch (c->shape) { \
        case LIVE_SHAPE(0, 0, 1): PLANES(slots, edges, 0, 0, 1); break; \
        case LIVE_SHAPE(1, 0, 1): PLANES(slots, edges, 1, 0, 1); break; \
        case LIVE_SHAPE(2, 0, 1): PLANES(slots, edges, 2, 0, 1); break; \
        case LIVE_SHAPE(0, 1, 1): PLANES(slots, edges, 0, 1, 1); break; \
        case LIVE_SHAPE(2, 1, 1): PLANES(slots, edges, 2, 1, 1); break; \
        case LIVE_SHAPE(0, 0, 0): PLANES(slots, edges, 0, 0, 0); break; \
        case LIVE_SHAPE(1, 0, 0): PLANES(slots, edges, 1, 0, 0); break; \
        case LIVE_SHAPE(2, 0, 0): PLANES(slots, edges, 2, 0, 0); break; \
        case LIVE_SHAPE(0, 1, 0): PLANES(slots, edges, 0, 1, 0); break; \
        case LIVE_SHAPE(2, 1, 0): PLANES(slots, edges, 2, 1, 0); break; \
    }
#define PLANE(holds, whole) LANES_NAME(live_plane)( \
        c, plane, kind, ends, n, x, inputs, (LANE_INTS *)trends, (LANE_INTS *)result + i, c->slots, c->edges, holds, whole)
    if (c->shape >= 0 && c->slots == 2) {
        GRAPH(2, LIVE_TWO)
    } else if (c->shape >= 0) {
        GRAPH(3, LIVE_THREE)
    } else {
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
#undef GRAPH
#undef PLANES
    return LANES_NAME(lanes_some)(*(const LANE_INTS *)result);
}

#undef LIVE_ONLY
#undef LIVE_ADD
#undef LIVE_ADD_REAL
#undef LIVE_LARGER
