/* All planes of a chunk at once, which then share the bits of the edges: counts, `sums` planes of the like, and a plane
 * of ranks or none. For vectors of any width and any bits of an element: PLANES_INTS is the vector, and PLANES_MASK what
 * PLANES_LANES makes of the bits of some lanes; PLANES_EVERY, PLANES_ONLY, PLANES_BEGIN (a trend more in some lanes),
 * PLANES_JOIN, PLANES_BIND, PLANES_TIMES (of doubles) and PLANES_STORE are the operations.
 *
 * ties: whether `ends` has some event that is not the last one of its time. merged: whether each event may stand for several
 * (`times`, `live_part`), and many are not the last one of their time: there is no branch on that, but all that a step adds
 * is put off until its last event.
 */
LANE_INLINE void PLANES_NAME(
    const live_chunk *c, const int32_t *kind, const uint8_t *ends, const lanes_word *times, long n, const lanes_word *x,
    long inputs, const LANE_INTS each, LANE_INTS *result, long stride, LANE_INTS *cells, int goes_on, const int slots,
    const uint64_t edges, const int sums, const int ranks, const int whole, const int ties, const int merged
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
            if (merged) more[k][to] = none;
            if (merged) killed[to] = 0;
        }
    }
    for (long i = 0; i < n; i++) {
        const uint8_t *step = c->step + (long)LIVE_KIND(kind[i]) * c->stride;
        const lanes_word *value = x + (long)LIVE_PLACE(kind[i]) * inputs;
        const double repeat = merged ? times[LIVE_PLACE(kind[i])].d : 1.0;
        PLANES_INTS in[MOST_PLANES][MOST_SLOTS], held[MOST_PLANES][MOST_SLOTS];
        LANES_UNROLLED
        for (int k = 0; k < planes; k++) {
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                held[k][from] = merged && HOLDS(k) == LIVE_DOUBLES ? PLANES_TIMES(cell[k][from], repeat) : cell[k][from];
        }
        LANES_UNROLLED
        for (int to = 0; to < slots; to++) {
            LANES_UNROLLED
            for (int k = 0; k < planes; k++) in[k][to] = merged && k ? more[k][to] : (PLANES_INTS){0};
            int read = 0;
            LANES_UNROLLED
            for (int from = 0; from < slots; from++)
                if (edges & LIVE_EDGE(from, to)) {
                    const PLANES_MASK lanes = PLANES_LANES(step[from * slots + to]);
                    LANES_UNROLLED
                    for (int k = 0; k < planes; k++)
                        in[k][to] = read || (merged && k) ? PLANES_JOIN(in[k][to], held[k][from], lanes, HOLDS(k), whole)
                            : PLANES_ONLY(held[k][from], lanes);
                    read = 1;
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
        if (merged) {
            const unsigned last = ends[i];
            const PLANES_MASK now = PLANES_LANES(last), later = PLANES_LANES(~last);
            LANES_UNROLLED
            for (int to = 0; to < slots; to++) {
                if (kills) killed[to] |= step[(slots + 1) * slots + to];
                in[0][to] = PLANES_JOIN(PLANES_TIMES(in[0][to], repeat), more[0][to], PLANES_EVERY, LIVE_COUNTS, whole);
                LANES_UNROLLED
                for (int k = 0; k < planes; k++) {
                    if (kills) cell[k][to] = PLANES_ONLY(cell[k][to], PLANES_LANES(~(killed[to] & last)));
                    cell[k][to] = PLANES_JOIN(cell[k][to], in[k][to], now, HOLDS(k), whole);
                    more[k][to] = PLANES_ONLY(in[k][to], later);
                }
                killed[to] &= ~last;
            }
            continue;
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
#undef PLANES_TIMES
#undef PLANES_STORE
#undef PLANES_CELLS
