/* Pane maps, what windows become that they follow, and the sizes of plain numbers; part of lanes_body.h. */

/* Begin a pane map: nothing has been added, and every slot is what it was. */
static void LANES_NAME(lanes_begin)(const lanes_shape *s, lanes_word *pane) {
    const long window = (long)s->chunks * s->slots * s->vectors;
    memset(pane, 0, sizeof(LANE_INTS) * (size_t)window * (size_t)(1 + s->slots));
    for (int slot = 0; slot < s->slots; slot++)
        for (int chunk = 0; chunk < s->chunks; chunk++) {
            LANE_INTS *cell = (LANE_INTS *)pane + (1 + slot) * window + ((long)chunk * s->slots + slot) * s->vectors;
            *cell = (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
        }
}

/* product = a * b, trends of a followed by trends of b; scaled doubles. */
LANE_INLINE void LANES_NAME(lanes_join)(
    const LANE_INTS *a, const LANE_INTS *b, LANE_INTS *product, const int planes, const int linear, const int ranks
) {
    const LANE_DOUBLES first = (LANE_DOUBLES)a[0], second = (LANE_DOUBLES)b[0];
    const LANE_INTS some = (LANE_INTS)(a[0] != 0), more = (LANE_INTS)(b[0] != 0);
    product[0] = (LANE_INTS)(first * second);
    product[planes] = a[planes] + b[planes];
    LANES_NAME(lanes_settle)(&product[0], &product[planes]);
    LANES_UNROLLED
    for (int k = 1; k < planes; k++) {
        if (k >= linear) {
            product[k] = LANES_NAME(lanes_either)(a[k] & more, b[k] & some, k < ranks);
            continue;
        }
        LANE_INTS left = (LANE_INTS)((LANE_DOUBLES)a[k] * second), left_exponent = a[planes + k] + b[planes];
        product[k] = (LANE_INTS)(first * (LANE_DOUBLES)b[k]);
        product[planes + k] = a[planes] + b[planes + k];
        LANES_NAME(lanes_settle)(&left, &left_exponent);
        LANES_NAME(lanes_settle)(&product[k], &product[planes + k]);
        LANES_NAME(lanes_scaled_add)(&product[k], &product[planes + k], left, left_exponent);
    }
}

/* The same where all sums of a have one exponent, and all of b: counts are at least 2^-256, so the product's is at least
 * 2^-512, and one step brings it where it belongs. Returns 0 where that leaves a sum too small. */
LANE_INLINE int LANES_NAME(lanes_join_alike)(
    const LANE_INTS *a, const LANE_INTS *b, LANE_INTS *product, const int planes, const int linear, const int ranks
) {
    const LANE_DOUBLES first = (LANE_DOUBLES)a[0], second = (LANE_DOUBLES)b[0], both = first * second;
    const LANE_INTS some = (LANE_INTS)(a[0] != 0), more = (LANE_INTS)(b[0] != 0), size = (LANE_INTS)both;
    const LANE_INTS exponent = a[planes] + b[planes];
    const LANE_INTS large = (LANE_INTS)(size >= LANES_BITS(LANES_STEP / 2)) & LANES_STEP;
    const LANE_INTS small = (LANE_INTS)(size < LANES_BITS(-LANES_STEP / 2)) & (LANE_INTS)(exponent > 0) & LANES_STEP;
    const LANE_DOUBLES factor = (LANE_DOUBLES)((1023 + small - large) << 52);
    const LANE_INTS found = (exponent + large - small) & some & more;
    LANE_INTS lost = {0}; /* negative where that is so */
    product[0] = (LANE_INTS)(both * factor);
    product[planes] = found;
    LANES_UNROLLED
    for (int k = 1; k < planes; k++) {
        if (k >= linear) {
            product[k] = LANES_NAME(lanes_either)(a[k] & more, b[k] & some, k < ranks);
            continue;
        }
        const LANE_DOUBLES sum = (LANE_DOUBLES)a[k] * second + first * (LANE_DOUBLES)b[k];
        const LANE_INTS none = (LANE_INTS)((LANE_INTS)sum == 0);
        product[k] = (LANE_INTS)(sum * factor);
        product[planes + k] = LANES_NAME(lanes_but)(found, none);
        lost |= LANES_NAME(lanes_but)((product[k] & INT64_MAX) - LANES_BITS(-320), none);
    }
    return !LANES_NAME(lanes_marked)(lost);
}

/* Whether a map leaves what it is followed by as it is. */
LANE_INLINE int LANES_NAME(lanes_keeps)(const LANE_INTS *step, const int vectors) {
    LANE_INTS other = *step ^ (LANE_INTS)((LANE_DOUBLES){0} + 1.0);
    LANES_UNROLLED
    for (int k = 1; k < vectors; k++) other |= step[k];
    return !LANES_NAME(lanes_any)(other);
}

/* The way from one slot to another in a map, as far as it is the same for all windows. */
typedef struct {
    const LANE_INTS *step;
    int leads, keeps; /* whether it does anything; whether it leaves what it is followed by as it is */
    int large;        /* whether products may pass 2^576 */
    LANE_INTS some;   /* the lanes in which it leads anywhere */
    LANE_INTS most;   /* bits of the largest number with which they do not */
} LANES_NAME(lanes_way);
#define LANE_WAY LANES_NAME(lanes_way)

LANE_INLINE void LANES_NAME(lanes_look)(LANE_WAY *way, const LANE_INTS *step, const int planes, const int linear) {
    LANE_DOUBLES size = (LANE_DOUBLES){0} + 1.0;
    LANES_UNROLLED
    for (int k = 0; k < linear; k++)
        size = LANES_NAME(lanes_most_real)(size, LANES_NAME(lanes_magnitude)(step[k]));
    way->step = step;
    way->some = (LANE_INTS)(step[0] != 0);
    way->most = LANES_BITS(574) - ((LANE_INTS)size - LANES_BITS(0)); /* of a product there are two parts */
    way->leads = LANES_NAME(lanes_any)(step[0]);
    way->keeps = LANES_NAME(lanes_keeps)(step, planes + linear);
    way->large = LANES_NAME(lanes_any)((LANE_INTS)(way->most < LANES_BITS(LANES_STEP / 2)));
}

/* What brings sums of this size below LANES_MOST_MANTISSA, where it lies in a double: no step, one, or two. What the
 * exponent has above that of 2^-256 is as many steps as its two highest bits say. */
LANE_INLINE LANE_INTS LANES_NAME(lanes_excess)(LANE_DOUBLES size) {
#if LANES_WIDTH == 4
    const __m256i above = _mm256_subs_epu16((__m256i)size, _mm256_set1_epi64x(LANES_BITS(-LANES_STEP / 2)));
    return (LANE_INTS)above & (int64_t)3 << 61;
#elif LANES_WIDTH == 2 && defined(LANES_TARGETS)
    const __m128i above = _mm_subs_epu16((__m128i)size, _mm_set1_epi64x(LANES_BITS(-LANES_STEP / 2)));
    return (LANE_INTS)above & (int64_t)3 << 61;
#else
    const LANE_INTS above = (LANE_INTS)size - LANES_BITS(-LANES_STEP / 2);
    return above & ~(above >> 63) & (int64_t)3 << 61;
#endif
}

/* The cells of a window and a chunk, followed by a plain map, where all sums of each cell have one exponent; `raised`:
 * whether some is not zero. Products are below 2^(257 + LANES_PLAIN_BITS): nothing overflows, and two steps bring a sum
 * below LANES_MOST_MANTISSA. What has an exponent that is less by two steps is left out. The others are at least
 * 2^(2 * 512 - 320), so it may be: what begins in the map always, a product below 2^576 too. Returns 0, with nothing
 * done, where there is a larger one, or where a sum is too small for the exponent of its count; and -1, likewise, where
 * a sum would be so once its count is lowered: there `careful` takes the steps of `lanes_lower`. */
LANE_INLINE int LANES_NAME(lanes_follow_plain)(
    LANE_INTS *cell, LANE_INTS *after, const LANE_INTS *map, const LANE_WAY *way, int slots, int raised,
    const int planes, const int linear, const int ranks, const int careful
) {
    LANE_INTS lost = {0}, spread = {0}; /* negative in some lane: this is not the way, or not this step */
    const int vectors = planes + linear;
    LANES_UNROLLED
    for (int to = 0; to < slots; to++, map += vectors, way += slots) {
        LANE_INTS most = {0}, total[LANES_MOST_PLANES];
        LANES_UNROLLED
        for (int from = 0; from < slots && raised; from++) {
            const LANE_INTS exponent = cell[from * vectors + planes] & way[from].some;
            most = from ? LANES_NAME(lanes_most)(most, exponent) : exponent;
        }
        LANES_UNROLLED
        for (int k = 0; k < planes; k++) total[k] = map[k];
        if (raised) {
            const LANE_DOUBLES down = LANES_NAME(lanes_down)((LANE_INTS){0}, most);
            LANES_UNROLLED
            for (int k = 0; k < linear; k++) total[k] = (LANE_INTS)((LANE_DOUBLES)total[k] * down);
        }
        LANES_UNROLLED
        for (int from = 0; from < slots; from++) {
            const LANE_WAY *w = &way[from];
            const LANE_INTS *step = w->step, *held = cell + from * vectors;
            if (!w->leads) continue;
            LANES_UNROLLED
            for (int k = linear; k < planes; k++) {
                total[k] = LANES_NAME(lanes_either)(total[k], held[k] & w->some, k < ranks);
                if (!w->keeps)
                    total[k] = LANES_NAME(lanes_either)(
                        total[k], LANES_NAME(lanes_but)(step[k], (LANE_INTS)(held[0] == 0)), k < ranks
                    );
            }
            LANE_DOUBLES down = {0};
            if (raised) {
                const LANE_INTS less = most - (held[planes] & w->some), far = (LANE_INTS)(less > LANES_STEP);
                const uint64_t away = LANES_NAME(lanes_marked)(far);
                if (w->large && away) {
                    LANE_DOUBLES size = (LANE_DOUBLES)held[0];
                    LANES_UNROLLED
                    for (int k = 1; k < linear; k++)
                        size = LANES_NAME(lanes_most_real)(size, LANES_NAME(lanes_magnitude)(held[k]));
                    lost |= far & (LANE_INTS)((LANE_INTS)size > w->most);
                }
                if (away == ((uint64_t)1 << LANES_WIDTH) - 1) continue;
                down = (LANE_DOUBLES)LANES_NAME(lanes_but)(LANES_BITS(0) - (less << 52), far);
            }
            LANES_UNROLLED
            for (int k = 0; k < linear; k++) {
                LANE_DOUBLES product = (LANE_DOUBLES)held[k];
                if (!w->keeps) {
                    product *= (LANE_DOUBLES)step[0];
                    if (k) product += (LANE_DOUBLES)held[0] * (LANE_DOUBLES)step[k];
                }
                total[k] = (LANE_INTS)((LANE_DOUBLES)total[k] + (raised ? product * down : product));
            }
        }
        LANE_DOUBLES size = (LANE_DOUBLES)total[0]; /* a count is never negative */
        LANES_UNROLLED
        for (int k = 1; k < linear; k++)
            size = LANES_NAME(lanes_most_real)(size, LANES_NAME(lanes_magnitude)(total[k]));
        const LANE_INTS excess = LANES_NAME(lanes_excess)(size), least = excess + LANES_BITS(-320);
        const LANE_INTS raise = (LANE_INTS)((LANE_BITS)excess >> 52);
        LANE_INTS *sum = after + to * vectors, apart = {0};
        LANES_UNROLLED
        for (int k = 0; k < linear; k++) {
            const LANE_INTS none = (LANE_INTS)(total[k] == 0), x = k ? total[k] & INT64_MAX : total[k];
            sum[k] = total[k] - LANES_NAME(lanes_but)(excess, none);
            sum[planes + k] = LANES_NAME(lanes_but)(most + raise, none);
            apart |= LANES_NAME(lanes_but)(x - least, none);
            if (careful) lost |= LANES_NAME(lanes_but)(x - LANES_BITS(-320), none);
        }
        if (!careful) {
            spread |= apart;
        } else if (LANES_NAME(lanes_marked)(apart)) {
            LANES_UNROLLED
            for (int k = 0; k < linear; k++) {
                sum[k] = total[k];
                sum[planes + k] = LANES_NAME(lanes_but)(most, (LANE_INTS)(total[k] == 0));
            }
            while (LANES_NAME(lanes_lower)(sum, planes, linear)) continue;
        }
        LANES_UNROLLED
        for (int k = linear; k < planes; k++) sum[k] = total[k];
    }
    if (__builtin_expect(LANES_NAME(lanes_marked)(lost | spread) != 0, 0))
        return LANES_NAME(lanes_marked)(lost) ? 0 : -1;
    LANES_UNROLLED
    for (int slot = 0; slot < slots; slot++) {
        LANES_UNROLLED
        for (int k = 0; k < vectors; k++) cell[slot * vectors + k] = after[slot * vectors + k];
    }
    return 1;
}

/* The cells of a window and a chunk, followed by a map whose columns are `size` vectors long; way: what is
 * known of it where `lanes_follow_plain` may be careful, or null. */
static __attribute__((noinline)) void LANES_NAME(lanes_follow)(
    LANE_INTS *cell, const LANE_INTS *map, long size, const LANE_WAY *way, int slots, lanes_word *sums, int planes,
    int linear, int ranks
) {
    const int vectors = planes + linear;
    const LANE_INTS every = ~(LANE_INTS){0};
    LANE_INTS *before = (LANE_INTS *)sums;
    if (way && LANES_NAME(lanes_follow_plain)(cell, before, map, way, slots, 1, planes, linear, ranks, 1)) return;
    memcpy(before, cell, sizeof(LANE_INTS) * (size_t)(slots * vectors));
    for (int to = 0; to < slots; to++) {
        LANE_INTS total[2 * LANES_MOST_PLANES], product[2 * LANES_MOST_PLANES];
        LANES_UNROLLED
        for (int k = 0; k < vectors; k++) total[k] = map[to * vectors + k];
        for (int from = 0; from < slots; from++) {
            const LANE_INTS *step = map + (1 + from) * size + to * vectors;
            const LANE_INTS *held = before + from * vectors;
            if (!LANES_NAME(lanes_any)(step[0]) || !LANES_NAME(lanes_any)(held[0])) continue;
            if (LANES_NAME(lanes_keeps)(step, vectors)) {
                LANES_NAME(lanes_plus)(total, held, every, planes, 0, linear, ranks, 1);
                continue;
            }
            if (LANES_NAME(lanes_any)(
                    LANES_NAME(lanes_apart)(held, planes, linear) | LANES_NAME(lanes_apart)(step, planes, linear)
                ) || !LANES_NAME(lanes_join_alike)(held, step, product, planes, linear, ranks))
                LANES_NAME(lanes_join)(held, step, product, planes, linear, ranks);
            LANES_NAME(lanes_plus)(total, product, every, planes, 0, linear, ranks, 1);
        }
        while (LANES_NAME(lanes_lower)(total, planes, linear)) continue;
        LANES_NAME(lanes_align)(total, planes, linear);
        LANES_UNROLLED
        for (int k = 0; k < vectors; k++) cell[to * vectors + k] = total[k];
    }
}

/* `slots` is a constant where they are few, so that sums stay in registers. */
LANE_INLINE void LANES_NAME(lanes_fold_shape)(
    const lanes_shape *s, lanes_word *const *cells, int windows, const lanes_word *pane, int plain, lanes_word *sums,
    const int planes, const int linear, const int ranks, const int slots
) {
    const int vectors = planes + linear;
    const long size = (long)s->chunks * slots * vectors;
    LANE_INTS few[LANES_FEW_SLOTS * 2 * LANES_MOST_PLANES], *after = slots <= LANES_FEW_SLOTS ? few : (LANE_INTS *)sums;
    LANE_WAY short_way[LANES_FEW_SLOTS * LANES_FEW_SLOTS], *way = short_way;
    if (slots > LANES_FEW_SLOTS) way = (LANE_WAY *)(after + slots * vectors);
    for (int chunk = 0; chunk < s->chunks; chunk++) {
        const long at = (long)chunk * slots * vectors;
        const LANE_INTS *map = (const LANE_INTS *)pane + at;
        for (int to = 0; to < slots; to++)
            for (int from = 0; from < slots; from++)
                LANES_NAME(lanes_look)(
                    &way[to * slots + from], map + (1 + from) * size + to * vectors, planes, linear
                );
        for (int window = 0; window < windows; window++) {
            LANE_INTS *cell = (LANE_INTS *)cells[window] + at, apart = {0}, raised = {0};
            LANES_UNROLLED
            for (int slot = 0; slot < slots; slot++) {
                apart |= LANES_NAME(lanes_apart)(cell + slot * vectors, planes, linear);
                raised |= cell[slot * vectors + planes];
            }
            int done = 0;
            if (plain && __builtin_expect(!LANES_NAME(lanes_any)(apart), 1))
                done = LANES_NAME(lanes_any)(raised)
                    ? LANES_NAME(lanes_follow_plain)(cell, after, map, way, slots, 1, planes, linear, ranks, 0)
                    : LANES_NAME(lanes_follow_plain)(cell, after, map, way, slots, 0, planes, linear, ranks, 0);
            if (__builtin_expect(done <= 0, 0))
                LANES_NAME(lanes_follow)(cell, map, size, done ? way : 0, slots, sums, planes, linear, ranks);
        }
    }
}

static void LANES_NAME(lanes_fold)(
    const lanes_shape *s, lanes_word *const *cells, int windows, const lanes_word *pane, int plain, lanes_word *sums
) {
#define CALL(planes, linear, ranks, slots) \
    LANES_NAME(lanes_fold_shape)(s, cells, windows, pane, plain, sums, planes, linear, ranks, slots)
    const int few = s->slots == 2 || s->slots == 3, two = s->slots == 2;
    if (few && s->planes == 1) { if (two) CALL(1, 1, 1, 2); else CALL(1, 1, 1, 3); }
    else if (few && s->planes == 3 && s->linear == 2 && s->ranks == 3) {
        if (two) CALL(3, 2, 3, 2); else CALL(3, 2, 3, 3);
    }
    else CALL(s->planes, s->linear, s->ranks, s->slots);
#undef CALL
}

/* The size of plain numbers in some windows' cells: the largest sum over the slots of a window in one lane, of counts,
 * and of magnitudes in the other planes that are added up. */
LANE_INLINE void LANES_NAME(lanes_size_shape)(
    const lanes_shape *s, lanes_word *const *cells, int windows, double *counts, double *sums, const int linear,
    const int slots
) {
    LANE_DOUBLES most[2] = {{0}, {0}};
    for (int window = 0; window < windows; window++) {
        const LANE_INTS *cell = (const LANE_INTS *)cells[window];
        for (int chunk = 0; chunk < s->chunks; chunk++, cell += (long)slots * s->vectors)
            LANES_UNROLLED
            for (int k = 0; k < linear; k++) {
                LANE_DOUBLES total = {0};
                LANES_UNROLLED
                for (int slot = 0; slot < slots; slot++)
                    total += LANES_NAME(lanes_magnitude)(cell[(long)slot * s->vectors + k]);
                most[k > 0] = LANES_NAME(lanes_most_real)(most[k > 0], total);
            }
    }
    for (int lane = 0; lane < LANES_WIDTH; lane++) {
        const double count = most[0][lane], sum = most[1][lane];
        *counts = count > *counts ? count : *counts;
        *sums = sum > *sums ? sum : *sums;
    }
}

static void LANES_NAME(lanes_size)(
    const lanes_shape *s, lanes_word *const *cells, int windows, double *counts, double *sums
) {
    if (s->slots == 2 && s->linear == 2) LANES_NAME(lanes_size_shape)(s, cells, windows, counts, sums, 2, 2);
    else LANES_NAME(lanes_size_shape)(s, cells, windows, counts, sums, s->linear, s->slots);
}

LANE_INLINE void LANES_NAME(lanes_scale_shape)(LANE_INTS *cell, long n, const int planes, const int linear) {
    for (long i = 0; i < n; i++, cell += planes + linear) LANES_NAME(lanes_lower_far)(cell, planes, linear);
}

/* Let plain numbers have exponents. */
static void LANES_NAME(lanes_scale)(const lanes_shape *s, lanes_word *cells) {
    const long n = (long)s->chunks * s->slots;
    if (s->planes == 3 && s->linear == 2) LANES_NAME(lanes_scale_shape)((LANE_INTS *)cells, n, 3, 2);
    else LANES_NAME(lanes_scale_shape)((LANE_INTS *)cells, n, s->planes, s->linear);
}
