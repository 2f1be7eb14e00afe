/* The loops of _lanes.h for vectors of LANES_WIDTH 64-bit elements; included once per instruction set. */

typedef int64_t LANES_NAME(lanes_ints) __attribute__((vector_size(8 * LANES_WIDTH)));
typedef double LANES_NAME(lanes_doubles) __attribute__((vector_size(8 * LANES_WIDTH)));
#define LANE_INTS LANES_NAME(lanes_ints)
#define LANE_DOUBLES LANES_NAME(lanes_doubles)
#define LANE_INLINE static inline __attribute__((always_inline))

/* What the lanes of a group read, times what m events make of it, into sum[planes]. */
LANE_INLINE void LANES_NAME(lanes_sum)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, const lanes_word *cells, const lanes_word *x,
    int64_t m, LANE_INTS *sum, const int planes, const int whole
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const LANE_INTS *chunk = (const LANE_INTS *)cells + (long)g->chunk * s->slots * planes;
    for (int k = 0; k < planes; k++) sum[k] = (LANE_INTS){0};
    for (int i = g->sources; i < g->sources_end; i++) {
        LANE_INTS mask = masks[p->source[i].mask];
        int slot = p->source[i].slot;
        if (slot == LANES_START) {
            if (whole) sum[0] -= mask;
            else sum[0] = (LANE_INTS)((LANE_DOUBLES)sum[0] + (LANE_DOUBLES)(mask & (LANE_INTS)((LANE_DOUBLES){0} + 1.0)));
        } else {
            const LANE_INTS *cell = chunk + slot * planes;
            for (int k = 0; k < planes; k++) {
                if (k < whole) sum[k] += cell[k] & mask;
                else sum[k] = (LANE_INTS)((LANE_DOUBLES)sum[k] + (LANE_DOUBLES)(cell[k] & mask));
            }
        }
    }
    LANE_INTS trends = sum[0];
    LANE_DOUBLES weight = whole ? __builtin_convertvector(trends, LANE_DOUBLES) : (LANE_DOUBLES)trends;
    lanes_word shift = {1};
    if (!whole) shift.d = 1.0;
    double real_shift = 1.0;
    if (m != 1) {
        int64_t repeat = m;
        double real_repeat = (double)m;
        if (g->loop) {
            repeat = m < 63 ? ((int64_t)1 << m) - 1 : -1;
            real_repeat = ldexp(1.0, (int)m) - 1.0;
            shift.i = m < 64 ? (int64_t)((uint64_t)1 << (m - 1)) : 0;
            real_shift = ldexp(1.0, (int)(m - 1));
        }
        for (int k = 0; k < planes; k++) {
            if (k < whole) sum[k] *= repeat;
            else sum[k] = (LANE_INTS)((LANE_DOUBLES)sum[k] * real_repeat);
        }
    }
    for (int i = g->binds; i < g->binds_end; i++) {
        const lanes_bind *b = &p->bind[i];
        LANE_INTS mask = masks[b->mask];
        for (int k = 1; k < planes; k++) {
            if (b->plane != k) continue;
            if (k < whole) sum[k] += (trends & mask) * (int64_t)((uint64_t)x[b->input].i * (uint64_t)shift.i);
            else sum[k] = (LANE_INTS)((LANE_DOUBLES)sum[k] + (LANE_DOUBLES)((LANE_INTS)weight & mask) * (x[b->input].d * real_shift));
        }
    }
}

LANE_INLINE void LANES_NAME(lanes_add)(
    const lanes_shape *s, const lanes_program *p, const lanes_group *g, lanes_word *cells, const LANE_INTS *sum,
    const int planes, const int whole
) {
    LANE_INTS *chunk = (LANE_INTS *)cells + (long)g->chunk * s->slots * planes;
    for (int i = g->targets; i < g->targets_end; i++) {
        LANE_INTS *cell = chunk + p->target[i] * planes;
        for (int k = 0; k < planes; k++) {
            if (k < whole) cell[k] += sum[k];
            else cell[k] = (LANE_INTS)((LANE_DOUBLES)cell[k] + (LANE_DOUBLES)sum[k]);
        }
    }
}

static void LANES_NAME(lanes_kill)(const lanes_shape *s, const lanes_program *p, lanes_word *cells) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    for (int i = 0; i < p->kills; i++) {
        const lanes_kill *kill = &p->kill[i];
        LANE_INTS *cell = (LANE_INTS *)cells + ((long)kill->chunk * s->slots + kill->slot) * s->planes;
        for (int k = 0; k < s->planes; k++) cell[k] &= ~masks[kill->mask];
    }
}

/* Small numbers of planes are compiled as constants, so that sums stay in registers. */
#define LANES_BY_SHAPE(CALL) do { \
    int planes = s->planes, whole = s->whole; \
    if (planes == 1 && whole == 1) CALL(1, 1); \
    else if (planes == 1) CALL(1, 0); \
    else if (planes == 2 && whole == 2) CALL(2, 2); \
    else if (planes == 2 && whole == 0) CALL(2, 0); \
    else if (planes == 3 && whole == 3) CALL(3, 3); \
    else if (planes == 3 && whole == 0) CALL(3, 0); \
    else if (planes == 3 && whole == 2) CALL(3, 2); \
    else CALL(planes, whole); \
} while (0)

LANE_INLINE void LANES_NAME(lanes_direct)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, const lanes_word *x, int64_t m,
    const int planes, const int whole
) {
    LANE_INTS sum[LANES_MOST_PLANES];
    for (int i = 0; i < p->groups; i++) {
        LANES_NAME(lanes_sum)(s, p, &p->group[i], cells, x, m, sum, planes, whole);
        LANES_NAME(lanes_add)(s, p, &p->group[i], cells, sum, planes, whole);
    }
}

LANE_INLINE void LANES_NAME(lanes_gather)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, const lanes_word *x, int64_t m,
    lanes_word *sums, const int planes, const int whole
) {
    for (int i = 0; i < p->groups; i++) {
        LANE_INTS *sum = (LANE_INTS *)sums + (long)i * planes;
        LANES_NAME(lanes_sum)(s, p, &p->group[i], cells, x, m, sum, planes, whole);
    }
}

LANE_INLINE void LANES_NAME(lanes_scatter)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, const lanes_word *sums,
    const int planes, const int whole
) {
    for (int i = 0; i < p->groups; i++)
        LANES_NAME(lanes_add)(s, p, &p->group[i], cells, (const LANE_INTS *)sums + (long)i * planes, planes, whole);
}

static void LANES_NAME(lanes_read)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, const lanes_word *x, int64_t m,
    lanes_word *sums
) {
#define CALL(planes, whole) LANES_NAME(lanes_gather)(s, p, cells, x, m, sums, planes, whole)
    LANES_BY_SHAPE(CALL);
#undef CALL
}

static void LANES_NAME(lanes_write)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, const lanes_word *sums
) {
#define CALL(planes, whole) LANES_NAME(lanes_scatter)(s, p, cells, sums, planes, whole)
    LANES_BY_SHAPE(CALL);
#undef CALL
}

static void LANES_NAME(lanes_apply)(
    const lanes_shape *s, const lanes_program *p, lanes_word *cells, const lanes_word *x, int64_t m, lanes_word *sums
) {
    if (p->direct) {
#define CALL(planes, whole) LANES_NAME(lanes_direct)(s, p, cells, x, m, planes, whole)
        LANES_BY_SHAPE(CALL);
#undef CALL
        return;
    }
    LANES_NAME(lanes_read)(s, p, cells, x, m, sums);
    LANES_NAME(lanes_kill)(s, p, cells);
    LANES_NAME(lanes_write)(s, p, cells, sums);
}

/* Marks the lanes in which an event would extend a trend, the empty one included. */
static void LANES_NAME(lanes_find)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, int64_t *found
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    for (int i = 0; i < p->groups; i++) {
        const lanes_group *g = &p->group[i];
        const LANE_INTS *chunk = (const LANE_INTS *)cells + (long)g->chunk * s->slots * s->planes;
        LANE_INTS *mark = (LANE_INTS *)found + g->chunk;
        for (int j = g->sources; j < g->sources_end; j++) {
            LANE_INTS mask = masks[p->source[j].mask];
            int slot = p->source[j].slot;
            if (slot == LANES_START) *mark |= mask;
            else *mark |= (chunk[slot * s->planes] != 0) & mask; /* the bits of a count >= 0.0, too */
        }
    }
}

static void LANES_NAME(lanes_finish)(
    const lanes_shape *s, const lanes_program *p, const lanes_word *cells, lanes_word *sums
) {
    memset(sums, 0, sizeof(LANE_INTS) * (size_t)s->chunks * s->planes);
    for (int i = 0; i < p->groups; i++) {
        const lanes_group *g = &p->group[i];
        LANE_INTS sum[LANES_MOST_PLANES], *total = (LANE_INTS *)sums + (long)g->chunk * s->planes;
        LANES_NAME(lanes_sum)(s, p, g, cells, 0, 1, sum, s->planes, s->whole);
        for (int k = 0; k < s->planes; k++) {
            if (k < s->whole) total[k] += sum[k];
            else total[k] = (LANE_INTS)((LANE_DOUBLES)total[k] + (LANE_DOUBLES)sum[k]);
        }
    }
}

static const lanes_machine LANES_NAME(lanes_machine) = {
    LANES_WIDTH, LANES_NAME(lanes_apply), LANES_NAME(lanes_read), LANES_NAME(lanes_kill), LANES_NAME(lanes_write),
    LANES_NAME(lanes_find), LANES_NAME(lanes_finish)
};

#undef LANE_INTS
#undef LANE_DOUBLES
#undef LANE_INLINE
#undef LANES_BY_SHAPE
