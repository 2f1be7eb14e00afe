/* Numbers of the kernel: little-endian vectors of 64-bit limbs, and doubles with an exponent of their own.
 *
 * Counts are non-negative limb vectors, sums two's complement ones. Nothing here checks for overflow: the kernel proves
 * before it adds that the vectors are wide enough (see "headroom" in _core.pyx).
 *
 * A scaled double is the pair (m, e) with value m * 2^e. e is a multiple of 512, and 2^-256 <= |m| < 2^256 or m = 0,
 * so that sums of doubles weighted with counts of any size neither overflow nor vanish.
 */
#ifndef HAMLET_BIGNUM_H
#define HAMLET_BIGNUM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu_targets.h"

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
    const uint64_t flip = x < 0 ? ~(uint64_t)0 : 0; /* to subtract is to add the complement and 1 */
    const int bits = (int)(shift & 63), places = n - (int)(shift >> 6), whole = m < places ? m : places;
    unsigned char carry = x < 0;
    int i;
    a += shift >> 6;
    for (i = 0; i < whole; i++) {
        hamlet_u128 product = (hamlet_u128)b[i] * magnitude + high;
        uint64_t limb = (uint64_t)product;
        hamlet_u128 t = (hamlet_u128)a[i] + ((limb << bits | before >> 1 >> (63 - bits)) ^ flip) + carry;
        high = (uint64_t)(product >> 64);
        before = limb;
        a[i] = (uint64_t)t;
        carry = (unsigned char)(t >> 64);
    }
    for (; i < places; i++) {
        hamlet_u128 t = (hamlet_u128)a[i] + ((high << bits | before >> 1 >> (63 - bits)) ^ flip) + carry;
        a[i] = (uint64_t)t;
        carry = (unsigned char)(t >> 64);
        before = high;
        high = 0;
        if (!before && carry == (x < 0)) break; /* what is left changes nothing */
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
    if (!isfinite(b.m)) b.m += a.m; /* no number where both are infinite, of different signs */
    return isfinite(b.m) ? a : b;
}

/* no trends (a) contribute nothing, whatever the value (b): zero times infinity is zero here */
static inline hamlet_scaled scaled_load(const uint64_t *a);
static inline void scaled_store(uint64_t *a, hamlet_scaled x);

/* a[i] += b[i] for n of them, one behind the other */
static inline void scaled_add_each(uint64_t *a, const uint64_t *b, int n) {
    for (int i = 0; i < 2 * n; i += 2) {
        hamlet_scaled x = scaled_load(a + i), y = scaled_load(b + i);
        double m = x.m + y.m, size = fabs(m);
        if (y.m == 0) continue;
        if (x.e == y.e && size < SCALE_HIGH && size >= SCALE_LOW) memcpy(a + i, &m, sizeof m);
        else scaled_store(a + i, scaled_add(x, y));
    }
}

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

/* ------------------------------------------------------------------------------------------------ sums over masks
 *
 * Nodes that a scan selects are given by masks: 64 ones or zeros each, one after the other. */

typedef double hamlet_doubles __attribute__((vector_size(32)));
typedef int64_t hamlet_integers __attribute__((vector_size(32)));
typedef uint64_t hamlet_unsigned __attribute__((vector_size(32)));

/* One exponent for a block of scaled doubles, so that doubles can be added up: the largest of theirs. Behind it lies one
 * step of the scale; what is smaller still weighs nothing, and the block is `mixed`. So it is where a value is infinite. */
typedef struct {
    int64_t exponent; /* INT64_MIN: no value but zero yet */
    int64_t mixed;
} hamlet_scale;

static inline double scaled_weight(hamlet_scaled x, hamlet_scale *scale) {
    if (x.m == 0) return 0;
    if (!isfinite(x.m)) { scale->mixed = 1; return x.m; }
    if (x.e == scale->exponent) return x.m;
    if (x.e == scale->exponent - SCALE_STEP) return x.m * 0x1p-512;
    scale->mixed = 1;
    return 0;
}

/* Weigh values from..to-1 of a block; they lie `stride` words apart. Those before `from` are weighed again where the
 * exponent rises. */
static inline void scaled_weigh(
    const uint64_t *value, long stride, long from, long to, double *weight, hamlet_scale *scale
) {
    if (from == 0) { scale->exponent = INT64_MIN; scale->mixed = 0; }
    for (long i = from; i < to; i++) {
        hamlet_scaled x = scaled_load(value + i * stride);
        if (x.m != 0 && isfinite(x.m) && x.e > scale->exponent) {
            scale->exponent = x.e;
            scale->mixed = 0;
            for (long j = 0; j < i; j++) weight[j] = scaled_weight(scaled_load(value + j * stride), scale);
        }
        weight[i] = scaled_weight(x, scale);
    }
}

/* the sum of the selected weights */
HAMLET_TARGETS static double masked_sum(const double *weight, const int64_t *mask, long n) {
    hamlet_doubles sums[4] = {{0}, {0}, {0}, {0}}, w;
    hamlet_integers chosen;
    long i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 4; j++) {
            memcpy(&w, weight + i + 4 * j, sizeof w);
            memcpy(&chosen, mask + i + 4 * j, sizeof chosen);
            sums[j] += (hamlet_doubles)(chosen & (hamlet_integers)w);
        }
    sums[0] += sums[1]; sums[2] += sums[3]; sums[0] += sums[2];
    double sum = (sums[0][0] + sums[0][1]) + (sums[0][2] + sums[0][3]);
    for (; i < n; i++) if (mask[i]) sum += weight[i];
    return sum;
}

/* total + the selected ones of n <= 2^20 scaled doubles, which lie `stride` words apart */
static inline hamlet_scaled scaled_add_selected(
    hamlet_scaled total, const uint64_t *value, long stride, const double *weight, hamlet_scale scale,
    const int64_t *mask, long n
) {
    double sum = masked_sum(weight, mask, n);
    if (!scale.mixed || (isfinite(sum) && fabs(sum) >= 0x1p-300)) /* what weighs nothing is below every bit of it */
        return scaled_add(total, scaled_normal(sum, sum == 0 ? 0 : scale.exponent));
    for (long i = 0; i < n; i++) if (mask[i]) total = scaled_add(total, scaled_load(value + i * stride));
    return total;
}

/* total[0:words] += the selected ones of n limb vectors of one or two words, which lie `stride` words apart */
HAMLET_TARGETS static void limbs_add_selected(
    uint64_t *total, int words, const uint64_t *value, long stride, const int64_t *mask, long n
) {
    if (words == 1) {
        uint64_t sum = 0;
        if (stride == 1) for (long i = 0; i < n; i++) sum += value[i] & (uint64_t)mask[i];
        else for (long i = 0; i < n; i++) sum += value[i * stride] & (uint64_t)mask[i];
        total[0] += sum;
    } else {
        hamlet_u128 sum = ((hamlet_u128)total[1] << 64) | total[0];
        for (long i = 0; i < n; i++) {
            const uint64_t *x = value + i * stride;
            sum += (((hamlet_u128)x[1] << 64) | x[0]) & (hamlet_u128)(__int128)mask[i];
        }
        total[0] = (uint64_t)sum;
        total[1] = (uint64_t)(sum >> 64);
    }
}

/* The places of the masks that are set; how many they are. */
static inline long masks_to_places(const int64_t *mask, long n, int64_t *place) {
    long chosen = 0;
    for (long i = 0; i < n; i++) { place[chosen] = i; chosen -= mask[i]; }
    return chosen;
}

/* The low and the high halves of four words of each node, added up: no carries, for up to 2^32 nodes. */
static inline void limbs_add_halves(
    const uint64_t *value, long stride, const int64_t *place, long places, uint64_t *low, uint64_t *high
) {
    hamlet_integers lows = {0}, highs = {0}, halves = (hamlet_integers){0} + 0xFFFFFFFF;
    for (long i = 0; i < places; i++) {
        hamlet_integers x;
        memcpy(&x, value + place[i] * stride, sizeof x);
        lows += x & halves;
        highs += (hamlet_integers)((hamlet_unsigned)x >> 32);
    }
    memcpy(low, &lows, sizeof lows);
    memcpy(high, &highs, sizeof highs);
}

/* total[0:words] += limb vectors of as many words at some places, which lie `stride` words apart */
HAMLET_TARGETS static void limbs_add_each(
    uint64_t *total, int words, const uint64_t *value, long stride, const int64_t *place, long places
) {
    uint64_t low[4], high[4], carry = 0;
    for (int first = 0; first < words; first += 4) {
        int here = words - first < 4 ? words - first : 4;
        if (here == 4) limbs_add_halves(value + first, stride, place, places, low, high);
        else
            for (int j = 0; j < here; j++) {
                low[j] = high[j] = 0;
                for (long i = 0; i < places; i++) {
                    uint64_t x = value[place[i] * stride + first + j];
                    low[j] += x & 0xFFFFFFFF;
                    high[j] += x >> 32;
                }
            }
        for (int j = 0; j < here; j++) {
            hamlet_u128 t = (hamlet_u128)low[j] + ((hamlet_u128)high[j] << 32) + total[first + j] + carry;
            total[first + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
    }
}

static inline void scaled_store(uint64_t *a, hamlet_scaled x) { memcpy(a, &x, sizeof x); }

#endif
