/* The inner loops of the expression machine (contract and operations: _expression.pyx).
 *
 * A register is a block of values or, where the whole block would be one value, that value alone: what depends on the
 * later event only is computed once per block. A DOUBLE that is NULL is NaN, an INT that is NULL has its byte `there`
 * cleared, and a truth value is 0 or 1: unknown counts as false, which is sound since no NOT is left in a condition.
 * One source serves several instruction sets (_targets.h).
 */
#ifndef HAMLET_MACHINE_H
#define HAMLET_MACHINE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_targets.h"

#define MACHINE_BLOCK 256
#define MACHINE_DEPTH 64

enum machine_operation {
    LOAD_VECTOR_INT, LOAD_VECTOR_DOUBLE, LOAD_SCALAR_INT, LOAD_SCALAR_DOUBLE,
    CONSTANT_INT, CONSTANT_DOUBLE, NOTHING_INT, NOTHING_TRUTH, /* the last that pushes */
    RANK, TO_DOUBLE, NEGATE_INT, NEGATE_DOUBLE, IS_NULL_INT, IS_NULL_DOUBLE, IS_NOT_NULL_INT, IS_NOT_NULL_DOUBLE,
    ADD_INT, SUBTRACT_INT, MULTIPLY_INT, REMAINDER_INT, /* the first that pops */
    ADD_DOUBLE, SUBTRACT_DOUBLE, MULTIPLY_DOUBLE, REMAINDER_DOUBLE, DIVIDE,
    COMPARE_INT, COMPARE_DOUBLE, COMPARE_INT_DOUBLE, BOTH, EITHER
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
    union { double d[MACHINE_BLOCK]; int64_t i[MACHINE_BLOCK]; } v;
    uint8_t there[MACHINE_BLOCK]; /* of an INT: 1 where there is a value; of a truth value: the value */
    int one;                      /* 1: only element 0 is meant, for the whole block */
} hamlet_register;

/* r[i] = f(a[i], b[i]) where either side may be one value for all; R may be A */
#define EACH(n, TYPE, FIELD, OUT, EXPRESSION) do { \
    if (a->one && b->one) { TYPE x = a->v.FIELD[0], y = b->v.FIELD[0]; OUT[0] = EXPRESSION; } \
    else if (b->one) { TYPE y = b->v.FIELD[0]; for (long i = 0; i < n; i++) { TYPE x = a->v.FIELD[i]; OUT[i] = EXPRESSION; } } \
    else if (a->one) { TYPE x = a->v.FIELD[0]; for (long i = 0; i < n; i++) { TYPE y = b->v.FIELD[i]; OUT[i] = EXPRESSION; } } \
    else { for (long i = 0; i < n; i++) { TYPE x = a->v.FIELD[i], y = b->v.FIELD[i]; OUT[i] = EXPRESSION; } } \
} while (0)

#define COMPARE(n, TYPE, FIELD) do { switch (argument) { \
    case 0: EACH(n, TYPE, FIELD, truth, x == y); break; \
    case 1: EACH(n, TYPE, FIELD, truth, (x < y) | (x > y)); break; \
    case 2: EACH(n, TYPE, FIELD, truth, x < y); break; \
    case 3: EACH(n, TYPE, FIELD, truth, x <= y); break; \
    case 4: EACH(n, TYPE, FIELD, truth, x > y); break; \
    default: EACH(n, TYPE, FIELD, truth, x >= y); } } while (0)

static inline int machine_overflows(int operation, int64_t x, int64_t y, int64_t *r) {
    if (operation == ADD_INT) return __builtin_add_overflow(x, y, r);
    if (operation == SUBTRACT_INT) return __builtin_sub_overflow(x, y, r);
    return __builtin_mul_overflow(x, y, r);
}

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

static inline void machine_both_there(hamlet_register *a, const hamlet_register *b, long n) {
    if (a->one && !b->one) memset(a->there, a->there[0], (size_t)n);
    if (b->one) { if (!b->there[0]) memset(a->there, 0, (size_t)n); }
    else for (long i = 0; i < n; i++) a->there[i] &= b->there[i];
}

/* Leaves the program's result for rows base..base+n-1 in r[0]; -1, or the place of the operation that overflowed at
 * row *where. */
HAMLET_TARGETS static int machine_block(
    const hamlet_code *code, const hamlet_column *vector, long base, long n,
    const hamlet_column *scalar, long row, const int64_t *ranks, hamlet_register *r, long *where
) {
    int top = -1;
    uint8_t truth[MACHINE_BLOCK];
    for (int place = 0; place < code->size; place++) {
        int operation = code->operations[place], argument = code->arguments[place];
        if (operation <= NOTHING_TRUTH) top++;
        else if (operation >= ADD_INT) top--;
        hamlet_register *a = &r[top], *b = &r[top + 1];
        long m = operation >= ADD_INT ? (a->one && b->one ? 1 : n) : (a->one ? 1 : n);
        switch (operation) {
        case LOAD_VECTOR_INT: case LOAD_VECTOR_DOUBLE: {
            const hamlet_column *c = &vector[argument];
            a->one = 0;
            memcpy(a->v.i, c->data + base, (size_t)n * 8);
            if (operation == LOAD_VECTOR_INT) {
                if (c->valid) memcpy(a->there, c->valid + base, (size_t)n);
                else memset(a->there, 1, (size_t)n);
            } else if (c->valid && memchr(c->valid + base, 0, (size_t)n))
                for (long i = 0; i < n; i++) a->v.d[i] = c->valid[base + i] ? a->v.d[i] : NAN;
            break;
        }
        case LOAD_SCALAR_INT: case LOAD_SCALAR_DOUBLE: {
            const hamlet_column *c = &scalar[argument];
            a->one = 1;
            a->v.i[0] = c->data[row];
            a->there[0] = !c->valid || c->valid[row];
            if (operation == LOAD_SCALAR_DOUBLE && !a->there[0]) a->v.d[0] = NAN;
            break;
        }
        case CONSTANT_INT: case CONSTANT_DOUBLE:
            a->one = 1; a->v.i[0] = code->constants[argument]; a->there[0] = 1;
            break;
        case NOTHING_INT: case NOTHING_TRUTH:
            a->one = 1; a->v.i[0] = 0; a->there[0] = 0;
            break;
        case RANK:
            for (long i = 0; i < m; i++) if (a->there[i]) a->v.i[i] = ranks[a->v.i[i]];
            break;
        case TO_DOUBLE:
            for (long i = 0; i < m; i++) a->v.d[i] = a->there[i] ? (double)a->v.i[i] : NAN;
            break;
        case NEGATE_INT:
            for (long i = 0; i < m; i++) {
                if (a->v.i[i] == INT64_MIN && a->there[i]) { *where = base + i; return place; }
                a->v.i[i] = (int64_t)(0 - (uint64_t)a->v.i[i]);
            }
            break;
        case NEGATE_DOUBLE:
            for (long i = 0; i < m; i++) a->v.d[i] = -a->v.d[i];
            break;
        case IS_NULL_INT: for (long i = 0; i < m; i++) a->there[i] = !a->there[i]; break;
        case IS_NOT_NULL_INT: break;
        case IS_NULL_DOUBLE: for (long i = 0; i < m; i++) a->there[i] = a->v.d[i] != a->v.d[i]; break;
        case IS_NOT_NULL_DOUBLE: for (long i = 0; i < m; i++) a->there[i] = a->v.d[i] == a->v.d[i]; break;
        case ADD_INT: case SUBTRACT_INT: case MULTIPLY_INT: {
            machine_both_there(a, b, m);
            if (a->one) for (long i = 1; i < m; i++) a->v.i[i] = a->v.i[0];
            for (long i = 0; i < m; i++)
                if (machine_overflows(operation, a->v.i[i], b->v.i[b->one ? 0 : i], &a->v.i[i]) && a->there[i]) {
                    *where = base + i; return place;
                }
            break;
        }
        case REMAINDER_INT:
            machine_both_there(a, b, m);
            if (a->one) for (long i = 1; i < m; i++) a->v.i[i] = a->v.i[0];
            for (long i = 0; i < m; i++) {
                int64_t y = b->v.i[b->one ? 0 : i];
                if (y == 0) a->there[i] = 0;
                else a->v.i[i] = y == -1 ? 0 : a->v.i[i] % y;
            }
            break;
        case ADD_DOUBLE: EACH(n, double, d, a->v.d, x + y); break;
        case SUBTRACT_DOUBLE: EACH(n, double, d, a->v.d, x - y); break;
        case MULTIPLY_DOUBLE: EACH(n, double, d, a->v.d, x * y); break;
        case DIVIDE: EACH(n, double, d, a->v.d, y == 0 ? NAN : x / y); break;
        case REMAINDER_DOUBLE: EACH(n, double, d, a->v.d, y == 0 ? NAN : fmod(x, y)); break;
        case COMPARE_DOUBLE:
            COMPARE(n, double, d);
            memcpy(a->there, truth, (size_t)m);
            break;
        case COMPARE_INT:
            COMPARE(n, int64_t, i);
            machine_both_there(a, b, m);
            for (long i = 0; i < m; i++) a->there[i] &= truth[i];
            break;
        case COMPARE_INT_DOUBLE:
            if (a->one && m > 1) memset(a->there, a->there[0], (size_t)m);
            for (long i = 0; i < m; i++)
                truth[i] = a->there[i] & machine_compare_mixed(argument, a->v.i[a->one ? 0 : i], b->v.d[b->one ? 0 : i]);
            memcpy(a->there, truth, (size_t)m);
            break;
        case BOTH: machine_both_there(a, b, m); break;
        case EITHER:
            if (a->one && m > 1) memset(a->there, a->there[0], (size_t)m);
            for (long i = 0; i < m; i++) a->there[i] |= b->there[b->one ? 0 : i];
            break;
        }
        if (operation >= ADD_INT) a->one = a->one && b->one;
    }
    return -1;
}

/* The truth of a condition for rows start..stop-1 beside scalar row `row`, one byte each. */
static inline int machine_select(
    const hamlet_code *code, const hamlet_column *vector, long start, long stop,
    const hamlet_column *scalar, long row, const int64_t *ranks, uint8_t *result, long *where
) {
    hamlet_register r[MACHINE_DEPTH];
    for (long base = start; base < stop; base += MACHINE_BLOCK) {
        long n = stop - base < MACHINE_BLOCK ? stop - base : MACHINE_BLOCK;
        int failed = machine_block(code, vector, base, n, scalar, row, ranks, r, where);
        if (failed >= 0) return failed;
        if (r[0].one) memset(result + (base - start), r[0].there[0], (size_t)n);
        else memcpy(result + (base - start), r[0].there, (size_t)n);
    }
    return -1;
}

/* The value of an expression at one row, its bits in *value. */
static inline int machine_value(
    const hamlet_code *code, const hamlet_column *vector, long row, const int64_t *ranks, int floating,
    int64_t *value, uint8_t *there
) {
    hamlet_register r[MACHINE_DEPTH];
    long where;
    int failed = machine_block(code, vector, row, 1, vector, row, ranks, r, &where);
    *value = r[0].v.i[0];
    *there = floating ? r[0].v.d[0] == r[0].v.d[0] : r[0].there[0];
    return failed;
}

#endif
