/* Lanes: many queries side by side, one vector element per query (contract: lanes.pxd).
 *
 * A block keeps, for one key and one band of queries, [cohort][chunk][slot][vector][width] 64-bit words. A *lane* is the
 * place of a query, a *chunk* as many lanes as a vector of this machine has, a *slot* a cell of the queries, a *plane*
 * one number of a cell: plane 0 the count. Planes below `whole` hold integers, those below `linear` doubles, those below
 * `ranks` flags, the others extrema. Where doubles are *scaled*, each has an exponent of its own, a multiple of 512, in a
 * vector behind the planes: such a number is m * 2^e with |m| < 2^256 and e >= 0, and neither overflows nor vanishes.
 *
 * An extremum is a *rank*: a positive 64-bit number, larger for values further out, 0 for none (lanes_rank). So the
 * empty extremum is all zeros, like every other number of a cell, and joining two is taking the larger. A flag says in
 * the same way whether there is a value at all, as 1 or 0.
 *
 * A program says what events of one class add: per *group* (lanes of one chunk whose event goes into the same slots)
 * the slots that are read, the slots that are added to, and the planes that the event's own values go into. All reads
 * of a step come before its writes; where no group reads what another one writes, both are done at once (`direct`).
 *
 * The source of the loops, lanes_body.h and what it includes, is compiled for several instruction sets, each at its own
 * vector width and in a module of its own, so that they can be compiled side by side. The choice is made at run time
 * (operators/simd/machine.pyx), so that wheels stay portable.
 */
#ifndef HAMLET_LANES_H
#define HAMLET_LANES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "active_queries.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__OPTIMIZE__)
#define LANES_TARGETS 1
#include <immintrin.h>
#endif

#define LANES_MOST_PLANES 16
#define LANES_FEW_SLOTS 3 /* for which maps are folded by loops of their own */
#define LANES_WIDEST 8 /* elements of the widest vector */
#define LANES_START (-1)
#define LANES_STEP 512 /* exponents of scaled doubles are multiples of it */
#define LANES_BITS(power) ((int64_t)(1023 + (power)) << 52) /* of the double 2^power */
#define LANES_PLAIN_BITS 640 /* of plain numbers: scaled doubles that all have the exponent 0, whatever their size */
#define LANES_LEAST_MANTISSA 0x1p-512
#define LANES_MOST_MANTISSA 0x1p256
#define LANES_NEAR_MANTISSA 0x1p192 /* of a sum that is not far from it */
#define LANES_FAR_MANTISSA 0x1p768 /* that one step does not bring below it */
#define LANES_LEAST_VALUE 0x1p-200 /* that an event may bring; the least mantissa is this one, divided by 2^256 */
#define LANES_MOST_VALUE 0x1p200

typedef union { int64_t i; double d; } lanes_word;

typedef struct { int slot, mask; } lanes_source;       /* LANES_START: the empty trend */
typedef struct { int plane, input, mask; } lanes_bind; /* plane += count * input, in the lanes of the mask; or extremum */
typedef struct { int chunk, slot, mask; } lanes_kill;  /* lanes that are set to zero */

enum { LANES_NUMBER, LANES_PRESENCE, LANES_SUM, LANES_LEAST, LANES_GREATEST };
typedef struct { int column, of, floating; } lanes_input; /* what of a column's values (-1: events), as int64 or double */

typedef struct {
    int chunk;
    int loop; /* whether events of a burst may follow one another */
    int grows; /* whether, then, the only target is the first source, in all lanes */
    int lanes; /* bits of its lanes in the chunk */
    int alike; /* groups behind it that differ in nothing but their chunk, which is the next one each time */
    int sources, sources_end, targets, targets_end, binds, binds_end;
} lanes_group;

typedef struct {
    int groups, kills, inputs;
    int extending; /* so many groups, the first ones, do more than to begin trends */
    int begun;  /* words of a window where the others count trends */
    int direct; /* groups may be taken in turns, and cells be emptied afterwards (_bands.is_direct) */
    int most;   /* one event makes at most 1 + most partial trends of one; it begins at most so many */
    int starts; /* whether it may begin a trend */
    int loop;   /* whether some group has a loop */
    lanes_group *group;
    lanes_source *source;
    int *target;
    lanes_bind *bind;
    lanes_kill *kill;
    lanes_input *input;
    int *begin;      /* [begun] these words */
    uint64_t *found; /* bits of the lanes of those groups */
} lanes_program;

typedef struct { const lanes_program *program; const lanes_word *x; int64_t m; int kind; } lanes_taken; /* of one time */

typedef struct {
    int width, chunks, slots, planes, whole, linear, ranks;
    int vectors; /* of a cell: planes, and exponents behind them where doubles are scaled */
    const int64_t *mask; /* [masks][width], all ones or zero */
} lanes_shape;

#include "limbs.h"

typedef struct {
    int width;
    /* add what m events make of the cells of some windows; begins: the first one in which trends may begin; x: their
     * inputs; plain: whether all numbers are; found: null, or where the bits of the lanes
     * with trends that they extend are set, if the program is direct */
    void (*apply)(const lanes_shape *, const lanes_program *, lanes_word *const *cells, int windows, int begins,
                  const lanes_word *x, int64_t m, int plain, lanes_word *sums, uint64_t *found);
    /* the same in three parts for one window, for events of one time */
    void (*read)(const lanes_shape *, const lanes_program *, const lanes_word *cells, const lanes_word *x, int64_t m,
                 int start, int plain, lanes_word *sums);
    void (*kill)(const lanes_shape *, const lanes_program *, lanes_word *cells);
    void (*write)(const lanes_shape *, const lanes_program *, lanes_word *cells, int plain, const lanes_word *sums);
    /* what all n events of a window come to in a chunk of live lanes, and in which lanes there is a trend; small: what
     * holds of its numbers (active_queries.h); cells: where those at its end are written, [planes][slots][width], or null;
     * goes_on: whether those before it stand there */
    uint64_t (*window)(const live_chunk *, const int32_t *kind, const uint8_t *ends, const lanes_word *times, long n,
                       const lanes_word *x, long inputs, int small, lanes_word *trends, lanes_word *result,
                       lanes_word *cells, int goes_on);
    /* set the bits of the lanes with trends that an event extends, some of which are known; pane: a map that is under
     * way, or null */
    void (*find)(const lanes_shape *, const lanes_program *, const lanes_word *cells, const lanes_word *pane,
                 uint64_t *found);
    /* the sums of the lanes' final slots, [chunks][vectors][width] */
    void (*finish)(const lanes_shape *, const lanes_program *, const lanes_word *cells, lanes_word *sums);
    /* begin a pane map [1 + slots][window], all plain; make of some windows' cells at its beginning those at its end
     * (scaled only); sums: lanes_fold_words */
    void (*begin)(const lanes_shape *, lanes_word *pane);
    void (*fold)(const lanes_shape *, lanes_word *const *cells, int windows, const lanes_word *pane, int plain,
                 lanes_word *sums);
    /* how large the plain numbers of some windows are; make those of one scaled */
    void (*size)(const lanes_shape *, lanes_word *const *cells, int windows, double *counts, double *sums);
    void (*scale)(const lanes_shape *, lanes_word *cells);
    /* numbers beyond 64 bits, see limbs.h */
    void (*limbs_step)(const lanes_shape *, const lanes_limbs *, const lanes_taken *, int takes,
                       lanes_word *const *cells, int cohorts, lanes_word *sums, uint64_t *found);
    int (*limbs_carry)(const lanes_shape *, const lanes_limbs *, lanes_word *cells);
    void (*limbs_find)(const lanes_shape *, const lanes_limbs *, const lanes_program *, lanes_word *cells,
                       uint64_t *found);
    int (*limbs_total)(const lanes_shape *, const lanes_limbs *, const lanes_program *, const lanes_group *,
                       lanes_word *cells, lanes_word *sum);
    int (*limbs_fold)(const lanes_shape *, const lanes_limbs *, int chunk, lanes_word *const *cells, int cohorts,
                      const lanes_word *map, int maps, long apart, lanes_word *sums);
} lanes_machine;

/* What a fold takes of its `sums`: a window's cells of one chunk, and what is known of the ways between its slots. */
static inline int lanes_fold_words(const lanes_shape *s) {
    return s->slots * s->vectors * s->width + s->slots * s->slots * (2 * s->width + LANES_WIDEST);
}

/* 2^bits, -1022 <= bits <= 1023 */
static inline double lanes_power(int64_t bits) {
    lanes_word x;
    x.i = (bits + 1023) << 52;
    return x.d;
}

#define LANES_ALIGNMENT 64 /* bytes: the widest vectors lie where they are read at once */

static inline void *lanes_aligned(size_t size) {
    void *found = NULL;
    return posix_memalign(&found, LANES_ALIGNMENT, size) ? NULL : found;
}

/* The same with what was there; the old memory stays where there is none. */
static inline void *lanes_aligned_again(void *old, size_t had, size_t size) {
    void *found = lanes_aligned(size);
    if (!found) return NULL;
    if (had) memcpy(found, old, had);
    free(old);
    return found;
}

#define LANES_JOIN_(a, b) a##b
#define LANES_JOIN(a, b) LANES_JOIN_(a, b)
#define LANES_NAME(name) LANES_JOIN(name##_, LANES_SUFFIX)

#define LANES_PLAIN (-2) /* two lanes, without an instruction that some processor lacks */

/* Where doubles are not scaled: the largest sum of counts over a window's slots in one lane, and of magnitudes per lane
 * in the other whole planes; a bound of everything that is in the cells but the doubles. */
static inline void lanes_measure(const lanes_shape *s, const lanes_word *cells, double *counts, double *sums) {
    long chunk_words = (long)s->slots * s->vectors * s->width;
    for (int chunk = 0; chunk < s->chunks; chunk++)
        for (int lane = 0; lane < s->width; lane++) {
            const lanes_word *at = cells + chunk * chunk_words + lane;
            for (int plane = 0; plane < s->whole; plane++) {
                double total = 0;
                for (int slot = 0; slot < s->slots; slot++)
                    total += fabs((double)at[(long)(slot * s->vectors + plane) * s->width].i);
                double *most = plane ? sums : counts;
                if (total > *most) *most = total;
            }
        }
}

/* The rank of a value among extrema, as its bits: 0 where it has none (the last integer there is). */
static inline int64_t lanes_rank(int64_t bits, int floating, int least) {
    uint64_t up = floating && bits < 0 ? ~(uint64_t)bits : (uint64_t)bits ^ (uint64_t)1 << 63;
    return (int64_t)(least ? ~up : up);
}

/* The bits of the value of a rank. */
static inline int64_t lanes_value(int64_t rank, int floating, int least) {
    uint64_t up = least ? ~(uint64_t)rank : (uint64_t)rank;
    return (int64_t)(floating && !(up >> 63) ? ~up : up ^ (uint64_t)1 << 63);
}

/* bits of a number >= 0: it is below 2^bits, also where its double was rounded */
static inline int64_t lanes_bits(double x) {
    int bits;
    if (x <= 0) return 0;
    frexp(x, &bits);
    return bits < 1 ? 1 : bits;
}

#endif
