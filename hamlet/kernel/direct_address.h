/* Numbers of codes that lie close together, by a plain table. */
#ifndef HAMLET_NEAR_CODES_H
#define HAMLET_NEAR_CODES_H

#include <stdint.h>

#include "dense_lookup.h"
#include "cpu_targets.h"

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

#ifdef HAMLET_AVX2
/* min(code - base, reach) of 32-bit codes; base and base + reach are 32-bit numbers too. */
HAMLET_AVX2 static inline __m256i near_places_4(const int32_t *code, __m256i base, __m256i most) {
    return _mm256_min_epu32(_mm256_sub_epi32(_mm256_loadu_si256((const void *)code), base), most);
}

/* The same of 64-bit codes: a difference whose upper half is not zero is beyond. */
HAMLET_AVX2 static inline __m256i near_places_8(const int64_t *code, __m256i base, __m256i most) {
    const __m256i first = _mm256_sub_epi64(_mm256_loadu_si256((const void *)code), base);
    const __m256i second = _mm256_sub_epi64(_mm256_loadu_si256((const void *)(code + 4)), base);
    const __m256 a = _mm256_castsi256_ps(first), b = _mm256_castsi256_ps(second);
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    const __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD));
    const __m256i within = _mm256_cmpeq_epi32(high, _mm256_setzero_si256());
    const __m256i place = _mm256_min_epu32(_mm256_or_si256(low, _mm256_andnot_si256(within, most)), most);
    return _mm256_permute4x64_epi64(place, 0xD8);
}

/* The same of LOOKUP_STEP codes of 4 or 8 bytes from one on, as bytes. */
HAMLET_AVX2 static inline __m256i near_places(const void *code, int width, long i, __m256i base, __m256i most) {
    __m256i place[4];
    for (int part = 0; part < 4; part++) {
        place[part] = width == 4 ? near_places_4((const int32_t *)code + i + 8 * part, base, most)
            : near_places_8((const int64_t *)code + i + 8 * part, base, most);
    }
    const __m256i first = _mm256_packs_epi32(place[0], place[1]), second = _mm256_packs_epi32(place[2], place[3]);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), order);
}

/* The same as `near_plainly` where numbers fit a byte. */
HAMLET_AVX2 static int near_bytes(
    const void *code, int width, long n, const lookup_bytes *lookup, const int32_t *near, int64_t base, uint64_t reach,
    int32_t *found
) {
    const __m256i begin = width == 4 ? _mm256_set1_epi32((int32_t)base) : _mm256_set1_epi64x(base);
    const __m256i most = _mm256_set1_epi32((int32_t)reach);
    __m256i missing = _mm256_setzero_si256();
    long i;
    for (i = 0; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        const __m256i number = lookup_at(lookup, near_places(code, width, i, begin, most));
        lookup_store(found + i, number);
        missing = _mm256_or_si256(missing, number);
    }
    return near_plainly(code, width, i, n, near, base, reach, found) | (_mm256_movemask_epi8(missing) != 0);
}
#endif

/* found[i] as of `near_plainly` in bytes, for codes of 1, 2, 4 or 8 bytes and numbers that fit; -1 where classes[i] is
 * negative, if classes are given. Returns how many are not negative. */
static long near_small_plainly(
    const void *code, int width, long start, long n, const int32_t *near, int64_t base, uint64_t reach,
    const int8_t *classes, int8_t *found
) {
    long count = 0;
    for (long i = start; i < n; i++) {
        const int64_t one = width == 1 ? ((const int8_t *)code)[i] : width == 2 ? ((const int16_t *)code)[i]
            : width == 4 ? ((const int32_t *)code)[i] : ((const int64_t *)code)[i];
        const uint64_t place = (uint64_t)one - (uint64_t)base;
        const int8_t number = (int8_t)near[place < reach ? place : reach];
        found[i] = classes && classes[i] < 0 ? -1 : number;
        count += found[i] >= 0;
    }
    return count;
}

#ifdef HAMLET_AVX2
/* The same for a small table, and codes of 1, 4 or 8 bytes; those of one byte begin with zero. */
HAMLET_AVX2 static long near_small_vectors(
    const void *code, int width, long n, const lookup_bytes *lookup, const int32_t *near, int64_t base, uint64_t reach,
    const int8_t *classes, int8_t *found
) {
    const __m256i begin = width == 4 ? _mm256_set1_epi32((int32_t)base) : _mm256_set1_epi64x(base);
    const __m256i most = width == 1 ? _mm256_set1_epi8((char)reach) : _mm256_set1_epi32((int32_t)reach);
    long i, count = 0;
    for (i = 0; i + LOOKUP_STEP <= n; i += LOOKUP_STEP) {
        __m256i place;
        if (width == 1) place = _mm256_min_epu8(_mm256_loadu_si256((const void *)((const int8_t *)code + i)), most);
        else place = near_places(code, width, i, begin, most);
        __m256i number = lookup_at(lookup, place);
        if (classes) {
            const __m256i kind = _mm256_loadu_si256((const void *)(classes + i));
            number = _mm256_or_si256(number, _mm256_cmpgt_epi8(_mm256_setzero_si256(), kind));
        }
        _mm256_storeu_si256((void *)(found + i), number);
        count += LOOKUP_STEP - __builtin_popcount((uint32_t)_mm256_movemask_epi8(number));
    }
    return count + near_small_plainly(code, width, i, n, near, base, reach, classes, found);
}
#endif

static long near_small(
    const void *code, int width, long n, const int32_t *near, int64_t base, uint64_t reach, const int8_t *classes,
    int8_t *found
) {
#ifdef HAMLET_AVX2
    if (n >= LOOKUP_FROM && reach < NEAR_TABLE && __builtin_cpu_supports("avx2")) {
        const int fits = width == 1 ? base == 0
            : width == 8 || (width == 4 && base >= INT32_MIN && base <= INT32_MAX - (int64_t)reach);
        lookup_bytes lookup;
        if (fits && lookup_prepare(near, (long)reach + 1, &lookup))
            return near_small_vectors(code, width, n, &lookup, near, base, reach, classes, found);
    }
#endif
    return near_small_plainly(code, width, 0, n, near, base, reach, classes, found);
}

static int near_numbers(
    const void *code, int width, long n, const int32_t *near, int64_t base, uint64_t reach, int32_t *found
) {
#ifdef HAMLET_AVX512
    if (reach < NEAR_TABLE && __builtin_cpu_supports("avx512f"))
        return near_vectors(code, width, n, near, base, reach, found);
#endif
#ifdef HAMLET_AVX2
    if (n >= LOOKUP_FROM && reach < NEAR_TABLE && __builtin_cpu_supports("avx2")) {
        const int fits = width == 8 || (base >= INT32_MIN && base <= INT32_MAX - (int64_t)reach);
        lookup_bytes lookup;
        if (fits && lookup_prepare(near, (long)reach + 1, &lookup))
            return near_bytes(code, width, n, &lookup, near, base, reach, found);
    }
#endif
    return near_plainly(code, width, 0, n, near, base, reach, found);
}

#endif
