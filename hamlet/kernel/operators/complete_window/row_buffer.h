/* Numbers of one query out of the results of many windows (row_buffer.pyx).
 *
 * The results of a window begin at a place of its own; how far from there a number stands depends on the set of classes
 * that the window has: a table says it for each set.
 */
#ifndef HAMLET_ROW_BUFFER_H
#define HAMLET_ROW_BUFFER_H

#include <stdint.h>

#include "cpu_targets.h"

#ifdef HAMLET_AVX512
#include <immintrin.h>
#endif

enum { HELD_STEP = 16, HELD_TABLE = 32 }; /* tables have room for so many sets, all of them set */

/* Windows in which a number is not 0: their keys, where the number stands, and the set. All numbers are joined in seen,
 * bit by bit. Returns how many windows these are; one more may be written than there are. */
static inline long held_find_plainly(
    const int64_t *word, const int32_t *key, const int32_t *place, const int32_t *set, long n, const int32_t *table,
    int32_t *found_key, int32_t *source, int32_t *source_set, int64_t *seen
) {
    int64_t joined = 0;
    long rows = 0;
    for (long i = 0; i < n; i++) {
        int32_t at = place[i] + table[set[i]];
        int64_t number = word[at];
        found_key[rows] = key[i], source[rows] = at, source_set[rows] = set[i];
        rows += number != 0; /* without a branch: they come in any order */
        joined |= number;
    }
    *seen |= joined;
    return rows;
}

/* Numbers that stand so far behind others. */
static inline void held_take_plainly(
    const int64_t *word, const int32_t *source, const int32_t *set, long n, const int32_t *table,
    int64_t *value
) {
    for (long i = 0; i < n; i++) value[i] = word[source[i] + table[set[i]]];
}

#ifdef HAMLET_AVX512
#define HELD_LOOK_UP(set) (few \
    ? _mm512_permutex2var_epi32(low, _mm512_loadu_si512(set), high) \
    : _mm512_i32gather_epi32(_mm512_loadu_si512(set), table, 4))

/* The same a vector at a time; up to HELD_STEP more windows may be written than there are. */
HAMLET_AVX512 static long held_find_vectors(
    const int64_t *word, const int32_t *key, const int32_t *place, const int32_t *set, long n, const int32_t *table,
    int few, int32_t *found_key, int32_t *source, int32_t *source_set, int64_t *seen
) {
    const __m512i low = _mm512_loadu_si512(table), high = _mm512_loadu_si512(table + 16);
    __m512i joined = _mm512_setzero_si512();
    long i, rows = 0;
    for (i = 0; i + HELD_STEP <= n; i += HELD_STEP) {
        __m512i at = _mm512_add_epi32(_mm512_loadu_si512(place + i), HELD_LOOK_UP(set + i));
        __m512i one = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), word, 8);
        __m512i other = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), word, 8);
        __mmask16 some = (__mmask16) (_mm512_test_epi64_mask(one, one) | _mm512_test_epi64_mask(other, other) << 8);
        _mm512_storeu_si512(found_key + rows, _mm512_maskz_compress_epi32(some, _mm512_loadu_si512(key + i)));
        _mm512_storeu_si512(source + rows, _mm512_maskz_compress_epi32(some, at));
        _mm512_storeu_si512(source_set + rows, _mm512_maskz_compress_epi32(some, _mm512_loadu_si512(set + i)));
        joined = _mm512_or_si512(joined, _mm512_or_si512(one, other));
        rows += __builtin_popcount(some);
    }
    *seen |= _mm512_reduce_or_epi64(joined);
    return rows + held_find_plainly(
        word, key + i, place + i, set + i, n - i, table, found_key + rows, source + rows, source_set + rows, seen
    );
}

HAMLET_AVX512 static void held_take_vectors(
    const int64_t *word, const int32_t *source, const int32_t *set, long n, const int32_t *table, int few,
    int64_t *value
) {
    const __m512i low = _mm512_loadu_si512(table), high = _mm512_loadu_si512(table + 16);
    long i;
    for (i = 0; i + HELD_STEP <= n; i += HELD_STEP) {
        __m512i at = _mm512_add_epi32(_mm512_loadu_si512(source + i), HELD_LOOK_UP(set + i));
        __m512i one = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), word, 8);
        __m512i other = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), word, 8);
        _mm512_storeu_si512(value + i, one);
        _mm512_storeu_si512(value + i + 8, other);
    }
    held_take_plainly(word, source + i, set + i, n - i, table, value + i);
}
#undef HELD_LOOK_UP
#endif

/* Whether windows are looked through a vector at a time: without, listing them beforehand is faster (row_buffer.pyx). */
static inline int held_by_vectors(void) {
#ifdef HAMLET_AVX512
    return __builtin_cpu_supports("avx512f") != 0;
#else
    return 0;
#endif
}

static long held_find(
    const int64_t *word, const int32_t *key, const int32_t *place, const int32_t *set, long n, const int32_t *table,
    int sets, int32_t *found_key, int32_t *source, int32_t *source_set, int64_t *seen
) {
#ifdef HAMLET_AVX512
    if (n >= HELD_STEP && __builtin_cpu_supports("avx512f"))
        return held_find_vectors(
            word, key, place, set, n, table, sets <= HELD_TABLE, found_key, source, source_set, seen
        );
#endif
    return held_find_plainly(word, key, place, set, n, table, found_key, source, source_set, seen);
}

static void held_take(
    const int64_t *word, const int32_t *source, const int32_t *set, long n, const int32_t *table, int sets,
    int64_t *value
) {
#ifdef HAMLET_AVX512
    if (n >= HELD_STEP && __builtin_cpu_supports("avx512f"))
        return held_take_vectors(word, source, set, n, table, sets <= HELD_TABLE, value);
#endif
    held_take_plainly(word, source, set, n, table, value);
}

#endif
