/* The inner loops of the expression machine (contract and operations: expression.pyx).
 *
 * A register is a block of values or, where the whole block would be one value, that value alone: what depends on the
 * later event only is computed once per block. Columns are read where they lie. A DOUBLE that is NULL is NaN, an INT
 * that is NULL has its mask `there` cleared, and a truth value is a mask: 64 ones or zeros, as wide as what is compared,
 * so that comparing, joining and summing stay in vectors. Unknown counts as false, which is sound since no NOT is left
 * in a condition. One source serves several instruction sets (cpu_targets.h).
 */
#ifndef HAMLET_EXPRESSION_MACHINE_H
#define HAMLET_EXPRESSION_MACHINE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu_targets.h"

#define MACHINE_BLOCK 512
#define MACHINE_DEPTH 64 /* registers at most */

enum machine_operation {
    LOAD_VECTOR_INT, LOAD_VECTOR_DOUBLE, LOAD_SCALAR_INT, LOAD_SCALAR_DOUBLE,
    CONSTANT_INT, CONSTANT_DOUBLE, NOTHING_INT, NOTHING_TRUTH, /* the last that pushes */
    RANK, TO_DOUBLE, NEGATE_INT, NEGATE_DOUBLE, IS_NULL_INT, IS_NULL_DOUBLE, IS_NOT_NULL_INT, IS_NOT_NULL_DOUBLE,
    ADD_INT, SUBTRACT_INT, MULTIPLY_INT, REMAINDER_INT, /* the first that pops */
    ADD_DOUBLE, SUBTRACT_DOUBLE, MULTIPLY_DOUBLE, REMAINDER_DOUBLE, DIVIDE,
    COMPARE_INT, COMPARE_DOUBLE, COMPARE_INT_DOUBLE, BOTH, EITHER,
    ADD_SCALED, SUBTRACT_SCALED, COMPARE_SCALED, RATIO, /* of times, one in a coarser unit */
    MULTIPLY_TICKS, DIVIDE_TICKS, DIVIDE_TICKS_INT, REFUSE
};

typedef struct {
    const int64_t *data;  /* 64-bit integers, or the bits of doubles */
    const uint8_t *valid; /* 1 where there is a value; a null pointer where no row is NULL */
} hamlet_column;

typedef struct {
    const int32_t *operations; /* operations[0:size], a postfix program */
    const int32_t *arguments;  /* column, or index into constants, or comparison */
    const int64_t *constants;  /* integers, or the bits of doubles */
    int size;
    int depth;                 /* the most registers in use at once, <= MACHINE_DEPTH */
} hamlet_code;

typedef struct {
    const int64_t *value; /* [block], or [1] where `one`: integers, the bits of doubles, or masks */
    const int64_t *there; /* of an INT: masks, as many; a null pointer where every value is there */
    int one;              /* 1: one value for the whole block; then `there` is a null pointer or the value is NULL */
    int64_t own[MACHINE_BLOCK] HAMLET_ALIGNED, own_there[MACHINE_BLOCK]; /* where results lie */
} hamlet_register;

#define DOUBLES(x) ((const double *)(x)->value)

/* out[i] = f(a[i], b[i]) where either side may be one value for all; `out` may be where a[] lies */
#define EACH(TYPE, out, EXPRESSION) do { \
    const TYPE *left = (const TYPE *)a->value, *right = (const TYPE *)b->value; \
    if (a->one && b->one) { TYPE x = left[0], y = right[0]; (out)[0] = EXPRESSION; } \
    else if (b->one) { \
        TYPE y = right[0]; \
        _Pragma("GCC ivdep") \
        for (long i = 0; i < n; i++) { TYPE x = left[i]; (out)[i] = EXPRESSION; } \
    } else if (a->one) { \
        TYPE x = left[0]; \
        _Pragma("GCC ivdep") \
        for (long i = 0; i < n; i++) { TYPE y = right[i]; (out)[i] = EXPRESSION; } \
    } else { \
        _Pragma("GCC ivdep") \
        for (long i = 0; i < n; i++) { TYPE x = left[i], y = right[i]; (out)[i] = EXPRESSION; } \
    } \
} while (0)

#define COMPARE(TYPE) do { switch (argument) { \
    case 0: EACH(TYPE, a->own, -(int64_t)(x == y)); break; \
    case 1: EACH(TYPE, a->own, -(int64_t)(x < y) | -(int64_t)(x > y)); break; \
    case 2: EACH(TYPE, a->own, -(int64_t)(x < y)); break; \
    case 3: EACH(TYPE, a->own, -(int64_t)(x <= y)); break; \
    case 4: EACH(TYPE, a->own, -(int64_t)(x > y)); break; \
    default: EACH(TYPE, a->own, -(int64_t)(x >= y)); } } while (0)

/* a 64-bit integer beside a double compares exactly where long double has 64 bits */
static inline int machine_compare_mixed(int how, long double x, long double y) {
    switch (how) {
        case 0: return x == y;
        case 1: return x < y || x > y;
        case 2: return x < y;
        case 3: return x <= y;
        case 4: return x > y;
        default: return x >= y;
    }
}

/* Whether -2^bits <= x < 2^bits for all of m integers; where there is no value, anything stands. */
static inline int machine_narrow(const int64_t *value, long m, int bits) {
    uint64_t wide = 0;
    for (long i = 0; i < m; i++) wide |= ((uint64_t)value[i] + ((uint64_t)1 << bits)) >> (bits + 1);
    return !wide;
}

/* a is there where both are; of so many rows as the result has */
static inline void machine_both_there(hamlet_register *a, const hamlet_register *b, long m) {
    if (!b->there) {
        if (!a->there || !a->one || b->one) return;
        memset(a->own_there, 0, (size_t)m * 8); /* one value for all that is NULL */
    } else if ((a->there && a->one) || b->one) memset(a->own_there, 0, (size_t)m * 8);
    else if (!a->there) memcpy(a->own_there, b->there, (size_t)m * 8);
    else for (long i = 0; i < m; i++) a->own_there[i] = a->there[i] & b->there[i];
    a->there = a->own_there;
}

/* The truth of a holds where its operands are there. */
static inline void machine_known(hamlet_register *a, long m) {
    if (a->there) for (long i = 0; i < m; i++) a->own[i] &= a->there[i];
    a->there = NULL;
}

static inline int machine_overflows(int operation, int64_t x, int64_t y, int64_t *r) {
    if (operation == ADD_INT) return __builtin_add_overflow(x, y, r);
    if (operation == SUBTRACT_INT) return __builtin_sub_overflow(x, y, r);
    return __builtin_mul_overflow(x, y, r);
}

/* Sums, differences and products of m rows: the first row that passes 64 bits, or -1. */
static inline long machine_integers(int operation, hamlet_register *a, const hamlet_register *b, long n, long m) {
    int bits = operation == MULTIPLY_INT ? 31 : 62;
    int64_t first = a->value[0];
    if (machine_narrow(a->value, a->one ? 1 : n, bits) && machine_narrow(b->value, b->one ? 1 : n, bits)) {
        if (operation == ADD_INT) EACH(int64_t, a->own, x + y);
        else if (operation == SUBTRACT_INT) EACH(int64_t, a->own, x - y);
        else EACH(int64_t, a->own, x * y);
        return -1;
    }
    for (long i = 0; i < m; i++)
        if (machine_overflows(operation, a->one ? first : a->value[i], b->value[b->one ? 0 : i], &a->own[i])
            && (!a->there || a->there[i])) return i;
    return -1;
}

/* Powers of 1000 that bring two times to one unit: 1 to 3 that of the left one, 4 to 6 that of the right one. */
static inline __int128 machine_scaled(int64_t x, int power) {
    static const int64_t factor[4] = {1, 1000, 1000000, 1000000000};
    return (__int128)x * factor[power];
}

/* The integer nearest to n / d, of two the even one; d > 0. */
static inline __int128 machine_nearest(__int128 n, __int128 d) {
    __int128 q = n / d, r = n % d;
    if (r < 0) { q--; r += d; }
    __int128 rest = d - r; /* r and rest are how far the two integers are away */
    return r > rest || (r == rest && (q & 1)) ? q + 1 : q;
}

static inline int machine_fits(__int128 x, int64_t *r) {
    *r = (int64_t)x;
    return x == *r;
}

/* ticks * 2^exponent * m, or ticks / (2^exponent * m), to the nearest integer; 0 where that does not fit. */
static inline int machine_by_double(int64_t ticks, double by, int divides, int64_t *r) {
    int exponent;
    *r = 0;
    if (by != by || by == 0 || ticks == 0) return 1;
    if (isinf(by)) return divides;
    double fraction = frexp(by, &exponent);
    int64_t m = (int64_t)ldexp(fraction, 53); /* by is m * 2^(exponent - 53) */
    exponent -= 53;
    while (!(m & 1)) { m /= 2; exponent++; }
    if (!divides) {
        __int128 product = (__int128)ticks * m; /* of 116 bits */
        if (exponent >= 0) {
            if (exponent > 63 || product >> (126 - exponent) != (product < 0 ? -1 : 0)) return 0;
            return machine_fits(product << exponent, r);
        }
        if (exponent < -118) return 1; /* less than a half */
        return machine_fits(machine_nearest(product, (__int128)1 << -exponent), r);
    }
    __int128 n = ticks, d = m;
    if (d < 0) { n = -n; d = -d; }
    if (exponent <= 0) {
        if (exponent < -126) return 0;
        __int128 size = n < 0 ? -n : n;
        int bits = 0;
        for (__int128 rest = size; rest; rest >>= 1) bits++;
        if (bits - exponent > 126) return 0;
        return machine_fits(machine_nearest(n << -exponent, d), r);
    }
    if (exponent > 66) return 1;
    return machine_fits(machine_nearest(n, d << exponent), r);
}

/* The double nearest to n / d, d not 0. */
static inline double machine_ratio(__int128 n, __int128 d) {
    int negative = (n < 0) != (d < 0), shift = 0;
    unsigned __int128 x = n < 0 ? -n : n, y = d < 0 ? -d : d;
    if (!x) return 0;
    while (!(x >> 126)) { x <<= 1; shift++; }
    while (!(y & 1)) { y >>= 1; shift++; }
    unsigned __int128 q = x / y;
    int sticky = x % y != 0;
    /* bring q to 64 bits, the last one standing for all that is lost */
    int drop = 0;
    while (q >> 62) { sticky |= (int)(q & 1); q >>= 1; drop++; }
    double found = ldexp((double)((uint64_t)q * 2 + (uint64_t)sticky), drop - shift - 1);
    return negative ? -found : found;
}

/* Leaves the program's result for rows base..base+n-1 in r[0]; -1, or the place of the operation that overflowed at
 * row *where. */
HAMLET_TARGETS static int machine_block(
    const hamlet_code *code, const hamlet_column *vector, long base, long n,
    const hamlet_column *scalar, long row, const int64_t *ranks, hamlet_register *r, long *where
) {
    int top = -1;
    for (int place = 0; place < code->size; place++) {
        int operation = code->operations[place], argument = code->arguments[place];
        if (operation <= NOTHING_TRUTH) top++;
        else if (operation >= ADD_INT) top--;
        hamlet_register *a = &r[top], *b = &r[top + 1];
        long m = operation >= ADD_INT ? (a->one && b->one ? 1 : n) : (a->one ? 1 : n);
        double *results = (double *)a->own;
        switch (operation) {
        case LOAD_VECTOR_INT: case LOAD_VECTOR_DOUBLE: {
            const hamlet_column *c = &vector[argument];
            const uint8_t *valid = c->valid ? c->valid + base : NULL;
            a->one = 0;
            a->value = c->data + base;
            a->there = NULL;
            if (!valid || !memchr(valid, 0, (size_t)n)) break;
            if (operation == LOAD_VECTOR_INT) {
                for (long i = 0; i < n; i++) a->own_there[i] = -(int64_t)valid[i];
                a->there = a->own_there;
            } else {
                for (long i = 0; i < n; i++) results[i] = valid[i] ? DOUBLES(a)[i] : NAN;
                a->value = a->own;
            }
            break;
        }
        case LOAD_SCALAR_INT: case LOAD_SCALAR_DOUBLE: {
            const hamlet_column *c = &scalar[argument];
            int there = !c->valid || c->valid[row];
            a->one = 1;
            a->value = a->own;
            a->own[0] = c->data[row];
            a->own_there[0] = 0;
            a->there = operation == LOAD_SCALAR_INT && !there ? a->own_there : NULL;
            if (operation == LOAD_SCALAR_DOUBLE && !there) results[0] = NAN;
            break;
        }
        case CONSTANT_INT: case CONSTANT_DOUBLE:
            a->one = 1; a->value = code->constants + argument; a->there = NULL;
            break;
        case NOTHING_INT: case NOTHING_TRUTH:
            a->one = 1; a->value = a->own; a->own[0] = a->own_there[0] = 0;
            a->there = operation == NOTHING_INT ? a->own_there : NULL;
            break;
        case RANK:
            for (long i = 0; i < m; i++) a->own[i] = !a->there || a->there[i] ? ranks[a->value[i]] : 0;
            a->value = a->own;
            break;
        case TO_DOUBLE:
            for (long i = 0; i < m; i++) results[i] = !a->there || a->there[i] ? (double)a->value[i] : NAN;
            a->value = a->own; a->there = NULL;
            break;
        case NEGATE_INT:
            for (long i = 0; i < m; i++) {
                if (a->value[i] == INT64_MIN && (!a->there || a->there[i])) { *where = base + i; return place; }
                a->own[i] = (int64_t)(0 - (uint64_t)a->value[i]);
            }
            a->value = a->own;
            break;
        case NEGATE_DOUBLE:
            for (long i = 0; i < m; i++) results[i] = -DOUBLES(a)[i];
            a->value = a->own;
            break;
        case IS_NULL_INT: case IS_NOT_NULL_INT:
            if (!a->there) { a->one = 1; m = 1; }
            for (long i = 0; i < m; i++) {
                int64_t there = a->there ? a->there[i] : -1;
                a->own[i] = operation == IS_NULL_INT ? ~there : there;
            }
            a->value = a->own; a->there = NULL;
            break;
        case IS_NULL_DOUBLE:
            for (long i = 0; i < m; i++) a->own[i] = -(int64_t)(DOUBLES(a)[i] != DOUBLES(a)[i]);
            a->value = a->own;
            break;
        case IS_NOT_NULL_DOUBLE:
            for (long i = 0; i < m; i++) a->own[i] = -(int64_t)(DOUBLES(a)[i] == DOUBLES(a)[i]);
            a->value = a->own;
            break;
        case ADD_INT: case SUBTRACT_INT: case MULTIPLY_INT: {
            machine_both_there(a, b, m);
            long failed = machine_integers(operation, a, b, n, m);
            if (failed >= 0) { *where = base + failed; return place; }
            break;
        }
        case REMAINDER_INT: {
            int64_t first = a->value[0];
            machine_both_there(a, b, m);
            if (!a->there) memset(a->own_there, 0xFF, (size_t)m * 8);
            else if (a->there != a->own_there) memcpy(a->own_there, a->there, (size_t)m * 8);
            a->there = a->own_there;
            for (long i = 0; i < m; i++) {
                int64_t x = a->one ? first : a->value[i], y = b->value[b->one ? 0 : i];
                if (y == 0) a->own_there[i] = 0;
                a->own[i] = y == 0 || y == -1 ? 0 : x % y;
            }
            if (a->one && b->one && a->own_there[0]) a->there = NULL;
            break;
        }
        case ADD_DOUBLE: EACH(double, results, x + y); break;
        case SUBTRACT_DOUBLE: EACH(double, results, x - y); break;
        case MULTIPLY_DOUBLE: EACH(double, results, x * y); break;
        case DIVIDE: EACH(double, results, y == 0 ? NAN : x / y); break;
        case REMAINDER_DOUBLE: EACH(double, results, y == 0 ? NAN : fmod(x, y)); break;
        case COMPARE_DOUBLE: COMPARE(double); break;
        case COMPARE_INT:
            machine_both_there(a, b, m);
            COMPARE(int64_t);
            machine_known(a, m);
            break;
        case COMPARE_INT_DOUBLE: {
            int nothing = a->one && a->there;
            long integers = a->one ? 1 : n;
            double converted[MACHINE_BLOCK];
            if (machine_narrow(a->value, integers, 53)) {
                for (long i = 0; i < integers; i++) converted[i] = (double)a->value[i];
                a->value = (const int64_t *)converted;
                COMPARE(double);
            } else {
                int64_t first = a->value[0];
                for (long i = 0; i < m; i++)
                    a->own[i] = -(int64_t)machine_compare_mixed(
                        argument, (long double)(a->one ? first : a->value[i]), (long double)DOUBLES(b)[b->one ? 0 : i]);
            }
            if (nothing) memset(a->own, 0, (size_t)m * 8);
            else machine_known(a, m);
            a->there = NULL;
            break;
        }
        case ADD_SCALED: case SUBTRACT_SCALED: {
            int64_t first = a->value[0];
            machine_both_there(a, b, m);
            for (long i = 0; i < m; i++) {
                if (a->there && !a->there[i]) { a->own[i] = 0; continue; }
                __int128 x = machine_scaled(a->one ? first : a->value[i], argument <= 3 ? argument : 0);
                __int128 y = machine_scaled(b->value[b->one ? 0 : i], argument > 3 ? argument - 3 : 0);
                if (!machine_fits(operation == ADD_SCALED ? x + y : x - y, &a->own[i])) {
                    *where = base + i;
                    return place;
                }
            }
            break;
        }
        case COMPARE_SCALED: {
            int64_t first = a->value[0];
            int how = argument & 7, scaling = argument >> 3;
            machine_both_there(a, b, m);
            for (long i = 0; i < m; i++) {
                __int128 x = machine_scaled(a->one ? first : a->value[i], scaling <= 3 ? scaling : 0);
                __int128 y = machine_scaled(b->value[b->one ? 0 : i], scaling > 3 ? scaling - 3 : 0);
                int order = (x > y) - (x < y);
                int truth = how == 0 ? order == 0 : how == 1 ? order != 0 : how == 2 ? order < 0 : how == 3 ? order <= 0
                    : how == 4 ? order > 0 : order >= 0;
                a->own[i] = -(int64_t)truth;
            }
            machine_known(a, m);
            break;
        }
        case RATIO: {
            int64_t first = a->value[0];
            machine_both_there(a, b, m);
            for (long i = 0; i < m; i++) {
                int64_t y = b->value[b->one ? 0 : i];
                if ((a->there && !a->there[i]) || y == 0) { results[i] = NAN; continue; }
                results[i] = machine_ratio(
                    machine_scaled(a->one ? first : a->value[i], argument <= 3 ? argument : 0),
                    machine_scaled(y, argument > 3 ? argument - 3 : 0));
            }
            a->there = NULL;
            break;
        }
        case MULTIPLY_TICKS: case DIVIDE_TICKS: case DIVIDE_TICKS_INT: {
            int64_t first = a->value[0];
            int one = a->one && b->one, known = !a->there || a->there[0];
            for (long i = 0; i < m; i++) {
                int64_t x = a->one ? first : a->value[i], y = b->value[b->one ? 0 : i];
                int there = a->one ? known : !a->there || a->there[i], fits = 1;
                double by = operation == DIVIDE_TICKS_INT ? (double)y : DOUBLES(b)[b->one ? 0 : i];
                if (operation == DIVIDE_TICKS_INT) there = there && (!b->there || b->there[b->one ? 0 : i]);
                there = there && by == by && !(by == 0 && operation != MULTIPLY_TICKS);
                a->own[i] = 0;
                if (there && operation == DIVIDE_TICKS_INT)
                    fits = machine_fits(
                        machine_nearest(y < 0 ? -(__int128)x : x, y < 0 ? -(__int128)y : y), &a->own[i]);
                else if (there) fits = machine_by_double(x, by, operation == DIVIDE_TICKS, &a->own[i]);
                if (!fits) { *where = base + i; return place; }
                a->own_there[i] = -(int64_t)there;
            }
            a->there = one && a->own_there[0] ? NULL : a->own_there;
            break;
        }
        case REFUSE: {
            for (long i = 0; i < m; i++) {
                long left = a->one ? 0 : i, right = b->one ? 0 : i;
                int there = argument & 1 ? DOUBLES(a)[left] == DOUBLES(a)[left] : !a->there || a->there[left];
                there = there && (argument & 2 ? DOUBLES(b)[right] == DOUBLES(b)[right] : !b->there || b->there[right]);
                if (there) { *where = base + i; return place; }
            }
            memset(a->own, 0, (size_t)m * 8);
            memset(a->own_there, 0, (size_t)m * 8);
            a->there = a->own_there;
            break;
        }
        case BOTH: EACH(int64_t, a->own, x & y); break;
        case EITHER: EACH(int64_t, a->own, x | y); break;
        }
        if (operation >= ADD_INT) { a->one = a->one && b->one; a->value = a->own; }
    }
    return -1;
}

/* The truth of a condition for rows start..stop-1 beside scalar row `row`, one byte each. */
static inline int machine_select(
    const hamlet_code *code, const hamlet_column *vector, long start, long stop,
    const hamlet_column *scalar, long row, const int64_t *ranks, uint8_t *result, long *where
) {
    hamlet_register r[code->depth];
    for (long base = start; base < stop; base += MACHINE_BLOCK) {
        long n = stop - base < MACHINE_BLOCK ? stop - base : MACHINE_BLOCK;
        int failed = machine_block(code, vector, base, n, scalar, row, ranks, r, where);
        if (failed >= 0) return failed;
        for (long i = 0; i < n; i++) result[base - start + i] = r[0].value[r[0].one ? 0 : i] & 1;
    }
    return -1;
}

/* The value of an expression at one row, its bits in *value. */
static inline int machine_value(
    const hamlet_code *code, const hamlet_column *vector, long row, const int64_t *ranks, int floating,
    int64_t *value, uint8_t *there
) {
    hamlet_register r[code->depth];
    long where;
    int failed = machine_block(code, vector, row, 1, vector, row, ranks, r, &where);
    if (failed >= 0) return failed;
    *value = r[0].value[0];
    *there = floating ? DOUBLES(&r[0])[0] == DOUBLES(&r[0])[0] : !r[0].there || r[0].there[0];
    return failed;
}

#endif
