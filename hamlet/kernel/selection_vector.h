/* The class of each event by a small table, and the rows of those that have one. */
#ifndef HAMLET_SELECTION_VECTOR_H
#define HAMLET_SELECTION_VECTOR_H

#include <stdint.h>

#include "dense_lookup.h"
#include "cpu_targets.h"

#ifdef HAMLET_AVX512
#include <immintrin.h>
#endif

enum { SIFT_STEP = 32, SIFT_TABLE = 32 };

/* kind[i] = table[min(code[i], last)], a negative code being the largest; rows where it is not negative are listed.
   `width` is the bytes of a code; returns how many rows there are, of which one more may be written than there are. */
static long sift_plainly(
    const void *code, int width, long start, long n, const int32_t *table, uint32_t last, int32_t *kind, int32_t *row
) {
    long i, count = 0;
    for (i = start; i < n; i++) {
        uint32_t place = width == 1 ? (uint32_t) (int32_t) ((const int8_t *) code)[i]
            : width == 2 ? (uint32_t) (int32_t) ((const int16_t *) code)[i]
            : ((const uint32_t *) code)[i];
        int32_t one = table[place < last ? place : last];
        kind[i] = one;
        row[count] = (int32_t) i;
        count += one >= 0; /* without a branch: they come in any order */
    }
    return count;
}

#ifdef HAMLET_AVX512
/* The same where the table fits two vectors; up to SIFT_STEP more rows may be written than there are. */
HAMLET_AVX512 static long sift_vectors(
    const void *code, int width, long n, const int32_t *table, uint32_t last, int32_t *kind, int32_t *row
) {
    int32_t padded[SIFT_TABLE] = {0};
    long i, count = 0;
    for (i = 0; i <= (long) last; i++) padded[i] = table[i];
    const __m512i low = _mm512_loadu_si512(padded), high = _mm512_loadu_si512(padded + 16);
    const __m512i most = _mm512_set1_epi32((int) last), zero = _mm512_setzero_si512();
    __m512i rows = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (i = 0; i + 16 <= n; i += 16) {
        __m512i place = width == 1 ? _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *) ((const int8_t *) code + i)))
            : width == 2 ? _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *) ((const int16_t *) code + i)))
            : _mm512_loadu_si512((const int32_t *) code + i);
        __m512i one = _mm512_permutex2var_epi32(low, _mm512_min_epu32(place, most), high);
        __mmask16 has = _mm512_cmpge_epi32_mask(one, zero);
        _mm512_storeu_si512(kind + i, one);
        _mm512_storeu_si512(row + count, _mm512_maskz_compress_epi32(has, rows));
        count += __builtin_popcount(has);
        rows = _mm512_add_epi32(rows, _mm512_set1_epi32(16));
    }
    return count + sift_plainly(code, width, i, n, table, last, kind, row + count);
}
#endif

#ifdef HAMLET_AVX2
/* By four flags, the bytes of the flagged ones of four 32-bit numbers, in front. */
static const uint32_t SIFT_FRONT[16][4] = {
#define SIFT_NUMBER(place) (0x03020100u + 0x04040404u * (place))
    {0},
    {SIFT_NUMBER(0)},
    {SIFT_NUMBER(1)},
    {SIFT_NUMBER(0), SIFT_NUMBER(1)},
    {SIFT_NUMBER(2)},
    {SIFT_NUMBER(0), SIFT_NUMBER(2)},
    {SIFT_NUMBER(1), SIFT_NUMBER(2)},
    {SIFT_NUMBER(0), SIFT_NUMBER(1), SIFT_NUMBER(2)},
    {SIFT_NUMBER(3)},
    {SIFT_NUMBER(0), SIFT_NUMBER(3)},
    {SIFT_NUMBER(1), SIFT_NUMBER(3)},
    {SIFT_NUMBER(0), SIFT_NUMBER(1), SIFT_NUMBER(3)},
    {SIFT_NUMBER(2), SIFT_NUMBER(3)},
    {SIFT_NUMBER(0), SIFT_NUMBER(2), SIFT_NUMBER(3)},
    {SIFT_NUMBER(1), SIFT_NUMBER(2), SIFT_NUMBER(3)},
    {SIFT_NUMBER(0), SIFT_NUMBER(1), SIFT_NUMBER(2), SIFT_NUMBER(3)},
};

/* Writes those of SIFT_STEP rows from one on that are flagged; returns how many. */
HAMLET_AVX2 static inline long sift_flagged(uint32_t flags, long first, int32_t *row) {
    long count = 0;
    __m128i rows = _mm_add_epi32(_mm_set1_epi32((int)first), _mm_setr_epi32(0, 1, 2, 3));
    for (int i = 0; i < SIFT_STEP; i += 4) {
        const uint32_t four = flags >> i & 15;
        const __m128i front = _mm_loadu_si128((const void *)SIFT_FRONT[four]);
        _mm_storeu_si128((void *)(row + count), _mm_shuffle_epi8(rows, front));
        count += __builtin_popcount(four);
        rows = _mm_add_epi32(rows, _mm_set1_epi32(4));
    }
    return count;
}

/* The same for codes of one byte, without the rows as long as there is one for each code. */
HAMLET_AVX2 static long sift_bytes(
    const int8_t *code, long n, const lookup_bytes *lookup, const int32_t *table, uint32_t last, int32_t *kind, int32_t *row
) {
    const __m256i most = _mm256_set1_epi8((char)last);
    long i, count = 0;
    for (i = 0; i + SIFT_STEP <= n; i += SIFT_STEP) {
        const __m256i place = _mm256_min_epu8(_mm256_loadu_si256((const void *)(code + i)), most);
        const __m256i one = lookup_at(lookup, place);
        const uint32_t flags = ~(uint32_t)_mm256_movemask_epi8(one);
        lookup_store(kind + i, one);
        if (count == i) {
            if (flags == UINT32_MAX) {
                count += SIFT_STEP;
                continue;
            }
            for (long before = 0; before < i; before++) row[before] = (int32_t)before;
        }
        count += sift_flagged(flags, i, row + count);
    }
    const long few = sift_plainly(code, 1, i, n, table, last, kind, row + count);
    if (count == i && few < n - i) {
        for (long before = 0; before < i; before++) row[before] = (int32_t)before;
    }
    return count + few;
}
#endif

/* As `sift_plainly`; where each event has a class, the rows may not be written. */
static long sift(
    const void *code, int width, long n, const int32_t *table, uint32_t last, int32_t *kind, int32_t *row
) {
#ifdef HAMLET_AVX512
    if (last < SIFT_TABLE && __builtin_cpu_supports("avx512f"))
        return sift_vectors(code, width, n, table, last, kind, row);
#endif
#ifdef HAMLET_AVX2
    if (width == 1 && n >= LOOKUP_FROM && __builtin_cpu_supports("avx2")) {
        lookup_bytes lookup;
        if (lookup_prepare(table, (long)last + 1, &lookup))
            return sift_bytes(code, n, &lookup, table, last, kind, row);
    }
#endif
    return sift_plainly(code, width, 0, n, table, last, kind, row);
}

enum { ASCENT_BLOCK = 4096 };

/* Whether no number is less than the one before: 2 where each is greater, else 1; 0 where one is less. */
HAMLET_TARGETS static int ascend(const int64_t *number, long n) {
    int found = 2;
    for (long start = 1; start < n && found; start += ASCENT_BLOCK) {
        const long stop = start + ASCENT_BLOCK < n ? start + ASCENT_BLOCK : n;
        int64_t other = 0;
        if (found == 2) {
            for (long i = start; i < stop; i++) other |= number[i] <= number[i - 1];
            if (!other) continue;
            found = 1;
            other = 0;
        }
        for (long i = start; i < stop; i++) other |= number[i] < number[i - 1];
        if (other) found = 0;
    }
    return found;
}

/* The same of pairs of numbers: the first counts, the second where it is equal. */
HAMLET_TARGETS static int ascend_pairs(const int64_t *number, const int64_t *second, long n) {
    int64_t less = 0;
    for (long i = 1; i < n; i++)
        less |= (number[i] < number[i - 1]) | ((number[i] == number[i - 1]) & (second[i] < second[i - 1]));
    return !less;
}

#endif
