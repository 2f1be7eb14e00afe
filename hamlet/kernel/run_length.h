/* Stretches: events of one class and key that no other event of the key comes between, straight from the stream.
 *
 * A stream in time order is read once, with one open stretch per key; what its values come to is added up as they come,
 * so that events need not be put in the order of their keys. */
#ifndef HAMLET_RUN_LENGTH_H
#define HAMLET_RUN_LENGTH_H

#include <stdint.h>

#include "cpu_targets.h"

#ifdef HAMLET_AVX2
#include <immintrin.h>
#endif

enum { STRETCH_COLUMNS = 4 };

#define STRETCH_COUNT 48
#define STRETCH_FEW_BITS 36 /* of values whose total may stand beside the number of events */
#define STRETCH_BITS 52     /* of those whose total of a burst does not pass 64 bits */
#define STRETCH_TABLES 4    /* of sums: an event adds to another one than the three before, so it waits for none of them */
#define STRETCH_KEYS 64     /* few keys: so many have several tables */
#define STRETCH_BLOCK 256   /* events between two looks whether a stretch may become the longest */
#define STRETCH_STEP 32     /* events whose numbers are looked at side by side, where they are bytes */
#define STRETCH_AHEAD 256   /* events between a value that is fetched and the one that is added */

typedef struct { int64_t total, least, greatest; } stretch_values;

typedef struct {
    int32_t key, kind; /* its class; where it is open, minus one minus the class if no event may join it */
    int32_t row;       /* of its first event */
    int32_t events;    /* 0: none is open, and its class is that of no event */
    int64_t time;      /* of its first event */
    stretch_values value[STRETCH_COLUMNS];
} stretch;

typedef struct {
    const int32_t *number, *rows, *classes; /* the key of each row, or of each of `rows`, and the class of each row */
    const int8_t *byte_number, *byte_classes; /* the same of all rows where they are bytes, or NULL */
    const int64_t *times;
    const uint8_t *plain;                   /* by class: whether its events may stand together */
    int32_t part, parts;
    int columns;
    int apart;                              /* whether each event is to be compared with the last one of its key */
    int distinct;                           /* whether no event is to be: no two of a key have one time */
    const int64_t *data[STRETCH_COLUMNS];
    int32_t longest;
    stretch *open;                          /* by key */
    int64_t *last;                          /* by key the time of its last event, where `apart` */
    int32_t *kind;                          /* by key the class of `open`, where its sum stands in `sum` */
    int8_t byte_kind[STRETCH_KEYS];         /* the same where numbers are bytes */
    int64_t *sum;                           /* events << STRETCH_COUNT, plus the total; in `tables` parts by key */
    int tables;                             /* 1, or STRETCH_TABLES where the keys are few */
    stretch *closed;
    long count, room;
    int64_t before;                         /* the time of the last event */
    int64_t bits;                           /* set in some value, or in its complement where it is negative */
    int tied;                               /* whether two events of a key may have one time */
    long keys;                              /* numbers of keys are below */
} stretch_job;

#if defined(__GNUC__)
#define stretch_prefetch(address) __builtin_prefetch(address)
#else
#define stretch_prefetch(address) ((void)(address))
#endif
#define STRETCH_UNUSED __attribute__((unused))
#define STRETCH_APART __attribute__((noinline))
#define STRETCH_INLINE static inline __attribute__((always_inline))

STRETCH_INLINE int stretch_close(stretch_job *job, stretch *a, int columns) {
    if (job->count == job->room) return 0;
    stretch *to = &job->closed[job->count++];
    to->key = a->key;
    to->kind = a->kind < 0 ? -1 - a->kind : a->kind;
    to->row = a->row;
    to->events = a->events;
    to->time = a->time;
    for (int c = 0; c < columns; c++) to->value[c] = a->value[c];
    return 1;
}

/* Events and total of a key's open stretch; 0 where there is none. Afterwards they stand in the first table. */
STRETCH_INLINE int64_t stretch_sum(stretch_job *job, int32_t key) {
    int64_t sum = job->sum[key];
    if (job->tables == 1) return sum;
    for (int t = 1; t < STRETCH_TABLES; t++) {
        sum += job->sum[t * STRETCH_KEYS + key];
        job->sum[t * STRETCH_KEYS + key] = 0;
    }
    return job->sum[key] = sum;
}

/* As `stretch_close` for one that is counted and added up in one number. */
STRETCH_INLINE int stretch_close_sum(stretch_job *job, int32_t key, int64_t sum) {
    stretch *a = &job->open[key];
    a->events = (int32_t)((sum + ((int64_t)1 << (STRETCH_COUNT - 1))) >> STRETCH_COUNT);
    a->value[0].total = sum - ((int64_t)a->events << STRETCH_COUNT);
    a->kind = job->kind[key];
    a->time = job->times[a->row];
    return stretch_close(job, a, 1);
}

STRETCH_INLINE void stretch_time(stretch_job *job, int32_t key, int64_t time, int64_t *before, int *same, int apart) {
    if (apart) {
        *same |= job->last[key] == time;
        job->last[key] = time;
    } else {
        *same |= *before == time;
        *before = time;
    }
}

/* Takes numbers begin..end; 0 where two events of a key may have one time, a value is too large, or there is no room. */
static int stretch_pass(stretch_job *job, long begin, long end) {
    int64_t bits = job->bits;
    int same = 0;
    for (long i = begin; i < end; i++) {
        int32_t key = job->number[i], row = (int32_t)i;
        if (key < 0) continue;
        if (job->rows) row = job->rows[i];
        if (job->parts > 1) {
            if (key % job->parts != job->part) continue;
            key /= job->parts;
        }
        stretch *a = &job->open[key];
        const int32_t kind = job->classes[row];
        stretch_time(job, key, job->times[row], &job->before, &same, job->apart);
        if (a->kind != kind || a->events == job->longest) {
            if (a->events && !stretch_close(job, a, job->columns)) return 0;
            a->key = key;
            a->kind = job->plain[kind] ? kind : -1 - kind;
            a->row = row;
            a->events = 0;
            a->time = job->times[row];
            for (int c = 0; c < job->columns; c++) {
                a->value[c].total = 0;
                a->value[c].least = INT64_MAX;
                a->value[c].greatest = INT64_MIN;
            }
        }
        a->events++;
        for (int c = 0; c < job->columns; c++) {
            const int64_t x = job->data[c][row];
            stretch_values *v = &a->value[c];
            v->total = (int64_t)((uint64_t)v->total + (uint64_t)x);
            v->least = x < v->least ? x : v->least;
            v->greatest = x > v->greatest ? x : v->greatest;
            bits |= x ^ (x >> 63);
        }
    }
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> STRETCH_BITS == 0;
}

/* Begins a stretch that is counted and added up in one number, after the one that is open; 0 where there is no room. */
STRETCH_INLINE int stretch_begin(stretch_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum) {
    const int64_t before = stretch_sum(job, key);
    if (before && !stretch_close_sum(job, key, before)) return 0;
    job->kind[key] = job->plain[kind] ? kind : -1 - kind;
    if (job->byte_number) job->byte_kind[key] = (int8_t)job->kind[key];
    job->sum[key] = sum;
    job->open[key].key = key;
    job->open[key].row = row;
    if (job->distinct) stretch_prefetch(&job->times[row]); /* nobody has read it yet, and nobody waits for it */
    return 1;
}

STRETCH_UNUSED STRETCH_APART static int stretch_begin_sum(
    stretch_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum
) {
    return stretch_begin(job, key, kind, row, sum);
}

#ifdef HAMLET_AVX2
/* The same for callers that use vectors: to change between two sets of instructions takes long. */
HAMLET_AVX2 STRETCH_UNUSED STRETCH_APART static int stretch_begin_vectors(
    stretch_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum
) {
    return stretch_begin(job, key, kind, row, sum);
}
#endif

/* Whether each of some times is another than the one before, and the bits of the values beside them; either may be
 * NULL. */
HAMLET_TARGETS STRETCH_UNUSED static int stretch_look(
    const int64_t *times, const int64_t *data, long begin, long end, int64_t before, int64_t *bits
) {
    int64_t same = times && begin < end && times[begin] == before, found = 0;
    for (long i = begin + 1; times && i < end; i++) same |= times[i] == times[i - 1];
    for (long i = begin; data && i < end; i++) found |= data[i] ^ (data[i] >> 63);
    *bits |= found;
    return !same;
}

/* Whether each of some numbers is that of a key. */
HAMLET_TARGETS STRETCH_UNUSED static int stretch_keyed(const int32_t *number, long begin, long end) {
    int32_t all = 0;
    for (long i = begin; i < end; i++) all |= number[i];
    return all >= 0;
}

/* Whether every open stretch has room for so many more events. */
STRETCH_UNUSED static int stretch_roomy(stretch_job *job, long events, int64_t full) {
    const int64_t most = full - ((int64_t)events << STRETCH_COUNT);
    int less = 1;
    for (int32_t key = 0; key < job->keys; key++) less &= stretch_sum(job, key) < most;
    return less;
}

/* The same where there is one kernel and no more is asked for than a total: as little as can be is read and written per
 * event. Four events are taken at once where none of them begins a stretch, which is asked with one branch. Where all
 * rows are taken and no key is apart, the bits of values have been looked at before, and where they are not `timed`,
 * times have been too, or need not be. */
STRETCH_INLINE int stretch_sums(
    stretch_job *job, long begin, long end, const int columns, const int chosen, const int timed, const int apart
) {
    const int looked = !chosen && !apart;
    const int32_t *const number = job->number, *const classes = job->classes, *const rows = job->rows;
    const int64_t *const times = job->times, *const data = job->data[0], one = (int64_t)1 << STRETCH_COUNT;
    const int64_t full = ((int64_t)job->longest << STRETCH_COUNT) - ((int64_t)1 << (STRETCH_COUNT - 1));
    const int keyed = job->tables > 1 && stretch_keyed(number, begin, end);
    int32_t *const kinds = job->kind;
    int64_t *const sums = job->sum, before = job->before, bits = job->bits;
    int same = 0;
    for (long i = begin, stop; i < end;) {
        stop = i + STRETCH_BLOCK < end ? i + STRETCH_BLOCK : end;
        const int fours = keyed && stretch_roomy(job, stop - i, full);
        while (i < stop) {
            for (; fours && i + 4 <= stop; i += 4) {
                long key[4], row[4];
                int32_t other = 0;
                for (int e = 0; e < 4; e++) {
                    key[e] = number[i + e];
                    row[e] = chosen ? rows[i + e] : i + e;
                    other |= kinds[key[e]] ^ classes[row[e]];
                }
                if (__builtin_expect(other, 0)) break;
                for (int e = 0; e < 4; e++) {
                    const int64_t x = columns ? data[row[e]] : 0;
                    if (timed) stretch_time(job, (int32_t)key[e], times[row[e]], &before, &same, apart);
                    if (!looked) bits |= x ^ (x >> 63);
                    sums[e * STRETCH_KEYS + key[e]] += x + one;
                }
            }
            for (const long few = fours && i + 4 < stop ? i + 4 : stop; i < few; i++) {
                const int32_t key = number[i], row = chosen ? rows[i] : (int32_t)i;
                if (key < 0) continue;
                const int32_t kind = classes[row];
                const int64_t x = columns ? data[row] : 0, sum = sums[key];
                if (timed) stretch_time(job, key, times[row], &before, &same, apart);
                if (!looked) bits |= x ^ (x >> 63);
                if (__builtin_expect(kinds[key] == kind, 1) && __builtin_expect(sum < full, 1)) {
                    sums[key] = sum + x + one;
                } else if (!stretch_begin_sum(job, key, kind, row, x + one)) {
                    return 0;
                }
            }
        }
    }
    job->before = before;
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> STRETCH_FEW_BITS == 0;
}

/* The same where all rows are taken and there is one key: no event waits for what the one before has written. */
STRETCH_INLINE int stretch_lone(stretch_job *job, long begin, long end, const int columns) {
    const int32_t *const number = job->number, *const classes = job->classes;
    const int64_t *const times = job->times, *const data = job->data[0], one = (int64_t)1 << STRETCH_COUNT;
    int64_t before = job->before, bits = job->bits;
    int same = 0;
    for (long i = begin; i < end;) {
        const int32_t kind = classes[i];
        const long held = (long)((job->sum[0] + ((int64_t)1 << (STRETCH_COUNT - 1))) >> STRETCH_COUNT), first = i;
        const long stop = job->kind[0] != kind ? i : i + job->longest - held < end ? i + job->longest - held : end;
        int64_t total = 0;
        for (; i < stop && classes[i] == kind && number[i] == 0; i++) {
            const int64_t x = columns ? data[i] : 0;
            total += x;
            bits |= x ^ (x >> 63);
            same |= times[i] == before;
            before = times[i];
        }
        job->sum[0] += total + (i - first) * one;
        if (i == end || (i > first && number[i] == 0)) continue;
        if (number[i] == 0) {
            const int64_t x = columns ? data[i] : 0;
            bits |= x ^ (x >> 63);
            same |= times[i] == before;
            before = times[i];
            if (!stretch_begin_sum(job, 0, kind, (int32_t)i, x + one)) return 0;
        }
        i++; /* one that is taken, or that has no key */
    }
    job->before = before;
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> STRETCH_FEW_BITS == 0;
}

/* How many events every open stretch has room for. */
STRETCH_UNUSED static long stretch_room(stretch_job *job, int64_t full) {
    int64_t most = 0;
    for (int32_t key = 0; key < job->keys; key++) {
        const int64_t sum = stretch_sum(job, key);
        most = sum > most ? sum : most;
    }
    return (long)((full - most) >> STRETCH_COUNT);
}

#ifdef HAMLET_AVX2
/* Of STRETCH_STEP events the bits of those that do not go on with the open stretch of their key. */
HAMLET_AVX2 static inline uint32_t stretch_others(const int8_t *number, const int8_t *classes, const int8_t *kinds) {
    const __m256i key = _mm256_loadu_si256((const void *)number);
    const __m256i odd = _mm256_slli_epi16(key, 3), upper = _mm256_slli_epi16(key, 2); /* in the first bit of a byte */
    __m256i found[STRETCH_KEYS / 16];
    for (int part = 0; part < STRETCH_KEYS / 16; part++) {
        const __m128i table = _mm_loadu_si128((const void *)(kinds + 16 * part));
        found[part] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), key);
    }
    const __m256i low = _mm256_blendv_epi8(found[0], found[1], odd), high = _mm256_blendv_epi8(found[2], found[3], odd);
    const __m256i kind = _mm256_blendv_epi8(low, high, upper);
    const __m256i same = _mm256_cmpeq_epi8(kind, _mm256_loadu_si256((const void *)classes));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_or_si256(key, same)); /* some have no key */
}

/* Of STRETCH_STEP events the bits of those of a key, and of those of another class. */
HAMLET_AVX2 static inline uint32_t stretch_mine(const int8_t *number, int8_t key) {
    const __m256i mine = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)number), _mm256_set1_epi8(key));
    return (uint32_t)_mm256_movemask_epi8(mine);
}

HAMLET_AVX2 static inline uint32_t stretch_unlike(const int8_t *classes, int8_t kind) {
    const __m256i same = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)classes), _mm256_set1_epi8(kind));
    return ~(uint32_t)_mm256_movemask_epi8(same);
}

/* One event, as in `stretch_sums`. */
HAMLET_AVX2 STRETCH_INLINE int stretch_byte(stretch_job *job, long row, int64_t x, int64_t full) {
    const int8_t key = job->byte_number[row], kind = job->byte_classes[row];
    if (key < 0) return 1;
    if (job->byte_kind[key] != kind || stretch_sum(job, key) >= full)
        return stretch_begin_vectors(job, key, kind, (int32_t)row, x);
    job->sum[key] += x;
    return 1;
}

/* As `stretch_sums` where numbers are bytes: which of some events begin a stretch is asked for all of them at once. All
 * of them are added up then; what those before add to the stretch that begins is taken from it before. The keys are
 * few, so that there are several tables, and an event without a key adds to what is before a table. Times have been
 * looked at before, or need not be. */
HAMLET_AVX2 STRETCH_INLINE int stretch_bytes(stretch_job *job, long begin, long end, const int columns) {
    const int64_t one = (int64_t)1 << STRETCH_COUNT;
    const int64_t full = ((int64_t)job->longest << STRETCH_COUNT) - ((int64_t)1 << (STRETCH_COUNT - 1));
    int64_t *const sums = job->sum, bits = 0;
    long room = 0; /* so many events more may go on without a look */
    for (long i = begin; i < end; i += STRETCH_STEP) {
        const int8_t *const number = job->byte_number + i, *const classes = job->byte_classes + i;
        const int64_t *const data = columns ? job->data[0] + i : 0;
        const int events = end - i < STRETCH_STEP ? (int)(end - i) : STRETCH_STEP;
        for (int e = 0; columns && e < STRETCH_STEP; e += 8) stretch_prefetch(&data[STRETCH_AHEAD + e]);
        for (int e = 0; columns && e < events; e++) bits |= data[e] ^ (data[e] >> 63);
        if (room < STRETCH_STEP) room = stretch_room(job, full);
        if (room < STRETCH_STEP || events < STRETCH_STEP) {
            for (int e = 0; e < events; e++) {
                if (!stretch_byte(job, i + e, (columns ? data[e] : 0) + one, full)) return 0;
            }
            room = 0;
            continue;
        }
        room -= STRETCH_STEP;
        for (uint32_t other = stretch_others(number, classes, job->byte_kind); other;) {
            const int first = __builtin_ctz(other);
            const int8_t key = number[first];
            const uint32_t mine = stretch_mine(number, key), later = UINT32_MAX << first;
            int64_t before = 0;
            for (uint32_t each = mine & ~later; each; each &= each - 1)
                before += (columns ? data[__builtin_ctz(each)] : 0) + one;
            job->sum[key] += before;
            if (!stretch_begin_vectors(job, key, classes[first], (int32_t)(i + first), -before)) return 0;
            other = (other & ~mine) | (mine & later & stretch_unlike(classes, job->byte_kind[key]));
            other &= later << 1;
        }
        for (int four = 0; four < STRETCH_STEP; four += STRETCH_TABLES) {
            for (int e = 0; e < STRETCH_TABLES; e++)
                sums[e * STRETCH_KEYS + number[four + e]] += (columns ? data[four + e] : 0) + one;
        }
    }
    job->bits |= bits;
    return job->bits >> STRETCH_FEW_BITS == 0;
}

HAMLET_AVX2 STRETCH_UNUSED static int stretch_take_bytes(stretch_job *job, long begin, long end) {
    return job->columns ? stretch_bytes(job, begin, end, 1) : stretch_bytes(job, begin, end, 0);
}
#endif

/* Whether numbers of few keys, and of classes, may be bytes. */
STRETCH_UNUSED static int stretch_reads_bytes(void) {
#ifdef HAMLET_AVX2
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

STRETCH_UNUSED static int stretch_looked(stretch_job *job, long begin, long end) {
    const int64_t *times = job->distinct ? NULL : job->times;
    const int64_t *data = job->columns && !job->byte_number ? job->data[0] : NULL;
    if (!stretch_look(times, data, begin, end, job->before, &job->bits)) job->tied = 1;
    if (begin < end) job->before = job->times[end - 1];
    return !job->tied && job->bits >> STRETCH_FEW_BITS == 0;
}

STRETCH_UNUSED static int stretch_take(stretch_job *job, long begin, long end) {
    if (!job->sum) return stretch_pass(job, begin, end);
    if (job->keys == 1 && !job->rows && !job->apart && !job->byte_number)
        return job->columns ? stretch_lone(job, begin, end, 1) : stretch_lone(job, begin, end, 0);
    if (!job->rows && !job->apart && !stretch_looked(job, begin, end)) return 0;
#ifdef HAMLET_AVX2
    if (job->byte_number) return stretch_take_bytes(job, begin, end);
#endif
    switch (8 * job->columns + 4 * (job->rows != 0) + 2 * (job->apart != 0) + (job->distinct != 0)) {
        case 0: case 1: return stretch_sums(job, begin, end, 0, 0, 0, 0);
        case 2: case 3: return stretch_sums(job, begin, end, 0, 0, 1, 1);
        case 4: return stretch_sums(job, begin, end, 0, 1, 1, 0);
        case 5: return stretch_sums(job, begin, end, 0, 1, 0, 0);
        case 6: case 7: return stretch_sums(job, begin, end, 0, 1, 1, 1);
        case 8: case 9: return stretch_sums(job, begin, end, 1, 0, 0, 0);
        case 10: case 11: return stretch_sums(job, begin, end, 1, 0, 1, 1);
        case 12: return stretch_sums(job, begin, end, 1, 1, 1, 0);
        case 13: return stretch_sums(job, begin, end, 1, 1, 0, 0);
        default: return stretch_sums(job, begin, end, 1, 1, 1, 1);
    }
}

/* Closes what is open, as windows may open or close here; 0 where there is no room. */
STRETCH_UNUSED static int stretch_flush(stretch_job *job, long keys) {
    for (int32_t key = 0; key < keys; key++) {
        if (job->sum) {
            const int64_t sum = stretch_sum(job, key);
            if (sum && !stretch_close_sum(job, key, sum)) return 0;
            job->sum[key] = 0;
            job->kind[key] = INT32_MIN;
            if (job->byte_number) job->byte_kind[key] = INT8_MIN;
        } else {
            if (job->open[key].events && !stretch_close(job, &job->open[key], job->columns)) return 0;
            job->open[key].events = 0;
            job->open[key].kind = INT32_MIN;
        }
    }
    return 1;
}

#endif
