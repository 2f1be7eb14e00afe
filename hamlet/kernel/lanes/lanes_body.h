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

/* Whether any bit of a vector is set. */
LANE_INLINE int LANES_NAME(lanes_any)(LANE_INTS x) {
#if LANES_WIDTH == 8
    return _mm512_test_epi64_mask((__m512i)x, (__m512i)x) != 0;
#elif LANES_WIDTH == 4
    return !_mm256_testz_si256((__m256i)x, (__m256i)x);
#elif LANES_WIDTH == 2 && defined(__AVX2__)
    return !_mm_testz_si128((__m128i)x, (__m128i)x);
#elif LANES_WIDTH == 2
    return (x[0] | x[1]) != 0;
#else
    return x[0] != 0;
#endif
}

/* The lanes of a vector with the sign bit set, as bits. */
LANE_INLINE uint64_t LANES_NAME(lanes_marked)(LANE_INTS x) {
#if LANES_WIDTH == 8
    return _mm512_movepi64_mask((__m512i)x);
#elif LANES_WIDTH == 4
    return (uint64_t)_mm256_movemask_pd((__m256d)x);
#elif LANES_WIDTH == 2 && defined(LANES_TARGETS)
    return (uint64_t)_mm_movemask_pd((__m128d)x);
#else
    uint64_t found = 0;
    LANES_UNROLLED
    for (int i = 0; i < LANES_WIDTH; i++) found |= (uint64_t)x[i] >> 63 << i;
    return found;
#endif
}

/* The lanes of a vector with a bit set, as bits. */
LANE_INLINE uint64_t LANES_NAME(lanes_some)(LANE_INTS x) {
#if LANES_WIDTH == 8
    return _mm512_test_epi64_mask((__m512i)x, (__m512i)x);
#elif LANES_WIDTH == 4
    return (uint64_t)_mm256_movemask_pd((__m256d)(LANE_INTS)(x == 0)) ^ 15;
#elif LANES_WIDTH == 2 && defined(__AVX2__)
    return (uint64_t)_mm_movemask_pd((__m128d)(LANE_INTS)(x == 0)) ^ 3;
#elif LANES_WIDTH == 2
    return (uint64_t)(x[0] != 0) | (uint64_t)(x[1] != 0) << 1;
#else
    return x[0] != 0;
#endif
}

LANE_INLINE LANE_INTS LANES_NAME(lanes_larger)(LANE_INTS a, LANE_INTS b) {
#if LANES_WIDTH == 8
    return (LANE_INTS)_mm512_max_epu64((__m512i)a, (__m512i)b);
#else
    const LANE_INTS larger = (LANE_INTS)((LANE_BITS)a > (LANE_BITS)b);
#if LANES_WIDTH == 4
    return (LANE_INTS)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)larger);
#else
    return (a & larger) | (b & ~larger);
#endif
#endif
}

/* Two numbers of a plane that is not added up: whether there is a value, or a rank. */
LANE_INLINE LANE_INTS LANES_NAME(lanes_either)(LANE_INTS a, LANE_INTS b, const int flag) {
    return flag ? a | b : LANES_NAME(lanes_larger)(a, b);
}

/* The bits of x that a mask has not. Compilers know vectors of 256 bits well enough to write a mask and its complement
 * another way, which takes longer. */
LANE_INLINE LANE_INTS LANES_NAME(lanes_but)(LANE_INTS x, LANE_INTS mask) {
#if LANES_WIDTH == 4
    return (LANE_INTS)_mm256_andnot_si256((__m256i)mask, (__m256i)x);
#else
    return x & ~mask;
#endif
}

/* The larger one where neither is negative. */
LANE_INLINE LANE_INTS LANES_NAME(lanes_most)(LANE_INTS a, LANE_INTS b) {
#if LANES_WIDTH == 8
    return (LANE_INTS)_mm512_max_epi64((__m512i)a, (__m512i)b);
#elif LANES_WIDTH == 4
    return (LANE_INTS)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)(LANE_INTS)(a > b));
#else
    LANE_INTS larger = (LANE_INTS)(a > b);
    return (a & larger) | (b & ~larger);
#endif
}

/* The magnitude of doubles, and the larger or smaller one of two such. */
LANE_INLINE LANE_DOUBLES LANES_NAME(lanes_magnitude)(LANE_INTS x) {
    return (LANE_DOUBLES)(x & INT64_MAX);
}

LANE_INLINE LANE_DOUBLES LANES_NAME(lanes_most_real)(LANE_DOUBLES a, LANE_DOUBLES b) {
#if LANES_WIDTH == 8
    return (LANE_DOUBLES)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif LANES_WIDTH == 4
    return (LANE_DOUBLES)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif LANES_WIDTH == 2 && defined(LANES_TARGETS)
    return (LANE_DOUBLES)_mm_max_pd((__m128d)a, (__m128d)b);
#else
    return (LANE_DOUBLES)LANES_NAME(lanes_most)((LANE_INTS)a, (LANE_INTS)b); /* bits are in the order of the doubles */
#endif
}

LANE_INLINE LANE_DOUBLES LANES_NAME(lanes_least_real)(LANE_DOUBLES a, LANE_DOUBLES b) {
#if LANES_WIDTH == 8
    return (LANE_DOUBLES)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif LANES_WIDTH == 4
    return (LANE_DOUBLES)_mm256_min_pd((__m256d)a, (__m256d)b);
#elif LANES_WIDTH == 2 && defined(LANES_TARGETS)
    return (LANE_DOUBLES)_mm_min_pd((__m128d)a, (__m128d)b);
#else
    LANE_INTS smaller = (LANE_INTS)((LANE_INTS)a < (LANE_INTS)b);
    return (LANE_DOUBLES)(((LANE_INTS)a & smaller) | ((LANE_INTS)b & ~smaller));
#endif
}

/* Bring mantissas back below LANES_MOST_MANTISSA. */
LANE_INLINE void LANES_NAME(lanes_normalise)(LANE_INTS *mantissa, LANE_INTS *exponent) {
    for (;;) {
        LANE_DOUBLES size = LANES_NAME(lanes_magnitude)(*mantissa);
        LANE_INTS large = (LANE_INTS)(size >= LANES_MOST_MANTISSA);
        if (__builtin_expect(!LANES_NAME(lanes_any)(large), 1)) return;
        large &= (LANE_INTS)(size < INFINITY); /* none comes in, but none may hang us either */
        if (!LANES_NAME(lanes_any)(large)) return;
        *mantissa -= large & ((int64_t)LANES_STEP << 52);
        *exponent += large & LANES_STEP;
    }
}

/* Bring a product's mantissa into [2^-256, 2^256) where its exponent allows it. A product of two small mantissas is
 * smaller than either; left so, windows folded again and again would lose it, or what it is added to. */
LANE_INLINE void LANES_NAME(lanes_settle)(LANE_INTS *mantissa, LANE_INTS *exponent) {
    LANES_NAME(lanes_normalise)(mantissa, exponent);
    for (;;) {
        LANE_INTS size = *mantissa & INT64_MAX;
        LANE_INTS small = (LANE_INTS)(size < ((int64_t)(1023 - LANES_STEP / 2) << 52));
        small &= (LANE_INTS)(size != 0) & (LANE_INTS)(*exponent > 0);
        if (__builtin_expect(!LANES_NAME(lanes_any)(small), 1)) return;
        *mantissa = (LANE_INTS)((LANE_DOUBLES)*mantissa * (LANE_DOUBLES)((1023 + (small & LANES_STEP)) << 52));
        *exponent -= small & LANES_STEP;
    }
}

/* One step of `lanes_normalise` for all sums of a cell: those that are not far from it go along, so that exponents stay
 * equal. A sum may be far smaller than the count: it must not vanish. Returns whether there was a step to take. */
LANE_INLINE int LANES_NAME(lanes_lower)(LANE_INTS *cell, const int planes, const int linear) {
#if LANES_WIDTH == 8
    const __m512i most = _mm512_set1_epi64(INT64_MAX), step = _mm512_set1_epi64((int64_t)LANES_STEP << 52);
    const __m512i limit = _mm512_set1_epi64(LANES_BITS(LANES_STEP / 2) - 1);
    const __m512i near = _mm512_set1_epi64(LANES_BITS(3 * LANES_STEP / 8) - 1);
    __m512i size = (__m512i)cell[0]; /* a count is never negative */
    LANES_UNROLLED
    for (int k = 1; k < linear; k++)
        size = _mm512_max_epi64(size, _mm512_and_si512((__m512i)cell[k], most));
    const __mmask8 large = _mm512_cmpgt_epi64_mask(size, limit);
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        const __m512i x = (__m512i)cell[k], e = (__m512i)cell[planes + k];
        const __mmask8 down = _mm512_mask_cmpgt_epi64_mask(large, k ? _mm512_and_si512(x, most) : x, near);
        cell[k] = (LANE_INTS)_mm512_mask_sub_epi64(x, down, x, step);
        cell[planes + k] = (LANE_INTS)_mm512_mask_add_epi64(e, down, e, _mm512_set1_epi64(LANES_STEP));
    }
    return large != 0;
#else
    LANE_DOUBLES size = (LANE_DOUBLES)cell[0]; /* a count is never negative */
    LANES_UNROLLED
    for (int k = 1; k < linear; k++)
        size = LANES_NAME(lanes_most_real)(size, LANES_NAME(lanes_magnitude)(cell[k]));
    const LANE_INTS large = (LANE_INTS)(size >= LANES_MOST_MANTISSA);
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        LANE_INTS down = large & (LANE_INTS)(LANES_NAME(lanes_magnitude)(cell[k]) >= LANES_NEAR_MANTISSA);
        cell[k] -= down & ((int64_t)LANES_STEP << 52);
        cell[planes + k] += down & LANES_STEP;
    }
    return LANES_NAME(lanes_any)(large);
#endif
}

/* The same until there is none to take, for sums that are far from LANES_MOST_MANTISSA as a rule, one step at most. */
LANE_INLINE void LANES_NAME(lanes_lower_far)(LANE_INTS *cell, const int planes, const int linear) {
    LANE_DOUBLES size = (LANE_DOUBLES)cell[0], least = size;
    LANES_UNROLLED
    for (int k = 1; k < linear; k++) {
        const LANE_DOUBLES x = LANES_NAME(lanes_magnitude)(cell[k]);
        size = LANES_NAME(lanes_most_real)(size, x);
        least = LANES_NAME(lanes_least_real)(least, x);
    }
#if LANES_WIDTH == 8
    const __mmask8 large = _mm512_cmp_pd_mask((__m512d)size, _mm512_set1_pd(LANES_MOST_MANTISSA), _CMP_GE_OQ);
    const __mmask8 far = _mm512_cmp_pd_mask((__m512d)size, _mm512_set1_pd(LANES_FAR_MANTISSA), _CMP_GE_OQ);
    const __mmask8 apart = _mm512_mask_cmp_pd_mask(
        large, (__m512d)least, _mm512_set1_pd(LANES_NEAR_MANTISSA), _CMP_LT_OQ
    );
    if (__builtin_expect(!_kortestz_mask8_u8(far, apart), 0)) {
        while (LANES_NAME(lanes_lower)(cell, planes, linear)) continue;
        return;
    }
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        const __m512i x = (__m512i)cell[k], e = (__m512i)cell[planes + k];
        cell[k] = (LANE_INTS)_mm512_mask_sub_epi64(x, large, x, _mm512_set1_epi64((int64_t)LANES_STEP << 52));
        cell[planes + k] = (LANE_INTS)_mm512_mask_add_epi64(e, large, e, _mm512_set1_epi64(LANES_STEP));
    }
#else
    const LANE_INTS large = (LANE_INTS)(size >= LANES_MOST_MANTISSA);
    const LANE_INTS far = (LANE_INTS)(size >= LANES_FAR_MANTISSA);
    if (__builtin_expect(LANES_NAME(lanes_any)(far | (large & (LANE_INTS)(least < LANES_NEAR_MANTISSA))), 0)) {
        while (LANES_NAME(lanes_lower)(cell, planes, linear)) continue;
        return;
    }
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        cell[k] -= large & ((int64_t)LANES_STEP << 52);
        cell[planes + k] += large & LANES_STEP;
    }
#endif
}

/* Let sums that are one step behind the others have the same exponent, where they are not far from it; zero has 0. */
LANE_INLINE void LANES_NAME(lanes_align)(LANE_INTS *cell, const int planes, const int linear) {
    LANE_INTS most = {0};
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        cell[planes + k] = LANES_NAME(lanes_but)(cell[planes + k], (LANE_INTS)(cell[k] == 0));
        most = LANES_NAME(lanes_most)(most, cell[planes + k]);
    }
    LANES_UNROLLED
    for (int k = 0; k < linear; k++) {
        LANE_INTS down = (LANE_INTS)(LANES_NAME(lanes_magnitude)(cell[k]) >= LANES_NEAR_MANTISSA);
        down &= (LANE_INTS)(most - cell[planes + k] == LANES_STEP);
        cell[k] -= down & ((int64_t)LANES_STEP << 52);
        cell[planes + k] += down & LANES_STEP;
    }
}

/* Give two doubles with exponents of their own the larger one of both, with these factors. */
LANE_INLINE void LANES_NAME(lanes_factors)(
    LANE_INTS mantissa, LANE_INTS more, LANE_INTS *exponent, LANE_INTS more_exponent, LANE_DOUBLES *down,
    LANE_DOUBLES *more_down
) {
    LANE_INTS none = (LANE_INTS)(mantissa == 0), no_more = (LANE_INTS)(more == 0);
    more_exponent &= ~no_more; /* zero has any exponent, and shall have 0 */
    LANE_INTS a = (*exponent & ~none) | (more_exponent & none);
    LANE_INTS b = more_exponent | (a & no_more);
    LANE_INTS most = LANES_NAME(lanes_most)(a, b), less = most - a, more_less = most - b; /* none is negative */
    *down = (LANE_DOUBLES)LANES_NAME(lanes_but)(LANES_BITS(0) - (less << 52), (LANE_INTS)(less > LANES_STEP));
    *more_down = (LANE_DOUBLES)LANES_NAME(lanes_but)(
        LANES_BITS(0) - (more_less << 52), (LANE_INTS)(more_less > LANES_STEP)
    );
    *exponent = most;
}

/* What brings a count to a larger exponent; one that is zero has the exponent 0. */
LANE_INLINE LANE_DOUBLES LANES_NAME(lanes_down)(LANE_INTS exponent, LANE_INTS most) {
    const LANE_INTS less = most - exponent;
#if LANES_WIDTH == 8 /* a multiple of LANES_STEP: from twice that on the double is 0.0 */
    const __m512i bits = _mm512_slli_epi64(_mm512_min_epu64((__m512i)less, _mm512_set1_epi64(1023)), 52);
    return (LANE_DOUBLES)_mm512_sub_epi64(_mm512_set1_epi64(LANES_BITS(0)), bits);
#else
    return (LANE_DOUBLES)LANES_NAME(lanes_but)(LANES_BITS(0) - (less << 52), (LANE_INTS)(less > LANES_STEP));
#endif
}

/* a += b for such doubles; the sum of a few is normalised by the caller. */
LANE_INLINE void LANES_NAME(lanes_scaled_add)(
    LANE_INTS *mantissa, LANE_INTS *exponent, LANE_INTS more, LANE_INTS more_exponent
) {
    if (LANES_NAME(lanes_any)(*exponent ^ more_exponent)) {
        LANE_DOUBLES down, more_down;
        LANES_NAME(lanes_factors)(*mantissa, more, exponent, more_exponent, &down, &more_down);
        *mantissa = (LANE_INTS)((LANE_DOUBLES)*mantissa * down);
        more = (LANE_INTS)((LANE_DOUBLES)more * more_down);
    }
    *mantissa = (LANE_INTS)((LANE_DOUBLES)*mantissa + (LANE_DOUBLES)more);
}

/* The bits in which the exponents of a cell's sums differ from that of its count. */
LANE_INLINE LANE_INTS LANES_NAME(lanes_apart)(const LANE_INTS *cell, const int planes, const int linear) {
    LANE_INTS apart = {0};
    LANES_UNROLLED
    for (int k = 1; k < linear; k++) apart |= cell[planes] ^ cell[planes + k];
    return apart;
}

/* cell += more, both with one exponent for all their sums: they are aligned at once. A sum that is zero has the exponent
 * 0, so that where it has that of its count, no other sum is lost beside it. */
LANE_INLINE void LANES_NAME(lanes_plus_alike)(
    LANE_INTS *cell, const LANE_INTS *more, LANE_INTS mask, const int planes, const int linear, const int ranks
) {
    LANE_INTS exponent = cell[planes], more_exponent = more[planes] & mask;
    if (LANES_NAME(lanes_any)(exponent ^ more_exponent)) {
        LANE_DOUBLES down, more_down;
        LANES_NAME(lanes_factors)(cell[0], more[0] & mask, &exponent, more_exponent, &down, &more_down);
        LANES_UNROLLED
        for (int k = 0; k < linear; k++) {
            cell[k] = (LANE_INTS)((LANE_DOUBLES)cell[k] * down + (LANE_DOUBLES)(more[k] & mask) * more_down);
            cell[planes + k] = exponent;
        }
    } else {
        LANES_UNROLLED
        for (int k = 0; k < linear; k++)
            cell[k] = (LANE_INTS)((LANE_DOUBLES)cell[k] + (LANE_DOUBLES)(more[k] & mask));
    }
    LANES_UNROLLED
    for (int k = linear; k < planes; k++) cell[k] = LANES_NAME(lanes_either)(cell[k], more[k] & mask, k < ranks);
}

/* cell += more; exponents follow the planes. Scaled doubles are not normalised. */
LANE_INLINE void LANES_NAME(lanes_plus)(
    LANE_INTS *cell, const LANE_INTS *more, LANE_INTS mask, const int planes, const int whole, const int linear,
    const int ranks, const int scaled
) {
    if (scaled && linear > 1) {
        LANE_INTS apart = LANES_NAME(lanes_apart)(cell, planes, linear);
        apart |= LANES_NAME(lanes_apart)(more, planes, linear) & mask;
        if (!LANES_NAME(lanes_any)(apart)) {
            LANES_NAME(lanes_plus_alike)(cell, more, mask, planes, linear, ranks);
            return;
        }
    }
    LANES_UNROLLED
    for (int k = 0; k < planes; k++) {
        if (k < whole) cell[k] += more[k] & mask;
        else if (k >= linear) cell[k] = LANES_NAME(lanes_either)(cell[k], more[k] & mask, k < ranks);
        else if (!scaled) cell[k] = (LANE_INTS)((LANE_DOUBLES)cell[k] + (LANE_DOUBLES)(more[k] & mask));
        else LANES_NAME(lanes_scaled_add)(&cell[k], &cell[planes + k], more[k] & mask, more[planes + k] & mask);
    }
}

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
