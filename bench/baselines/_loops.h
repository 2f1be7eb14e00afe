/* The inner loops of the baselines, as wide as the machine's vectors: what they are compared by.

   Vector extensions and several targets of one source, as in the kernel, so that algorithms are compared and not
   compilers. Every function is one pass over contiguous doubles. */
#ifndef HAMLET_BENCH_LOOPS_H
#define HAMLET_BENCH_LOOPS_H

#include <string.h>

#include "../../hamlet/kernel/cpu_targets.h"

#define HB_LARGE 0x1p300 /* a sum that passes it is scaled down ... */
#define HB_DOWN 0x1p-300 /* ... by this much, with all others of its window */
#define HB_DOWN_BITS 300

enum { LANES = 8, UNROLLED = 4 };
typedef double hb_lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));
typedef long long hb_masks __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));

#define HB_LOAD(pointer) (*(const hb_lanes *)(pointer))
#define HB_STORE(pointer, value) (*(hb_lanes *)(pointer) = (value))

/* The sum of x[0..n). */
HAMLET_TARGETS static double hb_sum(const double *x, long n)
{
    hb_lanes first = {0}, second = {0}, third = {0}, fourth = {0};
    double total = 0;
    long i = 0;
    for (; i + UNROLLED * LANES <= n; i += UNROLLED * LANES) {
        first += HB_LOAD(x + i);
        second += HB_LOAD(x + i + LANES);
        third += HB_LOAD(x + i + 2 * LANES);
        fourth += HB_LOAD(x + i + 3 * LANES);
    }
    first += second + third + fourth;
    for (int lane = 0; lane < LANES; lane++)
        total += first[lane];
    for (; i < n; i++)
        total += x[i];
    return total;
}

/* The sum of x[i] where left[i] compares as it should with `right`; NaN compares with nothing. */
#define HB_SUM_WHERE(name, operator)                                                                    \
    HAMLET_TARGETS static double name(const double *x, const double *left, double right, long n)      \
    {                                                                                                   \
        hb_lanes first = {0}, second = {0};                                                             \
        double total = 0;                                                                               \
        long i = 0;                                                                                     \
        for (; i + 2 * LANES <= n; i += 2 * LANES) {                                                    \
            hb_masks here = HB_LOAD(left + i) operator right;                                           \
            hb_masks next = HB_LOAD(left + i + LANES) operator right;                                   \
            first += (hb_lanes)((hb_masks)HB_LOAD(x + i) & here);                                       \
            second += (hb_lanes)((hb_masks)HB_LOAD(x + i + LANES) & next);                              \
        }                                                                                               \
        first += second;                                                                                \
        for (int lane = 0; lane < LANES; lane++)                                                        \
            total += first[lane];                                                                       \
        for (; i < n; i++)                                                                              \
            total += left[i] operator right ? x[i] : 0;                                                 \
        return total;                                                                                   \
    }

HB_SUM_WHERE(hb_sum_less, <)
HB_SUM_WHERE(hb_sum_less_equal, <=)
HB_SUM_WHERE(hb_sum_greater, >)
HB_SUM_WHERE(hb_sum_greater_equal, >=)
HB_SUM_WHERE(hb_sum_equal, ==)

static inline double hb_sum_where(const double *x, const double *left, int operator, double right, long n)
{
    switch (operator) {
    case 0: return hb_sum_less(x, left, right, n);
    case 1: return hb_sum_less_equal(x, left, right, n);
    case 2: return hb_sum_greater(x, left, right, n);
    case 3: return hb_sum_greater_equal(x, left, right, n);
    default: return hb_sum_equal(x, left, right, n);
    }
}

/* to[j + 1] += from[j] for j in [0, n); the arrays may be one. */
HAMLET_TARGETS static void hb_shift_add(double *to, const double *from, long n)
{
    long j = n;
    for (; j >= LANES; j -= LANES) { /* downwards: what is read has not been written yet */
        hb_lanes moved = HB_LOAD(from + j - LANES);
        HB_STORE(to + j - LANES + 1, HB_LOAD(to + j - LANES + 1) + moved);
    }
    for (; j > 0; j--)
        to[j] += from[j - 1];
}

/* to[j + 1] += x * from[j] for j in [0, n); two arrays. */
HAMLET_TARGETS static void hb_shift_add_scaled(double *to, const double *from, double x, long n)
{
    long j = 0;
    for (; j + LANES <= n; j += LANES)
        HB_STORE(to + j + 1, HB_LOAD(to + j + 1) + x * HB_LOAD(from + j));
    for (; j < n; j++)
        to[j + 1] += x * from[j];
}

/* x[0..n) times a factor. */
HAMLET_TARGETS static void hb_scale(double *x, double factor, long n)
{
    for (long i = 0; i < n; i++)
        x[i] *= factor;
}

#endif
