/* Runs: events of one class and key that no other event of the key comes between, straight from the stream.
 *
 * A stream in time order is read once, with one open run per key; what its values come to is added up as they come,
 * so that events need not be put in the order of their keys. */
#ifndef HAMLET_RUN_LENGTH_H
#define HAMLET_RUN_LENGTH_H

#include <stdint.h>

#include "cpu_targets.h"

#ifdef HAMLET_AVX2
#include <immintrin.h>
#endif

enum { KEY_RUN_COLUMNS = 4 };

#define KEY_RUN_COUNT 48
#define KEY_RUN_FEW_BITS 36 /* of values whose total may stand beside the number of events */
#define KEY_RUN_BITS 52     /* of those whose total of a burst does not pass 64 bits */
#define KEY_RUN_TABLES 4    /* of sums: an event adds to another one than the three before, so it waits for none of them */
#define KEY_RUN_KEYS 64     /* few keys: so many have several tables */
#define KEY_RUN_BLOCK 256   /* events between two looks whether a run may become the longest */
#define KEY_RUN_STEP 32     /* events whose numbers are looked at side by side, where they are bytes */
#define KEY_RUN_AHEAD 256   /* events between a value that is fetched and the one that is added */

typedef struct { int64_t total, least, greatest; } key_run_values;

typedef struct {
    int32_t key, kind; /* its class; where it is open, minus one minus the class if no event may join it */
    int32_t row;       /* of its first event */
    int32_t events;    /* 0: none is open, and its class is that of no event */
    int64_t time;      /* of its first event */
    key_run_values value[KEY_RUN_COLUMNS];
} key_run;

typedef struct {
    const int32_t *number, *rows, *classes; /* the key of each row, or of each of `rows`, and the class of each row */
    const int8_t *byte_number, *byte_classes; /* the same of all rows where they are bytes, or NULL */
    const int64_t *times;
    const uint8_t *plain;                   /* by class: whether its events may stand together */
    int32_t part, parts;
    int columns;
    int apart;                              /* whether each event is to be compared with the last one of its key */
    int distinct;                           /* whether no event is to be: no two of a key have one time */
    const int64_t *data[KEY_RUN_COLUMNS];
    int32_t longest;
    key_run *open;                          /* by key */
    int64_t *last;                          /* by key the time of its last event, where `apart` */
    int32_t *kind;                          /* by key the class of `open`, where its sum stands in `sum` */
    int8_t byte_kind[KEY_RUN_KEYS];         /* the same where numbers are bytes */
    int64_t *sum;                           /* events << KEY_RUN_COUNT, plus the total; in `tables` parts by key */
    int tables;                             /* 1, or KEY_RUN_TABLES where the keys are few */
    key_run *closed;
    long count, room;
    int64_t before;                         /* the time of the last event */
    int64_t bits;                           /* set in some value, or in its complement where it is negative */
    int tied;                               /* whether two events of a key may have one time */
    long keys;                              /* numbers of keys are below */
} key_run_job;

#if defined(__GNUC__)
#define key_run_prefetch(address) __builtin_prefetch(address)
#else
#define key_run_prefetch(address) ((void)(address))
#endif
#define KEY_RUN_UNUSED __attribute__((unused))
#define KEY_RUN_APART __attribute__((noinline))
#define KEY_RUN_INLINE static inline __attribute__((always_inline))

KEY_RUN_INLINE int key_run_close(key_run_job *job, key_run *a, int columns) {
    if (job->count == job->room) return 0;
    key_run *to = &job->closed[job->count++];
    to->key = a->key;
    to->kind = a->kind < 0 ? -1 - a->kind : a->kind;
    to->row = a->row;
    to->events = a->events;
    to->time = a->time;
    for (int c = 0; c < columns; c++) to->value[c] = a->value[c];
    return 1;
}

/* Events and total of a key's open run; 0 where there is none. Afterwards they stand in the first table. */
KEY_RUN_INLINE int64_t key_run_sum(key_run_job *job, int32_t key) {
    int64_t sum = job->sum[key];
    if (job->tables == 1) return sum;
    for (int t = 1; t < KEY_RUN_TABLES; t++) {
        sum += job->sum[t * KEY_RUN_KEYS + key];
        job->sum[t * KEY_RUN_KEYS + key] = 0;
    }
    return job->sum[key] = sum;
}

/* As `key_run_close` for one that is counted and added up in one number. */
KEY_RUN_INLINE int key_run_close_sum(key_run_job *job, int32_t key, int64_t sum) {
    key_run *a = &job->open[key];
    a->events = (int32_t)((sum + ((int64_t)1 << (KEY_RUN_COUNT - 1))) >> KEY_RUN_COUNT);
    a->value[0].total = sum - ((int64_t)a->events << KEY_RUN_COUNT);
    a->kind = job->kind[key];
    a->time = job->times[a->row];
    return key_run_close(job, a, 1);
}

KEY_RUN_INLINE void key_run_time(key_run_job *job, int32_t key, int64_t time, int64_t *before, int *same, int apart) {
    if (apart) {
        *same |= job->last[key] == time;
        job->last[key] = time;
    } else {
        *same |= *before == time;
        *before = time;
    }
}

/* Takes numbers begin..end; 0 where two events of a key may have one time, a value is too large, or there is no room. */
static int key_run_pass(key_run_job *job, long begin, long end) {
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
        key_run *a = &job->open[key];
        const int32_t kind = job->classes[row];
        key_run_time(job, key, job->times[row], &job->before, &same, job->apart);
        if (a->kind != kind || a->events == job->longest) {
            if (a->events && !key_run_close(job, a, job->columns)) return 0;
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
            key_run_values *v = &a->value[c];
            v->total = (int64_t)((uint64_t)v->total + (uint64_t)x);
            v->least = x < v->least ? x : v->least;
            v->greatest = x > v->greatest ? x : v->greatest;
            bits |= x ^ (x >> 63);
        }
    }
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> KEY_RUN_BITS == 0;
}

/* Begins a run that is counted and added up in one number, after the one that is open; 0 where there is no room. */
KEY_RUN_INLINE int key_run_begin(key_run_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum) {
    const int64_t before = key_run_sum(job, key);
    if (before && !key_run_close_sum(job, key, before)) return 0;
    job->kind[key] = job->plain[kind] ? kind : -1 - kind;
    if (job->byte_number) job->byte_kind[key] = (int8_t)job->kind[key];
    job->sum[key] = sum;
    job->open[key].key = key;
    job->open[key].row = row;
    if (job->distinct) key_run_prefetch(&job->times[row]); /* nobody has read it yet, and nobody waits for it */
    return 1;
}

KEY_RUN_UNUSED KEY_RUN_APART static int key_run_begin_sum(
    key_run_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum
) {
    return key_run_begin(job, key, kind, row, sum);
}

#ifdef HAMLET_AVX2
/* The same for callers that use vectors: to change between two sets of instructions takes long. */
HAMLET_AVX2 KEY_RUN_UNUSED KEY_RUN_APART static int key_run_begin_vectors(
    key_run_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum
) {
    return key_run_begin(job, key, kind, row, sum);
}
#endif

/* Whether each of some times is another than the one before, and the bits of the values beside them; either may be
 * NULL. */
HAMLET_TARGETS KEY_RUN_UNUSED static int key_run_look(
    const int64_t *times, const int64_t *data, long begin, long end, int64_t before, int64_t *bits
) {
    int64_t same = times && begin < end && times[begin] == before, found = 0;
    for (long i = begin + 1; times && i < end; i++) same |= times[i] == times[i - 1];
    for (long i = begin; data && i < end; i++) found |= data[i] ^ (data[i] >> 63);
    *bits |= found;
    return !same;
}

/* Whether each of some numbers is that of a key. */
HAMLET_TARGETS KEY_RUN_UNUSED static int key_run_keyed(const int32_t *number, long begin, long end) {
    int32_t all = 0;
    for (long i = begin; i < end; i++) all |= number[i];
    return all >= 0;
}

/* Whether every open run has room for so many more events. */
KEY_RUN_UNUSED static int key_run_roomy(key_run_job *job, long events, int64_t full) {
    const int64_t most = full - ((int64_t)events << KEY_RUN_COUNT);
    int less = 1;
    for (int32_t key = 0; key < job->keys; key++) less &= key_run_sum(job, key) < most;
    return less;
}

/* The same where there is one kernel and no more is asked for than a total: as little as can be is read and written per
 * event. Four events are taken at once where none of them begins a run, which is asked with one branch. Where all
 * rows are taken and no key is apart, the bits of values have been looked at before, and where they are not `timed`,
 * times have been too, or need not be. */
KEY_RUN_INLINE int key_run_sums(
    key_run_job *job, long begin, long end, const int columns, const int chosen, const int timed, const int apart
) {
    const int looked = !chosen && !apart;
    const int32_t *const number = job->number, *const classes = job->classes, *const rows = job->rows;
    const int64_t *const times = job->times, *const data = job->data[0], one = (int64_t)1 << KEY_RUN_COUNT;
    const int64_t full = ((int64_t)job->longest << KEY_RUN_COUNT) - ((int64_t)1 << (KEY_RUN_COUNT - 1));
    const int keyed = job->tables > 1 && key_run_keyed(number, begin, end);
    int32_t *const kinds = job->kind;
    int64_t *const sums = job->sum, before = job->before, bits = job->bits;
    int same = 0;
    for (long i = begin, stop; i < end;) {
        stop = i + KEY_RUN_BLOCK < end ? i + KEY_RUN_BLOCK : end;
        const int fours = keyed && key_run_roomy(job, stop - i, full);
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
                    if (timed) key_run_time(job, (int32_t)key[e], times[row[e]], &before, &same, apart);
                    if (!looked) bits |= x ^ (x >> 63);
                    sums[e * KEY_RUN_KEYS + key[e]] += x + one;
                }
            }
            for (const long few = fours && i + 4 < stop ? i + 4 : stop; i < few; i++) {
                const int32_t key = number[i], row = chosen ? rows[i] : (int32_t)i;
                if (key < 0) continue;
                const int32_t kind = classes[row];
                const int64_t x = columns ? data[row] : 0, sum = sums[key];
                if (timed) key_run_time(job, key, times[row], &before, &same, apart);
                if (!looked) bits |= x ^ (x >> 63);
                if (__builtin_expect(kinds[key] == kind, 1) && __builtin_expect(sum < full, 1)) {
                    sums[key] = sum + x + one;
                } else if (!key_run_begin_sum(job, key, kind, row, x + one)) {
                    return 0;
                }
            }
        }
    }
    job->before = before;
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> KEY_RUN_FEW_BITS == 0;
}

/* The same where all rows are taken and there is one key: no event waits for what the one before has written. */
KEY_RUN_INLINE int key_run_lone(key_run_job *job, long begin, long end, const int columns) {
    const int32_t *const number = job->number, *const classes = job->classes;
    const int64_t *const times = job->times, *const data = job->data[0], one = (int64_t)1 << KEY_RUN_COUNT;
    int64_t before = job->before, bits = job->bits;
    int same = 0;
    for (long i = begin; i < end;) {
        const int32_t kind = classes[i];
        const long held = (long)((job->sum[0] + ((int64_t)1 << (KEY_RUN_COUNT - 1))) >> KEY_RUN_COUNT), first = i;
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
            if (!key_run_begin_sum(job, 0, kind, (int32_t)i, x + one)) return 0;
        }
        i++; /* one that is taken, or that has no key */
    }
    job->before = before;
    job->bits = bits;
    job->tied |= same;
    return !same && bits >> KEY_RUN_FEW_BITS == 0;
}

/* How many events every open run has room for. */
KEY_RUN_UNUSED static long key_run_room(key_run_job *job, int64_t full) {
    int64_t most = 0;
    for (int32_t key = 0; key < job->keys; key++) {
        const int64_t sum = key_run_sum(job, key);
        most = sum > most ? sum : most;
    }
    return (long)((full - most) >> KEY_RUN_COUNT);
}

#ifdef HAMLET_AVX2
/* Of KEY_RUN_STEP events the bits of those that do not go on with the open run of their key. */
HAMLET_AVX2 static inline uint32_t key_run_others(const int8_t *number, const int8_t *classes, const int8_t *kinds) {
    const __m256i key = _mm256_loadu_si256((const void *)number);
    const __m256i odd = _mm256_slli_epi16(key, 3), upper = _mm256_slli_epi16(key, 2); /* in the first bit of a byte */
    __m256i found[KEY_RUN_KEYS / 16];
    for (int part = 0; part < KEY_RUN_KEYS / 16; part++) {
        const __m128i table = _mm_loadu_si128((const void *)(kinds + 16 * part));
        found[part] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), key);
    }
    const __m256i low = _mm256_blendv_epi8(found[0], found[1], odd), high = _mm256_blendv_epi8(found[2], found[3], odd);
    const __m256i kind = _mm256_blendv_epi8(low, high, upper);
    const __m256i same = _mm256_cmpeq_epi8(kind, _mm256_loadu_si256((const void *)classes));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_or_si256(key, same)); /* some have no key */
}

/* Of KEY_RUN_STEP events the bits of those of a key, and of those of another class. */
HAMLET_AVX2 static inline uint32_t key_run_mine(const int8_t *number, int8_t key) {
    const __m256i mine = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)number), _mm256_set1_epi8(key));
    return (uint32_t)_mm256_movemask_epi8(mine);
}

HAMLET_AVX2 static inline uint32_t key_run_unlike(const int8_t *classes, int8_t kind) {
    const __m256i same = _mm256_cmpeq_epi8(_mm256_loadu_si256((const void *)classes), _mm256_set1_epi8(kind));
    return ~(uint32_t)_mm256_movemask_epi8(same);
}

/* One event, as in `key_run_sums`. */
HAMLET_AVX2 KEY_RUN_INLINE int key_run_byte(key_run_job *job, long row, int64_t x, int64_t full) {
    const int8_t key = job->byte_number[row], kind = job->byte_classes[row];
    if (key < 0) return 1;
    if (job->byte_kind[key] != kind || key_run_sum(job, key) >= full)
        return key_run_begin_vectors(job, key, kind, (int32_t)row, x);
    job->sum[key] += x;
    return 1;
}

/* As `key_run_sums` where numbers are bytes: which of some events begin a run is asked for all of them at once. All
 * of them are added up then; what those before add to the run that begins is taken from it before. The keys are
 * few, so that there are several tables, and an event without a key adds to what is before a table. Times have been
 * looked at before, or need not be. */
HAMLET_AVX2 KEY_RUN_INLINE int key_run_bytes(key_run_job *job, long begin, long end, const int columns) {
    const int64_t one = (int64_t)1 << KEY_RUN_COUNT;
    const int64_t full = ((int64_t)job->longest << KEY_RUN_COUNT) - ((int64_t)1 << (KEY_RUN_COUNT - 1));
    int64_t *const sums = job->sum, bits = 0;
    long room = 0; /* so many events more may go on without a look */
    for (long i = begin; i < end; i += KEY_RUN_STEP) {
        const int8_t *const number = job->byte_number + i, *const classes = job->byte_classes + i;
        const int64_t *const data = columns ? job->data[0] + i : 0;
        const int events = end - i < KEY_RUN_STEP ? (int)(end - i) : KEY_RUN_STEP;
        for (int e = 0; columns && e < KEY_RUN_STEP; e += 8) key_run_prefetch(&data[KEY_RUN_AHEAD + e]);
        for (int e = 0; columns && e < events; e++) bits |= data[e] ^ (data[e] >> 63);
        if (room < KEY_RUN_STEP) room = key_run_room(job, full);
        if (room < KEY_RUN_STEP || events < KEY_RUN_STEP) {
            for (int e = 0; e < events; e++) {
                if (!key_run_byte(job, i + e, (columns ? data[e] : 0) + one, full)) return 0;
            }
            room = 0;
            continue;
        }
        room -= KEY_RUN_STEP;
        for (uint32_t other = key_run_others(number, classes, job->byte_kind); other;) {
            const int first = __builtin_ctz(other);
            const int8_t key = number[first];
            const uint32_t mine = key_run_mine(number, key), later = UINT32_MAX << first;
            int64_t before = 0;
            for (uint32_t each = mine & ~later; each; each &= each - 1)
                before += (columns ? data[__builtin_ctz(each)] : 0) + one;
            job->sum[key] += before;
            if (!key_run_begin_vectors(job, key, classes[first], (int32_t)(i + first), -before)) return 0;
            other = (other & ~mine) | (mine & later & key_run_unlike(classes, job->byte_kind[key]));
            other &= later << 1;
        }
        for (int four = 0; four < KEY_RUN_STEP; four += KEY_RUN_TABLES) {
            for (int e = 0; e < KEY_RUN_TABLES; e++)
                sums[e * KEY_RUN_KEYS + number[four + e]] += (columns ? data[four + e] : 0) + one;
        }
    }
    job->bits |= bits;
    return job->bits >> KEY_RUN_FEW_BITS == 0;
}

HAMLET_AVX2 KEY_RUN_UNUSED static int key_run_take_bytes(key_run_job *job, long begin, long end) {
    return job->columns ? key_run_bytes(job, begin, end, 1) : key_run_bytes(job, begin, end, 0);
}
#endif

/* Whether numbers of few keys, and of classes, may be bytes. */
KEY_RUN_UNUSED static int key_run_reads_bytes(void) {
#ifdef HAMLET_AVX2
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

KEY_RUN_UNUSED static int key_run_looked(key_run_job *job, long begin, long end) {
    const int64_t *times = job->distinct ? NULL : job->times;
    const int64_t *data = job->columns && !job->byte_number ? job->data[0] : NULL;
    if (!key_run_look(times, data, begin, end, job->before, &job->bits)) job->tied = 1;
    if (begin < end) job->before = job->times[end - 1];
    return !job->tied && job->bits >> KEY_RUN_FEW_BITS == 0;
}

KEY_RUN_UNUSED static int key_run_take(key_run_job *job, long begin, long end) {
    if (!job->sum) return key_run_pass(job, begin, end);
    if (job->keys == 1 && !job->rows && !job->apart && !job->byte_number)
        return job->columns ? key_run_lone(job, begin, end, 1) : key_run_lone(job, begin, end, 0);
    if (!job->rows && !job->apart && !key_run_looked(job, begin, end)) return 0;
#ifdef HAMLET_AVX2
    if (job->byte_number) return key_run_take_bytes(job, begin, end);
#endif
    switch (8 * job->columns + 4 * (job->rows != 0) + 2 * (job->apart != 0) + (job->distinct != 0)) {
        case 0: case 1: return key_run_sums(job, begin, end, 0, 0, 0, 0);
        case 2: case 3: return key_run_sums(job, begin, end, 0, 0, 1, 1);
        case 4: return key_run_sums(job, begin, end, 0, 1, 1, 0);
        case 5: return key_run_sums(job, begin, end, 0, 1, 0, 0);
        case 6: case 7: return key_run_sums(job, begin, end, 0, 1, 1, 1);
        case 8: case 9: return key_run_sums(job, begin, end, 1, 0, 0, 0);
        case 10: case 11: return key_run_sums(job, begin, end, 1, 0, 1, 1);
        case 12: return key_run_sums(job, begin, end, 1, 1, 1, 0);
        case 13: return key_run_sums(job, begin, end, 1, 1, 0, 0);
        default: return key_run_sums(job, begin, end, 1, 1, 1, 1);
    }
}

/* Closes what is open, as windows may open or close here; 0 where there is no room. */
KEY_RUN_UNUSED static int key_run_flush(key_run_job *job, long keys) {
    for (int32_t key = 0; key < keys; key++) {
        if (job->sum) {
            const int64_t sum = key_run_sum(job, key);
            if (sum && !key_run_close_sum(job, key, sum)) return 0;
            job->sum[key] = 0;
            job->kind[key] = INT32_MIN;
            if (job->byte_number) job->byte_kind[key] = INT8_MIN;
        } else {
            if (job->open[key].events && !key_run_close(job, &job->open[key], job->columns)) return 0;
            job->open[key].events = 0;
            job->open[key].kind = INT32_MIN;
        }
    }
    return 1;
}

#endif
