/* Look-ups in a table of at most 32 numbers that fit a byte, 32 places at a time. */
#ifndef HAMLET_DENSE_LOOKUP_H
#define HAMLET_DENSE_LOOKUP_H

#include <stdint.h>

#include "cpu_targets.h"

#ifdef HAMLET_AVX2
#include <immintrin.h>

enum { LOOKUP_TABLE = 32, LOOKUP_STEP = 32, LOOKUP_FROM = 256 }; /* places from which it pays to prepare the table */

typedef struct { __m256i low, high; } lookup_bytes; /* each half twice: a vector looks up within its halves only */

/* Prepares a table of `size` numbers; returns whether all of them fit. */
HAMLET_AVX2 static inline int lookup_prepare(const int32_t *table, long size, lookup_bytes *lookup) {
    int8_t padded[LOOKUP_TABLE] = {0};
    int32_t wide = 0;
    if (size > LOOKUP_TABLE) return 0;
    for (long i = 0; i < size; i++) {
        wide |= table[i] ^ (table[i] >> 31);
        padded[i] = (int8_t)table[i];
    }
    lookup->low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)padded));
    lookup->high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(padded + 16)));
    return wide <= INT8_MAX;
}

/* The numbers at places 0..31: half a table gives 0 where the upper bit of a place is set. */
HAMLET_AVX2 static inline __m256i lookup_at(const lookup_bytes *lookup, __m256i place) {
    const __m256i low = _mm256_add_epi8(place, _mm256_set1_epi8(0x70)), high = _mm256_sub_epi8(place, _mm256_set1_epi8(16));
    return _mm256_or_si256(_mm256_shuffle_epi8(lookup->low, low), _mm256_shuffle_epi8(lookup->high, high));
}

/* Writes 32 bytes as 32-bit numbers. */
HAMLET_AVX2 static inline void lookup_store(int32_t *to, __m256i bytes) {
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    _mm256_storeu_si256((void *)to, _mm256_cvtepi8_epi32(low));
    _mm256_storeu_si256((void *)(to + 8), _mm256_cvtepi8_epi32(_mm_srli_si128(low, 8)));
    _mm256_storeu_si256((void *)(to + 16), _mm256_cvtepi8_epi32(high));
    _mm256_storeu_si256((void *)(to + 24), _mm256_cvtepi8_epi32(_mm_srli_si128(high, 8)));
}
#endif

#endif
