/* The loops of limbs.h for vectors of LANES_WIDTH words; part of lanes_body.h. */

#define LANE_CELL(cells, chunk, slot) ((LANE_INTS *)((cells) + limbs_place(s, w, chunk, slot)))

/* to[0:n + shift / LIMB_BITS + 2] += from[0:n] * 2^shift * by, in the lanes of a mask; what is shifted is carried as far as that
 * leaves limbs no larger than they were. */
LANE_INLINE void LANES_NAME(limbs_add_shifted)(
    LANE_INTS *to, const LANE_INTS *from, int n, int64_t shift, LANE_INTS mask, int64_t by
) {
    const int whole = (int)(shift / LIMB_BITS), part = (int)(shift % LIMB_BITS);
    LANE_INTS below = {0};
    to += whole;
    for (int i = 0; i < n; i++) {
        const LANE_INTS x = from[i] & mask;
        to[i] += (((x << part) & LIMB_MASK) + below) * by;
        below = x >> (LIMB_BITS - part);
    }
    to[n] += below * by;
}

/* The same where nothing is shifted, and numbers may be carried later. */
LANE_INLINE void LANES_NAME(limbs_add_times)(LANE_INTS *to, const LANE_INTS *from, int n, LANE_INTS mask, int64_t by) {
    for (int i = 0; i < n; i++) to[i] += (from[i] & mask) * by;
}

/* What the values of events add to a plane of sums: those trends, shifted, times an integer of any size. */
static __attribute__((noinline)) void LANES_NAME(limbs_bind)(
    LANE_INTS *to, const LANE_INTS *trends, int n, int64_t shift, LANE_INTS mask, int64_t x
) {
    if (x > -(1 << LIMB_FACTOR) && x < 1 << LIMB_FACTOR) {
        if (shift) LANES_NAME(limbs_add_shifted)(to, trends, n, shift, mask, x);
        else LANES_NAME(limbs_add_times)(to, trends, n, mask, x);
        return;
    }
    uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
    for (int i = 0; size; i++, size >>= LIMB_PIECE) {
        const int64_t piece = (int64_t)(size & ((1 << LIMB_PIECE) - 1));
        if (piece) LANES_NAME(limbs_add_shifted)(to, trends, n, shift + i * LIMB_PIECE, mask, x < 0 ? -piece : piece);
    }
}

/* Whether an input of a program is larger than limbs may be multiplied by at once. */
static int LANES_NAME(limbs_large)(const lanes_program *p, const lanes_word *x) {
    for (int i = 0; i < p->inputs; i++)
        if (p->input[i].of != LANES_LEAST && p->input[i].of != LANES_GREATEST)
            if (x[i].i <= -(1 << LIMB_FACTOR) || x[i].i >= 1 << LIMB_FACTOR) return 1;
    return 0;
}

/* What the lanes of a group read, times what m events make of it, into `sum`: planes of `limbs` limbs, and the others.
 * Returns how many limbs of these are in use; 0 where there is no trend. */
LANE_INLINE int LANES_NAME(limbs_sum)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, const lanes_group *g, lanes_word *cells,
    const lanes_word *x, int64_t m, int large, LANE_INTS *sum, uint64_t *found
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const int limbs = w->limbs, whole = w->whole[g->chunk], others = s->planes - s->whole;
    const lanes_source *const end = p->source + g->sources_end;
    LANE_INTS start = {0};
    int n = 0;
    for (const lanes_source *from = p->source + g->sources; from < end; from++) {
        const int used = from->slot == LANES_START ? 1 : *limbs_in_use(s, cells, g->chunk, from->slot);
        if (from->slot == LANES_START) start += masks[from->mask];
        if (used > n) n = used;
    }
    if (n == 0) return 0;
    if (n > w->most) n = w->most; /* what is above belongs to lanes of another group */
    const int grown = n + limbs_grown(m, g->loop, large);
    for (int k = 0; k < whole + (others > 0); k++) { /* then the other planes at once, as they follow */
        LANE_INTS *to = sum + (long)k * limbs;
        const int length = k < whole ? n : others;
        int first = 1;
        for (const lanes_source *from = p->source + g->sources; from < end; from++) {
            if (from->slot == LANES_START) continue;
            const LANE_INTS *cell = LANE_CELL(cells, g->chunk, from->slot) + (long)k * limbs, mask = masks[from->mask];
            if (first) for (int i = 0; i < length; i++) to[i] = cell[i] & mask;
            else if (k < whole) for (int i = 0; i < length; i++) to[i] += cell[i] & mask;
            else for (int i = 0; i < length; i++)
                to[i] = LANES_NAME(lanes_either)(to[i], cell[i] & mask, s->whole + i < s->ranks);
            first = 0;
        }
        if (first) for (int i = 0; i < length; i++) to[i] = (LANE_INTS){0};
        if (k < whole) for (int i = n; i < grown; i++) to[i] = (LANE_INTS){0};
        if (k == 0) to[0] -= start;
    }
    if (found || others) {
        LANE_INTS any = {0};
        for (int i = 0; i < n; i++) any |= sum[i];
        LANES_NAME(lanes_note)(found, g->chunk, LANES_NAME(lanes_some)(any));
        any = (LANE_INTS)(any != 0);
        LANE_INTS *to = sum + (long)whole * limbs - s->whole;
        for (const lanes_bind *b = p->bind + g->binds; b < p->bind + g->binds_end; b++)
            if (b->plane >= s->whole)
                to[b->plane] = LANES_NAME(lanes_either)(
                    to[b->plane], any & masks[b->mask] & x[b->input].i, b->plane < s->ranks
                );
    }
    const int follow = m > 1 && g->loop;
    for (int k = whole - 1; k >= 0; k--) { /* the count last, for the others read it */
        LANE_INTS *to = sum + (long)k * limbs;
        if (follow) { /* the number, m bits higher, without itself */
            const int high = (int)(m / LIMB_BITS), part = (int)(m % LIMB_BITS);
            for (int i = grown - 1; i >= 0; i--) {
                LANE_INTS up = -to[i];
                if (i >= high) up += (to[i - high] << part) & LIMB_MASK;
                if (i > high) up += to[i - high - 1] >> (LIMB_BITS - part);
                to[i] = up;
            }
        } else if (m > 1) {
            for (int i = 0; i < n; i++) to[i] *= m;
        }
        if (k)
            for (const lanes_bind *b = p->bind + g->binds; b < p->bind + g->binds_end; b++)
                if (b->plane == k)
                    LANES_NAME(limbs_bind)(to, sum, n, follow ? m - 1 : 0, masks[b->mask], x[b->input].i);
    }
    return grown;
}

LANE_INLINE void LANES_NAME(limbs_add)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, const lanes_group *g, lanes_word *cells,
    const LANE_INTS *sum, int n
) {
    const int limbs = w->limbs, whole = w->whole[g->chunk], others = s->planes - s->whole;
    for (int target = g->targets; target < g->targets_end; target++) {
        LANE_INTS *cell = LANE_CELL(cells, g->chunk, p->target[target]);
        unsigned short *used = limbs_in_use(s, cells, g->chunk, p->target[target]);
        for (int k = 0; k < whole; k++)
            for (int i = 0; i < n; i++) cell[k * limbs + i] += sum[k * limbs + i];
        for (int i = whole * limbs; i < whole * limbs + others; i++)
            cell[i] = LANES_NAME(lanes_either)(cell[i], sum[i], s->whole + i - whole * limbs < s->ranks);
        if (n > *used) *used = (unsigned short)n;
    }
}

/* The same at once, for one target and at most two sources that are slots; events that do not follow one another bring
 * no more than limbs may be multiplied by. The count is written last, for the other planes read it. */
LANE_INLINE void LANES_NAME(limbs_extend)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, const lanes_group *g, lanes_word *cells,
    const lanes_word *x, int64_t m, uint64_t *found, const int slots
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    const int limbs = w->limbs, whole = w->whole[g->chunk], others = s->planes - s->whole, to = p->target[g->targets];
    unsigned short *used = limbs_in_use(s, cells, g->chunk, to);
    LANE_INTS *cell = LANE_CELL(cells, g->chunk, to), mask[2], start = {0}, any = {0};
    const LANE_INTS *from[2] = {cell, cell};
    int n = 0, read = 0;
    for (const lanes_source *source = p->source + g->sources; source < p->source + g->sources_end; source++) {
        if (source->slot == LANES_START) {
            start += masks[source->mask];
            if (n == 0) n = 1;
            continue;
        }
        const int more = *limbs_in_use(s, cells, g->chunk, source->slot);
        from[read] = LANE_CELL(cells, g->chunk, source->slot);
        mask[read++] = masks[source->mask];
        if (more > n) n = more;
    }
    if (n == 0) return;
    if (n > w->most) n = w->most;
#define LANE_READ(at) \
    (slots == 0 ? (LANE_INTS){0} : slots == 1 ? from[0][at] & mask[0] : (from[0][at] & mask[0]) + (from[1][at] & mask[1]))
    for (int k = whole - 1; k > 0; k--) {
        const long at = (long)k * limbs;
        if (slots)
            for (int i = 0; i < n; i++) cell[at + i] += LANE_READ(at + i) * m;
        for (const lanes_bind *b = p->bind + g->binds; b < p->bind + g->binds_end; b++) {
            if (b->plane != k) continue;
            const LANE_INTS lanes = masks[b->mask];
            const int64_t by = x[b->input].i;
            cell[at] -= (start & lanes) * by;
            if (slots)
                for (int i = 0; i < n; i++) cell[at + i] += (LANE_READ(i) & lanes) * by;
        }
    }
    if (found || others) {
        any = start;
        for (int i = 0; i < n; i++) any |= LANE_READ(i);
        LANES_NAME(lanes_note)(found, g->chunk, LANES_NAME(lanes_some)(any));
        any = (LANE_INTS)(any != 0);
        const int before = whole * limbs - s->whole;
        for (int k = s->whole; k < s->planes; k++)
            for (int i = 0; i < slots; i++)
                cell[before + k] = LANES_NAME(lanes_either)(cell[before + k], from[i][before + k] & mask[i], k < s->ranks);
        for (const lanes_bind *b = p->bind + g->binds; b < p->bind + g->binds_end; b++)
            if (b->plane >= s->whole)
                cell[before + b->plane] = LANES_NAME(lanes_either)(
                    cell[before + b->plane], any & masks[b->mask] & x[b->input].i, b->plane < s->ranks
                );
    }
    if (slots && m == 1)
        for (int i = 0; i < n; i++) cell[i] += LANE_READ(i);
    else if (slots)
        for (int i = 0; i < n; i++) cell[i] += LANE_READ(i) * m;
    cell[0] -= start * m;
#undef LANE_READ
    if (n > *used) *used = (unsigned short)n;
}

/* Whether that serves a group; the number of slots that it reads then, else -1. */
LANE_INLINE int LANES_NAME(limbs_simple)(const lanes_program *p, const lanes_group *g, int64_t m, int large) {
    int slots = 0;
    for (const lanes_source *from = p->source + g->sources; from < p->source + g->sources_end; from++)
        slots += from->slot != LANES_START;
    return large || (m > 1 && g->loop) || g->targets_end - g->targets != 1 || slots > 2 ? -1 : slots;
}

static void LANES_NAME(limbs_kill)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, lanes_word *cells
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    for (const lanes_kill *kill = p->kill; kill < p->kill + p->kills; kill++) {
        LANE_INTS *cell = LANE_CELL(cells, kill->chunk, kill->slot);
        const int vectors = w->whole[kill->chunk] * w->limbs + s->planes - s->whole;
        for (int i = 0; i < vectors; i++) cell[i] &= ~masks[kill->mask];
    }
}

/* What events of one time, or a burst, do to some cohorts: all reads, then the guards, then all writes. */
static void LANES_NAME(limbs_step)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_taken *taken, int takes, lanes_word *const *cells,
    int cohorts, lanes_word *sums, uint64_t *found
) {
    const int direct = takes == 1 && taken->program->direct;
    for (int cohort = 0; cohort < cohorts; cohort++) {
        lanes_word *to = cells[cohort];
        LANE_INTS *sum = (LANE_INTS *)sums;
        for (const lanes_taken *t = taken; t < taken + takes; t++) {
            const lanes_program *p = t->program;
            const int large = LANES_NAME(limbs_large)(p, t->x);
            for (const lanes_group *g = p->group; g < p->group + p->groups; g++) {
                const int slots = direct ? LANES_NAME(limbs_simple)(p, g, t->m, large) : -1;
                if (slots == 2) LANES_NAME(limbs_extend)(s, w, p, g, to, t->x, t->m, found, 2);
                else if (slots == 1) LANES_NAME(limbs_extend)(s, w, p, g, to, t->x, t->m, found, 1);
                else if (slots == 0) LANES_NAME(limbs_extend)(s, w, p, g, to, t->x, t->m, found, 0);
                if (slots >= 0) continue;
                const int n = LANES_NAME(limbs_sum)(s, w, p, g, to, t->x, t->m, large, sum + 1, found);
                if (direct) {
                    if (n) LANES_NAME(limbs_add)(s, w, p, g, to, sum + 1, n);
                    continue;
                }
                *(int *)sum = n;
                sum += 1 + w->whole[g->chunk] * w->limbs + s->planes - s->whole;
            }
        }
        for (const lanes_taken *t = taken; t < taken + takes; t++) LANES_NAME(limbs_kill)(s, w, t->program, to);
        if (direct) continue;
        sum = (LANE_INTS *)sums;
        for (const lanes_taken *t = taken; t < taken + takes; t++)
            for (const lanes_group *g = t->program->group; g < t->program->group + t->program->groups; g++) {
                const int n = *(const int *)sum;
                if (n) LANES_NAME(limbs_add)(s, w, t->program, g, to, sum + 1, n);
                sum += 1 + w->whole[g->chunk] * w->limbs + s->planes - s->whole;
            }
    }
}

/* Bring up the carries of a cohort; returns the most limbs in use. The highest limb has taken as many additions as the
 * others, so that two limbs may come of what it holds: after it there is none with more than LIMB_BITS and the sign. */
static int LANES_NAME(limbs_carry)(const lanes_shape *s, const lanes_limbs *w, lanes_word *cells) {
    int most = 0;
    for (int chunk = 0; chunk < s->chunks; chunk++)
        for (int slot = 0; slot < w->slots[chunk]; slot++) {
            LANE_INTS *cell = LANE_CELL(cells, chunk, slot), more = {0};
            unsigned short *used = limbs_in_use(s, cells, chunk, slot);
            int n = *used;
            const int top = n + 1 < w->limbs ? n + 1 : w->limbs - 1; /* where there was no step since, it may be full */
            if (n == 0) continue;
            for (int k = 0; k < w->whole[chunk]; k++) {
                LANE_INTS *x = cell + (long)k * w->limbs, carry = {0};
                for (int i = 0; i < top; i++) {
                    const LANE_INTS t = x[i] + carry;
                    x[i] = t & LIMB_MASK;
                    carry = t >> LIMB_BITS;
                }
                x[top] += carry;
            }
            for (n = top + 1; n > 1; n--) { /* the highest limbs that are no more than a sign */
                more = (LANE_INTS){0};
                for (int k = 0; k < w->whole[chunk]; k++) {
                    const LANE_INTS x = cell[(long)k * w->limbs + n - 1];
                    more |= x ^ (x >> 63);
                }
                if (LANES_NAME(lanes_any)(more)) break;
                for (int k = 0; k < w->whole[chunk]; k++) {
                    LANE_INTS *x = cell + (long)k * w->limbs + n - 2;
                    x[0] += x[1] << LIMB_BITS;
                    x[1] = (LANE_INTS){0};
                }
            }
            *used = (unsigned short)n;
            if (n > most) most = n;
        }
    return most;
}

/* Finds the lanes in which an event would extend a trend, the empty one included. */
static void LANES_NAME(limbs_find)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, lanes_word *cells, uint64_t *found
) {
    const LANE_INTS *masks = (const LANE_INTS *)s->mask;
    for (const lanes_group *g = p->group; g < p->group + p->groups; g++) {
        LANE_INTS some = {0};
        for (const lanes_source *from = p->source + g->sources; from < p->source + g->sources_end; from++) {
            if (from->slot == LANES_START) {
                some |= masks[from->mask];
                continue;
            }
            const LANE_INTS *cell = LANE_CELL(cells, g->chunk, from->slot);
            const int n = *limbs_in_use(s, cells, g->chunk, from->slot);
            for (int i = 0; i < n; i++) some |= cell[i] & masks[from->mask];
        }
        LANES_NAME(lanes_note)(found, g->chunk, LANES_NAME(lanes_some)(some));
    }
}

/* The sum of what a group reads, as `limbs_sum`. */
static int LANES_NAME(limbs_total)(
    const lanes_shape *s, const lanes_limbs *w, const lanes_program *p, const lanes_group *g, lanes_word *cells,
    lanes_word *sum
) {
    return LANES_NAME(limbs_sum)(s, w, p, g, cells, 0, 1, 0, (LANE_INTS *)sum, 0);
}

/* Products of words that have 32 bits with their sign. */
LANE_INLINE LANE_INTS LANES_NAME(limbs_product)(LANE_INTS a, LANE_INTS b) {
#if LANES_WIDTH == 8
    return (LANE_INTS)_mm512_mul_epi32((__m512i)a, (__m512i)b);
#elif LANES_WIDTH == 4
    return (LANE_INTS)_mm256_mul_epi32((__m256i)a, (__m256i)b);
#else
    return a * b;
#endif
}

/* How one slot of a chunk leads to another in a map of words: whether it does, and the word of each plane. */
typedef struct { int leads; const LANE_INTS *step; } LANES_NAME(limbs_way);
#define LIMBS_WAY LANES_NAME(limbs_way)

/* A number, and the word that it is multiplied by, in two pieces. */
typedef struct { const LANE_INTS *number; LANE_INTS low, high; } LANES_NAME(limbs_term);
#define LIMBS_TERM LANES_NAME(limbs_term)

/* to[0:n + 3] = the sum of some numbers of n carried limbs, times a word below 2^LIMB_MAP_BITS each, and of `add`; it may
 * be one of them. Carries go up as products are added; high: whether some word has a second piece. */
LANE_INLINE void LANES_NAME(limbs_combine)(
    LANE_INTS *to, const LIMBS_TERM *term, int n, LANE_INTS add, const int terms, const int high
) {
    LANE_INTS carry = add, below = {0};
    for (int i = 0; i < n; i++) {
        LANE_INTS above = {0};
        carry += below;
        LANES_UNROLLED
        for (int j = 0; j < terms; j++) {
            const LANE_INTS limb = term[j].number[i];
            carry += LANES_NAME(limbs_product)(limb, term[j].low);
            if (high) above += LANES_NAME(limbs_product)(limb, term[j].high);
        }
        to[i] = carry & LIMB_MASK;
        carry >>= LIMB_BITS;
        below = above;
    }
    carry += below;
    to[n] = carry & LIMB_MASK;
    carry >>= LIMB_BITS;
    to[n + 1] = carry & LIMB_MASK;
    to[n + 2] = carry >> LIMB_BITS;
}

/* The same for any number of terms; few are compiled as constants. */
LANE_INLINE void LANES_NAME(limbs_combine_all)(LANE_INTS *to, const LIMBS_TERM *term, int terms, int n, LANE_INTS add) {
    LANE_INTS higher = {0};
    for (int j = 0; j < terms; j++) higher |= term[j].high;
    const int high = LANES_NAME(lanes_any)(higher);
#define COMBINE(terms) \
    if (high) LANES_NAME(limbs_combine)(to, term, n, add, terms, 1); \
    else LANES_NAME(limbs_combine)(to, term, n, add, terms, 0)
    switch (terms) {
        case 1: COMBINE(1); break;
        case 2: COMBINE(2); break;
        case 3: COMBINE(3); break;
        case 4: COMBINE(4); break;
        default: COMBINE(terms);
    }
#undef COMBINE
}

/* What a map makes of a slot of a chunk, from the cells `before` it, [slots][planes of the chunk] with `used` limbs, all
 * carried; add: what begins there. It may be one of these cells. Returns the limbs in use. */
LANE_INLINE int LANES_NAME(limbs_follow)(
    const lanes_shape *s, const LANE_INTS *before, const int *used, const LIMBS_WAY *way, const LANE_INTS *add,
    LANE_INTS *to, int had, const int slots, const int whole, const int limbs
) {
    const int others = s->planes - s->whole, vectors = whole * limbs + others;
    LIMBS_TERM term[2 * LIVE_SLOTS];
    LANE_INTS more;
    int n = 0;
    for (int from = 0; from < slots; from++)
        if (way[from].leads && used[from] > n) n = used[from];
    for (int i = 0; i < others; i++) { /* flags and ranks: of trends that are extended, and of what extends them */
        const int k = s->whole + i;
        LANE_INTS total = add[k];
        for (int from = 0; from < slots; from++) {
            if (!way[from].leads || !used[from]) continue;
            const LANE_INTS *held = before + (long)from * vectors, *step = way[from].step;
            LANE_INTS any = {0};
            for (int j = 0; j < used[from]; j++) any |= held[j];
            total = LANES_NAME(lanes_either)(
                total, held[(long)whole * limbs + i] & (LANE_INTS)(step[0] != 0), k < s->ranks
            );
            total = LANES_NAME(lanes_either)(total, step[k] & (LANE_INTS)(any != 0), k < s->ranks);
        }
        to[(long)whole * limbs + i] = total;
    }
    for (int k = whole - 1; k >= 0; k--) { /* the count last, for the others read it */
        int terms = 0;
        for (int from = 0; from < slots; from++) {
            if (!way[from].leads || !used[from]) continue;
            const LANE_INTS *held = before + (long)from * vectors, *step = way[from].step;
            term[terms++] = (LIMBS_TERM){held + (long)k * limbs, step[0] & LIMB_MASK, step[0] >> LIMB_BITS};
            if (k && LANES_NAME(lanes_any)(step[k]))
                term[terms++] = (LIMBS_TERM){held, step[k] & LIMB_MASK, step[k] >> LIMB_BITS};
        }
        LANE_INTS *x = to + (long)k * limbs;
        LANES_NAME(limbs_combine_all)(x, term, terms, n, add[k]);
        for (int i = n + 3; i < had; i++) x[i] = (LANE_INTS){0};
    }
    for (n += 3; n > 1; n--) { /* the highest limbs that are no more than a sign */
        more = (LANE_INTS){0};
        for (int k = 0; k < whole; k++) {
            const LANE_INTS x = to[(long)k * limbs + n - 1];
            more |= x ^ (x >> 63);
        }
        if (LANES_NAME(lanes_any)(more)) return n;
        for (int k = 0; k < whole; k++) {
            LANE_INTS *x = to + (long)k * limbs + n - 2;
            x[0] += x[1] << LIMB_BITS;
            x[1] = (LANE_INTS){0};
        }
    }
    more = (LANE_INTS){0};
    for (int k = 0; k < whole; k++) more |= to[(long)k * limbs];
    return LANES_NAME(lanes_any)(more);
}

/* Make of a chunk of some cohorts, all of whose limbs have been carried, what some maps make of it one after the other, each
 * [1 + slots][chunk][slot][planes], and so many words apart; sums: room for the cells of a chunk. Returns the most limbs
 * in use; there is room for LIMB_MAP_LIMBS more for each map. Cohort by cohort, so that what is read again is near. Where
 * no slot leads to an earlier one, the last is written first, and nothing is copied. */
static int LANES_NAME(limbs_fold)(
    const lanes_shape *s, const lanes_limbs *w, int chunk, lanes_word *const *cells, int cohorts, const lanes_word *map,
    int maps, long apart, lanes_word *sums
) {
    const int others = s->planes - s->whole, limbs = w->limbs;
    const int slots = w->slots[chunk], whole = w->whole[chunk], vectors = whole * limbs + others;
    const long size = (long)s->chunks * s->slots * s->planes, place = (long)chunk * s->slots * s->planes;
    LIMBS_WAY ways[LIMB_MAPS][LIVE_SLOTS][LIVE_SLOTS];
    int rises[LIMB_MAPS], most = 1;
    for (int number = 0; number < maps; number++) {
        rises[number] = 1;
        for (int to = 0; to < slots; to++)
            for (int from = 0; from < slots; from++) {
                const LANE_INTS *step = (const LANE_INTS *)(map + number * apart) + (1 + from) * size + place;
                LIMBS_WAY *way = &ways[number][to][from];
                step += (long)to * s->planes;
                way->leads = LANES_NAME(lanes_any)(step[0]);
                way->step = step;
                if (way->leads && from > to) rises[number] = 0;
            }
    }
    for (int cohort = 0; cohort < cohorts; cohort++) {
        LANE_INTS *const cell = LANE_CELL(cells[cohort], chunk, 0);
        unsigned short *const in_use = limbs_in_use(s, cells[cohort], chunk, 0);
        for (int number = 0; number < maps; number++) {
            const LANE_INTS *add = (const LANE_INTS *)(map + number * apart) + place;
            const LANE_INTS *before = cell;
            int used[LIVE_SLOTS], read = 0;
            for (int slot = 0; slot < slots; slot++) {
                used[slot] = in_use[slot];
                if (used[slot] > read) read = used[slot];
            }
            if (!rises[number]) {
                before = (const LANE_INTS *)sums;
                for (int slot = 0; slot < slots; slot++) {
                    const LANE_INTS *from = cell + (long)slot * vectors;
                    LANE_INTS *to = (LANE_INTS *)sums + (long)slot * vectors;
                    for (int k = 0; used[slot] && k < whole; k++)
                        memcpy(to + (long)k * limbs, from + (long)k * limbs, sizeof(LANE_INTS) * (size_t)read);
                    memcpy(to + (long)whole * limbs, from + (long)whole * limbs, sizeof(LANE_INTS) * (size_t)others);
                }
            }
            for (int slot = slots - 1; slot >= 0; slot--) {
                const int n = LANES_NAME(limbs_follow)(
                    s, before, used, ways[number][slot], add + (long)slot * s->planes, cell + (long)slot * vectors,
                    used[slot], slots, whole, limbs
                );
                in_use[slot] = (unsigned short)n;
                if (n > most) most = n;
            }
        }
    }
    return most;
}

#undef LIMBS_TERM
#undef LIMBS_WAY
#undef LANE_CELL
