/* Numbers of the kernel: little-endian vectors of 64-bit limbs, and doubles with an exponent of their own.
 *
 * Counts are non-negative limb vectors, sums two's complement ones. Nothing here checks for overflow: the kernel proves
 * before it adds that the vectors are wide enough (see "headroom" in _core.pyx).
 *
 * A scaled double is the pair (m, e) with value m * 2^e. e is a multiple of 512, and 2^-256 <= |m| < 2^256 or m = 0,
 * so that sums of doubles weighted with counts of any size neither overflow nor vanish (DESIGN §2, "Numbers").
 */
#ifndef HAMLET_LIMBS_H
#define HAMLET_LIMBS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_targets.h"

typedef unsigned __int128 hamlet_u128;

/* a[0:n] += b[0:n] */
static inline void limbs_add(uint64_t *a, const uint64_t *b, int n) {
    unsigned char carry = 0;
    for (int i = 0; i < n; i++) {
        hamlet_u128 t = (hamlet_u128)a[i] + b[i] + carry;
        a[i] = (uint64_t)t;
        carry = (unsigned char)(t >> 64);
    }
}

/* a[0:n] += b[0:m], b not negative, m <= n */
static inline void limbs_add_wider(uint64_t *a, int n, const uint64_t *b, int m) {
    unsigned char carry = 0;
    for (int i = 0; i < n; i++) {
        hamlet_u128 t = (hamlet_u128)a[i] + (i < m ? b[i] : 0) + carry;
        a[i] = (uint64_t)t;
        carry = (unsigned char)(t >> 64);
        if (!carry && i >= m) break;
    }
}

static inline void limbs_increment(uint64_t *a, int n) {
    for (int i = 0; i < n && ++a[i] == 0; i++) { }
}

/* a[0:n] = -a[0:n] */
static inline void limbs_negate(uint64_t *a, int n) {
    for (int i = 0; i < n; i++) a[i] = ~a[i];
    limbs_increment(a, n);
}

/* a[0:n] += x * b[0:m], b not negative, m < n; the product of m + 1 limbs is extended by its sign */
static inline void limbs_add_product(uint64_t *a, int n, const uint64_t *b, int m, int64_t x) {
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    uint64_t high = 0;
    if (x >= 0) {
        unsigned char carry = 0;
        for (int i = 0; i < n; i++) {
            hamlet_u128 product = (i < m ? (hamlet_u128)b[i] * magnitude : 0) + high;
            hamlet_u128 t = (hamlet_u128)a[i] + (uint64_t)product + carry;
            high = (uint64_t)(product >> 64);
            a[i] = (uint64_t)t;
            carry = (unsigned char)(t >> 64);
        }
    } else {
        unsigned char borrow = 0;
        for (int i = 0; i < n; i++) {
            hamlet_u128 product = (i < m ? (hamlet_u128)b[i] * magnitude : 0) + high;
            hamlet_u128 t = (hamlet_u128)a[i] - (uint64_t)product - borrow;
            high = (uint64_t)(product >> 64);
            a[i] = (uint64_t)t;
            borrow = (unsigned char)((t >> 64) & 1);
        }
    }
}

/* a[0:n] += x * b[0:m] * 2^shift, b not negative; the caller knows that the result fits */
static inline void limbs_add_shifted(uint64_t *a, int n, const uint64_t *b, int m, int64_t x, int64_t shift) {
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, high = 0, before = 0;
    int bits = (int)(shift & 63);
    unsigned char carry = 0;
    for (int64_t i = 0, k = shift >> 6; k < n; i++, k++) {
        hamlet_u128 product = (i < m ? (hamlet_u128)b[i] * magnitude : 0) + high;
        uint64_t limb = (uint64_t)product;
        uint64_t shifted = bits ? (limb << bits) | (before >> (64 - bits)) : limb;
        hamlet_u128 t = x < 0 ? (hamlet_u128)a[k] - shifted - carry : (hamlet_u128)a[k] + shifted + carry;
        high = (uint64_t)(product >> 64);
        before = limb;
        a[k] = (uint64_t)t;
        carry = (unsigned char)((t >> 64) & 1);
        if (i > m && !carry) break;
    }
}

static inline int limbs_nonzero(const uint64_t *a, int n) {
    for (int i = 0; i < n; i++)
        if (a[i]) return 1;
    return 0;
}

/* bit length of a non-negative vector */
static inline int64_t limbs_bits(const uint64_t *a, int n) {
    while (n > 0 && a[n - 1] == 0) n--;
    return n == 0 ? 0 : 64 * (int64_t)n - __builtin_clzll(a[n - 1]);
}

/* ------------------------------------------------------------------------------------------------ scaled doubles */

typedef struct {
    double m;
    int64_t e;
} hamlet_scaled;

#define SCALE_STEP 512
#define SCALE_HIGH 0x1p256
#define SCALE_LOW 0x1p-256

static inline hamlet_scaled scaled_normal(double m, int64_t e) {
    hamlet_scaled r;
    double size = fabs(m);
    if (size >= SCALE_HIGH && isfinite(m)) {
        m *= 0x1p-512; e += SCALE_STEP;
        if (fabs(m) >= SCALE_HIGH) { m *= 0x1p-512; e += SCALE_STEP; }
    } else if (size < SCALE_LOW) {
        if (m == 0) e = 0;
        else {
            m *= 0x1p512; e -= SCALE_STEP;
            if (fabs(m) < SCALE_LOW) { m *= 0x1p512; e -= SCALE_STEP; }
        }
    }
    r.m = m; r.e = e;
    return r;
}

static inline hamlet_scaled scaled_add(hamlet_scaled a, hamlet_scaled b) {
    if (a.e == b.e) return scaled_normal(a.m + b.m, a.e);
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    if (a.e < b.e) { hamlet_scaled swap = a; a = b; b = swap; }
    if (a.e - b.e == SCALE_STEP) return scaled_normal(a.m + b.m * 0x1p-512, a.e);
    return isfinite(b.m) ? a : b;
}

/* no trends (a) contribute nothing, whatever the value (b): zero times infinity is zero here */
static inline hamlet_scaled scaled_product(hamlet_scaled a, hamlet_scaled b) {
    return a.m == 0 ? a : scaled_normal(a.m * b.m, a.e + b.e);
}

static inline hamlet_scaled scaled_multiply(hamlet_scaled a, double x) { return scaled_product(a, scaled_normal(x, 0)); }

static inline hamlet_scaled scaled_shift(hamlet_scaled a, int64_t bits) {
    return scaled_normal(ldexp(a.m, (int)(bits % SCALE_STEP)), a.m == 0 ? 0 : a.e + bits / SCALE_STEP * SCALE_STEP);
}

/* the nearest scaled double below a non-negative limb vector (relative error below 2^-52) */
static inline hamlet_scaled scaled_from_limbs(const uint64_t *a, int n) {
    hamlet_scaled zero = {0.0, 0};
    while (n > 0 && a[n - 1] == 0) n--;
    if (n == 0) return zero;
    if (n == 1) { zero.m = (double)a[0]; return zero; }
    double m = (double)a[n - 1] * 0x1p64 + (double)a[n - 2];
    int64_t shift = 64 * (int64_t)(n - 2);
    int64_t e = shift / SCALE_STEP * SCALE_STEP;
    return scaled_normal(ldexp(m, (int)(shift - e)), e);
}

static inline hamlet_scaled scaled_load(const uint64_t *a) {
    hamlet_scaled r;
    memcpy(&r, a, sizeof r);
    return r;
}

typedef double hamlet_doubles __attribute__((vector_size(32)));
typedef int64_t hamlet_integers __attribute__((vector_size(32)));
typedef uint8_t hamlet_bytes __attribute__((vector_size(4)));

/* four scaled doubles that lie side by side: their m and e, and all ones where the byte of `selected` is set */
#define FOUR_SCALED(x, selected) \
    hamlet_doubles low, high; \
    hamlet_bytes bytes; \
    memcpy(&low, (x), sizeof low); \
    memcpy(&high, (x) + 2, sizeof high); \
    memcpy(&bytes, (selected), sizeof bytes); \
    hamlet_doubles m = __builtin_shufflevector(low, high, 0, 2, 4, 6); \
    hamlet_integers e = (hamlet_integers)__builtin_shufflevector(low, high, 1, 3, 5, 7); \
    hamlet_integers chosen = -__builtin_convertvector(bytes, hamlet_integers)

/* total += the sum of the selected ones (bytes of 0 and 1) of n <= 2^20 scaled doubles that lie side by side */
HAMLET_TARGETS static hamlet_scaled scaled_add_selected(
    hamlet_scaled total, const uint64_t *value, const uint8_t *selected, long n
) {
    const hamlet_scaled *x = (const hamlet_scaled *)value;
    hamlet_doubles sums = {0};
    hamlet_integers largest = (hamlet_integers){0} + INT64_MIN;
    int64_t most = INT64_MIN;
    double sum = 0;
    long i, whole = n & ~3L;
    for (i = 0; i < whole; i += 4) {
        FOUR_SCALED(x + i, selected + i);
        chosen &= m != 0.0;
        chosen &= e > largest;
        largest = (chosen & e) | (~chosen & largest);
    }
    for (i = 0; i < 4; i++) most = largest[i] > most ? largest[i] : most;
    if (most != INT64_MIN) {
        for (i = 0; i < whole; i += 4) { /* what is more than one step smaller is below every bit of the sum */
            FOUR_SCALED(x + i, selected + i);
            hamlet_integers here = chosen & (e == most), behind = chosen & (e == most - SCALE_STEP);
            sums += (hamlet_doubles)(here & (hamlet_integers)m);
            sums += (hamlet_doubles)(behind & (hamlet_integers)(m * 0x1p-512));
        }
        for (i = 0; i < 4; i++) sum += sums[i];
        total = scaled_add(total, scaled_normal(sum, sum == 0 ? 0 : most));
    }
    for (i = whole; i < n; i++) if (selected[i]) total = scaled_add(total, x[i]);
    return total;
}

static inline void scaled_store(uint64_t *a, hamlet_scaled x) { memcpy(a, &x, sizeof x); }

#endif
