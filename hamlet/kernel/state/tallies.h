/* What the values of a burst come to, where they lie side by side. */
#ifndef HAMLET_TALLIES_H
#define HAMLET_TALLIES_H

#include <stdint.h>

#include "cpu_targets.h"

/* The least and greatest of n >= 1 values, and their sum as high * 2^32 + low; below 2^31 values no part overflows. */
HAMLET_TARGETS static void hamlet_tally(
    const int64_t *value, int64_t n, int64_t *least, int64_t *greatest, int64_t *high, int64_t *low
) {
    int64_t a = value[0], b = value[0], upper = 0, lower = 0;
    for (int64_t i = 0; i < n; i++) {
        a = value[i] < a ? value[i] : a;
        b = value[i] > b ? value[i] : b;
        upper += value[i] >> 32;
        lower += value[i] & 0xFFFFFFFF;
    }
    *least = a;
    *greatest = b;
    *high = upper;
    *low = lower;
}

#endif
