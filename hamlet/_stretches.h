/* Stretches: events of one class and key that no other event of the key comes between, straight from the stream.
 *
 * A stream in time order is read once, with one open stretch per key; what its values come to is added up as they come,
 * so that events need not be put in the order of their keys. */
#ifndef HAMLET_STRETCHES_H
#define HAMLET_STRETCHES_H

#include <stdint.h>

#include "_targets.h"

enum { STRETCH_COLUMNS = 4 };

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
    const int64_t *times;
    const uint8_t *plain;                   /* by class: whether its events may stand together */
    int32_t part, parts;
    int columns;
    int apart;                              /* whether each event is to be compared with the last one of its key */
    const int64_t *data[STRETCH_COLUMNS];
    int32_t longest;
    stretch *open;                          /* by key */
    int64_t *last;                          /* by key the time of its last event, where `apart` */
    int32_t *kind;                          /* by key the class of `open`, where its sum stands in `sum` */
    int64_t *sum;                           /* events << STRETCH_COUNT, plus the total */
    stretch *closed;
    long count, room;
    int64_t before;                         /* the time of the last event */
    int64_t bits;                           /* set in some value, or in its complement where it is negative */
    int tied;                               /* whether two events of a key may have one time */
    long keys;                              /* numbers of keys are below */
} stretch_job;

#define STRETCH_COUNT 48
#define STRETCH_FEW_BITS 36 /* of values whose total may stand beside the number of events */
#define STRETCH_BITS 52     /* of those whose total of a burst does not pass 64 bits */
#define STRETCH_UNUSED __attribute__((unused))
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

/* The same for one that is counted and added up in one number. */
STRETCH_INLINE int stretch_close_sum(stretch_job *job, int32_t key) {
    stretch *a = &job->open[key];
    const int64_t sum = job->sum[key];
    a->events = (int32_t)((sum + ((int64_t)1 << (STRETCH_COUNT - 1))) >> STRETCH_COUNT);
    a->value[0].total = sum - ((int64_t)a->events << STRETCH_COUNT);
    a->kind = job->kind[key];
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
STRETCH_UNUSED __attribute__((noinline)) static int stretch_begin_sum(
    stretch_job *job, int32_t key, int32_t kind, int32_t row, int64_t sum
) {
    if (job->sum[key] && !stretch_close_sum(job, key)) return 0;
    job->kind[key] = job->plain[kind] ? kind : -1 - kind;
    job->sum[key] = sum;
    job->open[key].key = key;
    job->open[key].row = row;
    job->open[key].time = job->times[row];
    return 1;
}

/* Whether each of some times is another than the one before, and the bits of the values beside them. */
HAMLET_TARGETS STRETCH_UNUSED static int stretch_look(
    const int64_t *times, const int64_t *data, long begin, long end, int64_t before, int64_t *bits
) {
    int64_t same = begin < end && times[begin] == before, found = 0;
    for (long i = begin + 1; i < end; i++) same |= times[i] == times[i - 1];
    for (long i = begin; data && i < end; i++) found |= data[i] ^ (data[i] >> 63);
    *bits |= found;
    return !same;
}

/* The same where there is one kernel and no more is asked for than a total: as little as can be is read and written per
 * event, and what is done once per stretch stands outside the loop, whose numbers then fit the registers. Where all rows
 * are taken and no key is apart, times and the bits of values have been looked at side by side before. */
STRETCH_INLINE int stretch_sums(
    stretch_job *job, long begin, long end, const int columns, const int chosen, const int apart
) {
    const int looked = !chosen && !apart;
    const int32_t *const number = job->number, *const classes = job->classes, *const rows = job->rows;
    const int64_t *const times = job->times, *const data = job->data[0], one = (int64_t)1 << STRETCH_COUNT;
    const int64_t full = ((int64_t)job->longest << STRETCH_COUNT) - ((int64_t)1 << (STRETCH_COUNT - 1));
    int32_t *const kinds = job->kind;
    int64_t *const sums = job->sum, before = job->before, bits = job->bits;
    int same = 0;
    for (long i = begin; i < end; i++) {
        int32_t key = 0, row = 0, kind = 0;
        int64_t x = 0;
        for (; i < end; i++) {
            key = number[i];
            row = chosen ? rows[i] : (int32_t)i;
            if (key < 0) continue;
            kind = classes[row];
            x = columns ? data[row] : 0;
            if (!looked) {
                stretch_time(job, key, times[row], &before, &same, apart);
                bits |= x ^ (x >> 63);
            }
            const int64_t sum = sums[key];
            if (__builtin_expect(kinds[key] != kind, 0) || __builtin_expect(sum >= full, 0)) break;
            sums[key] = sum + x + one;
        }
        if (i < end && !stretch_begin_sum(job, key, kind, row, x + one)) return 0;
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

STRETCH_UNUSED static int stretch_looked(stretch_job *job, long begin, long end) {
    if (!stretch_look(job->times, job->columns ? job->data[0] : 0, begin, end, job->before, &job->bits)) job->tied = 1;
    if (begin < end) job->before = job->times[end - 1];
    return !job->tied && job->bits >> STRETCH_FEW_BITS == 0;
}

STRETCH_UNUSED static int stretch_take(stretch_job *job, long begin, long end) {
    if (!job->sum) return stretch_pass(job, begin, end);
    if (job->keys == 1 && !job->rows && !job->apart)
        return job->columns ? stretch_lone(job, begin, end, 1) : stretch_lone(job, begin, end, 0);
    switch (4 * job->columns + 2 * (job->rows != 0) + (job->apart != 0)) {
        case 0: return stretch_looked(job, begin, end) && stretch_sums(job, begin, end, 0, 0, 0);
        case 1: return stretch_sums(job, begin, end, 0, 0, 1);
        case 2: return stretch_sums(job, begin, end, 0, 1, 0);
        case 3: return stretch_sums(job, begin, end, 0, 1, 1);
        case 4: return stretch_looked(job, begin, end) && stretch_sums(job, begin, end, 1, 0, 0);
        case 5: return stretch_sums(job, begin, end, 1, 0, 1);
        case 6: return stretch_sums(job, begin, end, 1, 1, 0);
        default: return stretch_sums(job, begin, end, 1, 1, 1);
    }
}

/* Closes what is open, as windows may open or close here; 0 where there is no room. */
STRETCH_UNUSED static int stretch_flush(stretch_job *job, long keys) {
    for (int32_t key = 0; key < keys; key++) {
        if (job->sum) {
            if (job->sum[key] && !stretch_close_sum(job, key)) return 0;
            job->sum[key] = 0;
            job->kind[key] = INT32_MIN;
        } else {
            if (job->open[key].events && !stretch_close(job, &job->open[key], job->columns)) return 0;
            job->open[key].events = 0;
            job->open[key].kind = INT32_MIN;
        }
    }
    return 1;
}

#endif
