/* Functions marked HAMLET_TARGETS are compiled for several instruction sets; the loader picks one. Wheels stay portable. */
#ifndef HAMLET_CPU_TARGETS_H
#define HAMLET_CPU_TARGETS_H

#include <stdlib.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && defined(__OPTIMIZE__)
#define HAMLET_TARGETS __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#define HAMLET_AVX512 __attribute__((target("avx512f"))) /* for a machine that __builtin_cpu_supports it */
#define HAMLET_AVX2 __attribute__((target("avx2"))) /* likewise */
#else
#define HAMLET_TARGETS __attribute__((unused))
#endif

/* What vectors are read from and written to begins a cache line: one that crosses two lines costs twice. */
#define HAMLET_LINE 64
#if defined(__GNUC__)
#define HAMLET_ALIGNED __attribute__((aligned(HAMLET_LINE)))
#else
#define HAMLET_ALIGNED
#endif

/* Memory for `free`; much of it begins a cache line where the system can do that. */
static inline void *hamlet_allocate(size_t bytes) {
#if defined(_WIN32)
    return malloc(bytes);
#else
    void *memory = NULL;
    if (bytes < 64 * HAMLET_LINE) return malloc(bytes);
    return posix_memalign(&memory, HAMLET_LINE, bytes) ? NULL : memory;
#endif
}

#endif
