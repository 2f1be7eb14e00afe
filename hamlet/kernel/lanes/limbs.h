/* Limbs in lanes: exact numbers beyond 64 bits, queries side by side.
 *
 * Where the integers of a block outgrow a word, each becomes `limbs` vectors: in every lane the number is the sum over i
 * of limb[i] * 2^(LIMB_BITS i). Limbs are signed and have head-room, so that additions need no carries: these are
 * *deferred*, until a bound that the block keeps says that a limb might outgrow its word. Then they are brought up
 * (`carry`): all limbs but the highest in use are in [0, 2^LIMB_BITS), and the highest one has the sign. A count is zero
 * where all of its limbs are, carried or not, for what is computed of zeros is zeros.
 *
 * A cohort is [head][chunk][slot][planes of the chunk][limb][width], behind the limbs of a cell its other planes, a
 * vector each. The head has for each cell how many limbs are in use; those above are zero. Chunks have no more planes
 * and slots than their lanes need.
 */
#ifndef HAMLET_LIMBS_H
#define HAMLET_LIMBS_H

/* included by lanes.h, behind what it is made of */

#define LIMB_BITS 28 /* so that two are multiplied as words of 32 bits, and sums of many such products need no carries */
#define LIMB_MASK (((int64_t)1 << LIMB_BITS) - 1)
#define LIMB_FACTOR 11 /* bits of a factor by which carried limbs may be multiplied at once */
#define LIMB_PIECE 11  /* bits of the pieces of a larger one */
#define LIMB_PIECES 6  /* of 64 bits */
#define LIMB_MAP_BITS 53 /* of the numbers of a map, which are found as doubles, and are two limbs */
#define LIMB_MAPS 8 /* that are done at once, at most */
#define LIMB_MAP_LIMBS 3 /* that such a map makes of a number more than it has */

typedef struct {
    int limbs;         /* for which each number has room */
    int most;          /* that are in use before a step */
    long head;         /* words of the limbs in use */
    const int *whole;  /* [chunks] planes of limbs */
    const int *slots;  /* [chunks] */
    const int *before; /* [chunks + 1] planes of limbs of all cells before the chunk... */
    const int *others; /* [chunks + 1] ...and other vectors */
} lanes_limbs;

static inline unsigned short *limbs_in_use(const lanes_shape *s, lanes_word *cells, int chunk, int slot) {
    return (unsigned short *)cells + chunk * s->slots + slot;
}

/* Words before a cell of a cohort, and of a whole one. */
static inline long limbs_place(const lanes_shape *s, const lanes_limbs *w, int chunk, int slot) {
    const long cell = (long)w->whole[chunk] * w->limbs + s->planes - s->whole;
    return w->head + ((long)w->before[chunk] * w->limbs + w->others[chunk] + slot * cell) * s->width;
}

static inline long limbs_words_of(const lanes_shape *s, const lanes_limbs *w) {
    return w->head + ((long)w->before[s->chunks] * w->limbs + w->others[s->chunks]) * s->width;
}

/* The limbs that what m events make of a number has more than it; of events that follow one another, or at once. */
static inline int limbs_grown(int64_t m, int loop, int large) {
    const int64_t shift = (loop && m > 1 ? m : 0) + (large ? LIMB_PIECE * (LIMB_PIECES - 1) : 0);
    return shift ? (int)(shift / LIMB_BITS) + 2 : 0;
}

/* The cells of a cohort in words of 64 bits, which are below 2^62, as limbs; `to` is zero. */
static inline void limbs_of_words(const lanes_shape *s, const lanes_limbs *w, const lanes_word *cells, lanes_word *to) {
    for (int chunk = 0; chunk < s->chunks; chunk++)
        for (int slot = 0; slot < w->slots[chunk]; slot++) {
            const lanes_word *from = cells + ((long)chunk * s->slots + slot) * s->vectors * s->width;
            lanes_word *cell = to + limbs_place(s, w, chunk, slot);
            int used = 0;
            for (int k = 0; k < w->whole[chunk]; k++)
                for (int lane = 0; lane < s->width; lane++) {
                    lanes_word *limb = cell + (long)k * w->limbs * s->width + lane;
                    int64_t x = from[(long)k * s->width + lane].i;
                    int n = x != 0;
                    for (; x >> LIMB_BITS != 0 && x >> LIMB_BITS != -1; x >>= LIMB_BITS, limb += s->width, n++)
                        limb->i = x & LIMB_MASK;
                    limb->i = x;
                    if (n > used) used = n;
                }
            memcpy(
                cell + (long)w->whole[chunk] * w->limbs * s->width, from + (long)s->whole * s->width,
                sizeof(lanes_word) * (size_t)(s->planes - s->whole) * (size_t)s->width
            );
            *limbs_in_use(s, to, chunk, slot) = (unsigned short)used;
        }
}

/* The cells of a cohort with room for more limbs; `to` is zero. */
static inline void limbs_moved(
    const lanes_shape *s, const lanes_limbs *had, lanes_word *cells, const lanes_limbs *w, lanes_word *to
) {
    const int others = s->planes - s->whole;
    for (int chunk = 0; chunk < s->chunks; chunk++)
        for (int slot = 0; slot < w->slots[chunk]; slot++) {
            const lanes_word *from = cells + limbs_place(s, had, chunk, slot);
            lanes_word *cell = to + limbs_place(s, w, chunk, slot);
            const int used = *limbs_in_use(s, cells, chunk, slot), whole = w->whole[chunk];
            for (int k = 0; k < whole; k++)
                memcpy(
                    cell + (long)k * w->limbs * s->width, from + (long)k * had->limbs * s->width,
                    sizeof(lanes_word) * (size_t)used * (size_t)s->width
                );
            memcpy(
                cell + (long)whole * w->limbs * s->width, from + (long)whole * had->limbs * s->width,
                sizeof(lanes_word) * (size_t)others * (size_t)s->width
            );
            *limbs_in_use(s, to, chunk, slot) = (unsigned short)used;
        }
}

/* A number of one lane as words, in two's complement; its limbs are `width` words apart. */
static inline void limbs_as_words(const lanes_word *limb, int used, int width, uint64_t *to, int words) {
    __int128 sum = 0;
    int held = 0, at = 0;
    for (int i = 0; i < used && at < words; i++, limb += width) {
        sum += (__int128)limb->i << held;
        for (held += LIMB_BITS; held >= 64 && at < words; held -= 64, sum >>= 64) to[at++] = (uint64_t)sum;
    }
    for (; at < words; sum >>= 64) to[at++] = (uint64_t)sum;
}

#endif
