/* Products of limb vectors: little-endian, 64 bits a limb; schoolbook, for one factor is mostly a few limbs long. */
#ifndef HAMLET_LIMB_PRODUCTS_H
#define HAMLET_LIMB_PRODUCTS_H

#include "bignum.h"

/* How many limbs of a[0:n] are left without those that only go on with its sign: `fill` is 0 or all ones. */
static inline int limbs_used(const uint64_t *a, int n, uint64_t fill) {
    while (n > 0 && a[n - 1] == fill) n--;
    return n;
}

/* a[0:n] += b[0:m] * c[0:l] modulo 2^(64 n), all unsigned */
static inline void limbs_add_times(uint64_t *a, int n, const uint64_t *b, int m, const uint64_t *c, int l) {
    if (m < l) {
        const uint64_t *longer = c;
        int limbs = l;
        c = b; l = m;
        b = longer; m = limbs;
    }
    int j = 0;
    for (; j + 1 < l && m + j + 1 < n; j += 2) { /* two rows at once: half as many loads, and two chains of carries */
        const uint64_t by = c[j], next = c[j + 1];
        uint64_t *to = a + j, high = 0, higher = 0;
        hamlet_u128 t = (hamlet_u128)b[0] * by + to[0], u;
        to[0] = (uint64_t)t;
        high = (uint64_t)(t >> 64);
        for (int i = 1; i < m; i++) {
            t = (hamlet_u128)b[i] * by + to[i] + high;
            high = (uint64_t)(t >> 64);
            u = (hamlet_u128)b[i - 1] * next + (uint64_t)t + higher;
            to[i] = (uint64_t)u;
            higher = (uint64_t)(u >> 64);
        }
        t = (hamlet_u128)to[m] + high;
        u = (hamlet_u128)b[m - 1] * next + (uint64_t)t + higher;
        to[m] = (uint64_t)u;
        t = (t >> 64) + (u >> 64);
        for (int i = m + 1 + j; t && i < n; i++) {
            t += a[i];
            a[i] = (uint64_t)t;
            t >>= 64;
        }
    }
    for (; j < l && j < n; j++) {
        const uint64_t by = c[j];
        const int top = m < n - j ? m : n - j;
        uint64_t *to = a + j, high = 0;
        for (int i = 0; i < top; i++) {
            hamlet_u128 t = (hamlet_u128)b[i] * by + to[i] + high;
            to[i] = (uint64_t)t;
            high = (uint64_t)(t >> 64);
        }
        for (int i = j + top; high && i < n; i++) {
            a[i] += high;
            high = a[i] < high;
        }
    }
}

/* a[0:n] -= b[0:m] modulo 2^(64 n) */
static inline void limbs_subtract(uint64_t *a, int n, const uint64_t *b, int m) {
    unsigned char borrow = 0;
    for (int i = 0; i < n && (i < m || borrow); i++) {
        hamlet_u128 t = (hamlet_u128)a[i] - (i < m ? b[i] : 0) - borrow;
        a[i] = (uint64_t)t;
        borrow = (unsigned char)((t >> 64) & 1);
    }
}

/* a[0:n] += b[0:m] * c[0:l] modulo 2^(64 n), b not negative, c in two's complement */
static inline void limbs_add_signed_times(uint64_t *a, int n, const uint64_t *b, int m, const uint64_t *c, int l) {
    const uint64_t fill = l > 0 && (int64_t)c[l - 1] < 0 ? ~(uint64_t)0 : 0;
    l = limbs_used(c, l, fill);
    limbs_add_times(a, n, b, m, c, l); /* c[0:l] is by 2^(64 l) too large where it is negative */
    if (fill && l < n) limbs_subtract(a + l, n - l, b, m);
}

#endif
