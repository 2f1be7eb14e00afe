/* What bursts do to limb vectors: sums, repetitions and shifted products, eight limbs at a time where the machine can.
 *
 * The plain loops and the vectors give the same limbs. Vectors of the least size gain nothing and are left to the loops.
 */
#ifndef HAMLET_BIGNUM_BURSTS_H
#define HAMLET_BIGNUM_BURSTS_H

#include "bignum.h"

enum { LIMBS_STEP = 8, LIMBS_FEW = 6, LIMBS_MOST = 128 };

/* a[0:n] += x, modulo 2^(64 n) */
static inline void limbs_add_small(uint64_t *a, int n, int64_t x) {
    for (int i = 0; x && i < n; i++) {
        __int128 t = (__int128)a[i] + x;
        a[i] = (uint64_t)t;
        x = (int64_t)(t >> 64);
    }
}

/* a[0:n] += (2^events - 1) * b[0:m], two's complement */
static void limbs_repeat_plainly(uint64_t *a, int n, const uint64_t *b, int m, int64_t events) {
    const int words = (int)(events >> 6), bits = (int)(events & 63), top = m + words + 1 < n ? m + words + 1 : n;
    const uint64_t sign = (uint64_t)((int64_t)b[m - 1] >> 63);
    uint64_t before = 0;
    int64_t carry = 0;
    for (int i = 0; i < top; i++) {
        uint64_t low = i < words ? 0 : i - words < m ? b[i - words] : sign;
        __int128 t = (__int128)a[i] + (low << bits | before >> 1 >> (63 - bits)) - (i < m ? b[i] : sign) + carry;
        before = low;
        a[i] = (uint64_t)t;
        carry = (int64_t)(t >> 64);
    }
    limbs_add_small(a + top, n - top, carry);
}

#ifdef HAMLET_AVX512
#include <immintrin.h>

#define LIMBS_INLINE HAMLET_AVX512 static inline __attribute__((always_inline))

/* Which limbs of a step are there, where `left` > 0 of them are. */
LIMBS_INLINE __mmask8 limbs_there(int left) { return (__mmask8)(left < LIMBS_STEP ? (1 << left) - 1 : 0xFF); }

/* The k-th step of b[0:n]: zeros before it, `beyond` behind it. */
LIMBS_INLINE __m512i limbs_step(const uint64_t *b, int n, int k, __m512i beyond) {
    const int left = n - LIMBS_STEP * k;
    if (k < 0) return _mm512_setzero_si512();
    if (left <= 0) return beyond;
    return _mm512_mask_loadu_epi64(beyond, limbs_there(left), b + LIMBS_STEP * k);
}

/* `a + b + carry`, eight limbs of one number; the carry that comes out of them. */
LIMBS_INLINE __m512i limbs_plus(__m512i a, __m512i b, unsigned *carry) {
    const __m512i ones = _mm512_set1_epi64(-1), sum = _mm512_add_epi64(a, b);
    const unsigned full = _mm512_cmpeq_epi64_mask(sum, ones);
    const unsigned raised = 2 * (unsigned)_mm512_cmplt_epu64_mask(sum, a) + *carry + full;
    *carry = raised >> LIMBS_STEP;
    return _mm512_mask_sub_epi64(sum, (__mmask8)(raised ^ full), sum, ones);
}

/* `a - b - borrow` likewise. */
LIMBS_INLINE __m512i limbs_minus(__m512i a, __m512i b, unsigned *borrow) {
    const __m512i ones = _mm512_set1_epi64(-1), rest = _mm512_sub_epi64(a, b);
    const unsigned none = _mm512_testn_epi64_mask(rest, rest);
    const unsigned lowered = 2 * (unsigned)_mm512_cmplt_epu64_mask(a, b) + *borrow + none;
    *borrow = lowered >> LIMBS_STEP;
    return _mm512_mask_add_epi64(rest, (__mmask8)(lowered ^ none), rest, ones);
}

/* Which limbs of two steps stand `words` < 8 places further: places for `_mm512_permutex2var_epi64`. */
LIMBS_INLINE __m512i limbs_places(int words) {
    const __m512i place = _mm512_sub_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(words));
    return _mm512_add_epi64(place, _mm512_set1_epi64(LIMBS_STEP)); /* bit 3: of the second step */
}

HAMLET_AVX512 static void limbs_sum_vectors(uint64_t *sum, const uint64_t *a, const uint64_t *b, int n) {
    const __m512i zero = _mm512_setzero_si512();
    unsigned carry = 0;
    for (int k = 0; LIMBS_STEP * k < n; k++) {
        const int left = n - LIMBS_STEP * k;
        const __m512i found = limbs_plus(limbs_step(a, n, k, zero), limbs_step(b, n, k, zero), &carry);
        _mm512_mask_storeu_epi64(
            sum + LIMBS_STEP * k, limbs_there(left), found);
    }
}

HAMLET_AVX512 static void limbs_repeat_vectors(uint64_t *a, int n, const uint64_t *b, int m, int64_t events) {
    const int words = (int)(events >> 6), steps = words / LIMBS_STEP, top = m + words + 1 < n ? m + words + 1 : n;
    const __m128i up = _mm_cvtsi64_si128(events & 63), down = _mm_cvtsi64_si128(64 - (events & 63));
    const __m512i low = limbs_places(words % LIMBS_STEP), lower = limbs_places(words % LIMBS_STEP + 1);
    const __m512i sign = _mm512_set1_epi64((int64_t)b[m - 1] >> 63);
    unsigned carry = 0, borrow = 0;
    int k;
    for (k = 0; LIMBS_STEP * k < top; k++) {
        const int left = n - LIMBS_STEP * k;
        const __mmask8 there = limbs_there(left);
        const __m512i first = limbs_step(b, m, k - steps - 1, sign), second = limbs_step(b, m, k - steps, sign);
        const __m512i raised = _mm512_or_si512(
            _mm512_sll_epi64(_mm512_permutex2var_epi64(first, low, second), up),
            _mm512_srl_epi64(_mm512_permutex2var_epi64(first, lower, second), down));
        const __m512i more = limbs_minus(raised, limbs_step(b, m, k, sign), &borrow);
        const __m512i held = _mm512_maskz_loadu_epi64(there, a + LIMBS_STEP * k);
        _mm512_mask_storeu_epi64(a + LIMBS_STEP * k, there, limbs_plus(held, more, &carry));
    }
    if (LIMBS_STEP * k < n) limbs_add_small(a + LIMBS_STEP * k, n - LIMBS_STEP * k, (int64_t)carry - (int64_t)borrow);
}

/* Eight limbs of a product with a number below 2^32; `high` goes from one step to the next. */
LIMBS_INLINE __m512i limbs_times(__m512i limbs, __m512i times, __m512i *high, unsigned *carry) {
    const __m512i first = _mm512_mul_epu32(limbs, times), second = _mm512_mul_epu32(_mm512_srli_epi64(limbs, 32), times);
    const __m512i sum = _mm512_add_epi64(first, _mm512_slli_epi64(second, 32));
    __m512i over = _mm512_srli_epi64(second, 32);
    over = _mm512_mask_sub_epi64(over, _mm512_cmplt_epu64_mask(sum, first), over, _mm512_set1_epi64(-1));
    const __m512i found = limbs_plus(sum, _mm512_alignr_epi64(over, *high, LIMBS_STEP - 1), carry);
    *high = over;
    return found;
}

/* a[0:n] += x * b[0:m] * 2^shift for |x| < 2^32 and m < LIMBS_MOST */
HAMLET_AVX512 static void limbs_shifted_vectors(
    uint64_t *a, int n, const uint64_t *b, int m, int64_t x, int64_t shift
) {
    const int words = (int)(shift >> 6), steps = words / LIMBS_STEP, parts = m / LIMBS_STEP + 1;
    const __m128i up = _mm_cvtsi64_si128(shift & 63), down = _mm_cvtsi64_si128(64 - (shift & 63));
    const __m512i low = limbs_places(words % LIMBS_STEP), lower = limbs_places(words % LIMBS_STEP + 1);
    const __m512i zero = _mm512_setzero_si512(), times = _mm512_set1_epi64(x < 0 ? -x : x);
    const __m512i flip = _mm512_set1_epi64(x < 0 ? -1 : 0); /* to subtract is to add the complement and 1 */
    __m512i product[LIMBS_MOST / LIMBS_STEP + 1], high = zero;
    unsigned carry = 0;
    int k;
    for (k = 0; k < parts; k++) product[k] = limbs_times(limbs_step(b, m, k, zero), times, &high, &carry);
    carry = x < 0;
    for (k = steps; k <= steps + parts && LIMBS_STEP * k < n; k++) {
        const int left = n - LIMBS_STEP * k, part = k - steps;
        const __mmask8 there = limbs_there(left);
        const __m512i first = part ? product[part - 1] : zero, second = part < parts ? product[part] : zero;
        const __m512i raised = _mm512_or_si512(
            _mm512_sll_epi64(_mm512_permutex2var_epi64(first, low, second), up),
            _mm512_srl_epi64(_mm512_permutex2var_epi64(first, lower, second), down));
        const __m512i held = _mm512_maskz_loadu_epi64(there, a + LIMBS_STEP * k);
        _mm512_mask_storeu_epi64(a + LIMBS_STEP * k, there, limbs_plus(held, _mm512_xor_si512(raised, flip), &carry));
    }
    if (LIMBS_STEP * k < n) limbs_add_small(a + LIMBS_STEP * k, n - LIMBS_STEP * k, (int64_t)carry - (x < 0));
}
#define LIMBS_VECTORS(n) ((n) > LIMBS_FEW && __builtin_cpu_supports("avx512f"))
#endif

/* sum[0:n] = a[0:n] + b[0:n] */
static inline void limbs_sum(uint64_t *sum, const uint64_t *a, const uint64_t *b, int n) {
#ifdef LIMBS_VECTORS
    if (LIMBS_VECTORS(2 * n)) { limbs_sum_vectors(sum, a, b, n); return; }
#endif
    unsigned char carry = 0;
    for (int i = 0; i < n; i++) {
        hamlet_u128 t = (hamlet_u128)a[i] + b[i] + carry;
        sum[i] = (uint64_t)t;
        carry = (unsigned char)(t >> 64);
    }
}

/* a[0:n] += (2^events - 1) * b[0:m], two's complement, m <= n */
static inline void limbs_repeat(uint64_t *a, int n, const uint64_t *b, int m, int64_t events) {
#ifdef LIMBS_VECTORS
    if (LIMBS_VECTORS(m)) { limbs_repeat_vectors(a, n, b, m, events); return; }
#endif
    limbs_repeat_plainly(a, n, b, m, events);
}

/* a[0:n] += x * b[0:m] * 2^shift, b not negative; the caller knows that the result fits */
static inline void limbs_raise(uint64_t *a, int n, const uint64_t *b, int m, int64_t x, int64_t shift) {
#ifdef LIMBS_VECTORS
    if (LIMBS_VECTORS(m) && m < LIMBS_MOST && x > -((int64_t)1 << 32) && x < (int64_t)1 << 32) {
        limbs_shifted_vectors(a, n, b, m, x, shift);
        return;
    }
#endif
    limbs_add_shifted(a, n, b, m, x, shift);
}

#endif
