/* Live lanes of integers where vectors have four elements: eight lanes side by side, of 32 bits each where the numbers of
 * a window are small, or else four and four; included by active_queries_body.h.
 *
 * Most windows have few events: then their counts, sums and extrema need no more bits. Of a rank the bits that those of
 * all small values have in common are left away until the end.
 */
#define LIVE_SMALL_RANK ((int64_t)(((uint64_t)1 << 63) - LIVE_SMALL_VALUE)) /* larger ones are those of small values */

typedef int32_t live_ints __attribute__((vector_size(32)));
typedef int32_t live_four __attribute__((vector_size(16)));

/* All ones in the lanes of some bits. */
LANE_INLINE live_ints live_small_lanes(unsigned bits) {
    const live_ints each = {1, 2, 4, 8, 16, 32, 64, 128};
    return (live_ints)(((live_ints)_mm256_set1_epi8((char)bits) & each) == each);
}

LANE_INLINE live_ints live_small_join(live_ints a, live_ints b, const int rank) {
    return rank ? (live_ints)_mm256_max_epi32((__m256i)a, (__m256i)b) : a + b;
}

/* As live_planes, of integers; ties: whether `ends` has some event that is not the last one of its time. */
LANE_INLINE void live_small_planes(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, long n, const lanes_word *x, long inputs,
    LANE_INTS *result, const int slots, const uint64_t edges, const int sums, const int ranks, const int ties
) {
    enum { MOST_SLOTS = 3, MOST_PLANES = 4 };
    const int planes = 1 + sums + ranks, kills = c->kills;
    const unsigned bound = c->bound;
    live_ints cell[MOST_PLANES][MOST_SLOTS], more[MOST_PLANES][MOST_SLOTS];
    unsigned killed[MOST_SLOTS];
    int open = 0; /* whether events of the same time stand in `more` and `killed` */
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        LANES_UNROLLED
        for (int to = 0; to < slots; to++)
            cell[k][to] = k ? (live_ints){0} : (live_ints){0} - live_small_lanes(c->begin[to]);
    }
    for (long i = 0; i < n; i++, x += inputs) {
        const uint8_t *step = c->step + (long)kind[i] * c->stride;
        live_ints in[MOST_PLANES][MOST_SLOTS];
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) in[k][to] = (live_ints){0};
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to)) {
                    const live_ints lanes = live_small_lanes(step[from * slots + to]);
                    LANES_UNROLLED
                    for (int k = 0; k < planes; k++)
                        in[k][to] = live_small_join(in[k][to], cell[k][from] & lanes, k > sums);
                }
            if (edges & LIVE_EDGE(LIVE_START, to)) in[0][to] -= live_small_lanes(step[slots * slots + to]);
            if (planes == 1 || !(bound >> to & 1)) continue;
            const uint8_t *bind = step + (slots + 2) * slots;
            LANES_UNROLLED
            for (int k = 1; k < planes; k++)
                for (int j = 0; j < c->plane[k].binds; j++, bind += 1 + slots) {
                    const live_ints lanes = live_small_lanes(bind[1 + to]);
                    const live_ints value = (live_ints){0} + (int32_t)x[bind[0]].i;
                    in[k][to] = k <= sums
                        ? in[k][to] + (in[0][to] * value & lanes)
                        : live_small_join(in[k][to], (in[0][to] != 0) & lanes & (value + LIVE_SMALL_VALUE), 1);
                }
        }
        if (ties && (open || !ends[i])) {
            for (int to = 0; to < slots; to++) {
                killed[to] = (open ? killed[to] : 0) | step[(slots + 1) * slots + to];
                for (int k = 0; k < planes; k++) {
                    if (open) in[k][to] = live_small_join(in[k][to], more[k][to], k > sums);
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
            if (kills) {
                const live_ints dead = live_small_lanes(killed[to]);
                LANES_UNROLLED
                for (int k = 0; k < planes; k++) cell[k][to] &= ~dead;
            }
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) cell[k][to] = live_small_join(cell[k][to], in[k][to], k > sums);
        }
    }
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        live_ints sum = {0};
        LANES_UNROLLED
        for (int to = 0; to < slots; to++)
            sum = live_small_join(sum, cell[k][to] & live_small_lanes(c->final[to]), k > sums);
        LANES_UNROLLED
        for (int half = 0; half < 2; half++) {
            const __m128i four = half ? _mm256_extracti128_si256((__m256i)sum, 1) : _mm256_castsi256_si128((__m256i)sum);
            LANE_INTS wide = (LANE_INTS)_mm256_cvtepi32_epi64(four);
            if (k > sums) wide += (LANE_INTS)(wide != 0) & LIVE_SMALL_RANK;
            result[k * 2 + half] = wide;
        }
    }
}

/* As live_window for eight lanes; small: what holds of the numbers of the window (active_queries.h). */
static uint64_t live_window_halves(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, long n, const lanes_word *x, long inputs, int small,
    lanes_word *trends, lanes_word *result
) {
    const LANE_INTS low = {1, 2, 4, 8}, high = {16, 32, 64, 128};
    LANE_INTS *to = (LANE_INTS *)result;
    uint64_t some;
    int lean = !(c->edges & LIVE_EDGE(0, 0)); /* no event follows another one like it at the beginning of a pattern */
#define PLANES(slots, edges, sums, ranks, ties) \
    live_small_planes(c, kind, ends, n, x, inputs, to, slots, edges, sums, ranks, ties)
#define TIES(slots, edges, sums, ranks) \
    if (ends) PLANES(slots, edges, sums, ranks, 1); else PLANES(slots, edges, sums, ranks, 0)
#define GRAPH(slots, edges) switch (c->shape) { \
        case LIVE_SHAPE(0, 0, 1): TIES(slots, edges, 0, 0); break; \
        case LIVE_SHAPE(1, 0, 1): TIES(slots, edges, 1, 0); break; \
        case LIVE_SHAPE(2, 0, 1): TIES(slots, edges, 2, 0); break; \
        case LIVE_SHAPE(0, 1, 1): TIES(slots, edges, 0, 1); break; \
        case LIVE_SHAPE(2, 1, 1): TIES(slots, edges, 2, 1); break; \
    }
    if (c->shape >= 0 && small >= (c->shape & LIVE_SHAPE(0, 1, 0) ? LIVE_SMALL_RANKS : LIVE_SMALL)) {
        if (c->slots == 2 && lean) GRAPH(2, LIVE_TWO & ~LIVE_EDGE(0, 0))
        else if (c->slots == 2) GRAPH(2, LIVE_TWO)
        else if (lean) GRAPH(3, LIVE_THREE & ~LIVE_EDGE(0, 0))
        else GRAPH(3, LIVE_THREE)
        return LANES_NAME(lanes_some)(to[0]) | LANES_NAME(lanes_some)(to[1]) << 4;
    }
#undef GRAPH
#undef TIES
#undef PLANES
    some = LANES_NAME(live_part)(c, kind, ends, n, x, inputs, low, (LANE_INTS *)trends, to, 2);
    if (c->lanes <= 4) return some;
    return some | LANES_NAME(live_part)(c, kind, ends, n, x, inputs, high, (LANE_INTS *)trends, to + 1, 2) << 4;
}

static const lanes_machine live_machine_halves = {.width = 8, .window = live_window_halves};
