/* Vectors of LANES_WIDTH numbers, and sums of scaled doubles in them; part of lanes_body.h. */

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
