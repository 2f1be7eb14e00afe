/* Hashes of values for approximate counts of distinct ones: MurmurHash3 (x64, 128 bits) with the seed of Apache
 * DataSketches, whose HyperLogLog sketches take the register from the first half and its value from the second. */
#ifndef HAMLET_VALUE_HASH_H
#define HAMLET_VALUE_HASH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define HASH_SEED 9001
#define REGISTER_CHOICE 12

static inline uint64_t hash_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline uint64_t hash_finish(uint64_t x) {
    x ^= x >> 33; x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33; x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* both halves of the hash of some bytes */
static inline void hash_bytes(const uint8_t *data, int64_t length, uint64_t *first, uint64_t *second) {
    const uint64_t c1 = 0x87c37b91114253d5ULL, c2 = 0x4cf5ad432745937fULL;
    uint64_t h1 = HASH_SEED, h2 = HASH_SEED, tail[2] = {0, 0}, k1, k2;
    int64_t blocks = length / 16;
    for (int64_t i = 0; i < blocks; i++) {
        memcpy(&k1, data + 16 * i, 8);
        memcpy(&k2, data + 16 * i + 8, 8);
        h1 ^= hash_rotate(k1 * c1, 31) * c2;
        h1 = (hash_rotate(h1, 27) + h2) * 5 + 0x52dce729;
        h2 ^= hash_rotate(k2 * c2, 33) * c1;
        h2 = (hash_rotate(h2, 31) + h1) * 5 + 0x38495ab5;
    }
    memcpy(tail, data + 16 * blocks, (size_t)(length - 16 * blocks));
    h2 ^= hash_rotate(tail[1] * c2, 33) * c1;
    h1 ^= hash_rotate(tail[0] * c1, 31) * c2;
    h1 ^= (uint64_t)length;
    h2 ^= (uint64_t)length;
    h1 += h2; h2 += h1;
    h1 = hash_finish(h1); h2 = hash_finish(h2);
    h1 += h2; h2 += h1;
    *first = h1;
    *second = h2;
}

/* the register in the low bits and its value in the high byte */
static inline uint64_t hash_coupon(const uint8_t *data, int64_t length) {
    uint64_t first, second;
    hash_bytes(data, length, &first, &second);
    uint64_t zeros = second ? (uint64_t)__builtin_clzll(second) : 64;
    return (first & ((1 << REGISTER_CHOICE) - 1)) | ((zeros < 62 ? zeros : 62) + 1) << 56;
}

static inline uint64_t hash_integer(int64_t value) { return hash_coupon((const uint8_t *)&value, 8); }

/* whole numbers hash alike whether they are integers or doubles, for a column may turn from the one into the other */
static inline uint64_t hash_double(double value) {
    if (value >= -0x1p63 && value < 0x1p63 && value == (double)(int64_t)value) return hash_integer((int64_t)value);
    return hash_coupon((const uint8_t *)&value, 8);
}

#endif
