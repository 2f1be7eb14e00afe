/* What the events of a step add to the cells of a block, and what a window gives; part of lanes_body.h. */

/* One more trend in the lanes of a mask. */
LANE_INLINE void LANES_NAME(lanes_begun)(
    LANE_INTS *sum, LANE_INTS mask, const int planes, const int whole, const int scaled
) {
    LANE_INTS one = (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
    if (scaled) /* no other sum is changed, and the count's exponent is at least that of 1 */
        one = (LANE_INTS)LANES_NAME(lanes_down)((LANE_INTS){0}, sum[planes]);
    if (whole) sum[0] -= mask;
    else sum[0] = (LANE_INTS)((LANE_DOUBLES)sum[0] + (LANE_DOUBLES)(one & mask));
}

/* What the lanes of a group read of its sources from `first` on, added up. */
LANE_INLINE void LANES_NAME(lanes_inflow)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, int first, const LANE_INTS *chunk, int start,
    LANE_INTS *sum, const int planes, const int whole, const int linear, const int ranks, const int scaled
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const int vectors = LANES_VECTORS(planes, whole, linear), held = scaled ? vectors : planes;
    int i = first;
    if (i < g->sources_end && p->source[i].slot != LANES_START) {
        const LANE_INTS mask = masks[p->source[i].mask], *cell = chunk + p->source[i].slot * vectors;
        LANES_UNROLLED
        for (int k = 0; k < held; k++) sum[k] = cell[k] & mask;
        i++;
    } else {
        LANES_UNROLLED
        for (int k = 0; k < held; k++) sum[k] = (LANE_INTS){0};
    }
    for (; i < g->sources_end; i++) {
        LANE_INTS mask = masks[p->source[i].mask];
        if (p->source[i].slot != LANES_START) {
            LANES_NAME(lanes_plus)(
                sum, chunk + p->source[i].slot * vectors, mask, planes, whole, linear, ranks, scaled
            );
        } else if (start) {
            LANES_NAME(lanes_begun)(sum, mask, planes, whole, scaled);
        }
    }
}

/* What the lanes of a group read of its sources from some on, resolved once for many windows where these are the empty
 * trend and one slot at most. */
typedef struct {
    int few, starts;
    long at;               /* of the slot in a chunk; its mask is zero where there is none */
    LANE_INTS mask, start; /* the lanes that read it, and those that read the empty trend */
} LANES_NAME(lanes_flow);
#define LANE_FLOW LANES_NAME(lanes_flow)

LANE_INLINE LANE_FLOW LANES_NAME(lanes_flow_of)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, int first, const int vectors
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    LANE_FLOW flow = {1, 0, 0, {0}, {0}};
    int slots = 0;
    for (int i = first; i < g->sources_end; i++) {
        if (p->source[i].slot == LANES_START) {
            flow.start = masks[p->source[i].mask];
            flow.starts++;
        } else {
            flow.mask = masks[p->source[i].mask];
            flow.at = (long)p->source[i].slot * vectors;
            slots++;
        }
    }
    flow.few = slots < 2 && flow.starts < 2;
    return flow;
}

LANE_INLINE void LANES_NAME(lanes_flow_in)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, const LANE_FLOW *flow, int first,
    const LANE_INTS *chunk, int start, LANE_INTS *sum, const int planes, const int linear, const int ranks,
    const int scaled
) {
    if (!flow->few) {
        LANES_NAME(lanes_inflow)(s, p, g, first, chunk, start, sum, planes, 0, linear, ranks, scaled);
        return;
    }
    const int held = scaled ? planes + linear : planes;
    LANES_UNROLLED
    for (int k = 0; k < held; k++) sum[k] = chunk[flow->at + k] & flow->mask;
    if (flow->starts && start) LANES_NAME(lanes_begun)(sum, flow->start, planes, 0, scaled);
}

/* Notes lanes of a chunk in which events extend a trend; nothing where nobody asks. */
LANE_INLINE void LANES_NAME(lanes_note)(uint64_t *found, int chunk, uint64_t lanes) {
    const unsigned lane = (unsigned)chunk * LANES_WIDTH;
    if (found) found[lane / 64] |= lanes << lane % 64;
}

/* What the lanes of a group read, times what m events make of it, into a cell `sum`; 0 where there is no trend in it. */
LANE_INLINE int LANES_NAME(lanes_sum)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, const lanes_word *cells, const lanes_word *x,
    int64_t m, int start, LANE_INTS *sum, uint64_t *found, const int planes, const int whole, const int linear,
    const int ranks, const int scaled
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const int vectors = LANES_VECTORS(planes, whole, linear);
    const LANE_INTS *chunk = (const LANE_INTS *)cells + (long)g->chunk * s->slots * vectors;
    LANES_NAME(lanes_inflow)(s, p, g, g->sources, chunk, start, sum, planes, whole, linear, ranks, scaled);
    LANE_INTS trends = sum[0], any = (LANE_INTS)(trends != 0);
    const uint64_t some = LANES_NAME(lanes_some)(trends);
    if (!some) return 0; /* then all of it is zero */
    LANES_NAME(lanes_note)(found, g->chunk, some);
    LANE_DOUBLES weight = whole ? __builtin_convertvector(trends, LANE_DOUBLES) : (LANE_DOUBLES)trends;
    int64_t repeat = 1, shift = 1, raised = 0;
    double real_repeat = 1.0, real_shift = 1.0;
    if (m != 1) {
        repeat = m;
        real_repeat = (double)m;
        if (g->loop) {
            repeat = m < 63 ? ((int64_t)1 << m) - 1 : -1;
            shift = m < 64 ? (int64_t)((uint64_t)1 << (m - 1)) : 0;
            /* sums of mantissas are below 2^260, the factor below 2^512, inputs below 2^212: nothing overflows */
            if (scaled) raised = m / LANES_STEP * LANES_STEP;
            real_repeat = lanes_power(m - raised) - (m < 64 ? 1.0 : 0.0);
            real_shift = lanes_power(m - raised - 1);
        }
        LANES_UNROLLED
        for (int k = 0; k < linear; k++) {
            if (k < whole) sum[k] *= repeat;
            else sum[k] = (LANE_INTS)((LANE_DOUBLES)sum[k] * real_repeat);
            if (scaled) sum[planes + k] += raised & (LANE_INTS)(sum[k] != 0);
        }
    }
    const lanes_bind *b = p->bind + g->binds, *const end = p->bind + g->binds_end; /* in the order of planes */
    LANES_UNROLLED
    for (int k = 1; k < planes; k++) {
        for (; b < end && b->plane == k; b++) {
            LANE_INTS mask = masks[b->mask];
            if (k < whole) {
                sum[k] += (trends & mask) * (int64_t)((uint64_t)x[b->input].i * (uint64_t)shift);
            } else if (k >= linear) {
                sum[k] = LANES_NAME(lanes_either)(sum[k], any & mask & x[b->input].i, k < ranks);
            } else {
                LANE_INTS more = (LANE_INTS)((LANE_DOUBLES)((LANE_INTS)weight & mask) * (x[b->input].d * real_shift));
                if (scaled) LANES_NAME(lanes_scaled_add)(&sum[k], &sum[planes + k], more, sum[planes] & mask);
                else sum[k] = (LANE_INTS)((LANE_DOUBLES)sum[k] + (LANE_DOUBLES)more);
            }
        }
    }
    if (scaled && m != 1 && g->loop) /* other events make no more of it than the step after the addition takes back */
        while (__builtin_expect(LANES_NAME(lanes_lower)(sum, planes, linear), 0)) continue;
    return 1;
}

LANE_INLINE void LANES_NAME(lanes_add)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, lanes_word *cells, const LANE_INTS *sum,
    const int planes, const int whole, const int linear, const int ranks, const int scaled
) {
    const int vectors = LANES_VECTORS(planes, whole, linear);
    LANE_INTS *chunk = (LANE_INTS *)cells + (long)g->chunk * s->slots * vectors;
    for (int i = g->targets; i < g->targets_end; i++) {
        LANE_INTS *cell = chunk + p->target[i] * vectors;
        LANES_NAME(lanes_plus)(cell, sum, ~(LANE_INTS){0}, planes, whole, linear, ranks, scaled);
        if (scaled) LANES_NAME(lanes_lower)(cell, planes, linear);
    }
}

static void LANES_NAME(lanes_kill)(const lanes_shape *s, const lanes_program *p, lanes_word *cells) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    for (int i = 0; i < p->kills; i++) {
        const lanes_kill *kill = &p->kill[i];
        LANE_INTS *cell = (LANE_INTS *)cells + ((long)kill->chunk * s->slots + kill->slot) * s->vectors;
        LANES_UNROLLED
        for (int k = 0; k < s->vectors; k++) cell[k] &= ~masks[kill->mask];
    }
}

/* Small numbers of planes are compiled as constants, so that sums stay in registers. `plain`: doubles have exponents, but
 * all of them are zero, and nothing is done with them. A flag may be taken for a rank, but not the other way round. */
#define LANES_BY_SHAPE(CALL, plain) do { \
    int planes = s->planes, whole = s->whole, linear = s->linear; \
    if (s->vectors > s->planes && (plain)) LANES_BY_DOUBLES(CALL, 0); \
    else if (s->vectors > s->planes) LANES_BY_DOUBLES(CALL, 1); \
    else if (planes == 1) CALL(1, 1, 1, 1, 0); \
    else if (planes == 2 && whole == 2) CALL(2, 2, 2, 2, 0); \
    else if (planes == 2 && linear == 1) CALL(2, 1, 1, 1, 0); \
    else if (planes == 3 && whole == 3) CALL(3, 3, 3, 3, 0); \
    else if (planes == 4 && whole == 3 && linear == 3) CALL(4, 3, 3, 3, 0); \
    else if (planes == 3 && whole == 2 && linear == 2) CALL(3, 2, 2, 2, 0); \
    else if (planes == 3 && whole == 2 && linear == 3) CALL(3, 2, 3, 3, 0); \
    else CALL(planes, whole, linear, s->ranks, 0); \
} while (0)
#define LANES_BY_DOUBLES(CALL, scaled) do { \
    if (planes == 1) CALL(1, 0, 1, 1, scaled); \
    else if (planes == 2 && linear == 2) CALL(2, 0, 2, 2, scaled); \
    else if (planes == 2) CALL(2, 0, 1, 1, scaled); \
    else if (planes == 3 && linear == 3) CALL(3, 0, 3, 3, scaled); \
    else if (planes == 3 && linear == 2 && s->ranks == 3) CALL(3, 0, 2, 3, scaled); \
    else if (planes == 3 && linear == 2) CALL(3, 0, 2, 2, scaled); \
    else CALL(planes, 0, linear, s->ranks, scaled); \
} while (0)

/* The sums of a cell, and of what flows into it, doubled by each event of a burst but for the last time; `added` is what
 * its events add per trend, by plane. Both have one exponent for all their sums, so that they are aligned at once. */
LANE_INLINE void LANES_NAME(lanes_double_alike)(
    LANE_INTS *cell, const LANE_INTS *sum, LANE_INTS lanes, double repeat, const LANE_DOUBLES *added, const int planes,
    const int linear
) {
    const LANE_INTS most = LANES_NAME(lanes_most)(cell[planes], sum[planes]);
    const LANE_DOUBLES down = LANES_NAME(lanes_down)(cell[planes], most);
    const LANE_DOUBLES more = LANES_NAME(lanes_down)(sum[planes], most), times = more * repeat;
    const LANE_DOUBLES again = (LANE_DOUBLES)((LANE_INTS)(down * repeat) & lanes) + down;
    const LANE_DOUBLES held = (LANE_DOUBLES)((LANE_INTS)((LANE_DOUBLES)cell[0] * down) & lanes);
    const LANE_DOUBLES trends = held + (LANE_DOUBLES)sum[0] * more;
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        LANE_DOUBLES total = (LANE_DOUBLES)cell[k] * again + (LANE_DOUBLES)sum[k] * times;
        if (k) total += trends * added[k];
        cell[k] = (LANE_INTS)total;
        cell[planes + k] = most;
    }
}

/* The same where exponents differ. */
LANE_INLINE void LANES_NAME(lanes_double)(
    LANE_INTS *cell, const LANE_INTS *sum, LANE_INTS lanes, double repeat, const LANE_DOUBLES *added, const int planes,
    const int linear
) {
    LANE_DOUBLES trends = {0};
    LANE_INTS exponent = {0};
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        LANE_INTS most = cell[planes + k];
        LANE_DOUBLES down, more_down;
        LANES_NAME(lanes_factors)(cell[k], sum[k], &most, sum[planes + k], &down, &more_down);
        LANE_INTS total = (LANE_INTS)((LANE_DOUBLES)cell[k] * down);
        LANE_DOUBLES extended = (LANE_DOUBLES)(total & lanes) + (LANE_DOUBLES)sum[k] * more_down;
        total = (LANE_INTS)((LANE_DOUBLES)total + extended * repeat);
        if (k) {
            LANES_NAME(lanes_scaled_add)(&total, &most, (LANE_INTS)(trends * added[k]), exponent);
        } else {
            trends = extended;
            exponent = most;
        }
        cell[k] = total;
        cell[planes + k] = most;
    }
}

/* The same where numbers are plain. */
LANE_INLINE void LANES_NAME(lanes_double_plain)(
    LANE_INTS *cell, const LANE_INTS *sum, LANE_INTS lanes, double repeat, const LANE_DOUBLES *added, const int linear
) {
    const LANE_DOUBLES trends = (LANE_DOUBLES)(cell[0] & lanes) + (LANE_DOUBLES)sum[0];
    cell[0] = (LANE_INTS)((LANE_DOUBLES)cell[0] + trends * repeat);
    LANES_UNROLLED
    for (int k = 1; k < linear; k++) {
        const LANE_DOUBLES extended = (LANE_DOUBLES)(cell[k] & lanes) + (LANE_DOUBLES)sum[k];
        cell[k] = (LANE_INTS)((LANE_DOUBLES)cell[k] + extended * repeat + trends * added[k]);
    }
}

/* What the events of a burst add to each plane of the lanes of a group: per trend, or to an extremum. */
LANE_INLINE void LANES_NAME(lanes_added)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, const lanes_word *x, double shift,
    LANE_DOUBLES *added, const int planes, const int linear
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const lanes_bind *b = p->bind + g->binds, *const end = p->bind + g->binds_end; /* in the order of planes */
    LANES_UNROLLED
    for (int k = 1; k < planes; k++) {
        LANE_DOUBLES more = {0};
        for (; b < end && b->plane == k; b++) {
            const LANE_INTS mask = masks[b->mask];
            if (k >= linear) more = (LANE_DOUBLES)LANES_NAME(lanes_larger)((LANE_INTS)more, mask & x[b->input].i);
            else more += (LANE_DOUBLES)(mask & (LANE_INTS)((LANE_DOUBLES){0} + x[b->input].d * shift));
        }
        added[k] = more;
    }
}

/* A burst of less than LANES_STEP / 2 events in lanes whose only target is their first source, scaled: what stands there
 * is read and written once, and one step brings it back below LANES_MOST_MANTISSA. Where numbers are plain, a burst may
 * be of any size that they can hold, and empty cells are no exception: there is nothing to branch on. Groups that differ
 * in their chunk only are taken at once. */
LANE_INLINE void LANES_NAME(lanes_grow)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, lanes_word *const *cells, int windows,
    int begins, const lanes_word *x, int64_t m, uint64_t *found, const int planes, const int linear, const int ranks,
    const int scaled
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const lanes_source *source = &p->source[g->sources];
    const int vectors = planes + linear;
    const long size = (long)s->slots * vectors;
    const double repeat = lanes_power(m) - (m < 64 ? 1.0 : 0.0);
    const LANE_INTS lanes = masks[source->mask];
    const LANE_FLOW flow = LANES_NAME(lanes_flow_of)(s, p, g, g->sources + 1, vectors);
    LANE_DOUBLES added[LANES_MOST_PLANES];
    LANE_INTS sum[2 * LANES_MOST_PLANES];
    const long held = (long)source->slot * vectors;
    const int alike = g->alike; /* the compiler cannot know that no cell lies there */
    LANES_NAME(lanes_added)(s, p, g, x, lanes_power(m - 1), added, planes, linear);
    for (int window = 0; window < windows; window++) {
        LANE_INTS *chunk = (LANE_INTS *)cells[window] + g->chunk * size;
        for (int n = 0; n <= alike; n++, chunk += size) {
            LANE_INTS *cell = chunk + held;
            LANES_NAME(lanes_flow_in)(
                s, p, g, &flow, g->sources + 1, chunk, window >= begins, sum, planes, linear, ranks, scaled
            );
            const LANE_INTS trends = (cell[0] & lanes) | sum[0], none = (LANE_INTS)(trends == 0);
            if (scaled || found) {
                const uint64_t some = LANES_NAME(lanes_some)(trends);
                if (!some) continue; /* then all of it is zero */
                LANES_NAME(lanes_note)(found, g->chunk + n, some);
            }
            if (!scaled) {
                LANES_NAME(lanes_double_plain)(cell, sum, lanes, repeat, added, linear);
            } else {
                LANE_INTS apart = LANES_NAME(lanes_apart)(cell, planes, linear);
                apart |= LANES_NAME(lanes_apart)(sum, planes, linear);
                if (linear == 1 || !LANES_NAME(lanes_any)(apart))
                    LANES_NAME(lanes_double_alike)(cell, sum, lanes, repeat, added, planes, linear);
                else
                    LANES_NAME(lanes_double)(cell, sum, lanes, repeat, added, planes, linear);
                LANES_NAME(lanes_lower)(cell, planes, linear);
            }
            LANES_UNROLLED
            for (int k = linear; k < planes; k++) {
                const LANE_INTS more = LANES_NAME(lanes_either)(
                    sum[k], LANES_NAME(lanes_but)((LANE_INTS)added[k], none), k < ranks
                );
                cell[k] = LANES_NAME(lanes_either)(cell[k], more, k < ranks);
            }
        }
    }
}

/* What lanes_sum and lanes_add do, for some windows whose numbers are plain: what does not depend on a window is found
 * once, and there is nothing to branch on. */
LANE_INLINE void LANES_NAME(lanes_extend)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, lanes_word *const *cells, int windows,
    int begins, const lanes_word *x, int64_t m, uint64_t *found, const int planes, const int linear, const int ranks
) {
    const int vectors = planes + linear;
    const long chunk = (long)g->chunk * s->slots * vectors;
    const double repeat = g->loop ? lanes_power(m) - (m < 64 ? 1.0 : 0.0) : (double)m;
    LANE_DOUBLES added[LANES_MOST_PLANES];
    LANE_INTS sum[2 * LANES_MOST_PLANES];
    const LANE_FLOW flow = LANES_NAME(lanes_flow_of)(s, p, g, g->sources, vectors);
    LANES_NAME(lanes_added)(s, p, g, x, g->loop ? lanes_power(m - 1) : 1.0, added, planes, linear);
    for (int window = 0; window < windows; window++) {
        LANE_INTS *from = (LANE_INTS *)cells[window] + chunk;
        LANES_NAME(lanes_flow_in)(
            s, p, g, &flow, g->sources, from, window >= begins, sum, planes, linear, ranks, 0
        );
        const LANE_DOUBLES trends = (LANE_DOUBLES)sum[0];
        const LANE_INTS none = (LANE_INTS)(sum[0] == 0);
        LANES_UNROLLED
        for (int k = 0; k < linear; k++) {
            LANE_DOUBLES more = (LANE_DOUBLES)sum[k] * repeat;
            if (k) more += trends * added[k];
            sum[k] = (LANE_INTS)more;
        }
        LANES_UNROLLED
        for (int k = linear; k < planes; k++)
            sum[k] = LANES_NAME(lanes_either)(
                sum[k], LANES_NAME(lanes_but)((LANE_INTS)added[k], none), k < ranks
            );
        for (int i = g->targets; i < g->targets_end; i++)
            LANES_NAME(lanes_plus)(
                from + p->target[i] * vectors, sum, ~(LANE_INTS){0}, planes, 0, linear, ranks, 0
            );
        if (found) LANES_NAME(lanes_note)(found, g->chunk, LANES_NAME(lanes_some)((LANE_INTS)trends));
    }
}

/* The bits of the lanes in which events can do no more than begin trends. */
LANE_INLINE void LANES_NAME(lanes_note_begun)(const lanes_shape *s, const lanes_program *p, uint64_t *found) {
    for (unsigned i = 0; i * 64 < (unsigned)s->chunks * LANES_WIDTH; i++) found[i] |= p->found[i];
}

/* Such events: m more trends. The lanes are few and far between, so each has its turn. */
LANE_INLINE void LANES_NAME(lanes_start)(
    const lanes_program *p, lanes_word *cells, int64_t m, const int planes, const int whole, const int scaled
) {
    for (int i = 0; i < p->begun; i++) {
        lanes_word *count = cells + p->begin[i];
        const int64_t exponent = scaled ? count[planes * LANES_WIDTH].i : 0;
        if (whole) count->i += m;
        else if (exponent <= LANES_STEP) count->d += exponent ? (double)m * LANES_LEAST_MANTISSA : (double)m;
    }
}

LANE_INLINE void LANES_NAME(lanes_direct)(
    const lanes_shape *s, const lanes_program *p, lanes_word *const *cells, int windows, int begins,
    const lanes_word *x, int64_t m, uint64_t *found, const int planes, const int whole, const int linear,
    const int ranks, const int scaled
) {
    LANE_INTS sum[2 * LANES_MOST_PLANES];
    for (int i = 0; i < p->extending; i++) {
        const lanes_group *g = &p->group[i];
        if (!whole && g->grows && (!scaled || m < LANES_STEP / 2)) {
            LANES_NAME(lanes_grow)(s, p, g, cells, windows, begins, x, m, found, planes, linear, ranks, scaled);
            i += g->alike;
            continue;
        }
        if (!whole && !scaled) {
            LANES_NAME(lanes_extend)(s, p, g, cells, windows, begins, x, m, found, planes, linear, ranks);
            continue;
        }
        for (int window = 0; window < windows; window++) {
            lanes_word *to = cells[window];
            const int start = window >= begins;
            if (LANES_NAME(lanes_sum)(s, p, g, to, x, m, start, sum, found, planes, whole, linear, ranks, scaled))
                LANES_NAME(lanes_add)(s, p, g, to, sum, planes, whole, linear, ranks, scaled);
        }
    }
    if (!p->begun) return;
    for (int window = begins; window < windows; window++)
        LANES_NAME(lanes_start)(p, cells[window], m, planes, whole, scaled);
    if (found && begins < windows) LANES_NAME(lanes_note_begun)(s, p, found);
}

LANE_INLINE void LANES_NAME(lanes_gather)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, const lanes_word *x, int64_t m, int start,
    lanes_word *sums, const int planes, const int whole, const int linear, const int ranks, const int scaled
) {
    for (int i = 0; i < p->groups; i++) {
        LANE_INTS *sum = (LANE_INTS *)sums + (long)i * s->vectors;
        LANES_NAME(lanes_sum)(s, p, &p->group[i], cells, x, m, start, sum, 0, planes, whole, linear, ranks, scaled);
    }
}

LANE_INLINE void LANES_NAME(lanes_scatter)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, const lanes_word *sums,
    const int planes, const int whole, const int linear, const int ranks, const int scaled
) {
    for (int i = 0; i < p->groups; i++)
        LANES_NAME(lanes_add)(
            s, p, &p->group[i], cells, (const LANE_INTS *)sums + (long)i * s->vectors, planes, whole, linear, ranks,
            scaled
        );
}

static void LANES_NAME(lanes_read)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, const lanes_word *x, int64_t m, int start,
    int plain, lanes_word *sums
) {
#define CALL(planes, whole, linear, ranks, scaled) \
    LANES_NAME(lanes_gather)(s, p, cells, x, m, start, sums, planes, whole, linear, ranks, scaled)
    LANES_BY_SHAPE(CALL, plain);
#undef CALL
}

static void LANES_NAME(lanes_write)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, int plain, const lanes_word *sums
) {
#define CALL(planes, whole, linear, ranks, scaled) \
    LANES_NAME(lanes_scatter)(s, p, cells, sums, planes, whole, linear, ranks, scaled)
    LANES_BY_SHAPE(CALL, plain);
#undef CALL
}

static void LANES_NAME(lanes_apply)(
    const lanes_shape *s, const lanes_program *p, lanes_word *const *cells, int windows, int begins,
    const lanes_word *x, int64_t m, int plain, lanes_word *sums, uint64_t *found
) {
    if (p->direct) {
#define CALL(planes, whole, linear, ranks, scaled) \
    LANES_NAME(lanes_direct)(s, p, cells, windows, begins, x, m, found, planes, whole, linear, ranks, scaled)
        LANES_BY_SHAPE(CALL, plain);
#undef CALL
        for (int i = 0; i < windows && p->kills; i++) LANES_NAME(lanes_kill)(s, p, cells[i]);
        return;
    }
    for (int i = 0; i < windows; i++) {
        LANES_NAME(lanes_read)(s, p, cells[i], x, m, i >= begins, plain, sums);
        LANES_NAME(lanes_kill)(s, p, cells[i]);
        LANES_NAME(lanes_write)(s, p, cells[i], plain, sums);
    }
}

/* Finds the lanes in which an event would extend a trend, the empty one included. Where there is a pane map, the cells
 * are those at the beginning of the pane. */
static void LANES_NAME(lanes_find)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, const lanes_word *pane, uint64_t *found
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const long vectors = s->vectors, size = s->slots * vectors, window = s->chunks * size;
    unsigned at = 0;
    if (p->begun) LANES_NAME(lanes_note_begun)(s, p, found);
    uint64_t held = found[0]; /* the word `at`, for the groups of its lanes follow each other */
    for (const lanes_group *g = p->group; g < p->group + p->extending; g++) {
        const unsigned lane = (unsigned)g->chunk * LANES_WIDTH;
        if (lane / 64 != at) {
            found[at] = held;
            at = lane / 64;
            held = found[at];
        }
        if (!(~(held >> lane % 64) & (uint64_t)g->lanes)) continue;
        const LANE_INTS *cell = (const LANE_INTS *)cells + g->chunk * size;
        LANE_INTS some = {0};
        for (const lanes_source *from = p->source + g->sources; from < p->source + g->sources_end; from++) {
            LANE_INTS mask = masks[from->mask];
            if (from->slot == LANES_START) {
                some |= mask;
            } else if (!pane) {
                some |= cell[from->slot * vectors] & mask; /* no count is -0.0 */
            } else {
                const LANE_INTS *map = (const LANE_INTS *)pane + g->chunk * size + from->slot * vectors;
                some |= *map & mask;
                for (int slot = 0; slot < s->slots; slot++)
                    some |= (LANE_INTS)(cell[slot * vectors] != 0) & map[(1 + slot) * window] & mask;
            }
        }
        held |= LANES_NAME(lanes_some)(some) << lane % 64;
    }
    found[at] = held;
}

LANE_INLINE void LANES_NAME(lanes_total)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, lanes_word *sums,
    const int planes, const int whole, const int linear, const int ranks, const int scaled
) {
    const LANE_INTS every = ~(LANE_INTS){0};
    memset(sums, 0, sizeof(LANE_INTS) * (size_t)s->chunks * s->vectors);
    for (int i = 0; i < p->groups; i++) {
        const lanes_group *g = &p->group[i];
        LANE_INTS sum[2 * LANES_MOST_PLANES], *total = (LANE_INTS *)sums + (long)g->chunk * s->vectors;
        LANES_NAME(lanes_sum)(s, p, g, cells, 0, 1, 1, sum, 0, planes, whole, linear, ranks, scaled);
        LANES_NAME(lanes_plus)(total, sum, every, planes, whole, linear, ranks, scaled);
        if (scaled)
            LANES_UNROLLED
            for (int k = 0; k < linear; k++) LANES_NAME(lanes_normalise)(&total[k], &total[planes + k]);
    }
}

static void LANES_NAME(lanes_finish)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, lanes_word *sums
) {
#define CALL(planes, whole, linear, ranks, scaled) \
    LANES_NAME(lanes_total)(s, p, cells, sums, planes, whole, linear, ranks, scaled)
    LANES_BY_SHAPE(CALL, 0);
#undef CALL
}
