/* Numbers of codes that lie close together, by a plain table. */
#ifndef HAMLET_NEAR_H
#define HAMLET_NEAR_H

#include <stdint.h>

#include "_targets.h"

#ifdef HAMLET_AVX512
#include <immintrin.h>
#endif

enum { NEAR_TABLE = 32 };

/* found[i] = near[min(code[i] - base, reach)] for a code of `width` bytes, a difference below zero being the largest.
 * Returns whether some number is negative. */
static int near_plainly(
    const void *code, int width, long start, long n, const int32_t *near, int64_t base, uint64_t reach, int32_t *found
) {
    int32_t missing = 0;
    for (long i = start; i < n; i++) {
        uint64_t place = (uint64_t)(width == 4 ? ((const int32_t *)code)[i] : ((const int64_t *)code)[i]) - (uint64_t)base;
        int32_t number = near[place < reach ? place : reach];
        found[i] = number;
        missing |= number;
    }
    return missing < 0;
}

#ifdef HAMLET_AVX512
/* The same for a table that fits two vectors. */
HAMLET_AVX512 static int near_vectors(
    const void *code, int width, long n, const int32_t *near, int64_t base, uint64_t reach, int32_t *found
) {
    int32_t padded[NEAR_TABLE] = {0};
    long i;
    for (i = 0; i <= (long)reach; i++) padded[i] = near[i];
    const __m512i low = _mm512_loadu_si512(padded), high = _mm512_loadu_si512(padded + 16);
    const __m512i most = _mm512_set1_epi64((int64_t)reach), begin = _mm512_set1_epi64(base);
    __m512i missing = _mm512_setzero_si512();
    for (i = 0; i + 16 <= n; i += 16) {
        __m512i first, second;
        if (width == 4) {
            const __m512i codes = _mm512_loadu_si512((const int32_t *)code + i);
            first = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(codes));
            second = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(codes, 1));
        } else {
            first = _mm512_loadu_si512((const int64_t *)code + i);
            second = _mm512_loadu_si512((const int64_t *)code + i + 8);
        }
        first = _mm512_min_epu64(_mm512_sub_epi64(first, begin), most);
        second = _mm512_min_epu64(_mm512_sub_epi64(second, begin), most);
        const __m512i place = _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm512_cvtepi64_epi32(first)), _mm512_cvtepi64_epi32(second), 1
        );
        const __m512i number = _mm512_permutex2var_epi32(low, place, high);
        _mm512_storeu_si512(found + i, number);
        missing = _mm512_or_si512(missing, number);
    }
    const int some = _mm512_cmplt_epi32_mask(missing, _mm512_setzero_si512()) != 0;
    return near_plainly(code, width, i, n, near, base, reach, found) | some;
}
#endif

static int near_numbers(
    const void *code, int width, long n, const int32_t *near, int64_t base, uint64_t reach, int32_t *found
) {
#ifdef HAMLET_AVX512
    if (reach < NEAR_TABLE && __builtin_cpu_supports("avx512f"))
        return near_vectors(code, width, n, near, base, reach, found);
#endif
    return near_plainly(code, width, 0, n, near, base, reach, found);
}

#endif
