/* All planes of a chunk at once, which then share the bits of the edges: counts, `sums` planes of the like, and a plane
 * of ranks or none. For vectors of any width and any bits of an element: PLANES_INTS is the vector, and PLANES_MASK what
 * PLANES_LANES makes of the bits of some lanes; PLANES_EVERY, PLANES_ONLY, PLANES_BEGIN (a trend more in some lanes),
 * PLANES_JOIN, PLANES_BIND and PLANES_STORE are the operations.
 *
 * ties: whether `ends` has some event that is not the last one of its time.
 */
LANE_INLINE void PLANES_NAME(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, long n, const lanes_word *x, long inputs,
    const LANE_INTS each, LANE_INTS *result, long stride, LANE_INTS *cells, int goes_on, const int slots,
    const uint64_t edges, const int sums, const int ranks, const int whole, const int ties
) {
    enum { MOST_SLOTS = 3, MOST_PLANES = 4 };
    const int planes = 1 + sums + ranks, kills = c->kills;
    const unsigned bound = c->bound;
    PLANES_INTS cell[MOST_PLANES][MOST_SLOTS], more[MOST_PLANES][MOST_SLOTS];
    unsigned killed[MOST_SLOTS];
    int open = 0; /* whether events of the same time stand in `more` and `killed` */
#define HOLDS(k) ((k) == 0 ? LIVE_COUNTS : (k) <= sums ? (whole ? LIVE_INTEGERS : LIVE_DOUBLES) : LIVE_RANKS)
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            const PLANES_INTS none = {0};
            cell[k][to] = k ? none : PLANES_BEGIN(none, PLANES_LANES(c->begin[to]), whole);
#ifdef PLANES_CELLS
            if (goes_on) cell[k][to] = cells[k * slots + to];
#endif
        }
    }
    for (long i = 0; i < n; i++) {
        const uint8_t *step = c->step + (long)LIVE_KIND(kind[i]) * c->stride;
        const lanes_word *value = x + (long)LIVE_PLACE(kind[i]) * inputs;
        PLANES_INTS in[MOST_PLANES][MOST_SLOTS];
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) in[k][to] = (PLANES_INTS){0};
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to)) {
                    const PLANES_MASK lanes = PLANES_LANES(step[from * slots + to]);
                    LANES_UNROLLED
                    for (int k = 0; k < planes; k++)
                        in[k][to] = PLANES_JOIN(in[k][to], cell[k][from], lanes, HOLDS(k), whole);
                }
            if (edges & LIVE_EDGE(LIVE_START, to))
                in[0][to] = PLANES_BEGIN(in[0][to], PLANES_LANES(step[slots * slots + to]), whole);
            if (planes == 1 || !(bound >> to & 1)) continue;
            const uint8_t *bind = step + (slots + 2) * slots;
            LANES_UNROLLED
            for (int k = 1; k < planes; k++)
                for (int j = 0; j < c->plane[k].binds; j++, bind += 1 + slots)
                    in[k][to] = PLANES_BIND(
                        in[k][to], in[0][to], value[bind[0]], PLANES_LANES(bind[1 + to]), HOLDS(k), whole
                    );
        }
        if (__builtin_expect(ties && (open || !ends[i]), 0)) {
            for (int to = 0; to < slots; to++) {
                killed[to] = (open ? killed[to] : 0) | step[(slots + 1) * slots + to];
                for (int k = 0; k < planes; k++) {
                    if (open) in[k][to] = PLANES_JOIN(in[k][to], more[k][to], PLANES_EVERY, HOLDS(k), whole);
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
                if (kills) cell[k][to] = PLANES_ONLY(cell[k][to], PLANES_LANES(~killed[to]));
                cell[k][to] = PLANES_JOIN(cell[k][to], in[k][to], PLANES_EVERY, HOLDS(k), whole);
            }
        }
    }
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        PLANES_INTS sum = {0};
        LANES_UNROLLED
        for (int to = 0; to < slots; to++)
            sum = PLANES_JOIN(sum, cell[k][to], PLANES_LANES(c->final[to]), HOLDS(k), whole);
        PLANES_STORE(result + k * stride, sum, HOLDS(k));
#ifdef PLANES_CELLS
        if (!cells) continue;
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) cells[k * slots + to] = cell[k][to];
#endif
    }
#undef HOLDS
}

#undef PLANES_NAME
#undef PLANES_INTS
#undef PLANES_MASK
#undef PLANES_EVERY
#undef PLANES_LANES
#undef PLANES_ONLY
#undef PLANES_BEGIN
#undef PLANES_JOIN
#undef PLANES_BIND
#undef PLANES_STORE
#undef PLANES_CELLS
