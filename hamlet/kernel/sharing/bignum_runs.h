/* What runs of bursts do to limb vectors (contract: burst_runs.pyx). Lengths are those in use, not those of a state. */
#ifndef HAMLET_BIGNUM_RUNS_H
#define HAMLET_BIGNUM_RUNS_H

#include "bignum_bursts.h"

enum { LIMBS_SCANT = 2 }; /* limbs, up to which vectors gain nothing */

/* Each loop has the registers for itself: there are more carries in it than flags. */
#ifdef __GNUC__
#define LIMBS_ALONE static __attribute__((noinline, unused))
#else
#define LIMBS_ALONE static
#endif

#ifdef HAMLET_AVX512
#define LIMBS_WIDE(n, x) \
    ((n) > LIMBS_SCANT && (x) > -((int64_t)1 << 32) && (x) < (int64_t)1 << 32 && __builtin_cpu_supports("avx512f"))

HAMLET_AVX512 static void limbs_shifted_vectors_to(
    uint64_t *to, int n, const uint64_t *a, int m, uint64_t sign, int64_t shift
) {
    const int words = (int)(shift >> 6), steps = words / LIMBS_STEP;
    const __m128i up = _mm_cvtsi64_si128(shift & 63), down = _mm_cvtsi64_si128(64 - (shift & 63));
    const __m512i low = limbs_places(words % LIMBS_STEP), lower = limbs_places(words % LIMBS_STEP + 1);
    const __m512i beyond = _mm512_set1_epi64((int64_t)sign);
    for (int k = 0; LIMBS_STEP * k < n; k++) {
        const __m512i first = limbs_step(a, m, k - steps - 1, beyond), second = limbs_step(a, m, k - steps, beyond);
        _mm512_mask_storeu_epi64(
            to + LIMBS_STEP * k, limbs_there(n - LIMBS_STEP * k),
            _mm512_or_si512(
                _mm512_sll_epi64(_mm512_permutex2var_epi64(first, low, second), up),
                _mm512_srl_epi64(_mm512_permutex2var_epi64(first, lower, second), down)));
    }
}

HAMLET_AVX512 static void limbs_lift_vectors(
    uint64_t *z, uint64_t *also, const uint64_t *t, const uint64_t *a, int n, int64_t x, int c
) {
    const __m512i times = _mm512_set1_epi64(x < 0 ? -x : x), flip = _mm512_set1_epi64(x < 0 ? -1 : 0);
    __m512i high = c > 0 ? times : _mm512_setzero_si512();
    unsigned borrow = c < 0, over = 0, carry = x < 0, carries = x < 0;
    for (int k = 0; LIMBS_STEP * k < n; k++) {
        const int at = LIMBS_STEP * k;
        const __mmask8 there = limbs_there(n - at);
        const __m512i rest =
            limbs_minus(_mm512_maskz_loadu_epi64(there, t + at), _mm512_maskz_loadu_epi64(there, a + at), &borrow);
        const __m512i limbs = _mm512_xor_si512(limbs_times(rest, times, &high, &over), flip);
        const __m512i held = _mm512_maskz_loadu_epi64(there, z + at);
        if (also) {
            const __m512i more = _mm512_maskz_loadu_epi64(there, also + at);
            _mm512_mask_storeu_epi64(also + at, there, limbs_plus(more, limbs, &carries));
        }
        _mm512_mask_storeu_epi64(z + at, there, limbs_plus(held, limbs, &carry));
    }
}
#endif

/* u[0:n] = 2 u + x * t[0:m], two's complement, t not negative, m <= n */
LIMBS_ALONE void limbs_double_plus(uint64_t *u, int n, const uint64_t *t, int m, int64_t x) {
    const uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t flip = x < 0 ? ~(uint64_t)0 : 0; /* to subtract is to add the complement and 1 */
    uint64_t high = 0, before = 0;
    unsigned char carry = x < 0;
    int i;
    for (i = 0; i < m; i++) {
        hamlet_u128 product = (hamlet_u128)t[i] * magnitude + high;
        uint64_t limb = u[i];
        hamlet_u128 sum = (hamlet_u128)(limb << 1 | before >> 63) + ((uint64_t)product ^ flip) + carry;
        high = (uint64_t)(product >> 64);
        before = limb;
        u[i] = (uint64_t)sum;
        carry = (unsigned char)(sum >> 64);
    }
    for (; i < n; i++) {
        uint64_t limb = u[i];
        hamlet_u128 sum = (hamlet_u128)(limb << 1 | before >> 63) + (high ^ flip) + carry;
        high = 0;
        before = limb;
        u[i] = (uint64_t)sum;
        carry = (unsigned char)(sum >> 64);
    }
}

/* to[0:n] = a[0:m] * 2^shift, extended by `sign`, all ones or zero; modulo 2^(64 n) */
LIMBS_ALONE void limbs_shifted(uint64_t *to, int n, const uint64_t *a, int m, uint64_t sign, int64_t shift) {
#ifdef LIMBS_WIDE
    if (LIMBS_WIDE(n, 0)) { limbs_shifted_vectors_to(to, n, a, m, sign, shift); return; }
#endif
    const int words = (int)(shift >> 6), bits = (int)(shift & 63), top = m + words < n ? m + words : n;
    uint64_t before = 0;
    int i = 0;
    for (; i < words && i < n; i++) to[i] = 0;
    for (; i < top; i++) {
        uint64_t limb = a[i - words];
        to[i] = limb << bits | before >> 1 >> (63 - bits);
        before = limb;
    }
    if (i < n) to[i++] = sign << bits | before >> 1 >> (63 - bits);
    for (; i < n; i++) to[i] = sign;
}

/* z += x * (t - a + c), and `also` where it is no null pointer; n limbs, modulo 2^(64 n); c is -1, 0 or 1.
 * `also` may be t, and z may be a. */
LIMBS_ALONE void limbs_lift(
    uint64_t *z, uint64_t *also, const uint64_t *t, const uint64_t *a, int n, int64_t x, int c
) {
#ifdef LIMBS_WIDE
    if (LIMBS_WIDE(n, x)) { limbs_lift_vectors(z, also, t, a, n, x, c); return; }
#endif
    const uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t flip = x < 0 ? ~(uint64_t)0 : 0;
    uint64_t high = c > 0 ? magnitude : 0;
    unsigned char borrow = c < 0, carry = x < 0, carries = x < 0;
    if (also) {
        for (int i = 0; i < n; i++) {
            const uint64_t whole = t[i], part = a[i], held = z[i], more = also[i];
            hamlet_u128 rest = (hamlet_u128)whole - part - borrow;
            hamlet_u128 product = (hamlet_u128)(uint64_t)rest * magnitude + high;
            uint64_t limb = (uint64_t)product ^ flip;
            hamlet_u128 sum = (hamlet_u128)held + limb + carry, sums = (hamlet_u128)more + limb + carries;
            borrow = (unsigned char)((rest >> 64) & 1);
            high = (uint64_t)(product >> 64);
            z[i] = (uint64_t)sum;
            also[i] = (uint64_t)sums;
            carry = (unsigned char)(sum >> 64);
            carries = (unsigned char)(sums >> 64);
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        hamlet_u128 rest = (hamlet_u128)t[i] - a[i] - borrow;
        hamlet_u128 product = (hamlet_u128)(uint64_t)rest * magnitude + high;
        hamlet_u128 sum = (hamlet_u128)z[i] + ((uint64_t)product ^ flip) + carry;
        borrow = (unsigned char)((rest >> 64) & 1);
        high = (uint64_t)(product >> 64);
        z[i] = (uint64_t)sum;
        carry = (unsigned char)(sum >> 64);
    }
}

/* a[start:stop] = ones or zeros: a few, for which a call costs more than the loop */
static inline void limbs_fill(uint64_t *a, int start, int stop, int ones) {
    const uint64_t limb = ones ? ~(uint64_t)0 : 0;
    for (int i = start; i < stop; i++) {
        a[i] = limb;
#ifdef __GNUC__
        __asm__("" : : : "memory"); /* or the compiler calls memset */
#endif
    }
}

/* a[0:n] += x * 2^shift, two's complement, |x| < 2^63 */
static inline void limbs_add_at(uint64_t *a, int n, int64_t x, int64_t shift) {
    const __int128 raised = (__int128)((hamlet_u128)(__int128)x << (shift & 63));
    int i = (int)(shift >> 6);
    if (i >= n) return;
    hamlet_u128 sum = (hamlet_u128)a[i] + (uint64_t)raised;
    __int128 carry = (raised >> 64) + (int64_t)(sum >> 64);
    for (a[i++] = (uint64_t)sum; carry && i < n; i++) {
        __int128 next = (__int128)a[i] + carry;
        a[i] = (uint64_t)next;
        carry = next >> 64;
    }
}

/* a[0:n] += x * y * 2^shift, |x| and |y| below 2^63 */
static inline void limbs_add_product_at(uint64_t *a, int n, int64_t x, int64_t y, int64_t shift) {
    __int128 product = (__int128)x * y;
    for (; product != (int64_t)product; product >>= 32, shift += 32)
        limbs_add_at(a, n, (int64_t)(uint32_t)product, shift);
    limbs_add_at(a, n, (int64_t)product, shift);
}

/* to = t - a - c, n limbs; c is 0 or 1 */
LIMBS_ALONE void limbs_less(uint64_t *to, const uint64_t *t, const uint64_t *a, int n, int c) {
    unsigned char borrow = (unsigned char)c;
    for (int i = 0; i < n; i++) {
        hamlet_u128 rest = (hamlet_u128)t[i] - a[i] - borrow;
        to[i] = (uint64_t)rest;
        borrow = (unsigned char)((rest >> 64) & 1);
    }
}

#endif
